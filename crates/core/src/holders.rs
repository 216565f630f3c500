//! Who holds a device's memory: the large buffers that live, what made them, and how that goes over time.
//!
//! A buffer of at least [`LARGE`] bytes carries a tag while it lives. So an error for want of memory can name
//! the largest, and [`History`] tells what lived when. Small buffers are counted by their backend alone.

mod budget;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::fork::lock;
use crate::memory::Buffer;
use crate::profile;
use crate::shape::Aval;

/// The bytes from which a buffer is known by what made it.
pub const LARGE: usize = 1 << 16;

/// A buffer that lives.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// Where it is.
    pub device: Device,
    /// Its size.
    pub bytes: usize,
    /// The operation that made what is in it; `array` where the program gave it.
    pub op: &'static str,
    /// The array that it was made for.
    pub aval: Aval,
    /// The line of the program that recorded the operation, where lines were noted.
    pub line: Option<Arc<str>>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({:.1} MiB", self.op, self.aval, self.bytes as f64 / f64::from(1 << 20))?;
        match &self.line {
            Some(line) => write!(f, ", {line})"),
            None => write!(f, ")"),
        }
    }
}

/// Something that happened to a large buffer.
#[derive(Clone, Debug)]
pub struct Change {
    /// When, from the start of the history.
    pub at: Duration,
    /// Which buffer: the same number from its first change to its last.
    pub buffer: u64,
    /// What holds it from now on; `None` where it was freed.
    pub holder: Option<Holder>,
}

/// What happened to the large buffers while it was noted.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In order of time. It begins with what was there.
    pub changes: Vec<Change>,
    /// How many changes came after there was no more room for them.
    pub lost: usize,
    /// How long it took.
    pub length: Duration,
}

struct Recording {
    start: Instant,
    history: History,
    most: usize,
}

#[derive(Default)]
struct Registry {
    live: HashMap<u64, Holder>,
    last: u64,
    recording: Option<Recording>,
    /// The changes of buffers that are known by their step until the array that is in them says what it is.
    placed: HashMap<u64, usize>,
}

impl Registry {
    fn note(&mut self, buffer: u64, holder: Option<&Holder>) {
        let placed = self.placed.remove(&buffer);
        let Some(recording) = self.recording.as_mut().filter(|_| !profile::is_unheard()) else {
            return;
        };
        let history = &mut recording.history;
        if let (Some(change), Some(holder)) =
            (placed.and_then(|at| history.changes.get_mut(at)), holder)
        {
            change.holder = Some(holder.clone());
            return;
        }
        if history.changes.len() >= recording.most {
            history.lost += 1;
            return;
        }
        let at = recording.start.elapsed();
        history.changes.push(Change { at, buffer, holder: holder.cloned() });
    }
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

/// Held by the clones of a large buffer.
pub(crate) struct Tag(u64);

impl Drop for Tag {
    fn drop(&mut self) {
        if let Some(registry) = lock(&REGISTRY).as_mut() {
            registry.live.remove(&self.0);
            registry.note(self.0, None);
        }
    }
}

/// Notes what a large buffer holds from now on. The first time it gets its tag.
pub(crate) fn hold(buffer: &mut Buffer, op: &'static str, aval: &Aval, line: Option<Arc<str>>) {
    note(buffer, op, aval, line, false);
}

/// Notes what a step puts in a new buffer, which an array may say better soon.
pub(crate) fn place(buffer: &mut Buffer, op: &'static str, aval: &Aval, line: Option<Arc<str>>) {
    note(buffer, op, aval, line, true);
}

fn note(
    buffer: &mut Buffer,
    op: &'static str,
    aval: &Aval,
    line: Option<Arc<str>>,
    is_placed: bool,
) {
    if buffer.bytes() < LARGE || buffer.is_lent() {
        return;
    }
    let holder =
        Holder { device: buffer.device(), bytes: buffer.bytes(), op, aval: aval.clone(), line };
    let mut guard = lock(&REGISTRY);
    let registry = guard.get_or_insert_default();
    let id = buffer.tag.as_ref().map_or(registry.last + 1, |tag| tag.0);
    registry.last = registry.last.max(id);
    registry.note(id, Some(&holder));
    let changes = registry.recording.as_ref().map_or(&[][..], |r| &r.history.changes);
    // It was noted last, unless there was no room for it.
    if is_placed && changes.last().is_some_and(|change| change.buffer == id) {
        registry.placed.insert(id, changes.len() - 1);
    }
    registry.live.insert(id, holder);
    drop(guard);
    buffer.tag.get_or_insert_with(|| Arc::new(Tag(id)));
}

/// The `count` largest buffers of `device` that live, the largest first.
pub fn largest(device: Device, count: usize) -> Vec<Holder> {
    let mut found = all(device);
    found.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    found.truncate(count);
    found
}

/// The large buffers of `device` that live.
pub fn all(device: Device) -> Vec<Holder> {
    let registry = lock(&REGISTRY);
    let live = registry.iter().flat_map(|registry| registry.live.values());
    live.filter(|holder| holder.device == device).cloned().collect()
}

/// Begins to note what happens to large buffers, at most `most` changes, and the lines that record.
///
/// # Errors
/// Where that is under way already.
pub fn start_history(most: usize) -> Result<()> {
    let mut guard = lock(&REGISTRY);
    let registry = guard.get_or_insert_default();
    if registry.recording.is_some() {
        return Err(Error::argument("memory history", "is being recorded already"));
    }
    registry.placed.clear();
    registry.recording =
        Some(Recording { start: Instant::now(), history: History::default(), most });
    let live: Vec<(u64, Holder)> = registry.live.iter().map(|(id, h)| (*id, h.clone())).collect();
    for (id, holder) in &live {
        registry.note(*id, Some(holder));
    }
    want_lines(true, true);
    Ok(())
}

/// What was noted since [`start_history`], which ends.
///
/// # Errors
/// Where it did not begin.
pub fn stop_history() -> Result<History> {
    let mut guard = lock(&REGISTRY);
    let recording = guard.as_mut().and_then(|registry| registry.recording.take());
    let Some(mut recording) = recording else {
        return Err(Error::argument("memory history", "is not being recorded"));
    };
    want_lines(false, true);
    recording.history.length = recording.start.elapsed();
    Ok(recording.history)
}

/// How many want lines to be noted.
static LINES: AtomicUsize = AtomicUsize::new(0);

/// Notes that somebody wants the lines that record, `all` of them or what they may cost, or no longer does.
pub(crate) fn want_lines(wanted: bool, all: bool) {
    if all {
        budget::want_all(wanted);
    }
    let before = match wanted {
        true => LINES.fetch_add(1, Ordering::Relaxed),
        false => LINES.fetch_sub(1, Ordering::Relaxed),
    };
    if wanted && (before == 0 || !all) {
        budget::begin();
    }
}

/// What knows the line of the program that records.
type Line = fn() -> Option<Arc<str>>;

static LINE: OnceLock<Line> = OnceLock::new();

/// Says how to find the line of the program that records an operation, for a binding to a language that
/// knows it. The first stays.
pub fn set_line(line: Line) {
    LINE.get_or_init(|| line);
}

/// Whether lines are noted, by a binding that knows them.
pub(crate) fn wants_lines() -> bool {
    LINES.load(Ordering::Relaxed) > 0 && LINE.get().is_some()
}

thread_local! {
    /// The line of what is recorded again in another form.
    static AGAIN: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Runs `record`, which records what was recorded at `line`, where that is known, in another form.
pub(crate) fn again_at<R>(line: Option<&Arc<str>>, record: impl FnOnce() -> R) -> R {
    match line {
        Some(line) => at(Some(line.clone()), record),
        None => record(),
    }
}

/// Runs a function of the program's own, which records at lines of its own.
pub(crate) fn afresh<R>(record: impl FnOnce() -> R) -> R {
    at(None, record)
}

fn at<R>(line: Option<Arc<str>>, record: impl FnOnce() -> R) -> R {
    struct Outer(Option<Arc<str>>);
    impl Drop for Outer {
        fn drop(&mut self) {
            AGAIN.set(self.0.take());
        }
    }
    let _outer = Outer(AGAIN.replace(line));
    record()
}

/// The line that records now, where lines are noted. What is traced for many runs `is_kept`, and has its line also
/// where noting pauses.
pub(crate) fn line(is_kept: bool) -> Option<Arc<str>> {
    if LINES.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let again = AGAIN.with_borrow(Option::clone);
    again.or_else(|| match LINE.get() {
        Some(line) if is_kept || !budget::pauses() => budget::counted(line),
        _ => None,
    })
}

/// Whether lines are wanted and what is recorded now has none, to keep their cost down.
pub(crate) fn pauses() -> bool {
    LINES.load(Ordering::Relaxed) > 0 && budget::pauses()
}

/// An evaluation is over, and noting lines pauses or goes on.
pub(crate) fn settle(now: Instant) {
    if LINES.load(Ordering::Relaxed) > 0 {
        budget::settle(now);
    }
}

/// `error`, and where it is one for want of memory, the largest holders of `device`.
pub(crate) fn named(error: Error, on: Device) -> Error {
    let Error::OutOfMemory { device, bytes, mut what } = error else { return error };
    let found = largest(on, 5);
    if !found.is_empty() {
        let names: Vec<String> = found.iter().map(Holder::to_string).collect();
        what += &format!("; most is held by {}", names.join(", "));
    }
    Error::OutOfMemory { device, bytes, what }
}
