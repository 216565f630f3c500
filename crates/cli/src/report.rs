//! `cupola report --against`: the article's comparison on one page. The same network and the same images, in Cupola
//! and in other frameworks, on the kinds of devices that are asked for.

mod peers;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cupola::backend::backend;
use cupola::data::{Dataset, ImageDataset};
use cupola::device::{Stream, with_stream};
use cupola::io::{npy, write_whole};
use cupola::markup::escaped;
use cupola::train::{
    Augment, Checkpoint, ConvNet, MODEL_FILE, Model, Precision, Report, STATE_FILE, Settings, Stop,
    Trainer, Until, panels,
};
use cupola::{Array, Device};
use serde::Serialize;

use crate::args::{DatasetName, ReportArgs};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, bar, replaceable, spared};
use crate::table::Table;
use crate::train::files_of;
use crate::{bench, data, figures, interrupt};
pub use peers::Peer;
use peers::{Environment, Figures, Kind};

/// The optimisers that the scripts of the peers have.
const OPTIMIZERS: [&str; 3] = ["adam", "adamw", "sgd"];

/// What is compared: a set of images, and how to train on it.
struct Subject {
    dataset: DatasetName,
    data_dir: Option<PathBuf>,
    settings: Settings,
    /// The run whose training is that of Cupola.
    run: Option<PathBuf>,
}

/// One side of the comparison.
#[derive(Serialize)]
struct Side {
    name: String,
    #[serde(flatten)]
    figures: Figures,
}

/// A side that is not there, and why.
#[derive(Serialize)]
struct Absent {
    name: String,
    reason: String,
}

#[derive(Serialize)]
struct Compared<'a> {
    dataset: &'a str,
    settings: &'a Settings,
    sides: Vec<Side>,
    absent: Vec<Absent>,
}

/// What the scripts of the peers are told.
#[derive(Serialize)]
struct Task<'a> {
    folder: &'a Path,
    epochs: usize,
    /// How long a peer trains at most; each part of what is measured then may take a fourth of it.
    most_seconds: usize,
    batch_size: usize,
    learning_rate: f64,
    optimizer: &'a str,
    seed: u64,
    tf32: bool,
    channels: usize,
    side: usize,
    classes: usize,
    mean: &'a [f32],
    std: &'a [f32],
}

pub fn run(args: &ReportArgs) -> Outcome {
    let output = Output::new(args.json.as_deref())?;
    replaceable("--out", &args.out)?;
    let subject = Subject::find(args)?;
    output.spares("what --out goes to", || [args.out.clone()])?;
    let data = || data::files(subject.dataset, subject.data_dir.as_deref());
    output.spares("a file of the data", data)?;
    spared("--out", &args.out, "a file of the data", data())?;
    if let Some(run) = &subject.run {
        spared("--out", &args.out, "a file of the run", files_of(run))?;
        output.spares("a file of the run", || files_of(run))?;
    }
    let devices = match args.device.is_empty() {
        true => vec![cupola::backend::best_device()],
        false => args.device.clone(),
    };
    let mut kinds: Vec<Kind> = Vec::new();
    for device in &devices {
        let kind = if *device == Device::CPU { Kind::Cpu } else { Kind::Gpu };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let (images, test) = data::load(subject.dataset, subject.data_dir.as_deref())?;
    let mut absent = Vec::new();
    let mut there = Vec::new();
    for &kind in &kinds {
        let environment = Environment::open(kind)?;
        for &peer in &args.against {
            match environment.install(peer, kind, &output)? {
                Ok(()) => there.push((Environment::open(kind)?, peer, kind)),
                Err(reason) => absent.push(Absent { name: named(peer, kind), reason }),
            }
        }
    }

    let work = Work::new()?;
    let mut sides = Vec::new();
    for &device in &devices {
        output.line(format!("cupola on {device}"));
        let figures =
            with_stream(Stream::of(device), || subject.own(device, &images, &test, work.path()))?;
        sides.push(Side { name: format!("cupola {device}"), figures });
    }
    subject.write_task(&images, &test, work.path(), args.limit)?;
    for (environment, peer, kind) in there {
        let name = named(peer, kind);
        output.line(format!("{peer} on the {}", kind.name()));
        let limit = Duration::from_secs(args.limit as u64);
        match environment.run(peer, kind, work.path(), subject.settings.epochs, limit)? {
            Ok(figures) => sides.push(Side { name, figures }),
            Err(reason) => absent.push(Absent { name, reason }),
        }
    }
    let compared =
        Compared { dataset: subject.dataset.name(), settings: &subject.settings, sides, absent };
    output.line(compared.table());
    compared.limits().for_each(|limit| output.line(limit));
    for Absent { name, reason } in &compared.absent {
        output.line(format!("{name}: not there: {reason}"));
    }
    write_whole(&args.out, compared.page(args)?)?;
    output.line(format!("{} has the comparison", args.out.display()));
    output.json(&compared)
}

fn named(peer: Peer, kind: Kind) -> String {
    format!("{peer} {}", kind.name())
}

impl Subject {
    fn find(args: &ReportArgs) -> Outcome<Self> {
        let path = Path::new(&args.subject);
        if path.join(STATE_FILE).is_file() {
            return Self::of_run(args, path);
        }
        let settings = |dataset, data_dir| -> Outcome<Self> {
            let usual = Settings::default();
            let settings = Settings {
                epochs: args.epochs.unwrap_or(usual.epochs),
                batch_size: args.batch_size.unwrap_or(usual.batch_size),
                seed: args.seed.unwrap_or(usual.seed),
                ..usual
            };
            Ok(Self { dataset, data_dir, settings, run: None })
        };
        if let Some(dataset) = DatasetName::from_name(&args.subject) {
            return settings(dataset, args.data_dir.clone());
        }
        let read = |set: &&DatasetName| set.published().is_some_and(|set| set.read(path).is_ok());
        match DatasetName::ALL.iter().find(read).filter(|_| path.is_dir()) {
            Some(_) if args.data_dir.is_some() => Err(Failure::usage(format!(
                "{}: the folder has its data set; leave --data-dir out",
                args.subject
            ))),
            Some(&dataset) => settings(dataset, Some(path.to_owned())),
            None => Err(Failure::usage(format!(
                "{}: is neither the folder of a run, nor a data set, nor a folder with one; the sets are {}",
                args.subject,
                DatasetName::ALL.map(DatasetName::name).join(", ")
            ))),
        }
    }

    fn of_run(args: &ReportArgs, path: &Path) -> Outcome<Self> {
        let checkpoint = Checkpoint::read(path)?;
        let refuse = |what: String| Err(Failure::usage(format!("{}: {what}", path.display())));
        let given: Vec<&str> = [
            ("--epochs", args.epochs.is_some()),
            ("--batch-size", args.batch_size.is_some()),
            ("--seed", args.seed.is_some()),
        ]
        .into_iter()
        .filter_map(|(flag, given)| given.then_some(flag))
        .collect();
        if !given.is_empty() {
            return refuse(format!("a run has its own {}; leave that out", given.join(", ")));
        }
        let settings = checkpoint.settings().clone();
        let name = &checkpoint.description().dataset;
        let Some(dataset) = DatasetName::from_name(name) else {
            return refuse(format!("is a run of the unknown set '{name}'"));
        };
        if checkpoint.history().is_empty() {
            return refuse("no epoch of the run is over".to_owned());
        }
        let is_plain = matches!(settings.precision, Precision::F32 | Precision::Tf32);
        if !OPTIMIZERS.contains(&settings.optimizer.as_str()) || !is_plain {
            return refuse(format!(
                "was trained by {} in {}; the peers' scripts have {} in f32 and tf32",
                settings.optimizer,
                settings.precision,
                OPTIMIZERS.join(", ")
            ));
        }
        if settings.augment != Augment::default() || settings.accumulate > 1 {
            return refuse(
                "was trained with --augment or --accumulate, which the peers' scripts have not"
                    .to_owned(),
            );
        }
        let settings = Settings { epochs: checkpoint.history().len(), ..settings };
        Ok(Self { dataset, data_dir: args.data_dir.clone(), settings, run: Some(path.to_owned()) })
    }

    /// Cupola's side on a device: its training is that of the run, where there is one.
    fn own(
        &self,
        device: Device,
        images: &ImageDataset,
        test: &ImageDataset,
        folder: &Path,
    ) -> Outcome<Figures> {
        let (history, model) = match &self.run {
            Some(run) => {
                (Checkpoint::read(run)?.history().to_vec(), Model::load(run.join(MODEL_FILE))?)
            }
            None => {
                let folder = folder.join(device.to_string().replace(':', "-"));
                std::fs::create_dir_all(&folder)
                    .map_err(|cause| Failure::new(format!("{}: {cause}", folder.display())))?;
                let mut trainer = Trainer::new(self.settings.clone(), images)?;
                let until = Until { stop: Some(interrupt::flag()), ..Until::default() };
                let bar =
                    bar(self.settings.epochs as u64, "training {wide_bar} {pos}/{len} epochs");
                let ended = trainer.run(&folder, until, &mut |event| {
                    if let cupola::train::Event::Finished { .. } = event {
                        bar.inc(1);
                    }
                });
                bar.finish_and_clear();
                if ended? == Stop::Flag {
                    return Err(Failure::interrupted("interrupted"));
                }
                (trainer.history().to_vec(), Model::load(folder.join(MODEL_FILE))?)
            }
        };
        let found = model.test(test, |_, _| true)?;
        let (classify_10k_ms, classify_one_us) =
            bench::classification(&**backend(device)?, &model, test)?;
        Ok(Figures {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch_seconds: history.iter().map(|metrics| metrics.seconds).collect(),
            val_accuracy: history.iter().map(|metrics| metrics.val_accuracy).collect(),
            test_accuracy: found.map_or(f64::NAN, |found| found.accuracy()),
            classify_10k_ms,
            classify_one_us,
            limited: Default::default(),
        })
    }

    /// Writes the images and the task, for the scripts.
    fn write_task(
        &self,
        images: &ImageDataset,
        test: &ImageDataset,
        folder: &Path,
        most_seconds: usize,
    ) -> Outcome {
        let [training, validation] = cupola::train::split(images, self.settings.seed)?;
        let all: Vec<usize> = (0..test.len()).collect();
        write_part(folder, "train", images, training.indices())?;
        write_part(folder, "val", images, validation.indices())?;
        write_part(folder, "test", test, &all)?;
        let (scale, [_, side, channels]) = (images.normalization(), images.shape());
        let task = Task {
            folder,
            epochs: self.settings.epochs,
            most_seconds,
            batch_size: self.settings.batch_size,
            learning_rate: self.settings.learning_rate,
            optimizer: &self.settings.optimizer,
            seed: self.settings.seed,
            tf32: self.settings.precision == Precision::Tf32,
            channels,
            side,
            classes: images.classes().len(),
            mean: scale.mean(),
            std: scale.std(),
        };
        let text = serde_json::to_string(&task)
            .map_err(|cause| Failure::new(format!("report: {cause}")))?;
        Ok(write_whole(folder.join("task.json"), text)?)
    }
}

fn write_part(folder: &Path, part: &str, images: &ImageDataset, indices: &[usize]) -> Outcome {
    let [height, width, channels] = images.shape();
    let pixels: Vec<u8> = indices.iter().flat_map(|&i| images.image(i)).copied().collect();
    let labels: Vec<i32> = indices.iter().map(|&i| images.labels()[i]).collect();
    let pixels = Array::from_vec(pixels, [indices.len(), height, width, channels])?;
    let labels = Array::from_vec(labels, [indices.len()])?;
    write_whole(folder.join(format!("{part}_images.npy")), npy::write(&pixels)?)?;
    Ok(write_whole(folder.join(format!("{part}_labels.npy")), npy::write(&labels)?)?)
}

/// A folder for the time of the comparison.
struct Work(PathBuf);

impl Work {
    fn new() -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("cupola-report-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|cause| {
            Failure::new(format!("{}: cannot be made: {cause}", path.display()))
        })?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const HEADING: [&str; 8] = [
    "",
    "version",
    "epoch, s",
    "min–max",
    "validation",
    "test",
    "10,000 images, ms",
    "one image, µs",
];

impl Side {
    fn cells(&self) -> [String; 8] {
        let own = &self.figures;
        let mut seconds = own.epoch_seconds.clone();
        seconds.sort_by(f64::total_cmp);
        let at = |index: usize| seconds.get(index).copied().unwrap_or(f64::NAN);
        let percent = |part: f64| format!("{:.2} %", 100.0 * part);
        let shown = figures::significant;
        let marked = |figure: &str, cell: String| format!("{cell}{}", own.mark(figure));
        let last = shown(at(seconds.len().saturating_sub(1)));
        [
            self.name.clone(),
            own.version.clone(),
            marked("epoch_seconds", shown(at(seconds.len() / 2))),
            marked("epoch_seconds", format!("{}–{last}", shown(at(0)))),
            marked("val_accuracy", percent(own.val_accuracy.last().copied().unwrap_or(f64::NAN))),
            marked("test_accuracy", percent(own.test_accuracy)),
            marked("classify_10k_ms", shown(own.classify_10k_ms)),
            shown(own.classify_one_us),
        ]
    }
}

impl Compared<'_> {
    fn table(&self) -> Table {
        let mut table = Table::new(&HEADING);
        self.sides.iter().for_each(|side| table.row(side.cells()));
        table
    }

    /// A line for every figure of a side that was limited.
    fn limits(&self) -> impl Iterator<Item = String> {
        self.sides.iter().flat_map(|Side { name, figures }| {
            let line = move |(figure, how): (&String, &String)| {
                format!("* {name}, {}: {how}", figure.replace('_', " "))
            };
            figures.limited.iter().map(line)
        })
    }

    fn page(&self, args: &ReportArgs) -> Outcome<String> {
        let mut html = String::from("<h2>Training and classification</h2>\n<table>\n<tr>");
        HEADING.iter().for_each(|head| {
            let _ = write!(html, "<th>{head}</th>");
        });
        html += "</tr>\n";
        for side in &self.sides {
            html += "<tr>";
            for cell in side.cells() {
                let _ = write!(html, "<td>{}</td>", escaped(&cell));
            }
            html += "</tr>\n";
        }
        html += "</table>\n<p>The time of an epoch is the median, with its validation. Images are classified in batches \
                 of 512 that are there before, and one at a time until the class is known.</p>\n";
        for limit in self.limits() {
            let _ = writeln!(html, "<p>{}</p>", escaped(&limit));
        }
        if !self.absent.is_empty() {
            html += "<h2>Not there</h2>\n<table>\n";
            for Absent { name, reason } in &self.absent {
                let _ = writeln!(
                    html,
                    "<tr><td>{}</td><td>{}</td></tr>",
                    escaped(name),
                    escaped(reason)
                );
            }
            html += "</table>\n";
        }
        let name = |side: &Side, figure| format!("{}{}", side.name, side.figures.mark(figure));
        let curves = |figure, what: &str, values: fn(&Figures) -> Vec<f64>| {
            let one =
                |side: &Side| (format!("{}_{what}", name(side, figure)), values(&side.figures));
            self.sides.iter().map(one).collect::<Vec<(String, Vec<f64>)>>()
        };
        let mut all =
            curves("epoch_seconds", "time of an epoch, s", |own| own.epoch_seconds.clone());
        all.extend(curves("val_accuracy", "validation accuracy, %", |own| {
            own.val_accuracy.iter().map(|part| 100.0 * part).collect()
        }));
        html += "<h2>Epochs</h2>\n";
        let all: Vec<(&str, Vec<f64>)> =
            all.iter().map(|(name, y)| (name.as_str(), y.clone())).collect();
        html += &panels(&all);
        html += "<h2>Classification</h2>\n";
        let bars = |figure, title: &str, value: fn(&Figures) -> f64| {
            let one = |side: &Side| (name(side, figure), value(&side.figures));
            figures::bars(title, &self.sides.iter().map(one).collect::<Vec<_>>())
        };
        html +=
            &bars("classify_10k_ms", "10,000 images in batches, ms", |own| own.classify_10k_ms)?;
        html += &bars("classify_one_us", "One image, µs", |own| own.classify_one_us)?;
        let names: Vec<&str> = args.against.iter().map(|peer| peer.name()).collect();
        let title = format!("Cupola beside {} on {}", names.join(", "), self.dataset);
        let report = Report::new(&args.out, title);
        let report = with_settings(report, ConvNet::ARCHITECTURE, self.settings);
        Ok(report.section(&html).html())
    }
}

/// A page with rows about a network and how it was trained.
pub fn with_settings(page: Report, network: &str, settings: &Settings) -> Report {
    let patience = settings.patience.map_or("any".to_owned(), |epochs| epochs.to_string());
    let rows = [
        ("network", network.to_owned()),
        ("epochs", settings.epochs.to_string()),
        ("images a batch", settings.batch_size.to_string()),
        ("optimiser", settings.optimizer.clone()),
        ("learning rate", settings.learning_rate.to_string()),
        ("seed", settings.seed.to_string()),
        ("precision", settings.precision.to_string()),
        ("batches a step", settings.accumulate.to_string()),
        ("augmentation", settings.augment.to_string()),
        ("epochs without progress before it ends", patience),
        ("the best model is kept", if settings.keep_best { "yes" } else { "no" }.to_owned()),
    ];
    rows.into_iter().fold(page, |page, (name, value)| page.row(name, value))
}
