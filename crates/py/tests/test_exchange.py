"""Arrays that share memory with other libraries: what is seen, how long it lives, who writes to it."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
from conftest import DEVICE

import cupola.core as cc

COUNT = 1 << 12


class Lender(np.ndarray):
    """Memory that can be watched."""


def lent(dtype=np.float32):
    return np.arange(COUNT).astype(dtype).view(Lender)


def offset_by_a_byte():
    return np.zeros(COUNT * 4 + 1, np.uint8)[1:].view(np.float32)


def read_only():
    values = np.arange(COUNT, dtype=np.float32)
    values.flags.writeable = False
    return values


IMPORTS = [cc.asarray, cc.from_dlpack]
SHARED = {
    "contiguous": lambda: np.arange(COUNT, dtype=np.float32),
    "strided": lambda: np.arange(COUNT, dtype=np.float32)[1::3],
    "reversed": lambda: np.arange(COUNT, dtype=np.float32)[::-1],
    "transposed": lambda: np.arange(COUNT, dtype=np.int64).reshape(64, 64).T[3:, ::-2],
    "half": lambda: np.arange(COUNT).astype(np.float16).reshape(-1, 2),
    "complex": lambda: np.arange(COUNT).astype(np.complex64),
    "bool": lambda: np.arange(COUNT) % 2 == 0,
    "one": lambda: np.array(3, np.float32),
}


@pytest.mark.parametrize("take", IMPORTS)
@pytest.mark.parametrize("name", SHARED)
def test_memory_is_shared(take, name):
    source = SHARED[name]()
    x = take(source, copy=False)
    assert x.shape == source.shape and np.array_equal(np.array(x), source)
    place = (0,) * source.ndim
    source[place] = not source[place]
    assert np.array_equal(np.array(x), source), "what is written shows"
    assert np.array_equal(np.array((x + x) if name != "bool" else cc.logical_not(x)),
                          source + source if name != "bool" else ~source)
    y = take(source)
    z = take(source, copy=True)
    before = source.copy()
    source[place] = not source[place]
    assert np.array_equal(np.array(y), source) and np.array_equal(np.array(z), before)


@pytest.mark.parametrize("take", IMPORTS)
@pytest.mark.parametrize(
    "make", [offset_by_a_byte, lambda: np.arange(8.0), lambda: np.zeros((3, 5), np.float32)[:0]]
)
def test_what_cannot_be_shared_is_copied(take, make):
    source = make()
    assert np.array_equal(np.array(take(source)), source)
    if source.size:
        with pytest.raises(ValueError, match="Unable to avoid copy"):
            take(source, copy=False)
        x = take(source)
        source[0] = 7
        assert x[0].item() == 0.0
    else:
        assert take(source, copy=False).shape == source.shape


def test_elements_of_records_are_copied():
    records = np.zeros(4, [("a", "f4"), ("b", "i1")])
    records["a"] = np.arange(4)
    assert cc.array(records["a"]).tolist() == cc.asarray(records["a"]).tolist() == [0, 1, 2, 3]


def test_constructors_copy():
    source = np.arange(COUNT, dtype=np.float32)
    for make in (cc.array, lambda a: cc.asarray(a, cc.float16), lambda a: cc.asarray(a, copy=True)):
        x = make(source)
        source[1] += 1
        assert x[1].item() == source[1] - 1


@pytest.mark.parametrize("value", [1, 2.5, [1, 2], (1.0,)])
def test_what_has_no_memory(value):
    assert cc.asarray(value).tolist() == cc.array(value).tolist()
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        cc.asarray(value, copy=False)


def test_dtypes_that_change_are_copied():
    source = np.arange(4, dtype=np.float32)
    assert cc.asarray(source, cc.int32).dtype == cc.int32
    with pytest.raises(ValueError, match="float32 is to become int32"):
        cc.asarray(source, cc.int32, copy=False)
    own = cc.ones(3)
    assert cc.asarray(own, copy=False).tolist() == [1, 1, 1]
    assert cc.asarray(own, cc.int32).dtype == cc.int32


@pytest.mark.parametrize("take", IMPORTS)
def test_the_lender_lives_as_long_as_an_array(take):
    source = lent()
    watch = weakref.ref(source)
    x = take(source, copy=False)
    del source
    gc.collect()
    assert watch() is not None
    view = x[1:]
    y = x * 2
    del x
    assert watch() is not None and view[0].item() == 1
    cc.eval(y)
    assert y[3].item() == 6
    del view
    gc.collect()
    assert watch() is None


@pytest.mark.parametrize("take", IMPORTS)
@pytest.mark.parametrize("view", [lambda x: x, lambda x: np.asarray(x)[1:], memoryview])
def test_a_lender_that_holds_what_it_lends_to(take, view):
    if take is cc.from_dlpack and view is memoryview:
        pytest.skip("memory views have no DLPack")
    source = lent()
    watch = weakref.ref(source)
    source.held = take(view(source))
    del source
    gc.collect()
    assert watch() is None, "the collector does not see what an array lies in"


@pytest.mark.parametrize("take", IMPORTS)
def test_files_in_memory_are_shared(take, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(COUNT, dtype=np.float32))
    source = np.load(tmp_path / "x.npy", mmap_mode="r+")
    x = take(source)
    source[3] = 50
    assert x[3].item() == 50


def test_the_lender_goes_where_another_thread_drops_the_array():
    source = lent()
    watch = weakref.ref(source)
    box = [cc.asarray(source, copy=False)]
    del source

    def work():
        y = box.pop() + 1
        cc.async_eval(y)
        del y
        cc.synchronize()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for _ in range(100):
        cc.eval(cc.ones(3) + 1)  # What other threads let go of goes when one runs Python again.
        if watch() is None:
            break
    assert watch() is None


@pytest.mark.parametrize("take", IMPORTS)
def test_lent_memory_is_never_written(take):
    source = np.arange(COUNT, dtype=np.float32)
    before = source.copy()
    for _ in range(3):
        x = take(source, copy=False)
        y = cc.exp(-x) * 3 + 1  # Nothing else holds x: memory of our own would be taken over.
        del x
        cc.eval(y)
        x = take(source, copy=False)
        x[3] = 100.0
        x += 1
        x[::2] = 0
        cc.eval(x)
        step = cc.compile(lambda a: a * 2 + 1)
        cc.eval(step(take(source, copy=False)))
        assert np.array_equal(source, before)


def test_read_only_memory_stays_so():
    source = read_only()
    for x in (cc.asarray(source, copy=False), cc.from_dlpack(source, copy=False)):
        assert x[5].item() == 5
        out = np.asarray(x)
        assert not out.flags.writeable and np.shares_memory(out, source)
        assert np.array(x).flags.writeable
        taken = np.from_dlpack(x)
        assert not np.shares_memory(taken, source) and np.array_equal(taken, source)
        with pytest.raises((BufferError, TypeError)):
            memoryview(x)[0] = 1.0
    words = cc.asarray(memoryview(b"\x01\x00\x00\x00"))
    assert words.tolist() == [1, 0, 0, 0]


def test_own_memory_is_exported_for_writing():
    x = cc.arange(4.0)
    view = np.asarray(x)
    if view.flags.writeable:
        view[0] = 5
        assert x[0].item() == 5
    else:
        assert DEVICE != cc.cpu and np.array(x).flags.writeable


def test_dlpack_copies_as_asked():
    x = cc.arange(4.0)
    mine = np.from_dlpack(x, copy=True)
    assert mine.tolist() == [0, 1, 2, 3] and not np.shares_memory(mine, np.asarray(x))
    if DEVICE == cc.cpu:
        assert np.shares_memory(np.from_dlpack(x, copy=False), np.asarray(x))
    lent = cc.asarray(np.arange(COUNT, dtype=np.float32), copy=False)
    with pytest.raises(BufferError, match="Unable to avoid copy"):
        lent.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="host"):
        x.__dlpack__(dl_device=(2, 0))


def test_tensors():
    torch = pytest.importorskip("torch")
    for take in IMPORTS:
        source = torch.arange(12, dtype=torch.float32).reshape(3, 4)
        x = take(source.T, copy=False)
        source[0, 1] = 50
        assert x[1, 0].item() == 50 and x.shape == (4, 3)
        half = take(torch.ones(3, dtype=torch.bfloat16), copy=False)
        assert half.dtype == cc.bfloat16 and half.tolist() == [1, 1, 1]
    watch = weakref.ref(source)
    del source
    gc.collect()
    assert x[1, 0].item() == 50
    del x
    gc.collect()
    assert watch() is None


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    source = np.arange(8).astype(ml_dtypes.bfloat16)
    x = cc.asarray(source, copy=False)
    assert x.dtype == cc.bfloat16
    source[2] = 30
    assert x.tolist() == [0, 1, 30, 3, 4, 5, 6, 7]
    assert cc.array(source[::-1]).tolist() == [7, 6, 5, 4, 3, 30, 1, 0]


class Produced:
    """What gives capsules only in the old way, as libraries from before DLPack 1.0."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


def test_old_capsules():
    source = np.arange(4, dtype=np.float32)
    x = cc.from_dlpack(Produced(source), copy=False)
    source[1] = 9
    assert x.tolist() == [0, 9, 2, 3]
    count = sys.getrefcount(source)
    y = cc.from_dlpack(Produced(source))
    assert sys.getrefcount(source) == count + 1
    del y
    assert sys.getrefcount(source) == count


def test_doubles_are_rounded_once():
    big = np.array([1e300, -1e-300, 2.0**25 + 1, 0.1])
    assert np.array(cc.array(big, dtype=cc.float64)).tolist() == big.tolist()
    assert cc.array(big[2:3], dtype=cc.int32).item() == 2**25 + 1
    assert cc.array(np.array([2.0**53 - 1]), dtype=cc.int64).item() == 2**53 - 1
    assert cc.array(np.float64(2.0**40 + 1).reshape(()), dtype=cc.int64).item() == 2**40 + 1
    assert cc.array(big).dtype == cc.float32
    # 1 + 2⁻¹¹ + 2⁻³⁰ lies above the middle of two halves; its float32 is the middle.
    odd = np.array([1 + 2.0**-11 + 2.0**-30])
    assert cc.array(odd, dtype=cc.float16).item() == 1 + 2.0**-10


@pytest.mark.parametrize("kind", "i2 i4 i8 u2 u4 u8 f2 f4 f8 c8".split())
def test_bytes_in_the_other_order(kind):
    values = np.array([[1, 2, 300 % 127], [4, 5, 6]]).astype(kind)
    for order in "<>":
        other = values.astype(values.dtype.newbyteorder(order))
        for view in (other, other.T, other[:, ::-1], other[0, 0:1]):
            np.testing.assert_array_equal(np.array(cc.array(view)), view)
    with pytest.raises(ValueError, match="order"):
        cc.asarray(values.astype(values.dtype.newbyteorder(">")), copy=False)


WIDE = 2.0**25 + 1
SETS = {
    "all": lambda z, v: z.__setitem__(slice(None), v),
    "one": lambda z, v: z.__setitem__(0, v[0]),
    "places": lambda z, v: z.__setitem__(cc.array([0, 1]), v),
    "a mask": lambda z, v: z.__setitem__(cc.array([True, True]), v[:1]),
    "+=": lambda z, v: z.__iadd__(v),
}


@pytest.mark.parametrize("change", SETS)
def test_float64_of_others_is_not_rounded_on_its_way_into_an_array(change):
    for dtype, number in ((cc.float64, 1 / 3), (cc.float64, 1e300), (cc.int32, WIDE), (cc.int64, 2.0**52 + 1)):
        z = cc.zeros(2, dtype=dtype)
        SETS[change](z, np.array([number, number]))
        assert z.tolist()[0] == number, (dtype, number)


def test_float64_of_others_beside_arrays_of_float64_or_integers():
    x, third = cc.zeros(2, dtype=cc.float64), np.array([1 / 3, 1e300])
    want = third.tolist()
    eye = cc.eye(2, dtype=cc.float64)
    others = [third, memoryview(third), third[::-1][::-1], third.astype(">f8")]
    for v in others:
        for found in (x + v, cc.add(v, x), cc.add(x, v), cc.maximum(x, v), cc.where(x == 1, x, v), x.at[:].add(v),
                      cc.full((2,), v, dtype=cc.float64), cc.full_like(x, v), cc.clip(x + 1e301, 0, v),
                      cc.array([v], dtype=cc.float64)[0], cc.array([[v], [v]], dtype=cc.float64)[1, 0],
                      cc.put_along_axis(x, cc.array([0, 1]), v, 0), cc.masked_fill(x, x == 0, v),
                      cc.concatenate([v, x])[:2], cc.stack([x, v])[1], cc.slice_update(x, v, cc.array(0), (0,)),
                      cc.lerp(x, v, 1), cc.lerp(v, x, 0), cc.lerp(v, v, x), cc.addmm(v, eye, x), cc.addcmul(v, x, x),
                      cc.einsum("ij,j", eye, v), cc.matmul(eye, v), cc.outer(v, x + 1)[:, 0], cc.inner(eye, v),
                      cc.tensordot(eye, v, 1), cc.kron(x[:1] + 1, v), cc.linalg.solve(eye, v),
                      cc.conv1d((x + 1).reshape(1, 2, 1), np.array(v).reshape(2, 1, 1))[0, 0],
                      cc.interp(cc.array([0.0, 1.0], dtype=cc.float64), x + eye[1], v)):  # fmt: skip
            assert found.dtype == cc.float64 and found.tolist() == want
    assert cc.searchsorted(x + third[0], third).tolist() == [0, 2]
    assert cc.pad(x, 1, constant_values=np.array(1e300)).tolist() == [1e300, 0, 0, 1e300]
    assert cc.full((1,), np.array(WIDE), dtype=cc.int32).tolist() == [WIDE]
    assert cc.array([np.array([WIDE])], dtype=cc.int32).tolist() == [[WIDE]]
    assert (cc.array([1], dtype=cc.int32) + np.array([WIDE])).tolist() == [WIDE + 1]
    assert cc.arange(np.array(2.0**53), np.array(2.0**53 + 8), 4, dtype=cc.float64).shape == (2,)
    assert cc.array_equal(cc.array([0.1, 0.2], dtype=cc.float64), np.array([0.1, 0.2])).item()
    assert (cc.eye(2, dtype=cc.float64) @ third).tolist() == want
    # What is filled keeps its dtype, and takes no other kind of number.
    for x, filling in ((cc.ones(2), np.array([1 + 5j, 2])), (cc.ones(2, dtype=cc.int32), np.array([1.5, 2]))):
        with pytest.raises(ValueError, match="does not fit"):
            cc.masked_fill(x, cc.array([True, False]), filling)
    # By themselves they are float32, as in MLX.
    for found in (cc.array(third), cc.add(third, third), cc.full((2,), third), cc.abs(third), cc.ones(2) + third):
        assert found.dtype == cc.float32


RNG = np.random.default_rng(3)
A, B, V = RNG.standard_normal((4, 4)) + 3 * np.eye(4), RNG.standard_normal((4, 4)), RNG.standard_normal(4)
HEADS = RNG.standard_normal((3, 1, 2, 4, 8))
IMAGE, PLACES = RNG.standard_normal((1, 5, 5, 2)), RNG.uniform(-1, 1, (1, 3, 3, 2))
# Functions of arrays that meet, some of which may be of NumPy's doubles.
MEETING = {
    "array": (lambda a, b: cc.array([a, b]), A, B),
    "nested lists": (lambda a, b, c: cc.array([[b, c], [a, 0.1 * cc.ones(4, dtype=cc.float64)]]), V, -V, V / 3),
    "attention": (lambda q, k, v, m: cc.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=m), *HEADS, B),
    "block_masked_mm": (lambda a, b, m: cc.block_masked_mm(a, b, 32, m), *(np.tile(A, (8, 8)), np.tile(B, (8, 8))),
                        V[:1, None]),
    "clip": (cc.clip, A, B, B + 1),
    "cross": (cc.linalg.cross, A[:, :3], B[:, :3]),
    "grid_sample": (cc.grid_sample, IMAGE, PLACES),
    "group_norm": (lambda x, w, b: cc.fast.group_norm(x, 2, w, b), A, V, -V),
    "layer_norm": (lambda x, w, b: cc.fast.layer_norm(x, w, b, 1e-5), A, V, -V),
    "normal": (lambda loc, scale: cc.random.normal((4,), cc.float64, loc, scale, cc.random.key(1)), A, B),
    "polyval": (cc.polyval, V, A),
    "prelu": (cc._nn.prelu, A, V),
    "rms_norm": (lambda x, w: cc.fast.rms_norm(x, w, 1e-5), A, V),
    "rope": (lambda x, f: cc.fast.rope(x, 8, traditional=False, base=None, scale=1.0, offset=3, freqs=f),
             HEADS[0], abs(V)),
    "solve_triangular": (lambda a, b: cc.linalg.solve_triangular(a, b, upper=True), np.triu(A), B),
    "stft": (lambda x, w: cc.fft.stft(x, 4, window=w), V, abs(V)),
    "uniform": (lambda low, high: cc.random.uniform(low, high, (4, 4), cc.float64, cc.random.key(1)), A, A + 1),
}  # fmt: skip


@pytest.mark.parametrize("name", MEETING)
def test_float64_of_others_keeps_its_digits_where_it_meets_float64(name):
    function, *operands = MEETING[name]
    own = [cc.array(v, dtype=cc.float64) for v in operands]
    want = np.array(function(*own)).tolist()
    for at in range(len(operands)):
        mixed = [v if i == at else w for i, (v, w) in enumerate(zip(operands, own))]
        found = function(*mixed)
        assert found.dtype in (cc.float64, cc.complex64) and np.array(found).tolist() == want, at


def test_edges_of_float64():
    x = cc.array([0.1, 0.2, 0.3, 0.7], dtype=cc.float64)
    for edges in ([0.1, 0.3, 0.7], np.array([0.1, 0.3, 0.7])):
        counts, found = cc.histogram(x, edges)
        assert counts.tolist() == [2, 2] and found.tolist() == [0.1, 0.3, 0.7]
    assert cc.array([cc.array(1.0), 2.0**25 + 1], dtype=cc.int32).tolist() == [1, 2**25 + 1]


@pytest.mark.parametrize("kind", ["i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8"])
def test_the_order_of_bytes_of_a_buffer(kind):
    x = np.array([[1, 2, 300], [4, 5, 60]])
    for order in "<>=":
        v = x.astype(order + kind)
        for view in (v, memoryview(v), memoryview(v)[::-1], memoryview(v[:, ::2])):
            want = np.asarray(view).astype(np.dtype(kind)).tolist()
            assert cc.array(view).tolist() == want
            z = cc.zeros(np.asarray(view).shape, dtype=cc.array(view).dtype)
            z[:] = view
            assert z.tolist() == want
