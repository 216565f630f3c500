# Written by `cargo xtask gen`.

"""Arrays, and the functions of them."""

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

from . import _amp as _amp
from . import _coreml as _coreml
from . import _data as _data
from . import _graph as _graph
from . import _linalg as _linalg
from . import _nn as _nn
from . import _onnx as _onnx
from . import _profiler as _profiler
from . import _suite as _suite
from . import _train as _train
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
complex32: Dtype
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
wgpu: DeviceType
gpu: DeviceType
pi: float
e: float
euler_gamma: float
inf: float
nan: float
newaxis: None

@final
class ArrayAt:
    """A part of an array, to be updated.

    Example:
        >>> mx.zeros(3).at[mx.array([0, 0, 2])].add(1.0)
        array([2, 0, 1], dtype=float32)
    """
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
    """A multi-dimensional array of one dtype, computed when it is first needed.

    Example:
        >>> x = mx.array([[1, 2], [3, 4]])
        >>> x[0] + x.T
        array([[2, 5],
               [3, 6]], dtype=int32)
        >>> x.dtype, x.shape
        (mlx.core.int32, (2, 2))
    """
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
    def to_device(self, device: Device | DeviceType, /, *, stream: _StreamOrDevice | None = ...) -> array:
        """The array on a device."""
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
    def device(self) -> Device:
        """The device that the array is, or will be, computed on."""
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
    def explain(self) -> Any:
        """What computing the array would run; nothing where it is computed already."""
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
    def argmax(self, axis: None | int = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The index of the first largest element along an axis, or of the flattened array for `()`."""
    def argmin(self, axis: None | int = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The index of the first smallest element along an axis, or of the flattened array for `()`."""
    def astype(self, dtype: Dtype, stream: _StreamOrDevice = ...) -> array:
        """Converts each element to `dtype`: to bool by ≠ 0, between integers by wrapping, from float to"""
    def conj(self, *, stream: _StreamOrDevice = ...) -> array:
        """The complex conjugate; anything else as it is."""
    def cos(self, *, stream: _StreamOrDevice = ...) -> array:
        """cos x."""
    def cummax(self, axis: None | int = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
        """The largest element of an axis up to each, NaN from the first one on; `()` flattens first. Complex numbers are"""
    def cummin(self, axis: None | int = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
        """The smallest element of an axis up to each, NaN from the first one on; `()` flattens first. Complex numbers are"""
    def cumprod(self, axis: None | int = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
        """The products of the elements of an axis up to each; `()` flattens first."""
    def cumsum(self, axis: None | int = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
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
    def logcumsumexp(self, axis: None | int = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
        """ln Σ eˣ of the elements of an axis up to each, without overflow; `()` flattens first."""
    def logsumexp(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """ln Σ eˣ over `axes`; −∞ where every element is."""
    def max(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The largest element over `axes`; NaN if there is one. Of zeros the positive one is the larger."""
    def mean(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The mean over `axes`; NaN for nothing."""
    def min(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The smallest element over `axes`; NaN if there is one. Of zeros the negative one is the smaller."""
    def moveaxis(self, source: int, destination: int, *, stream: _StreamOrDevice = ...) -> array:
        """One axis moved to another place; the others keep their order."""
    def prod(self, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
        """The product over `axes`; 1 for nothing."""
    def reciprocal(self, *, stream: _StreamOrDevice = ...) -> array:
        """1/x."""
    def round(self, decimals: int = ..., *, stream: _StreamOrDevice = ...) -> array:
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
    def view(self, dtype: Dtype, *, stream: _StreamOrDevice = ...) -> array:
        """The bytes of `x`, in the machine's order, as elements of another dtype."""

@final
class ArrayIterator:
    """The parts of an array along its first axis, one after the other.

    Example:
        >>> [row.tolist() for row in mx.array([[1, 2], [3, 4]])]
        [[1, 2], [3, 4]]
    """
    def __iter__(self) -> ArrayIterator:
        ...
    def __next__(self) -> array:
        ...

@final
class DeviceType:
    """A kind of device. `gpu` is the best GPU that is there, whichever kind it is of.

    Example:
        >>> mx.cpu
        DeviceType.cpu
    """
    cpu: DeviceType
    wgpu: DeviceType
    cuda: DeviceType
    gpu: DeviceType
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self) -> str:
        ...

@final
class Device:
    """A device: its type and its number among them.

    Example:
        >>> mx.Device(mx.cpu)
        Device(cpu, 0)
    """
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
    """A queue of work on a device.

    Example:
        >>> mx.default_stream(mx.cpu).device == mx.Device(mx.cpu)
        True
    """
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def device(self) -> Device:
        """The device of the stream."""
    @property
    def index(self) -> int:
        """The number of the stream among those of its device."""
    @property
    def priority(self) -> Any:
        """What `new_stream` was told; 0 for the first stream of a device."""
    def __repr__(self) -> str:
        ...

@final
class ThreadLocalStream:
    """A stream of a device that is another one in every thread; it stands wherever a stream or device may.

    Example:
        >>> mx.new_thread_local_stream(mx.cpu)
        ThreadLocalStream(Device(cpu, 0))
    """
    @property
    def device(self) -> Device:
        """The device of the streams."""
    def __repr__(self) -> str:
        ...

@final
class StreamContext:
    """A context in which operations are recorded on a stream or device.

    Example:
        >>> with mx.StreamContext(mx.cpu):
        ...     x = mx.ones(2)
        >>> x
        array([1, 1], dtype=float32)
    """
    def __new__(cls, s: _StreamOrDevice) -> StreamContext: ...
    def __enter__(self) -> None:
        ...
    def __exit__(self, exc_type: Any = ..., exc_value: Any = ..., traceback: Any = ...) -> None:
        ...

@final
class Dtype:
    """The type of an array's elements.

    Example:
        >>> mx.float16.size, mx.array([1.0]).dtype == mx.float32
        (2, True)
    """
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def size(self) -> int:
        """The size of one element in bytes."""
    def __repr__(self) -> str:
        ...

@final
class DtypeCategory:
    """What kinds of element types there are: each is within the one that it is derived from.

    Example:
        >>> mx.issubdtype(mx.int8, mx.integer)
        True
    """
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
    """The limits of a floating-point dtype.

    Example:
        >>> mx.finfo(mx.float16).max
        65504.0
    """
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
    """The limits of an integer dtype.

    Example:
        >>> mx.iinfo(mx.int8).max
        127
    """
    def __new__(cls, dtype: Dtype) -> iinfo: ...
    @property
    def min(self) -> int:
        """The smallest number."""
    @property
    def max(self) -> int:
        """The largest number."""
    @property
    def bits(self) -> int:
        """How many bits a number takes."""
    @property
    def dtype(self) -> Dtype:
        """The dtype."""
    def __repr__(self) -> str:
        ...

@final
class Event:
    """A place in the work of a stream, to wait for and, with `enable_timing`, to measure between. `async_eval` gives
    work to a stream; what `eval` computes is done, or given to the device, when it returns.

    Example:
        >>> start, end = mx.Event(enable_timing=True), mx.Event(enable_timing=True)
        >>> start.record()
        >>> mx.async_eval(mx.ones((64, 64)) @ mx.ones((64, 64)))
        >>> end.record()
        >>> start.elapsed_time(end) >= 0
        True
    """
    def __new__(cls, enable_timing: bool = ...) -> Event: ...
    def record(self, stream: _StreamOrDevice | None = ...) -> None:
        """Puts the event after all work that was given to a stream so far."""
    def wait(self, stream: _StreamOrDevice | None = ...) -> None:
        """Lets the work that is given to a stream from now on wait for the event."""
    def query(self) -> bool:
        """Whether the device has come to the event; so it has where it was not recorded."""
    def synchronize(self) -> None:
        """Waits until the device has come to the event."""
    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds of the device's clock from this event to another of the same device; waits for both."""

@final
class Explanation:
    """What an evaluation would run, step by step, beside the least time that the device could take for it. It
    prints as a table.

    Example:
        >>> plan = (mx.ones(4) + 1).explain()
        >>> plan.bytes, plan.operations
        (16, 4)
    """
    @property
    def device(self) -> Device:
        """The device on which it would run; of several plans that of the last."""
    @property
    def reused(self) -> bool:
        """Whether that plan was there already: nothing was planned or compiled for this."""
    @property
    def plan(self) -> int:
        """The number of that plan: plans are numbered in the order in which they are made, and a profile's steps name
        theirs.
        """
    @property
    def runs(self) -> int:
        """How often that plan ran."""
    @property
    def before(self) -> Any:
        """The plans that would run before that one, in order, where there is work for more than one device: a dict each,
        with its device, number, whether it was there already, how often it ran, the rates of its device and how many of
        the steps it has.
        """
    @property
    def steps(self) -> Any:
        """The steps of all plans, in order: a dict each, with its device, what runs, what was fused into it, its arrays,
        bytes, operations and least time in microseconds.
        """
    @property
    def bytes(self) -> int:
        """The bytes that all steps read and write."""
    @property
    def operations(self) -> int:
        """The arithmetic operations of all steps."""
    @property
    def roofline_seconds(self) -> float | None:
        """The least time of all steps, in seconds: for each the longer one of what its bytes take at the rate
        of the memory and what its operations take at that of the arithmetic, as measured on this machine. `None` where
        these could not be measured, as where a limit leaves no memory for it.
        """
    def to_json(self) -> str:
        """All of it as JSON."""
    def to_svg(self) -> str:
        """A picture: a bar for each step, as long as its least time."""
    def __str__(self) -> str:
        ...
    def __repr__(self) -> str:
        ...

@final
class _Imported:
    """A function that was read: it takes the arrays that it was exported for, one by one, or as a tuple and a
    dict of them, and gives a tuple.
    """
    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        ...
    def __repr__(self) -> str:
        ...

@final
class FunctionExporter:
    """What writes several traces of a function to a file: it is called with the arrays of each, and the file is
    written when it is closed. Made by `exporter`.

    Example:
        >>> hasattr(mx.FunctionExporter, "close")
        True
    """
    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Traces the function for these arrays."""
    def close(self) -> None:
        """Writes the file."""
    def __enter__(self) -> FunctionExporter:
        ...
    def __exit__(self, exc_type: Any = ..., exc_value: Any = ..., traceback: Any = ...) -> None:
        """Writes the file; after an exception nothing is written."""

@final
class PrintOptions:
    """How arrays are printed.

    Example:
        >>> mx.get_printoptions().precision
        -1
    """
    @property
    def precision(self) -> int:
        """Digits after the point; −1 for six significant digits."""

@final
class _PrintOptionsContext:
    """A context in which arrays are printed in another way."""
    def __enter__(self) -> None:
        ...
    def __exit__(self, *args: Any) -> None:
        ...

@final
class MemoryHistory:
    """Who held memory over time, by the line that made it.

    Example:
        >>> history = mx.record_memory_history()
        >>> history.stop()
        >>> history.to_svg()[:4]
        '<svg'
    """
    def stop(self) -> None:
        """Ends the recording."""
    def peak(self, device: Device | DeviceType | None = ...) -> int:
        """The most bytes that arrays of 64 KiB and more of a device held."""
    def to_svg(self, device: Device | DeviceType | None = ...) -> str:
        """A picture: a layer for each line that made what was held. Ends the recording."""
    def to_json(self) -> str:
        """All changes as JSON. Ends the recording."""
    def save(self, path: Any, device: Device | DeviceType | None = ...) -> None:
        """Writes the picture to a file. Ends the recording."""
    def __enter__(self) -> MemoryHistory:
        ...
    def __exit__(self, *_args: Any) -> None:
        ...

@final
class _Loan:
    """Keeps another library's memory. It is a Python object because its owner has to be let go by a
    thread that runs Python, and arrays are dropped by any thread: Python's counts wait for one.
    """

@final
class ArrayLike:
    """What has a method `__mlx_array__` that gives an array, in annotations. Functions take it for that array.

    Example:
        >>> isinstance(mx.ones(1), mx.ArrayLike)
        False
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
    """A function whose derivatives and batching rule may be given, as decorators.

    Example:
        >>> @mx.custom_function
        ... def f(x):
        ...     return x * 100
        ...
        >>> @f.vjp
        ... def f_vjp(primals, cotangents, outputs):
        ...     return cotangents
        ...
        >>> mx.grad(f)(mx.array(2.0)).item()
        1.0
    """
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
class _Jacobian:
    """A function and what its Jacobian is taken by."""
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        ...

@final
class _Linear:
    """A function's derivative at a point."""
    def __call__(self, *tangents: Any) -> Any:
        ...

@final
class _Batched:
    """A function over a batch."""
    def __call__(self, *args: Any) -> Any:
        ...

def __array_namespace_info__() -> Any:
    """What the array API standard asks of this library: devices, dtypes, capabilities.

    Example:
        >>> mx.__array_namespace_info__().default_dtypes()["real floating"]
        mlx.core.float32
    """
def _dtype(name: str) -> Dtype:
    """The dtype of a name: how pickles are read."""
def _restore(bytes: bytes, dtype: Dtype, shape: Sequence[int]) -> array:
    """An array from its bytes: how pickles are read."""
def abs(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """|x|; of a complex number its modulus, as `float32`.

    Example:
        >>> mx.abs(mx.array([-1, 2]))
        array([1, 2], dtype=int32)
    """
def adaptive_avg_pool(a: _Scalar | array, output_size: None | int | Sequence[int | None], *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The means of parts that cover an image: as many along each spatial axis as `sizes` says, one entry for all or one an
    axis.

    Shapes:
    `[N, input.., C]` gives `[N, sizes.., C]`. Of n parts number i has the elements from ⌊i·input/n⌋ up to
    ⌈(i + 1)·input/n⌉, so that neighbours may overlap.

    Dtypes:
    Integers and bool are taken as `float32`; half types are summed and divided in `float32`.

    Errors:
    For images without spatial axes, empty axes, and sizes of 0.

    Example:
        >>> mx.adaptive_avg_pool(mx.array([[[1.0], [2.0], [3.0]]]), 2)
        array([[[1.5],
                [2.5]]], dtype=float32)
    """
def adaptive_max_pool(a: _Scalar | array, output_size: None | int | Sequence[int | None], *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The largest elements of parts that cover an image; see `adaptive_avg_pool`.

    Shapes:
    As `adaptive_avg_pool`.

    Errors:
    As `adaptive_avg_pool`, and for complex numbers.

    Example:
        >>> mx.adaptive_max_pool(mx.array([[[1.0], [2.0], [3.0]]]), 2)
        array([[[2],
                [3]]], dtype=float32)
    """
def add(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a + b.

    Shapes:
    The operands broadcast.

    Dtypes:
    The operands promote; integers wrap; on bool, logical or.

    Example:
        >>> mx.add(mx.array([1, 2]), 3)
        array([4, 5], dtype=int32)
    """
def addcdiv(x: _Scalar | array, a: _Scalar | array, b: _Scalar | array, *, value: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """x + value·a/b.

    Shapes:
    The arrays broadcast.

    Dtypes:
    All promote; integers and bool are taken as `float32`; half types are computed in `float32`.

    Example:
        >>> mx.addcdiv(mx.array([1.0, 2.0]), mx.array([1.0, 2.0]), mx.array([2.0, 4.0]), value=2)
        array([2, 3], dtype=float32)
    """
def addcmul(x: _Scalar | array, a: _Scalar | array, b: _Scalar | array, *, value: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """x + value·a·b.

    Shapes:
    The arrays broadcast.

    Dtypes:
    All promote; half types are computed in `float32`; a value that is a float makes floats of integers.

    Example:
        >>> mx.addcmul(mx.array([1.0, 2.0]), mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))
        array([4, 10], dtype=float32)
    """
def addmm(c: _Scalar | array, a: _Scalar | array, b: _Scalar | array, alpha: float = ..., beta: float = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`alpha·a@b + beta·c`.

    Shapes:
    As `matmul`; `c` broadcasts to the product.

    Errors:
    Where the shapes do not fit, and where all are integers or bool.

    Example:
        >>> mx.addmm(mx.ones(2), mx.ones((1, 3)), mx.ones((3, 2)), beta=0.5)
        array([[3.5, 3.5]], dtype=float32)
    """
def all(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Whether all elements over `axes` are true; numbers are true where they are not 0.

    Example:
        >>> mx.all(mx.array([[1, 0], [1, 1]]), axis=1)
        array([False, True], dtype=bool)
    """
def allclose(a: _Scalar | array, b: _Scalar | array, /, rtol: float = ..., atol: float = ..., *, equal_nan: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Whether all elements are equal within a tolerance, as one bool.

    Example:
        >>> mx.allclose(mx.array([1.0]), mx.array([1.000001]))
        array(True, dtype=bool)
    """
def any(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Whether any element over `axes` is true; numbers are true where they are not 0.

    Example:
        >>> mx.any(mx.array([[0, 0], [1, 0]]), axis=1)
        array([False, True], dtype=bool)
    """
def arange(*args: Any, start: Any = ..., stop: Any = ..., step: Any = ..., dtype: Dtype | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Evenly spaced numbers from `start` up to but without `stop`; `arange(stop)` starts at 0.

    Example:
        >>> mx.arange(4)
        array([0, 1, 2, 3], dtype=int32)
        >>> mx.arange(0, 1, 0.25)
        array([0, 0.25, 0.5, 0.75], dtype=float32)
    """
def arccos(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """arccos x; NaN outside [−1, 1].

    Example:
        >>> mx.arccos(mx.array([1.0, 0.0]))
        array([0, 1.5708], dtype=float32)
    """
def arccosh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """arcosh x; NaN below 1.

    Example:
        >>> mx.arccosh(mx.array([1.0, 2.0]))
        array([0, 1.31696], dtype=float32)
    """
def arcsin(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """arcsin x; NaN outside [−1, 1].

    Example:
        >>> mx.arcsin(mx.array([0.0, 1.0]))
        array([0, 1.5708], dtype=float32)
    """
def arcsinh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """arsinh x.

    Example:
        >>> mx.arcsinh(mx.array([0.0, 1.0]))
        array([0, 0.881374], dtype=float32)
    """
def arctan(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """arctan x.

    Example:
        >>> mx.arctan(mx.array([0.0, 1.0]))
        array([0, 0.785398], dtype=float32)
    """
def arctan2(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The angle of the point (b, a), in (−π, π].

    Example:
        >>> mx.arctan2(mx.array([1.0, -1.0]), mx.array([1.0, 0.0]))
        array([0.785398, -1.5708], dtype=float32)
    """
def arctanh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """artanh x; NaN outside [−1, 1].

    Example:
        >>> mx.arctanh(mx.array([0.0, 0.5]))
        array([0, 0.549306], dtype=float32)
    """
def argmax(a: _Scalar | array, axis: None | int = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The index of the first largest element along an axis, or of the flattened array for `()`.

    Dtypes:
    Gives `uint32`. The first NaN counts as the largest.

    Errors:
    Where the axis is empty.

    Example:
        >>> mx.argmax(mx.array([[1, 3, 2], [9, 7, 8]]), axis=1)
        array([1, 0], dtype=uint32)
    """
def argmin(a: _Scalar | array, axis: None | int = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The index of the first smallest element along an axis, or of the flattened array for `()`.

    Dtypes:
    Gives `uint32`. The first NaN counts as the smallest.

    Errors:
    As `argmax`.

    Example:
        >>> mx.argmin(mx.array([[1, 3, 2], [9, 7, 8]]), axis=1)
        array([0, 1], dtype=uint32)
    """
def argpartition(a: _Scalar | array, kth: int, axis: None | int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The indices, as `uint32`, that `partition` an axis.

    Errors:
    As `partition`.

    Example:
        >>> mx.argpartition(mx.array([3, 1, 2]), kth=0)[0]
        array(1, dtype=uint32)
    """
def argsort(a: _Scalar | array, axis: None | int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The indices, as `uint32`, that put an axis in ascending order; equal elements keep theirs.

    Example:
        >>> mx.argsort(mx.array([3, 1, 2]))
        array([1, 2, 0], dtype=uint32)
    """
def argwhere(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The places of elements that are not 0, a row of indices each.

    Shapes:
    `[count, rank]`; as `nonzero`, but of a plain number `[1, 0]` or `[0, 0]`.

    Errors:
    Under `compile` and `vmap`, where there are no values.

    Example:
        >>> mx.argwhere(mx.array([[0, 5], [7, 0]]))
        array([[0, 1],
               [1, 0]], dtype=int32)
    """
def array_equal(a: _Scalar | array, b: _Scalar | array, equal_nan: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Whether both have one shape and equal elements, as one bool.

    Example:
        >>> mx.array_equal(mx.array([1, 2]), mx.array([1.0, 2.0]))
        array(True, dtype=bool)
    """
def as_strided(a: _Scalar | array, /, shape: int | Sequence[int] | None = ..., strides: int | Sequence[int] | None = ..., offset: int = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The elements, counted in row-major order, that `strides` and an offset reach: element `i, j, ..`
    is element `offset + i·strides[0] + j·strides[1] + ..` of the flattened array.

    Errors:
    Where there is not one stride an axis, or where an element is not in the array.

    Example:
        >>> mx.as_strided(mx.arange(4), shape=(3, 2), strides=(1, 1))
        array([[0, 1],
               [1, 2],
               [2, 3]], dtype=int32)
    """
def asarray(a: Any, dtype: Dtype | None = ..., *, copy: bool | None = ...) -> array:
    """An array of anything that holds numbers; an array itself as it is. It lies in the memory of
    another library's array where that is possible: nothing is copied, and what is written there
    later shows in it. `copy=True` always copies, `copy=False` raises `ValueError` instead of
    copying.

    Example:
        >>> mx.asarray([1, 2])
        array([1, 2], dtype=int32)
    """
def associative_scan(fn: Any, elems: Any, reverse: bool = ..., axis: int = ...) -> Any:
    """Everything up to each element along `axis`, put together by an associative function: of a, b, c it gives a,
    fn(a, b), fn(fn(a, b), c). `fn` takes two trees like `elems`, with several elements along the axis, and works on all
    at once; it is called about 2·log2 n times. Where `reverse` is true what comes behind is put together.

    Example:
        >>> then = lambda f, g: (f[0] * g[0], g[0] * f[1] + g[1])
        >>> mx.associative_scan(then, (mx.array([1, 2, 3]), mx.array([1, 1, 1])))
        (array([1, 2, 6], dtype=int32), array([1, 3, 10], dtype=int32))
    """
def astype(a: _Scalar | array, dtype: Dtype, *, stream: _StreamOrDevice = ...) -> array:
    """Converts each element to `dtype`: to bool by ≠ 0, between integers by wrapping, from float to
    integer towards zero and saturating (NaN gives 0), from complex by its real part.

    A negative float becomes an unsigned integer by way of the signed one, which wraps, as in MLX and
    NumPy on most machines: −1.0 is the largest one.

    Example:
        >>> mx.astype(mx.array([1.5, 2.5]), mx.int32)
        array([1, 2], dtype=int32)
    """
def async_eval(*args: Any) -> None:
    """Starts to compute all arrays in the arguments, and returns at once.

    Example:
        >>> x = mx.ones(2) + 1
        >>> mx.async_eval(x)
        >>> x
        array([2, 2], dtype=float32)
    """
def atleast_1d(*arys: _Scalar | array, stream: _StreamOrDevice | None = ...) -> Any:
    """`x` with at least one axis.

    Example:
        >>> mx.atleast_1d(mx.array(3)).shape
        (1,)
    """
def atleast_2d(*arys: _Scalar | array, stream: _StreamOrDevice | None = ...) -> Any:
    """`x` with at least two axes: a vector becomes a row.

    Example:
        >>> mx.atleast_2d(mx.array([1, 2])).shape
        (1, 2)
    """
def atleast_3d(*arys: _Scalar | array, stream: _StreamOrDevice | None = ...) -> Any:
    """`x` with at least three axes: a vector becomes `[1, n, 1]`, a matrix `[m, n, 1]`.

    Example:
        >>> mx.atleast_3d(mx.array([1, 2])).shape
        (1, 2, 1)
    """
def bartlett(M: int, *, stream: _StreamOrDevice | None = ...) -> array:
    """The Bartlett window of `size` points, a triangle: 1 − |t| for t from −1 to 1, as `float32`.

    Example:
        >>> mx.bartlett(5)
        array([0, 0.5, 1, 0.5, 0], dtype=float32)
    """
def bincount(a: _Scalar | array, weights: _Scalar | array | None = ..., minlength: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """How often each of 0, 1, 2, … is in an array, or the sum of the weights at its places. How many there
    are depends on the values, so the array is evaluated.

    Shapes:
    x `[n]` gives one more element than its largest, and at least `minlength`; weights have x's shape.

    Dtypes:
    x is of integers or bool. Counts are `int32`; sums have the dtype of the weights, integers and bool being
    taken as `float32`; half types accumulate in `float32`.

    Errors:
    For an array of another rank or dtype, for negative elements, and under `compile` and `vmap`, where there
    are no values.

    Example:
        >>> mx.bincount(mx.array([0, 3, 1, 3]))
        array([1, 1, 0, 2], dtype=int32)
    """
def bitwise_and(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The bits set in both; on bool, logical and.

    Errors:
    Where the operands do not promote to an integer type or bool.

    Example:
        >>> mx.bitwise_and(mx.array([6, 7]), 3)
        array([2, 3], dtype=int32)
    """
def bitwise_invert(a: _Scalar | array, stream: _StreamOrDevice | None = ...) -> array:
    """Every bit of the integer flipped; on bool, logical not.

    Errors:
    For floats and complex numbers.

    Example:
        >>> mx.bitwise_invert(mx.array([0, 5]))
        array([-1, -6], dtype=int32)
    """
def bitwise_or(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The bits set in either; on bool, logical or.

    Errors:
    Where the operands do not promote to an integer type or bool.

    Example:
        >>> mx.bitwise_or(mx.array([4, 5]), 3)
        array([7, 7], dtype=int32)
    """
def bitwise_xor(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The bits set in one; on bool, logical exclusive or.

    Errors:
    Where the operands do not promote to an integer type or bool.

    Example:
        >>> mx.bitwise_xor(mx.array([4, 5]), 1)
        array([5, 4], dtype=int32)
    """
def blackman(M: int, *, stream: _StreamOrDevice | None = ...) -> array:
    """The Blackman window of `size` points: 0.42 + 0.5·cos πt + 0.08·cos 2πt for t from −1 to 1, as
    `float32`.

    Example:
        >>> mx.blackman(3)[1]
        array(1, dtype=float32)
    """
def block_masked_mm(a: _Scalar | array, b: _Scalar | array, /, block_size: int = ..., mask_out: _Scalar | array | None = ..., mask_lhs: _Scalar | array | None = ..., mask_rhs: _Scalar | array | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The matrix product of matrices whose square blocks are masked: left out where a mask is false or
    0, and multiplied by it where it is a number.

    Shapes:
    As `matmul`; a mask has an element for each block of `size` by `size`, the last ones cut off.

    Errors:
    Where a mask does not fit, or the operands are not floats.

    Example:
        >>> mask = mx.array([[True, False]])
        >>> y = mx.block_masked_mm(mx.ones((32, 32)), mx.ones((32, 64)), 32, mask_out=mask)
        >>> y[0, 31].item(), y[0, 32].item()
        (32.0, 0.0)
    """
def broadcast_arrays(*arrays: _Scalar | array, stream: _StreamOrDevice | None = ...) -> list[array]:
    """Arrays repeated to the shape that they broadcast to together.

    Example:
        >>> [x.shape for x in mx.broadcast_arrays(mx.ones((2, 1)), mx.ones(3))]
        [(2, 3), (2, 3)]
    """
def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """The shape that arrays of these shapes broadcast to.

    Errors:
    Where they do not, or there is none.

    Example:
        >>> mx.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
def broadcast_to(a: _Scalar | array, shape: int | Sequence[int], *, stream: _StreamOrDevice = ...) -> array:
    """Axes of size 1, and missing leading axes, repeated to `shape`.

    Example:
        >>> mx.broadcast_to(mx.array([1, 2]), (2, 2))
        array([[1, 2],
               [1, 2]], dtype=int32)
    """
def bucketize(a: _Scalar | array, boundaries: _Scalar | array, right: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The number of the bucket that each element falls into: `boundaries` are the ends of buckets, which belong to
    the bucket below, or where `right` is true to the one above.

    Shapes:
    The result has the shape of `x`; n boundaries make n + 1 buckets.

    Dtypes:
    Gives `uint32`. Boundaries and elements promote; NaN comes last.

    Errors:
    As `searchsorted`.

    Example:
        >>> mx.bucketize(mx.array([0, 2, 5]), mx.array([1, 2, 4]))
        array([0, 1, 3], dtype=uint32)
    """
def can_cast(from_: Dtype | array, to: Dtype) -> bool:
    """Whether values of one dtype become the other where the two are promoted.

    Example:
        >>> mx.can_cast(mx.int8, mx.int32), mx.can_cast(mx.float32, mx.int32)
        (True, False)
    """
def cdist(a: _Scalar | array, b: _Scalar | array, p: float = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The distances of every vector of `a` from every one of `b`: the `p`-norms of the differences, with 0 and ∞ as the
    count of what is not 0 and the largest size.

    Shapes:
    `[.., n, d]` and `[.., m, d]` give `[.., n, m]`; the leading axes broadcast.

    Dtypes:
    The arrays promote; integers and bool are taken as `float32`; half types are computed in `float32`. The distances
    of complex vectors are real.

    Errors:
    For arrays without vectors, vectors that differ in size, and a negative `p`.

    Example:
        >>> mx.cdist(mx.array([[0.0, 0.0]]), mx.array([[3.0, 4.0], [0.0, 1.0]]))
        array([[5, 1]], dtype=float32)
    """
def ceil(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The smallest integer not below x, in x's dtype.

    Example:
        >>> mx.ceil(mx.array([1.2, -1.2]))
        array([2, -1], dtype=float32)
    """
def checkpoint(fun: Any) -> Any:
    """A function like `fun` that computes its intermediate results again in the backward pass.

    Example:
        >>> f = mx.checkpoint(lambda x: mx.exp(mx.sin(x)))
        >>> mx.grad(f)(mx.array(0.0)).item()
        1.0
    """
def clear_cache() -> None:
    """Gives memory that is kept for reuse back to the system, and forgets the plans of what was computed.

    Example:
        >>> mx.clear_cache()
    """
def clear_streams() -> None:
    """Waits for the work of every device. Streams hold nothing that could be given back.

    Example:
        >>> mx.clear_streams()
    """
def clip(a: _Scalar | array, a_min: _Scalar | array | None, a_max: _Scalar | array | None, *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` limited to `[low, high]`; `()` is no limit.

    Dtypes:
    All three promote.

    Example:
        >>> mx.clip(mx.array([1, 5, 9]), 2, 6)
        array([2, 5, 6], dtype=int32)
    """
def compile(fun: Any, inputs: Any = ..., outputs: Any = ..., shapeless: bool = ...) -> Any:
    """A function that does what `fun` does as one graph: it is traced once for each structure, shape
    and dtype of its arguments. `inputs` and `outputs` are trees of arrays that it reads and
    changes besides its arguments and its result. With `shapeless` it is not traced again for other
    sizes where nothing that it did depends on them but the shapes of its results.

    Example:
        >>> f = mx.compile(lambda x: x * x + 1)
        >>> f(mx.array([1.0, 2.0]))
        array([2, 5], dtype=float32)
    """
def concatenate(arrays: Sequence[array], axis: None | int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The arrays one after the other along an axis; `()` flattens them first.

    Shapes:
    All sizes but the axis' are equal.

    Dtypes:
    The arrays promote.

    Example:
        >>> mx.concatenate([mx.array([1, 2]), mx.array([3])])
        array([1, 2, 3], dtype=int32)
    """
def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any) -> Any:
    """What `true_fun` or `false_fun` gives of the operands, as one bool says. Both are called once, and one is computed;
    the device is waited for. Gradients go through the branch that was taken. Under `vmap`, with a bool for each
    example, both are computed.

    Example:
        >>> f = lambda x: mx.cond(x.sum() > 0, mx.sqrt, mx.zeros_like, x)
        >>> f(mx.array([4.0, 9.0])), f(mx.array([-4.0, -9.0]))
        (array([2, 3], dtype=float32), array([0, 0], dtype=float32))
    """
def conjugate(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The complex conjugate; anything else as it is.

    Example:
        >>> mx.conjugate(mx.array([1 + 2j]))
        array([1-2j], dtype=complex64)
    """
def contiguous(a: _Scalar | array, /, allow_col_major: bool = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The array itself: it is laid out in rows when that is needed.

    Example:
        >>> mx.contiguous(mx.arange(4).reshape(2, 2).T)
        array([[0, 2],
               [1, 3]], dtype=int32)
    """
def conv1d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., groups: int = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`conv_general` over one spatial axis.

    Example:
        >>> mx.conv1d(mx.ones((1, 4, 1)), mx.ones((1, 3, 1))).flatten()
        array([3, 3], dtype=float32)
    """
def conv2d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., groups: int = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`conv_general` over two spatial axes.

    Example:
        >>> mx.conv2d(mx.ones((1, 3, 3, 1)), mx.ones((2, 3, 3, 1)), padding=1).shape
        (1, 3, 3, 2)
        >>> mx.conv2d(mx.ones((1, 1, 3, 3)), mx.ones((2, 1, 3, 3)), data_format="channels_first").shape
        (1, 2, 1, 1)
    """
def conv3d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., groups: int = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`conv_general` over three spatial axes.

    Example:
        >>> mx.conv3d(mx.ones((1, 3, 3, 3, 1)), mx.ones((2, 2, 2, 2, 1))).shape
        (1, 2, 2, 2, 2)
    """
def conv_general(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: Any = ..., kernel_dilation: int | Sequence[int] = ..., input_dilation: int | Sequence[int] = ..., groups: int = ..., flip: bool = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The convolution of x with a kernel w, over any number of spatial axes.

    Shapes:
    x `[N, input.., C]` and w `[O, kernel.., C/groups]` give `[N, output.., O]`; with channels first x `[N, C, input..]`
    and w `[O, C/groups, kernel..]` give `[N, O, output..]`. As in every framework the kernel does not run backwards,
    unless `flip` says so.

    Dtypes:
    Both promote; half types accumulate in `float32`; integers and bool are taken as `float32`.

    Example:
        >>> mx.conv_general(mx.ones((1, 4, 1)), mx.ones((1, 2, 1)), padding=([1], [0])).flatten()
        array([1, 2, 2, 2], dtype=float32)
    """
def conv_transpose1d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., output_padding: int | Sequence[int] = ..., groups: int = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The transposed convolution over one spatial axis: the gradient of a convolution by its input.

    Shapes:
    x `[N, input.., C]` and w `[O, kernel.., C/groups]`, as in MLX, give `[N, output.., O]` with
    (input − 1)·stride + (kernel − 1)·dilation + 1 + output padding − padding outputs along an axis. With channels first
    x `[N, C, input..]` and w `[O, C/groups, kernel..]` give `[N, O, output..]`.

    Example:
        >>> mx.conv_transpose1d(mx.ones((1, 2, 1)), mx.ones((1, 3, 1))).flatten()
        array([1, 2, 2, 1], dtype=float32)
    """
def conv_transpose2d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., output_padding: int | Sequence[int] = ..., groups: int = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The transposed convolution over two spatial axes; see `conv_transpose1d`.

    Example:
        >>> mx.conv_transpose2d(mx.ones((1, 2, 2, 1)), mx.ones((3, 2, 2, 1)), stride=2).shape
        (1, 4, 4, 3)
    """
def conv_transpose3d(input: _Scalar | array, weight: _Scalar | array, /, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., output_padding: int | Sequence[int] = ..., groups: int = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The transposed convolution over three spatial axes; see `conv_transpose1d`.

    Example:
        >>> mx.conv_transpose3d(mx.ones((1, 2, 2, 2, 1)), mx.ones((3, 2, 2, 2, 1))).shape
        (1, 3, 3, 3, 3)
    """
def convolve(a: _Scalar | array, v: _Scalar | array, /, mode: str = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The discrete convolution of two vectors: of which the shorter one runs backwards over the other.

    Shapes:
    Of n and m elements, n ≥ m: n + m − 1 in full, n of the same, n − m + 1 valid.

    Dtypes:
    Both promote; integers and bool are taken as `float32`.

    Errors:
    Where one is empty, or is not a vector, and for complex numbers.

    Example:
        >>> mx.convolve(mx.array([1.0, 2.0, 3.0]), mx.array([0.0, 1.0]))
        array([0, 1, 2, 3], dtype=float32)
    """
def copysign(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """|a| with the sign of b, also of −0 and of NaN.

    Shapes:
    The operands broadcast.

    Dtypes:
    The operands promote; integers and bool are taken as `float32`.

    Errors:
    For complex numbers.

    Example:
        >>> mx.copysign(mx.array([1.0, -2.0]), mx.array([-0.0, 3.0]))
        array([-1, 2], dtype=float32)
    """
def corrcoef(x: _Scalar | array, rowvar: bool = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The correlations of variables, of which each is a row of observations: their covariances over the roots of their
    variances, within [−1, 1].

    Shapes:
    As `cov`.

    Dtypes:
    As `cov`.

    Errors:
    For more than two axes.

    Example:
        >>> mx.corrcoef(mx.array([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
        array([[1, -1],
               [-1, 1]], dtype=float32)
    """
def cos(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """cos x.

    Example:
        >>> mx.cos(mx.array([0.0, 1.0]))
        array([1, 0.540302], dtype=float32)
    """
def cosh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """cosh x.

    Example:
        >>> mx.cosh(mx.array([0.0, 1.0]))
        array([1, 1.54308], dtype=float32)
    """
def count_nonzero(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """How many elements over `axes` are not 0, as `int32`.

    Example:
        >>> mx.count_nonzero(mx.array([0, 1, 2]))
        array(2, dtype=int32)
    """
def cov(m: _Scalar | array, rowvar: bool = ..., bias: bool = ..., ddof: float | None = ..., fweights: _Scalar | array | None = ..., aweights: _Scalar | array | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The covariances of variables, of which each is a row of observations: the mean product of distances from the
    means, with `ddof` taken off the count.

    Shapes:
    `[variables, observations]` gives `[variables, variables]`, a vector of observations a plain number. Weights are
    vectors of one for each observation: how often it was made (`frequencies`), and how much it counts
    (`importances`).

    Dtypes:
    Integers and bool are taken as `float32`; half types are computed in `float32`. Of complex variables the second
    is conjugated.

    Errors:
    For more than two axes, a `ddof` that is no integer, `frequencies` that are not integers, and weights of another
    length.

    Example:
        >>> mx.cov(mx.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        array([[1, -1],
               [-1, 1]], dtype=float32)
    """
def cummax(a: _Scalar | array, /, axis: None | int = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The largest element of an axis up to each, NaN from the first one on; `()` flattens first. Complex numbers are
    ordered by their real parts, and where these are equal by their imaginary ones.

    Example:
        >>> mx.cummax(mx.array([1, 3, 2]))
        array([1, 3, 3], dtype=int32)
    """
def cummin(a: _Scalar | array, /, axis: None | int = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The smallest element of an axis up to each, NaN from the first one on; `()` flattens first. Complex numbers are
    ordered by their real parts, and where these are equal by their imaginary ones.

    Example:
        >>> mx.cummin(mx.array([3, 1, 2]))
        array([3, 1, 1], dtype=int32)
    """
def cumprod(a: _Scalar | array, /, axis: None | int = ..., *, reverse: bool = ..., inclusive: bool = ..., dtype: Dtype | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The products of the elements of an axis up to each; `()` flattens first.

    Dtypes:
    Integers keep their dtype and wrap; of bools it is whether all are true; half types accumulate in
    `float32`.

    Example:
        >>> mx.cumprod(mx.array([1, 2, 3]))
        array([1, 2, 6], dtype=int32)
    """
def cumsum(a: _Scalar | array, /, axis: None | int = ..., *, reverse: bool = ..., inclusive: bool = ..., dtype: Dtype | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The sums of the elements of an axis up to each; `()` flattens first.

    Dtypes:
    Integers keep their dtype and wrap; bool counts in `int32`; half types accumulate in `float32`.

    Example:
        >>> mx.cumsum(mx.array([1, 2, 3]), reverse=True)
        array([6, 5, 3], dtype=int32)
    """
def default_device() -> Device:
    """The device that operations are recorded on where nothing else is said.

    Example:
        >>> with mx.stream(mx.cpu):
        ...     print(mx.default_device())
        Device(cpu, 0)
    """
def default_stream(device: Device | DeviceType) -> Stream:
    """The stream that a device's operations are recorded on.

    Example:
        >>> mx.default_stream(mx.cpu).device == mx.Device(mx.cpu)
        True
    """
def degrees(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """Radians as degrees.

    Example:
        >>> mx.degrees(mx.array(mx.pi))
        array(180, dtype=float32)
    """
def depends(inputs: Any, dependencies: Any) -> Any:
    """`x` itself, once `dependencies` are computed: the planner merges nothing across it.

    Example:
        >>> x, y = mx.array(1), mx.array(2)
        >>> mx.depends(x, y)
        array(1, dtype=int32)
    """
def dequantize(w: _Scalar | array, /, scales: _Scalar | array, biases: _Scalar | array | None = ..., group_size: int | None = ..., bits: int | None = ..., mode: str = ..., global_scale: _Scalar | array | None = ..., dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The matrix that `quantize` made small, in the dtype of its scales.

    Errors:
    Where words, scales and biases do not fit each other.

    Example:
        >>> w = mx.ones((2, 64))
        >>> mx.dequantize(*mx.quantize(w)).shape
        (2, 64)
    """
def device_count(device_type: DeviceType) -> int:
    """How many devices of a type there are. Software that draws in a GPU's place is no `gpu`, but counts as `wgpu`.

    Example:
        >>> mx.device_count(mx.cpu)
        1
    """
def device_info(d: Device | DeviceType | None = ...) -> dict[str, Any]:
    """What is known of a device.

    Example:
        >>> "device_name" in mx.device_info(mx.cpu)
        True
    """
def diag(a: _Scalar | array, k: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """A matrix with a vector on its diagonal, or the diagonal of a matrix; `offset` places above the
    main one.

    Example:
        >>> mx.diag(mx.array([1, 2]))
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
def diagonal(a: _Scalar | array, offset: int = ..., axis1: int = ..., axis2: int = ..., stream: _StreamOrDevice = ...) -> array:
    """The diagonal of two axes, `offset` places above the main one, as the last axis.

    Errors:
    Where there are no two such axes.

    Example:
        >>> mx.diagonal(mx.arange(6).reshape(2, 3), offset=1)
        array([1, 5], dtype=int32)
    """
def diff(a: _Scalar | array, n: int = ..., axis: int = ..., prepend: _Scalar | array | None = ..., append: _Scalar | array | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The differences of neighbours along an axis, taken `n` times. What is to `prepend` and to `append` stands beside
    them first.

    Shapes:
    The axis gets shorter by `n`, down to 0. What stands beside has the other axes of `x`, or is one number for each
    place.

    Dtypes:
    All promote. Integers wrap; of bools it is whether they differ.

    Errors:
    Where there is no such axis, and where shapes do not fit.

    Example:
        >>> mx.diff(mx.array([1, 4, 9]))
        array([3, 5], dtype=int32)
    """
def digamma(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The derivative of `lgamma`, ψ(x) = Γ′(x)/Γ(x): −∞ at 0, ∞ at −0, NaN at the negative integers.

    As for `lgamma`: A&S 6.3.5, 6.3.14 and 6.3.18, and 6.3.7 below 0.

    Errors:
    For complex numbers.

    Example:
        >>> mx.digamma(mx.array([1.0, 2.0]))
        array([-0.577216, 0.422784], dtype=float32)
    """
def disable_compile() -> None:
    """Functions are no longer compiled: they run as they are.

    Example:
        >>> mx.disable_compile()
        >>> mx.enable_compile()
    """
def divide(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a/b.

    Dtypes:
    Integers and bool divide as `float32`.

    Example:
        >>> mx.divide(mx.array([1, 2]), 4)
        array([0.25, 0.5], dtype=float32)
    """
def divmod(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice | None = ...) -> list[array]:
    """The pair of `floor_divide` and `remainder`.

    Example:
        >>> mx.divmod(mx.array([7, -7]), 3)
        [array([2, -3], dtype=int32), array([1, 2], dtype=int32)]
    """
def driver_allocated(device: Device | DeviceType | None = ...) -> int:
    """The bytes that the driver of a device, or the system, gave to this process: those of live arrays and those
    that are kept for reuse.

    Example:
        >>> x = mx.ones((1024,))
        >>> mx.eval(x)
        >>> mx.driver_allocated() >= 4096
        True
    """
def einsum(subscripts: str, *operands: array, stream: _StreamOrDevice | None = ...) -> array:
    """The sum of products that `subscripts` say: letters name axes, operands are parted by commas, and
    letters that are not behind `->` are summed over.

    Shapes:
    Without `->` the result has the letters that come up once, in alphabetical order. A letter twice
    in one operand takes the diagonal. `...` stands for axes that broadcast.

    Dtypes:
    All operands promote to one dtype, in which every product of the way is.

    Errors:
    Where the subscripts do not fit the operands.

    Example:
        >>> mx.einsum("ij,j->i", mx.ones((2, 3)), mx.array([1.0, 2.0, 3.0]))
        array([6, 6], dtype=float32)
    """
def einsum_path(subscripts: str, *operands: array) -> Any:
    """The order in which `einsum`(super::einsum) contracts its operands, and a report of what that
    saves.

    Each step lists the operands that it takes out of the list; their product goes to the end.

    Errors:
    Where the subscripts do not fit the operands.

    Example:
        >>> path, report = mx.einsum_path("ij,jk->ik", mx.ones((2, 3)), mx.ones((3, 4)))
        >>> path
        [(0, 1)]
    """
def empty_cache() -> None:
    """Gives memory that was freed and is kept for reuse back to the system; the plans of what was computed stay.

    Example:
        >>> mx.empty_cache()
        >>> mx.get_cache_memory() >= 0
        True
    """
def enable_compile() -> None:
    """Functions are compiled again after `disable_compile`.

    Example:
        >>> mx.enable_compile()
    """
def equal(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a = b; NaN equals nothing.

    Example:
        >>> mx.equal(mx.array([1, 2]), mx.array([1, 3]))
        array([True, False], dtype=bool)
    """
def erf(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The error function, 2/√π ∫₀ˣ e^(−t²) dt.

    Example:
        >>> mx.erf(mx.array([0.0, 1.0]))
        array([0, 0.842701], dtype=float32)
    """
def erfc(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """What the error function lacks to 1, 2/√π ∫ₓ^∞ e^(−t²) dt: accurate also where `1 − erf(x)` is not.

    Example:
        >>> mx.erfc(mx.array([0.0, 5.0]))
        array([1, 1.53746e-12], dtype=float32)
    """
def erfinv(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The inverse of the error function; ±∞ at ±1 and NaN beyond.

    Example:
        >>> mx.erfinv(mx.array([0.0, 0.5]))
        array([0, 0.476936], dtype=float32)
    """
def eval(*args: Any) -> None:
    """Computes all arrays in the arguments, which may be trees of lists, tuples and dicts.

    Example:
        >>> x = mx.ones(2) * 3
        >>> mx.eval(x)
        >>> x
        array([3, 3], dtype=float32)
    """
def exp(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """eˣ.

    Example:
        >>> mx.exp(mx.array([0.0, 1.0]))
        array([1, 2.71828], dtype=float32)
    """
def expand_dims(a: _Scalar | array, axis: None | int | Sequence[int], *, stream: _StreamOrDevice = ...) -> array:
    """Axes of size 1 inserted, numbered as in the result.

    Example:
        >>> mx.expand_dims(mx.array([1, 2]), axis=0).shape
        (1, 2)
    """
def explain(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    """What evaluating `fun(*args, **kwargs)` would run, after its arguments were computed: steps, what was fused
    into each, bytes, operations, and the least time that this machine could take. The function is called;
    what it evaluates itself is no part of it. Of several devices the steps of each are there, in the order in
    which they would run.

    Example:
        >>> plan = mx.explain(lambda x: mx.exp(x) * 2, mx.ones((2, 3)))
        >>> [(step["kind"], step["fused"]) for step in plan.steps]
        [('map', ['exp', 'multiply'])]
    """
def expm1(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """eˣ − 1, accurate near 0.

    Example:
        >>> mx.expm1(mx.array([0.0, 1e-6]))
        array([0, 1e-06], dtype=float32)
    """
def export_function(file: str, fun: Any, *args: Any, shapeless: bool = ..., metadata: str | None = ..., **kwargs: Any) -> None:
    """Writes a function to a file, as the graph that it records for these arrays. They are given one by one,
    or as a tuple and a dict of them. With `shapeless` it is for arrays of other sizes, too: the function is called
    for several, and the numbers that it records have to be polynomials of the sizes. An axis of size 1 stays one.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "f.cupola")
        ...     mx.export_function(path, lambda x, y: x * y, mx.array(2.0), y=mx.array(3.0))
        ...     mx.import_function(path)(mx.array(4.0), y=mx.array(5.0))
        (array(20, dtype=float32),)
    """
def export_to_dot(file: Any, *args: Any, **kwargs: Any) -> None:
    """Writes what was recorded for arrays, and is not computed yet, as a drawing in the DOT language. Arrays
    that are given by name have it in the drawing.

    Example:
        >>> import io
        >>> file, x = io.StringIO(), mx.array([1.0, 2.0])
        >>> mx.export_to_dot(file, mx.exp(x), x=x)
        >>> print(file.getvalue())
        digraph {
        { rank=source; "x"; }
        { 0 [label ="exp", shape=rectangle]; }
        "x" -> 0
        { rank=sink; "A"; }
        0 -> "A"
        }
        <BLANKLINE>
    """
def exporter(file: str, fun: Any, *, shapeless: bool = ..., metadata: str | None = ...) -> Any:
    """A context in which a function is traced several times, for one file. Leaving it writes the file.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "f.cupola")
        ...     with mx.exporter(path, lambda *args: sum(args)) as exporter:
        ...         exporter(mx.array(1))
        ...         exporter(mx.array(1), mx.array(2))
        ...     mx.import_function(path)(mx.array(3), mx.array(4))
        (array(7, dtype=int32),)
    """
def eye(n: int, m: int | None = ..., k: int = ..., dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The identity matrix, of the same size both ways; `eye_at` for others.

    Example:
        >>> mx.eye(2)
        array([[1, 0],
               [0, 1]], dtype=float32)
    """
def flatten(a: _Scalar | array, start_axis: int = ..., end_axis: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Axes `start..=end` merged into one. Axes past either end mean that end.

    Errors:
    Where `end` comes before `start`.

    Example:
        >>> mx.flatten(mx.ones((2, 3, 4)), 1, 2).shape
        (2, 12)
    """
def flip(a: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The order reversed along axes; `()` for all.

    Example:
        >>> mx.flip(mx.array([1, 2, 3]))
        array([3, 2, 1], dtype=int32)
    """
def floor(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The largest integer not above x, in x's dtype.

    Example:
        >>> mx.floor(mx.array([1.8, -1.2]))
        array([1, -2], dtype=float32)
    """
def floor_divide(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """⌊a/b⌋.

    Dtypes:
    An integer divided by 0 gives 0. Does not take complex numbers.

    Example:
        >>> mx.floor_divide(mx.array([7, -7]), 2)
        array([3, -4], dtype=int32)
    """
def fmax(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The larger of a and b; of a number and NaN the number.

    Shapes:
    The operands broadcast.

    Errors:
    For complex numbers.

    Example:
        >>> mx.fmax(mx.array([float("nan"), 2.0]), 1.0)
        array([1, 2], dtype=float32)
    """
def fmin(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The smaller of a and b; of a number and NaN the number.

    Shapes:
    The operands broadcast.

    Errors:
    For complex numbers.

    Example:
        >>> mx.fmin(mx.array([float("nan"), 2.0]), 1.0)
        array([1, 1], dtype=float32)
    """
def fmod(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a − b·trunc(a/b), with the sign of a, exactly; `remainder`(super::remainder) has the sign of b.

    Shapes:
    The operands broadcast.

    Dtypes:
    The operands promote; an integer modulo 0 gives 0.

    Errors:
    For complex numbers.

    Example:
        >>> mx.fmod(mx.array([-7, 7]), 4)
        array([-3, 3], dtype=int32)
    """
def fold(a: _Scalar | array, output_size: int | Sequence[int], kernel_size: int | Sequence[int], stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The inverse of `unfold` but that where windows overlap their elements add up.

    Shapes:
    `[N, windows, taps·C]` gives `[N, sizes.., C]`. With channels first `[N, C·taps, windows]` gives `[N, C, sizes..]`.

    Dtypes:
    Half types are summed in `float32`.

    Errors:
    Where rows and windows do not fit the sizes, and as `unfold`.

    Example:
        >>> mx.fold(mx.array([[[1, 2], [2, 3]]]), 3, 2).flatten()
        array([1, 4, 3], dtype=int32)
    """
def fori_loop(lower: Any, upper: Any, body_fun: Any, init_val: Any) -> Any:
    """A loop from `lower` to below `upper`: `body_fun(i, carry)` gives what is carried on. Where both are Python's
    numbers it is a `scan`, and has gradients; where one is an array it is a `while_loop`.

    Example:
        >>> mx.fori_loop(1, 6, lambda i, x: i * x, mx.array(1))
        array(120, dtype=int32)
    """
def frac(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """What is behind the point of x, with x's sign: x − trunc x.

    Dtypes:
    Integers give 0.

    Errors:
    For complex numbers.

    Example:
        >>> mx.frac(mx.array([-1.5, 2.25]))
        array([-0.5, 0.25], dtype=float32)
    """
def frexp(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> tuple[array, array]:
    """Numbers as m·2ᵏ with ½ ≤ |m| < 1: the pair of m and, as `int32`, k. Of 0, ±∞ and NaN k is 0 and m the
    number itself.

    Dtypes:
    Integers and bool are taken as `float32`.

    Errors:
    For complex numbers.

    Example:
        >>> mx.frexp(mx.array([12.0, -0.375]))
        (array([0.75, -0.75], dtype=float32), array([4, -1], dtype=int32))
    """
def from_dlpack(x: Any, /, *, copy: bool | None = ...) -> array:
    """An array of another library's, by DLPack; `copy` as in `asarray`.

    Example:
        >>> import numpy as np
        >>> mx.from_dlpack(np.arange(3, dtype=np.int32))
        array([0, 1, 2], dtype=int32)
    """
def from_fp8(x: _Scalar | array, dtype: Dtype | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The numbers that `to_fp8` made, as floats of `dtype`.

    Errors:
    Where `x` is not `uint8`, or `dtype` not a float.

    Example:
        >>> mx.from_fp8(mx.array([56, 64], dtype=mx.uint8), mx.float32)
        array([1, 2], dtype=float32)
    """
def full(shape: int | Sequence[int], vals: _Scalar | array, dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """One number, repeated to a shape; an array fills by broadcasting.

    Example:
        >>> mx.full((2, 2), 7)
        array([[7, 7],
               [7, 7]], dtype=int32)
    """
def full_like(a: _Scalar | array, vals: _Scalar | array, dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """One number with `x`'s shape and dtype.

    Example:
        >>> mx.full_like(mx.array([1, 2]), 7)
        array([7, 7], dtype=int32)
    """
def gather_mm(a: _Scalar | array, b: _Scalar | array, /, lhs_indices: _Scalar | array | None = ..., rhs_indices: _Scalar | array | None = ..., *, sorted_indices: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The products of the matrices of `a` and of `b` that indices choose; none stand for all, in order.

    Shapes:
    Indices count the matrices of an operand through, over all axes but the last two. The shapes of
    the indices broadcast, and the last two axes multiply, as in `matmul`.

    Errors:
    Where indices are not integers or the operands neither floats nor complex numbers; when it runs where an index is
    out of range.

    Example:
        >>> a, b = mx.ones((2, 1, 3)), mx.stack([mx.zeros((3, 1)), mx.ones((3, 1))])
        >>> mx.gather_mm(a, b, rhs_indices=mx.array([1, 0])).flatten()
        array([3, 0], dtype=float32)
    """
def gather_qmm(x: _Scalar | array, w: _Scalar | array, /, scales: _Scalar | array, biases: _Scalar | array | None = ..., lhs_indices: _Scalar | array | None = ..., rhs_indices: _Scalar | array | None = ..., transpose: bool = ..., group_size: int | None = ..., bits: int | None = ..., mode: str = ..., global_scale: _Scalar | array | None = ..., *, sorted_indices: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The products of the matrices of `x` and of the quantized ones that indices choose, as in
    `gather_mm`.

    Errors:
    As `dequantize` and `gather_mm`.

    Example:
        >>> w = mx.quantize(mx.ones((3, 8, 64)))
        >>> mx.gather_qmm(mx.ones((1, 64)), *w, rhs_indices=mx.array([2, 0])).shape
        (2, 1, 8)
    """
def gather_qqmm(x: _Scalar | array, w: _Scalar | array, /, scales: _Scalar | array | None = ..., lhs_indices: _Scalar | array | None = ..., rhs_indices: _Scalar | array | None = ..., group_size: int | None = ..., bits: int | None = ..., mode: str = ..., global_scale_x: _Scalar | array | None = ..., global_scale_w: _Scalar | array | None = ..., *, sorted_indices: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`qqmm` of the matrices that indices choose, as in `gather_mm`.

    Errors:
    As `qqmm` and `gather_mm`.

    Example:
        >>> w = mx.ones((3, 8, 64))
        >>> mx.gather_qqmm(mx.ones((1, 64)), w, rhs_indices=mx.array([2, 0])).shape
        (2, 1, 8)
    """
def geomspace(start: float, stop: float, num: int = ..., dtype: Dtype | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`count` numbers from `start` to `stop`, both included, each the same multiple of the one before. They are computed
    in `float64`, on the CPU.

    Errors:
    Where an end is 0 or they differ in sign, and where `dtype` is neither an integer nor a float.

    Example:
        >>> mx.geomspace(1, 8, 4)
        array([1, 2, 4, 8], dtype=float32)
    """
def get_active_memory() -> int:
    """The bytes that live arrays hold.

    Example:
        >>> before = mx.get_active_memory()
        >>> x = mx.zeros(1024) + 1
        >>> mx.eval(x)
        >>> mx.get_active_memory() >= before + x.nbytes
        True
    """
def get_cache_memory() -> int:
    """The bytes that are kept for reuse: memory that was freed, and the plans of what was computed.

    Example:
        >>> mx.get_cache_memory() >= 0
        True
    """
def get_hard_memory_limit() -> int:
    """The bound on the memory of live arrays.

    Example:
        >>> mx.get_hard_memory_limit() > 0
        True
    """
def get_memory_limit() -> int:
    """The guideline for memory.

    Example:
        >>> mx.get_memory_limit() > 0
        True
    """
def get_peak_memory() -> int:
    """The most bytes that live arrays held, since the last `reset_peak_memory`.

    Example:
        >>> mx.get_peak_memory() >= 0
        True
    """
def get_printoptions() -> PrintOptions:
    """How arrays are printed now.

    Example:
        >>> mx.get_printoptions().precision
        -1
    """
def grad(fun: Any, argnums: Any = ..., argnames: Any = ...) -> Any:
    """A function that gives the gradient of `fun` by some of its arguments: those at `argnums`, the
    first if nothing is said, and those named in `argnames`, in the order of the arguments and of the names. Of a
    complex value it is the gradient of the real part.

    Example:
        >>> df = mx.grad(lambda x: mx.sum(x * x))
        >>> df(mx.array([1.0, 2.0]))
        array([2, 4], dtype=float32)
    """
def greater(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a > b.

    Dtypes:
    Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.

    Example:
        >>> mx.greater(mx.array([1, 2]), 1)
        array([False, True], dtype=bool)
    """
def greater_equal(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a ≥ b.

    Dtypes:
    Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.

    Example:
        >>> mx.greater_equal(mx.array([1, 2]), 2)
        array([False, True], dtype=bool)
    """
def grid_sample(a: _Scalar | array, grid: _Scalar | array, mode: str = ..., padding_mode: str = ..., align_corners: bool = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """An image at computed places, as PyTorch's `grid_sample`: −1 and 1 are the middles of the outermost pixels with
    `align_corners`, and the image's edges without.

    Shapes:
    An image `[N, sizes.., C]` and places `[N, output.., d]` for d spatial axes give `[N, output.., C]`. The first number of
    a place is along the last axis of the image, the second along that before it.

    Dtypes:
    Integers are taken as `float32`; half types are computed in `float32`; the result has the image's dtype.

    Errors:
    Where the places do not fit the image, a spatial axis is empty, for complex numbers, for the mean of an area, for
    `NearestExact`, which is about sizes, and for cubic interpolation of other than two axes.

    Example:
        >>> mx.grid_sample(mx.array([[[[1.0], [2.0]], [[3.0], [4.0]]]]), mx.zeros((1, 1, 1, 2))).item()
        2.5
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

    Example:
        >>> mx.hadamard_transform(mx.array([1.0, 0.0]), scale=1.0)
        array([1, 1], dtype=float32)
    """
def hamming(M: int, *, stream: _StreamOrDevice | None = ...) -> array:
    """The Hamming window of `size` points: 0.54 + 0.46·cos πt for t from −1 to 1, as `float32`.

    Example:
        >>> mx.hamming(3)
        array([0.08, 1, 0.08], dtype=float32)
    """
def hanning(M: int, *, stream: _StreamOrDevice | None = ...) -> array:
    """The Hann window of `size` points: 0.5 + 0.5·cos πt for t from −1 to 1, as `float32`.

    Example:
        >>> mx.hanning(3)
        array([0, 1, 0], dtype=float32)
    """
def heaviside(a: _Scalar | array, values: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """0 below 0, 1 above it, and `values` at it; NaN of NaN.

    Shapes:
    The operands broadcast.

    Dtypes:
    The operands promote.

    Errors:
    For complex numbers.

    Example:
        >>> mx.heaviside(mx.array([-1.5, 0.0, 2.0]), 0.5)
        array([0, 0.5, 1], dtype=float32)
    """
def hessian(fun: Any, argnums: Any = ...) -> Any:
    """A function that gives the second derivatives of the outputs of `fun` by its arguments at `argnums`: `jacfwd` of
    `jacrev`. Their axes are those of the output, of the first and of the second argument.

    Example:
        >>> mx.hessian(lambda x: (x**3).sum())(mx.array([1.0, 2.0]))
        array([[6, 0],
               [0, 12]], dtype=float32)
    """
def histogram(a: _Scalar | array, bins: Any = ..., range: Any = ..., weights: _Scalar | array | None = ..., density: bool = ..., *, stream: _StreamOrDevice | None = ...) -> tuple[array, array]:
    """How many elements fall into each bin, and the bins' edges. An element at an edge belongs to the bin above it, at
    the last edge to the last bin; elements outside and NaN belong to none.

    Shapes:
    The array is flattened; n bins give counts `[n]` and edges `[n + 1]`.

    Dtypes:
    Edges are floats in the array's dtype, `float32` of integers and bool. Counts are `int32`; with weights, one for
    each element, the sums of these in their dtype; with `density` floats, which the bins' widths make 1 in all.

    Errors:
    For complex numbers, no bins, a range whose ends are not finite numbers in order, edges that are not a vector, and
    weights of another shape.

    Example:
        >>> counts, edges = mx.histogram(mx.array([0.0, 1.0, 1.5, 4.0]), bins=2)
        >>> counts, edges
        (array([3, 1], dtype=int32), array([0, 2, 4], dtype=float32))
    """
def hypot(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """√(a² + b²), where the squares would overflow or vanish, too.

    Shapes:
    The operands broadcast.

    Dtypes:
    The operands promote; integers and bool are taken as `float32`; half types are computed in `float32`.
    With an infinite operand the result is ∞, whatever the other is.

    Errors:
    For complex numbers.

    Example:
        >>> mx.hypot(mx.array([3.0, 5.0]), mx.array([4.0, 12.0]))
        array([5, 13], dtype=float32)
    """
def i0(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The modified Bessel function of the first kind of order 0, I₀(x) = Σ (x²/4)ᵏ/k!² (A&S 9.6.12); from 12 on
    (20 of `float64`) by its asymptotic series (9.7.1).

    Errors:
    For complex numbers.

    Example:
        >>> mx.i0(mx.array([0.0, 1.0]))
        array([1, 1.26607], dtype=float32)
    """
def identity(n: int, dtype: Dtype | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The identity matrix.

    Example:
        >>> mx.identity(2)
        array([[1, 0],
               [0, 1]], dtype=float32)
    """
def imag(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The imaginary part: `float32` of a complex number, 0 of anything else.

    Example:
        >>> mx.imag(mx.array([1 + 2j]))
        array([2], dtype=float32)
    """
def import_function(file: str, return_metadata: bool = ..., *, name: str | None = ...) -> Any:
    """Reads a function that `export_function`, `exporter` or the program wrote; with `return_metadata` the
    text that was written with it, too. `name` picks one of several.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "f.cupola")
        ...     mx.export_function(path, mx.abs, mx.array([1.0, -2.0]), metadata="about it")
        ...     fun, text = mx.import_function(path, return_metadata=True)
        >>> fun(mx.array([-3.0, 4.0])), text
        ((array([3, 4], dtype=float32),), 'about it')
    """
def index_fill(a: _Scalar | array, axis: int, indices: _Scalar | array, value: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """`x` with `value` in the slices at `indices` along an axis.

    Shapes:
    The indices have at most one axis; the value broadcasts to the slices.

    Dtypes:
    The value is taken in x's dtype.

    Errors:
    Where the indices are not integers, for a float into integers, and when it runs where an index is out of
    range.

    Example:
        >>> mx.index_fill(mx.array([1, 2, 3]), 0, mx.array([0, 2]), 9)
        array([9, 2, 9], dtype=int32)
    """
def inner(a: _Scalar | array, b: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The sums of products over the last axis of each operand.

    Shapes:
    `[a.., k]` and `[b.., k]` give `[a.., b..]`.

    Example:
        >>> mx.inner(mx.array([1, 2]), mx.array([3, 4]))
        array(11, dtype=int32)
    """
def interp(x: _Scalar | array, xp: _Scalar | array, fp: _Scalar | array, left: Any = ..., right: Any = ..., period: float | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The values at `x` of the straight lines through the points `(xp, fp)`, which are in ascending order; NaN at NaN.

    Shapes:
    `xp` and `fp` are vectors of one size; the result has the shape of `x`.

    Dtypes:
    All promote to floats; half types are computed in `float32`. `fp` may be complex, and `x` and `xp` are real.

    Errors:
    Where there are no points, `xp` and `fp` differ, a period is 0 or no number, for complex `x` and `xp`, and for
    complex numbers outside of real points.

    Example:
        >>> mx.interp(mx.array([0.5, 2.0]), mx.array([0.0, 1.0, 3.0]), mx.array([1.0, 2.0, 0.0]))
        array([1.5, 1], dtype=float32)
    """
def interpolate(a: _Scalar | array, size: int | Sequence[int] | None = ..., scale_factor: Any = ..., mode: str = ..., align_corners: bool = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """An image in another size, as PyTorch's `interpolate`. With `align_corners` the outermost pixels' middles stay where
    they are, without it the image's edges.

    Shapes:
    `[N, input.., C]` gives `[N, output.., C]`, with any number of spatial axes.

    Dtypes:
    The nearest pixels keep the dtype; for the rest integers and bool are taken as `float32`, and half types are computed
    in `float32`.

    Errors:
    For images without spatial axes, empty axes, sizes of 0, factors that are not positive, another number of them than
    axes, complex numbers where pixels are mixed, and `align_corners` of pixels that are not.

    Example:
        >>> mx.interpolate(mx.array([[[1.0], [3.0]]]), 4, mode="linear").flatten()
        array([1, 1.5, 2.5, 3], dtype=float32)
        >>> mx.interpolate(mx.array([[[1.0], [3.0]]]), scale_factor=2).flatten()
        array([1, 1, 3, 3], dtype=float32)
        >>> mx.interpolate(mx.ones((1, 3, 2, 2)), scale_factor=2, data_format="channels_first").shape
        (1, 3, 4, 4)
    """
def is_available(device: Device | DeviceType) -> bool:
    """Whether a device is there. `gpu` is hardware: an adapter that only imitates one is there as `wgpu`.

    Example:
        >>> mx.is_available(mx.cpu)
        True
    """
def isclose(a: _Scalar | array, b: _Scalar | array, /, rtol: float = ..., atol: float = ..., *, equal_nan: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """Whether a and b are equal within a tolerance; infinities equal themselves.

    Example:
        >>> mx.isclose(mx.array([1.0, 2.0]), mx.array([1.0, 2.1]))
        array([True, False], dtype=bool)
    """
def isdtype(dtype: Dtype, kind: Any) -> bool:
    """Whether a dtype is another dtype, or of a kind that the array API standard names.

    Example:
        >>> mx.isdtype(mx.float32, "real floating"), mx.isdtype(mx.int8, mx.int8)
        (True, True)
    """
def isfinite(a: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether x is neither infinite nor NaN; of a complex number, whether both parts are.

    Example:
        >>> mx.isfinite(mx.array([1.0, mx.inf, mx.nan]))
        array([True, False, False], dtype=bool)
    """
def isinf(a: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether x is ∞ or −∞; of a complex number, whether either part is.

    Example:
        >>> mx.isinf(mx.array([1.0, -mx.inf, mx.nan]))
        array([False, True, False], dtype=bool)
    """
def isnan(a: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether x is NaN; of a complex number, whether either part is.

    Example:
        >>> mx.isnan(mx.array([1.0, mx.inf, mx.nan]))
        array([False, False, True], dtype=bool)
    """
def isneginf(a: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether x is −∞.

    Example:
        >>> mx.isneginf(mx.array([mx.inf, -mx.inf]))
        array([False, True], dtype=bool)
    """
def isposinf(a: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether x is ∞.

    Example:
        >>> mx.isposinf(mx.array([mx.inf, -mx.inf]))
        array([True, False], dtype=bool)
    """
def issubdtype(arg1: Dtype | DtypeCategory, arg2: Dtype | DtypeCategory) -> bool:
    """Whether the first dtype or category is, or is within, the second.

    Example:
        >>> mx.issubdtype(mx.float16, mx.floating)
        True
    """
def jacfwd(fun: Any, argnums: Any = ...) -> Any:
    """A function that gives the derivatives of the outputs of `fun` by its arguments at `argnums`, the first if nothing is
    said. In the place of each array that `fun` returns stands the tree of the argument, or a tuple of trees for a
    sequence of arguments, with the derivatives by its arrays: their axes are those of the output and then those of the
    argument. They are computed a column at a time, in one batch: for few arguments and many outputs.

    Example:
        >>> mx.jacfwd(mx.square)(mx.array([1.0, 2.0]))
        array([[2, 0],
               [0, 4]], dtype=float32)
    """
def jacrev(fun: Any, argnums: Any = ...) -> Any:
    """What `jacfwd` gives, computed a row at a time, in one batch: for many arguments and few outputs.

    Example:
        >>> mx.jacrev(lambda x, w: w["a"] * x, argnums=1)(mx.array([1.0, 2.0]), {"a": mx.array([3.0, 4.0])})
        {'a': array([[1, 0],
               [0, 2]], dtype=float32)}
    """
def jvp(fun: Any, primals: Sequence[array], tangents: Sequence[array]) -> tuple[list[array], list[array]]:
    """The outputs of `fun`, and the products of its Jacobian with `tangents`.

    Example:
        >>> values, tangents = mx.jvp(lambda x: x * x, [mx.array(3.0)], [mx.array(1.0)])
        >>> tangents
        [array(6, dtype=float32)]
    """
def kron(a: _Scalar | array, b: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The Kronecker product: each element of `a` times all of `b`, as blocks.

    Example:
        >>> mx.kron(mx.array([1, 2]), mx.array([1, 10]))
        array([1, 10, 2, 20], dtype=int32)
    """
def ldexp(a: _Scalar | array, k: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """x·2ᵏ, rounded once.

    Shapes:
    The operands broadcast.

    Dtypes:
    Integers x are taken as `float32`; the result has that dtype, whatever that of the exponents is. Exponents
    that are floats raise 2 to them.

    Errors:
    For complex numbers.

    Example:
        >>> mx.ldexp(mx.array([1.5, 1.5]), mx.array([-1, 3]))
        array([0.75, 12], dtype=float32)
    """
def left_shift(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a·2ᵇ in the integer's width; 0 from the width on.

    Dtypes:
    Two bools shift as `uint8`; floats are an error.

    Example:
        >>> mx.left_shift(mx.array([1, 2]), 3)
        array([8, 16], dtype=int32)
    """
def lerp(start: _Scalar | array, end: _Scalar | array, weight: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """start + weight·(end − start), and exactly `end` for a weight of 1.

    Shapes:
    All three broadcast.

    Dtypes:
    All three promote; integers and bool are taken as `float32`; half types are computed in `float32`.

    Example:
        >>> mx.lerp(mx.array([0.0, 10.0]), mx.array([10.0, 20.0]), 0.25)
        array([2.5, 12.5], dtype=float32)
    """
def less(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a < b.

    Dtypes:
    Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.

    Example:
        >>> mx.less(mx.array([1, 2]), 2)
        array([True, False], dtype=bool)
    """
def less_equal(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a ≤ b.

    Dtypes:
    Complex numbers are compared by their real parts, and where these are equal by their imaginary ones.

    Example:
        >>> mx.less_equal(mx.array([1, 2, 3]), 2)
        array([True, True, False], dtype=bool)
    """
def lgamma(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """ln |Γ(x)|: ∞ at 0 and the negative integers.

    Γ(x + 1) = x·Γ(x) leads to the series around 2 (A&S 6.1.33), or from 8 on (13 of `float64`) to Stirling's
    (6.1.40); below 0, Γ(x)·Γ(−x) = −π/(x·sin πx) (6.1.17).

    Errors:
    For complex numbers.

    Example:
        >>> mx.lgamma(mx.array([1.0, 5.0]))
        array([0, 3.17805], dtype=float32)
    """
def linearize(fun: Any, *primals: Any) -> Any:
    """What `fun` gives for these arguments, and its derivative there: a function that takes tangents, trees like the
    arguments, and gives those of the outputs, as often as is wanted, without `fun` being called again. It holds what was
    computed on the way.

    Example:
        >>> y, slope = mx.linearize(mx.square, mx.array([1.0, 2.0]))
        >>> y, slope(mx.array([1.0, 10.0]))
        (array([1, 4], dtype=float32), array([2, 40], dtype=float32))
    """
def linspace(start: Any, stop: Any, num: int | None = ..., endpoint: bool = ..., dtype: Dtype | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`count` numbers from `start` to `stop`, both included, evenly spaced.

    Errors:
    Where `dtype` is neither an integer nor a float.

    Example:
        >>> mx.linspace(0, 1, 5)
        array([0, 0.25, 0.5, 0.75, 1], dtype=float32)
    """
def load(file: Any, /, format: str | None = ..., return_metadata: bool = ..., *, stream: _StreamOrDevice | None = ...) -> Any:
    """Reads a file: an array, or arrays by name, and with `return_metadata` the metadata, too.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> mx.save(file, mx.array([1, 2]))
        >>> _ = file.seek(0)
        >>> mx.load(file, format="npy")
        array([1, 2], dtype=int32)
    """
def log(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """ln x.

    Example:
        >>> mx.log(mx.array([1.0, mx.e]))
        array([0, 1], dtype=float32)
    """
def log10(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """log₁₀ x.

    Example:
        >>> mx.log10(mx.array([1.0, 100.0]))
        array([0, 2], dtype=float32)
    """
def log1p(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """ln(1 + x), accurate near 0.

    Example:
        >>> mx.log1p(mx.array([0.0, 1e-6]))
        array([0, 1e-06], dtype=float32)
    """
def log2(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """log₂ x.

    Example:
        >>> mx.log2(mx.array([1.0, 8.0]))
        array([0, 3], dtype=float32)
    """
def logaddexp(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """ln(eᵃ + eᵇ), without overflow.

    Example:
        >>> mx.logaddexp(mx.array([0.0]), mx.array([0.0]))
        array([0.693147], dtype=float32)
    """
def logcumsumexp(a: _Scalar | array, /, axis: None | int = ..., *, reverse: bool = ..., inclusive: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """ln Σ eˣ of the elements of an axis up to each, without overflow; `()` flattens first.

    Dtypes:
    Integers and bool are taken as `float32`; half types accumulate in `float32`.

    Example:
        >>> mx.logcumsumexp(mx.array([0.0, 0.0]))
        array([0, 0.693147], dtype=float32)
    """
def logical_and(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice | None = ...) -> array:
    """Whether both are true; numbers are true where they are not 0.

    Example:
        >>> mx.logical_and(mx.array([True, False]), True)
        array([True, False], dtype=bool)
    """
def logical_not(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """True where x is false; numbers are true where they are not 0.

    Example:
        >>> mx.logical_not(mx.array([True, False]))
        array([False, True], dtype=bool)
    """
def logical_or(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice | None = ...) -> array:
    """Whether either is true; numbers are true where they are not 0.

    Example:
        >>> mx.logical_or(mx.array([True, False]), False)
        array([True, False], dtype=bool)
    """
def logical_xor(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice | None = ...) -> array:
    """Whether one of them is true; numbers are true where they are not 0.

    Example:
        >>> mx.logical_xor(mx.array([True, False]), True)
        array([False, True], dtype=bool)
    """
def logit(a: _Scalar | array, eps: float | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """ln(x/(1 − x)), the inverse of `sigmoid`(super::sigmoid): −∞ at 0, ∞ at 1 and NaN outside. With `eps`, of
    x limited to [eps, 1 − eps].

    Errors:
    For complex numbers.

    Example:
        >>> mx.logit(mx.array([0.25, 0.5]))
        array([-1.09861, 0], dtype=float32)
    """
def logspace(start: Any, stop: Any, num: int = ..., base: float = ..., dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`count` numbers from base^start to base^stop, both included, whose logarithms are evenly spaced. They are computed
    in `float64`, on the CPU. Ends may be complex, which gives points of a spiral.

    Errors:
    Where the dtype is bool, or the ends are complex and the dtype is not.

    Example:
        >>> mx.logspace(0, 2, 3)
        array([1, 10, 100], dtype=float32)
    """
def logsumexp(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """ln Σ eˣ over `axes`; −∞ where every element is.

    Dtypes:
    As `softmax`.

    Errors:
    Where an axis is empty.

    Example:
        >>> mx.logsumexp(mx.zeros((2, 4)), axis=1)
        array([1.38629, 1.38629], dtype=float32)
    """
def masked_fill(a: _Scalar | array, mask: _Scalar | array, value: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """`x` with `value` where the mask is true.

    Shapes:
    Mask and value broadcast to the shape of `x`.

    Dtypes:
    The value is taken in x's dtype.

    Errors:
    For a mask that is not bool or does not fit, and for a float into integers.

    Example:
        >>> mx.masked_fill(mx.array([1, 2, 3]), mx.array([True, False, True]), 0)
        array([0, 2, 0], dtype=int32)
    """
def masked_select(a: _Scalar | array, mask: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The elements of `x` where the mask is true, in order.

    Shapes:
    Both broadcast; the result has one axis. How long it is depends on the mask, which is evaluated.

    Errors:
    For a mask that is not bool, and under `compile` and `vmap`, where there are no values.

    Example:
        >>> mx.masked_select(mx.array([1, 2, 3]), mx.array([True, False, True]))
        array([1, 3], dtype=int32)
    """
def matmul(a: _Scalar | array, b: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The matrix product over the last two axes.

    Shapes:
    `[.., m, k]` by `[.., k, n]` gives `[.., m, n]`; leading axes broadcast. A vector on the left is
    a row, on the right a column, and its axis goes from the result.

    Dtypes:
    The operands promote; half types accumulate in `float32`; bool multiplies as `int32`. Where a
    processor has an instruction for products of `bfloat16`, subnormal numbers (below 1.2·10⁻³⁸)
    count as 0.

    Example:
        >>> mx.matmul(mx.ones((2, 3)), mx.ones((3, 2)))
        array([[3, 3],
               [3, 3]], dtype=float32)
    """
def matrix_norm(a: _Scalar | array, /, ord: Any = ..., axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`linalg.norm` under another name.

    Example:
        >>> mx.matrix_norm(mx.array([[3.0, 0.0], [0.0, 4.0]]))
        array(5, dtype=float32)
    """
def matrix_transpose(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The last two axes exchanged.

    Errors:
    Where there are fewer than two.

    Example:
        >>> mx.matrix_transpose(mx.array([[1, 2], [3, 4]]))
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
def max(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The largest element over `axes`; NaN if there is one. Of zeros the positive one is the larger.

    Errors:
    Where an axis to fold is empty.

    Example:
        >>> mx.max(mx.array([[1, 5], [3, 2]]), axis=1)
        array([5, 3], dtype=int32)
    """
def max_pool_with_indices(a: _Scalar | array, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> tuple[array, array]:
    """`max_pool`(super::max_pool), and where in its image, flattened, each largest element is: the first of equal ones,
    or the first NaN.

    Shapes:
    Both as `max_pool`(super::max_pool) gives.

    Dtypes:
    The places are `int32`.

    Errors:
    As `max_pool`(super::max_pool), and for images of 2³¹ pixels and more.

    Example:
        >>> largest, places = mx.max_pool_with_indices(mx.array([[[1.0], [4.0], [3.0], [2.0]]]), 2)
        >>> largest.flatten(), places.flatten()
        (array([4, 3], dtype=float32), array([1, 2], dtype=int32))
    """
def max_unpool(a: _Scalar | array, indices: _Scalar | array, output_size: int | Sequence[int], *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """An image with elements at the places that `max_pool_with_indices` found them at, and zeros elsewhere.

    Shapes:
    Elements and places `[N, input.., C]` give `[N, sizes.., C]`.

    Errors:
    Where elements and places differ, the places are not integers, the sizes are not one a spatial axis, and when it runs
    where a place is outside of the image.

    Example:
        >>> mx.max_unpool(mx.array([[[4.0], [3.0]]]), mx.array([[[1], [2]]]), 4).flatten()
        array([0, 4, 3, 0], dtype=float32)
    """
def maximum(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The larger of a and b; NaN if either is NaN.

    Example:
        >>> mx.maximum(mx.array([1, 5]), 3)
        array([3, 5], dtype=int32)
    """
def mean(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The mean over `axes`; NaN for nothing.

    Dtypes:
    Integers and bool are taken as `float32`; half types are summed and divided in `float32`.

    Example:
        >>> mx.mean(mx.array([[1.0, 2.0], [3.0, 5.0]]), axis=0)
        array([2, 3.5], dtype=float32)
    """
def median(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The median over axes: the middle element, or the mean of the two middle ones; NaN if there is
    a NaN.

    Dtypes:
    Integers and bool are taken as `float32`.

    Errors:
    Where an axis is empty.

    Example:
        >>> mx.median(mx.array([1, 9, 2]))
        array(2, dtype=float32)
    """
def memory_stats(device: Device | DeviceType | None = ...) -> dict[str, Any]:
    """What the memory of a device is used for, in bytes: `active` (held by arrays), `peak`, `cached` (freed and
    kept), `plans`, `driver_allocated`, `recommended_max` (None where the device does not say), `limit`,
    `guideline`, and `by_op`, what arrays of 64 KiB and more hold by the operation that made them.

    Example:
        >>> x = mx.ones((256, 256)) + 1
        >>> mx.eval(x)
        >>> mx.memory_stats()["by_op"]["add"] >= 256 * 256 * 4
        True
    """
def meshgrid(*arrays: _Scalar | array, sparse: bool | None = ..., indexing: str | None = ..., stream: _StreamOrDevice | None = ...) -> tuple[Any, ...]:
    """The coordinates of a grid: array `i` of the result repeats vector `i` along every other axis. Other
    arrays are flattened.

    Shapes:
    With `matrix_order` axis `i` belongs to vector `i` (NumPy's `ij`); without, the first two axes
    are exchanged (`xy`).

    Example:
        >>> x, y = mx.meshgrid(mx.array([1, 2]), mx.array([3, 4, 5]))
        >>> x.shape, y.shape
        ((3, 2), (3, 2))
    """
def min(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The smallest element over `axes`; NaN if there is one. Of zeros the negative one is the smaller.

    Errors:
    As `max`.

    Example:
        >>> mx.min(mx.array([[1, 5], [3, 2]]), axis=1)
        array([1, 2], dtype=int32)
    """
def minimum(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The smaller of a and b; NaN if either is NaN.

    Example:
        >>> mx.minimum(mx.array([1, 5]), 3)
        array([1, 3], dtype=int32)
    """
def minmax(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> tuple[array, array]:
    """The smallest and the largest element over `axes`, as `min` and `max` give them.

    Example:
        >>> mx.minmax(mx.array([3, 1, 2]))
        (array(1, dtype=int32), array(3, dtype=int32))
    """
def moveaxis(a: _Scalar | array, source: int, destination: int, *, stream: _StreamOrDevice = ...) -> array:
    """One axis moved to another place; the others keep their order.

    Example:
        >>> mx.moveaxis(mx.ones((2, 3, 4)), 0, 2).shape
        (3, 4, 2)
    """
def multiply(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a·b.

    Dtypes:
    The operands promote; integers wrap; on bool, logical and.

    Example:
        >>> mx.multiply(mx.array([1, 2]), 3)
        array([3, 6], dtype=int32)
    """
def nan_to_num(a: _Scalar | array, nan: float = ..., posinf: float | None = ..., neginf: float | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """x with numbers in place of NaN and infinities; integers as they are. Of complex numbers both parts are replaced.

    Example:
        >>> mx.nan_to_num(mx.array([mx.nan, 1.0]), nan=0.5)
        array([0.5, 1], dtype=float32)
    """
def nanmax(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The largest element over `axes` that is not NaN; NaN where there is nothing else.

    Errors:
    As `max`(super::max).

    Example:
        >>> mx.nanmax(mx.array([1.0, float("nan"), 3.0]))
        array(3, dtype=float32)
    """
def nanmean(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The mean over `axes` of what is not NaN; NaN where there is nothing else.

    Dtypes:
    As `mean`(super::mean).

    Example:
        >>> mx.nanmean(mx.array([1.0, float("nan"), 3.0]))
        array(2, dtype=float32)
    """
def nanmedian(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The median over axes of what is not NaN; NaN where there is nothing else.

    Dtypes:
    Integers and bool are taken as `float32`.

    Errors:
    As `median`(super::median).

    Example:
        >>> mx.nanmedian(mx.array([1.0, float("nan"), 3.0, 9.0]))
        array(3, dtype=float32)
    """
def nanmin(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The smallest element over `axes` that is not NaN; NaN where there is nothing else.

    Errors:
    As `max`(super::max).

    Example:
        >>> mx.nanmin(mx.array([1.0, float("nan"), 3.0]))
        array(1, dtype=float32)
    """
def nanpercentile(a: _Scalar | array, q: Any, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, method: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """:func:`nanquantile` at shares in percent, from 0 to 100.

    Example:
        >>> mx.nanpercentile(mx.array([1.0, float("nan"), 3.0]), 50)
        array(2, dtype=float32)
    """
def nanquantile(a: _Scalar | array, q: Any, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, method: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """`quantile` of what is not NaN; NaN where there is nothing else.

    Errors:
    As `quantile`.

    Example:
        >>> mx.nanquantile(mx.array([1.0, float("nan"), 3.0]), 0.5)
        array(2, dtype=float32)
    """
def nansum(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The sum over `axes` of what is not NaN; 0 for nothing.

    Dtypes:
    As `sum`(super::sum).

    Example:
        >>> mx.nansum(mx.array([1.0, float("nan"), 3.0]))
        array(4, dtype=float32)
    """
def negative(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """−x; integers wrap.

    Errors:
    For bool: use `logical_not`.

    Example:
        >>> mx.negative(mx.array([1, -2]))
        array([-1, 2], dtype=int32)
    """
def new_stream(device: Device | DeviceType, *, priority: Any = ...) -> Stream:
    """A new stream of a device. Work that two streams were given goes on at once on the CPU and on CUDA devices;
    of that, a CUDA device prefers the one of lower `priority` (MLX has none): 0 or a few below, others count as the
    nearest of these.

    Example:
        >>> stream = mx.new_stream(mx.cpu)
        >>> mx.add(mx.array([1]), 1, stream=stream)
        array([2], dtype=int32)
        >>> mx.new_stream(mx.cpu, priority=-1).priority
        -1
    """
def new_thread_local_stream(device: Device | DeviceType) -> Any:
    """A stream of a device that is another one in every thread.

    Example:
        >>> with mx.stream(mx.new_thread_local_stream(mx.cpu)):
        ...     mx.ones(2) * 2
        array([2, 2], dtype=float32)
    """
def new_thread_unsafe_stream(device: Device | DeviceType) -> Stream:
    """A new stream of a device. Any thread may record on any stream here, so it is one of `new_stream`.

    Example:
        >>> mx.new_thread_unsafe_stream(mx.cpu).device
        Device(cpu, 0)
    """
def nextafter(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """The next number of the dtype after a towards b; b where they are equal.

    Shapes:
    The operands broadcast.

    Dtypes:
    The operands promote; integers and bool are taken as `float32`. The step has no derivative.

    Errors:
    For complex numbers.

    Example:
        >>> mx.nextafter(mx.array(1.0), 2.0) > 1.0
        array(True, dtype=bool)
    """
def nonzero(a: _Scalar | array, *, stream: _StreamOrDevice | None = ...) -> tuple[Any, ...]:
    """The places of elements that are not 0: a vector of indices for each axis, in the order of the elements.

    Shapes:
    How many there are depends on the values, so the array is evaluated.

    Dtypes:
    Gives `int32`, or `int64` past 2³¹ elements.

    Errors:
    For a plain number, which has no axes, and under `compile` and `vmap`, where there are no values.

    Example:
        >>> mx.nonzero(mx.array([0, 5, 7]))
        (array([1, 2], dtype=int32),)
    """
def not_equal(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """Whether a ≠ b; NaN differs from everything.

    Example:
        >>> mx.not_equal(mx.array([1, 2]), 2)
        array([True, False], dtype=bool)
    """
def ones(shape: int | Sequence[int], dtype: Dtype | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Ones.

    Example:
        >>> mx.ones((2, 2))
        array([[1, 1],
               [1, 1]], dtype=float32)
    """
def ones_like(a: _Scalar | array, dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """Ones with `x`'s shape and dtype.

    Example:
        >>> mx.ones_like(mx.array([1, 2]))
        array([1, 1], dtype=int32)
    """
def outer(a: _Scalar | array, b: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The products of each element of one flattened operand with each of the other.

    Example:
        >>> mx.outer(mx.array([1, 2]), mx.array([3, 4]))
        array([[3, 4],
               [6, 8]], dtype=int32)
    """
def pad(a: _Scalar | array, pad_width: Any, mode: str = ..., constant_values: _Scalar | array | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` with a border, of one number or of its own elements.

    Dtypes:
    A number is taken in x's dtype.

    Errors:
    Where `widths` has not one pair an axis, and where an empty axis has no element for the border.

    Example:
        >>> mx.pad(mx.array([1, 2, 3]), 1)
        array([0, 1, 2, 3, 0], dtype=int32)
        >>> mx.pad(mx.array([1, 2, 3]), (0, 2), mode="reflect")
        array([1, 2, 3, 2, 1], dtype=int32)
    """
def partition(a: _Scalar | array, kth: int, axis: None | int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The elements of an axis with the one at `kth` where it is in their order, none larger before it
    and none smaller behind it; `()` flattens first. How the others lie may differ between devices.

    Errors:
    Where the axis has no element `kth`, which counts from the end if it is negative.

    Example:
        >>> mx.partition(mx.array([3, 1, 2]), kth=0)[0]
        array(1, dtype=int32)
    """
def percentile(a: _Scalar | array, q: Any, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, method: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """:func:`quantile` at shares in percent, from 0 to 100.

    Example:
        >>> mx.percentile(mx.array([3.0, 1.0, 4.0, 2.0]), 50)
        array(2.5, dtype=float32)
    """
def pixel_shuffle(a: _Scalar | array, upscale_factor: int, *, stream: _StreamOrDevice = ...) -> array:
    """Channels moved into space, r² of them at each pixel to a square of r by r pixels.

    W. Shi et al., *Real-time single image and video super-resolution using an efficient sub-pixel convolutional neural
    network*, CVPR 2016.

    Shapes:
    `[.., H, W, C·r²]` gives `[.., H·r, W·r, C]`. As in PyTorch, what stands at row i and column j of the square of
    channel c is channel c·r² + i·r + j.

    Errors:
    For fewer than three axes, a factor of 0, and channels that r² does not divide.

    Example:
        >>> mx.pixel_shuffle(mx.array([[[1, 2, 3, 4]]]), 2)
        array([[[1],
                [2]],
               [[3],
                [4]]], dtype=int32)
    """
def pixel_unshuffle(a: _Scalar | array, downscale_factor: int, *, stream: _StreamOrDevice = ...) -> array:
    """The inverse of `pixel_shuffle`: squares of r by r pixels moved into channels.

    Shapes:
    `[.., H·r, W·r, C]` gives `[.., H, W, C·r²]`.

    Errors:
    For fewer than three axes, a factor of 0, and sides that r does not divide.

    Example:
        >>> mx.pixel_unshuffle(mx.array([[[1], [2]], [[3], [4]]]), 2)
        array([[[1, 2, 3, 4]]], dtype=int32)
    """
def polyval(p: _Scalar | array, x: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The value at `x` of the polynomial with these coefficients, highest power first, by Horner's rule.

    Shapes:
    The coefficients are a vector; the result has the shape of `x`.

    Dtypes:
    Both promote; half types are computed in `float32`; integers wrap.

    Errors:
    Where the coefficients are not a vector.

    Example:
        >>> mx.polyval(mx.array([1.0, -3.0, 2.0]), mx.array([0.0, 4.0]))
        array([2, 6], dtype=float32)
    """
def positive(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """x as it is.

    Example:
        >>> mx.positive(mx.array([1, -2]))
        array([1, -2], dtype=int32)
    """
def power(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """aᵇ.

    Dtypes:
    The operands promote. A negative exponent of an integer gives 0, or ±1 for bases ±1.

    Example:
        >>> mx.power(mx.array([2, 3]), 2)
        array([4, 9], dtype=int32)
    """
def printoptions(precision: int = ...) -> _PrintOptionsContext:
    """A context in which arrays are printed in another way.

    Example:
        >>> with mx.printoptions(precision=2):
        ...     print(mx.array(1.23456))
        array(1.23, dtype=float32)
    """
def prod(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The product over `axes`; 1 for nothing.

    Dtypes:
    As `sum`.

    Example:
        >>> mx.prod(mx.array([2, 3, 4]))
        array(24, dtype=int32)
    """
def put_along_axis(a: _Scalar | array, /, indices: _Scalar | array, values: _Scalar | array, axis: None | int = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` with the elements at `indices` along an axis, and at the same place along the others,
    replaced by `values`; `()` counts through the flattened array.

    Shapes:
    `values` broadcast to the indices, and may have axes of one element before theirs; the other axes of `x` and of the
    indices broadcast to each other.

    Dtypes:
    The values are taken in x's dtype.

    Example:
        >>> mx.put_along_axis(mx.zeros((2, 2)), mx.array([[0], [1]]), 1.0, axis=1)
        array([[1, 0],
               [0, 1]], dtype=float32)
    """
def qqmm(x: _Scalar | array, w: _Scalar | array, scales: _Scalar | array | None = ..., group_size: int | None = ..., bits: int | None = ..., mode: str = ..., global_scale_x: _Scalar | array | None = ..., global_scale_w: _Scalar | array | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The product of two matrices that are both rounded to a format, the right one transposed.
    Gradients are those of the product of the rounded matrices.

    Errors:
    As `quantize_microscaling`, `dequantize_microscaling` and `matmul`.

    Example:
        >>> mx.qqmm(mx.ones((1, 32)), mx.ones((2, 32)), mode="mxfp8")
        array([[32, 32]], dtype=float32)
    """
def quantile(a: _Scalar | array, q: Any, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, method: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The quantiles of the elements over `axes`, at the shares in `q`: 0 is the smallest element, ½ the median, 1 the
    largest. NaN if there is a NaN.

    Shapes:
    One quantile for each of `q` along a new first axis; the folded axes go, or stay with size 1 where `keepdims` is
    true.

    Dtypes:
    Integers and bool are taken as `float32`; half types are computed in `float32`.

    Errors:
    Where a share is not within [0, 1], an axis is empty, and for complex numbers.

    Example:
        >>> mx.quantile(mx.array([3.0, 1.0, 4.0, 2.0]), [0.0, 0.5])
        array([1, 2.5], dtype=float32)
        >>> mx.quantile(mx.array([3.0, 1.0, 4.0, 2.0]), 0.5, method="lower")
        array(2, dtype=float32)
    """
def quantize(w: _Scalar | array, /, group_size: int | None = ..., bits: int | None = ..., mode: str = ..., *, global_scale: _Scalar | array | None = ..., stream: _StreamOrDevice | None = ...) -> list[array]:
    """A matrix in a few bits an element: each group of neighbours in a row as whole numbers times a
    scale plus a bias, with the group's end that is farther from 0 exact, and 0.

    Shapes:
    The last of at least two axes divides into groups.

    Dtypes:
    Scales and biases have w's dtype.

    Errors:
    Where `w` is not of floats, or does not divide.

    Example:
        >>> words, scales, biases = mx.quantize(mx.ones((2, 64)), bits=4)
        >>> words.shape, scales.shape
        ((2, 8), (2, 1))
    """
def quantized_matmul(x: _Scalar | array, w: _Scalar | array, /, scales: _Scalar | array, biases: _Scalar | array | None = ..., transpose: bool = ..., group_size: int | None = ..., bits: int | None = ..., mode: str = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` by a quantized matrix, or by its transpose.

    Errors:
    As `dequantize` and `matmul`.

    Example:
        >>> mx.quantized_matmul(mx.ones((1, 64)), *mx.quantize(mx.ones((2, 64))))
        array([[64, 64]], dtype=float32)
    """
def radians(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """Degrees as radians.

    Example:
        >>> mx.radians(mx.array([0.0, 180.0]))
        array([0, 3.14159], dtype=float32)
    """
def real(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The real part: `float32` of a complex number, anything else as it is.

    Example:
        >>> mx.real(mx.array([1 + 2j]))
        array([1], dtype=float32)
    """
def reciprocal(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """1/x.

    Dtypes:
    Integers and bool are taken as `float32`.

    Example:
        >>> mx.reciprocal(mx.array([2.0, 4.0]))
        array([0.5, 0.25], dtype=float32)
    """
def recommended_max(device: Device | DeviceType | None = ...) -> Any:
    """The bytes that a device has; None where it does not say.

    Example:
        >>> mx.recommended_max(mx.cpu) > 0
        True
    """
def record_memory_history(max_changes: int = ...) -> Any:
    """Begins to note who holds memory, and which lines of the program record what they hold: arrays of 64 KiB and
    more, at most `max_changes` changes. What comes back ends it by `stop()`, or at the end of its `with`.

    Example:
        >>> with mx.record_memory_history() as history:
        ...     x = mx.ones((256, 256)) * 3
        ...     mx.eval(x)
        >>> history.peak() >= 256 * 256 * 4
        True
    """
def remainder(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a − b·⌊a/b⌋, with the sign of b.

    Dtypes:
    An integer modulo 0 gives 0. Does not take complex numbers.

    Example:
        >>> mx.remainder(mx.array([7, -7]), 3)
        array([1, 2], dtype=int32)
    """
def repeat(array: _Scalar | array, repeats: int, axis: None | int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Each element repeated `repeats` times along an axis; `()` flattens first.

    Example:
        >>> mx.repeat(mx.array([1, 2]), 2)
        array([1, 1, 2, 2], dtype=int32)
    """
def repeat_interleave(a: _Scalar | array, repeats: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Each slice of `x` along an axis as often in a row as `repeats` says; `()` flattens first.

    Shapes:
    `repeats` is one number, or a vector of one for each slice. How many slices there are depends on its values, so
    an array is evaluated.

    Errors:
    Where the repeats are not integers, are negative, or do not fit the axis, and for an array of them under
    `compile` and `vmap`, where there are no values.

    Example:
        >>> mx.repeat_interleave(mx.array([1, 2, 3]), mx.array([2, 0, 1]))
        array([1, 1, 3], dtype=int32)
    """
def reset_peak_memory() -> None:
    """Counts the most memory in use anew.

    Example:
        >>> mx.reset_peak_memory()
        >>> mx.get_peak_memory() == mx.get_active_memory()
        True
    """
def reshape(a: _Scalar | array, shape: int | Sequence[int], *, stream: _StreamOrDevice = ...) -> array:
    """The elements, in row-major order, under another shape; one size may be −1: what is left.

    Errors:
    Where the count of elements changes.

    Example:
        >>> mx.reshape(mx.arange(6), (2, -1))
        array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
    """
def result_type(*arrays_and_dtypes: Dtype | array) -> Dtype:
    """The dtype that an operation on all of these computes in.

    Example:
        >>> mx.result_type(mx.int32, mx.float16)
        mlx.core.float16
    """
def right_shift(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """⌊a/2ᵇ⌋; from the width on 0, or −1 for negative a.

    Dtypes:
    Two bools shift as `uint8`; floats are an error.

    Example:
        >>> mx.right_shift(mx.array([8, 16]), 3)
        array([1, 2], dtype=int32)
    """
def roll(a: _Scalar | array, shift: int | Sequence[int], axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Elements moved along axes by `shift` places, those past the end entering at the start.

    Shapes:
    One shift an axis, one for all axes named, or several for one axis, which add up. `()` rolls the
    flattened array.

    Example:
        >>> mx.roll(mx.array([1, 2, 3]), 1)
        array([3, 1, 2], dtype=int32)
    """
def round(a: _Scalar | array, decimals: int = ..., stream: _StreamOrDevice = ...) -> array:
    """The nearest number of `decimals` decimals, ties to even.

    Where `decimals` is negative it is one of tens, hundreds, …. What has fewer decimals than asked for
    stays as it is.

    Dtypes:
    Half types are computed in `float32`, complex numbers in parts. Integers stay as they are where
    `decimals` is not negative, and are computed as integers where it is: what does not fit wraps.

    Derivatives:
    0.

    Example:
        >>> mx.round(mx.array([1.26, 2.5]), decimals=1)
        array([1.3, 2.5], dtype=float32)
    """
def rsqrt(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """1/√x.

    Example:
        >>> mx.rsqrt(mx.array([4.0, 16.0]))
        array([0.5, 0.25], dtype=float32)
    """
def save(file: Any, arr: _Scalar | array) -> None:
    """Writes one array in NumPy's format.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> mx.save(file, mx.array([1, 2]))
        >>> file.getvalue()[1:6]
        b'NUMPY'
    """
def save_gguf(file: Any, arrays: dict[Any, Any], metadata: dict[Any, Any] | None = ...) -> None:
    """Writes arrays under their names, with metadata, as GGUF. What the metadata holds are arrays with at
    most one axis, texts, and lists of texts.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "weights.gguf")
        ...     mx.save_gguf(path, {"w": mx.array([1, 2])}, {"general.name": "two"})
        ...     weights, metadata = mx.load(path, return_metadata=True)
        >>> weights, metadata
        ({'w': array([1, 2], dtype=int32)}, {'general.name': 'two'})
    """
def save_safetensors(file: Any, arrays: dict[Any, Any], metadata: dict[Any, Any] | None = ...) -> None:
    """Writes arrays under their names, with metadata, as safetensors.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "weights.safetensors")
        ...     mx.save_safetensors(path, {"w": mx.array([1, 2])})
        ...     weights = mx.load(path)
        >>> weights
        {'w': array([1, 2], dtype=int32)}
    """
def savez(file: Any, *args: Any, **kwargs: Any) -> None:
    """Writes arrays, by position or by name, as an archive of files in NumPy's format.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "arrays.npz")
        ...     mx.savez(path, a=mx.array([1]), b=mx.array([2]))
        ...     arrays = mx.load(path)
        >>> sorted(arrays)
        ['a', 'b']
    """
def savez_compressed(file: Any, *args: Any, **kwargs: Any) -> None:
    """Writes arrays, by position or by name, as a compressed archive of files in NumPy's format.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "arrays.npz")
        ...     mx.savez_compressed(path, a=mx.array([1]))
        ...     arrays = mx.load(path)
        >>> sorted(arrays)
        ['a']
    """
def scan(f: Any, init: Any, xs: Any = ..., length: int | None = ..., reverse: bool = ...) -> Any:
    """A loop over the elements of arrays along their first axis. `f(carry, x)` takes what is carried and a tree of
    elements of `xs`, and gives what is carried on and a tree of elements of `ys`, or `None`; the result is what is
    carried in the end, and `ys`. Trees are of arrays and numbers in lists, tuples and dicts.

    `f` is called once, and the plan of what it records runs for each element: neither recording nor planning takes
    longer for more of them. Gradients are loops from the end to the start.

    Example:
        >>> total, sums = mx.scan(lambda c, x: (c + x, c + x), 0, mx.array([1, 2, 3]))
        >>> total, sums
        (array(6, dtype=int32), array([1, 3, 6], dtype=int32))
    """
def searchsorted(sorted_sequence: _Scalar | array, values: _Scalar | array, /, side: str = ..., sorter: _Scalar | array | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """For each value the index in a sorted vector before which it keeps that sorted.

    Shapes:
    The result has the shape of `values`. Of more sorted vectors, `[.., n]`, each is for the values at the same place of
    `[.., k]`.

    Dtypes:
    Gives `uint32`. Vector and values promote; NaN comes last. Complex numbers are ordered by their real parts, and
    where these are equal by their imaginary ones.

    Errors:
    Where `sorted` has no axis, or more than one, of which all but the last are not those of `values`.

    Example:
        >>> mx.searchsorted(mx.array([1, 3, 5]), mx.array([0, 3, 9]))
        array([0, 1, 3], dtype=uint32)
    """
def segment_max(a: _Scalar | array, segment_ids: _Scalar | array, num_segments: int, *, stream: _StreamOrDevice = ...) -> array:
    """The largest elements of the rows of each segment; −∞, or the least integer, for a segment without rows.

    Shapes:
    As `segment_sum`.

    Errors:
    As `segment_sum`.

    Example:
        >>> mx.segment_max(mx.array([1.0, 2.0, 4.0]), mx.array([0, 1, 0]), 2)
        array([4, 2], dtype=float32)
    """
def segment_mean(a: _Scalar | array, segment_ids: _Scalar | array, num_segments: int, *, stream: _StreamOrDevice = ...) -> array:
    """The means of the rows of each segment; NaN for a segment without rows.

    Shapes:
    As `segment_sum`.

    Dtypes:
    Integers and bool are taken as `float32`; half types are summed in `float32`.

    Errors:
    As `segment_sum`.

    Example:
        >>> mx.segment_mean(mx.array([1.0, 2.0, 4.0]), mx.array([0, 1, 0]), 2)
        array([2.5, 2], dtype=float32)
    """
def segment_min(a: _Scalar | array, segment_ids: _Scalar | array, num_segments: int, *, stream: _StreamOrDevice = ...) -> array:
    """The smallest elements of the rows of each segment; ∞, or the largest integer, for a segment without rows.

    Shapes:
    As `segment_sum`.

    Errors:
    As `segment_sum`, and for complex numbers.

    Example:
        >>> mx.segment_min(mx.array([1.0, 2.0, 4.0]), mx.array([0, 1, 0]), 2)
        array([1, 2], dtype=float32)
    """
def segment_sum(a: _Scalar | array, segment_ids: _Scalar | array, num_segments: int, *, stream: _StreamOrDevice = ...) -> array:
    """The sums of the rows of each segment; 0 for a segment without rows.

    Shapes:
    `x` `[n, ..]` and the number of each row's segment `[n]` give `[count, ..]`.

    Dtypes:
    Half types are summed in `float32`.

    Errors:
    Where the segments are not integers or not one a row, for bool, and when it runs where one is not below `count`.

    Example:
        >>> mx.segment_sum(mx.array([1, 2, 3]), mx.array([0, 2, 0]), 3)
        array([4, 0, 2], dtype=int32)
    """
def segmented_mm(a: _Scalar | array, b: _Scalar | array, segments: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """The products of parts of two matrices: for each pair of `segments` the product over the inner
    places from its first up to but without its second number.

    Shapes:
    a `[m, k]`, b `[k, n]` and segments `[.., 2]` give `[.., m, n]`.

    Errors:
    Where segments are not pairs of integers, or the operands not matrices of floats or complex numbers.

    Example:
        >>> mx.segmented_mm(mx.ones((1, 4)), mx.ones((4, 1)), mx.array([[0, 1], [1, 4]])).flatten()
        array([1, 3], dtype=float32)
    """
def set_cache_limit(limit: int) -> int:
    """Bounds the bytes of freed memory that are kept for reuse; gives the former bound.

    Example:
        >>> former = mx.set_cache_limit(1 << 30)
        >>> mx.set_cache_limit(former) == 1 << 30
        True
    """
def set_default_device(device: Device | DeviceType) -> None:
    """Makes a device the one that operations are recorded on.

    Example:
        >>> former = mx.default_device()
        >>> mx.set_default_device(mx.cpu)
        >>> mx.set_default_device(former)
    """
def set_default_stream(stream: Stream) -> None:
    """Makes a stream the default of its device.

    Example:
        >>> former = mx.default_stream(mx.cpu)
        >>> mx.set_default_stream(mx.new_stream(mx.cpu))
        >>> mx.set_default_stream(former)
    """
def set_hard_memory_limit(limit: int) -> int:
    """Bounds the memory of live arrays, where an evaluation that needs more, or an array of data of the host, raises
    `MemoryError`; gives the former bound.

    Example:
        >>> former = mx.set_hard_memory_limit(1 << 40)
        >>> mx.set_hard_memory_limit(former) == 1 << 40
        True
    """
def set_memory_fraction(fraction: float, device: Device | DeviceType | None = ...) -> int:
    """Bounds the memory of live arrays to a part, above 0 and at most 1, of what a device has, where an evaluation that
    needs more, or an array of data of the host, raises `MemoryError`; gives the bound in bytes. `set_hard_memory_limit`
    takes bytes, and the largest integer ends it.

    Example:
        >>> before = mx.get_hard_memory_limit()
        >>> mx.set_memory_fraction(0.5, mx.cpu) == mx.recommended_max(mx.cpu) // 2
        True
        >>> _ = mx.set_hard_memory_limit(before)
    """
def set_memory_limit(limit: int) -> int:
    """Sets a guideline for memory, as in MLX: where live arrays and freed memory that is kept come to more,
    the latter goes back to the system. Nothing fails; `set_hard_memory_limit` is a limit. Gives the
    former guideline.

    Example:
        >>> former = mx.set_memory_limit(1 << 40)
        >>> mx.set_memory_limit(former) == 1 << 40
        True
    """
def set_plan_cache_limit(limit: int) -> int:
    """Bounds the bytes of the plans that are kept for what is computed again, 64 MiB at first; gives the
    former bound. The least recently used go first.

    Example:
        >>> former = mx.set_plan_cache_limit(16 << 20)
        >>> mx.set_plan_cache_limit(former) == 16 << 20
        True
    """
def set_printoptions(precision: int = ...) -> None:
    """Sets how arrays are printed.

    Example:
        >>> mx.set_printoptions(precision=2)
        >>> mx.array(1.23456)
        array(1.23, dtype=float32)
        >>> mx.set_printoptions(precision=-1)
    """
def set_wired_limit(limit: int) -> int:
    """Notes how many bytes should stay in physical memory, which only Metal can be asked for; gives the former number.

    Example:
        >>> former = mx.set_wired_limit(1 << 30)
        >>> mx.set_wired_limit(former) == 1 << 30
        True
    """
def sigmoid(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """1/(1 + e⁻ˣ).

    Example:
        >>> mx.sigmoid(mx.array([0.0, 2.0]))
        array([0.5, 0.880797], dtype=float32)
    """
def sign(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """−1, 0 or 1 by the sign of x; NaN stays NaN; z/|z| of a complex number.

    Example:
        >>> mx.sign(mx.array([-3, 0, 3]))
        array([-1, 0, 1], dtype=int32)
    """
def signbit(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """True where the sign is −, also of −0 and of NaN.

    Errors:
    For complex numbers.

    Example:
        >>> mx.signbit(mx.array([-0.0, 0.0, -1.5]))
        array([True, False, True], dtype=bool)
    """
def sin(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """sin x.

    Example:
        >>> mx.sin(mx.array([0.0, 1.0]))
        array([0, 0.841471], dtype=float32)
    """
def sinc(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """sin πx/(πx), and 1 at 0.

    Example:
        >>> mx.sinc(mx.array([0.0, 0.5, 1.0]))
        array([1, 0.63662, 0], dtype=float32)
    """
def sinh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """sinh x.

    Example:
        >>> mx.sinh(mx.array([0.0, 1.0]))
        array([0, 1.1752], dtype=float32)
    """
def slice(a: _Scalar | array, start_indices: _Scalar | array, axes: None | int | Sequence[int], slice_size: int | Sequence[int], *, stream: _StreamOrDevice | None = ...) -> array:
    """The elements from `start` up to but without `stop`, `step` apart, along each axis.

    Example:
        >>> mx.slice(mx.arange(6), mx.array([2]), axes=[0], slice_size=(3,))
        array([2, 3, 4], dtype=int32)
    """
def slice_update(a: _Scalar | array, update: _Scalar | array, start_indices: _Scalar | array, axes: None | int | Sequence[int], *, stream: _StreamOrDevice | None = ...) -> array:
    """`x` with the elements from `start` up to but without `stop`, `step` apart along each axis,
    replaced by `update`.

    Example:
        >>> mx.slice_update(mx.zeros(4), mx.ones(2), mx.array([1]), axes=[0])
        array([0, 1, 1, 0], dtype=float32)
    """
def softmax(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., *, precise: bool = ..., stream: _StreamOrDevice | None = ...) -> array:
    """eˣ over the sum of eˣ along `axes`.

    Dtypes:
    Integers and bool are taken as `float32`; half types are computed in `float32`.

    Example:
        >>> mx.softmax(mx.array([0.0, 0.0]))
        array([0.5, 0.5], dtype=float32)
    """
def sort(a: _Scalar | array, axis: None | int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The elements of an axis in ascending order, NaN last; `()` flattens first. Complex numbers are ordered by
    their real parts, and where these are equal by their imaginary ones.

    Example:
        >>> mx.sort(mx.array([3, 1, 2]))
        array([1, 2, 3], dtype=int32)
    """
def split(a: _Scalar | array, /, indices_or_sections: Any, axis: int = ..., *, stream: _StreamOrDevice | None = ...) -> list[array]:
    """An axis divided into several arrays: into a count of equal parts, or before given indices.

    Errors:
    Where the axis does not divide into equal parts, or into more than 2²⁰.

    Example:
        >>> mx.split(mx.arange(4), 2)
        [array([0, 1], dtype=int32), array([2, 3], dtype=int32)]
    """
def sqrt(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """√x.

    Example:
        >>> mx.sqrt(mx.array([4.0, 9.0]))
        array([2, 3], dtype=float32)
    """
def square(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """x·x.

    Example:
        >>> mx.square(mx.array([2, 3]))
        array([4, 9], dtype=int32)
    """
def squeeze(a: _Scalar | array, axis: None | int | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Axes of size 1 removed; `()` removes all of them.

    Errors:
    Where an axis that is named is not of size 1.

    Example:
        >>> mx.squeeze(mx.ones((1, 2, 1))).shape
        (2,)
    """
def stack(arrays: Sequence[array], axis: int | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """Joins arrays along a new axis.

    Example:
        >>> mx.stack([mx.array([1, 2]), mx.array([3, 4])], axis=1)
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
def std(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., ddof: int = ..., *, correction: int | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The standard deviation; `correction` is another name of `ddof`.

    Example:
        >>> mx.std(mx.array([1.0, 3.0]))
        array(1, dtype=float32)
    """
def stop_gradient(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """`x` itself, as a constant: derivatives do not pass.

    Example:
        >>> mx.grad(lambda x: x * mx.stop_gradient(x))(mx.array(3.0)).item()
        3.0
    """
def stream(s: _StreamOrDevice) -> StreamContext:
    """A context in which operations are recorded on a stream or device.

    Example:
        >>> with mx.stream(mx.cpu):
        ...     x = mx.ones(2)
        >>> x
        array([1, 1], dtype=float32)
    """
def subtract(a: _Scalar | array, b: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """a − b.

    Dtypes:
    The operands promote; integers wrap; on bool, logical exclusive or.

    Example:
        >>> mx.subtract(mx.array([3, 4]), 1)
        array([2, 3], dtype=int32)
    """
def sum(a: _Scalar | array, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The sum over `axes`; 0 for nothing.

    Shapes:
    The axes go, or stay with size 1 where `keepdims` is true.

    Dtypes:
    Bool and small integers sum as 32-bit integers; integers wrap; half types accumulate in
    `float32`. Over no axes, as of a scalar, there is nothing to sum: the dtype stays, as in MLX.

    Example:
        >>> mx.sum(mx.array([[1, 2], [3, 4]]), axis=0)
        array([4, 6], dtype=int32)
    """
def swapaxes(a: _Scalar | array, axis1: int, axis2: int, *, stream: _StreamOrDevice = ...) -> array:
    """Two axes exchanged.

    Example:
        >>> mx.swapaxes(mx.ones((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
def switch(index: Any, branches: Sequence[Any], *operands: Any) -> Any:
    """What the branch of this number gives of the operands; a number outside of the branches counts as the nearest one.
    All are called once, and one is computed, as `cond` says.

    Example:
        >>> mx.switch(mx.array(1), [mx.negative, mx.square], mx.array(3.0))
        array(9, dtype=float32)
    """
def synchronize(stream: _StreamOrDevice | None = ...) -> None:
    """Waits for all work that was given to a stream or device.

    Example:
        >>> mx.synchronize()
    """
def take(a: _Scalar | array, indices: _Scalar | array, axis: None | int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The slices of `x` at `indices` along an axis, or the elements of the flattened array for `()`.

    Shapes:
    The axis is replaced by the axes of `indices`; a plain number removes it.

    Errors:
    Where the indices are not integers or the axis has no elements to take, and when it runs where an
    index is out of range.

    Example:
        >>> mx.take(mx.array([10, 20, 30]), mx.array([2, 0]))
        array([30, 10], dtype=int32)
    """
def take_along_axis(a: _Scalar | array, indices: _Scalar | array, axis: None | int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The elements of `x` at `indices` along an axis and at the same place along the others; with `()`
    those of all of `x`, at indices of one axis.

    Shapes:
    The result has the shape of the indices; the other axes broadcast.

    Errors:
    Where the indices are not integers, and when it runs where one is out of range.

    Example:
        >>> mx.take_along_axis(mx.array([[1, 2], [3, 4]]), mx.array([[1], [0]]), axis=1)
        array([[2],
               [3]], dtype=int32)
    """
def tan(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """tan x.

    Example:
        >>> mx.tan(mx.array([0.0, 1.0]))
        array([0, 1.55741], dtype=float32)
    """
def tanh(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """tanh x.

    Example:
        >>> mx.tanh(mx.array([0.0, 1.0]))
        array([0, 0.761594], dtype=float32)
    """
def tensordot(a: _Scalar | array, b: _Scalar | array, /, axes: Any = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The sums of products over pairs of axes.

    Shapes:
    The axes of `a` that are left, then those of `b`.

    Example:
        >>> mx.tensordot(mx.ones((2, 3)), mx.ones((3, 4)), axes=1).shape
        (2, 4)
    """
def tile(a: _Scalar | array, reps: int | Sequence[int], *, stream: _StreamOrDevice = ...) -> array:
    """The array repeated whole, `reps[i]` times along axis `i`; missing counts and missing axes are 1.

    Example:
        >>> mx.tile(mx.array([1, 2]), 2)
        array([1, 2, 1, 2], dtype=int32)
    """
def to_fp8(x: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """Floats as e4m3 numbers in `uint8`, rounded to nearest even; ±448 where they are larger, or NaN.

    Errors:
    Where `x` is not of floats.

    Example:
        >>> mx.to_fp8(mx.array([1.0, -448.0]))
        array([56, 254], dtype=uint8)
    """
def topk(a: _Scalar | array, k: int, axis: None | int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The `k` largest elements of an axis, in ascending order; `()` flattens first.

    Example:
        >>> mx.sort(mx.topk(mx.array([3, 1, 2]), k=2))
        array([2, 3], dtype=int32)
    """
def trace(a: _Scalar | array, /, offset: int = ..., axis1: int = ..., axis2: int = ..., dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """The sum of the diagonal of two axes, `offset` places above the main one.

    Example:
        >>> mx.trace(mx.array([[1, 2], [3, 4]]))
        array(5, dtype=int32)
    """
def transpose(a: _Scalar | array, axes: None | Sequence[int] = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The axes in another order: axis `i` of the result is axis `axes[i]` of `x`; `()` reverses them.

    Example:
        >>> mx.transpose(mx.ones((2, 3, 4)), (1, 0, 2)).shape
        (3, 2, 4)
    """
def trapezoid(y: _Scalar | array, x: _Scalar | array | None = ..., dx: float = ..., axis: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The area under the points of an axis by the trapezoidal rule. They are `dx` apart, or at the places `x`.

    Shapes:
    The axis goes; `x` is a vector along it, or broadcasts to `y`.

    Dtypes:
    The arrays promote; integers and bool are taken as `float32`; half types are summed in `float32`.

    Errors:
    Where there is no such axis, or `x` does not fit.

    Example:
        >>> mx.trapezoid(mx.array([1.0, 2.0, 3.0]), dx=0.5)
        array(2, dtype=float32)
    """
def tri(n: int, m: int | None = ..., k: int = ..., dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """A matrix of ones on and below the diagonal `offset` places above the main one.

    Example:
        >>> mx.tri(2, 3)
        array([[1, 0, 0],
               [1, 1, 0]], dtype=float32)
    """
def tril(x: _Scalar | array, k: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`x` with zeros above the diagonal `offset` places above the main one of its last two axes.

    Example:
        >>> mx.tril(mx.ones((2, 2)))
        array([[1, 0],
               [1, 1]], dtype=float32)
    """
def tril_indices(n: int, k: int = ..., m: int | None = ..., *, stream: _StreamOrDevice | None = ...) -> tuple[array, array]:
    """The rows and the columns of the elements on and below the diagonal `offset` places above the main one, as
    `int32`.

    Example:
        >>> mx.tril_indices(2)
        (array([0, 1, 1], dtype=int32), array([0, 0, 1], dtype=int32))
    """
def triu(x: _Scalar | array, k: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """`x` with zeros below the diagonal `offset` places above the main one of its last two axes.

    Example:
        >>> mx.triu(mx.ones((2, 2)))
        array([[1, 1],
               [0, 1]], dtype=float32)
    """
def triu_indices(n: int, k: int = ..., m: int | None = ..., *, stream: _StreamOrDevice | None = ...) -> tuple[array, array]:
    """The rows and the columns of the elements on and above the diagonal `offset` places above the main one, as
    `int32`.

    Example:
        >>> mx.triu_indices(2)
        (array([0, 0, 1], dtype=int32), array([0, 1, 1], dtype=int32))
    """
def trunc(a: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """x without what is behind its point: the next integer towards 0, in x's dtype.

    Errors:
    For complex numbers.

    Example:
        >>> mx.trunc(mx.array([1.8, -1.8]))
        array([1, -1], dtype=float32)
    """
def unflatten(a: _Scalar | array, axis: int, shape: int | Sequence[int], *, stream: _StreamOrDevice = ...) -> array:
    """One axis split into several; one size may be −1: what is left.

    Example:
        >>> mx.unflatten(mx.ones((2, 12)), 1, (3, 4)).shape
        (2, 3, 4)
    """
def unfold(a: _Scalar | array, kernel_size: int | Sequence[int], stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ..., *, data_format: str = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The windows of an image as rows: their product with the flattened weight of a convolution is the convolution.

    Shapes:
    `[N, input.., C]` gives `[N, windows, taps·C]`, with any number of spatial axes; the channels of a tap are side by side.
    With channels first `[N, C, input..]` gives `[N, C·taps, windows]`, as in PyTorch.

    Errors:
    For images without spatial axes, windows that do not fit, and windows, strides and dilations of 0.

    Example:
        >>> mx.unfold(mx.array([[[1], [2], [3]]]), 2)
        array([[[1, 2],
                [2, 3]]], dtype=int32)
        >>> mx.unfold(mx.ones((1, 2, 4, 4)), 3, data_format="channels_first").shape
        (1, 18, 4)
    """
def unique(a: _Scalar | array, /, size: int | None = ..., return_index: bool = ..., return_inverse: bool = ..., return_counts: bool = ..., fill_value: _Scalar | array | None = ..., *, stream: _StreamOrDevice | None = ...) -> Any:
    """The different elements of an array in ascending order; each NaN is one of its own.

    Shapes:
    `size` says how many there are to be: the smallest of them where there are more, and `fill` behind
    them, or else the first, where there are fewer. Without it there are as many as there are different
    elements, which are computed to see that.

    Errors:
    Where an empty array is to be filled with its first element; without `size` under `compile` and `vmap`,
    where there are no values.

    Example:
        >>> mx.unique(mx.array([3, 1, 3, 2]))
        array([1, 2, 3], dtype=int32)
    """
def unstack(x: _Scalar | array, /, *, axis: int = ..., stream: _StreamOrDevice | None = ...) -> tuple[Any, ...]:
    """The elements along an axis as arrays of their own, without that axis.

    Example:
        >>> mx.unstack(mx.array([[1, 2], [3, 4]]))
        (array([1, 2], dtype=int32), array([3, 4], dtype=int32))
    """
def value_and_grad(fun: Any, argnums: Any = ..., argnames: Any = ...) -> Any:
    """A function that gives the value of `fun` and its gradient; see `grad`. The value may be a tuple
    whose first item is what the gradient is taken of.

    Example:
        >>> value, gradient = mx.value_and_grad(lambda x: x**2)(mx.array(3.0))
        >>> value.item(), gradient.item()
        (9.0, 6.0)
    """
def var(a: _Scalar | array, /, axis: None | int | Sequence[int] = ..., keepdims: bool = ..., ddof: int = ..., *, correction: int | None = ..., stream: _StreamOrDevice | None = ...) -> array:
    """The variance; `correction` is another name of `ddof`.

    Example:
        >>> mx.var(mx.array([1.0, 3.0]))
        array(1, dtype=float32)
    """
def vecdot(a: _Scalar | array, b: _Scalar | array, axis: int = ..., *, stream: _StreamOrDevice = ...) -> array:
    """The sum of products over one axis of both operands, the conjugate of `a` with `b`.

    Errors:
    Where an operand has no axis, or there is no such axis.

    Example:
        >>> mx.vecdot(mx.array([[1, 2], [3, 4]]), mx.array([[1, 1], [1, 1]]))
        array([3, 7], dtype=int32)
    """
def view(a: _Scalar | array, dtype: Dtype, stream: _StreamOrDevice = ...) -> array:
    """The bytes of `x`, in the machine's order, as elements of another dtype.

    Shapes:
    The last axis grows or shrinks where the dtypes differ in size.

    Dtypes:
    Bool is read and written as `uint8`, and true for any byte but 0.

    Errors:
    Where the bytes of the last axis do not divide into elements, or there is no axis.

    Example:
        >>> mx.view(mx.array([1.0]), mx.uint32)
        array([1065353216], dtype=uint32)
    """
def vjp(fun: Any, primals: Sequence[array], cotangents: Sequence[array]) -> tuple[list[array], list[array]]:
    """The outputs of `fun`, and the products of `cotangents` with its Jacobian.

    Example:
        >>> values, cotangents = mx.vjp(lambda x: x * x, [mx.array(3.0)], [mx.array(1.0)])
        >>> cotangents
        [array(6, dtype=float32)]
    """
def vmap(fun: Any, in_axes: Any = ..., out_axes: Any = ...) -> Any:
    """A function that runs `fun` over a batch, which arguments and results carry along these axes.

    Example:
        >>> mx.vmap(lambda x: mx.sum(x))(mx.array([[1, 2], [3, 4]]))
        array([3, 7], dtype=int32)
    """
def where(condition: _Scalar | array, x: _Scalar | array, y: _Scalar | array, *, stream: _StreamOrDevice = ...) -> array:
    """`a` where the condition is true and `b` elsewhere.

    Shapes:
    All three broadcast.

    Dtypes:
    A condition that is not bool is true where it is not 0; `a` and `b` promote.

    Example:
        >>> mx.where(mx.array([True, False]), 1, mx.array([2, 3]))
        array([1, 3], dtype=int32)
    """
def while_loop(cond_fun: Any, body_fun: Any, init_val: Any, *, max_iterations: int | None = ...) -> Any:
    """A loop that runs `body_fun` as long as `cond_fun`, of what is carried, is true. Both are called once; what is
    carried is a tree of arrays and numbers, and keeps its shapes and dtypes. The device is waited for in each
    iteration. It runs at most `max_iterations` times where that is given, and has gradients then: what these need is
    kept for so many iterations. Without it there is none, since nobody knows how often it runs.

    Example:
        >>> halves = mx.while_loop(lambda c: c["x"] > 1, lambda c: {"x": c["x"] / 2, "n": c["n"] + 1},
        ...                        {"x": 10.0, "n": 0})
        >>> halves["n"]
        array(4, dtype=int32)
        >>> root = lambda a: mx.while_loop(lambda x: mx.abs(x * x - a) > 1e-4, lambda x: (x + a / x) / 2, 1.0, max_iterations=20)
        >>> round(mx.grad(root)(mx.array(4.0)).item(), 3)
        0.25
    """
def xlogy(x: _Scalar | array, y: _Scalar | array, stream: _StreamOrDevice = ...) -> array:
    """x·log y, and 0 where x is 0, whatever y is but NaN.

    Shapes:
    The operands broadcast.

    Errors:
    For complex numbers.

    Example:
        >>> mx.xlogy(mx.array([0.0, 2.0]), mx.array([0.0, 1.0]))
        array([0, 0], dtype=float32)
    """
def zeros(shape: int | Sequence[int], dtype: Dtype | None = ..., *, stream: _StreamOrDevice = ...) -> array:
    """Zeros.

    Example:
        >>> mx.zeros((2, 2))
        array([[0, 0],
               [0, 0]], dtype=float32)
    """
def zeros_like(a: _Scalar | array, dtype: Dtype | None = ..., *, stream: _StreamOrDevice | None = ...) -> array:
    """Zeros with `x`'s shape and dtype.

    Example:
        >>> mx.zeros_like(mx.array([1, 2]))
        array([0, 0], dtype=int32)
    """
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

def get_array_buffer_size(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there yet: raises `NotImplementedError`."""
