//! What takes long to make, and is made once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cupola_core::Result;
use cupola_core::prim::key::Mixer;

/// Values by their keys. Threads that want the same one wait for the one that makes it; others do not.
pub(crate) struct Made<K, V>(Mutex<Places<K, V>>);

/// A kernel is thousands of words to hash.
type Places<K, V> = HashMap<K, Place<V>, BuildHasherDefault<Mixer>>;

type Place<V> = Arc<Mutex<Option<V>>>;

impl<K, V> Default for Made<K, V> {
    fn default() -> Self {
        Made(Mutex::default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Clone + Eq + Hash, V: Clone> Made<K, V> {
    /// The value of a key, which `make` makes where there is none. What fails is tried again by the next
    /// who wants it.
    pub fn get(&self, key: &K, make: impl FnOnce() -> Result<V>) -> Result<V> {
        let place = {
            let mut all = lock(&self.0);
            let known = all.get(key).cloned();
            known.unwrap_or_else(|| all.entry(key.clone()).or_default().clone())
        };
        let mut value = lock(&place);
        if let Some(known) = &*value {
            return Ok(known.clone());
        }
        let made = make()?;
        *value = Some(made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use cupola_core::Error;

    use super::Made;

    #[test]
    fn a_value_is_made_once_for_all_threads() {
        let (made, makes) = (Made::default(), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let value = made.get(&"key", || {
                        thread::yield_now();
                        Ok(makes.fetch_add(1, Ordering::SeqCst))
                    });
                    assert_eq!(value.ok(), Some(0));
                });
            }
        });
        assert_eq!(makes.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn what_failed_is_made_again() {
        let made = Made::default();
        assert!(made.get(&1, || Err(Error::User("no".into()))).is_err());
        assert_eq!(made.get(&1, || Ok(7)).ok(), Some(7));
        assert_eq!(made.get(&1, || Ok(8)).ok(), Some(7));
    }
}
