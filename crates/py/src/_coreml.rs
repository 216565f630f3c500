//! `cupola.core._coreml`: models of Core ML, which `cupola.coreml` gives their Python form.

use cupola_import::coreml::{self, Port, Size};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::array::PyArray;
use crate::dtype::Dtype;
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::operand::Arr;

/// A function of a model that was read.
#[doc = docs!(_coreml::Model)]
#[pyclass(frozen, name = "Model", module = "cupola.core._coreml")]
pub struct CoremlModel(coreml::Model);

fn failed(error: coreml::Error) -> PyErr {
    raise(error.into())
}

/// The model of a package's folder or of a file, or of a file's bytes.
#[doc = docs!(_coreml::load)]
#[pyfunction]
#[pyo3(signature = (path=None, content=None))]
pub fn load(
    py: Python<'_>,
    path: Option<String>,
    content: Option<Vec<u8>>,
) -> PyResult<CoremlModel> {
    let read = match (path, content) {
        (Some(path), None) => py.detach(|| coreml::Model::load(path)),
        (None, Some(content)) => py.detach(|| coreml::Model::from_bytes(&content)),
        _ => return Err(wrong_value("[coreml.load] a path or the content of a file")),
    };
    read.map(CoremlModel).map_err(failed)
}

/// The operators that are read.
#[doc = docs!(_coreml::operators)]
#[pyfunction]
pub fn operators() -> Vec<String> {
    coreml::operators().into_iter().map(str::to_owned).collect()
}

/// What of a model may not do what is meant.
#[doc = docs!(_coreml::warnings)]
#[pyfunction]
pub fn warnings(model: &CoremlModel) -> Vec<String> {
    model.0.warnings().to_vec()
}

/// The name of the function, and those of all functions of its model.
#[doc = docs!(_coreml::functions)]
#[pyfunction]
pub fn functions(model: &CoremlModel) -> (String, Vec<String>) {
    let all = model.0.functions().into_iter().map(str::to_owned).collect();
    (model.0.name().to_owned(), all)
}

/// Another function of the model.
#[doc = docs!(_coreml::function)]
#[pyfunction]
pub fn function(model: &CoremlModel, name: &str) -> PyResult<CoremlModel> {
    let names = || model.0.functions().join("', '");
    let found = model.0.function(name);
    let found = found.ok_or_else(|| {
        wrong_value(format!("[coreml] no function '{name}': the model's are '{}'", names()))
    });
    found.map(CoremlModel)
}

/// The inputs of a model, or with `states` its states: name, dtype and sizes.
#[doc = docs!(_coreml::ports)]
#[pyfunction]
pub fn ports<'py>(
    py: Python<'py>,
    model: &CoremlModel,
    states: bool,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let all: Vec<&Port> = if states { model.0.states() } else { model.0.inputs() };
    for port in all {
        let shape = PyList::empty(py);
        for size in &port.sizes {
            match size {
                Size::Known(size) => shape.append(*size)?,
                range => shape.append(range.to_string())?,
            }
        }
        list.append((port.name.as_str(), Dtype(port.dtype), shape))?;
    }
    Ok(list)
}

/// The names of a model's outputs.
#[doc = docs!(_coreml::outputs)]
#[pyfunction]
pub fn outputs(model: &CoremlModel) -> Vec<String> {
    model.0.outputs().to_vec()
}

/// The labels of a classifier.
#[doc = docs!(_coreml::classes)]
#[pyfunction]
pub fn classes(model: &CoremlModel) -> Option<Vec<String>> {
    model.0.classes().map(<[String]>::to_vec)
}

/// The arrays that a model holds, by name.
#[doc = docs!(_coreml::constants)]
#[pyfunction]
pub fn constants<'py>(py: Python<'py>, model: &CoremlModel) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (name, array) in model.0.constants() {
        list.append((name, PyArray::new(array.clone())))?;
    }
    Ok(list)
}

/// Records a model on arrays for its inputs and states by name; gives its outputs, and then its states, by
/// name.
#[doc = docs!(_coreml::run)]
#[pyfunction]
pub fn run<'py>(
    py: Python<'py>,
    model: &CoremlModel,
    inputs: Vec<(String, Arr)>,
) -> PyResult<Bound<'py, PyList>> {
    let given: Vec<_> =
        inputs.iter().map(|(name, array)| (name.as_str(), array.clone().into_array())).collect();
    let outputs = py.detach(|| model.0.run(&given)).map_err(failed)?;
    let list = PyList::empty(py);
    for (name, array) in outputs {
        list.append((name, PyArray::new(array)))?;
    }
    Ok(list)
}
