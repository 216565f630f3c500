//! `load`, `save` and what goes with them. A file is a path or an object that reads or writes.

use std::collections::BTreeMap;
use std::io::{Cursor, ErrorKind, Write};

use cupola::backend::reserve;
use cupola::io::{Replacement, gguf, npy, safetensors, write_whole};
use cupola::{Array, on_one_line};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple};

use crate::array::PyArray;
use crate::device::{On, on};
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::host::python_bytes;
use crate::operand::Arr;

/// The name of a file.
fn named(file: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = file.py().import("os")?.call_method1("fspath", (file,));
    name.and_then(|name| name.extract()).map_err(|_| {
        let name = file.get_type();
        wrong_value(format!("a file is a path or an object that reads or writes, not {name}"))
    })
}

/// A path as text, with `extension` at its end; `None` for a file object.
fn path(file: &Bound<'_, PyAny>, extension: &str) -> PyResult<Option<String>> {
    if file.hasattr("read")? || file.hasattr("write")? {
        return Ok(None);
    }
    let path = named(file)?;
    match path.ends_with(extension) {
        true => Ok(Some(path)),
        false => Ok(Some(format!("{path}{extension}"))),
    }
}

fn put(file: &Bound<'_, PyAny>, path: Option<String>, content: &[u8]) -> PyResult<()> {
    let Some(path) = path else {
        file.call_method1("write", (python_bytes(file.py(), content)?,))?;
        return Ok(());
    };
    file.py().detach(|| write_whole(&path, content)).map_err(raise)
}

/// Writes one array in NumPy's format.
#[doc = docs!(save)]
#[pyfunction]
pub fn save(py: Python<'_>, file: &Bound<'_, PyAny>, arr: Arr) -> PyResult<()> {
    let content = py.detach(|| npy::write(&arr)).map_err(raise)?;
    put(file, path(file, ".npy")?, &content)
}

fn save_archive(
    file: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    compression: &str,
) -> PyResult<()> {
    let py = file.py();
    let mut named: Vec<(String, Arr)> = Vec::new();
    for (name, value) in kwargs.iter().flat_map(|k| k.iter()) {
        named.push((name.extract()?, value.extract()?));
    }
    for (index, value) in args.iter().enumerate() {
        let name = format!("arr_{index}");
        if named.iter().any(|(n, _)| *n == name) {
            return Err(wrong_value(format!(
                "[savez] Cannot use un-named variables and keyword {name}"
            )));
        }
        named.push((name, value.extract()?));
    }
    let zipfile = py.import("zipfile")?;
    let options = PyDict::new(py);
    options.set_item("mode", "w")?;
    options.set_item("compression", zipfile.getattr(compression)?)?;
    let new = path(file, ".npz")?.map(|path| py.detach(|| Replacement::new(path)));
    let new = new.transpose().map_err(raise)?;
    // What is no file, as a device, is written from front to back: an archive is not.
    let whole = match &new {
        Some(new) if !new.path().is_file() => Some(py.import("io")?.call_method0("BytesIO")?),
        _ => None,
    };
    let target = match (&whole, &new) {
        (Some(whole), _) => whole.clone(),
        (None, Some(new)) => new.path().into_pyobject(py)?.into_any(),
        (None, None) => file.clone(),
    };
    // What a file object of the caller raises is the caller's.
    let failed = |error: PyErr| match &new {
        Some(new) if error.is_instance_of::<PyOSError>(py) => {
            raise(cupola::Error::io(new.name(), format!("cannot be written: {error}")))
        }
        _ => error,
    };
    let archive = zipfile.getattr("ZipFile")?.call((target,), Some(&options)).map_err(failed)?;
    let written = named.iter().try_for_each(|(name, array)| {
        let content = py.detach(|| npy::write(array)).map_err(raise)?;
        let content = python_bytes(py, &content)?;
        let entry = (format!("{name}.npy"), content);
        archive.call_method1("writestr", entry).map(drop).map_err(failed)
    });
    let closed = archive.call_method0("close").map_err(failed);
    written?;
    closed?;
    let mut new = new;
    if let (Some(whole), Some(new)) = (whole, &mut new) {
        let content = whole.call_method0("getvalue")?.cast_into::<PyBytes>()?;
        let name = new.name().to_owned();
        let bytes = content.as_bytes();
        let done = py.detach(|| new.file().write_all(bytes));
        done.map_err(|e| raise(cupola::Error::io(name, format!("cannot be written: {e}"))))?;
    }
    new.map_or(Ok(()), |new| py.detach(|| new.keep())).map_err(raise)
}

/// Writes arrays, by position or by name, as an archive of files in NumPy's format.
#[doc = docs!(savez)]
#[pyfunction]
#[pyo3(signature = (file, *args, **kwargs))]
pub fn savez(
    file: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    save_archive(file, args, kwargs, "ZIP_STORED")
}

/// Writes arrays, by position or by name, as a compressed archive of files in NumPy's format.
#[doc = docs!(savez_compressed)]
#[pyfunction]
#[pyo3(signature = (file, *args, **kwargs))]
pub fn savez_compressed(
    file: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    save_archive(file, args, kwargs, "ZIP_DEFLATED")
}

/// Writes arrays under their names, with metadata, as safetensors.
#[doc = docs!(save_safetensors)]
#[pyfunction]
#[pyo3(signature = (file, arrays, metadata = None))]
pub fn save_safetensors(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    arrays: &Bound<'_, PyDict>,
    metadata: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let mut tensors: BTreeMap<String, Array> = BTreeMap::new();
    for (name, value) in arrays.iter() {
        tensors.insert(name.extract()?, value.extract::<Arr>()?.into_array());
    }
    let metadata: BTreeMap<String, String> = match metadata {
        None => BTreeMap::new(),
        Some(metadata) => metadata.extract().map_err(|_| {
            wrong_value(
                "[save_safetensors] Metadata must be a dictionary with string keys and values",
            )
        })?,
    };
    match path(file, ".safetensors")? {
        Some(path) => py.detach(|| safetensors::save(path, &tensors, &metadata)).map_err(raise),
        None => {
            let mut content = Vec::new();
            py.detach(|| safetensors::write(&mut content, "file", &tensors, &metadata))
                .map_err(raise)?;
            put(file, None, &content)
        }
    }
}

/// Writes arrays under their names, with metadata, as GGUF. What the metadata holds are arrays with at
/// most one axis, texts, and lists of texts.
#[doc = docs!(save_gguf)]
#[pyfunction]
#[pyo3(signature = (file, arrays, metadata = None))]
pub fn save_gguf(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    arrays: &Bound<'_, PyDict>,
    metadata: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let mut tensors = gguf::Tensors::new();
    for (name, value) in arrays.iter() {
        tensors.insert(name.extract()?, value.extract::<Arr>()?.into_array());
    }
    let mut settings = gguf::Metadata::new();
    for (name, value) in metadata.iter().flat_map(|metadata| metadata.iter()) {
        let name: String = name.extract()?;
        let value = to_setting(&name, &value)?;
        settings.insert(name, value);
    }
    match path(file, ".gguf")? {
        Some(path) => py.detach(|| gguf::save(path, &tensors, &settings)).map_err(raise),
        None => {
            let mut content = Vec::new();
            py.detach(|| gguf::write(&mut content, "file", &tensors, &settings)).map_err(raise)?;
            put(file, None, &content)
        }
    }
}

/// A setting of a GGUF file as Python has it.
fn setting(py: Python<'_>, value: gguf::Value) -> PyResult<Bound<'_, PyAny>> {
    match value {
        gguf::Value::Array(array) => Ok(PyArray::new(array).into_pyobject(py)?.into_any()),
        gguf::Value::Text(text) => Ok(PyString::new(py, &text).into_any()),
        gguf::Value::List(values) => {
            let values: Vec<_> =
                values.into_iter().map(|value| setting(py, value)).collect::<PyResult<_>>()?;
            Ok(PyList::new(py, values)?.into_any())
        }
    }
}

fn to_setting(name: &str, value: &Bound<'_, PyAny>) -> PyResult<gguf::Value> {
    if value.is_instance_of::<PyArray>() {
        return Ok(gguf::Value::Array(value.extract::<Arr>()?.into_array()));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(gguf::Value::Text(text));
    }
    let texts: Result<Vec<String>, _> = value.extract();
    let texts = texts.map_err(|_| {
        wrong_value(format!(
            "[save_gguf] the setting {} is no array, no string and no list of strings",
            on_one_line(name)
        ))
    })?;
    Ok(gguf::Value::List(texts.into_iter().map(gguf::Value::Text).collect()))
}

/// Reads a file: an array, or arrays by name, and with `return_metadata` the metadata, too.
#[doc = docs!(load)]
#[pyfunction]
#[pyo3(signature = (file, /, format = None, return_metadata = false, *, stream = None))]
pub fn load<'py>(
    py: Python<'py>,
    file: &Bound<'py, PyAny>,
    format: Option<String>,
    return_metadata: bool,
    stream: Option<On>,
) -> PyResult<Bound<'py, PyAny>> {
    let path = path(file, "")?;
    let name = match &path {
        Some(path) => path.clone(),
        None => match (file.getattr("name"), &format) {
            (Ok(name), _) => name.str()?.to_cow()?.into_owned(),
            (Err(_), Some(_)) => "file".to_owned(),
            (Err(error), None) => return Err(error),
        },
    };
    let format = match format {
        Some(format) => format,
        None => match name.rsplit_once('.') {
            Some((_, extension)) => extension.to_owned(),
            None => return Err(wrong_value("[load] Could not infer file format from extension")),
        },
    };
    if return_metadata && matches!(&*format, "npy" | "npz") {
        return Err(wrong_value(format!("[load] metadata not supported for format {format}")));
    }
    let content = || -> PyResult<PyBackedBytes> {
        let read = file.call_method0("read")?;
        match read.extract() {
            Ok(bytes) => Ok(bytes),
            // Whatever else holds bytes.
            Err(_) => Ok(PyMemoryView::from(&read)?.call_method0("tobytes")?.extract()?),
        }
    };
    on(stream, || match &*format {
        "npy" => {
            let array = match &path {
                Some(path) => py.detach(|| npy::load(path)),
                None => npy::read(&content()?, &name),
            };
            let array = array.map_err(raise)?;
            Ok(Bound::new(py, PyArray::new(array))?.into_any())
        }
        "npz" => load_archive(py, file, path.as_deref(), &name),
        "safetensors" => {
            let read = match &path {
                Some(path) => py.detach(|| safetensors::load(path)),
                None => {
                    let content = content()?;
                    let length = content.len() as u64;
                    py.detach(|| safetensors::read(&mut &content[..], &name, length))
                }
            };
            let (tensors, metadata) = read.map_err(raise)?;
            let arrays = PyDict::new(py);
            for (name, array) in tensors {
                arrays.set_item(name, PyArray::new(array))?;
            }
            match return_metadata {
                true => Ok((arrays, metadata).into_pyobject(py)?.into_any()),
                false => Ok(arrays.into_any()),
            }
        }
        "gguf" => {
            let read = match &path {
                Some(path) => {
                    cupola::file::open(path).map_err(|cause| unreadable(path, &cause))?;
                    py.detach(|| gguf::load(path))
                }
                None => {
                    let content = content()?;
                    let length = content.len() as u64;
                    py.detach(|| gguf::read(Cursor::new(&content[..]), &name, length))
                }
            };
            let (tensors, settings) = read.map_err(raise)?;
            let arrays = PyDict::new(py);
            for (name, array) in tensors {
                arrays.set_item(name, PyArray::new(array))?;
            }
            if !return_metadata {
                return Ok(arrays.into_any());
            }
            let metadata = PyDict::new(py);
            for (name, value) in settings {
                metadata.set_item(name, setting(py, value)?)?;
            }
            Ok((arrays, metadata).into_pyobject(py)?.into_any())
        }
        other => Err(wrong_value(format!("[load] Unknown file format {}", on_one_line(other)))),
    })
}

/// The error of a file that cannot be read: of its name, where there is none, as MLX has it for these formats alone.
fn unreadable(path: &str, cause: &std::io::Error) -> PyErr {
    let detail = format!("cannot be read: {cause}");
    match cause.kind() {
        ErrorKind::NotFound => wrong_value(on_one_line(&format!("{path}: {detail}"))),
        _ => raise(cupola::Error::io(path, detail)),
    }
}

fn load_archive<'py>(
    py: Python<'py>,
    file: &Bound<'py, PyAny>,
    path: Option<&str>,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let source = match path {
        Some(path) => path.into_pyobject(py)?.into_any(),
        None => file.clone(),
    };
    let failed = |error: PyErr| raise(cupola::Error::io(name, format!("cannot be read: {error}")));
    // Python would wait at a pipe for whoever writes to it.
    if let Some(path) = path {
        cupola::file::open(path).map_err(|cause| unreadable(path, &cause))?;
    }
    let archive = py.import("zipfile")?.call_method1("ZipFile", (source,)).map_err(failed)?;
    let arrays = PyDict::new(py);
    for entry in archive.call_method0("namelist")?.try_iter()? {
        let entry: String = entry?.extract()?;
        let own = entry.strip_suffix(".npy").unwrap_or(&entry);
        if arrays.contains(own)? {
            return Err(raise(cupola::Error::io(name, format!("the array {own} is there twice"))));
        }
        // What it says that it unpacks to.
        let size: usize =
            archive.call_method1("getinfo", (&entry,))?.getattr("file_size")?.extract()?;
        reserve::<u8>(size, &on_one_line(&entry)).map_err(raise)?;
        let content: PyBackedBytes =
            archive.call_method1("read", (&entry,)).map_err(failed)?.extract()?;
        let array = npy::read(&content, format!("{name}/{entry}")).map_err(raise)?;
        arrays.set_item(own, PyArray::new(array))?;
    }
    archive.call_method0("close").map_err(failed)?;
    Ok(arrays.into_any())
}
