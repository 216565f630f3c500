//! The record of a training, in which its settings are: with any text there, the training goes on
//! or is refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use cupola::io::safetensors;
use cupola::train::{Checkpoint, Event, STATE_FILE, Trainer, Until};

use crate::{edits, training};

const RECORD: &str = "record";

/// Records as JSON, in the middle of an epoch and at its end, and edits of one.
pub fn seeds() -> Vec<Vec<u8>> {
    let record = |steps| {
        let [_, (_, metadata)] = training::after(steps);
        metadata[RECORD].clone().into_bytes()
    };
    let edits = [vec![0, 1], vec![7, 4, 9, 2]];
    [1, 3, 4].map(record).into_iter().chain(edits).collect()
}

pub fn check(data: &[u8]) {
    let [_, (tensors, metadata)] = training::usual();
    let mut metadata: BTreeMap<String, String> = metadata.clone();
    let record = edits::text(data, &metadata[RECORD]);
    metadata.insert(RECORD.to_owned(), record);
    let folder = training::folder("resumed");
    safetensors::save(folder.join(STATE_FILE), tensors, &metadata).expect("a file");
    let Ok(checkpoint) = Checkpoint::read(&folder) else { return };
    let epochs = checkpoint.settings().epochs;
    let Ok(mut trainer) = Trainer::resume(checkpoint, &training::images(), epochs) else { return };
    // One step: the number of the next may be too large for a limit on them.
    let stop = AtomicBool::new(false);
    let until = Until { stop: Some(&stop), ..Until::default() };
    let mut report = |event: Event<'_>| {
        stop.fetch_or(matches!(event, Event::Step { .. }), Ordering::Relaxed);
    };
    if trainer.run(&folder, until, &mut report).is_ok() {
        Checkpoint::read(&folder).expect("what was saved is read");
    }
}
