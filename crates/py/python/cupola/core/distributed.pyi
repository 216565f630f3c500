# Written by `cargo xtask gen`.

"""Groups of processes: this one alone."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class Group:
    """Processes that work together: this one alone.

    Example:
        >>> mx.distributed.init().rank()
        0
    """
    def rank(self) -> int:
        """The number of this process in the group."""
    def size(self) -> int:
        """How many processes there are."""
    def split(self, color: int, key: int = ...) -> Group:
        """The group of the processes that give the same color; one process cannot be divided."""

def all_gather(x: _Scalar | array, *, group: Group | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The arrays of all processes, one after the other along the first axis.

    Example:
        >>> mx.distributed.all_gather(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """
def all_max(x: _Scalar | array, *, group: Group | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The largest of each element of the arrays of all processes.

    Example:
        >>> mx.distributed.all_max(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """
def all_min(x: _Scalar | array, *, group: Group | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The smallest of each element of the arrays of all processes.

    Example:
        >>> mx.distributed.all_min(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """
def all_sum(x: _Scalar | array, *, group: Group | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The sum of the arrays of all processes.

    Example:
        >>> mx.distributed.all_sum(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """
def init(strict: bool = ..., backend: str = ..., *, all_gather_factory: Any = ...) -> Group:
    """The group of all processes that were started together: this one alone, or an error with
    `strict`.

    Example:
        >>> mx.distributed.init().size()
        1
    """
def is_available(backend: str = ...) -> bool:
    """Whether several processes can work together: not yet, by no backend.

    Example:
        >>> mx.distributed.is_available()
        False
    """
def recv(shape: int | Sequence[int], dtype: Dtype, src: int, *, group: Group | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Receives an array from another process of the group, of which there is none.

    Example:
        >>> mx.distributed.recv((2,), mx.float32, 1)
        Traceback (most recent call last):
            ...
        ValueError: recv: the group of one process has no other (src 1)
    """
def recv_like(x: _Scalar | array, src: int, *, group: Group | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Receives an array like `x` from another process of the group, of which there is none.

    Example:
        >>> mx.distributed.recv_like(mx.array([1, 2]), 1)
        Traceback (most recent call last):
            ...
        ValueError: recv_like: the group of one process has no other (src 1)
    """
def send(x: _Scalar | array, dst: int, *, group: Group | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Sends an array to another process of the group, of which there is none.

    Example:
        >>> mx.distributed.send(mx.array([1, 2]), 1)
        Traceback (most recent call last):
            ...
        ValueError: send: the group of one process has no other (dst 1)
    """
def sum_scatter(x: _Scalar | array, *, group: Group | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """This process's part, along the first axis, of the sum of the arrays of all processes.

    Example:
        >>> mx.distributed.sum_scatter(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """

