"""What is nested without end, and what has more axes than there are: errors, not the end of the process."""

import pytest
from conftest import cc

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
