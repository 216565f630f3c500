//! Models of ONNX: opsets 1 to 28 of the standard operators.
//!
//! A [`Model`] is a file that was read and checked: names resolved, nodes in order, functions known. Running
//! it records ordinary operations of Cupola on the arrays that it is given. What depends on sizes and
//! constants only is computed on the CPU while it is recorded. The condition of an `If` and of a `Loop` is
//! evaluated, and loops are unrolled. What was recorded for inputs of certain shapes is kept (`kept`), and runs as
//! one operation from then on.

mod attended;
mod element;
mod export;
mod graph;
mod kept;
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

pub(crate) use crate::error;
pub use crate::error::{Error, Fault, Result};
pub use element::Element;
pub use export::{Input, OPSETS as EXPORT_OPSETS, export, export_sized};
pub use graph::{Kind, Port, Size};
pub use model::{Model, OPSETS};
pub use table::operators;
pub use value::{Tensor, Value};

pub(crate) use minifloat::values as float_values;
