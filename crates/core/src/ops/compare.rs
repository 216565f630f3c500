//! Elementwise comparisons of two operands, which broadcast and promote, to bool.

use super::operand::{Operand, cast, common_dtype, common_shape};
use super::{
    abs, add, all, isfinite, isnan, less_equal as le, logical_and, logical_not, logical_or,
    multiply, subtract,
};
use crate::array::Array;
use crate::error::Result;
use crate::prim::Compare;

/// Records a comparison of operands that broadcast, in the dtype that they promote to.
#[inline]
pub(crate) fn compare(op: Compare, a: Operand<'_>, b: Operand<'_>) -> Result<Array> {
    if let (Operand::Array(a), Operand::Array(b)) = (a, b)
        && a.aval() == b.aval()
        && !a.dtype().is_complex()
    {
        return Array::apply(op, &[a, b]);
    }
    let dtype = common_dtype(&[a, b]);
    let shape = common_shape(op.name(), &[a, b])?;
    let (a, b) = (a.to(dtype, &shape)?, b.to(dtype, &shape)?);
    match (op, dtype) {
        (Compare::Eq | Compare::Ne, _) => Array::apply(op, &[&a, &b]),
        _ if dtype.is_complex() => super::complex::compare(op, &a, &b),
        _ => Array::apply(op, &[&a, &b]),
    }
}

/// Whether a = b; NaN equals nothing.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(ops::equal(&x, 2)?.to_vec::<bool>()?, [false, true, false]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn equal<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    compare(Compare::Eq, a.into(), b.into())
}

/// Whether a ≠ b; NaN differs from everything.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(ops::not_equal(&x, 2)?.to_vec::<bool>()?, [true, false, true]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn not_equal<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    compare(Compare::Ne, a.into(), b.into())
}

/// Whether a < b.
///
/// # Dtypes
/// Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(ops::less(&x, 2)?.to_vec::<bool>()?, [true, false, false]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn less<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    compare(Compare::Lt, a.into(), b.into())
}

/// Whether a ≤ b.
///
/// # Dtypes
/// Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(ops::less_equal(&x, 2)?.to_vec::<bool>()?, [true, true, false]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn less_equal<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    compare(Compare::Le, a.into(), b.into())
}

/// Whether a > b.
///
/// # Dtypes
/// Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(ops::greater(&x, 2)?.to_vec::<bool>()?, [false, false, true]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn greater<'a, 'b>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Array> {
    compare(Compare::Gt, a.into(), b.into())
}

/// Whether a ≥ b.
///
/// # Dtypes
/// Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(ops::greater_equal(&x, 2)?.to_vec::<bool>()?, [false, true, true]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn greater_equal<'a, 'b>(
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'b>>,
) -> Result<Array> {
    compare(Compare::Ge, a.into(), b.into())
}

/// How close two numbers are that [`isclose`] takes for equal: |a − b| ≤ absolute + relative·|b|.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// What may differ as a part of |b|.
    pub relative: f64,
    /// What may differ in any case.
    pub absolute: f64,
    /// Whether NaN equals NaN.
    pub equal_nan: bool,
}

/// NumPy's tolerances: 1e-5 relative, 1e-8 absolute, NaN equals nothing.
impl Default for Tolerance {
    fn default() -> Self {
        Tolerance { relative: 1e-5, absolute: 1e-8, equal_nan: false }
    }
}

/// Whether a and b are equal within a tolerance; infinities equal themselves.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// let y = ops::isclose(&x, 1.000001, ops::Tolerance::default())?;
/// assert_eq!(y.to_vec::<bool>()?, [true, false]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn isclose<'a, 'b>(
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'b>>,
    tolerance: Tolerance,
) -> Result<Array> {
    let (a, b) = (a.into(), b.into());
    let dtype = common_dtype(&[a, b]).to_inexact();
    let shape = common_shape("isclose", &[a, b])?;
    // Half types hold neither small tolerances nor the difference.
    let wide = dtype.accumulator();
    let (a, b) = (cast(&a.to(dtype, &shape)?, wide)?, cast(&b.to(dtype, &shape)?, wide)?);
    let bound = add(&multiply(&abs(&b)?, tolerance.relative)?, tolerance.absolute)?;
    let near = le(&abs(&subtract(&a, &b)?)?, &bound)?;
    // An infinite bound would let everything through.
    let finite = logical_and(&isfinite(&a)?, &isfinite(&b)?)?;
    let same = logical_and(&equal(&a, &b)?, &logical_not(&finite)?)?;
    let mut out = logical_or(&logical_and(&near, &finite)?, &same)?;
    if tolerance.equal_nan {
        out = logical_or(&out, &logical_and(&isnan(&a)?, &isnan(&b)?)?)?;
    }
    Ok(out)
}

/// Whether all elements are equal within a tolerance, as one bool.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert!(ops::allclose(&x, &x, ops::Tolerance::default())?.item::<bool>()?);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn allclose<'a, 'b>(
    a: impl Into<Operand<'a>>,
    b: impl Into<Operand<'b>>,
    tolerance: Tolerance,
) -> Result<Array> {
    all(&isclose(a, b, tolerance)?, (), false)
}

/// Whether both have one shape and equal elements, as one bool.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2], [2])?;
/// assert!(ops::array_equal(&x, &x, false)?.item::<bool>()?);
/// assert!(!ops::array_equal(&x, &Array::scalar(1), false)?.item::<bool>()?);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn array_equal(a: &Array, b: &Array, equal_nan: bool) -> Result<Array> {
    if a.shape() != b.shape() {
        return Ok(Array::scalar(false));
    }
    let mut same = equal(a, b)?;
    if equal_nan {
        same = logical_or(&same, &logical_and(&isnan(a)?, &isnan(b)?)?)?;
    }
    all(&same, (), false)
}
