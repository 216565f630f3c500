//! Runs the program on small data sets.

// Every test file uses its part of this.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Height and width of the images.
pub const SIDE: usize = 28;
/// How many images there are to train on: 36 and 4 to validate with.
pub const IMAGES: usize = 40;
/// How many there are to test with.
pub const TESTS: usize = 12;

/// A folder with a small set in the format of MNIST, and room for runs.
pub struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let sandbox = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(sandbox.data()).unwrap();
        sandbox.write_set("train", IMAGES, 1);
        sandbox.write_set("t10k", TESTS, 2);
        sandbox
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    fn write_set(&self, stem: &str, count: usize, seed: u64) {
        let (pixels, labels) = drawn(count, seed);
        fs::write(self.file(stem, "images", 3), idx(&[count, SIDE, SIDE], &pixels)).unwrap();
        fs::write(self.file(stem, "labels", 1), idx(&[count], &labels)).unwrap();
    }

    /// The path of a file of the set.
    pub fn file(&self, stem: &str, what: &str, axes: u8) -> PathBuf {
        self.data().join(format!("{stem}-{what}-idx{axes}-ubyte"))
    }

    /// `cupola train` on the small set in batches of 8: 5 steps an epoch; `more` as in a shell.
    pub fn train(&self, more: &str) -> Ran {
        self.train_with(&[], more)
    }

    pub fn train_with(&self, environment: &[(&str, &str)], more: &str) -> Ran {
        let mut command = self.train_command(more);
        command.envs(environment.iter().copied());
        Ran::of(command)
    }

    pub fn train_command(&self, more: &str) -> Command {
        let data = self.data().display().to_string();
        let mut command = self.command();
        command.args(["train", "--data-dir", &data]);
        if !more.contains("--resume") {
            command.args(["--dataset", "mnist", "--batch-size", "8"]);
        }
        command.args(more.split_whitespace());
        command
    }

    /// The program, in the folder: names of runs are relative to it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cupola"));
        command.current_dir(self.folder.path());
        command
    }

    pub fn run(&self, arguments: &str) -> Ran {
        let mut command = self.command();
        command.args(arguments.split_whitespace());
        Ran::of(command)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }
}

/// What a run of the program came to.
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(mut command: Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// Expects success.
    #[track_caller]
    pub fn good(self) -> Self {
        assert_eq!(self.status, 0, "{}\n{}", self.out, self.err);
        self
    }

    /// Expects one line of error that contains each of `words`, and that status.
    #[track_caller]
    pub fn bad(self, status: i32, words: &[&str]) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.out, self.err);
        let lines: Vec<&str> = self.err.lines().collect();
        assert!(lines.len() == 1 && lines[0].starts_with("error: "), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "no '{word}' in: {}", self.err);
        }
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The bytes of an IDX file.
pub fn idx(shape: &[usize], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, shape.len() as u8];
    for &length in shape {
        bytes.extend((length as u32).to_be_bytes());
    }
    bytes.extend(values);
    bytes
}

/// Images with a bright square where their label says, in noise.
fn drawn(count: usize, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let mut state = seed;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let labels: Vec<u8> = (0..count).map(|index| (index % 10) as u8).collect();
    let mut pixels = Vec::with_capacity(count * SIDE * SIDE);
    for &label in &labels {
        let (top, left) = (5 * (usize::from(label) / 5) + 4, 5 * (usize::from(label) % 5) + 1);
        for row in 0..SIDE {
            for column in 0..SIDE {
                let inside = (top..top + 8).contains(&row) && (left..left + 5).contains(&column);
                pixels.push(if inside { 255 } else { (random() % 40) as u8 });
            }
        }
    }
    (pixels, labels)
}

/// Cuts a file after `bytes` bytes.
pub fn cut(path: &Path, bytes: usize) {
    let content = fs::read(path).unwrap();
    fs::write(path, &content[..bytes]).unwrap();
}
