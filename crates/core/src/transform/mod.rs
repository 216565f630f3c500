//! Functions of functions: derivatives, batching, compilation.

mod compile;
mod custom;
mod grad;
pub(crate) mod rules;
pub(crate) mod trace;
mod vmap;

pub use compile::{Compiled, compile};
pub use custom::{CustomFunction, checkpoint, custom_function};
pub use grad::{grad, jvp, value_and_grad, value_and_grad_once, vjp};
pub use trace::note_sizes;
pub use vmap::{vmap, vmap_traced};
