"""What a layer is: a function of arrays with tensors that it has learnt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import cupola.core as mx

from ._tensor import Tensor

Arrays = dict[str, mx.array]


class Layer:
    """A layer, which a graph applies to tensors.

    ``parameters`` are learnt; ``states`` change with every execution of a training graph, such as the running
    mean of a batch normalization. Both are tensors by name, whose data can be read and bound.

    ``forward`` gets arrays, the parameters and states by name, and whether the graph trains. It gives an array
    or a list of them; where there are states, a pair of this and the states after.
    """

    def __init__(
        self,
        label: str,
        forward: Callable[[Sequence[mx.array], Arrays, bool], Any],
        parameters: dict[str, Tensor] | None = None,
        states: dict[str, Tensor] | None = None,
    ) -> None:
        self.label = label
        """What it is called in errors."""
        self.parameters = parameters or {}
        """What it learns, by name."""
        self.states = states or {}
        """What it keeps otherwise, by name."""
        self._forward = forward

    def __call__(
        self, inputs: Sequence[mx.array], held: Arrays, training: bool
    ) -> tuple[list[mx.array], Arrays]:
        """What it makes of arrays with its parameters and states, and the states after that."""
        result, states = self._forward(inputs, held, training), {}
        if self.states:
            result, states = result
        return (list(result) if isinstance(result, (list, tuple)) else [result]), states

    @property
    def weights(self) -> Tensor:
        """The tensor of its weights."""
        return self.parameters["weights"]

    @property
    def biases(self) -> Tensor:
        """The tensor of its biases."""
        return self.parameters["biases"]

    def __repr__(self) -> str:
        return f"Layer({self.label})"


def taking(label: str, inputs: Sequence[mx.array], least: int, most: int | None = None) -> None:
    """Looks at how many tensors a layer was given."""
    most = least if most is None else most
    if not least <= len(inputs) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise ValueError(f"{label} layer: takes {wanted} tensors, not {len(inputs)}")


def one_of(label: str, value: str, known: Sequence[str]) -> str:
    """A value, if it is among those that are known."""
    if value not in known:
        raise ValueError(f"[mlcompute] {label} layer: '{value}' is none of {', '.join(known)}")
    return value


def learnt(
    label: str, name: str, given: Any, shape: Sequence[int], start: Callable[[], mx.array]
) -> Tensor:
    """The tensor of a parameter: the one that was given, with so many numbers, or a new one."""
    if given is None:
        return Tensor(shape, "Float32", start().astype(mx.float32), name)
    held = given if isinstance(given, Tensor) else Tensor(shape, mx.array(given).dtype, given, name)
    if held.data.size != math.prod(shape):
        raise ValueError(
            f"[mlcompute] {label} layer: {name} have {held.data.size} numbers, not those of {list(shape)}"
        )
    return held


def uniform(shape: Sequence[int], fan_in: int) -> Callable[[], mx.array]:
    """Numbers within ±1/√fan_in."""
    bound = 1 / math.sqrt(max(fan_in, 1))
    return lambda: mx.random.uniform(-bound, bound, list(shape))


def pair(value: int | Sequence[int]) -> tuple[int, int]:
    """A number for both spatial axes, or one for each."""
    if isinstance(value, int):
        return (value, value)
    height, width = value
    return (height, width)
