//! `checkpoint` and `custom_function`.

use std::sync::{Arc, Mutex, PoisonError};

use cupola::prim::{Batched, Held};
use cupola::{Array, ops, transform};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyRecursionError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::vmap::axes_of;
use super::{Arguments, function};
use crate::error::{carried, raise, wrong_type, wrong_value};
use crate::generated::docs;
use crate::tree::{self, DEEPEST, Template};

/// What a function returned, with its arrays taken out: known once it was traced.
type Returned = Arc<Mutex<Option<Template>>>;

fn call_traced(
    fun: &Py<PyAny>,
    arguments: &Arguments,
    tracers: &[Array],
    returned: &Returned,
) -> cupola::Result<Vec<Array>> {
    Python::attach(|py| {
        let result = arguments.call(fun.bind(py), tracers)?;
        let mut outputs = Vec::new();
        let template = Template::of(&result, &mut outputs)?;
        *returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(template);
        Ok(outputs)
    })
    .map_err(carried)
}

fn rebuilt<'py>(
    py: Python<'py>,
    returned: &Returned,
    outputs: &[Array],
) -> PyResult<Bound<'py, PyAny>> {
    match &*returned.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(template) => template.fill(py, &mut outputs.iter()),
        None => Ok(py.None().into_bound(py)),
    }
}

/// A function that keeps nothing for its backward pass.
#[pyclass(frozen, name = "_Checkpointed", module = "cupola.core")]
pub struct Checkpointed {
    fun: Py<PyAny>,
}

#[pymethods]
impl Checkpointed {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fun)?;
        Ok(())
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut arrays = Vec::new();
        let arguments = Arguments::split(args, kwargs, &mut arrays)?;
        let returned = Returned::default();
        let f = |tracers: &[Array]| call_traced(&self.fun, &arguments, tracers, &returned);
        let outputs = transform::checkpoint(f)(&arrays).map_err(raise)?;
        rebuilt(py, &returned, &outputs)
    }
}

/// A function like `fun` that computes its intermediate results again in the backward pass.
#[doc = docs!(checkpoint)]
#[pyfunction]
pub fn checkpoint<'py>(py: Python<'py>, fun: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let call = Checkpointed { fun: fun.clone().unbind() };
    function(&fun, Bound::new(py, call)?.into_any())
}

/// A function whose derivatives and batching rule may be given, as decorators.
#[doc = docs!(custom_function)]
#[pyclass(frozen, name = "custom_function", module = "cupola.core")]
#[allow(non_camel_case_types)]
pub struct custom_function {
    fun: Py<PyAny>,
    rules: Mutex<Rules>,
    /// How many such functions are within each other, with this one: Python frees them one within the other.
    depth: usize,
}

#[derive(Default)]
struct Rules {
    vjp: Option<Py<PyAny>>,
    jvp: Option<Py<PyAny>>,
    vmap: Option<Py<PyAny>>,
}

impl Rules {
    fn clone_ref(&self, py: Python<'_>) -> Rules {
        let clone = |rule: &Option<Py<PyAny>>| rule.as_ref().map(|rule| rule.clone_ref(py));
        Rules { vjp: clone(&self.vjp), jvp: clone(&self.jvp), vmap: clone(&self.vmap) }
    }

    fn each(&self) -> impl Iterator<Item = &Py<PyAny>> {
        [&self.vjp, &self.jvp, &self.vmap].into_iter().flatten()
    }
}

/// What the rules of one call share.
pub struct Hooks {
    arguments: Arguments,
    returned: Returned,
    rules: Rules,
}

impl Hooks {
    /// Shows Python's garbage collector what `held` holds, if it is hooks that a graph alone leads to.
    pub fn traverse(held: &Held, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(hooks) = held.downcast_ref::<Hooks>() else { return Ok(()) };
        // The graph, and each rule.
        if Arc::strong_count(held) != 1 + hooks.rules.each().count() {
            return Ok(());
        }
        hooks.rules.each().try_for_each(|rule| visit.call(rule))?;
        hooks.arguments.traverse(visit)?;
        match hooks.returned.try_lock().as_deref() {
            Ok(Some(returned)) => returned.traverse(visit),
            _ => Ok(()),
        }
    }
}

impl custom_function {
    fn rules(&self) -> std::sync::MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The arguments as a rule sees them: one alone, several as a tuple.
fn primals<'py>(
    py: Python<'py>,
    arguments: &Arguments,
    arrays: &[Array],
) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyDict>>)> {
    let mut arrays = arrays.iter();
    let positional = arguments.positional.fill(py, &mut arrays)?.cast_into::<PyTuple>()?;
    let keywords = arguments.keywords.fill(py, &mut arrays)?.cast_into::<PyDict>().ok();
    let positional = match positional.len() {
        1 => positional.get_item(0)?,
        _ => positional.into_any(),
    };
    Ok((positional, keywords))
}

/// The arrays that a rule gave, one for each of `like`; those of keywords may be left out, and where fewer than for
/// the positional arguments are `enough`, only these are there. Where it gave a tree such as
/// the positional arguments are, `made_as` has them, those of a dict by its keys.
fn given(
    result: &Bound<'_, PyAny>,
    like: &[Array],
    (positional, enough): (usize, usize),
    what: &str,
    made_as: Option<&Template>,
) -> PyResult<Vec<Array>> {
    let mut found = Vec::new();
    let template = Template::of(result, &mut found)?;
    for own in made_as.into_iter().flat_map(|own| [Some(own), own.only()]).flatten() {
        let mut arranged = Vec::new();
        if own.take_apart(result, &mut arranged)? {
            found = arranged;
            break;
        }
    }
    let expected = match like.len() {
        1 => "one array is".to_owned(),
        count => format!("{count} arrays are"),
    };
    if !template.has_only_arrays() {
        let name = result.get_type().name()?;
        return Err(wrong_type(format!(
            "[custom_function] {what} gave something that is no array (in a {name}); {expected} \
             expected"
        )));
    }
    if found.len() > like.len() || found.len() < enough {
        return Err(wrong_value(format!(
            "[custom_function] {what} gave {} arrays, {expected} expected",
            found.len()
        )));
    }
    if found.len() < positional {
        return Ok(found);
    }
    for missing in &like[found.len()..] {
        found.push(ops::zeros_like(missing).map_err(raise)?);
    }
    Ok(found)
}

#[pymethods]
impl custom_function {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fun)?;
        match self.rules.try_lock() {
            Ok(rules) => rules.each().try_for_each(|rule| visit.call(rule)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let rules = std::mem::take(&mut *self.rules());
        drop(rules);
    }

    #[new]
    fn new(f: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !f.is_callable() {
            return Err(wrong_type(format!(
                "a function is expected, not {}",
                f.get_type().name()?
            )));
        }
        let within = f.cast::<custom_function>().map_or(0, |f| f.get().depth);
        if within >= DEEPEST {
            let text = format!("[custom_function] functions are nested deeper than {DEEPEST}");
            return Err(PyRecursionError::new_err(text));
        }
        let rules = Mutex::new(Rules::default());
        Ok(custom_function { fun: f.clone().unbind(), rules, depth: within + 1 })
    }

    /// Gives the function's vector-Jacobian product: `f(primals, cotangents, outputs)`.
    fn vjp(slf: Bound<'_, Self>, f: Py<PyAny>) -> Bound<'_, Self> {
        let _former = slf.get().rules().vjp.replace(f);
        slf
    }

    /// Gives the function's Jacobian-vector product: `f(primals, tangents)`.
    fn jvp(slf: Bound<'_, Self>, f: Py<PyAny>) -> Bound<'_, Self> {
        let _former = slf.get().rules().jvp.replace(f);
        slf
    }

    /// Gives the function over a batch: `f(inputs, axes)` returns outputs and their axes.
    fn vmap(slf: Bound<'_, Self>, f: Py<PyAny>) -> Bound<'_, Self> {
        let _former = slf.get().rules().vmap.replace(f);
        slf
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut arrays = Vec::new();
        let arguments = Arguments::split(args, kwargs, &mut arrays)?;
        let rules = self.rules().clone_ref(py);
        let hooks = Arc::new(Hooks { arguments, returned: Returned::default(), rules });
        let f =
            |tracers: &[Array]| call_traced(&self.fun, &hooks.arguments, tracers, &hooks.returned);
        let mut custom = transform::custom_function(f).holding(hooks.clone());
        if hooks.rules.vjp.is_some() {
            let hooks = hooks.clone();
            custom = custom.with_vjp(move |inputs, outputs, cotangents| {
                let Hooks { arguments, returned, rules } = &*hooks;
                Python::attach(|py| {
                    let (positional, keywords) = primals(py, arguments, inputs)?;
                    let count = arguments.positional.count();
                    let cotangents = rebuilt(py, returned, cotangents)?;
                    let outputs = rebuilt(py, returned, outputs)?;
                    let given_to = PyTuple::new(py, [positional, cotangents, outputs])?;
                    let result = called(py, &rules.vjp, given_to, keywords.as_ref())?;
                    // What is missing may be what nobody asks for.
                    given(&result, inputs, (count, 0), "vjp", Some(&arguments.positional))
                })
                .map_err(carried)
            });
        }
        if hooks.rules.jvp.is_some() {
            let hooks = hooks.clone();
            custom = custom.with_jvp(move |inputs, outputs, tangents| {
                let Hooks { arguments, returned, rules } = &*hooks;
                Python::attach(|py| {
                    let (positional, keywords) = primals(py, arguments, inputs)?;
                    let (tangents, _) = primals(py, arguments, tangents)?;
                    let arguments = PyTuple::new(py, [positional, tangents])?;
                    let result = called(py, &rules.jvp, arguments, keywords.as_ref())?;
                    let returned = returned.lock().unwrap_or_else(PoisonError::into_inner);
                    let count = outputs.len();
                    given(&result, outputs, (count, count), "jvp", returned.as_ref())
                })
                .map_err(carried)
            });
        }
        if hooks.rules.vmap.is_some() {
            let hooks = hooks.clone();
            custom = custom.with_vmap(move |inputs, _| {
                Python::attach(|py| batched(py, &hooks, inputs)).map_err(carried)
            });
        }
        let outputs = custom.call(&arrays).map_err(raise)?;
        rebuilt(py, &hooks.returned, &outputs)
    }
}

/// Calls a rule that is there.
fn called<'py>(
    py: Python<'py>,
    rule: &Option<Py<PyAny>>,
    arguments: Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    rule.as_ref()
        .map_or(Ok(py.None().into_bound(py)), |rule| rule.bind(py).call(arguments, keywords))
}

fn batched(py: Python<'_>, hooks: &Hooks, inputs: &[Batched]) -> PyResult<Vec<Batched>> {
    let Hooks { arguments, rules, .. } = hooks;
    let arrays: Vec<Array> = inputs.iter().map(|i| i.array.clone()).collect();
    let (positional, keywords) = primals(py, arguments, &arrays)?;
    let mut axes = inputs.iter().map(|i| i.batched.then_some(0i32));
    let places = primals_with(py, arguments, &mut |py| {
        Ok(axes.next().flatten().into_pyobject(py)?.into_any())
    })?;
    let given = PyTuple::new(py, [positional, places])?;
    batch_of(&called(py, &rules.vmap, given, keywords.as_ref())?)
}

/// What a rule of a batch gives, outputs and their axes, with the batch at axis 0.
pub fn batch_of(result: &Bound<'_, PyAny>) -> PyResult<Vec<Batched>> {
    let (outputs, places): (Bound<'_, PyAny>, Bound<'_, PyAny>) = result.extract()?;
    let mut axes = Vec::new();
    axes_of(&outputs, &places, &mut axes)?;
    let moved = |(array, axis): (Array, Option<isize>)| match axis {
        Some(axis) => {
            let array = ops::moveaxis(&array, axis, 0).map_err(raise)?;
            Ok(Batched { array, batched: true })
        }
        None => Ok(Batched { array, batched: false }),
    };
    tree::arrays(&outputs)?.into_iter().zip(axes).map(moved).collect()
}

/// The arguments as a rule sees them, with something else in the places of the arrays.
fn primals_with<'py>(
    py: Python<'py>,
    arguments: &Arguments,
    leaf: &mut dyn FnMut(Python<'py>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let positional = arguments.positional.fill_with(py, leaf)?.cast_into::<PyTuple>()?;
    match positional.len() {
        1 => positional.get_item(0),
        _ => Ok(positional.into_any()),
    }
}
