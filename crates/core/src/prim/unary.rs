//! Elementwise functions of one operand.

use super::{Avals, expect_inputs, one};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::shape::Aval;

macro_rules! unary {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// An elementwise function of one operand.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Unary {
            $(#[doc = $doc] $variant,)*
        }

        impl Unary {
            /// Every function, in declaration order.
            pub const ALL: &[Unary] = &[$(Unary::$variant),*];

            /// The NumPy name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Unary::$variant => $name,)*
                }
            }
        }
    };
}

unary! {
    Neg "negative" "−x; integers wrap.";
    Abs "abs" "|x|; of a complex number its modulus, as `float32`.";
    Sign "sign" "−1, 0 or 1; NaN stays NaN.";
    Square "square" "x·x.";
    Floor "floor" "The largest integer not above x.";
    Ceil "ceil" "The smallest integer not below x.";
    Round "round" "The nearest integer, ties to even.";
    Sqrt "sqrt" "√x.";
    Rsqrt "rsqrt" "1/√x.";
    Exp "exp" "eˣ.";
    Expm1 "expm1" "eˣ − 1, accurate near 0.";
    Log "log" "ln x.";
    Log2 "log2" "log₂ x.";
    Log10 "log10" "log₁₀ x.";
    Log1p "log1p" "ln(1 + x), accurate near 0.";
    Sin "sin" "sin x.";
    Cos "cos" "cos x.";
    Tan "tan" "tan x.";
    Asin "arcsin" "arcsin x.";
    Acos "arccos" "arccos x.";
    Atan "arctan" "arctan x.";
    Sinh "sinh" "sinh x.";
    Cosh "cosh" "cosh x.";
    Tanh "tanh" "tanh x.";
    Asinh "arcsinh" "arsinh x.";
    Acosh "arccosh" "arcosh x.";
    Atanh "arctanh" "artanh x.";
    Sigmoid "sigmoid" "1/(1 + e⁻ˣ).";
    Erf "erf" "The error function.";
    ErfInv "erfinv" "The inverse of the error function.";
    Not "logical_not" "True where the bool is false.";
    Invert "bitwise_invert" "Every bit of the integer flipped.";
    Conj "conjugate" "The complex conjugate.";
    Real "real" "The real part, as `float32`.";
    Imag "imag" "The imaginary part, as `float32`.";
}

impl Unary {
    /// Whether the function takes elements of `dtype`.
    pub fn takes(self, dtype: DType) -> bool {
        match self {
            Unary::Neg | Unary::Square => dtype != DType::Bool,
            Unary::Abs | Unary::Sign => {
                dtype != DType::Bool && (self == Unary::Abs || dtype != DType::C64)
            }
            Unary::Floor | Unary::Ceil | Unary::Round => dtype.is_float() || dtype.is_integer(),
            Unary::Not => dtype == DType::Bool,
            Unary::Invert => dtype.is_integer(),
            Unary::Conj | Unary::Real | Unary::Imag => dtype == DType::C64,
            Unary::Exp => dtype.is_inexact(),
            Unary::Sqrt
            | Unary::Rsqrt
            | Unary::Expm1
            | Unary::Log
            | Unary::Log2
            | Unary::Log10
            | Unary::Log1p
            | Unary::Sin
            | Unary::Cos
            | Unary::Tan
            | Unary::Asin
            | Unary::Acos
            | Unary::Atan
            | Unary::Sinh
            | Unary::Cosh
            | Unary::Tanh
            | Unary::Asinh
            | Unary::Acosh
            | Unary::Atanh
            | Unary::Sigmoid
            | Unary::Erf
            | Unary::ErfInv => dtype.is_float(),
        }
    }

    /// The dtype of the result for an operand of `dtype`.
    pub fn result(self, dtype: DType) -> DType {
        match self {
            Unary::Abs | Unary::Real | Unary::Imag if dtype.kind() == Kind::Complex => DType::F32,
            _ => dtype,
        }
    }

    pub(super) fn infer_avals(self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs(self.name(), inputs, 1)?;
        let x = inputs[0];
        if !self.takes(x.dtype) {
            return Err(Error::dtype(self.name(), format!("does not take {x}")));
        }
        one(Aval { shape: x.shape.clone(), dtype: self.result(x.dtype) })
    }
}
