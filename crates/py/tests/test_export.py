"""Functions as files, as MLX has them: what is called, what comes out, and what is refused."""

import io
import os
import zipfile

import numpy as np
import pytest
from conftest import cc
from oracle import mlx_core as mlx

import cupola.nn as nn

x, y = cc.array([1.0, -2.0]), cc.array([0.5, 3.0])


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "f.cupola")


def both(tmp_path, use):
    """What `use` gives with either library: it takes the module and a path."""
    results = []
    for module, name in ((cc, "ours"), (mlx, "mlx")):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        try:
            found = use(module, str(folder / "f"))
            results.append([np.array(a) for a in found])
        except Exception as error:
            results.append(type(error))
    return results


CALLS = {
    "one": lambda m, f: f(m.array([1.0, -2.0])),
    "a tuple": lambda m, f: f((m.array([1.0, -2.0]),)),
    "a list": lambda m, f: f([m.array([1.0, -2.0])]),
    "a dict": lambda m, f: f({"x": m.array([1.0, -2.0])}),
    "by name": lambda m, f: f(x=m.array([1.0, -2.0])),
    "a tuple and a dict": lambda m, f: f((m.array([1.0, -2.0]),), {}),
    "a tuple and a name": lambda m, f: f((m.array([1.0, -2.0]),), x=m.array(1.0)),
    "other sizes": lambda m, f: f(m.array([1.0, -2.0, 3.0])),
    "another dtype": lambda m, f: f(m.array([1, -2])),
    "nothing": lambda m, f: f(),
    "too many": lambda m, f: f(m.array(1.0), m.array(2.0)),
    "a number": lambda m, f: f(1.0),
    "a text": lambda m, f: f("a"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("keyword", [False, True])
@pytest.mark.parametrize("shapeless", [False, True])
def test_calls(tmp_path, name, keyword, shapeless):
    if not keyword and name in ("a dict", "by name"):
        # MLX takes names that nobody has for positions, in the order of a hash map.
        cc.export_function(str(tmp_path / "f"), cc.abs, x, shapeless=shapeless)
        with pytest.raises(ValueError, match="No imported function found"):
            CALLS[name](cc, cc.import_function(str(tmp_path / "f")))
        return

    def use(m, path):
        given = {"x": m.zeros((2,))} if keyword else {}
        args = () if keyword else (m.zeros((2,)),)
        m.export_function(path, lambda x: m.abs(x) + 1, *args, shapeless=shapeless, **given)
        found = CALLS[name](m, m.import_function(path))
        assert type(found) is tuple
        return found

    ours, theirs = both(tmp_path, use)
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        assert not isinstance(ours, type), ours
        np.testing.assert_array_equal(ours, theirs)


FUNCTIONS = {
    "a list": lambda m: ((lambda x, y: [x + y, x * y]), 2),
    "a tuple": lambda m: ((lambda x, y: (x @ y,)), 2),
    "constants": lambda m: ((lambda x: x * m.array([3.0, 4.0]) + m.array([1.0, 1.0])), 1),
    "reductions": lambda m: ((lambda x: m.softmax(x) - m.logsumexp(x)), 1),
    "indices": lambda m: ((lambda x: x[m.array([1, 0, 1])]), 1),
    "updates": lambda m: ((lambda x: x.at[m.array([1])].add(2.0)), 1),
    "sorts": lambda m: ((lambda x: (m.sort(x), m.argsort(x))), 1),
    "random": lambda m: ((lambda x: x + m.random.uniform(shape=(2,), key=m.random.key(3))), 1),
    "a gradient": lambda m: ((lambda x: m.grad(lambda v: (v * v * v).sum())(x)), 1),
    "compiled": lambda m: (m.compile(lambda x: m.exp(x) + x), 1),
    "unused": lambda m: ((lambda x, y: y), 2),
    "a number": lambda m: ((lambda x: 3.0), 1),
    "nothing": lambda m: ((lambda x: None), 1),
    "a tree": lambda m: ((lambda x: (x, [x])), 1),
    "a value": lambda m: ((lambda x: x * x.sum().item()), 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(tmp_path, name):
    def use(m, path):
        fun, count = FUNCTIONS[name](m)
        given = [m.array([1.0, -2.0]), m.array([0.5, 3.0])][:count]
        m.export_function(path, fun, *given)
        return m.import_function(path)(*given)

    ours, theirs = both(tmp_path, use)
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        assert not isinstance(ours, type), ours
        for a, b in zip(ours, theirs, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_several_traces(tmp_path):
    def use(m, path):
        with m.exporter(path, lambda *args: sum(args)) as exporter:
            exporter(m.array(1))
            exporter(m.array(1), m.array(2))
            exporter(m.array(1.0))
            with pytest.raises(RuntimeError, match="twice with the same signature"):
                exporter(m.array(4))
        with pytest.raises(RuntimeError, match="closed"):
            exporter(m.array([1, 2]))
        fun = m.import_function(path)
        with pytest.raises(ValueError, match="3 positional inputs") as raised:
            fun(m.array(1), m.array(2), m.array(3))
        assert str(raised.value).count("Function with") == 3
        return fun(m.array(4))[0], fun(m.array(4), m.array(5))[0], fun(m.array(1.5))[0]

    ours, theirs = both(tmp_path, use)
    np.testing.assert_array_equal(ours, theirs)
    assert isinstance(cc.exporter(str(tmp_path / "g"), cc.abs), cc.FunctionExporter)
    with pytest.raises(TypeError):
        cc.FunctionExporter()


def test_a_failed_block_writes_nothing(tmp_path, path):
    cc.export_function(path, cc.abs, x)
    with pytest.raises(KeyError), cc.exporter(path, cc.negative) as exporter:
        exporter(x)
        raise KeyError
    assert cc.import_function(path)(x)[0].tolist() == [1, 2]
    assert [p.name for p in tmp_path.iterdir()] == ["f.cupola"]


def test_metadata(tmp_path):
    def use(m, path):
        m.export_function(path, lambda x: x, m.zeros(2), metadata="about it\n")
        fun, text = m.import_function(path, return_metadata=True)
        assert text == "about it\n"
        return fun(m.ones(2))

    np.testing.assert_array_equal(*both(tmp_path, use))


@pytest.mark.parametrize(
    "fun",
    [
        lambda m, x: m.softmax(x @ m.array(np.eye(3, dtype="f4")), axis=-1),
        lambda m, x: x.sum(axis=0) + m.max(x),
        lambda m, x: m.transpose(x)[None] * 2,
        lambda m, x: m.mean(x, axis=0) - m.var(x),
        lambda m, x: m.reshape(x, (-1,)) + m.flatten(x),
        lambda m, x: m.fast.layer_norm(x, None, None, 1e-5) + m.ones((3,)),
        lambda m, x: m.unflatten(x, 1, (-1, 1)),
    ],
)
def test_any_sizes(tmp_path, fun):
    def use(m, path):
        m.export_function(path, lambda x: fun(m, x), m.zeros((2, 3)), shapeless=True)
        given = m.array(np.arange(15, dtype="f4").reshape(5, 3) / 7)
        return m.import_function(path)(given)

    ours, theirs = both(tmp_path, use)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def layers(x):
    """What reads shapes: positions, a mask, heads, the last token, a mean of windows."""
    batch, length, width = x.shape
    x = x + cc.arange(length)[:, None] / length
    heads = x.reshape(batch, length, 2, width // 2).transpose(0, 2, 1, 3)
    scores = heads @ heads.swapaxes(-1, -2) + cc.triu(cc.full((length, length), -1e9), 1)
    mixed = (cc.softmax(scores, axis=-1) @ heads).transpose(0, 2, 1, 3).reshape(batch, -1, width)
    return mixed[:, -1], cc.split(mixed, 2, axis=2)[1], nn.AvgPool1d(2)(x), mixed[:, 1:].mean(1)


def test_any_sizes_of_what_reads_them(path):
    cc.export_function(path, layers, cc.zeros((2, 3, 4)), shapeless=True)
    imported = cc.import_function(path)
    for shape in [(2, 3, 4), (1, 7, 4), (5, 100, 4)]:
        given = cc.array(np.random.default_rng(1).normal(size=shape).astype("f4"))
        for ours, want in zip(imported(given), layers(given), strict=True):
            np.testing.assert_allclose(ours, want, rtol=1e-4, atol=1e-5)
    # Two inputs whose sizes have to be the same.
    cc.export_function(path, lambda a, b: (a * b).mean(), cc.ones((2, 3)), cc.ones((2, 3)), shapeless=True)
    assert cc.import_function(path)(cc.ones((5, 4)), cc.ones((5, 4)))[0].item() == 1.0
    with pytest.raises(ValueError, match="which matches"):
        cc.import_function(path)(cc.ones((5, 4)), cc.ones((5, 3)))


def test_sizes_that_do_not_follow_are_refused(path):
    def refused(fun, says):
        with pytest.raises(ValueError, match=says):
            cc.export_function(path, fun, cc.ones((4, 3)), shapeless=True)

    refused(lambda x: cc.reshape(x, (2, 6)), "shapeless")
    refused(lambda x: x[: x.shape[0] // 2, : x.shape[1] // 2], "no polynomial")
    refused(lambda x: cc.exp(x) if x.size < 20 else x, "something else for")
    refused(lambda x: x + cc.array(np.arange(x.size, dtype="f4").reshape(x.shape)), "other arrays")


def test_what_is_imported_is_a_function_like_others(path):
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    cc.export_function(path, net, cc.zeros((4, 2)))
    fun = cc.import_function(path)
    given = cc.array(np.linspace(-1, 1, 8, dtype="f4").reshape(4, 2))
    assert cc.allclose(fun(given)[0], net(given), atol=1e-6)
    slope = cc.grad(lambda v: fun(v)[0].sum())(given)
    assert cc.allclose(slope, cc.grad(lambda v: net(v).sum())(given))
    batch = cc.stack([given, -given])
    assert cc.allclose(cc.vmap(lambda v: fun(v)[0])(batch), net(batch), atol=1e-6)
    assert cc.array_equal(cc.compile(lambda v: fun(v)[0])(given), fun(given)[0])


def test_a_checkpoint_stays_one(path):
    # MLX writes none.
    cc.export_function(path, cc.checkpoint(lambda v: cc.sin(v)), x)
    slope = cc.grad(lambda v: cc.import_function(path)(v)[0].sum())(x)
    assert cc.allclose(slope, cc.cos(x))


def test_derivatives_that_stay_behind(path):
    @cc.custom_function
    def own(x):
        return cc.exp(x)

    @own.vjp
    def own_vjp(primals, cotangents, outputs):
        return cotangents

    cc.export_function(path, own, x)
    fun = cc.import_function(path)
    assert cc.array_equal(fun(x)[0], cc.exp(x))
    with pytest.raises(ValueError, match="no part of the package"):
        cc.eval(cc.grad(lambda v: fun(v)[0].sum())(x))


def test_a_training_step_is_a_function(path):
    def step(w, x):
        loss, slope = cc.value_and_grad(lambda w: ((x @ w - 1) ** 2).mean())(w)
        return loss, w - 0.1 * slope

    w, data = cc.zeros((3,)), cc.array(np.random.default_rng(0).normal(size=(8, 3)).astype("f4"))
    cc.export_function(path, step, w, data)
    again = cc.import_function(path)
    losses = []
    for _ in range(3):
        want = step(w, data)
        loss, w = again(w, data)
        assert cc.allclose(loss, want[0]) and cc.allclose(w, want[1])
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_bad_files(tmp_path, path):
    with pytest.raises(RuntimeError, match="none"):
        cc.import_function(str(tmp_path / "none"))
    for content in (b"", b"hello world, this is nothing", b"PK\5\6" + bytes(18)):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(RuntimeError, match="bad"):
            cc.import_function(str(tmp_path / "bad"))
    for name in ("nowhere/f", ""):
        with pytest.raises(RuntimeError):
            cc.export_function(str(tmp_path / name) if name else "", cc.abs, x)
    with pytest.raises(RuntimeError):
        cc.exporter(str(tmp_path / "nowhere" / "f"), cc.abs)
    with pytest.raises(TypeError):
        cc.import_function(3)
    cc.export_function(path, cc.abs, x)
    with pytest.raises(ValueError, match="'main'"):
        cc.import_function(path, name="other")


def test_other_programs_read_packages(tmp_path, path):
    weight = cc.array(np.arange(100, dtype="f4"))
    cc.export_function(path, lambda x: x[0] * weight, x)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        entries = archive.infolist()
        assert sorted(e.filename for e in entries) == [
            "graph.bin",
            "manifest.json",
            "weights.safetensors",
        ]
        archive.extractall(tmp_path / "folder")
    want = cc.import_function(path)(x)[0]
    assert cc.array_equal(cc.import_function(str(tmp_path / "folder"))(x)[0], want)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        again = str(tmp_path / "again")
        with zipfile.ZipFile(again, "w", method) as archive:
            for file in (tmp_path / "folder").iterdir():
                archive.write(file, file.name)
        if method == zipfile.ZIP_STORED:
            assert cc.array_equal(cc.import_function(again)(x)[0], want)
        else:
            with pytest.raises(RuntimeError, match="compressed"):
                cc.import_function(again)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("graph.bin", b"")
    with pytest.raises(RuntimeError, match="twice"):
        cc.import_function(path)


def test_drawings(tmp_path):
    def lines(m):
        a = m.array([1.0, 2.0])
        m.eval(a)
        b = m.exp(a)
        text = io.StringIO()
        m.export_to_dot(text, b + a, a=a, b=b)
        m.export_to_dot(str(tmp_path / "d.dot"), b + a, a=a)
        assert (tmp_path / "d.dot").read_text().startswith("digraph {")
        # Boxes have numbers of their own.
        keep = [line for line in text.getvalue().splitlines() if "shape" not in line]
        return [line.split("->")[0].strip() if line.startswith('"') else line[:12] for line in keep]

    ours, theirs = lines(cc), lines(mlx)
    assert [line for line in ours if not line[0].isdigit()] == [
        line for line in theirs if not line[0].isdigit()
    ]
    for bad in (3, None):
        with pytest.raises(ValueError, match="file-like"):
            cc.export_to_dot(bad, x)


def test_what_is_repeated_is_kept_once_and_for_any_size(tmp_path):
    bias, scale = cc.array([1.0, 2.0, 3.0]), cc.broadcast_to(cc.array([2.0]), (2, 3))
    cc.eval(bias, scale)
    path = str(tmp_path / "f.cupola")
    cc.export_function(path, lambda x: (x + bias) * scale[0], cc.ones((2, 3)), shapeless=True)
    (y,) = cc.import_function(path)(cc.ones((5, 3)))
    assert y.tolist() == [[4.0, 6.0, 8.0]] * 5
    long = str(tmp_path / "long.cupola")
    cc.export_function(long, lambda x: x + bias, cc.ones((200_000, 3)))
    assert os.path.getsize(long) < 100_000
