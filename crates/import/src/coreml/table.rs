//! Operators by name, and the functions that record them.

use super::node::{Node, Outcome};
use super::ops;
use crate::error::Fault;

/// Records an operator.
pub type Apply = fn(&Node<'_>) -> Outcome;

/// An operator: its name and its function.
pub type Entry = (&'static str, Apply);

/// The families of operators.
const FAMILIES: &[&[Entry]] = &[
    ops::activation::OPS,
    ops::attention::OPS,
    ops::binary::OPS,
    ops::classify::OPS,
    ops::compressed::OPS,
    ops::control::OPS,
    ops::convolution::OPS,
    ops::create::OPS,
    ops::gather::OPS,
    ops::image::OPS,
    ops::linear::OPS,
    ops::list::OPS,
    ops::movement::OPS,
    ops::norm::OPS,
    ops::pool::OPS,
    ops::quantize::OPS,
    ops::random::OPS,
    ops::recurrent::OPS,
    ops::reduction::OPS,
    ops::region::OPS,
    ops::slice::OPS,
    ops::sort::OPS,
    ops::state::OPS,
    ops::unary::OPS,
];

/// The function of an operator. Operators have one name in all versions of the specification.
pub fn find(name: &str) -> Result<Apply, Fault> {
    let found = FAMILIES.iter().copied().flatten().find(|(known, _)| *known == name);
    match found {
        Some((_, apply)) => Ok(*apply),
        None => Err(Fault::unsupported(format!("the operator {name} is not read"))),
    }
}

/// Whether an operator gives other numbers each time.
pub fn is_random(name: &str) -> bool {
    ops::random::OPS.iter().any(|(random, _)| *random == name)
}

/// The operators that are read.
pub fn operators() -> Vec<&'static str> {
    let mut out: Vec<&str> = FAMILIES.iter().copied().flatten().map(|(name, _)| *name).collect();
    out.sort_unstable();
    out
}
