#!/usr/bin/env python3
"""Whole models in Cupola's Python package and in PyTorch: training steps and one-token decoding.

    python benches/models.py [--device cpu] [--only gpt,decode,resnet,cnn,mlp] [--dtype bf16,tf32,f32]
                             [--precision autocast-bf16,autocast-f16]
                             [--peers torch,torch-compile] [--steps 20] [--threads N] [--json FILE]

Needs numpy, torch and the package `cupola`. `--device` is cpu, cuda:0 or wgpu:0 and may be given more than
once; PyTorch runs on the GPU for cuda and on the CPU for the others. Each side runs in a process of its
own, one after the other, with nothing compiled before (an empty cache folder). Both start from the same
weights and see the same data: their losses over the first 20 steps, or the tokens that they decode, are
compared before a time is printed. A ratio below 1 means that Cupola takes less time, or memory.

With `--precision` the models that train do so in mixed precision instead: under `amp.autocast`, with parameters in
float32, `float16` with a `GradScaler`. Their losses may be 1 % of the first one from those of float32, which is a
side of its own, and their times stand beside those of the model whose parameters in float32 are cast to bfloat16 by
hand in every step (`cast-bf16`); beside it there is the one whose parameters are bfloat16 (`bf16`). The network of the
article then has 512 digits on a CPU, too: with 64 its losses over 20 steps of float32 itself differ by 5 % where the
first weights differ by 1e-7, so that they say nothing about a precision (with 512 by 0.6 %).

gpt       GPT-2 124M, 8 × 1024 tokens, AdamW; on a CPU 4 layers, 256 wide, 4 × 256 tokens
decode    the same model, one token at a time, the cache grown by one each: `new` is the first pass over the
          lengths, `seen` the second
resnet    ResNet-18 in its form for CIFAR-10, batch 512 (CPU 32), SGD with momentum
cnn       the network of the article *PyTorch and MLX for Apple Silicon* without its dropout, batch 512 (CPU 64), AdamW
mlp       784-1024-1024-10, batch 512, AdamW
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

COMPARED = 20
LEARNING_RATE = {"gpt": 1e-3, "cnn": 1e-3, "mlp": 1e-3, "resnet": 0.05}
# How far apart losses may be, of the first one: sums are taken in another order, and steps carry that on.
TOLERANCE = {"bf16": 3e-2, "tf32": 5e-3, "f32": 2e-3}
# How far the losses of mixed precision may be from those of float32, of the first one.
MIXED_TOLERANCE = 1e-2


class Sizes:
    """What a model has on a device."""

    @staticmethod
    def tiny():
        """As little as shows whether a model trains."""
        sizes = Sizes(False)
        sizes.layers, sizes.width, sizes.heads, sizes.batch, sizes.tokens, sizes.words = 1, 32, 2, 2, 16, 64
        sizes.images, sizes.side, sizes.digits, sizes.rows, sizes.rate = 16, 16, 8, 32, 0.02
        return sizes

    def __init__(self, is_gpu):
        self.side, self.rows = 32, 512
        # What learning rates are multiplied by.
        self.rate = 1.0
        self.digits = 512 if is_gpu else 64
        self.layers, self.width, self.heads = (12, 768, 12) if is_gpu else (4, 256, 8)
        self.batch, self.tokens = (8, 1024) if is_gpu else (4, 256)
        self.words = 50304 if is_gpu else 8192
        self.images = 512 if is_gpu else 32
        self.prompt, self.decoded = 32, 64


BLOCKS = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1),
          (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]  # fmt: skip


def weights(name, shape):
    """The numbers that a parameter begins with, by its name: convolutions are [out, .., in]."""
    import numpy as np

    if name.endswith("bias"):
        return np.zeros(shape, np.float32)
    if len(shape) == 1:
        return np.ones(shape, np.float32)
    spread = 0.02 if len(shape) == 2 else (2 / np.prod(shape[1:])) ** 0.5
    numbers = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)
    return (numbers * spread).astype(np.float32)


def data(model, sizes):
    import numpy as np

    rng = np.random.default_rng(0)
    if model in ("gpt", "decode"):
        return rng.integers(0, sizes.words, (sizes.batch, sizes.tokens + 1)).astype(np.int32)
    side = sizes.side
    shapes = {"resnet": (sizes.images, side, side, 3), "cnn": (sizes.digits, 28, 28, 1), "mlp": (sizes.rows, 784)}
    shape = shapes[model]
    x = rng.standard_normal(shape).astype(np.float32)
    return x, rng.integers(0, 10, shape[0]).astype(np.int32)


def timed(step, wait, count):
    """Times of `count` steps, each waited for."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        wait()
        times.append(time.perf_counter() - start)
    return times


# --- Cupola ---------------------------------------------------------------------------------------


def cupola_models(mx, nn):
    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def __call__(self, x, cache=None):
            batch, tokens, width = x.shape
            split = lambda a: a.reshape(batch, tokens, self.heads, -1).transpose(0, 2, 1, 3)
            q, k, v = map(split, mx.split(self.qkv(self.before(x)), 3, axis=-1))
            if cache is not None:
                if cache:
                    k = mx.concatenate([cache[0], k], axis=2)
                    v = mx.concatenate([cache[1], v], axis=2)
                cache[:] = [k, v]
            mask = "causal" if tokens > 1 else None
            scale = (width // self.heads) ** -0.5
            y = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)
            x = x + self.out(y.transpose(0, 2, 1, 3).reshape(batch, tokens, width))
            return x + self.down(nn.gelu_approx(self.up(self.between(x))))

    class GPT(nn.Module):
        def __init__(self, s):
            super().__init__()
            self.words, self.places = nn.Embedding(s.words, s.width), nn.Embedding(s.tokens, s.width)
            self.blocks = [Block(s.width, s.heads) for _ in range(s.layers)]
            self.norm = nn.LayerNorm(s.width)

        def __call__(self, ids, start=0, caches=None):
            x = self.words(ids) + self.places(mx.arange(start, start + ids.shape[1]))
            for block, cache in zip(self.blocks, caches or [None] * len(self.blocks)):
                x = block(x, cache)
            return self.words.as_linear(self.norm(x))

    class Basic(nn.Module):
        def __init__(self, cin, cout, stride):
            super().__init__()
            conv = lambda a, b, k, s: nn.Conv2d(a, b, k, s, k // 2, bias=False)
            self.conv1, self.norm1 = conv(cin, cout, 3, stride), nn.BatchNorm(cout)
            self.conv2, self.norm2 = conv(cout, cout, 3, 1), nn.BatchNorm(cout)
            self.changes = cin != cout or stride != 1
            if self.changes:
                self.conv3, self.norm3 = conv(cin, cout, 1, stride), nn.BatchNorm(cout)

        def __call__(self, x):
            y = self.norm2(self.conv2(nn.relu(self.norm1(self.conv1(x)))))
            return nn.relu(y + (self.norm3(self.conv3(x)) if self.changes else x))

    class ResNet(nn.Module):
        def __init__(self, _):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm(64)
            self.blocks = [Basic(*block) for block in BLOCKS]
            self.head = nn.Linear(512, 10)

        def __call__(self, x):
            x = nn.relu(self.norm(self.conv(x)))
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean(axis=(1, 2)))

    class MLP(nn.Module):
        def __init__(self, _):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(784, 1024), nn.Linear(1024, 1024), nn.Linear(1024, 10)

        def __call__(self, x):
            return self.c(nn.relu(self.b(nn.relu(self.a(x)))))

    class CNN(nn.Module):
        def __init__(self, _):
            super().__init__()
            self.convs = [nn.Conv2d(a, b, 5, padding=2) for a, b in ((1, 20), (20, 50), (50, 100))]
            self.linears = [nn.Linear(900, 450), nn.Linear(450, 225), nn.Linear(225, 10)]
            self.pool = nn.MaxPool2d(2)

        def __call__(self, x):
            for conv in self.convs:
                x = self.pool(nn.relu(conv(x)))
            first, second, third = self.linears
            return third(second(nn.relu(first(x.flatten(1)))))

    return {"gpt": GPT, "decode": GPT, "resnet": ResNet, "cnn": CNN, "mlp": MLP}


def cupola_model(task, sizes):
    """The model of a task with its weights, and its sizes; the device is the default one from now on."""
    import cupola.core as mx
    import cupola.nn as nn
    from cupola.utils import tree_flatten, tree_unflatten

    sizes = sizes or Sizes(task["device"] != "cpu")
    sizes.digits = task.get("digits", sizes.digits)
    kind, _, index = task["device"].partition(":")
    mx.set_default_device(mx.Device(getattr(mx.DeviceType, kind), int(index or 0)))
    half = mx.bfloat16 if task["dtype"] == "bf16" else mx.float32
    model = cupola_models(mx, nn)[task["model"]](sizes)
    own = [(k, mx.array(weights(k, v.shape)).astype(half)) for k, v in tree_flatten(model.trainable_parameters())]
    model.update(tree_unflatten(own))
    mx.eval(model.parameters())
    return model, sizes


def cupola_step(task, sizes=None):
    """A training step of a task, which gives its loss when it is over."""
    import cupola.amp as amp
    import cupola.core as mx
    import cupola.nn as nn
    import cupola.optimizers as optim
    from cupola.utils import tree_map

    model, sizes = cupola_model(task, sizes)
    name, dtype = task["model"], task["dtype"]
    lower = {"autocast-bf16": mx.bfloat16, "autocast-f16": mx.float16}.get(dtype)
    by_hand = dtype == "cast-bf16"
    # A scale that no first step overflows with: a step that is skipped puts the curve off by one.
    scaler = amp.GradScaler(init_scale=2.0**10, enabled=dtype == "autocast-f16")
    if name == "gpt":
        ids = mx.array(data(name, sizes))
        x, y = ids[:, :-1], ids[:, 1:]
    else:
        x, y = (mx.array(part) for part in data(name, sizes))
        x = x.astype(mx.bfloat16 if dtype == "bf16" else mx.float32)
    mx.eval(x, y)

    def cast(x, y):
        """`loss` with parameters and images cast by hand."""
        kept = model.trainable_parameters()
        model.update(tree_map(lambda p: p.astype(mx.bfloat16), kept))
        try:
            return loss(x if name == "gpt" else x.astype(mx.bfloat16), y)
        finally:
            model.update(kept)

    def loss(x, y):
        with amp.autocast(lower or mx.float32, enabled=lower is not None):
            value = nn.losses.cross_entropy(model(x).astype(mx.float32), y, reduction="mean")
        return scaler.scale(value), value

    rate = LEARNING_RATE[name] * sizes.rate
    is_sgd = name == "resnet"
    # PyTorch's AdamW corrects its moments always, MLX's where it is asked to.
    adam = lambda: optim.AdamW(rate, weight_decay=0.01, bias_correction=True)
    optimizer = optim.SGD(rate, momentum=0.9) if is_sgd else adam()
    value_and_grad = nn.value_and_grad(model, cast if by_hand else loss)

    def recorded(x, y):
        (_, value), grads = value_and_grad(x, y)
        scaler.step(optimizer, model, grads)
        scaler.update()
        return value

    def step():
        value = recorded(x, y)
        mx.eval(value, model.parameters(), optimizer.state, scaler.state)
        return value

    if task["compile"]:
        optimizer.init(model.trainable_parameters())
        state = [model.state, optimizer.state, scaler.state]
        compiled = mx.compile(recorded, inputs=state, outputs=state)

        def step():
            value = compiled(x, y)
            mx.eval(value, state)
            return value

    return step


def cupola_side(task):
    import cupola.core as mx

    if task["model"] == "decode":
        return cupola_decoding(task)
    step = cupola_step(task)
    start = time.perf_counter()
    found = [step().item()]
    first = time.perf_counter() - start
    found += [step().item() for _ in range(COMPARED - 1)]
    mx.reset_peak_memory()
    times = timed(step, mx.synchronize, task["steps"])
    return dict(first=first, times=times, found=found, peak=mx.get_peak_memory())


def cupola_decoding(task):
    import cupola.core as mx

    model, sizes = cupola_model(task, None)
    model.eval()
    ids = mx.array(data("decode", sizes)[0])

    def decode(count):
        caches, times, found = [[] for _ in model.blocks], [], []
        mx.eval(model(ids[None, : sizes.prompt], 0, caches))
        for at in range(sizes.prompt, sizes.prompt + count):
            start = time.perf_counter()
            best = mx.argmax(model(ids[None, at : at + 1], at, caches)[0, -1]).item()
            times.append(time.perf_counter() - start)
            found.append(best)
        return times, found

    start = time.perf_counter()
    decode(1)
    first = time.perf_counter() - start
    new, _ = decode(sizes.decoded)
    seen, found = decode(sizes.decoded)
    return dict(first=first, new=new, times=seen, found=found, peak=mx.get_peak_memory())


# --- PyTorch --------------------------------------------------------------------------------------


def torch_models(torch, nn, F):
    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, cache=None):
            batch, tokens, width = x.shape
            split = lambda a: a.view(batch, tokens, self.heads, -1).transpose(1, 2)
            q, k, v = map(split, self.qkv(self.before(x)).split(width, 2))
            if cache is not None:
                if cache:
                    k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
                cache[:] = [k, v]
            y = F.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1)
            x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, width))
            return x + self.down(F.gelu(self.up(self.between(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self, s):
            super().__init__()
            self.words, self.places = nn.Embedding(s.words, s.width), nn.Embedding(s.tokens, s.width)
            self.blocks = nn.ModuleList(Block(s.width, s.heads) for _ in range(s.layers))
            self.norm = nn.LayerNorm(s.width)

        def forward(self, ids, start=0, caches=None):
            places = torch.arange(start, start + ids.shape[1], device=ids.device)
            x = self.words(ids) + self.places(places)
            for block, cache in zip(self.blocks, caches or [None] * len(self.blocks)):
                x = block(x, cache)
            return F.linear(self.norm(x), self.words.weight)

    class Basic(nn.Module):
        def __init__(self, cin, cout, stride):
            super().__init__()
            conv = lambda a, b, k, s: nn.Conv2d(a, b, k, s, k // 2, bias=False)
            self.conv1, self.norm1 = conv(cin, cout, 3, stride), nn.BatchNorm2d(cout)
            self.conv2, self.norm2 = conv(cout, cout, 3, 1), nn.BatchNorm2d(cout)
            self.changes = cin != cout or stride != 1
            if self.changes:
                self.conv3, self.norm3 = conv(cin, cout, 1, stride), nn.BatchNorm2d(cout)

        def forward(self, x):
            y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
            return F.relu(y + (self.norm3(self.conv3(x)) if self.changes else x))

    class ResNet(nn.Module):
        def __init__(self, _):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
            self.blocks = nn.ModuleList(Basic(*block) for block in BLOCKS)
            self.head = nn.Linear(512, 10)

        def forward(self, x):
            x = F.relu(self.norm(self.conv(x)))
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean((2, 3)))

    class MLP(nn.Module):
        def __init__(self, _):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(784, 1024), nn.Linear(1024, 1024), nn.Linear(1024, 10)

        def forward(self, x):
            return self.c(F.relu(self.b(F.relu(self.a(x)))))

    class CNN(nn.Module):
        def __init__(self, _):
            super().__init__()
            conv = lambda a, b: nn.Conv2d(a, b, 5, padding=2)
            self.convs = nn.ModuleList(conv(a, b) for a, b in ((1, 20), (20, 50), (50, 100)))
            self.linears = nn.ModuleList((nn.Linear(900, 450), nn.Linear(450, 225), nn.Linear(225, 10)))

        def forward(self, x):
            for conv in self.convs:
                x = F.max_pool2d(F.relu(conv(x)), 2)
            first, second, third = self.linears
            # Channels last, as in the weights of the others.
            return third(second(F.relu(first(x.permute(0, 2, 3, 1).flatten(1)))))

    return {"gpt": GPT, "decode": GPT, "resnet": ResNet, "cnn": CNN, "mlp": MLP}


def torch_side(task):
    import numpy as np
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    name, dtype = task["model"], task["dtype"]
    is_gpu = task["device"].startswith("cuda")
    sizes = Sizes(task["device"] != "cpu")
    device = task["device"] if is_gpu else "cpu"
    if not is_gpu:
        torch.set_num_threads(task["threads"])
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = dtype == "tf32"
    torch.backends.cudnn.benchmark = True
    half = torch.bfloat16 if dtype == "bf16" else torch.float32
    model = torch_models(torch, nn, F)[name](sizes).to(device)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            shape = list(parameter.shape)
            canonical = [shape[0], *shape[2:], shape[1]] if len(shape) == 4 else shape
            numbers = torch.from_numpy(weights(key, canonical))
            parameter.copy_(numbers.permute(0, 3, 1, 2) if len(shape) == 4 else numbers)
    if name in ("resnet", "cnn"):
        model = model.to(memory_format=torch.channels_last)
    model = model.to(half)
    wait = torch.cuda.synchronize if is_gpu else lambda: None
    compiles = task["side"] == "torch-compile"

    def peak():
        import resource

        if is_gpu:
            return torch.cuda.max_memory_allocated()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    if name == "decode":
        model.eval()
        forward = torch.compile(model) if compiles else model
        ids = torch.tensor(data(name, sizes)[0], dtype=torch.long, device=device)

        @torch.no_grad()
        def decode(count):
            caches, times, found = [[] for _ in model.blocks], [], []
            forward(ids[None, : sizes.prompt], 0, caches)
            for at in range(sizes.prompt, sizes.prompt + count):
                start = time.perf_counter()
                best = forward(ids[None, at : at + 1], at, caches)[0, -1].argmax().item()
                times.append(time.perf_counter() - start)
                found.append(best)
            return times, found

        start = time.perf_counter()
        decode(1)
        first = time.perf_counter() - start
        new, _ = decode(sizes.decoded)
        seen, found = decode(sizes.decoded)
        return dict(first=first, new=new, times=seen, found=found, peak=peak())
    if name == "gpt":
        ids = torch.tensor(data(name, sizes), dtype=torch.long, device=device)
        x, y = ids[:, :-1], ids[:, 1:].reshape(-1)
    else:
        x, y = (torch.tensor(part, device=device) for part in data(name, sizes))
        x, y = x.to(half), y.long()
        if name in ("resnet", "cnn"):
            x = x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    rate = LEARNING_RATE[name]
    if name == "resnet":
        optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9, fused=is_gpu)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.01, fused=is_gpu)

    def loss():
        scores = model(x).float()
        return F.cross_entropy(scores.reshape(-1, scores.shape[-1]), y)

    if compiles:
        loss = torch.compile(loss)

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        optimizer.step()
        return value

    start = time.perf_counter()
    found = [step().item()]
    first = time.perf_counter() - start
    found += [step().item() for _ in range(COMPARED - 1)]
    if is_gpu:
        torch.cuda.reset_peak_memory_stats()
    times = timed(step, wait, task["steps"])
    return dict(first=first, times=times, found=found, peak=peak())


# --- both -----------------------------------------------------------------------------------------


def measure(task):
    """One side, in a process of its own with nothing compiled before."""
    with tempfile.TemporaryDirectory() as cache:
        kept = {"XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": cache}
        kept["CUPOLA_NUM_THREADS"] = str(task["threads"])
        kept["CUPOLA_TF32"] = str(int(task["dtype"] == "tf32"))
        command = [sys.executable, os.path.abspath(__file__), "--task", json.dumps(task)]
        done = subprocess.run(command, env={**os.environ, **kept}, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return {"error": lines[-1][:200] if lines else f"exit {done.returncode}"}
    result = json.loads(done.stdout.splitlines()[-1])
    result["ms"] = statistics.median(result["times"]) * 1e3
    if "new" in result:
        result["new_ms"] = statistics.median(result["new"]) * 1e3
        result["new_max_ms"] = max(result["new"]) * 1e3
    return result


def difference(model, own, peer):
    """How far apart what both sides found is, and whether that is too far."""
    if model == "decode":
        return sum(a != b for a, b in zip(own, peer)) / len(own)
    return max(abs(a - b) for a, b in zip(own, peer)) / abs(peer[0])


def table(rows):
    head = ("model", "device", "dtype", "side", "ms", "ratio", "new ms", "first s", "peak MB", "ratio", "apart")
    lines = [head]
    for row in rows:
        if "error" in row:
            lines.append((row["model"], row["device"], row["dtype"], row["side"], row["error"]))
            continue
        number = lambda key, digits=3: f"{row[key]:.{digits}f}" if key in row else ""
        lines.append((
            row["model"], row["device"], row["dtype"], row["side"], number("ms"), number("ratio", 2),
            number("new_ms"), number("first", 2), f"{row['peak'] / 1e6:.0f}", number("memory_ratio", 2),
            f"{row['apart']:.1e}" if "apart" in row else "",
        ))  # fmt: skip
    widths = [max(len(line[i]) for line in lines if len(line) == len(head)) for i in range(len(head))]
    for line in lines:
        cells = [cell.ljust(w) if i < 4 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))]
        print("  ".join(cells if len(line) == len(head) else line).rstrip())


def mixed(arguments):
    """Training in mixed precision beside float32 and beside parameters in bfloat16."""
    rows, failed = [], False
    for device in arguments.device or ["cpu"]:
        for model in arguments.only.split(","):
            if model == "decode":
                continue
            found = {}
            for dtype in ["f32", "bf16", "cast-bf16", *arguments.precision.split(",")]:
                side = "cupola-compile" if arguments.compile else "cupola"
                task = dict(side=side, model=model, device=device, dtype=dtype, steps=arguments.steps, digits=512,
                            threads=arguments.threads, compile=arguments.compile)  # fmt: skip
                print(f"{model} {device} {dtype} {side} ..", file=sys.stderr, flush=True)
                row = {**{k: task[k] for k in ("model", "device", "dtype", "side")}, **measure(task)}
                found[dtype] = row
                rows.append(row)
                base, cast = found["f32"], found.get("cast-bf16", {})
                if "error" in row or dtype == "f32" or "error" in base:
                    continue
                row["apart"] = difference(model, row["found"], base["found"])
                if dtype.startswith("autocast") and row["apart"] > MIXED_TOLERANCE:
                    row["error"] = f"its losses differ from those of float32 by {row['apart']:.2g}"
                elif dtype.startswith("autocast") and "ms" in cast and "error" not in cast:
                    row["ratio"] = row["ms"] / cast["ms"]
                    row["memory_ratio"] = row["peak"] / cast["peak"]
            failed |= any("error" in row for row in found.values())
    table(rows)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
    return int(failed)


def precisions(text):
    known = ("autocast-bf16", "autocast-f16")
    if wrong := [name for name in text.split(",") if name not in known]:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(known)}")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", action="append")
    parser.add_argument("--only", default="gpt,decode,resnet,cnn,mlp")
    parser.add_argument("--dtype", help="bf16, tf32, f32; by default what is usual for the device")
    parser.add_argument("--precision", type=precisions, help="autocast-bf16,autocast-f16: mixed precision, beside bf16 and f32")
    parser.add_argument("--peers", help="torch, torch-compile; both on a GPU, torch on a CPU")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compile", action="store_true", help="Cupola's steps through mx.compile, too")
    parser.add_argument("--json", help="a file for everything that was measured")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        task = json.loads(arguments.task)
        side = cupola_side if task["side"].startswith("cupola") else torch_side
        print(json.dumps(side(task)))
        return 0
    if arguments.precision:
        return mixed(arguments)
    rows, failed = [], False
    for device in arguments.device or ["cpu"]:
        dtypes = arguments.dtype or ("bf16,tf32" if device.startswith("cuda") else "f32")
        peers = arguments.peers
        if peers is None:
            peers = "torch,torch-compile" if device.startswith("cuda") else "torch"
        own = ["cupola", "cupola-compile"] if arguments.compile else ["cupola"]
        for model in arguments.only.split(","):
            for dtype in dtypes.split(","):
                found = []
                for side in [*own, *filter(None, peers.split(","))]:
                    task = dict(side=side, model=model, device=device, dtype=dtype, steps=arguments.steps,
                                threads=arguments.threads, compile=side == "cupola-compile")  # fmt: skip
                    print(f"{model} {device} {dtype} {side} ..", file=sys.stderr, flush=True)
                    found.append({**{k: task[k] for k in ("model", "device", "dtype", "side")}, **measure(task)})
                base = found[0]
                for row in found[1:]:
                    if "error" in row or "error" in base:
                        continue
                    row["apart"] = difference(model, base["found"], row["found"])
                    # Of half types a few of the tokens differ where two are about as likely.
                    allowed = TOLERANCE[dtype] if model != "decode" else 0.15 if dtype == "bf16" else 0.05
                    if row["apart"] > allowed:
                        row["error"] = f"differs from Cupola by {row['apart']:.2g}: not timed"
                        failed = True
                        continue
                    row["ratio"] = base["ms"] / row["ms"]
                    row["memory_ratio"] = base["peak"] / row["peak"]
                failed |= any("error" in row for row in found)
                rows += found
    table(rows)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
