//! What is checked of every sample.

use cupola_core::prim::Op;
use cupola_core::transform::{compile, jvp, vjp, vmap};
use cupola_core::{Array, DType, Error, Result, ops};
use num_complex::Complex64;

use super::host::Host;
use super::reference::reference;

/// A check of one sample in one dtype.
type Check = fn(&Op, &[Host]) -> Result<()>;

/// The checks of every dtype, by name.
pub const EVERY_DTYPE: [(&str, Check); 4] =
    [("value", value), ("views", views), ("compiled", compiled), ("vmap", batched)];

/// The checks of derivatives, in f64.
pub const DERIVATIVES: [(&str, Check); 2] = [("jvp", forward), ("vjp", backward)];

fn run(op: &Op, inputs: &[Array]) -> Result<Array> {
    let refs: Vec<&Array> = inputs.iter().collect();
    let mut outputs = Array::apply_multi(op.clone(), &refs)?;
    Ok(outputs.swap_remove(0))
}

fn arrays(inputs: &[Host]) -> Result<Vec<Array>> {
    inputs.iter().map(Host::to_array).collect()
}

/// The device's result against the reference's.
fn value(op: &Op, inputs: &[Host]) -> Result<()> {
    let got = Host::of_array(&run(op, &arrays(inputs)?)?)?;
    let want = match op {
        Op::Call(call) => {
            // The body is made of primitives that have samples of their own.
            let direct = call.body.replay(&arrays(inputs)?)?;
            Host::of_array(&direct[0])?
        }
        _ => match reference(op, inputs, &got.aval) {
            Some(want) => want,
            None => return Err(Error::User("the suite has no reference for this op".into())),
        },
    };
    agree("value", &got, &want, tolerance(got.aval.dtype))
}

/// The same inputs with gaps, at an offset and backwards.
fn views(op: &Op, inputs: &[Host]) -> Result<()> {
    let want = Host::of_array(&run(op, &arrays(inputs)?)?)?;
    let strided: Vec<Array> = inputs.iter().map(strided).collect::<Result<_>>()?;
    let got = Host::of_array(&run(op, &strided)?)?;
    agree("strided views", &got, &want, tolerance(got.aval.dtype))?;
    let turned: Vec<Array> = inputs.iter().map(turned).collect::<Result<_>>()?;
    let got = Host::of_array(&run(op, &turned)?)?;
    agree("transposed views", &got, &want, tolerance(got.aval.dtype))
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
    let places: Vec<Vec<usize>> = super::host::indices(&aval.shape).collect();
    let big = Host::from_fn(aval, |i| {
        let inside = places[i].iter().all(|p| p % 2 == 1);
        if !inside {
            return Complex64::new(1.0, 0.0);
        }
        let index: Vec<usize> =
            places[i].iter().zip(inner.iter()).map(|(p, d)| d - 1 - p / 2).collect();
        host.data[super::host::flat(inner, &index)]
    });
    let slice = cupola_core::prim::Movement::Slice {
        start: cupola_core::Dims::from_elem(1, rank),
        sizes: inner.0.clone(),
        strides: cupola_core::Dims::from_elem(2, rank),
    };
    let all = cupola_core::prim::Movement::Flip((0..rank).collect());
    Array::apply(all, &[&Array::apply(slice, &[&big.to_array()?])?])
}

/// The same values, lying in column-major order.
fn turned(host: &Host) -> Result<Array> {
    let rank = host.aval.shape.rank();
    let reversed = cupola_core::Aval {
        shape: host.aval.shape.iter().rev().copied().collect(),
        dtype: host.aval.dtype,
    };
    let places: Vec<Vec<usize>> = super::host::indices(&reversed.shape).collect();
    let columns = Host::from_fn(reversed, |i| {
        let index: Vec<usize> = places[i].iter().rev().copied().collect();
        host.data[super::host::flat(&host.aval.shape, &index)]
    });
    let back = cupola_core::prim::Movement::Transpose((0..rank).rev().collect());
    Array::apply(back, &[&columns.to_array()?])
}

fn compiled(op: &Op, inputs: &[Host]) -> Result<()> {
    let inputs = arrays(inputs)?;
    let want = Host::of_array(&run(op, &inputs)?)?;
    let own = op.clone();
    let f = compile(move |_: &mut (), x: &[Array]| Ok(vec![run(&own, x)?]));
    for _ in 0..2 {
        let got = Host::of_array(&f.call(&mut (), &inputs)?[0])?;
        agree("compiled", &got, &want, 0.0)?;
    }
    Ok(())
}

/// `vmap` against a loop, with every input batched and with each batched alone.
fn batched(op: &Op, inputs: &[Host]) -> Result<()> {
    const SIZE: usize = 3;
    if inputs.is_empty() {
        return Ok(());
    }
    let plain = arrays(inputs)?;
    // Example b is the input rolled by b places, which keeps indices and conditions valid.
    let stacked: Vec<Array> = inputs
        .iter()
        .map(|host| {
            let examples: Vec<Array> = (0..SIZE)
                .map(|b| {
                    let count = host.data.len().max(1);
                    Host::from_fn(host.aval.clone(), |i| host.data[(i + b) % count]).to_array()
                })
                .collect::<Result<_>>()?;
            ops::stack(&examples.iter().collect::<Vec<_>>(), 0)
        })
        .collect::<Result<_>>()?;
    let example = |n: usize, b: usize| -> Result<Array> {
        let host = &inputs[n];
        let count = host.data.len().max(1);
        Host::from_fn(host.aval.clone(), |i| host.data[(i + b) % count]).to_array()
    };
    let mut patterns: Vec<Vec<bool>> = vec![vec![true; inputs.len()]];
    if inputs.len() > 1 {
        patterns
            .extend((0..inputs.len()).map(|alone| (0..inputs.len()).map(|n| n == alone).collect()));
    }
    for pattern in patterns {
        let axes: Vec<Option<isize>> = pattern.iter().map(|&b| b.then_some(0)).collect();
        let own = op.clone();
        let f = vmap(move |x: &[Array]| Ok(vec![run(&own, x)?]), &axes, &[0]);
        let arguments: Vec<Array> = (0..inputs.len())
            .map(|n| if pattern[n] { stacked[n].clone() } else { plain[n].clone() })
            .collect();
        let got = Host::of_array(&f(&arguments)?[0])?;
        let mut want = Vec::new();
        for b in 0..SIZE {
            let one: Vec<Array> = (0..inputs.len())
                .map(|n| if pattern[n] { example(n, b) } else { Ok(plain[n].clone()) })
                .collect::<Result<_>>()?;
            want.extend(Host::of_array(&run(op, &one)?)?.data);
        }
        let want = Host { aval: got.aval.clone(), data: want };
        agree(&format!("vmap {pattern:?}"), &got, &want, tolerance(got.aval.dtype))?;
    }
    Ok(())
}

/// A direction for each input that has derivatives.
fn directions(inputs: &[Host]) -> Vec<Host> {
    inputs
        .iter()
        .map(|host| {
            Host::from_fn(host.aval.clone(), |i| {
                let wave = ((i * 37 + 11) % 23) as f64 / 11.5 - 1.0;
                Complex64::new(if host.aval.dtype == DType::F64 { wave } else { 0.0 }, 0.0)
            })
        })
        .collect()
}

/// The jvp against a central difference, which is exact to second order in the step.
fn forward(op: &Op, inputs: &[Host]) -> Result<()> {
    const STEP: f64 = 1e-5;
    let moved = |by: f64| -> Result<Host> {
        let inputs: Vec<Host> = inputs
            .iter()
            .zip(directions(inputs))
            .map(|(x, v)| Host {
                aval: x.aval.clone(),
                data: x.data.iter().zip(&v.data).map(|(x, v)| x + v * by).collect(),
            })
            .collect();
        Host::of_array(&run(op, &arrays(&inputs)?)?)
    };
    let (up, down) = (moved(STEP)?, moved(-STEP)?);
    let want = Host {
        aval: up.aval.clone(),
        data: up.data.iter().zip(&down.data).map(|(u, d)| (u - d) / (2.0 * STEP)).collect(),
    };
    let own = op.clone();
    let f = move |x: &[Array]| Ok(vec![run(&own, x)?]);
    let (_, tangents) = jvp(f, &arrays(inputs)?, &arrays(&directions(inputs))?)?;
    agree("jvp against differences", &Host::of_array(&tangents[0])?, &want, 2e-6)
}

/// ⟨u, J·v⟩ from the jvp against ⟨Jᵀ·u, v⟩ from the vjp.
fn backward(op: &Op, inputs: &[Host]) -> Result<()> {
    let primals = arrays(inputs)?;
    let tangents = directions(inputs);
    let own = op.clone();
    let f = move |x: &[Array]| Ok(vec![run(&own, x)?]);
    let (_, out) = jvp(f.clone(), &primals, &arrays(&tangents)?)?;
    let out = Host::of_array(&out[0])?;
    let weights = Host::from_fn(out.aval.clone(), |i| {
        Complex64::new(((i * 29 + 5) % 19) as f64 / 9.5 - 1.0, 0.0)
    });
    let left: f64 = out.data.iter().zip(&weights.data).map(|(a, b)| a.re * b.re).sum();
    // Integer and bool inputs have no cotangents.
    let smooth: Vec<usize> =
        (0..inputs.len()).filter(|&n| inputs[n].aval.dtype == DType::F64).collect();
    let chosen: Vec<Array> = smooth.iter().map(|&n| primals[n].clone()).collect();
    let places = smooth.clone();
    let whole = move |x: &[Array]| {
        let mut all = primals.clone();
        places.iter().zip(x).for_each(|(&n, x)| all[n] = x.clone());
        f(&all)
    };
    let (_, gradients) = vjp(whole, &chosen, &[weights.to_array()?])?;
    let mut right = 0.0;
    for (&n, gradient) in smooth.iter().zip(&gradients) {
        let gradient = Host::of_array(gradient)?;
        if gradient.aval != inputs[n].aval {
            return Err(Error::User(format!(
                "the cotangent of input {n} is {}, the input {}",
                gradient.aval, inputs[n].aval
            )));
        }
        right += gradient.data.iter().zip(&tangents[n].data).map(|(a, b)| a.re * b.re).sum::<f64>();
    }
    if (left - right).abs() <= 1e-9 * (1.0 + left.abs().max(right.abs())) {
        return Ok(());
    }
    Err(Error::User(format!("vjp and jvp disagree: {left} and {right}")))
}

/// How far a result may be from the reference, relative to 1 + |reference|. The inputs are exact in
/// the dtype, so this is the error of the operation: a few units in the last place, and more for
/// the sums of the samples.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        DType::F32 | DType::C64 => 5e-5,
        DType::F64 => 1e-11,
        _ => 0.0,
    }
}

fn agree(what: &str, got: &Host, want: &Host, tolerance: f64) -> Result<()> {
    if got.aval != want.aval {
        return Err(Error::User(format!("{what}: gave {}, not {}", got.aval, want.aval)));
    }
    if got.data.len() != want.data.len() {
        let (got, want) = (got.data.len(), want.data.len());
        return Err(Error::User(format!("{what}: gave {got} elements, not {want}")));
    }
    let close = |a: f64, b: f64| {
        let near = || b.is_finite() && (a - b).abs() <= tolerance * (1.0 + b.abs());
        a == b || a.is_nan() && b.is_nan() || near()
    };
    let wrong =
        got.data.iter().zip(&want.data).position(|(a, b)| !close(a.re, b.re) || !close(a.im, b.im));
    match wrong {
        None => Ok(()),
        Some(i) => Err(Error::User(format!(
            "{what}: element {i} of {} is {}, not {}",
            got.aval, got.data[i], want.data[i]
        ))),
    }
}
