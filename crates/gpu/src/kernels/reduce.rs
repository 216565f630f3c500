//! Reductions, with the elementwise program that feeds them.
//!
//! A block has `lanes` threads an output: many where the folded axes are long, few where there are
//! many outputs. Where even that leaves the device idle, the folded elements are cut into parts,
//! whose results a second launch folds. A thread loads vectors: of one output where the folded axis
//! is the dense one, of as many outputs elsewhere. The order of the sums is fixed by
//! the shapes alone, so results repeat.

use cupola_core::DType;
use cupola_core::backend::Body;
use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::{Binary, ReduceKind};

use super::finish::{self, Finish};
use super::view::{Axes, View, Walk, place, unflatten};
use super::{BufferRef, Draft, Launch, Missing, Program};
use crate::ir::{Access, Build, Divisor, Number, NumberVar, SharedNumber, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;
/// Elements that a thread sums before it adds them to its total, for less rounding.
const RUN: u32 = 64;
/// Loads that a thread has under way at once, where their program is short and there are so many.
const AT_ONCE: u32 = 4;
/// Values of an output's neighbours that go through shared memory at once.
const SHARED: u32 = 8;

/// How a fold is spread over threads.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Whether neighbouring threads fold neighbouring elements of one output; else they have
    /// neighbouring outputs.
    pub along: bool,
    /// The vector width: folded elements, or else outputs.
    pub count: u32,
    /// The outputs, in steps of what a thread has.
    pub outputs: u64,
    /// The folded elements, in steps of what a thread loads.
    pub folded: u64,
    /// Threads of a block for different outputs.
    pub columns: u32,
    /// Threads of a block for one output.
    pub lanes: u32,
    /// Into how many parts the folded elements are cut.
    pub parts: u64,
}

impl Spread {
    /// A fold of `outputs` and `folded` elements, both in steps, where `row` outputs are dense.
    pub fn of(
        along: bool,
        count: u32,
        outputs: u64,
        folded: u64,
        row: u64,
        target: &Target,
    ) -> Spread {
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
        let mut parts = idle.min(folded / (u64::from(lanes) * 8)).max(1);
        if parts > 1 {
            // As many for each thread as it loads at once, or a multiple, or nearly.
            let together = u64::from(lanes * AT_ONCE);
            let rounds = (folded as f64 / (parts * together) as f64).round() as u64;
            parts = folded.div_ceil(rounds.max(1) * together);
        }
        Spread { along, count, outputs, folded, columns, lanes, parts }
    }

    /// What `lanes` neighbouring threads have of one output.
    pub fn among(lanes: u32) -> Spread {
        let (columns, folded) = (BLOCK / lanes, u64::from(lanes));
        Spread { along: true, count: 1, outputs: 1, folded, columns, lanes, parts: 1 }
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
    outer: Walk<'k>,
    /// The folded axes, for every input.
    inner: Walk<'k>,
    spread: Spread,
}

/// A reduction, or what is computed as one.
pub struct Folded<'a> {
    /// The name of its kernel.
    pub name: &'static str,
    /// What feeds it.
    pub body: &'a Body,
    /// What to fold with.
    pub kind: ReduceKind,
    /// The axes that go; sorted.
    pub axes: &'a [usize],
    /// The dtype of the results before they are stored.
    pub dtype: DType,
    /// What the body reads, along its shape: the segment's first inputs.
    pub inputs: Vec<Operand>,
}

/// Adds the launches of a reduction.
pub fn reduce(
    program: &mut Program,
    work: &Folded<'_>,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (outer, inner, spread) = arranged(work, segment, target);
    let count = work.inputs.len();
    let k = Draft::new(work.name, BLOCK, segment, target)?;
    // Of nothing there is no element to find.
    let views = match spread.folded {
        0 => Vec::new(),
        _ => (0..count).map(|index| k.input(segment, index)).collect(),
    };
    // A thread that has several loads under way waits less often.
    let per_thread = spread.folded.div_ceil(spread.stride());
    let short = work.body.code.len() <= 32 && count <= 4;
    let at_once = match short && per_thread > 1 {
        true => at_once(spread.count, &work.inputs),
        false => 1,
    };
    let results = work.body.outputs.len();
    let fold = Fold::new(&k, work.kind, work.dtype, spread, at_once).of(results as u32);
    let fold = fold.with_parts(program);
    let ends = if fold.is_whole() { finish::all(&k, segment, results) } else { Vec::new() };
    let scalars = k.scalars(work.body);
    let (outer, inner) = (k.walk(&outer), k.walk(&inner));
    let elements = Elements { k: &k, body: work.body, scalars, views, outer, inner, spread };
    fold.run(
        |output, ats| elements.load(output, ats),
        |output, values| {
            let index = unflatten(output, &elements.outer.sizes);
            let strides = &elements.outer.strides[count..];
            let each = values.chunks(values.len() / results);
            for (end, values) in ends.iter().zip(each) {
                end.store(&index, strides, values.to_vec());
            }
        },
    );
    let ending = fold.ending();
    ending.launches(program, k, segment, target)
}

/// How many steps of so many neighbours a thread loads at once, each from all inputs: 64 bytes of the widest.
fn at_once(count: u32, inputs: &[Operand]) -> u32 {
    let widest = inputs.iter().map(|input| input.aval.dtype.size()).max().unwrap_or(1);
    (64 / (count * widest as u32)).clamp(2, AT_ONCE)
}

/// The kept axes, with the strides of the output and of what an epilogue reads behind those of the
/// inputs, the folded ones, and how the fold is spread.
fn arranged(work: &Folded<'_>, segment: &Segment, target: &Target) -> (Axes, Axes, Spread) {
    let shape = &work.body.shape;
    let kept: Vec<usize> = (0..shape.rank()).filter(|a| !work.axes.contains(a)).collect();
    let results = finish::operands(segment);
    let pick = |of: &[usize], results: &[&Operand]| -> Axes {
        let sizes: Vec<usize> = of.iter().map(|&a| shape[a]).collect();
        let strides: Vec<Vec<isize>> =
            (work.inputs.iter()).map(|o| of.iter().map(|&a| o.strides[a]).collect()).collect();
        // Results have the kept axes in order.
        let results = results.iter().map(|o| &o.strides[..]);
        let strides: Vec<&[isize]> = strides.iter().map(|s| &s[..]).chain(results).collect();
        Axes::joined(&sizes, &strides)
    };
    let (outer, inner) = (pick(&kept, &results), pick(work.axes, &[]));
    let inputs = work.inputs.len();
    // What has the most elements says which way they are read: what repeats is in the cache.
    let elements = |input: usize| -> u64 {
        let of = |axes: &Axes| -> u64 {
            let walked = axes.sizes.iter().zip(&axes.strides[input]).filter(|(_, s)| **s != 0);
            walked.map(|(&size, _)| size as u64).product()
        };
        of(&outer) * of(&inner)
    };
    let most = (0..inputs).map(elements).max();
    let dense = |axes: &Axes| {
        (0..inputs)
            .filter(|&input| Some(elements(input)) == most)
            .filter_map(|input| axes.strides[input].last())
            .any(|s| s.abs() == 1)
    };
    let along = dense(&inner) || !dense(&outer);
    let mut dtypes: Vec<DType> = work.inputs.iter().map(|o| o.aval.dtype).collect();
    let count = if along && inner.sizes.is_empty() {
        1
    } else if along {
        outer.of(0..inputs).followed_by(&inner).vector(&dtypes, target.vector_bytes)
    } else {
        dtypes.extend(results.iter().map(|o| o.aval.dtype));
        let mut inner = inner.clone();
        inner.strides.resize(dtypes.len(), vec![0; inner.sizes.len()]);
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
                    let repeats = dense.last().is_some_and(|stride| stride.is_literal_zero());
                    view.load_at(at, repeats, spread.count)
                })
                .collect();
            loaded.push(inputs);
        }
        loaded.into_iter().map(|inputs| self.computed(&inputs)).collect()
    }

    /// The neighbours of each result.
    fn computed(&self, inputs: &[Vec<Number<'k>>]) -> Vec<Number<'k>> {
        let all: Vec<Vec<Number<'k>>> = (0..self.spread.count as usize)
            .map(|at| {
                let own: Vec<Number<'k>> = inputs.iter().map(|neighbours| neighbours[at]).collect();
                self.k.folded(self.body, &own, &self.scalars)
            })
            .collect();
        let results = 0..self.body.outputs.len();
        results.flat_map(|result| all.iter().map(move |own| own[result])).collect()
    }
}

/// What is left to do once a fold is written.
pub struct Ending {
    blocks: u64,
    /// The parts that another launch folds.
    parts: Option<Kept>,
}

/// Parts in memory: those of each output one after the other, in one dtype as registers hold them.
struct Kept {
    kind: ReduceKind,
    dtype: DType,
    results: usize,
    outputs: u64,
    parts: u64,
    scratch: usize,
}

impl Ending {
    /// Adds the launch of `k`, which the fold was written in, and one that folds parts, where these are left.
    pub fn launches(
        self,
        program: &mut Program,
        k: Draft,
        segment: &Segment,
        target: &Target,
    ) -> Result<(), Missing> {
        program.launches.push(k.launch_blocks(self.blocks)?);
        if let Some(parts) = self.parts {
            program.launches.push(parts.joined(segment, target)?);
        }
        Ok(())
    }
}

impl Kept {
    /// The launch that folds the parts of each output.
    fn joined(&self, segment: &Segment, target: &Target) -> Result<Launch, Missing> {
        let Kept { kind, dtype, results, outputs, parts, scratch } = *self;
        let k = Draft::new("reduce_parts", BLOCK, segment, target)?;
        let from = k.bind(BufferRef::Scratch(scratch), dtype.accumulator(), Access::Read);
        let operands = finish::operands(segment);
        let ends = finish::all(&k, segment, results);
        let all = outputs * results as u64;
        let spread = Spread { parts: 1, ..Spread::of(true, 1, all, parts, 1, target) };
        let strides: Vec<&[isize]> = operands.iter().map(|o| &o.strides[..]).collect();
        let walk = k.walk(&Axes::joined(&operands[0].aval.shape, &strides));
        let at_once = if parts / spread.stride() >= u64::from(AT_ONCE) { AT_ONCE } else { 1 };
        let fold = Fold::new(&k, kind, dtype, spread, at_once);
        let folded = k.extent(spread.folded);
        let by_outputs = (results > 1).then(|| k.divisor(outputs as usize, k.index));
        fold.run(
            |output, ats| {
                let row = output * folded;
                let places: Vec<Val<'_>> = ats.iter().map(|&at| row + at).collect();
                places.into_iter().map(|at| vec![from.load_number(at)]).collect()
            },
            |output, values| {
                let store = |end: &Finish<'_>, output| {
                    end.store(&unflatten(output, &walk.sizes), &walk.strides, values.clone());
                };
                let Some(by_outputs) = &by_outputs else { return store(&ends[0], output) };
                let (result, output) = output.div_rem(by_outputs);
                for (number, end) in ends.iter().enumerate() {
                    k.when(result.eq(number as u32), || store(end, output));
                }
            },
        );
        let blocks = fold.blocks();
        k.launch_blocks(blocks)
    }
}

/// A fold that is being written.
pub struct Fold<'k> {
    k: &'k Draft,
    kind: ReduceKind,
    dtype: DType,
    spread: Spread,
    /// How many results each output has.
    results: u32,
    /// How many steps a thread loads before it folds them.
    at_once: u32,
    /// Of the spread: literals where neighbouring threads fold one output, since they are few powers of
    /// two then.
    columns: Divisor<'k>,
    lanes: Val<'k>,
    /// Steps between the elements of a thread.
    stride: Val<'k>,
    /// Where the parts of outputs go.
    parts: Option<Parts<'k>>,
}

/// Memory for the parts of outputs, and its number.
#[derive(Clone, Copy)]
struct Parts<'k> {
    view: View<'k>,
    scratch: usize,
}

impl<'k> Fold<'k> {
    /// A fold that loads so many steps of a thread before it folds them.
    pub fn new(k: &'k Draft, kind: ReduceKind, dtype: DType, spread: Spread, at_once: u32) -> Self {
        let Spread { columns, lanes, .. } = spread;
        let (columns, lanes) = match spread.along || lanes == 1 {
            true => (k.fixed(columns, Ty::U32), k.u32(lanes)),
            false => (k.divisor(columns as usize, Ty::U32), k.size(lanes.into(), Ty::U32)),
        };
        let stride = k.extent(spread.stride());
        Fold { k, kind, dtype, spread, results: 1, at_once, columns, lanes, stride, parts: None }
    }

    /// It, for so many results of the same elements.
    pub fn of(self, results: u32) -> Self {
        Fold { results, ..self }
    }

    /// It, with memory for the parts of outputs that are cut.
    pub fn with_parts(mut self, program: &mut Program) -> Self {
        let Spread { outputs, parts, .. } = self.spread;
        if parts > 1 {
            let (k, scratch) = (self.k, program.scratch.len());
            // Parts are kept as registers hold them: halves in single precision.
            let partial = self.dtype.accumulator();
            let places = outputs * u64::from(self.width()) * parts;
            program.scratch.push(places as usize * partial.size());
            self.parts = Some(Parts { view: k.scratch(scratch, partial, Access::Write), scratch });
        }
        self
    }

    /// Whether its own launch stores the results.
    pub fn is_whole(&self) -> bool {
        self.parts.is_none()
    }

    /// What is left to do once it is written.
    pub fn ending(&self) -> Ending {
        let parts = self.parts.map(|Parts { scratch, .. }| Kept {
            kind: self.kind,
            dtype: self.dtype,
            results: self.results as usize,
            outputs: self.spread.outputs * u64::from(self.width() / self.results),
            parts: self.spread.parts,
            scratch,
        });
        Ending { blocks: self.blocks(), parts }
    }

    /// The values that a thread has in the end: of each result those of its outputs.
    fn width(&self) -> u32 {
        self.results * if self.spread.along { 1 } else { self.spread.count }
    }

    /// How many blocks have outputs of their own.
    fn rows(&self) -> u64 {
        self.spread.outputs.div_ceil(u64::from(self.spread.columns))
    }

    /// A block for every few outputs of every part.
    fn blocks(&self) -> u64 {
        self.rows() * self.spread.parts
    }

    /// Folds what `load` gives for an output and some of its elements, and gives the result to
    /// `store` with the output, unless another launch does.
    pub fn run(
        &self,
        load: impl Fn(Val<'k>, &[Val<'k>]) -> Vec<Vec<Number<'k>>>,
        store: impl Fn(Val<'k>, Vec<Number<'k>>),
    ) {
        let k = self.k;
        let Spread { along, outputs, folded, parts, .. } = self.spread;
        let thread = k.thread();
        // Which output of the block, and which of its threads.
        let (own, lane) = match along {
            true => (thread / self.lanes, thread % self.lanes),
            false => {
                let (lane, own) = thread.div_rem(&self.columns);
                (own, lane)
            }
        };
        let works = lane.lt(self.lanes);
        let shared = self.shared(self.width());
        let rows = self.rows();
        let (own, lane_wide) = (k.as_index(own), k.as_index(lane));
        let [columns, lanes] = [self.columns.size, self.lanes].map(|v| k.as_index(v));
        let [outputs, end] = [outputs, folded].map(|n| k.extent(n));
        let by_rows = k.divisor(rows as usize, k.index);
        k.blocks(rows * parts, |at| {
            let (part, row) = at.div_rem(&by_rows);
            let output = row * columns + own;
            let valid = output.lt(outputs) & works;
            let totals = self.totals();
            // The elements from lane + part·lanes on, in steps of all lanes.
            let from = lane_wide + part * lanes;
            if folded > 0 {
                k.when(valid, || self.elements(&totals, output, [from, end], &load));
            }
            let mut values: Vec<Number<'k>> = totals.iter().map(|total| total.get()).collect();
            if along {
                let own = values.chunks(self.spread.count as usize);
                values = own.map(|neighbours| self.halved(neighbours.to_vec())).collect();
            }
            let values = self.across(values, &shared, thread, lane);
            k.when(lane.eq(0) & valid, || match self.parts {
                Some(Parts { view, .. }) => self.keep(view, output, part, values),
                None => store(output, values),
            });
        });
    }

    /// Stores a part of the results of outputs.
    fn keep(&self, view: View<'k>, output: Val<'k>, part: Val<'k>, values: Vec<Number<'k>>) {
        let k = self.k;
        let each = self.width() / self.results;
        let parts = k.extent(self.spread.parts);
        let outputs = (self.results > 1).then(|| k.extent(self.spread.outputs * u64::from(each)));
        for (i, value) in values.into_iter().enumerate() {
            let (result, at) = (i as u32 / each, i as u32 % each);
            let own = output * each + at;
            let own = outputs.map_or(own, |outputs| outputs * result + own);
            view.buf.store_number(own * parts + part, value);
        }
    }

    /// Variables for the neighbours of a thread, with nothing folded yet.
    fn totals(&self) -> Vec<NumberVar<'k>> {
        let start = self.k.identity(self.kind, self.dtype);
        (0..self.results * self.spread.count).map(|_| self.k.number_var(start)).collect()
    }

    /// A power of two of values as one, by halves.
    fn halved(&self, mut values: Vec<Number<'k>>) -> Number<'k> {
        while values.len() > 1 {
            let others = values.split_off(values.len() / 2);
            values = values.into_iter().zip(others).map(|(x, y)| self.fold(x, y)).collect();
        }
        values[0]
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
        if !sums || per_thread <= u64::from(RUN) {
            return self.walk(totals, output, [from, end], load);
        }
        let run = self.stride * RUN;
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
        let (k, stride) = (self.k, self.stride);
        let step = |ats: &[Val<'k>]| {
            for values in load(output, ats) {
                totals.iter().zip(values).for_each(|(&total, value)| self.join(total, value));
            }
        };
        if self.at_once == 1 {
            return k.range(from, end, stride, |at| step(&[at]));
        }
        let together = |first: Val<'k>, count: u32| -> Vec<Val<'k>> {
            (0..count).map(|i| first + stride * i).collect()
        };
        // As long as the last of those that are loaded together is there.
        let (before, steps) = (stride * (self.at_once - 1), stride * self.at_once);
        let to = end.max(before) - before;
        let rest = k.var(from);
        k.range(from, to, steps, |first| {
            step(&together(first, self.at_once));
            rest.set(first + steps);
        });
        // What is left is loaded together, too: where there is no more, the last again, which is not folded.
        let first = rest.get();
        k.when(first.lt(end), || {
            let ats = together(first, self.at_once - 1);
            let there: Vec<Val<'k>> = ats.iter().map(|at| at.min(end - 1)).collect();
            let none = k.identity(self.kind, self.dtype);
            for (at, values) in ats.into_iter().zip(load(output, &there)) {
                let is_in = at.lt(end);
                totals.iter().zip(values).for_each(|(&total, value)| {
                    self.join(total, is_in.choose(value, none));
                });
            }
        });
    }

    /// Folds `value` into `total`.
    fn join(&self, total: NumberVar<'k>, value: Number<'k>) {
        total.set(self.fold(total.get(), value));
    }

    fn fold(&self, x: Number<'k>, y: Number<'k>) -> Number<'k> {
        x.fold(self.kind, self.dtype, y)
    }

    /// Shared memory for [`Fold::across`], where that needs some for so many values a thread.
    pub fn shared(&self, width: u32) -> Vec<SharedNumber> {
        let shares = self.spread.lanes > 1 && !self.shuffles(self.spread.lanes);
        let arrays = if shares { width.min(SHARED) } else { 0 };
        (0..arrays).map(|_| self.k.shared_number(self.dtype, BLOCK)).collect()
    }

    /// Folds the values of an output's threads, which are in thread order for every lane.
    pub fn across(
        &self,
        values: Vec<Number<'k>>,
        shared: &[SharedNumber],
        thread: Val<'k>,
        lane: Val<'k>,
    ) -> Vec<Number<'k>> {
        let together = if shared.is_empty() { values.len() } else { shared.len() };
        (values.chunks(together.max(1)))
            .flat_map(|values| self.across_some(values.to_vec(), shared, thread, lane))
            .collect()
    }

    /// Likewise, of no more than there are shared arrays.
    fn across_some(
        &self,
        mut values: Vec<Number<'k>>,
        shared: &[SharedNumber],
        thread: Val<'k>,
        lane: Val<'k>,
    ) -> Vec<Number<'k>> {
        let k = self.k;
        let (mut left, count) = (self.spread.lanes, values.len());
        if left == 1 {
            return values;
        }
        k.barrier();
        if !self.shuffles(left) {
            shared.iter().zip(values).for_each(|(array, value)| array.store(thread, value));
            k.barrier();
            // A tree in shared memory: the lower half of the lanes takes from the upper half.
            let take = |left: Val<'k>, half: Val<'k>| {
                k.when(lane.lt(left - half), || {
                    let other =
                        thread + if self.spread.along { half } else { half * self.columns.size };
                    for array in shared.iter().take(count) {
                        let both = self.fold(array.load(thread), array.load(other));
                        array.store(thread, both);
                    }
                });
                k.barrier();
            };
            if !self.spread.along {
                let rest = k.var(self.lanes);
                let more = || rest.get().gt(1);
                k.repeat(more, || {
                    let left = rest.get();
                    let half = (left + 1) / 2;
                    take(left, half);
                    rest.set(half);
                });
                left = 1;
            }
            while left > 1 && !self.shuffles(left) {
                take(k.u32(left), k.u32(left / 2));
                left /= 2;
            }
            values = shared[..count].iter().map(|array| array.load(thread)).collect();
        }
        // The lanes of a warp exchange theirs by shuffles.
        while left > 1 {
            left /= 2;
            let pairs = values.into_iter();
            values = pairs.map(|own| self.fold(own, own.map(|v| v.shuffle_xor(left)))).collect();
        }
        values
    }

    /// Whether the last `left` lanes, neighbouring threads, can exchange their values without shared
    /// memory.
    fn shuffles(&self, left: u32) -> bool {
        self.spread.along && self.k.can_shuffle(left / 2, Ty::of(self.dtype))
    }
}

impl<'k> Number<'k> {
    /// It and `other` folded. Of zeros the negative one is the smaller, though they are equal, so that the result
    /// does not depend on the order of elements.
    pub fn fold(self, kind: ReduceKind, dtype: DType, other: Number<'k>) -> Number<'k> {
        let op = match kind {
            ReduceKind::Sum => Binary::Add,
            ReduceKind::Prod => Binary::Mul,
            ReduceKind::Max => Binary::Maximum,
            ReduceKind::Min => Binary::Minimum,
            ReduceKind::All => Binary::BitAnd,
            ReduceKind::Any => Binary::BitOr,
        };
        let folded = self.binary(op, other, dtype).wrapped(dtype);
        match (kind, self, other, folded) {
            (
                ReduceKind::Max | ReduceKind::Min,
                Number::Real(a),
                Number::Real(b),
                Number::Real(v),
            ) if v.ty.is_float() => {
                let bits = if v.ty == Ty::F64 { Ty::U64 } else { Ty::U32 };
                let (x, y) = (a.bits(bits), b.bits(bits));
                let same = if kind == ReduceKind::Max { x & y } else { x | y };
                Number::Real(a.eq(b).select(same.bits(v.ty), v))
            }
            _ => folded,
        }
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
