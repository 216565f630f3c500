//! Elementwise functions of two operands of one shape and dtype.

use super::{Avals, expect_inputs, one, same_dtypes, same_shapes};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Aval;

macro_rules! binary {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// An elementwise function of two operands.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Binary {
            $(#[doc = $doc] $variant,)*
        }

        impl Binary {
            /// Every function, in declaration order.
            pub const ALL: &[Binary] = &[$(Binary::$variant),*];

            /// The NumPy name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Binary::$variant => $name,)*
                }
            }
        }
    };
}

binary! {
    Add "add" "a + b; integers wrap.";
    Sub "subtract" "a − b; integers wrap.";
    Mul "multiply" "a·b; integers wrap.";
    Div "divide" "a/b, for floats and complex.";
    FloorDivide "floor_divide" "⌊a/b⌋; an integer divided by 0 gives 0.";
    Remainder "remainder" "a − b·⌊a/b⌋, with the sign of b; an integer modulo 0 gives 0.";
    Power "power" "aᵇ; a negative integer exponent gives 0, or ±1 for bases ±1.";
    Maximum "maximum" "The larger; NaN if either is NaN.";
    Minimum "minimum" "The smaller; NaN if either is NaN.";
    Atan2 "arctan2" "The angle of the point (b, a).";
    LogAddExp "logaddexp" "ln(eᵃ + eᵇ), without overflow.";
    BitAnd "bitwise_and" "The bits set in both; on bool, logical and.";
    BitOr "bitwise_or" "The bits set in either; on bool, logical or.";
    BitXor "bitwise_xor" "The bits set in one; on bool, logical exclusive or.";
    ShiftLeft "left_shift" "a·2ᵇ in the integer's width; 0 from the width on.";
    ShiftRight "right_shift" "⌊a/2ᵇ⌋; from the width on 0, or −1 for negative a.";
}

impl Binary {
    /// Whether the function takes elements of `dtype`.
    pub fn takes(self, dtype: DType) -> bool {
        match self {
            Binary::Add | Binary::Sub | Binary::Mul => dtype != DType::Bool,
            Binary::Maximum | Binary::Minimum => dtype != DType::C64,
            Binary::Div => dtype.is_inexact(),
            Binary::FloorDivide | Binary::Remainder | Binary::Power => {
                dtype.is_float() || dtype.is_integer()
            }
            Binary::Atan2 | Binary::LogAddExp => dtype.is_float(),
            Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
                dtype == DType::Bool || dtype.is_integer()
            }
            Binary::ShiftLeft | Binary::ShiftRight => dtype.is_integer(),
        }
    }

    pub(super) fn infer_avals(self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs(self.name(), inputs, 2)?;
        same_shapes(self.name(), inputs)?;
        same_dtypes(self.name(), inputs)?;
        if !self.takes(inputs[0].dtype) {
            return Err(Error::dtype(self.name(), format!("does not take {}", inputs[0])));
        }
        one(inputs[0].clone())
    }
}
