//! What MLX has and is not here yet: each name is there and says so when it is called.

use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyModule, PyTuple};

/// Adds a function for each name, which raises `NotImplementedError`.
pub fn add(core: &Bound<'_, PyModule>, names: &[(&'static str, &'static str)]) -> PyResult<()> {
    for &(module, name) in names {
        let home = match module {
            "" => core.clone(),
            module => core.getattr(module)?.cast_into::<PyModule>()?,
        };
        // A class of that name stands for itself.
        if home.hasattr(name)? {
            continue;
        }
        let full = if module.is_empty() { name.to_owned() } else { format!("{module}.{name}") };
        let raise = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
            Err(PyNotImplementedError::new_err(format!(
                "cupola.core.{full} is not implemented yet"
            )))
        };
        let doc = c"Not there yet: raises `NotImplementedError`.";
        home.add(name, PyCFunction::new_closure(core.py(), None, Some(doc), raise)?)?;
    }
    Ok(())
}
