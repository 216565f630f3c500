//! Reductions, with the elementwise program that feeds them.
//!
//! A block has `lanes` threads an output: many where the folded axes are long, few where there are
//! many outputs. Where even that leaves the device idle, the folded elements are cut into parts,
//! whose results a second launch folds. A thread loads neighbours at once: of one output where the
//! folded axis is the dense one, of as many outputs elsewhere. The order of the sums is fixed by
//! the shapes alone, so results repeat.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::plan::body::Body;
use cupola_core::prim::{Binary, ReduceKind};

use super::view::{Axes, View};
use super::{Draft, Launch, Missing, Place, Program};
use crate::ir::{Access, Build, Number, Shared, Target, Ty, Val, Var};

/// Threads in a block.
const BLOCK: u32 = 256;
/// Elements that a thread sums before it adds them to its total, for less rounding.
const RUN: u64 = 64;

/// How a fold is spread over threads.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Whether neighbouring threads fold neighbouring elements of one output; else they have
    /// neighbouring outputs.
    along: bool,
    /// How many neighbours a thread loads at once: folded elements, or else outputs.
    count: u32,
    /// The outputs, in steps of what a thread has.
    outputs: u64,
    /// The folded elements, in steps of what a thread loads.
    folded: u64,
    /// Threads of a block for different outputs.
    columns: u32,
    /// Threads of a block for one output.
    lanes: u32,
    /// Into how many parts the folded elements are cut.
    parts: u64,
}

impl Shape {
    /// A fold of `outputs` and `folded` elements, both in steps, where `row` outputs are dense.
    fn of(along: bool, count: u32, outputs: u64, folded: u64, row: u64, target: &Target) -> Shape {
        let (columns, lanes) = if along {
            let wanted = folded.div_ceil(if count > 1 { 4 } else { 8 });
            let lanes = wanted.next_power_of_two().clamp(1, u64::from(BLOCK)) as u32;
            (BLOCK / lanes, lanes)
        } else {
            // Rows of few outputs lie one after the other: no thread between them is idle.
            let row = row.div_ceil(row.div_ceil(64)) as u32;
            let lanes = u64::from(BLOCK / row).min(folded.div_ceil(16)).max(1) as u32;
            let columns = if lanes == BLOCK / row { row } else { BLOCK / lanes };
            (columns, lanes)
        };
        let threads = outputs * u64::from(lanes);
        // Half of what the device holds: each thread has several loads under way.
        let idle = u64::from(target.threads / 2) / threads.max(1);
        let parts = idle.min(folded / (u64::from(lanes) * 8)).max(1);
        Shape { along, count, outputs, folded, columns, lanes, parts }
    }

    /// Steps between the elements of a thread.
    fn stride(&self) -> u64 {
        u64::from(self.lanes) * self.parts
    }
}

/// The elements of a reduction, and where they go.
struct Elements<'a> {
    body: &'a Body,
    scalars: Vec<Number>,
    views: Vec<View>,
    /// The kept axes, for every input and the output.
    outer: Axes,
    /// The folded axes, for every input.
    inner: Axes,
    shape: Shape,
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
    let (outer, inner, shape) = arranged(body, axes, segment, target);
    let dtype = segment.outputs[0].aval.dtype;
    let mut draft = Draft::new("reduce", BLOCK, segment, target)?;
    let mut views = Vec::new();
    for (index, operand) in segment.inputs.iter().enumerate() {
        views.push(draft.view(Place::Input(index), operand.aval.dtype, Access::Read)?);
    }
    // Parts are kept as registers hold them: halves in single precision.
    let partial = if dtype.is_float() && dtype != DType::F64 { DType::F32 } else { dtype };
    let cut = shape.parts > 1;
    let width = if shape.along { 1 } else { u64::from(shape.count) };
    let out = match cut {
        true => {
            let places = shape.outputs * width * shape.parts;
            program.scratch.push(places as usize * partial.size());
            draft.scratch(program.scratch.len() - 1, partial, Access::Write)?
        }
        false => draft.view(Place::Output(0), dtype, Access::Write)?,
    };
    let scalars = draft.scalars(body)?;
    let elements = Elements { body, scalars, views, outer, inner, shape };
    // A thread that has several loads under way waits less often.
    let per_thread = shape.folded / shape.stride();
    let short = body.code.len() <= 32 && segment.inputs.len() <= 4;
    let at_once = if short && per_thread >= 4 { (16 / shape.count).clamp(2, 4) } else { 1 };
    let mut fold = Fold { kind, dtype, shape, at_once, failed: Ok(()) };
    fold.run(
        &mut draft,
        |draft, output, ats| elements.load(draft, output, ats),
        |draft, output, part, values| {
            if !cut {
                let places = draft.unflatten(output, &elements.outer.sizes);
                let strides = &elements.outer.strides[segment.inputs.len()];
                return draft.store_many(out, &places, strides, &values);
            }
            for (i, value) in values.into_iter().enumerate() {
                let (width, own) = (draft.index(width as i64), draft.index(i as i64));
                let parts = draft.index(shape.parts as i64);
                let b = &mut draft.build;
                let first = b.mul(output, width);
                let row = b.add(first, own);
                let row = b.mul(row, parts);
                let at = b.add(row, part);
                b.store_number(out.buf, at, value);
            }
        },
    );
    std::mem::replace(&mut fold.failed, Ok(()))?;
    program.launches.push(fold.launch(draft, target));
    if cut {
        let outputs = shape.outputs * width;
        let scratch = program.scratch.len() - 1;
        let join = join_parts(kind, partial, [outputs, shape.parts], segment, target, scratch)?;
        program.launches.push(join);
    }
    Ok(())
}

/// The kept axes, with the output's strides behind those of the inputs, the folded ones, and how
/// the fold is spread.
fn arranged(
    body: &Body,
    axes: &[usize],
    segment: &Segment,
    target: &Target,
) -> (Axes, Axes, Shape) {
    let kept: Vec<usize> = (0..body.shape.rank()).filter(|a| !axes.contains(a)).collect();
    let out = &segment.outputs[0];
    let pick = |of: &[usize], own: Option<&[isize]>| -> Axes {
        let sizes: Vec<usize> = of.iter().map(|&a| body.shape[a]).collect();
        let strides: Vec<Vec<isize>> =
            (segment.inputs.iter()).map(|o| of.iter().map(|&a| o.strides[a]).collect()).collect();
        // The output has the kept axes in order.
        let strides: Vec<&[isize]> = strides.iter().map(|s| &s[..]).chain(own).collect();
        Axes::joined(&sizes, &strides)
    };
    let (outer, inner) = (pick(&kept, Some(&out.strides)), pick(axes, None));
    let inputs = segment.inputs.len();
    let dense = |axes: &Axes| {
        axes.strides.iter().take(inputs).filter_map(|s| s.last()).any(|s| s.abs() == 1)
    };
    let along = dense(&inner) || !dense(&outer);
    let mut dtypes: Vec<DType> = segment.inputs.iter().map(|o| o.aval.dtype).collect();
    let count = if along && inner.sizes.is_empty() {
        1
    } else if along {
        outer.of(0..inputs).followed_by(&inner).vector(&dtypes, target.vector_bytes)
    } else {
        dtypes.push(out.aval.dtype);
        let mut inner = inner.clone();
        inner.strides.push(vec![0; inner.sizes.len()]);
        inner.followed_by(&outer).vector(&dtypes, target.vector_bytes)
    };
    let (outer, inner) = match along {
        true => (outer, inner.in_steps(count)),
        false => (outer.in_steps(count), inner),
    };
    let row = outer.sizes.last().copied().unwrap_or(1) as u64;
    let shape = Shape::of(along, count, outer.count(), inner.count(), row, target);
    (outer, inner, shape)
}

impl Elements<'_> {
    /// The neighbours at each of `ats`: everything is read before it is computed with.
    fn load(
        &self,
        draft: &mut Draft<'_>,
        output: Val,
        ats: &[Val],
    ) -> Result<Vec<Vec<Number>>, Missing> {
        let Elements { outer, inner, shape, .. } = self;
        let own = draft.unflatten(output, &outer.sizes);
        let mut loaded = Vec::new();
        for &at in ats {
            let folded = draft.unflatten(at, &inner.sizes);
            let inputs: Vec<Vec<Number>> = (self.views.iter().enumerate())
                .map(|(i, &view)| {
                    let start = draft.place(view.offset, &own, &outer.strides[i]);
                    let at = draft.place(start, &folded, &inner.strides[i]);
                    let dense = if shape.along { &inner.strides[i] } else { &outer.strides[i] };
                    draft.load_at(view, at, dense.last() == Some(&0), shape.count)
                })
                .collect();
            loaded.push(inputs);
        }
        loaded.into_iter().map(|inputs| self.computed(draft, &inputs)).collect()
    }

    fn computed(
        &self,
        draft: &mut Draft<'_>,
        inputs: &[Vec<Number>],
    ) -> Result<Vec<Number>, Missing> {
        (0..self.shape.count as usize)
            .map(|at| {
                let own: Vec<Number> = inputs.iter().map(|neighbours| neighbours[at]).collect();
                let registers = draft.run(self.body, &own, &self.scalars)?;
                Ok(registers[usize::from(self.body.outputs[0])])
            })
            .collect()
    }
}

/// The launch that folds the parts of each output.
fn join_parts(
    kind: ReduceKind,
    partial: DType,
    [outputs, parts]: [u64; 2],
    segment: &Segment,
    target: &Target,
    scratch: usize,
) -> Result<Launch, Missing> {
    let mut draft = Draft::new("reduce_parts", BLOCK, segment, target)?;
    let from = draft.bind(Place::Scratch(scratch), partial, Access::Read)?;
    let operand = &segment.outputs[0];
    let out = draft.view(Place::Output(0), operand.aval.dtype, Access::Write)?;
    let shape = Shape { parts: 1, ..Shape::of(true, 1, outputs, parts, 1, target) };
    let axes = Axes::joined(&operand.aval.shape, &[&operand.strides[..]]);
    let at_once = if parts / shape.stride() >= 4 { 4 } else { 1 };
    let mut fold = Fold { kind, dtype: operand.aval.dtype, shape, at_once, failed: Ok(()) };
    fold.run(
        &mut draft,
        |draft, output, ats| {
            let row = draft.index(shape.folded as i64);
            let row = draft.build.mul(output, row);
            let places: Vec<Val> = ats.iter().map(|&at| draft.build.add(row, at)).collect();
            Ok(places.into_iter().map(|at| vec![draft.build.load_number(from, at)]).collect())
        },
        |draft, output, _, values| {
            let places = draft.unflatten(output, &axes.sizes);
            draft.store_many(out, &places, &axes.strides[0], &values);
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
    /// How many steps a thread loads before it folds them.
    at_once: u32,
    failed: Result<(), Missing>,
}

/// An element that is being folded: its parts.
type Total = Vec<Var>;

impl Fold {
    /// A block for every few outputs of every part.
    fn launch(&self, draft: Draft<'_>, target: &Target) -> Launch {
        let Shape { outputs, columns, parts, .. } = self.shape;
        let blocks = outputs.div_ceil(u64::from(columns)) * parts;
        draft.launch([blocks.clamp(1, u64::from(target.max_blocks)) as u32, 1])
    }

    fn run(
        &mut self,
        draft: &mut Draft<'_>,
        load: impl Fn(&mut Draft<'_>, Val, &[Val]) -> Result<Vec<Vec<Number>>, Missing>,
        store: impl Fn(&mut Draft<'_>, Val, Val, Vec<Number>),
    ) {
        let Shape { along, outputs, folded, columns, lanes, parts, count } = self.shape;
        let wide = draft.index;
        let b = &mut draft.build;
        let thread = b.thread();
        let (lanes_val, columns_val) = (b.u32(lanes), b.u32(columns));
        // Which output of the block, and which of its threads.
        let (own, lane) = match along {
            true => (b.div(thread, lanes_val), b.rem(thread, lanes_val)),
            false => (b.rem(thread, columns_val), b.div(thread, columns_val)),
        };
        let works = b.lt(lane, lanes_val);
        let width = if along { 1 } else { count };
        let shares = lanes > 1 && !self.shuffles(b, lanes);
        let shared: Vec<Vec<Shared>> = (0..if shares { width } else { 0 })
            .map(|_| {
                let parts = if self.dtype == DType::C64 { 2 } else { 1 };
                (0..parts).map(|_| b.shared(Ty::of(self.dtype), BLOCK)).collect()
            })
            .collect();
        let rows = outputs.div_ceil(u64::from(columns));
        let (own, lane_wide) = (b.convert(own, wide), b.convert(lane, wide));
        draft.blocks(rows * parts, |draft, at| {
            let rows = draft.index(rows as i64);
            let (row, part) = (draft.build.rem(at, rows), draft.build.div(at, rows));
            let columns = draft.index(i64::from(columns));
            let first = draft.build.mul(row, columns);
            let output = draft.build.add(first, own);
            let limit = draft.index(outputs as i64);
            let valid = draft.build.lt(output, limit);
            let valid = draft.build.and(valid, works);
            let totals = self.totals(&mut draft.build);
            // The elements from lane + part·lanes on, in steps of all lanes.
            let lanes_wide = draft.index(i64::from(lanes));
            let skip = draft.build.mul(part, lanes_wide);
            let from = draft.build.add(lane_wide, skip);
            let end = draft.index(folded as i64);
            draft.build.open_when();
            self.elements(draft, &totals, output, [from, end], &load);
            draft.build.close_when(valid);
            let mut values: Vec<Number> =
                totals.iter().map(|total| draft.build.get_number(total)).collect();
            while along && values.len() > 1 {
                let others = values.split_off(values.len() / 2);
                let pairs = values.into_iter().zip(others);
                values = pairs.map(|(x, y)| self.fold(&mut draft.build, x, y)).collect();
            }
            let values = self.across(&mut draft.build, values, &shared, thread, lane);
            let zero = draft.build.u32(0);
            let leads = draft.build.eq(lane, zero);
            let writes = draft.build.and(leads, valid);
            draft.build.open_when();
            store(draft, output, part, values);
            draft.build.close_when(writes);
        });
    }

    /// Variables for the neighbours of a thread, with nothing folded yet.
    fn totals(&self, b: &mut Build<'_>) -> Vec<Total> {
        let start = b.identity(self.kind, self.dtype);
        (0..self.shape.count).map(|_| start.parts().map(|v| b.var(v)).collect()).collect()
    }

    /// Folds the elements of one thread: in runs, whose results are folded.
    fn elements(
        &mut self,
        draft: &mut Draft<'_>,
        totals: &[Total],
        output: Val,
        [from, end]: [Val; 2],
        load: &impl Fn(&mut Draft<'_>, Val, &[Val]) -> Result<Vec<Vec<Number>>, Missing>,
    ) {
        let per_thread = self.shape.folded / self.shape.stride();
        let sums = self.kind == ReduceKind::Sum && self.dtype.is_inexact();
        if !sums || per_thread <= RUN {
            return self.walk(draft, totals, output, [from, end], load);
        }
        let run = draft.index((RUN * self.shape.stride()) as i64);
        draft.range(from, end, run, |draft, first| {
            let some = self.totals(&mut draft.build);
            let last = draft.build.add(first, run);
            let last = draft.build.min_int(last, end);
            self.walk(draft, &some, output, [first, last], load);
            for (total, some) in totals.iter().zip(&some) {
                let value = draft.build.get_number(some);
                self.join(&mut draft.build, total, value);
            }
        });
    }

    /// Folds the elements from `from` to before `end` one after the other.
    fn walk(
        &mut self,
        draft: &mut Draft<'_>,
        totals: &[Total],
        output: Val,
        [from, end]: [Val; 2],
        load: &impl Fn(&mut Draft<'_>, Val, &[Val]) -> Result<Vec<Vec<Number>>, Missing>,
    ) {
        let stride = self.shape.stride() as i64;
        let mut rest = from;
        if self.at_once > 1 {
            // As long as the last of those that are loaded together is there.
            let away = stride * i64::from(self.at_once - 1);
            let (away, steps) = (draft.index(away), draft.index(away + stride));
            let to = draft.build.max_int(end, away);
            let to = draft.build.sub(to, away);
            let next = draft.build.var(from);
            draft.range(from, to, steps, |draft, first| {
                let ats: Vec<Val> = (0..i64::from(self.at_once))
                    .map(|i| {
                        let step = draft.index(i * stride);
                        draft.build.add(first, step)
                    })
                    .collect();
                self.step(draft, totals, output, &ats, load);
                let after = draft.build.add(first, steps);
                draft.build.set(next, after);
            });
            rest = draft.build.get(next);
        }
        let stride = draft.index(stride);
        draft.range(rest, end, stride, |draft, at| self.step(draft, totals, output, &[at], load));
    }

    fn step(
        &mut self,
        draft: &mut Draft<'_>,
        totals: &[Total],
        output: Val,
        ats: &[Val],
        load: &impl Fn(&mut Draft<'_>, Val, &[Val]) -> Result<Vec<Vec<Number>>, Missing>,
    ) {
        match load(draft, output, ats) {
            Ok(loaded) => {
                for values in loaded {
                    for (total, value) in totals.iter().zip(values) {
                        self.join(&mut draft.build, total, value);
                    }
                }
            }
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
        b.fold(self.kind, self.dtype, x, y).unwrap_or_else(|missing| {
            self.failed = Err(missing);
            x
        })
    }

    /// Folds the values of an output's threads, which are in thread order for every lane.
    fn across(
        &mut self,
        b: &mut Build<'_>,
        values: Vec<Number>,
        shared: &[Vec<Shared>],
        thread: Val,
        lane: Val,
    ) -> Vec<Number> {
        if self.shape.lanes == 1 {
            return values;
        }
        let step = self.apart();
        let get = |b: &mut Build<'_>, parts: &[Shared], at: Val| -> Number {
            let re = b.load_shared(parts[0], at);
            match parts.get(1) {
                Some(&im) => Number::Complex(re, b.load_shared(im, at)),
                None => Number::Real(re),
            }
        };
        let put = |b: &mut Build<'_>, parts: &[Shared], value: Number| {
            parts.iter().zip(value.parts()).for_each(|(&s, v)| b.store_shared(s, thread, v));
        };
        b.barrier();
        let mut left = self.shape.lanes;
        let mut values = values;
        if !self.shuffles(b, left) {
            shared.iter().zip(values).for_each(|(parts, value)| put(b, parts, value));
            b.barrier();
            left = self.across_shared(b, shared, (&get, &put), [thread, lane], step);
            values = shared.iter().map(|parts| get(b, parts, thread)).collect();
        }
        while left > 1 {
            left /= 2;
            let away = left * step;
            let pairs = values.into_iter().map(|mine| {
                let other = match mine {
                    Number::Real(v) => Number::Real(b.shuffle_xor(v, away)),
                    Number::Complex(re, im) => {
                        Number::Complex(b.shuffle_xor(re, away), b.shuffle_xor(im, away))
                    }
                };
                self.fold(b, mine, other)
            });
            values = pairs.collect();
        }
        values
    }

    /// Distance in threads between neighbouring lanes of one output.
    fn apart(&self) -> u32 {
        if self.shape.along { 1 } else { self.shape.columns }
    }

    /// Whether the last `left` lanes can exchange their values without shared memory.
    fn shuffles(&self, b: &Build<'_>, left: u32) -> bool {
        let step = self.apart();
        left.is_power_of_two()
            && step.is_power_of_two()
            && self.shape.lanes.is_multiple_of(left)
            && b.can_shuffle(left / 2 * step, Ty::of(self.dtype))
    }

    /// Folds lanes through shared memory until the rest can do without: how many are left.
    fn across_shared(
        &mut self,
        b: &mut Build<'_>,
        shared: &[Vec<Shared>],
        (get, put): (
            &impl Fn(&mut Build<'_>, &[Shared], Val) -> Number,
            &impl Fn(&mut Build<'_>, &[Shared], Number),
        ),
        [thread, lane]: [Val; 2],
        step: u32,
    ) -> u32 {
        let mut left = self.shape.lanes;
        while left > 1 && !self.shuffles(b, left) {
            let half = left.div_ceil(2);
            let (limit, away) = (b.u32(left - half), b.u32(half * step));
            let works = b.lt(lane, limit);
            b.open_when();
            let other = b.add(thread, away);
            for parts in shared {
                let (x, y) = (get(b, parts, thread), get(b, parts, other));
                let both = self.fold(b, x, y);
                put(b, parts, both);
            }
            b.close_when(works);
            b.barrier();
            left = half;
        }
        left
    }
}

impl Build<'_> {
    /// `x` and `y` folded.
    pub fn fold(
        &mut self,
        kind: ReduceKind,
        dtype: DType,
        x: Number,
        y: Number,
    ) -> Result<Number, Missing> {
        let op = match kind {
            ReduceKind::Sum => Binary::Add,
            ReduceKind::Prod => Binary::Mul,
            ReduceKind::Max => Binary::Maximum,
            ReduceKind::Min => Binary::Minimum,
            ReduceKind::All => Binary::BitAnd,
            ReduceKind::Any => Binary::BitOr,
        };
        Ok(match self.binary(op, x, y, dtype)? {
            Number::Real(v) => Number::Real(self.wrapped(v, dtype)),
            complex => complex,
        })
    }

    /// What a fold leaves every element as it is with.
    pub fn identity(&mut self, kind: ReduceKind, dtype: DType) -> Number {
        match kind {
            ReduceKind::Sum | ReduceKind::Any => self.number(0, dtype),
            ReduceKind::Prod | ReduceKind::All => self.number(1, dtype),
            ReduceKind::Max | ReduceKind::Min => {
                Number::Real(self.extreme(kind == ReduceKind::Min, dtype))
            }
        }
    }
}
