"""Products keep what they made of a matrix for as long as nobody writes to it: whoever writes is seen."""

import numpy as np
import pytest

import cupola.core as mx
import cupola.nn as nn
import cupola.optimizers as optim


def draw(seed, *shape):
    """Small integers, whose products are exact in float32."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def check(x, w, numpy):
    """Often enough that the matrix is kept."""
    want = mx.array(draw(0, *x.shape) @ numpy).astype(x.dtype)
    for _ in range(4):
        assert mx.array_equal(x @ w, want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("rows", [20, 130])
def test_writes_are_seen(dtype, rows):
    kind = getattr(mx, dtype)
    x, numpy = mx.array(draw(0, rows, 200)).astype(kind), draw(1, 200, 300)
    w = mx.array(numpy).astype(kind)
    check(x, w, numpy)
    w[3] = 2
    numpy[3] = 2
    check(x, w, numpy)
    w[:, 10:20] = mx.array(draw(2, 200, 10)).astype(kind)
    numpy[:, 10:20] = draw(2, 200, 10)
    check(x, w, numpy)
    w += 1
    check(x, w, numpy + 1)


def test_views_of_one_matrix():
    x, numpy = mx.array(draw(0, 30, 256)), draw(1, 256, 256)
    w = mx.array(numpy)
    mx.eval(w)
    for _ in range(2):
        check(x, w, numpy)
        check(x, w.T, numpy.T)
        check(x, w[:, :200], numpy[:, :200])
        check(x, w[::-1], numpy[::-1])
        check(x, w[:, ::2], numpy[:, ::2])
        check(x, w.view(mx.int32).view(mx.float32), numpy)


def test_training_between_uses():
    layer, x = nn.Linear(160, 200, bias=False), mx.array(draw(0, 24, 160))
    layer.weight = mx.array(draw(1, 200, 160))
    rule = optim.SGD(learning_rate=1.0)
    step = nn.value_and_grad(layer, lambda layer, x: layer(x).sum())
    numpy = draw(1, 200, 160)
    for _ in range(3):
        for _ in range(4):
            np.testing.assert_array_equal(np.array(layer(x)), draw(0, 24, 160) @ numpy.T)
        _, gradients = step(layer, x)
        rule.update(layer, gradients)
        mx.eval(layer.parameters())
        numpy = numpy - draw(0, 24, 160).sum(0)


def test_memory_that_others_write_to():
    numpy, x = draw(1, 200, 300), mx.array(draw(0, 40, 200))
    w = mx.array(numpy)
    check(x, w, numpy)
    shared = np.asarray(w)
    if shared.flags.writeable:
        shared[5] = 1
        numpy[5] = 1
    check(x, w, numpy)


def test_many_matrices_of_one_file(tmp_path):
    numpy = {str(k): draw(k, 200, 300) for k in range(40)}
    mx.save_safetensors(str(tmp_path / "w.safetensors"), {k: mx.array(w) for k, w in numpy.items()})
    weights, x = mx.load(str(tmp_path / "w.safetensors")), mx.array(draw(0, 20, 200))
    for _ in range(4):
        for k, w in weights.items():
            np.testing.assert_array_equal(np.array(x @ w), draw(0, 20, 200) @ numpy[k])
