//! The operators of arrays.

use cupola::ops::{self, Operand};
use cupola::{Array, Error, Result};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySet, PyString, PyTuple};

use super::PyArray;
use crate::error::{raise, wrong_value};
use crate::operand::{Opd, is_bytes, meet, operand};

type Binary = for<'a, 'b> fn(Operand<'a>, Operand<'b>) -> Result<Array>;

/// `f` of two operands; `None` where the other one is none, so that Python asks its type.
#[inline]
fn apply(
    slf: &PyArray,
    other: &Bound<'_, PyAny>,
    what: &str,
    f: impl for<'a, 'b> FnOnce(Operand<'a>, Operand<'b>) -> Result<Array>,
    is_swapped: bool,
) -> PyResult<Option<Array>> {
    let Some(other) = operand_or_none(other, what)? else { return Ok(None) };
    let own = Opd::Array(slf.get());
    let (own, other) = meet(own, other)?;
    let (own, other) = (Operand::from(&own), Operand::from(&other));
    let result = if is_swapped { f(other, own) } else { f(own, other) };
    result.map(Some).map_err(refused)
}

/// Operators raise `ValueError` for the dtypes that they do not take, the bitwise ones, too.
fn refused(error: Error) -> PyErr {
    match error {
        Error::DType { .. } => wrong_value(error.to_string()),
        error => raise(error),
    }
}

#[inline]
fn operand_or_none(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<Opd>> {
    let found = operand(object)?;
    if found.is_none() && is_builtin(object) {
        let name = object.get_type().name()?;
        return Err(wrong_value(format!("Cannot perform {what} on an mlx.core.array and {name}")));
    }
    Ok(found)
}

fn is_builtin(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyDict>()
        || object.is_instance_of::<PySet>()
}

fn given(py: Python<'_>, result: Option<Array>) -> PyResult<Py<PyAny>> {
    match result {
        Some(array) => Ok(Py::new(py, PyArray::new(array))?.into_any()),
        None => Ok(py.NotImplemented()),
    }
}

/// In place: the object becomes the result, for whoever else holds it, too.
fn replace(slf: &PyArray, result: Option<Array>, what: &str) -> PyResult<()> {
    let Some(array) = result else {
        let text = format!("{what}: the operand is no array or number");
        return Err(crate::error::wrong_type(text));
    };
    slf.replace(&array).map_err(raise)
}

/// An error where `pow` was given a modulus.
fn no_modulus(modulo: &Bound<'_, PyAny>) -> PyResult<()> {
    match modulo.is_none() {
        true => Ok(()),
        false => Err(crate::error::wrong_type("power: arrays take no modulus")),
    }
}

macro_rules! operators {
    ($($what:literal $op:ident $forward:ident $reflected:ident $in_place:ident;)*) => {
        #[pymethods]
        impl PyArray {
            $(
                fn $forward(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    given(py, apply(self, other, $what, |a, b| ops::$op(a, b), false)?)
                }

                fn $reflected(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    given(py, apply(self, other, $what, |a, b| ops::$op(a, b), true)?)
                }

                fn $in_place(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
                    replace(self, apply(self, other, $what, |a, b| ops::$op(a, b), false)?, $what)
                }
            )*
        }
    };
}

operators! {
    "addition" add __add__ __radd__ __iadd__;
    "subtraction" subtract __sub__ __rsub__ __isub__;
    "multiplication" multiply __mul__ __rmul__ __imul__;
    "floor division" floor_divide __floordiv__ __rfloordiv__ __ifloordiv__;
    "modulus" remainder __mod__ __rmod__ __imod__;
    "bitwise and" bitwise_and __and__ __rand__ __iand__;
    "bitwise or" bitwise_or __or__ __ror__ __ior__;
    "bitwise xor" bitwise_xor __xor__ __rxor__ __ixor__;
    "left shift" left_shift __lshift__ __rlshift__ __ilshift__;
    "right shift" right_shift __rshift__ __rrshift__ __irshift__;
}

/// The other operand of a product with `own`.
fn matrix(own: &PyArray, object: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    if is_bytes(object) {
        return Ok(None);
    }
    match operand(object)? {
        Some(operand) => operand.array_beside(own.get().dtype()).map(Some),
        None => Ok(None),
    }
}

#[pymethods]
impl PyArray {
    fn __pow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        no_modulus(modulo)?;
        given(py, apply(self, other, "power", |a, b| ops::power(a, b), false)?)
    }

    fn __rpow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        no_modulus(modulo)?;
        given(py, apply(self, other, "power", |a, b| ops::power(a, b), true)?)
    }

    fn __ipow__(&self, other: &Bound<'_, PyAny>, modulo: &Bound<'_, PyAny>) -> PyResult<()> {
        no_modulus(modulo)?;
        replace(self, apply(self, other, "power", |a, b| ops::power(a, b), false)?, "power")
    }

    fn __truediv__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        given(py, apply(self, other, "division", |a, b| ops::divide(a, b), false)?)
    }

    fn __rtruediv__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        given(py, apply(self, other, "division", |a, b| ops::divide(a, b), true)?)
    }

    fn __itruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        if !self.get().dtype().is_inexact() {
            return Err(wrong_value("In place division cannot cast to non-floating point type."));
        }
        replace(self, apply(self, other, "division", |a, b| ops::divide(a, b), false)?, "division")
    }

    fn __matmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Some(other) = matrix(self, other)? else { return Ok(py.NotImplemented()) };
        given(py, Some(ops::matmul(&self.get(), &other).map_err(raise)?))
    }

    fn __rmatmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Some(other) = matrix(self, other)? else { return Ok(py.NotImplemented()) };
        given(py, Some(ops::matmul(&other, &self.get()).map_err(raise)?))
    }

    fn __imatmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        let product = match matrix(self, other)? {
            Some(other) => Some(ops::matmul(&self.get(), &other).map_err(raise)?),
            None => None,
        };
        replace(self, product, "matmul")
    }

    fn __richcmp__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        op: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let f: Binary = match op {
            CompareOp::Eq => |a, b| ops::equal(a, b),
            CompareOp::Ne => |a, b| ops::not_equal(a, b),
            CompareOp::Lt => |a, b| ops::less(a, b),
            CompareOp::Le => |a, b| ops::less_equal(a, b),
            CompareOp::Gt => |a, b| ops::greater(a, b),
            CompareOp::Ge => |a, b| ops::greater_equal(a, b),
        };
        let is_equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
        if is_equality && is_builtin(other) {
            return Ok(matches!(op, CompareOp::Ne)
                .into_pyobject(py)?
                .to_owned()
                .into_any()
                .unbind());
        }
        given(py, apply(self, other, "comparison", f, false)?)
    }

    fn __neg__(&self) -> PyResult<PyArray> {
        crate::operand::give(ops::negative(&self.get()))
    }

    fn __pos__(&self) -> PyArray {
        PyArray::new(self.get())
    }

    fn __abs__(&self) -> PyResult<PyArray> {
        crate::operand::give(ops::abs(&self.get()))
    }

    fn __invert__(&self) -> PyResult<PyArray> {
        ops::bitwise_invert(&self.get()).map(PyArray::new).map_err(refused)
    }
}
