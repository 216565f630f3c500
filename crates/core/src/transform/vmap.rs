//! A function over a batch, from the function of one example.

use std::collections::HashMap;

use crate::array::Array;
use crate::array::scope::Scope;
use crate::error::{Error, Result};
use crate::graph::trace::{Handle, handle, tape};
use crate::holders;
use crate::ops;
use crate::prim::Batched;
use crate::shape::{Aval, normalize_axis};

/// A function that runs `f` over a batch: along axis `in_axes[i]` of argument i, or with the whole
/// argument for each where that is `None`. The outputs carry the batch at axis `out_axes[i]`.
///
/// `f` sees one example and is called once; it cannot read values.
///
/// # Errors
/// The returned function fails where `f` does, where the batch sizes differ, or where an op has no
/// batching rule.
///
/// # Example
/// ```
/// use cupola::{Array, ops, transform::vmap};
/// let dot = |v: &[Array]| Ok(vec![ops::sum(&(&v[0] * &v[1]), (), false)?]);
/// let rows = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let v = Array::from_slice(&[1.0f32, 10.0], [2])?;
/// let y = vmap(dot, &[Some(0), None], &[0])(&[rows, v])?;
/// assert_eq!(y[0].to_vec::<f32>()?, [21.0, 43.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn vmap<'f>(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + 'f,
    in_axes: &[Option<isize>],
    out_axes: &[isize],
) -> impl Fn(&[Array]) -> Result<Vec<Array>> + 'f {
    let (in_axes, out_axes) = (in_axes.to_vec(), out_axes.to_vec());
    move |inputs| vmap_traced(&in_axes, inputs, |tracers| Ok((f(tracers)?, out_axes.clone())))
}

/// [`vmap`] of a function that gives the axes of its outputs together with them, called at once.
///
/// # Errors
/// As the function that [`vmap`] gives.
pub fn vmap_traced(
    in_axes: &[Option<isize>],
    inputs: &[Array],
    f: impl FnOnce(&[Array]) -> Result<(Vec<Array>, Vec<isize>)>,
) -> Result<Vec<Array>> {
    if in_axes.len() != inputs.len() {
        return Err(Error::argument(
            "vmap",
            format!("{} axes were given for {} arguments", in_axes.len(), inputs.len()),
        ));
    }
    let mut size = None;
    let mut arguments = Vec::with_capacity(inputs.len());
    for (input, axis) in inputs.iter().zip(in_axes) {
        let Some(axis) = axis else {
            arguments.push(Batched { array: input.clone(), batched: false });
            continue;
        };
        let axis = normalize_axis("vmap", *axis, input.rank())?;
        let length = input.aval().shape[axis];
        if *size.get_or_insert(length) != length {
            return Err(Error::shape(
                "vmap",
                format!("batches of {} and {length} do not go together", size.unwrap_or(0)),
            ));
        }
        let array = ops::moveaxis(input, axis as isize, 0)?;
        arguments.push(Batched { array, batched: true });
    }
    let Some(size) = size else {
        return Err(Error::argument("vmap", "no argument has an axis to run over"));
    };
    let scope = Scope::enter("vmap");
    let tracers: Vec<Array> = arguments
        .iter()
        .map(|a| match a.batched {
            true => {
                let shape = &a.array.aval().shape[1..];
                Array::placeholder(Aval::new(shape, a.array.dtype()), &scope.0)
            }
            false => a.array.clone(),
        })
        .collect();
    let (outputs, out_axes) = f(&tracers)?;
    if out_axes.len() != outputs.len() {
        return Err(Error::argument(
            "vmap",
            format!("{} axes were given for {} outputs", out_axes.len(), outputs.len()),
        ));
    }
    let mut known: HashMap<Handle, Batched> = HashMap::new();
    for (tracer, argument) in tracers.iter().zip(arguments) {
        if argument.batched {
            known.insert(handle(tracer), argument);
        }
    }
    for (array, inputs) in tape(&outputs, &scope.0) {
        if known.contains_key(&handle(&array)) {
            continue;
        }
        let args: Vec<Batched> = inputs
            .iter()
            .map(|i| {
                let whole = || Batched { array: i.clone(), batched: false };
                known.get(&handle(i)).cloned().unwrap_or_else(whole)
            })
            .collect();
        let node = &array.node;
        let results = holders::again_at(node.line.as_ref(), || node.op.vmap(&args, size))?;
        for (output, result) in results.into_iter().enumerate() {
            known.insert((handle(&array).0, output as u32), result);
        }
    }
    drop(scope);
    outputs
        .iter()
        .zip(&out_axes)
        .map(|(output, &axis)| {
            let array = match known.get(&handle(output)).cloned() {
                Some(Batched { array, batched: true }) => array,
                Some(Batched { array, batched: false }) => repeat(&array, size)?,
                None => repeat(output, size)?,
            };
            ops::moveaxis(&array, 0, axis)
        })
        .collect()
}

/// An output that is the same for every example.
fn repeat(array: &Array, size: usize) -> Result<Array> {
    let shape: Vec<usize> =
        std::iter::once(size).chain(array.aval().shape.iter().copied()).collect();
    ops::broadcast_to(array, shape)
}
