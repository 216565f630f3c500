//! `cupola.core.fft`.

use cupola::ops::{self, FftNorm};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::wrong_value;
use crate::generated::docs;
use crate::operand::{Arr, Axis, SizesArg, give};

/// A mode of normalisation, by its name.
fn mode(name: &str) -> PyResult<FftNorm> {
    match name {
        "backward" => Ok(FftNorm::Backward),
        "ortho" => Ok(FftNorm::Ortho),
        "forward" => Ok(FftNorm::Forward),
        other => Err(wrong_value(format!("norm '{other}' is not backward, ortho or forward"))),
    }
}

macro_rules! along_one {
    ($($name:ident)*) => {$(
        #[doc = docs!(fft::$name)]
        #[pyfunction]
        #[pyo3(signature = (a, n = None, axis = -1, norm = "backward", stream = None))]
        pub fn $name(
            a: Arr,
            n: Option<isize>,
            axis: isize,
            norm: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let norm = mode(norm)?;
            on(stream, || give(ops::$name(&a, n, axis, norm)))
        }
    )*};
}

along_one! { fft ifft rfft irfft hfft ihfft }

macro_rules! along_two {
    ($($name:ident)*) => {$(
        #[doc = docs!(fft::$name)]
        #[pyfunction]
        #[pyo3(signature = (a, s = None, axes = Axis::last_two(), norm = "backward", stream = None))]
        pub fn $name(
            a: Arr,
            s: Option<SizesArg>,
            axes: Axis,
            norm: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let norm = mode(norm)?;
            on(stream, || give(ops::$name(&a, s.as_ref().map(|s| &s.0[..]), axes.0, norm)))
        }
    )*};
}

along_two! { fft2 ifft2 rfft2 irfft2 }

macro_rules! along_several {
    ($($name:ident)*) => {$(
        #[doc = docs!(fft::$name)]
        #[pyfunction]
        #[pyo3(signature = (a, s = None, axes = Axis::all(), norm = "backward", stream = None))]
        pub fn $name(
            a: Arr,
            s: Option<SizesArg>,
            axes: Axis,
            norm: &str,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let norm = mode(norm)?;
            on(stream, || give(ops::$name(&a, s.as_ref().map(|s| &s.0[..]), axes.0, norm)))
        }
    )*};
}

along_several! { fftn ifftn rfftn irfftn }
