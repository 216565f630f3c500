//! Models of other formats, read as ordinary arrays of Cupola.
//!
//! What is read records the same primitives as any other program, so it can be differentiated,
//! batched, compiled, and run on any device.

#![forbid(unsafe_code)]

mod error;
mod folder;
mod limits;
mod lowering;
mod numbers;

pub mod coreml;
pub mod onnx;

pub use error::{Error, Fault, Result};
