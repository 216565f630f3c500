//! What people see of a training: a bar within an epoch, a line after it.

use std::time::{Duration, Instant};

use cupola::train::{EpochMetrics, Event, Tally};
use indicatif::ProgressBar;

use crate::output::{Output, bar};

/// Turns the events of a run into bars and lines.
pub struct Progress<'a> {
    output: &'a Output,
    epochs: usize,
    /// Between how many steps there is a line.
    every: Option<usize>,
    bar: ProgressBar,
    /// When the epoch began, and how many images of it had been seen before.
    began: Instant,
    images_before: Option<u64>,
    images_seen: u64,
    trained: Option<Duration>,
    headed: bool,
}

impl<'a> Progress<'a> {
    /// Shows the epochs in `history`, which are over, and what follows.
    pub fn new(
        output: &'a Output,
        epochs: usize,
        every: Option<usize>,
        history: &[EpochMetrics],
    ) -> Self {
        let mut progress = Self {
            output,
            epochs,
            every,
            bar: ProgressBar::hidden(),
            began: Instant::now(),
            images_before: None,
            images_seen: 0,
            trained: None,
            headed: false,
        };
        for (index, metrics) in history.iter().enumerate() {
            progress.line(index + 1, metrics, None);
        }
        progress
    }

    pub fn report(&mut self, event: Event<'_>) {
        match event {
            Event::Epoch { number, from, batches, .. } => {
                self.bar.finish_and_clear();
                let tail = "{wide_bar} {pos}/{len}  {msg}  {eta:>3} left";
                self.bar = bar(batches as u64, &format!("epoch {number}/{} {tail}", self.epochs));
                self.bar.set_position(from as u64);
                self.bar.reset_eta();
                self.began = Instant::now();
                (self.images_before, self.trained) = (None, None);
                if from == 0 {
                    self.images_before = Some(0);
                }
            }
            Event::Step { number, loss, accuracy, tally } => {
                self.step(tally);
                if self.every.is_some_and(|every| number.is_multiple_of(every as u64)) {
                    let line = format!(
                        "step {number}: loss {loss:.4}, accuracy {:.2} %; of the epoch so far \
                         {:.4}, {:.2} %",
                        100.0 * accuracy,
                        tally.mean_loss(),
                        100.0 * tally.accuracy()
                    );
                    self.bar.suspend(|| self.output.line(line));
                }
            }
            Event::Validation { images } => {
                self.trained = Some(self.began.elapsed());
                self.bar.finish_and_clear();
                self.bar = bar(images as u64, "validating {wide_bar} {pos}/{len}");
            }
            Event::Validated { tally } => self.bar.set_position(tally.images),
            Event::Finished { number, metrics } => {
                self.bar.finish_and_clear();
                let rate = self.trained.map(|time| self.rate(time));
                self.line(number, metrics, rate.filter(|rate| *rate > 0.0));
            }
            _ => {}
        }
    }

    fn step(&mut self, tally: &Tally) {
        self.images_seen = tally.images;
        // The first step after resuming tells how far the epoch was; from the next on there is a
        // rate.
        self.images_before.get_or_insert(tally.images);
        self.bar.inc(1);
        self.bar.set_message(format!(
            "loss {:.4}  accuracy {:.2} %  {:.0} images/s",
            tally.mean_loss(),
            100.0 * tally.accuracy(),
            self.rate(self.began.elapsed())
        ));
    }

    fn rate(&self, time: Duration) -> f64 {
        let images = self.images_seen - self.images_before.unwrap_or(self.images_seen);
        images as f64 / time.as_secs_f64().max(1e-9)
    }

    fn line(&mut self, number: usize, metrics: &EpochMetrics, rate: Option<f64>) {
        if !self.headed {
            self.headed = true;
            self.output.line(format!(
                "{:>7}  {:>10}  {:>10}  {:>10}  {:>10}  {:>9}  {:>8}",
                "epoch", "train loss", "accuracy", "val loss", "accuracy", "images/s", "time"
            ));
        }
        self.output.line(format!(
            "{:>7}  {:>10.4}  {:>8.2} %  {:>10.4}  {:>8.2} %  {:>9}  {:>6.1} s",
            format!("{number}/{}", self.epochs),
            metrics.train_loss,
            100.0 * metrics.train_accuracy,
            metrics.val_loss,
            100.0 * metrics.val_accuracy,
            rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}")),
            metrics.seconds
        ));
    }

    /// Takes the bar away.
    pub fn clear(&mut self) {
        self.bar.finish_and_clear();
    }
}
