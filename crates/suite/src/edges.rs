//! What is easily lost: zeros with a sign, infinities and NaN, and the largest and least integers.

use cupola_core::prim::Op;
use cupola_core::{Aval, DType, Kind};

use crate::host::Host;
use crate::number::Number;
use crate::sample::{Accuracy, Input, Sample, from};

/// The floats.
pub const EDGES: [f64; 9] =
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
/// How many they are.
pub const COUNT: usize = EDGES.len();

/// Those whose sums are exact in f64.
pub const INTEGERS: [DType; 6] =
    [DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32];

/// What is near the ends of an integer dtype, and near 0.
pub fn ends(dtype: DType) -> Vec<f64> {
    let bits = 8 * dtype.size() as i32;
    if dtype.is_signed() {
        let most = 2f64.powi(bits - 1);
        return vec![0.0, 1.0, -1.0, 5.0, -7.0, most - 1.0, most - 2.0, -most, 1.0 - most];
    }
    let most = 2f64.powi(bits) - 1.0;
    vec![0.0, 1.0, 2.0, 5.0, 7.0, most, most - 1.0]
}

/// Every value in a row.
pub fn row(values: &[f64]) -> Vec<Input> {
    let values = values.to_vec();
    vec![from([values.len()], move |i| values[i % values.len()])]
}

/// Every value with every other.
pub fn pairs(values: &[f64]) -> Vec<Input> {
    let (rows, columns, count) = (values.to_vec(), values.to_vec(), values.len());
    vec![
        from([count, count], move |i| rows[i / count % count]),
        from([count, count], move |i| columns[i % count]),
    ]
}

/// Rows of edges, a few of them without NaN.
pub fn rows() -> Vec<Input> {
    vec![from([COUNT, COUNT], |i| {
        let (row, column) = (i / COUNT, i % COUNT);
        let edge = EDGES[(column * (row + 1)) % COUNT];
        if edge.is_nan() && row % 2 == 0 { 0.25 } else { edge }
    })]
}

/// `op` in the dtypes that `takes` says.
pub fn of_op(
    op: impl Into<Op>,
    of: &str,
    inputs: Vec<Input>,
    takes: impl Fn(DType) -> bool + 'static,
) -> Sample {
    let op = op.into();
    Sample::new(format!("{} {of}", op.name()), move |_| op.clone(), inputs).only(takes)
}

/// Numbers worth a test, of every size that `dtype` has.
fn worth(dtype: DType) -> Vec<Number> {
    let numbers: Vec<Number> = match dtype.kind() {
        Kind::Bool => vec![Number::Int(0), Number::Int(1)],
        Kind::Integer => {
            let mut v: Vec<i128> = (-9..20).collect();
            for n in [7, 8, 15, 16, 31, 32, 63, 64] {
                v.extend([(1 << n) - 1, 1 << n, -(1 << n), 1 - (1 << n)]);
            }
            v.into_iter().map(Number::Int).collect()
        }
        Kind::Float => {
            let mut v = vec![0.0, 1.0, 0.5, 1.5, 2.0, 2.5, 3.0, 10.0, 88.0, 104.5, 710.0, 1e-3];
            v.extend([1e-7, 1e-40, 1e-300, 65504.0, 65520.0, 1e10, 3e38, 1e300, 300.7, 0.3]);
            v.extend([f64::INFINITY, 255.9, 256.0, 127.5, 1e19, 4e9, 0.99999, 7.75]);
            let negative: Vec<f64> = v.iter().map(|x| -x).collect();
            v.extend(negative);
            v.push(f64::NAN);
            v.into_iter().map(Number::Float).collect()
        }
        Kind::Complex => {
            // Squares of the least and the largest fit.
            let (least, most) = if dtype == DType::C32 { (0.0625, 48.0) } else { (1e-20, 1e15) };
            let v = [0.0, 1.0, -2.5, 3.25, least, most, -7.0];
            v.iter().flat_map(|&re| v.map(|im| Number::of(dtype, re, im))).collect()
        }
    };
    numbers.into_iter().map(|v| v.fit(dtype)).collect()
}

/// Every number worth a test with every other.
pub fn every_two(dtype: DType) -> [Host; 2] {
    let (v, count) = (worth(dtype), worth(dtype).len());
    let aval = Aval::new([count * count], dtype);
    [1, count].map(|step| Host::from_fn(aval.clone(), |i| v[i / step % count]))
}

/// `op` of every number worth a test, or of every two, to so many units in the last place. GPUs,
/// which promise less of the largest and the smallest, have tests of their functions.
pub fn of_numbers(op: impl Into<Op>, operands: usize, limit: fn(DType) -> f64) -> Vec<Sample> {
    let op = op.into();
    let sample = |dtype: DType| {
        let (own, name) = (op.clone(), format!("{} of {dtype} numbers", op.name()));
        let inputs = move |_| {
            if operands == 2 {
                return every_two(dtype).into();
            }
            let v = worth(dtype);
            vec![Host { aval: Aval::new([v.len()], dtype), data: v }]
        };
        Sample::of(name, move |_| own.clone(), inputs)
            .within(Accuracy::Ulps(limit(dtype)))
            .only(move |own| own == dtype)
            .where_kernels_are_cheap()
    };
    DType::ALL.map(sample).into()
}
