"""Attention, and the transformer of Vaswani et al., *Attention Is All You Need* (2017)."""

from __future__ import annotations

import math
from typing import Any, Callable, ClassVar, Optional

import cupola.core as mx
from cupola.nn.layers.activations import relu
from cupola.nn.layers.base import Module
from cupola.nn.layers.dropout import Dropout
from cupola.nn.layers.linear import Linear
from cupola.nn.layers.normalization import LayerNorm
from cupola.nn.utils import checkpoint as checkpointed


class MultiHeadAttention(Module):
    """Scaled dot product attention with several heads, between linear maps.

    Args:
        dims: The number of features of the model, the default of all other numbers.
        num_heads: The number of heads.
        query_input_dims: The number of features of the queries.
        key_input_dims: The number of features of the keys.
        value_input_dims: The number of features of the values; ``key_input_dims`` by default.
        value_dims: The number of features of the mapped values.
        value_output_dims: The number of features of the result.
        bias: Whether the linear maps have biases.

    Raises:
        ValueError: If ``dims`` is no multiple of ``num_heads``.

    Example:
        >>> x = mx.ones((1, 5, 8))
        >>> nn.MultiHeadAttention(8, 2)(x, x, x).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        query_input_dims: Optional[int] = None,
        key_input_dims: Optional[int] = None,
        value_input_dims: Optional[int] = None,
        value_dims: Optional[int] = None,
        value_output_dims: Optional[int] = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        if dims % num_heads != 0:
            raise ValueError(
                "The input feature dimensions should be divisible by the number of heads "
                f"({dims} % {num_heads}) != 0"
            )
        query_input_dims = query_input_dims or dims
        key_input_dims = key_input_dims or dims
        value_input_dims = value_input_dims or key_input_dims
        value_dims = value_dims or dims
        value_output_dims = value_output_dims or dims

        self.num_heads = num_heads
        self.query_proj = Linear(query_input_dims, dims, bias=bias)
        self.key_proj = Linear(key_input_dims, dims, bias=bias)
        self.value_proj = Linear(value_input_dims, value_dims, bias=bias)
        self.out_proj = Linear(value_dims, value_output_dims, bias=bias)

    def _heads(self, x: mx.array) -> mx.array:
        """From ``[N, L, heads · D]`` to ``[N, heads, L, D]``."""
        batch, length, features = x.shape
        heads = x.reshape(batch, length, self.num_heads, features // self.num_heads)
        return heads.transpose(0, 2, 1, 3)

    def __call__(
        self, queries: mx.array, keys: mx.array, values: mx.array, mask: Any = None
    ) -> mx.array:
        """Attend to the values whose keys fit the queries.

        Args:
            queries: Of shape ``[N, queries, features]``.
            keys: Of shape ``[N, keys, features]``.
            values: Of shape ``[N, keys, features]``.
            mask: Added to the scores, which are of shape ``[N, heads, queries, keys]``.
        """
        q = self._heads(self.query_proj(queries))
        k = self._heads(self.key_proj(keys))
        v = self._heads(self.value_proj(values))
        scale = math.sqrt(1 / q.shape[-1])
        out = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)
        out = out.transpose(0, 2, 1, 3)
        return self.out_proj(out.reshape(*out.shape[:-2], -1))

    @staticmethod
    def create_additive_causal_mask(N: int, dtype: mx.Dtype = mx.float32) -> mx.array:
        """A mask of shape ``[N, N]`` that keeps each position from those after it."""
        positions = mx.arange(N)
        after = positions[:, None] < positions[None]
        return after.astype(dtype) * mx.finfo(dtype).min


class TransformerEncoderLayer(Module):
    """Attention of a sequence to itself and a perceptron, each added to its input.

    Args:
        dims: The number of features.
        num_heads: The number of heads.
        mlp_dims: The number of hidden features of the perceptron; ``4 · dims`` by default.
        dropout: The probability of dropping an element.
        activation: The perceptron's activation.
        norm_first: Whether inputs are normalised before they are used; otherwise sums are.

    Example:
        >>> nn.TransformerEncoderLayer(8, 2)(mx.ones((1, 5, 8)), mask=None).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: Optional[int] = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Any] = relu,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        mlp_dims = mlp_dims or dims * 4
        self.attention = MultiHeadAttention(dims, num_heads)
        self.ln1 = LayerNorm(dims)
        self.ln2 = LayerNorm(dims)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def _perceptron(self, x: mx.array) -> mx.array:
        return self.linear2(self.dropout2(self.activation(self.linear1(x))))

    def __call__(self, x: mx.array, mask: Any) -> mx.array:
        """Apply the layer to ``x`` of shape ``[N, L, dims]``."""
        if self.norm_first:
            y = self.ln1(x)
            x = x + self.dropout1(self.attention(y, y, y, mask))
            return x + self._perceptron(self.ln2(x))
        x = self.ln1(x + self.dropout1(self.attention(x, x, x, mask)))
        return self.ln2(x + self._perceptron(x))


class _Stack(Module):
    """What encoder and decoder have in common: layers one after another, and a normalisation."""

    _layer: ClassVar[Any]

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: Optional[int] = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Any] = relu,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.layers = [
            type(self)._layer(dims, num_heads, mlp_dims, dropout, activation, norm_first)
            for _ in range(num_layers)
        ]
        self.ln = LayerNorm(dims)
        self.checkpoint = checkpoint

    def _through(self, x: mx.array, *rest: Any) -> mx.array:
        for layer in self.layers:
            call: Callable = checkpointed(layer) if self.checkpoint else layer
            x = call(x, *rest)
        return self.ln(x)


class TransformerEncoder(_Stack):
    """Encoder layers one after another, and a normalisation.

    Args:
        num_layers: The number of layers.
        dims: The number of features.
        num_heads: The number of heads.
        mlp_dims: The number of hidden features of the perceptrons; ``4 · dims`` by default.
        dropout: The probability of dropping an element.
        activation: The perceptrons' activation.
        norm_first: Whether inputs are normalised before they are used; otherwise sums are.
        checkpoint: Whether a layer's inner results are computed again for its gradient.

    Example:
        >>> nn.TransformerEncoder(2, 8, 2)(mx.ones((1, 5, 8)), mask=None).shape
        (1, 5, 8)
    """

    _layer = TransformerEncoderLayer

    def __call__(self, x: mx.array, mask: Any) -> mx.array:
        """Encode ``x`` of shape ``[N, L, dims]``."""
        return self._through(x, mask)


class TransformerDecoderLayer(Module):
    """Attention to the sequence itself and to a memory, and a perceptron, each added to its input.

    Args:
        dims: The number of features.
        num_heads: The number of heads.
        mlp_dims: The number of hidden features of the perceptron; ``4 · dims`` by default.
        dropout: The probability of dropping an element.
        activation: The perceptron's activation.
        norm_first: Whether inputs are normalised before they are used; otherwise sums are.

    Example:
        >>> x, memory = mx.ones((1, 5, 8)), mx.ones((1, 3, 8))
        >>> nn.TransformerDecoderLayer(8, 2)(x, memory, None, None).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: Optional[int] = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Any] = relu,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        mlp_dims = mlp_dims or dims * 4
        self.self_attention = MultiHeadAttention(dims, num_heads)
        self.cross_attention = MultiHeadAttention(dims, num_heads)
        self.ln1 = LayerNorm(dims)
        self.ln2 = LayerNorm(dims)
        self.ln3 = LayerNorm(dims)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def _perceptron(self, x: mx.array) -> mx.array:
        return self.linear2(self.dropout3(self.activation(self.linear1(x))))

    def __call__(self, x: mx.array, memory: mx.array, x_mask: Any, memory_mask: Any) -> mx.array:
        """Apply the layer to ``x`` of shape ``[N, L, dims]`` and a memory."""
        if self.norm_first:
            y = self.ln1(x)
            x = x + self.dropout1(self.self_attention(y, y, y, x_mask))
            y = self.ln2(x)
            x = x + self.dropout2(self.cross_attention(y, memory, memory, memory_mask))
            return x + self._perceptron(self.ln3(x))
        x = self.ln1(x + self.dropout1(self.self_attention(x, x, x, x_mask)))
        y = self.cross_attention(x, memory, memory, memory_mask)
        x = self.ln2(x + self.dropout2(y))
        return self.ln3(x + self._perceptron(x))


class TransformerDecoder(_Stack):
    """Decoder layers one after another, and a normalisation.

    Args:
        num_layers: The number of layers.
        dims: The number of features.
        num_heads: The number of heads.
        mlp_dims: The number of hidden features of the perceptrons; ``4 · dims`` by default.
        dropout: The probability of dropping an element.
        activation: The perceptrons' activation.
        norm_first: Whether inputs are normalised before they are used; otherwise sums are.
        checkpoint: Whether a layer's inner results are computed again for its gradient.

    Example:
        >>> x, memory = mx.ones((1, 5, 8)), mx.ones((1, 3, 8))
        >>> nn.TransformerDecoder(2, 8, 2)(x, memory, None, None).shape
        (1, 5, 8)
    """

    _layer = TransformerDecoderLayer

    def __call__(self, x: mx.array, memory: mx.array, x_mask: Any, memory_mask: Any) -> mx.array:
        """Decode ``x`` of shape ``[N, L, dims]`` with a memory."""
        return self._through(x, memory, x_mask, memory_mask)


class Transformer(Module):
    """An encoder, and a decoder that attends to what it gives.

    Args:
        dims: The number of features.
        num_heads: The number of heads.
        num_encoder_layers: The number of encoder layers.
        num_decoder_layers: The number of decoder layers.
        mlp_dims: The number of hidden features of the perceptrons; ``4 · dims`` by default.
        dropout: The probability of dropping an element.
        activation: The perceptrons' activation.
        custom_encoder: Another encoder.
        custom_decoder: Another decoder.
        norm_first: Whether inputs are normalised before they are used; otherwise sums are.
        checkpoint: Whether a layer's inner results are computed again for its gradient.

    Example:
        >>> model = nn.Transformer(8, 2, 1, 1)
        >>> model(mx.ones((1, 3, 8)), mx.ones((1, 5, 8)), None, None, None).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        dims: int = 512,
        num_heads: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        mlp_dims: Optional[int] = None,
        dropout: float = 0.0,
        activation: Callable[[Any], Any] = relu,
        custom_encoder: Optional[Any] = None,
        custom_decoder: Optional[Any] = None,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        shared = (dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint)
        self.encoder = (
            TransformerEncoder(num_encoder_layers, *shared)
            if custom_encoder is None
            else custom_encoder
        )
        self.decoder = (
            TransformerDecoder(num_decoder_layers, *shared)
            if custom_decoder is None
            else custom_decoder
        )

    def __call__(
        self, src: mx.array, tgt: mx.array, src_mask: Any, tgt_mask: Any, memory_mask: Any
    ) -> mx.array:
        """Encode ``src`` and decode ``tgt`` with it."""
        memory = self.encoder(src, src_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask)
