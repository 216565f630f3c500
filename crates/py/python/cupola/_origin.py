"""What recorded an operation: the line of the program, and the modules that it was called in."""

from __future__ import annotations

import sys
from os.path import basename
from types import FrameType
from typing import Any, List, Optional

from cupola.nn.layers.base import Module


def _line() -> str:
    """The innermost line that is not of this package, and in parentheses the path of modules."""
    frame: Optional[FrameType] = sys._getframe(1)
    own: Optional[FrameType] = None
    modules: List[Module] = []
    while frame is not None:
        if own is None and not _is_ours(frame):
            own = frame
        code = frame.f_code
        if code.co_name in ("__call__", "forward") and code.co_argcount > 0:
            called = frame.f_locals.get(code.co_varnames[0])
            if isinstance(called, Module) and (not modules or modules[-1] is not called):
                modules.append(called)
        frame = frame.f_back
    line = "" if own is None else f"{basename(own.f_code.co_filename)}:{own.f_lineno}"
    return f"{line} ({_path(modules[::-1])})" if modules else line


def _is_ours(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    return name == "cupola" or name.startswith("cupola.")


def _path(modules: List[Module]) -> str:
    """The outermost module by its class, each further one by its place in the one before."""
    names = [type(modules[0]).__name__]
    for outer, inner in zip(modules, modules[1:]):
        names.append(_place(outer, inner) or type(inner).__name__)
    return ".".join(names)


def _place(outer: Any, inner: Module) -> Optional[str]:
    items = outer.items() if isinstance(outer, dict) else enumerate(outer)
    for key, value in items:
        if value is inner:
            return str(key)
        if isinstance(value, (list, tuple)) or (isinstance(value, dict) and not isinstance(value, Module)):
            if below := _place(value, inner):
                return f"{key}.{below}"
    return None
