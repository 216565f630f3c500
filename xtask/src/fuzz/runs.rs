//! Trainings that are killed, interrupted or stopped at drawn moments, and go on: they end with the
//! weights of one that was left alone, bit for bit, and leave nothing else behind.

use std::process::Command;
use std::time::Duration;

use super::Job;
use super::random::Random;
use super::report::Report;
use super::sandbox::{IMAGES, Ran, Running, Sandbox, tensors};

/// What a run leaves.
const FILES: [&str; 5] =
    ["curves.svg", "epoch_times.svg", "metrics.jsonl", "model.safetensors", "state.safetensors"];
const STATE: &str = "state.safetensors";
const OPTIMIZERS: [&str; 6] = ["adam", "adamw", "sgd", "rmsprop", "adagrad", "lion"];
/// The run that nothing stops.
const WHOLE: &str = "whole";

pub fn run(job: &Job<'_>) -> Result<Report, String> {
    if !cfg!(unix) {
        return Ok(Report::skipped("there are no signals here"));
    }
    Ok(job.cases(|case| {
        let sandbox = Sandbox::with_data(&format!("run-{case}"))?;
        Case::drawn(job, case, &sandbox).run()
    }))
}

/// A training, and what happened to it so far.
struct Case<'a> {
    job: &'a Job<'a>,
    sandbox: &'a Sandbox,
    random: Random,
    /// What both runs are started with, but for the number of epochs.
    settings: Vec<String>,
    epochs: u64,
    /// How many epochs the run that is stopped is started with; it is resumed with all of them.
    epochs_at_first: u64,
    steps: u64,
    /// The folder of the run that is stopped.
    place: String,
    /// Where it goes on, if it moves.
    next: Option<String>,
    story: String,
}

/// What cuts a run short.
#[derive(Clone, Copy)]
enum Cut {
    Signal(&'static str),
    Steps,
    /// A second training of the same folder, at the same time.
    Twin,
}

impl<'a> Case<'a> {
    fn drawn(job: &'a Job<'a>, case: u64, sandbox: &'a Sandbox) -> Self {
        let mut random = Random::of(job.seed, case);
        let (epochs, batch) = (1 + random.below(3), 4 + random.below(9));
        let words = format!(
            "--dataset mnist --batch-size {batch} --optimizer {} --seed {} --lr {}",
            random.pick(&OPTIMIZERS),
            random.below(1000),
            random.pick(&["0.001", "0.0001"]),
        );
        let settings = words.split_whitespace().map(str::to_owned).collect();
        let steps = epochs * (IMAGES as u64 * 9 / 10).div_ceil(batch);
        let epochs_at_first = if random.once_in(4) { 1 } else { epochs };
        let (place, story) = ("cut".to_owned(), String::new());
        let next = None;
        Self { job, sandbox, random, settings, epochs, epochs_at_first, steps, place, next, story }
    }

    fn run(mut self) -> Result<&'static str, String> {
        let mut command = self.command(&self.fresh(self.epochs, WHOLE));
        self.tell(&command);
        let whole = Running::start(&mut command)?.end();
        if whole.code() != Some(0) {
            return Err(self.wrong(&whole, "status 0"));
        }
        let mut label = "went through at once";
        for _ in 0..1 + self.random.below(6) {
            if self.random.once_in(8) && self.is_saved(&self.place) {
                self.next.get_or_insert_with(|| format!("{}-on", self.place));
            }
            let cut = self.draw_cut();
            if self.leg(cut, whole.time)? {
                break;
            }
            label = "was cut and went on";
        }
        if !self.is_saved(&self.place) {
            // Nothing goes on, so nothing could ask for the other epochs.
            self.epochs_at_first = self.epochs;
        }
        let last = self.start(&[])?.end();
        match (last.crashed(), last.code()) {
            (None, Some(0)) => self.compare().map(|()| label),
            _ => Err(self.wrong(&last, "status 0, as for any run that goes on")),
        }
    }

    fn draw_cut(&mut self) -> Cut {
        match self.random.below(10) {
            0..=3 => Cut::Signal("KILL"),
            4..=7 => Cut::Signal(self.random.pick(&["INT", "TERM", "HUP"])),
            8 => Cut::Steps,
            _ => Cut::Twin,
        }
    }

    /// Lets the run go on until it is cut; gives whether it is over.
    fn leg(&mut self, cut: Cut, whole: Duration) -> Result<bool, String> {
        match cut {
            Cut::Signal(name) => {
                let delay = whole.mul_f64(self.random.below(1100) as f64 / 1000.0);
                let mut running = self.start(&[])?;
                let is_over = running.wait_for(delay).is_some();
                running.signal(name);
                self.story += &format!("\n  SIG{name} after {} ms", delay.as_millis());
                let ran = running.end();
                self.check_cut(name, &ran)?;
                Ok(is_over)
            }
            Cut::Steps => {
                let steps = (1 + self.random.below(self.steps)).to_string();
                let ran = self.start(&["--steps", &steps])?.end();
                match (ran.crashed(), ran.code()) {
                    (None, Some(0)) => Ok(false),
                    _ => Err(self.wrong(&ran, "status 0")),
                }
            }
            Cut::Twin => self.twins().map(|()| true),
        }
    }

    /// A run that got a signal ends by it, or says that it was interrupted, or was over before.
    fn check_cut(&self, name: &str, ran: &Ran) -> Result<(), String> {
        let number = match name {
            "HUP" => 1,
            "INT" => 2,
            "KILL" => 9,
            _ => 15,
        };
        let is_said = ran.code() == Some(130)
            && ran.error().is_some_and(|error| error.contains("interrupted"));
        let place = self.next.as_ref().unwrap_or(&self.place);
        let is_lost = ran.err.contains("which is saved") && !self.is_saved(place);
        // Before the handler is there a signal ends the program.
        let is_fine = ran.signal() == Some(number) || ran.code() == Some(0) || is_said;
        match is_fine && !is_lost && ran.crashed().is_none() {
            true => Ok(()),
            false => Err(self.wrong(ran, "the signal, status 0, or 130 with one line of error")),
        }
    }

    /// Two at once: at least one goes through, and who is refused says so in a line.
    fn twins(&mut self) -> Result<(), String> {
        let both = [self.start(&[])?, self.start(&[])?].map(Running::end);
        let is_refused = |ran: &Ran| {
            let words = ["is training here", "holds a run already"];
            let said = |error: &str| words.iter().any(|word| error.contains(word));
            ran.code() == Some(1) && ran.error().is_some_and(said)
        };
        let is_good = |ran: &Ran| ran.code() == Some(0);
        if both.iter().all(|ran| is_good(ran) || is_refused(ran)) && both.iter().any(is_good) {
            return Ok(());
        }
        let [first, second] = &both;
        self.story += &format!("\n  one of two at once: {}", first.told());
        Err(self.wrong(second, "one that goes through, and one that is refused in a line"))
    }

    fn is_saved(&self, place: &str) -> bool {
        self.sandbox.path(place).join(STATE).exists()
    }

    /// What starts a run.
    fn fresh(&self, epochs: u64, place: &str) -> Vec<String> {
        let more =
            ["--epochs".to_owned(), epochs.to_string(), "--out".to_owned(), place.to_owned()];
        [&self.settings[..], &more].concat()
    }

    /// Starts the run, or goes on with it where it has been saved.
    fn start(&mut self, more: &[&str]) -> Result<Running, String> {
        if let Some(next) = self.next.take_if(|next| self.sandbox.path(next).join(STATE).exists()) {
            self.place = next;
        }
        let mut words = match self.is_saved(&self.place) {
            true => self.resumed(),
            false => self.fresh(self.epochs_at_first, &self.place),
        };
        words.extend(more.iter().map(|&word| word.to_owned()));
        let mut command = self.command(&words);
        self.tell(&command);
        Running::start(&mut command)
    }

    /// What goes on with the run.
    fn resumed(&self) -> Vec<String> {
        let mut words = vec!["--resume".to_owned(), self.place.clone()];
        if self.epochs_at_first < self.epochs {
            words.extend(["--epochs".to_owned(), self.epochs.to_string()]);
        }
        words.extend(self.next.iter().flat_map(|next| ["--out".to_owned(), next.clone()]));
        words
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&self.job.built.program);
        command.args(["train", "--device", "cpu", "--data-dir", "data"]).args(words);
        command.current_dir(self.sandbox.path("."));
        command
    }

    fn tell(&mut self, command: &Command) {
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        self.story += &format!("\n  cupola {}", words.join(" "));
    }

    fn wrong(&self, ran: &Ran, expected: &str) -> String {
        let story = self.story.trim_start_matches('\n');
        format!("{story}\n  expected {expected}, and got {}", ran.told())
    }

    /// Whether both runs left the same.
    fn compare(&self) -> Result<(), String> {
        let place = self.next.as_deref().unwrap_or(&self.place);
        let files = |run: &str, name: &str| self.sandbox.read(&format!("{run}/{name}"));
        let differs = |what: &str| {
            let story = self.story.trim_start_matches('\n');
            Err(format!("{story}\n  expected {what} as in a run that nothing stopped"))
        };
        let [cut, whole] = [place, WHOLE].map(|run| files(run, "model.safetensors"));
        if cut.is_none() || cut != whole {
            return differs("model.safetensors");
        }
        let [cut, whole] = [place, WHOLE].map(|run| {
            let state = files(run, STATE)?;
            tensors(&state).map(<[u8]>::to_vec)
        });
        if cut.is_none() || cut != whole {
            return differs("the tensors of state.safetensors");
        }
        let [cut, whole] =
            [place, WHOLE].map(|run| files(run, "metrics.jsonl").map(|m| timeless(&m)));
        if cut.is_none() || cut != whole {
            return differs("metrics.jsonl");
        }
        match self.sandbox.names(place) {
            names if names == FILES => Ok(()),
            names => differs(&format!("the same files, and there are {names:?}: names")),
        }
    }
}

/// Metrics without the times.
fn timeless(metrics: &[u8]) -> Vec<serde_json::Value> {
    let lines = metrics.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let parsed = lines.map(|line| {
        let mut line: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
        line.as_object_mut().map(|entries| entries.remove("seconds"));
        line
    });
    parsed.collect()
}
