//! Programs over rows have the very bits of the steps that they stand for.

mod device;

use cupola_core::device::with_stream;
use cupola_core::plan::explain;
use cupola_core::transform::grad;
use cupola_core::{Array, DType, Result, Stream, eval, ops};
use cupola_cpu::threads::with_threads;
use cupola_suite::{Family, assert_family};
use device::{ALL, NONE};

/// Numbers between −2 and 2 with no pattern along any axis.
fn noise(shape: &[usize], seed: u32, dtype: DType) -> Array {
    let size: usize = shape.iter().product();
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let data: Vec<f32> = (0..size)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 22) as f32 - 2.0
        })
        .collect();
    ops::astype(&Array::from_vec(data, shape).unwrap(), dtype).unwrap()
}

fn bits(array: &Array) -> Result<Vec<u64>> {
    let values = ops::astype(array, DType::F64)?.to_vec::<f64>()?;
    Ok(values.into_iter().map(f64::to_bits).collect())
}

/// Runs `f` step by step and over rows, with one thread and with two.
fn agree(what: &str, f: impl Fn() -> Result<Vec<Array>>) -> Result<()> {
    let run = |device| {
        let arrays = with_stream(Stream::of(device), &f)?;
        eval(&arrays)?;
        arrays.iter().map(bits).collect::<Result<Vec<_>>>()
    };
    let want = run(NONE)?;
    for threads in [1, 2] {
        let have = with_threads(threads, || run(ALL))?;
        for (number, (have, want)) in have.iter().zip(&want).enumerate() {
            assert_eq!(have.len(), want.len(), "{what}, output {number}");
            let differs = have.iter().zip(want).position(|(h, w)| h != w);
            let show = |i: usize| (i, f64::from_bits(have[i]), f64::from_bits(want[i]));
            assert_eq!(differs.map(show), None, "{what}, output {number}, {threads} threads");
        }
    }
    Ok(())
}

const DTYPES: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const SHAPES: [[usize; 2]; 8] =
    [[3, 1], [300, 2], [513, 7], [77, 64], [9, 1000], [5, 4097], [2, 20_000], [1, 1000]];

#[test]
fn composites() -> Result<()> {
    for dtype in DTYPES {
        for shape in SHAPES {
            let what = format!("{dtype} {shape:?}");
            let x = noise(&shape, 1, dtype);
            let [weight, bias] = [2, 3].map(|seed| noise(&shape[1..], seed, dtype));
            agree(&what, || {
                Ok(vec![
                    ops::softmax(&x, -1)?,
                    ops::log_softmax(&x, -1)?,
                    ops::logsumexp(&x, -1, false)?,
                    ops::logsumexp(&x, -1, true)?,
                    ops::layer_norm(&x, Some(&weight), Some(&bias), 1e-5)?,
                    ops::rms_norm(&x, Some(&weight), 1e-5)?,
                ])
            })?;
            let alone = |f: &dyn Fn(&Array) -> Result<Array>| agree(&what, || Ok(vec![f(&x)?]));
            alone(&|x| ops::softmax(x, -1))?;
            alone(&|x| ops::log_softmax(x, -1))?;
            alone(&|x| ops::logsumexp(x, -1, false))?;
            alone(&|x| ops::layer_norm(x, None, None, 1e-5))?;
            alone(&|x| ops::layer_norm(x, Some(&weight), Some(&bias), 1e-5))?;
            alone(&|x| ops::rms_norm(x, Some(&weight), 1e-5))?;
        }
    }
    Ok(())
}

#[test]
fn gradients() -> Result<()> {
    for dtype in DTYPES {
        for shape in SHAPES {
            let [x, seed] = [4, 5].map(|seed| noise(&shape, seed, dtype));
            let weight = noise(&shape[1..], 6, dtype);
            type F = fn(&Array, &Array) -> Result<Array>;
            let functions: [F; 4] = [
                |x, _| ops::softmax(x, -1),
                |x, _| ops::log_softmax(x, -1),
                |x, w| ops::layer_norm(x, Some(w), None, 1e-5),
                |x, w| ops::rms_norm(x, Some(w), 1e-5),
            ];
            for (number, f) in functions.into_iter().enumerate() {
                agree(&format!("{dtype} {shape:?}, function {number}"), || {
                    let seed = seed.clone();
                    let total = move |a: &[Array]| {
                        Ok(vec![ops::sum(&(&f(&a[0], &a[1])? * &seed), (), false)?])
                    };
                    grad(total, &[0, 1])(&[x.clone(), weight.clone()])
                })?;
            }
        }
    }
    Ok(())
}

#[test]
fn views_and_values_of_rows() -> Result<()> {
    for length in [2, 7, 64, 1000, 4097] {
        let x = noise(&[6, 5, length], 7, DType::F32);
        let values = noise(&[6, 1, 1], 8, DType::F32);
        let mask = noise(&[5, length], 9, DType::F32);
        eval(&[x.clone(), values.clone(), mask.clone()])?;
        agree(&format!("rows of {length}"), || {
            let turned = ops::transpose(&x, [1isize, 0, 2])?;
            let back = ops::flip(&x, 1)?;
            let part = ops::slice(&x, &[1, 0, 1], &[6, 5, length as isize], &[2, 1, 1])?;
            let repeated = ops::broadcast_to(&values, [6, 5, length])?;
            let masked = &(&x * &values) + &mask;
            let scaled = ops::softmax(&masked, -1)?;
            // Kept beside what comes of it, and read once more after it.
            let shifted = &x - &ops::max(&x, -1, true)?;
            Ok(vec![
                ops::softmax(&turned, -1)?,
                ops::softmax(&back, -1)?,
                ops::layer_norm(&part, None, None, 1e-5)?,
                ops::softmax(&repeated, -1)?,
                &scaled * &values,
                ops::softmax(&shifted, -1)?,
                shifted,
                ops::all(&ops::less(&x, &ops::mean(&x, -1, true)?)?, -1, false)?,
            ])
        })?;
        // What nobody else holds may be overwritten.
        agree(&format!("in place, {length}"), || {
            let own = &x * 1.5;
            eval(std::slice::from_ref(&own))?;
            Ok(vec![ops::softmax(&own, -1)?])
        })?;
    }
    Ok(())
}

#[test]
fn a_softmax_is_one_step() -> Result<()> {
    let x = noise(&[40, 100], 10, DType::F32);
    eval(std::slice::from_ref(&x))?;
    let plan = with_stream(Stream::of(ALL), || explain(&[ops::softmax(&x, -1)?]))?.to_string();
    assert!(plan.contains("rows of") && plan.contains(", 1 steps"), "{plan}");
    Ok(())
}

/// Random programs with folds behind them.
#[test]
fn programs() {
    assert_family(ALL, Family::Call, |_| false);
}
