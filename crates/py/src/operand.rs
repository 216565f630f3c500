//! Arguments: from what Python gives to what `ops` takes.

use cupola::ops::{Axes, DataFormat, Operand, Sizes};
use cupola::{Array, DType, Scalar, Shape};
use pyo3::exceptions::{PyMemoryError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet,
    PyString, PyTuple,
};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::error::{raise, wrong_type, wrong_value};
use crate::read;

/// A size of an input: a number, or a name.
#[derive(FromPyObject)]
pub enum Sized {
    Known(usize),
    Named(String),
}

/// An operand: an array, a number of weak dtype, or another library's array. The last two take the dtype of
/// the array that they meet; where they meet each other, both have their own.
#[derive(Clone)]
pub enum Opd {
    Array(Array),
    Scalar(Scalar),
    Foreign(Foreign),
}

/// Another library's array.
#[derive(Clone)]
pub struct Foreign {
    /// As it is by itself: `float32` where it is of `float64`.
    pub array: Array,
    /// The `float64` that it was, for what holds that, or does not hold what is rounded.
    pub exact: Option<Array>,
}

impl Foreign {
    /// Its elements in this dtype, rounded once.
    fn of(&self, dtype: DType) -> PyResult<Array> {
        match &self.exact {
            Some(exact) if dtype != self.array.dtype() => read::narrowed(exact, dtype),
            _ => cupola::ops::astype(&self.array, dtype).map_err(raise),
        }
    }
}

impl<'a> From<&'a Opd> for Operand<'a> {
    fn from(operand: &'a Opd) -> Self {
        match operand {
            Opd::Array(array) | Opd::Foreign(Foreign { array, .. }) => Operand::Array(array),
            Opd::Scalar(value) => Operand::Scalar(*value),
        }
    }
}

impl Opd {
    /// The operand as an array.
    pub fn into_array(self) -> PyResult<Array> {
        match self {
            Opd::Array(array) | Opd::Foreign(Foreign { array, .. }) => Ok(array),
            Opd::Scalar(value) => scalar_array(value, None),
        }
    }

    /// The operand beside elements of `dtype`: doubles of another library keep their digits beside doubles.
    pub fn keeping_doubles(self, dtype: DType) -> Opd {
        match self {
            Opd::Foreign(Foreign { exact: Some(exact), .. }) if dtype == DType::F64 => {
                Opd::Array(exact)
            }
            own => own,
        }
    }

    /// The operand as an array, [keeping doubles](Opd::keeping_doubles).
    pub fn array_beside(self, other: DType) -> PyResult<Array> {
        self.keeping_doubles(other).into_array()
    }

    /// The dtype that it has, where that is an array's of our own.
    pub fn own_dtype(&self) -> Option<DType> {
        match self {
            Opd::Array(array) => Some(array.dtype()),
            Opd::Scalar(_) | Opd::Foreign(_) => None,
        }
    }

    /// The operand for elements of `dtype`, which it is cast to: so another library's array becomes one of it.
    ///
    /// # Errors
    /// As [`Opd::beside`].
    pub fn cast_to(self, dtype: DType) -> PyResult<Opd> {
        match self {
            Opd::Foreign(foreign) => foreign.of(dtype).map(Opd::Array),
            own => own.beside(dtype),
        }
    }

    /// The operand beside elements of `dtype`, [keeping doubles](Opd::keeping_doubles). An error where it is an
    /// integer that `dtype` does not hold.
    pub fn beside(self, dtype: DType) -> PyResult<Opd> {
        let value = match self {
            Opd::Scalar(Scalar::Int(value)) => i128::from(value),
            Opd::Scalar(Scalar::Uint(value)) => i128::from(value),
            own => return Ok(own.keeping_doubles(dtype)),
        };
        match holds(dtype, value) {
            true => Ok(self),
            false => {
                Err(wrong_value(format!("Converting {value} to {dtype} would result in overflow.")))
            }
        }
    }

    /// The operand, in the dtype of `other` where it is another library's array and that is one.
    fn meeting(self, other: &Opd) -> PyResult<Opd> {
        match (self, other) {
            (Opd::Foreign(foreign), Opd::Array(other)) => {
                Ok(Opd::Array(foreign.of(other.dtype())?))
            }
            // Only an array of ours tells a number its dtype.
            (Opd::Scalar(value), Opd::Foreign(_)) => {
                let array = scalar_array(value, None)?;
                Ok(Opd::Foreign(Foreign { array, exact: None }))
            }
            (own, Opd::Array(other)) => {
                // Beside bools a number has the dtype that it has by itself: not the wider one.
                let dtype = if other.dtype() == DType::Bool { DType::I32 } else { other.dtype() };
                own.beside(dtype)
            }
            (own, _) => Ok(own),
        }
    }
}

/// Whether a dtype holds a number, where it counts. A negative one beside `uint64` is its bits, as
/// in MLX.
fn holds(dtype: DType, value: i128) -> bool {
    let (low, high): (i128, i128) = match dtype {
        DType::U8 => (0, u8::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::I64 => (i64::MIN.into(), i64::MAX.into()),
        _ => return true,
    };
    (low..=high).contains(&value)
}

/// Two operands that meet.
#[inline]
pub fn meet(a: Opd, b: Opd) -> PyResult<(Opd, Opd)> {
    if let (Opd::Array(_), Opd::Array(_)) = (&a, &b) {
        return Ok((a, b));
    }
    let a = a.meeting(&b)?;
    let b = b.meeting(&a)?;
    Ok((a, b))
}

/// A number as an array: of `dtype`, or of the dtype that such a number has by itself.
pub fn scalar_array(value: Scalar, dtype: Option<DType>) -> PyResult<Array> {
    let dtype = dtype.unwrap_or(match value {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(v) if i32::try_from(v).is_ok() => DType::I32,
        Scalar::Int(_) => DType::I64,
        Scalar::Uint(_) => DType::U64,
        Scalar::Float(_) => DType::F32,
        Scalar::Complex(..) => DType::C64,
    });
    cupola::ops::full(Shape::scalar(), value, dtype).map_err(raise)
}

/// The number that a Python object is.
#[inline]
pub fn scalar(object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if object.is_exact_instance_of::<PyFloat>() {
        return Ok(Some(Scalar::Float(object.extract()?)));
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(Some(Scalar::Bool(object.extract()?)));
    }
    if object.is_instance_of::<PyInt>() {
        return integer(object).map(Some);
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Some(Scalar::Float(object.extract()?)));
    }
    if object.is_instance_of::<PyComplex>() {
        let value: num_complex::Complex64 = object.extract()?;
        return Ok(Some(Scalar::Complex(value.re as f32, value.im as f32)));
    }
    Ok(None)
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if let Ok(value) = object.extract::<i64>() {
        return Ok(Scalar::Int(value));
    }
    match object.extract::<u64>() {
        Ok(value) => Ok(Scalar::Uint(value)),
        Err(_) => Err(wrong_value(format!("{object} does not fit in 64 bits"))),
    }
}

/// Whether an object is Python's own sequence of bytes.
pub fn is_bytes(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>()
}

/// The operand that a Python object is; `None` where it is none.
#[inline]
pub fn operand(object: &Bound<'_, PyAny>) -> PyResult<Option<Opd>> {
    if let Ok(array) = object.cast_exact::<PyArray>() {
        return Ok(Some(Opd::Array(array.get().get())));
    }
    if let Some(value) = scalar(object)? {
        return Ok(Some(Opd::Scalar(value)));
    }
    if let Ok(array) = object.cast::<PyArray>() {
        return Ok(Some(Opd::Array(array.get().get())));
    }
    if is_bytes(object) {
        let array = read::array(object, None)?;
        return Ok(Some(Opd::Foreign(Foreign { array, exact: None })));
    }
    Ok(match read::operand_like(object)? {
        Some(operand) => Some(operand),
        // As `complex` takes it.
        None if is_complex_like(object)? => {
            // What says that it is a number and is none is no operand.
            let Ok(value) = object.py().get_type::<PyComplex>().call1((object,)) else {
                return Ok(None);
            };
            let value: num_complex::Complex64 = value.extract()?;
            Some(Opd::Scalar(Scalar::Complex(value.re as f32, value.im as f32)))
        }
        None => None,
    })
}

fn is_complex_like(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    for name in ["__complex__", "__float__", "__index__"] {
        if object.get_type().hasattr(name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl<'py> FromPyObject<'_, 'py> for Opd {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        operand(&object)?.ok_or_else(|| invalid(&object))
    }
}

/// A key of random numbers.
pub struct Key(Array);

impl std::ops::Deref for Key {
    type Target = Array;

    fn deref(&self) -> &Array {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Key {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match operand(&object)? {
            None | Some(Opd::Scalar(_)) => Err(not_an_array(&object)),
            Some(found) => found.into_array().map(Key),
        }
    }
}

/// An array or a number, where MLX takes nothing else for either.
pub struct Given(pub Opd);

impl<'py> FromPyObject<'_, 'py> for Given {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        operand(&object)?.map(Given).ok_or_else(|| not_an_array(&object))
    }
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map(|name| name.to_string()).unwrap_or_default()
}

fn not_an_array(object: &Bound<'_, PyAny>) -> PyErr {
    wrong_type(format!("an array is expected, not {}", type_name(object)))
}

fn invalid(object: &Bound<'_, PyAny>) -> PyErr {
    let name = type_name(object);
    match object.is_none() {
        true => wrong_type("an array or a number is expected, not None"),
        false => wrong_value(format!("Invalid type {name} received in array initialization.")),
    }
}

/// An array, or a number taken as one.
#[derive(Clone)]
pub struct Arr {
    array: Array,
    /// The `float64` of another library that it was, where it was that and was not rounded for good.
    exact: Option<Array>,
}

impl Arr {
    /// The array.
    pub fn into_array(self) -> Array {
        self.array
    }

    /// Gives the doubles of another library their digits back.
    fn keep_exact(&mut self) {
        if let Some(exact) = self.exact.take() {
            self.array = exact;
        }
    }

    /// As [`keep_doubles`], beside an operand.
    pub fn keep_doubles_beside(&mut self, operand: &Opd) {
        if operand.own_dtype() == Some(DType::F64) {
            self.keep_exact();
        }
    }
}

impl From<Array> for Arr {
    fn from(array: Array) -> Self {
        Arr { array, exact: None }
    }
}

impl std::ops::Deref for Arr {
    type Target = Array;

    fn deref(&self) -> &Array {
        &self.array
    }
}

/// Gives the doubles of other libraries among arrays that meet their digits back, where one of our own is of doubles.
pub fn keep_doubles<'a>(arrays: impl IntoIterator<Item = &'a mut Arr>) {
    let mut arrays = arrays.into_iter().collect::<SmallVec<[_; 4]>>();
    if arrays.iter().any(|x| x.dtype() == DType::F64) {
        arrays.iter_mut().for_each(|x| x.keep_exact());
    }
}

impl<'py> FromPyObject<'_, 'py> for Arr {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyArray>() {
            return Ok(array.get().get().into());
        }
        // Bytes are an operand beside an array, no array by themselves.
        if is_bytes(&object) {
            return Err(not_an_array(&object));
        }
        let found = operand(&object)?.ok_or_else(|| not_an_array(&object))?;
        Ok(match found {
            Opd::Foreign(Foreign { array, exact }) => Arr { array, exact },
            own => own.into_array()?.into(),
        })
    }
}

/// An array or a number where MLX takes either: what is neither is an error of its value.
pub struct Numeric(Arr);

impl std::ops::Deref for Numeric {
    type Target = Arr;

    fn deref(&self) -> &Arr {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Numeric {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        object.extract::<Opd>()?.into_array().map(|array| Numeric(array.into()))
    }
}

/// An array of real numbers, or a number taken as one: MLX's linear algebra takes no others.
pub struct Real(pub Arr);

impl std::ops::Deref for Real {
    type Target = Arr;

    fn deref(&self) -> &Arr {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Real {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array = object.extract::<Arr>()?;
        match array.dtype() {
            DType::C32 | DType::C64 => {
                let aval = array.aval();
                Err(wrong_value(format!("linalg: real matrices are expected, not {aval}")))
            }
            _ => Ok(Real(array)),
        }
    }
}

/// What is an integer, or can be used as one; `None` for the rest, without an exception where that is a tuple or list.
fn index(object: &Bound<'_, PyAny>) -> Option<isize> {
    let is_sequence =
        object.is_exact_instance_of::<PyTuple>() || object.is_exact_instance_of::<PyList>();
    if is_sequence { None } else { object.extract().ok() }
}

/// An integer, or a sequence of them: what has an order and can be indexed, as MLX asks.
pub fn integers(object: &Bound<'_, PyAny>, what: &str) -> PyResult<SmallVec<[isize; 4]>> {
    if let Some(one) = index(object) {
        return Ok(SmallVec::from_slice(&[one]));
    }
    sequence(object)?
        .ok_or_else(|| wrong_type(format!("{what} must be an integer or a sequence of them")))
}

/// The integers in a sequence; `None` where the object is no sequence of integers.
pub fn sequence(object: &Bound<'_, PyAny>) -> PyResult<Option<SmallVec<[isize; 4]>>> {
    fn all<'py>(
        mut items: impl ExactSizeIterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Option<SmallVec<[isize; 4]>>> {
        let (mut integers, count) = (SmallVec::new(), items.len());
        integers.try_reserve(count).map_err(|_| {
            PyMemoryError::new_err(format!("there is no memory for {count} integers"))
        })?;
        let all = items.try_for_each(|item| item.extract().map(|item| integers.push(item)).ok());
        Ok(all.map(|()| integers))
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return all(tuple.iter());
    }
    if let Ok(list) = object.cast::<PyList>() {
        return all(list.iter());
    }
    let is_other = object.is_instance_of::<PyArray>()
        || object.is_instance_of::<PyString>()
        || is_bytes(object)
        || object.is_instance_of::<PyDict>();
    if is_other || !object.hasattr("__getitem__")? {
        return Ok(None);
    }
    let Ok(items) = object.try_iter() else { return Ok(None) };
    all(items.collect::<PyResult<Vec<_>>>()?.into_iter())
}

/// One axis, several, or all for `None`.
pub struct Axis(pub Axes);

impl Axis {
    /// All axes.
    pub fn all() -> Self {
        Axis(Axes::ALL)
    }

    /// One axis.
    pub fn one(axis: isize) -> Self {
        Axis(Axes::from(axis))
    }
}

impl<'py> FromPyObject<'_, 'py> for Axis {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(Axis(Axes::ALL));
        }
        let axes = integers(&object, "axis")?;
        axes.iter().try_for_each(|&axis| small(axis).map(drop))?;
        Ok(Axis(Axes::from(&axes[..])))
    }
}

/// One axis or several, which have to be said.
pub struct NamedAxes(pub Axes);

impl<'py> FromPyObject<'_, 'py> for NamedAxes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.is_none() {
            true => Err(wrong_type("axis must be an integer or a sequence of them")),
            false => object.extract::<Axis>().map(|axes| NamedAxes(axes.0)),
        }
    }
}

/// One axis, or all for `None`.
pub struct OneAxis(pub Axes);

impl OneAxis {
    /// All axes.
    pub fn all() -> Self {
        OneAxis(Axes::ALL)
    }

    /// One axis.
    pub fn one(axis: isize) -> Self {
        OneAxis(Axes::from(axis))
    }
}

impl<'py> FromPyObject<'_, 'py> for OneAxis {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.is_none() {
            true => Ok(OneAxis(Axes::ALL)),
            false => Ok(OneAxis(Axes::from(object.extract::<Small>()?.0))),
        }
    }
}

/// Several axes, or all for `None`.
pub struct AxisList(pub Axes);

impl AxisList {
    /// All axes.
    pub fn all() -> Self {
        AxisList(Axes::ALL)
    }

    /// The axes of matrices.
    pub fn last_two() -> Self {
        AxisList(Axes::from([-2, -1]))
    }
}

impl<'py> FromPyObject<'_, 'py> for AxisList {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match index(&object) {
            Some(_) => Err(wrong_type("a sequence of axes is expected, not one")),
            None => object.extract::<Axis>().map(|axes| AxisList(axes.0)),
        }
    }
}

/// The number of an axis, which MLX holds in 32 bits.
#[derive(Clone, Copy)]
pub struct Small(pub isize);

impl<'py> FromPyObject<'_, 'py> for Small {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match index(&object) {
            Some(value) => small(value).map(Small),
            None => Err(wrong_type("an integer of 32 bits is expected")),
        }
    }
}

/// `value`, where it has 32 bits.
fn small(value: isize) -> PyResult<isize> {
    match i32::try_from(value) {
        Ok(_) => Ok(value),
        Err(_) => Err(wrong_type(format!("an integer of 32 bits is expected, not {value}"))),
    }
}

/// A shape, or the size of one axis.
pub struct ShapeArg(pub Shape);

impl<'py> FromPyObject<'_, 'py> for ShapeArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        shape(&integers(&object, "shape")?).map(ShapeArg)
    }
}

/// The shape of these sizes.
pub fn shape(sizes: &[isize]) -> PyResult<Shape> {
    let size = |&d: &isize| {
        usize::try_from(d).map_err(|_| wrong_value(format!("shape: negative size in {sizes:?}")))
    };
    let shape: Shape = sizes.iter().map(size).collect::<PyResult<_>>()?;
    let count = shape.iter().try_fold(1, |count: usize, &size| count.checked_mul(size));
    match count.is_none() && !shape.contains(&0) {
        true => Err(PyOverflowError::new_err(format!("{shape} is larger than an address space"))),
        false => Ok(shape),
    }
}

/// Sizes of which one may be −1, or plain integers.
#[derive(Clone)]
pub struct SizesArg(pub SmallVec<[isize; 4]>);

impl SizesArg {
    /// One number.
    pub fn one(value: isize) -> Self {
        SizesArg(SmallVec::from_slice(&[value]))
    }
}

impl From<SizesArg> for Sizes {
    fn from(sizes: SizesArg) -> Self {
        sizes.0[..].into()
    }
}

impl<'py> FromPyObject<'_, 'py> for SizesArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        integers(&object, "the argument").map(SizesArg)
    }
}

/// A number that is not negative.
#[derive(Clone, Copy)]
pub struct Count(pub usize);

impl<'py> FromPyObject<'_, 'py> for Count {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let value = object.extract::<isize>()?;
        let negative = |_| wrong_value(format!("{value} must not be negative"));
        usize::try_from(value).map(Count).map_err(negative)
    }
}

/// A number that is not negative.
pub fn count(size: isize, what: &str) -> PyResult<usize> {
    usize::try_from(size).map_err(|_| wrong_value(format!("{what}: {size} must not be negative")))
}

/// Sizes that are not negative.
pub fn counts(sizes: &SizesArg, what: &str) -> PyResult<Vec<usize>> {
    sizes.0.iter().map(|&size| count(size, what)).collect()
}

/// Where images have their channels.
pub fn data_format_of(name: &str) -> PyResult<DataFormat> {
    match name {
        "channels_last" => Ok(DataFormat::ChannelsLast),
        "channels_first" => Ok(DataFormat::ChannelsFirst),
        other => Err(wrong_value(format!(
            "data_format '{other}' is not channels_last or channels_first"
        ))),
    }
}

/// Shape as the arguments of a method: several integers, or one sequence.
pub fn spread(arguments: &Bound<'_, PyTuple>) -> PyResult<SmallVec<[isize; 4]>> {
    match arguments.len() {
        1 => integers(&arguments.get_item(0)?, "the argument"),
        _ => integers(arguments, "the arguments"),
    }
}

/// The arrays in a list or tuple.
pub struct Arrays(pub Vec<Array>);

impl Arrays {
    /// The arrays, as operations take them.
    pub fn refs(&self) -> Vec<&Array> {
        self.0.iter().collect()
    }
}

impl<'py> FromPyObject<'_, 'py> for Arrays {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyArray>() {
            let array = array.get().get();
            return cupola::ops::unstack(&array, 0).map(Arrays).map_err(raise);
        }
        if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
            return Err(wrong_type("arrays are expected in an order, and a set has none"));
        }
        let items = object.try_iter()?;
        let items = items.collect::<PyResult<Vec<_>>>()?;
        let is_double = |item: &Bound<'_, PyAny>| {
            item.cast::<PyArray>().is_ok_and(|array| array.get().get().dtype() == DType::F64)
        };
        // One after the other, so that not all are held in both dtypes.
        let doubles = items.iter().any(is_double);
        let array = |item: &Bound<'_, PyAny>| match item.extract()? {
            Arr { exact: Some(exact), .. } if doubles => Ok(exact),
            Arr { array, .. } => Ok(array),
        };
        items.iter().map(array).collect::<PyResult<_>>().map(Arrays)
    }
}

/// What an operation gives, as Python gets it.
pub trait Give {
    /// The Python side.
    type Out;
    /// Wraps.
    fn give(self) -> Self::Out;
}

impl Give for Array {
    type Out = PyArray;

    fn give(self) -> PyArray {
        PyArray::new(self)
    }
}

impl Give for Vec<Array> {
    type Out = Vec<PyArray>;

    fn give(self) -> Vec<PyArray> {
        self.into_iter().map(PyArray::new).collect()
    }
}

impl Give for (Array, Array) {
    type Out = (PyArray, PyArray);

    fn give(self) -> (PyArray, PyArray) {
        (PyArray::new(self.0), PyArray::new(self.1))
    }
}

impl Give for (Array, Array, Array) {
    type Out = (PyArray, PyArray, PyArray);

    fn give(self) -> (PyArray, PyArray, PyArray) {
        (PyArray::new(self.0), PyArray::new(self.1), PyArray::new(self.2))
    }
}

/// The result of an operation, as Python gets it.
#[inline]
pub fn give<T: Give>(result: cupola::Result<T>) -> PyResult<T::Out> {
    result.map(Give::give).map_err(raise)
}
