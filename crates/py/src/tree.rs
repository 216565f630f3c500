//! Trees of lists, tuples and dicts, whose leaves are arrays and anything else.

use cupola::Array;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::PyArray;

/// A leaf of a tree.
pub enum Leaf<'a, 'py> {
    Array(Array),
    Other(&'a Bound<'py, PyAny>),
}

/// Shows `f` every leaf, in order.
pub fn visit(
    tree: &Bound<'_, PyAny>,
    f: &mut dyn FnMut(Leaf<'_, '_>) -> PyResult<()>,
) -> PyResult<()> {
    if let Ok(array) = tree.cast::<PyArray>() {
        return f(Leaf::Array(array.get().get()));
    }
    if let Ok(list) = tree.cast::<PyList>() {
        return list.iter().try_for_each(|t| visit(&t, f));
    }
    if let Ok(tuple) = tree.cast::<PyTuple>() {
        return tuple.iter().try_for_each(|t| visit(&t, f));
    }
    if let Ok(dict) = tree.cast::<PyDict>() {
        return dict.iter().try_for_each(|(_, t)| visit(&t, f));
    }
    f(Leaf::Other(tree))
}
