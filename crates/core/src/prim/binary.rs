//! Elementwise functions of two operands of one shape and dtype.

#![deny(clippy::wildcard_enum_match_arm)]

use super::batch::on_batch;
use super::record::{add, cast, compare, div, is_zero, like, mul, neg, select, shift, sub, zeros};
use super::{
    Avals, Batched, Compare, Diff, Facts, Partial, Primitive, Unary, expect_inputs, one,
    same_dtypes, same_shapes,
};
use crate::array::Array;
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
            Binary::Maximum | Binary::Minimum => !dtype.is_complex(),
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
}

impl Binary {
    /// Whether a result for operands of a half type may be no value of that type.
    pub(super) const fn rounds(self) -> bool {
        match self {
            Binary::Maximum
            | Binary::Minimum
            | Binary::BitAnd
            | Binary::BitOr
            | Binary::BitXor
            | Binary::ShiftLeft
            | Binary::ShiftRight => false,
            Binary::Add
            | Binary::Sub
            | Binary::Mul
            | Binary::Div
            | Binary::FloorDivide
            | Binary::Remainder
            | Binary::Power
            | Binary::Atan2
            | Binary::LogAddExp => true,
        }
    }
}

impl Primitive for Binary {
    fn name(&self) -> &'static str {
        Binary::name(*self)
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        expect_inputs(self.name(), inputs, 2)?;
        same_shapes(self.name(), inputs)?;
        same_dtypes(self.name(), inputs)?;
        if !self.takes(inputs[0].dtype) {
            return Err(Error::dtype(self.name(), format!("does not take {}", inputs[0])));
        }
        one(inputs[0].clone())
    }

    fn diff(&self) -> Diff<Self> {
        match self {
            Binary::FloorDivide
            | Binary::BitAnd
            | Binary::BitOr
            | Binary::BitXor
            | Binary::ShiftLeft
            | Binary::ShiftRight => Diff::Zero,
            Binary::Add
            | Binary::Sub
            | Binary::Mul
            | Binary::Div
            | Binary::Remainder
            | Binary::Power
            | Binary::Maximum
            | Binary::Minimum
            | Binary::Atan2
            | Binary::LogAddExp => Diff::Partials(|f, inputs, y, operand| {
                partial(*f, &inputs[0], &inputs[1], y, operand == 0)
            }),
        }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        on_batch(*self, inputs, size)
    }

    fn facts(&self) -> Facts<'_> {
        Facts::ELEMENTWISE
    }
}

/// The derivative by a where `left`, by b otherwise.
fn partial(f: Binary, a: &Array, b: &Array, y: &Array, left: bool) -> Result<Option<Partial>> {
    use Partial::{NegOne, One, Over, Times, Where};
    Ok(Some(match (f, left) {
        (Binary::Add, _) | (Binary::Sub | Binary::Remainder, true) => One,
        (Binary::Sub, false) => NegOne,
        (Binary::Mul, true) => Times(b.clone()),
        (Binary::Mul, false) => Times(a.clone()),
        (Binary::Div, true) => Over(b.clone()),
        (Binary::Div, false) => Times(neg(&div(y, b)?)?),
        (Binary::Remainder, false) => Times(neg(&Array::apply(Binary::FloorDivide, &[a, b])?)?),
        (Binary::Power, true) => Times(power_by_base(a, b)?),
        (Binary::Power, false) => Times(power_by_exponent(a, y)?),
        // As in MLX, a tie is the second operand's, so relu has slope 0 at 0. The masks read the
        // result in place of a: nothing then needs a once the result is there.
        (Binary::Maximum, true) => Where(compare(Compare::Gt, y, b)?),
        (Binary::Maximum, false) | (Binary::Minimum, false) => Where(compare(Compare::Eq, y, b)?),
        (Binary::Minimum, true) => Where(compare(Compare::Lt, y, b)?),
        (Binary::Atan2, true) => Times(div(b, &squared_radius(a, b)?)?),
        (Binary::Atan2, false) => Times(neg(&div(a, &squared_radius(a, b)?)?)?),
        (Binary::LogAddExp, true) => Times(logaddexp_weight(a, b, y)?),
        (Binary::LogAddExp, false) => Times(logaddexp_weight(b, a, y)?),
        // `diff` states that these have none.
        (
            Binary::FloorDivide
            | Binary::BitAnd
            | Binary::BitOr
            | Binary::BitXor
            | Binary::ShiftLeft
            | Binary::ShiftRight,
            _,
        ) => return Ok(None),
    }))
}

/// b·aᵇ⁻¹, and 0 for an exponent of 0 whatever the base: a⁰ is 1 everywhere.
fn power_by_base(a: &Array, b: &Array) -> Result<Array> {
    let zero = is_zero(b)?;
    let exponent = shift(b, -1.0)?;
    let slope = mul(b, &Array::apply(Binary::Power, &[a, &exponent])?)?;
    select(&zero, &zeros(b.aval()), &slope)
}

/// aᵇ·ln a, and 0 where the base is 0. Where it is negative that is NaN: the power is defined at most for isolated
/// exponents. Of integers it is rounded after the multiplication.
fn power_by_exponent(a: &Array, y: &Array) -> Result<Array> {
    let (own, wide) = (a.dtype(), a.dtype().to_inexact());
    let slope = power_slope(&cast(a, wide)?, &cast(y, wide)?)?;
    cast(&slope, own)
}

fn power_slope(a: &Array, y: &Array) -> Result<Array> {
    let zero = is_zero(a)?;
    let base = select(&zero, &like(a, 1.0), a)?;
    let slope = mul(y, &Array::apply(Unary::Log, &[&base])?)?;
    select(&zero, &zeros(y.aval()), &slope)
}

fn squared_radius(a: &Array, b: &Array) -> Result<Array> {
    add(&Array::apply(Unary::Square, &[a])?, &Array::apply(Unary::Square, &[b])?)
}

/// eᵃ/(eᵃ + eᵇ). Infinite operands that are equal share evenly; their difference is NaN, and is
/// replaced before the function that would carry it into higher derivatives.
pub(super) fn logaddexp_weight(a: &Array, b: &Array, y: &Array) -> Result<Array> {
    let difference = sub(a, b)?;
    let undefined = compare(Compare::Ne, &difference, &difference)?;
    let defined = compare(Compare::Eq, y, y)?;
    let equal = Array::apply(Binary::BitAnd, &[&undefined, &defined])?;
    let difference = select(&equal, &zeros(a.aval()), &difference)?;
    Array::apply(Unary::Sigmoid, &[&difference])
}
