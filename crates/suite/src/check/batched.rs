//! `vmap` against a loop.

use cupola_core::transform::vmap;
use cupola_core::{Array, Error, Result, Shape, ops};

use crate::host::Host;
use crate::number::Number;

use super::{Case, agree, hosts, kernels_are_cheap, slack};

/// How many examples a batch has.
const SIZE: usize = 3;

/// With every choice of batched inputs, or, where these are many or kernels take long to make, with all
/// and with each alone; and with a batch of nothing.
pub fn batched(case: &Case<'_>) -> Result<()> {
    let count = case.inputs.len();
    if count == 0 {
        return Ok(());
    }
    let plain = case.arrays()?;
    let examples: Vec<Vec<Array>> = (0..count)
        .map(|n| (0..SIZE).map(|b| example(case, &case.inputs[n], b)).collect::<Result<_>>())
        .collect::<Result<_>>()?;
    let all = (1usize << count) - 1;
    for choice in (1..=all).rev() {
        let tries_all = kernels_are_cheap() && count <= 4;
        if choice != all && !choice.is_power_of_two() && !tries_all {
            continue;
        }
        let is_batched = |n: usize| choice >> n & 1 == 1;
        let axes: Vec<Option<isize>> = (0..count).map(|n| is_batched(n).then_some(0)).collect();
        let mut want: Vec<Host> = Vec::new();
        for b in 0..SIZE {
            let one: Vec<Array> = (examples.iter().zip(&plain).enumerate())
                .map(|(n, (own, plain))| if is_batched(n) { own[b].clone() } else { plain.clone() })
                .collect();
            let parts = hosts(&case.run(&one)?)?;
            match want.is_empty() {
                true => want = parts,
                false => want.iter_mut().zip(parts).for_each(|(w, p)| w.data.extend(p.data)),
            }
        }
        let op = case.op.clone();
        let record =
            move |x: &[Array]| Array::apply_multi(op.clone(), &x.iter().collect::<Vec<_>>());
        let f = vmap(record, &axes, &vec![0; want.len()]);
        let stacked: Vec<Array> = (0..count)
            .map(|n| match is_batched(n) {
                true => ops::stack(&examples[n].iter().collect::<Vec<_>>(), 0),
                false => Ok(plain[n].clone()),
            })
            .collect::<Result<_>>()?;
        let nothing: Vec<Array> = (stacked.iter().enumerate())
            .map(|(n, x)| match is_batched(n) {
                true => ops::zeros([&[0], &x.shape()[1..]].concat(), x.dtype()),
                false => Ok(x.clone()),
            })
            .collect::<Result<_>>()?;
        let (got, empty) = (hosts(&f(&stacked)?)?, f(&nothing)?);
        for ((got, want), empty) in got.iter().zip(&mut want).zip(&empty) {
            let batch = |size: usize| -> Shape {
                std::iter::once(size).chain(want.aval.shape.iter().copied()).collect()
            };
            if empty.shape() != &batch(0) || empty.dtype() != want.aval.dtype {
                let text = format!("a batch of nothing {axes:?} gives {}", empty.aval());
                return Err(Error::User(text));
            }
            empty.to_bytes()?;
            want.aval.shape = batch(SIZE);
            agree(&format!("vmap {axes:?}"), got, want, slack(case, got.aval.dtype))?;
        }
    }
    Ok(())
}

/// The input rolled by `b` places, which keeps indices and conditions valid; a multiple of it where
/// that keeps a matrix symmetric.
fn example(case: &Case<'_>, host: &Host, b: usize) -> Result<Array> {
    let count = host.data.len().max(1);
    let by = 1.0 + 0.25 * b as f64;
    Host::from_fn(host.aval.clone(), |i| match (case.sample.hermitian, host.data[i]) {
        (false, _) => host.data[(i + b) % count],
        (true, Number::Complex(v)) => Number::Complex(v * by),
        (true, v) => Number::Float(v.float() * by),
    })
    .to_array()
}
