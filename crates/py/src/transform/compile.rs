//! `compile`: a function runs as one graph, once for each kind of arguments.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cupola::transform::TRACE_BYTES;
use cupola::{Array, Aval, ops, transform};
use cupola_core::binding::update_by_result;
use cupola_core::prim::key::Mixer;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::custom::Hooks;
use super::{Arguments, function};
use crate::array::PyArray;
use crate::error::{carried, raise, wrong_value};
use crate::fast::kernel::Rules;
use crate::generated::docs;
use crate::origin;
use crate::random::RandomState;
use crate::tree::{Level, Template};

static ENABLED: AtomicBool = AtomicBool::new(true);

/// Functions are no longer compiled: they run as they are.
#[doc = docs!(disable_compile)]
#[pyfunction]
pub fn disable_compile() {
    ENABLED.store(false, Ordering::Relaxed);
}

/// Functions are compiled again after `disable_compile`.
#[doc = docs!(enable_compile)]
#[pyfunction]
pub fn enable_compile() {
    ENABLED.store(true, Ordering::Relaxed);
}

/// What tells calls apart that need graphs of their own: one token for each thing on the way
/// through the arguments and the state.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Token {
    List(usize),
    Tuple(usize),
    Dict(usize),
    Name(String),
    Array(Aval),
    Random,
    None,
    Bool(bool),
    Int(String),
    Float(u64),
    Text(String),
    /// Something of the state that is no array, and does not matter.
    Ignored,
}

impl Token {
    /// Whether both are the same but for the sizes of an array.
    fn is_alike(&self, other: &Token) -> bool {
        match (self, other) {
            (Token::Array(a), Token::Array(b)) => {
                a.dtype == b.dtype && a.shape.rank() == b.shape.rank()
            }
            (a, b) => a == b,
        }
    }
}

/// Writes down what `tree` is; whether of the state, which may have anything in it.
fn describe(tree: &Bound<'_, PyAny>, key: &mut Vec<Token>, is_state: bool) -> PyResult<()> {
    if let Ok(array) = tree.cast::<PyArray>() {
        key.push(Token::Array(array.get().get().aval().clone()));
    } else if let Ok(dict) = tree.cast::<PyDict>() {
        let _level = Level::enter()?;
        key.push(Token::Dict(dict.len()));
        for (name, value) in dict.iter() {
            key.push(Token::Name(name.str()?.to_cow()?.into_owned()));
            describe(&value, key, is_state)?;
        }
    } else if let Ok(list) = tree.cast::<PyList>() {
        let _level = Level::enter()?;
        key.push(Token::List(list.len()));
        list.iter().try_for_each(|t| describe(&t, key, is_state))?;
    } else if let Ok(tuple) = tree.cast::<PyTuple>() {
        let _level = Level::enter()?;
        key.push(Token::Tuple(tuple.len()));
        tuple.iter().try_for_each(|t| describe(&t, key, is_state))?;
    } else if tree.is_none() {
        key.push(Token::None);
    } else if tree.is_instance_of::<RandomState>() {
        key.push(Token::Random);
    } else if let Ok(value) = tree.cast::<PyBool>() {
        key.push(Token::Bool(value.is_true()));
    } else if tree.is_instance_of::<PyInt>() {
        key.push(Token::Int(tree.str()?.to_cow()?.into_owned()));
    } else if tree.is_instance_of::<PyFloat>() {
        key.push(Token::Float(tree.extract::<f64>()?.to_bits()));
    } else if let Ok(text) = tree.cast::<PyString>() {
        key.push(Token::Text(text.to_cow()?.into_owned()));
    } else if is_state {
        key.push(Token::Ignored);
    } else {
        return Err(wrong_value(format!(
            "[compile] Function arguments must be trees of arrays or constants (floats, ints, \
             strings, or None), but received type {}.",
            tree.get_type().name()?
        )));
    }
    Ok(())
}

/// What holds an array of the state.
enum Holder {
    Item(Py<PyList>, usize),
    Value(Py<PyDict>, Py<PyAny>),
    /// An array that stands alone, or in a tuple: it changes itself.
    Itself(Py<PyArray>),
}

impl Holder {
    fn put(&self, py: Python<'_>, array: &Bound<'_, PyArray>) -> PyResult<()> {
        match self {
            Holder::Item(list, at) => list.bind(py).set_item(*at, array),
            Holder::Value(dict, key) => dict.bind(py).set_item(key, array),
            Holder::Itself(own) => {
                own.get().set(array.get().get());
                Ok(())
            }
        }
    }
}

/// The arrays of a state, each with what holds it.
fn holders<'py>(tree: &Bound<'py, PyAny>) -> PyResult<Vec<(Holder, Bound<'py, PyArray>)>> {
    fn walk<'py>(
        tree: &Bound<'py, PyAny>,
        holder: &mut dyn FnMut() -> Option<Holder>,
        out: &mut Vec<(Holder, Bound<'py, PyArray>)>,
    ) -> PyResult<()> {
        let _level = Level::enter()?;
        if let Ok(array) = tree.cast::<PyArray>() {
            let at = holder().unwrap_or_else(|| Holder::Itself(array.clone().unbind()));
            out.push((at, array.clone()));
        } else if let Ok(list) = tree.cast::<PyList>() {
            for (at, item) in list.iter().enumerate() {
                walk(&item, &mut || Some(Holder::Item(list.clone().unbind(), at)), out)?;
            }
        } else if let Ok(tuple) = tree.cast::<PyTuple>() {
            for item in tuple.iter() {
                walk(&item, &mut || None, out)?;
            }
        } else if let Ok(dict) = tree.cast::<PyDict>() {
            for (key, value) in dict.iter() {
                let holder = || Holder::Value(dict.clone().unbind(), key.clone().unbind());
                walk(&value, &mut || Some(holder()), out)?;
            }
        }
        Ok(())
    }
    let mut out = Vec::new();
    walk(tree, &mut || None, &mut out)?;
    Ok(out)
}

type Traced = dyn Fn(&mut (), &[Array]) -> cupola::Result<Vec<Array>> + Send + Sync;

/// One graph: what runs, and what the function returned when it was traced.
struct Entry {
    compiled: transform::Compiled<Box<Traced>>,
    arguments: Arc<Arguments>,
    outcome: Arc<Mutex<Option<Outcome>>>,
}

struct Outcome {
    returned: Template,
    /// How many arrays were returned; those of the state follow.
    count: usize,
}

/// A function, and what it reads and writes besides. Its graphs share it, so that the garbage
/// collector sees every reference that there is.
struct Source {
    fun: Py<PyAny>,
    inputs: Option<Py<PyAny>>,
    outputs: Option<Py<PyAny>>,
}

/// Calls of different structure, shapes or dtypes that a function remembers at most.
const MOST_CALLS: usize = 1024;

/// Graphs by the calls that they are for.
#[derive(Default)]
struct Entries {
    /// With the number of the call that used it last.
    of: HashMap<Vec<Token>, (Arc<Entry>, u64), BuildHasherDefault<Mixer>>,
    calls: u64,
}

impl Entries {
    fn get(&mut self, key: &[Token]) -> Option<Arc<Entry>> {
        self.calls += 1;
        let (entry, used) = self.of.get_mut(key)?;
        *used = self.calls;
        Some(entry.clone())
    }

    /// Keeps an entry; gives those that it takes the place of: one of the same call, and where there are too many
    /// those that were not used for the longest time. They are to be dropped without the lock, since what they hold
    /// may call this function.
    fn insert(&mut self, key: Vec<Token>, entry: Arc<Entry>) -> Vec<Arc<Entry>> {
        let is_known = self.of.contains_key(&key);
        let mut gone: Vec<_> = self.of.insert(key, (entry, self.calls)).into_iter().collect();
        let is_much = |of: &HashMap<_, (Arc<Entry>, u64), _>| {
            // One may serve several calls.
            let each: HashMap<*const Entry, usize> =
                of.values().map(|(e, _)| (Arc::as_ptr(e), e.compiled.bytes())).collect();
            of.len() > MOST_CALLS || each.values().sum::<usize>() > TRACE_BYTES
        };
        while !is_known && self.of.len() > 1 && is_much(&self.of) {
            let oldest = self.of.iter().min_by_key(|(_, (_, used))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            gone.extend(self.of.remove(&key));
        }
        gone.into_iter().map(|(entry, _)| entry).collect()
    }
}

/// A function with its graphs.
#[pyclass(frozen, name = "_Compiled", module = "cupola.core")]
pub struct Compiled {
    source: Arc<Source>,
    entries: Mutex<Entries>,
    /// Whether a graph may be used for other sizes where it alone says what depends on them.
    shapeless: bool,
}

fn state<'py>(
    py: Python<'py>,
    tree: &Option<Py<PyAny>>,
) -> PyResult<Vec<(Holder, Bound<'py, PyArray>)>> {
    tree.as_ref().map_or(Ok(Vec::new()), |tree| holders(tree.bind(py)))
}

impl Compiled {
    /// The graph that was traced for such calls: for these sizes, or, where it may be, for others.
    fn known(&self, key: &[Token], arrays: &[Array]) -> Option<Arc<Entry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(key) {
            return Some(entry);
        }
        let is_alike = |other: &[Token]| {
            other.len() == key.len() && other.iter().zip(key).all(|(a, b)| a.is_alike(b))
        };
        let mut alike = entries.of.iter().filter(|(k, _)| self.shapeless && is_alike(k));
        let fits = |(_, (entry, _)): &(&Vec<Token>, &(Arc<Entry>, u64))| {
            entry.compiled.fit(&mut (), arrays)
        };
        alike.find(fits).map(|(_, (entry, _))| entry.clone())
    }

    /// A graph for calls such as this one.
    fn entry(&self, arguments: Arguments, own: usize) -> Entry {
        let source = self.source.clone();
        let arguments = Arc::new(arguments);
        let outcome = Arc::new(Mutex::new(None));
        let (given, slot) = (arguments.clone(), outcome.clone());
        let run = move |_: &mut (), tracers: &[Array]| {
            Python::attach(|py| {
                let (own, held) = tracers.split_at(own);
                let before = state(py, &source.inputs)?;
                for ((holder, _), tracer) in before.iter().zip(held) {
                    holder.put(py, &Bound::new(py, PyArray::new(tracer.clone()))?)?;
                }
                let result = traced(&source, &given, own, &slot, py);
                // The state is as it was before, and gets its new arrays when the graph ran.
                for (holder, array) in &before {
                    holder.put(py, array)?;
                }
                result
            })
            .map_err(carried)
        };
        let compiled = transform::compile(Box::new(run) as Box<Traced>);
        Entry { compiled, arguments, outcome }
    }
}

fn traced(
    source: &Source,
    arguments: &Arguments,
    tracers: &[Array],
    slot: &Mutex<Option<Outcome>>,
    py: Python<'_>,
) -> PyResult<Vec<Array>> {
    let result = arguments.call(source.fun.bind(py), tracers)?;
    let mut arrays = Vec::new();
    let returned = Template::of(&result, &mut arrays)?;
    let outcome = Outcome { returned, count: arrays.len() };
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    arrays.extend(state(py, &source.outputs)?.iter().map(|(_, array)| array.get().get()));
    Ok(arrays)
}

#[pymethods]
impl Compiled {
    // What is locked is in use.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Source { fun, inputs, outputs } = &*self.source;
        visit.call(fun)?;
        visit.call(inputs)?;
        visit.call(outputs)?;
        let Ok(entries) = self.entries.try_lock() else { return Ok(()) };
        // One may serve several calls, and its references count once.
        let each: HashMap<*const Entry, &Entry> =
            entries.of.values().map(|(entry, _)| (Arc::as_ptr(entry), &**entry)).collect();
        each.into_values().try_for_each(|entry| entry.traverse(&visit))
    }

    // What cannot be changed is on no cycle of its own.
    fn __clear__(&self) {
        let entries = match self.entries.try_lock() {
            Ok(mut entries) => std::mem::take(&mut *entries),
            Err(_) => return,
        };
        drop(entries);
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if !ENABLED.load(Ordering::Relaxed) {
            return self.source.fun.bind(py).call(args, kwargs);
        }
        let mut key = Vec::new();
        describe(args.as_any(), &mut key, false)?;
        if let Some(kwargs) = kwargs {
            describe(kwargs.as_any(), &mut key, false)?;
        }
        if let Some(inputs) = &self.source.inputs {
            describe(inputs.bind(py), &mut key, true)?;
        }
        let mut arrays = Vec::new();
        let arguments = Arguments::split(args, kwargs, &mut arrays)?;
        let own = arrays.len();
        arrays.extend(state(py, &self.source.inputs)?.iter().map(|(_, array)| array.get().get()));
        let known = self.known(&key, &arrays);
        let mut entry = known.clone().unwrap_or_else(|| Arc::new(self.entry(arguments, own)));
        let mut outputs = entry.compiled.call(&mut (), &arrays).map_err(raise)?;
        let mut holders = state(py, &self.source.outputs)?;
        let mut is_fresh = known.is_none();
        if known.is_some() && outputs.len() != entry.count() + holders.len() {
            // The state that is written has other holders than when this was traced.
            let mut again = Vec::new();
            let arguments = Arguments::split(args, kwargs, &mut again)?;
            entry = Arc::new(self.entry(arguments, own));
            outputs = entry.compiled.call(&mut (), &arrays).map_err(raise)?;
            holders = state(py, &self.source.outputs)?;
            is_fresh = true;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = entries.insert(key, entry.clone());
        drop(entries);
        drop(gone);
        let outcome = entry.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Outcome { returned, count }) = &*outcome else {
            return Ok(py.None().into_bound(py));
        };
        let stand = origin::stand();
        let changed = outputs.split_off(*count);
        for (at, ((holder, former), mut array)) in holders.iter().zip(changed).enumerate() {
            let former = former.get().get();
            // What cannot be computed leaves the state as it was; a trace left its own in what it made appear. Mostly
            // what is changed is what is given, in the same order.
            let is_given = |given: &Array| given.same(&former);
            if arrays.get(own + at).is_some_and(is_given) || arrays[own..].iter().any(is_given) {
                update_by_result(&array, &former);
            } else if !is_fresh {
                array = ops::update(&array, &former).map_err(raise)?;
            }
            holder.put(py, &Bound::new(py, PyArray::new(array))?)?;
        }
        drop(stand);
        returned.fill(py, &mut outputs.iter())
    }
}

impl Entry {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.arguments.traverse(visit)?;
        if let Ok(outcome) = self.outcome.try_lock()
            && let Some(outcome) = &*outcome
        {
            outcome.returned.traverse(visit)?;
        }
        let mut done = Ok(());
        self.compiled.held(&mut |held| {
            if done.is_ok() {
                done = Hooks::traverse(held, visit).and_then(|()| Rules::traverse(held, visit));
            }
        });
        done
    }

    fn count(&self) -> usize {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.as_ref().map_or(0, |o| o.count)
    }
}

/// A function that does what `fun` does as one graph: it is traced once for each structure, shape
/// and dtype of its arguments. `inputs` and `outputs` are trees of arrays that it reads and
/// changes besides its arguments and its result. With `shapeless` it is not traced again for other
/// sizes where nothing that it did depends on them but the shapes of its results.
#[doc = docs!(compile)]
#[pyfunction]
#[pyo3(signature = (fun, inputs = None, outputs = None, shapeless = false))]
pub fn compile<'py>(
    py: Python<'py>,
    fun: Bound<'py, PyAny>,
    inputs: Option<Py<PyAny>>,
    outputs: Option<Py<PyAny>>,
    shapeless: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let source = Arc::new(Source { fun: fun.clone().unbind(), inputs, outputs });
    let call = Compiled { source, entries: Mutex::default(), shapeless };
    function(&fun, Bound::new(py, call)?.into_any())
}
