//! Run-time choice of the instruction set, element types, and the vector kernels.

/// An array of what an expression gives for each number. The closure of `std::array::from_fn` may be compiled by itself, and
/// so without the instruction set of who calls it.
macro_rules! each {
    ($i:ident in [$($n:literal)*] => $e:expr) => {
        [$({
            let $i: usize = $n;
            $e
        }),*]
    };
}

mod element;
pub mod half;
mod lanes;
mod packed;
mod prefetch;
mod rows;
mod tail;
mod tile;
mod unpack;
#[cfg(target_arch = "x86_64")]
mod unpack_x86;
pub mod vector;
mod winograd;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use element::{Element, Out, Real};
pub use lanes::{FEW, InLanes, LaneSums, LaneTile, TOGETHER, TapGroup};
pub use packed::{Packed, Scaled, Vectors};
pub use prefetch::{LINE, prefetch};
pub use rows::{InRows, RowProducts};
pub use tail::{Bias, Residual, Tail, Then};
pub use tile::{
    MAX_VECTORS, Rows, Run, Split, Tile, TileFn, TileSet, Tiled, Transpose, even_parts, pair_kernel,
};
pub use vector::PortableF32;
pub use winograd::{InPoints, POINTS, PointInputs, PointSums, PointWeights, ToPoints};
#[cfg(target_arch = "x86_64")]
pub use x86::{F32x8, F32x16};

use std::cell::Cell;
use std::sync::OnceLock;

/// Instruction sets that kernels are compiled for, weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// What the target guarantees.
    Portable,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// AVX-512 with products of bfloat16.
    Avx512Bf16,
}

/// An instruction set that this machine has; the proof that running its kernels is sound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Isa(Level);

thread_local! {
    static LIMIT: Cell<Level> = const { Cell::new(Level::Avx512Bf16) };
}

impl Isa {
    /// The best instruction set, within the limit of `with_isa_limit`.
    pub fn best() -> Isa {
        static DETECTED: OnceLock<Level> = OnceLock::new();
        Isa((*DETECTED.get_or_init(detect)).min(LIMIT.get()))
    }

    /// Which instruction set it is.
    pub fn level(self) -> Level {
        self.0
    }
}

/// Runs `f` with `Isa::best` on this thread limited to `level`: for tests and benchmarks.
pub fn with_isa_limit<R>(level: Level, f: impl FnOnce() -> R) -> R {
    struct Restore(Level);
    impl Drop for Restore {
        fn drop(&mut self) {
            LIMIT.set(self.0);
        }
    }
    let _restore = Restore(LIMIT.replace(level));
    f()
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    use std::arch::is_x86_feature_detected as has;
    if !(has!("avx2") && has!("fma") && has!("f16c")) {
        Level::Portable
    } else if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
        if has!("avx512bf16") { Level::Avx512Bf16 } else { Level::Avx512 }
    } else {
        Level::Avx2
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}

/// A loop that the compiler vectorises, to be compiled once for each instruction set.
///
/// `run` and what it calls must be `#[inline(always)]`, or they keep the portable code.
pub trait Kernel {
    /// What the kernel returns.
    type Output;
    /// The loop.
    fn run(self) -> Self::Output;
}

/// Runs a kernel with the given instruction set.
#[inline]
pub fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    match isa.0 {
        // SAFETY: an `Isa` of this level exists only where its features were detected.
        Level::Avx512 | Level::Avx512Bf16 => return unsafe { run_avx512(kernel) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { run_avx2(kernel) },
        Level::Portable => {}
    }
    let _ = isa;
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}
