//! What to train, from the flags and from the run that is resumed.

use cupola::data::ImageDataset;
use cupola::train::{Augment, Checkpoint, Precision, Settings, Trainer};

use crate::args::{Augmentation, DatasetName, TrainArgs};
use crate::failure::{Failure, Outcome};

/// The precision that the device decides.
const AUTO: &str = "auto";

/// A training that the flags ask for.
pub struct Recipe {
    pub dataset: DatasetName,
    settings: Settings,
    checkpoint: Option<Checkpoint>,
}

impl Recipe {
    pub fn new(args: &TrainArgs) -> Outcome<Self> {
        match &args.resume {
            None => Ok(Self {
                dataset: args.dataset.unwrap_or(DatasetName::Digits),
                settings: settings(args)?,
                checkpoint: None,
            }),
            Some(folder) => {
                let checkpoint = Checkpoint::read(folder)
                    .map_err(|error| Failure::new(format!("--resume: {error}")))?;
                Self::resumed(args, checkpoint)
            }
        }
    }

    /// Every flag that is given must say what the run was started with; `--epochs` may say more.
    fn resumed(args: &TrainArgs, mut checkpoint: Checkpoint) -> Outcome<Self> {
        let saved = checkpoint.settings();
        let name = checkpoint.description().dataset.clone();
        let Some(dataset) = DatasetName::from_name(&name) else {
            return Err(Failure::new(format!("--resume: the run is of the unknown set '{name}'")));
        };
        agree("--dataset", args.dataset.map(DatasetName::name), dataset.name())?;
        agree("--batch-size", args.batch_size, saved.batch_size)?;
        agree("--lr", args.lr, saved.learning_rate)?;
        agree("--optimizer", args.optimizer.as_deref(), saved.optimizer.as_str())?;
        agree("--seed", args.seed, saved.seed)?;
        agree("--accumulate", args.accumulate, saved.accumulate)?;
        let given = (!args.augment.is_empty()).then(|| augment(args));
        agree("--augment", given, saved.augment)?;
        // What was found best when the run began is what it goes on with.
        let precision = args.precision.as_deref().filter(|&name| name != AUTO);
        agree("--precision", precision, saved.precision.name())?;
        let mut settings = saved.clone();
        settings.epochs = args.epochs.unwrap_or(saved.epochs);
        settings.patience = args.patience.or(saved.patience);
        settings.keep_best |= args.keep_best;
        if settings.epochs < checkpoint.epochs_done() {
            return Err(Failure::usage(format!(
                "--epochs {}: that is the total, and the run to resume has done {} already",
                settings.epochs,
                checkpoint.epochs_done()
            )));
        }
        checkpoint.set_end(settings.patience, settings.keep_best);
        Ok(Self { dataset, settings, checkpoint: Some(checkpoint) })
    }

    /// The training on `images`, to be tested on `tests`.
    pub fn trainer(self, images: &ImageDataset, tests: &ImageDataset) -> Outcome<Trainer> {
        let epochs = self.settings.epochs;
        let resumed = |error| Failure::new(format!("--resume: {error}"));
        let mut trainer = match self.checkpoint {
            None => Trainer::new(self.settings, images)?,
            Some(checkpoint) => Trainer::resume(checkpoint, images, epochs).map_err(resumed)?,
        };
        trainer.set_tests(tests).map_err(resumed)?;
        Ok(trainer)
    }
}

fn settings(args: &TrainArgs) -> Outcome<Settings> {
    let usual = Settings::default();
    Ok(Settings {
        epochs: args.epochs.unwrap_or(usual.epochs),
        batch_size: args.batch_size.unwrap_or(usual.batch_size),
        learning_rate: args.lr.unwrap_or(usual.learning_rate),
        optimizer: args.optimizer.clone().unwrap_or(usual.optimizer),
        seed: args.seed.unwrap_or(usual.seed),
        precision: match args.precision.as_deref() {
            None => usual.precision,
            Some(AUTO) => Precision::best(args.device),
            Some(name) => name.parse()?,
        },
        accumulate: args.accumulate.unwrap_or(usual.accumulate),
        augment: augment(args),
        patience: args.patience,
        keep_best: args.keep_best,
    })
}

/// By how many pixels `--augment crop` shifts.
const SHIFT: usize = 4;

fn augment(args: &TrainArgs) -> Augment {
    let has = |how| args.augment.contains(&how);
    let crop = if has(Augmentation::Crop) { SHIFT } else { 0 };
    Augment { flip: has(Augmentation::Flip), crop }
}

fn agree<T: PartialEq + std::fmt::Display>(flag: &str, given: Option<T>, saved: T) -> Outcome {
    match given {
        Some(given) if given != saved => Err(Failure::usage(format!(
            "{flag} {given}: the run to resume was started with {saved}; leave {flag} out, or \
             start a new run"
        ))),
        _ => Ok(()),
    }
}
