# Written by `cargo xtask gen`.

"""What `cupola.onnx` is made of."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class Model:
    """A model that was read."""

def initializers(model: Any) -> Any:
    """The arrays that a model holds, by name."""
def load(path: str | None = ..., content: Sequence[Any] | None = ...) -> Any:
    """The model of a file's bytes, or of a file, with what lies beside it."""
def operators() -> Any:
    """The operators that are read: domain, name and the least version."""
def ports(model: Any, outputs: bool) -> Any:
    """The inputs of a model, or with `outputs` its outputs: name, kind, element type and sizes."""
def put(path: str, content: bytes) -> None:
    """Writes the content of a file: all of it, or nothing."""
def run(model: Any, inputs: Sequence[Any]) -> Any:
    """Records a model on values for its inputs by name; gives its outputs in order."""
def write(fun: Any, args: Any, kwargs: dict[Any, Any], opset: int, inputs: Sequence[str] | None, outputs: Sequence[str] | None) -> bytes:
    """The content of an ONNX file that computes what a function does of such arrays."""

