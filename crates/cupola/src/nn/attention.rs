//! Attention with several heads.

use cupola_core::{Array, DType, Error, Result, ops};
use ops::{AttentionMask, AttentionOptions};

use super::{Layer, Linear, Module};

/// Attention with several heads, between linear maps: each query takes the values whose keys agree
/// with it, in each head by other features.
///
/// A. Vaswani et al., *Attention is all you need*, NeurIPS 2017.
///
/// # Shapes
/// Queries `[N, L, query]`, keys `[N, S, key]` and values `[N, S, value]` give `[N, L, output]`. The
/// weights are those of linear layers: `query_proj` `[dims, query]`, `key_proj` `[dims, key]`,
/// `value_proj` `[value_dims, value]`, `out_proj` `[output, value_dims]`. A mask broadcasts to
/// `[N, heads, L, S]`.
///
/// # Dtypes
/// Inputs and parameters promote; the softmax of half types is taken in `float32`.
///
/// # Example
/// ```
/// use cupola::{DType, nn::MultiHeadAttention, ops, ops::AttentionMask};
/// let layer = MultiHeadAttention::new(8, 2)?;
/// let x = ops::ones([1, 5, 8], DType::F32)?;
/// assert_eq!(layer.forward(&x, &x, &x, AttentionMask::Causal)?.shape()[..], [1, 5, 8]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct MultiHeadAttention {
    /// The map of queries.
    pub query_proj: Linear,
    /// The map of keys.
    pub key_proj: Linear,
    /// The map of values.
    pub value_proj: Linear,
    /// The map of what the heads give.
    pub out_proj: Linear,
    heads: usize,
}

const OP: &str = "MultiHeadAttention";

impl MultiHeadAttention {
    /// Attention with so many heads, all inputs and the output of `dims` features, without biases.
    ///
    /// # Errors
    /// Where `dims` is 0 or no multiple of `heads`.
    pub fn new(dims: usize, heads: usize) -> Result<Self> {
        expect_divides("dims", dims, heads)?;
        let draw = || Ok::<_, Error>(Linear::new(dims, dims)?.bias(false));
        Ok(MultiHeadAttention {
            query_proj: draw()?,
            key_proj: draw()?,
            value_proj: draw()?,
            out_proj: draw()?,
            heads,
        })
    }

    /// With queries, keys and values of so many features; draws their maps anew.
    ///
    /// # Errors
    /// Where a number is 0.
    pub fn input_dims(mut self, query: usize, key: usize, value: usize) -> Result<Self> {
        let maps = [&mut self.query_proj, &mut self.key_proj, &mut self.value_proj];
        for (map, inputs) in maps.into_iter().zip([query, key, value]) {
            *map = redrawn(map, Some(inputs), None)?;
        }
        Ok(self)
    }

    /// With so many features of the mapped values, in all heads together; draws the maps of values
    /// and of the output anew.
    ///
    /// # Errors
    /// Where `dims` is 0 or no multiple of the number of heads.
    pub fn value_dims(mut self, dims: usize) -> Result<Self> {
        expect_divides("value_dims", dims, self.heads)?;
        self.value_proj = redrawn(&self.value_proj, None, Some(dims))?;
        self.out_proj = redrawn(&self.out_proj, Some(dims), None)?;
        Ok(self)
    }

    /// With so many features of the output; draws its map anew.
    ///
    /// # Errors
    /// Where `dims` is 0.
    pub fn output_dims(mut self, dims: usize) -> Result<Self> {
        self.out_proj = redrawn(&self.out_proj, None, Some(dims))?;
        Ok(self)
    }

    /// With biases in the four maps, or without.
    ///
    /// # Errors
    /// None but those of recording.
    pub fn bias(mut self, bias: bool) -> Result<Self> {
        let maps =
            [&mut self.query_proj, &mut self.key_proj, &mut self.value_proj, &mut self.out_proj];
        for map in maps {
            if !bias {
                map.bias = None;
            } else if map.bias.is_none() {
                let (inputs, outputs) = sizes(map);
                map.bias = Linear::new(inputs, outputs)?.bias;
            }
        }
        Ok(self)
    }

    /// How many heads there are.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// What the queries take of the values, as far as `mask` lets them see the keys.
    ///
    /// # Errors
    /// Where shapes do not fit each other, the layer or the mask.
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, nn::MultiHeadAttention, ops, ops::AttentionMask};
    /// let layer = MultiHeadAttention::new(8, 2)?.input_dims(8, 6, 6)?.bias(true)?;
    /// let (x, memory) = (ops::ones([1, 5, 8], DType::F32)?, ops::ones([1, 3, 6], DType::F32)?);
    /// let seen = ops::ones([5, 3], DType::Bool)?;
    /// let y = layer.forward(&x, &memory, &memory, AttentionMask::Array(&seen))?;
    /// assert_eq!(y.shape()[..], [1, 5, 8]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn forward(
        &self,
        queries: &Array,
        keys: &Array,
        values: &Array,
        mask: AttentionMask<'_>,
    ) -> Result<Array> {
        if [queries, keys, values].iter().any(|x| x.rank() != 3) {
            let (q, k, v) = (queries.aval(), keys.aval(), values.aval());
            let detail = format!("takes [N, L, features], queries are {q}, keys {k}, values {v}");
            return Err(Error::shape(OP, detail));
        }
        let q = self.split(&self.query_proj.forward(queries)?)?;
        let k = self.split(&self.key_proj.forward(keys)?)?;
        let v = self.split(&self.value_proj.forward(values)?)?;
        let features = sizes(&self.query_proj).1 / self.heads;
        let options =
            AttentionOptions { mask, ..AttentionOptions::new(1.0 / (features as f64).sqrt()) };
        let y = ops::scaled_dot_product_attention(&q, &k, &v, &options)?;
        self.out_proj.forward(&ops::flatten(&ops::transpose(&y, [0, 2, 1, 3])?, -2, -1)?)
    }

    /// From `[N, L, heads·d]` to `[N, heads, L, d]`.
    fn split(&self, x: &Array) -> Result<Array> {
        let apart = ops::unflatten(x, -1, [self.heads as isize, -1])?;
        ops::transpose(&apart, [0, 2, 1, 3])
    }

    /// A mask to add to scores: 0 up to a query's own place and the lowest number of `dtype` behind
    /// it. [`AttentionMask::Causal`] says the same and needs no memory.
    ///
    /// # Shapes
    /// `[length, length]`.
    ///
    /// # Errors
    /// Where `dtype` is no float.
    ///
    /// # Example
    /// ```
    /// use cupola::{DType, nn::MultiHeadAttention};
    /// let mask = MultiHeadAttention::create_additive_causal_mask(2, DType::F32)?;
    /// assert_eq!(mask.to_vec::<f32>()?, [0.0, f32::MIN, 0.0, 0.0]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn create_additive_causal_mask(length: usize, dtype: DType) -> Result<Array> {
        let lowest = match dtype {
            DType::F16 => half::f16::MIN.to_f64(),
            DType::BF16 => half::bf16::MIN.to_f64(),
            DType::F32 => f64::from(f32::MIN),
            DType::F64 => f64::MIN,
            other => {
                let detail = format!("masks that are added are of floats, not {other}");
                return Err(Error::dtype(OP, detail));
            }
        };
        let after = ops::triu(&ops::ones([length, length], DType::Bool)?, 1)?;
        let zeros = ops::zeros([length, length], dtype)?;
        ops::where_(&after, lowest, &zeros)
    }
}

fn expect_divides(what: &str, dims: usize, heads: usize) -> Result<()> {
    if dims > 0 && heads > 0 && dims.is_multiple_of(heads) {
        return Ok(());
    }
    Err(Error::argument(OP, format!("{what} {dims} does not divide into {heads} heads")))
}

/// Features in and out.
fn sizes(map: &Linear) -> (usize, usize) {
    let shape = map.weight.shape();
    (shape[1], shape[0])
}

/// A map drawn anew, with other sizes where they are given, and a bias where it had one.
fn redrawn(map: &Linear, inputs: Option<usize>, outputs: Option<usize>) -> Result<Linear> {
    let (former_inputs, former_outputs) = sizes(map);
    let drawn = Linear::new(inputs.unwrap_or(former_inputs), outputs.unwrap_or(former_outputs))?;
    Ok(drawn.bias(map.bias.is_some()))
}
