"""Layers that are split over several processes.

A program without a group of processes is a group of one, for which sharding is the identity. The
classes and everything for larger groups are names only, see :mod:`cupola.nn.missing`.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

import cupola.core as mx
from cupola.nn.layers.base import Module
from cupola.nn.missing import MissingModule, missing


def is_alone(group: Any) -> bool:
    """Whether the group is this process only."""
    return group is None or group.size() == 1


class AllToShardedLinear(MissingModule):
    """Not there yet."""


class ShardedToAllLinear(MissingModule):
    """Not there yet."""


class QuantizedAllToShardedLinear(MissingModule):
    """Not there yet."""


class QuantizedShardedToAllLinear(MissingModule):
    """Not there yet."""


class FullyShardedModule(MissingModule):
    """Not there yet."""


def sum_gradients(group: Any) -> Callable:
    """The identity, whose gradients are summed over the group."""
    if not is_alone(group):
        raise missing("sum_gradients")
    return lambda x: x


def shard_inplace(
    module: Module,
    sharding: Union[str, Callable],
    *,
    segments: Union[int, list] = 1,
    group: Any = None,
) -> None:
    """Keep this process's part of the parameters: all of them."""
    if not is_alone(group):
        raise missing("shard_inplace")


def shard_linear(
    module: Module,
    sharding: str,
    *,
    segments: Union[int, list] = 1,
    group: Any = None,
) -> Module:
    """Not there yet."""
    raise missing("shard_linear")


def fully_shard(
    module: Module, *, group: Any = None, compute_dtype: Optional[mx.Dtype] = None
) -> Module:
    """Split a module's parameters over the group: for a group of one, the module itself."""
    if not is_alone(group):
        raise missing("fully_shard")
    return module
