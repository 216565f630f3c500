//! Functions of functions: derivatives, batching, compilation.

pub(crate) mod trace;
