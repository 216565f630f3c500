//! What each element type does for a product.

use cupola_simd::half::{c32_to_c64, c64_to_c32};
use cupola_simd::{Isa, Kernel, Out, dispatch};
use gemm::Parallelism;
use half::{bf16, f16};
use num_complex::Complex;

use super::vector::MatVec;
use super::{DotProblem, Panel, Place, few, matrix, panels};
use crate::memory::filled;
use crate::op::Finish;

/// An element type of matrix products.
#[allow(private_interfaces)]
pub trait DotElement: Copy + Send + Sync + 'static {
    /// Computes a product.
    ///
    /// # Safety
    /// Every element that the sizes and strides of `p` reach can be read.
    #[doc(hidden)]
    unsafe fn product(
        isa: Isa,
        p: &DotProblem,
        a: *const Self,
        b: *const Self,
        out: Out<'_, Self>,
        finish: Finish<'_>,
        place: Option<Place<'_>>,
    );
}

/// Arithmetic of element types that have no tiles.
pub(super) trait Ring: DotElement {
    const ZERO: Self;
    /// `self + a * b`
    fn fma(self, a: Self, b: Self) -> Self;
}

macro_rules! float {
    ($($t:ty),*) => {$(
        #[allow(private_interfaces)]
        impl DotElement for $t {
            unsafe fn product(
                isa: Isa,
                p: &DotProblem,
                a: *const $t,
                b: *const $t,
                out: Out<'_, $t>,
                finish: Finish<'_>,
                place: Option<Place<'_>>,
            ) {
                // SAFETY: the caller vouches for the operands.
                unsafe {
                    if !few::product(isa, p, a, b, out, finish) {
                        matrix::product(isa, p, a, b, out, finish, place);
                    }
                }
            }
        }
    )*};
}
float!(f32, f64, f16, bf16);

macro_rules! ring {
    ($t:ty, $zero:expr, |$s:ident, $a:ident, $b:ident| $fma:expr, $product:ident) => {
        #[allow(private_interfaces)]
        impl DotElement for $t {
            unsafe fn product(
                isa: Isa,
                p: &DotProblem,
                a: *const $t,
                b: *const $t,
                out: Out<'_, $t>,
                finish: Finish<'_>,
                _: Option<Place<'_>>,
            ) {
                // SAFETY: the caller vouches for the operands.
                unsafe {
                    if p.n == 1 {
                        panels(p, a, b, out, finish.epilogue, &|panel| {
                            dispatch(isa, MatVec(panel))
                        });
                    } else {
                        panels(p, a, b, out, finish.epilogue, &|panel| $product(isa, panel));
                    }
                }
            }
        }

        impl Ring for $t {
            const ZERO: $t = $zero;
            #[inline(always)]
            fn fma(self, $a: $t, $b: $t) -> $t {
                let $s = self;
                $fma
            }
        }
    };
}
macro_rules! integers {
    ($($t:ty),*) => {$(
        ring!($t, 0, |s, a, b| s.wrapping_add(a.wrapping_mul(b)), loops);
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);
ring!(bool, false, |s, a, b| s | (a & b), loops);
ring!(Complex<f32>, Complex::new(0.0, 0.0), |s, a, b| s + a * b, complex);

fn complex(_: Isa, p: Panel<Complex<f32>>) {
    let ([a_rs, a_cs], [b_rs, b_cs]) = (p.a_strides, p.b_strides);
    let (zero, one) = (Complex::new(0.0, 0.0), Complex::new(1.0, 0.0));
    // SAFETY: a panel's operands and result have its sizes.
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
            zero,
            one,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[allow(private_interfaces)]
impl DotElement for Complex<f16> {
    unsafe fn product(
        isa: Isa,
        p: &DotProblem,
        a: *const Complex<f16>,
        b: *const Complex<f16>,
        out: Out<'_, Complex<f16>>,
        finish: Finish<'_>,
        _: Option<Place<'_>>,
    ) {
        // SAFETY: the caller vouches for the operands.
        unsafe { panels(p, a, b, out, finish.epilogue, &|panel| half_complex(isa, panel)) }
    }
}

/// A product in `f32`, of operands that are widened first.
fn half_complex(isa: Isa, p: Panel<Complex<f16>>) {
    let wide = |from: *const Complex<f16>, [rs, cs]: [isize; 2], rows: usize, columns: usize| {
        let at = |i: usize| (i / columns) as isize * rs + (i % columns) as isize * cs;
        // SAFETY: a panel's operands have its sizes.
        let read = |i: usize| unsafe { *from.offset(at(i)) };
        let mut all = filled(Complex::new(0.0, 0.0), rows * columns);
        all.iter_mut().enumerate().for_each(|(i, to)| *to = c32_to_c64(read(i)));
        all
    };
    let (a, b) = (wide(p.a, p.a_strides, p.m, p.k), wide(p.b, p.b_strides, p.k, p.n));
    let mut out = filled(Complex::new(0.0, 0.0), p.m * p.n);
    complex(
        isa,
        Panel {
            m: p.m,
            k: p.k,
            n: p.n,
            a: a.as_ptr(),
            a_strides: [p.k as isize, 1],
            b: b.as_ptr(),
            b_strides: [p.n as isize, 1],
            out: out.as_mut_ptr(),
        },
    );
    // SAFETY: the panel's result has `m` rows of `n`.
    let to = unsafe { std::slice::from_raw_parts_mut(p.out, p.m * p.n) };
    to.iter_mut().zip(out).for_each(|(to, z)| *to = c64_to_c32(z));
}

fn loops<T: Ring>(isa: Isa, panel: Panel<T>) {
    dispatch(isa, Loops(panel));
}

/// Row times matrix, for types without multiply-add hardware.
struct Loops<T>(Panel<T>);

impl<T: Ring> Kernel for Loops<T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let p = self.0;
        let mut row = filled(T::ZERO, p.n);
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
