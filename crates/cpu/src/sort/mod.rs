//! The elements of an axis in order, or the order itself.
//!
//! Lanes are sorted by the rank of their elements: long ones by radix, digit by digit from the
//! lowest, which is stable and reads in streams; short ones by comparison, with the place of each
//! element below its rank, so that no two are equal. Where few elements from one end of the order are
//! wanted, the others are not sorted.

pub(crate) mod rank;
mod select;

use std::ops::Range;

use cupola_core::backend::Body;
use cupola_core::backend::{Fails, Operand};
use cupola_core::prim::{Sort, SortPart};
use cupola_core::{Aval, DType, Error, Result, is_row_major};
use cupola_simd::Out;
use smallvec::SmallVec;

use self::rank::{Bits, Order, by_order};
use self::select::End;
use crate::contiguous::{Contiguous, Source};
use crate::map::{MapKernel, RawArgs};
use crate::memory::{HostMemory, filled};
use crate::op::{Finish, Io, OpKernel, by_size};
use crate::threads::{num_threads, parallel_for};

/// Lanes up to this length are sorted by comparison.
const SHORT: usize = 256;
/// Lanes from this length on are sorted by all threads together.
const SHARED: usize = 1 << 17;
/// The parts that a shared lane is cut into: not the number of threads, so that no result depends
/// on it.
const PARTS: usize = 16;
/// Elements that are worth a chunk of their own.
const CHUNK: usize = 1 << 13;
/// Up to this part of a lane is few.
const FEW: usize = 8;

/// A [`Sort`] that is ready to run.
pub struct SortKernel {
    /// The input with the axis last.
    x: Contiguous,
    /// Puts the axis back, where it was not last.
    back: Option<MapKernel>,
    order: Order,
    width: usize,
    indices: bool,
    part: SortPart,
    /// How many lanes, and how long they are.
    lanes: usize,
    size: usize,
    /// Which places of the order a lane of the result has.
    kept: Range<usize>,
}

/// Few elements from one end of the order.
#[derive(Clone, Copy)]
struct Few {
    end: End,
    count: usize,
}

impl SortKernel {
    /// Prepares for this input.
    pub fn new(sort: &Sort, x: &Operand) -> Result<Self> {
        let (Aval { shape, dtype }, op) = (&x.aval, sort.name());
        let order = Order::of(*dtype);
        let order = order.ok_or_else(|| Error::dtype(op, format!("does not take {}", x.aval)))?;
        let size = shape[sort.axis];
        if size > u32::MAX as usize {
            return Err(Error::shape(op, format!("axis {} of {} is too long", sort.axis, x.aval)));
        }
        let lanes: usize = shape.without(&[sort.axis]).size();
        let result = if sort.indices { DType::U32 } else { *dtype };
        let kept = match sort.part {
            SortPart::Whole | SortPart::Around(_) => 0..size,
            SortPart::Range { start, count } => start..start + count,
        };
        let shape = shape.with(sort.axis, kept.len());
        let output = Operand::contiguous(&Aval { shape, dtype: result });
        let moved = last(&output, sort.axis);
        let back = if is_row_major(&moved.aval.shape, &moved.strides) {
            None
        } else {
            let body = Body::copy(moved.aval.shape.clone(), result);
            Some(MapKernel::new(&body, &[Operand::contiguous(&moved.aval)], &[moved])?)
        };
        Ok(SortKernel {
            x: Contiguous::new(&last(x, sort.axis))?,
            back,
            order,
            width: dtype.size(),
            indices: sort.indices,
            part: sort.part,
            lanes,
            size,
            kept,
        })
    }

    /// What is wanted, if it is few elements from one end of the order.
    fn few(&self) -> Option<Few> {
        let (from, to) = match self.part {
            SortPart::Whole => return None,
            SortPart::Range { start, count } => (start, start + count),
            SortPart::Around(place) => (place, place + 1),
        };
        let (front, back) = (to, self.size - from);
        let end = if front <= back { End::Front } else { End::Back };
        let count = front.min(back);
        (count > 0 && count <= self.size / FEW).then_some(Few { end, count })
    }

    /// Calls `put` with the number of a lane, a place in its result, and the place of the element in the
    /// lane.
    ///
    /// # Safety
    /// `x` has the lanes' elements, of `T`.
    unsafe fn selected<T: Bits>(
        &self,
        x: *const u8,
        few: Few,
        rank: impl Fn(&T) -> T + Copy + Sync,
        put: impl Fn(usize, usize, usize) + Sync,
    ) -> Result<()> {
        let (size, x) = (self.size, Source(x.cast::<T>()));
        let Few { end, count } = few;
        // Every part of a shared lane has all that could be few of it.
        let shares = size >= SHARED && self.lanes < PARTS && count * PARTS <= size / FEW;
        let room = select::room(count);
        let keys = if shares { PARTS * room } else { room };
        self.each(keys * size_of::<T::Numbered>(), |i, parts, scratch| {
            // SAFETY: the lane is inside the input.
            let lane = unsafe { std::slice::from_raw_parts(x.get().add(i * size), size) };
            // SAFETY: `each` gives as many bytes, aligned for any integer; any bits are a value.
            let keys = unsafe { Out::from_raw(scratch.cast::<T::Numbered>(), keys) };
            let keys = match shares && parts == PARTS {
                true => {
                    parallel_for(PARTS, |part| {
                        let range = bounds(size, PARTS, part);
                        // SAFETY: each part has keys of its own.
                        let keys = unsafe { keys.slice(part * room..(part + 1) * room) };
                        select::first(&lane[range.clone()], range.start, count, end, keys, rank);
                    });
                    // SAFETY: nobody else uses the keys now.
                    let keys = unsafe { keys.slice(0..PARTS * room) };
                    for part in 1..PARTS {
                        keys.copy_within(part * room..part * room + count, part * count);
                    }
                    keys[..PARTS * count].select_nth_unstable(count - 1);
                    &mut keys[..count]
                }
                false => {
                    // SAFETY: nobody else uses the keys.
                    let keys = unsafe { keys.slice(0..room) };
                    select::first(lane, 0, count, end, keys, rank);
                    &mut keys[..count]
                }
            };
            keys.sort_unstable();
            self.put_selected(lane, few, keys, rank, |at, place| put(i, at, place));
        })
    }

    /// Calls `put` with places in the result and in the lane: the first keys, and for a partition the
    /// others beside them, as they came.
    fn put_selected<T: Bits>(
        &self,
        lane: &[T],
        Few { end, count }: Few,
        keys: &[T::Numbered],
        rank: impl Fn(&T) -> T,
        put: impl Fn(usize, usize),
    ) {
        let place_of = |at: usize| match end {
            End::Front => at,
            End::Back => self.size - 1 - at,
        };
        for (at, &key) in keys.iter().enumerate() {
            let at = place_of(at);
            if self.kept.contains(&at) {
                put(at - self.kept.start, end.place::<T>(key));
            }
        }
        if let (SortPart::Around(_), Some(&last)) = (self.part, keys.last()) {
            let mut at = if end == End::Front { count } else { 0 };
            for (place, x) in lane.iter().enumerate() {
                if end.key(rank(x), place as u32) > last {
                    put(at, place);
                    at += 1;
                }
            }
        }
    }

    /// Calls `lane` with the number of each lane, how many parts it is to be sorted in, and
    /// `scratch` bytes that are its own meanwhile.
    fn each(&self, scratch: usize, lane: impl Fn(usize, usize, *mut u8) + Sync) -> Result<()> {
        let what = "the other half of a sort";
        if self.size >= SHARED && self.lanes < PARTS {
            let memory = HostMemory::new(scratch, what)?;
            (0..self.lanes).for_each(|i| lane(i, PARTS, memory.as_ptr()));
            return Ok(());
        }
        let per = (CHUNK / self.size).max(1);
        let chunks = self.lanes.div_ceil(per);
        let workers = chunks.min(num_threads() * 4);
        let scratch = scratch.next_multiple_of(64);
        let memory = HostMemory::new(workers * scratch, what)?;
        let memory = Source(memory.as_ptr().cast_const());
        parallel_for(workers, |worker| {
            let own = memory.get().wrapping_add(worker * scratch).cast_mut();
            for chunk in (worker..chunks).step_by(workers) {
                for i in chunk * per..((chunk + 1) * per).min(self.lanes) {
                    lane(i, 1, own);
                }
            }
        });
        Ok(())
    }

    /// # Safety
    /// `x` and `out` have the lanes' elements, of `T`.
    unsafe fn values<T: Bits>(
        &self,
        x: *const u8,
        out: *mut u8,
        rank: impl Fn(&T) -> T + Copy + Sync,
    ) -> Result<()> {
        let (size, kept) = (self.size, self.kept.len());
        let from = Source(x.cast::<T>());
        // SAFETY: the caller vouches for the output.
        let out = unsafe { Out::from_raw(out.cast::<T>(), self.lanes * kept) };
        if let Some(few) = self.few() {
            // SAFETY: as above; every place is written once.
            return unsafe {
                self.selected(x, few, rank, |i, at, place| {
                    out.as_ptr().add(i * kept + at).write(*from.get().add(i * size + place));
                })
            };
        }
        let whole = kept == size;
        let halves = if whole { 1 } else { 2 };
        let half = (size * size_of::<T>()).next_multiple_of(64);
        let scratch = if size > SHORT { halves * half } else { 0 };
        self.each(scratch, |i, parts, scratch| {
            // SAFETY: each lane is sorted once, and inside input and output.
            let (from, to) = unsafe {
                let from = std::slice::from_raw_parts(from.get().add(i * size), size);
                (from, out.slice(i * kept..(i + 1) * kept))
            };
            if size <= SHORT {
                by_comparison(from, rank, |j, place| {
                    if self.kept.contains(&j) {
                        to[j - self.kept.start] = from[place];
                    }
                });
                return;
            }
            let to = Out::new(to);
            // SAFETY: `each` gives as many bytes, aligned for any element.
            let other = unsafe { Out::from_raw(scratch.cast::<T>(), size) };
            let own = match whole {
                true => to,
                // SAFETY: as above.
                false => unsafe { Out::from_raw(scratch.add(half).cast::<T>(), size) },
            };
            // SAFETY: all three have `size` items, and nobody else uses them.
            let sorted = unsafe { radix(parts, from.as_ptr(), own, other, rank) };
            if sorted != to.as_ptr().cast_const() {
                let sorted = Source(sorted);
                parallel_for(parts, |part| {
                    let range = bounds(kept, parts, part);
                    // SAFETY: parts are disjoint, and the sorted items are elsewhere.
                    unsafe {
                        let from = sorted.get().add(self.kept.start + range.start);
                        let from = std::slice::from_raw_parts(from, range.len());
                        to.slice(range).copy_from_slice(from);
                    }
                });
            }
        })
    }

    /// # Safety
    /// `x` has the lanes' elements, of `T`; `out` as many of `u32`.
    unsafe fn places<T: Bits>(
        &self,
        x: *const u8,
        out: *mut u8,
        rank: impl Fn(&T) -> T + Copy + Sync,
    ) -> Result<()> {
        let (size, kept) = (self.size, self.kept.len());
        // SAFETY: the caller vouches for the output.
        let out = unsafe { Out::from_raw(out.cast::<u32>(), self.lanes * kept) };
        if let Some(few) = self.few() {
            // SAFETY: as above; every place is written once.
            return unsafe {
                self.selected(x, few, rank, |i, at, place| {
                    out.as_ptr().add(i * kept + at).write(place as u32);
                })
            };
        }
        let x = Source(x.cast::<T>());
        let half = (size * size_of::<(T, u32)>()).next_multiple_of(64);
        let scratch = if size > SHORT { 2 * half } else { 0 };
        self.each(scratch, |i, parts, scratch| {
            // SAFETY: each lane is sorted once, and inside input and output.
            let (from, to) = unsafe {
                let from = std::slice::from_raw_parts(x.get().add(i * size), size);
                (from, out.slice(i * kept..(i + 1) * kept))
            };
            if size <= SHORT {
                by_comparison(from, rank, |j, place| {
                    if self.kept.contains(&j) {
                        to[j - self.kept.start] = place as u32;
                    }
                });
                return;
            }
            let to = Out::new(to);
            // SAFETY: `each` gives as many bytes; any bits are a value of integers.
            let (a, b) = unsafe {
                let b = scratch.add(half).cast::<(T, u32)>();
                (Out::from_raw(scratch.cast::<(T, u32)>(), size), Out::from_raw(b, size))
            };
            parallel_for(parts, |part| {
                let range = bounds(size, parts, part);
                // SAFETY: parts are disjoint.
                let a = unsafe { a.slice(range.clone()) };
                for (item, i) in a.iter_mut().zip(range) {
                    *item = (rank(&from[i]), i as u32);
                }
            });
            // SAFETY: all three have `size` items, and nobody else uses them.
            let sorted = unsafe { radix(parts, a.as_ptr(), b, a, |item: &(T, u32)| item.0) };
            let sorted = Source(sorted);
            parallel_for(parts, |part| {
                let range = bounds(kept, parts, part);
                // SAFETY: parts are disjoint, and nobody writes the items now.
                unsafe {
                    for (to, i) in to.slice(range.clone()).iter_mut().zip(range) {
                        *to = (*sorted.get().add(self.kept.start + i)).1;
                    }
                }
            });
        })
    }
}

impl OpKernel for SortKernel {
    /// Where there is no memory to sort in.
    fn fails(&self) -> Fails {
        Fails::Anywhere
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        let count = self.lanes * self.kept.len();
        if count == 0 {
            return Ok(());
        }
        // SAFETY: the caller vouches for the operands.
        let x = unsafe { self.x.dense(io.inputs[0])? };
        let width = if self.indices { size_of::<u32>() } else { self.width };
        let space = match self.back {
            Some(_) => Some(HostMemory::new(count * width, "a sorted copy")?),
            None => None,
        };
        let (x, out) = (x.ptr(), space.as_ref().map_or(io.outputs[0], HostMemory::as_ptr));
        by_size!(self.width, T => by_order!(self.order, T, rank => {
            let rank = |bits: &T| rank(*bits);
            // SAFETY: as above; `by_size` and `by_order` chose the type and the order.
            unsafe {
                if self.indices { self.places(x, out, rank) } else { self.values(x, out, rank) }
            }
        }))?;
        if let Some(back) = &self.back {
            let (inputs, outputs) = (&[out.cast_const()], &[io.outputs[0]]);
            // SAFETY: as above; the copy is somewhere else.
            unsafe { back.run(&RawArgs { inputs, outputs, scalars: &[] }) };
        }
        finish.all();
        Ok(())
    }
}

/// The operand with `axis` moved to the end.
fn last(operand: &Operand, axis: usize) -> Operand {
    let mut moved = operand.clone();
    moved.aval.shape.0[axis..].rotate_left(1);
    moved.strides[axis..].rotate_left(1);
    moved
}

/// Calls `put` for every place in the order, with the place of the element that comes there.
#[inline(always)]
fn by_comparison<T: Bits>(lane: &[T], rank: impl Fn(&T) -> T, mut put: impl FnMut(usize, usize)) {
    let mut keys: SmallVec<[T::Numbered; SHORT]> = SmallVec::new();
    keys.extend(lane.iter().enumerate().map(|(i, bits)| rank(bits).above(i as u32)));
    keys.sort_unstable();
    for (i, key) in keys.iter().enumerate() {
        put(i, T::below(*key) as usize);
    }
}

/// One of `parts` parts of `size` items.
fn bounds(size: usize, parts: usize, part: usize) -> Range<usize> {
    let per = size.div_ceil(parts);
    (part * per).min(size)..((part + 1) * per).min(size)
}

/// Sorts the items at `source` by rank through `a` and `b`, of which `b` may be where they are;
/// gives where the result is: one of the three.
///
/// # Safety
/// As many items as `a` and `b` have can be read from `source`, and nobody else uses any of them.
unsafe fn radix<I: Copy + Send + Sync, T: Bits>(
    parts: usize,
    source: *const I,
    a: Out<'_, I>,
    b: Out<'_, I>,
    rank: impl Fn(&I) -> T + Copy + Sync,
) -> *const I {
    let size = a.len();
    // More buckets make fewer passes, and cost more where there are few items.
    let bits = if size < 1 << 16 { 8 } else { 11 };
    let (buckets, width) = (1usize << bits, 8 * size_of::<T>() as u32);
    let mut counts = filled(0u32, parts * buckets);
    let mut from = Source(source);
    let (mut to, mut other) = (a, b);
    let read = |from: Source<I>, part: usize| {
        let range = bounds(size, parts, part);
        // SAFETY: the range is inside the items, which nobody writes during a pass.
        unsafe { std::slice::from_raw_parts(from.get().add(range.start), range.len()) }
    };
    for shift in (0..width).step_by(bits) {
        let digit = |item: &I| rank(item).digit(shift, buckets - 1);
        counts.fill(0);
        let table = Out::new(&mut counts);
        parallel_for(parts, |part| {
            // SAFETY: each part has a table of its own.
            let counts = unsafe { table.slice(part * buckets..(part + 1) * buckets) };
            for item in read(from, part) {
                counts[digit(item)] += 1;
            }
        });
        let first = digit(&read(from, 0)[0]);
        let same: usize = counts.iter().skip(first).step_by(buckets).map(|&c| c as usize).sum();
        if same == size {
            continue;
        }
        let mut next = 0;
        for digit in 0..buckets {
            for count in counts.iter_mut().skip(digit).step_by(buckets) {
                next += std::mem::replace(count, next);
            }
        }
        let table = Out::new(&mut counts);
        parallel_for(parts, |part| {
            // SAFETY: as above.
            let places = unsafe { table.slice(part * buckets..(part + 1) * buckets) };
            for item in read(from, part) {
                let place = &mut places[digit(item)];
                // SAFETY: the counts give every item of every part a place of its own.
                unsafe { to.as_ptr().add(*place as usize).write(*item) };
                *place += 1;
            }
        });
        from = Source(to.as_ptr().cast_const());
        std::mem::swap(&mut to, &mut other);
    }
    from.get()
}
