//! Functions of functions: derivatives, batching, compilation.

pub(crate) mod rules;
pub(crate) mod trace;
