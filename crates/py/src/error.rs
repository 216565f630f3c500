//! Errors on their way between Rust and Python.

use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;

use cupola::Error;
use cupola::fork::outside;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyIndexError, PyKeyboardInterrupt, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

/// The exception for `error`, of the type that MLX raises.
pub fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Foreign(cause) => match cause.downcast_ref::<PyErr>() {
            Some(own) => Python::attach(|py| own.clone_ref(py)),
            None => PyRuntimeError::new_err(text),
        },
        Error::Index { .. } => PyIndexError::new_err(text),
        // MLX refuses floats to functions of the bits of two numbers so, but not to that of one.
        Error::DType { op, .. }
            if op.starts_with("bitwise_") && op != "bitwise_invert" || op.ends_with("_shift") =>
        {
            PyRuntimeError::new_err(text)
        }
        // What the format has not is no fault of the arrays.
        Error::DType { op: "gguf", .. } | Error::Shape { op: "gguf", .. } => {
            PyRuntimeError::new_err(text)
        }
        Error::NoDerivative { op: "quantized_matmul", .. } => PyRuntimeError::new_err(text),
        Error::Shape { .. }
        | Error::DType { .. }
        | Error::Argument { .. }
        | Error::Traced(_)
        | Error::NoDerivative { .. }
        | Error::Node { .. } => PyValueError::new_err(text),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::Failed(cause) => match &*cause {
            Error::Foreign(_) => raise((*cause).clone()),
            _ => PyRuntimeError::new_err(text),
        },
        Error::Numeric { .. }
        | Error::Io { .. }
        | Error::Device(_)
        | Error::Unsupported { .. }
        | Error::User(_) => PyRuntimeError::new_err(text),
    }
}

/// An exception of a Python function that Rust called, on its way back to Python.
pub fn carried(error: PyErr) -> Error {
    Error::Foreign(Arc::new(error))
}

/// A function was given something that it does not take.
pub fn wrong_type(text: impl Into<String>) -> PyErr {
    PyTypeError::new_err(text.into())
}

/// A function was given a value that it does not take.
pub fn wrong_value(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}

/// Lets Ctrl-C stop an evaluation.
///
/// Python hears them on its main thread alone: another one does not wait for the interpreter.
pub fn watch_signals(py: Python<'_>) -> PyResult<()> {
    static MAIN: OnceLock<ThreadId> = OnceLock::new();
    let threading = py.import("threading")?;
    let (main, own) = (threading.getattr("main_thread")?, threading.getattr("current_thread")?);
    if main.call0()?.is(&own.call0()?) {
        let _ = MAIN.set(std::thread::current().id());
    }
    cupola::interrupt::ask(|| match MAIN.get() {
        Some(main) if *main != std::thread::current().id() => Ok(()),
        _ => outside(|| Python::attach(|py| py.check_signals())).map_err(carried),
    });
    Ok(())
}
