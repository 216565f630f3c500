//! `cupola.core._suite`: the samples of the op suite, for comparisons with other packages.

use cupola::prim::{Elementwise, KernelOp, Op};
use cupola::suite::Family;
use cupola::{Array, DType};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::array::PyArray;
use crate::dtype::Dtype;
use crate::error::{raise, wrong_value};
use crate::generated::docs;

/// What the function of `op`'s name takes beside arrays; `None` where no function of NumPy's or MLX's
/// is just that.
fn keywords<'py>(py: Python<'py>, op: &Op) -> PyResult<Option<Bound<'py, PyDict>>> {
    let keywords = PyDict::new(py);
    match op {
        Op::Elementwise(Elementwise::Cast(cast)) => keywords.set_item("dtype", Dtype(cast.to))?,
        Op::Elementwise(_) => {}
        Op::Reduce(reduce) => keywords.set_item("axis", reduce.axes.to_vec())?,
        Op::Kernel(KernelOp::ArgReduce(reduce)) => keywords.set_item("axis", reduce.axis)?,
        Op::Kernel(KernelOp::Sort(sort)) => keywords.set_item("axis", sort.axis)?,
        Op::Kernel(KernelOp::Scan(scan)) => {
            keywords.set_item("axis", scan.axis)?;
            keywords.set_item("reverse", scan.reverse)?;
            keywords.set_item("inclusive", !scan.exclusive)?;
        }
        Op::Input(_)
        | Op::Constant(_)
        | Op::Movement(_)
        | Op::Mark(_)
        | Op::Kernel(_)
        | Op::Composite(_)
        | Op::Call(_)
        | Op::Control(_)
        | Op::Custom(_) => return Ok(None),
    }
    Ok(Some(keywords))
}

/// The samples of a family whose primitive is a function of NumPy's or MLX's, in every dtype: the
/// sample's name, the function's, its keywords, its arguments, its result.
#[doc = docs!(_suite::samples)]
#[pyfunction]
pub fn samples<'py>(py: Python<'py>, family: &str) -> PyResult<Bound<'py, PyList>> {
    let known = Family::ALL.iter().find(|known| known.name() == family);
    let family = known.ok_or_else(|| wrong_value(format!("the suite has no family {family}")))?;
    let list = PyList::empty(py);
    for sample in family.samples() {
        for dtype in DType::ALL {
            let Some((op, inputs)) = sample.in_dtype(dtype) else { continue };
            let Some(keywords) = keywords(py, &op)? else { continue };
            let name = op.name();
            let inputs: Vec<Array> = inputs
                .iter()
                .map(|host| host.to_array())
                .collect::<Result<_, _>>()
                .map_err(raise)?;
            let operands: Vec<&Array> = inputs.iter().collect();
            let result = Array::apply(op, &operands).map_err(raise)?;
            let inputs: Vec<PyArray> = inputs.iter().cloned().map(PyArray::new).collect();
            list.append((sample.name.clone(), name, keywords, inputs, PyArray::new(result)))?;
        }
    }
    Ok(list)
}
