//! The one multiply kernel: a register tile of sums of outer products.
//!
//! `c[m][lane] += Σ a[k][m] · b[k][lane]`, where `k` walks runs of memory. Convolution kernels
//! differ in what they take as lanes and as rows, and in how they lay out the runs.

use std::hint::black_box;

use super::prefetch::{LINE, prefetch, prefetch_for_later, prefetch_to_write};
use super::vector::{Portable, Vector};
use super::{InLanes, InPoints, InRows, Isa, Level, Real, Tail};

/// Vectors in a tile, at most.
pub const MAX_VECTORS: usize = 4;

/// Steps after which vectors are read that are asked for. Those of [`Rows::Listed`] are not: they are few beside what is
/// done with them, and stay in the first-level cache.
const AHEAD: usize = 8;

/// Bytes of a vector up to which a step is short, since there are few registers for sums. A request for each vector would
/// take as long as a sum, and lines that follow each other come by themselves; what a step does beside its sums is done
/// once for [`GROUP`] of them. Listed rows leave no register for that.
const SHORT: usize = 32;

/// Whether steps of vectors of so many bytes are short.
const fn is_short(bytes: usize) -> bool {
    bytes <= SHORT
}

/// Short steps that are done at once.
const GROUP: usize = 4;

/// Of how many short steps one asks for a later line: what few tiles leave out comes with its neighbour.
const ASKING: usize = 2;

/// Rows of [`Rows::Listed`] whose places stay in registers.
const KEPT_ROWS: usize = 9;

/// Rows of odd number in the tallest tile: 1, 3, … 13.
const ODD_ROWS: usize = 7;

/// How the rows of a tile lie in `Tile::a`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// The scalars of a step follow each other.
    Together,
    /// They are `Tile::row_step` apart.
    Apart,
    /// They are where `Tile::rows` says.
    Listed,
}

/// Consecutive steps of `k`: where they start in `a` and `b`, in units of the tile.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Start in `a`.
    pub a: usize,
    /// Start in `b`.
    pub b: usize,
    /// Steps.
    pub len: usize,
}

/// Operands of a tile. Steps and offsets count elements.
#[derive(Clone, Copy)]
pub struct Tile<'t, T> {
    /// Scalars: element `m` of step `k` is at `run.a * a_unit + k * a_step` and `rows[m]`, `m * row_step` or `m` behind
    /// that, as the rows lie.
    pub a: *const T,
    /// What `Run::a` counts.
    pub a_unit: usize,
    /// From one step to the next: 1 for [`Rows::Apart`].
    pub a_step: usize,
    /// Where each row's scalar is, for [`Rows::Listed`].
    pub rows: &'t [usize],
    /// From one row to the next, for [`Rows::Apart`]: row `m` is `m` times as far from the first.
    pub row_step: usize,
    /// Vectors: vector `v` of step `k` starts at `run.b * b_unit + k * b_step + columns[v]`. Those of [`Rows::Apart`] follow
    /// each other, and those of a step the ones of the step before.
    pub b: *const T,
    /// What `Run::b` counts.
    pub b_unit: usize,
    /// From one step to the next.
    pub b_step: usize,
    /// How far behind each step's first vector lies a line that a later tile reads, which is asked for: see
    /// [`TileSet::soon`]. 0 for none.
    pub soon: usize,
    /// Where each vector starts.
    pub columns: [usize; MAX_VECTORS],
    /// The steps.
    pub runs: &'t [Run],
    /// The sums, a row after the other.
    pub c: *mut T,
    /// From one row of sums to the next.
    pub c_step: usize,
    /// Lanes of the last vector that are stored, all if it has fewer.
    pub last: usize,
    /// Whether to add to the sums at `c` instead of overwriting them.
    pub add: bool,
    /// What is done to them in the end.
    pub tail: Tail<'t, T>,
}

/// A compiled kernel for one size of tile.
pub type TileFn<T> = unsafe fn(&Tile<'_, T>);

/// What the planner needs to know about the tiles of an instruction set.
#[derive(Clone, Copy, Debug)]
pub struct TileSet {
    /// Lanes of a vector.
    pub lanes: usize,
    /// Bytes of a vector.
    pub bytes: usize,
    /// The most rows of a tile of 1, 2, … vectors.
    pub rows: &'static [usize],
}

impl TileSet {
    /// Roughly the cycles of one step of `k`: multiply-adds and loads share two ports each, a sum waits four
    /// cycles for the one before, and a place that is in no register is loaded beside all that.
    pub fn cost(&self, rows: usize, vectors: usize, at: Rows) -> f64 {
        // Where rows are not listed, vectors of long steps are asked for ahead.
        let asked = if at == Rows::Listed || is_short(self.bytes) { 0 } else { vectors };
        let (sums, loads) = ((rows * vectors) as f64, (rows + vectors + asked) as f64);
        let places = if at == Rows::Listed { rows.saturating_sub(KEPT_ROWS) } else { 0 };
        (sums / 2.0).max(loads / 2.0).max(4.0) + 0.25 + places as f64 / 4.0
    }

    /// The [`Tile::soon`] of the `i`-th of the tiles that read the same so many vectors one after the other, where those of
    /// the tiles after them lie `next` behind: each asks for other lines, until they have asked for all.
    pub fn soon(&self, next: usize, i: usize, vectors: usize) -> usize {
        let steps = if is_short(self.bytes) { ASKING } else { 1 };
        let lines = (steps * vectors * self.bytes).div_ceil(LINE);
        if next > 0 && i < lines { next + i * self.lanes * LINE / self.bytes } else { 0 }
    }

    /// How a kernel finds so many rows: by a list, as long as its registers hold that, and else by their distance where
    /// they are `even`ly far apart.
    pub fn lie(&self, rows: usize, even: impl FnOnce() -> bool) -> Rows {
        let listed = rows <= KEPT_ROWS && !is_short(self.bytes);
        if !listed && even() { Rows::Apart } else { Rows::Listed }
    }

    /// Cuts a block of sums into tiles: the sizes along rows and vectors, and the cost of a step.
    pub fn split(&self, rows: usize, vectors: usize, at: Rows) -> Split {
        self.split_by(rows, vectors, |m, v| self.cost(m, v, at))
    }

    /// The same, where a tile of so many rows and vectors costs what `cost` says.
    pub fn split_by(
        &self,
        rows: usize,
        vectors: usize,
        cost: impl Fn(usize, usize) -> f64,
    ) -> Split {
        let cost = &cost;
        let splits = (1..=self.rows.len().min(vectors.max(1))).map(|wide| {
            let vectors = even_parts(vectors, wide);
            let tall = self.rows[vectors.first().map_or(1, |&v| v) - 1];
            let rows = even_parts(rows, tall);
            let cost = rows.iter().flat_map(|&m| vectors.iter().map(move |&v| cost(m, v))).sum();
            Split { rows, vectors, cost }
        });
        let best = splits.min_by(|a, b| a.cost.total_cmp(&b.cost));
        best.unwrap_or(Split { rows: vec![], vectors: vec![], cost: 0.0 })
    }
}

/// A block of sums cut into tiles.
#[derive(Clone, Debug)]
pub struct Split {
    /// Sizes along the rows.
    pub rows: Vec<usize>,
    /// Sizes along the vectors.
    pub vectors: Vec<usize>,
    /// The cost of a step of `k`.
    pub cost: f64,
}

/// Cuts `n` into the fewest parts of at most `most`, as even as possible, larger ones first.
pub fn even_parts(n: usize, most: usize) -> Vec<usize> {
    let parts = n.div_ceil(most);
    (0..parts).map(|i| n / parts + usize::from(i < n % parts)).collect()
}

/// A type that has compiled tiles.
pub trait Tiled: Real + InLanes + InRows + InPoints {
    /// The tiles of an instruction set.
    fn tiles(isa: Isa) -> TileSet;
    /// The kernel for a tile of so many rows and vectors.
    fn kernel(isa: Isa, rows: usize, vectors: usize, at: Rows) -> TileFn<Self>;
    /// Transposes `rows × columns` elements.
    ///
    /// # Safety
    /// Rows of `src`, `src_step` apart, and of `dst`, `dst_step` apart, can be accessed.
    unsafe fn transpose(isa: Isa, t: Transpose<Self>);
}

/// A transposition: `dst[j * dst_step + i] = src[i * src_step + j]`.
#[derive(Clone, Copy)]
pub struct Transpose<T> {
    /// First element of the source.
    pub src: *const T,
    /// From one row of the source to the next.
    pub src_step: usize,
    /// Rows of the source.
    pub rows: usize,
    /// Columns of the source.
    pub columns: usize,
    /// First element of the result.
    pub dst: *mut T,
    /// From one row of the result to the next.
    pub dst_step: usize,
}

/// What [`outer`] is compiled for instead of [`Rows`].
const TOGETHER: u8 = 0;
const APART: u8 = 1;
const LISTED: u8 = 2;

/// A tile whose rows lie as `AT` says.
///
/// # Safety
/// The instruction set is present and the tile's pointers reach what its sizes say.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
unsafe fn outer<V: Vector, const M: usize, const N: usize, const AT: u8>(t: &Tile<'_, V::Elem>) {
    // SAFETY: the caller vouches for the instruction set and the pointers.
    unsafe {
        for v in 0..N {
            debug_assert!(AT != APART || t.columns[v] == v * V::LANES, "vectors follow each other");
        }
        let (a_step, b_step) = if AT == APART { (1, N * V::LANES) } else { (t.a_step, t.b_step) };
        debug_assert_eq!((a_step, b_step), (t.a_step, t.b_step), "steps follow each other");
        let mut sums = [[V::zero(); N]; M];
        let place = |m: usize, v: usize| t.c.wrapping_add(m * t.c_step + v * V::LANES);
        // No closure, which may be compiled by itself, and so without the instruction set.
        macro_rules! load {
            ($v:expr, $from:expr) => {
                match $v + 1 < N || t.last >= V::LANES {
                    true => V::load($from),
                    false => V::load_first($from, t.last),
                }
            };
        }
        if t.add {
            for m in 0..M {
                for v in 0..N {
                    sums[m][v] = load!(v, place(m, v));
                }
            }
        }
        // While they are summed the memory for them comes, and what is added to them.
        for m in 0..if t.add { 0 } else { M } {
            for v in 0..N {
                prefetch_to_write(place(m, v));
            }
        }
        if let Some(residual) = &t.tail.residual {
            for m in 0..M {
                for v in 0..N {
                    prefetch(residual.at(place(m, v)));
                }
            }
        }
        let mut rows = [0; M];
        if AT == LISTED {
            rows.copy_from_slice(&t.rows[..M]);
        }
        // How many bytes odd rows are from the first. Those of others are 2, 4 or 8 times as many, which an address
        // multiplies. They are hidden from the compiler, which would have a register for each row if it knew more of them.
        let mut odd = [0; ODD_ROWS];
        if AT == APART {
            for i in 0..M / 2 {
                odd[i] = black_box((2 * i + 1) * t.row_step * size_of::<V::Elem>());
            }
        }
        for run in t.runs {
            let mut a = t.a.add(run.a * t.a_unit);
            let mut b = t.b.add(run.b * t.b_unit);
            // One step, which asks for a later line or not. No closure, as above.
            macro_rules! step {
                ($asks:expr) => {{
                    if $asks {
                        prefetch_for_later(b.wrapping_add(t.soon));
                    }
                    let mut vectors = [V::zero(); N];
                    for v in 0..N {
                        let column = if AT == APART { v * V::LANES } else { t.columns[v] };
                        if AT != LISTED && !is_short(size_of::<V>()) {
                            prefetch(b.wrapping_add(column + AHEAD * b_step));
                        }
                        vectors[v] = V::load(b.add(column));
                    }
                    for m in 0..M {
                        let scalar = V::splat(match AT {
                            TOGETHER => a.add(m),
                            APART if m == 0 => a,
                            APART => {
                                let twice = m.trailing_zeros();
                                a.byte_add(odd[m >> (twice + 1)] << twice)
                            }
                            _ => a.add(rows[m]),
                        });
                        for v in 0..N {
                            sums[m][v] = scalar.fma(vectors[v], sums[m][v]);
                        }
                    }
                    a = a.wrapping_add(a_step);
                    b = b.wrapping_add(b_step);
                }};
            }
            let mut left = run.len;
            if AT != LISTED && is_short(size_of::<V>()) {
                while left >= GROUP {
                    for step in 0..GROUP {
                        step!(step % ASKING == 0);
                    }
                    left -= GROUP;
                }
            }
            for _ in 0..left {
                step!(true);
            }
        }
        t.tail.apply(&mut sums, |p| V::load(p), |r, m, v| load!(v, r.at(place(m, v))));
        for (m, sums) in sums.iter().enumerate() {
            let c = t.c.add(m * t.c_step);
            for v in 0..N - 1 {
                sums[v].store(c.add(v * V::LANES));
            }
            let last = c.add((N - 1) * V::LANES);
            if t.last >= V::LANES {
                sums[N - 1].store(last);
            } else {
                sums[N - 1].store_first(last, t.last);
            }
        }
        if let Some(then) = t.tail.then {
            then(t.c, t.c_step, M, (N - 1) * V::LANES + t.last.min(V::LANES));
        }
    }
}

/// # Safety
/// As `Tiled::transpose`; the instruction set is present.
#[inline(always)]
unsafe fn transpose<V: Vector>(t: Transpose<V::Elem>) {
    for j in (0..t.columns).step_by(V::LANES) {
        for i in (0..t.rows).step_by(V::LANES) {
            let part = Transpose {
                src: t.src.wrapping_add(i * t.src_step + j),
                rows: V::LANES.min(t.rows - i),
                columns: V::LANES.min(t.columns - j),
                dst: t.dst.wrapping_add(j * t.dst_step + i),
                ..t
            };
            // SAFETY: the caller vouches for the rows of both arrays.
            unsafe { V::transpose(part) };
        }
    }
}

macro_rules! kernels {
    // One arm for each size of tile: rows listed by the number of vectors.
    ($f:ident, $key:expr, $at:expr; $($v:literal: $($m:literal)*;)*) => {
        match $key {
            $($(($m, $v) => $f::<$m, $v, { $at }>,)*)*
            key => unreachable!("no tile of size {key:?}"),
        }
    };
}

macro_rules! kernels_512 {
    ($f:ident, $key:expr, $at:expr) => {
        kernels!($f, $key, $at; 1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14;
            2: 1 2 3 4 5 6 7 8 9 10 11 12 13 14; 3: 1 2 3 4 5 6 7 8 9; 4: 1 2 3 4 5 6;)
    };
}

macro_rules! kernels_256 {
    ($f:ident, $key:expr, $at:expr) => {
        kernels!($f, $key, $at; 1: 1 2 3 4 5 6 7 8; 2: 1 2 3 4 5 6;)
    };
}

/// The kernel among those of `$kernels` for how the rows lie.
macro_rules! by_rows {
    ($at:expr, $kernels:ident, $f:ident, $key:expr) => {
        match $at {
            Rows::Together => $kernels!($f, $key, TOGETHER),
            Rows::Apart => $kernels!($f, $key, APART),
            Rows::Listed => $kernels!($f, $key, LISTED),
        }
    };
}

macro_rules! tiled {
    ($t:ty, $lanes:literal, $avx2:ident, $avx512:ident, $modname:ident) => {
        mod $modname {
            use super::*;
            #[cfg(target_arch = "x86_64")]
            use crate::x86::{$avx2, $avx512};

            /// # Safety
            /// The tile's pointers reach what its sizes say; so for the next two.
            pub unsafe fn portable<const M: usize, const N: usize, const S: u8>(t: &Tile<'_, $t>) {
                // SAFETY: the caller vouches for the pointers.
                unsafe { outer::<Portable<$t, $lanes>, M, N, S>(t) }
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            pub unsafe fn avx2<const M: usize, const N: usize, const S: u8>(t: &Tile<'_, $t>) {
                // SAFETY: the caller vouches for the pointers.
                unsafe { outer::<$avx2, M, N, S>(t) }
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            pub unsafe fn avx512<const M: usize, const N: usize, const S: u8>(t: &Tile<'_, $t>) {
                // SAFETY: the caller vouches for the pointers.
                unsafe { outer::<$avx512, M, N, S>(t) }
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            pub unsafe fn transpose_avx2(t: Transpose<$t>) {
                // SAFETY: the caller vouches for the pointers.
                unsafe { transpose::<$avx2>(t) }
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            pub unsafe fn transpose_avx512(t: Transpose<$t>) {
                // SAFETY: the caller vouches for the pointers.
                unsafe { transpose::<$avx512>(t) }
            }
        }

        impl Tiled for $t {
            fn tiles(isa: Isa) -> TileSet {
                let (bytes, rows): (_, &[usize]) = match isa.level() {
                    Level::Portable => ($lanes * size_of::<$t>(), &[8, 6]),
                    Level::Avx2 => (32, &[8, 6]),
                    Level::Avx512 | Level::Avx512Bf16 => (64, &[14, 14, 9, 6]),
                };
                TileSet { lanes: bytes / size_of::<$t>(), bytes, rows }
            }

            fn kernel(isa: Isa, rows: usize, vectors: usize, at: Rows) -> TileFn<$t> {
                let key = (rows, vectors);
                match isa.level() {
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx512 | Level::Avx512Bf16 => {
                        use $modname::avx512;
                        by_rows!(at, kernels_512, avx512, key)
                    }
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => {
                        use $modname::avx2;
                        by_rows!(at, kernels_256, avx2, key)
                    }
                    _ => {
                        use $modname::portable;
                        by_rows!(at, kernels_256, portable, key)
                    }
                }
            }

            unsafe fn transpose(isa: Isa, t: Transpose<$t>) {
                // SAFETY: the caller vouches for the pointers, an `Isa` for its features.
                unsafe {
                    match isa.level() {
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx512 | Level::Avx512Bf16 => $modname::transpose_avx512(t),
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx2 => $modname::transpose_avx2(t),
                        _ => transpose::<Portable<$t, $lanes>>(t),
                    }
                }
            }
        }
    };
}
tiled!(f32, 4, F32x8, F32x16, tiles_f32);
tiled!(f64, 2, F64x4, F64x8, tiles_f64);

/// The kernel for a tile whose elements are pairs of bfloat16, the first in the low bits of a float,
/// and whose sums are floats; `None` where the machine multiplies no such pairs.
pub fn pair_kernel(isa: Isa, rows: usize, vectors: usize, at: Rows) -> Option<TileFn<f32>> {
    #[cfg(target_arch = "x86_64")]
    if isa.level() == Level::Avx512Bf16 {
        return Some(by_rows!(at, kernels_512, pairs, (rows, vectors)));
    }
    let _ = (isa, rows, vectors, at);
    None
}

/// # Safety
/// As `outer`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
unsafe fn pairs<const M: usize, const N: usize, const AT: u8>(t: &Tile<'_, f32>) {
    // SAFETY: the caller vouches for the pointers.
    unsafe { outer::<super::x86::Bf16Pairs, M, N, AT>(t) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_ask_for_each_line_of_their_successors_once() {
        let next = 1 << 20;
        for (bytes, steps) in [(64, 1), (32, ASKING), (16, ASKING)] {
            let set = TileSet { lanes: bytes / 4, bytes, rows: &[6; MAX_VECTORS] };
            for vectors in 1..=MAX_VECTORS {
                let asked = (0..).map(|i| set.soon(next, i, vectors)).take_while(|&at| at > 0);
                let lines = (0..steps * vectors * set.lanes).step_by(LINE / 4).map(|at| next + at);
                assert!(asked.eq(lines), "{vectors} vectors of {bytes} bytes");
            }
            assert_eq!(set.soon(0, 0, 1), 0, "nothing comes after the last");
        }
    }
}
