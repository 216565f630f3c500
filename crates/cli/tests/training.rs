//! `cupola train`: what a run leaves behind, and that resuming changes nothing.

mod common;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Ran, SIDE, Sandbox, idx};

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

/// What an event file has under a tag.
fn scalars(events: &[u8], tag: &str) -> Vec<f64> {
    let of = |part: &[u8]| {
        let value = part.strip_prefix(tag.as_bytes())?.strip_prefix(&[2 << 3 | 5])?;
        Some(f64::from(f32::from_le_bytes(value.try_into().ok()?)))
    };
    events.windows(tag.len() + 5).filter_map(of).collect()
}

#[test]
fn points_are_of_a_step_and_lines_of_an_epoch() {
    let sandbox = Sandbox::new();
    let ran = sandbox.train("--epochs 1 --out run --log-every 1 --tensorboard board").good();
    let file = fs::read_dir(sandbox.path("board")).unwrap().next().unwrap().unwrap().path();
    let events = fs::read(file).unwrap();
    let [losses, accuracies] = ["train/loss", "train/accuracy"].map(|tag| scalars(&events, tag));
    assert_eq!((losses.len(), accuracies.len()), (5, 5));
    let metrics: serde_json::Value =
        serde_json::from_slice(&sandbox.read("run/metrics.jsonl")).unwrap();
    // The last batch has what is left of the 36 images.
    let mean = |of: &[f64]| {
        of.iter().zip([8, 8, 8, 8, 4]).map(|(v, n)| v * f64::from(n)).sum::<f64>() / 36.0
    };
    for (of, name) in [(&losses, "train_loss"), (&accuracies, "train_accuracy")] {
        let whole = metrics[name].as_f64().unwrap();
        assert!((mean(of) - whole).abs() < 1e-6, "{name}: {of:?} are {whole} together");
        assert_eq!(scalars(&events, &format!("epoch/{name}")), [f64::from(whole as f32)]);
    }
    for (index, (loss, accuracy)) in losses.iter().zip(&accuracies).enumerate() {
        let line =
            format!("step {}: loss {loss:.4}, accuracy {:.2} %", index + 1, 100.0 * accuracy);
        assert!(ran.out.contains(&line), "no '{line}' in: {}", ran.out);
    }
}

#[test]
fn what_is_told_of_a_run_may_go_into_its_folder() {
    let sandbox = Sandbox::new();
    sandbox
        .train(
            "--steps 1 --out run --profile run/trace.json --json run/out.json --report run/r.html",
        )
        .good();
    for (file, start) in [("trace.json", "{"), ("out.json", "{"), ("r.html", "<!DOCTYPE html>")] {
        assert!(sandbox.read(&format!("run/{file}")).starts_with(start.as_bytes()), "{file}");
    }
    let environment = [("CUPOLA_PROFILE", "other/trace.json")];
    sandbox.train_with(&environment, "--steps 1 --out other").good();
    assert!(sandbox.path("other/trace.json").exists());
    for option in ["--profile", "--json", "--report"] {
        for file in ["model.safetensors", "curves.svg", ".cupola.lock"] {
            sandbox
                .train(&format!("--steps 1 --out new {option} new/{file}"))
                .bad(2, &[option, file, "a file of the run itself"]);
        }
        let deep = format!("--steps 1 --out new {option} new/deep/file");
        sandbox.train(&deep).bad(1, &[option, "the folder new/deep is not there"]);
        assert!(!sandbox.path("new").exists(), "nothing is left of a run that did not begin");
    }
}

#[test]
fn a_run_that_does_not_get_better_says_after_how_long() {
    let sandbox = Sandbox::new();
    // So small a step changes no weight.
    for (patience, words) in [(1, "for 1 epoch\n"), (2, "for 2 epochs\n")] {
        let ran = sandbox
            .train(&format!("--epochs 9 --lr 1e-30 --patience {patience} --out run-{patience}"))
            .good();
        let said = format!("epoch {}: the validation loss has not come down {words}", patience + 1);
        assert!(ran.out.contains(&said), "{}", ran.out);
    }
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

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_page_and_json_of_what_there_is() {
    use std::io::{BufRead, BufReader, Read};
    let sandbox = Sandbox::new();
    // An epoch that does not end before the signal comes: 450 steps.
    let labels: Vec<u8> = (0..4000).map(|index| (index % 10) as u8).collect();
    let pixels = vec![0; 4000 * SIDE * SIDE];
    fs::write(sandbox.file("train", "images", 3), idx(&[4000, SIDE, SIDE], &pixels)).unwrap();
    fs::write(sandbox.file("train", "labels", 1), idx(&[4000], &labels)).unwrap();
    let options =
        "--epochs 4 --out cut --log-every 1 --report r.html --json r.json --profile t.json";
    let mut command = sandbox.train_command(options);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut out = String::new();
    while !out.contains("step 3: ") {
        assert!(said.read_line(&mut out).unwrap() > 0, "no step was made: {out}");
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    said.read_to_string(&mut out).unwrap();
    let ended = child.wait_with_output().unwrap();
    let ran =
        Ran { out, ..Ran::from(ended) }.bad(130, &["interrupted after step ", "--resume cut"]);
    let steps: u64 =
        ran.err.split(' ').find_map(|word| word.strip_suffix(',')?.parse().ok()).unwrap();
    assert!((3..450).contains(&steps), "{}", ran.err);

    let json: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).unwrap();
    assert_eq!(
        (json["epochs"].as_array().unwrap().len(), &json["partial"]["epoch"]),
        (0, &1.into())
    );
    let metrics: serde_json::Value =
        serde_json::from_slice(&sandbox.read("cut/metrics.jsonl")).unwrap();
    for of in [&json["partial"], &metrics] {
        assert_eq!(of["steps"], steps);
    }
    assert!(json["test_accuracy"].is_f64(), "{json}");
    let page = String::from_utf8(sandbox.read("r.html")).unwrap();
    assert!(page.contains(&format!("<td>1, {steps} steps</td>")) && page.contains("test accuracy"));
    assert!(sandbox.read("t.json").starts_with(b"{"));
    sandbox.train("--resume cut --steps 1").good();
}
