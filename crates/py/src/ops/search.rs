//! Places and different values in what is sorted.

use cupola::ops::{self, Operand, Side};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::PyArray;
use crate::device::{On, evaluating, on};
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Count, Opd, give, keep_doubles};

#[doc = docs!(searchsorted)]
#[pyfunction]
#[pyo3(signature = (sorted_sequence, values, /, side = "left", sorter = None, *, stream = None))]
pub fn searchsorted(
    mut sorted_sequence: Arr,
    mut values: Arr,
    side: &str,
    sorter: Option<Arr>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let side = match side {
        "left" => Side::Left,
        "right" => Side::Right,
        other => {
            return Err(wrong_value(format!("searchsorted: side '{other}' is not left or right")));
        }
    };
    keep_doubles([&mut sorted_sequence, &mut values]);
    on(stream, || {
        let Some(order) = sorter else {
            return give(ops::searchsorted(&sorted_sequence, &values, side));
        };
        if order.shape() != sorted_sequence.shape() || !order.dtype().is_integer() {
            let (order, sequence) = (order.aval(), sorted_sequence.aval());
            return Err(wrong_value(format!("searchsorted: sorter {order} for {sequence}")));
        }
        let sorted = ops::take_along_axis(&sorted_sequence, &order, -1);
        give(sorted.and_then(|sorted| ops::searchsorted(&sorted, &values, side)))
    })
}

#[doc = docs!(unique)]
#[pyfunction]
#[pyo3(signature = (
    a, /, size = None, return_index = false, return_inverse = false, return_counts = false,
    fill_value = None, *, stream = None
))]
pub fn unique<'py>(
    py: Python<'py>,
    a: Arr,
    size: Option<Count>,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    fill_value: Option<Opd>,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyAny>> {
    let fill_value = fill_value.map(|v| v.beside(a.dtype())).transpose()?;
    // Without a size it is computed how many there are.
    let found = evaluating(py, stream, || {
        let fill = fill_value.as_ref().map(Operand::from);
        ops::unique(&a, size.map(|size| size.0), fill).map_err(raise)
    })?;
    let parts = [
        (true, found.values),
        (return_index, found.index),
        (return_inverse, found.inverse),
        (return_counts, found.counts),
    ];
    let mut wanted = parts.into_iter().filter(|(wanted, _)| *wanted).map(|(_, a)| PyArray::new(a));
    match wanted.next() {
        Some(one) if !(return_index || return_inverse || return_counts) => {
            Ok(Bound::new(py, one)?.into_any())
        }
        first => {
            Ok(PyTuple::new(py, first.into_iter().chain(wanted).collect::<Vec<_>>())?.into_any())
        }
    }
}
