//! Damaged files: targets of cargo-fuzz for what Rust reads (the crate `fuzz`), a script for
//! archives of NumPy, which Python reads.
//!
//! cargo-fuzz works with stable Rust where no sanitizer is asked for: it still instruments for
//! coverage. What a sanitizer would limit, the targets count themselves (`fuzz/src/memory.rs`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::Job;
use super::report::{Finding, Report};
use super::sandbox::{Ran, Running, Sandbox};
use crate::tools;

/// The crate `fuzz` has a module of each of these names.
const TARGETS: [&str; 12] = [
    "cifar",
    "coreml",
    "graph",
    "gzip",
    "idx",
    "jpeg",
    "model",
    "npy",
    "package",
    "png",
    "safetensors",
    "state",
];
const ARCHIVES: &str = "fuzz/files/npz.py";

/// No case may take longer, in seconds.
const SLOWEST: u32 = 5;
/// The limit on memory that libFuzzer looks after; what is allocated at once the targets count.
const MEMORY: &str = "-rss_limit_mb=4096";

pub fn run(job: &Job<'_>) -> Result<Report, String> {
    let binaries = build(job)?;
    let mut report = Report::default();
    for (index, target) in TARGETS.iter().enumerate() {
        let left = job.time.saturating_sub(job.progress.elapsed());
        target_run(job, target, &binaries, left / (TARGETS.len() + 1 - index) as u32, &mut report)?;
    }
    let left = job.time.saturating_sub(job.progress.elapsed());
    super::python::script_run(job, ARCHIVES, left, &mut report)?;
    Ok(report)
}

/// Builds the targets; gives the folder with them.
fn build(job: &Job<'_>) -> Result<PathBuf, String> {
    let path = tools::ensure(tools::FUZZ)?;
    let target = job.built.folder.join("target");
    let mut command = Command::new(tools::cargo());
    command.args(["fuzz", "build", "--sanitizer", "none", "--target-dir"]).arg(&target);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    println!("    cargo fuzz build --sanitizer none");
    let status = command.current_dir(&job.built.root).status().map_err(|e| e.to_string())?;
    if !status.success() {
        return Err(format!("cargo fuzz build: {status}"));
    }
    let entries = std::fs::read_dir(&target).map_err(|e| format!("{}: {e}", target.display()))?;
    // Between the two is the name of the platform.
    let mut folders = entries.flatten().map(|entry| entry.path().join("release"));
    folders
        .find(|folder| folder.join(format!("npy{}", std::env::consts::EXE_SUFFIX)).exists())
        .ok_or_else(|| format!("no targets in {}", target.display()))
}

/// Lets a target look for `time`, from the corpus of the last time on.
fn target_run(
    job: &Job<'_>,
    target: &str,
    binaries: &Path,
    time: Duration,
    report: &mut Report,
) -> Result<(), String> {
    let corpus = job.built.folder.join("corpus").join(target);
    let artifacts = job.built.folder.join("artifacts").join(target);
    for folder in [&corpus, &artifacts] {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let scratch = Sandbox::in_memory(target)?;
    let mut command = Command::new(binaries.join(target));
    command.arg(&corpus).env("TMPDIR", scratch.path("")).env("CUPOLA_FUZZ_SEEDS", &corpus);
    command.arg(format!("-dict={}", job.built.root.join("fuzz/words.dict").display()));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    // libFuzzer draws a seed of its own where it is given 0.
    command.arg(format!("-seed={}", 1 + job.seed % u64::from(u32::MAX)));
    command.arg(format!("-max_total_time={}", time.as_secs().max(1)));
    command.arg(format!("-timeout={SLOWEST}")).args([MEMORY, "-print_final_stats=1"]);
    let mut running = Running::start(&mut command)?;
    let until = job.progress.elapsed() + time + Duration::from_secs(60);
    while running.wait_for(Duration::from_millis(200)).is_none() && job.progress.elapsed() < until {
        job.progress.show(report.cases, report.findings.len());
    }
    let ran = running.end();
    report.count(target, executed(&ran));
    if ran.code() != Some(0) {
        report.found(job.progress, finding(target, &ran));
    }
    Ok(())
}

/// How many cases there were, as libFuzzer says in the end.
fn executed(ran: &Ran) -> u64 {
    let line =
        ran.err.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

fn finding(target: &str, ran: &Ran) -> Finding {
    let file = ran.err.lines().find_map(|line| line.split_once("Test unit written to "));
    let file = file.map_or("FILE", |(_, file)| file.trim());
    // What went wrong comes before libFuzzer's own words.
    let is_own = |line: &&str| {
        let others = ["INFO:", "WARNING:", "stat::", "MS:"];
        !line.starts_with(['#', ' ', '\t']) && !others.iter().any(|start| line.starts_with(start))
    };
    let said: Vec<&str> = ran.err.lines().filter(is_own).take(10).collect();
    Finding {
        case: format!("files {target}"),
        what: format!(
            "  expected that {file} is read or refused, and got\n    | {}",
            said.join("\n    | ")
        ),
        repeat: format!("cargo fuzz run --sanitizer none {target} {file}"),
    }
}
