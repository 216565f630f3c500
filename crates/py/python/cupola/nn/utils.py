"""Gradients and checkpoints of modules."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable, Optional, Tuple

import cupola.core as mx
from cupola.nn.layers.base import Module
from cupola.utils import tree_map


def _over_parameters(module: Module, fn: Callable, transform: Callable) -> Callable:
    """``fn`` transformed as a function whose first argument is the module's parameters."""
    parameters = module.trainable_parameters()
    stand_ins: Any = {}

    def with_parameters(traced: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal stand_ins
        # A copy: the transform may put the arguments back into the tree that it has passed.
        stand_ins = tree_map(lambda x: x, traced)
        module.update(traced)
        return fn(*args, **kwargs)

    transformed = transform(with_parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return transformed(parameters, *args, **kwargs)
        finally:
            _put_back(module, stand_ins, parameters)

    return call


def _put_back(held: Any, stand_ins: Any, parameters: Any) -> None:
    """Replace what still stands in for a parameter in ``held`` by the parameter."""
    keys = stand_ins.keys() if isinstance(stand_ins, dict) else range(len(stand_ins))
    for key in keys:
        if isinstance(stand_ins[key], (dict, list)):
            _put_back(held[key], stand_ins[key], parameters[key])
        elif held[key] is stand_ins[key]:
            held[key] = parameters[key]


def value_and_grad(model: Module, fn: Callable) -> Callable:
    """A function that gives what ``fn`` gives and the gradients of the trainable parameters.

    Args:
        model: The module whose parameters ``fn`` uses.
        fn: Gives a scalar, or a tuple or list that begins with one.

    Returns:
        A function of the arguments of ``fn`` that returns the pair of what ``fn`` returns and a tree
        of gradients.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> step = nn.value_and_grad(model, lambda x: mx.sum(model(x)))
        >>> value, gradients = step(mx.ones((3, 2)))
        >>> gradients["bias"].item()
        3.0
    """

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _over_parameters(model, fn, mx.value_and_grad)(*args, **kwargs)

    return wrapped


def checkpoint(module: Module, fn: Optional[Callable] = None) -> Callable:
    """A function whose inner results are computed again for its gradient instead of being kept.

    Args:
        module: The module whose trainable parameters it uses.
        fn: The function; the module itself by default.

    Example:
        >>> layer = nn.Linear(4, 2)
        >>> nn.utils.checkpoint(layer)(mx.ones((3, 4))).shape
        (3, 2)
    """
    function: Callable = module if fn is None else fn  # type: ignore[assignment]

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _over_parameters(module, function, mx.checkpoint)(*args, **kwargs)

    return wrapped


def average_gradients(
    gradients: Any,
    group: Any = None,
    all_reduce_size: int = 32 * 1024**2,
    communication_stream: Optional[mx.Stream] = None,
) -> Any:
    """The mean of the gradients over a group of processes: for a group of one, the gradients.

    Args:
        gradients: A tree of arrays.
        group: The group; by default this process alone.
        all_reduce_size: How many bytes are exchanged together.
        communication_stream: The stream that exchanges them.

    Example:
        >>> nn.average_gradients({"w": mx.ones(2)})
        {'w': array([1, 1], dtype=float32)}
    """
    group = group or mx.distributed.init()
    count = group.size()
    if count == 1:
        return gradients

    def mean(gradient: mx.array) -> mx.array:
        total = mx.distributed.all_sum(gradient, group=group, stream=communication_stream)
        return total / count

    return tree_map(mean, gradients)


def clip_grad_norm_sharded(
    gradients: Any, max_norm: float, group: Any = None
) -> Tuple[Any, mx.array]:
    """Scale gradients that are split over a group so that their norm is at most ``max_norm``.

    Args:
        gradients: A tree of arrays.
        max_norm: The largest norm.
        group: The group; by default this process alone.

    Returns:
        The gradients, and the norm that they had.

    Example:
        >>> gradients, norm = nn.utils.clip_grad_norm_sharded({"w": mx.array([3.0, 4.0])}, 1.0)
        >>> norm.item()
        5.0
    """
    from cupola.optimizers.optimizers import _clipped

    group = group or mx.distributed.init()
    return _clipped(gradients, max_norm, lambda own: mx.distributed.all_sum(own, group=group))
