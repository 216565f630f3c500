//! A run on one page of HTML: it needs no other file, and prints well.

use std::path::Path;

use cupola::Device;
use cupola::data::ImageDataset;
use cupola::train::{Callbacks, EpochMetrics, Picture, Report, Tally, Trainer};

use crate::classify::true_classes;
use crate::failure::Outcome;
use crate::report::with_settings;

/// How many of the images that are mistaken are shown.
const WORST: usize = 24;

/// Writes the page about a run that is over to `path`.
pub fn write(
    path: &Path,
    trainer: &Trainer,
    test: &ImageDataset,
    (found, predicted): (&Tally, &[(usize, f32)]),
    device: Device,
) -> Outcome {
    let description = &trainer.model().description;
    let rows = [
        ("test accuracy", format!("{:.2} %", 100.0 * found.accuracy())),
        ("test loss", format!("{:.4}", found.mean_loss())),
        ("test images", found.images.to_string()),
        ("steps", trainer.steps().to_string()),
    ];
    let report = Report::new(path, format!("Training on {}", description.dataset));
    let report = rows.into_iter().fold(report, |report, (key, value)| report.row(key, value));
    let report = with_settings(report, &description.architecture, trainer.settings());
    let report = report.row("device", device.to_string());
    let taken: Vec<usize> = predicted.iter().map(|(class, _)| *class).collect();
    report.confusion(test.classes(), &true_classes(test), &taken)?;
    worst(&report, test, predicted)?;
    let mut page = Callbacks::new().with(report.clone());
    let history: Vec<_> = trainer.history().iter().map(EpochMetrics::named).collect();
    let history: Vec<&[(&str, f64)]> = history.iter().map(|metrics| &metrics[..]).collect();
    let _ = page.resume(&history, trainer.steps())?;
    if let Some(partial) = trainer.partial() {
        report.unfinished(partial.epoch, partial.steps, &partial.named());
    }
    Ok(page.end()?)
}

/// The images that the network is surest of and wrong about.
fn worst(report: &Report, test: &ImageDataset, predicted: &[(usize, f32)]) -> Outcome {
    let labels = true_classes(test);
    let mut wrong: Vec<usize> =
        (0..predicted.len()).filter(|&i| predicted[i].0 != labels[i]).collect();
    let about = format!("{} images, those it is surest of first.", wrong.len());
    wrong.sort_by(|&a, &b| predicted[b].1.total_cmp(&predicted[a].1).then(a.cmp(&b)));
    let name = |class: usize| test.classes().get(class).map_or("?", String::as_str);
    let picture = |&index: &usize| {
        let (class, probability) = predicted[index];
        let caption = vec![
            format!("{} for {}", name(class), name(labels[index])),
            format!("{:.1} %", 100.0 * probability),
            format!("image {index}"),
        ];
        Picture { pixels: test.image(index), shape: test.shape(), caption }
    };
    let pictures: Vec<Picture<'_>> = wrong.iter().take(WORST).map(picture).collect();
    Ok(report.pictures("Mistakes", &about, &pictures)?)
}
