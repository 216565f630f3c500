//! Control flow: conditions are evaluated, loops unrolled.

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

fn if_(n: &Node<'_>) -> Outcome {
    let branch = if holds(n.value(0)?)? { "then_branch" } else { "else_branch" };
    n.call(n.graph(branch)?, Vec::new())
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
