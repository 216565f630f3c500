//! Transforms of Python functions.

pub mod compile;
pub mod control;
pub mod custom;
pub mod grad;
pub mod jacobian;
pub mod vmap;

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyTuple};

use crate::error::{wrong_type, wrong_value};
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

/// Arguments at some positions, with their arrays taken out.
struct Positional<'a> {
    positions: &'a [usize],
    templates: Vec<Template>,
}

impl<'a> Positional<'a> {
    /// Takes the arguments at `positions` apart; an error, which begins as `failed` says, where one is not there.
    fn split(
        args: &Bound<'_, PyTuple>,
        positions: &'a [usize],
        arrays: &mut Vec<cupola::Array>,
        failed: impl Fn(usize) -> String,
    ) -> PyResult<Self> {
        let one = |&position: &usize| {
            if position >= args.len() {
                return Err(wrong_value(format!(
                    "{} because the function is called with only {} positional arguments.",
                    failed(position),
                    args.len()
                )));
            }
            only_arrays(&args.get_item(position)?, arrays)
        };
        let templates = positions.iter().map(one).collect::<PyResult<_>>()?;
        Ok(Positional { positions, templates })
    }

    /// The arguments with these arrays in the places of the former ones.
    fn fill<'py>(
        &self,
        py: Python<'py>,
        arrays: &mut dyn Iterator<Item = &cupola::Array>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.templates.iter().map(|template| template.fill(py, arrays)).collect()
    }

    /// All of `args`, these with other arrays.
    fn replaced<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        arrays: &mut dyn Iterator<Item = &cupola::Array>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut all: Vec<Bound<'py, PyAny>> = args.iter().collect();
        for (&position, argument) in self.positions.iter().zip(self.fill(args.py(), arrays)?) {
            all[position] = argument;
        }
        PyTuple::new(args.py(), all)
    }
}

/// An ordinary Python function that calls `call`, with the name and the text of `fun`: unlike an
/// object that can be called, it becomes a method in a class.
fn function<'py>(fun: &Bound<'py, PyAny>, call: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static WRAP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = fun.py();
    if !fun.is_callable() {
        return Err(wrong_type(format!("a function is expected, not {}", fun.get_type().name()?)));
    }
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
