//! The GPU backends of Cupola.
//!
//! Kernels are written once, in the small language of [`ir`], and printed as WGSL and as CUDA C by
//! [`emit`]. [`kernels`] makes programs of them from the planner's segments; a driver (`wgpu`,
//! `cuda`) only has memory, compiles and launches.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod emit;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod faults;
pub mod ir;
pub mod kernels;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod made;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod pool;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod prepared;
#[cfg(any(target_vendor = "apple", test))]
mod signpost;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod store;
#[cfg(feature = "wgpu")]
pub mod wgpu;
