//! What the host knows of integers before a plan runs: the least and the largest of what it gave, and
//! of what a plan makes of that on its way to an index. So a device that would tell late of an index
//! outside its axis need not be waited for.

use std::cell::Cell;

use super::{LateCheck, Parameters, Plan, Step};
use crate::array::Value;
use crate::backend::{Body, Kernel, Reg};
use crate::dtype::DType;
use crate::prim::{Binary, Compare, Elementwise, KernelOp};

/// The least and the largest that a number may be.
type Range = (i64, i64);

/// How many steps lie between what the host gave and an index, at most.
const DEPTH: usize = 8;
/// How many registers of programs are looked at for one range, at most: programs may read one twice, over and over.
const LOOKS: u32 = 256;

impl Plan {
    /// Whether no index can be outside its axis.
    pub(super) fn indices_are_known(&self, leaves: &[Value], parameters: &dyn Parameters) -> bool {
        self.late.iter().all(|check| match check {
            LateCheck::Indices { slot, bound } => {
                let known = Known::of(self, leaves, parameters);
                known.slot(*slot, DEPTH).is_some_and(|(least, most)| {
                    least >= 0 && usize::try_from(most).is_ok_and(|most| most < *bound)
                })
            }
            LateCheck::Inside => false,
        })
    }

    /// The range of all that a run leaves in a slot, where that is of integers.
    pub(super) fn range(
        &self,
        slot: u32,
        leaves: &[Value],
        parameters: &dyn Parameters,
    ) -> Option<Range> {
        if let Some(leaf) = leaves.get(slot as usize) {
            return leaf.range;
        }
        let maker = self.makers.get(slot as usize).copied().flatten()?;
        let step = &self.steps[maker as usize];
        let at = step.outputs.iter().position(|out| out.slot == slot)?;
        let is_integer = step.prepared.segment.outputs[at].aval.dtype.is_integer();
        is_integer.then(|| Known::of(self, leaves, parameters).slot(slot, DEPTH))?
    }
}

/// A step's elementwise program.
struct Code<'a> {
    step: &'a Step,
    body: &'a Body,
    /// Of an epilogue what is known of its first input, and where the others are among those of the step.
    first: Option<(Range, usize)>,
}

struct Known<'a> {
    plan: &'a Plan,
    leaves: &'a [Value],
    parameters: &'a dyn Parameters,
    /// How many registers are still looked at.
    looks: Cell<u32>,
}

impl<'a> Known<'a> {
    fn of(plan: &'a Plan, leaves: &'a [Value], parameters: &'a dyn Parameters) -> Self {
        Known { plan, leaves, parameters, looks: Cell::new(LOOKS) }
    }

    /// The range of all that lies in a slot.
    fn slot(&self, slot: u32, depth: usize) -> Option<Range> {
        if let Some(leaf) = self.leaves.get(slot as usize) {
            return leaf.range;
        }
        let maker = self.plan.makers[slot as usize]?;
        let (step, depth) = (&self.plan.steps[maker as usize], depth.checked_sub(1)?);
        match &step.prepared.segment.kernel {
            Kernel::Map(body) => {
                let at = step.outputs.iter().position(|out| out.slot == slot)?;
                self.register(&Code { step, body, first: None }, body.outputs[at], depth)
            }
            Kernel::Op(KernelOp::Iota(iota)) => {
                let size = i64::try_from(iota.shape[iota.axis]).ok()?;
                let counted = (0, size.saturating_sub(1).max(0));
                let Some(epilogue) = &step.prepared.segment.epilogue else { return Some(counted) };
                let first = Some((counted, epilogue.first_input));
                let code = Code { step, body: &epilogue.body, first };
                self.register(&code, epilogue.body.outputs[0], depth)
            }
            Kernel::Op(KernelOp::ArgReduce(reduce)) if step.prepared.segment.epilogue.is_none() => {
                let size = step.prepared.segment.inputs[0].aval.shape[reduce.axis];
                Some((0, i64::try_from(size).ok()?.saturating_sub(1).max(0)))
            }
            // They hand on what they read.
            Kernel::Op(KernelOp::Gather(_) | KernelOp::GatherAxis(_))
                if step.prepared.segment.epilogue.is_none() =>
            {
                self.slot(step.inputs[0].slot, depth)
            }
            Kernel::Op(_)
            | Kernel::Reduce { .. }
            | Kernel::Rows { .. }
            | Kernel::Composite(_)
            | Kernel::Control(_)
            | Kernel::Custom(_) => None,
        }
    }

    /// The range of a register of a step's elementwise program.
    fn register(&self, code: &Code<'_>, register: Reg, depth: usize) -> Option<Range> {
        self.looks.set(self.looks.get().checked_sub(1)?);
        let Code { step, body, first } = code;
        let at = usize::from(register);
        let (inputs, scalars) = (body.inputs.len(), body.scalars.len());
        if at < inputs {
            return match first {
                None => self.slot(step.inputs[at].slot, depth),
                Some((range, _)) if at == 0 => Some(*range),
                Some((_, more)) => self.slot(step.inputs[more + at - 1].slot, depth),
            };
        }
        if at < inputs + scalars {
            let (source, dtype) = step.scalars[at - inputs];
            return integer(source.element(dtype, self.parameters), dtype);
        }
        let instr = &body.code[at - inputs - scalars];
        let arg = |i: usize| self.register(code, instr.args[i], depth);
        let range = match instr.op {
            Elementwise::Cast(_) if body.dtype_of(instr.args[0]).is_integer() => arg(0)?,
            Elementwise::Binary(Binary::Add) => {
                let ((a, b), (c, d)) = (arg(0)?, arg(1)?);
                (a.checked_add(c)?, b.checked_add(d)?)
            }
            Elementwise::Binary(Binary::Mul) => {
                let ((a, b), (c, d)) = (arg(0)?, arg(1)?);
                let all =
                    [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
                (all.into_iter().min()?, all.into_iter().max()?)
            }
            Elementwise::Compare(Compare::Lt) => {
                let ((a, b), (c, d)) = (arg(0)?, arg(1)?);
                (i64::from(b < c), i64::from(a < d))
            }
            Elementwise::Select(_) => match arg(0)? {
                (1, 1) => arg(1)?,
                (0, 0) => arg(2)?,
                _ => {
                    let ((a, b), (c, d)) = (arg(1)?, arg(2)?);
                    (a.min(c), b.max(d))
                }
            },
            Elementwise::Unary(_)
            | Elementwise::Binary(_)
            | Elementwise::Compare(_)
            | Elementwise::Cast(_) => return None,
        };
        fits(range, instr.dtype).then_some(range)
    }
}

/// The integer with these bytes.
fn integer(bytes: [u8; 8], dtype: DType) -> Option<Range> {
    if cfg!(target_endian = "big") {
        return None;
    }
    let wide = i64::from_le_bytes(bytes);
    let value = match dtype {
        DType::U8 => wide & 0xff,
        DType::U16 => wide & 0xffff,
        DType::U32 => wide & 0xffff_ffff,
        DType::I8 => i64::from(wide as i8),
        DType::I16 => i64::from(wide as i16),
        DType::I32 => i64::from(wide as i32),
        DType::I64 => wide,
        DType::Bool
        | DType::U64
        | DType::F16
        | DType::BF16
        | DType::F32
        | DType::F64
        | DType::C32
        | DType::C64 => return None,
    };
    Some((value, value))
}

/// Whether `dtype` holds these numbers, so that none has wrapped.
fn fits((least, most): Range, dtype: DType) -> bool {
    let bits = 8 * dtype.size() as u32;
    match dtype {
        DType::Bool => least >= 0 && most <= 1,
        DType::U64 => least >= 0,
        DType::I64 => true,
        DType::U8 | DType::U16 | DType::U32 => least >= 0 && most < 1 << bits,
        DType::I8 | DType::I16 | DType::I32 => least >= -1 << (bits - 1) && most < 1 << (bits - 1),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::C32 | DType::C64 => false,
    }
}
