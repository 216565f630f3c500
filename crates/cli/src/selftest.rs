//! `cupola selftest`: the op suite, on a machine that has the program and no Rust.

use std::time::Instant;

use cupola::suite;
use serde::Serialize;

use crate::args::SelftestArgs;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, spinner};

#[derive(Serialize)]
struct Report {
    device: String,
    samples: usize,
    passed: usize,
    failed: usize,
    families: Vec<FamilyLine>,
}

#[derive(Serialize)]
struct FamilyLine {
    family: &'static str,
    samples: usize,
    passed: usize,
    failures: Vec<String>,
}

pub fn run(args: &SelftestArgs) -> Outcome {
    let output = Output::new(args.json.as_deref())?;
    let began = Instant::now();
    let mut families: Vec<FamilyLine> = Vec::new();
    output.line(format!("{:<12}{:>9}{:>9}{:>9}", "family", "samples", "passed", "failed"));
    let busy = spinner("testing");
    suite::run(args.device, args.filter.as_deref(), &mut |report| {
        let line = FamilyLine {
            family: report.family.name(),
            samples: report.samples,
            passed: report.passed,
            failures: report.failures,
        };
        busy.suspend(|| {
            let failed = line.failures.len();
            output.line(format!(
                "{:<12}{:>9}{:>9}{failed:>9}",
                line.family, line.samples, line.passed
            ));
            for failure in &line.failures {
                output.line(format!("    {failure}"));
            }
        });
        families.push(line);
    });
    busy.finish_and_clear();
    if families.is_empty() {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(Failure::new(format!("--filter {filter}: no sample has that in its name")));
    }
    let report = Report {
        device: args.device.to_string(),
        samples: families.iter().map(|family| family.samples).sum(),
        passed: families.iter().map(|family| family.passed).sum(),
        failed: families.iter().map(|family| family.failures.len()).sum(),
        families,
    };
    output.line(format!(
        "{}: {} samples, {} checks passed, {} failed, in {:.1} s",
        report.device,
        report.samples,
        report.passed,
        report.failed,
        began.elapsed().as_secs_f64()
    ));
    output.json(&report)?;
    match report.failed {
        0 => Ok(()),
        failed => Err(Failure::new(format!("selftest: {failed} checks failed"))),
    }
}
