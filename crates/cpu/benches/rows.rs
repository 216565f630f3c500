//! Softmax, layer norm and their gradients step by step and over rows, in turn in one process.
//!
//! `cargo bench -p cupola-cpu --bench rows -- [filter]`; gigabytes a second count the input and the
//! result once.

#[path = "../tests/rows/device.rs"]
mod device;

use std::time::Instant;

use cupola_core::device::with_stream;
use cupola_core::plan::explain;
use cupola_core::transform::grad;
use cupola_core::{Array, Device, Result, Stream, eval, ops};
use device::{ALL, NONE};

type F = fn(&Array) -> Result<Array>;

fn slope(f: F, x: &Array) -> Result<Array> {
    let total = move |a: &[Array]| {
        let y = f(&a[0])?;
        Ok(vec![ops::sum(&(&y * &a[0]), (), false)?])
    };
    Ok(grad(total, &[0])(std::slice::from_ref(x))?.remove(0))
}

const FUNCTIONS: [(&str, F); 5] = [
    ("softmax", |x| ops::softmax(x, -1)),
    ("log_softmax", |x| ops::log_softmax(x, -1)),
    ("layer_norm", |x| ops::layer_norm(x, None, None, 1e-5)),
    ("softmax, gradient", |x| slope(|x| ops::softmax(x, -1), x)),
    ("layer_norm, gradient", |x| slope(|x| ops::layer_norm(x, None, None, 1e-5), x)),
];

const SHAPES: [[usize; 2]; 8] = [
    [4096, 4096],
    [1 << 18, 64],
    [1 << 20, 10],
    [64, 32_768],
    [64, 10],
    [512, 10],
    [1, 1000],
    [32, 4097],
];

/// Seconds that an evaluation takes.
fn once(device: Device, f: F, x: &Array, repeats: usize) -> Result<f64> {
    with_stream(Stream::of(device), || {
        let start = Instant::now();
        for _ in 0..repeats {
            eval(&[f(x)?])?;
        }
        Ok(start.elapsed().as_secs_f64() / repeats as f64)
    })
}

fn main() -> Result<()> {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    for shape in SHAPES {
        let size: usize = shape.iter().product();
        let data: Vec<f32> = (0..size).map(|i| (i * 7919 % 997) as f32 / 250.0).collect();
        let x = Array::from_vec(data, shape)?;
        // An array lies where it was last used.
        let own = |device| -> Result<Array> {
            let own = with_stream(Stream::of(device), || &x * 1.0);
            eval(std::slice::from_ref(&own))?;
            Ok(own)
        };
        let places = [(NONE, own(NONE)?), (ALL, own(ALL)?)];
        for (name, f) in FUNCTIONS.into_iter().filter(|(name, _)| name.contains(&filter)) {
            let repeats = ((1 << 18) / size).max(1);
            let rounds = if size > 1 << 20 { 15 } else { 101 };
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..rounds {
                for ((device, x), times) in places.iter().zip(&mut times) {
                    times.push(once(*device, f, x, repeats)?);
                }
            }
            let steps = |device| -> Result<usize> {
                let plan = with_stream(Stream::of(device), || explain(&[f(&x)?]))?;
                Ok(plan.steps.len())
            };
            let line = |device: Device, times: &mut Vec<f64>| -> Result<String> {
                times.sort_by(f64::total_cmp);
                let (least, median) = (times[0], times[times.len() / 2]);
                let rate = (8 * size) as f64 / 1e9;
                Ok(format!(
                    "{} lines {:10.1} us (least {:10.1}) {:6.1} GB/s",
                    steps(device)?,
                    median * 1e6,
                    least * 1e6,
                    rate / median
                ))
            };
            let [alone, joined] = &mut times;
            let (alone, joined) = (line(NONE, alone)?, line(ALL, joined)?);
            println!("{name:22} {shape:?}\n    step by step {alone}\n    over rows    {joined}");
        }
    }
    Ok(())
}
