//! The same bytes as elements of another dtype: a copy.

use cupola_core::Result;
use cupola_core::backend::Operand;

use crate::contiguous::Contiguous;
use crate::op::{Finish, Io, OpKernel};

/// A [`cupola_core::prim::Bitcast`] that is ready to run.
pub struct BitcastKernel {
    x: Contiguous,
}

impl BitcastKernel {
    /// Prepares for this input.
    pub fn new(x: &Operand) -> Result<Self> {
        Ok(BitcastKernel { x: Contiguous::new(x)? })
    }
}

impl OpKernel for BitcastKernel {
    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        // SAFETY: the caller vouches for the operands, and the output has as many bytes.
        unsafe { self.x.copy_to(io.inputs[0], io.outputs[0]) };
        finish.all();
        Ok(())
    }
}
