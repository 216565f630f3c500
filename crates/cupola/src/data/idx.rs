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
    let opened = Opened::of(path.as_ref())?;
    Ok(Idx { shape: opened.shape.clone(), values: opened.values()? })
}

/// A file whose values are still to be read.
struct Opened {
    stream: Stream,
    shape: Vec<usize>,
}

impl Opened {
    fn of(path: &Path) -> Result<Opened> {
        let mut stream = Stream::open(path)?;
        let magic = stream.exactly(4, "the header")?;
        if magic[..2] != [0, 0] {
            let detail = format!("an IDX file starts with 00 00, this one with {}", hex(&magic));
            return Err(stream.wrong(0, detail));
        }
        if magic[2] != BYTES {
            let detail =
                format!("the values have type {:#04x}, only bytes (0x08) are read", magic[2]);
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
        Ok(Opened { stream, shape })
    }

    fn values(self) -> Result<Vec<u8>> {
        let Opened { mut stream, shape } = self;
        let count = shape
            .iter()
            .try_fold(1_usize, |product, &length| product.checked_mul(length))
            .filter(|&count| count <= isize::MAX as usize)
            .ok_or_else(|| stream.wrong(4, format!("{shape:?} is larger than an address space")))?;
        let values = stream.exactly(count, &format!("{shape:?}"))?;
        stream.end()?;
        Ok(values)
    }
}

/// The images in a file, as bytes with their height and width, and their labels in another, each below `classes`.
/// What does not fit by the headers is not unpacked.
pub(super) fn read_labelled(
    image_file: &Path,
    label_file: &Path,
    side: usize,
    classes: usize,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let (images, labels) = (Opened::of(image_file)?, Opened::of(label_file)?);
    let wrong = |path: &Path, shape: &[usize], expected: &str| {
        Err(Error::content(path, format!("shape {shape:?}, where {expected} is expected")))
    };
    let count = match images.shape[..] {
        [count, height, width] if (height, width) == (side, side) => count,
        _ => return wrong(image_file, &images.shape, &format!("[n, {side}, {side}]")),
    };
    match labels.shape[..] {
        [labels] if labels == count => {}
        [labels] => {
            let detail =
                format!("{labels} labels for the {count} images of {}", image_file.display());
            return Err(Error::content(label_file, detail));
        }
        _ => return wrong(label_file, &labels.shape, "[n]"),
    }
    let (images, labels) = (images.values()?, labels.values()?);
    if let Some(place) = labels.iter().position(|&label| usize::from(label) >= classes) {
        let detail = format!(
            "label {} of image {place} is not below {classes}, the number of classes",
            labels[place]
        );
        return Err(Error::Format {
            path: label_file.to_owned(),
            offset: 8 + place as u64,
            detail,
        });
    }
    Ok((images, labels))
}

fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}
