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

def bernoulli(p: _Scalar | array | None = ..., shape: int | Sequence[int] | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """True with probability `p`.

    Shapes:
    `p` broadcasts to `shape`.

    Errors:
    Where `p` is an array of something else than floats, or does not broadcast.

    Example:
        >>> mx.random.bernoulli(0.5, (4,)).dtype
        mlx.core.bool
    """
def beta(a: _Scalar | array, b: _Scalar | array, shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Numbers of the beta distribution: X/(X + Y) with X and Y of `gamma` distributions with `a` and `b`.

    Shapes:
    `a` and `b` broadcast to `shape`.

    Dtypes and derivatives:
    As `gamma`.

    Errors:
    As `gamma`.

    Example:
        >>> x = mx.random.beta(0.5, 2.0, (100,), key=mx.random.key(0))
        >>> (0 <= x.min().item(), x.max().item() <= 1)
        (True, True)
    """
def bits(shape: int | Sequence[int], width: int, key: _Scalar | array | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Random bits: unsigned integers of `width` bytes, 1, 2 or 4, over their whole range.

    Example:
        >>> mx.random.bits((3,), 4).dtype
        mlx.core.uint32
    """
def categorical(logits: _Scalar | array, axis: int = ..., shape: int | Sequence[int] | None = ..., num_samples: int | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Indices along `axis`, each drawn with the softmax of the logits as its probability.

    Shapes:
    The logits without `axis`; with `samples`, a last axis of so many draws is added.

    Dtypes:
    Gives `uint32`.

    Example:
        >>> mx.random.categorical(mx.array([-mx.inf, 0.0, -mx.inf]))
        array(1, dtype=uint32)
    """
def choice(a: Any, shape: int | Sequence[int] | None = ..., replace: bool = ..., p: _Scalar | array | None = ..., axis: int = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Slices of `a` along `axis` that are drawn, or integers below it where it is a number: each as likely as another or
    with the probabilities `p`, with each put back or, for `replace=False`, not.

    Example:
        >>> x = mx.random.choice(4, (100,), key=mx.random.key(0))
        >>> (0 <= x.min().item(), x.max().item() < 4)
        (True, True)
        >>> mx.sort(mx.random.choice(mx.array([2, 4, 8]), (3,), replace=False))
        array([2, 4, 8], dtype=int32)
    """
def dirichlet(alpha: _Scalar | array, shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Vectors of the Dirichlet distribution: positive numbers whose sum is 1.

    Shapes:
    `alpha` has the parameters along its last axis; its other axes broadcast to `shape`, which that axis follows.

    Dtypes and derivatives:
    As `gamma`.

    Errors:
    Where `alpha` has no axis, and as `gamma`.

    Example:
        >>> mx.random.dirichlet(mx.array([1.0, 2.0, 3.0]), (5,)).shape
        (5, 3)
    """
def exponential(shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., scale: _Scalar | array | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Numbers of the exponential distribution of mean 1: −ln(1 − u) with u even over [0, 1).

    Errors:
    Where `dtype` is not a float.

    Example:
        >>> mx.random.exponential((100,), scale=2.0).min().item() >= 0
        True
    """
def gamma(a: _Scalar | array, shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., scale: _Scalar | array | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Numbers of the gamma distribution with the shape parameter `a` and scale 1.

    Shapes:
    `a` broadcasts to `shape`.

    Dtypes:
    Half types are drawn in `float32`. Of an array's negative parameters the numbers are NaN.

    Derivatives:
    By the parameter: that of the quantile that a number is, at its probability (M. Figurnov, S. Mohamed, A. Mnih,
    *Implicit reparameterization gradients*, 2018). It is 0 where there is no distribution.

    Errors:
    Where `dtype` is not a float, and for a plain number that is not positive.

    Example:
        >>> mx.random.gamma(2.5, (100,)).min().item() > 0
        True
    """
def geometric(p: _Scalar | array, shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """How many trials it takes until one succeeds that does so with probability `p`: numbers of the geometric
    distribution, from 1 on.

    Shapes:
    `p` broadcasts to `shape`.

    Dtypes:
    They are drawn in `float32`. Where an array's probability is not within (0, 1] the number is −1.

    Errors:
    Where `dtype` is not an integer type, and for a plain number that is not within (0, 1].

    Example:
        >>> mx.random.geometric(0.5, (100,)).min().item() >= 1
        True
    """
def gumbel(shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
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
def laplace(shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., loc: _Scalar | array = ..., scale: _Scalar | array = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Numbers of the Laplace distribution of mean 0 and scale 1: sign(u)·ln(1 − |u|) with u even over
    (−1, 1).

    Example:
        >>> mx.random.laplace((2, 3)).shape
        (2, 3)
    """
def multivariate_normal(mean: _Scalar | array, cov: _Scalar | array, shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Vectors of normal numbers with these means and covariances: the product of independent numbers with the symmetric
    root of the covariances, and the means. The covariances are evaluated.

    Shapes:
    Means `[.., n]` and covariances `[.., n, n]` give `[.., n]`: the leading axes broadcast, also to those of `shape`, which
    has none for n.

    Dtypes:
    Gives `float32`.

    Derivatives:
    By the means, and by the covariances those of their roots: 0 along what is 0 in both.

    Errors:
    Where the means have no axis, the covariances are no square matrices of as many rows, not symmetric or not positive
    semidefinite, the shapes do not broadcast, and under `compile` and `vmap` of the covariances, where there are no
    values.

    Example:
        >>> mean, cov = mx.array([1.0, 2.0]), mx.array([[2.0, 0.5], [0.5, 1.0]])
        >>> mx.random.multivariate_normal(mean, cov, (100,)).shape
        (100, 2)
    """
def normal(shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., loc: _Scalar | array | None = ..., scale: _Scalar | array | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Normal numbers of mean 0 and variance 1: √2·erfinv(u) with u even over (−1, 1).

    Multiply and add for others. Of complex numbers the parts have variance ½.

    Errors:
    Where `dtype` is neither float nor complex.

    Example:
        >>> mx.random.normal((2, 3), loc=1.0, scale=0.5).shape
        (2, 3)
    """
def permutation(x: Any, axis: int = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The integers below `count` in random order, as `uint32`.

    Example:
        >>> mx.sort(mx.random.permutation(4))
        array([0, 1, 2, 3], dtype=uint32)
    """
def poisson(lam: _Scalar | array, shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """How many events come in a time in which `rate` are expected: numbers of the Poisson distribution.

    Shapes:
    `rate` broadcasts to `shape`.

    Dtypes:
    They are drawn in `float32`. Where an array's rate is negative or NaN the number is −1.

    Errors:
    Where `dtype` is not an integer type, and for a plain number that is negative or not finite.

    Example:
        >>> x = mx.random.poisson(3.0, (100,), key=mx.random.key(0))
        >>> (0 <= x.min().item(), x.max().item() < 40)
        (True, True)
    """
def randint(low: _Scalar | array, high: _Scalar | array, shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Integers in [low, high).

    Dtypes:
    They are drawn as `float32`, as in MLX: of more than 2²⁴ integers not every one can come up. Fewer that `float32` does
    not hold are drawn of 64 bits, where MLX gives few of them or one.

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
def split(key: array, num: int = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`count` keys made of one, as `uint32[count, 2]`.

    Example:
        >>> one, other = mx.random.split(mx.random.key(0))
        >>> one.shape
        (2,)
    """
def truncated_normal(lower: _Scalar | array, upper: _Scalar | array, shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Normal numbers of mean 0 and variance 1 that are within [lower, upper].

    Shapes:
    `lower` and `upper` broadcast to `shape`.

    Example:
        >>> x = mx.random.truncated_normal(-1.0, 1.0, (100,))
        >>> (mx.abs(x) <= 1).all().item()
        True
    """
def uniform(low: _Scalar | array | None = ..., high: _Scalar | array | None = ..., shape: int | Sequence[int] | None = ..., dtype: Dtype | None = ..., key: array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
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

