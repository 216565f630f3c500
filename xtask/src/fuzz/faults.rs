//! System calls that fail under the program and under Python: whatever fails, there is an error in
//! a line or everything was done; files are the old ones or the new ones; and the next try works.

mod injector;
mod tasks;

use std::collections::BTreeMap;
use std::path::Path;

use super::random::Random;
use super::report::Report;
use super::sandbox::{Ran, Running, Sandbox};
use super::{Built, Job};
use injector::{Counts, Fault, Injector};
use tasks::{TASKS, Task, is_whole};

/// The contents of a task's outputs, one by one.
type Contents = Vec<Option<Vec<u8>>>;

/// What a task comes to without a fault.
struct Usual {
    /// The calls on files of the task, and all calls.
    counts: [Counts; 2],
    /// How many lines it prints.
    lines: usize,
    old: Contents,
    new: Contents,
}

pub fn run(job: &Job<'_>) -> Result<Report, String> {
    let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    if !(cfg!(target_os = "linux") && known) {
        return Ok(Report::skipped(
            "system calls are made to fail on Linux only, on x86-64 and ARM",
        ));
    }
    let injector = Injector::build(job.built)?;
    let base = tasks::prepare(job.built)?;
    let mut usual: BTreeMap<usize, Usual> = BTreeMap::new();
    Ok(job.cases(|case| {
        let mut random = Random::of(job.seed, case);
        let index = random.below(TASKS.len() as u64) as usize;
        let task = &TASKS[index];
        if let std::collections::btree_map::Entry::Vacant(entry) = usual.entry(index) {
            entry.insert(Usual::of(task, job.built, &injector, &base)?);
        }
        let usual = &usual[&index];
        // Of what Python itself does, and drivers, nothing can be asked.
        let everywhere = !task.python && !task.words.starts_with("devices") && random.once_in(2);
        let Some(fault) = Fault::drawn(&usual.counts[usize::from(everywhere)], &mut random) else {
            return Ok("no call to fail");
        };
        let sandbox = copied(&base, &format!("fault-{case}"))?;
        let case = Case { built: job.built, sandbox: &sandbox, task, usual, fault, everywhere };
        case.run(&injector)
    }))
}

/// A sandbox with all that is in `base`.
fn copied(base: &Sandbox, name: &str) -> Result<Sandbox, String> {
    fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let to = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                std::fs::create_dir(&to)?;
                copy(&entry.path(), &to)?;
            } else {
                std::fs::copy(entry.path(), to)?;
            }
        }
        Ok(())
    }
    let sandbox = Sandbox::new(name)?;
    copy(&base.path(""), &sandbox.path("")).map_err(|cause| format!("{name}: {cause}"))?;
    Ok(sandbox)
}

fn contents(task: &Task, sandbox: &Sandbox) -> Contents {
    task.outputs.iter().map(|name| sandbox.read(name)).collect()
}

impl Usual {
    fn of(task: &Task, built: &Built, injector: &Injector, base: &Sandbox) -> Result<Self, String> {
        let old = contents(task, base);
        let mut new = Contents::new();
        let mut lines = 0;
        let mut counts = [Counts::new(), Counts::new()];
        for (everywhere, counts) in counts.iter_mut().enumerate() {
            let sandbox = copied(base, "usual")?;
            let log = sandbox.path("calls.log");
            let folder = sandbox.path("");
            let mut command = task.command(built, &sandbox);
            let folder = (everywhere == 0).then_some(folder.as_path());
            injector.apply(&mut command, None, folder, &log);
            let ran = Running::start(&mut command)?.end();
            if ran.code() != Some(0) {
                return Err(format!("  {}\n  without a fault: {}", task.told(), ran.told()));
            }
            *counts = Injector::counts(&log);
            new = contents(task, &sandbox);
            lines = ran.out.lines().count();
        }
        Ok(Self { counts, lines, old, new })
    }
}

struct Case<'a> {
    built: &'a Built,
    sandbox: &'a Sandbox,
    task: &'a Task,
    usual: &'a Usual,
    fault: Fault,
    everywhere: bool,
}

impl Case<'_> {
    fn run(&self, injector: &Injector) -> Result<&'static str, String> {
        let log = self.sandbox.path("calls.log");
        let folder = self.sandbox.path("");
        let mut command = self.task.command(self.built, self.sandbox);
        let folder = (!self.everywhere).then_some(folder.as_path());
        injector.apply(&mut command, Some(&self.fault), folder, &log);
        let ran = Running::start(&mut command)?.end();
        let hits = Injector::hits(&log);
        self.check(&ran, &hits).map_err(|expected| self.wrong(&hits, &ran, &expected))?;
        let mut again = self.task.command(self.built, self.sandbox);
        let again = Running::start(&mut again)?.end();
        self.check_again(&again).map_err(|expected| {
            let before = self.wrong(&hits, &ran, "that the next try works");
            format!("{before}\n  the next try: expected {expected}, and got {}", again.told())
        })?;
        Ok(match (hits.is_empty(), ran.code()) {
            (true, _) => "the call was not made",
            (false, Some(0)) => "got over it",
            (false, _) => "failed in a line",
        })
    }

    /// What the program is to come to; an error says what was expected.
    fn check(&self, ran: &Ran, hits: &[String]) -> Result<(), String> {
        if ran.crashed().is_some() || ran.signal().is_some() {
            return Err("no panic, no signal and an end".to_owned());
        }
        let is_done = ran.code() == Some(0);
        if !is_done && self.fault.is_harmless() {
            return Err("status 0: such a call is made again".to_owned());
        }
        if !is_done {
            self.check_error(ran, hits)?;
        }
        if is_done && ran.out.lines().count() != self.usual.lines {
            return Err(format!("{} lines with status 0", self.usual.lines));
        }
        self.check_outputs(!is_done)?;
        match self.left().filter(|_| self.fault.call != "unlink") {
            Some(name) => Err(format!("no file {name}")),
            None => Ok(()),
        }
    }

    /// One line, which names what could not be written or read.
    fn check_error(&self, ran: &Ran, hits: &[String]) -> Result<(), String> {
        let is_mute = ran.err.is_empty() && hits.iter().any(|hit| hit.starts_with("pipe:"));
        if ran.code() == Some(1) && is_mute {
            return Ok(());
        }
        let (Some(1), Some(error)) = (ran.code(), ran.error()) else {
            return Err("status 1 and one line of error, or status 0".to_owned());
        };
        let folder = format!("{}/", self.sandbox.path("").display()).replace("//", "/");
        if !hits.first().is_some_and(|hit| hit.starts_with(&folder)) {
            return Ok(());
        }
        // A program may go on without the first of them.
        let own: Vec<&str> = hits.iter().filter_map(|hit| hit.strip_prefix(&folder)).collect();
        let flags = ["--out", "--resume", "--json", "--data-dir", "standard output"];
        let mut known = self.task.outputs.iter().chain(&flags).chain(&own);
        match known.any(|name| error.contains(name)) {
            true => Ok(()),
            false => Err(format!("an error that names the file (here {})", own.join(" or "))),
        }
    }

    /// Each output is the new one, or the old one where `may_be_old`.
    fn check_outputs(&self, may_be_old: bool) -> Result<(), String> {
        let found = contents(self.task, self.sandbox);
        let Usual { old, new, .. } = self.usual;
        for (((name, found), old), new) in self.task.outputs.iter().zip(&found).zip(old).zip(new) {
            let is_new = match (found, new) {
                (Some(found), Some(new)) => {
                    found != old.as_deref().unwrap_or(&[]) && is_whole(name, found, new)
                }
                _ => false,
            };
            if !(is_new || may_be_old && found == old) {
                let state = match found {
                    None => "missing",
                    found if found == old => "as before",
                    Some(_) => "neither as before nor whole",
                };
                return Err(format!("{name} to be whole, and it is {state}"));
            }
        }
        Ok(())
    }

    /// The next try, without a fault.
    fn check_again(&self, ran: &Ran) -> Result<(), String> {
        if ran.code() != Some(0) {
            return Err("status 0".to_owned());
        }
        self.check_outputs(false)
    }

    /// A file in the making, or a lock, that was left.
    fn left(&self) -> Option<String> {
        let is_own = |name: &String| name.starts_with(".cupola") || name.starts_with(".tmp");
        [".", "run", "new"].iter().flat_map(|folder| self.sandbox.names(folder)).find(is_own)
    }

    fn wrong(&self, hits: &[String], ran: &Ran, expected: &str) -> String {
        let hit = hits.first().map_or("which was not made", String::as_str);
        format!(
            "  {}\n  with {}, {hit}\n  expected {expected}, and got {}",
            self.task.told(),
            self.fault,
            ran.told()
        )
    }
}
