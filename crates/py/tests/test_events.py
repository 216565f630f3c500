"""Events of streams."""

import threading
import time

import pytest

import cupola.core as mx


def work(seed=0, size=500):
    x = mx.random.normal((size, size), key=mx.random.key(seed))
    mx.eval(x)
    for _ in range(10):
        x = x @ x / size
    return x


def test_time_between_events_is_that_of_the_work():
    start, end, later = (mx.Event(enable_timing=True) for _ in range(3))
    y = work()
    start.record()
    mx.async_eval(y)
    end.record()
    later.record()
    assert start.elapsed_time(end) > 0.1
    assert start.query() and end.query()
    assert 0 <= end.elapsed_time(later) < start.elapsed_time(end)
    assert start.elapsed_time(end) == pytest.approx(-end.elapsed_time(start))


def test_the_time_of_an_event_is_that_of_its_record():
    start, between, end = (mx.Event(enable_timing=True) for _ in range(3))
    x = mx.ones((4,))
    mx.eval(x)
    start.record()
    time.sleep(0.2)
    between.record()
    mx.eval(x + 1)
    time.sleep(0.2)
    end.record()
    assert start.elapsed_time(between) > 150
    assert between.elapsed_time(end) > 150


def test_an_event_is_there_once_its_work_is():
    y = work(1)
    event = mx.Event()
    mx.async_eval(y)
    event.record()
    event.synchronize()
    assert event.query()
    assert mx.isfinite(y).all()


def test_a_stream_waits_for_another():
    one, other = mx.new_stream(mx.default_device()), mx.new_stream(mx.default_device())
    first, second = mx.Event(enable_timing=True), mx.Event(enable_timing=True)
    with mx.stream(one):
        y = work(2)
        mx.async_eval(y)
    first.record(one)
    first.wait(other)
    second.record(other)
    assert first.elapsed_time(second) >= 0


def test_what_was_not_recorded():
    event, timed = mx.Event(), mx.Event(enable_timing=True)
    assert event.query()
    event.synchronize()
    event.wait()
    with pytest.raises(ValueError, match="recorded"):
        timed.elapsed_time(mx.Event(enable_timing=True))
    event.record()
    timed.record()
    with pytest.raises(ValueError, match="enable_timing"):
        timed.elapsed_time(event)
    with pytest.raises(TypeError):
        timed.elapsed_time(3)


def test_events_of_two_devices():
    if not mx.is_available(mx.gpu):
        pytest.skip("one device alone")
    one, other = mx.Event(enable_timing=True), mx.Event(enable_timing=True)
    one.record(mx.cpu)
    other.record(mx.gpu)
    with pytest.raises(ValueError, match="events are of"):
        one.elapsed_time(other)


def test_threads_wait_for_one_event():
    event = mx.Event()
    mx.async_eval(work(3))
    event.record()
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(event.synchronize())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
