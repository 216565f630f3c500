//! Matrix products.

use cupola_core::prim::{Binary, Dot};
use cupola_core::{Aval, DType, Shape};

use crate::binary::number;
use crate::host::Host;
use crate::number::identity;
use crate::sample::{Accuracy, Sample, from, input, numbers, spread, whole};

pub fn samples() -> Vec<Sample> {
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[4, 3], &[3, 5]),
        (&[1, 7], &[7, 6]),
        (&[5, 4], &[4, 1]),
        (&[3, 0], &[0, 2]),
        (&[17, 33], &[33, 19]),
        (&[2, 3, 4, 5], &[2, 3, 5, 2]),
    ];
    let sample = |(a, b)| {
        let (a, b) = (Shape::from(a), Shape::from(b));
        let name = format!("{a} by {b}");
        let inputs = vec![input(a), from(b, |i| spread(i + 11))];
        Sample::new(name, |d| Dot::of(d).into(), inputs).smooth()
    };
    let mut all: Vec<Sample> = shapes.into_iter().map(sample).collect();
    let small: [(&[usize], &[usize]); 2] = [(&[2, 3], &[3, 4]), (&[2, 2, 3], &[2, 3, 1])];
    all.extend(small.into_iter().map(sample).map(Sample::where_kernels_are_cheap));
    for (shape, columns) in WHOLE {
        let name = format!("whole numbers {shape:?} to {columns}");
        let sample = of_whole(&name, shape, columns, None, Dot::of);
        all.push(if shape.len() == 4 { sample } else { sample.where_kernels_are_cheap() });
    }
    let wide = [
        (DType::BF16, DType::F32, DType::F32),
        (DType::F16, DType::F16, DType::F16),
        (DType::F32, DType::F64, DType::F32),
        (DType::I8, DType::I32, DType::I32),
        (DType::U8, DType::I32, DType::F32),
        (DType::F32, DType::F32, DType::BF16),
    ];
    for (dtype, accumulate, result) in wide {
        let name = format!("{dtype} summed in {accumulate} to {result}");
        let op = move |_| Dot { accumulate, result, ..Dot::of(DType::F32) };
        all.push(of_whole(&name, &[3, 4], 5, Some(dtype), op).where_kernels_are_cheap());
    }
    // A sum that float32 would round.
    let op = |_| Dot { accumulate: DType::F64, ..Dot::of(DType::F32) }.into();
    let inputs = vec![numbers([1, 3], &[16_777_216.0, 1.0, 1.0]), from([3, 1], |_| 1.0)];
    let exact = Sample::new("float32 that only float64 sums", op, inputs);
    let exact = exact.within(Accuracy::Exact).only(|dtype| dtype == DType::F32);
    all.push(exact.where_kernels_are_cheap());
    all
}

const WHOLE: [(&[usize], usize); 8] = [
    (&[3, 4], 5),
    (&[1, 7], 3),
    (&[5, 6], 1),
    (&[2, 3, 4, 5], 6),
    (&[2, 1, 17], 1),
    (&[3, 0], 2),
    (&[0, 3], 2),
    (&[0, 2, 3], 2),
];

/// A product whose sums no dtype rounds, of an array of `shape` with one of as many columns; in one
/// dtype or in every.
fn of_whole(
    name: &str,
    shape: &[usize],
    columns: usize,
    dtype: Option<DType>,
    op: impl Fn(DType) -> Dot + 'static,
) -> Sample {
    let (rank, below) = (shape.len(), if dtype.is_some() { 9 } else { 3 });
    let mut other = shape.to_vec();
    other[rank - 2..].copy_from_slice(&[shape[rank - 1], columns]);
    let inputs = vec![
        from(shape, move |i| whole(i, below, 1)),
        from(&other[..], move |i| whole(i, below, 2)),
    ];
    Sample::new(name, move |d| op(d).into(), inputs)
        .within(Accuracy::Exact)
        .only(move |own| own != DType::Bool && dtype.is_none_or(|d| d == own))
}

pub fn reference(a: &Host, b: &Host, out: &Aval) -> Host {
    let (rank, dtype) = (out.shape.rank(), a.aval.dtype);
    Host::by_index(out, |index| {
        let (mut left, mut right) = (index.to_vec(), index.to_vec());
        (0..a.aval.shape[rank - 1]).fold(identity(Binary::Add, dtype), |sum, k| {
            (left[rank - 1], right[rank - 2]) = (k, k);
            let product = number(Binary::Mul, a.at(&left), b.at(&right), dtype);
            number(Binary::Add, sum, product, dtype)
        })
    })
}
