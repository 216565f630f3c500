//! The elements of an axis in order, or the order itself.
//!
//! Lanes are sorted by the rank of their elements: long ones by radix, byte by byte from the
//! lowest, which is stable and reads and writes in streams; short ones by comparison.

use cupola_core::backend::Operand;
use cupola_core::prim::Sort;
use cupola_core::{Error, Result};

use super::contiguous::{Contiguous, Source};
use super::rank::{Bits, Order, by_order};
use super::{Finish, Io, OpKernel, by_size};
use crate::memory::HostMemory;
use crate::simd::Out;
use crate::threads::parallel_for;

/// Lanes from this length on are sorted by radix.
const RADIX: usize = 1 << 10;
/// Lanes from this length on are sorted by all threads together.
const SHARED: usize = 1 << 17;
/// The parts that a shared lane is cut into: not the number of threads, so that results do not
/// depend on it.
const PARTS: usize = 16;
/// Elements that are worth a chunk of their own.
const CHUNK: usize = 1 << 13;

/// A [`Sort`] that is ready to run.
pub struct SortKernel {
    x: Contiguous,
    order: Order,
    width: usize,
    indices: bool,
    /// Sizes before the axis, of the axis, and after it.
    sizes: [usize; 3],
}

impl SortKernel {
    /// Prepares for this input.
    pub fn new(sort: &Sort, x: &Operand) -> Result<Self> {
        let (shape, op) = (&x.aval.shape, sort.name());
        let order = Order::of(x.aval.dtype);
        let order = order.ok_or_else(|| Error::dtype(op, format!("does not take {}", x.aval)))?;
        let size = shape[sort.axis];
        if size > u32::MAX as usize {
            return Err(Error::shape(op, format!("axis {} of {} is too long", sort.axis, x.aval)));
        }
        Ok(SortKernel {
            x: Contiguous::new(x)?,
            order,
            width: x.aval.dtype.size(),
            indices: sort.indices,
            sizes: [
                shape[..sort.axis].iter().product(),
                size,
                shape[sort.axis + 1..].iter().product(),
            ],
        })
    }

    /// Sorts every lane as items of type `I`, made by `load`, ranked by `rank` and stored by
    /// `store`.
    ///
    /// # Safety
    /// The input has elements of `T`, the output as many of `O`.
    unsafe fn lanes<T: Bits, I: Item, O: Copy + Send + Sync>(
        &self,
        x: *const u8,
        out: *mut u8,
        load: impl Fn(T, usize) -> I + Copy + Sync,
        rank: impl Fn(&I) -> T + Copy + Sync,
        store: impl Fn(I) -> O + Copy + Sync,
    ) -> Result<()> {
        let [outer, size, inner] = self.sizes;
        let (x, lanes) = (Source(x.cast::<T>()), outer * inner);
        // SAFETY: the caller vouches for the output.
        let out = unsafe { Out::from_raw(out.cast::<O>(), lanes * size) };
        let start = move |lane: usize| lane / inner * size * inner + lane % inner;
        let read = move |lane: usize, i: usize| {
            // SAFETY: the element is inside the input.
            load(unsafe { *x.get().add(start(lane) + i * inner) }, i)
        };
        let write = move |lane: usize, i: usize, item: I| {
            let at = start(lane) + i * inner;
            // SAFETY: every lane has one writer at a time for each of its elements.
            unsafe { out.slice(at..at + 1)[0] = store(item) };
        };
        let what = "the items of a sort";
        if size >= SHARED && lanes < PARTS {
            let memory = HostMemory::new(2 * size * size_of::<I>(), what)?;
            let items = memory.as_ptr().cast::<I>();
            // SAFETY: the memory holds twice `size` items, which any bits are.
            let (a, b) =
                unsafe { (Out::from_raw(items, size), Out::from_raw(items.add(size), size)) };
            for lane in 0..lanes {
                shared(size, a, |i| read(lane, i));
                let sorted = radix(PARTS, a, b, rank);
                parallel_for(PARTS, |part| {
                    for i in bounds(size, part) {
                        // SAFETY: nobody writes the items now.
                        write(lane, i, unsafe { *sorted.as_ptr().add(i) });
                    }
                });
            }
            return Ok(());
        }
        let per = (CHUNK / size.max(1)).max(1);
        let chunks = lanes.div_ceil(per);
        let at_once = chunks.min(crate::threads::num_threads() * 4).max(1);
        let memory = HostMemory::new(at_once * 2 * size * size_of::<I>(), what)?;
        let items = Source(memory.as_ptr().cast_const().cast::<I>());
        parallel_for(at_once, |worker| {
            // SAFETY: every worker has its own part of the memory.
            let (a, b) = unsafe {
                let items = items.get().cast_mut().add(worker * 2 * size);
                (Out::from_raw(items, size), Out::from_raw(items.add(size), size))
            };
            for chunk in (worker..chunks).step_by(at_once) {
                for lane in chunk * per..((chunk + 1) * per).min(lanes) {
                    // SAFETY: nobody else has this part.
                    let slice = unsafe { a.slice(0..size) };
                    slice.iter_mut().enumerate().for_each(|(i, item)| *item = read(lane, i));
                    let sorted = if size < RADIX {
                        slice.sort_by_key(rank);
                        a
                    } else {
                        radix(1, a, b, rank)
                    };
                    // SAFETY: as above.
                    let sorted = unsafe { sorted.slice(0..size) };
                    sorted.iter().enumerate().for_each(|(i, &item)| write(lane, i, item));
                }
            }
        });
        Ok(())
    }
}

impl OpKernel for SortKernel {
    unsafe fn run(&self, io: &Io, finish: Finish<'_>) -> Result<()> {
        if self.sizes.contains(&0) {
            return Ok(());
        }
        // SAFETY: the caller vouches for the operands.
        let x = unsafe { self.x.dense(io.inputs[0])? };
        let (x, out) = (x.ptr::<u8>(), io.outputs[0]);
        by_size!(self.width, T => by_order!(self.order, T, rank => {
            // SAFETY: as above; `by_size` and `by_order` chose the type and the order.
            unsafe {
                if self.indices {
                    let load = |bits: T, i: usize| (rank(bits), i as u32);
                    self.lanes(x, out, load, |item| item.0, |(_, i): (T, u32)| i)
                } else {
                    // Not the ranks: they forget the sign of a zero and the bits of a NaN.
                    self.lanes(x, out, |bits: T, _| bits, |&bits| rank(bits), |bits: T| bits)
                }
            }
        }))?;
        finish.all();
        Ok(())
    }
}

/// What is sorted: plain bits, any pattern of which is a value.
trait Item: Copy + Send + Sync + 'static {}

impl<T: Bits> Item for T {}
impl<T: Bits> Item for (T, u32) {}

/// The part of `size` items with this number.
fn bounds(size: usize, part: usize) -> std::ops::Range<usize> {
    let per = size.div_ceil(PARTS);
    (part * per).min(size)..((part + 1) * per).min(size)
}

/// Fills `items` on all threads.
fn shared<I: Item>(size: usize, items: Out<'_, I>, item: impl Fn(usize) -> I + Sync) {
    parallel_for(PARTS, |part| {
        let range = bounds(size, part);
        // SAFETY: parts are disjoint.
        let out = unsafe { items.slice(range.clone()) };
        for (out, i) in out.iter_mut().zip(range) {
            *out = item(i);
        }
    });
}

/// Sorts `a` by rank, in `parts` parts at a time, with `b` to move through; gives the one of the
/// two that holds the result.
fn radix<'a, I: Item, T: Bits>(
    parts: usize,
    a: Out<'a, I>,
    b: Out<'a, I>,
    rank: impl Fn(&I) -> T + Copy + Sync,
) -> Out<'a, I> {
    let (mut from, mut to) = (a, b);
    let size = a.len();
    let bounds = |part| if parts == 1 { 0..size } else { bounds(size, part) };
    for byte in 0..size_of::<T>() {
        let mut counts = vec![[0usize; 256]; parts];
        let table = Out::new(&mut counts);
        parallel_for(parts, |part| {
            // SAFETY: each part has a table of its own; nobody writes the items.
            let (count, items) =
                unsafe { (&mut table.slice(part..part + 1)[0], items(from, bounds(part))) };
            for item in items {
                count[rank(item).byte(byte)] += 1;
            }
        });
        let whole = |digit: usize| counts.iter().map(|c| c[digit]).sum::<usize>() == size;
        // SAFETY: as above; a lane is not empty.
        let first = unsafe { items(from, 0..1)[0] };
        if whole(rank(&first).byte(byte)) {
            continue;
        }
        let mut next = 0;
        for digit in 0..256 {
            for count in &mut counts {
                next += std::mem::replace(&mut count[digit], next);
            }
        }
        let table = Out::new(&mut counts);
        parallel_for(parts, |part| {
            // SAFETY: as above.
            let (place, items) =
                unsafe { (&mut table.slice(part..part + 1)[0], items(from, bounds(part))) };
            for item in items {
                let place = &mut place[rank(item).byte(byte)];
                // SAFETY: the counts give every item of every part a place of its own.
                unsafe { to.as_ptr().add(*place).write(*item) };
                *place += 1;
            }
        });
        std::mem::swap(&mut from, &mut to);
    }
    from
}

/// # Safety
/// Nobody writes the range while the slice lives.
unsafe fn items<I>(items: Out<'_, I>, range: std::ops::Range<usize>) -> &[I] {
    // SAFETY: the caller vouches for the range.
    unsafe { &*(items.slice(range) as *const [I]) }
}
