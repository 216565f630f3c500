//! Control flow: conditions are evaluated, and loops unrolled, where they hang on what is known. Where a
//! condition depends on an input that is traced, both branches are recorded, and loops with a condition.

use std::cell::RefCell;

use cupola_core::Error as Core;
use cupola_core::transform::{self, LoopOptions};

use super::super::graph::Graph;
use super::prelude::*;
use crate::lowering::movement::part;

/// Whether a condition of one element holds, which is evaluated.
fn holds(value: &Value) -> Result<bool, Fault> {
    let array = &value.tensor()?.array;
    match ops::astype(array, DType::Bool)?.to_vec::<bool>()?[..] {
        [holds] => Ok(holds),
        _ => Err(Fault::invalid(format!("a condition of {} is not one element", array.shape()))),
    }
}

/// Bodies that are recorded by functions of `transform`: what is wrong in one comes out as it was.
#[derive(Default)]
pub struct Bodies {
    fault: RefCell<Option<Fault>>,
    /// The element types of what a body gave.
    elements: RefCell<Vec<Element>>,
}

impl Bodies {
    /// What a body gave, on its way into a transform.
    pub fn given<T>(&self, made: Result<T, Fault>) -> cupola_core::Result<T> {
        made.map_err(|fault| {
            let error = Core::User(fault.to_string());
            self.fault.replace(Some(fault));
            error
        })
    }

    /// The arrays of values, which have to be tensors.
    fn arrays(&self, values: Outcome) -> Result<Vec<Array>, Fault> {
        let values = values?;
        let tensors = values.iter().map(Value::tensor).collect::<Result<Vec<_>, _>>()?;
        self.elements.replace(tensors.iter().map(|t| t.element).collect());
        Ok(tensors.iter().map(|t| t.array.clone()).collect())
    }

    /// What a transform gave.
    pub fn made<T>(&self, made: cupola_core::Result<T>) -> Result<T, Fault> {
        made.map_err(|error| self.fault.take().unwrap_or(Fault::Core(error)))
    }

    /// Arrays with the element types of what the bodies gave, from the one of number `first` on.
    fn values(&self, arrays: Vec<Array>, first: usize) -> Outcome {
        let elements = self.elements.borrow();
        let pairs = arrays.into_iter().zip(&elements[first..]);
        pairs.map(|(array, &element)| Ok(Tensor::new(array, element)?.into())).collect()
    }
}

/// Whether something was to be read that a transform traces.
fn is_traced(fault: &Fault) -> bool {
    matches!(fault.root(), Fault::Core(Core::Traced(_)))
}

/// One bool, of an array of one element.
fn one_bool(array: &Array) -> Made {
    if array.aval().shape.size() != 1 {
        return Err(Fault::invalid(format!("a condition of {} is not one element", array.shape())));
    }
    Ok(ops::reshape(&ops::astype(array, DType::Bool)?, ())?)
}

fn if_(n: &Node<'_>) -> Outcome {
    let branch = match holds(n.value(0)?) {
        Ok(true) => "then_branch",
        Ok(false) => "else_branch",
        Err(fault) if is_traced(&fault) => return choose(n),
        Err(fault) => return Err(fault),
    };
    n.call(n.graph(branch)?, Vec::new())
}

/// Both branches, of which the condition takes one when it is known.
fn choose(n: &Node<'_>) -> Outcome {
    let bodies = Bodies::default();
    let branch = |name: &'static str| {
        let bodies = &bodies;
        move |_: &[Array]| {
            let values = n.graph(name).and_then(|graph| n.call(graph, Vec::new()));
            bodies.given(bodies.arrays(values))
        }
    };
    let condition = one_bool(n.x(0)?)?;
    let made = transform::cond(&condition, branch("then_branch"), branch("else_branch"), &[]);
    bodies.values(bodies.made(made)?, 0)
}

/// Each list of equal tensors as one tensor with a new axis.
fn stacked(arrays: Vec<Vec<Value>>, axes: &[i64], empty: &[Value]) -> Outcome {
    let mut out = Vec::with_capacity(arrays.len());
    for (i, values) in arrays.into_iter().enumerate() {
        let Some(first) = values.first() else {
            out.extend(empty.get(i).cloned());
            continue;
        };
        let element = first.tensor()?.element;
        let axis = axes.get(i).copied().unwrap_or(0);
        let tensors =
            values.iter().map(|v| Ok(&v.tensor()?.array)).collect::<Result<Vec<_>, Fault>>()?;
        let axis = node::axis(axis, tensors[0].rank() + 1)?;
        out.push(Tensor::new(ops::stack(&tensors, axis as isize)?, element)?.into());
    }
    Ok(out)
}

/// What a loop without a round gives for its stacked outputs: nothing along the new axis.
fn nothing(body: &Graph, from: usize) -> Result<Vec<Value>, Fault> {
    let mut out = Vec::new();
    for port in body.outputs.iter().skip(from) {
        let element = port.element.unwrap_or(Element::Float);
        let mut sizes = vec![0];
        for size in port.sizes.iter().flatten() {
            sizes.push(match size {
                super::super::graph::Size::Known(size) => *size,
                _ => 0,
            });
        }
        out.push(Tensor::new(ops::zeros(sizes, element.dtype())?, element)?.into());
    }
    Ok(out)
}

fn loop_(n: &Node<'_>) -> Outcome {
    match unrolled(n) {
        Err(fault) if is_traced(&fault) => repeated(n),
        made => made,
    }
}

/// A loop that ends when its condition, or the number of its rounds, says so: as these are known.
fn repeated(n: &Node<'_>) -> Outcome {
    let body = n.graph("body")?;
    let carried = n.count().saturating_sub(2);
    if body.outputs.len() > carried + 1 {
        return Err(Fault::unsupported(
            "the number of rounds depends on the values of inputs, and so would the sizes of the outputs that are \
             stacked",
        ));
    }
    let most = match n.maybe(0)? {
        Some(count) => Some(ops::reshape(&ops::astype(count, DType::I64)?, ())?),
        None => None,
    };
    let first = match n.inputs.get(1) {
        Some(Some(condition)) => one_bool(&condition.tensor()?.array)?,
        _ => Array::scalar(true),
    };
    let tensors = (2..n.count()).map(|i| n.tensor(i)).collect::<Result<Vec<_>, _>>()?;
    let elements: Vec<Element> = tensors.iter().map(|t| t.element).collect();
    let mut init = vec![Array::scalar(0i64), first];
    init.extend(tensors.iter().map(|t| t.array.clone()));
    let bodies = Bodies::default();
    let goes_on = |now: &[Array]| match &most {
        Some(most) => ops::logical_and(&now[1], &ops::less(&now[0], most)?),
        None => Ok(now[1].clone()),
    };
    let round = |now: &[Array]| -> Result<Vec<Array>, Fault> {
        let mut inputs: Vec<Value> = vec![now[0].clone().into(), now[1].clone().into()];
        for (array, &element) in now[2..].iter().zip(&elements) {
            inputs.push(Tensor::new(array.clone(), element)?.into());
        }
        let mut made = bodies.arrays(n.call(body, inputs))?;
        made[0] = one_bool(&made[0])?;
        made.insert(0, ops::add(&now[0], 1)?);
        Ok(made)
    };
    let made = transform::while_loop(goes_on, |now| bodies.given(round(now)), &init, None);
    bodies.values(bodies.made(made)?.split_off(2), 1)
}

fn unrolled(n: &Node<'_>) -> Outcome {
    let body = n.graph("body")?;
    let most = match n.maybe(0)? {
        Some(count) => node::ints(count)?.first().copied().unwrap_or(0),
        None => i64::MAX,
    };
    let mut goes_on = match n.inputs.get(1) {
        Some(Some(condition)) => holds(condition)?,
        _ => true,
    };
    let endless = most == i64::MAX && n.inputs.get(1).is_none_or(Option::is_none);
    let carried = n.count().saturating_sub(2);
    if body.inputs.len() != carried + 2 || body.outputs.len() < carried + 1 {
        return Err(Fault::invalid(format!("the body does not carry {carried} values")));
    }
    let mut state: Vec<Value> =
        (2..n.count()).map(|i| n.value(i).cloned()).collect::<Result<_, _>>()?;
    let scanned = body.outputs.len() - carried - 1;
    let mut rounds: Vec<Vec<Value>> = vec![Vec::new(); scanned];
    let mut round = 0i64;
    let mut condition: Value = Array::scalar(true).into();
    let constant = condition_is_constant(body);
    while goes_on && round < most {
        let mut inputs = vec![super::super::value::Tensor::folded_int(round)?.into(), condition];
        inputs.append(&mut state);
        let mut outputs = n.call(body, inputs)?.into_iter();
        condition = outputs.next().unwrap_or(Value::Nothing);
        // A condition that the body hands on is not evaluated again.
        if !constant {
            goes_on = holds(&condition)?;
        } else if endless {
            return Err(Fault::invalid("the loop does not end"));
        }
        state = outputs.by_ref().take(carried).collect();
        rounds.iter_mut().zip(outputs).for_each(|(list, value)| list.push(value));
        round += 1;
    }
    state.extend(stacked(rounds, &[], &nothing(body, carried + 1)?)?);
    Ok(state)
}

/// Whether a body gives the condition that it is given.
fn condition_is_constant(body: &Graph) -> bool {
    let (Some(given), Some(made)) = (body.inputs.get(1), body.outputs.first()) else {
        return false;
    };
    let mut name = &made.name;
    while let Some(step) = body.steps.iter().find(|s| s.outputs.contains(name)) {
        match (step.op_type.as_str(), step.inputs.first()) {
            ("Identity", Some(from)) => name = from,
            _ => return false,
        }
    }
    *name == given.name
}

/// The directions and axes of a scan's inputs or outputs.
fn along(n: &Node<'_>, name: &str, count: usize) -> Result<Vec<i64>, Fault> {
    match n.ints(name)? {
        None => Ok(vec![0; count]),
        Some(list) if list.len() == count => Ok(list),
        Some(list) => Err(Fault::invalid(format!("{name} {list:?} for {count} values"))),
    }
}

fn scan(n: &Node<'_>) -> Outcome {
    if n.version() < 9 {
        return batched_scan(n);
    }
    let values: Vec<Value> =
        (0..n.count()).map(|i| n.value(i).cloned()).collect::<Result<_, _>>()?;
    scanned(n, values, "scan_input_directions")
}

/// One scan over values whose first are carried.
fn scanned(n: &Node<'_>, values: Vec<Value>, directions: &str) -> Outcome {
    let body = n.graph("body")?;
    let count = node::count(n.need_attribute("num_scan_inputs")?)?;
    let carried = values.len().checked_sub(count);
    let carried = carried.filter(|&c| body.inputs.len() == values.len() && body.outputs.len() >= c);
    let carried = carried.ok_or_else(|| Fault::invalid("the body does not fit the inputs"))?;
    let scanned = body.outputs.len() - carried;
    let backwards = along(n, directions, count)?;
    let axes = along(n, "scan_input_axes", count)?;
    let mut state = values;
    let sources = state.split_off(carried);
    let mut walked = Vec::with_capacity(count);
    for (source, &axis) in sources.iter().zip(&axes) {
        let tensor = source.tensor()?;
        walked.push((tensor, node::axis(axis, tensor.array.rank())?));
    }
    let rounds = walked.first().map_or(0, |(t, axis)| t.array.shape()[*axis]);
    if walked.iter().any(|(t, axis)| t.array.shape()[*axis] != rounds) {
        return Err(Fault::invalid("the scanned inputs differ in length"));
    }
    if rounds >= LOOP
        && let Some(mut made) = walked_through(n, body, &state, &walked, &backwards)
    {
        let outputs = made.split_off(carried);
        let directions = along(n, "scan_output_directions", scanned)?;
        let axes = along(n, "scan_output_axes", scanned)?;
        for ((value, back), axis) in outputs.iter().zip(directions).zip(axes) {
            let tensor = value.tensor()?;
            let rank = tensor.array.rank();
            let array = ops::moveaxis(&tensor.array, 0, node::axis(axis, rank)? as isize)?;
            let array = if back == 0 { array } else { ops::flip(&array, node::axis(axis, rank)?)? };
            made.push(Tensor::new(array, tensor.element)?.into());
        }
        return Ok(made);
    }
    let mut outputs: Vec<Vec<Value>> = vec![Vec::new(); scanned];
    for round in 0..rounds {
        let mut inputs = std::mem::take(&mut state);
        for (&(tensor, axis), &back) in walked.iter().zip(&backwards) {
            let at = if back == 0 { round } else { rounds - 1 - round };
            let one = ops::squeeze(&part(&tensor.array, axis, at, at + 1)?, axis)?;
            inputs.push(Tensor::new(one, tensor.element)?.into());
        }
        let mut made = n.call(body, inputs)?.into_iter();
        state = made.by_ref().take(carried).collect();
        outputs.iter_mut().zip(made).for_each(|(list, value)| list.push(value));
    }
    for (list, back) in outputs.iter_mut().zip(along(n, "scan_output_directions", scanned)?) {
        if back != 0 {
            list.reverse();
        }
    }
    let axes = along(n, "scan_output_axes", scanned)?;
    state.extend(stacked(outputs, &axes, &nothing(body, carried)?)?);
    Ok(state)
}

/// From so many rounds on a scan is one loop.
pub const LOOP: usize = 16;

/// A scan as one loop, whose outputs are in the order of its rounds along axis 0; `None` where its body is of another
/// kind, does other things in each round, or fails: then its rounds say why.
fn walked_through(
    n: &Node<'_>,
    body: &Graph,
    state: &[Value],
    walked: &[(&Tensor, usize)],
    backwards: &[i64],
) -> Option<Vec<Value>> {
    let bodies = Bodies::default();
    let state: Vec<&Tensor> = state.iter().map(Value::tensor).collect::<Result<_, _>>().ok()?;
    let init: Vec<Array> = state.iter().map(|t| t.array.clone()).collect();
    let mut sequences = Vec::with_capacity(walked.len());
    for (&(tensor, axis), &back) in walked.iter().zip(backwards) {
        let first = ops::moveaxis(&tensor.array, axis as isize, 0).ok()?;
        sequences.push(if back == 0 { first } else { ops::flip(&first, 0).ok()? });
    }
    let elements = state.iter().copied().chain(walked.iter().map(|(t, _)| *t)).map(|t| t.element);
    let elements: Vec<Element> = elements.collect();
    let round = |now: &[Array], x: &[Array]| -> Result<(Vec<Array>, Vec<Array>), Fault> {
        let arrays = now.iter().chain(x).zip(&elements);
        let inputs = arrays.map(|(a, &element)| Ok(Tensor::new(a.clone(), element)?.into()));
        let mut made = bodies.arrays(n.call(body, inputs.collect::<Outcome>()?))?;
        let outputs = made.split_off(now.len());
        Ok((made, outputs))
    };
    let call = |now: &[Array], x: &[Array]| bodies.given(round(now, x));
    let (last, outputs) = transform::scan(call, &init, &sequences, LoopOptions::default()).ok()?;
    bodies.values([last, outputs].concat(), 0).ok()
}

/// The scan of version 8: a batch of scans.
fn batched_scan(n: &Node<'_>) -> Outcome {
    if n.maybe(0)?.is_some() {
        return Err(Fault::unsupported("lengths of sequences in a Scan are not read"));
    }
    let batch = n.x(1)?.shape().first().copied().unwrap_or(0);
    let mut all: Vec<Vec<Value>> = Vec::new();
    for at in 0..batch {
        let mut values = Vec::new();
        for i in 1..n.count() {
            let tensor = n.tensor(i)?;
            let one = ops::squeeze(&part(&tensor.array, 0, at, at + 1)?, 0)?;
            values.push(Tensor::new(one, tensor.element)?.into());
        }
        for (i, value) in scanned(n, values, "directions")?.into_iter().enumerate() {
            if all.len() <= i {
                all.push(Vec::new());
            }
            all[i].push(value);
        }
    }
    stacked(all, &[], &[])
}

pub const OPS: &[Entry] = &[("If", 1, if_), ("Loop", 1, loop_), ("Scan", 8, scan)];
