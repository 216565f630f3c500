//! Pooling, with a thread for every few channels of an element that is written, or of a window where
//! windows do not overlap: nothing is added by two threads.

use cupola_core::DType;
use cupola_core::backend::{Epilogue, Operand, Segment};
use cupola_core::prim::{Pool, PoolRole};

use super::view::{Axes, View};
use super::{Draft, Missing, Place, Program};
use crate::ir::{Access, Number, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;
/// Places of a window that are written out one after the other, without a loop.
const UNROLLED: usize = 16;

/// An operand of a pooling.
#[derive(Clone, Copy)]
struct Bound<'a> {
    view: View,
    operand: &'a Operand,
}

impl Bound<'_> {
    /// The neighbouring channels from `index` on.
    fn load(self, draft: &mut Draft<'_>, index: &[Val], count: u32) -> Vec<Val> {
        let loaded = draft.load_many(self.view, index, &self.operand.strides, count);
        loaded.into_iter().map(Number::real).collect()
    }
}

/// Adds the launch of a pooling.
pub fn pool(
    program: &mut Program,
    pool: &Pool,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let mut draft = Draft::new(pool.role.name(), BLOCK, segment, target)?;
    let output = pool.output().map_err(|e| Missing(e.to_string()))?.to_vec();
    let mut inputs = Vec::new();
    for (i, operand) in segment.inputs.iter().enumerate().take(operands(pool.role)) {
        let view = draft.view(Place::Input(i), operand.aval.dtype, Access::Read)?;
        inputs.push(Bound { view, operand });
    }
    let result = Finish::new(&mut draft, segment)?;
    let count = channels_at_once(segment, target);
    let windows = Windows { pool, output: &output, count };
    let is_cells = pool.role == PoolRole::MaxScatter && windows.are_apart();
    let (threads, done) = match is_cells {
        true => windows.scatter(&mut draft, inputs[0], inputs[1], &result),
        false => windows.elements(&mut draft, &inputs, &result),
    };
    done?;
    program.launches.push(draft.launch_over(threads));
    Ok(())
}

fn operands(role: PoolRole) -> usize {
    match role {
        PoolRole::Max | PoolRole::Sum | PoolRole::SumTranspose => 1,
        PoolRole::MaxGather | PoolRole::MaxScatter => 2,
    }
}

/// How many channels a thread takes.
fn channels_at_once(segment: &Segment, target: &Target) -> u32 {
    let operands = || segment.inputs.iter().chain(&segment.outputs);
    let dtypes: Vec<DType> = operands().map(|o| o.aval.dtype).collect();
    let axes = Axes {
        sizes: segment.outputs[0].aval.shape.to_vec(),
        strides: operands().map(|o| o.strides.clone()).collect(),
    };
    axes.vector(&dtypes, target.vector_bytes)
}

/// Where results go, through the epilogue that continues the pooling.
struct Finish<'a> {
    out: Bound<'a>,
    epilogue: Option<(&'a Epilogue, Vec<Bound<'a>>, Vec<Number>)>,
}

impl<'a> Finish<'a> {
    fn new(draft: &mut Draft<'_>, segment: &'a Segment) -> Result<Self, Missing> {
        let operand = &segment.outputs[0];
        let view = draft.view(Place::Output(0), operand.aval.dtype, Access::Write)?;
        let mut epilogue = None;
        if let Some(more) = &segment.epilogue {
            let mut inputs = Vec::new();
            for (index, operand) in segment.inputs.iter().enumerate().skip(more.first_input) {
                let view = draft.view(Place::Input(index), operand.aval.dtype, Access::Read)?;
                inputs.push(Bound { view, operand });
            }
            epilogue = Some((more, inputs, draft.scalars(&more.body)?));
        }
        Ok(Finish { out: Bound { view, operand }, epilogue })
    }

    /// Stores neighbouring channels from `index` on.
    fn store(&self, draft: &mut Draft<'_>, index: &[Val], sums: Vec<Val>) -> Result<(), Missing> {
        let (dtype, count) = (self.out.operand.aval.dtype, sums.len() as u32);
        let wrapped = sums.into_iter().map(|v| Number::Real(draft.build.wrapped(v, dtype)));
        let mut numbers: Vec<Number> = wrapped.collect();
        if let Some((epilogue, inputs, scalars)) = &self.epilogue {
            let more: Vec<Vec<Number>> = (inputs.iter())
                .map(|x| draft.load_many(x.view, index, &x.operand.strides, count))
                .collect();
            for (at, number) in numbers.iter_mut().enumerate() {
                let own = std::iter::once(*number).chain(more.iter().map(|list| list[at]));
                let own: Vec<Number> = own.collect();
                let registers = draft.run(&epilogue.body, &own, scalars)?;
                *number = registers[usize::from(epilogue.body.outputs[0])];
            }
        }
        draft.store_many(self.out.view, index, &self.out.operand.strides, &numbers);
        Ok(())
    }
}

struct Windows<'a> {
    pool: &'a Pool,
    output: &'a [usize],
    /// Channels that a thread takes.
    count: u32,
}

impl Windows<'_> {
    /// A thread for every few elements of the result: how many threads.
    fn elements(
        &self,
        draft: &mut Draft<'_>,
        inputs: &[Bound<'_>],
        result: &Finish<'_>,
    ) -> (u64, Result<(), Missing>) {
        let out = result.out.operand;
        let ty = Ty::of(out.aval.dtype);
        let threads = out.aval.shape.size() as u64 / u64::from(self.count);
        let mut done = Ok(());
        draft.each(threads, |draft, at| {
            let place = self.index(draft, at, &out.aval.shape);
            let zero = draft.build.int(0, ty);
            let sums: Vec<_> = (0..self.count).map(|_| draft.build.var(zero)).collect();
            let add = |draft: &mut Draft<'_>, lane: usize, v: Val| {
                let old = draft.build.get(sums[lane]);
                let new = draft.build.add(old, v);
                draft.build.set(sums[lane], new);
            };
            match self.pool.role {
                PoolRole::Max => {
                    let best = self.largest(draft, inputs[0], &place);
                    best.iter().zip(&sums).for_each(|(v, &var)| draft.build.set(var, v.0));
                }
                PoolRole::MaxGather => {
                    let best = self.largest(draft, inputs[0], &place);
                    for (&(_, number), &var) in best.iter().zip(&sums) {
                        // The place of the largest, as its number among x's elements.
                        let index = draft.unflatten(number, &inputs[0].operand.aval.shape);
                        let value = inputs[1].load(draft, &index, 1)[0];
                        draft.build.set(var, value);
                    }
                }
                PoolRole::Sum => self.each(draft, &place, &mut |draft, index, _| {
                    let loaded = inputs[0].load(draft, index, self.count);
                    loaded.into_iter().enumerate().for_each(|(lane, v)| add(draft, lane, v));
                }),
                PoolRole::SumTranspose => self.over(draft, &place, |draft, window| {
                    let loaded = inputs[0].load(draft, window, self.count);
                    loaded.into_iter().enumerate().for_each(|(lane, v)| add(draft, lane, v));
                }),
                PoolRole::MaxScatter => self.over(draft, &place, |draft, window| {
                    let loaded = inputs[1].load(draft, window, self.count);
                    let best = self.largest(draft, inputs[0], window);
                    let count = draft.index(i64::from(self.count));
                    let first = draft.build.mul(at, count);
                    for (lane, (v, (_, number))) in loaded.into_iter().zip(best).enumerate() {
                        let step = draft.index(lane as i64);
                        let own = draft.build.add(first, step);
                        let mine = draft.build.eq(number, own);
                        draft.build.open_when();
                        add(draft, lane, v);
                        draft.build.close_when(mine);
                    }
                }),
            }
            let values = sums.iter().map(|&var| draft.build.get(var)).collect();
            done = result.store(draft, &place, values);
        });
        (threads, done)
    }

    /// The index of the first of the channels that thread `at` has, of `shape`.
    fn index(&self, draft: &mut Draft<'_>, at: Val, shape: &[usize]) -> Vec<Val> {
        let mut steps = shape.to_vec();
        let last = steps.len() - 1;
        steps[last] /= self.count as usize;
        let mut index = draft.unflatten(at, &steps);
        let count = draft.index(i64::from(self.count));
        index[last] = draft.build.mul(index[last], count);
        index
    }

    /// Whether each place of x is in one window at most, and the steps between windows are short.
    fn are_apart(&self) -> bool {
        let Pool { window, stride, padding, .. } = self.pool;
        stride.iter().product::<usize>() <= UNROLLED
            && window.iter().zip(stride).all(|(w, s)| w <= s)
            && padding.iter().all(|p| p.0 == 0)
    }

    /// The scatter for windows that are apart, with a thread for every window: how many threads.
    fn scatter(
        &self,
        draft: &mut Draft<'_>,
        x: Bound<'_>,
        dy: Bound<'_>,
        result: &Finish<'_>,
    ) -> (u64, Result<(), Missing>) {
        let (input, stride) = (&self.pool.input, &self.pool.stride);
        let mut cells = x.operand.aval.shape.to_vec();
        for axis in 0..input.len() {
            cells[axis + 1] = input[axis].div_ceil(stride[axis]);
        }
        let threads = cells.iter().map(|&n| n as u64).product::<u64>() / u64::from(self.count);
        let mut done = Ok(());
        draft.each(threads, |draft, at| {
            let cell = self.index(draft, at, &cells);
            let (window, has) = self.window(draft, &cell, &cells);
            let loaded = dy.load(draft, &window, self.count);
            let ty = loaded[0].ty;
            let zero = draft.build.int(0, ty);
            let given: Vec<Val> =
                loaded.into_iter().map(|v| draft.build.select(has, v, zero)).collect();
            let places = self.places(draft, &cell, &cells);
            let mut best = Largest::none(draft, self.count, x.operand.aval.dtype);
            for place in places.iter().filter(|place| place.in_window) {
                let values = x.load(draft, &place.index, self.count);
                best.meet(draft, &values, place.number, place.inside);
            }
            for place in &places {
                let mine = |draft: &mut Draft<'_>, lane: usize| {
                    let owns = draft.build.eq(best.lanes[lane].1, place.number);
                    draft.build.select(owns, given[lane], zero)
                };
                let values: Vec<Val> = (0..self.count as usize)
                    .map(|lane| if place.in_window { mine(draft, lane) } else { zero })
                    .collect();
                if place.inside.is_some() {
                    draft.build.open_when();
                }
                let stored = result.store(draft, &place.index, values);
                if let Some(inside) = place.inside {
                    draft.build.close_when(inside);
                }
                if stored.is_err() {
                    done = stored;
                }
            }
        });
        (threads, done)
    }

    /// The window of a cell as an index of y, and whether there is one: cells at the end of an
    /// axis may have none, and get the last.
    fn window(&self, draft: &mut Draft<'_>, cell: &[Val], cells: &[usize]) -> (Vec<Val>, Val) {
        let mut window = cell.to_vec();
        let mut has = draft.build.bool(true);
        for axis in 0..self.output.len() {
            if cells[axis + 1] > self.output[axis] {
                let last = draft.index(self.output[axis] as i64 - 1);
                let there = draft.build.le(cell[axis + 1], last);
                has = draft.build.and(has, there);
                window[axis + 1] = draft.build.min_int(cell[axis + 1], last);
            }
        }
        (window, has)
    }

    /// The places of x in a cell.
    fn places(&self, draft: &mut Draft<'_>, cell: &[Val], cells: &[usize]) -> Vec<CellPlace> {
        let Pool { window, stride, input, .. } = self.pool;
        let count: usize = stride.iter().product();
        (0..count)
            .map(|number| {
                let mut left = number;
                let (mut in_window, mut inside) = (true, None);
                let mut index = cell.to_vec();
                for axis in (0..stride.len()).rev() {
                    let own = left % stride[axis];
                    left /= stride[axis];
                    in_window &= own < window[axis];
                    let (step, own_val) =
                        (draft.index(stride[axis] as i64), draft.index(own as i64));
                    let first = draft.build.mul(cell[axis + 1], step);
                    index[axis + 1] = draft.build.add(first, own_val);
                    if (cells[axis + 1] - 1) * stride[axis] + own >= input[axis] {
                        let last = draft.index(input[axis] as i64 - 1);
                        let here = draft.build.le(index[axis + 1], last);
                        index[axis + 1] = draft.build.min_int(index[axis + 1], last);
                        inside = Some(match inside {
                            Some(known) => draft.build.and(known, here),
                            None => here,
                        });
                    }
                }
                let number = draft.index(number as i64);
                CellPlace { index, number, in_window, inside }
            })
            .collect()
    }

    /// Runs `each` for the places of x in the window of y's element `at`, in order; it also gets
    /// the place's number among the places of an image.
    fn each(
        &self,
        draft: &mut Draft<'_>,
        at: &[Val],
        each: &mut dyn FnMut(&mut Draft<'_>, &[Val], Val),
    ) {
        let count: usize = self.pool.window.iter().product();
        if count <= UNROLLED {
            for k in 0..count {
                let k = draft.index(k as i64);
                self.at(draft, at, k, each);
            }
            return;
        }
        let (zero, one, count) = (draft.index(0), draft.index(1), draft.index(count as i64));
        draft.range(zero, count, one, |draft, k| self.at(draft, at, k, each));
    }

    /// Runs `each` for place `k` of a window, if it is not in the padding.
    fn at(
        &self,
        draft: &mut Draft<'_>,
        at: &[Val],
        k: Val,
        each: &mut dyn FnMut(&mut Draft<'_>, &[Val], Val),
    ) {
        let pool = self.pool;
        let k = draft.unflatten(k, &pool.window);
        let mut index = at.to_vec();
        let mut inside = None;
        for axis in 0..pool.input.len() {
            let stride = draft.index(pool.stride[axis] as i64);
            let first = draft.build.mul(at[axis + 1], stride);
            let padded = draft.build.add(first, k[axis]);
            let (before, after) = pool.padding[axis];
            let low = draft.index(before as i64);
            index[axis + 1] = draft.build.sub(padded, low);
            if before + after > 0 {
                let high = draft.index((before + pool.input[axis]) as i64);
                let b = &mut draft.build;
                let (from, to) = (b.ge(padded, low), b.lt(padded, high));
                let holds = b.and(from, to);
                inside = Some(match inside {
                    Some(known) => b.and(known, holds),
                    None => holds,
                });
            }
        }
        if inside.is_some() {
            draft.build.open_when();
        }
        let mut number = index[0];
        for (&i, &size) in index[1..].iter().zip(&pool.input) {
            let size = draft.index(size as i64);
            let row = draft.build.mul(number, size);
            number = draft.build.add(row, i);
        }
        each(draft, &index, number);
        if let Some(inside) = inside {
            draft.build.close_when(inside);
        }
    }

    /// The largest values of a window, a channel each, and the numbers of the first elements of x
    /// that have them. A NaN is the largest.
    fn largest(&self, draft: &mut Draft<'_>, x: Bound<'_>, at: &[Val]) -> Vec<(Val, Val)> {
        let shape = &x.operand.aval.shape;
        let channels = shape[shape.rank() - 1];
        let best = Largest::none(draft, self.count, x.operand.aval.dtype);
        let best: Vec<_> = (best.lanes.iter())
            .map(|lane| [lane.0, lane.1, lane.2].map(|v| draft.build.var(v)))
            .collect();
        let channel = at[at.len() - 1];
        self.each(draft, at, &mut |draft, index, number| {
            let values = x.load(draft, index, self.count);
            let size = draft.index(channels as i64);
            let number = draft.build.mul(number, size);
            let number = draft.build.add(number, channel);
            for (lane, (value, vars)) in values.into_iter().zip(&best).enumerate() {
                let step = draft.index(lane as i64);
                let own = draft.build.add(number, step);
                let known = vars.map(|var| draft.build.get(var));
                let mut one = Largest { lanes: vec![known.into()] };
                one.meet(draft, &[value], own, None);
                let (v, at, found) = one.lanes[0];
                vars.iter().zip([v, at, found]).for_each(|(&var, v)| draft.build.set(var, v));
            }
        });
        let lanes = best.iter().map(|[v, at, _]| (draft.build.get(*v), draft.build.get(*at)));
        lanes.collect()
    }

    /// Runs `each` for every window, as an index of y, that has x's element `at`.
    fn over(&self, draft: &mut Draft<'_>, at: &[Val], each: impl FnOnce(&mut Draft<'_>, &[Val])) {
        self.over_axis(draft, at, 0, at.to_vec(), each);
    }

    fn over_axis(
        &self,
        draft: &mut Draft<'_>,
        at: &[Val],
        axis: usize,
        mut window: Vec<Val>,
        each: impl FnOnce(&mut Draft<'_>, &[Val]),
    ) {
        if axis == self.pool.input.len() {
            return each(draft, &window);
        }
        // From ⌈(p + low − size + 1)/stride⌉ up to ⌊(p + low)/stride⌋.
        let (size, stride) = (self.pool.window[axis] as i64, self.pool.stride[axis] as i64);
        let low = draft.index(self.pool.padding[axis].0 as i64);
        let (size, step) = (draft.index(size), draft.index(stride));
        let (zero, one) = (draft.index(0), draft.index(1));
        let count = draft.index(self.output[axis] as i64);
        let b = &mut draft.build;
        let padded = b.add(at[axis + 1], low);
        let last = b.div(padded, step);
        let last = b.add(last, one);
        let last = b.min_int(last, count);
        let reaches = b.ge(padded, size);
        let over = b.sub(padded, size);
        let over = b.select(reaches, over, zero);
        let first = b.div(over, step);
        let first = b.add(first, one);
        let first = b.select(reaches, first, zero);
        let mut each = Some(each);
        draft.range(first, last, one, |draft, o| {
            window[axis + 1] = o;
            if let Some(each) = each.take() {
                self.over_axis(draft, at, axis + 1, window, each);
            }
        });
    }
}

/// A place of x in a cell: a window and what is before the next one.
struct CellPlace {
    index: Vec<Val>,
    /// Its number in the cell.
    number: Val,
    in_window: bool,
    /// Where it may be outside of x, whether it is inside. The index always is.
    inside: Option<Val>,
}

/// The largest values so far, a channel each: the value, its place, and whether there is one.
struct Largest {
    lanes: Vec<(Val, Val, Val)>,
}

impl Largest {
    fn none(draft: &mut Draft<'_>, count: u32, dtype: DType) -> Largest {
        let least = draft.build.extreme(false, dtype);
        let (nowhere, no) = (draft.index(0), draft.build.bool(false));
        Largest { lanes: vec![(least, nowhere, no); count as usize] }
    }

    /// Goes on with the values at a place, if it is `inside`.
    fn meet(&mut self, draft: &mut Draft<'_>, values: &[Val], place: Val, inside: Option<Val>) {
        let b = &mut draft.build;
        for ((best, at, found), &v) in self.lanes.iter_mut().zip(values) {
            let more = b.gt(v, *best);
            let takes = match v.ty.is_float() {
                true => {
                    let (nan, old_nan) = (b.is_nan(v), b.is_nan(*best));
                    let kept = b.not(old_nan);
                    let either = b.or(more, nan);
                    b.and(either, kept)
                }
                false => more,
            };
            let new = b.not(*found);
            let takes = b.or(takes, new);
            let takes = match inside {
                Some(inside) => b.and(inside, takes),
                None => takes,
            };
            (*best, *at) = (b.select(takes, v, *best), b.select(takes, place, *at));
            *found = b.or(*found, takes);
        }
    }
}
