//! Compressed IDX files, damaged or not: whatever is compressed reads as it does plain.

use std::io::Write;

use cupola::data::idx;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::scratch;

fn compressed(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).and_then(|()| encoder.finish()).expect("memory takes all")
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = crate::idx::seeds().iter().map(|idx| compressed(idx)).collect();
    // A file may be of several parts.
    let whole = &crate::idx::seeds()[1];
    let (head, tail) = whole.split_at(7);
    seeds.push([compressed(head), compressed(tail)].concat());
    seeds
}

pub fn check(data: &[u8]) {
    if let Ok(read) = idx::read(scratch::file("gzip", data)) {
        let again = idx::read(scratch::file("gzip", &compressed(&crate::idx::written(&read))));
        assert_eq!(again.expect("what was read is written"), read);
    }
    if !data.starts_with(&[0x1f, 0x8b]) {
        let plain = idx::read(scratch::file("plain", data)).ok();
        let packed = idx::read(scratch::file("gzip", &compressed(data))).ok();
        assert_eq!(plain, packed);
    }
}
