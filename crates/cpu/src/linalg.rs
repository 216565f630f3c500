//! Factorizations of matrices, through `faer`.
//!
//! Each matrix of a batch is copied to memory of its own, where it lies as the library wants it, so
//! that results do not depend on where operands are; and is one thread's, so that they do not depend
//! on the number of threads. Vectors that are determined up to a sign or a phase get the one that
//! makes their first large element positive.

use std::cmp::Ordering;
use std::ops::Div;
use std::sync::Mutex;

use cupola_core::backend::{Fails, Segment};
use cupola_core::prim::{Linalg, Vectors};
use cupola_core::{DType, Error, Result, fork};
use faer::linalg::solvers::{Eigen, Llt, PartialPivLu, Qr, SelfAdjointEigen, Svd};
use faer::linalg::triangular_solve as triangular;
use faer::traits::ComplexField;
use faer::{Mat, MatMut, MatRef, Par, Side};
use num_complex::{Complex, Complex32};

use crate::contiguous::{Contiguous, Source};
use crate::memory::expect_memory;
use crate::op::{Finish, Io, OpKernel};
use crate::threads::parallel_for;

/// Elements that are worth a chunk of their own.
const CHUNK: usize = 1 << 10;
/// Copies of a matrix that a factorization makes at most.
const COPIES: usize = 8;
/// A vector's first element of this share of its largest one is made positive.
const LARGE: f64 = 0.5;

/// A [`Linalg`] that is ready to run.
pub struct LinalgKernel {
    op: Linalg,
    dtype: DType,
    inputs: Vec<Contiguous>,
    /// How many matrices.
    count: usize,
    /// Rows and columns of A, and columns of B.
    sizes: [usize; 3],
    /// Elements that each output has for a matrix.
    outputs: Vec<usize>,
}

impl LinalgKernel {
    /// Prepares for the operands of `segment`.
    pub fn new(op: &Linalg, segment: &Segment) -> Result<Self> {
        let a = &segment.inputs[0].aval;
        let rank = a.shape.rank();
        let size = a.shape[rank - 2].max(a.shape[rank - 1]);
        let square = size.saturating_mul(size).saturating_mul(a.dtype.size());
        expect_memory(square.saturating_mul(COPIES), "a factorization")?;
        let count: usize = a.shape[..rank - 2].iter().product();
        let columns = segment.inputs.get(1).map_or(0, |b| b.aval.shape[rank - 1]);
        Ok(LinalgKernel {
            op: *op,
            dtype: a.dtype,
            inputs: segment.inputs.iter().map(Contiguous::new).collect::<Result<_>>()?,
            count,
            sizes: [a.shape[rank - 2], a.shape[rank - 1], columns],
            outputs: (segment.outputs.iter())
                .map(|o| o.aval.shape[rank - 2..].iter().product())
                .collect(),
        })
    }

    /// # Safety
    /// The operands can be read and written, and are of `T`.
    unsafe fn each<T: Field>(&self, io: &Io) -> Result<()> {
        let dense = |(input, &ptr): (&Contiguous, &*const u8)| {
            // SAFETY: the caller vouches for the input.
            unsafe { input.dense(ptr) }
        };
        let dense = self.inputs.iter().zip(&io.inputs).map(dense).collect::<Result<Vec<_>>>()?;
        let [m, n, columns] = self.sizes;
        let a = Source(dense[0].ptr::<T>());
        let b = Source(dense.get(1).map_or(std::ptr::null(), |b| b.ptr::<T>()));
        let outputs: Vec<Source<u8>> =
            io.outputs.iter().map(|out| Source(out.cast_const())).collect();
        let per = (CHUNK / (m * n).max(1)).max(1);
        // The first of the batch that fails gives the error, whichever thread meets it.
        let failure: Mutex<Option<(usize, String)>> = Mutex::new(None);
        parallel_for(self.count.div_ceil(per), |chunk| {
            for i in chunk * per..((chunk + 1) * per).min(self.count) {
                // SAFETY: the inputs have as many matrices, without gaps.
                let (a, b) = unsafe { (matrix(a.get(), i, m, n), matrix(b.get(), i, n, columns)) };
                let outputs = Outputs { places: &outputs, sizes: &self.outputs, matrix: i };
                // SAFETY: each matrix of the outputs is written once.
                if let Err(reason) = unsafe { compute(self.op, a, b, &outputs) } {
                    let mut failure = fork::lock(&failure);
                    if failure.as_ref().is_none_or(|(first, _)| i < *first) {
                        *failure = Some((i, reason));
                    }
                    return;
                }
            }
        });
        match failure.into_inner() {
            Ok(None) => Ok(()),
            Ok(Some((i, reason))) => {
                let which =
                    if self.count > 1 { format!("matrix {i} ") } else { "the matrix ".into() };
                Err(Error::numeric(self.op.name(), which + &reason))
            }
            Err(_) => Err(Error::Device(format!("{} did not come to its end", self.op.name()))),
        }
    }
}

impl OpKernel for LinalgKernel {
    fn fails(&self) -> Fails {
        match self.op {
            Linalg::Lu | Linalg::Qr => Fails::Never,
            Linalg::Cholesky
            | Linalg::SolveTriangular { .. }
            | Linalg::Solve
            | Linalg::Svd(_)
            | Linalg::Eigh { .. }
            | Linalg::Eig { .. }
            | Linalg::Pinv => Fails::Anywhere,
        }
    }

    unsafe fn run(&self, io: &Io, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the operands, and the dtype says what they are.
        unsafe {
            match self.dtype {
                DType::F32 => self.each::<f32>(io)?,
                DType::F64 => self.each::<f64>(io)?,
                DType::C64 => self.each::<Complex32>(io)?,
                other => {
                    return Err(Error::dtype(self.op.name(), format!("does not take {other}")));
                }
            }
        }
        finish.all();
        Ok(())
    }
}

/// Matrix `i` of a batch.
///
/// # Safety
/// The batch has it.
unsafe fn matrix<'a, T>(x: *const T, i: usize, m: usize, n: usize) -> MatRef<'a, T> {
    let elements = match m * n {
        0 => &[][..],
        // SAFETY: the caller vouches for it.
        size => unsafe { std::slice::from_raw_parts(x.add(i * size), size) },
    };
    MatRef::from_row_major_slice(elements, m, n)
}

/// Where the results for a matrix belong.
struct Outputs<'a> {
    places: &'a [Source<u8>],
    sizes: &'a [usize],
    matrix: usize,
}

impl Outputs<'_> {
    /// Writes rows of `columns` numbers to an output.
    ///
    /// # Safety
    /// The output is of `T`, and nobody else uses this matrix of it.
    unsafe fn write<T>(&self, output: usize, columns: usize, of: impl Fn(usize, usize) -> T) {
        let size = self.sizes[output];
        let place = self.places[output].get().cast_mut().cast::<T>();
        for i in 0..size {
            // SAFETY: the caller vouches for the output.
            unsafe { place.add(self.matrix * size + i).write(of(i / columns, i % columns)) };
        }
    }
}

/// Numbers that matrices have.
trait Field:
    ComplexField<Real = Self::Part> + Div<Output = Self> + Copy + Send + Sync + 'static
{
    /// The parts of it.
    type Part: Copy + Send + Sync + 'static;

    /// |x|.
    fn modulus(self) -> f64;
    /// The real part.
    fn real(self) -> Self::Part;
    /// The number times one that `f64` holds.
    fn times(self, by: f64) -> Self;
    /// What makes the number real and not negative: its sign or phase, conjugated.
    fn unturned(self) -> Self;
    /// The distance from 1 to the next number.
    const EPSILON: f64;

    /// Eigenvalues and, where they are wanted, eigenvectors.
    fn eigen(a: MatRef<'_, Self>, vectors: bool) -> Option<Eigenpairs>;
}

macro_rules! reals {
    ($($t:ident)*) => {$(
        impl Field for $t {
            type Part = $t;
            const EPSILON: f64 = $t::EPSILON as f64;

            fn modulus(self) -> f64 {
                f64::from(self.abs())
            }
            fn real(self) -> $t {
                self
            }
            fn times(self, by: f64) -> $t {
                (f64::from(self) * by) as $t
            }
            fn unturned(self) -> $t {
                if self < 0.0 { -1.0 } else { 1.0 }
            }
            fn eigen(
                a: MatRef<'_, $t>,
                vectors: bool,
            ) -> Option<Eigenpairs> {
                if !vectors {
                    let values = a.eigenvalues().ok()?;
                    return Some((values.into_iter().map(narrow).collect(), Mat::new()));
                }
                let eigen = Eigen::new_from_real(a).ok()?;
                Some(gathered(eigen.S().column_vector().iter().copied(), eigen.U()))
            }
        }
    )*};
}

reals! { f32 f64 }

impl Field for Complex32 {
    type Part = f32;
    const EPSILON: f64 = f32::EPSILON as f64;

    fn modulus(self) -> f64 {
        f64::from(self.re).hypot(f64::from(self.im))
    }
    fn real(self) -> f32 {
        self.re
    }
    fn times(self, by: f64) -> Complex32 {
        Complex32::new(self.re.times(by), self.im.times(by))
    }
    fn unturned(self) -> Complex32 {
        match self.modulus() {
            0.0 => Complex32::ONE,
            size => self.conj().times(1.0 / size),
        }
    }
    fn eigen(a: MatRef<'_, Complex32>, vectors: bool) -> Option<Eigenpairs> {
        if !vectors {
            return Some((a.eigenvalues().ok()?, Mat::new()));
        }
        let eigen = Eigen::new(a).ok()?;
        Some(gathered(eigen.S().column_vector().iter().copied(), eigen.U()))
    }
}

/// Writes what `op` gives for a matrix, or says what is wrong with it.
///
/// # Safety
/// The outputs are those of the op for matrices of this field.
unsafe fn compute<T: Field>(
    op: Linalg,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    outputs: &Outputs<'_>,
) -> Outcome {
    // SAFETY: the caller vouches for the outputs.
    unsafe {
        match op {
            Linalg::Cholesky => cholesky(a, outputs),
            Linalg::SolveTriangular { upper, unit } => solve_triangular(a, b, upper, unit, outputs),
            Linalg::Solve => solve(a, b, outputs),
            Linalg::Lu => {
                lu(a, outputs);
                Ok(())
            }
            Linalg::Qr => {
                qr(a, outputs);
                Ok(())
            }
            Linalg::Pinv => pinv(a, outputs),
            Linalg::Svd(vectors) => svd(a, vectors, outputs),
            Linalg::Eigh { vectors } => eigh(a, vectors, outputs),
            Linalg::Eig { vectors } => eig(a, vectors, outputs),
        }
    }
}

/// Eigenvalues, and eigenvectors as columns.
type Eigenpairs = (Vec<Complex32>, Mat<Complex<f64>>);

/// Nothing, or what is wrong with a matrix.
type Outcome = std::result::Result<(), String>;

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

/// The Hermitian matrix of a lower triangle; the other one is not read.
fn hermitian<T: Field>(a: MatRef<'_, T>) -> Mat<T> {
    Mat::from_fn(a.nrows(), a.nrows(), |i, j| match i.cmp(&j) {
        Ordering::Greater => a[(i, j)],
        Ordering::Equal => T::from_real_impl(&T::real_part_impl(&a[(i, i)])),
        Ordering::Less => T::conj_impl(&a[(j, i)]),
    })
}

unsafe fn cholesky<T: Field>(a: MatRef<'_, T>, outputs: &Outputs<'_>) -> Outcome {
    let n = a.nrows();
    let llt = match n {
        0 => return Ok(()),
        _ => Llt::new(hermitian(a).as_ref(), Side::Lower),
    };
    let llt = llt.map_err(|_| "is not positive definite".to_owned())?;
    let l = llt.L();
    if (0..n).any(|i| l[(i, i)].modulus().is_nan()) {
        return Err("is not positive definite".to_owned());
    }
    // SAFETY: the caller vouches for the outputs.
    unsafe { outputs.write(0, n, |i, j| if j > i { T::zero_impl() } else { l[(i, j)] }) };
    Ok(())
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

unsafe fn solve_triangular<T: Field>(
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    upper: bool,
    unit: bool,
    outputs: &Outputs<'_>,
) -> Outcome {
    if !unit {
        singular_at(a)?;
    }
    let (a, mut x) = (a.to_owned(), b.to_owned());
    if x.nrows() * x.ncols() > 0 {
        solve_triangle(a.as_ref(), x.as_mut(), upper, unit);
    }
    // SAFETY: the caller vouches for the outputs.
    unsafe { outputs.write(0, x.ncols(), |i, j| x[(i, j)]) };
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

unsafe fn solve<T: Field>(a: MatRef<'_, T>, b: MatRef<'_, T>, outputs: &Outputs<'_>) -> Outcome {
    let Lu { l, u, rows } = Lu::new(a);
    singular_at(u.as_ref())?;
    let mut x = Mat::from_fn(b.nrows(), b.ncols(), |i, j| b[(rows[i], j)]);
    if x.nrows() * x.ncols() > 0 {
        solve_triangle(l.as_ref(), x.as_mut(), false, true);
        solve_triangle(u.as_ref(), x.as_mut(), true, false);
    }
    // SAFETY: the caller vouches for the outputs.
    unsafe { outputs.write(0, x.ncols(), |i, j| x[(i, j)]) };
    Ok(())
}

unsafe fn lu<T: Field>(a: MatRef<'_, T>, outputs: &Outputs<'_>) {
    let (m, n) = (a.nrows(), a.ncols());
    let Lu { l, u, rows } = Lu::new(a);
    // The exchanges that lead to this order, one after the other.
    let mut order: Vec<usize> = (0..m).collect();
    let pivots: Vec<u32> = (0..m.min(n))
        .map(|i| {
            let place = order[i..].iter().position(|&row| row == rows[i]).map_or(i, |at| i + at);
            order.swap(i, place);
            place as u32
        })
        .collect();
    let mut places = vec![0u32; m];
    rows.iter().enumerate().for_each(|(i, &row)| places[row] = i as u32);
    // SAFETY: the caller vouches for the outputs.
    unsafe {
        outputs.write(0, n, |i, j| if i > j { l[(i, j)] } else { u[(i, j)] });
        outputs.write(1, 1, |i, _| pivots[i]);
        outputs.write(2, 1, |i, _| places[i]);
    }
}

unsafe fn qr<T: Field>(a: MatRef<'_, T>, outputs: &Outputs<'_>) {
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    if k == 0 {
        return;
    }
    let qr = Qr::new(a);
    let (q, r) = (qr.compute_thin_Q(), qr.thin_R());
    // SAFETY: the caller vouches for the outputs.
    unsafe {
        outputs.write(0, k, |i, j| q[(i, j)]);
        outputs.write(1, n, |i, j| if i > j { T::zero_impl() } else { r[(i, j)] });
    }
}

/// The sign or phase that makes the first large element of column `j` positive.
fn turn<T: Field>(vectors: MatRef<'_, T>, j: usize) -> T {
    let largest = (0..vectors.nrows()).map(|i| vectors[(i, j)].modulus()).fold(0.0, f64::max);
    let first = (0..vectors.nrows()).find(|&i| vectors[(i, j)].modulus() >= LARGE * largest);
    first.map_or(T::one_impl(), |i| vectors[(i, j)].unturned())
}

fn finite<T: Field>(a: MatRef<'_, T>) -> Outcome {
    let all = (0..a.nrows()).all(|i| (0..a.ncols()).all(|j| a[(i, j)].modulus().is_finite()));
    if all { Ok(()) } else { Err("has an element that is not finite".to_owned()) }
}

fn stuck() -> String {
    "leads to no end: the iteration does not converge".to_owned()
}

unsafe fn svd<T: Field>(a: MatRef<'_, T>, vectors: Vectors, outputs: &Outputs<'_>) -> Outcome {
    finite(a)?;
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    if k == 0 {
        let unit = |i: usize, j: usize| if i == j { T::one_impl() } else { T::zero_impl() };
        if vectors == Vectors::Full {
            // SAFETY: the caller vouches for the outputs.
            unsafe {
                outputs.write(0, m, unit);
                outputs.write(2, n, unit);
            }
        }
        return Ok(());
    }
    if vectors == Vectors::None {
        let values = a.singular_values().map_err(|_| stuck())?;
        // SAFETY: as above.
        unsafe { outputs.write(0, 1, |i, _| values[i]) };
        return Ok(());
    }
    let svd = match vectors {
        Vectors::Full => Svd::new(a),
        Vectors::Thin | Vectors::None => Svd::new_thin(a),
    };
    let svd = svd.map_err(|_| stuck())?;
    let (u, v, s) = (svd.U(), svd.V(), svd.S().column_vector());
    // The columns of both turn together.
    let turns: Vec<T> = (0..u.ncols()).map(|j| turn(u, j)).collect();
    let others: Vec<T> =
        (0..v.ncols()).map(|j| if j < k { turns[j] } else { turn(v, j) }).collect();
    // SAFETY: as above.
    unsafe {
        outputs.write(0, u.ncols(), |i, j| u[(i, j)] * turns[j]);
        outputs.write(1, 1, |i, _| s[i].real());
        outputs.write(2, n, |i, j| T::conj_impl(&(v[(j, i)] * others[i])));
    }
    Ok(())
}

unsafe fn pinv<T: Field>(a: MatRef<'_, T>, outputs: &Outputs<'_>) -> Outcome {
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
    // SAFETY: the caller vouches for the outputs.
    unsafe { outputs.write(0, m, |i, j| product[(i, j)]) };
    Ok(())
}

unsafe fn eigh<T: Field>(a: MatRef<'_, T>, vectors: bool, outputs: &Outputs<'_>) -> Outcome {
    let n = a.nrows();
    if n == 0 {
        return Ok(());
    }
    let a = hermitian(a);
    finite(a.as_ref())?;
    if !vectors {
        let values = a.self_adjoint_eigenvalues(Side::Lower).map_err(|_| stuck())?;
        // SAFETY: the caller vouches for the outputs.
        unsafe { outputs.write(0, 1, |i, _| values[i]) };
        return Ok(());
    }
    let eigen = SelfAdjointEigen::new(a.as_ref(), Side::Lower).map_err(|_| stuck())?;
    let (values, vectors) = (eigen.S().column_vector(), eigen.U());
    let turns: Vec<T> = (0..n).map(|j| turn(vectors, j)).collect();
    // SAFETY: as above.
    unsafe {
        outputs.write(0, 1, |i, _| values[i].real());
        outputs.write(1, n, |i, j| vectors[(i, j)] * turns[j]);
    }
    Ok(())
}

unsafe fn eig<T: Field>(a: MatRef<'_, T>, vectors: bool, outputs: &Outputs<'_>) -> Outcome {
    finite(a)?;
    let n = a.nrows();
    if n == 0 {
        return Ok(());
    }
    let (values, columns) = T::eigen(a, vectors).ok_or_else(stuck)?;
    // SAFETY: the caller vouches for the outputs.
    unsafe { outputs.write(0, 1, |i, _| values[i]) };
    if !vectors {
        return Ok(());
    }
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
    // SAFETY: as above.
    unsafe { outputs.write(1, n, |i, j| narrow(columns[(i, j)] * factors[j])) };
    Ok(())
}
