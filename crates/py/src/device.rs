//! Devices and streams, and where the next operations are recorded.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Mutex;
use std::thread::ThreadId;

use cupola::backend::{backend, best_device, devices_of};
use cupola::{Device, DeviceKind, Stream};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyTuple};

use crate::error::{raise, wrong_type, wrong_value};
use crate::generated::docs;

/// A kind of device. `gpu` is the best GPU that is there, whichever kind it is of.
#[doc = docs!(DeviceType)]
#[pyclass(frozen, eq, hash, name = "DeviceType", module = "cupola.core", from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceType(Option<DeviceKind>);

impl DeviceType {
    const GPU: DeviceType = DeviceType(None);

    /// Adds every type to the module and to its class.
    pub fn add_to(m: &Bound<'_, PyModule>) -> PyResult<()> {
        let class = m.py().get_type::<DeviceType>();
        let kinds = DeviceKind::ALL.iter().map(|&kind| DeviceType(Some(kind)));
        for kind in kinds.chain([DeviceType::GPU]) {
            let name = kind.name();
            let kind = Bound::new(m.py(), kind)?;
            class.setattr(name, &kind)?;
            m.add(name, kind)?;
        }
        Ok(())
    }

    fn name(self) -> &'static str {
        self.0.map_or("gpu", DeviceKind::name)
    }

    /// The kind that is meant; `None` for `gpu` where there is none.
    fn kind(self) -> Option<DeviceKind> {
        let is_gpu = |kind: &DeviceKind| *kind != Device::CPU.kind;
        let any = || {
            let mut gpus = DeviceKind::ALL.iter().rev().copied().filter(is_gpu);
            gpus.find(|&kind| !devices_of(kind).is_empty())
        };
        self.0.or_else(|| Some(best_device().kind).filter(is_gpu)).or_else(any)
    }

    fn count(self) -> usize {
        self.kind().map_or(0, |kind| devices_of(kind).len())
    }
}

#[pymethods]
impl DeviceType {
    fn __repr__(&self) -> String {
        format!("DeviceType.{}", self.name())
    }

    /// The class has it under its name.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let getattr = py.import("builtins")?.getattr("getattr")?;
        Ok((getattr, (slf.get_type(), slf.get().name()).into_pyobject(py)?))
    }
}

/// A device: its type and its number among them.
#[doc = docs!(Device)]
#[pyclass(frozen, name = "Device", module = "cupola.core", skip_from_py_object)]
#[derive(Clone, Copy)]
pub struct PyDevice {
    kind: DeviceType,
    index: u16,
}

impl PyDevice {
    /// How Python names a device: the best GPU is `gpu`.
    pub fn of(device: Device) -> Self {
        let is_best_gpu = device != Device::CPU && best_device().kind == device.kind;
        let kind = Some(device.kind).filter(|_| !is_best_gpu);
        PyDevice { kind: DeviceType(kind), index: device.index }
    }

    /// The device, if it is there.
    pub fn find(self) -> PyResult<Device> {
        let absent = || {
            PyValueError::new_err(format!("there is no device {}:{}", self.kind.name(), self.index))
        };
        let kind = self.kind.kind().ok_or_else(absent)?;
        let device = Device { kind, index: self.index };
        backend(device).map_err(|_| absent())?;
        Ok(device)
    }
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (r#type, index = 0))]
    fn new(r#type: DeviceType, index: u16) -> Self {
        PyDevice { kind: r#type, index }
    }

    /// The type of the device.
    #[getter]
    fn r#type(&self) -> DeviceType {
        self.kind
    }

    /// The number of the device among those of its type.
    #[getter]
    fn index(&self) -> u16 {
        self.index
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = device_of(other) else { return false };
        self.index == other.index && self.kind.kind() == other.kind.kind()
    }

    fn __hash__(&self) -> u64 {
        self.kind.kind().map_or(9, |k| k as u64) << 16 | u64::from(self.index)
    }

    fn __repr__(&self) -> String {
        format!("Device({}, {})", self.kind.name(), self.index)
    }
}

/// A queue of work on a device.
#[doc = docs!(Stream)]
#[pyclass(frozen, eq, hash, name = "Stream", module = "cupola.core", skip_from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyStream(pub Stream);

#[pymethods]
impl PyStream {
    /// The device of the stream.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.0.device)
    }

    /// The number of the stream among those of its device.
    #[getter]
    fn index(&self) -> u16 {
        self.0.index
    }

    /// What `new_stream` was told; 0 for the first stream of a device.
    #[getter]
    fn priority(&self) -> i16 {
        self.0.priority()
    }

    fn __repr__(&self) -> String {
        format!("Stream({}, {})", self.device().__repr__(), self.0.index)
    }
}

fn device_of(object: &Bound<'_, PyAny>) -> PyResult<PyDevice> {
    if let Ok(device) = object.cast::<PyDevice>() {
        return Ok(*device.get());
    }
    // `cuda` is a submodule as in MLX, and says which device is meant as the others do.
    if let Ok(module) = object.cast::<PyModule>()
        && let Some(name) = module.name()?.to_str()?.strip_prefix("cupola.core.")
        && let Some(&kind) = DeviceKind::ALL.iter().find(|kind| kind.name() == name)
    {
        return Ok(PyDevice { kind: DeviceType(Some(kind)), index: 0 });
    }
    match object.extract::<DeviceType>() {
        Ok(kind) => Ok(PyDevice { kind, index: 0 }),
        Err(_) => Err(wrong_type("a Device or a DeviceType is expected")),
    }
}

/// A device, or its type.
pub struct DeviceArg(PyDevice);

impl DeviceArg {
    /// The device, if it is there.
    pub fn find(self) -> PyResult<Device> {
        self.0.find()
    }
}

impl<'py> FromPyObject<'_, 'py> for DeviceArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        device_of(&object).map(DeviceArg)
    }
}

/// Where an operation is recorded: a stream, a device, or the default for `None`.
#[derive(Clone, Copy)]
pub struct On(Option<Stream>);

impl On {
    /// The default stream of a device.
    pub fn of(device: Device) -> Self {
        On(Some(default_of(device)))
    }
}

impl<'py> FromPyObject<'_, 'py> for On {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(On(None));
        }
        if let Ok(stream) = object.cast::<PyStream>() {
            return Ok(On(Some(stream.get().0)));
        }
        if let Ok(stream) = object.cast::<ThreadLocalStream>() {
            return Ok(On(Some(stream.get().own().map_err(raise)?)));
        }
        match device_of(&object) {
            Ok(device) => Ok(On::of(device.find()?)),
            Err(_) => Err(wrong_type(format!(
                "stream must be a Stream, a Device, a DeviceType or None, not {}",
                object.get_type().name()?
            ))),
        }
    }
}

/// Runs `f` with its operations recorded where `stream` says.
#[inline]
pub fn on<R>(stream: Option<On>, f: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    match stream {
        Some(On(Some(stream))) => cupola::device::with_stream(stream, f),
        _ => f(),
    }
}

/// As [`on`] for what evaluates arrays, since its shape depends on values: other threads of Python run meanwhile.
pub fn evaluating<R: Send>(
    py: Python<'_>,
    stream: Option<On>,
    f: impl FnOnce() -> PyResult<R> + Send,
) -> PyResult<R> {
    py.detach(|| on(stream, f))
}

/// The streams that were made the defaults of their devices.
static DEFAULTS: Mutex<Option<HashMap<Device, u16>>> = Mutex::new(None);

/// Where the operations of this thread are recorded that name `device`: on the stream whose context they are
/// in, if it is one of the device, and else on its default.
fn default_of(device: Device) -> Stream {
    let current = cupola::device::default_stream();
    if current.device == device { current } else { made_default(device) }
}

/// What was made the default of a device.
fn made_default(device: Device) -> Stream {
    let guard = DEFAULTS.lock().unwrap_or_else(|e| e.into_inner());
    let index = guard.as_ref().and_then(|map| map.get(&device)).copied().unwrap_or(0);
    Stream { device, index }
}

/// The device that operations are recorded on where nothing else is said.
#[doc = docs!(default_device)]
#[pyfunction]
pub fn default_device() -> PyDevice {
    PyDevice::of(cupola::device::default_stream().device)
}

/// Makes a device the one that operations are recorded on.
#[doc = docs!(set_default_device)]
#[pyfunction]
pub fn set_default_device(device: DeviceArg) -> PyResult<()> {
    if device.0.kind == DeviceType::GPU && !is_available(DeviceArg(device.0)) {
        let there = "there is none; what imitates one is set by its own name, as mx.wgpu";
        return Err(wrong_value(format!("set_default_device: gpu: {there}")));
    }
    cupola::device::set_default_stream(made_default(device.find()?));
    Ok(())
}

/// The stream that a device's operations are recorded on.
#[doc = docs!(default_stream)]
#[pyfunction]
pub fn default_stream(device: DeviceArg) -> PyResult<PyStream> {
    Ok(PyStream(default_of(device.find()?)))
}

/// Makes a stream the default of its device.
#[doc = docs!(set_default_stream)]
#[pyfunction]
pub fn set_default_stream(stream: &PyStream) {
    let stream = stream.0;
    DEFAULTS
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .get_or_insert_default()
        .insert(stream.device, stream.index);
    if cupola::device::default_stream().device == stream.device {
        cupola::device::set_default_stream(stream);
    }
}

/// A new stream of a device. Work that two streams were given goes on at once on the CPU and on CUDA devices;
/// of that, a CUDA device prefers the one of lower `priority` (MLX has none): 0 or a few below, others count as the
/// nearest of these.
#[doc = docs!(new_stream)]
#[pyfunction]
#[pyo3(signature = (device, *, priority = Priority(0)), text_signature = "(device, *, priority=0)")]
pub fn new_stream(device: DeviceArg, priority: Priority) -> PyResult<PyStream> {
    Stream::another(device.find()?, priority.0).map(PyStream).map_err(raise)
}

/// A priority. What is beyond those that there are counts as the nearest of them.
pub struct Priority(i16);

impl<'py> FromPyObject<'_, 'py> for Priority {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<i16>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                Ok(Priority(if object.lt(0)? { i16::MIN } else { i16::MAX }))
            }
            found => found.map(Priority),
        }
    }
}

/// A stream of a device that is another one in every thread; it stands wherever a stream or device may.
#[doc = docs!(ThreadLocalStream)]
#[pyclass(frozen, name = "ThreadLocalStream", module = "cupola.core")]
pub struct ThreadLocalStream {
    device: Device,
    streams: Mutex<HashMap<ThreadId, Stream>>,
}

impl ThreadLocalStream {
    /// The stream of this thread.
    fn own(&self) -> cupola::Result<Stream> {
        let mut streams = self.streams.lock().unwrap_or_else(|e| e.into_inner());
        match streams.entry(std::thread::current().id()) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(place) => Ok(*place.insert(Stream::another(self.device, 0)?)),
        }
    }
}

#[pymethods]
impl ThreadLocalStream {
    /// The device of the streams.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.device)
    }

    fn __repr__(&self) -> String {
        format!("ThreadLocalStream({})", self.device().__repr__())
    }
}

/// A stream of a device that is another one in every thread.
#[doc = docs!(new_thread_local_stream)]
#[pyfunction]
pub fn new_thread_local_stream(device: DeviceArg) -> PyResult<ThreadLocalStream> {
    Ok(ThreadLocalStream { device: device.find()?, streams: Mutex::default() })
}

/// A new stream of a device. Any thread may record on any stream here, so it is one of `new_stream`.
#[doc = docs!(new_thread_unsafe_stream)]
#[pyfunction]
pub fn new_thread_unsafe_stream(device: DeviceArg) -> PyResult<PyStream> {
    new_stream(device, Priority(0))
}

/// Waits for the work of every device. Streams hold nothing that could be given back.
#[doc = docs!(clear_streams)]
#[pyfunction]
pub fn clear_streams(py: Python<'_>) -> PyResult<()> {
    let devices: Vec<Device> = cupola::backend::backends().map(|b| b.device()).collect();
    py.detach(|| {
        devices.into_iter().try_for_each(|device| cupola::synchronize(Stream { device, index: 0 }))
    })
    .map_err(raise)
}

/// A context in which operations are recorded on a stream or device.
#[doc = docs!(StreamContext)]
#[pyclass(name = "StreamContext", module = "cupola.core")]
pub struct StreamContext {
    stream: On,
    former: Option<Option<Stream>>,
}

#[pymethods]
impl StreamContext {
    #[new]
    fn new(s: On) -> Self {
        StreamContext { stream: s, former: None }
    }

    fn __enter__(&mut self) {
        if let On(Some(stream)) = self.stream {
            self.former = Some(cupola_core::binding::replace_thread_stream(Some(stream)));
        }
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
            cupola_core::binding::replace_thread_stream(former);
        }
    }
}

/// A context in which operations are recorded on a stream or device.
#[doc = docs!(stream)]
#[pyfunction]
pub fn stream(s: On) -> StreamContext {
    StreamContext::new(s)
}

/// The stream that was named, or the default one.
pub fn stream_of(stream: Option<On>) -> Stream {
    match stream {
        Some(On(Some(stream))) => stream,
        _ => cupola::device::default_stream(),
    }
}

/// Waits for all work that was given to a stream or device.
#[doc = docs!(synchronize)]
#[pyfunction]
#[pyo3(signature = (stream = None))]
pub fn synchronize(py: Python<'_>, stream: Option<On>) -> PyResult<()> {
    let stream = stream_of(stream);
    py.detach(|| cupola::synchronize(stream)).map_err(raise)
}

/// Whether a device is there. `gpu` is hardware: an adapter that only imitates one is there as `wgpu`.
#[doc = docs!(is_available)]
#[pyfunction]
pub fn is_available(device: DeviceArg) -> bool {
    let is_any = device.0.kind != DeviceType::GPU;
    if !is_any && !shows_a_gpu() {
        return false;
    }
    let found = device.find().ok().and_then(|device| backend(device).ok());
    found.is_some_and(|backend| is_any || backend.is_real())
}

/// Whether the system has a file for a GPU, of any maker: where there is none no driver has to be started to say so.
#[cfg(target_os = "linux")]
fn shows_a_gpu() -> bool {
    let mut files = "dri nvidiactl nvgpu nvhost-gpu kfd dxg mali0 kgsl-3d0 pvr_sync".split(' ');
    files.any(|file| std::path::Path::new("/dev").join(file).exists())
}

#[cfg(not(target_os = "linux"))]
fn shows_a_gpu() -> bool {
    true
}

/// How many devices of a type there are. Software that draws in a GPU's place is no `gpu`, but counts as `wgpu`.
#[doc = docs!(device_count)]
#[pyfunction]
pub fn device_count(device_type: DeviceType) -> usize {
    let gpu = DeviceArg(PyDevice { kind: device_type, index: 0 });
    if device_type == DeviceType::GPU && !is_available(gpu) { 0 } else { device_type.count() }
}

/// What is known of a device.
#[doc = docs!(device_info)]
#[pyfunction]
#[pyo3(signature = (d = None))]
pub fn device_info<'py>(py: Python<'py>, d: Option<DeviceArg>) -> PyResult<Bound<'py, PyDict>> {
    let device = match d {
        Some(device) => device.find()?,
        None => cupola::device::default_stream().device,
    };
    let found = backend(device).map_err(raise)?;
    let info = PyDict::new(py);
    info.set_item("architecture", std::env::consts::ARCH)?;
    info.set_item("device_name", found.description())?;
    info.set_item("device", device.to_string())?;
    Ok(info)
}
