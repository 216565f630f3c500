//! `cupola selftest`: the op suite, on a machine that has the program and no Rust.

use std::collections::BTreeSet;
use std::time::Instant;

use cupola::backend::backends;
use cupola::{Device, Error, cuda, suite};
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
    /// What the device has no kernel for.
    missing: BTreeSet<String>,
}

#[derive(Serialize)]
struct FamilyLine {
    family: String,
    samples: usize,
    passed: usize,
    failures: Vec<String>,
}

pub fn run(args: &SelftestArgs) -> Outcome {
    let output = Output::new(args.json.as_deref())?;
    // The samples ask for the precision of the dtype, which TF32 has not.
    cuda::set_matmul_precision(cuda::MatmulPrecision::Full);
    let devices = match args.device.is_empty() {
        true => backends().map(|backend| backend.device()).collect(),
        false => args.device.clone(),
    };
    let mut reports = Vec::new();
    for device in devices {
        reports.push(test(device, args, &output)?);
    }
    output.json(&reports)?;
    match reports.iter().map(|report| report.failed).sum() {
        0 => Ok(()),
        failed => Err(Failure::new(format!("selftest: {failed} checks failed"))),
    }
}

fn test(device: Device, args: &SelftestArgs, output: &Output) -> Outcome<Report> {
    let began = Instant::now();
    let mut families: Vec<FamilyLine> = Vec::new();
    let mut missing = BTreeSet::new();
    output.line(format!("{:<18}{:>9}{:>9}{:>9}", "family", "samples", "passed", "failed"));
    let busy = spinner(&format!("testing {device}"));
    let mut show = |line: FamilyLine| {
        busy.suspend(|| {
            let failed = line.failures.len();
            output.line(format!(
                "{:<18}{:>9}{:>9}{failed:>9}",
                line.family, line.samples, line.passed
            ));
            for failure in &line.failures {
                output.line(format!("    {failure}"));
            }
        });
        families.push(line);
    };
    let filter = args.filter.as_deref();
    match args.large {
        true => suite::run_large(device, filter, &mut |report| {
            let mut line =
                FamilyLine { family: report.name, samples: 1, passed: 0, failures: Vec::new() };
            match report.result {
                Ok(()) => line.passed = 1,
                Err(Error::Unsupported { reason, .. }) => {
                    missing.insert(reason);
                }
                Err(error) => line.failures.push(error.to_string()),
            }
            show(line);
        }),
        false => suite::run(device, filter, &mut |report| {
            missing.extend(report.missing);
            show(FamilyLine {
                family: report.family.name().to_owned(),
                samples: report.samples,
                passed: report.passed,
                failures: report.failures,
            });
        }),
    }
    busy.finish_and_clear();
    if families.is_empty() {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(Failure::new(format!("--filter {filter}: no sample has that in its name")));
    }
    let report = Report {
        device: device.to_string(),
        samples: families.iter().map(|family| family.samples).sum(),
        passed: families.iter().map(|family| family.passed).sum(),
        failed: families.iter().map(|family| family.failures.len()).sum(),
        families,
        missing,
    };
    for reason in &report.missing {
        output.line(format!("{device} leaves to the CPU: {reason}"));
    }
    output.line(format!(
        "{}: {} samples, {} checks passed, {} failed, in {:.1} s",
        report.device,
        report.samples,
        report.passed,
        report.failed,
        began.elapsed().as_secs_f64()
    ));
    Ok(report)
}
