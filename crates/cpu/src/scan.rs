//! An axis folded up to each of its elements.
//!
//! Lanes that lie side by side are folded row by row, all together. Lanes that follow each other go
//! tile by tile: a tile is cut into streams that are folded at the same time, and what came before
//! a stream is joined to it afterwards. A long lane is cut into parts, which threads take in their
//! order: each finds its part's total, many elements side by side, hands what came before it and the total on to the next part,
//! and folds the part while it is in its cache. Where a lane is cut depends on its length alone, and
//! so do the results.
//!
//! A sum or product of floats of what lies between may overflow, or a product vanish, where that from the start
//! does not ([`Join::lost`]). Such a tile is folded in order, and so is a long lane with one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cupola_core::backend::Operand;
use cupola_core::prim::{Scan, ScanKind};
use cupola_core::{DType, Error, Result};
use cupola_simd::half::{c32_to_c64, c64_to_c32};
use cupola_simd::{Isa, Kernel, Out, dispatch};
use half::{bf16, f16};
use num_complex::{Complex, Complex32};

use crate::contiguous::{Contiguous, Source};
use crate::math;
use crate::op::{Finish, Io, OpKernel};
use crate::threads::parallel_for;

/// Elements that one chunk of short lanes holds.
const CHUNK: usize = 1 << 15;
/// Neighbouring lanes that are walked together.
const LANES: usize = 64;
/// Streams that a tile is cut into.
const STREAMS: usize = 8;
/// Elements of a tile.
const TILE: usize = 1024;
/// Totals of a part that are taken side by side.
const TOTALS: usize = 64;
/// Lanes from this length on are cut into parts of [`CHUNK`] elements.
const LONG: usize = 1 << 17;

/// A [`Scan`] that is ready to run.
pub struct ScanKernel {
    x: Contiguous,
    scan: Scan,
    dtype: DType,
    /// Sizes before the axis, of the axis, and after it.
    sizes: [usize; 3],
}

impl ScanKernel {
    /// Prepares for this input.
    pub fn new(scan: &Scan, x: &Operand) -> Result<Self> {
        let shape = &x.aval.shape;
        if !scan.kind.takes(x.aval.dtype) {
            return Err(Error::dtype(scan.kind.name(), format!("does not take {}", x.aval)));
        }
        let outer = shape[..scan.axis].iter().product();
        let inner = shape[scan.axis + 1..].iter().product();
        Ok(ScanKernel {
            x: Contiguous::new(x)?,
            scan: *scan,
            dtype: x.aval.dtype,
            sizes: [outer, shape[scan.axis], inner],
        })
    }

    /// # Safety
    /// As for [`ScanKernel::fold`].
    unsafe fn complex<T: Held<Wide = Complex32>>(&self, x: *const u8, out: *mut u8) {
        // SAFETY: the caller vouches for the elements.
        unsafe {
            match self.scan.kind {
                ScanKind::Prod => self.fold::<T, _>(x, out, Prod),
                _ => self.fold::<T, _>(x, out, Sum),
            }
        }
    }

    /// # Safety
    /// `x` has the elements, of `T`, and as many can be written to `out`, which is elsewhere.
    unsafe fn fold<T: Held, J: Join<T::Wide>>(&self, x: *const u8, out: *mut u8, join: J) {
        let [outer, size, inner] = self.sizes;
        let Scan { reverse, exclusive, .. } = self.scan;
        let x = Source(x.cast::<T>());
        // SAFETY: the caller vouches for the output.
        let out = unsafe { Out::from_raw(out.cast::<T>(), outer * size * inner) };
        let isa = Isa::best();
        let lane = |start: usize, len: usize| {
            // SAFETY: the lanes' parts are disjoint and inside input and output.
            let (x, out) = unsafe {
                let x = std::slice::from_raw_parts(x.get().add(start), len);
                (x, out.slice(start..start + len))
            };
            Lane::<T, J> { x, out: Some(out), reverse, exclusive, carry: join.first(), join }
        };
        if inner == 1 && size >= LONG && !J::IN_ORDER {
            for o in 0..outer {
                let parts = size.div_ceil(CHUNK);
                let range = |part: usize| {
                    let start = if reverse { parts - 1 - part } else { part } * CHUNK;
                    (o * size + start, CHUNK.min(size - start))
                };
                let (next, before) = (AtomicUsize::new(0), Befores::new(parts, join.first()));
                let lost = AtomicBool::new(false);
                parallel_for(parts, |_| {
                    // In their order, so that the parts before one are never left waiting.
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    let (start, len) = range(part);
                    let own = dispatch(isa, Total(Lane { out: None, ..lane(start, len) }));
                    let carry = before.get(part);
                    let total = join.join(carry, own.total);
                    before.set(part + 1, total);
                    let end = dispatch(isa, Lane { carry, ..lane(start, len) });
                    if own.lost || end.lost || join.lost(carry, own.total, total) {
                        lost.store(true, Ordering::Relaxed);
                    }
                });
                if lost.into_inner() {
                    dispatch(isa, lane(o * size, size));
                }
            }
        } else if inner == 1 {
            let per = (CHUNK / size).max(1);
            parallel_for(outer.div_ceil(per), |chunk| {
                for o in chunk * per..((chunk + 1) * per).min(outer) {
                    dispatch(isa, lane(o * size, size));
                }
            });
        } else {
            let blocks = inner.div_ceil(LANES);
            let per = (CHUNK / (size * LANES.min(inner))).max(1);
            parallel_for((outer * blocks).div_ceil(per), |chunk| {
                for block in chunk * per..((chunk + 1) * per).min(outer * blocks) {
                    let (o, at) = (block / blocks, block % blocks * LANES);
                    let row = |i: usize| (o * size + i) * inner + at;
                    let len = LANES.min(inner - at);
                    dispatch(isa, Columns { x, out, row, size, len, reverse, exclusive, join });
                }
            });
        }
    }
}

impl OpKernel for ScanKernel {
    fn own(&self) -> usize {
        Contiguous::own([&self.x])
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        if self.sizes.contains(&0) {
            return Ok(());
        }
        // SAFETY: the caller vouches for the operands.
        let x = unsafe { self.x.dense(io.inputs[0])? };
        let (x, out) = (x.ptr::<u8>(), io.outputs[0]);
        macro_rules! integer {
            ($($dtype:ident: $t:ty),*; $($float:ident: $f:ty, $wide:ty, $logaddexp:expr),*) => {
                match self.dtype {
                    // Bools are bytes of 0 and 1.
                    DType::Bool => match self.scan.kind {
                        // SAFETY: as above; the dtype says what the elements are.
                        ScanKind::Max => unsafe { self.fold::<u8, _>(x, out, Exact(0, u8::max)) },
                        // SAFETY: as above.
                        _ => unsafe { self.fold::<u8, _>(x, out, Exact(1, u8::min)) },
                    },
                    $(DType::$dtype => match self.scan.kind {
                        // SAFETY: as above.
                        ScanKind::Sum => unsafe { self.fold::<$t, _>(x, out, Exact(0, <$t>::wrapping_add)) },
                        // SAFETY: as above.
                        ScanKind::Prod => unsafe { self.fold::<$t, _>(x, out, Exact(1, <$t>::wrapping_mul)) },
                        // SAFETY: as above.
                        ScanKind::Min => unsafe { self.fold::<$t, _>(x, out, Exact(<$t>::MAX, |a: $t, b: $t| a.min(b))) },
                        // SAFETY: as above.
                        _ => unsafe { self.fold::<$t, _>(x, out, Exact(<$t>::MIN, |a: $t, b: $t| a.max(b))) },
                    },)*
                    $(DType::$float => match self.scan.kind {
                        // SAFETY: as above.
                        ScanKind::Sum => unsafe { self.fold::<$f, _>(x, out, Sum) },
                        // SAFETY: as above.
                        ScanKind::Prod => unsafe { self.fold::<$f, _>(x, out, Prod) },
                        // SAFETY: as above.
                        ScanKind::Max => unsafe {
                            let larger = |a: $wide, b: $wide| if a >= b || a.is_nan() { a } else { b };
                            self.fold::<$f, _>(x, out, Exact(<$wide>::NEG_INFINITY, larger));
                        },
                        // SAFETY: as above.
                        ScanKind::Min => unsafe {
                            let smaller = |a: $wide, b: $wide| if a <= b || a.is_nan() { a } else { b };
                            self.fold::<$f, _>(x, out, Exact(<$wide>::INFINITY, smaller));
                        },
                        // SAFETY: as above.
                        ScanKind::LogAddExp => unsafe {
                            self.fold::<$f, _>(x, out, Exact(<$wide>::NEG_INFINITY, $logaddexp));
                        },
                    },)*
                    // SAFETY: as above.
                    DType::C32 => unsafe { self.complex::<Complex<f16>>(x, out) },
                    // SAFETY: as above.
                    DType::C64 => unsafe { self.complex::<Complex32>(x, out) },
                }
            };
        }
        integer! {
            U8: u8, U16: u16, U32: u32, U64: u64, I8: i8, I16: i16, I32: i32, I64: i64;
            F16: f16, f32, single, BF16: bf16, f32, single, F32: f32, f32, single,
            F64: f64, f64, math::logaddexp_f64
        }
        finish.all();
        Ok(())
    }
}

/// What comes before each part of a lane, known one after the other.
struct Befores<W>(Vec<OnceLock<W>>);

impl<W: Copy> Befores<W> {
    /// Nothing comes before the first of so many parts.
    fn new(parts: usize, first: W) -> Self {
        let all = Befores((0..=parts).map(|_| OnceLock::new()).collect());
        all.set(0, first);
        all
    }

    fn set(&self, part: usize, value: W) {
        self.0[part].get_or_init(|| value);
    }

    /// Waits for the thread that has the part before.
    fn get(&self, part: usize) -> W {
        let mut spins = 0u32;
        loop {
            if let Some(&value) = self.0[part].get() {
                return value;
            }
            spins += 1;
            if spins < 1000 {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}

fn single(a: f32, b: f32) -> f32 {
    math::logaddexp::<crate::map::Portable>(a, b)
}

/// How two neighbours are joined.
trait Join<W>: Copy + Send + Sync {
    /// Whether only a fold from the start to the end is right.
    const IN_ORDER: bool = false;
    /// Whether neighbours and others may be joined alike, and what is lost shows in the end.
    const IN_ANY_ORDER: bool = true;
    /// What changes nothing.
    fn first(self) -> W;
    fn join(self, a: W, b: W) -> W;
    /// Whether `joined`, of `a` and `b`, may not be what a fold in order comes to.
    fn lost(self, a: W, b: W, joined: W) -> bool;
    /// What is kept of numbers to tell whether some may come of such.
    type Seen: Copy;
    const UNSEEN: Self::Seen;
    /// A number that was joined apart, and what it came to with what was before.
    fn see(self, seen: Self::Seen, own: W, value: W) -> Self::Seen;
    fn may_be_lost(self, seen: Self::Seen) -> bool;
}

/// Neighbours that may be joined in any groups, from what changes nothing on.
#[derive(Clone, Copy)]
struct Exact<W, F>(W, F);

impl<W: Copy + Send + Sync, F: Fn(W, W) -> W + Copy + Send + Sync> Join<W> for Exact<W, F> {
    /// Of two zeros the larger is the first.
    const IN_ANY_ORDER: bool = false;
    #[inline(always)]
    fn first(self) -> W {
        self.0
    }
    #[inline(always)]
    fn join(self, a: W, b: W) -> W {
        self.1(a, b)
    }
    #[inline(always)]
    fn lost(self, _: W, _: W, _: W) -> bool {
        false
    }
    type Seen = ();
    const UNSEEN: () = ();
    #[inline(always)]
    fn see(self, _: (), _: W, _: W) {}
    #[inline(always)]
    fn may_be_lost(self, _: ()) -> bool {
        false
    }
}

/// Sums of floats and complex numbers.
#[derive(Clone, Copy)]
struct Sum;

/// Products of these.
#[derive(Clone, Copy)]
struct Prod;

macro_rules! joins {
    ($($t:ty, $one:expr, $float:ty, $in_order:expr, |$x:ident| $size:expr;)*) => {$(
        impl Join<$t> for Sum {
            #[inline(always)]
            fn first(self) -> $t {
                <$t>::default()
            }
            #[inline(always)]
            fn join(self, a: $t, b: $t) -> $t {
                a + b
            }
            /// An overflow.
            #[inline(always)]
            fn lost(self, a: $t, b: $t, joined: $t) -> bool {
                let finite = |$x: $t| $size.is_finite();
                !finite(joined) & finite(a) & finite(b)
            }
            /// The largest size: nothing makes what is not finite finite.
            type Seen = <$t as Magnitude>::Bits;
            const UNSEEN: Self::Seen = 0;
            #[inline(always)]
            fn see(self, seen: Self::Seen, _: $t, value: $t) -> Self::Seen {
                seen.max(value.bits())
            }
            #[inline(always)]
            fn may_be_lost(self, seen: Self::Seen) -> bool {
                seen >= <$float>::INFINITY.to_bits()
            }
        }
        impl Join<$t> for Prod {
            const IN_ORDER: bool = $in_order;
            const IN_ANY_ORDER: bool = false;
            #[inline(always)]
            fn first(self) -> $t {
                $one
            }
            #[inline(always)]
            fn join(self, a: $t, b: $t) -> $t {
                a * b
            }
            /// An overflow, or digits of a small product of what is not 0.
            #[inline(always)]
            fn lost(self, a: $t, b: $t, joined: $t) -> bool {
                let zero = <$t>::default();
                let small = |$x: $t| $size < <$float>::MIN_POSITIVE;
                Sum.lost(a, b, joined) | (small(joined) & (a != zero) & (b != zero))
            }
            /// The largest size, counted from the least that has all its digits on: smaller ones are beyond all others.
            type Seen = <$t as Magnitude>::Bits;
            const UNSEEN: Self::Seen = 0;
            #[inline(always)]
            fn see(self, seen: Self::Seen, own: $t, value: $t) -> Self::Seen {
                let from = |x: $t| x.bits().wrapping_sub(<$float>::MIN_POSITIVE.to_bits());
                seen.max(from(own)).max(from(value))
            }
            #[inline(always)]
            fn may_be_lost(self, seen: Self::Seen) -> bool {
                seen >= <$float>::INFINITY.to_bits() - <$float>::MIN_POSITIVE.to_bits()
            }
        }
    )*};
}

joins! {
    f32, 1.0, f32, false, |x| x.abs();
    f64, 1.0, f64, false, |x| x.abs();
    // Their products with 1 are not themselves where they are infinite, and of zeros of other signs.
    Complex32, Complex32::new(1.0, 0.0), f32, true, |x| (x.re.abs() + x.im.abs());
}

/// What has a size, of whose bits the order is that of sizes.
trait Magnitude: Copy {
    type Bits: Copy + Ord;
    fn bits(self) -> Self::Bits;
}

macro_rules! magnitudes {
    ($($t:ty: $bits:ty, |$x:ident| $size:expr;)*) => {$(
        impl Magnitude for $t {
            type Bits = $bits;
            #[inline(always)]
            fn bits(self) -> $bits {
                let $x = self;
                $size.to_bits()
            }
        }
    )*};
}

magnitudes! {
    f32: u32, |x| x.abs();
    f64: u64, |x| x.abs();
    Complex32: u32, |x| (x.re.abs() + x.im.abs());
}

/// An element, and what it is folded in.
trait Held: Copy + Send + Sync {
    type Wide: Copy + Send + Sync;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
}

macro_rules! held {
    ($($t:ty: $wide:ty, |$x:ident| $widen:expr, |$y:ident| $narrow:expr;)*) => {$(
        impl Held for $t {
            type Wide = $wide;
            #[inline(always)]
            fn widen(self) -> $wide {
                let $x = self;
                $widen
            }
            #[inline(always)]
            fn narrow($y: $wide) -> $t {
                $narrow
            }
        }
    )*};
    ($($t:ty)*) => {
        held! { $($t: $t, |x| x, |y| y;)* }
    };
}

held! { u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 Complex32 }
held! {
    f16: f32, |x| x.to_f32(), |y| f16::from_f32(y);
    bf16: f32, |x| x.to_f32(), |y| bf16::from_f32(y);
    Complex<f16>: Complex32, |x| c32_to_c64(x), |y| c64_to_c32(y);
}

/// A lane, or a part of one.
struct Lane<'a, T: Held, J> {
    x: &'a [T],
    /// `None` where only the total is wanted.
    out: Option<&'a mut [T]>,
    reverse: bool,
    exclusive: bool,
    /// What came before.
    carry: T::Wide,
    join: J,
}

/// What a lane, or a part of one, came to.
struct End<W> {
    total: W,
    /// Whether what was folded by itself was no part of a fold in order somewhere.
    lost: bool,
}

impl<T: Held, J: Join<T::Wide>> Lane<'_, T, J> {
    #[inline(always)]
    fn place(&self, i: usize) -> usize {
        if self.reverse { self.x.len() - 1 - i } else { i }
    }

    #[inline(always)]
    fn put(&mut self, i: usize, value: T::Wide) {
        let place = self.place(i);
        if let Some(out) = &mut self.out {
            out[place] = T::narrow(value);
        }
    }

    /// Folds these places one after the other, and gives whether something is lost of what came before. The first
    /// element of a lane that is only folded so is joined with nothing.
    #[inline(always)]
    fn in_order(&mut self, start: usize, len: usize) -> bool {
        let mut lost = false;
        for i in start..start + len {
            let x = self.x[self.place(i)].widen();
            let before = self.carry;
            let is_first = J::IN_ORDER && i == 0;
            self.carry = if is_first { x } else { self.join.join(before, x) };
            lost |= self.join.lost(before, x, self.carry);
            self.put(i, if self.exclusive { before } else { self.carry });
        }
        lost
    }

    /// Folds a tile into `tile`, each stream from nothing on, and gives the streams' totals.
    #[inline(always)]
    fn streams(&self, start: usize, len: usize, tile: &mut [T::Wide]) -> [T::Wide; STREAMS] {
        let (join, stream) = (self.join, len.div_ceil(STREAMS));
        let mut totals = [join.first(); STREAMS];
        let mut step = |at: usize, total: &mut T::Wide| {
            let joined = join.join(*total, self.x[self.place(start + at)].widen());
            tile[at] = if self.exclusive { *total } else { joined };
            *total = joined;
        };
        if len == TILE {
            // Whole streams together: their chains of joins do not wait for each other.
            for i in 0..stream {
                for (s, total) in totals.iter_mut().enumerate() {
                    step(s * stream + i, total);
                }
            }
        } else {
            for at in 0..len {
                step(at, &mut totals[at / stream]);
            }
        }
        totals
    }

    /// Joins what came before to the streams of a tile, and gives whether nothing can be lost; else the tile is still to
    /// be folded.
    #[inline(always)]
    fn joined(&mut self, start: usize, tile: &[T::Wide], totals: [T::Wide; STREAMS]) -> bool {
        let (join, stream, size) = (self.join, tile.len().div_ceil(STREAMS), self.x.len());
        let (mut carry, mut seen, mut from) = (self.carry, J::UNSEEN, start);
        for (part, total) in tile.chunks(stream).zip(totals) {
            let to = from + part.len();
            let mut put = |out: &mut T, own: T::Wide| {
                let value = join.join(carry, own);
                seen = join.see(seen, own, value);
                *out = T::narrow(value);
            };
            match &mut self.out {
                None => {}
                Some(out) if self.reverse => {
                    let out = out[size - to..size - from].iter_mut().rev();
                    out.zip(part).for_each(|(out, &own)| put(out, own));
                }
                Some(out) => {
                    out[from..to].iter_mut().zip(part).for_each(|(out, &own)| put(out, own));
                }
            }
            carry = join.join(carry, total);
            seen = join.see(seen, total, carry);
            from = to;
        }
        if join.may_be_lost(seen) {
            return false;
        }
        self.carry = carry;
        true
    }
}

impl<T: Held, J: Join<T::Wide>> Kernel for Lane<'_, T, J> {
    type Output = End<T::Wide>;

    #[inline(always)]
    fn run(mut self) -> End<T::Wide> {
        let size = self.x.len();
        let mut lost = false;
        if J::IN_ORDER {
            lost = self.in_order(0, size);
            return End { total: self.carry, lost };
        }
        let mut tile = [self.join.first(); TILE];
        for start in (0..size).step_by(TILE) {
            let len = TILE.min(size - start);
            let totals = self.streams(start, len, &mut tile[..len]);
            if !self.joined(start, &tile[..len], totals) {
                lost |= self.in_order(start, len);
            }
        }
        End { total: self.carry, lost }
    }
}

/// What a part of a lane comes to, where nothing came before.
struct Total<'a, T: Held, J>(Lane<'a, T, J>);

impl<T: Held, J: Join<T::Wide>> Kernel for Total<'_, T, J> {
    type Output = End<T::Wide>;

    #[inline(always)]
    fn run(self) -> End<T::Wide> {
        let join = self.0.join;
        if J::IN_ANY_ORDER && !J::IN_ORDER {
            let mut totals = [join.first(); TOTALS];
            for x in self.0.x.chunks(TOTALS) {
                for (total, x) in totals.iter_mut().zip(x) {
                    *total = join.join(*total, x.widen());
                }
            }
            let (mut all, mut seen) = (join.first(), J::UNSEEN);
            for total in totals {
                all = join.join(all, total);
                seen = join.see(seen, total, all);
            }
            if !join.may_be_lost(seen) {
                return End { total: all, lost: false };
            }
        }
        self.0.run()
    }
}

/// Lanes that lie side by side.
struct Columns<'a, T: Held, J, R> {
    x: Source<T>,
    out: Out<'a, T>,
    /// Where the elements of a row start.
    row: R,
    size: usize,
    len: usize,
    reverse: bool,
    exclusive: bool,
    join: J,
}

impl<T, J, R> Kernel for Columns<'_, T, J, R>
where
    T: Held,
    J: Join<T::Wide>,
    R: Fn(usize) -> usize,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut totals = [self.join.first(); LANES];
        let totals = &mut totals[..self.len];
        for i in 0..self.size {
            let start = (self.row)(if self.reverse { self.size - 1 - i } else { i });
            // SAFETY: blocks of lanes are disjoint, and inside input and output.
            let (x, out) = unsafe {
                let x = std::slice::from_raw_parts(self.x.get().add(start), self.len);
                (x, self.out.slice(start..start + self.len))
            };
            for ((total, x), out) in totals.iter_mut().zip(x).zip(out) {
                let x = x.widen();
                let joined = if J::IN_ORDER && i == 0 { x } else { self.join.join(*total, x) };
                *out = T::narrow(if self.exclusive { *total } else { joined });
                *total = joined;
            }
        }
    }
}
