//! `cupola.core.linalg`.

use cupola::ops::linalg::{self, Order};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Axis, Real, give, keep_doubles};

/// Whether the upper triangle is meant: by U, or by L for the lower one.
fn is_upper(triangle: &str) -> PyResult<bool> {
    match triangle {
        "U" | "u" => Ok(true),
        "L" | "l" => Ok(false),
        other => Err(wrong_value(format!("UPLO '{other}' is not L or U"))),
    }
}

#[doc = docs!(linalg::solve_triangular)]
#[pyfunction]
#[pyo3(signature = (a, b, *, upper = false, stream = None))]
pub fn solve_triangular(
    mut a: Real,
    mut b: Real,
    upper: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a.0, &mut b.0]);
    on(stream, || give(linalg::solve_triangular(&a, &b, upper)))
}

#[doc = docs!(linalg::svd)]
#[pyfunction]
#[pyo3(signature = (a, compute_uv = true, *, stream = None))]
pub fn svd(
    py: Python<'_>,
    a: Arr,
    compute_uv: bool,
    stream: Option<On>,
) -> PyResult<Bound<'_, PyAny>> {
    on(stream, || match compute_uv {
        true => give(linalg::svd(&a))?.into_bound_py_any(py),
        false => give(linalg::svdvals(&a))?.into_bound_py_any(py),
    })
}

#[doc = docs!(linalg::eigh)]
#[pyfunction]
#[pyo3(signature = (a, UPLO = "L", *, stream = None))]
#[allow(non_snake_case)]
pub fn eigh(a: Arr, UPLO: &str, stream: Option<On>) -> PyResult<(PyArray, PyArray)> {
    let upper = is_upper(UPLO)?;
    on(stream, || give(linalg::eigh(&a, upper)))
}

#[doc = docs!(linalg::eigvalsh)]
#[pyfunction]
#[pyo3(signature = (a, UPLO = "L", *, stream = None))]
#[allow(non_snake_case)]
pub fn eigvalsh(a: Arr, UPLO: &str, stream: Option<On>) -> PyResult<PyArray> {
    let upper = is_upper(UPLO)?;
    on(stream, || give(linalg::eigvalsh(&a, upper)))
}

#[doc = docs!(linalg::matrix_rank)]
#[pyfunction]
#[pyo3(signature = (a, tol = None, *, stream = None))]
pub fn matrix_rank(a: Arr, tol: Option<f64>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(linalg::matrix_rank(&a, tol)))
}

/// The X of least squares: the one of least length of those for which A·X is closest to B. `full=True` gives, as NumPy
/// does, a tuple of X, residuals, rank and singular values: the residuals are the sums of the squares of A·X − B, one for
/// each column of B, also where NumPy has none.
///
/// Shapes:
/// `a` is `[.., m, n]`, `b` a vector `[m]` or `[.., m, k]`. Residuals are `[.., k]`, and `[.., 1]` of a vector; the rank
/// is `[..]`, the singular values are `[.., min(m, n)]`.
///
/// Dtypes:
/// The operands promote, to `float32`, `float64` or `complex64`. The rank is `int32`; residuals and singular values are
/// real.
///
/// Errors:
/// Where shapes or dtypes do not fit; when it is computed where an element of A is not finite.
#[doc = docs!(linalg::lstsq)]
#[pyfunction]
#[pyo3(signature = (a, b, *, full = false, stream = None))]
pub fn lstsq(
    py: Python<'_>,
    mut a: Arr,
    mut b: Arr,
    full: bool,
    stream: Option<On>,
) -> PyResult<Bound<'_, PyAny>> {
    keep_doubles([&mut a, &mut b]);
    on(stream, || {
        if !full {
            return give(linalg::lstsq(&a, &b))?.into_bound_py_any(py);
        }
        let found = linalg::lstsq_full(&a, &b).map_err(raise)?;
        let parts = [found.solution, found.residuals, found.rank, found.singular_values];
        PyTuple::new(py, parts.map(PyArray::new))?.into_bound_py_any(py)
    })
}

#[doc = docs!(linalg::norm)]
#[pyfunction]
#[pyo3(signature = (a, /, ord = None, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, /, ord=None, axis=None, keepdims=False, *, stream=None)")]
pub fn norm(
    a: Arr,
    ord: Option<&Bound<'_, PyAny>>,
    axis: Axis,
    keepdims: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let order = match ord {
        None => Order::Euclidean,
        Some(ord) => match ord.cast::<PyString>() {
            Ok(name) => match &*name.to_cow()? {
                "fro" | "f" => Order::Frobenius,
                "nuc" => Order::Nuclear,
                other => return Err(wrong_value(format!("norm: ord '{other}' is not fro or nuc"))),
            },
            Err(_) => Order::Power(ord.extract()?),
        },
    };
    on(stream, || give(linalg::norm(&a, order, axis.0, keepdims)))
}

#[doc = docs!(linalg::cross)]
#[pyfunction]
#[pyo3(signature = (a, b, axis = -1, *, stream = None), text_signature = "(a, b, axis=-1, *, stream=None)")]
pub fn cross(mut a: Arr, mut b: Arr, axis: isize, stream: Option<On>) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut b]);
    on(stream, || give(linalg::cross(&a, &b, axis)))
}
