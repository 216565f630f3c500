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
    abs, add, all, any, divide, expand_axes, expand_dims, greater, isfinite, less, matmul, max,
    maximum, multiply, negative, sqrt, squeeze_axes, stop_gradient, subtract, swapaxes, where_,
    zeros_like,
};
use crate::shape::{Dims, Shape};
use crate::transform::custom_function;

/// The symmetric roots V·√W·Vᵀ of covariances V·W·Vᵀ; NaN where one is not finite. They are computed in `float64`,
/// since the root of an eigenvalue that is 0 but for rounding is larger than that, and so on the CPU.
fn roots(op: &'static str, cov: &Array) -> Result<Array> {
    if cov.is_empty() {
        return cast(cov, DType::F32);
    }
    let expect = |is_wrong: &Array, what: &str| match any(is_wrong, (), false)?.item::<bool>()? {
        true => Err(Error::argument(op, format!("covariances {} are not {what}", cov.aval()))),
        false => Ok(()),
    };
    on_cpu(|| {
        let wide = cast(&cast(cov, DType::F32)?, DType::F64)?;
        let known = stop_gradient(&wide)?;
        let is_finite = all(&isfinite(&known)?, [-2, -1], true)?;
        let known = where_(&is_finite, &known, 0)?;
        let apart = abs(&subtract(&known, &turned(&known)?)?)?;
        let most = max(&abs(&known)?, [-2, -1], true)?;
        expect(&greater(&apart, &multiply(&most, 1e-4)?)?, "symmetric")?;
        let (values, vectors) = eigh(&symmetric(&known)?, false)?;
        let most = max(&abs(&values)?, -1, true)?;
        // Rounding to `float32` makes zeros negative.
        expect(&less(&values, &multiply(&most, -1e-5)?)?, "positive semidefinite")?;
        let scales = expand_dims(&sqrt(&maximum(&values, 0)?)?, -2)?;
        let root = matmul(&multiply(&vectors, &scales)?, &turned(&vectors)?)?;
        eval(std::slice::from_ref(&root))?;
        let moved = match cov.node.is_traced() {
            true => moving(&where_(&is_finite, &wide, 0)?, root)?,
            false => root,
        };
        cast(&where_(&is_finite, &moved, f64::NAN)?, DType::F32)
    })
}

/// Half of a matrix and its transpose.
fn symmetric(x: &Array) -> Result<Array> {
    multiply(&add(x, &turned(x)?)?, 0.5)
}

fn turned(x: &Array) -> Result<Array> {
    swapaxes(x, -1, -2)
}

/// As is recorded on the CPU, which has eigenvalues and `float64`.
fn on_cpu<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    with_stream(Stream::of(Device::CPU), f)
}

/// The same roots as functions of the covariances C: of R·R = C it follows that dR·R + R·dR = dC.
fn moving(cov: &Array, root: Array) -> Result<Array> {
    let moved = custom_function(|x: &[Array]| Ok(vec![x[1].clone()]))
        .with_jvp(|_, outputs, tangents| {
            on_cpu(|| Ok(vec![of_both_sides(&outputs[0], &symmetric(&tangents[0])?)?]))
        })
        .with_vjp(|inputs, outputs, cotangents| {
            on_cpu(|| {
                let slope = of_both_sides(&outputs[0], &symmetric(&cotangents[0])?)?;
                Ok(vec![slope, zeros_like(&inputs[1])?])
            })
        });
    Ok(moved.call(&[cov.clone(), root])?.swap_remove(0))
}

/// X of X·R + R·X = S for a symmetric R, by its eigenvalues w and their vectors V: V·X′·Vᵀ, where X′ has
/// (Vᵀ·S·V)ᵢⱼ/(wᵢ + wⱼ), and 0 of eigenvalues that are 0.
fn of_both_sides(root: &Array, sides: &Array) -> Result<Array> {
    let solved = custom_function(|x: &[Array]| {
        let (values, vectors) = eigh(&symmetric(&x[0])?, false)?;
        let sums = add(&expand_dims(&values, -1)?, &expand_dims(&values, -2)?)?;
        let least = multiply(&max(&abs(&sums)?, [-2, -1], true)?, 1e-12)?;
        let is_there = greater(&sums, &least)?;
        let inner = matmul(&matmul(&turned(&vectors)?, &x[1])?, &vectors)?;
        let inner = divide(&inner, &where_(&is_there, &sums, 1)?)?;
        let inner = where_(&is_there, &inner, 0)?;
        Ok(vec![matmul(&matmul(&vectors, &inner)?, &turned(&vectors)?)?])
    })
    .with_jvp(|inputs, outputs, tangents| {
        on_cpu(|| {
            let (x, by) = (&outputs[0], &tangents[0]);
            let moved = subtract(&tangents[1], &add(&matmul(x, by)?, &matmul(by, x)?)?)?;
            Ok(vec![of_both_sides(&inputs[0], &moved)?])
        })
    })
    .with_vjp(|inputs, outputs, cotangents| {
        on_cpu(|| {
            let of_sides = of_both_sides(&inputs[0], &cotangents[0])?;
            let x = turned(&outputs[0])?;
            let of_root = negative(&add(&matmul(&of_sides, &x)?, &matmul(&x, &of_sides)?)?)?;
            Ok(vec![of_root, of_sides])
        })
    });
    Ok(solved.call(&[root.clone(), sides.clone()])?.swap_remove(0))
}

/// Vectors of normal numbers with these means and covariances: the product of independent numbers with the symmetric
/// root of the covariances, and the means. The covariances are evaluated.
///
/// # Shapes
/// Means `[.., n]` and covariances `[.., n, n]` give `[.., n]`: the leading axes broadcast, also to those of `shape`, which
/// has none for n.
///
/// # Dtypes
/// Gives `float32`.
///
/// # Derivatives
/// By the means, and by the covariances those of their roots: 0 along what is 0 in both.
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
