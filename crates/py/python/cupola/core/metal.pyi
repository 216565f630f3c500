# Written by `cargo xtask gen`.

"""GPUs through Metal."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

def clear_cache() -> None:
    """Gives kept memory back to the system: `mx.clear_cache`.

    Example:
        >>> mx.metal.clear_cache()
    """
def device_info() -> dict[str, Any]:
    """What is known of the GPU through Metal; nothing where there is none.

    Example:
        >>> isinstance(mx.metal.device_info(), dict)
        True
    """
def get_active_memory() -> int:
    """The bytes that live arrays hold: `mx.get_active_memory`.

    Example:
        >>> mx.metal.get_active_memory() >= 0
        True
    """
def get_cache_memory() -> int:
    """The bytes that are kept for reuse: `mx.get_cache_memory`.

    Example:
        >>> mx.metal.get_cache_memory() >= 0
        True
    """
def get_peak_memory() -> int:
    """The most bytes that live arrays held: `mx.get_peak_memory`.

    Example:
        >>> mx.metal.get_peak_memory() >= 0
        True
    """
def is_available() -> bool:
    """Whether there is a GPU through Metal.

    Example:
        >>> mx.metal.is_available() in (True, False)
        True
    """
def reset_peak_memory() -> None:
    """Counts the most memory in use anew: `mx.reset_peak_memory`.

    Example:
        >>> mx.metal.reset_peak_memory()
    """
def set_cache_limit(limit: int) -> int:
    """Bounds what is kept for reuse: `mx.set_cache_limit`.

    Example:
        >>> former = mx.metal.set_cache_limit(1 << 40)
        >>> mx.metal.set_cache_limit(former) == 1 << 40
        True
    """
def set_memory_limit(limit: int) -> int:
    """Sets a guideline for memory: `mx.set_memory_limit`.

    Example:
        >>> former = mx.metal.set_memory_limit(1 << 40)
        >>> mx.metal.set_memory_limit(former) == 1 << 40
        True
    """
def set_wired_limit(limit: int) -> int:
    """Notes how many bytes should stay in physical memory: `mx.set_wired_limit`.

    Example:
        >>> former = mx.metal.set_wired_limit(1 << 40)
        >>> mx.metal.set_wired_limit(former) == 1 << 40
        True
    """
def start_capture(path: str) -> None:
    """Is an error: captures are files of Metal's.

    Example:
        >>> mx.metal.start_capture('a.gputrace')
        Traceback (most recent call last):
        RuntimeError: metal.start_capture: captures are of Metal, and Cupola records none
    """
def stop_capture() -> None:
    """Is an error, as `start_capture`.

    Example:
        >>> mx.metal.stop_capture()
        Traceback (most recent call last):
        RuntimeError: metal.stop_capture: captures are of Metal, and Cupola records none
    """

