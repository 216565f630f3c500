//! `cupola bench`: the article's table, device by device.

use std::time::{Duration, Instant};

use cupola::backend::{Backend, backend};
use cupola::data::{DataLoader, Dataset, ImageDataset};
use cupola::device::{Stream, with_stream};
use cupola::nn::{self, Layer, Module, Reduction};
use cupola::optim::{Adam, Optimizer};
use cupola::train::{ConvNet, Description};
use cupola::{Array, Device, fallback, generator, ops, tree};
use serde::Serialize;

use crate::args::BenchArgs;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, bar, writable_folder};
use crate::table::Table;
use crate::{data, figures, interrupt};

const BATCH: usize = 512;
/// Steps that plan, fill caches and wake processors up, and those that count.
const WARM_STEPS: usize = 3;
const STEPS: usize = 30;
/// How many images are classified in batches, and how often.
const CLASSIFIED: usize = 10_000;
const PASSES: usize = 3;
/// How many images are classified one at a time; the first do not count.
const SINGLES: usize = 500;
const WARM_SINGLES: usize = 20;

#[derive(Serialize)]
struct Measured {
    device: String,
    train_step_ms: StepTimes,
    classify_10k_batch512_ms: f64,
    classify_one_us: SingleTimes,
    /// Seconds an epoch, at the median step; for the table, `--json` leaves it out.
    #[serde(skip)]
    epoch_s: f64,
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

pub fn run(args: &BenchArgs) -> Outcome {
    let output = Output::new(args.json.as_deref())?;
    writable_folder("--out", &args.out)?;
    let (images, test) = data::load(args.dataset, args.data_dir.as_deref())?;
    let description = Description::of(&images)?;
    let images = images.normalized(description.normalization()?)?;
    let test = test.normalized(description.normalization()?)?;
    let devices = match args.device.is_empty() {
        true => vec![cupola::backend::best_device()],
        false => args.device.clone(),
    };
    // A time that the CPU had a hand in would say nothing about the device.
    fallback::set_policy(fallback::Policy::Error);
    let mut results = Vec::with_capacity(devices.len());
    for device in devices {
        let measured =
            with_stream(Stream::of(device), || measure(device, &description, &images, &test))?;
        results.push(measured);
    }
    let name = args.dataset.name();
    output.line(format!("the article's network on {name}, batches of {BATCH}"));
    output.line(table(&results));
    draw(args, &results)?;
    output.line(format!("charts in {}", args.out.display()));
    output.json(&results)
}

fn measure(
    device: Device,
    description: &Description,
    images: &ImageDataset,
    test: &ImageDataset,
) -> Outcome<Measured> {
    generator::seed(0);
    let Description { channels, side, classes, .. } = description;
    let network = ConvNet::new(*channels, *side, classes.len())?;
    let work = WARM_STEPS + STEPS + PASSES * CLASSIFIED.div_ceil(BATCH);
    let bar = bar(work as u64, "{msg} {wide_bar} {pos}/{len}  {elapsed}");
    bar.set_message(device.to_string());
    let steps = training_steps(&**backend(device)?, &network, images, || bar.inc(1))?;
    network.eval();
    let passes = batched(&network, test, || bar.inc(1))?;
    bar.set_message(format!("{device}, one at a time"));
    let singles = singly(&network, test)?;
    bar.finish_and_clear();
    let (ms, us) = (|t: Duration| t.as_secs_f64() * 1e3, |t: Duration| t.as_secs_f64() * 1e6);
    let median = quantile(&steps, 0.5);
    // Nine tenths are trained on, the last batch of an epoch is a smaller one.
    let batches = (images.len() - images.len() / 10).div_ceil(BATCH);
    Ok(Measured {
        device: device.to_string(),
        train_step_ms: StepTimes {
            min: ms(quantile(&steps, 0.0)),
            median: ms(median),
            max: ms(quantile(&steps, 1.0)),
        },
        classify_10k_batch512_ms: ms(quantile(&passes, 0.0)),
        classify_one_us: SingleTimes {
            median: us(quantile(&singles, 0.5)),
            p95: us(quantile(&singles, 0.95)),
        },
        epoch_s: median.as_secs_f64() * batches as f64,
    })
}

/// A step ends when the loss and the new parameters are computed; its batch is there before.
fn training_steps(
    device: &dyn Backend,
    network: &ConvNet,
    images: &ImageDataset,
    tick: impl Fn(),
) -> Outcome<Vec<Duration>> {
    let mut optimizer = Adam::new(1e-3)?;
    nn::eval_all(&[network, &optimizer])?;
    network.train(true);
    let loader = DataLoader::builder(images.clone())
        .batch_size(BATCH)
        .shuffle(0)
        .drop_last(images.len() >= BATCH)
        .build()?;
    let mut batches = (0..).flat_map(|epoch| loader.epoch(epoch));
    let mut times = Vec::with_capacity(STEPS);
    for step in 0..WARM_STEPS + STEPS {
        interrupted()?;
        let (images, labels) = batches.next().transpose()?.ok_or_else(no_images)?;
        cupola::eval(&[images.clone(), labels.clone()])?;
        let began = Instant::now();
        let ((loss, ()), gradients) = nn::value_and_grad(network, |network| {
            Ok((nn::nll_loss(&network.forward(&images)?, &labels, Reduction::Mean)?, ()))
        })?;
        optimizer.update(network, &gradients)?;
        drop((images, labels, gradients));
        let state: [&dyn tree::Tree; 2] = [network, &optimizer];
        let leaves = state.iter().flat_map(|tree| tree::leaves(*tree)).map(|(_, array)| array);
        let wanted: Vec<Array> = [loss, generator::state()].into_iter().chain(leaves).collect();
        cupola::eval(&wanted)?;
        // A GPU still works when the evaluation returns.
        device.synchronize()?;
        if step >= WARM_STEPS {
            times.push(began.elapsed());
        }
        tick();
    }
    Ok(times)
}

fn batched(network: &ConvNet, test: &ImageDataset, tick: impl Fn()) -> Outcome<Vec<Duration>> {
    let indices: Vec<usize> = (0..CLASSIFIED).map(|index| index % test.len()).collect();
    let batches: Vec<Array> =
        indices.chunks(BATCH).map(|chunk| Ok(test.get_batch(chunk)?.0)).collect::<Outcome<_>>()?;
    let mut times = Vec::with_capacity(PASSES);
    for _ in 0..PASSES {
        let began = Instant::now();
        for batch in &batches {
            interrupted()?;
            ops::argmax(&network.forward(batch)?, -1, false)?.eval()?;
            tick();
        }
        times.push(began.elapsed());
    }
    Ok(times)
}

fn singly(network: &ConvNet, test: &ImageDataset) -> Outcome<Vec<Duration>> {
    let mut times = Vec::with_capacity(SINGLES);
    for index in 0..WARM_SINGLES + SINGLES {
        interrupted()?;
        let (image, _) = test.get_batch(&[index % test.len()])?;
        let began = Instant::now();
        ops::argmax(&network.forward(&image)?, -1, false)?.item::<u32>()?;
        if index >= WARM_SINGLES {
            times.push(began.elapsed());
        }
    }
    Ok(times)
}

fn interrupted() -> Outcome {
    match interrupt::flag().load(std::sync::atomic::Ordering::Relaxed) {
        true => Err(Failure::interrupted("interrupted")),
        false => Ok(()),
    }
}

fn no_images() -> Failure {
    Failure::new("bench: the set has no images")
}

/// The time that a part `at` of all times does not exceed.
fn quantile(times: &[Duration], at: f64) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    sorted.get((at * last as f64).round() as usize).copied().unwrap_or_default()
}

fn table(results: &[Measured]) -> Table {
    let heading = ["device", "epoch, s", "step, ms", "min–max", "10,000, ms", "one, µs", "p95, µs"];
    let mut table = Table::new(&heading);
    for result in results {
        let step = &result.train_step_ms;
        table.row([
            result.device.clone(),
            format!("{:.2}", result.epoch_s),
            format!("{:.1}", step.median),
            format!("{:.1}–{:.1}", step.min, step.max),
            format!("{:.1}", result.classify_10k_batch512_ms),
            format!("{:.0}", result.classify_one_us.median),
            format!("{:.0}", result.classify_one_us.p95),
        ]);
    }
    table
}

fn draw(args: &BenchArgs, results: &[Measured]) -> Outcome {
    type Value = fn(&Measured) -> f64;
    let charts: [(&str, &str, Value); 4] = [
        ("epoch.svg", "Training, s an epoch", |m| m.epoch_s),
        ("train_step.svg", "Training, ms a step", |m| m.train_step_ms.median),
        ("classify_10k.svg", "10,000 images in batches, ms", |m| m.classify_10k_batch512_ms),
        ("classify_one.svg", "One image, µs", |m| m.classify_one_us.median),
    ];
    for (file, title, value) in charts {
        let bars: Vec<(String, f64)> =
            results.iter().map(|result| (result.device.clone(), value(result))).collect();
        figures::draw_bars(&args.out.join(file), title, &bars)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_times() {
        let times: Vec<Duration> = [5, 1, 4, 2, 3].map(Duration::from_millis).to_vec();
        assert_eq!(quantile(&times, 0.0), Duration::from_millis(1));
        assert_eq!(quantile(&times, 0.5), Duration::from_millis(3));
        assert_eq!(quantile(&times, 1.0), Duration::from_millis(5));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }
}
