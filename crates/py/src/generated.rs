//! Written by `cargo xtask gen` from `crates/core/src/ops`: change it there, or in the tables of
//! `xtask/src/bind`.

// Arguments have MLX's names.
#![allow(non_snake_case)]

use cupola::{DType, ops};
use pyo3::prelude::*;
use pyo3::types::PyModule;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::dtype::Dtype;
use crate::operand::{Arr, Arrays, Axis, Count, Opd, ShapeArg, SizesArg, give, meet};

/// |x|; of a complex number its modulus, as `float32`.
#[pyfunction(name = "abs")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn abs(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::abs(&a)))
}

/// a + b.
///
/// Shapes:
/// The operands broadcast.
///
/// Dtypes:
/// The operands promote; integers wrap; on bool, logical or.
#[pyfunction(name = "add")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn add(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::add(&a, &b)))
}

/// `alpha·a@b + beta·c`.
#[pyfunction(name = "addmm")]
#[pyo3(signature = (c, a, b, alpha = 1.0, beta = 1.0, *, stream = None), text_signature = "(c, a, b, alpha=1.0, beta=1.0, *, stream=None)")]
pub fn addmm(
    c: Arr,
    a: Arr,
    b: Arr,
    alpha: f64,
    beta: f64,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::addmm(&c, &a, &b, alpha, beta)))
}

/// Whether all elements over `axes` are true; numbers are true where they are not 0.
#[pyfunction(name = "all")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn all(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::all(&a, axis.0, keepdims)))
}

/// Whether any element over `axes` is true; numbers are true where they are not 0.
#[pyfunction(name = "any")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn any(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::any(&a, axis.0, keepdims)))
}

/// arccos x; NaN outside [−1, 1].
#[pyfunction(name = "arccos")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arccos(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arccos(&a)))
}

/// arcosh x; NaN below 1.
#[pyfunction(name = "arccosh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arccosh(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arccosh(&a)))
}

/// arcsin x; NaN outside [−1, 1].
#[pyfunction(name = "arcsin")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arcsin(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arcsin(&a)))
}

/// arsinh x.
#[pyfunction(name = "arcsinh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arcsinh(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arcsinh(&a)))
}

/// arctan x.
#[pyfunction(name = "arctan")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arctan(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arctan(&a)))
}

/// The angle of the point (b, a), in (−π, π].
#[pyfunction(name = "arctan2")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn arctan2(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::arctan2(&a, &b)))
}

/// artanh x; NaN outside [−1, 1].
#[pyfunction(name = "arctanh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn arctanh(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::arctanh(&a)))
}

/// The index of the first largest element along an axis, or of the flattened array for `()`.
///
/// Dtypes:
/// Gives `uint32`. The first NaN counts as the largest.
///
/// Errors:
/// Where the axis is empty, and for complex numbers.
#[pyfunction(name = "argmax")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn argmax(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::argmax(&a, axis.0, keepdims)))
}

/// The index of the first smallest element along an axis, or of the flattened array for `()`.
///
/// Dtypes:
/// Gives `uint32`. The first NaN counts as the smallest.
///
/// Errors:
/// As `argmax`.
#[pyfunction(name = "argmin")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn argmin(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::argmin(&a, axis.0, keepdims)))
}

/// The indices, as `uint32`, that `partition` an axis.
///
/// Errors:
/// As `partition`.
#[pyfunction(name = "argpartition")]
#[pyo3(signature = (a, kth, axis = Axis::one(-1), *, stream = None), text_signature = "(a, kth, axis=-1, *, stream=None)")]
pub fn argpartition(a: Arr, kth: isize, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::argpartition(&a, kth, axis.0)))
}

/// The indices, as `uint32`, that put an axis in ascending order; equal elements keep theirs.
#[pyfunction(name = "argsort")]
#[pyo3(signature = (a, axis = Axis::one(-1), *, stream = None), text_signature = "(a, axis=-1, *, stream=None)")]
pub fn argsort(a: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::argsort(&a, axis.0)))
}

/// Converts each element to `dtype`: to bool by ≠ 0, from float to integer towards zero and
/// saturating (NaN gives 0), between integers by wrapping, from complex by its real part.
#[pyfunction(name = "astype")]
#[pyo3(signature = (a, dtype, *, stream = None), text_signature = "(a, dtype, *, stream=None)")]
pub fn astype(a: Arr, dtype: Dtype, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::astype(&a, dtype.0)))
}

/// The Bartlett window of `size` points, a triangle: 1 − |t| for t from −1 to 1, as `float32`.
#[pyfunction(name = "bartlett")]
#[pyo3(signature = (M, *, stream = None), text_signature = "(M, *, stream=None)")]
pub fn bartlett(M: Count, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::bartlett(M.0)))
}

/// The bits set in both; on bool, logical and.
///
/// Errors:
/// Where the operands do not promote to an integer type or bool.
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
#[pyfunction(name = "bitwise_xor")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn bitwise_xor(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::bitwise_xor(&a, &b)))
}

/// The Blackman window of `size` points: 0.42 + 0.5·cos πt + 0.08·cos 2πt for t from −1 to 1, as
/// `float32`.
#[pyfunction(name = "blackman")]
#[pyo3(signature = (M, *, stream = None), text_signature = "(M, *, stream=None)")]
pub fn blackman(M: Count, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::blackman(M.0)))
}

/// Axes of size 1, and missing leading axes, repeated to `shape`.
#[pyfunction(name = "broadcast_to")]
#[pyo3(signature = (a, shape, *, stream = None), text_signature = "(a, shape, *, stream=None)")]
pub fn broadcast_to(a: Arr, shape: ShapeArg, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::broadcast_to(&a, shape.0)))
}

/// The smallest integer not below x, in x's dtype.
#[pyfunction(name = "ceil")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn ceil(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::ceil(&a)))
}

/// The arrays one after the other along an axis; `()` flattens them first.
///
/// Shapes:
/// All sizes but the axis' are equal.
///
/// Dtypes:
/// The arrays promote.
#[pyfunction(name = "concatenate")]
#[pyo3(signature = (arrays, axis = Axis::one(0), *, stream = None), text_signature = "(arrays, axis=0, *, stream=None)")]
pub fn concatenate(arrays: Arrays, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::concatenate(&arrays.refs(), axis.0)))
}

/// The complex conjugate; anything else as it is.
#[pyfunction(name = "conjugate")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn conjugate(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::conjugate(&a)))
}

/// cos x.
#[pyfunction(name = "cos")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn cos(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::cos(&a)))
}

/// cosh x.
#[pyfunction(name = "cosh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn cosh(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::cosh(&a)))
}

/// How many elements over `axes` are not 0, as `int32`.
#[pyfunction(name = "count_nonzero")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn count_nonzero(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::count_nonzero(&a, axis.0, keepdims)))
}

/// Radians as degrees.
#[pyfunction(name = "degrees")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn degrees(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::degrees(&a)))
}

/// A matrix with a vector on its diagonal, or the diagonal of a matrix; `offset` places above the
/// main one.
#[pyfunction(name = "diag")]
#[pyo3(signature = (a, k = 0, *, stream = None), text_signature = "(a, k=0, *, stream=None)")]
pub fn diag(a: Arr, k: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::diag(&a, k)))
}

/// The diagonal of two axes, `offset` places above the main one, as the last axis.
///
/// Errors:
/// Where there are no two such axes.
#[pyfunction(name = "diagonal")]
#[pyo3(signature = (a, offset = 0, axis1 = 0, axis2 = 1, stream = None), text_signature = "(a, offset=0, axis1=0, axis2=1, stream=None)")]
pub fn diagonal(
    a: Arr,
    offset: isize,
    axis1: isize,
    axis2: isize,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::diagonal(&a, offset, axis1, axis2)))
}

/// The differences of neighbours along an axis, taken `n` times.
///
/// Shapes:
/// The axis gets shorter by `n`, down to 0.
///
/// Dtypes:
/// Integers wrap; of bools it is whether they differ.
#[pyfunction(name = "diff")]
#[pyo3(signature = (a, n = Count(1), axis = -1, *, stream = None), text_signature = "(a, n=1, axis=-1, *, stream=None)")]
pub fn diff(a: Arr, n: Count, axis: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::diff(&a, n.0, axis)))
}

/// a/b.
///
/// Dtypes:
/// Integers and bool divide as `float32`.
#[pyfunction(name = "divide")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn divide(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::divide(&a, &b)))
}

/// Whether a = b; NaN equals nothing.
#[pyfunction(name = "equal")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn equal(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::equal(&a, &b)))
}

/// The error function, 2/√π ∫₀ˣ e^(−t²) dt.
#[pyfunction(name = "erf")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn erf(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::erf(&a)))
}

/// The inverse of the error function; ±∞ at ±1 and NaN beyond.
#[pyfunction(name = "erfinv")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn erfinv(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::erfinv(&a)))
}

/// eˣ.
#[pyfunction(name = "exp")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn exp(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::exp(&a)))
}

/// Axes of size 1 inserted, numbered as in the result.
#[pyfunction(name = "expand_dims")]
#[pyo3(signature = (a, axis, *, stream = None), text_signature = "(a, axis, *, stream=None)")]
pub fn expand_dims(a: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::expand_dims(&a, axis.0)))
}

/// eˣ − 1, accurate near 0.
#[pyfunction(name = "expm1")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn expm1(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::expm1(&a)))
}

/// Axes `start..=end` merged into one. Axes past either end mean that end.
///
/// Errors:
/// Where `end` comes before `start`.
#[pyfunction(name = "flatten")]
#[pyo3(signature = (a, start_axis = 0, end_axis = -1, *, stream = None), text_signature = "(a, start_axis=0, end_axis=-1, *, stream=None)")]
pub fn flatten(
    a: Arr,
    start_axis: isize,
    end_axis: isize,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::flatten(&a, start_axis, end_axis)))
}

/// The order reversed along axes; `()` for all.
#[pyfunction(name = "flip")]
#[pyo3(signature = (a, axis = Axis::all(), *, stream = None), text_signature = "(a, axis=None, *, stream=None)")]
pub fn flip(a: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::flip(&a, axis.0)))
}

/// The largest integer not above x, in x's dtype.
#[pyfunction(name = "floor")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn floor(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::floor(&a)))
}

/// ⌊a/b⌋.
///
/// Dtypes:
/// An integer divided by 0 gives 0. Does not take complex numbers.
#[pyfunction(name = "floor_divide")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn floor_divide(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::floor_divide(&a, &b)))
}

/// The numbers that `to_fp8` made, as floats of `dtype`.
///
/// Errors:
/// Where `x` is not `uint8`, or `dtype` not a float.
#[pyfunction(name = "from_fp8")]
#[pyo3(signature = (x, dtype = None, *, stream = None), text_signature = "(x, dtype=None, *, stream=None)")]
pub fn from_fp8(x: Arr, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::from_fp8(&x, dtype.map_or(DType::BF16, |d| d.0))))
}

/// Whether a > b.
///
/// Errors:
/// For complex numbers, which have no order.
#[pyfunction(name = "greater")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn greater(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::greater(&a, &b)))
}

/// Whether a ≥ b.
///
/// Errors:
/// For complex numbers, which have no order.
#[pyfunction(name = "greater_equal")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn greater_equal(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::greater_equal(&a, &b)))
}

/// The Hamming window of `size` points: 0.54 + 0.46·cos πt for t from −1 to 1, as `float32`.
#[pyfunction(name = "hamming")]
#[pyo3(signature = (M, *, stream = None), text_signature = "(M, *, stream=None)")]
pub fn hamming(M: Count, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::hamming(M.0)))
}

/// The Hann window of `size` points: 0.5 + 0.5·cos πt for t from −1 to 1, as `float32`.
#[pyfunction(name = "hanning")]
#[pyo3(signature = (M, *, stream = None), text_signature = "(M, *, stream=None)")]
pub fn hanning(M: Count, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::hanning(M.0)))
}

/// The identity matrix.
#[pyfunction(name = "identity")]
#[pyo3(signature = (n, dtype = None, *, stream = None), text_signature = "(n, dtype=None, *, stream=None)")]
pub fn identity(n: Count, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::identity(n.0, dtype.map_or(DType::F32, |d| d.0))))
}

/// The imaginary part: `float32` of a complex number, 0 of anything else.
#[pyfunction(name = "imag")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn imag(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::imag(&a)))
}

/// The sums of products over the last axis of each operand.
///
/// Shapes:
/// `[a.., k]` and `[b.., k]` give `[a.., b..]`.
#[pyfunction(name = "inner")]
#[pyo3(signature = (a, b, *, stream = None), text_signature = "(a, b, *, stream=None)")]
pub fn inner(a: Arr, b: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::inner(&a, &b)))
}

/// Whether x is neither infinite nor NaN; of a complex number, whether both parts are.
#[pyfunction(name = "isfinite")]
#[pyo3(signature = (a, stream = None), text_signature = "(a, stream=None)")]
pub fn isfinite(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::isfinite(&a)))
}

/// Whether x is ∞ or −∞; of a complex number, whether either part is.
#[pyfunction(name = "isinf")]
#[pyo3(signature = (a, stream = None), text_signature = "(a, stream=None)")]
pub fn isinf(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::isinf(&a)))
}

/// Whether x is NaN; of a complex number, whether either part is.
#[pyfunction(name = "isnan")]
#[pyo3(signature = (a, stream = None), text_signature = "(a, stream=None)")]
pub fn isnan(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::isnan(&a)))
}

/// Whether x is −∞.
#[pyfunction(name = "isneginf")]
#[pyo3(signature = (a, stream = None), text_signature = "(a, stream=None)")]
pub fn isneginf(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::isneginf(&a)))
}

/// Whether x is ∞.
#[pyfunction(name = "isposinf")]
#[pyo3(signature = (a, stream = None), text_signature = "(a, stream=None)")]
pub fn isposinf(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::isposinf(&a)))
}

/// The Kronecker product: each element of `a` times all of `b`, as blocks.
#[pyfunction(name = "kron")]
#[pyo3(signature = (a, b, *, stream = None), text_signature = "(a, b, *, stream=None)")]
pub fn kron(a: Arr, b: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::kron(&a, &b)))
}

/// a·2ᵇ in the integer's width; 0 from the width on.
///
/// Dtypes:
/// Two bools shift as `uint8`; floats are an error.
#[pyfunction(name = "left_shift")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn left_shift(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::left_shift(&a, &b)))
}

/// Whether a < b.
///
/// Errors:
/// For complex numbers, which have no order.
#[pyfunction(name = "less")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn less(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::less(&a, &b)))
}

/// Whether a ≤ b.
///
/// Errors:
/// For complex numbers, which have no order.
#[pyfunction(name = "less_equal")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn less_equal(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::less_equal(&a, &b)))
}

/// ln x.
#[pyfunction(name = "log")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn log(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::log(&a)))
}

/// log₁₀ x.
#[pyfunction(name = "log10")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn log10(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::log10(&a)))
}

/// ln(1 + x), accurate near 0.
#[pyfunction(name = "log1p")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn log1p(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::log1p(&a)))
}

/// log₂ x.
#[pyfunction(name = "log2")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn log2(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::log2(&a)))
}

/// ln(eᵃ + eᵇ), without overflow.
#[pyfunction(name = "logaddexp")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn logaddexp(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::logaddexp(&a, &b)))
}

/// Whether both are true; numbers are true where they are not 0.
#[pyfunction(name = "logical_and")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn logical_and(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::logical_and(&a, &b)))
}

/// True where x is false; numbers are true where they are not 0.
#[pyfunction(name = "logical_not")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn logical_not(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::logical_not(&a)))
}

/// Whether either is true; numbers are true where they are not 0.
#[pyfunction(name = "logical_or")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn logical_or(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::logical_or(&a, &b)))
}

/// Whether one of them is true; numbers are true where they are not 0.
#[pyfunction(name = "logical_xor")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn logical_xor(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::logical_xor(&a, &b)))
}

/// ln Σ eˣ over `axes`; −∞ where every element is.
///
/// Dtypes:
/// As `softmax`.
///
/// Errors:
/// Where an axis is empty, and for complex numbers.
#[pyfunction(name = "logsumexp")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn logsumexp(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::logsumexp(&a, axis.0, keepdims)))
}

/// The matrix product over the last two axes.
///
/// Shapes:
/// `[.., m, k]` by `[.., k, n]` gives `[.., m, n]`; leading axes broadcast. A vector on the left is
/// a row, on the right a column, and its axis goes from the result.
///
/// Dtypes:
/// The operands promote; half types accumulate in `float32`; bool multiplies as `int32`.
#[pyfunction(name = "matmul")]
#[pyo3(signature = (a, b, *, stream = None), text_signature = "(a, b, *, stream=None)")]
pub fn matmul(a: Arr, b: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::matmul(&a, &b)))
}

/// The last two axes exchanged.
///
/// Errors:
/// Where there are fewer than two.
#[pyfunction(name = "matrix_transpose")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn matrix_transpose(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::matrix_transpose(&a)))
}

/// The largest element over `axes`; NaN if there is one.
///
/// Errors:
/// Where an axis to fold is empty, and for complex numbers.
#[pyfunction(name = "max")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn max(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::max(&a, axis.0, keepdims)))
}

/// The larger of a and b; NaN if either is NaN.
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
/// Where an axis is empty, and for complex numbers.
#[pyfunction(name = "median")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn median(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::median(&a, axis.0, keepdims)))
}

/// The smallest element over `axes`; NaN if there is one.
///
/// Errors:
/// As `max`.
#[pyfunction(name = "min")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn min(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::min(&a, axis.0, keepdims)))
}

/// The smaller of a and b; NaN if either is NaN.
#[pyfunction(name = "minimum")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn minimum(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::minimum(&a, &b)))
}

/// The smallest and the largest element over `axes`, as `min` and `max` give them.
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
#[pyfunction(name = "moveaxis")]
#[pyo3(signature = (a, source, destination, *, stream = None), text_signature = "(a, source, destination, *, stream=None)")]
pub fn moveaxis(
    a: Arr,
    source: isize,
    destination: isize,
    stream: Option<On>,
) -> PyResult<PyArray> {
    on(stream, || give(ops::moveaxis(&a, source, destination)))
}

/// a·b.
///
/// Dtypes:
/// The operands promote; integers wrap; on bool, logical and.
#[pyfunction(name = "multiply")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn multiply(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::multiply(&a, &b)))
}

/// −x; integers wrap.
///
/// Errors:
/// For bool: use `logical_not`.
#[pyfunction(name = "negative")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn negative(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::negative(&a)))
}

/// Whether a ≠ b; NaN differs from everything.
#[pyfunction(name = "not_equal")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn not_equal(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::not_equal(&a, &b)))
}

/// Ones.
#[pyfunction(name = "ones")]
#[pyo3(signature = (shape, dtype = None, *, stream = None), text_signature = "(shape, dtype=None, *, stream=None)")]
pub fn ones(shape: ShapeArg, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::ones(shape.0, dtype.map_or(DType::F32, |d| d.0))))
}

/// The products of each element of one flattened operand with each of the other.
#[pyfunction(name = "outer")]
#[pyo3(signature = (a, b, *, stream = None), text_signature = "(a, b, *, stream=None)")]
pub fn outer(a: Arr, b: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::outer(&a, &b)))
}

/// The elements of an axis with the one at `kth` where it is in their order, none larger before it
/// and none smaller behind it; `()` flattens first.
///
/// Errors:
/// Where the axis has no element `kth`, which counts from the end if it is negative, and for complex
/// numbers.
#[pyfunction(name = "partition")]
#[pyo3(signature = (a, kth, axis = Axis::one(-1), *, stream = None), text_signature = "(a, kth, axis=-1, *, stream=None)")]
pub fn partition(a: Arr, kth: isize, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::partition(&a, kth, axis.0)))
}

/// x as it is.
#[pyfunction(name = "positive")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn positive(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::positive(&a)))
}

/// aᵇ.
///
/// Dtypes:
/// The operands promote. A negative exponent of an integer gives 0, or ±1 for bases ±1.
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
#[pyfunction(name = "prod")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn prod(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::prod(&a, axis.0, keepdims)))
}

/// Degrees as radians.
#[pyfunction(name = "radians")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn radians(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::radians(&a)))
}

/// The real part: `float32` of a complex number, anything else as it is.
#[pyfunction(name = "real")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn real(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::real(&a)))
}

/// 1/x.
///
/// Dtypes:
/// Integers and bool are taken as `float32`.
#[pyfunction(name = "reciprocal")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn reciprocal(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::reciprocal(&a)))
}

/// a − b·⌊a/b⌋, with the sign of b.
///
/// Dtypes:
/// An integer modulo 0 gives 0. Does not take complex numbers.
#[pyfunction(name = "remainder")]
#[pyo3(signature = (a, b, stream = None), text_signature = "(a, b, stream=None)")]
pub fn remainder(a: Opd, b: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (a, b) = meet(a, b)?;
    on(stream, || give(ops::remainder(&a, &b)))
}

/// Each element repeated `repeats` times along an axis; `()` flattens first.
#[pyfunction(name = "repeat")]
#[pyo3(signature = (array, repeats, axis = Axis::all(), *, stream = None), text_signature = "(array, repeats, axis=None, *, stream=None)")]
pub fn repeat(array: Arr, repeats: Count, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::repeat(&array, repeats.0, axis.0)))
}

/// The elements, in row-major order, under another shape; one size may be −1: what is left.
///
/// Errors:
/// Where the count of elements changes.
#[pyfunction(name = "reshape")]
#[pyo3(signature = (a, shape, *, stream = None), text_signature = "(a, shape, *, stream=None)")]
pub fn reshape(a: Arr, shape: SizesArg, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::reshape(&a, shape)))
}

/// ⌊a/2ᵇ⌋; from the width on 0, or −1 for negative a.
///
/// Dtypes:
/// Two bools shift as `uint8`; floats are an error.
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
#[pyfunction(name = "roll")]
#[pyo3(signature = (a, shift, axis = Axis::all(), *, stream = None), text_signature = "(a, shift, axis=None, *, stream=None)")]
pub fn roll(a: Arr, shift: SizesArg, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::roll(&a, shift, axis.0)))
}

/// The nearest number of `decimals` decimals, ties to even.
///
/// Dtypes:
/// Integers stay as they are where `decimals` is not negative, and round to tens, hundreds, …
/// through `float32` where it is.
#[pyfunction(name = "round")]
#[pyo3(signature = (a, decimals = 0, stream = None), text_signature = "(a, decimals=0, stream=None)")]
pub fn round(a: Arr, decimals: i32, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::round(&a, decimals)))
}

/// 1/√x.
#[pyfunction(name = "rsqrt")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn rsqrt(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::rsqrt(&a)))
}

/// The products of parts of two matrices: for each pair of `segments` the product over the inner
/// places from its first up to but without its second number.
///
/// Shapes:
/// a `[m, k]`, b `[k, n]` and segments `[.., 2]` give `[.., m, n]`.
///
/// Errors:
/// Where segments are not pairs of integers, or the operands not matrices of floats.
#[pyfunction(name = "segmented_mm")]
#[pyo3(signature = (a, b, segments, *, stream = None), text_signature = "(a, b, segments, *, stream=None)")]
pub fn segmented_mm(a: Arr, b: Arr, segments: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::segmented_mm(&a, &b, &segments)))
}

/// 1/(1 + e⁻ˣ).
#[pyfunction(name = "sigmoid")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sigmoid(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sigmoid(&a)))
}

/// −1, 0 or 1 by the sign of x; NaN stays NaN; z/|z| of a complex number.
#[pyfunction(name = "sign")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sign(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sign(&a)))
}

/// sin x.
#[pyfunction(name = "sin")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sin(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sin(&a)))
}

/// sinh x.
#[pyfunction(name = "sinh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sinh(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sinh(&a)))
}

/// The elements of an axis in ascending order, NaN last; `()` flattens first.
///
/// Errors:
/// For complex numbers.
#[pyfunction(name = "sort")]
#[pyo3(signature = (a, axis = Axis::one(-1), *, stream = None), text_signature = "(a, axis=-1, *, stream=None)")]
pub fn sort(a: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sort(&a, axis.0)))
}

/// √x.
#[pyfunction(name = "sqrt")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn sqrt(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sqrt(&a)))
}

/// x·x.
#[pyfunction(name = "square")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn square(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::square(&a)))
}

/// Axes of size 1 removed; `()` removes all of them.
///
/// Errors:
/// Where an axis that is named is not of size 1.
#[pyfunction(name = "squeeze")]
#[pyo3(signature = (a, axis = Axis::all(), *, stream = None), text_signature = "(a, axis=None, *, stream=None)")]
pub fn squeeze(a: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::squeeze(&a, axis.0)))
}

/// `x` itself, as a constant: derivatives do not pass.
#[pyfunction(name = "stop_gradient")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn stop_gradient(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::stop_gradient(&a)))
}

/// a − b.
///
/// Dtypes:
/// The operands promote; integers wrap; on bool, logical exclusive or.
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
/// `float32`.
#[pyfunction(name = "sum")]
#[pyo3(signature = (a, axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "(a, axis=None, keepdims=False, *, stream=None)")]
pub fn sum(a: Arr, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::sum(&a, axis.0, keepdims)))
}

/// Two axes exchanged.
#[pyfunction(name = "swapaxes")]
#[pyo3(signature = (a, axis1, axis2, *, stream = None), text_signature = "(a, axis1, axis2, *, stream=None)")]
pub fn swapaxes(a: Arr, axis1: isize, axis2: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::swapaxes(&a, axis1, axis2)))
}

/// The slices of `x` at `indices` along an axis, or the elements of the flattened array for `()`.
///
/// Shapes:
/// The axis is replaced by the axes of `indices`; a plain number removes it.
///
/// Errors:
/// Where the indices are not integers, and when it runs where one is out of range.
#[pyfunction(name = "take")]
#[pyo3(signature = (a, indices, axis = Axis::all(), *, stream = None), text_signature = "(a, indices, axis=None, *, stream=None)")]
pub fn take(a: Arr, indices: Opd, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::take(&a, &indices, axis.0)))
}

/// The elements of `x` at `indices` along an axis and at the same place along the others; `()`
/// flattens both first.
///
/// Shapes:
/// The result has the shape of the indices; the other axes broadcast.
#[pyfunction(name = "take_along_axis")]
#[pyo3(signature = (a, indices, axis = Axis::one(-1), *, stream = None), text_signature = "(a, indices, axis=-1, *, stream=None)")]
pub fn take_along_axis(a: Arr, indices: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::take_along_axis(&a, &indices, axis.0)))
}

/// tan x.
#[pyfunction(name = "tan")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn tan(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::tan(&a)))
}

/// tanh x.
#[pyfunction(name = "tanh")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn tanh(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::tanh(&a)))
}

/// The array repeated whole, `reps[i]` times along axis `i`; missing counts and missing axes are 1.
#[pyfunction(name = "tile")]
#[pyo3(signature = (a, reps, *, stream = None), text_signature = "(a, reps, *, stream=None)")]
pub fn tile(a: Arr, reps: SizesArg, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::tile(&a, reps)))
}

/// Floats as e4m3 numbers in `uint8`, rounded to nearest even; ±448 where they are larger, or NaN.
///
/// Errors:
/// Where `x` is not of floats.
#[pyfunction(name = "to_fp8")]
#[pyo3(signature = (x, *, stream = None), text_signature = "(x, *, stream=None)")]
pub fn to_fp8(x: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::to_fp8(&x)))
}

/// The `k` largest elements of an axis, in ascending order; `()` flattens first.
#[pyfunction(name = "topk")]
#[pyo3(signature = (a, k, axis = Axis::one(-1), *, stream = None), text_signature = "(a, k, axis=-1, *, stream=None)")]
pub fn topk(a: Arr, k: Count, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::topk(&a, k.0, axis.0)))
}

/// The axes in another order: axis `i` of the result is axis `axes[i]` of `x`; `()` reverses them.
#[pyfunction(name = "transpose")]
#[pyo3(signature = (a, axes = Axis::all(), *, stream = None), text_signature = "(a, axes=None, *, stream=None)")]
pub fn transpose(a: Arr, axes: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::transpose(&a, axes.0)))
}

/// `x` with zeros above the diagonal `offset` places above the main one of its last two axes.
#[pyfunction(name = "tril")]
#[pyo3(signature = (x, k = 0, *, stream = None), text_signature = "(x, k=0, *, stream=None)")]
pub fn tril(x: Arr, k: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::tril(&x, k)))
}

/// `x` with zeros below the diagonal `offset` places above the main one of its last two axes.
#[pyfunction(name = "triu")]
#[pyo3(signature = (x, k = 0, *, stream = None), text_signature = "(x, k=0, *, stream=None)")]
pub fn triu(x: Arr, k: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::triu(&x, k)))
}

/// x without what is behind its point: the next integer towards 0, in x's dtype.
///
/// Errors:
/// For complex numbers.
#[pyfunction(name = "trunc")]
#[pyo3(signature = (a, *, stream = None), text_signature = "(a, *, stream=None)")]
pub fn trunc(a: Arr, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::trunc(&a)))
}

/// One axis split into several; one size may be −1: what is left.
#[pyfunction(name = "unflatten")]
#[pyo3(signature = (a, axis, shape, *, stream = None), text_signature = "(a, axis, shape, *, stream=None)")]
pub fn unflatten(a: Arr, axis: isize, shape: SizesArg, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::unflatten(&a, axis, shape)))
}

/// The sum of products over one axis of both operands, the conjugate of `a` with `b`.
#[pyfunction(name = "vecdot")]
#[pyo3(signature = (a, b, axis = -1, *, stream = None), text_signature = "(a, b, axis=-1, *, stream=None)")]
pub fn vecdot(a: Arr, b: Arr, axis: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::vecdot(&a, &b, axis)))
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
#[pyfunction(name = "where")]
#[pyo3(signature = (condition, x, y, *, stream = None), text_signature = "(condition, x, y, *, stream=None)")]
pub fn where_(condition: Opd, x: Opd, y: Opd, stream: Option<On>) -> PyResult<PyArray> {
    let (x, y) = meet(x, y)?;
    on(stream, || give(ops::where_(&condition, &x, &y)))
}

/// Zeros.
#[pyfunction(name = "zeros")]
#[pyo3(signature = (shape, dtype = None, *, stream = None), text_signature = "(shape, dtype=None, *, stream=None)")]
pub fn zeros(shape: ShapeArg, dtype: Option<Dtype>, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::zeros(shape.0, dtype.map_or(DType::F32, |d| d.0))))
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
    a: Arr,
    weight: Option<Arr>,
    bias: Option<Arr>,
    eps: f64,
    stream: Option<On>,
) -> PyResult<PyArray> {
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
///
/// Errors:
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
pub fn prelu(a: Arr, weight: Opd, stream: Option<On>) -> PyResult<PyArray> {
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
pub fn rms_norm(a: Arr, weight: Option<Arr>, eps: f64, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::rms_norm(&a, weight.as_deref(), eps)))
}

/// `softmax` of −x: the weight of small elements.
#[pyfunction(name = "softmin")]
#[pyo3(signature = (a, axis = -1, *, stream = None), text_signature = "(a, axis=-1, *, stream=None)")]
pub fn softmin(a: Arr, axis: isize, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::softmin(&a, axis)))
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
/// Where `size` is 0.
#[pyfunction(name = "fftfreq")]
#[pyo3(signature = (n, d = 1.0, stream = None), text_signature = "(n, d=1.0, stream=None)")]
pub fn fft_fftfreq(n: Count, d: f64, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::fftfreq(n.0, d)))
}

/// Each axis rolled by half its size, so that frequency 0 comes to the middle; `()` for all axes.
#[pyfunction(name = "fftshift")]
#[pyo3(signature = (a, axis = Axis::all(), stream = None), text_signature = "(a, axis=None, stream=None)")]
pub fn fft_fftshift(a: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::fftshift(&a, axis.0)))
}

/// The inverse of `fftshift`; they differ on axes of odd size.
#[pyfunction(name = "ifftshift")]
#[pyo3(signature = (a, axis = Axis::all(), stream = None), text_signature = "(a, axis=None, stream=None)")]
pub fn fft_ifftshift(a: Arr, axis: Axis, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::ifftshift(&a, axis.0)))
}

/// The frequencies, not negative, of a transform of `size` real points `spacing` apart, as `float32`.
///
/// Errors:
/// Where `size` is 0.
#[pyfunction(name = "rfftfreq")]
#[pyo3(signature = (n, d = 1.0, stream = None), text_signature = "(n, d=1.0, stream=None)")]
pub fn fft_rfftfreq(n: Count, d: f64, stream: Option<On>) -> PyResult<PyArray> {
    on(stream, || give(ops::rfftfreq(n.0, d)))
}

/// Random bits: unsigned integers of `width` bytes, 1, 2 or 4, over their whole range.
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
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn argmax(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::argmax(&self.get(), axis.0, keepdims)))
    }

    /// The index of the first smallest element along an axis, or of the flattened array for `()`.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn argmin(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::argmin(&self.get(), axis.0, keepdims)))
    }

    /// Converts each element to `dtype`: to bool by ≠ 0, from float to integer towards zero and
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
    #[pyo3(signature = (offset = 0, axis1 = 0, axis2 = 1, stream = None), text_signature = "($self, offset=0, axis1=0, axis2=1, stream=None)")]
    pub fn diagonal(
        &self,
        offset: isize,
        axis1: isize,
        axis2: isize,
        stream: Option<On>,
    ) -> PyResult<PyArray> {
        on(stream, || give(ops::diagonal(&self.get(), offset, axis1, axis2)))
    }

    /// eˣ.
    #[pyo3(signature = (*, stream = None), text_signature = "($self, *, stream=None)")]
    pub fn exp(&self, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::exp(&self.get())))
    }

    /// Axes `start..=end` merged into one. Axes past either end mean that end.
    #[pyo3(signature = (start_axis = 0, end_axis = -1, *, stream = None), text_signature = "($self, start_axis=0, end_axis=-1, *, stream=None)")]
    pub fn flatten(
        &self,
        start_axis: isize,
        end_axis: isize,
        stream: Option<On>,
    ) -> PyResult<PyArray> {
        on(stream, || give(ops::flatten(&self.get(), start_axis, end_axis)))
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

    /// The largest element over `axes`; NaN if there is one.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn max(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::max(&self.get(), axis.0, keepdims)))
    }

    /// The mean over `axes`; NaN for nothing.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn mean(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::mean(&self.get(), axis.0, keepdims)))
    }

    /// The smallest element over `axes`; NaN if there is one.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, *, stream = None), text_signature = "($self, axis=None, keepdims=False, *, stream=None)")]
    pub fn min(&self, axis: Axis, keepdims: bool, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::min(&self.get(), axis.0, keepdims)))
    }

    /// One axis moved to another place; the others keep their order.
    #[pyo3(signature = (source, destination, *, stream = None), text_signature = "($self, source, destination, *, stream=None)")]
    pub fn moveaxis(
        &self,
        source: isize,
        destination: isize,
        stream: Option<On>,
    ) -> PyResult<PyArray> {
        on(stream, || give(ops::moveaxis(&self.get(), source, destination)))
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
    #[pyo3(signature = (decimals = 0, stream = None), text_signature = "($self, decimals=0, stream=None)")]
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
    pub fn swapaxes(&self, axis1: isize, axis2: isize, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::swapaxes(&self.get(), axis1, axis2)))
    }

    /// The bytes of `x`, in the machine's order, as elements of another dtype.
    #[pyo3(signature = (dtype, stream = None), text_signature = "($self, dtype, stream=None)")]
    pub fn view(&self, dtype: Dtype, stream: Option<On>) -> PyResult<PyArray> {
        on(stream, || give(ops::view(&self.get(), dtype.0)))
    }
}

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
            m.add_class::<crate::device::StreamContext>()?;
            m.add_class::<crate::dtype::Dtype>()?;
            m.add_class::<crate::dtype::DtypeCategory>()?;
            m.add_class::<crate::dtype::finfo>()?;
            m.add_class::<crate::dtype::iinfo>()?;
            m.add_class::<crate::format::PrintOptions>()?;
            m.add_class::<crate::format::PrintOptionsContext>()?;
            m.add_class::<crate::read::lend::Loan>()?;
            m.add_class::<crate::transform::compile::Compiled>()?;
            m.add_class::<crate::transform::custom::Checkpointed>()?;
            m.add_class::<crate::transform::custom::custom_function>()?;
            m.add_class::<crate::transform::grad::Differentiated>()?;
            m.add_class::<crate::transform::vmap::BatchedFunction>()?;
            m.add_function(wrap_pyfunction!(crate::dtype::_dtype, m)?)?;
            m.add_function(wrap_pyfunction!(crate::array::_restore, m)?)?;
            m.add_function(wrap_pyfunction!(self::abs, m)?)?;
            m.add_function(wrap_pyfunction!(self::add, m)?)?;
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
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::array_equal, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::as_strided, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::asarray, m)?)?;
            m.add_function(wrap_pyfunction!(self::astype, m)?)?;
            m.add_function(wrap_pyfunction!(crate::evaluate::async_eval, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::atleast_1d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::atleast_2d, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::atleast_3d, m)?)?;
            m.add_function(wrap_pyfunction!(self::bartlett, m)?)?;
            m.add_function(wrap_pyfunction!(self::bitwise_and, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::bitwise_invert, m)?)?;
            m.add_function(wrap_pyfunction!(self::bitwise_or, m)?)?;
            m.add_function(wrap_pyfunction!(self::bitwise_xor, m)?)?;
            m.add_function(wrap_pyfunction!(self::blackman, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::block_masked_mm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::broadcast_arrays, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::broadcast_shapes, m)?)?;
            m.add_function(wrap_pyfunction!(self::broadcast_to, m)?)?;
            m.add_function(wrap_pyfunction!(crate::dtype::can_cast, m)?)?;
            m.add_function(wrap_pyfunction!(self::ceil, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::custom::checkpoint, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::clear_cache, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::clip, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::compile::compile, m)?)?;
            m.add_function(wrap_pyfunction!(self::concatenate, m)?)?;
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
            m.add_function(wrap_pyfunction!(self::cos, m)?)?;
            m.add_function(wrap_pyfunction!(self::cosh, m)?)?;
            m.add_function(wrap_pyfunction!(self::count_nonzero, m)?)?;
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
            m.add_function(wrap_pyfunction!(crate::transform::compile::disable_compile, m)?)?;
            m.add_function(wrap_pyfunction!(self::divide, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::divmod, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::einsum, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::einsum_path, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::compile::enable_compile, m)?)?;
            m.add_function(wrap_pyfunction!(self::equal, m)?)?;
            m.add_function(wrap_pyfunction!(self::erf, m)?)?;
            m.add_function(wrap_pyfunction!(self::erfinv, m)?)?;
            m.add_function(wrap_pyfunction!(crate::evaluate::eval, m)?)?;
            m.add_function(wrap_pyfunction!(self::exp, m)?)?;
            m.add_function(wrap_pyfunction!(self::expand_dims, m)?)?;
            m.add_function(wrap_pyfunction!(self::expm1, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::eye, m)?)?;
            m.add_function(wrap_pyfunction!(self::flatten, m)?)?;
            m.add_function(wrap_pyfunction!(self::flip, m)?)?;
            m.add_function(wrap_pyfunction!(self::floor, m)?)?;
            m.add_function(wrap_pyfunction!(self::floor_divide, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::from_dlpack, m)?)?;
            m.add_function(wrap_pyfunction!(self::from_fp8, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::full, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::full_like, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::gather_mm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::quantize::gather_qmm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::get_active_memory, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::get_cache_memory, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::get_memory_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::get_peak_memory, m)?)?;
            m.add_function(wrap_pyfunction!(crate::format::get_printoptions, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::grad::grad, m)?)?;
            m.add_function(wrap_pyfunction!(self::greater, m)?)?;
            m.add_function(wrap_pyfunction!(self::greater_equal, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::product::hadamard_transform, m)?)?;
            m.add_function(wrap_pyfunction!(self::hamming, m)?)?;
            m.add_function(wrap_pyfunction!(self::hanning, m)?)?;
            m.add_function(wrap_pyfunction!(self::identity, m)?)?;
            m.add_function(wrap_pyfunction!(self::imag, m)?)?;
            m.add_function(wrap_pyfunction!(self::inner, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::is_available, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::isclose, m)?)?;
            m.add_function(wrap_pyfunction!(crate::dtype::isdtype, m)?)?;
            m.add_function(wrap_pyfunction!(self::isfinite, m)?)?;
            m.add_function(wrap_pyfunction!(self::isinf, m)?)?;
            m.add_function(wrap_pyfunction!(self::isnan, m)?)?;
            m.add_function(wrap_pyfunction!(self::isneginf, m)?)?;
            m.add_function(wrap_pyfunction!(self::isposinf, m)?)?;
            m.add_function(wrap_pyfunction!(crate::dtype::issubdtype, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::grad::jvp, m)?)?;
            m.add_function(wrap_pyfunction!(self::kron, m)?)?;
            m.add_function(wrap_pyfunction!(self::left_shift, m)?)?;
            m.add_function(wrap_pyfunction!(self::less, m)?)?;
            m.add_function(wrap_pyfunction!(self::less_equal, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::linspace, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::load, m)?)?;
            m.add_function(wrap_pyfunction!(self::log, m)?)?;
            m.add_function(wrap_pyfunction!(self::log10, m)?)?;
            m.add_function(wrap_pyfunction!(self::log1p, m)?)?;
            m.add_function(wrap_pyfunction!(self::log2, m)?)?;
            m.add_function(wrap_pyfunction!(self::logaddexp, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::scan::logcumsumexp, m)?)?;
            m.add_function(wrap_pyfunction!(self::logical_and, m)?)?;
            m.add_function(wrap_pyfunction!(self::logical_not, m)?)?;
            m.add_function(wrap_pyfunction!(self::logical_or, m)?)?;
            m.add_function(wrap_pyfunction!(self::logical_xor, m)?)?;
            m.add_function(wrap_pyfunction!(self::logsumexp, m)?)?;
            m.add_function(wrap_pyfunction!(self::matmul, m)?)?;
            m.add_function(wrap_pyfunction!(self::matrix_transpose, m)?)?;
            m.add_function(wrap_pyfunction!(self::max, m)?)?;
            m.add_function(wrap_pyfunction!(self::maximum, m)?)?;
            m.add_function(wrap_pyfunction!(self::mean, m)?)?;
            m.add_function(wrap_pyfunction!(self::median, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::meshgrid, m)?)?;
            m.add_function(wrap_pyfunction!(self::min, m)?)?;
            m.add_function(wrap_pyfunction!(self::minimum, m)?)?;
            m.add_function(wrap_pyfunction!(self::minmax, m)?)?;
            m.add_function(wrap_pyfunction!(self::moveaxis, m)?)?;
            m.add_function(wrap_pyfunction!(self::multiply, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::elementwise::nan_to_num, m)?)?;
            m.add_function(wrap_pyfunction!(self::negative, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::new_stream, m)?)?;
            m.add_function(wrap_pyfunction!(self::not_equal, m)?)?;
            m.add_function(wrap_pyfunction!(self::ones, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::create::ones_like, m)?)?;
            m.add_function(wrap_pyfunction!(self::outer, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::pad, m)?)?;
            m.add_function(wrap_pyfunction!(self::partition, m)?)?;
            m.add_function(wrap_pyfunction!(self::positive, m)?)?;
            m.add_function(wrap_pyfunction!(self::power, m)?)?;
            m.add_function(wrap_pyfunction!(crate::format::printoptions, m)?)?;
            m.add_function(wrap_pyfunction!(self::prod, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::put_along_axis, m)?)?;
            m.add_function(wrap_pyfunction!(crate::quantize::quantize, m)?)?;
            m.add_function(wrap_pyfunction!(crate::quantize::quantized_matmul, m)?)?;
            m.add_function(wrap_pyfunction!(self::radians, m)?)?;
            m.add_function(wrap_pyfunction!(self::real, m)?)?;
            m.add_function(wrap_pyfunction!(self::reciprocal, m)?)?;
            m.add_function(wrap_pyfunction!(self::remainder, m)?)?;
            m.add_function(wrap_pyfunction!(self::repeat, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::reset_peak_memory, m)?)?;
            m.add_function(wrap_pyfunction!(self::reshape, m)?)?;
            m.add_function(wrap_pyfunction!(crate::dtype::result_type, m)?)?;
            m.add_function(wrap_pyfunction!(self::right_shift, m)?)?;
            m.add_function(wrap_pyfunction!(self::roll, m)?)?;
            m.add_function(wrap_pyfunction!(self::round, m)?)?;
            m.add_function(wrap_pyfunction!(self::rsqrt, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::save, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::save_safetensors, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::savez, m)?)?;
            m.add_function(wrap_pyfunction!(crate::io::savez_compressed, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::search::searchsorted, m)?)?;
            m.add_function(wrap_pyfunction!(self::segmented_mm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::set_cache_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::set_default_device, m)?)?;
            m.add_function(wrap_pyfunction!(crate::device::set_default_stream, m)?)?;
            m.add_function(wrap_pyfunction!(crate::memory::set_memory_limit, m)?)?;
            m.add_function(wrap_pyfunction!(crate::format::set_printoptions, m)?)?;
            m.add_function(wrap_pyfunction!(self::sigmoid, m)?)?;
            m.add_function(wrap_pyfunction!(self::sign, m)?)?;
            m.add_function(wrap_pyfunction!(self::sin, m)?)?;
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
            m.add_function(wrap_pyfunction!(crate::ops::create::tri, m)?)?;
            m.add_function(wrap_pyfunction!(self::tril, m)?)?;
            m.add_function(wrap_pyfunction!(self::triu, m)?)?;
            m.add_function(wrap_pyfunction!(self::trunc, m)?)?;
            m.add_function(wrap_pyfunction!(self::unflatten, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::search::unique, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::shape::unstack, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::grad::value_and_grad, m)?)?;
            m.add_function(wrap_pyfunction!(crate::ops::spread::var, m)?)?;
            m.add_function(wrap_pyfunction!(self::vecdot, m)?)?;
            m.add_function(wrap_pyfunction!(self::view, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::grad::vjp, m)?)?;
            m.add_function(wrap_pyfunction!(crate::transform::vmap::vmap, m)?)?;
            m.add_function(wrap_pyfunction!(self::where_, m)?)?;
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
        "_data" => {
            m.add_class::<crate::_data::ImageDataset>()?;
            m.add_class::<crate::_data::Loader>()?;
            m.add_class::<crate::_data::Epoch>()?;
            m.add_function(wrap_pyfunction!(crate::_data::cifar10, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::cifar100, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::digits, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::fashion_mnist, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_data::mnist, m)?)?;
        }
        "_nn" => {
            m.add_function(wrap_pyfunction!(crate::_nn::avg_pool, m)?)?;
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
            m.add_function(wrap_pyfunction!(self::prelu, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::relu, m)?)?;
            m.add_function(wrap_pyfunction!(self::relu6, m)?)?;
            m.add_function(wrap_pyfunction!(self::rms_norm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::selu, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::silu, m)?)?;
            m.add_function(wrap_pyfunction!(self::softmin, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::softplus, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::softshrink, m)?)?;
            m.add_function(wrap_pyfunction!(crate::_nn::softsign, m)?)?;
            m.add_function(wrap_pyfunction!(self::step, m)?)?;
            m.add_function(wrap_pyfunction!(self::tanh_shrink, m)?)?;
        }
        "cuda" => {
            m.add_function(wrap_pyfunction!(crate::cuda::is_available, m)?)?;
        }
        "distributed" => {
            m.add_function(wrap_pyfunction!(crate::distributed::is_available, m)?)?;
        }
        "fast" => {
            m.add_function(wrap_pyfunction!(crate::fast::cross_entropy, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::layer_norm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::rms_norm, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::rope, m)?)?;
            m.add_function(wrap_pyfunction!(crate::fast::scaled_dot_product_attention, m)?)?;
        }
        "fft" => {
            m.add_function(wrap_pyfunction!(self::fft_fftfreq, m)?)?;
            m.add_function(wrap_pyfunction!(self::fft_fftshift, m)?)?;
            m.add_function(wrap_pyfunction!(self::fft_ifftshift, m)?)?;
            m.add_function(wrap_pyfunction!(self::fft_rfftfreq, m)?)?;
        }
        "linalg" => {
            m.add_function(wrap_pyfunction!(crate::linalg::cross, m)?)?;
            m.add_function(wrap_pyfunction!(crate::linalg::norm, m)?)?;
        }
        "metal" => {
            m.add_function(wrap_pyfunction!(crate::metal::is_available, m)?)?;
        }
        "random" => {
            m.add_class::<crate::random::RandomState>()?;
            m.add_function(wrap_pyfunction!(crate::random::bernoulli, m)?)?;
            m.add_function(wrap_pyfunction!(self::random_bits, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::categorical, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::gumbel, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::key, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::laplace, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::normal, m)?)?;
            m.add_function(wrap_pyfunction!(crate::random::permutation, m)?)?;
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

/// The submodules.
pub const MODULES: &[&str] =
    &["_data", "_nn", "cuda", "distributed", "fast", "fft", "linalg", "metal", "random"];

/// What MLX has and is not here: submodule and name.
pub const MISSING: &[(&str, &str)] = &[
    ("", "clear_streams"),
    ("", "export_function"),
    ("", "export_to_dot"),
    ("", "exporter"),
    ("", "gather_qqmm"),
    ("", "get_array_buffer_size"),
    ("", "import_function"),
    ("", "matrix_norm"),
    ("", "new_thread_local_stream"),
    ("", "new_thread_unsafe_stream"),
    ("", "qqmm"),
    ("", "save_gguf"),
    ("", "set_wired_limit"),
    ("distributed", "all_gather"),
    ("distributed", "all_max"),
    ("distributed", "all_min"),
    ("distributed", "all_sum"),
    ("distributed", "init"),
    ("distributed", "recv"),
    ("distributed", "recv_like"),
    ("distributed", "send"),
    ("distributed", "sum_scatter"),
    ("fast", "cuda_kernel"),
    ("fast", "gated_delta_update"),
    ("fast", "metal_kernel"),
    ("fast", "precompiled_cuda_kernel"),
    ("fft", "fft"),
    ("fft", "fft2"),
    ("fft", "fftn"),
    ("fft", "ifft"),
    ("fft", "ifft2"),
    ("fft", "ifftn"),
    ("fft", "irfft"),
    ("fft", "irfft2"),
    ("fft", "irfftn"),
    ("fft", "istft"),
    ("fft", "rfft"),
    ("fft", "rfft2"),
    ("fft", "rfftn"),
    ("fft", "stft"),
    ("linalg", "cholesky"),
    ("linalg", "cholesky_inv"),
    ("linalg", "det"),
    ("linalg", "eig"),
    ("linalg", "eigh"),
    ("linalg", "eigvals"),
    ("linalg", "eigvalsh"),
    ("linalg", "inv"),
    ("linalg", "lu"),
    ("linalg", "lu_factor"),
    ("linalg", "pinv"),
    ("linalg", "qr"),
    ("linalg", "slogdet"),
    ("linalg", "solve"),
    ("linalg", "solve_triangular"),
    ("linalg", "svd"),
    ("linalg", "tri_inv"),
    ("metal", "clear_cache"),
    ("metal", "device_info"),
    ("metal", "get_active_memory"),
    ("metal", "get_cache_memory"),
    ("metal", "get_peak_memory"),
    ("metal", "reset_peak_memory"),
    ("metal", "set_cache_limit"),
    ("metal", "set_memory_limit"),
    ("metal", "set_wired_limit"),
    ("metal", "start_capture"),
    ("metal", "stop_capture"),
    ("random", "multivariate_normal"),
];
