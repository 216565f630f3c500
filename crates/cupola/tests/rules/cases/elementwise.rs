//! Functions of the elements at one place.

use super::*;

/// Where a function is smooth, to try it there.
fn domain(f: Unary) -> (f64, f64) {
    match f {
        Unary::Sqrt | Unary::Rsqrt | Unary::Log | Unary::Log2 | Unary::Log10 | Unary::Log1p => {
            (0.5, 3.0)
        }
        Unary::Acosh => (1.3, 3.0),
        Unary::Asin | Unary::Acos | Unary::Atanh | Unary::ErfInv => (-0.8, 0.8),
        Unary::Floor | Unary::Ceil | Unary::Round => (0.1, 0.4),
        Unary::Abs | Unary::Sign => (-2.0, -0.1),
        Unary::Neg
        | Unary::Square
        | Unary::Exp
        | Unary::Expm1
        | Unary::Sin
        | Unary::Cos
        | Unary::Tan
        | Unary::Atan
        | Unary::Sinh
        | Unary::Cosh
        | Unary::Tanh
        | Unary::Asinh
        | Unary::Sigmoid
        | Unary::Erf
        | Unary::Not
        | Unary::Invert
        | Unary::Conj
        | Unary::Real
        | Unary::Imag => (-1.2, 1.2),
    }
}

pub fn cases() -> Vec<Case> {
    let mut source = Source::new(1);
    let mut cases = Vec::new();
    let flags = Array::from_slice(&[true, false, true, true, false, false], [2, 3]).expect("bools");
    let numbers = u32s(&[3, 1, 4, 1, 5, 9], &[2, 3]);
    for &f in Unary::ALL {
        let (low, high) = domain(f);
        let input = [DType::F64, DType::Bool, DType::U32].into_iter().find(|&d| f.takes(d));
        let x = match input {
            Some(DType::F64) => source.array(&[2, 3], low, high),
            Some(DType::Bool) => flags.clone(),
            Some(_) => numbers.clone(),
            // Complex numbers are tried by exact values.
            None => continue,
        };
        cases.push(Case::new(f, &[&x]));
    }
    for &f in Binary::ALL {
        if !f.takes(DType::F64) {
            cases.push(Case::new(f, &[&numbers, &u32s(&[2, 7, 1, 8, 2, 8], &[2, 3])]));
            continue;
        }
        // Positive, apart from each other, and off the steps of quotients.
        let a = source.array(&[2, 3], 2.1, 2.4);
        let b = source.array(&[2, 3], 1.1, 1.4);
        cases.push(Case::new(f, &[&a, &b]));
        cases.push(Case::new(f, &[&b, &a]));
    }
    for &how in Compare::ALL {
        let (a, b) = (source.array(&[4], -1.0, 1.0), source.array(&[4], -1.0, 1.0));
        cases.push(Case::new(how, &[&a, &b]));
    }
    let (a, b) = (source.array(&[2, 3], -1.0, 1.0), source.array(&[2, 3], -1.0, 1.0));
    cases.push(Case::new(Select, &[&flags, &a, &b]));
    cases.push(Case::new(Cast { to: DType::I32 }, &[&a]));
    cases.push(Case::new(Cast { to: DType::F64 }, &[&numbers]));
    cases.push(Case { tolerance: 2e-3, step: 0.05, ..Case::new(Cast { to: DType::F32 }, &[&a]) });
    cases.push(Case::new(Mark::Depends, &[&a, &b]));
    cases
}
