//! What was computed, for other programs to compare with before they time the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cupola::device::{Stream, with_stream};
use cupola::io::safetensors;
use cupola::{Array, Device};

use crate::failure::Outcome;
use crate::output::replaceable;

/// Arrays under names, on their way to the file of `--outputs`, where one was asked for.
pub struct Outputs {
    path: Option<PathBuf>,
    arrays: BTreeMap<String, Array>,
}

impl Outputs {
    /// Looks whether the file can be written before any work is done.
    pub fn new(path: Option<&Path>) -> Outcome<Self> {
        if let Some(path) = path {
            replaceable("--outputs", path)?;
        }
        Ok(Self { path: path.map(Path::to_owned), arrays: BTreeMap::new() })
    }

    pub fn are_wanted(&self) -> bool {
        self.path.is_some()
    }

    /// Keeps a copy of `array` in the host's memory: the device needs its own.
    pub fn keep(&mut self, name: String, array: &Array) -> Outcome {
        if self.are_wanted() {
            let bytes = array.to_bytes()?;
            let copy = with_stream(Stream::of(Device::CPU), || {
                Array::from_bytes(&bytes, array.dtype(), array.shape().clone())
            })?;
            self.arrays.insert(name, copy);
        }
        Ok(())
    }

    pub fn write(&self, metadata: &BTreeMap<String, String>) -> Outcome {
        match &self.path {
            Some(path) => Ok(safetensors::save(path, &self.arrays, metadata)?),
            None => Ok(()),
        }
    }
}
