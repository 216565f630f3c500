//! How a GPU runs a user's kernel.

use std::sync::Arc;

pub use cupola_kernel as language;
use cupola_kernel::{Parameter, Program};

/// The language of a GPU's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// WGSL, of wgpu.
    Wgsl,
    /// CUDA C++.
    Cuda,
}

/// One launch of a user's kernel: it reads the operator's inputs and writes its outputs.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What the threads run.
    pub source: Source,
    /// How many threads there are along each axis; none is 0.
    pub grid: [u32; 3],
    /// How many of them make a group, likewise; no more than the grid has.
    pub threadgroup: [u32; 3],
    /// What every element of the outputs is before.
    pub init: Option<f64>,
    /// Whether it takes inputs of any strides; else they come in row-major order.
    pub takes_strides: bool,
}

/// What the threads of a launch run.
#[derive(Clone, Debug)]
pub enum Source {
    /// A kernel of the common language.
    Common(Arc<Program>),
    /// A body in the device's own language.
    Text(Arc<Text>),
}

/// A kernel's body in a device's own language. Inputs and outputs go by their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Text {
    /// What stands before the kernel.
    pub header: String,
    /// The statements.
    pub body: String,
    /// The names of inputs, then of outputs.
    pub names: Vec<String>,
    /// What stands for names of its template.
    pub template: Vec<(String, Parameter)>,
    /// Whether outputs are changed atomically.
    pub has_atomic_outputs: bool,
}
