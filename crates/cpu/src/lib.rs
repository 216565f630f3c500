//! Every primitive on the CPU.

mod backend;
pub mod conv;
pub mod dot;
pub mod memory;
mod op;
mod ops;
pub mod pool;
pub mod simd;
pub mod threads;

pub use backend::Cpu;
