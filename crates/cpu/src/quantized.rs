//! Products with a quantized matrix.
//!
//! For few rows the matrix is unpacked in registers as it is read. For many, blocks of it are
//! unpacked into the caches and multiplied as any matrix.

use std::marker::PhantomData;

use cupola_core::backend::Segment;
use cupola_core::prim::QuantizedDot;
use cupola_core::{DType, Error, Result};
use cupola_simd::{Isa, Out, Packed, Scaled, Vectors};
use half::{bf16, f16};

use crate::contiguous::Contiguous;
use crate::dot::{DotElement, DotProblem, dot};
use crate::memory::{HostMemory, Scratch};
use crate::op::{Finish, Io, OpKernel};
use crate::threads::{num_threads, parallel_for};

/// Rows from which on the matrix is unpacked first, if it is multiplied as it is and if transposed.
const MANY: [usize; 2] = [24, 9];
/// Bytes of the matrix that are unpacked at a time.
const BLOCK: usize = 4 << 20;
/// Multiply-adds that are worth a task.
const WORK: usize = 1 << 16;
/// Tasks at most.
const TASKS: usize = 32;

/// A [`QuantizedDot`] that is ready to run.
pub(crate) struct QuantizedKernel<T> {
    op: QuantizedDot,
    /// `x`, words, scales, biases.
    inputs: [Contiguous; 4],
    /// Rows of `x`.
    m: usize,
    /// Rows and columns of the matrix.
    rows: usize,
    columns: usize,
    kind: PhantomData<fn() -> T>,
}

impl QuantizedKernel<()> {
    /// Prepares for the operands of `segment`.
    pub(crate) fn of(op: &QuantizedDot, segment: &Segment) -> Result<Box<dyn OpKernel>> {
        Ok(match segment.inputs[0].aval.dtype {
            DType::F32 => Box::new(QuantizedKernel::<f32>::new(op, segment)?),
            DType::F16 => Box::new(QuantizedKernel::<f16>::new(op, segment)?),
            DType::BF16 => Box::new(QuantizedKernel::<bf16>::new(op, segment)?),
            other => {
                return Err(Error::dtype("quantized_matmul", format!("does not take {other}")));
            }
        })
    }
}

impl<T: Scaled + DotElement> QuantizedKernel<T> {
    fn new(op: &QuantizedDot, segment: &Segment) -> Result<Self> {
        let input = |n: usize| Contiguous::new(&segment.inputs[n]);
        let (x, words) = (&segment.inputs[0].aval.shape, &segment.inputs[1].aval.shape);
        Ok(QuantizedKernel {
            op: *op,
            inputs: [input(0)?, input(1)?, input(2)?, input(3)?],
            m: x[..x.rank() - 1].iter().product(),
            rows: words[0],
            columns: words[1] * 32 / op.bits,
            kind: PhantomData,
        })
    }

    /// Terms of a sum, and sums for each row of `x`.
    fn sizes(&self) -> (usize, usize) {
        match self.op.transpose {
            true => (self.columns, self.rows),
            false => (self.rows, self.columns),
        }
    }

    /// Few rows: each task takes some of the results' columns.
    ///
    /// # Safety
    /// The operands have their sizes.
    unsafe fn few(&self, isa: Isa, matrix: Packed<T>, x: &[T], out: Out<'_, T>) {
        let ((k, n), m, group) = (self.sizes(), self.m, self.op.group_size);
        let mut wide = Scratch::<f32>::new(m * k);
        T::widen(x, &mut wide);
        let groups = if self.op.transpose { k / group } else { 0 };
        let mut sums = Scratch::<f32>::new(m * groups);
        for (sum, x) in sums.iter_mut().zip(wide.chunks_exact(group)) {
            *sum = x.iter().sum();
        }
        let least = if self.op.transpose { 4 } else { group.max(512) };
        let tasks = (m * k * n / WORK).clamp(1, TASKS);
        let chunk = n.div_ceil(tasks).next_multiple_of(least);
        let (wide, sums) = (&wide[..], &sums[..]);
        parallel_for(n.div_ceil(chunk), |task| {
            let (first, end) = (task * chunk, ((task + 1) * chunk).min(n));
            let count = end - first;
            let mut results = Scratch::<f32>::new(m * count);
            let vectors = Vectors {
                x: wide.as_ptr(),
                step: k,
                sums: sums.as_ptr(),
                count: m,
                out: results.as_mut_ptr(),
                out_step: count,
            };
            // SAFETY: the caller vouches for the operands; tasks have columns of their own.
            unsafe {
                if self.op.transpose {
                    T::along_rows(isa, matrix.from_row(first), count, vectors);
                } else {
                    results.fill(0.0);
                    T::across_rows(isa, matrix, k, first, count, vectors);
                }
                for (row, results) in results.chunks_exact(count).enumerate() {
                    T::narrow(results, out.slice(row * n + first..row * n + end));
                }
            }
        });
    }

    /// Many rows: blocks of the matrix's rows are unpacked and multiplied.
    ///
    /// # Safety
    /// The operands have their sizes.
    unsafe fn many(&self, isa: Isa, matrix: Packed<T>, x: &[T], out: Out<'_, T>) -> Result<()> {
        let ((k, n), m) = (self.sizes(), self.m);
        // A sum goes over all of the matrix's rows where it is not transposed.
        let block = match self.op.transpose {
            true => (BLOCK / (k * size_of::<T>())).clamp(64, self.rows.max(64)),
            false => self.rows,
        };
        let what = "an unpacked matrix";
        let memory = HostMemory::new(block * self.columns * size_of::<T>(), what)?;
        let whole = block >= self.rows;
        let result = HostMemory::new(if whole { 0 } else { m * block * size_of::<T>() }, what)?;
        for first in (0..self.rows).step_by(block) {
            let rows = block.min(self.rows - first);
            // SAFETY: the memory is new, and has room for the block.
            let dense = unsafe { Out::from_raw(memory.as_ptr().cast::<T>(), rows * self.columns) };
            let chunk = (WORK / self.columns.max(1)).clamp(1, rows);
            parallel_for(rows.div_ceil(chunk), |task| {
                let mut wide = Scratch::<f32>::new(self.columns);
                for row in task * chunk..((task + 1) * chunk).min(rows) {
                    // SAFETY: the caller vouches for the operands; tasks have rows of their own.
                    unsafe {
                        T::unpack(isa, matrix.from_row(first + row), &mut wide);
                        let at = row * self.columns;
                        T::narrow(&wide, dense.slice(at..at + self.columns));
                    }
                }
            });
            let (columns, b_strides) = match self.op.transpose {
                true => (rows, [0, 1, k as isize]),
                false => (n, [0, n as isize, 1]),
            };
            let a_strides = [0, k as isize, 1];
            let problem = DotProblem { batch: 1, m, k, n: columns, a_strides, b_strides };
            // SAFETY: as above; the result has room for the block's.
            unsafe {
                let to = if whole {
                    out
                } else {
                    Out::from_raw(result.as_ptr().cast::<T>(), m * columns)
                };
                dot(&problem, x.as_ptr(), dense.as_ptr(), to, Finish::default(), None);
                if !whole {
                    for row in 0..m {
                        let from = to.slice(row * columns..(row + 1) * columns);
                        out.slice(row * n + first..row * n + first + rows).copy_from_slice(from);
                    }
                }
            }
        }
        Ok(())
    }
}

impl<T: Scaled + DotElement> OpKernel for QuantizedKernel<T> {
    /// Rows of `x` and of the matrix in the dtype of the sums, and what comes of them.
    fn own(&self) -> usize {
        let ((k, n), rows) = (self.sizes(), if self.op.transpose { 0 } else { self.rows });
        let matrix = 2 * BLOCK + (rows + 64) * self.columns * size_of::<T>();
        let threads = num_threads() * self.columns;
        Contiguous::own(&self.inputs) + matrix + (self.m * (k + n) * 2 + threads) * size_of::<f32>()
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        let ((k, n), isa) = (self.sizes(), Isa::best());
        // SAFETY: the caller vouches for the operands.
        unsafe {
            let dense = |i: usize| self.inputs[i].dense(io.inputs[i]);
            let (x, words, scales, biases) = (dense(0)?, dense(1)?, dense(2)?, dense(3)?);
            let matrix = Packed::<T> {
                words: words.ptr(),
                scales: scales.ptr(),
                biases: biases.ptr(),
                len: self.columns,
                group: self.op.group_size,
                bits: self.op.bits,
            };
            let out = Out::from_raw(io.outputs[0].cast::<T>(), self.m * n);
            let x = x.slice::<T>(self.m * k);
            if self.m < MANY[usize::from(self.op.transpose)] {
                self.few(isa, matrix, x, out);
            } else {
                self.many(isa, matrix, x, out)?;
            }
        }
        finish.all();
        Ok(())
    }
}
