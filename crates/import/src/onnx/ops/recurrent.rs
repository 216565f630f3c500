//! Recurrent layers: a few steps one after the other, many as a loop.

use cupola_core::transform::{LoopOptions, scan};

use super::activation::hard_sigmoid_of;
use super::control::{Bodies, LOOP};
use super::movement::part;
use super::prelude::*;

/// An activation of a layer with its parameters.
struct Activation {
    name: String,
    alpha: Option<f64>,
    beta: Option<f64>,
}

impl Activation {
    fn apply(&self, x: &Array) -> Made {
        let alpha = |default: f64| self.alpha.unwrap_or(default);
        Ok(match self.name.to_ascii_lowercase().as_str() {
            "sigmoid" => ops::sigmoid(x)?,
            "tanh" => ops::tanh(x)?,
            "relu" => ops::maximum(x, 0)?,
            "affine" => ops::add(&ops::multiply(x, alpha(1.0))?, self.beta.unwrap_or(0.0))?,
            "leakyrelu" => ops::leaky_relu(x, alpha(0.01))?,
            "thresholdedrelu" => ops::where_(&ops::greater(x, alpha(1.0))?, x, 0)?,
            "scaledtanh" => ops::multiply(
                &ops::tanh(&ops::multiply(x, self.beta.unwrap_or(1.0))?)?,
                alpha(1.0),
            )?,
            "hardsigmoid" => hard_sigmoid_of(x, alpha(0.2), self.beta.unwrap_or(0.5))?,
            "elu" => ops::elu(x, alpha(1.0))?,
            "softsign" => ops::softsign(x)?,
            "softplus" => ops::softplus(x)?,
            other => return Err(Fault::invalid(format!("the activation '{other}' is not known"))),
        })
    }
}

/// What the layers have in common.
struct Layer {
    hidden: usize,
    directions: Vec<bool>,
    activations: Vec<Activation>,
    clip: Option<f64>,
    batch_first: bool,
}

impl Layer {
    fn of(n: &Node<'_>, defaults: &[&str]) -> Result<Layer, Fault> {
        let directions = match n.text("direction", "forward")? {
            "forward" => vec![false],
            "reverse" => vec![true],
            "bidirectional" => vec![false, true],
            other => return Err(Fault::invalid(format!("the direction '{other}' is not known"))),
        };
        let each = defaults.len();
        let names: Vec<String> = match n.texts("activations")? {
            Some(names) if names.len() == each * directions.len() => names.to_vec(),
            Some(names) => return Err(Fault::invalid(format!("activations {names:?}"))),
            None => {
                directions.iter().flat_map(|_| defaults.iter().map(|&d| d.to_owned())).collect()
            }
        };
        let alphas = n.floats("activation_alpha")?.unwrap_or_default();
        let betas = n.floats("activation_beta")?.unwrap_or_default();
        let with = |(i, name): (usize, String)| Activation {
            name,
            alpha: alphas.get(i).copied(),
            beta: betas.get(i).copied(),
        };
        let width = n.x(2)?.shape().last().copied().unwrap_or(0);
        Ok(Layer {
            hidden: node::count(n.int("hidden_size", width as i64)?)?,
            activations: names.into_iter().enumerate().map(with).collect(),
            directions,
            clip: n.maybe_float("clip")?,
            batch_first: n.flag("layout", false)?,
        })
    }

    fn act(&self, direction: usize, which: usize, x: &Array) -> Made {
        let each = self.activations.len() / self.directions.len();
        let x = match self.clip {
            Some(clip) => ops::minimum(&ops::maximum(x, -clip)?, clip)?,
            None => x.clone(),
        };
        self.activations[direction * each + which].apply(&x)
    }

    /// The gates along axis 1 of `[batch, gates·hidden]`.
    fn gate(&self, x: &Array, at: usize) -> Made {
        part(x, 1, at * self.hidden, (at + 1) * self.hidden)
    }
}

/// An input of a direction: `[directions, ..]` without its first axis.
fn of_direction(x: &Array, direction: usize) -> Made {
    Ok(ops::squeeze(&part(x, 0, direction, direction + 1)?, 0)?)
}

/// The states before the first step, what a step gets besides them, and whether it goes backwards.
struct Walk<'s> {
    step: &'s Step<'s>,
    direction: usize,
    /// The lengths of the sequences of the batch, where they differ.
    lengths: Option<Array>,
}

impl Walk<'_> {
    /// The states after step `t`, and what it gives. Behind the end of a sequence its states stay and it gives
    /// zeros.
    fn step(&self, t: &Array, x: &Array, held: &[Array]) -> Result<(Vec<Array>, Array), Fault> {
        let next = (self.step)(self.direction, x, held)?;
        let Some(lengths) = &self.lengths else {
            let out = next[0].clone();
            return Ok((next, out));
        };
        let runs = ops::greater(lengths, t)?;
        let kept = next.iter().zip(held).map(|(new, old)| ops::where_(&runs, new, old));
        Ok((kept.collect::<Result<_, _>>()?, ops::where_(&runs, &next[0], 0)?))
    }

    /// What each step gives, along axis 0, and the last states.
    fn all(
        &self,
        x: &Array,
        held: Vec<Array>,
        backwards: bool,
    ) -> Result<(Array, Vec<Array>), Fault> {
        let steps = x.shape()[0];
        let counts = ops::arange_in(0, steps as i64, 1, DType::I64)?;
        if steps >= LOOP {
            let bodies = Bodies::default();
            let call = |held: &[Array], x: &[Array]| {
                let (next, out) = bodies.given(self.step(&x[0], &x[1], held))?;
                Ok((next, vec![out]))
            };
            let options = LoopOptions { length: None, reverse: backwards };
            let made = scan(call, &held, &[counts, x.clone()], options);
            let (last, mut outputs) = bodies.made(made)?;
            return Ok((outputs.remove(0), last));
        }
        let mut held = held;
        let mut made = vec![None; steps];
        for t in 0..steps {
            let t = if backwards { steps - 1 - t } else { t };
            let now = ops::squeeze(&part(x, 0, t, t + 1)?, 0)?;
            let (next, out) = self.step(&Array::scalar(t as i64), &now, &held)?;
            held = next;
            made[t] = Some(out);
        }
        let made: Vec<Array> = made.into_iter().flatten().collect();
        let all = match made.is_empty() {
            true => ops::zeros([&[0][..], &held[0].shape()[..]].concat(), x.dtype())?,
            false => ops::stack(&made.iter().collect::<Vec<_>>(), 0)?,
        };
        Ok((all, held))
    }
}

/// One step: the input of all gates, the states; gives the new states.
type Step<'s> = dyn Fn(usize, &Array, &[Array]) -> Result<Vec<Array>, Fault> + 's;

/// Runs a layer over its steps. `states` are the inputs that hold first states.
fn run(n: &Node<'_>, layer: &Layer, states: &[usize], step: &Step<'_>) -> Outcome {
    let x = match layer.batch_first {
        true => ops::swapaxes(n.x(0)?, 0, 1)?,
        false => n.x(0)?.clone(),
    };
    let [_, batch, _] = x.shape()[..] else {
        return Err(Fault::invalid(format!("{} has not three axes", x.shape())));
    };
    if n.x(1)?.rank() != 3 || n.x(1)?.shape()[0] != layer.directions.len() {
        return Err(Fault::invalid(format!("weights of {}", n.x(1)?.shape())));
    }
    let lengths = match n.maybe(4)? {
        Some(lengths) => Some(ops::reshape(&ops::astype(lengths, DType::I64)?, [batch, 1])?),
        None => None,
    };
    let (mut outputs, mut last) = (Vec::new(), vec![Vec::new(); states.len()]);
    for (direction, &backwards) in layer.directions.iter().enumerate() {
        let weights = ops::transpose(&of_direction(n.x(1)?, direction)?, [1, 0])?;
        let mut held = Vec::with_capacity(states.len());
        for &input in states {
            held.push(match n.maybe(input)? {
                Some(first) if layer.batch_first => {
                    of_direction(&ops::swapaxes(first, 0, 1)?, direction)?
                }
                Some(first) => of_direction(first, direction)?,
                None => ops::zeros([batch, layer.hidden], x.dtype())?,
            });
        }
        // One product has the inputs' part of all steps.
        let x = ops::matmul(&x, &weights)?;
        let walk = Walk { step, direction, lengths: lengths.clone() };
        let (made, held) = walk.all(&x, held, backwards)?;
        outputs.push(made);
        last.iter_mut().zip(held).for_each(|(list, state)| list.push(state));
    }
    // [steps, directions, batch, hidden] and [directions, batch, hidden].
    let mut y = ops::stack(&outputs.iter().collect::<Vec<_>>(), 1)?;
    if layer.batch_first {
        y = ops::transpose(&y, [2, 0, 1, 3])?;
    }
    let mut all: Vec<Value> = vec![y.into()];
    for list in last {
        let state = ops::stack(&list.iter().collect::<Vec<_>>(), 0)?;
        all.push(if layer.batch_first { ops::swapaxes(&state, 0, 1)? } else { state }.into());
    }
    Ok(all)
}

/// The recurrent weights of a direction, turned.
fn recurrent(n: &Node<'_>, direction: usize) -> Made {
    Ok(ops::transpose(&of_direction(n.x(2)?, direction)?, [1, 0])?)
}

/// The biases of a direction: that of the inputs and that of the states.
fn biases(
    n: &Node<'_>,
    direction: usize,
    gates: usize,
    hidden: usize,
) -> Result<Option<(Array, Array)>, Fault> {
    let Some(bias) = n.maybe(3)? else { return Ok(None) };
    let bias = of_direction(bias, direction)?;
    let half = gates.saturating_mul(hidden);
    Ok(Some((part(&bias, 0, 0, half)?, part(&bias, 0, half, 2 * half)?)))
}

/// Inputs and states through their weights and biases, added.
fn gates(
    n: &Node<'_>,
    layer: &Layer,
    direction: usize,
    x: &Array,
    h: &Array,
    count: usize,
) -> Made {
    let mut sum = ops::add(x, &ops::matmul(h, &recurrent(n, direction)?)?)?;
    if let Some((a, b)) = biases(n, direction, count, layer.hidden)? {
        sum = ops::add(&sum, &ops::add(&a, &b)?)?;
    }
    Ok(sum)
}

fn rnn(n: &Node<'_>) -> Outcome {
    let layer = Layer::of(n, &["Tanh"])?;
    run(n, &layer, &[5], &|direction, x, held| {
        Ok(vec![layer.act(direction, 0, &gates(n, &layer, direction, x, &held[0], 1)?)?])
    })
}

fn gru(n: &Node<'_>) -> Outcome {
    let layer = Layer::of(n, &["Sigmoid", "Tanh"])?;
    let before = !n.flag("linear_before_reset", false)?;
    run(n, &layer, &[5], &|direction, x, held| {
        let h = &held[0];
        let weights = recurrent(n, direction)?;
        let mut x = x.clone();
        let biases = biases(n, direction, 3, layer.hidden)?;
        if let Some((a, _)) = &biases {
            x = ops::add(&x, a)?;
        }
        let through = |h: &Array, from: usize, to: usize| -> Made {
            let (from, to) = (from * layer.hidden, to * layer.hidden);
            let y = ops::matmul(h, &part(&weights, 1, from, to)?)?;
            match &biases {
                Some((_, b)) => Ok(ops::add(&y, &part(b, 0, from, to)?)?),
                None => Ok(y),
            }
        };
        let z = ops::add(&layer.gate(&x, 0)?, &through(h, 0, 1)?)?;
        let z = layer.act(direction, 0, &z)?;
        let r = ops::add(&layer.gate(&x, 1)?, &through(h, 1, 2)?)?;
        let r = layer.act(direction, 0, &r)?;
        let reset = match before {
            true => through(&ops::multiply(&r, h)?, 2, 3)?,
            false => ops::multiply(&r, &through(h, 2, 3)?)?,
        };
        let new = layer.act(direction, 1, &ops::add(&layer.gate(&x, 2)?, &reset)?)?;
        let kept = ops::multiply(&z, h)?;
        let fresh = ops::multiply(&ops::subtract(1, &z)?, &new)?;
        Ok(vec![ops::add(&fresh, &kept)?])
    })
}

fn lstm(n: &Node<'_>) -> Outcome {
    let layer = Layer::of(n, &["Sigmoid", "Tanh", "Tanh"])?;
    let coupled = n.flag("input_forget", false)?;
    run(n, &layer, &[5, 6], &|direction, x, held| {
        let (h, c) = (&held[0], &held[1]);
        let sums = gates(n, &layer, direction, x, h, 4)?;
        let peeks = match n.maybe(7)? {
            Some(peeks) => Some(of_direction(peeks, direction)?),
            None => None,
        };
        // Peepholes are in the order of input, output and forget gate.
        let gate = |at: usize, peek: usize, cell: &Array| -> Made {
            let sum = layer.gate(&sums, at)?;
            let sum = match &peeks {
                Some(p) => {
                    let p = part(p, 0, peek * layer.hidden, (peek + 1) * layer.hidden)?;
                    ops::add(&sum, &ops::multiply(&p, cell)?)?
                }
                None => sum,
            };
            layer.act(direction, 0, &sum)
        };
        let input = gate(0, 0, c)?;
        let forget = if coupled { ops::subtract(1, &input)? } else { gate(2, 2, c)? };
        let fresh = layer.act(direction, 1, &layer.gate(&sums, 3)?)?;
        let cell = ops::add(&ops::multiply(&forget, c)?, &ops::multiply(&input, &fresh)?)?;
        let output = gate(1, 1, &cell)?;
        Ok(vec![ops::multiply(&output, &layer.act(direction, 2, &cell)?)?, cell])
    })
}

pub const OPS: &[Entry] = &[("GRU", 3, gru), ("LSTM", 1, lstm), ("RNN", 1, rnn)];
