//! The article's network: training and classification.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use cupola::backend::{Backend, backend};
use cupola::data::{DataLoader, Dataset, ImageDataset};
use cupola::device::{Stream, with_stream};
use cupola::nn::{self, Layer, Module, Reduction};
use cupola::optim::{Adam, Optimizer};
use cupola::train::{ConvNet, Description, Model};
use cupola::{Array, Device, generator, ops, tree};
use indicatif::ProgressBar;
use serde::Serialize;

use super::outputs::Outputs;
use super::timing::{Effort, ms, once, quantile, repeated, us};
use super::{interrupted, key};
use crate::args::BenchArgs;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, bar, replaceable, spared, writable_folder};
use crate::table::Table;
use crate::{data, figures};

const BATCH: usize = 512;
/// Steps that plan, fill caches and wake processors up, and those that are timed one by one.
const WARM_STEPS: usize = 3;
const STEPS: usize = 30;
/// Epochs, each timed as a whole, unless they take too long.
const EPOCHS: Effort = Effort { times: 5, budget: Duration::from_secs(5) };
/// How many images are classified in batches: all, and as many as fill whole batches.
const CLASSIFIED: usize = 10_000;
const IN_WHOLE_BATCHES: usize = 9_728;
const PASSES: Effort = Effort { times: 6, budget: Duration::from_secs(3) };
/// How many images are classified one at a time; the first do not count.
const SINGLES: usize = 500;
const WARM_SINGLES: usize = 20;

#[derive(Serialize)]
struct Measured {
    device: String,
    data: Placement,
    epoch: EpochTime,
    train_step_ms: StepTimes,
    classify_10k_batch512_ms: f64,
    classify_9728_batch512_ms: f64,
    classify_one_us: SingleTimes,
}

/// Where the images lie before they are timed.
#[derive(Serialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Placement {
    /// All of them on the device, of which batches are slices.
    Device,
    /// In memory of the host, from which a loader makes batches.
    Host,
}

#[derive(Serialize)]
struct EpochTime {
    steps: usize,
    ms: f64,
    runs: usize,
}

#[derive(Serialize)]
struct StepTimes {
    min: f64,
    median: f64,
    max: f64,
}

#[derive(Serialize)]
struct SingleTimes {
    median: f64,
    p95: f64,
}

/// Images with their labels: where they lie and how they come.
enum Source<'a> {
    Resident { images: Array, labels: Array },
    Loaded(&'a ImageDataset),
}

impl<'a> Source<'a> {
    /// `count` images of the set on the device, from the start again where it has fewer; nothing
    /// where the device cannot hold or read them as one array.
    fn resident(set: &ImageDataset, count: usize) -> Outcome<Option<Self>> {
        let indices: Vec<usize> = (0..count).map(|index| index % set.len()).collect();
        let (pixels, labels) = set.gather(&indices)?;
        let [height, width, channels] = set.shape();
        let shape = [count, height, width, channels];
        let held = Array::from_vec(pixels, shape).and_then(|images| {
            // What cannot be bound shows at the first use, at the far end.
            let last = image_range(&images, count - 1, count)?;
            ops::sum(&last, (), false)?.item::<f32>()?;
            Ok(images)
        });
        match held {
            Ok(images) => {
                Ok(Some(Self::Resident { images, labels: Array::from_vec(labels, [count])? }))
            }
            // What is wrong with the device beyond that shows when batches come from the host.
            Err(_) => Ok(None),
        }
    }

    fn placement(&self) -> Placement {
        match self {
            Self::Resident { .. } => Placement::Device,
            Self::Loaded(_) => Placement::Host,
        }
    }

    /// The images from `start` up to but without `stop`, on the device.
    fn images(&self, start: usize, stop: usize) -> Outcome<Array> {
        match self {
            Self::Resident { images, .. } => Ok(image_range(images, start, stop)?),
            Self::Loaded(set) => {
                let indices: Vec<usize> = (start..stop).map(|index| index % set.len()).collect();
                Ok(set.get_batch(&indices)?.0)
            }
        }
    }

    /// `steps` batches to train on.
    fn batches(&'a self, steps: usize) -> Outcome<Batches<'a>> {
        match self {
            Self::Resident { images, labels } => Ok(Box::new((0..steps).map(move |step| {
                // More steps than an epoch has begin with the first batch again.
                let start = step * BATCH % images.shape()[0];
                let (from, to) = (start as isize, (start + BATCH) as isize);
                let labels = ops::slice(labels, &[from], &[to], &[1])?;
                Ok((image_range(images, start, start + BATCH)?, labels))
            }))),
            Self::Loaded(set) => {
                let loader = DataLoader::builder((*set).clone())
                    .batch_size(BATCH)
                    .shuffle(0)
                    .drop_last(set.len() >= BATCH)
                    .workers(1)
                    .build()?;
                let epochs = (0..).flat_map(move |epoch| loader.epoch(epoch));
                Ok(Box::new(epochs.take(steps).map(|batch| Ok(batch?))))
            }
        }
    }
}

type Batches<'a> = Box<dyn Iterator<Item = Outcome<(Array, Array)>> + 'a>;

fn image_range(images: &Array, start: usize, stop: usize) -> cupola::Result<Array> {
    let shape = images.shape();
    let [_, height, width, channels] = [0, 1, 2, 3].map(|axis| shape[axis] as isize);
    let (start, stop) = (start as isize, stop as isize);
    ops::slice(images, &[start, 0, 0, 0], &[stop, height, width, channels], &[1; 4])
}

/// Whether nothing is at `path`, or a drawing, which a chart may take the place of.
fn is_free_for_a_chart(path: &Path) -> bool {
    let mut start = [0; 4];
    // A pipe is not opened.
    match path.metadata() {
        Ok(known) if known.is_file() && known.len() > 0 => std::fs::File::open(path)
            .is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && start == *b"<svg"),
        _ => true,
    }
}

pub fn run(args: &BenchArgs, devices: &[Device], output: &Output) -> Outcome {
    output.spares("what --out goes to", || [args.out.clone()])?;
    if let Some(path) = &args.outputs {
        spared("--outputs", path, "what --out goes to", [args.out.clone()])?;
    }
    writable_folder("--out", &args.out)?;
    let charts = || CHARTS.map(|(file, ..)| args.out.join(file));
    for chart in charts() {
        replaceable("--out", &chart)?;
        if !is_free_for_a_chart(&chart) {
            let chart = chart.display();
            return Err(Failure::new(format!(
                "--out: {chart} is there, and is no chart of this program; name another folder"
            )));
        }
    }
    output.spares("a chart in --out", charts)?;
    if let Some(path) = &args.outputs {
        spared("--outputs", path, "a chart in --out", charts())?;
    }
    let mut outputs = Outputs::new(args.outputs.as_deref())?;
    let (images, test) = data::load(args.dataset, args.data_dir.as_deref())?;
    let description = Description::of(&images)?;
    let sets = Sets {
        images: images.normalized(description.normalization()?)?,
        test: test.normalized(description.normalization()?)?,
        description,
        steps: args.steps,
        from_host: args.from_host,
    };
    let mut results = Vec::with_capacity(devices.len());
    for &device in devices {
        let measured = with_stream(Stream::of(device), || sets.measure(device, &mut outputs))?;
        results.push(measured);
    }
    sets.keep(&mut outputs)?;
    let name = args.dataset.name();
    output.line(format!("the article's network on {name}, batches of {BATCH}"));
    output.line(table(&results));
    output.line("images: where they lie before a time is taken, on the device or at the host");
    draw(args, &results)?;
    output.line(format!("charts in {}", args.out.display()));
    output.json(&results)
}

/// What all devices are measured with.
struct Sets {
    images: ImageDataset,
    test: ImageDataset,
    description: Description,
    /// How many steps an epoch has.
    steps: usize,
    from_host: bool,
}

impl Sets {
    fn measure(&self, device: Device, outputs: &mut Outputs) -> Outcome<Measured> {
        generator::seed(0);
        let Description { channels, side, classes, .. } = &self.description;
        let network = ConvNet::new(*channels, *side, classes.len())?;
        let backend = &**backend(device)?;
        let singles = self.steps.min(STEPS);
        let work = WARM_STEPS + singles + EPOCHS.times * self.steps;
        let bar = bar(work as u64, "{msg} {wide_bar} {pos}/{len}  {elapsed}");
        bar.set_message(device.to_string());
        let (training, test) = self.sources()?;
        let mut trainer = Training::new(backend, &network, &training)?;
        let steps = trainer.steps(singles, &bar)?;
        let epochs = trainer.epochs(self.steps, &bar)?;
        network.eval();
        bar.set_message(format!("{device}, classifying"));
        let all = batched(backend, &network, &test, CLASSIFIED)?;
        let whole = batched(backend, &network, &test, IN_WHOLE_BATCHES)?;
        let one = singly(&network, &test)?;
        bar.finish_and_clear();
        if outputs.are_wanted() {
            keep_network(device, &network, &test, outputs)?;
        }
        Ok(Measured {
            device: device.to_string(),
            data: training.placement(),
            epoch: EpochTime {
                steps: self.steps,
                ms: ms(quantile(&epochs, 0.5)),
                runs: epochs.len(),
            },
            train_step_ms: StepTimes {
                min: ms(quantile(&steps, 0.0)),
                median: ms(quantile(&steps, 0.5)),
                max: ms(quantile(&steps, 1.0)),
            },
            classify_10k_batch512_ms: ms(quantile(&all, 0.0)),
            classify_9728_batch512_ms: ms(quantile(&whole, 0.0)),
            classify_one_us: SingleTimes {
                median: us(quantile(&one, 0.5)),
                p95: us(quantile(&one, 0.95)),
            },
        })
    }

    /// What to train on and what to classify: on the device, unless they do not fit or are asked
    /// for from the host.
    fn sources(&self) -> Outcome<(Source<'_>, Source<'_>)> {
        let source = |set, count| -> Outcome<Source<'_>> {
            let resident = match self.from_host {
                true => None,
                false => Source::resident(set, count)?,
            };
            Ok(resident.unwrap_or(Source::Loaded(set)))
        };
        Ok((source(&self.images, self.steps * BATCH)?, source(&self.test, CLASSIFIED)?))
    }

    /// The images as bytes, for the file of outputs, with what brings them to the network's scale.
    fn keep(&self, outputs: &mut Outputs) -> Outcome {
        let mut metadata = BTreeMap::new();
        if outputs.are_wanted() {
            for (name, set) in [("train", &self.images), ("test", &self.test)] {
                let [height, width, channels] = set.shape();
                let pixels = Array::from_slice(set.pixels(), [set.len(), height, width, channels])?;
                outputs.keep(format!("{name}.pixels"), &pixels)?;
                let labels = Array::from_slice(set.labels(), [set.len()])?;
                outputs.keep(format!("{name}.labels"), &labels)?;
            }
            for (name, values) in [("mean", &self.description.mean), ("std", &self.description.std)]
            {
                let text = serde_json::to_string(values)
                    .map_err(|cause| Failure::new(format!("--outputs: {cause}")))?;
                metadata.insert(name.to_owned(), text);
            }
        }
        outputs.write(&metadata)
    }
}

/// The weights, and what the network makes of the test images.
fn keep_network(
    device: Device,
    network: &ConvNet,
    test: &Source<'_>,
    outputs: &mut Outputs,
) -> Outcome {
    for (name, value) in network.state() {
        outputs.keep(key(device, &name), &value)?;
    }
    let batches: Vec<Array> = (0..IN_WHOLE_BATCHES / BATCH)
        .map(|batch| Ok(network.forward(&test.images(batch * BATCH, (batch + 1) * BATCH)?)?))
        .collect::<Outcome<_>>()?;
    let all = ops::concatenate(&batches.iter().collect::<Vec<_>>(), 0)?;
    outputs.keep(key(device, "log_probabilities"), &all)
}

struct Training<'a> {
    device: &'a dyn Backend,
    network: &'a ConvNet,
    optimizer: Adam,
    source: &'a Source<'a>,
}

impl<'a> Training<'a> {
    fn new(device: &'a dyn Backend, network: &'a ConvNet, source: &'a Source<'a>) -> Outcome<Self> {
        let optimizer = Adam::new(1e-3)?;
        nn::eval_all(&[network, &optimizer])?;
        network.train(true);
        Ok(Self { device, network, optimizer, source })
    }

    fn step(&mut self, images: Array, labels: Array) -> Outcome {
        let network = self.network;
        let ((loss, ()), gradients) = nn::value_and_grad(network, |network| {
            Ok((nn::nll_loss(&network.forward(&images)?, &labels, Reduction::Mean)?, ()))
        })?;
        self.optimizer.update(network, &gradients)?;
        drop((images, labels, gradients));
        let state: [&dyn tree::Tree; 2] = [network, &self.optimizer];
        let leaves = state.iter().flat_map(|tree| tree::leaves(*tree)).map(|(_, array)| array);
        let wanted: Vec<Array> = [loss, generator::state()].into_iter().chain(leaves).collect();
        Ok(cupola::eval(&wanted)?)
    }

    /// Steps of which each ends when the loss and the new parameters are computed; its batch is
    /// there before.
    fn steps(&mut self, count: usize, bar: &ProgressBar) -> Outcome<Vec<Duration>> {
        let mut times = Vec::with_capacity(WARM_STEPS + count);
        for batch in self.source.batches(WARM_STEPS + count)? {
            let (images, labels) = batch?;
            cupola::eval(&[images.clone(), labels.clone()])?;
            times.push(once(self.device, || self.step(images, labels))?);
            bar.inc(1);
        }
        Ok(times.split_off(WARM_STEPS.min(times.len())))
    }

    /// Epochs: slicing or loading the batches is in their time, and steps follow one another
    /// without waiting for results.
    fn epochs(&mut self, steps: usize, bar: &ProgressBar) -> Outcome<Vec<Duration>> {
        let source = self.source;
        repeated(self.device, EPOCHS, || {
            for batch in source.batches(steps)? {
                interrupted()?;
                let (images, labels) = batch?;
                self.step(images, labels)?;
                bar.inc(1);
            }
            Ok(())
        })
    }
}

/// What a trained network takes on its device: 10,000 images in batches in ms, the shortest of some passes, and one
/// image in µs, the median of many.
pub fn classification(
    device: &dyn Backend,
    model: &Model,
    test: &ImageDataset,
) -> Outcome<(f64, f64)> {
    let test = test.clone().normalized(model.description.normalization()?)?;
    let source = Source::resident(&test, CLASSIFIED)?.unwrap_or(Source::Loaded(&test));
    model.network.eval();
    let all = batched(device, &model.network, &source, CLASSIFIED)?;
    let one = singly(&model.network, &source)?;
    Ok((ms(quantile(&all, 0.0)), us(quantile(&one, 0.5))))
}

fn classes(network: &ConvNet, images: &Array) -> cupola::Result<Array> {
    ops::argmax(&network.forward(images)?, -1, false)
}

/// Passes over `count` images in batches that are there before.
fn batched(
    device: &dyn Backend,
    network: &ConvNet,
    test: &Source<'_>,
    count: usize,
) -> Outcome<Vec<Duration>> {
    let batches: Vec<Array> = (0..count)
        .step_by(BATCH)
        .map(|start| test.images(start, (start + BATCH).min(count)))
        .collect::<Outcome<_>>()?;
    let pass = || {
        // The classes of all images stay until the pass is over.
        let mut found = Vec::with_capacity(batches.len());
        for batch in &batches {
            let classes = classes(network, batch)?;
            classes.eval()?;
            found.push(classes);
        }
        Ok(())
    };
    // The first pass plans.
    once(device, pass)?;
    repeated(device, PASSES, pass)
}

/// One image after the other; each time ends when its class is read.
fn singly(network: &ConvNet, test: &Source<'_>) -> Outcome<Vec<Duration>> {
    let images: Vec<Array> = (0..WARM_SINGLES + SINGLES)
        .map(|index| test.images(index, index + 1))
        .collect::<Outcome<_>>()?;
    let mut times = Vec::with_capacity(images.len());
    for image in &images {
        interrupted()?;
        let began = Instant::now();
        classes(network, image)?.item::<u32>()?;
        times.push(began.elapsed());
    }
    Ok(times.split_off(WARM_SINGLES))
}

fn table(results: &[Measured]) -> Table {
    let heading = [
        "device",
        "images",
        "epoch, ms",
        "steps",
        "step, ms",
        "min–max",
        "10,000, ms",
        "9,728, ms",
        "one, µs",
        "p95, µs",
    ];
    let mut table = Table::new(&heading);
    for result in results {
        let step = &result.train_step_ms;
        table.row([
            result.device.clone(),
            match result.data {
                Placement::Device => "device".to_owned(),
                Placement::Host => "host".to_owned(),
            },
            format!("{:.1}", result.epoch.ms),
            result.epoch.steps.to_string(),
            format!("{:.2}", step.median),
            format!("{:.2}–{:.2}", step.min, step.max),
            format!("{:.2}", result.classify_10k_batch512_ms),
            format!("{:.2}", result.classify_9728_batch512_ms),
            format!("{:.0}", result.classify_one_us.median),
            format!("{:.0}", result.classify_one_us.p95),
        ]);
    }
    table
}

/// A chart's file, its title, and what of a device it shows.
type Chart = (&'static str, &'static str, fn(&Measured) -> f64);

const CHARTS: [Chart; 4] = [
    ("epoch.svg", "Training, s an epoch", |m| m.epoch.ms / 1e3),
    ("train_step.svg", "Training, ms a step", |m| m.train_step_ms.median),
    ("classify_10k.svg", "10,000 images in batches, ms", |m| m.classify_10k_batch512_ms),
    ("classify_one.svg", "One image, µs", |m| m.classify_one_us.median),
];

fn draw(args: &BenchArgs, results: &[Measured]) -> Outcome {
    for (file, title, value) in CHARTS {
        let bars: Vec<(String, f64)> =
            results.iter().map(|result| (result.device.clone(), value(result))).collect();
        figures::draw_bars(&args.out.join(file), title, &bars)?;
    }
    Ok(())
}
