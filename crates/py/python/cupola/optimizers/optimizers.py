"""Optimisers.

An optimiser's state is a dictionary: ``step``, the scheduled values such as ``learning_rate``, and
below the names of the parameters what the optimiser keeps for each.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import cupola.core as mx
from cupola.nn.layers.base import Module
from cupola.utils import (
    tree_flatten,
    tree_map,
    tree_merge,
    tree_reduce,
    tree_unflatten,
)

_Scheduled = Union[float, Callable[[mx.array], mx.array]]


def _as_array(value: Any) -> mx.array:
    return value if isinstance(value, mx.array) else mx.array(value)


def _check(holds: bool, what: str, value: Any) -> None:
    """Raise a ``ValueError`` that says what ``value`` should have been, unless it was."""
    if not holds:
        raise ValueError(f"{what}, {value} was provided instead")


def _check_betas(name: str, betas: Any) -> None:
    for i, beta in enumerate(betas, start=1):
        _check(0.0 <= beta < 1.0, f"{name} beta{i} should be in [0, 1)", beta)


def _undoable(value: Any, former: Any) -> Any:
    """``value`` as what ``former`` becomes, where both are arrays."""
    if isinstance(value, mx.array) and isinstance(former, mx.array):
        return mx._nn.update(value, former)
    return value


class Optimizer:
    """What all optimisers have in common.

    A subclass says in :meth:`init_single` what it keeps for a parameter and in :meth:`apply_single`
    how it changes one.

    Args:
        schedulers: Functions from the step to the value of the state of their name.

    Example:
        >>> optim.SGD(0.1).learning_rate.item() == mx.array(0.1).item()
        True
    """

    # What the parameters of the update under way have in common.
    _common: Optional[Dict[Any, Any]] = None
    # Whether `apply_single` records what is undone where it cannot be computed.
    _undoes = False

    def __init__(self, schedulers: Optional[Dict[str, Callable]] = None) -> None:
        self._initialized = False
        self._state: Dict[str, Any] = {"step": mx.array(0, mx.uint64)}
        self._schedulers: Dict[str, Callable] = dict(schedulers or {})

    def update(self, model: Module, gradients: dict) -> None:
        """Replace the parameters of ``model`` by those that its gradients lead to.

        Args:
            model: The module.
            gradients: A tree, as :func:`cupola.nn.value_and_grad` gives it.
        """
        # The policy of the step is not that of the update, which may have products of its own.
        with mx._amp.Scope():
            model.update(self.apply_gradients(gradients, model))

    def init(self, parameters: dict) -> None:
        """Make the state for a tree of parameters; what is there already is kept.

        The first update does this, so there is only need of it where the state is wanted before.

        Args:
            parameters: The tree.

        Example:
            >>> optimizer = SGD(learning_rate=0.1, momentum=0.9)
            >>> optimizer.init(nn.Linear(2, 2).trainable_parameters())
            >>> optimizer.state.keys()
            dict_keys(['step', 'learning_rate', 'weight', 'bias'])
        """
        self._state.update(self._fill(parameters, self._state))
        self._initialized = True

    def _fill(self, parameters: Any, state: Any) -> Any:
        """``state`` and what it lacks for ``parameters``."""
        if isinstance(parameters, dict):
            filled: Any = dict(state or {})
            for key, below in parameters.items():
                filled[key] = self._fill(below, filled.get(key))
            return filled
        if isinstance(parameters, (list, tuple)):
            filled = list(state or [])
            for i, below in enumerate(parameters):
                filled[i : i + 1] = [self._fill(below, filled[i] if i < len(filled) else None)]
            return type(parameters)(filled)
        state = {} if state is None else state
        if not state:
            self.init_single(parameters, state)
        return state

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Put what is kept for ``parameter`` into ``state``, its empty dictionary."""
        raise NotImplementedError(f"{type(self).__name__}.init_single")

    def apply_gradients(self, gradients: dict, parameters: dict) -> Any:
        """The parameters that the gradients lead to.

        Args:
            gradients: A tree of gradients.
            parameters: A tree of parameters with at least the places of ``gradients``.

        Returns:
            A tree with the places of ``gradients``.
        """
        if not self._initialized and isinstance(gradients, dict):
            self.init(gradients)
        for name, schedule in self._schedulers.items():
            self._state[name] = _as_array(schedule(self.step))
        self._state["step"] = _undoable(self.step + 1, self.step)
        self._common = {}
        apply = self.apply_single if self._undoes else self._apply_undoable
        try:
            return tree_map(apply, gradients, parameters, self._state)
        finally:
            self._common = None

    def _apply_undoable(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """:meth:`apply_single`; an index that keeps it from being computed leaves all as it was."""
        former = dict(state)
        parameter = _undoable(self.apply_single(gradient, parameter, state), parameter)
        for name, value in state.items():
            state[name] = _undoable(value, former.get(name))
        return parameter

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """What ``gradient`` makes of ``parameter``, changing its ``state``."""
        raise NotImplementedError(f"{type(self).__name__}.apply_single")

    @property
    def state(self) -> Dict[str, Any]:
        """The state by reference."""
        return self._state

    @state.setter
    def state(self, state: Dict[str, Any]) -> None:
        self._initialized = False
        self._state = state

    @property
    def step(self) -> mx.array:
        """How many updates there have been."""
        return self.state["step"]

    @property
    def learning_rate(self) -> mx.array:
        """The learning rate."""
        return self.state["learning_rate"]

    @learning_rate.setter
    def learning_rate(self, learning_rate: Union[float, mx.array]) -> None:
        self.state["learning_rate"] = _as_array(learning_rate)

    def _maybe_schedule(self, name: str, param: _Scheduled) -> None:
        """Set a value of the state, or schedule it."""
        if callable(param) and not isinstance(param, mx.array):
            self._schedulers[name] = param
            self._state[name] = _as_array(param(self.step))
        else:
            self._state[name] = _as_array(param)

    def _once(self, make: Callable[[mx.Dtype], Any], gradient: mx.array) -> Any:
        """What ``make`` gives for the dtype of the gradient: the same for all parameters of an update."""
        dtype = gradient.dtype
        if self._common is None:
            return make(dtype)
        key = (make.__name__, dtype)
        if key not in self._common:
            self._common[key] = make(dtype)
        return self._common[key]

    def _rate_in(self, dtype: mx.Dtype) -> mx.array:
        return self.learning_rate.astype(dtype)

    def _rate_like(self, gradient: mx.array) -> mx.array:
        """The learning rate in the dtype of the gradient."""
        return self._once(self._rate_in, gradient)


class MultiOptimizer(Optimizer):
    """Several optimisers, each for some of the parameters.

    Args:
        optimizers: The optimisers; the last is for what no filter wants.
        filters: For each but the last a function of a parameter's dotted name and its gradient that
            says whether the optimiser wants it. The first that does gets it.

    Raises:
        ValueError: If there is not one filter fewer than there are optimisers.

    Example:
        >>> is_bias = lambda name, weight: "bias" in name
        >>> both = optim.MultiOptimizer([optim.Adam(1e-3), optim.SGD(0.1)], [is_bias])
        >>> model = nn.Linear(4, 2)
        >>> both.update(model, model.parameters())
    """

    def __init__(self, optimizers: List[Optimizer], filters: list = []) -> None:
        super().__init__()
        self._state = {}
        if len(filters) != len(optimizers) - 1:
            raise ValueError(f"Given {len(filters)} filters but {len(optimizers) - 1} needed.")
        self.optimizers = optimizers
        self.filters = [*filters, lambda path, gradient: True]

    def _split_dictionary(self, gradients: dict) -> List[Any]:
        """The part of each optimiser."""
        if len(self.optimizers) == 1:
            return [gradients]
        parts: List[List[Tuple[str, Any]]] = [[] for _ in self.optimizers]
        flat: Any = tree_flatten(gradients)
        for path, gradient in flat:
            for part, wants in zip(parts, self.filters):
                if wants(path, gradient):
                    part.append((path, gradient))
                    break
        return [tree_unflatten(part) if part else {} for part in parts]

    def init(self, parameters: dict) -> None:
        """Make the states of all optimisers."""
        for optimizer, part in zip(self.optimizers, self._split_dictionary(parameters)):
            optimizer.init(part)
        self._initialized = True

    def apply_gradients(self, gradients: dict, parameters: dict) -> Any:
        """The parameters that the gradients lead to."""
        updated: Any = {}
        for optimizer, part in zip(self.optimizers, self._split_dictionary(gradients)):
            updated = tree_merge(updated, optimizer.apply_gradients(part, parameters))
        return updated

    @property
    def state(self) -> Dict[str, Any]:
        """The states of the optimisers, as ``states``."""
        return {"states": [optimizer.state for optimizer in self.optimizers]}

    @state.setter
    def state(self, state: Dict[str, Any]) -> None:
        if "states" not in state or len(state["states"]) != len(self.optimizers):
            raise ValueError("Invalid state provided")
        for optimizer, part in zip(self.optimizers, state["states"]):
            optimizer.state = part

    @property
    def learning_rate(self) -> mx.array:
        """The learning rate of the first; setting it sets it for all."""
        return self.optimizers[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Union[float, mx.array]) -> None:
        for optimizer in self.optimizers:
            optimizer.learning_rate = learning_rate


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum::

        v = momentum · v + (1 - dampening) · g
        w = w - learning_rate · v

    Args:
        learning_rate: The learning rate, or a schedule of it.
        momentum: The momentum.
        weight_decay: How much of the parameter is added to its gradient.
        dampening: How much less of the gradient goes into the momentum.
        nesterov: Whether the step looks ahead, as Nesterov's does.

    Raises:
        ValueError: If ``nesterov`` comes without a momentum or with a dampening.

    Example:
        >>> optimizer = optim.SGD(0.5, momentum=0.9)
        >>> optimizer.apply_gradients({"w": mx.array([1.0])}, {"w": mx.array([3.0])})
        {'w': array([2.5], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: _Scheduled,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening.")
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.dampening = dampening
        self.nesterov = nesterov

    @property
    def _undoes(self) -> bool:  # type: ignore[override]
        return self.momentum > 0

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Begin with no momentum."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Step, and keep the momentum ``v``."""
        rate = self._rate_like(gradient)
        if self.momentum <= 0:
            if self.weight_decay != 0:
                gradient = gradient + self.weight_decay * parameter
            return parameter - rate * gradient
        how = (self.momentum, self.dampening, self.nesterov)
        parameter, state["v"] = mx._nn.sgd(
            parameter, gradient, state["v"], how, self.weight_decay, rate
        )
        return parameter


class RMSprop(Optimizer):
    """RMSprop, from Tieleman and Hinton, *Lecture 6.5, Neural networks for machine learning* (2012)::

        v = alpha · v + (1 - alpha) · g²
        w = w - learning_rate · g / (√v + eps)

    Args:
        learning_rate: The learning rate, or a schedule of it.
        alpha: The weight of the past.
        eps: Added to the denominator.

    Raises:
        ValueError: If ``alpha`` or ``eps`` is negative.

    Example:
        >>> optimizer = optim.RMSprop(0.1)
        >>> model = nn.Linear(4, 2)
        >>> optimizer.update(model, model.parameters())
    """

    def __init__(
        self, learning_rate: _Scheduled, alpha: float = 0.99, eps: float = 1e-8
    ) -> None:
        super().__init__()
        _check(alpha >= 0.0, "RMSprop alpha should be >=0", alpha)
        _check(eps > 0.0, "RMSprop epsilon should be >0", eps)
        self._maybe_schedule("learning_rate", learning_rate)
        self.alpha = alpha
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Begin at 0."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Step, and keep the mean square ``v``."""
        v = self.alpha * state["v"] + (1 - self.alpha) * mx.square(gradient)
        state["v"] = v
        return parameter - self._rate_like(gradient) * gradient / (mx.sqrt(v) + self.eps)


class Adagrad(Optimizer):
    """Adagrad, from Duchi et al., *Adaptive subgradient methods* (2011)::

        v = v + g²
        w = w - learning_rate · g / (√v + eps)

    Args:
        learning_rate: The learning rate, or a schedule of it.
        eps: Added to the denominator.

    Raises:
        ValueError: If ``eps`` is negative.

    Example:
        >>> optimizer = optim.Adagrad(0.1)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([3.0])})
        {'w': array([2.9], dtype=float32)}
    """

    def __init__(self, learning_rate: _Scheduled, eps: float = 1e-8) -> None:
        super().__init__()
        _check(eps > 0.0, "Adagrad epsilon should be >0", eps)
        self._maybe_schedule("learning_rate", learning_rate)
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Begin at 0."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Step, and keep the sum of squares ``v``."""
        v = state["v"] + mx.square(gradient)
        state["v"] = v
        return parameter - self._rate_like(gradient) * gradient / (mx.sqrt(v) + self.eps)


class AdaDelta(Optimizer):
    """AdaDelta, from Zeiler, *ADADELTA* (2012)::

        v = rho · v + (1 - rho) · g²
        d = g · √(u + eps) / √(v + eps)
        u = rho · u + (1 - rho) · d²
        w = w - learning_rate · d

    Args:
        learning_rate: The learning rate, or a schedule of it.
        rho: The weight of the past.
        eps: Added under the roots.

    Raises:
        ValueError: If ``rho`` or ``eps`` is negative.

    Example:
        >>> optimizer = optim.AdaDelta(0.1)
        >>> model = nn.Linear(4, 2)
        >>> optimizer.update(model, model.parameters())
    """

    def __init__(self, learning_rate: _Scheduled, rho: float = 0.9, eps: float = 1e-6) -> None:
        super().__init__()
        _check(rho >= 0.0, "AdaDelta rho should be >=0", rho)
        _check(eps > 0.0, "AdaDelta epsilon should be >0", eps)
        self._maybe_schedule("learning_rate", learning_rate)
        self.rho = rho
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Begin at 0."""
        state["v"] = mx.zeros_like(parameter)
        state["u"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Step, and keep the mean squares ``v`` of gradients and ``u`` of steps."""
        rho, eps = self.rho, self.eps
        v = rho * state["v"] + (1 - rho) * mx.square(gradient)
        delta = mx.sqrt(state["u"] + eps) / mx.sqrt(v + eps) * gradient
        state["v"] = v
        state["u"] = rho * state["u"] + (1 - rho) * mx.square(delta)
        return parameter - self._rate_like(gradient) * delta


class Adam(Optimizer):
    """Adam, from Kingma and Ba, *Adam* (2015)::

        m = β1 · m + (1 - β1) · g
        v = β2 · v + (1 - β2) · g²
        w = w - learning_rate · m / (√v + eps)

    Args:
        learning_rate: The learning rate, or a schedule of it.
        betas: The weights β1 and β2 of the past.
        eps: Added to the denominator.
        bias_correction: Whether ``m`` and ``v`` are divided by ``1 - β1^step`` and ``1 - β2^step``.

    Example:
        >>> optimizer = optim.Adam(1e-3)
        >>> model = nn.Linear(4, 2)
        >>> optimizer.update(model, model.parameters())
        >>> optimizer.step.item()
        1
    """

    _undoes = True

    def __init__(
        self,
        learning_rate: _Scheduled,
        betas: List[float] = [0.9, 0.999],
        eps: float = 1e-8,
        bias_correction: bool = False,
    ) -> None:
        super().__init__()
        _check_betas("Adam", betas)
        _check(eps >= 0.0, "Adam epsilon should be >=0", eps)
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas = betas
        self.eps = eps
        self.bias_correction = bias_correction

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Begin at 0."""
        state["m"] = mx.zeros_like(parameter)
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Step, and keep the means ``m`` of gradients and ``v`` of their squares."""
        rate, deviation, kept = self._once(self._factors, gradient)
        # One call and one node: a step records this for every parameter.
        parameter, state["m"], state["v"] = mx._nn.adam(
            parameter, gradient, state["m"], state["v"], tuple(self.betas), self.eps, rate, deviation, kept
        )
        return parameter

    def _factors(self, dtype: mx.Dtype) -> Tuple[mx.array, Optional[mx.array], Optional[mx.array]]:
        """What ``m`` and the root of ``v`` are multiplied by, and what is left of the parameter."""
        if self.bias_correction:
            return (*self._corrections(dtype), None)
        return self._rate_in(dtype), None, None

    def _corrections(self, dtype: mx.Dtype) -> Tuple[mx.array, mx.array]:
        # Computed in full precision: powers of β2 are close to 1.
        b1, b2 = self.betas
        m_scale = self.learning_rate / (1 - b1**self.step)
        return m_scale.astype(dtype), mx.rsqrt(1 - b2**self.step).astype(dtype)


class AdamW(Adam):
    """Adam with decoupled weight decay, from Loshchilov and Hutter (2019)::

        w = w - learning_rate · (m / (√v + eps) + weight_decay · w)

    Args:
        learning_rate: The learning rate, or a schedule of it.
        betas: The weights β1 and β2 of the past.
        eps: Added to the denominator.
        weight_decay: The weight decay.
        bias_correction: Whether ``m`` and ``v`` are divided by ``1 - β1^step`` and ``1 - β2^step``.

    Example:
        >>> optimizer = optim.AdamW(1e-3, weight_decay=0.1)
        >>> model = nn.Linear(4, 2)
        >>> optimizer.update(model, model.parameters())
    """

    def __init__(
        self,
        learning_rate: _Scheduled,
        betas: List[float] = [0.9, 0.999],
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        bias_correction: bool = False,
    ) -> None:
        super().__init__(learning_rate, betas, eps, bias_correction)
        self.weight_decay = weight_decay

    def _factors(self, dtype: mx.Dtype) -> Tuple[mx.array, Optional[mx.array], Optional[mx.array]]:
        rate, deviation, _ = super()._factors(dtype)
        return rate, deviation, 1 - self._rate_in(dtype) * self.weight_decay


class Adamax(Adam):
    """The variant of Adam with the infinity norm, from Kingma and Ba, *Adam* (2015)::

        m = β1 · m + (1 - β1) · g
        v = max(β2 · v, |g|)
        w = w - learning_rate · m / (v + eps)

    Args:
        learning_rate: The learning rate, or a schedule of it.
        betas: The weights β1 and β2 of the past.
        eps: Added to the denominator.

    Example:
        >>> optimizer = optim.Adamax(1e-3)
        >>> model = nn.Linear(4, 2)
        >>> optimizer.update(model, model.parameters())
    """

    _undoes = False

    def __init__(
        self, learning_rate: _Scheduled, betas: List[float] = [0.9, 0.999], eps: float = 1e-8
    ) -> None:
        super().__init__(learning_rate, betas, eps)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Step, and keep the mean ``m`` of gradients and their largest ``v``."""
        b1, b2 = self.betas
        m = b1 * state["m"] + (1 - b1) * gradient
        v = mx.maximum(b2 * state["v"], mx.abs(gradient))
        state["m"] = m
        state["v"] = v
        return parameter - self._rate_like(gradient) * m / (v + self.eps)


class Lion(Optimizer):
    """Lion, from Chen et al., *Symbolic Discovery of Optimization Algorithms* (2023)::

        c = β1 · m + (1 - β1) · g
        m = β2 · m + (1 - β2) · g
        w = w - learning_rate · (sign(c) + weight_decay · w)

    It wants a learning rate 3 to 10 times smaller than AdamW, and a weight decay as much larger.

    Args:
        learning_rate: The learning rate, or a schedule of it.
        betas: The weights β1 and β2 of the past.
        weight_decay: The weight decay.

    Example:
        >>> optimizer = optim.Lion(0.5)
        >>> optimizer.apply_gradients({"w": mx.array([7.0])}, {"w": mx.array([3.0])})
        {'w': array([2.5], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: _Scheduled,
        betas: List[float] = [0.9, 0.99],
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__()
        _check_betas("Lion", betas)
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas = betas
        self.weight_decay = weight_decay

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Begin at 0."""
        state["m"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Step, and keep the mean ``m`` of gradients."""
        b1, b2 = self.betas
        rate = self._rate_like(gradient)
        m = state["m"]
        state["m"] = b2 * m + (1 - b2) * gradient
        if self.weight_decay > 0:
            parameter = (1 - rate * self.weight_decay) * parameter
        return parameter - rate * mx.sign(b1 * m + (1 - b1) * gradient)


class Adafactor(Optimizer):
    """Adafactor, from Shazeer and Stern, *Adafactor* (2018).

    For a matrix it keeps the mean squares of the gradients of rows and of columns only.

    Args:
        learning_rate: The learning rate, or a schedule of it.
        eps: What is added to squares of gradients, and the least scale of a parameter.
        clip_threshold: The largest root mean square of a step, before the learning rate.
        decay_rate: The weight of the past is ``1 - step^decay_rate``.
        beta_1: The weight of the past in a mean of steps, if there is to be one.
        weight_decay: The weight decay.
        scale_parameter: Whether steps are proportional to the parameter's root mean square.
        relative_step: Whether the learning rate is ``1/√step``, at most 0.01, and
            ``learning_rate`` is not looked at.
        warmup_init: Whether it then is at most ``1e-6 · step``.

    Example:
        >>> optimizer = optim.Adafactor()
        >>> model = nn.Linear(4, 2)
        >>> optimizer.update(model, model.parameters())
    """

    def __init__(
        self,
        learning_rate: Optional[_Scheduled] = None,
        eps: Tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = -0.8,
        beta_1: Optional[float] = None,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
    ) -> None:
        super().__init__()
        if learning_rate is not None:
            self._maybe_schedule("learning_rate", learning_rate)
        self.eps = eps
        self.clip_threshold = clip_threshold
        self.decay_rate = decay_rate
        self.beta_1 = beta_1
        self.weight_decay = weight_decay
        self.scale_parameter = scale_parameter
        self.relative_step = relative_step
        self.warmup_init = warmup_init

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Begin at 0."""
        if parameter.ndim >= 2:
            shape, dtype = parameter.shape, parameter.dtype
            state["exp_avg_sq_row"] = mx.zeros(shape[:-1], dtype=dtype)
            state["exp_avg_sq_col"] = mx.zeros(shape[:-2] + shape[-1:], dtype=dtype)
        else:
            state["exp_avg_sq"] = mx.zeros_like(parameter)
        if self.beta_1 is not None:
            state["exp_avg"] = mx.zeros_like(parameter)

    def _compute_rms(self, inputs: mx.array) -> mx.array:
        return mx.sqrt(mx.mean(mx.square(inputs)))

    def _compute_learning_rate(self, step: mx.array, parameter_rms: mx.array) -> mx.array:
        if self.relative_step:
            most = 1e-6 * step if self.warmup_init else 1e-2
            rate = mx.minimum(most, mx.rsqrt(step))
        else:
            rate = self.learning_rate
        rate = rate.astype(parameter_rms.dtype)
        return mx.maximum(self.eps[1], parameter_rms) * rate if self.scale_parameter else rate

    def _approximate_exp_moving_avg(
        self, exp_avg_sq_row: mx.array, exp_avg_sq_col: mx.array
    ) -> mx.array:
        """One over the root of the mean squares, from those of rows and of columns."""
        row = mx.rsqrt(exp_avg_sq_row / mx.mean(exp_avg_sq_row, axis=-1, keepdims=True))
        return row[..., None] * mx.rsqrt(exp_avg_sq_col)[..., None, :]

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Step, and keep the mean squares."""
        rate = self._compute_learning_rate(self.step, self._compute_rms(parameter))
        past = (1.0 - self.step**self.decay_rate).astype(gradient.dtype)
        squares = mx.square(gradient) + self.eps[0]
        if gradient.ndim >= 2:
            for name, axis in (("exp_avg_sq_row", -1), ("exp_avg_sq_col", -2)):
                state[name] = past * state[name] + (1 - past) * mx.mean(squares, axis=axis)
            update = gradient * self._approximate_exp_moving_avg(
                state["exp_avg_sq_row"], state["exp_avg_sq_col"]
            )
        else:
            state["exp_avg_sq"] = past * state["exp_avg_sq"] + (1 - past) * squares
            update = mx.rsqrt(state["exp_avg_sq"]) * gradient
        update = update / mx.maximum(1.0, self._compute_rms(update) / self.clip_threshold)
        update = rate * update
        if self.beta_1 is not None:
            update = self.beta_1 * state["exp_avg"] + (1 - self.beta_1) * update
            state["exp_avg"] = update
        if self.weight_decay != 0:
            parameter = parameter + parameter * (-self.weight_decay * rate)
        return parameter - update


class Muon(Optimizer):
    """Momentum orthogonalised by Newton-Schulz iterations, from Jordan et al., *Muon* (2024).

    It is meant for the matrices inside of a network; embeddings, the last layer, biases and scales
    are better left to another optimiser (:class:`MultiOptimizer`). Axes behind the first of a
    parameter with more than two are taken together.

    Args:
        learning_rate: The learning rate, or a schedule of it.
        momentum: The momentum.
        weight_decay: How much of the parameter is added to its gradient.
        nesterov: Whether the step looks ahead, as Nesterov's does.
        ns_steps: The number of iterations.

    Example:
        >>> optimizer = optim.Muon(0.1)
        >>> model = nn.Linear(4, 2)
        >>> optimizer.update(model, model.parameters())
    """

    # The coefficients of the article's quintic iteration.
    _QUINTIC = (3.4445, -4.7750, 2.0315)

    def __init__(
        self,
        learning_rate: _Scheduled,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        nesterov: bool = True,
        ns_steps: int = 5,
    ) -> None:
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.ns_steps = ns_steps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Begin with no momentum."""
        state["v"] = mx.zeros_like(parameter)

    def _zeropower_via_newtonschulz5(self, X: mx.array, steps: int) -> mx.array:
        """An orthogonal matrix near to ``X``."""
        a, b, c = self._QUINTIC
        tall = X.shape[-2] > X.shape[-1]
        X = X.T if tall else X
        X = X / (mx.sqrt(mx.sum(mx.square(X))) + 1e-7)
        for _ in range(steps):
            A = X @ X.T
            X = a * X + (b * A + c * (A @ A)) @ X
        return X.T if tall else X

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Step, and keep the momentum ``v``."""
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        v = self.momentum * state["v"] + (1 - self.momentum) * gradient
        state["v"] = v
        update = (1 - self.momentum) * gradient + self.momentum * v if self.nesterov else v
        rate = self._rate_like(gradient)
        if update.ndim >= 2:
            matrix = update.reshape(update.shape[0], -1)
            update = self._zeropower_via_newtonschulz5(matrix, self.ns_steps)
            update = update.reshape(parameter.shape)
            rate = rate * math.sqrt(max(1, parameter.shape[-2] / parameter.shape[-1]))
        return parameter - rate * update


def clip_grad_norm(grads: Any, max_norm: float) -> Tuple[Any, mx.array]:
    """Scale gradients so that their norm, over all of them, is at most ``max_norm``.

    Args:
        grads: A tree of arrays.
        max_norm: The largest norm.

    Returns:
        The gradients, and the norm that they had.

    Example:
        >>> gradients, norm = optim.clip_grad_norm({"w": mx.array([3.0, 4.0])}, 10.0)
        >>> norm.item()
        5.0
    """
    return _clipped(grads, max_norm, lambda squares: squares)


def _clipped(grads: Any, max_norm: float, total: Callable) -> Tuple[Any, mx.array]:
    """Clip by the norm whose square is the ``total`` of the sum of squares."""
    if max_norm < 0:
        raise ValueError(f"max_norm should be >=0, {max_norm} was provided instead")

    def squares(gradient: mx.array) -> mx.array:
        # float16 ends at 65504; bfloat16 reaches as far as float32.
        wide = gradient.astype(mx.float32) if gradient.dtype == mx.float16 else gradient
        return mx.sum(mx.square(wide))

    norm = mx.sqrt(total(tree_reduce(lambda total, g: total + squares(g), grads, 0.0)))
    scale = mx.minimum(max_norm / (norm + 1e-6), 1.0)

    def scaled(gradient: mx.array) -> mx.array:
        result = gradient * scale
        inexact = mx.issubdtype(gradient.dtype, mx.inexact)
        return result.astype(gradient.dtype) if inexact else result

    return tree_map(scaled, grads), norm
