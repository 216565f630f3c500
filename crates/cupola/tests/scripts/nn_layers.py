"""Records what MLX's layers compute, for tests/nn/mlx.rs.

Run with Python 3.11, mlx 0.32 and numpy: python nn_layers.py > ../reference/nn_layers.json

Every parameter is drawn anew, so that none is 0 or 1. The gradients are those of half the sum of
the squares of all outputs.
"""

import json

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten

rng = np.random.default_rng(0)


def randn(*shape):
    return mx.array(rng.standard_normal(shape).astype(np.float32))


def array(x):
    flat = [float(f"{v:.7g}") for v in np.array(x).astype(np.float64).ravel()]
    return {"shape": list(x.shape), "data": flat}


def arrays(tree):
    return {path: array(value) for path, value in tree_flatten(tree)}


def case(module, call=None, **inputs):
    """Outputs of a module, or of `call` with it, and all gradients."""
    call = call or (lambda module, **inputs: module(*inputs.values()))
    drawn = [(path, randn(*p.shape) * 0.6) for path, p in tree_flatten(module.parameters())]
    params = tree_unflatten(drawn) if drawn else {}

    def outputs(params, inputs):
        module.update(params)
        out = call(module, **inputs)
        return out if isinstance(out, tuple) else (out,)

    def loss(params, inputs):
        return sum(0.5 * mx.sum(mx.square(y)) for y in outputs(params, inputs))

    dparams, dinputs = mx.grad(loss, argnums=(0, 1))(params, inputs)
    return {
        "params": arrays(params),
        "inputs": arrays(inputs),
        "outputs": [array(y) for y in outputs(params, inputs)],
        "dparams": arrays(dparams),
        "dinputs": arrays(dinputs),
    }


def recurrent():
    return {
        "rnn": case(nn.RNN(2, 3), x=randn(2, 4, 2), hidden=randn(2, 3)),
        "rnn_plain": case(nn.RNN(2, 3, bias=False, nonlinearity=nn.relu), x=randn(4, 2)),
        "gru": case(nn.GRU(2, 3), x=randn(2, 1, 3, 2), hidden=randn(2, 1, 3)),
        "gru_first": case(nn.GRU(2, 3), x=randn(3, 2)),
        "gru_plain": case(nn.GRU(2, 3, bias=False), x=randn(2, 3, 2)),
        "lstm": case(nn.LSTM(2, 3), x=randn(2, 3, 2), hidden=randn(2, 3), cell=randn(2, 3)),
        "lstm_plain": case(nn.LSTM(2, 3, bias=False), x=randn(2, 2, 3, 2)),
    }


def attention():
    attend = nn.MultiHeadAttention
    sizes = dict(query_input_dims=3, key_input_dims=5, value_input_dims=6, value_dims=8)
    wide = attend(4, 2, **sizes, value_output_dims=7, bias=True)
    seen = mx.array([[True, False, True], [False, True, True]])
    causal = attend.create_additive_causal_mask(3)
    return {
        "attention": case(attend(4, 2), x=randn(2, 3, 4), call=lambda m, x: m(x, x, x)),
        "attention_causal": case(
            attend(4, 2), x=randn(2, 3, 4), call=lambda m, x: m(x, x, x, causal)),
        "attention_wide": case(
            wide, q=randn(2, 2, 3), k=randn(2, 3, 5), v=randn(2, 3, 6),
            call=lambda m, q, k, v: m(q, k, v, seen)),
    }


def transformers():
    causal = nn.MultiHeadAttention.create_additive_causal_mask(3)
    memory_mask = randn(3, 2)
    return {
        "encoder_layer": case(
            nn.TransformerEncoderLayer(4, 2, mlp_dims=6), x=randn(2, 3, 4),
            call=lambda m, x: m(x, None)),
        "encoder_layer_norm_last": case(
            nn.TransformerEncoderLayer(4, 2, mlp_dims=6, norm_first=False), x=randn(2, 3, 4),
            call=lambda m, x: m(x, causal)),
        "decoder_layer": case(
            nn.TransformerDecoderLayer(4, 2, mlp_dims=6, activation=nn.gelu),
            x=randn(2, 3, 4), memory=randn(2, 2, 4),
            call=lambda m, x, memory: m(x, memory, causal, memory_mask)),
        "decoder_layer_norm_last": case(
            nn.TransformerDecoderLayer(4, 2, mlp_dims=6, norm_first=False),
            x=randn(2, 3, 4), memory=randn(2, 2, 4),
            call=lambda m, x, memory: m(x, memory, None, None)),
        "transformer": case(
            nn.Transformer(4, 2, 2, 1), source=randn(1, 2, 4), target=randn(1, 3, 4),
            call=lambda m, source, target: m(source, target, None, causal, memory_mask)),
        "memory_mask": array(memory_mask),
    }


def norms():
    return {
        "group_norm": case(nn.GroupNorm(2, 6), x=randn(2, 3, 6) * 2 + 1),
        "group_norm_pytorch": case(
            nn.GroupNorm(3, 6, pytorch_compatible=True), x=randn(2, 2, 2, 6) * 2 + 1),
        "group_norm_plain": case(nn.GroupNorm(2, 4, eps=0.1, affine=False), x=randn(3, 4)),
        "instance_norm": case(nn.InstanceNorm(2, affine=True), x=randn(2, 3, 2, 2) * 2 + 1),
        "instance_norm_plain": case(nn.InstanceNorm(2, eps=0.1), x=randn(2, 3, 2)),
    }


def convolutions():
    return {
        "conv3d": case(
            nn.Conv3d(2, 3, (1, 2, 3), stride=(1, 2, 1), padding=(0, 1, 1)),
            x=randn(1, 2, 3, 4, 2)),
        "conv_transpose1d": case(
            nn.ConvTranspose1d(2, 3, 3, stride=2, padding=1, output_padding=1, bias=False),
            x=randn(2, 3, 2)),
        "conv_transpose3d": case(
            nn.ConvTranspose3d(2, 1, 2, stride=(1, 2, 1)), x=randn(1, 2, 2, 3, 2)),
        "max_pool3d": case(nn.MaxPool3d(2, stride=1, padding=1), x=randn(1, 2, 3, 2, 2)),
        "avg_pool3d": case(nn.AvgPool3d((1, 2, 3), stride=(1, 2, 2)), x=randn(1, 2, 4, 5, 1)),
    }


def upsampling():
    up = nn.Upsample
    out = {}
    for mode in ("nearest", "linear", "cubic"):
        for align in (False,) if mode == "nearest" else (False, True):
            how = dict(mode=mode, align_corners=align)
            name = f"upsample_{mode}{'_aligned' if align else ''}"
            out[name] = case(up((2, 1.5), **how), x=randn(1, 3, 4, 2))
            out[f"{name}_down"] = case(up(0.6, **how), x=randn(2, 7, 1))
    out["upsample_cube"] = case(up(2, mode="linear"), x=randn(1, 1, 2, 3, 1))
    return out


def others():
    scores = randn(1, 3, 2, 4)
    mask = randn(2, 4)
    rope = nn.RoPE(4, traditional=True, base=100, scale=0.5)
    sinusoidal = nn.SinusoidalPositionalEncoding(6)
    turns = nn.SinusoidalPositionalEncoding(
        4, min_freq=0.01, max_freq=2, scale=1, cos_first=True, full_turns=True)
    positions = mx.array([[0.0, 1.0], [2.5, 7.0]])
    return {
        "bilinear": case(nn.Bilinear(3, 2, 4), x1=randn(2, 2, 3), x2=randn(2, 2, 2)),
        "bilinear_plain": case(nn.Bilinear(3, 2, 1, bias=False), x1=randn(3), x2=randn(2)),
        "prelu": case(nn.PReLU(3), x=randn(2, 3)),
        "relu2": case(nn.ReLU2(), x=randn(6)),
        "gelu_fast_approx": case(nn.GELU("fast"), x=randn(6)),
        "rope": case(nn.RoPE(4), x=randn(2, 3, 5)),
        "rope_traditional": case(
            rope, x=randn(1, 2, 3, 4), call=lambda m, x: m(x, offset=7)),
        "sinusoidal": case(sinusoidal, x=positions),
        "sinusoidal_turns": case(turns, x=positions * 0.1),
        "alibi": case(nn.ALiBi(), x=scores),
        "alibi_offset": case(
            nn.ALiBi(), x=scores, mask=mask, call=lambda m, x, mask: m(x, 2, mask)),
    }


record = {
    **recurrent(), **attention(), **transformers(), **norms(), **convolutions(), **upsampling(),
    **others(),
}
print(json.dumps({"mlx": record}, separators=(",", ":")))
