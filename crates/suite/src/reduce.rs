//! Reductions.

use cupola_core::prim::{Binary, Reduce, ReduceKind};
use cupola_core::{Aval, DType};

use crate::binary;
use crate::edges::{of_op, rows};
use crate::host::{Host, flat, indices};
use crate::number::{Number, identity};
use crate::programs::{Random, number};
use crate::sample::{Accuracy, Sample, dims, from, input, numbers, spread};

pub fn samples() -> Vec<Sample> {
    let mut all: Vec<Sample> = ReduceKind::ALL.iter().flat_map(|&kind| ordinary(kind)).collect();
    for &kind in ReduceKind::ALL {
        for axis in [0, 1] {
            let op = Reduce { kind, axes: dims(&[axis]) };
            all.push(of_op(op, &format!("of edges over {axis}"), rows(), DType::is_float));
        }
    }
    for (n, &kind) in ReduceKind::ALL.iter().enumerate() {
        all.extend((0..40).map(|round| at_random(kind, 40 * n as u64 + round)));
    }
    all.extend(kinks());
    all
}

/// Over axes at random, of numbers whose folds are the same in any order.
fn at_random(kind: ReduceKind, seed: u64) -> Sample {
    let random = &mut Random(seed);
    let mut sizes = random.shape(if seed.is_multiple_of(8) { 10_000 } else { 1_000 });
    if seed % 20 == 19 && !matches!(kind, ReduceKind::Max | ReduceKind::Min) {
        sizes.push(0);
    }
    let axes: Vec<usize> = (0..sizes.len()).filter(|_| random.below(2) == 0).collect();
    let op = Reduce { kind, axes: dims(&axes) };
    let name = format!("{} of {sizes:?} over {axes:?}, {seed}", kind.name());
    let inputs = move |dtype: DType| {
        let random = &mut Random(seed + 1);
        let harmless = |_| {
            let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
            match kind {
                ReduceKind::Prod if dtype.is_inexact() => Number::of(dtype, sign, 0.0),
                ReduceKind::Sum if dtype.is_complex() => Number::of(dtype, sign, 2.0 * sign),
                ReduceKind::Sum if dtype.is_float() => {
                    Number::Float(random.below(40) as f64 - 20.0)
                }
                _ => number(random, dtype),
            }
        };
        vec![Host::from_fn(Aval::new(sizes.clone(), dtype), harmless)]
    };
    Sample::of(name, move |_| op.clone().into(), inputs)
        .within(Accuracy::Exact)
        .where_kernels_are_cheap()
}

/// Ties share; NaN has no slope.
fn kinks() -> Vec<Sample> {
    let kink = |of: &str, values: &[f64], slopes: &[f64]| {
        let largest = |_| Reduce { kind: ReduceKind::Max, axes: dims(&[0]) }.into();
        Sample::new(format!("max of {of}"), largest, vec![numbers([values.len()], values)])
            .slopes(&[1.0], &[slopes])
    };
    let mut all = vec![
        kink("ties", &[4.0, 1.0, 4.0, 4.0, 2.0, 4.0], &[0.25, 0.0, 0.25, 0.25, 0.0, 0.25]),
        kink("NaN", &[1.0, f64::NAN, 2.0], &[f64::NAN; 3]),
    ];
    const FACTORS: [f64; 15] =
        [0.0, 1.5, -0.5, 2.0, 0.0, 1.2, 0.0, -1.5, 2.5, 0.5, -1.0, 0.7, 0.0, 0.0, 0.0];
    for axis in [0, 1] {
        let op = move |_| Reduce { kind: ReduceKind::Prod, axes: dims(&[axis]) }.into();
        let inputs = vec![numbers([3, 5], &FACTORS)];
        let sample = Sample::new(format!("prod with zeros over {axis}"), op, inputs).smooth();
        all.push(sample.where_kernels_are_cheap());
    }
    all
}

fn ordinary(kind: ReduceKind) -> Vec<Sample> {
    let value = move |i: usize| match kind {
        ReduceKind::All => f64::from(u8::from(!i.is_multiple_of(7))),
        ReduceKind::Any => f64::from(u8::from(i.is_multiple_of(7))),
        ReduceKind::Prod => 0.8 + 0.2 * spread(i),
        ReduceKind::Sum | ReduceKind::Max | ReduceKind::Min => spread(i),
    };
    let shapes: [(&[usize], &[usize]); 8] = [
        (&[2, 3, 4], &[0]),
        (&[2, 3, 4], &[1]),
        (&[2, 3, 4], &[2]),
        (&[2, 3, 4], &[0, 2]),
        (&[2, 3, 4], &[0, 1, 2]),
        (&[3, 37], &[1]),
        (&[2, 3, 4], &[1, 2]),
        (&[2, 3, 4], &[]),
    ];
    let mut all: Vec<Sample> = shapes
        .into_iter()
        .map(|(shape, axes)| {
            let op = Reduce { kind, axes: dims(axes) };
            let name = format!("{} {shape:?} over {axes:?}", kind.name());
            let sample = Sample::new(name, move |_| op.clone().into(), vec![from(shape, value)]);
            match kind {
                ReduceKind::All | ReduceKind::Any => sample,
                _ => sample.smooth(),
            }
        })
        .collect();
    if !matches!(kind, ReduceKind::Max | ReduceKind::Min) {
        let op = Reduce { kind, axes: dims(&[1]) };
        let name = format!("{} of nothing", kind.name());
        all.push(Sample::new(name, move |_| op.clone().into(), vec![input([2, 0])]));
    }
    all
}

pub fn reference(r: &Reduce, x: &Host, out: &Aval) -> Host {
    let join = match r.kind {
        ReduceKind::Sum => Binary::Add,
        ReduceKind::Prod => Binary::Mul,
        ReduceKind::Max => Binary::Maximum,
        ReduceKind::Min => Binary::Minimum,
        ReduceKind::All => Binary::BitAnd,
        ReduceKind::Any => Binary::BitOr,
    };
    let logical = matches!(r.kind, ReduceKind::All | ReduceKind::Any);
    let mut data = vec![identity(join, out.dtype); out.shape.size()];
    for (i, index) in indices(&x.aval.shape).enumerate() {
        let axes = index.iter().enumerate().filter(|(a, _)| !r.axes.contains(a));
        let kept: Vec<usize> = axes.map(|(_, &v)| v).collect();
        let place = &mut data[flat(&out.shape, &kept)];
        let v = if logical { Number::truth(x.data[i].is_true()) } else { x.data[i] };
        *place = binary::number(join, *place, v, out.dtype);
    }
    Host::from_fn(out.clone(), |i| data[i])
}
