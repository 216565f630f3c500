"""The steps of a graph, and the nodes that they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cupola.core as mx

if TYPE_CHECKING:
    from . import Graph


def flattened(tree: Any) -> Iterator[Any]:
    """The leaves of a tree of lists, tuples and dictionaries."""
    if isinstance(tree, (list, tuple)):
        for below in tree:
            yield from flattened(below)
    elif isinstance(tree, dict):
        for below in tree.values():
            yield from flattened(below)
    else:
        yield tree


def mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    """The tree with what a function makes of each leaf."""
    if isinstance(tree, (list, tuple)):
        parts = [mapped(below, function) for below in tree]
        if hasattr(tree, "_fields"):
            return type(tree)(*parts)
        return parts if isinstance(tree, list) else tuple(parts)
    if isinstance(tree, dict):
        return {key: mapped(below, function) for key, below in tree.items()}
    return function(tree)


def named(step: Step, error: Exception) -> Exception:
    """The error with the node's name in front, as an exception of the same type where that takes a text."""
    text = f"node '{step.name}' ({step.label}): {error}"
    kinds = (ValueError, TypeError, IndexError, MemoryError, NotImplementedError)
    kind = next((kind for kind in kinds if type(error) is kind), RuntimeError)
    return kind(text)


def described(array: mx.array) -> str:
    """Dtype and shape, for errors."""
    sizes = ", ".join(str(size) for size in array.shape)
    return f"{str(array.dtype).rpartition('.')[2]}[{sizes}]"


@dataclass(eq=False)
class Step:
    """One call in a graph."""

    graph: Graph
    index: int
    name: str
    label: str
    function: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: list[Node]
    # Arrays of the shapes of its outputs, for both numbers that stand for a size. They are never computed.
    zeros: list[list[mx.array]]
    # Which of those that draw random numbers it is.
    draws: int | None = None

    def call(self, value: Callable[[Node], mx.array]) -> Any:
        """What its function gives, with a value in the place of each node."""
        assert self.function is not None
        fill = lambda leaf: value(leaf) if isinstance(leaf, Node) else leaf  # noqa: E731
        try:
            return self.function(*mapped(self.args, fill), **mapped(self.kwargs, fill))
        except Exception as error:
            raise named(self, error) from error


class Node:
    """A value of a graph: an output of one of its steps.

    It has the operators of an array and its methods, each of which is a further node. ``==`` asks
    whether two are the same node; ``g.equal`` compares values.

    Example:
        >>> from cupola.graph import Graph
        >>> x = Graph().placeholder("x", ("n", 3))
        >>> (x * 2 + 1).sum(axis=1).shape
        ('n',)
    """

    def __init__(self, step: Step, index: int) -> None:
        self._step, self._index = step, index

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self._step.graph

    @property
    def name(self) -> str:
        """The name of the step that makes it."""
        return self._step.name

    @property
    def shape(self) -> tuple[int | str, ...]:
        """The size along each axis: a number, the name that it has, or '?' for what follows from named
        sizes."""
        return self.graph._sizes.names([own[self._index].shape for own in self._step.zeros])

    @property
    def dtype(self) -> mx.Dtype:
        """The dtype of its elements."""
        return self._step.zeros[0][self._index].dtype

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return self._step.zeros[0][self._index].ndim

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(mx.array, name, None)
        if name.startswith("_") or name in ("item", "tolist") or not callable(method):
            raise AttributeError(f"a node of a graph has no '{name}'")
        return lambda *args, **kwargs: self.graph._record(method, name, (self, *args), kwargs)

    def _operator(self, name: str, *args: Any) -> Node:
        method = getattr(mx.array, f"__{name}__")
        return self.graph._record(method, name, (self, *args), {})

    def __repr__(self) -> str:
        sizes = ", ".join(str(size) for size in self.shape)
        dtype = str(self.dtype).rpartition(".")[2]
        return f"{type(self).__name__}({self.name}: {dtype}[{sizes}])"

    def __iter__(self) -> Iterator[Node]:
        raise TypeError(f"node '{self.name}': a node of a graph cannot be iterated over")

    def __add__(self, other: Any) -> Node:
        return self._operator("add", other)

    def __radd__(self, other: Any) -> Node:
        return self._operator("radd", other)

    def __sub__(self, other: Any) -> Node:
        return self._operator("sub", other)

    def __rsub__(self, other: Any) -> Node:
        return self._operator("rsub", other)

    def __mul__(self, other: Any) -> Node:
        return self._operator("mul", other)

    def __rmul__(self, other: Any) -> Node:
        return self._operator("rmul", other)

    def __truediv__(self, other: Any) -> Node:
        return self._operator("truediv", other)

    def __rtruediv__(self, other: Any) -> Node:
        return self._operator("rtruediv", other)

    def __floordiv__(self, other: Any) -> Node:
        return self._operator("floordiv", other)

    def __rfloordiv__(self, other: Any) -> Node:
        return self._operator("rfloordiv", other)

    def __mod__(self, other: Any) -> Node:
        return self._operator("mod", other)

    def __rmod__(self, other: Any) -> Node:
        return self._operator("rmod", other)

    def __pow__(self, other: Any) -> Node:
        return self._operator("pow", other)

    def __rpow__(self, other: Any) -> Node:
        return self._operator("rpow", other)

    def __matmul__(self, other: Any) -> Node:
        return self._operator("matmul", other)

    def __rmatmul__(self, other: Any) -> Node:
        return self._operator("rmatmul", other)

    def __and__(self, other: Any) -> Node:
        return self._operator("and", other)

    def __or__(self, other: Any) -> Node:
        return self._operator("or", other)

    def __xor__(self, other: Any) -> Node:
        return self._operator("xor", other)

    def __lshift__(self, other: Any) -> Node:
        return self._operator("lshift", other)

    def __rshift__(self, other: Any) -> Node:
        return self._operator("rshift", other)

    def __lt__(self, other: Any) -> Node:
        return self._operator("lt", other)

    def __le__(self, other: Any) -> Node:
        return self._operator("le", other)

    def __gt__(self, other: Any) -> Node:
        return self._operator("gt", other)

    def __ge__(self, other: Any) -> Node:
        return self._operator("ge", other)

    def __getitem__(self, other: Any) -> Node:
        return self._operator("getitem", other)

    def __neg__(self) -> Node:
        return self._operator("neg")

    def __abs__(self) -> Node:
        return self._operator("abs")

    def __invert__(self) -> Node:
        return self._operator("invert")


class Variable(Node):
    """An array that the functions of a graph share and may change.

    Example:
        >>> from cupola.graph import Graph
        >>> w = Graph().variable("w", mx.zeros(2))
        >>> w.value = mx.ones(2)
        >>> w.value
        array([1, 1], dtype=float32)
    """

    _value: mx.array

    @property
    def value(self) -> mx.array:
        """What it is now; it can be set to an array of its shape and dtype."""
        return self._value

    @value.setter
    def value(self, value: mx.array) -> None:
        value = mx.array(value)
        if value.shape != self._value.shape or value.dtype != self._value.dtype:
            raise ValueError(
                f"[graph] variable '{self.name}' is {described(self._value)}, not {described(value)}"
            )
        self._value = value


class Sizes:
    """Numbers that stand for names of sizes while nothing is bound: two for each, so that what
    follows from one can be told from a number."""

    def __init__(self) -> None:
        self.of: dict[str, tuple[int, int]] = {}

    def numbers(self, shape: Sequence[int | str]) -> list[tuple[int, ...]]:
        """The shape with each of the numbers of its names."""
        for size in shape:
            if isinstance(size, str) and size not in self.of:
                # Many numbers divide them.
                count = len(self.of) + 1
                self.of[size] = (5040 * count, 7560 * (100 + count))
        return [
            tuple(self.of[size][which] if isinstance(size, str) else size for size in shape)
            for which in range(2)
        ]

    def names(self, shapes: Sequence[Sequence[int]]) -> tuple[int | str, ...]:
        """The shape with names, of what it is with either number of these."""
        known = {pair: name for name, pair in self.of.items()}
        return tuple(a if a == b else known.get((a, b), "?") for a, b in zip(*shapes))
