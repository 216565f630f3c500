//! The methods of arrays whose arguments are not those of the function with its first one gone.

use cupola::ops;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::PyArray;
use crate::device::{DeviceArg, On, on};
use crate::operand::{Axis, give, spread};
use crate::ops::spread::{std, var};

#[pymethods]
impl PyArray {
    /// The array with other sizes, of which one may be −1.
    #[pyo3(signature = (*shape, stream = None))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>, stream: Option<On>) -> PyResult<PyArray> {
        let sizes = spread(shape)?;
        on(stream, || give(ops::reshape(&self.get(), &sizes[..])))
    }

    /// The array with its axes in another order: the opposite one if none is given.
    #[pyo3(signature = (*axes, stream = None))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>, stream: Option<On>) -> PyResult<PyArray> {
        let is_all = axes.is_empty() || axes.len() == 1 && axes.get_item(0)?.is_none();
        let axes = if is_all { None } else { Some(spread(axes)?) };
        on(stream, || match &axes {
            Some(axes) => give(ops::transpose(&self.get(), &axes[..])),
            None => give(ops::transpose(&self.get(), ())),
        })
    }

    /// The array on a device.
    #[pyo3(signature = (device, /, *, stream = None))]
    fn to_device(&self, device: DeviceArg, stream: Option<On>) -> PyResult<PyArray> {
        let (array, device) = (self.get(), device.find()?);
        if array.device() == device {
            return Ok(PyArray::new(array));
        }
        on(stream.or(Some(On::of(device))), || give(ops::depends(&array, &[])))
    }

    /// The array divided into parts along an axis.
    #[pyo3(signature = (indices_or_sections, axis = 0, *, stream = None))]
    fn split(
        &self,
        indices_or_sections: &Bound<'_, PyAny>,
        axis: isize,
        stream: Option<On>,
    ) -> PyResult<Vec<PyArray>> {
        crate::ops::shape::split(self.get().into(), indices_or_sections, axis, stream)
    }

    /// The variance; `correction` is another name of `ddof`.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, ddof = 0, *, correction = None, stream = None), text_signature = "($self, axis=None, keepdims=False, ddof=0, *, correction=None, stream=None)")]
    fn var(
        &self,
        axis: Axis,
        keepdims: bool,
        ddof: isize,
        correction: Option<isize>,
        stream: Option<On>,
    ) -> PyResult<PyArray> {
        var(self.get().into(), axis, keepdims, ddof, correction, stream)
    }

    /// The standard deviation; `correction` is another name of `ddof`.
    #[pyo3(signature = (axis = Axis::all(), keepdims = false, ddof = 0, *, correction = None, stream = None), text_signature = "($self, axis=None, keepdims=False, ddof=0, *, correction=None, stream=None)")]
    fn std(
        &self,
        axis: Axis,
        keepdims: bool,
        ddof: isize,
        correction: Option<isize>,
        stream: Option<On>,
    ) -> PyResult<PyArray> {
        std(self.get().into(), axis, keepdims, ddof, correction, stream)
    }
}
