//! Signs, parts and neighbours of floats, and functions of two numbers that are told by them.
//!
//! What looks at bits reads them through [`view`](super::view), so it holds for NaN, signed zeros and
//! subnormals on every device.

use super::operand::{
    Operand, cast, common_dtype, common_shape, constant_like, expect_real, inexact, met,
};
use super::{
    abs, add, bitwise_and, bitwise_or, clip, equal, full_like, greater, greater_equal, isnan,
    left_shift, less, logical_and, logical_or, maximum, minimum, multiply, negative, not_equal,
    power, remainder, right_shift, sqrt, subtract, trunc, view, where_,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;

/// Real operands of one shape in the dtype that they promote to.
fn reals<const N: usize>(op: &'static str, operands: [Operand<'_>; N]) -> Result<[Array; N]> {
    expect_real(op, &operands)?;
    met(op, operands, common_dtype(&operands))
}

/// Real operands of one shape in the float dtype that they promote to: `float32` for integers and bool.
pub(super) fn floats<const N: usize>(
    op: &'static str,
    operands: [Operand<'_>; N],
) -> Result<[Array; N]> {
    expect_real(op, &operands)?;
    met(op, operands, common_dtype(&operands).to_inexact())
}

/// How the bits of a float are laid out.
struct Layout {
    /// The signed integers of its width.
    bits: DType,
    /// How many bits of the significand are stored.
    stored: u32,
    /// The biased exponent of 1.
    bias: i64,
    /// The bits of +∞.
    infinity: i64,
    /// The sign alone: the lowest of the integers.
    sign: i64,
}

fn layout(dtype: DType) -> Layout {
    let (bits, width, stored) = match dtype {
        DType::F16 => (DType::I16, 16, 10),
        DType::BF16 => (DType::I16, 16, 7),
        DType::F64 => (DType::I64, 64, 52),
        _ => (DType::I32, 32, 23),
    };
    let exponents = (1i64 << (width - 1 - stored)) - 1;
    let infinity = exponents << stored;
    Layout { bits, stored, bias: exponents / 2, infinity, sign: -1i64 << (width - 1) }
}

/// True where the sign is −, also of −0 and of NaN.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-0.0f32, 0.0, -1.5], [3])?;
/// assert_eq!(ops::signbit(&x)?.to_vec::<bool>()?, [true, false, true]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn signbit(x: &Array) -> Result<Array> {
    expect_real("signbit", &[x.into()])?;
    if x.dtype() == DType::Bool {
        return Ok(constant_like(x, false));
    }
    if x.dtype().is_float() {
        return less(&view(x, layout(x.dtype()).bits)?, 0);
    }
    less(x, 0)
}

/// |a| with the sign of b, also of −0 and of NaN.
///
/// # Shapes
/// The operands broadcast.
///
/// # Dtypes
/// The operands promote; integers and bool are taken as `float32`.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let signs = Array::from_slice(&[-0.0f32, 2.0], [2])?;
/// assert_eq!(ops::copysign(3.0, &signs)?.to_vec::<f32>()?, [-3.0, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn copysign<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    let [a, b] = floats("copysign", [a.into(), b.into()])?;
    let size = abs(&a)?;
    where_(&signbit(&b)?, &negative(&size)?, &size)
}

/// What is behind the point of x, with x's sign: x − trunc x.
///
/// # Dtypes
/// Integers give 0.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1.5f32, 2.25], [2])?;
/// assert_eq!(ops::frac(&x)?.to_vec::<f32>()?, [-0.5, 0.25]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn frac(x: &Array) -> Result<Array> {
    expect_real("frac", &[x.into()])?;
    if x.dtype() == DType::Bool {
        return full_like(x, false);
    }
    subtract(x, &trunc(x)?)
}

/// 0 below 0, 1 above it, and `values` at it; NaN of NaN.
///
/// # Shapes
/// The operands broadcast.
///
/// # Dtypes
/// The operands promote.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-1.5f32, 0.0, 2.0], [3])?;
/// assert_eq!(ops::heaviside(&x, 0.5)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn heaviside<'a, 'b>(
    x: impl Into<Operand<'a>>,
    values: impl Into<Operand<'b>>,
) -> Result<Array> {
    let [x, values] = reals("heaviside", [x.into(), values.into()])?;
    let step = cast(&greater(&x, 0)?, x.dtype())?;
    let step = where_(&equal(&x, 0)?, &values, &step)?;
    if x.dtype().is_float() { where_(&isnan(&x)?, f64::NAN, &step) } else { Ok(step) }
}

/// The larger of a and b; of a number and NaN the number.
///
/// # Shapes
/// The operands broadcast.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[f32::NAN, 2.0], [2])?;
/// assert_eq!(ops::fmax(&x, 1)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fmax<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    let [a, b] = reals("fmax", [a.into(), b.into()])?;
    number_of(&a, &b, &maximum(&a, &b)?)
}

/// The smaller of a and b; of a number and NaN the number.
///
/// # Shapes
/// The operands broadcast.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[f32::NAN, 2.0], [2])?;
/// assert_eq!(ops::fmin(&x, 1)?.to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fmin<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    let [a, b] = reals("fmin", [a.into(), b.into()])?;
    number_of(&a, &b, &minimum(&a, &b)?)
}

/// `joined`, but the other operand where one is NaN.
fn number_of(a: &Array, b: &Array, joined: &Array) -> Result<Array> {
    if !a.dtype().is_float() {
        return Ok(joined.clone());
    }
    where_(&isnan(a)?, b, &where_(&isnan(b)?, a, joined)?)
}

/// a − b·trunc(a/b), with the sign of a, exactly; [`remainder`](super::remainder) has the sign of b.
///
/// # Shapes
/// The operands broadcast.
///
/// # Dtypes
/// The operands promote; an integer modulo 0 gives 0.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[-7, 7], [2])?;
/// assert_eq!(ops::fmod(&x, 4)?.to_vec::<i32>()?, [-3, 3]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn fmod<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    let [a, b] = reals("fmod", [a.into(), b.into()])?;
    if a.dtype().is_float() {
        let minus = signbit(&a)?;
        let size = where_(&minus, &negative(&a)?, &a)?;
        let rest = remainder(&size, &abs(&b)?)?;
        return where_(&minus, &negative(&rest)?, &rest);
    }
    let rest = remainder(&a, &b)?;
    if !a.dtype().is_signed() {
        return Ok(rest);
    }
    let turned = not_equal(&less(&rest, 0)?, &less(&a, 0)?)?;
    let turned = logical_and(&turned, &not_equal(&rest, 0)?)?;
    where_(&turned, &subtract(&rest, &b)?, &rest)
}

/// √(a² + b²), where the squares would overflow or vanish, too.
///
/// # Shapes
/// The operands broadcast.
///
/// # Dtypes
/// The operands promote; integers and bool are taken as `float32`; half types are computed in `float32`.
/// With an infinite operand the result is ∞, whatever the other is.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::hypot(3.0, 4.0)?.item::<f32>()?, 5.0);
/// assert_eq!(ops::hypot(3e30, 4e30)?.item::<f32>()?, 5e30);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn hypot<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    let [a, b] = floats("hypot", [a.into(), b.into()])?;
    let own = a.dtype();
    let (a, b) = (cast(&a, own.accumulator())?, cast(&b, own.accumulator())?);
    // Powers of two, by which numbers whose squares leave the range are brought back into it.
    let (large, down, small, up) = match a.dtype() {
        DType::F64 => (2f64.powi(500), 2f64.powi(-600), 2f64.powi(-400), 2f64.powi(700)),
        _ => (2f64.powi(60), 2f64.powi(-66), 2f64.powi(-40), 2f64.powi(100)),
    };
    let size = super::stop_gradient(&maximum(&abs(&a)?, &abs(&b)?)?)?;
    let (is_large, is_small) = (greater(&size, large)?, less(&size, small)?);
    let choose = |down: f64, up: f64| {
        where_(&is_large, down, &where_(&is_small, up, &constant_like(&a, 1.0))?)
    };
    let (scale, back) = (choose(down, up)?, choose(1.0 / down, 1.0 / up)?);
    let (x, y) = (multiply(&a, &scale)?, multiply(&b, &scale)?);
    let sum = add(&multiply(&x, &x)?, &multiply(&y, &y)?)?;
    // At 0 the root has no derivative; that of 1 is masked.
    let nothing = equal(&size, 0)?;
    let root = multiply(&sqrt(&where_(&nothing, 1, &sum)?)?, &back)?;
    let out = where_(&nothing, &size, &root)?;
    let infinite = logical_or(&super::isinf(&a)?, &super::isinf(&b)?)?;
    cast(&where_(&infinite, f64::INFINITY, &out)?, own)
}

/// 2ᵏ as `dtype` for exponents `k`, `int32`, of normal numbers.
fn power_of_two(k: &Array, dtype: DType) -> Result<Array> {
    let own = layout(dtype);
    let biased = cast(&add(k, own.bias)?, own.bits)?;
    view(&left_shift(&biased, i64::from(own.stored))?, dtype)
}

/// x·2ᵏ, rounded once.
///
/// # Shapes
/// The operands broadcast.
///
/// # Dtypes
/// Integers x are taken as `float32`; the result has that dtype, whatever that of the exponents is. Exponents
/// that are floats raise 2 to them.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let k = Array::from_slice(&[-1, 3], [2])?;
/// assert_eq!(ops::ldexp(1.5, &k)?.to_vec::<f32>()?, [0.75, 12.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn ldexp<'a, 'b>(x: impl Into<Operand<'a>>, k: impl Into<Operand<'b>>) -> Result<Array> {
    let (x, k) = (x.into(), k.into());
    expect_real("ldexp", &[x, k])?;
    let exponents = common_dtype(&[k]);
    let own = common_dtype(&[x]).to_inexact();
    if exponents.is_float() {
        let [x, k] = floats("ldexp", [x, k])?;
        return multiply(&x, &power(2.0, &k)?);
    }
    let shape = common_shape("ldexp", &[x, k])?;
    let wide = x.to(own.accumulator(), &shape)?;
    let k = k.to(exponents, &shape)?;
    // Beyond this far everything is 0 or ∞.
    let far = 5000;
    let k = match exponents {
        DType::U32 | DType::U64 => minimum(&k, far)?,
        DType::I32 | DType::I64 => clip(&k, -far, far)?,
        _ => k,
    };
    cast(&scaled(&wide, &cast(&k, DType::I32)?)?, own)
}

/// x·2ᵏ for `float32` and `float64` and exponents within ±5000. Three factors; those that make a number
/// smaller leave it normal but for the last, so that it is rounded once.
fn scaled(x: &Array, k: &Array) -> Result<Array> {
    let own = layout(x.dtype());
    let (up, low) = (own.bias, 1 - own.bias);
    let down = low + i64::from(own.stored) + 1;
    let (mut out, mut rest) = (x.clone(), k.clone());
    for _ in 0..2 {
        let small = less(&rest, low)?;
        let step = where_(&greater(&rest, up)?, up, &where_(&small, down, &constant_like(k, 0))?)?;
        out = multiply(&out, &power_of_two(&step, x.dtype())?)?;
        rest = subtract(&rest, &step)?;
    }
    multiply(&out, &power_of_two(&clip(&rest, low, up)?, x.dtype())?)
}

/// Numbers as m·2ᵏ with ½ ≤ |m| < 1: the pair of m and, as `int32`, k. Of 0, ±∞ and NaN k is 0 and m the
/// number itself.
///
/// # Dtypes
/// Integers and bool are taken as `float32`.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let (m, k) = ops::frexp(&Array::from_slice(&[12.0f32, -0.375, 0.0], [3])?)?;
/// assert_eq!(m.to_vec::<f32>()?, [0.75, -0.75, 0.0]);
/// assert_eq!(k.to_vec::<i32>()?, [4, -1, 0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn frexp(x: &Array) -> Result<(Array, Array)> {
    expect_real("frexp", &[x.into()])?;
    let x = inexact(x)?;
    let wide = cast(&x, x.dtype().accumulator())?;
    let own = layout(wide.dtype());
    let size = bitwise_and(&view(&wide, own.bits)?, !own.sign)?;
    let field = cast(&right_shift(&size, i64::from(own.stored))?, DType::I32)?;
    // A subnormal number is its bits, counted in units of the smallest.
    let subnormal = equal(&field, 0)?;
    let units = view(&cast(&size, wide.dtype())?, own.bits)?;
    let units = cast(&right_shift(&units, i64::from(own.stored))?, DType::I32)?;
    let smallest = own.bias - 1 + i64::from(own.stored);
    let k = where_(&subnormal, &subtract(&units, smallest)?, &field)?;
    let k = subtract(&k, own.bias - 1)?;
    let plain = logical_or(&equal(&size, 0)?, &greater_equal(&size, own.infinity)?)?;
    let k = where_(&plain, 0, &k)?;
    Ok((cast(&scaled(&wide, &negative(&k)?)?, x.dtype())?, k))
}

/// The next number of the dtype after a towards b; b where they are equal.
///
/// # Shapes
/// The operands broadcast.
///
/// # Dtypes
/// The operands promote; integers and bool are taken as `float32`. The step has no derivative.
///
/// # Errors
/// For complex numbers.
///
/// # Example
/// ```
/// use cupola::ops;
/// assert_eq!(ops::nextafter(1.0, 2.0)?.item::<f32>()?, 1.0 + f32::EPSILON);
/// assert_eq!(ops::nextafter(0.0, -1.0)?.item::<f32>()?, -f32::from_bits(1));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn nextafter<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    let [a, b] = floats("nextafter", [a.into(), b.into()])?;
    let own = layout(a.dtype());
    let (p, q) = (view(&a, own.bits)?, view(&b, own.bits)?);
    // Integers in the order of the numbers; −0 and 0 are both 0.
    let lowest = constant_like(&p, own.sign);
    let rank = |p: &Array| where_(&less(p, 0)?, &subtract(&lowest, p)?, p);
    let (from, to) = (rank(&p)?, rank(&q)?);
    let away = equal(&greater(&to, &from)?, &greater_equal(&p, 0)?)?;
    let step = where_(&away, &constant_like(&p, 1), &constant_like(&p, -1))?;
    let smallest = bitwise_or(&bitwise_and(&q, &lowest)?, 1)?;
    let next = where_(&equal(&from, 0)?, &smallest, &add(&p, &step)?)?;
    let next = where_(&equal(&from, &to)?, &q, &next)?;
    let undefined = |p: &Array| greater(&bitwise_and(p, !own.sign)?, own.infinity);
    let next = where_(&undefined(&q)?, &q, &next)?;
    view(&where_(&undefined(&p)?, &p, &next)?, a.dtype())
}
