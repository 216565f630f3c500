//! Conversions between dtypes, of values and of bytes.

use cupola_core::prim::{Bitcast, Cast};
use cupola_core::{Array, Aval, DType};

use crate::edges::{EDGES, of_numbers, of_op, row};
use crate::host::Host;
use crate::number::{Number, range};
use crate::sample::{Sample, from, input, spread};

pub fn samples() -> Vec<Sample> {
    let convert = DType::ALL.map(|to| {
        let sample =
            Sample::new(format!("to {to}"), move |_| Cast { to }.into(), vec![input([4, 3])]);
        if to.is_float() { sample.smooth() } else { sample }
    });
    let view = DType::ALL.into_iter().filter(|&to| to != DType::Bool).map(|to| {
        let inputs = vec![from([3, 8], |i| (1 + i % 3) as f64 * 25.0 * spread(i))];
        Sample::new(format!("view as {to}"), move |_| Bitcast { to }.into(), inputs)
    });
    let edges = DType::ALL.map(|to| {
        let real = move |from: DType| {
            from.is_float() || from.is_inexact() && (to == DType::Bool || to.is_complex())
        };
        of_op(Cast { to }, &format!("of edges to {to}"), row(&EDGES), real)
    });
    let numbers = DType::ALL.into_iter().flat_map(|to| {
        of_numbers(Cast { to }, 1, |_| 0.0).into_iter().map(move |sample| {
            let name = format!("{} to {to}", sample.name);
            sample.named(name)
        })
    });
    convert.into_iter().chain(view).chain(edges).chain(numbers).collect()
}

/// A float as an integer: towards zero and saturating, below zero in the signed dtype.
pub fn reference(c: &Cast, x: &Host, out: &Aval) -> Host {
    let saturates = x.aval.dtype.is_inexact() && c.to.is_integer();
    let signed = if c.to == DType::U64 { DType::I64 } else { DType::I32 };
    Host::from_fn(out.clone(), |i| match x.data[i] {
        v if saturates => {
            let v = v.int();
            let (least, largest) = range(if v < 0 && !c.to.is_signed() { signed } else { c.to });
            Number::Int(v.clamp(least, largest))
        }
        v => v,
    })
}

/// Through arrays that lie in host memory: reading and writing their bytes asks no backend.
pub fn bitcast(b: &Bitcast, x: &Host, out: &Aval) -> Option<Host> {
    let bytes = x.to_array().and_then(|x| x.to_bytes()).ok()?;
    let same = Array::from_bytes(&bytes, b.to, out.shape.clone()).ok()?;
    Host::of_array(&same).ok()
}
