//! `cargo xtask fuzz`: looks for what no test thought of, for as long as it is given.
//!
//! What a case does follows from the seed and its number alone, so a finding can be repeated.

mod arguments;
mod faults;
mod files;
mod python;
mod random;
mod report;
mod runs;
mod sandbox;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use arguments::{Arguments, USAGE};
use report::{Finding, Progress, Report};

use crate::ci;

/// One way to look.
struct Kind {
    name: &'static str,
    what: &'static str,
    /// Whether it wants the Python package, and an environment to run it in.
    python: bool,
    /// Whether one of its cases can be asked for by its number.
    numbered: bool,
    run: fn(&Job<'_>) -> Result<Report, String>,
}

const KINDS: [Kind; 6] = [
    Kind {
        name: "functions",
        what: "every function of Python on drawn arguments",
        python: true,
        numbered: false,
        run: python::run,
    },
    Kind {
        name: "graphs",
        what: "drawn graphs, computed in several ways",
        python: true,
        numbered: false,
        run: python::run,
    },
    Kind {
        name: "gradients",
        what: "derivatives of drawn functions",
        python: true,
        numbered: false,
        run: python::run,
    },
    Kind {
        name: "files",
        what: "damaged files of every format that is read",
        python: true,
        numbered: false,
        run: files::run,
    },
    Kind {
        name: "runs",
        what: "trainings that are killed and go on",
        python: false,
        numbered: true,
        run: runs::run,
    },
    Kind {
        name: "faults",
        what: "system calls that fail",
        python: true,
        numbered: true,
        run: faults::run,
    },
];

/// What a kind gets to work with.
struct Job<'a> {
    kind: &'static str,
    seed: u64,
    time: Duration,
    /// The one case that is to run.
    case: Option<u64>,
    /// The most cases of a script.
    most: Option<u64>,
    built: &'a Built,
    progress: &'a Progress,
}

/// What is looked at, and where there is room for it.
struct Built {
    root: PathBuf,
    /// Where what is built and found goes.
    folder: PathBuf,
    program: PathBuf,
    python: PathBuf,
    /// The folder that Python imports the package from.
    site: PathBuf,
}

/// Runs the command with what stands after `fuzz`.
pub fn run(arguments: &[String]) -> ExitCode {
    if let [word] = arguments
        && (word == "--help" || word == "-h")
    {
        println!("{USAGE}{}", list());
        return ExitCode::SUCCESS;
    }
    let arguments = match Arguments::parse(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("error: {error}\n\n{USAGE}{}", list());
            return ExitCode::from(2);
        }
    };
    match look(&ci::root(), &arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What `cargo xtask ci fuzz` does: two minutes, always the same seed. Targets of cargo-fuzz are
/// left out: to build them takes longer than to run them.
pub fn check(root: &Path) -> Result<(), String> {
    println!("    without 'files', whose targets take minutes to build");
    let kinds = KINDS.iter().map(|kind| kind.name).filter(|name| *name != "files");
    let arguments = Arguments {
        time: Duration::from_secs(120),
        seed: 1,
        // A fast machine is to see what a slow one sees.
        most: Some(5000),
        only: kinds.map(str::to_owned).collect(),
        ..Arguments::default()
    };
    match look(root, &arguments)? {
        0 => Ok(()),
        count => Err(format!("{count} findings")),
    }
}

/// The kinds, a line each.
fn list() -> String {
    KINDS.iter().map(|kind| format!("  {:<9}  {}\n", kind.name, kind.what)).collect()
}

/// Lets every kind that is asked for look; gives how many findings there are.
fn look(root: &Path, arguments: &Arguments) -> Result<usize, String> {
    let wanted =
        |kind: &&Kind| arguments.only.is_empty() || arguments.only.contains(&kind.name.into());
    let kinds: Vec<&Kind> = KINDS.iter().filter(wanted).collect();
    let built = Built::new(root, arguments, kinds.iter().any(|kind| kind.python))?;
    let began = Instant::now();
    let mut reports = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        // What one kind leaves of its time is for those that follow.
        let left = arguments.time.saturating_sub(began.elapsed());
        let time = left / (kinds.len() - index) as u32;
        let progress = Progress::new(kind.name, time);
        let Arguments { seed, case, most, .. } = *arguments;
        let job =
            Job { kind: kind.name, seed, time, case, most, built: &built, progress: &progress };
        // A kind that cannot begin keeps no other from its work.
        let report = (kind.run)(&job).unwrap_or_else(|error| job.failed(error));
        progress.clear();
        reports.push((kind.name, report, progress.elapsed()));
    }
    report::show(arguments.seed, &reports);
    if let Some(path) = &arguments.json {
        report::write(path, arguments.seed, &reports)?;
    }
    Ok(reports.iter().map(|(_, report, _)| report.findings.len()).sum())
}

impl Built {
    fn new(root: &Path, arguments: &Arguments, python: bool) -> Result<Built, String> {
        use crate::python as package;
        let target = package::target(root)?;
        let is_given = arguments.program.is_some() && (!python || arguments.site.is_some());
        if !is_given {
            package::build(root)?;
        }
        let program = arguments.program.clone().unwrap_or_else(|| {
            target.join("debug").join(format!("cupola{}", std::env::consts::EXE_SUFFIX))
        });
        let (interpreter, site) = match (python, &arguments.site) {
            (false, _) => Default::default(),
            (true, Some(site)) => (package::environment(&target)?, site.clone()),
            (true, None) => package::installed(root, &target)?,
        };
        let folder = target.join("fuzz");
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Built { root: root.to_owned(), folder, program, python: interpreter, site })
    }
}

impl Job<'_> {
    /// Runs cases, one after the other, while there is time, or the one that was asked for. A case
    /// gives what it was, or what it found.
    fn cases(&self, mut one: impl FnMut(u64) -> Result<&'static str, String>) -> Report {
        let mut report = Report::default();
        let mut known = BTreeSet::new();
        let numbers = match self.case {
            Some(case) => case..case + 1,
            None => 0..u64::MAX,
        };
        for case in numbers {
            if self.case.is_none() && self.progress.elapsed() >= self.time {
                break;
            }
            match one(case) {
                Ok(label) => report.count(label, 1),
                Err(what) if !known.insert(signature(&what)) => report.count("found again", 1),
                Err(what) => {
                    report.count("finding", 1);
                    let repeat = self.repeat(case);
                    let case = format!("{} {case}", self.kind);
                    report.found(self.progress, Finding { case, what, repeat });
                }
            }
            self.progress.show(report.cases, report.findings.len());
        }
        report
    }

    /// The report of a kind that could not do its work.
    fn failed(&self, error: String) -> Report {
        let mut report = Report::default();
        let (case, what) = (self.kind.to_owned(), format!("  {error}"));
        let repeat = format!("cargo xtask fuzz --only {} --seed {}", self.kind, self.seed);
        report.found(self.progress, Finding { case, what, repeat });
        report
    }

    fn repeat(&self, case: u64) -> String {
        format!("cargo xtask fuzz --only {} --seed {} --case {case}", self.kind, self.seed)
    }
}

/// What tells a finding from others: the words of what was done first and of what was expected,
/// without what is in brackets.
fn signature(what: &str) -> String {
    let expected = what.lines().filter(|line| line.trim_start().starts_with("expected"));
    let lines = what.lines().take(1).chain(expected).map(|line| line.split('(').next());
    lines.flatten().flat_map(str::chars).filter(|c| c.is_alphabetic()).collect()
}
