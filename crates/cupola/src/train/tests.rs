//! What holds of a training and of the files that it keeps.

use std::fs;
use std::path::Path;

use super::*;
use crate::data::{ImageDataset, digits_sized};
use crate::nn::Module;

fn images() -> ImageDataset {
    digits_sized(1, 60, 0).0
}

fn settings() -> Settings {
    Settings { epochs: 2, batch_size: 16, ..Settings::default() }
}

/// The default random generator is one for all threads, so trainings take turns.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn train(trainer: &mut Trainer, folder: &Path, steps: Option<u64>) -> Stop {
    trainer.run(folder, Until { steps, ..Until::default() }, &mut |_| {}).unwrap()
}

#[test]
fn the_network_has_the_articles_size() {
    let _turn = alone();
    assert_eq!(ConvNet::new(1, 28, 10).unwrap().num_parameters(), 659_855);
    assert_eq!(ConvNet::new(3, 32, 10).unwrap().num_parameters(), 1_756_880);
    assert!(ConvNet::new(1, 7, 10).is_err());
}

#[test]
fn a_tenth_of_the_images_validates() {
    assert_eq!(trainer::training_images(60_000), Some(54_000));
    assert_eq!(trainer::training_images(2), Some(1));
    assert_eq!(trainer::training_images(1), None);
    assert_eq!(trainer::training_images(0), None);
}

#[test]
fn a_run_in_mixed_precision_is_resumed_as_it_was() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let images = images();
    let mut ends = Vec::new();
    for precision in [Precision::Bf16, Precision::F16] {
        let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
        for path in [&whole, &part] {
            fs::create_dir_all(path).unwrap();
        }
        let settings = Settings { epochs: 1, precision, ..settings() };
        let mut trainer = Trainer::new(settings.clone(), &images).unwrap();
        assert_eq!(train(&mut trainer, &whole, None), Stop::Done);
        let parameters = trainer.model().network.parameters();
        assert!(parameters.values().all(|p| p.dtype() == cupola_core::DType::F32));
        let mut trainer = Trainer::new(settings, &images).unwrap();
        assert_eq!(train(&mut trainer, &part, Some(2)), Stop::Steps);
        let checkpoint = Checkpoint::read(&part).unwrap();
        assert_eq!(checkpoint.settings().precision, precision);
        let mut trainer = Trainer::resume(checkpoint, &images, 1).unwrap();
        assert_eq!(train(&mut trainer, &part, None), Stop::Done);
        let [expected, found] = [&whole, &part].map(|f| fs::read(f.join(MODEL_FILE)).unwrap());
        assert!(found == expected, "{precision}");
        ends.push(expected);
    }
    assert!(ends[0] != ends[1], "half types differ");
}

#[test]
fn a_run_stopped_anywhere_ends_with_the_same_weights() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let images = images();
    let whole = path("whole");
    let mut trainer = Trainer::new(settings(), &images).unwrap();
    // 54 images: 4 batches an epoch.
    assert_eq!(train(&mut trainer, &whole, None), Stop::Done);
    assert_eq!(trainer.steps(), 8);
    let expected = fs::read(whole.join(MODEL_FILE)).unwrap();
    for steps in [3, 4] {
        let parts = path(&format!("after-{steps}"));
        let mut trainer = Trainer::new(settings(), &images).unwrap();
        assert_eq!(train(&mut trainer, &parts, Some(steps)), Stop::Steps);
        assert_ne!(fs::read(parts.join(MODEL_FILE)).unwrap(), expected);
        // What is drawn in between is not the run's.
        crate::generator::seed(77);
        let checkpoint = Checkpoint::read(&parts).unwrap();
        let mut trainer = Trainer::resume(checkpoint, &images, 2).unwrap();
        assert_eq!(train(&mut trainer, &parts, None), Stop::Done);
        assert_eq!(fs::read(parts.join(MODEL_FILE)).unwrap(), expected);
        let lines = fs::read_to_string(parts.join(METRICS_FILE)).unwrap();
        assert_eq!(lines.lines().count(), 2);
    }
}

#[test]
fn a_model_comes_back_from_its_file() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(MODEL_FILE);
    let images = images();
    let trainer = Trainer::new(settings(), &images).unwrap();
    trainer.model().save(&path).unwrap();
    let model = Model::load(&path).unwrap();
    assert_eq!(model.description, trainer.model().description);
    let before = trainer.test(&images, |_, _| true).unwrap();
    assert_eq!(model.test(&images, |_, _| true).unwrap(), before);
}

#[test]
fn what_does_not_fit_is_named() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let images = images();
    let error = Checkpoint::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains(STATE_FILE), "{error}");
    let mut trainer = Trainer::new(settings(), &images).unwrap();
    train(&mut trainer, folder.path(), Some(1));
    let read = || Checkpoint::read(folder.path()).unwrap();
    let fewer = digits_sized(1, 50, 0).0;
    let error = Trainer::resume(read(), &fewer, 2).err().unwrap().to_string();
    assert!(error.contains("other images"), "{error}");
    // A model's file is no training state.
    fs::copy(folder.path().join(MODEL_FILE), folder.path().join(STATE_FILE)).unwrap();
    let error = Checkpoint::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains(STATE_FILE) && error.contains("no training state"), "{error}");
    for bad in [
        Settings { epochs: 0, ..settings() },
        Settings { batch_size: 0, ..settings() },
        Settings { learning_rate: f64::NAN, ..settings() },
        Settings { learning_rate: -1.0, ..settings() },
        Settings { optimizer: "magic".to_owned(), ..settings() },
    ] {
        assert!(Trainer::new(bad, &images).is_err());
    }
    let error = Trainer::new(settings(), &digits_sized(1, 1, 0).0).err().unwrap().to_string();
    assert!(error.contains("too few"), "{error}");
}

#[test]
fn a_loss_that_is_not_finite_ends_the_run_and_saves_nothing() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let images = images();
    let mut trainer = Trainer::new(settings(), &images).unwrap();
    train(&mut trainer, folder.path(), Some(1));
    let before = fs::read(folder.path().join(STATE_FILE)).unwrap();
    let wild = Settings { learning_rate: 1e30, optimizer: "sgd".to_owned(), ..settings() };
    let mut trainer = Trainer::new(wild, &images).unwrap();
    let error = trainer.run(folder.path(), Until::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("loss is") && error.contains("step"), "{error}");
    assert_eq!(fs::read(folder.path().join(STATE_FILE)).unwrap(), before);
}

#[test]
fn a_batch_in_parts_gives_the_same_step() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let images = images();
    let mut losses = Vec::new();
    for accumulate in [1, 3, 1000] {
        let mut trainer =
            Trainer::new(Settings { epochs: 1, accumulate, ..settings() }, &images).unwrap();
        // Dropout is drawn part by part, so that only a network without it is the same.
        trainer.model().network.eval();
        let learnt = (0..16).collect::<Vec<_>>();
        let (pixels, labels) = images.gather(&learnt).unwrap();
        let x = cupola_core::Array::from_vec(pixels, [16, 28, 28, 1]).unwrap();
        let y = cupola_core::Array::from_vec(labels, [16]).unwrap();
        let all = trainer.learn(x, y).unwrap();
        let slopes: Vec<f32> =
            all.gradients.values().flat_map(|g| g.to_vec::<f32>().unwrap()).collect();
        losses.push((all.loss.item::<f32>().unwrap(), all.sums[0].item::<i32>().unwrap(), slopes));
        assert_eq!(train(&mut trainer, folder.path(), Some(1)), Stop::Steps);
    }
    for other in &losses[1..] {
        assert!((losses[0].0 - other.0).abs() < 1e-5, "{} {}", losses[0].0, other.0);
        assert_eq!(losses[0].1, other.1);
        let largest = losses[0].2.iter().fold(0.0_f32, |most, g| most.max(g.abs()));
        let apart = losses[0].2.iter().zip(&other.2).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0_f32, f32::max) < 1e-4 * largest);
    }
}

#[test]
fn a_run_ends_when_it_does_not_get_better() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let images = images();
    // So large a step makes the loss worse.
    let settings = Settings {
        epochs: 20,
        learning_rate: 0.5,
        optimizer: "sgd".to_owned(),
        patience: Some(2),
        keep_best: true,
        ..settings()
    };
    let mut trainer = Trainer::new(settings, &images).unwrap();
    let ended = trainer.run(folder.path(), Until::default(), &mut |_| {});
    if let Ok(stop) = ended {
        let losses: Vec<f64> = trainer.history().iter().map(|m| m.val_loss).collect();
        let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap();
        assert_eq!(stop, if losses.len() < 20 { Stop::Stalled } else { Stop::Done });
        assert!(losses.len() <= best + 3, "{losses:?}");
        assert_eq!(losses.len(), best + 3, "{losses:?}");
        let model = Model::load(folder.path().join(BEST_FILE)).unwrap();
        let found = model.test(&images, |_, _| true).unwrap().unwrap();
        let last = trainer.test(&images, |_, _| true).unwrap().unwrap();
        assert_ne!(found.mean_loss(), last.mean_loss());
        // Resumed, it has nothing left to do.
        let again = Checkpoint::read(folder.path()).unwrap();
        let mut again = Trainer::resume(again, &images, 20).unwrap();
        assert_eq!(train(&mut again, folder.path(), None), Stop::Stalled);
    } else {
        panic!("{ended:?}");
    }
}

#[test]
fn an_unfinished_epoch_is_told() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::new(settings(), &images()).unwrap();
    assert_eq!(trainer.partial(), None);
    train(&mut trainer, folder.path(), Some(2));
    let partial = trainer.partial().unwrap();
    assert_eq!((partial.epoch, partial.steps), (1, 2));
    let text = fs::read_to_string(folder.path().join(METRICS_FILE)).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(line["steps"], 2);
    assert!(line["train_loss"].as_f64().unwrap() > 0.0);
}

#[test]
fn changed_images_are_resumed_as_they_were() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let images = images();
    let augment = Augment { flip: true, crop: 2 };
    let settings = Settings { epochs: 1, augment, ..settings() };
    let mut whole = Trainer::new(settings.clone(), &images).unwrap();
    train(&mut whole, folder.path(), None);
    let mut part = Trainer::new(settings, &images).unwrap();
    train(&mut part, folder.path(), Some(1));
    let again = Checkpoint::read(folder.path()).unwrap();
    let mut again = Trainer::resume(again, &images, 1).unwrap();
    train(&mut again, folder.path(), None);
    let bytes = |trainer: &Trainer| -> Vec<Vec<f32>> {
        let parameters = trainer.model().network.parameters();
        parameters.values().map(|p| p.to_vec().unwrap()).collect()
    };
    assert!(bytes(&whole) == bytes(&again), "the weights differ");
}

/// Ends a training at a step.
struct At(u64);

impl Callback for At {
    fn step(&mut self, at: &Moment<'_>) -> cupola_core::Result<std::ops::ControlFlow<()>> {
        Ok(match at.step == self.0 {
            true => std::ops::ControlFlow::Break(()),
            false => std::ops::ControlFlow::Continue(()),
        })
    }
}

/// What is interrupted at the second step, as where Ctrl-C stops what a callback evaluates.
struct Interrupted;

impl Callback for Interrupted {
    fn step(&mut self, at: &Moment<'_>) -> cupola_core::Result<std::ops::ControlFlow<()>> {
        match at.step {
            2 => Err(cupola_core::Error::Interrupted),
            _ => Ok(std::ops::ControlFlow::Continue(())),
        }
    }
}

#[test]
fn callbacks_are_told_of_the_end_of_an_interrupted_run() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("own.jsonl");
    let steps = || {
        let text = fs::read_to_string(&lines).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        line["steps"].as_u64().unwrap()
    };
    let mut trainer = Trainer::new(settings(), &images()).unwrap();
    trainer.callbacks().add(MetricsFile::new(&lines));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let until = Until { stop: Some(&stop), ..Until::default() };
    let raise = &mut |event: Event<'_>| {
        let is_last = matches!(event, Event::Step { number: 3, .. });
        stop.fetch_or(is_last, std::sync::atomic::Ordering::Relaxed);
    };
    assert_eq!(trainer.run(folder.path(), until, raise).unwrap(), Stop::Flag);
    assert_eq!((steps(), trainer.partial().unwrap().steps), (3, 3));

    let mut trainer = Trainer::new(settings(), &images()).unwrap();
    trainer.callbacks().add(MetricsFile::new(&lines));
    trainer.callbacks().add(Interrupted);
    let ended = trainer.run(folder.path(), Until::default(), &mut |_| {});
    assert!(matches!(ended, Err(cupola_core::Error::Interrupted)), "{ended:?}");
    assert_eq!(steps(), 2);
}

#[test]
fn a_callback_ends_a_run_that_can_go_on() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::new(settings(), &images()).unwrap();
    let lines = folder.path().join("own.csv");
    trainer.callbacks().add(At(3));
    trainer.callbacks().add(MetricsFile::new(&lines));
    assert_eq!(train(&mut trainer, folder.path(), None), Stop::Callback);
    assert_eq!(trainer.steps(), 3);
    let text = fs::read_to_string(&lines).unwrap();
    assert!(text.starts_with("epoch,steps,") && text.contains("\n1,3,"), "{text}");
    assert_eq!(text.lines().count(), 2, "no epoch is over");
    assert_eq!(train(&mut trainer, folder.path(), None), Stop::Done);
    let text = fs::read_to_string(&lines).unwrap();
    assert!(text.starts_with("epoch,train_loss,train_accuracy,val_loss,val_accuracy,seconds\n1,"));
    assert_eq!(text.lines().count(), 3);
}
