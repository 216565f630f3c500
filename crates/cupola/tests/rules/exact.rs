//! Rules at the places where functions are not smooth, in other dtypes, and of composites.

use cupola::prim::*;
use cupola::transform::{checkpoint, custom_function, grad, jvp, vjp, vmap};
use cupola::{Array, DType, Dims, Result};

use crate::values::{Source, close, f64s, inner, read, u32s, written};

fn ones(like: &Array) -> Array {
    written(&vec![1.0; like.size()], like)
}

/// The gradients of the sum of an op's output.
fn gradients(op: impl Into<Op>, inputs: &[&Array]) -> Result<Vec<Vec<f64>>> {
    let op = op.into();
    let inputs: Vec<Array> = inputs.iter().map(|&x| x.clone()).collect();
    let f = |x: &[Array]| Ok(vec![Array::apply(op.clone(), &x.iter().collect::<Vec<_>>())?]);
    let seed = ones(&f(&inputs)?[0]);
    vjp(f, &inputs, &[seed])?.1.iter().map(read).collect()
}

#[test]
fn ties() -> Result<()> {
    let (a, b) = (f64s(&[1.0, 2.0, 3.0], &[3]), f64s(&[1.0, 3.0, 2.0], &[3]));
    // As in MLX the second operand has it; reductions share.
    assert_eq!(gradients(Binary::Maximum, &[&a, &b])?, [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]);
    assert_eq!(gradients(Binary::Minimum, &[&a, &b])?, [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]);
    let x = f64s(&[4.0, 1.0, 4.0, 4.0, 2.0, 4.0], &[6]);
    let largest = Reduce { kind: ReduceKind::Max, axes: Dims::from_slice(&[0]) };
    assert_eq!(gradients(largest, &[&x])?, [[0.25, 0.0, 0.25, 0.25, 0.0, 0.25]]);

    let places = u32s(&[0, 0, 1], &[3]);
    let op = ScatterAxis { mode: ScatterMode::Max, axis: 0 };
    let f = |x: &[Array]| Ok(vec![Array::apply(op.clone(), &[&x[0], &x[1], &places])?]);
    let x = f64s(&[2.0, 5.0], &[2]);
    let updates = f64s(&[2.0, 2.0, 4.0], &[3]);
    // The places of updates have to fit x but along the axis, so x and updates may differ.
    let (_, given) = vjp(f, &[x, updates], &[f64s(&[3.0, 1.0], &[2])])?;
    assert_eq!(read(&given[0])?, [1.0, 1.0]);
    assert_eq!(read(&given[1])?, [1.0, 1.0, 0.0]);
    Ok(())
}

#[test]
fn running_folds() -> Result<()> {
    let scan = |kind, reverse, exclusive| Scan { kind, axis: 0, reverse, exclusive };
    let slopes = |scan: Scan, x: &[f64], seed: &[f64]| -> Result<Vec<f64>> {
        let f = |x: &[Array]| Ok(vec![Array::apply(scan, &[&x[0]])?]);
        let (_, found) = vjp(f, &[f64s(x, &[x.len()])], &[f64s(seed, &[seed.len()])])?;
        read(&found[0])
    };
    let weights = [1.0, 2.0, 3.0, 4.0];
    // As in MLX the last of several equal elements is the extreme.
    let found = slopes(scan(ScanKind::Max, false, false), &[1.0, 3.0, 3.0, 2.0], &weights)?;
    assert_eq!(found, [1.0, 2.0, 7.0, 0.0]);
    let found = slopes(scan(ScanKind::Max, true, false), &[1.0, 3.0, 3.0, 2.0], &weights)?;
    assert_eq!(found, [0.0, 3.0, 3.0, 4.0]);
    let found = slopes(scan(ScanKind::Min, false, false), &[4.0, 3.0, 3.0, 2.0], &weights)?;
    assert_eq!(found, [1.0, 2.0, 3.0, 4.0]);
    let found = slopes(scan(ScanKind::Max, false, true), &[1.0, 3.0, 3.0, 2.0], &weights)?;
    assert_eq!(found, [2.0, 3.0, 4.0, 0.0]);
    let found = slopes(scan(ScanKind::Max, false, false), &[1.0, f64::NAN, 3.0, 2.0], &weights)?;
    assert_eq!(found, [1.0, 0.0, 0.0, 0.0]);
    // Factors of zero: Σᵢ wᵢ·Π of the others.
    let found = slopes(scan(ScanKind::Prod, false, false), &[4.0, 0.0, 3.0, 2.0], &weights)?;
    assert_eq!(found, [1.0, 140.0, 0.0, 0.0]);
    let found = slopes(scan(ScanKind::Prod, false, false), &[4.0, 0.0, 0.0, 2.0], &weights)?;
    assert_eq!(found, [1.0, 8.0, 0.0, 0.0]);
    // Shares in a sum of nothing but −∞ are only finite; what is joined to it takes everything.
    let low = f64::NEG_INFINITY;
    let found = slopes(scan(ScanKind::LogAddExp, false, false), &[low, low, 0.0, low], &weights)?;
    assert!(found.iter().all(|slope| slope.is_finite()), "{found:?}");
    assert_eq!(found[2..], [7.0, 0.0]);
    Ok(())
}

#[test]
fn kinks_and_poles_give_no_nan() -> Result<()> {
    assert_eq!(gradients(Unary::Abs, &[&f64s(&[0.0, -2.0], &[2])])?, [[0.0, -1.0]]);

    let base = f64s(&[0.0, 0.0, -2.0, 0.0], &[4]);
    let exponent = f64s(&[2.0, 0.0, 3.0, 1.0], &[4]);
    let found = gradients(Binary::Power, &[&base, &exponent])?;
    assert_eq!(found, [[0.0, 0.0, 12.0, 1.0], [0.0, 0.0, 0.0, 0.0]]);

    let infinite = f64s(&[f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY], &[3]);
    let other = f64s(&[f64::INFINITY, f64::NEG_INFINITY, 1.0], &[3]);
    let found = gradients(Binary::LogAddExp, &[&infinite, &other])?;
    assert_eq!(found, [[0.5, 0.5, 1.0], [0.5, 0.5, 0.0]]);

    let x = f64s(&[1.0, f64::NAN, 2.0], &[3]);
    let largest = Reduce { kind: ReduceKind::Max, axes: Dims::from_slice(&[0]) };
    assert_eq!(gradients(largest, &[&x])?, [[0.0, 0.0, 0.0]]);
    Ok(())
}

#[test]
fn a_masked_infinity_stays_out() -> Result<()> {
    // The branch that is not taken has an infinite slope at 0: 0·∞ must not come back.
    let x = f64s(&[0.0, 4.0], &[2]);
    let flags = Array::from_slice(&[false, true], [2])?;
    let f = |x: &[Array]| {
        let one = written(&[1.0, 1.0], &x[0]);
        let safe = Array::apply(Select, &[&flags, &x[0], &one])?;
        Ok(vec![Array::apply(Unary::Sqrt, &[&safe])?])
    };
    let (_, given) = vjp(f, std::slice::from_ref(&x), &[ones(&x)])?;
    assert_eq!(read(&given[0])?, [0.0, 0.25]);
    Ok(())
}

/// re + i·im.
fn complex(re: &Array, im: &Array) -> Result<Array> {
    let wide = |x: &Array| Array::apply(Cast { to: DType::C64 }, &[x]);
    let bytes: Vec<u8> =
        (0..im.size()).flat_map(|_| [0f32, 1f32]).flat_map(f32::to_ne_bytes).collect();
    let i = Array::from_bytes(&bytes, DType::C64, im.shape())?;
    let imaginary = Array::apply(Binary::Mul, &[&wide(im)?, &i])?;
    Array::apply(Binary::Add, &[&wide(re)?, &imaginary])
}

fn parts(z: &Array) -> Result<Vec<Array>> {
    if z.dtype() != DType::C64 {
        return Ok(vec![z.clone()]);
    }
    Ok(vec![Array::apply(Unary::Real, &[z])?, Array::apply(Unary::Imag, &[z])?])
}

#[test]
fn complex_derivatives_are_those_of_their_parts() -> Result<()> {
    let mut source = Source::new(41);
    let mut part = || {
        let numbers: Vec<f32> = (0..3).map(|_| source.next(0.5, 1.5) as f32).collect();
        Array::from_slice(&numbers, [3])
    };
    let primals = [part()?, part()?, part()?, part()?];
    let directions = [part()?, part()?, part()?, part()?];
    type Function = fn(&Array, &Array) -> Result<Array>;
    let functions: [(&str, Function); 9] = [
        ("abs", |z, _| Array::apply(Unary::Abs, &[z])),
        ("conj", |z, _| Array::apply(Unary::Conj, &[z])),
        ("exp", |z, _| Array::apply(Unary::Exp, &[z])),
        ("square", |z, _| Array::apply(Unary::Square, &[z])),
        ("mul", |z, w| Array::apply(Binary::Mul, &[z, w])),
        ("div", |z, w| Array::apply(Binary::Div, &[z, w])),
        ("prod", |z, _| {
            Array::apply(Reduce { kind: ReduceKind::Prod, axes: Dims::from_slice(&[0]) }, &[z])
        }),
        ("real of abs", |z, w| {
            let z = Array::apply(Binary::Mul, &[z, w])?;
            Array::apply(Unary::Abs, &[&Array::apply(Unary::Conj, &[&z])?])
        }),
        ("cast", |z, _| Array::apply(Cast { to: DType::F32 }, &[z])),
    ];
    for (name, function) in functions {
        let f = |x: &[Array]| parts(&function(&complex(&x[0], &x[1])?, &complex(&x[2], &x[3])?)?);
        let (outputs, tangents) = jvp(f, &primals, &directions)?;
        let step = 1e-2;
        let moved = |by: f64| -> Result<Vec<f64>> {
            let at: Vec<Array> = primals
                .iter()
                .zip(&directions)
                .map(|(x, d)| {
                    let sum: Vec<f64> =
                        read(x)?.iter().zip(read(d)?).map(|(x, d)| x + by * d).collect();
                    Ok(written(&sum, x))
                })
                .collect::<Result<_>>()?;
            Ok(f(&at)?.iter().map(read).collect::<Result<Vec<_>>>()?.concat())
        };
        let (ahead, behind) = (moved(step)?, moved(-step)?);
        let slope: Vec<f64> =
            ahead.iter().zip(behind).map(|(a, b)| (a - b) / (2.0 * step)).collect();
        let tangents = tangents.iter().map(read).collect::<Result<Vec<_>>>()?.concat();
        close(name, &tangents, &slope, 5e-3).unwrap_or_else(|e| panic!("jvp: {e}"));

        let seeds: Vec<Array> = outputs
            .iter()
            .map(|y| written(&(0..y.size()).map(|i| 1.0 - 0.3 * i as f64).collect::<Vec<_>>(), y))
            .collect();
        let (_, given) = vjp(f, &primals, &seeds)?;
        let numbers = |arrays: &[Array]| -> Result<Vec<f64>> {
            Ok(arrays.iter().map(read).collect::<Result<Vec<_>>>()?.concat())
        };
        let forward = inner(&numbers(&seeds)?, &tangents);
        let backward = inner(&numbers(&given)?, &numbers(&directions)?);
        close(name, &[backward], &[forward], 1e-4).unwrap_or_else(|e| panic!("vjp: {e}"));
    }
    Ok(())
}

#[test]
fn narrow_operands_of_a_wide_product_get_narrow_cotangents() -> Result<()> {
    let narrow = |x: &Array| Array::apply(Cast { to: DType::BF16 }, &[x]);
    let mut source = Source::new(42);
    let a = narrow(&source.array(&[2, 3], -1.0, 1.0))?;
    let b = narrow(&source.array(&[3, 2], -1.0, 1.0))?;
    let dot = Dot { accumulate: DType::F32, result: DType::F32 };
    let f = |x: &[Array]| Ok(vec![Array::apply(dot, &[&x[0], &x[1]])?]);
    let seed = Array::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2])?;
    let (y, given) = vjp(f, &[a.clone(), b.clone()], &[seed])?;
    assert_eq!(y[0].dtype(), DType::F32);
    assert_eq!((given[0].aval(), given[1].aval()), (a.aval(), b.aval()));
    // ct·bᵀ in float32, rounded once.
    let wide = read(&Array::apply(Cast { to: DType::F32 }, &[&b])?)?;
    let first = wide[0] + 2.0 * wide[1];
    let found = read(&Array::apply(Cast { to: DType::F32 }, &[&given[0]])?)?[0];
    assert!((found - first).abs() <= first.abs() / 256.0, "{found}, should be {first}");
    Ok(())
}

#[test]
fn powers_differentiate_at_zero_until_nothing_is_left() -> Result<()> {
    let cube = |x: &[Array]| {
        let three = written(&[3.0], &x[0]);
        Ok(vec![Array::apply(Binary::Power, &[&x[0], &three])?])
    };
    let x = f64s(&[0.0], &[1]);
    let first = grad(cube, &[0]);
    let second = grad(&first, &[0]);
    let third = grad(&second, &[0]);
    let fourth = grad(&third, &[0]);
    let at = |f: &dyn Fn(&[Array]) -> Result<Vec<Array>>| read(&f(std::slice::from_ref(&x))?[0]);
    assert_eq!(at(&first)?, [0.0]);
    assert_eq!(at(&second)?, [0.0]);
    assert_eq!(at(&third)?, [6.0]);
    assert_eq!(at(&fourth)?, [0.0]);
    Ok(())
}

fn swish(x: &[Array]) -> Result<Vec<Array>> {
    let gate = Array::apply(Unary::Sigmoid, &[&x[0]])?;
    let y = Array::apply(Binary::Mul, &[&x[0], &gate])?;
    Ok(vec![Array::apply(Binary::Mul, &[&y, &x[1]])?])
}

#[test]
fn composites_differentiate_and_batch_as_their_bodies() -> Result<()> {
    let mut source = Source::new(43);
    let inputs = [source.array(&[4], -1.0, 1.0), source.array(&[4], -1.0, 1.0)];
    let directions = [source.array(&[4], -1.0, 1.0), source.array(&[4], -1.0, 1.0)];
    let call = |x: &[Array]| custom_function(swish).call(x);
    let kept = checkpoint(swish);
    let want = vjp(swish, &inputs, &directions[..1])?.1;
    let pushed = jvp(swish, &inputs, &directions)?.1;
    for (name, found) in [
        ("call", vjp(call, &inputs, &directions[..1])?.1),
        ("checkpoint", vjp(&kept, &inputs, &directions[..1])?.1),
    ] {
        for (have, want) in found.iter().zip(&want) {
            close(name, &read(have)?, &read(want)?, 1e-12).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    let found = jvp(call, &inputs, &directions)?.1;
    close("jvp", &read(&found[0])?, &read(&pushed[0])?, 1e-12).unwrap_or_else(|e| panic!("{e}"));

    let rows = source.array(&[3, 4], -1.0, 1.0);
    let arguments = [rows, inputs[1].clone()];
    let want = vmap(swish, &[Some(0), None], &[0])(&arguments)?;
    let found = vmap(call, &[Some(0), None], &[0])(&arguments)?;
    close("vmap", &read(&found[0])?, &read(&want[0])?, 1e-12).unwrap_or_else(|e| panic!("{e}"));
    Ok(())
}

#[test]
fn a_given_derivative_holds_over_a_batch_too() -> Result<()> {
    let tripled = |x: &[Array]| {
        custom_function(|x: &[Array]| Ok(vec![Array::apply(Binary::Mul, &[&x[0], &x[1]])?]))
            .with_vjp(|x, _, ct| {
                let three = written(&vec![3.0; x[0].size()], &x[0]);
                let left = Array::apply(Binary::Mul, &[&ct[0], &three])?;
                Ok(vec![left, ct[0].clone()])
            })
            .call(x)
    };
    let x = f64s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]);
    let shared = f64s(&[5.0, 7.0], &[2]);
    let loss = |x: &[Array]| {
        let y = vmap(tripled, &[Some(0), None], &[0])(x)?;
        let all = Reduce { kind: ReduceKind::Sum, axes: Dims::from_slice(&[0, 1]) };
        Ok(vec![Array::apply(all, &[&y[0]])?])
    };
    let given = grad(loss, &[0, 1])(&[x, shared])?;
    assert_eq!(read(&given[0])?, [3.0; 6]);
    assert_eq!(read(&given[1])?, [3.0, 3.0]);
    Ok(())
}

#[test]
fn marks_stop_or_pass() -> Result<()> {
    let x = f64s(&[2.0], &[1]);
    assert_eq!(gradients(Mark::StopGradient, &[&x])?, [[0.0]]);
    assert_eq!(gradients(Mark::Depends, &[&x, &x])?, [[1.0], [0.0]]);
    Ok(())
}
