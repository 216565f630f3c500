"""Programs that were written for MLX, on Cupola.

After ``import cupola.mlx``, or in a program that is run by ``python -m cupola.mlx``, the modules
``mlx.core``, ``mlx.nn``, ``mlx.optimizers`` and ``mlx.utils``, and those below them, are Cupola's: the
same module objects, whether MLX is installed or not. Everything else in the namespace package ``mlx``
is found as ever, modules of a folder ``mlx`` of the program's own first.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Optional, Sequence

__all__ = ["install"]

REPLACED = ("core", "nn", "optimizers", "utils")


def _replacement(name: str) -> Optional[str]:
    """Cupola's name for the module ``name`` of MLX, if it is one that is replaced."""
    package, _, below = name.partition(".")
    if package != "mlx" or below.partition(".")[0] not in REPLACED:
        return None
    return f"cupola.{below}"


def _is_mlx_itself(folder: str) -> bool:
    """Whether a part of the namespace is the installed MLX and not the program's own."""
    return any(os.path.exists(os.path.join(folder, "core" + end)) for end in EXTENSION_SUFFIXES)


class _Alias(Loader):
    """Gives Cupola's module under the name of MLX's, unchanged."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that is there already."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Undo the one change that the import system has made to the module."""
        module.__spec__ = self.spec
        # An extension module has submodules without being a package: nobody looks for them.
        inner = f"{module.__name__}."
        for name in [name for name in sys.modules if name.startswith(inner)]:
            if not hasattr(module, "__path__"):
                sys.modules[f"mlx{name.removeprefix('cupola')}"] = sys.modules[name]


class _Finder(MetaPathFinder):
    """Answers for ``mlx`` and for what is replaced in it, before anything on the path."""

    def find_spec(
        self,
        fullname: str,
        path: Optional[Sequence[str]],
        target: Optional[ModuleType] = None,
    ) -> Optional[ModuleSpec]:
        """The specification of the module, or ``None`` for others to find it."""
        if fullname == "mlx":
            return PathFinder.find_spec("mlx") or _empty_package()
        name = _replacement(fullname)
        if name is None:
            return None
        if fullname.count(".") == 1 and (own := _own_module(fullname, path or [])):
            return own
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and name.startswith(error.name):
                # The path of the parent is Cupola's: another finder would load a module twice.
                raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname) from None
            raise
        return ModuleSpec(fullname, _Alias(module), is_package=hasattr(module, "__path__"))


def _empty_package() -> ModuleSpec:
    spec = ModuleSpec("mlx", None, is_package=True)
    spec.submodule_search_locations = []
    return spec


def _own_module(name: str, path: Sequence[str]) -> Optional[ModuleSpec]:
    """The program's own module of this name; it comes before an installed one, and so here."""
    for folder in path:
        if not _is_mlx_itself(folder):
            spec: Any = PathFinder.find_spec(name, [folder])
            if spec is not None and spec.loader is not None:
                return spec
    return None


def install() -> None:
    """Make the modules of MLX resolve to Cupola's, also where MLX has been imported already."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    imported = [name for name in sys.modules if _replacement(name) is not None]
    for name in imported:
        del sys.modules[name]
    for name in sorted(imported):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            pass  # An inner module of MLX, which Cupola does not have.


install()
