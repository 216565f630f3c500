"""Layers over quantised arrays: names only, see :mod:`cupola.nn.missing`."""

from __future__ import annotations

from typing import Callable, Optional, Union

from cupola.nn.layers.base import Module
from cupola.nn.missing import MissingModule, missing


class QuantizedEmbedding(MissingModule):
    """Not there yet."""


class QuantizedLinear(MissingModule):
    """Not there yet."""


class QQLinear(MissingModule):
    """Not there yet."""


def quantize(
    model: Module,
    group_size: Optional[int] = None,
    bits: Optional[int] = None,
    *,
    mode: str = "affine",
    quantize_input: bool = False,
    class_predicate: Optional[Callable[[str, Module], Union[bool, dict]]] = None,
) -> None:
    """Not there yet."""
    raise missing("quantize")
