//! Tensors of a file: from its fields, or from a file beside it.

use std::borrow::Cow;

use cupola_core::{Array, Device, Shape, Stream, device, ops};

use super::element::Element;
use super::error::Fault;
use super::minifloat;
use super::proto::{SparseTensorProto, TensorProto};
use super::value::Tensor;
use crate::numbers::{filled, is_small, shape_of};

pub use crate::folder::Folder;

/// The bytes of a tensor's external data.
fn external(folder: &Folder, tensor: &TensorProto, want: usize) -> Result<Vec<u8>, Fault> {
    let mut location = None;
    let (mut offset, mut length) = (0u64, None);
    for entry in &tensor.external_data {
        let number = || {
            let (key, value) = (&entry.key, &entry.value);
            value
                .parse::<u64>()
                .map_err(|_| Fault::invalid(format!("external data: {key} '{value}' is no number")))
        };
        match entry.key.as_str() {
            "location" => location = Some(&entry.value),
            "offset" => offset = number()?,
            "length" => length = Some(number()?),
            _ => {}
        }
    }
    let location = location.ok_or_else(|| Fault::invalid("external data have no location"))?;
    if length.is_some_and(|length| length != want as u64) {
        return Err(Fault::invalid(format!(
            "external data of {} bytes, the sizes want {want}",
            length.unwrap_or(0)
        )));
    }
    folder.read(location, offset, want)
}

/// The tensor of a message.
pub fn read(tensor: &TensorProto, folder: &Folder) -> Result<Tensor, Fault> {
    let element = Element::from_code(tensor.data_type.into())?;
    let (shape, count) = shape_of(&tensor.dims)?;
    if tensor.segment.is_some() {
        return Err(Fault::unsupported("tensors in segments are not read"));
    }
    let want = (count * element.bits()).div_ceil(8);
    let bytes: Cow<'_, [u8]> = match (&tensor.raw_data, tensor.data_location) {
        (_, 1) => external(folder, tensor, want)?.into(),
        (Some(raw), _) if !raw.is_empty() || want == 0 => in_order(raw[..].into(), element),
        _ => typed(tensor, element, want)?.into(),
    };
    if bytes.len() != want {
        return Err(Fault::invalid(format!(
            "{} bytes for {element}{shape}, which takes {want}",
            bytes.len()
        )));
    }
    let folded = is_small(count, element.dtype().is_float());
    let made = || from_bytes(&bytes, element, shape, count);
    let array = match folded {
        true => device::with_stream(Stream::of(Device::CPU), made)?,
        false => made()?,
    };
    Ok(Tensor { folded, ..Tensor::new(array, element)? })
}

/// Little-endian elements in the machine's order, or those in its order as little-endian ones.
pub(super) fn in_order(mut bytes: Cow<'_, [u8]>, element: Element) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "big") {
        let part = if element == Element::Complex64 { 4 } else { element.bits().div_ceil(8) };
        bytes.to_mut().chunks_mut(part).for_each(<[u8]>::reverse);
    }
    bytes
}

/// The elements of the field for their type, as bytes.
fn typed(tensor: &TensorProto, element: Element, want: usize) -> Result<Vec<u8>, Fault> {
    let bytes: Vec<u8> = match element {
        Element::Float | Element::Complex64 => {
            tensor.float_data.iter().flat_map(|v| v.to_ne_bytes()).collect()
        }
        Element::Double => tensor.double_data.iter().flat_map(|v| v.to_ne_bytes()).collect(),
        Element::Int64 => tensor.int64_data.iter().flat_map(|v| v.to_ne_bytes()).collect(),
        Element::Uint64 => tensor.uint64_data.iter().flat_map(|v| v.to_ne_bytes()).collect(),
        Element::Uint32 => {
            tensor.uint64_data.iter().flat_map(|&v| (v as u32).to_ne_bytes()).collect()
        }
        Element::Int32 => tensor.int32_data.iter().flat_map(|v| v.to_ne_bytes()).collect(),
        _ if element.bits() == 16 => {
            tensor.int32_data.iter().flat_map(|&v| (v as u16).to_ne_bytes()).collect()
        }
        _ => tensor.int32_data.iter().map(|&v| v as u8).collect(),
    };
    match bytes.len() == want {
        true => Ok(bytes),
        false => Err(Fault::invalid(format!(
            "{} bytes of elements of {element}, the sizes want {want}",
            bytes.len()
        ))),
    }
}

/// The array of packed or plain elements.
fn from_bytes(bytes: &[u8], element: Element, shape: Shape, count: usize) -> Result<Array, Fault> {
    // Only what has no more than a byte is taken apart.
    let bits = element.bits().min(8);
    let (each, mask) = (8 / bits, ((1u16 << bits) - 1) as u8);
    let code = |i: usize| bytes[i / each] >> (bits * (i % each)) & mask;
    if let Some(values) = minifloat::values(element) {
        let floats = filled(count, |i| values[usize::from(code(i))])?;
        return Ok(Array::from_slice(&floats, shape)?);
    }
    if element.is_packed_integer() {
        let sign = if element.dtype().is_signed() { 1u8 << (bits - 1) } else { 0 };
        let wide = filled(count, |i| (code(i) ^ sign).wrapping_sub(sign))?;
        return Ok(Array::from_bytes(&wide, element.dtype(), shape)?);
    }
    Ok(Array::from_bytes(bytes, element.dtype(), shape)?)
}

/// The whole tensor of a sparse one.
pub fn read_sparse(sparse: &SparseTensorProto, folder: &Folder) -> Result<Tensor, Fault> {
    let (Some(values), Some(indices)) = (&sparse.values, &sparse.indices) else {
        return Err(Fault::invalid("a sparse tensor without values or indices"));
    };
    let (values, indices) = (read(values, folder)?, read(indices, folder)?);
    let (shape, count) = shape_of(&sparse.dims)?;
    let places = indices.array.to_vec::<i64>()?;
    let found = values.array.size();
    let rank = shape.rank();
    let linear = indices.array.rank() == 1;
    let per = if linear { 1 } else { rank };
    if places.len() != found.saturating_mul(per) || count > MOST_SPARSE {
        return Err(Fault::invalid(format!(
            "a sparse tensor of {shape} with {found} values has indices {}",
            indices.array.shape()
        )));
    }
    let strides = shape.row_major();
    let mut flat = Vec::with_capacity(found);
    for at in 0..found {
        let place = if linear {
            places[at]
        } else {
            let row = &places[at * rank..(at + 1) * rank];
            let inside =
                row.iter().zip(shape.iter()).all(|(&i, &d)| i >= 0 && (i as u64) < d as u64);
            match inside {
                true => row.iter().zip(&strides).map(|(i, &s)| i * s as i64).sum(),
                false => -1,
            }
        };
        if place < 0 || place as u64 >= count as u64 {
            return Err(Fault::invalid(format!("index {at} of a sparse tensor leaves {shape}")));
        }
        flat.push(place);
    }
    let zeros = ops::zeros(count, values.array.dtype())?;
    let flat = Array::from_slice(&flat, [found])?;
    let array = ops::put_along_axis(&zeros, &flat, &values.array, 0)?;
    Tensor::new(ops::reshape(&array, &shape[..])?, values.element)
}

/// The most elements of a sparse tensor, which is held whole.
const MOST_SPARSE: usize = 1 << 31;
