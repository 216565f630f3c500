//! Matrix products of every element type, for operands with any strides.
//!
//! Float products run on the `gemm` crate in row panels cut by problem size; products with a
//! vector, and integers, have their own loops. Half types are widened to f32.

use std::ops::Range;

use gemm::Parallelism;
use half::{bf16, f16};
use num_complex::Complex;

use crate::simd::{Isa, Kernel, Out, dispatch};
use crate::threads::parallel_for;

/// Sizes of a batched product of `[m, k]` and `[k, n]` matrices; the result is contiguous.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DotProblem {
    /// Number of products.
    pub batch: usize,
    /// Rows of the result.
    pub m: usize,
    /// Length of the sums.
    pub k: usize,
    /// Columns of the result.
    pub n: usize,
    /// Steps of the left operand, in elements: batch, row, column.
    pub a_strides: [isize; 3],
    /// Steps of the right operand, in elements: batch, row, column.
    pub b_strides: [isize; 3],
}

/// Called once for each part of the output, when the part is final and still in cache.
pub type Epilogue<'a> = Option<&'a (dyn Fn(Range<usize>) + Sync)>;

impl DotProblem {
    /// Elements of the result.
    pub fn output_len(&self) -> usize {
        self.batch * self.m * self.n
    }

    /// The same product with few, tall matrices: a shared right operand makes the batch rows, and
    /// a row vector on the left is a column vector on the right of the transpose.
    fn normalized(&self) -> (DotProblem, bool) {
        let mut p = self.clone();
        let rows_follow = p.a_strides[0] == p.m as isize * p.a_strides[1];
        if p.batch > 1 && p.b_strides[0] == 0 && (rows_follow || p.m == 1) {
            if p.m == 1 {
                p.a_strides[1] = p.a_strides[0];
            }
            p.m *= p.batch;
            p.batch = 1;
        }
        let swap = p.m == 1 && p.n > 1;
        if swap {
            let [a_batch, a_row, a_col] = p.a_strides;
            let [b_batch, b_row, b_col] = p.b_strides;
            (p.m, p.n) = (p.n, 1);
            p.a_strides = [b_batch, b_col, b_row];
            p.b_strides = [a_batch, a_col, a_row];
        }
        (p, swap)
    }
}

/// An element type of matrix products.
pub trait DotElement: Copy + Send + Sync + 'static {
    /// The type that products are computed in.
    type Acc: DotAcc;
    /// Converts to the type of products.
    fn widen(self) -> Self::Acc;
    /// Converts from the type of products.
    fn narrow(acc: Self::Acc) -> Self;
}

/// A type that products are computed in.
pub trait DotAcc: DotElement<Acc = Self> {
    /// The sum of nothing.
    const ZERO: Self;
    /// `self + a * b`
    fn fma(self, a: Self, b: Self) -> Self;
    /// `self + a`
    fn plus(self, a: Self) -> Self;
    /// Computes a panel with more than one column.
    ///
    /// # Safety
    /// Every element of the panel's operands can be read, and of its result written.
    unsafe fn product(isa: Isa, panel: Panel<Self>);
}

/// Some rows of one product.
#[derive(Clone, Copy)]
pub struct Panel<T> {
    m: usize,
    k: usize,
    n: usize,
    a: *const T,
    a_strides: [isize; 2],
    b: *const T,
    b_strides: [isize; 2],
    out: *mut T,
}

/// Multiply-adds that are worth a chunk of their own.
const CHUNK: usize = 1 << 17;

/// Computes `out = a · b`, overwriting `out`, `[batch, m, n]`.
///
/// # Safety
/// Every element that the sizes and strides of `p` reach from `a` and `b` can be read.
pub unsafe fn dot<T: DotElement>(
    p: &DotProblem,
    a: *const T,
    b: *const T,
    out: Out<'_, T>,
    epilogue: Epilogue<'_>,
) {
    assert_eq!(out.len(), p.output_len(), "dot: length of the output of {p:?}");
    if out.len() == 0 {
        return;
    }
    let (p, swap) = p.normalized();
    let (a, b) = if swap { (b, a) } else { (a, b) };
    let isa = Isa::best();
    let widened = (size_of::<T>() != size_of::<T::Acc>() && p.n > 1)
        // SAFETY: `b` reaches what the caller vouches for.
        .then(|| unsafe { widen(&p, b) });
    let per_row = (p.k * p.n).max(1);
    let rows = panel_rows(p.m, per_row);
    let panels = p.m.div_ceil(rows);
    let matrices = (CHUNK / (per_row * p.m)).clamp(1, p.batch);
    let a = Shared(a);
    let b = Shared(b);
    parallel_for(p.batch.div_ceil(matrices) * panels, |chunk| {
        let (first, panel) = (chunk / panels * matrices, chunk % panels);
        let (start, end) = (panel * rows, ((panel + 1) * rows).min(p.m));
        for batch in first..(first + matrices).min(p.batch) {
            let range = (batch * p.m + start) * p.n..(batch * p.m + end) * p.n;
            // SAFETY: chunks have disjoint rows; the operands reach what the caller vouches for.
            unsafe {
                let at = batch as isize * p.a_strides[0] + start as isize * p.a_strides[1];
                let a = a.get().offset(at);
                let out = out.slice(range.clone());
                match &widened {
                    Some(b) => {
                        let b =
                            b.as_ptr().add(if p.b_strides[0] == 0 { 0 } else { batch * p.k * p.n });
                        narrow_panel(isa, &p, end - start, a, b, out);
                    }
                    None => {
                        let b = b.get().offset(batch as isize * p.b_strides[0]);
                        plain_panel(isa, &p, end - start, a, b, out);
                    }
                }
            }
            if let Some(f) = epilogue {
                f(range);
            }
        }
    });
}

/// Rows of a panel: few panels, since each packs the right operand again.
fn panel_rows(m: usize, per_row: usize) -> usize {
    let panels = (m * per_row / (CHUNK * 8)).clamp(1, 16);
    let panels = if per_row * m < CHUNK * 2 { 1 } else { panels.max(2) };
    m.div_ceil(panels).next_multiple_of(8)
}

/// A pointer that chunks share.
struct Shared<T>(*const T);

impl<T> Shared<T> {
    fn get(&self) -> *const T {
        self.0
    }
}

// SAFETY: it is only read through.
unsafe impl<T: Sync> Sync for Shared<T> {}

/// The right operand, dense and in the type of products.
///
/// # Safety
/// As for `dot`.
unsafe fn widen<T: DotElement>(p: &DotProblem, b: *const T) -> Vec<T::Acc> {
    let batch = if p.b_strides[0] == 0 { 1 } else { p.batch };
    let mut wide = vec![T::Acc::ZERO; batch * p.k * p.n];
    let (out, b) = (Out::new(&mut wide), Shared(b));
    let rows = (CHUNK / 16 / p.n).max(1);
    parallel_for((batch * p.k).div_ceil(rows), |chunk| {
        for row in chunk * rows..((chunk + 1) * rows).min(batch * p.k) {
            let at = (row / p.k) as isize * p.b_strides[0] + (row % p.k) as isize * p.b_strides[1];
            // SAFETY: rows are disjoint, and inside the operand.
            let out = unsafe { out.slice(row * p.n..(row + 1) * p.n) };
            for (j, out) in out.iter_mut().enumerate() {
                // SAFETY: as above.
                *out = unsafe { *b.get().offset(at + j as isize * p.b_strides[2]) }.widen();
            }
        }
    });
    wide
}

/// Computes a panel of a type that is its own type of products, or of a product with a vector.
///
/// # Safety
/// As for `dot`.
unsafe fn plain_panel<T: DotElement>(
    isa: Isa,
    p: &DotProblem,
    m: usize,
    a: *const T,
    b: *const T,
    out: &mut [T],
) {
    let (a_strides, b_strides) =
        ([p.a_strides[1], p.a_strides[2]], [p.b_strides[1], p.b_strides[2]]);
    if p.n == 1 {
        let vector: Vec<T::Acc> = (0..p.k as isize)
            // SAFETY: inside the operand.
            .map(|k| unsafe { *b.offset(k * b_strides[0]) }.widen())
            .collect();
        dispatch(isa, MatVec { a, a_strides, vector: &vector, out });
        return;
    }
    let panel = Panel {
        m,
        k: p.k,
        n: p.n,
        a: a.cast(),
        a_strides,
        b: b.cast(),
        b_strides,
        out: out.as_mut_ptr().cast(),
    };
    // SAFETY: with more than one column, `T` is `T::Acc`: other types were widened.
    unsafe { T::Acc::product(isa, panel) }
}

/// Computes a panel of a type that is widened.
///
/// # Safety
/// As for `dot`; `b` is dense.
unsafe fn narrow_panel<T: DotElement>(
    isa: Isa,
    p: &DotProblem,
    m: usize,
    a: *const T,
    b: *const T::Acc,
    out: &mut [T],
) {
    let mut wide_a = Vec::with_capacity(m * p.k);
    for i in 0..m as isize {
        let row = i * p.a_strides[1];
        // SAFETY: inside the operand.
        let at = |k: isize| unsafe { *a.offset(row + k * p.a_strides[2]) }.widen();
        wide_a.extend((0..p.k as isize).map(at));
    }
    let mut wide = vec![T::Acc::ZERO; out.len()];
    let panel = Panel {
        m,
        k: p.k,
        n: p.n,
        a: wide_a.as_ptr(),
        a_strides: [p.k as isize, 1],
        b,
        b_strides: [p.n as isize, 1],
        out: wide.as_mut_ptr(),
    };
    // SAFETY: the operands are dense buffers of these sizes.
    unsafe { T::Acc::product(isa, panel) }
    for (out, wide) in out.iter_mut().zip(wide) {
        *out = T::narrow(wide);
    }
}

/// Rows of a matrix times a vector.
struct MatVec<'a, T: DotElement> {
    a: *const T,
    a_strides: [isize; 2],
    vector: &'a [T::Acc],
    out: &'a mut [T],
}

/// Partial sums of a row, and rows of a column block.
const LANES: usize = 32;

impl<T: DotElement> Kernel for MatVec<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let MatVec { a, a_strides: [rs, cs], vector, out } = self;
        let k = vector.len();
        if rs == 1 && cs != 1 {
            for (block, out) in out.chunks_mut(LANES).enumerate() {
                // SAFETY: the rows of the block are inside the operand.
                let a = unsafe { a.add(block * LANES) };
                let mut sums = [T::Acc::ZERO; LANES];
                for (k, &v) in vector.iter().enumerate() {
                    // SAFETY: rows follow each other in memory.
                    let column =
                        unsafe { std::slice::from_raw_parts(a.offset(k as isize * cs), out.len()) };
                    if let Ok(column) = <&[T; LANES]>::try_from(column) {
                        for (sum, a) in sums.iter_mut().zip(column) {
                            *sum = sum.fma(a.widen(), v);
                        }
                    } else {
                        for (sum, a) in sums.iter_mut().zip(column) {
                            *sum = sum.fma(a.widen(), v);
                        }
                    }
                }
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = T::narrow(sum);
                }
            }
            return;
        }
        for (i, out) in out.iter_mut().enumerate() {
            // SAFETY: the row is inside the operand.
            let row = unsafe { a.offset(i as isize * rs) };
            let sum = if cs == 1 {
                // SAFETY: the row is contiguous.
                dense_row(unsafe { std::slice::from_raw_parts(row, k) }, vector)
            } else {
                let mut sum = T::Acc::ZERO;
                for (k, &v) in vector.iter().enumerate() {
                    // SAFETY: inside the operand.
                    sum = sum.fma(unsafe { *row.offset(k as isize * cs) }.widen(), v);
                }
                sum
            };
            *out = T::narrow(sum);
        }
    }
}

#[inline(always)]
fn dense_row<T: DotElement>(row: &[T], vector: &[T::Acc]) -> T::Acc {
    let mut sums = [T::Acc::ZERO; LANES];
    let (rows, vectors) = (row.chunks_exact(LANES), vector.chunks_exact(LANES));
    let tail = rows.remainder().iter().zip(vectors.remainder());
    for (row, vector) in rows.zip(vectors) {
        for ((sum, a), &v) in sums.iter_mut().zip(row).zip(vector) {
            *sum = sum.fma(a.widen(), v);
        }
    }
    for (sum, (a, &v)) in sums.iter_mut().zip(tail) {
        *sum = sum.fma(a.widen(), v);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] = sums[i].plus(sums[i + width]);
        }
        width /= 2;
    }
    sums[0]
}

macro_rules! float {
    ($t:ty, $zero:expr, $one:expr) => {
        impl DotElement for $t {
            type Acc = $t;
            #[inline(always)]
            fn widen(self) -> $t {
                self
            }
            #[inline(always)]
            fn narrow(acc: $t) -> $t {
                acc
            }
        }
        impl DotAcc for $t {
            const ZERO: $t = $zero;
            #[inline(always)]
            fn fma(self, a: $t, b: $t) -> $t {
                self + a * b
            }
            #[inline(always)]
            fn plus(self, a: $t) -> $t {
                self + a
            }
            unsafe fn product(_: Isa, p: Panel<$t>) {
                let [a_rs, a_cs] = p.a_strides;
                let [b_rs, b_cs] = p.b_strides;
                // SAFETY: the caller vouches for the operands.
                unsafe {
                    gemm::gemm(
                        p.m,
                        p.n,
                        p.k,
                        p.out,
                        1,
                        p.n as isize,
                        false,
                        p.a,
                        a_cs,
                        a_rs,
                        p.b,
                        b_cs,
                        b_rs,
                        $zero,
                        $one,
                        false,
                        false,
                        false,
                        Parallelism::None,
                    );
                }
            }
        }
    };
}
float!(f32, 0.0, 1.0);
float!(f64, 0.0, 1.0);
float!(Complex<f32>, Complex::new(0.0, 0.0), Complex::new(1.0, 0.0));

macro_rules! half {
    ($t:ty) => {
        impl DotElement for $t {
            type Acc = f32;
            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn narrow(acc: f32) -> $t {
                <$t>::from_f32(acc)
            }
        }
    };
}
half!(f16);
half!(bf16);

macro_rules! integer {
    ($($t:ty, $zero:expr, $fma:expr, $plus:expr);*) => {$(
        impl DotElement for $t {
            type Acc = $t;
            #[inline(always)]
            fn widen(self) -> $t {
                self
            }
            #[inline(always)]
            fn narrow(acc: $t) -> $t {
                acc
            }
        }
        impl DotAcc for $t {
            const ZERO: $t = $zero;
            #[inline(always)]
            fn fma(self, a: $t, b: $t) -> $t {
                $fma(self, a, b)
            }
            #[inline(always)]
            fn plus(self, a: $t) -> $t {
                $plus(self, a)
            }
            unsafe fn product(isa: Isa, panel: Panel<$t>) {
                dispatch(isa, Loops(panel));
            }
        }
    )*};
}
macro_rules! wrapping {
    ($($t:ty),*) => {
        integer!($($t, 0, |s: $t, a: $t, b: $t| s.wrapping_add(a.wrapping_mul(b)), <$t>::wrapping_add);*);
    };
}
wrapping!(i8, i16, i32, i64, u8, u16, u32, u64);
integer!(bool, false, |s, a, b| s | (a & b), |s, a| s | a);

/// Row times matrix, for types without multiply-add hardware.
struct Loops<T>(Panel<T>);

impl<T: DotAcc> Kernel for Loops<T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let p = self.0;
        let mut row = vec![T::ZERO; p.n];
        for i in 0..p.m {
            // SAFETY: the panel's result has `m` rows of `n`.
            let out = unsafe { std::slice::from_raw_parts_mut(p.out.add(i * p.n), p.n) };
            out.fill(T::ZERO);
            for k in 0..p.k as isize {
                let at = i as isize * p.a_strides[0] + k * p.a_strides[1];
                // SAFETY: inside the operand.
                let a = unsafe { *p.a.offset(at) };
                // SAFETY: inside the operand.
                let b = unsafe { p.b.offset(k * p.b_strides[0]) };
                let b = if p.b_strides[1] == 1 {
                    // SAFETY: the row is contiguous.
                    unsafe { std::slice::from_raw_parts(b, p.n) }
                } else {
                    for (j, row) in row.iter_mut().enumerate() {
                        // SAFETY: inside the operand.
                        *row = unsafe { *b.offset(j as isize * p.b_strides[1]) };
                    }
                    &row
                };
                for (out, &b) in out.iter_mut().zip(b) {
                    *out = out.fma(a, b);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "dot_tests.rs"]
mod tests;
