//! `--profile`: what a command does, recorded.

use std::path::{Path, PathBuf};

use cupola::io::check_file;
use cupola::profiler::{self, What};

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
            check_file(path, "a profile").map_err(failed)?;
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
        let profile = profiler::stop().map_err(failed)?;
        // What was recorded is of use where the work failed, too, unless it did not come to compute anything, or the
        // file turned out to be one of the program's own.
        let is_step = |event: &profiler::Event| matches!(event.what, What::Step { .. });
        if let Err(failure) = &done
            && (failure.is_usage() || !profile.events().any(is_step))
        {
            return done;
        }
        done.and(profile.save(path).map_err(failed))
    }
}

fn failed(error: cupola::Error) -> Failure {
    Failure::new(format!("--profile: {error}"))
}
