"""What memory is used for, bounded, and followed over time."""

import gc
import json
import pathlib
import re
import xml.dom.minidom

import numpy as np
import pytest

import cupola.core as mx

MIB = 1 << 20


@pytest.fixture
def unbounded():
    before = mx.get_hard_memory_limit()
    yield
    mx.set_hard_memory_limit(before)


def test_stats_count_what_is_held():
    mx.synchronize()
    before = mx.memory_stats()
    x = mx.ones((MIB,), dtype=mx.float32) * 2
    mx.eval(x)
    during = mx.memory_stats()
    assert during["active"] - before["active"] >= 4 * MIB
    assert during["by_op"]["multiply"] - before["by_op"].get("multiply", 0) == 4 * MIB
    assert during["peak"] >= during["active"]
    assert during["driver_allocated"] == during["active"] + during["cached"]
    del x
    assert mx.memory_stats()["by_op"].get("multiply", 0) == before["by_op"].get("multiply", 0)


def test_what_is_small_has_no_name():
    x = mx.ones((3,)) / 7
    mx.eval(x)
    assert "divide" not in mx.memory_stats()["by_op"]


def test_what_lives_briefly_takes_what_is_free():
    """Of products that halve, each lies in the memory of the one before the last."""
    with mx.stream(mx.cpu):
        x, weights = mx.ones((512, 4096)), [mx.ones((2 << k, 1 << k)) for k in range(11, 4, -1)]
        mx.eval(x, weights)

        def chain():
            y = x
            for w in weights:
                y = y @ w
            mx.eval(y)
            return y

        chain()
        mx.clear_cache()
        before = mx.get_active_memory()
        mx.reset_peak_memory()
        assert chain()[0, 0].item() == 2.0**63
        rows = (mx.get_peak_memory() - before) / (512 * 4)
        assert rows < (2048 + 1024 + 32) * 1.05


def test_freed_memory_goes_back():
    x = mx.zeros((4 * MIB,)) + 1
    mx.eval(x)
    del x
    mx.empty_cache()
    assert mx.memory_stats()["cached"] < MIB


def test_a_view_is_held_by_what_made_its_memory():
    x = mx.ones((512, 512)) - 4
    y = x.T[1:]
    mx.eval(x, y)
    names = mx.memory_stats()["by_op"]
    assert names["subtract"] == MIB and "transpose" not in names and "slice" not in names


def test_a_part_of_the_memory(unbounded):
    most = mx.recommended_max(mx.cpu)
    assert mx.set_memory_fraction(0.25, mx.cpu) == most // 4 == mx.get_hard_memory_limit()
    for wrong in [0, -0.5, 1.5, float("nan")]:
        with pytest.raises(ValueError, match="set_memory_fraction"):
            mx.set_memory_fraction(wrong, mx.cpu)
    assert mx.get_hard_memory_limit() == most // 4


@pytest.mark.parametrize("function", ["set_cache_limit", "set_memory_limit", "set_hard_memory_limit", "set_wired_limit"])
def test_limits_are_numbers_of_bytes(function):
    for wrong in [-1, 2**64, 1.5, "1 GB", None]:
        with pytest.raises(TypeError, match="limit"):
            getattr(mx, function)(wrong)


def test_too_little_memory_names_who_holds_most(unbounded):
    held = [mx.full((n * MIB // 4,), n) * 1.5 for n in range(1, 8)]
    mx.eval(held)
    mx.set_hard_memory_limit(mx.get_active_memory() + MIB)
    y = mx.exp(held[-1])
    with pytest.raises(MemoryError) as raised:
        mx.eval(y)
    text = str(raised.value)
    assert text.count("multiply float32") >= 5 and "7.0 MiB" in text and "(2.0 MiB" not in text, text
    mx.set_hard_memory_limit(2**63 - 1)
    assert mx.allclose(y, mx.exp(held[-1])), "the process goes on"


def test_arrays_of_host_data_keep_to_the_limit(unbounded):
    data = np.ones(MIB // 4, np.float32)
    # What others left in cycles would make room meanwhile.
    gc.collect()
    mx.set_hard_memory_limit(mx.get_active_memory() + 3 * MIB)
    held = [mx.array(data)]
    with pytest.raises(MemoryError, match="an array, where the limit is"):
        held += [mx.array(data) for _ in range(5)]
    assert mx.get_active_memory() <= mx.get_hard_memory_limit()
    mx.set_hard_memory_limit(2**63 - 1)
    assert held[0].sum().item() == data.size


def peak_of(f):
    """The memory that a second evaluation of what `f` gives takes at most, in MiB; `f` gives what it holds no more."""
    for _ in range(2):
        result = f()
        before = mx.get_active_memory()
        mx.reset_peak_memory()
        mx.eval(result)
        peak = (mx.get_peak_memory() - before) / MIB
        del result
    return peak


def test_what_is_kept_for_a_gradient_does_not_hide_what_is_free():
    layers, size = 120, 128
    weights = [mx.random.normal((size, size)) / size**0.5 for _ in range(layers)]
    x = mx.random.normal((size, size))
    mx.eval(weights, x)

    def loss(weights):
        y = x
        for weight in weights:
            y = y @ weight
        return mx.sum(y)

    # Each gradient takes the memory of what is kept no longer.
    assert peak_of(lambda: mx.grad(loss)(weights)) < 1.1 * layers * size * size * 4 / MIB


def test_memory_that_is_given_away_is_used_again_and_again():
    n = 1024
    x, y = mx.random.normal((n, 16)), mx.random.normal((16, n))
    mx.eval(x, y)

    def work():
        big = mx.random.normal((n, n))
        mx.eval(big)
        total = mx.sum(big, axis=0, keepdims=True)
        # As large as what is given away, whose memory it takes; then a quarter, twice.
        product = (mx.broadcast_to(total[:, :16], (n, 16)) + x) @ y
        column = mx.sum(product, axis=1, keepdims=True)
        return mx.sum(mx.cumsum((column[: n // 4] + x[: n // 4]) @ y, axis=1))

    assert peak_of(work) < 2.5


def test_memory_that_no_leaf_gave_is_used_again():
    x = mx.random.normal((512, 512))
    mx.eval(x)

    def work():
        y = mx.abs(x)
        for axis in range(3):
            y = mx.sort(y, axis=axis % 2)
        return mx.sum(y)

    assert peak_of(work) < 4.5


def test_history_names_lines():
    with mx.record_memory_history() as history:
        x = mx.ones((MIB,)) * 5
        mx.eval(x)
        y = x + x
        mx.eval(y)
        del x
    assert history.peak() >= 8 * MIB
    found = json.loads(history.to_json())
    lines = {c["line"] for c in found["changes"] if c["bytes"] and c.get("line")}
    assert len([line for line in lines if line.startswith("test_memory.py:")]) >= 2, lines
    assert any(c["bytes"] == 0 for c in found["changes"]), "what was freed"
    svg = history.to_svg()
    xml.dom.minidom.parseString(svg)
    assert "test_memory.py:" in svg and "add" in svg


def test_history_names_the_lines_of_what_is_made_on_the_way():
    x = mx.random.normal((256, 256))
    mx.eval(x)
    with mx.record_memory_history() as history:
        mx.eval((x @ x).T @ x)
    made = [c for c in json.loads(history.to_json())["changes"] if c["bytes"] and c["op"] == "matmul"]
    assert len({c["buffer"] for c in made}) == 2
    assert all(c["line"].startswith("test_memory.py:") for c in made), made


def test_history_names_what_one_step_makes_by_the_line_of_each():
    with mx.record_memory_history() as history:
        a = mx.ones((512, 512)) * 2
        b = mx.exp(a)
        mx.eval(a, b)
        a[0] = mx.take(b, mx.array([0]) + 0, axis=0)[0] + 1
        mx.eval(a)
    made = [(c["op"], c["line"]) for c in json.loads(history.to_json())["changes"] if c["bytes"]]
    assert len({line for _, line in made}) == len(made) == 3, made
    assert {op for op, _ in made[:2]} == {"multiply", "exp"} and made[2][0] != "update", made


def test_history_is_bounded_and_one_at_a_time(tmp_path):
    history = mx.record_memory_history(max_changes=3)
    with pytest.raises(ValueError, match="already"):
        mx.record_memory_history()
    with pytest.raises(ValueError, match="record_memory_history: -1 changes"):
        mx.record_memory_history(-1)
    for i in range(6):
        mx.eval(mx.ones((MIB,)) + i)
    history.stop()
    history.stop()
    found = json.loads(history.to_json())
    assert len(found["changes"]) == 3 and found["lost"] > 0
    history.save(tmp_path / "memory.svg")
    assert (tmp_path / "memory.svg").read_text().startswith("<svg")
    with pytest.raises(RuntimeError, match="nowhere"):
        history.save(tmp_path / "nowhere" / "memory.svg")


def test_the_documented_examples(unbounded, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = pathlib.Path(__file__).resolve().parents[3] / "docs" / "memory-and-streams.md"
    names = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        exec(code, names)
    assert (tmp_path / "memory.svg").exists() and mx.isfinite(names["z"]).all()


def test_a_history_that_is_dropped_ends():
    history = mx.record_memory_history()
    del history
    mx.record_memory_history().stop()
