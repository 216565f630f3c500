//! The operators, a file a family. Each file lists its own in `OPS`.

pub mod activation;
pub mod attention;
pub mod binary;
pub mod classify;
pub mod compressed;
pub mod control;
pub mod convolution;
pub mod create;
pub mod gather;
pub mod image;
pub mod linear;
pub mod list;
pub mod movement;
pub mod norm;
pub mod pool;
pub mod quantize;
pub mod random;
pub mod recurrent;
pub mod reduction;
pub mod region;
pub mod slice;
pub mod sort;
pub mod state;
pub mod unary;

/// What every family needs.
mod prelude {
    pub use cupola_core::{Array, DType, Shape, ops};

    pub use super::super::node::{Node, Outcome, one};
    pub use super::super::table::Entry;
    pub use super::super::value::Value;
    pub use crate::error::Fault;
    pub use crate::lowering::Made;
    pub(super) use crate::numbers;
}
