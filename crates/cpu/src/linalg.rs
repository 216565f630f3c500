//! Factorizations of matrices: a batch shared among threads, each matrix one thread's.

use std::mem::MaybeUninit;
use std::sync::Mutex;

use cupola_core::backend::{Fails, Segment};
use cupola_core::prim::{Linalg, Vectors};
use cupola_core::{DType, Error, Result, fork};
use cupola_linalg::{Factors, Matrix, Out, Outcome, Spectral};
use num_complex::Complex32;

use crate::contiguous::{Contiguous, Source};
use crate::memory::expect_memory;
use crate::op::{Finish, Io, OpKernel};
use crate::threads::{num_threads, parallel_for};

/// Elements that are worth a chunk of their own.
const CHUNK: usize = 1 << 10;

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
    unsafe fn each<T: Factors + Spectral + Sync>(&self, io: &Io<'_>) -> Result<()> {
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
        let together = self.count.div_ceil(per).min(num_threads());
        let size = m.max(n).max(columns);
        let square = size.saturating_mul(size).saturating_mul(size_of::<T>());
        expect_memory(square.saturating_mul(copies(self.op) * together), "a factorization")?;
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

/// Copies of a matrix that a factorization makes at most: what the process grew by at 700², without outputs, and some.
fn copies(op: Linalg) -> usize {
    match op {
        Linalg::Svd(Vectors::None)
        | Linalg::Eigh { vectors: false }
        | Linalg::Eig { vectors: false } => 4,
        Linalg::Cholesky
        | Linalg::SolveTriangular { .. }
        | Linalg::Solve
        | Linalg::Lu
        | Linalg::Qr => 8,
        Linalg::Svd(Vectors::Thin | Vectors::Full)
        | Linalg::Eigh { vectors: true }
        | Linalg::Eig { vectors: true }
        | Linalg::Pinv => 11,
    }
}

impl OpKernel for LinalgKernel {
    fn fails(&self) -> Fails {
        Fails::Anywhere
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
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
unsafe fn matrix<'a, T>(x: *const T, i: usize, m: usize, n: usize) -> Matrix<'a, T> {
    let elements = match m * n {
        0 => &[][..],
        // SAFETY: the caller vouches for it.
        size => unsafe { std::slice::from_raw_parts(x.add(i * size), size) },
    };
    Matrix::new(elements, m, n)
}

/// Where the results for a matrix belong.
struct Outputs<'a> {
    places: &'a [Source<u8>],
    sizes: &'a [usize],
    matrix: usize,
}

impl<'a> Outputs<'a> {
    /// The place of an output.
    ///
    /// # Safety
    /// The output is of `T`, and nobody else uses this matrix of it.
    unsafe fn of<T>(&self, output: usize) -> Out<'a, T> {
        let size = self.sizes[output];
        if size == 0 {
            return &mut [];
        }
        let place = self.places[output].get().cast_mut().cast::<MaybeUninit<T>>();
        // SAFETY: the caller vouches for the output.
        unsafe { std::slice::from_raw_parts_mut(place.add(self.matrix * size), size) }
    }
}

/// Writes what an op gives for A and B, or says what is wrong with A.
///
/// # Safety
/// The outputs are those of the op for matrices of `T`.
unsafe fn compute<T: Factors + Spectral>(
    op: Linalg,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    outputs: &Outputs<'_>,
) -> Outcome {
    // SAFETY: the caller vouches for the outputs.
    unsafe {
        match op {
            Linalg::Cholesky => T::cholesky(a, outputs.of(0)),
            Linalg::SolveTriangular { upper, unit } => {
                T::solve_triangular(a, b, upper, unit, outputs.of(0))
            }
            Linalg::Solve => T::solve(a, b, outputs.of(0)),
            Linalg::Lu => {
                T::lu(a, outputs.of(0), outputs.of(1), outputs.of(2));
                Ok(())
            }
            Linalg::Qr => {
                T::qr(a, outputs.of(0), outputs.of(1));
                Ok(())
            }
            Linalg::Pinv => T::pinv(a, outputs.of(0)),
            Linalg::Svd(Vectors::None) => T::singular_values(a, outputs.of(0)),
            Linalg::Svd(vectors) => {
                let is_full = vectors == Vectors::Full;
                T::svd(a, is_full, outputs.of(0), outputs.of(1), outputs.of(2))
            }
            Linalg::Eigh { vectors } => T::eigh(a, outputs.of(0), vectors.then(|| outputs.of(1))),
            Linalg::Eig { vectors } => T::eig(a, outputs.of(0), vectors.then(|| outputs.of(1))),
        }
    }
}
