//! What functions of arrays take: arrays or plain numbers, axes, sizes; and how operands meet.

use num_complex::Complex32;
use smallvec::SmallVec;

use crate::array::Array;
use crate::dtype::{DType, Kind, Scalar};
use crate::error::{Error, Result};
use crate::prim::call::as_one::as_one;
pub(crate) use crate::prim::record::{broadcast, cast};
use crate::shape::{Aval, Dims, Shape, normalize_axes, normalize_axis};

/// An array, or a plain number that takes the dtype of the arrays it meets.
///
/// # Example
/// ```
/// use cupola::{Array, DType, ops};
/// let x = Array::scalar(3u8);
/// assert_eq!(ops::add(&x, 2)?.dtype(), DType::U8);
/// assert_eq!(ops::add(&x, 2.5)?.dtype(), DType::F32);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// An array.
    Array(&'a Array),
    /// A number of weak dtype.
    Scalar(Scalar),
}

impl<'a> From<&'a Array> for Operand<'a> {
    fn from(array: &'a Array) -> Self {
        Operand::Array(array)
    }
}

impl<'a> From<&'a &Array> for Operand<'a> {
    fn from(array: &'a &Array) -> Self {
        Operand::Array(array)
    }
}

/// What stands on the right of an operator: an array, owned or not, or a plain number.
///
/// One generic implementation serves them all, so that the type of `&x + 1.0` is known whatever
/// type the number turns out to have.
pub trait AsOperand {
    /// The operand.
    fn as_operand(&self) -> Operand<'_>;
}

impl AsOperand for Array {
    fn as_operand(&self) -> Operand<'_> {
        Operand::Array(self)
    }
}

impl AsOperand for &Array {
    fn as_operand(&self) -> Operand<'_> {
        Operand::Array(self)
    }
}

macro_rules! scalar_operands {
    ($($type:ty)*) => {$(
        impl AsOperand for $type {
            fn as_operand(&self) -> Operand<'_> {
                Operand::Scalar((*self).into())
            }
        }

        impl From<$type> for Operand<'_> {
            fn from(value: $type) -> Self {
                Operand::Scalar(value.into())
            }
        }
    )*};
}

scalar_operands! { bool u8 u16 u32 u64 usize i8 i16 i32 i64 f32 f64 half::f16 half::bf16 Complex32 Scalar }

impl Operand<'_> {
    /// The operand as an array of `dtype` and `shape`.
    pub(crate) fn to(self, dtype: DType, shape: &Shape) -> Result<Array> {
        match self {
            Operand::Scalar(value) => {
                Ok(Array::constant(value, Aval { shape: shape.clone(), dtype }))
            }
            Operand::Array(array) => broadcast(&cast(array, dtype)?, shape),
        }
    }
}

/// The dtype of a number that meets no array.
fn strong(value: Scalar) -> DType {
    match value {
        Scalar::Int(v) if i32::try_from(v).is_err() => DType::I64,
        Scalar::Uint(v) if i64::try_from(v).is_err() => DType::U64,
        Scalar::Uint(v) if i32::try_from(v).is_err() => DType::I64,
        other => DType::Bool.with_weak(other.kind()),
    }
}

/// The dtype that operands meet in: arrays promote, then numbers join weakly.
pub(crate) fn common_dtype(operands: &[Operand<'_>]) -> DType {
    let mut dtype: Option<DType> = None;
    let mut weak = Kind::Bool;
    for operand in operands {
        match operand {
            Operand::Array(a) => dtype = Some(dtype.map_or(a.dtype(), |d| d.promote(a.dtype()))),
            Operand::Scalar(value) => weak = weak.max(value.kind()),
        }
    }
    match dtype {
        Some(dtype) => dtype.with_weak(weak),
        None => operands.iter().fold(DType::Bool, |dtype, operand| match operand {
            Operand::Scalar(value) => dtype.promote(strong(*value)),
            Operand::Array(_) => dtype,
        }),
    }
}

/// The shape that operands broadcast to.
pub(crate) fn common_shape(op: &'static str, operands: &[Operand<'_>]) -> Result<Shape> {
    let mut shape = Shape::scalar();
    for operand in operands {
        if let Operand::Array(array) = operand {
            shape = shape.broadcast(&array.aval().shape, op)?;
        }
    }
    Ok(shape)
}

/// Operands of one shape as `dtype`.
pub(crate) fn met<const N: usize>(
    op: &'static str,
    operands: [Operand<'_>; N],
    dtype: DType,
) -> Result<[Array; N]> {
    let shape = common_shape(op, &operands)?;
    let all = operands.iter().map(|o| o.to(dtype, &shape)).collect::<Result<Vec<_>>>()?;
    all.try_into().map_err(|_| Error::argument(op, "lost an operand"))
}

/// An error for complex numbers.
pub(crate) fn expect_real(op: &'static str, operands: &[Operand<'_>]) -> Result<()> {
    for operand in operands {
        match operand {
            Operand::Array(x) if x.dtype().is_complex() => {
                return Err(Error::dtype(op, format!("does not take {}", x.aval())));
            }
            Operand::Scalar(value) if value.kind() == Kind::Complex => {
                return Err(Error::dtype(op, format!("does not take the complex number {value}")));
            }
            Operand::Array(_) | Operand::Scalar(_) => {}
        }
    }
    Ok(())
}

/// `x` in a dtype that functions such as `exp` take: integers and bool as `float32`.
pub(crate) fn inexact(x: &Array) -> Result<Array> {
    cast(x, x.dtype().to_inexact())
}

/// `x` in the dtype to accumulate in: `float32` for half types, integers and bool.
pub(crate) fn wide(x: &Array) -> Result<Array> {
    cast(x, x.dtype().to_inexact().accumulator())
}

/// `f` of `x` in the dtype to accumulate in, rounded once in the end: what peers compute in one kernel.
/// Integers and bool are taken as `float32`.
pub(crate) fn widened(x: &Array, f: impl FnOnce(&Array) -> Result<Array>) -> Result<Array> {
    cast(&f(&wide(x)?)?, x.dtype().to_inexact())
}

/// [`widened`], recorded as one node where that says as much: see [`as_one`].
pub(crate) fn widened_as_one(
    name: &'static str,
    parameters: &[u64],
    x: &Array,
    f: impl FnOnce(&Array) -> Result<Array>,
) -> Result<Array> {
    as_one(name, parameters, &[x], |given| widened(&given[0], f))
}

/// One number with `x`'s dtype and shape.
pub(crate) fn constant_like(x: &Array, value: impl Into<Scalar>) -> Array {
    Array::constant(value, x.aval().clone())
}

/// One axis, several, or all: what a reduction folds.
///
/// `()` and `None` stand for all axes. Negative axes count from the end.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::ones([2, 3, 4], DType::F32)?;
/// assert_eq!(ops::sum(&x, (), false)?.rank(), 0);
/// assert_eq!(ops::sum(&x, -1, false)?.shape()[..], [2, 3]);
/// assert_eq!(ops::sum(&x, [0, 2], true)?.shape()[..], [1, 3, 1]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axes(pub(crate) Option<SmallVec<[isize; 4]>>);

impl Axes {
    /// All axes.
    pub const ALL: Axes = Axes(None);

    /// How many axes are named; `None` where all are meant.
    pub(crate) fn len(&self) -> Option<usize> {
        self.0.as_ref().map(|axes| axes.len())
    }

    /// The axes in the order given, counted from the start, without repeats; `None` for all.
    pub(crate) fn listed(&self, op: &'static str, rank: usize) -> Result<Option<Dims>> {
        let Some(axes) = &self.0 else {
            return Ok(None);
        };
        normalize_axes(op, axes, rank)?;
        Ok(Some(axes.iter().map(|&a| normalize_axis(op, a, rank)).collect::<Result<_>>()?))
    }

    /// The axes sorted, counted from the start; all of them where all are meant.
    pub(crate) fn sorted(&self, op: &'static str, rank: usize) -> Result<Dims> {
        match &self.0 {
            Some(axes) => normalize_axes(op, axes, rank),
            None => Ok((0..rank).collect()),
        }
    }

    /// The one axis, counted from the start; `None` for all.
    pub(crate) fn single(&self, op: &'static str, rank: usize) -> Result<Option<usize>> {
        match self.0.as_deref() {
            None => Ok(None),
            Some(&[axis]) => normalize_axis(op, axis, rank).map(Some),
            Some(axes) => {
                Err(Error::argument(op, format!("takes one axis or all, not axes {axes:?}")))
            }
        }
    }
}

/// The sizes of a shape, of which one may be −1: what is left.
///
/// # Example
/// ```
/// use cupola::{DType, ops};
/// let x = ops::zeros([4, 6], DType::F32)?;
/// assert_eq!(ops::reshape(&x, [3, -1])?.shape()[..], [3, 8]);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sizes(pub(crate) SmallVec<[isize; 4]>);

impl Sizes {
    /// The sizes of `count` elements, with −1 replaced.
    pub(crate) fn resolve(&self, op: &'static str, count: usize) -> Result<Shape> {
        let unknown = self.0.iter().filter(|&&d| d == -1).count();
        if unknown > 1 || self.0.iter().any(|&d| d < -1) {
            return Err(Error::argument(
                op,
                format!("sizes {:?} are not at least 0, or −1 once", &self.0[..]),
            ));
        }
        let known: Shape = self.0.iter().filter(|&&d| d != -1).map(|&d| d as usize).collect();
        let known = known.size();
        if unknown == 1 && (known == 0 || !count.is_multiple_of(known)) {
            return Err(Error::shape(
                op,
                format!("{count} elements do not divide into sizes {:?}", &self.0[..]),
            ));
        }
        Ok(self.0.iter().map(|&d| if d == -1 { count / known } else { d as usize }).collect())
    }
}

macro_rules! from_lists {
    ($($int:ty)*) => {$(
        impl From<$int> for Axes {
            fn from(axis: $int) -> Self {
                Axes(Some(SmallVec::from_slice(&[axis as isize])))
            }
        }

        impl From<$int> for Sizes {
            fn from(size: $int) -> Self {
                Sizes(SmallVec::from_slice(&[size as isize]))
            }
        }

        impl From<&[$int]> for Axes {
            fn from(axes: &[$int]) -> Self {
                Axes(Some(axes.iter().map(|&a| a as isize).collect()))
            }
        }

        impl From<&[$int]> for Sizes {
            fn from(sizes: &[$int]) -> Self {
                Sizes(sizes.iter().map(|&d| d as isize).collect())
            }
        }

        impl<const N: usize> From<[$int; N]> for Axes {
            fn from(axes: [$int; N]) -> Self {
                axes[..].into()
            }
        }

        impl<const N: usize> From<[$int; N]> for Sizes {
            fn from(sizes: [$int; N]) -> Self {
                sizes[..].into()
            }
        }

        impl<const N: usize> From<&[$int; N]> for Axes {
            fn from(axes: &[$int; N]) -> Self {
                axes[..].into()
            }
        }

        impl<const N: usize> From<&[$int; N]> for Sizes {
            fn from(sizes: &[$int; N]) -> Self {
                sizes[..].into()
            }
        }

        impl From<Vec<$int>> for Axes {
            fn from(axes: Vec<$int>) -> Self {
                axes[..].into()
            }
        }

        impl From<Vec<$int>> for Sizes {
            fn from(sizes: Vec<$int>) -> Self {
                sizes[..].into()
            }
        }
    )*};
}

from_lists! { i32 isize usize }

impl From<()> for Axes {
    fn from((): ()) -> Self {
        Axes::ALL
    }
}

impl From<Option<isize>> for Axes {
    fn from(axis: Option<isize>) -> Self {
        axis.map_or(Axes::ALL, Axes::from)
    }
}

impl From<&Dims> for Axes {
    fn from(axes: &Dims) -> Self {
        axes[..].into()
    }
}

impl From<Dims> for Axes {
    fn from(axes: Dims) -> Self {
        axes[..].into()
    }
}

impl From<()> for Sizes {
    fn from((): ()) -> Self {
        Sizes(SmallVec::new())
    }
}

impl From<&Shape> for Sizes {
    fn from(shape: &Shape) -> Self {
        shape[..].into()
    }
}

impl From<Shape> for Sizes {
    fn from(shape: Shape) -> Self {
        shape[..].into()
    }
}

impl From<Dims> for Sizes {
    fn from(sizes: Dims) -> Self {
        sizes[..].into()
    }
}
