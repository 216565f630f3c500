"""Modules that hold others."""

from __future__ import annotations

from typing import Any, Callable

from cupola.nn.layers.base import Module


class Sequential(Module):
    """Calls modules or functions one after another.

    Args:
        modules: What to call, in order; parameters of modules are the container's.

    Example:
        >>> nn.Sequential(nn.Linear(2, 8), nn.relu, nn.Linear(8, 1))(mx.ones((4, 2))).shape
        (4, 1)
    """

    def __init__(self, *modules: Callable) -> None:
        super().__init__()
        self.layers = list(modules)

    def __call__(self, x: Any) -> Any:
        """Give ``x`` to the first, its result to the next, and so on."""
        for layer in self.layers:
            x = layer(x)
        return x
