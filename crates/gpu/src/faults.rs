//! What kernels find wrong with values, such as an index that is out of range: errors by number.

use std::collections::BTreeSet;
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

/// How many threads have a place of their own at a time; those beyond share them.
pub(crate) const PLACES: usize = 256;

/// The place of this thread among those that run: below [`PLACES`]. Who runs a plan waits for what its kernels find, so
/// a thread's faults are its own.
pub(crate) fn place() -> usize {
    /// Places that threads have left, and how many there ever were.
    static FREE: Mutex<(BTreeSet<usize>, usize)> = Mutex::new((BTreeSet::new(), 0));
    struct Place(usize);
    impl Place {
        fn take() -> Place {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = free.0.pop_first() {
                return Place(place);
            }
            free.1 += 1;
            Place(free.1 - 1)
        }
    }
    impl Drop for Place {
        fn drop(&mut self) {
            FREE.lock().unwrap_or_else(PoisonError::into_inner).0.insert(self.0);
        }
    }
    thread_local! {
        static OWN: Place = Place::take();
    }
    // A thread that ends shares one.
    OWN.try_with(|place| place.0 % PLACES).unwrap_or_default()
}
