"""The functions over trees against MLX's."""

import re
from collections import OrderedDict, namedtuple

import pytest
from oracle import mlx_utils

import cupola.utils as utils

Pair = namedtuple("Pair", "a b")


def is_list(x):
    return isinstance(x, list)


CASES = [
    *[("tree_flatten", (tree,), {}) for tree in (
        {}, [], 3, None, {"a": {}, "b": []}, {"a": (1, None)}, Pair(1, [2]), {1: 2, (1, 2): 3},
        {"a": [1, {"b": 2}], "c": (3, [4])},
    )],
    ("tree_flatten", (3, ".x"), {}),
    ("tree_flatten", ({"a": [1, {"b": 2}]}, ".p"), {}),
    ("tree_flatten", ({"a": [1, {"b": 2}]}, "p"), {}),
    ("tree_flatten", ({"a": [1, {"b": 2}]},), {"is_leaf": is_list}),
    ("tree_flatten", ({"a": [1, {"b": 2}]},), {"destination": {}}),
    ("tree_flatten", (3,), {"destination": {}}),
    ("tree_flatten", ({"a": [1]},), {"destination": [("z", 0)]}),
    ("tree_flatten", ({"a": 1},), {"destination": 3}),
    *[("tree_unflatten", (flat,), {}) for flat in (
        [], {}, [("", 3)], {"": 3}, [("0", 1), ("1", 2)], [("2", 1), ("0", 2)], [("0", 1), ("a", 2)],
        [("a.b", 1), ("a.c.0", 2), ("a.c.1", 3)], [("a.0", 1), ("a.2", 3)], [("10", 1), ("9", 3)],
        [("a.", 1)], [("a", 1), ("a.b", 2)], [("-1", 2)], [("01", 2)], {"a.b": 1, "c": 2}, 3,
        [("a", "b", "c")],
    )],
    ("tree_map", (lambda x: x + 1, [1, (2, 3), {"a": 4}]), {}),
    ("tree_map", (lambda x: x + 1, Pair(1, 2)), {}),
    ("tree_map", (lambda x: x, None), {}),
    ("tree_map", (lambda x: x, OrderedDict(b=1, a=2)), {}),
    ("tree_map", (lambda x, y: (x, y), {"a": 1}, {"a": 3, "b": 2}), {}),
    ("tree_map", (lambda x, y: (x, y), (1, 2), [3, 4]), {}),
    ("tree_map", (lambda x, y, z: x + y + z, [1, [2]], [3, [4]], [5, [6]]), {}),
    ("tree_map", (lambda x, y: (x, y), [1, 2], [3]), {}),
    ("tree_map", (lambda x, y: (x, y), {"a": 1}, {"b": 2}), {}),
    ("tree_map", (lambda x, y: (x, y), [1, [2]], [3, 4]), {}),
    ("tree_map", (len, {"a": [1, 2], "b": [3]}), {"is_leaf": is_list}),
    ("tree_map_with_path", (lambda p, x: p, {"a": [1, {"b": 2}], "c": (1,)}), {}),
    ("tree_map_with_path", (lambda p, x: p, {"a": [1]}), {"path": "root"}),
    ("tree_map_with_path", (lambda p, x: p, 3), {}),
    ("tree_map_with_path", (lambda p, x: p, 3), {"path": "q"}),
    ("tree_map_with_path", (lambda p, x, y: (p, x, y), {"a": [1]}, {"a": [2]}), {}),
    ("tree_map_with_path", (lambda p, x: p, {"a": [1]}), {"is_leaf": is_list}),
    ("tree_map_with_path", (lambda p, x: p, Pair(1, 2)), {}),
    ("tree_map_with_path", (lambda p, x: p, {"a": 1}), {"path": ""}),
    ("tree_reduce", (lambda a, b: a + b, [1, [2, (3,)], {"a": 4}]), {}),
    ("tree_reduce", (lambda a, b: a + b, [1, [2]], 10), {}),
    ("tree_reduce", (lambda a, b: a + b, []), {}),
    ("tree_reduce", (lambda a, b: a + b, [], 5), {}),
    ("tree_reduce", (lambda a, b: a + b, 3), {}),
    ("tree_reduce", (lambda a, b: (a, b), [None, 1]), {}),
    ("tree_reduce", (lambda a, b: a + len(b), {"x": [1, 2], "y": [3]}, 0), {"is_leaf": is_list}),
    *[("tree_merge", trees, {}) for trees in (
        ({"a": 1}, {"b": 2}), ({"a": 1}, {"a": 2}), ([1, 2], [3]), ([1, {}], [{}, 2]), ([{}], [{}, 2]),
        ({"a": {}}, {"a": 3}), ({"a": []}, {"a": 3}), ({"a": None}, {"a": 3}), ({"a": 3}, {"a": None}),
        (1, 2), (({},), (2,)), ({"a": {"x": 1}}, {"a": {"y": 2}}), ({"a": {"x": 1}}, {"a": 5}),
        ({"a": {"x": 1}}, {"a": [5]}), ([1, 2], [{}, {}, 3]), (Pair(1, {}), Pair({}, 2)), ({}, {"a": 1}),
        ({"a": 1}, {}), ([], [1]), (None, {"a": 1}), (None, None), ({"a": 1}, None), ({"a": 1}, 0),
    )],
    ("tree_merge", ({"a": 1}, {"a": 2}, lambda x, y: x + y), {}),
    ("tree_merge", ({"a": {"x": 1}}, {"a": [5]}, lambda x, y: (x, y)), {}),
    ("tree_merge", ([1], (2,), lambda x, y: (x, y)), {}),
    ("tree_merge", ({"a": [1, 2, 3]}, {"a": [{}, 5]}, lambda x, y: x * y), {}),
]  # fmt: skip


def name_of(case):
    """The same in every process: without addresses."""
    name, args, kwargs = case
    return re.sub(" at 0x[0-9a-f]+", "", f"{name}{args}{kwargs or ''}")


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_against_mlx(case):
    name, args, kwargs = case

    def call(package):
        copied = dict(kwargs)
        if isinstance(copied.get("destination"), (list, dict)):
            copied["destination"] = type(copied["destination"])(copied["destination"])
        return getattr(package, name)(*args, **copied)

    try:
        expected = call(mlx_utils)
    except Exception as error:
        with pytest.raises(type(error)):
            call(utils)
    else:
        ours = call(utils)
        assert ours == expected and type(ours) is type(expected)
        # MLX's order of merged keys changes from run to run.
        if isinstance(expected, dict) and name != "tree_merge":
            assert list(ours) == list(expected)


def test_flat_and_back():
    tree = {"a": [1, {"b": 2, "c": [3]}], "d": 4}
    assert utils.tree_unflatten(utils.tree_flatten(tree)) == tree
    assert utils.tree_unflatten(utils.tree_flatten(tree, destination={})) == tree


def test_destination_is_returned():
    destination = []
    assert utils.tree_flatten([1], destination=destination) is destination == [("0", 1)]
