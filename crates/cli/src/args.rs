//! What the program can be asked.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cupola::Device;
use cupola::data::Published;
use cupola::package::System;
use cupola::suite::Share;
use cupola::train::OPTIMIZERS;

use crate::report::Peer;

/// Trains and runs neural networks on the CPU and on GPUs.
#[derive(Parser, Debug)]
#[command(name = "cupola", version, propagate_version = true, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Train the article's network on a set of images
    Train(TrainArgs),
    /// Classify images with a trained model
    Classify(ClassifyArgs),
    /// Measure training and classification
    Bench(BenchArgs),
    /// Show what the plan of a model does, step by step, and how fast it could be
    Explain(ExplainArgs),
    /// Run the op suite on a device
    Selftest(SelftestArgs),
    /// List the devices of this machine
    Devices(DevicesArgs),
    /// Fetch a published data set
    Download(DownloadArgs),
    /// Print what a package holds
    Inspect(InspectArgs),
    /// Run a function of a package
    Run(RunArgs),
    /// Make a package of a model of ONNX or Core ML, or of another package
    Convert(ConvertArgs),
    /// Compare training and classification with other frameworks, on one page
    Report(ReportArgs),
}

/// A set of images that the program knows.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetName {
    /// Digits that the program draws itself
    Digits,
    /// Handwritten digits
    Mnist,
    /// Articles of clothing
    FashionMnist,
    /// Photographs of 10 classes
    Cifar10,
    /// Photographs of 100 classes
    Cifar100,
}

impl DatasetName {
    /// The published set, unless the program draws this one.
    pub fn published(self) -> Option<Published> {
        match self {
            Self::Digits => None,
            Self::Mnist => Some(Published::Mnist),
            Self::FashionMnist => Some(Published::FashionMnist),
            Self::Cifar10 => Some(Published::Cifar10),
            Self::Cifar100 => Some(Published::Cifar100),
        }
    }

    pub fn name(self) -> &'static str {
        self.published().map_or("digits", Published::name)
    }

    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Digits, Self::Mnist, Self::FashionMnist, Self::Cifar10, Self::Cifar100];

    /// The set of that name, as a run's files give it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }
}

/// A random change of images.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Augmentation {
    /// Mirror half of the images, left for right
    Flip,
    /// Shift them by up to 4 pixels
    Crop,
}

#[derive(Args, Debug)]
pub struct TrainArgs {
    /// The images to train on [default: digits]
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<DatasetName>,

    /// The folder with the files of a published data set [default: data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// How many epochs in all, those before resuming among them [default: 5]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub epochs: Option<usize>,

    /// Stop after that many training steps of this run
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub steps: Option<usize>,

    /// How many images a training step sees [default: 512]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub batch_size: Option<usize>,

    /// The learning rate [default: 0.001]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_negative_numbers = true)]
    pub lr: Option<f64>,

    /// The optimiser [default: adam]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(OPTIMIZERS))]
    pub optimizer: Option<String>,

    /// What products are computed in: f16 scales the loss, auto is bf16 where the device has matrix units for
    /// it [default: tf32, or f32 with CUPOLA_TF32=0]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(["f32", "tf32", "bf16", "f16", "auto"]))]
    pub precision: Option<String>,

    /// What weights, data order and dropout are drawn from [default: 0]
    #[arg(long, value_name = "SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,

    #[arg(long, value_name = "DEVICE", default_value = "best", value_parser = device)]
    #[arg(help = format!("The device to train on: gpu, {}", Device::forms()))]
    pub device: Device,

    /// The run's folder [default: runs/<dataset>, with a number where that is taken]
    #[arg(long, value_name = "RUN_DIR")]
    pub out: Option<PathBuf>,

    /// Train on each batch in so many parts, whose gradients are added up: less memory, the same step [default: 1]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub accumulate: Option<usize>,

    /// Change the images that are trained on: mirror half of them, shift them by up to 4 pixels [default: neither]
    #[arg(long, value_name = "HOW", value_delimiter = ',')]
    pub augment: Vec<Augmentation>,

    /// End after so many epochs in which the validation loss is not the least so far [default: never]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub patience: Option<usize>,

    /// Keep the weights of the epoch with the least validation loss, too, as best.safetensors
    #[arg(long)]
    pub keep_best: bool,

    /// Write a line, and a point for TensorBoard, every so many steps [default: no lines, and 10]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub log_every: Option<usize>,

    /// Write loss and accuracy for TensorBoard into this folder
    #[arg(long, value_name = "DIR")]
    pub tensorboard: Option<PathBuf>,

    /// Write a page of HTML about the run to this file: curves, mistakes, settings
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Go on with the run in this folder, there unless --out names another
    #[arg(long, value_name = "RUN_DIR")]
    pub resume: Option<PathBuf>,

    /// Record what runs and write it there: a trace for Perfetto, or with the ending .html a page
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Write what came out to this file as JSON; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ClassifyArgs {
    /// The folder of a training run
    #[arg(value_name = "RUN_DIR")]
    pub run: PathBuf,

    /// Images to classify, PNG or JPEG
    #[arg(value_name = "IMAGE", required_unless_present = "dataset", conflicts_with = "dataset")]
    pub images: Vec<PathBuf>,

    /// Classify the test images of this data set instead
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<DatasetName>,

    /// The folder with the files of a published data set [default: data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Scale images of another size to the model's
    #[arg(long, conflicts_with = "dataset")]
    pub resize: bool,

    #[arg(long, value_name = "DEVICE", default_value = "best", value_parser = device)]
    #[arg(help = format!("The device to classify on: gpu, {}", Device::forms()))]
    pub device: Device,

    /// Write what came out to this file as JSON; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The options of `bench` that say how the network is measured.
const OF_THE_NETWORK: [&str; 5] = ["dataset", "data_dir", "steps", "from_host", "out"];

#[derive(Args, Debug)]
pub struct BenchArgs {
    /// The images to measure with
    #[arg(long, value_name = "NAME", default_value = "digits")]
    pub dataset: DatasetName,

    /// The folder with the files of a published data set [default: data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// A device to measure; may be given more than once [default: best]
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Vec<Device>,

    /// Measure products, convolutions and other kernels instead of the network
    #[arg(long, conflicts_with_all = OF_THE_NETWORK)]
    pub kernels: bool,

    /// Measure only the kernels whose name starts so; may be given more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "kernels", conflicts_with_all = OF_THE_NETWORK)]
    pub only: Vec<String>,

    /// Do that part of the kernels' work, above 0 and up to 1 [default: 1 on a GPU, 1/8 on the CPU]
    #[arg(long, value_name = "PART", value_parser = part, allow_negative_numbers = true, requires = "kernels", conflicts_with_all = OF_THE_NETWORK)]
    pub scale: Option<f64>,

    /// How many training steps an epoch has
    #[arg(long, value_name = "N", value_parser = timed_steps, allow_negative_numbers = true, default_value = "106")]
    pub steps: usize,

    /// Send each batch from the host's memory [default: the images lie on the device where they fit]
    #[arg(long)]
    pub from_host: bool,

    /// Write what was computed to this file too, as safetensors, to compare other programs with
    #[arg(long, value_name = "FILE")]
    pub outputs: Option<PathBuf>,

    /// The folder that the charts go to
    #[arg(long, value_name = "DIR", default_value = "runs/bench")]
    pub out: PathBuf,

    /// Write what came out to this file as JSON; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A package, or the folder of a training run
    #[arg(value_name = "PACKAGE|RUN_DIR")]
    pub run: PathBuf,

    /// How many images the model of a run is given [default: 1]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub batch_size: Option<usize>,

    /// The function of a package [default: the only one, or main]
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,

    /// What a size with a name is
    #[arg(long, value_name = "NAME=N", value_parser = sized)]
    pub size: Vec<(String, usize)>,

    /// Explain the loss of a run and its gradients instead of the scores
    #[arg(long)]
    pub training: bool,

    #[arg(long, value_name = "DEVICE", default_value = "best", value_parser = device)]
    #[arg(help = format!("The device that it would run on: gpu, {}", Device::forms()))]
    pub device: Device,

    /// Draw the steps to this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// Write what came out to this file as JSON; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct SelftestArgs {
    /// A device to test; may be given more than once [default: every device that is here]
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Vec<Device>,

    /// Run only the samples whose name, or whose op's name, contains this
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,

    /// Test inputs past 2³¹ elements instead, which takes 5 GiB of the device's memory
    #[arg(long)]
    pub large: bool,

    /// How many processes share the work [default: 1; on CUDA, where kernels take long to make, one
    /// for each processor]
    #[arg(long, value_name = "N", conflicts_with = "large", value_parser = processes, allow_negative_numbers = true)]
    pub processes: Option<usize>,

    /// Run the share I of N, and write a line of JSON for each family
    #[arg(long, value_name = "I/N", hide = true, value_parser = share)]
    pub share: Option<Share>,

    /// Write what came out to this file as JSON; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct DevicesArgs {
    /// Show which operations have kernels there, by dtype, and which the CPU runs instead
    #[arg(long)]
    pub ops: bool,

    /// The device; several may be given, and all are shown without
    #[arg(long, value_name = "DEVICE", value_parser = device, requires = "ops")]
    pub device: Vec<Device>,

    /// Write what came out to this file as JSON; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct DownloadArgs {
    /// The data set
    #[arg(value_name = "NAME")]
    pub dataset: DatasetName,

    /// The folder to put it into
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub data_dir: PathBuf,
}

#[derive(Args, Debug)]
pub struct InspectArgs {
    /// The package, a file or a folder
    #[arg(value_name = "PACKAGE")]
    pub package: PathBuf,

    /// Print the graphs, node by node
    #[arg(long)]
    pub graph: bool,

    /// Write what came out to this file as JSON; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct RunArgs {
    /// The package, a file or a folder
    #[arg(value_name = "PACKAGE")]
    pub package: PathBuf,

    /// An input: a file of NumPy, an image (PNG or JPEG), or random numbers
    #[arg(long, value_name = "NAME=FILE|random", value_parser = pair)]
    pub input: Vec<(String, String)>,

    /// The function to run [default: the only one, or main]
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,

    /// What a size with a name is, for random numbers and images
    #[arg(long, value_name = "NAME=N", value_parser = sized)]
    pub size: Vec<(String, usize)>,

    /// Scale images to the sizes of their input
    #[arg(long)]
    pub resize: bool,

    /// Save each output in this folder, as NAME.npy
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    #[arg(long, value_name = "DEVICE", default_value = "best", value_parser = device)]
    #[arg(help = format!("The device to run on: gpu, {}", Device::forms()))]
    pub device: Device,

    /// Measure loading, the first run and later ones
    #[arg(long)]
    pub bench: bool,

    /// Record what runs and write it there: a trace for Perfetto, or with the ending .html a page
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Write what came out to this file as JSON; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ConvertArgs {
    /// A model of ONNX (.onnx) or Core ML (.mlpackage, .mlmodel), or a package
    #[arg(value_name = "IN")]
    pub model: PathBuf,

    /// The package to write: a file, or a folder where one is there or the name ends with /
    #[arg(long, value_name = "PACKAGE")]
    pub out: PathBuf,

    /// The function's name [default: main]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// What an open size of a model is: one with a name, or INPUT.AXIS
    #[arg(long, value_name = "NAME=N", value_parser = sized)]
    pub size: Vec<(String, usize)>,

    #[arg(long, value_name = "SYSTEM", value_parser = system)]
    #[arg(help = format!("The system that it is for: {}", System::ALL.map(System::name).join(", ")))]
    pub target: Option<System>,

    /// The least version of the system
    #[arg(long, value_name = "V", requires = "target")]
    pub minimum_os: Option<u32>,

    /// Compute in float32 what is float64, where the system has no doubles
    #[arg(long, requires = "target")]
    pub narrow: bool,

    /// Write what was converted, or why it was not, to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The folder of a training run, a data set, or a folder with the files of one
    #[arg(value_name = "RUN_DIR|DATASET")]
    pub subject: String,

    /// The frameworks to compare with, which are installed in an environment of their own
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub against: Vec<Peer>,

    /// The folder with the files of a published data set [default: data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// How many epochs each side trains [default: 5, or those of the run]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub epochs: Option<usize>,

    /// How many images a training step sees [default: 512, or those of the run]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub batch_size: Option<usize>,

    /// What split, weights and data order are drawn from [default: 0, or that of the run]
    #[arg(long, value_name = "SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,

    #[arg(long, value_name = "DEVICE", value_parser = device)]
    #[arg(help = format!("A device to compare on, the others on one of its kind; may be given more than once: gpu, {} [default: best]", Device::forms()))]
    pub device: Vec<Device>,

    /// For how many seconds each framework trains at most, and is then measured a fourth of that at each part: what it
    /// did not come to is reckoned from what it did, or marked
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = count, allow_negative_numbers = true)]
    pub limit: usize,

    /// The page to write
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub out: PathBuf,

    /// Write what came out to this file as JSON; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// A name, and what stands behind the first `=`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("not of the form NAME=VALUE".to_owned()),
    }
}

fn sized(text: &str) -> Result<(String, usize), String> {
    let (name, value) = pair(text)?;
    let size = value.parse().map_err(|_| format!("'{value}' is no size"))?;
    Ok((name, size))
}

fn system(text: &str) -> Result<System, String> {
    text.parse().map_err(|error: cupola::Error| error.to_string())
}

/// A whole number from 1.
fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("not a whole number from 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// A whole number from 1 to `most`.
fn count_to(most: usize, text: &str) -> Result<usize, String> {
    let found = count(text).ok().filter(|&number| number <= most);
    found.ok_or_else(|| format!("not a whole number from 1 to {most}"))
}

/// The most steps that are timed: each one's time is kept.
const MAX_TIMED_STEPS: usize = 1_000_000;

fn timed_steps(text: &str) -> Result<usize, String> {
    count_to(MAX_TIMED_STEPS, text)
}

/// The most processes that are started.
const MAX_PROCESSES: usize = 1024;

fn processes(text: &str) -> Result<usize, String> {
    count_to(MAX_PROCESSES, text)
}

/// A finite number above 0, which the optimiser keeps as `f32`.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (rate as f32).is_finite() && rate as f32 > 0.0 => Ok(rate),
        Ok(_) | Err(_) => Err("not a finite number above 0".to_owned()),
    }
}

/// A number above 0 and up to 1.
fn part(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(part) if part > 0.0 && part <= 1.0 => Ok(part),
        Ok(_) | Err(_) => Err("not a number above 0 and up to 1".to_owned()),
    }
}

/// A device that is here: by its name, `gpu` for the best GPU, `best` for that or else the CPU.
fn share(text: &str) -> Result<Share, String> {
    let (index, count) = text.split_once('/').ok_or("is no I/N")?;
    let [index, count] =
        [index, count].map(|number| number.parse().map_err(|_| "is no I/N".to_owned()));
    match (index?, count?) {
        (index, count) if index < count => Ok(Share { index, count }),
        _ => Err("has no such share".to_owned()),
    }
}

fn device(text: &str) -> Result<Device, String> {
    if text == "best" || text == "gpu" {
        // Only here: looking for GPUs takes time that `--device cpu` does not spend.
        let best = cupola::backend::best_device();
        if text == "gpu" && best == Device::CPU {
            let detail = "this machine has no GPU that Cupola can use";
            return Err(format!("{detail}; `cupola devices` lists what there is"));
        }
        return Ok(best);
    }
    let device: Device = text.parse().map_err(|error: cupola::Error| error.to_string())?;
    cupola::backend::backend(device).map_err(|error| error.to_string())?;
    Ok(device)
}
