//! Programs for the planner's segments: which kernels run, over which grids, on which buffers.

mod arg_reduce;
pub(crate) mod attention;
mod bitcast;
mod body;
mod conv;
mod create;
mod custom;
pub(crate) mod dot;
pub(crate) mod fft;
mod finish;
mod gather;
mod gemm;
#[cfg(feature = "cuda")]
pub(crate) mod linalg;
pub(crate) mod map;
mod pool;
mod quads;
mod quantized;
mod random;
mod reduce;
mod rows;
mod scan;
mod scatter;
mod sort;
pub mod split;
#[cfg(test)]
mod tests;
mod turn;
pub(crate) mod view;

use std::cell::RefCell;
use std::ops::Deref;

use cupola_core::backend::{Kernel as SegmentKernel, Operand, Segment};
use cupola_core::prim::{Composite, KernelOp, Primitive};
use cupola_core::{Aval, DType, Error};

pub use crate::ir::Missing;
use crate::ir::{Access, Buf, Build, Divisor, Kernel, Target, Ty, Val};
pub use custom::{HEADER, SOURCE, users_name};
use view::{Axes, Walk};

/// Where a launch finds a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BufferRef {
    /// An input of the segment.
    Input(usize),
    /// An output of the segment.
    Output(usize),
    /// Memory of the program's own.
    Scratch(usize),
    /// The device's word for faults: a kernel that meets one stores its number.
    Fault,
}

/// Where an argument of a launch comes from, known when the program runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arg {
    /// Where a region starts in its buffer, in elements: one word, or two where offsets are wide.
    Offset(BufferRef),
    /// A run-time scalar: two words.
    Scalar(usize),
    /// This word.
    Word(u32),
    /// The number that the driver gave to a fault of the program.
    Fault(usize),
}

/// One run of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// What runs.
    pub kernel: Kernel,
    /// How many blocks along each axis.
    pub grid: [u32; 2],
    /// The buffers, in the order of the kernel's bindings.
    pub buffers: Vec<BufferRef>,
    /// The arguments, in the order of the kernel's words.
    pub args: Vec<Arg>,
    /// The words of its sizes, which come behind them.
    pub sizes: Vec<u32>,
    /// Whether offsets take two words.
    pub wide: bool,
    /// What it takes for granted: that these regions start at multiples of so many elements.
    pub aligned: Vec<(BufferRef, u32)>,
}

/// What a segment runs as.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Bytes of memory that it needs while it runs.
    pub scratch: Vec<usize>,
    /// The kernels, in order.
    pub launches: Vec<Launch>,
    /// What can turn out wrong with the values while it runs.
    pub faults: Vec<Error>,
}

/// Whether there are kernels for a composite of inputs of these avals, each of at most `binding` bytes.
pub fn claims(composite: &Composite, inputs: &[&Aval], binding: u64, target: &Target) -> bool {
    match composite {
        Composite::Attention(_) | Composite::AttentionGrad(_) => attention::claims(inputs, binding),
        Composite::BatchNorm(_) => false,
        Composite::QuantizedDot(op) => quantized::claims(op, inputs, binding, target),
    }
}

/// The program of `segment` for `target`.
pub fn program(segment: &Segment, target: &Target) -> Result<Program, Missing> {
    program_from(segment, None, target)
}

/// The most bytes that a thread of [`in_vectors`] loads or stores at once: what a vector of a
/// shading language has.
const VECTOR_BYTES: usize = 16;

/// A program of `segment` that moves neighbours at once, on a target whose other programs do not:
/// for launches whose regions start where [`Launch::aligned`] says.
pub fn in_vectors(segment: &Segment, target: &Target) -> Option<Program> {
    if gives_nothing(segment) {
        return None;
    }
    let program = match &segment.kernel {
        SegmentKernel::Map(_) => {
            Program { launches: vec![quads::quads(segment, target)?], ..Program::default() }
        }
        // Wider elements go one by one.
        SegmentKernel::Op(KernelOp::Dot(_) | KernelOp::Conv(_))
            if segment.inputs.iter().take(2).all(|o| o.aval.dtype.size() <= 4) =>
        {
            let target = Target { vector_bytes: VECTOR_BYTES, ..target.clone() };
            program(segment, &target).ok()?
        }
        SegmentKernel::Composite(Composite::QuantizedDot(_)) => {
            let target = Target { vector_bytes: VECTOR_BYTES, ..target.clone() };
            program(segment, &target).ok()?
        }
        // A text knows no offsets: this is for operands without.
        SegmentKernel::Custom(op) if custom::is_text(op, target) => {
            let target = Target { vector_bytes: VECTOR_BYTES, ..target.clone() };
            program(segment, &target).ok()?
        }
        SegmentKernel::Reduce { .. }
        | SegmentKernel::Rows { .. }
        | SegmentKernel::Op(_)
        | SegmentKernel::Composite(_)
        | SegmentKernel::Control(_)
        | SegmentKernel::Custom(_) => {
            return None;
        }
    };
    program.launches.iter().any(|launch| !launch.aligned.is_empty()).then_some(program)
}

fn gives_nothing(segment: &Segment) -> bool {
    segment.outputs.iter().all(|o| o.aval.shape.size() == 0)
}

/// The program of a part of a counter or of random bits that starts at `first`, or of any other
/// segment.
pub(crate) fn program_from(
    segment: &Segment,
    first: Option<u32>,
    target: &Target,
) -> Result<Program, Missing> {
    let mut program = Program::default();
    // Indices are looked at where nothing is read at them, too.
    let has_indices = matches!(
        &segment.kernel,
        SegmentKernel::Op(KernelOp::Gather(_) | KernelOp::Scatter(_) | KernelOp::ScatterAxis(_))
    );
    if gives_nothing(segment) && !has_indices {
        return Ok(program);
    }
    match &segment.kernel {
        SegmentKernel::Map(body) => program.launches.push(map::map(body, segment, target)?),
        SegmentKernel::Reduce { body, kind, axes } => {
            let work = reduce::Folded {
                name: "reduce",
                body,
                kind: *kind,
                axes,
                dtype: segment.outputs[0].aval.dtype,
                inputs: segment.inputs.clone(),
            };
            reduce::reduce(&mut program, &work, segment, target)?;
        }
        SegmentKernel::Rows { body, folds } => {
            program.launches.push(rows::rows(body, folds, segment, target)?);
        }
        SegmentKernel::Op(op) => {
            match (op, first) {
                (KernelOp::Iota(p), Some(first)) => {
                    create::iota(&mut program, p, Some(first), segment, target)?;
                }
                (KernelOp::RandomBits(p), Some(first)) => {
                    random::random_part(&mut program, p, first, segment, target)?;
                }
                _ => op_program(&mut program, op, segment, target)?,
            }
            // These go through their epilogue before they store.
            let is_done = op.facts().takes_epilogue;
            if let Some(epilogue) = segment.epilogue.as_ref().filter(|_| !is_done) {
                program.launches.push(map::epilogue(epilogue, segment, target)?);
            }
        }
        SegmentKernel::Composite(composite) => match composite {
            Composite::Attention(op) => attention::forward(&mut program, op, segment, target)?,
            Composite::AttentionGrad(op) => attention::backward(&mut program, op, segment, target)?,
            Composite::QuantizedDot(op) => quantized::quantized(&mut program, op, segment, target)?,
            Composite::BatchNorm(_) => {
                return Err(Missing(format!("{} is not claimed", composite.name())));
            }
        },
        SegmentKernel::Control(control) => {
            return Err(Missing(format!("{} is run by the planner", control.name())));
        }
        SegmentKernel::Custom(op) => custom::custom(&mut program, op, segment, target)?,
    }
    Ok(program)
}

fn op_program(
    program: &mut Program,
    op: &KernelOp,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    match op {
        KernelOp::Iota(p) => create::iota(program, p, None, segment, target),
        KernelOp::RandomBits(p) => random::random(program, p, segment, target),
        KernelOp::ArgReduce(p) => arg_reduce::arg_reduce(program, p, segment, target),
        KernelOp::Bitcast(_) => bitcast::bitcast(program, segment, target),
        KernelOp::Scan(p) => scan::scan(program, p, segment, target),
        KernelOp::Sort(p) => sort::sort(program, p, segment, target),
        KernelOp::Gather(p) => gather::gather(program, p, segment, target),
        KernelOp::GatherAxis(p) => gather::gather_axis(program, p, segment, target),
        KernelOp::Scatter(p) => scatter::scatter(program, p, segment, target),
        KernelOp::ScatterAxis(p) => scatter::scatter_axis(program, p, segment, target),
        KernelOp::Dot(p) => dot::dot(program, p, segment, target),
        KernelOp::Conv(p) => conv::conv(program, p, segment, target),
        KernelOp::Pool(p) => pool::pool(program, p, segment, target),
        KernelOp::Fft(p) => fft::fft(program, p, segment, target),
        KernelOp::Linalg(p) => Err(Missing(format!("there is no kernel of {}", p.name()))),
    }
}

/// Checks that a kernel for `target` can hold elements of `dtype`.
fn check_dtype(dtype: DType, target: &Target) -> Result<(), Missing> {
    let missing = match Ty::of(dtype) {
        Ty::I64 | Ty::U64 => !target.int64,
        Ty::F64 => !target.float64,
        Ty::Bool | Ty::I32 | Ty::U32 | Ty::F32 => false,
    };
    match missing {
        true => Err(Missing(format!("the device has no {dtype}"))),
        false => Ok(()),
    }
}

/// A launch that is being written: a kernel, and where its buffers and arguments come from.
struct Draft {
    build: Build,
    /// The type of offsets and indices.
    index: Ty,
    bound: RefCell<Bound>,
}

#[derive(Default)]
struct Bound {
    buffers: Vec<BufferRef>,
    args: Vec<Arg>,
    aligned: Vec<(BufferRef, u32)>,
}

impl Deref for Draft {
    type Target = Build;

    fn deref(&self) -> &Build {
        &self.build
    }
}

impl Draft {
    /// A kernel for `segment`: its offsets are wide where an operand reaches far.
    fn new(name: &str, block: u32, segment: &Segment, target: &Target) -> Result<Self, Missing> {
        let operands = || segment.inputs.iter().chain(&segment.outputs);
        for operand in operands() {
            check_dtype(operand.aval.dtype, target)?;
        }
        let wide = operands().any(view::is_far);
        if wide && !target.wide_offsets {
            return Err(Missing("an operand reaches past 2³¹ elements".into()));
        }
        let index = if wide { Ty::I64 } else { Ty::U32 };
        Ok(Draft { build: Build::new(target, name, block), index, bound: RefCell::default() })
    }

    /// Binds a buffer.
    fn bind(&self, buffer: BufferRef, dtype: DType, access: Access) -> Buf {
        let buffers = &mut self.bound.borrow_mut().buffers;
        let most = self.target.max_bindings;
        if buffers.len() == most {
            self.fail(Missing(format!("a kernel has at most {most} buffers")));
        }
        buffers.push(buffer);
        self.buffer(dtype, access)
    }

    /// The first word of the next argument.
    fn arg_of(&self, arg: Arg) -> Val<'_> {
        self.bound.borrow_mut().args.push(arg);
        self.arg()
    }

    /// Where a region starts.
    fn offset(&self, buffer: BufferRef) -> Val<'_> {
        let low = self.arg_of(Arg::Offset(buffer));
        match self.index {
            Ty::I64 => join(low, self.arg(), Ty::I64),
            _ => low,
        }
    }

    /// A word that differs between launches of one kernel.
    fn word(&self, word: u32) -> Val<'_> {
        self.arg_of(Arg::Word(word))
    }

    /// The device's word for faults.
    fn faults(&self) -> Buf {
        self.bind(BufferRef::Fault, DType::U32, Access::Write)
    }

    /// The number of the fault that an index is outside its axis.
    fn fault(&self, program: &mut Program, op: &'static str, detail: String) -> Val<'_> {
        program.faults.push(Error::index(op, detail));
        self.arg_of(Arg::Fault(program.faults.len() - 1))
    }

    /// Takes for granted that a region starts at a multiple of `count` elements.
    fn assume(&self, buffer: BufferRef, count: u32) {
        let aligned = &mut self.bound.borrow_mut().aligned;
        if count > 1 && !aligned.contains(&(buffer, count)) {
            aligned.push((buffer, count));
        }
    }

    /// A literal of the index type.
    fn index(&self, v: i64) -> Val<'_> {
        self.int(v, self.index)
    }

    /// A size, a stride or a count, of the index type: see [`Build::size`].
    fn extent(&self, v: impl TryInto<i64>) -> Val<'_> {
        // Of what an address space holds, all fit.
        self.size(v.try_into().unwrap_or(i64::MAX), self.index)
    }

    /// Strides, and other steps: see [`Build::step`].
    fn strides(&self, strides: &[isize]) -> Vec<Val<'_>> {
        strides.iter().map(|&stride| self.step(stride as i64, self.index)).collect()
    }

    /// Strides that are part of the text, for kernels that are written for one geometry.
    fn literals(&self, strides: &[isize]) -> Vec<Val<'_>> {
        strides.iter().map(|&stride| self.index(stride as i64)).collect()
    }

    /// Sizes of axes that are part of the text, likewise.
    fn fixed_axes(&self, sizes: &[u32]) -> Vec<Divisor<'_>> {
        sizes.iter().map(|&size| self.fixed(size, self.index)).collect()
    }

    /// Sizes of axes, by which an element's number is divided.
    fn divisors(&self, sizes: &[usize]) -> Vec<Divisor<'_>> {
        sizes.iter().map(|&size| self.divisor(size, self.index)).collect()
    }

    /// Axes as the kernel walks them.
    fn walk(&self, axes: &Axes) -> Walk<'_> {
        let strides = axes.strides.iter().map(|strides| self.strides(strides)).collect();
        Walk { sizes: self.divisors(&axes.sizes), strides }
    }

    /// The axes of an operand.
    fn walk_of(&self, operand: &Operand) -> (Vec<Divisor<'_>>, Vec<Val<'_>>) {
        (self.divisors(&operand.aval.shape), self.strides(&operand.strides))
    }

    /// A number as an index.
    fn as_index<'k>(&'k self, v: Val<'k>) -> Val<'k> {
        v.convert(self.index)
    }

    /// The launch over a grid.
    fn launch(self, grid: [u32; 2]) -> Result<Launch, Missing> {
        let Bound { buffers, args, aligned } = self.bound.into_inner();
        let sizes = self.build.sizes();
        let kernel = self.build.finish()?;
        Ok(Launch { kernel, grid, buffers, args, sizes, wide: self.index == Ty::I64, aligned })
    }

    /// The launch with a thread for each of `count`, or as many as there can be.
    fn launch_over(self, count: u64) -> Result<Launch, Missing> {
        let block = u64::from(self.block_size());
        self.launch_blocks(count.div_ceil(block))
    }

    /// The launch with so many blocks, or as many as there can be.
    fn launch_blocks(self, count: u64) -> Result<Launch, Missing> {
        let most = u64::from(self.target.max_blocks);
        self.launch([count.clamp(1, most) as u32, 1])
    }

    /// Runs `each` for every index below `count`, each by a whole block.
    fn blocks<'k>(&'k self, count: u64, each: impl FnOnce(Val<'k>)) {
        let (block, blocks) = (self.block_x(), self.build.blocks());
        let (block, blocks) = (self.as_index(block), self.as_index(blocks));
        self.range(block, count, blocks, each);
    }

    /// Runs `each` for every index below `count`, spread over all threads of the grid.
    fn each<'k>(&'k self, count: u64, each: impl FnOnce(Val<'k>)) {
        let (thread, block, blocks) = (self.thread(), self.block_x(), self.build.blocks());
        let size = self.u32(self.block_size());
        let (block, blocks) = (self.as_index(block), self.as_index(blocks));
        let (thread, size) = (self.as_index(thread), self.as_index(size));
        self.range(block * size + thread, count, blocks * size, each);
    }
}

/// Two words as one value.
fn join<'k>(low: Val<'k>, high: Val<'k>, ty: Ty) -> Val<'k> {
    let (low, high) = (low.convert(Ty::U64), high.convert(Ty::U64));
    let whole = low | (high << 32);
    match ty {
        Ty::U64 => whole,
        Ty::I64 => whole.convert(ty),
        _ => whole.bits(ty),
    }
}
