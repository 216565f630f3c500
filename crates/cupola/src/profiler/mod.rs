//! Where the time goes: what ran, what was copied, planned, compiled and waited for, and when.
//!
//! ```
//! use cupola::{Array, DType, ops, profiler::{self, By, Options}};
//! let x = ops::ones([64, 64], DType::F32)?;
//! let (y, profile) = profiler::profile(Options::default(), || {
//!     profiler::mark("product");
//!     ops::matmul(&x, &x)?.item_at_origin()
//! })?;
//! # trait Origin { fn item_at_origin(&self) -> cupola::Result<f32>; }
//! # impl Origin for Array { fn item_at_origin(&self) -> cupola::Result<f32> { Ok(self.to_vec::<f32>()?[0]) } }
//! assert_eq!(y, 64.0);
//! assert!(profile.table(By::Op).contains("matmul"));
//! assert!(profile.to_json().contains("\"traceEvents\""));
//! # Ok::<(), cupola::Error>(())
//! ```
//!
//! Times of the CPU are those of its steps, and a GPU's are of its own clock. Where an adapter of wgpu has none, they
//! are known if it is waited for after each step ([`Options::wait_until_completed`]); otherwise they are the host's,
//! which only gave the work away, and are marked so. `CUPOLA_PROFILE` and `CUPOLA_LOG` start it from outside
//! ([`from_env`]).

mod log;
mod page;
mod recorder;
mod table;
mod trace;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cupola_core::profile::{self, Listener};
use cupola_core::{Error, Result};

use crate::io::{check_file, replaced, write_whole};
use crate::origin;
use recorder::Recorder;

pub use cupola_core::profile::{Clock, Event, What};
pub use log::{LOGGED, Log};
pub use table::By;

/// What is noted of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// When it began and ended.
    #[default]
    Interval,
    /// When it was over.
    Event,
    /// Both.
    Both,
}

impl std::str::FromStr for Mode {
    type Err = Error;

    /// `interval`, `event`, or both with a comma between.
    fn from_str(text: &str) -> Result<Self> {
        let mut found = [false; 2];
        for part in text.split(',') {
            match part.trim() {
                "interval" => found[0] = true,
                "event" => found[1] = true,
                other => {
                    let detail = format!("the mode {other:?} is neither interval nor event");
                    return Err(Error::argument("profiler", detail));
                }
            }
        }
        Ok(match found {
            [true, true] => Mode::Both,
            [_, true] => Mode::Event,
            _ => Mode::Interval,
        })
    }
}

/// How a profile is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What is noted.
    pub mode: Mode,
    /// Whether a GPU is waited for after each step: its times are then known on every kind, and the
    /// whole takes longer.
    pub wait_until_completed: bool,
    /// Whether the line of the program that records each operation is noted, and the modules that it is in: in Python
    /// some hundred nanoseconds an operation that is recorded, in Rust some microseconds. A Rust program needs line
    /// tables for it, which its `release` profile has with `debug = "line-tables-only"`; its layers are then named by
    /// their files, and by their types with `debug = true`.
    pub lines: bool,
    /// A plan that a device runs as one, as CUDA's graphs do, is timed step by step in its first two runs and then
    /// once in so many, but at most once in a second, since it takes longer. The others are timed as a whole,
    /// and their time is divided among the steps as it was when these were timed ([`Clock::Divided`]). Of runs
    /// shorter than 8 ms not each is timed, since that would take 20 µs of each ([`Clock::Estimated`]). With 1 all
    /// steps of all runs are timed.
    pub every: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options { mode: Mode::Interval, wait_until_completed: false, lines: true, every: 128 }
    }
}

/// What is being recorded.
static CURRENT: Mutex<Option<Arc<Recorder>>> = Mutex::new(None);

fn current() -> std::sync::MutexGuard<'static, Option<Arc<Recorder>>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to record what every thread does.
///
/// # Errors
/// Where that is under way already.
pub fn start(options: Options) -> Result<()> {
    let mut current = current();
    if current.is_some() {
        let detail = "a profile is being recorded already: stop it before the next begins";
        return Err(Error::argument("profiler.start", detail));
    }
    origin::note();
    let recorder = Arc::new(Recorder::new(options));
    profile::listen(recorder.clone());
    *current = Some(recorder);
    Ok(())
}

/// What was recorded since [`start`], which ends. What devices are still at is waited for.
///
/// # Errors
/// Where nothing is being recorded.
pub fn stop() -> Result<Profile> {
    let Some(recorder) = current().take() else {
        let detail = "no profile is being recorded: start one first";
        return Err(Error::argument("profiler.stop", detail));
    };
    let listener: Arc<dyn Listener> = recorder.clone();
    profile::ignore(&listener);
    Ok(recorder.finish())
}

/// Whether a profile is being recorded.
pub fn is_running() -> bool {
    current().is_some()
}

/// A mark of the program's own, at this moment; nothing where nobody listens.
pub fn mark(name: &str) {
    if profile::is_on() {
        let what = What::Mark { name: name.to_owned() };
        profile::tell(&Event { what, start: Instant::now(), length: Duration::ZERO });
    }
}

/// Runs `f` and records what it does.
///
/// # Errors
/// As [`start`], and where `f` fails, whose profile is then dropped.
pub fn profile<R>(options: Options, f: impl FnOnce() -> Result<R>) -> Result<(R, Profile)> {
    /// Ends a recording whose function failed or panicked.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            if is_running() {
                drop(stop());
            }
        }
    }
    start(options)?;
    let _end = End;
    let result = f()?;
    Ok((result, stop()?))
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Profile {
    /// When it began; events count from there.
    start: Instant,
    length: Duration,
    options: Options,
    events: Vec<Noted>,
    /// How many events came after there was no more room for them.
    lost: usize,
}

/// An event, with its thread.
#[derive(Clone, Debug)]
struct Noted {
    event: Event,
    /// Threads are numbered in the order in which they first did something.
    thread: u32,
}

impl Profile {
    /// What happened, by when it was told.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().map(|noted| &noted.event)
    }

    /// How long was recorded.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// How many events came after there was no more room for them.
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// A trace that Perfetto and Chrome's `about:tracing` show.
    pub fn to_json(&self) -> String {
        trace::json(self)
    }

    /// What took how long, the longest first.
    pub fn table(&self, by: By) -> String {
        table::text(self, by)
    }

    /// One page that needs nothing else: the timeline, the memory over time, and what took longest.
    pub fn to_html(&self) -> String {
        page::html(self)
    }

    /// Writes the profile, whole or not at all: the page where `path` ends in `.html`, else the trace.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let text = match is_page(path) {
            true => self.to_html(),
            false => self.to_json(),
        };
        write_whole(path, &text)
    }
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("html"))
}

/// A recording, and a log, that the environment asked for. They end when this is finished, or dropped.
#[must_use = "the profile is written where this ends"]
pub struct FromEnv {
    path: Option<PathBuf>,
    log: Option<Arc<dyn Listener>>,
}

/// Starts what the environment asks for: with `CUPOLA_PROFILE=FILE` a profile that goes to that file,
/// with `CUPOLA_LOG=ops,copies,fallbacks,cpu` a line for each such event on the standard error.
///
/// # Errors
/// As [`file_from_env`] and [`log_from_env`].
pub fn from_env() -> Result<FromEnv> {
    let mut started = log_from_env()?;
    if let Some(path) = file_from_env()? {
        start(Options::default())?;
        started.path = Some(path);
    }
    Ok(started)
}

/// Starts the log that `CUPOLA_LOG` asks for and no profile, for a program that makes its profiles itself.
///
/// # Errors
/// Where `CUPOLA_LOG` names something else.
pub fn log_from_env() -> Result<FromEnv> {
    let mut started = FromEnv { path: None, log: None };
    if let Some(what) = std::env::var_os("CUPOLA_LOG").filter(|what| !what.is_empty()) {
        origin::note();
        let log: Arc<dyn Listener> = Arc::new(what.to_string_lossy().parse::<Log>()?);
        profile::listen(log.clone());
        started.log = Some(log);
    }
    Ok(started)
}

/// The file that `CUPOLA_PROFILE` names.
///
/// # Errors
/// Where it cannot be written, or is none that a profile may replace ([`spares_others`]).
pub fn file_from_env() -> Result<Option<PathBuf>> {
    let path = std::env::var_os("CUPOLA_PROFILE").filter(|path| !path.is_empty());
    // The program may go to another folder.
    let path = path.map(|path| std::path::absolute(&path).unwrap_or_else(|_| path.into()));
    if let Some(path) = &path {
        check_file(path, "a profile").and_then(|()| spares_others(path)).map_err(of_variable)?;
    }
    Ok(path)
}

fn of_variable(error: Error) -> Error {
    Error::argument("CUPOLA_PROFILE", error.to_string())
}

/// Sees to it that at `path` a profile replaces nothing but another profile, or an empty file: what the environment
/// names was not chosen for this program alone, which may read or write a file of that name.
///
/// # Errors
/// Where another file is there.
pub fn spares_others(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let Some(place) = replaced(path) else { return Ok(()) };
    let mut start = Vec::new();
    let most = trace::START.len().max(page::START.len()) as u64;
    let read = File::open(place).and_then(|file| file.take(most).read_to_end(&mut start));
    read.map_err(|cause| Error::io(path, format!("cannot be read: {cause}")))?;
    let is_own = |own: &&str| start.starts_with(own.as_bytes());
    match start.is_empty() || [trace::START, page::START].iter().any(is_own) {
        true => Ok(()),
        false => Err(Error::io(path, "is there, and is no profile that another could replace")),
    }
}

impl FromEnv {
    /// Logs what devices are still at, and writes the profile, if one was asked for.
    ///
    /// # Errors
    /// Where the file cannot be written, or the program has stopped the profile itself.
    pub fn finish(mut self) -> Result<()> {
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        if let Some(log) = self.log.take() {
            profile::ignore(&log);
        }
        match self.path.take() {
            Some(path) if is_running() => {
                let profile = stop()?;
                // What the program wrote there is spared, too.
                spares_others(&path).and_then(|()| profile.save(path)).map_err(of_variable)
            }
            Some(path) => {
                let detail = "not written, the program has stopped the profile";
                Err(of_variable(Error::io(path, detail)))
            }
            None => Ok(()),
        }
    }
}

impl Drop for FromEnv {
    fn drop(&mut self) {
        if let Err(error) = self.write() {
            eprintln!("error: {error}");
        }
    }
}
