//! Running sums and their kin.

use cupola::ops::{self, ScanOptions};
use pyo3::prelude::*;

use super::cast;
use crate::array::PyArray;
use crate::device::{On, on};
use crate::dtype::Dtype;
use crate::generated::docs;
use crate::operand::{Arr, OneAxis, give};

macro_rules! scans {
    ($($name:ident)*) => {$(
        #[doc = docs!($name)]
        #[pyfunction]
        #[pyo3(signature = (
            a, /, axis = OneAxis::all(), *, reverse = false, inclusive = true, stream = None
        ), text_signature = "(a, /, axis=None, *, reverse=False, inclusive=True, stream=None)")]
        pub fn $name(
            a: Arr,
            axis: OneAxis,
            reverse: bool,
            inclusive: bool,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let options = ScanOptions { reverse, exclusive: !inclusive };
            on(stream, || give(ops::$name(&a, axis.0, options)))
        }

        #[pymethods]
        impl PyArray {
            #[doc = docs!(array::$name)]
            #[pyo3(signature = (
                axis = OneAxis::all(), *, reverse = false, inclusive = true, stream = None
            ), text_signature = "($self, axis=None, *, reverse=False, inclusive=True, stream=None)")]
            fn $name(
                &self,
                axis: OneAxis,
                reverse: bool,
                inclusive: bool,
                stream: Option<On>,
            ) -> PyResult<PyArray> {
                $name(self.get().into(), axis, reverse, inclusive, stream)
            }
        }
    )*};
}

scans! { cummax cummin logcumsumexp }

macro_rules! summing_scans {
    ($($name:ident)*) => {$(
        #[doc = docs!($name)]
        #[pyfunction]
        #[pyo3(signature = (
            a, /, axis = OneAxis::all(), *, reverse = false, inclusive = true, dtype = None,
            stream = None
        ), text_signature = "(a, /, axis=None, *, reverse=False, inclusive=True, dtype=None, stream=None)")]
        pub fn $name(
            a: Arr,
            axis: OneAxis,
            reverse: bool,
            inclusive: bool,
            dtype: Option<Dtype>,
            stream: Option<On>,
        ) -> PyResult<PyArray> {
            let options = ScanOptions { reverse, exclusive: !inclusive };
            on(stream, || give(ops::$name(&cast(&a, dtype)?, axis.0, options)))
        }

        #[pymethods]
        impl PyArray {
            #[doc = docs!(array::$name)]
            #[pyo3(signature = (
                axis = OneAxis::all(), *, reverse = false, inclusive = true, stream = None
            ), text_signature = "($self, axis=None, *, reverse=False, inclusive=True, stream=None)")]
            fn $name(
                &self,
                axis: OneAxis,
                reverse: bool,
                inclusive: bool,
                stream: Option<On>,
            ) -> PyResult<PyArray> {
                $name(self.get().into(), axis, reverse, inclusive, None, stream)
            }
        }
    )*};
}

summing_scans! { cumsum cumprod }
