//! Constants and control flow: conditions are evaluated, loops unrolled.

use super::prelude::*;

fn constant(n: &Node<'_>) -> Outcome {
    Ok(vec![n.value("val")?.clone()])
}

/// Whether a condition of one element holds, which is evaluated.
fn holds(value: &Value) -> Result<bool, Fault> {
    let array = &value.tensor()?.array;
    match ops::astype(array, DType::Bool)?.to_vec::<bool>()?[..] {
        [holds] => Ok(holds),
        _ => Err(Fault::invalid(format!("a condition of {} is not one element", array.shape()))),
    }
}

fn cond(n: &Node<'_>) -> Outcome {
    let branch = if holds(n.value("pred")?)? { 0 } else { 1 };
    n.call(n.block(branch)?, Vec::new())
}

fn while_loop(n: &Node<'_>) -> Outcome {
    let (condition, body) = (n.block(0)?, n.block(1)?);
    let mut state = n.values("loop_vars").to_vec();
    loop {
        match &n.call(condition, state.clone())?[..] {
            [goes_on] if !holds(goes_on)? => return Ok(state),
            [_] => {}
            outputs => {
                let count = outputs.len();
                return Err(Fault::invalid(format!("a condition of {count} values, not one")));
            }
        }
        let next = n.call(body, state.clone())?;
        if next.iter().zip(&state).all(|(next, held)| is_same(next, held)) {
            return Err(Fault::invalid("the loop does not end"));
        }
        state = next;
    }
}

/// Whether a round of a loop changed nothing.
fn is_same(next: &Value, held: &Value) -> bool {
    match (next, held) {
        (Value::Tensor(next), Value::Tensor(held)) => next.array.same(&held.array),
        _ => false,
    }
}

pub const OPS: &[Entry] = &[("cond", cond), ("const", constant), ("while_loop", while_loop)];
