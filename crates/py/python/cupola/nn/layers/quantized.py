"""Quantised layers, which are not there yet."""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

from cupola.nn.layers.base import Module

_MISSING = "{} is not implemented: quantised arrays are not there yet"


def quantization_is_missing(name: str) -> NotImplementedError:
    """The error of everything that needs quantised arrays."""
    return NotImplementedError(_MISSING.format(name))
