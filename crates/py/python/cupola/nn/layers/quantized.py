"""Layers whose weights take a few bits an element; see :func:`cupola.core.quantize`."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Tuple, Union

import cupola.core as mx
from cupola.nn.layers.base import Module
from cupola.utils import tree_map_with_path

_DEFAULTS = {"affine": (64, 4), "mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}


class _Quantized(Module):
    """What quantised layers share: how their ``weight`` is quantised, ``scales`` and ``biases``."""

    def __init__(self, group_size: Optional[int], bits: Optional[int], mode: str) -> None:
        super().__init__()
        if mode not in _DEFAULTS:
            raise ValueError(f"mode '{mode}' is none of {', '.join(_DEFAULTS)}")
        usual_group_size, usual_bits = _DEFAULTS[mode]
        self.group_size = group_size or usual_group_size
        self.bits = bits or usual_bits
        self.mode = mode

    @property
    def _how(self) -> dict:
        return {"group_size": self.group_size, "bits": self.bits, "mode": self.mode}

    def _hold(self, weight: mx.array) -> None:
        """Keep ``weight``, quantised."""
        self.weight, self.scales, *biases = mx.quantize(weight, **self._how)
        self.biases = biases[0] if biases else None

    @property
    def _dims(self) -> Tuple[int, int]:
        """The sizes of the matrix that ``weight`` stands for, or is."""
        rows, columns = self.weight.shape
        packed = self.weight.dtype == mx.uint32
        return rows, columns * 32 // self.bits if packed else columns

    def _extra_repr(self) -> str:
        return f"group_size={self.group_size}, bits={self.bits}, mode={self.mode}"

    def _product(self, x: mx.array) -> mx.array:
        """The product of ``x`` with the transposed weight."""
        scales, biases = self["scales"], self.get("biases")
        return mx.quantized_matmul(x, self["weight"], scales=scales, biases=biases, **self._how)


class QuantizedEmbedding(_Quantized):
    """An :class:`~cupola.nn.Embedding` whose vectors are quantised. Its parameters are frozen.

    Args:
        num_embeddings: The number of vectors.
        dims: Their length.
        group_size: How many neighbours share a scale.
        bits: Bits of an element.
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.

    Example:
        >>> nn.QuantizedEmbedding(10, 64)(mx.array([1, 3])).shape
        (2, 64)
    """

    def __init__(
        self,
        num_embeddings: int,
        dims: int,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> None:
        super().__init__(group_size, bits, mode)
        self._hold(mx.random.normal((num_embeddings, dims), scale=math.sqrt(1 / dims)))
        self.num_embeddings = num_embeddings
        self.dims = dims
        self.freeze()

    def __call__(self, x: Any) -> mx.array:
        """The vectors of the integers in ``x``."""
        biases = self["biases"][x] if "biases" in self else None
        vectors = mx.dequantize(self["weight"][x], self["scales"][x], biases, **self._how)
        return mx._amp.result("embedding", vectors)

    def as_linear(self, x: mx.array) -> mx.array:
        """The products of ``x`` with all vectors, as for an output layer with tied weights."""
        return self._product(x)

    def _extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.dims}, {super()._extra_repr()}"

    @classmethod
    def from_embedding(
        cls,
        embedding_layer: Module,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> QuantizedEmbedding:
        """The quantised layer of an :class:`~cupola.nn.Embedding`."""
        weight = embedding_layer.weight
        count, dims = weight.shape
        layer = cls(count, dims, group_size, bits, mode=mode)
        layer._hold(weight)
        return layer


class QuantizedLinear(_Quantized):
    """A :class:`~cupola.nn.Linear` whose weight is quantised. Its parameters are frozen.

    Args:
        input_dims: The number of input features.
        output_dims: The number of output features.
        bias: Whether there is a bias.
        group_size: How many neighbours share a scale.
        bits: Bits of an element.
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.

    Example:
        >>> nn.QuantizedLinear(64, 8, bits=2)
        QuantizedLinear(input_dims=64, output_dims=8, bias=True, group_size=64, bits=2, mode=affine)
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> None:
        super().__init__(group_size, bits, mode)
        bound = math.sqrt(1 / input_dims)
        self._hold(mx.random.uniform(-bound, bound, (output_dims, input_dims)))
        if bias:
            self.bias = mx.zeros((output_dims,))
        self.freeze()

    def _extra_repr(self) -> str:
        outputs, inputs = self._dims
        head = f"input_dims={inputs}, output_dims={outputs}, bias={'bias' in self}"
        return f"{head}, {super()._extra_repr()}"

    def __call__(self, x: mx.array) -> mx.array:
        """Map the last axis of ``x``."""
        y = self._product(x)
        return y + mx._amp.operand("quantized_matmul", self["bias"]) if "bias" in self else y

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> QuantizedLinear:
        """The quantised layer of a :class:`~cupola.nn.Linear`, whose bias stays trainable."""
        outputs, inputs = linear_layer.weight.shape
        layer = cls(inputs, outputs, False, group_size, bits, mode=mode)
        layer._hold(linear_layer.weight)
        if "bias" in linear_layer:
            layer.bias = linear_layer.bias
        return layer


class QQLinear(_Quantized):
    """A linear map, without bias, that quantises its input as well as its weight.

    In training mode ``weight`` is kept as it is and quantised for each product, so that it has
    gradients; in evaluation mode it is quantised, with ``scales`` beside it.

    Args:
        input_dims: The number of input features.
        output_dims: The number of output features.
        group_size: How many neighbours share a scale.
        bits: Bits of an element.
        mode: ``nvfp4`` or ``mxfp8``.

    Example:
        >>> layer = nn.QQLinear(64, 8)
        >>> layer.weight.shape, layer.eval().weight.shape
        ((8, 64), (8, 8))
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "nvfp4",
    ) -> None:
        super().__init__(group_size, bits, mode)
        bound = math.sqrt(1 / input_dims)
        self.weight = mx.random.uniform(-bound, bound, (output_dims, input_dims))
        self._quantized = False

    def _extra_repr(self) -> str:
        outputs, inputs = self._dims
        return f"input_dims={inputs}, output_dims={outputs}, {super()._extra_repr()}"

    def quantize(self) -> None:
        """Keep the weight quantised."""
        if not self._quantized:
            self.weight, self.scales = mx.quantize(self["weight"], **self._how)
            self._quantized = True

    def dequantize(self) -> None:
        """Keep the weight as floats."""
        if self._quantized:
            self.weight = mx.dequantize(self["weight"], self["scales"], **self._how)
            del self.scales
            self._quantized = False

    def _set_training_mode(self, mode: bool) -> None:
        super()._set_training_mode(mode)
        if mode:
            self.dequantize()
        else:
            self.quantize()

    def __call__(self, x: mx.array) -> mx.array:
        """Map the last axis of ``x``."""
        return mx.qqmm(x, self["weight"], scales=self.get("scales"), **self._how)

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "nvfp4",
    ) -> QQLinear:
        """The layer of a :class:`~cupola.nn.Linear` without a bias, in its mode."""
        if "bias" in linear_layer:
            raise NotImplementedError("QQLinear has no bias, and the layer given has one")
        outputs, inputs = linear_layer.weight.shape
        layer = cls(inputs, outputs, group_size, bits, mode=mode)
        layer.weight = linear_layer.weight
        layer.train(linear_layer.training)
        return layer


def quantize(
    model: Module,
    group_size: Optional[int] = None,
    bits: Optional[int] = None,
    *,
    mode: str = "affine",
    quantize_input: bool = False,
    class_predicate: Optional[Callable[[str, Module], Union[bool, dict]]] = None,
) -> None:
    """Replace the layers in a module by quantised ones.

    Args:
        model: The module, which is changed.
        group_size: How many neighbours share a scale.
        bits: Bits of an element.
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.
        quantize_input: Whether the layers quantise their inputs, too: linear ones without a bias,
            in modes ``mxfp8`` and ``nvfp4``.
        class_predicate: Called with the path and the module; whether to quantise it, or the
            arguments of its ``to_quantized``. By default all layers that have that are quantised.

    Raises:
        ValueError: If a layer is to be quantised and cannot be, or the predicate gives something
            else.

    Example:
        >>> model = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        >>> nn.quantize(model, bits=8)
        >>> model.layers[0].bits
        8
    """
    wanted = class_predicate or (lambda _, module: hasattr(module, "to_quantized"))
    usual: dict = {"group_size": group_size, "bits": bits, "mode": mode}
    if quantize_input:
        usual["quantize_input"] = True

    def replaced(path: str, module: Any) -> Any:
        answer = wanted(path, module)
        if not answer:
            return module
        if not isinstance(answer, (bool, dict)):
            raise ValueError(
                f"class_predicate gives a bool or the arguments of to_quantized, not {answer!r}"
            )
        if not hasattr(module, "to_quantized"):
            raise ValueError(f"{path}: {type(module)} has no to_quantized")
        return module.to_quantized(**(answer if isinstance(answer, dict) else usual))

    leaves = model.leaf_modules()
    model.update_modules(tree_map_with_path(replaced, leaves, is_leaf=Module.is_module))
