//! Recurrent layers: a few steps one after the other, many as a loop.

use cupola_core::transform::{LoopOptions, scan};

use super::activation::hard_sigmoid_of;
use super::control::{Bodies, LOOP};
use super::prelude::*;
use crate::lowering::movement::part;

/// An activation of a layer with its parameters.
#[derive(PartialEq)]
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

    /// Both directions run side by side where they do the same.
    fn sides(&self) -> Vec<Side> {
        let (first, second) = self.activations.split_at(self.each());
        match self.directions.len() {
            2 if first == second => vec![Side { first: 0, count: 2 }],
            many => (0..many).map(|first| Side { first, count: 1 }).collect(),
        }
    }

    /// How many activations a direction has.
    fn each(&self) -> usize {
        self.activations.len() / self.directions.len()
    }

    fn act(&self, side: Side, which: usize, x: &Array) -> Made {
        let x = match self.clip {
            Some(clip) => ops::minimum(&ops::maximum(x, -clip)?, clip)?,
            None => x.clone(),
        };
        self.activations[side.first * self.each() + which].apply(&x)
    }

    /// A gate of `[directions, batch, gates·hidden]`.
    fn gate(&self, x: &Array, at: usize) -> Made {
        self.gates(x, at, at + 1)
    }

    /// The same of several that follow each other.
    fn gates(&self, x: &Array, from: usize, to: usize) -> Made {
        part(x, 2, from * self.hidden, to * self.hidden)
    }
}

/// Directions that run side by side, along the first axis of weights and states.
#[derive(Clone, Copy)]
struct Side {
    first: usize,
    count: usize,
}

impl Side {
    /// What an input has for them.
    fn of(self, x: &Array) -> Made {
        part(x, 0, self.first, self.first + self.count)
    }

    /// The same of an input without an axis for the batch, which gets one.
    fn row(self, x: &Array) -> Made {
        Ok(ops::expand_dims(&self.of(x)?, 1)?)
    }
}

/// The steps of some directions.
struct Walk<'s> {
    step: &'s Step<'s>,
    side: Side,
    /// Whether the last step comes first.
    reverse: bool,
    /// The lengths of the sequences of the batch, where they differ.
    lengths: Option<Array>,
}

impl Walk<'_> {
    /// The states after a step, which is `t` in each direction, and what it gives. Behind the end of a sequence its
    /// states stay and it gives zeros.
    fn step(&self, t: &Array, x: &Array, held: &[Array]) -> Result<(Vec<Array>, Array), Fault> {
        let next = (self.step)(self.side, x, held)?;
        let Some(lengths) = &self.lengths else {
            let out = next[0].clone();
            return Ok((next, out));
        };
        let runs = ops::greater(lengths, t)?;
        let kept = next.iter().zip(held).map(|(new, old)| ops::where_(&runs, new, old));
        Ok((kept.collect::<Result<_, _>>()?, ops::where_(&runs, &next[0], 0)?))
    }

    /// What each step gives, along axis 0, and the last states. `counts` has the number of each step.
    fn all(
        &self,
        x: &Array,
        counts: Array,
        held: Vec<Array>,
    ) -> Result<(Array, Vec<Array>), Fault> {
        let steps = x.shape()[0];
        if steps >= LOOP {
            let bodies = Bodies::default();
            let call = |held: &[Array], x: &[Array]| {
                let (next, out) = bodies.given(self.step(&x[0], &x[1], held))?;
                Ok((next, vec![out]))
            };
            let options = LoopOptions { length: None, reverse: self.reverse };
            let made = scan(call, &held, &[counts, x.clone()], options);
            let (last, mut outputs) = bodies.made(made)?;
            return Ok((outputs.remove(0), last));
        }
        let mut held = held;
        let mut made = vec![None; steps];
        for t in 0..steps {
            let t = if self.reverse { steps - 1 - t } else { t };
            let at = |x: &Array| -> Made { Ok(ops::squeeze(&part(x, 0, t, t + 1)?, 0)?) };
            let (next, out) = self.step(&at(&counts)?, &at(x)?, &held)?;
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
type Step<'s> = dyn Fn(Side, &Array, &[Array]) -> Result<Vec<Array>, Fault> + 's;

/// Runs a layer over its steps. `states` are the inputs that hold first states, and so many gates has a step.
fn run(n: &Node<'_>, layer: &Layer, states: &[usize], count: usize, step: &Step<'_>) -> Outcome {
    let x = match layer.batch_first {
        true => ops::swapaxes(n.x(0)?, 0, 1)?,
        false => n.x(0)?.clone(),
    };
    let [_, batch, width] = x.shape()[..] else {
        return Err(Fault::invalid(format!("{} has not three axes", x.shape())));
    };
    let (many, hidden) = (layer.directions.len(), layer.hidden);
    let gates = count.saturating_mul(hidden);
    let expect = |input: usize, what: &str, shape: &[usize]| match n.maybe(input)? {
        Some(given) if given.shape()[..] != *shape => {
            let given = given.shape();
            Err(Fault::invalid(format!("{what} of {given}, where {shape:?} is expected")))
        }
        Some(_) | None => Ok(()),
    };
    expect(1, "weights", &[many, gates, width])?;
    expect(2, "recurrent weights", &[many, gates, hidden])?;
    expect(3, "biases", &[many, gates.saturating_mul(2)])?;
    expect(7, "peepholes", &[many, hidden.saturating_mul(3)])?;
    for &input in states {
        let first = if layer.batch_first { [batch, many, hidden] } else { [many, batch, hidden] };
        expect(input, "first states", &first)?;
    }
    let lengths = match n.maybe(4)? {
        Some(lengths) => Some(ops::reshape(&ops::astype(lengths, DType::I64)?, [batch, 1])?),
        None => None,
    };
    let steps = x.shape()[0];
    let (mut outputs, mut last) = (Vec::new(), vec![Vec::new(); states.len()]);
    for side in layer.sides() {
        let backwards = &layer.directions[side.first..side.first + side.count];
        // Side by side all begin with step 0, so that one is turned before and after.
        let reverse = backwards == [true];
        let turned = |k: usize, x: Array| -> Made {
            if backwards[k] && !reverse { Ok(ops::flip(&x, 0)?) } else { Ok(x) }
        };
        let (mut inputs, mut counts) = (Vec::new(), Vec::new());
        for k in 0..side.count {
            let weights = part(n.x(1)?, 0, side.first + k, side.first + k + 1)?;
            let weights = ops::transpose(&ops::squeeze(&weights, 0)?, [1, 0])?;
            // One product has the inputs' part of all steps.
            inputs.push(turned(k, ops::matmul(&x, &weights)?)?);
            let count = ops::arange_in(0, steps as i64, 1, DType::I64)?;
            counts.push(ops::reshape(&turned(k, count)?, [steps, 1, 1])?);
        }
        let side_by_side = |list: Vec<Array>| ops::stack(&list.iter().collect::<Vec<_>>(), 1);
        let (inputs, counts) = (side_by_side(inputs)?, side_by_side(counts)?);
        let mut held = Vec::with_capacity(states.len());
        for &input in states {
            held.push(match n.maybe(input)? {
                Some(first) if layer.batch_first => side.of(&ops::swapaxes(first, 0, 1)?)?,
                Some(first) => side.of(first)?,
                None => ops::zeros([side.count, batch, layer.hidden], x.dtype())?,
            });
        }
        let walk = Walk { step, side, reverse, lengths: lengths.clone() };
        let (made, held) = walk.all(&inputs, counts, held)?;
        for k in 0..side.count {
            outputs.push(turned(k, ops::squeeze(&part(&made, 1, k, k + 1)?, 1)?)?);
        }
        last.iter_mut().zip(held).for_each(|(list, state)| list.push(state));
    }
    // [steps, directions, batch, hidden] and [directions, batch, hidden].
    let mut y = ops::stack(&outputs.iter().collect::<Vec<_>>(), 1)?;
    if layer.batch_first {
        y = ops::transpose(&y, [2, 0, 1, 3])?;
    }
    let mut all: Vec<Value> = vec![y.into()];
    for list in last {
        let state = ops::concatenate(&list.iter().collect::<Vec<_>>(), 0)?;
        all.push(if layer.batch_first { ops::swapaxes(&state, 0, 1)? } else { state }.into());
    }
    Ok(all)
}

/// The recurrent weights, turned.
fn recurrent(n: &Node<'_>, side: Side) -> Made {
    Ok(ops::transpose(&side.of(n.x(2)?)?, [0, 2, 1])?)
}

/// The biases: that of the inputs and that of the states.
fn biases(
    n: &Node<'_>,
    side: Side,
    gates: usize,
    layer: &Layer,
) -> Result<Option<(Array, Array)>, Fault> {
    let Some(bias) = n.maybe(3)? else { return Ok(None) };
    let bias = side.row(bias)?;
    let half = gates.saturating_mul(layer.hidden);
    Ok(Some((part(&bias, 2, 0, half)?, part(&bias, 2, half, 2 * half)?)))
}

/// Inputs and states through their weights and biases, added.
fn gates(n: &Node<'_>, layer: &Layer, side: Side, x: &Array, h: &Array, count: usize) -> Made {
    let mut sum = ops::add(x, &ops::matmul(h, &recurrent(n, side)?)?)?;
    if let Some((a, b)) = biases(n, side, count, layer)? {
        sum = ops::add(&sum, &ops::add(&a, &b)?)?;
    }
    Ok(sum)
}

fn rnn(n: &Node<'_>) -> Outcome {
    let layer = Layer::of(n, &["Tanh"])?;
    run(n, &layer, &[5], 1, &|side, x, held| {
        Ok(vec![layer.act(side, 0, &gates(n, &layer, side, x, &held[0], 1)?)?])
    })
}

fn gru(n: &Node<'_>) -> Outcome {
    let layer = Layer::of(n, &["Sigmoid", "Tanh"])?;
    let before = !n.flag("linear_before_reset", false)?;
    run(n, &layer, &[5], 3, &|side, x, held| {
        let h = &held[0];
        let weights = recurrent(n, side)?;
        let mut x = x.clone();
        let biases = biases(n, side, 3, &layer)?;
        if let Some((a, _)) = &biases {
            x = ops::add(&x, a)?;
        }
        let through = |h: &Array, from: usize, to: usize| -> Made {
            let y = ops::matmul(h, &layer.gates(&weights, from, to)?)?;
            match &biases {
                Some((_, b)) => Ok(ops::add(&y, &layer.gates(b, from, to)?)?),
                None => Ok(y),
            }
        };
        // One product for all gates that read the state as it is.
        let sums = through(h, 0, if before { 2 } else { 3 })?;
        let gate = |at: usize| -> Made {
            let sum = ops::add(&layer.gate(&x, at)?, &layer.gate(&sums, at)?)?;
            layer.act(side, 0, &sum)
        };
        let (z, r) = (gate(0)?, gate(1)?);
        let reset = match before {
            true => through(&ops::multiply(&r, h)?, 2, 3)?,
            false => ops::multiply(&r, &layer.gate(&sums, 2)?)?,
        };
        let new = layer.act(side, 1, &ops::add(&layer.gate(&x, 2)?, &reset)?)?;
        let kept = ops::multiply(&z, h)?;
        let fresh = ops::multiply(&ops::subtract(1, &z)?, &new)?;
        Ok(vec![ops::add(&fresh, &kept)?])
    })
}

fn lstm(n: &Node<'_>) -> Outcome {
    let layer = Layer::of(n, &["Sigmoid", "Tanh", "Tanh"])?;
    let coupled = n.flag("input_forget", false)?;
    run(n, &layer, &[5, 6], 4, &|side, x, held| {
        let (h, c) = (&held[0], &held[1]);
        let sums = gates(n, &layer, side, x, h, 4)?;
        let peeks = match n.maybe(7)? {
            Some(peeks) => Some(side.row(peeks)?),
            None => None,
        };
        // Peepholes are in the order of input, output and forget gate.
        let gate = |at: usize, peek: usize, cell: &Array| -> Made {
            let sum = layer.gate(&sums, at)?;
            let sum = match &peeks {
                Some(p) => ops::add(&sum, &ops::multiply(&layer.gate(p, peek)?, cell)?)?,
                None => sum,
            };
            layer.act(side, 0, &sum)
        };
        let input = gate(0, 0, c)?;
        let forget = if coupled { ops::subtract(1, &input)? } else { gate(2, 2, c)? };
        let fresh = layer.act(side, 1, &layer.gate(&sums, 3)?)?;
        let cell = ops::add(&ops::multiply(&forget, c)?, &ops::multiply(&input, &fresh)?)?;
        let output = gate(1, 1, &cell)?;
        Ok(vec![ops::multiply(&output, &layer.act(side, 2, &cell)?)?, cell])
    })
}

pub const OPS: &[Entry] = &[("GRU", 3, gru), ("LSTM", 1, lstm), ("RNN", 1, rnn)];
