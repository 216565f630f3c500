//! Writing.

use std::io::Write;
use std::path::Path;

use cupola_core::{Array, DType, Error, Result};

use super::{
    ALIGNMENT, ALIGNMENT_KEY, MAGIC, Metadata, NUMBERS, PLAIN, Tensors, VERSION, Value, kind,
};
use crate::io::little_endian;

/// Writes `tensors` of plain numbers and `metadata` to a file.
///
/// A file that was there is whole at any time: it is a [`Replacement`](crate::io::Replacement).
///
/// # Errors
/// Where an array cannot be computed, is of a dtype that the format does not have (`bool`, those without a
/// sign, `complex64`) or the file cannot be written; a file that was there is then as before.
///
/// # Example
/// ```
/// use std::collections::BTreeMap;
/// use cupola::{Array, io::gguf::{self, Value}};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.gguf");
/// let tensors = BTreeMap::from([("x".to_owned(), Array::from_slice(&[1.0f32, 2.0], [2])?)]);
/// let name = ("general.name".to_owned(), Value::Text("two".to_owned()));
/// gguf::save(&path, &tensors, &BTreeMap::from([name]))?;
/// let (loaded, _) = gguf::load(&path)?;
/// assert_eq!(loaded["x"].to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn save(path: impl AsRef<Path>, tensors: &Tensors, metadata: &Metadata) -> Result<()> {
    let path = path.as_ref();
    let mut new = crate::io::Replacement::new(path)?;
    write(new.file(), path, tensors, metadata)?;
    new.keep()
}

/// Writes `tensors` and `metadata` as the content of a file, which errors call `path`.
///
/// # Errors
/// As [`save`].
///
/// # Example
/// ```
/// use std::collections::BTreeMap;
/// use cupola::{Array, io::gguf};
/// let tensors = BTreeMap::from([("x".to_owned(), Array::scalar(1.0f32))]);
/// let mut bytes = Vec::new();
/// gguf::write(&mut bytes, "memory", &tensors, &BTreeMap::new())?;
/// let length = bytes.len() as u64;
/// let (read, _) = gguf::read(std::io::Cursor::new(bytes), "memory", length)?;
/// assert_eq!(read["x"].item::<f32>()?, 1.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn write(
    writer: &mut impl Write,
    path: impl AsRef<Path>,
    tensors: &Tensors,
    metadata: &Metadata,
) -> Result<()> {
    let path = path.as_ref();
    let arrays: Vec<Array> = tensors.values().cloned().collect();
    cupola_core::eval(&arrays)?;
    let head = header(tensors, metadata)?;
    let failed = |cause: std::io::Error| Error::io(path, format!("cannot be written: {cause}"));
    writer.write_all(&head).map_err(failed)?;
    for array in arrays {
        let mut bytes = little_endian(array.to_bytes()?, array.dtype());
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
        writer.write_all(&bytes).map_err(failed)?;
    }
    Ok(())
}

/// All before the tensors' data, padded to where it starts.
fn header(tensors: &Tensors, metadata: &Metadata) -> Result<Vec<u8>> {
    let mut head = MAGIC.to_vec();
    head.extend(VERSION.to_le_bytes());
    head.extend((tensors.len() as u64).to_le_bytes());
    head.extend((metadata.len() as u64).to_le_bytes());
    for (name, value) in metadata {
        if name == ALIGNMENT_KEY {
            let detail = format!("{name} is {ALIGNMENT}: no setting can say otherwise");
            return Err(Error::argument("gguf", detail));
        }
        text(&mut head, name);
        head.extend(kind_of(name, value)?.to_le_bytes());
        setting(&mut head, name, value)?;
    }
    let mut offset = 0u64;
    for (name, array) in tensors {
        let Some((code, _)) = PLAIN.iter().find(|(_, dtype)| *dtype == array.dtype()) else {
            let detail = format!("{name} is {}: the format has no such tensors", array.aval());
            return Err(Error::dtype("gguf", detail));
        };
        text(&mut head, name);
        head.extend((array.rank() as u32).to_le_bytes());
        // The innermost axis comes first.
        array.shape().iter().rev().for_each(|&size| head.extend((size as u64).to_le_bytes()));
        head.extend(code.to_le_bytes());
        head.extend(offset.to_le_bytes());
        let bytes = (array.size() * array.dtype().size()) as u64;
        offset += bytes.next_multiple_of(ALIGNMENT);
    }
    head.resize(head.len().next_multiple_of(ALIGNMENT as usize), 0);
    Ok(head)
}

fn text(head: &mut Vec<u8>, text: &str) {
    head.extend((text.len() as u64).to_le_bytes());
    head.extend(text.as_bytes());
}

/// The format's number of what a setting is.
fn kind_of(name: &str, value: &Value) -> Result<u32> {
    match value {
        Value::Text(_) => Ok(kind::TEXT),
        Value::List(_) => Ok(kind::LIST),
        Value::Array(array) if array.rank() == 0 => number(name, array.dtype()),
        Value::Array(array) if array.rank() == 1 => Ok(kind::LIST),
        Value::Array(array) => {
            let detail = format!("{name} is {}: settings have at most one axis", array.aval());
            Err(Error::shape("gguf", detail))
        }
    }
}

/// The format's number of a dtype in the metadata.
fn number(name: &str, dtype: DType) -> Result<u32> {
    let known = NUMBERS.iter().find(|(_, own)| *own == dtype);
    known.map(|(code, _)| *code).ok_or_else(|| {
        Error::dtype("gguf", format!("{name} is of {dtype}: the format has no such settings"))
    })
}

fn setting(head: &mut Vec<u8>, name: &str, value: &Value) -> Result<()> {
    match value {
        Value::Text(value) => text(head, value),
        Value::Array(array) => {
            if array.rank() == 1 {
                head.extend(number(name, array.dtype())?.to_le_bytes());
                head.extend((array.size() as u64).to_le_bytes());
            }
            head.extend(little_endian(array.to_bytes()?, array.dtype()));
        }
        Value::List(values) => {
            let kinds: Vec<u32> =
                values.iter().map(|value| kind_of(name, value)).collect::<Result<_>>()?;
            let first = kinds.first().copied().unwrap_or(kind::TEXT);
            if kinds.iter().any(|kind| *kind != first) || !matches!(first, kind::TEXT | kind::LIST)
            {
                let detail = format!("{name} is a list of unlike values, or of numbers");
                return Err(Error::argument("gguf", detail));
            }
            head.extend(first.to_le_bytes());
            head.extend((values.len() as u64).to_le_bytes());
            values.iter().try_for_each(|value| setting(head, name, value))?;
        }
    }
    Ok(())
}
