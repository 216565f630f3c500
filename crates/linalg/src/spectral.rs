//! Singular values and eigenvalues.

use faer::linalg::solvers::{Eigen, SelfAdjointEigen, Svd};
use faer::{Mat, MatRef, Side};
use num_complex::{Complex, Complex32};

use crate::field::{Field, finite, hermitian};
use crate::{Matrix, Out, Outcome, write};

/// A vector's first element of this share of its largest one is made positive.
const LARGE: f64 = 0.5;

/// Decompositions by an iteration. A is `m` × `n`, and `k` the smaller of both.
pub trait Spectral: Sized {
    /// The parts of a number.
    type Part;

    /// U, the singular values from the largest on, and Vᴴ; `k` vectors on each side, or a whole
    /// basis where it `is_full`.
    fn svd(
        a: Matrix<'_, Self>,
        is_full: bool,
        u: Out<'_, Self>,
        s: Out<'_, Self::Part>,
        vh: Out<'_, Self>,
    ) -> Outcome;
    /// The `k` singular values, from the largest on.
    fn singular_values(a: Matrix<'_, Self>, s: Out<'_, Self::Part>) -> Outcome;
    /// The pseudoinverse: singular values of at most 10·max(m, n)·ε of the largest count as 0.
    fn pinv(a: Matrix<'_, Self>, inverse: Out<'_, Self>) -> Outcome;
    /// Eigenvalues of a Hermitian A, whose lower triangle is read, from the smallest on; and its
    /// eigenvectors as columns, where they are wanted.
    fn eigh(
        a: Matrix<'_, Self>,
        values: Out<'_, Self::Part>,
        vectors: Option<Out<'_, Self>>,
    ) -> Outcome;
    /// Eigenvalues of a square A, and its eigenvectors as columns of length 1, where they are
    /// wanted.
    fn eig(
        a: Matrix<'_, Self>,
        values: Out<'_, Complex32>,
        vectors: Option<Out<'_, Complex32>>,
    ) -> Outcome;
}

/// Eigenvalues, and eigenvectors as columns.
type Eigenpairs = (Vec<Complex32>, Mat<Complex<f64>>);

macro_rules! spectral {
    ($($t:ty, $part:ty, $eigen:path;)*) => {$(
        impl Spectral for $t {
            type Part = $part;

            fn svd(
                a: Matrix<'_, $t>,
                is_full: bool,
                u: Out<'_, $t>,
                s: Out<'_, $part>,
                vh: Out<'_, $t>,
            ) -> Outcome {
                svd(a.view(), is_full, u, s, vh)
            }
            fn singular_values(a: Matrix<'_, $t>, s: Out<'_, $part>) -> Outcome {
                singular_values(a.view(), s)
            }
            fn pinv(a: Matrix<'_, $t>, inverse: Out<'_, $t>) -> Outcome {
                pinv(a.view(), inverse)
            }
            fn eigh(
                a: Matrix<'_, $t>,
                values: Out<'_, $part>,
                vectors: Option<Out<'_, $t>>,
            ) -> Outcome {
                eigh(a.view(), values, vectors)
            }
            fn eig(
                a: Matrix<'_, $t>,
                values: Out<'_, Complex32>,
                vectors: Option<Out<'_, Complex32>>,
            ) -> Outcome {
                let a = a.view();
                finite(a)?;
                if a.nrows() == 0 {
                    return Ok(());
                }
                let Some(vectors) = vectors else {
                    let found = a.eigenvalues().map_err(|_| stuck())?;
                    write(values, 1, |i, _| narrow(found[i]));
                    return Ok(());
                };
                let eigen = $eigen(a).map_err(|_| stuck())?;
                eig(gathered(eigen.S().column_vector().iter().copied(), eigen.U()), values, vectors);
                Ok(())
            }
        }
    )*};
}

spectral! {
    f32, f32, Eigen::new_from_real;
    f64, f64, Eigen::new_from_real;
    Complex32, f32, Eigen::new;
}

fn narrow<R: Into<f64>>(v: Complex<R>) -> Complex32 {
    Complex32::new(v.re.into() as f32, v.im.into() as f32)
}

/// Eigenvalues and eigenvectors in the precisions that they are worked on in.
fn gathered<R: Into<f64> + Copy>(
    values: impl Iterator<Item = Complex<R>>,
    vectors: MatRef<'_, Complex<R>>,
) -> Eigenpairs {
    let vectors = Mat::from_fn(vectors.nrows(), vectors.ncols(), |i, j| {
        Complex::new(vectors[(i, j)].re.into(), vectors[(i, j)].im.into())
    });
    (values.map(narrow).collect(), vectors)
}

/// The sign or phase that makes the first large element of column `j` positive.
fn turn<T: Field>(vectors: MatRef<'_, T>, j: usize) -> T {
    let largest = (0..vectors.nrows()).map(|i| vectors[(i, j)].modulus()).fold(0.0, f64::max);
    let first = (0..vectors.nrows()).find(|&i| vectors[(i, j)].modulus() >= LARGE * largest);
    first.map_or(T::one_impl(), |i| vectors[(i, j)].unturned())
}

fn stuck() -> String {
    "leads to no end: the iteration does not converge".to_owned()
}

fn singular_values<T: Field>(a: MatRef<'_, T>, out: Out<'_, T::Part>) -> Outcome {
    finite(a)?;
    if a.nrows() * a.ncols() == 0 {
        return Ok(());
    }
    let values = a.singular_values().map_err(|_| stuck())?;
    write(out, 1, |i, _| values[i]);
    Ok(())
}

fn svd<T: Field>(
    a: MatRef<'_, T>,
    is_full: bool,
    u_out: Out<'_, T>,
    s_out: Out<'_, T::Part>,
    vh_out: Out<'_, T>,
) -> Outcome {
    finite(a)?;
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    if k == 0 {
        let unit = |i: usize, j: usize| if i == j { T::one_impl() } else { T::zero_impl() };
        if is_full {
            write(u_out, m, unit);
            write(vh_out, n, unit);
        }
        return Ok(());
    }
    let svd = if is_full { Svd::new(a) } else { Svd::new_thin(a) }.map_err(|_| stuck())?;
    let (u, v, s) = (svd.U(), svd.V(), svd.S().column_vector());
    // The columns of both turn together.
    let turns: Vec<T> = (0..u.ncols()).map(|j| turn(u, j)).collect();
    let others: Vec<T> =
        (0..v.ncols()).map(|j| if j < k { turns[j] } else { turn(v, j) }).collect();
    write(u_out, u.ncols(), |i, j| u[(i, j)] * turns[j]);
    write(s_out, 1, |i, _| s[i].real());
    write(vh_out, n, |i, j| T::conj_impl(&(v[(j, i)] * others[i])));
    Ok(())
}

fn pinv<T: Field>(a: MatRef<'_, T>, out: Out<'_, T>) -> Outcome {
    finite(a)?;
    let (m, n) = (a.nrows(), a.ncols());
    if m * n == 0 {
        return Ok(());
    }
    let svd = Svd::new_thin(a).map_err(|_| stuck())?;
    let (u, v, s) = (svd.U(), svd.V(), svd.S().column_vector());
    let least = 10.0 * m.max(n) as f64 * T::EPSILON * s[0].modulus();
    let inverse = |j: usize| match s[j].modulus() {
        size if size > least => 1.0 / size,
        _ => 0.0,
    };
    let scaled = Mat::from_fn(n, m.min(n), |i, j| v[(i, j)].times(inverse(j)));
    let product = scaled * u.adjoint();
    write(out, m, |i, j| product[(i, j)]);
    Ok(())
}

fn eigh<T: Field>(
    a: MatRef<'_, T>,
    values_out: Out<'_, T::Part>,
    vectors_out: Option<Out<'_, T>>,
) -> Outcome {
    let n = a.nrows();
    if n == 0 {
        return Ok(());
    }
    let a = hermitian(a);
    finite(a.as_ref())?;
    let Some(vectors_out) = vectors_out else {
        let values = a.self_adjoint_eigenvalues(Side::Lower).map_err(|_| stuck())?;
        write(values_out, 1, |i, _| values[i]);
        return Ok(());
    };
    let eigen = SelfAdjointEigen::new(a.as_ref(), Side::Lower).map_err(|_| stuck())?;
    let (values, vectors) = (eigen.S().column_vector(), eigen.U());
    let turns: Vec<T> = (0..n).map(|j| turn(vectors, j)).collect();
    write(values_out, 1, |i, _| values[i].real());
    write(vectors_out, n, |i, j| vectors[(i, j)] * turns[j]);
    Ok(())
}

/// Writes eigenvalues and eigenvectors; these with length 1 and a positive first large element.
fn eig(
    (values, columns): Eigenpairs,
    values_out: Out<'_, Complex32>,
    vectors_out: Out<'_, Complex32>,
) {
    let n = values.len();
    write(values_out, 1, |i, _| values[i]);
    let factors: Vec<Complex<f64>> = (0..n)
        .map(|j| {
            let size = |i: usize| columns[(i, j)].norm();
            let length = (0..n).map(|i| size(i).powi(2)).sum::<f64>().sqrt();
            let largest = (0..n).map(size).fold(0.0, f64::max);
            let first = (0..n).find(|&i| size(i) >= LARGE * largest).unwrap_or(0);
            match size(first) {
                0.0 => Complex::ONE,
                size => columns[(first, j)].conj() / (size * length),
            }
        })
        .collect();
    write(vectors_out, n, |i, j| narrow(columns[(i, j)] * factors[j]));
}
