"""``python -m cupola.mlx SCRIPT.py ARGS…``: runs a program for MLX as ``python SCRIPT.py ARGS…`` does."""

from __future__ import annotations

import os
import runpy
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any, List, Optional

USAGE = """\
usage: python -m cupola.mlx SCRIPT.py [ARGUMENT ...]
       python -m cupola.mlx -m MODULE [ARGUMENT ...]

Run a program that was written for MLX: its imports of mlx.core, mlx.nn, mlx.optimizers and mlx.utils
give Cupola's modules.
"""


def _hide_frames(namespace: Optional[dict]) -> None:
    """Have the traceback of the exception on its way begin in the program."""
    shown = sys.excepthook

    def hook(kind: Any, value: BaseException, traceback: Optional[TracebackType]) -> None:
        while traceback is not None and traceback.tb_frame.f_globals is not namespace:
            traceback = traceback.tb_next
        shown(kind, value.with_traceback(traceback), traceback)

    sys.excepthook = hook


def _run_file(script: str) -> Optional[int]:
    # Absolute, and otherwise as given: Python keeps a "./" in the names of programs.
    path = os.path.join(os.getcwd(), script)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.executable}: can't open file {path!r}: {reason}", file=sys.stderr)
        return 2

    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=path,
        __builtins__=__builtins__,
        __cached__=None,
        __loader__=SourceFileLoader("__main__", path),
        __annotations__={},
    )
    main.__doc__ = None
    # Threads and exit handlers of the program may need its globals for longer than this function.
    sys.modules["__main__"] = main
    try:
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit:
        raise
    except BaseException:
        _hide_frames(main.__dict__)
        raise
    return None


def _set_first_path(entry: str) -> None:
    """Put what Python searches first where ``-m`` has put the working folder."""
    if not sys.flags.safe_path:
        sys.path[0] = entry


def main(arguments: List[str]) -> Optional[int]:
    """Run what the command line says, and return the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] == "-m":
        if len(arguments) == 1:
            print(USAGE, end="", file=sys.stderr)
            return 2
        sys.argv[:] = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return None
    script = arguments[0]
    sys.argv[:] = arguments
    if os.path.isdir(script) or script.endswith((".zip", ".pyz")):
        if not sys.flags.safe_path:
            del sys.path[0]
        runpy.run_path(script, run_name="__main__")
        return None
    _set_first_path(os.path.dirname(os.path.realpath(script)))
    return _run_file(script)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
