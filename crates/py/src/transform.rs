//! Transforms of Python functions.

pub mod compile;
pub mod custom;
pub mod grad;
pub mod jacobian;
pub mod vmap;

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyTuple};

use crate::error::wrong_value;
use crate::tree::Template;

/// The arguments of a call, with their arrays taken out.
pub struct Arguments {
    positional: Template,
    keywords: Template,
}

impl Arguments {
    /// Takes the arguments apart; gives the arrays, too.
    pub fn split(
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        arrays: &mut Vec<cupola::Array>,
    ) -> PyResult<Self> {
        let positional = Template::of(args.as_any(), arrays)?;
        let keywords = match kwargs {
            Some(kwargs) => Template::of(kwargs.as_any(), arrays)?,
            None => Template::none(args.py()),
        };
        Ok(Arguments { positional, keywords })
    }

    /// Shows Python's garbage collector what they hold.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.positional.traverse(visit)?;
        self.keywords.traverse(visit)
    }

    /// Calls `fun` with the arguments, and these arrays in the places of the former ones.
    pub fn call<'py>(
        &self,
        fun: &Bound<'py, PyAny>,
        arrays: &[cupola::Array],
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = fun.py();
        let mut arrays = arrays.iter();
        let positional = self.positional.fill(py, &mut arrays)?;
        let keywords = self.keywords.fill(py, &mut arrays)?;
        fun.call(positional.cast::<PyTuple>()?, keywords.cast::<PyDict>().ok())
    }
}

/// An ordinary Python function that calls `call`, with the name and the text of `fun`: unlike an
/// object that can be called, it becomes a method in a class.
fn function<'py>(fun: &Bound<'py, PyAny>, call: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static WRAP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = fun.py();
    let wrap = WRAP.get_or_try_init(py, || {
        let module = PyModule::from_code(
            py,
            c"
import functools

def wrap(fun, call):
    def function(*args, **kwargs):
        return call(*args, **kwargs)
    try:
        return functools.update_wrapper(function, fun)
    except Exception:
        return function
",
            c"cupola/core/wrap.py",
            c"cupola.core.wrap",
        )?;
        Ok::<_, PyErr>(module.getattr("wrap")?.unbind())
    })?;
    wrap.bind(py).call1((fun, call))
}

/// A tree of arrays and nothing else.
fn only_arrays(tree: &Bound<'_, PyAny>, arrays: &mut Vec<cupola::Array>) -> PyResult<Template> {
    let template = Template::of(tree, arrays)?;
    match template.has_only_arrays() {
        true => Ok(template),
        false => Err(wrong_value("[tree_flatten] The argument should contain only arrays")),
    }
}
