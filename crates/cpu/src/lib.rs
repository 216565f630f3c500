//! Every primitive on the CPU.

pub mod conv;
pub mod dot;
pub mod pool;
pub mod simd;
pub mod threads;
