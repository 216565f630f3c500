# Written by `cargo xtask gen`.

"""What `cupola.nn` calls and MLX's `core` does not have."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class Item:
    """The attribute of a class of modules that is an item of each instance. Python finds it as it finds methods, where
    ``__getattr__`` is called after an exception. An ordinary attribute of an instance comes first, and where there is no
    item what other classes have under this name.

    Example:
        >>> class Named(dict):
        ...     weight = mx._nn.Item("weight")
        >>> Named(weight=3).weight
        3
        >>> hasattr(Named(), "weight")
        False
    """
    def __new__(cls, name: Any) -> Item: ...
    def __get__(self, module: Any, owner: Any, /) -> Any:
        ...

def adam(parameter: _Scalar | array, gradient: _Scalar | array, m: _Scalar | array, v: _Scalar | array, betas: Any, eps: float, rate: _Scalar | array, deviation: _Scalar | array | None = ..., kept: _Scalar | array | None = ...) -> tuple[array, array, array]:
    """One step of Adam for a parameter: its new value, and the new means of gradients and of their squares.
    ``rate`` is what the mean of gradients is multiplied by; ``deviation``, if given, the root of the other. The
    parameter is multiplied by ``kept`` first, if that is given.

    Shapes:
    All of one, but for ``rate``, ``deviation`` and ``kept``, which are scalars.

    Example:
        >>> p, m, v = mx._nn.adam(mx.array([1.0]), mx.array([2.0]), mx.zeros(1), mx.zeros(1), (0.5, 0.75), 0.0, 0.5)
        >>> p, m, v
        (array([0.5], dtype=float32), array([1], dtype=float32), array([1], dtype=float32))
    """
def avg_pool(x: _Scalar | array, window: int | Sequence[int], stride: int | Sequence[int], padding: int | Sequence[int], data_format: str = ..., dilation: int | Sequence[int] = ...) -> array:
    """The mean of each window; padding counts as zeros.

    Shapes:
    As `max_pool`.

    Dtypes:
    Integers are taken as `float32`; half types are summed and divided in `float32`.
    """
def batch_norm(a: _Scalar | array, weight: _Scalar | array | None = ..., bias: _Scalar | array | None = ..., eps: float = ..., *, stream: _StreamOrDevice = ...) -> list[array]:
    """The channels of `x`, its last axis, with mean 0 and variance 1 over all other axes, times `weight`, plus
    `bias`; and the mean and the variance of each channel.

    Dtypes:
    Computed in `float32` for half types; the first result has x's dtype, the others are `float32`, or
    `float64` for such an `x`. The mean of complex numbers is complex, and their variance the real mean of squared
    distances.

    Errors:
    Where `x` is no array of floats or complex numbers with axes, or `weight` or `bias` is not a vector of its last one.

    S. Ioffe, C. Szegedy, *Batch normalization*, 2015.
    """
def celu(x: _Scalar | array, parameter: float) -> array:
    """x for positive x, alpha·(e^(x/alpha) − 1) otherwise."""
def elu(x: _Scalar | array, parameter: float) -> array:
    """x for positive x, alpha·(eˣ − 1) otherwise."""
def gelu(x: _Scalar | array) -> array:
    """x·Φ(x), with the normal distribution function Φ.

    D. Hendrycks, K. Gimpel, *Gaussian error linear units*, 2016.
    """
def gelu_approx(x: _Scalar | array) -> array:
    """`gelu` through tanh: 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))."""
def glu(x: _Scalar | array, axis: int) -> array:
    """The first half of an axis times the sigmoid of the second.

    Errors:
    Where the axis is not of even size.
    """
def hard_shrink(x: _Scalar | array, parameter: float) -> array:
    """x where |x| is above lambda, and 0 elsewhere."""
def hard_sigmoid(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """min(max(x + 3, 0), 6)/6."""
def hard_swish(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """x·min(max(x + 3, 0), 6)/6."""
def hard_tanh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """min(max(x, −1), 1)."""
def layer_norm(a: _Scalar | array, weight: _Scalar | array | None = ..., bias: _Scalar | array | None = ..., eps: float = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`x` with mean 0 and variance 1 along its last axis, times `weight`, plus `bias`.

    Dtypes:
    Computed in `float32` for half types; the result has x's dtype.

    Errors:
    Where `x` has no axes, or `weight` or `bias` is not a vector of its last one.

    J. L. Ba, J. R. Kiros, G. E. Hinton, *Layer normalization*, 2016.
    """
def leaky_relu(a: _Scalar | array, negative_slope: float = ..., *, stream: _StreamOrDevice = ...) -> array:
    """x for positive x, slope·x otherwise."""
def log_sigmoid(x: _Scalar | array) -> array:
    """ln sigmoid(x), without overflow."""
def log_softmax(a: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The logarithm of `softmax`, accurate where that is near 0.

    Dtypes:
    As `softmax`.
    """
def max_pool(x: _Scalar | array, window: int | Sequence[int], stride: int | Sequence[int], padding: int | Sequence[int], data_format: str = ..., dilation: int | Sequence[int] = ...) -> array:
    """The largest element of each window; NaN if there is one. Complex numbers are in lexicographic order.

    Shapes:
    `[N, input.., C]` gives `[N, output.., C]` with (input + padding − span)/stride + 1 outputs along an axis, where a
    window spans (window − 1)·dilation + 1 elements; with channels first `[N, C, input..]` gives `[N, C, output..]`.
    Padding is never the largest.
    """
def mish(x: _Scalar | array) -> array:
    """x·tanh(ln(1 + eˣ))."""
def norm(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The Euclidean length over `axes`: √Σ|x|².

    Dtypes:
    Integers and bool are taken as `float32`; half types accumulate in `float32`.
    """
def normalize(a: _Scalar | array, axis: None | int | Sequence[int] = ..., eps: float = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`x` over its Euclidean length along `axes`, which is taken as at least `eps`."""
def one_hot(a: _Scalar | array, classes: int, dtype: Dtype | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Vectors that are 1 at the index and 0 elsewhere: a new last axis of `classes`.

    Shapes:
    An index outside `0..classes` gives zeros.
    """
def parameters(module: dict[Any, Any], kind: Any, trainable: bool) -> Any:
    """The arrays of ``module`` and of the modules in it, which are of ``kind``, as nested dictionaries and lists; where
    ``trainable``, without the frozen ones.

    Example:
        >>> layer = nn.Linear(2, 3)
        >>> sorted(mx._nn.parameters(layer, nn.Module, True))
        ['bias', 'weight']
    """
def prelu(a: _Scalar | array, weight: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """x for positive x, weight·x otherwise; the weight broadcasts and is learned."""
def relu(x: _Scalar | array) -> array:
    """max(x, 0), with slope 0 at 0."""
def relu6(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """min(max(x, 0), 6)."""
def rms_norm(a: _Scalar | array, weight: _Scalar | array | None = ..., eps: float = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`x` over its root mean square along its last axis, times `weight`.

    Dtypes:
    As `layer_norm`.

    Errors:
    As `layer_norm`.

    B. Zhang, R. Sennrich, *Root mean square layer normalization*, NeurIPS 2019.
    """
def running_mean(running: _Scalar | array, fresh: _Scalar | array, momentum: float, scale: float) -> array:
    """``running`` moved by ``momentum`` towards ``scale`` times ``fresh``, in its own dtype.

    Shapes:
    Both of one.

    Example:
        >>> mx._nn.running_mean(mx.array([1.0]), mx.array([3.0]), 0.25, 1.0)
        array([1.5], dtype=float32)
    """
def selu(x: _Scalar | array) -> array:
    """The self-normalising exponential unit, 1.0507·elu(x, 1.67326).

    G. Klambauer et al., *Self-normalizing neural networks*, NeurIPS 2017.
    """
def sgd(parameter: _Scalar | array, gradient: _Scalar | array, v: _Scalar | array, momentum: Any, weight_decay: float, rate: _Scalar | array) -> tuple[array, array]:
    """One step of gradient descent with momentum for a parameter: its new value, and the new momentum. ``momentum`` is
    the factor of the old one, what the gradient is dampened by, and whether the step looks ahead as Nesterov's does;
    ``weight_decay`` is how much of the parameter is added to its gradient.

    Shapes:
    All of one, but for ``rate``, which is a scalar.

    Example:
        >>> mx._nn.sgd(mx.array([1.0]), mx.array([2.0]), mx.array([4.0]), (0.5, 0.0, False), 0.0, 0.25)
        (array([0], dtype=float32), array([4], dtype=float32))
    """
def silu(x: _Scalar | array) -> array:
    """x·sigmoid(x), also called swish."""
def softmin(a: _Scalar | array, axis: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`softmax` of −x: the weight of small elements."""
def softplus(x: _Scalar | array) -> array:
    """ln(1 + eˣ), without overflow."""
def softshrink(x: _Scalar | array, parameter: float) -> array:
    """x moved by lambda towards 0, and 0 where |x| is not above lambda."""
def softsign(x: _Scalar | array) -> array:
    """x/(1 + |x|)."""
def step(a: _Scalar | array, threshold: float = ..., *, stream: _StreamOrDevice = ...) -> array:
    """1 above the threshold and 0 elsewhere.

    Dtypes:
    Gives `int32`, as MLX does.
    """
def tanh_shrink(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """x − tanh(x)."""
def tree_map(function: Any, tree: Any, rest: Any, is_leaf: Any = ...) -> Any:
    """A tree of what ``function`` makes of each leaf of ``tree`` and of the leaves at its place in the trees of ``rest``; a list, tuple or dictionary of which ``is_leaf`` says so is a leaf, too.

    Example:
        >>> mx._nn.tree_map(lambda x, y: x + y, {"a": [1, 2]}, ({"a": [3, 4]},))
        {'a': [4, 6]}
    """
def update(x: _Scalar | array, former: _Scalar | array) -> array:
    """``x`` itself, as what ``former`` becomes: where an index outside its axis keeps ``x`` from being computed, the
    error is given once, and from then on the result is ``former``.

    Example:
        >>> w, index = mx.array([1.0, 2.0]), mx.array(3) + 4
        >>> fresh = mx._nn.update(w + w[index], w)
        >>> try:
        ...     mx.eval(fresh)
        ... except IndexError:
        ...     print(fresh)
        array([1, 2], dtype=float32)
    """

