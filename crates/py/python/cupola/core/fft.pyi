# Written by `cargo xtask gen`.

"""Fourier transforms."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

def fft(a: _Scalar | array, n: int | None = ..., axis: int = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The Fourier transform along an axis: yₖ = Σⱼ xⱼ·e^(−2πi·jk/n).

    Shapes:
    The axis is cut off or filled with zeros to `n`; `None` leaves it.

    Dtypes:
    Computed in `complex64`, which the result has; what is real is cast to it.

    Errors:
    Where there is no such axis, and where it has no point.

    Example:
        >>> mx.fft.fft(mx.array([1.0, 2.0, 3.0, 4.0]))
        array([10+0j, -2+2j, -2+0j, -2-2j], dtype=complex64)
    """
def fft2(a: _Scalar | array, s: int | Sequence[int] | None = ..., axes: None | Sequence[int] = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The Fourier transform along two axes: `fftn`.

    Shapes:
    As `fftn`; usually the last two axes.

    Dtypes:
    Computed in `complex64`, which the result has; what is real is cast to it.

    Errors:
    Where there are no such axes, where one repeats or has no point, and where `s` has not one size
    for each.

    Example:
        >>> mx.fft.fft2(mx.ones((2, 2)))
        array([[4+0j, 0+0j],
               [0+0j, 0+0j]], dtype=complex64)
    """
def fftfreq(n: int, d: float = ..., stream: _StreamOrDevice = ...) -> array:
    """The frequencies of a discrete Fourier transform of `size` points `spacing` apart, as `float32`:
    0 and up, then the negative ones.

    Errors:
    Where `size` or `spacing` is 0.

    Example:
        >>> mx.fft.fftfreq(4)
        array([0, 0.25, -0.5, -0.25], dtype=float32)
    """
def fftn(a: _Scalar | array, s: int | Sequence[int] | None = ..., axes: None | Sequence[int] = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The Fourier transform along several axes.

    Shapes:
    `s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`.

    Dtypes:
    Computed in `complex64`, which the result has; what is real is cast to it.

    Errors:
    Where there are no such axes, where one repeats or has no point, and where `s` has not one size
    for each.

    Example:
        >>> mx.fft.fftn(mx.ones((2, 3, 4)), s=(2, 2), axes=(0, 2)).shape
        (2, 3, 2)
    """
def fftshift(a: _Scalar | array, axes: None | int | Sequence[int] = ..., stream: _StreamOrDevice = ...) -> array:
    """Each axis rolled by half its size, so that frequency 0 comes to the middle; `()` for all axes.

    Example:
        >>> mx.fft.fftshift(mx.array([0, 1, 2, 3]))
        array([2, 3, 0, 1], dtype=int32)
    """
def hfft(a: _Scalar | array, n: int | None = ..., axis: int = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The real spectrum of what is the conjugate of itself backwards, of which the first half is given:
    `irfft` with the two ways exchanged.

    Shapes:
    As `irfft`.

    Dtypes:
    The input is cast to `complex64`; the result is `float32`.

    Errors:
    As `irfft`.

    Example:
        >>> mx.fft.hfft(mx.array([1.0, 2.0, 3.0]))
        array([8, -2, 0, -2], dtype=float32)
    """
def ifft(a: _Scalar | array, n: int | None = ..., axis: int = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The inverse of `fft`: xⱼ = 1/n·Σₖ yₖ·e^(2πi·jk/n).

    Shapes:
    The axis is cut off or filled with zeros to `n`; `None` leaves it.

    Dtypes:
    Computed in `complex64`, which the result has; what is real is cast to it.

    Errors:
    Where there is no such axis, and where it has no point.

    Example:
        >>> mx.fft.ifft(mx.array([4.0, 0.0, 0.0, 0.0]))
        array([1+0j, 1+0j, 1+0j, 1+0j], dtype=complex64)
    """
def ifft2(a: _Scalar | array, s: int | Sequence[int] | None = ..., axes: None | Sequence[int] = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The inverse of `fft2`.

    Shapes:
    As `ifftn`; usually the last two axes.

    Dtypes:
    Computed in `complex64`, which the result has; what is real is cast to it.

    Errors:
    Where there are no such axes, where one repeats or has no point, and where `s` has not one size
    for each.

    Example:
        >>> mx.fft.ifft2(mx.ones((2, 2)), norm="forward")
        array([[4+0j, 0+0j],
               [0+0j, 0+0j]], dtype=complex64)
    """
def ifftn(a: _Scalar | array, s: int | Sequence[int] | None = ..., axes: None | Sequence[int] = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The inverse of `fftn`.

    Shapes:
    `s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`.

    Dtypes:
    Computed in `complex64`, which the result has; what is real is cast to it.

    Errors:
    Where there are no such axes, where one repeats or has no point, and where `s` has not one size
    for each.

    Example:
        >>> mx.fft.ifftn(mx.ones((2, 3, 4))).shape
        (2, 3, 4)
    """
def ifftshift(a: _Scalar | array, axes: None | int | Sequence[int] = ..., stream: _StreamOrDevice = ...) -> array:
    """The inverse of `fftshift`; they differ on axes of odd size.

    Example:
        >>> mx.fft.ifftshift(mx.array([2, 3, 0, 1]))
        array([0, 1, 2, 3], dtype=int32)
    """
def ihfft(a: _Scalar | array, n: int | None = ..., axis: int = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The inverse of `hfft`: half of what has this real spectrum.

    Shapes:
    As `rfft`.

    Dtypes:
    As `rfft`.

    Errors:
    As `rfft`.

    Example:
        >>> mx.real(mx.fft.ihfft(mx.array([8.0, -2.0, 0.0, -2.0])))
        array([1, 2, 3], dtype=float32)
    """
def irfft(a: _Scalar | array, n: int | None = ..., axis: int = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The real numbers whose spectrum along an axis begins with these: the inverse of `rfft`.

    Shapes:
    The axis has `n` numbers in the end, of which the first `n`/2 + 1 of the spectrum say all; for `None` these are 2·(m − 1) of m.

    Dtypes:
    The input is cast to `complex64`; the result is `float32`.

    Errors:
    Where there is no such axis, and where it has no point.

    Example:
        >>> mx.fft.irfft(mx.array([10.0, -2.0, -2.0]))
        array([1, 3, 3, 3], dtype=float32)
    """
def irfft2(a: _Scalar | array, s: int | Sequence[int] | None = ..., axes: None | Sequence[int] = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The inverse of `rfft2`.

    Shapes:
    As `irfftn`; usually the last two axes.

    Dtypes:
    The input is cast to `complex64`; the result is `float32`.

    Errors:
    Where there are no such axes, where one repeats or has no point, and where `s` has not one size
    for each.

    Example:
        >>> mx.fft.irfft2(mx.ones((5, 3, 3))).shape
        (5, 3, 4)
    """
def irfftn(a: _Scalar | array, s: int | Sequence[int] | None = ..., axes: None | Sequence[int] = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The inverse of `rfftn`.

    Shapes:
    `s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`. The size of the last axis is as in `irfft`.

    Dtypes:
    The input is cast to `complex64`; the result is `float32`.

    Errors:
    Where there are no such axes, where one repeats or has no point, and where `s` has not one size
    for each.

    Example:
        >>> mx.fft.irfftn(mx.ones((3, 3)), s=(3, 5), axes=(0, 1)).shape
        (3, 5)
    """
def istft(stft_matrix: _Scalar | array, n_fft: int | None = ..., hop_length: int | None = ..., win_length: int | None = ..., window: _Scalar | array | None = ..., center: bool = ..., norm: str = ..., onesided: bool | None = ..., length: int | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The signal whose `stft` this is: the frames, times the window, are added where they overlap, and
    divided by the sum of the squares of the windows there.

    Shapes:
    The last two axes of `spectra` are frequencies and frames. They become one: `length` elements, or
    for `None` as many as all frames have together, without what `center` added.

    Dtypes:
    Computed in `complex64`; the result is `float32`.

    Errors:
    Where there are less than two axes, `n_fft` or the hop is 0, the window has not one axis or is longer
    than a frame, and where there is no frame.

    D. W. Griffin, J. S. Lim, *Signal estimation from modified short-time Fourier transform*, 1984.

    Example:
        >>> mx.fft.istft(mx.fft.stft(mx.ones(32), n_fft=8)).shape
        (32,)
    """
def rfft(a: _Scalar | array, n: int | None = ..., axis: int = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The first n/2 + 1 numbers of the Fourier transform of real ones along an axis: the others are their conjugates.

    Shapes:
    The axis is cut off or filled with zeros to `n`, and has `n`/2 + 1 numbers in the end; `None` leaves it.

    Dtypes:
    The input is cast to `float32`, of complex numbers the real part; the result is `complex64`.

    Errors:
    Where there is no such axis, and where it has no point.

    Example:
        >>> mx.fft.rfft(mx.array([1.0, 2.0, 3.0, 4.0]))
        array([10+0j, -2+2j, -2+0j], dtype=complex64)
    """
def rfft2(a: _Scalar | array, s: int | Sequence[int] | None = ..., axes: None | Sequence[int] = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The Fourier transform of real numbers along two axes: `rfftn`.

    Shapes:
    As `rfftn`; usually the last two axes.

    Dtypes:
    The input is cast to `float32`, of complex numbers the real part; the result is `complex64`.

    Errors:
    Where there are no such axes, where one repeats or has no point, and where `s` has not one size
    for each.

    Example:
        >>> mx.fft.rfft2(mx.ones((5, 3, 4))).shape
        (5, 3, 3)
    """
def rfftfreq(n: int, d: float = ..., stream: _StreamOrDevice = ...) -> array:
    """The frequencies, not negative, of a transform of `size` real points `spacing` apart, as `float32`.

    Errors:
    Where `size` or `spacing` is 0.

    Example:
        >>> mx.fft.rfftfreq(4)
        array([0, 0.25, 0.5], dtype=float32)
    """
def rfftn(a: _Scalar | array, s: int | Sequence[int] | None = ..., axes: None | Sequence[int] = ..., norm: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The Fourier transform of real numbers along several axes: half a spectrum along the last of them.

    Shapes:
    `s` has the size for each of `axes`, which are cut off or filled with zeros; `None` leaves them. `()` stands for all axes, without `s`. The last axis has half its size and 1 in the end, as in `rfft`.

    Dtypes:
    The input is cast to `float32`, of complex numbers the real part; the result is `complex64`.

    Errors:
    Where there are no such axes, where one repeats or has no point, and where `s` has not one size
    for each.

    Example:
        >>> mx.fft.rfftn(mx.ones((3, 4))).shape
        (3, 3)
    """
def stft(x: _Scalar | array, n_fft: int = ..., hop_length: int | None = ..., win_length: int | None = ..., window: _Scalar | array | None = ..., center: bool = ..., pad_mode: str = ..., norm: str = ..., onesided: bool | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The spectra of overlapping frames of a signal: frame t is n_fft elements from t·hop on, times the
    window.

    Shapes:
    The signal is the last axis of `x`. It becomes two: frequencies, n_fft/2 + 1 of half a spectrum,
    and frames.

    Dtypes:
    Computed in `float32`, of complex numbers in `complex64`; the result is `complex64`.

    Errors:
    Where `n_fft` or the hop is 0, the window has not one axis or is longer than a frame, and where the
    signal is shorter than one.

    J. B. Allen, L. R. Rabiner, *A unified approach to short-time Fourier analysis and synthesis*, 1977.

    Example:
        >>> mx.fft.stft(mx.ones(32), n_fft=8).shape
        (5, 17)
    """

