//! Functions of one operand.

use super::prelude::*;

macro_rules! unary {
    ($($f:ident: $n:ident, $x:ident => $made:expr;)*) => {$(
        fn $f($n: &Node<'_>) -> Outcome {
            let $x = $n.x("x")?;
            one($made?)
        }
    )*};
}

unary! {
    abs: n, x => ops::abs(x);
    acos: n, x => ops::arccos(x);
    asin: n, x => ops::arcsin(x);
    atan: n, x => ops::arctan(x);
    atanh: n, x => ops::arctanh(x);
    ceil: n, x => ops::ceil(x);
    cos: n, x => ops::cos(x);
    cosh: n, x => ops::cosh(x);
    erf: n, x => ops::erf(x);
    exp: n, x => ops::exp(x);
    exp2: n, x => ops::power(2.0, x);
    floor: n, x => ops::floor(x);
    logical_not: n, x => ops::logical_not(x);
    round: n, x => ops::round(x, 0);
    sign: n, x => ops::sign(x);
    sin: n, x => ops::sin(x);
    sinh: n, x => ops::sinh(x);
    sqrt: n, x => ops::sqrt(x);
    square: n, x => ops::square(x);
    tan: n, x => ops::tan(x);
    tanh: n, x => ops::tanh(x);
    inverse: n, x => ops::reciprocal(&moved(x, n.float_or("epsilon", 1e-4)?)?);
    log: n, x => ops::log(&moved(x, n.float_or("epsilon", 1e-45)?)?);
    rsqrt: n, x => ops::rsqrt(&moved(x, n.float_or("epsilon", 1e-12)?)?);
    threshold: n, x => ops::maximum(x, n.x("alpha")?);
}

/// x + ε.
fn moved(x: &Array, epsilon: f64) -> cupola_core::Result<Array> {
    match epsilon == 0.0 {
        true => Ok(x.clone()),
        false => ops::add(x, epsilon),
    }
}

fn clip(n: &Node<'_>) -> Outcome {
    let low = ops::maximum(n.x("x")?, n.x("alpha")?)?;
    one(ops::minimum(&low, n.x("beta")?)?)
}

/// Elements of another type; of floats what is before the point.
fn cast(n: &Node<'_>) -> Outcome {
    let to =
        n.element("dtype")?.ok_or_else(|| Fault::invalid("the argument 'dtype' is missing"))?;
    one(ops::astype(n.x("x")?, to.dtype)?)
}

fn identity(n: &Node<'_>) -> Outcome {
    Ok(vec![n.value("x")?.clone()])
}

pub const OPS: &[Entry] = &[
    ("abs", abs),
    ("acos", acos),
    ("asin", asin),
    ("atan", atan),
    ("atanh", atanh),
    ("cast", cast),
    ("ceil", ceil),
    ("clip", clip),
    ("cos", cos),
    ("cosh", cosh),
    ("erf", erf),
    ("exp", exp),
    ("exp2", exp2),
    ("floor", floor),
    ("identity", identity),
    ("inverse", inverse),
    ("log", log),
    ("logical_not", logical_not),
    ("round", round),
    ("rsqrt", rsqrt),
    ("sign", sign),
    ("sin", sin),
    ("sinh", sinh),
    ("sqrt", sqrt),
    ("square", square),
    ("tan", tan),
    ("tanh", tanh),
    ("threshold", threshold),
];
