"""Schedules: functions from the number of a step, an integer or an array, to a value."""

from __future__ import annotations

import math
from typing import Any, Callable, List

import cupola.core as mx


def _positive(name: str, value: int) -> None:
    if value <= 0:
        raise ValueError(f"{name} must be greater than 0, but got {value}.")


def exponential_decay(init: float, decay_rate: float) -> Callable:
    """``init · decay_rate^step``.

    Args:
        init: The first value.
        decay_rate: The factor of each step.

    Example:
        >>> exponential_decay(0.5, 0.5)(2)
        0.125
    """

    def schedule(step: Any) -> Any:
        return init * decay_rate**step

    return schedule


def step_decay(init: float, decay_rate: float, step_size: int) -> Callable:
    """``init``, multiplied by ``decay_rate`` after every ``step_size`` steps.

    Args:
        init: The first value.
        decay_rate: The factor.
        step_size: The steps between changes.

    Raises:
        ValueError: If ``step_size`` is not positive.

    Example:
        >>> step_decay(0.5, 0.5, 10)(25)
        0.125
    """
    _positive("step_size", step_size)

    def schedule(step: Any) -> Any:
        return init * decay_rate ** (step // step_size)

    return schedule


def cosine_decay(init: float, decay_steps: int, end: float = 0.0) -> Callable:
    """Half a turn of a cosine from ``init`` down to ``end``, which it stays at.

    Args:
        init: The first value.
        decay_steps: The steps until the last value.
        end: The last value.

    Raises:
        ValueError: If ``decay_steps`` is not positive.

    Example:
        >>> schedule = optim.cosine_decay(1.0, 10)
        >>> [round(schedule(mx.array(step)).item(), 3) for step in (0, 5, 10)]
        [1.0, 0.5, 0.0]
    """
    _positive("decay_steps", decay_steps)

    def schedule(step: Any) -> mx.array:
        progress = mx.minimum(step, decay_steps)
        falling = 0.5 * (1.0 + mx.cos((math.pi / decay_steps) * progress))
        return end + falling * (init - end)

    return schedule


def linear_schedule(init: float, end: float, steps: int) -> Callable:
    """A line from ``init`` to ``end``, which it stays at.

    Args:
        init: The first value.
        end: The last value.
        steps: The steps until the last value.

    Raises:
        ValueError: If ``steps`` is not positive.

    Example:
        >>> schedule = optim.linear_schedule(0, 1, 10)
        >>> [schedule(mx.array(step)).item() for step in (0, 5, 20)]
        [0.0, 0.5, 1.0]
    """
    _positive("steps", steps)

    def schedule(step: Any) -> mx.array:
        return mx.minimum(step, steps) * ((end - init) / steps) + init

    return schedule


def join_schedules(schedules: List[Callable], boundaries: List[int]) -> Callable:
    """Schedules one after another.

    Args:
        schedules: The schedules; each begins to count at the boundary before it.
        boundaries: The steps at which the next schedule takes over.

    Raises:
        ValueError: If there is no schedule, or not one boundary fewer than there are schedules.

    Example:
        >>> warmup, decay = optim.linear_schedule(0, 1, 10), optim.step_decay(1.0, 0.5, 10)
        >>> schedule = optim.join_schedules([warmup, decay], [10])
        >>> schedule(mx.array(5)).item()
        0.5
    """
    if len(schedules) == 0:
        raise ValueError("Must provide at least 1 schedule to join.")
    if len(schedules) != len(boundaries) + 1:
        raise ValueError(
            f"Received {len(boundaries)} boundaries but expected {len(schedules) - 1}."
        )

    def schedule(step: Any) -> Any:
        value = schedules[0](step)
        for boundary, following in zip(boundaries, schedules[1:]):
            value = mx.where(step < boundary, value, following(step - boundary))
        return value

    return schedule
