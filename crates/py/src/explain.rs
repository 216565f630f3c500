//! `explain`: what an evaluation would run.

use cupola::explain::{Report, Roofline};
use cupola::{Array, plan};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::PyArray;
use crate::device::PyDevice;
use crate::error::raise;
use crate::generated::docs;
use crate::tree;

/// What an evaluation would run, step by step, beside the least time that the device could take for it. It
/// prints as a table.
#[doc = docs!(Explanation)]
#[pyclass(frozen, name = "Explanation", module = "cupola.core")]
pub struct Explanation(Report);

#[pymethods]
impl Explanation {
    /// The device on which it would run; of several plans that of the last.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.0.plan.device)
    }

    /// Whether that plan was there already: nothing was planned or compiled for this.
    #[getter]
    fn reused(&self) -> bool {
        self.0.plan.reused
    }

    /// The number of that plan: plans are numbered in the order in which they are made, and a profile's steps name
    /// theirs.
    #[getter]
    fn plan(&self) -> u64 {
        self.0.plan.plan
    }

    /// How often that plan ran.
    #[getter]
    fn runs(&self) -> u64 {
        self.0.plan.runs
    }

    /// The plans that would run before that one, in order, where there is work for more than one device: a dict each,
    /// with its device, number, whether it was there already, how often it ran, the rates of its device and how many of
    /// the steps it has.
    #[getter]
    fn before<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, "before")
    }

    /// The steps of all plans, in order: a dict each, with its device, what runs, what was fused into it, its arrays,
    /// bytes, operations and least time in microseconds.
    #[getter]
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.part(py, "steps")
    }

    /// The bytes that all steps read and write.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.plan.bytes()
    }

    /// The arithmetic operations of all steps.
    #[getter]
    fn operations(&self) -> u64 {
        self.0.plan.operations()
    }

    /// The least time of all steps, in seconds: for each the longer one of what its bytes take at the rate
    /// of the memory and what its operations take at that of the arithmetic, as measured on this machine. `None` where
    /// these could not be measured, as where a limit leaves no memory for it.
    #[getter]
    fn roofline_seconds(&self) -> Option<f64> {
        self.0.seconds()
    }

    /// All of it as JSON.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    /// A picture: a bar for each step, as long as its least time.
    fn to_svg(&self) -> String {
        self.0.to_svg()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

impl Explanation {
    /// What the JSON has under `key`.
    fn part<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        let text = self.0.to_json().to_string();
        py.import("json")?.call_method1("loads", (text,))?.get_item(key)
    }
}

/// What evaluating `fun(*args, **kwargs)` would run, after its arguments were computed: steps, what was fused
/// into each, bytes, operations, and the least time that this machine could take. The function is called;
/// what it evaluates itself is no part of it. Of several devices the steps of each are there, in the order in
/// which they would run.
#[doc = docs!(explain)]
#[pyfunction]
#[pyo3(signature = (fun, /, *args, **kwargs))]
pub fn explain(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Explanation> {
    let mut given = tree::arrays(args.as_any())?;
    if let Some(kwargs) = kwargs {
        given.extend(tree::arrays(kwargs.as_any())?);
    }
    py.detach(|| cupola::wait(&given)).map_err(raise)?;
    let results = tree::arrays(&fun.call(args, kwargs)?)?;
    py.detach(|| of(&results)).map_err(raise)
}

#[pymethods]
impl PyArray {
    /// What computing the array would run; nothing where it is computed already.
    fn explain(&self, py: Python<'_>) -> PyResult<Explanation> {
        let array = self.get();
        py.detach(|| of(&[array])).map_err(raise)
    }
}

fn of(arrays: &[Array]) -> cupola::Result<Explanation> {
    let plan = plan::explain(arrays)?;
    let roofline = Roofline::of(plan.device);
    Ok(Explanation(Report::new(plan, roofline)))
}
