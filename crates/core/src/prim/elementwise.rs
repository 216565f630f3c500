//! Primitives that compute each element from the elements at its place.

#![deny(clippy::wildcard_enum_match_arm)]

use super::{Binary, Cast, Compare, Op, Select, Unary};
use crate::dtype::DType;

/// An elementwise primitive: an instruction of a program that may be fused with others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Elementwise {
    /// One operand.
    Unary(Unary),
    /// Two operands.
    Binary(Binary),
    /// Two operands, to bool.
    Compare(Compare),
    /// One of two operands, by a third.
    Select(Select),
    /// Another dtype.
    Cast(Cast),
}

impl Elementwise {
    /// The name in errors and plans.
    pub const fn name(self) -> &'static str {
        match self {
            Elementwise::Unary(op) => op.name(),
            Elementwise::Binary(op) => op.name(),
            Elementwise::Compare(op) => op.name(),
            Elementwise::Select(_) => "select",
            Elementwise::Cast(_) => "astype",
        }
    }

    /// Whether the result, computed in the wider type that elements of `result` are held in, has to
    /// be rounded to be a value of `result`: not where it is one for every operand that is.
    pub fn rounds(self, operand: DType, result: DType) -> bool {
        result.accumulator() != result
            && match self {
                Elementwise::Unary(op) => op.rounds(operand),
                Elementwise::Binary(op) => op.rounds(),
                // A cast is the rounding.
                Elementwise::Compare(_) | Elementwise::Select(_) | Elementwise::Cast(_) => false,
            }
    }
}

macro_rules! into_elementwise {
    ($($type:ident)*) => {$(
        impl From<$type> for Elementwise {
            fn from(payload: $type) -> Elementwise {
                Elementwise::$type(payload)
            }
        }

        impl From<$type> for Op {
            fn from(payload: $type) -> Op {
                Op::Elementwise(Elementwise::$type(payload))
            }
        }
    )*};
}

into_elementwise! { Unary Binary Compare Select Cast }
