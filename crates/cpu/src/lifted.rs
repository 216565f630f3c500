//! Inputs of an epilogue that are one element wherever they are read: they are read once, as scalars.

use cupola_core::backend::{Body, Operand, Reg};
use smallvec::SmallVec;

use crate::tail::is_bias;

/// Which inputs of an epilogue become scalars.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Lifted {
    /// The inputs that stay; the result itself is not counted.
    kept: Vec<usize>,
    /// Those that are read once, and the bytes of their element.
    read: Vec<(usize, usize)>,
    /// How many scalars there are before them.
    scalars: usize,
}

/// The inputs and scalars of an epilogue at a run.
pub struct LiftedArgs {
    pub inputs: SmallVec<[*const u8; 8]>,
    pub scalars: SmallVec<[[u8; 8]; 8]>,
}

impl Lifted {
    /// Lifts them from an epilogue whose input 0 is a result and whose others are `extra`; gives what is left of both.
    pub fn new(body: &Body, extra: &[Operand]) -> (Lifted, Body, Vec<Operand>) {
        let is_one = |operand: &Operand| {
            let mut axes = body.shape.iter().zip(&operand.strides);
            // Of nothing there is no element to read. What is added to one channel is a bias.
            let is_one = axes.all(|(&size, &stride)| size == 1 || size > 1 && stride == 0);
            is_one && !is_bias(body, operand)
        };
        let all = 0..extra.len();
        let (read, kept): (Vec<usize>, Vec<usize>) = all.partition(|&i| is_one(&extra[i]));
        let (mut inputs, mut scalars) = (vec![body.inputs[0]], body.scalars.clone());
        inputs.extend(kept.iter().map(|&i| body.inputs[1 + i]));
        scalars.extend(read.iter().map(|&i| body.inputs[1 + i]));
        let (had, scalar) = (body.inputs.len(), inputs.len());
        let renamed = |reg: Reg| match usize::from(reg).checked_sub(1) {
            Some(input) if input < extra.len() => match kept.binary_search(&input) {
                Ok(at) => 1 + at,
                Err(before) => scalar + body.scalars.len() + input - before,
            },
            Some(_) if usize::from(reg) < had + body.scalars.len() => usize::from(reg) - read.len(),
            _ => usize::from(reg),
        } as Reg;
        let mut left = Body { inputs, scalars, ..body.clone() };
        left.code.iter_mut().flat_map(|instr| &mut instr.args).for_each(|arg| *arg = renamed(*arg));
        left.outputs.iter_mut().for_each(|output| *output = renamed(*output));
        let operands = kept.iter().map(|&i| extra[i].clone()).collect();
        let read = read.into_iter().map(|i| (i, extra[i].aval.dtype.size())).collect();
        (Lifted { kept, read, scalars: body.scalars.len() }, left, operands)
    }

    /// What is left of an epilogue's inputs, and its scalars with what was lifted.
    ///
    /// # Safety
    /// Each input that was lifted can be read.
    pub unsafe fn args(&self, inputs: &[*const u8], scalars: &[[u8; 8]]) -> LiftedArgs {
        let mut all = SmallVec::from_slice(&scalars[..self.scalars]);
        for &(input, bytes) in &self.read {
            let mut scalar = [0; 8];
            // SAFETY: no element has more than 8 bytes; the caller vouches for the rest.
            unsafe { inputs[input].copy_to_nonoverlapping(scalar.as_mut_ptr(), bytes) };
            all.push(scalar);
        }
        LiftedArgs { inputs: self.kept.iter().map(|&i| inputs[i]).collect(), scalars: all }
    }
}

#[cfg(test)]
mod tests {
    use cupola_core::backend::Instr;
    use cupola_core::prim::{Binary, Elementwise};
    use cupola_core::{Aval, DType, Shape};
    use smallvec::smallvec;

    use super::*;

    #[test]
    fn single_elements_become_the_last_scalars() {
        let shape = Shape::from([2, 3]);
        let operand = |strides: [isize; 2]| Operand {
            aval: Aval { shape: shape.clone(), dtype: DType::F32 },
            strides: strides.into_iter().collect(),
        };
        let extra = [operand([0, 0]), operand([0, 1]), operand([0, 0])];
        let instr = |op, a, b| Instr {
            op: Elementwise::Binary(op),
            args: smallvec![a, b],
            dtype: DType::F32,
        };
        // Registers 0 to 3 are inputs, 4 a scalar, and 5 on instructions.
        let code = |[a, bias, b, scalar]: [Reg; 4]| {
            let (add, mul) = (Binary::Add, Binary::Mul);
            vec![instr(add, 0, bias), instr(mul, 5, a), instr(add, 6, b), instr(mul, 7, scalar)]
        };
        let body = Body {
            shape: shape.clone(),
            inputs: vec![DType::F32; 4],
            scalars: vec![DType::F32],
            code: code([1, 2, 3, 4]),
            outputs: vec![8, 3],
        };
        let (lifted, left, operands) = Lifted::new(&body, &extra);
        assert_eq!(operands, [extra[1].clone()]);
        let wanted = Body {
            inputs: vec![DType::F32; 2],
            scalars: vec![DType::F32; 3],
            code: code([3, 1, 4, 2]),
            outputs: vec![8, 4],
            ..body.clone()
        };
        assert_eq!(left, wanted);

        let numbers = [[1.5f32; 3], [2.5; 3], [3.5; 3]];
        let inputs: Vec<*const u8> = numbers.iter().map(|n| n.as_ptr().cast()).collect();
        // SAFETY: each input has elements.
        let args = unsafe { lifted.args(&inputs, &[[7; 8], [8; 8]]) };
        assert_eq!(args.inputs[..], [inputs[1]]);
        let is = |scalar: [u8; 8], number: f32| {
            assert_eq!((&scalar[..4], &scalar[4..]), (&number.to_ne_bytes()[..], &[0; 4][..]));
        };
        assert_eq!(args.scalars[0], [7; 8]);
        is(args.scalars[1], 1.5);
        is(args.scalars[2], 3.5);

        // With one channel an element is a bias, and of nothing there is none: a body stays as it is.
        for shape in [[6, 1], [0, 3], [3, 0]] {
            let body = Body { shape: Shape::from(shape), ..body.clone() };
            assert_eq!(Lifted::new(&body, &extra).1, body);
        }
    }
}
