"""Layers that are split over several processes.

A program without a group of processes is a group of one, whose part is everything.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Callable, List, Optional, Tuple, Union

import cupola.core as mx
from cupola.nn.layers.base import Module
from cupola.nn.layers.linear import Linear
from cupola.nn.layers.quantized import _Quantized
from cupola.utils import tree_flatten, tree_map, tree_map_with_path, tree_unflatten

_Segments = Union[int, list]


@lru_cache
def sum_gradients(group: Any) -> Callable:
    """The identity, whose gradients are summed over the group.

    Example:
        >>> same = sum_gradients(mx.distributed.init())
        >>> same(mx.ones(2))
        array([1, 1], dtype=float32)
    """
    if group.size() == 1:
        return lambda x: x

    @mx.custom_function
    def identity(x: mx.array) -> mx.array:
        return x

    @identity.vjp
    def _(x: mx.array, cotangent: mx.array, output: mx.array) -> mx.array:
        return mx.distributed.all_sum(cotangent, group=group)

    return identity


# What is split


def _divided(x: mx.array, segments: _Segments, axis: int) -> List[mx.array]:
    """The segments of ``x``: so many equal ones, or those between indices or fractions."""
    if isinstance(segments, int):
        return mx.split(x, segments, axis)
    size = x.shape[axis]
    return mx.split(x, [int(s * size) if isinstance(s, float) else s for s in segments], axis)


def _part(x: mx.array, axis: int, segments: _Segments, group: Any) -> mx.array:
    """This process's part of each segment of ``x``."""
    parts = [
        mx.split(segment, group.size(), axis)[group.rank()]
        for segment in _divided(x, segments, axis)
    ]
    return mx.contiguous(mx.concatenate(parts, axis))


def _all_to_sharded(path: str, weight: mx.array) -> int:
    """The axis of the outputs."""
    return -1 if path.endswith("bias") else max(weight.ndim - 2, 0)


def _sharded_to_all(path: str, weight: mx.array) -> Optional[int]:
    """The axis of the inputs."""
    return None if path.endswith("bias") else -1


_AXES = {"all-to-sharded": _all_to_sharded, "sharded-to-all": _sharded_to_all}


def _check(sharding: Any) -> None:
    if not callable(sharding) and sharding not in _AXES:
        raise ValueError(f"{sharding=} is not one of 'all-to-sharded' and 'sharded-to-all'")


def _parts(parameters: Any, sharding: Any, segments: _Segments, group: Any) -> Any:
    """This process's parts of a tree of parameters."""
    choose = sharding if callable(sharding) else _AXES[sharding]

    def part(path: str, weight: Any) -> Any:
        if not isinstance(weight, mx.array):
            return weight
        axis, own = choose(path, weight), segments
        if isinstance(axis, tuple):
            axis, own = axis
        if axis is None:
            return weight
        if not isinstance(axis, int):
            raise ValueError(f"the sharding of {path} is {axis!r}, no axis, and no pair with one")
        return _part(weight, axis, own, group)

    return tree_map_with_path(part, parameters)


def shard_inplace(
    module: Module,
    sharding: Union[str, Callable],
    *,
    segments: _Segments = 1,
    group: Any = None,
) -> None:
    """Keep this process's part of the parameters.

    Args:
        module: The module, which is changed.
        sharding: ``all-to-sharded`` splits outputs and ``sharded-to-all`` inputs; or a function of
            path and parameter that gives the axis, a pair of it and the segments, or nothing.
        segments: How many equal segments are each split, or where they begin, as indices or
            fractions.
        group: The group of processes; by default all of them.

    Example:
        >>> layer = nn.Linear(4, 2)
        >>> shard_inplace(layer, "all-to-sharded")
        >>> layer.weight.shape
        (2, 4)
    """
    _check(sharding)
    group = group or mx.distributed.init()
    module.update(_parts(module.parameters(), sharding, segments, group))


def shard_linear(
    module: Module,
    sharding: str,
    *,
    segments: _Segments = 1,
    group: Any = None,
) -> Module:
    """This process's layer of a linear one, which exchanges inputs or outputs with the others.

    Args:
        module: A :class:`~cupola.nn.Linear` or a :class:`~cupola.nn.QuantizedLinear`.
        sharding: ``all-to-sharded`` splits outputs, ``sharded-to-all`` inputs.
        segments: How many equal segments are each split, or where they begin.
        group: The group of processes; by default all of them.

    Example:
        >>> shard_linear(nn.Linear(4, 2), "sharded-to-all")
        ShardedToAllLinear(input_dims=4, output_dims=2, bias=True)
    """
    _check(sharding)
    to_shards = sharding == "all-to-sharded"
    if isinstance(module, Linear):
        plain: Any = AllToShardedLinear if to_shards else ShardedToAllLinear
        return plain.from_linear(module, segments=segments, group=group)
    quantized: Any = QuantizedAllToShardedLinear if to_shards else QuantizedShardedToAllLinear
    return quantized.from_quantized_linear(module, segments=segments, group=group)


# Layers


class _Sharded(Module):
    """What layers over a group share: the class says which of the sizes is split."""

    _sharding: str

    def _join(self, group: Any, input_dims: int, output_dims: int) -> Tuple[int, int]:
        """Become a part of the group: the sizes of the own weight."""
        self.group = group or mx.distributed.init()
        count = self.group.size()
        what, size = ("input", input_dims)
        if self._sharding == "all-to-sharded":
            what, size = ("output", output_dims)
        if size % count != 0:
            raise ValueError(f"{what}s of size {size} do not divide into {count} parts")
        if what == "output":
            return input_dims, output_dims // count
        return input_dims // count, output_dims

    def _whole(self, input_dims: int, output_dims: int) -> Tuple[int, int]:
        """The sizes of the layer that this one is a part of."""
        if self._sharding == "all-to-sharded":
            return input_dims, output_dims * self.group.size()
        return input_dims * self.group.size(), output_dims

    def _received(self, x: mx.array) -> mx.array:
        """The input of the own part: where outputs are split, its gradient has all parts'."""
        return sum_gradients(self.group)(x) if self._sharding == "all-to-sharded" else x

    def _given(self, y: mx.array) -> mx.array:
        """The output, with what the other processes have, and the bias."""
        if self._sharding == "sharded-to-all" and self.group.size() > 1:
            y = mx.distributed.all_sum(y, group=self.group)
        return y + self["bias"] if "bias" in self else y


class _ShardedLinear(_Sharded):
    def __init__(
        self, input_dims: int, output_dims: int, bias: bool = True, group: Any = None
    ) -> None:
        super().__init__()
        bound = math.sqrt(1 / input_dims)
        inputs, outputs = self._join(group, input_dims, output_dims)
        self.weight = mx.random.uniform(-bound, bound, (outputs, inputs))
        if bias:
            self.bias = mx.random.uniform(-bound, bound, (outputs,))

    def _extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        inputs, outputs = self._whole(inputs, outputs)
        return f"input_dims={inputs}, output_dims={outputs}, bias={'bias' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        """Map the last axis of ``x``."""
        return self._given(self._received(x) @ self["weight"].T)

    @classmethod
    def from_linear(
        cls, linear_layer: Module, *, segments: _Segments = 1, group: Any = None
    ) -> Any:
        """This process's part of a :class:`~cupola.nn.Linear`."""
        group = group or mx.distributed.init()
        outputs, inputs = linear_layer.weight.shape
        layer = cls(inputs, outputs, "bias" in linear_layer, group)
        layer.update(_parts(linear_layer.parameters(), cls._sharding, segments, group))
        return layer


class AllToShardedLinear(_ShardedLinear):
    """A linear map whose outputs are split over a group of processes.

    Args:
        input_dims: The number of input features.
        output_dims: The number of output features, of all processes together.
        bias: Whether there is a bias.
        group: The group; by default all processes.

    Example:
        >>> nn.AllToShardedLinear(4, 2)(mx.ones((3, 4))).shape
        (3, 2)
    """

    _sharding = "all-to-sharded"


class ShardedToAllLinear(_ShardedLinear):
    """A linear map whose inputs are split over a group of processes; each gets the whole output.

    Args:
        input_dims: The number of input features, of all processes together.
        output_dims: The number of output features.
        bias: Whether there is a bias.
        group: The group; by default all processes.

    Example:
        >>> nn.ShardedToAllLinear(4, 2)(mx.ones((3, 4))).shape
        (3, 2)
    """

    _sharding = "sharded-to-all"


class _QuantizedSharded(_Sharded, _Quantized):
    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int = 64,
        bits: int = 4,
        mode: str = "affine",
        group: Any = None,
    ) -> None:
        _Quantized.__init__(self, group_size, bits, mode)
        bound = math.sqrt(1 / input_dims)
        inputs, outputs = self._join(group, input_dims, output_dims)
        self._hold(mx.random.uniform(-bound, bound, (outputs, inputs)))
        if bias:
            self.bias = mx.zeros((outputs,))
        self.freeze()

    def unfreeze(self, *args: Any, **kwargs: Any) -> Any:
        """Unfreeze the submodules; the layer's own parameters stay frozen."""
        super().unfreeze(*args, **kwargs)
        return self.freeze(recurse=False)

    def _extra_repr(self) -> str:
        outputs, inputs = self._dims
        inputs, outputs = self._whole(inputs, outputs)
        head = f"input_dims={inputs}, output_dims={outputs}, bias={'bias' in self}"
        return f"{head}, {_Quantized._extra_repr(self)}"

    def __call__(self, x: mx.array) -> mx.array:
        """Map the last axis of ``x``."""
        return self._given(self._product(self._received(x)))

    @classmethod
    def from_quantized_linear(
        cls, quantized_linear_layer: Module, *, segments: _Segments = 1, group: Any = None
    ) -> Any:
        """This process's part of a :class:`~cupola.nn.QuantizedLinear`."""
        group = group or mx.distributed.init()
        whole = quantized_linear_layer
        outputs, words = whole.weight.shape
        layer = cls(
            words * 32 // whole.bits,
            outputs,
            "bias" in whole,
            whole.group_size,
            whole.bits,
            whole.mode,
            group,
        )
        layer.update(_parts(whole.parameters(), cls._sharding, segments, group))
        return layer


class QuantizedAllToShardedLinear(_QuantizedSharded):
    """A :class:`QuantizedLinear` whose outputs are split over a group of processes.

    Args:
        input_dims: The number of input features.
        output_dims: The number of output features, of all processes together.
        bias: Whether there is a bias.
        group_size: How many neighbours share a scale.
        bits: Bits of an element.
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.
        group: The group; by default all processes.

    Example:
        >>> nn.QuantizedAllToShardedLinear(64, 2)(mx.ones((3, 64))).shape
        (3, 2)
    """

    _sharding = "all-to-sharded"


class QuantizedShardedToAllLinear(_QuantizedSharded):
    """A :class:`QuantizedLinear` whose inputs are split over a group of processes.

    Args:
        input_dims: The number of input features, of all processes together.
        output_dims: The number of output features.
        bias: Whether there is a bias.
        group_size: How many neighbours share a scale.
        bits: Bits of an element.
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.
        group: The group; by default all processes.

    Example:
        >>> nn.QuantizedShardedToAllLinear(64, 2)(mx.ones((3, 64))).shape
        (3, 2)
    """

    _sharding = "sharded-to-all"


# Whole modules


class FullyShardedModule(Module):
    """A module of which each process of a group keeps a part of every parameter.

    Parameters are gathered, along their first axis, when the module is called.

    Args:
        module: The module, which is changed.
        group: The group; by default all processes.
        compute_dtype: What the gathered parameters are cast to; they stay as they are by default.

    Example:
        >>> nn.FullyShardedModule(nn.Linear(4, 2))(mx.ones((3, 4))).shape
        (3, 2)
    """

    def __init__(
        self, module: Module, group: Any = None, compute_dtype: Optional[mx.Dtype] = None
    ) -> None:
        super().__init__()
        group = group or mx.distributed.init()
        flat: Any = tree_flatten(module.parameters())
        for path, parameter in flat:
            if parameter.shape[0] % group.size() != 0:
                raise ValueError(
                    f"{path} of shape {parameter.shape} does not divide into {group.size()} parts "
                    "along axis 0"
                )
        own = [(path, _part(parameter, 0, 1, group)) for path, parameter in flat]
        module.update(tree_unflatten(own))
        self.module = module
        self._group = group
        self._compute_dtype = compute_dtype

    def _extra_repr(self) -> str:
        flat: Any = tree_flatten(self.module.parameters())
        return f"num_sharded_params={len(flat)}"

    def _gathered_call(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """Call ``fn`` while the module has its whole parameters."""
        group, dtype = self._group, self._compute_dtype

        def whole(part: mx.array) -> mx.array:
            gathered = mx.distributed.all_gather(part, group=group)
            return gathered if dtype is None else gathered.astype(dtype)

        parts = self.module.parameters()
        self.module.update(tree_map(whole, parts))
        try:
            return fn(*args, **kwargs)
        finally:
            self.module.update(parts)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._gathered_call(self.module, *args, **kwargs)

    def as_linear(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module's ``as_linear``."""
        return self._gathered_call(self.module.as_linear, *args, **kwargs)


def fully_shard(
    module: Module, *, group: Any = None, compute_dtype: Optional[mx.Dtype] = None
) -> Module:
    """Split a module's parameters over the group: for a group of one, the module itself.

    Args:
        module: The module.
        group: The group of processes; by default all of them.
        compute_dtype: What the gathered parameters are cast to.

    Example:
        >>> fully_shard(nn.Linear(4, 2))
        Linear(input_dims=4, output_dims=2, bias=True)
    """
    group = group or mx.distributed.init()
    if group.size() == 1:
        return module
    return FullyShardedModule(module, group, compute_dtype)
