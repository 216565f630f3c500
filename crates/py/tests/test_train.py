"""`cupola.train`: callbacks of a training, and batches in parts."""

import json

import numpy as np
import pytest

import cupola.core as mx
import cupola.nn as nn
import cupola.optimizers as optim
from cupola import data, train
from cupola.utils import tree_flatten


def test_hooks_are_told_in_order():
    told = []

    class Watch(train.Callback):
        def __init__(self, name, ends=False):
            self.name, self.ends = name, ends

        def step(self, at):
            told.append((self.name, "step", at.epoch, at.step, at.metrics))

        def epoch(self, at):
            told.append((self.name, "epoch", at.epoch, at.step, at.metrics))
            return self.ends

        def end(self):
            told.append((self.name, "end"))

    model = nn.Linear(2, 1)
    callbacks = train.Callbacks(model, [Watch("a", ends=True)])
    callbacks.add(Watch("b"))
    assert not callbacks.step(loss=mx.array(0.5))
    assert callbacks.epoch(loss=1)
    callbacks.end()
    assert told == [
        ("a", "step", 1, 1, {"loss": 0.5}),
        ("b", "step", 1, 1, {"loss": 0.5}),
        ("a", "epoch", 1, 1, {"loss": 1.0}),
        ("b", "epoch", 1, 1, {"loss": 1.0}),
        ("a", "end"),
        ("b", "end"),
    ]


@pytest.mark.parametrize("goal, losses, ends", [
    ("least", [3, 2, 2, 1, 1, 1], [0, 0, 0, 0, 0, 1]),
    ("greatest", [1, 2, 3, 3, 2], [0, 0, 0, 0, 1]),
])  # fmt: skip
def test_early_stopping(goal, losses, ends):
    model = nn.Linear(2, 1)
    stopping = train.EarlyStopping("loss", 2, goal)
    callbacks = train.Callbacks(model, [stopping])
    assert [callbacks.epoch(loss=loss) for loss in losses] == ends
    assert stopping.best == (max(losses) if goal == "greatest" else min(losses), 2)
    # A training that goes on ends where it would have.
    resumed = train.Callbacks(model, [train.EarlyStopping("loss", 2, goal)])
    assert not resumed.resume([{"loss": loss} for loss in losses[:-1]], steps=10)
    assert resumed.epoch(loss=losses[-1]) and resumed.epochs == len(losses)
    nearly = train.Callbacks(model, [train.EarlyStopping("loss", 1, by=0.5)])
    assert [nearly.epoch(loss=loss) for loss in (2, 1.6)] == [False, True]


def test_the_best_weights_are_kept(tmp_path):
    model, path = nn.Linear(2, 1), tmp_path / "best.safetensors"
    callbacks = train.Callbacks(model, [train.KeepBest("loss", path)])
    kept = None
    for loss in (2.0, 1.0, 3.0, float("nan")):
        model.weight = mx.full((1, 2), loss)
        callbacks.epoch(loss=loss)
        kept = mx.load(str(path))["weight"].tolist()
    assert kept == [[1.0, 1.0]]
    # What was best before is not written over by what is worse.
    resumed = train.Callbacks(model, [train.KeepBest("loss", path)])
    resumed.resume([{"loss": 0.5}], steps=3)
    resumed.epoch(loss=0.7)
    assert mx.load(str(path))["weight"].tolist() == [[1.0, 1.0]]


def test_files_are_written(tmp_path):
    model = nn.Linear(2, 1)
    lines, table, page = (tmp_path / name for name in ("m.jsonl", "m.csv", "r.html"))
    board = train.TensorBoard(tmp_path / "board", every=2)
    callbacks = train.Callbacks(model, [
        train.MetricsFile(lines, every=2),
        train.MetricsFile(table),
        board,
        train.Report(page, "<A>", {"rate": 0.1}),
    ])  # fmt: skip
    for epoch in range(2):
        for step in range(2):
            callbacks.step(loss=step)
        callbacks.epoch(train_loss=0.5, val_loss=0.25 * epoch)
    # An epoch under way.
    for loss in (1.0, 2.0, 6.0):
        callbacks.step(loss=loss)
    callbacks.end()
    assert [json.loads(line) for line in lines.read_text().splitlines()] == [
        {"epoch": 1, "step": 2, "loss": 1.0},
        {"epoch": 1, "train_loss": 0.5, "val_loss": 0.0},
        {"epoch": 2, "step": 4, "loss": 1.0},
        {"epoch": 2, "train_loss": 0.5, "val_loss": 0.25},
        {"epoch": 3, "step": 6, "loss": 2.0},
        {"epoch": 3, "steps": 3, "loss": 3.0},
    ]
    assert table.read_text() == "epoch,steps,train_loss,val_loss,loss\n1,,0.5,0,\n2,,0.5,0.25,\n3,3,,,3\n"
    events = board.path.read_bytes()
    assert events.count(b"train/loss") == 3 and events.count(b"epoch/val_loss") == 2
    text = page.read_text()
    assert "<h1>&lt;A&gt;</h1>" in text and "rate" in text and text.count("<polyline") == 2


@pytest.mark.parametrize("stop, is_told", [(None, True), (KeyboardInterrupt, True), (ValueError, False)])
def test_a_block_ends_with_the_end_but_for_errors(tmp_path, stop, is_told):
    lines = tmp_path / "metrics.jsonl"

    def trains():
        with train.Callbacks(nn.Linear(2, 1), [train.MetricsFile(lines)]) as callbacks:
            callbacks.step(loss=2.0)
            if stop:
                raise stop

    if stop:
        with pytest.raises(stop):
            trains()
    else:
        trains()
    assert lines.exists() == is_told
    if is_told:
        assert json.loads(lines.read_text()) == {"epoch": 1, "steps": 1, "loss": 2.0}


def test_bad_input(tmp_path):
    model = nn.Linear(2, 1)
    for wrong in (
        lambda: train.EarlyStopping("loss", 0),
        lambda: train.EarlyStopping("loss", 1, "lowest"),
        lambda: train.EarlyStopping("loss", 1, by=-1.0),
        lambda: train.KeepBest("loss", "x", "lowest"),
        lambda: train.MetricsFile("x", every=0),
        lambda: train.TensorBoard(tmp_path / "b", every=0),
        lambda: train.Callbacks(model, [train.EarlyStopping("val_loss", 1)]).epoch(loss=1),
        lambda: train.Callbacks(model).epoch(loss="low"),
        lambda: train.accumulate(lambda x: x, 0, mx.ones(3)),
        lambda: train.accumulate(lambda x: x, 2),
        lambda: train.accumulate(lambda x, y: x, 2, mx.ones(3), mx.ones(2)),
        lambda: train.accumulate(lambda x: x, 2, mx.ones((0, 2))),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(ValueError, match=r"no metric 'val_loss', only \[loss\]"):
        train.Callbacks(model, [train.KeepBest("val_loss", tmp_path / "x")]).epoch(loss=1)
    with pytest.raises(RuntimeError, match="nowhere"):
        train.Callbacks(model, [train.MetricsFile(tmp_path / "nowhere" / "x")]).epoch(loss=1)


@pytest.mark.parametrize("parts", [1, 3, 8, 20])
def test_parts_of_a_batch_give_what_the_whole_gives(parts):
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    x, y = mx.array(rng.standard_normal((8, 3)).astype(np.float32)), mx.array(np.arange(8) % 2)

    def loss(x, y):
        scores = model(x)
        return nn.losses.cross_entropy(scores, y, reduction="mean"), (scores.argmax(1) == y).sum()

    step = nn.value_and_grad(model, loss)
    (value, right), gradients = step(x, y)
    (found, found_right), found_gradients = train.accumulate(step, parts, x, y)
    assert found_right.item() == right.item()
    assert found.item() == pytest.approx(value.item(), rel=1e-5)
    for (name, a), (_, b) in zip(tree_flatten(gradients), tree_flatten(found_gradients)):
        assert np.allclose(np.array(a), np.array(b), atol=1e-6), name
    optim.SGD(0.1).update(model, found_gradients)


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_may_give_numbers_and_none(parts):
    give = lambda x: {"mean": float(len(x)), "count": len(x), "none": None, "sum": x.sum()}
    found = train.accumulate(give, parts, mx.arange(6))
    assert found["none"] is None and found["mean"].item() == 6 / parts
    assert (found["count"].item(), found["sum"].item()) == (6, 15)
    assert train.accumulate(lambda x: 3.0, parts, mx.arange(6)).item() == 3.0
    assert train.accumulate(lambda x: None, parts, mx.arange(6)) is None


def test_what_is_no_number_counts_as_no_epoch():
    callbacks = train.Callbacks(nn.Linear(2, 1))
    with pytest.raises(ValueError):
        callbacks.epoch(loss="low")
    with pytest.raises(TypeError):
        callbacks.step(loss=None)
    assert (callbacks.epochs, callbacks.steps) == (0, 0)


def test_images_change():
    images, _ = data.digits(train=8, test=1)[0].arrays()
    key = mx.random.key(1)
    flipped = np.array(data.random_flip(images, key))
    given = np.array(images)
    both = [(a == b).all() or (a == b[:, ::-1]).all() for a, b in zip(flipped, given)]
    assert all(both) and not (flipped == given).all()
    assert data.random_crop(images, 2, key=key).shape == images.shape
    assert (np.array(data.random_crop(images, 0)) == given).all()
    with pytest.raises(ValueError, match="random_crop: padding: -1 must not be negative"):
        data.random_crop(images, -1)
    train_set, _ = data.digits(train=20, test=1)
    mean, std = train_set.normalization()
    scaled = np.array(train_set.normalized(mean, std).arrays()[0])
    assert abs(scaled.mean()) < 1e-4 and abs(scaled.std() - 1) < 1e-3
    again = np.array(data.normalize(train_set.arrays()[0], mean, std))
    assert np.allclose(scaled, again, atol=1e-5)
    for wrong in (
        lambda: data.random_flip(mx.ones((2, 3))),
        lambda: data.normalize(mx.ones((2, 3)), [0.0], [1.0]),
        lambda: data.normalize(mx.ones((2, 1)), [0.0], [0.0]),
        lambda: data.normalize(mx.ones((2, 1), mx.int32), [0.0], [1.0]),
        lambda: train_set.normalized([0.0, 0.0], [1.0, 1.0]),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_what_is_no_callback_is_told_at_once():
    class Mine:
        def epoch(self, at):
            return True

    for make in (lambda: train.Callbacks(nn.Linear(2, 1), [Mine()]), lambda: train.Callbacks(nn.Linear(2, 1)).add(Mine())):
        with pytest.raises(TypeError, match="a Mine is no cupola.train.Callback"):
            make()


def test_a_report_tells_of_classes_and_images(tmp_path):
    report = train.Report(tmp_path / "report.html")
    callbacks = train.Callbacks(nn.Linear(2, 1), [report])
    callbacks.epoch(val_loss=0.5)
    report.unfinished(2, steps=7, val_loss=mx.array(0.25))
    report.confusion(mx.array([0, 1, 1, 2]), [0, 1, 2, 2], ["cat & dog", "b", "c"])
    report.confusion([20000, 20000, 1], [5, 5, 1])
    report.pictures(mx.full((2, 5, 4, 3), 7, dtype=mx.uint8), ["b for c\n99 %", "<c>"], about="2 images")
    callbacks.end()
    page = (tmp_path / "report.html").read_text()
    assert "0 cat &amp; dog" in page and page.count("data:image/png;base64,") == 2
    assert "<td>2, 7 steps</td>" in page and "<td>20000</td><td>5</td><td>2</td>" in page
    assert "b for c<br>99 %" in page and "&lt;c&gt;" in page and "2 images" in page


def test_what_a_report_cannot_show_is_refused(tmp_path):
    report = train.Report(tmp_path / "report.html")
    for labels, predicted in [([0, 3], [0, 0]), ([0], [0, 1]), ([0, -1], [0, 0]), ([[0, 1]], [0, 1])]:
        with pytest.raises(ValueError, match="Report"):
            report.confusion(labels, predicted, ["a", "b"])
    with pytest.raises(ValueError, match="65535"):
        report.confusion([10**9], [0])
    with pytest.raises(TypeError, match="vector of integers, not .*float32"):
        report.confusion([0.7, 1.9], [0, 1])
    with pytest.raises(TypeError, match="classes are a sequence of strings"):
        report.confusion([0, 1], [0, 1], "ab")
    for shape in [(1, 0, 4, 1), (1, 4, 4, 0)]:
        with pytest.raises(ValueError, match="Report"):
            report.pictures(mx.zeros(shape, dtype=mx.uint8), ["a"])
    for images, captions in [(mx.zeros((1, 2, 2, 1)), ["a"]), (mx.zeros((1, 2, 2), dtype=mx.uint8), ["a"])]:
        with pytest.raises(ValueError, match="uint8"):
            report.pictures(images, captions)
    with pytest.raises(ValueError, match="2 images, but 1 captions"):
        report.pictures(mx.zeros((2, 2, 2, 1), dtype=mx.uint8), ["a"])
    with pytest.raises(ValueError, match="not 2"):
        report.pictures(mx.zeros((1, 2, 2, 2), dtype=mx.uint8), ["a"])


def test_a_report_that_cannot_be_written_is_told_after_the_first_step(tmp_path):
    callbacks = train.Callbacks(nn.Linear(2, 1), [train.Report(tmp_path / "missing" / "report.html")])
    with pytest.raises(RuntimeError, match="missing"):
        callbacks.step(loss=0.5)
