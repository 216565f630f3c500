//! The default random generator: one key, split at every use.
//!
//! Its state is explicit. `compile` takes it as a hidden input and gives it back as a hidden
//! output, so that a compiled function draws new numbers at every call.

use std::cell::RefCell;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::fork;
use crate::prim::{Movement, RandomBits};
use crate::shape::{Aval, Dims, Shape};

static STATE: Mutex<Option<Array>> = Mutex::new(None);

thread_local! {
    /// The state under [`with_state`], which hides the global one.
    static TRACED: RefCell<Option<Array>> = const { RefCell::new(None) };
}

/// The key of `seed`: its upper and lower 32 bits, as `uint32[2]`, as in MLX.
pub fn key(seed: u64) -> Array {
    let word = |value: u64| {
        let aval = Aval::new([1], DType::U32);
        Array::constant(value, aval)
    };
    let (high, low) = (word(seed >> 32), word(seed & u64::from(u32::MAX)));
    let joined = Array::apply(Movement::Concatenate { axis: 0 }, &[&high, &low]);
    joined.unwrap_or_else(|error| unreachable!("two words join: {error}"))
}

/// Starts the default generator from `seed`.
pub fn seed(seed: u64) {
    set_state(key(seed));
}

/// The state of the default generator: a key.
pub fn state() -> Array {
    if let Some(traced) = TRACED.with_borrow(Clone::clone) {
        return traced;
    }
    fork::lock(&STATE).get_or_insert_with(|| key(clock())).clone()
}

/// Puts the default generator into `state`, a key.
pub fn set_state(state: Array) {
    let hidden = TRACED.with_borrow_mut(|traced| match traced {
        Some(traced) => {
            *traced = state.clone();
            true
        }
        None => false,
    });
    if !hidden {
        *fork::lock(&STATE) = Some(state);
    }
}

/// Puts back what this thread's generator was.
struct Restore(Option<Array>);

impl Drop for Restore {
    fn drop(&mut self) {
        let former = self.0.take();
        TRACED.with_borrow_mut(|traced| *traced = former);
    }
}

/// Runs `f` with this thread's default generator in `state`; gives the state after it, too. The
/// generator of everybody else goes on as it was.
pub(crate) fn with_state<R>(state: Array, f: impl FnOnce() -> R) -> (R, Array) {
    let _restore = Restore(TRACED.with_borrow_mut(|traced| traced.replace(state)));
    let result = f();
    let after = self::state();
    (result, after)
}

/// Runs `f` with everybody's default generator, also where a trace has its own.
pub(crate) fn untraced<R>(f: impl FnOnce() -> R) -> R {
    let _restore = Restore(TRACED.with_borrow_mut(Option::take));
    f()
}

/// A fresh key from the default generator.
///
/// # Errors
/// None but those of recording.
pub fn next_key() -> Result<Array> {
    let split = |state: &Array| -> Result<(Array, Array)> {
        let op = RandomBits { shape: Shape::from([2, 2]), width: 4 };
        let pair = Array::apply(op, &[state])?;
        let row = |index: usize| {
            let slice = Movement::Slice {
                start: Dims::from_slice(&[index, 0]),
                sizes: Dims::from_slice(&[1, 2]),
                strides: Dims::from_slice(&[1, 1]),
            };
            let row = Array::apply(slice, &[&pair])?;
            Array::apply(Movement::Squeeze(Dims::from_slice(&[0])), &[&row])
        };
        Ok((row(0)?, row(1)?))
    };
    if let Some(traced) = TRACED.with_borrow(Clone::clone) {
        let (next, key) = split(&traced)?;
        set_state(next);
        return Ok(key);
    }
    // One lock over reading and writing: two threads never draw the same key.
    let mut guard = fork::lock(&STATE);
    let (next, key) = split(guard.get_or_insert_with(|| self::key(clock())))?;
    *guard = Some(next);
    Ok(key)
}

fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_nanos() as u64)
}
