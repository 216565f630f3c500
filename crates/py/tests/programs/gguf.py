"""Reads and writes models as GGUF: metadata, names of another program, blocks that are quantised."""

import json
import re
import tempfile
from pathlib import Path
from typing import Dict, List, Optional, Union

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten

NAMES = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def to_gguf(name: str) -> str:
    path, _, leaf = name.rpartition(".")
    if match := re.match(r"layers\.(\d+)\.(.*)", path):
        return f"blk.{match[1]}.{NAMES[match[2]]}.{leaf}"
    return f"{NAMES[path]}.{leaf}"


def from_gguf(name: str) -> str:
    back = {v: k for k, v in NAMES.items()}
    path, _, leaf = name.rpartition(".")
    if match := re.match(r"blk\.(\d+)\.(.*)", path):
        return f"layers.{match[1]}.{back[match[2]]}.{leaf}"
    return f"{back[path]}.{leaf}"


def permute_for_llama(w: mx.array, heads: int) -> mx.array:
    """Rotary pairs lie beside each other there, and half a head apart here."""
    rows = w.shape[0] // heads // 2
    return w.reshape(heads, 2, rows, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


class Attention(nn.Module):
    def __init__(self, dims, heads, kv_heads, base):
        super().__init__()
        head_dim = dims // heads
        self.heads, self.kv_heads, self.scale = heads, kv_heads, head_dim**-0.5
        self.q_proj = nn.Linear(dims, heads * head_dim, bias=False)
        self.k_proj = nn.Linear(dims, kv_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(dims, kv_heads * head_dim, bias=False)
        self.o_proj = nn.Linear(heads * head_dim, dims, bias=False)
        self.rope = nn.RoPE(head_dim, traditional=True, base=base)

    def __call__(self, x, mask):
        B, L, _ = x.shape
        q, k, v = (
            p(x).reshape(B, L, n, -1).transpose(0, 2, 1, 3)
            for p, n in ((self.q_proj, self.heads), (self.k_proj, self.kv_heads), (self.v_proj, self.kv_heads))
        )
        y = mx.fast.scaled_dot_product_attention(self.rope(q), self.rope(k), v, scale=self.scale, mask=mask)
        return self.o_proj(y.transpose(0, 2, 1, 3).reshape(B, L, -1))


class MLP(nn.Module):
    def __init__(self, dims, hidden):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(dims, hidden, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(hidden, dims, bias=False)

    def __call__(self, x):
        return self.down_proj(nn.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, dims, heads, kv_heads, hidden, base, eps):
        super().__init__()
        self.self_attn = Attention(dims, heads, kv_heads, base)
        self.mlp = MLP(dims, hidden)
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(dims, eps), nn.RMSNorm(dims, eps)

    def __call__(self, x, mask):
        x = x + self.self_attn(self.input_layernorm(x), mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Model(nn.Module):
    def __init__(self, vocab, dims, layers, heads, kv_heads, hidden, base, eps):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dims)
        self.layers = [Layer(dims, heads, kv_heads, hidden, base, eps) for _ in range(layers)]
        self.norm = nn.RMSNorm(dims, eps)
        self.lm_head = nn.Linear(dims, vocab, bias=False)

    def __call__(self, tokens):
        x = self.embed_tokens(tokens)
        mask = nn.MultiHeadAttention.create_additive_causal_mask(tokens.shape[1]).astype(x.dtype)
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))


class Tokenizer:
    """The longest tokens first, and bytes where there is none, from a file's metadata."""

    def __init__(self, metadata):
        self.tokens: List[str] = metadata["tokenizer.ggml.tokens"]
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.scores = metadata["tokenizer.ggml.scores"].tolist()
        self.bos = metadata["tokenizer.ggml.bos_token_id"].item()

    def encode(self, text: str):
        out, longest = [self.bos], max(map(len, self.tokens))
        while text:
            fits = [text[:n] for n in range(longest, 0, -1) if text[:n] in self.ids]
            piece = max(fits, key=lambda t: self.scores[self.ids[t]]) if fits else None
            out.append(self.ids[piece] if piece else 0)
            text = text[len(piece) if piece else 1 :]
        return out

    def decode(self, ids):
        return "".join(self.tokens[i] for i in ids)


def translate(metadata: Dict[str, Union[str, mx.array, List[str]]]):
    """The arguments of the model, from the file's metadata."""
    arch = metadata["general.architecture"]
    number = {
        k.removeprefix(arch + "."): v.item() for k, v in metadata.items() if k.startswith(arch + ".")
    }
    return dict(
        vocab=len(metadata["tokenizer.ggml.tokens"]),
        dims=number["embedding_length"],
        layers=number["block_count"],
        heads=number["attention.head_count"],
        kv_heads=number.get("attention.head_count_kv", number["attention.head_count"]),
        hidden=number["feed_forward_length"],
        base=number.get("rope.freq_base", 10000.0),
        eps=number["attention.layer_norm_rms_epsilon"],
    )


def load(path: str, dtype: Optional[mx.Dtype] = None):
    weights, metadata = mx.load(path, return_metadata=True)
    config = translate(metadata)
    file_type = metadata["general.file_type"].item()
    weights = {from_gguf(k): v if v.dtype == mx.uint32 or dtype is None else v.astype(dtype) for k, v in weights.items()}
    model = Model(**config)
    if file_type in (2, 3, 7):
        bits = 8 if file_type == 7 else 4
        nn.quantize(model, 32, bits, class_predicate=lambda p, m: f"{p}.scales" in weights)
    model.load_weights(list(weights.items()))
    mx.eval(model.parameters())
    return model, Tokenizer(metadata), config


def q8_0(w: np.ndarray) -> np.ndarray:
    """Blocks of 32 bytes behind a scale, as other programs write them."""
    blocks = w.reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / 127
    codes = np.round(blocks / np.where(scale == 0, 1, scale)).astype(np.int8)
    return np.concatenate([scale.astype(np.float16).view(np.int8), codes], axis=1)


def write_q8(path, weights, metadata):
    """A file with one quantised matrix, byte by byte: header, metadata, names, data."""
    import struct

    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()

    out = b"GGUF" + struct.pack("<IQQ", 3, len(weights), len(metadata))
    for key, value in metadata.items():
        out += text(key)
        if isinstance(value, str):
            out += struct.pack("<I", 8) + text(value)
        elif isinstance(value, float):
            out += struct.pack("<If", 6, value)
        elif isinstance(value, bool):
            out += struct.pack("<I?", 7, value)
        else:
            out += struct.pack("<II", 4, value)
    data = b""
    for name, w in weights.items():
        kind, body = (8, q8_0(w).tobytes()) if w.ndim == 2 else (0, w.astype(np.float32).tobytes())
        out += text(name) + struct.pack("<I", w.ndim) + struct.pack(f"<{w.ndim}Q", *w.shape[::-1])
        out += struct.pack("<IQ", kind, len(data))
        data += body + b"\0" * (-len(body) % 32)
    Path(path).write_bytes(out + b"\0" * (-len(out) % 32) + data)


def main():
    mx.random.seed(8)
    folder = tempfile.TemporaryDirectory()
    path = str(Path(folder.name) / "model.gguf")
    pieces = ["<unk>", "<s>", " ", "the", "th", "a", "cat", "c", "t", "sat", "s", "on", "o", "n", "mat", "m", "h", "e"]
    pieces += [chr(ord("A") + i) for i in range(14)]
    metadata = {
        "general.architecture": "llama",
        "general.name": "small",
        "general.file_type": mx.array(0, mx.uint32),
        "llama.embedding_length": mx.array(64, mx.uint32),
        "llama.block_count": mx.array(2, mx.uint32),
        "llama.attention.head_count": mx.array(4, mx.uint32),
        "llama.attention.head_count_kv": mx.array(2, mx.uint32),
        "llama.feed_forward_length": mx.array(96, mx.uint32),
        "llama.rope.freq_base": mx.array(5000.0),
        "llama.attention.layer_norm_rms_epsilon": mx.array(1e-5),
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.scores": mx.array([float(len(p)) for p in pieces]),
        "tokenizer.ggml.bos_token_id": mx.array(1, mx.uint32),
        "general.tags": ["small", "test"],
    }
    model = Model(**translate(metadata))
    model.apply(lambda p: 2 * p if p.ndim == 2 else p)
    weights = {to_gguf(k): v for k, v in tree_flatten(model.parameters())}
    mx.save_gguf(path, weights, metadata)
    print("written", len(weights), sorted(weights)[:3])

    arrays, read = mx.load(path, return_metadata=True)
    for key in sorted(read):
        value = read[key]
        if isinstance(value, mx.array):
            print(key, value.dtype, value.shape, value.tolist() if value.size < 4 else value.sum().item())
        else:
            print(key, type(value).__name__, len(value), value[:2])
    print("arrays", {str(v.dtype) for v in arrays.values()}, sum(v.nbytes for v in arrays.values()))
    print("without metadata", sorted(mx.load(path)) == sorted(arrays), len(mx.load(path, format="gguf")))

    loaded, tokenizer, config = load(path)
    print("config", json.dumps({k: round(v, 6) for k, v in config.items()}))
    ids = tokenizer.encode("the cat sat on the mat")
    print("tokens", ids, repr(tokenizer.decode(ids)))
    for name, m in {"model": model, "loaded": loaded}.items():
        y = mx.array([ids])
        for _ in range(10):
            y = mx.concatenate([y, m(y)[:, -1].argmax(axis=-1, keepdims=True)], axis=1)
        print(name, y[0, len(ids) :].tolist(), repr(tokenizer.decode(y[0, len(ids) :].tolist())))
    half, _, _ = load(path, mx.float16)
    print("half", half.norm.weight.dtype, half(mx.array([ids])).dtype)

    permuted = permute_for_llama(model.layers[0].self_attn.q_proj.weight, 4)
    print("permuted", permuted.shape, [round(v, 4) for v in permuted[:3, 0].tolist()])

    mixed = {
        "f32": mx.linspace(-1, 2, 12).reshape(3, 4),
        "f16": mx.arange(6, dtype=mx.float16).reshape(1, 2, 3),
        "i8": mx.arange(-4, 4).astype(mx.int8),
        "i16": mx.array([[300, -300]], mx.int16),
        "i32": mx.array([1 << 20, -5], mx.int32),
    }
    mx.save_gguf(path, mixed)
    for k, v in sorted(mx.load(path).items()):
        print(k, v.dtype, v.shape, v.astype(mx.float32).sum().item(), mx.array_equal(v, mixed[k]).item())

    quantized = {k: np.array(v, copy=False) for k, v in weights.items()}
    head = {k: v.item() if isinstance(v, mx.array) else v for k, v in metadata.items() if "tokenizer" not in k and k != "general.tags"}
    write_q8(path, quantized, {**head, "general.file_type": 7})
    arrays, read = mx.load(path, return_metadata=True)
    print("q8", sorted(arrays)[:5], arrays["blk.0.attn_q.weight"].dtype, arrays["blk.0.attn_q.weight"].shape)
    print("scales", arrays["blk.0.attn_q.scales"].dtype, arrays["blk.0.attn_q.scales"].shape, arrays["blk.0.attn_q.biases"].shape)
    eight = Model(**config)
    arrays = {from_gguf(k): v for k, v in arrays.items()}
    nn.quantize(eight, 32, 8, class_predicate=lambda p, m: f"{p}.scales" in arrays)
    eight.update(tree_unflatten(list(arrays.items())))
    logits, expected = eight(mx.array([ids])), model(mx.array([ids]))
    print("logits", logits.shape, f"{expected.std().item():.3f}", mx.abs(logits - expected).max().item() < 0.2)
    print("argmax", logits.argmax(axis=-1).tolist())
    try:
        mx.load(str(Path(folder.name) / "nothing.xyz"))
    except ValueError as error:
        print("error", error)
    folder.cleanup()


if __name__ == "__main__":
    main()
