//! Elements by strides of one's own.

use super::{flatten, reshape};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::operand::Sizes;
use crate::ops::{add, iota, multiply, take};
use crate::prim::record::slice_axis;
use crate::shape::{Shape, is_row_major};

/// The elements, counted in row-major order, that `strides` and an offset reach: element `i, j, ..`
/// is element `offset + i·strides[0] + j·strides[1] + ..` of the flattened array.
///
/// # Errors
/// Where there is not one stride an axis, or where an element is not in the array.
///
/// # Example
/// ```
/// use cupola::{Array, ops};
/// let x = Array::from_slice(&[1, 2, 3, 4], [4])?;
/// let windows = ops::as_strided(&x, [3, 2], [1, 1], 0)?;
/// assert_eq!(windows.to_vec::<i32>()?, [1, 2, 2, 3, 3, 4]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn as_strided(
    x: &Array,
    shape: impl Into<Shape>,
    strides: impl Into<Sizes>,
    offset: usize,
) -> Result<Array> {
    let (shape, strides) = (shape.into(), strides.into().0);
    let op = "as_strided";
    if strides.len() != shape.rank() {
        return Err(Error::argument(
            op,
            format!("strides {:?} are not one for each axis of {shape}", &strides[..]),
        ));
    }
    shape.checked_size(op, x.dtype())?;
    let reached = shape.iter().zip(&strides).try_fold((offset, offset), |(low, high), (&d, &s)| {
        let reach = s.unsigned_abs().checked_mul(d.saturating_sub(1))?;
        match s < 0 {
            true => Some((low.checked_sub(reach)?, high)),
            false => Some((low, high.checked_add(reach)?)),
        }
    });
    let inside = reached.is_some_and(|(_, high)| high < x.size());
    if !inside && shape.size() > 0 {
        return Err(Error::argument(
            op,
            format!(
                "shape {shape}, strides {:?} and offset {offset} reach outside of {}",
                &strides[..],
                x.aval()
            ),
        ));
    }
    let flat = flatten(x, 0, -1)?;
    if is_row_major(&shape, &strides) {
        let start = if shape.size() == 0 { 0 } else { offset };
        return reshape(&slice_axis(&flat, 0, start, shape.size())?, shape);
    }
    let dtype = if x.size() <= i32::MAX as usize { DType::U32 } else { DType::I64 };
    let mut places = crate::ops::full(shape.clone(), offset, dtype)?;
    for (axis, &stride) in strides.iter().enumerate() {
        if stride != 0 && shape[axis] > 1 {
            // Unsigned numbers wrap, so a negative stride counts down, too.
            let step = multiply(&iota(shape.clone(), axis, dtype)?, stride as i64)?;
            places = add(&places, &step)?;
        }
    }
    take(&flat, &places, 0)
}
