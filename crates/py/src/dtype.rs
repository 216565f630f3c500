//! Element types as Python sees them: `Dtype`, its categories, `finfo` and `iinfo`.

use cupola::DType;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::array::PyArray;
use crate::error::{raise, wrong_value};
use crate::generated::docs;

/// The type of an array's elements.
#[doc = docs!(Dtype)]
#[pyclass(frozen, eq, hash, name = "Dtype", module = "cupola.core", from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dtype(pub DType);

#[pymethods]
impl Dtype {
    /// The size of one element in bytes.
    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    fn __repr__(&self) -> String {
        format!("mlx.core.{}", self.0)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("cupola.core")?.getattr("_dtype")?, (self.0.name(),)))
    }
}

/// What the array API standard asks of this library: devices, dtypes, capabilities.
#[doc = docs!(__array_namespace_info__)]
#[pyfunction]
pub fn __array_namespace_info__(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("cupola.array_api")?.call_method0("__array_namespace_info__")
}

/// The dtype of a name: how pickles are read.
#[doc = docs!(_dtype)]
#[pyfunction]
pub fn _dtype(name: &str) -> PyResult<Dtype> {
    name.parse().map(Dtype).map_err(raise)
}

/// What kinds of element types there are: each is within the one that it is derived from.
#[doc = docs!(DtypeCategory)]
#[pyclass(frozen, eq, eq_int, hash, name = "DtypeCategory", module = "cupola.core", from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types, missing_docs)]
pub enum DtypeCategory {
    complexfloating,
    floating,
    inexact,
    signedinteger,
    unsignedinteger,
    integer,
    number,
    generic,
}

use DtypeCategory as C;

impl DtypeCategory {
    /// The categories by name.
    pub const ALL: [(&'static str, DtypeCategory); 8] = [
        ("complexfloating", C::complexfloating),
        ("floating", C::floating),
        ("inexact", C::inexact),
        ("signedinteger", C::signedinteger),
        ("unsignedinteger", C::unsignedinteger),
        ("integer", C::integer),
        ("number", C::number),
        ("generic", C::generic),
    ];

    fn of(dtype: DType) -> Self {
        match dtype {
            DType::Bool => C::generic,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => C::unsignedinteger,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => C::signedinteger,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => C::floating,
            DType::C32 | DType::C64 => C::complexfloating,
        }
    }

    fn parent(self) -> Option<Self> {
        match self {
            C::complexfloating | C::floating => Some(C::inexact),
            C::signedinteger | C::unsignedinteger => Some(C::integer),
            C::inexact | C::integer => Some(C::number),
            C::number => Some(C::generic),
            C::generic => None,
        }
    }

    fn is_within(self, other: Self) -> bool {
        self == other || self.parent().is_some_and(|p| p.is_within(other))
    }
}

/// A `Dtype` or a `DtypeCategory`.
pub enum Class {
    Dtype(Dtype),
    Category(DtypeCategory),
}

impl<'py> FromPyObject<'_, 'py> for Class {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(dtype) = object.extract() {
            return Ok(Class::Dtype(dtype));
        }
        let category = object.extract().map(Class::Category);
        category.map_err(|_| wrong_value(format!("{object:?} is neither a dtype nor a category")))
    }
}

/// Whether the first dtype or category is, or is within, the second.
#[doc = docs!(issubdtype)]
#[pyfunction]
pub fn issubdtype(arg1: Class, arg2: Class) -> bool {
    match (arg1, arg2) {
        (Class::Dtype(a), Class::Dtype(b)) => a == b,
        (Class::Dtype(a), Class::Category(b)) => DtypeCategory::of(a.0).is_within(b),
        (Class::Category(a), Class::Category(b)) => a.is_within(b),
        (Class::Category(_), Class::Dtype(_)) => false,
    }
}

/// The dtype of an array, or a dtype.
pub struct Typed(DType);

impl<'py> FromPyObject<'_, 'py> for Typed {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(dtype) = object.extract::<Dtype>() {
            return Ok(Typed(dtype.0));
        }
        let array = object.cast::<PyArray>().map(|a| Typed(a.get().get().dtype()));
        array.map_err(|_| wrong_value(format!("{object:?} is neither an array nor a dtype")))
    }
}

/// The dtype that an operation on all of these computes in.
#[doc = docs!(result_type)]
#[pyfunction]
#[pyo3(signature = (*arrays_and_dtypes))]
pub fn result_type(arrays_and_dtypes: Vec<Typed>) -> PyResult<Dtype> {
    let all = arrays_and_dtypes.iter().map(|t| t.0);
    let found = all.reduce(DType::promote);
    found
        .map(Dtype)
        .ok_or_else(|| wrong_value("result_type: at least one array or dtype is required"))
}

/// Whether values of one dtype become the other where the two are promoted.
#[doc = docs!(can_cast)]
#[pyfunction]
pub fn can_cast(from_: Typed, to: Dtype) -> bool {
    from_.0.promote(to.0) == to.0
}

/// Whether a dtype is another dtype, or of a kind that the array API standard names.
#[doc = docs!(isdtype)]
#[pyfunction]
pub fn isdtype(dtype: Dtype, kind: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(other) = kind.extract::<Dtype>() {
        return Ok(dtype == other);
    }
    if let Ok(all) = kind.cast::<PyTuple>() {
        for one in all.iter() {
            if isdtype(dtype, &one)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let category = DtypeCategory::of(dtype.0);
    let Ok(name) = kind.cast::<PyString>() else {
        return Err(wrong_value("isdtype: kind must be a dtype, a string or a tuple of them"));
    };
    Ok(match &*name.to_cow()? {
        "bool" => dtype.0 == DType::Bool,
        "signed integer" => category == C::signedinteger,
        "unsigned integer" => category == C::unsignedinteger,
        "integral" => category.is_within(C::integer),
        "real floating" => category == C::floating,
        "complex floating" => category == C::complexfloating,
        "numeric" => category.is_within(C::number),
        other => return Err(wrong_value(format!("isdtype: '{other}' is no kind of dtype"))),
    })
}

/// The limits of a floating-point dtype.
#[doc = docs!(finfo)]
#[pyclass(frozen, name = "finfo", module = "cupola.core")]
#[allow(non_camel_case_types)]
pub struct finfo(DType, [f64; 4], u32);

#[pymethods]
impl finfo {
    #[new]
    fn new(dtype: Dtype) -> PyResult<Self> {
        let dtype = dtype.0;
        let real = dtype.real();
        let (limits, bits) = match real {
            DType::F16 => ([-65504.0, 65504.0, 2f64.powi(-10), 2f64.powi(-14)], 16),
            DType::BF16 => {
                let max = half::bf16::MAX.to_f64();
                ([-max, max, 2f64.powi(-7), 2f64.powi(-126)], 16)
            }
            DType::F32 => {
                let max = f64::from(f32::MAX);
                ([-max, max, f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE)], 32)
            }
            DType::F64 => ([f64::MIN, f64::MAX, f64::EPSILON, f64::MIN_POSITIVE], 64),
            _ => return Err(wrong_value(format!("finfo: {dtype} is not a floating-point dtype"))),
        };
        Ok(finfo(real, limits, bits))
    }

    /// The smallest number.
    #[getter]
    fn min(&self) -> f64 {
        self.1[0]
    }

    /// The largest number.
    #[getter]
    fn max(&self) -> f64 {
        self.1[1]
    }

    /// The distance from 1 to the next larger number.
    #[getter]
    fn eps(&self) -> f64 {
        self.1[2]
    }

    /// The smallest positive number with all its digits.
    #[getter]
    fn smallest_normal(&self) -> f64 {
        self.1[3]
    }

    /// How many bits a real number takes.
    #[getter]
    fn bits(&self) -> u32 {
        self.2
    }

    /// The dtype; of complex numbers that of their parts.
    #[getter]
    fn dtype(&self) -> Dtype {
        Dtype(self.0)
    }

    fn __repr__(&self) -> String {
        let [min, max] = [self.1[0], self.1[1]].map(|v| crate::format::general(v, 6));
        format!("finfo(min={min}, max={max}, dtype={})", self.0)
    }
}

/// The limits of an integer dtype.
#[doc = docs!(iinfo)]
#[pyclass(frozen, name = "iinfo", module = "cupola.core")]
#[allow(non_camel_case_types)]
pub struct iinfo(DType, i128, i128);

#[pymethods]
impl iinfo {
    #[new]
    fn new(dtype: Dtype) -> PyResult<Self> {
        let dtype = dtype.0;
        if !dtype.is_integer() {
            return Err(wrong_value(format!("iinfo: {dtype} is not an integer dtype")));
        }
        let bits = dtype.size() as u32 * 8;
        Ok(match dtype.is_signed() {
            true => iinfo(dtype, -(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            false => iinfo(dtype, 0, (1i128 << bits) - 1),
        })
    }

    /// The smallest number.
    #[getter]
    fn min(&self) -> i128 {
        self.1
    }

    /// The largest number.
    #[getter]
    fn max(&self) -> i128 {
        self.2
    }

    /// How many bits a number takes.
    #[getter]
    fn bits(&self) -> usize {
        self.0.size() * 8
    }

    /// The dtype.
    #[getter]
    fn dtype(&self) -> Dtype {
        Dtype(self.0)
    }

    fn __repr__(&self) -> String {
        format!("iinfo(min={}, max={}, dtype={})", self.1, self.2, self.0)
    }
}
