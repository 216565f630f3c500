# Written by `cargo xtask gen`.

"""What `cupola.profiler` is made of."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class Profile:
    """What was recorded.

    Example:
        >>> mx._profiler.start()
        >>> mx.eval(mx.exp(mx.ones(3)))
        >>> profile = mx._profiler.stop()
        >>> "map" in profile.table("op"), "traceEvents" in profile.to_json()
        (True, True)
    """
    @property
    def length(self) -> float:
        """How long was recorded, in seconds."""
    @property
    def lost(self) -> int:
        """How many events came after there was no more room for them."""
    def __len__(self) -> int:
        """How many events were recorded."""
    def table(self, by: str = ...) -> str:
        """What took how long, the longest first: by `op`, `step`, `line` or `module`."""
    def to_json(self) -> str:
        """A trace that Perfetto and Chrome show, as JSON."""
    def to_html(self) -> str:
        """One page with the timeline, the memory over time and what took longest."""
    def save(self, path: Any) -> None:
        """Writes the page where the name ends in `.html`, else the trace."""
    def __repr__(self) -> str:
        ...

def check_file(path: Any) -> None:
    """Raises where a profile cannot be written to a file.

    Example:
        >>> mx._profiler.check_file("profile.json")
    """
def finish() -> None:
    """Writes the profile that the environment asked for.

    Example:
        >>> mx._profiler.finish()
    """
def is_running() -> bool:
    """Whether a profile is being recorded.

    Example:
        >>> mx._profiler.is_running()
        False
    """
def mark(name: str) -> None:
    """Marks this moment in the profile that is being recorded.

    Example:
        >>> mx._profiler.mark("here")
    """
def start(mode: str = ..., wait_until_completed: bool = ..., lines: bool = ..., every: int = ...) -> None:
    """Begins to record what every thread does.

    Example:
        >>> mx._profiler.start("interval,event")
        >>> profile = mx._profiler.stop()
    """
def stop() -> Any:
    """What was recorded, which ends.

    Example:
        >>> mx._profiler.start()
        >>> mx._profiler.stop().lost
        0
    """

