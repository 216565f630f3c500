//! Recurrent layers, unrolled over their steps.

use super::prelude::*;
use crate::lowering::movement::part;

/// An activation by its name.
fn act(name: &str, x: &Array) -> Made {
    Ok(match name {
        "sigmoid" => ops::sigmoid(x)?,
        "tanh" => ops::tanh(x)?,
        "relu" => ops::maximum(x, 0)?,
        "linear" => x.clone(),
        "hard_sigmoid" | "sigmoid_hard" | "scaled_tanh" => {
            return Err(Fault::unsupported(format!(
                "'{name}' in a recurrent layer is not read: the program does not say its parameters"
            )));
        }
        other => return Err(Fault::invalid(format!("the activation '{other}' is not known"))),
    })
}

/// One step: the input through its weights, the states; gives the new states.
type Step<'s> = dyn Fn(&Array, &[Array]) -> Result<Vec<Array>, Fault> + 's;

/// The states after each step and after the last. A layer that runs backwards begins at the end.
fn run(
    x: &Array,
    weight: &Array,
    bias: Option<&Array>,
    states: Vec<Array>,
    backwards: bool,
    step: &Step<'_>,
) -> Result<(Vec<Array>, Vec<Array>), Fault> {
    let [steps, batch, width] = x.shape()[..] else {
        return Err(Fault::invalid(format!("{} has not three axes", x.shape())));
    };
    let wide = weight.rank() == 2 && weight.shape()[1] == width;
    if !wide || states.iter().any(|s| s.rank() != 2 || s.shape()[0] != batch) {
        return Err(Fault::invalid(format!("{} with weights {}", x.shape(), weight.shape())));
    }
    let mut through = ops::matmul(x, &ops::transpose(weight, [1, 0])?)?;
    if let Some(bias) = bias {
        through = ops::add(&through, bias)?;
    }
    let mut held = states;
    let mut made = Vec::with_capacity(steps);
    for t in 0..steps {
        let t = if backwards { steps - 1 - t } else { t };
        let now = ops::squeeze(&part(&through, 0, t, t + 1)?, 0)?;
        held = step(&now, &held)?;
        made.push(held[0].clone());
    }
    Ok((made, held))
}

/// All steps, or the last, as one array.
fn sequence(n: &Node<'_>, made: &[Array], last: &Array) -> Made {
    match n.flag("output_sequence", false)? && !made.is_empty() {
        true => Ok(ops::stack(&made.iter().collect::<Vec<_>>(), 0)?),
        false => Ok(ops::expand_dims(last, 0)?),
    }
}

fn backwards(n: &Node<'_>) -> Result<bool, Fault> {
    match n.text("direction", "forward")? {
        "forward" => Ok(false),
        "reverse" => Ok(true),
        other => Err(Fault::invalid(format!("the direction '{other}' is not known"))),
    }
}

/// The gates along axis 1.
fn gate(x: &Array, at: usize, hidden: usize) -> Made {
    part(x, 1, at * hidden, (at + 1) * hidden)
}

/// The recurrent weights turned, and how many units there are, of so many gates.
fn recurrent(w: &Array, gates: usize) -> Result<(Array, usize), Fault> {
    match w.shape()[..] {
        [rows, hidden] if rows == gates * hidden => Ok((ops::transpose(w, [1, 0])?, hidden)),
        _ => Err(Fault::invalid(format!("{} are no weights of {gates} gates", w.shape()))),
    }
}

fn rnn(n: &Node<'_>) -> Outcome {
    let name = n.text("activation", "tanh")?;
    let (weights, _) = recurrent(n.x("weight_hh")?, 1)?;
    let states = vec![n.x("initial_h")?.clone()];
    let bias = n.maybe("bias")?;
    let (made, held) =
        run(n.x("x")?, n.x("weight_ih")?, bias, states, backwards(n)?, &|x, held| {
            Ok(vec![act(name, &ops::add(x, &ops::matmul(&held[0], &weights)?)?)?])
        })?;
    Ok(vec![sequence(n, &made, &held[0])?.into(), held[0].clone().into()])
}

/// Gates: reset, output, update.
fn gru(n: &Node<'_>) -> Outcome {
    let (inner, outer) =
        (n.text("recurrent_activation", "sigmoid")?, n.text("activation", "tanh")?);
    let (weights, hidden) = recurrent(n.x("weight_hh")?, 3)?;
    let after = n.flag("reset_after", false)?;
    // Where the reset follows the product, the states have a bias of their own.
    let (input_bias, state_bias) = match after {
        true => (n.maybe("input_bias")?, n.maybe("bias")?),
        false => (n.maybe("bias")?, None),
    };
    let through = |h: &Array, from: usize, to: usize| -> Made {
        let y = ops::matmul(h, &part(&weights, 1, from * hidden, to * hidden)?)?;
        match state_bias {
            Some(bias) => Ok(ops::add(&y, &part(bias, 0, from * hidden, to * hidden)?)?),
            None => Ok(y),
        }
    };
    let states = vec![n.x("initial_h")?.clone()];
    let (made, held) =
        run(n.x("x")?, n.x("weight_ih")?, input_bias, states, backwards(n)?, &|x, held| {
            let h = &held[0];
            let reset = act(inner, &ops::add(&gate(x, 0, hidden)?, &through(h, 0, 1)?)?)?;
            let update = act(inner, &ops::add(&gate(x, 2, hidden)?, &through(h, 2, 3)?)?)?;
            let past = match after {
                true => ops::multiply(&reset, &through(h, 1, 2)?)?,
                false => through(&ops::multiply(&reset, h)?, 1, 2)?,
            };
            let new = act(outer, &ops::add(&gate(x, 1, hidden)?, &past)?)?;
            let fresh = ops::multiply(&ops::subtract(1, &update)?, &new)?;
            Ok(vec![ops::add(&fresh, &ops::multiply(&update, h)?)?])
        })?;
    Ok(vec![sequence(n, &made, &held[0])?.into(), held[0].clone().into()])
}

/// Gates: input, forget, output, cell.
fn lstm_of(
    n: &Node<'_>,
    suffix: &str,
    states: Vec<Array>,
    backwards: bool,
) -> Result<(Vec<Array>, Vec<Array>), Fault> {
    let named = |name: &str| format!("{name}{suffix}");
    let inner = n.text("recurrent_activation", "sigmoid")?;
    let (cell, outer) = (n.text("cell_activation", "tanh")?, n.text("activation", "tanh")?);
    let (weights, hidden) = recurrent(n.x(&named("weight_hh"))?, 4)?;
    let peeks = n.maybe(&named("peephole"))?;
    let clip = n.maybe_float("clip")?;
    let (weight_ih, bias) = (n.x(&named("weight_ih"))?, n.maybe(&named("bias"))?);
    run(n.x("x")?, weight_ih, bias, states, backwards, &|x, held| {
        let (h, c) = (&held[0], &held[1]);
        let sums = ops::add(x, &ops::matmul(h, &weights)?)?;
        let peeked = |at: usize, c: &Array| -> Made {
            let sum = gate(&sums, at, hidden)?;
            match peeks {
                Some(peeks) => {
                    let peek = part(peeks, 0, at * hidden, (at + 1) * hidden)?;
                    act(inner, &ops::add(&sum, &ops::multiply(&peek, c)?)?)
                }
                None => act(inner, &sum),
            }
        };
        let fresh = act(cell, &gate(&sums, 3, hidden)?)?;
        let kept = ops::multiply(&peeked(1, c)?, c)?;
        let mut next = ops::add(&kept, &ops::multiply(&peeked(0, c)?, &fresh)?)?;
        if let Some(clip) = clip {
            next = ops::minimum(&ops::maximum(&next, -clip)?, clip)?;
        }
        let out = ops::multiply(&peeked(2, &next)?, &act(outer, &next)?)?;
        Ok(vec![out, next])
    })
}

fn lstm(n: &Node<'_>) -> Outcome {
    let (h, c) = (n.x("initial_h")?, n.x("initial_c")?);
    if n.text("direction", "forward")? != "bidirectional" {
        let states = vec![h.clone(), c.clone()];
        let (made, held) = lstm_of(n, "", states, backwards(n)?)?;
        let all = sequence(n, &made, &held[0])?;
        return Ok(vec![all.into(), held[0].clone().into(), held[1].clone().into()]);
    }
    let hidden = n.x("weight_hh")?.shape().last().copied().unwrap_or(0);
    let half = |x: &Array, at: usize| match x.shape()[..] {
        [_, width] if width == 2 * hidden => gate(x, at, hidden),
        _ => Err(Fault::invalid(format!("states {} of two directions of {hidden}", x.shape()))),
    };
    let (forth, last) = lstm_of(n, "", vec![half(h, 0)?, half(c, 0)?], false)?;
    let (mut back, first) = lstm_of(n, "_back", vec![half(h, 1)?, half(c, 1)?], true)?;
    // Beside the other direction each step is at its own place.
    back.reverse();
    let pair = |a: &Array, b: &Array| -> Made { Ok(ops::concatenate(&[a, b], 1)?) };
    let made = forth.iter().zip(&back).map(|(a, b)| pair(a, b)).collect::<Result<Vec<_>, _>>()?;
    let (h, c) = (pair(&last[0], &first[0])?, pair(&last[1], &first[1])?);
    Ok(vec![sequence(n, &made, &h)?.into(), h.into(), c.into()])
}

pub const OPS: &[Entry] = &[("gru", gru), ("lstm", lstm), ("rnn", rnn)];
