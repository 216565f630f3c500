//! Sorted elements.

use super::prelude::*;
use crate::lowering::movement::part;
use crate::lowering::order::places;

fn argsort(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let axis = n.axis("axis", -1, x.rank())?;
    one(ops::astype(&places(x, axis, !n.flag("ascending", false)?)?, DType::I32)?)
}

fn topk(n: &Node<'_>) -> Outcome {
    let x = n.x("x")?;
    let axis = n.axis("axis", -1, x.rank())?;
    let size = x.shape()[axis];
    // Of -1 all are meant.
    let k = match n.int_or("k", 1)? {
        -1 => size,
        k => numbers::count(k)?,
    };
    if k > size {
        return Err(Fault::invalid(format!("{k} of {size} elements are asked for")));
    }
    let order = part(&places(x, axis, !n.flag("ascending", false)?)?, axis, 0, k)?;
    let mut outputs = vec![ops::take_along_axis(x, &order, axis as isize)?.into()];
    if n.flag("return_indices", true)? {
        let element = n.element("output_indices_dtype")?;
        let dtype = element.map_or(DType::I32, |element| element.dtype);
        outputs.push(ops::astype(&order, dtype)?.into());
    }
    Ok(outputs)
}

pub const OPS: &[Entry] = &[("argsort", argsort), ("topk", topk)];
