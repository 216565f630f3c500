//! The op suite: samples of every primitive, checked on any device that the program can use.
//!
//! It is a library so that each backend runs it in its own tests, and `cupola selftest` where there
//! is no Rust. A file a family has its samples, its edges and its references. For every sample and
//! every dtype that it takes: the value against plain loops over exact integers and `f64`; strided,
//! offset and transposed inputs; the same bits whether or not what is between was evaluated; the
//! compiled graph; `vmap` against a loop. In `f64` the jvp against finite differences and the vjp
//! against the jvp, and the same of the vjp; of complex functions the derivatives of their parts.

mod arg_reduce;
mod attention;
mod binary;
mod call;
mod cast;
mod check;
mod compare;
mod control;
mod conv;
mod create;
mod dot;
mod edges;
mod family;
mod fft;
mod functions;
mod gather;
mod host;
mod large;
mod linalg;
mod mark;
mod movement;
mod norm;
mod number;
mod pool;
mod programs;
mod quantized;
mod random;
mod reduce;
mod reference;
mod sample;
mod scan;
mod select;
mod sort;
#[cfg(test)]
mod stored;
mod support;
mod unary;

use std::collections::BTreeSet;

use cupola_core::device::with_stream;
use cupola_core::{DType, Device, Error, Stream, fallback};

use check::Case;
pub use family::Family;
pub use large::{LargeReport, run_large};
use sample::Sample;
pub use support::{OpSupport, Support, support};
pub use unary::of_float as real;

/// What the suite found for one family.
#[derive(Clone, Debug)]
pub struct FamilyReport {
    /// The family.
    pub family: Family,
    /// How many samples ran.
    pub samples: usize,
    /// How many checks passed.
    pub passed: usize,
    /// A line for each check that failed.
    pub failures: Vec<String>,
    /// What the device has no kernel for, and why: a program that needs it falls back to the CPU.
    pub missing: BTreeSet<String>,
}

/// Runs the samples whose `family/name`, or whose op's name, contains `filter` on `device`, and shows
/// `report` each family's result in turn: of the checks those that `share` has. Nothing falls back to the CPU
/// meanwhile, in any thread.
///
/// # Example
/// ```no_run
/// # use cupola_core::Device;
/// // In a program that links the CPU backend.
/// let mut failures = Vec::new();
/// cupola_suite::run(Device::CPU, Some("select/"), cupola_suite::Share::ALL, &mut |family| failures.extend(family.failures));
/// assert!(failures.is_empty(), "{failures:?}");
/// ```
pub fn run(
    device: Device,
    filter: Option<&str>,
    share: Share,
    report: &mut dyn FnMut(FamilyReport),
) {
    let selection = |number, dtype| share.has(number, dtype);
    without_fallback(|| run_families(device, filter, &selection, report));
}

/// One of so many shares of the checks, which processes have beside each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Its number, from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

impl Share {
    /// The only share.
    pub const ALL: Share = Share { index: 0, count: 1 };

    /// Whether it has the checks of a sample in a dtype: those of one sample are in several shares.
    fn has(self, number: usize, dtype: DType) -> bool {
        (number + 7 * dtype as usize) % self.count == self.index
    }
}

/// Runs the samples of one family on `device`, each in the dtypes that `part` takes of those of the
/// sample of this number.
///
/// # Panics
/// With a line for each check that failed, and for each kernel that is missing on the device but
/// where `may_lack` says that it may.
pub fn assert_part(
    device: Device,
    family: Family,
    part: impl Fn(usize, DType) -> bool,
    may_lack: impl Fn(&str) -> bool,
) {
    let (mut samples, mut checked, mut lacking) = (0, 0, 0);
    let mut failures = Vec::new();
    let filter = format!("{}/", family.name());
    let mut note = |report: FamilyReport| {
        samples += report.samples;
        checked += report.passed;
        failures.extend(report.failures);
        let (allowed, missing): (Vec<_>, Vec<_>) =
            report.missing.into_iter().partition(|reason| may_lack(reason));
        lacking += allowed.len();
        failures.extend(missing.into_iter().map(|reason| format!("no kernel: {reason}")));
    };
    without_fallback(|| run_families(device, Some(&filter), &part, &mut note));
    let name = family.name();
    println!(
        "{name}: {samples} samples, {checked} checks passed on {device}, {lacking} lack kernels"
    );
    let count = failures.len();
    assert!(count == 0, "{count} failed on {device}:\n{}", failures.join("\n"));
    assert!(checked + lacking > 0, "no sample of {name} ran on {device}");
}

/// Runs the samples of one family on `device`, in every dtype.
///
/// # Panics
/// As [`assert_part`].
pub fn assert_family(device: Device, family: Family, may_lack: impl Fn(&str) -> bool) {
    assert_part(device, family, |_, _| true, may_lack);
}

/// Which dtypes of which sample run.
type Selection<'s> = dyn Fn(usize, DType) -> bool + 's;

/// Runs `f` while nothing falls back to the CPU, in any thread.
fn without_fallback(f: impl FnOnce()) {
    let before = fallback::policy();
    fallback::set_policy(fallback::Policy::Error);
    f();
    fallback::set_policy(before);
}

/// The samples of a family that run, by number.
struct Chosen {
    family: Family,
    numbers: Vec<usize>,
}

fn chosen(device: Device, filter: Option<&str>) -> Vec<Chosen> {
    let of_family = |&family: &Family| {
        let runs = |sample: &Sample| {
            let elsewhere = sample.cheap_kernels && !check::makes_kernels_at_once(device);
            let name = || format!("{}/{}", family.name(), sample.name);
            let is_asked_for = |filter: &str| {
                name().contains(filter) || sample.op_name().is_some_and(|op| op.contains(filter))
            };
            !elsewhere && filter.is_none_or(is_asked_for)
        };
        let samples = family.samples();
        let numbers = (0..samples.len()).filter(|&number| runs(&samples[number])).collect();
        Chosen { family, numbers }
    };
    Family::ALL.iter().map(of_family).filter(|chosen| !chosen.numbers.is_empty()).collect()
}

fn run_families(
    device: Device,
    filter: Option<&str>,
    selection: &Selection<'_>,
    report: &mut dyn FnMut(FamilyReport),
) {
    for Chosen { family, numbers } in chosen(device, filter) {
        let (samples, mut result) = (family.samples(), FamilyReport::of(family));
        for number in numbers {
            result.add(run_sample(&samples, number, family, selection, Stream::of(device)));
        }
        report(result);
    }
}

impl FamilyReport {
    fn of(family: Family) -> FamilyReport {
        FamilyReport {
            family,
            samples: 0,
            passed: 0,
            failures: Vec::new(),
            missing: BTreeSet::new(),
        }
    }

    fn add(&mut self, other: FamilyReport) {
        self.samples += other.samples;
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.missing.extend(other.missing);
    }
}

fn run_sample(
    samples: &[Sample],
    number: usize,
    family: Family,
    selection: &Selection<'_>,
    stream: Stream,
) -> FamilyReport {
    let mut result = FamilyReport { samples: 1, ..FamilyReport::of(family) };
    let Some(sample) = samples.get(number) else { return result };
    let name = format!("{}/{}", family.name(), sample.name);
    with_stream(stream, || {
        for dtype in DType::ALL.into_iter().filter(|&dtype| selection(number, dtype)) {
            run_in(sample, &name, dtype, &mut result);
        }
    });
    result
}

fn run_in(sample: &Sample, name: &str, dtype: DType, result: &mut FamilyReport) {
    let Some((op, inputs)) = sample.in_dtype(dtype) else { return };
    if !result.family.has(&op) {
        result.failures.push(format!("{name}: is a sample of {}", Family::of(&op).name()));
    }
    let case = Case { op, inputs, sample };
    for (what, check) in check::checks(&case, dtype) {
        match check(&case) {
            Ok(()) => result.passed += 1,
            Err(Error::Unsupported { reason, .. }) => {
                result.missing.insert(reason);
            }
            Err(error) => result.failures.push(format!("{name} {dtype} {what}: {error}")),
        }
    }
}
