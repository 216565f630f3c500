"""Recurrent layers over inputs of shape ``[..., L, D]``: step by step along ``L``."""

from __future__ import annotations

import math
from typing import Callable, Optional, Tuple

import cupola.core as mx
from cupola.nn.layers.activations import tanh
from cupola.nn.layers.base import Module


def _uniform(hidden_size: int, *shape: int) -> mx.array:
    """Uniformly distributed within ``±1/√hidden_size``."""
    bound = 1.0 / math.sqrt(hidden_size)
    return mx.random.uniform(low=-bound, high=bound, shape=shape)


def _project(x: mx.array, weight: mx.array, bias: Optional[mx.array]) -> mx.array:
    return x @ weight.T if bias is None else mx.addmm(bias, x, weight.T)


# From so many steps on they are a loop: it is recorded and planned as one step, and each of its iterations
# costs a few microseconds more than a step of a longer plan.
_LOOP = 16

_State = Tuple[Optional[mx.array], ...]


def stepped(
    x: mx.array, state: _State, step: Callable[[mx.array, _State], Tuple[mx.array, ...]]
) -> Tuple[mx.array, ...]:
    """The states after each step along the axis before the last, from those before the first; ``None`` is 0."""
    if x.shape[-2] >= _LOOP:
        steps = mx.moveaxis(x, -2, 0)
        # What the first step makes of the states says what they are like.
        like = step(steps[0], state)
        init = tuple(
            mx.zeros_like(after)
            if before is None
            else mx.broadcast_to(before, after.shape).astype(after.dtype)
            for before, after in zip(state, like)
        )
        if all(b.dtype == a.dtype and b.shape == a.shape for b, a in zip(init, step(steps[0], init))):

            def iteration(before: _State, x: mx.array) -> Tuple[_State, _State]:
                after = step(x, before)
                return after, after

            _, states = mx.scan(iteration, init, steps)
            return tuple(mx.moveaxis(all, 0, -2) for all in states)
    found = []
    for i in range(x.shape[-2]):
        state = step(x[..., i, :], state)
        found.append(state)
    return tuple(mx.stack([states[i] for states in found], axis=-2) for i in range(len(state)))


class RNN(Module):
    """``h' = tanh(Wxh · x + Whh · h + bias)`` at each step.

    All parameters begin uniformly distributed within ``±1/√hidden_size``.

    Args:
        input_size: The number of input features.
        hidden_size: The number of features of the hidden state.
        bias: Whether there is a bias.
        nonlinearity: Another function in the place of :func:`tanh`.

    Raises:
        ValueError: If ``nonlinearity`` cannot be called.

    Example:
        >>> nn.RNN(3, 4)(mx.ones((2, 5, 3))).shape
        (2, 5, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Optional[Callable] = None,
    ) -> None:
        super().__init__()
        self.nonlinearity = tanh if nonlinearity is None else nonlinearity
        if not callable(self.nonlinearity):
            raise ValueError(f"Nonlinearity must be callable. Current value: {nonlinearity}.")
        self.hidden_size = hidden_size
        self.Wxh = _uniform(hidden_size, hidden_size, input_size)
        self.Whh = _uniform(hidden_size, hidden_size, hidden_size)
        self.bias = _uniform(hidden_size, hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self.Wxh.shape[1]}, hidden_size={self.hidden_size}, "
            f"nonlinearity={self.nonlinearity}, bias={self.bias is not None}"
        )

    def __call__(self, x: mx.array, hidden: Optional[mx.array] = None) -> mx.array:
        """The hidden states after each step, of shape ``[..., L, hidden_size]``."""

        def step(x: mx.array, state: _State) -> Tuple[mx.array, ...]:
            (hidden,) = state
            return (self.nonlinearity(x if hidden is None else mx.addmm(x, hidden, self.Whh.T)),)

        return stepped(_project(x, self.Wxh, self.bias), (hidden,), step)[0]


class GRU(Module):
    """A layer of gated recurrent units.

    From Cho et al. (2014), with the reset gate behind the product, as in cuDNN and PyTorch::

        r = σ(Wr · x + br + Ur · h)
        z = σ(Wz · x + bz + Uz · h)
        n = tanh(Wn · x + bn + r · (Un · h + bhn))
        h' = (1 - z) · n + z · h

    ``Wx``, ``Wh`` and ``b`` hold what belongs to r, z and n below one another. All parameters begin
    uniformly distributed within ``±1/√hidden_size``.

    Args:
        input_size: The number of input features.
        hidden_size: The number of features of the hidden state.
        bias: Whether there are biases.

    Example:
        >>> nn.GRU(3, 4)(mx.ones((2, 5, 3))).shape
        (2, 5, 4)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.Wx = _uniform(hidden_size, 3 * hidden_size, input_size)
        self.Wh = _uniform(hidden_size, 3 * hidden_size, hidden_size)
        self.b = _uniform(hidden_size, 3 * hidden_size) if bias else None
        self.bhn = _uniform(hidden_size, hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self.Wx.shape[1]}, hidden_size={self.hidden_size}, "
            f"bias={self.b is not None}"
        )

    def __call__(self, x: mx.array, hidden: Optional[mx.array] = None) -> mx.array:
        """The hidden states after each step, of shape ``[..., L, hidden_size]``."""
        size = self.hidden_size
        bias = None if self.bhn is None else mx._amp.operand("matmul", self.bhn)

        def step(x: mx.array, state: _State) -> Tuple[mx.array, ...]:
            (hidden,) = state
            gates, candidate = x[..., : 2 * size], x[..., 2 * size :]
            recurrent = bias
            if hidden is not None:
                product = hidden @ self.Wh.T
                gates = gates + product[..., : 2 * size]
                product = product[..., 2 * size :]
                recurrent = product if bias is None else product + bias
            gates = mx.sigmoid(gates)
            r, z = gates[..., :size], gates[..., size:]
            if recurrent is not None:
                candidate = candidate + r * recurrent
            new = (1 - z) * mx.tanh(candidate)
            return (new if hidden is None else new + z * hidden,)

        return stepped(_project(x, self.Wx, self.b), (hidden,), step)[0]


class LSTM(Module):
    """A layer of long short-term memory.

    From Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000)::

        i = σ(Wi · x + Ui · h + bi)
        f = σ(Wf · x + Uf · h + bf)
        g = tanh(Wg · x + Ug · h + bg)
        o = σ(Wo · x + Uo · h + bo)
        c' = f · c + i · g
        h' = o · tanh(c')

    ``Wx``, ``Wh`` and ``bias`` hold what belongs to i, f, g and o below one another. All parameters
    begin uniformly distributed within ``±1/√hidden_size``.

    Args:
        input_size: The number of input features.
        hidden_size: The number of features of the hidden state.
        bias: Whether there is a bias.

    Example:
        >>> hidden, cell = nn.LSTM(3, 4)(mx.ones((2, 5, 3)))
        >>> hidden.shape, cell.shape
        ((2, 5, 4), (2, 5, 4))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.Wx = _uniform(hidden_size, 4 * hidden_size, input_size)
        self.Wh = _uniform(hidden_size, 4 * hidden_size, hidden_size)
        self.bias = _uniform(hidden_size, 4 * hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self.Wx.shape[1]}, hidden_size={self.hidden_size}, "
            f"bias={self.bias is not None}"
        )

    def __call__(
        self, x: mx.array, hidden: Optional[mx.array] = None, cell: Optional[mx.array] = None
    ) -> Tuple[mx.array, mx.array]:
        """The hidden and the cell states after each step, of shape ``[..., L, hidden_size]``."""

        def step(x: mx.array, state: _State) -> Tuple[mx.array, ...]:
            hidden, cell = state
            gates = x if hidden is None else mx.addmm(x, hidden, self.Wh.T)
            i_gate, f_gate, g_gate, o_gate = mx.split(gates, 4, axis=-1)
            new = mx.sigmoid(i_gate) * mx.tanh(g_gate)
            cell = new if cell is None else mx.sigmoid(f_gate) * cell + new
            return mx.sigmoid(o_gate) * mx.tanh(cell), cell

        hidden, cell = stepped(_project(x, self.Wx, self.bias), (hidden, cell), step)
        return hidden, cell
