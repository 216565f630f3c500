//! Weights that are kept small: integers with scales, look-up tables, and what is not zero.

use cupola_core::ops::ScanOptions;

use super::super::constant::unpacked;
use super::prelude::*;
use super::quantize::{along, dequantized};

fn cast(n: &Node<'_>) -> Outcome {
    let to = n.element("output_dtype")?;
    let to = to.ok_or_else(|| Fault::invalid("the argument 'output_dtype' is missing"))?;
    one(ops::astype(n.x("source_val")?, to.dtype)?)
}

fn affine_dequantize(n: &Node<'_>) -> Outcome {
    let (data, axis) = (n.x("quantized_data")?, Some(n.int("axis")?));
    let zero = along(n.x("zero_point")?, data, axis)?;
    one(dequantized(data, &along(n.x("scale")?, data, axis)?, Some(&zero))?)
}

/// Blocks of `values`, each repeated over the elements of `shape` that it is for.
fn repeated(values: &Array, shape: &[usize]) -> Made {
    let mut y = values.clone();
    for (axis, &size) in shape.iter().enumerate() {
        let have = values.shape().get(axis).copied().unwrap_or(0);
        if have == 0 || !size.is_multiple_of(have) {
            return Err(Fault::invalid(format!("{} for {shape:?}", values.shape())));
        }
        // One block is broadcast, where it is as long as an axis it fits.
        if have > 1 && have < size {
            y = ops::repeat(&y, size / have, axis)?;
        }
    }
    Ok(y)
}

fn shifted(data: &Array, scale: &Array, offset: Option<&Array>) -> Made {
    if scale.rank() != data.rank() || offset.is_some_and(|offset| offset.shape() != scale.shape()) {
        return Err(Fault::invalid(format!("scale {} for {}", scale.shape(), data.shape())));
    }
    let offset = offset.map(|offset| repeated(offset, data.shape())).transpose()?;
    dequantized(data, &repeated(scale, data.shape())?, offset.as_ref())
}

fn blockwise_shift_scale(n: &Node<'_>) -> Outcome {
    one(shifted(n.x("data")?, n.x("scale")?, n.maybe("offset")?)?)
}

/// Bytes, which hold integers of so many bits.
fn bits(packed: &Array, bits: usize, count: usize) -> Made {
    let bytes = ops::astype(packed, DType::U8)?.to_vec::<u8>()?;
    let want = count.saturating_mul(bits).div_ceil(8);
    if bytes.len() != want {
        return Err(Fault::invalid(format!(
            "{} bytes hold {count} numbers of {bits} bits, which take {want}",
            bytes.len()
        )));
    }
    Ok(Array::from_slice(&unpacked(&bytes, bits, count, false)?, [count])?)
}

/// What older programs say of the shape.
fn given_shape(n: &Node<'_>) -> Result<(Vec<usize>, usize), Fault> {
    let shape = n.ints("shape")?;
    let (_, count) = numbers::shape_of(&shape)?;
    Ok((numbers::counts(&shape)?, count))
}

/// Vectors of tables `[blocks.., entries, size]` in place of indices, along an axis.
fn looked_up(indices: &Array, lut: &Array, axis: Option<i64>) -> Made {
    let rank = indices.rank();
    if rank == 0 || lut.rank() != rank + 2 || lut.shape().contains(&0) {
        return Err(Fault::invalid(format!("tables {} for {}", lut.shape(), indices.shape())));
    }
    let (entries, size) = (lut.shape()[rank], lut.shape()[rank + 1]);
    let axis = match axis {
        Some(axis) => numbers::axis(axis, rank)?,
        None if size == 1 => rank - 1,
        None => return Err(Fault::invalid(format!("vectors of {size} without an axis"))),
    };
    // All tables in a row, and for each index where its own begins.
    let blocks = &lut.shape()[..rank];
    let table = ops::reshape(lut, [blocks.iter().product::<usize>() * entries, size])?;
    let mut place = ops::astype(indices, DType::I32)?;
    if blocks.iter().product::<usize>() > 1 {
        let count: usize = blocks.iter().product();
        let starts = ops::reshape(&ops::arange_in(0, count, 1, DType::I32)?, blocks)?;
        let starts = ops::multiply(&repeated(&starts, indices.shape())?, entries as i32)?;
        place = ops::add(&place, &starts)?;
    }
    // [sizes.., size], whose last axis goes behind the one that it is filled along.
    let found = ops::take(&table, &place, 0)?;
    let found = ops::moveaxis(&found, -1, axis as isize + 1)?;
    let mut sizes = indices.shape().to_vec();
    sizes[axis] = sizes[axis].saturating_mul(size);
    Ok(ops::reshape(&found, sizes)?)
}

fn lut_to_dense(n: &Node<'_>) -> Outcome {
    let (indices, lut) = (n.x("indices")?, n.x("lut")?);
    if n.maybe_value("shape")?.is_none() {
        return one(looked_up(indices, lut, n.maybe_int("vector_axis")?)?);
    }
    let (shape, count) = given_shape(n)?;
    let entries = lut.size();
    if lut.rank() != 1 || !entries.is_power_of_two() || !(2..=256).contains(&entries) {
        return Err(Fault::invalid(format!("the table {} has no 2ⁿ entries", lut.shape())));
    }
    let places = bits(indices, entries.trailing_zeros() as usize, count)?;
    one(ops::reshape(&ops::take(lut, &places, 0)?, shape)?)
}

/// What is not zero at its places, and zeros.
fn dense(data: &Array, mask: &Array) -> Made {
    let flat = ops::astype(&ops::flatten(mask, 0, -1)?, DType::I32)?;
    if data.rank() != 1 {
        return Err(Fault::invalid(format!("{} for the mask {}", data.shape(), mask.shape())));
    }
    if data.is_empty() {
        return Ok(ops::zeros(mask.shape().clone(), data.dtype())?);
    }
    let options = ScanOptions { exclusive: true, ..ScanOptions::default() };
    let place = ops::minimum(&ops::cumsum(&flat, 0, options)?, data.size() as i64 - 1)?;
    let found = ops::take(data, &place, 0)?;
    let full = ops::where_(&ops::not_equal(&flat, 0)?, &found, 0)?;
    Ok(ops::reshape(&ops::astype(&full, data.dtype())?, mask.shape().to_vec())?)
}

fn sparse_to_dense(n: &Node<'_>) -> Outcome {
    let (data, mask) = (n.x("nonzero_data")?, n.x("mask")?);
    if n.maybe_value("shape")?.is_none() {
        return one(dense(data, mask)?);
    }
    let (shape, count) = given_shape(n)?;
    one(dense(data, &ops::reshape(&bits(mask, 1, count)?, shape)?)?)
}

/// The elements where a mask holds, of which there are `count`.
fn kept(full: &Array, mask: &Array, count: usize) -> Made {
    let places = ops::astype(&ops::flatten(mask, 0, -1)?, DType::Bool)?.to_vec::<bool>()?;
    let places: Vec<i64> =
        (0i64..).zip(places).filter_map(|(at, keep)| keep.then_some(at)).collect();
    if places.len() != count {
        return Err(Fault::invalid(format!("{count} elements for a mask of {}", places.len())));
    }
    Ok(ops::take(&ops::flatten(full, 0, -1)?, &crate::lowering::movement::known(&places)?, 0)?)
}

fn lut_to_sparse(n: &Node<'_>) -> Outcome {
    let (mask, data, lut) = (n.x("indices_mask")?, n.x("indices_nonzero_data")?, n.x("lut")?);
    let axis = n.maybe_int("vector_axis")?;
    let full = looked_up(&dense(data, mask)?, lut, axis)?;
    let size = lut.shape().last().copied().unwrap_or(1);
    let wide = match axis {
        Some(axis) => ops::repeat(mask, size, numbers::axis(axis, mask.rank())?)?,
        None => mask.clone(),
    };
    let found = kept(&full, &wide, data.size().saturating_mul(size))?;
    Ok(vec![wide.into(), found.into()])
}

fn sparse_blockwise_shift_scale(n: &Node<'_>) -> Outcome {
    let (mask, data) = (n.x("data_mask")?, n.x("nonzero_data")?);
    let full = shifted(&dense(data, mask)?, n.x("scale")?, n.maybe("offset")?)?;
    Ok(vec![mask.clone().into(), kept(&full, mask, data.size())?.into()])
}

pub const OPS: &[Entry] = &[
    ("constexpr_affine_dequantize", affine_dequantize),
    ("constexpr_blockwise_shift_scale", blockwise_shift_scale),
    ("constexpr_cast", cast),
    ("constexpr_lut_to_dense", lut_to_dense),
    ("constexpr_lut_to_sparse", lut_to_sparse),
    ("constexpr_sparse_blockwise_shift_scale", sparse_blockwise_shift_scale),
    ("constexpr_sparse_to_dense", sparse_to_dense),
];
