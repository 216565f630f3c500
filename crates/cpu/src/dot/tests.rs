//! Products against the definition, for every order of strides.

use super::*;
use crate::tail::TailArgs;
use crate::threads::with_threads;
use cupola_core::backend::Kept;
use cupola_simd::{Level, with_isa_limit};
use half::{bf16, f16};
use num_complex::Complex;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Steps of a dense array `[batch, rows, cols]` whose axes lie in memory in the given order.
fn strides(sizes: [usize; 3], order: [usize; 3]) -> [isize; 3] {
    let mut strides = [0; 3];
    let mut step = 1;
    for &axis in order.iter().rev() {
        strides[axis] = step;
        step *= sizes[axis].max(1) as isize;
    }
    strides
}

fn check<T: DotElement + PartialEq + std::fmt::Debug>(
    p: &DotProblem,
    from: impl Fn(u64) -> T,
    zero: T,
    fma: impl Fn(T, T, T) -> T,
    close: impl Fn(T, T) -> bool,
) {
    let mut s = 88172645463325252u64;
    let mut random = |n: usize| -> Vec<T> {
        (0..n)
            .map(|_| {
                s ^= s << 13;
                s ^= s >> 7;
                s ^= s << 17;
                from((s >> 40) % 5)
            })
            .collect()
    };
    let a = random((p.batch * p.m * p.k).max(1));
    let b = random((p.batch * p.k * p.n).max(1));
    let mut want = Vec::new();
    for (batch, i, j) in
        (0..p.batch).flat_map(|c| (0..p.m).flat_map(move |i| (0..p.n).map(move |j| (c, i, j))))
    {
        let at = |s: [isize; 3], r: usize, c: usize| {
            (batch as isize * s[0] + r as isize * s[1] + c as isize * s[2]) as usize
        };
        want.push(
            (0..p.k)
                .fold(zero, |sum, k| fma(sum, a[at(p.a_strides, i, k)], b[at(p.b_strides, k, j)])),
        );
    }
    let run = |threads| {
        with_threads(threads, || {
            let mut out = vec![from(4); want.len()];
            let seen = Mutex::new(vec![0u8; want.len()]);
            let mark = |r: Range<usize>| seen.lock().unwrap()[r].iter_mut().for_each(|s| *s += 1);
            let finish = Finish { epilogue: Some(&mark), size: want.len(), ..Finish::default() };
            // SAFETY: the operands are dense arrays of the problem's sizes.
            unsafe { dot(p, a.as_ptr(), b.as_ptr(), Out::new(&mut out), finish, None) };
            assert!(seen.into_inner().unwrap().iter().all(|&s| s == 1));
            out
        })
    };
    let (one, two) = (run(1), run(2));
    assert_eq!(one, two, "depends on threads: {p:?}");
    for (at, (&got, &want)) in one.iter().zip(&want).enumerate() {
        assert!(close(got, want), "{p:?} at {at}: {got:?} is not {want:?}");
    }
}

fn problems() -> Vec<DotProblem> {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0]];
    let mut all = Vec::new();
    for [batch, m, k, n] in [
        [1, 5, 7, 3],
        [3, 1, 70, 40],
        [2, 40, 33, 1],
        [4, 17, 1, 19],
        [1, 70, 130, 65],
        [2, 3, 0, 4],
        [0, 3, 2, 4],
        [2, 0, 2, 4],
        [1, 1, 900, 450],
        [2, 130, 270, 35],
    ] {
        for a in orders {
            for b in orders {
                let (a, b) = (strides([batch, m, k], a), strides([batch, k, n], b));
                all.push(DotProblem { batch, m, k, n, a_strides: a, b_strides: b });
            }
        }
        let (a, b) = (strides([batch, m, k], [0, 1, 2]), strides([1, k, n], [0, 2, 1]));
        all.push(DotProblem { batch, m, k, n, a_strides: a, b_strides: [0, b[1], b[2]] });
    }
    all
}

fn each(f: impl Fn(&DotProblem)) {
    for level in [Level::Portable, Level::Avx2, Level::Avx512, Level::Avx512Bf16] {
        with_isa_limit(level, || problems().iter().for_each(&f));
    }
}

#[test]
fn floats() {
    each(|p| {
        check(p, |v| v as f32 - 2.0, 0.0, |s, a, b| s + a * b, |a, b| a == b);
        check(p, |v| v as f64 - 2.0, 0.0, |s, a, b| s + a * b, |a, b| a == b);
        let from = |v| Complex::new(v as f32 - 2.0, 1.0);
        check(p, from, Complex::ZERO, |s, a, b| s + a * b, |a, b| a == b);
    });
}

#[test]
fn halves() {
    // Sums are small integers, exact in f16; in bf16 only their rounding is compared.
    each(|p| {
        let from = |v| f16::from_f32(v as f32 - 2.0);
        check(p, from, f16::ZERO, |s, a, b| s + a * b, |a, b| a == b);
        let from = |v| bf16::from_f32(v as f32 * 0.25 - 0.5);
        let close = |a: bf16, b: bf16| (a.to_f32() - b.to_f32()).abs() <= 0.5;
        check(p, from, bf16::ZERO, |s, a, b| s + a * b, close);
    });
}

#[test]
fn integers_and_bool() {
    each(|p| {
        let same = |a, b| a == b;
        check(p, |v| v as i8 * 30, 0, |s, a, b| s.wrapping_add(a.wrapping_mul(b)), same);
        check(p, |v| v as u16, 0, |s, a, b| s + a * b, |a, b| a == b);
        check(p, |v| v as i32, 0, |s, a, b| s + a * b, |a, b| a == b);
        check(p, |v| v, 0, |s, a, b| s + a * b, |a, b| a == b);
        check(p, |v| v == 0, false, |s, a, b| s | (a & b), |a, b| a == b);
    });
}

#[test]
fn large_products_do_not_depend_on_threads() {
    for (a_strides, b_strides) in [([0, 1100, 1], [0, 1, 1100]), ([0, 1, 200], [0, 150, 1])] {
        let p = DotProblem { batch: 1, m: 200, k: 1100, n: 150, a_strides, b_strides };
        let close = |a: f32, b: f32| (a - b).abs() < 1e-2;
        check(&p, |v| v as f32 * 0.37 - 0.7, 0.0, |s, a, b| s + a * b, close);
    }
}

#[test]
fn halves_are_summed_in_float32() {
    // About 2048 products of numbers around 1, whose sums are rounded to a half type once.
    let (m, k, n) = (150, 2049, 70);
    let number = |i: usize| ((i * 7919 % 1009) as f64 - 504.0) / 252.0;
    for (a_order, b_order) in [([0, 1, 2], [0, 1, 2]), ([0, 2, 1], [0, 2, 1])] {
        let a_strides = strides([1, m, k], a_order);
        let b_strides = strides([1, k, n], b_order);
        let p = DotProblem { batch: 1, m, k, n, a_strides, b_strides };
        let a: Vec<bf16> = (0..m * k).map(|i| bf16::from_f64(number(i))).collect();
        let b: Vec<bf16> = (0..k * n).map(|i| bf16::from_f64(number(i + 13))).collect();
        for level in [Level::Portable, Level::Avx2, Level::Avx512, Level::Avx512Bf16] {
            let mut out = vec![bf16::ZERO; m * n];
            // SAFETY: the operands are dense arrays of the problem's sizes.
            with_isa_limit(level, || unsafe {
                dot(&p, a.as_ptr(), b.as_ptr(), Out::new(&mut out), Finish::default(), None);
            });
            for (at, &got) in out.iter().enumerate() {
                let (i, j) = ((at / n) as isize, (at % n) as isize);
                let terms = (0..k as isize).map(|k| {
                    let (x, y) =
                        (i * a_strides[1] + k * a_strides[2], k * b_strides[1] + j * b_strides[2]);
                    a[x as usize].to_f64() * b[y as usize].to_f64()
                });
                let (want, size) =
                    terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()));
                // Half of a last bit of bfloat16, and a few of float32 of the size of the terms.
                let allowed = want.abs() / 256.0 + size * 1e-6;
                assert!(
                    (got.to_f64() - want).abs() <= allowed,
                    "{level:?} {p:?} {at}: {got} {want}"
                );
            }
        }
    }
}

#[test]
fn right_operands_stay_packed_until_they_are_written() {
    let number = |i: usize| ((i * 7919 % 1009) as f32 - 504.0) / 252.0;
    for (m, k, n, order) in [(40, 700, 150, [0, 1, 2]), (200, 513, 96, [0, 2, 1])] {
        let a_strides = strides([1, m, k], [0, 1, 2]);
        let p = DotProblem { batch: 1, m, k, n, a_strides, b_strides: strides([1, k, n], order) };
        let a: Vec<f32> = (0..m * k).map(number).collect();
        let product = |p: &DotProblem, b: &[f32], place: Option<Place<'_>>| {
            let mut out = vec![0.0f32; p.m * n];
            let finish = Finish::default();
            // SAFETY: the operands are dense arrays of the problem's sizes.
            unsafe { dot(p, a.as_ptr(), b.as_ptr(), Out::new(&mut out), finish, place) };
            out
        };
        let mut b: Vec<f32> = (0..k * n).map(|i| number(i + 13)).collect();
        let kept = Kept::default();
        let at = b.as_ptr().addr();
        let place = Some(Place { kept: &kept, at });
        let fewer = DotProblem { m: m - 1, ..p.clone() };
        for _ in 0..2 {
            // What is not known, what is worth keeping, and what is kept.
            let want = product(&p, &b, None);
            for _ in 0..4 {
                assert_eq!(product(&p, &b, place), want);
                assert_eq!(product(&fewer, &b, place), want[..(m - 1) * n]);
            }
            // Elements that nobody is told of are not seen, which shows that something is kept.
            b.iter_mut().for_each(|x| *x += 1.0);
            assert_eq!(product(&p, &b, place), want);
            assert_ne!(product(&p, &b, None), want);
            kept.forget();
            assert_eq!(product(&p, &b, place), product(&p, &b, None));
        }
        // In another order, the same memory is another operand.
        let other =
            DotProblem { b_strides: strides([1, k, n], [0, 3 - order[1], 3 - order[2]]), ..p };
        let want = product(&other, &b, None);
        (0..3).for_each(|_| assert_eq!(product(&other, &b, place), want));
    }
}

#[test]
fn tails_are_applied_once_to_every_sum() {
    let number = |i: usize| ((i * 7919 % 1009) as f32 - 504.0) / 252.0;
    // One pass and several, whole vectors and not, one task for the columns and several, batches of small matrices; the
    // left operand where it is, copied since its rows meet in the cache, and by columns.
    let sizes = [
        (1, 9, 1, 9),
        (1, 197, 192, 577),
        (1, 70, 1024, 48),
        (1, 33, 1030, 50),
        (3, 20, 40, 17),
        (1, 9, 0, 20),
    ];
    for ((batch, m, k, n), order) in
        sizes.into_iter().flat_map(|sizes| [(sizes, [0, 1, 2]), (sizes, [0, 2, 1])])
    {
        let (a_strides, b_strides) =
            (strides([batch, m, k], order), strides([batch, k, n], [0, 1, 2]));
        let p = DotProblem { batch, m, k, n, a_strides, b_strides };
        let a: Vec<f32> = (0..batch * m * k).map(number).collect();
        let b: Vec<f32> = (0..batch * k * n).map(|i| number(i + 13)).collect();
        let bias: Vec<f32> = (0..n).map(|i| number(i + 29)).collect();
        let residual: Vec<f32> = (0..batch * m * n).map(|i| number(i + 31)).collect();
        let half = |first: *mut f32, step: usize, count: usize, width: usize| {
            for row in 0..count {
                // SAFETY: a tail is given rows that are its own.
                let row = unsafe { std::slice::from_raw_parts_mut(first.add(row * step), width) };
                row.iter_mut().for_each(|x| *x *= 0.5);
            }
        };
        let product = |tail: TailArgs<'_>| {
            let mut out = vec![0.0f32; batch * m * n];
            let finish = Finish { tail, size: out.len(), ..Finish::default() };
            // SAFETY: the operands are dense arrays of the problem's sizes.
            unsafe { dot(&p, a.as_ptr(), b.as_ptr(), Out::new(&mut out), finish, None) };
            out
        };
        let bias_at = Some(bias.as_ptr());
        for level in [Level::Portable, Level::Avx2, Level::Avx512] {
            with_isa_limit(level, || {
                let plain = product(TailArgs::default());
                let tail = TailArgs {
                    bias: bias_at,
                    low: Some(-3.0),
                    high: Some(4.0),
                    then: Some(&half),
                    ..TailArgs::default()
                };
                for (i, (got, sum)) in product(tail).into_iter().zip(&plain).enumerate() {
                    let want = (sum + bias[i % n]).clamp(-3.0, 4.0) * 0.5;
                    assert_eq!(got, want, "{level:?} {p:?} {i}");
                }
                let tail = TailArgs { residual: Some(residual.as_ptr()), ..tail };
                for (i, (got, sum)) in product(tail).into_iter().zip(&plain).enumerate() {
                    let want = (sum + bias[i % n] + residual[i]).clamp(-3.0, 4.0) * 0.5;
                    assert_eq!(got, want, "residual {level:?} {p:?} {i}");
                }
                // A tail whose function is that of the epilogue: one of the two runs, once for each element.
                let counts = [AtomicUsize::new(0), AtomicUsize::new(0)];
                let counted = |_: *mut f32, _: usize, rows: usize, width: usize| {
                    counts[0].fetch_add(rows * width, Ordering::Relaxed);
                };
                let epilogue = |range: Range<usize>| {
                    counts[1].fetch_add(range.len(), Ordering::Relaxed);
                };
                let tail = TailArgs { then: Some(&counted), ..TailArgs::default() };
                let mut out = vec![0.0f32; plain.len()];
                let finish = Finish { tail, epilogue: Some(&epilogue), size: out.len() };
                // SAFETY: the operands are dense arrays of the problem's sizes.
                unsafe { dot(&p, a.as_ptr(), b.as_ptr(), Out::new(&mut out), finish, None) };
                let counts = counts.map(AtomicUsize::into_inner);
                assert_eq!(counts, [plain.len(), 0], "{level:?} {p:?}");
                let tail = TailArgs { bias: bias_at, ..TailArgs::default() };
                for (i, (got, sum)) in product(tail).into_iter().zip(&plain).enumerate() {
                    assert_eq!(got, sum + bias[i % n], "{level:?} {p:?} {i}");
                }
            });
        }
    }
}

#[test]
fn rows_may_overlap_or_repeat() {
    let number = |i: usize| ((i * 7919 % 1009) as f32 - 504.0) / 252.0;
    let (k, n) = (100, 32);
    let b: Vec<f32> = (0..64 * k).map(number).collect();
    for (m, apart) in [(4, 1), (20, 1), (3, 0), (30, 0), (20, 7)] {
        let a: Vec<f32> = (0..m * apart + k).map(|i| number(i + 5)).collect();
        let a_strides = [0, apart as isize, 1];
        let p = DotProblem { batch: 1, m, k, n, a_strides, b_strides: [0, 64, 2] };
        let mut out = vec![0.0f32; m * n];
        let finish = Finish::default();
        // SAFETY: the operands reach no farther than their strides.
        unsafe { dot(&p, a.as_ptr(), b.as_ptr(), Out::new(&mut out), finish, None) };
        for (at, got) in out.into_iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let terms = (0..k).map(|k| f64::from(a[i * apart + k]) * f64::from(b[k * 64 + 2 * j]));
            let want: f64 = terms.sum();
            assert!((f64::from(got) - want).abs() < 1e-3, "{p:?} {at}: {got} {want}");
        }
    }
}
