//! Files in the IDX format of MNIST, gzip or not.
//!
//! The format: two zero bytes, a byte for the type of the values, a byte for the number of axes,
//! the length of each axis as a 32-bit number with its high byte first, then the values in
//! row-major order. The type of all published image sets is the byte, 0x08.

use std::path::Path;

use super::stream::Stream;
use super::{Error, Result};

/// The type byte of unsigned bytes.
const BYTES: u8 = 0x08;

/// An array of bytes from an IDX file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    /// The length along each axis.
    pub shape: Vec<usize>,
    /// The values, in row-major order.
    pub values: Vec<u8>,
}

/// Reads an IDX file of unsigned bytes; gzip is recognised by its first bytes.
///
/// # Errors
///
/// [`Error::Io`] if the file cannot be read, [`Error::Format`] if it is not IDX, holds another
/// type, is damaged, or has fewer or more bytes than its header says. No more is decompressed than
/// that.
pub fn read(path: impl AsRef<Path>) -> Result<Idx> {
    let mut stream = Stream::open(path.as_ref())?;
    let magic = stream.exactly(4, "the header")?;
    if magic[..2] != [0, 0] {
        let detail = format!("an IDX file starts with 00 00, this one with {}", hex(&magic));
        return Err(stream.wrong(0, detail));
    }
    if magic[2] != BYTES {
        let detail = format!("the values have type {:#04x}, only bytes (0x08) are read", magic[2]);
        return Err(stream.wrong(2, detail));
    }
    let rank = usize::from(magic[3]);
    if !(1..=4).contains(&rank) {
        return Err(stream.wrong(3, format!("{rank} axes, where 1 to 4 are expected")));
    }
    let lengths = stream.exactly(4 * rank, "the length of the axes")?;
    let shape: Vec<usize> = lengths
        .chunks_exact(4)
        .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize)
        .collect();
    let count = shape
        .iter()
        .try_fold(1_usize, |product, &length| product.checked_mul(length))
        .filter(|&count| count <= isize::MAX as usize)
        .ok_or_else(|| stream.wrong(4, format!("{shape:?} is larger than an address space")))?;
    let values = stream.exactly(count, &format!("{shape:?}"))?;
    stream.end()?;
    Ok(Idx { shape, values })
}

/// The images in a file, as bytes with their height and width.
pub(super) fn read_images(path: &Path, side: usize) -> Result<Vec<u8>> {
    let idx = read(path)?;
    match idx.shape[..] {
        [_, height, width] if (height, width) == (side, side) => Ok(idx.values),
        _ => {
            let detail = format!("shape {:?}, where [n, {side}, {side}] is expected", idx.shape);
            Err(Error::content(path, detail))
        }
    }
}

/// The labels in a file, each below `classes`.
pub(super) fn read_labels(path: &Path, classes: usize) -> Result<Vec<u8>> {
    let idx = read(path)?;
    let [_] = idx.shape[..] else {
        let detail = format!("shape {:?}, where [n] is expected", idx.shape);
        return Err(Error::content(path, detail));
    };
    if let Some(place) = idx.values.iter().position(|&label| usize::from(label) >= classes) {
        let detail = format!(
            "label {} of image {place} is not below {classes}, the number of classes",
            idx.values[place]
        );
        return Err(Error::Format { path: path.to_owned(), offset: 8 + place as u64, detail });
    }
    Ok(idx.values)
}

fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}
