//! Linear algebra: factorizations of matrices, and equations that they solve.
//!
//! Matrices of `float32`, `float64` and `complex64` are in the last two axes, batches in the others.

mod diff;
mod matrix;

use super::batch::with_batch;
use super::record::{flatten, move_axis, unflatten};
use super::{
    Accumulates, Argument, Avals, Batched, Diff, Facts, Primitive, Sizes, expect_inputs,
    same_dtypes,
};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Aval, Shape};

/// What is made of matrices. A is the first input, B the second.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Linalg {
    /// The lower triangular L with positive diagonal and A = L·Lᴴ. Only the lower triangle of A is
    /// read.
    Cholesky,
    /// X with A·X = B for a triangular A, of which only the triangle is read.
    SolveTriangular {
        /// Whether the triangle is the upper one.
        upper: bool,
        /// Whether the diagonal counts as ones, whatever it is.
        unit: bool,
    },
    /// X with A·X = B.
    Solve,
    /// A = L·U with its rows exchanged, so that each pivot is the largest of its column. Gives L
    /// without its diagonal of ones and U in one matrix; for each step the row that was exchanged with
    /// its own; and for each row of A which row of L·U it is.
    Lu,
    /// A = Q·R: orthonormal columns Q, and R upper triangular. R has as many rows as A has rows or
    /// columns, whichever are fewer.
    Qr,
    /// A = U·S·Vᴴ: gives U, the singular values S from the largest on, and Vᴴ; or S alone.
    Svd(Vectors),
    /// A = V·W·Vᴴ of a Hermitian A, of which only the lower triangle is read: gives the eigenvalues W
    /// from the least on, and V; or W alone.
    Eigh {
        /// Whether V is given.
        vectors: bool,
    },
    /// A·V = V·W of a square A: gives the eigenvalues W and V of columns of length 1, both
    /// `complex64`; or W alone.
    Eig {
        /// Whether V is given.
        vectors: bool,
    },
    /// The pseudoinverse by Moore and Penrose. Singular values up to 10·max(m, n)·ε of the largest
    /// count as 0.
    Pinv,
}

/// Which singular vectors are given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Vectors {
    /// None.
    None,
    /// As many as there are singular values.
    Thin,
    /// A basis of the whole space.
    Full,
}

impl Linalg {
    /// The name in errors and graphs.
    pub const fn name(self) -> &'static str {
        match self {
            Linalg::Cholesky => "cholesky",
            Linalg::SolveTriangular { .. } => "solve_triangular",
            Linalg::Solve => "solve",
            Linalg::Lu => "lu",
            Linalg::Qr => "qr",
            Linalg::Svd(_) => "svd",
            Linalg::Eigh { .. } => "eigh",
            Linalg::Eig { .. } => "eig",
            Linalg::Pinv => "pinv",
        }
    }

    /// Whether A and B of `dtype` are taken.
    pub const fn takes(self, dtype: DType) -> bool {
        matches!(dtype, DType::F32 | DType::F64 | DType::C64)
    }

    /// Whether A has to be square.
    const fn is_square(self) -> bool {
        match self {
            Linalg::Cholesky
            | Linalg::SolveTriangular { .. }
            | Linalg::Solve
            | Linalg::Eigh { .. }
            | Linalg::Eig { .. } => true,
            Linalg::Lu | Linalg::Qr | Linalg::Svd(_) | Linalg::Pinv => false,
        }
    }

    /// How many inputs there are.
    const fn inputs(self) -> usize {
        if matches!(self, Linalg::SolveTriangular { .. } | Linalg::Solve) { 2 } else { 1 }
    }
}

impl Primitive for Linalg {
    fn name(&self) -> &'static str {
        Linalg::name(*self)
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Avals> {
        let op = Linalg::name(*self);
        expect_inputs(op, inputs, self.inputs())?;
        same_dtypes(op, inputs)?;
        let a = inputs[0];
        let dtype = a.dtype;
        if !self.takes(dtype) {
            return Err(Error::dtype(op, format!("takes float32, float64, complex64, not {a}")));
        }
        let rank = a.shape.rank();
        let [lead @ .., m, n] = &a.shape[..] else {
            return Err(Error::shape(op, format!("{a} is no matrix: it has {rank} axes")));
        };
        let (m, n) = (*m, *n);
        if self.is_square() && m != n {
            return Err(Error::shape(op, format!("is of square matrices, not of {a}")));
        }
        let of = |dtype: DType, dims: &[usize]| Aval {
            shape: lead.iter().chain(dims).copied().collect::<Shape>(),
            dtype,
        };
        let k = m.min(n);
        let outputs = match self {
            Linalg::Cholesky => vec![a.clone()],
            Linalg::SolveTriangular { .. } | Linalg::Solve => {
                let b = inputs[1];
                let fits = b.shape.rank() == rank
                    && b.shape[..rank - 2] == *lead
                    && b.shape[rank - 2] == n;
                if !fits {
                    return Err(Error::shape(op, format!("{a} and {b} do not go together")));
                }
                vec![b.clone()]
            }
            Linalg::Lu => {
                vec![a.clone(), of(DType::U32, &[k]), of(DType::U32, &[m])]
            }
            Linalg::Qr => vec![of(dtype, &[m, k]), of(dtype, &[k, n])],
            Linalg::Svd(Vectors::None) => vec![of(dtype.real(), &[k])],
            Linalg::Svd(Vectors::Thin) => {
                vec![of(dtype, &[m, k]), of(dtype.real(), &[k]), of(dtype, &[k, n])]
            }
            Linalg::Svd(Vectors::Full) => {
                vec![of(dtype, &[m, m]), of(dtype.real(), &[k]), of(dtype, &[n, n])]
            }
            Linalg::Eigh { vectors: false } => vec![of(dtype.real(), &[n])],
            Linalg::Eigh { vectors: true } => vec![of(dtype.real(), &[n]), a.clone()],
            Linalg::Eig { vectors: false } => vec![of(DType::C64, &[n])],
            Linalg::Eig { vectors: true } => {
                vec![of(DType::C64, &[n]), of(DType::C64, &[n, n])]
            }
            Linalg::Pinv => vec![of(dtype, &[n, m])],
        };
        Ok(outputs.into())
    }

    fn diff(&self) -> Diff<Self> {
        Diff::Custom { jvp: diff::jvp, vjp: diff::vjp }
    }

    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        // One matrix for the whole batch is factorized once: the batch is more columns.
        if let [a, b] = inputs
            && !a.batched
        {
            let (rank, columns) = (b.array.rank(), b.shape()[b.shape().len() - 1]);
            let wide = flatten(&move_axis(&b.array, 0, rank - 2)?, rank - 2, rank - 1)?;
            let x = Array::apply(*self, &[&a.array, &wide])?;
            let x = unflatten(&x, rank - 2, &[size, columns])?;
            return Ok(vec![Batched::each(move_axis(&x, rank - 2, 0)?)]);
        }
        let arrays = with_batch(inputs, size)?;
        let refs: Vec<&Array> = arrays.iter().collect();
        Ok(Array::apply_multi(*self, &refs)?.into_iter().map(Batched::each).collect())
    }

    /// The leading term of what is usual for m rows and n columns, such as n³/3 for Cholesky's.
    fn operations(&self, inputs: &[&Aval], _: &[&Aval]) -> f64 {
        let shape = &inputs[0].shape;
        let [rows, columns] = [shape.rank() - 2, shape.rank() - 1].map(|axis| shape[axis] as f64);
        let matrices = shape.size() as f64 / (rows * columns).max(1.0);
        let (long, short) = (rows.max(columns), rows.min(columns));
        let right = inputs.get(1).map_or(0.0, |b| b.shape.size() as f64 / matrices.max(1.0));
        let cubes = match self {
            Linalg::Cholesky => rows.powi(3) / 3.0,
            Linalg::SolveTriangular { .. } => rows * right,
            Linalg::Solve => rows.powi(3) * 2.0 / 3.0 + 2.0 * rows * right,
            Linalg::Lu => long * short * short * 2.0 / 3.0,
            Linalg::Qr => 2.0 * long * short * short,
            Linalg::Svd(_) | Linalg::Pinv => 8.0 * long * short * short,
            Linalg::Eigh { .. } => 9.0 * rows.powi(3),
            Linalg::Eig { .. } => 25.0 * rows.powi(3),
        };
        matrices * cubes
    }

    fn facts(&self) -> Facts<'_> {
        let one = match self {
            Linalg::Cholesky
            | Linalg::SolveTriangular { .. }
            | Linalg::Solve
            | Linalg::Pinv
            | Linalg::Svd(Vectors::None)
            | Linalg::Eigh { vectors: false }
            | Linalg::Eig { vectors: false } => true,
            Linalg::Lu
            | Linalg::Qr
            | Linalg::Svd(Vectors::Thin | Vectors::Full)
            | Linalg::Eigh { vectors: true }
            | Linalg::Eig { vectors: true } => false,
        };
        Facts {
            argument: Argument::None,
            merges: true,
            takes_epilogue: false,
            accumulates: Accumulates::Wide,
            sizes: if one { Sizes::Inferred } else { Sizes::Fixed },
        }
    }
}
