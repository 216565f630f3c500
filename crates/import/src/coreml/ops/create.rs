//! Operators that make arrays of numbers.

use super::super::value::Tensor;
use super::prelude::*;

fn filled(n: &Node<'_>, shape: Shape) -> Outcome {
    let value = match n.maybe("value")? {
        Some(value) => ops::reshape(value, ())?,
        None => Array::scalar(0f32),
    };
    shape.checked_size("fill", value.dtype())?;
    one(ops::broadcast_to(&value, shape)?)
}

fn fill(n: &Node<'_>) -> Outcome {
    filled(n, Shape::from(numbers::counts(&n.ints("shape")?)?))
}

fn fill_like(n: &Node<'_>) -> Outcome {
    filled(n, n.x("ref_tensor")?.shape().clone())
}

fn shape(n: &Node<'_>) -> Outcome {
    let sizes = n.x("x")?.shape().clone();
    let wide = |size: &usize| {
        i32::try_from(*size).map_err(|_| Fault::invalid(format!("the size {size} is no int32")))
    };
    let sizes = sizes.iter().map(wide).collect::<Result<Vec<i32>, _>>()?;
    Ok(vec![Tensor::known(&sizes, [sizes.len()])?.into()])
}

fn one_hot(n: &Node<'_>) -> Outcome {
    let indices = n.x("indices")?;
    let depth = n.count("one_hot_vector_size")?;
    let axis = n.axis("axis", -1, indices.rank() + 1)?;
    let value = |name: &str, default: i32| match n.maybe(name)? {
        Some(value) => Ok::<Array, Fault>(ops::reshape(value, ())?),
        None => Ok(Array::scalar(default)),
    };
    let mut sizes = vec![1; indices.rank() + 1];
    sizes[axis] = depth;
    let classes = ops::reshape(&ops::arange_in(0, depth, 1, indices.dtype())?, sizes)?;
    let hot = ops::equal(&ops::expand_dims(indices, axis)?, &classes)?;
    one(ops::where_(&hot, &value("on_value", 1)?, &value("off_value", 0)?)?)
}

fn range_1d(n: &Node<'_>) -> Outcome {
    let dtype = n.x("start")?.dtype();
    if dtype.is_integer() {
        let (start, end, step) = (n.int("start")?, n.int("end")?, n.int("step")?);
        return one(crate::lowering::range::integers(start, end, step, dtype)?);
    }
    let (start, end, step) = (n.float("start")?, n.float("end")?, n.float("step")?);
    one(crate::lowering::range::floats(start, end, step, dtype)?)
}

pub const OPS: &[Entry] = &[
    ("fill", fill),
    ("fill_like", fill_like),
    ("one_hot", one_hot),
    ("range_1d", range_1d),
    ("shape", shape),
];
