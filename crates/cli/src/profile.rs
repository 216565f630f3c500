//! `--profile`: what a command does, recorded.

use std::path::{Path, PathBuf};

use cupola::profiler;

use crate::failure::{Failure, Outcome};
use crate::output::spared;

/// Where a command's profile goes, if it was asked for one.
pub struct Profiling<'a> {
    path: Option<&'a Path>,
}

impl<'a> Profiling<'a> {
    /// Looks whether the file can be written, before any work is done.
    pub fn new(path: Option<&'a Path>) -> Outcome<Self> {
        if let Some(path) = path {
            profiler::check_file(path).map_err(failed)?;
        }
        Ok(Self { path })
    }

    /// Sees to it that the profile does not take the place of a file that the program itself reads or writes,
    /// called `what`.
    pub fn spares<I>(&self, what: &str, files: impl FnOnce() -> I) -> Outcome
    where
        I: IntoIterator<Item = PathBuf>,
    {
        self.path.map_or(Ok(()), |path| spared("--profile", path, what, files()))
    }

    /// Does the work, and records it where that was asked for.
    pub fn record(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        let Some(path) = self.path else { return work() };
        profiler::start(profiler::Options::default()).map_err(failed)?;
        let done = work();
        // What was recorded is of use where the work failed, too.
        let written = profiler::stop().and_then(|profile| profile.save(path)).map_err(failed);
        done.and(written)
    }
}

fn failed(error: cupola::Error) -> Failure {
    Failure::new(format!("--profile: {error}"))
}
