//! Other frameworks: installed in an environment of their own, and run in processes of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use cupola::io::write_whole;
use serde::Deserialize;

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::{Output, spinner};

/// The scripts by the names of their files.
const SCRIPTS: [(&str, &str); 4] = [
    ("main.py", include_str!("peers/main.py")),
    ("peer_jax.py", include_str!("peers/peer_jax.py")),
    ("peer_mlx.py", include_str!("peers/peer_mlx.py")),
    ("peer_torch.py", include_str!("peers/peer_torch.py")),
];

/// A framework to compare with.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// PyTorch
    Torch,
    /// MLX
    Mlx,
    /// JAX
    Jax,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::Mlx => "mlx",
            Self::Jax => "jax",
        }
    }

    /// What pip is to install of it here.
    fn package(self, kind: Kind) -> &'static str {
        let is_mac = cfg!(target_os = "macos");
        match (self, kind) {
            (Self::Torch, _) => "torch",
            (Self::Mlx, _) if is_mac => "mlx",
            (Self::Mlx, Kind::Cpu) => "mlx[cpu]",
            (Self::Mlx, Kind::Gpu) => "mlx[cuda]",
            (Self::Jax, Kind::Gpu) if !is_mac => "jax[cuda13]",
            (Self::Jax, _) => "jax",
        }
    }
}

/// After how many times the limit of its training a peer is ended: twice that is what it may take to train and to be
/// measured, but for the step or batch that each part is at when its time is over.
const MOST: u32 = 4;

/// The kind of device that a peer runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Cpu,
    Gpu,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }
}

/// What a peer's script tells.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Absent { absent: String },
    Epoch { epoch: usize },
    Result(Figures),
}

/// What a side of the comparison came to.
#[derive(Clone, Debug, Deserialize, serde::Serialize)]
pub struct Figures {
    pub version: String,
    /// How long each epoch took with its validation.
    pub epoch_seconds: Vec<f64>,
    /// The part of the validation images that is right after each epoch.
    pub val_accuracy: Vec<f64>,
    pub test_accuracy: f64,
    /// 10,000 images in batches of 512.
    pub classify_10k_ms: f64,
    /// One image, until its class is known.
    pub classify_one_us: f64,
    /// The figures that are of less than they should be, since the side took too long, and of what they are.
    #[serde(default)]
    pub limited: BTreeMap<String, String>,
}

impl Figures {
    /// What stands behind a figure that is of less than it should be.
    pub fn mark(&self, figure: &str) -> &'static str {
        if self.limited.contains_key(figure) { "*" } else { "" }
    }
}

/// The environment that peers are installed in.
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The user's, for this kind of device, which is made where it is missing.
    pub fn open(kind: Kind) -> Outcome<Self> {
        let cache = cache_folder().ok_or_else(|| {
            Failure::new("report: there is no folder for the peers: HOME is not set")
        })?;
        let own = Self { folder: cache.join("cupola").join("peers").join(kind.name()) };
        if own.python().exists() {
            return Ok(own);
        }
        let system = if cfg!(windows) { "python" } else { "python3" };
        let busy = spinner(&format!("making {}", own.folder.display()));
        let made = Command::new(system).args(["-m", "venv"]).arg(&own.folder).output();
        busy.finish_and_clear();
        match made {
            Ok(made) if made.status.success() => Ok(own),
            Ok(made) => Err(Failure::new(format!(
                "report: {system} -m venv {}: {}",
                own.folder.display(),
                last_line(&[made.stderr, made.stdout].concat())
            ))),
            Err(cause) => Err(Failure::new(format!(
                "report: {system}: {cause}; the peers need Python 3.10 or later"
            ))),
        }
    }

    fn python(&self) -> PathBuf {
        match cfg!(windows) {
            true => self.folder.join("Scripts").join("python.exe"),
            false => self.folder.join("bin").join("python"),
        }
    }

    /// Installs a peer, unless it is there; or says why there is none for this platform.
    ///
    /// # Errors
    /// Where the registry cannot be reached, or the installation fails for another reason.
    pub fn install(&self, peer: Peer, kind: Kind, output: &Output) -> Outcome<Result<(), String>> {
        let package = peer.package(kind);
        let stamp = self.folder.join(format!("{peer}.installed"));
        if std::fs::read_to_string(&stamp).is_ok_and(|have| have == package) {
            return Ok(Ok(()));
        }
        output.line(format!("installing {package} into {}", self.folder.display()));
        let busy = spinner(&format!("installing {package}"));
        let ran = Command::new(self.python())
            .args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input"])
            .args(["--only-binary=:all:", "--retries", "1", "numpy", package])
            .output();
        busy.finish_and_clear();
        interrupted()?;
        let ran = ran.map_err(|cause| {
            Failure::new(format!("report: {}: {cause}", self.python().display()))
        })?;
        if ran.status.success() {
            write_whole(&stamp, package)?;
            return Ok(Ok(()));
        }
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        match Refusal::of(&said) {
            Refusal::Offline => Err(Failure::new(format!(
                "report: {package} cannot be installed: the package registry cannot be reached"
            ))),
            Refusal::NoWheel => Ok(Err(format!("there is no {package} for this platform"))),
            Refusal::Other => Err(Failure::new(format!(
                "report: {package} cannot be installed: {}",
                last_line(&ran.stderr)
            ))),
        }
    }

    /// Trains and measures a peer with a task, whose file is in `folder`, where the scripts go, too; or says
    /// why it cannot. Where it is not over long after the `limit` of its training, which it keeps to between steps, it
    /// is ended.
    pub fn run(
        &self,
        peer: Peer,
        kind: Kind,
        folder: &Path,
        epochs: usize,
        limit: Duration,
    ) -> Outcome<Result<Figures, String>> {
        for (name, text) in SCRIPTS {
            write_whole(folder.join(name), text)?;
        }
        let busy = spinner(&format!("{peer} on the {}", kind.name()));
        let found = self.told(peer, kind, folder, limit * MOST, |epoch| {
            busy.set_message(format!("{peer} on the {}: epoch {epoch}/{epochs}", kind.name()));
        });
        busy.finish_and_clear();
        interrupted()?;
        Ok(found)
    }

    fn told(
        &self,
        peer: Peer,
        kind: Kind,
        folder: &Path,
        most: Duration,
        mut each: impl FnMut(usize),
    ) -> Result<Figures, String> {
        let failed = |cause: std::io::Error| cause.to_string();
        let mut child = Command::new(self.python())
            .arg(folder.join("main.py"))
            .args([peer.name(), kind.name()])
            .arg(folder.join("task.json"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut errors = child.stderr.take();
        // Read beside the results, so that neither pipe fills up.
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            errors.iter_mut().for_each(|pipe| drop(pipe.read_to_end(&mut text)));
            text
        });
        let out = child.stdout.take();
        let watched = Arc::new(Mutex::new(child));
        let (over, is_over) = channel::<()>();
        let child = watched.clone();
        let watcher = std::thread::spawn(move || {
            let is_late = is_over.recv_timeout(most) == Err(RecvTimeoutError::Timeout);
            if is_late {
                // Where it has just ended by itself there is nothing to end.
                let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
            }
            is_late
        });
        let mut result = None;
        for line in out.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            match serde_json::from_str(&line.map_err(failed)?) {
                Ok(Told::Epoch { epoch }) => each(epoch),
                Ok(Told::Absent { absent }) => result = Some(Err(absent)),
                Ok(Told::Result(figures)) => result = Some(Ok(figures)),
                // What a framework says beside.
                Err(_) => {}
            }
        }
        drop(over);
        let is_late = watcher.join().unwrap_or_default();
        let status =
            watched.lock().unwrap_or_else(PoisonError::into_inner).wait().map_err(failed)?;
        let said = reader.join().unwrap_or_default();
        match result {
            Some(result) if status.success() => result,
            _ if is_late => Err(format!(
                "it was ended after {} s: a part of its work took longer than --limit allows",
                most.as_secs()
            )),
            _ => Err(format!("it failed: {}", last_line(&said))),
        }
    }
}

/// Why pip did not install.
#[derive(Debug, PartialEq)]
enum Refusal {
    Offline,
    NoWheel,
    Other,
}

impl Refusal {
    fn of(said: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
        // Offline pip says, too, that it found no distribution: that the host did not answer comes before.
        if has(&[
            "ConnectionError",
            "Connection",
            "ConnectTimeout",
            "Max retries",
            "Name or service",
            "name resolution",
        ]) {
            Self::Offline
        } else if has(&["No matching distribution", "not a supported wheel", "Requires-Python"]) {
            Self::NoWheel
        } else {
            Self::Other
        }
    }
}

fn interrupted() -> Outcome {
    match interrupt::flag().load(Ordering::Relaxed) {
        true => Err(Failure::interrupted("interrupted")),
        false => Ok(()),
    }
}

fn last_line(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("it said nothing").trim().to_owned()
}

/// The folder of this user for what can be made again.
fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    match std::env::consts::OS {
        "windows" => set("LOCALAPPDATA"),
        _ => set("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache"))),
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn what_pip_says_is_understood() {
        let offline = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)'\n\
                       ERROR: No matching distribution found for torch";
        assert_eq!(Refusal::of(offline), Refusal::Offline);
        assert_eq!(Refusal::of("ERROR: No matching distribution found for mlx"), Refusal::NoWheel);
        assert_eq!(Refusal::of("ERROR: No space left on device"), Refusal::Other);
    }
}
