//! `cupola.core`: the Python module.

// A function of Python's has the arguments that MLX gives it.
#![allow(clippy::too_many_arguments)]

mod array;
mod device;
mod dtype;
mod error;
mod evaluate;
mod format;
mod host;
mod memory;
mod operand;
mod read;
mod tree;

use pyo3::prelude::*;
use pyo3::types::PyModule;

#[pymodule(name = "core")]
fn core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    error::watch_signals();
    cupola::device::set_default_best();
    m.add_class::<array::PyArray>()?;
    m.add_class::<array::ArrayAt>()?;
    m.add_class::<array::ArrayIterator>()?;
    m.add_class::<dtype::Dtype>()?;
    m.add_class::<dtype::DtypeCategory>()?;
    m.add_class::<dtype::finfo>()?;
    m.add_class::<dtype::iinfo>()?;
    m.add_class::<device::DeviceType>()?;
    m.add_class::<device::PyDevice>()?;
    m.add_class::<device::PyStream>()?;
    m.add_class::<device::StreamContext>()?;
    m.add_class::<format::PrintOptions>()?;
    m.add_class::<format::PrintOptionsContext>()?;
    for dtype in cupola::DType::ALL {
        let name = if dtype == cupola::DType::Bool { "bool_" } else { dtype.name() };
        m.add(name, dtype::Dtype(dtype))?;
    }
    for (name, category) in dtype::DtypeCategory::ALL {
        m.add(name, category)?;
    }
    m.add("cpu", device::DeviceType::cpu)?;
    m.add("gpu", device::DeviceType::gpu)?;
    m.add("wgpu", device::DeviceType::wgpu)?;
    m.add("cuda", device::DeviceType::cuda)?;
    m.add("pi", std::f64::consts::PI)?;
    m.add("e", std::f64::consts::E)?;
    m.add("euler_gamma", 0.577_215_664_901_532_9)?;
    m.add("inf", f64::INFINITY)?;
    m.add("nan", f64::NAN)?;
    m.add("newaxis", m.py().None())?;
    macro_rules! functions {
        ($($function:path)*) => { $(m.add_function(wrap_pyfunction!($function, m)?)?;)* };
    }
    functions! {
        array::_restore dtype::issubdtype dtype::result_type dtype::can_cast dtype::isdtype
        device::default_device device::set_default_device device::default_stream
        device::set_default_stream device::new_stream device::stream device::synchronize
        device::is_available device::device_count device::device_info
        memory::get_active_memory memory::get_peak_memory memory::get_cache_memory
        memory::clear_cache format::get_printoptions format::set_printoptions format::printoptions
        evaluate::eval evaluate::async_eval
    }
    Ok(())
}
