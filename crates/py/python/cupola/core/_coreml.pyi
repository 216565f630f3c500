# Written by `cargo xtask gen`.

"""What `cupola.coreml` is made of."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class Model:
    """A function of a model that was read."""

def classes(model: Any) -> Any:
    """The labels of a classifier."""
def constants(model: Any) -> Any:
    """The arrays that a model holds, by name."""
def function(model: Any, name: str) -> Any:
    """Another function of the model."""
def functions(model: Any) -> Any:
    """The name of the function, and those of all functions of its model."""
def load(path: str | None = ..., content: Sequence[Any] | None = ...) -> Any:
    """The model of a package's folder or of a file, or of a file's bytes."""
def operators() -> Any:
    """The operators that are read."""
def outputs(model: Any) -> Any:
    """The names of a model's outputs."""
def ports(model: Any, states: bool) -> Any:
    """The inputs of a model, or with `states` its states: name, dtype and sizes."""
def run(model: Any, inputs: Sequence[Any]) -> Any:
    """Records a model on arrays for its inputs and states by name; gives its outputs, and then its states, by
    name.
    """
def warnings(model: Any) -> Any:
    """What of a model may not do what is meant."""

