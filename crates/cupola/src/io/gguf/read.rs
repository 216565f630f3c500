//! Reading.

use std::collections::BTreeMap;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use cupola_core::backend::{Buffer, reserve};
use cupola_core::{Array, DType, Error, Result};

use super::blocks::{BLOCKS, Blocks, GROUP, REMOVED, Way, halves, pack};
use super::{
    ALIGNMENT, ALIGNMENT_KEY, MAGIC, Metadata, NUMBERS, PLAIN, Tensors, VERSION, Value, kind,
};
use crate::io::{array_in, content, little_endian};

/// How deep lists of the metadata may lie in lists.
const MOST_LISTS: usize = 16;
/// The most axes of a tensor.
const MOST_AXES: u32 = 64;

/// Reads every tensor of a file, and its metadata.
///
/// # Errors
/// Where the file cannot be read, is cut short or damaged, or holds a type that is not read; the text
/// names the file and the place in it.
///
/// # Example
/// See [`save`](super::save()).
pub fn load(path: impl AsRef<Path>) -> Result<(Tensors, Metadata)> {
    let memory = content(&path)?;
    let bytes = memory.host().unwrap_or_default();
    read_from(Cursor::new(bytes), path.as_ref(), bytes.len() as u64, Some(&memory))
}

/// Reads every tensor of the content of a file of `length` bytes, and its metadata; errors call the
/// file `path`.
///
/// # Errors
/// As [`load`].
///
/// # Example
/// See [`write`](super::write()).
pub fn read(
    file: impl Read + Seek,
    path: impl AsRef<Path>,
    length: u64,
) -> Result<(Tensors, Metadata)> {
    read_from(file, path.as_ref(), length, None)
}

/// Reads a file; plain tensors stay where they are in `memory`, where that holds the file.
fn read_from(
    file: impl Read + Seek,
    path: &Path,
    length: u64,
    memory: Option<&Buffer>,
) -> Result<(Tensors, Metadata)> {
    let mut source = Source { file: BufReader::new(file), path, at: 0, taken: 0, length, memory };
    if length < 4 || &source.bytes::<4>()? != MAGIC {
        return Err(source.wrong(0, "this is no GGUF file"));
    }
    let version = u32::from_le_bytes(source.bytes()?);
    match version {
        2 | VERSION => {}
        _ if version.swap_bytes() == VERSION => {
            return Err(source.wrong(4, "its numbers are big-endian, which is not read"));
        }
        _ => return Err(source.wrong(4, format!("version {version} is not read, 2 and 3 are"))),
    }
    // A tensor takes 24 bytes of the header at least, a setting 13.
    let tensors = source.count(24)?;
    let settings = source.count(13)?;
    let mut metadata = BTreeMap::new();
    for _ in 0..settings {
        let at = source.at;
        let name = source.text()?;
        let kind = u32::from_le_bytes(source.bytes()?);
        let value = source.value(kind, 0)?;
        if metadata.insert(name.clone(), value).is_some() {
            return Err(source.wrong(at, format!("the setting {name} is there twice")));
        }
    }
    let mut entries = reserve::<Entry>(tensors, "tensors")?;
    for _ in 0..tensors {
        entries.push(source.entry()?);
    }
    let alignment = alignment(&source, &metadata)?;
    let start = source.at.next_multiple_of(alignment);
    let mut found = BTreeMap::new();
    // In the order of the file: it is read once, from its start to its end.
    entries.sort_by_key(|entry| entry.offset);
    for entry in entries {
        source.tensor(&entry, start, alignment, &mut found)?;
    }
    Ok((found, metadata))
}

fn alignment<R: Read + Seek>(source: &Source<'_, R>, metadata: &Metadata) -> Result<u64> {
    let Some(value) = metadata.get(ALIGNMENT_KEY) else { return Ok(ALIGNMENT) };
    let given = match value {
        Value::Array(array) if array.dtype() == DType::U32 && array.size() == 1 => {
            u64::from(array.item::<u32>()?)
        }
        _ => 0,
    };
    match given {
        8.. if given.is_power_of_two() => Ok(given),
        _ => Err(source.wrong(0, format!("{ALIGNMENT_KEY} is no power of two from 8 on"))),
    }
}

/// A tensor, as the header has it.
struct Entry {
    /// Where the header has it.
    at: u64,
    name: String,
    /// Outermost axis first.
    shape: Vec<usize>,
    code: u32,
    offset: u64,
}

/// The content of a file, and how far it is read.
struct Source<'a, R> {
    file: BufReader<R>,
    path: &'a Path,
    at: u64,
    /// Where the data of the tensors so far ends.
    taken: u64,
    length: u64,
    /// Where the whole file lies.
    memory: Option<&'a Buffer>,
}

impl<R: Read + Seek> Source<'_, R> {
    fn wrong(&self, at: u64, detail: impl Into<String>) -> Error {
        // One line, whatever names the file holds.
        let detail = detail.into().replace(['\n', '\r'], " ");
        Error::io(self.path, format!("byte {at}: {detail}"))
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<()> {
        if into.len() as u64 > self.length.saturating_sub(self.at) {
            return Err(self.wrong(
                self.at,
                format!("{} bytes are wanted, the file ends at {}", into.len(), self.length),
            ));
        }
        self.file
            .read_exact(into)
            .map_err(|cause| self.wrong(self.at, format!("cannot be read: {cause}")))?;
        self.at += into.len() as u64;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// So many bytes: no more memory than the file has.
    fn many(&mut self, count: u64, what: &str) -> Result<Vec<u8>> {
        if count > self.length - self.at {
            let detail = format!("{what} of {count} bytes is longer than the file");
            return Err(self.wrong(self.at, detail));
        }
        let mut bytes = reserve(count as usize, what)?;
        bytes.resize(count as usize, 0);
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// A count of things that take so many bytes each.
    fn count(&mut self, each: u64) -> Result<usize> {
        let (at, count) = (self.at, u64::from_le_bytes(self.bytes()?));
        if count > (self.length - self.at) / each {
            return Err(self.wrong(at, format!("the file has no room for {count} entries")));
        }
        Ok(count as usize)
    }

    fn text(&mut self) -> Result<String> {
        let length = u64::from_le_bytes(self.bytes()?);
        let at = self.at;
        let bytes = self.many(length, "a text")?;
        String::from_utf8(bytes).map_err(|_| self.wrong(at, "a text is not UTF-8"))
    }

    /// A setting of a kind.
    fn value(&mut self, code: u32, depth: usize) -> Result<Value> {
        match code {
            kind::TEXT => return Ok(Value::Text(self.text()?)),
            kind::LIST => {}
            _ => {
                let dtype = self.number(code)?;
                return self.numbers(dtype, &[]);
            }
        }
        let code = u32::from_le_bytes(self.bytes()?);
        if !matches!(code, kind::TEXT | kind::LIST) {
            let dtype = self.number(code)?;
            let count = self.count(dtype.size() as u64)?;
            return self.numbers(dtype, &[count]);
        }
        if depth == MOST_LISTS {
            return Err(self.wrong(self.at, format!("more than {MOST_LISTS} lists in each other")));
        }
        let count = self.count(8)?;
        let mut values = reserve::<Value>(count, "a list")?;
        for _ in 0..count {
            values.push(self.value(code, depth + 1)?);
        }
        Ok(Value::List(values))
    }

    /// The dtype of a setting.
    fn number(&self, code: u32) -> Result<DType> {
        let known = NUMBERS.iter().find(|(number, _)| *number == code);
        known
            .map(|(_, dtype)| *dtype)
            .ok_or_else(|| self.wrong(self.at, format!("there is no kind {code} of settings")))
    }

    fn numbers(&mut self, dtype: DType, shape: &[usize]) -> Result<Value> {
        let count = shape.iter().product::<usize>() * dtype.size();
        let mut bytes = self.many(count as u64, "a setting")?;
        if dtype == DType::Bool {
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Array::from_bytes(&little_endian(bytes, dtype), dtype, shape).map(Value::Array)
    }

    fn entry(&mut self) -> Result<Entry> {
        let at = self.at;
        let name = self.text()?;
        let rank = u32::from_le_bytes(self.bytes()?);
        if rank > MOST_AXES {
            return Err(self.wrong(at, format!("{name} has {rank} axes, {MOST_AXES} at most")));
        }
        let mut shape = Vec::new();
        for _ in 0..rank {
            let size = u64::from_le_bytes(self.bytes()?);
            shape.push(usize::try_from(size).unwrap_or(usize::MAX));
        }
        // The file has the innermost axis first.
        shape.reverse();
        let code = u32::from_le_bytes(self.bytes()?);
        let offset = u64::from_le_bytes(self.bytes()?);
        Ok(Entry { at, name, shape, code, offset })
    }

    /// Reads a tensor, and puts what it becomes among the others.
    fn tensor(
        &mut self,
        entry: &Entry,
        start: u64,
        alignment: u64,
        found: &mut Tensors,
    ) -> Result<()> {
        let Entry { at, name, shape, code, offset } = entry;
        let wrong = |source: &Self, detail: String| source.wrong(*at, format!("{name} {detail}"));
        let plain = PLAIN.iter().find(|(number, _)| number == code).map(|(_, dtype)| *dtype);
        let blocks = BLOCKS.iter().find(|blocks| blocks.code == *code).copied();
        let (size, bytes) = match (plain, blocks) {
            (Some(dtype), _) => (1, dtype.size()),
            (None, Some(blocks)) => (blocks.size, blocks.bytes),
            (None, None) => {
                let removed = REMOVED.iter().find(|(number, _)| number == code);
                return Err(wrong(
                    self,
                    match removed {
                        Some((_, known)) => {
                            format!("is of type {known}, which the format no longer has")
                        }
                        None => format!("is of type {code}, which is not known"),
                    },
                ));
            }
        };
        let last = shape.last().copied().unwrap_or(1);
        if !last.is_multiple_of(size) {
            let detail = format!("has {last} weights in a row, blocks of its type have {size}");
            return Err(wrong(self, detail));
        }
        let count = shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        let total = count.and_then(|count| (count / size).checked_mul(bytes));
        let from = start.checked_add(*offset).filter(|_| offset.is_multiple_of(alignment));
        let (Some(count), Some(total), Some(from)) = (count, total, from) else {
            return Err(wrong(self, format!("of shape {shape:?} cannot be at {offset}")));
        };
        if from.checked_add(total as u64).is_none_or(|end| end > self.length) {
            return Err(wrong(
                self,
                format!("has {total} bytes from byte {from} on, the file ends at {}", self.length),
            ));
        }
        // Tensors come in the order of their data.
        if total > 0 && from < self.taken {
            let taken = self.taken;
            let detail = format!("is at byte {from}, the data before it ends at {taken}");
            return Err(wrong(self, detail));
        }
        self.taken = self.taken.max(from + total as u64);
        if let (Some(dtype), Some(memory)) = (plain, self.memory) {
            let array = array_in(memory, from as usize, dtype, shape)?;
            return match found.insert(name.clone(), array) {
                None => Ok(()),
                Some(_) => Err(wrong(self, "is there twice".into())),
            };
        }
        if from != self.at {
            let moved = self.file.seek(SeekFrom::Start(from));
            moved.map_err(|cause| self.wrong(from, format!("cannot be read: {cause}")))?;
            self.at = from;
        }
        let data = self.many(total as u64, name)?;
        let mut put = |name: String, array: Array| match found.insert(name.clone(), array) {
            None => Ok(()),
            Some(_) => Err(self.wrong(*at, format!("the tensor {name} is there twice"))),
        };
        match (plain, blocks) {
            (Some(dtype), _) => {
                let array = Array::from_bytes(&little_endian(data, dtype), dtype, &shape[..])?;
                put(name.clone(), array)
            }
            (None, Some(blocks)) => match blocks.way {
                Way::Packed => packed(blocks, &data, count, name, shape)?
                    .into_iter()
                    .try_for_each(|(name, array)| put(name, array)),
                Way::Unpacked(unpack) => {
                    let mut numbers = vec![0.0; blocks.size];
                    let mut bytes = reserve(count * DType::F16.size(), name)?;
                    for block in data.chunks_exact(blocks.bytes) {
                        unpack(block, &mut numbers);
                        halves(&numbers, &mut bytes);
                    }
                    put(name.clone(), Array::from_bytes(&bytes, DType::F16, &shape[..])?)
                }
            },
            (None, None) => Ok(()),
        }
    }
}

/// The arrays of a tensor of packed weights, by name.
fn packed(
    blocks: Blocks,
    data: &[u8],
    count: usize,
    name: &str,
    shape: &[usize],
) -> Result<[(String, Array); 3]> {
    let bits = if blocks.name == "Q8_0" { 8 } else { 4 };
    let in_word = 32 / bits;
    let mut weights = reserve::<u32>(count / in_word, name)?;
    let mut numbers = [0; 2].map(|_| reserve::<u8>(count / GROUP * 2, name));
    for block in data.chunks_exact(blocks.bytes) {
        let both = pack(blocks, block, &mut weights);
        for (numbers, number) in numbers.iter_mut().zip(both) {
            if let Ok(numbers) = numbers {
                numbers.extend(number.to_ne_bytes());
            }
        }
    }
    let [scales, biases] = numbers;
    let part = |by: usize| {
        let mut shape = shape.to_vec();
        shape.iter_mut().last().into_iter().for_each(|size| *size /= by);
        shape
    };
    let weights = Array::from_slice(&weights, &part(in_word)[..])?;
    let halves = |bytes: Result<Vec<u8>>| Array::from_bytes(&bytes?, DType::F16, &part(GROUP)[..]);
    let stem = name.strip_suffix(".weight").unwrap_or(name);
    Ok([
        (name.to_owned(), weights),
        (format!("{stem}.scales"), halves(scales)?),
        (format!("{stem}.biases"), halves(biases)?),
    ])
}
