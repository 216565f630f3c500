//! Fourier transforms of several axes and of Hermitian signals, convolutions of vectors, windows.

use cupola_core::{Array, DType, Result, ops};
use ops::FftNorm::{Backward, Ortho};

use super::{Function, any};
use crate::sample::{from, input, spread};

/// Floats that transforms widen to complex64.
fn narrow(dtype: DType) -> bool {
    matches!(dtype, DType::F32)
}

fn complex(dtype: DType) -> bool {
    dtype == DType::C64
}

pub(super) fn functions() -> Vec<Function> {
    let image = || [input([2, 4, 5])];
    let mut all = vec![
        Function::new("fftn", image(), |x| ops::fftn(&x[0], None, vec![0, 2], Ortho))
            .takes(complex),
        Function::new("ifftn", image(), |x| ops::ifftn(&x[0], None, vec![0, 1, 2], Backward))
            .takes(complex),
        Function::new("fft2", image(), |x| ops::fft2(&x[0], Some(&[3, 6]), vec![-2, -1], Backward))
            .takes(complex),
        Function::new("ifft2", image(), |x| ops::ifft2(&x[0], None, vec![-2, -1], Backward))
            .takes(complex),
        Function::new("irfft2", [input([2, 4, 3])], |x| {
            ops::irfft2(&x[0], None, vec![-2, -1], Backward)
        })
        .takes(complex),
        Function::new("hfft", [input([2, 5])], |x| ops::hfft(&x[0], None, -1, Backward))
            .takes(complex),
        Function::new("rfft2", image(), |x| ops::rfft2(&x[0], None, vec![-2, -1], Backward))
            .takes(narrow),
        Function::new("rfftn", image(), |x| ops::rfftn(&x[0], None, vec![0, 2], Ortho))
            .takes(narrow),
        Function::new("irfftn", image(), |x| ops::irfftn(&x[0], None, vec![0, 2], Backward))
            .takes(complex),
        Function::new("ihfft", [input([2, 8])], |x| ops::ihfft(&x[0], None, -1, Ortho))
            .takes(narrow),
        Function::new("stft", [input([2, 40])], |x| {
            let options = ops::StftOptions { hop_length: Some(4), ..Default::default() };
            ops::stft(&x[0], 8, Some(&ops::hanning(8)?), &options)
        })
        .takes(narrow),
        Function::new("istft", [input([2, 5, 9])], |x| {
            let options = ops::StftOptions { hop_length: Some(2), ..Default::default() };
            ops::istft(&x[0], None, Some(&ops::hamming(8)?), None, &options)
        })
        .takes(complex),
    ];
    all = all.into_iter().map(Function::smooth).collect();
    let modes = [
        ("full", ops::ConvolveMode::Full),
        ("same", ops::ConvolveMode::Same),
        ("valid", ops::ConvolveMode::Valid),
    ];
    all.extend(modes.map(|(case, mode)| {
        let body = move |x: &[Array]| -> Result<Array> { ops::convolve(&x[0], &x[1], mode) };
        let inputs = [input([9]), from([4], |i| spread(i + 5))];
        Function::new("convolve", inputs, body).case(case).smooth()
    }));
    all.extend([
        Function::new("fftshift", [input([4, 5])], |x| ops::fftshift(&x[0], vec![0, 1]))
            .takes(any)
            .smooth(),
        Function::new("ifftshift", [input([4, 5])], |x| ops::ifftshift(&x[0], 1))
            .takes(any)
            .smooth(),
        Function::new("hadamard_transform", [input([2, 12])], |x| {
            ops::hadamard_transform(&x[0], None)
        })
        .smooth(),
    ]);
    all
}
