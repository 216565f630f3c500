"""Optimizers: those of ``cupola.optimizers``, with what ML Compute does to gradients before."""

from __future__ import annotations

from typing import Any

import cupola.core as mx
from cupola import optimizers
from cupola.utils import tree_flatten, tree_unflatten

from ._layer import Arrays, one_of
from ._tensor import Tensor


class Optimizer:
    """How a training graph changes parameters by their gradients.

    Gradients are rescaled, regularized with the parameters (``l1`` or ``l2``), and clipped: by ``value`` between two
    numbers, by ``norm`` each to a largest norm, or by ``global_norm`` all together.
    """

    def __init__(
        self,
        optimizer: optimizers.Optimizer,
        gradient_rescale: float = 1.0,
        regularization: str = "none",
        regularization_scale: float = 0.0,
        clipping: str = "none",
        clipping_range: tuple[float, float] = (-1.0, 1.0),
        maximum_norm: float = 1.0,
    ) -> None:
        one_of("optimizer", regularization, ["none", "l1", "l2"])
        one_of("optimizer", clipping, ["none", "value", "norm", "global_norm"])
        self._optimizer = optimizer
        self._rescale = gradient_rescale
        self._regularization, self._scale = regularization, regularization_scale
        self._clipping, self._range, self._norm = clipping, clipping_range, maximum_norm
        self.states: dict[str, Tensor] = {}
        """What it keeps, by name, from when a graph was compiled with it."""

    @property
    def learning_rate(self) -> float:
        """The learning rate; it can be set between executions."""
        held = self.states.get("learning_rate")
        rate = self._optimizer.learning_rate if held is None else held.data
        return float(rate.item())

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._optimizer.learning_rate = rate
        if "learning_rate" in self.states:
            self.states["learning_rate"].bind(mx.array(rate, mx.float32))

    def prepare(self, parameters: Arrays) -> None:
        """Makes what is kept for parameters; what is there already stays."""
        self._optimizer.init(parameters)
        for name, value in self._flat().items():
            self.states.setdefault(name, Tensor(value.shape, value.dtype, value, name))
        for name, value in parameters.items():
            for key, state in self.states.items():
                if key.startswith(f"{name}.") and state.shape not in ((), value.shape):
                    raise ValueError("[mlcompute] the optimizer belongs to another training graph")

    def _flat(self) -> Arrays:
        flat: Any = tree_flatten(self._optimizer.state)
        return dict(flat)

    def update(self, parameters: Arrays, gradients: Arrays, states: Arrays) -> tuple[Arrays, Arrays]:
        """The parameters and the states after one step."""
        before = self._optimizer.state
        try:
            self._optimizer.state = tree_unflatten(list(states.items()))
            self._optimizer._initialized = True
            given = self._treated(parameters, gradients)
            after = self._optimizer.apply_gradients(given, parameters)
            return after, self._flat()
        finally:
            self._optimizer.state = before
            self._optimizer._initialized = True

    def _treated(self, parameters: Arrays, gradients: Arrays) -> Arrays:
        out = {}
        for name, gradient in gradients.items():
            if self._rescale != 1:
                gradient = gradient * self._rescale
            if self._regularization == "l1":
                gradient = gradient + self._scale * mx.sign(parameters[name])
            elif self._regularization == "l2":
                gradient = gradient + self._scale * parameters[name]
            if self._clipping == "value":
                gradient = mx.clip(gradient, *self._range)
            elif self._clipping == "norm":
                gradient = optimizers.clip_grad_norm({"": gradient}, self._norm)[0][""]
            out[name] = gradient
        if self._clipping == "global_norm":
            out = optimizers.clip_grad_norm(out, self._norm)[0]
        return out


def sgd_optimizer(
    learning_rate: float, momentum: float = 0.0, uses_nesterov: bool = False, **treatment: Any
) -> Optimizer:
    """Stochastic gradient descent. ``treatment`` is what `Optimizer` does to gradients before.

    Example:
        >>> round(sgd_optimizer(0.1, momentum=0.9).learning_rate, 6)
        0.1
    """
    own = optimizers.SGD(learning_rate, momentum=momentum, nesterov=uses_nesterov)
    return Optimizer(own, **treatment)


def adam_optimizer(
    learning_rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    **treatment: Any,
) -> Optimizer:
    """Adam, with its bias corrected. ``treatment`` is what `Optimizer` does to gradients before."""
    betas = [beta1, beta2]
    own = optimizers.Adam(learning_rate, betas=betas, eps=epsilon, bias_correction=True)
    return Optimizer(own, **treatment)


def adamw_optimizer(
    learning_rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
    **treatment: Any,
) -> Optimizer:
    """Adam with decoupled decay of weights. ``treatment`` is what `Optimizer` does to gradients before."""
    own = optimizers.AdamW(
        learning_rate,
        betas=[beta1, beta2],
        eps=epsilon,
        weight_decay=weight_decay,
        bias_correction=True,
    )
    return Optimizer(own, **treatment)
