//! An axis folded up to each of its elements.
//!
//! Lanes that lie side by side are folded row by row, all together. Lanes that follow each other go
//! tile by tile: a tile is cut into streams that are folded at the same time, and what came before
//! a stream is joined to it afterwards. A long lane is cut into parts, which threads take in their
//! order: each finds its part's total, hands what came before it and the total on to the next part,
//! and folds the part while it is in its cache. Where a lane is cut depends on its length alone, and
//! so do the results.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupola_core::backend::Operand;
use cupola_core::prim::{Scan, ScanKind};
use cupola_core::{DType, Error, Result};
use half::{bf16, f16};
use num_complex::{Complex, Complex32};

use crate::contiguous::{Contiguous, Source};
use crate::math;
use crate::op::{Finish, Io, OpKernel};
use crate::simd::half::{c32_to_c64, c64_to_c32};
use crate::simd::{Isa, Kernel, Out, dispatch};
use crate::threads::parallel_for;

/// Elements that one chunk of short lanes holds.
const CHUNK: usize = 1 << 15;
/// Neighbouring lanes that are walked together.
const LANES: usize = 64;
/// Streams that a tile is cut into.
const STREAMS: usize = 8;
/// Elements of a tile.
const TILE: usize = 1024;
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
        let one = Complex32::new(1.0, 0.0);
        // SAFETY: the caller vouches for the elements.
        unsafe {
            match self.scan.kind {
                ScanKind::Prod => self.fold::<T, _>(x, out, one, |a, b| a * b),
                _ => self.fold::<T, _>(x, out, Complex32::default(), |a, b| a + b),
            }
        }
    }

    /// # Safety
    /// `x` has the elements, of `T`, and as many can be written to `out`, which is elsewhere.
    unsafe fn fold<T: Held, F>(&self, x: *const u8, out: *mut u8, first: T::Wide, join: F)
    where
        F: Fn(T::Wide, T::Wide) -> T::Wide + Copy + Send + Sync,
    {
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
            Lane::<T, F> { x, out: Some(out), reverse, exclusive, carry: first, first, join }
        };
        if inner == 1 && size >= LONG {
            for o in 0..outer {
                let parts = size.div_ceil(CHUNK);
                let range = |part: usize| {
                    let start = if reverse { parts - 1 - part } else { part } * CHUNK;
                    (o * size + start, CHUNK.min(size - start))
                };
                let (next, before) = (AtomicUsize::new(0), Befores::new(parts, first));
                parallel_for(parts, |_| {
                    // In their order, so that the parts before one are never left waiting.
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    let (start, len) = range(part);
                    let total = dispatch(isa, Lane { out: None, ..lane(start, len) });
                    let carry = before.get(part);
                    before.set(part + 1, join(carry, total));
                    dispatch(isa, Lane { carry, ..lane(start, len) });
                });
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
                    dispatch(
                        isa,
                        Columns { x, out, row, size, len, reverse, exclusive, first, join },
                    );
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
                        ScanKind::Max => unsafe { self.fold::<u8, _>(x, out, 0, u8::max) },
                        // SAFETY: as above.
                        _ => unsafe { self.fold::<u8, _>(x, out, 1, u8::min) },
                    },
                    $(DType::$dtype => match self.scan.kind {
                        // SAFETY: as above.
                        ScanKind::Sum => unsafe { self.fold::<$t, _>(x, out, 0, <$t>::wrapping_add) },
                        // SAFETY: as above.
                        ScanKind::Prod => unsafe { self.fold::<$t, _>(x, out, 1, <$t>::wrapping_mul) },
                        // SAFETY: as above.
                        ScanKind::Min => unsafe { self.fold::<$t, _>(x, out, <$t>::MAX, |a, b| a.min(b)) },
                        // SAFETY: as above.
                        _ => unsafe { self.fold::<$t, _>(x, out, <$t>::MIN, |a, b| a.max(b)) },
                    },)*
                    $(DType::$float => match self.scan.kind {
                        // SAFETY: as above.
                        ScanKind::Sum => unsafe { self.fold::<$f, _>(x, out, 0.0, |a, b| a + b) },
                        // SAFETY: as above.
                        ScanKind::Prod => unsafe { self.fold::<$f, _>(x, out, 1.0, |a, b| a * b) },
                        // SAFETY: as above.
                        ScanKind::Max => unsafe {
                            let larger = |a: $wide, b: $wide| if a >= b || a.is_nan() { a } else { b };
                            self.fold::<$f, _>(x, out, <$wide>::NEG_INFINITY, larger);
                        },
                        // SAFETY: as above.
                        ScanKind::Min => unsafe {
                            let smaller = |a: $wide, b: $wide| if a <= b || a.is_nan() { a } else { b };
                            self.fold::<$f, _>(x, out, <$wide>::INFINITY, smaller);
                        },
                        // SAFETY: as above.
                        ScanKind::LogAddExp => unsafe {
                            self.fold::<$f, _>(x, out, <$wide>::NEG_INFINITY, $logaddexp);
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
struct Lane<'a, T: Held, F> {
    x: &'a [T],
    /// `None` where only the total is wanted.
    out: Option<&'a mut [T]>,
    reverse: bool,
    exclusive: bool,
    /// What came before.
    carry: T::Wide,
    /// What changes nothing.
    first: T::Wide,
    join: F,
}

impl<T: Held, F: Fn(T::Wide, T::Wide) -> T::Wide + Copy> Kernel for Lane<'_, T, F> {
    type Output = T::Wide;

    /// Gives the total.
    #[inline(always)]
    fn run(mut self) -> T::Wide {
        let (size, join) = (self.x.len(), self.join);
        let mut tile = [self.first; TILE];
        let mut carry = self.carry;
        let place = |i: usize| if self.reverse { size - 1 - i } else { i };
        for start in (0..size).step_by(TILE) {
            let len = TILE.min(size - start);
            let stream = len.div_ceil(STREAMS);
            let mut totals = [self.first; STREAMS];
            // Whole streams together: their chains of joins do not wait for each other.
            let whole = if len == TILE { stream } else { 0 };
            for i in 0..whole {
                for (s, total) in totals.iter_mut().enumerate() {
                    let at = s * stream + i;
                    let joined = join(*total, self.x[place(start + at)].widen());
                    tile[at] = if self.exclusive { *total } else { joined };
                    *total = joined;
                }
            }
            if whole == 0 {
                for at in 0..len {
                    let total = &mut totals[at / stream];
                    let joined = join(*total, self.x[place(start + at)].widen());
                    tile[at] = if self.exclusive { *total } else { joined };
                    *total = joined;
                }
            }
            for (s, total) in totals.iter().enumerate() {
                let from = (s * stream).min(len);
                let to = ((s + 1) * stream).min(len);
                if let Some(out) = &mut self.out {
                    for at in from..to {
                        out[place(start + at)] = T::narrow(join(carry, tile[at]));
                    }
                }
                if from < to {
                    carry = join(carry, *total);
                }
            }
        }
        carry
    }
}

/// Lanes that lie side by side.
struct Columns<'a, T: Held, F, R> {
    x: Source<T>,
    out: Out<'a, T>,
    /// Where the elements of a row start.
    row: R,
    size: usize,
    len: usize,
    reverse: bool,
    exclusive: bool,
    first: T::Wide,
    join: F,
}

impl<T, F, R> Kernel for Columns<'_, T, F, R>
where
    T: Held,
    F: Fn(T::Wide, T::Wide) -> T::Wide + Copy,
    R: Fn(usize) -> usize,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut totals = [self.first; LANES];
        let totals = &mut totals[..self.len];
        for i in 0..self.size {
            let start = (self.row)(if self.reverse { self.size - 1 - i } else { i });
            // SAFETY: blocks of lanes are disjoint, and inside input and output.
            let (x, out) = unsafe {
                let x = std::slice::from_raw_parts(self.x.get().add(start), self.len);
                (x, self.out.slice(start..start + self.len))
            };
            for ((total, x), out) in totals.iter_mut().zip(x).zip(out) {
                let joined = (self.join)(*total, x.widen());
                *out = T::narrow(if self.exclusive { *total } else { joined });
                *total = joined;
            }
        }
    }
}
