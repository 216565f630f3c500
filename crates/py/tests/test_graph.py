"""Graphs by name: sizes that runs bind, functions over shared variables, gradients, errors that name."""

import threading
from pathlib import Path

import numpy as np
import pytest

import cupola.core as mx
import cupola.nn as nn
from cupola.graph import Graph

from conftest import DEVICE


def line():
    """A line with its loss, slopes and a step of training."""
    g = Graph()
    x = g.placeholder("x", ("batch", 2))
    wanted = g.placeholder("wanted", ("batch",))
    w, b = g.variable("w", mx.zeros(2)), g.variable("b", mx.array(0.0))
    y = g.matmul(x, w, name="product") + b
    loss = g.square(y - wanted).mean()
    slopes = g.gradients(loss, [w, b])
    g.function("predict", {"y": y})
    g.function("slopes", {"w": slopes[0], "b": slopes[1]})
    g.function("train", {"loss": loss}, assign={w: w - 0.1 * slopes[0], b: b - 0.1 * slopes[1]})
    return g


X = np.array([[1, 0], [0, 1], [1, 1]], "f4")
WANTED = np.array([3, 0, 4], "f4")


def test_functions_share_variables_and_training_changes_them():
    g = line()
    train = g.compile(DEVICE, "train")
    slopes = train.function("slopes").run({"x": X, "wanted": WANTED})
    np.testing.assert_allclose(slopes["w"], [-14 / 3, -8 / 3], rtol=1e-5)
    losses = [train.run({"x": X, "wanted": WANTED})["loss"].item() for _ in range(300)]
    assert losses[-1] < losses[0] * 1e-3
    predict = train.function("predict")
    assert predict.inputs == ["x"] and predict.outputs == ["y"]
    for rows in (1, 5):
        y = predict.run({"x": np.ones((rows, 2), "f4")})["y"]
        np.testing.assert_allclose(y, np.full(rows, 4.0), atol=0.1)
    np.testing.assert_allclose(g.variables["w"].value, [4, 1], atol=0.2)


def test_every_function_is_there_under_its_name():
    g = Graph()
    x = g.placeholder("x", ("n", 4))
    parts = g.split(x, 2, axis=1, name="halves")
    assert [part.shape for part in parts] == [("n", 2)] * 2
    drawn = g.random.uniform(shape=(3,), key=mx.random.key(0))
    normed = g.fast.layer_norm(x, None, None, 1e-5)
    outputs = {
        "softmax": g.softmax(x, axis=-1),
        "first": parts[0],
        "flat": g.reshape(x, (-1,)),
        "drawn": drawn,
        "normed": normed,
        "norm": g.linalg.norm(x, axis=1),
        "picked": x[:, 1:3].sum(axis=0).astype(mx.int32),
    }
    assert outputs["flat"].shape == ("?",) and outputs["picked"].dtype == mx.int32
    g.function("all", outputs)
    given = np.random.default_rng(0).normal(size=(3, 4)).astype("f4")
    got = g.compile(DEVICE).run({"x": given})
    array = mx.array(given)
    np.testing.assert_allclose(got["softmax"], mx.softmax(array, -1), rtol=1e-5)
    np.testing.assert_array_equal(got["first"], given[:, :2])
    np.testing.assert_array_equal(got["drawn"], mx.random.uniform(shape=(3,), key=mx.random.key(0)))
    np.testing.assert_allclose(got["norm"], np.linalg.norm(given, axis=1), rtol=1e-5)
    for name in ("eval", "no_such_function", "grad", "Device"):
        with pytest.raises(AttributeError, match=name):
            getattr(g, name)
    with pytest.raises(AttributeError, match="item"):
        x.item()


def test_sizes_may_be_used_as_numbers():
    g = Graph()
    x = g.placeholder("x", ("rows", "columns"))
    g.function("mean", {"mean": g.call(lambda x: x.reshape(-1).sum() / x.size, x)})
    mean = g.compile(DEVICE, sizes=[{"rows": 2, "columns": 3}])
    for rows, columns in ((1, 1), (2, 3), (5, 1)):
        given = np.arange(rows * columns, dtype="f4").reshape(rows, columns)
        assert mean.run({"x": given})["mean"].item() == given.mean()


def test_errors_name_the_node_and_the_feed():
    g = Graph()
    x = g.placeholder("x", ("batch", 3))
    with g.scope("block"), pytest.raises(ValueError, match=r"^node 'block/product' \(matmul\): "):
        g.matmul(x, mx.ones((2, 2)), name="product")
    assert g.matmul(x, mx.ones((3, 2)), name="product").shape == ("batch", 2)
    with pytest.raises(ValueError, match="'product' is there twice"):
        g.abs(x, name="product")
    with pytest.raises(ValueError, match="no node of this graph"):
        g.add(x, Graph().placeholder("x", ()))
    # What only some sizes fit shows where these are fed.
    g.function("halved", {"y": g.reshape(x, (-1, 2), name="pairs")})
    with pytest.raises(ValueError, match=r"^node 'pairs' \(reshape\): "):
        g.compile(DEVICE).run({"x": np.zeros((3, 3), "f4")})
    train = line().compile(DEVICE, "train")
    with pytest.raises(ValueError, match="feed 'wanted' is missing: .*float32.batch."):
        train.run({"x": X})
    with pytest.raises(ValueError, match="'batch' is 3 in feed 'x'"):
        train.run({"x": X, "wanted": WANTED[:2]})
    with pytest.raises(ValueError, match=r"feed 'z': the function takes \[x, wanted\]"):
        train.run({"x": X, "z": WANTED})
    for wrong in (X.astype("f2"), X[0], X[:, :1]):
        with pytest.raises(ValueError, match=r"feed 'x' is .*float32\[batch, 2\]"):
            train.run({"x": wrong, "wanted": WANTED})
    with pytest.raises(ValueError, match="no function 'test'"):
        train.function("test")
    with pytest.raises(ValueError, match="'batch'"):
        train.graph.compile(DEVICE, sizes=[{}])


def test_a_handler_gets_results_or_the_error():
    train, alone = line().compile(DEVICE, "train"), line().compile(DEVICE, "train")
    feeds, seen = {"x": X, "wanted": WANTED}, []
    own = threading.get_ident()

    def on_done(results, error):
        seen.append((threading.get_ident(), results, error))

    runs = [train.run_async(feeds, on_done) for _ in range(10)]
    losses = [run.result()["loss"].item() for run in runs]
    assert losses == [alone.run(feeds)["loss"].item() for _ in range(10)]
    failed = train.run_async({}, on_done)
    with pytest.raises(ValueError, match="missing"):
        failed.result()
    assert len(seen) == 11 and all(thread != own for thread, _, _ in seen)
    assert all(error is None and results for _, results, error in seen[:10])
    assert seen[10][1] is None and "missing" in str(seen[10][2])


def test_encoded_runs_follow_each_other():
    train = line().compile(DEVICE, "train")
    stream = mx.new_stream(DEVICE)
    runs = [train.encode(stream, {"x": X, "wanted": WANTED}) for _ in range(10)]
    losses = [run["loss"].item() for run in runs]
    assert all(after < before for before, after in zip(losses, losses[1:]))


def test_a_run_that_fails_leaves_the_variables():
    g = Graph()
    at = g.placeholder("at", (1,), mx.int32)
    table = g.variable("table", mx.ones(4))
    picked = g.take(table, at).sum()
    g.function("pick", {"sum": picked}, assign={table: table + picked})
    pick = g.compile(mx.cpu)
    with pytest.raises(Exception, match="index 9"):
        pick.run({"at": [9]})
    np.testing.assert_array_equal(table.value, np.ones(4))
    pick.run({"at": [1]})
    np.testing.assert_array_equal(table.value, np.full(4, 2))
    with pytest.raises(ValueError, match="table"):
        table.value = mx.ones(3)


def test_gradients_and_the_forward_way_draw_the_same():
    """Dropout: what a gradient goes through is computed once, also where there are two gradients."""
    g = Graph()
    x = g.placeholder("x", (64,))
    w, v = g.variable("w", mx.ones(64)), g.variable("v", mx.ones(64))
    kept = g.call(nn.Dropout(0.5), x * w, name="dropout")
    loss = (kept * v).sum()
    other = (kept * kept).sum() / 2
    slope, second = g.gradients(loss, [w]), g.gradients(other, [w])
    g.function("f", {"kept": kept, "slope": slope[0], "second": second[0]})
    run = g.compile(DEVICE)
    first = run.run({"x": np.ones(64, "f4")})
    np.testing.assert_array_equal(first["kept"], first["slope"])
    np.testing.assert_array_equal(np.array(first["kept"]) * 2 * (np.array(first["kept"]) > 0), first["second"])
    again = run.run({"x": np.ones(64, "f4")})
    assert not np.array_equal(first["kept"], again["kept"])


def test_gradients_of_gradients():
    g = Graph()
    x = g.variable("x", mx.array([1.0, 2.0]))
    (first,) = g.gradients((x * x * x).sum(), [x])
    (second,) = g.gradients(first.sum(), [x])
    unrelated = g.gradients((g.variable("y", mx.array(2.0)) * 3), [x])[0]
    g.function("f", {"first": first, "second": second, "unrelated": unrelated})
    got = g.compile(DEVICE).run({})
    np.testing.assert_array_equal(got["first"], [3, 12])
    np.testing.assert_array_equal(got["second"], [6, 12])
    np.testing.assert_array_equal(got["unrelated"], [0, 0])
    with pytest.raises(ValueError, match="made from another"):
        g.gradients((x * 2).sum(), [x, x * 2])
    double = x * 2
    with pytest.raises(ValueError, match="made from another"):
        g.gradients(double.sum(), [x, double])
    with pytest.raises(ValueError, match="one real number"):
        g.gradients(x * 2, [x])


def shaken():
    g = Graph()
    x, wanted = g.placeholder("x", ("batch", 2)), g.placeholder("wanted", ("batch",))
    w, scale = g.variable("w", mx.zeros(2)), g.variable("scale", mx.array(2.0))
    y = g.matmul(x, w) * scale
    loss = g.square(y - wanted).sum()
    (slope,) = g.gradients(loss, [w])
    g.function("predict", {"y": y})
    g.function("train", {"loss": loss}, assign={w: w - 0.01 * slope})
    noise = g.random.normal((2,))
    g.function("shake", {"noise": noise}, assign={w: w + noise})
    return g, w


def test_functions_are_saved_as_a_package(tmp_path):
    g, w = shaken()
    train = g.compile(DEVICE, "train")
    x, wanted = mx.array([[1.0, 2.0], [2.0, -1.0], [0.5, 0.5]]), mx.array([1.0, -1.0, 0.0])
    train.run({"x": x, "wanted": wanted})
    path = tmp_path / "line.cupola"
    train.save(path, metadata="a line")
    # What assigns nothing holds what was learnt, for any number of rows.
    predict, text = mx.import_function(str(path), True, name="predict")
    assert text == "a line"
    for rows in (2, 7):
        more = mx.random.normal((rows, 2))
        want = train.function("predict").run({"x": more})["y"]
        np.testing.assert_array_equal(predict(more)[0], want)
    # What does takes the variable, and gives it on.
    learn = mx.import_function(str(path), name="train")
    state, losses = w.value, []
    for _ in range(20):
        loss, state = learn(x, wanted, state)
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    # What draws takes a key, and gives the next one.
    shake = mx.import_function(str(path), name="shake")
    noise, moved, key = shake(state, mx.random.key(0))
    np.testing.assert_array_equal(moved, state + noise)
    assert mx.array_equal(shake(state, mx.random.key(0))[0], noise)
    assert not mx.array_equal(shake(state, key)[0], noise)
    # A binding of the sizes is a trace.
    train.save(path, sizes=[{"batch": 3}])
    predict = mx.import_function(str(path), name="predict")
    np.testing.assert_array_equal(predict(x)[0], train.function("predict").run({"x": x})["y"])
    with pytest.raises(ValueError, match="which matches"):
        predict(mx.ones((4, 2)))


def test_a_graph_that_depends_on_sizes_says_so(tmp_path):
    g = Graph()
    x = g.placeholder("x", ("rows",))
    g.function("sum", {"y": g.call(lambda x: x * x.shape[0], x), "half": g.call(lambda x: x[: len(x) // 2], x)})
    executable = g.compile(DEVICE)
    with pytest.raises(ValueError, match="no polynomial"):
        executable.save(tmp_path / "a.cupola")
    executable.save(tmp_path / "a.cupola", sizes=[{"rows": 2}, {"rows": 5}])
    found = mx.import_function(str(tmp_path / "a.cupola"), name="sum")
    assert found(mx.ones(5))[0].tolist() == [5.0] * 5 and found(mx.ones(2))[0].tolist() == [2.0] * 2


def test_the_examples_of_the_documentation():
    text = (Path(__file__).parents[3] / "docs" / "graphs.md").read_text()
    blocks = text.split("```python\n")[1:]
    assert len(blocks) == 3
    mx.random.seed(0)
    for block in blocks:
        exec(compile(block.split("```")[0], "graphs.md", "exec"), {})
