//! Where an axis has its extreme value.

use cupola_core::prim::ArgReduce;
use cupola_core::{Aval, DType};

use crate::edges::{of_op, rows};
use crate::host::{Host, lanes};
use crate::number::Number::{self, Int};
use crate::sample::{Accuracy, Sample, input};
use crate::sort::{LANES, ordered};

pub fn samples() -> Vec<Sample> {
    let ordinary = [(true, 0), (true, 2), (false, 1)].map(|(max, axis)| {
        let op = ArgReduce { max, axis };
        let name = format!("{} axis {axis}", op.name());
        Sample::new(name, move |_| op.into(), vec![input([3, 4, 5])])
    });
    let edges = [(true, 0), (false, 1)]
        .map(|(max, axis)| of_op(ArgReduce { max, axis }, "of edges", rows(), DType::is_float));
    let mut all: Vec<Sample> = ordinary.into_iter().chain(edges).collect();
    for (shape, axis) in LANES.into_iter().chain([
        (&[2, 900, 3][..], 1),
        (&[5, 2000][..], 1),
        (&[30_001][..], 0),
        (&[2, 9001, 2][..], 1),
    ]) {
        for max in [false, true] {
            let op = ArgReduce { max, axis };
            let name = format!("{} of {shape:?} along {axis}", op.name());
            let sample =
                Sample::of(name, move |_| op.into(), move |dtype| ordered(shape, dtype, 5));
            let sample = sample.within(Accuracy::Exact);
            let long = shape.iter().product::<usize>() > 100;
            all.push(if long { sample.where_kernels_are_cheap() } else { sample });
        }
    }
    for max in [false, true] {
        let op = ArgReduce { max, axis: 0 };
        let far = |_| {
            let (least, most) = (i64::MIN.into(), i64::MAX.into());
            let data = [3, least, most, most - 1, least].map(Int).to_vec();
            vec![Host { aval: Aval::new([5], DType::I64), data }]
        };
        let name = format!("{} of extreme int64", op.name());
        all.push(Sample::of(name, move |_| op.into(), far).only(|dtype| dtype == DType::I64));
    }
    all
}

pub fn reference(a: &ArgReduce, x: &Host, out: &Aval) -> Host {
    lanes(x, a.axis, out, |lane| {
        let beyond = |x: Number, y: Number| match (x, y) {
            (Int(x), Int(y)) => {
                if a.max {
                    x > y
                } else {
                    x < y
                }
            }
            (x, y) if x.is_nan() || y.is_nan() => x.is_nan() && !y.is_nan(),
            (x, y) => {
                if a.max {
                    x.float() > y.float()
                } else {
                    x.float() < y.float()
                }
            }
        };
        let first = |best: usize, i| if beyond(lane[i], lane[best]) { i } else { best };
        vec![Number::count((1..lane.len()).fold(0, first))]
    })
}
