//! Trees of lists, tuples and dicts, whose leaves are arrays and anything else.

use cupola::Array;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::PyArray;
use crate::random::RandomState;

/// A leaf of a tree.
pub enum Leaf<'a, 'py> {
    Array(&'a Bound<'py, PyArray>),
    /// The default generator, whose state `compile` takes care of.
    Random,
    Other(&'a Bound<'py, PyAny>),
}

/// Shows `f` every leaf, in order.
pub fn visit<'py>(
    tree: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(Leaf<'_, 'py>) -> PyResult<()>,
) -> PyResult<()> {
    if let Ok(array) = tree.cast::<PyArray>() {
        return f(Leaf::Array(array));
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
    if tree.is_instance_of::<RandomState>() {
        return f(Leaf::Random);
    }
    f(Leaf::Other(tree))
}

/// The arrays in a tree, in order.
pub fn arrays(tree: &Bound<'_, PyAny>) -> PyResult<Vec<Array>> {
    let mut found = Vec::new();
    visit(tree, &mut |leaf| {
        match leaf {
            Leaf::Array(array) => found.push(array.get().get()),
            Leaf::Random => found.push(cupola::generator::state()),
            Leaf::Other(_) => {}
        }
        Ok(())
    })?;
    Ok(found)
}

/// A tree of the same structure with every array replaced by what `f` gives; other leaves stay.
pub fn map<'py>(
    tree: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(&Array) -> PyResult<Array>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tree.py();
    if let Ok(array) = tree.cast::<PyArray>() {
        let changed = f(&array.get().get())?;
        return Ok(Bound::new(py, PyArray::new(changed))?.into_any());
    }
    if let Ok(list) = tree.cast::<PyList>() {
        let items = list.iter().map(|t| map(&t, f)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, items)?.into_any());
    }
    if let Ok(tuple) = tree.cast::<PyTuple>() {
        let items = tuple.iter().map(|t| map(&t, f)).collect::<PyResult<Vec<_>>>()?;
        let items = PyTuple::new(py, items)?;
        // A named tuple stays one.
        return match tuple.is_exact_instance_of::<PyTuple>() {
            true => Ok(items.into_any()),
            false => tuple.get_type().call1(items),
        };
    }
    if let Ok(dict) = tree.cast::<PyDict>() {
        let out = PyDict::new(py);
        for (key, value) in dict.iter() {
            out.set_item(key, map(&value, f)?)?;
        }
        return Ok(out.into_any());
    }
    Ok(tree.clone())
}
