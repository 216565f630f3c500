//! What is checked of every sample.

mod batched;
mod close;
mod derivatives;
mod evaluated;
mod views;

use cupola_core::device::{DeviceKind, default_stream};
use cupola_core::prim::Op;
use cupola_core::transform::compile;
use cupola_core::{Array, DType, Device, Error, Result};

use crate::host::Host;
use crate::number::Number;
use crate::reference::reference;
use crate::sample::{Accuracy, Sample};

use close::{agree, agree_within, same};

/// A sample in one dtype.
pub struct Case<'s> {
    /// The primitive.
    pub op: Op,
    /// Its inputs.
    pub inputs: Vec<Host>,
    /// Where they come from.
    pub sample: &'s Sample,
}

/// A check of one sample in one dtype.
type Check = fn(&Case<'_>) -> Result<()>;

/// The checks of what a backend computes, in every dtype, by name.
const OF_BACKENDS: [(&str, Check); 2] = [("value", value), ("views", views::views)];

/// The check against what elements are known to be.
const FORMULA: (&str, Check) = ("formula", formula);

/// The check that laziness changes no value.
const EVALUATED: (&str, Check) = ("evaluated", evaluated::evaluated);

/// The checks of what else is recorded, in every dtype.
const OF_RECORDS: [(&str, Check); 2] = [("compiled", compiled), ("vmap", batched::batched)];

/// The checks of derivatives, in float64.
const DERIVATIVES: [(&str, Check); 2] =
    [("jvp", derivatives::forward), ("vjp", derivatives::backward)];

/// The check of second derivatives.
const SECOND_ORDER: (&str, Check) = ("second order", derivatives::second_order);

/// The check of derivatives whose results have less than float64.
const NARROWED: (&str, Check) = ("narrowed derivatives", derivatives::narrowed);

/// The check of derivatives of complex functions.
const COMPLEX: (&str, Check) = ("complex derivatives", derivatives::complex);

/// The check of derivatives that are known.
const KNOWN: (&str, Check) = ("slopes", derivatives::known);

/// The checks that hold for a case.
pub fn checks(case: &Case<'_>, dtype: DType) -> Vec<(&'static str, Check)> {
    let mut checks = OF_BACKENDS.to_vec();
    let avals: Vec<_> = case.inputs.iter().map(|h| &h.aval).collect();
    let outputs = case.op.infer(&avals).unwrap_or_default();
    if case.sample.formula.is_some() && matches!(dtype, DType::F32 | DType::F64) {
        checks.push(FORMULA);
    }
    let dtypes = avals.iter().copied().chain(&outputs).map(|aval| aval.dtype);
    if evaluated::holds(dtypes) && !evaluated::orders_sums(case) {
        checks.push(EVALUATED);
    }
    // Many samples alike are about what a backend computes, not about rules.
    let about_rules = case.sample.smooth || case.sample.slopes.is_some();
    if case.sample.cheap_kernels && !about_rules {
        return checks;
    }
    checks.extend(OF_RECORDS);
    let result = outputs.first().map(|out| out.dtype);
    // Differences need the precision of float64 on both sides.
    if case.sample.smooth && dtype == DType::F64 && result == Some(DType::F64) {
        checks.extend(DERIVATIVES);
        // What is recorded for it is the same on every device and of every size.
        if kernels_are_cheap() && case.largest_input() <= 1_000 {
            checks.push(SECOND_ORDER);
        }
    }
    if case.sample.smooth && dtype == DType::F64 && result == Some(DType::F32) {
        checks.push(NARROWED);
    }
    let precise = matches!(result, Some(DType::F32 | DType::F64 | DType::C64));
    let is_complex = dtype == DType::C64 || dtype == DType::F32 && result == Some(DType::C64);
    if case.sample.smooth && is_complex && precise && kernels_are_cheap() {
        checks.push(COMPLEX);
    }
    if case.sample.slopes.is_some() && dtype == DType::F64 {
        checks.push(KNOWN);
    }
    checks
}

impl Case<'_> {
    /// The op's outputs for other inputs of the same kind.
    fn run(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let refs: Vec<&Array> = inputs.iter().collect();
        Array::apply_multi(self.op.clone(), &refs)
    }

    /// How many elements the largest input has.
    fn largest_input(&self) -> usize {
        self.inputs.iter().map(|h| h.data.len()).max().unwrap_or(0)
    }

    /// The inputs on the device.
    fn arrays(&self) -> Result<Vec<Array>> {
        arrays(&self.inputs)
    }
}

/// How far results that should be the same may be apart.
fn slack(case: &Case<'_>, dtype: DType) -> f64 {
    if case.sample.accuracy == Accuracy::Exact { 0.0 } else { tolerance(dtype) }
}

fn arrays(hosts: &[Host]) -> Result<Vec<Array>> {
    hosts.iter().map(Host::to_array).collect()
}

fn hosts(arrays: &[Array]) -> Result<Vec<Host>> {
    arrays.iter().map(Host::of_array).collect()
}

/// Whether a device makes kernels at once, so that many ways of asking for the same cost little.
pub fn makes_kernels_at_once(device: Device) -> bool {
    device.kind == DeviceKind::Cpu
}

fn kernels_are_cheap() -> bool {
    makes_kernels_at_once(default_stream().device)
}

/// The device's result against the reference's.
fn value(case: &Case<'_>) -> Result<()> {
    let got = hosts(&case.run(&case.arrays()?)?)?;
    let avals: Vec<_> = got.iter().map(|h| h.aval.clone()).collect();
    let Some(want) = reference(&case.op, &case.inputs, &avals) else {
        return Err(Error::User("the suite has no reference for this op".into()));
    };
    for (got, want) in got.iter().zip(&want) {
        match case.sample.accuracy {
            Accuracy::Exact => agree("value", got, want, 0.0)?,
            Accuracy::Ulps(ulps) if kernels_are_cheap() => {
                agree_within("value", &case.op, &case.inputs, got, want, ulps)?;
            }
            _ => agree("value", got, want, tolerance(got.aval.dtype))?,
        }
    }
    Ok(())
}

/// The device's result against the formula of its elements.
fn formula(case: &Case<'_>) -> Result<()> {
    let Some(formula) = case.sample.formula else { return Ok(()) };
    for got in hosts(&case.run(&case.arrays()?)?)? {
        // What else it has are places, of other shapes.
        let is_alike = |host: &&Host| host.aval.shape == got.aval.shape;
        let inputs: Vec<&Host> = case.inputs.iter().filter(is_alike).collect();
        let of = |i: usize| {
            let elements: Vec<f64> = inputs.iter().map(|host| host.data[i].float()).collect();
            Number::Float(formula(&elements))
        };
        let want = Host::from_fn(got.aval.clone(), of);
        agree("formula", &got, &want, tolerance(got.aval.dtype))?;
    }
    Ok(())
}

fn compiled(case: &Case<'_>) -> Result<()> {
    let inputs = case.arrays()?;
    let want = hosts(&case.run(&inputs)?)?;
    let op = case.op.clone();
    let f = compile(move |_: &mut (), x: &[Array]| {
        Array::apply_multi(op.clone(), &x.iter().collect::<Vec<_>>())
    });
    for _ in 0..2 {
        for (got, want) in hosts(&f.call(&mut (), &inputs)?)?.iter().zip(&want) {
            same("compiled", got, want)?;
        }
    }
    Ok(())
}

/// How far a result may be from the reference, relative to 1 + |reference|. The inputs are exact in
/// the dtype, so this is the error of the operation: a few units in the last place, and more for
/// the sums of the samples.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 | DType::C32 => 4e-3,
        DType::BF16 => 3e-2,
        DType::F32 | DType::C64 => 5e-5,
        DType::F64 => 1e-11,
        _ => 0.0,
    }
}
