//! `--profile`, `CUPOLA_PROFILE` and `CUPOLA_LOG`.

mod common;

use common::{Ran, Sandbox};

fn trace(sandbox: &Sandbox, name: &str) -> serde_json::Value {
    serde_json::from_slice(&sandbox.read(name)).unwrap()
}

fn has(trace: &serde_json::Value, category: &str) -> bool {
    trace["traceEvents"].as_array().unwrap().iter().any(|event| event["cat"] == category)
}

#[test]
fn a_training_is_profiled() {
    let sandbox = Sandbox::new();
    let trace_file = sandbox.path("trace.json").display().to_string();
    sandbox.train(&format!("--steps 2 --out run --profile {trace_file}")).good();
    let found = trace(&sandbox, "trace.json");
    for category in ["step", "planning", "evaluation"] {
        assert!(has(&found, category), "{category}");
    }
    let page = sandbox.path("page.html").display().to_string();
    sandbox.train(&format!("--steps 1 --out second --profile {page}")).good();
    let text = String::from_utf8(sandbox.read("page.html")).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.contains("matmul"));
    // The same weights as without.
    sandbox.train("--steps 2 --out plain").good();
    assert_eq!(sandbox.read("run/model.safetensors"), sandbox.read("plain/model.safetensors"));
}

#[test]
fn the_environment_asks_for_profiles_and_logs() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("trace.json").display().to_string();
    let environment = [("CUPOLA_PROFILE", &*file), ("CUPOLA_LOG", "ops")];
    let ran = sandbox.train_with(&environment, "--steps 1 --out run").good();
    assert!(has(&trace(&sandbox, "trace.json"), "step"));
    let line = ran.err.lines().find(|line| line.contains("matmul")).unwrap();
    // With what continues it in its kernel, where that is so.
    let is_first = line.starts_with("cupola: cpu matmul ");
    assert!(is_first && line.contains("(float32[") && line.contains(" ms network.rs:"), "{line}");
    let quiet = sandbox.train_with(&[("CUPOLA_LOG", "copies")], "--steps 1 --out quiet").good();
    assert!(!quiet.err.contains("matmul"), "{}", quiet.err);
    sandbox.train_with(&[("CUPOLA_LOG", "op")], "--steps 1").bad(1, &["CUPOLA_LOG", "\"op\""]);
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_work() {
    let sandbox = Sandbox::new();
    let missing = sandbox.path("missing/trace.json").display().to_string();
    sandbox
        .train(&format!("--steps 1 --out run --profile {missing}"))
        .bad(1, &["--profile", "missing"]);
    assert!(!sandbox.path("run").exists());
    let folder = sandbox.path("").display().to_string();
    sandbox.train(&format!("--steps 1 --out run --profile {folder}")).bad(1, &["is a folder"]);
    let model = sandbox.path("run/model.safetensors").display().to_string();
    sandbox.train("--steps 1 --out run").good();
    let own = sandbox.train(&format!("--resume run --profile {model}"));
    own.bad(2, &["--profile", "a file of the run itself"]);
}

#[cfg(unix)]
#[test]
fn a_file_that_is_read_only_or_cannot_be_is_told_before_the_work() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let file = sandbox.text("trace.json");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    for path in [file, "/dev/null/t.json".to_owned(), "x".repeat(300)] {
        sandbox
            .train(&format!("--steps 1 --out run --profile {path}"))
            .bad(1, &["--profile", &path]);
        sandbox
            .train_with(&[("CUPOLA_PROFILE", &*path)], "--steps 1 --out run")
            .bad(1, &["CUPOLA_PROFILE", &path]);
        assert!(!sandbox.path("run").exists());
    }
}

#[test]
fn the_profile_of_the_environment_spares_what_is_read_and_written() {
    let sandbox = Sandbox::new();
    sandbox.train("--steps 1 --out run").good();
    let run = |path: &str, arguments: &str| {
        let mut command = sandbox.command();
        command.args(arguments.split_whitespace()).env("CUPOLA_PROFILE", path);
        Ran::of(command)
    };
    let train = |path: &str, more: &str| sandbox.train_with(&[("CUPOLA_PROFILE", path)], more);
    // Files that are there.
    let state = sandbox.read("run/state.safetensors");
    let words = ["CUPOLA_PROFILE", "run/state.safetensors", "no profile"];
    train("run/state.safetensors", "--resume run").bad(1, &words);
    run("run/state.safetensors", "explain run --device cpu").bad(1, &words);
    assert!(sandbox.read("run/state.safetensors") == state);
    // Files that are yet to be written: what has the option knows them before the work.
    train("run/best.safetensors", "--resume run").bad(2, &["CUPOLA_PROFILE", "of the run itself"]);
    train("r.html", "--resume run --report r.html").bad(2, &["CUPOLA_PROFILE", "--report"]);
    run("d.json", "devices --json d.json").bad(1, &["CUPOLA_PROFILE", "d.json", "no profile"]);
    assert!(sandbox.read("d.json").starts_with(b"["));
    // A profile takes the place of another, and the option that of the variable.
    for _ in 0..2 {
        run("explained.json", "explain run --device cpu").good();
        run("page.html", "explain run --device cpu").good();
    }
    assert!(has(&trace(&sandbox, "explained.json"), "evaluation"));
    train("unused.json", "--resume run --steps 1 --profile used.json").good();
    assert!(has(&trace(&sandbox, "used.json"), "step") && !sandbox.path("unused.json").exists());
}

#[test]
fn a_precision_is_of_the_run() {
    let sandbox = Sandbox::new();
    let whole = sandbox.train("--epochs 1 --precision bf16 --out whole --json report.json").good();
    assert!(whole.out.contains("in bf16"), "{}", whole.out);
    assert_eq!(trace(&sandbox, "report.json")["precision"], "bf16");
    sandbox.train("--epochs 1 --precision bf16 --steps 2 --out part").good();
    sandbox.train("--resume part --precision f16").bad(2, &["--precision f16", "bf16"]);
    sandbox.train("--resume part --precision auto").good();
    assert_eq!(sandbox.read("part/model.safetensors"), sandbox.read("whole/model.safetensors"));
    sandbox.train("--epochs 1 --precision f16 --out half").good();
    assert_ne!(sandbox.read("half/model.safetensors"), sandbox.read("whole/model.safetensors"));
    sandbox.train("--precision f8").bad(2, &["--precision"]);
}
