//! Models of Core ML in one file: what is read runs, or says in one line why not.

use cupola::{Array, DType, ops};
use cupola_import::coreml::{Model, Size};

/// So many elements inputs have at most that a model is run on.
const MOST_ELEMENTS: usize = 1 << 12;

/// Models that coremltools wrote; `crates/import/src/coreml/models/write.py` says what they are.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../crates/import/src/coreml/models/layers.mlmodel").to_vec(),
        include_bytes!("../../crates/import/src/coreml/models/control.mlmodel").to_vec(),
    ]
}

/// Zeros for an input, where it is small.
fn zeros(sizes: &[Size], dtype: DType) -> Option<Array> {
    let size = |size: &Size| match size {
        Size::Known(size) => *size,
        Size::Range(least, _) => *least,
    };
    let sizes: Vec<usize> = sizes.iter().map(size).collect();
    let count = sizes.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    (count <= MOST_ELEMENTS).then(|| ops::zeros(sizes, dtype).ok())?
}

pub fn check(data: &[u8]) {
    let model = match Model::from_bytes(data) {
        Ok(model) => model,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    };
    // A loop may be as long as a model is allowed to be, which takes longer than a case may.
    if data.windows(10).any(|name| name == b"while_loop") {
        return;
    }
    let mut inputs = Vec::new();
    for port in model.inputs().into_iter().chain(model.states()) {
        match zeros(&port.sizes, port.dtype) {
            Some(array) => inputs.push((port.name.as_str(), array)),
            None => return,
        }
    }
    if let Err(error) = model.run(&inputs) {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}
