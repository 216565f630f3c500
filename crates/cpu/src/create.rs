//! Counting along an axis.

use cupola_core::prim::Iota;
use cupola_core::{DType, Error, Result};
use cupola_simd::Out;
use half::{bf16, f16};
use num_complex::{Complex, Complex32};

use crate::op::{Finish, Io, OpKernel};
use crate::threads::parallel_for;

/// Elements that one chunk writes.
const CHUNK: usize = 1 << 14;

/// An [`Iota`] that is ready to run.
pub struct IotaKernel {
    dtype: DType,
    /// Sizes before the axis, of the axis, and after it.
    sizes: [usize; 3],
}

impl IotaKernel {
    /// Prepares for the output's shape.
    pub fn new(iota: &Iota) -> Self {
        let (before, after) = (&iota.shape[..iota.axis], &iota.shape[iota.axis + 1..]);
        IotaKernel {
            dtype: iota.dtype,
            sizes: [before.iter().product(), iota.shape[iota.axis], after.iter().product()],
        }
    }

    /// # Safety
    /// As for `OpKernel::run`; the output's elements are `T`.
    unsafe fn count<T: Copy + Send>(&self, io: &Io<'_>, number: impl Fn(usize) -> T + Sync) {
        let [outer, size, inner] = self.sizes;
        let total = outer * size * inner;
        // SAFETY: the caller vouches for the output.
        let out = unsafe { Out::from_raw(io.outputs[0].cast::<T>(), total) };
        parallel_for(total.div_ceil(CHUNK), |chunk| {
            let end = ((chunk + 1) * CHUNK).min(total);
            let mut at = chunk * CHUNK;
            while at < end {
                // The numbers go up by one while they can, or stay while they must.
                let (here, left) = ((at / inner) % size, inner - at % inner);
                let run = if inner == 1 { size - here } else { left }.min(end - at);
                // SAFETY: runs are disjoint.
                let out = unsafe { out.slice(at..at + run) };
                if inner == 1 {
                    out.iter_mut().enumerate().for_each(|(i, out)| *out = number(here + i));
                } else {
                    out.fill(number(here));
                }
                at += run;
            }
        });
    }
}

impl OpKernel for IotaKernel {
    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the output, which has the dtype.
        unsafe {
            match self.dtype {
                DType::Bool => return Err(Error::dtype("iota", "does not give bool")),
                DType::U8 | DType::I8 => self.count(io, |i| i as u8),
                DType::U16 | DType::I16 => self.count(io, |i| i as u16),
                DType::U32 | DType::I32 => self.count(io, |i| i as u32),
                DType::U64 | DType::I64 => self.count(io, |i| i as u64),
                DType::F16 => self.count(io, |i| f16::from_f64(i as f64)),
                DType::BF16 => self.count(io, |i| bf16::from_f64(i as f64)),
                DType::F32 => self.count(io, |i| i as f32),
                DType::F64 => self.count(io, |i| i as f64),
                DType::C32 => self.count(io, |i| Complex::new(f16::from_f64(i as f64), f16::ZERO)),
                DType::C64 => self.count(io, |i| Complex32::new(i as f32, 0.0)),
            }
        }
        finish.all();
        Ok(())
    }
}
