//! Pooling, with a thread for every few channels of an element that is written, or of a window where
//! windows do not overlap: nothing is added by two threads.

use cupola_core::DType;
use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::{Pool, PoolRole};

use super::finish::{self, Finish};
use super::view::{Axes, View, unflatten};
use super::{Draft, Missing, Program};
use crate::ir::{Divisor, Number, Target, Ty, Val, Var};

/// Threads in a block.
const BLOCK: u32 = 256;
/// Places of a window that are written out one after the other, without a loop.
const UNROLLED: usize = 16;

/// An operand of a pooling.
#[derive(Clone)]
struct Bound<'k> {
    view: View<'k>,
    operand: &'k Operand,
    sizes: Vec<Divisor<'k>>,
    strides: Vec<Val<'k>>,
}

impl<'k> Bound<'k> {
    /// Binds an input of `segment`.
    fn input(k: &'k Draft, segment: &'k Segment, index: usize) -> Self {
        Self::new(k, k.input(segment, index), &segment.inputs[index])
    }

    fn new(k: &'k Draft, view: View<'k>, operand: &'k Operand) -> Self {
        let (sizes, strides) = k.walk_of(operand);
        Bound { view, operand, sizes, strides }
    }

    /// The neighbouring channels from `index` on.
    fn load(&self, index: &[Val<'k>], count: u32) -> Vec<Val<'k>> {
        let loaded = self.view.load_many(index, &self.strides, count);
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
    let k = Draft::new(pool.role.name(), BLOCK, segment, target)?;
    let output = pool.output().map_err(|e| Missing(e.to_string()))?.to_vec();
    let own = segment.inputs.len().min(operands(pool.role));
    let inputs: Vec<Bound<'_>> = (0..own).map(|i| Bound::input(&k, segment, i)).collect();
    let result = Results::new(&k, segment);
    let count = channels_at_once(segment, target);
    let geometry = Geometry::new(&k, pool, &output);
    let windows = Windows { k: &k, pool, geometry, output: &output, count };
    let is_cells = pool.role == PoolRole::MaxScatter && windows.are_apart();
    let threads = match is_cells {
        true => windows.scatter(&inputs[0], &inputs[1], &result),
        false => windows.elements(&inputs, &result),
    };
    program.launches.push(k.launch_over(threads)?);
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
        strides: operands().map(|o| o.strides.to_vec()).collect(),
    };
    axes.vector(&dtypes, target.vector_bytes)
}

/// Where results go.
struct Results<'k> {
    operand: &'k Operand,
    finish: Finish<'k>,
    strides: Vec<Vec<Val<'k>>>,
}

impl<'k> Results<'k> {
    fn new(k: &'k Draft, segment: &'k Segment) -> Self {
        let operands = finish::operands(segment);
        let strides = operands.iter().map(|operand| k.strides(&operand.strides)).collect();
        Results { operand: operands[0], finish: Finish::new(k, segment), strides }
    }

    /// Stores neighbouring channels from `index` on.
    fn store(&self, index: &[Val<'k>], sums: Vec<Val<'k>>) {
        let dtype = self.operand.aval.dtype;
        let numbers = sums.into_iter().map(|v| Number::Real(v.wrapped(dtype))).collect();
        self.finish.store(index, &self.strides, numbers);
    }
}

/// Sizes of a pooling along its axes.
struct Geometry<'k> {
    input: Vec<Val<'k>>,
    output: Vec<Val<'k>>,
    /// What is padded before the first place.
    low: Vec<Val<'k>>,
    /// One more than the padded input's last place that is in the input.
    end: Vec<Val<'k>>,
}

impl<'k> Geometry<'k> {
    fn new(k: &'k Draft, pool: &Pool, output: &[usize]) -> Self {
        let extents = |sizes: &mut dyn Iterator<Item = usize>| sizes.map(|n| k.extent(n)).collect();
        let low = || pool.padding.iter().map(|padding| padding.0);
        Geometry {
            input: extents(&mut pool.input.iter().copied()),
            output: extents(&mut output.iter().copied()),
            low: low().map(|low| k.step(low as i64, k.index)).collect(),
            end: extents(&mut low().zip(&pool.input).map(|(low, &size)| low + size)),
        }
    }
}

struct Windows<'k, 'a> {
    k: &'k Draft,
    /// What the text says of it: windows and steps, since few of them are written out.
    pool: &'a Pool,
    geometry: Geometry<'k>,
    output: &'a [usize],
    /// Channels that a thread takes.
    count: u32,
}

impl<'k> Windows<'k, '_> {
    /// A thread for every few elements of the result: how many threads.
    fn elements(&self, inputs: &[Bound<'k>], result: &Results<'k>) -> u64 {
        let k = self.k;
        let out = result.operand;
        let threads = out.aval.shape.size() as u64 / u64::from(self.count);
        let steps = self.steps(&out.aval.shape);
        k.each(threads, |at| {
            let place = self.index(at, &steps);
            let zero = k.int(0, Ty::of(out.aval.dtype));
            let sums: Vec<Var<'k>> = (0..self.count).map(|_| k.var(zero)).collect();
            let add = |values: Vec<Val<'k>>| {
                sums.iter().zip(values).for_each(|(sum, v)| sum.set(sum.get() + v));
            };
            match self.pool.role {
                PoolRole::Max => {
                    let best = self.largest(&inputs[0], &place);
                    best.iter().zip(&sums).for_each(|(v, var)| var.set(v.0));
                }
                PoolRole::MaxGather => {
                    let best = self.largest(&inputs[0], &place);
                    for (&(_, number, found), var) in best.iter().zip(&sums) {
                        // The place of the largest, as its number among x's elements.
                        let index = unflatten(number, &inputs[0].sizes);
                        var.set(found.select(inputs[1].load(&index, 1)[0], 0));
                    }
                }
                PoolRole::Sum => {
                    self.each(&place, &mut |index, _| add(inputs[0].load(index, self.count)));
                }
                PoolRole::SumTranspose => {
                    self.over(&place, |window| add(inputs[0].load(window, self.count)));
                }
                PoolRole::MaxScatter => self.over(&place, |window| {
                    let loaded = inputs[1].load(window, self.count);
                    let best = self.largest(&inputs[0], window);
                    let first = at * self.count;
                    for (lane, (v, (_, number, found))) in loaded.into_iter().zip(best).enumerate()
                    {
                        let sum = sums[lane];
                        let mine = found & number.eq(first + lane as u32);
                        k.when(mine, || sum.set(sum.get() + v));
                    }
                }),
            }
            result.store(&place, sums.iter().map(|var| var.get()).collect());
        });
        threads
    }

    /// The axes of `shape`, the last one in steps of the channels that a thread takes.
    fn steps(&self, shape: &[usize]) -> Vec<Divisor<'k>> {
        let mut steps = shape.to_vec();
        steps.last_mut().into_iter().for_each(|channels| *channels /= self.count as usize);
        self.k.divisors(&steps)
    }

    /// The index of the first of the channels that thread `at` has.
    fn index(&self, at: Val<'k>, steps: &[Divisor<'k>]) -> Vec<Val<'k>> {
        let mut index = unflatten(at, steps);
        index.last_mut().into_iter().for_each(|channel| *channel = *channel * self.count);
        index
    }

    /// Whether each place of x is in one window at most, and the steps between windows are short.
    fn are_apart(&self) -> bool {
        let Pool { window, stride, padding, dilation, .. } = self.pool;
        stride.iter().product::<usize>() <= UNROLLED
            && window.iter().zip(stride).all(|(w, s)| w <= s)
            && padding.iter().all(|p| p.0 == 0)
            && dilation.iter().all(|&d| d == 1)
    }

    /// The scatter for windows that are apart, with a thread for every window: how many threads.
    fn scatter(&self, x: &Bound<'k>, dy: &Bound<'k>, result: &Results<'k>) -> u64 {
        let k = self.k;
        let (input, stride) = (&self.pool.input, &self.pool.stride);
        let mut cells = x.operand.aval.shape.to_vec();
        for axis in 0..input.len() {
            cells[axis + 1] = input[axis].div_ceil(stride[axis]);
        }
        let threads = cells.iter().map(|&n| n as u64).product::<u64>() / u64::from(self.count);
        let steps = self.steps(&cells);
        k.each(threads, |at| {
            let cell = self.index(at, &steps);
            let (window, has) = self.window(&cell, &cells);
            let loaded = dy.load(&window, self.count);
            let given: Vec<Val<'k>> = loaded.into_iter().map(|v| has.select(v, 0)).collect();
            let places = self.places(&cell, &cells);
            let mut best = Largest::none(k, self.count, x.operand.aval.dtype);
            for place in places.iter().filter(|place| place.in_window) {
                best.meet(&x.load(&place.index, self.count), place.number, place.inside);
            }
            for place in &places {
                let mine = |(&(_, number, _), &given): (&Lane<'k>, &Val<'k>)| match place.in_window
                {
                    true => number.eq(place.number).select(given, 0),
                    false => given.like(0),
                };
                let values = best.lanes.iter().zip(&given).map(mine).collect();
                k.when_any(place.inside, || result.store(&place.index, values));
            }
        });
        threads
    }

    /// The window of a cell as an index of y, and whether there is one: cells at the end of an
    /// axis may have none, and get the last.
    fn window(&self, cell: &[Val<'k>], cells: &[usize]) -> (Vec<Val<'k>>, Val<'k>) {
        let mut window = cell.to_vec();
        let mut has = self.k.bool(true);
        for axis in 0..self.output.len() {
            if cells[axis + 1] > self.output[axis] {
                let count = self.geometry.output[axis];
                has = has & cell[axis + 1].lt(count);
                window[axis + 1] = cell[axis + 1].min(count - 1);
            }
        }
        (window, has)
    }

    /// The places of x in a cell.
    fn places(&self, cell: &[Val<'k>], cells: &[usize]) -> Vec<CellPlace<'k>> {
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
                    let at = cell[axis + 1] * stride[axis] as u32 + own as u32;
                    index[axis + 1] = at;
                    if (cells[axis + 1] - 1) * stride[axis] + own >= input[axis] {
                        let size = self.geometry.input[axis];
                        let here = at.lt(size);
                        index[axis + 1] = at.min(size - 1);
                        inside = both(inside, here);
                    }
                }
                CellPlace { index, number: self.k.index(number as i64), in_window, inside }
            })
            .collect()
    }

    /// Runs `each` for the places of x in the window of y's element `at`, in order; it also gets
    /// the place's number among the places of an image.
    fn each(&self, at: &[Val<'k>], each: &mut dyn FnMut(&[Val<'k>], Val<'k>)) {
        let k = self.k;
        let count: usize = self.pool.window.iter().product();
        if count <= UNROLLED {
            return (0..count).for_each(|place| self.at(at, k.index(place as i64), each));
        }
        k.count(k.index(count as i64), |place| self.at(at, place, each));
    }

    /// Runs `each` for a place of a window, if it is not in the padding.
    fn at(&self, at: &[Val<'k>], place: Val<'k>, each: &mut dyn FnMut(&[Val<'k>], Val<'k>)) {
        let pool = self.pool;
        let window = pool.window.iter().map(|&size| self.k.fixed(size as u32, place.ty));
        let place = unflatten(place, &window.collect::<Vec<_>>());
        let mut index = at.to_vec();
        let mut inside = None;
        for axis in 0..pool.input.len() {
            let own = place[axis] * step(pool.dilation[axis]);
            let padded = at[axis + 1] * step(pool.stride[axis]) + own;
            let (before, after) = pool.padding[axis];
            let low = self.geometry.low[axis];
            index[axis + 1] = padded - low;
            if before + after > 0 {
                let here = padded.ge(low) & padded.lt(self.geometry.end[axis]);
                inside = both(inside, here);
            }
        }
        self.k.when_any(inside, || {
            let walked = index[1..].iter().zip(&self.geometry.input);
            let number = walked.fold(index[0], |number, (&i, &size)| number * size + i);
            each(&index, number);
        });
    }

    /// The largest values of a window, a channel each, with the numbers of the first elements of x
    /// that have them. A NaN is the largest.
    fn largest(&self, x: &Bound<'k>, at: &[Val<'k>]) -> Vec<Lane<'k>> {
        let k = self.k;
        let channels = x.sizes[x.sizes.len() - 1].size;
        let best = Largest::none(k, self.count, x.operand.aval.dtype);
        let best: Vec<[Var<'k>; 3]> =
            best.lanes.iter().map(|lane| [lane.0, lane.1, lane.2].map(|v| k.var(v))).collect();
        let channel = at[at.len() - 1];
        self.each(at, &mut |index, number| {
            let values = x.load(index, self.count);
            let number = number * channels + channel;
            for (lane, (value, vars)) in values.into_iter().zip(&best).enumerate() {
                let own = number + lane as u32;
                let known = vars.map(|var| var.get());
                let mut one = Largest { lanes: vec![known.into()] };
                one.meet(&[value], own, None);
                let (v, at, found) = one.lanes[0];
                vars.iter().zip([v, at, found]).for_each(|(var, v)| var.set(v));
            }
        });
        best.iter().map(|lane| lane.map(|var| var.get()).into()).collect()
    }

    /// Runs `each` for every window, as an index of y, that has x's element `at`.
    fn over(&self, at: &[Val<'k>], each: impl FnOnce(&[Val<'k>])) {
        self.over_axis(at, 0, at.to_vec(), each);
    }

    fn over_axis(
        &self,
        at: &[Val<'k>],
        axis: usize,
        mut window: Vec<Val<'k>>,
        each: impl FnOnce(&[Val<'k>]),
    ) {
        if axis == self.pool.input.len() {
            return each(&window);
        }
        // From ⌈(p + low − size + 1)/stride⌉ up to ⌊(p + low)/stride⌋, those that do not step over p.
        let [stride, dilation] = [&self.pool.stride, &self.pool.dilation].map(|of| step(of[axis]));
        let size = step(self.pool.span(axis));
        let padded = at[axis + 1] + self.geometry.low[axis];
        let last = (padded / stride + 1).min(self.geometry.output[axis]);
        let reaches = padded.ge(size);
        let over = reaches.select(padded - size, 0);
        let first = reaches.select(over / stride + 1, 0);
        self.k.range(first, last, 1, |o| {
            window[axis + 1] = o;
            let has = (dilation > 1).then(|| ((padded - o * stride) % dilation).eq(0));
            self.k.when_any(has, || self.over_axis(at, axis + 1, window, each));
        });
    }
}

/// A step as kernels have it. One this long leads out of any array that they can address.
fn step(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn both<'k>(known: Option<Val<'k>>, more: Val<'k>) -> Option<Val<'k>> {
    Some(known.map_or(more, |known| known & more))
}

/// A place of x in a cell: a window and what is before the next one.
struct CellPlace<'k> {
    index: Vec<Val<'k>>,
    /// Its number in the cell.
    number: Val<'k>,
    in_window: bool,
    /// Where it may be outside of x, whether it is inside. The index always is.
    inside: Option<Val<'k>>,
}

/// The largest value so far, its place, and whether there is one.
type Lane<'k> = (Val<'k>, Val<'k>, Val<'k>);

/// The largest values so far, a channel each.
struct Largest<'k> {
    lanes: Vec<Lane<'k>>,
}

impl<'k> Largest<'k> {
    fn none(k: &'k Draft, count: u32, dtype: DType) -> Self {
        let least = k.extreme(false, dtype);
        Largest { lanes: vec![(least, k.index(0), k.bool(false)); count as usize] }
    }

    /// Goes on with the values at a place, if it is `inside`.
    fn meet(&mut self, values: &[Val<'k>], place: Val<'k>, inside: Option<Val<'k>>) {
        for ((best, at, found), &v) in self.lanes.iter_mut().zip(values) {
            let more = v.gt(*best);
            let takes = match v.ty.is_float() {
                true => (more | v.is_nan()) & !best.is_nan(),
                false => more,
            };
            let takes = takes | !*found;
            let takes = inside.map_or(takes, |inside| inside & takes);
            (*best, *at) = (takes.select(v, *best), takes.select(place, *at));
            *found = *found | takes;
        }
    }
}
