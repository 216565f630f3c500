//! Programs for the planner's segments: which kernels run, over which grids, on which buffers.

mod body;
mod conv;
mod create;
pub(crate) mod dot;
mod gemm;
mod index;
pub(crate) mod map;
mod order;
mod pool;
mod quads;
mod reduce;
mod rows;
mod scan;
pub mod split;
#[cfg(test)]
mod tests;
mod turn;
pub(crate) mod view;

use cupola_core::backend::{Kernel as Work, Segment};
use cupola_core::prim::Op;
use cupola_core::{DType, Error};

use crate::ir::{Access, Buf, Build, Kernel, Target, Ty, Val, Var};

/// What a device cannot run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub String);

/// Where a launch finds a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
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
    Offset(Place),
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
    pub buffers: Vec<Place>,
    /// The arguments, in the order of the kernel's words.
    pub args: Vec<Arg>,
    /// Whether offsets take two words.
    pub wide: bool,
    /// What it takes for granted: that these regions start at multiples of so many elements.
    pub aligned: Vec<(Place, u32)>,
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
        Work::Map(_) => {
            Program { launches: vec![quads::quads(segment, target)?], ..Program::default() }
        }
        // Wider elements go one by one.
        Work::Op(Op::Dot(_) | Op::Conv(_))
            if segment.inputs.iter().take(2).all(|o| o.aval.dtype.size() <= 4) =>
        {
            let target = Target { vector_bytes: VECTOR_BYTES, ..target.clone() };
            program(segment, &target).ok()?
        }
        _ => return None,
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
    if gives_nothing(segment) {
        return Ok(program);
    }
    match &segment.kernel {
        Work::Map(body) => program.launches.push(map::map(body, segment, target)?),
        Work::Reduce { body, kind, axes } => {
            reduce::reduce(&mut program, body, *kind, axes, segment, target)?;
        }
        Work::Rows { body, folds } => {
            program.launches.push(rows::rows(body, folds, segment, target)?);
        }
        Work::Op(op) => {
            match (op, first) {
                (Op::Iota(p), Some(first)) => {
                    create::iota(&mut program, p, Some(first), segment, target)?;
                }
                (Op::RandomBits(p), Some(first)) => {
                    create::random_part(&mut program, p, first, segment, target)?;
                }
                _ => op_program(&mut program, op, segment, target)?,
            }
            // These go through their epilogue before they store.
            let is_done = matches!(op, Op::Dot(_) | Op::Conv(_) | Op::Pool(_));
            if let Some(epilogue) = segment.epilogue.as_ref().filter(|_| !is_done) {
                program.launches.push(map::epilogue(epilogue, segment, target)?);
            }
        }
    }
    Ok(program)
}

fn op_program(
    program: &mut Program,
    op: &Op,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    match op {
        Op::Iota(p) => create::iota(program, p, None, segment, target),
        Op::RandomBits(p) => create::random(program, p, segment, target),
        Op::ArgReduce(p) => order::arg_reduce(program, p, segment, target),
        Op::Bitcast(_) => create::bitcast(program, segment, target),
        Op::Scan(p) => scan::scan(program, p, segment, target),
        Op::Sort(p) => order::sort(program, p, segment, target),
        Op::Gather(p) => index::gather(program, p, segment, target),
        Op::GatherAxis(p) => index::gather_axis(program, p, segment, target),
        Op::Scatter(p) => index::scatter(program, p, segment, target),
        Op::ScatterAxis(p) => index::scatter_axis(program, p, segment, target),
        Op::Dot(p) => dot::dot(program, p, segment, target),
        Op::Conv(p) => conv::conv(program, p, segment, target),
        Op::Pool(p) => pool::pool(program, p, segment, target),
        Op::Custom(_) => Err(Missing("a custom operator has its own kernel, for the CPU".into())),
        Op::Input(_)
        | Op::Constant(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select(_)
        | Op::Cast(_)
        | Op::Mark(_)
        | Op::Movement(_)
        | Op::Reduce(_)
        | Op::Call(_) => Err(Missing(format!("{} is no segment of its own", op.name()))),
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

/// A launch that is being written.
struct Draft<'t> {
    build: Build<'t>,
    buffers: Vec<Place>,
    args: Vec<Arg>,
    aligned: Vec<(Place, u32)>,
    /// The type of offsets and indices.
    index: Ty,
}

impl<'t> Draft<'t> {
    /// A kernel for `segment`: its offsets are wide where an operand reaches far.
    fn new(name: &str, block: u32, segment: &Segment, target: &'t Target) -> Result<Self, Missing> {
        let operands = || segment.inputs.iter().chain(&segment.outputs);
        for operand in operands() {
            check_dtype(operand.aval.dtype, target)?;
        }
        let wide = operands().any(view::is_far);
        if wide && !target.wide_offsets {
            return Err(Missing("an operand reaches past 2³¹ elements".into()));
        }
        let index = if wide { Ty::I64 } else { Ty::U32 };
        let build = Build::new(target, name, block);
        Ok(Draft { build, buffers: Vec::new(), args: Vec::new(), aligned: Vec::new(), index })
    }

    /// Binds a buffer.
    fn bind(&mut self, place: Place, dtype: DType, access: Access) -> Result<Buf, Missing> {
        if self.buffers.len() == self.build.target.max_bindings {
            let most = self.build.target.max_bindings;
            return Err(Missing(format!("a kernel has at most {most} buffers")));
        }
        self.buffers.push(place);
        Ok(self.build.buffer(dtype, access))
    }

    /// Where a region starts.
    fn offset(&mut self, place: Place) -> Val {
        self.args.push(Arg::Offset(place));
        let low = self.build.arg();
        match self.index {
            Ty::I64 => {
                let high = self.build.arg();
                self.join(low, high, Ty::I64)
            }
            _ => low,
        }
    }

    /// Two words as one value.
    fn join(&mut self, low: Val, high: Val, ty: Ty) -> Val {
        let b = &mut self.build;
        let (low, high) = (b.convert(low, Ty::U64), b.convert(high, Ty::U64));
        let up = b.u32(32);
        let high = b.shl(high, up);
        let whole = b.or(low, high);
        match ty {
            Ty::U64 => whole,
            Ty::I64 => b.convert(whole, ty),
            _ => b.bits(whole, ty),
        }
    }

    /// A word that differs between launches of one kernel.
    fn word(&mut self, word: u32) -> Val {
        self.args.push(Arg::Word(word));
        self.build.arg()
    }

    /// The device's word for faults.
    fn faults(&mut self) -> Result<Buf, Missing> {
        self.bind(Place::Fault, DType::U32, Access::Write)
    }

    /// The number of the fault that an index is outside its axis.
    fn fault(&mut self, program: &mut Program, op: &'static str, detail: String) -> Val {
        program.faults.push(Error::index(op, detail));
        self.args.push(Arg::Fault(program.faults.len() - 1));
        self.build.arg()
    }

    /// Moves `low` and `high` together to the first place where `before` no longer holds.
    fn search(&mut self, low: Var, high: Var, before: impl FnOnce(&mut Self, Val) -> Val) {
        let two = self.index(2);
        let one = self.index(1);
        self.build.open_while();
        let (l, h) = (self.build.get(low), self.build.get(high));
        let more = self.build.lt(l, h);
        self.build.middle_while();
        let (l, h) = (self.build.get(low), self.build.get(high));
        let distance = self.build.sub(h, l);
        let half = self.build.div(distance, two);
        let middle = self.build.add(l, half);
        let is_before = before(self, middle);
        let after = self.build.add(middle, one);
        let (l, h) =
            (self.build.select(is_before, after, l), self.build.select(is_before, h, middle));
        self.build.set(low, l);
        self.build.set(high, h);
        self.build.close_while(more);
    }

    /// Takes for granted that a region starts at a multiple of `count` elements.
    fn assume(&mut self, place: Place, count: u32) {
        if count > 1 && !self.aligned.contains(&(place, count)) {
            self.aligned.push((place, count));
        }
    }

    /// A literal of the index type.
    fn index(&mut self, v: i64) -> Val {
        self.build.int(v, self.index)
    }

    /// The launch over a grid.
    fn launch(self, grid: [u32; 2]) -> Launch {
        Launch {
            kernel: self.build.finish(),
            grid,
            buffers: self.buffers,
            args: self.args,
            wide: self.index == Ty::I64,
            aligned: self.aligned,
        }
    }

    /// The launch with a thread for each of `count`, or as many as there can be.
    fn launch_over(self, count: u64) -> Launch {
        let block = u64::from(self.build.block_size());
        let most = u64::from(self.build.target.max_blocks);
        let blocks = count.div_ceil(block).clamp(1, most) as u32;
        self.launch([blocks, 1])
    }

    /// Runs `each` for every index below `count`, each by a whole block.
    fn blocks(&mut self, count: u64, each: impl FnOnce(&mut Self, Val)) {
        let index = self.index;
        let (block, blocks) = (self.build.block_x(), self.build.blocks());
        let (block, blocks) = (self.build.convert(block, index), self.build.convert(blocks, index));
        let count = self.index(count as i64);
        self.range(block, count, blocks, each);
    }

    /// Runs `each` for every index below `count`, spread over all threads of the grid.
    fn each(&mut self, count: u64, each: impl FnOnce(&mut Self, Val)) {
        let index = self.index;
        let b = &mut self.build;
        let (thread, block, blocks) = (b.thread(), b.block_x(), b.blocks());
        let size = b.u32(b.block_size());
        let (block, blocks) = (b.convert(block, index), b.convert(blocks, index));
        let (thread, size) = (b.convert(thread, index), b.convert(size, index));
        let first = b.mul(block, size);
        let first = b.add(first, thread);
        let stride = b.mul(blocks, size);
        let count = b.int(count as i64, index);
        self.range(first, count, stride, each);
    }

    /// A loop whose body may bind and read arguments.
    fn range(&mut self, from: Val, to: Val, step: Val, each: impl FnOnce(&mut Self, Val)) {
        let counter = self.build.open_range(from);
        each(self, counter);
        self.build.close_range(counter, from, to, step);
    }
}
