"""Models of ONNX files, run as ordinary arrays of ``cupola.core``, and functions written as such files.

Example:
    >>> import cupola.onnx
    >>> model = cupola.onnx.load("model.onnx")          # doctest: +SKIP
    >>> logits = model(x)                               # doctest: +SKIP
    >>> mx.grad(lambda x: model(x).sum())(x)            # doctest: +SKIP
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cupola.core as mx
from cupola.core import _onnx

from ._numbers import element_of, held

__all__ = ["Model", "export", "load", "operators", "save"]


class Model:
    """A model: called with arrays for its inputs, it gives its outputs.

    It records the same operations as a program does, so it can be differentiated, batched and compiled.
    What it does may depend on the sizes of its inputs. The first call with inputs of certain shapes keeps the graph that
    it recorded, and later ones only run that; where nodes read values, a graph is for those of the small inputs of
    integers and truth values, too.
    """

    def __init__(self, read: Any) -> None:
        self._read = read
        self.inputs = [port[0] for port in _onnx.ports(read, False)]
        """The names of what has to be given, in order."""
        self.outputs = [port[0] for port in _onnx.ports(read, True)]
        """The names of what comes out, in order."""
        self._elements = {name: element for name, _, element, _ in _onnx.ports(read, False)}

    @property
    def parameters(self) -> dict[str, mx.array]:
        """The arrays that the model holds, by name. Given as ``parameters``, others take their place."""
        return {name: array for name, array, _ in _onnx.initializers(self._read)}

    def __call__(
        self, *args: Any, parameters: dict[str, mx.array] | None = None, **kwargs: Any
    ) -> Any:
        """The outputs for arrays by position or by name: one array, or a tuple of them.

        Elements that no dtype holds come in a wider one.
        """
        if len(args) > len(self.inputs):
            raise ValueError(f"[onnx] {len(args)} inputs, where the model takes {self.inputs}")
        given = dict(zip(self.inputs, args)) | kwargs
        given |= parameters or {}
        values = [(name, self._value(name, value)) for name, value in given.items()]
        outputs = tuple(_plain(value) for value in _onnx.run(self._read, values))
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, values: dict[str, Any]) -> list[Any]:
        """The outputs for values by name, each an array with its element type, a list of values, or None."""
        return _onnx.run(self._read, list(values.items()))

    def _value(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, (list, tuple)):
            return [self._value("", one) for one in value]
        if not isinstance(value, mx.array):
            return held(value)
        return (value, self._elements.get(name) or element_of(value))

    def __repr__(self) -> str:
        return f"Model({', '.join(self.inputs)} -> {', '.join(self.outputs)})"


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if value is None else value[0]


def load(file: Any) -> Model:
    """The model of a path, of bytes, or of an ``onnx.ModelProto``."""
    if isinstance(file, (bytes, bytearray)):
        return Model(_onnx.load(content=bytes(file)))
    if hasattr(file, "SerializeToString"):
        return Model(_onnx.load(content=file.SerializeToString()))
    return Model(_onnx.load(path=os.fspath(file)))


def operators() -> list[tuple[str, str, int]]:
    """The operators that are read: domain, name and the least version."""
    return _onnx.operators()


def export(
    fun: Callable[..., Any],
    *args: mx.array,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int = 18,
    sizes: Mapping[str, Sequence[int | str]] | None = None,
    **kwargs: mx.array,
) -> bytes:
    """The bytes of an ONNX model that computes ``fun`` for arrays of these shapes and dtypes.

    The function is traced once; arrays that it uses and is not given, such as weights, are kept in the model.
    It returns an array, or a tree of lists, tuples and dicts of them. The opset is one from 17 to 22. What has no
    operator in ONNX (complex numbers, Fourier transforms, random numbers, factorizations of matrices) is an error
    that names it. Inputs that are given by name have that name; the others are called ``input0``, ``input1`` and
    so on, and the outputs ``output``, or ``output0``, ``output1``, unless names are given.

    ``sizes`` are those of inputs by name; a text in the place of a number is a name, which stands for any size from 2
    on, the same in all inputs. The function is then traced several times. What it records may depend on sizes as
    shapes, ends of slices, numbers of steps of a loop and divisors do: as whole numbers times products of two named
    sizes, added up.

    Example:
        >>> import cupola.onnx
        >>> content = cupola.onnx.export(lambda x: mx.maximum(x, 0) * 2, mx.ones((2, 3)))
        >>> cupola.onnx.load(content)(mx.array([[-1.0, 0.0, 1.0], [2.0, -3.0, 4.0]]))
        array([[0, 0, 2],
               [4, 0, 8]], dtype=float32)
        >>> content = cupola.onnx.export(lambda x: x - x.mean(0), mx.ones((2, 3)), sizes={"input0": ("rows", 3)})
        >>> cupola.onnx.load(content)(mx.array([[1.0, 2, 3], [1, 2, 3], [4, 2, 0]]))
        array([[-1, 0, 1],
               [-1, 0, 1],
               [2, 0, -2]], dtype=float32)
    """
    keywords = list(kwargs)
    names = [f"input{number}" for number in range(len(args))] + keywords
    if input_names is not None:
        if len(input_names) != len(names):
            raise ValueError(f"[onnx.export] {len(input_names)} names for {len(names)} inputs")
        names = [str(name) for name in input_names]

    def positional(*arrays: mx.array) -> Any:
        return fun(*arrays[: len(args)], **dict(zip(keywords, arrays[len(args) :])))

    outputs = None if output_names is None else [str(name) for name in output_names]
    named = None if sizes is None else {name: list(own) for name, own in sizes.items()}
    return _onnx.export(positional, [*args, *kwargs.values()], names, outputs, opset, named)


def save(
    file: Any,
    fun: Callable[..., Any],
    *args: mx.array,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int = 18,
    sizes: Mapping[str, Sequence[int | str]] | None = None,
    **kwargs: mx.array,
) -> None:
    """Writes what `export` gives to a path, whole or not at all, or into an open binary file."""
    content = export(
        fun,
        *args,
        input_names=input_names,
        output_names=output_names,
        opset=opset,
        sizes=sizes,
        **kwargs,
    )
    if hasattr(file, "write"):
        file.write(content)
    else:
        _onnx.write(os.fspath(file), content)
