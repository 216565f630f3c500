//! Arrays, transforms and machine learning on the CPU and the GPU.

pub mod data;
