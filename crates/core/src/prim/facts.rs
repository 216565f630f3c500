//! What the planner and the transforms must know of a primitive beside its rules.

use crate::dtype::{DType, Scalar};

/// What the planner and the transforms must know of a primitive beside its rules.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The parameter that every run of a plan gives anew.
    pub argument: Argument<'a>,
    /// Whether two of it with the same parameters and inputs are one.
    pub merges: bool,
    /// Whether elementwise work on its result can run inside its kernel.
    pub takes_epilogue: bool,
    /// What it sums in.
    pub accumulates: Accumulates,
    /// How it depends on sizes.
    pub sizes: Sizes,
}

/// A parameter that is an argument of a plan and no part of its structure: plans that differ in it
/// are one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Argument<'a> {
    /// Every parameter belongs to the structure.
    None,
    /// The number that is repeated.
    Number(Scalar),
    /// Where a slice starts along each axis.
    Starts(&'a [usize]),
}

/// The dtype in which a primitive sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accumulates {
    /// It sums nothing.
    Nothing,
    /// The [accumulator](DType::accumulator) of its operands' dtype.
    Wide,
    /// This dtype.
    In(DType),
}

/// What becomes of a primitive in a graph for inputs of other sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// It is an input: its size is given.
    Given,
    /// It repeats a number, as often as what that meets says.
    Number,
    /// It repeats its operand, as often as what that meets says.
    Repeated,
    /// It is elementwise: operands that are repeated are so anew.
    Elementwise,
    /// None of its parameters is a size: it is recorded again and infers.
    Inferred,
    /// Its bodies are made for the sizes that they are given.
    Bodies,
    /// A parameter is a size that cannot be told from those of the inputs.
    Fixed,
}

impl Facts<'_> {
    /// What holds of every elementwise primitive.
    pub const ELEMENTWISE: Facts<'static> = Facts {
        argument: Argument::None,
        merges: true,
        takes_epilogue: false,
        accumulates: Accumulates::Nothing,
        sizes: Sizes::Elementwise,
    };
}

impl Accumulates {
    /// The dtype in which operands of `dtype` are summed, where they are.
    pub fn dtype(self, dtype: DType) -> Option<DType> {
        match self {
            Accumulates::Nothing => None,
            Accumulates::Wide => Some(dtype.accumulator()),
            Accumulates::In(sum) => Some(sum),
        }
    }
}
