//! Samples of what is easily lost: zeros with a sign, infinities and NaN, and the largest and least
//! integers.

use cupola_core::DType;
use cupola_core::prim::{
    ArgReduce, Binary, Cast, Compare, Reduce, ReduceKind, Scan, ScanKind, Select, Sort, Unary,
};

use super::family::Family;
use super::samples::{Input, Sample, dims, fixed, from};

const EDGES: [f64; 9] =
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
const COUNT: usize = EDGES.len();

/// Every edge in a row.
fn row() -> Input {
    from([COUNT], |i| EDGES[i % COUNT])
}

/// Every edge with every other.
fn pairs() -> Vec<Input> {
    let shape = [COUNT, COUNT];
    vec![from(shape, |i| EDGES[i / COUNT % COUNT]), from(shape, |i| EDGES[i % COUNT])]
}

/// Rows of edges, a few of them without NaN.
fn rows() -> Input {
    from([COUNT, COUNT], |i| {
        let (row, column) = (i / COUNT, i % COUNT);
        let edge = EDGES[(column * (row + 1)) % COUNT];
        if edge.is_nan() && row % 2 == 0 { 0.25 } else { edge }
    })
}

/// The samples of `family`.
pub fn edges(family: Family) -> Vec<Sample> {
    let mut all = of_floats(family);
    all.extend(INTEGERS.iter().flat_map(|&dtype| of_integers(family, dtype)));
    all
}

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

fn of_integers(family: Family, dtype: DType) -> Vec<Sample> {
    let ends = ends(dtype);
    let count = ends.len();
    let one = {
        let ends = ends.clone();
        move || {
            let ends = ends.clone();
            vec![from([count], move |i| ends[i % count])]
        }
    };
    let pairs = move || {
        let (rows, columns) = (ends.clone(), ends.clone());
        let shape = [count, count];
        vec![
            from(shape, move |i| rows[i / count % count]),
            from(shape, move |i| columns[i % count]),
        ]
    };
    let only = move |sample: Sample| sample.only(move |own| own == dtype);
    let name = |op: &str| format!("{op} of extreme {dtype}");
    match family {
        Family::Unary => [Unary::Neg, Unary::Abs, Unary::Sign, Unary::Invert]
            .into_iter()
            .map(|f| only(Sample::new(name(f.name()), move |_| f.into(), one())))
            .collect(),
        Family::Binary => (Binary::ALL.iter())
            // Products of 32 bits are not exact in f64.
            .filter(|&&f| !matches!(f, Binary::Mul | Binary::Power))
            .map(|&f| only(Sample::new(name(f.name()), move |_| f.into(), pairs())))
            .collect(),
        Family::Compare => (Compare::ALL.iter())
            .map(|&f| only(Sample::new(name(f.name()), move |_| f.into(), pairs())))
            .collect(),
        _ => Vec::new(),
    }
}

fn of_floats(family: Family) -> Vec<Sample> {
    let floats = |dtype: DType| dtype.is_float();
    match family {
        Family::Unary => (Unary::ALL.iter())
            .map(|&f| {
                let name = format!("{} of edges", f.name());
                Sample::new(name, move |_| f.into(), vec![row()]).only(floats)
            })
            .collect(),
        Family::Binary => (Binary::ALL.iter())
            .map(|&f| {
                let name = format!("{} of edges", f.name());
                Sample::new(name, move |_| f.into(), pairs()).only(floats)
            })
            .collect(),
        Family::Compare => (Compare::ALL.iter())
            .map(|&f| {
                let name = format!("{} of edges", f.name());
                Sample::new(name, move |_| f.into(), pairs()).only(DType::is_inexact)
            })
            .collect(),
        Family::Select => {
            let choice = fixed([COUNT, COUNT], DType::Bool, |i| (i % 2) as f64);
            let inputs = [vec![choice], pairs()].into_iter().flatten().collect();
            vec![Sample::new("select of edges", |_| Select.into(), inputs).only(DType::is_inexact)]
        }
        Family::Cast => (DType::ALL.iter())
            .map(|&to| {
                let name = format!("edges to {to}");
                let real = move |from: DType| {
                    from.is_float() || from.is_inexact() && matches!(to, DType::Bool | DType::C64)
                };
                Sample::new(name, move |_| Cast { to }.into(), vec![row()]).only(real)
            })
            .collect(),
        Family::Reduce => (ReduceKind::ALL.iter())
            .flat_map(|&kind| {
                [0, 1].map(|axis| {
                    let op = Reduce { kind, axes: dims(&[axis]) };
                    let name = format!("{} of edges over {axis}", kind.name());
                    Sample::new(name, move |_| op.clone().into(), vec![rows()]).only(floats)
                })
            })
            .collect(),
        Family::ArgReduce => [(true, 0), (false, 1)]
            .into_iter()
            .map(|(max, axis)| {
                let op = ArgReduce { max, axis };
                let name = format!("{} of edges axis {axis}", op.name());
                Sample::new(name, move |_| op.into(), vec![rows()]).only(floats)
            })
            .collect(),
        Family::Scan => (ScanKind::ALL.iter())
            .flat_map(|&kind| {
                [(0, false), (1, true)].map(|(axis, reverse)| {
                    let op = Scan { kind, axis, reverse, exclusive: false };
                    let name = format!("{} of edges along {axis}", kind.name());
                    Sample::new(name, move |_| op.into(), vec![rows()]).only(floats)
                })
            })
            .collect(),
        Family::Sort => [(0, false), (1, true)]
            .into_iter()
            .map(|(axis, indices)| {
                let op = Sort { axis, indices };
                let name = format!("{} of edges axis {axis}", op.name());
                Sample::new(name, move |_| op.into(), vec![rows()]).only(floats)
            })
            .collect(),
        // What is left has neither arithmetic nor an order of its own.
        _ => Vec::new(),
    }
}
