//! Sorted elements.

use super::prelude::*;
use crate::lowering::movement::{known, part};
use crate::lowering::order::places;

fn top_k(n: &Node<'_>) -> Outcome {
    let t = n.tensor(0)?;
    let x = &t.array;
    let k = match n.version() {
        10.. => n.need_int(1)?,
        _ => n.need_attribute("k")?,
    };
    let k = node::count(k)?;
    let axis = n.axis("axis", -1, x.rank())?;
    let size = x.shape()[axis];
    if k > size {
        return Err(Fault::invalid(format!("{k} of {size} elements are asked for")));
    }
    let order = places(x, axis, n.flag("largest", true)?)?;
    let order = part(&order, axis, 0, k)?;
    let values = ops::take_along_axis(x, &order, axis as isize)?;
    Ok(vec![Tensor::new(values, t.element)?.into(), order.into()])
}

/// A number that is ordered: NaN last.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    fn order(&self, other: &Number) -> std::cmp::Ordering {
        match (self, other) {
            (Number::Float(a), Number::Float(b)) => {
                a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }
            (a, b) => a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal),
        }
    }
}

fn numbers(x: &Array) -> Result<Vec<Number>, Fault> {
    if x.dtype() == DType::U64 {
        return Ok(x.to_vec::<u64>()?.into_iter().map(|v| Number::Int(v.into())).collect());
    }
    match x.dtype().is_float() {
        true => Ok(node::floats(x)?.into_iter().map(Number::Float).collect()),
        false => Ok(node::ints(x)?.into_iter().map(|v| Number::Int(v.into())).collect()),
    }
}

fn order(a: &[Number], b: &[Number]) -> std::cmp::Ordering {
    let pairs = a.iter().zip(b).map(|(a, b)| a.order(b));
    pairs.fold(std::cmp::Ordering::Equal, |known, next| known.then(next))
}

/// What differs along an axis, or in the flattened array. How much that is depends on the values, so
/// they are evaluated.
fn unique(n: &Node<'_>) -> Outcome {
    let t = n.tensor(0)?;
    let (x, axis) = match n.maybe_int("axis")? {
        Some(axis) => (t.array.clone(), node::axis(axis, t.array.rank())?),
        None => (ops::flatten(&t.array, 0, -1)?, 0),
    };
    let count = x.shape()[axis];
    let rows = ops::moveaxis(&x, axis as isize, 0)?;
    let width = rows.size().checked_div(count).unwrap_or(0);
    let values = numbers(&rows)?;
    let row = |i: usize| &values[i * width..(i + 1) * width];
    let mut sorted: Vec<usize> = (0..count).collect();
    sorted.sort_by(|&a, &b| order(row(a), row(b)).then(a.cmp(&b)));
    // Groups of equal rows, each by its first.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in sorted {
        match groups.last_mut() {
            Some(group) if order(row(group[0]), row(at)).is_eq() => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    if !n.flag("sorted", true)? {
        groups.sort_by_key(|group| group[0]);
    }
    let firsts: Vec<i64> = groups.iter().map(|g| g[0] as i64).collect();
    let counts: Vec<i64> = groups.iter().map(|g| g.len() as i64).collect();
    let mut inverse = vec![0i64; count];
    for (number, group) in (0i64..).zip(&groups) {
        group.iter().for_each(|&at| inverse[at] = number);
    }
    let firsts = known(&firsts)?;
    let made = ops::take(&x, &firsts, axis as isize)?;
    let values = Tensor::new(made, t.element)?.into();
    Ok(vec![values, firsts.into(), known(&inverse)?.into(), known(&counts)?.into()])
}

pub const OPS: &[Entry] = &[("TopK", 1, top_k), ("Unique", 11, unique)];
