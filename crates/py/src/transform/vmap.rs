//! `vmap`.

use cupola::Array;
use pyo3::PyTraverseError;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::{function, only_arrays};
use crate::array::PyArray;
use crate::error::{carried, raise, wrong_value};
use crate::generated::docs;
use crate::tree::{self, Leaf, Level, Template};

/// A function over a batch.
#[pyclass(frozen, name = "_Batched", module = "cupola.core")]
pub struct BatchedFunction {
    fun: Py<PyAny>,
    in_axes: Py<PyAny>,
    out_axes: Py<PyAny>,
}

/// The axis of each array of `tree`: `axes` is one for all, or a tree of them that goes along.
pub fn axes_of(
    tree: &Bound<'_, PyAny>,
    axes: &Bound<'_, PyAny>,
    out: &mut Vec<Option<isize>>,
) -> PyResult<()> {
    let unfit =
        || wrong_value("[tree_map] Additional input tree is not a valid prefix of the first tree.");
    if axes.is_none() || axes.extract::<isize>().is_ok() {
        let axis: Option<isize> = axes.extract()?;
        return tree::visit(tree, &mut |leaf| {
            if let Leaf::Array(_) = leaf {
                out.push(axis);
            }
            Ok(())
        });
    }
    if tree.is_instance_of::<PyArray>() {
        return Err(unfit());
    }
    let _level = Level::enter()?;
    if let (Ok(tree), Ok(axes)) = (tree.cast::<PyDict>(), axes.cast::<PyDict>()) {
        for (key, value) in tree.iter() {
            axes_of(&value, &axes.get_item(key)?.ok_or_else(unfit)?, out)?;
        }
        return Ok(());
    }
    let is_list =
        |o: &Bound<'_, PyAny>| o.is_instance_of::<PyList>() || o.is_instance_of::<PyTuple>();
    if !is_list(tree) || !is_list(axes) || tree.len()? != axes.len()? {
        return Err(unfit());
    }
    for (one, axis) in tree.try_iter()?.zip(axes.try_iter()?) {
        axes_of(&one?, &axis?, out)?;
    }
    Ok(())
}

#[pymethods]
impl BatchedFunction {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fun)?;
        visit.call(&self.in_axes)?;
        visit.call(&self.out_axes)?;
        Ok(())
    }

    #[pyo3(signature = (*args))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut arrays = Vec::new();
        let arguments = only_arrays(args.as_any(), &mut arrays)?;
        let mut in_axes = Vec::new();
        let axes = self.in_axes.bind(py);
        // Of one argument that is a list or a dict a list or a dict of axes may be given as it is.
        let goes_along = |one: &Bound<'_, PyAny>| {
            (one.is_instance_of::<PyList>() && axes.is_instance_of::<PyList>())
                || (one.is_instance_of::<PyDict>() && axes.is_instance_of::<PyDict>())
        };
        match args.iter().next() {
            Some(one) if args.len() == 1 && goes_along(&one) => {
                axes_of(&one, axes, &mut in_axes)?;
            }
            _ => axes_of(args.as_any(), axes, &mut in_axes)?,
        }
        let mut template: Option<Template> = None;
        let call = |tracers: &[Array]| {
            let result = (|| {
                let args = arguments.fill(py, &mut tracers.iter())?;
                let result = self.fun.bind(py).call1(args.cast_into::<PyTuple>()?)?;
                let mut outputs = Vec::new();
                template = Some(only_arrays(&result, &mut outputs)?);
                let mut axes = Vec::new();
                // Of one array a tuple of one axis may be given.
                match self.out_axes.bind(py).extract::<(Bound<'_, PyAny>,)>() {
                    Ok((axis,)) if result.is_instance_of::<PyArray>() => {
                        axes_of(&result, &axis, &mut axes)?;
                    }
                    _ => axes_of(&result, self.out_axes.bind(py), &mut axes)?,
                }
                let axes = axes
                    .into_iter()
                    .map(|a| {
                        a.ok_or_else(|| {
                            wrong_value("[vmap] An output has no axis: out_axes is None.")
                        })
                    })
                    .collect::<PyResult<Vec<isize>>>()?;
                Ok((outputs, axes))
            })();
            result.map_err(carried)
        };
        let outputs = cupola_core::binding::vmap_traced(&in_axes, &arrays, call).map_err(raise)?;
        match template {
            Some(template) => template.fill(py, &mut outputs.iter()),
            None => Ok(py.None().into_bound(py)),
        }
    }
}

/// Axes for arguments or results.
pub enum Axes {
    First,
    Given(Py<PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Axes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.is_none() {
            true => Err(PyTypeError::new_err("an axis, or a tree of axes, is needed, not None")),
            false => Ok(Axes::Given(object.to_owned().unbind())),
        }
    }
}

/// A function that runs `fun` over a batch, which arguments and results carry along these axes.
#[doc = docs!(vmap)]
#[pyfunction]
#[pyo3(signature = (fun, in_axes = Axes::First, out_axes = Axes::First), text_signature = "(fun, in_axes=0, out_axes=0)")]
pub fn vmap<'py>(
    py: Python<'py>,
    fun: Bound<'py, PyAny>,
    in_axes: Axes,
    out_axes: Axes,
) -> PyResult<Bound<'py, PyAny>> {
    let axis = |axes: Axes| match axes {
        Axes::Given(axes) => Ok(axes),
        Axes::First => Ok::<_, PyErr>(0i32.into_pyobject(py)?.into_any().unbind()),
    };
    let (in_axes, out_axes) = (axis(in_axes)?, axis(out_axes)?);
    let call = BatchedFunction { fun: fun.clone().unbind(), in_axes, out_axes };
    function(&fun, Bound::new(py, call)?.into_any())
}
