//! The operators, a file a family. Each file lists its own in `OPS`.

pub mod activation;
pub mod attention;
pub mod binary;
pub mod cast;
pub mod control;
pub mod convolution;
pub mod create;
pub mod flex;
pub mod gather;
pub mod image;
pub mod linear;
pub mod logic;
pub mod loss;
pub mod movement;
pub mod norm;
pub mod pad;
pub mod pool;
pub mod quantize;
pub mod random;
pub mod recurrent;
pub mod reduction;
pub mod region;
pub mod resize;
pub mod scan;
pub mod sequence;
pub mod signal;
pub mod sort;
pub mod state;
pub mod unary;

/// What every family needs.
mod prelude {
    pub use cupola_core::{Array, DType, Shape, ops};

    pub use super::super::element::Element;
    pub use super::super::error::Fault;
    pub(super) use super::super::node;
    pub use super::super::node::{Node, Outcome, one};
    pub use super::super::table::Entry;
    pub use super::super::value::{Tensor, Value};
    pub use crate::lowering::Made;
}
