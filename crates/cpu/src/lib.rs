//! Every primitive on the CPU.

mod backend;
pub mod conv;
pub mod dot;
#[allow(dead_code)] // The backend runs these next.
mod map;
mod math;
pub mod memory;
mod op;
mod ops;
pub mod pool;
#[allow(dead_code)]
mod reduce;
pub mod simd;
pub mod threads;

pub use backend::Cpu;
