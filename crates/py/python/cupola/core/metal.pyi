# Written by `cargo xtask gen`.

"""GPUs through Metal."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

def is_available() -> bool:
    """Whether there is a GPU through Metal.

    Example:
        >>> mx.metal.is_available() in (True, False)
        True
    """

def clear_cache(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def device_info(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def get_active_memory(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def get_cache_memory(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def get_peak_memory(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def reset_peak_memory(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def set_cache_limit(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def set_memory_limit(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def set_wired_limit(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def start_capture(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def stop_capture(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
