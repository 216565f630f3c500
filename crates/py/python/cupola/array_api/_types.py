"""The dtypes of the standard, what arguments are annotated with, and where arrays are made."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias, TypeVar, overload

import cupola.core as mx

bool = mx.bool_
int8, int16, int32, int64 = mx.int8, mx.int16, mx.int32, mx.int64
uint8, uint16, uint32, uint64 = mx.uint8, mx.uint16, mx.uint32, mx.uint64
float32, float64, complex64 = mx.float32, mx.float64, mx.complex64

DTYPES = {
    "bool": bool,
    "int8": int8,
    "int16": int16,
    "int32": int32,
    "int64": int64,
    "uint8": uint8,
    "uint16": uint16,
    "uint32": uint32,
    "uint64": uint64,
    "float32": float32,
    "float64": float64,
    "complex64": complex64,
}

# Python's types, as NumPy takes them for dtypes.
PYTHON: dict[Any, Dtype] = {builtins.bool: bool, int: int64, float: float64, complex: complex64}

# The default dtypes: those of Python's numbers in an array, and that of indices.
REAL, COMPLEX, INTEGRAL, INDEXING = float32, complex64, int32, int64

Array: TypeAlias = mx.array
Dtype: TypeAlias = mx.Dtype
Device: TypeAlias = mx.Device
# A float stands for an integer or a bool, and a complex number for any of them.
Real: TypeAlias = mx.array | float
Number: TypeAlias = mx.array | complex
Axes: TypeAlias = int | tuple[int, ...] | None
F = TypeVar("F", bound=Callable[..., Any])
Norm: TypeAlias = Literal["backward", "ortho", "forward"]


def accumulated(x: Array) -> Dtype:
    """The dtype that sums and products of an array have."""
    narrow = {bool: INTEGRAL, int8: INTEGRAL, int16: INTEGRAL, uint8: uint32, uint16: uint32}
    return narrow.get(x.dtype, x.dtype)


@overload
def chosen(dtype: None) -> None: ...
@overload
def chosen(dtype: Dtype | type) -> Dtype: ...
def chosen(dtype: Any) -> Dtype | None:
    """The dtype that an argument is, which may be a type of Python's; ``None`` stays."""
    return PYTHON[dtype] if dtype in PYTHON else dtype


def described(function: F, f: Callable[..., Any]) -> F:
    """A function with the name and the documentation of another one, but its own signature."""
    function.__name__ = function.__qualname__ = f.__name__
    function.__doc__ = f.__doc__
    return function


def indices(x: Array) -> Array:
    """An array of indices or counts in the dtype that these have."""
    return x.astype(INDEXING)


def on(device: Device | None) -> AbstractContextManager[Any]:
    """A context in which operations are recorded on a device, or where they are anyway."""
    return nullcontext() if device is None else mx.stream(device)


def wide(x: Any) -> Dtype | None:
    """``float64`` for another library's array of it, which MLX's functions read as ``float32``."""
    is_double = str(getattr(x, "dtype", "")).endswith("float64")
    return float64 if is_double and not isinstance(x, mx.array) else None
