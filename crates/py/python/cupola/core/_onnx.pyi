# Written by `cargo xtask gen`.

"""What `cupola.onnx` is made of."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class Model:
    """A model that was read."""

def export(fun: Any, args: Sequence[_Scalar | array], inputs: Sequence[str], outputs: Sequence[str] | None, opset: int, sizes: Any = ...) -> bytes:
    """The bytes of a model that computes what a function records for such arrays: with names for its inputs, and for
    its outputs where they are given. Where an input has `sizes`, they take the place of its array's.
    """
def initializers(model: Any) -> Any:
    """The arrays that a model holds, by name."""
def load(path: str | None = ..., content: Sequence[Any] | None = ...) -> Any:
    """The model of a file's bytes, or of a file, with what lies beside it."""
def operators() -> Any:
    """The operators that are read: domain, name and the least version."""
def ports(model: Any, outputs: bool) -> Any:
    """The inputs of a model, or with `outputs` its outputs: name, kind, element type and sizes."""
def run(model: Any, inputs: Sequence[Any]) -> Any:
    """Records a model on values for its inputs by name; gives its outputs in order."""
def write(path: str, content: bytes) -> None:
    """Writes bytes to a file, whole or not at all."""

