//! `cupola.core._amp`: what `cupola.amp` is made of.

use cupola::amp::{self, Category, Tune};
use cupola_core::binding::{self, Former};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::dtype::Dtype;
use crate::error::{carried, raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, give};

/// The categories by the names that Python gives them.
const CATEGORIES: [(&str, Category); 4] = [
    ("lower", Category::Lower),
    ("float32", Category::Float32),
    ("widest", Category::Widest),
    ("unchanged", Category::Unchanged),
];

fn category(name: &str) -> PyResult<Category> {
    match CATEGORIES.iter().find(|(known, _)| *known == name) {
        Some((_, category)) => Ok(*category),
        None => {
            let known = CATEGORIES.map(|(known, _)| known).join(", ");
            Err(wrong_value(format!("[autocast] no category {name:?}; there are {known}")))
        }
    }
}

#[doc = docs!(_amp::Policy)]
#[pyclass(frozen, eq, skip_from_py_object, name = "Policy", module = "cupola.core._amp")]
#[derive(Clone, PartialEq, Eq)]
pub struct Policy(amp::Policy);

#[pymethods]
impl Policy {
    #[new]
    fn new(dtype: Dtype) -> PyResult<Self> {
        amp::Policy::new(dtype.0).map(Policy).map_err(raise)
    }

    /// What operations of the category `lower` compute in.
    #[getter]
    fn dtype(&self) -> Dtype {
        Dtype(self.0.dtype())
    }

    /// The names of the operations of a category.
    fn ops(&self, name: &str) -> PyResult<Vec<&'static str>> {
        Ok(self.0.ops(category(name)?).collect())
    }

    /// The policy with another category for an operation.
    fn changed(&self, op: &str, name: &str) -> PyResult<Policy> {
        self.0.clone().with(op, category(name)?).map(Policy).map_err(raise)
    }
}

#[doc = docs!(_amp::Scope)]
#[pyclass(name = "Scope", module = "cupola.core._amp")]
pub struct Scope {
    policy: Option<amp::Policy>,
    former: Option<Former>,
}

#[pymethods]
impl Scope {
    #[new]
    #[pyo3(signature = (policy = None))]
    fn new(policy: Option<PyRef<'_, Policy>>) -> Self {
        Scope { policy: policy.map(|policy| policy.0.clone()), former: None }
    }

    fn __enter__(&mut self) {
        self.former = Some(binding::replace_thread_policy(self.policy.clone()));
    }

    #[pyo3(signature = (exc_type = None, exc_value = None, traceback = None))]
    fn __exit__(
        &mut self,
        exc_type: Option<&Bound<'_, PyAny>>,
        exc_value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) {
        let _ = (exc_type, exc_value, traceback);
        if let Some(former) = self.former.take() {
            binding::restore_thread_policy(former);
        }
    }
}

#[doc = docs!(_amp::set_global_policy)]
#[pyfunction]
#[pyo3(signature = (policy = None))]
pub fn set_global_policy(policy: Option<PyRef<'_, Policy>>) {
    amp::set_global_policy(policy.map(|policy| policy.0.clone()));
}

#[doc = docs!(_amp::policy)]
#[pyfunction]
pub fn policy() -> Option<Policy> {
    amp::policy().map(Policy)
}

#[doc = docs!(_amp::global_policy)]
#[pyfunction]
pub fn global_policy() -> Option<Policy> {
    amp::global_policy().map(Policy)
}

#[doc = docs!(_amp::renew_traces)]
#[pyfunction]
pub fn renew_traces() {
    binding::renew_traces();
}

#[doc = docs!(_amp::operand)]
#[pyfunction]
pub fn operand(op: &str, x: Arr) -> PyResult<PyArray> {
    give(amp::operand(op, &x))
}

#[doc = docs!(_amp::result)]
#[pyfunction]
pub fn result(op: &str, x: Arr) -> PyResult<PyArray> {
    give(amp::result(op, &x))
}

/// What was measured, and the policy that is proposed for it.
#[pyclass(frozen, name = "_Tuned", module = "cupola.amp")]
pub struct Tuned(amp::Tuned);

#[pymethods]
impl Tuned {
    /// The policy.
    #[getter]
    fn policy(&self) -> Policy {
        Policy(self.0.policy.clone())
    }

    /// All of it, as JSON.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

#[doc = docs!(_amp::tune)]
#[pyfunction]
pub fn tune(
    step: &Bound<'_, PyAny>,
    reset: &Bound<'_, PyAny>,
    dtype: Dtype,
    steps: usize,
    tolerance: f64,
) -> PyResult<Tuned> {
    let own = Tune::new(dtype.0).steps(steps).tolerance(tolerance);
    let reset = || reset.call0().map(drop).map_err(carried);
    let step = || -> cupola::Result<Vec<cupola::Array>> {
        let found = step.call0().and_then(|found| found.extract::<Vec<Arr>>());
        Ok(found.map_err(carried)?.into_iter().map(Arr::into_array).collect())
    };
    own.run(reset, step).map(Tuned).map_err(raise)
}
