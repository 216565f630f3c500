//! The full state of a training, in one file.

use std::collections::BTreeMap;
use std::path::Path;

use cupola_core::{Array, DType, Error, Result};
use serde::{Deserialize, Serialize};

use super::{Description, EpochMetrics, STATE_FILE, Settings, Tally};
use crate::io::safetensors;

/// What a file of this kind calls itself.
const FORMAT: &str = "cupola-training-1";

/// The names in front of the tensors of the network and of the optimiser.
const MODEL: &str = "model.";
const OPTIMIZER: &str = "optimizer.";
/// Those of the scaler of the loss, where there is one.
const SCALER: &str = "scaler.";
/// The state of the random generator.
const RANDOM: &str = "random";

/// Where a training is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Position {
    /// How many epochs are over.
    pub epoch: usize,
    /// How many batches of the epoch under way were trained on.
    pub batch: usize,
    /// How many steps were made in all.
    pub step: u64,
    /// What the epoch under way has come to.
    pub tally: Tally,
    /// How long it took so far.
    pub seconds: f64,
}

/// What a checkpoint says in words, beside its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub settings: Settings,
    pub description: Description,
    /// How many training images there are; with their mean and deviation, what tells other data.
    pub images: usize,
    /// What tells images that have changed; checkpoints of earlier versions have none.
    #[serde(default)]
    pub training_digest: Option<u64>,
    /// The same of the images that it is tested on, where [`Trainer::set_tests`](super::Trainer::set_tests) named
    /// them.
    #[serde(default)]
    pub test_digest: Option<u64>,
    pub position: Position,
    pub history: Vec<EpochMetrics>,
}

/// A training that was saved: what [`Trainer::resume`](super::Trainer::resume) goes on from.
#[derive(Debug)]
pub struct Checkpoint {
    pub(super) record: Record,
    pub(super) model: BTreeMap<String, Array>,
    pub(super) optimizer: BTreeMap<String, Array>,
    pub(super) scaler: BTreeMap<String, Array>,
    pub(super) random: Array,
    /// Where it was read from, for errors.
    pub(super) path: std::path::PathBuf,
}

impl Checkpoint {
    /// Reads the checkpoint in the folder of a run.
    ///
    /// # Errors
    ///
    /// Where there is none, or it is cut short, damaged, or of something else.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self> {
        let path = folder.as_ref().join(STATE_FILE);
        let (tensors, metadata) = safetensors::load(&path)?;
        let wrong = |detail: String| Error::io(&path, detail);
        match metadata.get("format").map(String::as_str) {
            Some(FORMAT) => {}
            Some(other) => return Err(wrong(format!("is of the format '{other}', not {FORMAT}"))),
            None => return Err(wrong("holds no training state of cupola".to_owned())),
        }
        let text = metadata.get("record").ok_or_else(|| wrong("lacks its record".to_owned()))?;
        let record: Record = serde_json::from_str(text)
            .map_err(|cause| wrong(format!("its record is damaged: {cause}")))?;
        record.description.check().map_err(wrong)?;
        record.settings.check().map_err(|error| wrong(error.to_string()))?;
        record.check().map_err(wrong)?;
        let mut model = BTreeMap::new();
        let mut optimizer = BTreeMap::new();
        let mut scaler = BTreeMap::new();
        let mut random = None;
        for (name, array) in tensors {
            if let Some(name) = name.strip_prefix(MODEL) {
                model.insert(name.to_owned(), array);
            } else if let Some(name) = name.strip_prefix(OPTIMIZER) {
                optimizer.insert(name.to_owned(), array);
            } else if let Some(name) = name.strip_prefix(SCALER) {
                scaler.insert(name.to_owned(), array);
            } else if name == RANDOM {
                random = Some(array);
            } else {
                return Err(wrong(format!("holds '{name}', which no training state has")));
            }
        }
        let is_key = |key: &Array| key.dtype() == DType::U32 && key.shape()[..] == [2];
        let random = random
            .filter(is_key)
            .ok_or_else(|| wrong("lacks the state of the random generator".to_owned()))?;
        Ok(Self { record, model, optimizer, scaler, random, path })
    }

    /// Writes the checkpoint into the folder of a run.
    pub(super) fn write(&self) -> Result<()> {
        let mut tensors = BTreeMap::from([(RANDOM.to_owned(), self.random.clone())]);
        let mut put = |prefix: &str, of: &BTreeMap<String, Array>| {
            for (name, array) in of {
                tensors.insert(format!("{prefix}{name}"), array.clone());
            }
        };
        put(MODEL, &self.model);
        put(OPTIMIZER, &self.optimizer);
        put(SCALER, &self.scaler);
        let record = serde_json::to_string(&self.record)
            .map_err(|cause| Error::io(&self.path, format!("cannot be written: {cause}")))?;
        let metadata = BTreeMap::from([
            ("format".to_owned(), FORMAT.to_owned()),
            ("record".to_owned(), record),
        ]);
        safetensors::save(&self.path, &tensors, &metadata)
    }

    /// What the training was started with.
    pub fn settings(&self) -> &Settings {
        &self.record.settings
    }

    /// Changes when the training ends, and whether its best weights are kept, for what is to come.
    pub fn set_end(&mut self, patience: Option<usize>, keep_best: bool) {
        self.record.settings.patience = patience;
        self.record.settings.keep_best = keep_best;
    }

    /// What the network is for.
    pub fn description(&self) -> &Description {
        &self.record.description
    }

    /// What the epochs that are over came to.
    pub fn history(&self) -> &[EpochMetrics] {
        &self.record.history
    }

    /// How many epochs are over.
    pub fn epochs_done(&self) -> usize {
        self.record.position.epoch
    }
}

impl Record {
    /// Looks whether the parts fit each other.
    fn check(&self) -> Result<(), String> {
        let Position { epoch, batch, step, ref tally, .. } = self.position;
        let images = super::trainer::training_images(self.images).unwrap_or(0);
        let batches = images.div_ceil(self.settings.batch_size);
        if self.history.len() != epoch || batch > batches {
            return Err(format!(
                "its record is damaged: batch {batch} of {batches} after {epoch} epochs, with \
                 metrics of {}",
                self.history.len()
            ));
        }
        let seen = batch.saturating_mul(self.settings.batch_size).min(images) as u64;
        let most = (epoch as u64).saturating_add(1).saturating_mul(batches as u64);
        if tally.images != seen || tally.correct > seen || step > most {
            return Err(format!(
                "its record is damaged: step {step}, {} of {} images right after {batch} batches",
                tally.correct, tally.images
            ));
        }
        Ok(())
    }
}
