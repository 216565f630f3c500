# Written by `cargo xtask gen`.

"""Fourier transforms."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

def fftfreq(n: int, d: float = ..., stream: _StreamOrDevice = ...) -> array:
    """The frequencies of a discrete Fourier transform of `size` points `spacing` apart, as `float32`:
    0 and up, then the negative ones.

    Errors:
    Where `size` is 0.

    Example:
        >>> mx.fft.fftfreq(4)
        array([0, 0.25, -0.5, -0.25], dtype=float32)
    """
def fftshift(a: _Scalar | array, axes: None | int | Sequence[int] = ..., stream: _StreamOrDevice = ...) -> array:
    """Each axis rolled by half its size, so that frequency 0 comes to the middle; `()` for all axes.

    Example:
        >>> mx.fft.fftshift(mx.array([0, 1, 2, 3]))
        array([2, 3, 0, 1], dtype=int32)
    """
def ifftshift(a: _Scalar | array, axes: None | int | Sequence[int] = ..., stream: _StreamOrDevice = ...) -> array:
    """The inverse of `fftshift`; they differ on axes of odd size.

    Example:
        >>> mx.fft.ifftshift(mx.array([2, 3, 0, 1]))
        array([0, 1, 2, 3], dtype=int32)
    """
def rfftfreq(n: int, d: float = ..., stream: _StreamOrDevice = ...) -> array:
    """The frequencies, not negative, of a transform of `size` real points `spacing` apart, as `float32`.

    Errors:
    Where `size` is 0.

    Example:
        >>> mx.fft.rfftfreq(4)
        array([0, 0.25, 0.5], dtype=float32)
    """

def fft(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def fft2(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def fftn(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def ifft(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def ifft2(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def ifftn(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def irfft(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def irfft2(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def irfftn(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def istft(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def rfft(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def rfft2(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def rfftn(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def stft(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
