//! The library that makes system calls fail: built when it is needed, preloaded into a program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::Built;
use super::super::random::Random;

/// Instead of an error: less is read or written than was asked for.
const SHORT: i32 = 0;

/// An error by its name, and its number on Linux.
type Errno = (&'static str, i32);

const ACCESS: Errno = ("EACCES", 13);
const DESCRIPTORS: Errno = ("EMFILE", 24);
const DEVICE: Errno = ("EIO", 5);
const FULL: Errno = ("ENOSPC", 28);
const INTERRUPTED: Errno = ("EINTR", 4);
const LOCKS: Errno = ("ENOLCK", 37);
const MEMORY: Errno = ("ENOMEM", 12);
const PART: Errno = ("a short count", SHORT);

/// What each call may come to.
const ERRORS: [(&str, &[Errno]); 12] = [
    ("close", &[DEVICE]),
    ("fchmod", &[DEVICE, ACCESS]),
    ("flock", &[DEVICE, LOCKS]),
    ("fsync", &[DEVICE, FULL, INTERRUPTED]),
    ("ftruncate", &[DEVICE, FULL, INTERRUPTED]),
    ("mkdir", &[DEVICE, FULL, ACCESS]),
    ("mmap", &[DEVICE, MEMORY]),
    ("open", &[DEVICE, FULL, ACCESS, DESCRIPTORS, INTERRUPTED]),
    ("read", &[DEVICE, INTERRUPTED, PART]),
    ("rename", &[DEVICE, FULL, ACCESS]),
    ("unlink", &[DEVICE, ACCESS]),
    ("write", &[DEVICE, FULL, FULL, INTERRUPTED, PART]),
];

/// How many calls of each name a program makes.
pub type Counts = BTreeMap<String, u64>;

/// One call that fails, or all from one on.
pub struct Fault {
    pub call: &'static str,
    nth: u64,
    error: Errno,
    lasts: bool,
}

impl Fault {
    /// One of the calls that were counted; nothing where there is none.
    pub fn drawn(counts: &Counts, random: &mut Random) -> Option<Self> {
        let made: Vec<_> = ERRORS.iter().filter(|(call, _)| counts.contains_key(*call)).collect();
        if made.is_empty() {
            return None;
        }
        let &(call, errors) = random.pick(&made);
        let (nth, error) = (1 + random.below(counts[call]), random.pick(errors));
        // A call that is interrupted is made again, so that must end.
        let lasts = random.once_in(4) && error != INTERRUPTED;
        Some(Self { call, nth, error, lasts })
    }

    /// Whether a program has to get over it.
    pub fn is_harmless(&self) -> bool {
        self.error == INTERRUPTED || self.error == PART
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { call, nth, error: (name, _), lasts } = self;
        let more = if *lasts { " and all that follow" } else { "" };
        write!(f, "{call} number {nth}{more}: {name}")
    }
}

pub struct Injector {
    library: PathBuf,
}

impl Injector {
    pub fn build(built: &Built) -> Result<Self, String> {
        let source = built.root.join("fuzz/faults/faults.c");
        let library = built.folder.join("libfaults.so");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(compiler);
        command
            .args(["-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(source);
        let status = command.status().map_err(|cause| format!("cc does not start: {cause}"))?;
        match status.success() {
            true => Ok(Self { library }),
            false => Err(format!("cc: {status}")),
        }
    }

    /// Lets `command` run into `fault`; without one its calls are counted. Only calls on what is in
    /// `folder` are meant, if one is given.
    pub fn apply(
        &self,
        command: &mut Command,
        fault: Option<&Fault>,
        folder: Option<&Path>,
        log: &Path,
    ) {
        command.env("LD_PRELOAD", &self.library).env("CUPOLA_FAULT_LOG", log);
        if let Some(folder) = folder {
            command.env("CUPOLA_FAULT_IN", folder);
        }
        let Some(Fault { call, nth, error: (_, number), lasts }) = fault else {
            command.env("CUPOLA_FAULT_CALL", "all");
            return;
        };
        command.env("CUPOLA_FAULT_CALL", call).env("CUPOLA_FAULT_NTH", nth.to_string());
        command.env("CUPOLA_FAULT_ERROR", number.to_string());
        command.env("CUPOLA_FAULT_LASTS", u8::from(*lasts).to_string());
    }

    /// What the log of a program that ran without a fault says.
    pub fn counts(log: &Path) -> Counts {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let count = |line: &str| {
            let (call, count) = line.split_once(' ')?;
            Some((call.to_owned(), count.parse().ok()?))
        };
        text.lines().filter_map(count).collect()
    }

    /// The files whose calls failed.
    pub fn hits(log: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        text.lines().filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect()
    }
}
