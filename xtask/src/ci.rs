//! `cargo xtask ci`: format, lints, tests, documentation and dependencies, in this order.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::tools::{self, Tool};
use crate::{fuzz, python};

/// Something that is done in the folder of the workspace.
type Then = fn(&Path) -> Result<(), String>;

/// One thing that has to hold.
struct Check {
    name: &'static str,
    what: &'static str,
    tool: Option<Tool>,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// What is done after cargo ran.
    then: Option<Then>,
}

const CHECKS: [Check; 9] = [
    Check {
        name: "format",
        what: "the code is formatted",
        tool: None,
        arguments: &["fmt", "--all", "--check"],
        environment: &[],
        then: None,
    },
    Check {
        name: "clippy",
        what: "no lint has anything to say",
        tool: None,
        arguments: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        environment: &[],
        then: None,
    },
    Check {
        name: "test",
        what: "the tests of the whole workspace",
        tool: Some(tools::NEXTEST),
        arguments: &["nextest", "run", "--workspace", "--all-features", "--locked"],
        environment: &[],
        then: None,
    },
    Check {
        name: "doctest",
        what: "the examples in the documentation",
        tool: None,
        arguments: &["test", "--doc", "--workspace", "--all-features", "--locked"],
        environment: &[],
        then: None,
    },
    Check {
        name: "docs",
        what: "the documentation builds and its links lead somewhere",
        tool: None,
        arguments: &["doc", "--workspace", "--no-deps", "--all-features", "--locked"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        then: None,
    },
    Check {
        name: "bindings",
        what: "the Python bindings and stubs are those of the operations",
        tool: None,
        arguments: &["xtask", "gen", "--check"],
        environment: &[],
        then: None,
    },
    Check {
        name: "python",
        what: "the Python package against MLX and NumPy, and its stubs",
        tool: None,
        arguments: &python::BUILD,
        environment: &[],
        then: Some(python::run),
    },
    Check {
        name: "fuzz",
        what: "two minutes of drawn cases find nothing",
        tool: None,
        arguments: &python::BUILD,
        environment: &[],
        then: Some(fuzz::check),
    },
    Check {
        name: "deny",
        what: "dependencies: bans, licences, sources",
        tool: Some(tools::DENY),
        arguments: &["deny", "--locked", "check", "bans", "licenses", "sources"],
        environment: &[],
        then: None,
    },
];

/// The checks, a line each.
pub fn list() -> String {
    CHECKS.iter().map(|check| format!("  {:<8}  {}\n", check.name, check.what)).collect()
}

/// Runs the checks named, all of them if none is.
pub fn run(names: &[String]) -> ExitCode {
    let unknown = names.iter().find(|name| CHECKS.iter().all(|check| check.name != name.as_str()));
    if let Some(name) = unknown {
        eprintln!("error: '{name}' is no step; the steps are:\n{}", list());
        return ExitCode::from(2);
    }
    let wanted = |check: &&Check| names.is_empty() || names.iter().any(|name| name == check.name);
    let checks: Vec<&Check> = CHECKS.iter().filter(wanted).collect();
    let root = root();
    let start = Instant::now();
    let mut results: Vec<(&Check, Outcome)> = Vec::new();
    for (index, check) in checks.iter().enumerate() {
        println!("\n==> {}/{} {}: {}", index + 1, checks.len(), check.name, check.what);
        let began = Instant::now();
        let failure = execute(check, &root).err();
        let time = began.elapsed();
        let failed = failure.is_some();
        match &failure {
            None => println!("==> {}: passed in {}", check.name, seconds(time)),
            Some(reason) => println!("==> {}: FAILED in {}: {reason}", check.name, seconds(time)),
        }
        results.push((check, Outcome { time, failed }));
        if failed {
            break;
        }
    }
    summarise(&checks, &results, start.elapsed());
    match results.iter().any(|(_, outcome)| outcome.failed) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

struct Outcome {
    time: Duration,
    failed: bool,
}

fn execute(check: &Check, root: &Path) -> Result<(), String> {
    let path = match check.tool {
        Some(tool) => tools::ensure(tool)?,
        None => None,
    };
    let mut command = Command::new(tools::cargo());
    command.args(check.arguments).envs(check.environment.iter().copied()).current_dir(root);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    println!("    cargo {}", check.arguments.join(" "));
    let status = command.status().map_err(|cause| format!("cargo does not start: {cause}"))?;
    match (status.success(), check.then) {
        (true, Some(then)) => then(root),
        (true, None) => Ok(()),
        (false, _) => Err(status.to_string()),
    }
}

fn summarise(checks: &[&Check], results: &[(&Check, Outcome)], total: Duration) {
    println!("\n{:<10}{:<10}{:>10}", "step", "result", "time");
    for (index, check) in checks.iter().enumerate() {
        let (result, time) = match results.get(index) {
            Some((_, outcome)) if outcome.failed => ("FAILED", seconds(outcome.time)),
            Some((_, outcome)) => ("passed", seconds(outcome.time)),
            None => ("not run", "-".to_owned()),
        };
        println!("{:<10}{:<10}{:>10}", check.name, result, time);
    }
    println!("{:<20}{:>10}", "total", seconds(total));
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The folder of the workspace. `cargo run` says where this package is; what was compiled in may be
/// of another clone that shares the build folder.
pub fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    own.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}
