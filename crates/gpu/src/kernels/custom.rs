//! Users' kernels: of the common language they are written down as every other kernel is, of the device's own they
//! are text between declarations of what they may name.
//!
//! Every index is checked against the length of its array, unless it is seen to be below it: a store outside is
//! left out, a load outside reads another element, and either leaves a fault.

mod bound;
mod expr;
mod stmt;
mod text;

use cupola_core::backend::{Body, Kernel as SegmentKernel, Operand, Segment};
use cupola_core::is_row_major;
use cupola_core::prim::Custom;
use cupola_core::prim::call::{Language, Launch as UserLaunch, Source};
use cupola_core::{DType, Scalar};

use super::{Arg, BufferRef, Draft, Launch, Missing, Program, map};
use crate::ir::{Access, Target, Ty, Val};
use stmt::Writer;
pub use text::{HEADER, SOURCE};

/// Adds the launches of a user's kernel.
pub fn custom(
    program: &mut Program,
    op: &Custom,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let Some(launch) = op.0.launch(target.language) else {
        return Err(Missing(match &op.0.languages()[..] {
            [] => "this operator has no source for the device".into(),
            own => format!("its source is in {}, which the device does not run", own.join(", ")),
        }));
    };
    let threads: u64 = launch.threadgroup.iter().map(|&n| u64::from(n)).product();
    if threads > target.max_threads.into() {
        let most = target.max_threads;
        return Err(Missing(format!("a threadgroup of {threads} threads: {most} is the most")));
    }
    if let Some(value) = launch.init {
        for output in 0..segment.outputs.len() {
            program.launches.push(fill(segment, output, value, target)?);
        }
    }
    // A text of WGSL has no pointers: what does not begin where its buffer does is moved there.
    let is_text = matches!(launch.source, Source::Text(_));
    let anywhere = is_text && target.language == Language::Wgsl && target.vector_bytes == 0;
    let mut places: Vec<(BufferRef, Operand)> = Vec::new();
    for (number, operand) in segment.inputs.iter().enumerate() {
        let (input, dense) = (BufferRef::Input(number), Operand::contiguous(&operand.aval));
        let in_order = is_row_major(&operand.aval.shape, &operand.strides);
        places.push(match (in_order || launch.takes_strides, anywhere) {
            (true, false) => (input, operand.clone()),
            _ => {
                let scratch = scratch(program, operand);
                program.launches.push(copy((input, operand), scratch, target)?);
                (scratch, dense)
            }
        });
    }
    let mut moved = Vec::new();
    for (number, operand) in segment.outputs.iter().enumerate() {
        let output = BufferRef::Output(number);
        places.push(match anywhere {
            false => (output, operand.clone()),
            true => {
                let scratch = scratch(program, operand);
                if launch.init.is_some() {
                    program.launches.push(copy((output, operand), scratch, target)?);
                }
                moved.push(copy((scratch, operand), output, target)?);
                (scratch, operand.clone())
            }
        });
    }
    let name: String = op.0.name().chars().filter(char::is_ascii_alphanumeric).collect();
    let k = Draft::new(&format!("{PREFIX}{name}"), threads as u32, segment, target)?;
    let grid = Grid::new(&k, &launch);
    match &launch.source {
        Source::Common(source) => {
            Writer::new(&k, program, op.0.name(), source, &grid, &places)?.write()?;
        }
        Source::Text(source) => text::write(&k, source, &grid, &places, segment.inputs.len())?,
    }
    let blocks = grid.blocks;
    program.launches.push(k.launch(blocks)?);
    program.launches.extend(moved);
    Ok(())
}

/// What the names of users' kernels begin with, that they are no names of a language.
const PREFIX: &str = "custom_";

/// What the user calls the kernel of this name.
pub fn users_name(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

/// Whether an operator's kernel is in the device's own language.
pub fn is_text(op: &Custom, target: &Target) -> bool {
    let launch = op.0.launch(target.language);
    launch.is_some_and(|launch| matches!(launch.source, Source::Text(_)))
}

/// Gives all elements of an output a value.
fn fill(segment: &Segment, output: usize, value: f64, target: &Target) -> Result<Launch, Missing> {
    let operand = &segment.outputs[output];
    let k = Draft::new("fill", map::BLOCK, segment, target)?;
    let to = k.output(segment, output);
    let dtype = operand.aval.dtype;
    let ty = Ty::of(dtype);
    let value = match ty {
        _ if ty.is_float() => k.float(value, ty),
        Ty::Bool => k.bool(value != 0.0),
        _ => {
            let element = i64::from_ne_bytes(Scalar::Float(value).to_element(dtype));
            let unused = 64 - 8 * dtype.size() as u32;
            let is_signed = dtype.is_signed();
            k.int(if is_signed { element << unused >> unused } else { element }, ty)
        }
    };
    let total = operand.aval.shape.size() as u64;
    k.each(total, |at| to.buf.store(to.offset + at, value));
    k.launch_over(total)
}

/// Memory for an operand.
fn scratch(program: &mut Program, operand: &Operand) -> BufferRef {
    program.scratch.push(operand.aval.bytes().next_multiple_of(16).max(16));
    BufferRef::Scratch(program.scratch.len() - 1)
}

/// A copy of an operand in row-major order.
fn copy(
    (from, operand): (BufferRef, &Operand),
    to: BufferRef,
    target: &Target,
) -> Result<Launch, Missing> {
    let aval = &operand.aval;
    let segment = Segment {
        kernel: SegmentKernel::Map(Body::copy(aval.shape.clone(), aval.dtype)),
        inputs: vec![operand.clone()],
        outputs: vec![Operand::contiguous(aval)],
        scalars: Vec::new(),
        epilogue: None,
    };
    let mut launch = map::copy(&segment, target)?;
    let moved = |buffer: BufferRef| match buffer {
        BufferRef::Input(_) => from,
        BufferRef::Output(_) => to,
        other => other,
    };
    launch.buffers.iter_mut().for_each(|buffer| *buffer = moved(*buffer));
    launch.aligned.iter_mut().for_each(|(buffer, _)| *buffer = moved(*buffer));
    for arg in &mut launch.args {
        if let Arg::Offset(buffer) = arg {
            *buffer = moved(*buffer);
        }
    }
    Ok(launch)
}

/// Where a thread is in the grid of the user's, whose groups are blocks along one axis.
pub struct Grid<'k> {
    /// How many threads there are along each axis, in a group and in all.
    pub group: [u32; 3],
    pub threads: [u32; 3],
    /// How many groups.
    pub groups: [u32; 3],
    /// The device's own grid.
    pub blocks: [u32; 2],
    /// The place in the group, the group, and the place in the grid.
    pub local: [Val<'k>; 3],
    pub block: [Val<'k>; 3],
    pub position: [Val<'k>; 3],
    pub index: Val<'k>,
    /// Whether the thread is one of the grid's; none where all are.
    pub inside: Option<Val<'k>>,
}

impl<'k> Grid<'k> {
    fn new(k: &'k Draft, launch: &UserLaunch) -> Self {
        let (group, threads) = (launch.threadgroup, launch.grid);
        let groups = [0, 1, 2].map(|axis| threads[axis].div_ceil(group[axis]));
        let total: u64 = groups.iter().map(|&n| u64::from(n)).product();
        let most = u64::from(k.target.max_blocks);
        let rows = total.div_ceil(most).max(1);
        let blocks = [total.clamp(1, most) as u32, rows as u32];
        let index = k.thread();
        let mut own = k.block_x();
        let mut inside: Option<Val<'k>> = None;
        let mut holds = |condition: Val<'k>| {
            inside = Some(match inside {
                Some(before) => before & condition,
                None => condition,
            });
        };
        if rows > 1 {
            own = own + k.block_y() * k.build.blocks();
            if u64::from(blocks[0]) * rows != total {
                holds(own.lt(k.size(total as i64, Ty::U32)));
            }
        }
        let local = split(index, [0, 1, 2].map(|axis| k.u32(group[axis])), group);
        let sizes = [0, 1, 2].map(|axis| match groups[axis] {
            1 => k.u32(1),
            size => k.size(size.into(), Ty::U32),
        });
        let block = split(own, sizes, groups);
        let position = [0, 1, 2].map(|axis| match (groups[axis], group[axis]) {
            (1, _) => local[axis],
            (_, 1) => block[axis],
            (_, size) => block[axis] * k.u32(size) + local[axis],
        });
        for axis in 0..3 {
            if threads[axis] % group[axis] != 0 {
                holds(position[axis].lt(k.size(threads[axis].into(), Ty::U32)));
            }
        }
        Grid { group, threads, groups, blocks, local, block, position, index, inside }
    }
}

/// The place of element `flat` along three axes, the first of which runs fastest.
fn split<'k>(flat: Val<'k>, sizes: [Val<'k>; 3], known: [u32; 3]) -> [Val<'k>; 3] {
    let zero = flat.k().u32(0);
    match known {
        [_, 1, 1] => [flat, zero, zero],
        [_, _, 1] => [flat % sizes[0], flat / sizes[0], zero],
        _ => {
            let rest = flat / sizes[0];
            [flat % sizes[0], rest % sizes[1], rest / sizes[1]]
        }
    }
}

/// The dtype of an array's elements.
fn dtype(scalar: cupola_core::prim::call::language::Scalar) -> DType {
    use cupola_core::prim::call::language::Scalar;
    match scalar {
        Scalar::Bool => DType::Bool,
        Scalar::U8 => DType::U8,
        Scalar::I8 => DType::I8,
        Scalar::U16 => DType::U16,
        Scalar::I16 => DType::I16,
        Scalar::U32 => DType::U32,
        Scalar::I32 => DType::I32,
        Scalar::U64 => DType::U64,
        Scalar::I64 => DType::I64,
        Scalar::F16 => DType::F16,
        Scalar::BF16 => DType::BF16,
        Scalar::F32 => DType::F32,
        Scalar::F64 => DType::F64,
    }
}

/// The register of a value.
fn register(ty: cupola_core::prim::call::language::Ty) -> Ty {
    Ty::of(dtype(ty.scalar()))
}

/// How an array is bound.
fn access(is_input: bool, is_atomic: bool) -> Access {
    match (is_input, is_atomic) {
        (true, _) => Access::Read,
        (_, true) => Access::Atomic,
        _ => Access::Write,
    }
}
