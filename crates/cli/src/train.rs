//! `cupola train`.

mod folder;
mod progress;
mod recipe;
mod report;

use cupola::data::Dataset;
use cupola::device::{Stream, with_stream};
use cupola::nn::Module;
use cupola::profiler;
use cupola::train::{
    EpochMetrics, Event, METRICS_FILE, MODEL_FILE, PartialEpoch, STATE_FILE, Stop, Tally,
    TensorBoard, Trainer, Until,
};
use serde::Serialize;

use crate::args::TrainArgs;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, bar, replaceable, spared};
use crate::{data, figures, interrupt};
use folder::RunFolder;
use progress::Progress;
use recipe::Recipe;

/// Between how many steps TensorBoard gets their loss.
const LOGGED: usize = 10;

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
    if let Some(path) = &args.profile {
        profiler::check_file(path).map_err(of_profile)?;
    }
    with_stream(Stream::of(args.device), || train(args))
}

/// A failure of `--profile`.
fn of_profile(error: cupola::Error) -> Failure {
    Failure::new(format!("--profile: {error}"))
}

fn train(args: &TrainArgs) -> Outcome {
    let recipe = Recipe::new(args)?;
    let output = Output::new(args.json.as_deref())?;
    let folder = RunFolder::open(args, recipe.dataset.name())?;
    output.spares("a file of the run itself", || folder.files())?;
    output.spares("a file of the data", || data::files(args.data_dir.as_deref()))?;
    if let Some(path) = &args.report {
        spared("--report", path, "a file of the run itself", folder.files())?;
        spared("--report", path, "a file of the data", data::files(args.data_dir.as_deref()))?;
        spared("--report", path, "what --json goes to", args.json.clone())?;
        replaceable("--report", path)?;
    }
    if let Some(path) = &args.profile {
        spared("--profile", path, "a file of the run itself", folder.files())?;
        spared("--profile", path, "a file of the data", data::files(args.data_dir.as_deref()))?;
    }
    let Some(path) = &args.profile else {
        return work(args, recipe, &output, &folder);
    };
    profiler::start(profiler::Options::default()).map_err(of_profile)?;
    let trained = work(args, recipe, &output, &folder);
    // What was recorded is of use where the training failed, too.
    let written = profiler::stop().and_then(|profile| profile.save(path)).map_err(of_profile);
    trained.and(written)
}

fn work(args: &TrainArgs, recipe: Recipe, output: &Output, folder: &RunFolder) -> Outcome {
    let mut board = args.tensorboard.as_deref().map(TensorBoard::create).transpose()?;
    let stop = interrupt::flag();
    let (images, test) = data::load(recipe.dataset, args.data_dir.as_deref())?;
    let [height, width, channels] = images.shape();
    let dataset = recipe.dataset.name();
    let mut trainer = recipe.trainer(&images)?;
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
    let (mut step, mut unwritten) = (trainer.steps(), None);
    let ended = trainer.run(folder.path(), until, &mut |event| {
        if let Event::Step { number, .. } = event {
            step = number;
        }
        if let Some(board) = &mut board
            && let Err(error) = note(board, event, step, args.log_every)
        {
            unwritten.get_or_insert(error);
        }
        progress.report(event);
    });
    progress.clear();
    if let Some(error) = unwritten {
        output.line(format!("warning: --tensorboard: {error}"));
    }
    let resume = format!("cupola train --resume {}", folder.path().display());
    match ended.map_err(|error| explain(error, folder))? {
        Stop::Flag => {
            draw(&trainer, folder)?;
            return Err(Failure::interrupted(format!(
                "interrupted after step {}, which is saved; go on with: {resume}",
                trainer.steps()
            )));
        }
        Stop::Steps => {
            let steps = trainer.steps();
            output.line(format!("stopped after step {steps}; go on with: {resume}"));
        }
        Stop::Stalled => output.line(format!(
            "stopped after epoch {}: the validation loss has not come down for {} epochs",
            trainer.history().len(),
            settings.patience.unwrap_or_default()
        )),
        Stop::Done => {}
    }
    draw(&trainer, folder)?;

    let found = test_with_bar(&trainer, &test)?;
    output.line(format!(
        "test accuracy {:.2} % ({} of {} images), loss {:.4}",
        100.0 * found.accuracy(),
        found.correct,
        found.images,
        found.mean_loss()
    ));
    if let Some(path) = &args.report {
        report::write(path, &trainer, &test, &found, args.device)?;
        output.line(format!("{} tells about the run", path.display()));
    }
    let mut files = vec![MODEL_FILE, STATE_FILE, METRICS_FILE];
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
    })
}

/// Writes what happened after `step` for TensorBoard: each so manieth step, and every epoch.
fn note(
    board: &mut TensorBoard,
    event: Event<'_>,
    step: u64,
    every: Option<usize>,
) -> cupola::Result<()> {
    match event {
        Event::Step { number, loss, tally }
            if number.is_multiple_of(every.unwrap_or(LOGGED) as u64) =>
        {
            board.scalars(number, &[("train/loss", loss), ("train/accuracy", tally.accuracy())])
        }
        Event::Finished { metrics, .. } => board.scalars(
            step,
            &[
                ("epoch/train_loss", metrics.train_loss),
                ("epoch/train_accuracy", metrics.train_accuracy),
                ("epoch/val_loss", metrics.val_loss),
                ("epoch/val_accuracy", metrics.val_accuracy),
                ("epoch/seconds", metrics.seconds),
            ],
        ),
        _ => Ok(()),
    }
}

fn draw(trainer: &Trainer, folder: &RunFolder) -> Outcome {
    match trainer.history() {
        [] => Ok(()),
        history => figures::draw_run(folder.path(), history),
    }
}

fn test_with_bar(trainer: &Trainer, test: &cupola::data::ImageDataset) -> Outcome<Tally> {
    let stop = interrupt::flag();
    let bar = bar(test.len() as u64, "testing {wide_bar} {pos}/{len}");
    let found = trainer.test(test, |tally| {
        bar.set_position(tally.images);
        !stop.load(std::sync::atomic::Ordering::Relaxed)
    });
    bar.finish_and_clear();
    found?.ok_or_else(|| Failure::interrupted("interrupted while testing; the run is saved"))
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
