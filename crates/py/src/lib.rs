//! `cupola.core`: the Python module.

// A function of Python's has the arguments that MLX gives it.
#![allow(clippy::too_many_arguments)]

mod _amp;
mod _coreml;
mod _data;
mod _graph;
mod _linalg;
mod _nn;
mod _onnx;
mod _profiler;
mod _suite;
mod _train;
mod array;
mod cuda;
mod device;
mod distributed;
mod dtype;
mod error;
mod evaluate;
mod event;
mod explain;
mod export;
mod fast;
mod fft;
mod format;
// A name of MLX's has `unsafe` in it, which what registers it leaves out.
#[allow(clippy::unsafe_removed_from_name)]
mod generated;
mod host;
mod io;
mod linalg;
mod memory;
mod metal;
mod missing;
mod operand;
mod ops;
mod origin;
mod quantize;
mod random;
mod read;
mod transform;
mod tree;

use pyo3::prelude::*;
use pyo3::types::PyModule;

#[pymodule(name = "core")]
fn core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    error::watch_signals(m.py())?;
    cupola::backend::set_default_best();
    m.setattr("__doc__", generated::DOC)?;
    generated::register("", m)?;
    for dtype in cupola::DType::ALL {
        let name = if dtype == cupola::DType::Bool { "bool_" } else { dtype.name() };
        m.add(name, dtype::Dtype(dtype))?;
    }
    for (name, category) in dtype::DtypeCategory::ALL {
        m.add(name, category)?;
    }
    device::DeviceType::add_to(m)?;
    // The version of MLX whose names these are, for packages that ask.
    m.add("__version__", "0.32.4")?;
    m.add("pi", std::f64::consts::PI)?;
    m.add("e", std::f64::consts::E)?;
    m.add("euler_gamma", 0.577_215_664_901_532_9)?;
    m.add("inf", f64::INFINITY)?;
    m.add("nan", f64::NAN)?;
    m.add("newaxis", m.py().None())?;
    for &(name, doc) in generated::MODULES {
        let full = format!("cupola.core.{name}");
        let module = PyModule::new(m.py(), &full)?;
        module.setattr("__doc__", doc)?;
        generated::register(name, &module)?;
        m.add(name, &module)?;
        m.py().import("sys")?.getattr("modules")?.set_item(full, module)?;
    }
    m.getattr("random")?.setattr("state", Bound::new(m.py(), random::RandomState)?)?;
    missing::add(m, generated::MISSING)?;
    // What begins with an underscore is private; a list of names would say otherwise.
    for &(name, _) in generated::MODULES {
        m.getattr(name)?.delattr("__all__")?;
    }
    m.delattr("__all__")?;
    _profiler::start_from_env(m.py())
}
