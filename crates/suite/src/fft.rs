//! Fourier transforms.

use std::f64::consts::TAU;

use cupola_core::Aval;
use cupola_core::prim::{Fft, FftKind, FftScale};
use num_complex::Complex64;

use crate::host::{Host, lanes};
use crate::number::Number;
use crate::sample::{Sample, dims, from, input, spread};

pub fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    // Powers of two, small factors, primes, and what is alone.
    for (size, scale) in
        [(1, FftScale::Whole), (2, FftScale::One), (3, FftScale::Root), (8, FftScale::Whole)]
            .into_iter()
            .chain([5, 6, 7, 12, 16, 17].map(|size| (size, FftScale::One)))
    {
        for (op, name) in every_kind(size, 1, scale) {
            let entries = entries(&op, size);
            let name = format!("{name} of {size}");
            let sample = Sample::new(name, move |_| op.clone().into(), vec![input([3, entries])]);
            all.push(sample.smooth());
        }
    }
    // Lanes one after the other, side by side, and both.
    let places: [(&[usize], usize); 6] =
        [(&[6], 0), (&[6, 5], 0), (&[2, 6, 3], 1), (&[6, 40], 0), (&[2, 0, 6], 2), (&[1, 6, 1], 1)];
    for (shape, axis) in places {
        for (op, name) in every_kind(6, axis, FftScale::One) {
            let mut shape = shape.to_vec();
            shape[axis] = entries(&op, 6);
            let name = format!("{name} of {shape:?} along {axis}");
            let sample = Sample::new(name, move |_| op.clone().into(), vec![input(&shape[..])]);
            all.push(sample.smooth().where_kernels_are_cheap());
        }
    }
    let several: [(&[usize], &[usize]); 4] = [
        (&[3, 4], &[0, 1]),
        (&[3, 4], &[1, 0]),
        (&[2, 3, 4], &[2, 0]),
        (&[2, 3, 2, 5], &[1, 2, 3]),
    ];
    for (shape, axes) in several {
        for (kind, scale) in
            [(FftKind::Forward, FftScale::Root), (FftKind::Inverse, FftScale::Whole)]
        {
            let op = Fft { kind, axes: dims(axes), scale };
            let name = format!("{} of {shape:?} along {axes:?}", kind.name());
            let sample = Sample::new(name, move |_| op.clone().into(), vec![input(shape)]);
            all.push(sample.smooth().where_kernels_are_cheap());
        }
    }
    // Sizes that go through other algorithms: products of primes, a large prime, a power of two.
    for size in [1000, 1009, 4096, 4099, 5000] {
        for (op, name) in every_kind(size, 1, FftScale::Root) {
            let entries = entries(&op, size);
            let shape = if size > 2000 { [1, entries] } else { [2, entries] };
            let name = format!("{name} of {size}");
            let sample = Sample::new(name, move |_| op.clone().into(), vec![from(shape, spread)]);
            all.push(sample.where_kernels_are_cheap());
        }
    }
    all
}

/// Each kind of transform along an axis of `size` real numbers.
fn every_kind(size: usize, axis: usize, scale: FftScale) -> [(Fft, &'static str); 4] {
    let half = FftKind::HalfComplex { odd: size % 2 == 1 };
    [FftKind::Forward, FftKind::Inverse, FftKind::Real, half]
        .map(|kind| (Fft { kind, axes: dims(&[axis]), scale }, kind.name()))
}

/// How many elements an input has for `size` real numbers.
fn entries(fft: &Fft, size: usize) -> usize {
    if matches!(fft.kind, FftKind::HalfComplex { .. }) { size / 2 + 1 } else { size }
}

/// The sums as they are written, an axis after the other.
pub fn reference(fft: &Fft, x: &Host, out: &Aval) -> Host {
    let mut y = x.clone();
    let mut count = 1;
    for &axis in &fft.axes {
        let size = out.shape[axis];
        let aval = Aval { shape: y.aval.shape.with(axis, size), dtype: out.dtype };
        y = lanes(&y, axis, &aval, |lane| transform(fft.kind, lane, size));
        let is_half = matches!(fft.kind, FftKind::HalfComplex { .. });
        count *= if is_half { size } else { x.aval.shape[axis] };
    }
    let factor = fft.scale.factor(count);
    Host::from_fn(out.clone(), |i| match y.data[i] {
        Number::Complex(v) => Number::Complex(v * factor),
        v => Number::Float(v.float() * factor),
    })
}

fn transform(kind: FftKind, lane: &[Number], size: usize) -> Vec<Number> {
    let n = if kind == FftKind::Real { lane.len() } else { size };
    let spectrum: Vec<Complex64> = match kind {
        FftKind::Forward | FftKind::Inverse | FftKind::Real => {
            lane.iter().map(|v| v.complex()).collect()
        }
        // The other half is the conjugate, and what stands for both is real.
        FftKind::HalfComplex { .. } => (0..n)
            .map(|k| {
                let v = lane[k.min(n - k)].complex();
                let both = if 2 * k == n || k == 0 { Complex64::new(v.re, 0.0) } else { v };
                if 2 * k > n { both.conj() } else { both }
            })
            .collect(),
    };
    let sign = match kind {
        FftKind::Forward | FftKind::Real => -1.0,
        FftKind::Inverse | FftKind::HalfComplex { .. } => 1.0,
    };
    let roots: Vec<Complex64> =
        (0..n).map(|j| Complex64::from_polar(1.0, sign * TAU * j as f64 / n as f64)).collect();
    (0..size)
        .map(|k| {
            let terms = spectrum.iter().enumerate().map(|(j, v)| v * roots[j * k % n]);
            let sum: Complex64 = terms.sum();
            match kind {
                FftKind::HalfComplex { .. } => Number::Float(sum.re),
                FftKind::Forward | FftKind::Inverse | FftKind::Real => Number::Complex(sum),
            }
        })
        .collect()
}
