# Written by `cargo xtask gen`.

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import _data as _data
from . import _nn as _nn
from . import cuda as cuda
from . import distributed as distributed
from . import fast as fast
from . import fft as fft
from . import linalg as linalg
from . import metal as metal
from . import random as random

_Scalar: TypeAlias = bool | int | float | complex
_StreamOrDevice: TypeAlias = Stream | Device | DeviceType | None

bool_: Dtype
uint8: Dtype
uint16: Dtype
uint32: Dtype
uint64: Dtype
int8: Dtype
int16: Dtype
int32: Dtype
int64: Dtype
float16: Dtype
bfloat16: Dtype
float32: Dtype
float64: Dtype
complex64: Dtype
complexfloating: DtypeCategory
floating: DtypeCategory
inexact: DtypeCategory
signedinteger: DtypeCategory
unsignedinteger: DtypeCategory
integer: DtypeCategory
number: DtypeCategory
generic: DtypeCategory
cpu: DeviceType
gpu: DeviceType
wgpu: DeviceType
pi: float
e: float
euler_gamma: float
inf: float
nan: float
newaxis: None

@final
class ArrayAt:
    """A part of an array, to be updated."""
    def __getitem__(self, indices: Any, /) -> ArrayAt:
        ...
    def add(self, value: _Scalar | array) -> array:
        """The array with `value` added at the part."""
    def subtract(self, value: _Scalar | array) -> array:
        """The array with `value` subtracted at the part."""
    def multiply(self, value: _Scalar | array) -> array:
        """The array multiplied by `value` at the part."""
    def divide(self, value: _Scalar | array) -> array:
        """The array divided by `value` at the part."""
    def maximum(self, value: _Scalar | array) -> array:
        """The array with the larger of itself and `value` at the part."""
    def minimum(self, value: _Scalar | array) -> array:
        """The array with the smaller of itself and `value` at the part."""

@final
class array:
    """A multi-dimensional array of one dtype, computed when it is first needed."""
    def __array__(self, dtype: Any = ..., copy: bool | None = ...) -> Any:
        ...
    def __dlpack__(self, *, stream: Any = ..., max_version: Any = ..., dl_device: tuple[int, int] | None = ..., copy: bool | None = ...) -> Any:
        ...
    def __dlpack_device__(self) -> tuple[int, int]:
        ...
    def reshape(self, *shape: Any, stream: _StreamOrDevice | None = ...) -> array:
        """The array with other sizes, of which one may be −1."""
    def transpose(self, *axes: Any, stream: _StreamOrDevice | None = ...) -> array:
        """The array with its axes in another order: the opposite one if none is given."""
    def split(self, indices_or_sections: Any, axis: int = ..., *, stream: _StreamOrDevice | None = ...) -> list[array]:
        """The array divided into parts along an axis."""
    def var(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., ddof: int = ..., *, correction: int | None = ..., stream: _StreamOrDevice | None = ...) -> array:
        """The variance; `correction` is another name of `ddof`."""
    def std(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., ddof: int = ..., *, correction: int | None = ..., stream: _StreamOrDevice | None = ...) -> array:
        """The standard deviation; `correction` is another name of `ddof`."""
    def __add__(self, other: Any, /) -> array:
        ...
    def __radd__(self, other: Any, /) -> array:
        ...
    def __iadd__(self, other: Any, /) -> array:
        ...
    def __sub__(self, other: Any, /) -> array:
        ...
    def __rsub__(self, other: Any, /) -> array:
        ...
    def __isub__(self, other: Any, /) -> array:
        ...
    def __mul__(self, other: Any, /) -> array:
        ...
    def __rmul__(self, other: Any, /) -> array:
        ...
    def __imul__(self, other: Any, /) -> array:
        ...
    def __floordiv__(self, other: Any, /) -> array:
        ...
    def __rfloordiv__(self, other: Any, /) -> array:
        ...
    def __ifloordiv__(self, other: Any, /) -> array:
        ...
    def __mod__(self, other: Any, /) -> array:
        ...
    def __rmod__(self, other: Any, /) -> array:
        ...
    def __imod__(self, other: Any, /) -> array:
        ...
    def __and__(self, other: Any, /) -> array:
        ...
    def __rand__(self, other: Any, /) -> array:
        ...
    def __iand__(self, other: Any, /) -> array:
        ...
    def __or__(self, other: Any, /) -> array:
        ...
    def __ror__(self, other: Any, /) -> array:
        ...
    def __ior__(self, other: Any, /) -> array:
        ...
    def __xor__(self, other: Any, /) -> array:
        ...
    def __rxor__(self, other: Any, /) -> array:
        ...
    def __ixor__(self, other: Any, /) -> array:
        ...
    def __lshift__(self, other: Any, /) -> array:
        ...
    def __rlshift__(self, other: Any, /) -> array:
        ...
    def __ilshift__(self, other: Any, /) -> array:
        ...
    def __rshift__(self, other: Any, /) -> array:
        ...
    def __rrshift__(self, other: Any, /) -> array:
        ...
    def __irshift__(self, other: Any, /) -> array:
        ...
    def __pow__(self, other: Any, mod: Any = ..., /) -> array:
        ...
    def __rpow__(self, other: Any, mod: Any = ..., /) -> array:
        ...
    def __ipow__(self, other: Any, /) -> array:  # type: ignore[misc]
        ...
    def __truediv__(self, other: Any, /) -> array:
        ...
    def __rtruediv__(self, other: Any, /) -> array:
        ...
    def __itruediv__(self, other: Any, /) -> array:
        ...
    def __matmul__(self, other: Any, /) -> array:
        ...
    def __rmatmul__(self, other: Any, /) -> array:
        ...
    def __imatmul__(self, other: Any, /) -> array:
        ...
    def __neg__(self) -> array:
        ...
    def __pos__(self) -> array:
        ...
    def __abs__(self) -> array:
        ...
    def __invert__(self) -> array:
        ...
    def __getitem__(self, arg: Any, /) -> array:
        ...
    def __setitem__(self, arg0: Any, arg1: _Scalar | array, /) -> None:
        ...
    @property
    def at(self) -> ArrayAt:
        """Updates of parts: `x.at[index].add(values)` gives a new array, and where an index comes
        twice each of its updates counts.
        """
    def __new__(cls, val: Any, dtype: Dtype | None = ...) -> array: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes along the axes."""
    @property
    def ndim(self) -> int:
        """How many axes there are."""
    @property
    def size(self) -> int:
        """How many elements there are."""
    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
    @property
    def dtype(self) -> Dtype:
        """The type of the elements."""
    @property
    def T(self) -> array:
        """The transposed array: the axes in the opposite order."""
    @property
    def mT(self) -> array:
        """The array with its last two axes exchanged."""
    @property
    def real(self) -> array:
        """The real part."""
    @property
    def imag(self) -> array:
        """The imaginary part."""
    def item(self) -> Any:
        """The only element, as a Python number."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
    def __len__(self) -> int:
        ...
    def __iter__(self) -> ArrayIterator:
        ...
    def __reversed__(self) -> Any:
        ...
    def __bool__(self) -> bool:
        ...
    def __int__(self) -> int:
        ...
    def __index__(self) -> int:
        ...
    def __float__(self) -> float:
        ...
    def __complex__(self) -> complex:
        ...
    def __repr__(self) -> str:
        ...
    def __format__(self, arg: Any, /) -> str:
        ...
    def __hash__(self) -> int:
        ...
    def __copy__(self) -> array:
        ...
    def __deepcopy__(self, memo: dict[Any, Any], /) -> array:
        ...
    def __bytes__(self) -> bytes:
        ...
    def __array_namespace__(self, api_version: str | None = ...) -> Any:
        ...
    def __lt__(self, other: Any, /) -> array: ...
    def __le__(self, other: Any, /) -> array: ...
    def __gt__(self, other: Any, /) -> array: ...
    def __ge__(self, other: Any, /) -> array: ...
    def __eq__(self, other: object, /) -> Any: ...
    def __ne__(self, other: object, /) -> Any: ...
    def abs(self, *, stream: _StreamOrDevice = ...) -> array:
        """|x|; of a complex number its modulus, as `float32`."""
    def all(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """Whether all elements over `axes` are true; numbers are true where they are not 0."""
    def any(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """Whether any element over `axes` is true; numbers are true where they are not 0."""
    def argmax(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The index of the first largest element along an axis, or of the flattened array for `()`."""
    def argmin(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The index of the first smallest element along an axis, or of the flattened array for `()`."""
    def astype(self, dtype: Dtype, stream: _StreamOrDevice = ...) -> array:
        """Converts each element to `dtype`: to bool by ≠ 0, from float to integer towards zero and"""
    def conj(self, *, stream: _StreamOrDevice = ...) -> array:
        """The complex conjugate; anything else as it is."""
    def cos(self, *, stream: _StreamOrDevice = ...) -> array:
        """cos x."""
    def cummax(self, axis: None | int | Sequence[int] = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
        """The largest element of an axis up to each, NaN from the first one on; `()` flattens first."""
    def cummin(self, axis: None | int | Sequence[int] = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
        """The smallest element of an axis up to each, NaN from the first one on; `()` flattens first."""
    def cumprod(self, axis: None | int | Sequence[int] = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
        """The products of the elements of an axis up to each; `()` flattens first."""
    def cumsum(self, axis: None | int | Sequence[int] = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
        """The sums of the elements of an axis up to each; `()` flattens first."""
    def diag(self, k: int = ..., *, stream: _StreamOrDevice = ...) -> array:
        """A matrix with a vector on its diagonal, or the diagonal of a matrix; `offset` places above the"""
    def diagonal(self, offset: int = ..., axis1: int = ..., axis2: int = ..., stream: _StreamOrDevice = ...) -> array:
        """The diagonal of two axes, `offset` places above the main one, as the last axis."""
    def exp(self, *, stream: _StreamOrDevice = ...) -> array:
        """eˣ."""
    def flatten(self, start_axis: int = ..., end_axis: int = ..., *, stream: _StreamOrDevice = ...) -> array:
        """Axes `start..=end` merged into one. Axes past either end mean that end."""
    def log(self, *, stream: _StreamOrDevice = ...) -> array:
        """ln x."""
    def log10(self, *, stream: _StreamOrDevice = ...) -> array:
        """log₁₀ x."""
    def log1p(self, *, stream: _StreamOrDevice = ...) -> array:
        """ln(1 + x), accurate near 0."""
    def log2(self, *, stream: _StreamOrDevice = ...) -> array:
        """log₂ x."""
    def logcumsumexp(self, axis: None | int | Sequence[int] = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
        """ln Σ eˣ of the elements of an axis up to each, without overflow; `()` flattens first."""
    def logsumexp(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """ln Σ eˣ over `axes`; −∞ where every element is."""
    def max(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The largest element over `axes`; NaN if there is one."""
    def mean(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The mean over `axes`; NaN for nothing."""
    def min(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The smallest element over `axes`; NaN if there is one."""
    def moveaxis(self, source: int, destination: int, *, stream: _StreamOrDevice = ...) -> array:
        """One axis moved to another place; the others keep their order."""
    def prod(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The product over `axes`; 1 for nothing."""
    def reciprocal(self, *, stream: _StreamOrDevice = ...) -> array:
        """1/x."""
    def round(self, decimals: int = ..., stream: _StreamOrDevice = ...) -> array:
        """The nearest number of `decimals` decimals, ties to even."""
    def rsqrt(self, *, stream: _StreamOrDevice = ...) -> array:
        """1/√x."""
    def sin(self, *, stream: _StreamOrDevice = ...) -> array:
        """sin x."""
    def sqrt(self, *, stream: _StreamOrDevice = ...) -> array:
        """√x."""
    def square(self, *, stream: _StreamOrDevice = ...) -> array:
        """x·x."""
    def squeeze(self, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
        """Axes of size 1 removed; `()` removes all of them."""
    def sum(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The sum over `axes`; 0 for nothing."""
    def swapaxes(self, axis1: int, axis2: int, *, stream: _StreamOrDevice = ...) -> array:
        """Two axes exchanged."""
    def view(self, dtype: Dtype, stream: _StreamOrDevice = ...) -> array:
        """The bytes of `x`, in the machine's order, as elements of another dtype."""

@final
class ArrayIterator:
    """The parts of an array along its first axis, one after the other."""
    def __iter__(self) -> ArrayIterator:
        ...
    def __next__(self) -> array:
        ...

@final
class DeviceType:
    """A kind of device. `gpu` is the best GPU that is there, whichever kind it is of."""
    cpu: DeviceType
    gpu: DeviceType
    wgpu: DeviceType
    cuda: DeviceType
    def __int__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Device:
    """A device: its type and its number among them."""
    def __new__(cls, type: DeviceType, index: int = ...) -> Device: ...
    @property
    def type(self) -> DeviceType:
        """The type of the device."""
    @property
    def index(self) -> int:
        """The number of the device among those of its type."""
    def __eq__(self, other: Any, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __repr__(self) -> str:
        ...

@final
class Stream:
    """A queue of work on a device."""
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def device(self) -> Device:
        """The device of the stream."""
    @property
    def index(self) -> int:
        """The number of the stream among those of its device."""
    def __repr__(self) -> str:
        ...

@final
class StreamContext:
    """A context in which operations are recorded on a stream or device."""
    def __new__(cls, s: _StreamOrDevice) -> StreamContext: ...
    def __enter__(self) -> None:
        ...
    def __exit__(self, exc_type: Any = ..., exc_value: Any = ..., traceback: Any = ...) -> None:
        ...

@final
class Dtype:
    """The type of an array's elements."""
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def size(self) -> int:
        """The size of one element in bytes."""
    def __repr__(self) -> str:
        ...

@final
class DtypeCategory:
    """What kinds of element types there are: each is within the one that it is derived from."""
    complexfloating: DtypeCategory
    floating: DtypeCategory
    inexact: DtypeCategory
    signedinteger: DtypeCategory
    unsignedinteger: DtypeCategory
    integer: DtypeCategory
    number: DtypeCategory
    generic: DtypeCategory
    def __int__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class finfo:
    """The limits of a floating-point dtype."""
    def __new__(cls, dtype: Dtype) -> finfo: ...
    @property
    def min(self) -> float:
        """The smallest number."""
    @property
    def max(self) -> float:
        """The largest number."""
    @property
    def eps(self) -> float:
        """The distance from 1 to the next larger number."""
    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with all its digits."""
    @property
    def bits(self) -> int:
        """How many bits a real number takes."""
    @property
    def dtype(self) -> Dtype:
        """The dtype; of complex numbers that of their parts."""
    def __repr__(self) -> str:
        ...

@final
class iinfo:
    """The limits of an integer dtype."""
    def __new__(cls, dtype: Dtype) -> iinfo: ...
    @property
    def min(self) -> int:
        """The smallest number."""
    @property
    def max(self) -> int:
        """The largest number."""
    @property
    def dtype(self) -> Dtype:
        """The dtype."""
    def __repr__(self) -> str:
        ...

@final
class PrintOptions:
    """How arrays are printed."""
    @property
    def precision(self) -> int: ...

@final
class _PrintOptionsContext:
    """A context in which arrays are printed in another way."""
    def __enter__(self) -> None:
        ...
    def __exit__(self, *args: Any) -> None:
        ...

@final
class _Loan:
    """Keeps another library's memory. It is a Python object because its owner has to be let go by a
    thread that runs Python, and arrays are dropped by any thread: Python's counts wait for one.
    """

@final
class _Compiled:
    """A function with its graphs."""
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        ...

@final
class _Checkpointed:
    """A function that keeps nothing for its backward pass."""
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        ...

@final
class custom_function:
    """A function whose derivatives and batching rule may be given, as decorators."""
    def __new__(cls, f: Any) -> custom_function: ...
    def vjp(self, f: Any) -> custom_function:
        """Gives the function's vector-Jacobian product: `f(primals, cotangents, outputs)`."""
    def jvp(self, f: Any) -> custom_function:
        """Gives the function's Jacobian-vector product: `f(primals, tangents)`."""
    def vmap(self, f: Any) -> custom_function:
        """Gives the function over a batch: `f(inputs, axes)` returns outputs and their axes."""
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        ...

@final
class _Differentiated:
    """A function and what its gradient is taken by."""
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        ...

@final
class _Batched:
    """A function over a batch."""
    def __call__(self, *args: Any) -> Any:
        ...

def _dtype(name: str) -> Dtype:
    """The dtype of a name: how pickles are read."""
def _restore(bytes: bytes, dtype: Dtype, shape: Sequence[int]) -> array:
    """An array from its bytes: how pickles are read."""
def abs(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """|x|; of a complex number its modulus, as `float32`."""
def add(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a + b.

    Shapes:
    The operands broadcast.

    Dtypes:
    The operands promote; integers wrap; on bool, logical or.
    """
def addmm(c: _Scalar | array, a: _Scalar | array, b: _Scalar | array, alpha: float = ..., beta: float = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`alpha·a@b + beta·c`."""
def all(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Whether all elements over `axes` are true; numbers are true where they are not 0."""
def allclose(a: _Scalar | array, b: _Scalar | array, /, rtol: float = ..., atol: float = ..., *, equal_nan: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Whether all elements are equal within a tolerance, as one bool."""
def any(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Whether any element over `axes` is true; numbers are true where they are not 0."""
def arange(*args: Any, start: Any = ..., stop: Any = ..., step: Any = ..., dtype: Dtype | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Evenly spaced numbers from `start` up to but without `stop`; `arange(stop)` starts at 0."""
def arccos(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """arccos x; NaN outside [−1, 1]."""
def arccosh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """arcosh x; NaN below 1."""
def arcsin(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """arcsin x; NaN outside [−1, 1]."""
def arcsinh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """arsinh x."""
def arctan(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """arctan x."""
def arctan2(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The angle of the point (b, a), in (−π, π]."""
def arctanh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """artanh x; NaN outside [−1, 1]."""
def argmax(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The index of the first largest element along an axis, or of the flattened array for `()`.

    Dtypes:
    Gives `uint32`. The first NaN counts as the largest.

    Errors:
    Where the axis is empty, and for complex numbers.
    """
def argmin(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The index of the first smallest element along an axis, or of the flattened array for `()`.

    Dtypes:
    Gives `uint32`. The first NaN counts as the smallest.

    Errors:
    As `argmax`.
    """
def argpartition(a: _Scalar | array, kth: int, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The indices, as `uint32`, that `partition` an axis.

    Errors:
    As `partition`.
    """
def argsort(a: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The indices, as `uint32`, that put an axis in ascending order; equal elements keep theirs."""
def array_equal(a: _Scalar | array, b: _Scalar | array, equal_nan: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Whether both have one shape and equal elements, as one bool."""
def as_strided(a: _Scalar | array, /, shape: int | Sequence[int] | None = ..., strides: int | Sequence[int] | None = ..., offset: int = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The elements, counted in row-major order, that `strides` and an offset reach: element `i, j, ..`
    is element `offset + i·strides[0] + j·strides[1] + ..` of the flattened array.

    Errors:
    Where there is not one stride an axis, or where an element is not in the array.
    """
def asarray(a: Any, dtype: Dtype | None = ..., *, copy: bool | None = ...) -> array:
    """An array of anything that holds numbers; an array itself as it is. It lies in the memory of
    another library's array where that is possible: nothing is copied, and what is written there
    later shows in it. `copy=True` always copies, `copy=False` raises `ValueError` instead of
    copying.
    """
def astype(a: _Scalar | array, dtype: Dtype, *, stream: _StreamOrDevice = ...) -> array:
    """Converts each element to `dtype`: to bool by ≠ 0, from float to integer towards zero and
    saturating (NaN gives 0), between integers by wrapping, from complex by its real part.
    """
def async_eval(*args: Any) -> None:
    """Starts to compute all arrays in the arguments, and returns at once."""
def atleast_1d(*arys: _Scalar | array, stream: _StreamOrDevice | None = ...) -> Any:
    """`x` with at least one axis."""
def atleast_2d(*arys: _Scalar | array, stream: _StreamOrDevice | None = ...) -> Any:
    """`x` with at least two axes: a vector becomes a row."""
def atleast_3d(*arys: _Scalar | array, stream: _StreamOrDevice | None = ...) -> Any:
    """`x` with at least three axes: a vector becomes `[1, n, 1]`, a matrix `[m, n, 1]`."""
def bartlett(M: int, *, stream: _StreamOrDevice = ...) -> array:
    """The Bartlett window of `size` points, a triangle: 1 − |t| for t from −1 to 1, as `float32`."""
def bitwise_and(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The bits set in both; on bool, logical and.

    Errors:
    Where the operands do not promote to an integer type or bool.
    """
def bitwise_invert(a: _Scalar | array, stream: _StreamOrDevice | None = ...) -> array:
    """Every bit of the integer flipped; on bool, logical not.

    Errors:
    For floats and complex numbers.
    """
def bitwise_or(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The bits set in either; on bool, logical or.

    Errors:
    Where the operands do not promote to an integer type or bool.
    """
def bitwise_xor(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The bits set in one; on bool, logical exclusive or.

    Errors:
    Where the operands do not promote to an integer type or bool.
    """
def blackman(M: int, *, stream: _StreamOrDevice = ...) -> array:
    """The Blackman window of `size` points: 0.42 + 0.5·cos πt + 0.08·cos 2πt for t from −1 to 1, as
    `float32`.
    """
def block_masked_mm(a: _Scalar | array, b: _Scalar | array, /, block_size: int = ..., mask_out: _Scalar | array | None = ..., mask_lhs: _Scalar | array | None = ..., mask_rhs: _Scalar | array | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The matrix product of matrices whose square blocks are masked: left out where a mask is false or
    0, and multiplied by it where it is a number.

    Shapes:
    As `matmul`; a mask has an element for each block of `size` by `size`, the last ones cut off.

    Errors:
    Where a mask does not fit, or the operands are not floats.
    """
def broadcast_arrays(*arrays: _Scalar | array, stream: _StreamOrDevice | None = ...) -> list[array]:
    """Arrays repeated to the shape that they broadcast to together."""
def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[Any, ...]:
    """The shape that arrays of these shapes broadcast to.

    Errors:
    Where they do not, or there is none.
    """
def broadcast_to(a: _Scalar | array, shape: int | Sequence[int], *, stream: _StreamOrDevice = ...) -> array:
    """Axes of size 1, and missing leading axes, repeated to `shape`."""
def can_cast(from_: Dtype | array, to: Dtype) -> bool:
    """Whether values of one dtype become the other where the two are promoted."""
def ceil(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The smallest integer not below x, in x's dtype."""
def checkpoint(fun: Any) -> Any:
    """A function like `fun` that computes its intermediate results again in the backward pass."""
def clear_cache() -> None:
    """Gives memory that is kept for reuse back to the system."""
def clip(a: _Scalar | array, a_min: _Scalar | array | None, a_max: _Scalar | array | None, *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` limited to `[low, high]`; `()` is no limit.

    Dtypes:
    All three promote.
    """
def compile(fun: Any, inputs: Any = ..., outputs: Any = ..., shapeless: bool = ...) -> Any:
    """A function that does what `fun` does as one graph: it is traced once for each structure, shape
    and dtype of its arguments. `inputs` and `outputs` are trees of arrays that it reads and
    changes besides its arguments and its result. With `shapeless` it is not traced again for other
    sizes where nothing that it did depends on them but the shapes of its results.
    """
def concatenate(arrays: Sequence[array], axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The arrays one after the other along an axis; `()` flattens them first.

    Shapes:
    All sizes but the axis' are equal.

    Dtypes:
    The arrays promote.
    """
def conjugate(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The complex conjugate; anything else as it is."""
def contiguous(a: _Scalar | array, /, allow_col_major: bool = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The array itself: it is laid out in rows when that is needed."""
def conv1d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., groups: int = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`conv_general` over one spatial axis."""
def conv2d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., groups: int = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`conv_general` over two spatial axes."""
def conv3d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., groups: int = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`conv_general` over three spatial axes."""
def conv_general(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: Any = ..., kernel_dilation: int | Sequence[int] = ..., input_dilation: int | Sequence[int] = ..., groups: int = ..., flip: bool = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The convolution of x with a kernel w, over any number of spatial axes.

    Shapes:
    x `[N, input.., C]` and w `[O, kernel.., C/groups]` give `[N, output.., O]`. As in every
    framework the kernel does not run backwards, unless `flip` says so.

    Dtypes:
    Both promote; half types accumulate in `float32`; integers and bool are taken as `float32`.
    """
def conv_transpose1d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., output_padding: int | Sequence[int] = ..., groups: int = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The transposed convolution over one spatial axis: the gradient of a convolution by its input.

    Shapes:
    x `[N, input.., C]` and w `[O, kernel.., C/groups]`, as in MLX, give `[N, output.., O]` with
    (input − 1)·stride + (kernel − 1)·dilation + 1 + output padding − padding outputs along an axis.

    Errors:
    Where the output padding is not smaller than the stride.
    """
def conv_transpose2d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., output_padding: int | Sequence[int] = ..., groups: int = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The transposed convolution over two spatial axes; see `conv_transpose1d`."""
def conv_transpose3d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., output_padding: int | Sequence[int] = ..., groups: int = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The transposed convolution over three spatial axes; see `conv_transpose1d`."""
def convolve(a: _Scalar | array, v: _Scalar | array, /, mode: str = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The discrete convolution of two vectors: of which the shorter one runs backwards over the other.

    Shapes:
    Of n and m elements, n ≥ m: n + m − 1 in full, n of the same, n − m + 1 valid.

    Dtypes:
    Both promote; integers and bool are taken as `float32`.

    Errors:
    Where one is empty, or is not a vector, and for complex numbers.
    """
def cos(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """cos x."""
def cosh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """cosh x."""
def count_nonzero(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """How many elements over `axes` are not 0, as `int32`."""
def cummax(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The largest element of an axis up to each, NaN from the first one on; `()` flattens first.

    Errors:
    For complex numbers.
    """
def cummin(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The smallest element of an axis up to each, NaN from the first one on; `()` flattens first.

    Errors:
    For complex numbers.
    """
def cumprod(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., *, reverse: bool = ..., inclusive: bool = ..., dtype: Dtype | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The products of the elements of an axis up to each; `()` flattens first.

    Dtypes:
    Integers keep their dtype and wrap; of bools it is whether all are true; half types accumulate in
    `float32`.
    """
def cumsum(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., *, reverse: bool = ..., inclusive: bool = ..., dtype: Dtype | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The sums of the elements of an axis up to each; `()` flattens first.

    Dtypes:
    Integers keep their dtype and wrap; bool counts in `int32`; half types accumulate in `float32`.
    """
def default_device() -> Device:
    """The device that operations are recorded on where nothing else is said."""
def default_stream(device: Device | DeviceType) -> Stream:
    """The stream that a device's operations are recorded on."""
def degrees(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """Radians as degrees."""
def depends(inputs: Any, dependencies: Any) -> Any:
    """`x` itself, once `dependencies` are computed: the planner merges nothing across it."""
def dequantize(w: _Scalar | array, /, scales: _Scalar | array, biases: _Scalar | array | None = ..., group_size: int | None = ..., bits: int | None = ..., mode: str = ..., global_scale: _Scalar | array | None = ..., dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The matrix that `quantize` made small, in the dtype of its scales.

    Errors:
    Where words, scales and biases do not fit each other.
    """
def device_count(device_type: DeviceType) -> int:
    """How many devices of a type there are."""
def device_info(d: Device | DeviceType | None = ...) -> dict[str, Any]:
    """What is known of a device."""
def diag(a: _Scalar | array, k: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """A matrix with a vector on its diagonal, or the diagonal of a matrix; `offset` places above the
    main one.
    """
def diagonal(a: _Scalar | array, offset: int = ..., axis1: int = ..., axis2: int = ..., stream: _StreamOrDevice = ...) -> array:
    """The diagonal of two axes, `offset` places above the main one, as the last axis.

    Errors:
    Where there are no two such axes.
    """
def diff(a: _Scalar | array, n: int = ..., axis: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The differences of neighbours along an axis, taken `n` times.

    Shapes:
    The axis gets shorter by `n`, down to 0.

    Dtypes:
    Integers wrap; of bools it is whether they differ.
    """
def disable_compile() -> None:
    """Functions are no longer compiled: they run as they are."""
def divide(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a/b.

    Dtypes:
    Integers and bool divide as `float32`.
    """
def divmod(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice | None = ...) -> list[array]:
    """The pair of `floor_divide` and `remainder`."""
def einsum(subscripts: str, *operands: _Scalar | array, stream: _StreamOrDevice | None = ...) -> array:
    """The sum of products that `subscripts` say: letters name axes, operands are parted by commas, and
    letters that are not behind `->` are summed over.

    Shapes:
    Without `->` the result has the letters that come up once, in alphabetical order. A letter twice
    in one operand takes the diagonal. `...` stands for axes that broadcast.

    Errors:
    Where the subscripts do not fit the operands.
    """
def einsum_path(subscripts: str, *operands: _Scalar | array) -> Any:
    """The order in which `einsum`(super::einsum) contracts its operands, and a report of what that
    saves.

    Each step lists the operands that it takes out of the list; their product goes to the end.

    Errors:
    Where the subscripts do not fit the operands.
    """
def enable_compile() -> None:
    """Functions are compiled again after `disable_compile`."""
def equal(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a = b; NaN equals nothing."""
def erf(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The error function, 2/√π ∫₀ˣ e^(−t²) dt."""
def erfinv(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The inverse of the error function; ±∞ at ±1 and NaN beyond."""
def eval(*args: Any) -> None:
    """Computes all arrays in the arguments, which may be trees of lists, tuples and dicts."""
def exp(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """eˣ."""
def expand_dims(a: _Scalar | array, axis: None | int | Sequence[int], *, stream: _StreamOrDevice = ...) -> array:
    """Axes of size 1 inserted, numbered as in the result."""
def expm1(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """eˣ − 1, accurate near 0."""
def eye(n: int, m: int | None = ..., k: int = ..., dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The identity matrix, of the same size both ways; `eye_at` for others."""
def flatten(a: _Scalar | array, start_axis: int = ..., end_axis: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Axes `start..=end` merged into one. Axes past either end mean that end.

    Errors:
    Where `end` comes before `start`.
    """
def flip(a: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The order reversed along axes; `()` for all."""
def floor(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The largest integer not above x, in x's dtype."""
def floor_divide(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """⌊a/b⌋.

    Dtypes:
    An integer divided by 0 gives 0. Does not take complex numbers.
    """
def from_dlpack(x: Any, /, *, copy: bool | None = ...) -> array:
    """An array of another library's, by DLPack; `copy` as in `asarray`."""
def from_fp8(x: _Scalar | array, dtype: Dtype | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The numbers that `to_fp8` made, as floats of `dtype`.

    Errors:
    Where `x` is not `uint8`, or `dtype` not a float.
    """
def full(shape: int | Sequence[int], vals: _Scalar | array, dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """One number, repeated to a shape; an array fills by broadcasting."""
def full_like(a: _Scalar | array, vals: _Scalar | array, dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """One number with `x`'s shape and dtype."""
def gather_mm(a: _Scalar | array, b: _Scalar | array, /, lhs_indices: _Scalar | array | None = ..., rhs_indices: _Scalar | array | None = ..., *, sorted_indices: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The products of the matrices of `a` and of `b` that indices choose; none stand for all, in order.

    Shapes:
    Indices count the matrices of an operand through, over all axes but the last two. The shapes of
    the indices broadcast, and the last two axes multiply, as in `matmul`.

    Errors:
    Where indices are not integers or the operands not floats; when it runs where an index is out of
    range.
    """
def gather_qmm(x: _Scalar | array, w: _Scalar | array, /, scales: _Scalar | array, biases: _Scalar | array | None = ..., lhs_indices: _Scalar | array | None = ..., rhs_indices: _Scalar | array | None = ..., transpose: bool = ..., group_size: int | None = ..., bits: int | None = ..., mode: str = ..., global_scale: _Scalar | array | None = ..., *, sorted_indices: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The products of the matrices of `x` and of the quantized ones that indices choose, as in
    `gather_mm`.

    Errors:
    As `dequantize` and `gather_mm`.
    """
def get_active_memory() -> int:
    """The bytes that live arrays hold."""
def get_cache_memory() -> int:
    """The bytes that are kept for reuse."""
def get_memory_limit() -> int:
    """The bound on the memory of live arrays."""
def get_peak_memory() -> int:
    """The most bytes that live arrays held, since the last `reset_peak_memory`."""
def get_printoptions() -> PrintOptions:
    """How arrays are printed now."""
def grad(fun: Any, argnums: Any = ..., argnames: Any = ...) -> Any:
    """A function that gives the gradient of `fun` by some of its arguments: those at `argnums`, the
    first if nothing is said, and those named in `argnames`.
    """
def greater(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a > b.

    Errors:
    For complex numbers, which have no order.
    """
def greater_equal(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a ≥ b.

    Errors:
    For complex numbers, which have no order.
    """
def hadamard_transform(a: _Scalar | array, scale: float | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`x` times a Hadamard matrix along its last axis, times `scale`, or 1/√n, which makes it
    orthonormal.

    Shapes:
    The last axis is of size m·2ᵏ with m of 1, 12, 20 or 28.

    Dtypes:
    Integers and bool are taken as `float32`; half types are computed in `float32`.

    Errors:
    For other sizes, and for complex numbers.
    """
def hamming(M: int, *, stream: _StreamOrDevice = ...) -> array:
    """The Hamming window of `size` points: 0.54 + 0.46·cos πt for t from −1 to 1, as `float32`."""
def hanning(M: int, *, stream: _StreamOrDevice = ...) -> array:
    """The Hann window of `size` points: 0.5 + 0.5·cos πt for t from −1 to 1, as `float32`."""
def identity(n: int, dtype: Dtype | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The identity matrix."""
def imag(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The imaginary part: `float32` of a complex number, 0 of anything else."""
def inner(a: _Scalar | array, b: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The sums of products over the last axis of each operand.

    Shapes:
    `[a.., k]` and `[b.., k]` give `[a.., b..]`.
    """
def is_available(device: Device | DeviceType) -> bool:
    """Whether a device is there."""
def isclose(a: _Scalar | array, b: _Scalar | array, /, rtol: float = ..., atol: float = ..., *, equal_nan: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Whether a and b are equal within a tolerance; infinities equal themselves."""
def isdtype(dtype: Dtype, kind: Any) -> bool:
    """Whether a dtype is another dtype, or of a kind that the array API standard names."""
def isfinite(a: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether x is neither infinite nor NaN; of a complex number, whether both parts are."""
def isinf(a: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether x is ∞ or −∞; of a complex number, whether either part is."""
def isnan(a: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether x is NaN; of a complex number, whether either part is."""
def isneginf(a: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether x is −∞."""
def isposinf(a: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether x is ∞."""
def issubdtype(arg1: Dtype | DtypeCategory, arg2: Dtype | DtypeCategory) -> bool:
    """Whether the first dtype or category is, or is within, the second."""
def jvp(fun: Any, primals: Sequence[array], tangents: Sequence[array]) -> tuple[list[array], list[array]]:
    """The outputs of `fun`, and the products of its Jacobian with `tangents`."""
def kron(a: _Scalar | array, b: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The Kronecker product: each element of `a` times all of `b`, as blocks."""
def left_shift(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a·2ᵇ in the integer's width; 0 from the width on.

    Dtypes:
    Two bools shift as `uint8`; floats are an error.
    """
def less(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a < b.

    Errors:
    For complex numbers, which have no order.
    """
def less_equal(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a ≤ b.

    Errors:
    For complex numbers, which have no order.
    """
def linspace(start: Any, stop: Any, num: int | None = ..., endpoint: bool = ..., dtype: Dtype | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`count` numbers from `start` to `stop`, both included, evenly spaced.

    Errors:
    Where `dtype` is neither an integer nor a float.
    """
def load(file: Any, /, format: str | None = ..., return_metadata: bool = ..., *, stream: _StreamOrDevice | None = ...) -> Any:
    """Reads a file: an array, or arrays by name, and with `return_metadata` the metadata, too."""
def log(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """ln x."""
def log10(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """log₁₀ x."""
def log1p(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """ln(1 + x), accurate near 0."""
def log2(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """log₂ x."""
def logaddexp(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """ln(eᵃ + eᵇ), without overflow."""
def logcumsumexp(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """ln Σ eˣ of the elements of an axis up to each, without overflow; `()` flattens first.

    Dtypes:
    Integers and bool are taken as `float32`; half types accumulate in `float32`.

    Errors:
    For complex numbers.
    """
def logical_and(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether both are true; numbers are true where they are not 0."""
def logical_not(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """True where x is false; numbers are true where they are not 0."""
def logical_or(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether either is true; numbers are true where they are not 0."""
def logical_xor(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether one of them is true; numbers are true where they are not 0."""
def logsumexp(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """ln Σ eˣ over `axes`; −∞ where every element is.

    Dtypes:
    As `softmax`.

    Errors:
    Where an axis is empty, and for complex numbers.
    """
def matmul(a: _Scalar | array, b: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The matrix product over the last two axes.

    Shapes:
    `[.., m, k]` by `[.., k, n]` gives `[.., m, n]`; leading axes broadcast. A vector on the left is
    a row, on the right a column, and its axis goes from the result.

    Dtypes:
    The operands promote; half types accumulate in `float32`; bool multiplies as `int32`.
    """
def matrix_transpose(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The last two axes exchanged.

    Errors:
    Where there are fewer than two.
    """
def max(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The largest element over `axes`; NaN if there is one.

    Errors:
    Where an axis to fold is empty, and for complex numbers.
    """
def maximum(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The larger of a and b; NaN if either is NaN."""
def mean(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The mean over `axes`; NaN for nothing.

    Dtypes:
    Integers and bool are taken as `float32`; half types are summed and divided in `float32`.
    """
def median(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The median over axes: the middle element, or the mean of the two middle ones; NaN if there is
    a NaN.

    Dtypes:
    Integers and bool are taken as `float32`.

    Errors:
    Where an axis is empty, and for complex numbers.
    """
def meshgrid(*arrays: _Scalar | array, sparse: bool | None = ..., indexing: str | None = ..., stream: _StreamOrDevice | None = ...) -> tuple[Any, ...]:
    """The coordinates of a grid: array `i` of the result repeats vector `i` along every other axis.

    Shapes:
    With `matrix_order` axis `i` belongs to vector `i` (NumPy's `ij`); without, the first two axes
    are exchanged (`xy`).
    """
def min(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The smallest element over `axes`; NaN if there is one.

    Errors:
    As `max`.
    """
def minimum(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The smaller of a and b; NaN if either is NaN."""
def minmax(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> tuple[array, array]:
    """The smallest and the largest element over `axes`, as `min` and `max` give them."""
def moveaxis(a: _Scalar | array, source: int, destination: int, *, stream: _StreamOrDevice = ...) -> array:
    """One axis moved to another place; the others keep their order."""
def multiply(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a·b.

    Dtypes:
    The operands promote; integers wrap; on bool, logical and.
    """
def nan_to_num(a: _Scalar | array, nan: float = ..., posinf: float | None = ..., neginf: float | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """x with numbers in place of NaN and infinities; integers as they are.

    Errors:
    For complex numbers.
    """
def negative(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """−x; integers wrap.

    Errors:
    For bool: use `logical_not`.
    """
def new_stream(device: Device | DeviceType) -> Stream:
    """A new stream of a device."""
def not_equal(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a ≠ b; NaN differs from everything."""
def ones(shape: int | Sequence[int], dtype: Dtype | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Ones."""
def ones_like(a: _Scalar | array, dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """Ones with `x`'s shape and dtype."""
def outer(a: _Scalar | array, b: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The products of each element of one flattened operand with each of the other."""
def pad(a: _Scalar | array, pad_width: Any, mode: str = ..., constant_values: _Scalar | array | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` with a border, of one number or of its nearest elements.

    Dtypes:
    A number is taken in x's dtype.

    Errors:
    Where `widths` has not one pair an axis, and for `PadMode::Edge` of an empty axis.
    """
def partition(a: _Scalar | array, kth: int, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The elements of an axis with the one at `kth` where it is in their order, none larger before it
    and none smaller behind it; `()` flattens first.

    Errors:
    Where the axis has no element `kth`, which counts from the end if it is negative, and for complex
    numbers.
    """
def positive(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """x as it is."""
def power(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """aᵇ.

    Dtypes:
    The operands promote. A negative exponent of an integer gives 0, or ±1 for bases ±1.
    """
def printoptions(precision: int = ...) -> _PrintOptionsContext:
    """A context in which arrays are printed in another way."""
def prod(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The product over `axes`; 1 for nothing.

    Dtypes:
    As `sum`.
    """
def put_along_axis(a: _Scalar | array, /, indices: _Scalar | array, values: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` with the elements at `indices` along an axis, and at the same place along the others,
    replaced by `values`; `()` counts through the flattened array.

    Shapes:
    `values` broadcast to the indices, and the indices' other axes to those of `x`.

    Dtypes:
    The values are taken in x's dtype.
    """
def quantize(w: _Scalar | array, /, group_size: int | None = ..., bits: int | None = ..., mode: str = ..., *, global_scale: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> tuple[array, array, array]:
    """A matrix in a few bits an element: each group of neighbours in a row as whole numbers times a
    scale plus a bias, with the group's end that is farther from 0 exact, and 0.

    Shapes:
    The last of at least two axes divides into groups.

    Dtypes:
    Scales and biases have w's dtype.

    Errors:
    Where `w` is not of floats, or does not divide.
    """
def quantized_matmul(x: _Scalar | array, w: _Scalar | array, /, scales: _Scalar | array, biases: _Scalar | array | None = ..., transpose: bool = ..., group_size: int | None = ..., bits: int | None = ..., mode: str = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` by a quantized matrix, or by its transpose.

    Errors:
    As `dequantize` and `matmul`.
    """
def radians(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """Degrees as radians."""
def real(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The real part: `float32` of a complex number, anything else as it is."""
def reciprocal(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """1/x.

    Dtypes:
    Integers and bool are taken as `float32`.
    """
def remainder(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a − b·⌊a/b⌋, with the sign of b.

    Dtypes:
    An integer modulo 0 gives 0. Does not take complex numbers.
    """
def repeat(array: _Scalar | array, repeats: int, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Each element repeated `repeats` times along an axis; `()` flattens first."""
def reset_peak_memory() -> None:
    """Counts the most memory in use anew."""
def reshape(a: _Scalar | array, shape: int | Sequence[int], *, stream: _StreamOrDevice = ...) -> array:
    """The elements, in row-major order, under another shape; one size may be −1: what is left.

    Errors:
    Where the count of elements changes.
    """
def result_type(*arrays_and_dtypes: Dtype | array) -> Dtype:
    """The dtype that an operation on all of these computes in."""
def right_shift(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """⌊a/2ᵇ⌋; from the width on 0, or −1 for negative a.

    Dtypes:
    Two bools shift as `uint8`; floats are an error.
    """
def roll(a: _Scalar | array, shift: int | Sequence[int], axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Elements moved along axes by `shift` places, those past the end entering at the start.

    Shapes:
    One shift an axis, one for all axes named, or several for one axis, which add up. `()` rolls the
    flattened array.
    """
def round(a: _Scalar | array, decimals: int = ..., stream: _StreamOrDevice = ...) -> array:
    """The nearest number of `decimals` decimals, ties to even.

    Dtypes:
    Integers stay as they are where `decimals` is not negative, and round to tens, hundreds, …
    through `float32` where it is.
    """
def rsqrt(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """1/√x."""
def save(file: Any, arr: _Scalar | array) -> None:
    """Writes one array in NumPy's format."""
def save_safetensors(file: Any, arrays: dict[Any, Any], metadata: dict[Any, Any] | None = ...) -> None:
    """Writes arrays under their names, with metadata, as safetensors."""
def savez(file: Any, *args: Any, **kwargs: Any) -> None:
    """Writes arrays, by position or by name, as an archive of files in NumPy's format."""
def savez_compressed(file: Any, *args: Any, **kwargs: Any) -> None:
    """Writes arrays, by position or by name, as a compressed archive of files in NumPy's format."""
def searchsorted(sorted_sequence: _Scalar | array, values: _Scalar | array, /, side: str = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """For each value the index in a sorted vector before which it keeps that sorted.

    Shapes:
    The result has the shape of `values`.

    Dtypes:
    Gives `uint32`. Vector and values promote; NaN comes last.

    Errors:
    Where `sorted` is not a vector, and for complex numbers.
    """
def segmented_mm(a: _Scalar | array, b: _Scalar | array, segments: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The products of parts of two matrices: for each pair of `segments` the product over the inner
    places from its first up to but without its second number.

    Shapes:
    a `[m, k]`, b `[k, n]` and segments `[.., 2]` give `[.., m, n]`.

    Errors:
    Where segments are not pairs of integers, or the operands not matrices of floats.
    """
def set_cache_limit(limit: int) -> int:
    """Bounds the bytes that are kept for reuse; gives the former bound."""
def set_default_device(device: Device | DeviceType) -> None:
    """Makes a device the one that operations are recorded on."""
def set_default_stream(stream: Stream) -> None:
    """Makes a stream the default of its device."""
def set_memory_limit(limit: int) -> int:
    """Bounds the memory of live arrays, where an evaluation that needs more raises `MemoryError`;
    gives the former bound.
    """
def set_printoptions(precision: int = ...) -> None:
    """Sets how arrays are printed."""
def sigmoid(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """1/(1 + e⁻ˣ)."""
def sign(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """−1, 0 or 1 by the sign of x; NaN stays NaN; z/|z| of a complex number."""
def sin(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """sin x."""
def sinh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """sinh x."""
def slice(a: _Scalar | array, start_indices: _Scalar | array, axes: None | int | Sequence[int], slice_size: int | Sequence[int], *, stream: _StreamOrDevice | None = ...) -> array:
    """The elements from `start` up to but without `stop`, `step` apart, along each axis."""
def slice_update(a: _Scalar | array, update: _Scalar | array, start_indices: _Scalar | array, axes: None | int | Sequence[int], *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` with the elements from `start` up to but without `stop`, `step` apart along each axis,
    replaced by `update`.
    """
def softmax(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., *, precise: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """eˣ over the sum of eˣ along `axes`.

    Dtypes:
    Integers and bool are taken as `float32`; half types are computed in `float32`.

    Errors:
    For complex numbers.
    """
def sort(a: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The elements of an axis in ascending order, NaN last; `()` flattens first.

    Errors:
    For complex numbers.
    """
def split(a: _Scalar | array, /, indices_or_sections: Any, axis: int = ..., *, stream: _StreamOrDevice | None = ...) -> list[array]:
    """An axis divided into several arrays: into a count of equal parts, or before given indices.

    Errors:
    Where the axis does not divide into equal parts.
    """
def sqrt(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """√x."""
def square(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """x·x."""
def squeeze(a: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Axes of size 1 removed; `()` removes all of them.

    Errors:
    Where an axis that is named is not of size 1.
    """
def stack(arrays: Sequence[array], axis: int | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """Joins arrays along a new axis."""
def std(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., ddof: int = ..., *, correction: int | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The standard deviation; `correction` is another name of `ddof`."""
def stop_gradient(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """`x` itself, as a constant: derivatives do not pass."""
def stream(s: _StreamOrDevice) -> StreamContext:
    """A context in which operations are recorded on a stream or device."""
def subtract(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a − b.

    Dtypes:
    The operands promote; integers wrap; on bool, logical exclusive or.
    """
def sum(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The sum over `axes`; 0 for nothing.

    Shapes:
    The axes go, or stay with size 1 where `keepdims` is true.

    Dtypes:
    Bool and small integers sum as 32-bit integers; integers wrap; half types accumulate in
    `float32`.
    """
def swapaxes(a: _Scalar | array, axis1: int, axis2: int, *, stream: _StreamOrDevice = ...) -> array:
    """Two axes exchanged."""
def synchronize(stream: _StreamOrDevice | None = ...) -> None:
    """Waits for all work that was given to a stream or device."""
def take(a: _Scalar | array, indices: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The slices of `x` at `indices` along an axis, or the elements of the flattened array for `()`.

    Shapes:
    The axis is replaced by the axes of `indices`; a plain number removes it.

    Errors:
    Where the indices are not integers, and when it runs where one is out of range.
    """
def take_along_axis(a: _Scalar | array, indices: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The elements of `x` at `indices` along an axis and at the same place along the others; `()`
    flattens both first.

    Shapes:
    The result has the shape of the indices; the other axes broadcast.
    """
def tan(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """tan x."""
def tanh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """tanh x."""
def tensordot(a: _Scalar | array, b: _Scalar | array, /, axes: Any = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The sums of products over pairs of axes.

    Shapes:
    The axes of `a` that are left, then those of `b`.
    """
def tile(a: _Scalar | array, reps: int | Sequence[int], *, stream: _StreamOrDevice = ...) -> array:
    """The array repeated whole, `reps[i]` times along axis `i`; missing counts and missing axes are 1."""
def to_fp8(x: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """Floats as e4m3 numbers in `uint8`, rounded to nearest even; ±448 where they are larger, or NaN.

    Errors:
    Where `x` is not of floats.
    """
def topk(a: _Scalar | array, k: int, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The `k` largest elements of an axis, in ascending order; `()` flattens first."""
def trace(a: _Scalar | array, /, offset: int = ..., axis1: int = ..., axis2: int = ..., dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The sum of the diagonal of two axes, `offset` places above the main one."""
def transpose(a: _Scalar | array, axes: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The axes in another order: axis `i` of the result is axis `axes[i]` of `x`; `()` reverses them."""
def tri(n: int, m: int | None = ..., k: int = ..., dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """A matrix of ones on and below the diagonal `offset` places above the main one."""
def tril(x: _Scalar | array, k: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`x` with zeros above the diagonal `offset` places above the main one of its last two axes."""
def triu(x: _Scalar | array, k: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`x` with zeros below the diagonal `offset` places above the main one of its last two axes."""
def trunc(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """x without what is behind its point: the next integer towards 0, in x's dtype.

    Errors:
    For complex numbers.
    """
def unflatten(a: _Scalar | array, axis: int, shape: int | Sequence[int], *, stream: _StreamOrDevice = ...) -> array:
    """One axis split into several; one size may be −1: what is left."""
def unique(a: _Scalar | array, /, size: int, return_index: bool = ..., return_inverse: bool = ..., return_counts: bool = ..., fill_value: _Scalar | array | None = ..., *, stream: _StreamOrDevice | None = ...) -> Any:
    """The different elements of an array in ascending order; each NaN is one of its own.

    Shapes:
    No shape depends on values, so `size` says how many there are to be: the smallest of them where
    there are more, and `fill` behind them, or else the first, where there are fewer.

    Errors:
    Where an empty array is to be filled with its first element, and for complex numbers.
    """
def unstack(x: _Scalar | array, /, *, axis: int = ..., stream: _StreamOrDevice | None = ...) -> tuple[Any, ...]:
    """The elements along an axis as arrays of their own, without that axis."""
def value_and_grad(fun: Any, argnums: Any = ..., argnames: Any = ...) -> Any:
    """A function that gives the value of `fun` and its gradient; see `grad`. The value may be a tuple
    whose first item is what the gradient is taken of.
    """
def var(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., ddof: int = ..., *, correction: int | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The variance; `correction` is another name of `ddof`."""
def vecdot(a: _Scalar | array, b: _Scalar | array, axis: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The sum of products over one axis of both operands, the conjugate of `a` with `b`."""
def view(a: _Scalar | array, dtype: Dtype, stream: _StreamOrDevice = ...) -> array:
    """The bytes of `x`, in the machine's order, as elements of another dtype.

    Shapes:
    The last axis grows or shrinks where the dtypes differ in size.

    Dtypes:
    Bool is read and written as `uint8`, and true for any byte but 0.

    Errors:
    Where the bytes of the last axis do not divide into elements, or there is no axis.
    """
def vjp(fun: Any, primals: Sequence[array], cotangents: Sequence[array]) -> tuple[list[array], list[array]]:
    """The outputs of `fun`, and the products of `cotangents` with its Jacobian."""
def vmap(fun: Any, in_axes: Any = ..., out_axes: Any = ...) -> Any:
    """A function that runs `fun` over a batch, which arguments and results carry along these axes."""
def where(condition: _Scalar | array, x: _Scalar | array, y: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """`a` where the condition is true and `b` elsewhere.

    Shapes:
    All three broadcast.

    Dtypes:
    A condition that is not bool is true where it is not 0; `a` and `b` promote.
    """
def zeros(shape: int | Sequence[int], dtype: Dtype | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Zeros."""
def zeros_like(a: _Scalar | array, dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """Zeros with `x`'s shape and dtype."""
acos = arccos
acosh = arccosh
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
concat = concatenate
conj = conjugate
cumulative_prod = cumprod
cumulative_sum = cumsum
empty = zeros
empty_like = zeros_like
permute_dims = transpose
pow = power

def clear_streams(*args: Any, **kwargs: Any) -> NoReturn: ...
def export_function(*args: Any, **kwargs: Any) -> NoReturn: ...
def export_to_dot(*args: Any, **kwargs: Any) -> NoReturn: ...
def exporter(*args: Any, **kwargs: Any) -> NoReturn: ...
def gather_qqmm(*args: Any, **kwargs: Any) -> NoReturn: ...
def get_array_buffer_size(*args: Any, **kwargs: Any) -> NoReturn: ...
def import_function(*args: Any, **kwargs: Any) -> NoReturn: ...
def matrix_norm(*args: Any, **kwargs: Any) -> NoReturn: ...
def new_thread_local_stream(*args: Any, **kwargs: Any) -> NoReturn: ...
def new_thread_unsafe_stream(*args: Any, **kwargs: Any) -> NoReturn: ...
def qqmm(*args: Any, **kwargs: Any) -> NoReturn: ...
def save_gguf(*args: Any, **kwargs: Any) -> NoReturn: ...
def set_wired_limit(*args: Any, **kwargs: Any) -> NoReturn: ...
