//! Elementwise programs that continue an op on parts of its output, in place.

use std::ops::Range;

use cupola_core::Result;
use cupola_core::backend::Body;
use cupola_core::backend::Operand;
use cupola_simd::Isa;
use smallvec::SmallVec;

use super::chain::{Chain, Rows, run_rows};
use super::program::Location;
use super::scratch::{Filled, with_filled};
use super::{Program, RawArgs, Runner, Sink, Space, Tiling, check, tile_size};
use crate::tail::number;

/// An epilogue, ready to run.
pub(crate) struct EpilogueKernel {
    space: Space,
    /// For runs of whole blocks: the axes inside of the cut.
    blocks: TiledProgram,
    /// For parts of a row, where a block is more than an element.
    rows: Option<TiledProgram>,
}

/// A program that makes of each element another one.
pub(crate) struct Function<'a> {
    isa: Isa,
    chain: &'a Chain<Location>,
    /// Where each location is that holds a scalar.
    table: SmallVec<[*const u8; 16]>,
    /// The scalars, which `table` points to.
    _numbers: Vec<f32>,
}

// SAFETY: the addresses are those of numbers that it owns, and that nobody writes.
unsafe impl Sync for Function<'_> {}

impl Function<'_> {
    /// Runs it over `count` rows of `width` elements, `step` apart.
    ///
    /// # Safety
    /// The rows can be read and written, and nothing else uses them meanwhile.
    pub unsafe fn run(&self, first: *mut f32, step: usize, count: usize, width: usize) {
        let rows = Rows { first, step, count, width };
        // SAFETY: the caller vouches for the rows.
        unsafe { run_rows(self.isa, self.chain, self.table.as_ptr(), rows) }
    }
}

/// The program for runs of one kind of block.
struct TiledProgram {
    tiling: Tiling,
    program: Program,
    /// Elements in one step along the cut axis.
    block: usize,
}

impl EpilogueKernel {
    /// Prepares `body`, whose input 0 is the op's contiguous output over the body's shape, and
    /// whose further inputs are `extra`, with strides along that shape.
    pub fn new(body: &Body, extra: &[Operand]) -> Result<Self> {
        let dtype = body.inputs[0];
        let out = Operand {
            aval: cupola_core::Aval { shape: body.shape.clone(), dtype },
            strides: body.shape.row_major(),
        };
        let inputs: Vec<Operand> = std::iter::once(&out).chain(extra).cloned().collect();
        check(body, &inputs, 1)?;
        let operands = inputs.iter().chain([&out]).map(|o| &o.strides[..]);
        let mut space = Space::new(&body.shape, operands);
        space.merge(&mut []);
        let tile = tile_size(body, false);
        let blocks = TiledProgram::new(body, &space, Tiling::blocks(&space, 0, tile))?;
        let rows = match blocks.block {
            1 => None,
            _ => Some(TiledProgram::new(body, &space, Tiling::rows(&space, tile))?),
        };
        Ok(EpilogueKernel { space, blocks, rows })
    }

    /// About how much memory it holds besides its own.
    pub fn memory(&self) -> usize {
        let rows = self.rows.as_ref().map_or(0, |rows| rows.program.memory());
        self.space.memory() + self.blocks.program.memory() + rows
    }

    /// The program as a function of each element, where it reads nothing else but scalars.
    pub fn as_function(&self, scalars: &[[u8; 8]]) -> Option<Function<'_>> {
        let program = &self.blocks.program;
        let (chain, used) = program.as_chain()?;
        let numbers: Vec<f32> = used.iter().map(|&(scalar, _)| number(scalars[scalar])).collect();
        let mut table: SmallVec<[*const u8; 16]> =
            SmallVec::from_elem(std::ptr::null(), program.locations);
        for ((_, location), number) in used.iter().zip(&numbers) {
            table[usize::from(*location)] = std::ptr::from_ref(number).cast();
        }
        Some(Function { isa: program.isa, chain, table, _numbers: numbers })
    }

    /// Runs the program over the elements `range` of the output, in row-major order, as a part of run number `run` with
    /// the same arguments.
    ///
    /// # Safety
    /// `out` is valid for reads and writes of the range, which nothing else uses meanwhile; the
    /// inputs of `args`, which are the extra ones, are valid for reads at the strides that the
    /// kernel was made for.
    pub unsafe fn run(&self, run: u64, out: *mut u8, args: &RawArgs<'_>, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let mut inputs: SmallVec<[*const u8; 16]> = SmallVec::new();
        inputs.push(out);
        inputs.extend_from_slice(args.inputs);
        let args = RawArgs { inputs: &inputs, outputs: &[out], scalars: args.scalars };
        let blocks = &self.blocks;
        let head = match blocks.block {
            1 => range.start,
            block => range.start.next_multiple_of(block).min(range.end),
        };
        let tail = head + (range.end - head) / blocks.block * blocks.block;
        // SAFETY: the caller vouches for the operands.
        unsafe {
            if let Some(rows) = &self.rows {
                rows.run(2 * run, &self.space, &args, range.start..head);
                rows.run(2 * run, &self.space, &args, tail..range.end);
            }
            blocks.run(2 * run + 1, &self.space, &args, head..tail);
        }
    }
}

impl TiledProgram {
    fn new(body: &Body, space: &Space, tiling: Tiling) -> Result<Self> {
        let program = Program::new(body, space, &tiling, Sink::Operands, Isa::best())?;
        let block = space.dims.iter().skip(tiling.cuts[0] + 1).product();
        Ok(TiledProgram { tiling, program, block })
    }

    /// # Safety
    /// As [`EpilogueKernel::run`]; the range starts and ends with whole blocks.
    unsafe fn run(&self, run: u64, space: &Space, args: &RawArgs<'_>, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let cut = self.tiling.cuts[0];
        let extent = self.tiling.extents.get(cut).copied().unwrap_or(1);
        let most = extent.min(range.len() / self.block);
        let filled = Filled { run, rows: most };
        with_filled(self.program.bytes, filled, |scratch, is_filled| {
            // SAFETY: the caller vouches for the operands, the program for the scratch memory.
            unsafe {
                let runner = Runner::filled(&self.program, args, scratch);
                if !is_filled {
                    runner.fill([most; 2], most * self.block);
                }
                let mut at = range.start;
                while at < range.end {
                    let (offsets, inside) = locate(space, at, cut);
                    let here = space.dims.get(cut).map_or(1, |d| d - inside);
                    let rows = most.min(here).min((range.end - at) / self.block);
                    runner.tile(&offsets, [rows; 2], rows * self.block);
                    at += rows * self.block;
                }
            }
        });
    }
}

/// The operands' offsets of element `at` in row-major order, and its index along `axis`.
fn locate(space: &Space, at: usize, axis: usize) -> (SmallVec<[isize; 16]>, usize) {
    let mut offsets: SmallVec<[isize; 16]> = SmallVec::from_elem(0, space.strides.len());
    let (mut left, mut inside) = (at, 0);
    for a in (0..space.dims.len()).rev() {
        let index = left % space.dims[a];
        left /= space.dims[a];
        if a == axis {
            inside = index;
        }
        for (offset, s) in offsets.iter_mut().zip(&space.strides) {
            *offset += s[a] * index as isize;
        }
    }
    (offsets, inside)
}
