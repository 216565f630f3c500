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
        x = _project(x, self.Wxh, self.bias)
        states = []
        for i in range(x.shape[-2]):
            step = x[..., i, :]
            if hidden is not None:
                step = mx.addmm(step, hidden, self.Whh.T)
            hidden = self.nonlinearity(step)
            states.append(hidden)
        return mx.stack(states, axis=-2)


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
        x = _project(x, self.Wx, self.b)
        states = []
        for i in range(x.shape[-2]):
            gates, candidate = x[..., i, : 2 * size], x[..., i, 2 * size :]
            recurrent = self.bhn
            if hidden is not None:
                product = hidden @ self.Wh.T
                gates = gates + product[..., : 2 * size]
                product = product[..., 2 * size :]
                recurrent = product if self.bhn is None else product + mx._amp.operand("matmul", self.bhn)
            gates = mx.sigmoid(gates)
            r, z = gates[..., :size], gates[..., size:]
            if recurrent is not None:
                candidate = candidate + r * recurrent
            new = (1 - z) * mx.tanh(candidate)
            hidden = new if hidden is None else new + z * hidden
            states.append(hidden)
        return mx.stack(states, axis=-2)


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
        x = _project(x, self.Wx, self.bias)
        hiddens, cells = [], []
        for i in range(x.shape[-2]):
            gates = x[..., i, :]
            if hidden is not None:
                gates = mx.addmm(gates, hidden, self.Wh.T)
            i_gate, f_gate, g_gate, o_gate = mx.split(gates, 4, axis=-1)
            new = mx.sigmoid(i_gate) * mx.tanh(g_gate)
            cell = new if cell is None else mx.sigmoid(f_gate) * cell + new
            hidden = mx.sigmoid(o_gate) * mx.tanh(cell)
            cells.append(cell)
            hiddens.append(hidden)
        return mx.stack(hiddens, axis=-2), mx.stack(cells, axis=-2)
