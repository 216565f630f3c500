//! Functions as files: `export_function`, `import_function`, `exporter` and `export_to_dot`.
//!
//! The file is a package with one function, `main`, which has a trace for each signature.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cupola::graph::to_dot;
use cupola::io::{check_file, write_whole};
use cupola::package::{Function, Package, Port, Trace};
use cupola::{Array, Aval};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::array::PyArray;
use crate::error::{carried, raise, wrong_value};
use crate::generated::docs;
use crate::operand::Arr;

/// The function's name in its package.
const NAME: &str = "main";

/// The arrays of a call: by position, and by name in the order of names.
struct Call {
    positional: Vec<Array>,
    keywords: BTreeMap<String, Array>,
}

/// Arrays that are given one by one, or as a tuple and a dict of them.
fn call(op: &str, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Call> {
    let wrong = || {
        wrong_value(format!(
            "[{op}] Inputs can either be a variable number of positional and keyword arrays or a \
             single tuple and/or dictionary of arrays."
        ))
    };
    let array = |object: &Bound<'_, PyAny>| {
        object.cast::<PyArray>().map(|array| array.get().get()).map_err(|_| wrong())
    };
    let arrays = |object: &Bound<'_, PyAny>| -> PyResult<Option<Vec<Array>>> {
        if !object.is_instance_of::<PyTuple>() && !object.is_instance_of::<PyList>() {
            return Ok(None);
        }
        object.try_iter()?.map(|item| array(&item?)).collect::<PyResult<_>>().map(Some)
    };
    let named = |dict: &Bound<'_, PyDict>| {
        let item = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((name.extract::<String>().map_err(|_| wrong())?, array(&value)?))
        };
        dict.iter().map(item).collect::<PyResult<BTreeMap<_, _>>>()
    };
    let given = kwargs.filter(|kwargs| !kwargs.is_empty());
    let all: Vec<Bound<'_, PyAny>> = args.iter().collect();
    if given.is_none()
        && let [first, rest @ ..] = &all[..]
        && rest.len() <= 1
    {
        let last = rest.first().unwrap_or(first);
        let keywords = last.cast::<PyDict>().ok().map(named).transpose()?;
        match (arrays(first)?, keywords, rest) {
            (Some(positional), None, []) => {
                return Ok(Call { positional, keywords: BTreeMap::new() });
            }
            (None, Some(keywords), []) => return Ok(Call { positional: Vec::new(), keywords }),
            (Some(positional), Some(keywords), [_]) => return Ok(Call { positional, keywords }),
            _ => {}
        }
    }
    Ok(Call {
        positional: all.iter().map(array).collect::<PyResult<_>>()?,
        keywords: given.map(named).transpose()?.unwrap_or_default(),
    })
}

impl Call {
    fn arrays(&self) -> Vec<Array> {
        self.positional.iter().chain(self.keywords.values()).cloned().collect()
    }

    /// What they are called in a package.
    fn ports(&self) -> Vec<Port> {
        let name = |number: usize| {
            let name = format!("input{number}");
            if self.keywords.contains_key(&name) { format!("{name}_") } else { name }
        };
        let positional =
            self.positional.iter().enumerate().map(|(n, a)| Port::new(name(n), a.aval()));
        let keywords = self
            .keywords
            .iter()
            .map(|(name, a)| Port { is_keyword: true, ..Port::new(name.as_str(), a.aval()) });
        positional.chain(keywords).collect()
    }
}

/// The trace of a Python function for such arrays.
fn trace(fun: &Bound<'_, PyAny>, given: &Call, shapeless: bool) -> PyResult<Trace> {
    let py = fun.py();
    let avals: Vec<Aval> = given.arrays().iter().map(|a| a.aval().clone()).collect();
    let run = |tracers: &[Array]| -> PyResult<Vec<Array>> {
        let (positional, named) = tracers.split_at(given.positional.len());
        let object = |array: &Array| Bound::new(py, PyArray::new(array.clone()));
        let args = positional.iter().map(object).collect::<PyResult<Vec<_>>>()?;
        let kwargs = PyDict::new(py);
        for (name, array) in given.keywords.keys().zip(named) {
            kwargs.set_item(name, object(array)?)?;
        }
        let result = fun.call(PyTuple::new(py, args)?, Some(&kwargs))?;
        outputs(&result)
    };
    let run = |tracers: &[Array]| run(tracers).map_err(carried);
    let traced = match shapeless {
        true => Trace::of_any_size(given.ports(), &avals, run),
        false => Trace::of(given.ports(), &avals, run),
    };
    traced.map_err(raise)
}

/// The arrays that an exported function returned.
fn outputs(result: &Bound<'_, PyAny>) -> PyResult<Vec<Array>> {
    let wrong = || {
        wrong_value(
            "[export_function] Outputs can be either a single array, a tuple, or a list of arrays.",
        )
    };
    let array = |object: &Bound<'_, PyAny>| {
        object.cast::<PyArray>().map(|array| array.get().get()).map_err(|_| wrong())
    };
    if result.is_instance_of::<PyTuple>() || result.is_instance_of::<PyList>() {
        return result.try_iter()?.map(|item| array(&item?)).collect();
    }
    Ok(vec![array(result)?])
}

/// Writes the traces of one function.
fn save(path: &str, traces: Vec<Trace>, metadata: Option<String>) -> cupola::Result<()> {
    let function = Function { name: NAME.into(), traces };
    Package::new(vec![function])?.with_metadata(metadata).save(path)
}

/// Writes a function to a file, as the graph that it records for these arrays. They are given one by one,
/// or as a tuple and a dict of them. With `shapeless` it is for arrays of other sizes, too: the function is called
/// for several, and the numbers that it records have to be polynomials of the sizes. An axis of size 1 stays one.
#[doc = docs!(export_function)]
#[pyfunction]
#[pyo3(signature = (file, fun, *args, shapeless = false, metadata = None, **kwargs))]
pub fn export_function(
    py: Python<'_>,
    file: String,
    fun: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    shapeless: bool,
    metadata: Option<String>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let given = call("export_function", args, kwargs)?;
    let traces = vec![trace(fun, &given, shapeless)?];
    py.detach(|| save(&file, traces, metadata)).map_err(raise)
}

/// A function that was read: it takes the arrays that it was exported for, one by one, or as a tuple and a
/// dict of them, and gives a tuple.
#[pyclass(frozen, name = "_Imported", module = "cupola.core")]
pub struct Imported(Function);

/// Arrays or ports for people, as MLX lists them.
fn listed<T: std::fmt::Display>(positional: &[T], keywords: &[(&str, T)], indent: &str) -> String {
    let mut text =
        format!("{} positional inputs and {} keyword inputs:\n", positional.len(), keywords.len());
    for (number, input) in positional.iter().enumerate() {
        text += &format!("{indent}{}: {input}\n", number + 1);
    }
    for (name, input) in keywords {
        text += &format!("{indent}\"{name}\": {input}\n");
    }
    text
}

#[pymethods]
impl Imported {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let given = call("import_function::call", args, kwargs)?;
        let arrays = given.arrays();
        let avals: Vec<&Aval> = arrays.iter().map(Array::aval).collect();
        let names: Vec<&str> = given.keywords.keys().map(String::as_str).collect();
        let is_for = |trace: &&Trace| {
            let (keywords, positional): (Vec<&Port>, Vec<&Port>) =
                trace.inputs().iter().partition(|port| port.is_keyword);
            positional.len() == given.positional.len()
                && keywords.iter().map(|port| port.name.as_str()).eq(names.iter().copied())
                && trace.fits(&avals)
        };
        let Some(trace) = self.0.traces.iter().find(is_for) else {
            return Err(self.none_for(&given));
        };
        let outputs = trace.call(&arrays).map_err(raise)?;
        PyTuple::new(py, outputs.into_iter().map(PyArray::new))
    }

    fn __repr__(&self) -> String {
        format!("<imported function of {} traces>", self.0.traces.len())
    }
}

impl Imported {
    fn none_for(&self, given: &Call) -> PyErr {
        let mut text = String::from(
            "[import_function::call] No imported function found which matches the given positional \
             and keyword arguments. Possible functions include:\n",
        );
        for (number, trace) in self.0.traces.iter().enumerate() {
            let (keywords, positional): (Vec<&Port>, Vec<&Port>) =
                trace.inputs().iter().partition(|port| port.is_keyword);
            let keywords: Vec<(&str, &Port)> =
                keywords.into_iter().map(|port| (port.name.as_str(), port)).collect();
            let inputs = listed(&positional, &keywords, "   ");
            text += &format!(" {}. Function with {inputs}", number + 1);
        }
        let positional: Vec<&Aval> = given.positional.iter().map(Array::aval).collect();
        let keywords: Vec<(&str, &Aval)> =
            given.keywords.iter().map(|(name, array)| (name.as_str(), array.aval())).collect();
        wrong_value(format!("{text}\nCalled with {}", listed(&positional, &keywords, "  ")))
    }
}

/// Reads a function that `export_function`, `exporter` or the program wrote; with `return_metadata` the
/// text that was written with it, too. `name` picks one of several.
#[doc = docs!(import_function)]
#[pyfunction]
#[pyo3(signature = (file, return_metadata = false, *, name = None))]
pub fn import_function<'py>(
    py: Python<'py>,
    file: String,
    return_metadata: bool,
    name: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let package = py.detach(|| Package::open(&file)).map_err(raise)?;
    let metadata = package.metadata().unwrap_or_default().to_owned();
    let functions = package.into_functions();
    let names: Vec<String> = functions.iter().map(|f| format!("'{}'", f.name)).collect();
    let is_one = functions.len() == 1;
    let found = functions.into_iter().find(|function| match name {
        Some(name) => function.name == name,
        None => is_one || function.name == NAME,
    });
    let Some(function) = found else {
        let names = names.join(", ");
        return Err(wrong_value(format!(
            "[import_function] {file} has the functions {names}: say which one by `name`."
        )));
    };
    let imported = Bound::new(py, Imported(function))?.into_any();
    match return_metadata {
        false => Ok(imported),
        true => {
            let text = PyString::new(py, &metadata).into_any();
            Ok(PyTuple::new(py, [imported, text])?.into_any())
        }
    }
}

/// What writes several traces of a function to a file: it is called with the arrays of each, and the file is
/// written when it is closed. Made by `exporter`.
#[doc = docs!(FunctionExporter)]
#[pyclass(frozen, name = "FunctionExporter", module = "cupola.core")]
pub struct FunctionExporter {
    file: String,
    fun: Py<PyAny>,
    shapeless: bool,
    metadata: Option<String>,
    /// `None` once it is closed.
    traces: Mutex<Option<Vec<Trace>>>,
}

impl FunctionExporter {
    fn traces(&self) -> MutexGuard<'_, Option<Vec<Trace>>> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl FunctionExporter {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fun)
    }

    /// Traces the function for these arrays.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let closed = || {
            PyRuntimeError::new_err(
                "[export_function] Attempting to write after exporting is closed.",
            )
        };
        if self.traces().is_none() {
            return Err(closed());
        }
        let given = call("export_function", args, kwargs)?;
        let new = trace(self.fun.bind(py), &given, self.shapeless)?;
        let mut traces = self.traces();
        let Some(traces) = &mut *traces else { return Err(closed()) };
        // Where sizes have names, those of the trace say nothing.
        if traces.iter().any(|known| known.inputs() == new.inputs()) {
            return Err(PyRuntimeError::new_err(
                "[export_function] Attempting to export a function twice with the same signature is \
                 not allowed.",
            ));
        }
        traces.push(new);
        Ok(())
    }

    /// Writes the file.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(traces) = self.traces().take() else { return Ok(()) };
        py.detach(|| save(&self.file, traces, self.metadata.clone())).map_err(raise)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Writes the file; after an exception nothing is written.
    #[pyo3(signature = (exc_type = None, exc_value = None, traceback = None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<Bound<'_, PyAny>>,
        exc_value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (exc_value, traceback);
        if exc_type.is_some() {
            self.traces().take();
            return Ok(());
        }
        self.close(py)
    }
}

/// A context in which a function is traced several times, for one file. Leaving it writes the file.
#[doc = docs!(exporter)]
#[pyfunction]
#[pyo3(signature = (file, fun, *, shapeless = false, metadata = None))]
pub fn exporter(
    file: String,
    fun: Py<PyAny>,
    shapeless: bool,
    metadata: Option<String>,
) -> PyResult<FunctionExporter> {
    // Whether it can be written is seen before any work is done.
    if !std::path::Path::new(&file).is_dir() {
        check_file(&file, "a function").map_err(raise)?;
    }
    let traces = Mutex::new(Some(Vec::new()));
    Ok(FunctionExporter { file, fun, shapeless, metadata, traces })
}

/// Writes what was recorded for arrays, and is not computed yet, as a drawing in the DOT language. Arrays
/// that are given by name have it in the drawing.
#[doc = docs!(export_to_dot)]
#[pyfunction]
#[pyo3(signature = (file, *args, **kwargs))]
pub fn export_to_dot(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let array = |object: &Bound<'_, PyAny>| object.extract::<Arr>().map(Arr::into_array);
    let outputs = args.iter().map(|object| array(&object)).collect::<PyResult<Vec<_>>>()?;
    let mut names: Vec<(String, Array)> = Vec::new();
    for (name, object) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        names.push((name.extract()?, array(&object)?));
    }
    let text = to_dot(&outputs, &names);
    if let Ok(path) = file.extract::<String>() {
        return py.detach(|| write_whole(&path, &text)).map_err(raise);
    }
    if !file.hasattr("write")? {
        return Err(wrong_value(
            "[export_to_dot] Accepts file-like objects or strings to be used as filenames.",
        ));
    }
    file.call_method1("write", (text,)).map(drop)
}
