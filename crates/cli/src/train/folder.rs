//! The folder of a run: found, checked, and never taken from another run.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cupola::train::{MODEL_FILE, STATE_FILE};

use crate::args::TrainArgs;
use crate::failure::{Failure, Outcome};
use crate::output::writable_folder;

/// Where runs go that are given no folder.
const RUNS: &str = "runs";

/// The folder of a run. One that this made and that stays empty goes again.
pub struct RunFolder {
    path: PathBuf,
    made: bool,
}

impl RunFolder {
    pub fn open(args: &TrainArgs, dataset: &str) -> Outcome<Self> {
        match (&args.out, &args.resume) {
            (None, None) => Self::free(dataset),
            (None, Some(resume)) => {
                writable_folder("--resume", resume)?;
                Ok(Self { path: resume.clone(), made: false })
            }
            (Some(out), resume) => {
                let made = !out.exists();
                let folder = Self { path: out.clone(), made };
                writable_folder("--out", out)?;
                let same = resume.as_ref().is_some_and(|resume| is_same(resume, out));
                if holds_run(out) && !same {
                    return Err(Failure::new(format!(
                        "--out: {} holds a run already; go on with it by --resume {}, or name \
                         another folder",
                        out.display(),
                        out.display()
                    )));
                }
                Ok(folder)
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
                Ok(()) => return Ok(Self { path, made: true }),
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

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if self.made {
            // Fails where the run left something, which is then kept.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn holds_run(folder: &Path) -> bool {
    [MODEL_FILE, STATE_FILE].iter().any(|file| folder.join(file).exists())
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
