//! `cupola report --against`, with a Python that only says what the real one would.
#![cfg(unix)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::{Ran, Sandbox};

/// Makes environments that hold itself, installs torch and jax but not mlx, and has the scripts say what a side came to.
const PYTHON: &str = r#"#!/bin/sh
case "$*" in
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
*"pip install"*)
    echo "$*" >> "$XDG_CACHE_HOME/pip.log"
    if [ -n "$OFFLINE" ]; then
        echo "WARNING: Retrying after connection broken by 'NewConnectionError'" >&2
        echo "ERROR: No matching distribution found for torch" >&2
        exit 1
    fi
    case "$*" in
    *mlx*) echo "ERROR: No matching distribution found for mlx" >&2; exit 1 ;;
    esac ;;
*main.py*)
    cp "$4" "$(dirname "$4")"/*.npy "$XDG_CACHE_HOME"
    [ -n "$SLOW" ] && [ "$2" = jax ] && exec sleep 600
    [ "$2" = jax ] && { echo "Traceback" >&2; echo "RuntimeError: no <memory>" >&2; exit 1; }
    limited=
    [ -n "$SLOW" ] && limited=', "limited": {"epoch_seconds": "reckoned from 3 of 5 steps"}'
    echo "something else"
    echo '{"epoch": 1, "loss": 2.0, "accuracy": 0.5, "seconds": 1.5}'
    echo '{"version": "9.9", "epoch_seconds": [1.5, 1.25], "val_accuracy": [0.5, 0.75], "test_accuracy": 0.625,
           "classify_10k_ms": 12.5, "classify_one_us": 345.0'"$limited"'}' | tr -d '\n' ;;
esac
"#;

fn report(sandbox: &Sandbox, environment: &[(&str, &str)], arguments: &str) -> Ran {
    let (bin, cache) = (sandbox.path("bin"), sandbox.path("cache"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&cache).unwrap();
    let python = bin.join("python3");
    fs::write(&python, PYTHON).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = sandbox.command();
    command.arg("report").args(arguments.split_whitespace());
    command.env("PATH", path).env("XDG_CACHE_HOME", cache).envs(environment.iter().copied());
    Ran::of(command)
}

#[test]
fn a_set_and_a_run_are_compared() {
    let sandbox = Sandbox::new();
    let all = "--against torch,mlx,jax --device cpu --json r.json";
    let ran =
        report(&sandbox, &[], &format!("mnist --data-dir data --epochs 2 --batch-size 8 {all}"))
            .good();
    assert!(ran.out.contains("mlx cpu: not there: there is no mlx"), "{}", ran.out);
    assert!(
        ran.out.contains("jax cpu: not there: it failed: RuntimeError: no <memory>"),
        "{}",
        ran.out
    );
    let found: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).unwrap();
    let names: Vec<&str> = found["sides"]
        .as_array()
        .unwrap()
        .iter()
        .map(|side| side["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["cupola cpu", "torch cpu"]);
    assert_eq!(found["absent"].as_array().unwrap().len(), 2);
    assert_eq!(found["sides"][0]["epoch_seconds"].as_array().unwrap().len(), 2);
    assert!(found["sides"][0]["classify_one_us"].as_f64().unwrap() > 0.0);
    assert_eq!(found["sides"][1]["test_accuracy"], 0.625);
    let page = String::from_utf8(sandbox.read("report.html")).unwrap();
    for part in
        ["<!DOCTYPE html>", "Cupola beside torch, mlx, jax on mnist", "9.9", "no &lt;memory&gt;"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(page.matches("<svg").count() == 3 && !page.contains("NaN"));
    // The same images, by the split of a training.
    let task: serde_json::Value = serde_json::from_slice(&sandbox.read("cache/task.json")).unwrap();
    assert_eq!((task["epochs"].as_u64(), task["side"].as_u64()), (Some(2), Some(28)));
    let images = cupola::io::npy::read(&sandbox.read("cache/train_images.npy"), "train").unwrap();
    assert_eq!(images.shape()[..], [36, 28, 28, 1]);

    // What is installed is not installed again.
    report(&sandbox, &[], "mnist --data-dir data --epochs 1 --against torch --device cpu").good();
    let installed = String::from_utf8(sandbox.read("cache/pip.log")).unwrap();
    assert_eq!(installed.matches(" torch").count(), 1, "{installed}");

    sandbox.train("--epochs 2 --out run").good();
    report(&sandbox, &[], &format!("run --data-dir data {all}")).good();
    let found: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).unwrap();
    let lines = String::from_utf8(sandbox.read("run/metrics.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(found["sides"][0]["epoch_seconds"][0], first["seconds"]);
    assert_eq!(found["settings"]["batch_size"], 8);
}

#[test]
fn a_side_that_takes_too_long_is_marked_or_ended() {
    let sandbox = Sandbox::new();
    let all = "mnist --data-dir data --epochs 1 --batch-size 8 --against torch,jax --device cpu --limit 1";
    let ran = report(&sandbox, &[("SLOW", "1")], all).good();
    assert!(ran.out.contains("1.50*"), "{}", ran.out);
    assert!(
        ran.out.contains("* torch cpu, epoch seconds: reckoned from 3 of 5 steps"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("jax cpu: not there: it was ended after 4 s"), "{}", ran.out);
    let page = String::from_utf8(sandbox.read("report.html")).unwrap();
    assert!(page.contains("reckoned from 3 of 5 steps") && page.contains("torch cpu*"), "{page}");
}

#[test]
fn what_cannot_be_compared_is_named() {
    let sandbox = Sandbox::new();
    let offline = report(&sandbox, &[("OFFLINE", "1")], "digits --against torch,mlx --device cpu");
    assert_eq!(offline.status, 1);
    let last = offline.err.lines().last().unwrap();
    assert!(
        last.contains("torch cannot be installed") && last.contains("cannot be reached"),
        "{last}"
    );
    let none = |arguments: &str| report(&sandbox, &[], arguments);
    none("nothing --against torch --device cpu").bad(2, &["nothing", "mnist"]);
    none("digits --device cpu").bad(2, &["--against"]);
    none("digits --against tensorflow").bad(2, &["tensorflow", "torch"]);
    none("digits --against torch --out nowhere/r.html --device cpu").bad(1, &["--out", "nowhere"]);
    sandbox.train("--steps 1 --out run").good();
    none("run --data-dir data --against torch --device cpu").bad(2, &["no epoch"]);
    sandbox.train("--epochs 1 --precision bf16 --out half").good();
    none("half --data-dir data --against torch --device cpu").bad(2, &["bf16"]);
    none("half --data-dir data --against torch --epochs 3 --seed 1").bad(2, &["--epochs, --seed"]);
    none("data --data-dir data --against torch").bad(2, &["--data-dir", "data: "]);
}
