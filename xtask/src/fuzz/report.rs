//! What was found, on the terminal and as JSON.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Something that should not be.
pub struct Finding {
    pub case: String,
    /// What was done, what came out, and what was expected.
    pub what: String,
    /// The command that does it again.
    pub repeat: String,
}

/// What a kind came to.
#[derive(Default)]
pub struct Report {
    pub cases: u64,
    /// How many cases there were of each sort.
    pub counts: BTreeMap<String, u64>,
    pub findings: Vec<Finding>,
    /// Why it did not look, where it did not.
    pub skipped: Option<String>,
}

impl Report {
    pub fn skipped(why: impl Into<String>) -> Self {
        Self { skipped: Some(why.into()), ..Self::default() }
    }

    pub fn count(&mut self, label: &str, cases: u64) {
        self.cases += cases;
        *self.counts.entry(label.to_owned()).or_default() += cases;
    }

    /// Keeps a finding, and says it at once.
    pub fn found(&mut self, progress: &Progress, finding: Finding) {
        progress.clear();
        println!("\nFOUND {}\n{}\n  repeat: {}", finding.case, finding.what, finding.repeat);
        self.findings.push(finding);
    }
}

/// A line that says how far a kind is, on a terminal.
pub struct Progress {
    kind: &'static str,
    time: Duration,
    began: Instant,
    /// When the line was last written, in milliseconds.
    shown: AtomicU64,
}

impl Progress {
    /// How often the line is written, in milliseconds.
    const INTERVAL: u64 = 200;
    const WIDTH: usize = 24;

    pub fn new(kind: &'static str, time: Duration) -> Self {
        println!("==> {kind}: {} s", time.as_secs());
        Self { kind, time, began: Instant::now(), shown: AtomicU64::new(0) }
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn show(&self, cases: u64, findings: usize) {
        let now = self.elapsed().as_millis() as u64;
        if !std::io::stderr().is_terminal()
            || now < self.shown.load(Ordering::Relaxed) + Self::INTERVAL
        {
            return;
        }
        self.shown.store(now, Ordering::Relaxed);
        let part = (now as f64 / self.time.as_millis().max(1) as f64).min(1.0);
        let full = (part * Self::WIDTH as f64) as usize;
        let bar = format!("{}{}", "━".repeat(full), "─".repeat(Self::WIDTH - full));
        eprint!("\r\x1b[K{:<9} {bar} {cases} cases, {findings} findings", self.kind);
        let _ = std::io::stderr().flush();
    }

    pub fn clear(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }
}

type Reports = [(&'static str, Report, Duration)];

pub fn show(seed: u64, reports: &Reports) {
    println!("\nseed {seed}\n{:<10}{:>10}{:>10}{:>10}", "kind", "cases", "findings", "time");
    for (kind, report, time) in reports {
        let time = format!("{:.1} s", time.as_secs_f64());
        println!("{kind:<10}{:>10}{:>10}{time:>10}", report.cases, report.findings.len());
        if let Some(why) = &report.skipped {
            println!("  skipped: {why}");
        }
        for (label, count) in &report.counts {
            println!("  {label}: {count}");
        }
    }
}

pub fn write(path: &Path, seed: u64, reports: &Reports) -> Result<(), String> {
    let finding = |finding: &Finding| json!({ "case": finding.case, "what": finding.what, "repeat": finding.repeat });
    let kind = |(kind, report, time): &(&'static str, Report, Duration)| {
        json!({
            "kind": kind,
            "cases": report.cases,
            "counts": report.counts,
            "findings": report.findings.iter().map(finding).collect::<Vec<Value>>(),
            "skipped": report.skipped,
            "seconds": time.as_secs_f64(),
        })
    };
    let all = json!({ "seed": seed, "kinds": reports.iter().map(kind).collect::<Vec<Value>>() });
    std::fs::write(path, format!("{all:#}\n")).map_err(|e| format!("{}: {e}", path.display()))
}
