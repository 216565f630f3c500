//! Operators by name: from which version each is read, and the function that records it.

use super::error::Fault;
use super::node::{Node, Outcome};
use super::ops;

/// Records an operator.
pub type Apply = fn(&Node<'_>) -> Outcome;

/// An operator: its name, the least version that is read, and its function.
pub type Entry = (&'static str, i64, Apply);

/// The families of operators of the standard domain.
const FAMILIES: &[&[Entry]] = &[
    ops::activation::OPS,
    ops::attention::OPS,
    ops::binary::OPS,
    ops::cast::OPS,
    ops::control::OPS,
    ops::convolution::OPS,
    ops::create::OPS,
    ops::gather::OPS,
    ops::image::OPS,
    ops::linear::OPS,
    ops::logic::OPS,
    ops::loss::OPS,
    ops::movement::OPS,
    ops::norm::OPS,
    ops::pad::OPS,
    ops::pool::OPS,
    ops::quantize::OPS,
    ops::random::OPS,
    ops::recurrent::OPS,
    ops::reduction::OPS,
    ops::region::OPS,
    ops::resize::OPS,
    ops::scan::OPS,
    ops::sequence::OPS,
    ops::signal::OPS,
    ops::sort::OPS,
    ops::state::OPS,
    ops::unary::OPS,
];

/// The operators of `ai.onnx.preview`.
const PREVIEW: &[&[Entry]] = &[ops::flex::OPS];

fn families(domain: &str) -> &'static [&'static [Entry]] {
    match domain {
        "" => FAMILIES,
        "ai.onnx.preview" => PREVIEW,
        _ => &[],
    }
}

/// The function of an operator in a version of its domain.
pub fn find(domain: &str, name: &str, version: i64) -> Result<Apply, Fault> {
    let found = families(domain).iter().copied().flatten().find(|(n, _, _)| *n == name);
    let shown = if domain.is_empty() { name.to_owned() } else { format!("{domain}.{name}") };
    match found {
        Some((_, since, apply)) if *since <= version => Ok(*apply),
        Some((_, since, _)) => Err(Fault::unsupported(format!(
            "the operator {shown} is read from opset {since}, the model is of {version}"
        ))),
        None => Err(Fault::unsupported(format!("the operator {shown} is not read"))),
    }
}

/// The operators that are read: domain, name and the least version.
pub fn operators() -> Vec<(&'static str, &'static str, i64)> {
    let mut out = Vec::new();
    for domain in ["", "ai.onnx.preview"] {
        let entries = families(domain).iter().copied().flatten();
        out.extend(entries.map(|&(name, since, _)| (domain, name, since)));
    }
    out.sort();
    out
}
