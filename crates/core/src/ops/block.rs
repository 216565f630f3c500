//! Products of chosen matrices, and of chosen parts of matrices.

use super::gather::expect_integers;
use super::operand::cast;
use super::{
    equal, expand_dims, greater_equal, iota, less, logical_and, matmul, multiply, repeat, reshape,
    take, where_,
};
use crate::array::Array;
use crate::autocast;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::prim::record::slice_axis;
use crate::shape::Shape;

/// The dtype that two operands multiply in.
fn float_dtype(op: &'static str, a: &Array, b: &Array) -> Result<DType> {
    let dtype = a.dtype().promote(b.dtype());
    if dtype.is_inexact() {
        return Ok(dtype);
    }
    let detail = format!("takes floats and complex numbers, not {} and {}", a.aval(), b.aval());
    Err(Error::dtype(op, detail))
}

/// The products of the matrices of `a` and of `b` that indices choose; none stand for all, in order.
///
/// # Shapes
/// Indices count the matrices of an operand through, over all axes but the last two. The shapes of
/// the indices broadcast, and the last two axes multiply, as in [`matmul`].
///
/// # Errors
/// Where indices are not integers or the operands neither floats nor complex numbers; when it runs where an index is
/// out of range.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops};
/// let (x, y) = (ops::ones([3, 2, 2], DType::F32)?, ops::ones([4, 2, 5], DType::F32)?);
/// let at = Array::from_slice(&[0, 2], [2])?;
/// assert_eq!(ops::gather_mm(&x, &y, Some(&at), Some(&at))?.shape()[..], [2, 2, 5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn gather_mm(
    a: &Array,
    b: &Array,
    a_indices: Option<&Array>,
    b_indices: Option<&Array>,
) -> Result<Array> {
    autocast::apply("gather_mm", [a, b], |[a, b]| {
        let op = "gather_mm";
        let dtype = float_dtype(op, a, b)?;
        if a.rank() == 0 || b.rank() == 0 {
            return Err(Error::shape(op, format!("{} and {} do not multiply", a.aval(), b.aval())));
        }
        // A vector is a row on the left and a column on the right.
        let left = if a.rank() == 1 { expand_dims(a, 0)? } else { a.clone() };
        let right = if b.rank() == 1 { expand_dims(b, 1)? } else { b.clone() };
        let left = chosen(op, &cast(&left, dtype)?, a_indices)?;
        let right = chosen(op, &cast(&right, dtype)?, b_indices)?;
        let mut out = matmul(&left, &right)?;
        if b.rank() == 1 {
            out = super::squeeze(&out, -1)?;
        }
        if a.rank() == 1 {
            super::squeeze(&out, if b.rank() == 1 { -1 } else { -2 })
        } else {
            Ok(out)
        }
    })
}

/// The matrices of `x` at `indices`, counted over all axes but the last two.
pub(super) fn chosen(op: &'static str, x: &Array, indices: Option<&Array>) -> Result<Array> {
    let Some(indices) = indices else {
        return Ok(x.clone());
    };
    expect_integers(op, indices)?;
    let lead = x.rank() - 2;
    let count: usize = x.shape()[..lead].iter().product();
    take(&reshape(x, [count, x.shape()[lead], x.shape()[lead + 1]])?, indices, 0)
}

/// The products of parts of two matrices: for each pair of `segments` the product over the inner
/// places from its first up to but without its second number.
///
/// # Shapes
/// a `[m, k]`, b `[k, n]` and segments `[.., 2]` give `[.., m, n]`.
///
/// # Errors
/// Where segments are not pairs of integers, or the operands not matrices of floats or complex numbers.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops};
/// let (x, y) = (ops::ones([1, 6], DType::F32)?, ops::ones([6, 1], DType::F32)?);
/// let segments = Array::from_slice(&[0, 2, 2, 6], [2, 2])?;
/// assert_eq!(ops::segmented_mm(&x, &y, &segments)?.to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn segmented_mm(a: &Array, b: &Array, segments: &Array) -> Result<Array> {
    autocast::apply("segmented_mm", [a, b], |[a, b]| {
        let op = "segmented_mm";
        let dtype = float_dtype(op, a, b)?;
        if a.rank() != 2 || b.rank() != 2 {
            return Err(Error::shape(
                op,
                format!("takes matrices, not {} and {}", a.aval(), b.aval()),
            ));
        }
        if segments.shape().last() != Some(&2) {
            return Err(Error::shape(op, format!("segments {} are not pairs", segments.aval())));
        }
        expect_integers(op, segments)?;
        let segments = expand_dims(&cast(segments, DType::I32)?, [-1, -2])?;
        let axis = segments.rank() - 3;
        let bound = |i| super::squeeze(&slice_axis(&segments, axis, i, 1)?, axis);
        let place = iota(a.shape()[1], 0, DType::I32)?;
        let inside = logical_and(&greater_equal(&place, &bound(0)?)?, &less(&place, &bound(1)?)?)?;
        matmul(&where_(&inside, &cast(a, dtype)?, 0)?, &cast(b, dtype)?)
    })
}

/// Which blocks of a product's matrices count, and how much.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockMasks<'a> {
    /// For the blocks of the product.
    pub out: Option<&'a Array>,
    /// For the blocks of the left operand.
    pub left: Option<&'a Array>,
    /// For the blocks of the right operand.
    pub right: Option<&'a Array>,
}

/// The matrix product of matrices whose square blocks are masked: left out where a mask is false or
/// 0, and multiplied by it where it is a number.
///
/// # Shapes
/// As [`matmul`]; a mask has an element for each block of `size` by `size`, the last ones cut off.
///
/// # Errors
/// Where a mask does not fit, or the operands are not floats.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops};
/// let x = ops::ones([2, 2], DType::F32)?;
/// let out = Array::from_slice(&[true, false, false, true], [2, 2])?;
/// let masks = ops::BlockMasks { out: Some(&out), ..Default::default() };
/// assert_eq!(ops::block_masked_mm(&x, &x, 1, masks)?.to_vec::<f32>()?, [2.0, 0.0, 0.0, 2.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn block_masked_mm(a: &Array, b: &Array, size: usize, masks: BlockMasks<'_>) -> Result<Array> {
    autocast::apply("block_masked_mm", [a, b], |[a, b]| {
        let op = "block_masked_mm";
        let dtype = float_dtype(op, a, b)?;
        if a.rank() < 2 || b.rank() < 2 || size == 0 {
            return Err(Error::shape(
                op,
                format!("takes matrices in blocks, not {} and {} in {size}", a.aval(), b.aval()),
            ));
        }
        let left = masked(&cast(a, dtype)?, masks.left, size)?;
        let right = masked(&cast(b, dtype)?, masks.right, size)?;
        masked(&matmul(&left, &right)?, masks.out, size)
    })
}

/// `x` with its blocks masked.
fn masked(x: &Array, mask: Option<&Array>, size: usize) -> Result<Array> {
    let Some(mask) = mask else {
        return Ok(x.clone());
    };
    let rank = x.rank();
    let (m, n) = (x.shape()[rank - 2], x.shape()[rank - 1]);
    let blocks = [m.div_ceil(size), n.div_ceil(size)];
    let lead = |s: &Shape| Shape::from(&s[..s.rank() - 2]);
    let fits = mask.rank() >= 2
        && mask.shape()[mask.rank() - 2..] == blocks
        && lead(mask.shape()).broadcast(&lead(x.shape()), "block_masked_mm").is_ok();
    if !fits {
        return Err(Error::shape(
            "block_masked_mm",
            format!("mask {} does not fit the {blocks:?} blocks of {}", mask.aval(), x.aval()),
        ));
    }
    let (row, column) = (mask.rank() - 2, mask.rank() - 1);
    let wide = slice_axis(&repeat(mask, size, row)?, row, 0, m)?;
    let wide = slice_axis(&repeat(&wide, size, column)?, column, 0, n)?;
    if mask.dtype() == DType::Bool {
        return where_(&wide, x, 0);
    }
    where_(&equal(&wide, 0)?, 0, &multiply(x, &cast(&wide, x.dtype())?)?)
}
