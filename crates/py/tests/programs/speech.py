"""Speech recognition: log-mel spectrograms, an encoder of audio, a decoder of text, beam search."""

import base64
import gzip
import math
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Sequence, Union

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_flatten, tree_map

SAMPLE_RATE = 4000
N_FFT = 256
HOP_LENGTH = 100
N_SAMPLES = 4000
N_FRAMES = N_SAMPLES // HOP_LENGTH
SOT, EOT = 10, 11


@lru_cache(maxsize=None)
def mel_filters(n_mels: int) -> mx.array:
    """Triangles that are equally far apart on Slaney's scale."""
    # Linear up to 1000 Hz, which are 15 on it; logarithmic above.
    step = math.log(6.4) / 27
    mels = mx.linspace(0, 15 + math.log(SAMPLE_RATE / 2 / 1000) / step, n_mels + 2)
    hertz = mx.where(mels < 15, mels * (200 / 3), 1000 * mx.exp((mels - 15) * step))
    bins = mx.linspace(0, SAMPLE_RATE / 2, N_FFT // 2 + 1)
    ramps = mx.expand_dims(hertz, 1) - bins[None]
    widths = hertz[1:] - hertz[:-1]
    lower, upper = -ramps[:-2] / widths[:-1, None], ramps[2:] / widths[1:, None]
    weights = mx.maximum(0, mx.minimum(lower, upper))
    return weights * (2.0 / (hertz[2:] - hertz[:-2]))[:, None]


@lru_cache(maxsize=None)
def hanning(size):
    return mx.array(np.hanning(size + 1)[:-1])


def stft(x, window, nperseg=256, noverlap=None, nfft=None, axis=-1, pad_mode="reflect"):
    nfft = nfft or nperseg
    noverlap = noverlap if noverlap is not None else nfft // 4
    padding = nperseg // 2
    if pad_mode == "constant":
        x = mx.pad(x, [(padding, padding)])
    else:
        x = mx.concatenate([x[1 : padding + 1][::-1], x, x[-(padding + 1) : -1][::-1]])
    t = (x.size - nperseg + noverlap) // noverlap
    x = mx.as_strided(x, shape=[t, nfft], strides=[noverlap, 1])
    return mx.fft.rfft(x * window)


def pad_or_trim(array, length: int = N_SAMPLES, *, axis: int = -1):
    if array.shape[axis] > length:
        index = [slice(None)] * array.ndim
        index[axis] = slice(0, length)
        array = array[tuple(index)]
    if array.shape[axis] < length:
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, length - array.shape[axis])
        array = mx.pad(array, widths)
    return array


def log_mel_spectrogram(audio: Union[np.ndarray, mx.array], n_mels: int = 20, padding: int = 0):
    if not isinstance(audio, mx.array):
        audio = mx.array(audio)
    if padding > 0:
        audio = mx.pad(audio, (0, padding))
    freqs = stft(audio, hanning(N_FFT), nperseg=N_FFT, noverlap=HOP_LENGTH)
    spectrum = freqs[:-1, :].abs().square() @ mel_filters(n_mels).T
    log_spec = mx.maximum(spectrum, 1e-10).log10()
    log_spec = mx.maximum(log_spec, log_spec.max() - 8.0)
    return (log_spec + 4.0) / 4.0


def sinusoids(length, channels, max_timescale=10000):
    log_timescale_increment = math.log(max_timescale) / (channels // 2 - 1)
    inv_timescales = mx.exp(-log_timescale_increment * mx.arange(channels // 2))
    scaled_time = mx.arange(length)[:, mx.newaxis] * inv_timescales[mx.newaxis, :]
    return mx.concatenate([mx.sin(scaled_time), mx.cos(scaled_time)], axis=1)


@dataclass
class ModelDimensions:
    n_mels: int = 20
    n_audio_ctx: int = N_FRAMES // 2
    n_state: int = 48
    n_head: int = 4
    n_layer: int = 2
    n_vocab: int = 12
    n_text_ctx: int = 12


class MultiHeadAttention(nn.Module):
    def __init__(self, n_state: int, n_head: int):
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(n_state, n_state)
        self.key = nn.Linear(n_state, n_state, bias=False)
        self.value = nn.Linear(n_state, n_state)
        self.out = nn.Linear(n_state, n_state)

    def __call__(self, x, xa=None, mask=None, kv_cache=None):
        q = self.query(x)
        if xa is None:
            k, v = self.key(x), self.value(x)
            if kv_cache is not None:
                k = mx.concatenate([kv_cache[0], k], axis=1)
                v = mx.concatenate([kv_cache[1], v], axis=1)
        else:
            k, v = kv_cache or (self.key(xa), self.value(xa))
        wv, qk = self.qkv_attention(q, k, v, mask)
        return self.out(wv), (k, v), qk

    def qkv_attention(self, q, k, v, mask=None):
        n_batch, n_ctx, n_state = q.shape
        scale = (n_state // self.n_head) ** -0.25
        q = q.reshape(*q.shape[:2], self.n_head, -1).transpose(0, 2, 1, 3) * scale
        k = k.reshape(*k.shape[:2], self.n_head, -1).transpose(0, 2, 3, 1) * scale
        v = v.reshape(*v.shape[:2], self.n_head, -1).transpose(0, 2, 1, 3)
        qk = q @ k
        if mask is not None:
            qk = qk + mask[:n_ctx, :n_ctx]
        w = mx.softmax(qk, axis=-1, precise=True)
        out = (w @ v).transpose(0, 2, 1, 3)
        return out.reshape(n_batch, n_ctx, n_state), qk.astype(mx.float32)


class ResidualAttentionBlock(nn.Module):
    def __init__(self, n_state: int, n_head: int, cross_attention: bool = False):
        super().__init__()
        self.attn = MultiHeadAttention(n_state, n_head)
        self.attn_ln = nn.LayerNorm(n_state)
        self.cross_attn = MultiHeadAttention(n_state, n_head) if cross_attention else None
        self.cross_attn_ln = nn.LayerNorm(n_state) if cross_attention else None
        self.mlp1 = nn.Linear(n_state, n_state * 4)
        self.mlp2 = nn.Linear(n_state * 4, n_state)
        self.mlp_ln = nn.LayerNorm(n_state)

    def __call__(self, x, xa=None, mask=None, kv_cache=None):
        kv, cross_kv = kv_cache if kv_cache else (None, None)
        y, kv, _ = self.attn(self.attn_ln(x), mask=mask, kv_cache=kv)
        x += y
        cross_qk = None
        if self.cross_attn:
            y, cross_kv, cross_qk = self.cross_attn(self.cross_attn_ln(x), xa, kv_cache=cross_kv)
            x += y
        x = x + self.mlp2(nn.gelu(self.mlp1(self.mlp_ln(x))))
        return x, (kv, cross_kv), cross_qk


class AudioEncoder(nn.Module):
    def __init__(self, dims: ModelDimensions, dtype=mx.float32):
        super().__init__()
        self.conv1 = nn.Conv1d(dims.n_mels, dims.n_state, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(dims.n_state, dims.n_state, kernel_size=3, stride=2, padding=1)
        self._positional_embedding = sinusoids(dims.n_audio_ctx, dims.n_state).astype(dtype)
        self.blocks = [ResidualAttentionBlock(dims.n_state, dims.n_head) for _ in range(dims.n_layer)]
        self.ln_post = nn.LayerNorm(dims.n_state)

    def __call__(self, x):
        x = nn.gelu(self.conv2(nn.gelu(self.conv1(x))))
        assert x.shape[1:] == self._positional_embedding.shape, "incorrect audio shape"
        x = x + self._positional_embedding
        for block in self.blocks:
            x, _, _ = block(x)
        return self.ln_post(x)


class TextDecoder(nn.Module):
    def __init__(self, dims: ModelDimensions, dtype=mx.float32):
        super().__init__()
        self.token_embedding = nn.Embedding(dims.n_vocab, dims.n_state)
        self.positional_embedding = mx.zeros((dims.n_text_ctx, dims.n_state))
        self.blocks = [ResidualAttentionBlock(dims.n_state, dims.n_head, True) for _ in range(dims.n_layer)]
        self.ln = nn.LayerNorm(dims.n_state)
        self._mask = nn.MultiHeadAttention.create_additive_causal_mask(dims.n_text_ctx).astype(dtype)

    def __call__(self, x, xa, kv_cache=None):
        offset = kv_cache[0][0][0].shape[1] if kv_cache else 0
        x = self.token_embedding(x) + self.positional_embedding[offset : offset + x.shape[-1]]
        kv_cache = kv_cache or [None] * len(self.blocks)
        cross_qk = [None] * len(self.blocks)
        for e, block in enumerate(self.blocks):
            x, kv_cache[e], cross_qk[e] = block(x, xa, mask=self._mask, kv_cache=kv_cache[e])
        return self.token_embedding.as_linear(self.ln(x)), kv_cache, cross_qk


class Recognizer(nn.Module):
    def __init__(self, dims: ModelDimensions, dtype=mx.float32):
        super().__init__()
        self.dims = dims
        self.encoder = AudioEncoder(dims, dtype)
        self.decoder = TextDecoder(dims, dtype)
        heads = np.zeros((dims.n_layer, dims.n_head), dtype=bool)
        heads[dims.n_layer // 2 :] = True
        self._alignment_heads = mx.array(np.asarray(heads.nonzero()).T)

    def set_alignment_heads(self, dump: Union[bytes, np.ndarray]):
        if isinstance(dump, bytes):
            dump = np.frombuffer(gzip.decompress(base64.b85decode(dump)), dtype=bool)
            heads = dump.reshape(self.dims.n_layer, self.dims.n_head).nonzero()
            self._alignment_heads = mx.array(np.asarray(heads).T.astype(np.int32))

    def __call__(self, mel, tokens):
        return self.decoder(tokens, self.encoder(mel))[0]


def rearrange_kv_cache(kv_cache, indices):
    """Only the decoder's own keys and values differ between beams."""
    if indices != list(range(len(indices))):
        indices = mx.array(indices)
        return [(tree_map(lambda x: x[indices], kv), cross) for kv, cross in kv_cache]
    return kv_cache


def greedy(model, audio_features, max_tokens=8, temperature=0.0):
    n = audio_features.shape[0]
    tokens = mx.broadcast_to(mx.array([[SOT]]), (n, 1))
    sum_logprobs = mx.zeros(n)
    logits, cache, _ = model.decoder(tokens, audio_features)
    for _ in range(max_tokens):
        logits = logits[:, -1].astype(mx.float32)
        logits = mx.where(mx.arange(logits.shape[-1]) == SOT, -mx.inf, logits)
        next_tokens = logits.argmax(axis=-1)
        if temperature > 0:
            next_tokens = mx.random.categorical(logits=logits / temperature)
        logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        current = logprobs[mx.arange(logprobs.shape[0]), next_tokens]
        sum_logprobs += current * (tokens[:, -1] != EOT)
        eot_mask = tokens[:, -1] == EOT
        next_tokens = next_tokens * (1 - eot_mask) + EOT * eot_mask
        tokens = mx.concatenate([tokens, next_tokens[:, None]], axis=-1)
        completed = mx.all(tokens[:, -1] == EOT)
        mx.async_eval(tokens, sum_logprobs, completed)
        logits, cache, _ = model.decoder(tokens[:, -1:], audio_features, cache)
        if completed:
            break
    return tokens[:, 1:].tolist(), sum_logprobs.tolist()


def beam_search(model, audio_features, beam_size=3, max_tokens=8, patience=1.0):
    """The best finished sequence of one recording, by its mean log-probability."""
    xa = mx.repeat(audio_features[None], beam_size, axis=0)
    prefixes, sums, finished = [[SOT]] * beam_size, [0.0] * beam_size, {}
    tokens, cache = mx.array(prefixes), None
    for step in range(max_tokens):
        logits, cache, _ = model.decoder(tokens[:, -1:], xa, cache)
        logprobs = nn.log_softmax(logits[:, -1], axis=-1)
        top = mx.argpartition(-logprobs, kth=beam_size, axis=-1)[:, : beam_size + 1]
        values = mx.take_along_axis(logprobs, top, axis=-1)
        mx.eval(top, values)
        scores, sources = {}, {}
        for i in range(beam_size if step else 1):
            for token, value in zip(np.array(top[i]), np.array(values[i])):
                sequence = tuple(prefixes[i] + [int(token)])
                scores[sequence], sources[sequence] = sums[i] + float(value), i
        ranked = sorted(scores, key=scores.get, reverse=True)
        finished.update((s, scores[s]) for s in ranked if s[-1] == EOT)
        kept = [s for s in ranked if s[-1] != EOT][:beam_size]
        prefixes, sums = [list(s) for s in kept], [scores[s] for s in kept]
        cache = rearrange_kv_cache(cache, [sources[s] for s in kept])
        tokens = mx.array(prefixes)
        if len(finished) >= round(beam_size * patience):
            break
    finished = finished or {tuple(p): s for p, s in zip(prefixes, sums)}
    best = max(finished, key=lambda k: finished[k] / len(k))
    return [t for t in best[1:] if t != EOT], finished[best]


def median_filter(x: mx.array, width: int):
    pad = width // 2
    x = mx.pad(x, [(0, 0)] * (x.ndim - 1) + [(pad, pad)], mode="edge")
    windows = mx.stack([x[..., i : x.shape[-1] - 2 * pad + i] for i in range(width)], axis=-1)
    return mx.sort(windows, axis=-1)[..., width // 2]


def dtw(cost: np.ndarray):
    """The cheapest path through the matrix, as pairs."""
    N, M = cost.shape
    D = np.full((N + 1, M + 1), np.inf)
    D[0, 0] = 0
    for i in range(N):
        for j in range(M):
            D[i + 1, j + 1] = cost[i, j] + min(D[i, j], D[i, j + 1], D[i + 1, j])
    i, j, path = N, M, []
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        i, j = min([(i - 1, j - 1), (i - 1, j), (i, j - 1)], key=lambda at: D[at])
    return path[::-1]


def align(model, mel, tokens):
    """At which frame each token is spoken, from where the decoder looks."""
    _, _, cross_qk = model.decoder(mx.array([[SOT] + tokens]), model.encoder(mel[None]))
    weights = mx.stack([cross_qk[layer][0, head] for layer, head in model._alignment_heads.tolist()])
    weights = mx.softmax(weights, axis=-1, precise=True)
    mean, std = mx.mean(weights, axis=-2, keepdims=True), mx.var(weights, axis=-2, keepdims=True, ddof=0).sqrt()
    weights = median_filter((weights - mean) / (std + 1e-6), 5)
    # Backwards, so that each token's first frame stays.
    starts = dict(reversed(dtw(-np.array(weights.mean(axis=0)))))
    return [starts[t] for t in range(len(tokens) + 1)]


def speak(digits: Sequence[int], rng) -> np.ndarray:
    """Two tones a digit, as a telephone dials."""
    audio = []
    for d in digits:
        t = np.arange(rng.randint(900, 1200)) / SAMPLE_RATE
        low, high = (400, 500, 620, 760)[d // 3], (900, 1150, 1400)[d % 3]
        audio.append(0.4 * (np.sin(2 * np.pi * low * t) + np.sin(2 * np.pi * high * t)))
        audio.append(np.zeros(rng.randint(100, 200)))
    audio = np.concatenate(audio)
    return (audio + 0.02 * rng.randn(len(audio))).astype(np.float32)


def recordings(count, seed):
    rng = np.random.RandomState(seed)
    mels, tokens = [], np.full((count, 5), EOT, np.int32)
    tokens[:, 0] = SOT
    for i in range(count):
        digits = rng.randint(0, 10, rng.randint(2, 4))
        tokens[i, 1 : 1 + len(digits)] = digits
        mels.append(log_mel_spectrogram(pad_or_trim(mx.array(speak(digits, rng)))))
    return mx.stack(mels), mx.array(tokens)


def main():
    mx.random.seed(1)
    tone = mx.sin(2 * math.pi * 440 * mx.arange(2000) / SAMPLE_RATE)
    mel = log_mel_spectrogram(tone, padding=2000)
    print("mel", mel.shape, mel.dtype, f"{mel.mean().item():.4f} {mel.max().item():.4f} {mel.min().item():.4f}")
    print("peak", mel[5].argmax().item(), [round(v, 3) for v in mel[5, :6].tolist()])
    frames = stft(tone, hanning(N_FFT), noverlap=HOP_LENGTH, pad_mode="constant")
    print("frames", frames.shape, frames.dtype, f"{frames.abs().max().item():.3f}")
    back = mx.fft.irfft(frames, n=N_FFT, axis=-1)
    print("inverse", back.shape, f"{back.max().item():.4f}", pad_or_trim(mx.ones((2, 5)), 3).shape)

    dims = replace(ModelDimensions(), n_layer=2)
    model = Recognizer(dims)
    model.apply(lambda p: p * 0.5 if p.ndim > 2 else p)
    mx.eval(model.parameters())
    print("parameters", sum(v.size for _, v in tree_flatten(model.parameters())))
    model.set_alignment_heads(base64.b85encode(gzip.compress(bytes([0] * 4 + [1, 1, 0, 1]))))
    print("heads", model._alignment_heads.tolist(), model._alignment_heads.dtype)

    mels, tokens = recordings(48, 0)
    print("data", mels.shape, tokens.shape, tokens[0].tolist())

    def loss_fn(model, mel, tokens):
        logits = model(mel, tokens[:, :-1])
        targets = tokens[:, 1:]
        weights = mx.concatenate([mx.ones_like(targets[:, :1]), tokens[:, 1:-1] != EOT], axis=1)
        return nn.losses.cross_entropy(logits, targets, weights=weights, label_smoothing=0.05).sum() / weights.sum()

    optimizer = optim.MultiOptimizer(
        [optim.Adam(2e-3), optim.AdamW(3e-3, betas=[0.9, 0.98], eps=1e-6, weight_decay=0.05)],
        [lambda path, p: path.startswith("encoder.conv")],
    )
    step = nn.value_and_grad(model, loss_fn)
    losses = []
    for epoch in range(5):
        for s in range(0, len(mels), 16):
            loss, grads = step(model, mels[s : s + 16], tokens[s : s + 16])
            grads, norm = optim.clip_grad_norm(grads, max_norm=1.0)
            optimizer.update(model, grads)
            mx.eval(model.state, optimizer.state)
            losses.append(loss.item())
    print("losses", " ".join(f"{l:.3f}" for l in losses[::4]), f"norm {norm.item():.3f}")

    model.eval()
    features = model.encoder(mels[:4])
    texts, sums = greedy(model, features)
    print("greedy", texts, " ".join(f"{s:.3f}" for s in sums))
    for i in range(2):
        text, score = beam_search(model, features[i])
        print("beam", text, f"{score:.3f}", zlib.crc32(str(text).encode()) % 1000)
    mx.random.seed(5)
    print("warm", greedy(model, features, temperature=0.6)[0])
    print("aligned", align(model, mels[0], [t for t in tokens[0, 1:].tolist() if t != EOT]))
    half = Recognizer(dims, mx.float16)
    half.update(tree_map(lambda p: p.astype(mx.float16), model.parameters()))
    logits = half(mels[:2].astype(mx.float16), tokens[:2, :3])
    print("half", logits.dtype, logits.shape, f"{mx.abs(logits - model(mels[:2], tokens[:2, :3])).max().item() < 0.1}")


if __name__ == "__main__":
    main()
