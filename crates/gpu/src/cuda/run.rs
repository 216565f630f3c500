//! Segments that are ready to run: everything that does not depend on the run is done before.

use std::sync::{Arc, OnceLock};

use cupola_core::backend::{Args, Buffer, Epilogue, Executable, Fails, Kernel, Segment};
use cupola_core::prim::{Composite, KernelOp, Linalg};
use cupola_core::{DType, Error, Result};

use super::absorb::absorbed;
use super::attention::{self, PreparedAttention};
use super::commands::{Command, Commands, LaunchConfig, Library};
use super::compile::Loaded;
use super::convolution;
use super::dnn::{ALIGNMENT, Dnn};
use super::geometry::Geometry;
use super::gpu::{Gpu, Scratch, slower};
use super::linalg::{self, Checked, Solver, Solvers, Stage};
use super::matrices::{Beside, Product};
use super::product::{self, Products};
use super::transform::{PreparedTransform, Transform};
use crate::emit::dynamic_shared;
use crate::ir::Target;
use crate::kernels::dot::{is_quick, is_vector};
use crate::kernels::{Arg, BufferRef, Launch, Missing, attention as kernels, fft, map, program};

/// A segment that is ready to run.
pub struct Prepared {
    gpu: Arc<Gpu>,
    /// Where each piece of the memory that it needs while it runs starts, and how much that is.
    scratch: Vec<usize>,
    scratch_bytes: usize,
    /// The numbers of its faults.
    faults: Vec<u32>,
    /// Bytes of an element, of each input and each output.
    sizes: [Vec<usize>; 2],
    dispatches: Vec<Dispatch>,
    /// Whether the host waits for the device in between, to look for what went wrong.
    is_checked: bool,
    /// Whether a library does in between what no graph of launches holds.
    is_alone: bool,
    /// Regions that have to start at multiples of so many elements.
    takes: Vec<Taken>,
    /// A run-time scalar that has to be zero.
    zero: Option<usize>,
    /// What runs where one of these is not so.
    otherwise: Option<Box<Otherwise>>,
}

/// A region, and how many elements its start has to be a multiple of.
type Taken = (BufferRef, u32);

/// A segment that may have to be made ready again, without vectors.
struct Otherwise {
    segment: Segment,
    target: Target,
    made: OnceLock<Result<Prepared>>,
}

/// One thing that the device is told.
enum Dispatch {
    Launch(Ready),
    /// A library works on these regions.
    Call(Arc<dyn Library>, Vec<BufferRef>),
}

/// A launch whose kernel is loaded.
pub struct Ready {
    pub config: LaunchConfig,
    pub kernel: Loaded,
    buffers: Vec<BufferRef>,
    args: Vec<Arg>,
    sizes: Vec<u32>,
    wide: bool,
}

impl Prepared {
    /// Makes a segment ready.
    pub fn new(gpu: &Arc<Gpu>, segment: &Segment, target: &Target) -> Result<Self> {
        gpu.enter()?;
        let size = |o: &cupola_core::backend::Operand| o.aval.dtype.size();
        let mut prepared = Prepared {
            gpu: gpu.clone(),
            scratch: Vec::new(),
            scratch_bytes: 0,
            faults: Vec::new(),
            sizes: [
                segment.inputs.iter().map(size).collect(),
                segment.outputs.iter().map(size).collect(),
            ],
            dispatches: Vec::new(),
            is_checked: false,
            is_alone: false,
            takes: Vec::new(),
            zero: None,
            otherwise: None,
        };
        let missing =
            |m: Missing| Error::Unsupported { device: gpu.device().to_string(), reason: m.0 };
        if let Some(op) = linalg::op(segment) {
            Solvers::check(op).map_err(Missing).map_err(missing)?;
            let plan = linalg::plan(op, segment, target).map_err(missing)?;
            prepared.factorize(op, plan)?;
            return Ok(prepared);
        }
        match library_call(gpu, segment, target) {
            Some(Called { call, takes, scratch, before, after, left, zero }) => {
                (prepared.scratch, prepared.scratch_bytes) = arrange(&scratch);
                before.into_iter().try_for_each(|launch| prepared.add(launch))?;
                prepared.dispatches.push(call);
                prepared.takes.extend(takes);
                after.into_iter().try_for_each(|launch| prepared.add(launch))?;
                let epilogue = left.unwrap_or_else(|| segment.epilogue.clone());
                if let Some(epilogue) = &epilogue {
                    prepared.add(map::epilogue(epilogue, segment, target).map_err(missing)?)?;
                }
                prepared.zero = zero;
            }
            None => {
                let program = program(segment, target).map_err(missing)?;
                (prepared.scratch, prepared.scratch_bytes) = arrange(&program.scratch);
                prepared.faults = program.faults.iter().map(|error| gpu.fault(error)).collect();
                let mut launches = program.launches.into_iter();
                launches.try_for_each(|launch| prepared.add(launch))?;
            }
        }
        if !prepared.takes.is_empty() {
            let target = Target { vector_bytes: 0, ..target.clone() };
            let made = OnceLock::new();
            prepared.otherwise =
                Some(Box::new(Otherwise { segment: segment.clone(), target, made }));
        }
        Ok(prepared)
    }
}

impl Prepared {
    /// Makes what is done for matrices ready.
    fn factorize(&mut self, op: Linalg, plan: linalg::Plan) -> Result<()> {
        let linalg::Plan { mut scratch, stages } = plan;
        self.is_alone = true;
        for stage in stages {
            match stage {
                Stage::Launch(launch) => self.add(launch)?,
                Stage::Call(call, mut regions) => {
                    let solver = Solver::new(&self.gpu, call)?;
                    scratch.push(solver.workspace());
                    regions.push(BufferRef::Scratch(scratch.len() - 1));
                    self.dispatches.push(Dispatch::Call(Arc::new(solver), regions));
                }
                Stage::Check { check, status, count } => {
                    self.is_checked = true;
                    let checked = Arc::new(Checked { op, check, count });
                    self.dispatches.push(Dispatch::Call(checked, vec![status]));
                }
            }
        }
        (self.scratch, self.scratch_bytes) = arrange(&scratch);
        Ok(())
    }

    /// Whether it cannot be one of several steps that run as one.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }
}

/// What a library does instead of a kernel.
struct Called {
    call: Dispatch,
    /// What it takes for granted of its regions.
    takes: Vec<Taken>,
    /// Bytes of memory that it needs while it runs.
    scratch: Vec<usize>,
    /// Kernels that run before and after it.
    before: Vec<Launch>,
    after: Option<Launch>,
    /// What is left of the segment's epilogue, where the library does a part of it.
    left: Option<Option<Epilogue>>,
    /// A run-time scalar that it takes for zero.
    zero: Option<usize>,
}

impl Called {
    fn new(library: impl Library + 'static, regions: &[BufferRef]) -> Called {
        let call = Dispatch::Call(Arc::new(library), regions.to_vec());
        let takes = Vec::new();
        Called {
            call,
            takes,
            scratch: Vec::new(),
            before: Vec::new(),
            after: None,
            left: None,
            zero: None,
        }
    }

    /// This, where the library takes these regions at multiples of so many bytes.
    fn aligned(mut self, regions: &[BufferRef], bytes: usize, dtype: DType) -> Called {
        let count = (bytes / dtype.size()) as u32;
        self.takes = regions.iter().map(|&buffer| (buffer, count)).collect();
        self
    }
}

fn library_call(gpu: &Arc<Gpu>, segment: &Segment, target: &Target) -> Option<Called> {
    match &segment.kernel {
        Kernel::Op(KernelOp::Dot(dot))
            if !is_quick(dot, segment, target) && !is_vector(dot, segment) =>
        {
            let product = Product::of(dot, segment)?;
            Products::on(gpu)?;
            if let Some(called) = product_with_more(gpu, &product, segment, target) {
                return Some(called);
            }
            Some(Called::new(product::PreparedProduct::new(gpu, product).ok()?, &REGIONS))
        }
        // Without vectors, regions start anywhere.
        Kernel::Op(KernelOp::Conv(conv)) if target.vector_bytes > 0 => {
            let alone = Product::of_convolution(conv, segment);
            let alone = alone.filter(|_| Products::on(gpu).is_some());
            if let Some(product) = alone
                && let Some(called) = product_with_more(gpu, &product, segment, target)
            {
                return Some(called);
            }
            let geometry = Geometry::of(conv, segment, target.tf32)?;
            Dnn::on(gpu)?;
            let made = convolution::PreparedConvolution::new(gpu, &geometry);
            let made = made.map_err(|error| slower("a convolution", &error)).ok()?;
            let (mut regions, mut scratch, mut before) = (REGIONS, Vec::new(), Vec::new());
            for input in (0..2).filter(|&input| geometry.unordered[input]) {
                let (place, shape) = (scratch.len(), &segment.inputs[input].aval.shape);
                let (launch, size) = match geometry.filled {
                    None => (map::ordered(segment, input, place, target), shape.size()),
                    Some(channels) => (
                        map::filled(segment, input, place, channels, target),
                        shape[..3].iter().product::<usize>() * channels,
                    ),
                };
                regions[input] = BufferRef::Scratch(place);
                before.push(launch.ok()?);
                scratch.push(size * geometry.dtype.size());
            }
            let taken: Vec<BufferRef> = (regions.iter().copied())
                .filter(|region| !matches!(region, BufferRef::Scratch(_)))
                .collect();
            let called = Called::new(made, &regions).aligned(&taken, ALIGNMENT, geometry.dtype);
            Some(Called { scratch, before, ..called })
        }
        // It wants real numbers to start where complex ones do.
        Kernel::Op(KernelOp::Fft(op)) if target.vector_bytes > 0 => {
            let transform = Transform::of(op, segment)?;
            if !transform.is_wanted(segment.outputs[0].aval.shape.size()) {
                return None;
            }
            let made = PreparedTransform::new(gpu, &transform);
            let made = made.map_err(|error| slower("a Fourier transform", &error)).ok()?;
            let scratch = vec![made.workspace()];
            let (input, output) = (BufferRef::Input(0), BufferRef::Output(0));
            let called = Called::new(made, &[input, output, BufferRef::Scratch(0)]);
            let after = fft::scaled(op, segment, target).ok()?;
            let from = segment.inputs[0].aval.dtype;
            Some(Called { scratch, after, ..called.aligned(&[input], DType::C64.size(), from) })
        }
        // Its kernels for this architecture were seen to repeat their results.
        Kernel::Composite(Composite::Attention(op)) if target.wide && target.vector_bytes > 0 => {
            if op.sinks {
                return None;
            }
            let geometry = attention::Geometry::of(&op.scores, segment, &[])?;
            Dnn::on(gpu)?;
            let made = PreparedAttention::forward(gpu, &geometry);
            let made = made.map_err(|error| slower("an attention", &error)).ok()?;
            let (input, output) = (BufferRef::Input, BufferRef::Output);
            let tensors = [input(0), input(1), input(2), output(0), output(1)];
            let scratch = vec![made.workspace()];
            let regions = [&tensors[..], &[BufferRef::Scratch(0)]].concat();
            let called = Called::new(made, &regions);
            let called = called.aligned(&tensors, ALIGNMENT, geometry.dtype);
            Some(Called { scratch, after: Some(kernels::ones(segment, target).ok()?), ..called })
        }
        Kernel::Composite(Composite::AttentionGrad(op))
            if target.wide && target.vector_bytes > 0 =>
        {
            let count = segment.inputs.len();
            let tokens = [count - 2, count - 1];
            let geometry = attention::Geometry::of(&op.scores, segment, &tokens)?;
            Dnn::on(gpu)?;
            let made = PreparedAttention::backward(gpu, &geometry);
            let made = made.map_err(|error| slower("the gradient of an attention", &error)).ok()?;
            let inputs = [0, 1, 2, tokens[0], tokens[1]].map(BufferRef::Input);
            let tensors = [&inputs[..], &[0, 1, 2].map(BufferRef::Output)].concat();
            let scratch = vec![geometry.rows() * 4, geometry.rows() * 4, made.workspace()];
            let regions = [&tensors[..], &[0, 1, 2].map(BufferRef::Scratch)].concat();
            let called = Called::new(made, &regions);
            let called = called.aligned(&tensors, ALIGNMENT, geometry.dtype);
            let before = vec![kernels::logarithms(segment, target).ok()?];
            Some(Called { scratch, before, ..called })
        }
        _ => None,
    }
}

/// A product with the beginning of its epilogue, where the library has a way to do both.
fn product_with_more(
    gpu: &Arc<Gpu>,
    product: &Product,
    segment: &Segment,
    target: &Target,
) -> Option<Called> {
    // Without vectors, regions start anywhere.
    if target.vector_bytes == 0 {
        return None;
    }
    let all = absorbed(segment, product, false)?;
    // Where the library has no way that keeps NaN, it only adds.
    let sums = all.least.and_then(|_| absorbed(segment, product, true));
    let (done, made) = [Some(all), sums].into_iter().flatten().find_map(|done| {
        let beside = Beside {
            array: done.array.is_some(),
            row: done.row.is_some(),
            least: done.least.is_some(),
        };
        let product = Product { beside, ..product.clone() };
        Some((done, product::PreparedProduct::new(gpu, product).ok()?))
    })?;
    let more: Vec<BufferRef> =
        [done.row, done.array].into_iter().flatten().map(BufferRef::Input).collect();
    let dtype = segment.outputs[0].aval.dtype;
    let called = Called::new(made, &[&REGIONS[..], &more].concat()).aligned(&more, 16, dtype);
    let left = segment.epilogue.as_ref().and_then(|epilogue| {
        Some(Epilogue { body: done.rest.clone()?, first_input: epilogue.first_input })
    });
    Some(Called { left: Some(left), zero: done.least, ..called })
}

/// What libraries work on.
const REGIONS: [BufferRef; 3] = [BufferRef::Input(0), BufferRef::Input(1), BufferRef::Output(0)];

/// Where pieces of so many bytes start, one after another, and how much they take.
fn arrange(pieces: &[usize]) -> (Vec<usize>, usize) {
    let mut end: usize = 0;
    let mut starts = Vec::new();
    for bytes in pieces {
        starts.push(end);
        end = (end + bytes).next_multiple_of(256);
    }
    (starts, end)
}

/// Where a region starts in its buffer, in elements.
fn offset(args: &Args<'_>, buffer: BufferRef) -> isize {
    match buffer {
        BufferRef::Input(i) => args.inputs[i].offset,
        BufferRef::Output(i) => args.outputs[i].offset,
        BufferRef::Scratch(_) | BufferRef::Fault => 0,
    }
}

fn ready(gpu: &Gpu, launch: Launch) -> Result<Ready> {
    let Launch { kernel, grid, buffers, args, sizes, wide, aligned: _ } = launch;
    let (threads, shared) = (kernel.block, dynamic_shared(&kernel));
    let kernel = gpu.kernels.get(gpu, kernel)?;
    let function = kernel.function;
    if shared > 0 {
        gpu.allow_shared(function.0, shared)?;
    }
    let config = LaunchConfig { function, grid, threads, shared };
    Ok(Ready { config, kernel, buffers, args, sizes, wide })
}

impl Executable for Prepared {
    /// Indices are looked at on the device.
    fn fails(&self) -> Fails {
        match self.faults.is_empty() {
            _ if self.is_checked => Fails::Anywhere,
            true => Fails::Never,
            false => Fails::Late,
        }
    }

    fn scratch(&self) -> usize {
        self.scratch_bytes
    }

    /// Launches of one kernel can be one.
    fn kind(&self) -> Option<u64> {
        self.launch().map(|ready| ready.config.function.0.addr() as u64)
    }

    fn run(&self, args: &Args<'_>) -> Result<()> {
        let gpu = &self.gpu;
        gpu.enter()?;
        let prepared = self.fitting(args)?;
        let scratch = match prepared.given(args) {
            Some(given) => Scratch { start: gpu.start(given)?, memory: None },
            None => gpu.scratch(prepared.scratch_bytes)?,
        };
        let mut commands = Commands::default();
        prepared.tell(args, scratch.start, &mut commands)?;
        gpu.before_run([args].into_iter(), &scratch)?;
        let done = commands.submit(gpu).map_err(|(_, error)| error);
        gpu.after_run([args].into_iter(), &scratch);
        done
    }
}

impl Prepared {
    /// This, or what runs where a region or a scalar is not as it takes for granted; the device has been entered.
    pub fn fitting(&self, args: &Args<'_>) -> Result<&Prepared> {
        let is_zero = self.zero.is_none_or(|at| args.scalars[at] == [0; 8]);
        match self.otherwise.as_deref().filter(|_| !is_zero || !self.is_aligned(args)) {
            None => Ok(self),
            Some(Otherwise { segment, target, made }) => {
                let made = made.get_or_init(|| Prepared::new(&self.gpu, segment, target));
                made.as_ref().map_err(Clone::clone)
            }
        }
    }

    /// The memory for its own use that it is given, where it is enough.
    pub fn given<'a>(&self, args: &Args<'a>) -> Option<&'a Buffer> {
        args.scratch.filter(|given| given.bytes() >= self.scratch_bytes)
    }

    /// Writes down what is to be done, where that memory starts at `scratch`.
    pub fn tell(&self, args: &Args<'_>, scratch: u64, commands: &mut Commands) -> Result<()> {
        for dispatch in &self.dispatches {
            match dispatch {
                Dispatch::Launch(ready) => {
                    commands.begin(Command::Launch(ready.config));
                    ready.fill(commands, self, args, scratch)?;
                }
                Dispatch::Call(library, buffers) => {
                    commands.begin(Command::Call(library.clone()));
                    for &buffer in buffers {
                        commands.pointer(self.region(args, buffer, scratch)?);
                    }
                }
            }
        }
        Ok(())
    }

    /// The launch that is all of it, where several of its kernel can be one.
    pub fn launch(&self) -> Option<&Ready> {
        let [Dispatch::Launch(ready)] = &self.dispatches[..] else { return None };
        let LaunchConfig { grid, shared, .. } = ready.config;
        let has_own = self.scratch_bytes > 0 || !self.faults.is_empty() || self.is_checked;
        // A text in the device's own language asks for the number of its block itself.
        let is_text = ready.kernel.kernel.text().is_some();
        (grid[1] == 1 && shared == 0 && !has_own && !is_text).then_some(ready)
    }

    fn add(&mut self, launch: Launch) -> Result<()> {
        for &(buffer, count) in &launch.aligned {
            if !self.takes.contains(&(buffer, count)) {
                self.takes.push((buffer, count));
            }
        }
        self.dispatches.push(Dispatch::Launch(ready(&self.gpu, launch)?));
        Ok(())
    }

    /// Whether every region starts where the kernels take for granted that it does.
    fn is_aligned(&self, args: &Args<'_>) -> bool {
        self.takes.iter().all(|&(buffer, count)| {
            offset(args, buffer).unsigned_abs().is_multiple_of(count as usize)
        })
    }

    /// Where the first element of a region is, if memory of its own starts at `scratch`.
    fn region(&self, args: &Args<'_>, buffer: BufferRef, scratch: u64) -> Result<u64> {
        let (region, size) = match buffer {
            BufferRef::Input(i) => (&args.inputs[i], self.sizes[0][i]),
            BufferRef::Output(i) => (&args.outputs[i], self.sizes[1][i]),
            BufferRef::Scratch(i) => return Ok(scratch + self.scratch[i] as u64),
            BufferRef::Fault => return Ok(0),
        };
        let start = self.gpu.start(region.buffer)?;
        Ok(start.wrapping_add_signed(region.offset as i64 * size as i64))
    }
}

impl Ready {
    /// Adds its parameters to a command.
    pub fn fill(
        &self,
        commands: &mut Commands,
        prepared: &Prepared,
        args: &Args<'_>,
        scratch: u64,
    ) -> Result<()> {
        let gpu = &prepared.gpu;
        for buffer in &self.buffers {
            let buffer = match *buffer {
                BufferRef::Input(i) => args.inputs[i].buffer,
                BufferRef::Output(i) => args.outputs[i].buffer,
                BufferRef::Scratch(i) => {
                    commands.pointer(scratch + prepared.scratch[i] as u64);
                    continue;
                }
                BufferRef::Fault => {
                    commands.pointer(gpu.fault_word());
                    continue;
                }
            };
            commands.pointer(gpu.start(buffer)?);
        }
        for arg in &self.args {
            match *arg {
                Arg::Offset(buffer) => {
                    let offset = offset(args, buffer) as u64;
                    commands.word(offset as u32);
                    if self.wide {
                        commands.word((offset >> 32) as u32);
                    }
                }
                Arg::Word(word) => commands.word(word),
                Arg::Fault(i) => commands.word(prepared.faults[i]),
                Arg::Scalar(i) => {
                    let [a, b, c, d, e, f, g, h] = args.scalars[i];
                    commands.word(u32::from_le_bytes([a, b, c, d]));
                    commands.word(u32::from_le_bytes([e, f, g, h]));
                }
            }
        }
        self.sizes.iter().for_each(|&word| commands.word(word));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::arrange;

    #[test]
    fn pieces_of_scratch_memory_do_not_overlap() {
        assert_eq!(arrange(&[]), (vec![], 0));
        assert_eq!(arrange(&[1, 256, 300, 0, 8]), (vec![0, 256, 512, 1024, 1024], 1280));
    }
}
