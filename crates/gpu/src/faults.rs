//! What kernels find wrong with values, such as an index that is out of range: errors by number.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupola_core::{Device, Error, Result};

/// The errors that kernels of a device may report, each as its number; 0 is none.
#[derive(Default)]
pub(crate) struct Faults {
    /// The fault of number n is at n − 1.
    known: Mutex<Vec<Error>>,
}

impl Faults {
    fn known(&self) -> MutexGuard<'_, Vec<Error>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a fault.
    pub fn number(&self, error: &Error) -> u32 {
        let mut known = self.known();
        let text = error.to_string();
        let found = known.iter().position(|e| e.to_string() == text);
        let at = found.unwrap_or_else(|| {
            known.push(error.clone());
            known.len() - 1
        });
        at as u32 + 1
    }

    /// Whether no kernel can report anything.
    #[cfg(feature = "wgpu")]
    pub fn is_empty(&self) -> bool {
        self.known().is_empty()
    }

    /// The fault of a number that a kernel of `own` left, if it left one.
    pub fn check(&self, own: Device, number: u32) -> Result<()> {
        let Some(at) = number.checked_sub(1) else { return Ok(()) };
        let known = self.known().get(at as usize).cloned();
        Err(known.unwrap_or_else(|| Error::Device(format!("{own}: fault {number}"))))
    }
}
