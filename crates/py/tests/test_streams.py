"""Several streams of a device: right in every order, and side by side where the device can."""

import json
import signal
import threading

import numpy as np
import pytest
from conftest import cc, mlx  # noqa: F401

from cupola import profiler

DEVICES = [name for name in ("cpu", "wgpu", "cuda") if cc.is_available(getattr(cc, name))]


@pytest.fixture(params=DEVICES)
def device(request):
    before = cc.default_device()
    cc.set_default_device(getattr(cc, request.param))
    yield getattr(cc, request.param)
    cc.set_default_device(before)


def test_what_streams_hand_to_each_other_is_whole(device):
    """Arrays are made, used, dropped and made again by three streams in drawn order."""
    streams = [cc.default_stream(device), cc.new_stream(device), cc.new_stream(device, priority=-2)]
    draw = np.random.default_rng(5)
    sizes = [3, 1000, 257 * 129]
    arrays = {size: [(cc.ones(size), np.ones(size, "f4"))] for size in sizes}
    for _ in range(400):
        size = sizes[draw.integers(3)]
        known = arrays[size]
        (x, want_x), (y, want_y) = (known[draw.integers(len(known))] for _ in range(2))
        with cc.stream(streams[draw.integers(3)]):
            z = cc.maximum(x * 0.5 + y, 0.25) - 0.125
            want = np.maximum(want_x * np.float32(0.5) + want_y, np.float32(0.25)) - np.float32(0.125)
            for _ in range(draw.integers(4)):
                z, want = z * 0.5 + 1, want * np.float32(0.5) + 1
        (cc.async_eval if draw.random() < 0.7 else cc.eval)(z)
        known.append((z, want))
        if len(known) > 6:
            known.pop(draw.integers(len(known)))
        if draw.random() < 0.05:
            assert np.array_equal(np.array(z), want)
    for x, want in sum(arrays.values(), []):
        assert np.array_equal(np.array(x), want)


def test_products_on_two_streams(device):
    draw = np.random.default_rng(6)
    weights = [draw.normal(size=(192, 192)).astype("f4") / 14 for _ in range(2)]
    shared = [cc.array(w) for w in weights]
    results = []
    for stream in (cc.new_stream(device), cc.new_stream(device)):
        with cc.stream(stream):
            x = cc.ones((64, 192))
            for _ in range(6):
                x = cc.tanh(x @ shared[0]) @ shared[1]
            cc.async_eval(x)
        results.append(x)
    want = np.ones((64, 192))
    for _ in range(6):
        want = np.tanh(want @ weights[0]) @ weights[1]
    for x in results:
        assert np.allclose(np.array(x), want, atol=1e-4)


@pytest.mark.parametrize("round", range(20))
def test_an_error_is_that_of_its_own_stream(device, round):
    good, bad = cc.new_stream(device), cc.new_stream(device)
    at = cc.array([1, 2]) + cc.ones(2, dtype=cc.int32) * 9
    x = cc.ones((4, 3))
    with cc.stream(bad):
        wrong = cc.take(x, at, axis=0)
        cc.async_eval(wrong)
    with cc.stream(good):
        right = cc.take(x, at - 9, axis=0) * 2
        cc.async_eval(right)
    assert right.tolist() == [[2] * 3] * 2
    with pytest.raises(IndexError):
        wrong.tolist()
    assert (x + 1).tolist() == [[2] * 3] * 4


def test_an_error_is_that_of_its_own_thread(device):
    counts = {"found": 0, "right": 0}

    def work(kind, shift):
        with cc.stream(cc.default_stream(device)):
            for _ in range(100):
                at = cc.array([1, 2]) + shift
                try:
                    right = cc.take(cc.ones((4, 3)), at, axis=0).tolist() == [[1] * 3] * 2
                    counts[kind] += right and kind == "right"
                except IndexError:
                    counts[kind] += kind == "found"

    threads = [threading.Thread(target=work, args=args) for args in (("found", 9), ("right", 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {"found": 100, "right": 100}


def test_a_run_that_was_stopped_leaves_no_error(device):
    """Its wrong index may still come up on a GPU; the CPU finds it before anybody can stop the run."""
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    n = 2048 if device == cc.DeviceType.cuda else 512
    x = cc.ones((n, n)) / n
    before = signal.signal(signal.SIGALRM, stop)
    try:
        with cc.stream(cc.default_stream(device)):
            y = cc.take(x, cc.array([1, 2]) + 9 * n, axis=0).sum() + x
            for _ in range(3000):
                y = y @ x
            cc.eval(x)
            is_cpu = device == cc.DeviceType.cpu
            signal.setitimer(signal.ITIMER_REAL, 10 if is_cpu else 0.05)
            with pytest.raises(IndexError if is_cpu else Stop):
                y.tolist()
            for _ in range(20):
                assert cc.take(x, cc.array([1, 2]) + 1, axis=0).sum().item() == 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_streams_beyond_the_queues_of_a_device(device):
    sums = []
    for _ in range(40):
        with cc.stream(cc.new_stream(device)):
            sums.append(cc.arange(100).sum())
            cc.async_eval(sums[-1])
    assert [x.item() for x in sums] == [4950] * 40


def test_priorities():
    stream = cc.new_stream(cc.cpu, priority=-1)
    assert stream.priority == -1
    # Others count as the nearest.
    assert cc.new_stream(cc.cpu, priority=-(10**9)).priority < 0 < cc.new_stream(cc.cpu, priority=2**70).priority
    assert cc.default_stream(cc.cpu).priority == cc.new_stream(cc.cpu).priority == 0
    with pytest.raises((TypeError, OverflowError)):
        cc.new_stream(cc.cpu, priority="high")


@pytest.mark.skipif("cuda" not in DEVICES, reason="there is no CUDA device")
def test_work_on_two_streams_overlaps_on_cuda(tmp_path):
    """Small products leave most of a GPU idle, so that those of another stream find room."""
    cc.set_default_device(cc.cuda)
    try:
        streams = [cc.new_stream(cc.cuda), cc.new_stream(cc.cuda, priority=-1)]
        x = cc.random.normal((256, 2048))
        w = cc.random.normal((2048, 2048)) * 0.02

        def work(stream):
            with cc.stream(stream):
                y = x
                for _ in range(200):
                    y = cc.tanh(y @ w)
            return y

        for _ in range(3):
            cc.async_eval(*[work(stream) for stream in streams[:1]])
            cc.async_eval(*[work(stream) for stream in streams[1:]])
            for stream in streams:
                cc.synchronize(stream)
        with profiler.profile(tmp_path / "trace.json"):
            for stream in streams:
                cc.async_eval(work(stream))
            for stream in streams:
                cc.synchronize(stream)
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        spans = {}
        for event in events:
            if event.get("cat") == "step":
                spans.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
        one, other = (
            (min(a for a, _ in span), max(b for _, b in span)) for span in spans.values()
        )
        assert len(spans) == 2
        assert max(one[0], other[0]) < min(one[1], other[1]), (one, other)
    finally:
        cc.set_default_device(cc.cpu)


def _later_roots(device):
    """What an earlier task needs is asked for by a later one, which is behind it."""
    big = cc.random.normal((700, 700))
    for _ in range(20):
        x = cc.ones(4) * 2
        y = x + 1
        cc.async_eval(big @ big @ big)
        cc.async_eval(y)
        cc.async_eval(x)
        assert (x.tolist(), y.tolist()) == ([2.0] * 4, [3.0] * 4)


def _steps(device):
    w, x = cc.ones((200, 200)) * 0.01, cc.ones((200, 200))
    for _ in range(50):
        new = w - 1e-6 * cc.grad(lambda w: ((x @ w) ** 2).mean())(w)
        loss = ((x @ new) ** 2).mean()
        cc.async_eval(loss)
        cc.async_eval(new)
        w = new
    assert np.isfinite(loss.item())


def _two_streams(device):
    """Two streams have what the other needs."""
    s1, s2 = cc.new_stream(device), cc.new_stream(device)
    big = cc.random.normal((700, 700))
    cc.eval(big)
    for _ in range(20):
        x, p = cc.add(cc.ones(4), 2, stream=s2), cc.add(cc.ones(4), 5, stream=s1)
        y, q = cc.add(x, 1, stream=s1), cc.add(p, 1, stream=s2)
        cc.async_eval(cc.matmul(big, big, stream=s1))
        cc.async_eval(cc.matmul(big, big, stream=s2))
        cc.async_eval(y, p)
        cc.async_eval(x, q)
        assert (y.tolist(), q.tolist()) == ([4.0] * 4, [7.0] * 4)


def _two_devices(device):
    """One call asks for what is before and behind a part on another device."""
    for _ in range(20):
        x = cc.ones((4, 4), stream=device) * 2
        y = cc.add(x, 1, stream=cc.cpu)
        z = cc.multiply(y, 2, stream=device)
        cc.async_eval(x, z)
        assert (x[0].tolist(), z[0].tolist()) == ([2.0] * 4, [6.0] * 4)


def _failing(device):
    """A task whose work another one took over, and that fails there."""
    for _ in range(20):
        x = cc.ones(4) * 2
        bad = cc.take(x, cc.array([9]) * 1)
        big = cc.random.normal((300, 300))
        cc.async_eval(big @ big)
        cc.async_eval(bad + 1)
        cc.async_eval(bad, x)
        assert x.tolist() == [2.0] * 4
        with pytest.raises(IndexError):
            cc.eval(bad)


@pytest.mark.parametrize("work", [_later_roots, _steps, _two_streams, _two_devices, _failing])
def test_tasks_do_not_wait_for_each_other(device, work):
    found = []

    def run():
        cc.set_default_device(device)
        try:
            found.append(work(device))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(120)
    assert not thread.is_alive(), "it hangs"
    assert found == [None], found
