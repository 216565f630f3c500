//! `grad`, `value_and_grad`, `vjp` and `jvp`.

use cupola::{Array, ops, transform};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::{Positional, function, only_arrays};
use crate::array::PyArray;
use crate::error::{carried, raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arrays, give, integers};
use crate::tree::{self, Template};

/// Which arguments the gradient is taken by.
struct By {
    positions: Vec<usize>,
    names: Vec<String>,
}

impl By {
    fn of(
        op: &str,
        argnums: Option<&Bound<'_, PyAny>>,
        argnames: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<By> {
        let mut names: Vec<String> = match argnames {
            None => Vec::new(),
            Some(names) => match names.cast::<PyString>() {
                Ok(name) => vec![name.to_cow()?.into_owned()],
                Err(_) => names.extract()?,
            },
        };
        let given = match argnums {
            None if names.is_empty() => vec![0],
            None => Vec::new(),
            Some(numbers) => integers(numbers, "argnums")?.to_vec(),
        };
        let mut positions: Vec<usize> = Vec::new();
        for number in given {
            let Ok(position) = usize::try_from(number) else {
                return Err(wrong_value(format!(
                    "[{op}] Can't compute the gradient of negative argument index {number}"
                )));
            };
            if positions.contains(&position) {
                return Err(wrong_value(format!(
                    "[{op}] Duplicate argument index {number} is not allowed."
                )));
            }
            positions.push(position);
        }
        if positions.is_empty() && names.is_empty() {
            return Err(wrong_value(format!("[{op}] Gradient wrt no argument requested")));
        }
        if let Some(twice) = (1..names.len()).find(|&i| names[..i].contains(&names[i])) {
            return Err(wrong_value(format!(
                "[{op}] Duplicate argument name {} is not allowed.",
                names[twice]
            )));
        }
        // As in MLX, gradients are in the order of the arguments, whatever the order in which these were named.
        positions.sort_unstable();
        names.sort_unstable();
        Ok(By { positions, names })
    }
}

/// A function and what its gradient is taken by.
#[pyclass(frozen, name = "_Differentiated", module = "cupola.core")]
pub struct Differentiated {
    fun: Py<PyAny>,
    by: By,
    has_value: bool,
}

impl Differentiated {
    fn op(&self) -> &'static str {
        if self.has_value { "value_and_grad" } else { "grad" }
    }

    /// The value must be one array, or a tuple that starts with one.
    fn loss<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray>> {
        let op = self.op();
        if let Ok(loss) = value.cast::<PyArray>() {
            return Ok(loss.clone());
        }
        let name = value.get_type().name()?;
        let what = match (self.has_value, value.cast::<PyTuple>()) {
            (true, Ok(tuple)) if tuple.is_empty() => {
                "either a scalar array or a non-empty tuple. The first value should be a scalar \
                 array and the rest can be anything. Instead, we got an empty tuple"
                    .to_owned()
            }
            (true, Ok(tuple)) => match tuple.get_item(0)?.cast_into::<PyArray>() {
                Ok(loss) => return Ok(loss),
                Err(other) => {
                    let name = other.into_inner().get_type().name()?;
                    format!(
                        "either a scalar array or a tuple with the first value being a scalar \
                         array; but a tuple was returned whose first value is {name}"
                    )
                }
            },
            (true, Err(_)) => format!(
                "either a scalar array or a tuple with the first value being a scalar array; but \
                 {name} was returned"
            ),
            (false, _) => format!("a scalar array; but {name} was returned"),
        };
        Err(wrong_value(format!(
            "[{op}] The return value of the function whose gradient we want to compute should be \
             {what}."
        )))
    }
}

#[pymethods]
impl Differentiated {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fun)?;
        Ok(())
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let op = self.op();
        let mut arrays = Vec::new();
        let positional = Positional::split(args, &self.by.positions, &mut arrays, |position| {
            format!("[{op}] Can't compute the gradient of argument index {position}")
        })?;
        let mut named = Vec::new();
        for name in &self.by.names {
            let Some(value) = kwargs.map(|k| k.get_item(name)).transpose()?.flatten() else {
                return Err(wrong_value(format!(
                    "[{op}] Can't compute the gradient of keyword argument '{name}' because the \
                     function is called without it."
                )));
            };
            named.push(only_arrays(&value, &mut arrays)?);
        }
        if arrays.is_empty() {
            return Err(wrong_value(format!("[{op}] Must specify at least one argument.")));
        }
        // Truth values have no derivatives.
        let smooth: Vec<usize> =
            (0..arrays.len()).filter(|&i| arrays[i].dtype().is_differentiable()).collect();
        let mut value = None;
        let call = |tracers: &[Array]| {
            let result = (|| -> PyResult<Vec<Array>> {
                let mut tracers = tracers.iter();
                let own = positional.replaced(args, &mut tracers)?;
                let keywords = kwargs.map(|k| k.copy()).transpose()?;
                for (template, name) in named.iter().zip(&self.by.names) {
                    if let Some(keywords) = &keywords {
                        keywords.set_item(name, template.fill(py, &mut tracers)?)?;
                    }
                }
                let result = self.fun.bind(py).call(own, keywords.as_ref())?;
                let loss = self.loss(&result)?;
                let loss = loss.get().get();
                if loss.rank() != 0 {
                    return Err(wrong_value(format!(
                        "[{op}] The function must return a scalar, but its value has shape {}.",
                        loss.shape()
                    )));
                }
                let mut outputs = tree::arrays(&result)?;
                if loss.dtype().is_complex() {
                    outputs.insert(0, ops::real(&loss).map_err(raise)?);
                }
                value = Some(result);
                Ok(outputs)
            })();
            result.map_err(carried)
        };
        let (_, found) =
            cupola_core::binding::value_and_grad_once(call, &arrays, &smooth).map_err(raise)?;
        let mut found = found.into_iter();
        let mut grads = Vec::with_capacity(arrays.len());
        for (index, array) in arrays.iter().enumerate() {
            grads.push(match smooth.contains(&index).then(|| found.next()).flatten() {
                Some(grad) => grad,
                None => ops::zeros_like(array).map_err(raise)?,
            });
        }
        let mut grads = grads.iter();
        let first = positional.fill(py, &mut grads)?;
        let first = match &first[..] {
            [] => py.None().into_bound(py),
            [one] => one.clone(),
            _ => PyTuple::new(py, first)?.into_any(),
        };
        let grads = if self.by.names.is_empty() {
            first
        } else {
            let by_name = PyDict::new(py);
            for (template, name) in named.iter().zip(&self.by.names) {
                by_name.set_item(name, template.fill(py, &mut grads)?)?;
            }
            PyTuple::new(py, [first, by_name.into_any()])?.into_any()
        };
        match (self.has_value, value) {
            (true, Some(value)) => Ok(PyTuple::new(py, [value, grads])?.into_any()),
            _ => Ok(grads),
        }
    }
}

/// A function that gives the gradient of `fun` by some of its arguments: those at `argnums`, the
/// first if nothing is said, and those named in `argnames`, in the order of the arguments and of the names. Of a
/// complex value it is the gradient of the real part.
#[doc = docs!(grad)]
#[pyfunction]
#[pyo3(signature = (fun, argnums = None, argnames = None))]
pub fn grad<'py>(
    py: Python<'py>,
    fun: Bound<'py, PyAny>,
    argnums: Option<&Bound<'py, PyAny>>,
    argnames: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let by = By::of("grad", argnums, argnames)?;
    let call = Differentiated { fun: fun.clone().unbind(), by, has_value: false };
    function(&fun, Bound::new(py, call)?.into_any())
}

/// A function that gives the value of `fun` and its gradient; see `grad`. The value may be a tuple
/// whose first item is what the gradient is taken of.
#[doc = docs!(value_and_grad)]
#[pyfunction]
#[pyo3(signature = (fun, argnums = None, argnames = None))]
pub fn value_and_grad<'py>(
    py: Python<'py>,
    fun: Bound<'py, PyAny>,
    argnums: Option<&Bound<'py, PyAny>>,
    argnames: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let by = By::of("value_and_grad", argnums, argnames)?;
    let call = Differentiated { fun: fun.clone().unbind(), by, has_value: true };
    function(&fun, Bound::new(py, call)?.into_any())
}

/// What `fun` gives for arrays: one, or a list or tuple of them.
fn outputs(fun: &Bound<'_, PyAny>, arguments: &[Array]) -> PyResult<Vec<Array>> {
    let given = arguments.iter().map(|a| PyArray::new(a.clone())).collect::<Vec<_>>();
    let result = fun.call1(PyTuple::new(fun.py(), given)?)?;
    let mut arrays = Vec::new();
    let template = Template::of(&result, &mut arrays)?;
    match template.has_only_arrays() {
        true => Ok(arrays),
        false => {
            Err(wrong_value("The function must return an array, or a list or tuple of arrays."))
        }
    }
}

/// The outputs of `fun`, and the products of `cotangents` with its Jacobian.
#[doc = docs!(vjp)]
#[pyfunction]
#[pyo3(signature = (fun, primals, cotangents))]
pub fn vjp(
    fun: &Bound<'_, PyAny>,
    primals: Arrays,
    cotangents: Arrays,
) -> PyResult<(Vec<PyArray>, Vec<PyArray>)> {
    let call = |tracers: &[Array]| outputs(fun, tracers).map_err(carried);
    let (values, grads) = transform::vjp(call, &primals.0, &cotangents.0).map_err(raise)?;
    Ok((give(Ok(values))?, give(Ok(grads))?))
}

/// The outputs of `fun`, and the products of its Jacobian with `tangents`.
#[doc = docs!(jvp)]
#[pyfunction]
#[pyo3(signature = (fun, primals, tangents))]
pub fn jvp(
    fun: &Bound<'_, PyAny>,
    primals: Arrays,
    tangents: Arrays,
) -> PyResult<(Vec<PyArray>, Vec<PyArray>)> {
    let call = |tracers: &[Array]| outputs(fun, tracers).map_err(carried);
    let (values, moved) = transform::jvp(call, &primals.0, &tangents.0).map_err(raise)?;
    Ok((give(Ok(values))?, give(Ok(moved))?))
}
