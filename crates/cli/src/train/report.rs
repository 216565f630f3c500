//! A run on one page of HTML: it needs no other file, and prints well.

use std::fmt::Write;
use std::path::Path;

use cupola::Device;
use cupola::data::ImageDataset;
use cupola::markup::escaped;
use cupola::train::{Callbacks, EpochMetrics, Report, Tally, Trainer};
use image::{ColorType, ImageEncoder};

use crate::classify::confusion;
use crate::failure::{Failure, Outcome};
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
    let mut sections = String::new();
    matrix(&mut sections, test, predicted);
    worst(&mut sections, test, predicted)?;
    let report = Report::new(path, format!("Training on {}", description.dataset));
    let report = rows.into_iter().fold(report, |report, (key, value)| report.row(key, value));
    let report = with_settings(report, &description.architecture, trainer.settings());
    let report = report.row("device", device.to_string());
    let mut page = Callbacks::new().with(report.section(&sections));
    let history: Vec<_> = trainer.history().iter().map(EpochMetrics::named).collect();
    let history: Vec<&[(&str, f64)]> = history.iter().map(|metrics| &metrics[..]).collect();
    let _ = page.resume(&history, trainer.steps())?;
    Ok(page.end()?)
}

fn matrix(page: &mut String, test: &ImageDataset, predicted: &[(usize, f32)]) {
    let classes = test.classes();
    *page += "<h2>What was taken for what</h2>\n<p>A row for each true class, a column for each predicted \
              one.</p>\n<table>\n<tr><th></th>";
    for class in 0..classes.len() {
        let _ = write!(page, "<th>{class}</th>");
    }
    *page += "</tr>\n";
    for (label, row) in confusion(test, predicted).iter().enumerate() {
        let most = row.iter().sum::<u64>().max(1) as f64;
        let _ = write!(page, "<tr><td>{label} {}</td>", escaped(&classes[label]));
        for (class, &count) in row.iter().enumerate() {
            let kind = if class == label { " class=\"right\"" } else { "" };
            let shade = count as f64 / most;
            let _ = write!(
                page,
                "<td{kind} style=\"background:rgba(0,114,178,{:.2})\">{count}</td>",
                0.6 * shade
            );
        }
        *page += "</tr>\n";
    }
    *page += "</table>\n";
}

/// The images that the network is surest of and wrong about.
fn worst(page: &mut String, test: &ImageDataset, predicted: &[(usize, f32)]) -> Outcome {
    let label = |index: usize| usize::try_from(test.labels()[index]).unwrap_or(usize::MAX);
    let mut wrong: Vec<usize> =
        (0..predicted.len()).filter(|&i| predicted[i].0 != label(i)).collect();
    let count = wrong.len();
    wrong.sort_by(|&a, &b| predicted[b].1.total_cmp(&predicted[a].1).then(a.cmp(&b)));
    let _ =
        writeln!(page, "<h2>Mistakes</h2>\n<p>{count} images, those it is surest of first.</p>");
    let name = |class: usize| test.classes().get(class).map_or("?", String::as_str);
    for &index in wrong.iter().take(WORST) {
        let (class, probability) = predicted[index];
        let _ = writeln!(
            page,
            "<figure><img alt=\"image {index}\" src=\"data:image/png;base64,{}\">\
             <figcaption>{} for {}<br>{:.1} %</figcaption></figure>",
            base64(&png(test, index)?),
            escaped(name(class)),
            escaped(name(label(index))),
            100.0 * probability
        );
    }
    Ok(())
}

fn png(test: &ImageDataset, index: usize) -> Outcome<Vec<u8>> {
    let [height, width, channels] = test.shape();
    let colour = if channels == 1 { ColorType::L8 } else { ColorType::Rgb8 };
    let mut out = Vec::new();
    image::codecs::png::PngEncoder::new(&mut out)
        .write_image(test.image(index), width as u32, height as u32, colour.into())
        .map_err(|cause| Failure::new(format!("--report: image {index}: {cause}")))?;
    Ok(out)
}

/// RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte));
        let word = word << (8 * (3 - chunk.len()));
        for place in 0..4 {
            match place <= chunk.len() {
                true => out.push(char::from(DIGITS[(word >> (18 - 6 * place)) as usize & 63])),
                false => out.push('='),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let texts =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (text, coded) in texts {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}
