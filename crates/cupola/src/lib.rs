//! Arrays, transforms and machine learning on the CPU and the GPU.
//!
//! ```
//! use cupola::{Array, ops, transform::grad};
//!
//! // The derivative of a function of arrays is a function of arrays.
//! let f = |x: &[Array]| Ok(vec![ops::sum(&(&x[0] * &x[0]), (), false)?]);
//! let x = Array::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
//! assert_eq!(grad(f, &[0])(&[x])?[0].to_vec::<f32>()?, [2.0, 4.0, 6.0]);
//! # Ok::<(), cupola::Error>(())
//! ```

// The derive macro writes paths that start with `::cupola`.
extern crate self as cupola;

pub mod amp;
pub mod data;
pub mod explain;
pub mod io;
pub mod kernel;
pub mod markup;
pub mod memory;
pub mod mlcompute;
pub mod nn;
pub mod optim;
mod origin;
pub mod package;
pub mod profiler;
pub mod train;

pub use cupola_core::{
    Array, Aval, DType, Device, DeviceKind, Dims, Element, Error, Kind, Layout, MAX_RANK, Result,
    Scalar, Shape, Stream, async_eval, backend, device, eval, event, fallback, file, fork,
    generator, graph, holders, interrupt, is_row_major, normalize_axis, on_one_line, ops, plan,
    precision, prim, synchronize, transform, tree, wait,
};
pub use cupola_suite as suite;

// Linked for its registration: the CPU is always there.
use cupola_cpu as _;
#[cfg(feature = "cuda")]
pub use cupola_gpu::cuda;
#[cfg(feature = "wgpu")]
pub use cupola_gpu::wgpu;

// The example of the README is a doctest, too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

// So are those of what describes graphs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/graphs.md")]
struct Graphs;
