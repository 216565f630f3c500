# Written by `cargo xtask gen`.

"""Random numbers, from splittable keys."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class _RandomState:
    """The state of the default generator: a sequence of one key, which changes with every draw."""
    def __len__(self) -> int:
        ...
    def __getitem__(self, index: int, /) -> array:
        ...
    def __setitem__(self, index: int, key: _Scalar | array, /) -> None:
        ...
    def __iter__(self) -> Any:
        ...

state: _RandomState

def bernoulli(p: _Scalar | array | None = ..., shape: int | Sequence[int] | None = ..., key: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """True with probability `p`.

    Shapes:
    `p` broadcasts to `shape`.

    Example:
        >>> mx.random.bernoulli(0.5, (4,)).dtype
        mlx.core.bool
    """
def bits(shape: int | Sequence[int], width: int, key: _Scalar | array | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Random bits: unsigned integers of `width` bytes, 1, 2 or 4, over their whole range.

    Example:
        >>> mx.random.bits((3,), 4).dtype
        mlx.core.uint32
    """
def categorical(logits: _Scalar | array, axis: int = ..., shape: int | Sequence[int] | None = ..., num_samples: int | None = ..., key: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Indices along `axis`, each drawn with the softmax of the logits as its probability.

    Shapes:
    The logits without `axis`; with `samples`, a last axis of so many draws is added.

    Dtypes:
    Gives `uint32`.

    Example:
        >>> mx.random.categorical(mx.array([-mx.inf, 0.0, -mx.inf]))
        array(1, dtype=uint32)
    """
def gumbel(shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Numbers of the standard Gumbel distribution, −ln(−ln u) with u even over [0, 1).

    Example:
        >>> mx.random.gumbel((2, 3)).shape
        (2, 3)
    """
def key(seed: int) -> array:
    """The key of a seed.

    Example:
        >>> mx.random.key(0)
        array([0, 0], dtype=uint32)
    """
def laplace(shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., loc: _Scalar | array | None = ..., scale: _Scalar | array | None = ..., key: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Numbers of the Laplace distribution of mean 0 and scale 1: sign(u)·ln(1 − |u|) with u even over
    (−1, 1).

    Example:
        >>> mx.random.laplace((2, 3)).shape
        (2, 3)
    """
def normal(shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., loc: _Scalar | array | None = ..., scale: _Scalar | array | None = ..., key: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Normal numbers of mean 0 and variance 1: √2·erfinv(u) with u even over (−1, 1).

    Multiply and add for others. Of complex numbers the parts have variance ½.

    Errors:
    Where `dtype` is neither float nor complex.

    Example:
        >>> mx.random.normal((2, 3), loc=1.0, scale=0.5).shape
        (2, 3)
    """
def permutation(x: Any, axis: int = ..., key: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The integers below `count` in random order, as `uint32`.

    Example:
        >>> mx.sort(mx.random.permutation(4))
        array([0, 1, 2, 3], dtype=uint32)
    """
def randint(low: _Scalar | array, high: _Scalar | array, shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Integers in [low, high).

    Dtypes:
    They are drawn as `float32`, as in MLX: of more than 2²⁴ integers not every one can come up.

    Errors:
    Where `dtype` is not an integer type, or there is nothing between `low` and `high`.

    Example:
        >>> x = mx.random.randint(0, 10, (100,))
        >>> x.dtype, (x >= 0).all().item(), (x < 10).all().item()
        (mlx.core.int32, True, True)
    """
def seed(seed: int) -> None:
    """Starts the default generator from a seed.

    Example:
        >>> mx.random.seed(7)
        >>> first = mx.random.uniform()
        >>> mx.random.seed(7)
        >>> mx.array_equal(first, mx.random.uniform())
        array(True, dtype=bool)
    """
def split(key: _Scalar | array, num: int = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`count` keys made of one, as `uint32[count, 2]`.

    Example:
        >>> one, other = mx.random.split(mx.random.key(0))
        >>> one.shape
        (2,)
    """
def truncated_normal(lower: _Scalar | array, upper: _Scalar | array, shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Normal numbers of mean 0 and variance 1 that are within [lower, upper].

    Shapes:
    `lower` and `upper` broadcast to `shape`.

    Example:
        >>> x = mx.random.truncated_normal(-1.0, 1.0, (100,))
        >>> (mx.abs(x) <= 1).all().item()
        True
    """
def uniform(low: _Scalar | array | None = ..., high: _Scalar | array | None = ..., shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Numbers spread evenly over [low, high).

    Shapes:
    `low` and `high` broadcast to `shape`.

    Errors:
    Where `dtype` is not a float.

    Example:
        >>> x = mx.random.uniform(2.0, 3.0, (100,))
        >>> (x >= 2).all().item(), (x < 3).all().item()
        (True, True)
    """

def multivariate_normal(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
