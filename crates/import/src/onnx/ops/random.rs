//! Random numbers: of the seed that a node gives, else of the default generator.

use cupola_core::ops::random;

use super::super::graph::Attribute;
use super::prelude::*;

/// The key of a seed; `None` where the node gives none.
fn key(n: &Node<'_>) -> Result<Option<Array>, Fault> {
    Ok(match n.attribute("seed") {
        Some(Attribute::Int(seed)) => Some(random::key(*seed as u64)),
        Some(Attribute::Float(seed)) => Some(random::key(seed.to_bits().into())),
        Some(_) => return Err(Fault::invalid("the seed is no number")),
        None => None,
    })
}

/// The shape and element type of the result.
fn aval(n: &Node<'_>) -> Result<(Shape, Element), Fault> {
    let like = n.maybe_tensor(0)?;
    let shape = match like {
        Some(t) => t.array.shape().clone(),
        None => Shape::from(node::counts(&n.ints("shape")?.unwrap_or_default())?),
    };
    let held = like.map(|t| t.element).filter(|e| e.dtype().is_float() && e.is_plain());
    let element = n.element("dtype")?.or(held).unwrap_or(Element::Float);
    shape.checked_size("random", element.dtype())?;
    Ok((shape, element))
}

fn normal(n: &Node<'_>) -> Outcome {
    let (shape, element) = aval(n)?;
    let drawn = random::normal(shape, element.dtype(), key(n)?.as_ref())?;
    let (mean, scale) = (n.float("mean", 0.0)?, n.float("scale", 1.0)?);
    one(ops::add(&ops::multiply(&drawn, scale)?, mean)?)
}

/// Numbers from 0 up to but without 1.
fn drawn(n: &Node<'_>, shape: &Shape, dtype: DType) -> Made {
    Ok(random::uniform(0.0, 1.0, shape, dtype, key(n)?.as_ref())?)
}

fn uniform(n: &Node<'_>) -> Outcome {
    let (shape, element) = aval(n)?;
    let (low, high) = (n.float("low", 0.0)?, n.float("high", 1.0)?);
    let unit = drawn(n, &shape, element.dtype())?;
    one(ops::add(&ops::multiply(&unit, high - low)?, low)?)
}

fn bernoulli(n: &Node<'_>) -> Outcome {
    let t = n.tensor(0)?;
    let element = n.element("dtype")?.unwrap_or(t.element);
    let chance = ops::astype(&t.array, DType::F32)?;
    let hit = ops::less(&drawn(n, chance.shape(), DType::F32)?, &chance)?;
    Ok(vec![Tensor::new(ops::astype(&hit, element.dtype())?, element)?.into()])
}

fn multinomial(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let count = node::count(n.int("sample_size", 1)?)?;
    let element = n.element("dtype")?.unwrap_or(Element::Int32);
    let [batch, classes] = x.shape()[..] else {
        return Err(Fault::invalid(format!("{} is no matrix", x.shape())));
    };
    Shape::from([batch, count, classes]).checked_size("Multinomial", DType::F32)?;
    // The largest of the logits with Gumbel noise is a draw.
    let noise = random::gumbel([batch, count, classes], DType::F32, key(n)?.as_ref())?;
    let logits = ops::astype(&ops::expand_dims(x, 1)?, DType::F32)?;
    let found = ops::argmax(&ops::add(&noise, &logits)?, -1, false)?;
    one(ops::astype(&found, element.dtype())?)
}

fn dropout(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let one_of = |list: Option<Vec<f64>>| list.and_then(|l| l.first().copied());
    let (ratio, training) = match n.version() {
        12.. => {
            let training = n.ints_at(2)?.is_some_and(|t| t.first().is_some_and(|&t| t != 0));
            (one_of(n.floats_at(1)?).unwrap_or(0.5), training)
        }
        // Later versions are for inference; before version 7 the node says so.
        7.. => (n.float("ratio", 0.5)?, false),
        _ => (n.float("ratio", 0.5)?, !n.flag("is_test", false)?),
    };
    if !(0.0..1.0).contains(&ratio) {
        return Err(Fault::invalid(format!("the ratio {ratio} is not in [0, 1)")));
    }
    if !training || ratio == 0.0 {
        let kept = ops::full(x.shape(), true, DType::Bool)?;
        return Ok(vec![n.value(0)?.clone(), kept.into()]);
    }
    let kept = ops::greater_equal(&drawn(n, x.shape(), DType::F32)?, ratio)?;
    let scaled = ops::multiply(x, 1.0 / (1.0 - ratio))?;
    Ok(vec![ops::where_(&kept, &scaled, 0)?.into(), kept.into()])
}

pub const OPS: &[Entry] = &[
    ("Bernoulli", 15, bernoulli),
    ("Dropout", 1, dropout),
    ("Multinomial", 7, multinomial),
    ("RandomNormal", 1, normal),
    ("RandomNormalLike", 1, normal),
    ("RandomUniform", 1, uniform),
    ("RandomUniformLike", 1, uniform),
];
