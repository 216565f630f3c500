//! What happens during a run, and when it ends.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{EpochMetrics, Tally};

/// When a run stops before all epochs are over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Until<'a> {
    /// After that many training steps of this run.
    pub steps: Option<u64>,
    /// Once this turns true; the step under way is finished first.
    pub stop: Option<&'a AtomicBool>,
}

impl Until<'_> {
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Why a run stopped; its state is saved in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All epochs are over.
    Done,
    /// As many steps were made as were asked for.
    Steps,
    /// The flag was raised.
    Flag,
    /// The validation loss did not come down any more ([`Settings::patience`](super::Settings)).
    Stalled,
    /// A callback asked for it ([`Trainer::callbacks`](super::Trainer::callbacks)).
    Callback,
}

/// Something that happened during a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An epoch begins, or goes on.
    Epoch {
        /// Its number, from 1.
        number: usize,
        /// How many batches were trained on before.
        from: usize,
        /// How many there are.
        batches: usize,
        /// How many images there are to train on.
        images: usize,
    },
    /// A training step was made.
    Step {
        /// The number of the step, from 1.
        number: u64,
        /// The loss of its batch.
        loss: f64,
        /// The part of its batch that was classified rightly.
        accuracy: f64,
        /// What the epoch has come to so far.
        tally: &'a Tally,
    },
    /// The validation after an epoch begins.
    Validation {
        /// How many images there are.
        images: usize,
    },
    /// A batch was validated.
    Validated {
        /// What the validation has come to so far.
        tally: &'a Tally,
    },
    /// An epoch is over, and saved.
    Finished {
        /// Its number, from 1.
        number: usize,
        /// What it came to.
        metrics: &'a EpochMetrics,
    },
}
