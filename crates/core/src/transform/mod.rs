//! Functions of functions: derivatives, batching, compilation.

#![deny(clippy::wildcard_enum_match_arm)]

mod associative_scan;
mod compile;
mod control;
pub(crate) mod custom_function;
pub(crate) mod grad;
pub(crate) mod jacobian;
pub(crate) mod rules;
pub(crate) mod vmap;

pub use associative_scan::associative_scan;
pub use compile::{Compiled, TRACE_BYTES, compile};
pub use control::{Branch, LoopOptions, cond, fori_loop, scan, switch, while_loop};
pub use custom_function::{CustomFunction, checkpoint, custom_function};
pub(crate) use grad::gradients_of;
pub use grad::{grad, jvp, value_and_grad, vjp};
pub use jacobian::{Linear, hessian, jacfwd, jacrev, linearize};
pub use vmap::vmap;
