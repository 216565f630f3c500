"""Between NumPy's arrays, with the dtypes of ml_dtypes, and arrays with ONNX's element types."""

from typing import Any

import cupola.core as mx

_NAMES = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "complex64": "COMPLEX64",
}
_SMALL = {
    "float8_e4m3fn": "FLOAT8E4M3FN",
    "float8_e4m3fnuz": "FLOAT8E4M3FNUZ",
    "float8_e5m2": "FLOAT8E5M2",
    "float8_e5m2fnuz": "FLOAT8E5M2FNUZ",
    "float8_e8m0fnu": "FLOAT8E8M0",
    "float4_e2m1fn": "FLOAT4E2M1",
    "float6_e2m3fn": "FLOAT6E2M3",
    "float6_e3m2fn": "FLOAT6E3M2",
    "uint4": "UINT4",
    "int4": "INT4",
    "uint2": "UINT2",
    "int2": "INT2",
}
_WIDER = {"uint4": "uint8", "int4": "int8", "uint2": "uint8", "int2": "int8"}


def element_of(array: mx.array) -> str:
    """The element type whose elements are those of the array's dtype."""
    return _NAMES[str(array.dtype).rpartition(".")[2].removesuffix("_")]


def held(value: Any) -> tuple[mx.array, str]:
    """An array of NumPy as one that holds its elements, with their element type."""
    import numpy as np

    value = np.asarray(value)
    name = value.dtype.name
    if name in _SMALL:
        wider = _WIDER.get(name, "float32")
        return mx.array(value.astype(wider), dtype=getattr(mx, wider)), _SMALL[name]
    if name not in _NAMES:
        raise TypeError(f"[onnx] arrays of {name} are not read")
    dtype = mx.bool_ if name == "bool" else getattr(mx, name)
    if name == "bfloat16":
        return mx.array(value.astype("float32")).astype(dtype), _NAMES[name]
    return mx.array(value, dtype=dtype), _NAMES[name]


def numpy_of(value: Any) -> Any:
    """What a model gives as NumPy has it."""
    import numpy as np

    if value is None:
        return None
    if isinstance(value, list):
        return [numpy_of(one) for one in value]
    array, element = value
    names = {element: name for name, element in (_NAMES | _SMALL).items()}
    name = names[element]
    if name == "bfloat16" or name in _SMALL:
        import ml_dtypes

        if name == "bfloat16":
            array = array.astype(mx.float32)
        return np.array(array).astype(getattr(ml_dtypes, name))
    return np.array(array)
