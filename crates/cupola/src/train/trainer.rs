//! The training loop.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cupola_core::tree::{self, Tree};
use cupola_core::{Array, Error, Result, generator};

use super::checkpoint::{Position, Record};
use super::{
    BEST_FILE, Callbacks, Checkpoint, Description, EarlyStopping, EpochMetrics, Event, KeepBest,
    METRICS_FILE, MODEL_FILE, MetricsFile, Model, Part, PartialEpoch, Precision, STATE_FILE,
    Settings, Stop, Tally, Until, evaluate,
};
use crate::amp::{GradScaler, Policy, autocast};
use crate::data::{DataLoader, Dataset, ImageDataset, Subset};
use crate::nn::{self, Module};
use crate::optim::{Adagrad, Adam, AdamW, Lion, Optimizer, RmsProp, Sgd};

/// The optimisers that [`Settings::optimizer`] may name; `sgd` has a momentum of 0.9.
pub const OPTIMIZERS: [&str; 6] = ["adam", "adamw", "sgd", "rmsprop", "adagrad", "lion"];

/// How many images are looked at together where nothing is learnt.
const EVALUATION_BATCH: usize = 512;

type Batches = DataLoader<(Array, Array)>;

/// Trains a [`ConvNet`](super::ConvNet) on images.
pub struct Trainer {
    record: Record,
    model: Model,
    optimizer: Box<dyn Optimizer>,
    pub(super) policy: Option<Policy>,
    /// Of `float16` alone, whose small gradients would be lost.
    pub(super) scaler: Option<GradScaler>,
    training: Batches,
    validation: Batches,
    callbacks: Callbacks,
}

impl Trainer {
    /// A training from the start, on nine tenths of `images`; the others validate.
    ///
    /// The default random generator starts from the settings' seed.
    ///
    /// # Errors
    ///
    /// Where a setting cannot be, or the images are not square or too few.
    pub fn new(settings: Settings, images: &ImageDataset) -> Result<Self> {
        settings.check()?;
        let description = Description::of(images)?;
        let record = Record {
            settings,
            description,
            images: images.len(),
            training_digest: Some(digest(images)),
            test_digest: None,
            position: Position::default(),
            history: Vec::new(),
        };
        generator::seed(record.settings.seed);
        Self::build(record, images)
    }

    /// Names the images that the model is tested on, so that a run that is resumed is tested on the same.
    ///
    /// # Errors
    ///
    /// Where the training was resumed, and was to be tested on others.
    ///
    /// # Example
    /// ```
    /// use cupola::{data::digits_sized, train::{Settings, Trainer}};
    /// let (images, tests) = digits_sized(0, 40, 8);
    /// let mut trainer = Trainer::new(Settings::default(), &images)?;
    /// trainer.set_tests(&tests)?;
    /// assert!(trainer.set_tests(&images).is_err());
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn set_tests(&mut self, images: &ImageDataset) -> Result<()> {
        let given = digest(images);
        match self.record.test_digest {
            Some(known) if known != given => Err(Error::argument(
                "images",
                format!("the test images of {} have changed, or their labels", images.name()),
            )),
            _ => {
                self.record.test_digest = Some(given);
                Ok(())
            }
        }
    }

    /// Goes on from `checkpoint`, with the images that it was trained on, up to `epochs` in all.
    ///
    /// # Errors
    ///
    /// Where the images are others, more epochs are over than are asked for, or the checkpoint's
    /// tensors do not fit the network.
    pub fn resume(checkpoint: Checkpoint, images: &ImageDataset, epochs: usize) -> Result<Self> {
        let Checkpoint { mut record, model, optimizer, scaler, random, path } = checkpoint;
        let wrong = |detail: String| Error::io(&path, detail);
        if Description::of(images)? != record.description || images.len() != record.images {
            return Err(wrong(format!(
                "was trained on other images: {} of the set {}, and {} of {} are given",
                record.images,
                record.description.dataset,
                images.len(),
                images.name()
            )));
        }
        if record.training_digest.is_some_and(|known| known != digest(images)) {
            return Err(wrong(format!(
                "was trained on other images: those of {} have changed, or their labels",
                images.name()
            )));
        }
        let position = &record.position;
        let needed = position.epoch + usize::from(position.batch > 0);
        if epochs < needed {
            return Err(Error::argument(
                "epochs",
                format!("{epochs} in all, and {} is in epoch {needed} already", path.display()),
            ));
        }
        record.settings.epochs = epochs;
        let mut trainer = Self::build(record, images)?;
        super::model::fill(&trainer.model.network, &model).map_err(wrong)?;
        let parameters = trainer.model.network.parameters();
        for (name, moment) in &optimizer {
            let Some((parameter, _)) = name.rsplit_once('.') else { continue };
            if parameters.get(parameter).is_none_or(|p| p.shape() != moment.shape()) {
                return Err(wrong(format!("the optimiser's '{name}' fits no parameter")));
            }
        }
        trainer.optimizer.load(optimizer).map_err(|error| wrong(error.to_string()))?;
        if let Some(own) = &mut trainer.scaler {
            own.load(&scaler).map_err(|error| wrong(error.to_string()))?;
        }
        generator::set_state(random);
        Ok(trainer)
    }

    fn build(record: Record, images: &ImageDataset) -> Result<Self> {
        let Settings { batch_size, seed, learning_rate, optimizer, precision, .. } =
            &record.settings;
        precision.set();
        let policy = precision.policy()?;
        let scaler = (*precision == Precision::F16).then(GradScaler::new);
        let optimizer = make_optimizer(optimizer, *learning_rate)?;
        let images = images.clone().normalized(record.description.normalization()?)?;
        let [training, validation] = split(&images, *seed)?;
        let training = DataLoader::builder(training)
            .batch_size(*batch_size)
            .shuffle(*seed)
            .workers(1)
            .build()?;
        let validation =
            DataLoader::builder(validation).batch_size(EVALUATION_BATCH).workers(1).build()?;
        let network = record.description.network()?;
        let model = Model { description: record.description.clone(), network };
        nn::eval_all(&[&model.network, &*optimizer])?;
        let callbacks = Callbacks::new();
        Ok(Self { record, model, optimizer, policy, scaler, training, validation, callbacks })
    }

    /// The model as it is now.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.record.settings
    }

    /// What the epochs that are over came to.
    pub fn history(&self) -> &[EpochMetrics] {
        &self.record.history
    }

    /// What the epoch under way has come to, where one is.
    pub fn partial(&self) -> Option<PartialEpoch> {
        let Position { epoch, batch, tally, seconds, .. } = &self.record.position;
        (*batch > 0).then(|| PartialEpoch {
            epoch: epoch + 1,
            steps: *batch,
            train_loss: tally.mean_loss(),
            train_accuracy: tally.accuracy(),
            seconds: *seconds,
        })
    }

    /// Who is told of each step and of each epoch, once it is saved, and may end the run: what was measured is
    /// `loss` and `accuracy` of a step's batch, and what [`EpochMetrics::named`] gives of an epoch.
    pub fn callbacks(&mut self) -> &mut Callbacks {
        &mut self.callbacks
    }

    /// How many steps were made, those before resuming among them.
    pub fn steps(&self) -> u64 {
        self.record.position.step
    }

    /// Trains until all epochs are over or `until` says so, and keeps the run in `folder`: after
    /// every epoch, and where it stops.
    ///
    /// # Errors
    ///
    /// Where the loss is not finite, a batch cannot be made, a file cannot be written or a callback fails. What
    /// was saved before is then as it was.
    pub fn run(
        &mut self,
        folder: &Path,
        until: Until<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<Stop> {
        let mut own = self.own_callbacks(folder)?;
        let stopped = self.epochs(folder, &until, &mut own, report);
        // For those who are told, to be interrupted is an end as any.
        if matches!(stopped, Ok(_) | Err(Error::Interrupted)) {
            own.end()?;
            self.callbacks.end()?;
        }
        stopped
    }

    /// Trains epoch by epoch; gives why it stops.
    fn epochs(
        &mut self,
        folder: &Path,
        until: &Until<'_>,
        own: &mut Callbacks,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<Stop> {
        let last = until.steps.map(|steps| self.record.position.step.saturating_add(steps));
        let history: Vec<_> = self.record.history.iter().map(EpochMetrics::named).collect();
        let history: Vec<&[(&str, f64)]> = history.iter().map(|metrics| &metrics[..]).collect();
        let mut stalled = own.resume(&history, self.record.position.step)?;
        let mut asked = self.callbacks.resume(&history, self.record.position.step)?;
        loop {
            let position = &self.record.position;
            if position.epoch >= self.record.settings.epochs {
                // A run that was over before it began has its files, too.
                self.save(folder)?;
                return Ok(Stop::Done);
            }
            // Within an epoch it is too early, or too late, to say so.
            let is_between = position.batch == 0;
            if stalled.is_break() && is_between {
                self.save(folder)?;
                return Ok(Stop::Stalled);
            }
            if asked.is_break() && is_between {
                return Ok(Stop::Callback);
            }
            if last.is_some_and(|last| position.step >= last) {
                return Ok(Stop::Steps);
            }
            if let Some(stop) = self.epoch(until, last, report)? {
                self.save(folder)?;
                return Ok(stop);
            }
            self.save(folder)?;
            let Some(metrics) = self.record.history.last() else { continue };
            stalled = own.epoch(&metrics.named(), &self.model.network)?;
            report(Event::Finished { number: self.record.position.epoch, metrics });
            asked = self.callbacks.epoch(&metrics.named(), &self.model.network)?;
        }
    }

    /// The callbacks that the settings ask for.
    fn own_callbacks(&self, folder: &Path) -> Result<Callbacks> {
        let mut own = Callbacks::new();
        if let Some(patience) = self.record.settings.patience {
            own.add(EarlyStopping::new("val_loss", patience)?);
        }
        if self.record.settings.keep_best {
            let metadata = self.model.description.to_metadata()?;
            own.add(KeepBest::new("val_loss", folder.join(BEST_FILE)).metadata(metadata));
        }
        Ok(own)
    }

    /// Trains to the end of the epoch, and validates; gives why where it does not get there.
    fn epoch(
        &mut self,
        until: &Until<'_>,
        last: Option<u64>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<Option<Stop>> {
        let began = Instant::now();
        let Position { epoch, batch, seconds, .. } = self.record.position;
        let batches = self.training.len();
        let images = self.training.samples();
        report(Event::Epoch { number: epoch + 1, from: batch, batches, images });
        self.model.network.train(true);
        let mut stop = None;
        for batch in self.training.epoch_from(epoch as u64, batch) {
            if last.is_some_and(|last| self.record.position.step >= last) {
                stop = Some(Stop::Steps);
            } else if until.is_stopped() {
                stop = Some(Stop::Flag);
            }
            if stop.is_some() {
                break;
            }
            let (images, labels) = batch?;
            let (loss, accuracy) = self.step(images, labels)?;
            let Position { step, tally, .. } = &self.record.position;
            report(Event::Step { number: *step, loss, accuracy, tally });
            let metrics = [("loss", loss), ("accuracy", accuracy)];
            if self.callbacks.step(&metrics, &self.model.network)?.is_break() {
                stop = Some(Stop::Callback);
                break;
            }
        }
        if stop.is_none() {
            stop = self.validate(until, report, || seconds + began.elapsed().as_secs_f64())?;
        }
        if stop.is_some() {
            self.record.position.seconds = seconds + began.elapsed().as_secs_f64();
        }
        Ok(stop)
    }

    /// One training step; gives loss and accuracy of its batch.
    fn step(&mut self, images: Array, labels: Array) -> Result<(f64, f64)> {
        let count = labels.size() as u64;
        let Part { loss, gradients, sums } = self.learn(images, labels)?;
        let [correct] = &sums[..] else {
            return Err(Error::argument("Trainer", "a step has one count"));
        };
        match &mut self.scaler {
            Some(scaler) => {
                scaler.step(&mut *self.optimizer, &self.model.network, &gradients)?;
                scaler.update()?;
            }
            None => self.optimizer.update(&self.model.network, &gradients)?,
        }
        // What nobody holds is not kept: memory that is let go of here is reused in the step.
        drop(gradients);
        let state: [&dyn Tree; 2] = [&self.model.network, &*self.optimizer];
        let scaler = self.scaler.iter().flat_map(tree::leaves);
        let leaves = state.iter().flat_map(|tree| tree::leaves(*tree)).chain(scaler);
        let leaves = leaves.map(|(_, array)| array);
        let wanted: Vec<Array> =
            [loss.clone(), correct.clone(), generator::state()].into_iter().chain(leaves).collect();
        cupola_core::eval(&wanted)?;
        let loss = f64::from(loss.item::<f32>()?);
        let position = &mut self.record.position;
        if !loss.is_finite() {
            return Err(Error::User(format!(
                "the loss is {loss} at step {} (epoch {}) with a learning rate of {}",
                position.step + 1,
                position.epoch + 1,
                self.record.settings.learning_rate
            )));
        }
        position.step += 1;
        position.batch += 1;
        let correct = u64::try_from(correct.item::<i32>()?).unwrap_or(0);
        position.tally.add(loss, correct, count);
        Ok((loss, correct as f64 / count as f64))
    }

    /// Validates, and ends the epoch.
    fn validate(
        &mut self,
        until: &Until<'_>,
        report: &mut dyn FnMut(Event<'_>),
        seconds: impl Fn() -> f64,
    ) -> Result<Option<Stop>> {
        report(Event::Validation { images: self.validation.samples() });
        self.model.network.eval();
        let found = autocast(self.policy.as_ref(), || {
            evaluate(&self.model.network, self.validation.epoch(0), |tally, _| {
                report(Event::Validated { tally });
                !until.is_stopped()
            })
        })?;
        let Some(found) = found else { return Ok(Some(Stop::Flag)) };
        if !found.mean_loss().is_finite() {
            return Err(Error::User(format!(
                "the validation loss is {} after step {} (epoch {}) with a learning rate of {}",
                found.mean_loss(),
                self.record.position.step,
                self.record.position.epoch + 1,
                self.record.settings.learning_rate
            )));
        }
        let Position { epoch, step, tally, .. } = &self.record.position;
        self.record.history.push(EpochMetrics {
            train_loss: tally.mean_loss(),
            train_accuracy: tally.accuracy(),
            val_loss: found.mean_loss(),
            val_accuracy: found.accuracy(),
            seconds: seconds(),
        });
        self.record.position = Position { epoch: epoch + 1, step: *step, ..Position::default() };
        Ok(None)
    }

    /// Loss and accuracy on other images, such as the test set, at the training set's scale;
    /// nothing where `each`, which gets what it comes to so far and the scores of a batch, gives false before the end.
    ///
    /// # Errors
    ///
    /// Where the images have another shape.
    pub fn test(
        &self,
        images: &ImageDataset,
        each: impl FnMut(&Tally, &Array) -> bool,
    ) -> Result<Option<Tally>> {
        autocast(self.policy.as_ref(), || self.model.test(images, each))
    }

    /// Writes state, model and metrics into `folder`, each whole or not at all, the state first:
    /// all that the other two hold can be made again from it.
    fn save(&self, folder: &Path) -> Result<()> {
        let checkpoint = Checkpoint {
            record: self.record.clone(),
            model: self.model.network.state(),
            optimizer: self.optimizer.leaves(),
            scaler: self.scaler.as_ref().map(GradScaler::leaves).unwrap_or_default(),
            random: generator::state(),
            path: folder.join(STATE_FILE),
        };
        checkpoint.write()?;
        self.model.save(folder.join(MODEL_FILE))?;
        let mut file = MetricsFile::new(folder.join(METRICS_FILE));
        for (index, metrics) in self.record.history.iter().enumerate() {
            file.add_epoch(index + 1, &metrics.named());
        }
        if let Some(partial) = self.partial() {
            file.add_partial(partial.epoch, partial.steps, &partial.named());
        }
        file.write()
    }
}

/// A number that tells a set of images from one that has changed. Each word goes through a step that takes no two
/// numbers to the same one, so that a change of one word is never lost: times an odd number, as in Fibonacci hashing
/// (D. Knuth, *The Art of Computer Programming*, 6.4), and the high half onto the low one, which a product leaves behind.
fn digest(images: &ImageDataset) -> u64 {
    let mut hash = images.len() as u64;
    let mut add = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    };
    for bytes in images.pixels().chunks(8) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        add(u64::from_le_bytes(word));
    }
    images.labels().iter().for_each(|&label| add(label as u64));
    hash
}

impl Model {
    /// Loss and accuracy on `images`, at the scale of the training set; nothing where `each`, which gets what it comes
    /// to so far and the scores of a batch, gives false before the end.
    ///
    /// # Errors
    ///
    /// Where the images have another shape.
    pub fn test(
        &self,
        images: &ImageDataset,
        each: impl FnMut(&Tally, &Array) -> bool,
    ) -> Result<Option<Tally>> {
        let images = images.clone().normalized(self.description.normalization()?)?;
        let batches =
            DataLoader::builder(images).batch_size(EVALUATION_BATCH).workers(1).build()?;
        self.network.eval();
        evaluate(&self.network, batches.epoch(0), each)
    }
}

/// The images that a [`Trainer`] with this seed trains on, nine tenths, and those that it validates with.
///
/// # Errors
/// Where there are too few images.
pub fn split(images: &ImageDataset, seed: u64) -> Result<[Subset<Arc<ImageDataset>>; 2]> {
    let count = images.len();
    let training = training_images(count).ok_or_else(|| {
        let detail = format!("{}: {count} images are too few to split", images.name());
        Error::argument("Trainer", detail)
    })?;
    let parts = images.clone().random_split(&[training, count - training], seed)?;
    <[_; 2]>::try_from(parts).map_err(|_| Error::argument("Trainer", "the images do not split"))
}

/// How many of `count` images are trained on: nine tenths, where that leaves one to validate with.
pub(super) fn training_images(count: usize) -> Option<usize> {
    let training = count.saturating_sub((count / 10).max(1));
    (training > 0).then_some(training)
}

fn make_optimizer(name: &str, rate: f64) -> Result<Box<dyn Optimizer>> {
    Ok(match name {
        "adam" => Box::new(Adam::new(rate)?),
        "adamw" => Box::new(AdamW::new(rate)?),
        "sgd" => Box::new(Sgd::new(rate)?.momentum(0.9)?),
        "rmsprop" => Box::new(RmsProp::new(rate)?),
        "adagrad" => Box::new(Adagrad::new(rate)?),
        "lion" => Box::new(Lion::new(rate)?),
        other => {
            let detail = format!("'{other}' is none of {}", OPTIMIZERS.join(", "));
            return Err(Error::argument("optimizer", detail));
        }
    })
}
