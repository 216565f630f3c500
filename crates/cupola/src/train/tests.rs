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
    let before = trainer.test(&images, |_| true).unwrap();
    assert_eq!(model.test(&images, |_| true).unwrap(), before);
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
