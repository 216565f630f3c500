//! Models of ONNX: opsets 1 to 28 of the standard operators are read, 17 to 22 written.
//!
//! A [`Model`] is a file that was read and checked: names resolved, nodes in order, functions known. Running
//! it records ordinary operations of Cupola on the arrays that it is given. What depends on sizes and
//! constants only is computed on the CPU while it is recorded. The condition of an `If` and of a `Loop` is
//! evaluated, and loops are unrolled.

mod element;
mod error;
mod export;
mod graph;
mod minifloat;
mod model;
pub(crate) mod node;
mod ops;
mod proto;
mod run;
mod table;
mod tensor;
#[cfg(test)]
mod tests;
mod value;

pub mod data;

pub use element::Element;
pub use error::{Error, Fault, Result};
pub use export::{EXPORTED, Export, export};
pub use graph::{Kind, Port, Size};
pub use model::{Model, OPSETS};
pub use table::operators;
pub use value::{Tensor, Value};
