//! Programs over rows: a thread takes some rows at a time and keeps what it needs of them in the
//! caches, from the first fold to the last map.
//!
//! Short rows go together: a box of the space is a tile of every stage. Of a longer row a
//! tile is a piece. Each row is folded as a reduction of its length folds it.

mod stages;

use cupola_core::backend::Body;
use cupola_core::backend::{Fold, Operand};
use cupola_core::{Error, Result};
use cupola_simd::Isa;
use smallvec::SmallVec;

use self::stages::{Kept, Source, Stage, Stages, Target};
use crate::map::{
    Ahead, Axes, CHUNK_WORK, CHUNKS, LARGE, Program, RawArgs, Runner, Sink, Space, TileFn, Tiling,
    Walk, held, narrow, tile_size, with_scratch, work,
};
use crate::reduce::{Folds, Row, folds};
use crate::threads::parallel_for;

/// A program over rows, ready to run.
pub(crate) struct RowsKernel {
    /// The operands' own; the last axis is the row.
    space: Space,
    /// The rows that a thread takes at a time.
    boxes: Tiling,
    stages: Vec<StageKernel>,
    arrays: Vec<Array>,
    /// Scratch memory of a thread.
    bytes: usize,
    /// Whether a tile is a piece of one row.
    in_pieces: bool,
    /// Boxes in a chunk of work.
    chunk: usize,
}

/// What is kept of a box.
struct Array {
    /// Where it lies in scratch memory.
    at: usize,
    is_row: bool,
}

/// A stage that is ready to run.
struct StageKernel {
    program: Program,
    tiling: Tiling,
    operands: Vec<StageOperand>,
    /// How many of the operands are inputs.
    inputs: usize,
    /// The first input that has a value a row and was kept.
    first_row: usize,
    folds: Vec<RowFold>,
    is_row: bool,
    /// Where its scratch memory is.
    at: usize,
}

/// An operand of a stage, by where it is.
#[derive(Clone, Copy)]
enum StageOperand {
    /// That operand of the segment, inputs before outputs.
    Operand(usize),
    /// That array.
    Array(usize),
}

/// A fold of a stage's result.
struct RowFold {
    folds: Folds,
    /// To the dtype of the result.
    narrow: Option<TileFn>,
    /// Bytes of the result.
    size: usize,
    /// The array of the results.
    to: usize,
    /// Memory for accumulators.
    at: usize,
}

impl RowsKernel {
    /// Prepares `body`, whose last inputs are the results of `folds`. Strides are along its shape.
    pub fn new(
        body: &Body,
        folds: &[Fold],
        inputs: &[Operand],
        outputs: &[Operand],
    ) -> Result<Self> {
        let rank = body.shape.rank();
        let mut operands = inputs.iter().chain(outputs);
        let fits = rank > 0
            && inputs.len() + folds.len() == body.inputs.len()
            && outputs.len() == body.outputs.len()
            && operands.all(|o| o.strides.len() == rank);
        if !fits {
            let detail = format!("a body over {} does not fit its operands", body.shape);
            return Err(Error::Argument { op: "rows", detail });
        }
        let space = arrange(body, inputs, outputs);
        let has_row = |o: &Operand| o.strides[rank - 1] == 0;
        let row_inputs: Vec<bool> = inputs.iter().map(has_row).collect();
        let row_outputs: Vec<bool> =
            outputs.iter().map(|o| has_row(o) && body.shape[rank - 1] != 1).collect();
        let stages = Stages::new(body, folds, &row_inputs, &row_outputs);
        Build::new(space, stages, inputs.len())?.finish(work(body))
    }

    /// About how much memory it holds besides its own.
    pub fn memory(&self) -> usize {
        let stage = |stage: &StageKernel| {
            stage.program.memory()
                + size_of_val(&stage.operands[..])
                + size_of_val(&stage.folds[..])
        };
        self.space.memory()
            + size_of_val(&self.stages[..])
            + self.stages.iter().map(stage).sum::<usize>()
            + size_of_val(&self.arrays[..])
    }

    /// Runs the program.
    ///
    /// # Safety
    /// As [`crate::map::MapKernel::run`].
    pub unsafe fn run(&self, args: &RawArgs<'_>) {
        if self.space.size() == 0 {
            return;
        }
        let boxes = self.boxes.total(&self.space, 0..self.space.dims.len());
        parallel_for(boxes.div_ceil(self.chunk), |i| {
            let first = i * self.chunk;
            let count = self.chunk.min(boxes - first);
            with_scratch(self.bytes, |scratch| {
                // SAFETY: the caller vouches for the operands; chunks write different rows.
                unsafe { self.run_boxes(args, scratch, first, count) }
            });
        });
    }

    /// # Safety
    /// As [`RowsKernel::run`], for these boxes; `scratch` has the bytes that are needed.
    unsafe fn run_boxes(&self, args: &RawArgs<'_>, scratch: *mut u8, first: usize, count: usize) {
        // SAFETY: the caller vouches for the operands, `Build` for the places in scratch memory.
        unsafe {
            let array = |index: usize| scratch.add(self.arrays[index].at);
            let read = |operand: &StageOperand| match *operand {
                StageOperand::Operand(o) => args.inputs[o],
                StageOperand::Array(index) => array(index).cast_const(),
            };
            let write = |operand: &StageOperand| match *operand {
                StageOperand::Operand(o) => args.outputs[o - args.inputs.len()],
                StageOperand::Array(index) => array(index),
            };
            type Pointers<P> = SmallVec<[P; 8]>;
            let pointers: SmallVec<[(Pointers<*const u8>, Pointers<*mut u8>); 4]> = (self.stages)
                .iter()
                .map(|stage| {
                    let (inputs, outputs) = stage.operands.split_at(stage.inputs);
                    (inputs.iter().map(read).collect(), outputs.iter().map(write).collect())
                })
                .collect();
            let raw: SmallVec<[RawArgs<'_>; 4]> = (pointers.iter())
                .map(|(inputs, outputs)| RawArgs { inputs, outputs, scalars: args.scalars })
                .collect();
            let runners: SmallVec<[Runner<'_>; 4]> = (self.stages.iter().zip(&raw))
                .map(|(stage, raw)| {
                    let (cuts, most) = (stage.tiling.full_cuts(), stage.tiling.size());
                    Runner::new(&stage.program, raw, scratch.add(stage.at), cuts, most)
                })
                .collect();
            let mut walk = Walk::new(&self.space, &self.boxes, 0..self.space.dims.len(), first);
            for i in 0..count {
                for (stage, runner) in self.stages.iter().zip(&runners) {
                    match self.in_pieces && !stage.is_row {
                        true => self.run_pieces(stage, runner, &walk, scratch),
                        false => self.run_box(stage, runner, &walk, scratch),
                    }
                }
                if i + 1 < count {
                    walk.next();
                }
            }
            runners.iter().for_each(Runner::finish);
        }
    }

    /// Where a stage's operands are, `shift` elements after the box's first along the row.
    fn offsets(&self, stage: &StageKernel, walk: &Walk<'_>, shift: usize) -> SmallVec<[isize; 16]> {
        let last = self.space.dims.len() - 1;
        let offset = |operand: &StageOperand| match *operand {
            StageOperand::Operand(o) => {
                walk.offsets[o] + shift as isize * self.space.strides[o][last]
            }
            StageOperand::Array(index) if self.arrays[index].is_row => 0,
            StageOperand::Array(_) => shift as isize,
        };
        stage.operands.iter().map(offset).collect()
    }

    /// # Safety
    /// As [`RowsKernel::run_boxes`], for a stage whose tile is the box.
    unsafe fn run_box(
        &self,
        stage: &StageKernel,
        runner: &Runner<'_>,
        walk: &Walk<'_>,
        scratch: *mut u8,
    ) {
        let cuts = walk.cuts();
        let length = self.space.dims[self.space.dims.len() - 1];
        let rows = self.boxes.elements(cuts) / length;
        let n = if stage.is_row { rows } else { rows * length };
        // SAFETY: the caller vouches for the memory.
        unsafe {
            runner.tile(&self.offsets(stage, walk, 0), cuts, n);
            for (fold, &result) in stage.folds.iter().zip(&stage.program.results) {
                let to = scratch.add(self.arrays[fold.to].at);
                let acc = if fold.narrow.is_some() { scratch.add(fold.at) } else { to };
                (fold.folds.rows)(acc, runner.get(result), rows, length);
                if let Some(narrow) = fold.narrow {
                    narrow(to, acc, acc, acc, rows);
                }
            }
        }
    }

    /// # Safety
    /// As [`RowsKernel::run_boxes`], for a stage whose tile is a piece of the box's one row.
    unsafe fn run_pieces(
        &self,
        stage: &StageKernel,
        runner: &Runner<'_>,
        walk: &Walk<'_>,
        scratch: *mut u8,
    ) {
        let length = self.space.dims[self.space.dims.len() - 1];
        let piece = stage.tiling.size();
        // SAFETY: the caller vouches for the memory.
        unsafe {
            runner.refill(stage.first_row, [piece; 2], piece);
            let mut rows: SmallVec<[Row<'_>; 2]> = stage
                .folds
                .iter()
                .map(|fold| Row::new(&fold.folds, scratch.add(fold.at)))
                .collect();
            for start in (0..length).step_by(piece) {
                let n = piece.min(length - start);
                runner.tile(&self.offsets(stage, walk, start), [n; 2], n);
                for (row, &result) in rows.iter_mut().zip(&stage.program.results) {
                    row.add(runner.get(result), n);
                }
            }
            for (fold, row) in stage.folds.iter().zip(rows) {
                let (to, acc) = (scratch.add(self.arrays[fold.to].at), row.finish());
                match fold.narrow {
                    Some(narrow) => narrow(to, acc, acc, acc, 1),
                    None => std::ptr::copy_nonoverlapping(acc, to, fold.size),
                }
            }
        }
    }
}

/// The space of all operands, as simple as they allow: at least one axis of rows, then the row.
fn arrange(body: &Body, inputs: &[Operand], outputs: &[Operand]) -> Space {
    let last = body.shape.rank() - 1;
    let operands = || inputs.iter().chain(outputs).map(|o| &o.strides[..last]);
    let mut space = Space::new(&body.shape[..last], operands());
    let order: Vec<usize> =
        (inputs.len()..inputs.len() + outputs.len()).chain(0..inputs.len()).collect();
    space.sort(0, space.dims.len(), &order);
    space.merge(&mut []);
    if space.dims.is_empty() {
        space.dims.push(1);
        space.strides.iter_mut().for_each(|s| s.push(0));
    }
    space.dims.push(body.shape[last]);
    for (strides, operand) in space.strides.iter_mut().zip(inputs.iter().chain(outputs)) {
        strides.push(operand.strides[last]);
    }
    space
}

struct Build {
    space: Space,
    stages: Vec<Stage>,
    kept: Vec<Kept>,
    boxes: Tiling,
    /// The tiling of stages over elements.
    tiles: Tiling,
    in_pieces: bool,
    /// Inputs of the segment.
    inputs: usize,
    arrays: Vec<Array>,
    bytes: usize,
}

impl Build {
    fn new(space: Space, stages: Stages, inputs: usize) -> Result<Self> {
        let last = space.dims.len() - 1;
        let elements = stages.list.iter().filter(|stage| !stage.is_row);
        let tile = elements.map(|stage| tile_size(&stage.body, false)).min().unwrap_or(1).min(2048);
        let in_pieces = space.dims[last] > tile;
        let (boxes, tiles) = match in_pieces {
            true => {
                let mut row = Tiling::rows(&space, space.dims[last]);
                row.cuts = [last - 1; 2];
                (row, Tiling::rows(&space, Row::piece(tile)))
            }
            false => {
                let boxes = Tiling::blocks(&space, 0, tile);
                (boxes.clone(), boxes)
            }
        };
        let mut build = Build {
            space,
            stages: stages.list,
            kept: stages.kept,
            boxes,
            tiles,
            in_pieces,
            inputs,
            arrays: Vec::new(),
            bytes: 0,
        };
        let all = build.boxes.size();
        let rows = all / build.space.dims[last].max(1);
        for kept in build.kept.clone() {
            let count = if kept.is_row { rows } else { all };
            let at = build.reserve(count * held(kept.dtype).size());
            build.arrays.push(Array { at, is_row: kept.is_row });
        }
        Ok(build)
    }

    fn reserve(&mut self, bytes: usize) -> usize {
        let at = self.bytes;
        self.bytes += bytes.next_multiple_of(64);
        at
    }

    fn finish(mut self, work: usize) -> Result<RowsKernel> {
        let stages = std::mem::take(&mut self.stages);
        let stages = stages.iter().map(|stage| self.kernel(stage)).collect::<Result<Vec<_>>>()?;
        let boxes = self.boxes.total(&self.space, 0..self.space.dims.len());
        let box_work = (self.boxes.size() * (work + 1)).max(1);
        Ok(RowsKernel {
            chunk: CHUNK_WORK.div_ceil(box_work).max(boxes.div_ceil(CHUNKS)),
            space: self.space,
            boxes: self.boxes,
            stages,
            arrays: self.arrays,
            bytes: self.bytes,
            in_pieces: self.in_pieces,
        })
    }

    /// Strides within a box of what lies there densely, or of values of its rows.
    fn strides(&self, is_row: bool) -> Axes<isize> {
        let last = self.space.dims.len() - 1;
        let extents = &self.boxes.extents;
        let end = if is_row { last } else { last + 1 };
        let step = |axis: usize| extents[axis + 1..end].iter().product::<usize>() as isize;
        (0..=last).map(|axis| if axis < end { step(axis) } else { 0 }).collect()
    }

    fn kernel(&mut self, stage: &Stage) -> Result<StageKernel> {
        let isa = Isa::best();
        let last = self.space.dims.len() - 1;
        let source = |source: &Source| match *source {
            Source::Input(i) => StageOperand::Operand(i),
            Source::Kept(k) => StageOperand::Array(k),
        };
        let target = |target: &Target| match *target {
            Target::Output(o) => StageOperand::Operand(self.inputs + o),
            Target::Kept(k) => StageOperand::Array(k),
        };
        let operands: Vec<StageOperand> =
            (stage.sources.iter().map(source)).chain(stage.targets.iter().map(target)).collect();
        let strides = |operand: &StageOperand| match *operand {
            StageOperand::Operand(o) => self.space.strides[o].clone(),
            // Of one row, all tiles have the same value.
            StageOperand::Array(k) if self.arrays[k].is_row && self.in_pieces && !stage.is_row => {
                SmallVec::from_elem(0, last + 1)
            }
            StageOperand::Array(k) => self.strides(self.arrays[k].is_row),
        };
        let mut space = Space {
            dims: self.space.dims.clone(),
            strides: operands.iter().map(strides).collect(),
        };
        let mut tiling = if stage.is_row { self.boxes.clone() } else { self.tiles.clone() };
        if stage.is_row {
            space.dims.truncate(last);
            space.strides.iter_mut().for_each(|s| s.truncate(last));
            tiling.extents.truncate(last);
        }
        let is_final = !stage.is_row && stage.folds.is_empty();
        let sink = if is_final { Sink::Operands } else { Sink::Registers(stage.folds.len()) };
        let mut program = Program::new(&stage.body, &space, &tiling, sink, isa)?;
        // What comes first in a row is there when the row before is done.
        let is_input = |source: &&Source| matches!(source, Source::Input(_));
        program.ahead = (!stage.is_row && self.space.size() >= LARGE).then(|| Ahead {
            by: self.in_pieces.then(|| self.space.dims[last]),
            inputs: stage.sources.iter().filter(is_input).count(),
            outputs: is_final,
        });
        let at = self.reserve(program.bytes);
        let is_row = |source: &Source| match *source {
            Source::Input(_) => false,
            Source::Kept(k) => self.arrays[k].is_row,
        };
        let first_row = stage.sources.iter().position(is_row).unwrap_or(stage.sources.len());
        Ok(StageKernel {
            program,
            tiling,
            operands,
            inputs: stage.sources.len(),
            first_row,
            folds: self.folds(stage, isa)?,
            is_row: stage.is_row,
            at,
        })
    }

    fn folds(&mut self, stage: &Stage, isa: Isa) -> Result<Vec<RowFold>> {
        let length = self.space.dims[self.space.dims.len() - 1];
        let mut out = Vec::new();
        for (i, &(kind, to)) in stage.folds.iter().enumerate() {
            let register = stage.body.outputs[stage.targets.len() + i];
            let dtype = stage.body.dtype_of(register);
            let folds = folds(kind, dtype, isa).ok_or_else(|| Error::DType {
                op: kind.name(),
                detail: format!("the CPU has none of {dtype}"),
            })?;
            let rows = self.boxes.size() / length.max(1) * folds.size;
            let bytes = if self.in_pieces { Row::bytes(&folds, length) } else { rows };
            out.push(RowFold {
                narrow: (held(dtype) != dtype).then(|| narrow(dtype, isa)),
                size: dtype.size(),
                to,
                at: self.reserve(bytes),
                folds,
            });
        }
        Ok(out)
    }
}
