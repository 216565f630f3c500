//! Commands that the driver knows by heart: a graph of launches, in a chain.

use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUgraphNode, CUstream};
use cupola_core::Result;

use super::commands::{Command, Commands, LaunchConfig};
use super::gpu::{Gpu, Packed};
use super::library;

/// Commands as one launch.
pub struct Graph {
    gpu: Arc<Gpu>,
    ready: CUgraphExec,
    /// What it was made ready from; the nodes are its.
    _definition: Definition,
    /// One for each command.
    nodes: Vec<CUgraphNode>,
}

// SAFETY: a graph may be used by any thread, one at a time, as `&mut self` has it.
unsafe impl Send for Graph {}

/// What a graph consists of; not ready to run. It is destroyed when it drops.
struct Definition(CUgraph);

impl Drop for Definition {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once; nothing hangs on the answer.
        let _ = unsafe { sys::cuGraphDestroy(self.0) };
    }
}

impl Graph {
    /// Makes a graph of commands; the device has been entered.
    pub fn new(gpu: &Arc<Gpu>, commands: &Commands) -> Result<Graph> {
        let mut definition = std::ptr::null_mut();
        // SAFETY: the place is there.
        gpu.check("making a graph", unsafe { sys::cuGraphCreate(&mut definition, 0) })?;
        let definition = Definition(definition);
        let mut nodes: Vec<CUgraphNode> = Vec::with_capacity(commands.len());
        let overlaps = may_overlap(gpu);
        let is_kernel = |index: usize| matches!(commands.get(index).0, Command::Launch(_));
        for index in 0..commands.len() {
            let before = nodes.last().copied();
            let early = before.filter(|_| overlaps && is_kernel(index) && is_kernel(index - 1));
            let after = if early.is_some() { None } else { before };
            let node = add(gpu, &definition, after, commands.get(index))?;
            if let Some(before) = early {
                overlap(gpu, &definition, before, node)?;
            }
            nodes.push(node);
        }
        let mut ready = std::ptr::null_mut();
        // SAFETY: the graph is alive, and so is the place.
        let code = unsafe { sys::cuGraphInstantiateWithFlags(&mut ready, definition.0, 0) };
        gpu.check("making a graph ready", code)?;
        Ok(Graph { gpu: gpu.clone(), ready, _definition: definition, nodes })
    }

    /// Gives these commands the parameters that they have in `commands`, which are like those that
    /// the graph was made of. Launches that still run keep theirs.
    pub fn change(&mut self, commands: &Commands, which: &[usize]) -> Result<()> {
        let gpu = &self.gpu;
        for &index in which {
            let (command, parameters, bytes) = commands.get(index);
            match command {
                Command::Launch(config) => {
                    let mut packed = Packed::new(parameters, bytes);
                    let node = node(config, &mut packed);
                    // SAFETY: the node is this graph's; the driver copies the parameters.
                    let code = unsafe {
                        sys::cuGraphExecKernelNodeSetParams_v2(self.ready, self.nodes[index], &node)
                    };
                    gpu.check("changing a graph", code)?;
                }
                Command::Call(library) => {
                    let child = captured(gpu, |stream| library.enqueue(gpu, stream, parameters))?;
                    // SAFETY: the node is this graph's; the driver copies the child's parameters.
                    let code = unsafe {
                        sys::cuGraphExecChildGraphNodeSetParams(
                            self.ready,
                            self.nodes[index],
                            child.0,
                        )
                    };
                    gpu.check("changing a graph", code)?;
                }
            }
        }
        Ok(())
    }

    /// Launches the graph; the device has been entered.
    pub fn launch(&mut self) -> Result<()> {
        // SAFETY: the graph is ready, and the stream lives as long as the program.
        let code = unsafe { sys::cuGraphLaunch(self.ready, self.gpu.stream()) };
        self.gpu.check("launching a graph", code)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // A graph must have finished before it goes. It goes seldom: with its plan.
        let _ = self.gpu.wait();
        // SAFETY: it is destroyed once, and runs no more; nothing hangs on the answer.
        let _ = unsafe { sys::cuGraphExecDestroy(self.ready) };
    }
}

/// Whether a kernel may take its place while the one before ends: kernels that are compiled for
/// devices that can wait for that themselves.
fn may_overlap(gpu: &Gpu) -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| {
        std::env::var("CUPOLA_CUDA_OVERLAP").as_deref() != Ok("0")
            && library::OVERLAP.load().is_ok()
    });
    *wanted && gpu.kernels.target() >= 90
}

/// Lets a kernel follow another one, and take its place while that one ends.
fn overlap(
    gpu: &Gpu,
    definition: &Definition,
    before: CUgraphNode,
    after: CUgraphNode,
) -> Result<()> {
    let programmatic = sys::CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    let edge = sys::CUgraphEdgeData {
        from_port: sys::CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC as u8,
        to_port: 0,
        type_: programmatic as u8,
        reserved: [0; 5],
    };
    // SAFETY: the graph and its nodes are alive; the driver copies what it is shown.
    let code = unsafe { sys::cuGraphAddDependencies_v2(definition.0, &before, &after, &edge, 1) };
    gpu.check("ordering a graph", code)
}

/// Adds a command after another one.
fn add(
    gpu: &Arc<Gpu>,
    definition: &Definition,
    before: Option<CUgraphNode>,
    (command, parameters, bytes): (&Command, &[u64], usize),
) -> Result<CUgraphNode> {
    let (before, count) = (before.as_slice().as_ptr(), before.as_slice().len());
    let mut made = std::ptr::null_mut();
    match command {
        Command::Launch(config) => {
            let mut packed = Packed::new(parameters, bytes);
            let node = node(config, &mut packed);
            // SAFETY: the graph and the node before are alive; the driver copies the parameters,
            // which are laid out as C lays out the kernel's.
            let code = unsafe {
                sys::cuGraphAddKernelNode_v2(&mut made, definition.0, before, count, &node)
            };
            gpu.check("adding to a graph", code)?;
        }
        Command::Call(library) => {
            let child = captured(gpu, |stream| library.enqueue(gpu, stream, parameters))?;
            // SAFETY: the graph and the node before are alive; the driver copies the child.
            let code = unsafe {
                sys::cuGraphAddChildGraphNode(&mut made, definition.0, before, count, child.0)
            };
            gpu.check("adding to a graph", code)?;
        }
    }
    Ok(made)
}

/// A launch as graphs want it.
fn node(config: &LaunchConfig, packed: &mut Packed) -> sys::CUDA_KERNEL_NODE_PARAMS {
    let LaunchConfig { function, grid, threads, shared } = *config;
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: function.0,
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: 1,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared,
        kernelParams: std::ptr::null_mut(),
        extra: packed.extra(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// What `work` gives to a stream, as a graph, without running it.
fn captured(gpu: &Gpu, work: impl FnOnce(CUstream) -> Result<()>) -> Result<Definition> {
    let stream = gpu.capture()?;
    // Libraries may do in between what a stricter mode forbids, such as loading their kernels.
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream lives as long as the program, and is this call's while it is locked.
    gpu.check("a capture", unsafe { sys::cuStreamBeginCapture_v2(*stream, mode) })?;
    let done = work(*stream);
    let mut definition = std::ptr::null_mut();
    // SAFETY: the capture was begun just before; it ends however the work did.
    let code = unsafe { sys::cuStreamEndCapture(*stream, &mut definition) };
    let definition = (!definition.is_null()).then_some(Definition(definition));
    done?;
    gpu.check("a capture", code)?;
    definition.ok_or_else(|| gpu.error("a capture holds nothing"))
}
