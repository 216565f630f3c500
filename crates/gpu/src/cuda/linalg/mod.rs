//! Factorizations of matrices through cuSOLVER and cuBLAS: which kernels and calls make up each of them.
//!
//! The libraries want matrices column by column, and write over them: most are copied to memory of the run's
//! own, and results from there. Where the transpose of a row-major result is what a library can work on, it
//! works in the result itself.

mod check;
mod one;
mod solver;
#[cfg(test)]
mod tests;
mod together;

use cupola_core::DType;
use cupola_core::backend::{Kernel, Segment};
use cupola_core::prim::{KernelOp, Linalg, Vectors};

pub use check::{Check, Checked};
pub use solver::{Solver, Solvers};

use crate::ir::{Missing, Target};
use crate::kernels::linalg::{Batch, Factors, Flaw, How, Matrices, Part, Spoilt};
use crate::kernels::{BufferRef, Launch};

/// What is done for a batch of matrices, in order.
#[derive(Default, Debug)]
pub struct Plan {
    /// Bytes of memory that it needs while it runs.
    pub scratch: Vec<usize>,
    pub stages: Vec<Stage>,
}

/// One thing that is done.
#[derive(Debug)]
pub enum Stage {
    Launch(Launch),
    /// A library works on these regions.
    Call(Call, Vec<BufferRef>),
    /// The host looks at the words of so many matrices, whether something went wrong.
    Check {
        check: Check,
        status: BufferRef,
        count: usize,
    },
}

/// What a library does with each matrix of a batch; matrices are column by column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    pub task: Task,
    pub dtype: DType,
    /// How many matrices there are.
    pub count: usize,
    /// Whether all of them are given to the library at once.
    pub together: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// The upper factor of A of `n` columns, in its place. Regions: A, status.
    Cholesky { n: usize },
    /// Both factors of A in its place, and the exchanges of rows. Regions: A, exchanges, status.
    Lu { m: usize, n: usize },
    /// X in the place of B. Regions: the factors and exchanges of A, B, status.
    Solve { n: usize, columns: usize },
    /// X of X·A = B in the place of B, for a triangle A. Regions: A, B.
    Triangle { rows: usize, n: usize, upper: bool, unit: bool },
    /// R and the reflections in the place of A. Regions: A, factors of the reflections, status.
    Reflections { m: usize, n: usize },
    /// Q in the place of the reflections: as many columns as there are. Regions: as above.
    Columns { m: usize, n: usize },
    /// A is at least as high as wide. Regions: A, singular values, U, Vᴴ, status. Matrices together give
    /// V instead, and all columns of U, whatever is asked for.
    Svd { m: usize, n: usize, vectors: Vectors },
    /// Eigenvectors in the place of A, whose lower triangle is read. Regions: A, eigenvalues, status.
    Eigh { n: usize, vectors: bool },
    /// A is overwritten. Regions: A, eigenvalues, which are complex, eigenvectors as LAPACK packs them, status.
    Eig { n: usize, vectors: bool },
    /// C = Aᴴ·Bᴴ for C of `m` and `n`, from the first columns of `apart` of B. Regions: A, B, C.
    Product { m: usize, n: usize, depth: usize, apart: usize },
}

/// Vectors as columns, or their conjugates.
struct Basis {
    vectors: Matrices,
    is_conjugated: bool,
}

/// Both bases of a decomposition by singular values, and how it went.
struct Decomposed {
    status: Status,
    u: Basis,
    v: Basis,
}

/// Where the host finds what is wrong with each matrix: words of our own, and then the library's.
struct Status(BufferRef);

/// Matrices of a batch up to this size are solved at once: larger ones fill a device one by one.
const SMALL: usize = 128;
/// The largest of which the library makes singular vectors at once.
const ROTATED: usize = 32;

struct Planner<'a> {
    on: Batch<'a>,
    op: Linalg,
    dtype: DType,
    plan: Plan,
}

/// A segment's op, where it is one of these.
pub fn op(segment: &Segment) -> Option<Linalg> {
    match &segment.kernel {
        Kernel::Op(KernelOp::Linalg(op)) => Some(*op),
        _ => None,
    }
}

/// What `op` of a segment runs as.
pub fn plan(op: Linalg, segment: &Segment, target: &Target) -> Result<Plan, Missing> {
    let a = &segment.inputs[0].aval;
    let (lead, own) = a.shape.split_at(a.shape.rank() - 2);
    let on = Batch { segment, target, lead: lead.to_vec() };
    let mut planner = Planner { on, op, dtype: a.dtype, plan: Plan::default() };
    if planner.on.count() > 0 {
        planner.write([own[0], own[1]])?;
    }
    Ok(planner.plan)
}

impl Planner<'_> {
    fn write(&mut self, [m, n]: [usize; 2]) -> Result<(), Missing> {
        match self.op {
            Linalg::Cholesky => self.cholesky(n),
            Linalg::SolveTriangular { upper, unit } => self.solve_triangular(n, upper, unit),
            Linalg::Solve => self.solve(n),
            Linalg::Lu => self.lu(m, n),
            Linalg::Qr => self.qr(m, n),
            Linalg::Svd(vectors) => self.svd(m, n, vectors),
            Linalg::Eigh { vectors } => self.eigh(n, vectors),
            Linalg::Pinv => self.pinv(m, n),
            Linalg::Eig { vectors } => self.eig(n, vectors),
        }
    }

    /// Memory for so many elements of `dtype` for each matrix.
    fn scratch(&mut self, each: usize, dtype: DType) -> BufferRef {
        let bytes = self.on.count().saturating_mul(each).saturating_mul(dtype.size());
        self.plan.scratch.push(bytes);
        BufferRef::Scratch(self.plan.scratch.len() - 1)
    }

    /// Memory for a matrix column by column.
    fn columns(&mut self, m: usize, n: usize) -> Matrices {
        let buffer = self.scratch(m * n, self.dtype);
        self.on.by_columns(buffer, self.dtype, m, n)
    }

    /// An output, row by row.
    fn output(&self, index: usize) -> Matrices {
        let out = &self.on.segment.outputs[index].aval;
        let rank = out.shape.rank();
        let (rows, columns) = (out.shape[rank - 2], out.shape[rank - 1]);
        self.on.by_rows(BufferRef::Output(index), out.dtype, rows, columns)
    }

    fn launch(&mut self, launch: Launch) {
        self.plan.stages.push(Stage::Launch(launch));
    }

    /// Whether matrices of `size` are given to a library at once: those up to `most`.
    fn together(&self, size: usize, most: usize) -> bool {
        self.on.count() > 1 && size <= most
    }

    fn call(&mut self, task: Task, regions: &[BufferRef]) {
        let together = match task {
            Task::Cholesky { n } | Task::Solve { n, .. } | Task::Triangle { n, .. } => {
                self.together(n, SMALL)
            }
            Task::Eigh { n, .. } => self.together(n, SMALL),
            Task::Lu { m, n } => m == n && self.together(n, SMALL),
            Task::Svd { m, .. } => self.together(m, ROTATED),
            Task::Reflections { .. }
            | Task::Columns { .. }
            | Task::Eig { .. }
            | Task::Product { .. } => false,
        };
        let call = Call { task, dtype: self.dtype, count: self.on.count(), together };
        self.plan.stages.push(Stage::Call(call, regions.to_vec()));
    }

    /// Two words for each matrix: nothing is wrong so far.
    fn status(&mut self) -> Result<Status, Missing> {
        let words = self.scratch(2, DType::U32);
        let zeros = self.on.zeros(words, 2 * self.on.count())?;
        self.launch(zeros);
        Ok(Status(words))
    }

    /// A word for each matrix, of where its first flaw is: there is none so far.
    fn notes(&mut self) -> Result<BufferRef, Missing> {
        let words = self.scratch(1, DType::U32);
        let zeros = self.on.zeros(words, self.on.count())?;
        self.launch(zeros);
        Ok(words)
    }

    fn check(&mut self, check: Check, status: &Status) {
        self.plan.stages.push(Stage::Check { check, status: status.0, count: self.on.count() });
    }

    fn copy(
        &mut self,
        from: &Matrices,
        to: &Matrices,
        sizes: [usize; 2],
        how: How,
    ) -> Result<(), Missing> {
        if sizes.contains(&0) {
            return Ok(());
        }
        let copied = self.on.copied(from, to, sizes, how)?;
        self.launch(copied);
        Ok(())
    }

    fn diagonal(
        &mut self,
        matrices: &Matrices,
        size: usize,
        flaw: Flaw,
        status: &Status,
        except: Option<BufferRef>,
    ) -> Result<(), Missing> {
        let diagonal = self.on.diagonal(matrices, size, flaw, status.0, except)?;
        self.launch(diagonal);
        Ok(())
    }

    fn a(&self) -> Matrices {
        Matrices::input(self.on.segment, 0)
    }

    // Row by row, Lᵀ is what the library makes of the transpose of A, which is its conjugate.
    fn cholesky(&mut self, n: usize) -> Result<(), Missing> {
        if n == 0 {
            return Ok(());
        }
        let (a, out, status) = (self.a(), self.output(0), self.status()?);
        let task = Task::Cholesky { n };
        if self.together(n, SMALL) {
            // What is not read of a matrix is written to, too.
            let buffer = self.scratch(n * n, self.dtype);
            let own = self.on.by_rows(buffer, self.dtype, n, n);
            self.copy(&a, &own, [n, n], How::of(Part::Hermitian))?;
            self.call(task, &[buffer, status.0]);
            self.copy(&own, &out, [n, n], How::of(Part::Hermitian))?;
        } else {
            self.copy(&a, &out, [n, n], How::of(Part::Hermitian))?;
            self.call(task, &[out.buffer, status.0]);
        }
        self.diagonal(&out, n, Flaw::Nan, &status, None)?;
        self.check(Check::Definite, &status);
        Ok(())
    }

    // A·X = B is Xᵀ·Aᵀ = Bᵀ, and the transposes are what lies there column by column.
    fn solve_triangular(&mut self, n: usize, upper: bool, unit: bool) -> Result<(), Missing> {
        if n == 0 {
            return Ok(());
        }
        let (a, b, out) = (self.a(), Matrices::input(self.on.segment, 1), self.output(0));
        let status = (!unit).then(|| self.status()).transpose()?;
        if let Some(status) = &status {
            self.diagonal(&a, n, Flaw::Zero, status, None)?;
        }
        let rows = out.row as usize;
        if rows > 0 {
            let buffer = self.scratch(n * n, self.dtype);
            let own = self.on.by_rows(buffer, self.dtype, n, n);
            self.copy(&a, &own, [n, n], How::of(Part::All))?;
            self.copy(&b, &out, [n, rows], How::of(Part::All))?;
            let task = Task::Triangle { rows, n, upper: !upper, unit };
            self.call(task, &[buffer, out.buffer]);
        }
        if let Some(status) = &status {
            self.check(Check::Pivots, status);
        }
        Ok(())
    }

    /// What the libraries count exchanged rows with.
    fn exchanges(&self, m: usize, n: usize) -> DType {
        if m == n && self.together(n, SMALL) { DType::I32 } else { DType::I64 }
    }

    fn solve(&mut self, n: usize) -> Result<(), Missing> {
        if n == 0 {
            return Ok(());
        }
        let (a, b, out) = (self.a(), Matrices::input(self.on.segment, 1), self.output(0));
        let (status, own) = (self.status()?, self.columns(n, n));
        let of_exchanges = self.exchanges(n, n);
        let exchanges = self.scratch(n, of_exchanges);
        let notes = self.notes()?;
        self.copy(&a, &own, [n, n], How::noting(notes, Flaw::Nan))?;
        self.call(Task::Lu { m: n, n }, &[own.buffer, exchanges, status.0]);
        self.diagonal(&own, n, Flaw::Zero, &status, Some(notes))?;
        let columns = out.row as usize;
        if columns > 0 {
            let x = self.columns(n, columns);
            self.copy(&b, &x, [n, columns], How::of(Part::All))?;
            let regions = [own.buffer, exchanges, x.buffer, status.0];
            self.call(Task::Solve { n, columns }, &regions);
            let how = How { spoilt: Some((notes, Spoilt::All)), ..How::of(Part::All) };
            self.copy(&x, &out, [n, columns], how)?;
        }
        self.check(Check::Pivots, &status);
        Ok(())
    }

    fn lu(&mut self, m: usize, n: usize) -> Result<(), Missing> {
        let (k, out) = (m.min(n), self.output(0));
        // Nothing is read of no steps.
        let of_exchanges = self.exchanges(m, n);
        let exchanges = self.scratch(k.max(1), of_exchanges);
        if k > 0 {
            let (a, own, status) = (self.a(), self.columns(m, n), self.status()?);
            let notes = self.notes()?;
            self.copy(&a, &own, [m, n], How::noting(notes, Flaw::Nan))?;
            self.call(Task::Lu { m, n }, &[own.buffer, exchanges, status.0]);
            let spoilt = Some((notes, Spoilt::FromItsColumn));
            self.copy(&own, &out, [m, n], How { spoilt, ..How::of(Part::All) })?;
        }
        if m > 0 {
            let order = self.scratch(m, DType::U32);
            let exchanged = self.on.exchanges(exchanges, of_exchanges, order, [m, k])?;
            self.launch(exchanged);
        }
        Ok(())
    }

    fn qr(&mut self, m: usize, n: usize) -> Result<(), Missing> {
        let k = m.min(n);
        if k == 0 {
            return Ok(());
        }
        let (a, own, status) = (self.a(), self.columns(m, n), self.status()?);
        let taus = self.scratch(k, self.dtype);
        let (q, r) = (self.output(0), self.output(1));
        let regions = [own.buffer, taus, status.0];
        let notes = self.notes()?;
        let spoilt = Some((notes, Spoilt::FromItsColumn));
        self.copy(&a, &own, [m, n], How::noting(notes, Flaw::NotFinite))?;
        self.call(Task::Reflections { m, n }, &regions);
        self.copy(&own, &r, [k, n], How { spoilt, ..How::of(Part::Upper) })?;
        self.call(Task::Columns { m, n }, &regions);
        self.copy(&own, &q, [m, k], How { spoilt, ..How::of(Part::All) })
    }

    fn eigh(&mut self, n: usize, vectors: bool) -> Result<(), Missing> {
        if n == 0 {
            return Ok(());
        }
        let (a, own, status) = (self.a(), self.columns(n, n), self.status()?);
        let how = How { status: Some(status.0), ..How::of(Part::Hermitian) };
        self.copy(&a, &own, [n, n], how)?;
        self.check(Check::Finite, &status);
        let values = BufferRef::Output(0);
        self.call(Task::Eigh { n, vectors }, &[own.buffer, values, status.0]);
        if vectors {
            let buffer = self.scratch(n, self.dtype);
            let turns = self.on.turns(&own, [n, n], false, buffer, n)?;
            self.launch(turns);
            let factors = Some(Factors { buffer, per: n, is_of_rows: false });
            let out = self.output(1);
            self.copy(&own, &out, [n, n], How { factors, ..How::of(Part::All) })?;
        }
        self.check(Check::Converged, &status);
        Ok(())
    }

    fn eig(&mut self, n: usize, vectors: bool) -> Result<(), Missing> {
        if n == 0 {
            return Ok(());
        }
        let (a, own, status) = (self.a(), self.columns(n, n), self.status()?);
        let how = How { status: Some(status.0), ..How::of(Part::All) };
        self.copy(&a, &own, [n, n], how)?;
        self.check(Check::Finite, &status);
        let is_double = self.dtype == DType::F64;
        // Two numbers of float64 are a complex one.
        let values = match is_double {
            true => self.scratch(2 * n, DType::F64),
            false => BufferRef::Output(0),
        };
        let packed = self.columns(n, if vectors { n } else { 0 });
        let regions = [own.buffer, values, packed.buffer, status.0];
        self.call(Task::Eig { n, vectors }, &regions);
        if is_double {
            let narrowed = self.on.narrowed(values, BufferRef::Output(0), n)?;
            self.launch(narrowed);
        }
        if vectors {
            let unpacked = self.on.unpacked([values, packed.buffer], self.dtype, n)?;
            self.launch(unpacked);
        }
        self.check(Check::Converged, &status);
        Ok(())
    }

    /// Decomposes A, or Aᴴ where A is wider than high.
    fn decomposed(
        &mut self,
        [m, n]: [usize; 2],
        values: BufferRef,
        vectors: Vectors,
    ) -> Result<Decomposed, Missing> {
        let (high, wide) = (m.max(n), m.min(n));
        let (own, status) = (self.columns(high, wide), self.status()?);
        let is_turned = m < n;
        let a = if is_turned { self.a().transposed() } else { self.a() };
        let how =
            How { conjugated: [is_turned, false], status: Some(status.0), ..How::of(Part::All) };
        self.copy(&a, &own, [high, wide], how)?;
        self.check(Check::Finite, &status);
        let is_rotated = self.together(high, ROTATED);
        let columns = match vectors {
            _ if is_rotated => high,
            Vectors::None => 0,
            Vectors::Thin => wide,
            Vectors::Full => high,
        };
        let u = self.columns(high, columns);
        let v = self.columns(if columns > 0 { wide } else { 0 }, wide);
        let task = Task::Svd { m: high, n: wide, vectors };
        self.call(task, &[own.buffer, values, u.buffer, v.buffer, status.0]);
        let v = match is_rotated {
            true => Basis { vectors: v, is_conjugated: false },
            false => Basis { vectors: v.transposed(), is_conjugated: true },
        };
        Ok(Decomposed { status, u: Basis { vectors: u, is_conjugated: false }, v })
    }

    fn svd(&mut self, m: usize, n: usize, vectors: Vectors) -> Result<(), Missing> {
        let (k, high) = (m.min(n), m.max(n));
        if k == 0 {
            if vectors == Vectors::Full {
                for (index, size) in [(0, m), (2, n)] {
                    let out = self.output(index);
                    self.copy(&out, &out, [size, size], How::of(Part::Identity))?;
                }
            }
            return Ok(());
        }
        if vectors == Vectors::None {
            let Decomposed { status, .. } =
                self.decomposed([m, n], BufferRef::Output(0), vectors)?;
            self.check(Check::Converged, &status);
            return Ok(());
        }
        let Decomposed { status, u, v } = self.decomposed([m, n], BufferRef::Output(1), vectors)?;
        let (u_out, vh_out) = (self.output(0), self.output(2));
        let is_turned = m < n;
        let all = if vectors == Vectors::Full { high } else { k };
        let buffer = self.scratch(all, self.dtype);
        // The signs are those of U; vectors without a value have their own.
        if is_turned && all > k {
            let turns = self.on.turns(&u.vectors, [high, all], u.is_conjugated, buffer, all)?;
            self.launch(turns);
        }
        let (left, right) = if is_turned { (v, u) } else { (u, v) };
        let [columns, rows] = if is_turned { [k, all] } else { [all, k] };
        let turns = self.on.turns(&left.vectors, [m, columns], left.is_conjugated, buffer, all)?;
        self.launch(turns);
        let factors = |is_of_rows| Some(Factors { buffer, per: all, is_of_rows });
        let how = How {
            conjugated: [left.is_conjugated, false],
            factors: factors(false),
            ..How::of(Part::All)
        };
        self.copy(&left.vectors, &u_out, [m, columns], how)?;
        // What is multiplied is V, of which the adjoint is wanted.
        let how = How {
            conjugated: [right.is_conjugated, true],
            factors: factors(true),
            ..How::of(Part::All)
        };
        self.copy(&right.vectors.transposed(), &vh_out, [rows, n], how)?;
        self.check(Check::Converged, &status);
        Ok(())
    }

    fn pinv(&mut self, m: usize, n: usize) -> Result<(), Missing> {
        let (k, high) = (m.min(n), m.max(n));
        if k == 0 {
            return Ok(());
        }
        let values = self.scratch(k, self.dtype.real());
        let Decomposed { status, u, v } = self.decomposed([m, n], values, Vectors::Thin)?;
        let inverses = self.scratch(k, self.dtype);
        let inverted = self.on.inverses([values, inverses], self.dtype, k, 10 * high)?;
        self.launch(inverted);
        // S⁺·Vᴴ, whose adjoint is multiplied with that of U.
        let scaled = self.columns(k, k);
        let how = How {
            conjugated: [!v.is_conjugated, false],
            factors: Some(Factors { buffer: inverses, per: k, is_of_rows: true }),
            ..How::of(Part::All)
        };
        self.copy(&v.vectors.transposed(), &scaled, [k, k], how)?;
        let inverse = self.columns(k, high);
        let apart = if self.together(high, ROTATED) { high } else { k };
        let task = Task::Product { m: k, n: high, depth: k, apart };
        self.call(task, &[scaled.buffer, u.vectors.buffer, inverse.buffer]);
        let out = self.output(0);
        let is_turned = m < n;
        let from = if is_turned { inverse.transposed() } else { inverse };
        let how = How { conjugated: [is_turned, false], ..How::of(Part::All) };
        self.copy(&from, &out, [n, m], how)?;
        self.check(Check::Converged, &status);
        Ok(())
    }
}
