//! The content of a file as memory, and arrays that lie in it.

use std::io::Read;
use std::path::Path;

use cupola_core::backend::{Buffer, reserve};
use cupola_core::{Array, Aval, DType, Error, Layout, Result, file};

use super::little_endian;

/// Smaller files are read: that takes less than to map them.
const SMALL: u64 = 64 << 10;

/// The content of the file at `path`. A large one is mapped where the system has that: what is in it is read when
/// it is used, and an array of it takes no memory of its own: of 256 files at a time, others are read. Whoever changes the file in place takes its arrays away:
/// to read them is an error from then on, and undefined at that very moment. A file that takes its name, as those that
/// Cupola writes do, changes nothing.
///
/// # Errors
/// Where the file cannot be read.
///
/// # Example
/// ```
/// use cupola::io::content;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("bytes");
/// std::fs::write(&path, [1, 2, 3])?;
/// assert_eq!(content(&path)?.host(), Some(&[1, 2, 3][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn content(path: impl AsRef<Path>) -> Result<Buffer> {
    let path = path.as_ref();
    let failed = |cause: std::io::Error| Error::io(path, format!("cannot be read: {cause}"));
    let (file, length) = file::open(path).map_err(failed)?;
    let is_mapped = cfg!(unix) && length >= SMALL;
    if is_mapped
        && let Ok(own) = file.try_clone()
        && let Ok(mapped) = cupola_cpu::memory::map(own, path)
    {
        return Ok(mapped);
    }
    let mut bytes = reserve(length as usize, "a file's content")?;
    file.take(length).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Buffer::constant(bytes))
}

/// The array of `shape` whose elements are at byte `at` of a file's content: in place where they can lie there.
pub(crate) fn array_in(memory: &Buffer, at: usize, dtype: DType, shape: &[usize]) -> Result<Array> {
    let aval = Aval::new(shape, dtype);
    let (size, bytes) = (dtype.size(), aval.bytes());
    let all = memory.host().unwrap_or_default();
    let found = at.checked_add(bytes).and_then(|end| all.get(at..end));
    let found =
        found.ok_or_else(|| Error::argument("array", "its bytes are outside of the file"))?;
    let is_in_place = cfg!(target_endian = "little")
        // A file may hold other bytes than those of false and true.
        && dtype != DType::Bool
        && at.is_multiple_of(size)
        && found.as_ptr().addr().is_multiple_of(size)
        && bytes > 0;
    if is_in_place {
        let layout = Layout { offset: (at / size) as isize, ..Layout::contiguous(&aval.shape) };
        return Array::from_storage(aval, memory.clone(), layout);
    }
    let mut own = reserve(bytes, "an array of a file")?;
    own.extend_from_slice(found);
    if dtype == DType::Bool {
        own.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
    Array::from_bytes(&little_endian(own, dtype), dtype, shape)
}
