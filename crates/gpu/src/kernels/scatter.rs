//! Scatters: updates joined in at indices.
//!
//! One thread has every place that no two of its updates share with another thread's, and goes
//! through the indices in their order: results repeat, and of updates of one place the last wins. Where
//! there are many, they are sorted first.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{Binary, Scatter, ScatterAxis, ScatterMode};

use super::gather::{Indices, look};
use super::sort;
use super::view::{Axes, View, is_far, place, unflatten};
use super::{Draft, Launch, Missing, Program, map};
use crate::ir::{Access, Number, NumberVar, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// How updates are joined with what is there; none where they take its place.
fn operation(mode: ScatterMode) -> Option<Binary> {
    match mode {
        ScatterMode::Set => None,
        ScatterMode::Add => Some(Binary::Add),
        ScatterMode::Prod => Some(Binary::Mul),
        ScatterMode::Max => Some(Binary::Maximum),
        ScatterMode::Min => Some(Binary::Minimum),
    }
}

/// Joins an update with what is there.
fn join<'k>(mode: ScatterMode, out: View<'k>, at: Val<'k>, update: Number<'k>) {
    let Some(op) = operation(mode) else { return out.buf.store_number(at, update) };
    let old = out.buf.load_number(at);
    out.buf.store_number(at, old.binary(op, update, out.buf.dtype));
}

/// How many threads share the places along an axis of `size`, where there are `own` places beside.
fn share(size: usize, own: u64, target: &Target) -> usize {
    let wanted = u64::from(target.threads) / own.max(1);
    wanted.clamp(1, size.max(1) as u64) as usize
}

/// Adds the launches of a scatter.
pub fn scatter(
    program: &mut Program,
    scatter: &Scatter,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, updates, out) = (&segment.inputs[0], &segment.inputs[1], &segment.outputs[0]);
    let rank = x.aval.shape.rank();
    let lead = updates.aval.shape.rank() - rank;
    let slice = &updates.aval.shape[lead..];
    let axes: Vec<_> = scatter.axes.iter().map(|&a| (a, x.aval.shape[a], slice[a])).collect();
    if out.aval.shape.size() > 0 {
        program.launches.push(map::copy(segment, target)?);
    }
    if updates.aval.shape.size() == 0 || out.aval.shape.size() == 0 {
        return look(program, segment, 2, "scatter", &axes, target);
    }
    let positions: usize = updates.aval.shape[..lead].iter().product();
    let is_far = segment.inputs.iter().chain(&segment.outputs).any(is_far);
    if is_of_rows(scatter, slice) && positions >= MANY && !is_far {
        return Runs::launches(program, scatter, segment, target);
    }
    let span_sizes: Vec<usize> = scatter.axes.iter().map(|&a| slice[a]).collect();
    let spans: usize = span_sizes.iter().product();
    target.allows(positions.saturating_mul(spans.saturating_add(2)))?;
    let k = Draft::new("scatter", BLOCK, segment, target)?;
    let (from, to) = (k.input(segment, 1), k.output(segment, 0));
    let indices = Indices::bind(&k, program, segment, 2, "scatter", &axes);
    // Threads have places along the axes without indices, and places of the first axis with them
    // in turns; they walk over the positions and over the slices along the axes with indices.
    let free: Vec<usize> = (0..rank).filter(|a| !scatter.axes.contains(a)).collect();
    let free_sizes: Vec<usize> = free.iter().map(|&a| slice[a]).collect();
    let own: u64 = free_sizes.iter().map(|&s| s as u64).product();
    let turns = match scatter.axes.first() {
        Some(&axis) => share(x.aval.shape[axis], own, target),
        None => 1,
    };
    let threads = own * turns as u64;
    let shares = k.divisors(&[turns, own as usize]);
    let [free_sizes, span_sizes] = [free_sizes, span_sizes].map(|sizes| k.divisors(&sizes));
    let lead_sizes = k.divisors(&updates.aval.shape[..lead]);
    let [own_strides, out_strides] = [updates, out].map(|o| k.strides(&o.strides));
    let [positions, spans] = [positions, spans].map(|n| k.extent(n));
    k.each(threads, |at| {
        let split = unflatten(at, &shares);
        let (turn, own) = (split[0], split[1]);
        let fixed = unflatten(own, &free_sizes);
        k.count(positions, |position| {
            let position = unflatten(position, &lead_sizes);
            let starts: Vec<Val<'_>> = indices.iter().map(|array| array.at(&position)).collect();
            k.count(spans, |span| {
                let along = unflatten(span, &span_sizes);
                let zero = k.index(0);
                let (mut source, mut end) = (vec![zero; rank], vec![zero; rank]);
                for (&axis, &i) in free.iter().zip(&fixed) {
                    (source[axis], end[axis]) = (i, i);
                }
                for ((&axis, &i), &start) in scatter.axes.iter().zip(&along).zip(&starts) {
                    (source[axis], end[axis]) = (i, start + i);
                }
                let mine = match scatter.axes.first() {
                    Some(&axis) if turns > 1 => end[axis].div_rem(&shares[0]).1.eq(turn),
                    _ => k.bool(true),
                };
                k.when(mine, || {
                    let source = [&position[..], &source].concat();
                    let update = from.load(&source, &own_strides);
                    join(scatter.mode, to, to.at(&end, &out_strides), update);
                });
            });
        });
    });
    program.launches.push(k.launch_over(threads)?);
    Ok(())
}

/// From how many positions on it pays to sort them.
const MANY: usize = 64;
/// Updates of a run that a thread has under way at once.
const UNDER_WAY: u32 = 4;

/// Whether a scatter writes rows: slices of one element along the one axis with indices.
fn is_of_rows(scatter: &Scatter, slice: &[usize]) -> bool {
    matches!(scatter.axes[..], [axis] if slice[axis] == 1)
}

/// A scatter of many rows. The positions are put in the order of their indices, those of one index in
/// their own, so that a thread that has some elements of a row finds its updates next to each other.
struct Runs<'a> {
    scatter: &'a Scatter,
    segment: &'a Segment,
    target: &'a Target,
    /// How many positions there are, and how the updates walk over them.
    positions: usize,
    lead: usize,
    /// Scratch memory: of every position its index, the indices in their order, and the positions.
    keys: usize,
    sorted: usize,
    order: usize,
}

impl<'a> Runs<'a> {
    /// Adds the launches.
    fn launches(
        program: &mut Program,
        scatter: &'a Scatter,
        segment: &'a Segment,
        target: &'a Target,
    ) -> Result<(), Missing> {
        let (x, updates) = (&segment.inputs[0], &segment.inputs[1]);
        let lead = updates.aval.shape.rank() - x.aval.shape.rank();
        let positions = updates.aval.shape[..lead].iter().product();
        let keys = program.scratch.len();
        program.scratch.extend([positions * 4; 3]);
        let [sorted, order] = [keys + 1, keys + 2];
        target.allows(positions / UNDER_WAY as usize + 2)?;
        let runs = Runs { scatter, segment, target, positions, lead, keys, sorted, order };
        let find = runs.find_keys(program)?;
        program.launches.push(find);
        // What is outside the axis is a fault, wherever it is put.
        let bits = x.aval.shape[scatter.axes[0]].next_power_of_two().trailing_zeros();
        sort::order(program, [keys, sorted, order], positions, bits.max(1), segment, target)?;
        program.launches.push(runs.join()?);
        Ok(())
    }

    /// The launch that looks at the indices.
    fn find_keys(&self, program: &mut Program) -> Result<Launch, Missing> {
        let k = Draft::new("scatter_indices", BLOCK, self.segment, self.target)?;
        let axis = self.scatter.axes[0];
        let axes = [(axis, self.segment.inputs[0].aval.shape[axis], 1)];
        let indices = Indices::bind(&k, program, self.segment, 2, "scatter", &axes);
        let keys = k.scratch(self.keys, DType::U32, Access::Write);
        let sizes = k.divisors(&self.segment.inputs[2].aval.shape);
        k.each(self.positions as u64, |at| {
            let index = indices[0].at(&unflatten(at, &sizes));
            keys.buf.store(at, index.convert(Ty::U32));
        });
        drop(indices);
        k.launch_over(self.positions as u64)
    }

    /// The launch that joins the updates: a thread has neighbours of a row, and goes through the run of
    /// positions that stands for it.
    fn join(&self) -> Result<Launch, Missing> {
        let (updates, out) = (&self.segment.inputs[1], &self.segment.outputs[0]);
        let k = Draft::new("scatter_runs", BLOCK, self.segment, self.target)?;
        let (from, to) = (k.input(self.segment, 1), k.output(self.segment, 0));
        let [keys, order] =
            [self.sorted, self.order].map(|s| k.scratch(s, DType::U32, Access::Read).buf);
        let axis = self.scatter.axes[0];
        let free: Vec<usize> = (0..out.strides.len()).filter(|&a| a != axis).collect();
        let along = |strides: &[isize]| free.iter().map(|&a| strides[a]).collect::<Vec<_>>();
        let sizes: Vec<usize> = free.iter().map(|&a| updates.aval.shape[self.lead + a]).collect();
        let own = [along(&updates.strides[self.lead..]), along(&out.strides)];
        let axes = Axes::joined(&sizes, &[&own[0], &own[1]]);
        let dtype = out.aval.dtype;
        let lead = Axes::joined(&updates.aval.shape[..self.lead], &[&updates.strides[..self.lead]]);
        // Rows lie where their positions, or their indices, say.
        let mut whole = lead.clone();
        whole.strides.push(vec![out.strides[axis]; lead.sizes.len()]);
        let count = match axes.sizes[..] {
            [] => 1,
            _ => whole.followed_by(&axes).vector(&[dtype; 2], self.target.vector_bytes),
        };
        let steps = axes.in_steps(count);
        let is_one_for_all = axes.strides[0].last() == Some(&0);
        let (walk, lead, row) =
            (k.walk(&steps), k.walk(&lead), k.strides(&out.strides[axis..=axis]));
        let total = self.positions as u64 * steps.count();
        let split = k.divisors(&[self.positions, steps.count() as usize]);
        let [length, last] = [self.positions, self.positions - 1].map(|n| k.extent(n));
        k.each(total, |at| {
            let at = unflatten(at, &split);
            let (start, own) = (at[0], unflatten(at[1], &walk.sizes));
            let [key, before] = [start, start.max(1) - 1].map(|place| keys.load(place));
            let is_first = start.eq(0) | before.ne(key);
            k.when(is_first, || {
                let end = place(to.at(&own, &walk.strides[1]), &[k.as_index(key)], &row);
                let old = to.load_at(end, false, count);
                let totals: Vec<NumberVar<'_>> = old.into_iter().map(|n| k.number_var(n)).collect();
                let (next, more) = (k.var(start), k.var(k.bool(true)));
                k.repeat(
                    || more.get(),
                    || {
                        let first = next.get();
                        // All are asked for before the first is joined.
                        let some: Vec<_> = (0..UNDER_WAY)
                            .map(|i| {
                                let here = first + i;
                                let within = here.min(last);
                                let position = k.as_index(order.load(within));
                                let mine = here.lt(length) & keys.load(within).eq(key);
                                let start =
                                    from.at(&unflatten(position, &lead.sizes), &lead.strides[0]);
                                let start = place(start, &own, &walk.strides[0]);
                                (mine, from.load_at(start, is_one_for_all, count))
                            })
                            .collect();
                        for (mine, numbers) in &some {
                            for (total, &number) in totals.iter().zip(numbers) {
                                let old = total.get();
                                total.set(mine.choose(self.joined(old, number, dtype), old));
                            }
                        }
                        more.set(some[some.len() - 1].0);
                        next.set(first + UNDER_WAY);
                    },
                );
                let numbers: Vec<Number<'_>> = totals.iter().map(|total| total.get()).collect();
                to.store_at(end, &numbers);
            });
        });
        k.launch_over(total)
    }

    fn joined<'k>(&self, old: Number<'k>, update: Number<'k>, dtype: DType) -> Number<'k> {
        match operation(self.scatter.mode) {
            None => update,
            Some(op) => old.binary(op, update, dtype).wrapped(dtype),
        }
    }
}

/// Adds the launches of a scatter along an axis.
pub fn scatter_axis(
    program: &mut Program,
    scatter: &ScatterAxis,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (updates, out) = (&segment.inputs[1], &segment.outputs[0]);
    let axis = scatter.axis;
    let axes = [(axis, out.aval.shape[axis], 1)];
    if out.aval.shape.size() == 0 {
        return look(program, segment, 2, "put_along_axis", &axes, target);
    }
    program.launches.push(map::copy(segment, target)?);
    if updates.aval.shape.size() == 0 {
        return Ok(());
    }
    target.allows(updates.aval.shape[axis] + 1)?;
    let k = Draft::new("put_along_axis", BLOCK, segment, target)?;
    let (from, to) = (k.input(segment, 1), k.output(segment, 0));
    let indices = Indices::bind(&k, program, segment, 2, "put_along_axis", &axes);
    let mut rows = updates.aval.shape.to_vec();
    rows[axis] = 1;
    let own: u64 = rows.iter().map(|&s| s as u64).product();
    let turns = share(out.aval.shape[axis], own, target);
    let threads = own * turns as u64;
    let (shares, rows) = (k.divisors(&[turns, own as usize]), k.divisors(&rows));
    let [own_strides, out_strides] = [updates, out].map(|o| k.strides(&o.strides));
    let positions = k.extent(updates.aval.shape[axis]);
    k.each(threads, |at| {
        let split = unflatten(at, &shares);
        let (turn, own) = (split[0], split[1]);
        let row = unflatten(own, &rows);
        k.count(positions, |position| {
            let mut place = row.clone();
            place[axis] = position;
            let index = indices[0].at(&place);
            k.when(index.div_rem(&shares[0]).1.eq(turn), || {
                let update = from.load(&place, &own_strides);
                place[axis] = index;
                join(scatter.mode, to, to.at(&place, &out_strides), update);
            });
        });
    });
    program.launches.push(k.launch_over(threads)?);
    Ok(())
}
