//! A small training, whose files the targets `model` and `state` change.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use cupola::Array;
use cupola::data::ImageDataset;
use cupola::io::safetensors;
use cupola::train::{MODEL_FILE, STATE_FILE, Settings, Trainer, Until};

use crate::scratch;

/// The content of a safetensors file.
pub type Content = (BTreeMap<String, Array>, BTreeMap<String, String>);

const SIDE: usize = 8;
const IMAGES: usize = 10;

/// The images that it is trained on.
pub fn images() -> ImageDataset {
    let pixels = (0..IMAGES * SIDE * SIDE).map(|value| (value % 251) as u8).collect();
    let labels = (0..IMAGES as i32).map(|index| index % 2).collect();
    let classes = vec!["even".to_owned(), "odd".to_owned()];
    ImageDataset::new("mnist", pixels, [SIDE, SIDE, 1], labels, classes).expect("images")
}

/// The folder of a run.
pub fn folder(name: &str) -> PathBuf {
    let folder = scratch::path(name);
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

/// Model and state after `steps` steps, of which an epoch has three.
pub fn after(steps: u64) -> [Content; 2] {
    let settings = Settings { epochs: 2, batch_size: 3, ..Settings::default() };
    let folder = folder("training");
    let until = Until { steps: Some(steps), ..Until::default() };
    Trainer::new(settings, &images())
        .and_then(|mut trainer| trainer.run(&folder, until, &mut |_| {}))
        .expect("a training");
    [MODEL_FILE, STATE_FILE].map(|file| safetensors::load(folder.join(file)).expect("a file"))
}

/// Model and state of a run in the middle of its second epoch.
pub fn usual() -> &'static [Content; 2] {
    static USUAL: OnceLock<[Content; 2]> = OnceLock::new();
    USUAL.get_or_init(|| after(4))
}
