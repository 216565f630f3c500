//! Elementwise programs: an interpreter that runs each instruction over a tile in the first cache.

mod binary;
mod cast;
mod chain;
mod copy;
mod epilogue;
mod exec;
mod functions;
mod lanes;
mod program;
mod scratch;
mod space;
#[cfg(test)]
mod tests;
mod unary;

use cupola_core::backend::Body;
use cupola_core::backend::Operand;
use cupola_core::prim::{Binary, Elementwise, Unary};
use cupola_core::{Error, Result};
use cupola_simd::Isa;

pub(crate) use cast::{held, narrow};
pub(crate) use copy::{Axis, CopyAxes, copy, out_of_tile};
pub(crate) use epilogue::EpilogueKernel;
pub(crate) use exec::Runner;
pub(crate) use lanes::{Avx2, Avx512, Portable, TileFn};
pub(crate) use program::{Ahead, LARGE, Program, Sink, tile_size};
pub(crate) use scratch::with_scratch;
pub(crate) use space::{Axes, Group, Space, Tiling, Walk, groups};

use crate::threads::parallel_for;

/// Where the operands of a kernel are. Pointers are to the element at index 0 along every axis.
#[derive(Clone, Copy)]
pub(crate) struct RawArgs<'a> {
    /// The inputs.
    pub inputs: &'a [*const u8],
    /// The outputs.
    pub outputs: &'a [*mut u8],
    /// The run-time scalars, each as the bytes of an element of its dtype.
    pub scalars: &'a [[u8; 8]],
}

// SAFETY: the pointers are only followed in `unsafe` functions, whose callers vouch that the
// chunks of one run may do so from several threads.
unsafe impl Sync for RawArgs<'_> {}

/// Work, in elements times instructions, below which another thread is not worth its wake-up.
pub(crate) const CHUNK_WORK: usize = 1 << 17;
/// The most chunks that a run is cut in.
pub(crate) const CHUNKS: usize = 64;

/// An elementwise program, ready to run.
pub(crate) struct MapKernel {
    space: Space,
    tiling: Tiling,
    program: Program,
    tiles: usize,
    chunk: usize,
}

impl MapKernel {
    /// Prepares `body` for operands whose strides are along the body's shape.
    pub fn new(body: &Body, inputs: &[Operand], outputs: &[Operand]) -> Result<Self> {
        check(body, inputs, outputs.len())?;
        let operands = || inputs.iter().chain(outputs).map(|o| &o.strides[..]);
        let mut space = Space::new(&body.shape, operands());
        let order: Vec<usize> =
            (inputs.len()..inputs.len() + outputs.len()).chain(0..inputs.len()).collect();
        space.sort(0, space.dims.len(), &order);
        space.merge(&mut []);
        let tiling = Tiling::new(&space, 0, tile_size(body, space.size() >= LARGE));
        let program = Program::new(body, &space, &tiling, Sink::Operands, Isa::best())?;
        let tiles = tiling.total(&space, 0..space.dims.len());
        let work = tiling.size() * work(body);
        let chunk = CHUNK_WORK.div_ceil(work.max(1)).max(tiles.div_ceil(CHUNKS));
        Ok(MapKernel { space, tiling, program, tiles, chunk })
    }

    /// About how much memory it holds besides its own.
    pub fn memory(&self) -> usize {
        self.space.memory() + self.program.memory()
    }

    /// Runs the program.
    ///
    /// # Safety
    /// Each operand's elements, at the strides that the kernel was made for, are valid for reads
    /// or writes. An output overlaps no other operand, unless it and an input are the same,
    /// gapless and of one element size.
    pub unsafe fn run(&self, args: &RawArgs<'_>) {
        let chunks = self.tiles.div_ceil(self.chunk.max(1));
        parallel_for(chunks, |chunk| {
            let first = chunk * self.chunk;
            let count = self.chunk.min(self.tiles - first);
            // SAFETY: the caller vouches for the operands; chunks write different elements.
            unsafe { self.run_tiles(args, first, count) }
        });
    }

    /// # Safety
    /// As [`MapKernel::run`], for these tiles.
    unsafe fn run_tiles(&self, args: &RawArgs<'_>, first: usize, count: usize) {
        let tiling = &self.tiling;
        let full = tiling.full_cuts();
        let mut walk = Walk::new(&self.space, tiling, 0..self.space.dims.len(), first);
        with_scratch(self.program.bytes, |scratch| {
            // SAFETY: the caller vouches for the operands, the program for the scratch memory.
            unsafe {
                let runner = Runner::new(&self.program, args, scratch, full, tiling.size());
                for i in 0..count {
                    let cuts = walk.cuts();
                    runner.tile(&walk.offsets, cuts, tiling.elements(cuts));
                    if i + 1 < count {
                        walk.next();
                    }
                }
                runner.finish();
            }
        });
    }
}

/// About how many simple instructions an element costs.
pub(crate) fn work(body: &Body) -> usize {
    let cost = |op: &Elementwise| match op {
        Elementwise::Unary(
            Unary::Neg | Unary::Abs | Unary::Sign | Unary::Square | Unary::Not | Unary::Invert,
        ) => 1,
        Elementwise::Unary(_)
        | Elementwise::Binary(Binary::Power | Binary::Atan2 | Binary::Remainder) => 10,
        Elementwise::Binary(_)
        | Elementwise::Compare(_)
        | Elementwise::Select(_)
        | Elementwise::Cast(_) => 1,
    };
    1 + body.inputs.len() + body.code.iter().map(|i| cost(&i.op)).sum::<usize>()
}

/// That a body and its operands go together.
pub(crate) fn check(body: &Body, inputs: &[Operand], outputs: usize) -> Result<()> {
    let rank = body.shape.rank();
    let fits = inputs.len() == body.inputs.len()
        && outputs == body.outputs.len()
        && inputs.iter().all(|o| o.strides.len() == rank);
    if fits {
        return Ok(());
    }
    Err(Error::Argument {
        op: "map",
        detail: format!("a body over {} does not fit its operands", body.shape),
    })
}
