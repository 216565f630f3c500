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
        return Runs::of_rows(scatter, segment, target).launches(program);
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

/// From how many updates along an axis on it pays to sort them, and how many threads a row would have without.
const LONG: usize = 1024;
const SHARED: u64 = 64;
/// How many sorted positions a thread goes through at most. Where more stand for one place, threads join so many each,
/// and another one what these have found.
const CHUNK: usize = 1024;

/// Whether a scatter writes rows: slices of one element along each axis with indices.
fn is_of_rows(scatter: &Scatter, slice: &[usize]) -> bool {
    !scatter.axes.is_empty() && scatter.axes.iter().all(|&axis| slice[axis] == 1)
}

/// The first position of a chunk.
fn begin_of(chunk: Val<'_>) -> Val<'_> {
    chunk * CHUNK as u32
}

/// The dtype that keeps numbers of `dtype` from one launch to the next; none of truth values.
fn kept(dtype: DType) -> Option<DType> {
    Some(match dtype {
        DType::Bool => return None,
        DType::U8 | DType::U16 | DType::U32 => DType::U32,
        DType::I8 | DType::I16 | DType::I32 => DType::I32,
        DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::C32 | DType::C64 => DType::C64,
        DType::U64 | DType::I64 | DType::F64 => dtype,
    })
}

/// A scatter of many rows, or along a long axis. The positions are put in the order of the places that they name, those
/// of one place in their own, so that a thread that has some elements of a place finds its updates next to each other.
struct Runs<'a> {
    op: &'static str,
    mode: ScatterMode,
    segment: &'a Segment,
    target: &'a Target,
    /// The output's axes along which a place is an index, and how many of the first are the positions' own: the others
    /// have indices.
    placed: Vec<usize>,
    given: usize,
    /// How many axes of the updates positions have, and how many positions there are.
    lead: usize,
    positions: usize,
    /// Scratch memory: of every position its place, the places in their order, and the positions.
    scratch: [usize; 3],
    /// Scratch memory for what each chunk comes to for its first place, where that began in a chunk before; and its
    /// dtype.
    found: Option<(usize, DType)>,
}

impl<'a> Runs<'a> {
    /// Those of a scatter of rows.
    fn of_rows(scatter: &Scatter, segment: &'a Segment, target: &'a Target) -> Self {
        let (x, updates) = (&segment.inputs[0].aval, &segment.inputs[1].aval);
        let lead = updates.shape.rank() - x.shape.rank();
        let placed = scatter.axes.to_vec();
        Runs::new("scatter", scatter.mode, (placed, 0, lead), segment, target)
    }

    /// Those of a scatter along an axis: each update is a position.
    fn along(scatter: &ScatterAxis, segment: &'a Segment, target: &'a Target) -> Self {
        let (rank, axis) = (segment.outputs[0].aval.shape.rank(), scatter.axis);
        let placed = (0..rank).filter(|&a| a != axis).chain([axis]).collect();
        Runs::new("put_along_axis", scatter.mode, (placed, rank - 1, rank), segment, target)
    }

    fn new(
        op: &'static str,
        mode: ScatterMode,
        (placed, given, lead): (Vec<usize>, usize, usize),
        segment: &'a Segment,
        target: &'a Target,
    ) -> Self {
        let positions = segment.inputs[1].aval.shape[..lead].iter().product();
        let (scratch, found) = ([0; 3], None);
        Runs { op, mode, segment, target, placed, given, lead, positions, scratch, found }
    }

    /// Adds the launches.
    fn launches(mut self, program: &mut Program) -> Result<(), Missing> {
        let positions = self.positions;
        self.scratch = [0, 1, 2].map(|i| program.scratch.len() + i);
        program.scratch.extend([positions * 4; 3]);
        let chunks = positions.div_ceil(CHUNK);
        let dtype = kept(self.segment.outputs[0].aval.dtype).filter(|_| chunks > 1);
        self.found = dtype.map(|dtype| {
            let elements: usize = self.own().sizes.iter().product();
            program.scratch.push(chunks * elements * dtype.size());
            (program.scratch.len() - 1, dtype)
        });
        // Along an axis a place has a row's updates at most.
        let longest = match self.given {
            0 => positions,
            given => self.segment.inputs[1].aval.shape[self.placed[given]],
        };
        let most = if dtype.is_some() { CHUNK.max(chunks) } else { longest };
        self.target.allows(most / UNDER_WAY as usize + 2)?;
        let find = self.find_keys(program)?;
        program.launches.push(find);
        // What is outside the axis is a fault, wherever it is put.
        let places: usize = self.place_sizes().iter().product();
        let bits = places.next_power_of_two().trailing_zeros();
        sort::order(program, self.scratch, positions, bits.max(1), self.segment, self.target)?;
        program.launches.push(self.join()?);
        if let Some(found) = self.found {
            program.launches.push(self.join_chunks(found)?);
        }
        Ok(())
    }

    fn place_sizes(&self) -> Vec<usize> {
        self.placed.iter().map(|&a| self.segment.outputs[0].aval.shape[a]).collect()
    }

    fn place_strides<'k>(&self, k: &'k Draft) -> Vec<Val<'k>> {
        let strides = &self.segment.outputs[0].strides;
        k.strides(&self.placed.iter().map(|&a| strides[a]).collect::<Vec<_>>())
    }

    /// The axes of the elements that a place has, in updates and output.
    fn own(&self) -> Axes {
        let (updates, out) = (&self.segment.inputs[1], &self.segment.outputs[0]);
        let free = (0..out.strides.len()).filter(|a| !self.placed.contains(a));
        let along = |strides: &[isize]| free.clone().map(|a| strides[a]).collect::<Vec<_>>();
        let (shape, strides) = (&updates.aval.shape[self.lead..], &updates.strides[self.lead..]);
        let sizes: Vec<usize> = free.clone().map(|a| shape[a]).collect();
        Axes::joined(&sizes, &[&along(strides), &along(&out.strides)])
    }

    /// The launch that looks at the indices.
    fn find_keys(&self, program: &mut Program) -> Result<Launch, Missing> {
        let k = Draft::new("scatter_indices", BLOCK, self.segment, self.target)?;
        let sizes = self.place_sizes();
        let named = self.placed.iter().zip(&sizes).skip(self.given);
        let axes: Vec<_> = named.map(|(&axis, &size)| (axis, size, 1)).collect();
        let indices = Indices::bind(&k, program, self.segment, 2, self.op, &axes);
        let keys = k.scratch(self.scratch[0], DType::U32, Access::Write);
        let walk = k.divisors(&self.segment.inputs[2].aval.shape);
        let extents: Vec<Val<'_>> = sizes.iter().map(|&size| k.extent(size)).collect();
        k.each(self.positions as u64, |at| {
            let position = unflatten(at, &walk);
            let own = self.placed[..self.given].iter().map(|&axis| position[axis]);
            let all = own.chain(indices.iter().map(|array| array.at(&position)));
            let key = all.zip(&extents).reduce(|(key, _), (i, n)| (key * *n + i, n));
            let Some((key, _)) = key else { return };
            keys.buf.store(at, key.convert(Ty::U32));
        });
        drop(indices);
        k.launch_over(self.positions as u64)
    }

    /// The launch that joins the updates: a thread has neighbours of a place, and goes through the run of
    /// positions that stands for it, as far as its chunk has them.
    fn join(&self) -> Result<Launch, Missing> {
        let (updates, out) = (&self.segment.inputs[1], &self.segment.outputs[0]);
        let k = Draft::new("scatter_runs", BLOCK, self.segment, self.target)?;
        let (from, to) = (k.input(self.segment, 1), k.output(self.segment, 0));
        let [keys, order] =
            [1, 2].map(|i| k.scratch(self.scratch[i], DType::U32, Access::Read).buf);
        let found = self.found.map(|(index, dtype)| k.scratch(index, dtype, Access::Write).buf);
        let axes = self.own();
        let dtype = out.aval.dtype;
        let lead = Axes::joined(&updates.aval.shape[..self.lead], &[&updates.strides[..self.lead]]);
        // Places lie where their positions, or their indices, say.
        let mut whole = lead.clone();
        whole.strides.push(vec![0; lead.sizes.len()]);
        whole.sizes.extend(self.place_sizes());
        whole.strides[0].resize(whole.sizes.len(), 0);
        whole.strides[1].extend(self.placed.iter().map(|&a| out.strides[a]));
        let count = match axes.sizes[..] {
            [] => 1,
            _ => whole.followed_by(&axes).vector(&[dtype; 2], self.target.vector_bytes),
        };
        let steps = axes.in_steps(count);
        let is_one_for_all = axes.strides[0].last() == Some(&0);
        let (walk, lead, row) = (k.walk(&steps), k.walk(&lead), self.place_strides(&k));
        let place_sizes = k.divisors(&self.place_sizes());
        let total = self.positions as u64 * steps.count();
        let split = k.divisors(&[self.positions, steps.count() as usize]);
        let [length, last] = [self.positions, self.positions - 1].map(|n| k.extent(n));
        let each = k.extent(steps.count() as usize);
        k.each(total, |at| {
            let at = unflatten(at, &split);
            let (start, own) = (at[0], unflatten(at[1], &walk.sizes));
            let [key, before] = [start, start.max(1) - 1].map(|place| keys.load(place));
            let is_first = start.eq(0) | before.ne(key);
            let chunk = start / CHUNK as u32;
            let begins = match found {
                Some(_) => is_first | (start % CHUNK as u32).eq(0),
                None => is_first,
            };
            let update = |position| {
                let position = k.as_index(order.load(position));
                let start = from.at(&unflatten(position, &lead.sizes), &lead.strides[0]);
                let start = place(start, &own, &walk.strides[0]);
                from.load_at(start, is_one_for_all, count)
            };
            k.when(begins, || {
                let index = unflatten(k.as_index(key), &place_sizes);
                let end = place(to.at(&own, &walk.strides[1]), &index, &row);
                let mut totals = to.load_at(end, false, count);
                let (mut first, mut end_of_run) = (start, length);
                if found.is_some() {
                    // What began before begins here with its first update.
                    let one = update(start);
                    let both = totals.iter().zip(one);
                    totals = both.map(|(&old, one)| is_first.choose(old, one)).collect();
                    first = start + is_first.select(k.index(0), k.index(1));
                    end_of_run = ((chunk + 1) * CHUNK as u32).min(length);
                }
                let totals: Vec<NumberVar<'_>> =
                    totals.into_iter().map(|n| k.number_var(n)).collect();
                self.join_run(&k, &totals, first, |here| {
                    let within = here.min(last);
                    (here.lt(end_of_run) & keys.load(within).eq(key), update(within))
                });
                let numbers: Vec<Number<'_>> = totals.iter().map(|total| total.get()).collect();
                let Some(found) = found else { return to.store_at(end, &numbers) };
                k.when(is_first, || to.store_at(end, &numbers));
                k.when(!is_first, || {
                    let first = (chunk * each + at[1]) * count;
                    for (i, &number) in numbers.iter().enumerate() {
                        found.store_number(first + i as u32, number);
                    }
                });
            });
        });
        k.launch_over(total)
    }

    /// The launch that joins what chunks have found for places that began before them.
    fn join_chunks(&self, (found, found_dtype): (usize, DType)) -> Result<Launch, Missing> {
        let k = Draft::new("scatter_chunks", BLOCK, self.segment, self.target)?;
        let to = k.output(self.segment, 0);
        let keys = k.scratch(self.scratch[1], DType::U32, Access::Read).buf;
        let found = k.scratch(found, found_dtype, Access::Read).buf;
        let chunks = self.positions.div_ceil(CHUNK);
        let axes = self.own();
        let (walk, row) = (k.walk(&axes), self.place_strides(&k));
        let place_sizes = k.divisors(&self.place_sizes());
        let elements = axes.count() as usize;
        let total = ((chunks - 1) * elements) as u64;
        let split = k.divisors(&[chunks - 1, elements]);
        let [length, last, elements] = [chunks, chunks - 1, elements].map(|n| k.extent(n));
        k.each(total, |at| {
            let at = unflatten(at, &split);
            let (chunk, own) = (at[0] + 1, unflatten(at[1], &walk.sizes));
            let key = keys.load(begin_of(chunk));
            // Whether it goes on with a place, and whether the chunk before does that, too, with the same one.
            let goes_on = keys.load(begin_of(chunk) - 1).eq(key);
            let before = chunk - 1;
            let is_later = before.gt(0) & keys.load(begin_of(before).max(1) - 1).eq(key);
            k.when(goes_on & !is_later, || {
                let index = unflatten(k.as_index(key), &place_sizes);
                let end = place(to.at(&own, &walk.strides[1]), &index, &row);
                let totals = [k.number_var(to.buf.load_number(end))];
                self.join_run(&k, &totals, chunk, |here| {
                    let within = here.min(last);
                    let mine = here.lt(length) & keys.load(begin_of(within)).eq(key);
                    (mine, vec![found.load_number(within * elements + at[1])])
                });
                to.buf.store_number(end, totals[0].get());
            });
        });
        k.launch_over(total)
    }

    /// Joins to the totals what is there from `first` on, in its order, as long as it is their own: `there` says whether
    /// it is, and what it is.
    fn join_run<'k>(
        &self,
        k: &'k Draft,
        totals: &[NumberVar<'k>],
        first: Val<'k>,
        there: impl Fn(Val<'k>) -> (Val<'k>, Vec<Number<'k>>),
    ) {
        let (next, more) = (k.var(first), k.var(k.bool(true)));
        k.repeat(
            || more.get(),
            || {
                let first = next.get();
                // All are asked for before the first is joined.
                let some: Vec<_> = (0..UNDER_WAY).map(|i| there(first + i)).collect();
                for (mine, numbers) in &some {
                    for (total, &number) in totals.iter().zip(numbers) {
                        let old = total.get();
                        total.set(mine.choose(self.joined(old, number), old));
                    }
                }
                more.set(some[some.len() - 1].0);
                next.set(first + UNDER_WAY);
            },
        );
    }

    fn joined<'k>(&self, old: Number<'k>, update: Number<'k>) -> Number<'k> {
        let dtype = self.segment.outputs[0].aval.dtype;
        match operation(self.mode) {
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
    let mut rows = updates.aval.shape.to_vec();
    rows[axis] = 1;
    let own: u64 = rows.iter().map(|&s| s as u64).product();
    // Where rows alone keep the device busy, nothing is sorted.
    let is_long = updates.aval.shape[axis] >= LONG && own * SHARED <= u64::from(target.threads);
    if is_long && !segment.inputs.iter().chain(&segment.outputs).any(is_far) {
        return Runs::along(scatter, segment, target).launches(program);
    }
    target.allows(updates.aval.shape[axis] + 1)?;
    let k = Draft::new("put_along_axis", BLOCK, segment, target)?;
    let (from, to) = (k.input(segment, 1), k.output(segment, 0));
    let indices = Indices::bind(&k, program, segment, 2, "put_along_axis", &axes);
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
