"""Layers that have learnt weights: convolution, fully connected, embedding, LSTM, attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cupola.core as mx
from cupola.nn.layers.recurrent import stepped

from ._layer import Layer, learnt, one_of, pair, taking, uniform
from ._shape import Padding, borders
from ._tensor import Tensor


def convolution_layer(
    input_channels: int,
    output_channels: int,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    padding: Padding = "valid",
    groups: int = 1,
    kind: str = "standard",
    weights: Any = None,
    biases: Any = None,
    has_biases: bool = True,
) -> Layer:
    """A convolution of images, ``[N, C, H, W]``: ``standard``, ``transposed`` or ``depthwise``, which has a group for
    each channel. Weights are ``[output channels, input channels / groups, height, width]``. Padding is ``valid``,
    ``same`` (of a transposed one: an output of the input's size times the stride) or numbers.

    Example:
        >>> convolution_layer(3, 8, kernel=5, padding="same").weights
        Tensor(weights: Float32[8, 3, 5, 5])
    """
    one_of("convolution", kind, ["standard", "transposed", "depthwise"])
    groups = input_channels if kind == "depthwise" else groups
    if input_channels % groups or output_channels % groups:
        raise ValueError(
            f"[mlcompute] convolution layer: {groups} groups do not divide {input_channels} and "
            f"{output_channels} channels"
        )
    window, steps, apart = pair(kernel), pair(stride), pair(dilation)
    reach = [(size - 1) * step + 1 for size, step in zip(window, apart)]
    shape = [output_channels, input_channels // groups, *window]
    fan_in = math.prod(shape[1:])
    parameters = {
        "weights": learnt("convolution", "weights", weights, shape, uniform(shape, fan_in))
    }
    if has_biases or biases is not None:
        start = uniform([output_channels], fan_in)
        parameters["biases"] = learnt("convolution", "biases", biases, [output_channels], start)

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("convolution", inputs, 1)
        x = inputs[0].transpose(0, 2, 3, 1)
        kernel = held["weights"].reshape(shape).transpose(0, 2, 3, 1)
        if kind == "transposed":
            x = _transposed(x, kernel, steps, apart, reach, padding, groups)
        else:
            sides = borders("convolution", padding, x.shape[1:3], reach, steps)
            low, high = [side[0] for side in sides], [side[1] for side in sides]
            x = mx.conv_general(x, kernel, steps, (low, high), apart, groups=groups)
        if "biases" in held:
            x = x + held["biases"].reshape(-1)
        return x.transpose(0, 3, 1, 2)

    return Layer(f"convolution_{kind}", forward, parameters)


def _transposed(
    x: mx.array,
    kernel: mx.array,
    steps: tuple[int, int],
    apart: tuple[int, int],
    reach: Sequence[int],
    padding: Padding,
    groups: int,
) -> mx.array:
    full = [(size - 1) * step + wide for size, step, wide in zip(x.shape[1:3], steps, reach)]
    if padding == "same":
        surplus = [have - size * step for have, size, step in zip(full, x.shape[1:3], steps)]
        sides = [(max(much, 0) // 2, max(much, 0) - max(much, 0) // 2) for much in surplus]
        more = [max(-much, 0) for much in surplus]
    else:
        sides, more = borders("convolution", padding, full, reach, steps), [0, 0]
    out = mx.conv_transpose2d(x, kernel, steps, 0, apart, more, groups)
    (top, bottom), (left, right) = sides
    return out[:, top : out.shape[1] - bottom, left : out.shape[2] - right]


def fully_connected_layer(
    input_features: int,
    output_features: int,
    weights: Any = None,
    biases: Any = None,
    has_biases: bool = True,
) -> Layer:
    """A linear map of the last dimension; of images, ``[N, C, H, W]``, whose last dimension is another, of all their
    elements. Weights are ``[output features, input features]``.

    Example:
        >>> fully_connected_layer(4, 2).biases
        Tensor(biases: Float32[2])
    """
    shape = [output_features, input_features]
    start = uniform(shape, input_features)
    parameters = {"weights": learnt("fully connected", "weights", weights, shape, start)}
    if has_biases or biases is not None:
        start = uniform([output_features], input_features)
        own = learnt("fully connected", "biases", biases, [output_features], start)
        parameters["biases"] = own

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("fully connected", inputs, 1)
        (x,) = inputs
        if x.shape[-1] != input_features and math.prod(x.shape[1:]) == input_features:
            x = x.reshape(x.shape[0], input_features)
        out = x @ held["weights"].reshape(shape).T
        return out + held["biases"].reshape(-1) if "biases" in held else out

    return Layer("fully_connected", forward, parameters)


def embedding_layer(
    count: int,
    dimension: int,
    padding_index: int | None = None,
    maximum_norm: float | None = None,
    p_norm: float = 2.0,
    weights: Any = None,
) -> Layer:
    """The rows of a table at indices. The row of the padding index is 0 and is not learnt; rows of a larger norm
    are scaled down to the maximum."""
    start = lambda: mx.random.normal([count, dimension])  # noqa: E731
    table = learnt("embedding", "weights", weights, [count, dimension], start)

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("embedding", inputs, 1)
        (indices,) = inputs
        rows = mx.take(held["weights"].reshape(count, dimension), indices, axis=0)
        if maximum_norm is not None:
            norm = mx.linalg.norm(rows, ord=p_norm, axis=-1, keepdims=True)
            rows = mx.where(norm > maximum_norm, rows * (maximum_norm / norm), rows)
        if padding_index is not None:
            rows = mx.where((indices == padding_index % count)[..., None], 0, rows)
        return rows

    return Layer("embedding", forward, {"weights": table})


def matmul_layer(
    alpha: float = 1.0, transposes_x: bool = False, transposes_y: bool = False
) -> Layer:
    """The matrix product of two tensors, times a number; either is transposed before if that is said."""

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("matmul", inputs, 2)
        x, y = inputs
        x = x.swapaxes(-1, -2) if transposes_x else x
        y = y.swapaxes(-1, -2) if transposes_y else y
        return (x @ y) * alpha if alpha != 1 else x @ y

    return Layer("matmul", forward)


def lstm_layer(
    input_size: int,
    hidden_size: int,
    layer_count: int = 1,
    uses_biases: bool = True,
    batch_first: bool = True,
    is_bidirectional: bool = False,
    returns_sequences: bool = True,
    returns_states: bool = False,
    dropout: float = 0.0,
    parameters: dict[str, Any] | None = None,
) -> Layer:
    """Layers of long short-term memory over ``[N, steps, features]``, or over ``[steps, N, features]`` where
    the batch is not first.

    A tensor of inputs may be followed by the hidden and the cell states to begin with, each
    ``[layers · directions, N, hidden]``. It gives the hidden states after every step, or those after the last one;
    with ``returns_states`` also the last hidden and cell states. The parameters of layer i are
    ``input_weights_i``, ``hidden_weights_i`` and ``biases_i``, with the gates input, forget, cell and output below one
    another, and with ``_reverse`` behind them for the way back.

    Example:
        >>> list(lstm_layer(3, 4).parameters)
        ['input_weights_0', 'hidden_weights_0', 'biases_0']
    """
    given = parameters or {}
    ways = ["", "_reverse"] if is_bidirectional else [""]
    own: dict[str, Tensor] = {}
    for index in range(layer_count):
        features = input_size if index == 0 else hidden_size * len(ways)
        for way in ways:
            shapes = {
                "input_weights": [4 * hidden_size, features],
                "hidden_weights": [4 * hidden_size, hidden_size],
            }
            if uses_biases:
                shapes["biases"] = [4 * hidden_size]
            for kind, shape in shapes.items():
                name = f"{kind}_{index}{way}"
                start = uniform(shape, hidden_size)
                own[name] = learnt("lstm", name, given.get(name), shape, start)
    for name in given:
        if name not in own:
            raise ValueError(f"[mlcompute] lstm layer: there is no parameter '{name}'")

    def forward(inputs: Any, held: Any, training: bool) -> Any:
        taking("lstm", inputs, 1, 3)
        x = inputs[0] if batch_first else inputs[0].swapaxes(0, 1)
        lasts: list[tuple[mx.array, mx.array]] = []
        for index in range(layer_count):
            outs = []
            for way in ways:
                place = len(lasts)
                start = [state[place] for state in inputs[1:]]
                start += [mx.zeros((x.shape[0], hidden_size), x.dtype)] * (2 - len(start))
                at = f"_{index}{way}"
                hiddens, cells = _lstm(x[:, ::-1] if way else x, start, held, at)
                outs.append(hiddens[:, ::-1] if way else hiddens)
                lasts.append((hiddens[:, -1], cells[:, -1]))
            x = mx.concatenate(outs, axis=-1) if len(outs) > 1 else outs[0]
            if training and dropout > 0 and index + 1 < layer_count:
                kept = mx.random.bernoulli(1 - dropout, x.shape)
                x = mx.where(kept, x / (1 - dropout), 0)
        if returns_sequences:
            out = x if batch_first else x.swapaxes(0, 1)
        else:
            out = mx.concatenate([hidden for hidden, _ in lasts[-len(ways) :]], axis=-1)
        if not returns_states:
            return out
        return [out, mx.stack([hidden for hidden, _ in lasts]), mx.stack([c for _, c in lasts])]

    return Layer("lstm", forward, own)


def _lstm(x: mx.array, start: Sequence[mx.array], held: Any, at: str) -> tuple[mx.array, ...]:
    """The hidden and the cell states after every step."""
    projected = x @ held[f"input_weights{at}"].T
    if f"biases{at}" in held:
        projected = projected + held[f"biases{at}"]
    weights = held[f"hidden_weights{at}"].T

    def step(gates: mx.array, before: Any) -> tuple[mx.array, ...]:
        hidden, cell = before
        i, f, g, o = mx.split(mx.addmm(gates, hidden, weights), 4, axis=-1)
        cell = mx.sigmoid(f) * cell + mx.sigmoid(i) * mx.tanh(g)
        return mx.sigmoid(o) * mx.tanh(cell), cell

    return stepped(projected, tuple(start), step)


def multihead_attention_layer(
    model_dimension: int,
    head_count: int,
    key_dimension: int | None = None,
    value_dimension: int | None = None,
    dropout: float = 0.0,
    has_biases: bool = True,
    has_attention_biases: bool = False,
    adds_zero_attention: bool = False,
    parameters: dict[str, Any] | None = None,
) -> Layer:
    """Attention of several heads over queries, keys and values, ``[N, steps, features]``, and a mask that is added to
    the scores, if it is given: true where a key may be seen, or numbers.

    The parameters are ``query_weights``, ``key_weights``, ``value_weights`` and ``output_weights``, with biases of the
    same names. With ``has_attention_biases`` a learnt key and value come behind the others, with
    ``adds_zero_attention`` one of zeros.
    """
    if model_dimension % head_count:
        raise ValueError(
            f"[mlcompute] multihead attention layer: {head_count} heads do not divide {model_dimension}"
        )
    given, own = parameters or {}, {}
    sizes = {
        "query": model_dimension,
        "key": key_dimension or model_dimension,
        "value": value_dimension or model_dimension,
        "output": model_dimension,
    }
    shapes = {f"{part}_weights": [model_dimension, size] for part, size in sizes.items()}
    if has_biases:
        shapes |= {f"{part}_biases": [model_dimension] for part in sizes}
    if has_attention_biases:
        shapes |= {f"{part}_attention_biases": [model_dimension] for part in ("key", "value")}
    for name, shape in shapes.items():
        start = uniform(shape, shape[-1])
        own[name] = learnt("multihead attention", name, given.get(name), shape, start)
    for name in given:
        if name not in own:
            raise ValueError(f"[mlcompute] multihead attention layer: there is no parameter '{name}'")

    def mapped(x: mx.array, held: Any, part: str) -> mx.array:
        out = x @ held[f"{part}_weights"].T
        return out + held[f"{part}_biases"] if has_biases else out

    def heads(x: mx.array) -> mx.array:
        return x.reshape(x.shape[0], x.shape[1], head_count, -1).transpose(0, 2, 1, 3)

    def forward(inputs: Any, held: Any, training: bool) -> mx.array:
        taking("multihead attention", inputs, 3, 4)
        queries, keys, values = (
            mapped(x, held, part) for x, part in zip(inputs, ("query", "key", "value"))
        )
        mask = inputs[3] if len(inputs) == 4 else None
        for adds, part in ((has_attention_biases, "attention_biases"), (adds_zero_attention, None)):
            if adds:
                row = lambda name: held[name] if part else mx.zeros(model_dimension)  # noqa: E731
                shape = (queries.shape[0], 1, model_dimension)
                more = [mx.broadcast_to(row(f"{of}_{part}"), shape) for of in ("key", "value")]
                keys = mx.concatenate([keys, more[0]], axis=1)
                values = mx.concatenate([values, more[1]], axis=1)
                if mask is not None:
                    wide = [(0, 0)] * (mask.ndim - 1) + [(0, 1)]
                    mask = mx.pad(mask, wide, constant_values=mask.dtype == mx.bool_)
        q, k, v = heads(queries), heads(keys), heads(values)
        scale = 1 / math.sqrt(model_dimension // head_count)
        if training and dropout > 0:
            scores = (q * scale) @ k.swapaxes(-1, -2)
            if mask is not None:
                allowed = mask.dtype == mx.bool_
                scores = mx.where(mask, scores, -mx.inf) if allowed else scores + mask
            shares = mx.softmax(scores, axis=-1)
            kept = mx.random.bernoulli(1 - dropout, shares.shape)
            out = mx.where(kept, shares / (1 - dropout), 0) @ v
        else:
            out = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)
        out = out.transpose(0, 2, 1, 3).reshape(queries.shape)
        return mapped(out, held, "output")

    return Layer("multihead_attention", forward, own)
