//! What recording, planning from the cache and running cost beside the arithmetic.
//!
//! `cargo bench -p cupola --bench overhead` prints the median of many runs, in microseconds; on the
//! CPU, and what a launch costs on every other device.

use std::time::Instant;

use cupola::backend::{backend, backends};
use cupola::device::with_stream;
use cupola::plan::cache;
use cupola::transform::value_and_grad;
use cupola::{Array, Device, Result, Stream, eval, ops};

/// The median time of `f`, in microseconds, after a warm-up.
fn median(runs: usize, mut f: impl FnMut() -> Result<()>) -> Result<f64> {
    for _ in 0..runs / 10 + 2 {
        f()?;
    }
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        f()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[runs / 2])
}

fn main() -> Result<()> {
    let one = Array::from_vec(vec![1.0f32; 64], [8, 8])?;
    let chain = median(300, || {
        let mut y = &one + &one;
        for _ in 1..1000 {
            y = &y + &one;
        }
        y.eval()
    })?;
    println!("1,000 additions on 8×8, recorded and run   {chain:10.1} µs");
    let record = median(300, || {
        let mut y = &one + &one;
        for _ in 1..1000 {
            y = &y + &one;
        }
        drop(y);
        Ok(())
    })?;
    println!("  of which recording and dropping          {record:10.1} µs");
    let single = median(2000, || (&one + &one).eval())?;
    println!("one addition on 8×8                        {single:10.2} µs");

    let x = Array::from_vec(vec![0.5f32; 32 * 16], [32, 16])?;
    let w = Array::from_vec(vec![0.1f32; 16 * 16], [16, 16])?;
    let step = value_and_grad(
        |a: &[Array]| {
            let h = ops::tanh(&ops::matmul(&a[1], &a[0])?)?;
            Ok(vec![ops::mean(&ops::square(&h)?, (), false)?])
        },
        &[0],
    );
    let train = median(1000, || {
        let (loss, grads) = step(&[w.clone(), x.clone()])?;
        let next = &w - &(&grads[0] * 0.01);
        eval(&[next, loss[0].clone()])
    })?;
    println!("a training step on 32×16 by 16×16          {train:10.1} µs");
    println!("{:?}", cache::stats());
    let mut others = backends().map(|b| b.device()).filter(|device| *device != Device::CPU);
    others.try_for_each(launches)
}

/// What a launch in a cached plan costs on a device: each of a chain of small reductions is one.
fn launches(device: Device) -> Result<()> {
    const LAUNCHES: usize = 500;
    let w = Array::from_vec(vec![1.0f32 / 32.0; 32 * 32], [32, 32])?;
    let first = Array::from_vec(vec![1.0f32; 32], [1, 32])?;
    let chain = || -> Result<Array> {
        let mut y = first.clone();
        for _ in 0..LAUNCHES {
            y = ops::sum(&(&y * &w), 0, true)?;
        }
        Ok(y)
    };
    let (mut asked, mut done) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let y = with_stream(Stream::of(device), chain)?;
        backend(device)?.synchronize()?;
        let start = Instant::now();
        y.eval()?;
        asked.push(start.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64);
        backend(device)?.synchronize()?;
        done.push(start.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64);
    }
    for (what, mut times) in [("until asked for", asked), ("until done", done)] {
        times.sort_by(f64::total_cmp);
        let what = format!("a launch in a plan on {device}, {what}");
        println!("{what:43}{:10.2} µs", times[times.len() / 2]);
    }
    Ok(())
}
