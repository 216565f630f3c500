//! What the host looks at to tell what is wrong with a matrix.

use std::sync::Arc;

use cudarc::driver::sys::CUstream;
use cupola_core::prim::Linalg;
use cupola_core::{Error, Result};

use crate::cuda::commands::Library;
use crate::cuda::gpu::Gpu;

/// What the host looks for once a batch is done, or before its numbers are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// That every element that is read is finite.
    Finite,
    /// That no pivot is 0.
    Pivots,
    /// That the library found the matrix positive definite, and nothing is NaN.
    Definite,
    /// That the library's iteration came to its end.
    Converged,
}

/// A check that is ready to run: it waits for the device.
pub struct Checked {
    pub op: Linalg,
    pub check: Check,
    /// How many matrices there are.
    pub count: usize,
}

impl Check {
    /// What is wrong with a matrix by its words: ours, and the library's.
    fn flaw(self, own: u32, info: i32) -> Option<String> {
        match self {
            Check::Finite if own != 0 => Some("has an element that is not finite".to_owned()),
            Check::Pivots if own != 0 => {
                Some(format!("is singular: pivot {} is 0", u32::MAX - own))
            }
            Check::Definite if own != 0 || info > 0 => Some("is not positive definite".to_owned()),
            Check::Converged if info > 0 => {
                Some("leads to no end: the iteration does not converge".to_owned())
            }
            Check::Finite | Check::Pivots | Check::Definite | Check::Converged => None,
        }
    }
}

impl Checked {
    /// The error of the first matrix that has a flaw.
    pub(super) fn verdict(&self, words: &[u32]) -> Result<()> {
        let (own, infos) = words.split_at(self.count.min(words.len()));
        let mut flaws =
            own.iter().zip(infos).map(|(&own, &info)| self.check.flaw(own, info as i32));
        let found = flaws.by_ref().enumerate().find_map(|(i, flaw)| Some((i, flaw?)));
        let Some((i, reason)) = found else { return Ok(()) };
        let which = if self.count > 1 { format!("matrix {i} ") } else { "the matrix ".into() };
        Err(Error::numeric(self.op.name(), which + &reason))
    }
}

impl Library for Checked {
    fn enqueue(&self, gpu: &Arc<Gpu>, _: CUstream, places: &[u64]) -> Result<()> {
        let &[words] = places else { return Err(gpu.error("a check has a region")) };
        let mut bytes = vec![0; 2 * self.count * size_of::<u32>()];
        gpu.read_at(words, &mut bytes)?;
        let (chunks, _) = bytes.as_chunks::<4>();
        let words: Vec<u32> = chunks.iter().map(|&chunk| u32::from_ne_bytes(chunk)).collect();
        self.verdict(&words)
    }
}
