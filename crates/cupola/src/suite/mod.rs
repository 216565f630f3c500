//! The op suite: samples of every primitive, checked on any device that the program can use.
//!
//! It is a library so that `cupola selftest` can run it where there is no Rust. For every sample
//! and every dtype that it takes: the value against plain loops in `f64`, strided, offset and
//! transposed inputs, the compiled graph, and `vmap` against a loop; in `f64` the jvp against
//! finite differences and the vjp against the jvp.

mod check;
mod edges;
mod family;
mod host;
mod large;
mod reference;
mod samples;

use std::collections::BTreeSet;

use cupola_core::device::with_stream;
use cupola_core::{DType, Device, Error, Stream, fallback};

pub use family::Family;
pub use large::{LargeReport, run_large};

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

/// Runs the samples whose `family/name` contains `filter` on `device`, a family at a time, and
/// shows `report` each family's result as soon as it is there. Nothing falls back to the CPU
/// meanwhile, in any thread.
///
/// # Example
/// ```
/// use cupola::{Device, suite};
/// let mut failures = Vec::new();
/// suite::run(Device::CPU, Some("select/"), &mut |family| failures.extend(family.failures));
/// assert!(failures.is_empty(), "{failures:?}");
/// ```
pub fn run(device: Device, filter: Option<&str>, report: &mut dyn FnMut(FamilyReport)) {
    without_fallback(|| run_families(device, filter, report));
}

/// Runs `f` while nothing falls back to the CPU, in any thread.
fn without_fallback(f: impl FnOnce()) {
    let before = fallback::policy();
    fallback::set_policy(fallback::Policy::Error);
    f();
    fallback::set_policy(before);
}

fn run_families(device: Device, filter: Option<&str>, report: &mut dyn FnMut(FamilyReport)) {
    for family in Family::ALL {
        let mut result = FamilyReport {
            family,
            samples: 0,
            passed: 0,
            failures: Vec::new(),
            missing: BTreeSet::new(),
        };
        for sample in samples::samples(family) {
            let name = format!("{}/{}", family.name(), sample.name);
            if filter.is_some_and(|f| !name.contains(f)) {
                continue;
            }
            result.samples += 1;
            with_stream(Stream::of(device), || run_sample(&sample, &name, &mut result));
        }
        if result.samples > 0 {
            report(result);
        }
    }
}

fn run_sample(sample: &samples::Sample, name: &str, result: &mut FamilyReport) {
    for dtype in DType::ALL {
        let Some((op, inputs)) = sample.in_dtype(dtype) else { continue };
        let of_family = Family::of(&op) == result.family;
        if !of_family {
            result.failures.push(format!("{name}: is a sample of {}", Family::of(&op).name()));
        }
        // Differences need the precision of f64 on both sides.
        let avals: Vec<_> = inputs.iter().map(|h| &h.aval).collect();
        let precise = op.infer(&avals).is_ok_and(|out| out[0].dtype == DType::F64);
        let derivatives = sample.smooth && dtype == DType::F64 && precise;
        let checks =
            check::EVERY_DTYPE.iter().chain(check::DERIVATIVES.iter().filter(|_| derivatives));
        for (what, check) in checks {
            match check(&op, &inputs) {
                Ok(()) => result.passed += 1,
                Err(Error::Unsupported { reason, .. }) => {
                    result.missing.insert(reason);
                }
                Err(error) => result.failures.push(format!("{name} {dtype} {what}: {error}")),
            }
        }
    }
}
