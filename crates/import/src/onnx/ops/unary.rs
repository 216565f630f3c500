//! Functions of one operand.

use super::prelude::*;

macro_rules! unary {
    ($($f:ident: $x:ident => $made:expr;)*) => {$(
        fn $f(n: &Node<'_>) -> Outcome {
            let $x = n.x(0)?;
            n.like($made?, 0)
        }
    )*};
}

unary! {
    abs: x => ops::abs(x);
    acos: x => ops::arccos(x);
    acosh: x => ops::arccosh(x);
    asin: x => ops::arcsin(x);
    asinh: x => ops::arcsinh(x);
    atan: x => ops::arctan(x);
    atanh: x => ops::arctanh(x);
    ceil: x => ops::ceil(x);
    cos: x => ops::cos(x);
    cosh: x => ops::cosh(x);
    det: x => ops::linalg::det(x);
    erf: x => ops::erf(x);
    exp: x => ops::exp(x);
    floor: x => ops::floor(x);
    log: x => ops::log(x);
    neg: x => ops::negative(x);
    not: x => ops::logical_not(x);
    bitwise_not: x => ops::bitwise_invert(x);
    reciprocal: x => ops::reciprocal(x);
    round: x => ops::round(x, 0);
    sign: x => ops::sign(x);
    sin: x => ops::sin(x);
    sinh: x => ops::sinh(x);
    sqrt: x => ops::sqrt(x);
    tan: x => ops::tan(x);
    tanh: x => ops::tanh(x);
}

fn is_nan(n: &Node<'_>) -> Outcome {
    one(ops::isnan(n.x(0)?)?)
}

fn is_inf(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    one(match (n.flag("detect_negative", true)?, n.flag("detect_positive", true)?) {
        (true, true) => ops::isinf(x)?,
        (true, false) => ops::isneginf(x)?,
        (false, true) => ops::isposinf(x)?,
        (false, false) => ops::full(x.shape(), false, DType::Bool)?,
    })
}

fn identity(n: &Node<'_>) -> Outcome {
    Ok(vec![n.value(0)?.clone()])
}

pub const OPS: &[Entry] = &[
    ("Abs", 1, abs),
    ("Acos", 7, acos),
    ("Acosh", 9, acosh),
    ("Asin", 7, asin),
    ("Asinh", 9, asinh),
    ("Atan", 7, atan),
    ("Atanh", 9, atanh),
    ("BitwiseNot", 18, bitwise_not),
    ("Ceil", 1, ceil),
    ("Cos", 7, cos),
    ("Cosh", 9, cosh),
    ("Det", 11, det),
    ("Erf", 9, erf),
    ("Exp", 1, exp),
    ("Floor", 1, floor),
    ("Identity", 1, identity),
    ("IsInf", 10, is_inf),
    ("IsNaN", 9, is_nan),
    ("Log", 1, log),
    ("Neg", 1, neg),
    ("Not", 1, not),
    ("Reciprocal", 1, reciprocal),
    ("Round", 11, round),
    ("Sign", 9, sign),
    ("Sin", 7, sin),
    ("Sinh", 9, sinh),
    ("Sqrt", 1, sqrt),
    ("Tan", 7, tan),
    ("Tanh", 1, tanh),
];
