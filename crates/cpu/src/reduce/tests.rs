//! Reductions over random axes and layouts against a fold of one element at a time.

use cupola_core::backend::Operand;
use cupola_core::plan::body::Body;
use cupola_core::prim::{Binary, ReduceKind};
use cupola_core::{Aval, DType, Shape};

use super::ReduceKernel;
use crate::map::RawArgs;
use crate::map::naive::{Number, bits, bytes, element, fit, indices, instruction, parse};
use crate::map::tests::{Held, Random, body, number, same, small};
use crate::threads::with_threads;
use cupola_core::plan::body::BodyOp;

fn fold(kind: ReduceKind, dtype: DType, a: Number, b: Number) -> Number {
    let op = match kind {
        ReduceKind::Sum => Binary::Add,
        ReduceKind::Prod => Binary::Mul,
        ReduceKind::Max => Binary::Maximum,
        ReduceKind::Min => Binary::Minimum,
        ReduceKind::All => Binary::BitAnd,
        ReduceKind::Any => Binary::BitOr,
    };
    instruction(BodyOp::Binary(op), &[a, b], dtype, dtype)
}

fn identity(kind: ReduceKind, dtype: DType) -> Number {
    let n = bits(dtype);
    let whole = |v: i128| match dtype {
        DType::C64 => Number::Complex(v as f32, 0.0),
        d if d.is_float() => Number::Float(v as f64),
        _ => Number::Int(v),
    };
    match kind {
        ReduceKind::Sum | ReduceKind::Any => whole(0),
        ReduceKind::Prod | ReduceKind::All => whole(1),
        ReduceKind::Max if dtype.is_float() => Number::Float(f64::NEG_INFINITY),
        ReduceKind::Min if dtype.is_float() => Number::Float(f64::INFINITY),
        ReduceKind::Max if dtype.is_signed() => Number::Int(-(1 << (n - 1))),
        ReduceKind::Max => Number::Int(0),
        ReduceKind::Min if dtype == DType::Bool => Number::Int(1),
        ReduceKind::Min if dtype.is_signed() => Number::Int((1 << (n - 1)) - 1),
        ReduceKind::Min => Number::Int((1 << n) - 1),
    }
}

/// Numbers whose folds are exact in any order.
fn harmless(random: &mut Random, kind: ReduceKind, dtype: DType) -> Number {
    let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
    match (kind, dtype) {
        (ReduceKind::Prod, DType::C64) => Number::Complex(sign as f32, 0.0),
        (ReduceKind::Sum, DType::C64) => Number::Complex(sign as f32, 2.0 * sign as f32),
        (ReduceKind::Prod, d) if d.is_float() => Number::Float(sign),
        (ReduceKind::Sum, d) if d.is_float() => Number::Float(small(random).float()),
        _ => number(random, dtype),
    }
}

fn check(seed: u64, kind: ReduceKind, body: &Body, dims: &[usize], random: &mut Random) {
    let axes: Vec<usize> = (0..dims.len()).filter(|_| random.below(2) == 0).collect();
    let kept: Vec<usize> = (0..dims.len()).filter(|a| !axes.contains(a)).map(|a| dims[a]).collect();
    let mut inputs: Vec<Held> = body
        .inputs
        .iter()
        .map(|&d| Held::new(random, dims, d, true, &mut |r| harmless(r, kind, d)))
        .collect();
    let scalars: Vec<[u8; 8]> =
        body.scalars.iter().map(|&d| bytes(harmless(random, kind, d), d)).collect();
    let dtype = body.dtype_of(body.outputs[0]);
    let mut output = Held::new(random, &kept, dtype, false, &mut |_| Number::Int(0));
    let operands: Vec<Operand> = inputs.iter().map(|h| h.operand.clone()).collect();
    let kernel = ReduceKernel::new(body, kind, &axes, &operands, &output.operand).unwrap();
    let pointers: Vec<*const u8> = inputs.iter_mut().map(|h| h.pointer().cast_const()).collect();
    let to = [output.pointer()];
    let args = RawArgs { inputs: &pointers, outputs: &to, scalars: &scalars };
    // SAFETY: the operands have the layouts that the kernel was made for.
    unsafe { kernel.run(&args) };
    let count: usize = kept.iter().product();
    let mut want = vec![identity(kind, dtype); count];
    for index in indices(dims) {
        let flat =
            (0..dims.len()).filter(|a| !axes.contains(a)).fold(0, |f, a| f * dims[a] + index[a]);
        // SAFETY: as above.
        let registers = unsafe { element(body, &operands, &args, &index) };
        let value = registers[usize::from(body.outputs[0])];
        want[flat] = fold(kind, dtype.accumulator(), want[flat], value);
    }
    for (flat, index) in indices(&kept).enumerate() {
        let want = parse(bytes(fit(want[flat], dtype), dtype), dtype);
        let got = output.get(&index);
        assert!(
            same(got, want),
            "seed {seed} {kind:?} {dtype} {dims:?} over {axes:?} at {index:?}: {got:?} {want:?}"
        );
    }
}

#[test]
fn every_kind_dtype_and_set_of_axes() {
    let mut seed = 0;
    for &kind in ReduceKind::ALL {
        for dtype in DType::ALL.into_iter().filter(|&d| kind.takes(d)) {
            for round in 0..40 {
                seed += 1;
                let random = &mut Random(seed);
                let mut dims = random.shape(if round % 8 == 0 { 60_000 } else { 3_000 });
                if matches!(kind, ReduceKind::Max | ReduceKind::Min) {
                    dims.retain(|&d| d != 0);
                }
                let body = Body::copy(Shape::from(&dims[..]), dtype);
                check(seed, kind, &body, &dims, random);
            }
        }
    }
}

#[test]
fn random_bodies_feed_reductions() {
    for seed in 0..1500 {
        let random = &mut Random(seed);
        let mut dims = random.shape(if seed % 10 == 0 { 40_000 } else { 3_000 });
        dims.retain(|&d| d != 0);
        let body = body(random, &dims, 1);
        let dtype = body.dtype_of(body.outputs[0]);
        // Of what a random body gives, only these folds are exact in any order.
        let kinds = [ReduceKind::Max, ReduceKind::Min, ReduceKind::All, ReduceKind::Any];
        let sums = [ReduceKind::Sum, ReduceKind::Prod];
        let kinds = if dtype.is_integer() { [&kinds[..], &sums].concat() } else { kinds.to_vec() };
        let kinds: Vec<ReduceKind> = kinds.into_iter().filter(|k| k.takes(dtype)).collect();
        if !kinds.is_empty() {
            check(seed, random.pick(&kinds), &body, &dims, random);
        }
    }
}

fn sum(x: &[f32], dims: &[usize], axes: &[usize]) -> Vec<f32> {
    let body = Body::copy(Shape::from(dims), DType::F32);
    let kept = body.shape.without(axes);
    let input = Operand::contiguous(&Aval::new(dims, DType::F32));
    let output = Operand::contiguous(&Aval::new(kept.clone(), DType::F32));
    let kernel = ReduceKernel::new(&body, ReduceKind::Sum, axes, &[input], &output).unwrap();
    let mut out = vec![0f32; kept.size()];
    let args =
        RawArgs { inputs: &[x.as_ptr().cast()], outputs: &[out.as_mut_ptr().cast()], scalars: &[] };
    // SAFETY: the arrays have the shapes that the kernel was made for.
    unsafe { kernel.run(&args) };
    out
}

#[test]
fn long_sums_are_accurate_and_do_not_depend_on_threads() {
    let n = 1 << 21;
    let random = &mut Random(5);
    let x: Vec<f32> = (0..n).map(|_| random.below(1 << 24) as f32 / (1 << 24) as f32).collect();
    let exact: f64 = x.iter().map(|&v| f64::from(v)).sum();
    for (dims, axes) in [
        (vec![n], vec![0]),
        (vec![n / 4, 4], vec![0]),
        (vec![n / 2048, 2048], vec![0]),
        (vec![2, n / 8, 4], vec![1]),
        (vec![64, n / 64], vec![1]),
        (vec![n / 8, 8], vec![1]),
    ] {
        let run = || sum(&x, &dims, &axes);
        let (one, two) = (with_threads(1, run), with_threads(2, run));
        assert_eq!(one, two, "{dims:?} over {axes:?}");
        let total: f64 = one.iter().map(|&v| f64::from(v)).sum();
        assert!((total - exact).abs() < exact * 3e-7, "{dims:?} over {axes:?}: {total} {exact}");
    }
}
