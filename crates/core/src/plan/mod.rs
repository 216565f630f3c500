//! From a graph to what a device runs: simplify, fuse, plan memory, prepare, run.

pub mod body;
pub(crate) mod view;
