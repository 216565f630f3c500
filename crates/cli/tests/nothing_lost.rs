//! What was there stays there: folders of runs, files of others, and what is only written to.

mod common;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Sandbox;

/// Ends with the test, also where it fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_training_a_folder() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.train_command("--epochs 100000 --out run");
    let first = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_for("a checkpoint", || sandbox.path("run/state.safetensors").exists());
    let owner = format!("process {} is training here", first.0.id());
    sandbox.train("--out run").bad(1, &["--out", "run", &owner]);
    sandbox.train("--resume run --epochs 100000").bad(1, &["--resume", "run", &owner]);
    // Killed, it leaves its lock, which nobody holds, and perhaps a file in the making.
    drop(first);
    fs::write(sandbox.path("run/.cupola-Left1.tmp"), "half").unwrap();
    sandbox.train("--resume run --epochs 100000 --steps 1").good();
    let names = fs::read_dir(sandbox.path("run")).unwrap().flatten().map(|entry| entry.file_name());
    let hidden: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn files_of_others_are_not_replaced() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("mine")).unwrap();
    fs::write(sandbox.path("mine/curves.svg"), "a drawing").unwrap();
    sandbox.train("--epochs 1 --out mine").bad(1, &["--out", "mine", "curves.svg"]);
    assert_eq!(sandbox.read("mine/curves.svg"), b"a drawing");
    // Other files are in nobody's way.
    fs::rename(sandbox.path("mine/curves.svg"), sandbox.path("mine/other.svg")).unwrap();
    sandbox.train("--epochs 1 --out mine").good();
    assert_eq!(sandbox.read("mine/other.svg"), b"a drawing");
}

#[test]
fn json_spares_what_the_run_reads_and_writes() {
    let sandbox = Sandbox::new();
    let labels = sandbox.file("train", "labels", 1);
    let before = fs::read(&labels).unwrap();
    let json = |path: &str| sandbox.train(&format!("--epochs 1 --out run --json {path}"));
    json("run/../run/model.safetensors").bad(2, &["--json", "a file of the run itself"]);
    json(&labels.display().to_string()).bad(2, &["--json", "a file of the data"]);
    assert_eq!(fs::read(&labels).unwrap(), before);
    json("run/.cupola.lock").bad(2, &["--json", "a file of the run itself"]);
    json("run/report.json").good();
    sandbox
        .run("classify run --dataset mnist --data-dir data --json run/model.safetensors")
        .bad(2, &["--json", "the model"]);
    // Nor does what only reads replace what a run could not go on without.
    let state = sandbox.read("run/state.safetensors");
    let others = [
        (
            "classify run --dataset mnist --data-dir data --json run/metrics.jsonl",
            "a file of the run",
        ),
        ("explain run --json run/state.safetensors", "a file beside the model"),
        ("explain run --svg run/state.safetensors", "a file beside the model"),
        ("explain run --svg plan.svg --json plan.svg", "what --svg goes to"),
        ("bench --dataset mnist --data-dir data --steps 1 --json LABELS", "a file of the data"),
        ("bench --dataset mnist --data-dir data --steps 1 --outputs LABELS", "a file of the data"),
        ("bench --steps 1 --out charts --outputs charts/epoch.svg", "a chart in --out"),
        ("bench --steps 1 --out charts --json charts/epoch.svg", "a chart in --out"),
    ];
    for (command, what) in others {
        let command = command.replace("LABELS", &labels.display().to_string());
        sandbox.run(&command).bad(2, &[what]);
    }
    // A run that another goes on from is read by it.
    for option in ["--json", "--report", "--profile"] {
        let more = format!("--resume run --out other --epochs 2 {option} run/state.safetensors");
        sandbox.train(&more).bad(2, &[option, "a file of the run itself"]);
    }
    assert_eq!(sandbox.read("run/state.safetensors"), state);
    assert_eq!(fs::read(&labels).unwrap(), before);
    // Where other libraries keep their data.
    let deep = sandbox.path("data/MNIST/raw");
    fs::create_dir_all(&deep).unwrap();
    for entry in fs::read_dir(sandbox.data()).unwrap().flatten().filter(|e| e.path().is_file()) {
        fs::rename(entry.path(), deep.join(entry.file_name())).unwrap();
    }
    let labels = deep.join(labels.file_name().unwrap());
    let more = format!("--epochs 1 --out deep --json {}", labels.display());
    sandbox.train(&more).bad(2, &["--json", "a file of the data"]);
    assert_eq!(fs::read(&labels).unwrap(), before);
}

/// A pipe in the place of a file would make whoever opens it wait.
#[cfg(unix)]
#[test]
fn pipes_in_the_place_of_files_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.train("--epochs 1 --out run").good();
    let replaced = |file: &str| {
        fs::rename(sandbox.path(&format!("run/{file}")), sandbox.path("kept")).unwrap();
        let made = Command::new("mkfifo").arg(sandbox.path(&format!("run/{file}"))).status();
        assert!(made.unwrap().success());
    };
    for file in ["metrics.jsonl", "state.safetensors", "model.safetensors"] {
        replaced(file);
        sandbox.train("--resume run --epochs 2").bad(1, &[file, "is no file"]);
        fs::rename(sandbox.path("kept"), sandbox.path(&format!("run/{file}"))).unwrap();
    }
    replaced("model.safetensors");
    sandbox.run("explain run").bad(1, &["model.safetensors", "is no file"]);
    sandbox.run("classify run --dataset mnist --data-dir data").bad(1, &["is no file"]);
}

#[cfg(unix)]
#[test]
fn json_goes_through_links_and_devices() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let sandbox = Sandbox::new();
    sandbox.run("devices --json /dev/null").good();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    sandbox.run("devices --json /dev/full").bad(1, &["/dev/full"]);
    fs::write(sandbox.path("report"), "old").unwrap();
    fs::set_permissions(sandbox.path("report"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("report", sandbox.path("link")).unwrap();
    sandbox.run("devices --json link").good();
    assert!(fs::symlink_metadata(sandbox.path("link")).unwrap().is_symlink());
    assert!(sandbox.read("report").starts_with(b"["));
    let mode = fs::metadata(sandbox.path("report")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Standard output is the pipe that it is here: JSON is all that goes there.
    assert!(sandbox.run("devices --json /dev/stdout").good().out.starts_with('['));
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_written_to_a_pipe_goes_through_once() {
    let sandbox = Sandbox::new();
    for (option, start) in [("--report", "<!DOCTYPE"), ("--json", "{"), ("--profile", "{")] {
        let pipe = sandbox.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || fs::read_to_string(pipe).unwrap())
        };
        let mut command = sandbox.train_command(&format!("--epochs 1 --out run {option} pipe"));
        let ran = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        wait_for("the text", || reader.is_finished());
        assert!(reader.join().unwrap().starts_with(start), "{option}");
        drop(ran);
        fs::remove_file(&pipe).unwrap();
        fs::remove_dir_all(sandbox.path("run")).unwrap();
    }
}

/// Where it would wait for whoever reads a pipe, a signal ends it.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_that_nobody_reads_is_not_waited_at_for_ever() {
    let sandbox = Sandbox::new();
    sandbox.train("--epochs 1 --out run").good();
    assert!(Command::new("mkfifo").arg(sandbox.path("pipe")).status().unwrap().success());
    let mut command = sandbox.command();
    command.args("classify run --dataset mnist --data-dir data --json pipe".split(' '));
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // It has said all when it begins to wait.
    let mut said = child.stdout.take().unwrap();
    std::io::Read::read(&mut said, &mut [0; 1]).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    wait_for("the end", || child.try_wait().unwrap().is_some());
    assert!(!child.wait().unwrap().success());
}

#[test]
fn what_is_to_be_written_is_not_written_over() {
    let sandbox = Sandbox::new();
    for (options, what) in [
        ("--out run --json run", "a file of the run itself"),
        ("--out run --report run", "a file of the run itself"),
        ("--out run --profile run", "a file of the run itself"),
        ("--out run --tensorboard run/model.safetensors", "a file of the run itself"),
        ("--out run --tensorboard board --json board", "what --json goes to"),
        ("--out run --tensorboard board --report board", "what --report goes to"),
        ("--out run --tensorboard board --profile board", "what --tensorboard goes to"),
    ] {
        sandbox.train(&format!("--epochs 1 {options}")).bad(2, &[what]);
        assert!(!sandbox.path("run/model.safetensors").exists(), "{options}");
    }
    sandbox.run("bench --steps 1 --out charts --json charts").bad(2, &["what --out goes to"]);
    fs::create_dir_all(sandbox.path("charts")).unwrap();
    fs::write(sandbox.path("charts/epoch.svg"), "mine").unwrap();
    sandbox.run("bench --steps 1 --out charts").bad(1, &["epoch.svg", "no chart of this program"]);
    assert_eq!(sandbox.read("charts/epoch.svg"), b"mine");
}

#[test]
fn a_resumed_run_notices_changed_labels() {
    let sandbox = Sandbox::new();
    sandbox.train("--epochs 1 --out run").good();
    for (split, words) in [("train", "state.safetensors"), ("t10k", "test images")] {
        let labels = sandbox.file(split, "labels", 1);
        let whole = fs::read(&labels).unwrap();
        let mut bytes = whole.clone();
        let last = bytes.len() - 1;
        bytes[last] = (bytes[last] + 1) % 10;
        fs::write(&labels, &bytes).unwrap();
        let words = ["--resume", words, "have changed, or their labels"];
        sandbox.train("--resume run --epochs 2").bad(1, &words);
        fs::write(&labels, &whole).unwrap();
    }
    sandbox.train("--resume run --epochs 2").good();
}

#[cfg(target_os = "linux")]
#[test]
fn what_could_not_be_said_is_an_error() {
    let sandbox = Sandbox::new();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for arguments in ["devices", "selftest --device cpu --filter select", "--help", "--version"] {
        let mut command = sandbox.command();
        command.args(arguments.split_whitespace()).stdout(full()).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {said}");
        assert!(said.contains("standard output"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn names_of_files_do_not_reach_the_terminal_raw() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command();
    command.args(["classify", "run\u{1b}[2Jgone\u{7}", "x.png"]);
    let output = command.output().unwrap();
    assert!(!output.stderr.contains(&0x1b) && !output.stderr.contains(&7));
    assert!(String::from_utf8_lossy(&output.stderr).contains("\\u{1b}[2Jgone"));
}

#[test]
fn options_that_would_count_for_nothing_are_errors() {
    let sandbox = Sandbox::new();
    sandbox.run("bench --only softmax --dataset digits").bad(2, &["--only"]);
    sandbox.run("bench --scale 0.5 --steps 3").bad(2, &["--scale"]);
    sandbox.run("bench --only softmax").bad(2, &["--kernels"]);
}
