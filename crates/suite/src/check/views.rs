//! The same inputs with gaps, at an offset and backwards, the same turned, and the same cut out of wider rows.

use cupola_core::prim::Movement;
use cupola_core::{Array, Aval, Dims, Result};

use crate::host::{Host, flat, indices};
use crate::number::Number;

use super::{Case, agree, hosts, kernels_are_cheap, slack};

/// How the inputs lie in memory: the second input's way is chosen by the first's, and so on.
const MIXES: [[Arrangement; 3]; 9] = {
    use Arrangement::{Cut, Dense, Strided, Turned};
    [
        [Strided, Strided, Strided],
        [Turned, Turned, Turned],
        [Cut, Cut, Cut],
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
    /// In rows of a wider array, of which no number of neighbours divides the width.
    Cut,
}

pub fn views(case: &Case<'_>) -> Result<()> {
    let want = hosts(&case.run(&case.arrays()?)?)?;
    // With one input, or where kernels take long to make, all inputs lie alike; large ones in one way. Of the three ways
    // kernels that take long are made for two, which differ by the dtypes' size.
    let sizes = case.inputs.iter().map(|host| host.aval.dtype.size());
    let first = sizes.max().map_or(0, usize::trailing_zeros) as usize % 3;
    let mixes: Vec<_> = match case.largest_input() {
        10_001.. => vec![MIXES[first]],
        _ if !kernels_are_cheap() => vec![MIXES[first], MIXES[(first + 1) % 3]],
        _ if case.inputs.len() > 1 => MIXES.into(),
        _ => MIXES[..3].into(),
    };
    for mix in &mixes {
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
        Arrangement::Cut => cut(host),
    }
}

/// The same values in the rows of an array that is wider by an odd number of columns, after the first of these.
fn cut(host: &Host) -> Result<Array> {
    let mut aval = host.aval.clone();
    let rank = aval.shape.rank();
    let Some(&width) = host.aval.shape.last() else { return host.to_array() };
    aval.shape.0[rank - 1] = width + if width.is_multiple_of(2) { 3 } else { 2 };
    let wide = Host::by_index(&aval, |place| {
        let column = place[rank - 1];
        if column == 0 || column > width {
            return Number::Int(1);
        }
        let mut index = place.to_vec();
        index[rank - 1] -= 1;
        host.at(&index)
    });
    let mut start = Dims::from_elem(0, rank);
    start[rank - 1] = 1;
    let strides = Dims::from_elem(1, rank);
    let slice = Movement::Slice { start, sizes: host.aval.shape.0.clone(), strides };
    Array::apply(slice, &[&wide.to_array()?])
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
