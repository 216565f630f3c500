//! The article's network and what trains it: settings, checkpoints, metrics.
//!
//! [`ConvNet`] is the network of the article *PyTorch and MLX for Apple Silicon*; a [`Trainer`]
//! trains it on an [`ImageDataset`](crate::data::ImageDataset) and keeps a run in a folder: the
//! model, the full state of the training, the metrics of its epochs. A run that was stopped at any
//! step and resumed ends with the same weights, bit for bit, as one that was not. The program
//! `cupola train` is a front of this module.
//!
//! What the trainer does beside training is there for a program's own loop, too: [`Callbacks`] with
//! [`EarlyStopping`], [`KeepBest`], [`MetricsFile`], [`TensorBoard`] and [`Report`], and [`accumulate`] for
//! batches that are learnt from in parts.
//!
//! ```
//! use cupola::data::digits_sized;
//! use cupola::train::{Settings, Stop, Trainer, Until};
//!
//! let folder = tempfile::tempdir()?;
//! let (images, test) = digits_sized(0, 60, 20);
//! let settings = Settings { epochs: 1, batch_size: 16, ..Settings::default() };
//! let mut trainer = Trainer::new(settings, &images)?;
//! let stop = trainer.run(folder.path(), Until { steps: Some(2), ..Until::default() }, &mut |_| {})?;
//! assert_eq!(stop, Stop::Steps);
//! assert!(folder.path().join("model.safetensors").is_file());
//! # let _ = test;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accumulate;
mod callback;
mod checkpoint;
mod lock;
mod metrics;
mod model;
mod network;
mod precision;
mod run;
mod settings;
mod step;
mod tensorboard;
mod trainer;

pub use accumulate::{Accumulator, Part, accumulate, part};
pub use callback::{
    Best, Callback, Callbacks, EarlyStopping, Goal, KeepBest, MetricsFile, Moment, Picture, Report,
    confusion, panels,
};
pub use checkpoint::Checkpoint;
pub use lock::{LOCK_FILE, RunLock};
pub use metrics::{EpochMetrics, PartialEpoch, Tally, evaluate};
pub use model::{Description, Model};
pub use network::ConvNet;
pub use precision::Precision;
pub use run::{Event, Stop, Until};
pub use settings::{Augment, Settings};
pub use tensorboard::TensorBoard;
pub use trainer::{OPTIMIZERS, Trainer, split};

/// The name of the file in a run's folder that holds the last weights.
pub const MODEL_FILE: &str = "model.safetensors";
/// The name of the file in a run's folder that holds the weights after the epoch whose validation loss is least,
/// where the settings ask for it.
pub const BEST_FILE: &str = "best.safetensors";
/// The name of the file in a run's folder that holds all that resuming needs.
pub const STATE_FILE: &str = "state.safetensors";
/// The name of the file in a run's folder that holds the metrics, a line an epoch.
pub const METRICS_FILE: &str = "metrics.jsonl";

#[cfg(test)]
mod tests;
