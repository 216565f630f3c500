//! Operators that make arrays of numbers.

use super::super::graph::Attribute;
use super::prelude::*;
use crate::lowering::movement::parts;
use crate::lowering::range;

fn constant(n: &Node<'_>) -> Outcome {
    let Some((name, _)) = n.step.attributes.first() else {
        return Err(Fault::invalid("a constant has no value"));
    };
    Ok(vec![match n.attribute(name) {
        Some(Attribute::Tensor(tensor)) => tensor.clone().into(),
        Some(Attribute::Float(value)) => Array::scalar(*value).into(),
        Some(Attribute::Int(value)) => Array::scalar(*value).into(),
        Some(Attribute::Floats(values)) => Array::from_slice(values, [values.len()])?.into(),
        Some(Attribute::Ints(values)) => Array::from_slice(values, [values.len()])?.into(),
        Some(_) => return Err(Fault::unsupported(format!("constants of '{name}' are not read"))),
        None => return Err(Fault::invalid(format!("'{name}' of the function is not given"))),
    }])
}

fn constant_of_shape(n: &Node<'_>) -> Outcome {
    let shape = Shape::from(node::counts(&n.need_ints(0)?)?);
    let (value, element) = match n.attribute("value") {
        Some(Attribute::Tensor(tensor)) => (ops::reshape(&tensor.array, ())?, tensor.element),
        None => (Array::scalar(0f32), Element::Float),
        Some(_) => return Err(Fault::invalid("the value is not a tensor")),
    };
    shape.checked_size("ConstantOfShape", value.dtype())?;
    Ok(vec![Tensor::new(ops::broadcast_to(&value, shape)?, element)?.into()])
}

fn eye_like(n: &Node<'_>) -> Outcome {
    let t = n.tensor(0)?;
    let element = n.element("dtype")?.unwrap_or(t.element);
    let [rows, columns] = t.array.shape()[..] else {
        return Err(Fault::invalid(format!("{} is no matrix", t.array.shape())));
    };
    let offset = n.int("k", 0)?.clamp(-(1 << 40), 1 << 40) as isize;
    let eye = ops::eye_at(rows, columns, offset, element.dtype())?;
    Ok(vec![Tensor::new(eye, element)?.into()])
}

fn one_hot(n: &Node<'_>) -> Outcome {
    let (indices, values) = (n.x(0)?, n.tensor(2)?);
    let depth = match node::floats(n.x(1)?)?[..] {
        [depth] if depth.is_finite() => node::count(depth as i64)?,
        _ => return Err(Fault::invalid("the depth is not one number")),
    };
    let axis = n.axis("axis", -1, indices.rank() + 1)?;
    let at = ops::astype(indices, DType::I64)?;
    let at = ops::where_(&ops::less(&at, 0)?, &ops::add(&at, depth as i64)?, &at)?;
    let mut sizes = vec![1; indices.rank() + 1];
    sizes[axis] = depth;
    let classes = ops::reshape(&ops::arange_in(0, depth, 1, DType::I64)?, sizes)?;
    let hot = ops::equal(&ops::expand_dims(&at, axis)?, &classes)?;
    let [off, on] = &parts(&values.array, 0, &[1, 1])?[..] else {
        return Err(Fault::invalid("the values are not two"));
    };
    let made = ops::where_(&hot, &ops::reshape(on, ())?, &ops::reshape(off, ())?)?;
    Ok(vec![Tensor::new(made, values.element)?.into()])
}

fn range(n: &Node<'_>) -> Outcome {
    let dtype = n.x(0)?.dtype();
    if dtype.is_integer() {
        return one(range::integers(n.need_int(0)?, n.need_int(1)?, n.need_int(2)?, dtype)?);
    }
    let number = |i: usize| match n.floats_at(i)?.as_deref() {
        Some(&[value]) => Ok(value),
        _ => Err(Fault::invalid(format!("input {i} is not one number"))),
    };
    one(range::floats(number(0)?, number(1)?, number(2)?, dtype)?)
}

pub const OPS: &[Entry] = &[
    ("Constant", 1, constant),
    ("ConstantOfShape", 9, constant_of_shape),
    ("EyeLike", 9, eye_like),
    ("OneHot", 9, one_hot),
    ("Range", 11, range),
];
