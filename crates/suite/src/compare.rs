//! Comparisons.

use cupola_core::prim::Compare;
use cupola_core::{Aval, DType};

use crate::edges::{EDGES, INTEGERS, ends, of_numbers, of_op, pairs};
use crate::host::Host;
use crate::number::Number::{self, Int};
use crate::sample::{Sample, from};

pub fn samples() -> Vec<Sample> {
    let mut all: Vec<Sample> = Compare::ALL.iter().map(|&f| ordinary(f)).collect();
    let inexact = |&f: &Compare| of_op(f, "of edges", pairs(&EDGES), DType::is_inexact);
    all.extend(Compare::ALL.iter().map(inexact));
    for dtype in INTEGERS {
        let of = format!("of extreme {dtype}");
        let sample = |&f: &Compare| of_op(f, &of, pairs(&ends(dtype)), move |own| own == dtype);
        all.extend(Compare::ALL.iter().map(sample));
    }
    all.extend(Compare::ALL.iter().flat_map(|&f| of_numbers(f, 2, |_| 0.0)));
    all
}

fn ordinary(f: Compare) -> Sample {
    let inputs = vec![from([4, 6], |i| (i % 3) as f64), from([4, 6], |i| (i % 2) as f64)];
    Sample::new(f.name(), move |_| f.into(), inputs)
}

pub fn reference(f: Compare, a: &Host, b: &Host, out: &Aval) -> Host {
    Host::from_fn(out.clone(), |i| Number::truth(holds(f, a.data[i], b.data[i])))
}

fn holds(f: Compare, a: Number, b: Number) -> bool {
    let order = match (a, b) {
        (Int(a), Int(b)) => Some(a.cmp(&b)),
        (a, b) => a.float().partial_cmp(&b.float()),
    };
    match f {
        Compare::Eq => a == b,
        Compare::Ne => a != b,
        Compare::Lt => order.is_some_and(|o| o.is_lt()),
        Compare::Le => order.is_some_and(|o| o.is_le()),
        Compare::Gt => order.is_some_and(|o| o.is_gt()),
        Compare::Ge => order.is_some_and(|o| o.is_ge()),
    }
}
