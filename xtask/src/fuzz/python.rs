//! Kinds that are scripts of Python: `fuzz/python/KIND.py` draws its cases and checks them itself.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::Job;
use super::report::{Finding, Report};
use super::sandbox::Running;

pub fn run(job: &Job<'_>) -> Result<Report, String> {
    let script = format!("fuzz/python/{}.py", job.kind);
    if !job.built.root.join(&script).exists() {
        return Ok(Report::skipped(format!("there is no {script}")));
    }
    let mut report = Report::default();
    script_run(job, &script, job.time, &mut report)?;
    Ok(report)
}

/// Lets a script look for `time`, and adds what it found.
pub fn script_run(
    job: &Job<'_>,
    script: &str,
    time: Duration,
    report: &mut Report,
) -> Result<(), String> {
    let json = job.built.folder.join("script.json");
    let _ = std::fs::remove_file(&json);
    let (seed, seconds) = (job.seed.to_string(), time.as_secs().max(1).to_string());
    let mut command = Command::new(&job.built.python);
    command.arg(job.built.root.join(script)).args(["--seed", &seed, "--seconds", &seconds]);
    command.args(job.most.iter().flat_map(|most| ["--cases".to_owned(), most.to_string()]));
    command.arg("--json").arg(&json).current_dir(&job.built.root);
    command.env("PYTHONPATH", &job.built.site).env("PYTHONDONTWRITEBYTECODE", "1");
    let mut running = Running::start(&mut command)?;
    // A script looks at the clock between two cases.
    let until = job.progress.elapsed() + time + Duration::from_secs(120);
    while running.wait_for(Duration::from_millis(200)).is_none() && job.progress.elapsed() < until {
        job.progress.show(report.cases, report.findings.len());
    }
    let is_late = running.wait_for(Duration::ZERO).is_none();
    if is_late {
        running.signal("KILL");
    }
    let ran = running.end();
    match (ran.code(), read(&json)) {
        (Some(0 | 1), Some(found)) => add(job, report, &found),
        (Some(2), _) => return Err(format!("{script}: {}", ran.told())),
        // A case that ends the interpreter leaves no report.
        _ => {
            let what = format!("  expected a report, and got {}", ran.told());
            let repeat = format!("python {script} --seed {seed} --seconds {seconds} --json -");
            let case = script.to_owned();
            report.count("broken off", 1);
            report.found(job.progress, Finding { case, what, repeat });
        }
    }
    Ok(())
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn add(job: &Job<'_>, report: &mut Report, found: &Value) {
    report.cases += found["cases"].as_u64().unwrap_or(0);
    for (label, count) in found["counts"].as_object().into_iter().flatten() {
        *report.counts.entry(label.clone()).or_default() += count.as_u64().unwrap_or(0);
    }
    for finding in found["findings"].as_array().into_iter().flatten() {
        let text = |name: &str| match &finding[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let [case, what, repeat] = ["case", "what", "repeat"].map(text);
        let case = format!("{} {case}", job.kind);
        report.found(job.progress, Finding { case, what: format!("  {what}"), repeat });
    }
}
