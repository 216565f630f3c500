//! The first-level cache of data that kernels lay operands out for.

pub use cupola_simd::LINE;

/// How many sets there are: a line of memory may be in one of them.
pub const SETS: usize = 64;
/// Lines of a set, at least.
pub const WAYS: usize = 8;
