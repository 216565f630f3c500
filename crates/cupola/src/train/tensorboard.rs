//! Event files that TensorBoard reads.
//!
//! A file is a sequence of records (length, its checksum, bytes, their checksum), each an `Event` message of
//! [TensorFlow's event format](https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/util/event.proto):
//! wall time, step, and values with their tags. Checksums are CRC-32C, rotated and offset as
//! [TFRecord](https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details) says.

use std::fs::{File, create_dir_all};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cupola_core::{Error, Result};

use super::{Callback, Moment};

/// Between how many steps a callback writes, if it is not told.
const EVERY: u64 = 10;

/// Writes numbers for TensorBoard into a file of its own in a folder. As a [`Callback`] it writes what was measured
/// of every tenth step as `train/NAME`, and of every epoch as `epoch/NAME`.
///
/// ```
/// use cupola::train::TensorBoard;
/// let folder = tempfile::tempdir()?;
/// let mut board = TensorBoard::create(folder.path())?;
/// board.scalars(1, &[("train/loss", 2.3), ("train/accuracy", 0.1)])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TensorBoard {
    file: File,
    path: PathBuf,
    every: u64,
}

impl TensorBoard {
    /// A new file in `folder`, which is made where it is missing.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn create(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        create_dir_all(folder).map_err(|cause| Error::io(folder, cause))?;
        let now = since_1970();
        // Two writers of one second do not share a file.
        for number in 0_u32.. {
            let name = format!(
                "events.out.tfevents.{}.cupola.{}.{number}",
                now as u64,
                std::process::id()
            );
            let path = folder.join(name);
            match File::create_new(&path) {
                Ok(file) => {
                    let mut board = TensorBoard { file, path, every: EVERY };
                    let mut event = double(1, now);
                    event.extend(bytes(3, b"brain.Event:2"));
                    board.record(&event)?;
                    return Ok(board);
                }
                Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(Error::io(&path, cause)),
            }
        }
        Err(Error::io(folder, "every name of an event file is taken"))
    }

    /// As a callback, with every so manieth step.
    ///
    /// # Errors
    /// Where it is 0.
    pub fn every(mut self, steps: u64) -> Result<Self> {
        if steps == 0 {
            return Err(Error::argument("TensorBoard", "every is 0 steps, not 1 or more"));
        }
        self.every = steps;
        Ok(self)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes numbers, each under its tag, of a step.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn scalars(&mut self, step: u64, values: &[(&str, f64)]) -> Result<()> {
        let mut summary = Vec::new();
        for &(tag, value) in values {
            let mut entry = bytes(1, tag.as_bytes());
            entry.push(2 << 3 | 5);
            entry.extend((value as f32).to_le_bytes());
            summary.extend(bytes(1, &entry));
        }
        let mut event = double(1, since_1970());
        event.push(2 << 3);
        event.extend(varint(step));
        event.extend(bytes(5, &summary));
        self.record(&event)
    }

    /// The same, with a word in front of each name.
    fn under(&mut self, word: &str, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        let tags: Vec<String> =
            at.metrics.iter().map(|(name, _)| format!("{word}/{name}")).collect();
        let values = tags.iter().zip(at.metrics).map(|(tag, (_, value))| (tag.as_str(), *value));
        self.scalars(at.step, &values.collect::<Vec<_>>())?;
        Ok(ControlFlow::Continue(()))
    }

    fn record(&mut self, event: &[u8]) -> Result<()> {
        let length = (event.len() as u64).to_le_bytes();
        let mut record = length.to_vec();
        record.extend(masked(&length).to_le_bytes());
        record.extend(event);
        record.extend(masked(event).to_le_bytes());
        // At once: a reader never sees half a record for long.
        self.file.write_all(&record).map_err(|cause| Error::io(&self.path, cause))
    }
}

impl Callback for TensorBoard {
    fn step(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        match at.step.is_multiple_of(self.every) {
            true => self.under("train", at),
            false => Ok(ControlFlow::Continue(())),
        }
    }

    fn epoch(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.under("epoch", at)
    }
}

fn since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// A field of eight bytes.
fn double(field: u8, value: f64) -> Vec<u8> {
    let mut out = vec![field << 3 | 1];
    out.extend(value.to_le_bytes());
    out
}

/// A field of text, bytes or a message.
fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    out.extend(varint(content.len() as u64));
    out.extend(content);
    out
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn masked(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (RFC 3720, appendix B.4), reflected.
fn crc32c(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in data {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_rfc() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn records_can_be_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut board = TensorBoard::create(folder.path().join("deep/er")).unwrap();
        board.scalars(300, &[("loss", 0.5)]).unwrap();
        let mut rest = &std::fs::read(board.path()).unwrap()[..];
        let mut records = Vec::new();
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(12);
            let length = u64::from_le_bytes(head[..8].try_into().unwrap()) as usize;
            assert_eq!(head[8..], masked(&head[..8]).to_le_bytes());
            assert_eq!(tail[length..length + 4], masked(&tail[..length]).to_le_bytes());
            records.push(&tail[..length]);
            rest = &tail[length + 4..];
        }
        let [version, event] = records[..] else { panic!("{} records", records.len()) };
        assert!(version.ends_with(b"brain.Event:2"));
        // Field 2 is 300 as a varint, field 5 a summary with one value.
        assert_eq!(event[9..12], [0x10, 0xac, 0x02]);
        assert_eq!(event[12..], *b"\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f");
    }

    #[test]
    fn writers_do_not_share_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let one = TensorBoard::create(folder.path()).unwrap();
        let other = TensorBoard::create(folder.path()).unwrap();
        assert_ne!(one.path(), other.path());
    }
}
