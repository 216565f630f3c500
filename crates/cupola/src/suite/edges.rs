//! Samples of what is easily lost: zeros with a sign, infinities and NaN, and the largest and least
//! integers.

use cupola_core::DType;
use cupola_core::prim::{
    ArgReduce, Binary, Cast, Compare, Op, Reduce, ReduceKind, Scan, ScanKind, Select, Sort, Unary,
};

use super::family::Family;
use super::samples::{Input, Sample, dims, fixed, from};

const EDGES: [f64; 9] =
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
const COUNT: usize = EDGES.len();

/// Those whose sums are exact in f64.
const INTEGERS: [DType; 6] = [DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32];

/// What is near the ends of an integer dtype, and near 0.
fn ends(dtype: DType) -> Vec<f64> {
    let bits = 8 * dtype.size() as i32;
    if dtype.is_signed() {
        let most = 2f64.powi(bits - 1);
        return vec![0.0, 1.0, -1.0, 5.0, -7.0, most - 1.0, most - 2.0, -most, 1.0 - most];
    }
    let most = 2f64.powi(bits) - 1.0;
    vec![0.0, 1.0, 2.0, 5.0, 7.0, most, most - 1.0]
}

/// Every value in a row.
fn row(values: &[f64]) -> Vec<Input> {
    let values = values.to_vec();
    vec![from([values.len()], move |i| values[i % values.len()])]
}

/// Every value with every other.
fn pairs(values: &[f64]) -> Vec<Input> {
    let (rows, columns, count) = (values.to_vec(), values.to_vec(), values.len());
    vec![
        from([count, count], move |i| rows[i / count % count]),
        from([count, count], move |i| columns[i % count]),
    ]
}

/// Rows of edges, a few of them without NaN.
fn rows() -> Vec<Input> {
    vec![from([COUNT, COUNT], |i| {
        let (row, column) = (i / COUNT, i % COUNT);
        let edge = EDGES[(column * (row + 1)) % COUNT];
        if edge.is_nan() && row % 2 == 0 { 0.25 } else { edge }
    })]
}

/// `op` in the dtypes that `takes` says.
fn sample(
    op: impl Into<Op>,
    of: &str,
    inputs: Vec<Input>,
    takes: impl Fn(DType) -> bool + 'static,
) -> Sample {
    let op = op.into();
    Sample::new(format!("{} {of}", op.name()), move |_| op.clone(), inputs).only(takes)
}

/// The samples of `family`.
pub fn edges(family: Family) -> Vec<Sample> {
    let mut all = of_floats(family);
    all.extend(INTEGERS.iter().flat_map(|&dtype| of_integers(family, dtype)));
    all
}

fn of_integers(family: Family, dtype: DType) -> Vec<Sample> {
    let (ends, of) = (ends(dtype), format!("of extreme {dtype}"));
    let only = move |own| own == dtype;
    match family {
        Family::Unary => [Unary::Neg, Unary::Abs, Unary::Sign, Unary::Invert]
            .map(|f| sample(f, &of, row(&ends), only))
            .into(),
        Family::Binary => (Binary::ALL.iter())
            // Products of 32 bits are not exact in f64.
            .filter(|&&f| !matches!(f, Binary::Mul | Binary::Power))
            .map(|&f| sample(f, &of, pairs(&ends), only))
            .collect(),
        Family::Compare => {
            Compare::ALL.iter().map(|&f| sample(f, &of, pairs(&ends), only)).collect()
        }
        _ => Vec::new(),
    }
}

fn of_floats(family: Family) -> Vec<Sample> {
    let of = "of edges";
    let (floats, inexact) = (DType::is_float, DType::is_inexact);
    match family {
        Family::Unary => Unary::ALL.iter().map(|&f| sample(f, of, row(&EDGES), floats)).collect(),
        Family::Binary => {
            Binary::ALL.iter().map(|&f| sample(f, of, pairs(&EDGES), floats)).collect()
        }
        Family::Compare => {
            Compare::ALL.iter().map(|&f| sample(f, of, pairs(&EDGES), inexact)).collect()
        }
        Family::Select => {
            let mut inputs = pairs(&EDGES);
            inputs.insert(0, fixed([COUNT, COUNT], DType::Bool, |i| (i % 2) as f64));
            vec![sample(Select, of, inputs, inexact)]
        }
        Family::Cast => (DType::ALL.iter())
            .map(|&to| {
                let real = move |from: DType| {
                    from.is_float() || from.is_inexact() && matches!(to, DType::Bool | DType::C64)
                };
                sample(Cast { to }, &format!("of edges to {to}"), row(&EDGES), real)
            })
            .collect(),
        Family::Reduce => (ReduceKind::ALL.iter())
            .flat_map(|&kind| [0, 1].map(|axis| (Reduce { kind, axes: dims(&[axis]) }, axis)))
            .map(|(op, axis)| sample(op, &format!("of edges over {axis}"), rows(), floats))
            .collect(),
        Family::ArgReduce => [(true, 0), (false, 1)]
            .map(|(max, axis)| sample(ArgReduce { max, axis }, of, rows(), floats))
            .into(),
        Family::Scan => (ScanKind::ALL.iter())
            .flat_map(|&kind| [(kind, 0, false), (kind, 1, true)])
            .map(|(kind, axis, reverse)| {
                let op = Scan { kind, axis, reverse, exclusive: false };
                sample(op, &format!("of edges along {axis}"), rows(), floats)
            })
            .collect(),
        Family::Sort => [(0, false), (1, true)]
            .map(|(axis, indices)| sample(Sort { axis, indices }, of, rows(), floats))
            .into(),
        // What is left has neither arithmetic nor an order of its own.
        _ => Vec::new(),
    }
}
