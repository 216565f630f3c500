//! Trees of lists, tuples and dicts, whose leaves are arrays and anything else.

use std::cell::Cell;

use cupola::Array;
use pyo3::PyTraverseError;
use pyo3::exceptions::PyRecursionError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::PyArray;
use crate::error::wrong_value;
use crate::random::RandomState;

/// The deepest tree: one that holds itself has no end.
pub const DEEPEST: usize = 1000;

/// One more level of a tree, as long as it is walked.
pub struct Level;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

impl Level {
    /// A level further down, or Python's `RecursionError`.
    pub fn enter() -> PyResult<Level> {
        let depth = DEPTH.get() + 1;
        if depth > DEEPEST {
            let text = format!("a tree is nested deeper than {DEEPEST}, or holds itself");
            return Err(PyRecursionError::new_err(text));
        }
        DEPTH.set(depth);
        Ok(Level)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// A leaf of a tree.
pub enum Leaf<'a, 'py> {
    Array(&'a Bound<'py, PyArray>),
    /// The default generator, whose state `compile` takes care of.
    Random,
    Other,
}

/// Shows `f` every leaf, in order.
pub fn visit<'py>(
    tree: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(Leaf<'_, 'py>) -> PyResult<()>,
) -> PyResult<()> {
    if let Ok(array) = tree.cast::<PyArray>() {
        return f(Leaf::Array(array));
    }
    let _level = Level::enter()?;
    if let Ok(list) = tree.cast::<PyList>() {
        return list.iter().try_for_each(|t| visit(&t, f));
    }
    if let Ok(tuple) = tree.cast::<PyTuple>() {
        return tuple.iter().try_for_each(|t| visit(&t, f));
    }
    if let Ok(dict) = tree.cast::<PyDict>() {
        return dict.iter().try_for_each(|(_, t)| visit(&t, f));
    }
    if tree.is_instance_of::<RandomState>() {
        return f(Leaf::Random);
    }
    f(Leaf::Other)
}

/// The arrays in a tree, in order.
pub fn arrays(tree: &Bound<'_, PyAny>) -> PyResult<Vec<Array>> {
    let mut found = Vec::new();
    visit(tree, &mut |leaf| {
        match leaf {
            Leaf::Array(array) => found.push(array.get().get()),
            Leaf::Random => found.push(cupola::generator::state()),
            Leaf::Other => {}
        }
        Ok(())
    })?;
    Ok(found)
}

/// A tree of the same structure with every array replaced by what `f` gives; other leaves stay.
pub fn map<'py>(
    tree: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(&Array) -> PyResult<Array>,
) -> PyResult<Bound<'py, PyAny>> {
    map_leaves(tree, &mut |leaf| match leaf.cast::<PyArray>() {
        Ok(array) => {
            let changed = f(&array.get().get())?;
            Ok(Bound::new(leaf.py(), PyArray::new(changed))?.into_any())
        }
        Err(_) => Ok(leaf.clone()),
    })
}

/// A tree of the same structure with every leaf, array or not, replaced by what `f` gives.
pub fn map_leaves<'py>(
    tree: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tree.py();
    if tree.is_instance_of::<PyArray>() {
        return f(tree);
    }
    let _level = Level::enter()?;
    if let Ok(list) = tree.cast::<PyList>() {
        let items = list.iter().map(|t| map_leaves(&t, f)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, items)?.into_any());
    }
    if let Ok(tuple) = tree.cast::<PyTuple>() {
        let items = tuple.iter().map(|t| map_leaves(&t, f)).collect::<PyResult<Vec<_>>>()?;
        let items = PyTuple::new(py, items)?;
        // A named tuple stays one.
        return match tuple.is_exact_instance_of::<PyTuple>() {
            true => Ok(items.into_any()),
            false => tuple.get_type().call1(items),
        };
    }
    if let Ok(dict) = tree.cast::<PyDict>() {
        let out = PyDict::new(py);
        for (key, value) in dict.iter() {
            out.set_item(key, map_leaves(&value, f)?)?;
        }
        return Ok(out.into_any());
    }
    f(tree)
}

/// A tree with its arrays taken out: what is left to build it again with others.
pub enum Template {
    Array,
    List(Vec<Template>),
    /// The items, and the type where it is not `tuple` itself.
    Tuple(Vec<Template>, Option<Py<PyAny>>),
    Dict(Vec<(Py<PyAny>, Template)>),
    Other(Py<PyAny>),
}

impl Template {
    /// Takes `tree` apart; its arrays are added to `arrays`, in order.
    pub fn of(tree: &Bound<'_, PyAny>, arrays: &mut Vec<Array>) -> PyResult<Template> {
        if let Ok(array) = tree.cast::<PyArray>() {
            arrays.push(array.get().get());
            return Ok(Template::Array);
        }
        let _level = Level::enter()?;
        if let Ok(list) = tree.cast::<PyList>() {
            let items = list.iter().map(|t| Template::of(&t, arrays)).collect::<PyResult<_>>()?;
            return Ok(Template::List(items));
        }
        if let Ok(tuple) = tree.cast::<PyTuple>() {
            let items = tuple.iter().map(|t| Template::of(&t, arrays)).collect::<PyResult<_>>()?;
            let is_plain = tuple.is_exact_instance_of::<PyTuple>();
            let own = (!is_plain).then(|| tuple.get_type().into_any().unbind());
            return Ok(Template::Tuple(items, own));
        }
        if let Ok(dict) = tree.cast::<PyDict>() {
            let item = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                Ok((key.unbind(), Template::of(&value, arrays)?))
            };
            return Ok(Template::Dict(dict.iter().map(item).collect::<PyResult<_>>()?));
        }
        Ok(Template::Other(tree.clone().unbind()))
    }

    /// Shows Python's garbage collector what the tree holds.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Template::Array => Ok(()),
            Template::List(items) => items.iter().try_for_each(|item| item.traverse(visit)),
            Template::Tuple(items, own) => {
                visit.call(own)?;
                items.iter().try_for_each(|item| item.traverse(visit))
            }
            Template::Dict(items) => items.iter().try_for_each(|(key, item)| {
                visit.call(key)?;
                item.traverse(visit)
            }),
            Template::Other(object) => visit.call(object),
        }
    }

    /// The tree that is nothing.
    pub fn none(py: Python<'_>) -> Template {
        Template::Other(py.None())
    }

    /// Whether every leaf is an array.
    pub fn has_only_arrays(&self) -> bool {
        match self {
            Template::Array => true,
            Template::List(items) | Template::Tuple(items, _) => {
                items.iter().all(Template::has_only_arrays)
            }
            Template::Dict(items) => items.iter().all(|(_, t)| t.has_only_arrays()),
            Template::Other(_) => false,
        }
    }

    /// Takes `tree` apart as this is made, the values of a dict by its keys. Says whether it is made alike, and
    /// where it is not leaves some of its arrays in `arrays`.
    ///
    /// # Errors
    /// Where the keys of a dict are others.
    pub fn take_apart(&self, tree: &Bound<'_, PyAny>, arrays: &mut Vec<Array>) -> PyResult<bool> {
        let each = |items: &[Template], of: Vec<Bound<'_, PyAny>>, arrays: &mut Vec<Array>| {
            let mut alike = items.len() == of.len();
            for (item, tree) in items.iter().zip(&of) {
                alike = alike && item.take_apart(tree, arrays)?;
            }
            Ok(alike)
        };
        match self {
            Template::Array => {
                let Ok(array) = tree.cast::<PyArray>() else { return Ok(false) };
                arrays.push(array.get().get());
                Ok(true)
            }
            Template::List(items) | Template::Tuple(items, _) => {
                if let Ok(list) = tree.cast::<PyList>() {
                    return each(items, list.iter().collect(), arrays);
                }
                let Ok(tuple) = tree.cast::<PyTuple>() else { return Ok(false) };
                each(items, tuple.iter().collect(), arrays)
            }
            Template::Dict(items) => {
                let Ok(dict) = tree.cast::<PyDict>() else { return Ok(false) };
                let py = tree.py();
                let own: Vec<_> = items.iter().filter(|(_, item)| item.count() > 0).collect();
                let mut alike = true;
                for (key, item) in &own {
                    let Some(value) = dict.get_item(key.bind(py))? else {
                        let keys = PyList::new(py, own.iter().map(|(key, _)| key.bind(py)))?;
                        return Err(wrong_value(format!(
                            "[custom_function] a rule gave a dict of the keys {}, not {}",
                            dict.keys().repr()?,
                            keys.repr()?
                        )));
                    };
                    alike = alike && item.take_apart(&value, arrays)?;
                }
                // What else is there has no place.
                let others = dict.iter().filter(|(key, _)| {
                    !items.iter().any(|(own, _)| key.eq(own.bind(py)).unwrap_or(false))
                });
                Ok(alike && others.count() == 0)
            }
            Template::Other(_) => Ok(true),
        }
    }

    /// The only item of a tuple of one.
    pub fn only(&self) -> Option<&Template> {
        match self {
            Template::Tuple(items, _) => items.first().filter(|_| items.len() == 1),
            Template::Array | Template::List(_) | Template::Dict(_) | Template::Other(_) => None,
        }
    }

    /// How many arrays it has.
    pub fn count(&self) -> usize {
        match self {
            Template::Array => 1,
            Template::List(items) | Template::Tuple(items, _) => {
                items.iter().map(Template::count).sum()
            }
            Template::Dict(items) => items.iter().map(|(_, item)| item.count()).sum(),
            Template::Other(_) => 0,
        }
    }

    /// Adds the name of each array: `root` with the subscripts that lead to it.
    pub fn names(&self, py: Python<'_>, root: &str, names: &mut Vec<String>) -> PyResult<()> {
        match self {
            Template::Array => names.push(root.to_owned()),
            Template::List(items) | Template::Tuple(items, _) => {
                for (index, item) in items.iter().enumerate() {
                    item.names(py, &format!("{root}[{index}]"), names)?;
                }
            }
            Template::Dict(items) => {
                for (key, item) in items {
                    item.names(py, &format!("{root}[{}]", key.bind(py).repr()?), names)?;
                }
            }
            Template::Other(_) => {}
        }
        Ok(())
    }

    /// The tree with these arrays.
    pub fn fill<'py>(
        &self,
        py: Python<'py>,
        arrays: &mut dyn Iterator<Item = &Array>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.fill_with(py, &mut |py| match arrays.next() {
            Some(array) => Ok(Bound::new(py, PyArray::new(array.clone()))?.into_any()),
            None => Err(crate::error::wrong_value("a tree has more arrays than were given")),
        })
    }

    /// The tree with something else in the places of the arrays.
    pub fn fill_with<'py>(
        &self,
        py: Python<'py>,
        leaf: &mut dyn FnMut(Python<'py>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Template::Array => leaf(py),
            Template::List(items) => {
                let items =
                    items.iter().map(|t| t.fill_with(py, leaf)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(py, items)?.into_any())
            }
            Template::Tuple(items, own) => {
                let items =
                    items.iter().map(|t| t.fill_with(py, leaf)).collect::<PyResult<Vec<_>>>()?;
                let items = PyTuple::new(py, items)?;
                match own {
                    Some(own) => own.bind(py).call1(items),
                    None => Ok(items.into_any()),
                }
            }
            Template::Dict(items) => {
                let out = PyDict::new(py);
                for (key, value) in items {
                    out.set_item(key, value.fill_with(py, leaf)?)?;
                }
                Ok(out.into_any())
            }
            Template::Other(object) => Ok(object.bind(py).clone()),
        }
    }
}
