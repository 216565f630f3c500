//! Reductions, with the elementwise program that feeds them run tile by tile.
//!
//! The axes are put in the order: kept outer axes, reduced axes, kept inner axes (those along
//! which the inputs run fastest, if any). Where what makes one run of outputs fits a tile, a tile
//! makes many outputs ([`Strategy::Whole`]); elsewhere each run of outputs is a unit, whose tiles
//! are folded into one row of accumulators ([`Strategy::Split`]). Partial results are always
//! combined in pairs, in an order that follows from the sizes alone. That of the elements of a row
//! along the last axis follows from its length: [`Row`] has it, too, where a row is kept.

mod fold;
mod row;
mod split;
#[cfg(test)]
mod tests;

use cupola_core::backend::Body;
use cupola_core::backend::Operand;
use cupola_core::prim::ReduceKind;
use cupola_core::{DType, Error, Result};
use cupola_simd::Isa;
use smallvec::SmallVec;

pub(crate) use self::fold::{Folds, folds};
pub(crate) use self::row::Row;
use self::split::Split;
use crate::map::{
    Axes, Axis, CHUNK_WORK, CHUNKS, CopyAxes, Group, Program, RawArgs, Runner, Sink, Space, TileFn,
    Tiling, Walk, check, copy, groups, held, narrow, out_of_tile, with_scratch, work,
};
use crate::threads::parallel_for;

/// Elements of a tile, whatever the program: in which order elements are folded does not depend on
/// what was fused. Short tiles keep the runs of additions that are not in pairs short.
const TILE: usize = 2048;

/// A reduction, ready to run.
pub(crate) struct ReduceKernel {
    core: Core,
    strategy: Strategy,
}

/// What both ways to reduce need.
struct Core {
    space: Space,
    tiling: Tiling,
    program: Program,
    folds: Folds,
    /// Bytes of an accumulator.
    size: usize,
    /// How many outer axes are kept, and where the reduced axes end.
    borders: [usize; 2],
    /// The place of the first output among the space's operands.
    output: usize,
    store: Store,
}

/// How accumulators reach the output.
struct Store {
    groups: SmallVec<[Group; 4]>,
    narrow: Option<TileFn>,
    /// Bytes of an element.
    size: usize,
}

/// How a reduction is run.
enum Strategy {
    /// Nothing is folded: the output is all identity.
    Empty(CopyAxes),
    /// A tile holds `reduced × inner` elements for each of some outer indices.
    Whole { reduced: usize, inner: usize, tiles: usize, chunk: usize },
    /// A tile holds a part of what makes one run of outputs.
    Split(Split),
}

impl ReduceKernel {
    /// Prepares the fold of each of `body`'s outputs over `axes` of its shape. Strides of inputs are along
    /// that shape, those of outputs, which lie alike, along what is left of it.
    pub fn new(
        body: &Body,
        kind: ReduceKind,
        axes: &[usize],
        inputs: &[Operand],
        outputs: &[Operand],
    ) -> Result<Self> {
        check(body, inputs, outputs.len())?;
        let isa = Isa::best();
        let dtype = body.dtype_of(body.outputs[0]);
        let folds = folds(kind, dtype, isa).ok_or_else(|| Error::DType {
            op: kind.name(),
            detail: format!("the CPU has none of {dtype}"),
        })?;
        let (space, borders) = arrange(body, axes, inputs, &outputs[0]);
        let reduced: usize = space.dims[borders[0]..borders[1]].iter().product();
        let inner: usize = space.dims[borders[1]..].iter().product();
        let tile = TILE;
        let fits = inner == 1 && reduced <= tile || reduced <= 64 && reduced * inner <= tile;
        // Rows in pieces, which one thread folds unless they are very long.
        let in_pieces = inner == 1 && !fits && borders[1] - borders[0] == 1;
        let tiling = match fits {
            true => Tiling::blocks(&space, 0, tile),
            false if in_pieces => Tiling::rows(&space, Row::piece(tile)),
            false => Tiling::new(&space, borders[0], tile),
        };
        let program = Program::new(body, &space, &tiling, Sink::Registers(outputs.len()), isa)?;
        let store = Store::new(&space, &tiling, borders, inputs.len(), dtype, isa);
        let size = held(dtype).size();
        let core =
            Core { space, tiling, program, folds, size, borders, output: inputs.len(), store };
        let strategy = if reduced == 0 {
            Strategy::Empty(core.all_outputs())
        } else if fits {
            let tiles = core.tiling.total(&core.space, 0..core.space.dims.len());
            let chunk = CHUNK_WORK.div_ceil(core.tiling.size() * (work(body) + 1));
            Strategy::Whole { reduced, inner, tiles, chunk: chunk.max(tiles.div_ceil(CHUNKS)) }
        } else {
            Strategy::Split(Split::new(&core, in_pieces))
        };
        Ok(ReduceKernel { core, strategy })
    }

    /// About how much memory it holds besides its own.
    pub fn memory(&self) -> usize {
        self.core.space.memory() + self.core.program.memory()
    }

    /// Runs the reduction.
    ///
    /// # Safety
    /// Each operand's elements, at the strides that the kernel was made for, are valid for reads
    /// or writes, and no output overlaps another operand.
    pub unsafe fn run(&self, args: &RawArgs<'_>) {
        // SAFETY: the caller vouches for the operands.
        unsafe {
            match &self.strategy {
                Strategy::Empty(axes) => self.core.run_empty(args, axes),
                Strategy::Whole { reduced, inner, tiles, chunk } => {
                    parallel_for(tiles.div_ceil(*chunk), |i| {
                        let first = i * chunk;
                        let count = (*chunk).min(tiles - first);
                        self.core.run_whole(args, *reduced, *inner, first, count);
                    });
                }
                Strategy::Split(split) => split.run(&self.core, args),
            }
        }
    }
}

/// The space with its axes in order, and where the reduced axes start and end in it.
fn arrange(
    body: &Body,
    axes: &[usize],
    inputs: &[Operand],
    output: &Operand,
) -> (Space, [usize; 2]) {
    let mut kept = output.strides.iter();
    let out: Vec<isize> = (0..body.shape.rank())
        .map(|a| if axes.contains(&a) { 0 } else { kept.next().copied().unwrap_or(0) })
        .collect();
    // A second row of strides marks the reduced axes, also where the output has strides of 0.
    let marks: Vec<isize> = (0..out.len()).map(|a| isize::from(!axes.contains(&a))).collect();
    let operands = inputs.iter().map(|o| &o.strides[..]).chain([&out[..], &marks[..]]);
    let mut space = Space::new(&body.shape, operands);
    let rank = space.dims.len();
    space.sort(0, rank, &(0..inputs.len()).collect::<Vec<_>>());
    let marks = space.strides.pop().unwrap_or_default();
    let reduced = |a: &usize| marks[*a] == 0;
    let inner = (0..rank).rev().find(reduced).map_or(rank, |last| last + 1);
    let outer: Axes<usize> = (0..inner).filter(|a| !reduced(a)).collect();
    let middle: Axes<usize> = (0..inner).filter(reduced).collect();
    let mut borders = [outer.len(), outer.len() + middle.len()];
    let order: Axes<usize> = outer.into_iter().chain(middle).chain(inner..rank).collect();
    space.permute(&order);
    space.merge(&mut borders);
    (space, borders)
}

impl Store {
    fn new(
        space: &Space,
        tiling: &Tiling,
        borders: [usize; 2],
        output: usize,
        dtype: DType,
        isa: Isa,
    ) -> Self {
        // The same tiles, seen without the reduced axes.
        let kept: Axes<usize> = (0..borders[0]).chain(borders[1]..space.dims.len()).collect();
        let strides: Axes<isize> = kept.iter().map(|&a| space.strides[output][a]).collect();
        let seen = Space {
            dims: kept.iter().map(|&a| space.dims[a]).collect(),
            strides: vec![strides.clone()],
        };
        let place = |cut: usize| kept.iter().position(|&a| a == cut).unwrap_or(usize::MAX);
        let tiling = Tiling {
            extents: kept.iter().map(|&a| tiling.extents[a]).collect(),
            cuts: tiling.cuts.map(place),
        };
        let half = held(dtype) != dtype;
        Store {
            groups: groups(&seen, &tiling, &strides, &strides),
            narrow: half.then(|| narrow(dtype, isa)),
            size: dtype.size(),
        }
    }

    /// Stores the `n` accumulators of a tile.
    ///
    /// # Safety
    /// `from` holds `n` accumulators, `to` is where the tile's first output is, `staging` is valid
    /// for `n` elements.
    unsafe fn run(
        &self,
        from: *const u8,
        to: *mut u8,
        n: usize,
        cuts: [usize; 2],
        staging: *mut u8,
    ) {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            let mut from = from;
            if let Some(narrow) = self.narrow {
                narrow(staging, from, from, from, n);
                from = staging;
            }
            copy(self.size, from, to, &out_of_tile(&self.groups, cuts));
        }
    }
}

impl Core {
    /// The axes of an output, to fill it.
    fn all_outputs(&self) -> CopyAxes {
        (0..self.borders[0])
            .chain(self.borders[1]..self.space.dims.len())
            .map(|a| Axis {
                size: self.space.dims[a],
                from: 0,
                to: self.space.strides[self.output][a],
            })
            .collect()
    }

    /// # Safety
    /// As [`ReduceKernel::run`].
    unsafe fn run_empty(&self, args: &RawArgs<'_>, axes: &[Axis]) {
        // Identities of half types are wide here: 0 and 1 only, as other folds of nothing fail.
        let wide = self.folds.identity;
        let mut element = [0u64; 1];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut element);
        let at = bytes.as_mut_ptr();
        // SAFETY: `element` is aligned for every dtype; the caller vouches for the output.
        unsafe {
            match self.store.narrow {
                Some(narrow) => {
                    let identity = u64::from_ne_bytes(wide);
                    let from = (&raw const identity).cast();
                    narrow(at, from, from, from, 1);
                }
                None => bytes.copy_from_slice(&wide),
            }
            for &output in args.outputs {
                copy(self.store.size, element.as_ptr().cast(), output, axes);
            }
        }
    }

    /// # Safety
    /// As [`ReduceKernel::run`], for these tiles.
    unsafe fn run_whole(
        &self,
        args: &RawArgs<'_>,
        reduced: usize,
        inner: usize,
        first: usize,
        count: usize,
    ) {
        let (tiling, program) = (&self.tiling, &self.program);
        let mut walk = Walk::new(&self.space, tiling, 0..self.space.dims.len(), first);
        let results = (tiling.size() / reduced * self.size).next_multiple_of(64);
        with_scratch(program.bytes + results, |scratch| {
            // SAFETY: the caller vouches for the operands; the scratch memory has room for the
            // program and, behind it, a tile's results.
            unsafe {
                let acc = scratch.add(program.bytes);
                let full = tiling.full_cuts();
                let runner = Runner::new(program, args, scratch, full, tiling.size());
                for i in 0..count {
                    let cuts = walk.cuts();
                    let n = tiling.elements(cuts);
                    runner.tile(&walk.offsets, cuts, n);
                    let outer = n / (reduced * inner);
                    for (output, &result) in program.results.iter().enumerate() {
                        let x = runner.get(result);
                        if inner == 1 {
                            (self.folds.rows)(acc, x, outer, reduced);
                        } else {
                            self.fill(acc, outer * inner);
                            for k in 0..outer {
                                let acc = acc.add(k * inner * self.size);
                                let x = x.add(k * reduced * inner * self.size);
                                (self.folds.columns)(acc, x, reduced, inner);
                            }
                        }
                        let to = self.at(args, output, walk.offsets[self.output]);
                        let staging = scratch.add(program.staging);
                        self.store.run(acc, to, outer * inner, cuts, staging);
                    }
                    if i + 1 < count {
                        walk.next();
                    }
                }
            }
        });
    }

    /// Fills accumulators with the identity.
    ///
    /// # Safety
    /// `acc` is valid for `n` accumulators.
    unsafe fn fill(&self, acc: *mut u8, n: usize) {
        let identity = u64::from_ne_bytes(self.folds.identity);
        // SAFETY: a `u64` is aligned for every accumulator.
        unsafe {
            let axis = Axis { size: n, from: 0, to: 1 };
            copy(self.size, (&raw const identity).cast(), acc, &[axis]);
        }
    }

    /// The address of an element of an output.
    ///
    /// # Safety
    /// The offset lies in the output.
    unsafe fn at(&self, args: &RawArgs<'_>, output: usize, offset: isize) -> *mut u8 {
        // SAFETY: the caller vouches for the offset.
        unsafe { args.outputs[output].offset(offset * self.store.size as isize) }
    }
}
