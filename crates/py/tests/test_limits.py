"""What is nested without end, has more axes or elements than there are, or more than memory holds: errors,
not the end of the process."""

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import DEVICE, cc

import cupola.nn as nn


def nested(depth, inner, wrap):
    for _ in range(depth):
        inner = wrap(inner)
    return inner


def forget(tree):
    """Python itself frees deep nests without recursion only for lists and tuples."""
    while isinstance(tree, (list, tuple)) and tree:
        tree = tree[0]


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: (x,)])
def test_deep_lists(wrap):
    deep = nested(40_000, 1.0, wrap)
    with pytest.raises(ValueError, match="nested"):
        cc.array(deep)
    with pytest.raises(RecursionError):
        cc.eval(deep)
    with pytest.raises(RecursionError):
        cc.compile(lambda tree: tree)(nested(40_000, cc.array(1.0), wrap))
    forget(deep)


def test_lists_that_hold_themselves():
    own = []
    own.append(own)
    mixed = [cc.array(1.0)]
    mixed.append(mixed)
    loop = {}
    loop["again"] = loop
    with pytest.raises(ValueError, match="nested"):
        cc.array(own)
    with pytest.raises(RecursionError):
        cc.array(mixed)
    for tree in (own, mixed, loop):
        with pytest.raises(RecursionError):
            cc.eval(tree)
        with pytest.raises(RecursionError):
            cc.grad(lambda t: cc.array(1.0))(tree)
    assert cc.array([[1.0]]).shape == (1, 1)
    cc.eval(nested(500, cc.array(1.0), lambda x: [x]))


def test_too_many_axes():
    for make in (
        lambda: cc.zeros([1] * 60_000),
        lambda: cc.reshape(cc.ones(1), [1] * 60_000),
        lambda: cc.expand_dims(cc.ones(1), list(range(60_000))),
        lambda: cc.broadcast_to(cc.ones(1), [1] * 60_000),
        lambda: cc.ones(1)[(None,) * 60_000],
        lambda: cc.random.uniform(shape=[1] * 60_000),
    ):
        with pytest.raises((ValueError, IndexError), match="axes"):
            make()
    assert cc.zeros([1] * 64).ndim == 64


def test_files_of_too_many_axes(tmp_path):
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (1,) * 20_000}
        )
        file.write(bytes(1 << 16))
    head = json.dumps({"x": {"dtype": "F32", "shape": [1] * 129, "data_offsets": [0, 4]}}).encode()
    head += b" " * (-len(head) % 8)
    (tmp_path / "x.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(4))
    for name in ("x.npy", "x.safetensors"):
        with pytest.raises(RuntimeError, match=f"{name}.* axes, where 128 are the most"):
            cc.load(str(tmp_path / name))


def test_modules_that_hold_themselves():
    outer, inner = nn.Linear(2, 2), nn.Linear(2, 2)
    outer.inner, inner.list = inner, [outer]
    for walk in (lambda: outer.train(), outer.modules, outer.parameters, lambda: repr(outer), outer.freeze):
        with pytest.raises(RecursionError):
            walk()
    # One module in two places is no cycle.
    shared = nn.Linear(2, 2)
    both = nn.Sequential(shared, shared)
    assert len(both.train().modules()) == 3


HUGE = 2**63 - 1
TOO_LARGE = {
    "a shape": lambda: cc.zeros((2**40, 2**40)),
    "a shape with no elements": lambda: cc.zeros((0, 2**40, 2**40)),
    "reshape": lambda: cc.reshape(cc.ones(5), (2**40, 2**40)),
    "unflatten": lambda: cc.unflatten(cc.ones(5), 0, (2**40, 2**40)),
    "pad": lambda: cc.pad(cc.ones(3), HUGE),
    "pad with edges": lambda: cc.pad(cc.ones(3), HUGE, mode="edge"),
    "concatenate": lambda: cc.concatenate([cc.zeros((0, 2**62))] * 8, 1),
    "tile": lambda: cc.tile(cc.ones(3), HUGE),
    "padding": lambda: cc.conv1d(cc.ones((1, 3, 1)), cc.ones((1, 1, 1)), padding=HUGE),
    "stride": lambda: cc.conv_transpose1d(cc.ones((1, 3, 1)), cc.ones((1, 2, 1)), stride=HUGE),
    "dilation": lambda: cc.conv_general(
        cc.ones((1, 3, 1)), cc.ones((1, 2, 1)), kernel_dilation=HUGE, padding=2**62
    ),
    "pooling": lambda: nn.AvgPool1d(2, padding=HUGE)(cc.ones((1, 4, 1))),
    "split": lambda: cc.split(cc.ones(0), 2**40),
    "split at indices": lambda: cc.split(cc.ones(5), list(range(2**20))),
    "unstack": lambda: cc.unstack(cc.zeros((2**40,))),
    "the number of a pad": lambda: cc.pad(cc.ones(3, dtype=cc.int8), 1, constant_values=255),
    "full": lambda: cc.full((2,), 2**40, dtype=cc.uint16),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_sizes_beyond_an_address_space_are_errors(name):
    with pytest.raises((ValueError, OverflowError), match="."):
        TOO_LARGE[name]()


def wide():
    """A number that stands for 2³⁵."""
    return cc.broadcast_to(cc.array([1.5]), (2**35,))


TOO_MUCH = {
    "tolist": lambda folder: wide().tolist(),
    "pickle": lambda folder: pickle.dumps(wide()),
    "bytes": lambda folder: bytes(wide()),
    "save": lambda folder: cc.save(folder / "x.npy", wide()),
    "savez": lambda folder: cc.savez(folder / "x.npz", wide()),
    "save_safetensors": lambda folder: cc.save_safetensors(folder / "x", {"x": wide()}),
}


@pytest.mark.skipif(DEVICE != cc.cpu, reason="the host's memory is meant")
@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_the_host_cannot_hold_is_an_error(name, tmp_path):
    with pytest.raises(MemoryError, match="memory"):
        TOO_MUCH[name](tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_copy_shares_what_nobody_changes():
    x = wide()
    assert copy.deepcopy(x).shape == copy.copy(x).shape == (2**35,)
    x = cc.array([1.0, 2.0])
    both = copy.deepcopy([x, x])
    x[0] = 5.0
    assert both[0] is both[1] and both[0].tolist() == [1.0, 2.0] and copy.copy(x).tolist() == [5.0, 2.0]


def test_an_array_prints_from_what_it_shows():
    assert repr(wide()) == "array([1.5, 1.5, 1.5, ..., 1.5, 1.5, 1.5], dtype=float32)"
    x = cc.arange(40).reshape(4, 10)[::-1, ::2].T
    assert str(x).startswith("array([[30, 20, 10, 0],")


def test_diagonals_beyond_32_bits():
    for k, all_below in ((2**32, True), (2**63 - 1, True), (-(2**32), False), (-(2**63), False)):
        assert cc.tri(2, k=k).tolist() == [[float(all_below)] * 2] * 2
        assert cc.eye(2, k=k).tolist() == [[0.0] * 2] * 2
        assert cc.tril(cc.ones((2, 2)), k).tolist() == [[float(all_below)] * 2] * 2
        assert cc.triu(cc.ones((2, 2)), k).tolist() == [[float(not all_below)] * 2] * 2


def test_a_shift_may_be_any_number():
    x = np.arange(12).reshape(3, 4)
    for shift, axis in ((-(2**63), 0), ((1, 1), (0, 0)), ((2**63 - 1, 2**63 - 1), (0, 1))):
        assert cc.roll(cc.array(x), shift, axis).tolist() == np.roll(x, shift, axis).tolist()


def test_a_compiled_function_of_ever_new_sizes_forgets_the_old_ones():
    calls = []

    def f(x):
        calls.append(x.shape)
        return x + 1

    compiled = cc.compile(f)
    for size in range(1, 1400):
        assert compiled(cc.zeros((size,))).shape == (size,)
    assert len(calls) == 1399
    compiled(cc.zeros((1399,)))
    assert len(calls) == 1399
    assert compiled(cc.zeros((1,))).tolist() == [1.0] and len(calls) == 1400


def test_what_no_memory_holds_can_be_shown():
    huge = cc.broadcast_to(cc.array([1.0, 2.0]), (2**34, 2))
    assert repr(huge) == repr(cc.broadcast_to(cc.array([1.0, 2.0]), (100, 2)))
    many = cc.arange(2**20).reshape(2, 2**10, 2**9)
    small = cc.stack([cc.arange(7 * 7).reshape(7, 7)] * 2)
    assert repr(many).count("\n") == repr(small).count("\n")
    assert "[0, 1, 2, ..., 509, 510, 511]" in repr(many) and "1048575]]], dtype=int32)" in repr(many)


def test_deep_indices():
    deep, x = nested(40_000, 0, lambda x: (x,)), cc.ones((3, 3))
    for use in (lambda: x[deep], lambda: x.__setitem__(deep, 0), lambda: x.at[deep].add(1)):
        with pytest.raises(ValueError, match="index"):
            use()
    x[(cc.array([True, False, True]),)] = 5
    assert x.tolist() == [[5, 5, 5], [1, 1, 1], [5, 5, 5]]
    forget(deep)


def test_functions_within_functions():
    with pytest.raises(RecursionError, match="custom_function"):
        nested(40_000, lambda x: 2 * x, cc.custom_function)
    assert nested(100, lambda x: 2 * x, cc.custom_function)(cc.array(3)).item() == 6


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sets a limit as Linux has it")
@pytest.mark.parametrize(
    "call, room",
    [
        ("cc.broadcast_to(cc.array(1.5), (2**26,)).tolist()", 900),
        ("cc.broadcast_to(cc.array(1000), (2**23, 8)).tolist()", 1500),
        ("cc.array(big)", 20),
        ("cc.array(integers)", 20),
        ("cc.zeros(integers)", 60),
    ],
)
def test_lists_without_memory_for_them(call, room):
    text = f"""
import resource
import cupola.core as cc
cc.eval(cc.ones(3) + 1)
big, integers = [1.5] * 2**25, [1] * 2**25
size = int(open("/proc/self/statm").read().split()[0]) * 4096 + {room} * 2**20
resource.setrlimit(resource.RLIMIT_AS, (size, size))
try:
    {call}
except MemoryError:
    print("told")
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "told\n"), ran.stderr


WORK = {
    "sort": "cc.sort(long)",
    "argsort": "cc.argsort(long)",
    "sort of rows": "cc.sort(long.reshape(800, 800), axis=0)",
    "topk": "cc.topk(long, 300_000)",
    "median": "cc.median(long)",
    "permutation": "cc.random.permutation(640_000)",
    "fft": "cc.fft.fft(long[:599_999])",
    "rfft": "cc.fft.rfft(long[:599_999])",
    "convolve": "cc.convolve(long, cc.ones(1000))",
    "conv1d": "cc.conv1d(long.reshape(1, -1, 64), cc.ones((64, 9, 64)))",
    "conv2d": "cc.conv2d(long.reshape(1, 40, 250, 64), cc.ones((256, 3, 3, 64)))",
    "conv2d of a wide image": "cc.conv2d(long.reshape(1, 2, 5000, 64), cc.ones((64, 1, 3, 64)))",
    "matmul": "long.reshape(2, -1) @ long.reshape(-1, 2)",
    "matvec": "long.reshape(800, 800).T @ long[:800]",
    "pool": "nn.MaxPool1d(2)(long.reshape(1, -1, 1))",
    "attention": "cc.fast.scaled_dot_product_attention(*[long.reshape(1, 1, 10_000, 64)] * 3, scale=1e-6)",
    "split": "cc.split(long, 640_000)[7]",
    **{
        name: f"cc.linalg.{name}(square)"
        for name in ["svd", "qr", "inv", "lu", "eig", "pinv", "tri_inv"]
    },
    "eigh": "cc.linalg.eigh(square @ square.T)",
    "cholesky": "cc.linalg.cholesky(square @ square.T + 700 * cc.eye(700))",
    "solve": "cc.linalg.solve(square, square)",
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what is mapped")
@pytest.mark.parametrize("work", WORK)
def test_work_that_lacks_memory_of_its_own_is_told_and_keeps_what_is_there(work):
    text = f"""
import resource
import numpy as np
import cupola.core as cc
import cupola.nn as nn
cc.set_default_device(cc.cpu)
long, square = cc.random.randint(0, 1000, (640_000,)).astype(cc.float32), cc.random.normal((700, 700))
total = np.array(long).sum(dtype=np.float64)
cc.eval(long, square, cc.linalg.inv(cc.eye(2)), cc.fft.fft(long[:8]))
told = 0
for room in [*range(1, 80, 3), 4000]:
    kept, weight = cc.ones(640_000) * 2, cc.ones(3)
    cc.eval(kept, weight)
    long, square = kept * 1 + long * 1, square * 1
    cc.eval(square)
    cc.clear_cache()
    size = int(open("/proc/self/statm").read().split()[0]) * 4096 + room * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (size, -1))
    try:
        cc.eval({WORK[work]}, long)
    except MemoryError:
        told += 1
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    total += 2 * 640_000
    assert np.array(long).sum(dtype=np.float64) == total and len(cc.random.normal((3,)).tolist()) == 3
assert 0 < told < 28, told
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
