# Written by `cargo xtask gen`.

"""What `cupola.amp` is made of."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class Policy:
    """Which dtype each operation computes in.

    Example:
        >>> policy = mx._amp.Policy(mx.bfloat16).changed("tanh", "float32")
        >>> policy.dtype, "tanh" in policy.ops("float32")
        (mlx.core.bfloat16, True)
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __new__(cls, dtype: Dtype) -> Policy: ...
    @property
    def dtype(self) -> Dtype:
        """What operations of the category `lower` compute in."""
    def ops(self, name: str) -> Any:
        """The names of the operations of a category."""
    def changed(self, op: str, name: str) -> Any:
        """The policy with another category for an operation."""

@final
class Scope:
    """A context in which operations are recorded as a policy says, or as they are written.

    Example:
        >>> with mx._amp.Scope(mx._amp.Policy(mx.bfloat16)):
        ...     print((mx.ones((2, 2)) @ mx.ones((2, 2))).dtype)
        mlx.core.bfloat16
    """
    def __new__(cls, policy: Any = ...) -> Scope: ...
    def __enter__(self) -> None:
        ...
    def __exit__(self, exc_type: Any = ..., exc_value: Any = ..., traceback: Any = ...) -> None:
        ...

@final
class _Tuned:
    """What was measured, and the policy that is proposed for it."""
    @property
    def policy(self) -> Any:
        """The policy."""
    def to_json(self) -> str:
        """All of it, as JSON."""
    def __str__(self) -> str:
        ...

def global_policy() -> Any:
    """The policy of every thread outside of a scope.

    Example:
        >>> mx._amp.global_policy()
    """
def operand(op: str, x: _Scalar | array) -> array:
    """What the policy makes of an operand of an operation that a layer adds afterwards, as the bias of a
    convolution.

    Example:
        >>> mx._amp.operand("conv_general", mx.array([1.0])).dtype
        mlx.core.float32
    """
def policy() -> Any:
    """The policy that this thread records under now.

    Example:
        >>> mx._amp.policy()
    """
def renew_traces() -> None:
    """Says that a module has another policy now: what was compiled is traced anew.

    Example:
        >>> mx._amp.renew_traces()
    """
def result(op: str, x: _Scalar | array) -> array:
    """What the policy makes of the result of an operation that a layer computes by itself, as an embedding.

    Example:
        >>> mx._amp.result("embedding", mx.array([1.0])).dtype
        mlx.core.float32
    """
def set_global_policy(policy: Any = ...) -> None:
    """Makes a policy that of every thread outside of a scope.

    Example:
        >>> mx._amp.set_global_policy(None)
    """
def tune(step: Any, reset: Any, dtype: Dtype, steps: int, tolerance: float) -> Any:
    """What a step takes in each precision, group by group of its operations.

    Example:
        >>> step = lambda: [(mx.ones((2, 2)) @ mx.ones((2, 2))).sum()]
        >>> tuned = mx._amp.tune(step, lambda: None, mx.bfloat16, 1, 0.01)
        >>> "products" in str(tuned)
        True
    """

