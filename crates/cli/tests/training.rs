//! `cupola train`: what a run leaves behind, and that resuming changes nothing.

mod common;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Place, Ran};

#[test]
fn a_run_leaves_model_state_metrics_and_figures() {
    let place = Place::new();
    let ran = place.train("--epochs 2 --out run --json report.json").good();
    assert!(ran.err.is_empty(), "{}", ran.err);
    assert!(ran.out.contains("test accuracy"), "{}", ran.out);
    for file in ["state.safetensors", "curves.svg", "epoch_times.svg"] {
        assert!(!place.read(&format!("run/{file}")).is_empty());
    }
    let metrics = String::from_utf8(place.read("run/metrics.jsonl")).unwrap();
    assert_eq!(metrics.lines().count(), 2);
    let left: Vec<_> = fs::read_dir(place.path("run")).unwrap().collect();
    assert_eq!(left.len(), 5, "no temporary file stays: {left:?}");

    let report: serde_json::Value = serde_json::from_slice(&place.read("report.json")).unwrap();
    assert_eq!(report["dataset"], "mnist");
    assert_eq!(report["device"], "cpu");
    assert_eq!(report["seed"], 0);
    assert_eq!(report["parameters"], 659_855);
    let epochs = report["epochs"].as_array().unwrap();
    assert_eq!(epochs.len(), 2);
    for name in ["train_loss", "train_accuracy", "val_loss", "val_accuracy", "seconds"] {
        assert!(epochs[0][name].is_f64(), "{name}: {}", epochs[0]);
    }
    let accuracy = report["test_accuracy"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&accuracy));

    let (_, metadata) = cupola::io::safetensors::load(place.path("run/model.safetensors")).unwrap();
    let names: Vec<&str> = metadata.keys().map(String::as_str).collect();
    let all = ["architecture", "channels", "classes", "dataset", "mean", "side", "std"];
    assert_eq!(names, all);
}

#[test]
fn resumed_runs_end_with_the_weights_of_an_uninterrupted_one() {
    let place = Place::new();
    place.train("--epochs 2 --out whole").good();
    // In the middle of an epoch, and at its end.
    for steps in [3, 5] {
        let part = format!("part-{steps}");
        place.train(&format!("--epochs 2 --steps {steps} --out {part}")).good();
        assert_ne!(
            place.read(&format!("{part}/model.safetensors")),
            place.read("whole/model.safetensors")
        );
        place.train(&format!("--resume {part} --out {part}-on")).good();
        for run in [part.clone(), format!("{part}-on")] {
            if run == part {
                place.train(&format!("--resume {part}")).good();
            }
            assert_eq!(
                place.read(&format!("{run}/model.safetensors")),
                place.read("whole/model.safetensors"),
                "{run}"
            );
        }
    }
    // More epochs than before may be asked for.
    place.train("--epochs 1 --out short").good();
    place.train("--resume short --epochs 2").good();
    assert_eq!(place.read("short/model.safetensors"), place.read("whole/model.safetensors"));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let place = Place::new();
    for threads in ["1", "2"] {
        let run = format!("--epochs 1 --out threads-{threads}");
        place.train_with(&[("CUPOLA_NUM_THREADS", threads)], &run).good();
    }
    assert_eq!(
        place.read("threads-1/model.safetensors"),
        place.read("threads-2/model.safetensors")
    );
}

#[test]
fn the_seed_and_the_optimiser_change_the_weights() {
    let place = Place::new();
    place.train("--steps 1 --out a").good();
    for (name, flags) in [("b", "--seed 1"), ("c", "--optimizer sgd"), ("d", "--lr 0.01")] {
        place.train(&format!("--steps 1 --out {name} {flags}")).good();
        let file = format!("{name}/model.safetensors");
        assert_ne!(place.read(&file), place.read("a/model.safetensors"), "{flags}");
    }
}

#[test]
fn runs_without_a_folder_get_one_each() {
    let place = Place::new();
    place.train("--steps 1").good();
    place.train("--steps 1").good();
    assert_eq!(
        place.read("runs/mnist/model.safetensors"),
        place.read("runs/mnist-2/model.safetensors")
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_says_how_to_go_on() {
    let place = Place::new();
    place.train("--epochs 4 --out whole").good();
    let mut command = place.train_command("--epochs 4 --out cut");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (pid, patience) = (child.id().to_string(), Instant::now());
    while !place.path("cut/metrics.jsonl").exists() {
        assert!(patience.elapsed() < Duration::from_secs(120), "no epoch ended");
        std::thread::sleep(Duration::from_millis(2));
    }
    let sent = std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    // The run may just have ended.
    if ran.status != 0 {
        ran.bad(130, &["interrupted"]);
    }
    place.train("--resume cut").good();
    assert_eq!(place.read("cut/model.safetensors"), place.read("whole/model.safetensors"));
}
