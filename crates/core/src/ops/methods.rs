//! The functions that everyone expects as methods of an array; each is one line.

use super::S;
use super::operand::{Axes, Operand, Sizes};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;

macro_rules! unary_methods {
    ($($name:ident)*) => {
        /// Elementwise functions, as methods.
        impl Array {
            $(
                #[doc = concat!("[`crate::ops::", stringify!($name), "`].")]
                pub fn $name(&self) -> Result<Array> {
                    super::$name(self)
                }
            )*
        }
    };
}

unary_methods! {
    abs square sqrt rsqrt exp log sin cos tanh sigmoid
}

macro_rules! reduce_methods {
    ($($name:ident)*) => {
        /// Reductions, as methods: over axes, or over all for `()`, which leave the shape.
        impl Array {
            $(
                #[doc = concat!("[`crate::ops::", stringify!($name), "`], without the axes.")]
                pub fn $name(&self, axes: impl Into<Axes>) -> Result<Array> {
                    super::$name(self, axes, false)
                }
            )*
        }
    };
}

reduce_methods! {
    sum prod max min mean all any argmax argmin
}

/// Shapes, parts and products, as methods.
impl Array {
    /// [`crate::ops::astype`].
    pub fn astype(&self, dtype: DType) -> Result<Array> {
        super::astype(self, dtype)
    }

    /// [`crate::ops::reshape`]: one size may be −1.
    pub fn reshape(&self, sizes: impl Into<Sizes>) -> Result<Array> {
        super::reshape(self, sizes)
    }

    /// [`crate::ops::flatten`] of all axes.
    pub fn flatten(&self) -> Result<Array> {
        super::flatten(self, 0, -1)
    }

    /// [`crate::ops::squeeze`].
    pub fn squeeze(&self, axes: impl Into<Axes>) -> Result<Array> {
        super::squeeze(self, axes)
    }

    /// [`crate::ops::expand_dims`].
    pub fn expand_dims(&self, axes: impl Into<Axes>) -> Result<Array> {
        super::expand_dims(self, axes)
    }

    /// [`crate::ops::transpose`]: `()` reverses the axes.
    pub fn transpose(&self, axes: impl Into<Axes>) -> Result<Array> {
        super::transpose(self, axes)
    }

    /// The axes reversed.
    pub fn t(&self) -> Result<Array> {
        super::transpose(self, ())
    }

    /// [`crate::ops::swapaxes`].
    pub fn swapaxes(&self, axis1: isize, axis2: isize) -> Result<Array> {
        super::swapaxes(self, axis1, axis2)
    }

    /// [`crate::ops::broadcast_to`].
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Result<Array> {
        super::broadcast_to(self, shape)
    }

    /// [`crate::ops::index`].
    ///
    /// # Example
    /// ```
    /// use cupola::{Array, ops::S};
    /// let x = Array::from_slice(&[1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(x.index(&[S::ellipsis(), S::at(1)])?.to_vec::<i32>()?, [2, 4]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn index(&self, items: &[S]) -> Result<Array> {
        super::index(self, items)
    }

    /// [`crate::ops::take`].
    pub fn take<'a>(
        &self,
        indices: impl Into<Operand<'a>>,
        axis: impl Into<Axes>,
    ) -> Result<Array> {
        super::take(self, indices, axis)
    }

    /// [`crate::ops::matmul`].
    pub fn matmul(&self, other: &Array) -> Result<Array> {
        super::matmul(self, other)
    }

    /// [`crate::ops::power`].
    pub fn pow<'a>(&self, exponent: impl Into<Operand<'a>>) -> Result<Array> {
        super::power(self, exponent)
    }

    /// [`crate::ops::softmax`].
    pub fn softmax(&self, axes: impl Into<Axes>) -> Result<Array> {
        super::softmax(self, axes)
    }

    /// [`crate::ops::stop_gradient`].
    pub fn stop_gradient(&self) -> Result<Array> {
        super::stop_gradient(self)
    }
}
