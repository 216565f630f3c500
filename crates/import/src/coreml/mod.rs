//! Models of Core ML: ML programs of the specification's versions 6 to 10.
//!
//! A [`Model`] is a package's folder or a file that was read and checked: names resolved, operators known,
//! constants read. Running it records ordinary operations of Cupola on the arrays that it is given. What
//! depends on sizes and constants only is computed on the CPU while it is recorded. The condition of a
//! `cond` and of a `while_loop` is evaluated, and loops are unrolled.

mod constant;
mod element;
mod model;
mod node;
mod ops;
mod package;
mod program;
mod proto;
mod run;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use crate::error::{Error, Fault, Result};
pub use model::{Model, Port, Size, VERSIONS};
pub use table::operators;
