//! Selection by a condition.

use cupola_core::prim::Select;
use cupola_core::{Aval, DType};

use crate::edges::{COUNT, EDGES, every_two, of_op, pairs};
use crate::host::Host;
use crate::number::Number;
use crate::sample::{Accuracy, Sample, fixed, from, input, spread};

pub fn samples() -> Vec<Sample> {
    let condition = fixed([3, 5], DType::Bool, |i| (i % 3 == 0) as u8 as f64);
    let inputs = vec![condition, input([3, 5]), from([3, 5], |i| spread(i + 40))];
    let mut edges = pairs(&EDGES);
    edges.insert(0, fixed([COUNT, COUNT], DType::Bool, |i| (i % 2) as f64));
    vec![
        Sample::new("select", |_| Select.into(), inputs).smooth(),
        of_op(Select, "of edges", edges, DType::is_inexact),
        Sample::of(
            "select of numbers",
            |_| Select.into(),
            |dtype| {
                let [a, b] = every_two(dtype);
                let aval = Aval { dtype: DType::Bool, ..a.aval.clone() };
                vec![Host::from_fn(aval, |i| Number::truth(i % 3 == 0)), a, b]
            },
        )
        .within(Accuracy::Exact)
        .where_kernels_are_cheap(),
    ]
}

pub fn reference(inputs: &[Host], out: &Aval) -> Host {
    let chosen = |i: usize| if inputs[0].data[i].is_true() { 1 } else { 2 };
    Host::from_fn(out.clone(), |i| inputs[chosen(i)].data[i])
}
