"""Diffusion of small images: a UNet, a schedule of noise, DDIM sampling with and without guidance."""

import argparse
import math
import time
from functools import partial
from pathlib import Path
from typing import Optional

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_flatten, tree_map

CLASSES = 4
NULL = CLASSES


def upsample_nearest(x, scale: int = 2):
    B, H, W, C = x.shape
    x = mx.broadcast_to(x[:, :, None, :, None, :], (B, H, scale, W, scale, C))
    return x.reshape(B, H * scale, W * scale, C)


class TimestepEmbedding(nn.Module):
    def __init__(self, in_channels: int, time_embed_dim: int):
        super().__init__()
        self.linear_1 = nn.Linear(in_channels, time_embed_dim)
        self.linear_2 = nn.Linear(time_embed_dim, time_embed_dim)

    def __call__(self, x):
        return self.linear_2(nn.silu(self.linear_1(x)))


class ResnetBlock2D(nn.Module):
    def __init__(self, in_channels, out_channels: Optional[int] = None, groups: int = 4, temb_channels: int = 32):
        super().__init__()
        out_channels = out_channels or in_channels
        self.norm1 = nn.GroupNorm(groups, in_channels, pytorch_compatible=True)
        self.conv1 = nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=1, padding=1)
        self.time_emb_proj = nn.Linear(temb_channels, out_channels)
        self.norm2 = nn.GroupNorm(groups, out_channels, pytorch_compatible=True)
        self.conv2 = nn.Conv2d(out_channels, out_channels, kernel_size=3, stride=1, padding=1)
        if in_channels != out_channels:
            self.conv_shortcut = nn.Linear(in_channels, out_channels)

    def __call__(self, x, temb):
        temb = self.time_emb_proj(nn.silu(temb))
        y = self.conv1(nn.silu(self.norm1(x)))
        y = y + temb[:, None, None, :]
        y = self.conv2(nn.silu(self.norm2(y)))
        return y + (x if "conv_shortcut" not in self else self.conv_shortcut(x))


class SpatialAttention(nn.Module):
    """Attention over places, and from places to the words of the condition."""

    def __init__(self, channels, memory_dims, num_heads=2):
        super().__init__()
        self.norm = nn.GroupNorm(4, channels, eps=1e-6, pytorch_compatible=True)
        self.proj_in = nn.Conv2d(channels, channels, kernel_size=1)
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.attn1 = nn.MultiHeadAttention(channels, num_heads)
        self.attn2 = nn.MultiHeadAttention(
            channels, num_heads, key_input_dims=memory_dims, value_input_dims=memory_dims, bias=True
        )
        self.ff = nn.Linear(channels, 2 * channels)

    def __call__(self, x, memory):
        B, H, W, C = x.shape
        y = self.proj_in(self.norm(x)).reshape(B, -1, C)
        z = self.norm1(y)
        y = y + self.attn1(z, z, z)
        y = y + self.attn2(self.norm2(y), memory, memory)
        y = nn.glu(self.ff(y)) + y
        return x + y.reshape(B, H, W, C)


class UNet(nn.Module):
    def __init__(self, channels=(16, 32), memory_dims=24):
        super().__init__()
        first, last = channels
        self.timesteps = nn.SinusoidalPositionalEncoding(
            16, max_freq=1, min_freq=math.exp(-math.log(10000) + 2 * math.log(10000) / 16),
            scale=1.0, cos_first=True, full_turns=False,
        )  # fmt: skip
        self.time_embedding = TimestepEmbedding(16, 32)
        self.words = nn.Embedding(CLASSES + 1, memory_dims)
        self.conv_in = nn.Conv2d(1, first, 3, padding=1)
        self.down = [ResnetBlock2D(first), ResnetBlock2D(first, last)]
        self.downsample = nn.Conv2d(first, first, kernel_size=3, stride=2, padding=1)
        self.middle = [ResnetBlock2D(last), SpatialAttention(last, memory_dims), ResnetBlock2D(last)]
        self.up = [ResnetBlock2D(2 * last, first), ResnetBlock2D(2 * first, first)]
        self.upsample = nn.ConvTranspose2d(first, first, 2, stride=2)
        self.smooth = nn.Upsample(scale_factor=2, mode="linear", align_corners=False)
        self.conv_norm_out = nn.GroupNorm(4, first, pytorch_compatible=True)
        self.conv_out = nn.Conv2d(first, 1, 3, padding=1)

    def __call__(self, x, timestep, labels):
        temb = self.time_embedding(self.timesteps(timestep).astype(x.dtype))
        memory = self.words(labels)[:, None]
        x = self.conv_in(x)
        high = x = self.down[0](x, temb)
        low = x = self.down[1](self.downsample(x), temb)
        for block in self.middle:
            x = block(x, memory) if isinstance(block, SpatialAttention) else block(x, temb)
        x = self.up[0](mx.concatenate([x, low], axis=-1), temb)
        x = 0.5 * (self.upsample(x) + self.smooth(x)) + 0.1 * upsample_nearest(x)
        x = self.up[1](mx.concatenate([x, high], axis=-1), temb)
        return self.conv_out(nn.silu(self.conv_norm_out(x)))


def _linspace(a, b, num):
    x = mx.arange(0, num) / (num - 1)
    return (b - a) * x + a


def _interp(y, x_new):
    """Values of y at places between whole numbers."""
    x_low = x_new.astype(mx.int32)
    x_high = mx.minimum(x_low + 1, len(y) - 1)
    delta_x = x_new - x_low
    return y[x_low] * (1 - delta_x) + delta_x * y[x_high]


class Sampler:
    def __init__(self, num_steps=100, beta_start=1e-3, beta_end=0.04):
        betas = _linspace(beta_start**0.5, beta_end**0.5, num_steps).square()
        self.num_steps = num_steps
        self.alphas = mx.cumprod(1 - betas)

    def add_noise(self, x, t, key=None):
        noise = mx.random.normal(x.shape, key=key)
        a = mx.take(self.alphas, t).reshape(-1, 1, 1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * noise, noise

    def steps(self, count, start=None):
        times = _linspace(self.num_steps - 1 if start is None else start, 0, count + 1)
        return list(zip(times, times[1:]))

    def step(self, eps, x, t, t_prev, eta=0.0):
        a, b = _interp(self.alphas, t), _interp(self.alphas, t_prev)
        x0 = mx.clip((x - (1 - a).sqrt() * eps) / a.sqrt(), -1.5, 1.5)
        eps = (x - a.sqrt() * x0) / mx.maximum((1 - a).sqrt(), 1e-4)
        sigma = eta * mx.sqrt((1 - b) / (1 - a)) * mx.sqrt(mx.maximum(1 - a / b, 0))
        x = b.sqrt() * x0 + mx.sqrt(mx.maximum(1 - b - sigma**2, 0)) * eps
        return x + sigma * mx.random.normal(x.shape) if eta > 0 else x


def drawn(count, key):
    """Bars, columns, discs and diagonals with random places."""
    k1, k2, k3 = mx.random.split(key, 3)
    labels = mx.random.randint(0, CLASSES, (count,), key=k1)
    at = mx.random.uniform(3, 9, (count, 1, 1), key=k2)
    y, x = mx.meshgrid(mx.arange(12), mx.arange(12), indexing="ij")
    distance = mx.stack([mx.abs(y - at), mx.abs(x - at), ((y - at) ** 2 + (x - at) ** 2).sqrt() - 2, mx.abs(x - y + at - 6)], axis=1)
    chosen = mx.take_along_axis(distance, labels[:, None, None, None], axis=1).squeeze(1)
    images = 2 * mx.exp(-mx.maximum(chosen, 0)) - 1 + 0.05 * mx.random.normal(chosen.shape, key=k3)
    return images[..., None], labels


def generate(model, sampler, labels, num_steps=5, cfg=2.0, eta=0.0, x=None, strength=1.0):
    model.eval()
    start = (sampler.num_steps - 1) * strength
    if x is None:
        x = mx.random.normal((len(labels), 12, 12, 1))
    labels = mx.array(labels)
    both = mx.concatenate([labels, mx.full(labels.shape, NULL, labels.dtype)]) if cfg > 1 else labels
    for t, t_prev in sampler.steps(num_steps, start):
        x_in = mx.concatenate([x] * 2, axis=0) if cfg > 1 else x
        eps = model(x_in, mx.broadcast_to(t, [len(x_in)]), both)
        if cfg > 1:
            eps_text, eps_neg = eps.split(2)
            eps = eps_neg + cfg * (eps_text - eps_neg)
        x = sampler.step(eps, x, t, t_prev, eta)
        mx.async_eval(x)
        yield x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    mx.random.seed(2)
    np.random.seed(0)
    model, sampler = UNet(), Sampler()
    mx.eval(model.parameters())
    print("parameters", sum(p.size for _, p in tree_flatten(model.parameters())))
    print("alphas", " ".join(f"{a:.4f}" for a in sampler.alphas[::20].tolist()))
    print("times", [round(t.item(), 2) for t, _ in sampler.steps(5)])
    images, labels = drawn(64, mx.random.key(4))
    print("images", images.shape, labels[:10].tolist(), f"{images.mean().item():.4f} {images.std().item():.4f}")

    optimizer = optim.AdamW(learning_rate=2e-3, weight_decay=1e-4)
    ema = tree_map(mx.array, model.parameters())

    def loss_fn(params, x, t, labels, noise):
        model.update(params)
        return nn.losses.mse_loss(model(x, t, labels), noise)

    state = [model.state, optimizer.state, mx.random.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(x, labels):
        t = mx.random.randint(0, sampler.num_steps, (len(x),))
        labels = mx.where(mx.random.bernoulli(0.15, labels.shape), NULL, labels)
        noisy, noise = sampler.add_noise(x, t)
        loss, grads = mx.value_and_grad(loss_fn)(model.trainable_parameters(), noisy, t, labels, noise)
        optimizer.update(model, grads)
        return loss

    losses = []
    begin = time.perf_counter()
    for i in range(args.steps):
        at = mx.array(np.random.randint(0, len(images), 8))
        loss = step(images[at], labels[at])
        ema = tree_map(lambda e, p: 0.8 * e + 0.2 * p, ema, model.parameters())
        mx.eval(state, ema)
        losses.append(loss.item())
    print("losses", " ".join(f"{l:.4f}" for l in losses), time.perf_counter() > begin)

    model.update(ema)
    for name, options in {
        "plain": dict(cfg=1.0),
        "guided": dict(cfg=2.5),
        "noisy": dict(eta=0.5),
        "edited": dict(x=sampler.add_noise(images[:4], mx.array(60))[0], strength=0.6),
    }.items():
        mx.random.seed(9)
        for x in generate(model, sampler, [0, 1, 2, 3], **options):
            mx.eval(x)
        means = " ".join(f"{m:.3f}" for m in x.mean(axis=(1, 2, 3)).tolist())
        print(name, x.shape, means, f"{x.std().item():.3f}")

    picture = mx.clip((x + 1) / 2, 0, 1)
    grid = mx.pad(picture, [(0, 0), (1, 1), (1, 1), (0, 0)], constant_values=1.0)
    grid = grid.reshape(2, 2, 14, 14, 1).transpose(0, 2, 1, 3, 4).reshape(28, 28, 1)
    pixels = np.array((grid * 255).astype(mx.uint8)).repeat(3, axis=-1)
    print("grid", pixels.shape, pixels.dtype, pixels[0].mean())
    Path("weights.npz").unlink(missing_ok=True)
    model.save_weights("weights.npz")
    other = UNet()
    other.load_weights("weights.npz")
    Path("weights.npz").unlink()
    t = mx.array([3.0, 70.0])
    same = mx.allclose(other(images[:2], t, labels[:2]), model(images[:2], t, labels[:2]))
    print("loaded", same.item(), [tuple(p.shape) for p in (model.conv_in.weight, model.upsample.weight)])


if __name__ == "__main__":
    main()
