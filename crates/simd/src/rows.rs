//! Products of rows with a few vectors: lanes along the sum.

use half::{bf16, f16};

use super::vector::{Load, Portable, Vector};
use super::{Element, Isa, Level};

/// `out[i * out_row + f * out_vector] = Σ a[i * a_step + k] · x[f * x_step + k]`
#[derive(Clone, Copy)]
pub struct RowProducts<T, A> {
    /// First row.
    pub a: *const T,
    /// From one row to the next.
    pub a_step: isize,
    /// Rows.
    pub rows: usize,
    /// The first vector; two elements to a float where the row's are multiplied in pairs.
    pub x: *const A,
    /// From one vector to the next.
    pub x_step: usize,
    /// Vectors.
    pub vectors: usize,
    /// Elements of a row.
    pub len: usize,
    /// The products.
    pub out: *mut A,
    /// From the product of one row to that of the next.
    pub out_row: usize,
    /// From the product with one vector to that with the next.
    pub out_vector: usize,
}

/// # Safety
/// The instruction set is present; the rows and the vectors can be read, the products written.
#[inline(always)]
pub(super) unsafe fn row_products<V: Vector, L: Load<V>>(p: RowProducts<L, V::Elem>) {
    let mut row = 0;
    while row < p.rows {
        let rows = if p.rows - row < 4 { 1 } else { 4 };
        let mut x = 0;
        while x < p.vectors {
            // SAFETY: the caller vouches for the rows and the vectors.
            x += unsafe {
                match (rows, p.vectors - x) {
                    (4, 4..) => block::<V, L, 4, 4>(&p, row, x),
                    (4, 2..) => block::<V, L, 4, 2>(&p, row, x),
                    (4, _) => block::<V, L, 4, 1>(&p, row, x),
                    (_, 4..) => block::<V, L, 1, 4>(&p, row, x),
                    (_, _) => block::<V, L, 1, 1>(&p, row, x),
                }
            };
        }
        row += rows;
    }
}

/// Gives `N`.
///
/// # Safety
/// As `row_products`, for `M` rows and `N` vectors.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices below a constant unroll into registers.
unsafe fn block<V: Vector, L: Load<V>, const M: usize, const N: usize>(
    p: &RowProducts<L, V::Elem>,
    row: usize,
    vector: usize,
) -> usize {
    // SAFETY: the caller vouches for the rows and the vectors.
    unsafe {
        let mut sums = [[V::zero(); N]; M];
        let lanes = p.len / L::EACH;
        let a = |m: usize| p.a.wrapping_offset((row + m) as isize * p.a_step);
        let x = |n: usize| p.x.add((vector + n) * p.x_step);
        let mut k = 0;
        while k + V::LANES <= lanes {
            let mut vectors = [V::zero(); N];
            for n in 0..N {
                vectors[n] = V::load(x(n).add(k));
            }
            for m in 0..M {
                let a = L::load(a(m).wrapping_add(k * L::EACH));
                for n in 0..N {
                    sums[m][n] = a.fma(vectors[n], sums[m][n]);
                }
            }
            k += V::LANES;
        }
        if k < lanes {
            for m in 0..M {
                let a = L::load_first(a(m).wrapping_add(k * L::EACH), lanes - k);
                for n in 0..N {
                    let x = V::load_first(x(n).add(k), lanes - k);
                    sums[m][n] = a.fma(x, sums[m][n]);
                }
            }
        }
        for m in 0..M {
            for n in 0..N {
                let mut sum = total(sums[m][n]);
                if lanes * L::EACH < p.len {
                    let last = L::load_odd(a(m).wrapping_add(p.len - 1), x(n).add(lanes));
                    sum += last;
                }
                *p.out.add((row + m) * p.out_row + (vector + n) * p.out_vector) = sum;
            }
        }
    }
    N
}

/// The sum of the lanes.
///
/// # Safety
/// The instruction set is present.
#[inline(always)]
pub(super) unsafe fn total<V: Vector>(sum: V) -> V::Elem {
    let mut lanes = [V::Elem::default(); 16];
    // SAFETY: no vector has more lanes.
    unsafe { sum.store(lanes.as_mut_ptr()) };
    let mut width = V::LANES / 2;
    while width > 0 {
        for l in 0..width {
            let other = lanes[l + width];
            lanes[l] += other;
        }
        width /= 2;
    }
    lanes[0]
}

/// An element type whose rows are multiplied with vectors.
pub trait InRows: Element {
    /// Multiplies rows with a few vectors.
    ///
    /// # Safety
    /// The rows and the vectors can be read, and the products written.
    unsafe fn row_products(isa: Isa, p: RowProducts<Self, Self::Acc>);
}

macro_rules! in_rows {
    ($($t:ident: $portable:ty, $avx2:ident $avx512:ident $bf16:ident;)*) => {$(
        impl InRows for $t {
            unsafe fn row_products(isa: Isa, p: RowProducts<$t, Self::Acc>) {
                #[cfg(target_arch = "x86_64")]
                {
                    use super::x86;
                    #[target_feature(enable = "avx2,fma,f16c")]
                    unsafe fn avx2(p: RowProducts<$t, <$t as Element>::Acc>) {
                        // SAFETY: the caller vouches for the rows and vectors.
                        unsafe { row_products::<x86::$avx2, $t>(p) }
                    }
                    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                    unsafe fn avx512(p: RowProducts<$t, <$t as Element>::Acc>) {
                        // SAFETY: as above.
                        unsafe { row_products::<x86::$avx512, $t>(p) }
                    }
                    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
                    #[target_feature(enable = "avx2,fma,f16c")]
                    unsafe fn avx512_bf16(p: RowProducts<$t, <$t as Element>::Acc>) {
                        // SAFETY: as above.
                        unsafe { row_products::<x86::$bf16, $t>(p) }
                    }
                    match isa.level() {
                        // SAFETY: an `Isa` of this level exists only where its features are.
                        Level::Avx512Bf16 => return unsafe { avx512_bf16(p) },
                        // SAFETY: as above.
                        Level::Avx512 => return unsafe { avx512(p) },
                        // SAFETY: as above.
                        Level::Avx2 => return unsafe { avx2(p) },
                        Level::Portable => {}
                    }
                }
                let _ = isa;
                // SAFETY: as above.
                unsafe { row_products::<$portable, $t>(p) }
            }
        }
    )*};
}
in_rows! {
    f32: Portable<f32, 4>, F32x8 F32x16 F32x16;
    f64: Portable<f64, 2>, F64x4 F64x8 F64x8;
    f16: Portable<f32, 4>, F32x8 F32x16 F32x16;
    bf16: Portable<f32, 4>, F32x8 F32x16 Bf16Pairs;
}
