# Written by `cargo xtask gen`.

"""Layers' arithmetic, each as one function."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class MetalKernel:
    """A kernel in Metal's language, which only Metal compiles.

    Example:
        >>> mx.fast.MetalKernel.__name__
        'MetalKernel'
    """
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Is an error: there is no Metal here."""

def cross_entropy(logits: _Scalar | array, targets: _Scalar | array, *, stream: _StreamOrDevice | None = ...) -> array:
    """For each row of logits, over the last axis, the negative logarithm of the softmax at its target.

    Shapes:
    `targets` have the shape of the logits without the last axis, and so has the result.

    Dtypes:
    Gives `float32`, or `float64` for such logits; half types are computed in `float32`.

    Errors:
    Where the logits are not floats, the targets not integers or of another shape; when it runs where
    a target is out of range.

    Example:
        >>> mx.fast.cross_entropy(mx.zeros((1, 4)), mx.array([2]))
        array([1.38629], dtype=float32)
    """
def layer_norm(x: _Scalar | array, weight: _Scalar | array | None, bias: _Scalar | array | None, eps: float, *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` with mean 0 and variance 1 along its last axis, times `weight`, plus `bias`.

    Dtypes:
    Computed in `float32` for half types; the result has x's dtype.

    Errors:
    Where `x` has no axes, or `weight` or `bias` is not a vector of its last one.

    J. L. Ba, J. R. Kiros, G. E. Hinton, *Layer normalization*, 2016.

    Example:
        >>> mx.fast.layer_norm(mx.array([[1.0, 3.0]]), None, None, 1e-5)
        array([[-0.999995, 0.999995]], dtype=float32)
    """
def metal_kernel(name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, header: str = ..., ensure_row_contiguous: bool = ..., atomic_outputs: bool = ...) -> Any:
    """A kernel of one's own in Metal's language. It can be made everywhere, so that modules import; a call of it is a
    `RuntimeError`, since no device here compiles it.

    Example:
        >>> kernel = mx.fast.metal_kernel(name='twice', input_names=['x'], output_names=['y'], source='')
        >>> kernel(inputs=[mx.ones(1)])
        Traceback (most recent call last):
        RuntimeError: metal_kernel: twice: there is no Metal back-end
    """
def rms_norm(x: _Scalar | array, weight: _Scalar | array | None, eps: float, *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` over its root mean square along its last axis, times `weight`.

    Dtypes:
    As `layer_norm`.

    Errors:
    As `layer_norm`.

    B. Zhang, R. Sennrich, *Root mean square layer normalization*, NeurIPS 2019.

    Example:
        >>> mx.fast.rms_norm(mx.array([[3.0, 4.0]]), None, 1e-5)
        array([[0.848528, 1.13137]], dtype=float32)
    """
def rope(a: _Scalar | array, dims: int, *, traditional: bool, base: float | None, scale: float, offset: _Scalar | array, freqs: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Pairs of features turned by an angle that grows with their place in the sequence.

    Shapes:
    `[batch, .., places, features]` stays.

    Dtypes:
    Half types are turned in `float32`.

    Errors:
    Where there are fewer than three axes, `dims` is odd, 0 or larger than the last axis, frequencies
    or offsets do not fit, or the input is not of floats.

    J. Su and others, *RoFormer: enhanced transformer with rotary position embedding*, 2021.

    Example:
        >>> mx.fast.rope(mx.ones((1, 2, 4)), 4, traditional=False, base=10000.0, scale=1.0, offset=0).shape
        (1, 2, 4)
    """
def scaled_dot_product_attention(q: _Scalar | array, k: _Scalar | array, v: _Scalar | array, *, scale: float, mask: Any = ..., sinks: _Scalar | array | None = ..., force_fused: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Values weighted by the softmax of how well queries and keys agree: softmax(scale·q·kᵀ)·v.

    Shapes:
    q `[batch, heads, queries, d]`, k `[batch, groups, keys, d]` and v `[batch, groups, keys, e]` give
    `[batch, heads, queries, e]`; each group of keys serves heads/groups heads that follow each other.

    Dtypes:
    The three promote; the softmax is taken in `float32` for half types.

    Errors:
    Where the shapes do not fit, or a float mask is wider than the result.

    A. Vaswani and others, *Attention is all you need*, NeurIPS 2017; groups: J. Ainslie and others,
    *GQA*, EMNLP 2023; sinks: G. Xiao and others, *Efficient streaming language models with attention
    sinks*, ICLR 2024.

    Example:
        >>> q = k = v = mx.ones((1, 2, 3, 8))
        >>> mx.fast.scaled_dot_product_attention(q, k, v, scale=8**-0.5).shape
        (1, 2, 3, 8)
    """

def cuda_kernel(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def gated_delta_update(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def precompiled_cuda_kernel(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
