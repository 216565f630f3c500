//! Cupola's language: lazy arrays, primitives, transforms, graphs and the planner. No kernels.
//!
//! Everything is one immutable graph of primitives. An [`Array`] is a handle on a node of it;
//! `eval`, `compile` and a saved package all reach a device by the same planner.

#![deny(unsafe_code)]

mod array;
pub mod autocast;
pub mod backend;
#[doc(hidden)]
pub mod binding;
pub mod device;
mod dtype;
mod error;
mod eval;
pub mod event;
pub mod fallback;
pub mod file;
pub mod fork;
pub mod generator;
pub mod graph;
pub mod holders;
pub mod interrupt;
mod memory;
pub mod ops;
pub mod package;
pub mod plan;
pub mod precision;
pub mod prim;
pub mod profile;
mod shape;
pub mod transform;
pub mod tree;

pub use array::Array;
pub use device::{Device, DeviceKind, Stream};
pub use dtype::{DType, Element, Kind, Scalar};
pub use error::{Error, Result, on_one_line, panic_text};
pub use eval::{async_eval, compute, eval, synchronize, wait};
pub use shape::{
    Aval, Dims, Layout, MAX_RANK, MergedAxes, Shape, is_row_major, merge_axes, normalize_axes,
    normalize_axis, reshape_strides,
};
