//! Triangular factors, the solutions they lead to, and QR.

use std::cmp::Ordering;

use faer::linalg::solvers::{Llt, PartialPivLu, Qr};
use faer::linalg::triangular_solve as triangular;
use faer::{Mat, MatMut, MatRef, Par, Side};
use num_complex::Complex32;

use crate::field::{Field, finite, hermitian};
use crate::{Matrix, Out, Outcome, write};

/// Factorizations without an iteration. A is `m` × `n`, and `k` the smaller of both.
pub trait Factors: Sized {
    /// L of a Hermitian positive definite A, whose lower triangle is read.
    fn cholesky(a: Matrix<'_, Self>, l: Out<'_, Self>) -> Outcome;
    /// X of A·X = B for a triangle A; `unit` takes its diagonal for ones.
    fn solve_triangular(
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        upper: bool,
        unit: bool,
        x: Out<'_, Self>,
    ) -> Outcome;
    /// X of A·X = B.
    fn solve(a: Matrix<'_, Self>, b: Matrix<'_, Self>, x: Out<'_, Self>) -> Outcome;
    /// L below the diagonal and U from it on; the `k` exchanges of rows, one after the other; and
    /// for each row of A its place among those of L·U.
    fn lu(a: Matrix<'_, Self>, lu: Out<'_, Self>, pivots: Out<'_, u32>, places: Out<'_, u32>);
    /// Q with `k` columns, and R with `k` rows.
    fn qr(a: Matrix<'_, Self>, q: Out<'_, Self>, r: Out<'_, Self>);
}

macro_rules! factors {
    ($($t:ty)*) => {$(
        impl Factors for $t {
            fn cholesky(a: Matrix<'_, $t>, l: Out<'_, $t>) -> Outcome {
                cholesky(a.view(), l)
            }
            fn solve_triangular(
                a: Matrix<'_, $t>,
                b: Matrix<'_, $t>,
                upper: bool,
                unit: bool,
                x: Out<'_, $t>,
            ) -> Outcome {
                solve_triangular(a.view(), b.view(), upper, unit, x)
            }
            fn solve(a: Matrix<'_, $t>, b: Matrix<'_, $t>, x: Out<'_, $t>) -> Outcome {
                solve(a.view(), b.view(), x)
            }
            fn lu(a: Matrix<'_, $t>, out: Out<'_, $t>, pivots: Out<'_, u32>, places: Out<'_, u32>) {
                lu(a.view(), out, pivots, places);
            }
            fn qr(a: Matrix<'_, $t>, q: Out<'_, $t>, r: Out<'_, $t>) {
                qr(a.view(), q, r);
            }
        }
    )*};
}

factors! { f32 f64 Complex32 }

fn cholesky<T: Field>(a: MatRef<'_, T>, out: Out<'_, T>) -> Outcome {
    let n = a.nrows();
    if n == 0 {
        return Ok(());
    }
    let a = hermitian(a);
    // The library multiplies by 1/√d, which an infinite d makes a 0 times infinity.
    let l = match finite(a.as_ref()) {
        Ok(()) => Llt::new(a.as_ref(), Side::Lower).ok().map(|llt| llt.L().to_owned()),
        Err(_) => cholesky_of_infinite(a),
    };
    let is_number = |l: &Mat<T>| (0..n).all(|i| !l[(i, i)].modulus().is_nan());
    let Some(l) = l.filter(is_number) else { return Err("is not positive definite".to_owned()) };
    write(out, n, |i, j| if j > i { T::zero_impl() } else { l[(i, j)] });
    Ok(())
}

/// Column by column; none where a pivot is not positive.
fn cholesky_of_infinite<T: Field>(mut a: Mat<T>) -> Option<Mat<T>> {
    let n = a.nrows();
    for j in 0..n {
        for k in 0..j {
            let above = T::conj_impl(&a[(j, k)]);
            for i in j..n {
                a[(i, j)] = a[(i, j)] - a[(i, k)] * above;
            }
        }
        let pivot: f64 = a[(j, j)].real().into();
        if pivot <= 0.0 {
            return None;
        }
        let root = pivot.sqrt();
        a[(j, j)] = T::from_f64_impl(root);
        for i in j + 1..n {
            a[(i, j)] = a[(i, j)].times(1.0 / root);
        }
    }
    Some(a)
}

/// Where a triangle has a 0 on its diagonal.
fn singular_at<T: Field>(triangle: MatRef<'_, T>) -> Outcome {
    match (0..triangle.nrows()).find(|&i| triangle[(i, i)].modulus() == 0.0) {
        Some(i) => Err(format!("is singular: pivot {i} is 0")),
        None => Ok(()),
    }
}

fn solve_triangle<T: Field>(a: MatRef<'_, T>, x: MatMut<'_, T>, upper: bool, unit: bool) {
    match (upper, unit) {
        (false, false) => triangular::solve_lower_triangular_in_place(a, x, Par::Seq),
        (false, true) => triangular::solve_unit_lower_triangular_in_place(a, x, Par::Seq),
        (true, false) => triangular::solve_upper_triangular_in_place(a, x, Par::Seq),
        (true, true) => triangular::solve_unit_upper_triangular_in_place(a, x, Par::Seq),
    }
}

fn solve_triangular<T: Field>(
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    upper: bool,
    unit: bool,
    out: Out<'_, T>,
) -> Outcome {
    if !unit {
        singular_at(a)?;
    }
    let (a, mut x) = (a.to_owned(), b.to_owned());
    if x.nrows() * x.ncols() > 0 {
        solve_triangle(a.as_ref(), x.as_mut(), upper, unit);
    }
    write(out, x.ncols(), |i, j| x[(i, j)]);
    Ok(())
}

/// The factors of A, and for each row of L·U which row of A it is.
struct Lu<T> {
    l: Mat<T>,
    u: Mat<T>,
    rows: Vec<usize>,
}

impl<T: Field> Lu<T> {
    fn new(a: MatRef<'_, T>) -> Self {
        let (m, n) = (a.nrows(), a.ncols());
        if m * n == 0 {
            return Lu { l: Mat::new(), u: Mat::new(), rows: (0..m).collect() };
        }
        let lu = PartialPivLu::new(a);
        let (l, u) = (lu.L(), lu.U());
        // The library divides by a pivot of 0, which leaves NaN behind.
        let is_regular = (0..m.min(n)).all(|i| u[(i, i)].modulus() > 0.0);
        if !is_regular && finite(a).is_ok() {
            return Lu::of_singular(a);
        }
        let rows = lu.P().arrays().0.to_vec();
        Lu { l: l.to_owned(), u: u.to_owned(), rows }
    }

    /// Column by column, where one without a pivot is left as it is.
    fn of_singular(a: MatRef<'_, T>) -> Self {
        let (m, n) = (a.nrows(), a.ncols());
        let k = m.min(n);
        let (mut lu, mut rows) = (a.to_owned(), (0..m).collect::<Vec<_>>());
        for c in 0..k {
            let mut pivot = c;
            for i in c + 1..m {
                if lu[(i, c)].modulus() > lu[(pivot, c)].modulus() {
                    pivot = i;
                }
            }
            if lu[(pivot, c)].modulus() == 0.0 {
                continue;
            }
            rows.swap(c, pivot);
            for j in 0..n {
                let (one, other) = (lu[(c, j)], lu[(pivot, j)]);
                (lu[(c, j)], lu[(pivot, j)]) = (other, one);
            }
            for i in c + 1..m {
                lu[(i, c)] = lu[(i, c)] / lu[(c, c)];
            }
            for j in c + 1..n {
                let above = lu[(c, j)];
                for i in c + 1..m {
                    lu[(i, j)] = lu[(i, j)] - lu[(i, c)] * above;
                }
            }
        }
        let zero = T::zero_impl();
        let l = Mat::from_fn(m, k, |i, j| match i.cmp(&j) {
            Ordering::Greater => lu[(i, j)],
            Ordering::Equal => T::one_impl(),
            Ordering::Less => zero,
        });
        Lu { l, u: Mat::from_fn(k, n, |i, j| if i > j { zero } else { lu[(i, j)] }), rows }
    }
}

fn solve<T: Field>(a: MatRef<'_, T>, b: MatRef<'_, T>, out: Out<'_, T>) -> Outcome {
    let Lu { l, u, rows } = Lu::new(a);
    singular_at(u.as_ref())?;
    let mut x = Mat::from_fn(b.nrows(), b.ncols(), |i, j| b[(rows[i], j)]);
    if x.nrows() * x.ncols() > 0 {
        solve_triangle(l.as_ref(), x.as_mut(), false, true);
        solve_triangle(u.as_ref(), x.as_mut(), true, false);
    }
    write(out, x.ncols(), |i, j| x[(i, j)]);
    Ok(())
}

fn lu<T: Field>(a: MatRef<'_, T>, out: Out<'_, T>, pivots: Out<'_, u32>, places: Out<'_, u32>) {
    let (m, n) = (a.nrows(), a.ncols());
    let Lu { l, u, rows } = Lu::new(a);
    // The exchanges that lead to this order, one after the other.
    let mut order: Vec<usize> = (0..m).collect();
    let exchanges: Vec<u32> = (0..m.min(n))
        .map(|i| {
            let place = order[i..].iter().position(|&row| row == rows[i]).map_or(i, |at| i + at);
            order.swap(i, place);
            place as u32
        })
        .collect();
    let mut inverse = vec![0u32; m];
    rows.iter().enumerate().for_each(|(i, &row)| inverse[row] = i as u32);
    write(out, n, |i, j| if i > j { l[(i, j)] } else { u[(i, j)] });
    write(pivots, 1, |i, _| exchanges[i]);
    write(places, 1, |i, _| inverse[i]);
}

fn qr<T: Field>(a: MatRef<'_, T>, q_out: Out<'_, T>, r_out: Out<'_, T>) {
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    if k == 0 {
        return;
    }
    let qr = Qr::new(a);
    let (q, r) = (qr.compute_thin_Q(), qr.thin_R());
    // The library passes over a column that is no vector of numbers: from there on nothing is one.
    let nan = T::one_impl().times(f64::NAN);
    let lost = (0..n).find(|&j| finite(a.subcols(j, 1)).is_err()).unwrap_or(n);
    // Of complex matrices, too, the diagonal of R is real, with the signs that LAPACK gives it: the library leaves the
    // head of a last row as it is, which LAPACK reflects where it is not real.
    let sign = |i: usize| {
        let head: f64 = r[(i, i)].real().into();
        let is_left = i + 1 == m && r[(i, i)].modulus() != head.abs();
        if (head < 0.0) == is_left { 1.0 } else { -1.0 }
    };
    let turns: Vec<T> = (0..k).map(|i| r[(i, i)].unturned().times(sign(i))).collect();
    let turned = |x: T, by: T| if by == T::one_impl() { x } else { x * by };
    write(q_out, k, |i, j| match j < lost {
        true => turned(q[(i, j)], T::conj_impl(&turns[j])),
        false => nan,
    });
    write(r_out, n, |i, j| match i > j {
        true => T::zero_impl(),
        false if j >= lost => nan,
        false if i == j && turns[i] != T::one_impl() => {
            T::one_impl().times(r[(i, i)].modulus() * sign(i))
        }
        false => turned(r[(i, j)], turns[i]),
    });
}
