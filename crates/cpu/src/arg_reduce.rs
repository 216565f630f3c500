//! Where an axis has its extreme value.

use cupola_core::backend::Operand;
use cupola_core::prim::ArgReduce;
use cupola_core::{Error, Result};
use cupola_simd::{Isa, Kernel, Out, dispatch};

use crate::contiguous::{Contiguous, Source};
use crate::op::{Finish, Io, OpKernel, by_size};
use crate::sort::rank::{Bits, Order, by_order};
use crate::threads::parallel_for;

/// Elements that one chunk looks at.
const CHUNK: usize = 1 << 15;
/// Elements of a lane whose greatest rank is found before where it is.
const BLOCK: usize = 512;
/// Neighbouring lanes that are walked together.
const LANES: usize = 64;

/// An [`ArgReduce`] that is ready to run.
pub struct ArgReduceKernel {
    x: Contiguous,
    order: Order,
    max: bool,
    width: usize,
    /// Sizes before the axis, of the axis, and after it.
    sizes: [usize; 3],
}

impl ArgReduceKernel {
    /// Prepares for this input.
    pub fn new(reduce: &ArgReduce, x: &Operand) -> Result<Self> {
        let (shape, op) = (&x.aval.shape, reduce.name());
        let order = Order::of(x.aval.dtype);
        let order = order.ok_or_else(|| Error::dtype(op, format!("does not take {}", x.aval)))?;
        let size = shape[reduce.axis];
        if size > u32::MAX as usize {
            return Err(Error::shape(
                op,
                format!("axis {} of {} is too long for uint32", reduce.axis, x.aval),
            ));
        }
        let outer = shape[..reduce.axis].iter().product();
        let inner = shape[reduce.axis + 1..].iter().product();
        Ok(ArgReduceKernel {
            x: Contiguous::new(x)?,
            order,
            max: reduce.max,
            width: x.aval.dtype.size(),
            sizes: [outer, size, inner],
        })
    }

    /// # Safety
    /// The elements have the bits `T` and are ranked by `rank`; `out` has one element a lane.
    unsafe fn find<T: Bits>(
        &self,
        x: *const u8,
        out: *mut u8,
        rank: impl Fn(T) -> T + Copy + Send + Sync,
    ) {
        let [outer, size, inner] = self.sizes;
        let x = Source(x.cast::<T>());
        // SAFETY: the caller vouches for the output.
        let out = unsafe { Out::from_raw(out.cast::<u32>(), outer * inner) };
        let isa = Isa::best();
        if inner == 1 {
            let per = (CHUNK / size.max(1)).max(1);
            parallel_for(outer.div_ceil(per), |chunk| {
                let range = chunk * per..((chunk + 1) * per).min(outer);
                // SAFETY: ranges are disjoint; the input has `size` elements a lane.
                let (out, x) = unsafe {
                    let x = x.get().add(range.start * size);
                    (out.slice(range.clone()), std::slice::from_raw_parts(x, range.len() * size))
                };
                dispatch(isa, Rows { x, out, size, rank });
            });
            return;
        }
        let blocks = inner.div_ceil(LANES);
        let per = (CHUNK / (size * LANES.min(inner)).max(1)).max(1);
        parallel_for((outer * blocks).div_ceil(per), |chunk| {
            for block in chunk * per..((chunk + 1) * per).min(outer * blocks) {
                let (o, first) = (block / blocks, block % blocks * LANES);
                let len = LANES.min(inner - first);
                // SAFETY: blocks of lanes are disjoint.
                let out = unsafe { out.slice(o * inner + first..o * inner + first + len) };
                // SAFETY: the input has `size * inner` elements for each `o`.
                let x = unsafe {
                    let from = x.get().add(o * size * inner + first);
                    std::slice::from_raw_parts(from, (size - 1) * inner + len)
                };
                dispatch(isa, Columns { x, out, inner, rank });
            }
        });
    }
}

impl OpKernel for ArgReduceKernel {
    fn own(&self) -> usize {
        Contiguous::own([&self.x])
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        let [outer, _, inner] = self.sizes;
        if outer * inner == 0 {
            return Ok(());
        }
        // SAFETY: the caller vouches for the operands.
        let x = unsafe { self.x.dense(io.inputs[0])? };
        let (x, out) = (x.ptr::<u8>(), io.outputs[0]);
        by_size!(self.width, T => by_order!(self.order, T, rank => {
            // The least element is the one whose rank, flipped, is greatest; but NaN stays first.
            let nan = if matches!(self.order, Order::Float(_)) { T::MAX } else { T::ZERO };
            let least = move |bits: T| {
                let rank = rank(bits);
                if nan == T::MAX && rank == nan { nan } else { rank.flip() }
            };
            // SAFETY: as above; `by_size` and `by_order` chose the type and the order.
            unsafe {
                if self.max { self.find(x, out, rank) } else { self.find(x, out, least) }
            }
        }));
        finish.all();
        Ok(())
    }
}

/// Lanes that follow each other.
struct Rows<'a, T, F> {
    x: &'a [T],
    out: &'a mut [u32],
    size: usize,
    rank: F,
}

impl<T: Bits, F: Fn(T) -> T + Copy> Kernel for Rows<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rank = self.rank;
        for (lane, out) in self.x.chunks_exact(self.size).zip(self.out) {
            let (mut best, mut place) = (rank(lane[0]), 0);
            for (i, block) in lane.chunks(BLOCK).enumerate() {
                let most = greatest(block, rank);
                if most > best {
                    (best, place) = (most, i * BLOCK);
                }
            }
            let first = lane[place..].iter().position(|&bits| rank(bits) == best);
            *out = (place + first.unwrap_or(0)) as u32;
        }
    }
}

/// The greatest rank of a block.
#[inline(always)]
fn greatest<T: Bits>(block: &[T], rank: impl Fn(T) -> T) -> T {
    let mut most = [T::ZERO; 32];
    let pieces = block.chunks_exact(most.len());
    let rest = pieces.remainder();
    for piece in pieces {
        for (most, &bits) in most.iter_mut().zip(piece) {
            let rank = rank(bits);
            *most = if rank > *most { rank } else { *most };
        }
    }
    let mut all = most.into_iter().fold(T::ZERO, T::max);
    for &bits in rest {
        all = all.max(rank(bits));
    }
    all
}

/// Lanes that lie side by side.
struct Columns<'a, T, F> {
    x: &'a [T],
    out: &'a mut [u32],
    inner: usize,
    rank: F,
}

impl<T: Bits, F: Fn(T) -> T + Copy> Kernel for Columns<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut best = [T::ZERO; LANES];
        let mut place = [0u32; LANES];
        let len = self.out.len();
        for (i, row) in self.x.chunks(self.inner).enumerate() {
            let lanes = best[..len].iter_mut().zip(&mut place[..len]);
            for ((best, place), &bits) in lanes.zip(&row[..len]) {
                let rank = (self.rank)(bits);
                let better = rank > *best;
                *best = if better { rank } else { *best };
                *place = if better { i as u32 } else { *place };
            }
        }
        self.out.copy_from_slice(&place[..len]);
    }
}
