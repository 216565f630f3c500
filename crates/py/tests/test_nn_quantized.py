"""Quantised layers, and layers over groups of processes, against MLX's."""

import copy

import numpy as np
import pytest
from conftest import DEVICE
from oracle import (
    TOLERANCE,
    assert_same,
    assert_same_tree,
    mlx_core,
    mlx_nn,
    mx,
    nn,
    pair,
    same_error,
    to_cupola,
    tree_flatten,
    tree_map,
    uniform,
)

MODES = ["affine", "mxfp4", "mxfp8", "nvfp4"]


def state(module, flatten):
    """Names, shapes and dtypes of the parameters, and the names of the trainable ones."""
    parameters = flatten(module.parameters())
    return (
        [(name, tuple(x.shape), str(x.dtype).rpartition(".")[2]) for name, x in parameters],
        [name for name, _ in flatten(module.trainable_parameters())],
        repr(module),
    )


def same_state(ours, theirs):
    from mlx.utils import tree_flatten as their_flatten

    assert state(ours, tree_flatten) == state(theirs, their_flatten)


# Arrays


def test_packed_words_have_no_derivative():
    for m in (mx, mlx_core):
        w, scales, biases = m.quantize(m.ones((32, 64)), group_size=32, bits=4)
        product = lambda w, x: m.quantized_matmul(x, w, scales, biases, group_size=32, bits=4)
        x = m.ones((2, 64))
        assert m.grad(lambda x: product(w, x).sum())(x).shape == x.shape
        with pytest.raises(RuntimeError, match="quantized"):
            m.grad(lambda w: product(w, x).sum())(w)
        with pytest.raises(RuntimeError, match="quantized"):
            m.jvp(lambda w: product(w, x), [w], [w])


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_weights_are_not_rounded_to_half_scales(half):
    x, their_x = uniform(8, 64, seed=1)
    w, their_w = uniform(16, 64, seed=2, dtype=half)
    q, theirs = (m.quantize(v, group_size=32, bits=8) for m, v in ((mx, w), (mlx_core, their_w)))
    assert_same(
        mx.quantized_matmul(x, *q, group_size=32, bits=8),
        mlx_core.quantized_matmul(their_x, *theirs, group_size=32, bits=8),
        1e-4,
    )
    assert_same(
        mx.gather_qmm(x, *(a[None] for a in q), rhs_indices=mx.array([0]), group_size=32, bits=8),
        mlx_core.gather_qmm(
            their_x, *(a[None] for a in theirs), rhs_indices=mlx_core.array([0]), group_size=32, bits=8
        ),
        1e-4,
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("mode", MODES)
def test_bits_are_the_same(mode, dtype):
    for scale in (1e-3, 1.0, 30.0):
        ours, theirs = uniform(7, 192, dtype=dtype, low=-scale, high=scale)
        ours = mx.concatenate([ours, mx.zeros((1, 192), ours.dtype)])
        theirs = mlx_core.concatenate([theirs, mlx_core.zeros((1, 192), theirs.dtype)])
        q, expected = mx.quantize(ours, mode=mode), mlx_core.quantize(theirs, mode=mode)
        assert len(q) == len(expected)
        if mode == "affine" and DEVICE == mx.wgpu:
            # A quotient may be a few units off there, and a number falls to its neighbour.
            step = 2 * scale / 15
            assert_same(mx.dequantize(*q), mlx_core.dequantize(*expected), 1.1 * step)
            continue
        for one, other in zip(q, expected):
            assert_same(one, other, 0 if mode != "affine" else None)
        assert_same(mx.dequantize(*q, mode=mode), mlx_core.dequantize(*expected, mode=mode))
        full = mx.dequantize(*q, mode=mode, dtype=mx.float32)
        # Products and sums of half types are rounded once, in MLX after each of them.
        tolerance = TOLERANCE[dtype] if mode == "affine" else 0
        their_full = mlx_core.dequantize(*expected, mode=mode, dtype=mlx_core.float32)
        assert_same(full, their_full, tolerance)


@pytest.mark.parametrize("scale", [0.7, 3.0, 448.0])
def test_global_scale(scale):
    ours, theirs = uniform(4, 64, low=-0.5)
    one, other = mx.array(scale), mlx_core.array(scale)
    q = mx.quantize(ours, mode="nvfp4", global_scale=one)
    expected = mlx_core.quantize(theirs, mode="nvfp4", global_scale=other)
    for a, b in zip(q, expected):
        assert_same(a, b, 0)
    back = mx.dequantize(*q, mode="nvfp4", global_scale=one, dtype=mx.float32)
    their_back = mlx_core.dequantize(
        *expected, mode="nvfp4", global_scale=other, dtype=mlx_core.float32
    )
    assert_same(back, their_back, 1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_products(mode):
    ours, theirs = uniform(3, 128, seed=1)
    weight, their_weight = uniform(2, 64, 128, seed=2)
    q, expected = mx.quantize(weight, mode=mode), mlx_core.quantize(their_weight, mode=mode)
    got = mx.quantized_matmul(ours, *(x[0] for x in q), mode=mode)
    assert_same(
        got, mlx_core.quantized_matmul(theirs, *(x[0] for x in expected), mode=mode), 1e-4
    )
    across, their_across = uniform(3, 64, seed=3)
    got = mx.quantized_matmul(across, *(x[0] for x in q), transpose=False, mode=mode)
    expected_across = mlx_core.quantized_matmul(
        their_across, *(x[0] for x in expected), transpose=False, mode=mode
    )
    assert_same(got, expected_across, 1e-4)
    got = mx.gather_qmm(ours[None], *q, rhs_indices=mx.array([1, 0, 1]), mode=mode)
    at = mlx_core.array([1, 0, 1])
    assert_same(got, mlx_core.gather_qmm(theirs[None], *expected, rhs_indices=at, mode=mode), 1e-4)


@pytest.mark.parametrize("mode", ["nvfp4", "mxfp8"])
def test_both_factors_quantized(mode):
    ours, theirs = uniform(1, 128, seed=1)
    weight, their_weight = uniform(64, 128, seed=2)
    q, expected = mx.quantize(weight, mode=mode), mlx_core.quantize(their_weight, mode=mode)
    assert_same(mx.qqmm(ours, *q, mode=mode), mlx_core.qqmm(theirs, *expected, mode=mode), 1e-4)
    # A weight that is not quantised yet is on the way, and has the gradient of the product.
    np.testing.assert_array_equal(
        np.array(mx.qqmm(ours, weight, mode=mode)), np.array(mx.qqmm(ours, *q, mode=mode))
    )
    grad_x, grad_w = mx.grad(lambda x, w: mx.qqmm(x, w, mode=mode).sum(), argnums=(0, 1))(
        ours, weight
    )
    rounded = mx.dequantize(*q, mode=mode, dtype=mx.float32)
    np.testing.assert_allclose(np.array(grad_x)[0], np.array(rounded.sum(0)), rtol=1e-5)
    rounded = mx.dequantize(*mx.quantize(ours, mode=mode), mode=mode, dtype=mx.float32)
    np.testing.assert_allclose(np.array(grad_w)[5], np.array(rounded)[0], rtol=1e-5)
    stacked = mx.stack([weight, 2 * weight])
    got = mx.gather_qqmm(ours[None], stacked, rhs_indices=mx.array([1]), mode=mode)
    np.testing.assert_array_equal(np.array(got[0]), np.array(mx.qqmm(ours, 2 * weight, mode=mode)))


ARRAY_ERRORS = [
    lambda m: m.quantize(m.ones((2, 64)), mode="other"),
    lambda m: m.quantize(m.ones((2, 64)), group_size=16),
    lambda m: m.quantize(m.ones((2, 64)), bits=7),
    lambda m: m.quantize(m.ones((2, 64)), group_size=64, mode="mxfp4"),
    lambda m: m.quantize(m.ones((2, 64)), bits=8, mode="nvfp4"),
    lambda m: m.quantize(m.ones(64)),
    lambda m: m.quantize(m.ones((2, 40))),
    lambda m: m.quantize(m.ones((2, 40)), mode="mxfp8"),
    lambda m: m.quantize(m.ones((2, 64), dtype=m.int32)),
    lambda m: m.quantize(m.ones((2, 64), dtype=m.int32), mode="mxfp4"),
    lambda m: m.quantize(m.ones((2, 64)), global_scale=m.array(1.0)),
    lambda m: m.quantize(m.ones((2, 64)), mode="mxfp4", global_scale=m.array(1.0)),
    lambda m: m.dequantize(*m.quantize(m.ones((2, 64)))[:2]),
    lambda m: m.dequantize(*m.quantize(m.ones((2, 64))), mode="mxfp4"),
    lambda m: m.dequantize(*m.quantize(m.ones((2, 64))), mode="other"),
    lambda m: m.dequantize(*m.quantize(m.ones((2, 64))), bits=8),
    lambda m: m.quantized_matmul(m.ones((2, 32)), *m.quantize(m.ones((2, 64)))),
    lambda m: m.quantized_matmul(
        m.ones((2, 64)), *m.quantize(m.ones((2, 64)), mode="mxfp4"), m.ones((2, 2)), mode="mxfp4"
    ),
    lambda m: m.qqmm(m.ones((1, 64)), m.ones((2, 64)), mode="other"),
]


@pytest.mark.parametrize("number", range(len(ARRAY_ERRORS)))
def test_array_errors(number):
    call = ARRAY_ERRORS[number]
    assert str(same_error(lambda: mx.eval(call(mx)), lambda: mlx_core.eval(call(mlx_core))))


# Layers


@pytest.mark.parametrize("mode", MODES)
def test_layers(mode):
    x, their_x = uniform(3, 64)
    for bias in (True, False):
        ours, theirs = pair("QuantizedLinear", 64, 32, bias, mode=mode)
        same_state(ours, theirs)
        assert_same(ours(x), theirs(their_x), 1e-4)
    ours, theirs = pair("QuantizedEmbedding", 32, 64, mode=mode)
    same_state(ours, theirs)
    assert_same(ours(mx.array([[1, 31]])), theirs(mlx_core.array([[1, 31]])))
    assert_same(ours.as_linear(x), theirs.as_linear(their_x), 1e-4)
    ours, theirs = pair("Linear", 64, 32)
    same_state(nn.QuantizedLinear.from_linear(ours, mode=mode), mlx_nn.QuantizedLinear.from_linear(theirs, mode=mode))
    ours, theirs = ours.to_quantized(mode=mode), theirs.to_quantized(mode=mode)
    assert_same_tree(ours.parameters(), theirs.parameters(), 1e-4)
    ours, theirs = pair("Embedding", 32, 64)
    ours, theirs = ours.to_quantized(mode=mode), theirs.to_quantized(mode=mode)
    same_state(ours, theirs)
    assert_same_tree(ours.parameters(), theirs.parameters(), 1e-4)
    ours.unfreeze()
    theirs.unfreeze()
    same_state(ours, theirs)


@pytest.mark.parametrize("mode", ["nvfp4", "mxfp8"])
def test_quantized_inputs(mode):
    ours, theirs = pair("Linear", 64, 32, bias=False)
    ours = ours.to_quantized(mode=mode, quantize_input=True)
    theirs = theirs.to_quantized(mode=mode, quantize_input=True)
    same_state(ours, theirs)
    x, their_x = uniform(1, 64)
    training = ours(x)
    ours.eval()
    theirs.eval()
    same_state(ours, theirs)
    np.testing.assert_array_equal(np.array(training), np.array(ours(x)))
    assert_same(ours(x), theirs(their_x), 1e-4)
    ours.train()
    theirs.train()
    same_state(ours, theirs)
    frozen, their_frozen = pair("Linear", 64, 32, bias=False)
    same_state(nn.QQLinear.from_linear(frozen.eval()), mlx_nn.QQLinear.from_linear(their_frozen.eval()))


def test_training_with_quantized_inputs():
    layer = nn.QQLinear(64, 32)
    x = mx.random.normal((8, 64))
    value, gradients = nn.value_and_grad(layer, lambda: mx.mean(mx.square(layer(x))))()
    assert gradients["weight"].shape == (32, 64)
    layer.update(tree_map(lambda w, g: w - 0.1 * g, layer.parameters(), gradients))
    assert mx.mean(mx.square(layer(x))).item() < value.item()


def model(m):
    return m.Sequential(
        m.Embedding(8, 64), m.Linear(64, 64), m.ReLU(), m.Linear(64, 10, bias=False)
    )


QUANTIZED = [
    lambda m: {},
    lambda m: {"group_size": 32, "bits": 8},
    lambda m: {"mode": "mxfp4"},
    lambda m: {"class_predicate": lambda path, layer: isinstance(layer, m.Linear)},
    lambda m: {"class_predicate": lambda path, layer: path == "layers.1"},
    lambda m: {"class_predicate": lambda path, layer: None},
    lambda m: {"bits": 8, "class_predicate": lambda path, layer: {"group_size": 32} if path == "layers.1" else {}},
    lambda m: {"mode": "nvfp4", "quantize_input": True, "class_predicate": lambda path, layer: path == "layers.3"},
    lambda m: {"class_predicate": lambda path, layer: {"mode": "mxfp8", "quantize_input": True} if path == "layers.3" else False},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(QUANTIZED)))
def test_quantize(number):
    ours, theirs = model(nn), model(mlx_nn)
    ours.update(tree_map(to_cupola, theirs.parameters()))
    assert nn.quantize(ours, **QUANTIZED[number](nn)) is None
    mlx_nn.quantize(theirs, **QUANTIZED[number](mlx_nn))
    same_state(ours, theirs)
    x = np.array([1, 5, 2])
    got = [ours(mx.array(x)), theirs(mlx_core.array(x))] if number < 7 else []
    if got:
        assert_same(*got, 1e-3)
    # Weights that were quantised elsewhere are loaded.
    other = model(nn)
    nn.quantize(other, **QUANTIZED[number](nn))
    other.load_weights([(k, to_cupola(v)) for k, v in tree_flatten(theirs.parameters())])
    assert_same_tree(other.parameters(), theirs.parameters(), 0)


LAYER_ERRORS = [
    lambda m, core: m.QuantizedLinear(64, 32, mode="other"),
    lambda m, core: m.QuantizedEmbedding(4, 63),
    lambda m, core: m.QuantizedLinear(64, 32)(core.ones((1, 32))),
    lambda m, core: m.QQLinear.from_linear(m.Linear(64, 32)),
    lambda m, core: m.Linear(64, 32).to_quantized(quantize_input=True),
    lambda m, core: m.Linear(64, 32).to_quantized(mode="nvfp4", quantize_input=True),
    lambda m, core: m.Embedding(4, 64).to_quantized(quantize_input=True),
    lambda m, core: m.quantize(model(m), class_predicate=lambda path, layer: True),
    lambda m, core: m.quantize(model(m), class_predicate=lambda path, layer: "yes"),
    lambda m, core: m.quantize(model(m), class_predicate=lambda path, layer: 1),
    lambda m, core: m.quantize(model(m), mode="nvfp4", quantize_input=True),
    lambda m, core: m.quantize(m.Sequential(m.Linear(10, 64))),
]


@pytest.mark.parametrize("number", range(len(LAYER_ERRORS)))
def test_layer_errors(number):
    call = LAYER_ERRORS[number]
    assert str(
        same_error(
            lambda: mx.eval(call(nn, mx)),
            lambda: mlx_core.eval(call(mlx_nn, mlx_core)),
        )
    )


def test_layers_in_transforms():
    """Batched, compiled and copied layers give what the layers give."""
    x = mx.random.normal((3, 5, 64))
    for layer in (nn.QQLinear(64, 8), nn.QuantizedLinear(64, 8, mode="mxfp4"), nn.QuantizedLinear(64, 8)):
        expected = np.array(layer(x))
        for other in (mx.vmap(layer), mx.compile(layer), copy.deepcopy(layer)):
            np.testing.assert_allclose(np.array(other(x)), expected, rtol=1e-5, atol=1e-6)
        tangent = mx.jvp(lambda x: layer(x).sum(), [x], [mx.ones_like(x)])[1][0]
        gradient = mx.grad(lambda x: layer(x).sum())(x)
        np.testing.assert_allclose(tangent.item(), gradient.sum().item(), rtol=1e-3)


@pytest.mark.parametrize("mode", MODES)
def test_other_sizes_in_one_compiled_function(mode):
    compiled = mx.compile(lambda x: mx.quantize(x, mode=mode)[0], shapeless=True)
    for size in (64, 128, 192):
        x = mx.random.normal((3, size))
        assert mx.array_equal(compiled(x), mx.quantize(x, mode=mode)[0]).item()


# Groups


def test_collectives_of_one_process():
    group, their_group = mx.distributed.init(), mlx_core.distributed.init()
    assert (group.rank(), group.size()) == (their_group.rank(), their_group.size()) == (0, 1)
    x, their_x = uniform(2, 3)
    for name in ("all_sum", "all_max", "all_min", "all_gather", "sum_scatter"):
        ours, theirs = getattr(mx.distributed, name), getattr(mlx_core.distributed, name)
        assert_same(ours(x), theirs(their_x), 0)
        assert_same(ours(x, group=group, stream=mx.cpu), theirs(their_x, group=their_group), 0)
        assert_same(ours(3.0), theirs(3.0), 0)
        same_error(lambda: ours(x, group=3), lambda: theirs(their_x, group=3))
        ones = mx.grad(lambda x: ours(x).sum())(x)
        np.testing.assert_array_equal(np.array(ones), np.ones((2, 3)))
    errors = [
        lambda m: m.distributed.send(m.ones(2), 0),
        lambda m: m.distributed.recv((2,), m.float32, 0),
        lambda m: m.distributed.recv_like(m.ones(2), 1),
        lambda m: m.distributed.init(strict=True),
        lambda m: m.distributed.init(backend="other"),
        lambda m: m.distributed.init().split(0),
        lambda m: m.distributed.Group(),
    ]
    for call in errors:
        assert str(same_error(lambda: call(mx), lambda: call(mlx_core)))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ["AllToShardedLinear", "ShardedToAllLinear"])
def test_sharded_layers(name, bias):
    x, their_x = uniform(3, 64)
    ours, theirs = pair(name, 64, 32, bias)
    same_state(ours, theirs)
    assert_same(ours(x), theirs(their_x))
    ours, theirs = pair("Quantized" + name, 64, 32, bias)
    same_state(ours, theirs)
    assert_same(ours(x), theirs(their_x), 1e-4)
    ours.unfreeze()
    theirs.unfreeze()
    same_state(ours, theirs)


class Half:
    """The second process of two, for what needs no communication."""

    def rank(self):
        return 1

    def size(self):
        return 2


@pytest.mark.parametrize("group", [None, Half()])
@pytest.mark.parametrize("segments", [1, 2, [0.5], [16, 32]])
@pytest.mark.parametrize("sharding", ["all-to-sharded", "sharded-to-all"])
def test_sharding(sharding, segments, group):
    from mlx.nn.layers.distributed import shard_inplace, shard_linear

    how = {"segments": segments, "group": group}
    ours, theirs = pair("Linear", 512, 64)
    for mode in (None, "affine", "mxfp4"):
        if mode:
            # The same words: MLX's quantised weight on both sides.
            theirs_q = mlx_nn.QuantizedLinear.from_linear(theirs, mode=mode)
            ours_q = nn.QuantizedLinear.from_linear(ours, mode=mode)
            ours_q.update(tree_map(to_cupola, theirs_q.parameters()))
        else:
            ours_q, theirs_q = ours, theirs
        one = nn.layers.distributed.shard_linear(ours_q, sharding, **how)
        other = shard_linear(theirs_q, sharding, **how)
        same_state(one, other)
        assert_same_tree(one.parameters(), other.parameters(), 0)
    nn.layers.distributed.shard_inplace(ours, sharding, **how)
    shard_inplace(theirs, sharding, **how)
    assert_same_tree(ours.parameters(), theirs.parameters(), 0)


@pytest.mark.parametrize("answer", [0, -1, (0, 2), None])
def test_sharding_by_a_function(answer):
    from mlx.nn.layers.distributed import shard_inplace

    ours, theirs = pair("Linear", 8, 12)
    seen = []

    def choose(path, weight):
        seen.append((path, tuple(weight.shape)))
        return answer

    nn.layers.distributed.shard_inplace(ours, choose, group=Half())
    shard_inplace(theirs, choose, group=Half())
    assert seen[:2] == seen[2:]
    assert_same_tree(ours.parameters(), theirs.parameters(), 0)


def test_fully_sharded():
    layer = nn.Linear(4, 2)
    assert nn.fully_shard(layer) is layer
    ours, theirs = pair("Linear", 4, 2)
    whole, their_whole = nn.FullyShardedModule(ours), mlx_nn.FullyShardedModule(theirs)
    same_state(whole, their_whole)
    x, their_x = uniform(3, 4)
    assert_same(whole(x), their_whole(their_x))
    assert_same(
        nn.FullyShardedModule(ours, compute_dtype=mx.bfloat16)(x.astype(mx.bfloat16)),
        mlx_nn.FullyShardedModule(theirs, compute_dtype=mlx_core.bfloat16)(
            their_x.astype(mlx_core.bfloat16)
        ),
    )
    assert ours.weight.dtype == mx.float32
    half, their_half = nn.fully_shard(ours, group=Half()), mlx_nn.fully_shard(theirs, group=Half())
    same_state(half, their_half)
    assert_same_tree(half.parameters(), their_half.parameters(), 0)


SHARDING_ERRORS = [
    lambda m: m.AllToShardedLinear(4, 3, group=Half()),
    lambda m: m.ShardedToAllLinear(3, 4, group=Half()),
    lambda m: m.layers.distributed.shard_linear(m.Linear(4, 4), "other"),
    lambda m: m.layers.distributed.shard_inplace(m.Linear(4, 4), "other"),
    lambda m: m.layers.distributed.shard_linear(m.ReLU(), "all-to-sharded"),
    lambda m: m.layers.distributed.shard_linear(m.Linear(4, 4), "all-to-sharded", segments=3),
    lambda m: m.layers.distributed.shard_inplace(m.Linear(4, 4), lambda path, weight: "x"),
    lambda m: m.layers.distributed.shard_inplace(m.Linear(4, 4), lambda path, weight: 5),
    lambda m: m.fully_shard(m.Linear(4, 3), group=Half()),
]


@pytest.mark.parametrize("number", range(len(SHARDING_ERRORS)))
def test_sharding_errors(number):
    call = SHARDING_ERRORS[number]
    assert str(same_error(lambda: call(nn), lambda: call(mlx_nn)))


def test_one_process_is_a_group():
    gradients = {"a": mx.ones(3)}
    assert nn.average_gradients(gradients) is gradients
    clipped, norm = nn.utils.clip_grad_norm_sharded(gradients, 1.0)
    np.testing.assert_allclose(np.array(clipped["a"]), 3**-0.5, rtol=1e-5)
    np.testing.assert_allclose(norm.item(), 3**0.5, rtol=1e-5)
