//! Constants: in the model, or in a file of weights beside it.

use std::cell::RefCell;
use std::collections::HashMap;

use cupola_core::{Array, DType, Device, Shape, Stream, device};

use super::element::{Element, TEXT};
use super::proto::{self, Elements, Immediate, TensorType, TypeKind, ValueKind};
use super::value::{Tensor, Value};
use crate::error::Fault;
use crate::folder::Folder;
use crate::numbers::{filled, is_small, shape_of};
use crate::onnx::{Element as Onnx, float_values};

/// What the model's own folder is called in a model.
const MODEL_FOLDER: &str = "@model_path/";

/// The first number of the record before stored elements.
const SENTINEL: u32 = 0xDEAD_BEEF;

/// How many bytes the head of a file and each record take.
const RECORD: usize = 64;

/// How an array of a file is found: its file, its record's place, its shape and its element type.
type Place = (String, u64, Vec<usize>, i32);

/// The constants of a model, those of files read once.
#[derive(Default)]
pub struct Constants {
    folder: Folder,
    read: RefCell<HashMap<Place, Tensor>>,
}

/// The element type and shape of a tensor whose sizes are all known.
fn fixed(kind: &TensorType) -> Result<(Shape, usize), Fault> {
    let size = |dimension: &proto::Dimension| match &dimension.kind {
        Some(proto::DimensionKind::Constant(known)) => i64::try_from(known.size)
            .map_err(|_| Fault::invalid(format!("the size {} is no size", known.size))),
        _ => Err(Fault::invalid("the shape of a constant is open")),
    };
    shape_of(&kind.dimensions.iter().map(size).collect::<Result<Vec<_>, _>>()?)
}

impl Constants {
    /// Those of a model whose weights lie in this folder.
    pub fn of(folder: Folder) -> Self {
        Constants { folder, ..Constants::default() }
    }

    /// The value of a message.
    pub fn value(&self, value: &proto::Value) -> Result<Value, Fault> {
        let kind = value.r#type.as_ref().and_then(|t| t.kind.as_ref());
        match (&value.kind, kind) {
            (Some(ValueKind::Immediate(immediate)), kind) => match (&immediate.kind, kind) {
                (Some(Immediate::Tensor(tensor)), Some(TypeKind::Tensor(kind))) => {
                    immediate_tensor(tensor, kind)
                }
                (Some(Immediate::List(list)), _) => self.list(list),
                (Some(Immediate::Tuple(_) | Immediate::Dictionary(_)), _) => {
                    Err(Fault::unsupported("tuples and dictionaries are not read"))
                }
                (Some(_), _) => Err(Fault::invalid("its type is not that of a tensor")),
                (None, _) => Err(Fault::invalid("it has no value")),
            },
            (Some(ValueKind::BlobFile(blob)), Some(TypeKind::Tensor(kind))) => {
                Ok(self.stored(blob, kind)?.into())
            }
            (Some(_), _) => Err(Fault::invalid("its type is not that of a tensor")),
            (None, _) => Err(Fault::invalid("it has no value")),
        }
    }

    /// A list of texts, or of numbers as one array.
    fn list(&self, list: &proto::ListValue) -> Result<Value, Fault> {
        let mut texts = Vec::new();
        let mut numbers = Vec::new();
        for value in &list.values {
            let tensor = match &value.kind {
                Some(ValueKind::Immediate(proto::ImmediateValue {
                    kind: Some(Immediate::Tensor(tensor)),
                })) => tensor,
                _ => return Err(Fault::unsupported("lists of anything but texts and integers")),
            };
            match &tensor.elements {
                Some(Elements::Texts(held)) => texts.extend(held.values.iter().cloned()),
                Some(Elements::LongInts(held)) => numbers.extend(&held.values),
                Some(Elements::Ints(held)) => {
                    numbers.extend(held.values.iter().map(|&v| i64::from(v)))
                }
                _ => return Err(Fault::unsupported("lists of anything but texts and integers")),
            }
        }
        match (texts.is_empty(), numbers.is_empty()) {
            (false, false) => Err(Fault::invalid("a list of texts and of numbers")),
            (true, false) => {
                let array = Array::from_slice(&numbers, [numbers.len()])?;
                Ok(Tensor { array, folded: is_small(numbers.len(), false) }.into())
            }
            _ => Ok(Value::Texts(texts.into())),
        }
    }

    /// The tensor whose record lies at a place of a file.
    fn stored(&self, blob: &proto::BlobFileValue, kind: &TensorType) -> Result<Tensor, Fault> {
        let element = Element::from_code(kind.data_type)?;
        let (shape, count) = fixed(kind)?;
        let Some(location) = blob.file_name.strip_prefix(MODEL_FOLDER) else {
            return Err(Fault::invalid(format!(
                "external data '{}' do not lie in {MODEL_FOLDER}",
                blob.file_name
            )));
        };
        let place = (location.to_owned(), blob.offset, shape.to_vec(), element.code);
        if let Some(tensor) = self.read.borrow().get(&place) {
            return Ok(tensor.clone());
        }
        let wrong = |what: String| {
            Fault::invalid(format!("external data '{location}' at {}: {what}", blob.offset))
        };
        let record = self.folder.read(location, blob.offset, RECORD)?;
        let word = |at: usize| {
            let bytes: [u8; 4] = record[at..at + 4].try_into().unwrap_or_default();
            u32::from_le_bytes(bytes)
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if word(0) != SENTINEL {
            return Err(wrong(format!("{:#x} begins no record", word(0))));
        }
        if element.stored == 0 || word(4) != element.stored {
            return Err(wrong(format!(
                "elements of the kind {}, the model says {element}",
                word(4)
            )));
        }
        let want = (count * element.bits).div_ceil(8);
        if long(8) != want as u64 {
            return Err(wrong(format!(
                "{} bytes for {element}{shape}, which takes {want}",
                long(8)
            )));
        }
        let bytes = self.folder.read(location, long(16), want)?;
        let tensor = tensor(&bytes, element, shape, count)?;
        self.read.borrow_mut().insert(place, tensor.clone());
        Ok(tensor)
    }
}

/// The tensor or text of a value in the model.
fn immediate_tensor(tensor: &proto::TensorValue, kind: &TensorType) -> Result<Value, Fault> {
    let (shape, count) = fixed(kind)?;
    if kind.data_type == TEXT {
        return match &tensor.elements {
            Some(Elements::Texts(texts)) if texts.values.len() != count => {
                Err(Fault::invalid(format!("{} texts for {count} of {shape}", texts.values.len())))
            }
            Some(Elements::Texts(texts)) => Ok(match &texts.values[..] {
                [text] if shape.rank() == 0 => Value::Text(text.as_str().into()),
                texts => Value::Texts(texts.to_vec().into()),
            }),
            _ => Err(Fault::invalid("a text without one")),
        };
    }
    let element = Element::from_code(kind.data_type)?;
    let want = (count * element.bits).div_ceil(8);
    let cannot = |field: &str| Fault::invalid(format!("elements of {element} among the {field}"));
    let bytes = match &tensor.elements {
        None => Vec::new(),
        Some(Elements::Floats(floats)) => match element.dtype {
            DType::F32 => floats.values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            _ => return Err(cannot("floats")),
        },
        Some(Elements::Doubles(doubles)) => match element.dtype {
            DType::F64 => doubles.values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            _ => return Err(cannot("doubles")),
        },
        Some(Elements::Bools(bools)) => match element.dtype {
            DType::Bool => bools.values.iter().map(|&v| u8::from(v)).collect(),
            _ => return Err(cannot("bools")),
        },
        Some(Elements::LongInts(ints)) => match element.dtype {
            DType::I64 | DType::U64 => ints.values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            _ => return Err(cannot("long integers")),
        },
        Some(Elements::Ints(ints)) => match (element.dtype, element.bits) {
            (DType::I32 | DType::U32, _) => {
                ints.values.iter().flat_map(|v| v.to_le_bytes()).collect()
            }
            (DType::I16 | DType::U16, _) => {
                ints.values.iter().flat_map(|&v| (v as u16).to_le_bytes()).collect()
            }
            (DType::I8 | DType::U8, 8) => ints.values.iter().map(|&v| v as u8).collect(),
            _ => return Err(cannot("integers")),
        },
        Some(Elements::Bytes(bytes)) => bytes.values.clone(),
        Some(Elements::Texts(_)) => return Err(cannot("texts")),
    };
    if bytes.len() != want {
        return Err(Fault::invalid(format!(
            "{} bytes for {element}{shape}, which takes {want}",
            bytes.len()
        )));
    }
    Ok(self::tensor(&bytes, element, shape, count)?.into())
}

/// The tensor of elements as a file has them.
fn tensor(bytes: &[u8], element: Element, shape: Shape, count: usize) -> Result<Tensor, Fault> {
    let folded = is_small(count, element.dtype.is_float());
    let made = || from_bytes(bytes, element, shape, count);
    let array = match folded {
        true => device::with_stream(Stream::of(Device::CPU), made)?,
        false => made()?,
    };
    Ok(Tensor { array, folded })
}

fn from_bytes(bytes: &[u8], element: Element, shape: Shape, count: usize) -> Result<Array, Fault> {
    let small = match element.name {
        "fp8e4m3fn" => Some(Onnx::Float8E4M3FN),
        "fp8e5m2" => Some(Onnx::Float8E5M2),
        _ => None,
    };
    if let Some(values) = small.and_then(float_values) {
        let floats = filled(bytes.len(), |i| values[usize::from(bytes[i])])?;
        return Ok(Array::from_slice(&floats, shape)?);
    }
    if element.bits < 8 {
        let wide = unpacked(bytes, element.bits, count, element.dtype.is_signed())?;
        return Ok(Array::from_bytes(&wide, element.dtype, shape)?);
    }
    match cfg!(target_endian = "big") {
        true => {
            let mut bytes = filled(bytes.len(), |i| bytes[i])?;
            bytes.chunks_mut(element.bits / 8).for_each(<[u8]>::reverse);
            Ok(Array::from_bytes(&bytes, element.dtype, shape)?)
        }
        false => Ok(Array::from_bytes(bytes, element.dtype, shape)?),
    }
}

/// Integers of fewer than 8 bits, the first in the lowest bits, each as a byte. One may lie in two bytes.
pub fn unpacked(bytes: &[u8], bits: usize, count: usize, signed: bool) -> Result<Vec<u8>, Fault> {
    let mask = ((1u16 << bits) - 1) as u8;
    let sign = if signed { 1u8 << (bits - 1) } else { 0 };
    let one = |i: usize| {
        let at = i * bits;
        let low = u16::from(bytes.get(at / 8).copied().unwrap_or(0));
        let high = u16::from(bytes.get(at / 8 + 1).copied().unwrap_or(0));
        let value = ((low | high << 8) >> (at % 8)) as u8 & mask;
        (value ^ sign).wrapping_sub(sign)
    };
    filled(count, one)
}
