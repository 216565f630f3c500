//! Lists of tensors. Their places are known while a program is recorded.

use std::sync::Arc;

use super::super::value::{List, Tensor};
use super::prelude::*;
use crate::limits::MOST_ITEMS;

fn list<'n>(n: &'n Node<'_>) -> Result<&'n List, Fault> {
    match n.value("ls")? {
        Value::List(list) => Ok(list),
        other => Err(Fault::invalid(format!("{} stands for a list", other.kind()))),
    }
}

fn make_list(n: &Node<'_>) -> Outcome {
    let count = numbers::count(n.int_or("init_length", 1)?)?;
    if count > MOST_ITEMS {
        return Err(Fault::invalid(format!("a list of {count} elements")));
    }
    // A size that is a text is open.
    let shape = match n.values("elem_shape") {
        [] => None,
        values if values.iter().any(|v| matches!(v, Value::Text(_) | Value::Texts(_))) => None,
        _ => n.maybe_counts("elem_shape")?,
    };
    let dtype = n.element("dtype")?.map_or(DType::F32, |element| element.dtype);
    let grows = n.flag("dynamic_length", true)?;
    let items = vec![None; count];
    Ok(vec![Value::List(Arc::new(List { items, shape, dtype, grows }))])
}

fn length(n: &Node<'_>) -> Outcome {
    let count = list(n)?.items.len();
    Ok(vec![Tensor::known(&[count as i32], ())?.into()])
}

/// A list with an element written.
fn written(list: &mut List, at: i64, value: Tensor) -> Result<(), Fault> {
    let count = list.items.len();
    let place = usize::try_from(at).ok().filter(|&at| at < count || list.grows && at < MOST_ITEMS);
    let place =
        place.ok_or_else(|| Fault::invalid(format!("the element {at} of a list of {count}")))?;
    if place >= count {
        list.items.resize(place + 1, None);
    }
    list.items[place] = Some(value);
    Ok(())
}

fn write(n: &Node<'_>) -> Outcome {
    let mut list = list(n)?.clone();
    written(&mut list, n.int("index")?, n.tensor("value")?.clone())?;
    Ok(vec![Value::List(Arc::new(list))])
}

fn read(n: &Node<'_>) -> Outcome {
    let at = numbers::count(n.int("index")?)?;
    Ok(vec![list(n)?.item(at)?.into()])
}

fn gather(n: &Node<'_>) -> Outcome {
    let list = list(n)?;
    let items = numbers::counts(&n.ints("indices")?)?;
    let items = items.into_iter().map(|at| list.item(at)).collect::<Result<Vec<_>, _>>()?;
    let arrays: Vec<&Array> = items.iter().map(|item| &item.array).collect();
    match arrays.is_empty() {
        true => {
            let mut sizes = list.shape.clone().unwrap_or_default();
            sizes.insert(0, 0);
            one(ops::zeros(sizes, list.dtype)?)
        }
        false => one(ops::stack(&arrays, 0)?),
    }
}

fn scatter(n: &Node<'_>) -> Outcome {
    let mut list = list(n)?.clone();
    let (indices, value) = (n.ints("indices")?, n.x("value")?);
    if value.shape().first() != Some(&indices.len()) {
        let shape = value.shape();
        return Err(Fault::invalid(format!("{} indices for values {shape}", indices.len())));
    }
    for (&at, array) in indices.iter().zip(ops::unstack(value, 0)?) {
        written(&mut list, at, Tensor { array, folded: false })?;
    }
    Ok(vec![Value::List(Arc::new(list))])
}

pub const OPS: &[Entry] = &[
    ("list_gather", gather),
    ("list_length", length),
    ("list_read", read),
    ("list_scatter", scatter),
    ("list_write", write),
    ("make_list", make_list),
];
