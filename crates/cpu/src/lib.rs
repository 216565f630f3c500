//! Every primitive on the CPU.

mod backend;
pub mod conv;
pub mod dot;
mod map;
mod math;
pub mod memory;
mod op;
mod ops;
pub mod pool;
mod reduce;
pub mod simd;
pub mod threads;

pub use backend::Cpu;
