//! Elementwise functions of one operand.

#![deny(clippy::wildcard_enum_match_arm)]

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, PI};

use super::batch::on_batch;
use super::record::{
    add, cast, div, is_zero, like, mul, neg, one_minus_square, scale, select, shift, sub,
};
use super::{
    Avals, Batched, Binary, Diff, Facts, Linearity, Mark, Partial, Primitive, Reverse, Tangents,
    TransposeRule, expect_inputs, one,
};
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::shape::Aval;

/// A row a function: variant, NumPy name, the dtypes that it takes, whether a result for an operand
/// of a half type may be no value of that type, its derivative, what it is.
macro_rules! unary {
    ($($variant:ident $name:literal $takes:ident $rounds:ident $slope:ident $doc:literal;)*) => {
        /// An elementwise function of one operand.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Unary {
            $(#[doc = $doc] $variant,)*
        }

        impl Unary {
            /// Every function, in declaration order.
            pub const ALL: &[Unary] = &[$(Unary::$variant),*];

            /// The NumPy name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Unary::$variant => $name,)*
                }
            }

            /// Whether the function takes elements of `dtype`.
            pub fn takes(self, dtype: DType) -> bool {
                match self {
                    $(Unary::$variant => $takes(dtype),)*
                }
            }

            /// Whether a result for an operand of a half type may be no value of that type.
            pub(super) fn rounds(self, operand: DType) -> bool {
                match self {
                    $(Unary::$variant => $rounds(operand),)*
                }
            }

            fn derivative(self) -> Diff<Unary> {
                match self {
                    $(Unary::$variant => $slope(),)*
                }
            }
        }
    };
}

unary! {
    Neg "negative" numbers EXACT partials "−x; integers wrap.";
    Abs "abs" numbers complex modulus "|x|; of a complex number its modulus, in the dtype of its parts.";
    Sign "sign" reals EXACT zero "−1, 0 or 1; NaN stays NaN.";
    Square "square" numbers ROUNDS partials "x·x.";
    Floor "floor" reals EXACT zero "The largest integer not above x.";
    Ceil "ceil" reals EXACT zero "The smallest integer not below x.";
    Round "round" numbers EXACT zero "The nearest integer, ties to even; of both parts of a complex number.";
    Sqrt "sqrt" inexact ROUNDS partials "√x.";
    Rsqrt "rsqrt" inexact ROUNDS partials "1/√x.";
    Exp "exp" inexact ROUNDS partials "eˣ.";
    Expm1 "expm1" inexact ROUNDS partials "eˣ − 1, accurate near 0.";
    Log "log" inexact ROUNDS partials "ln x.";
    Log2 "log2" inexact ROUNDS partials "log₂ x.";
    Log10 "log10" inexact ROUNDS partials "log₁₀ x.";
    Log1p "log1p" inexact ROUNDS partials "ln(1 + x), accurate near 0.";
    Sin "sin" inexact ROUNDS partials "sin x.";
    Cos "cos" inexact ROUNDS partials "cos x.";
    Tan "tan" inexact ROUNDS partials "tan x.";
    Asin "arcsin" inexact ROUNDS partials "arcsin x.";
    Acos "arccos" inexact ROUNDS partials "arccos x.";
    Atan "arctan" inexact ROUNDS partials "arctan x.";
    Sinh "sinh" inexact ROUNDS partials "sinh x.";
    Cosh "cosh" inexact ROUNDS partials "cosh x.";
    Tanh "tanh" inexact ROUNDS partials "tanh x.";
    Asinh "arcsinh" inexact ROUNDS partials "arsinh x.";
    Acosh "arccosh" inexact ROUNDS partials "arcosh x.";
    Atanh "arctanh" inexact ROUNDS partials "artanh x.";
    Sigmoid "sigmoid" floats ROUNDS partials "1/(1 + e⁻ˣ).";
    Erf "erf" floats ROUNDS partials "The error function.";
    Erfc "erfc" floats ROUNDS partials "1 − erf x, accurate also where that is near 0.";
    ErfInv "erfinv" floats ROUNDS partials "The inverse of the error function.";
    Not "logical_not" bools EXACT zero "True where the bool is false.";
    Invert "bitwise_invert" integers EXACT zero "Every bit of the integer flipped.";
    Conj "conjugate" complex EXACT conjugate "The complex conjugate.";
    Real "real" complex EXACT real_part "The real part, in the dtype of the parts.";
    Imag "imag" complex EXACT imaginary_part "The imaginary part, in the dtype of the parts.";
}

const EXACT: fn(DType) -> bool = |_| false;
const ROUNDS: fn(DType) -> bool = |_| true;

fn numbers(dtype: DType) -> bool {
    dtype != DType::Bool
}

fn reals(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_integer()
}

fn floats(dtype: DType) -> bool {
    dtype.is_float()
}

fn inexact(dtype: DType) -> bool {
    dtype.is_inexact()
}

fn integers(dtype: DType) -> bool {
    dtype.is_integer()
}

fn bools(dtype: DType) -> bool {
    dtype == DType::Bool
}

fn complex(dtype: DType) -> bool {
    dtype.is_complex()
}

fn zero() -> Diff<Unary> {
    Diff::Zero
}

/// Cotangents pair with tangents as Re(c·t), without conjugation: that fixes what the maps between
/// complex and real transpose to.
fn conjugate() -> Diff<Unary> {
    linear(|_, inputs, _, ct| Ok(Some(Array::apply(Unary::Conj, &[&whole(inputs, ct)?])?)))
}

fn real_part() -> Diff<Unary> {
    linear(|_, inputs, _, ct| Ok(Some(whole(inputs, ct)?)))
}

fn imaginary_part() -> Diff<Unary> {
    linear(|_, inputs, _, ct| {
        let whole = whole(inputs, ct)?;
        let minus_i = Array::constant(Scalar::Complex(0.0, -1.0), whole.aval().clone());
        Ok(Some(mul(&whole, &minus_i)?))
    })
}

fn whole(inputs: &[Array], ct: &Array) -> Result<Array> {
    cast(ct, inputs[0].dtype())
}

fn linear(transpose: TransposeRule<Unary>) -> Diff<Unary> {
    Diff::Linear { linearity: Linearity::Joint, operand: |_, _| true, transpose }
}

fn modulus() -> Diff<Unary> {
    Diff::Custom { jvp: abs_jvp, vjp: abs_vjp }
}

fn partials() -> Diff<Unary> {
    Diff::Partials(|f, inputs, y, _| partial(*f, &inputs[0], y))
}

impl Unary {
    /// The dtype of the result for an operand of `dtype`.
    pub fn result(self, dtype: DType) -> DType {
        let gives_reals = [Unary::Abs, Unary::Real, Unary::Imag].contains(&self);
        if gives_reals { dtype.real() } else { dtype }
    }
}

impl Primitive for Unary {
    fn name(&self) -> &'static str {
        Unary::name(*self)
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs(self.name(), inputs, 1)?;
        let x = inputs[0];
        if !self.takes(x.dtype) {
            return Err(Error::dtype(self.name(), format!("does not take {x}")));
        }
        one(Aval { shape: x.shape.clone(), dtype: self.result(x.dtype) })
    }

    fn diff(&self) -> Diff<Self> {
        self.derivative()
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(*self, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts::ELEMENTWISE
    }
}

/// The derivative of a holomorphic or real function.
fn partial(f: Unary, x: &Array, y: &Array) -> Result<Option<Partial>> {
    use Partial::{NegOne, Over, Times};
    let apply = |f: Unary, x: &Array| Array::apply(f, &[x]);
    Ok(Some(match f {
        Unary::Neg => NegOne,
        Unary::Square => Times(add(x, x)?),
        Unary::Sqrt => Over(add(y, y)?),
        Unary::Rsqrt => Times(scale(&div(y, x)?, -0.5)?),
        Unary::Exp => Times(y.clone()),
        Unary::Expm1 => Times(shift(y, 1.0)?),
        Unary::Log => Over(x.clone()),
        Unary::Log2 => Over(scale(x, LN_2)?),
        Unary::Log10 => Over(scale(x, LN_10)?),
        Unary::Log1p => Over(shift(x, 1.0)?),
        Unary::Sin => Times(apply(Unary::Cos, x)?),
        Unary::Cos => Times(neg(&apply(Unary::Sin, x)?)?),
        Unary::Tan => Times(shift(&apply(Unary::Square, y)?, 1.0)?),
        Unary::Asin | Unary::Acos => {
            // The square of a large complex number is none.
            let slope = match x.dtype().is_complex() {
                true => of_two_roots(&shift(&neg(x)?, 1.0)?, &shift(x, 1.0)?)?,
                false => apply(Unary::Rsqrt, &one_minus_square(x)?)?,
            };
            Times(if f == Unary::Asin { slope } else { neg(&slope)? })
        }
        Unary::Atan if x.dtype().is_complex() => Over(shift(&apply(Unary::Square, x)?, 1.0)?),
        Unary::Atan => {
            let (by, sum) = one_plus_square(x)?;
            Times(div(&apply(Unary::Square, &by)?, &sum)?)
        }
        Unary::Sinh => Times(apply(Unary::Cosh, x)?),
        Unary::Cosh => Times(apply(Unary::Sinh, x)?),
        Unary::Tanh => Times(one_minus_square(y)?),
        Unary::Asinh if x.dtype().is_complex() => {
            let i = Array::constant(Scalar::Complex(0.0, 1.0), x.aval().clone());
            let turned = mul(x, &i)?;
            Times(of_two_roots(&shift(&turned, 1.0)?, &shift(&neg(&turned)?, 1.0)?)?)
        }
        Unary::Asinh => {
            let (by, sum) = one_plus_square(x)?;
            Times(mul(&by, &apply(Unary::Rsqrt, &sum)?)?)
        }
        Unary::Acosh => Times(of_two_roots(&shift(x, -1.0)?, &shift(x, 1.0)?)?),
        Unary::Atanh => Over(one_minus_square(x)?),
        Unary::Sigmoid => Times(mul(y, &sub(&like(y, 1.0), y)?)?),
        Unary::Erf => Times(gauss(x, FRAC_2_SQRT_PI)?),
        Unary::Erfc => Times(gauss(x, -FRAC_2_SQRT_PI)?),
        Unary::ErfInv => {
            let gauss = apply(Unary::Exp, &apply(Unary::Square, y)?)?;
            Times(scale(&gauss, PI.sqrt() / 2.0)?)
        }
        // Their rows say how else.
        Unary::Abs
        | Unary::Sign
        | Unary::Floor
        | Unary::Ceil
        | Unary::Round
        | Unary::Not
        | Unary::Invert
        | Unary::Conj
        | Unary::Real
        | Unary::Imag => return Ok(None),
    }))
}

/// 1/√a·1/√b: the product of a and b may be too large, and its root has another branch cut.
fn of_two_roots(a: &Array, b: &Array) -> Result<Array> {
    mul(&Array::apply(Unary::Rsqrt, &[a])?, &Array::apply(Unary::Rsqrt, &[b])?)
}

/// `by`, and `by`²·(1 + x²), where `by` is 1, or 1/|x| for a real x above 1, whose square may be too large: up to the
/// root of what the dtype holds, so that ∞ is none of 0.
fn one_plus_square(x: &Array) -> Result<(Array, Array)> {
    let apply = |f: Unary, x: &Array| Array::apply(f, &[x]);
    let root = match x.dtype().size() {
        2 if x.dtype() == DType::F16 => 8,
        8 => 512,
        _ => 64,
    };
    let most = Array::apply(Binary::Maximum, &[&apply(Unary::Abs, x)?, &like(x, 1.0)])?;
    let most = Array::apply(Binary::Minimum, &[&most, &like(x, 2f64.powi(root))])?;
    // What is made of both is the same for any number.
    let by = Array::apply(Mark::StopGradient, &[&div(&like(x, 1.0), &most)?])?;
    let sum = add(&apply(Unary::Square, &mul(x, &by)?)?, &apply(Unary::Square, &by)?)?;
    Ok((by, sum))
}

/// `by`·exp(−x²): the slope of the error function.
fn gauss(x: &Array, by: f64) -> Result<Array> {
    let square = Array::apply(Unary::Square, &[x])?;
    scale(&Array::apply(Unary::Exp, &[&neg(&square)?])?, by)
}

/// The factor of |x|: sign x, and for a complex x its conjugate over its modulus; 0 at 0.
fn abs_factor(x: &Array, y: &Array) -> Result<Array> {
    if !x.dtype().is_complex() {
        return Array::apply(Unary::Sign, &[x]);
    }
    let modulus = select(&is_zero(y)?, &like(y, 1.0), y)?;
    div(&Array::apply(Unary::Conj, &[x])?, &cast(&modulus, x.dtype())?)
}

fn abs_jvp(
    _: &Unary,
    inputs: &[Array],
    outputs: &[Array],
    tangents: &[Option<Array>],
) -> Result<Tangents> {
    let Some(tangent) = &tangents[0] else {
        return Ok(vec![None]);
    };
    let product = mul(tangent, &abs_factor(&inputs[0], &outputs[0])?)?;
    let is_complex = product.dtype().is_complex();
    Ok(vec![Some(if is_complex { Array::apply(Unary::Real, &[&product])? } else { product })])
}

fn abs_vjp(_: &Unary, r: &Reverse<'_>) -> Result<Tangents> {
    let Some(cotangent) = &r.cotangents[0] else {
        return Ok(vec![None]);
    };
    let x = &r.inputs[0];
    let factor = abs_factor(x, &r.outputs[0])?;
    Ok(vec![Some(mul(&cast(cotangent, x.dtype())?, &factor)?)])
}
