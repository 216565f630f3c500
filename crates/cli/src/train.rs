//! `cupola train`.

mod folder;
mod progress;
mod recipe;
mod report;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use cupola::data::Dataset;
use cupola::device::{Stream, with_stream};
use cupola::nn::Module;
use cupola::train::{
    BEST_FILE, Callback, EpochMetrics, METRICS_FILE, MODEL_FILE, Moment, PartialEpoch, STATE_FILE,
    Stop, Tally, TensorBoard, Trainer, Until,
};
use serde::Serialize;

use crate::args::TrainArgs;
use crate::classify::likeliest;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, bar, replaceable, spared};
use crate::profile::Profiling;
use crate::{data, figures, interrupt};
use folder::RunFolder;
pub use folder::files_of;
use progress::Progress;
use recipe::Recipe;

/// What `--json` gets.
#[derive(Serialize)]
struct Report<'a> {
    dataset: &'a str,
    device: String,
    seed: u64,
    precision: &'a str,
    parameters: usize,
    epochs: &'a [EpochMetrics],
    /// The epoch under way, where the run stopped within one.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<PartialEpoch>,
    test_accuracy: f64,
}

pub fn run(args: &TrainArgs) -> Outcome {
    with_stream(Stream::of(args.device), || train(args))
}

fn train(args: &TrainArgs) -> Outcome {
    let recipe = Recipe::new(args)?;
    // Made first: what else is written may go into it.
    let folder = RunFolder::open(args, recipe.dataset.name())?;
    // The run that this one goes on from is read, and may lie elsewhere.
    let own = || folder.files().chain(args.resume.iter().flat_map(|from| files_of(from)));
    let data = || data::files(recipe.dataset, args.data_dir.as_deref());
    let written =
        [("--json", &args.json), ("--report", &args.report), ("--profile", &args.profile)];
    for (option, path) in written {
        let Some(path) = path else { continue };
        spared(option, path, "a file of the run itself", own())?;
        spared(option, path, "a file of the data", data())?;
    }
    let output = Output::new(args.json.as_deref())?;
    let profiling = Profiling::new(args.profile.as_deref())?;
    if let Some(path) = &args.report {
        spared("--report", path, "what --json goes to", args.json.clone())?;
        replaceable("--report", path)?;
    }
    if let Some(folder) = &args.tensorboard {
        spared(
            "--tensorboard",
            folder,
            "a file of the run itself",
            own().filter(|own| !own.is_dir()),
        )?;
        spared("--tensorboard", folder, "what --json goes to", args.json.clone())?;
        spared("--tensorboard", folder, "what --report goes to", args.report.clone())?;
        profiling.spares("what --tensorboard goes to", || [folder.clone()])?;
    }
    // The environment may name it, too.
    profiling.spares("a file of the run itself", own)?;
    profiling.spares("a file of the data", data)?;
    profiling.spares("what --json goes to", || args.json.clone())?;
    profiling.spares("what --report goes to", || args.report.clone())?;
    profiling.record(|| work(args, recipe, &output, &folder))
}

fn work(args: &TrainArgs, recipe: Recipe, output: &Output, folder: &RunFolder) -> Outcome {
    let board = args.tensorboard.as_deref().map(TensorBoard::create).transpose()?;
    let stop = interrupt::flag();
    let (images, test) = data::load(recipe.dataset, args.data_dir.as_deref())?;
    let [height, width, channels] = images.shape();
    let dataset = recipe.dataset.name();
    let mut trainer = recipe.trainer(&images, &test)?;
    let parameters = trainer.model().network.num_parameters();
    let settings = trainer.settings().clone();
    output.line(format!(
        "{dataset}: {} images to train and validate with, {} to test with, {height}×{width}×\
         {channels}, {} classes",
        images.len(),
        test.len(),
        images.classes().len()
    ));
    output.line(format!(
        "{parameters} parameters, {} at {}, batches of {}, seed {}, in {}, on {}",
        settings.optimizer,
        settings.learning_rate,
        settings.batch_size,
        settings.seed,
        settings.precision,
        args.device
    ));
    output.line(match trainer.steps() {
        0 => format!("the run is kept in {}", folder.path().display()),
        steps => format!("going on after step {steps}, in {}", folder.path().display()),
    });

    let until = Until { steps: args.steps.map(|steps| steps as u64), stop: Some(stop) };
    let mut progress = Progress::new(output, settings.epochs, args.log_every, trainer.history());
    let unwritten = Rc::new(Cell::new(None));
    if let Some(board) = board {
        let board = match args.log_every {
            Some(every) => board.every(every as u64)?,
            None => board,
        };
        trainer.callbacks().add(Lenient { board, failed: unwritten.clone() });
    }
    let ended = trainer.run(folder.path(), until, &mut |event| progress.report(event));
    progress.clear();
    if let Some(error) = unwritten.take() {
        output.line(format!("warning: --tensorboard: {error}"));
    }
    let ended = ended.map_err(|error| explain(error, folder))?;
    let steps = trainer.steps();
    let resume = format!("cupola train --resume {}", folder.path().display());
    match ended {
        Stop::Steps => output.line(format!("stopped after step {steps}; go on with: {resume}")),
        Stop::Stalled => {
            let (epoch, patience) =
                (trainer.history().len(), settings.patience.unwrap_or_default());
            let epochs = if patience == 1 { "epoch" } else { "epochs" };
            output.line(format!(
                "stopped after epoch {epoch}: the validation loss has not come down for \
                 {patience} {epochs}"
            ));
        }
        Stop::Done | Stop::Callback | Stop::Flag => {}
    }
    draw(&trainer, folder)?;

    let interrupted = || {
        Failure::interrupted(match ended {
            Stop::Flag => {
                format!("interrupted after step {steps}, which is saved; go on with: {resume}")
            }
            _ => "interrupted while testing; the run is saved".to_owned(),
        })
    };
    let is_stopped = || stop.load(Ordering::Relaxed);
    // Who asked for a page or for JSON gets it of what there is.
    let goes_on = || args.report.is_some() || args.json.is_some() || !is_stopped();
    if !goes_on() {
        return Err(interrupted());
    }
    let mut predicted = args.report.is_some().then(Vec::new);
    let found = test_with_bar(&trainer, &test, predicted.as_mut(), goes_on)?;
    let found = found.ok_or_else(interrupted)?;
    output.line(format!(
        "test accuracy {:.2} % ({} of {} images), loss {:.4}",
        100.0 * found.accuracy(),
        found.correct,
        found.images,
        found.mean_loss()
    ));
    if let (Some(path), Some(predicted)) = (&args.report, &predicted) {
        report::write(path, &trainer, &test, (&found, predicted), args.device)?;
        output.line(format!("{} tells about the run", path.display()));
    }
    let mut files = vec![MODEL_FILE, STATE_FILE, METRICS_FILE];
    if folder.path().join(BEST_FILE).is_file() {
        files.push(BEST_FILE);
    }
    if !trainer.history().is_empty() {
        files.extend(figures::OF_A_RUN);
    }
    output.line(format!("{} holds {}", folder.path().display(), files.join(", ")));
    output.json(&Report {
        dataset,
        device: args.device.to_string(),
        seed: settings.seed,
        precision: settings.precision.name(),
        parameters,
        epochs: trainer.history(),
        partial: trainer.partial(),
        test_accuracy: found.accuracy(),
    })?;
    match is_stopped() {
        true => Err(interrupted()),
        false => Ok(()),
    }
}

/// Writes for TensorBoard. A disk that is full does not end a training: the first error is kept, and told when it
/// is over.
struct Lenient {
    board: TensorBoard,
    failed: Rc<Cell<Option<cupola::Error>>>,
}

impl Lenient {
    fn keep(&self, written: cupola::Result<ControlFlow<()>>) -> cupola::Result<ControlFlow<()>> {
        self.failed.set(self.failed.take().or(written.err()));
        Ok(ControlFlow::Continue(()))
    }
}

impl Callback for Lenient {
    fn step(&mut self, at: &Moment<'_>) -> cupola::Result<ControlFlow<()>> {
        let written = self.board.step(at);
        self.keep(written)
    }

    fn epoch(&mut self, at: &Moment<'_>) -> cupola::Result<ControlFlow<()>> {
        let written = self.board.epoch(at);
        self.keep(written)
    }
}

fn draw(trainer: &Trainer, folder: &RunFolder) -> Outcome {
    match trainer.history() {
        [] => Ok(()),
        history => figures::draw_run(folder.path(), history),
    }
}

/// What the test images come to, where it `goes_on` to the end; the likeliest class of each, with how likely it is, goes
/// to `predicted`.
fn test_with_bar(
    trainer: &Trainer,
    test: &cupola::data::ImageDataset,
    mut predicted: Option<&mut Vec<(usize, f32)>>,
    goes_on: impl Fn() -> bool,
) -> Outcome<Option<Tally>> {
    let bar = bar(test.len() as u64, "testing {wide_bar} {pos}/{len}");
    let mut failed = None;
    let found = trainer.test(test, |tally, scores| {
        bar.set_position(tally.images);
        if let Some(predicted) = &mut predicted {
            match likeliest(scores) {
                Ok(batch) => predicted.extend(batch),
                Err(failure) => failed = Some(failure),
            }
        }
        failed.is_none() && goes_on()
    });
    bar.finish_and_clear();
    match failed {
        Some(failure) => Err(failure),
        None => Ok(found?),
    }
}

/// What the user can do about a run that failed.
fn explain(error: cupola::Error, folder: &RunFolder) -> Failure {
    let diverged = matches!(&error, cupola::Error::User(text) if text.contains("loss is"));
    let failure = Failure::from(error);
    let failure = match diverged {
        true => failure.hint("a smaller --lr may help"),
        false => failure,
    };
    match folder.path().join(STATE_FILE).is_file() {
        true => failure.hint(format!("the last good checkpoint is in {}", folder.path().display())),
        false => failure.hint("nothing had been saved yet"),
    }
}
