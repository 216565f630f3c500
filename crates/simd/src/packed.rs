//! Products with matrices of a few bits an element, which are unpacked in registers.

use std::ops::Range;

use half::{bf16, f16};

use super::unpack::Unpack;
use super::vector::{Load, Portable};
use super::{Element, Isa, Level};

/// Rows of words `[rows, len · bits / 32]`, and of scales and biases `[rows, len / group]`.
pub struct Packed<T> {
    /// The numbers.
    pub words: *const u32,
    /// What a group's numbers are multiplied by.
    pub scales: *const T,
    /// What is added to them.
    pub biases: *const T,
    /// Numbers of a row.
    pub len: usize,
    /// Numbers of a group: 32, 64 or 128.
    pub group: usize,
    /// Bits of a number: 1 to 8.
    pub bits: usize,
}

impl<T> Clone for Packed<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Packed<T> {}

// SAFETY: it is only read through.
unsafe impl<T: Sync> Sync for Packed<T> {}

impl<T> Packed<T> {
    /// From row `row` on.
    pub fn from_row(self, row: usize) -> Self {
        Packed {
            words: self.words.wrapping_add(row * self.words_of_row()),
            scales: self.scales.wrapping_add(row * self.groups()),
            biases: self.biases.wrapping_add(row * self.groups()),
            ..self
        }
    }

    /// Groups of a row.
    pub fn groups(&self) -> usize {
        self.len / self.group
    }

    fn words_of_row(&self) -> usize {
        self.len / 32 * self.bits
    }
}

/// Vectors, as floats, with the sums of their groups; and where their products go.
#[derive(Clone, Copy)]
pub struct Vectors {
    /// `[count, step]`
    pub x: *const f32,
    /// From one vector to the next.
    pub step: usize,
    /// Sums over groups `[count, groups]`, for products along rows.
    pub sums: *const f32,
    /// How many.
    pub count: usize,
    /// The products of the first.
    pub out: *mut f32,
    /// From the products of one vector to those of the next.
    pub out_step: usize,
}

/// An element type of scales and biases.
pub trait Scaled: Element<Acc = f32> {
    /// Products of `rows` rows with vectors: `out[v][row] = Σ row[k] · x[v][k]`.
    ///
    /// # Safety
    /// Here and below: the operands have these sizes.
    unsafe fn along_rows(isa: Isa, m: Packed<Self>, rows: usize, v: Vectors);
    /// Adds products of vectors with `rows` rows, over some columns, whole groups from `first` on:
    /// `out[v][column - first] += Σ x[v][row] · row[column]`.
    ///
    /// # Safety
    /// As above.
    unsafe fn across_rows(
        isa: Isa,
        m: Packed<Self>,
        rows: usize,
        first: usize,
        columns: usize,
        v: Vectors,
    );
    /// A row as floats.
    ///
    /// # Safety
    /// As above.
    unsafe fn unpack(isa: Isa, m: Packed<Self>, out: &mut [f32]);
}

/// Rows that are walked together for one vector.
const ROWS: usize = 4;
/// Numbers of a row that are multiplied with several vectors at a time: a multiple of every group.
const DEPTH: usize = 1024;

#[inline(always)]
unsafe fn along_rows<V: Unpack, L: Load<V> + Element<Acc = f32>>(
    m: Packed<L>,
    rows: usize,
    v: Vectors,
) {
    // SAFETY: the caller vouches for the instruction set and the operands.
    unsafe {
        let plan = V::plan(m.bits);
        // Of several vectors only a part stays in the first-level cache.
        let depth = if v.count < 4 { m.groups() } else { DEPTH / m.group };
        for start in (0..m.groups()).step_by(depth) {
            let groups = start..(start + depth).min(m.groups());
            let mut first = 0;
            while first < v.count {
                let some = if v.count - first < 4 { 1 } else { 4 };
                let mut row = 0;
                while row < rows {
                    let place = (row, first, groups.clone());
                    row += match (rows - row, some) {
                        (ROWS.., 4) => along::<V, L, ROWS, 4>(&m, &plan, place, &v),
                        (ROWS.., _) => along::<V, L, ROWS, 1>(&m, &plan, place, &v),
                        (_, 4) => along::<V, L, 1, 4>(&m, &plan, place, &v),
                        (_, _) => along::<V, L, 1, 1>(&m, &plan, place, &v),
                    };
                }
                first += some;
            }
        }
    }
}

/// Gives `M`.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
unsafe fn along<V: Unpack, L: Load<V> + Element<Acc = f32>, const M: usize, const N: usize>(
    m: &Packed<L>,
    plan: &V::Plan,
    (row, first, groups): (usize, usize, Range<usize>),
    v: &Vectors,
) -> usize {
    // SAFETY: the caller vouches for the instruction set and the operands.
    unsafe {
        let part: [Packed<L>; M] = std::array::from_fn(|i| m.from_row(row + i));
        let x = |n: usize| v.x.add((first + n) * v.step);
        let mut totals = [[V::zero(); N]; M];
        for group in groups.clone() {
            let mut sums = [[V::zero(); N]; M];
            for k in (group * m.group..(group + 1) * m.group).step_by(V::LANES) {
                let mut factors = [V::zero(); N];
                for n in 0..N {
                    factors[n] = V::load(x(n).add(k));
                }
                for i in 0..M {
                    let numbers = V::numbers(part[i].words, k, plan);
                    for n in 0..N {
                        sums[i][n] = numbers.fma(factors[n], sums[i][n]);
                    }
                }
            }
            for i in 0..M {
                let scale = V::splat(&(*part[i].scales.add(group)).to_acc());
                for n in 0..N {
                    totals[i][n] = sums[i][n].fma(scale, totals[i][n]);
                }
            }
        }
        // What biases add: each times the sum of a group.
        for group in groups.clone().step_by(V::LANES) {
            let some = V::LANES.min(groups.end - group);
            for i in 0..M {
                let biases = L::load_first(part[i].biases.add(group), some);
                for n in 0..N {
                    let sums = v.sums.add((first + n) * m.groups() + group);
                    totals[i][n] = biases.fma(V::load_first(sums, some), totals[i][n]);
                }
            }
        }
        for i in 0..M {
            for n in 0..N {
                let out = v.out.add((first + n) * v.out_step + row + i);
                let before = if groups.start == 0 { 0.0 } else { *out };
                *out = before + super::rows::total(totals[i][n]);
            }
        }
    }
    M
}

#[inline(always)]
unsafe fn across_rows<V: Unpack, L: Load<V> + Element<Acc = f32>>(
    m: Packed<L>,
    rows: usize,
    first: usize,
    columns: usize,
    v: Vectors,
) {
    // SAFETY: the caller vouches for the instruction set and the operands.
    unsafe {
        let plan = V::plan(m.bits);
        let mut row = 0;
        while row < rows {
            let some = if rows - row < ROWS { 1 } else { ROWS };
            let mut vector = 0;
            while vector < v.count {
                let place = [row, first, columns, vector];
                vector += match (some, v.count - vector) {
                    (ROWS, 4..) => across::<V, L, ROWS, 4>(&m, &plan, place, &v),
                    (ROWS, _) => across::<V, L, ROWS, 1>(&m, &plan, place, &v),
                    (_, 4..) => across::<V, L, 1, 4>(&m, &plan, place, &v),
                    (_, _) => across::<V, L, 1, 1>(&m, &plan, place, &v),
                };
            }
            row += some;
        }
    }
}

/// Gives `N`.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
unsafe fn across<V: Unpack, L: Load<V> + Element<Acc = f32>, const M: usize, const N: usize>(
    m: &Packed<L>,
    plan: &V::Plan,
    [row, first, columns, vector]: [usize; 4],
    v: &Vectors,
) -> usize {
    // SAFETY: the caller vouches for the instruction set and the operands.
    unsafe {
        let part: [Packed<L>; M] = std::array::from_fn(|i| m.from_row(row + i));
        for group in first / m.group..(first + columns) / m.group {
            let mut scaled = [[0.0f32; N]; M];
            let mut added = [0.0f32; N];
            for i in 0..M {
                let scale = (*part[i].scales.add(group)).to_acc();
                let bias = (*part[i].biases.add(group)).to_acc();
                for n in 0..N {
                    let x = *v.x.add((vector + n) * v.step + row + i);
                    scaled[i][n] = x * scale;
                    added[n] += x * bias;
                }
            }
            let one = 1.0;
            for k in (group * m.group..(group + 1) * m.group).step_by(V::LANES) {
                let out = |n: usize| v.out.add((vector + n) * v.out_step + k - first);
                let mut sums = [V::zero(); N];
                for n in 0..N {
                    sums[n] = V::load(out(n)).fma(V::splat(&one), V::splat(&added[n]));
                }
                for i in 0..M {
                    let numbers = V::numbers(part[i].words, k, plan);
                    for n in 0..N {
                        sums[n] = numbers.fma(V::splat(&scaled[i][n]), sums[n]);
                    }
                }
                for n in 0..N {
                    sums[n].store(out(n));
                }
            }
        }
    }
    N
}

#[inline(always)]
unsafe fn unpack<V: Unpack, L: Load<V> + Element<Acc = f32>>(m: Packed<L>, out: &mut [f32]) {
    // SAFETY: the caller vouches for the instruction set and the operands.
    unsafe {
        let plan = V::plan(m.bits);
        for (group, out) in out.chunks_exact_mut(m.group).enumerate() {
            let scale = V::splat(&(*m.scales.add(group)).to_acc());
            let bias = V::splat(&(*m.biases.add(group)).to_acc());
            for k in (0..m.group).step_by(V::LANES) {
                let numbers = V::numbers(m.words, group * m.group + k, &plan);
                numbers.fma(scale, bias).store(out.as_mut_ptr().add(k));
            }
        }
    }
}

macro_rules! scaled {
    ($($t:ident),*) => {$(
        impl Scaled for $t {
            unsafe fn along_rows(isa: Isa, m: Packed<$t>, rows: usize, v: Vectors) {
                versions!(isa, $t, along_rows(m: Packed<$t>, rows: usize, v: Vectors));
            }
            unsafe fn across_rows(
                isa: Isa,
                m: Packed<$t>,
                rows: usize,
                first: usize,
                columns: usize,
                v: Vectors,
            ) {
                versions!(isa, $t, across_rows(
                    m: Packed<$t>, rows: usize, first: usize, columns: usize, v: Vectors
                ));
            }
            unsafe fn unpack(isa: Isa, m: Packed<$t>, out: &mut [f32]) {
                versions!(isa, $t, unpack(m: Packed<$t>, out: &mut [f32]));
            }
        }
    )*};
}

/// Calls the version of a function for the instruction set.
macro_rules! versions {
    ($isa:expr, $t:ident, $f:ident($($arg:ident: $kind:ty),*)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            use super::x86::{F32x8, F32x16};
            #[target_feature(enable = "avx2,fma,f16c")]
            unsafe fn avx2($($arg: $kind),*) {
                // SAFETY: the caller vouches for the operands.
                unsafe { $f::<F32x8, $t>($($arg),*) }
            }
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
            unsafe fn avx512($($arg: $kind),*) {
                // SAFETY: as above.
                unsafe { $f::<F32x16, $t>($($arg),*) }
            }
            match $isa.level() {
                // SAFETY: an `Isa` of this level exists only where its features are.
                Level::Avx512Bf16 | Level::Avx512 => return unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                Level::Avx2 => return unsafe { avx2($($arg),*) },
                Level::Portable => {}
            }
        }
        let _ = $isa;
        // SAFETY: as above.
        unsafe { $f::<Portable<f32, 4>, $t>($($arg),*) }
    }};
}
scaled!(f32, f16, bf16);
