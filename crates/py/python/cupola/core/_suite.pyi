# Written by `cargo xtask gen`.

"""The samples of the op suite, for comparisons with other packages."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

def samples(family: str) -> Any:
    """The samples of a family whose primitive is a function of NumPy's or MLX's, in every dtype: the
    sample's name, the function's, its keywords, its arguments, its result.
    """

