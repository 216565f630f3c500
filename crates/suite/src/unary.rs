//! Functions of one operand.

use cupola_core::prim::Unary;
use cupola_core::{Aval, DType};
use num_complex::Complex64;

use crate::edges::{EDGES, INTEGERS, ends, of_numbers, of_op, row};
use crate::host::Host;
use crate::number::Number::{Complex, Float, Int};
use crate::sample::{Sample, from, input, numbers, spread};

/// Functions whose reference is as good for complex numbers of any size.
const EXACT_OF_COMPLEX: [Unary; 8] = [
    Unary::Neg,
    Unary::Abs,
    Unary::Square,
    Unary::Round,
    Unary::Exp,
    Unary::Conj,
    Unary::Real,
    Unary::Imag,
];

pub fn samples() -> Vec<Sample> {
    let mut all: Vec<Sample> = Unary::ALL.iter().flat_map(|&f| ordinary(f)).collect();
    let floats = |&f: &Unary| of_op(f, "of edges", row(&EDGES), DType::is_float);
    all.extend(Unary::ALL.iter().map(floats));
    for dtype in INTEGERS {
        let of = format!("of extreme {dtype}");
        let wrap = [Unary::Neg, Unary::Abs, Unary::Sign, Unary::Invert];
        all.extend(wrap.map(|f| of_op(f, &of, row(&ends(dtype)), move |own| own == dtype)));
    }
    // Some functions lose a few units in the last place.
    let close = |dtype: DType| if dtype.is_inexact() { 4.0 } else { 0.0 };
    // The reference is no good for complex numbers far from 1. Python's tests have these.
    let is_good = |f: Unary, own: DType| !own.is_complex() || EXACT_OF_COMPLEX.contains(&f);
    for &f in Unary::ALL {
        let of_dtypes = of_numbers(f, 1, close).into_iter().zip(DType::ALL);
        all.extend(of_dtypes.filter(|(_, own)| is_good(f, *own)).map(|(sample, _)| sample));
    }
    let at_zero = Sample::new("abs at 0", |_| Unary::Abs.into(), vec![numbers([2], &[0.0, -2.0])]);
    all.push(at_zero.slopes(&[1.0, 1.0], &[&[0.0, -1.0]]));
    all
}

fn ordinary(f: Unary) -> Vec<Sample> {
    let main = |value: fn(f64) -> f64| {
        Sample::new(f.name(), move |_| f.into(), vec![from([5, 7], move |i| value(spread(i)))])
    };
    let unit = |v: f64| v / 3.2;
    let positive = |v: f64| v.abs() + 0.15;
    let mut all = match f {
        Unary::Sqrt | Unary::Rsqrt | Unary::Log | Unary::Log2 | Unary::Log10 | Unary::Log1p => {
            vec![main(positive).smooth()]
        }
        Unary::Asin | Unary::Acos | Unary::Atanh | Unary::ErfInv => vec![main(unit).smooth()],
        Unary::Acosh => vec![main(|v| v.abs() + 1.2).smooth()],
        Unary::Tan => vec![main(|v| v / 2.5).smooth()],
        Unary::Neg
        | Unary::Abs
        | Unary::Square
        | Unary::Exp
        | Unary::Expm1
        | Unary::Sin
        | Unary::Cos
        | Unary::Atan
        | Unary::Sinh
        | Unary::Cosh
        | Unary::Tanh
        | Unary::Asinh
        | Unary::Sigmoid
        | Unary::Erf
        | Unary::Erfc => vec![main(|v| v).smooth()],
        Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round => vec![main(|v| v * 5.0).smooth()],
        Unary::Not | Unary::Invert => vec![main(|v| v * 9.0)],
        Unary::Conj | Unary::Real | Unary::Imag => vec![main(|v| v).smooth()],
    };
    all.push(Sample::new(format!("{} empty", f.name()), move |_| f.into(), vec![input([0, 3])]));
    all
}

pub fn reference(f: Unary, x: &Host, out: &Aval) -> Host {
    Host::from_fn(out.clone(), |i| match x.data[i] {
        Int(v) => Int(of_integer(f, v)),
        Float(v) => Float(of_float(f, v)),
        Complex(v) => match f {
            Unary::Abs => Float(v.norm()),
            Unary::Real => Float(v.re),
            Unary::Imag => Float(v.im),
            _ => Complex(of_complex(f, v)),
        },
    })
}

fn of_integer(f: Unary, v: i128) -> i128 {
    match f {
        Unary::Neg => -v,
        Unary::Abs => v.abs(),
        Unary::Sign => v.signum(),
        Unary::Square => v.wrapping_mul(v),
        Unary::Not => 1 - v,
        Unary::Invert => !v,
        _ => v,
    }
}

/// `f` of a complex number that is neither large nor on a branch cut.
fn of_complex(f: Unary, v: Complex64) -> Complex64 {
    match f {
        Unary::Neg => -v,
        Unary::Square => v * v,
        Unary::Round => Complex64::new(v.re.round_ties_even(), v.im.round_ties_even()),
        Unary::Sqrt => v.sqrt(),
        Unary::Rsqrt => v.sqrt().inv(),
        // Also where the real part overflows.
        Unary::Exp if v.im == 0.0 => Complex64::new(v.re.exp(), v.im),
        Unary::Exp => v.exp(),
        Unary::Expm1 => v.exp() - 1.0,
        Unary::Log => v.ln(),
        Unary::Log2 => v.log2(),
        Unary::Log10 => v.log10(),
        Unary::Log1p => (v + 1.0).ln(),
        Unary::Sin => v.sin(),
        Unary::Cos => v.cos(),
        Unary::Tan => v.tan(),
        Unary::Asin => v.asin(),
        Unary::Acos => v.acos(),
        Unary::Atan => v.atan(),
        Unary::Sinh => v.sinh(),
        Unary::Cosh => v.cosh(),
        Unary::Tanh => v.tanh(),
        Unary::Asinh => v.asinh(),
        Unary::Acosh => v.acosh(),
        Unary::Atanh => v.atanh(),
        Unary::Conj => v.conj(),
        Unary::Abs
        | Unary::Sign
        | Unary::Floor
        | Unary::Ceil
        | Unary::Sigmoid
        | Unary::Erf
        | Unary::Erfc
        | Unary::ErfInv
        | Unary::Not
        | Unary::Invert
        | Unary::Real
        | Unary::Imag => Complex64::new(f64::NAN, f64::NAN),
    }
}

/// `f` of a real number, as the suite has it: accurate to about the last place of `f64`.
pub fn of_float(f: Unary, v: f64) -> f64 {
    match f {
        Unary::Neg => -v,
        Unary::Abs => v.abs(),
        // Without a sign of its own.
        Unary::Sign if v == 0.0 || v.is_nan() => v + 0.0,
        Unary::Sign => v.signum(),
        Unary::Square => v * v,
        Unary::Floor => v.floor(),
        Unary::Ceil => v.ceil(),
        Unary::Round => v.round_ties_even(),
        Unary::Sqrt => v.sqrt(),
        Unary::Rsqrt => 1.0 / v.sqrt(),
        Unary::Exp => v.exp(),
        Unary::Expm1 => v.exp_m1(),
        Unary::Log => v.ln(),
        Unary::Log2 => v.log2(),
        Unary::Log10 => v.log10(),
        Unary::Log1p => v.ln_1p(),
        Unary::Sin => v.sin(),
        Unary::Cos => v.cos(),
        Unary::Tan => v.tan(),
        Unary::Asin => v.asin(),
        Unary::Acos => v.acos(),
        Unary::Atan => v.atan(),
        Unary::Sinh => v.sinh(),
        Unary::Cosh => v.cosh(),
        Unary::Tanh => v.tanh(),
        Unary::Asinh => libm::asinh(v),
        Unary::Acosh if v < 1.0 => f64::NAN,
        Unary::Acosh => libm::acosh(v),
        Unary::Atanh => libm::atanh(v),
        Unary::Sigmoid if v < 0.0 => v.exp() / (1.0 + v.exp()),
        Unary::Sigmoid => 1.0 / (1.0 + (-v).exp()),
        Unary::Erf => libm::erf(v),
        Unary::Erfc => libm::erfc(v),
        Unary::ErfInv => erf_inverse(v),
        Unary::Not => f64::from(u8::from(v == 0.0)),
        Unary::Invert | Unary::Conj | Unary::Real | Unary::Imag => v,
    }
}

/// By bisection: slow and sure. Where erf is near 1, from what is missing to it.
fn erf_inverse(y: f64) -> f64 {
    if y.abs() >= 1.0 || y.is_nan() {
        return if y.abs() == 1.0 { y * f64::INFINITY } else { f64::NAN };
    }
    let (target, mut low, mut high) = (y.abs(), 0.0f64, 7.0f64);
    // erf(x) is close to 2x/√π where x is small, and halves of its range are too coarse there.
    if target < 1e-7 {
        return y / std::f64::consts::FRAC_2_SQRT_PI;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        let below = match target < 0.5 {
            true => libm::erf(middle) < target,
            false => libm::erfc(middle) > 1.0 - target,
        };
        if below { low = middle } else { high = middle }
    }
    (0.5 * (low + high)).copysign(y)
}
