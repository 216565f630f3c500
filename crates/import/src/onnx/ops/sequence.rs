//! Sequences and optionals.

use super::super::graph::Attribute;
use super::prelude::*;
use crate::limits::MOST_ITEMS;
use crate::lowering::movement::parts;

/// The values of an input that is a sequence.
fn values<'n>(n: &'n Node<'_>, index: usize) -> Result<&'n [Value], Fault> {
    match n.value(index)? {
        Value::Sequence(values) => Ok(values),
        other => Err(Fault::invalid(format!("input {index} is {}, not a sequence", other.kind()))),
    }
}

/// A place in a sequence, counted from the end where it is below 0; `end` may be one, too.
fn place(n: &Node<'_>, index: usize, size: usize, end: bool) -> Result<usize, Fault> {
    let at = n.need_int(index)?;
    let from = if at < 0 { at.saturating_add(size as i64) } else { at };
    match usize::try_from(from) {
        Ok(from) if from < size || end && from == size => Ok(from),
        _ => Err(Fault::invalid(format!("place {at} of a sequence of {size}"))),
    }
}

fn construct(n: &Node<'_>) -> Outcome {
    let all = (0..n.count()).map(|i| n.value(i).cloned());
    Ok(vec![Value::sequence(all.collect::<Result<_, _>>()?)])
}

fn empty(_: &Node<'_>) -> Outcome {
    Ok(vec![Value::sequence(Vec::new())])
}

fn at(n: &Node<'_>) -> Outcome {
    let values = values(n, 0)?;
    Ok(vec![values[place(n, 1, values.len(), false)?].clone()])
}

fn insert(n: &Node<'_>) -> Outcome {
    let mut values = values(n, 0)?.to_vec();
    let at = match n.maybe(2)? {
        Some(_) => place(n, 2, values.len(), true)?,
        None => values.len(),
    };
    values.insert(at, n.value(1)?.clone());
    Ok(vec![Value::sequence(values)])
}

fn erase(n: &Node<'_>) -> Outcome {
    let mut values = values(n, 0)?.to_vec();
    let at = match n.maybe(1)? {
        Some(_) => place(n, 1, values.len(), false)?,
        None => {
            values.len().checked_sub(1).ok_or_else(|| Fault::invalid("the sequence is empty"))?
        }
    };
    values.remove(at);
    Ok(vec![Value::sequence(values)])
}

fn length(n: &Node<'_>) -> Outcome {
    Ok(vec![Tensor::folded_int(values(n, 0)?.len() as i64)?.into()])
}

fn split_to(n: &Node<'_>) -> Outcome {
    let t = n.tensor(0)?;
    let axis = n.axis("axis", 0, t.array.rank())?;
    let size = t.array.shape()[axis];
    let scalar = n.maybe(1)?.is_some_and(|s| s.rank() == 0);
    let sizes = match n.ints_at(1)? {
        Some(sizes) if !scalar => node::counts(&sizes)?,
        each => {
            let each = each.map_or(1, |each| each.first().copied().unwrap_or(0));
            let each = node::count(each)?.max(1);
            let count = size.div_ceil(each);
            if count > MOST_ITEMS {
                return Err(Fault::invalid(format!("a sequence of {count} parts")));
            }
            (0..count).map(|i| each.min(size - i * each)).collect()
        }
    };
    let drop = n.maybe(1)?.is_none() && !n.flag("keepdims", true)?;
    let mut out = Vec::with_capacity(sizes.len());
    for part in parts(&t.array, axis, &sizes)? {
        let part = if drop { ops::squeeze(&part, axis)? } else { part };
        out.push(Tensor::new(part, t.element)?.into());
    }
    Ok(vec![Value::sequence(out)])
}

fn concat_from(n: &Node<'_>) -> Outcome {
    let values = values(n, 0)?;
    let tensors = values.iter().map(Value::tensor).collect::<Result<Vec<_>, _>>()?;
    let first = tensors.first().ok_or_else(|| Fault::invalid("the sequence is empty"))?;
    let arrays: Vec<&Array> = tensors.iter().map(|t| &t.array).collect();
    let axis = n.need_attribute("axis")?;
    let joined = match n.flag("new_axis", false)? {
        true => ops::stack(&arrays, node::axis(axis, first.array.rank() + 1)? as isize)?,
        false => ops::concatenate(&arrays, node::axis(axis, first.array.rank())?)?,
    };
    Ok(vec![Tensor::new(joined, first.element)?.into()])
}

fn map(n: &Node<'_>) -> Outcome {
    let body = n.graph("body")?;
    let count = values(n, 0)?.len();
    let mut outputs: Vec<Vec<Value>> = vec![Vec::new(); body.outputs.len()];
    for round in 0..count {
        let mut inputs = Vec::with_capacity(n.count());
        for i in 0..n.count() {
            inputs.push(match n.value(i)? {
                Value::Sequence(values) => values.get(round).cloned().ok_or_else(|| {
                    Fault::invalid(format!(
                        "the sequences have {count} and {} values",
                        values.len()
                    ))
                })?,
                other => other.clone(),
            });
        }
        for (list, value) in outputs.iter_mut().zip(n.call(body, inputs)?) {
            list.push(value);
        }
    }
    Ok(outputs.into_iter().map(Value::sequence).collect())
}

fn optional(n: &Node<'_>) -> Outcome {
    match n.inputs.first() {
        Some(Some(value)) => Ok(vec![value.clone()]),
        _ => match n.attribute("type") {
            Some(Attribute::Other) => Ok(vec![Value::Nothing]),
            _ => Err(Fault::invalid("it has neither a value nor a type")),
        },
    }
}

fn get_element(n: &Node<'_>) -> Outcome {
    match n.value(0)? {
        Value::Nothing => Err(Fault::invalid("the optional is empty")),
        value => Ok(vec![value.clone()]),
    }
}

fn has_element(n: &Node<'_>) -> Outcome {
    let there = matches!(n.inputs.first(), Some(Some(Value::Tensor(_) | Value::Sequence(_))));
    one(Array::from_slice(&[there], ())?)
}

pub const OPS: &[Entry] = &[
    ("ConcatFromSequence", 11, concat_from),
    ("Optional", 15, optional),
    ("OptionalGetElement", 15, get_element),
    ("OptionalHasElement", 15, has_element),
    ("SequenceAt", 11, at),
    ("SequenceConstruct", 11, construct),
    ("SequenceEmpty", 11, empty),
    ("SequenceErase", 11, erase),
    ("SequenceInsert", 11, insert),
    ("SequenceLength", 11, length),
    ("SequenceMap", 17, map),
    ("SplitToSequence", 11, split_to),
];
