//! The instructions at the start of an epilogue that a kernel does while its sums are in registers.

use cupola_core::backend::{Body, Operand, Reg};
use cupola_core::prim::{Binary, Elementwise};
use cupola_core::{DType, is_row_major};
use cupola_simd::Then;

/// Which instructions these are: a bias and a residual are added, and results are kept above and below a scalar.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TailPlan {
    /// The epilogue's input that is added, one element for each of the last axis.
    bias: Option<usize>,
    /// The epilogue's input that is added then, which lies as the results do.
    residual: Option<usize>,
    /// The run-time scalar that no result is below.
    low: Option<usize>,
    /// The run-time scalar that no result is above.
    high: Option<usize>,
    /// Whether `high` is compared with first.
    is_high_first: bool,
}

/// A [`TailPlan`] at a run.
#[derive(Clone, Copy, Default)]
pub struct TailArgs<'a> {
    /// Where the bias lies.
    pub bias: Option<*const f32>,
    /// Where the residual lies.
    pub residual: Option<*const f32>,
    /// What no result is below.
    pub low: Option<f32>,
    /// What no result is above.
    pub high: Option<f32>,
    /// What the rest of the epilogue makes of a result, where it reads nothing else.
    pub then: Option<Then<'a, f32>>,
}

impl TailArgs<'_> {
    /// Whether they say nothing.
    pub fn is_none(&self) -> bool {
        let TailArgs { bias, residual, low, high, then } = self;
        bias.is_none() && residual.is_none() && low.is_none() && high.is_none() && then.is_none()
    }
}

// SAFETY: the pointer is only an address; who follows it says why that is sound.
unsafe impl Sync for TailArgs<'_> {}

impl TailPlan {
    /// Cuts them off an epilogue whose input 0 is a result of `float32` and whose others are `extra`; gives what is
    /// left of it, if anything is.
    pub fn cut(body: &Body, extra: &[Operand]) -> (TailPlan, Option<Body>) {
        let (mut plan, mut body) = (TailPlan::default(), body.clone());
        while let Some((at, step)) = plan.next(&body, extra) {
            match step {
                Step::Bias(input) => plan.bias = Some(input),
                Step::Residual(input) => plan.residual = Some(input),
                Step::Low(scalar) => plan.low = Some(scalar),
                Step::High(scalar) => {
                    plan.is_high_first = plan.low.is_none();
                    plan.high = Some(scalar);
                }
            }
            remove(&mut body, at);
        }
        let is_done = body.code.is_empty() && body.outputs[..] == [0];
        (plan, (!is_done).then_some(body))
    }

    /// The instruction that comes next to what there is, if it is the only one that reads the result so far.
    fn next(&self, body: &Body, extra: &[Operand]) -> Option<(usize, Step)> {
        let mut readers = body.code.iter().enumerate().filter(|(_, i)| i.args.contains(&0));
        let (at, instr) = readers.next()?;
        if readers.next().is_some() || body.outputs.contains(&0) || instr.dtype != DType::F32 {
            return None;
        }
        let Elementwise::Binary(op) = instr.op else { return None };
        let &[left, right] = &instr.args[..] else { return None };
        let other = if left == 0 { right } else { left };
        if other == 0 || body.dtype_of(other) != DType::F32 {
            return None;
        }
        let (inputs, other) = (body.inputs.len(), usize::from(other));
        let scalar = other.checked_sub(inputs).filter(|&scalar| scalar < body.scalars.len());
        let is_free = self.low.is_none() && self.high.is_none();
        let step = match (op, scalar) {
            (Binary::Add, None) if self.residual.is_none() && is_free && other < inputs => {
                let (input, operand) = (other - 1, extra.get(other - 1)?);
                if self.bias.is_none() && is_bias(body, operand) {
                    Step::Bias(input)
                } else if is_row_major(&body.shape, &operand.strides) {
                    Step::Residual(input)
                } else {
                    return None;
                }
            }
            // Where both are equal the scalar is the result, as the register's lanes have it.
            (Binary::Maximum, Some(scalar)) if self.low.is_none() && left == 0 => Step::Low(scalar),
            (Binary::Minimum, Some(scalar)) if self.high.is_none() && left == 0 => {
                Step::High(scalar)
            }
            _ => return None,
        };
        Some((at, step))
    }

    /// What it says for inputs and scalars of a run: those of the epilogue.
    pub fn args(&self, inputs: &[*const u8], scalars: &[[u8; 8]]) -> TailArgs<'static> {
        let scalar = |at: usize| number(scalars[at]);
        let (mut low, mut high) = (self.low.map(scalar), self.high.map(scalar));
        if let (Some(from), Some(to)) = (low, high)
            && from >= to
        {
            // What is compared with last holds, also where one is −0 and the other 0.
            let both = if self.is_high_first { from } else { to };
            (low, high) = (Some(both), Some(both));
        }
        let input = |at: usize| inputs[at].cast();
        let (bias, residual) = (self.bias.map(input), self.residual.map(input));
        TailArgs { bias, residual, low, high, then: None }
    }
}

/// The number that a scalar of `float32` is.
pub(crate) fn number([a, b, c, d, ..]: [u8; 8]) -> f32 {
    f32::from_ne_bytes([a, b, c, d])
}

enum Step {
    Bias(usize),
    Residual(usize),
    Low(usize),
    High(usize),
}

/// Whether an operand has one element for each index of the last axis, side by side.
pub(crate) fn is_bias(body: &Body, operand: &Operand) -> bool {
    let Some((last, axes)) = body.shape.split_last() else { return false };
    let Some((stride, strides)) = operand.strides.split_last() else { return false };
    let repeats = axes.iter().zip(strides).all(|(&size, &stride)| size <= 1 || stride == 0);
    repeats && (*stride == 1 || *last == 1)
}

/// Takes an instruction out of a body: what read its result reads register 0.
fn remove(body: &mut Body, at: usize) {
    let gone = (body.registers() - body.code.len() + at) as Reg;
    body.code.remove(at);
    let renamed = |reg: &mut Reg| match (*reg).cmp(&gone) {
        std::cmp::Ordering::Less => {}
        std::cmp::Ordering::Equal => *reg = 0,
        std::cmp::Ordering::Greater => *reg -= 1,
    };
    body.code.iter_mut().flat_map(|instr| &mut instr.args).for_each(renamed);
    body.outputs.iter_mut().for_each(renamed);
}

#[cfg(test)]
mod tests {
    use cupola_core::backend::Instr;
    use cupola_core::{Aval, Shape};
    use smallvec::smallvec;

    use super::*;

    fn binary(op: Binary, a: Reg, b: Reg) -> Instr {
        let (op, args) = (Elementwise::Binary(op), smallvec![a, b]);
        Instr { op, args, dtype: DType::F32 }
    }

    /// A result of `[2, 3]`, a bias of 3, a matrix, and two scalars: registers 0 to 4.
    fn body(code: &[Instr]) -> (Body, [Operand; 2]) {
        let shape = Shape::from([2, 3]);
        let aval = Aval { shape: shape.clone(), dtype: DType::F32 };
        let operand = |strides: [isize; 2]| Operand {
            aval: aval.clone(),
            strides: strides.into_iter().collect(),
        };
        let inputs = vec![DType::F32; 3];
        let outputs = vec![4 + code.len() as Reg];
        let body =
            Body { shape, inputs, scalars: vec![DType::F32; 2], code: code.to_vec(), outputs };
        (body, [operand([0, 1]), operand([3, 1])])
    }

    fn plan(code: &[Instr]) -> (TailPlan, Option<Vec<Instr>>) {
        let (body, extra) = body(code);
        let (plan, rest) = TailPlan::cut(&body, &extra);
        (plan, rest.map(|body| body.code))
    }

    #[test]
    fn a_bias_and_bounds_are_cut_off() {
        use Binary::{Add, Maximum, Minimum, Mul};
        let all = [binary(Add, 1, 0), binary(Maximum, 5, 3), binary(Minimum, 6, 4)];
        let bounds = TailPlan { low: Some(0), high: Some(1), ..TailPlan::default() };
        let wanted = TailPlan { bias: Some(0), ..bounds };
        assert_eq!(plan(&all), (wanted, None));
        // A matrix that lies as the sums do is added after a bias; a bias after it is another sum.
        let both =
            [binary(Add, 1, 0), binary(Add, 2, 5), binary(Maximum, 6, 3), binary(Minimum, 7, 4)];
        assert_eq!(plan(&both), (TailPlan { residual: Some(1), ..wanted }, None));
        let late = [binary(Add, 0, 2), binary(Add, 5, 1)];
        let residual = TailPlan { residual: Some(1), ..TailPlan::default() };
        assert_eq!(plan(&late), (residual, Some(vec![binary(Add, 0, 1)])));
        let turned = [binary(Minimum, 0, 4), binary(Maximum, 5, 3)];
        let wanted = TailPlan { bias: None, is_high_first: true, ..wanted };
        assert_eq!(plan(&turned), (wanted, None));
        // What follows reads what is left: here the sum with the bias, twice.
        let swish = [binary(Add, 0, 1), binary(Maximum, 5, 3), binary(Mul, 5, 6)];
        let wanted = TailPlan { bias: Some(0), ..TailPlan::default() };
        let rest = vec![binary(Maximum, 0, 3), binary(Mul, 0, 5)];
        assert_eq!(plan(&swish), (wanted, Some(rest)));
    }

    #[test]
    fn other_instructions_stay() {
        use Binary::{Add, Maximum, Sub};
        let none = TailPlan::default();
        for code in [
            // The sum itself, another order, a scalar that is added.
            [binary(Add, 0, 0)],
            [binary(Sub, 0, 1)],
            [binary(Maximum, 3, 0)],
            [binary(Add, 0, 3)],
        ] {
            assert_eq!(plan(&code), (none, Some(code.to_vec())));
        }
        // A bias after a bound is another result.
        let (has, rest) = plan(&[binary(Maximum, 0, 3), binary(Add, 5, 1)]);
        assert_eq!(has, TailPlan { low: Some(0), ..none });
        assert_eq!(rest, Some(vec![binary(Add, 0, 1)]));
        // A matrix that lies otherwise.
        let (across, mut extra) = body(&[binary(Add, 0, 2)]);
        extra[1].strides = [1, 2].into_iter().collect();
        assert_eq!(TailPlan::cut(&across, &extra), (none, Some(across.clone())));
        // What else is stored is not overwritten.
        let (mut body, extra) = body(&[binary(Add, 0, 1)]);
        body.outputs = vec![0, 5];
        assert_eq!(TailPlan::cut(&body, &extra), (none, Some(body.clone())));
    }

    #[test]
    fn bounds_that_cross_are_what_comes_last() {
        let bytes = |x: f32| {
            let [a, b, c, d] = x.to_ne_bytes();
            [a, b, c, d, 0, 0, 0, 0]
        };
        let plan = TailPlan { low: Some(0), high: Some(1), ..TailPlan::default() };
        let scalars = [bytes(2.0), bytes(1.0)];
        let args = plan.args(&[], &scalars);
        assert_eq!((args.low, args.high), (Some(1.0), Some(1.0)));
        let args = TailPlan { is_high_first: true, ..plan }.args(&[], &scalars);
        assert_eq!((args.low, args.high), (Some(2.0), Some(2.0)));
        let args = plan.args(&[], &[bytes(-1.0), bytes(1.0)]);
        assert_eq!((args.low, args.high), (Some(-1.0), Some(1.0)));
        for (low, high) in [(0.0f32, -0.0f32), (-0.0, 0.0)] {
            for (is_high_first, last) in [(true, low), (false, high)] {
                let args = TailPlan { is_high_first, ..plan }.args(&[], &[bytes(low), bytes(high)]);
                let both = [args.low, args.high].map(|x| x.unwrap().to_bits());
                assert_eq!(both, [last.to_bits(); 2]);
            }
        }
    }
}
