//! Work along rows, across them and between them agrees with the CPU on every device beside it;
//! where there is none the tests say so and end.

use cupola::backend::backends;
use cupola::device::{Stream, with_stream};
use cupola::plan::explain;
use cupola::transform::grad;
use cupola::{Array, DType, Device, Result, ops};

fn others() -> Vec<Device> {
    let found: Vec<Device> = backends().map(|b| b.device()).filter(|d| *d != Device::CPU).collect();
    if found.is_empty() {
        println!("there is no device beside the CPU: nothing was tested");
    }
    found
}

/// Numbers between −2 and 2 with no pattern along any axis.
fn noise(shape: &[usize], seed: u32) -> Array {
    let size: usize = shape.iter().product();
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let data: Vec<f32> = (0..size)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 22) as f32 - 2.0
        })
        .collect();
    Array::from_vec(data, shape).unwrap()
}

/// Runs `f` on the CPU and on every other device.
fn agree(what: &str, tolerance: f32, f: impl Fn() -> Result<Vec<Array>>) -> Result<()> {
    let numbers = |arrays: Vec<Array>| -> Result<Vec<Vec<f32>>> {
        cupola::eval(&arrays)?;
        arrays.iter().map(|a| ops::astype(a, DType::F32)?.to_vec::<f32>()).collect()
    };
    let want = with_stream(Stream::of(Device::CPU), || numbers(f()?))?;
    for device in others() {
        let have = with_stream(Stream::of(device), || numbers(f()?))?;
        for (number, (have, want)) in have.iter().zip(&want).enumerate() {
            assert_eq!(have.len(), want.len(), "{what}, output {number} on {device}");
            for (i, (h, w)) in have.iter().zip(want).enumerate() {
                let near = h == w || (h - w).abs() <= tolerance * (1.0 + w.abs());
                assert!(near, "{what}, output {number} on {device}, element {i}: {h}, not {w}");
            }
        }
    }
    Ok(())
}

const SHAPES: [[usize; 2]; 9] =
    [[3, 2], [5, 3], [513, 10], [7, 64], [9, 1000], [4, 1023], [2, 4096], [3, 5000], [1, 300]];

#[test]
fn composites_over_rows() -> Result<()> {
    for dtype in [DType::F32, DType::F16] {
        let tolerance = if dtype == DType::F32 { 2e-5 } else { 4e-3 };
        for shape in SHAPES {
            let what = format!("{dtype} {shape:?}");
            let x = ops::astype(&noise(&shape, 1), dtype)?;
            let [weight, bias] =
                [2, 3].map(|seed| ops::astype(&noise(&shape[1..], seed), dtype).unwrap());
            agree(&what, tolerance, || {
                Ok(vec![
                    ops::softmax(&x, -1)?,
                    ops::log_softmax(&x, -1)?,
                    ops::logsumexp(&x, -1, false)?,
                    ops::logsumexp(&x, -1, true)?,
                    ops::layer_norm(&x, Some(&weight), Some(&bias), 1e-5)?,
                    ops::rms_norm(&x, Some(&weight), 1e-5)?,
                ])
            })?;
            // One by one, with something before and after, and of a view.
            agree(&what, tolerance, || Ok(vec![ops::softmax(&(&x * 2.0), -1)? + 1.0]))?;
            agree(&what, tolerance, || ops::layer_norm(&x, None, None, 1e-5).map(|y| vec![y]))?;
            let back = ops::flip(&x, 0)?;
            agree(&what, tolerance, || ops::softmax(&back, -1).map(|y| vec![y]))?;
        }
    }
    Ok(())
}

#[test]
fn their_gradients() -> Result<()> {
    for shape in [[5usize, 3], [64, 10], [4, 1023]] {
        let (x, seed) = (noise(&shape, 4), noise(&shape, 5));
        let weight = noise(&shape[1..], 6);
        agree(&format!("{shape:?}"), 1e-4, || {
            let seed = seed.clone();
            let slope = grad(
                move |a: &[Array]| {
                    let y = ops::layer_norm(&a[0], Some(&a[1]), None, 1e-5)?;
                    let y = &ops::softmax(&y, -1)? + &ops::log_softmax(&a[0], -1)?;
                    Ok(vec![ops::sum(&(&y * &seed), (), false)?])
                },
                &[0, 1],
            );
            slope(&[x.clone(), weight.clone()])
        })?;
    }
    Ok(())
}

#[test]
fn a_softmax_is_one_step() -> Result<()> {
    let x = noise(&[40, 100], 7);
    for device in others().into_iter().chain([Device::CPU]) {
        for f in [
            &|| ops::softmax(&x, -1) as Result<Array>,
            &|| ops::log_softmax(&x, -1),
            &|| ops::logsumexp(&x, -1, false),
            &|| ops::layer_norm(&x, None, None, 1e-5),
            &|| ops::rms_norm(&x, None, 1e-5),
        ] as [&dyn Fn() -> Result<Array>; 5]
        {
            let plan = with_stream(Stream::of(device), || explain(&[f()?]))?.to_string();
            assert!(plan.contains("rows of") && plan.contains(", 1 steps"), "{plan}");
        }
        // A row that is too long to be held is walked as before.
        let long = ops::zeros([2, 1 << 17], DType::F32)?;
        let plan =
            with_stream(Stream::of(device), || explain(&[ops::softmax(&long, -1)?]))?.to_string();
        assert!(!plan.contains("rows of"), "{plan}");
    }
    Ok(())
}

#[test]
fn axes_in_any_order() -> Result<()> {
    for shape in [[33usize, 17, 1], [100, 70, 1], [3, 64, 50], [2, 129, 16], [16, 5, 128]] {
        for dtype in [DType::F32, DType::F16, DType::U8, DType::Bool, DType::I32] {
            let x = ops::astype(&(&noise(&shape, 8) * 60.0), dtype)?;
            for axes in [[0isize, 2, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0]] {
                agree(&format!("{dtype} {shape:?} {axes:?}"), 0.0, || {
                    let turned = ops::transpose(&x, &axes[..])?;
                    Ok(vec![ops::concatenate(&[&turned, &turned], 0isize)?, turned])
                })?;
            }
        }
        // Two turned inputs beside one that is not.
        let [x, y] = [9, 10].map(|seed| noise(&shape, seed));
        let z = noise(&[shape[0], shape[2], shape[1]], 11);
        agree(&format!("{shape:?}"), 1e-6, || {
            let (x, y) = (ops::transpose(&x, [0isize, 2, 1])?, ops::transpose(&y, [0isize, 2, 1])?);
            Ok(vec![&(&x * &y) + &z])
        })?;
    }
    Ok(())
}

#[test]
fn folds_of_any_axes() -> Result<()> {
    for shape in
        [[64usize, 14, 50], [33, 7, 100], [512, 1, 10], [5, 300, 3], [700, 9, 1], [1, 2, 999]]
    {
        let x = noise(&shape, 12);
        for axes in [&[0isize][..], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2]] {
            agree(&format!("{shape:?} over {axes:?}"), 2e-5, || {
                Ok(vec![
                    ops::sum(&x, axes, false)?,
                    ops::max(&ops::astype(&x, DType::F16)?, axes, true)?,
                    ops::sum(&(&x * &x), axes, true)?,
                    ops::all(&ops::greater(&x, -1.9)?, axes, false)?,
                ])
            })?;
        }
    }
    Ok(())
}
