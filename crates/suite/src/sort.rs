//! Elements of an axis in order.

use std::cmp::Ordering;

use cupola_core::prim::{Sort, SortPart};
use cupola_core::{Aval, DType};

use crate::edges::{of_op, rows};
use crate::host::{Host, lanes};
use crate::number::Number::{self, Int};
use crate::sample::{Accuracy, Sample, input, whole};

pub fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for axis in [0, 1, 2] {
        for indices in [false, true] {
            let op = Sort { indices, ..Sort::new(axis) };
            let name = format!("{} axis {axis}", op.name());
            let sample = Sample::new(name, move |_| op.into(), vec![input([3, 4, 5])]);
            all.push(if indices { sample } else { sample.smooth() });
        }
    }
    for (axis, indices) in [(0, false), (1, true)] {
        all.push(of_op(Sort { indices, ..Sort::new(axis) }, "of edges", rows(), DType::is_float));
    }
    let whole = LANES.into_iter().map(|(shape, axis)| (shape, axis, SortPart::Whole));
    let ranges = RANGES
        .into_iter()
        .map(|(shape, axis, [start, count])| (shape, axis, SortPart::Range { start, count }));
    for (shape, axis, part) in whole.chain(ranges) {
        for indices in [false, true] {
            let op = Sort { axis, indices, part };
            let name = format!("{} of {shape:?} along {axis}, {part:?}", op.name());
            let sample =
                Sample::of(name, move |_| op.into(), move |dtype| ordered(shape, dtype, 3));
            let sample = sample.within(Accuracy::Exact);
            let long = shape.iter().product::<usize>() > 100;
            all.push(if long { sample.where_kernels_are_cheap() } else { sample });
        }
    }
    all
}

/// Shapes and axes whose lanes are ordered in different ways.
pub const LANES: [(&[usize], usize); 11] = [
    (&[7], 0),
    (&[1], 0),
    (&[3, 4, 5], 0),
    (&[3, 4, 5], 1),
    (&[3, 4, 5], 2),
    (&[2, 700], 1),
    (&[700, 70], 0),
    (&[3, 1500], 1),
    (&[0, 3], 1),
    (&[3, 0], 0),
    (&[140_000], 0),
];

/// Shapes, axes, and places of the order: the first and how many.
pub const RANGES: [(&[usize], usize, [usize; 2]); 12] = [
    (&[7], 0, [5, 2]),
    (&[3, 4, 5], 1, [0, 1]),
    (&[3, 4, 5], 2, [2, 3]),
    (&[3, 40], 1, [0, 4]),
    (&[40, 3], 0, [39, 1]),
    (&[2, 700], 1, [690, 3]),
    (&[3, 1500], 1, [200, 1000]),
    (&[5, 3], 0, [2, 0]),
    (&[140_000], 0, [139_900, 100]),
    (&[140_000], 0, [0, 60]),
    (&[3, 9000], 1, [8990, 10]),
    (&[9000, 2], 0, [0, 4500]),
];

/// Numbers with repeats; of floats also zeros of both signs, infinities and NaN.
pub fn ordered(shape: &[usize], dtype: DType, seed: usize) -> Vec<Host> {
    const SPECIAL: [f64; 6] = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, -1e-7];
    let value = |i: usize| {
        let (v, special) = (whole(i, 50, seed), whole(i, 12, seed + 1) as usize);
        let v = if dtype.is_float() || dtype.is_signed() { v - 25.0 } else { v };
        match SPECIAL.get(special) {
            Some(&special) if dtype.is_float() => special,
            _ => v,
        }
    };
    vec![Host::from_fn(Aval::new(shape, dtype), |i| Number::of(dtype, value(i), 0.0))]
}

/// NaN is last, and what is equal stays in order.
pub fn reference(s: &Sort, x: &Host, out: &Aval) -> Host {
    lanes(x, s.axis, out, |lane| {
        let mut order: Vec<usize> = (0..lane.len()).collect();
        order.sort_by(|&i, &j| compare(lane[i], lane[j]));
        let kept = match s.part {
            SortPart::Range { start, count } => &order[start..start + count],
            // The whole order is one of the partitions; no sample is of others.
            SortPart::Whole | SortPart::Around(_) => &order[..],
        };
        kept.iter().map(|&i| if s.indices { Number::count(i) } else { lane[i] }).collect()
    })
}

fn compare(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (Int(a), Int(b)) => a.cmp(&b),
        (a, b) => {
            let order = a.float().partial_cmp(&b.float());
            order.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
    }
}
