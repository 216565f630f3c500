//! IDX files: what is read has the bytes of the file, and no others.

use cupola::data::idx::{self, Idx};

use crate::scratch;

/// The content of a file.
pub fn written(idx: &Idx) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, idx.shape.len() as u8];
    bytes.extend(idx.shape.iter().flat_map(|&length| (length as u32).to_be_bytes()));
    bytes.extend(&idx.values);
    bytes
}

pub fn seeds() -> Vec<Vec<u8>> {
    [vec![3], vec![2, 5, 5], vec![1, 2, 3, 4], vec![0, 28, 28]]
        .map(|shape| {
            let count = shape.iter().product();
            written(&Idx { shape, values: (0..count).map(|value| value as u8).collect() })
        })
        .to_vec()
}

pub fn check(data: &[u8]) {
    let read = idx::read(scratch::file("idx", data));
    if let (Ok(read), false) = (read, data.starts_with(&[0x1f, 0x8b])) {
        assert_eq!(written(&read), data);
    }
}
