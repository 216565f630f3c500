//! Functions of complex numbers that are not primitives: made of their parts' real functions.
//!
//! Formulas: NIST, *Digital library of mathematical functions*, chapter 4.

use super::operand::cast;
use super::unary::{cos, cosh, log, log1p, sin, sinh, sqrt, tan, tanh};
use super::{
    abs, add, arctan2, divide, equal, exp, greater_equal, imag, less, logical_and, multiply,
    negative, real, square, subtract, where_,
};
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::prim::Unary;

/// i.
const I: Scalar = Scalar::Complex(0.0, 1.0);

/// re + i·im.
fn of_parts(re: &Array, im: &Array) -> Result<Array> {
    add(&cast(re, DType::C64)?, &multiply(&cast(im, DType::C64)?, I)?)
}

/// `op` of a complex array, where `op` is not a primitive of complex numbers.
pub(super) fn unary(op: Unary, z: &Array) -> Result<Array> {
    let (x, y) = (real(z)?, imag(z)?);
    match op {
        Unary::Sign => {
            let size = abs(z)?;
            where_(&equal(&size, 0)?, 0, &divide(z, &size)?)
        }
        Unary::Sqrt => root(&x, &y),
        Unary::Rsqrt => divide(1, &root(&x, &y)?),
        Unary::Log => of_parts(&log(&abs(z)?)?, &arctan2(&y, &x)?),
        Unary::Log2 => multiply(&log(z)?, std::f64::consts::LOG2_E),
        Unary::Log10 => multiply(&log(z)?, std::f64::consts::LOG10_E),
        Unary::Log1p => {
            // |1 + z|² − 1, without the cancellation.
            let excess = add(&multiply(&x, &add(&x, 2)?)?, &square(&y)?)?;
            of_parts(&multiply(&log1p(&excess)?, 0.5)?, &arctan2(&y, &add(&x, 1)?)?)
        }
        Unary::Sin => {
            of_parts(&multiply(&sin(&x)?, &cosh(&y)?)?, &multiply(&cos(&x)?, &sinh(&y)?)?)
        }
        Unary::Cos => of_parts(
            &multiply(&cos(&x)?, &cosh(&y)?)?,
            &negative(&multiply(&sin(&x)?, &sinh(&y)?)?)?,
        ),
        Unary::Tan => multiply(&tanh(&multiply(z, I)?)?, Scalar::Complex(0.0, -1.0)),
        Unary::Sinh => {
            of_parts(&multiply(&sinh(&x)?, &cos(&y)?)?, &multiply(&cosh(&x)?, &sin(&y)?)?)
        }
        Unary::Cosh => {
            of_parts(&multiply(&cosh(&x)?, &cos(&y)?)?, &multiply(&sinh(&x)?, &sin(&y)?)?)
        }
        Unary::Tanh => {
            let (a, b) = (tanh(&x)?, tan(&y)?);
            let below = of_parts(&super::ones_like(&a)?, &multiply(&a, &b)?)?;
            divide(&of_parts(&a, &b)?, &below)
        }
        Unary::Asin => inverse_sine(z),
        Unary::Acos => subtract(std::f64::consts::FRAC_PI_2, &inverse_sine(z)?),
        Unary::Atan => {
            let iz = multiply(z, I)?;
            let turn = subtract(&log(&subtract(1, &iz)?)?, &log(&add(&iz, 1)?)?)?;
            multiply(&turn, Scalar::Complex(0.0, 0.5))
        }
        Unary::Asinh => log(&add(z, &sqrt(&add(&square(z)?, 1)?)?)?),
        Unary::Acosh => {
            let roots = multiply(&sqrt(&add(z, 1)?)?, &sqrt(&subtract(z, 1)?)?)?;
            log(&add(z, &roots)?)
        }
        Unary::Atanh => multiply(&subtract(&log(&add(z, 1)?)?, &log(&subtract(1, z)?)?)?, 0.5),
        Unary::Round => of_parts(&super::round(&x, 0)?, &super::round(&y, 0)?),
        _ => Err(Error::dtype(op.name(), format!("does not take {}", z.aval()))),
    }
}

/// The root with a real part that is not negative.
fn root(x: &Array, y: &Array) -> Result<Array> {
    let size = sqrt(&add(&square(x)?, &square(y)?)?)?;
    let larger = sqrt(&multiply(&add(&size, &abs(x)?)?, 0.5)?)?;
    let smaller = where_(&equal(&larger, 0)?, 0, &divide(&abs(y)?, &multiply(&larger, 2)?)?)?;
    let right = greater_equal(x, 0)?;
    let im = where_(&right, &smaller, &larger)?;
    let im = where_(&less(y, 0)?, &negative(&im)?, &im)?;
    of_parts(&where_(&right, &larger, &smaller)?, &im)
}

/// −i·ln(iz + √(1 − z²)).
fn inverse_sine(z: &Array) -> Result<Array> {
    let inner = add(&multiply(z, I)?, &sqrt(&subtract(1, &square(z)?)?)?)?;
    multiply(&log(&inner)?, Scalar::Complex(0.0, -1.0))
}

/// aᵇ = e^(b·ln a), with 0⁰ = 1.
pub(super) fn power(a: &Array, b: &Array) -> Result<Array> {
    let general = exp(&multiply(b, &log(a)?)?)?;
    let base_is_zero = equal(a, 0)?;
    let out = where_(&base_is_zero, 0, &general)?;
    where_(&logical_and(&base_is_zero, &equal(b, 0)?)?, 1, &out)
}
