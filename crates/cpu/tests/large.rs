//! Work that is cut among threads gives what one thread gives, and long sums lose little.

use cupola_core::ops::{self, ScanOptions, ScatterMode};
use cupola_core::prim::{ArgReduce, Op, Scatter, ScatterAxis, Sort};
use cupola_core::{Array, DType, Dims, Result};
use cupola_cpu as _;
use cupola_cpu::threads::with_threads;

/// Whole numbers without an order.
fn numbers(shape: &[usize], below: u64, seed: u64, dtype: DType) -> Result<Array> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let data = (0..shape.iter().product::<usize>()).map(|_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % below) as f64
    });
    Array::from_vec(data.collect(), shape)?.astype(dtype)
}

fn same(op: impl Into<Op>, inputs: &[&Array]) -> Result<()> {
    let op = op.into();
    cupola_core::eval(&inputs.iter().map(|&x| x.clone()).collect::<Vec<_>>())?;
    let run = || Array::apply(op.clone(), inputs)?.to_bytes();
    assert!(with_threads(1, run)? == run()?, "{op:?}");
    Ok(())
}

#[test]
fn orders() -> Result<()> {
    for dtype in [DType::F32, DType::I64, DType::F16, DType::U8] {
        let x = numbers(&[300_000], 1 << 20, 1, dtype)?;
        let table = numbers(&[10_000, 30], 1 << 20, 2, dtype)?;
        same(Sort::new(0).places(), &[&x])?;
        same(Sort::new(0), &[&x])?;
        same(Sort::new(1).places(), &[&table])?;
        same(ArgReduce { max: true, axis: 0 }, &[&table])?;
    }
    Ok(())
}

#[test]
fn many_updates() -> Result<()> {
    let (rows, columns, count) = (300, 33, 5000);
    for mode in [ScatterMode::Set, ScatterMode::Add] {
        let x = numbers(&[rows, columns], 1000, 1, DType::F32)?;
        let at = numbers(&[count], rows as u64, 2, DType::I64)?;
        let updates = numbers(&[count, 1, columns], 1 << 20, 3, DType::F32)?;
        let updates = ops::divide(&updates, 7.0)?;
        same(Scatter { mode, axes: Dims::from_slice(&[0]) }, &[&x, &updates, &at])?;
        let places = rows * columns;
        let at = numbers(&[3 * places], places as u64, 4, DType::U32)?;
        let updates = numbers(&[3 * places], 1 << 20, 5, DType::F32)?;
        same(ScatterAxis { mode, axis: 0 }, &[&ops::reshape(&x, -1isize)?, &updates, &at])?;
    }
    Ok(())
}

#[test]
fn running_sums() -> Result<()> {
    let tenth = ops::full([1 << 20], 0.1, DType::F32)?;
    let sums = ops::cumsum(&tenth, 0, ScanOptions::default())?.to_vec::<f32>()?;
    let exact = f64::from(0.1f32) * f64::from(1 << 20);
    // One sum after the other would be wrong by a part in thirty.
    let wrong = (f64::from(sums[(1 << 20) - 1]) / exact - 1.0).abs();
    assert!(wrong < 2e-5, "{wrong}");
    Ok(())
}
