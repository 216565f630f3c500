//! Arrays under names in one file: the safetensors format, as the `safetensors` crate reads it.
//!
//! The same arrays always give the same bytes: tensors are sorted by the width of their dtype and
//! by name, and nothing of the machine or the time is written.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;

use cupola_core::backend::{Buffer, reserve};
use cupola_core::{Array, Aval, DType, Error, MAX_RANK, Result};
use half::f16;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::{array_in, little_endian};

/// What stands in front of the header: its length.
const PREFIX: u64 = 8;

/// The longest header that is read: room for 100,000 tensors, and read in well under a second.
const MAX_HEADER: u64 = 16 << 20;

/// The header's entry that is no tensor.
const METADATA: &str = "__metadata__";

/// Writes `tensors` and `metadata` to a file.
///
/// A file that was there is whole at any time: it is a [`Replacement`](super::Replacement).
///
/// # Errors
/// Where an array cannot be computed or the file cannot be written; a file that was there is then
/// as before.
///
/// # Example
/// ```
/// use std::collections::BTreeMap;
/// use cupola::{Array, io::safetensors};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.safetensors");
/// let tensors = BTreeMap::from([("x".to_owned(), Array::from_slice(&[1.0f32, 2.0], [2])?)]);
/// safetensors::save(&path, &tensors, &BTreeMap::new())?;
/// let (loaded, _) = safetensors::load(&path)?;
/// assert_eq!(loaded["x"].to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn save(
    path: impl AsRef<Path>,
    tensors: &BTreeMap<String, Array>,
    metadata: &BTreeMap<String, String>,
) -> Result<()> {
    let path = path.as_ref();
    let mut new = super::Replacement::new(path)?;
    write(new.file(), path, tensors, metadata)?;
    new.keep()
}

/// Writes `tensors` and `metadata` as the content of a file, which errors call `path`.
///
/// # Errors
/// Where an array cannot be computed or the writer fails.
///
/// # Example
/// ```
/// use std::collections::BTreeMap;
/// use cupola::{Array, io::safetensors};
/// let tensors = BTreeMap::from([("x".to_owned(), Array::scalar(1.0f32))]);
/// let mut bytes = Vec::new();
/// safetensors::write(&mut bytes, "memory", &tensors, &BTreeMap::new())?;
/// let (read, _) = safetensors::read(&mut &bytes[..], "memory", bytes.len() as u64)?;
/// assert_eq!(read["x"].item::<f32>()?, 1.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn write(
    writer: &mut impl Write,
    path: impl AsRef<Path>,
    tensors: &BTreeMap<String, Array>,
    metadata: &BTreeMap<String, String>,
) -> Result<()> {
    let path = path.as_ref();
    let arrays: Vec<Array> = tensors.values().cloned().collect();
    cupola_core::eval(&arrays)?;
    let mut sorted: Vec<(&String, &Array)> = tensors.iter().collect();
    sorted.sort_by_key(|(name, array)| (std::cmp::Reverse(array.dtype().size()), *name));
    let header = header(&sorted, metadata).map_err(|error| Error::io(path, error))?;
    let failed = |cause: std::io::Error| Error::io(path, format!("cannot be written: {cause}"));
    writer.write_all(&(header.len() as u64).to_le_bytes()).map_err(failed)?;
    writer.write_all(&header).map_err(failed)?;
    for (_, array) in sorted {
        writer.write_all(&little_endian(array.to_bytes()?, array.dtype())).map_err(failed)?;
    }
    Ok(())
}

/// The header, padded to whole words. The crate's own writer keeps metadata in a hash map, whose
/// order changes from run to run.
fn header(
    tensors: &[(&String, &Array)],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>, String> {
    let failed = |error: serde_json::Error| error.to_string();
    let mut entries = Vec::with_capacity(tensors.len() + 1);
    if !metadata.is_empty() {
        let metadata = serde_json::to_string(metadata).map_err(failed)?;
        entries.push(format!("\"{METADATA}\":{metadata}"));
    }
    let mut offset = 0;
    for (name, array) in tensors {
        if name.as_str() == METADATA {
            return Err(format!("no tensor can be called {METADATA}"));
        }
        let end = offset + array.size() * array.dtype().size();
        let info = TensorInfo {
            dtype: stored(array.dtype()).ok_or_else(|| {
                format!("'{name}', {}, is of a dtype that the format has not", array.aval())
            })?,
            shape: array.shape().to_vec(),
            data_offsets: (offset, end),
        };
        let name = serde_json::to_string(name).map_err(failed)?;
        entries.push(format!("{name}:{}", serde_json::to_string(&info).map_err(failed)?));
        offset = end;
    }
    let mut header = format!("{{{}}}", entries.join(",")).into_bytes();
    header.resize(header.len().next_multiple_of(PREFIX as usize), b' ');
    Ok(header)
}

/// Reads every tensor of a file, and its metadata.
///
/// # Dtypes
/// Numbers of 8 bits with four of exponent (`F8_E4M3`) come as `uint8`, which [`from_fp8`](crate::ops::from_fp8) takes,
/// and so do powers of two (`F8_E8M0`), which are scales. `F8_E5M2`, `F8_E4M3FNUZ` and `F8_E5M2FNUZ` come as `float16`.
///
/// # Errors
/// Where the file cannot be read, is cut short or damaged, or holds a dtype that arrays do not have;
/// the text names the file and the place in it.
///
/// # Example
/// See [`save`].
pub fn load(path: impl AsRef<Path>) -> Result<(BTreeMap<String, Array>, BTreeMap<String, String>)> {
    let memory = super::content(&path)?;
    view(&memory, 0..memory.bytes(), path)
}

/// The tensors of a file's content, which lies at these bytes of `memory`, and its metadata. They stay where they
/// are, but for what is not as arrays lie: truth values, and elements that are not aligned.
///
/// # Errors
/// As [`load`].
///
/// # Example
/// ```
/// use cupola::io::{content, safetensors};
/// # use std::collections::BTreeMap;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.safetensors");
/// # let tensors = BTreeMap::from([("x".to_owned(), cupola::Array::scalar(1.0f32))]);
/// # safetensors::save(&path, &tensors, &BTreeMap::new())?;
/// let memory = content(&path)?;
/// let (tensors, _) = safetensors::view(&memory, 0..memory.bytes(), &path)?;
/// assert_eq!(tensors["x"].item::<f32>()?, 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn view(
    memory: &Buffer,
    bytes: Range<usize>,
    path: impl AsRef<Path>,
) -> Result<(BTreeMap<String, Array>, BTreeMap<String, String>)> {
    let path = path.as_ref();
    let (start, length) = (bytes.start, bytes.len() as u64);
    let content = memory.host().and_then(|all| all.get(bytes));
    let mut content = content.ok_or_else(|| Error::io(path, "is outside of the memory"))?;
    let index = Index::read(&mut content, path, length)?;
    index.tensors(path, |at, _, dtype, shape| array_in(memory, start + at, dtype, shape))
}

/// Reads every tensor of the content of a file of `length` bytes, and its metadata; errors call the
/// file `path`.
///
/// # Errors
/// As [`load`].
///
/// # Example
/// See [`write()`].
pub fn read(
    file: &mut impl Read,
    path: impl AsRef<Path>,
    length: u64,
) -> Result<(BTreeMap<String, Array>, BTreeMap<String, String>)> {
    let path = path.as_ref();
    let index = Index::read(file, path, length)?;
    let failed = |cause: std::io::Error| Error::io(path, format!("cannot be read: {cause}"));
    // The tensors lie side by side in their order: the header's check saw to that.
    index.tensors(path, |_, name, dtype, shape| {
        let length = Aval::new(shape, dtype).bytes();
        let mut bytes = reserve(length, name)?;
        bytes.resize(length, 0);
        file.read_exact(&mut bytes).map_err(failed)?;
        array_in(&Buffer::lent(bytes), 0, dtype, shape)
    })
}

/// What stands before the tensors.
struct Index {
    metadata: Metadata,
    /// Where the tensors start.
    start: u64,
}

impl Index {
    /// Reads the start of a file of `length` bytes.
    fn read(file: &mut impl Read, path: &Path, length: u64) -> Result<Index> {
        // One line, whatever names the file holds.
        let wrong = |detail: String| Error::io(path, detail.replace(['\n', '\r'], " "));
        let failed = |cause: std::io::Error| wrong(format!("cannot be read: {cause}"));
        let mut prefix = [0; PREFIX as usize];
        if length < PREFIX {
            return Err(wrong(format!("byte 0: {length} bytes are no safetensors file")));
        }
        file.read_exact(&mut prefix).map_err(failed)?;
        let size = u64::from_le_bytes(prefix);
        if size > MAX_HEADER {
            return Err(wrong(format!(
                "byte 0: a header of {size} bytes is longer than the limit of {MAX_HEADER}"
            )));
        }
        if size > length - PREFIX {
            return Err(wrong(format!(
                "byte 0: a header of {size} bytes does not fit the file of {length} bytes"
            )));
        }
        let mut header = vec![0; size as usize];
        file.read_exact(&mut header).map_err(failed)?;
        let metadata: Metadata = serde_json::from_slice(&header)
            .and_then(|Unique| serde_json::from_slice(&header))
            .map_err(|error| wrong(format!("byte {PREFIX}: damaged header: {error}")))?;
        let (start, data) = (PREFIX + size, metadata.data_len() as u64);
        if data != length - start {
            return Err(wrong(format!(
                "byte {start}: the header tells of {data} bytes, {} follow",
                length - start
            )));
        }
        Ok(Index { metadata, start })
    }

    /// The tensors as `array` gives them, by where they start in the file, name, dtype and shape; and the metadata.
    fn tensors(
        &self,
        path: &Path,
        mut array: impl FnMut(usize, &str, DType, &[usize]) -> Result<Array>,
    ) -> Result<(BTreeMap<String, Array>, BTreeMap<String, String>)> {
        let mut tensors = BTreeMap::new();
        for name in self.metadata.offset_keys() {
            let Some(info) = self.metadata.info(&name) else { continue };
            let at = self.start + info.data_offsets.0 as u64;
            let shape = info.shape.as_slice();
            let wrong = |detail: String| {
                Error::io(path, format!("byte {at}: {name} {detail}").replace(['\n', '\r'], " "))
            };
            if shape.len() > MAX_RANK {
                let axes = shape.len();
                return Err(wrong(format!("has {axes} axes, where {MAX_RANK} are the most")));
            }
            let found = match held(info.dtype) {
                Some(Held::As(dtype)) => array(at as usize, &name, dtype, shape)?,
                Some(Held::Converted(float)) => {
                    halves(float, &array(at as usize, &name, DType::U8, shape)?)?
                }
                None => return Err(wrong(format!("is {}: no such dtype", info.dtype))),
            };
            tensors.insert(name, found);
        }
        let metadata = self.metadata.metadata().iter().flatten();
        Ok((tensors, metadata.map(|(name, value)| (name.clone(), value.clone())).collect()))
    }
}

/// A header, and the metadata in it, in which no name is there twice: of two tensors the crate's own reader would
/// take the last without a word.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Unique)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Unique;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == METADATA {
                map.next_value::<Option<Unique>>()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
            if let Some(name) = names.replace(name) {
                return Err(A::Error::custom(format!("'{name}' is there twice")));
            }
        }
        Ok(Unique)
    }
}

/// The format's name of a dtype, where it has one.
fn stored(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::C32 => return None,
        DType::C64 => Dtype::C64,
    })
}

/// What becomes of a dtype of the format.
enum Held {
    /// An array of this dtype.
    As(DType),
    /// An array of `float16`, which holds all the numbers of this dtype of 8 bits.
    Converted(fn(u8) -> f16),
}

/// What becomes of a dtype of the format; some have no array.
fn held(dtype: Dtype) -> Option<Held> {
    match dtype {
        // As MLX: what `from_fp8` and the modes of `dequantize` take.
        Dtype::F8_E4M3 | Dtype::F8_E8M0 => Some(Held::As(DType::U8)),
        // These are the first bits of a float16.
        Dtype::F8_E5M2 => Some(Held::Converted(|byte| f16::from_bits(u16::from(byte) << 8))),
        Dtype::F8_E4M3FNUZ => Some(Held::Converted(unsigned_zero::<3>)),
        Dtype::F8_E5M2FNUZ => Some(Held::Converted(unsigned_zero::<2>)),
        _ => DType::ALL.into_iter().find(|d| stored(*d) == Some(dtype)).map(Held::As),
    }
}

/// A number of 8 bits with so many bits behind the point, one zero, one NaN and no infinity: the FNUZ types of
/// [StableHLO](https://openxla.org/stablehlo/spec).
fn unsigned_zero<const BITS: u32>(byte: u8) -> f16 {
    if byte == 0x80 {
        return f16::NAN;
    }
    let (exponent, rest) = (u32::from(byte & 0x7f) >> BITS, u32::from(byte) & ((1 << BITS) - 1));
    // Half of the exponents are below one.
    let bias = 1 << (6 - BITS);
    let (whole, exponent) = if exponent == 0 { (0, 1) } else { (1 << BITS, exponent) };
    let size = (whole + rest) as f32 * 2f32.powi(exponent as i32 - bias - BITS as i32);
    f16::from_f32(if byte & 0x80 == 0 { size } else { -size })
}

/// The numbers whose bytes these are.
fn halves(float: fn(u8) -> f16, bytes: &Array) -> Result<Array> {
    let mut numbers = reserve(bytes.size() * DType::F16.size(), "an array of a file")?;
    numbers.extend(bytes.to_bytes()?.into_iter().flat_map(|byte| float(byte).to_ne_bytes()));
    Array::from_bytes(&numbers, DType::F16, bytes.shape())
}
