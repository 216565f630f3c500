"""`mx.explain` and `array.explain`."""

import json
import subprocess
import sys
import xml.dom.minidom

import pytest

import cupola.core as mx


def test_steps_bytes_and_operations():
    x, w = mx.ones((8, 16)), mx.ones((16, 32))
    plan = mx.explain(lambda x, w: mx.maximum(x @ w, 0), x, w=w)
    (step,) = plan.steps
    assert step["kind"] == "matmul" and step["fused"][-1] == "maximum"
    assert step["bytes_read"] == 4 * (8 * 16 + 16 * 32)
    assert step["bytes_written"] == plan.bytes - step["bytes_read"] == 4 * 8 * 32
    assert plan.operations >= 2 * 8 * 16 * 32
    assert step["outputs"] == [{"slot": step["outputs"][0]["slot"], "shape": [8, 32], "dtype": "float32"}]


def test_least_time_is_positive_and_bounded_by_its_parts():
    plan = mx.explain(lambda x: mx.softmax(x, axis=-1), mx.ones((64, 1000)))
    assert plan.roofline_seconds > 0
    whole = json.loads(plan.to_json())
    total = plan.bytes / whole["bytes_per_second"] + plan.operations / whole["operations_per_second"]
    assert plan.roofline_seconds <= total * 1.0001


def test_a_plan_is_used_again():
    f = lambda x: mx.tanh(x * 3) - 11  # noqa: E731
    first = mx.explain(f, mx.ones((5, 7, 2)))
    assert not first.reused and "made for this" in str(first)
    x = mx.ones((5, 7, 2))
    mx.eval(x)
    mx.eval(f(x))
    again = mx.explain(f, mx.ones((5, 7, 2)))
    assert again.reused and again.plan == first.plan and again.runs == 1
    assert f"plan {first.plan} was there already, runs so far: 1" in str(again)


def test_what_is_computed_needs_no_steps():
    x = mx.ones(3) + 1
    mx.eval(x)
    assert x.explain().steps == []


def test_nothing_runs():
    x = mx.ones(3) / 3
    x.explain()
    assert len(x.explain().steps) == 1


@pytest.mark.skipif(not mx.is_available(mx.gpu), reason="there is no GPU")
def test_steps_of_all_devices_are_shown_and_none_runs():
    a = mx.ones((4, 4))
    mx.eval(a)
    product = mx.matmul(a, a, stream=mx.cpu)
    plan = mx.explain(lambda: mx.exp(product, stream=mx.gpu))
    gpu = plan.steps[1]["device"]
    assert [(step["device"] == "cpu", step["kind"]) for step in plan.steps] == [(True, "matmul"), (False, "map")]
    assert [(before["device"], before["steps"]) for before in plan.before] == [("cpu", 1)]
    assert "on cpu: matmul" in str(plan) and f"on {gpu}: map" in str(plan)
    assert len(product.explain().steps) == 1 and product.explain().before == []
    both = mx.explain(lambda: (mx.matmul(a, a, stream=mx.cpu), mx.exp(a, stream=mx.gpu)))
    assert [step["kind"] for step in both.steps] == ["matmul", "map"]


def test_gradients_are_explained_as_other_work():
    loss = lambda w, x: mx.mean(mx.square(x @ w))  # noqa: E731
    plan = mx.explain(mx.grad(loss), mx.ones((4, 2)), mx.ones((3, 4)))
    assert sum(step["kind"] == "matmul" for step in plan.steps) == 2


def test_pictures_and_text():
    plan = mx.explain(lambda x: (x < 1) & (x > 0), mx.ones(3))
    xml.dom.minidom.parseString(plan.to_svg())
    lines = str(plan).splitlines()
    assert len(lines) == 2 + len(plan.steps) and "less" in lines[-1]
    assert plan.device == mx.default_device()


def test_errors_are_those_of_the_function():
    with pytest.raises(ZeroDivisionError):
        mx.explain(lambda: 1 / 0)
    with pytest.raises(ValueError, match="matmul"):
        mx.explain(lambda x: x @ x, mx.ones((2, 3)))
    with pytest.raises(TypeError):
        mx.explain(3)


def test_traced_arrays_cannot_be_explained():
    def f(x):
        x.explain()
        return x

    with pytest.raises(ValueError):
        mx.compile(f)(mx.ones(2))


ALONE = """
import cupola.core as mx
from cupola import profiler
mx.set_default_device(mx.cpu)
x = mx.ones((4, 4))
mx.eval(x)
if LIMIT:
    mx.set_hard_memory_limit(2**20)
mx.reset_peak_memory()
before = mx.get_cache_memory()
with profiler.profile() as found:
    explained = mx.explain(lambda x: x + 1, x)
print(explained.roofline_seconds is None, "could not be measured" in str(explained))
print(len([e for e in found.result.table("op").splitlines() if "matmul" in e or "add" in e]))
print(mx.get_peak_memory() < 2**20, mx.get_cache_memory() <= before + 2**20)
import json; json.loads(explained.to_json()); assert "<svg" in explained.to_svg()
"""


@pytest.mark.parametrize("limit", [False, True])
def test_measuring_the_machine_is_not_seen(limit):
    code = ALONE.replace("LIMIT", str(limit))
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == [f"{limit} {limit}", "0", "True True"]
