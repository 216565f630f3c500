//! The kinds of numbers that matrices have.

use std::cmp::Ordering;
use std::ops::Div;

use faer::traits::ComplexField;
use faer::{Mat, MatRef};
use num_complex::Complex32;

use crate::Outcome;

/// A number that matrices have.
pub trait Field:
    ComplexField<Real = Self::Part> + Div<Output = Self> + Copy + Send + Sync + 'static
{
    /// The parts of it.
    type Part: Copy + Into<f64> + Send + Sync + 'static;
    /// The distance from 1 to the next number.
    const EPSILON: f64;

    /// |x|.
    fn modulus(self) -> f64;
    /// The real part.
    fn real(self) -> Self::Part;
    /// The number times one that `f64` holds.
    fn times(self, by: f64) -> Self;
    /// What makes the number real and not negative: its sign or phase, conjugated.
    fn unturned(self) -> Self;
}

macro_rules! reals {
    ($($t:ident)*) => {$(
        impl Field for $t {
            type Part = $t;
            const EPSILON: f64 = $t::EPSILON as f64;

            fn modulus(self) -> f64 {
                f64::from(self.abs())
            }
            fn real(self) -> $t {
                self
            }
            fn times(self, by: f64) -> $t {
                (f64::from(self) * by) as $t
            }
            fn unturned(self) -> $t {
                if self < 0.0 { -1.0 } else { 1.0 }
            }
        }
    )*};
}

reals! { f32 f64 }

impl Field for Complex32 {
    type Part = f32;
    const EPSILON: f64 = f32::EPSILON as f64;

    fn modulus(self) -> f64 {
        f64::from(self.re).hypot(f64::from(self.im))
    }
    fn real(self) -> f32 {
        self.re
    }
    fn times(self, by: f64) -> Complex32 {
        Complex32::new(self.re.times(by), self.im.times(by))
    }
    fn unturned(self) -> Complex32 {
        match self.modulus() {
            0.0 => Complex32::ONE,
            size => self.conj().times(1.0 / size),
        }
    }
}

/// The Hermitian matrix of a lower triangle; the other one is not read.
pub fn hermitian<T: Field>(a: MatRef<'_, T>) -> Mat<T> {
    Mat::from_fn(a.nrows(), a.nrows(), |i, j| match i.cmp(&j) {
        Ordering::Greater => a[(i, j)],
        Ordering::Equal => T::from_real_impl(&T::real_part_impl(&a[(i, i)])),
        Ordering::Less => T::conj_impl(&a[(j, i)]),
    })
}

/// An error where an element is infinite or NaN.
pub fn finite<T: Field>(a: MatRef<'_, T>) -> Outcome {
    let all = (0..a.nrows()).all(|i| (0..a.ncols()).all(|j| a[(i, j)].modulus().is_finite()));
    if all { Ok(()) } else { Err("has an element that is not finite".to_owned()) }
}
