//! Pooling and its gradients.

use cupola_core::prim::{Binary, Pool, PoolRole};
use cupola_core::{Aval, Shape};

use crate::binary::number;
use crate::host::{Host, flat, indices};
use crate::number::{Number, identity};
use crate::sample::{Accuracy, Sample, dims, from, spread, whole};

/// A name, then input, window, stride, padding and dilation.
type PoolCase = (
    &'static str,
    &'static [usize],
    &'static [usize],
    &'static [usize],
    &'static [(usize, usize)],
    usize,
);

pub fn samples() -> Vec<Sample> {
    let cases: [PoolCase; 11] = [
        ("2x2", &[6, 4], &[2, 2], &[2, 2], &[(0, 0)], 1),
        ("3x3 overlapping", &[6, 5], &[3, 3], &[2, 1], &[(1, 1)], 1),
        ("1d", &[7], &[3], &[2], &[(1, 0)], 1),
        ("odd rest", &[5, 7], &[2, 2], &[2, 2], &[(0, 0)], 1),
        ("uneven", &[5, 4], &[2, 3], &[2, 1], &[(0, 1), (1, 1)], 1),
        ("1d overlapping", &[6], &[3], &[2], &[(1, 1)], 1),
        ("of whole numbers", &[5, 6], &[2, 3], &[2, 1], &[(1, 0), (1, 1)], 1),
        ("dilated", &[9, 8], &[3, 2], &[2, 3], &[(2, 0), (1, 2)], 2),
        ("1d dilated", &[8], &[3], &[1], &[(2, 1)], 3),
        ("in padding alone", &[4, 3], &[2, 2], &[1, 3], &[(3, 0), (0, 4)], 1),
        ("dilated beside each other", &[9], &[2], &[4], &[(0, 0)], 3),
    ];
    let roles = [
        PoolRole::Max,
        PoolRole::MaxGather,
        PoolRole::MaxScatter,
        PoolRole::Sum,
        PoolRole::SumTranspose,
    ];
    let mut all = Vec::new();
    for (name, space, window, stride, padding, dilation) in cases {
        for role in roles {
            let op = Pool {
                role,
                input: dims(space),
                window: dims(window),
                stride: dims(stride),
                padding: (0..space.len()).map(|a| padding[a % padding.len()]).collect(),
                dilation: dims(&vec![dilation; space.len()]),
            };
            let Ok(output) = op.output() else { continue };
            let shape = |space: &[usize]| -> Shape {
                std::iter::once(2).chain(space.iter().copied()).chain([5]).collect()
            };
            let (x, y) = (shape(space), shape(&output));
            // Of nothing the maximum is infinite, which has no differences.
            let exact = ["of whole numbers", "in padding alone"].contains(&name);
            let value = move |i: usize, below: usize, seed: usize| match exact {
                true => whole(i, below, seed),
                false => spread(i + seed),
            };
            let first = |shape| from(shape, move |i| value(i, 40, 0));
            let inputs = match role {
                PoolRole::Max | PoolRole::Sum => vec![first(x)],
                PoolRole::MaxGather => vec![first(x.clone()), from(x, move |i| value(i, 40, 31))],
                PoolRole::MaxScatter => vec![first(x), from(y, move |i| value(i, 5, 31))],
                PoolRole::SumTranspose => vec![from(y, move |i| value(i, 5, 0))],
            };
            let name = format!("{} {name}", role.name());
            let sample = Sample::new(name.clone(), move |_| op.clone().into(), inputs);
            // Of whole numbers two may be the largest.
            let sample = if exact { sample.within(Accuracy::Exact) } else { sample.smooth() };
            let about_rules =
                ["uneven", "1d overlapping", "1d dilated"].iter().any(|end| name.ends_with(end));
            all.push(if about_rules { sample.where_kernels_are_cheap() } else { sample });
        }
    }
    all
}

pub fn reference(p: &Pool, inputs: &[Host], out: &Aval) -> Host {
    let a = &inputs[0];
    let x_shape: Shape = match p.role {
        PoolRole::SumTranspose => out.shape.clone(),
        _ => a.aval.shape.clone(),
    };
    let y_shape: Shape = match p.role {
        PoolRole::Max | PoolRole::MaxGather | PoolRole::Sum => out.shape.clone(),
        PoolRole::MaxScatter => inputs[1].aval.shape.clone(),
        PoolRole::SumTranspose => a.aval.shape.clone(),
    };
    let last = x_shape.rank() - 1;
    let (zero, least) = (identity(Binary::Add, out.dtype), identity(Binary::Maximum, out.dtype));
    let add = |a, b| number(Binary::Add, a, b, out.dtype);
    let mut data = vec![zero; out.shape.size()];
    for (i, at_y) in indices(&y_shape).enumerate() {
        let mut places = Vec::new();
        for k in indices(&p.window) {
            let mut at = at_y.clone();
            let inside = (0..last - 1).all(|s| {
                let padded = at_y[1 + s] * p.stride[s] + k[s] * p.dilation[s];
                at[1 + s] = padded.wrapping_sub(p.padding[s].0);
                padded >= p.padding[s].0 && at[1 + s] < p.input[s]
            });
            if inside {
                places.push(flat(&x_shape, &at));
            }
        }
        let wins = |v: Number, old: Number| {
            !old.is_nan() && (v.is_nan() || number(Binary::Maximum, old, v, out.dtype) != old)
        };
        let better =
            |best: usize, place| if wins(a.data[place], a.data[best]) { place } else { best };
        let best = || places.iter().copied().reduce(better);
        match p.role {
            PoolRole::Max => data[i] = best().map_or(least, |b| a.data[b]),
            PoolRole::MaxGather => data[i] = best().map_or(zero, |b| inputs[1].data[b]),
            PoolRole::MaxScatter => {
                if let Some(b) = best() {
                    data[b] = add(data[b], inputs[1].data[i]);
                }
            }
            PoolRole::Sum => data[i] = places.iter().fold(zero, |sum, &b| add(sum, a.data[b])),
            PoolRole::SumTranspose => {
                places.iter().for_each(|&b| data[b] = add(data[b], a.data[i]));
            }
        }
    }
    Host::from_fn(out.clone(), |i| data[i])
}
