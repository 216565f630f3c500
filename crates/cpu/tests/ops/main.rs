//! Every primitive that is a kernel of its own, through the backend, against plain loops.

mod common;
mod create;
mod gather_scatter;
mod order;
mod products;
mod segments;
