"""Where the time goes: what ran, was copied, planned, compiled and waited for, and when.

``CUPOLA_PROFILE=trace.json`` profiles a whole program, and ``CUPOLA_LOG=ops,copies,fallbacks,cpu`` prints
a line for each such event.
"""

from __future__ import annotations

import os
from os import PathLike
from typing import Any, Optional, Union

import cupola.core as mx

Profile = mx._profiler.Profile

__all__ = ["Profile", "start", "stop", "mark", "is_running", "profile"]


def start(
    mode: str = "interval", wait_until_completed: bool = False, *, lines: bool = True, every: int = 128
) -> None:
    """Begin to record what every thread does.

    Args:
        mode: ``"interval"`` for when things began and ended, ``"event"`` for when they were over, or
            ``"interval,event"``.
        wait_until_completed: Whether a GPU is waited for after each step. Its times are then known where
            it has no clock that can be read, too, and the whole takes longer.
        lines: Whether the line that records each operation is noted, and the modules it is called in.
        every: Plans that a GPU runs as one are timed step by step in their first two runs, and then once in
            so many, at most once in a second, since that takes longer. The others are timed as a whole, and the
            time is divided among the steps as it was when each was timed; of those shorter than 8 ms some are
            taken to be as long as the others. The trace says so. With 1 all steps are timed.

    Raises:
        ValueError: Where a profile is being recorded already, or there is no such mode.

    Example:
        >>> profiler.start()
        >>> mx.eval(mx.ones((2, 2)) @ mx.ones((2, 2)))
        >>> "matmul" in profiler.stop().table()
        True
    """
    mx._profiler.start(mode, wait_until_completed, lines, every)


def stop() -> Profile:
    """What was recorded since :func:`start`, which ends.

    Raises:
        ValueError: Where nothing is being recorded.

    Example:
        >>> profiler.start("event")
        >>> profiler.stop().lost
        0
    """
    return mx._profiler.stop()


def mark(name: str) -> None:
    """Mark this moment in the profile, if one is being recorded.

    Example:
        >>> profiler.mark("an epoch begins")
    """
    mx._profiler.mark(name)


def is_running() -> bool:
    """Whether a profile is being recorded.

    Example:
        >>> profiler.is_running()
        False
    """
    return mx._profiler.is_running()


class profile:
    """A context whose work is recorded.

    Args:
        path: A file to write at the end, a trace or, with the ending ``.html``, a page.
        mode: As in :func:`start`.
        wait_until_completed: As in :func:`start`.
        lines: As in :func:`start`.
        every: As in :func:`start`.

    Raises:
        RuntimeError: Where the file cannot be written; looked at before anything is recorded.

    Example:
        >>> with profiler.profile() as found:
        ...     mx.eval(mx.ones(3) + 1)
        >>> len(found.result) > 0
        True
    """

    def __init__(
        self,
        path: Union[str, PathLike, None] = None,
        mode: str = "interval",
        wait_until_completed: bool = False,
        *,
        lines: bool = True,
        every: int = 128,
    ) -> None:
        if path is not None:
            mx._profiler.check_file(path)
        # The folder of now: the program may be in another one at the end.
        self._path = None if path is None else os.path.abspath(path)
        self._how = (mode, wait_until_completed, lines, every)
        self._result: Optional[Profile] = None

    @property
    def result(self) -> Profile:
        """What was recorded, after the end of the context."""
        if self._result is None:
            raise RuntimeError("The profile is there after the end of its context.")
        return self._result

    def __enter__(self) -> profile:
        mx._profiler.start(*self._how)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._result = mx._profiler.stop()
        if self._path is not None:
            self._result.save(self._path)
