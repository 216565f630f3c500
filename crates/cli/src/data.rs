//! The data sets by name.

use std::path::{Path, PathBuf};

use cupola::data::{Dataset, ImageDataset, Published, digits};

use crate::args::DatasetName;
use crate::failure::{Failure, Outcome};
use crate::output::{below, spinner};

/// The folder that is looked into where none is named.
const DEFAULT_FOLDER: &str = "data";

/// The digits are the same for every run: the seed of a training draws its weights, not its data.
const DIGITS_SEED: u64 = 0;

/// How deep the files of a set lie, as in `data/MNIST/raw`.
const DEPTH: usize = 3;

/// The files of the folder that a set is read from, and of the folders in it.
pub fn files(folder: Option<&Path>) -> Vec<PathBuf> {
    below(folder_of(folder), DEPTH)
}

fn folder_of(given: Option<&Path>) -> &Path {
    given.unwrap_or(Path::new(DEFAULT_FOLDER))
}

/// The training and the test images of a set.
pub fn load(dataset: DatasetName, folder: Option<&Path>) -> Outcome<(ImageDataset, ImageDataset)> {
    let (train, test) = read(dataset, folder, |sets| sets, |set, folder| set.read(folder))?;
    check(&train, "training", dataset, folder)?;
    check(&test, "test", dataset, folder)?;
    Ok((train, test))
}

/// The test images of a set: the others are not read.
pub fn load_test(dataset: DatasetName, folder: Option<&Path>) -> Outcome<ImageDataset> {
    let test = read(dataset, folder, |(_, test)| test, |set, folder| set.read_test(folder))?;
    check(&test, "test", dataset, folder)?;
    Ok(test)
}

fn check(set: &ImageDataset, what: &str, of: DatasetName, folder: Option<&Path>) -> Outcome {
    if !set.is_empty() {
        return Ok(());
    }
    let folder = folder_of(folder).display();
    Err(Failure::new(format!("{folder}: the set {} has no {what} images", of.name())))
}

/// What is wanted of a set: of both parts of one that is drawn, or of a published one in its folder.
fn read<T>(
    dataset: DatasetName,
    folder: Option<&Path>,
    drawn: impl FnOnce((ImageDataset, ImageDataset)) -> T,
    published: impl FnOnce(Published, &Path) -> cupola::data::Result<T>,
) -> Outcome<T> {
    let Some(set) = dataset.published() else {
        if let Some(folder) = folder {
            return Err(Failure::usage(format!(
                "--data-dir {}: the set digits is drawn by the program and read from no folder",
                folder.display()
            )));
        }
        let busy = spinner("drawing digits");
        let sets = digits(DIGITS_SEED);
        busy.finish_and_clear();
        return Ok(drawn(sets));
    };
    let busy = spinner(&format!("reading {}", dataset.name()));
    let read = published(set, folder_of(folder));
    busy.finish_and_clear();
    read.map_err(|error| match error {
        // A missing file says itself where it was looked for.
        missing @ cupola::data::Error::Missing { .. } => {
            Failure::new(format!("--data-dir: {missing}"))
        }
        other => Failure::from(other),
    })
}
