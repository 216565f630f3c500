//! Constants and counters.

use cupola_core::prim::{Constant, Iota, Op};
use cupola_core::{Aval, DType, Scalar, Shape};

use crate::host::Host;
use crate::number::Number;
use crate::sample::{Accuracy, Sample};

pub fn samples() -> Vec<Sample> {
    let iota = |axis: usize| {
        Sample::new(
            format!("iota axis {axis}"),
            move |dtype| Iota { shape: Shape::from([3, 4]), dtype, axis }.into(),
            vec![],
        )
    };
    let constant =
        |dtype| Op::from(Constant { value: Scalar::Float(3.0), aval: Aval::new([2, 3], dtype) });
    let mut all = vec![iota(0), iota(1), Sample::new("constant", constant, vec![])];
    let counters: [(&[usize], usize); 7] = [
        (&[5], 0),
        (&[3, 4, 5], 0),
        (&[3, 4, 5], 1),
        (&[3, 4, 5], 2),
        (&[2, 0], 0),
        (&[1], 0),
        (&[40_000], 0),
    ];
    all.extend(counters.map(|(shape, axis)| {
        let op = move |dtype| Iota { shape: Shape::from(shape), dtype, axis }.into();
        Sample::new(format!("iota {shape:?} axis {axis}"), op, vec![])
            .only(|dtype| dtype != DType::Bool)
            .within(Accuracy::Exact)
            .where_kernels_are_cheap()
    }));
    all
}

pub fn constant(c: &Constant, out: &Aval) -> Host {
    Host::from_fn(out.clone(), |_| match c.value {
        Scalar::Complex(re, im) => Number::of(out.dtype, re.into(), im.into()),
        Scalar::Int(value) => Number::Int(value.into()),
        Scalar::Uint(value) => Number::Int(value.into()),
        other => Number::of(out.dtype, other.to_f64(), 0.0),
    })
}

pub fn iota(iota: &Iota, out: &Aval) -> Host {
    Host::by_index(out, |index| Number::count(index[iota.axis]))
}
