//! `cupola train`: what a run leaves behind, and that resuming changes nothing.

mod common;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Ran, Sandbox};

#[test]
fn a_run_leaves_model_state_metrics_and_figures() {
    let sandbox = Sandbox::new();
    let ran = sandbox.train("--epochs 2 --out run --json report.json").good();
    assert!(ran.err.is_empty(), "{}", ran.err);
    assert!(ran.out.contains("test accuracy"), "{}", ran.out);
    for file in ["state.safetensors", "curves.svg", "epoch_times.svg"] {
        assert!(!sandbox.read(&format!("run/{file}")).is_empty());
    }
    let metrics = String::from_utf8(sandbox.read("run/metrics.jsonl")).unwrap();
    assert_eq!(metrics.lines().count(), 2);
    let left: Vec<_> = fs::read_dir(sandbox.path("run")).unwrap().collect();
    assert_eq!(left.len(), 5, "no temporary file stays: {left:?}");

    let report: serde_json::Value = serde_json::from_slice(&sandbox.read("report.json")).unwrap();
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

    let (_, metadata) =
        cupola::io::safetensors::load(sandbox.path("run/model.safetensors")).unwrap();
    let names: Vec<&str> = metadata.keys().map(String::as_str).collect();
    let all = ["architecture", "channels", "classes", "dataset", "mean", "side", "std"];
    assert_eq!(names, all);
}

#[test]
fn a_run_can_be_watched() {
    let sandbox = Sandbox::new();
    let ran = sandbox
        .train("--epochs 1 --out run --log-every 2 --tensorboard board --report run.html")
        .good();
    assert!(ran.out.contains("step 2: loss "), "{}", ran.out);
    assert!(ran.out.contains("run.html tells about the run"), "{}", ran.out);
    let page = String::from_utf8(sandbox.read("run.html")).unwrap();
    for part in
        ["<!DOCTYPE html>", "test accuracy", "<svg", "What was taken for what", "data:image/png"]
    {
        assert!(page.contains(part), "{part} is missing");
    }
    for tag in ["table", "td", "svg", "figure", "body"] {
        let (opened, closed) = (format!("<{tag}"), format!("</{tag}>"));
        assert_eq!(page.matches(&closed).count(), page.matches(&opened).count(), "{tag}");
    }
    sandbox.train("--steps 3 --out part --report part.html").good();
    let page = String::from_utf8(sandbox.read("part.html")).unwrap();
    assert!(page.contains("<td>1, 3 steps</td>"), "an epoch under way is told");
    let files: Vec<_> = fs::read_dir(sandbox.path("board")).unwrap().collect();
    assert_eq!(files.len(), 1);
    let events = fs::read(files[0].as_ref().unwrap().path()).unwrap();
    let has = |text: &str| events.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("brain.Event:2") && has("train/loss") && has("epoch/val_accuracy"));

    sandbox
        .train("--steps 1 --out other --report other/model.safetensors")
        .bad(2, &["--report", "model.safetensors"]);
    sandbox
        .train("--steps 1 --out other --report nowhere/run.html")
        .bad(1, &["--report", "nowhere"]);
    fs::write(sandbox.path("file"), "").unwrap();
    sandbox.train("--steps 1 --out other --tensorboard file").bad(1, &["file"]);
    assert!(!sandbox.path("other").exists(), "nothing is left of a run that did not begin");
}

#[test]
fn resumed_runs_end_with_the_weights_of_an_uninterrupted_one() {
    let sandbox = Sandbox::new();
    sandbox.train("--epochs 2 --out whole").good();
    // In the middle of an epoch, and at its end.
    for steps in [3, 5] {
        let part = format!("part-{steps}");
        sandbox.train(&format!("--epochs 2 --steps {steps} --out {part}")).good();
        assert_ne!(
            sandbox.read(&format!("{part}/model.safetensors")),
            sandbox.read("whole/model.safetensors")
        );
        sandbox.train(&format!("--resume {part} --out {part}-on")).good();
        for run in [part.clone(), format!("{part}-on")] {
            if run == part {
                sandbox.train(&format!("--resume {part}")).good();
            }
            assert_eq!(
                sandbox.read(&format!("{run}/model.safetensors")),
                sandbox.read("whole/model.safetensors"),
                "{run}"
            );
        }
    }
    // More epochs than before may be asked for.
    sandbox.train("--epochs 1 --out short").good();
    sandbox.train("--resume short --epochs 2").good();
    assert_eq!(sandbox.read("short/model.safetensors"), sandbox.read("whole/model.safetensors"));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let sandbox = Sandbox::new();
    for threads in ["1", "2"] {
        let run = format!("--epochs 1 --out threads-{threads}");
        sandbox.train_with(&[("CUPOLA_NUM_THREADS", threads)], &run).good();
    }
    assert_eq!(
        sandbox.read("threads-1/model.safetensors"),
        sandbox.read("threads-2/model.safetensors")
    );
}

#[test]
fn the_seed_and_the_optimiser_change_the_weights() {
    let sandbox = Sandbox::new();
    sandbox.train("--steps 1 --out a").good();
    for (name, flags) in [("b", "--seed 1"), ("c", "--optimizer sgd"), ("d", "--lr 0.01")] {
        sandbox.train(&format!("--steps 1 --out {name} {flags}")).good();
        let file = format!("{name}/model.safetensors");
        assert_ne!(sandbox.read(&file), sandbox.read("a/model.safetensors"), "{flags}");
    }
}

#[test]
fn runs_without_a_folder_get_one_each() {
    let sandbox = Sandbox::new();
    sandbox.train("--steps 1").good();
    sandbox.train("--steps 1").good();
    assert_eq!(
        sandbox.read("runs/mnist/model.safetensors"),
        sandbox.read("runs/mnist-2/model.safetensors")
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_says_how_to_go_on() {
    let sandbox = Sandbox::new();
    sandbox.train("--epochs 4 --out whole").good();
    let mut command = sandbox.train_command("--epochs 4 --out cut");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (pid, patience) = (child.id().to_string(), Instant::now());
    while !sandbox.path("cut/metrics.jsonl").exists() {
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
    sandbox.train("--resume cut").good();
    assert_eq!(sandbox.read("cut/model.safetensors"), sandbox.read("whole/model.safetensors"));
}
