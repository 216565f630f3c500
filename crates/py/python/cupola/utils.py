"""Trees: nested lists, tuples and dictionaries with arbitrary leaves.

The parameters of a module, gradients and the state of an optimiser are trees. A leaf is anything
that is not a list, a tuple or a dictionary; where a function takes ``is_leaf``, it can say that
some of those are leaves, too.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

import cupola.core as mx

__all__ = [
    "tree_flatten",
    "tree_map",
    "tree_map_with_path",
    "tree_merge",
    "tree_reduce",
    "tree_unflatten",
]

_IsLeaf = Optional[Callable[[Any], bool]]


_BRANCHES = (list, tuple, dict)


def _is_branch(node: Any, is_leaf: _IsLeaf) -> bool:
    """Whether ``node`` has children to be visited."""
    if is_leaf is not None and is_leaf(node):
        return False
    return isinstance(node, _BRANCHES)


def _items(node: Any) -> Iterator[Tuple[Any, Any]]:
    """The children of a branch with their keys or indices."""
    return iter(node.items()) if isinstance(node, dict) else iter(enumerate(node))


def _sequence_like(node: Any, values: List[Any]) -> Any:
    """``values`` in a list or tuple of the kind of ``node``; a named tuple stays one."""
    if hasattr(node, "_fields"):
        return type(node)(*values)
    return type(node)(values)


def tree_map(fn: Callable, tree: Any, *rest: Any, is_leaf: Optional[Callable] = None) -> Any:
    """Apply ``fn`` to each leaf of ``tree`` and return a tree of the results.

    Args:
        fn: Called with a leaf of ``tree`` and the leaves at the same place in ``rest``.
        tree: The tree that decides the structure.
        rest: Further trees; each has at least the places of ``tree``.
        is_leaf: Whether a list, tuple or dictionary counts as a leaf.

    Example:
        >>> tree_map(lambda x: 2 * x, {"a": [1, 2], "b": (3,)})
        {'a': [2, 4], 'b': (6,)}
    """
    return mx._nn.tree_map(fn, tree, rest, is_leaf)


def tree_map_with_path(
    fn: Callable,
    tree: Any,
    *rest: Any,
    is_leaf: Optional[Callable] = None,
    path: Optional[Any] = None,
) -> Any:
    """Like :func:`tree_map`, with the dotted path of the leaf as the first argument of ``fn``.

    Args:
        fn: Called with the path, the leaf of ``tree`` and the leaves of ``rest``.
        tree: The tree that decides the structure.
        rest: Further trees; each has at least the places of ``tree``.
        is_leaf: Whether a list, tuple or dictionary counts as a leaf.
        path: What the paths begin with.

    Example:
        >>> tree_map_with_path(lambda path, leaf: path, {"a": [1, 2]})
        {'a': ['a.0', 'a.1']}
    """
    if not _is_branch(tree, is_leaf):
        return fn(path, tree, *rest)

    def down(key: Any, child: Any) -> Any:
        return tree_map_with_path(
            fn,
            child,
            *(r[key] for r in rest),
            is_leaf=is_leaf,
            path=f"{path}.{key}" if path else f"{key}",
        )

    if isinstance(tree, dict):
        return {k: down(k, child) for k, child in tree.items()}
    return _sequence_like(tree, [down(i, child) for i, child in enumerate(tree)])


def _leaves(tree: Any, path: str, is_leaf: _IsLeaf) -> Iterator[Tuple[str, Any]]:
    if _is_branch(tree, is_leaf):
        for key, child in _items(tree):
            yield from _leaves(child, f"{path}.{key}", is_leaf)
    else:
        yield path[1:], tree


def tree_flatten(
    tree: Any,
    prefix: str = "",
    is_leaf: Optional[Callable] = None,
    destination: Optional[Union[List[Tuple[str, Any]], Dict[str, Any]]] = None,
) -> Union[List[Tuple[str, Any]], Dict[str, Any]]:
    """List the leaves of a tree with their dotted paths.

    Args:
        tree: The tree.
        prefix: What every path begins with; its first character is dropped.
        is_leaf: Whether a list, tuple or dictionary counts as a leaf.
        destination: A list or a dictionary to put the leaves into; a new list by default.

    Example:
        >>> tree_flatten({"a": [1, {"b": 2}]})
        [('a.0', 1), ('a.1.b', 2)]
        >>> tree_flatten([3, 4], destination={})
        {'0': 3, '1': 4}
    """
    if destination is None:
        destination = []
    if isinstance(destination, list):
        destination.extend(_leaves(tree, prefix, is_leaf))
    elif isinstance(destination, dict):
        destination.update(_leaves(tree, prefix, is_leaf))
    else:
        raise ValueError("Destination should be either a list or a dictionary or None")
    return destination


def _as_index(key: str) -> Optional[int]:
    try:
        return int(key)
    except ValueError:
        return None


def tree_unflatten(tree: Union[List[Tuple[str, Any]], Dict[str, Any]]) -> Any:
    """Build a tree from its leaves and their dotted paths: the inverse of :func:`tree_flatten`.

    Where every key at a place is a number the children become a list, with ``{}`` in gaps.

    Args:
        tree: Pairs of path and leaf, or a dictionary of them.

    Example:
        >>> tree_unflatten([("a.0", 1), ("a.1.b", 2)])
        {'a': [1, {'b': 2}]}
    """
    if len(tree) == 0:
        return []
    items: List[Tuple[str, Any]] = list(tree.items() if isinstance(tree, dict) else tree)
    if len(items) == 1 and items[0][0] == "":
        return items[0][1]

    children: Dict[str, List[Tuple[str, Any]]] = {}
    for path, leaf in items:
        key, _, below = path.partition(".")
        children.setdefault(key, []).append((below, leaf))

    indices = {key: _as_index(key) for key in children}
    if any(index is None for index in indices.values()):
        return {key: tree_unflatten(below) for key, below in children.items()}
    sequence: List[Any] = []
    for key in sorted(children, key=lambda key: indices[key] or 0):
        gap = (indices[key] or 0) - len(sequence)
        sequence.extend({} for _ in range(gap))
        sequence.append(tree_unflatten(children[key]))
    return sequence


def tree_reduce(
    fn: Callable, tree: Any, initializer: Any = None, is_leaf: Optional[Callable] = None
) -> Any:
    """Combine the leaves of a tree, from the first to the last.

    Args:
        fn: Called with what has been combined so far and the next leaf.
        tree: The tree.
        initializer: What to begin with; the first leaf if it is ``None``.
        is_leaf: Whether a list, tuple or dictionary counts as a leaf.

    Example:
        >>> tree_reduce(lambda total, leaf: total + leaf, {"a": [1, 2], "b": 3}, 0)
        6
    """
    result = initializer
    for _, leaf in _leaves(tree, "", is_leaf):
        result = leaf if result is None else fn(result, leaf)
    return result


def _is_empty(tree: Any) -> bool:
    return tree is None or (isinstance(tree, (list, tuple, dict)) and len(tree) == 0)


def tree_merge(tree_a: Any, tree_b: Any, merge_fn: Optional[Callable] = None) -> Any:
    """Put the leaves of two trees into one.

    An empty list, tuple or dictionary, or ``None``, stands for nothing.

    Args:
        tree_a: A tree.
        tree_b: Another tree.
        merge_fn: Called with the two values of a place that both trees have; without it such a
            place is an error.

    Raises:
        ValueError: If both trees have something at one place and there is no ``merge_fn``.

    Example:
        >>> tree_merge({"a": [1, {}]}, {"a": [{}, 2]})
        {'a': [1, 2]}
    """
    if _is_empty(tree_a) and tree_b is not None:
        return tree_b
    if _is_empty(tree_b) and tree_a is not None:
        return tree_a

    if isinstance(tree_a, (list, tuple)) and isinstance(tree_b, (list, tuple)):
        nothing: Any = {}
        pairs = zip_longest(tree_a, tree_b, fillvalue=nothing)
        return _sequence_like(tree_a, [tree_merge(a, b, merge_fn) for a, b in pairs])
    if isinstance(tree_a, dict) and isinstance(tree_b, dict):
        merged = dict(tree_a)
        for key, b in tree_b.items():
            merged[key] = tree_merge(tree_a[key], b, merge_fn) if key in tree_a else b
        return merged
    if merge_fn is None:
        raise ValueError(
            "Trees contain elements at the same locations but no merge function was provided"
        )
    return merge_fn(tree_a, tree_b)
