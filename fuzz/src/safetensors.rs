//! Files of arrays under names: what is read is the same after it was written, and the same arrays
//! give the same bytes.

use std::collections::BTreeMap;

use cupola::io::safetensors;
use cupola::{Array, DType};

use crate::npy::same;

type Content = (BTreeMap<String, Array>, BTreeMap<String, String>);

fn written((tensors, metadata): &Content) -> Vec<u8> {
    let mut bytes = Vec::new();
    safetensors::write(&mut bytes, "memory", tensors, metadata).expect("what was read is written");
    bytes
}

pub fn seeds() -> Vec<Vec<u8>> {
    let array = |dtype: DType, shape: &[usize]| {
        let count: usize = shape.iter().product();
        let bytes: Vec<u8> = (0..count * dtype.size()).map(|value| (value % 2) as u8).collect();
        Array::from_bytes(&bytes, dtype, shape).expect("an array")
    };
    let every = DType::ALL.map(|dtype| (format!("{dtype}"), array(dtype, &[2, 1])));
    let one = BTreeMap::from([("layer.weight".to_owned(), array(DType::F32, &[2, 2]))]);
    let odd = BTreeMap::from([
        ("\u{1F3DB} \"\\\n".to_owned(), array(DType::F64, &[])),
        (String::new(), array(DType::U8, &[0, 3])),
    ]);
    let words = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
    [
        (BTreeMap::from(every), words.clone()),
        (one, BTreeMap::new()),
        (odd, words),
        (BTreeMap::new(), BTreeMap::new()),
    ]
    .map(|content| written(&content))
    .to_vec()
}

pub fn check(data: &[u8]) {
    let read = |mut data: &[u8]| {
        let length = data.len() as u64;
        safetensors::read(&mut data, "memory", length)
    };
    let content = match read(data) {
        Ok(content) => content,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    };
    let bytes = written(&content);
    let again = read(&bytes).expect("what was written is read");
    assert_eq!(content.1, again.1);
    assert!(content.0.keys().eq(again.0.keys()), "the names are others");
    for (name, array) in &content.0 {
        assert!(same(array, &again.0[name]), "{name} is another");
    }
    assert_eq!(bytes, written(&again));
}
