//! `jacfwd`, `jacrev`, `hessian` and `linearize`.

use cupola::{Array, transform};
use cupola_core::binding::{Mode, jacobian_once};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use super::{Positional, function, only_arrays};
use crate::error::{carried, raise, wrong_value};
use crate::generated::docs;
use crate::operand::integers;
use crate::tree::Template;

/// A function and what its Jacobian is taken by.
#[pyclass(frozen, name = "_Jacobian", module = "cupola.core")]
pub struct Jacobian {
    fun: Py<PyAny>,
    mode: Mode,
    positions: Vec<usize>,
    /// Whether there is a tuple of arguments, and so of derivatives.
    is_tuple: bool,
}

impl Jacobian {
    fn op(&self) -> &'static str {
        match self.mode {
            Mode::Forward => "jacfwd",
            Mode::Reverse => "jacrev",
        }
    }
}

#[pymethods]
impl Jacobian {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fun)
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
        let positional = Positional::split(args, &self.positions, &mut arrays, |position| {
            format!("[{op}] Can't compute the derivative by argument index {position}")
        })?;
        let all: Vec<usize> = (0..arrays.len()).collect();
        let mut template = None;
        let call = |tracers: &[Array]| {
            let result = (|| -> PyResult<Vec<Array>> {
                let own = positional.replaced(args, &mut tracers.iter())?;
                let result = self.fun.bind(py).call(own, kwargs)?;
                let mut outputs = Vec::new();
                template = Some(only_arrays(&result, &mut outputs)?);
                Ok(outputs)
            })();
            result.map_err(carried)
        };
        let (_, found) = jacobian_once(self.mode, call, &arrays, &all).map_err(raise)?;
        let Some(template) = template else {
            return Ok(py.None().into_bound(py));
        };
        // Where an output is a leaf stands the tree of the derivatives by the arguments.
        let mut found = found.iter();
        template.fill_with(py, &mut |py| {
            let Some(parts) = found.next() else {
                return Err(wrong_value(format!("[{op}] an output has no derivatives")));
            };
            let own = positional.fill(py, &mut parts.iter())?;
            match &own[..] {
                [one] if !self.is_tuple => Ok(one.clone()),
                _ => Ok(PyTuple::new(py, own)?.into_any()),
            }
        })
    }
}

fn jacobian<'py>(
    py: Python<'py>,
    op: &str,
    mode: Mode,
    fun: &Bound<'py, PyAny>,
    argnums: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (given, is_tuple) = match argnums {
        None => (SmallVec::from_slice(&[0]), false),
        Some(numbers) => (integers(numbers, "argnums")?, numbers.extract::<isize>().is_err()),
    };
    let mut positions = Vec::new();
    for number in given {
        let position = usize::try_from(number).ok().filter(|p| !positions.contains(p));
        let Some(position) = position else {
            return Err(wrong_value(format!(
                "[{op}] argument index {number} is negative or comes twice"
            )));
        };
        positions.push(position);
    }
    if positions.is_empty() {
        return Err(wrong_value(format!("[{op}] Derivative by no argument requested")));
    }
    let call = Jacobian { fun: fun.clone().unbind(), mode, positions, is_tuple };
    function(fun, Bound::new(py, call)?.into_any())
}

/// A function that gives the derivatives of the outputs of `fun` by its arguments at `argnums`, the first if nothing is
/// said. In the place of each array that `fun` returns stands the tree of the argument, or a tuple of trees for a
/// sequence of arguments, with the derivatives by its arrays: their axes are those of the output and then those of the
/// argument. They are computed a column at a time, in one batch: for few arguments and many outputs.
#[doc = docs!(jacfwd)]
#[pyfunction]
#[pyo3(signature = (fun, argnums = None))]
pub fn jacfwd<'py>(
    py: Python<'py>,
    fun: Bound<'py, PyAny>,
    argnums: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    jacobian(py, "jacfwd", Mode::Forward, &fun, argnums)
}

/// What `jacfwd` gives, computed a row at a time, in one batch: for many arguments and few outputs.
#[doc = docs!(jacrev)]
#[pyfunction]
#[pyo3(signature = (fun, argnums = None))]
pub fn jacrev<'py>(
    py: Python<'py>,
    fun: Bound<'py, PyAny>,
    argnums: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    jacobian(py, "jacrev", Mode::Reverse, &fun, argnums)
}

/// A function that gives the second derivatives of the outputs of `fun` by its arguments at `argnums`: `jacfwd` of
/// `jacrev`. Their axes are those of the output, of the first and of the second argument.
#[doc = docs!(hessian)]
#[pyfunction]
#[pyo3(signature = (fun, argnums = None))]
pub fn hessian<'py>(
    py: Python<'py>,
    fun: Bound<'py, PyAny>,
    argnums: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = jacobian(py, "hessian", Mode::Reverse, &fun, argnums)?;
    jacobian(py, "hessian", Mode::Forward, &rows, argnums)
}

/// A function's derivative at a point.
#[pyclass(frozen, name = "_Linear", module = "cupola.core")]
pub struct Linear {
    map: transform::Linear,
    arguments: Template,
    outputs: Template,
}

#[pymethods]
impl Linear {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.arguments.traverse(&visit)?;
        self.outputs.traverse(&visit)
    }

    #[pyo3(signature = (*tangents))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        tangents: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut arrays = Vec::new();
        let given = only_arrays(tangents.as_any(), &mut arrays)?;
        if given.count() != self.arguments.count() {
            return Err(wrong_value(format!(
                "[linearize] {} tangents were given for {} arrays",
                given.count(),
                self.arguments.count()
            )));
        }
        let moved = self.map.apply(&arrays).map_err(raise)?;
        self.outputs.fill(py, &mut moved.iter())
    }
}

/// What `fun` gives for these arguments, and its derivative there: a function that takes tangents, trees like the
/// arguments, and gives those of the outputs, as often as is wanted, without `fun` being called again. It holds what was
/// computed on the way.
#[doc = docs!(linearize)]
#[pyfunction]
#[pyo3(signature = (fun, *primals))]
pub fn linearize<'py>(
    py: Python<'py>,
    fun: &Bound<'py, PyAny>,
    primals: &Bound<'py, PyTuple>,
) -> PyResult<(Bound<'py, PyAny>, Linear)> {
    let mut arrays = Vec::new();
    let arguments = only_arrays(primals.as_any(), &mut arrays)?;
    let mut template = None;
    let call = |tracers: &[Array]| {
        let result = (|| -> PyResult<Vec<Array>> {
            let own = arguments.fill(py, &mut tracers.iter())?;
            let result = fun.call1(own.cast_into::<PyTuple>()?)?;
            let mut outputs = Vec::new();
            template = Some(only_arrays(&result, &mut outputs)?);
            Ok(outputs)
        })();
        result.map_err(carried)
    };
    let (values, map) = transform::linearize(call, &arrays).map_err(raise)?;
    let Some(outputs) = template else {
        return Err(wrong_value("[linearize] the function was not called"));
    };
    let result = outputs.fill(py, &mut values.iter())?;
    Ok((result, Linear { map, arguments, outputs }))
}
