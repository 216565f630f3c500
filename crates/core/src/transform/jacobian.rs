//! Jacobians, Hessians, and functions linearized at a point.

use super::grad::{Tape, finish, fitted, or_zeros, pull, push, trace_inputs};
use super::rules;
use super::vmap::vmap_traced;
use crate::array::Array;
use crate::array::scope::Scope;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::graph::trace::{ById, Handle, handle, tape};
use crate::ops;
use crate::shape::{Aval, Dims, Shape};

/// Which way a Jacobian is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A column at a time, from tangents of the arguments: for few arguments and many outputs.
    Forward,
    /// A row at a time, from cotangents of the outputs: for many arguments and few outputs.
    Reverse,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Forward => "jacfwd",
            Mode::Reverse => "jacrev",
        }
    }
}

/// A function that gives the derivatives of `f`'s outputs by the arguments `argnums`: for each output a list of one
/// array an argument, whose axes are those of the output and then those of the argument. They are computed a column
/// at a time, in one batch.
///
/// # Errors
/// The returned function fails where `f` does, where an argument is not there or is bool, which has no derivatives, for
/// real outputs of complex arguments, and where an op on the way has no derivative or batching rule.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::jacfwd};
/// let f = jacfwd(|x: &[Array]| Ok(vec![ops::square(&x[0])?]), &[0]);
/// let rows = f(&[Array::from_slice(&[1.0f32, 2.0], [2])?])?;
/// assert_eq!(rows[0][0].to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn jacfwd<'f>(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + 'f,
    argnums: &[usize],
) -> impl Fn(&[Array]) -> Result<Vec<Vec<Array>>> + 'f {
    let argnums = argnums.to_vec();
    move |primals| Ok(jacobian_once(Mode::Forward, &f, primals, &argnums)?.1)
}

/// What [`jacfwd`] gives, computed a row at a time, in one batch: cheaper where there are fewer outputs than arguments.
///
/// # Errors
/// As [`jacfwd`], and for complex outputs of real arguments, of which a row would hold the real part alone.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::jacrev};
/// let f = jacrev(|x: &[Array]| Ok(vec![ops::sum(&ops::square(&x[0])?, (), false)?]), &[0]);
/// let rows = f(&[Array::from_slice(&[1.0f32, 2.0], [2])?])?;
/// assert_eq!(rows[0][0].to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn jacrev<'f>(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + 'f,
    argnums: &[usize],
) -> impl Fn(&[Array]) -> Result<Vec<Vec<Array>>> + 'f {
    let argnums = argnums.to_vec();
    move |primals| Ok(jacobian_once(Mode::Reverse, &f, primals, &argnums)?.1)
}

/// A function that gives the second derivatives of `f`'s outputs by the arguments `argnums`: for each output a matrix
/// of arrays, `[output][first][second]`, whose axes are those of the output, of the first and of the second argument.
/// It is [`jacfwd`] of [`jacrev`].
///
/// # Errors
/// As these.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::hessian};
/// let cubes = |x: &[Array]| Ok(vec![ops::sum(&ops::power(&x[0], 3)?, (), false)?]);
/// let found = hessian(cubes, &[0])(&[Array::from_slice(&[1.0f32, 2.0], [2])?])?;
/// assert_eq!(found[0][0][0].to_vec::<f32>()?, [6.0, 0.0, 0.0, 12.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn hessian<'f>(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + 'f,
    argnums: &[usize],
) -> impl Fn(&[Array]) -> Result<Vec<Vec<Vec<Array>>>> + 'f {
    let count = argnums.len().max(1);
    let rows = jacrev(f, argnums);
    let all = jacfwd(move |x: &[Array]| Ok(rows(x)?.into_iter().flatten().collect()), argnums);
    move |primals| Ok(all(primals)?.chunks(count).map(<[_]>::to_vec).collect())
}

/// The outputs of `f`, and of its Jacobian a list of arrays an output; `f` is called once.
///
/// # Errors
/// As [`jacfwd`] and [`jacrev`].
pub fn jacobian_once(
    mode: Mode,
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    primals: &[Array],
    argnums: &[usize],
) -> Result<(Vec<Array>, Vec<Vec<Array>>)> {
    let op = mode.name();
    let mut wanted = Vec::with_capacity(argnums.len());
    for &index in argnums {
        let Some(primal) = primals.get(index) else {
            let detail = format!("argument {index} of {} is not there", primals.len());
            return Err(Error::argument(op, detail));
        };
        if !primal.dtype().is_differentiable() {
            let detail = format!("argument {index}, {}, has no derivatives", primal.aval());
            return Err(Error::dtype(op, detail));
        }
        wanted.push(primal.clone());
    }
    let scope = Scope::enter(op);
    let tracers = trace_inputs(&wanted, &scope)?;
    let mut arguments = primals.to_vec();
    for (&index, tracer) in argnums.iter().zip(&tracers) {
        arguments[index] = tracer.clone();
    }
    let outputs = f(&arguments)?;
    drop(arguments);
    expect_derivatives(mode, &outputs, &wanted)?;
    let nodes = tape(&outputs, &scope.0);
    let found = match mode {
        Mode::Forward => columns(&outputs, &tracers, &nodes)?,
        Mode::Reverse => rows(&outputs, &tracers, &nodes, &scope.0)?,
    };
    finish(scope, &nodes);
    Ok((outputs, found))
}

/// An error where the derivatives of real parts alone would be taken for those of complex numbers.
fn expect_derivatives(mode: Mode, outputs: &[Array], wanted: &[Array]) -> Result<()> {
    let is_complex = |a: &Array| a.dtype().kind() == Kind::Complex;
    let (from, to) = match mode {
        Mode::Forward => (wanted, outputs),
        Mode::Reverse => (outputs, wanted),
    };
    let (Some(from), Some(to)) = (
        from.iter().find(|a| is_complex(a)),
        to.iter().find(|a| !is_complex(a) && a.dtype().is_differentiable()),
    ) else {
        return Ok(());
    };
    let (output, argument, other) = match mode {
        Mode::Forward => (to, from, "its real and imaginary parts as arguments"),
        Mode::Reverse => (from, to, "jacfwd"),
    };
    let detail = format!(
        "the derivative of an output {} by an argument {} is no number: use {other}",
        output.aval(),
        argument.aval()
    );
    Err(Error::dtype(mode.name(), detail))
}

/// The identity matrix with rows of the shape of `like`.
fn basis(like: &Aval) -> Result<Array> {
    let size = like.shape.size();
    let shape: Shape = [size].into_iter().chain(like.shape.iter().copied()).collect();
    ops::reshape(&ops::eye(size, like.dtype)?, shape)
}

fn columns(outputs: &[Array], tracers: &[Array], nodes: &Tape) -> Result<Vec<Vec<Array>>> {
    let mut found = vec![Vec::with_capacity(tracers.len()); outputs.len()];
    for tracer in tracers {
        let own = tracer.aval();
        let parts = match own.shape.size() {
            0 => outputs.iter().map(|o| nothing(&[0], o)).collect::<Result<Vec<_>>>()?,
            _ => vmap_traced(&[Some(0)], &[basis(own)?], |tangent| {
                let known = push(nodes, ById::from_iter([(handle(tracer), tangent[0].clone())]))?;
                let part = |o: &Array| or_zeros(known.get(&handle(o)).cloned(), o);
                let parts = outputs.iter().map(part).collect::<Result<Vec<_>>>()?;
                Ok((parts, vec![0; outputs.len()]))
            })?,
        };
        for ((list, part), output) in found.iter_mut().zip(parts).zip(outputs) {
            let axes: Dims = (1..part.rank()).chain([0]).collect();
            let shape: Shape = output.aval().shape.iter().chain(&own.shape.0).copied().collect();
            list.push(ops::reshape(&ops::transpose(&part, axes)?, shape)?);
        }
    }
    Ok(found)
}

fn rows(
    outputs: &[Array],
    tracers: &[Array],
    nodes: &Tape,
    scope: &Scope,
) -> Result<Vec<Vec<Array>>> {
    let one = |output: &Array| -> Result<Vec<Array>> {
        let own = output.aval();
        let parts = match own.shape.size() {
            size if size == 0 || !own.dtype.is_differentiable() => {
                tracers.iter().map(|t| nothing(&[size], t)).collect::<Result<Vec<_>>>()?
            }
            _ => vmap_traced(&[Some(0)], &[basis(own)?], |cotangent| {
                let mut known: ById<Handle, Array> = ById::default();
                rules::accumulate(&mut known, handle(output), cotangent[0].clone())?;
                pull(nodes, tracers, scope, &mut known)?;
                let part = |t: &Array| or_zeros(known.get(&handle(t)).cloned(), t);
                let parts = tracers.iter().map(part).collect::<Result<Vec<_>>>()?;
                Ok((parts, vec![0; tracers.len()]))
            })?,
        };
        let shaped = |(part, tracer): (Array, &Array)| {
            let shape = own.shape.iter().chain(&tracer.aval().shape.0).copied();
            ops::reshape(&part, shape.collect::<Shape>())
        };
        parts.into_iter().zip(tracers).map(shaped).collect()
    };
    outputs.iter().map(one).collect()
}

/// Zeros with further leading axes.
fn nothing(lead: &[usize], like: &Array) -> Result<Array> {
    let own = like.aval();
    let shape: Shape = lead.iter().chain(&own.shape.0).copied().collect();
    let dtype = if own.dtype.is_differentiable() { own.dtype } else { DType::F32 };
    ops::zeros(shape, dtype)
}

/// A function's derivative at a point: the linear map that [`linearize`] found.
///
/// It holds what was computed on the way to the outputs.
pub struct Linear {
    tracers: Vec<Array>,
    outputs: Vec<Array>,
    nodes: Tape,
}

impl Linear {
    /// The products of the Jacobian with `tangents`, one a primal: one tangent an output.
    ///
    /// # Errors
    /// Where the tangents do not have the primals' shapes, or an op on the way has no derivative.
    pub fn apply(&self, tangents: &[Array]) -> Result<Vec<Array>> {
        let tangents = fitted("linearize", "tangents", tangents, &self.tracers)?;
        let known = push(&self.nodes, self.tracers.iter().map(handle).zip(tangents).collect())?;
        self.outputs.iter().map(|o| or_zeros(known.get(&handle(o)).cloned(), o)).collect()
    }
}

/// The outputs of `f` at `primals`, and its derivative there, which may be applied to any number of tangents: what
/// [`jvp`](super::jvp) gives, without `f` being called again.
///
/// # Errors
/// Where `f` fails.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::linearize};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// let (y, slope) = linearize(|x| Ok(vec![ops::square(&x[0])?]), &[x])?;
/// assert_eq!(y[0].to_vec::<f32>()?, [1.0, 4.0]);
/// let moved = slope.apply(&[Array::from_slice(&[1.0f32, 10.0], [2])?])?;
/// assert_eq!(moved[0].to_vec::<f32>()?, [2.0, 40.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn linearize(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    primals: &[Array],
) -> Result<(Vec<Array>, Linear)> {
    let scope = Scope::enter("linearize");
    let tracers = trace_inputs(primals, &scope)?;
    let outputs = f(&tracers)?;
    let nodes = tape(&outputs, &scope.0);
    finish(scope, &nodes);
    Ok((outputs.clone(), Linear { tracers, outputs, nodes }))
}
