//! Random numbers: of the seed that an operation gives, else of the default generator.

use cupola_core::ops::random;

use super::prelude::*;

/// The key of a seed; `None` where there is none.
fn key(n: &Node<'_>) -> Result<Option<Array>, Fault> {
    Ok(match n.int_or("seed", -1)? {
        seed if seed < 0 => None,
        seed => Some(random::key(seed as u64)),
    })
}

/// The shape and dtype of the result.
fn aval(n: &Node<'_>) -> Result<(Shape, DType), Fault> {
    let shape = Shape::from(numbers::counts(&n.ints("shape")?)?);
    let dtype = n.output_dtype(0).filter(|dtype| dtype.is_float()).unwrap_or(DType::F32);
    shape.checked_size("random", dtype)?;
    Ok((shape, dtype))
}

fn uniform(n: &Node<'_>) -> Outcome {
    let (shape, dtype) = aval(n)?;
    let (low, high) = (n.float_or("low", 0.0)?, n.float_or("high", 1.0)?);
    one(random::uniform(low, high, shape, dtype, key(n)?.as_ref())?)
}

fn normal(n: &Node<'_>) -> Outcome {
    let (shape, dtype) = aval(n)?;
    let drawn = random::normal(shape, dtype, key(n)?.as_ref())?;
    let scaled = ops::multiply(&drawn, n.float_or("stddev", 1.0)?)?;
    one(ops::add(&scaled, n.float_or("mean", 0.0)?)?)
}

fn bernoulli(n: &Node<'_>) -> Outcome {
    let (shape, dtype) = aval(n)?;
    let drawn = random::uniform(0.0, 1.0, shape, DType::F32, key(n)?.as_ref())?;
    one(ops::astype(&ops::less(&drawn, n.float_or("prob", 0.5)?)?, dtype)?)
}

fn categorical(n: &Node<'_>) -> Outcome {
    let x = ops::astype(n.x("x")?, DType::F32)?;
    let logits = match n.text("mode", "logits")? {
        "logits" => x,
        "probs" => ops::log(&x)?,
        other => return Err(Fault::invalid(format!("the mode '{other}' is not known"))),
    };
    let count = numbers::count(n.int_or("size", 1)?)?;
    logits
        .shape()
        .iter()
        .copied()
        .chain([count])
        .collect::<Shape>()
        .checked_size("random", DType::F32)?;
    one(ops::astype(
        &random::categorical(&logits, -1, Some(count), key(n)?.as_ref())?,
        n.x("x")?.dtype(),
    )?)
}

pub const OPS: &[Entry] = &[
    ("random_bernoulli", bernoulli),
    ("random_categorical", categorical),
    ("random_normal", normal),
    ("random_uniform", uniform),
];
