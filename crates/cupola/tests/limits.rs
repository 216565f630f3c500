//! Arrays beyond what a device binds at once: a wgpu device that binds 16 KiB runs in parts what
//! can be cut, and leaves the rest to the CPU, visibly. Nothing is tested where there is no device.

#![cfg(feature = "wgpu")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupola::backend::devices_of;
use cupola::device::{DeviceKind, Stream, with_stream};
use cupola::fallback::{self, Policy};
use cupola::ops::ScatterMode;
use cupola::transform::grad;
use cupola::{Array, DType, Device, Error, Result, ops};
use cupola_gpu::wgpu::{Restrictions, restrict};

const BINDING: u64 = 16 << 10;

/// The fallback policy is the process's: tests take turns.
static TURNS: Mutex<()> = Mutex::new(());

fn turn(policy: Policy) -> MutexGuard<'static, ()> {
    restrict(Restrictions { binding: Some(BINDING), ..Default::default() });
    let guard = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    fallback::set_policy(policy);
    guard
}

fn device() -> Option<Device> {
    let found = devices_of(DeviceKind::Wgpu).first().map(|b| b.device());
    if found.is_none() {
        println!("there is no wgpu device: nothing was tested");
    }
    found
}

/// Numbers that add up exactly in any order.
fn ramp(shape: &[usize], dtype: DType) -> Result<Array> {
    let size: usize = shape.iter().product();
    let data: Vec<f32> = (0..size).map(|i| ((i * 7 + i / 13) % 17) as f32 - 8.0).collect();
    ops::astype(&Array::from_vec(data, shape)?, dtype)
}

/// Compares what `f` gives on the device, where nothing may fall back, with what it gives here.
fn agrees(what: &str, f: impl Fn() -> Result<Array>) -> Result<()> {
    let _turn = turn(Policy::Error);
    let Some(device) = device() else { return Ok(()) };
    let want = f()?.to_bytes()?;
    let got = with_stream(Stream::of(device), || f()?.to_bytes())?;
    assert!(got == want, "{what} differs");
    Ok(())
}

#[test]
fn elementwise_programs_and_copies() -> Result<()> {
    for dtype in [DType::F32, DType::F16, DType::I8, DType::C64] {
        let x = ramp(&[300, 70], dtype)?;
        agrees("arithmetic", || ops::add(&ops::multiply(&x, &x)?, &ops::flip(&x, ())?))?;
        agrees("a broadcast row", || ops::add(&x, &ops::slice(&x, &[3, 0], &[4, 70], &[1, 1])?))?;
        agrees("a transposed copy", || ops::flatten(&ops::transpose(&x, ())?, 0, -1))?;
        agrees("parts of a result", || ops::concatenate(&[&x, &x, &x], 1isize))?;
        agrees("a padded copy", || ops::pad(&x, [(3, 5), (7, 1)], 2.0))?;
    }
    let x = ramp(&[40_000], DType::F32)?;
    agrees("a comparison", || ops::greater(&x, 1.0))?;
    agrees("a slice of a large array", || {
        ops::add(&ops::slice(&x, &[39_000], &[39_100], &[1])?, 1.0)
    })
}

#[test]
fn reductions() -> Result<()> {
    for dtype in [DType::F32, DType::F16, DType::I32] {
        let x = ramp(&[60, 41, 30], dtype)?;
        for axes in [vec![0], vec![1], vec![2], vec![0, 2], vec![0, 1, 2]] {
            agrees("a sum", || ops::sum(&x, axes.clone(), false))?;
            agrees("a maximum", || ops::max(&ops::multiply(&x, 2)?, axes.clone(), true))?;
        }
        agrees("argmax of rows", || ops::argmax(&x, -1, false))?;
    }
    let x = ramp(&[90_000], DType::I8)?;
    agrees("any", || ops::any(&ops::equal(&x, 8)?, (), false))?;
    agrees("all", || ops::all(&ops::equal(&x, 8)?, (), false))
}

#[test]
fn products_and_windows() -> Result<()> {
    let (a, b) = (ramp(&[150, 40], DType::F32)?, ramp(&[40, 170], DType::F32)?);
    agrees("a product", || ops::matmul(&a, &b))?;
    for dtype in [DType::F32, DType::I32] {
        let (a, b) = (ramp(&[3, 9000], dtype)?, ramp(&[9000, 2], dtype)?);
        let sevens = || ops::remainder(&ops::abs(&ops::matmul(&a, &b)?)?, 1024);
        agrees("a product along a long axis, and what follows", sevens)?;
    }
    let (a, b) = (ramp(&[9, 30, 20], DType::F32)?, ramp(&[9, 20, 25], DType::F32)?);
    agrees("products and what follows", || ops::maximum(&ops::matmul(&a, &b)?, 0.0))?;
    let (x, w) = (ramp(&[20, 14, 14, 3], DType::F32)?, ramp(&[8, 3, 3, 3], DType::F32)?);
    let conv = |x: &Array, w: &Array| {
        let y = ops::conv2d(x, w, &ops::ConvOptions::default())?;
        ops::max_pool(&y, &ops::PoolOptions::new([2, 2]))
    };
    agrees("a convolution", || conv(&x, &w))?;
    let loss = |x: &[Array]| Ok(vec![ops::sum(&conv(&x[0], &x[1])?, (), false)?]);
    for which in 0..2 {
        agrees("a gradient of it", || {
            Ok(grad(loss, &[which])(&[x.clone(), w.clone()])?.swap_remove(0))
        })?;
    }
    Ok(())
}

#[test]
fn indices_counters_and_order() -> Result<()> {
    let x = ramp(&[64, 50], DType::F32)?;
    let at = ops::astype(&ops::remainder(&ramp(&[900], DType::I32)?, 64)?, DType::I32)?;
    agrees("rows by index", || ops::take(&x, &at, 0isize))?;
    let columns = ops::astype(&ops::remainder(&ramp(&[64, 300], DType::I32)?, 50)?, DType::I32)?;
    agrees("elements along an axis", || ops::take_along_axis(&x, &columns, 1isize))?;
    let wide = ramp(&[300, 64], DType::F32)?;
    let updates = ramp(&[300, 5], DType::F32)?;
    let spots = ops::astype(&ops::remainder(&ramp(&[300, 5], DType::I32)?, 64)?, DType::I32)?;
    agrees("put along an axis", || {
        ops::scatter_along_axis(&wide, (&spots, 1), &updates, ScatterMode::Add)
    })?;
    agrees("sorted rows", || ops::sort(&wide, 1isize))?;
    for (width, shape) in [(4, vec![9_001]), (1, vec![3, 70_001]), (2, vec![1, 50, 999])] {
        agrees("random bits", || {
            cupola::generator::seed(5);
            ops::random::bits(shape.clone(), width, None)
        })?;
    }
    agrees("random numbers", || {
        cupola::generator::seed(6);
        ops::greater(&ops::random::uniform(0.0, 1.0, [300, 100], DType::F32, None)?, 0.5)
    })?;
    agrees("a counter", || ops::arange(0.0, 20_000.0, 1.0))?;
    agrees("a square of counters", || ops::eye(150, DType::F32))
}

#[test]
fn what_cannot_be_cut_falls_back_and_is_noted() -> Result<()> {
    let guard = turn(Policy::Error);
    let Some(device) = device() else { return Ok(()) };
    let x = ramp(&[10_000], DType::F32)?;
    let run = || with_stream(Stream::of(device), || ops::sort(&x, 0isize)?.to_vec::<f32>());
    let error = run().unwrap_err();
    assert!(matches!(&error, Error::Unsupported { reason, .. } if reason.contains("40000 bytes")));
    drop(guard);
    let _turn = turn(Policy::Allow);
    assert_eq!(run()?, ops::sort(&x, 0isize)?.to_vec::<f32>()?);
    let noted = fallback::records().into_iter().find(|r| r.op == "sort" && r.device == device);
    assert!(noted.is_some_and(|r| r.reason.contains("binds") && r.runs == 1));
    Ok(())
}
