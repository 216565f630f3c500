//! Every primitive on the CPU.

mod arg_reduce;
mod attention;
mod backend;
mod bitcast;
mod cache;
mod contiguous;
pub mod conv;
mod convert;
mod create;
mod custom;
pub mod dot;
mod fft;
mod gather;
mod lifted;
mod linalg;
mod map;
mod math;
pub mod memory;
mod op;
pub mod pool;
mod quantized;
mod random;
mod reduce;
mod rows;
mod run;
mod scan;
mod sort;
mod tail;
pub mod threads;
mod walk;

pub use backend::Cpu;
