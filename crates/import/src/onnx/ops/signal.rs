//! Fourier transforms and windows.

use cupola_core::ops::FftNorm;

use super::prelude::*;
use crate::lowering::movement::part;

/// Real and imaginary parts along a last axis of 2, as complex numbers; of 1, real ones.
fn complex(x: &Array) -> Made {
    let last = x.rank().checked_sub(1).ok_or_else(|| Fault::invalid("the signal has no axes"))?;
    let wide = ops::astype(x, DType::F32)?;
    let at = |i: usize| -> Made { Ok(ops::squeeze(&part(&wide, last, i, i + 1)?, last)?) };
    let real = ops::astype(&at(0)?, DType::C64)?;
    match x.shape()[last] {
        1 => Ok(real),
        2 => {
            let unit = ops::full((), num_complex::Complex32::new(0.0, 1.0), DType::C64)?;
            Ok(ops::add(&real, &ops::multiply(&ops::astype(&at(1)?, DType::C64)?, &unit)?)?)
        }
        size => Err(Fault::invalid(format!("a last axis of {size} is not 1 or 2"))),
    }
}

/// Complex numbers as two along a new last axis.
fn parts(x: &Array, dtype: DType) -> Made {
    let pair = ops::stack(&[&ops::real(x)?, &ops::imag(x)?], -1)?;
    Ok(ops::astype(&pair, dtype)?)
}

fn dft(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let axis = match n.version() {
        20.. => n.ints_at(2)?.and_then(|a| a.first().copied()).unwrap_or(-2),
        _ => n.int("axis", 1)?,
    };
    let axis = node::axis(axis, x.rank())? as isize;
    let signal = complex(x)?;
    if axis as usize >= signal.rank() {
        return Err(Fault::invalid("the last axis holds the parts of the numbers"));
    }
    let length = match n.ints_at(1)?.and_then(|l| l.first().copied()) {
        Some(length) => node::count(length)?,
        // One side of a spectrum is that of twice as long a signal, less both ends.
        None if n.flag("inverse", false)? && n.flag("onesided", false)? => {
            signal.shape()[axis as usize].saturating_sub(1).saturating_mul(2)
        }
        None => signal.shape()[axis as usize],
    };
    signal.shape().with(axis as usize, length).checked_size("DFT", DType::C64)?;
    let (inverse, onesided) = (n.flag("inverse", false)?, n.flag("onesided", false)?);
    let size = Some(length as isize);
    if length <= SHORT && !inverse {
        let y = short(x, axis as usize, length)?;
        let count = if onesided { length / 2 + 1 } else { length };
        return one(part(&y, axis as usize, 0, count)?);
    }
    let y = match (inverse, onesided) {
        (false, _) => ops::fft(&signal, size, axis, FftNorm::Backward)?,
        (true, false) => ops::ifft(&signal, size, axis, FftNorm::Backward)?,
        (true, true) => {
            let real = ops::irfft(&signal, size, axis, FftNorm::Backward)?;
            return one(ops::astype(&ops::expand_dims(&real, -1)?, x.dtype())?);
        }
    };
    let y = match onesided && !inverse {
        true => part(&y, axis as usize, 0, length / 2 + 1)?,
        false => y,
    };
    one(parts(&y, x.dtype())?)
}

/// Up to this length a forward transform is a product of matrices in `float64`, as precise as the reference.
const SHORT: usize = 64;

/// The transform of a short axis of numbers that lie as parts along the last axis.
fn short(x: &Array, axis: usize, length: usize) -> Made {
    let last = x.rank() - 1;
    let mut wide = ops::astype(x, DType::F64)?;
    let size = wide.shape()[axis];
    if size > length {
        wide = part(&wide, axis, 0, length)?;
    } else if size < length {
        let mut widths = vec![(0, 0); wide.rank()];
        widths[axis] = (0, length - size);
        wide = ops::pad(&wide, &widths[..], 0)?;
    }
    let angle =
        |k: usize| -std::f64::consts::TAU * (k % length.max(1)) as f64 / length.max(1) as f64;
    let places = || (0..length).flat_map(|i| (0..length).map(move |j| i * j));
    let cos: Vec<f64> = places().map(|k| angle(k).cos()).collect();
    let sin: Vec<f64> = places().map(|k| angle(k).sin()).collect();
    let (cos, sin) =
        (Array::from_slice(&cos, [length, length])?, Array::from_slice(&sin, [length, length])?);
    // The axis last, behind those of the parts.
    let at = |i: usize| -> Made {
        let part = ops::squeeze(&part(&wide, last, i, i + 1)?, last)?;
        Ok(ops::moveaxis(&part, axis as isize, -1)?)
    };
    let a = at(0)?;
    let (mut real, mut imaginary) = (ops::matmul(&a, &cos)?, ops::matmul(&a, &sin)?);
    if wide.shape()[last] == 2 {
        let b = at(1)?;
        real = ops::subtract(&real, &ops::matmul(&b, &sin)?)?;
        imaginary = ops::add(&imaginary, &ops::matmul(&b, &cos)?)?;
    }
    let back = |y: &Array| ops::moveaxis(y, -1, axis as isize);
    let pair = ops::stack(&[&back(&real)?, &back(&imaginary)?], -1)?;
    Ok(ops::astype(&pair, x.dtype())?)
}

fn stft(n: &Node<'_>) -> Outcome {
    let x = n.x(0)?;
    let step = node::count(n.need_int(1)?)?;
    let window = n.maybe(2)?;
    let length = match (n.ints_at(3)?.and_then(|l| l.first().copied()), window) {
        (Some(length), _) => node::count(length)?,
        (None, Some(window)) => window.size(),
        (None, None) => return Err(Fault::invalid("neither a window nor a length of frames")),
    };
    let signal = if x.rank() == 2 { ops::expand_dims(x, 2)? } else { x.clone() };
    let signal = complex(&signal)?;
    let size = signal.shape().get(1).copied().unwrap_or(0);
    if step == 0 || length == 0 || length > size {
        return Err(Fault::invalid(format!("frames of {length} by {step} of {}", x.shape())));
    }
    let frames = (size - length) / step + 1;
    let starts = ops::multiply(&ops::arange_in(0, frames, 1, DType::I64)?, step as i64)?;
    let places =
        ops::add(&ops::expand_dims(&starts, 1)?, &ops::arange_in(0, length, 1, DType::I64)?)?;
    let mut cut = ops::take(&signal, &places, 1)?;
    if let Some(window) = window {
        cut = ops::multiply(&cut, &ops::astype(window, DType::C64)?)?;
    }
    let y = ops::fft(&cut, None, -1, FftNorm::Backward)?;
    let y = match n.flag("onesided", true)? {
        true => part(&y, 2, 0, length / 2 + 1)?,
        false => y,
    };
    one(parts(&y, x.dtype())?)
}

/// a₀ − a₁·cos(2πi/N) + a₂·cos(4πi/N), N one less where the window is symmetric.
fn window(n: &Node<'_>, a: [f64; 3]) -> Outcome {
    let size = node::count(n.need_int(0)?)?;
    let element = n.element("output_datatype")?.unwrap_or(Element::Float);
    Shape::from(size).checked_size("window", DType::F64)?;
    let periodic = n.flag("periodic", true)?;
    let turns = if periodic { size } else { size.max(2) - 1 };
    let places = ops::astype(&ops::arange_in(0, size, 1, DType::I64)?, DType::F64)?;
    let angle = ops::multiply(&places, std::f64::consts::TAU / turns.max(1) as f64)?;
    let first = ops::multiply(&ops::cos(&angle)?, -a[1])?;
    let second = ops::multiply(&ops::cos(&ops::multiply(&angle, 2.0)?)?, a[2])?;
    let made = ops::add(&ops::add(&first, &second)?, a[0])?;
    Ok(vec![Tensor::new(ops::astype(&made, element.dtype())?, element)?.into()])
}

fn hann(n: &Node<'_>) -> Outcome {
    window(n, [0.5, 0.5, 0.0])
}

fn hamming(n: &Node<'_>) -> Outcome {
    window(n, [25.0 / 46.0, 21.0 / 46.0, 0.0])
}

fn blackman(n: &Node<'_>) -> Outcome {
    window(n, [0.42, 0.5, 0.08])
}

fn mel_weights(n: &Node<'_>) -> Outcome {
    let (bins, length) = (node::count(n.need_int(0)?)?, node::count(n.need_int(1)?)?);
    let number = |i: usize| -> Result<f64, Fault> {
        let found = n.floats_at(i)?.and_then(|v| v.first().copied());
        found.ok_or_else(|| Fault::invalid(format!("input {i} is not one number")))
    };
    let (rate, low, high) = (number(2)?, number(3)?, number(4)?);
    let spectrum = length / 2 + 1;
    if bins.saturating_mul(spectrum) > 1 << 28 {
        return Err(Fault::invalid(format!("{bins} bins of {spectrum} frequencies are too many")));
    }
    let mel = |hz: f64| 2595.0 * (1.0 + hz / 700.0).log10();
    let (from, to) = (mel(low), mel(high));
    let step = (to - from) / (bins as f64 + 2.0);
    let place = |i: usize| {
        let hz = 700.0 * (10f64.powf((from + step * i as f64) / 2595.0) - 1.0);
        ((length as f64 + 1.0) * hz / rate).floor()
    };
    let mut weights = vec![0f32; bins * spectrum];
    for bin in 0..bins {
        let (a, b, c) = (place(bin), place(bin + 1), place(bin + 2));
        for at in 0..spectrum {
            let x = at as f64;
            weights[at * bins + bin] = match x {
                x if x == b && a == b => 1.0,
                x if x >= a && x <= b => ((x - a) / (b - a)) as f32,
                x if x >= b && x < c => ((c - x) / (c - b)) as f32,
                _ => 0.0,
            };
        }
    }
    let element = n.element("output_datatype")?.unwrap_or(Element::Float);
    let made = Array::from_slice(&weights, [spectrum, bins])?;
    Ok(vec![Tensor::new(ops::astype(&made, element.dtype())?, element)?.into()])
}

pub const OPS: &[Entry] = &[
    ("BlackmanWindow", 17, blackman),
    ("DFT", 17, dft),
    ("HammingWindow", 17, hamming),
    ("HannWindow", 17, hann),
    ("MelWeightMatrix", 17, mel_weights),
    ("STFT", 17, stft),
];
