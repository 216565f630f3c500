//! How a host stops a long evaluation: a question that is asked between the steps of a plan, and
//! while one waits for another thread's.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::Result;

/// How long an evaluation goes on between two questions.
pub const PATIENCE: Duration = Duration::from_millis(20);

static QUESTION: OnceLock<fn() -> Result<()>> = OnceLock::new();

thread_local! {
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Lets `question` stop evaluations: it is asked now and then between the steps of a plan, on the
/// thread that evaluates, and its error is that of the evaluation. What it waits for it waits for
/// [`crate::fork::outside`] of the gate. The first question stays.
pub fn ask(question: fn() -> Result<()>) {
    let _ = QUESTION.set(question);
}

/// Whether what waits for others gives up.
static GIVES_UP: AtomicBool = AtomicBool::new(false);

/// Lets what waits for another program give up, such as for one that reads a pipe: it fails with
/// [`crate::Error::Interrupted`]. For handlers of signals.
pub fn give_up() {
    GIVES_UP.store(true, Ordering::Relaxed);
}

/// As [`check`], for who waits for another program.
///
/// # Errors
/// As [`check`], and [`crate::Error::Interrupted`] after [`give_up`].
pub fn check_outside() -> Result<()> {
    match GIVES_UP.load(Ordering::Relaxed) {
        true => Err(crate::Error::Interrupted),
        false => check(),
    }
}

/// Asks, if it was not asked lately: for who waits for a device.
///
/// # Errors
/// What the question says; [`crate::Error::Interrupted`] is meant for it.
pub fn check() -> Result<()> {
    let Some(question) = QUESTION.get() else { return Ok(()) };
    let now = Instant::now();
    let due = |then: Instant| now.duration_since(then) >= PATIENCE;
    if ASKED.get().is_none_or(due) {
        let first = ASKED.replace(Some(now)).is_none();
        if !first {
            return question();
        }
    }
    Ok(())
}
