"""The profiler from Python: lines, files, the environment."""

import json
import os
import subprocess
import sys
import threading
import warnings

import pytest

import cupola.core as mx
import cupola.nn as nn
from cupola import profiler


def steps(profile):
    events = json.loads(profile.to_json())["traceEvents"]
    return [event for event in events if event.get("cat") == "step"]


def test_steps_have_the_lines_that_recorded_them():
    x = mx.ones((21, 21))
    mx.eval(x)
    profiler.start()
    y = x @ x  # the line
    mx.eval(y)
    profile = profiler.stop()
    (product,) = [step for step in steps(profile) if step["name"] == "matmul"]
    here = test_steps_have_the_lines_that_recorded_them.__code__.co_firstlineno
    assert product["args"]["line"] == f"test_profiler.py:{here + 4}"
    assert product["args"]["inputs"][0] == "float32[21, 21]"
    assert product["args"]["operations"] == 2 * 21**3
    assert f"test_profiler.py:{here + 4}" in profile.table("line")
    with profiler.profile(lines=False) as found:
        mx.eval(x @ x + 1)
    assert all(step["args"]["line"] is None for step in steps(found.result))


def test_a_training_step(tmp_path):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    step = mx.compile(nn.value_and_grad(model, lambda x: model(x).square().mean()))
    with profiler.profile(tmp_path / "trace.json", "interval,event") as found:
        profiler.mark("step")
        mx.eval(step(mx.ones((4, 8))))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert {"plan", "evaluate", "matmul", "step"} <= {e["name"] for e in trace["traceEvents"]}
    assert len(found.result) > 3 and found.result.lost == 0 and found.result.length > 0
    found.result.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.maps = [nn.Linear(4, 4), nn.Linear(4, 4)]

    def __call__(self, x):
        for layer in self.maps:
            x = layer(x)  # the line
        return x


def test_steps_have_the_modules_that_recorded_them():
    model = nn.Sequential(Block(), nn.ReLU())
    x = mx.ones((3, 4))
    mx.eval(model.parameters(), x)
    with profiler.profile() as found:
        mx.eval(model(x))
    table = found.result.table("module")
    assert "Sequential.layers.0.maps.0" in table and "Sequential.layers.0.maps.1" in table
    line = Block.__call__.__code__.co_firstlineno + 2
    assert f"test_profiler.py:{line} " in found.result.table("line")


def test_all_threads_are_recorded():
    with profiler.profile() as found:
        threads = [threading.Thread(target=lambda: mx.eval(mx.ones((3, 3)) @ mx.ones((3, 3)))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    products = [step for step in steps(found.result) if step["name"] == "matmul"]
    assert len(products) == 2
    # A GPU's steps are in the order of its queue, whoever asked for them.
    on_cpu = mx.default_device() == mx.Device(mx.cpu)
    assert len({step["tid"] for step in products}) == (2 if on_cpu else 1)


def test_bad_input(tmp_path):
    with pytest.raises(ValueError, match="no profile is being recorded"):
        profiler.stop()
    with pytest.raises(ValueError, match="neither interval nor event"):
        profiler.start("intervals")
    for every in (0, -1, 2**32):
        with pytest.raises(ValueError, match=f"profiler: every is {every}, not in"):
            profiler.start(every=every)
    with profiler.profile() as found:
        with pytest.raises(ValueError, match="already"):
            profiler.start()
        with pytest.raises(RuntimeError, match="after the end"):
            found.result
    with pytest.raises(ValueError, match="by op, step, line or module"):
        found.result.table("file")
    with pytest.raises(RuntimeError, match="missing"):
        profiler.profile(tmp_path / "missing" / "trace.json")
    with pytest.raises(RuntimeError, match="missing"):
        found.result.save(tmp_path / "missing" / "trace.json")
    with pytest.raises(KeyError), profiler.profile():
        raise KeyError
    assert not profiler.is_running()


def test_a_profile_is_written_where_its_path_was_said(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with profiler.profile("trace.json"):
        os.chdir("other")
    assert [path.name for path in tmp_path.rglob("*.json")] == ["trace.json"]
    assert (tmp_path / "trace.json").exists()


def run(code, **environment):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)


def test_the_environment(tmp_path):
    code = "import cupola.core as mx; mx.eval(mx.ones((5, 5), stream=mx.cpu) @ mx.ones((5, 5)))"
    path = tmp_path / "trace.json"
    ran = run("import cupola.core as mx; mx.set_default_device(mx.cpu); " + code,
              CUPOLA_PROFILE=str(path), CUPOLA_LOG="ops")
    assert ran.returncode == 0, ran.stderr
    assert any(e["name"] == "matmul" for e in json.loads(path.read_text())["traceEvents"])
    assert "cupola: cpu matmul" in ran.stderr
    ran = run(code, CUPOLA_LOG="everything")
    assert ran.returncode != 0 and "CUPOLA_LOG" in ran.stderr
    ran = run(code, CUPOLA_PROFILE=str(tmp_path / "missing" / "trace.json"))
    assert ran.returncode != 0 and "CUPOLA_PROFILE" in ran.stderr and "missing" in ran.stderr


def test_the_profile_of_the_environment_spares_other_files(tmp_path):
    code = "import cupola.core as mx, pathlib; mx.eval(mx.ones(3, stream=mx.cpu) + 1)"
    mine, page = tmp_path / "mine.npy", tmp_path / "page.html"
    mine.write_bytes(b"an array")
    ran = run(code, CUPOLA_PROFILE=str(mine))
    assert ran.returncode != 0 and "CUPOLA_PROFILE" in ran.stderr and "no profile" in ran.stderr
    assert mine.read_bytes() == b"an array"
    # Nor does it take the place of what the program wrote there.
    late = tmp_path / "late.json"
    ran = run(f"{code}; pathlib.Path({str(late)!r}).write_text('results')", CUPOLA_PROFILE=str(late))
    assert "no profile" in ran.stderr and late.read_text() == "results"
    for path in (page, page, tmp_path / "trace.json", tmp_path / "trace.json"):
        assert run(code, CUPOLA_PROFILE=str(path)).returncode == 0 and path.exists()


def test_what_the_environment_asks_for_is_whole_at_the_end(tmp_path):
    code = "import cupola.core as mx; a = mx.ones((6, 6)); mx.eval(a @ a)"
    for device in ("cpu", "wgpu", "cuda"):
        if not mx.is_available(getattr(mx, device)):
            continue
        ran = run(code.replace(";", f"; mx.set_default_device(mx.{device});", 1), CUPOLA_LOG="ops")
        assert ran.returncode == 0 and f"cupola: {device}" in ran.stderr, (device, ran.stderr)
        assert "matmul" in ran.stderr
    path = tmp_path / "trace.json"
    ran = run(code + "; from cupola import profiler; profiler.stop()", CUPOLA_PROFILE=str(path))
    assert "the program has stopped the profile" in ran.stderr and not path.exists()
    for name in ("", "a\0b"):
        with pytest.raises(RuntimeError, match="no name of a file"):
            profiler.profile(name)


def test_what_is_compiled_has_the_lines_that_recorded_it():
    block = Block()

    def forward(x):
        y = block(x)
        return (y @ x).sum()  # the other line

    x = mx.ones((4, 4))
    compiled = mx.compile(forward)
    mx.eval(compiled(x))
    traced = []
    nested = mx.compile(lambda x: traced.append(1) or compiled(x) * 2)
    mx.eval(nested(x))
    # What was traced before is traced again, once, with its lines.
    for function in (compiled, nested, compiled):
        with profiler.profile() as found:
            mx.eval(function(x))
        lines = [step["args"]["line"] for step in steps(found.result) if step["name"] == "matmul"]
        here = test_what_is_compiled_has_the_lines_that_recorded_it.__code__.co_firstlineno
        own = Block.__call__.__code__.co_firstlineno + 2
        assert f"test_profiler.py:{here + 5}" in lines, lines
        assert f"test_profiler.py:{own} (Block.maps.1)" in lines, lines
        assert "Block.maps.0" in found.result.table("module")
    assert len(traced) == 2
    mx.eval(nested(x))
    assert len(traced) == 2


def test_tables_say_how_near_the_machine_steps_come():
    x = mx.ones((512, 512))
    mx.eval(x)
    with profiler.profile() as found:
        mx.eval(x @ x)
    head, *rows = found.result.table("step").splitlines()
    assert head.endswith("roofline")
    (product,) = [row for row in rows if row.startswith("matmul")]
    assert product.endswith(" %") and float(product.split()[-2]) > 0
    assert "<th>roofline</th>" in found.result.to_html()


def product(x):
    return x @ x


class Twice(nn.Module):
    def __call__(self, x):
        return product(product(x))


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = [Twice(), Twice()]
        self.last = Twice()

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return self.last(x)


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def __call__(own, x):
        return own.inner(x)


def test_modules_by_any_name_of_theirs():
    model, x = Named(), mx.ones((3, 4))
    mx.eval(model.parameters(), x)
    with profiler.profile() as found:
        for _ in range(3):
            mx.eval(model(x))
    assert "Named.inner" in found.result.table("module")


def lines(profile):
    return [step["args"]["line"] for step in steps(profile) if step["name"] == "matmul"]


def test_one_place_in_the_code_is_that_of_many_modules():
    """What is known of a place is known of its modules, too: frames of one call follow those of another."""
    x = mx.ones((8, 8))
    mx.eval(x)
    at = f"test_profiler.py:{product.__code__.co_firstlineno + 1}"
    for _ in range(3):
        # A module that is new may be where one was that is gone.
        model = Pair()
        with profiler.profile() as found:
            for _ in range(3):
                y = product(x)
                mx.eval(y)
                mx.eval(model(x))
        paths = ["Pair.parts.0", "Pair.parts.0", "Pair.parts.1", "Pair.parts.1", "Pair.last", "Pair.last"]
        assert lines(found.result) == [at, *(f"{at} ({path})" for path in paths)] * 3
        del model
        with profiler.profile() as found:
            mx.eval(Twice()(x))
        assert lines(found.result) == [f"{at} (Twice)"] * 2


def test_lines_of_what_one_call_records():
    x = mx.ones((8, 8))
    mx.eval(x)

    def loss(w):
        y = x @ w  # the first line
        return (y @ w).sum()  # the second line

    with profiler.profile() as found:
        grads = mx.grad(loss)(x)
        y = grads @ x
        z = y @ y
        mx.eval(z)
    here = test_lines_of_what_one_call_records.__code__.co_firstlineno
    of = [int(line.split(":")[1]) - here for line in lines(found.result)]
    # Of the products, two are the function's, others the gradient's, whose line is that of the call.
    assert {9, 10, 11} <= set(of) <= {5, 6, 9, 10, 11}
    assert of[-2:] == [10, 11]


def test_equal_plans_have_the_lines_that_recorded_them():
    x = mx.ones((8, 8))
    first = mx.compile(lambda x: mx.softmax(x @ x, axis=-1))
    second = mx.compile(lambda x: mx.softmax(x @ x, axis=-1))
    here = test_equal_plans_have_the_lines_that_recorded_them.__code__.co_firstlineno
    profiler.start()
    for _ in range(3):
        mx.eval(first(x))
        mx.eval(second(x))
        mx.eval(mx.softmax(x @ x, axis=-1))
        mx.eval(mx.softmax(x @ x, axis=-1))
    of = [int(line.split(":")[1]) - here for line in lines(profiler.stop())]
    assert of == [2, 3, 9, 10] * 3


def test_all_runs_of_a_plan_are_told():
    x = mx.ones((8, 8))
    f = mx.compile(lambda x: mx.softmax(x @ x, axis=-1) @ x)
    mx.eval(f(x))
    for every in (1, 4):
        profiler.start(every=every)
        for _ in range(10):
            mx.eval(f(x))
        found = profiler.stop()
        assert len(lines(found)) == 20
        assert all(step["dur"] >= 0 for step in steps(found))


@pytest.mark.skipif(not mx.is_available(mx.wgpu), reason="there is no wgpu")
def test_what_the_cpu_runs_in_place_of_a_device_is_the_cpus():
    with mx.stream(mx.wgpu), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a = mx.eye(3) * 2
        mx.eval(a)
        with profiler.profile() as found:
            mx.eval(mx.linalg.solve(a, mx.ones(3)) + 1)
    ran = {step["name"]: step["args"]["device"] for step in steps(found.result)}
    assert ran["solve"] == "cpu" and ran["map"] == "wgpu:0"
    assert any(row.startswith("solve") and " cpu" in row for row in found.result.table("op").splitlines())


@pytest.mark.skipif(not mx.is_available(mx.wgpu), reason="there is no wgpu")
def test_what_the_cpu_runs_for_a_device_is_timed_by_itself(tmp_path):
    with mx.stream(mx.wgpu), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a = mx.random.normal((256, 256))
        mx.eval(a)

        def f():
            b = a @ a
            return (mx.exp(b[:8, :8].astype(mx.float64)).astype(mx.float32) + 1) @ b[:8]

        mx.eval(f())
        with profiler.profile() as found:
            for _ in range(4):
                mx.eval(f())
    found.result.save(str(tmp_path / "trace.json"))
    events = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
    on_cpu = [e for e in events if e["cat"] == "step" and e["args"]["device"] == "cpu"]
    assert len(on_cpu) >= 4
    ends = lambda e: e["ts"] + e["dur"]  # noqa: E731
    for step in on_cpu:
        around = [e for e in events if e["cat"] == "fallback" and e["ts"] <= step["ts"] + 0.01 and ends(step) <= ends(e) + 0.01]
        assert len(around) == 1, "it is within what took its place"
        copies = [e for e in events if e["cat"] == "copy" and e["ts"] < ends(step) and step["ts"] < ends(e)]
        assert not copies, "copies are not the step's"
    # Chrome's events of one row lie in each other or apart.
    rows = {}
    for e in events:
        rows.setdefault((e["pid"], e["tid"]), []).append(e)
    for row in rows.values():
        row.sort(key=lambda e: (e["ts"], -e["dur"]))
        around = []
        for e in row:
            while around and around[-1] <= e["ts"] + 0.01:
                around.pop()
            assert not around or ends(e) <= around[-1] + 0.01, e
            around.append(ends(e))


def test_batched_modules_have_their_lines():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    mx.eval(model.parameters())
    x = mx.random.normal((6, 8))
    mx.eval(x)
    for function in (mx.vmap(model), mx.compile(mx.vmap(model))):
        with profiler.profile() as found:
            mx.eval(function(x))
        modules = found.result.table("module")
        assert "layers.0" in modules and "layers.2" in modules, modules


def test_noting_lines_pauses_where_it_would_take_long():
    x = mx.ones((3,))
    mx.eval(x)

    def work():
        y = x
        for _ in range(300):
            y = y + x  # the line
        mx.eval(y)

    here = test_noting_lines_pauses_where_it_would_take_long.__code__.co_firstlineno
    work()
    for every, pauses in ((1, False), (128, True)):
        profiler.start(every=every)
        for _ in range(400):
            work()
        profile = profiler.stop()
        table = profile.table("line")
        assert ("of 400 evaluations went without noting lines" in table) == pauses
        assert "evaluations went" not in profile.table("op")
        # Where no line was noted it is the one that was there before.
        assert {step["args"]["line"] for step in steps(profile)} == {f"test_profiler.py:{here + 7}"}
        noted = [e["args"]["lines noted"] for e in json.loads(profile.to_json())["traceEvents"] if e["name"] == "evaluate"]
        assert noted[0] and all(noted) != pauses
