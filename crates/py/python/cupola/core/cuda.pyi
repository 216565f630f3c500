# Written by `cargo xtask gen`.

"""GPUs through CUDA."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

def is_available() -> bool:
    """Whether there is an NVIDIA GPU that programs can use.

    Example:
        >>> mx.cuda.is_available() in (True, False)
        True
    """

