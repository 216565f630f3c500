//! Functions of two operands.

use cupola_core::prim::Binary;
use cupola_core::{Aval, DType};
use num_complex::Complex64;

use crate::edges::{EDGES, INTEGERS, ends, of_numbers, of_op, pairs};
use crate::host::Host;
use crate::number::Number::{self, Complex, Float, Int};
use crate::sample::{Sample, from, numbers, spread};

pub fn samples() -> Vec<Sample> {
    let mut all: Vec<Sample> = Binary::ALL.iter().map(|&f| ordinary(f)).collect();
    let floats = |&f: &Binary| of_op(f, "of edges", pairs(&EDGES), DType::is_float);
    all.extend(Binary::ALL.iter().map(floats));
    for dtype in INTEGERS {
        let of = format!("of extreme {dtype}");
        let sample = |&f: &Binary| of_op(f, &of, pairs(&ends(dtype)), move |own| own == dtype);
        all.extend(Binary::ALL.iter().map(sample));
    }
    for &f in Binary::ALL {
        // Positive and apart from each other: all of them are smooth there.
        let (high, low) = (|i| 2.25 + spread(i) / 25.0, |i| 1.25 + spread(i + 6) / 25.0);
        let above = vec![from([2, 3], high), from([2, 3], low)];
        let below = vec![from([2, 3], low), from([2, 3], high)];
        for (of, inputs) in [("above", above), ("below", below)] {
            let sample = of_op(f, of, inputs, DType::is_float).smooth();
            all.push(sample.where_kernels_are_cheap());
        }
        all.extend(of_numbers(
            f,
            2,
            match f {
                Binary::Power | Binary::Atan2 | Binary::LogAddExp => |_| 4.0,
                Binary::Div | Binary::Mul => |dtype| f64::from(u8::from(dtype.is_complex())),
                _ => |_| 0.0,
            },
        ));
    }
    all.extend(kinks());
    all
}

/// Where functions are not smooth, or are steeper than any number.
fn kinks() -> Vec<Sample> {
    let (zero, low, inf) = (0.0, f64::NEG_INFINITY, f64::INFINITY);
    let kink = |f: Binary, a: &[f64], b: &[f64], slopes: [&[f64]; 2]| {
        let inputs = vec![numbers([a.len()], a), numbers([b.len()], b)];
        let name = format!("{} at kinks", f.name());
        Sample::new(name, move |_| f.into(), inputs).slopes(&vec![1.0; a.len()], &slopes)
    };
    let (a, b) = ([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]);
    vec![
        // As in MLX the second operand has it.
        kink(Binary::Maximum, &a, &b, [&[0.0, 0.0, 1.0], &[1.0, 1.0, 0.0]]),
        kink(Binary::Minimum, &a, &b, [&[0.0, 1.0, 0.0], &[1.0, 0.0, 1.0]]),
        kink(
            Binary::Power,
            &[zero, zero, -2.0, zero],
            &[2.0, zero, 3.0, 1.0],
            [&[0.0, 0.0, 12.0, 1.0], &[0.0, 0.0, f64::NAN, 0.0]],
        ),
        kink(
            Binary::LogAddExp,
            &[inf, low, inf],
            &[inf, low, 1.0],
            [&[0.5, 0.5, 1.0], &[0.5, 0.5, 0.0]],
        ),
    ]
}

fn ordinary(f: Binary) -> Sample {
    let main = |a: fn(f64) -> f64, b: fn(f64) -> f64| {
        let inputs =
            vec![from([4, 6], move |i| a(spread(i))), from([4, 6], move |i| b(spread(3 * i + 17)))];
        Sample::new(f.name(), move |_| f.into(), inputs)
    };
    let far_from_zero = |v: f64| if v < 0.0 { v - 0.6 } else { v + 0.6 };
    match f {
        Binary::Add | Binary::Sub | Binary::Mul | Binary::Maximum | Binary::Minimum => {
            main(|v| v, |v| v).smooth()
        }
        Binary::Div | Binary::Atan2 => main(|v| v, far_from_zero).smooth(),
        Binary::LogAddExp => main(|v| v, |v| v).smooth(),
        Binary::Power => main(|v| v.abs() + 0.3, |v| v).smooth(),
        Binary::FloorDivide | Binary::Remainder => main(|v| v * 7.3, far_from_zero),
        Binary::BitAnd | Binary::BitOr | Binary::BitXor => main(|v| v * 20.0, |v| v * 20.0),
        Binary::ShiftLeft | Binary::ShiftRight => main(|v| v * 20.0, |v| v.abs() * 3.0),
    }
}

pub fn reference(f: Binary, a: &Host, b: &Host, out: &Aval) -> Host {
    Host::from_fn(out.clone(), |i| number(f, a.data[i], b.data[i], out.dtype))
}

/// `f` of two numbers of `dtype`, before it is rounded to it.
pub fn number(f: Binary, a: Number, b: Number, dtype: DType) -> Number {
    match (a, b) {
        (Int(a), Int(b)) => Int(of_integers(f, a, b, dtype)),
        (Complex(a), Complex(b)) => Complex(match f {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => quotient(a, b),
            _ => a * f64::NAN,
        }),
        // The quotient is rounded, to float32 even of half types, before its floor is taken.
        (a, b) if f == Binary::FloorDivide && dtype != DType::F64 => {
            Float(f64::from((a.float() / b.float()) as f32).floor())
        }
        (a, b) => Float(of_floats(f, a.float(), b.float())),
    }
}

fn of_floats(f: Binary, a: f64, b: f64) -> f64 {
    match f {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::FloorDivide => (a / b).floor(),
        Binary::Remainder => {
            let rest = a % b;
            let rest = if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest };
            if rest == 0.0 { 0f64.copysign(b) } else { rest }
        }
        Binary::Power => a.powf(b),
        Binary::Maximum if a.is_nan() || a > b => a,
        Binary::Minimum if a.is_nan() || a < b => a,
        Binary::Maximum | Binary::Minimum => b,
        Binary::Atan2 => a.atan2(b),
        Binary::LogAddExp if a == b => a + std::f64::consts::LN_2,
        Binary::LogAddExp if a.is_nan() || b.is_nan() => f64::NAN,
        Binary::LogAddExp => a.max(b) + (-(a - b).abs()).exp().ln_1p(),
        Binary::BitAnd
        | Binary::BitOr
        | Binary::BitXor
        | Binary::ShiftLeft
        | Binary::ShiftRight => f64::NAN,
    }
}

fn of_integers(f: Binary, a: i128, b: i128, dtype: DType) -> i128 {
    let inside = (0..8 * dtype.size() as i128).contains(&b);
    match f {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::FloorDivide | Binary::Remainder if b == 0 => 0,
        Binary::FloorDivide => a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0),
        Binary::Remainder => {
            let rest = a.rem_euclid(b);
            if b < 0 && rest != 0 { rest + b } else { rest }
        }
        Binary::Power if b < 0 => match a {
            1 => 1,
            -1 => 1 - 2 * (b & 1),
            _ => 0,
        },
        Binary::Power => {
            let (mut base, mut left, mut product) = (a, b, 1i128);
            while left > 0 {
                if left & 1 == 1 {
                    product = product.wrapping_mul(base);
                }
                base = base.wrapping_mul(base);
                left >>= 1;
            }
            product
        }
        Binary::Maximum => a.max(b),
        Binary::Minimum => a.min(b),
        Binary::BitAnd => a & b,
        Binary::BitOr => a | b,
        Binary::BitXor => a ^ b,
        Binary::ShiftLeft if inside => a << b,
        Binary::ShiftLeft => 0,
        Binary::ShiftRight => a >> if inside { b } else { 127 },
        Binary::Div | Binary::Atan2 | Binary::LogAddExp => 0,
    }
}

/// a/b; where the formula gives NaN, of 0 and infinite numbers what C99 says in its Annex G.5.1.
fn quotient(a: Complex64, b: Complex64) -> Complex64 {
    let q = a / b;
    if !(q.re.is_nan() && q.im.is_nan()) {
        return q;
    }
    let is_infinite = |z: Complex64| z.re.is_infinite() || z.im.is_infinite();
    let is_finite = |z: Complex64| z.re.is_finite() && z.im.is_finite();
    let unit = |z: Complex64| {
        let of = |part: f64| f64::from(u8::from(part.is_infinite())).copysign(part);
        Complex64::new(of(z.re), of(z.im))
    };
    let times = |size: f64, a: Complex64, b: Complex64| {
        Complex64::new(size * (a.re * b.re + a.im * b.im), size * (a.im * b.re - a.re * b.im))
    };
    if b == Complex64::new(0.0, 0.0) {
        let size = f64::INFINITY.copysign(b.re);
        Complex64::new(size * a.re, size * a.im)
    } else if is_infinite(a) && is_finite(b) {
        times(f64::INFINITY, unit(a), b)
    } else if is_infinite(b) && is_finite(a) {
        times(0.0, a, unit(b))
    } else {
        q
    }
}
