//! Derivatives of functions: reverse mode and forward mode.
//!
//! The gradient by a complex number is the direction of steepest ascent, ∂L/∂Re z + i·∂L/∂Im z, as
//! in MLX and PyTorch: cotangents pair with tangents as Re(Σ conj(c)·t). The rules of primitives
//! pair them as Re(Σ c·t), which needs no conjugates; what is given and what is found is conjugated
//! here, where it comes in and goes out.

use std::sync::Arc;

use smallvec::SmallVec;

use super::rules;
use crate::array::scope::{Scope, ScopeGuard, Scopes};
use crate::array::{Array, Progress};
use crate::error::{Error, Result};
use crate::graph::trace::{ById, Handle, handle, tape};
use crate::graph::{Graph, Ref};
use crate::ops::conjugate;
use crate::prim::composite::{Composite, QuantizedDot};
use crate::prim::{Diff, KernelOp, Op, Primitive, record};
use crate::shape::Aval;
use crate::with_payload;

/// The values of `f` at `primals` and the products of `cotangents`, one an output, with its
/// Jacobian: one cotangent a primal. Of complex numbers the Jacobian is conjugated: the cotangent of
/// a real output is the direction of its steepest ascent.
///
/// # Errors
/// Where `f` fails, the cotangents do not have the outputs' shapes, or an op on the way has no
/// derivative.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::vjp};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// let ones = Array::from_slice(&[1.0f32, 1.0], [2])?;
/// let (y, dx) = vjp(|x| Ok(vec![ops::square(&x[0])?]), &[x], &[ones])?;
/// assert_eq!(y[0].to_vec::<f32>()?, [1.0, 4.0]);
/// assert_eq!(dx[0].to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn vjp(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    primals: &[Array],
    cotangents: &[Array],
) -> Result<(Vec<Array>, Vec<Array>)> {
    let all: Vec<usize> = (0..primals.len()).collect();
    reverse("vjp", f, primals, &all, |outputs| fitted("vjp", "cotangents", cotangents, outputs))
}

/// The values of `f` at `primals` and the products of its Jacobian with `tangents`, one a primal:
/// one tangent an output.
///
/// # Errors
/// Where `f` fails, the tangents do not have the primals' shapes, or an op on the way has no
/// derivative.
pub fn jvp(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    primals: &[Array],
    tangents: &[Array],
) -> Result<(Vec<Array>, Vec<Array>)> {
    let tangents = fitted("jvp", "tangents", tangents, primals)?;
    let scope = Scope::enter("jvp");
    let tracers = trace_inputs(primals, &scope)?;
    let outputs = f(&tracers)?;
    let nodes = tape(&outputs, &scope.0);
    let known = tracers.iter().map(handle).zip(tangents).collect();
    let known = push(&nodes, known)?;
    let tangents = outputs
        .iter()
        .map(|o| or_zeros(known.get(&handle(o)).cloned(), o))
        .collect::<Result<_>>()?;
    finish(scope, &nodes);
    Ok((outputs, tangents))
}

/// A function that gives what `f` returns, and the gradients of its first output by the arguments
/// `argnums`, in their order.
///
/// # Errors
/// The returned function fails where `f` does, where the first output is not one real number.
/// Gradients by integers are integers: what the rules give, rounded towards zero; by integers that are indices there
/// are none, which is an error. Those by complex numbers are directions of steepest ascent, ∂L/∂Re z + i·∂L/∂Im z.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::value_and_grad};
/// let f = value_and_grad(|x: &[Array]| Ok(vec![ops::sum(&ops::square(&x[0])?, (), false)?]), &[0]);
/// let (values, grads) = f(&[Array::from_slice(&[3.0f32, 4.0], [2])?])?;
/// assert_eq!(values[0].item::<f32>()?, 25.0);
/// assert_eq!(grads[0].to_vec::<f32>()?, [6.0, 8.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn value_and_grad<'f>(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + 'f,
    argnums: &[usize],
) -> impl Fn(&[Array]) -> Result<(Vec<Array>, Vec<Array>)> + 'f {
    let argnums = argnums.to_vec();
    move |primals| value_and_grad_once(&f, primals, &argnums)
}

/// What the function that [`value_and_grad`] gives returns, for a function that is called once.
///
/// # Errors
/// As [`value_and_grad`].
pub fn value_and_grad_once(
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    primals: &[Array],
    argnums: &[usize],
) -> Result<(Vec<Array>, Vec<Array>)> {
    reverse("value_and_grad", f, primals, argnums, |outputs| {
        let Some(loss) = outputs.first() else {
            return Err(Error::argument("value_and_grad", "the function returned nothing"));
        };
        Ok(vec![seed("value_and_grad", loss)?])
    })
}

/// A function that gives the gradients of `f`'s first output by the arguments `argnums`.
///
/// # Errors
/// As [`value_and_grad`].
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::grad};
/// let cube = |x: &[Array]| Ok(vec![&x[0] * &x[0] * &x[0]]);
/// let second = grad(move |x: &[Array]| grad(cube, &[0])(x), &[0]);
/// assert_eq!(second(&[Array::scalar(2.0f32)])?[0].item::<f32>()?, 12.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn grad<'f>(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + 'f,
    argnums: &[usize],
) -> impl Fn(&[Array]) -> Result<Vec<Array>> + 'f {
    let both = value_and_grad(f, argnums);
    move |primals| Ok(both(primals)?.1)
}

fn reverse(
    op: &'static str,
    f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    primals: &[Array],
    argnums: &[usize],
    seeds: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
) -> Result<(Vec<Array>, Vec<Array>)> {
    let mut wanted = Vec::with_capacity(argnums.len());
    for &index in argnums {
        let Some(primal) = primals.get(index) else {
            return Err(Error::argument(
                op,
                format!("argument {index} of {} is not there", primals.len()),
            ));
        };
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
    let seeds = seeds(&outputs)?;
    let nodes = tape(&outputs, &scope.0);
    let mut known: ById<Handle, Array> =
        ById::with_capacity_and_hasher(nodes.len(), Default::default());
    for (output, seed) in outputs.iter().zip(seeds) {
        if output.dtype().is_differentiable() {
            rules::accumulate(&mut known, handle(output), conjugate(&seed)?)?;
        }
    }
    pull(&nodes, &tracers, &scope.0, &mut known)?;
    let gradient = |t: &Array| conjugate(&or_zeros(known.remove(&handle(t)), t)?);
    let gradients = tracers.iter().map(gradient).collect::<Result<_>>()?;
    finish(scope, &nodes);
    Ok((outputs, gradients))
}

/// The gradients of `loss` by `variables`, which it was made from in `scope`.
pub(crate) fn gradients_of(
    loss: &Array,
    variables: &[&Array],
    scope: &Scope,
) -> Result<Vec<Array>> {
    let seed = seed("gradients", loss)?;
    for (index, variable) in variables.iter().enumerate() {
        let above = tape(std::slice::from_ref(*variable), scope);
        let is_above = |v: &Array| above.iter().any(|(a, _)| Arc::ptr_eq(&a.node, &v.node));
        let others = variables.iter().enumerate().filter(|(other, _)| *other != index);
        if others.map(|(_, v)| v).any(|v| is_above(v)) {
            let text = "one of the variables is made from another, or there twice";
            return Err(Error::argument("gradients", text));
        }
    }
    let nodes = tape(std::slice::from_ref(loss), scope);
    let tracers: Vec<Array> = variables.iter().map(|&v| v.clone()).collect();
    let mut known = ById::from_iter([(handle(loss), seed)]);
    pull(&nodes, &tracers, scope, &mut known)?;
    tracers.iter().map(|t| conjugate(&or_zeros(known.get(&handle(t)).cloned(), t)?)).collect()
}

/// The cotangent of a loss.
fn seed(op: &'static str, loss: &Array) -> Result<Array> {
    if loss.aval().shape.size() != 1 || loss.dtype().is_complex() {
        let text = format!("the first output must be one real number, it is {}", loss.aval());
        return Err(Error::shape(op, text));
    }
    Ok(Array::constant(1.0, loss.aval().clone()))
}

/// Nodes with their inputs, each after these.
pub(super) type Tape = Vec<(Array, crate::array::Inputs)>;

/// Fails where integers that derivatives are taken by become indices, as in MLX: nobody means that.
fn refuse_indices(nodes: &Tape, integers: impl Iterator<Item = Handle>) -> Result<()> {
    let mut integers: ById<Handle, ()> = integers.map(|handle| (handle, ())).collect();
    if integers.is_empty() {
        return Ok(());
    }
    for (array, inputs) in nodes {
        let known: SmallVec<[bool; 4]> =
            inputs.iter().map(|i| integers.contains_key(&handle(i))).collect();
        let avals: SmallVec<[&Aval; 4]> = inputs.iter().map(Array::aval).collect();
        let passed = passed_on(&array.node.op, &avals, &known, &array.node.avals)?;
        let made = outputs_of(array);
        let of_them = made.iter().zip(passed).filter(|(_, is_passed)| *is_passed);
        integers.extend(of_them.map(|(out, _)| (handle(out), ())));
    }
    Ok(())
}

/// Which outputs of an op are integers with a derivative by those of its inputs that are `known`; an error where one of
/// these is an index. What has derivatives of its own, and loops, are not looked into.
fn passed_on(
    op: &Op,
    inputs: &[&Aval],
    known: &[bool],
    outputs: &[Aval],
) -> Result<SmallVec<[bool; 1]>> {
    let nothing = || Ok(SmallVec::from_elem(false, outputs.len()));
    if !known.contains(&true) {
        return nothing();
    }
    if let Op::Call(call) = op {
        return if call.rules.is_none() { passed_through(&call.body, known) } else { nothing() };
    }
    let is_index =
        |kernel: &KernelOp| kernel.index_bounds(inputs).iter().any(|&(operand, _)| known[operand]);
    if matches!(op, Op::Kernel(kernel) if is_index(kernel)) {
        return Err(Error::NoDerivative {
            op: op.name(),
            detail: "there is no derivative by indices: use stop_gradient on them".to_owned(),
        });
    }
    if matches!(op, Op::Composite(Composite::QuantizedDot(_))) && known[QuantizedDot::WORDS] {
        return Err(QuantizedDot::refuse_words());
    }
    let is_hidden = matches!(op, Op::Control(_) | Op::Composite(_) | Op::Custom(_))
        || with_payload!(op, payload => matches!(payload.diff(), Diff::Zero));
    Ok(outputs.iter().map(|aval| !is_hidden && aval.dtype.is_integer()).collect())
}

/// [`passed_on`] of a call's body.
fn passed_through(body: &Graph, known: &[bool]) -> Result<SmallVec<[bool; 1]>> {
    let body = body.borrowed();
    let mut passed: Vec<SmallVec<[bool; 1]>> = Vec::with_capacity(body.nodes.len());
    let mut given = known.iter();
    for node in &body.nodes {
        if node.op.is_input() {
            passed.push(SmallVec::from_elem(given.next() == Some(&true), 1));
            continue;
        }
        let of = |r: &Ref| passed[r.node as usize][r.output as usize];
        let own: SmallVec<[bool; 4]> = node.inputs.iter().map(of).collect();
        let aval = |r: &Ref| &body.nodes[r.node as usize].avals[r.output as usize];
        let avals: SmallVec<[&Aval; 4]> = node.inputs.iter().map(aval).collect();
        passed.push(passed_on(node.op, &avals, &own, node.avals)?);
    }
    Ok(body.outputs.iter().map(|r| passed[r.node as usize][r.output as usize]).collect())
}

fn is_integer(array: &Array) -> bool {
    array.dtype().is_integer()
}

/// The tangents of all on the tape that depends on what some are known of.
pub(super) fn push(nodes: &Tape, mut known: ById<Handle, Array>) -> Result<ById<Handle, Array>> {
    refuse_indices(nodes, known.iter().filter(|(_, t)| is_integer(t)).map(|(handle, _)| *handle))?;
    for (array, inputs) in nodes {
        let tangents: Vec<Option<Array>> =
            inputs.iter().map(|i| known.get(&handle(i)).cloned()).collect();
        if tangents.iter().all(Option::is_none) {
            continue;
        }
        let outs = outputs_of(array);
        for (out, tangent) in outs.iter().zip(rules::jvp(&array.node.op, inputs, &outs, &tangents)?)
        {
            if let Some(tangent) = tangent {
                known.insert(handle(out), tangent);
            }
        }
    }
    Ok(known)
}

/// The cotangents of all on the tape that leads to what some are known of.
pub(super) fn pull(
    nodes: &Tape,
    tracers: &[Array],
    scope: &Scope,
    known: &mut ById<Handle, Array>,
) -> Result<()> {
    refuse_indices(nodes, tracers.iter().filter(|t| is_integer(t)).map(handle))?;
    let on_tape = |a: &Array| a.node.scopes.as_ref().is_some_and(|m| m.contains(scope));
    let wanted = |a: &Array| a.dtype().is_differentiable() && on_tape(a);
    let keyed = |a: &Array| (handle(a), a.clone());
    // A tracer's own input lies outside: its cotangent stays with the tracer.
    let is_tracer = |a: &Array| tracers.iter().any(|t| Arc::ptr_eq(&t.node, &a.node));
    let entries =
        nodes.iter().rev().filter(|(array, inputs)| !inputs.is_empty() && !is_tracer(array)).map(
            |(array, inputs)| rules::TapeEntry {
                op: &array.node.op,
                inputs: inputs.iter().map(keyed).collect(),
                outputs: outputs_of(array).iter().map(keyed).collect(),
                wanted: inputs.iter().map(wanted).collect(),
            },
        );
    rules::reverse(entries, known)
}

/// Ends the trace: what was computed while it ran lets go of its inputs now.
pub(super) fn finish(scope: ScopeGuard, nodes: &Tape) {
    drop(scope);
    for (array, _) in nodes {
        if array.node.is_traced() {
            continue;
        }
        let mut state = array.node.state();
        if matches!(state.progress, Progress::Ready(_)) {
            let inputs = std::mem::take(&mut state.inputs);
            drop(state);
            drop(inputs);
            array.node.release_unheld();
        }
    }
}

/// Arrays that stand for `primals` inside the traced function, and can be read.
pub(super) fn trace_inputs(primals: &[Array], scope: &ScopeGuard) -> Result<Vec<Array>> {
    let scopes = Scopes::of(&scope.0);
    primals.iter().map(|p| Array::tracer(p, &scopes)).collect()
}

fn outputs_of(array: &Array) -> SmallVec<[Array; 1]> {
    Array::all_of(&array.node).collect()
}

pub(super) fn or_zeros(tangent: Option<Array>, like: &Array) -> Result<Array> {
    Ok(tangent.unwrap_or_else(|| Array::constant(0.0, like.aval().clone())))
}

/// Tangents or cotangents of `like`, in its dtypes.
pub(super) fn fitted(
    op: &'static str,
    what: &str,
    given: &[Array],
    like: &[Array],
) -> Result<Vec<Array>> {
    let fits = given.len() == like.len()
        && given.iter().zip(like).all(|(g, l)| g.aval().shape == l.aval().shape);
    if fits {
        return given.iter().zip(like).map(|(g, l)| record::cast(g, l.dtype())).collect();
    }
    let avals = |arrays: &[Array]| arrays.iter().map(|a| a.aval().to_string()).collect::<Vec<_>>();
    Err(Error::shape(
        op,
        format!("{what} [{}] do not match [{}]", avals(given).join(", "), avals(like).join(", ")),
    ))
}
