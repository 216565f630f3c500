//! Layers that have learnt matrices: fully connected, embedding, LSTM; and products.

use cupola_core::{Array, DType, Error, Result, ops};

use super::conv::given;
use super::elementwise::dropped;
use super::layer::{Given, named};
use super::{Held, Layer, Made, Tensor};
use crate::nn::states;

/// A linear map of the last dimension; of images, whose last dimension is another, of all their elements. Weights
/// are `[outputs, inputs]`; what is not given is drawn.
///
/// # Errors
/// Where a tensor that is given has another number of elements.
pub fn fully_connected(
    [inputs, outputs]: [usize; 2],
    weights: Option<Tensor>,
    biases: Option<Tensor>,
) -> Result<Layer> {
    let parameters = vec![
        named("weights", given("fully_connected", weights, &[outputs, inputs], inputs)?),
        named("biases", given("fully_connected", biases, &[outputs], inputs)?),
    ];
    Ok(Layer::one("fully_connected", 1..=1, parameters, move |given| {
        let mut x = given.x().clone();
        let last = x.shape().last().copied();
        if last != Some(inputs)
            && x.rank() > 1
            && x.shape()[1..].iter().product::<usize>() == inputs
        {
            x = ops::reshape(&x, [x.shape()[0], inputs])?;
        }
        let weights = ops::reshape(given.get("weights")?, [outputs, inputs])?;
        let out = ops::matmul(&x, &ops::swapaxes(&weights, 0, 1)?)?;
        ops::add(&out, &given.get("biases")?.flatten()?)
    }))
}

/// The rows of a table, `[count, dimension]`, at indices. The row of the padding index is 0, and is not learnt.
///
/// # Errors
/// Where the table that is given has another number of elements.
pub fn embedding(
    [count, dimension]: [usize; 2],
    padding_index: Option<usize>,
    weights: Option<Tensor>,
) -> Result<Layer> {
    let table = match weights {
        None => Tensor::of(&ops::random::normal([count, dimension], DType::F32, None)?),
        weights => given("embedding", weights, &[count, dimension], 1)?,
    };
    let parameters = vec![named("weights", table)];
    Ok(Layer::one("embedding", 1..=1, parameters, move |given| {
        let table = ops::reshape(given.get("weights")?, [count, dimension])?;
        let rows = ops::take(&table, given.x(), 0)?;
        let Some(index) = padding_index else { return Ok(rows) };
        let is_padding = ops::expand_dims(&ops::equal(given.x(), index as i32)?, -1)?;
        ops::where_(&is_padding, 0, &rows)
    }))
}

/// The matrix product of two tensors, times a number; either is transposed before if that is said.
pub fn matmul(alpha: f64, transposes_x: bool, transposes_y: bool) -> Layer {
    Layer::one("matmul", 2..=2, Vec::new(), move |given| {
        let turned =
            |x: &Array, turns| if turns { ops::swapaxes(x, -1, -2) } else { Ok(x.clone()) };
        let (x, y) = (turned(given.x(), transposes_x)?, turned(&given.inputs[1], transposes_y)?);
        let out = ops::matmul(&x, &y)?;
        if alpha == 1.0 { Ok(out) } else { ops::multiply(&out, alpha) }
    })
}

/// The parameters of an [`lstm`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lstm {
    /// The features of the input and of the hidden state.
    pub sizes: [usize; 2],
    /// Layers above one another; 1.
    pub layers: usize,
    /// Whether each goes both ways; no.
    pub is_bidirectional: bool,
    /// Whether it gives the hidden states after every step, or those after the last; every one.
    pub returns_sequences: bool,
    /// What drops out between layers while a graph trains; nothing.
    pub dropout: f64,
}

impl Lstm {
    /// One layer, one way.
    pub fn new(sizes: [usize; 2]) -> Self {
        let (is_bidirectional, returns_sequences) = (false, true);
        Lstm { sizes, layers: 1, is_bidirectional, returns_sequences, dropout: 0.0 }
    }

    fn ways(&self) -> &'static [&'static str] {
        if self.is_bidirectional { &["", "_reverse"] } else { &[""] }
    }
}

/// Long short-term memory over `[N, steps, features]`; the hidden and the cell states to begin with may follow,
/// `[layers · ways, N, hidden]` each. It gives hidden states, and the last hidden and cell states.
///
/// The parameters of layer i are `input_weights_i`, `hidden_weights_i` and `biases_i`, with the gates input, forget,
/// cell and output below one another, and with `_reverse` behind them for the way back. What is not given is drawn.
///
/// # Errors
/// Where a tensor that is given has another number of elements.
pub fn lstm(options: Lstm, parameters: &[(&str, &Tensor)]) -> Result<Layer> {
    let [inputs, hidden] = options.sizes;
    let mut own = Vec::new();
    for index in 0..options.layers {
        let features = if index == 0 { inputs } else { hidden * options.ways().len() };
        for way in options.ways() {
            let shapes: [(&str, &[usize]); 3] = [
                ("input_weights", &[4 * hidden, features]),
                ("hidden_weights", &[4 * hidden, hidden]),
                ("biases", &[4 * hidden]),
            ];
            for (kind, shape) in shapes {
                let name = format!("{kind}_{index}{way}");
                let known = parameters.iter().find(|(n, _)| *n == name).map(|(_, t)| (*t).clone());
                let tensor = given("lstm", known, shape, hidden)?;
                own.push((name, tensor));
            }
        }
    }
    Ok(Layer::new("lstm", 1..=3, own, Vec::new(), move |given| {
        let results = recurrent(given, &options)?;
        Ok(Made { results, states: Held::new() })
    }))
}

fn recurrent(given: &Given<'_>, options: &Lstm) -> Result<Vec<Array>> {
    let mut x = given.x().clone();
    let mut lasts: Vec<(Array, Array)> = Vec::new();
    for index in 0..options.layers {
        let mut outs = Vec::new();
        for way in options.ways() {
            let start = |which: usize| match given.inputs.get(which) {
                Some(states) => ops::take(states, lasts.len() as i32, 0),
                None => ops::zeros([x.shape()[0], options.sizes[1]], x.dtype()),
            };
            let steps = if way.is_empty() { x.clone() } else { ops::flip(&x, 1)? };
            let at = format!("_{index}{way}");
            let [hiddens, cells] = one_way(given, &at, &steps, [start(1)?, start(2)?])?;
            let last = |states: &Array| ops::take(states, -1, 1);
            lasts.push((last(&hiddens)?, last(&cells)?));
            outs.push(if way.is_empty() { hiddens } else { ops::flip(&hiddens, 1)? });
        }
        x = ops::concatenate(&outs.iter().collect::<Vec<_>>(), -1)?;
        if given.training && index + 1 < options.layers {
            x = dropped(&x, options.dropout, None)?;
        }
    }
    let hiddens: Vec<&Array> = lasts.iter().map(|(hidden, _)| hidden).collect();
    let cells: Vec<&Array> = lasts.iter().map(|(_, cell)| cell).collect();
    let out = match options.returns_sequences {
        true => x,
        false => ops::concatenate(&hiddens[hiddens.len() - options.ways().len()..], -1)?,
    };
    Ok(vec![out, ops::stack(&hiddens, 0)?, ops::stack(&cells, 0)?])
}

/// The hidden and the cell states after every step.
fn one_way(given: &Given<'_>, at: &str, x: &Array, start: [Array; 2]) -> Result<[Array; 2]> {
    let part = |kind: &str| given.get(&format!("{kind}{at}"));
    let projected = ops::matmul(x, &ops::swapaxes(part("input_weights")?, 0, 1)?)?;
    let projected = ops::add(&projected, part("biases")?)?;
    if projected.shape()[1] == 0 {
        let detail = format!("takes [N, steps, features] with a step, input is {}", x.aval());
        return Err(Error::shape("lstm", detail));
    }
    let weights = ops::swapaxes(part("hidden_weights")?, 0, 1)?;
    let step = |x: &Array, before: &[Option<Array>]| {
        let [Some(hidden), Some(cell)] = before else { return Ok(Vec::new()) };
        let gates = ops::split(&ops::add(x, &ops::matmul(hidden, &weights)?)?, 4, -1)?;
        let kept = ops::multiply(&ops::sigmoid(&gates[1])?, cell)?;
        let new = ops::multiply(&ops::sigmoid(&gates[0])?, &ops::tanh(&gates[2])?)?;
        let cell = ops::add(&kept, &new)?;
        Ok(vec![ops::multiply(&ops::sigmoid(&gates[3])?, &ops::tanh(&cell)?)?, cell])
    };
    let before = start.into_iter().map(Some).collect();
    let mut all = states(&ops::moveaxis(&projected, 1, 0)?, before, step)?.into_iter();
    match (all.next(), all.next()) {
        (Some(hiddens), Some(cells)) => Ok([hiddens, cells]),
        _ => Err(Error::argument("lstm", "a step gave no states")),
    }
}
