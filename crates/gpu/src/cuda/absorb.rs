//! What of an epilogue cuBLASLt does with a product: it adds a row and an array before it rounds, and takes the larger
//! of the sum and zero.

use cupola_core::DType;
use cupola_core::backend::{Body, Reg, Segment};
use cupola_core::prim::{Binary, Elementwise};

use super::matrices::Product;

/// What is done with a product before it is rounded, by number of the segment's inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absorbed {
    /// A row that is added to each row.
    pub row: Option<usize>,
    /// An array that is added, laid out as the result.
    pub array: Option<usize>,
    /// A run-time scalar that the result is at least, which has to be zero.
    pub least: Option<usize>,
    /// What is left of the program.
    pub rest: Option<Body>,
}

/// The beginning of a segment's epilogue that the library can do; only sums where it `only_adds`.
pub fn absorbed(segment: &Segment, product: &Product, only_adds: bool) -> Option<Absorbed> {
    let epilogue = segment.epilogue.as_ref()?;
    let (body, out) = (&epilogue.body, &segment.outputs[0]);
    let dtype = out.aval.dtype;
    // A result that lies by columns has its rows where the library has columns.
    if !matches!(dtype, DType::F16 | DType::BF16 | DType::F32) || !product.lies_by_rows {
        return None;
    }
    let (&last, rest) = out.strides.split_last()?;
    if last != 1 && out.aval.shape.last() != Some(&1) || rest.contains(&0) {
        return None;
    }
    let mut done = Absorbed { row: None, array: None, least: None, rest: None };
    let mut gone: Vec<usize> = Vec::new();
    let mut result: Reg = 0;
    let first = body.inputs.len() + body.scalars.len();
    // What reads the result of the product, as long as that is one sum after another.
    while !body.outputs.contains(&result) {
        let mut readers = (0..body.code.len()).filter(|&at| body.code[at].args.contains(&result));
        let (Some(at), None) = (readers.next(), readers.next()) else { break };
        let instr = &body.code[at];
        let &[a, b] = &instr.args[..] else { break };
        let other = if a == result { b } else { a };
        if a == b || instr.dtype != dtype || body.dtype_of(other) != dtype {
            break;
        }
        let next = (first + at) as Reg;
        let number = usize::from(other);
        match instr.op {
            Elementwise::Binary(Binary::Add) if (1..body.inputs.len()).contains(&number) => {
                let users = body.code.iter().flat_map(|instr| &instr.args);
                if users.filter(|&&reg| reg == other).count() > 1 || body.outputs.contains(&other) {
                    break;
                }
                let input = epilogue.first_input + number - 1;
                let walks = |wanted: &dyn Fn(usize) -> isize| {
                    let strides = segment.inputs[input].strides.iter().enumerate();
                    let mut own = strides.zip(&out.aval.shape[..]);
                    own.all(|((axis, &step), &size)| size == 1 || step == wanted(axis))
                };
                let last = out.strides.len() - 1;
                let is_row = walks(&|axis| isize::from(axis == last));
                match (is_row, walks(&|axis| out.strides[axis])) {
                    (true, _) if done.row.is_none() => done.row = Some(input),
                    (_, true) if done.array.is_none() => done.array = Some(input),
                    _ => break,
                }
            }
            Elementwise::Binary(Binary::Maximum)
                if (body.inputs.len()..first).contains(&number)
                    && (done.row.is_some() && !only_adds)
                    && body.outputs == [next] =>
            {
                done.least = Some(number - body.inputs.len());
            }
            _ => break,
        }
        gone.push(at);
        result = next;
    }
    if done.row.is_none() && done.array.is_none() {
        return None;
    }
    done.rest = (gone.len() < body.code.len()).then(|| without(body, &gone));
    Some(done)
}

/// The program without these instructions, whose results are the first input.
fn without(body: &Body, gone: &[usize]) -> Body {
    let first = body.inputs.len() + body.scalars.len();
    let register = |reg: Reg| match usize::from(reg).checked_sub(first) {
        None => reg,
        Some(at) if gone.contains(&at) => 0,
        Some(at) => reg - gone.iter().filter(|&&other| other < at).count() as Reg,
    };
    let mut left = body.clone();
    left.code = (body.code.iter().enumerate())
        .filter(|(at, _)| !gone.contains(at))
        .map(|(_, instr)| {
            let mut instr = instr.clone();
            instr.args.iter_mut().for_each(|reg| *reg = register(*reg));
            instr
        })
        .collect();
    left.outputs.iter_mut().for_each(|reg| *reg = register(*reg));
    left
}

#[cfg(test)]
mod tests {
    use cupola_core::backend::{Body, Epilogue, Instr, Kernel, Operand, Reg, Segment};
    use cupola_core::prim::{Binary, Dot, Elementwise, KernelOp, Unary};
    use cupola_core::{Aval, DType};
    use smallvec::smallvec;

    use super::super::matrices::Product;
    use super::absorbed;

    const SHAPE: [usize; 2] = [3, 4];

    fn binary(op: Binary, args: [Reg; 2]) -> Instr {
        Instr { op: Elementwise::Binary(op), args: smallvec![args[0], args[1]], dtype: DType::F32 }
    }

    fn unary(op: Unary, arg: Reg) -> Instr {
        Instr { op: Elementwise::Unary(op), args: smallvec![arg], dtype: DType::F32 }
    }

    /// A product with a row and an array beside it, and a scalar: registers 1, 2 and 3.
    fn segment(code: Vec<Instr>, output: Reg) -> Segment {
        let dense = |shape: [usize; 2]| Operand::contiguous(&Aval::new(&shape[..], DType::F32));
        let mut row = dense(SHAPE);
        row.strides = smallvec![0, 1];
        let body = Body {
            shape: SHAPE.into(),
            inputs: vec![DType::F32; 3],
            scalars: vec![DType::F32],
            code,
            outputs: vec![output],
        };
        Segment {
            kernel: Kernel::Op(KernelOp::Dot(Dot::of(DType::F32))),
            inputs: vec![dense([3, 5]), dense([5, 4]), row, dense(SHAPE)],
            outputs: vec![dense(SHAPE)],
            scalars: vec![DType::F32],
            epilogue: Some(Epilogue { body, first_input: 2 }),
        }
    }

    fn found(code: Vec<Instr>, output: Reg) -> Option<super::Absorbed> {
        let segment = segment(code, output);
        absorbed(&segment, &Product::of(&Dot::of(DType::F32), &segment)?, false)
    }

    #[test]
    fn sums_and_the_larger_of_them_and_zero_are_the_librarys() {
        let sums = vec![binary(Binary::Add, [0, 1]), binary(Binary::Add, [2, 4])];
        let all = found(sums.clone(), 5).expect("sums");
        assert_eq!((all.row, all.array, all.least, all.rest), (Some(2), Some(3), None, None));
        let most = [sums.clone(), vec![binary(Binary::Maximum, [5, 3])]].concat();
        let all = found(most, 6).expect("sums");
        assert_eq!((all.row, all.array, all.least, all.rest), (Some(2), Some(3), Some(0), None));
    }

    #[test]
    fn the_rest_reads_the_sum_as_the_result() {
        let code = vec![
            unary(Unary::Exp, 2),
            binary(Binary::Add, [1, 0]),
            unary(Unary::Tanh, 5),
            binary(Binary::Mul, [6, 4]),
        ];
        let part = found(code, 7).expect("a sum");
        assert_eq!((part.row, part.array), (Some(2), None));
        let rest = part.rest.expect("more");
        let args: Vec<_> = rest.code.iter().map(|instr| instr.args.to_vec()).collect();
        assert_eq!(args, [vec![2], vec![0], vec![5, 4]]);
        assert_eq!(rest.outputs, [6]);
    }

    #[test]
    fn what_something_else_reads_is_left() {
        // The product itself is read twice.
        let twice = vec![binary(Binary::Add, [0, 1]), binary(Binary::Mul, [4, 0])];
        assert_eq!(found(twice, 5), None);
        // The row is read once more.
        let row = vec![binary(Binary::Add, [0, 1]), binary(Binary::Mul, [4, 1])];
        assert_eq!(found(row, 5), None);
        // A difference, and a larger of a product alone.
        assert_eq!(found(vec![binary(Binary::Sub, [0, 1])], 4), None);
        assert_eq!(found(vec![binary(Binary::Maximum, [0, 3])], 4), None);
        // The sum of a sum and itself.
        let own = vec![binary(Binary::Add, [0, 1]), binary(Binary::Add, [4, 4])];
        assert_eq!(found(own, 5).and_then(|part| part.rest).map(|rest| rest.code.len()), Some(1));
    }
}
