"""Every layer and activation against MLX's: names, representation, outputs, gradients, errors."""

import numpy as np
import pytest
from oracle import (
    assert_same,
    assert_same_tree,
    dtype_name,
    mlx_core,
    mlx_nn,
    mx,
    nn,
    pair,
    same_error,
    to_cupola,
    to_numpy,
    uniform,
)

ACTIVATIONS = """celu elu gelu gelu_approx gelu_fast_approx hard_shrink hard_tanh hardswish leaky_relu
    log_sigmoid log_softmax mish relu relu2 relu6 selu sigmoid silu softmax softmin softplus softshrink
    softsign step tanh""".split()

ACTIVATION_MODULES = [
    ("CELU",), ("CELU", 1.7), ("ELU",), ("ELU", 0.3), ("GELU",), ("GELU", "none"), ("GELU", "precise"),
    ("GELU", "tanh"), ("GELU", "fast"), ("GLU",), ("GLU", 0), ("HardShrink",), ("HardShrink", 1.0),
    ("HardTanh",), ("Hardswish",), ("LeakyReLU",), ("LeakyReLU", 0.2), ("LogSigmoid",), ("LogSoftmax",),
    ("Mish",), ("PReLU",), ("PReLU", 6, 0.1), ("ReLU",), ("ReLU2",), ("ReLU6",), ("SELU",), ("SiLU",),
    ("Sigmoid",), ("Softmax",), ("Softmin",), ("Softplus",), ("Softshrink",), ("Softshrink", 0.1),
    ("Softsign",), ("Step",), ("Step", 0.5), ("Tanh",), ("Identity", 3), ("Dropout", 0.0),
]  # fmt: skip

# The name, its arguments, and the shapes of inputs.
LAYERS = [
    ("Linear", (4, 3), {}, [(2, 4)]),
    ("Linear", (4, 3), {}, [(4,)]),
    ("Linear", (4, 3), {"bias": False}, [(2, 5, 4)]),
    ("Bilinear", (4, 3, 5), {}, [(2, 4), (2, 3)]),
    ("Bilinear", (4, 3, 5), {"bias": False}, [(2, 6, 4), (2, 6, 3)]),
    ("Conv1d", (4, 6, 3), {}, [(2, 9, 4)]),
    ("Conv1d", (4, 6, 3, 2, 1, 2, 2, False), {}, [(2, 9, 4)]),
    ("Conv2d", (4, 6, 3), {}, [(2, 7, 8, 4)]),
    ("Conv2d", (4, 6, (3, 2), (2, 1), (1, 2), 2, 2), {}, [(2, 9, 8, 4)]),
    ("Conv2d", (4, 4, 3), {"groups": 4, "padding": 1, "bias": False}, [(1, 5, 5, 4)]),
    ("Conv3d", (2, 3, 2), {"padding": 1}, [(1, 4, 5, 3, 2)]),
    ("Conv3d", (2, 3, (1, 2, 3), (1, 2, 1)), {"bias": False}, [(1, 4, 5, 6, 2)]),
    ("ConvTranspose1d", (4, 6, 3), {}, [(2, 5, 4)]),
    ("ConvTranspose1d", (4, 6, 3, 2, 1, 1, 1, False), {}, [(2, 5, 4)]),
    ("ConvTranspose2d", (4, 6, 3, (2, 1), 1), {"output_padding": (1, 0)}, [(2, 4, 5, 4)]),
    ("ConvTranspose3d", (2, 3, 2, 2), {}, [(1, 3, 2, 3, 2)]),
    ("MaxPool1d", (2,), {}, [(2, 6, 3)]),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, [(2, 7, 3)]),
    ("MaxPool2d", (2,), {}, [(2, 5, 6, 3)]),
    ("MaxPool2d", ((3, 2),), {"stride": (1, 2), "padding": (1, 0)}, [(2, 5, 6, 3)]),
    ("MaxPool3d", (2,), {"stride": 1}, [(1, 3, 4, 5, 2)]),
    ("AvgPool1d", (2,), {}, [(2, 6, 3)]),
    ("AvgPool1d", (3,), {"stride": 2, "padding": 1}, [(2, 7, 3)]),
    ("AvgPool2d", (2,), {"padding": 1}, [(2, 5, 6, 3)]),
    ("AvgPool2d", ((3, 2),), {"stride": (1, 2)}, [(2, 5, 6, 3)]),
    ("AvgPool3d", (2,), {}, [(1, 4, 4, 4, 2)]),
    ("LayerNorm", (6,), {}, [(2, 3, 6)]),
    ("LayerNorm", (6,), {"affine": False, "eps": 0.1}, [(2, 6)]),
    ("LayerNorm", (6,), {"bias": False}, [(2, 6)]),
    ("RMSNorm", (6,), {"eps": 0.01}, [(2, 3, 6)]),
    ("GroupNorm", (2, 6), {}, [(2, 3, 4, 6)]),
    ("GroupNorm", (3, 6), {"affine": False}, [(2, 5, 6)]),
    ("GroupNorm", (3, 6), {"pytorch_compatible": True}, [(2, 3, 4, 6)]),
    ("GroupNorm", (2, 6), {"pytorch_compatible": True, "affine": False}, [(2, 6)]),
    ("InstanceNorm", (4,), {}, [(2, 3, 4)]),
    ("InstanceNorm", (4,), {"affine": True, "eps": 0.1}, [(2, 3, 5, 4)]),
    ("BatchNorm", (4,), {}, [(5, 4)]),
    ("BatchNorm", (4,), {"affine": False, "momentum": 0.3, "eps": 0.01}, [(5, 3, 4)]),
    ("BatchNorm", (4,), {"track_running_stats": False}, [(2, 3, 3, 4)]),
    ("RNN", (3, 4), {}, [(2, 5, 3)]),
    ("RNN", (3, 4), {"bias": False}, [(5, 3), (4,)]),
    ("GRU", (3, 4), {}, [(2, 5, 3)]),
    ("GRU", (3, 4), {}, [(2, 5, 3), (2, 4)]),
    ("GRU", (3, 4), {"bias": False}, [(5, 3), (4,)]),
    ("LSTM", (3, 4), {}, [(2, 5, 3)]),
    ("LSTM", (3, 4), {}, [(5, 3), (4,), (4,)]),
    ("LSTM", (3, 4), {"bias": False}, [(2, 5, 3), (2, 4)]),
    ("MultiHeadAttention", (8, 2), {}, [(2, 5, 8)] * 3),
    ("MultiHeadAttention", (8, 4), {"bias": True}, [(2, 5, 8), (2, 3, 8), (2, 3, 8), (5, 3)]),
    (
        "MultiHeadAttention",
        (8, 2, 3, 4, 5, 6, 7),
        {},
        [(2, 5, 3), (2, 4, 4), (2, 4, 5)],
    ),
    ("RoPE", (4,), {}, [(2, 3, 4)]),
    ("RoPE", (4,), {"traditional": True, "base": 100.0, "scale": 0.5}, [(2, 2, 3, 6)]),
    ("SinusoidalPositionalEncoding", (8,), {}, [(5,)]),
    (
        "SinusoidalPositionalEncoding",
        (6, 0.01, 2.0, 3.0, True, True),
        {},
        [(2, 5)],
    ),
    ("ALiBi", (), {}, [(2, 4, 3, 5)]),
    ("ALiBi", (), {}, [(1, 6, 2, 2)]),
]


def name_of(case):
    name, args, kwargs, shapes = case
    listed = [*map(str, args), *(f"{k}={v}" for k, v in kwargs.items())]
    return f"{name}({','.join(listed)}){shapes}"


def inputs(shapes, dtype="float32"):
    pairs = [uniform(*shape, seed=i, dtype=dtype) for i, shape in enumerate(shapes)]
    return [a for a, _ in pairs], [b for _, b in pairs]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_at_edges(name):
    values = [-np.inf, -100.0, -3.0, -1.0, -0.5, -0.0, 0.0, 1e-3, 0.5, 1.0, 3.0, 6.5, 100.0, np.inf, np.nan]
    if "soft" in name:
        values = values[1:-2]
    elif name == "gelu_approx":
        values = values[1:]  # Of -∞ MLX gives NaN, from -∞ · 0.
    values = np.array(values, np.float32)
    ours = getattr(nn, name)(mx.array(values))
    assert_same(ours, getattr(mlx_nn, name)(mlx_core.array(values)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "uint8"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_dtypes(name, dtype):
    if dtype == "uint8" and name in ("log_softmax", "log_sigmoid", "softmin"):
        pytest.skip("MLX wraps around")
    low = 0 if dtype == "uint8" else -5
    ours, theirs = uniform(3, 4, dtype=dtype, low=low, high=6)
    assert_same(getattr(nn, name)(ours), getattr(mlx_nn, name)(theirs))


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n != "step"])
def test_gradients_of_activations(name):
    ours, theirs = uniform(3, 4, low=-4, high=7)
    weight_ours, weight_theirs = uniform(3, 4, seed=1)
    ours = mx.grad(lambda x: mx.sum(getattr(nn, name)(x) * weight_ours))(ours)
    theirs = mlx_core.grad(lambda x: mlx_core.sum(getattr(mlx_nn, name)(x) * weight_theirs))(theirs)
    assert_same(ours, theirs)


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n not in ("celu", "softmin", "softmax", "log_softmax", "step")])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_slopes_at_zero_and_nan(name, dtype):
    values = np.array([0.0, -0.0, np.nan], np.float32)
    for module, layers in ((mx, nn), (mlx_core, mlx_nn)):
        x = module.array(values).astype(getattr(module, dtype))
        slope = module.grad(lambda x: getattr(layers, name)(x).sum())
        found = slope(x), module.compile(slope)(x), module.vmap(module.grad(getattr(layers, name)))(x)
        if module is mx:
            ours = found
    for one, other in zip(ours, found):
        assert_same(one, other)


def test_celu_is_smooth_at_zero():
    assert mx.grad(lambda x: nn.celu(x, 2.0))(mx.array(0.0)).item() == 1.0
    assert np.isnan(mx.grad(nn.celu)(mx.array(np.nan)).item())


def test_a_bias_of_zeros_before_selu_learns():
    layer = nn.Linear(2, 3)
    layer.update({"weight": mx.zeros((3, 2)), "bias": mx.zeros(3)})
    gradients = nn.value_and_grad(layer, lambda x: nn.selu(layer(x)).sum())(mx.ones((1, 2)))[1]
    np.testing.assert_allclose(to_numpy(gradients["bias"]), 1.0507 * 1.67326, rtol=1e-6)


def test_selu_has_the_constants_of_mlx():
    values = np.array([-100.0, -3.0, -0.5, 0.5, 100.0], np.float32)
    np.testing.assert_array_max_ulp(
        to_numpy(nn.selu(mx.array(values))), to_numpy(mlx_nn.selu(mlx_core.array(values))), 4
    )


def test_arguments_of_activations():
    ours, theirs = uniform(4, 6, low=-3, high=3)
    for name, args in [
        ("celu", (2.0,)), ("elu", (0.5,)), ("hard_shrink", (1.0,)), ("hard_tanh", (-2.0, 0.5)),
        ("leaky_relu", (0.3,)), ("softmax", (0,)), ("softmin", (0,)), ("log_softmax", (0,)),
        ("softshrink", (0.2,)), ("step", (0.5,)), ("glu", ()), ("glu", (0,)),
    ]:  # fmt: skip
        assert_same(getattr(nn, name)(ours, *args), getattr(mlx_nn, name)(theirs, *args))
    assert_same(nn.prelu(ours, mx.array(0.3)), mlx_nn.prelu(theirs, mlx_core.array(0.3)))
    same_error(lambda: nn.glu(ours[1:], 0), lambda: mlx_nn.glu(theirs[1:], 0))


@pytest.mark.parametrize("case", ACTIVATION_MODULES, ids=str)
def test_activation_modules(case):
    ours, theirs = pair(*case)
    assert repr(ours) == repr(theirs)
    assert_same_tree(ours.parameters(), theirs.parameters())
    x, y = uniform(4, 6)
    assert_same(ours(x), theirs(y))
    assert_same(ours.forward(x), theirs(y))


@pytest.mark.parametrize("case", LAYERS, ids=name_of)
def test_layers(case):
    name, args, kwargs, shapes = case
    ours, theirs = pair(name, *args, **kwargs)
    if "nonlinearity" not in repr(theirs):
        assert repr(ours) == repr(theirs)
    assert_same_tree(ours.parameters(), theirs.parameters())
    assert_same_tree(ours.trainable_parameters(), theirs.trainable_parameters())
    x, y = inputs(shapes)
    for mode in (True, False):
        assert_same_tree(ours.train(mode)(*x), theirs.train(mode)(*y))
    assert_same_tree(ours.parameters(), theirs.parameters())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
@pytest.mark.parametrize("case", LAYERS, ids=name_of)
def test_layers_of_dtypes(case, dtype):
    name, args, kwargs, shapes = case
    if (name, dtype) == ("ALiBi", "int32"):
        pytest.skip("MLX truncates slopes that are a rounding error off")
    ours, theirs = pair(name, *args, **kwargs)
    x, y = inputs(shapes, dtype)
    try:
        expected = theirs(*y)
        mlx_core.eval(expected)
    except Exception as error:
        with pytest.raises(type(error)):
            mx.eval(ours(*x))
    else:
        assert_same_tree(ours(*x), expected, 0.1 if dtype == "bfloat16" else 0.02)


def scalar(package, outputs):
    """A number that depends on all outputs, with different weights."""
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    total = 0
    for output in outputs:
        weights = package.sin(package.arange(output.size).astype(package.float32))
        total = total + package.sum(output * weights.reshape(output.shape))
    return total


@pytest.mark.parametrize("case", LAYERS, ids=name_of)
def test_gradients_of_layers(case):
    name, args, kwargs, shapes = case
    ours, theirs = pair(name, *args, **kwargs)
    x, y = inputs(shapes)
    if theirs.trainable_parameters():
        value, gradients = nn.value_and_grad(ours, lambda *a: scalar(mx, ours(*a)))(*x)
        expected = mlx_nn.value_and_grad(theirs, lambda *a: scalar(mlx_core, theirs(*a)))(*y)
        assert_same(value, expected[0], 2e-4)
        assert_same_tree(gradients, expected[1], 5e-4)
    if name in ("ALiBi", "RoPE", "MultiHeadAttention"):
        return
    gradient = mx.grad(lambda a: scalar(mx, ours(a, *x[1:])))(x[0])
    assert_same(gradient, mlx_core.grad(lambda a: scalar(mlx_core, theirs(a, *y[1:])))(y[0]), 5e-4)


def test_rope_with_offset():
    ours, theirs = pair("RoPE", 4)
    x, y = uniform(2, 3, 5, 6)
    assert_same(ours(x, offset=7), theirs(y, offset=7))


def test_alibi_with_offset_and_mask():
    x, y = uniform(1, 3, 4, 6)
    mask, their_mask = uniform(4, 6, seed=1)
    ours, theirs = pair("ALiBi")
    assert_same(ours(x, offset=2, mask=None), theirs(y, offset=2, mask=None))
    assert_same(ours(x, mask=mask), theirs(y, mask=their_mask))
    for heads in (1, 2, 3, 5, 8, 12):
        assert_same(nn.ALiBi.create_alibi_slope(heads), mlx_nn.ALiBi.create_alibi_slope(heads))


def test_causal_mask():
    for dtype in ("float32", "float16"):
        assert_same(
            nn.MultiHeadAttention.create_additive_causal_mask(4, getattr(mx, dtype)),
            mlx_nn.MultiHeadAttention.create_additive_causal_mask(4, getattr(mlx_core, dtype)),
        )


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("checkpoint", [True, False])
def test_transformer(norm_first, checkpoint):
    ours, theirs = pair(
        "Transformer", 8, 2, 2, 2, 12, norm_first=norm_first, checkpoint=checkpoint
    )
    assert repr(ours) == repr(theirs)
    (a, b), (src, tgt) = inputs([(2, 5, 8), (2, 4, 8)])
    mask = mlx_nn.MultiHeadAttention.create_additive_causal_mask(4)
    assert_same(ours(a, b, None, to_cupola(mask), None), theirs(src, tgt, None, mask, None))
    value, gradients = nn.value_and_grad(ours, lambda: scalar(mx, ours(a, b, None, None, None)))()
    expected = mlx_nn.value_and_grad(
        theirs, lambda: scalar(mlx_core, theirs(src, tgt, None, None, None))
    )()
    assert_same(value, expected[0], 2e-4)
    assert_same_tree(gradients, expected[1], 1e-3)


def test_custom_encoder_and_decoder():
    model = nn.Transformer(4, 2, custom_encoder=nn.Identity(), custom_decoder=nn.Identity())
    assert isinstance(model.encoder, nn.Identity) and isinstance(model.decoder, nn.Identity)


def test_embedding():
    ours, theirs = pair("Embedding", 7, 3)
    assert repr(ours) == repr(theirs)
    index = np.array([[1, 6], [0, 3]])
    assert_same(ours(mx.array(index)), theirs(mlx_core.array(index)))
    assert_same(ours(2), theirs(2))
    x, y = uniform(4, 3)
    assert_same(ours.as_linear(x), theirs.as_linear(y))
    gradient = nn.value_and_grad(ours, lambda i: mx.sum(ours(i) ** 2))(mx.array(index))[1]
    expected = mlx_nn.value_and_grad(theirs, lambda i: mlx_core.sum(theirs(i) ** 2))
    assert_same_tree(gradient, expected(mlx_core.array(index))[1])


@pytest.mark.parametrize("count", [1, 2, 5, 8])
@pytest.mark.parametrize("scale", [0.3, 0.5, 0.9, 1.0, 1.3, 1.5, 2, 2.66, 3])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
def test_upsample(count, scale, mode, align_corners, antialias):
    if antialias and (align_corners or mode == "nearest"):
        return
    if int(scale * count) <= (1 if align_corners else 0):
        return
    ours, theirs = pair("Upsample", scale, mode, align_corners, antialias)
    assert repr(ours) == repr(theirs)
    x, y = uniform(2, count, 3)
    ours, theirs = to_numpy(ours(x)), to_numpy(theirs(y))
    assert ours.shape == theirs.shape
    # Where MLX's positions are rounded to a neighbour of an integer its cubic weights can vanish.
    off = ~np.isclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert not off.any() or (mode == "cubic" and (theirs[off] == 0).all())


def test_upsample_of_images():
    x, y = uniform(2, 4, 5, 3)
    for mode in ("nearest", "linear", "cubic"):
        for scale in (2, (2.0, 1.0), (1.5, 3.0)):
            ours, theirs = pair("Upsample", scale, mode)
            assert_same(ours(x), theirs(y), 1e-4)
    for dtype in ("float16", "int32"):
        x, y = uniform(1, 3, 2, dtype=dtype, low=0, high=9)
        for mode in ("nearest", "linear"):
            ours, theirs = pair("Upsample", 2, mode)
            assert_same(ours(x), theirs(y), 1e-3)


def test_running_statistics():
    ours, theirs = pair("BatchNorm", 4, momentum=0.2)
    for seed in range(3):
        x, y = uniform(3, 5, 4, seed=seed)
        ours(x), theirs(y)
    assert_same_tree(ours.parameters(), theirs.parameters())
    x, y = uniform(2, 4, seed=9)
    assert_same(ours.eval()(x), theirs.eval()(y))
    assert list(ours.trainable_parameters()) == ["weight", "bias"]
    assert list(ours.unfreeze().trainable_parameters()) == ["weight", "bias"]


@pytest.mark.parametrize(
    "name, shape, spatial",
    [("Dropout", (40, 50), 0), ("Dropout2d", (9, 3, 4, 50), 2), ("Dropout3d", (3, 2, 3, 4, 90), 3)],
)
def test_dropout(name, shape, spatial):
    layer = getattr(nn, name)(0.25)
    assert repr(layer) == repr(getattr(mlx_nn, name)(0.25))
    x = mx.ones(shape)
    y = to_numpy(layer(x))
    assert set(np.unique(np.round(y, 5))) == {0.0, np.float32(np.round(1 / 0.75, 5))}
    # A channel is dropped as a whole.
    channels = y.reshape(shape[0], -1, shape[-1]) if spatial else y[:, None]
    assert (channels == channels[:, :1]).all()
    assert abs((channels[:, 0] == 0).mean() - 0.25) < 0.08
    assert (to_numpy(layer.eval()(x)) == 1).all()
    half = layer.train()(x.astype(mx.float16))
    assert dtype_name(half) == "float16"


def test_dropout_repeats_with_the_seed():
    layer, x = nn.Dropout(0.5), mx.ones((64,))
    draws = []
    for seed in (1, 1, 2):
        mx.random.seed(seed)
        draws.append(to_numpy(layer(x)))
    assert (draws[0] == draws[1]).all() and (draws[0] != draws[2]).any()


@pytest.mark.parametrize(
    "name, args, low, high",
    [
        ("Linear", (100, 300), -0.1, 0.1),
        ("Bilinear", (25, 30, 20), -0.2, 0.2),
        ("Conv1d", (4, 100, 25), -0.1, 0.1),
        ("Conv2d", (4, 100, 5), -0.1, 0.1),
        ("Conv3d", (4, 50, 5), -(500**-0.5), 500**-0.5),
        ("ConvTranspose2d", (4, 100, 5), -0.1, 0.1),
    ],
)
def test_initial_weights(name, args, low, high):
    weight = to_numpy(getattr(nn, name)(*args).weight)
    assert low <= weight.min() < 0.98 * low and 0.98 * high < weight.max() <= high
    assert abs(weight.mean()) < 0.03 * high
    assert abs(weight.std() - high / 3**0.5) < 0.03 * high


def test_initial_weights_of_other_layers():
    assert abs(to_numpy(nn.Embedding(2000, 4).weight).std() - 0.5) < 0.02
    assert (to_numpy(nn.Conv2d(2, 3, 3).bias) == 0).all()
    for layer in (nn.RNN(3, 100), nn.GRU(3, 100), nn.LSTM(3, 100)):
        for weight in layer.values():
            assert 0.09 < np.abs(to_numpy(weight)).max() <= 0.1


ERRORS = [
    lambda nn, a: nn.GELU("x"),
    lambda nn, a: nn.Dropout(1.0),
    lambda nn, a: nn.Dropout(-0.1),
    lambda nn, a: nn.Dropout2d(1),
    lambda nn, a: nn.Conv2d(3, 4, 3, groups=2),
    lambda nn, a: nn.Conv1d(3, 4, 3, groups=2),
    lambda nn, a: nn.Conv1d(4, 4, 3, groups=0),
    lambda nn, a: nn.Conv2d(4, 4, 3, groups=0),
    lambda nn, a: nn.MultiHeadAttention(5, 2),
    lambda nn, a: nn.Upsample(2, "foo"),
    lambda nn, a: nn.Upsample(2, "nearest", antialias=True),
    lambda nn, a: nn.Upsample(2, "linear", True, True),
    lambda nn, a: nn.MaxPool2d((1, 2, 3)),
    lambda nn, a: nn.MaxPool2d("a"),
    lambda nn, a: nn.MaxPool1d(2.5),
    lambda nn, a: nn.MaxPool2d(2, stride=(1, 2, 3)),
    lambda nn, a: nn.AvgPool1d(2, padding=(1, 2, 3)),
    lambda nn, a: nn.MaxPool3d(2, padding=None),
    lambda nn, a: nn.RNN(2, 3, nonlinearity=3),
    lambda nn, a: nn.MaxPool1d(2)(a(3, 4)),
    lambda nn, a: nn.MaxPool2d(2)(a(3, 4)),
    lambda nn, a: nn.MaxPool2d(2)(a(1, 4, 2)),
    lambda nn, a: nn.AvgPool1d(2)(a(1, 4, 4, 2)),
    lambda nn, a: nn.Upsample(2)(a(3)),
    lambda nn, a: nn.Upsample(-1)(a(1, 3, 3, 1)),
    lambda nn, a: nn.Upsample((2, 3))(a(1, 3, 1)),
    lambda nn, a: nn.BatchNorm(3)(a(3)),
    lambda nn, a: nn.BatchNorm(3)(a(1, 1, 1, 1, 3)),
    lambda nn, a: nn.BatchNorm(3)(a(1, 3)),
    lambda nn, a: nn.Dropout2d()(a(2, 2)),
    lambda nn, a: nn.Dropout3d()(a(2, 2, 2)),
    lambda nn, a: nn.Dropout3d()(a(2, 2, 2, 2, 2, 2)),
    lambda nn, a: nn.InstanceNorm(3)(a(2, 3)),
    lambda nn, a: nn.Linear(2, 3)(a(3)),
    lambda nn, a: nn.Linear(2, 3, bias=False)(a(4, 3)),
    lambda nn, a: nn.Conv2d(4, 6, 3)(a(9, 8, 4)),
    lambda nn, a: nn.Conv2d(4, 6, 3)(a(1, 9, 8, 3)),
    lambda nn, a: nn.LayerNorm(4)(a(2, 3)),
    lambda nn, a: nn.Embedding(5, 3)(a(2)),
    lambda nn, a: nn.LSTM(3, 4)(a(2, 0, 3)),
    lambda nn, a: nn.Module()(1),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    call = ERRORS[number]
    error = same_error(
        lambda: mx.eval(call(nn, lambda *s: mx.ones(s))),
        lambda: mlx_core.eval(call(mlx_nn, lambda *s: mlx_core.ones(s))),
    )
    assert str(error)


def test_surface():
    for ours, theirs in ((nn, mlx_nn), (nn.losses, mlx_nn.losses), (nn.init, mlx_nn.init)):
        public = {name for name in dir(theirs) if not name.startswith("_")}
        assert public - set(dir(ours)) == set()
