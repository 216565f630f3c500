//! Fourier transforms along an axis.
//!
//! A block has lanes of up to [`TILE`] numbers in shared memory and goes through the factors of their
//! size, 8, 4, 2, 3, 5 and 7, one after the other (M. C. Pease, *An adaptation of the fast Fourier
//! transform for parallel processing*, JACM 1968, in Stockham's order: results come out sorted).
//! Longer lanes are matrices: their columns are transformed, turned by the roots of unity that both
//! indices make, and then their rows (W. M. Gentleman and G. Sande, *Fast Fourier transforms for fun and
//! profit*, 1966). Sizes with other factors are convolutions with a chirp, which powers of two can do
//! (L. I. Bluestein, 1970).
//!
//! Real transforms are complex ones of which half is read or written.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::{Fft, FftKind};

use super::view::{Axes, View, place, unflatten};
use super::{BufferRef, Draft, Launch, Missing, Program};
use crate::ir::{Access, Buf, Divisor, Number, Target, Ty, Val, Var};

/// Threads in a block.
const BLOCK: u32 = 256;
/// Numbers that a block has in shared memory.
const TILE: usize = 2048;
/// The factors of sizes, in the order in which they are taken.
const FACTORS: [u32; 6] = [8, 4, 2, 3, 5, 7];
/// The most numbers that a thread has for a factor.
const HELD: u32 = 14;
/// Roots of unity are known up to this one.
const MOST: usize = 1 << 29;
/// Up to this size the squares of places fit into a word.
const SQUARES: usize = 1 << 16;

/// A complex number: its parts.
type Pair<'k> = (Val<'k>, Val<'k>);

/// Adds the launches of a transform: an axis after the other, the last one first. The first reads the
/// input, the others work on the output.
pub fn fft(
    program: &mut Program,
    op: &Fft,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let time = match op.kind {
        FftKind::HalfComplex { .. } => &out.aval.shape,
        FftKind::Forward | FftKind::Inverse | FftKind::Real => &x.aval.shape,
    };
    let count = op.axes.iter().map(|&axis| time[axis]).product();
    for (pass, &axis) in op.axes.iter().rev().enumerate() {
        let from = if pass == 0 { x } else { out };
        let without = |strides: &[isize]| {
            let mut strides = strides.to_vec();
            strides.remove(axis);
            strides
        };
        let sizes = out.aval.shape.without(&[axis]);
        let lanes = Axes::joined(&sizes, &[&without(&from.strides), &without(&out.strides)]);
        let is_last = pass + 1 == op.axes.len();
        let work = Lanes {
            kind: op.kind,
            size: time[axis],
            factor: if is_last { op.scale.factor(count) as f32 } else { 1.0 },
            in_place: pass > 0,
            along: [from.strides[axis], out.strides[axis]],
            lanes,
            segment,
            target,
        };
        work.launches(program)?;
    }
    Ok(())
}

/// The launch that multiplies the row-major result of a transform by its factor, where that is not 1.
pub fn scaled(op: &Fft, segment: &Segment, target: &Target) -> Result<Option<Launch>, Missing> {
    let time = &segment.inputs[0].aval.shape;
    let factor = op.scale.factor(op.axes.iter().map(|&axis| time[axis]).product()) as f32;
    if factor == 1.0 {
        return Ok(None);
    }
    let k = Draft::new("fft_scaled", BLOCK, segment, target)?;
    let (view, count) = (k.output(segment, 0), segment.outputs[0].aval.shape.size() as u64);
    let factor = k.size(i64::from(factor.to_bits()), Ty::U32).bits(Ty::F32);
    k.each(count, |index| {
        let at = view.offset + index;
        let (re, im) = pair(view.buf.load_number(at));
        view.buf.store_number(at, Number::Complex(re * factor, im * factor));
    });
    k.launch_over(count).map(Some)
}

/// The lanes of an axis.
struct Lanes<'a> {
    kind: FftKind,
    /// How many numbers a lane has in the time domain.
    size: usize,
    /// What results are multiplied with.
    factor: f32,
    /// Whether the output is read, too.
    in_place: bool,
    /// The strides of what is read and written along the axis.
    along: [isize; 2],
    /// The other axes, with both their strides.
    lanes: Axes,
    segment: &'a Segment,
    target: &'a Target,
}

/// Where a transform reads.
#[derive(Clone, Copy)]
enum From {
    /// The lanes themselves, times a chirp where there is one.
    Ends { chirped: bool },
    /// Scratch memory with lane after lane.
    Scratch(usize),
    /// The conjugates of the products of the lanes of scratch memory with the one of another.
    Products(usize, usize),
}

/// Where it writes.
#[derive(Clone, Copy)]
enum To {
    /// The lanes themselves.
    Ends,
    /// The same, as the end of a convolution: conjugated, and times the chirp.
    Convolved,
    /// Scratch memory with lane after lane.
    Scratch(usize),
}

/// A transform of lanes of a size with small factors.
struct Plan {
    /// Its lanes in all.
    lanes: u64,
    size: usize,
    from: From,
    to: To,
    /// Whether exponents are positive.
    is_inverse: bool,
}

/// The part of a plan that one launch does: of a matrix the columns, or of what is left the lanes.
struct Step {
    /// Columns before this step: their count, innermost last.
    columns: Vec<usize>,
    /// Numbers of a lane, and lanes beside each other of which each has one number in a row.
    size: usize,
    rows: usize,
    /// Scratch memory that the step before wrote.
    read: Option<usize>,
    /// Scratch memory for the next step.
    write: Option<usize>,
}

/// The factors of a size, each in four bits, the first one lowest; none where it has others.
fn factors(mut size: usize) -> Option<(u32, u32)> {
    let (mut code, mut count) = (0, 0);
    for factor in FACTORS {
        while size > 1 && size.is_multiple_of(factor as usize) {
            code |= if count < 8 { factor << (4 * count) } else { 0 };
            count += 1;
            size /= factor as usize;
        }
    }
    (size <= 1).then_some((code, count))
}

/// Whether a transform of this size is no convolution of a larger one.
pub fn is_direct(size: usize) -> bool {
    factors(size).is_some()
}

/// The largest factor of a size that a block can do, near the size's root where it can be.
fn column(size: usize) -> usize {
    let wanted = (size.isqrt() + 1).next_power_of_two().min(TILE);
    let fits = |&c: &usize| size.is_multiple_of(c);
    (1..=wanted).rev().find(fits).unwrap_or(1)
}

impl Lanes<'_> {
    fn launches(&self, program: &mut Program) -> Result<(), Missing> {
        let lanes = self.lanes.count();
        if factors(self.size).is_some() {
            let (from, is_inverse) = (From::Ends { chirped: false }, self.is_inverse());
            let plan = Plan { lanes, size: self.size, from, to: To::Ends, is_inverse };
            return self.transform(program, &plan);
        }
        let size = (2 * self.size - 1).next_power_of_two();
        if size > MOST || self.size > SQUARES && !self.target.int64 {
            return Err(Missing(format!("there is no kernel of transforms of {}", self.size)));
        }
        let [chirp, spectrum, numbers] = [0, 1, 2].map(|i| program.scratch.len() + i);
        program.scratch.extend([size * 8, size * 8, lanes as usize * size * 8]);
        program.launches.push(self.chirp(chirp, size)?);
        let plan = |lanes, from, to| Plan { lanes, size, from, to, is_inverse: false };
        self.transform(program, &plan(1, From::Scratch(chirp), To::Scratch(spectrum)))?;
        let start = From::Ends { chirped: true };
        self.transform(program, &plan(lanes, start, To::Scratch(numbers)))?;
        let end = From::Products(numbers, spectrum);
        self.transform(program, &plan(lanes, end, To::Convolved))
    }

    /// Whether exponents are positive.
    fn is_inverse(&self) -> bool {
        matches!(self.kind, FftKind::Inverse | FftKind::HalfComplex { .. })
    }

    fn draft(&self) -> Result<Draft, Missing> {
        Draft::new(self.kind.name(), BLOCK, self.segment, self.target)
    }

    /// The launch that makes what a convolution with the chirp takes: its conjugate at the places from 0
    /// on, and at the same places before the end.
    fn chirp(&self, to: usize, size: usize) -> Result<Launch, Missing> {
        let k = self.draft()?;
        let to = k.scratch(to, DType::C64, Access::Write).buf;
        let (own, whole) = (k.size(self.size as i64, Ty::U32), k.size(size as i64, Ty::U32));
        k.each(size as u64, |at| {
            let place = at.convert(Ty::U32);
            let place = place.min(whole - place);
            let (re, im) = self.chirp_at(&k, place.min(own));
            let inside = place.lt(own);
            let parts = Number::Complex(inside.select(re, 0.0), inside.select(-im, 0.0));
            to.store_number(at, parts);
        });
        k.launch_over(size as u64)
    }

    /// exp(±πi·k²/n), with the sign of the transform.
    fn chirp_at<'k>(&self, k: &'k Draft, place: Val<'k>) -> Pair<'k> {
        let twice = 2 * self.size as i64;
        let square = if self.size <= SQUARES {
            (place * place) % k.size(twice, Ty::U32)
        } else {
            let place = place.convert(Ty::U64);
            ((place * place) % k.size(twice, Ty::U64)).convert(Ty::U32)
        };
        let (re, im) = root(k, square, k.size(twice, Ty::U32));
        (re, if self.is_inverse() { im } else { -im })
    }

    /// Adds the launches of a plan: one for every level of matrices, and one for their rows.
    fn transform(&self, program: &mut Program, plan: &Plan) -> Result<(), Missing> {
        if plan.size > MOST {
            return Err(Missing(format!("there is no kernel of transforms of {}", plan.size)));
        }
        let mut step =
            Step { columns: Vec::new(), size: plan.size, rows: 1, read: None, write: None };
        while step.size > TILE {
            let (size, columns) = (step.size, column(step.size));
            if columns == 1 {
                return Err(Missing(format!("there is no kernel of transforms of {size}")));
            }
            let scratch = program.scratch.len();
            program.scratch.push(plan.lanes as usize * plan.size * 8);
            (step.rows, step.size, step.write) = (size / columns, columns, Some(scratch));
            program.launches.push(self.step(plan, &step)?);
            step.columns.push(columns);
            (step.size, step.rows) = (size / columns, 1);
            (step.read, step.write) = (Some(scratch), None);
        }
        program.launches.push(self.step(plan, &step)?);
        Ok(())
    }

    /// One step of a plan.
    fn step(&self, plan: &Plan, step: &Step) -> Result<Launch, Missing> {
        let k = self.draft()?;
        let ends = self.bind(&k, plan, step);
        let outer: usize = step.columns.iter().product();
        // Lanes of the step: those of the plan, the columns before, and the rows beside each other.
        let lanes = plan.lanes * (outer * step.rows) as u64;
        let together = (TILE / step.size).max(1);
        let blocks = lanes.div_ceil(together as u64);
        let shared = [0; 2].map(|_| k.shared(Ty::F32, TILE as u32));
        let held: Vec<[Var<'_>; 2]> =
            (0..HELD).map(|_| [0; 2].map(|_| k.var(k.f32(0.0)))).collect();
        let size = k.divisor(step.size, Ty::U32);
        let together_by = k.divisor(together, Ty::U32);
        let [count, most] = [lanes as usize, together].map(|n| k.extent(n));
        let (code, stages) = factors(step.size).unwrap_or((0, 0));
        let [code, stages] = [code, stages].map(|word| k.size(word.into(), Ty::U32));
        k.blocks(blocks, |block| {
            let first = block * most;
            let lanes = (count - first).min(most).convert(Ty::U32);
            let total = lanes * size.size;
            let elements =
                |is_across| elements(&k, [&size, &together_by], [total, lanes], is_across);
            let loaded: Vec<_> = elements(ends.reads_across)
                .into_iter()
                .map(|(lane, place, inside)| {
                    // Others read the first number of the first lane.
                    let [own, at] = [lane, place].map(|v| inside.select(v, 0));
                    (lane * size.size + place, inside, ends.load(first + k.as_index(own), at))
                })
                .collect();
            k.barrier();
            for (at, inside, (re, im)) in loaded {
                k.when(inside, || {
                    shared[0].store(at, re);
                    shared[1].store(at, im);
                });
            }
            k.barrier();
            let done = k.var(k.u32(1));
            k.range(k.u32(0), stages, 1, |stage| {
                let factor = (code >> (stage << 2)) & 15;
                let before = done.get();
                for radix in FACTORS {
                    k.when(factor.eq(radix), || {
                        for (slot, at) in butterflies(&k, radix).enumerate() {
                            let stride = size.size / radix;
                            let (lane, place) = parts(at, stride);
                            // What is beyond reads numbers of others, and is not stored.
                            let start = (lane * size.size + place).min(TILE as u32 - 1);
                            let turns =
                                self.turns(&k, plan, [parts(place, before).1, before], radix);
                            let numbers = (0..radix).map(|q| {
                                let at = (start + stride * q).min(TILE as u32 - 1);
                                let x = (shared[0].load(at), shared[1].load(at));
                                match q {
                                    0 => x,
                                    _ => times(x, turns[q as usize - 1]),
                                }
                            });
                            let sums = small(numbers.collect(), plan.is_inverse);
                            for (q, (re, im)) in sums.into_iter().enumerate() {
                                let [to_re, to_im] = held[slot * radix as usize + q];
                                to_re.set(re);
                                to_im.set(im);
                            }
                        }
                    });
                }
                k.barrier();
                for radix in FACTORS {
                    k.when(factor.eq(radix), || {
                        for (slot, at) in butterflies(&k, radix).enumerate() {
                            let stride = size.size / radix;
                            let (lane, place) = parts(at, stride);
                            let turn = parts(place, before).1;
                            let start = lane * size.size + (place - turn) * radix + turn;
                            k.when((at * radix).lt(total), || {
                                for q in 0..radix {
                                    let [re, im] = held[slot * radix as usize + q as usize];
                                    shared[0].store(start + before * q, re.get());
                                    shared[1].store(start + before * q, im.get());
                                }
                            });
                        }
                    });
                }
                done.set(before * factor);
                k.barrier();
            });
            for (lane, place, inside) in elements(ends.writes_across) {
                k.when(inside, || {
                    let at = lane * size.size + place;
                    let value = (shared[0].load(at), shared[1].load(at));
                    ends.store(first + k.as_index(lane), place, value);
                });
            }
        });
        drop(ends);
        k.launch_blocks(blocks)
    }

    /// What the numbers of a butterfly but the first are turned by: the first `radix - 1` powers of the root
    /// for `turn` of `before`. Roots take many instructions: those of powers of two are computed, the others
    /// are products of two of them, or three.
    fn turns<'k>(
        &self,
        k: &'k Draft,
        plan: &Plan,
        [turn, before]: [Val<'k>; 2],
        radix: u32,
    ) -> Vec<Pair<'k>> {
        let mut turns: Vec<Pair<'k>> = Vec::new();
        for q in 1..radix {
            let high = 1 << q.ilog2();
            turns.push(match q - high {
                0 => self.twiddle(k, plan, turn * q, before * radix),
                low => times(turns[high as usize - 1], turns[low as usize - 1]),
            });
        }
        turns
    }

    /// exp(±2πi·k/n), with the sign of the plan.
    fn twiddle<'k>(&self, k: &'k Draft, plan: &Plan, at: Val<'k>, of: Val<'k>) -> Pair<'k> {
        let (re, im) = root(k, at, of);
        (re, if plan.is_inverse { im } else { -im })
    }

    /// Binds what a step reads and writes.
    fn bind<'k>(&'k self, k: &'k Draft, plan: &'k Plan, step: &Step) -> Bound<'k> {
        let scratch = |index, access| k.scratch(index, DType::C64, access).buf;
        let reads = match (step.read, plan.from) {
            (Some(index), _) | (None, From::Scratch(index)) => {
                vec![scratch(index, Access::Read)]
            }
            (None, From::Products(index, other)) => {
                vec![scratch(index, Access::Read), scratch(other, Access::Read)]
            }
            (None, From::Ends { .. }) => Vec::new(),
        };
        let writes = match (step.write, plan.to) {
            (Some(index), _) | (None, To::Scratch(index)) => Some(scratch(index, Access::Write)),
            (None, To::Ends | To::Convolved) => None,
        };
        let (from, to) = self.kind.dtypes();
        let output = || k.view(BufferRef::Output(0), to, Access::Write);
        let target = writes.is_none().then(output);
        let source = reads.is_empty().then(|| match (self.in_place, target) {
            (true, Some(target)) => target,
            (true, None) => output(),
            (false, _) => k.view(BufferRef::Input(0), from, Access::Read),
        });
        let lanes = k.walk(&self.lanes);
        let close = |end: usize| self.along[end].unsigned_abs() != 1;
        Bound {
            lanes: self,
            k,
            plan,
            reads,
            writes,
            source,
            target,
            outer: lanes.sizes,
            strides: lanes.strides,
            along: k.strides(&self.along),
            columns: k.divisors(&step.columns),
            rows: k.divisor(step.rows, k.index),
            // Of a whole lane: without the rows and columns.
            whole: k.extent(plan.size),
            left: k.extent(step.size * step.rows),
            own: k.size(self.size as i64, Ty::U32),
            is_last: step.write.is_none(),
            reads_across: step.rows > 1 || source.is_some() && close(0),
            writes_across: step.rows > 1
                || target.is_some() && close(1)
                || !step.columns.is_empty(),
        }
    }
}

/// What a step reads and writes, bound.
struct Bound<'k> {
    lanes: &'k Lanes<'k>,
    k: &'k Draft,
    plan: &'k Plan,
    reads: Vec<Buf>,
    writes: Option<Buf>,
    source: Option<View<'k>>,
    target: Option<View<'k>>,
    outer: Vec<Divisor<'k>>,
    strides: Vec<Vec<Val<'k>>>,
    along: Vec<Val<'k>>,
    columns: Vec<Divisor<'k>>,
    rows: Divisor<'k>,
    whole: Val<'k>,
    left: Val<'k>,
    own: Val<'k>,
    /// Whether no other step follows.
    is_last: bool,
    reads_across: bool,
    writes_across: bool,
}

impl<'k> Bound<'k> {
    /// A lane of the step as a lane of the plan, the columns that it is of, and its row.
    fn split(&self, lane: Val<'k>) -> (Val<'k>, Vec<Val<'k>>, Val<'k>) {
        let (mut lane, row) = lane.div_rem(&self.rows);
        let mut columns = Vec::new();
        for size in self.columns.iter().rev() {
            let (rest, column) = lane.div_rem(size);
            columns.push(column);
            lane = rest;
        }
        columns.reverse();
        (lane, columns, row)
    }

    /// The number at a place of a lane.
    fn load(&self, lane: Val<'k>, place: Val<'k>) -> Pair<'k> {
        let k = self.k;
        let (plan_lane, _, row) = self.split(lane);
        // Where the number is in its lane, or in what the columns before have left of it.
        let at = k.as_index(place) * self.rows.size + row;
        if let Some(&read) = self.reads.first() {
            let (rest, _) = lane.div_rem(&self.rows);
            let value = pair(read.load_number(rest * self.left + at));
            let Some(&other) = self.reads.get(1) else { return value };
            let (re, im) = times(value, pair(other.load_number(at)));
            return (re, -im);
        }
        let chirped = matches!(self.plan.from, From::Ends { chirped: true });
        let at = at.convert(Ty::U32);
        let inside = at.lt(self.own);
        let at = if chirped { inside.select(at, 0) } else { at };
        let value = self.given(plan_lane, at);
        if !chirped {
            return value;
        }
        let (re, im) = times(value, self.lanes.chirp_at(k, at));
        (inside.select(re, 0.0), inside.select(im, 0.0))
    }

    /// The number of the lanes themselves: of a half of a spectrum, what it stands for.
    fn given(&self, lane: Val<'k>, at: Val<'k>) -> Pair<'k> {
        let (k, Some(source)) = (self.k, self.source) else {
            return (self.k.f32(0.0), self.k.f32(0.0));
        };
        let lane = source.at(&unflatten(lane, &self.outer), &self.strides[0]);
        let read = |at: Val<'k>| {
            let at = place(lane, &[k.as_index(at)], &self.along[..1]);
            source.buf.load_number(at)
        };
        let FftKind::HalfComplex { odd } = self.lanes.kind else { return pair(read(at)) };
        let mirrored = at * 2;
        let is_second = mirrored.gt(self.own);
        let (re, im) = pair(read(is_second.select(self.own - at, at)));
        let is_real = match odd {
            true => at.eq(0),
            false => at.eq(0) | mirrored.eq(self.own),
        };
        let im = is_real.select(0.0, is_second.select(-im, im));
        (re, im)
    }

    /// Stores the number at a place of a lane.
    fn store(&self, lane: Val<'k>, at: Val<'k>, value: Pair<'k>) {
        let k = self.k;
        let (plan_lane, columns, row) = self.split(lane);
        let wide = k.as_index(at);
        let Some(target) = self.target else {
            let Some(writes) = self.writes else { return };
            if self.is_last {
                // The place in the whole lane: columns are counted first.
                let at = self.gathered(&columns, wide);
                return writes.store_number(plan_lane * self.whole + at, number(value));
            }
            // Row `row` of column `at`, turned by both.
            let (rest, _) = lane.div_rem(&self.rows);
            let turn = (wide * row).convert(Ty::U32);
            let of = self.left.convert(Ty::U32);
            let turned = times(value, self.lanes.twiddle(k, self.plan, turn, of));
            let to = rest * self.left + wide * self.rows.size + row;
            return writes.store_number(to, number(turned));
        };
        let at = self.gathered(&columns, wide);
        let narrow = at.convert(Ty::U32);
        let mut value = value;
        let bits = |v: f32| k.size(i64::from(v.to_bits()), Ty::U32).bits(Ty::F32);
        let mut inside = None;
        let mut factor = self.lanes.factor;
        if matches!(self.plan.to, To::Convolved) {
            let is_own = narrow.lt(self.own);
            let chirp = self.lanes.chirp_at(k, is_own.select(narrow, 0));
            value = times((value.0, -value.1), chirp);
            factor /= self.plan.size as f32;
            inside = Some(is_own);
        }
        if self.lanes.kind == FftKind::Real {
            inside = Some((narrow * 2).le(self.own));
        }
        let factor = bits(factor);
        let value = (value.0 * factor, value.1 * factor);
        k.when_any(inside, || {
            let lane = target.at(&unflatten(plan_lane, &self.outer), &self.strides[1]);
            let to = place(lane, &[at], &self.along[1..]);
            let value = match self.lanes.kind {
                FftKind::HalfComplex { .. } => Number::Real(value.0),
                FftKind::Forward | FftKind::Inverse | FftKind::Real => number(value),
            };
            target.buf.store_number(to, value);
        });
    }

    /// The place in the whole lane of a place behind columns.
    fn gathered(&self, columns: &[Val<'k>], at: Val<'k>) -> Val<'k> {
        let both = columns.iter().zip(&self.columns).rev();
        both.fold(at, |at, (&column, size)| column + at * size.size)
    }
}

/// The numbers of a thread: lane, place in it, and whether there is such a number. Neighbouring threads
/// have neighbours of a lane, or numbers of neighbouring lanes.
fn elements<'k>(
    k: &'k Draft,
    [size, together]: [&Divisor<'k>; 2],
    [total, lanes]: [Val<'k>; 2],
    is_across: bool,
) -> Vec<(Val<'k>, Val<'k>, Val<'k>)> {
    let thread = k.thread();
    let one = |i: u32| {
        let at = thread + i * BLOCK;
        if is_across {
            let (place, lane) = at.div_rem(together);
            return (lane, place, place.lt(size.size) & lane.lt(lanes));
        }
        let (lane, place) = at.div_rem(size);
        (lane, place, at.lt(total))
    };
    (0..TILE as u32 / BLOCK).map(one).collect()
}

/// The butterflies of a thread for a factor.
fn butterflies(k: &Draft, radix: u32) -> impl Iterator<Item = Val<'_>> {
    let thread = k.thread();
    let count = (TILE as u32).div_ceil(radix).div_ceil(BLOCK);
    (0..count).map(move |slot| thread + slot * BLOCK)
}

fn pair(number: Number<'_>) -> Pair<'_> {
    match number {
        Number::Complex(re, im) => (re, im),
        Number::Real(re) => (re, re.like(0.0)),
    }
}

fn number<'k>((re, im): Pair<'k>) -> Number<'k> {
    Number::Complex(re, im)
}

fn times<'k>(a: Pair<'k>, b: Pair<'k>) -> Pair<'k> {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

fn plus<'k>(a: Pair<'k>, b: Pair<'k>) -> Pair<'k> {
    (a.0 + b.0, a.1 + b.1)
}

/// The transform of a few numbers.
fn small(x: Vec<Pair<'_>>, is_inverse: bool) -> Vec<Pair<'_>> {
    let n = x.len();
    if n == 1 {
        return x;
    }
    let angle = |j: usize| {
        let angle = std::f64::consts::TAU * (j % n) as f64 / n as f64;
        (angle.cos(), if is_inverse { angle.sin() } else { -angle.sin() })
    };
    if n.is_multiple_of(2) {
        let every =
            |from: usize| small(x.iter().skip(from).step_by(2).copied().collect(), is_inverse);
        let (even, odd) = (every(0), every(1));
        let turned: Vec<_> =
            odd.into_iter().enumerate().map(|(j, y)| by_constant(y, angle(j))).collect();
        let sums = even.iter().zip(&turned).map(|(&a, &b)| plus(a, b));
        let differences = even.iter().zip(&turned).map(|(&a, &b)| (a.0 - b.0, a.1 - b.1));
        return sums.chain(differences).collect();
    }
    (0..n)
        .map(|i| {
            let terms = (1..n).map(|j| by_constant(x[j], angle(i * j)));
            terms.fold(x[0], plus)
        })
        .collect()
}

/// A product with a number that is known; those with 1 and ±i cost nothing.
fn by_constant<'k>(x: Pair<'k>, (re, im): (f64, f64)) -> Pair<'k> {
    let is = |v: f64, of: f64| (v - of).abs() < 1e-12;
    if is(re, 1.0) {
        x
    } else if is(im, 1.0) {
        (-x.1, x.0)
    } else if is(im, -1.0) {
        (x.1, -x.0)
    } else {
        let (re, im) = (re as f32, im as f32);
        (x.0 * re - x.1 * im, x.0 * im + x.1 * re)
    }
}

/// Quotient and remainder of words below the size of a tile. Half a unit is more than what the product with
/// the reciprocal is off, and takes fewer instructions than a division.
fn parts<'k>(a: Val<'k>, by: Val<'k>) -> (Val<'k>, Val<'k>) {
    let one = by.convert(Ty::F32).like(1.0);
    let quotient = ((a.convert(Ty::F32) + 0.5) * (one / by.convert(Ty::F32))).convert(Ty::U32);
    (quotient, a - quotient * by)
}

/// exp(2πi·k/n) of words with k < n < 2²⁹: from an angle of at most an eighth of a turn, by the
/// polynomials of S. L. Moshier's Cephes library for sine and cosine, within a unit in the last place.
fn root<'k>(k: &'k Draft, at: Val<'k>, of: Val<'k>) -> Pair<'k> {
    // The nearest quarter of a turn, and what is left: −n/2 ≤ left ≤ n/2 of quarters.
    let quarters = at * 4;
    let whole = k.f32(1.0) / of.convert(Ty::F32);
    let quarter = (quarters.convert(Ty::F32) * whole + 0.5).convert(Ty::U32);
    let left = quarters.convert(Ty::I32) - (quarter * of).convert(Ty::I32);
    let share = left.convert(Ty::F32) * whole;
    let x = share * std::f32::consts::FRAC_PI_2;
    let z = x * x;
    let series = |c: [f32; 3]| z.fma(z.fma(k.f32(c[0]), k.f32(c[1])), k.f32(c[2]));
    let sin = (series([-1.951_529_6e-4, 8.332_161e-3, -0.166_666_55]) * z).fma(x, x);
    let cos = series([2.443_315_7e-5, -1.388_731_6e-3, 0.041_666_646]) * z * z - z * 0.5 + 1.0;
    let is_odd = (quarter & 1).ne(0);
    let (a, b) = (is_odd.select(sin, cos), is_odd.select(cos, sin));
    // Cosine is negative in the second and third quarter, sine in the third and fourth.
    let below = ((quarter + 1) & 2).ne(0);
    let turned = (quarter & 2).ne(0);
    (below.select(-a, a), turned.select(-b, b))
}
