//! Written by `cargo xtask gen` from `crates/core/src/ops`: change it there, or in the tables of
//! `xtask/src/bind`.

// Arguments have MLX's names.
#![allow(non_snake_case)]

use cupola::{DType, ops};
use pyo3::prelude::*;
use pyo3::types::PyModule;

use crate::array::PyArray;
use crate::device::{On, evaluating, on};
use crate::dtype::Dtype;
use crate::operand::{
    Arr, Arrays, Axis, AxisList, Count, NamedAxes, Numeric, OneAxis, Opd, Real, ShapeArg, SizesArg,
    Small, give, keep_doubles, meet,
};

/// |x|; of a complex number its modulus, as `float32`.
///
/// Example:
///     >>> mx.abs(mx.array([-1, 2]))
///     array([1, 2], dtype=int32)
#[pyfunction(name = "abs")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn abs(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::abs(&a)))
}

/// a + b.
///
/// Shapes:
/// The operands broadcast.
///
/// Dtypes:
/// The operands promote; integers wrap; on bool, logical or.
///
/// Example:
///     >>> mx.add(mx.array([1, 2]), 3)
///     array([4, 5], dtype=int32)
#[pyfunction(name = "add")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn add(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::add(&a, &b)))
}

/// `alpha·a@b + beta·c`.
///
/// Shapes:
/// As `matmul`; `c` broadcasts to the product.
///
/// Errors:
/// Where the shapes do not fit, and where all are integers or bool.
///
/// Example:
///     >>> mx.addmm(mx.ones(2), mx.ones((1, 3)), mx.ones((3, 2)), beta=0.5)
///     array([[3.5, 3.5]], dtype=float32)
#[pyfunction(name = "addmm")]
#[pyo3(signature = (c, a, b, alpha = 1.0, beta = 1.0, *, stream = None), text_signature = "(c, a, b, alpha=1.0, beta=1.0, *, stream=None)")]
pub fn addmm(
    mut c: Arr,
    mut a: Arr,
    mut b: Arr,
    alpha: f64,
    beta: f64,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut c, &mut a, &mut b]);
    on(stream, || give(ops::addmm(&c, &a, &b, alpha, beta)))
}

/// Whether all elements over `axes` are true; numbers are true where they are not 0.
///
/// Example:
///     >>> mx.all(mx.array([[1, 0], [1, 1]]), axis=1)
///     array([False, True], dtype=bool)
#[pyfunction(name = "all")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn all(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::all(&a, axis.0, keepdims)))
}

/// Whether any element over `axes` is true; numbers are true where they are not 0.
///
/// Example:
///     >>> mx.any(mx.array([[0, 0], [1, 0]]), axis=1)
///     array([False, True], dtype=bool)
#[pyfunction(name = "any")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn any(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::any(&a, axis.0, keepdims)))
}

/// arccos x; NaN outside [−1, 1].
///
/// Example:
///     >>> mx.arccos(mx.array([1.0, 0.0]))
///     array([0, 1.5708], dtype=float32)
#[pyfunction(name = "arccos")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arccos(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arccos(&a)))
}

/// arcosh x; NaN below 1.
///
/// Example:
///     >>> mx.arccosh(mx.array([1.0, 2.0]))
///     array([0, 1.31696], dtype=float32)
#[pyfunction(name = "arccosh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arccosh(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arccosh(&a)))
}

/// arcsin x; NaN outside [−1, 1].
///
/// Example:
///     >>> mx.arcsin(mx.array([0.0, 1.0]))
///     array([0, 1.5708], dtype=float32)
#[pyfunction(name = "arcsin")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arcsin(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arcsin(&a)))
}

/// arsinh x.
///
/// Example:
///     >>> mx.arcsinh(mx.array([0.0, 1.0]))
///     array([0, 0.881374], dtype=float32)
#[pyfunction(name = "arcsinh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arcsinh(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arcsinh(&a)))
}

/// arctan x.
///
/// Example:
///     >>> mx.arctan(mx.array([0.0, 1.0]))
///     array([0, 0.785398], dtype=float32)
#[pyfunction(name = "arctan")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arctan(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arctan(&a)))
}

/// The angle of the point (b, a), in (−π, π].
///
/// Example:
///     >>> mx.arctan2(mx.array([1.0, -1.0]), mx.array([1.0, 0.0]))
///     array([0.785398, -1.5708], dtype=float32)
#[pyfunction(name = "arctan2")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn arctan2(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::arctan2(&a, &b)))
}

/// artanh x; NaN outside [−1, 1].
///
/// Example:
///     >>> mx.arctanh(mx.array([0.0, 0.5]))
///     array([0, 0.549306], dtype=float32)
#[pyfunction(name = "arctanh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arctanh(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arctanh(&a)))
}

/// The index of the first largest element along an axis, or of the flattened array for `()`.
///
/// Dtypes:
/// Gives `uint32`. The first NaN counts as the largest.
///
/// Errors:
/// Where the axis is empty.
///
/// Example:
///     >>> mx.argmax(mx.array([[1, 3, 2], [9, 7, 8]]), axis=1)
///     array([1, 0], dtype=uint32)
#[pyfunction(name = "argmax")]
#[pyo3(signature = (a, axis = OneAxis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn argmax(a: Arr, axis: OneAxis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::argmax(&a, axis.0, keepdims)))
}

/// The index of the first smallest element along an axis, or of the flattened array for `()`.
///
/// Dtypes:
/// Gives `uint32`. The first NaN counts as the smallest.
///
/// Errors:
/// As `argmax`.
///
/// Example:
///     >>> mx.argmin(mx.array([[1, 3, 2], [9, 7, 8]]), axis=1)
///     array([0, 1], dtype=uint32)
#[pyfunction(name = "argmin")]
#[pyo3(signature = (a, axis = OneAxis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn argmin(a: Arr, axis: OneAxis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::argmin(&a, axis.0, keepdims)))
}

/// The indices, as `uint32`, that `partition` an axis.
///
/// Errors:
/// As `partition`.
///
/// Example:
///     >>> mx.argpartition(mx.array([3, 1, 2]), kth=0)[0]
///     array(1, dtype=uint32)
#[pyfunction(name = "argpartition")]
#[pyo3(signature = (a, kth, axis = OneAxis::one(-1), *, stream = None), text_signature = "(a, kth, axis=-1, *, stream=None)")]
pub fn argpartition(a: Arr, kth: isize, axis: OneAxis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::argpartition(&a, kth, axis.0)))
}

/// The indices, as `uint32`, that put an axis in ascending order; equal elements keep theirs.
///
/// Example:
///     >>> mx.argsort(mx.array([3, 1, 2]))
///     array([1, 2, 0], dtype=uint32)
#[pyfunction(name = "argsort")]
#[pyo3(signature = (a, axis = OneAxis::one(-1), *, stream = None), text_signature = "(a, axis=-1, *, stream=None)")]
pub fn argsort(a: Arr, axis: OneAxis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::argsort(&a, axis.0)))
}

/// The places of elements that are not 0, a row of indices each.
///
/// Shapes:
/// `[count, rank]`; as `nonzero`, but of a plain number `[1, 0]` or `[0, 0]`.
///
/// Errors:
/// Under `compile` and `vmap`, where there are no values.
///
/// Example:
///     >>> mx.argwhere(mx.array([[0, 5], [7, 0]]))
///     array([[0, 1],
///            [1, 0]], dtype=int32)
#[pyfunction(name = "argwhere")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn argwhere(py: Python<'_>, a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    evaluating(py, stream, || give(ops::argwhere(&a)))
}

/// Converts each element to `dtype`: to bool by ≠ 0, between integers by wrapping, from float to
/// integer towards zero and saturating (NaN gives 0), from complex by its real part.
///
/// A negative float becomes an unsigned integer by way of the signed one, which wraps, as in MLX and
/// NumPy on most machines: −1.0 is the largest one.
///
/// Example:
///     >>> mx.astype(mx.array([1.5, 2.5]), mx.int32)
///     array([1, 2], dtype=int32)
#[pyfunction(name = "astype")]
#[pyo3(signature = (a, dtype, *, stream = None), text_signature = "(a, dtype, *, stream=None)")]
pub fn astype(a: Arr, dtype: Dtype, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::astype(&a, dtype.0)))
}

/// How often each of 0, 1, 2, … is in an array, or the sum of the weights at its places. How many there
/// are depends on the values, so the array is evaluated.
///
/// Shapes:
/// x `[n]` gives one more element than its largest, and at least `minlength`; weights have x's shape.
///
/// Dtypes:
/// x is of integers or bool. Counts are `int32`; sums have the dtype of the weights, integers and bool being
/// taken as `float32`; half types accumulate in `float32`.
///
/// Errors:
/// For an array of another rank or dtype, for negative elements, and under `compile` and `vmap`, where there
/// are no values.
///
/// Example:
///     >>> mx.bincount(mx.array([0, 3, 1, 3]))
///     array([1, 1, 0, 2], dtype=int32)
#[pyfunction(name = "bincount")]
#[pyo3(signature = (a, weights = None, minlength = Count(0), *, stream = None), text_signature = "(a, weights=None, minlength=0, *, stream=None)")]
pub fn bincount(
    py: Python<'_>,
    mut a: Arr,
    mut weights: Option<Arr>,
    minlength: Count,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a].into_iter().chain(&mut weights));
    evaluating(py, stream, || give(ops::bincount(&a, weights.as_deref(), minlength.0)))
}

/// The bits set in both; on bool, logical and.
///
/// Errors:
/// Where the operands do not promote to an integer type or bool.
///
/// Example:
///     >>> mx.bitwise_and(mx.array([6, 7]), 3)
///     array([2, 3], dtype=int32)
#[pyfunction(name = "bitwise_and")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn bitwise_and(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::bitwise_and(&a, &b)))
}

/// The bits set in either; on bool, logical or.
///
/// Errors:
/// Where the operands do not promote to an integer type or bool.
///
/// Example:
///     >>> mx.bitwise_or(mx.array([4, 5]), 3)
///     array([7, 7], dtype=int32)
#[pyfunction(name = "bitwise_or")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn bitwise_or(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::bitwise_or(&a, &b)))
}

/// The bits set in one; on bool, logical exclusive or.
///
/// Errors:
/// Where the operands do not promote to an integer type or bool.
///
/// Example:
///     >>> mx.bitwise_xor(mx.array([4, 5]), 1)
///     array([5, 4], dtype=int32)
#[pyfunction(name = "bitwise_xor")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn bitwise_xor(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::bitwise_xor(&a, &b)))
}

/// Axes of size 1, and missing leading axes, repeated to `shape`.
///
/// Example:
///     >>> mx.broadcast_to(mx.array([1, 2]), (2, 2))
///     array([[1, 2],
///            [1, 2]], dtype=int32)
#[pyfunction(name = "broadcast_to")]
#[pyo3(signature = (a, shape, *, stream = None), text_signature = "(a, shape, *, stream=None)")]
pub fn broadcast_to(a: Numeric, shape: ShapeArg, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::broadcast_to(&a, shape.0)))
}

/// The number of the bucket that each element falls into: `boundaries` are the ends of buckets, which belong to
/// the bucket below, or where `right` is true to the one above.
///
/// Shapes:
/// The result has the shape of `x`; n boundaries make n + 1 buckets.
///
/// Dtypes:
/// Gives `uint32`. Boundaries and elements promote; NaN comes last.
///
/// Errors:
/// As `searchsorted`.
///
/// Example:
///     >>> mx.bucketize(mx.array([0, 2, 5]), mx.array([1, 2, 4]))
///     array([0, 1, 3], dtype=uint32)
#[pyfunction(name = "bucketize")]
#[pyo3(signature = (a, boundaries, right = false, *, stream = None), text_signature = "(a, boundaries, right=False, *, stream=None)")]
pub fn bucketize(
    mut a: Arr,
    mut boundaries: Arr,
    right: bool,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut boundaries]);
    on(stream, || give(ops::bucketize(&a, &boundaries, right)))
}

/// The distances of every vector of `a` from every one of `b`: the `p`-norms of the differences, with 0 and ∞ as the
/// count of what is not 0 and the largest size.
///
/// Shapes:
/// `[.., n, d]` and `[.., m, d]` give `[.., n, m]`; the leading axes broadcast.
///
/// Dtypes:
/// The arrays promote; integers and bool are taken as `float32`; half types are computed in `float32`. The distances
/// of complex vectors are real.
///
/// Errors:
/// For arrays without vectors, vectors that differ in size, and a negative `p`.
///
/// Example:
///     >>> mx.cdist(mx.array([[0.0, 0.0]]), mx.array([[3.0, 4.0], [0.0, 1.0]]))
///     array([[5, 1]], dtype=float32)
#[pyfunction(name = "cdist")]
#[pyo3(signature = (a, b, p = 2.0, *, stream = None), text_signature = "(a, b, p=2.0, *, stream=None)")]
pub fn cdist(mut a: Arr, mut b: Arr, p: f64, stream: Option<On>) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut b]);
    on(stream, || give(ops::cdist(&a, &b, p)))
}

/// The smallest integer not below x, in x's dtype.
///
/// Example:
///     >>> mx.ceil(mx.array([1.2, -1.2]))
///     array([2, -1], dtype=float32)
#[pyfunction(name = "ceil")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn ceil(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::ceil(&a)))
}

/// The arrays one after the other along an axis; `()` flattens them first.
///
/// Shapes:
/// All sizes but the axis' are equal.
///
/// Dtypes:
/// The arrays promote.
///
/// Example:
///     >>> mx.concatenate([mx.array([1, 2]), mx.array([3])])
///     array([1, 2, 3], dtype=int32)
#[pyfunction(name = "concatenate")]
#[pyo3(signature = (arrays, axis = OneAxis::one(0), *, stream = None), text_signature = "(arrays, axis=0, *, stream=None)")]
pub fn concatenate(arrays: Arrays, axis: OneAxis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::concatenate(&arrays.refs(), axis.0)))
}

/// The complex conjugate; anything else as it is.
///
/// Example:
///     >>> mx.conjugate(mx.array([1 + 2j]))
///     array([1-2j], dtype=complex64)
#[pyfunction(name = "conjugate")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn conjugate(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::conjugate(&a)))
}

/// |a| with the sign of b, also of −0 and of NaN.
///
/// Shapes:
/// The operands broadcast.
///
/// Dtypes:
/// The operands promote; integers and bool are taken as `float32`.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.copysign(mx.array([1.0, -2.0]), mx.array([-0.0, 3.0]))
///     array([-1, 2], dtype=float32)
#[pyfunction(name = "copysign")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn copysign(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::copysign(&a, &b)))
}

/// cos x.
///
/// Example:
///     >>> mx.cos(mx.array([0.0, 1.0]))
///     array([1, 0.540302], dtype=float32)
#[pyfunction(name = "cos")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn cos(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::cos(&a)))
}

/// cosh x.
///
/// Example:
///     >>> mx.cosh(mx.array([0.0, 1.0]))
///     array([1, 1.54308], dtype=float32)
#[pyfunction(name = "cosh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn cosh(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::cosh(&a)))
}

/// How many elements over `axes` are not 0, as `int32`.
///
/// Example:
///     >>> mx.count_nonzero(mx.array([0, 1, 2]))
///     array(2, dtype=int32)
#[pyfunction(name = "count_nonzero")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn count_nonzero(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::count_nonzero(&a, axis.0, keepdims)))
}

/// Radians as degrees.
///
/// Example:
///     >>> mx.degrees(mx.array(mx.pi))
///     array(180, dtype=float32)
#[pyfunction(name = "degrees")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn degrees(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::degrees(&a)))
}

/// A matrix with a vector on its diagonal, or the diagonal of a matrix; `offset` places above the
/// main one.
///
/// Example:
///     >>> mx.diag(mx.array([1, 2]))
///     array([[1, 0],
///            [0, 2]], dtype=int32)
#[pyfunction(name = "diag")]
#[pyo3(signature = (a, k = 0, *, stream = None), text_signature = "(a, k=0, *, stream=None)")]
pub fn diag(a: Arr, k: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::diag(&a, k)))
}

/// The diagonal of two axes, `offset` places above the main one, as the last axis.
///
/// Errors:
/// Where there are no two such axes.
///
/// Example:
///     >>> mx.diagonal(mx.arange(6).reshape(2, 3), offset=1)
///     array([1, 5], dtype=int32)
#[pyfunction(name = "diagonal")]
#[pyo3(signature = (a, offset = 0, axis1 = Small(0), axis2 = Small(1), stream = None), text_signature = "(a, offset=0, axis1=0, axis2=1, stream=None)")]
pub fn diagonal(
    a: Arr,
    offset: isize,
    axis1: Small,
    axis2: Small,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::diagonal(&a, offset, axis1.0, axis2.0)))
}

/// The differences of neighbours along an axis, taken `n` times. What is to `prepend` and to `append` stands beside
/// them first.
///
/// Shapes:
/// The axis gets shorter by `n`, down to 0. What stands beside has the other axes of `x`, or is one number for each
/// place.
///
/// Dtypes:
/// All promote. Integers wrap; of bools it is whether they differ.
///
/// Errors:
/// Where there is no such axis, and where shapes do not fit.
///
/// Example:
///     >>> mx.diff(mx.array([1, 4, 9]))
///     array([3, 5], dtype=int32)
#[pyfunction(name = "diff")]
#[pyo3(signature = (a, n = Count(1), axis = Small(-1), prepend = None, append = None, *, stream = None), text_signature = "(a, n=1, axis=-1, prepend=None, append=None, *, stream=None)")]
pub fn diff(
    mut a: Arr,
    n: Count,
    axis: Small,
    mut prepend: Option<Arr>,
    mut append: Option<Arr>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a].into_iter().chain(&mut prepend).chain(&mut append));
    on(stream, || give(ops::diff(&a, n.0, axis.0, prepend.as_deref(), append.as_deref())))
}

/// The derivative of `lgamma`, ψ(x) = Γ′(x)/Γ(x): −∞ at 0, ∞ at −0, NaN at the negative integers.
///
/// As for `lgamma`: A&S 6.3.5, 6.3.14 and 6.3.18, and 6.3.7 below 0.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.digamma(mx.array([1.0, 2.0]))
///     array([-0.577216, 0.422784], dtype=float32)
#[pyfunction(name = "digamma")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn digamma(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::digamma(&a)))
}

/// a/b.
///
/// Dtypes:
/// Integers and bool divide as `float32`.
///
/// Example:
///     >>> mx.divide(mx.array([1, 2]), 4)
///     array([0.25, 0.5], dtype=float32)
#[pyfunction(name = "divide")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn divide(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::divide(&a, &b)))
}

/// Whether a = b; NaN equals nothing.
///
/// Example:
///     >>> mx.equal(mx.array([1, 2]), mx.array([1, 3]))
///     array([True, False], dtype=bool)
#[pyfunction(name = "equal")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn equal(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::equal(&a, &b)))
}

/// The error function, 2/√π ∫₀ˣ e^(−t²) dt.
///
/// Example:
///     >>> mx.erf(mx.array([0.0, 1.0]))
///     array([0, 0.842701], dtype=float32)
#[pyfunction(name = "erf")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn erf(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::erf(&a)))
}

/// What the error function lacks to 1, 2/√π ∫ₓ^∞ e^(−t²) dt: accurate also where `1 − erf(x)` is not.
///
/// Example:
///     >>> mx.erfc(mx.array([0.0, 5.0]))
///     array([1, 1.53746e-12], dtype=float32)
#[pyfunction(name = "erfc")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn erfc(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::erfc(&a)))
}

/// The inverse of the error function; ±∞ at ±1 and NaN beyond.
///
/// Example:
///     >>> mx.erfinv(mx.array([0.0, 0.5]))
///     array([0, 0.476936], dtype=float32)
#[pyfunction(name = "erfinv")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn erfinv(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::erfinv(&a)))
}

/// eˣ.
///
/// Example:
///     >>> mx.exp(mx.array([0.0, 1.0]))
///     array([1, 2.71828], dtype=float32)
#[pyfunction(name = "exp")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn exp(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::exp(&a)))
}

/// Axes of size 1 inserted, numbered as in the result.
///
/// Example:
///     >>> mx.expand_dims(mx.array([1, 2]), axis=0).shape
///     (1, 2)
#[pyfunction(name = "expand_dims")]
#[pyo3(signature = (a, axis, *, stream = None), text_signature = "(a, axis, *, stream=None)")]
pub fn expand_dims(a: Arr, axis: NamedAxes, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::expand_dims(&a, axis.0)))
}

/// eˣ − 1, accurate near 0.
///
/// Example:
///     >>> mx.expm1(mx.array([0.0, 1e-6]))
///     array([0, 1e-06], dtype=float32)
#[pyfunction(name = "expm1")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn expm1(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::expm1(&a)))
}

/// Axes `start..=end` merged into one. Axes past either end mean that end.
///
/// Errors:
/// Where `end` comes before `start`.
///
/// Example:
///     >>> mx.flatten(mx.ones((2, 3, 4)), 1, 2).shape
///     (2, 12)
#[pyfunction(name = "flatten")]
#[pyo3(signature = (a, start_axis = Small(0), end_axis = Small(-1), *, stream = None), text_signature = "(a, start_axis=0, end_axis=-1, *, stream=None)")]
pub fn flatten(
    a: Arr,
    start_axis: Small,
    end_axis: Small,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::flatten(&a, start_axis.0, end_axis.0)))
}

/// The order reversed along axes; `()` for all.
///
/// Example:
///     >>> mx.flip(mx.array([1, 2, 3]))
///     array([3, 2, 1], dtype=int32)
#[pyfunction(name = "flip")]
#[pyo3(signature = (a, axis = Axis::all(), *, stream = None), text_signature = "(a, axis=None, *, stream=None)")]
pub fn flip(a: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::flip(&a, axis.0)))
}

/// The largest integer not above x, in x's dtype.
///
/// Example:
///     >>> mx.floor(mx.array([1.8, -1.2]))
///     array([1, -2], dtype=float32)
#[pyfunction(name = "floor")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn floor(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::floor(&a)))
}

/// ⌊a/b⌋.
///
/// Dtypes:
/// An integer divided by 0 gives 0. Does not take complex numbers.
///
/// Example:
///     >>> mx.floor_divide(mx.array([7, -7]), 2)
///     array([3, -4], dtype=int32)
#[pyfunction(name = "floor_divide")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn floor_divide(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::floor_divide(&a, &b)))
}

/// The larger of a and b; of a number and NaN the number.
///
/// Shapes:
/// The operands broadcast.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.fmax(mx.array([float("nan"), 2.0]), 1.0)
///     array([1, 2], dtype=float32)
#[pyfunction(name = "fmax")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn fmax(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::fmax(&a, &b)))
}

/// The smaller of a and b; of a number and NaN the number.
///
/// Shapes:
/// The operands broadcast.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.fmin(mx.array([float("nan"), 2.0]), 1.0)
///     array([1, 1], dtype=float32)
#[pyfunction(name = "fmin")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn fmin(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::fmin(&a, &b)))
}

/// a − b·trunc(a/b), with the sign of a, exactly; `remainder`(super::remainder) has the sign of b.
///
/// Shapes:
/// The operands broadcast.
///
/// Dtypes:
/// The operands promote; an integer modulo 0 gives 0.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.fmod(mx.array([-7, 7]), 4)
///     array([-3, 3], dtype=int32)
#[pyfunction(name = "fmod")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn fmod(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::fmod(&a, &b)))
}

/// What is behind the point of x, with x's sign: x − trunc x.
///
/// Dtypes:
/// Integers give 0.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.frac(mx.array([-1.5, 2.25]))
///     array([-0.5, 0.25], dtype=float32)
#[pyfunction(name = "frac")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn frac(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::frac(&a)))
}

/// Numbers as m·2ᵏ with ½ ≤ |m| < 1: the pair of m and, as `int32`, k. Of 0, ±∞ and NaN k is 0 and m the
/// number itself.
///
/// Dtypes:
/// Integers and bool are taken as `float32`.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.frexp(mx.array([12.0, -0.375]))
///     (array([0.75, -0.75], dtype=float32), array([4, -1], dtype=int32))
#[pyfunction(name = "frexp")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn frexp(a: Arr, stream: Option<On>) -> PyResult<(PyArray, PyArray)> {
    on(stream, || give(ops::frexp(&a)))
}

/// The numbers that `to_fp8` made, as floats of `dtype`.
///
/// Errors:
/// Where `x` is not `uint8`, or `dtype` not a float.
///
/// Example:
///     >>> mx.from_fp8(mx.array([56, 64], dtype=mx.uint8), mx.float32)
///     array([1, 2], dtype=float32)
#[pyfunction(name = "from_fp8")]
#[pyo3(signature = (x, dtype = None, *, stream = None), text_signature = "(x, dtype=None, *, stream=None)")]
pub fn from_fp8(x: Arr, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::from_fp8(&x, dtype.map_or(DType::BF16, |d| d.0))))
}

/// `count` numbers from `start` to `stop`, both included, each the same multiple of the one before. They are computed
/// in `float64`, on the CPU.
///
/// Errors:
/// Where an end is 0 or they differ in sign, and where `dtype` is neither an integer nor a float.
///
/// Example:
///     >>> mx.geomspace(1, 8, 4)
///     array([1, 2, 4, 8], dtype=float32)
#[pyfunction(name = "geomspace")]
#[pyo3(signature = (start, stop, num = Count(50), dtype = None, *, stream = None), text_signature = "(start, stop, num=50, dtype=None, *, stream=None)")]
pub fn geomspace(
    start: f64,
    stop: f64,
    num: Count,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::geomspace(start, stop, num.0, dtype.map_or(DType::F32, |d| d.0))))
}

/// Whether a > b.
///
/// Dtypes:
/// Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.
///
/// Example:
///     >>> mx.greater(mx.array([1, 2]), 1)
///     array([False, True], dtype=bool)
#[pyfunction(name = "greater")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn greater(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::greater(&a, &b)))
}

/// Whether a ≥ b.
///
/// Dtypes:
/// Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.
///
/// Example:
///     >>> mx.greater_equal(mx.array([1, 2]), 2)
///     array([False, True], dtype=bool)
#[pyfunction(name = "greater_equal")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn greater_equal(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::greater_equal(&a, &b)))
}

/// 0 below 0, 1 above it, and `values` at it; NaN of NaN.
///
/// Shapes:
/// The operands broadcast.
///
/// Dtypes:
/// The operands promote.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.heaviside(mx.array([-1.5, 0.0, 2.0]), 0.5)
///     array([0, 0.5, 1], dtype=float32)
#[pyfunction(name = "heaviside")]
#[pyo3(signature = (a, values, stream = None), text_signature = "(a, values, stream=None)")]
pub fn heaviside(a: Opd, values: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, values) = meet(a, values)?;
    on(stream, || give(ops::heaviside(&a, &values)))
}

/// √(a² + b²), where the squares would overflow or vanish, too.
///
/// Shapes:
/// The operands broadcast.
///
/// Dtypes:
/// The operands promote; integers and bool are taken as `float32`; half types are computed in `float32`.
/// With an infinite operand the result is ∞, whatever the other is.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.hypot(mx.array([3.0, 5.0]), mx.array([4.0, 12.0]))
///     array([5, 13], dtype=float32)
#[pyfunction(name = "hypot")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn hypot(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::hypot(&a, &b)))
}

/// The modified Bessel function of the first kind of order 0, I₀(x) = Σ (x²/4)ᵏ/k!² (A&S 9.6.12); from 12 on
/// (20 of `float64`) by its asymptotic series (9.7.1).
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.i0(mx.array([0.0, 1.0]))
///     array([1, 1.26607], dtype=float32)
#[pyfunction(name = "i0")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn i0(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::i0(&a)))
}

/// The identity matrix.
///
/// Example:
///     >>> mx.identity(2)
///     array([[1, 0],
///            [0, 1]], dtype=float32)
#[pyfunction(name = "identity")]
#[pyo3(signature = (n, dtype = None, *, stream = None), text_signature = "(n, dtype=None, *, stream=None)")]
pub fn identity(n: Count, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::identity(n.0, dtype.map_or(DType::F32, |d| d.0))))
}

/// The imaginary part: `float32` of a complex number, 0 of anything else.
///
/// Example:
///     >>> mx.imag(mx.array([1 + 2j]))
///     array([2], dtype=float32)
#[pyfunction(name = "imag")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn imag(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::imag(&a)))
}

/// `x` with `value` in the slices at `indices` along an axis.
///
/// Shapes:
/// The indices have at most one axis; the value broadcasts to the slices.
///
/// Dtypes:
/// The value is taken in x's dtype.
///
/// Errors:
/// Where the indices are not integers, for a float into integers, and when it runs where an index is out of
/// range.
///
/// Example:
///     >>> mx.index_fill(mx.array([1, 2, 3]), 0, mx.array([0, 2]), 9)
///     array([9, 2, 9], dtype=int32)
#[pyfunction(name = "index_fill")]
#[pyo3(signature = (a, axis, indices, value, *, stream = None), text_signature = "(a, axis, indices, value, *, stream=None)")]
pub fn index_fill(
    mut a: Arr,
    axis: Small,
    mut indices: Arr,
    value: Opd,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let value = value.beside(a.dtype())?;
    keep_doubles([&mut a, &mut indices]);
    on(stream, || give(ops::index_fill(&a, axis.0, &indices, &value)))
}

/// The sums of products over the last axis of each operand.
///
/// Shapes:
/// `[a.., k]` and `[b.., k]` give `[a.., b..]`.
///
/// Example:
///     >>> mx.inner(mx.array([1, 2]), mx.array([3, 4]))
///     array(11, dtype=int32)
#[pyfunction(name = "inner")]
#[pyo3(signature = (a, b, *, stream = None), text_signature = "(a, b, *, stream=None)")]
pub fn inner(mut a: Arr, mut b: Arr, stream: Option<On>) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut b]);
    on(stream, || give(ops::inner(&a, &b)))
}

/// Whether x is neither infinite nor NaN; of a complex number, whether both parts are.
///
/// Example:
///     >>> mx.isfinite(mx.array([1.0, mx.inf, mx.nan]))
///     array([True, False, False], dtype=bool)
#[pyfunction(name = "isfinite")]
#[pyo3(signature = (a, stream = None), text_signature = "(a, stream=None)")]
pub fn isfinite(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::isfinite(&a)))
}

/// Whether x is ∞ or −∞; of a complex number, whether either part is.
///
/// Example:
///     >>> mx.isinf(mx.array([1.0, -mx.inf, mx.nan]))
///     array([False, True, False], dtype=bool)
#[pyfunction(name = "isinf")]
#[pyo3(signature = (a, stream = None), text_signature = "(a, stream=None)")]
pub fn isinf(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::isinf(&a)))
}

/// Whether x is NaN; of a complex number, whether either part is.
///
/// Example:
///     >>> mx.isnan(mx.array([1.0, mx.inf, mx.nan]))
///     array([False, False, True], dtype=bool)
#[pyfunction(name = "isnan")]
#[pyo3(signature = (a, stream = None), text_signature = "(a, stream=None)")]
pub fn isnan(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::isnan(&a)))
}

/// Whether x is −∞.
///
/// Example:
///     >>> mx.isneginf(mx.array([mx.inf, -mx.inf]))
///     array([False, True], dtype=bool)
#[pyfunction(name = "isneginf")]
#[pyo3(signature = (a, stream = None), text_signature = "(a, stream=None)")]
pub fn isneginf(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::isneginf(&a)))
}

/// Whether x is ∞.
///
/// Example:
///     >>> mx.isposinf(mx.array([mx.inf, -mx.inf]))
///     array([True, False], dtype=bool)
#[pyfunction(name = "isposinf")]
#[pyo3(signature = (a, stream = None), text_signature = "(a, stream=None)")]
pub fn isposinf(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::isposinf(&a)))
}

/// The Kronecker product: each element of `a` times all of `b`, as blocks.
///
/// Example:
///     >>> mx.kron(mx.array([1, 2]), mx.array([1, 10]))
///     array([1, 10, 2, 20], dtype=int32)
#[pyfunction(name = "kron")]
#[pyo3(signature = (a, b, *, stream = None), text_signature = "(a, b, *, stream=None)")]
pub fn kron(mut a: Arr, mut b: Arr, stream: Option<On>) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut b]);
    on(stream, || give(ops::kron(&a, &b)))
}

/// x·2ᵏ, rounded once.
///
/// Shapes:
/// The operands broadcast.
///
/// Dtypes:
/// Integers x are taken as `float32`; the result has that dtype, whatever that of the exponents is. Exponents
/// that are floats raise 2 to them.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.ldexp(mx.array([1.5, 1.5]), mx.array([-1, 3]))
///     array([0.75, 12], dtype=float32)
#[pyfunction(name = "ldexp")]
#[pyo3(signature = (a, k, stream = None), text_signature = "(a, k, stream=None)")]
pub fn ldexp(a: Opd, k: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, k) = meet(a, k)?;
    on(stream, || give(ops::ldexp(&a, &k)))
}

/// a·2ᵇ in the integer's width; 0 from the width on.
///
/// Dtypes:
/// Two bools shift as `uint8`; floats are an error.
///
/// Example:
///     >>> mx.left_shift(mx.array([1, 2]), 3)
///     array([8, 16], dtype=int32)
#[pyfunction(name = "left_shift")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn left_shift(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::left_shift(&a, &b)))
}

/// start + weight·(end − start), and exactly `end` for a weight of 1.
///
/// Shapes:
/// All three broadcast.
///
/// Dtypes:
/// All three promote; integers and bool are taken as `float32`; half types are computed in `float32`.
///
/// Example:
///     >>> mx.lerp(mx.array([0.0, 10.0]), mx.array([10.0, 20.0]), 0.25)
///     array([2.5, 12.5], dtype=float32)
#[pyfunction(name = "lerp")]
#[pyo3(signature = (start, end, weight, *, stream = None), text_signature = "(start, end, weight, *, stream=None)")]
pub fn lerp(start: Opd, end: Opd, weight: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (start, end) = meet(start, end)?;
    let (end, weight) = meet(end, weight)?;
    let (start, weight) = meet(start, weight)?;
    on(stream, || give(ops::lerp(&start, &end, &weight)))
}

/// Whether a < b.
///
/// Dtypes:
/// Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.
///
/// Example:
///     >>> mx.less(mx.array([1, 2]), 2)
///     array([True, False], dtype=bool)
#[pyfunction(name = "less")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn less(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::less(&a, &b)))
}

/// Whether a ≤ b.
///
/// Dtypes:
/// Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.
///
/// Example:
///     >>> mx.less_equal(mx.array([1, 2, 3]), 2)
///     array([True, True, False], dtype=bool)
#[pyfunction(name = "less_equal")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn less_equal(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::less_equal(&a, &b)))
}

/// ln |Γ(x)|: ∞ at 0 and the negative integers.
///
/// Γ(x + 1) = x·Γ(x) leads to the series around 2 (A&S 6.1.33), or from 8 on (13 of `float64`) to Stirling's
/// (6.1.40); below 0, Γ(x)·Γ(−x) = −π/(x·sin πx) (6.1.17).
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.lgamma(mx.array([1.0, 5.0]))
///     array([0, 3.17805], dtype=float32)
#[pyfunction(name = "lgamma")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn lgamma(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::lgamma(&a)))
}

/// ln x.
///
/// Example:
///     >>> mx.log(mx.array([1.0, mx.e]))
///     array([0, 1], dtype=float32)
#[pyfunction(name = "log")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn log(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::log(&a)))
}

/// log₁₀ x.
///
/// Example:
///     >>> mx.log10(mx.array([1.0, 100.0]))
///     array([0, 2], dtype=float32)
#[pyfunction(name = "log10")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn log10(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::log10(&a)))
}

/// ln(1 + x), accurate near 0.
///
/// Example:
///     >>> mx.log1p(mx.array([0.0, 1e-6]))
///     array([0, 1e-06], dtype=float32)
#[pyfunction(name = "log1p")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn log1p(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::log1p(&a)))
}

/// log₂ x.
///
/// Example:
///     >>> mx.log2(mx.array([1.0, 8.0]))
///     array([0, 3], dtype=float32)
#[pyfunction(name = "log2")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn log2(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::log2(&a)))
}

/// ln(eᵃ + eᵇ), without overflow.
///
/// Example:
///     >>> mx.logaddexp(mx.array([0.0]), mx.array([0.0]))
///     array([0.693147], dtype=float32)
#[pyfunction(name = "logaddexp")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn logaddexp(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::logaddexp(&a, &b)))
}

/// True where x is false; numbers are true where they are not 0.
///
/// Example:
///     >>> mx.logical_not(mx.array([True, False]))
///     array([False, True], dtype=bool)
#[pyfunction(name = "logical_not")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn logical_not(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::logical_not(&a)))
}

/// ln Σ eˣ over `axes`; −∞ where every element is.
///
/// Dtypes:
/// As `softmax`.
///
/// Errors:
/// Where an axis is empty.
///
/// Example:
///     >>> mx.logsumexp(mx.zeros((2, 4)), axis=1)
///     array([1.38629, 1.38629], dtype=float32)
#[pyfunction(name = "logsumexp")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn logsumexp(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::logsumexp(&a, axis.0, keepdims)))
}

/// `x` with `value` where the mask is true.
///
/// Shapes:
/// Mask and value broadcast to the shape of `x`.
///
/// Dtypes:
/// The value is taken in x's dtype.
///
/// Errors:
/// For a mask that is not bool or does not fit, and for a float into integers.
///
/// Example:
///     >>> mx.masked_fill(mx.array([1, 2, 3]), mx.array([True, False, True]), 0)
///     array([0, 2, 0], dtype=int32)
#[pyfunction(name = "masked_fill")]
#[pyo3(signature = (a, mask, value, *, stream = None), text_signature = "(a, mask, value, *, stream=None)")]
pub fn masked_fill(mut a: Arr, mut mask: Arr, value: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let value = value.beside(a.dtype())?;
    keep_doubles([&mut a, &mut mask]);
    on(stream, || give(ops::masked_fill(&a, &mask, &value)))
}

/// The elements of `x` where the mask is true, in order.
///
/// Shapes:
/// Both broadcast; the result has one axis. How long it is depends on the mask, which is evaluated.
///
/// Errors:
/// For a mask that is not bool, and under `compile` and `vmap`, where there are no values.
///
/// Example:
///     >>> mx.masked_select(mx.array([1, 2, 3]), mx.array([True, False, True]))
///     array([1, 3], dtype=int32)
#[pyfunction(name = "masked_select")]
#[pyo3(signature = (a, mask, *, stream = None), text_signature = "(a, mask, *, stream=None)")]
pub fn masked_select(
    py: Python<'_>,
    mut a: Arr,
    mut mask: Arr,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut mask]);
    evaluating(py, stream, || give(ops::masked_select(&a, &mask)))
}

/// The matrix product over the last two axes.
///
/// Shapes:
/// `[.., m, k]` by `[.., k, n]` gives `[.., m, n]`; leading axes broadcast. A vector on the left is
/// a row, on the right a column, and its axis goes from the result.
///
/// Dtypes:
/// The operands promote; half types accumulate in `float32`; bool multiplies as `int32`. Where a
/// processor has an instruction for products of `bfloat16`, subnormal numbers (below 1.2·10⁻³⁸)
/// count as 0.
///
/// Example:
///     >>> mx.matmul(mx.ones((2, 3)), mx.ones((3, 2)))
///     array([[3, 3],
///            [3, 3]], dtype=float32)
#[pyfunction(name = "matmul")]
#[pyo3(signature = (a, b, *, stream = None), text_signature = "(a, b, *, stream=None)")]
pub fn matmul(mut a: Arr, mut b: Arr, stream: Option<On>) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut b]);
    on(stream, || give(ops::matmul(&a, &b)))
}

/// The last two axes exchanged.
///
/// Errors:
/// Where there are fewer than two.
///
/// Example:
///     >>> mx.matrix_transpose(mx.array([[1, 2], [3, 4]]))
///     array([[1, 3],
///            [2, 4]], dtype=int32)
#[pyfunction(name = "matrix_transpose")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn matrix_transpose(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::matrix_transpose(&a)))
}

/// The largest element over `axes`; NaN if there is one. Of zeros the positive one is the larger.
///
/// Errors:
/// Where an axis to fold is empty.
///
/// Example:
///     >>> mx.max(mx.array([[1, 5], [3, 2]]), axis=1)
///     array([5, 3], dtype=int32)
#[pyfunction(name = "max")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn max(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::max(&a, axis.0, keepdims)))
}

/// The larger of a and b; NaN if either is NaN.
///
/// Example:
///     >>> mx.maximum(mx.array([1, 5]), 3)
///     array([3, 5], dtype=int32)
#[pyfunction(name = "maximum")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn maximum(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::maximum(&a, &b)))
}

/// The mean over `axes`; NaN for nothing.
///
/// Dtypes:
/// Integers and bool are taken as `float32`; half types are summed and divided in `float32`.
///
/// Example:
///     >>> mx.mean(mx.array([[1.0, 2.0], [3.0, 5.0]]), axis=0)
///     array([2, 3.5], dtype=float32)
#[pyfunction(name = "mean")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn mean(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::mean(&a, axis.0, keepdims)))
}

/// The median over axes: the middle element, or the mean of the two middle ones; NaN if there is
/// a NaN.
///
/// Dtypes:
/// Integers and bool are taken as `float32`.
///
/// Errors:
/// Where an axis is empty.
///
/// Example:
///     >>> mx.median(mx.array([1, 9, 2]))
///     array(2, dtype=float32)
#[pyfunction(name = "median")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn median(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::median(&a, axis.0, keepdims)))
}

/// The smallest element over `axes`; NaN if there is one. Of zeros the negative one is the smaller.
///
/// Errors:
/// As `max`.
///
/// Example:
///     >>> mx.min(mx.array([[1, 5], [3, 2]]), axis=1)
///     array([1, 2], dtype=int32)
#[pyfunction(name = "min")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn min(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::min(&a, axis.0, keepdims)))
}

/// The smaller of a and b; NaN if either is NaN.
///
/// Example:
///     >>> mx.minimum(mx.array([1, 5]), 3)
///     array([1, 3], dtype=int32)
#[pyfunction(name = "minimum")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn minimum(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::minimum(&a, &b)))
}

/// The smallest and the largest element over `axes`, as `min` and `max` give them.
///
/// Example:
///     >>> mx.minmax(mx.array([3, 1, 2]))
///     (array(1, dtype=int32), array(3, dtype=int32))
#[pyfunction(name = "minmax")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn minmax(
    a: Arr,
    axis: Axis,
    keepdims: bool,
    stream: Option<On>,
) -> PyResult<(PyArray, PyArray)> {
    on(stream, || give(ops::minmax(&a, axis.0, keepdims)))
}

/// One axis moved to another place; the others keep their order.
///
/// Example:
///     >>> mx.moveaxis(mx.ones((2, 3, 4)), 0, 2).shape
///     (3, 4, 2)
#[pyfunction(name = "moveaxis")]
#[pyo3(signature = (a, source, destination, *, stream = None), text_signature = "(a, source, destination, *, stream=None)")]
pub fn moveaxis(
    a: Arr,
    source: Small,
    destination: Small,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::moveaxis(&a, source.0, destination.0)))
}

/// a·b.
///
/// Dtypes:
/// The operands promote; integers wrap; on bool, logical and.
///
/// Example:
///     >>> mx.multiply(mx.array([1, 2]), 3)
///     array([3, 6], dtype=int32)
#[pyfunction(name = "multiply")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn multiply(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::multiply(&a, &b)))
}

/// The largest element over `axes` that is not NaN; NaN where there is nothing else.
///
/// Errors:
/// As `max`(super::max).
///
/// Example:
///     >>> mx.nanmax(mx.array([1.0, float("nan"), 3.0]))
///     array(3, dtype=float32)
#[pyfunction(name = "nanmax")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn nanmax(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::nanmax(&a, axis.0, keepdims)))
}

/// The mean over `axes` of what is not NaN; NaN where there is nothing else.
///
/// Dtypes:
/// As `mean`(super::mean).
///
/// Example:
///     >>> mx.nanmean(mx.array([1.0, float("nan"), 3.0]))
///     array(2, dtype=float32)
#[pyfunction(name = "nanmean")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn nanmean(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::nanmean(&a, axis.0, keepdims)))
}

/// The median over axes of what is not NaN; NaN where there is nothing else.
///
/// Dtypes:
/// Integers and bool are taken as `float32`.
///
/// Errors:
/// As `median`(super::median).
///
/// Example:
///     >>> mx.nanmedian(mx.array([1.0, float("nan"), 3.0, 9.0]))
///     array(3, dtype=float32)
#[pyfunction(name = "nanmedian")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn nanmedian(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::nanmedian(&a, axis.0, keepdims)))
}

/// The smallest element over `axes` that is not NaN; NaN where there is nothing else.
///
/// Errors:
/// As `max`(super::max).
///
/// Example:
///     >>> mx.nanmin(mx.array([1.0, float("nan"), 3.0]))
///     array(1, dtype=float32)
#[pyfunction(name = "nanmin")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn nanmin(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::nanmin(&a, axis.0, keepdims)))
}

/// The sum over `axes` of what is not NaN; 0 for nothing.
///
/// Dtypes:
/// As `sum`(super::sum).
///
/// Example:
///     >>> mx.nansum(mx.array([1.0, float("nan"), 3.0]))
///     array(4, dtype=float32)
#[pyfunction(name = "nansum")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn nansum(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::nansum(&a, axis.0, keepdims)))
}

/// −x; integers wrap.
///
/// Errors:
/// For bool: use `logical_not`.
///
/// Example:
///     >>> mx.negative(mx.array([1, -2]))
///     array([-1, 2], dtype=int32)
#[pyfunction(name = "negative")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn negative(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::negative(&a)))
}

/// The next number of the dtype after a towards b; b where they are equal.
///
/// Shapes:
/// The operands broadcast.
///
/// Dtypes:
/// The operands promote; integers and bool are taken as `float32`. The step has no derivative.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.nextafter(mx.array(1.0), 2.0) > 1.0
///     array(True, dtype=bool)
#[pyfunction(name = "nextafter")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn nextafter(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::nextafter(&a, &b)))
}

/// Whether a ≠ b; NaN differs from everything.
///
/// Example:
///     >>> mx.not_equal(mx.array([1, 2]), 2)
///     array([True, False], dtype=bool)
#[pyfunction(name = "not_equal")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn not_equal(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::not_equal(&a, &b)))
}

/// Ones.
///
/// Example:
///     >>> mx.ones((2, 2))
///     array([[1, 1],
///            [1, 1]], dtype=float32)
#[pyfunction(name = "ones")]
#[pyo3(signature = (shape, dtype = None, *, stream = None), text_signature = "(shape, dtype=None, *, stream=None)")]
pub fn ones(shape: ShapeArg, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::ones(shape.0, dtype.map_or(DType::F32, |d| d.0))))
}

/// The products of each element of one flattened operand with each of the other.
///
/// Example:
///     >>> mx.outer(mx.array([1, 2]), mx.array([3, 4]))
///     array([[3, 4],
///            [6, 8]], dtype=int32)
#[pyfunction(name = "outer")]
#[pyo3(signature = (a, b, *, stream = None), text_signature = "(a, b, *, stream=None)")]
pub fn outer(mut a: Arr, mut b: Arr, stream: Option<On>) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut b]);
    on(stream, || give(ops::outer(&a, &b)))
}

/// The elements of an axis with the one at `kth` where it is in their order, none larger before it
/// and none smaller behind it; `()` flattens first. How the others lie may differ between devices.
///
/// Errors:
/// Where the axis has no element `kth`, which counts from the end if it is negative.
///
/// Example:
///     >>> mx.partition(mx.array([3, 1, 2]), kth=0)[0]
///     array(1, dtype=int32)
#[pyfunction(name = "partition")]
#[pyo3(signature = (a, kth, axis = OneAxis::one(-1), *, stream = None), text_signature = "(a, kth, axis=-1, *, stream=None)")]
pub fn partition(a: Arr, kth: isize, axis: OneAxis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::partition(&a, kth, axis.0)))
}

/// Channels moved into space, r² of them at each pixel to a square of r by r pixels.
///
/// W. Shi et al., *Real-time single image and video super-resolution using an efficient sub-pixel convolutional neural
/// network*, CVPR 2016.
///
/// Shapes:
/// `[.., H, W, C·r²]` gives `[.., H·r, W·r, C]`. As in PyTorch, what stands at row i and column j of the square of
/// channel c is channel c·r² + i·r + j.
///
/// Errors:
/// For fewer than three axes, a factor of 0, and channels that r² does not divide.
///
/// Example:
///     >>> mx.pixel_shuffle(mx.array([[[1, 2, 3, 4]]]), 2)
///     array([[[1],
///             [2]],
///            [[3],
///             [4]]], dtype=int32)
#[pyfunction(name = "pixel_shuffle")]
#[pyo3(signature = (a, upscale_factor, *, stream = None), text_signature = "(a, upscale_factor, *, stream=None)")]
pub fn pixel_shuffle(a: Arr, upscale_factor: Count, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::pixel_shuffle(&a, upscale_factor.0)))
}

/// The inverse of `pixel_shuffle`: squares of r by r pixels moved into channels.
///
/// Shapes:
/// `[.., H·r, W·r, C]` gives `[.., H, W, C·r²]`.
///
/// Errors:
/// For fewer than three axes, a factor of 0, and sides that r does not divide.
///
/// Example:
///     >>> mx.pixel_unshuffle(mx.array([[[1], [2]], [[3], [4]]]), 2)
///     array([[[1, 2, 3, 4]]], dtype=int32)
#[pyfunction(name = "pixel_unshuffle")]
#[pyo3(signature = (a, downscale_factor, *, stream = None), text_signature = "(a, downscale_factor, *, stream=None)")]
pub fn pixel_unshuffle(a: Arr, downscale_factor: Count, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::pixel_unshuffle(&a, downscale_factor.0)))
}

/// The value at `x` of the polynomial with these coefficients, highest power first, by Horner's rule.
///
/// Shapes:
/// The coefficients are a vector; the result has the shape of `x`.
///
/// Dtypes:
/// Both promote; half types are computed in `float32`; integers wrap.
///
/// Errors:
/// Where the coefficients are not a vector.
///
/// Example:
///     >>> mx.polyval(mx.array([1.0, -3.0, 2.0]), mx.array([0.0, 4.0]))
///     array([2, 6], dtype=float32)
#[pyfunction(name = "polyval")]
#[pyo3(signature = (p, x, *, stream = None), text_signature = "(p, x, *, stream=None)")]
pub fn polyval(mut p: Arr, x: Opd, stream: Option<On>) -> PyResult<PyArray> {
    p.keep_doubles_beside(&x);
    let x = x.keeping_doubles(p.dtype());
    on(stream, || give(ops::polyval(&p, &x)))
}

/// x as it is.
///
/// Example:
///     >>> mx.positive(mx.array([1, -2]))
///     array([1, -2], dtype=int32)
#[pyfunction(name = "positive")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn positive(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::positive(&a)))
}

/// aᵇ.
///
/// Dtypes:
/// The operands promote. A negative exponent of an integer gives 0, or ±1 for bases ±1.
///
/// Example:
///     >>> mx.power(mx.array([2, 3]), 2)
///     array([4, 9], dtype=int32)
#[pyfunction(name = "power")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn power(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::power(&a, &b)))
}

/// The product over `axes`; 1 for nothing.
///
/// Dtypes:
/// As `sum`.
///
/// Example:
///     >>> mx.prod(mx.array([2, 3, 4]))
///     array(24, dtype=int32)
#[pyfunction(name = "prod")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn prod(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::prod(&a, axis.0, keepdims)))
}

/// Degrees as radians.
///
/// Example:
///     >>> mx.radians(mx.array([0.0, 180.0]))
///     array([0, 3.14159], dtype=float32)
#[pyfunction(name = "radians")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn radians(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::radians(&a)))
}

/// The real part: `float32` of a complex number, anything else as it is.
///
/// Example:
///     >>> mx.real(mx.array([1 + 2j]))
///     array([1], dtype=float32)
#[pyfunction(name = "real")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn real(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::real(&a)))
}

/// 1/x.
///
/// Dtypes:
/// Integers and bool are taken as `float32`.
///
/// Example:
///     >>> mx.reciprocal(mx.array([2.0, 4.0]))
///     array([0.5, 0.25], dtype=float32)
#[pyfunction(name = "reciprocal")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn reciprocal(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::reciprocal(&a)))
}

/// a − b·⌊a/b⌋, with the sign of b.
///
/// Dtypes:
/// An integer modulo 0 gives 0. Does not take complex numbers.
///
/// Example:
///     >>> mx.remainder(mx.array([7, -7]), 3)
///     array([1, 2], dtype=int32)
#[pyfunction(name = "remainder")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn remainder(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::remainder(&a, &b)))
}

/// Each element repeated `repeats` times along an axis; `()` flattens first.
///
/// Example:
///     >>> mx.repeat(mx.array([1, 2]), 2)
///     array([1, 1, 2, 2], dtype=int32)
#[pyfunction(name = "repeat")]
#[pyo3(signature = (array, repeats, axis = OneAxis::all(), *, stream = None), text_signature = "(array, repeats, axis=None, *, stream=None)")]
pub fn repeat(array: Arr, repeats: Count, axis: OneAxis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::repeat(&array, repeats.0, axis.0)))
}

/// Each slice of `x` along an axis as often in a row as `repeats` says; `()` flattens first.
///
/// Shapes:
/// `repeats` is one number, or a vector of one for each slice. How many slices there are depends on its values, so
/// an array is evaluated.
///
/// Errors:
/// Where the repeats are not integers, are negative, or do not fit the axis, and for an array of them under
/// `compile` and `vmap`, where there are no values.
///
/// Example:
///     >>> mx.repeat_interleave(mx.array([1, 2, 3]), mx.array([2, 0, 1]))
///     array([1, 1, 3], dtype=int32)
#[pyfunction(name = "repeat_interleave")]
#[pyo3(signature = (a, repeats, axis = Axis::all(), *, stream = None), text_signature = "(a, repeats, axis=None, *, stream=None)")]
pub fn repeat_interleave(
    py: Python<'_>,
    a: Arr,
    repeats: Opd,
    axis: Axis,
    stream: Option<On>,
) -> PyResult<PyArray> {
    evaluating(py, stream, || give(ops::repeat_interleave(&a, &repeats, axis.0)))
}

/// The elements, in row-major order, under another shape; one size may be −1: what is left.
///
/// Errors:
/// Where the count of elements changes.
///
/// Example:
///     >>> mx.reshape(mx.arange(6), (2, -1))
///     array([[0, 1, 2],
///            [3, 4, 5]], dtype=int32)
#[pyfunction(name = "reshape")]
#[pyo3(signature = (a, shape, *, stream = None), text_signature = "(a, shape, *, stream=None)")]
pub fn reshape(a: Arr, shape: SizesArg, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::reshape(&a, shape)))
}

/// ⌊a/2ᵇ⌋; from the width on 0, or −1 for negative a.
///
/// Dtypes:
/// Two bools shift as `uint8`; floats are an error.
///
/// Example:
///     >>> mx.right_shift(mx.array([8, 16]), 3)
///     array([1, 2], dtype=int32)
#[pyfunction(name = "right_shift")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn right_shift(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::right_shift(&a, &b)))
}

/// Elements moved along axes by `shift` places, those past the end entering at the start.
///
/// Shapes:
/// One shift an axis, one for all axes named, or several for one axis, which add up. `()` rolls the
/// flattened array.
///
/// Example:
///     >>> mx.roll(mx.array([1, 2, 3]), 1)
///     array([3, 1, 2], dtype=int32)
#[pyfunction(name = "roll")]
#[pyo3(signature = (a, shift, axis = Axis::all(), *, stream = None), text_signature = "(a, shift, axis=None, *, stream=None)")]
pub fn roll(a: Arr, shift: SizesArg, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::roll(&a, shift, axis.0)))
}

/// The nearest number of `decimals` decimals, ties to even.
///
/// Where `decimals` is negative it is one of tens, hundreds, …. What has fewer decimals than asked for
/// stays as it is.
///
/// Dtypes:
/// Half types are computed in `float32`, complex numbers in parts. Integers stay as they are where
/// `decimals` is not negative, and are computed as integers where it is: what does not fit wraps.
///
/// Derivatives:
/// 0.
///
/// Example:
///     >>> mx.round(mx.array([1.26, 2.5]), decimals=1)
///     array([1.3, 2.5], dtype=float32)
#[pyfunction(name = "round")]
#[pyo3(signature = (a, decimals = 0, stream = None), text_signature = "(a, decimals=0, stream=None)")]
pub fn round(a: Numeric, decimals: i32, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::round(&a, decimals)))
}

/// 1/√x.
///
/// Example:
///     >>> mx.rsqrt(mx.array([4.0, 16.0]))
///     array([0.5, 0.25], dtype=float32)
#[pyfunction(name = "rsqrt")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn rsqrt(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::rsqrt(&a)))
}

/// The largest elements of the rows of each segment; −∞, or the least integer, for a segment without rows.
///
/// Shapes:
/// As `segment_sum`.
///
/// Errors:
/// As `segment_sum`.
///
/// Example:
///     >>> mx.segment_max(mx.array([1.0, 2.0, 4.0]), mx.array([0, 1, 0]), 2)
///     array([4, 2], dtype=float32)
#[pyfunction(name = "segment_max")]
#[pyo3(signature = (a, segment_ids, num_segments, *, stream = None), text_signature = "(a, segment_ids, num_segments, *, stream=None)")]
pub fn segment_max(
    mut a: Arr,
    mut segment_ids: Arr,
    num_segments: Count,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut segment_ids]);
    on(stream, || give(ops::segment_max(&a, &segment_ids, num_segments.0)))
}

/// The means of the rows of each segment; NaN for a segment without rows.
///
/// Shapes:
/// As `segment_sum`.
///
/// Dtypes:
/// Integers and bool are taken as `float32`; half types are summed in `float32`.
///
/// Errors:
/// As `segment_sum`.
///
/// Example:
///     >>> mx.segment_mean(mx.array([1.0, 2.0, 4.0]), mx.array([0, 1, 0]), 2)
///     array([2.5, 2], dtype=float32)
#[pyfunction(name = "segment_mean")]
#[pyo3(signature = (a, segment_ids, num_segments, *, stream = None), text_signature = "(a, segment_ids, num_segments, *, stream=None)")]
pub fn segment_mean(
    mut a: Arr,
    mut segment_ids: Arr,
    num_segments: Count,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut segment_ids]);
    on(stream, || give(ops::segment_mean(&a, &segment_ids, num_segments.0)))
}

/// The smallest elements of the rows of each segment; ∞, or the largest integer, for a segment without rows.
///
/// Shapes:
/// As `segment_sum`.
///
/// Errors:
/// As `segment_sum`, and for complex numbers.
///
/// Example:
///     >>> mx.segment_min(mx.array([1.0, 2.0, 4.0]), mx.array([0, 1, 0]), 2)
///     array([1, 2], dtype=float32)
#[pyfunction(name = "segment_min")]
#[pyo3(signature = (a, segment_ids, num_segments, *, stream = None), text_signature = "(a, segment_ids, num_segments, *, stream=None)")]
pub fn segment_min(
    mut a: Arr,
    mut segment_ids: Arr,
    num_segments: Count,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut segment_ids]);
    on(stream, || give(ops::segment_min(&a, &segment_ids, num_segments.0)))
}

/// The sums of the rows of each segment; 0 for a segment without rows.
///
/// Shapes:
/// `x` `[n, ..]` and the number of each row's segment `[n]` give `[count, ..]`.
///
/// Dtypes:
/// Half types are summed in `float32`.
///
/// Errors:
/// Where the segments are not integers or not one a row, for bool, and when it runs where one is not below `count`.
///
/// Example:
///     >>> mx.segment_sum(mx.array([1, 2, 3]), mx.array([0, 2, 0]), 3)
///     array([4, 0, 2], dtype=int32)
#[pyfunction(name = "segment_sum")]
#[pyo3(signature = (a, segment_ids, num_segments, *, stream = None), text_signature = "(a, segment_ids, num_segments, *, stream=None)")]
pub fn segment_sum(
    mut a: Arr,
    mut segment_ids: Arr,
    num_segments: Count,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut segment_ids]);
    on(stream, || give(ops::segment_sum(&a, &segment_ids, num_segments.0)))
}

/// The products of parts of two matrices: for each pair of `segments` the product over the inner
/// places from its first up to but without its second number.
///
/// Shapes:
/// a `[m, k]`, b `[k, n]` and segments `[.., 2]` give `[.., m, n]`.
///
/// Errors:
/// Where segments are not pairs of integers, or the operands not matrices of floats or complex numbers.
///
/// Example:
///     >>> mx.segmented_mm(mx.ones((1, 4)), mx.ones((4, 1)), mx.array([[0, 1], [1, 4]])).flatten()
///     array([1, 3], dtype=float32)
#[pyfunction(name = "segmented_mm")]
#[pyo3(signature = (a, b, segments, *, stream = None), text_signature = "(a, b, segments, *, stream=None)")]
pub fn segmented_mm(
    mut a: Arr,
    mut b: Arr,
    mut segments: Arr,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut b, &mut segments]);
    on(stream, || give(ops::segmented_mm(&a, &b, &segments)))
}

/// 1/(1 + e⁻ˣ).
///
/// Example:
///     >>> mx.sigmoid(mx.array([0.0, 2.0]))
///     array([0.5, 0.880797], dtype=float32)
#[pyfunction(name = "sigmoid")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sigmoid(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sigmoid(&a)))
}

/// −1, 0 or 1 by the sign of x; NaN stays NaN; z/|z| of a complex number.
///
/// Example:
///     >>> mx.sign(mx.array([-3, 0, 3]))
///     array([-1, 0, 1], dtype=int32)
#[pyfunction(name = "sign")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sign(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sign(&a)))
}

/// True where the sign is −, also of −0 and of NaN.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.signbit(mx.array([-0.0, 0.0, -1.5]))
///     array([True, False, True], dtype=bool)
#[pyfunction(name = "signbit")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn signbit(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::signbit(&a)))
}

/// sin x.
///
/// Example:
///     >>> mx.sin(mx.array([0.0, 1.0]))
///     array([0, 0.841471], dtype=float32)
#[pyfunction(name = "sin")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sin(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sin(&a)))
}

/// sin πx/(πx), and 1 at 0.
///
/// Example:
///     >>> mx.sinc(mx.array([0.0, 0.5, 1.0]))
///     array([1, 0.63662, 0], dtype=float32)
#[pyfunction(name = "sinc")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sinc(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sinc(&a)))
}

/// sinh x.
///
/// Example:
///     >>> mx.sinh(mx.array([0.0, 1.0]))
///     array([0, 1.1752], dtype=float32)
#[pyfunction(name = "sinh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sinh(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sinh(&a)))
}

/// The elements of an axis in ascending order, NaN last; `()` flattens first. Complex numbers are ordered by
/// their real parts, and where these are equal by their imaginary ones.
///
/// Example:
///     >>> mx.sort(mx.array([3, 1, 2]))
///     array([1, 2, 3], dtype=int32)
#[pyfunction(name = "sort")]
#[pyo3(signature = (a, axis = OneAxis::one(-1), *, stream = None), text_signature = "(a, axis=-1, *, stream=None)")]
pub fn sort(a: Arr, axis: OneAxis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sort(&a, axis.0)))
}

/// √x.
///
/// Example:
///     >>> mx.sqrt(mx.array([4.0, 9.0]))
///     array([2, 3], dtype=float32)
#[pyfunction(name = "sqrt")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sqrt(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sqrt(&a)))
}

/// x·x.
///
/// Example:
///     >>> mx.square(mx.array([2, 3]))
///     array([4, 9], dtype=int32)
#[pyfunction(name = "square")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn square(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::square(&a)))
}

/// Axes of size 1 removed; `()` removes all of them.
///
/// Errors:
/// Where an axis that is named is not of size 1.
///
/// Example:
///     >>> mx.squeeze(mx.ones((1, 2, 1))).shape
///     (2,)
#[pyfunction(name = "squeeze")]
#[pyo3(signature = (a, axis = Axis::all(), *, stream = None), text_signature = "(a, axis=None, *, stream=None)")]
pub fn squeeze(a: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::squeeze(&a, axis.0)))
}

/// `x` itself, as a constant: derivatives do not pass.
///
/// Example:
///     >>> mx.grad(lambda x: x * mx.stop_gradient(x))(mx.array(3.0)).item()
///     3.0
#[pyfunction(name = "stop_gradient")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn stop_gradient(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::stop_gradient(&a)))
}

/// a − b.
///
/// Dtypes:
/// The operands promote; integers wrap; on bool, logical exclusive or.
///
/// Example:
///     >>> mx.subtract(mx.array([3, 4]), 1)
///     array([2, 3], dtype=int32)
#[pyfunction(name = "subtract")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn subtract(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::subtract(&a, &b)))
}

/// The sum over `axes`; 0 for nothing.
///
/// Shapes:
/// The axes go, or stay with size 1 where `keepdims` is true.
///
/// Dtypes:
/// Bool and small integers sum as 32-bit integers; integers wrap; half types accumulate in
/// `float32`. Over no axes, as of a scalar, there is nothing to sum: the dtype stays, as in MLX.
///
/// Example:
///     >>> mx.sum(mx.array([[1, 2], [3, 4]]), axis=0)
///     array([4, 6], dtype=int32)
#[pyfunction(name = "sum")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn sum(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sum(&a, axis.0, keepdims)))
}

/// Two axes exchanged.
///
/// Example:
///     >>> mx.swapaxes(mx.ones((2, 3, 4)), 0, 2).shape
///     (4, 3, 2)
#[pyfunction(name = "swapaxes")]
#[pyo3(signature = (a, axis1, axis2, *, stream = None), text_signature = "(a, axis1, axis2, *, stream=None)")]
pub fn swapaxes(a: Arr, axis1: Small, axis2: Small, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::swapaxes(&a, axis1.0, axis2.0)))
}

/// The slices of `x` at `indices` along an axis, or the elements of the flattened array for `()`.
///
/// Shapes:
/// The axis is replaced by the axes of `indices`; a plain number removes it.
///
/// Errors:
/// Where the indices are not integers or the axis has no elements to take, and when it runs where an
/// index is out of range.
///
/// Example:
///     >>> mx.take(mx.array([10, 20, 30]), mx.array([2, 0]))
///     array([30, 10], dtype=int32)
#[pyfunction(name = "take")]
#[pyo3(signature = (a, indices, axis = OneAxis::all(), *, stream = None), text_signature = "(a, indices, axis=None, *, stream=None)")]
pub fn take(a: Arr, indices: Opd, axis: OneAxis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::take(&a, &indices, axis.0)))
}

/// The elements of `x` at `indices` along an axis and at the same place along the others; with `()`
/// those of all of `x`, at indices of one axis.
///
/// Shapes:
/// The result has the shape of the indices; the other axes broadcast.
///
/// Errors:
/// Where the indices are not integers, and when it runs where one is out of range.
///
/// Example:
///     >>> mx.take_along_axis(mx.array([[1, 2], [3, 4]]), mx.array([[1], [0]]), axis=1)
///     array([[2],
///            [3]], dtype=int32)
#[pyfunction(name = "take_along_axis")]
#[pyo3(signature = (a, indices, axis = OneAxis::one(-1), *, stream = None), text_signature = "(a, indices, axis=-1, *, stream=None)")]
pub fn take_along_axis(
    mut a: Arr,
    mut indices: Arr,
    axis: OneAxis,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut indices]);
    on(stream, || give(ops::take_along_axis(&a, &indices, axis.0)))
}

/// tan x.
///
/// Example:
///     >>> mx.tan(mx.array([0.0, 1.0]))
///     array([0, 1.55741], dtype=float32)
#[pyfunction(name = "tan")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn tan(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::tan(&a)))
}

/// tanh x.
///
/// Example:
///     >>> mx.tanh(mx.array([0.0, 1.0]))
///     array([0, 0.761594], dtype=float32)
#[pyfunction(name = "tanh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn tanh(a: Numeric, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::tanh(&a)))
}

/// The array repeated whole, `reps[i]` times along axis `i`; missing counts and missing axes are 1.
///
/// Example:
///     >>> mx.tile(mx.array([1, 2]), 2)
///     array([1, 2, 1, 2], dtype=int32)
#[pyfunction(name = "tile")]
#[pyo3(signature = (a, reps, *, stream = None), text_signature = "(a, reps, *, stream=None)")]
pub fn tile(a: Arr, reps: SizesArg, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::tile(&a, reps)))
}

/// Floats as e4m3 numbers in `uint8`, rounded to nearest even; ±448 where they are larger, or NaN.
///
/// Errors:
/// Where `x` is not of floats.
///
/// Example:
///     >>> mx.to_fp8(mx.array([1.0, -448.0]))
///     array([56, 254], dtype=uint8)
#[pyfunction(name = "to_fp8")]
#[pyo3(signature = (x, *, stream = None), text_signature = "(x, *, stream=None)")]
pub fn to_fp8(x: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::to_fp8(&x)))
}

/// The `k` largest elements of an axis, in ascending order; `()` flattens first.
///
/// Example:
///     >>> mx.sort(mx.topk(mx.array([3, 1, 2]), k=2))
///     array([2, 3], dtype=int32)
#[pyfunction(name = "topk")]
#[pyo3(signature = (a, k, axis = OneAxis::one(-1), *, stream = None), text_signature = "(a, k, axis=-1, *, stream=None)")]
pub fn topk(a: Arr, k: Count, axis: OneAxis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::topk(&a, k.0, axis.0)))
}

/// The axes in another order: axis `i` of the result is axis `axes[i]` of `x`; `()` reverses them.
///
/// Example:
///     >>> mx.transpose(mx.ones((2, 3, 4)), (1, 0, 2)).shape
///     (3, 2, 4)
#[pyfunction(name = "transpose")]
#[pyo3(signature = (a, axes = AxisList::all(), *, stream = None), text_signature = "(a, axes=None, *, stream=None)")]
pub fn transpose(a: Arr, axes: AxisList, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::transpose(&a, axes.0)))
}

/// The area under the points of an axis by the trapezoidal rule. They are `dx` apart, or at the places `x`.
///
/// Shapes:
/// The axis goes; `x` is a vector along it, or broadcasts to `y`.
///
/// Dtypes:
/// The arrays promote; integers and bool are taken as `float32`; half types are summed in `float32`.
///
/// Errors:
/// Where there is no such axis, or `x` does not fit.
///
/// Example:
///     >>> mx.trapezoid(mx.array([1.0, 2.0, 3.0]), dx=0.5)
///     array(2, dtype=float32)
#[pyfunction(name = "trapezoid")]
#[pyo3(signature = (y, x = None, dx = 1.0, axis = Small(-1), *, stream = None), text_signature = "(y, x=None, dx=1.0, axis=-1, *, stream=None)")]
pub fn trapezoid(
    mut y: Arr,
    mut x: Option<Arr>,
    dx: f64,
    axis: Small,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut y].into_iter().chain(&mut x));
    on(stream, || give(ops::trapezoid(&y, x.as_deref(), dx, axis.0)))
}

/// `x` with zeros above the diagonal `offset` places above the main one of its last two axes.
///
/// Example:
///     >>> mx.tril(mx.ones((2, 2)))
///     array([[1, 0],
///            [1, 1]], dtype=float32)
#[pyfunction(name = "tril")]
#[pyo3(signature = (x, k = 0, *, stream = None), text_signature = "(x, k=0, *, stream=None)")]
pub fn tril(x: Arr, k: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::tril(&x, k)))
}

/// `x` with zeros below the diagonal `offset` places above the main one of its last two axes.
///
/// Example:
///     >>> mx.triu(mx.ones((2, 2)))
///     array([[1, 1],
///            [0, 1]], dtype=float32)
#[pyfunction(name = "triu")]
#[pyo3(signature = (x, k = 0, *, stream = None), text_signature = "(x, k=0, *, stream=None)")]
pub fn triu(x: Arr, k: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::triu(&x, k)))
}

/// x without what is behind its point: the next integer towards 0, in x's dtype.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.trunc(mx.array([1.8, -1.8]))
///     array([1, -1], dtype=float32)
#[pyfunction(name = "trunc")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn trunc(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::trunc(&a)))
}

/// One axis split into several; one size may be −1: what is left.
///
/// Example:
///     >>> mx.unflatten(mx.ones((2, 12)), 1, (3, 4)).shape
///     (2, 3, 4)
#[pyfunction(name = "unflatten")]
#[pyo3(signature = (a, axis, shape, *, stream = None), text_signature = "(a, axis, shape, *, stream=None)")]
pub fn unflatten(a: Arr, axis: Small, shape: SizesArg, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::unflatten(&a, axis.0, shape)))
}

/// The sum of products over one axis of both operands, the conjugate of `a` with `b`.
///
/// Errors:
/// Where an operand has no axis, or there is no such axis.
///
/// Example:
///     >>> mx.vecdot(mx.array([[1, 2], [3, 4]]), mx.array([[1, 1], [1, 1]]))
///     array([3, 7], dtype=int32)
#[pyfunction(name = "vecdot")]
#[pyo3(signature = (a, b, axis = Small(-1), *, stream = None), text_signature = "(a, b, axis=-1, *, stream=None)")]
pub fn vecdot(mut a: Arr, mut b: Arr, axis: Small, stream: Option<On>) -> PyResult<PyArray> {
    keep_doubles([&mut a, &mut b]);
    on(stream, || give(ops::vecdot(&a, &b, axis.0)))
}

/// The bytes of `x`, in the machine's order, as elements of another dtype.
///
/// Shapes:
/// The last axis grows or shrinks where the dtypes differ in size.
///
/// Dtypes:
/// Bool is read and written as `uint8`, and true for any byte but 0.
///
/// Errors:
/// Where the bytes of the last axis do not divide into elements, or there is no axis.
///
/// Example:
///     >>> mx.view(mx.array([1.0]), mx.uint32)
///     array([1065353216], dtype=uint32)
#[pyfunction(name = "view")]
#[pyo3(signature = (a, dtype, stream = None), text_signature = "(a, dtype, stream=None)")]
pub fn view(a: Arr, dtype: Dtype, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::view(&a, dtype.0)))
}

/// `a` where the condition is true and `b` elsewhere.
///
/// Shapes:
/// All three broadcast.
///
/// Dtypes:
/// A condition that is not bool is true where it is not 0; `a` and `b` promote.
///
/// Example:
///     >>> mx.where(mx.array([True, False]), 1, mx.array([2, 3]))
///     array([1, 3], dtype=int32)
#[pyfunction(name = "where")]
#[pyo3(signature = (condition, x, y, *, stream = None), text_signature = "(condition, x, y, *, stream=None)")]
pub fn where_(condition: Opd, x: Opd, y: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (x, y) = meet(x, y)?;
    on(stream, || give(ops::where_(&condition, &x, &y)))
}

/// x·log y, and 0 where x is 0, whatever y is but NaN.
///
/// Shapes:
/// The operands broadcast.
///
/// Errors:
/// For complex numbers.
///
/// Example:
///     >>> mx.xlogy(mx.array([0.0, 2.0]), mx.array([0.0, 1.0]))
///     array([0, 0], dtype=float32)
#[pyfunction(name = "xlogy")]
#[pyo3(signature = (x, y, stream = None), text_signature = "(x, y, stream=None)")]
pub fn xlogy(x: Opd, y: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (x, y) = meet(x, y)?;
    on(stream, || give(ops::xlogy(&x, &y)))
}

/// Zeros.
///
/// Example:
///     >>> mx.zeros((2, 2))
///     array([[0, 0],
///            [0, 0]], dtype=float32)
#[pyfunction(name = "zeros")]
#[pyo3(signature = (shape, dtype = None, *, stream = None), text_signature = "(shape, dtype=None, *, stream=None)")]
pub fn zeros(shape: ShapeArg, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::zeros(shape.0, dtype.map_or(DType::F32, |d| d.0))))
}

/// The channels of `x`, its last axis, with mean 0 and variance 1 over all other axes, times `weight`, plus
/// `bias`; and the mean and the variance of each channel.
///
/// Dtypes:
/// Computed in `float32` for half types; the first result has x's dtype, the others are `float32`, or
/// `float64` for such an `x`. The mean of complex numbers is complex, and their variance the real mean of squared
/// distances.
///
/// Errors:
/// Where `x` is no array of floats or complex numbers with axes, or `weight` or `bias` is not a vector of its last one.
///
/// S. Ioffe, C. Szegedy, *Batch normalization*, 2015.
#[pyfunction(name = "batch_norm")]
#[pyo3(signature = (a, weight = None, bias = None, eps = 1e-5, *, stream = None), text_signature = "(a, weight=None, bias=None, eps=1e-5, *, stream=None)")]
pub fn batch_norm(
    mut a: Arr,
    mut weight: Option<Arr>,
    mut bias: Option<Arr>,
    eps: f64,
    stream: Option<On>,
) -> PyResult<Vec<PyArray>> {
    keep_doubles([&mut a].into_iter().chain(&mut weight).chain(&mut bias));
    on(stream, || give(ops::batch_norm(&a, weight.as_deref(), bias.as_deref(), eps)))
}

/// min(max(x + 3, 0), 6)/6.
#[pyfunction(name = "hard_sigmoid")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn hard_sigmoid(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::hard_sigmoid(&a)))
}

/// x·min(max(x + 3, 0), 6)/6.
#[pyfunction(name = "hard_swish")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn hard_swish(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::hard_swish(&a)))
}

/// min(max(x, −1), 1).
#[pyfunction(name = "hard_tanh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn hard_tanh(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::hard_tanh(&a)))
}

/// `x` with mean 0 and variance 1 along its last axis, times `weight`, plus `bias`.
///
/// Dtypes:
/// Computed in `float32` for half types; the result has x's dtype.
///
/// Errors:
/// Where `x` has no axes, or `weight` or `bias` is not a vector of its last one.
///
/// J. L. Ba, J. R. Kiros, G. E. Hinton, *Layer normalization*, 2016.
#[pyfunction(name = "layer_norm")]
#[pyo3(signature = (a, weight = None, bias = None, eps = 1e-5, *, stream = None), text_signature = "(a, weight=None, bias=None, eps=1e-5, *, stream=None)")]
pub fn layer_norm(
    mut a: Arr,
    mut weight: Option<Arr>,
    mut bias: Option<Arr>,
    eps: f64,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a].into_iter().chain(&mut weight).chain(&mut bias));
    on(stream, || give(ops::layer_norm(&a, weight.as_deref(), bias.as_deref(), eps)))
}

/// x for positive x, slope·x otherwise.
#[pyfunction(name = "leaky_relu")]
#[pyo3(signature = (a, negative_slope = 0.01, *, stream = None), text_signature = "(a, negative_slope=0.01, *, stream=None)")]
pub fn leaky_relu(a: Arr, negative_slope: f64, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::leaky_relu(&a, negative_slope)))
}

/// The logarithm of `softmax`, accurate where that is near 0.
///
/// Dtypes:
/// As `softmax`.
#[pyfunction(name = "log_softmax")]
#[pyo3(signature = (a, axis = Axis::one(-1), *, stream = None), text_signature = "(a, axis=-1, *, stream=None)")]
pub fn log_softmax(a: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::log_softmax(&a, axis.0)))
}

/// The Euclidean length over `axes`: √Σ|x|².
///
/// Dtypes:
/// Integers and bool are taken as `float32`; half types accumulate in `float32`.
#[pyfunction(name = "norm")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn norm(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::norm(&a, axis.0, keepdims)))
}

/// `x` over its Euclidean length along `axes`, which is taken as at least `eps`.
#[pyfunction(name = "normalize")]
#[pyo3(signature = (a, axis = Axis::one(-1), eps = 1e-12, *, stream = None), text_signature = "(a, axis=-1, eps=1e-12, *, stream=None)")]
pub fn normalize(a: Arr, axis: Axis, eps: f64, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::normalize(&a, axis.0, eps)))
}

/// Vectors that are 1 at the index and 0 elsewhere: a new last axis of `classes`.
///
/// Shapes:
/// An index outside `0..classes` gives zeros.
#[pyfunction(name = "one_hot")]
#[pyo3(signature = (a, classes, dtype = None, *, stream = None), text_signature = "(a, classes, dtype=None, *, stream=None)")]
pub fn one_hot(
    a: Arr,
    classes: Count,
    dtype: Option<Dtype>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::one_hot(&a, classes.0, dtype.map_or(DType::F32, |d| d.0))))
}

/// x for positive x, weight·x otherwise; the weight broadcasts and is learned.
#[pyfunction(name = "prelu")]
#[pyo3(signature = (a, weight, *, stream = None), text_signature = "(a, weight, *, stream=None)")]
pub fn prelu(mut a: Arr, weight: Opd, stream: Option<On>) -> PyResult<PyArray> {
    a.keep_doubles_beside(&weight);
    let weight = weight.keeping_doubles(a.dtype());
    on(stream, || give(ops::prelu(&a, &weight)))
}

/// min(max(x, 0), 6).
#[pyfunction(name = "relu6")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn relu6(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::relu6(&a)))
}

/// `x` over its root mean square along its last axis, times `weight`.
///
/// Dtypes:
/// As `layer_norm`.
///
/// Errors:
/// As `layer_norm`.
///
/// B. Zhang, R. Sennrich, *Root mean square layer normalization*, NeurIPS 2019.
#[pyfunction(name = "rms_norm")]
#[pyo3(signature = (a, weight = None, eps = 1e-5, *, stream = None), text_signature = "(a, weight=None, eps=1e-5, *, stream=None)")]
pub fn rms_norm(
    mut a: Arr,
    mut weight: Option<Arr>,
    eps: f64,
    stream: Option<On>,
) -> PyResult<PyArray> {
    keep_doubles([&mut a].into_iter().chain(&mut weight));
    on(stream, || give(ops::rms_norm(&a, weight.as_deref(), eps)))
}

/// `softmax` of −x: the weight of small elements.
#[pyfunction(name = "softmin")]
#[pyo3(signature = (a, axis = Small(-1), *, stream = None), text_signature = "(a, axis=-1, *, stream=None)")]
pub fn softmin(a: Arr, axis: Small, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::softmin(&a, axis.0)))
}

/// 1 above the threshold and 0 elsewhere.
///
/// Dtypes:
/// Gives `int32`, as MLX does.
#[pyfunction(name = "step")]
#[pyo3(signature = (a, threshold = 0.0, *, stream = None), text_signature = "(a, threshold=0.0, *, stream=None)")]
pub fn step(a: Arr, threshold: f64, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::step(&a, threshold)))
}

/// x − tanh(x).
#[pyfunction(name = "tanh_shrink")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn tanh_shrink(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::tanh_shrink(&a)))
}

/// The frequencies of a discrete Fourier transform of `size` points `spacing` apart, as `float32`:
/// 0 and up, then the negative ones.
///
/// Errors:
/// Where `size` or `spacing` is 0.
///
/// Example:
///     >>> mx.fft.fftfreq(4)
///     array([0, 0.25, -0.5, -0.25], dtype=float32)
#[pyfunction(name = "fftfreq")]
#[pyo3(signature = (n, d = 1.0, stream = None), text_signature = "(n, d=1.0, stream=None)")]
pub fn fft_fftfreq(n: Count, d: f64, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::fftfreq(n.0, d)))
}

/// Each axis rolled by half its size, so that frequency 0 comes to the middle; `()` for all axes.
///
/// Example:
///     >>> mx.fft.fftshift(mx.array([0, 1, 2, 3]))
///     array([2, 3, 0, 1], dtype=int32)
#[pyfunction(name = "fftshift")]
#[pyo3(signature = (a, axes = Axis::all(), stream = None), text_signature = "(a, axes=None, stream=None)")]
pub fn fft_fftshift(a: Arr, axes: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::fftshift(&a, axes.0)))
}

/// The inverse of `fftshift`; they differ on axes of odd size.
///
/// Example:
///     >>> mx.fft.ifftshift(mx.array([2, 3, 0, 1]))
///     array([0, 1, 2, 3], dtype=int32)
#[pyfunction(name = "ifftshift")]
#[pyo3(signature = (a, axes = Axis::all(), stream = None), text_signature = "(a, axes=None, stream=None)")]
pub fn fft_ifftshift(a: Arr, axes: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::ifftshift(&a, axes.0)))
}

/// The frequencies, not negative, of a transform of `size` real points `spacing` apart, as `float32`.
///
/// Errors:
/// Where `size` or `spacing` is 0.
///
/// Example:
///     >>> mx.fft.rfftfreq(4)
///     array([0, 0.25, 0.5], dtype=float32)
#[pyfunction(name = "rfftfreq")]
#[pyo3(signature = (n, d = 1.0, stream = None), text_signature = "(n, d=1.0, stream=None)")]
pub fn fft_rfftfreq(n: Count, d: f64, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::rfftfreq(n.0, d)))
}

/// The lower triangular L with a positive diagonal and A = L·Lᴴ, or U = Lᴴ with A = Uᴴ·U where `upper`
/// is true. Of A only that triangle is read.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`.
///
/// Errors:
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where it is not positive definite.
///
/// Derivatives:
/// Those by symmetric matrices: they are symmetric.
///
/// Example:
///     >>> a = mx.array([[4.0, 2.0], [2.0, 5.0]])
///     >>> mx.linalg.cholesky(a)
///     array([[2, 0],
///            [1, 2]], dtype=float32)
#[pyfunction(name = "cholesky")]
#[pyo3(signature = (a, upper = false, *, stream = None), text_signature = "(a, upper=False, *, stream=None)")]
pub fn linalg_cholesky(a: Real, upper: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::linalg::cholesky(&a, upper)))
}

/// The inverse of A = L·Lᴴ from its factor L; of A = Uᴴ·U from U where `upper` is true. Only the triangle
/// is read.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`.
///
/// Errors:
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where the factor has a 0 on its diagonal.
///
/// Example:
///     >>> mx.linalg.cholesky_inv(mx.array([[2.0, 0.0], [0.0, 4.0]]))
///     array([[0.25, 0],
///            [0, 0.0625]], dtype=float32)
#[pyfunction(name = "cholesky_inv")]
#[pyo3(signature = (a, upper = false, *, stream = None), text_signature = "(a, upper=False, *, stream=None)")]
pub fn linalg_cholesky_inv(a: Real, upper: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::linalg::cholesky_inv(&a, upper)))
}

/// The determinants of square matrices.
///
/// Dtypes:
/// Integers and bool are taken as `float32`; half types are computed in `float32`.
///
/// Errors:
/// Where `a` has less than two axes or is not square. The derivative by a singular matrix of
/// more than three rows is an error when it is computed.
///
/// Example:
///     >>> mx.linalg.det(mx.array([[1.0, 2.0], [3.0, 4.0]]))
///     array(-2, dtype=float32)
#[pyfunction(name = "det")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn linalg_det(a: Real, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::linalg::det(&a)))
}

/// W and V with A·V = V·W of square matrices: eigenvalues in no order, and as columns eigenvectors of
/// length 1.
///
/// Derivatives are those where no two eigenvalues are equal. They take the phases of the vectors as fixed: functions
/// of these should not depend on them.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`; the results are `complex64`.
///
/// Errors:
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where an element is not finite.
///
/// Example:
///     >>> w, v = mx.linalg.eig(mx.array([[0.0, -1.0], [1.0, 0.0]]))
///     >>> w.shape, v.shape
///     ((2,), (2, 2))
#[pyfunction(name = "eig")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn linalg_eig(a: Arr, stream: Option<On>) -> PyResult<(PyArray, PyArray)> {
    on(stream, || give(ops::linalg::eig(&a)))
}

/// The eigenvalues of square matrices: those of `eig`.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`; the result is `complex64`.
///
/// Errors:
/// As `eig`.
///
/// Example:
///     >>> mx.real(mx.linalg.eigvals(mx.array([[2.0, 5.0], [0.0, 2.0]])))
///     array([2, 2], dtype=float32)
#[pyfunction(name = "eigvals")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn linalg_eigvals(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::linalg::eigvals(&a)))
}

/// The inverse of square matrices.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`.
///
/// Errors:
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where it is singular.
///
/// Example:
///     >>> mx.linalg.inv(mx.array([[2.0, 1.0], [0.0, 4.0]]))
///     array([[0.5, -0.125],
///            [0, 0.25]], dtype=float32)
#[pyfunction(name = "inv")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn linalg_inv(a: Real, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::linalg::inv(&a)))
}

/// P, L and U with A = (L·U)\[P\]: rows of L·U in the order P, as `uint32`; L lower triangular with ones on
/// its diagonal, U upper triangular. Each pivot is the largest of its column. A NaN may leave none but NaN in
/// its column and in those after it.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`.
///
/// Errors:
/// Where `a` has less than two axes or another dtype.
///
/// Example:
///     >>> p, l, u = mx.linalg.lu(mx.array([[1.0, 2.0], [4.0, 4.0]]))
///     >>> (l @ u)[p]
///     array([[1, 2],
///            [4, 4]], dtype=float32)
#[pyfunction(name = "lu")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn linalg_lu(a: Real, stream: Option<On>) -> PyResult<(PyArray, PyArray, PyArray)> {
    on(stream, || give(ops::linalg::lu(&a)))
}

/// L without its diagonal of ones and U in one matrix, and for each step the row that was exchanged with
/// its own, as `uint32`. A NaN may leave none but NaN in its column and in those after it.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`.
///
/// Errors:
/// Where `a` has less than two axes or another dtype.
///
/// Example:
///     >>> lu, pivots = mx.linalg.lu_factor(mx.array([[1.0, 2.0], [4.0, 4.0]]))
///     >>> pivots
///     array([1, 1], dtype=uint32)
#[pyfunction(name = "lu_factor")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn linalg_lu_factor(a: Real, stream: Option<On>) -> PyResult<(PyArray, PyArray)> {
    on(stream, || give(ops::linalg::lu_factor(&a)))
}

/// The product of `n` times a square matrix; of its inverse for a negative `n`, and the identity for 0.
///
/// Dtypes:
/// Those of `matmul`; for a negative `n` those of `inv`.
///
/// Errors:
/// Where `a` has less than two axes or is not square; when it is computed for a negative `n` where it is
/// singular.
///
/// Example:
///     >>> mx.linalg.matrix_power(mx.array([[1.0, 1.0], [0.0, 1.0]]), 5)
///     array([[1, 5],
///            [0, 1]], dtype=float32)
#[pyfunction(name = "matrix_power")]
#[pyo3(signature = (a, n, *, stream = None), text_signature = "(a, n, *, stream=None)")]
pub fn linalg_matrix_power(a: Arr, n: i64, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::linalg::matrix_power(&a, n)))
}

/// The pseudoinverse by Moore and Penrose. Singular values up to 10·max(m, n)·ε of the largest count as 0.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`.
///
/// Errors:
/// Where `a` has less than two axes or another dtype; when it is computed where an element is not
/// finite.
///
/// Example:
///     >>> mx.linalg.pinv(mx.array([[2.0, 0.0], [0.0, 0.0]]))
///     array([[0.5, 0],
///            [0, 0]], dtype=float32)
#[pyfunction(name = "pinv")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn linalg_pinv(a: Real, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::linalg::pinv(&a)))
}

/// A = Q·R: Q with orthonormal columns, as many as A has rows or columns, whichever are fewer, and R
/// upper triangular. Where an element is not finite, both are NaN from its column on.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`.
///
/// Errors:
/// Where `a` has less than two axes or another dtype.
///
/// Derivatives:
/// Where the first columns do not depend on each other. Of complex matrices the diagonal of R stays real.
///
/// Example:
///     >>> a = mx.array([[4.0, 2.0], [2.0, 5.0]])
///     >>> q, r = mx.linalg.qr(a)
///     >>> mx.allclose(q @ r, a).item()
///     True
#[pyfunction(name = "qr")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn linalg_qr(a: Real, stream: Option<On>) -> PyResult<(PyArray, PyArray)> {
    on(stream, || give(ops::linalg::qr(&a)))
}

/// The signs of the determinants of square matrices, and the logarithms of their sizes: 0 and −∞ of
/// singular ones.
///
/// Dtypes:
/// As `det`.
///
/// Errors:
/// As `det`.
///
/// Example:
///     >>> sign, log = mx.linalg.slogdet(mx.array([[1.0, 0.0], [0.0, -1.0]]))
///     >>> sign, log
///     (array(-1, dtype=float32), array(0, dtype=float32))
#[pyfunction(name = "slogdet")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn linalg_slogdet(a: Real, stream: Option<On>) -> PyResult<(PyArray, PyArray)> {
    on(stream, || give(ops::linalg::slogdet(&a)))
}

/// X with A·X = B.
///
/// Shapes:
/// `a` is `[.., n, n]`, `b` a vector `[n]` or `[.., n, k]`; the other axes broadcast.
///
/// Dtypes:
/// The operands promote, to `float32` or `float64`.
///
/// Errors:
/// Where shapes or dtypes do not fit; when it is computed where A is singular.
///
/// Example:
///     >>> mx.linalg.solve(mx.array([[2.0, 1.0], [0.0, 4.0]]), mx.array([4.0, 8.0]))
///     array([1, 2], dtype=float32)
#[pyfunction(name = "solve")]
#[pyo3(signature = (a, b, *, stream = None), text_signature = "(a, b, *, stream=None)")]
pub fn linalg_solve(mut a: Real, mut b: Real, stream: Option<On>) -> PyResult<PyArray> {
    keep_doubles([&mut a.0, &mut b.0]);
    on(stream, || give(ops::linalg::solve(&a, &b)))
}

/// The singular values, from the largest on.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`; the result is real.
///
/// Errors:
/// As `svd`.
///
/// Example:
///     >>> mx.linalg.svdvals(mx.array([[0.0, 2.0], [0.0, 0.0]]))
///     array([2, 0], dtype=float32)
#[pyfunction(name = "svdvals")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn linalg_svdvals(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::linalg::svdvals(&a)))
}

/// The inverse of triangular matrices: of lower ones, or of upper ones where `upper` is true. Only the
/// triangle is read.
///
/// Dtypes:
/// `float32`, `float64` and `complex64`.
///
/// Errors:
/// Where `a` has less than two axes, is not square, or has another dtype;
/// when it is computed where there is a 0 on the diagonal.
///
/// Example:
///     >>> mx.linalg.tri_inv(mx.array([[2.0, 0.0], [1.0, 4.0]]))
///     array([[0.5, 0],
///            [-0.125, 0.25]], dtype=float32)
#[pyfunction(name = "tri_inv")]
#[pyo3(signature = (a, upper = false, *, stream = None), text_signature = "(a, upper=False, *, stream=None)")]
pub fn linalg_tri_inv(a: Real, upper: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::linalg::tri_inv(&a, upper)))
}

/// Random bits: unsigned integers of `width` bytes, 1, 2 or 4, over their whole range.
///
/// Example:
///     >>> mx.random.bits((3,), 4).dtype
///     mlx.core.uint32
#[pyfunction(name = "bits")]
#[pyo3(signature = (shape, width, key = None, *, stream = None), text_signature = "(shape, width, key=None, *, stream=None)")]
pub fn random_bits(
    shape: ShapeArg,
    width: Count,
    key: Option<Arr>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::random::bits(shape.0, width.0, key.as_deref())))
}

#[pymethods]
impl PyArray {
    /// |x|; of a complex number its modulus, as `float32`.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn abs(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::abs(&self.get())))
    }

    /// Whether all elements over `axes` are true; numbers are true where they are not 0.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn all(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::all(&self.get(), axis.0, keepdims)))
    }

    /// Whether any element over `axes` is true; numbers are true where they are not 0.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn any(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::any(&self.get(), axis.0, keepdims)))
    }

    /// The index of the first largest element along an axis, or of the flattened array for `()`.
    #[pyo3(signature = (axis = OneAxis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn argmax(&self, axis: OneAxis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::argmax(&self.get(), axis.0, keepdims)))
    }

    /// The index of the first smallest element along an axis, or of the flattened array for `()`.
    #[pyo3(signature = (axis = OneAxis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn argmin(&self, axis: OneAxis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::argmin(&self.get(), axis.0, keepdims)))
    }

    /// Converts each element to `dtype`: to bool by ≠ 0, between integers by wrapping, from float to
    #[pyo3(signature = (dtype, stream = None), text_signature = "($self, dtype, stream=None)")]
    pub fn astype(&self, dtype: Dtype, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::astype(&self.get(), dtype.0)))
    }

    /// The complex conjugate; anything else as it is.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn conj(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::conjugate(&self.get())))
    }

    /// cos x.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn cos(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::cos(&self.get())))
    }

    /// A matrix with a vector on its diagonal, or the diagonal of a matrix; `offset` places above the
    #[pyo3(signature = (k = 0, *, stream = None), text_signature = "($self, k=0, *, stream=None)")]
    pub fn diag(&self, k: isize, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::diag(&self.get(), k)))
    }

    /// The diagonal of two axes, `offset` places above the main one, as the last axis.
    #[pyo3(signature = (offset = 0, axis1 = Small(0), axis2 = Small(1), stream = None), text_signature = "($self, offset=0, axis1=0, axis2=1, stream=None)")]
    pub fn diagonal(
        &self,
        offset: isize,
        axis1: Small,
        axis2: Small,
        stream: Option<On>,
    ) -> PyResult<PyArray> {
        on(stream, || give(ops::diagonal(&self.get(), offset, axis1.0, axis2.0)))
    }

    /// eˣ.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn exp(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::exp(&self.get())))
    }

    /// Axes `start..=end` merged into one. Axes past either end mean that end.
    #[pyo3(signature = (start_axis = Small(0), end_axis = Small(-1), *, stream = None), text_signature = "($self, start_axis=0, end_axis=-1, *, stream=None)")]
    pub fn flatten(
        &self,
        start_axis: Small,
        end_axis: Small,
        stream: Option<On>,
    ) -> PyResult<PyArray> {
        on(stream, || give(ops::flatten(&self.get(), start_axis.0, end_axis.0)))
    }

    /// ln x.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn log(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::log(&self.get())))
    }

    /// log₁₀ x.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn log10(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::log10(&self.get())))
    }

    /// ln(1 + x), accurate near 0.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn log1p(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::log1p(&self.get())))
    }

    /// log₂ x.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn log2(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::log2(&self.get())))
    }

    /// ln Σ eˣ over `axes`; −∞ where every element is.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn logsumexp(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::logsumexp(&self.get(), axis.0, keepdims)))
    }

    /// The largest element over `axes`; NaN if there is one. Of zeros the positive one is the larger.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn max(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::max(&self.get(), axis.0, keepdims)))
    }

    /// The mean over `axes`; NaN for nothing.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn mean(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::mean(&self.get(), axis.0, keepdims)))
    }

    /// The smallest element over `axes`; NaN if there is one. Of zeros the negative one is the smaller.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn min(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::min(&self.get(), axis.0, keepdims)))
    }

    /// One axis moved to another place; the others keep their order.
    #[pyo3(signature = (source, destination, *, stream = None), text_signature = "($self, source, destination, *, stream=None)")]
    pub fn moveaxis(
        &self,
        source: Small,
        destination: Small,
        stream: Option<On>,
    ) -> PyResult<PyArray> {
        on(stream, || give(ops::moveaxis(&self.get(), source.0, destination.0)))
    }

    /// The product over `axes`; 1 for nothing.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn prod(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::prod(&self.get(), axis.0, keepdims)))
    }

    /// 1/x.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn reciprocal(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::reciprocal(&self.get())))
    }

    /// The nearest number of `decimals` decimals, ties to even.
    #[pyo3(signature = (decimals = 0, *, stream = None), text_signature = "($self, decimals=0, *, stream=None)")]
    pub fn round(&self, decimals: i32, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::round(&self.get(), decimals)))
    }

    /// 1/√x.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn rsqrt(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::rsqrt(&self.get())))
    }

    /// sin x.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn sin(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::sin(&self.get())))
    }

    /// √x.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn sqrt(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::sqrt(&self.get())))
    }

    /// x·x.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn square(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::square(&self.get())))
    }

    /// Axes of size 1 removed; `()` removes all of them.
    #[pyo3(signature = (axis = Axis::all(), *, stream = None), text_signature = "($self, axis=None, *, stream=None)")]
    pub fn squeeze(&self, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::squeeze(&self.get(), axis.0)))
    }

    /// The sum over `axes`; 0 for nothing.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn sum(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::sum(&self.get(), axis.0, keepdims)))
    }

    /// Two axes exchanged.
    #[pyo3(signature = (axis1, axis2, *, stream = None), text_signature = "($self, axis1, axis2, *, stream=None)")]
    pub fn swapaxes(&self, axis1: Small, axis2: Small, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::swapaxes(&self.get(), axis1.0, axis2.0)))
    }

    /// The bytes of `x`, in the machine's order, as elements of another dtype.
    #[pyo3(signature = (dtype, *, stream = None), text_signature = "($self, dtype, *, stream=None)")]
    pub fn view(&self, dtype: Dtype, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::view(&self.get(), dtype.0)))
    }
}

/// What `crates/py/docs.txt` and the operation of that name add to the documentation of a
/// function or class written by hand.
macro_rules! docs {
(__array_namespace_info__) => { "\nExample:\n    >>> mx.__array_namespace_info__().default_dtypes()[\"real floating\"]\n    mlx.core.float32" };
(_dtype) => { "" };
(_restore) => { "" };
(adaptive_avg_pool) => { "The means of parts that cover an image: as many along each spatial axis as `sizes` says, one entry for all or one an\naxis.\n\nShapes:\n`[N, input.., C]` gives `[N, sizes.., C]`. Of n parts number i has the elements from ⌊i·input/n⌋ up to\n⌈(i + 1)·input/n⌉, so that neighbours may overlap.\n\nDtypes:\nIntegers and bool are taken as `float32`; half types are summed and divided in `float32`.\n\nErrors:\nFor images without spatial axes, empty axes, and sizes of 0.\n\nExample:\n    >>> mx.adaptive_avg_pool(mx.array([[[1.0], [2.0], [3.0]]]), 2)\n    array([[[1.5],\n            [2.5]]], dtype=float32)" };
(adaptive_max_pool) => { "The largest elements of parts that cover an image; see `adaptive_avg_pool`.\n\nShapes:\nAs `adaptive_avg_pool`.\n\nErrors:\nAs `adaptive_avg_pool`, and for complex numbers.\n\nExample:\n    >>> mx.adaptive_max_pool(mx.array([[[1.0], [2.0], [3.0]]]), 2)\n    array([[[2],\n            [3]]], dtype=float32)" };
(addcdiv) => { "x + value·a/b.\n\nShapes:\nThe arrays broadcast.\n\nDtypes:\nAll promote; integers and bool are taken as `float32`; half types are computed in `float32`.\n\nExample:\n    >>> mx.addcdiv(mx.array([1.0, 2.0]), mx.array([1.0, 2.0]), mx.array([2.0, 4.0]), value=2)\n    array([2, 3], dtype=float32)" };
(addcmul) => { "x + value·a·b.\n\nShapes:\nThe arrays broadcast.\n\nDtypes:\nAll promote; half types are computed in `float32`; a value that is a float makes floats of integers.\n\nExample:\n    >>> mx.addcmul(mx.array([1.0, 2.0]), mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))\n    array([4, 10], dtype=float32)" };
(allclose) => { "Whether all elements are equal within a tolerance, as one bool.\n\nExample:\n    >>> mx.allclose(mx.array([1.0]), mx.array([1.000001]))\n    array(True, dtype=bool)" };
(arange) => { "\nExample:\n    >>> mx.arange(4)\n    array([0, 1, 2, 3], dtype=int32)\n    >>> mx.arange(0, 1, 0.25)\n    array([0, 0.25, 0.5, 0.75], dtype=float32)" };
(array_equal) => { "Whether both have one shape and equal elements, as one bool.\n\nExample:\n    >>> mx.array_equal(mx.array([1, 2]), mx.array([1.0, 2.0]))\n    array(True, dtype=bool)" };
(as_strided) => { "The elements, counted in row-major order, that `strides` and an offset reach: element `i, j, ..`\nis element `offset + i·strides[0] + j·strides[1] + ..` of the flattened array.\n\nErrors:\nWhere there is not one stride an axis, or where an element is not in the array.\n\nExample:\n    >>> mx.as_strided(mx.arange(4), shape=(3, 2), strides=(1, 1))\n    array([[0, 1],\n           [1, 2],\n           [2, 3]], dtype=int32)" };
(asarray) => { "\nExample:\n    >>> mx.asarray([1, 2])\n    array([1, 2], dtype=int32)" };
(associative_scan) => { "\nExample:\n    >>> then = lambda f, g: (f[0] * g[0], g[0] * f[1] + g[1])\n    >>> mx.associative_scan(then, (mx.array([1, 2, 3]), mx.array([1, 1, 1])))\n    (array([1, 2, 6], dtype=int32), array([1, 3, 10], dtype=int32))" };
(async_eval) => { "\nExample:\n    >>> x = mx.ones(2) + 1\n    >>> mx.async_eval(x)\n    >>> x\n    array([2, 2], dtype=float32)" };
(atleast_1d) => { "`x` with at least one axis.\n\nExample:\n    >>> mx.atleast_1d(mx.array(3)).shape\n    (1,)" };
(atleast_2d) => { "`x` with at least two axes: a vector becomes a row.\n\nExample:\n    >>> mx.atleast_2d(mx.array([1, 2])).shape\n    (1, 2)" };
(atleast_3d) => { "`x` with at least three axes: a vector becomes `[1, n, 1]`, a matrix `[m, n, 1]`.\n\nExample:\n    >>> mx.atleast_3d(mx.array([1, 2])).shape\n    (1, 2, 1)" };
(bartlett) => { "The Bartlett window of `size` points, a triangle: 1 − |t| for t from −1 to 1, as `float32`.\n\nExample:\n    >>> mx.bartlett(5)\n    array([0, 0.5, 1, 0.5, 0], dtype=float32)" };
(bitwise_invert) => { "Every bit of the integer flipped; on bool, logical not.\n\nErrors:\nFor floats and complex numbers.\n\nExample:\n    >>> mx.bitwise_invert(mx.array([0, 5]))\n    array([-1, -6], dtype=int32)" };
(blackman) => { "The Blackman window of `size` points: 0.42 + 0.5·cos πt + 0.08·cos 2πt for t from −1 to 1, as\n`float32`.\n\nExample:\n    >>> mx.blackman(3)[1]\n    array(1, dtype=float32)" };
(block_masked_mm) => { "The matrix product of matrices whose square blocks are masked: left out where a mask is false or\n0, and multiplied by it where it is a number.\n\nShapes:\nAs `matmul`; a mask has an element for each block of `size` by `size`, the last ones cut off.\n\nErrors:\nWhere a mask does not fit, or the operands are not floats.\n\nExample:\n    >>> mask = mx.array([[True, False]])\n    >>> y = mx.block_masked_mm(mx.ones((32, 32)), mx.ones((32, 64)), 32, mask_out=mask)\n    >>> y[0, 31].item(), y[0, 32].item()\n    (32.0, 0.0)" };
(broadcast_arrays) => { "Arrays repeated to the shape that they broadcast to together.\n\nExample:\n    >>> [x.shape for x in mx.broadcast_arrays(mx.ones((2, 1)), mx.ones(3))]\n    [(2, 3), (2, 3)]" };
(broadcast_shapes) => { "The shape that arrays of these shapes broadcast to.\n\nErrors:\nWhere they do not, or there is none.\n\nExample:\n    >>> mx.broadcast_shapes((2, 1), (3,))\n    (2, 3)" };
(can_cast) => { "\nExample:\n    >>> mx.can_cast(mx.int8, mx.int32), mx.can_cast(mx.float32, mx.int32)\n    (True, False)" };
(checkpoint) => { "\nExample:\n    >>> f = mx.checkpoint(lambda x: mx.exp(mx.sin(x)))\n    >>> mx.grad(f)(mx.array(0.0)).item()\n    1.0" };
(clear_cache) => { "\nExample:\n    >>> mx.clear_cache()" };
(clear_streams) => { "\nExample:\n    >>> mx.clear_streams()" };
(clip) => { "`x` limited to `[low, high]`; `()` is no limit.\n\nDtypes:\nAll three promote.\n\nExample:\n    >>> mx.clip(mx.array([1, 5, 9]), 2, 6)\n    array([2, 5, 6], dtype=int32)" };
(compile) => { "\nExample:\n    >>> f = mx.compile(lambda x: x * x + 1)\n    >>> f(mx.array([1.0, 2.0]))\n    array([2, 5], dtype=float32)" };
(cond) => { "\nExample:\n    >>> f = lambda x: mx.cond(x.sum() > 0, mx.sqrt, mx.zeros_like, x)\n    >>> f(mx.array([4.0, 9.0])), f(mx.array([-4.0, -9.0]))\n    (array([2, 3], dtype=float32), array([0, 0], dtype=float32))" };
(contiguous) => { "\nExample:\n    >>> mx.contiguous(mx.arange(4).reshape(2, 2).T)\n    array([[0, 2],\n           [1, 3]], dtype=int32)" };
(conv1d) => { "`conv_general` over one spatial axis.\n\nExample:\n    >>> mx.conv1d(mx.ones((1, 4, 1)), mx.ones((1, 3, 1))).flatten()\n    array([3, 3], dtype=float32)" };
(conv2d) => { "`conv_general` over two spatial axes.\n\nExample:\n    >>> mx.conv2d(mx.ones((1, 3, 3, 1)), mx.ones((2, 3, 3, 1)), padding=1).shape\n    (1, 3, 3, 2)\n    >>> mx.conv2d(mx.ones((1, 1, 3, 3)), mx.ones((2, 1, 3, 3)), data_format=\"channels_first\").shape\n    (1, 2, 1, 1)" };
(conv3d) => { "`conv_general` over three spatial axes.\n\nExample:\n    >>> mx.conv3d(mx.ones((1, 3, 3, 3, 1)), mx.ones((2, 2, 2, 2, 1))).shape\n    (1, 2, 2, 2, 2)" };
(conv_general) => { "The convolution of x with a kernel w, over any number of spatial axes.\n\nShapes:\nx `[N, input.., C]` and w `[O, kernel.., C/groups]` give `[N, output.., O]`; with channels first x `[N, C, input..]`\nand w `[O, C/groups, kernel..]` give `[N, O, output..]`. As in every framework the kernel does not run backwards,\nunless `flip` says so.\n\nDtypes:\nBoth promote; half types accumulate in `float32`; integers and bool are taken as `float32`.\n\nExample:\n    >>> mx.conv_general(mx.ones((1, 4, 1)), mx.ones((1, 2, 1)), padding=([1], [0])).flatten()\n    array([1, 2, 2, 2], dtype=float32)" };
(conv_transpose1d) => { "The transposed convolution over one spatial axis: the gradient of a convolution by its input.\n\nShapes:\nx `[N, input.., C]` and w `[O, kernel.., C/groups]`, as in MLX, give `[N, output.., O]` with\n(input − 1)·stride + (kernel − 1)·dilation + 1 + output padding − padding outputs along an axis. With channels first\nx `[N, C, input..]` and w `[O, C/groups, kernel..]` give `[N, O, output..]`.\n\nExample:\n    >>> mx.conv_transpose1d(mx.ones((1, 2, 1)), mx.ones((1, 3, 1))).flatten()\n    array([1, 2, 2, 1], dtype=float32)" };
(conv_transpose2d) => { "The transposed convolution over two spatial axes; see `conv_transpose1d`.\n\nExample:\n    >>> mx.conv_transpose2d(mx.ones((1, 2, 2, 1)), mx.ones((3, 2, 2, 1)), stride=2).shape\n    (1, 4, 4, 3)" };
(conv_transpose3d) => { "The transposed convolution over three spatial axes; see `conv_transpose1d`.\n\nExample:\n    >>> mx.conv_transpose3d(mx.ones((1, 2, 2, 2, 1)), mx.ones((3, 2, 2, 2, 1))).shape\n    (1, 3, 3, 3, 3)" };
(convolve) => { "The discrete convolution of two vectors: of which the shorter one runs backwards over the other.\n\nShapes:\nOf n and m elements, n ≥ m: n + m − 1 in full, n of the same, n − m + 1 valid.\n\nDtypes:\nBoth promote; integers and bool are taken as `float32`.\n\nErrors:\nWhere one is empty, or is not a vector, and for complex numbers.\n\nExample:\n    >>> mx.convolve(mx.array([1.0, 2.0, 3.0]), mx.array([0.0, 1.0]))\n    array([0, 1, 2, 3], dtype=float32)" };
(corrcoef) => { "The correlations of variables, of which each is a row of observations: their covariances over the roots of their\nvariances, within [−1, 1].\n\nShapes:\nAs `cov`.\n\nDtypes:\nAs `cov`.\n\nErrors:\nFor more than two axes.\n\nExample:\n    >>> mx.corrcoef(mx.array([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))\n    array([[1, -1],\n           [-1, 1]], dtype=float32)" };
(cov) => { "The covariances of variables, of which each is a row of observations: the mean product of distances from the\nmeans, with `ddof` taken off the count.\n\nShapes:\n`[variables, observations]` gives `[variables, variables]`, a vector of observations a plain number. Weights are\nvectors of one for each observation: how often it was made (`frequencies`), and how much it counts\n(`importances`).\n\nDtypes:\nIntegers and bool are taken as `float32`; half types are computed in `float32`. Of complex variables the second\nis conjugated.\n\nErrors:\nFor more than two axes, a `ddof` that is no integer, `frequencies` that are not integers, and weights of another\nlength.\n\nExample:\n    >>> mx.cov(mx.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))\n    array([[1, -1],\n           [-1, 1]], dtype=float32)" };
(cummax) => { "The largest element of an axis up to each, NaN from the first one on; `()` flattens first. Complex numbers are\nordered by their real parts, and where these are equal by their imaginary ones.\n\nExample:\n    >>> mx.cummax(mx.array([1, 3, 2]))\n    array([1, 3, 3], dtype=int32)" };
(cummin) => { "The smallest element of an axis up to each, NaN from the first one on; `()` flattens first. Complex numbers are\nordered by their real parts, and where these are equal by their imaginary ones.\n\nExample:\n    >>> mx.cummin(mx.array([3, 1, 2]))\n    array([3, 1, 1], dtype=int32)" };
(cumprod) => { "The products of the elements of an axis up to each; `()` flattens first.\n\nDtypes:\nIntegers keep their dtype and wrap; of bools it is whether all are true; half types accumulate in\n`float32`.\n\nExample:\n    >>> mx.cumprod(mx.array([1, 2, 3]))\n    array([1, 2, 6], dtype=int32)" };
(cumsum) => { "The sums of the elements of an axis up to each; `()` flattens first.\n\nDtypes:\nIntegers keep their dtype and wrap; bool counts in `int32`; half types accumulate in `float32`.\n\nExample:\n    >>> mx.cumsum(mx.array([1, 2, 3]), reverse=True)\n    array([6, 5, 3], dtype=int32)" };
(default_device) => { "\nExample:\n    >>> with mx.stream(mx.cpu):\n    ...     print(mx.default_device())\n    Device(cpu, 0)" };
(default_stream) => { "\nExample:\n    >>> mx.default_stream(mx.cpu).device == mx.Device(mx.cpu)\n    True" };
(depends) => { "`x` itself, once `dependencies` are computed: the planner merges nothing across it.\n\nExample:\n    >>> x, y = mx.array(1), mx.array(2)\n    >>> mx.depends(x, y)\n    array(1, dtype=int32)" };
(dequantize) => { "The matrix that `quantize` made small, in the dtype of its scales.\n\nErrors:\nWhere words, scales and biases do not fit each other.\n\nExample:\n    >>> w = mx.ones((2, 64))\n    >>> mx.dequantize(*mx.quantize(w)).shape\n    (2, 64)" };
(device_count) => { "\nExample:\n    >>> mx.device_count(mx.cpu)\n    1" };
(device_info) => { "\nExample:\n    >>> \"device_name\" in mx.device_info(mx.cpu)\n    True" };
(disable_compile) => { "\nExample:\n    >>> mx.disable_compile()\n    >>> mx.enable_compile()" };
(divmod) => { "The pair of `floor_divide` and `remainder`.\n\nExample:\n    >>> mx.divmod(mx.array([7, -7]), 3)\n    [array([2, -3], dtype=int32), array([1, 2], dtype=int32)]" };
(driver_allocated) => { "\nExample:\n    >>> x = mx.ones((1024,))\n    >>> mx.eval(x)\n    >>> mx.driver_allocated() >= 4096\n    True" };
(einsum) => { "The sum of products that `subscripts` say: letters name axes, operands are parted by commas, and\nletters that are not behind `->` are summed over.\n\nShapes:\nWithout `->` the result has the letters that come up once, in alphabetical order. A letter twice\nin one operand takes the diagonal. `...` stands for axes that broadcast.\n\nDtypes:\nAll operands promote to one dtype, in which every product of the way is.\n\nErrors:\nWhere the subscripts do not fit the operands.\n\nExample:\n    >>> mx.einsum(\"ij,j->i\", mx.ones((2, 3)), mx.array([1.0, 2.0, 3.0]))\n    array([6, 6], dtype=float32)" };
(einsum_path) => { "The order in which `einsum`(super::einsum) contracts its operands, and a report of what that\nsaves.\n\nEach step lists the operands that it takes out of the list; their product goes to the end.\n\nErrors:\nWhere the subscripts do not fit the operands.\n\nExample:\n    >>> path, report = mx.einsum_path(\"ij,jk->ik\", mx.ones((2, 3)), mx.ones((3, 4)))\n    >>> path\n    [(0, 1)]" };
(empty_cache) => { "\nExample:\n    >>> mx.empty_cache()\n    >>> mx.get_cache_memory() >= 0\n    True" };
(enable_compile) => { "\nExample:\n    >>> mx.enable_compile()" };
(eval) => { "\nExample:\n    >>> x = mx.ones(2) * 3\n    >>> mx.eval(x)\n    >>> x\n    array([3, 3], dtype=float32)" };
(explain) => { "\nExample:\n    >>> plan = mx.explain(lambda x: mx.exp(x) * 2, mx.ones((2, 3)))\n    >>> [(step[\"kind\"], step[\"fused\"]) for step in plan.steps]\n    [('map', ['exp', 'multiply'])]" };
(export_function) => { "\nExample:\n    >>> import os, tempfile\n    >>> with tempfile.TemporaryDirectory() as folder:\n    ...     path = os.path.join(folder, \"f.cupola\")\n    ...     mx.export_function(path, lambda x, y: x * y, mx.array(2.0), y=mx.array(3.0))\n    ...     mx.import_function(path)(mx.array(4.0), y=mx.array(5.0))\n    (array(20, dtype=float32),)" };
(export_to_dot) => { "\nExample:\n    >>> import io\n    >>> file, x = io.StringIO(), mx.array([1.0, 2.0])\n    >>> mx.export_to_dot(file, mx.exp(x), x=x)\n    >>> print(file.getvalue())\n    digraph {\n    { rank=source; \"x\"; }\n    { 0 [label =\"exp\", shape=rectangle]; }\n    \"x\" -> 0\n    { rank=sink; \"A\"; }\n    0 -> \"A\"\n    }\n    <BLANKLINE>" };
(exporter) => { "\nExample:\n    >>> import os, tempfile\n    >>> with tempfile.TemporaryDirectory() as folder:\n    ...     path = os.path.join(folder, \"f.cupola\")\n    ...     with mx.exporter(path, lambda *args: sum(args)) as exporter:\n    ...         exporter(mx.array(1))\n    ...         exporter(mx.array(1), mx.array(2))\n    ...     mx.import_function(path)(mx.array(3), mx.array(4))\n    (array(7, dtype=int32),)" };
(eye) => { "The identity matrix, of the same size both ways; `eye_at` for others.\n\nExample:\n    >>> mx.eye(2)\n    array([[1, 0],\n           [0, 1]], dtype=float32)" };
(fold) => { "The inverse of `unfold` but that where windows overlap their elements add up.\n\nShapes:\n`[N, windows, taps·C]` gives `[N, sizes.., C]`. With channels first `[N, C·taps, windows]` gives `[N, C, sizes..]`.\n\nDtypes:\nHalf types are summed in `float32`.\n\nErrors:\nWhere rows and windows do not fit the sizes, and as `unfold`.\n\nExample:\n    >>> mx.fold(mx.array([[[1, 2], [2, 3]]]), 3, 2).flatten()\n    array([1, 4, 3], dtype=int32)" };
(fori_loop) => { "\nExample:\n    >>> mx.fori_loop(1, 6, lambda i, x: i * x, mx.array(1))\n    array(120, dtype=int32)" };
(from_dlpack) => { "\nExample:\n    >>> import numpy as np\n    >>> mx.from_dlpack(np.arange(3, dtype=np.int32))\n    array([0, 1, 2], dtype=int32)" };
(full) => { "One number, repeated to a shape; an array fills by broadcasting.\n\nExample:\n    >>> mx.full((2, 2), 7)\n    array([[7, 7],\n           [7, 7]], dtype=int32)" };
(full_like) => { "One number with `x`'s shape and dtype.\n\nExample:\n    >>> mx.full_like(mx.array([1, 2]), 7)\n    array([7, 7], dtype=int32)" };
(gather_mm) => { "The products of the matrices of `a` and of `b` that indices choose; none stand for all, in order.\n\nShapes:\nIndices count the matrices of an operand through, over all axes but the last two. The shapes of\nthe indices broadcast, and the last two axes multiply, as in `matmul`.\n\nErrors:\nWhere indices are not integers or the operands neither floats nor complex numbers; when it runs where an index is\nout of range.\n\nExample:\n    >>> a, b = mx.ones((2, 1, 3)), mx.stack([mx.zeros((3, 1)), mx.ones((3, 1))])\n    >>> mx.gather_mm(a, b, rhs_indices=mx.array([1, 0])).flatten()\n    array([3, 0], dtype=float32)" };
(gather_qmm) => { "The products of the matrices of `x` and of the quantized ones that indices choose, as in\n`gather_mm`.\n\nErrors:\nAs `dequantize` and `gather_mm`.\n\nExample:\n    >>> w = mx.quantize(mx.ones((3, 8, 64)))\n    >>> mx.gather_qmm(mx.ones((1, 64)), *w, rhs_indices=mx.array([2, 0])).shape\n    (2, 1, 8)" };
(gather_qqmm) => { "`qqmm` of the matrices that indices choose, as in `gather_mm`.\n\nErrors:\nAs `qqmm` and `gather_mm`.\n\nExample:\n    >>> w = mx.ones((3, 8, 64))\n    >>> mx.gather_qqmm(mx.ones((1, 64)), w, rhs_indices=mx.array([2, 0])).shape\n    (2, 1, 8)" };
(get_active_memory) => { "\nExample:\n    >>> before = mx.get_active_memory()\n    >>> x = mx.zeros(1024) + 1\n    >>> mx.eval(x)\n    >>> mx.get_active_memory() >= before + x.nbytes\n    True" };
(get_cache_memory) => { "\nExample:\n    >>> mx.get_cache_memory() >= 0\n    True" };
(get_hard_memory_limit) => { "\nExample:\n    >>> mx.get_hard_memory_limit() > 0\n    True" };
(get_memory_limit) => { "\nExample:\n    >>> mx.get_memory_limit() > 0\n    True" };
(get_peak_memory) => { "\nExample:\n    >>> mx.get_peak_memory() >= 0\n    True" };
(get_printoptions) => { "\nExample:\n    >>> mx.get_printoptions().precision\n    -1" };
(grad) => { "\nExample:\n    >>> df = mx.grad(lambda x: mx.sum(x * x))\n    >>> df(mx.array([1.0, 2.0]))\n    array([2, 4], dtype=float32)" };
(grid_sample) => { "An image at computed places, as PyTorch's `grid_sample`: −1 and 1 are the middles of the outermost pixels with\n`align_corners`, and the image's edges without.\n\nShapes:\nAn image `[N, sizes.., C]` and places `[N, output.., d]` for d spatial axes give `[N, output.., C]`. The first number of\na place is along the last axis of the image, the second along that before it.\n\nDtypes:\nIntegers are taken as `float32`; half types are computed in `float32`; the result has the image's dtype.\n\nErrors:\nWhere the places do not fit the image, a spatial axis is empty, for complex numbers, for the mean of an area, for\n`NearestExact`, which is about sizes, and for cubic interpolation of other than two axes.\n\nExample:\n    >>> mx.grid_sample(mx.array([[[[1.0], [2.0]], [[3.0], [4.0]]]]), mx.zeros((1, 1, 1, 2))).item()\n    2.5" };
(hadamard_transform) => { "`x` times a Hadamard matrix along its last axis, times `scale`, or 1/√n, which makes it\northonormal.\n\nShapes:\nThe last axis is of size m·2ᵏ with m of 1, 12, 20 or 28.\n\nDtypes:\nIntegers and bool are taken as `float32`; half types are computed in `float32`.\n\nErrors:\nFor other sizes, and for complex numbers.\n\nExample:\n    >>> mx.hadamard_transform(mx.array([1.0, 0.0]), scale=1.0)\n    array([1, 1], dtype=float32)" };
(hamming) => { "The Hamming window of `size` points: 0.54 + 0.46·cos πt for t from −1 to 1, as `float32`.\n\nExample:\n    >>> mx.hamming(3)\n    array([0.08, 1, 0.08], dtype=float32)" };
(hanning) => { "The Hann window of `size` points: 0.5 + 0.5·cos πt for t from −1 to 1, as `float32`.\n\nExample:\n    >>> mx.hanning(3)\n    array([0, 1, 0], dtype=float32)" };
(hessian) => { "\nExample:\n    >>> mx.hessian(lambda x: (x**3).sum())(mx.array([1.0, 2.0]))\n    array([[6, 0],\n           [0, 12]], dtype=float32)" };
(histogram) => { "How many elements fall into each bin, and the bins' edges. An element at an edge belongs to the bin above it, at\nthe last edge to the last bin; elements outside and NaN belong to none.\n\nShapes:\nThe array is flattened; n bins give counts `[n]` and edges `[n + 1]`.\n\nDtypes:\nEdges are floats in the array's dtype, `float32` of integers and bool. Counts are `int32`; with weights, one for\neach element, the sums of these in their dtype; with `density` floats, which the bins' widths make 1 in all.\n\nErrors:\nFor complex numbers, no bins, a range whose ends are not finite numbers in order, edges that are not a vector, and\nweights of another shape.\n\nExample:\n    >>> counts, edges = mx.histogram(mx.array([0.0, 1.0, 1.5, 4.0]), bins=2)\n    >>> counts, edges\n    (array([3, 1], dtype=int32), array([0, 2, 4], dtype=float32))" };
(import_function) => { "\nExample:\n    >>> import os, tempfile\n    >>> with tempfile.TemporaryDirectory() as folder:\n    ...     path = os.path.join(folder, \"f.cupola\")\n    ...     mx.export_function(path, mx.abs, mx.array([1.0, -2.0]), metadata=\"about it\")\n    ...     fun, text = mx.import_function(path, return_metadata=True)\n    >>> fun(mx.array([-3.0, 4.0])), text\n    ((array([3, 4], dtype=float32),), 'about it')" };
(interp) => { "The values at `x` of the straight lines through the points `(xp, fp)`, which are in ascending order; NaN at NaN.\n\nShapes:\n`xp` and `fp` are vectors of one size; the result has the shape of `x`.\n\nDtypes:\nAll promote to floats; half types are computed in `float32`. `fp` may be complex, and `x` and `xp` are real.\n\nErrors:\nWhere there are no points, `xp` and `fp` differ, a period is 0 or no number, for complex `x` and `xp`, and for\ncomplex numbers outside of real points.\n\nExample:\n    >>> mx.interp(mx.array([0.5, 2.0]), mx.array([0.0, 1.0, 3.0]), mx.array([1.0, 2.0, 0.0]))\n    array([1.5, 1], dtype=float32)" };
(interpolate) => { "An image in another size, as PyTorch's `interpolate`. With `align_corners` the outermost pixels' middles stay where\nthey are, without it the image's edges.\n\nShapes:\n`[N, input.., C]` gives `[N, output.., C]`, with any number of spatial axes.\n\nDtypes:\nThe nearest pixels keep the dtype; for the rest integers and bool are taken as `float32`, and half types are computed\nin `float32`.\n\nErrors:\nFor images without spatial axes, empty axes, sizes of 0, factors that are not positive, another number of them than\naxes, complex numbers where pixels are mixed, and `align_corners` of pixels that are not.\n\nExample:\n    >>> mx.interpolate(mx.array([[[1.0], [3.0]]]), 4, mode=\"linear\").flatten()\n    array([1, 1.5, 2.5, 3], dtype=float32)\n    >>> mx.interpolate(mx.array([[[1.0], [3.0]]]), scale_factor=2).flatten()\n    array([1, 1, 3, 3], dtype=float32)\n    >>> mx.interpolate(mx.ones((1, 3, 2, 2)), scale_factor=2, data_format=\"channels_first\").shape\n    (1, 3, 4, 4)" };
(is_available) => { "\nExample:\n    >>> mx.is_available(mx.cpu)\n    True" };
(isclose) => { "Whether a and b are equal within a tolerance; infinities equal themselves.\n\nExample:\n    >>> mx.isclose(mx.array([1.0, 2.0]), mx.array([1.0, 2.1]))\n    array([True, False], dtype=bool)" };
(isdtype) => { "\nExample:\n    >>> mx.isdtype(mx.float32, \"real floating\"), mx.isdtype(mx.int8, mx.int8)\n    (True, True)" };
(issubdtype) => { "\nExample:\n    >>> mx.issubdtype(mx.float16, mx.floating)\n    True" };
(jacfwd) => { "\nExample:\n    >>> mx.jacfwd(mx.square)(mx.array([1.0, 2.0]))\n    array([[2, 0],\n           [0, 4]], dtype=float32)" };
(jacrev) => { "\nExample:\n    >>> mx.jacrev(lambda x, w: w[\"a\"] * x, argnums=1)(mx.array([1.0, 2.0]), {\"a\": mx.array([3.0, 4.0])})\n    {'a': array([[1, 0],\n           [0, 2]], dtype=float32)}" };
(jvp) => { "\nExample:\n    >>> values, tangents = mx.jvp(lambda x: x * x, [mx.array(3.0)], [mx.array(1.0)])\n    >>> tangents\n    [array(6, dtype=float32)]" };
(linearize) => { "\nExample:\n    >>> y, slope = mx.linearize(mx.square, mx.array([1.0, 2.0]))\n    >>> y, slope(mx.array([1.0, 10.0]))\n    (array([1, 4], dtype=float32), array([2, 40], dtype=float32))" };
(linspace) => { "`count` numbers from `start` to `stop`, both included, evenly spaced.\n\nErrors:\nWhere `dtype` is neither an integer nor a float.\n\nExample:\n    >>> mx.linspace(0, 1, 5)\n    array([0, 0.25, 0.5, 0.75, 1], dtype=float32)" };
(load) => { "\nExample:\n    >>> import io\n    >>> file = io.BytesIO()\n    >>> mx.save(file, mx.array([1, 2]))\n    >>> _ = file.seek(0)\n    >>> mx.load(file, format=\"npy\")\n    array([1, 2], dtype=int32)" };
(logcumsumexp) => { "ln Σ eˣ of the elements of an axis up to each, without overflow; `()` flattens first.\n\nDtypes:\nIntegers and bool are taken as `float32`; half types accumulate in `float32`.\n\nExample:\n    >>> mx.logcumsumexp(mx.array([0.0, 0.0]))\n    array([0, 0.693147], dtype=float32)" };
(logical_and) => { "Whether both are true; numbers are true where they are not 0.\n\nExample:\n    >>> mx.logical_and(mx.array([True, False]), True)\n    array([True, False], dtype=bool)" };
(logical_or) => { "Whether either is true; numbers are true where they are not 0.\n\nExample:\n    >>> mx.logical_or(mx.array([True, False]), False)\n    array([True, False], dtype=bool)" };
(logical_xor) => { "Whether one of them is true; numbers are true where they are not 0.\n\nExample:\n    >>> mx.logical_xor(mx.array([True, False]), True)\n    array([False, True], dtype=bool)" };
(logit) => { "ln(x/(1 − x)), the inverse of `sigmoid`(super::sigmoid): −∞ at 0, ∞ at 1 and NaN outside. With `eps`, of\nx limited to [eps, 1 − eps].\n\nErrors:\nFor complex numbers.\n\nExample:\n    >>> mx.logit(mx.array([0.25, 0.5]))\n    array([-1.09861, 0], dtype=float32)" };
(logspace) => { "`count` numbers from base^start to base^stop, both included, whose logarithms are evenly spaced. They are computed\nin `float64`, on the CPU. Ends may be complex, which gives points of a spiral.\n\nErrors:\nWhere the dtype is bool, or the ends are complex and the dtype is not.\n\nExample:\n    >>> mx.logspace(0, 2, 3)\n    array([1, 10, 100], dtype=float32)" };
(matrix_norm) => { "`linalg.norm` under another name.\n\nExample:\n    >>> mx.matrix_norm(mx.array([[3.0, 0.0], [0.0, 4.0]]))\n    array(5, dtype=float32)" };
(max_pool_with_indices) => { "`max_pool`(super::max_pool), and where in its image, flattened, each largest element is: the first of equal ones,\nor the first NaN.\n\nShapes:\nBoth as `max_pool`(super::max_pool) gives.\n\nDtypes:\nThe places are `int32`.\n\nErrors:\nAs `max_pool`(super::max_pool), and for images of 2³¹ pixels and more.\n\nExample:\n    >>> largest, places = mx.max_pool_with_indices(mx.array([[[1.0], [4.0], [3.0], [2.0]]]), 2)\n    >>> largest.flatten(), places.flatten()\n    (array([4, 3], dtype=float32), array([1, 2], dtype=int32))" };
(max_unpool) => { "An image with elements at the places that `max_pool_with_indices` found them at, and zeros elsewhere.\n\nShapes:\nElements and places `[N, input.., C]` give `[N, sizes.., C]`.\n\nErrors:\nWhere elements and places differ, the places are not integers, the sizes are not one a spatial axis, and when it runs\nwhere a place is outside of the image.\n\nExample:\n    >>> mx.max_unpool(mx.array([[[4.0], [3.0]]]), mx.array([[[1], [2]]]), 4).flatten()\n    array([0, 4, 3, 0], dtype=float32)" };
(memory_stats) => { "\nExample:\n    >>> x = mx.ones((256, 256)) + 1\n    >>> mx.eval(x)\n    >>> mx.memory_stats()[\"by_op\"][\"add\"] >= 256 * 256 * 4\n    True" };
(meshgrid) => { "The coordinates of a grid: array `i` of the result repeats vector `i` along every other axis. Other\narrays are flattened.\n\nShapes:\nWith `matrix_order` axis `i` belongs to vector `i` (NumPy's `ij`); without, the first two axes\nare exchanged (`xy`).\n\nExample:\n    >>> x, y = mx.meshgrid(mx.array([1, 2]), mx.array([3, 4, 5]))\n    >>> x.shape, y.shape\n    ((3, 2), (3, 2))" };
(nan_to_num) => { "x with numbers in place of NaN and infinities; integers as they are. Of complex numbers both parts are replaced.\n\nExample:\n    >>> mx.nan_to_num(mx.array([mx.nan, 1.0]), nan=0.5)\n    array([0.5, 1], dtype=float32)" };
(nanpercentile) => { ":func:`nanquantile` at shares in percent, from 0 to 100.\n\nExample:\n    >>> mx.nanpercentile(mx.array([1.0, float(\"nan\"), 3.0]), 50)\n    array(2, dtype=float32)" };
(nanquantile) => { "`quantile` of what is not NaN; NaN where there is nothing else.\n\nErrors:\nAs `quantile`.\n\nExample:\n    >>> mx.nanquantile(mx.array([1.0, float(\"nan\"), 3.0]), 0.5)\n    array(2, dtype=float32)" };
(new_stream) => { "\nExample:\n    >>> stream = mx.new_stream(mx.cpu)\n    >>> mx.add(mx.array([1]), 1, stream=stream)\n    array([2], dtype=int32)\n    >>> mx.new_stream(mx.cpu, priority=-1).priority\n    -1" };
(new_thread_local_stream) => { "\nExample:\n    >>> with mx.stream(mx.new_thread_local_stream(mx.cpu)):\n    ...     mx.ones(2) * 2\n    array([2, 2], dtype=float32)" };
(new_thread_unsafe_stream) => { "\nExample:\n    >>> mx.new_thread_unsafe_stream(mx.cpu).device\n    Device(cpu, 0)" };
(nonzero) => { "The places of elements that are not 0: a vector of indices for each axis, in the order of the elements.\n\nShapes:\nHow many there are depends on the values, so the array is evaluated.\n\nDtypes:\nGives `int32`, or `int64` past 2³¹ elements.\n\nErrors:\nFor a plain number, which has no axes, and under `compile` and `vmap`, where there are no values.\n\nExample:\n    >>> mx.nonzero(mx.array([0, 5, 7]))\n    (array([1, 2], dtype=int32),)" };
(ones_like) => { "Ones with `x`'s shape and dtype.\n\nExample:\n    >>> mx.ones_like(mx.array([1, 2]))\n    array([1, 1], dtype=int32)" };
(pad) => { "`x` with a border, of one number or of its own elements.\n\nDtypes:\nA number is taken in x's dtype.\n\nErrors:\nWhere `widths` has not one pair an axis, and where an empty axis has no element for the border.\n\nExample:\n    >>> mx.pad(mx.array([1, 2, 3]), 1)\n    array([0, 1, 2, 3, 0], dtype=int32)\n    >>> mx.pad(mx.array([1, 2, 3]), (0, 2), mode=\"reflect\")\n    array([1, 2, 3, 2, 1], dtype=int32)" };
(percentile) => { ":func:`quantile` at shares in percent, from 0 to 100.\n\nExample:\n    >>> mx.percentile(mx.array([3.0, 1.0, 4.0, 2.0]), 50)\n    array(2.5, dtype=float32)" };
(printoptions) => { "\nExample:\n    >>> with mx.printoptions(precision=2):\n    ...     print(mx.array(1.23456))\n    array(1.23, dtype=float32)" };
(put_along_axis) => { "`x` with the elements at `indices` along an axis, and at the same place along the others,\nreplaced by `values`; `()` counts through the flattened array.\n\nShapes:\n`values` broadcast to the indices, and may have axes of one element before theirs; the other axes of `x` and of the\nindices broadcast to each other.\n\nDtypes:\nThe values are taken in x's dtype.\n\nExample:\n    >>> mx.put_along_axis(mx.zeros((2, 2)), mx.array([[0], [1]]), 1.0, axis=1)\n    array([[1, 0],\n           [0, 1]], dtype=float32)" };
(qqmm) => { "The product of two matrices that are both rounded to a format, the right one transposed.\nGradients are those of the product of the rounded matrices.\n\nErrors:\nAs `quantize_microscaling`, `dequantize_microscaling` and `matmul`.\n\nExample:\n    >>> mx.qqmm(mx.ones((1, 32)), mx.ones((2, 32)), mode=\"mxfp8\")\n    array([[32, 32]], dtype=float32)" };
(quantile) => { "The quantiles of the elements over `axes`, at the shares in `q`: 0 is the smallest element, ½ the median, 1 the\nlargest. NaN if there is a NaN.\n\nShapes:\nOne quantile for each of `q` along a new first axis; the folded axes go, or stay with size 1 where `keepdims` is\ntrue.\n\nDtypes:\nIntegers and bool are taken as `float32`; half types are computed in `float32`.\n\nErrors:\nWhere a share is not within [0, 1], an axis is empty, and for complex numbers.\n\nExample:\n    >>> mx.quantile(mx.array([3.0, 1.0, 4.0, 2.0]), [0.0, 0.5])\n    array([1, 2.5], dtype=float32)\n    >>> mx.quantile(mx.array([3.0, 1.0, 4.0, 2.0]), 0.5, method=\"lower\")\n    array(2, dtype=float32)" };
(quantize) => { "A matrix in a few bits an element: each group of neighbours in a row as whole numbers times a\nscale plus a bias, with the group's end that is farther from 0 exact, and 0.\n\nShapes:\nThe last of at least two axes divides into groups.\n\nDtypes:\nScales and biases have w's dtype.\n\nErrors:\nWhere `w` is not of floats, or does not divide.\n\nExample:\n    >>> words, scales, biases = mx.quantize(mx.ones((2, 64)), bits=4)\n    >>> words.shape, scales.shape\n    ((2, 8), (2, 1))" };
(quantized_matmul) => { "`x` by a quantized matrix, or by its transpose.\n\nErrors:\nAs `dequantize` and `matmul`.\n\nExample:\n    >>> mx.quantized_matmul(mx.ones((1, 64)), *mx.quantize(mx.ones((2, 64))))\n    array([[64, 64]], dtype=float32)" };
(recommended_max) => { "\nExample:\n    >>> mx.recommended_max(mx.cpu) > 0\n    True" };
(record_memory_history) => { "\nExample:\n    >>> with mx.record_memory_history() as history:\n    ...     x = mx.ones((256, 256)) * 3\n    ...     mx.eval(x)\n    >>> history.peak() >= 256 * 256 * 4\n    True" };
(reset_peak_memory) => { "\nExample:\n    >>> mx.reset_peak_memory()\n    >>> mx.get_peak_memory() == mx.get_active_memory()\n    True" };
(result_type) => { "\nExample:\n    >>> mx.result_type(mx.int32, mx.float16)\n    mlx.core.float16" };
(save) => { "\nExample:\n    >>> import io\n    >>> file = io.BytesIO()\n    >>> mx.save(file, mx.array([1, 2]))\n    >>> file.getvalue()[1:6]\n    b'NUMPY'" };
(save_gguf) => { "\nExample:\n    >>> import os, tempfile\n    >>> with tempfile.TemporaryDirectory() as folder:\n    ...     path = os.path.join(folder, \"weights.gguf\")\n    ...     mx.save_gguf(path, {\"w\": mx.array([1, 2])}, {\"general.name\": \"two\"})\n    ...     weights, metadata = mx.load(path, return_metadata=True)\n    >>> weights, metadata\n    ({'w': array([1, 2], dtype=int32)}, {'general.name': 'two'})" };
(save_safetensors) => { "\nExample:\n    >>> import os, tempfile\n    >>> with tempfile.TemporaryDirectory() as folder:\n    ...     path = os.path.join(folder, \"weights.safetensors\")\n    ...     mx.save_safetensors(path, {\"w\": mx.array([1, 2])})\n    ...     weights = mx.load(path)\n    >>> weights\n    {'w': array([1, 2], dtype=int32)}" };
(savez) => { "\nExample:\n    >>> import os, tempfile\n    >>> with tempfile.TemporaryDirectory() as folder:\n    ...     path = os.path.join(folder, \"arrays.npz\")\n    ...     mx.savez(path, a=mx.array([1]), b=mx.array([2]))\n    ...     arrays = mx.load(path)\n    >>> sorted(arrays)\n    ['a', 'b']" };
(savez_compressed) => { "\nExample:\n    >>> import os, tempfile\n    >>> with tempfile.TemporaryDirectory() as folder:\n    ...     path = os.path.join(folder, \"arrays.npz\")\n    ...     mx.savez_compressed(path, a=mx.array([1]))\n    ...     arrays = mx.load(path)\n    >>> sorted(arrays)\n    ['a']" };
(scan) => { "\nExample:\n    >>> total, sums = mx.scan(lambda c, x: (c + x, c + x), 0, mx.array([1, 2, 3]))\n    >>> total, sums\n    (array(6, dtype=int32), array([1, 3, 6], dtype=int32))" };
(searchsorted) => { "For each value the index in a sorted vector before which it keeps that sorted.\n\nShapes:\nThe result has the shape of `values`. Of more sorted vectors, `[.., n]`, each is for the values at the same place of\n`[.., k]`.\n\nDtypes:\nGives `uint32`. Vector and values promote; NaN comes last. Complex numbers are ordered by their real parts, and\nwhere these are equal by their imaginary ones.\n\nErrors:\nWhere `sorted` has no axis, or more than one, of which all but the last are not those of `values`.\n\nExample:\n    >>> mx.searchsorted(mx.array([1, 3, 5]), mx.array([0, 3, 9]))\n    array([0, 1, 3], dtype=uint32)" };
(set_cache_limit) => { "\nExample:\n    >>> former = mx.set_cache_limit(1 << 30)\n    >>> mx.set_cache_limit(former) == 1 << 30\n    True" };
(set_default_device) => { "\nExample:\n    >>> former = mx.default_device()\n    >>> mx.set_default_device(mx.cpu)\n    >>> mx.set_default_device(former)" };
(set_default_stream) => { "\nExample:\n    >>> former = mx.default_stream(mx.cpu)\n    >>> mx.set_default_stream(mx.new_stream(mx.cpu))\n    >>> mx.set_default_stream(former)" };
(set_hard_memory_limit) => { "\nExample:\n    >>> former = mx.set_hard_memory_limit(1 << 40)\n    >>> mx.set_hard_memory_limit(former) == 1 << 40\n    True" };
(set_memory_fraction) => { "\nExample:\n    >>> before = mx.get_hard_memory_limit()\n    >>> mx.set_memory_fraction(0.5, mx.cpu) == mx.recommended_max(mx.cpu) // 2\n    True\n    >>> _ = mx.set_hard_memory_limit(before)" };
(set_memory_limit) => { "\nExample:\n    >>> former = mx.set_memory_limit(1 << 40)\n    >>> mx.set_memory_limit(former) == 1 << 40\n    True" };
(set_plan_cache_limit) => { "\nExample:\n    >>> former = mx.set_plan_cache_limit(16 << 20)\n    >>> mx.set_plan_cache_limit(former) == 16 << 20\n    True" };
(set_printoptions) => { "\nExample:\n    >>> mx.set_printoptions(precision=2)\n    >>> mx.array(1.23456)\n    array(1.23, dtype=float32)\n    >>> mx.set_printoptions(precision=-1)" };
(set_wired_limit) => { "\nExample:\n    >>> former = mx.set_wired_limit(1 << 30)\n    >>> mx.set_wired_limit(former) == 1 << 30\n    True" };
(slice) => { "The elements from `start` up to but without `stop`, `step` apart, along each axis.\n\nExample:\n    >>> mx.slice(mx.arange(6), mx.array([2]), axes=[0], slice_size=(3,))\n    array([2, 3, 4], dtype=int32)" };
(slice_update) => { "`x` with the elements from `start` up to but without `stop`, `step` apart along each axis,\nreplaced by `update`.\n\nExample:\n    >>> mx.slice_update(mx.zeros(4), mx.ones(2), mx.array([1]), axes=[0])\n    array([0, 1, 1, 0], dtype=float32)" };
(softmax) => { "eˣ over the sum of eˣ along `axes`.\n\nDtypes:\nIntegers and bool are taken as `float32`; half types are computed in `float32`.\n\nExample:\n    >>> mx.softmax(mx.array([0.0, 0.0]))\n    array([0.5, 0.5], dtype=float32)" };
(split) => { "An axis divided into several arrays: into a count of equal parts, or before given indices.\n\nErrors:\nWhere the axis does not divide into equal parts, or into more than 2²⁰.\n\nExample:\n    >>> mx.split(mx.arange(4), 2)\n    [array([0, 1], dtype=int32), array([2, 3], dtype=int32)]" };
(stack) => { "\nExample:\n    >>> mx.stack([mx.array([1, 2]), mx.array([3, 4])], axis=1)\n    array([[1, 3],\n           [2, 4]], dtype=int32)" };
(std) => { "\nExample:\n    >>> mx.std(mx.array([1.0, 3.0]))\n    array(1, dtype=float32)" };
(stream) => { "\nExample:\n    >>> with mx.stream(mx.cpu):\n    ...     x = mx.ones(2)\n    >>> x\n    array([1, 1], dtype=float32)" };
(switch) => { "\nExample:\n    >>> mx.switch(mx.array(1), [mx.negative, mx.square], mx.array(3.0))\n    array(9, dtype=float32)" };
(synchronize) => { "\nExample:\n    >>> mx.synchronize()" };
(tensordot) => { "The sums of products over pairs of axes.\n\nShapes:\nThe axes of `a` that are left, then those of `b`.\n\nExample:\n    >>> mx.tensordot(mx.ones((2, 3)), mx.ones((3, 4)), axes=1).shape\n    (2, 4)" };
(trace) => { "The sum of the diagonal of two axes, `offset` places above the main one.\n\nExample:\n    >>> mx.trace(mx.array([[1, 2], [3, 4]]))\n    array(5, dtype=int32)" };
(tri) => { "A matrix of ones on and below the diagonal `offset` places above the main one.\n\nExample:\n    >>> mx.tri(2, 3)\n    array([[1, 0, 0],\n           [1, 1, 0]], dtype=float32)" };
(tril_indices) => { "The rows and the columns of the elements on and below the diagonal `offset` places above the main one, as\n`int32`.\n\nExample:\n    >>> mx.tril_indices(2)\n    (array([0, 1, 1], dtype=int32), array([0, 0, 1], dtype=int32))" };
(triu_indices) => { "The rows and the columns of the elements on and above the diagonal `offset` places above the main one, as\n`int32`.\n\nExample:\n    >>> mx.triu_indices(2)\n    (array([0, 0, 1], dtype=int32), array([0, 1, 1], dtype=int32))" };
(unfold) => { "The windows of an image as rows: their product with the flattened weight of a convolution is the convolution.\n\nShapes:\n`[N, input.., C]` gives `[N, windows, taps·C]`, with any number of spatial axes; the channels of a tap are side by side.\nWith channels first `[N, C, input..]` gives `[N, C·taps, windows]`, as in PyTorch.\n\nErrors:\nFor images without spatial axes, windows that do not fit, and windows, strides and dilations of 0.\n\nExample:\n    >>> mx.unfold(mx.array([[[1], [2], [3]]]), 2)\n    array([[[1, 2],\n            [2, 3]]], dtype=int32)\n    >>> mx.unfold(mx.ones((1, 2, 4, 4)), 3, data_format=\"channels_first\").shape\n    (1, 18, 4)" };
(unique) => { "The different elements of an array in ascending order; each NaN is one of its own.\n\nShapes:\n`size` says how many there are to be: the smallest of them where there are more, and `fill` behind\nthem, or else the first, where there are fewer. Without it there are as many as there are different\nelements, which are computed to see that.\n\nErrors:\nWhere an empty array is to be filled with its first element; without `size` under `compile` and `vmap`,\nwhere there are no values.\n\nExample:\n    >>> mx.unique(mx.array([3, 1, 3, 2]))\n    array([1, 2, 3], dtype=int32)" };
(unstack) => { "The elements along an axis as arrays of their own, without that axis.\n\nExample:\n    >>> mx.unstack(mx.array([[1, 2], [3, 4]]))\n    (array([1, 2], dtype=int32), array([3, 4], dtype=int32))" };
(value_and_grad) => { "\nExample:\n    >>> value, gradient = mx.value_and_grad(lambda x: x**2)(mx.array(3.0))\n    >>> value.item(), gradient.item()\n    (9.0, 6.0)" };
(var) => { "\nExample:\n    >>> mx.var(mx.array([1.0, 3.0]))\n    array(1, dtype=float32)" };
(vjp) => { "\nExample:\n    >>> values, cotangents = mx.vjp(lambda x: x * x, [mx.array(3.0)], [mx.array(1.0)])\n    >>> cotangents\n    [array(6, dtype=float32)]" };
(vmap) => { "\nExample:\n    >>> mx.vmap(lambda x: mx.sum(x))(mx.array([[1, 2], [3, 4]]))\n    array([3, 7], dtype=int32)" };
(while_loop) => { "\nExample:\n    >>> halves = mx.while_loop(lambda c: c[\"x\"] > 1, lambda c: {\"x\": c[\"x\"] / 2, \"n\": c[\"n\"] + 1},\n    ...                        {\"x\": 10.0, \"n\": 0})\n    >>> halves[\"n\"]\n    array(4, dtype=int32)\n    >>> root = lambda a: mx.while_loop(lambda x: mx.abs(x * x - a) > 1e-4, lambda x: (x + a / x) / 2, 1.0, max_iterations=20)\n    >>> round(mx.grad(root)(mx.array(4.0)).item(), 3)\n    0.25" };
(zeros_like) => { "Zeros with `x`'s shape and dtype.\n\nExample:\n    >>> mx.zeros_like(mx.array([1, 2]))\n    array([0, 0], dtype=int32)" };
(_amp::global_policy) => { "The policy of every thread outside of a scope.\n\nExample:\n    >>> mx._amp.global_policy()" };
(_amp::operand) => { "What the policy makes of an operand of an operation that a layer adds afterwards, as the bias of a\nconvolution.\n\nExample:\n    >>> mx._amp.operand(\"conv_general\", mx.array([1.0])).dtype\n    mlx.core.float32" };
(_amp::policy) => { "The policy that this thread records under now.\n\nExample:\n    >>> mx._amp.policy()" };
(_amp::renew_traces) => { "Says that a module has another policy now: what was compiled is traced anew.\n\nExample:\n    >>> mx._amp.renew_traces()" };
(_amp::result) => { "What the policy makes of the result of an operation that a layer computes by itself, as an embedding.\n\nExample:\n    >>> mx._amp.result(\"embedding\", mx.array([1.0])).dtype\n    mlx.core.float32" };
(_amp::set_global_policy) => { "Makes a policy that of every thread outside of a scope.\n\nExample:\n    >>> mx._amp.set_global_policy(None)" };
(_amp::tune) => { "What a step takes in each precision, group by group of its operations.\n\nExample:\n    >>> step = lambda: [(mx.ones((2, 2)) @ mx.ones((2, 2))).sum()]\n    >>> tuned = mx._amp.tune(step, lambda: None, mx.bfloat16, 1, 0.01)\n    >>> \"products\" in str(tuned)\n    True" };
(_coreml::classes) => { "" };
(_coreml::constants) => { "" };
(_coreml::function) => { "" };
(_coreml::functions) => { "" };
(_coreml::load) => { "" };
(_coreml::operators) => { "" };
(_coreml::outputs) => { "" };
(_coreml::ports) => { "" };
(_coreml::run) => { "" };
(_coreml::warnings) => { "" };
(_data::cifar10) => { "" };
(_data::cifar100) => { "" };
(_data::digits) => { "\nExample:\n    >>> train, test = data.digits(train=4, test=2)\n    >>> images, labels = train.arrays()\n    >>> images.shape, labels.shape\n    ((4, 28, 28, 1), (4,))" };
(_data::fashion_mnist) => { "" };
(_data::mnist) => { "" };
(_data::normalize) => { "Images at another scale, channel by channel: bytes divided by 255, less a mean, over a deviation. Floats are\ntaken to be scaled to 0 to 1 already.\nTakes (..., C), and mean and deviation of each channel.\n\nExample:\n    >>> data.normalize(mx.array([[0], [255]], mx.uint8), [0.5], [0.25]).tolist()\n    [[-2.0], [2.0]]" };
(_data::random_crop) => { "Of each image of a batch, with a border of zeros, a part of its own size at a random place.\nTakes (N, H, W, C), how wide the border is, and a key where the default generator is not to be drawn from.\n\nExample:\n    >>> data.random_crop(mx.ones((8, 32, 32, 3)), 4).shape\n    (8, 32, 32, 3)" };
(_data::random_flip) => { "Each image of a batch mirrored, left for right, with probability one half.\nTakes (N, H, W, C), and a key where the default generator is not to be drawn from.\n\nExample:\n    >>> image = mx.array([1.0, 2.0]).reshape(1, 1, 2, 1)\n    >>> data.random_flip(image).flatten().tolist() in ([1, 2], [2, 1])\n    True" };
(_graph::save) => { "" };
(_linalg::cholesky) => { "The lower triangular L with a positive diagonal and A = L·Lᴴ, or U = Lᴴ with A = Uᴴ·U where `upper`\nis true. Of A only that triangle is read.\n\nDtypes:\n`float32`, `float64` and `complex64`.\n\nErrors:\nWhere `a` has less than two axes, is not square, or has another dtype;\nwhen it is computed where it is not positive definite.\n\nDerivatives:\nThose by symmetric matrices: they are symmetric." };
(_linalg::det) => { "The determinants of square matrices.\n\nDtypes:\nIntegers and bool are taken as `float32`; half types are computed in `float32`.\n\nErrors:\nWhere `a` has less than two axes or is not square. The derivative by a singular matrix of\nmore than three rows is an error when it is computed." };
(_linalg::inv) => { "The inverse of square matrices.\n\nDtypes:\n`float32`, `float64` and `complex64`.\n\nErrors:\nWhere `a` has less than two axes, is not square, or has another dtype;\nwhen it is computed where it is singular." };
(_linalg::qr) => { "A = Q·R: Q with orthonormal columns, as many as A has rows or columns, whichever are fewer, and R\nupper triangular. Where an element is not finite, both are NaN from its column on.\n\nDtypes:\n`float32`, `float64` and `complex64`.\n\nErrors:\nWhere `a` has less than two axes or another dtype.\n\nDerivatives:\nWhere the first columns do not depend on each other. Of complex matrices the diagonal of R stays real." };
(_linalg::slogdet) => { "The signs of the determinants of square matrices, and the logarithms of their sizes: 0 and −∞ of\nsingular ones.\n\nDtypes:\nAs `det`.\n\nErrors:\nAs `det`." };
(_linalg::solve) => { "X with A·X = B.\n\nShapes:\n`a` is `[.., n, n]`, `b` a vector `[n]` or `[.., n, k]`; the other axes broadcast.\n\nDtypes:\nThe operands promote, to `float32` or `float64`.\n\nErrors:\nWhere shapes or dtypes do not fit; when it is computed where A is singular." };
(_nn::adam) => { "One step of Adam for a parameter: its new value, and the new means of gradients and of their squares.\n``rate`` is what the mean of gradients is multiplied by; ``deviation``, if given, the root of the other. The\nparameter is multiplied by ``kept`` first, if that is given.\n\nShapes:\nAll of one, but for ``rate``, ``deviation`` and ``kept``, which are scalars.\n\nExample:\n    >>> p, m, v = mx._nn.adam(mx.array([1.0]), mx.array([2.0]), mx.zeros(1), mx.zeros(1), (0.5, 0.75), 0.0, 0.5)\n    >>> p, m, v\n    (array([0.5], dtype=float32), array([1], dtype=float32), array([1], dtype=float32))" };
(_nn::avg_pool) => { "The mean of each window; padding counts as zeros.\n\nShapes:\nAs `max_pool`.\n\nDtypes:\nIntegers are taken as `float32`; half types are summed and divided in `float32`." };
(_nn::celu) => { "x for positive x, alpha·(e^(x/alpha) − 1) otherwise." };
(_nn::elu) => { "x for positive x, alpha·(eˣ − 1) otherwise." };
(_nn::gelu) => { "x·Φ(x), with the normal distribution function Φ.\n\nD. Hendrycks, K. Gimpel, *Gaussian error linear units*, 2016." };
(_nn::gelu_approx) => { "`gelu` through tanh: 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))." };
(_nn::glu) => { "The first half of an axis times the sigmoid of the second.\n\nErrors:\nWhere the axis is not of even size." };
(_nn::hard_shrink) => { "x where |x| is above lambda, and 0 elsewhere." };
(_nn::log_sigmoid) => { "ln sigmoid(x), without overflow." };
(_nn::max_pool) => { "The largest element of each window; NaN if there is one. Complex numbers are in lexicographic order.\n\nShapes:\n`[N, input.., C]` gives `[N, output.., C]` with (input + padding − span)/stride + 1 outputs along an axis, where a\nwindow spans (window − 1)·dilation + 1 elements; with channels first `[N, C, input..]` gives `[N, C, output..]`.\nPadding is never the largest." };
(_nn::mish) => { "x·tanh(ln(1 + eˣ))." };
(_nn::parameters) => { "The arrays of ``module`` and of the modules in it, which are of ``kind``, as nested dictionaries and lists; where\n``trainable``, without the frozen ones.\n\nExample:\n    >>> layer = nn.Linear(2, 3)\n    >>> sorted(mx._nn.parameters(layer, nn.Module, True))\n    ['bias', 'weight']" };
(_nn::relu) => { "max(x, 0), with slope 0 at 0." };
(_nn::running_mean) => { "``running`` moved by ``momentum`` towards ``scale`` times ``fresh``, in its own dtype.\n\nShapes:\nBoth of one.\n\nExample:\n    >>> mx._nn.running_mean(mx.array([1.0]), mx.array([3.0]), 0.25, 1.0)\n    array([1.5], dtype=float32)" };
(_nn::selu) => { "The self-normalising exponential unit, 1.0507·elu(x, 1.67326).\n\nG. Klambauer et al., *Self-normalizing neural networks*, NeurIPS 2017." };
(_nn::sgd) => { "One step of gradient descent with momentum for a parameter: its new value, and the new momentum. ``momentum`` is\nthe factor of the old one, what the gradient is dampened by, and whether the step looks ahead as Nesterov's does;\n``weight_decay`` is how much of the parameter is added to its gradient.\n\nShapes:\nAll of one, but for ``rate``, which is a scalar.\n\nExample:\n    >>> mx._nn.sgd(mx.array([1.0]), mx.array([2.0]), mx.array([4.0]), (0.5, 0.0, False), 0.0, 0.25)\n    (array([0], dtype=float32), array([4], dtype=float32))" };
(_nn::silu) => { "x·sigmoid(x), also called swish." };
(_nn::softplus) => { "ln(1 + eˣ), without overflow." };
(_nn::softshrink) => { "x moved by lambda towards 0, and 0 where |x| is not above lambda." };
(_nn::softsign) => { "x/(1 + |x|)." };
(_nn::tree_map) => { "A tree of what ``function`` makes of each leaf of ``tree`` and of the leaves at its place in the trees of ``rest``; a list, tuple or dictionary of which ``is_leaf`` says so is a leaf, too.\n\nExample:\n    >>> mx._nn.tree_map(lambda x, y: x + y, {\"a\": [1, 2]}, ({\"a\": [3, 4]},))\n    {'a': [4, 6]}" };
(_nn::update) => { "``x`` itself, as what ``former`` becomes: where an index outside its axis keeps ``x`` from being computed, the\nerror is given once, and from then on the result is ``former``.\n\nExample:\n    >>> w, index = mx.array([1.0, 2.0]), mx.array(3) + 4\n    >>> fresh = mx._nn.update(w + w[index], w)\n    >>> try:\n    ...     mx.eval(fresh)\n    ... except IndexError:\n    ...     print(fresh)\n    array([1, 2], dtype=float32)" };
(_onnx::export) => { "" };
(_onnx::initializers) => { "" };
(_onnx::load) => { "" };
(_onnx::operators) => { "" };
(_onnx::ports) => { "" };
(_onnx::run) => { "" };
(_onnx::write) => { "" };
(_profiler::check_file) => { "Raises where a profile cannot be written to a file.\n\nExample:\n    >>> mx._profiler.check_file(\"profile.json\")" };
(_profiler::finish) => { "Writes the profile that the environment asked for.\n\nExample:\n    >>> mx._profiler.finish()" };
(_profiler::is_running) => { "Whether a profile is being recorded.\n\nExample:\n    >>> mx._profiler.is_running()\n    False" };
(_profiler::mark) => { "Marks this moment in the profile that is being recorded.\n\nExample:\n    >>> mx._profiler.mark(\"here\")" };
(_profiler::start) => { "Begins to record what every thread does.\n\nExample:\n    >>> mx._profiler.start(\"interval,event\")\n    >>> profile = mx._profiler.stop()" };
(_profiler::stop) => { "What was recorded, which ends.\n\nExample:\n    >>> mx._profiler.start()\n    >>> mx._profiler.stop().lost\n    0" };
(_suite::samples) => { "" };
(_train::early_stopping) => { "What ends a training after so many epochs in which a metric is not the best so far.\n\nExample:\n    >>> mx._train.early_stopping(\"loss\", 3, \"least\", 0.0).best" };
(_train::keep_best) => { "What keeps the weights of the epoch in which a metric is best.\n\nExample:\n    >>> mx._train.keep_best(\"loss\", \"best.safetensors\", \"least\").best" };
(_train::metrics_file) => { "What writes a line an epoch.\n\nExample:\n    >>> mx._train.metrics_file(\"metrics.jsonl\", None).end()" };
(_train::report) => { "What writes a page about a training.\n\nExample:\n    >>> mx._train.report(\"report.html\", \"A line\", [(\"rate\", \"0.1\")]).end()" };
(_train::tensor_board) => { "What writes for TensorBoard.\n\nExample:\n    >>> mx._train.tensor_board(\"board\", 10).path.parent.name\n    'board'" };
(cuda::is_available) => { "\nExample:\n    >>> mx.cuda.is_available() in (True, False)\n    True" };
(distributed::all_gather) => { "The arrays of all processes, one after the other along the first axis.\n\nExample:\n    >>> mx.distributed.all_gather(mx.array([1, 2]))\n    array([1, 2], dtype=int32)" };
(distributed::all_max) => { "The largest of each element of the arrays of all processes.\n\nExample:\n    >>> mx.distributed.all_max(mx.array([1, 2]))\n    array([1, 2], dtype=int32)" };
(distributed::all_min) => { "The smallest of each element of the arrays of all processes.\n\nExample:\n    >>> mx.distributed.all_min(mx.array([1, 2]))\n    array([1, 2], dtype=int32)" };
(distributed::all_sum) => { "The sum of the arrays of all processes.\n\nExample:\n    >>> mx.distributed.all_sum(mx.array([1, 2]))\n    array([1, 2], dtype=int32)" };
(distributed::init) => { "\nExample:\n    >>> mx.distributed.init().size()\n    1" };
(distributed::is_available) => { "\nExample:\n    >>> mx.distributed.is_available()\n    False" };
(distributed::recv) => { "\nExample:\n    >>> mx.distributed.recv((2,), mx.float32, 1)\n    Traceback (most recent call last):\n        ...\n    ValueError: recv: the group of one process has no other (src 1)" };
(distributed::recv_like) => { "\nExample:\n    >>> mx.distributed.recv_like(mx.array([1, 2]), 1)\n    Traceback (most recent call last):\n        ...\n    ValueError: recv_like: the group of one process has no other (src 1)" };
(distributed::send) => { "\nExample:\n    >>> mx.distributed.send(mx.array([1, 2]), 1)\n    Traceback (most recent call last):\n        ...\n    ValueError: send: the group of one process has no other (dst 1)" };
(distributed::sum_scatter) => { "This process's part, along the first axis, of the sum of the arrays of all processes.\n\nExample:\n    >>> mx.distributed.sum_scatter(mx.array([1, 2]))\n    array([1, 2], dtype=int32)" };
(fast::cross_entropy) => { "For each row of logits, over the last axis, the negative logarithm of the softmax at its target.\n\nShapes:\n`targets` have the shape of the logits without the last axis, and so has the result.\n\nDtypes:\nGives `float32`, or `float64` for such logits; half types are computed in `float32`.\n\nErrors:\nWhere the logits are not floats, the targets not integers or of another shape; when it runs where\na target is out of range.\n\nExample:\n    >>> mx.fast.cross_entropy(mx.zeros((1, 4)), mx.array([2]))\n    array([1.38629], dtype=float32)" };
(fast::cuda_kernel) => { "\nExample:\n    >>> source = 'int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = 2 * x[i];'\n    >>> mx.fast.cuda_kernel('double', ['x'], ['y'], source).name\n    'double'" };
(fast::group_norm) => { "`x` with mean 0 and variance 1 in each group of channels of each example over the spatial axes, times `weight`, plus\n`bias`. One group is a layer norm over all of an example, as many as channels are an instance norm.\n\nY. Wu, K. He, *Group normalization*, ECCV 2018.\n\nShapes:\n`[N, .., C]` gives the same; `weight` and `bias` are `[C]`.\n\nDtypes:\nIntegers and bool are taken as `float32`; half types are computed in `float32`; the result has x's dtype.\n\nErrors:\nWhere `x` has fewer than two axes, its channels are not so many groups of as many, or `weight` or `bias` is not a vector\nof the channels.\n\nExample:\n    >>> mx.fast.group_norm(mx.array([[1.0, 3.0, 10.0, 30.0]]), 2, eps=0.0)\n    array([[-1, 1, -1, 1]], dtype=float32)" };
(fast::kernel) => { "\nExample:\n    >>> source = 'uint i = thread_position_in_grid.x; T v = x[i]; y[i] = v > 0 ? v : T(0);'\n    >>> relu = mx.fast.kernel('relu', ['x'], ['y'], source)\n    >>> x = mx.array([-1.0, 2.0])\n    >>> relu(inputs=[x], template=[('T', mx.float32)], grid=(2, 1, 1), threadgroup=(2, 1, 1),\n    ...      output_shapes=[x.shape], output_dtypes=[x.dtype])[0]\n    array([0, 2], dtype=float32)" };
(fast::layer_norm) => { "`x` with mean 0 and variance 1 along its last axis, times `weight`, plus `bias`.\n\nDtypes:\nComputed in `float32` for half types; the result has x's dtype.\n\nErrors:\nWhere `x` has no axes, or `weight` or `bias` is not a vector of its last one.\n\nJ. L. Ba, J. R. Kiros, G. E. Hinton, *Layer normalization*, 2016.\n\nExample:\n    >>> mx.fast.layer_norm(mx.array([[1.0, 3.0]]), None, None, 1e-5)\n    array([[-0.999995, 0.999995]], dtype=float32)" };
(fast::metal_kernel) => { "\nExample:\n    >>> source = 'uint i = thread_position_in_grid.x; y[i] = metal::exp(x[i]);'\n    >>> exp = mx.fast.metal_kernel(name='exp', input_names=['x'], output_names=['y'], source=source)\n    >>> exp(inputs=[mx.zeros(2)], grid=(2, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(2,)],\n    ...     output_dtypes=[mx.float32])[0]\n    array([1, 1], dtype=float32)" };
(fast::rms_norm) => { "`x` over its root mean square along its last axis, times `weight`.\n\nDtypes:\nAs `layer_norm`.\n\nErrors:\nAs `layer_norm`.\n\nB. Zhang, R. Sennrich, *Root mean square layer normalization*, NeurIPS 2019.\n\nExample:\n    >>> mx.fast.rms_norm(mx.array([[3.0, 4.0]]), None, 1e-5)\n    array([[0.848528, 1.13137]], dtype=float32)" };
(fast::rope) => { "Pairs of features turned by an angle that grows with their place in the sequence.\n\nShapes:\n`[batch, .., places, features]` stays.\n\nDtypes:\nHalf types are turned in `float32`.\n\nErrors:\nWhere there are fewer than three axes, `dims` is odd, 0 or larger than the last axis, frequencies\nor offsets do not fit, or the input is not of floats.\n\nJ. Su and others, *RoFormer: enhanced transformer with rotary position embedding*, 2021.\n\nExample:\n    >>> mx.fast.rope(mx.ones((1, 2, 4)), 4, traditional=False, base=10000.0, scale=1.0, offset=0).shape\n    (1, 2, 4)" };
(fast::scaled_dot_product_attention) => { "Values weighted by the softmax of how well queries and keys agree: softmax(scale·q·kᵀ)·v.\n\nShapes:\nq `[batch, heads, queries, d]`, k `[batch, groups, keys, d]` and v `[batch, groups, keys, e]` give\n`[batch, heads, queries, e]`; each group of keys serves heads/groups heads that follow each other.\n\nDtypes:\nThe three promote; the softmax is taken in `float32` for half types.\n\nErrors:\nWhere the shapes do not fit, or a float mask is wider than the result.\n\nA. Vaswani and others, *Attention is all you need*, NeurIPS 2017; groups: J. Ainslie and others,\n*GQA*, EMNLP 2023; sinks: G. Xiao and others, *Efficient streaming language models with attention\nsinks*, ICLR 2024.\n\nExample:\n    >>> q = k = v = mx.ones((1, 2, 3, 8))\n    >>> mx.fast.scaled_dot_product_attention(q, k, v, scale=8**-0.5).shape\n    (1, 2, 3, 8)" };
(fast::wgsl_kernel) => { "\nExample:\n    >>> source = 'let i = thread_position_in_grid.x; y[i] = 2.0 * x[i];'\n    >>> mx.fast.wgsl_kernel('double', ['x'], ['y'], source).name\n    'double'" };
(fft::fft) => { "The Fourier transform along an axis: yₖ = Σⱼ xⱼ·e^(−2πi·jk/n).\n\nShapes:\nThe axis is cut off or filled with zeros to `n`; `None` leaves it.\n\nDtypes:\nComputed in `complex64`, which the result has; what is real is cast to it.\n\nErrors:\nWhere there is no such axis, and where it has no point.\n\nExample:\n    >>> mx.fft.fft(mx.array([1.0, 2.0, 3.0, 4.0]))\n    array([10+0j, -2+2j, -2+0j, -2-2j], dtype=complex64)" };
(fft::fft2) => { "The Fourier transform along two axes: `fftn`.\n\nShapes:\nAs `fftn`; usually the last two axes.\n\nDtypes:\nComputed in `complex64`, which the result has; what is real is cast to it.\n\nErrors:\nWhere there are no such axes, where one repeats or has no point, and where `s` has not one size\nfor each.\n\nExample:\n    >>> mx.fft.fft2(mx.ones((2, 2)))\n    array([[4+0j, 0+0j],\n           [0+0j, 0+0j]], dtype=complex64)" };
(fft::fftn) => { "The Fourier transform along several axes.\n\nShapes:\n`s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`.\n\nDtypes:\nComputed in `complex64`, which the result has; what is real is cast to it.\n\nErrors:\nWhere there are no such axes, where one repeats or has no point, and where `s` has not one size\nfor each.\n\nExample:\n    >>> mx.fft.fftn(mx.ones((2, 3, 4)), s=(2, 2), axes=(0, 2)).shape\n    (2, 3, 2)" };
(fft::hfft) => { "The real spectrum of what is the conjugate of itself backwards, of which the first half is given:\n`irfft` with the two ways exchanged.\n\nShapes:\nAs `irfft`.\n\nDtypes:\nThe input is cast to `complex64`; the result is `float32`.\n\nErrors:\nAs `irfft`.\n\nExample:\n    >>> mx.fft.hfft(mx.array([1.0, 2.0, 3.0]))\n    array([8, -2, 0, -2], dtype=float32)" };
(fft::ifft) => { "The inverse of `fft`: xⱼ = 1/n·Σₖ yₖ·e^(2πi·jk/n).\n\nShapes:\nThe axis is cut off or filled with zeros to `n`; `None` leaves it.\n\nDtypes:\nComputed in `complex64`, which the result has; what is real is cast to it.\n\nErrors:\nWhere there is no such axis, and where it has no point.\n\nExample:\n    >>> mx.fft.ifft(mx.array([4.0, 0.0, 0.0, 0.0]))\n    array([1+0j, 1+0j, 1+0j, 1+0j], dtype=complex64)" };
(fft::ifft2) => { "The inverse of `fft2`.\n\nShapes:\nAs `ifftn`; usually the last two axes.\n\nDtypes:\nComputed in `complex64`, which the result has; what is real is cast to it.\n\nErrors:\nWhere there are no such axes, where one repeats or has no point, and where `s` has not one size\nfor each.\n\nExample:\n    >>> mx.fft.ifft2(mx.ones((2, 2)), norm=\"forward\")\n    array([[4+0j, 0+0j],\n           [0+0j, 0+0j]], dtype=complex64)" };
(fft::ifftn) => { "The inverse of `fftn`.\n\nShapes:\n`s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`.\n\nDtypes:\nComputed in `complex64`, which the result has; what is real is cast to it.\n\nErrors:\nWhere there are no such axes, where one repeats or has no point, and where `s` has not one size\nfor each.\n\nExample:\n    >>> mx.fft.ifftn(mx.ones((2, 3, 4))).shape\n    (2, 3, 4)" };
(fft::ihfft) => { "The inverse of `hfft`: half of what has this real spectrum.\n\nShapes:\nAs `rfft`.\n\nDtypes:\nAs `rfft`.\n\nErrors:\nAs `rfft`.\n\nExample:\n    >>> mx.real(mx.fft.ihfft(mx.array([8.0, -2.0, 0.0, -2.0])))\n    array([1, 2, 3], dtype=float32)" };
(fft::irfft) => { "The real numbers whose spectrum along an axis begins with these: the inverse of `rfft`.\n\nShapes:\nThe axis has `n` numbers in the end, of which the first `n`/2 + 1 of the spectrum say all; for `None` these are 2·(m − 1) of m.\n\nDtypes:\nThe input is cast to `complex64`; the result is `float32`.\n\nErrors:\nWhere there is no such axis, and where it has no point.\n\nExample:\n    >>> mx.fft.irfft(mx.array([10.0, -2.0, -2.0]))\n    array([1, 3, 3, 3], dtype=float32)" };
(fft::irfft2) => { "The inverse of `rfft2`.\n\nShapes:\nAs `irfftn`; usually the last two axes.\n\nDtypes:\nThe input is cast to `complex64`; the result is `float32`.\n\nErrors:\nWhere there are no such axes, where one repeats or has no point, and where `s` has not one size\nfor each.\n\nExample:\n    >>> mx.fft.irfft2(mx.ones((5, 3, 3))).shape\n    (5, 3, 4)" };
(fft::irfftn) => { "The inverse of `rfftn`.\n\nShapes:\n`s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`. The size of the last axis is as in `irfft`.\n\nDtypes:\nThe input is cast to `complex64`; the result is `float32`.\n\nErrors:\nWhere there are no such axes, where one repeats or has no point, and where `s` has not one size\nfor each.\n\nExample:\n    >>> mx.fft.irfftn(mx.ones((3, 3)), s=(3, 5), axes=(0, 1)).shape\n    (3, 5)" };
(fft::istft) => { "The signal whose `stft` this is: the frames, times the window, are added where they overlap, and\ndivided by the sum of the squares of the windows there.\n\nShapes:\nThe last two axes of `spectra` are frequencies and frames. They become one: `length` elements, or\nfor `None` as many as all frames have together, without what `center` added.\n\nDtypes:\nComputed in `complex64`; the result is `float32`.\n\nErrors:\nWhere there are less than two axes, `n_fft` or the hop is 0, the window has not one axis or is longer\nthan a frame, and where there is no frame.\n\nD. W. Griffin, J. S. Lim, *Signal estimation from modified short-time Fourier transform*, 1984.\n\nExample:\n    >>> mx.fft.istft(mx.fft.stft(mx.ones(32), n_fft=8)).shape\n    (32,)" };
(fft::rfft) => { "The first n/2 + 1 numbers of the Fourier transform of real ones along an axis: the others are their conjugates.\n\nShapes:\nThe axis is cut off or filled with zeros to `n`, and has `n`/2 + 1 numbers in the end; `None` leaves it.\n\nDtypes:\nThe input is cast to `float32`, of complex numbers the real part; the result is `complex64`.\n\nErrors:\nWhere there is no such axis, and where it has no point.\n\nExample:\n    >>> mx.fft.rfft(mx.array([1.0, 2.0, 3.0, 4.0]))\n    array([10+0j, -2+2j, -2+0j], dtype=complex64)" };
(fft::rfft2) => { "The Fourier transform of real numbers along two axes: `rfftn`.\n\nShapes:\nAs `rfftn`; usually the last two axes.\n\nDtypes:\nThe input is cast to `float32`, of complex numbers the real part; the result is `complex64`.\n\nErrors:\nWhere there are no such axes, where one repeats or has no point, and where `s` has not one size\nfor each.\n\nExample:\n    >>> mx.fft.rfft2(mx.ones((5, 3, 4))).shape\n    (5, 3, 3)" };
(fft::rfftn) => { "The Fourier transform of real numbers along several axes: half a spectrum along the last of them.\n\nShapes:\n`s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`. The last axis has half its size and 1 in the end, as in `rfft`.\n\nDtypes:\nThe input is cast to `float32`, of complex numbers the real part; the result is `complex64`.\n\nErrors:\nWhere there are no such axes, where one repeats or has no point, and where `s` has not one size\nfor each.\n\nExample:\n    >>> mx.fft.rfftn(mx.ones((3, 4))).shape\n    (3, 3)" };
(fft::stft) => { "The spectra of overlapping frames of a signal: frame t is n_fft elements from t·hop on, times the\nwindow.\n\nShapes:\nThe signal is the last axis of `x`. It becomes two: frequencies, n_fft/2 + 1 of half a spectrum,\nand frames.\n\nDtypes:\nComputed in `float32`, of complex numbers in `complex64`; the result is `complex64`.\n\nErrors:\nWhere `n_fft` or the hop is 0, the window has not one axis or is longer than a frame, and where the\nsignal is shorter than one.\n\nJ. B. Allen, L. R. Rabiner, *A unified approach to short-time Fourier analysis and synthesis*, 1977.\n\nExample:\n    >>> mx.fft.stft(mx.ones(32), n_fft=8).shape\n    (5, 17)" };
(linalg::cross) => { "The cross products of the vectors along an axis.\n\nShapes:\nThe axis is of size 3, or 2, to which a 0 is added; the other axes broadcast.\n\nErrors:\nWhere the axis is of another size.\n\nExample:\n    >>> mx.linalg.cross(mx.array([1, 0, 0]), mx.array([0, 1, 0]))\n    array([0, 0, 1], dtype=int32)" };
(linalg::eigh) => { "W and V with A = V·W·Vᴴ of symmetric or Hermitian matrices: the eigenvalues from the least on, and\northonormal eigenvectors as columns. Only the lower triangle is read, or the upper one where `upper`\nis true.\n\nDtypes:\n`float32`, `float64` and `complex64`; W is real.\n\nErrors:\nWhere `a` has less than two axes, is not square, or has another dtype;\nwhen it is computed where an element is not finite.\n\nDerivatives:\nThose by symmetric matrices. Else as for `svd`.\n\nExample:\n    >>> w, v = mx.linalg.eigh(mx.array([[3.0, 0.0], [0.0, 2.0]]))\n    >>> w\n    array([2, 3], dtype=float32)\n    >>> v\n    array([[0, 1],\n           [1, 0]], dtype=float32)" };
(linalg::eigvalsh) => { "The eigenvalues of symmetric or Hermitian matrices, from the least on: those of `eigh`.\n\nDtypes:\n`float32`, `float64` and `complex64`; the result is real.\n\nErrors:\nAs `eigh`.\n\nExample:\n    >>> mx.linalg.eigvalsh(mx.array([[3.0, 0.0], [0.0, 2.0]]))\n    array([2, 3], dtype=float32)" };
(linalg::lstsq) => { "\nExample:\n    >>> a, b = mx.ones((4, 1)), mx.array([1.0, 2.0, 3.0, 6.0])\n    >>> mx.round(mx.linalg.lstsq(a, b), 4)\n    array([3], dtype=float32)\n    >>> _, residuals, rank, _ = mx.linalg.lstsq(a, b, full=True)\n    >>> mx.round(residuals, 3), rank\n    (array([14], dtype=float32), array(1, dtype=int32))" };
(linalg::matrix_rank) => { "How many singular values are larger than `tolerance`, as `int32`; `None` for max(m, n)·ε of the\nlargest.\n\nDtypes:\n`float32`, `float64` and `complex64`.\n\nErrors:\nAs `svd`.\n\nExample:\n    >>> mx.linalg.matrix_rank(mx.array([[1.0, 2.0], [2.0, 4.0]]))\n    array(1, dtype=int32)" };
(linalg::norm) => { "The norm of the vectors along one axis, or of the matrices in two; of everything for `()`, and along no axes the size of\neach element.\n\nShapes:\nThe axes go, or stay with size 1 where `keepdims` is true.\n\nDtypes:\nIntegers and bool are taken as `float32`; the norm of complex numbers is real.\n\nErrors:\nFor more than two axes, and for an order that is not one of a vector's or of a matrix'.\n\nExample:\n    >>> mx.linalg.norm(mx.array([3.0, 4.0]))\n    array(5, dtype=float32)" };
(linalg::solve_triangular) => { "X with A·X = B for triangular matrices: lower ones, or upper ones where `upper` is true. Only the\ntriangle is read.\n\nShapes:\n`a` is `[.., n, n]`, `b` a vector `[n]` or `[.., n, k]`; the other axes broadcast.\n\nDtypes:\nThe operands promote, to `float32` or `float64`.\n\nErrors:\nWhere shapes or dtypes do not fit; when it is computed where A has a 0 on its diagonal.\n\nExample:\n    >>> mx.linalg.solve_triangular(mx.array([[2.0, 0.0], [1.0, 4.0]]), mx.array([4.0, 10.0]))\n    array([2, 2], dtype=float32)" };
(linalg::svd) => { "U, S and Vᴴ with A = U·S·Vᴴ: orthonormal bases `[.., m, m]` and `[.., n, n]`, and the singular values\nfrom the largest on.\n\nDtypes:\n`float32`, `float64` and `complex64`; S is real.\n\nErrors:\nWhere `a` has less than two axes or another dtype; when it is computed where an element is not\nfinite.\n\nDerivatives:\nWhere no two singular values are equal, or what is computed of them and of their vectors does not\ntell them apart. Vectors are determined up to a sign or phase; here their first large element is\npositive.\n\nExample:\n    >>> u, s, vt = mx.linalg.svd(mx.array([[0.0, 2.0], [3.0, 0.0]]))\n    >>> mx.round(s, 4)\n    array([3, 2], dtype=float32)" };
(metal::clear_cache) => { "\nExample:\n    >>> mx.metal.clear_cache()" };
(metal::device_info) => { "\nExample:\n    >>> isinstance(mx.metal.device_info(), dict)\n    True" };
(metal::get_active_memory) => { "\nExample:\n    >>> mx.metal.get_active_memory() >= 0\n    True" };
(metal::get_cache_memory) => { "\nExample:\n    >>> mx.metal.get_cache_memory() >= 0\n    True" };
(metal::get_peak_memory) => { "\nExample:\n    >>> mx.metal.get_peak_memory() >= 0\n    True" };
(metal::is_available) => { "\nExample:\n    >>> mx.metal.is_available() in (True, False)\n    True" };
(metal::reset_peak_memory) => { "\nExample:\n    >>> mx.metal.reset_peak_memory()" };
(metal::set_cache_limit) => { "\nExample:\n    >>> former = mx.metal.set_cache_limit(1 << 40)\n    >>> mx.metal.set_cache_limit(former) == 1 << 40\n    True" };
(metal::set_memory_limit) => { "\nExample:\n    >>> former = mx.metal.set_memory_limit(1 << 40)\n    >>> mx.metal.set_memory_limit(former) == 1 << 40\n    True" };
(metal::set_wired_limit) => { "\nExample:\n    >>> former = mx.metal.set_wired_limit(1 << 40)\n    >>> mx.metal.set_wired_limit(former) == 1 << 40\n    True" };
(metal::start_capture) => { "\nExample:\n    >>> mx.metal.start_capture('a.gputrace')\n    Traceback (most recent call last):\n    RuntimeError: metal.start_capture: captures are of Metal, and Cupola records none" };
(metal::stop_capture) => { "\nExample:\n    >>> mx.metal.stop_capture()\n    Traceback (most recent call last):\n    RuntimeError: metal.stop_capture: captures are of Metal, and Cupola records none" };
(random::bernoulli) => { "True with probability `p`.\n\nShapes:\n`p` broadcasts to `shape`.\n\nErrors:\nWhere `p` is an array of something else than floats, or does not broadcast.\n\nExample:\n    >>> mx.random.bernoulli(0.5, (4,)).dtype\n    mlx.core.bool" };
(random::beta) => { "Numbers of the beta distribution: X/(X + Y) with X and Y of `gamma` distributions with `a` and `b`.\n\nShapes:\n`a` and `b` broadcast to `shape`.\n\nDtypes and derivatives:\nAs `gamma`.\n\nErrors:\nAs `gamma`.\n\nExample:\n    >>> x = mx.random.beta(0.5, 2.0, (100,), key=mx.random.key(0))\n    >>> (0 <= x.min().item(), x.max().item() <= 1)\n    (True, True)" };
(random::categorical) => { "Indices along `axis`, each drawn with the softmax of the logits as its probability.\n\nShapes:\nThe logits without `axis`; with `samples`, a last axis of so many draws is added.\n\nDtypes:\nGives `uint32`.\n\nExample:\n    >>> mx.random.categorical(mx.array([-mx.inf, 0.0, -mx.inf]))\n    array(1, dtype=uint32)" };
(random::choice) => { "\nExample:\n    >>> x = mx.random.choice(4, (100,), key=mx.random.key(0))\n    >>> (0 <= x.min().item(), x.max().item() < 4)\n    (True, True)\n    >>> mx.sort(mx.random.choice(mx.array([2, 4, 8]), (3,), replace=False))\n    array([2, 4, 8], dtype=int32)" };
(random::dirichlet) => { "Vectors of the Dirichlet distribution: positive numbers whose sum is 1.\n\nShapes:\n`alpha` has the parameters along its last axis; its other axes broadcast to `shape`, which that axis follows.\n\nDtypes and derivatives:\nAs `gamma`.\n\nErrors:\nWhere `alpha` has no axis, and as `gamma`.\n\nExample:\n    >>> mx.random.dirichlet(mx.array([1.0, 2.0, 3.0]), (5,)).shape\n    (5, 3)" };
(random::exponential) => { "Numbers of the exponential distribution of mean 1: −ln(1 − u) with u even over [0, 1).\n\nErrors:\nWhere `dtype` is not a float.\n\nExample:\n    >>> mx.random.exponential((100,), scale=2.0).min().item() >= 0\n    True" };
(random::gamma) => { "Numbers of the gamma distribution with the shape parameter `a` and scale 1.\n\nShapes:\n`a` broadcasts to `shape`.\n\nDtypes:\nHalf types are drawn in `float32`. Of an array's negative parameters the numbers are NaN.\n\nDerivatives:\nBy the parameter: that of the quantile that a number is, at its probability (M. Figurnov, S. Mohamed, A. Mnih,\n*Implicit reparameterization gradients*, 2018). It is 0 where there is no distribution.\n\nErrors:\nWhere `dtype` is not a float, and for a plain number that is not positive.\n\nExample:\n    >>> mx.random.gamma(2.5, (100,)).min().item() > 0\n    True" };
(random::geometric) => { "How many trials it takes until one succeeds that does so with probability `p`: numbers of the geometric\ndistribution, from 1 on.\n\nShapes:\n`p` broadcasts to `shape`.\n\nDtypes:\nThey are drawn in `float32`. Where an array's probability is not within (0, 1] the number is −1.\n\nErrors:\nWhere `dtype` is not an integer type, and for a plain number that is not within (0, 1].\n\nExample:\n    >>> mx.random.geometric(0.5, (100,)).min().item() >= 1\n    True" };
(random::gumbel) => { "Numbers of the standard Gumbel distribution, −ln(−ln u) with u even over [0, 1).\n\nExample:\n    >>> mx.random.gumbel((2, 3)).shape\n    (2, 3)" };
(random::key) => { "\nExample:\n    >>> mx.random.key(0)\n    array([0, 0], dtype=uint32)" };
(random::laplace) => { "Numbers of the Laplace distribution of mean 0 and scale 1: sign(u)·ln(1 − |u|) with u even over\n(−1, 1).\n\nExample:\n    >>> mx.random.laplace((2, 3)).shape\n    (2, 3)" };
(random::multivariate_normal) => { "Vectors of normal numbers with these means and covariances: the product of independent numbers with the symmetric\nroot of the covariances, and the means. The covariances are evaluated.\n\nShapes:\nMeans `[.., n]` and covariances `[.., n, n]` give `[.., n]`: the leading axes broadcast, also to those of `shape`, which\nhas none for n.\n\nDtypes:\nGives `float32`.\n\nDerivatives:\nBy the means, and by the covariances those of their roots: 0 along what is 0 in both.\n\nErrors:\nWhere the means have no axis, the covariances are no square matrices of as many rows, not symmetric or not positive\nsemidefinite, the shapes do not broadcast, and under `compile` and `vmap` of the covariances, where there are no\nvalues.\n\nExample:\n    >>> mean, cov = mx.array([1.0, 2.0]), mx.array([[2.0, 0.5], [0.5, 1.0]])\n    >>> mx.random.multivariate_normal(mean, cov, (100,)).shape\n    (100, 2)" };
(random::normal) => { "Normal numbers of mean 0 and variance 1: √2·erfinv(u) with u even over (−1, 1).\n\nMultiply and add for others. Of complex numbers the parts have variance ½.\n\nErrors:\nWhere `dtype` is neither float nor complex.\n\nExample:\n    >>> mx.random.normal((2, 3), loc=1.0, scale=0.5).shape\n    (2, 3)" };
(random::permutation) => { "The integers below `count` in random order, as `uint32`.\n\nExample:\n    >>> mx.sort(mx.random.permutation(4))\n    array([0, 1, 2, 3], dtype=uint32)" };
(random::poisson) => { "How many events come in a time in which `rate` are expected: numbers of the Poisson distribution.\n\nShapes:\n`rate` broadcasts to `shape`.\n\nDtypes:\nThey are drawn in `float32`. Where an array's rate is negative or NaN the number is −1.\n\nErrors:\nWhere `dtype` is not an integer type, and for a plain number that is negative or not finite.\n\nExample:\n    >>> x = mx.random.poisson(3.0, (100,), key=mx.random.key(0))\n    >>> (0 <= x.min().item(), x.max().item() < 40)\n    (True, True)" };
(random::randint) => { "Integers in [low, high).\n\nDtypes:\nThey are drawn as `float32`, as in MLX: of more than 2²⁴ integers not every one can come up. Fewer that `float32` does\nnot hold are drawn of 64 bits, where MLX gives few of them or one.\n\nErrors:\nWhere `dtype` is not an integer type, or there is nothing between `low` and `high`.\n\nExample:\n    >>> x = mx.random.randint(0, 10, (100,))\n    >>> x.dtype, (x >= 0).all().item(), (x < 10).all().item()\n    (mlx.core.int32, True, True)" };
(random::seed) => { "\nExample:\n    >>> mx.random.seed(7)\n    >>> first = mx.random.uniform()\n    >>> mx.random.seed(7)\n    >>> mx.array_equal(first, mx.random.uniform())\n    array(True, dtype=bool)" };
(random::split) => { "`count` keys made of one, as `uint32[count, 2]`.\n\nExample:\n    >>> one, other = mx.random.split(mx.random.key(0))\n    >>> one.shape\n    (2,)" };
(random::truncated_normal) => { "Normal numbers of mean 0 and variance 1 that are within [lower, upper].\n\nShapes:\n`lower` and `upper` broadcast to `shape`.\n\nExample:\n    >>> x = mx.random.truncated_normal(-1.0, 1.0, (100,))\n    >>> (mx.abs(x) <= 1).all().item()\n    True" };
(random::uniform) => { "Numbers spread evenly over [low, high).\n\nShapes:\n`low` and `high` broadcast to `shape`.\n\nErrors:\nWhere `dtype` is not a float.\n\nExample:\n    >>> x = mx.random.uniform(2.0, 3.0, (100,))\n    >>> (x >= 2).all().item(), (x < 3).all().item()\n    (True, True)" };
(_amp::Policy) => { "Which dtype each operation computes in.\n\nExample:\n    >>> policy = mx._amp.Policy(mx.bfloat16).changed(\"tanh\", \"float32\")\n    >>> policy.dtype, \"tanh\" in policy.ops(\"float32\")\n    (mlx.core.bfloat16, True)" };
(_amp::Scope) => { "A context in which operations are recorded as a policy says, or as they are written.\n\nExample:\n    >>> with mx._amp.Scope(mx._amp.Policy(mx.bfloat16)):\n    ...     print((mx.ones((2, 2)) @ mx.ones((2, 2))).dtype)\n    mlx.core.bfloat16" };
(_amp::_Tuned) => { "" };
(_coreml::Model) => { "" };
(_data::ImageDataset) => { "\nExample:\n    >>> train, test = data.digits(train=4, test=2)\n    >>> len(train), len(test), len(train.classes)\n    (4, 2, 10)" };
(_data::_Loader) => { "" };
(_data::_Epoch) => { "" };
(_nn::Item) => { "The attribute of a class of modules that is an item of each instance. Python finds it as it finds methods, where\n``__getattr__`` is called after an exception. An ordinary attribute of an instance comes first, and where there is no\nitem what other classes have under this name.\n\nExample:\n    >>> class Named(dict):\n    ...     weight = mx._nn.Item(\"weight\")\n    >>> Named(weight=3).weight\n    3\n    >>> hasattr(Named(), \"weight\")\n    False" };
(_onnx::Model) => { "" };
(_profiler::Profile) => { "What was recorded.\n\nExample:\n    >>> mx._profiler.start()\n    >>> mx.eval(mx.exp(mx.ones(3)))\n    >>> profile = mx._profiler.stop()\n    >>> \"map\" in profile.table(\"op\"), \"traceEvents\" in profile.to_json()\n    (True, True)" };
(_train::_Watcher) => { "" };
(_train::_Accumulator) => { "" };
(ArrayAt) => { "\nExample:\n    >>> mx.zeros(3).at[mx.array([0, 0, 2])].add(1.0)\n    array([2, 0, 1], dtype=float32)" };
(array) => { "\nExample:\n    >>> x = mx.array([[1, 2], [3, 4]])\n    >>> x[0] + x.T\n    array([[2, 5],\n           [3, 6]], dtype=int32)\n    >>> x.dtype, x.shape\n    (mlx.core.int32, (2, 2))" };
(ArrayIterator) => { "\nExample:\n    >>> [row.tolist() for row in mx.array([[1, 2], [3, 4]])]\n    [[1, 2], [3, 4]]" };
(DeviceType) => { "\nExample:\n    >>> mx.cpu\n    DeviceType.cpu" };
(Device) => { "\nExample:\n    >>> mx.Device(mx.cpu)\n    Device(cpu, 0)" };
(Stream) => { "\nExample:\n    >>> mx.default_stream(mx.cpu).device == mx.Device(mx.cpu)\n    True" };
(ThreadLocalStream) => { "\nExample:\n    >>> mx.new_thread_local_stream(mx.cpu)\n    ThreadLocalStream(Device(cpu, 0))" };
(StreamContext) => { "\nExample:\n    >>> with mx.StreamContext(mx.cpu):\n    ...     x = mx.ones(2)\n    >>> x\n    array([1, 1], dtype=float32)" };
(distributed::Group) => { "\nExample:\n    >>> mx.distributed.init().rank()\n    0" };
(Dtype) => { "\nExample:\n    >>> mx.float16.size, mx.array([1.0]).dtype == mx.float32\n    (2, True)" };
(DtypeCategory) => { "\nExample:\n    >>> mx.issubdtype(mx.int8, mx.integer)\n    True" };
(finfo) => { "\nExample:\n    >>> mx.finfo(mx.float16).max\n    65504.0" };
(iinfo) => { "\nExample:\n    >>> mx.iinfo(mx.int8).max\n    127" };
(Event) => { "\nExample:\n    >>> start, end = mx.Event(enable_timing=True), mx.Event(enable_timing=True)\n    >>> start.record()\n    >>> mx.async_eval(mx.ones((64, 64)) @ mx.ones((64, 64)))\n    >>> end.record()\n    >>> start.elapsed_time(end) >= 0\n    True" };
(Explanation) => { "\nExample:\n    >>> plan = (mx.ones(4) + 1).explain()\n    >>> plan.bytes, plan.operations\n    (16, 4)" };
(_Imported) => { "" };
(FunctionExporter) => { "\nExample:\n    >>> hasattr(mx.FunctionExporter, \"close\")\n    True" };
(fast::Kernel) => { "\nExample:\n    >>> double = mx.fast.kernel('double', ['x'], ['y'], 'uint i = thread_position_in_grid.x; y[i] = 2 * x[i];')\n    >>> double.name, double.vjp\n    ('double', None)" };
(PrintOptions) => { "\nExample:\n    >>> mx.get_printoptions().precision\n    -1" };
(_PrintOptionsContext) => { "" };
(MemoryHistory) => { "\nExample:\n    >>> history = mx.record_memory_history()\n    >>> history.stop()\n    >>> history.to_svg()[:4]\n    '<svg'" };
(random::_RandomState) => { "" };
(_Loan) => { "" };
(ArrayLike) => { "\nExample:\n    >>> isinstance(mx.ones(1), mx.ArrayLike)\n    False" };
(_Compiled) => { "" };
(_Checkpointed) => { "" };
(custom_function) => { "\nExample:\n    >>> @mx.custom_function\n    ... def f(x):\n    ...     return x * 100\n    ...\n    >>> @f.vjp\n    ... def f_vjp(primals, cotangents, outputs):\n    ...     return cotangents\n    ...\n    >>> mx.grad(f)(mx.array(2.0)).item()\n    1.0" };
(_Differentiated) => { "" };
(_Jacobian) => { "" };
(_Linear) => { "" };
(_Batched) => { "" };
(array::cummax) => { "The largest element of an axis up to each, NaN from the first one on; `()` flattens first. Complex numbers are" };
(array::cummin) => { "The smallest element of an axis up to each, NaN from the first one on; `()` flattens first. Complex numbers are" };
(array::cumprod) => { "The products of the elements of an axis up to each; `()` flattens first." };
(array::cumsum) => { "The sums of the elements of an axis up to each; `()` flattens first." };
(array::logcumsumexp) => { "ln Σ eˣ of the elements of an axis up to each, without overflow; `()` flattens first." };
}
pub(crate) use docs;

/// Adds what the submodule `name` has; the module itself is the one without a name.
pub fn register(name: &str, m: &Bound<'_, PyModule>) -> PyResult<()> {
    match name {
        "" => {
            m.add_class::<crate::array::subscript::ArrayAt>()?;
            m.add_class::<crate::array::PyArray>()?;
            m.add_class::<crate::array::ArrayIterator>()?;
            m.add_class::<crate::device::DeviceType>()?;
            m.add_class::<crate::device::PyDevice>()?;
            m.add_class::<crate::device::PyStream>()?;
            m.add_class::<crate::device::ThreadLocalStream>()?;
            m.add_class::<crate::device::StreamContext>()?;
            m.add_class::<crate::dtype::Dtype>()?;
            m.add_class::<crate::dtype::DtypeCategory>()?;
            m.add_class::<crate::dtype::finfo>()?;
            m.add_class::<crate::dtype::iinfo>()?;
            m.add_class::<crate::event::Event>()?;
            m.add_class::<crate::explain::Explanation>()?;
            m.add_class::<crate::export::Imported>()?;
            m.add_class::<crate::export::FunctionExporter>()?;
            m.add_class::<crate::format::PrintOptions>()?;
            m.add_class::<crate::format::PrintOptionsContext>()?;
            m.add_class::<crate::memory::MemoryHistory>()?;
            m.add_class::<crate::read::lend::Loan>()?;
            m.add_class::<crate::read::ArrayLike>()?;
            m.add_class::<crate::transform::compile::Compiled>()?;
            m.add_class::<crate::transform::custom::Checkpointed>()?;
            m.add_class::<crate::transform::custom::custom_function>()?;
            m.add_class::<crate::transform::grad::Differentiated>()?;
            m.add_class::<crate::transform::jacobian::Jacobian>()?;
            m.add_class::<crate::transform::jacobian::Linear>()?;
            m.add_class::<crate::transform::vmap::BatchedFunction>()?;
            m.add_function(wrap_pyfunction!(crate::dtype::__array_namespace_info__, m)?)?;
            m.add_function(wrap_pyfunction!(crate::dtype::_dtype, m)?)?;
            m.add_function(wrap_pyfunction!(crate::array::_restore, m)?)?;
            m.add_function(wrap_pyfunction!(self::abs, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::image::adaptive_avg_pool, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::image::adaptive_max_pool, m)?)?;
            m.add_function(wrap_pyfunction!(self::add, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::special::addcdiv, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::special::addcmul, m)?)?;
            m.add_function(wrap_pyfunction!(self::addmm, m)?)?;
            m.add_function(wrap_pyfunction!(self::all, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::allclose, m)?)?;
            m.add_function(wrap_pyfunction!(self::any, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::arange, m)?)?;
            m.add_function(wrap_pyfunction!(self::arccos, m)?)?;
            m.add_function(wrap_pyfunction!(self::arccosh, m)?)?;
            m.add_function(wrap_pyfunction!(self::arcsin, m)?)?;
            m.add_function(wrap_pyfunction!(self::arcsinh, m)?)?;
            m.add_function(wrap_pyfunction!(self::arctan, m)?)?;
            m.add_function(wrap_pyfunction!(self::arctan2, m)?)?;
            m.add_function(wrap_pyfunction!(self::arctanh, m)?)?;
            m.add_function(wrap_pyfunction!(self::argmax, m)?)?;
            m.add_function(wrap_pyfunction!(self::argmin, m)?)?;
            m.add_function(wrap_pyfunction!(self::argpartition, m)?)?;
            m.add_function(wrap_pyfunction!(self::argsort, m)?)?;
            m.add_function(wrap_pyfunction!(self::argwhere, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::array_equal, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::as_strided, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::asarray, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::control::associative_scan, m)?)?;
            m.add_function(wrap_pyfunction!(self::astype, m)?)?;
            m.add_function(wrap_pyfunction!(crate::evaluate::async_eval, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::atleast_1d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::atleast_2d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::atleast_3d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::bartlett, m)?)?;
            m.add_function(wrap_pyfunction!(self::bincount, m)?)?;
            m.add_function(wrap_pyfunction!(self::bitwise_and, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::bitwise_invert, m)?)?;
            m.add_function(wrap_pyfunction!(self::bitwise_or, m)?)?;
            m.add_function(wrap_pyfunction!(self::bitwise_xor, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::blackman, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::block_masked_mm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::broadcast_arrays, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::broadcast_shapes, m)?)?;
            m.add_function(wrap_pyfunction!(self::broadcast_to, m)?)?;
            m.add_function(wrap_pyfunction!(self::bucketize, m)?)?;
            m.add_function(wrap_pyfunction!(crate::dtype::can_cast, m)?)?;
            m.add_function(wrap_pyfunction!(self::cdist, m)?)?;
            m.add_function(wrap_pyfunction!(self::ceil, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::custom::checkpoint, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::clear_cache, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::clear_streams, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::clip, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::compile::compile, m)?)?;
            m.add_function(wrap_pyfunction!(self::concatenate, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::control::cond, m)?)?;
            m.add_function(wrap_pyfunction!(self::conjugate, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::contiguous, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::conv::conv1d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::conv::conv2d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::conv::conv3d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::conv::conv_general, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::conv::conv_transpose1d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::conv::conv_transpose2d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::conv::conv_transpose3d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::conv::convolve, m)?)?;
            m.add_function(wrap_pyfunction!(self::copysign, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::statistics::corrcoef, m)?)?;
            m.add_function(wrap_pyfunction!(self::cos, m)?)?;
            m.add_function(wrap_pyfunction!(self::cosh, m)?)?;
            m.add_function(wrap_pyfunction!(self::count_nonzero, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::statistics::cov, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::scan::cummax, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::scan::cummin, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::scan::cumprod, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::scan::cumsum, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::default_device, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::default_stream, m)?)?;
            m.add_function(wrap_pyfunction!(self::degrees, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::depends, m)?)?;
            m.add_function(wrap_pyfunction!(crate::quantize::dequantize, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::device_count, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::device_info, m)?)?;
            m.add_function(wrap_pyfunction!(self::diag, m)?)?;
            m.add_function(wrap_pyfunction!(self::diagonal, m)?)?;
            m.add_function(wrap_pyfunction!(self::diff, m)?)?;
            m.add_function(wrap_pyfunction!(self::digamma, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::compile::disable_compile, m)?)?;
            m.add_function(wrap_pyfunction!(self::divide, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::divmod, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::driver_allocated, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::einsum, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::einsum_path, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::empty_cache, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::compile::enable_compile, m)?)?;
            m.add_function(wrap_pyfunction!(self::equal, m)?)?;
            m.add_function(wrap_pyfunction!(self::erf, m)?)?;
            m.add_function(wrap_pyfunction!(self::erfc, m)?)?;
            m.add_function(wrap_pyfunction!(self::erfinv, m)?)?;
            m.add_function(wrap_pyfunction!(crate::evaluate::eval, m)?)?;
            m.add_function(wrap_pyfunction!(self::exp, m)?)?;
            m.add_function(wrap_pyfunction!(self::expand_dims, m)?)?;
            m.add_function(wrap_pyfunction!(crate::explain::explain, m)?)?;
            m.add_function(wrap_pyfunction!(self::expm1, m)?)?;
            m.add_function(wrap_pyfunction!(crate::export::export_function, m)?)?;
            m.add_function(wrap_pyfunction!(crate::export::export_to_dot, m)?)?;
            m.add_function(wrap_pyfunction!(crate::export::exporter, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::eye, m)?)?;
            m.add_function(wrap_pyfunction!(self::flatten, m)?)?;
            m.add_function(wrap_pyfunction!(self::flip, m)?)?;
            m.add_function(wrap_pyfunction!(self::floor, m)?)?;
            m.add_function(wrap_pyfunction!(self::floor_divide, m)?)?;
            m.add_function(wrap_pyfunction!(self::fmax, m)?)?;
            m.add_function(wrap_pyfunction!(self::fmin, m)?)?;
            m.add_function(wrap_pyfunction!(self::fmod, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::image::fold, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::control::fori_loop, m)?)?;
            m.add_function(wrap_pyfunction!(self::frac, m)?)?;
            m.add_function(wrap_pyfunction!(self::frexp, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::from_dlpack, m)?)?;
            m.add_function(wrap_pyfunction!(self::from_fp8, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::full, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::full_like, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::gather_mm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::quantize::gather_qmm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::quantize::gather_qqmm, m)?)?;
            m.add_function(wrap_pyfunction!(self::geomspace, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::get_active_memory, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::get_cache_memory, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::get_hard_memory_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::get_memory_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::get_peak_memory, m)?)?;
            m.add_function(wrap_pyfunction!(crate::format::get_printoptions, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::grad::grad, m)?)?;
            m.add_function(wrap_pyfunction!(self::greater, m)?)?;
            m.add_function(wrap_pyfunction!(self::greater_equal, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::image::grid_sample, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::hadamard_transform, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::hamming, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::hanning, m)?)?;
            m.add_function(wrap_pyfunction!(self::heaviside, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::jacobian::hessian, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::statistics::histogram, m)?)?;
            m.add_function(wrap_pyfunction!(self::hypot, m)?)?;
            m.add_function(wrap_pyfunction!(self::i0, m)?)?;
            m.add_function(wrap_pyfunction!(self::identity, m)?)?;
            m.add_function(wrap_pyfunction!(self::imag, m)?)?;
            m.add_function(wrap_pyfunction!(crate::export::import_function, m)?)?;
            m.add_function(wrap_pyfunction!(self::index_fill, m)?)?;
            m.add_function(wrap_pyfunction!(self::inner, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::statistics::interp, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::image::interpolate, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::is_available, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::isclose, m)?)?;
            m.add_function(wrap_pyfunction!(crate::dtype::isdtype, m)?)?;
            m.add_function(wrap_pyfunction!(self::isfinite, m)?)?;
            m.add_function(wrap_pyfunction!(self::isinf, m)?)?;
            m.add_function(wrap_pyfunction!(self::isnan, m)?)?;
            m.add_function(wrap_pyfunction!(self::isneginf, m)?)?;
            m.add_function(wrap_pyfunction!(self::isposinf, m)?)?;
            m.add_function(wrap_pyfunction!(crate::dtype::issubdtype, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::jacobian::jacfwd, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::jacobian::jacrev, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::grad::jvp, m)?)?;
            m.add_function(wrap_pyfunction!(self::kron, m)?)?;
            m.add_function(wrap_pyfunction!(self::ldexp, m)?)?;
            m.add_function(wrap_pyfunction!(self::left_shift, m)?)?;
            m.add_function(wrap_pyfunction!(self::lerp, m)?)?;
            m.add_function(wrap_pyfunction!(self::less, m)?)?;
            m.add_function(wrap_pyfunction!(self::less_equal, m)?)?;
            m.add_function(wrap_pyfunction!(self::lgamma, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::jacobian::linearize, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::linspace, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::load, m)?)?;
            m.add_function(wrap_pyfunction!(self::log, m)?)?;
            m.add_function(wrap_pyfunction!(self::log10, m)?)?;
            m.add_function(wrap_pyfunction!(self::log1p, m)?)?;
            m.add_function(wrap_pyfunction!(self::log2, m)?)?;
            m.add_function(wrap_pyfunction!(self::logaddexp, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::scan::logcumsumexp, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::logical_and, m)?)?;
            m.add_function(wrap_pyfunction!(self::logical_not, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::logical_or, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::logical_xor, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::special::logit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::logspace, m)?)?;
            m.add_function(wrap_pyfunction!(self::logsumexp, m)?)?;
            m.add_function(wrap_pyfunction!(self::masked_fill, m)?)?;
            m.add_function(wrap_pyfunction!(self::masked_select, m)?)?;
            m.add_function(wrap_pyfunction!(self::matmul, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::matrix_norm, m)?)?;
            m.add_function(wrap_pyfunction!(self::matrix_transpose, m)?)?;
            m.add_function(wrap_pyfunction!(self::max, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::image::max_pool_with_indices, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::image::max_unpool, m)?)?;
            m.add_function(wrap_pyfunction!(self::maximum, m)?)?;
            m.add_function(wrap_pyfunction!(self::mean, m)?)?;
            m.add_function(wrap_pyfunction!(self::median, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::memory_stats, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::meshgrid, m)?)?;
            m.add_function(wrap_pyfunction!(self::min, m)?)?;
            m.add_function(wrap_pyfunction!(self::minimum, m)?)?;
            m.add_function(wrap_pyfunction!(self::minmax, m)?)?;
            m.add_function(wrap_pyfunction!(self::moveaxis, m)?)?;
            m.add_function(wrap_pyfunction!(self::multiply, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::nan_to_num, m)?)?;
            m.add_function(wrap_pyfunction!(self::nanmax, m)?)?;
            m.add_function(wrap_pyfunction!(self::nanmean, m)?)?;
            m.add_function(wrap_pyfunction!(self::nanmedian, m)?)?;
            m.add_function(wrap_pyfunction!(self::nanmin, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::statistics::nanpercentile, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::statistics::nanquantile, m)?)?;
            m.add_function(wrap_pyfunction!(self::nansum, m)?)?;
            m.add_function(wrap_pyfunction!(self::negative, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::new_stream, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::new_thread_local_stream, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::new_thread_unsafe_stream, m)?)?;
            m.add_function(wrap_pyfunction!(self::nextafter, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::mask::nonzero, m)?)?;
            m.add_function(wrap_pyfunction!(self::not_equal, m)?)?;
            m.add_function(wrap_pyfunction!(self::ones, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::ones_like, m)?)?;
            m.add_function(wrap_pyfunction!(self::outer, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::pad, m)?)?;
            m.add_function(wrap_pyfunction!(self::partition, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::statistics::percentile, m)?)?;
            m.add_function(wrap_pyfunction!(self::pixel_shuffle, m)?)?;
            m.add_function(wrap_pyfunction!(self::pixel_unshuffle, m)?)?;
            m.add_function(wrap_pyfunction!(self::polyval, m)?)?;
            m.add_function(wrap_pyfunction!(self::positive, m)?)?;
            m.add_function(wrap_pyfunction!(self::power, m)?)?;
            m.add_function(wrap_pyfunction!(crate::format::printoptions, m)?)?;
            m.add_function(wrap_pyfunction!(self::prod, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::put_along_axis, m)?)?;
            m.add_function(wrap_pyfunction!(crate::quantize::qqmm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::statistics::quantile, m)?)?;
            m.add_function(wrap_pyfunction!(crate::quantize::quantize, m)?)?;
            m.add_function(wrap_pyfunction!(crate::quantize::quantized_matmul, m)?)?;
            m.add_function(wrap_pyfunction!(self::radians, m)?)?;
            m.add_function(wrap_pyfunction!(self::real, m)?)?;
            m.add_function(wrap_pyfunction!(self::reciprocal, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::recommended_max, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::record_memory_history, m)?)?;
            m.add_function(wrap_pyfunction!(self::remainder, m)?)?;
            m.add_function(wrap_pyfunction!(self::repeat, m)?)?;
            m.add_function(wrap_pyfunction!(self::repeat_interleave, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::reset_peak_memory, m)?)?;
            m.add_function(wrap_pyfunction!(self::reshape, m)?)?;
            m.add_function(wrap_pyfunction!(crate::dtype::result_type, m)?)?;
            m.add_function(wrap_pyfunction!(self::right_shift, m)?)?;
            m.add_function(wrap_pyfunction!(self::roll, m)?)?;
            m.add_function(wrap_pyfunction!(self::round, m)?)?;
            m.add_function(wrap_pyfunction!(self::rsqrt, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::save, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::save_gguf, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::save_safetensors, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::savez, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::savez_compressed, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::control::scan, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::search::searchsorted, m)?)?;
            m.add_function(wrap_pyfunction!(self::segment_max, m)?)?;
            m.add_function(wrap_pyfunction!(self::segment_mean, m)?)?;
            m.add_function(wrap_pyfunction!(self::segment_min, m)?)?;
            m.add_function(wrap_pyfunction!(self::segment_sum, m)?)?;
            m.add_function(wrap_pyfunction!(self::segmented_mm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::set_cache_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::set_default_device, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::set_default_stream, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::set_hard_memory_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::set_memory_fraction, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::set_memory_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::set_plan_cache_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::format::set_printoptions, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::set_wired_limit, m)?)?;
            m.add_function(wrap_pyfunction!(self::sigmoid, m)?)?;
            m.add_function(wrap_pyfunction!(self::sign, m)?)?;
            m.add_function(wrap_pyfunction!(self::signbit, m)?)?;
            m.add_function(wrap_pyfunction!(self::sin, m)?)?;
            m.add_function(wrap_pyfunction!(self::sinc, m)?)?;
            m.add_function(wrap_pyfunction!(self::sinh, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::slice, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::slice_update, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::softmax, m)?)?;
            m.add_function(wrap_pyfunction!(self::sort, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::split, m)?)?;
            m.add_function(wrap_pyfunction!(self::sqrt, m)?)?;
            m.add_function(wrap_pyfunction!(self::square, m)?)?;
            m.add_function(wrap_pyfunction!(self::squeeze, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::stack, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::spread::std, m)?)?;
            m.add_function(wrap_pyfunction!(self::stop_gradient, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::stream, m)?)?;
            m.add_function(wrap_pyfunction!(self::subtract, m)?)?;
            m.add_function(wrap_pyfunction!(self::sum, m)?)?;
            m.add_function(wrap_pyfunction!(self::swapaxes, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::control::switch, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::synchronize, m)?)?;
            m.add_function(wrap_pyfunction!(self::take, m)?)?;
            m.add_function(wrap_pyfunction!(self::take_along_axis, m)?)?;
            m.add_function(wrap_pyfunction!(self::tan, m)?)?;
            m.add_function(wrap_pyfunction!(self::tanh, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::tensordot, m)?)?;
            m.add_function(wrap_pyfunction!(self::tile, m)?)?;
            m.add_function(wrap_pyfunction!(self::to_fp8, m)?)?;
            m.add_function(wrap_pyfunction!(self::topk, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::trace, m)?)?;
            m.add_function(wrap_pyfunction!(self::transpose, m)?)?;
            m.add_function(wrap_pyfunction!(self::trapezoid, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::tri, m)?)?;
            m.add_function(wrap_pyfunction!(self::tril, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::mask::tril_indices, m)?)?;
            m.add_function(wrap_pyfunction!(self::triu, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::mask::triu_indices, m)?)?;
            m.add_function(wrap_pyfunction!(self::trunc, m)?)?;
            m.add_function(wrap_pyfunction!(self::unflatten, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::image::unfold, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::search::unique, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::unstack, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::grad::value_and_grad, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::spread::var, m)?)?;
            m.add_function(wrap_pyfunction!(self::vecdot, m)?)?;
            m.add_function(wrap_pyfunction!(self::view, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::grad::vjp, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::vmap::vmap, m)?)?;
            m.add_function(wrap_pyfunction!(self::where_, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::control::while_loop, m)?)?;
            m.add_function(wrap_pyfunction!(self::xlogy, m)?)?;
            m.add_function(wrap_pyfunction!(self::zeros, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::zeros_like, m)?)?;
            m.add("acos", m.getattr("arccos")?)?;
            m.add("acosh", m.getattr("arccosh")?)?;
            m.add("asin", m.getattr("arcsin")?)?;
            m.add("asinh", m.getattr("arcsinh")?)?;
            m.add("atan", m.getattr("arctan")?)?;
            m.add("atan2", m.getattr("arctan2")?)?;
            m.add("atanh", m.getattr("arctanh")?)?;
            m.add("bitwise_left_shift", m.getattr("left_shift")?)?;
            m.add("bitwise_right_shift", m.getattr("right_shift")?)?;
            m.add("concat", m.getattr("concatenate")?)?;
            m.add("conj", m.getattr("conjugate")?)?;
            m.add("cumulative_prod", m.getattr("cumprod")?)?;
            m.add("cumulative_sum", m.getattr("cumsum")?)?;
            m.add("empty", m.getattr("zeros")?)?;
            m.add("empty_like", m.getattr("zeros_like")?)?;
            m.add("permute_dims", m.getattr("transpose")?)?;
            m.add("pow", m.getattr("power")?)?;
        }
        "_amp" => {
            m.add_class::<crate::_amp::Policy>()?;
            m.add_class::<crate::_amp::Scope>()?;
            m.add_class::<crate::_amp::Tuned>()?;
            m.add_function(wrap_pyfunction!(crate::_amp::global_policy, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_amp::operand, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_amp::policy, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_amp::renew_traces, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_amp::result, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_amp::set_global_policy, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_amp::tune, m)?)?;
        }
        "_coreml" => {
            m.add_class::<crate::_coreml::CoremlModel>()?;
            m.add_function(wrap_pyfunction!(crate::_coreml::classes, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_coreml::constants, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_coreml::function, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_coreml::functions, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_coreml::load, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_coreml::operators, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_coreml::outputs, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_coreml::ports, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_coreml::run, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_coreml::warnings, m)?)?;
        }
        "_data" => {
            m.add_class::<crate::_data::ImageDataset>()?;
            m.add_class::<crate::_data::Loader>()?;
            m.add_class::<crate::_data::Epoch>()?;
            m.add_function(wrap_pyfunction!(crate::_data::cifar10, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::cifar100, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::digits, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::fashion_mnist, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::mnist, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::normalize, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::random_crop, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::random_flip, m)?)?;
        }
        "_graph" => {
            m.add_function(wrap_pyfunction!(crate::_graph::save, m)?)?;
        }
        "_linalg" => {
            m.add_function(wrap_pyfunction!(crate::_linalg::cholesky, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_linalg::det, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_linalg::inv, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_linalg::qr, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_linalg::slogdet, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_linalg::solve, m)?)?;
        }
        "_nn" => {
            m.add_class::<crate::_nn::Item>()?;
            m.add_function(wrap_pyfunction!(crate::_nn::adam, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::avg_pool, m)?)?;
            m.add_function(wrap_pyfunction!(self::batch_norm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::celu, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::elu, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::gelu, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::gelu_approx, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::glu, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::hard_shrink, m)?)?;
            m.add_function(wrap_pyfunction!(self::hard_sigmoid, m)?)?;
            m.add_function(wrap_pyfunction!(self::hard_swish, m)?)?;
            m.add_function(wrap_pyfunction!(self::hard_tanh, m)?)?;
            m.add_function(wrap_pyfunction!(self::layer_norm, m)?)?;
            m.add_function(wrap_pyfunction!(self::leaky_relu, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::log_sigmoid, m)?)?;
            m.add_function(wrap_pyfunction!(self::log_softmax, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::max_pool, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::mish, m)?)?;
            m.add_function(wrap_pyfunction!(self::norm, m)?)?;
            m.add_function(wrap_pyfunction!(self::normalize, m)?)?;
            m.add_function(wrap_pyfunction!(self::one_hot, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::parameters, m)?)?;
            m.add_function(wrap_pyfunction!(self::prelu, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::relu, m)?)?;
            m.add_function(wrap_pyfunction!(self::relu6, m)?)?;
            m.add_function(wrap_pyfunction!(self::rms_norm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::running_mean, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::selu, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::sgd, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::silu, m)?)?;
            m.add_function(wrap_pyfunction!(self::softmin, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::softplus, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::softshrink, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::softsign, m)?)?;
            m.add_function(wrap_pyfunction!(self::step, m)?)?;
            m.add_function(wrap_pyfunction!(self::tanh_shrink, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::tree_map, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::update, m)?)?;
        }
        "_onnx" => {
            m.add_class::<crate::_onnx::OnnxModel>()?;
            m.add_function(wrap_pyfunction!(crate::_onnx::export, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_onnx::initializers, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_onnx::load, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_onnx::operators, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_onnx::ports, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_onnx::run, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_onnx::write, m)?)?;
        }
        "_profiler" => {
            m.add_class::<crate::_profiler::Profile>()?;
            m.add_function(wrap_pyfunction!(crate::_profiler::check_file, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_profiler::finish, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_profiler::is_running, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_profiler::mark, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_profiler::start, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_profiler::stop, m)?)?;
        }
        "_suite" => {
            m.add_function(wrap_pyfunction!(crate::_suite::samples, m)?)?;
        }
        "_train" => {
            m.add_class::<crate::_train::Watcher>()?;
            m.add_class::<crate::_train::Accumulator>()?;
            m.add_function(wrap_pyfunction!(crate::_train::early_stopping, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_train::keep_best, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_train::metrics_file, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_train::report, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_train::tensor_board, m)?)?;
        }
        "cuda" => {
            m.add_function(wrap_pyfunction!(crate::cuda::is_available, m)?)?;
        }
        "distributed" => {
            m.add_class::<crate::distributed::Group>()?;
            m.add_function(wrap_pyfunction!(crate::distributed::all_gather, m)?)?;
            m.add_function(wrap_pyfunction!(crate::distributed::all_max, m)?)?;
            m.add_function(wrap_pyfunction!(crate::distributed::all_min, m)?)?;
            m.add_function(wrap_pyfunction!(crate::distributed::all_sum, m)?)?;
            m.add_function(wrap_pyfunction!(crate::distributed::init, m)?)?;
            m.add_function(wrap_pyfunction!(crate::distributed::is_available, m)?)?;
            m.add_function(wrap_pyfunction!(crate::distributed::recv, m)?)?;
            m.add_function(wrap_pyfunction!(crate::distributed::recv_like, m)?)?;
            m.add_function(wrap_pyfunction!(crate::distributed::send, m)?)?;
            m.add_function(wrap_pyfunction!(crate::distributed::sum_scatter, m)?)?;
        }
        "fast" => {
            m.add_class::<crate::fast::kernel::CustomKernel>()?;
            m.add_function(wrap_pyfunction!(crate::fast::cross_entropy, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::kernel::cuda_kernel, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::group_norm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::kernel::kernel, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::layer_norm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::kernel::metal_kernel, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::rms_norm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::rope, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::scaled_dot_product_attention, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::kernel::wgsl_kernel, m)?)?;
        }
        "fft" => {
            m.add_function(wrap_pyfunction!(crate::fft::fft, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::fft2, m)?)?;
            m.add_function(wrap_pyfunction!(self::fft_fftfreq, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::fftn, m)?)?;
            m.add_function(wrap_pyfunction!(self::fft_fftshift, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::hfft, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::ifft, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::ifft2, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::ifftn, m)?)?;
            m.add_function(wrap_pyfunction!(self::fft_ifftshift, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::ihfft, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::irfft, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::irfft2, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::irfftn, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::istft, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::rfft, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::rfft2, m)?)?;
            m.add_function(wrap_pyfunction!(self::fft_rfftfreq, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::rfftn, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fft::stft, m)?)?;
        }
        "linalg" => {
            m.add_function(wrap_pyfunction!(self::linalg_cholesky, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_cholesky_inv, m)?)?;
            m.add_function(wrap_pyfunction!(crate::linalg::cross, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_det, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_eig, m)?)?;
            m.add_function(wrap_pyfunction!(crate::linalg::eigh, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_eigvals, m)?)?;
            m.add_function(wrap_pyfunction!(crate::linalg::eigvalsh, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_inv, m)?)?;
            m.add_function(wrap_pyfunction!(crate::linalg::lstsq, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_lu, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_lu_factor, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_matrix_power, m)?)?;
            m.add_function(wrap_pyfunction!(crate::linalg::matrix_rank, m)?)?;
            m.add_function(wrap_pyfunction!(crate::linalg::norm, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_pinv, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_qr, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_slogdet, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_solve, m)?)?;
            m.add_function(wrap_pyfunction!(crate::linalg::solve_triangular, m)?)?;
            m.add_function(wrap_pyfunction!(crate::linalg::svd, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_svdvals, m)?)?;
            m.add_function(wrap_pyfunction!(self::linalg_tri_inv, m)?)?;
        }
        "metal" => {
            m.add_function(wrap_pyfunction!(crate::metal::clear_cache, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::device_info, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::get_active_memory, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::get_cache_memory, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::get_peak_memory, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::is_available, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::reset_peak_memory, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::set_cache_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::set_memory_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::set_wired_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::start_capture, m)?)?;
            m.add_function(wrap_pyfunction!(crate::metal::stop_capture, m)?)?;
        }
        "random" => {
            m.add_class::<crate::random::RandomState>()?;
            m.add_function(wrap_pyfunction!(crate::random::bernoulli, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::beta, m)?)?;
            m.add_function(wrap_pyfunction!(self::random_bits, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::categorical, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::choice, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::dirichlet, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::exponential, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::gamma, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::geometric, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::gumbel, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::key, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::laplace, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::multivariate_normal, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::normal, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::permutation, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::poisson, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::randint, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::seed, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::split, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::truncated_normal, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::uniform, m)?)?;
        }
        _ => {}
    }
    Ok(())
}

/// The submodules, with what they are.
pub const MODULES: &[(&str, &str)] = &[
    ("_amp", "What `cupola.amp` is made of."),
    ("_coreml", "What `cupola.coreml` is made of."),
    ("_data", "What `cupola.data` is made of."),
    ("_graph", "What `cupola.graph` is made of."),
    ("_linalg", "Linear algebra of complex matrices, too, which `linalg` refuses as MLX does."),
    ("_nn", "What `cupola.nn` calls and MLX's `core` does not have."),
    ("_onnx", "What `cupola.onnx` is made of."),
    ("_profiler", "What `cupola.profiler` is made of."),
    ("_suite", "The samples of the op suite, for comparisons with other packages."),
    ("_train", "What `cupola.train` is made of."),
    ("cuda", "GPUs through CUDA."),
    ("distributed", "Groups of processes: this one alone."),
    ("fast", "Layers' arithmetic, each as one function."),
    ("fft", "Fourier transforms."),
    ("linalg", "Linear algebra."),
    ("metal", "GPUs through Metal."),
    ("random", "Random numbers, from splittable keys."),
];

/// What the module itself is.
pub const DOC: &str = "Arrays, and the functions of them.";

/// What MLX has and is not here: submodule and name.
pub const MISSING: &[(&str, &str)] = &[
    ("", "get_array_buffer_size"),
    ("fast", "gated_delta_update"),
    ("fast", "precompiled_cuda_kernel"),
];
