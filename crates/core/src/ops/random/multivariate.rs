//! Normal numbers that depend on one another.

use super::normal;
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::operand::{broadcast, cast, expect_real};
use crate::ops::{add, expand_axes, matmul, squeeze_axes};
use crate::shape::{Dims, Shape};

/// How often the method of Jacobi goes over a matrix; it is done after about ten times.
const SWEEPS: usize = 60;

/// The symmetric root of a symmetric matrix of n rows: V·√D·Vᵀ of its eigenvalues D and eigenvectors V, by the cyclic
/// method of Jacobi (G. H. Golub and C. F. Van Loan, *Matrix Computations*, § 8.5). `None` where there is a negative
/// eigenvalue.
fn root(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    if matrix.iter().any(|v| !v.is_finite()) {
        return Some(vec![f64::NAN; n * n]);
    }
    let mut a: Vec<f64> =
        (0..n * n).map(|i| 0.5 * (matrix[i] + matrix[i % n * n + i / n])).collect();
    let mut v: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i / n == i % n))).collect();
    let size: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..SWEEPS {
        let off: f64 = (0..n * n).filter(|i| i / n != i % n).map(|i| a[i] * a[i]).sum();
        if off <= 1e-30 * size {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p * n + q] == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * a[p * n + q]);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                let turn = |m: &mut [f64], i: usize, j: usize| {
                    let (x, y) = (m[i], m[j]);
                    (m[i], m[j]) = (c * x - s * y, s * x + c * y);
                };
                for k in 0..n {
                    turn(&mut a, k * n + p, k * n + q);
                    turn(&mut v, k * n + p, k * n + q);
                }
                for k in 0..n {
                    turn(&mut a, p * n + k, q * n + k);
                }
            }
        }
    }
    let values: Vec<f64> = (0..n).map(|i| a[i * n + i]).collect();
    let most = values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    // Rounding to `float32` makes zeros negative.
    if values.iter().any(|&v| v < -1e-5 * most) {
        return None;
    }
    let entry = |i: usize| {
        let term = |k: usize| values[k].max(0.0).sqrt() * v[i / n * n + k] * v[i % n * n + k];
        (0..n).map(term).sum()
    };
    Some((0..n * n).map(entry).collect())
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
    let values = cast(cov, DType::F32)?.to_vec::<f32>()?;
    let mut roots: Vec<f32> = Vec::with_capacity(values.len());
    for matrix in values.chunks(n.saturating_mul(n).max(1)) {
        let matrix: Vec<f64> = matrix.iter().map(|&v| f64::from(v)).collect();
        let most = matrix.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let is_uneven = |i: usize| (matrix[i] - matrix[i % n * n + i / n]).abs() > 1e-4 * most;
        if (0..matrix.len()).any(is_uneven) {
            let detail = format!("covariances {} are not symmetric", cov.aval());
            return Err(Error::argument(op, detail));
        }
        let Some(root) = root(&matrix, n) else {
            let detail = format!("covariances {} are not positive semidefinite", cov.aval());
            return Err(Error::argument(op, detail));
        };
        roots.extend(root.into_iter().map(|v| v as f32));
    }
    let roots = Array::from_slice(&roots, cov.shape())?;
    let drawn =
        expand_axes(&normal(whole.clone(), DType::F32, key)?, Dims::from_slice(&[lead.len()]))?;
    let moved = squeeze_axes(&matmul(&drawn, &roots)?, Dims::from_slice(&[lead.len()]))?;
    add(&broadcast(&moved, &whole)?, &cast(mean, DType::F32)?)
}
