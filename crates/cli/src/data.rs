//! The data sets by name.

use std::path::{Path, PathBuf};

use cupola::data::{Dataset, ImageDataset, Published, digits};

use crate::args::DatasetName;
use crate::failure::{Failure, Outcome};
use crate::output::spinner;

/// The folder that is looked into where none is named.
const DEFAULT_FOLDER: &str = "data";

/// The digits are the same for every run: the seed of a training draws its weights, not its data.
const DIGITS_SEED: u64 = 0;

/// The files that a set is read from.
pub fn files(dataset: DatasetName, folder: Option<&Path>) -> Vec<PathBuf> {
    dataset.published().map(|set| set.files(folder_of(folder))).unwrap_or_default()
}

fn folder_of(given: Option<&Path>) -> &Path {
    given.unwrap_or(Path::new(DEFAULT_FOLDER))
}

/// The training and the test images of a set.
pub fn load(dataset: DatasetName, folder: Option<&Path>) -> Outcome<(ImageDataset, ImageDataset)> {
    let (train, test) = match published(dataset, folder)? {
        Some(set) => read(dataset, || set.read(folder_of(folder)))?,
        None => drawn(),
    };
    check(&train, "training", dataset, folder)?;
    check(&test, "test", dataset, folder)?;
    Ok((train, test))
}

/// The test images of a set: the others are not read.
pub fn load_test(dataset: DatasetName, folder: Option<&Path>) -> Outcome<ImageDataset> {
    let test = match published(dataset, folder)? {
        Some(set) => read(dataset, || set.read_test(folder_of(folder)))?,
        None => drawn().1,
    };
    check(&test, "test", dataset, folder)?;
    Ok(test)
}

/// The published set that it is, if it is one; what is drawn has no folder.
fn published(dataset: DatasetName, folder: Option<&Path>) -> Outcome<Option<Published>> {
    match (dataset.published(), folder) {
        (None, Some(folder)) => Err(Failure::usage(format!(
            "--data-dir {}: the set digits is drawn by the program and read from no folder",
            folder.display()
        ))),
        (set, _) => Ok(set),
    }
}

fn drawn() -> (ImageDataset, ImageDataset) {
    let busy = spinner("drawing digits");
    let sets = digits(DIGITS_SEED);
    busy.finish_and_clear();
    sets
}

fn read<T>(dataset: DatasetName, read: impl FnOnce() -> cupola::data::Result<T>) -> Outcome<T> {
    let busy = spinner(&format!("reading {}", dataset.name()));
    let read = read();
    busy.finish_and_clear();
    read.map_err(|error| match error {
        // A missing file says itself where it was looked for.
        missing @ cupola::data::Error::Missing { .. } => {
            Failure::new(format!("--data-dir: {missing}"))
        }
        other => Failure::from(other),
    })
}

fn check(set: &ImageDataset, what: &str, of: DatasetName, folder: Option<&Path>) -> Outcome {
    if !set.is_empty() {
        return Ok(());
    }
    let folder = folder_of(folder).display();
    Err(Failure::new(format!("{folder}: the set {} has no {what} images", of.name())))
}
