# Written by `cargo xtask gen`.

"""Layers' arithmetic, each as one function."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array

@final
class Kernel:
    """A kernel: call it with inputs, grid, threadgroup and outputs. `vjp`, `jvp` and `vmap` may be set, to another kernel
    or to a function.

    Example:
        >>> double = mx.fast.kernel('double', ['x'], ['y'], 'uint i = thread_position_in_grid.x; y[i] = 2 * x[i];')
        >>> double.name, double.vjp
        ('double', None)
    """
    @property
    def name(self) -> str:
        """The name."""
    vjp: Any
    """The vector-Jacobian product: a kernel of the inputs and the cotangents that gives the inputs' cotangents,
    or `f(primals, cotangents, outputs)` of lists.
    """
    jvp: Any
    """The Jacobian-vector product: a kernel of the inputs and their tangents that gives the outputs' tangents, or
    `f(primals, tangents)` of lists.
    """
    vmap: Any
    """The kernel over a batch: a kernel of the inputs, each with the batch as its axis 0, over a grid whose third axis
    is as many times as long, that gives the outputs so; or `f(inputs, axes)` of lists that gives outputs and axes, as
    of `mx.custom_function`. Without it a batch calls the kernel for each of its elements.
    """
    def __call__(self, *, inputs: Sequence[_Scalar | array], grid: Any, threadgroup: Any, output_shapes: Sequence[Sequence[int]], output_dtypes: Sequence[Dtype], template: Sequence[Any] | None = ..., init_value: float | None = ..., verbose: bool = ..., stream: _StreamOrDevice | None = ...) -> list[array]:
        """Runs a thread for each place of the grid: a list of outputs."""

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
def cuda_kernel(name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, header: str = ..., ensure_row_contiguous: bool = ..., shared_memory: int = ...) -> Any:
    """A kernel of one's own in CUDA C++, which CUDA's devices run: inputs and outputs are pointers of those names.
    `shared_memory` is how many bytes a block shares as `extern __shared__ float shared[];`.

    Example:
        >>> source = 'int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = 2 * x[i];'
        >>> mx.fast.cuda_kernel('double', ['x'], ['y'], source).name
        'double'
    """
def group_norm(x: _Scalar | array, num_groups: int, weight: _Scalar | array | None = ..., bias: _Scalar | array | None = ..., eps: float = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`x` with mean 0 and variance 1 in each group of channels of each example over the spatial axes, times `weight`, plus
    `bias`. One group is a layer norm over all of an example, as many as channels are an instance norm.

    Y. Wu, K. He, *Group normalization*, ECCV 2018.

    Shapes:
    `[N, .., C]` gives the same; `weight` and `bias` are `[C]`.

    Dtypes:
    Integers and bool are taken as `float32`; half types are computed in `float32`; the result has x's dtype.

    Errors:
    Where `x` has fewer than two axes, its channels are not so many groups of as many, or `weight` or `bias` is not a vector
    of the channels.

    Example:
        >>> mx.fast.group_norm(mx.array([[1.0, 3.0, 10.0, 30.0]]), 2, eps=0.0)
        array([[-1, 1, -1, 1]], dtype=float32)
    """
def kernel(name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, header: str = ..., ensure_row_contiguous: bool = ..., atomic_outputs: bool = ...) -> Any:
    """A kernel of one's own in the common language, which every device runs: the body of what each thread does, in C's
    manner. Inputs and outputs are arrays of those names; `docs/kernels.md` describes the language.

    Errors:
    Where a name is not one of C's or is there twice. A call is an error where the source is not of the language, with
    its line.

    Example:
        >>> source = 'uint i = thread_position_in_grid.x; T v = x[i]; y[i] = v > 0 ? v : T(0);'
        >>> relu = mx.fast.kernel('relu', ['x'], ['y'], source)
        >>> x = mx.array([-1.0, 2.0])
        >>> relu(inputs=[x], template=[('T', mx.float32)], grid=(2, 1, 1), threadgroup=(2, 1, 1),
        ...      output_shapes=[x.shape], output_dtypes=[x.dtype])[0]
        array([0, 2], dtype=float32)
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
def metal_kernel(name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, header: str = ..., ensure_row_contiguous: bool = ..., atomic_outputs: bool = ..., compile_options: Any = ...) -> Any:
    """A kernel of one's own in Metal's language, as far as it is the common language of `fast.kernel`: then every device
    runs it. It can be made everywhere, so that modules import; a call of one that is more is a `RuntimeError`.
    `compile_options` says how freely floats may be computed, `{"math_mode": "safe"}`, `"relaxed"` or `"fast"`: they are
    computed safely, which the others allow, too.

    Example:
        >>> source = 'uint i = thread_position_in_grid.x; y[i] = metal::exp(x[i]);'
        >>> exp = mx.fast.metal_kernel(name='exp', input_names=['x'], output_names=['y'], source=source)
        >>> exp(inputs=[mx.zeros(2)], grid=(2, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(2,)],
        ...     output_dtypes=[mx.float32])[0]
        array([1, 1], dtype=float32)
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
def wgsl_kernel(name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, header: str = ..., ensure_row_contiguous: bool = ..., atomic_outputs: bool = ...) -> Any:
    """A kernel of one's own in WGSL, which devices through wgpu run: inputs and outputs are arrays of those names.

    Example:
        >>> source = 'let i = thread_position_in_grid.x; y[i] = 2.0 * x[i];'
        >>> mx.fast.wgsl_kernel('double', ['x'], ['y'], source).name
        'double'
    """

def gated_delta_update(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
def precompiled_cuda_kernel(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
