//! `cupola selftest`: the op suite, on a machine that has the program and no Rust.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::num::NonZero;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use cupola::backend::backends;
use cupola::suite::{FamilyReport, Share};
use cupola::{Device, DeviceKind, Error, cuda, memory, suite};
use serde::{Deserialize, Serialize};

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

#[derive(Serialize, Deserialize)]
struct FamilyLine {
    family: String,
    samples: usize,
    passed: usize,
    failures: Vec<String>,
}

/// What one share of the checks found of a family: a line of JSON from process to process.
#[derive(Serialize, Deserialize)]
struct Found {
    line: FamilyLine,
    missing: BTreeSet<String>,
}

impl From<FamilyReport> for Found {
    fn from(report: FamilyReport) -> Found {
        let line = FamilyLine {
            family: report.family.name().to_owned(),
            samples: report.samples,
            passed: report.passed,
            failures: report.failures,
        };
        Found { line, missing: report.missing }
    }
}

impl Found {
    /// With what another share found of the same family.
    fn with(mut self, other: Found) -> Found {
        self.line.passed += other.line.passed;
        self.line.failures.extend(other.line.failures);
        self.missing.extend(other.missing);
        self
    }
}

pub fn run(args: &SelftestArgs) -> Outcome {
    let output = Output::new(args.json.as_deref())?;
    // The samples ask for the precision of the dtype, which TF32 has not.
    cuda::set_matmul_precision(cuda::MatmulPrecision::Full);
    let devices = match args.device.is_empty() {
        true => backends().map(|backend| backend.device()).collect(),
        false => args.device.clone(),
    };
    if let Some(share) = args.share {
        for device in devices {
            suite::run(device, args.filter.as_deref(), share, &mut |report| {
                let text = serde_json::to_string(&Found::from(report)).unwrap_or_default();
                // Nobody waits for the rest where nobody reads.
                if writeln!(std::io::stdout(), "{text}").is_err() {
                    std::process::exit(1);
                }
            });
        }
        return Ok(());
    }
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
        false => {
            let mut note = |found: Found| {
                missing.extend(found.missing);
                show(found.line);
            };
            match args.processes.unwrap_or_else(|| processes(device)) {
                1 => suite::run(device, filter, Share::ALL, &mut |report| note(report.into())),
                count => in_processes(device, filter, count, &mut note)?,
            }
        }
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

/// The memory of a device that a process takes, and some to spare.
const OF_PROCESS: usize = 2 << 30;

/// How many processes test a device: many where kernels take long to make, since CUDA's run-time compiler reads one
/// text at a time in each.
fn processes(device: Device) -> usize {
    if device.kind != DeviceKind::Cuda {
        return 1;
    }
    let room = memory::stats(device).ok().and_then(|stats| stats.recommended_max);
    let room = room.map_or(1, |bytes| bytes / OF_PROCESS);
    thread::available_parallelism().map_or(1, NonZero::get).min(room).max(1)
}

/// Runs the suite in `count` processes, each with a share of the checks, and shows `note` each family's result when
/// all are through with it.
fn in_processes(
    device: Device,
    filter: Option<&str>,
    count: usize,
    note: &mut dyn FnMut(Found),
) -> Outcome {
    let mut shares = Vec::with_capacity(count);
    let (send, receive) = mpsc::channel();
    for index in 0..count {
        let (process, lines) = Process::start(device, filter, &format!("{index}/{count}"))?;
        let send = send.clone();
        shares.push(process);
        let told = thread::Builder::new().spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                // Nobody listens any more where another process has failed.
                if send.send((index, line)).is_err() {
                    return;
                }
            }
        });
        let share = format!("share {index}/{count}");
        told.map_err(|e| Failure::new(format!("cannot start a thread for {share}: {e}")))?;
    }
    drop(send);
    let mut told = vec![0; count];
    let mut found: Vec<(usize, Option<Found>)> = Vec::new();
    for (index, line) in receive {
        let own: Found = serde_json::from_str(&line)
            .map_err(|cause| Failure::new(format!("share {index}/{count}: {cause}: {line}")))?;
        let at = told[index];
        told[index] += 1;
        found.resize_with(found.len().max(at + 1), Default::default);
        let (shares, all) = &mut found[at];
        *shares += 1;
        *all = Some(match all.take() {
            Some(all) => all.with(own),
            None => own,
        });
        if *shares == count {
            all.take().into_iter().for_each(&mut *note);
        }
    }
    for (index, mut process) in shares.into_iter().enumerate() {
        let status = process.0.wait().map_err(Failure::new)?;
        if !status.success() {
            return Err(Failure::new(format!(
                "{device}: share {index}/{count} ended with {status}"
            )));
        }
    }
    Ok(())
}

/// A process with a share of the checks: it ends with this value.
struct Process(Child);

impl Process {
    fn start(
        device: Device,
        filter: Option<&str>,
        share: &str,
    ) -> Outcome<(Process, BufReader<ChildStdout>)> {
        let failed =
            |cause| Failure::new(format!("cannot start a process for share {share}: {cause}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("selftest").arg("--device").arg(device.to_string()).args(["--share", share]);
        command.args(filter.map(|filter| format!("--filter={filter}")));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let Some(lines) = child.stdout.take() else {
            return Err(Failure::new("a process has no standard output"));
        };
        Ok((Process(child), BufReader::new(lines)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
