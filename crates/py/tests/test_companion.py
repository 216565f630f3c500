"""Programs for MLX that train, run by ``python -m cupola.mlx``."""

import gzip
import os
import re
import struct
import subprocess
import sys

import numpy as np
import pytest

COMPANION = os.path.join(os.path.dirname(__file__), "programs", "companion.py")

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("CUPOLA_STAND_IN")), reason="the programs run in other processes"
)


def drawn(count, seed, side=16):
    """Small pictures of ten kinds, bars at ten places, with noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    images = rng.integers(0, 60, (count, side, side))
    for image, label in zip(images, labels):
        if label < 5:
            image[3 * label : 3 * label + 2] += 190
        else:
            image[:, 3 * (label - 5) : 3 * (label - 5) + 2] += 190
    return images.astype(np.uint8), labels.astype(np.uint8)


def write(folder, name, images, labels):
    with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4i", 2051, *images.shape) + images.tobytes())
    with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">2i", 2049, len(labels)) + labels.tobytes())


def run(*arguments):
    command = [sys.executable, "-m", "cupola.mlx", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write(folder, "train", *drawn(1500, 1))
    write(folder, "t10k", *drawn(300, 2))
    return folder


def test_the_network_learns(digits):
    out = run(COMPANION, digits, "--epochs", 5, "--batch", 64, "--rate", 1e-3)
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", out)]
    assert len(losses) == 5 and losses[-1] < losses[0] / 2
    assert float(re.search(r"test accuracy: ([\d.]+)", out)[1]) > 0.9


def test_the_seed_repeats_it(digits):
    first, second = (re.findall(r"loss ([\d.]+)", run(COMPANION, digits, "--epochs", 1)) for _ in "ab")
    assert first == second


LEAKS = """
import gc, resource, sys
import mlx.core as mx, mlx.nn as nn, mlx.optimizers as optim
from functools import partial

compiled = sys.argv[1] == "compiled"
mx.random.seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4))
optimizer = optim.AdamW(optim.cosine_decay(1e-3, 500))
state = [model.state, optimizer.state, mx.random.state]

def loss(x, y):
    return mx.mean(nn.losses.cross_entropy(model(x), y))

def step(x, y):
    value, gradients = nn.value_and_grad(model, loss)(x, y)
    gradients, norm = optim.clip_grad_norm(gradients, 1.0)
    optimizer.update(model, gradients)
    return value, norm

if compiled:
    step = partial(mx.compile, inputs=state, outputs=state)(step)

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

for i in range(1200):
    x = mx.random.normal((16, 32))
    y = mx.random.randint(0, 4, (16,))
    value, norm = step(x, y)
    mx.eval(state, value, norm)
    if i == 199:
        before, active = resident(), mx.get_active_memory()
print(resident() - before, mx.get_active_memory() - active)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
@pytest.mark.parametrize("how", ["compiled", "eager"])
def test_steps_hold_memory_level(how, tmp_path):
    program = tmp_path / "leaks.py"
    program.write_text(LEAKS)
    resident, active = map(int, run(program, how).split())
    assert resident < 2**21 and active < 2**16


THREADS = """
import threading
import mlx.core as mx, mlx.nn as nn, mlx.optimizers as optim

results = {}

def work(seed):
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    model.apply(lambda p: mx.sin(mx.arange(p.size).astype(mx.float32) + seed).reshape(p.shape))
    optimizer = optim.SGD(0.01, momentum=0.9)
    step = nn.value_and_grad(model, lambda x: mx.mean(mx.square(model(x) - 1)))
    x = mx.cos(mx.arange(64).astype(mx.float32)).reshape(8, 8)
    for _ in range(50):
        value, gradients = step(x)
        optimizer.update(model, gradients)
        mx.eval(model.parameters(), optimizer.state)
    results.setdefault(seed, []).append(value.item())

for _ in range(2):
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
for seed in range(4):
    work(seed)
    assert len(results[seed]) == 3 and len(set(results[seed])) == 1, results
print("same")
"""


def test_threads_train_models_of_their_own(tmp_path):
    program = tmp_path / "threads.py"
    program.write_text(THREADS)
    assert run(program).strip() == "same"
