"""Tensors, the data that they are fed with, and devices."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import cupola.core as mx

DTYPES: dict[str, mx.Dtype] = {
    "Float32": mx.float32,
    "Float16": mx.float16,
    "BFloat16": mx.bfloat16,
    "Boolean": mx.bool_,
    "Int64": mx.int64,
    "Int32": mx.int32,
    "Int16": mx.int16,
    "Int8": mx.int8,
    "UInt64": mx.uint64,
    "UInt32": mx.uint32,
    "UInt16": mx.uint16,
    "UInt8": mx.uint8,
}


def dtype_of(name: Any) -> mx.Dtype:
    """The dtype of a name of ML Compute's, or a dtype itself."""
    if isinstance(name, mx.Dtype):
        return name
    if name not in DTYPES:
        raise ValueError(f"[mlcompute] there is no data type '{name}' among {', '.join(DTYPES)}")
    return DTYPES[name]


def name_of(dtype: mx.Dtype) -> str:
    """The name that ML Compute has for a dtype."""
    return next((name for name, own in DTYPES.items() if own == dtype), str(dtype))


class TensorData:
    """Numbers for a tensor. They take its shape when they are used, if they are as many."""

    def __init__(self, values: Any) -> None:
        self.array = values if isinstance(values, mx.array) else mx.array(values)
        """The numbers."""

    def __repr__(self) -> str:
        return f"TensorData({name_of(self.array.dtype)}{list(self.array.shape)})"


class Tensor:
    """A place in a graph: something that is fed, that a layer gives, or that a layer has learnt.

    Example:
        >>> tensor([2, 3], "Float32")
        Tensor(Float32[2, 3])
    """

    def __init__(
        self, shape: Sequence[int | str], dtype: Any, data: Any = None, name: str | None = None
    ) -> None:
        self.shape: tuple[int | str, ...] = tuple(shape)
        """The sizes; a text is a name, which stands for any number."""
        self.dtype = dtype_of(dtype)
        """The dtype."""
        self.name = name
        """The name, for errors and for graphs."""
        self._data: mx.array | None = None
        if data is not None:
            self.bind(data)

    @property
    def has_data(self) -> bool:
        """Whether it has numbers."""
        return self._data is not None

    @property
    def data(self) -> mx.array:
        """Its numbers: those that it was given, or that the last execution left here."""
        if self._data is None:
            raise ValueError(f"[mlcompute] {self!r} has no data: it was not bound or executed")
        return self._data

    def bind(self, data: Any) -> None:
        """Gives it numbers.

        Example:
            >>> t = tensor([2, 1], "Float32")
            >>> t.bind(tensor_data([1.0, 2.0]))
            >>> t.data.shape
            (2, 1)
        """
        self._data = self.fitted(data)

    def fitted(self, data: Any) -> mx.array:
        """Numbers in its shape."""
        array = data.array if isinstance(data, TensorData) else TensorData(data).array
        if array.dtype != self.dtype:
            raise ValueError(f"[mlcompute] {self!r} cannot have data of {name_of(array.dtype)}")
        if array.ndim == len(self.shape):
            pairs = zip(array.shape, self.shape)
            if all(isinstance(size, str) or have == size for have, size in pairs):
                return array
        known = [size for size in self.shape if isinstance(size, int)]
        if len(known) == len(self.shape) and math.prod(known) == array.size:
            return array.reshape(known)
        raise ValueError(f"[mlcompute] {self!r} cannot have data of shape {array.shape}")

    def print(self) -> None:
        """Prints its numbers, one row a line.

        Example:
            >>> tensor([2, 1], "Float32", data=[1.0, 2.0]).print()
            Tensor(Float32[2, 1])
            array([[1],
                   [2]], dtype=float32)
        """
        print(f"{self!r}\n{self.data!r}")

    def __repr__(self) -> str:
        sizes = ", ".join(str(size) for size in self.shape)
        name = f"{self.name}: " if self.name else ""
        return f"Tensor({name}{name_of(self.dtype)}[{sizes}])"


def tensor(
    shape: Sequence[int | str], dtype: Any = "Float32", data: Any = None, name: str | None = None
) -> Tensor:
    """A tensor of a shape and a data type, ``Float32``, ``Float16``, ``Boolean``, ``Int64``, ``Int32``,
    ``Int8``, ``UInt8`` and others.

    Example:
        >>> tensor(["batch", 1, 28, 28], "Float32", name="images")
        Tensor(images: Float32[batch, 1, 28, 28])
    """
    return Tensor(shape, dtype, data, name)


def tensor_data(values: Any) -> TensorData:
    """Numbers for a tensor, from an array of NumPy's or Cupola's, or a list.

    Example:
        >>> tensor_data([1.0, 2.0])
        TensorData(Float32[2])
    """
    return TensorData(values)


def device(kind: str = "any") -> mx.Device:
    """The device of a kind: ``cpu``, ``gpu``, or ``any`` for the best that there is. Where there is no GPU it is
    the CPU, and a line on the standard error says so.

    Example:
        >>> device("cpu")
        Device(cpu, 0)
    """
    if kind not in ("cpu", "gpu", "any"):
        raise ValueError(f"[mlcompute] device: '{kind}' is none of cpu, gpu and any")
    if kind == "gpu" and not mx.is_available(mx.gpu):
        print("cupola.mlcompute: there is no GPU, so this runs on the CPU", file=sys.stderr)
    is_gpu = kind != "cpu" and mx.is_available(mx.gpu)
    return mx.Device(mx.gpu if is_gpu else mx.cpu, 0)
