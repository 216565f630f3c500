//! Matrix products: operands laid out for the kernels of [`crate::dot`].

use cupola_core::backend::{Operand, Segment};
use cupola_core::{DType, Error, Result};
use cupola_simd::Out;
use half::{bf16, f16};
use num_complex::{Complex, Complex32};

use super::few::Few;
use super::{DotElement, DotProblem, Place, dot};
use crate::contiguous::Contiguous;
use crate::op::{Finish, Io, OpKernel};
use crate::threads::num_threads;
use crate::walk::Walk;

/// A matrix product whose operands and result have one dtype.
pub struct DotKernel {
    problem: DotProblem,
    a: Contiguous,
    b: Contiguous,
    product: Product,
    has_tail: bool,
}

/// # Safety
/// The operands reach what the problem says.
type Product = unsafe fn(&DotProblem, *const u8, *const u8, *mut u8, Finish<'_>, Option<Place<'_>>);

impl DotKernel {
    /// Prepares for these operands.
    pub fn new(segment: &Segment) -> Result<Self> {
        let (a, b) = (&segment.inputs[0], &segment.inputs[1]);
        let shape = &a.aval.shape;
        let rank = shape.rank();
        let (a_layout, a_strides) = matrices(a)?;
        let (b_layout, b_strides) = matrices(b)?;
        let problem = DotProblem {
            batch: shape[..rank - 2].iter().product(),
            m: shape[rank - 2],
            k: shape[rank - 1],
            n: b.aval.shape[rank - 1],
            a_strides,
            b_strides,
        };
        let product = match a.aval.dtype {
            DType::U8 => product::<u8>,
            DType::U16 => product::<u16>,
            DType::U32 => product::<u32>,
            DType::U64 => product::<u64>,
            DType::I8 => product::<i8>,
            DType::I16 => product::<i16>,
            DType::I32 => product::<i32>,
            DType::I64 => product::<i64>,
            DType::F16 => product::<f16>,
            DType::BF16 => product::<bf16>,
            DType::F32 => product::<f32>,
            DType::F64 => product::<f64>,
            DType::C32 => product::<Complex<f16>>,
            DType::C64 => product::<Complex32>,
            DType::Bool => {
                return Err(Error::dtype("matmul", format!("does not take {}", a.aval)));
            }
        };
        // As `product` will choose.
        let has_tail =
            a.aval.dtype == DType::F32 && Few::of::<f32>(&problem.normalized().0).is_none();
        Ok(DotKernel { problem, a: a_layout, b: b_layout, product, has_tail })
    }
}

/// Rows that a thread works on together, at most.
const ROWS: usize = 256;

impl OpKernel for DotKernel {
    /// For each thread a block of rows of both sides in the kernels' order, and sums of parts.
    fn own(&self) -> usize {
        let DotProblem { m, k, n, .. } = self.problem;
        let block = |rows: usize| rows.min(ROWS).saturating_mul(k);
        let sums = m.saturating_mul(n).min(ROWS * ROWS);
        let elements = block(m).saturating_add(block(n)).saturating_add(sums);
        let threads = elements.saturating_mul(num_threads() * size_of::<f64>());
        threads.saturating_add(Contiguous::own([&self.a, &self.b]))
    }

    fn has_tail(&self) -> bool {
        self.has_tail
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the operands.
        unsafe {
            let (a, b) = (self.a.dense(io.inputs[0])?, self.b.dense(io.inputs[1])?);
            let kept = io.kept.get(1).copied().flatten();
            // A copy has no place.
            let kept = kept.filter(|_| std::ptr::eq(b.ptr(), io.inputs[1]));
            let place = kept.map(|kept| Place { kept, at: io.inputs[1].addr() });
            (self.product)(&self.problem, a.ptr(), b.ptr(), io.outputs[0], finish, place);
        }
        Ok(())
    }
}

/// How an operand becomes matrices that one stride apart follow each other, and the strides then.
fn matrices(operand: &Operand) -> Result<(Contiguous, [isize; 3])> {
    let (shape, strides) = (&operand.aval.shape, &operand.strides);
    let lead = shape.rank() - 2;
    let batch = Walk::new(&shape[..lead], [&strides[..lead]]);
    if batch.run() == batch.size() {
        let strides = [batch.steps()[0], strides[lead], strides[lead + 1]];
        return Ok((Contiguous::as_is(), strides));
    }
    let columns = shape[lead + 1] as isize;
    Ok((Contiguous::new(operand)?, [shape[lead] as isize * columns, columns, 1]))
}

/// # Safety
/// As for [`Product`]; the elements are `T`.
unsafe fn product<T: DotElement>(
    problem: &DotProblem,
    a: *const u8,
    b: *const u8,
    out: *mut u8,
    finish: Finish<'_>,
    place: Option<Place<'_>>,
) {
    // SAFETY: the caller vouches for the operands.
    unsafe {
        let out = Out::from_raw(out.cast::<T>(), problem.output_len());
        dot(problem, a.cast(), b.cast(), out, finish, place);
    }
}
