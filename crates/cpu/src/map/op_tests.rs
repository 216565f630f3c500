//! Every operation on every dtype against scalar references.

use cupola_core::backend::Operand;
use cupola_core::plan::body::{Body, BodyOp, Instr};
use cupola_core::prim::{Binary, Cast, Compare, Select, Unary};
use cupola_core::{Aval, DType, Shape};
use smallvec::SmallVec;

use super::naive::{Number, bytes, fit, instruction, parse};
use super::{MapKernel, RawArgs};
use crate::simd::{Level, with_isa_limit};

/// Values worth a test, as elements of `dtype`.
pub(crate) fn samples(dtype: DType) -> Vec<Number> {
    let mut out: Vec<Number> = match dtype.kind() {
        cupola_core::Kind::Bool => vec![Number::Int(0), Number::Int(1)],
        cupola_core::Kind::Integer => {
            let mut v: Vec<i128> = (-9..20).collect();
            for n in [7, 8, 15, 16, 31, 32, 63, 64] {
                v.extend([(1 << n) - 1, 1 << n, -(1 << n), 1 - (1 << n)]);
            }
            v.into_iter().map(Number::Int).collect()
        }
        cupola_core::Kind::Float => {
            let mut v = vec![0.0, 1.0, 0.5, 1.5, 2.0, 2.5, 3.0, 10.0, 88.0, 104.5, 710.0, 1e-3];
            v.extend([1e-7, 1e-40, 1e-300, 65504.0, 65520.0, 1e10, 3e38, 1e300, 300.7, 0.3]);
            v.extend([f64::INFINITY, 255.9, 256.0, 127.5, 1e19, 4e9, 0.99999, 7.75]);
            let negative: Vec<f64> = v.iter().map(|x| -x).collect();
            v.extend(negative);
            v.push(f64::NAN);
            v.into_iter().map(Number::Float).collect()
        }
        cupola_core::Kind::Complex => {
            let v = [0.0, 1.0, -2.5, 3.25, 1e-20, 1e15, -7.0];
            v.iter().flat_map(|&a| v.map(|b| Number::Complex(a, b))).collect()
        }
    };
    for v in &mut out {
        *v = parse(bytes(fit(*v, dtype), dtype), dtype);
    }
    out
}

/// Runs one instruction over contiguous operands.
fn run(op: BodyOp, args: &[Vec<Number>], dtypes: &[DType], to: DType) -> Vec<Number> {
    let n = args[0].len();
    let body = Body {
        shape: Shape::from([n]),
        inputs: dtypes.to_vec(),
        scalars: vec![],
        code: vec![Instr {
            op,
            args: (0..args.len() as u16).collect::<SmallVec<[u16; 3]>>(),
            dtype: to,
        }],
        outputs: vec![args.len() as u16],
    };
    let pack = |v: &[Number], d: DType| -> Vec<u64> {
        let mut raw = vec![0u64; (v.len() * d.size()).div_ceil(8)];
        let out: &mut [u8] = bytemuck::cast_slice_mut(&mut raw);
        for (i, &x) in v.iter().enumerate() {
            out[i * d.size()..][..d.size()].copy_from_slice(&bytes(x, d)[..d.size()]);
        }
        raw
    };
    let inputs: Vec<Vec<u64>> = args.iter().zip(dtypes).map(|(v, &d)| pack(v, d)).collect();
    let operand = |d: DType| Operand::contiguous(&Aval::new([n], d));
    let operands: Vec<_> = dtypes.iter().map(|&d| operand(d)).collect();
    let kernel = MapKernel::new(&body, &operands, &[operand(to)]).unwrap();
    let mut out = vec![0u64; (n * to.size()).div_ceil(8)];
    let pointers: Vec<*const u8> = inputs.iter().map(|v| v.as_ptr().cast()).collect();
    let raw = RawArgs { inputs: &pointers, outputs: &[out.as_mut_ptr().cast()], scalars: &[] };
    // SAFETY: the operands have `n` elements each.
    unsafe { kernel.run(&raw) };
    let out: &[u8] = bytemuck::cast_slice(&out);
    (0..n)
        .map(|i| {
            let mut element = [0; 8];
            element[..to.size()].copy_from_slice(&out[i * to.size()..][..to.size()]);
            parse(element, to)
        })
        .collect()
}

/// The distance in units of the last place of `dtype`; 0 for two NaNs.
fn ulps(a: Number, b: Number, dtype: DType) -> f64 {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => (a - b) as f64,
        (Number::Complex(a, b), Number::Complex(c, d)) => {
            // A part is as exact as the larger one allows.
            let scale = c.abs().max(d.abs());
            let part = |x: f32, y: f32| match x == y || x.is_nan() && y.is_nan() {
                true => 0.0,
                false => f64::from((x - y).abs()) / (f64::from(scale) * 2f64.powi(-23)),
            };
            part(a, c).max(part(b, d))
        }
        (a, b) => {
            let (a, b) = (a.float(), b.float());
            if a == b || a.is_nan() && b.is_nan() {
                return 0.0;
            }
            let (digits, least) = match dtype {
                DType::F16 => (10, -14),
                DType::BF16 => (7, -126),
                DType::F32 => (23, -126),
                _ => (52, -1022),
            };
            let exponent = (b.abs().log2().floor() as i32).clamp(least, 1023);
            (a - b).abs() / 2f64.powi(exponent - digits)
        }
    }
}

fn check(op: BodyOp, args: &[Vec<Number>], dtypes: &[DType], to: DType, limit: f64) {
    let got = run(op, args, dtypes, to);
    for (i, &g) in got.iter().enumerate() {
        let operands: Vec<Number> = args.iter().map(|a| a[i]).collect();
        let exact = instruction(op, &operands, dtypes[0], to);
        let want = parse(bytes(exact, to), to);
        // The result is as exact as the larger operand allows.
        let off = match (op, want) {
            (BodyOp::Binary(Binary::LogAddExp), Number::Float(w)) if w.is_finite() => {
                let scale = operands.iter().map(|v| v.float().abs()).fold(w.abs(), f64::max);
                ulps(Number::Float(scale + g.float() - w), Number::Float(scale), to)
            }
            _ => ulps(g, want, to),
        };
        let signs = match (g, want) {
            (Number::Float(g), Number::Float(w)) if w == 0.0 && g == 0.0 => {
                // The sign of a zero is not said for what is not IEEE arithmetic.
                matches!(op, BodyOp::Binary(Binary::Maximum | Binary::Minimum))
                    || g.is_sign_negative() == w.is_sign_negative()
            }
            _ => true,
        };
        assert!(
            off.abs() <= limit && signs,
            "{op:?} of {operands:?} {:?}: {g:?} instead of {want:?}, {off} ulp",
            dtypes[0]
        );
    }
}

fn at_every_level(f: impl Fn()) {
    for level in [Level::Portable, Level::Avx2, Level::Avx512] {
        with_isa_limit(level, &f);
    }
}

#[test]
fn unary_functions() {
    at_every_level(|| {
        for &op in Unary::ALL {
            for dtype in DType::ALL.into_iter().filter(|&d| op.takes(d)) {
                let limit = if dtype.is_inexact() { 4.0 } else { 0.0 };
                check(BodyOp::Unary(op), &[samples(dtype)], &[dtype], op.result(dtype), limit);
            }
        }
    });
}

/// Every pair of samples.
fn pairs(dtype: DType) -> [Vec<Number>; 2] {
    let s = samples(dtype);
    let pairs = || s.iter().flat_map(|&a| s.iter().map(move |&b| (a, b)));
    [pairs().map(|p| p.0).collect(), pairs().map(|p| p.1).collect()]
}

#[test]
fn binary_functions() {
    at_every_level(|| {
        for &op in Binary::ALL {
            for dtype in DType::ALL.into_iter().filter(|&d| op.takes(d)) {
                let limit = match op {
                    Binary::Power | Binary::Atan2 | Binary::LogAddExp if dtype.is_float() => 4.0,
                    Binary::Div if dtype == DType::C64 => 1.0,
                    Binary::Mul if dtype == DType::C64 => 1.0,
                    _ => 0.0,
                };
                check(BodyOp::Binary(op), &pairs(dtype), &[dtype; 2], dtype, limit);
            }
        }
    });
}

#[test]
fn comparisons() {
    at_every_level(|| {
        for &op in Compare::ALL {
            for dtype in DType::ALL.into_iter().filter(|&d| op.takes(d)) {
                check(BodyOp::Compare(op), &pairs(dtype), &[dtype; 2], DType::Bool, 0.0);
            }
        }
    });
}

#[test]
fn choices() {
    for dtype in DType::ALL {
        let [a, b] = pairs(dtype);
        let condition: Vec<_> = (0..a.len()).map(|i| Number::Int((i % 3 == 0).into())).collect();
        let dtypes = [DType::Bool, dtype, dtype];
        check(BodyOp::Select(Select), &[condition, a, b], &dtypes, dtype, 0.0);
    }
}

#[test]
fn casts() {
    at_every_level(|| {
        for from in DType::ALL {
            for to in DType::ALL {
                check(BodyOp::Cast(Cast { to }), &[samples(from)], &[from], to, 0.0);
            }
        }
    });
}

#[test]
fn what_a_dtype_does_not_take_is_an_error() {
    let body = Body {
        shape: Shape::from([2]),
        inputs: vec![DType::I32],
        scalars: vec![],
        code: vec![Instr {
            op: BodyOp::Unary(Unary::Exp),
            args: SmallVec::from_slice(&[0]),
            dtype: DType::I32,
        }],
        outputs: vec![1],
    };
    let operand = Operand::contiguous(&Aval::new([2], DType::I32));
    assert!(
        MapKernel::new(&body, std::slice::from_ref(&operand), std::slice::from_ref(&operand))
            .is_err()
    );
}
