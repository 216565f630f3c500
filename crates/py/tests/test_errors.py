"""Wrong calls: each raises the type of exception that MLX raises, with a text that names what is wrong."""

import numpy as np
import pytest
from conftest import mlx

import cupola.core as cc

# NumPy's arrays of what has no dtype.
STRANGE = [
    np.array(["a"]), np.array([b"a"]), np.array([None]), np.array(["2020-01-01"], "M8[D]"), np.array([1], np.longdouble),
    np.array([(1, 2)], [("a", "i4"), ("b", "i4")]),
]  # fmt: skip

# What is wrong, and the function or argument that the text names.
CALLS = [
    ("reshape", lambda m: m.reshape(m.ones(6), (4, 2))),
    ("reshape", lambda m: m.reshape(m.ones(6), (-1, -1))),
    ("broadcast", lambda m: m.broadcast_to(m.ones((2, 3)), (2, 4))),
    ("broadcast", lambda m: m.ones((2, 3)) + m.ones((2, 4))),
    ("matmul", lambda m: m.ones((2, 3)) @ m.ones((2, 3))),
    ("matmul", lambda m: m.matmul(m.array(1.0), m.ones(2))),
    ("addmm", lambda m: m.addmm(m.ones(2), m.ones((2, 3)), m.ones((2, 3)))),
    ("addmm", lambda m: m.addmm(m.ones((2, 3)), m.ones((4,)), m.ones((4, 3)))),
    ("addmm", lambda m: m.addmm(m.ones((2, 2, 3)), m.ones((2, 4)), m.ones((4, 3)))),
    ("concatenate", lambda m: m.concatenate([m.ones((2, 3)), m.ones((3, 2))])),
    ("concatenate", lambda m: m.concatenate([m.ones(2)], axis=3)),
    ("concatenate", lambda m: m.concatenate([])),
    ("stack", lambda m: m.stack([m.ones(2), m.ones(3)])),
    ("split", lambda m: m.split(m.ones(5), 2)),
    ("split", lambda m: m.split(m.ones(5), 5, axis=2)),
    ("transpose", lambda m: m.transpose(m.ones((2, 3)), (0, 0))),
    ("transpose", lambda m: m.transpose(m.ones((2, 3)), (0,))),
    ("swapaxes", lambda m: m.swapaxes(m.ones((2, 3)), 0, 2)),
    ("moveaxis", lambda m: m.moveaxis(m.ones((2, 3)), 0, 2)),
    ("squeeze", lambda m: m.squeeze(m.ones((2, 1)), 0)),
    ("expand_dims", lambda m: m.expand_dims(m.ones(2), 5)),
    ("flatten", lambda m: m.flatten(m.ones((2, 3)), 1, 0)),
    ("unflatten", lambda m: m.unflatten(m.ones(6), 0, (4, 2))),
    ("take", lambda m: m.take(m.ones(3), m.array([0.5]))),
    ("take", lambda m: m.take(m.ones(3), m.array([0]), axis=1)),
    ("take", lambda m: m.take(m.ones((0,)), m.array([0]))),
    ("take", lambda m: m.take(m.ones((0, 3)), 0, axis=0)),
    ("broadcast_shapes", lambda m: m.broadcast_shapes((1,), 3)),
    ("broadcast_shapes", lambda m: m.broadcast_shapes((1,), True)),
    ("broadcast_shapes", lambda m: m.broadcast_shapes((1,), {2})),
    ("take_along_axis", lambda m: m.take_along_axis(m.ones((2, 3)), m.array([0]), axis=0)),
    ("sum", lambda m: m.sum(m.ones((2, 3)), axis=2)),
    ("sum", lambda m: m.sum(m.ones((2, 3)), axis=(0, 0))),
    ("max", lambda m: m.max(m.ones((2, 0)), axis=1)),
    ("argmax", lambda m: m.argmax(m.ones((2, 3)), axis=2)),
    ("argmax", lambda m: m.argmax(m.ones((0,)))),
    ("cumsum", lambda m: m.cumsum(m.ones(3), axis=1)),
    ("softmax", lambda m: m.softmax(m.ones(3), axis=1)),
    ("sort", lambda m: m.sort(m.ones(3), axis=1)),
    ("topk", lambda m: m.topk(m.ones(3), 5)),
    ("partition", lambda m: m.partition(m.ones(3), 5)),
    ("pad", lambda m: m.pad(m.ones(3), -1)),
    ("pad", lambda m: m.pad(m.ones(3), 1, mode="other")),
    ("pad", lambda m: m.pad(m.zeros((0,)), 1, mode="reflect")),
    ("pad", lambda m: m.pad(m.ones(3), [(1, 1), (1, 1)])),
    ("tile", lambda m: m.tile(m.ones(3), (-1,))),
    ("repeat", lambda m: m.repeat(m.ones(3), -1)),
    ("diag", lambda m: m.diag(m.ones((2, 2, 2)))),
    ("diagonal", lambda m: m.diagonal(m.ones(2))),
    ("trace", lambda m: m.trace(m.ones(2))),
    ("einsum", lambda m: m.einsum("ij,jk->ik", m.ones((2, 3)), m.ones((2, 3)))),
    ("einsum", lambda m: m.einsum("ij->ij", m.ones(2))),
    ("tensordot", lambda m: m.tensordot(m.ones((2, 3)), m.ones((2, 3)), axes=1)),
    ("inner", lambda m: m.inner(m.ones(2), m.ones(3))),
    ("conv", lambda m: m.conv1d(m.ones((1, 4, 2)), m.ones((1, 3, 3)))),
    ("conv", lambda m: m.conv2d(m.ones((1, 4, 2)), m.ones((1, 3, 3)))),
    ("conv", lambda m: m.conv1d(m.ones((1, 4, 2), dtype=m.int32), m.ones((1, 3, 2), dtype=m.int32))),
    ("conv", lambda m: m.conv1d(m.ones((1, 2, 1)), m.ones((1, 5, 1)))),
    ("linspace", lambda m: m.linspace(0, 1, -1)),
    ("arange", lambda m: m.arange(0, 1, float("nan"))),
    ("zeros", lambda m: m.zeros((-1,))),
    ("full", lambda m: m.full((2,), m.ones(3))),
    ("view", lambda m: m.ones(3, dtype=m.int8).view(m.int32)),
    ("bitwise_invert", lambda m: m.bitwise_invert(m.ones(2))),
    ("floor", lambda m: m.floor(m.array([1j]))),
    ("einsum", lambda m: m.einsum("i->j", m.ones(2))),
    ("slice", lambda m: m.slice(m.ones(3), m.array([0]), (0,), (5,))),
    ("grad", lambda m: m.grad(lambda x: x * 2)(m.ones(3))),
    ("grad", lambda m: m.grad(lambda x: x.sum(), argnums=1)(m.ones(3))),
    ("grad", lambda m: m.grad(lambda x: x.sum(), argnums=-2)),
    ("grad", lambda m: m.grad(lambda x: 3)(m.ones(3))),
    ("grad", lambda m: m.grad(lambda x: x.sum())("x")),
    ("vjp", lambda m: m.vjp(lambda x: x, [m.ones(3)], [m.ones(2)])),
    ("jvp", lambda m: m.jvp(lambda x: x, [m.ones(3)], [])),
    ("vmap", lambda m: m.vmap(lambda x, y: x + y)(m.ones((2, 3)), m.ones((3, 3)))),
    ("vmap", lambda m: m.vmap(lambda x: x, in_axes=2)(m.ones((2, 3)))),
    ("item", lambda m: m.ones(3).item()),
    ("load", lambda m: m.load("nothing.npy")),
    ("load", lambda m: m.load("nothing.xyz")),
    ("random", lambda m: m.random.uniform(shape=(2,), dtype=m.int32)),
    ("random", lambda m: m.random.split(m.ones(3))),
    ("categorical", lambda m: m.random.categorical(m.ones((2, 3)), axis=3)),
    ("categorical", lambda m: m.random.categorical(m.ones((2, 3)), num_samples=-1)),
    ("categorical", lambda m: m.random.categorical(m.ones((2, 3)), shape=())),
    ("categorical", lambda m: m.random.categorical(m.ones((2, 3)), shape=(1,))),
    ("categorical", lambda m: m.random.categorical(m.ones((2, 3)), shape=(2, 3))),
    ("bernoulli", lambda m: m.random.bernoulli(m.array([0, 1]))),
    ("bernoulli", lambda m: m.random.bernoulli(m.array([0.5 + 0j]))),
    ("key", lambda m: m.random.normal((2,), key=m.array([1]))),
    ("rope", lambda m: m.fast.rope(m.ones(4), 4, traditional=False, base=1.0, scale=1.0, offset=0)),
    ("rope", lambda m: m.fast.rope(m.ones((1, 2, 4)), -2, traditional=False, base=1.0, scale=1.0, offset=0)),
    ("dequantize", lambda m: m.dequantize(*m.quantize(m.ones((2, 64))), dtype=m.int32)),
    ("layer_norm", lambda m: m.fast.layer_norm(m.ones((2, 3)), m.ones(2), None, 1e-5)),
    ("rms_norm", lambda m: m.fast.rms_norm(m.ones((2, 3)), m.ones(2), 1e-5)),
    ("attention", lambda m: m.fast.scaled_dot_product_attention(m.ones((2, 3)), m.ones((2, 3)), m.ones((2, 3)), scale=1.0)),
    ("norm", lambda m: m.linalg.norm(m.ones((2, 2)), ord="other")),
    ("meshgrid", lambda m: m.meshgrid(m.ones(2), indexing="other")),
    ("isclose", lambda m: m.isclose(m.ones(2), m.ones(3))),
    ("where", lambda m: m.where(m.ones(2), m.ones(3), m.ones(3))),
    ("put_along_axis", lambda m: m.put_along_axis(m.ones((2, 3)), m.array([0]), m.array([1.0]), axis=0)),
    ("hadamard", lambda m: m.hadamard_transform(m.ones(17))),
    ("softmax", lambda m: m.softmax(m.array(2.0), axis=0)),
    ("softmax", lambda m: m.softmax(m.array(2.0), axis=(0, 1))),
    ("logsumexp", lambda m: m.logsumexp(m.array(2.0), axis=-1)),
    ("bitwise_and", lambda m: m.bitwise_and(m.ones(2), m.ones(3))),
    ("bitwise_or", lambda m: m.bitwise_or(m.array([1, 2]), m.ones(3))),
    ("bitwise_xor", lambda m: m.bitwise_xor(m.array([1, 2]), m.array([1, 2, 3]))),
    ("left_shift", lambda m: m.left_shift(m.ones(2), m.ones(3))),
    ("zeros", lambda m: m.zeros((2**40, 2**40))),
    ("broadcast_to", lambda m: m.broadcast_to(m.array(1), (2**62, 2**62))),
    ("load", lambda m: m.load("nothing.gguf")),
    ("load", lambda m: m.load("nothing.npz")),
    ("load", lambda m: m.load("nothing.safetensors")),
    ("load", lambda m: m.load(3)),
    ("load", lambda m: m.load(b"nothing.npy")),
    ("save", lambda m: m.save(3, m.ones(2))),
    ("save", lambda m: m.save_safetensors(3, {"a": m.ones(2)})),
    ("save", lambda m: m.save_gguf(3, {"a": m.ones(2)})),
    ("einsum_path", lambda m: m.einsum_path("ij,jk->ik", m.ones((2, 3)), m.ones((4, 5)))),
    ("vecdot", lambda m: m.vecdot(m.array(1.0), m.array(2.0))),
    ("vecdot", lambda m: m.vecdot(m.array([1.0]), m.array(2.0))),
    ("searchsorted", lambda m: m.searchsorted(m.array(1.0), m.array(2.0))),
    *[("dtype", lambda m, v=v: m.array(v)) for v in STRANGE],
    *[("dtype", lambda m, v=v: m.ones(1) + v) for v in STRANGE],
]  # fmt: skip

# Wrong types: arguments that are missing, too many, or of no use.
MISUSES = [
    lambda m: m.abs(),
    lambda m: m.abs(m.ones(2), 3),
    lambda m: m.abs("x"),
    lambda m: m.add(m.ones(2)),
    lambda m: m.add(m.ones(2), None),
    lambda m: m.sum(m.ones(2), axis="x"),
    lambda m: m.sum(m.ones(2), axis=set()),
    lambda m: m.sum(m.ones(2), axis={0: 1}),
    lambda m: m.sum(m.ones(2), axis=b"\0"),
    lambda m: m.sum(m.ones(2), axis=iter([0])),
    lambda m: m.reshape(m.ones(4), {4}),
    lambda m: m.sum(m.ones(2), nothing=1),
    lambda m: m.zeros((2,), dtype="float32"),
    lambda m: m.reshape(m.ones(2), "x"),
    lambda m: m.ones(2).astype("float32"),
    lambda m: m.concatenate(3),
    lambda m: m.concatenate({m.ones(2), m.zeros(2)}),
    lambda m: m.stack(None),
    lambda m: m.random.uniform(shape="x"),
    lambda m: m.Device("cpu"),
    lambda m: m.set_default_device("cpu"),
    lambda m: m.vmap(3)(m.ones(2)),
    lambda m: m.array(),
    lambda m: m.array([1], "x"),
    lambda m: m.ones(2)["x"],
    lambda m: setattr(m.ones(2), "shape", (1, 2)),
    lambda m: m.ones(2).nothing,
    lambda m: m.array(1.5)[0],
    lambda m: m.nothing,
    lambda m: m.arange(1j),
    lambda m: m.arange(0, 1j),
    lambda m: m.linspace(0, 1j),
]


def raised(call, module):
    try:
        result = call(module)
        if isinstance(result, (module.array, list, tuple)):
            module.eval(result)
    except Exception as error:  # noqa: BLE001
        return error
    return None


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_wrong_values(number):
    name, call = CALLS[number]
    ours, theirs = raised(call, cc), raised(call, mlx)
    if theirs is None:
        # MLX computes something where there is nothing to compute: an error is as good.
        assert ours is None or isinstance(ours, (ValueError, IndexError)), ours
        return
    assert type(ours) is type(theirs), f"{name}: {ours!r}, {theirs!r}"
    assert len(str(ours)) > 8, ours


@pytest.mark.parametrize("number", range(len(MISUSES)))
def test_wrong_types(number):
    ours, theirs = raised(MISUSES[number], cc), raised(MISUSES[number], mlx)
    assert type(ours) is type(theirs), f"{ours!r}, {theirs!r}"


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_the_library_works_after_an_error(number):
    raised(CALLS[number][1], cc)
    assert (cc.ones(3) + 1).tolist() == [2, 2, 2]


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([1j], np.clongdouble), np.array(["2020-01-01"], "M8[D]")])
def test_files_of_what_has_no_dtype(tmp_path, value):
    np.save(tmp_path / "a.npy", value)
    ours, theirs = (raised(lambda m: m.load(str(tmp_path / "a.npy")), m) for m in (cc, mlx))
    assert type(ours) is type(theirs) is ValueError and "a.npy" in str(ours), ours


@pytest.mark.parametrize(
    "save",
    [
        lambda m, path: m.save_gguf(path, {"a": m.array([True])}),
        lambda m, path: m.save_gguf(path, {"a": m.array([1j])}),
        lambda m, path: m.save_gguf(path, {}, {"a": m.ones((2, 2))}),
    ],
)
def test_what_gguf_has_not(tmp_path, save):
    ours, theirs = (raised(lambda m: save(m, str(tmp_path / "a.gguf")), m) for m in (cc, mlx))
    assert type(ours) is type(theirs) is RuntimeError and "gguf" in str(ours), ours


@pytest.mark.parametrize("name", "relu selu elu gelu silu softplus softsign mish celu hard_shrink softshrink log_sigmoid".split())
@pytest.mark.parametrize("value", ["x", [1.0], None])
def test_activations_of_what_is_no_array(name, value):
    import mlx.nn as mlx_nn

    import cupola.nn as nn

    found = [raised(lambda _: getattr(layers, name)(value), cc) for layers in (nn, mlx_nn)]
    assert type(found[0]) is type(found[1]) is not type(None), found


@pytest.mark.parametrize("number", [2**63, 2**70, -(2**70)])
def test_indices_past_all_sizes(number):
    x = cc.arange(3)
    for call in (lambda: x[number], lambda: x[number, None], lambda: x.at[number].add(1)):
        with pytest.raises(IndexError, match=str(number)):
            call()
    with pytest.raises(IndexError, match=str(number)):
        x[number] = 1
    assert x.tolist() == [0, 1, 2]


def test_an_imitated_gpu_is_no_default():
    before = cc.default_device()
    if cc.is_available(cc.gpu):
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match="set_default_device: gpu"):
        cc.set_default_device(cc.gpu)
    assert cc.default_device() == before


def test_vectors_without_the_axis_of_a_cosine():
    import mlx.nn as mlx_nn

    import cupola.nn as nn

    for m, layers in ((cc, nn), (mlx, mlx_nn)):
        with pytest.raises(IndexError):
            layers.losses.cosine_similarity_loss(m.ones((3, 4)), m.ones(3))


def test_texts_name_operation_shapes_and_dtypes():
    with pytest.raises(ValueError, match=r"(?s)matmul.*2.*3"):
        cc.ones((2, 3)) @ cc.ones((2, 3))
    with pytest.raises(ValueError, match=r"concatenate.*\b3\b"):
        cc.concatenate([cc.ones((2, 3)), cc.ones((3, 2))])
    with pytest.raises(ValueError, match="float32"):
        cc.bitwise_invert(cc.ones(2))


METHODS_OF_PARTS = ["add", "subtract", "multiply", "divide", "maximum", "minimum"]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bool_"])
@pytest.mark.parametrize("value", [-3, 255, 2**31, 2**32, -(2**31) - 1])
def test_numbers_that_a_dtype_does_not_hold_are_errors(dtype, value):
    """Where MLX raises, and nowhere else, but for numbers past int32 beside bools."""

    def assigned(m):
        x = m.zeros((2,), dtype=getattr(m, dtype))
        x[0] = value
        return x

    array = lambda m: m.ones((2,), dtype=getattr(m, dtype))  # noqa: E731
    calls = [assigned, *(lambda m, name=name: getattr(array(m).at[0], name)(value) for name in METHODS_OF_PARTS)]
    wide = dtype == "bool_" and not -(2**31) <= value < 2**31
    for number, call in enumerate([*calls, lambda m: array(m) + value]):
        ours, theirs = raised(call, cc), raised(call, mlx)
        if wide and number == len(calls):
            assert isinstance(ours, ValueError) and "int32" in str(ours), ours
        else:
            assert type(ours) is type(theirs), f"{number}: {ours!r}, {theirs!r}"
            assert ours is None or dtype in str(ours), ours


def test_numbers_past_64_bits_of_their_sign_are_errors():
    """MLX takes no number from 2**63 on."""
    large, x = 2**63, cc.ones((2,), dtype=cc.int64)
    calls = [
        lambda: large << x, lambda: x + large, lambda: x.at[0].add(large), lambda: cc.full((2,), large, cc.int64),
        lambda: cc.masked_fill(x, x > 0, large), lambda: cc.index_fill(x, 0, cc.array([0]), large),
        lambda: cc.put_along_axis(x, cc.array([0]), large, 0), lambda: cc.isclose(x, large),
        lambda: cc.allclose(cc.ones((2,), dtype=cc.uint8), 300), lambda: cc.addcmul(x, x, x, value=large),
        lambda: cc.unique(x, 3, fill_value=large), lambda: cc.array([True]) + large,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match="would result in overflow"):
            call()
    assert (cc.zeros((1,), dtype=cc.uint64) + large).tolist() == [large]
    assert (cc.zeros((1,)) + large).tolist() == [float(large)]


def test_nothing_is_taken_from_an_axis_without_elements():
    empty = cc.ones((0, 3))
    for index in (0, cc.array([0])):
        with pytest.raises(ValueError, match="no elements to take"):
            cc.take(empty, index, axis=0)
    assert cc.take(empty, cc.zeros((0,), dtype=cc.int32), axis=0).shape == (0, 3)
    assert cc.take(empty, cc.array([1]), axis=1).shape == (0, 1)


def test_eval_finds_indices_outside_their_axis():
    for index in (4, -5):
        taken = cc.take(cc.arange(4), cc.array([0, index - 1]) + 1)
        with pytest.raises(IndexError, match="outside axis 0 of size 4"):
            cc.eval(taken)
    assert cc.take(cc.arange(4), cc.array([1, -4])).tolist() == [1, 0]
