//! Attention of several heads.

use cupola_core::ops::{AttentionMask, AttentionOptions};
use cupola_core::{Array, DType, Result, ops};

use super::conv::given;
use super::elementwise::dropped;
use super::layer::{Given, wrong};
use super::{Layer, Tensor};

/// The parameters of a [`multihead_attention`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Attention {
    /// The features of queries and results.
    pub model: usize,
    /// The features of keys.
    pub keys: usize,
    /// The features of values.
    pub values: usize,
    /// How many heads.
    pub heads: usize,
    /// What of the weights drops out while a graph trains; nothing.
    pub dropout: f64,
    /// Whether a learnt key and value come behind the others; no.
    pub has_attention_biases: bool,
    /// Whether a key and a value of zeros come behind the others; no.
    pub adds_zero_attention: bool,
}

impl Attention {
    /// Of so many features and heads.
    pub fn new(model: usize, heads: usize) -> Self {
        Attention {
            model,
            keys: model,
            values: model,
            heads,
            dropout: 0.0,
            has_attention_biases: false,
            adds_zero_attention: false,
        }
    }
}

/// Attention over queries, keys and values, `[N, steps, features]`, and a mask if it is given: true where a key may be
/// seen, or numbers that are added to the scores.
///
/// The parameters are `query_weights`, `key_weights`, `value_weights` and `output_weights`, with biases of the same names,
/// and `key_attention_biases` and `value_attention_biases`. What is not given is drawn.
///
/// # Errors
/// Where the heads do not divide the features, or a tensor that is given has another number of elements.
pub fn multihead_attention(options: Attention, parameters: &[(&str, &Tensor)]) -> Result<Layer> {
    let Attention { model, keys, values, heads, .. } = options;
    if heads == 0 || !model.is_multiple_of(heads) {
        return Err(wrong("multihead_attention", format!("{heads} heads do not divide {model}")));
    }
    let mut own = Vec::new();
    let mut add = |name: String, shape: &[usize], fan_in: usize| -> Result<()> {
        let known = parameters.iter().find(|(n, _)| *n == name).map(|(_, t)| (*t).clone());
        own.push((name, given("multihead_attention", known, shape, fan_in)?));
        Ok(())
    };
    for (part, size) in [("query", model), ("key", keys), ("value", values), ("output", model)] {
        add(format!("{part}_weights"), &[model, size], size)?;
        add(format!("{part}_biases"), &[model], size)?;
    }
    if options.has_attention_biases {
        add("key_attention_biases".into(), &[model], model)?;
        add("value_attention_biases".into(), &[model], model)?;
    }
    Ok(Layer::one("multihead_attention", 3..=4, own, move |given| attended(given, &options)))
}

fn mapped(given: &Given<'_>, x: &Array, part: &str) -> Result<Array> {
    let weights = ops::swapaxes(given.get(&format!("{part}_weights"))?, 0, 1)?;
    ops::add(&ops::matmul(x, &weights)?, given.get(&format!("{part}_biases"))?)
}

fn attended(given: &Given<'_>, options: &Attention) -> Result<Array> {
    let queries = mapped(given, &given.inputs[0], "query")?;
    let mut keys = mapped(given, &given.inputs[1], "key")?;
    let mut values = mapped(given, &given.inputs[2], "value")?;
    let mut mask = given.inputs.get(3).cloned();
    let zero = ops::zeros([options.model], queries.dtype())?;
    let learnt = [options.has_attention_biases, options.adds_zero_attention];
    for (is_learnt, _) in [true, false].into_iter().zip(learnt).filter(|(_, adds)| *adds) {
        let shape = [queries.shape()[0], 1, options.model];
        let behind = |x: &Array, name: &str| {
            let row = if is_learnt { given.get(name)? } else { &zero };
            ops::concatenate(&[x, &ops::broadcast_to(row, shape)?], 1)
        };
        keys = behind(&keys, "key_attention_biases")?;
        values = behind(&values, "value_attention_biases")?;
        if let Some(held) = &mask {
            let mut widths = vec![(0, 0); held.rank()];
            if let Some(last) = widths.last_mut() {
                last.1 = 1;
            }
            let seen = i32::from(held.dtype() == DType::Bool);
            mask = Some(ops::pad(held, ops::PadWidths::Each(widths), seen)?);
        }
    }
    let heads = |x: &Array| {
        let [batch, steps] = [x.shape()[0], x.shape()[1]];
        let rows = ops::reshape(x, [batch, steps, options.heads, options.model / options.heads])?;
        ops::transpose(&rows, [0, 2, 1, 3])
    };
    let (q, k, v) = (heads(&queries)?, heads(&keys)?, heads(&values)?);
    let scale = 1.0 / ((options.model / options.heads) as f64).sqrt();
    let out = if given.training && options.dropout > 0.0 {
        let scores = ops::matmul(&ops::multiply(&q, scale)?, &ops::swapaxes(&k, -1, -2)?)?;
        let scores = match &mask {
            None => scores,
            Some(mask) if mask.dtype() == DType::Bool => {
                ops::where_(mask, &scores, f64::NEG_INFINITY)?
            }
            Some(mask) => ops::add(&scores, mask)?,
        };
        ops::matmul(&dropped(&ops::softmax(&scores, -1)?, options.dropout, None)?, &v)?
    } else {
        let mask = mask.as_ref().map_or(AttentionMask::None, AttentionMask::Array);
        let how = AttentionOptions { mask, ..AttentionOptions::new(scale) };
        ops::scaled_dot_product_attention(&q, &k, &v, &how)?
    };
    let out = ops::reshape(&ops::transpose(&out, [0, 2, 1, 3])?, queries.shape().clone())?;
    mapped(given, &out, "output")
}
