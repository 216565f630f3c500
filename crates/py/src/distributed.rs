//! `cupola.core.distributed`: the group of this process alone. There is no other one, so that
//! every collective operation gives back what it is given.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::device::On;
use crate::dtype::Dtype;
use crate::error::wrong_value;
use crate::generated::docs;
use crate::operand::{Arr, ShapeArg};

const BACKENDS: [&str; 5] = ["any", "mpi", "nccl", "jaccl", "ring"];

/// Processes that work together: this one alone.
#[doc = docs!(distributed::Group)]
#[pyclass(frozen, module = "cupola.core.distributed")]
pub struct Group;

#[pymethods]
impl Group {
    /// The number of this process in the group.
    fn rank(&self) -> usize {
        0
    }

    /// How many processes there are.
    fn size(&self) -> usize {
        1
    }

    /// The group of the processes that give the same color; one process cannot be divided.
    #[pyo3(signature = (color, key = -1), text_signature = "($self, color, key=-1)")]
    fn split(&self, color: i64, key: i64) -> PyResult<Group> {
        Err(PyRuntimeError::new_err(format!(
            "split: the group of one process cannot be divided (color {color}, key {key})"
        )))
    }
}

/// Whether several processes can work together: not yet, by no backend.
#[doc = docs!(distributed::is_available)]
#[pyfunction]
#[pyo3(signature = (backend = "any"))]
pub fn is_available(backend: &str) -> bool {
    let _ = backend;
    false
}

/// The group of all processes that were started together: this one alone, or an error with
/// `strict`.
#[doc = docs!(distributed::init)]
#[pyfunction]
#[pyo3(signature = (strict = false, backend = "any", *, all_gather_factory = None))]
pub fn init(
    strict: bool,
    backend: &str,
    all_gather_factory: Option<&Bound<'_, PyAny>>,
) -> PyResult<Group> {
    let _ = all_gather_factory;
    if !BACKENDS.contains(&backend) {
        return Err(wrong_value(format!("init: backend '{backend}' is none of {BACKENDS:?}")));
    }
    match strict {
        true => Err(PyRuntimeError::new_err(format!("init: backend '{backend}' is not there"))),
        false => Ok(Group),
    }
}

/// Functions of the arrays that the processes of a group hold.
macro_rules! collective {
    ($($name:ident)*) => {$(
        #[doc = docs!(distributed::$name)]
        #[pyfunction]
        #[pyo3(signature = (x, *, group = None, stream = None))]
        pub fn $name(x: Arr, group: Option<&Group>, stream: Option<On>) -> PyArray {
            let _ = (group, stream);
            PyArray::new(x.into_array())
        }
    )*};
}

collective! { all_sum all_max all_min all_gather sum_scatter }

/// Sends an array to another process of the group, of which there is none.
#[doc = docs!(distributed::send)]
#[pyfunction]
#[pyo3(signature = (x, dst, *, group = None, stream = None))]
pub fn send(x: Arr, dst: i64, group: Option<&Group>, stream: Option<On>) -> PyResult<PyArray> {
    let _ = (x, group, stream);
    Err(wrong_value(format!("send: the group of one process has no other (dst {dst})")))
}

/// Receives an array from another process of the group, of which there is none.
#[doc = docs!(distributed::recv)]
#[pyfunction]
#[pyo3(signature = (shape, dtype, src, *, group = None, stream = None))]
pub fn recv(
    shape: ShapeArg,
    dtype: Dtype,
    src: i64,
    group: Option<&Group>,
    stream: Option<On>,
) -> PyResult<PyArray> {
    let _ = (shape, dtype, group, stream);
    Err(wrong_value(format!("recv: the group of one process has no other (src {src})")))
}

/// Receives an array like `x` from another process of the group, of which there is none.
#[doc = docs!(distributed::recv_like)]
#[pyfunction]
#[pyo3(signature = (x, src, *, group = None, stream = None))]
pub fn recv_like(x: Arr, src: i64, group: Option<&Group>, stream: Option<On>) -> PyResult<PyArray> {
    let _ = (x, group, stream);
    Err(wrong_value(format!("recv_like: the group of one process has no other (src {src})")))
}
