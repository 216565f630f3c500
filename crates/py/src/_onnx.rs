//! `cupola.core._onnx`: models of ONNX, which `cupola.onnx` gives their Python form.

use std::collections::BTreeMap;

use cupola::graph::Graph;
use cupola::{Array, Aval};
use cupola_import::onnx::{self, Element, Input, Kind, Port, Size, Tensor, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::array::PyArray;
use crate::error::{carried, raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Sized};
use crate::tree;

/// A model that was read.
#[doc = docs!(_onnx::Model)]
#[pyclass(frozen, name = "Model", module = "cupola.core._onnx")]
pub struct OnnxModel(onnx::Model);

fn failed(error: onnx::Error) -> PyErr {
    raise(error.into())
}

/// The model of a file's bytes, or of a file, with what lies beside it.
#[doc = docs!(_onnx::load)]
#[pyfunction]
#[pyo3(signature = (path=None, content=None))]
pub fn load(py: Python<'_>, path: Option<String>, content: Option<Vec<u8>>) -> PyResult<OnnxModel> {
    let read = match (path, content) {
        (Some(path), None) => py.detach(|| onnx::Model::load(path)),
        (None, Some(content)) => py.detach(|| onnx::Model::from_bytes(&content)),
        _ => return Err(wrong_value("[onnx.load] a path or the content of a file")),
    };
    read.map(OnnxModel).map_err(failed)
}

/// The operators that are read: domain, name and the least version.
#[doc = docs!(_onnx::operators)]
#[pyfunction]
pub fn operators() -> Vec<(String, String, i64)> {
    let all = onnx::operators().into_iter();
    all.map(|(domain, name, since)| (domain.into(), name.into(), since)).collect()
}

/// The inputs of a model, or with `outputs` its outputs: name, kind, element type and sizes.
#[doc = docs!(_onnx::ports)]
#[pyfunction]
pub fn ports<'py>(
    py: Python<'py>,
    model: &OnnxModel,
    outputs: bool,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let all: Vec<&Port> = match outputs {
        true => model.0.outputs().iter().collect(),
        false => model.0.inputs(),
    };
    for port in all {
        let kind = match port.kind {
            Kind::Tensor => "tensor",
            Kind::Sequence => "sequence",
            Kind::Optional => "optional",
        };
        let sizes = port.sizes.as_ref().map(|sizes| {
            let known = |size: &Size| {
                if let Size::Known(size) = size { Ok(*size) } else { Err(size.to_string()) }
            };
            sizes.iter().map(known).collect::<Vec<_>>()
        });
        let shape = match sizes {
            None => None,
            Some(sizes) => {
                let shape = PyList::empty(py);
                for size in sizes {
                    match size {
                        Ok(size) => shape.append(size)?,
                        Err(name) => shape.append(name)?,
                    }
                }
                Some(shape)
            }
        };
        list.append((port.name.as_str(), kind, port.element.map(Element::name), shape))?;
    }
    Ok(list)
}

/// A value from Python: a pair of an array and its element type, a list of values, or `None`.
fn value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Nothing);
    }
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().map(|item| value(&item)).collect::<PyResult<_>>().map(Value::sequence);
    }
    let (array, name): (Arr, String) = object.extract()?;
    let found = Element::ALL.iter().find(|e| e.name() == name);
    let element =
        *found.ok_or_else(|| wrong_value(format!("[onnx] '{name}' is no element type")))?;
    Tensor::new(array.into_array(), element)
        .map(Value::from)
        .map_err(|e| wrong_type(format!("[onnx] {e}")))
}

/// A value for Python, as [`value`] takes it.
fn given<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Nothing => py.None().into_bound(py),
        Value::Tensor(tensor) => {
            let array = Bound::new(py, PyArray::new(tensor.array.clone()))?;
            PyTuple::new(
                py,
                [array.into_any(), tensor.element.name().into_pyobject(py)?.into_any()],
            )?
            .into_any()
        }
        Value::Sequence(values) => {
            let list = PyList::empty(py);
            for value in values.iter() {
                list.append(given(py, value)?)?;
            }
            list.into_any()
        }
    })
}

/// Records a model on values for its inputs by name; gives its outputs in order.
#[doc = docs!(_onnx::run)]
#[pyfunction]
pub fn run<'py>(
    py: Python<'py>,
    model: &OnnxModel,
    inputs: Vec<(String, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyList>> {
    let mut values: Vec<(&str, Value)> = Vec::with_capacity(inputs.len());
    for (name, object) in &inputs {
        values.push((name, value(object)?));
    }
    let outputs = py.detach(|| model.0.run_values(values)).map_err(failed)?;
    let list = PyList::empty(py);
    for (_, value) in &outputs {
        list.append(given(py, value)?)?;
    }
    Ok(list)
}

/// The arrays that a model holds, by name.
#[doc = docs!(_onnx::initializers)]
#[pyfunction]
pub fn initializers<'py>(py: Python<'py>, model: &OnnxModel) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (name, tensor) in model.0.initializers() {
        let array: Array = tensor.array.clone();
        list.append((name, PyArray::new(array), tensor.element.name()))?;
    }
    Ok(list)
}

/// The bytes of a model that computes what a function records for such arrays: with names for its inputs, and for
/// its outputs where they are given. Where an input has `sizes`, they take the place of its array's.
#[doc = docs!(_onnx::export)]
#[pyfunction]
#[pyo3(signature = (fun, args, inputs, outputs, opset, sizes=None))]
pub fn export<'py>(
    py: Python<'py>,
    fun: &Bound<'py, PyAny>,
    args: Vec<Arr>,
    inputs: Vec<String>,
    outputs: Option<Vec<String>>,
    opset: i64,
    sizes: Option<BTreeMap<String, Vec<Sized>>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let run = |tracers: &[Array]| -> PyResult<Vec<Array>> {
        let object = |array: &Array| Bound::new(py, PyArray::new(array.clone()));
        let args = tracers.iter().map(object).collect::<PyResult<Vec<_>>>()?;
        tree::arrays(&fun.call1(PyTuple::new(py, args)?)?)
    };
    let sizes = sizes.unwrap_or_default();
    if let Some(name) = sizes.keys().find(|name| !inputs.contains(name)) {
        let inputs = inputs.join(", ");
        return Err(wrong_value(format!("[onnx.export] sizes of '{name}', inputs are {inputs}")));
    }
    let mut known = Vec::with_capacity(inputs.len());
    for (name, array) in inputs.into_iter().zip(&args) {
        let aval = array.aval();
        let own: Vec<Size> = aval.shape.iter().map(|&size| Size::Known(size)).collect();
        let given = sizes.get(&name).map(|sizes| {
            let size = |size: &Sized| match size {
                Sized::Known(size) => Size::Known(*size),
                Sized::Named(name) => Size::Named(name.clone()),
            };
            sizes.iter().map(size).collect::<Vec<_>>()
        });
        let fits = |sizes: &Vec<Size>| {
            let same = |(size, own): (&Size, &Size)| size == own || matches!(size, Size::Named(_));
            sizes.len() == own.len() && sizes.iter().zip(&own).all(same)
        };
        if given.as_ref().is_some_and(|given| !fits(given)) {
            let text = format!("[onnx.export] the sizes of '{name}' do not fit its array {aval}");
            return Err(wrong_value(text));
        }
        known.push(Input { name, sizes: given.unwrap_or(own), dtype: aval.dtype });
    }
    let names = |count: usize| match (&outputs, count) {
        (Some(names), _) => names.clone(),
        (None, 1) => vec!["output".to_owned()],
        (None, _) => (0..count).map(|number| format!("output{number}")).collect(),
    };
    let trace = |avals: &[Aval]| Graph::trace(avals, |tracers| run(tracers).map_err(carried));
    let made = onnx::export_sized(&known, names, trace, opset);
    Ok(PyBytes::new(py, &made.map_err(raise)?))
}

/// Writes bytes to a file, whole or not at all.
#[doc = docs!(_onnx::write)]
#[pyfunction]
pub fn write(py: Python<'_>, path: &str, content: &[u8]) -> PyResult<()> {
    py.detach(|| cupola::io::write_whole(path, content)).map_err(raise)
}
