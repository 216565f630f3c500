//! NumPy's files of one array.

use cupola::io::npy;
use cupola::{Array, DType};

/// Whether two arrays agree in dtype, shape and every bit.
pub fn same(a: &Array, b: &Array) -> bool {
    let bytes = |array: &Array| array.to_bytes().expect("what was read has values");
    a.dtype() == b.dtype() && a.shape() == b.shape() && bytes(a) == bytes(b)
}

pub fn seeds() -> Vec<Vec<u8>> {
    let array = |dtype: DType, shape: &[usize]| {
        let count: usize = shape.iter().product();
        let bytes: Vec<u8> = (0..count * dtype.size()).map(|value| (value % 2) as u8).collect();
        npy::write(&Array::from_bytes(&bytes, dtype, shape).expect("an array")).expect("a file")
    };
    let mut seeds: Vec<Vec<u8>> = DType::ALL.map(|dtype| array(dtype, &[2, 3])).to_vec();
    seeds.extend([array(DType::F32, &[]), array(DType::I32, &[0, 4]), array(DType::F64, &[7])]);
    let text = |from: &str, to: &str| {
        let mut file = array(DType::F32, &[2, 3]);
        let at = file.windows(from.len()).position(|part| part == from.as_bytes());
        let at = at.expect("the header has it");
        file.splice(at..at + from.len(), to.bytes());
        file
    };
    seeds.extend([text("<f4", ">f4"), text("False", "True ")]);
    seeds
}

pub fn check(data: &[u8]) {
    let Ok(array) = npy::read(data, "memory") else { return };
    let written = npy::write(&array).expect("what was read is written");
    let again = npy::read(&written, "memory").expect("what was written is read");
    assert!(same(&array, &again), "{} became {}", array.aval(), again.aval());
}
