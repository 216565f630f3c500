//! `--profile` and `CUPOLA_PROFILE`: what a command does, recorded.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use cupola::io::check_file;
use cupola::profiler::{self, What};

use crate::failure::{Failure, Outcome};
use crate::output::spared;

const OPTION: &str = "--profile";
const VARIABLE: &str = "CUPOLA_PROFILE";

/// Where a command's profile goes, if it was asked for one.
pub struct Profiling<'a> {
    path: Option<Cow<'a, Path>>,
    /// What names it.
    argument: &'static str,
}

impl<'a> Profiling<'a> {
    /// A profile that goes to the file `option`, or without it to the one that `CUPOLA_PROFILE` names. Looks whether
    /// that can be written, before any work is done.
    pub fn new(option: Option<&'a Path>) -> Outcome<Self> {
        let Some(path) = option else {
            let path = profiler::file_from_env()?.map(Cow::Owned);
            return Ok(Self { path, argument: VARIABLE });
        };
        let profiling = Self { path: Some(Cow::Borrowed(path)), argument: OPTION };
        check_file(path, "a profile").map_err(|error| profiling.failed(error))?;
        Ok(profiling)
    }

    /// Sees to it that the profile does not take the place of a file that the program itself reads or writes,
    /// called `what`.
    pub fn spares<I>(&self, what: &str, files: impl FnOnce() -> I) -> Outcome
    where
        I: IntoIterator<Item = PathBuf>,
    {
        self.path.as_ref().map_or(Ok(()), |path| spared(self.argument, path, what, files()))
    }

    /// Does the work, and records it where that was asked for.
    pub fn record(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        let Some(path) = &self.path else { return work() };
        profiler::start(profiler::Options::default()).map_err(|error| self.failed(error))?;
        let done = work();
        let profile = profiler::stop().map_err(|error| self.failed(error))?;
        // What was recorded is of use where the work failed, too, unless it did not come to compute anything, or the
        // file turned out to be one of the program's own.
        let is_step = |event: &profiler::Event| matches!(event.what, What::Step { .. });
        if let Err(failure) = &done
            && (failure.is_usage() || !profile.events().any(is_step))
        {
            return done;
        }
        // What the work wrote there is spared, too: not every command says what it writes.
        let is_free = match self.argument {
            VARIABLE => profiler::spares_others(path),
            _ => Ok(()),
        };
        done.and(is_free.and_then(|()| profile.save(path)).map_err(|error| self.failed(error)))
    }

    fn failed(&self, error: cupola::Error) -> Failure {
        Failure::new(format!("{}: {error}", self.argument))
    }
}
