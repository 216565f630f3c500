//! Reductions, with the elementwise program that feeds them.
//!
//! A block has `lanes` threads an output: many where the folded axes are long, few where there are
//! many outputs. Where even that leaves the device idle, the folded elements are cut into parts,
//! whose results a second launch folds. A thread loads vectors: of one output where the folded axis
//! is the dense one, of as many outputs elsewhere. The order of the sums is fixed by
//! the shapes alone, so results repeat.

use cupola_core::DType;
use cupola_core::backend::Body;
use cupola_core::backend::Segment;
use cupola_core::prim::{Binary, ReduceKind};

use super::view::{Axes, View, place, unflatten};
use super::{BufferRef, Draft, Launch, Missing, Program};
use crate::ir::{Access, Build, Number, NumberVar, SharedNumber, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;
/// Elements that a thread sums before it adds them to its total, for less rounding.
const RUN: u64 = 64;

/// How a fold is spread over threads.
#[derive(Clone, Copy, Debug)]
struct Spread {
    /// Whether neighbouring threads fold neighbouring elements of one output; else they have
    /// neighbouring outputs.
    along: bool,
    /// The vector width: folded elements, or else outputs.
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

impl Spread {
    /// A fold of `outputs` and `folded` elements, both in steps, where `row` outputs are dense.
    fn of(along: bool, count: u32, outputs: u64, folded: u64, row: u64, target: &Target) -> Spread {
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
        Spread { along, count, outputs, folded, columns, lanes, parts }
    }

    /// Steps between the elements of a thread.
    fn stride(&self) -> u64 {
        u64::from(self.lanes) * self.parts
    }
}

/// The elements of a reduction, and where they go.
struct Elements<'k, 'a> {
    k: &'k Draft,
    body: &'a Body,
    scalars: Vec<Number<'k>>,
    views: Vec<View<'k>>,
    /// The kept axes, for every input and the output.
    outer: Axes,
    /// The folded axes, for every input.
    inner: Axes,
    spread: Spread,
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
    let (outer, inner, spread) = arranged(body, axes, segment, target);
    let dtype = segment.outputs[0].aval.dtype;
    let k = Draft::new("reduce", BLOCK, segment, target)?;
    // Of nothing there is no element to find.
    let views = if spread.folded > 0 { k.inputs(segment, 0) } else { Vec::new() };
    // Parts are kept as registers hold them: halves in single precision.
    let partial = if dtype.is_float() && dtype != DType::F64 { DType::F32 } else { dtype };
    let cut = spread.parts > 1;
    let width = if spread.along { 1 } else { u64::from(spread.count) };
    let out = match cut {
        true => {
            let places = spread.outputs * width * spread.parts;
            program.scratch.push(places as usize * partial.size());
            k.scratch(program.scratch.len() - 1, partial, Access::Write)
        }
        false => k.output(segment, 0),
    };
    let scalars = k.scalars(body);
    let elements = Elements { k: &k, body, scalars, views, outer, inner, spread };
    // A thread that has several loads under way waits less often.
    let per_thread = spread.folded / spread.stride();
    let short = body.code.len() <= 32 && segment.inputs.len() <= 4;
    let at_once = if short && per_thread >= 4 { (16 / spread.count).clamp(2, 4) } else { 1 };
    let fold = Fold { k: &k, kind, dtype, spread, at_once };
    fold.run(
        |output, ats| elements.load(output, ats),
        |output, part, values| {
            if !cut {
                let index = unflatten(output, &elements.outer.sizes);
                let strides = &elements.outer.strides[segment.inputs.len()];
                return out.store_many(&index, strides, &values);
            }
            for (i, value) in values.into_iter().enumerate() {
                let row = (output * width + i) * spread.parts;
                out.buf.store_number(row + part, value);
            }
        },
    );
    let blocks = fold.blocks();
    program.launches.push(k.launch_blocks(blocks)?);
    if cut {
        let outputs = spread.outputs * width;
        let scratch = program.scratch.len() - 1;
        let join = join_parts(kind, partial, [outputs, spread.parts], segment, target, scratch)?;
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
) -> (Axes, Axes, Spread) {
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
    let spread = Spread::of(along, count, outer.count(), inner.count(), row, target);
    (outer, inner, spread)
}

impl<'k> Elements<'k, '_> {
    /// The neighbours at each of `ats`: everything is read before it is computed with.
    fn load(&self, output: Val<'k>, ats: &[Val<'k>]) -> Vec<Vec<Number<'k>>> {
        let Elements { outer, inner, spread, .. } = self;
        let own = unflatten(output, &outer.sizes);
        let mut loaded = Vec::new();
        for &at in ats {
            let folded = unflatten(at, &inner.sizes);
            let inputs: Vec<Vec<Number<'k>>> = (self.views.iter().enumerate())
                .map(|(i, view)| {
                    let start = view.at(&own, &outer.strides[i]);
                    let at = place(start, &folded, &inner.strides[i]);
                    let dense = if spread.along { &inner.strides[i] } else { &outer.strides[i] };
                    view.load_at(at, dense.last() == Some(&0), spread.count)
                })
                .collect();
            loaded.push(inputs);
        }
        loaded.into_iter().map(|inputs| self.computed(&inputs)).collect()
    }

    fn computed(&self, inputs: &[Vec<Number<'k>>]) -> Vec<Number<'k>> {
        (0..self.spread.count as usize)
            .map(|at| {
                let own: Vec<Number<'k>> = inputs.iter().map(|neighbours| neighbours[at]).collect();
                self.k.value(self.body, &own, &self.scalars)
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
    let k = Draft::new("reduce_parts", BLOCK, segment, target)?;
    let from = k.bind(BufferRef::Scratch(scratch), partial, Access::Read);
    let operand = &segment.outputs[0];
    let out = k.output(segment, 0);
    let spread = Spread { parts: 1, ..Spread::of(true, 1, outputs, parts, 1, target) };
    let axes = Axes::joined(&operand.aval.shape, &[&operand.strides[..]]);
    let at_once = if parts / spread.stride() >= 4 { 4 } else { 1 };
    let fold = Fold { k: &k, kind, dtype: operand.aval.dtype, spread, at_once };
    fold.run(
        |output, ats| {
            let row = output * spread.folded;
            let places: Vec<Val<'_>> = ats.iter().map(|&at| row + at).collect();
            places.into_iter().map(|at| vec![from.load_number(at)]).collect()
        },
        |output, _, values| {
            out.store_many(&unflatten(output, &axes.sizes), &axes.strides[0], &values);
        },
    );
    let blocks = fold.blocks();
    k.launch_blocks(blocks)
}

/// A fold that is being written.
struct Fold<'k> {
    k: &'k Draft,
    kind: ReduceKind,
    dtype: DType,
    spread: Spread,
    /// How many steps a thread loads before it folds them.
    at_once: u32,
}

impl<'k> Fold<'k> {
    /// A block for every few outputs of every part.
    fn blocks(&self) -> u64 {
        let Spread { outputs, columns, parts, .. } = self.spread;
        outputs.div_ceil(u64::from(columns)) * parts
    }

    /// Folds what `load` gives for an output and some of its elements, and gives the result to
    /// `store` with the output and the part.
    fn run(
        &self,
        load: impl Fn(Val<'k>, &[Val<'k>]) -> Vec<Vec<Number<'k>>>,
        store: impl Fn(Val<'k>, Val<'k>, Vec<Number<'k>>),
    ) {
        let k = self.k;
        let Spread { along, outputs, folded, columns, lanes, parts, count } = self.spread;
        let thread = k.thread();
        // Which output of the block, and which of its threads.
        let (own, lane) = match along {
            true => (thread / lanes, thread % lanes),
            false => (thread % columns, thread / columns),
        };
        let works = lane.lt(lanes);
        let width = if along { 1 } else { count };
        let shares = lanes > 1 && !self.shuffles(lanes);
        let shared: Vec<SharedNumber> = (0..if shares { width } else { 0 })
            .map(|_| k.shared_number(self.dtype, BLOCK))
            .collect();
        let rows = outputs.div_ceil(u64::from(columns));
        let (own, lane_wide) = (k.as_index(own), k.as_index(lane));
        k.blocks(rows * parts, |at| {
            let (row, part) = (at % rows, at / rows);
            let output = row * columns + own;
            let valid = output.lt(outputs) & works;
            let totals = self.totals();
            // The elements from lane + part·lanes on, in steps of all lanes.
            let from = lane_wide + part * lanes;
            let end = k.index(folded as i64);
            if folded > 0 {
                k.when(valid, || self.elements(&totals, output, [from, end], &load));
            }
            let mut values: Vec<Number<'k>> = totals.iter().map(|total| total.get()).collect();
            while along && values.len() > 1 {
                let others = values.split_off(values.len() / 2);
                values = values.into_iter().zip(others).map(|(x, y)| self.fold(x, y)).collect();
            }
            let values = self.across(values, &shared, thread, lane);
            k.when(lane.eq(0) & valid, || store(output, part, values));
        });
    }

    /// Variables for the neighbours of a thread, with nothing folded yet.
    fn totals(&self) -> Vec<NumberVar<'k>> {
        let start = self.k.identity(self.kind, self.dtype);
        (0..self.spread.count).map(|_| self.k.number_var(start)).collect()
    }

    /// Folds the elements of one thread: in runs, whose results are folded.
    fn elements(
        &self,
        totals: &[NumberVar<'k>],
        output: Val<'k>,
        [from, end]: [Val<'k>; 2],
        load: &impl Fn(Val<'k>, &[Val<'k>]) -> Vec<Vec<Number<'k>>>,
    ) {
        let per_thread = self.spread.folded / self.spread.stride();
        let sums = self.kind == ReduceKind::Sum && self.dtype.is_inexact();
        if !sums || per_thread <= RUN {
            return self.walk(totals, output, [from, end], load);
        }
        let run = self.k.index((RUN * self.spread.stride()) as i64);
        self.k.range(from, end, run, |first| {
            let some = self.totals();
            let last = (first + run).min(end);
            self.walk(&some, output, [first, last], load);
            for (total, some) in totals.iter().zip(&some) {
                let value = some.get();
                self.join(*total, value);
            }
        });
    }

    /// Folds the elements from `from` to before `end` one after the other.
    fn walk(
        &self,
        totals: &[NumberVar<'k>],
        output: Val<'k>,
        [from, end]: [Val<'k>; 2],
        load: &impl Fn(Val<'k>, &[Val<'k>]) -> Vec<Vec<Number<'k>>>,
    ) {
        let (k, stride) = (self.k, self.spread.stride());
        let step = |ats: &[Val<'k>]| {
            for values in load(output, ats) {
                totals.iter().zip(values).for_each(|(&total, value)| self.join(total, value));
            }
        };
        let mut rest = from;
        if self.at_once > 1 {
            // As long as the last of those that are loaded together is there.
            let away = stride * u64::from(self.at_once - 1);
            let (before, steps) = (k.index(away as i64), k.index((away + stride) as i64));
            let to = end.max(before) - before;
            let next = k.var(from);
            k.range(from, to, steps, |first| {
                let ats: Vec<Val<'k>> =
                    (0..u64::from(self.at_once)).map(|i| first + i * stride).collect();
                step(&ats);
                next.set(first + steps);
            });
            rest = next.get();
        }
        k.range(rest, end, stride, |at| step(&[at]));
    }

    /// Folds `value` into `total`.
    fn join(&self, total: NumberVar<'k>, value: Number<'k>) {
        total.set(self.fold(total.get(), value));
    }

    fn fold(&self, x: Number<'k>, y: Number<'k>) -> Number<'k> {
        x.fold(self.kind, self.dtype, y)
    }

    /// Folds the values of an output's threads, which are in thread order for every lane.
    fn across(
        &self,
        mut values: Vec<Number<'k>>,
        shared: &[SharedNumber],
        thread: Val<'k>,
        lane: Val<'k>,
    ) -> Vec<Number<'k>> {
        let (k, step) = (self.k, self.apart());
        let mut left = self.spread.lanes;
        if left == 1 {
            return values;
        }
        k.barrier();
        if !self.shuffles(left) {
            shared.iter().zip(values).for_each(|(array, value)| array.store(thread, value));
            k.barrier();
            // A tree in shared memory: the lower half of the lanes takes from the upper half.
            while left > 1 && !self.shuffles(left) {
                let half = left.div_ceil(2);
                k.when(lane.lt(left - half), || {
                    let other = thread + half * step;
                    for array in shared {
                        let both = self.fold(array.load(thread), array.load(other));
                        array.store(thread, both);
                    }
                });
                k.barrier();
                left = half;
            }
            values = shared.iter().map(|array| array.load(thread)).collect();
        }
        // The lanes of a warp exchange theirs by shuffles.
        while left > 1 {
            left /= 2;
            let away = left * step;
            let pairs = values.into_iter();
            values = pairs.map(|own| self.fold(own, own.map(|v| v.shuffle_xor(away)))).collect();
        }
        values
    }

    /// Distance in threads between neighbouring lanes of one output.
    fn apart(&self) -> u32 {
        if self.spread.along { 1 } else { self.spread.columns }
    }

    /// Whether the last `left` lanes can exchange their values without shared memory.
    fn shuffles(&self, left: u32) -> bool {
        let step = self.apart();
        left.is_power_of_two()
            && step.is_power_of_two()
            && self.spread.lanes.is_multiple_of(left)
            && self.k.can_shuffle(left / 2 * step, Ty::of(self.dtype))
    }
}

impl<'k> Number<'k> {
    /// It and `other` folded.
    pub fn fold(self, kind: ReduceKind, dtype: DType, other: Number<'k>) -> Number<'k> {
        let op = match kind {
            ReduceKind::Sum => Binary::Add,
            ReduceKind::Prod => Binary::Mul,
            ReduceKind::Max => Binary::Maximum,
            ReduceKind::Min => Binary::Minimum,
            ReduceKind::All => Binary::BitAnd,
            ReduceKind::Any => Binary::BitOr,
        };
        self.binary(op, other, dtype).wrapped(dtype)
    }
}

impl Build {
    /// What a fold leaves every element as it is with.
    pub fn identity(&self, kind: ReduceKind, dtype: DType) -> Number<'_> {
        match kind {
            ReduceKind::Sum | ReduceKind::Any => self.number(0, dtype),
            ReduceKind::Prod | ReduceKind::All => self.number(1, dtype),
            ReduceKind::Max | ReduceKind::Min => {
                Number::Real(self.extreme(kind == ReduceKind::Min, dtype))
            }
        }
    }
}
