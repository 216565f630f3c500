//! The data sets by name.

use std::path::{Path, PathBuf};

use cupola::data::{Dataset, ImageDataset, digits};

use crate::args::DatasetName;
use crate::failure::{Failure, Outcome};
use crate::output::spinner;

/// The folder that is looked into where none is named.
const DEFAULT_FOLDER: &str = "data";

/// The digits are the same for every run: the seed of a training draws its weights, not its data.
const DIGITS_SEED: u64 = 0;

/// The files of the folder that a set is read from, and of the folders in it.
pub fn files(folder: Option<&Path>) -> Vec<PathBuf> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let own = below(folder.unwrap_or(Path::new(DEFAULT_FOLDER)));
    let inner: Vec<PathBuf> =
        own.iter().filter(|path| path.is_dir()).flat_map(|path| below(path)).collect();
    own.into_iter().chain(inner).collect()
}

/// The training and the test images of a set.
pub fn load(dataset: DatasetName, folder: Option<&Path>) -> Outcome<(ImageDataset, ImageDataset)> {
    let Some(published) = dataset.published() else {
        if let Some(folder) = folder {
            return Err(Failure::usage(format!(
                "--data-dir {}: the set digits is drawn by the program and read from no folder",
                folder.display()
            )));
        }
        let busy = spinner("drawing digits");
        let sets = digits(DIGITS_SEED);
        busy.finish_and_clear();
        return Ok(sets);
    };
    let folder = folder.map_or_else(|| PathBuf::from(DEFAULT_FOLDER), Path::to_owned);
    let busy = spinner(&format!("reading {}", dataset.name()));
    let read = published.read(&folder);
    busy.finish_and_clear();
    let (train, test) = read.map_err(|error| match error {
        // A missing file says itself where it was looked for.
        missing @ cupola::data::Error::Missing { .. } => {
            Failure::new(format!("--data-dir: {missing}"))
        }
        other => Failure::from(other),
    })?;
    for (set, what) in [(&train, "training"), (&test, "test")] {
        if set.is_empty() {
            return Err(Failure::new(format!(
                "{}: the set {} has no {what} images",
                folder.display(),
                dataset.name()
            )));
        }
    }
    Ok((train, test))
}
