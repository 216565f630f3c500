//! Sums of weighted operands.

use super::operand::{Operand, cast, common_dtype, met};
use super::{add, divide, less, multiply, subtract, where_};
use crate::array::Array;
use crate::autocast;
use crate::dtype::{DType, Scalar};
use crate::error::Result;

/// start + weight·(end − start), and exactly `end` for a weight of 1.
///
/// # Shapes
/// All three broadcast.
///
/// # Dtypes
/// All three promote; integers and bool are taken as `float32`; half types are computed in `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[0.0f32, 10.0], [2])?;
/// assert_eq!(ops::lerp(&x, 20, 0.25)?.to_vec::<f32>()?, [5.0, 12.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn lerp<'a, 'b, 'c>(
    start: impl Into<Operand<'a>>,
    end: impl Into<Operand<'b>>,
    weight: impl Into<Operand<'c>>,
) -> Result<Array> {
    let operands = [start.into(), end.into(), weight.into()];
    let own = common_dtype(&operands).to_inexact();
    let [start, end, weight] = met("lerp", operands, own.accumulator())?;
    let way = subtract(&end, &start)?;
    let from_start = add(&start, &multiply(&weight, &way)?)?;
    if own.is_complex() {
        return cast(&from_start, own);
    }
    let from_end = subtract(&end, &multiply(&way, &subtract(1, &weight)?)?)?;
    cast(&where_(&less(&weight, 0.5)?, &from_start, &from_end)?, own)
}

/// x + value·a·b.
///
/// # Shapes
/// The arrays broadcast.
///
/// # Dtypes
/// All promote; half types are computed in `float32`; a value that is a float makes floats of integers.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(ops::addcmul(&x, &x, &x, 0.5)?.to_vec::<f32>()?, [1.5, 4.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn addcmul<'a>(
    x: &Array,
    a: &Array,
    b: &Array,
    value: impl Into<Operand<'a>>,
) -> Result<Array> {
    autocast::apply("addcmul", [x, a, b], |[x, a, b]| {
        let operands = [x.into(), a.into(), b.into(), value.into()];
        let own = common_dtype(&operands);
        added("addcmul", operands, own, |a, b| multiply(a, b))
    })
}

/// x + value·a/b.
///
/// # Shapes
/// The arrays broadcast.
///
/// # Dtypes
/// All promote; integers and bool are taken as `float32`; half types are computed in `float32`.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(ops::addcdiv(&x, &x, &x, 0.5)?.to_vec::<f32>()?, [1.5, 2.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn addcdiv<'a>(
    x: &Array,
    a: &Array,
    b: &Array,
    value: impl Into<Operand<'a>>,
) -> Result<Array> {
    autocast::apply("addcdiv", [x, a, b], |[x, a, b]| {
        let operands = [x.into(), a.into(), b.into(), value.into()];
        let own = common_dtype(&operands).to_inexact();
        added("addcdiv", operands, own, |a, b| divide(a, b))
    })
}

/// The first operand plus the last one times what `join` makes of the others, in a dtype.
fn added(
    op: &'static str,
    operands: [Operand<'_>; 4],
    dtype: DType,
    join: impl Fn(&Array, &Array) -> Result<Array>,
) -> Result<Array> {
    let is_one = matches!(operands[3], Operand::Scalar(value) if is_one(value));
    let [x, a, b, value] = met(op, operands, dtype.accumulator())?;
    let joined = join(&a, &b)?;
    let joined = if is_one { joined } else { multiply(&joined, &value)? };
    cast(&add(&x, &joined)?, dtype)
}

fn is_one(value: Scalar) -> bool {
    value.to_f64() == 1.0
}
