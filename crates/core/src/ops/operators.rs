//! The operators `+ - * / % & | ^ << >> ! -` of arrays and numbers.
//!
//! They are the functions of [`crate::ops`], and panic with the error's text where those return it.
//!
//! A number on the left is a bool, an `i32`, an `f64` or a complex number, and of no second integer
//! or float type: with two, the type of `1.0 - &x` would not be known before that of `1.0` is.

use std::ops;

use num_complex::Complex32;

use super::operand::AsOperand;
use super::{
    add, bitwise_and, bitwise_invert, bitwise_or, bitwise_xor, divide, left_shift, multiply,
    negative, remainder, right_shift, subtract,
};
use crate::array::Array;
use crate::error::Result;

/// The array, or a panic with the error's text.
#[track_caller]
fn expect(result: Result<Array>) -> Array {
    result.unwrap_or_else(|error| panic!("{error}"))
}

macro_rules! operators {
    ($($trait:ident $method:ident, $assign:ident $assign_method:ident => $function:ident;)*) => {$(
        impl<T: AsOperand> ops::$trait<T> for &Array {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: T) -> Array {
                expect($function(self, other.as_operand()))
            }
        }

        impl<T: AsOperand> ops::$trait<T> for Array {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: T) -> Array {
                expect($function(&self, other.as_operand()))
            }
        }

        impl<T: AsOperand> ops::$assign<T> for Array {
            #[track_caller]
            fn $assign_method(&mut self, other: T) {
                *self = expect($function(&*self, other.as_operand()));
            }
        }

        operators! { @scalars $trait $method $function bool i32 f64 Complex32 }
    )*};
    (@scalars $trait:ident $method:ident $function:ident $($type:ty)*) => {$(
        impl ops::$trait<&Array> for $type {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: &Array) -> Array {
                expect($function(self, other))
            }
        }

        impl ops::$trait<Array> for $type {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: Array) -> Array {
                expect($function(self, &other))
            }
        }
    )*};
}

operators! {
    Add add, AddAssign add_assign => add;
    Sub sub, SubAssign sub_assign => subtract;
    Mul mul, MulAssign mul_assign => multiply;
    Div div, DivAssign div_assign => divide;
    Rem rem, RemAssign rem_assign => remainder;
    BitAnd bitand, BitAndAssign bitand_assign => bitwise_and;
    BitOr bitor, BitOrAssign bitor_assign => bitwise_or;
    BitXor bitxor, BitXorAssign bitxor_assign => bitwise_xor;
    Shl shl, ShlAssign shl_assign => left_shift;
    Shr shr, ShrAssign shr_assign => right_shift;
}

macro_rules! unary_operators {
    ($($trait:ident $method:ident => $function:ident;)*) => {$(
        impl ops::$trait for &Array {
            type Output = Array;
            #[track_caller]
            fn $method(self) -> Array {
                expect($function(self))
            }
        }

        impl ops::$trait for Array {
            type Output = Array;
            #[track_caller]
            fn $method(self) -> Array {
                expect($function(&self))
            }
        }
    )*};
}

unary_operators! {
    Neg neg => negative;
    Not not => bitwise_invert;
}
