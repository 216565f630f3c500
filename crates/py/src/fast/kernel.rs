//! Kernels of one's own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cupola::kernel::{Kernel, Launch, Parameter};
use cupola::prim::{Batched, Held};
use cupola::{Array, Error, ops};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList};

use crate::array::PyArray;
use crate::device::{On, on};
use crate::dtype::Dtype;
use crate::error::{carried, raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::operand::Arr;
use crate::transform::custom::batch_of;
use crate::tree;

/// What a kernel was made as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Common,
    Metal,
    Cuda,
    Wgsl,
}

/// A kernel: call it with inputs, grid, threadgroup and outputs. `vjp`, `jvp` and `vmap` may be set, to another kernel
/// or to a function.
#[doc = docs!(fast::Kernel)]
#[pyclass(frozen, name = "Kernel", module = "cupola.core.fast")]
pub struct CustomKernel {
    kernel: Kernel,
    made: Made,
    text: String,
    /// Bytes that a block shares as an array without a length, in CUDA C++.
    shared: u32,
    rules: Mutex<Rules>,
}

#[derive(Default)]
pub struct Rules {
    vjp: Option<Py<PyAny>>,
    jvp: Option<Py<PyAny>>,
    vmap: Option<Py<PyAny>>,
}

impl Rules {
    fn each(&self) -> impl Iterator<Item = &Py<PyAny>> {
        [&self.vjp, &self.jvp, &self.vmap].into_iter().flatten()
    }

    /// Shows Python's garbage collector what `held` holds, if these are the rules of a call that a graph alone
    /// leads to.
    pub fn traverse(held: &Held, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(rules) = held.downcast_ref::<Rules>() else { return Ok(()) };
        // The graph, and each rule.
        if Arc::strong_count(held) != 1 + rules.each().count() {
            return Ok(());
        }
        rules.each().try_for_each(|rule| visit.call(rule))
    }
}

/// A rule of a derivative, of arrays.
type Rule = Arc<dyn Fn(&[Array], &[Array], &[Array]) -> cupola::Result<Vec<Array>> + Send + Sync>;

impl CustomKernel {
    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a rule, to a kernel or a function.
    fn set(
        &self,
        py: Python<'_>,
        name: &str,
        to: Option<Py<PyAny>>,
        of: impl FnOnce(&mut Rules) -> &mut Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let is_fit = |rule: &Py<PyAny>| {
            rule.cast_bound::<CustomKernel>(py).is_ok() || rule.bind(py).is_callable()
        };
        if let Some(found) = to.as_ref().filter(|rule| !is_fit(rule)) {
            let found = found.bind(py).get_type().name()?;
            return Err(wrong_type(format!("{name}: a kernel or a function, not a {found}")));
        }
        let _former = std::mem::replace(of(&mut self.rules()), to);
        Ok(())
    }

    /// Records a call; `launch` says what it gives.
    fn record(&self, py: Python<'_>, inputs: &[&Array], launch: &Launch) -> PyResult<Vec<Array>> {
        let mut kernel = self.kernel.clone();
        let rules = Arc::new({
            let rules = self.rules();
            let clone = |rule: &Option<Py<PyAny>>| rule.as_ref().map(|r| r.clone_ref(py));
            Rules { vjp: clone(&rules.vjp), jvp: clone(&rules.jvp), vmap: clone(&rules.vmap) }
        });
        if rules.vjp.is_some() {
            let rule = derivative(rules.clone(), launch, true);
            kernel = kernel.with_vjp(move |x, y, dy| rule(x, y, dy));
        }
        if rules.jvp.is_some() {
            let rule = derivative(rules.clone(), launch, false);
            kernel = kernel.with_jvp(move |x, y, dx| rule(x, y, dx));
        }
        if rules.vmap.is_some() {
            let (rules, launch) = (rules.clone(), launch.clone());
            kernel = kernel.with_vmap(move |x, size| {
                Python::attach(|py| over_a_batch(py, &rules, &launch, x, size)).map_err(carried)
            });
        }
        let kernel = kernel.holding(rules);
        let launch = match self.shared {
            0 => launch.clone(),
            bytes => {
                let bytes = Parameter::Integer(bytes.into());
                launch.clone().parameter(Parameter::SHARED_MEMORY, bytes)
            }
        };
        kernel.call(inputs, &launch).map_err(|error| self.told(error))
    }

    /// The exception of a call: of Metal's language only what is common to all can be run.
    fn told(&self, error: Error) -> PyErr {
        match &error {
            Error::Argument { detail, .. }
                if self.made == Made::Metal && detail.contains("line ") =>
            {
                PyRuntimeError::new_err(format!(
                    "metal_kernel: {}: there is no Metal back-end, and in the common language {detail}",
                    self.kernel.name()
                ))
            }
            _ => raise(error),
        }
    }
}

/// A rule from what `vjp` or `jvp` was set to: a kernel takes the arguments and then the changes, and gives what
/// has their shapes or the outputs'; a function takes lists.
fn derivative(rules: Arc<Rules>, launch: &Launch, back: bool) -> Rule {
    let launch = launch.clone();
    Arc::new(move |inputs, outputs, changes| {
        let Some(rule) = (if back { &rules.vjp } else { &rules.jvp }) else {
            return Ok(Vec::new());
        };
        Python::attach(|py| {
            if let Ok(other) = rule.cast_bound::<CustomKernel>(py) {
                let like = if back { inputs } else { outputs };
                let own = like.iter().fold(launch.without_outputs(), |launch, x| {
                    launch.output(x.aval().shape.clone(), x.dtype())
                });
                let all: Vec<&Array> = inputs.iter().chain(changes).collect();
                return other.get().record(py, &all, &own);
            }
            let list = |arrays: &[Array]| {
                PyList::new(py, arrays.iter().map(|a| PyArray::new(a.clone())).collect::<Vec<_>>())
            };
            let result = match back {
                true => rule.bind(py).call1((list(inputs)?, list(changes)?, list(outputs)?))?,
                false => rule.bind(py).call1((list(inputs)?, list(changes)?))?,
            };
            tree::arrays(&result)
        })
        .map_err(carried)
    })
}

/// The outputs over a batch, from what `vmap` was set to: a kernel takes each input with the batch before its axes, a
/// function takes lists of inputs and their axes, and gives those of the outputs.
fn over_a_batch(
    py: Python<'_>,
    rules: &Rules,
    launch: &Launch,
    inputs: &[Batched],
    size: usize,
) -> PyResult<Vec<Batched>> {
    let Some(rule) = &rules.vmap else { return Ok(Vec::new()) };
    if let Ok(other) = rule.cast_bound::<CustomKernel>(py) {
        let whole = |input: &Batched| match input.batched {
            true => Ok(input.array.clone()),
            false => {
                let sizes = [&[size], &input.array.aval().shape[..]].concat();
                ops::broadcast_to(&input.array, sizes)
            }
        };
        let inputs: Vec<Array> =
            inputs.iter().map(whole).collect::<Result<_, _>>().map_err(raise)?;
        let launch = launch.over(size).map_err(raise)?;
        let outputs = other.get().record(py, &inputs.iter().collect::<Vec<_>>(), &launch)?;
        return Ok(outputs.into_iter().map(|array| Batched { array, batched: true }).collect());
    }
    let arrays = PyList::new(py, inputs.iter().map(|i| PyArray::new(i.array.clone())))?;
    let axes = PyList::new(py, inputs.iter().map(|i| i.batched.then_some(0i32)))?;
    batch_of(&rule.bind(py).call1((arrays, axes))?)
}

/// What stands for a name of a template.
fn parameter(launch: Launch, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Launch> {
    if let Ok(dtype) = value.extract::<Dtype>() {
        return launch.dtype(name, dtype.0).map_err(raise);
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(launch.parameter(name, Parameter::Bool(value.extract()?)));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(launch.parameter(name, Parameter::Integer(value.extract()?)));
    }
    let found = value.get_type().name()?;
    Err(wrong_type(format!("template: '{name}' is a dtype, an int or a bool, not a {found}")))
}

#[pymethods]
impl CustomKernel {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.rules.try_lock() {
            Ok(rules) => rules.each().try_for_each(|rule| visit.call(rule)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let rules = std::mem::take(&mut *self.rules());
        drop(rules);
    }

    /// The name.
    #[getter]
    fn name(&self) -> &'static str {
        self.kernel.name()
    }

    /// The vector-Jacobian product: a kernel of the inputs and the cotangents that gives the inputs' cotangents,
    /// or `f(primals, cotangents, outputs)` of lists.
    #[getter]
    fn vjp(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.rules().vjp.as_ref().map(|rule| rule.clone_ref(py))
    }

    #[setter]
    fn set_vjp(&self, py: Python<'_>, to: Option<Py<PyAny>>) -> PyResult<()> {
        self.set(py, "vjp", to, |rules| &mut rules.vjp)
    }

    /// The Jacobian-vector product: a kernel of the inputs and their tangents that gives the outputs' tangents, or
    /// `f(primals, tangents)` of lists.
    #[getter]
    fn jvp(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.rules().jvp.as_ref().map(|rule| rule.clone_ref(py))
    }

    #[setter]
    fn set_jvp(&self, py: Python<'_>, to: Option<Py<PyAny>>) -> PyResult<()> {
        self.set(py, "jvp", to, |rules| &mut rules.jvp)
    }

    /// The kernel over a batch: a kernel of the inputs, each with the batch as its axis 0, over a grid whose third axis
    /// is as many times as long, that gives the outputs so; or `f(inputs, axes)` of lists that gives outputs and axes, as
    /// of `mx.custom_function`. Without it a batch calls the kernel for each of its elements.
    #[getter]
    fn vmap(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.rules().vmap.as_ref().map(|rule| rule.clone_ref(py))
    }

    #[setter]
    fn set_vmap(&self, py: Python<'_>, to: Option<Py<PyAny>>) -> PyResult<()> {
        self.set(py, "vmap", to, |rules| &mut rules.vmap)
    }

    /// Runs a thread for each place of the grid: a list of outputs.
    #[pyo3(signature = (
        *, inputs, grid, threadgroup, output_shapes, output_dtypes, template = None,
        init_value = None, verbose = false, stream = None
    ))]
    fn __call__(
        &self,
        py: Python<'_>,
        inputs: Vec<Arr>,
        grid: (i64, i64, i64),
        threadgroup: (i64, i64, i64),
        output_shapes: Vec<Vec<usize>>,
        output_dtypes: Vec<Dtype>,
        template: Option<Vec<(String, Bound<'_, PyAny>)>>,
        init_value: Option<f64>,
        verbose: bool,
        stream: Option<On>,
    ) -> PyResult<Vec<PyArray>> {
        if output_shapes.len() != output_dtypes.len() {
            return Err(wrong_value(format!(
                "{}: there are {} output_shapes and {} output_dtypes",
                self.kernel.name(),
                output_shapes.len(),
                output_dtypes.len()
            )));
        }
        let threads = |what: &str, (x, y, z): (i64, i64, i64)| {
            let along = |count| u32::try_from(count);
            let (Ok(x), Ok(y), Ok(z)) = (along(x), along(y), along(z)) else {
                let name = self.kernel.name();
                return Err(wrong_value(format!(
                    "{name}: a {what} of ({x}, {y}, {z}) threads: 1 to {} along each axis",
                    u32::MAX
                )));
            };
            Ok([x, y, z])
        };
        let mut launch = Launch::new(threads("grid", grid)?, threads("threadgroup", threadgroup)?);
        for (shape, dtype) in output_shapes.into_iter().zip(output_dtypes) {
            launch = launch.output(shape, dtype.0);
        }
        for (name, value) in template.unwrap_or_default() {
            launch = parameter(launch, &name, &value)?;
        }
        if let Some(value) = init_value {
            launch = launch.init(value);
        }
        if verbose {
            let text = format!("Kernel {}:\n{}", self.kernel.name(), self.text);
            py.import("builtins")?.getattr("print")?.call1((text,))?;
        }
        let inputs: Vec<&Array> = inputs.iter().map(|x| &**x).collect();
        let outputs = on(stream, || self.record(py, &inputs, &launch))?;
        Ok(outputs.into_iter().map(PyArray::new).collect())
    }
}

/// What makes a kernel.
struct Recipe<'a> {
    name: &'a str,
    inputs: Vec<String>,
    outputs: Vec<String>,
    source: &'a str,
    header: &'a str,
    contiguous: bool,
    atomic: bool,
    shared: u32,
}

fn make(recipe: Recipe<'_>, made: Made) -> PyResult<CustomKernel> {
    let Recipe { name, inputs, outputs, source, header, contiguous, atomic, shared } = recipe;
    let kernel = match made {
        Made::Common | Made::Metal => Kernel::new(name, inputs, outputs, source),
        Made::Cuda => Kernel::empty(name, inputs, outputs).map(|kernel| kernel.cuda(source)),
        Made::Wgsl => Kernel::empty(name, inputs, outputs).map(|kernel| kernel.wgsl(source)),
    };
    let kernel = kernel.map_err(raise)?.header(header);
    let kernel = kernel.takes_strides(!contiguous).atomic_outputs(atomic);
    let text = format!("{header}{}{source}", if header.is_empty() { "" } else { "\n" });
    Ok(CustomKernel { kernel, made, text, shared, rules: Mutex::default() })
}

/// A kernel of one's own in the common language, which every device runs: the body of what each thread does, in C's
/// manner. Inputs and outputs are arrays of those names; `docs/kernels.md` describes the language.
///
/// Errors:
/// Where a name is not one of C's or is there twice. A call is an error where the source is not of the language, with
/// its line.
#[doc = docs!(fast::kernel)]
#[pyfunction]
#[pyo3(signature = (
    name, input_names, output_names, source, header = "", ensure_row_contiguous = true, atomic_outputs = false
))]
pub fn kernel(
    name: &str,
    input_names: Vec<String>,
    output_names: Vec<String>,
    source: &str,
    header: &str,
    ensure_row_contiguous: bool,
    atomic_outputs: bool,
) -> PyResult<CustomKernel> {
    let (inputs, outputs) = (input_names, output_names);
    let (contiguous, atomic, shared) = (ensure_row_contiguous, atomic_outputs, 0);
    make(Recipe { name, inputs, outputs, source, header, contiguous, atomic, shared }, Made::Common)
}

/// A kernel of one's own in Metal's language, as far as it is the common language of `fast.kernel`: then every device
/// runs it. It can be made everywhere, so that modules import; a call of one that is more is a `RuntimeError`.
/// `compile_options` says how freely floats may be computed, `{"math_mode": "safe"}`, `"relaxed"` or `"fast"`: they are
/// computed safely, which the others allow, too.
#[doc = docs!(fast::metal_kernel)]
#[pyfunction]
#[pyo3(signature = (
    name, input_names, output_names, source, header = "", ensure_row_contiguous = true, atomic_outputs = false,
    compile_options = None
))]
pub fn metal_kernel(
    name: &str,
    input_names: Vec<String>,
    output_names: Vec<String>,
    source: &str,
    header: &str,
    ensure_row_contiguous: bool,
    atomic_outputs: bool,
    compile_options: Option<&Bound<'_, PyAny>>,
) -> PyResult<CustomKernel> {
    compile_options.map_or(Ok(()), checked)?;
    let (inputs, outputs) = (input_names, output_names);
    let (contiguous, atomic, shared) = (ensure_row_contiguous, atomic_outputs, 0);
    make(Recipe { name, inputs, outputs, source, header, contiguous, atomic, shared }, Made::Metal)
}

/// Looks at Metal's options, which allow what is done without them.
fn checked(options: &Bound<'_, PyAny>) -> PyResult<()> {
    let wrong = |text: String| wrong_value(format!("metal_kernel: compile_options: {text}"));
    let Ok(options) = options.cast::<PyDict>() else {
        return Err(wrong(format!("a dict, not a {}", options.get_type().name()?)));
    };
    for (option, value) in options {
        if option.extract::<&str>().ok() != Some("math_mode") {
            return Err(wrong(format!("no option {}; there is 'math_mode'", option.repr()?)));
        }
        let mode = value.extract::<&str>();
        if !mode.is_ok_and(|mode| ["safe", "relaxed", "fast"].contains(&mode)) {
            let found = value.repr()?;
            return Err(wrong(format!("math_mode {found} is not 'safe', 'relaxed' or 'fast'")));
        }
    }
    Ok(())
}

/// A kernel of one's own in CUDA C++, which CUDA's devices run: inputs and outputs are pointers of those names.
/// `shared_memory` is how many bytes a block shares as `extern __shared__ float shared[];`.
#[doc = docs!(fast::cuda_kernel)]
#[pyfunction]
#[pyo3(signature = (
    name, input_names, output_names, source, header = "", ensure_row_contiguous = true, shared_memory = 0
))]
pub fn cuda_kernel(
    name: &str,
    input_names: Vec<String>,
    output_names: Vec<String>,
    source: &str,
    header: &str,
    ensure_row_contiguous: bool,
    shared_memory: i64,
) -> PyResult<CustomKernel> {
    let shared = u32::try_from(shared_memory).map_err(|_| {
        wrong_value(format!("cuda_kernel: shared_memory {shared_memory} is not in 0..2³²"))
    })?;
    let (inputs, outputs) = (input_names, output_names);
    let (contiguous, atomic) = (ensure_row_contiguous, false);
    make(Recipe { name, inputs, outputs, source, header, contiguous, atomic, shared }, Made::Cuda)
}

/// A kernel of one's own in WGSL, which devices through wgpu run: inputs and outputs are arrays of those names.
#[doc = docs!(fast::wgsl_kernel)]
#[pyfunction]
#[pyo3(signature = (
    name, input_names, output_names, source, header = "", ensure_row_contiguous = true, atomic_outputs = false
))]
pub fn wgsl_kernel(
    name: &str,
    input_names: Vec<String>,
    output_names: Vec<String>,
    source: &str,
    header: &str,
    ensure_row_contiguous: bool,
    atomic_outputs: bool,
) -> PyResult<CustomKernel> {
    let (inputs, outputs) = (input_names, output_names);
    let (contiguous, atomic, shared) = (ensure_row_contiguous, atomic_outputs, 0);
    make(Recipe { name, inputs, outputs, source, header, contiguous, atomic, shared }, Made::Wgsl)
}
