//! Normal numbers that depend on one another.

use super::normal;
use crate::array::Array;
use crate::device::{Device, Stream, with_stream};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::eval::eval;
use crate::ops::linalg::eigh;
use crate::ops::operand::{broadcast, cast, expect_real};
use crate::ops::{
    abs, add, all, any, expand_axes, greater, isfinite, less, matmul, max, maximum, multiply, sqrt,
    squeeze_axes, stop_gradient, subtract, swapaxes, where_,
};
use crate::shape::{Dims, Shape};

/// The symmetric roots V·√W·Vᵀ of covariances V·W·Vᵀ; NaN where one is not finite. They are computed in `float64`,
/// since the root of an eigenvalue that is 0 but for rounding is larger than that, and so on the CPU.
fn roots(op: &'static str, cov: &Array) -> Result<Array> {
    let narrow = cast(&stop_gradient(cov)?, DType::F32)?;
    if narrow.is_empty() {
        return Ok(narrow);
    }
    let expect = |is_wrong: &Array, what: &str| match any(is_wrong, (), false)?.item::<bool>()? {
        true => Err(Error::argument(op, format!("covariances {} are not {what}", cov.aval()))),
        false => Ok(()),
    };
    with_stream(Stream::of(Device::CPU), || {
        let wide = cast(&narrow, DType::F64)?;
        let is_finite = all(&isfinite(&wide)?, [-2, -1], true)?;
        let wide = where_(&is_finite, &wide, 0)?;
        let turned = swapaxes(&wide, -1, -2)?;
        let apart = abs(&subtract(&wide, &turned)?)?;
        let most = max(&abs(&wide)?, [-2, -1], true)?;
        expect(&greater(&apart, &multiply(&most, 1e-4)?)?, "symmetric")?;
        let (values, vectors) = eigh(&multiply(&add(&wide, &turned)?, 0.5)?, false)?;
        let most = max(&abs(&values)?, -1, true)?;
        // Rounding to `float32` makes zeros negative.
        expect(&less(&values, &multiply(&most, -1e-5)?)?, "positive semidefinite")?;
        let scales =
            expand_axes(&sqrt(&maximum(&values, 0)?)?, Dims::from_slice(&[cov.rank() - 2]))?;
        let root = matmul(&multiply(&vectors, &scales)?, &swapaxes(&vectors, -1, -2)?)?;
        let root = cast(&where_(&is_finite, &root, f64::NAN)?, DType::F32)?;
        eval(std::slice::from_ref(&root))?;
        Ok(root)
    })
}

/// Vectors of normal numbers with these means and covariances: the product of independent numbers with the symmetric
/// root of the covariances, and the means. The covariances are evaluated.
///
/// # Shapes
/// Means `[.., n]` and covariances `[.., n, n]` give `[.., n]`: the leading axes broadcast, also to those of `shape`, which
/// has none for n.
///
/// # Dtypes
/// Gives `float32`. No derivative passes to the covariances.
///
/// # Errors
/// Where the means have no axis, the covariances are no square matrices of as many rows, not symmetric or not positive
/// semidefinite, the shapes do not broadcast, and under `compile` and `vmap` of the covariances, where there are no
/// values.
///
/// # Example
/// ```
/// use cupola::{Array, ops::random};
/// let mean = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// let cov = Array::from_slice(&[2.0f32, 0.5, 0.5, 1.0], [2, 2])?;
/// let x = random::multivariate_normal(&mean, &cov, [100], Some(&random::key(0)))?;
/// assert_eq!(x.shape()[..], [100, 2]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn multivariate_normal(
    mean: &Array,
    cov: &Array,
    shape: impl Into<Shape>,
    key: Option<&Array>,
) -> Result<Array> {
    let (op, shape) = ("multivariate_normal", shape.into());
    let (n, rank) = match (mean.shape().last(), &cov.shape()[..]) {
        (Some(&n), [.., rows, columns]) if *rows == n && *columns == n => (n, cov.rank()),
        _ => {
            let detail = format!("means {} and covariances {} do not fit", mean.aval(), cov.aval());
            return Err(Error::shape(op, detail));
        }
    };
    expect_real(op, &[mean.into(), cov.into()])?;
    let batch = Shape::from(&mean.shape()[..mean.rank() - 1]);
    let batch = batch.broadcast(&Shape::from(&cov.shape()[..rank - 2]), op)?;
    let lead = if shape.is_empty() { batch } else { batch.broadcast(&shape, op)? };
    let whole: Shape = lead.iter().copied().chain([n]).collect();
    let roots = roots(op, cov)?;
    let drawn =
        expand_axes(&normal(whole.clone(), DType::F32, key)?, Dims::from_slice(&[lead.len()]))?;
    let moved = squeeze_axes(&matmul(&drawn, &roots)?, Dims::from_slice(&[lead.len()]))?;
    add(&broadcast(&moved, &whole)?, &cast(mean, DType::F32)?)
}
