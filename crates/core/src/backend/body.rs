//! The elementwise program: a list of scalar instructions in single-assignment form.
//!
//! The CPU interprets it over tiles, a GPU prints it. Registers are numbered: first the inputs,
//! then the run-time scalars, then one an instruction.

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::prim::Elementwise;
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
    pub op: Elementwise,
    /// The registers it reads.
    pub args: SmallVec<[Reg; 3]>,
    /// The dtype of the result, which is a value of it: what is computed in a wider type is rounded
    /// before anything reads it.
    pub dtype: DType,
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

    /// Whether what an instruction computed in a wider type has to be rounded.
    pub fn rounds(&self, instr: &Instr) -> bool {
        instr.op.rounds(self.dtype_of(instr.args[0]), instr.dtype)
    }

    /// Whether an instruction reads a register: one that is only stored need not be rounded to its
    /// dtype, which storing does.
    pub fn reads(&self, reg: Reg) -> bool {
        self.code.iter().any(|instr| instr.args.contains(&reg))
    }

    /// About how much memory it holds besides its own.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.inputs[..])
            + size_of_val(&self.scalars[..])
            + size_of_val(&self.code[..])
            + size_of_val(&self.outputs[..])
    }

    /// How many registers there are.
    pub fn registers(&self) -> usize {
        self.inputs.len() + self.scalars.len() + self.code.len()
    }
}
