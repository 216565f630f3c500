//! The folder of a run: found, checked, and never taken from another run.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cupola::train::{BEST_FILE, LOCK_FILE, METRICS_FILE, MODEL_FILE, RunLock, STATE_FILE};

use crate::args::TrainArgs;
use crate::failure::{Failure, Outcome};
use crate::figures;
use crate::output::{replaceable, writable_folder};

/// Where runs go that are given no folder.
const RUNS: &str = "runs";

/// The folder of a run. One that this made and that stays empty goes again.
pub struct RunFolder {
    path: PathBuf,
    made: bool,
    /// Dropped before the folder is removed: the lock is a file in it.
    lock: Option<RunLock>,
}

impl RunFolder {
    pub fn open(args: &TrainArgs, dataset: &str) -> Outcome<Self> {
        match (&args.out, &args.resume) {
            (None, None) => Self::free(dataset),
            (None, Some(resume)) => {
                writable_folder("--resume", resume)?;
                for path in files_of(resume) {
                    // Pipes and devices may make whoever reads or writes them wait.
                    if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
                        let path = path.display();
                        return Err(Failure::new(format!("--resume: {path}: is no file")));
                    }
                    replaceable("--resume", &path)?;
                }
                Self { path: resume.clone(), made: false, lock: None }.locked("--resume")
            }
            (Some(out), resume) => {
                let made = !out.exists();
                let folder = Self { path: out.clone(), made, lock: None };
                writable_folder("--out", out)?;
                let folder = folder.locked("--out")?;
                if resume.as_ref().is_some_and(|resume| is_same(resume, out)) {
                    return Ok(folder);
                }
                let there = |file: &&str| out.join(file).symlink_metadata().is_ok();
                let out = out.display();
                match files().find(there) {
                    None => Ok(folder),
                    Some(MODEL_FILE | STATE_FILE) => Err(Failure::new(format!(
                        "--out: {out} holds a run already; go on with it by --resume {out}, or \
                         name another folder"
                    ))),
                    Some(file) => Err(Failure::new(format!(
                        "--out: {out} holds a file {file}, which the run would replace; name \
                         another folder"
                    ))),
                }
            }
        }
    }

    /// The first of `runs/NAME`, `runs/NAME-2`, … that is not there yet.
    fn free(dataset: &str) -> Outcome<Self> {
        let runs = Path::new(RUNS);
        writable_folder("--out", runs)?;
        for number in 1_u64.. {
            let path = match number {
                1 => runs.join(dataset),
                number => runs.join(format!("{dataset}-{number}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => return Self { path, made: true, lock: None }.locked("--out"),
                Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
                Err(cause) => {
                    return Err(Failure::new(format!(
                        "--out: {}: cannot be made: {cause}",
                        path.display()
                    )));
                }
            }
        }
        Err(Failure::new(format!("--out: every name in {RUNS} is taken")))
    }

    /// The folder, for this process alone.
    fn locked(mut self, argument: &str) -> Outcome<Self> {
        let lock = RunLock::take(&self.path);
        self.lock = Some(lock.map_err(|error| Failure::new(format!("{argument}: {error}")))?);
        Ok(self)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The paths of the files that the run writes.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        files_of(&self.path).into_iter().chain([self.path.join(LOCK_FILE), self.path.clone()])
    }
}

/// What a run in `folder` writes, and what it went on from.
pub fn files_of(folder: &Path) -> Vec<PathBuf> {
    files().map(|file| folder.join(file)).collect()
}

/// The names of the files that a run writes.
fn files() -> impl Iterator<Item = &'static str> {
    [STATE_FILE, MODEL_FILE, BEST_FILE, METRICS_FILE].into_iter().chain(figures::OF_A_RUN)
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        self.lock = None;
        if self.made {
            // Fails where the run left something, which is then kept.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
