//! What is done while system calls fail, and what it writes.

use std::process::Command;

use super::super::Built;
use super::super::sandbox::{Sandbox, tensors};

/// A command, of the program or of Python.
pub struct Task {
    pub words: &'static str,
    /// Whether it is a script of Python.
    pub python: bool,
    /// The files that it writes.
    pub outputs: &'static [&'static str],
}

const REPORT: &[&str] = &["report.json"];

const fn program(words: &'static str, outputs: &'static [&'static str]) -> Task {
    Task { words, python: false, outputs }
}

const fn python(words: &'static str, outputs: &'static [&'static str]) -> Task {
    Task { words, python: true, outputs }
}

/// The network's own measurements take too long, and nothing is downloaded.
pub const TASKS: [Task; 15] = [
    program(
        "train --device cpu --data-dir data --dataset mnist --batch-size 8 --epochs 1 --out new \
         --json report.json",
        &[
            "new/state.safetensors",
            "new/model.safetensors",
            "new/metrics.jsonl",
            "new/curves.svg",
            "new/epoch_times.svg",
            "report.json",
        ],
    ),
    program(
        "train --device cpu --data-dir data --resume run --epochs 2",
        &[
            "run/state.safetensors",
            "run/model.safetensors",
            "run/metrics.jsonl",
            "run/curves.svg",
            "run/epoch_times.svg",
        ],
    ),
    program("classify run --device cpu --dataset mnist --data-dir data --json report.json", REPORT),
    program("classify run picture.png --device cpu --resize --json report.json", REPORT),
    program("selftest --device cpu --filter select --json report.json", REPORT),
    program("bench --device cpu --kernels --only softmax --scale 0.001 --json report.json", REPORT),
    program("devices --json report.json", REPORT),
    python("save array.npy", &["array.npy"]),
    python("save archive.npz", &["archive.npz"]),
    python("save packed.npz", &["packed.npz"]),
    python("save tensors.safetensors", &["tensors.safetensors"]),
    python("load given.npy", &[]),
    python("load given.npz", &[]),
    python("load given-packed.npz", &[]),
    python("load given.safetensors", &[]),
];

/// A grey picture of one pixel.
#[rustfmt::skip]
const PICTURE: [u8; 67] = [
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0,
    0, 0, 58, 126, 155, 85, 0, 0, 0, 10, 73, 68, 65, 84, 120, 156, 99, 104, 0, 0, 0, 130, 0, 129,
    119, 205, 114, 182, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
];

impl Task {
    pub fn command(&self, built: &Built, sandbox: &Sandbox) -> Command {
        // What was saved before the fault is gone on with.
        let is_saved = sandbox.path("new/state.safetensors").exists();
        let words = match self.words.contains("--out new") && is_saved {
            true => "train --device cpu --data-dir data --resume new --json report.json",
            false => self.words,
        };
        command(self.python, words, built, sandbox)
    }

    pub fn told(&self) -> String {
        let program = if self.python { "python fuzz/faults/files.py" } else { "cupola" };
        format!("{program} {}", self.words)
    }
}

/// The program, or Python's script, with these words behind it.
fn command(python: bool, words: &str, built: &Built, sandbox: &Sandbox) -> Command {
    let mut command = Command::new(if python { &built.python } else { &built.program });
    if python {
        command.arg(built.root.join("fuzz/faults/files.py"));
        command.env("PYTHONPATH", &built.site).env("PYTHONDONTWRITEBYTECODE", "1");
    }
    // Drivers of Vulkan say on the standard error that they miss it.
    command.env("XDG_RUNTIME_DIR", sandbox.path(""));
    command.args(words.split_whitespace()).current_dir(sandbox.path(""));
    command
}

/// What every task finds: data, a run, a picture, files to read, and old files to replace.
pub fn prepare(built: &Built) -> Result<Sandbox, String> {
    let base = Sandbox::with_data("base")?;
    let put = |name: &str, content: &[u8]| {
        std::fs::write(base.path(name), content).map_err(|cause| format!("{name}: {cause}"))
    };
    put("picture.png", &PICTURE)?;
    put("report.json", b"{\"old\": true}\n")?;
    for name in ["array.npy", "archive.npz", "packed.npz", "tensors.safetensors"] {
        put(name, b"old")?;
    }
    let run = |python: bool, words: &str| {
        let output = command(python, words, built, &base).output();
        let output = output.map_err(|cause| format!("{words}: {cause}"))?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{words}: {}: {}", output.status, said())),
        }
    };
    run(false, "train --device cpu --data-dir data --dataset mnist --epochs 1 --out run")?;
    for file in ["given.npy", "given.npz", "given-packed.npz", "given.safetensors"] {
        run(true, &format!("save {file}"))?;
    }
    Ok(base)
}

/// Whether `content` of an output is all of what a run without faults writes there: times differ.
pub fn is_whole(name: &str, content: &[u8], expected: &[u8]) -> bool {
    let lines = |content: &[u8]| content.split(|&byte| byte == b'\n').count();
    let is_json = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).is_ok();
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("json") => is_json(content),
        Some("jsonl") => {
            let mut each = content.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
            lines(content) == lines(expected) && each.all(is_json)
        }
        Some("svg") => {
            content.starts_with(b"<svg") && content.trim_ascii_end().ends_with(b"</svg>")
        }
        // An archive holds the time.
        Some("npz") => content.len() == expected.len(),
        _ if name.ends_with("state.safetensors") => {
            tensors(content).is_some() && tensors(content) == tensors(expected)
        }
        _ => content == expected,
    }
}
