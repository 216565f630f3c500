//! A user's operator, on contiguous bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cupola_core::backend::{Fails, Operand};
use cupola_core::prim::Custom;
use cupola_core::prim::call::HostInput;
use cupola_core::{Aval, Error, Result, panic_text};

use crate::contiguous::Contiguous;
use crate::op::{Finish, Io, OpKernel};

/// A [`Custom`] that is ready to run.
pub struct CustomKernel {
    custom: Custom,
    inputs: Vec<(Aval, Contiguous)>,
    /// Bytes of each output.
    outputs: Vec<usize>,
}

impl CustomKernel {
    /// Prepares for these operands.
    pub fn new(custom: &Custom, inputs: &[Operand], outputs: &[Operand]) -> Result<Self> {
        let dense = |i: &Operand| Ok((i.aval.clone(), Contiguous::new(i)?));
        Ok(CustomKernel {
            custom: custom.clone(),
            inputs: inputs.iter().map(dense).collect::<Result<_>>()?,
            outputs: outputs.iter().map(|o| o.aval.bytes()).collect(),
        })
    }
}

impl OpKernel for CustomKernel {
    fn fails(&self) -> Fails {
        Fails::Anywhere
    }

    unsafe fn run(&self, io: &Io<'_>, finish: Finish<'_>) -> Result<()> {
        let dense = |((_, input), &ptr): (&(Aval, Contiguous), &*const u8)| {
            // SAFETY: the caller vouches for the input.
            unsafe { input.dense(ptr) }
        };
        let dense = self.inputs.iter().zip(&io.inputs).map(dense).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<HostInput<'_>> = (self.inputs.iter().zip(&dense))
            .map(|((aval, _), dense)| {
                // SAFETY: the input is dense now, and nobody writes it.
                HostInput { aval, bytes: unsafe { dense.slice(aval.bytes()) } }
            })
            .collect();
        let mut outputs: Vec<&mut [u8]> = (self.outputs.iter().zip(&io.outputs))
            .map(|(&bytes, &ptr)| match bytes {
                0 => &mut [][..],
                // SAFETY: the caller vouches for the outputs, which do not overlap.
                _ => unsafe { std::slice::from_raw_parts_mut(ptr, bytes) },
            })
            .collect();
        // The operator's own text: what it does must not keep the evaluation from ending.
        let run = AssertUnwindSafe(|| self.custom.0.run_host(&inputs, &mut outputs));
        catch_unwind(run).unwrap_or_else(|payload| {
            let (name, text) = (self.custom.0.name(), panic_text(&*payload));
            Err(Error::User(format!("{name} panicked: {text}")))
        })?;
        finish.all();
        Ok(())
    }
}
