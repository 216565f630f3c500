# Written by `cargo xtask gen`.

"""What `cupola.graph` is made of."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

def save(path: str, functions: Sequence[Any], metadata: str | None) -> None:
    """Writes functions to a package: for each its name, and its traces. Of a trace there are its inputs, its weights by
    name, the names of its outputs, and what makes a list of these from lists of the other two.
    """

