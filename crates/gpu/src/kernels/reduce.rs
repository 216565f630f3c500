//! Reductions, with the elementwise program that feeds them.
//!
//! A block has `lanes` threads an output: many where the folded axes are long, few where there are
//! many outputs. Where even that leaves the device idle, the folded elements are cut into parts,
//! whose results a second launch folds. The order of the sums is fixed by the shapes alone, so
//! results repeat.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::plan::body::Body;
use cupola_core::prim::{Binary, ReduceKind};

use super::view::Axes;
use super::{Draft, Launch, Missing, Place, Program};
use crate::ir::{Access, Build, Number, Shared, Target, Ty, Val, Var};

/// Threads in a block.
const BLOCK: u32 = 256;
/// Elements that a thread sums before it adds them to its total, for less rounding.
const RUN: u64 = 64;

/// A fold that is cut: outputs, folded elements, threads an output, and parts.
#[derive(Clone, Copy, Debug)]
struct Shape {
    outputs: u64,
    folded: u64,
    lanes: u32,
    parts: u64,
}

impl Shape {
    fn of(outputs: u64, folded: u64, inner: bool, target: &Target) -> Shape {
        // Neighbouring threads should read neighbouring elements: along the folded axis where that
        // is the dense one, along the outputs elsewhere.
        let wanted = if inner { folded.div_ceil(8) } else { folded.div_ceil(256) };
        let lanes = wanted.next_power_of_two().clamp(1, u64::from(BLOCK)) as u32;
        let threads = outputs * u64::from(lanes);
        let idle = u64::from(target.threads) / threads.max(1);
        let parts = idle.min(folded / (u64::from(lanes) * 16)).max(1);
        Shape { outputs, folded, lanes, parts }
    }
}

/// Adds the launches of a reduction.
pub fn reduce(
    program: &mut Program,
    body: &Body,
    kind: ReduceKind,
    axes: &[usize],
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let rank = body.shape.rank();
    let kept: Vec<usize> = (0..rank).filter(|a| !axes.contains(a)).collect();
    let pick = |of: &[usize]| -> Axes {
        let sizes: Vec<usize> = of.iter().map(|&a| body.shape[a]).collect();
        let strides: Vec<Vec<isize>> =
            (segment.inputs.iter()).map(|o| of.iter().map(|&a| o.strides[a]).collect()).collect();
        let mut strides: Vec<&[isize]> = strides.iter().map(|s| &s[..]).collect();
        // The output has the kept axes in order.
        let own = &segment.outputs[0].strides;
        if of.len() == own.len() && of == kept {
            strides.push(own);
        }
        Axes::joined(&sizes, &strides)
    };
    let (outer, inner) = (pick(&kept), pick(axes));
    let dense = |axes: &Axes| {
        axes.strides
            .iter()
            .take(segment.inputs.len())
            .filter_map(|s| s.last())
            .any(|s| s.abs() == 1)
    };
    let along = dense(&inner) || !dense(&outer);
    let shape = Shape::of(outer.count(), inner.count(), along, target);
    let dtype = segment.outputs[0].aval.dtype;
    let mut draft = Draft::new("reduce", BLOCK, segment, target)?;
    let mut views = Vec::new();
    for (index, operand) in segment.inputs.iter().enumerate() {
        views.push(draft.view(Place::Input(index), operand.aval.dtype, Access::Read)?);
    }
    // Parts are kept as registers hold them: halves in single precision.
    let partial = if dtype.is_float() && dtype != DType::F64 { DType::F32 } else { dtype };
    let cut = shape.parts > 1;
    let out = match cut {
        true => {
            program.scratch.push((shape.outputs * shape.parts) as usize * partial.size());
            draft.scratch(program.scratch.len() - 1, partial, Access::Write)?
        }
        false => draft.view(Place::Output(0), dtype, Access::Write)?,
    };
    let scalars = draft.scalars(body)?;
    let mut fold = Fold { kind, dtype, shape, along, failed: Ok(()) };
    fold.run(
        &mut draft,
        |draft, output, at| {
            let mut places = draft.unflatten(output, &outer.sizes);
            let own = places.len();
            places.extend(draft.unflatten(at, &inner.sizes));
            let loaded: Vec<Number> = (views.iter().enumerate())
                .map(|(i, view)| {
                    let start = draft.place(view.offset, &places[..own], &outer.strides[i]);
                    let at = draft.place(start, &places[own..], &inner.strides[i]);
                    draft.build.load_number(view.buf, at)
                })
                .collect();
            let registers = draft.run(body, &loaded, &scalars)?;
            Ok(registers[usize::from(body.outputs[0])])
        },
        |draft, output, part, value| {
            let at = match cut {
                true => {
                    let parts = draft.index(shape.parts as i64);
                    let row = draft.build.mul(output, parts);
                    draft.build.add(row, part)
                }
                false => {
                    let places = draft.unflatten(output, &outer.sizes);
                    draft.place(out.offset, &places, &outer.strides[segment.inputs.len()])
                }
            };
            draft.build.store_number(out.buf, at, value);
        },
    );
    std::mem::replace(&mut fold.failed, Ok(()))?;
    program.launches.push(fold.launch(draft, target));
    if cut {
        program.launches.push(join_parts(
            kind,
            partial,
            shape,
            segment,
            target,
            program.scratch.len() - 1,
        )?);
    }
    Ok(())
}

/// The launch that folds the parts of each output.
fn join_parts(
    kind: ReduceKind,
    partial: DType,
    first: Shape,
    segment: &Segment,
    target: &Target,
    scratch: usize,
) -> Result<Launch, Missing> {
    let mut draft = Draft::new("reduce_parts", BLOCK, segment, target)?;
    let parts = draft.bind(Place::Scratch(scratch), partial, Access::Read)?;
    let operand = &segment.outputs[0];
    let out = draft.view(Place::Output(0), operand.aval.dtype, Access::Write)?;
    let lanes = first.parts.next_power_of_two().clamp(1, u64::from(BLOCK)) as u32;
    let shape = Shape { outputs: first.outputs, folded: first.parts, lanes, parts: 1 };
    let axes = Axes::joined(&operand.aval.shape, &[&operand.strides[..]]);
    let mut fold = Fold { kind, dtype: operand.aval.dtype, shape, along: true, failed: Ok(()) };
    fold.run(
        &mut draft,
        |draft, output, at| {
            let row = draft.index(shape.folded as i64);
            let row = draft.build.mul(output, row);
            let at = draft.build.add(row, at);
            Ok(draft.build.load_number(parts, at))
        },
        |draft, output, _, value| {
            let places = draft.unflatten(output, &axes.sizes);
            let at = draft.place(out.offset, &places, &axes.strides[0]);
            draft.build.store_number(out.buf, at, value);
        },
    );
    std::mem::replace(&mut fold.failed, Ok(()))?;
    Ok(fold.launch(draft, target))
}

/// A fold that is being written.
struct Fold {
    kind: ReduceKind,
    dtype: DType,
    shape: Shape,
    /// Whether neighbouring threads fold neighbouring elements of one output.
    along: bool,
    failed: Result<(), Missing>,
}

impl Fold {
    fn outputs_a_block(&self) -> u32 {
        BLOCK / self.shape.lanes
    }

    /// A block for every few outputs of every part.
    fn launch(&self, draft: Draft<'_>, target: &Target) -> Launch {
        let blocks =
            self.shape.outputs.div_ceil(u64::from(self.outputs_a_block())) * self.shape.parts;
        draft.launch([blocks.clamp(1, u64::from(target.max_blocks)) as u32, 1])
    }

    fn run(
        &mut self,
        draft: &mut Draft<'_>,
        load: impl Fn(&mut Draft<'_>, Val, Val) -> Result<Number, Missing>,
        store: impl Fn(&mut Draft<'_>, Val, Val, Number),
    ) {
        let Shape { outputs, folded, lanes, parts } = self.shape;
        let wide = draft.index;
        let each = self.outputs_a_block();
        let b = &mut draft.build;
        let thread = b.thread();
        let (lanes_val, each_val) = (b.u32(lanes), b.u32(each));
        // Which output of the block, and which of its threads.
        let (own, lane) = match self.along {
            true => (b.div(thread, lanes_val), b.rem(thread, lanes_val)),
            false => (b.rem(thread, each_val), b.div(thread, each_val)),
        };
        let shared: Vec<Shared> = match self.shares(b, lanes / 2) {
            false => Vec::new(),
            true => {
                let count = if self.dtype == DType::C64 { 2 } else { 1 };
                (0..count).map(|_| b.shared(Ty::of(self.dtype), BLOCK)).collect()
            }
        };
        let rows = outputs.div_ceil(u64::from(each));
        let (own, lane) = (b.convert(own, wide), b.convert(lane, wide));
        let (block, blocks) = (b.block_x(), b.blocks());
        let (block, blocks) = (b.convert(block, wide), b.convert(blocks, wide));
        let all = b.int((rows * parts) as i64, wide);
        draft.range(block, all, blocks, |draft, at| {
            let rows = draft.index(rows as i64);
            let (row, part) = (draft.build.rem(at, rows), draft.build.div(at, rows));
            let each = draft.index(i64::from(each));
            let first = draft.build.mul(row, each);
            let output = draft.build.add(first, own);
            let limit = draft.index(outputs as i64);
            let valid = draft.build.lt(output, limit);
            let start = self.identity(&mut draft.build);
            let total: Vec<Var> = start.parts().map(|v| draft.build.var(v)).collect();
            // The elements from lane + part·lanes on, in steps of all lanes.
            let lanes_wide = draft.index(i64::from(lanes));
            let skip = draft.build.mul(part, lanes_wide);
            let from = draft.build.add(lane, skip);
            let stride = draft.index((u64::from(lanes) * parts) as i64);
            let end = draft.index(folded as i64);
            draft.build.open_when();
            self.elements(draft, &total, output, [from, end, stride], &load);
            draft.build.close_when(valid);
            let value = self.across(&mut draft.build, &total, &shared, thread);
            let zero = draft.index(0);
            let leads = draft.build.eq(lane, zero);
            let writes = draft.build.and(leads, valid);
            draft.build.open_when();
            store(draft, output, part, value);
            draft.build.close_when(writes);
        });
    }

    /// Folds the elements of one thread: in runs, whose results are folded.
    fn elements(
        &mut self,
        draft: &mut Draft<'_>,
        total: &[Var],
        output: Val,
        [from, end, stride]: [Val; 3],
        load: &impl Fn(&mut Draft<'_>, Val, Val) -> Result<Number, Missing>,
    ) {
        let per_thread = self.shape.folded / (u64::from(self.shape.lanes) * self.shape.parts);
        let sums = self.kind == ReduceKind::Sum && self.dtype.is_inexact();
        if !sums || per_thread <= RUN {
            return draft.range(from, end, stride, |draft, at| {
                self.element(draft, total, output, at, load);
            });
        }
        let run = draft.index(RUN as i64);
        let run = draft.build.mul(stride, run);
        draft.range(from, end, run, |draft, first| {
            let start = self.identity(&mut draft.build);
            let some: Vec<Var> = start.parts().map(|v| draft.build.var(v)).collect();
            let last = draft.build.add(first, run);
            let last = draft.build.min_int(last, end);
            draft.range(first, last, stride, |draft, at| {
                self.element(draft, &some, output, at, load);
            });
            let value = draft.build.get_number(&some);
            self.join(&mut draft.build, total, value);
        });
    }

    fn element(
        &mut self,
        draft: &mut Draft<'_>,
        total: &[Var],
        output: Val,
        at: Val,
        load: &impl Fn(&mut Draft<'_>, Val, Val) -> Result<Number, Missing>,
    ) {
        match load(draft, output, at) {
            Ok(value) => self.join(&mut draft.build, total, value),
            Err(missing) => self.failed = Err(missing),
        }
    }

    /// Folds `value` into `total`.
    fn join(&mut self, b: &mut Build<'_>, total: &[Var], value: Number) {
        let known = b.get_number(total);
        let next = self.fold(b, known, value);
        total.iter().zip(next.parts()).for_each(|(&var, v)| b.set(var, v));
    }

    fn fold(&mut self, b: &mut Build<'_>, x: Number, y: Number) -> Number {
        let op = match self.kind {
            ReduceKind::Sum => Binary::Add,
            ReduceKind::Prod => Binary::Mul,
            ReduceKind::Max => Binary::Maximum,
            ReduceKind::Min => Binary::Minimum,
            ReduceKind::All => Binary::BitAnd,
            ReduceKind::Any => Binary::BitOr,
        };
        let result = b.binary(op, x, y, self.dtype).unwrap_or_else(|missing| {
            self.failed = Err(missing);
            x
        });
        match result {
            Number::Real(v) => Number::Real(b.wrapped(v, self.dtype)),
            complex => complex,
        }
    }

    /// What leaves every element as it is.
    fn identity(&self, b: &mut Build<'_>) -> Number {
        let dtype = self.dtype;
        match self.kind {
            ReduceKind::Sum | ReduceKind::Any => b.number(0, dtype),
            ReduceKind::Prod | ReduceKind::All => b.number(1, dtype),
            ReduceKind::Max | ReduceKind::Min => {
                Number::Real(b.extreme(self.kind == ReduceKind::Min, dtype))
            }
        }
    }

    /// Distance in threads between neighbouring lanes of one output.
    fn step(&self) -> u32 {
        if self.along { 1 } else { self.outputs_a_block() }
    }

    /// Whether lanes `half` apart need shared memory to exchange their totals.
    fn shares(&self, b: &Build<'_>, half: u32) -> bool {
        half > 0 && !b.can_shuffle(half * self.step(), Ty::of(self.dtype))
    }

    /// Folds the totals of an output's threads, which are in thread order for every lane: through
    /// shared memory, and without it where threads are near enough. The pairs are the same.
    fn across(
        &mut self,
        b: &mut Build<'_>,
        total: &[Var],
        shared: &[Shared],
        thread: Val,
    ) -> Number {
        let mut mine = b.get_number(total);
        let mut half = self.shape.lanes / 2;
        if self.shares(b, half) {
            (mine, half) = self.across_shared(b, mine, shared, thread);
        } else if half > 0 {
            // Threads come here from loops of different lengths, and exchange all together.
            b.barrier();
        }
        while half > 0 {
            let distance = half * self.step();
            let other = match mine {
                Number::Real(v) => Number::Real(b.shuffle_xor(v, distance)),
                Number::Complex(re, im) => {
                    Number::Complex(b.shuffle_xor(re, distance), b.shuffle_xor(im, distance))
                }
            };
            mine = self.fold(b, mine, other);
            half /= 2;
        }
        mine
    }

    /// The same through shared memory, as far as it needs that: a thread's total, and how far apart
    /// the lanes are that are left to fold.
    fn across_shared(
        &mut self,
        b: &mut Build<'_>,
        mine: Number,
        shared: &[Shared],
        thread: Val,
    ) -> (Number, u32) {
        let (lanes, step) = (self.shape.lanes, self.step());
        b.barrier();
        shared.iter().zip(mine.parts()).for_each(|(&s, v)| b.store_shared(s, thread, v));
        b.barrier();
        let (lanes_val, each) = (b.u32(lanes), b.u32(self.outputs_a_block()));
        let lane = if self.along { b.rem(thread, lanes_val) } else { b.div(thread, each) };
        let mut half = lanes / 2;
        while self.shares(b, half) {
            let (limit, away) = (b.u32(half), b.u32(half * step));
            let works = b.lt(lane, limit);
            b.open_when();
            let other = b.add(thread, away);
            let get = |b: &mut Build<'_>, at: Val| -> Number {
                let re = b.load_shared(shared[0], at);
                match shared.get(1) {
                    Some(&im) => Number::Complex(re, b.load_shared(im, at)),
                    None => Number::Real(re),
                }
            };
            let (x, y) = (get(b, thread), get(b, other));
            let both = self.fold(b, x, y);
            shared.iter().zip(both.parts()).for_each(|(&s, v)| b.store_shared(s, thread, v));
            b.close_when(works);
            b.barrier();
            half /= 2;
        }
        let re = b.load_shared(shared[0], thread);
        let total = match shared.get(1) {
            Some(&im) => Number::Complex(re, b.load_shared(im, thread)),
            None => Number::Real(re),
        };
        (total, half)
    }
}
