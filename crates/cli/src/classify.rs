//! `cupola classify`.

use std::sync::atomic::Ordering;

use cupola::data::{DataLoader, Dataset, ImageDataset};
use cupola::device::{Stream, with_stream};
use cupola::nn::Layer;
use cupola::train::{MODEL_FILE, Model, confusion};
use cupola::{Array, DType, ops};
use serde::Serialize;

use crate::args::{ClassifyArgs, DatasetName};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, bar};
use crate::table::Table;
use crate::train::files_of;
use crate::{data, interrupt, pictures};

/// How many images are looked at together.
const BATCH: usize = 512;

#[derive(Serialize)]
struct Verdict {
    image: String,
    label: String,
    class: usize,
    probability: f32,
}

#[derive(Serialize)]
struct Score<'a> {
    dataset: &'a str,
    images: usize,
    accuracy: f64,
    classes: &'a [String],
    /// A row for each true class, a column for each that was predicted.
    confusion: Vec<Vec<u64>>,
}

pub fn run(args: &ClassifyArgs) -> Outcome {
    // clap lets this pass: IMAGE rules out the --dataset that --data-dir would need.
    if let (Some(folder), None) = (&args.data_dir, args.dataset) {
        let folder = folder.display();
        return Err(Failure::usage(format!("--data-dir {folder}: is of no use without --dataset")));
    }
    let output = Output::new(args.json.as_deref())?;
    output.spares("the model", || [args.run.join(MODEL_FILE)])?;
    output.spares("a file of the run", || files_of(&args.run))?;
    output.spares("an image that is to be classified", || args.images.iter().cloned())?;
    let data = |set| data::files(set, args.data_dir.as_deref());
    output.spares("a file of the data", || args.dataset.into_iter().flat_map(data))?;
    with_stream(Stream::of(args.device), || {
        let model = Model::load(args.run.join(MODEL_FILE))?;
        match args.dataset {
            Some(dataset) => score(args, dataset, &model, &output),
            None => classify(args, &model, &output),
        }
    })
}

fn classify(args: &ClassifyArgs, model: &Model, output: &Output) -> Outcome {
    let images = pictures::set(&args.images, &model.description, args.resize)?;
    let found = predict(model, &images, |_| {})?;
    let classes = &model.description.classes;
    let mut verdicts = Vec::with_capacity(found.len());
    let mut table = Table::new(&["image", "label", "probability"]);
    for (path, (class, probability)) in args.images.iter().zip(found) {
        let image = path.display().to_string();
        let label = classes.get(class).cloned().unwrap_or_default();
        table.row([image.clone(), label.clone(), format!("{:.2} %", 100.0 * probability)]);
        verdicts.push(Verdict { image, label, class, probability });
    }
    output.line(table);
    output.json(&verdicts)
}

fn score(args: &ClassifyArgs, dataset: DatasetName, model: &Model, output: &Output) -> Outcome {
    let test = data::load_test(dataset, args.data_dir.as_deref())?;
    let description = &model.description;
    let side = description.side;
    if test.shape() != [side, side, description.channels] {
        let [height, width, channels] = test.shape();
        return Err(Failure::new(format!(
            "--dataset {}: its images are {height}×{width}×{channels}, the model takes \
             {side}×{side}×{}",
            dataset.name(),
            description.channels
        )));
    }
    let classes = &description.classes;
    if test.classes().len() != classes.len() {
        return Err(Failure::new(format!(
            "--dataset {}: it has {} classes, the model {}",
            dataset.name(),
            test.classes().len(),
            classes.len()
        )));
    }
    if dataset.name() != description.dataset {
        output.line(format!(
            "note: the model was trained on {}, these are the images of {}",
            description.dataset,
            dataset.name()
        ));
    }
    let test = test.normalized(description.normalization()?)?;
    let bar = bar(test.len() as u64, "classifying {wide_bar} {pos}/{len}");
    let found = predict(model, &test, |images| bar.inc(images))?;
    bar.finish_and_clear();
    let taken: Vec<usize> = found.iter().map(|(class, _)| *class).collect();
    let confusion = confusion(classes.len(), &true_classes(&test), &taken)?;
    let right: u64 = (0..classes.len()).map(|class| confusion[class][class]).sum();
    let accuracy = right as f64 / test.len() as f64;
    output.line(format!(
        "accuracy {:.2} % ({right} of {} test images of {})",
        100.0 * accuracy,
        test.len(),
        dataset.name()
    ));
    show(&confusion, classes, output);
    let dataset = dataset.name();
    output.json(&Score { dataset, images: test.len(), accuracy, classes, confusion })
}

/// The class of each image.
pub fn true_classes(images: &ImageDataset) -> Vec<usize> {
    // A negative label is none: it is refused where classes are counted.
    images.labels().iter().map(|&label| usize::try_from(label).unwrap_or(usize::MAX)).collect()
}

/// A table where it fits a screen; of more classes, those that are mistaken most.
fn show(confusion: &[Vec<u64>], classes: &[String], output: &Output) {
    const MOST: usize = 20;
    output.line("");
    if classes.len() <= MOST {
        output.line("a row for each true class, a column for each predicted one:");
        let heading: Vec<String> = (0..classes.len()).map(|class| class.to_string()).collect();
        let heading: Vec<&str> =
            ["class", ""].into_iter().chain(heading.iter().map(String::as_str)).collect();
        let mut table = Table::new(&heading);
        for (class, row) in confusion.iter().enumerate() {
            let cells = row.iter().map(u64::to_string);
            table.row([classes[class].clone(), class.to_string()].into_iter().chain(cells));
        }
        output.line(table);
        return;
    }
    let mut mistakes: Vec<(u64, usize, usize)> = Vec::new();
    for (label, row) in confusion.iter().enumerate() {
        let wrong = row.iter().enumerate().filter(|&(class, count)| class != label && *count > 0);
        mistakes.extend(wrong.map(|(class, count)| (*count, label, class)));
    }
    mistakes.sort_by_key(|&(count, label, class)| (std::cmp::Reverse(count), label, class));
    output.line("the most frequent mistakes (--json has the whole matrix):");
    let mut table = Table::new(&["class", "taken for", "images"]);
    for (count, label, class) in mistakes.into_iter().take(MOST) {
        table.row([classes[label].clone(), classes[class].clone(), count.to_string()]);
    }
    output.line(table);
}

/// The likeliest class of each image, and how likely it is.
pub fn predict(
    model: &Model,
    images: &ImageDataset,
    each: impl Fn(u64),
) -> Outcome<Vec<(usize, f32)>> {
    let stop = interrupt::flag();
    let loader = DataLoader::builder(images.clone()).batch_size(BATCH).workers(1).build()?;
    let mut found = Vec::with_capacity(images.len());
    for batch in loader.epoch(0) {
        let (batch, _): (Array, Array) = batch?;
        let before = found.len();
        found.extend(likeliest(&model.network.forward(&batch)?)?);
        each((found.len() - before) as u64);
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::interrupted("interrupted"));
        }
    }
    Ok(found)
}

/// The likeliest class of each image, and how likely it is, by the scores of a batch.
pub fn likeliest(scores: &Array) -> Outcome<Vec<(usize, f32)>> {
    let classes = ops::argmax(scores, -1, false)?;
    let likely = ops::exp(&ops::astype(&ops::max(scores, -1, false)?, DType::F32)?)?;
    cupola::eval(&[classes.clone(), likely.clone()])?;
    let classes = classes.to_vec::<u32>()?.into_iter().map(|class| class as usize);
    let likely = likely.to_vec::<f32>()?;
    if likely.iter().any(|probability| probability.is_nan()) {
        return Err(Failure::new(
            "the model gives no numbers (NaN): its training diverged, or its file is damaged",
        ));
    }
    Ok(classes.zip(likely).collect())
}
