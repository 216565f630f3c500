//! A data file as a stream of bytes that knows its name and its place, compressed or not.

use std::io::{BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use cupola_core::backend::system_memory;
use cupola_core::file;
use flate2::read::MultiGzDecoder;

use super::{Error, Result};

/// Memory that is reserved before the bytes that a header announces have been seen.
const TRUST: usize = 1 << 24;

pub(super) struct Stream {
    path: PathBuf,
    reader: Box<dyn Read>,
    offset: u64,
    /// More than it can hold.
    most: u64,
}

/// Deflate's longest match of 258 bytes takes at least 2 bits.
const MOST_COMPRESSED: u64 = 1032;

impl Stream {
    /// Opens `path`; whether it is gzip is decided by its first two bytes, not by its name.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let io = |cause| Error::io(path, cause);
        let (mut file, length) = file::open(path).map_err(io)?;
        let mut start = Vec::new();
        file.by_ref().take(2).read_to_end(&mut start).map_err(io)?;
        let compressed = start == [0x1F, 0x8B];
        let most = if compressed { length.saturating_mul(MOST_COMPRESSED) } else { length };
        let whole = Cursor::new(start).chain(BufReader::with_capacity(1 << 16, file));
        let reader: Box<dyn Read> =
            if compressed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        Ok(Self { path: path.to_owned(), reader, offset: 0, most })
    }

    /// The error of a file whose bytes at `offset` are not what they should be.
    pub(super) fn wrong(&self, offset: u64, detail: impl Into<String>) -> Error {
        Error::Format { path: self.path.clone(), offset, detail: detail.into() }
    }

    /// The next bytes, at most `count`: fewer only at the end of the file.
    pub(super) fn up_to(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(count.min(TRUST));
        let read = self.reader.by_ref().take(count as u64).read_to_end(&mut bytes);
        match read {
            Ok(_) => {
                self.offset += bytes.len() as u64;
                Ok(bytes)
            }
            Err(cause) => Err(self.failed(self.offset + bytes.len() as u64, cause)),
        }
    }

    /// The next `count` bytes, which are `what`. Where the file or the machine's memory is too small
    /// for them, nothing is read.
    pub(super) fn exactly(&mut self, count: usize, what: &str) -> Result<Vec<u8>> {
        let start = self.offset;
        let claimed = count as u64;
        if count > TRUST && claimed > self.most.min(system_memory() as u64) {
            let detail =
                format!("{what} takes {count} bytes, more than the file or the memory holds");
            return Err(self.wrong(start, detail));
        }
        let bytes = self.up_to(count)?;
        if bytes.len() < count {
            let detail = format!(
                "the file ends: {what} takes {count} bytes from byte {start}, {} are there",
                bytes.len()
            );
            return Err(self.wrong(self.offset, detail));
        }
        Ok(bytes)
    }

    /// Makes sure that the file ends here.
    pub(super) fn end(&mut self) -> Result<()> {
        let end = self.offset;
        if self.up_to(1)?.is_empty() {
            return Ok(());
        }
        Err(self.wrong(end, "the file should end here, and goes on"))
    }

    fn failed(&self, offset: u64, cause: std::io::Error) -> Error {
        match cause.kind() {
            // What the decoder says of damaged data; the rest is the system's.
            ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
                self.wrong(offset, format!("the gzip data is damaged: {cause}"))
            }
            _ => Error::io(&self.path, cause),
        }
    }
}
