//! The transformer: encoder, decoder, and both.
//!
//! A. Vaswani et al., *Attention is all you need*, NeurIPS 2017; normalisation before the maps:
//! R. Xiong et al., *On layer normalization in the transformer architecture*, ICML 2020.

use std::sync::Arc;

use cupola_core::{Array, Error, Result, ops, transform};
use ops::AttentionMask;

use super::{Dropout, Layer, LayerNorm, Linear, Module, MultiHeadAttention, Relu};

/// What the layers of a transformer are like.
///
/// # Example
/// ```
/// use cupola::nn::{Gelu, TransformerEncoderLayer, TransformerOptions};
/// let options = TransformerOptions::new(8, 2).mlp_dims(16).dropout(0.1).activation(Gelu);
/// let layer = TransformerEncoderLayer::new(&options)?;
/// assert_eq!(layer.linear1.weight.shape()[..], [16, 8]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone)]
pub struct TransformerOptions {
    /// The features of inputs and outputs.
    pub dims: usize,
    /// The heads of each attention.
    pub heads: usize,
    /// The hidden features of each perceptron; 4·dims.
    pub mlp_dims: usize,
    /// The probability that dropout zeros an element; 0.
    pub dropout: f64,
    /// The perceptrons' activation; [`Relu`]. Its parameters are tied in all layers.
    pub activation: Arc<dyn Layer>,
    /// Whether inputs of attentions and perceptrons are normalised, or sums after them; true.
    pub norm_first: bool,
    /// Whether what is inside of the layers of a stack is computed again for derivatives, and not
    /// kept; false.
    pub checkpoint: bool,
}

/// Attention of a sequence to itself, then a perceptron, each added to its input.
///
/// # Shapes
/// `[N, L, dims]` stays; a mask broadcasts to `[N, heads, L, L]`.
///
/// # Dtypes
/// As [`MultiHeadAttention`] and [`LayerNorm`].
///
/// # Errors
/// `forward` fails where the input or the mask does not fit.
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::AttentionMask};
/// use cupola::nn::{Layer, TransformerEncoderLayer, TransformerOptions};
/// let layer = TransformerEncoderLayer::new(&TransformerOptions::new(8, 2))?;
/// let x = ops::ones([1, 5, 8], DType::F32)?;
/// assert_eq!(layer.forward(&x)?.shape()[..], [1, 5, 8]);
/// assert_eq!(layer.forward_masked(&x, AttentionMask::Causal)?.shape()[..], [1, 5, 8]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Module)]
pub struct TransformerEncoderLayer {
    /// The attention.
    pub attention: MultiHeadAttention,
    /// The norm at the attention.
    pub ln1: LayerNorm,
    /// The norm at the perceptron.
    pub ln2: LayerNorm,
    /// The perceptron's first map.
    pub linear1: Linear,
    /// The perceptron's second map.
    pub linear2: Linear,
    dropout1: Dropout,
    dropout2: Dropout,
    activation: Arc<dyn Layer>,
    norm_first: bool,
}

/// Attention of a sequence to itself, then to a memory, then a perceptron, each added to its input.
///
/// # Shapes
/// `[N, L, dims]` and a memory `[N, S, dims]` give `[N, L, dims]`; masks broadcast to
/// `[N, heads, L, L]` and `[N, heads, L, S]`.
///
/// # Dtypes
/// As [`MultiHeadAttention`] and [`LayerNorm`].
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::AttentionMask};
/// use cupola::nn::{TransformerDecoderLayer, TransformerOptions};
/// let layer = TransformerDecoderLayer::new(&TransformerOptions::new(8, 2))?;
/// let (x, memory) = (ops::ones([1, 5, 8], DType::F32)?, ops::ones([1, 3, 8], DType::F32)?);
/// let y = layer.forward(&x, &memory, AttentionMask::Causal, AttentionMask::None)?;
/// assert_eq!(y.shape()[..], [1, 5, 8]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Module)]
pub struct TransformerDecoderLayer {
    /// The attention to the sequence itself.
    pub self_attention: MultiHeadAttention,
    /// The attention to the memory.
    pub cross_attention: MultiHeadAttention,
    /// The norm at the first attention.
    pub ln1: LayerNorm,
    /// The norm at the second attention.
    pub ln2: LayerNorm,
    /// The norm at the perceptron.
    pub ln3: LayerNorm,
    /// The perceptron's first map.
    pub linear1: Linear,
    /// The perceptron's second map.
    pub linear2: Linear,
    dropout1: Dropout,
    dropout2: Dropout,
    dropout3: Dropout,
    activation: Arc<dyn Layer>,
    norm_first: bool,
}

/// Encoder layers one after another, and a norm.
///
/// # Shapes
/// As [`TransformerEncoderLayer`].
///
/// # Errors
/// `forward` fails where the input or the mask does not fit.
///
/// # Example
/// ```
/// use cupola::{DType, nn::{Layer, Module, TransformerEncoder, TransformerOptions}, ops};
/// let encoder = TransformerEncoder::new(2, &TransformerOptions::new(8, 2))?;
/// let y = encoder.forward(&ops::ones([1, 5, 8], DType::F32)?)?;
/// assert_eq!(y.shape()[..], [1, 5, 8]);
/// assert!(encoder.parameters().contains_key("layers.1.attention.query_proj.weight"));
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Module)]
pub struct TransformerEncoder {
    /// The layers.
    pub layers: Vec<TransformerEncoderLayer>,
    /// The norm.
    pub ln: LayerNorm,
    checkpoint: bool,
}

/// Decoder layers one after another, and a norm.
///
/// # Shapes
/// As [`TransformerDecoderLayer`].
///
/// # Example
/// ```
/// use cupola::{DType, ops, ops::AttentionMask};
/// use cupola::nn::{TransformerDecoder, TransformerOptions};
/// let decoder = TransformerDecoder::new(2, &TransformerOptions::new(8, 2))?;
/// let (x, memory) = (ops::ones([1, 5, 8], DType::F32)?, ops::ones([1, 3, 8], DType::F32)?);
/// let y = decoder.forward(&x, &memory, AttentionMask::Causal, AttentionMask::None)?;
/// assert_eq!(y.shape()[..], [1, 5, 8]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Module)]
pub struct TransformerDecoder {
    /// The layers.
    pub layers: Vec<TransformerDecoderLayer>,
    /// The norm.
    pub ln: LayerNorm,
    checkpoint: bool,
}

/// An encoder, and a decoder whose memory is what the encoder gives.
///
/// # Shapes
/// A source `[N, S, dims]` and a target `[N, L, dims]` give `[N, L, dims]`.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// use cupola::nn::{Transformer, TransformerMasks, TransformerOptions};
/// let model = Transformer::new(1, 1, &TransformerOptions::new(8, 2))?;
/// let (source, target) = (ops::ones([1, 3, 8], DType::F32)?, ops::ones([1, 5, 8], DType::F32)?);
/// let y = model.forward(&source, &target, TransformerMasks::default())?;
/// assert_eq!(y.shape()[..], [1, 5, 8]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Module)]
pub struct Transformer {
    /// The encoder.
    pub encoder: TransformerEncoder,
    /// The decoder.
    pub decoder: TransformerDecoder,
}

/// What the attentions of a [`Transformer`] see; everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransformerMasks<'a> {
    /// What the source sees of itself.
    pub source: AttentionMask<'a>,
    /// What the target sees of itself.
    pub target: AttentionMask<'a>,
    /// What the target sees of the encoded source.
    pub memory: AttentionMask<'a>,
}

impl TransformerOptions {
    /// The defaults, for so many features and heads.
    pub fn new(dims: usize, heads: usize) -> Self {
        TransformerOptions {
            dims,
            heads,
            mlp_dims: dims.saturating_mul(4),
            dropout: 0.0,
            activation: Arc::new(Relu),
            norm_first: true,
            checkpoint: false,
        }
    }

    /// With so many hidden features of each perceptron.
    pub fn mlp_dims(mut self, dims: usize) -> Self {
        self.mlp_dims = dims;
        self
    }

    /// With elements zeroed with this probability.
    pub fn dropout(mut self, probability: f64) -> Self {
        self.dropout = probability;
        self
    }

    /// With this activation of the perceptrons.
    pub fn activation(mut self, activation: impl Layer + 'static) -> Self {
        self.activation = Arc::new(activation);
        self
    }

    /// With inputs normalised before they are used, or sums.
    pub fn norm_first(mut self, norm_first: bool) -> Self {
        self.norm_first = norm_first;
        self
    }

    /// With what is inside of the layers of a stack computed again for derivatives, or kept.
    pub fn checkpoint(mut self, checkpoint: bool) -> Self {
        self.checkpoint = checkpoint;
        self
    }

    fn attention(&self) -> Result<MultiHeadAttention> {
        MultiHeadAttention::new(self.dims, self.heads)
    }

    fn maps(&self) -> Result<(Linear, Linear)> {
        Ok((Linear::new(self.dims, self.mlp_dims)?, Linear::new(self.mlp_dims, self.dims)?))
    }
}

impl TransformerEncoderLayer {
    /// A layer with these options.
    ///
    /// # Errors
    /// Where an option is out of its range.
    pub fn new(options: &TransformerOptions) -> Result<Self> {
        let attention = options.attention()?;
        let (linear1, linear2) = options.maps()?;
        Ok(TransformerEncoderLayer {
            attention,
            ln1: LayerNorm::new(options.dims)?,
            ln2: LayerNorm::new(options.dims)?,
            linear1,
            linear2,
            dropout1: Dropout::new(options.dropout)?,
            dropout2: Dropout::new(options.dropout)?,
            activation: options.activation.clone(),
            norm_first: options.norm_first,
        })
    }

    /// What the layer makes of `x`, whose elements see each other as `mask` says.
    ///
    /// # Errors
    /// Where `x` or `mask` does not fit.
    pub fn forward_masked(&self, x: &Array, mask: AttentionMask<'_>) -> Result<Array> {
        let x = residual(self.norm_first, &self.ln1, x, |y| {
            self.dropout1.forward(&self.attention.forward(y, y, y, mask)?)
        })?;
        residual(self.norm_first, &self.ln2, &x, |y| {
            let y = self.activation.forward(&self.linear1.forward(y)?)?;
            self.linear2.forward(&self.dropout2.forward(&y)?)
        })
    }
}

impl TransformerDecoderLayer {
    /// A layer with these options.
    ///
    /// # Errors
    /// Where an option is out of its range.
    pub fn new(options: &TransformerOptions) -> Result<Self> {
        let (self_attention, cross_attention) = (options.attention()?, options.attention()?);
        let (linear1, linear2) = options.maps()?;
        Ok(TransformerDecoderLayer {
            self_attention,
            cross_attention,
            ln1: LayerNorm::new(options.dims)?,
            ln2: LayerNorm::new(options.dims)?,
            ln3: LayerNorm::new(options.dims)?,
            linear1,
            linear2,
            dropout1: Dropout::new(options.dropout)?,
            dropout2: Dropout::new(options.dropout)?,
            dropout3: Dropout::new(options.dropout)?,
            activation: options.activation.clone(),
            norm_first: options.norm_first,
        })
    }

    /// What the layer makes of `x` and `memory`: `mask` says what `x` sees of itself, `memory_mask`
    /// what it sees of the memory.
    ///
    /// # Errors
    /// Where an input or a mask does not fit.
    pub fn forward(
        &self,
        x: &Array,
        memory: &Array,
        mask: AttentionMask<'_>,
        memory_mask: AttentionMask<'_>,
    ) -> Result<Array> {
        let x = residual(self.norm_first, &self.ln1, x, |y| {
            self.dropout1.forward(&self.self_attention.forward(y, y, y, mask)?)
        })?;
        let x = residual(self.norm_first, &self.ln2, &x, |y| {
            let y = self.cross_attention.forward(y, memory, memory, memory_mask)?;
            self.dropout2.forward(&y)
        })?;
        residual(self.norm_first, &self.ln3, &x, |y| {
            let y = self.activation.forward(&self.linear1.forward(y)?)?;
            self.linear2.forward(&self.dropout3.forward(&y)?)
        })
    }
}

impl TransformerEncoder {
    /// So many layers with these options.
    ///
    /// # Errors
    /// Where an option is out of its range.
    pub fn new(layers: usize, options: &TransformerOptions) -> Result<Self> {
        Ok(TransformerEncoder {
            layers: (0..layers)
                .map(|_| TransformerEncoderLayer::new(options))
                .collect::<Result<_>>()?,
            ln: LayerNorm::new(options.dims)?,
            checkpoint: options.checkpoint,
        })
    }

    /// What the layers make of `x`, whose elements see each other as `mask` says.
    ///
    /// # Errors
    /// Where `x` or `mask` does not fit.
    pub fn forward_masked(&self, x: &Array, mask: AttentionMask<'_>) -> Result<Array> {
        let y = through(&self.layers, self.checkpoint, x, |layer, x| layer.forward_masked(x, mask));
        self.ln.forward(&y?)
    }
}

impl TransformerDecoder {
    /// So many layers with these options.
    ///
    /// # Errors
    /// Where an option is out of its range.
    pub fn new(layers: usize, options: &TransformerOptions) -> Result<Self> {
        Ok(TransformerDecoder {
            layers: (0..layers)
                .map(|_| TransformerDecoderLayer::new(options))
                .collect::<Result<_>>()?,
            ln: LayerNorm::new(options.dims)?,
            checkpoint: options.checkpoint,
        })
    }

    /// What the layers make of `x` and `memory`; see [`TransformerDecoderLayer::forward`].
    ///
    /// # Errors
    /// Where an input or a mask does not fit.
    pub fn forward(
        &self,
        x: &Array,
        memory: &Array,
        mask: AttentionMask<'_>,
        memory_mask: AttentionMask<'_>,
    ) -> Result<Array> {
        let y = through(&self.layers, self.checkpoint, x, |layer, x| {
            layer.forward(x, memory, mask, memory_mask)
        });
        self.ln.forward(&y?)
    }
}

impl Transformer {
    /// So many layers of the encoder and of the decoder, with these options.
    ///
    /// # Errors
    /// Where an option is out of its range.
    pub fn new(
        encoder_layers: usize,
        decoder_layers: usize,
        options: &TransformerOptions,
    ) -> Result<Self> {
        Ok(Transformer {
            encoder: TransformerEncoder::new(encoder_layers, options)?,
            decoder: TransformerDecoder::new(decoder_layers, options)?,
        })
    }

    /// What the decoder makes of `target` and the encoded `source`.
    ///
    /// # Errors
    /// Where an input or a mask does not fit.
    pub fn forward(
        &self,
        source: &Array,
        target: &Array,
        masks: TransformerMasks<'_>,
    ) -> Result<Array> {
        let memory = self.encoder.forward_masked(source, masks.source)?;
        self.decoder.forward(target, &memory, masks.target, masks.memory)
    }
}

impl Layer for TransformerEncoderLayer {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward_masked(x, AttentionMask::None)
    }
}

impl Layer for TransformerEncoder {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.forward_masked(x, AttentionMask::None)
    }
}

/// `x` and what `f` makes of it, with the norm before `f` or after the sum.
fn residual(
    norm_first: bool,
    norm: &LayerNorm,
    x: &Array,
    f: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Array> {
    if norm_first {
        ops::add(x, &f(&norm.forward(x)?)?)
    } else {
        norm.forward(&ops::add(x, &f(x)?)?)
    }
}

/// One layer after another, each by `f`.
fn through<L>(
    layers: &[L],
    checkpoint: bool,
    x: &Array,
    f: impl Fn(&L, &Array) -> Result<Array>,
) -> Result<Array> {
    let mut x = x.clone();
    for layer in layers {
        x = if checkpoint {
            let again = transform::checkpoint(|x: &[Array]| Ok(vec![f(layer, &x[0])?]));
            let only = again(&[x])?.pop();
            only.ok_or_else(|| Error::argument("checkpoint", "a layer gave nothing"))?
        } else {
            f(layer, &x)?
        };
    }
    Ok(x)
}
