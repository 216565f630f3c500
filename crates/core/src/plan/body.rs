//! The elementwise program: a list of scalar instructions in single-assignment form.
//!
//! The CPU interprets it over tiles, a GPU prints it. Registers are numbered: first the inputs,
//! then the run-time scalars, then one an instruction.

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::prim::{Binary, Cast, Compare, Op, Select, Unary};
use crate::shape::Shape;

/// The number of a register.
pub type Reg = u16;

/// An elementwise program over `shape`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Body {
    /// The shape that it runs over.
    pub shape: Shape,
    /// The dtypes of its array inputs: registers 0 to `inputs.len()`.
    pub inputs: Vec<DType>,
    /// The dtypes of its run-time scalars: the registers after the inputs.
    pub scalars: Vec<DType>,
    /// What it computes, in order; each instruction's result is the next register.
    pub code: Vec<Instr>,
    /// The registers that are stored, each with its own dtype.
    pub outputs: Vec<Reg>,
}

/// One scalar operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Instr {
    /// What to compute.
    pub op: BodyOp,
    /// The registers it reads.
    pub args: SmallVec<[Reg; 3]>,
    /// The dtype of the result. `float16` and `bfloat16` are held in `float32` and rounded only
    /// where they are stored or where a cast says so.
    pub dtype: DType,
}

/// The primitives that can be in a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BodyOp {
    /// One operand.
    Unary(Unary),
    /// Two operands.
    Binary(Binary),
    /// Two operands, to bool.
    Compare(Compare),
    /// Condition, a, b.
    Select(Select),
    /// Another dtype; rounds where that is narrower.
    Cast(Cast),
}

impl BodyOp {
    /// The elementwise part of `op`, if it is elementwise.
    pub fn of(op: &Op) -> Option<BodyOp> {
        match op {
            Op::Unary(u) => Some(BodyOp::Unary(*u)),
            Op::Binary(b) => Some(BodyOp::Binary(*b)),
            Op::Compare(c) => Some(BodyOp::Compare(*c)),
            Op::Select(s) => Some(BodyOp::Select(*s)),
            Op::Cast(c) => Some(BodyOp::Cast(*c)),
            Op::Input(_)
            | Op::Constant(_)
            | Op::Iota(_)
            | Op::Mark(_)
            | Op::Movement(_)
            | Op::Reduce(_)
            | Op::ArgReduce(_)
            | Op::Scan(_)
            | Op::Bitcast(_)
            | Op::Gather(_)
            | Op::Scatter(_)
            | Op::GatherAxis(_)
            | Op::ScatterAxis(_)
            | Op::Dot(_)
            | Op::Conv(_)
            | Op::Pool(_)
            | Op::RandomBits(_)
            | Op::Sort(_)
            | Op::Call(_)
            | Op::Custom(_) => None,
        }
    }
}

impl Body {
    /// The program that copies its one input.
    pub fn copy(shape: Shape, dtype: DType) -> Self {
        Body { shape, inputs: vec![dtype], scalars: Vec::new(), code: Vec::new(), outputs: vec![0] }
    }

    /// The dtype of a register.
    pub fn dtype_of(&self, reg: Reg) -> DType {
        let reg = usize::from(reg);
        let (inputs, scalars) = (self.inputs.len(), self.scalars.len());
        if reg < inputs {
            self.inputs[reg]
        } else if reg < inputs + scalars {
            self.scalars[reg - inputs]
        } else {
            self.code[reg - inputs - scalars].dtype
        }
    }

    /// How many registers there are.
    pub fn registers(&self) -> usize {
        self.inputs.len() + self.scalars.len() + self.code.len()
    }
}
