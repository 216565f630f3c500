# Written by `cargo xtask gen`.

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn, ParamSpec, Protocol, TypeAlias, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

from . import Device, DeviceType, Dtype, Stream, StreamOrDevice, array, scalar


def is_available(*args: Any, **kwargs: Any) -> NoReturn: ...
