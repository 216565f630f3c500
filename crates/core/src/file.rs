//! Files that are read.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

use crate::memory::reserve;

/// Opens the file at `path` to be read, and tells how many bytes it has. What is no file is not opened: a pipe
/// would wait for whoever writes to it, and a device has no end.
///
/// # Errors
/// Where it cannot be opened, or is a folder, a pipe or a device.
///
/// # Example
/// ```
/// use cupola::file;
/// assert!(file::open("Cargo.toml").is_ok());
/// assert!(file::open("src").is_err());
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<(File, u64)> {
    let path = path.as_ref();
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is no file"));
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// The content of the file at `path`, where that is no longer than `most` bytes: else nothing of it is read.
///
/// # Errors
/// As [`open`], and where the file is longer, or longer than the machine has memory for.
///
/// # Example
/// ```
/// use cupola::file;
/// assert!(file::read("Cargo.toml", 1 << 20)?.starts_with(b"["));
/// assert!(file::read("Cargo.toml", 1).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read(path: impl AsRef<Path>, most: u64) -> Result<Vec<u8>> {
    let (file, length) = open(path)?;
    if length > most {
        let detail = format!("it is too large: {length} bytes, at most {most} are read");
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    let mut bytes = reserve(length as usize, "a file's content")
        .map_err(|cause| Error::new(ErrorKind::OutOfMemory, cause.to_string()))?;
    // It may have grown since.
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}
