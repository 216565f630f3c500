//! The same inputs with gaps, at an offset and backwards, and the same turned.

use cupola_core::prim::Movement;
use cupola_core::{Array, Aval, Dims, Result};

use crate::host::{Host, flat, indices};
use crate::number::Number;

use super::{Case, agree, hosts, kernels_are_cheap, slack};

/// How the inputs lie in memory: the second input's way is chosen by the first's, and so on.
const MIXES: [[Arrangement; 3]; 8] = {
    use Arrangement::{Dense, Strided, Turned};
    [
        [Strided, Strided, Strided],
        [Turned, Turned, Turned],
        [Strided, Turned, Dense],
        [Turned, Strided, Dense],
        [Dense, Strided, Turned],
        [Dense, Turned, Strided],
        [Strided, Dense, Turned],
        [Turned, Dense, Strided],
    ]
};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Arrangement {
    Dense,
    /// Every second element, backwards, of a larger array.
    Strided,
    /// In column-major order.
    Turned,
}

pub fn views(case: &Case<'_>) -> Result<()> {
    let want = hosts(&case.run(&case.arrays()?)?)?;
    // With one input, or where kernels take long to make, all inputs lie alike; large ones in one way.
    let mixes = match case.largest_input() {
        10_001.. => 1,
        _ if case.inputs.len() > 1 && kernels_are_cheap() => MIXES.len(),
        _ => 2,
    };
    for mix in &MIXES[..mixes] {
        let lay = |(i, host)| laid(host, mix[i % mix.len()]);
        let inputs: Vec<Array> = case.inputs.iter().enumerate().map(lay).collect::<Result<_>>()?;
        for (got, want) in hosts(&case.run(&inputs)?)?.iter().zip(&want) {
            agree(&format!("inputs {mix:?}"), got, want, slack(case, got.aval.dtype))?;
        }
    }
    Ok(())
}

fn laid(host: &Host, arrangement: Arrangement) -> Result<Array> {
    match arrangement {
        Arrangement::Dense => host.to_array(),
        Arrangement::Strided => strided(host),
        Arrangement::Turned => turned(host),
    }
}

/// The same values as every second element, backwards, of a larger array that starts with others.
fn strided(host: &Host) -> Result<Array> {
    let mut aval = host.aval.clone();
    let rank = aval.shape.rank();
    if rank == 0 {
        return host.to_array();
    }
    for axis in 0..rank {
        aval.shape.0[axis] = 2 * aval.shape[axis] + 1;
    }
    let inner = &host.aval.shape;
    let big = Host::by_index(&aval, |place| {
        if place.iter().any(|p| p % 2 == 0) {
            return Number::Int(1);
        }
        let index: Vec<usize> =
            place.iter().zip(inner.iter()).map(|(p, d)| d - 1 - p / 2).collect();
        host.at(&index)
    });
    let slice = Movement::Slice {
        start: Dims::from_elem(1, rank),
        sizes: inner.0.clone(),
        strides: Dims::from_elem(2, rank),
    };
    let all = Movement::Flip((0..rank).collect());
    Array::apply(all, &[&Array::apply(slice, &[&big.to_array()?])?])
}

/// The same values, lying in column-major order.
fn turned(host: &Host) -> Result<Array> {
    let rank = host.aval.shape.rank();
    let reversed =
        Aval { shape: host.aval.shape.iter().rev().copied().collect(), dtype: host.aval.dtype };
    let places: Vec<Vec<usize>> = indices(&reversed.shape).collect();
    let columns = Host::from_fn(reversed, |i| {
        let index: Vec<usize> = places[i].iter().rev().copied().collect();
        host.data[flat(&host.aval.shape, &index)]
    });
    let back = Movement::Transpose((0..rank).rev().collect());
    Array::apply(back, &[&columns.to_array()?])
}
