//! `cupola.core._graph`: what `cupola.graph` is made of besides functions.

use cupola::package::{Function, Package, Port, Size, Trace, Weight};
use cupola::{Array, Aval};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::PyArray;
use crate::dtype::Dtype;
use crate::error::{carried, raise};
use crate::generated::docs;
use crate::operand::{Arr, Sized};
use crate::tree;

/// An input: its name, the dtype of its elements, its sizes, and numbers for them.
type Given = (String, Dtype, Vec<Sized>, Vec<usize>);

/// A trace as Python gives it: inputs, weights, names of outputs, and what makes these.
type Made = (Vec<Given>, Vec<(String, Arr)>, Vec<String>, Py<PyAny>);

/// Writes functions to a package: for each its name, and its traces. Of a trace there are its inputs, its weights by
/// name, the names of its outputs, and what makes a list of these from lists of the other two.
#[doc = docs!(_graph::save)]
#[pyfunction]
pub fn save(
    py: Python<'_>,
    path: String,
    functions: Vec<(String, Vec<Made>)>,
    metadata: Option<String>,
) -> PyResult<()> {
    let mut made = Vec::with_capacity(functions.len());
    for (name, traces) in functions {
        let traces = traces
            .into_iter()
            .map(|(inputs, weights, outputs, f)| trace(py, inputs, weights, outputs, f.bind(py)));
        made.push(Function { name, traces: traces.collect::<PyResult<_>>()? });
    }
    let write = || Package::new(made)?.with_metadata(metadata).save(path);
    py.detach(write).map_err(raise)
}

fn trace(
    py: Python<'_>,
    inputs: Vec<Given>,
    weights: Vec<(String, Arr)>,
    outputs: Vec<String>,
    f: &Bound<'_, PyAny>,
) -> PyResult<Trace> {
    let mut ports = Vec::with_capacity(inputs.len());
    let mut avals = Vec::with_capacity(inputs.len());
    for (name, dtype, sizes, numbers) in inputs {
        let aval = Aval::new(numbers, dtype.0);
        let size = |size: Sized| match size {
            Sized::Known(size) => Size::Known(size),
            Sized::Named(name) => Size::Named(name),
        };
        let sizes = sizes.into_iter().map(size).collect();
        ports.push(Port { sizes, ..Port::new(name, &aval) });
        avals.push(aval);
    }
    let weights =
        weights.into_iter().map(|(name, array)| Weight { name, array: array.into_array() });
    let objects = |arrays: &[Array]| {
        let object = |array: &Array| Bound::new(py, PyArray::new(array.clone()));
        arrays.iter().map(object).collect::<PyResult<Vec<_>>>()
    };
    let run = |given: &[Array], held: &[Array]| -> PyResult<Vec<Array>> {
        tree::arrays(&f.call1(PyTuple::new(py, [objects(given)?, objects(held)?])?)?)
    };
    let run = |given: &[Array], held: &[Array]| run(given, held).map_err(carried);
    let trace = Trace::holding(ports, &avals, weights.collect(), run).map_err(raise)?;
    Ok(trace.named(outputs, |_| None))
}
