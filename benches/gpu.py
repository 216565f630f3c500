#!/usr/bin/env python3
"""The article's network and the kernels under it in Cupola, PyTorch and JAX, in one run on one GPU.

    cargo build --release
    python benches/gpu.py [--data DIR] [--cupola target/release/cupola] [--device cuda:0]
                          [--only network,matmul,conv,gelu,sum,softmax,layer_norm,transpose,launch]
                          [--json FILE]

Needs numpy and torch, and takes JAX along where it is installed. DIR holds MNIST's four IDX files;
without it the images are digits that Cupola draws. `--device` may be given more than once, as in
`--device cuda:0 --device wgpu:0`; the peers run once, on the GPU where a device is one.

Cupola goes first and leaves what it computed: each peer makes the same inputs, compares its own
results, and times only what agrees. Every configuration of a peer may fail by itself; the reason is
printed. Times are medians by the clock of the host, with the device synchronised before and after.
Runs of a kernel are queued one behind the other, on both sides.
"""

import argparse
import json
import math
import os
import pathlib
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BATCH = 512
CLASSIFIED = 9728
PEERS = ("torch", "jax")

# How far a result may be from Cupola's: the root mean square of the difference over that of the
# result. A bf16 result has 8 bits; TF32 rounds inputs to 11, and so may the order of sums differ.
TOLERANCE = {"bf16": 1e-2, "tf32": 2e-3, "f32": 1e-4}
# The network's, after the mean of each image's scores is taken off; Cupola may use TF32.
NETWORK_TOLERANCE = {"bf16": 5e-2, "tf32": 1e-2, "f32": 1e-2}


# --- what both sides share ----------------------------------------------------------------------


def read_safetensors(path):
    """The tensors and the metadata of a file; bf16 does not occur."""
    import numpy as np

    dtypes = {"F32": np.float32, "U8": np.uint8, "I32": np.int32, "U32": np.uint32, "I64": np.int64}
    data = pathlib.Path(path).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        values = np.frombuffer(data[start + first : start + last], dtypes[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors, metadata


def uniform(shape, seed, low, arange, to_float, word=int):
    """The numbers of `cupola bench --kernels`: `arange` gives indices of 32 bits or more, without a
    sign that shows in the lower 32; `word` makes a constant that goes with them."""
    mask = word(0xFFFFFFFF)
    x = arange(math.prod(shape)) ^ word(seed * 0x9E3779B9 & 0xFFFFFFFF)
    x = ((x ^ (x >> word(16))) * word(0x7FEB352D)) & mask
    x = ((x ^ (x >> word(15))) * word(0x846CA68B)) & mask
    x = (x ^ (x >> word(16))) >> word(8)
    return (to_float(x) * 2.0**-23 + low).reshape(shape)


def relative(found, expected):
    """The root mean square of the difference over that of `expected`."""
    import numpy as np

    found, expected = (np.asarray(x, np.float64) for x in (found, expected))
    if found.shape != expected.shape:
        return float("inf")
    scale = np.sqrt(np.mean(expected**2))
    return float(np.sqrt(np.mean((found - expected) ** 2)) / max(scale, 1e-30))


def rate(row, seconds):
    """In the row's unit, counted as Cupola counts."""
    sizes, product = row["sizes"], math.prod(row["sizes"])
    if row["unit"] == "TFLOP/s":
        filter_side = sizes[-1] if row["work"].startswith("conv") else 1
        return 2 * product * filter_side / seconds / 1e12
    if row["unit"] == "GB/s":
        return (4 if row["work"] == "sum" else 8) * product / seconds / 1e9
    return seconds * 1e6 / sizes[0]


def once(work, wait):
    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


def repeated(work, wait, times, budget):
    """The times of `work`, each alone: at least one, and until one of the limits is reached."""
    start, found = time.perf_counter(), []
    while not found or (len(found) < times and time.perf_counter() - start < budget):
        found.append(once(work, wait))
    return found


def queued(work, wait):
    """The median time of one run among many that are queued, in seconds."""
    one = min(repeated(work, wait, 3, 1.0))
    count = max(1, min(1000, int(0.05 / one) + 1))

    def many():
        for _ in range(count):
            work()

    return statistics.median(repeated(many, wait, 7, 3.0)) / count


def failure(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def say(**line):
    print(json.dumps(line), flush=True)


class Task:
    """What Cupola left for a peer: its rows and what it computed."""

    def __init__(self, path):
        self.__dict__.update(json.loads(pathlib.Path(path).read_text()))
        self.samples = read_safetensors(self.kernel_outputs)[0] if self.kernels else {}
        self.network = None
        if self.network_outputs:
            self.network = Network(self.network_outputs, self.prefix)

    def check_kernel(self, row, flat):
        """How far `flat`, a result as one axis on the host, is from Cupola's; an error if too far."""
        sample = self.samples[f"{self.prefix}{row['work']}.{row['precision']}"]
        difference = relative(flat, sample)
        # What is not a number is near nothing.
        if not difference <= TOLERANCE[row["precision"]]:
            raise ValueError(f"differs from Cupola's result by {difference:.1e}")
        return difference

    def each_kernel(self, peer, make):
        """Checks and times what `make` gives for each row: a function and how a result is read."""
        for row in self.kernels:
            name = {"peer": peer, "work": row["work"], "precision": row["precision"]}
            try:
                made = make(row)
                if made is None:
                    continue
                work, read, wait = made
                difference = self.check_kernel(row, read(work(), row["sample_step"]))
                seconds = queued(work, wait)
                say(**name, us=seconds * 1e6, rate=rate(row, seconds), difference=difference)
            except Exception as error:
                say(**name, error=failure(error))


class Network:
    """Weights, images and scores of the article's network, as Cupola left them."""

    def __init__(self, path, prefix):
        import numpy as np

        tensors, metadata = read_safetensors(path)
        self.weights = {
            name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)
        }
        self.scores = self.weights.pop("log_probabilities")
        mean, std = (np.array(json.loads(metadata[key]), np.float32) for key in ("mean", "std"))
        scaled = lambda x: (x.astype(np.float32) / np.float32(255) - mean) / std
        self.images, self.test = scaled(tensors["train.pixels"]), scaled(tensors["test.pixels"])
        self.labels = tensors["train.labels"]
        # Where there are fewer they start again, as at Cupola's side.
        self.test = self.test[np.arange(CLASSIFIED) % len(self.test)]

    def training(self, steps):
        """Images and labels for so many steps."""
        import numpy as np

        indices = np.arange(steps * BATCH) % len(self.labels)
        return self.images[indices], self.labels[indices]

    def check(self, scores, precision):
        """How far the scores of the test images are from Cupola's, and how many classes agree."""
        import numpy as np

        centred = lambda x: x - x.mean(1, keepdims=True)
        difference = relative(centred(scores), centred(self.scores))
        same = float(np.mean(scores.argmax(1) == self.scores.argmax(1)))
        if not (difference <= NETWORK_TOLERANCE[precision] and same >= 0.995):
            raise ValueError(f"differs from Cupola's by {difference:.1e}, {same:.2%} same classes")
        return difference, same


def time_network(wait, train, evaluate, classify, class_of, steps):
    """The table's three times, of functions on data that lie on the device; `evaluate` ends the
    training."""
    for step in range(min(20, steps)):
        train(step)

    def epoch():
        for step in range(steps):
            train(step)

    epochs = repeated(epoch, wait, 5, 5.0)
    evaluate()

    def batches():
        return [classify(start, start + BATCH) for start in range(0, CLASSIFIED, BATCH)]

    once(batches, wait)
    passes = repeated(batches, wait, 6, 3.0)
    singles = []
    for index in range(520):
        start = time.perf_counter()
        class_of(index)
        singles.append(time.perf_counter() - start)
    return {
        "epoch_ms": 1e3 * statistics.median(epochs),
        "classify_ms": 1e3 * min(passes),
        "single_us": 1e6 * statistics.median(singles[20:]),
    }


# --- PyTorch ------------------------------------------------------------------------------------


def torch_peer(task):
    import torch

    device = torch.device("cuda:0" if task.on_gpu else "cpu")
    if task.on_gpu and not torch.cuda.is_available():
        raise RuntimeError("this PyTorch sees no GPU")
    wait = torch.cuda.synchronize if task.on_gpu else lambda: None
    say(peer="torch", version=torch.__version__)
    if task.kernels:
        with torch.no_grad():
            torch_kernels(task, torch, device, wait)
    if task.network:
        for mode, precision, how in (
            ("eager fp32", "f32", None),
            ("eager tf32", "tf32", None),
            ("eager amp-bf16", "bf16", None),
            ("compiled tf32", "tf32", "default"),
            ("reduce-overhead amp-bf16", "bf16", "reduce-overhead"),
        ):
            if task.on_gpu or precision != "tf32":
                try:
                    found = torch_network(task, torch, device, wait, precision, how)
                    say(peer="torch", network=mode, **found)
                except Exception as error:
                    say(peer="torch", network=mode, error=failure(error))


def allow_tf32(torch, allowed):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cudnn.benchmark = True


def torch_kernels(task, torch, device, wait):
    import torch.nn.functional as F

    dtypes = {"bf16": torch.bfloat16, "tf32": torch.float32, "f32": torch.float32}

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))

    fused = ("gelu", "sum", "softmax", "layer_norm", "transpose")
    elementwise = {
        "gelu": gelu,
        "sum": torch.sum,
        "softmax": lambda x: torch.softmax(x, -1),
        "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
        "transpose": lambda x: x.t().contiguous(),
    }

    def numbers(shape, seed, low, dtype):
        indices = lambda count: torch.arange(count, dtype=torch.int64, device=device)
        return uniform(shape, seed, low, indices, lambda x: x.float()).to(dtype)

    def read(result, step):
        return result.reshape(-1)[::step].float().cpu().numpy()

    def make(row, compiled):
        work, sizes, dtype = row["work"], row["sizes"], dtypes[row["precision"]]
        allow_tf32(torch, row["precision"] == "tf32")
        if work == "matmul":
            m, k, n = sizes
            a, b = numbers((m, k), 1, -1.0, dtype), numbers((k, n), 2, -1.0, dtype)
            return lambda: a @ b, read, wait
        if work.startswith("conv"):
            images, height, width, inputs, outputs, side = sizes
            x = numbers((images, height, width, inputs), 1, -1.0, dtype).permute(0, 3, 1, 2)
            w = numbers((outputs, side, side, inputs), 2, -1.0, dtype).permute(0, 3, 1, 2)
            last = lambda y, step: read(y.permute(0, 2, 3, 1), step)
            return lambda: F.conv2d(x, w, padding=side // 2), last, wait
        if work == "launch":
            return torch_launches(torch, sizes, numbers, device, task.on_gpu), read, wait
        x = numbers(sizes, 1, 0.0 if work == "sum" else -1.0, dtype)
        function = elementwise[work]
        if compiled:
            torch._dynamo.reset()
            function = torch.compile(function)
        return lambda: function(x), read, wait

    task.each_kernel("torch", lambda row: make(row, False))
    task.each_kernel("torch compiled", lambda row: make(row, True) if row["work"] in fused else None)


def torch_launches(torch, sizes, numbers, device, on_gpu):
    """The chain of additions as one CUDA graph; on the CPU, where there are none, one by one."""
    count, side = sizes
    x = numbers((side, side), 1, -1.0, torch.float32)
    one = numbers((side, side), 2, -1.0, torch.float32)

    def chain():
        y = x
        for _ in range(count):
            y = y.t() + one
        return y

    if not on_gpu:
        return chain
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        chain()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = chain()

    def replay():
        graph.replay()
        return result

    return replay


def torch_model(torch, weights):
    import numpy as np
    import torch.nn as nn
    import torch.nn.functional as F

    class Article(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("conv1", "conv2", "conv3"):
                outputs, side, _, inputs = weights[f"{name}.weight"].shape
                setattr(self, name, nn.Conv2d(inputs, outputs, side, padding=side // 2))
            for name in ("linear1", "linear2", "linear3"):
                outputs, inputs = weights[f"{name}.weight"].shape
                setattr(self, name, nn.Linear(inputs, outputs))
            self.dropout = nn.Dropout(0.3)

        def forward(self, x):
            for conv in (self.conv1, self.conv2, self.conv3):
                x = F.max_pool2d(F.relu(conv(x)), 2)
            x = F.relu(self.dropout(self.linear1(x.flatten(1))))
            x = self.dropout(self.linear3(self.dropout(self.linear2(x))))
            return F.log_softmax(x, 1)

    state = {}
    for name, value in weights.items():
        if value.ndim == 4:
            value = value.transpose(0, 3, 1, 2)
        if name == "linear1.weight":
            # Cupola flattens height, width, channels; PyTorch channels first.
            channels = weights["conv3.weight"].shape[0]
            side = round((value.shape[1] / channels) ** 0.5)
            value = value.reshape(-1, side, side, channels).transpose(0, 3, 1, 2)
            value = value.reshape(value.shape[0], -1)
        state[name] = torch.from_numpy(np.array(value, order="C"))
    model = Article()
    model.load_state_dict(state)
    return model


def torch_network(task, torch, device, wait, precision, how):
    import numpy as np
    import torch.nn.functional as F

    network = task.network
    allow_tf32(torch, precision != "f32")
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch_model(torch, network.weights).to(device)
    forward = model
    if how:
        forward = torch.compile(model, mode=how)
    on_device = lambda x: torch.from_numpy(np.array(x, order="C")).to(device)
    images, labels = network.training(task.steps)
    images, labels = on_device(images.transpose(0, 3, 1, 2)), on_device(labels).long()
    test = on_device(network.test.transpose(0, 3, 1, 2))
    half = lambda: torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")

    model.eval()
    with torch.inference_mode(), half():
        parts = [model(test[i : i + BATCH]).float() for i in range(0, CLASSIFIED, BATCH)]
    difference, same = network.check(torch.cat(parts).cpu().numpy(), precision)

    model.train()
    adam = torch.optim.Adam(model.parameters(), 1e-3, fused=True)

    def train(step):
        start = step * BATCH
        batch, classes = images[start : start + BATCH], labels[start : start + BATCH]
        with half():
            loss = F.nll_loss(forward(batch).float(), classes)
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()

    def classify(start, stop):
        with torch.inference_mode(), half():
            return forward(test[start:stop]).argmax(1)

    class_of = lambda index: classify(index, index + 1).item()
    times = time_network(wait, train, model.eval, classify, class_of, task.steps)
    return {**times, "difference": difference, "same": same}


# --- JAX ----------------------------------------------------------------------------------------


def jax_peer(task):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    if task.on_gpu:
        if jax.default_backend() != "gpu":
            raise RuntimeError(f"this JAX runs on {jax.default_backend()}")
    else:
        jax.config.update("jax_platforms", "cpu")
    say(peer="jax", version=jax.__version__)
    if task.kernels:
        jax_kernels(task, jax)
    if task.network:
        for mode, precision in (("jit fp32", "highest"), ("jit tf32", "tensorfloat32")):
            if task.on_gpu or precision == "highest":
                try:
                    say(peer="jax", network=mode, **jax_network(task, jax, precision))
                except Exception as error:
                    say(peer="jax", network=mode, error=failure(error))


def jax_kernels(task, jax):
    import jax.numpy as jnp
    import numpy as np

    dtypes = {"bf16": jnp.bfloat16, "tf32": jnp.float32, "f32": jnp.float32}

    def gelu(x):
        return 0.5 * x * (1 + jnp.tanh(0.79788456 * (x + 0.044715 * x * x * x)))

    def layer_norm(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    functions = {
        "gelu": gelu,
        "sum": jnp.sum,
        "softmax": lambda x: jax.nn.softmax(x, -1),
        "layer_norm": layer_norm,
        "transpose": lambda x: x.T.copy(),
    }

    def numbers(shape, seed, low, dtype):
        indices = lambda count: jnp.arange(count, dtype=jnp.uint32)
        to_float = lambda x: x.astype(jnp.float32)
        make = lambda: uniform(shape, seed, low, indices, to_float, jnp.uint32).astype(dtype)
        return jax.jit(make)()

    def make(row):
        work, sizes, dtype = row["work"], row["sizes"], dtypes[row["precision"]]
        precision = {"tf32": "tensorfloat32", "f32": "highest", "bf16": "default"}[row["precision"]]
        if work == "launch":
            # XLA makes one kernel of the chain: there is nothing to compare.
            return None
        if work == "matmul":
            m, k, n = sizes
            inputs = numbers((m, k), 1, -1.0, dtype), numbers((k, n), 2, -1.0, dtype)
            function = jnp.matmul
        elif work.startswith("conv"):
            images, height, width, channels, outputs, side = sizes
            inputs = (
                numbers((images, height, width, channels), 1, -1.0, dtype),
                numbers((outputs, side, side, channels), 2, -1.0, dtype),
            )
            edges = [(side // 2, side // 2)] * 2
            function = lambda x, w: jax.lax.conv_general_dilated(
                x, w, (1, 1), edges, dimension_numbers=("NHWC", "OHWI", "NHWC")
            )
        else:
            inputs = (numbers(sizes, 1, 0.0 if work == "sum" else -1.0, dtype),)
            function = functions[work]
        compiled = jax.jit(function)
        last = []

        def run():
            with jax.default_matmul_precision(precision):
                last[:] = [compiled(*inputs)]
            return last[0]

        read = lambda y, step: np.asarray(y.reshape(-1)[::step].astype(jnp.float32))
        return run, read, lambda: jax.block_until_ready(last)

    task.each_kernel("jax", make)


def jax_network(task, jax, precision):
    import jax.numpy as jnp
    import numpy as np

    network, lax = task.network, jax.lax
    images, labels = (jnp.asarray(x) for x in network.training(task.steps))
    test = jnp.asarray(network.test)
    weights = {name: jnp.asarray(value) for name, value in network.weights.items()}

    def conv(p, name, x):
        w = p[f"{name}.weight"]
        edges = [(w.shape[1] // 2,) * 2] * 2
        x = lax.conv_general_dilated(
            x, w, (1, 1), edges, dimension_numbers=("NHWC", "OHWI", "NHWC")
        )
        x = jax.nn.relu(x + p[f"{name}.bias"])
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def dropout(x, key):
        return x if key is None else jnp.where(jax.random.bernoulli(key, 0.7, x.shape), x / 0.7, 0)

    def forward(p, x, key=None):
        linear = lambda name, x: x @ p[f"{name}.weight"].T + p[f"{name}.bias"]
        keys = [None] * 3 if key is None else jax.random.split(key, 3)
        for name in ("conv1", "conv2", "conv3"):
            x = conv(p, name, x)
        x = jax.nn.relu(dropout(linear("linear1", x.reshape(x.shape[0], -1)), keys[0]))
        x = dropout(linear("linear2", x), keys[1])
        return jax.nn.log_softmax(dropout(linear("linear3", x), keys[2]))

    def batch(x, index):
        return lax.dynamic_slice_in_dim(x, index * BATCH, BATCH)

    def loss(p, x, y, key):
        return -jnp.mean(jnp.take_along_axis(forward(p, x, key), y[:, None], 1))

    def adam_step(p, m, v, count, index, images, labels, key):
        key = jax.random.fold_in(key, count)
        g = jax.grad(loss)(p, batch(images, index), batch(labels, index), key)
        each = jax.tree_util.tree_map
        m = each(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = each(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        t = count.astype(jnp.float32)
        size = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return each(lambda p, m, v: p - size * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v

    with jax.default_matmul_precision(precision):
        scores = jax.jit(forward)
        parts = [scores(weights, test[i : i + BATCH]) for i in range(0, CLASSIFIED, BATCH)]
        found = np.concatenate([np.asarray(part) for part in parts])
        difference, same = network.check(found, "f32" if precision == "highest" else "tf32")

        step = jax.jit(adam_step, donate_argnums=(0, 1, 2))
        zeros = lambda: jax.tree_util.tree_map(jnp.zeros_like, weights)
        # Copies: the step takes them over.
        state = [jax.tree_util.tree_map(jnp.copy, weights), zeros(), zeros()]
        count, key, pending = [0], jax.random.PRNGKey(0), []

        def train(index):
            count[0] += 1
            numbers = np.int32(count[0]), np.int32(index)
            state[:] = step(*state, *numbers, images, labels, key)

        classes = jax.jit(lambda p, x: jnp.argmax(forward(p, x), 1))
        singles = [test[index : index + 1] for index in range(520)]

        def classify(start, stop):
            pending.append(classes(state[0], test[start:stop]))

        def wait():
            jax.block_until_ready((state, pending))
            pending.clear()

        class_of = lambda index: int(classes(state[0], singles[index])[0])
        times = time_network(wait, train, lambda: None, classify, class_of, task.steps)
    return {**times, "difference": difference, "same": same}


# --- the run ------------------------------------------------------------------------------------


def cupola(args, *more):
    command = [args.cupola, "bench", *more]
    for device in args.device:
        command += ["--device", device]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=args.limit)
    except subprocess.TimeoutExpired:
        sys.exit(f"cupola bench: stopped after {args.limit:.0f} s")
    if run.returncode:
        sys.exit(f"cupola bench: {run.stderr.strip() or run.stdout.strip()}")


def measure_cupola(args, folder):
    """Cupola's two reports, each None where it was not asked for."""
    kernels = network = None
    names = [name for name in args.only if name != "network"]
    if not args.only or names:
        report, outputs = folder / "kernels.json", folder / "kernels.safetensors"
        more = ["--kernels", "--json", report, "--outputs", outputs]
        more += ["--only", ",".join(names)] if names else []
        more += ["--scale", str(args.scale)] if args.scale else []
        cupola(args, *more)
        kernels = json.loads(report.read_text())
    if not args.only or "network" in args.only:
        report, outputs = folder / "network.json", folder / "network.safetensors"
        more = ["--json", report, "--outputs", outputs, "--out", folder / "charts"]
        more += ["--dataset", "mnist", "--data-dir", args.data] if args.data else []
        cupola(args, *more, "--steps", str(args.steps))
        network = json.loads(report.read_text())
    return kernels, network


def run_peer(peer, task, limit):
    """The lines of a peer, as a process of its own prints them; a crash costs what was to come."""
    command = [sys.executable, __file__, "--peer", peer, str(task)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines, errors = queue.Queue(), []
    readers = [
        threading.Thread(target=lambda: [lines.put(line) for line in process.stdout]),
        threading.Thread(target=lambda: errors.extend(process.stderr)),
    ]
    for reader in readers:
        reader.start()
    found, end = [], time.monotonic() + limit
    try:
        while any(reader.is_alive() for reader in readers) or not lines.empty():
            try:
                text = lines.get(timeout=0.2)
            except queue.Empty:
                if time.monotonic() > end:
                    raise TimeoutError(f"stopped after {limit:.0f} s")
                continue
            try:
                found.append(json.loads(text))
            except json.JSONDecodeError:
                # Some library's own line.
                continue
        if process.wait() != 0:
            raise RuntimeError(errors[-1].strip() if errors else f"status {process.returncode}")
    except (TimeoutError, RuntimeError) as error:
        found.append({"peer": peer, "error": failure(error)})
    finally:
        process.kill()
        process.wait()
    return found


def lined_up(rows):
    """Rows of text as a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"] + [f"{c:>{w}}" for c, w in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())


def number(value):
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def kernel_table(kernels, lines):
    """The kernels side by side; the ratio is Cupola's rate over the best peer's."""
    peers = list(dict.fromkeys(line["peer"] for line in lines if "rate" in line))
    rates = {(x["peer"], x["work"], x["precision"]): x["rate"] for x in lines if "rate" in x}
    names = [report["device"] for report in kernels]
    heading = ["kernel", "in", "sizes", "unit", *names, *peers, *(f"{n} / best" for n in names)]
    table, result, order = [heading], [], {}
    for report in kernels:
        for row in report["kernels"]:
            order.setdefault((row["work"], row["precision"]), {})[report["device"]] = row
    for (work, precision), by_device in order.items():
        row = next(iter(by_device.values()))
        ours = {n: by_device[n].get("rate") if n in by_device else None for n in names}
        theirs = {peer: rates.get((peer, work, precision)) for peer in peers}
        there = [value for value in theirs.values() if value]
        # Of launches the fewest microseconds are best, of rates the highest.
        best = (min if work == "launch" else max)(there) if there else None
        # Devices of other sizes than the peers' have no ratio.
        same = lambda n: n in by_device and by_device[n]["sizes"] == row["sizes"]
        ratios = {n: ours[n] / best if best and ours[n] and same(n) else None for n in names}
        sizes = "×".join(map(str, row["sizes"]))
        cells = [*ours.values(), *theirs.values(), *ratios.values()]
        table.append([work, precision, sizes, row["unit"], *map(number, cells)])
        result.append({
            "work": work, "precision": precision, "sizes": row["sizes"], "unit": row["unit"],
            "cupola": ours, "peers": theirs, "best": best, "ratio": ratios,
        })
    lined_up(table)
    return result


def network_table(network, lines, steps):
    """The network's times; the ratios are Cupola's over the best peer's of each column."""
    keys = ("epoch_ms", "classify_ms", "single_us")
    ours = {
        f"cupola {row['device']}": (
            row["epoch"]["ms"], row["classify_9728_batch512_ms"], row["classify_one_us"]["median"]
        )
        for row in network
    }
    theirs = {
        f"{line['peer']} {line['network']}": tuple(line[key] for key in keys)
        for line in lines
        if "epoch_ms" in line
    }
    heading = ["network", f"epoch of {steps}, ms", f"{CLASSIFIED:,} images, ms", "one image, µs"]
    table = [heading] + [[n, *map(number, row)] for n, row in {**ours, **theirs}.items()]
    best = tuple(map(min, zip(*theirs.values()))) if theirs else None
    ratios = {}
    for name, row in ours.items():
        if best:
            ratios[name] = [mine / other for mine, other in zip(row, best)]
            table.append([f"{name} / best", *map(number, ratios[name])])
    lined_up(table)
    named = lambda rows: {n: dict(zip(keys, row)) for n, row in rows.items()}
    return {"steps": steps, "cupola": named(ours), "peers": named(theirs), "ratio": named(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="the folder of MNIST's files [default: drawn digits]")
    parser.add_argument("--cupola", default="target/release/cupola", help="the program")
    parser.add_argument("--device", action="append", help="Cupola's device [default: cuda:0]")
    parser.add_argument("--only", default="", help="network, or names of kernels, with commas")
    parser.add_argument("--scale", type=float, help="the part of the kernels' work to do")
    parser.add_argument("--steps", type=int, default=106, help="training steps an epoch")
    parser.add_argument("--limit", type=float, default=240, help="seconds a program may take")
    parser.add_argument("--json", help="a file for the results")
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        peer, task = args.peer
        return {"torch": torch_peer, "jax": jax_peer}[peer](Task(task))
    args.cupola = str(pathlib.Path(args.cupola).resolve())
    args.device = args.device or ["cuda:0"]
    args.only = [name for name in args.only.split(",") if name]
    on_gpu = any(not device.startswith("cpu") for device in args.device)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        kernels, network = measure_cupola(args, folder)
        # The peers do what the first device did, and agree with that.
        rows = [row for row in kernels[0]["kernels"] if "rate" in row] if kernels else []
        task = folder / "task.json"
        task.write_text(json.dumps({
            "on_gpu": on_gpu,
            "steps": args.steps,
            "prefix": f"{args.device[0]}/",
            "kernels": rows,
            "kernel_outputs": str(folder / "kernels.safetensors"),
            "network_outputs": str(folder / "network.safetensors") if network else None,
        }))
        lines = [line for peer in PEERS for line in run_peer(peer, task, args.limit)]
    for line in lines:
        if "version" in line:
            print(f"{line['peer']} {line['version']}")
    result = {"device": args.device, "lines": lines}
    if kernels:
        print()
        result["kernels"] = kernel_table(kernels, lines)
    if network:
        print()
        result["network"] = network_table(network, lines, args.steps)
    print("\nof times and launches a ratio below 1 is Cupola's advantage, of rates one above 1")
    failed = [line for line in lines if "error" in line]
    for report in kernels or []:
        failed += [{"peer": report["device"], **x} for x in report["kernels"] if "error" in x]
    if failed:
        print("\nnot measured:")
    for line in failed:
        what = [line.get(key, "") for key in ("peer", "network", "work", "precision")]
        print(f"  {' '.join(filter(None, what))}: {line['error']}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
