//! `cupola.core._nn`: operations that the layers of `cupola.nn` call and MLX's `core` does not have.

use std::fmt::Display;

use cupola::Array;
use cupola::ops::{self, PoolOptions};
use cupola_core::binding::all_as_one;
use pyo3::exceptions::{PyAttributeError, PyRecursionError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::error::{raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, Numeric, SizesArg, counts, data_format_of, give};

/// Functions of an array or a number.
macro_rules! activations {
    ($($name:ident)*) => {$(
        #[doc = docs!(_nn::$name)]
        #[pyfunction]
        pub fn $name(x: Arr) -> PyResult<PyArray> {
            give(ops::$name(&x))
        }
    )*};
}

activations! { selu gelu gelu_approx log_sigmoid }

/// Those for which, as in MLX, what is neither is an error of its value.
macro_rules! numeric_activations {
    ($($name:ident)*) => {$(
        #[doc = docs!(_nn::$name)]
        #[pyfunction]
        pub fn $name(x: Numeric) -> PyResult<PyArray> {
            give(ops::$name(&x))
        }
    )*};
}

numeric_activations! { relu silu softplus softsign mish }

/// Functions of an array or a number that have a parameter.
macro_rules! parametric_activations {
    ($($name:ident)*) => {$(
        #[doc = docs!(_nn::$name)]
        #[pyfunction]
        pub fn $name(x: Arr, parameter: f64) -> PyResult<PyArray> {
            give(ops::$name(&x, parameter))
        }
    )*};
}

parametric_activations! { elu }

/// Those for which what is neither is an error of its value.
macro_rules! numeric_parametric_activations {
    ($($name:ident)*) => {$(
        #[doc = docs!(_nn::$name)]
        #[pyfunction]
        pub fn $name(x: Numeric, parameter: f64) -> PyResult<PyArray> {
            give(ops::$name(&x, parameter))
        }
    )*};
}

numeric_parametric_activations! { celu hard_shrink softshrink }

#[doc = docs!(_nn::glu)]
#[pyfunction]
pub fn glu(x: Arr, axis: isize) -> PyResult<PyArray> {
    give(ops::glu(&x, axis))
}

fn windows(
    window: SizesArg,
    stride: SizesArg,
    padding: SizesArg,
    data_format: &str,
    dilation: SizesArg,
) -> PyResult<PoolOptions> {
    let padding = counts(&padding, "padding")?;
    Ok(PoolOptions {
        window: counts(&window, "window")?,
        stride: counts(&stride, "stride")?,
        padding: padding.into_iter().map(|p| (p, p)).collect(),
        dilation: counts(&dilation, "dilation")?,
        data_format: data_format_of(data_format)?,
    })
}

#[doc = docs!(_nn::max_pool)]
#[pyfunction]
#[pyo3(signature = (
    x, window, stride, padding, data_format = "channels_last", dilation = SizesArg::one(1)
))]
pub fn max_pool(
    x: Arr,
    window: SizesArg,
    stride: SizesArg,
    padding: SizesArg,
    data_format: &str,
    dilation: SizesArg,
) -> PyResult<PyArray> {
    give(ops::max_pool(&x, &windows(window, stride, padding, data_format, dilation)?))
}

#[doc = docs!(_nn::avg_pool)]
#[pyfunction]
#[pyo3(signature = (
    x, window, stride, padding, data_format = "channels_last", dilation = SizesArg::one(1)
))]
pub fn avg_pool(
    x: Arr,
    window: SizesArg,
    stride: SizesArg,
    padding: SizesArg,
    data_format: &str,
    dilation: SizesArg,
) -> PyResult<PyArray> {
    give(ops::avg_pool(&x, &windows(window, stride, padding, data_format, dilation)?))
}

/// What was recorded as one node for every parameter of a step.
fn recorded<const N: usize>(name: &str, all: cupola::Result<Vec<Array>>) -> PyResult<[PyArray; N]> {
    let all: Result<[Array; N], _> = all.map_err(raise)?.try_into();
    let all = all.map_err(|_| wrong_value(format!("[{name}] gives {N} arrays")))?;
    Ok(all.map(PyArray::new))
}

#[doc = docs!(_nn::adam)]
#[pyfunction]
#[pyo3(signature = (parameter, gradient, m, v, betas, eps, rate, deviation=None, kept=None))]
#[allow(clippy::too_many_arguments)]
pub fn adam(
    parameter: Arr,
    gradient: Arr,
    m: Arr,
    v: Arr,
    betas: (f64, f64),
    eps: f64,
    rate: Arr,
    deviation: Option<Arr>,
    kept: Option<Arr>,
) -> PyResult<(PyArray, PyArray, PyArray)> {
    let has = [&deviation, &kept].map(Option::is_some);
    let parameters =
        [betas.0.to_bits(), betas.1.to_bits(), eps.to_bits(), has[0].into(), has[1].into()];
    let always = [&parameter, &gradient, &m, &v, &rate];
    let inputs: SmallVec<[&Array; 8]> =
        always.into_iter().chain(&deviation).chain(&kept).map(|given| &**given).collect();
    let step = |given: &[Array]| {
        let [parameter, gradient, m, v, rate, more @ ..] = given else { return Ok(Vec::new()) };
        let past = |mean: &Array, beta: f64, fresh: &Array| {
            ops::add(&ops::multiply(mean, beta)?, &ops::multiply(fresh, 1.0 - beta)?)
        };
        let parameter = match more.last().filter(|_| has[1]) {
            Some(kept) => ops::multiply(parameter, kept)?,
            None => parameter.clone(),
        };
        let m = past(m, betas.0, gradient)?;
        let v = past(v, betas.1, &ops::square(gradient)?)?;
        let mut size = ops::sqrt(&v)?;
        if let Some(deviation) = more.first().filter(|_| has[0]) {
            size = ops::multiply(&size, deviation)?;
        }
        let change = ops::divide(&ops::multiply(rate, &m)?, &ops::add(&size, eps)?)?;
        Ok(vec![ops::subtract(&parameter, &change)?, m, v])
    };
    let all = all_as_one("adam", &parameters, &inputs, &[0, 2, 3], step);
    let [parameter, m, v] = recorded("adam", all)?;
    Ok((parameter, m, v))
}

#[doc = docs!(_nn::sgd)]
#[pyfunction]
pub fn sgd(
    parameter: Arr,
    gradient: Arr,
    v: Arr,
    momentum: (f64, f64, bool),
    weight_decay: f64,
    rate: Arr,
) -> PyResult<(PyArray, PyArray)> {
    let (momentum, dampening, nesterov) = momentum;
    let parameters =
        [momentum.to_bits(), dampening.to_bits(), weight_decay.to_bits(), nesterov.into()];
    let inputs = [&*parameter, &*gradient, &*v, &*rate];
    let step = |given: &[Array]| {
        let [parameter, gradient, v, rate] = given else { return Ok(Vec::new()) };
        let mut gradient = gradient.clone();
        if weight_decay != 0.0 {
            gradient = ops::add(&gradient, &ops::multiply(parameter, weight_decay)?)?;
        }
        let mut fresh = gradient.clone();
        if dampening > 0.0 {
            fresh = ops::multiply(&fresh, 1.0 - dampening)?;
        }
        let v = ops::add(&ops::multiply(v, momentum)?, &fresh)?;
        let along = match nesterov {
            true => ops::add(&gradient, &ops::multiply(&v, momentum)?)?,
            false => v.clone(),
        };
        Ok(vec![ops::subtract(parameter, &ops::multiply(rate, &along)?)?, v])
    };
    let all = all_as_one("sgd", &parameters, &inputs, &[0, 2], step);
    let [parameter, v] = recorded("sgd", all)?;
    Ok((parameter, v))
}

#[doc = docs!(_nn::running_mean)]
#[pyfunction]
pub fn running_mean(running: Arr, fresh: Arr, momentum: f64, scale: f64) -> PyResult<PyArray> {
    let step = |given: &[Array]| {
        let [running, fresh] = given else { return Ok(Vec::new()) };
        let fresh = match scale {
            1.0 => fresh.clone(),
            scale => ops::multiply(fresh, scale)?,
        };
        let kept = ops::multiply(running, 1.0 - momentum)?;
        let mean = ops::add(&kept, &ops::multiply(&fresh, momentum)?)?;
        // In its own dtype, since the sums of a batch are taken in `float32`, but that of complex numbers is one.
        let dtype = running.dtype();
        let dtype = if fresh.dtype().is_complex() { dtype.promote(fresh.dtype()) } else { dtype };
        Ok(vec![ops::astype(&mean, dtype)?])
    };
    let parameters = [momentum.to_bits(), scale.to_bits()];
    let all = all_as_one("running_mean", &parameters, &[&*running, &*fresh], &[0], step);
    let [mean] = recorded("running_mean", all)?;
    Ok(mean)
}

#[doc = docs!(_nn::update)]
#[pyfunction]
pub fn update(x: Arr, former: Arr) -> PyResult<PyArray> {
    give(ops::update(&x, &former))
}

#[doc = docs!(_nn::Item)]
#[pyclass(frozen, name = "Item", module = "cupola.core._nn")]
pub struct Item(Py<PyString>);

#[pymethods]
impl Item {
    #[new]
    fn new(name: Bound<'_, PyString>) -> Self {
        Item(name.unbind())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Py<PyString>,)) {
        (slf.get_type(), (slf.get().0.clone_ref(slf.py()),))
    }

    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        module: Option<&Bound<'py, PyAny>>,
        owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name = slf.get().0.bind(slf.py());
        if let Some(module) = module
            && let Some(item) = module.cast::<PyDict>()?.get_item(name)?
        {
            return Ok(item);
        }
        // A module without the item has what its classes have, as if this were not there.
        let class = match (module, owner) {
            (Some(module), _) => module.get_type(),
            (None, Some(owner)) => owner.cast::<PyType>()?.clone(),
            (None, None) => slf.get_type(),
        };
        for base in class.mro() {
            let has = base.getattr(intern!(slf.py(), "__dict__"))?;
            let Ok(found) = has.get_item(name) else { continue };
            if found.is_instance_of::<Item>() {
                continue;
            }
            let getter = found.get_type().getattr_opt(intern!(slf.py(), "__get__"))?;
            return match getter {
                Some(getter) => getter.call1((found, module, class)),
                None => Ok(found),
            };
        }
        let of = class.name()?;
        Err(PyAttributeError::new_err(format!("'{of}' object has no attribute '{name}'")))
    }
}

/// How deep trees may be nested: deeper ones contain themselves.
const DEEPEST: usize = 400;

fn too_deep(depth: usize) -> PyResult<()> {
    if depth < DEEPEST {
        return Ok(());
    }
    Err(PyRecursionError::new_err(format!("a tree is nested more than {DEEPEST} deep")))
}

#[doc = docs!(_nn::tree_map)]
#[pyfunction]
#[pyo3(signature = (function, tree, rest, is_leaf=None))]
pub fn tree_map<'py>(
    function: &Bound<'py, PyAny>,
    tree: &Bound<'py, PyAny>,
    rest: &Bound<'py, PyTuple>,
    is_leaf: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let rest: Vec<Bound<'py, PyAny>> = rest.iter().collect();
    mapped((function, is_leaf), tree, &rest, 0)
}

/// [`tree_map`] below the root, by its function and by what says which branches count as leaves.
fn mapped<'py>(
    functions: (&Bound<'py, PyAny>, Option<&Bound<'py, PyAny>>),
    tree: &Bound<'py, PyAny>,
    rest: &[Bound<'py, PyAny>],
    depth: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tree.py();
    let (function, is_leaf) = functions;
    let below = |key: &Bound<'py, PyAny>, child: &Bound<'py, PyAny>| {
        let rest: SmallVec<[Bound<'py, PyAny>; 4]> =
            rest.iter().map(|other| other.get_item(key)).collect::<PyResult<_>>()?;
        mapped(functions, child, &rest, depth + 1)
    };
    let ends = is_leaf.map_or(Ok(false), |is_leaf| is_leaf.call1((tree,))?.is_truthy())?;
    if let Ok(dict) = tree.cast::<PyDict>()
        && !ends
    {
        too_deep(depth)?;
        let out = PyDict::new(py);
        // A list of them: the function may change the tree.
        for item in dict.items() {
            let (key, child): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
            out.set_item(&key, below(&key, &child)?)?;
        }
        return Ok(out.into_any());
    }
    if ends || !tree.is_instance_of::<PyList>() && !tree.is_instance_of::<PyTuple>() {
        return match rest {
            [] => function.call1((tree,)),
            [one] => function.call1((tree, one)),
            [one, two] => function.call1((tree, one, two)),
            more => {
                let all: Vec<&Bound<'py, PyAny>> = std::iter::once(tree).chain(more).collect();
                function.call1(PyTuple::new(py, all)?)
            }
        };
    }
    too_deep(depth)?;
    let mut values = Vec::with_capacity(tree.len()?);
    for (index, child) in tree.try_iter()?.enumerate() {
        values.push(below(&index.into_pyobject(py)?.into_any(), &child?)?);
    }
    if tree.is_exact_instance_of::<PyList>() {
        return Ok(PyList::new(py, values)?.into_any());
    }
    let values = PyTuple::new(py, values)?;
    if tree.is_exact_instance_of::<PyTuple>() {
        return Ok(values.into_any());
    }
    // A named tuple takes its fields one by one.
    match tree.hasattr("_fields")? {
        true => tree.get_type().call1(values),
        false => tree.get_type().call1((values,)),
    }
}

#[doc = docs!(_nn::parameters)]
#[pyfunction]
pub fn parameters<'py>(
    module: &Bound<'py, PyDict>,
    kind: &Bound<'py, PyAny>,
    trainable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(parameters_of(module, kind, trainable, 0)?.into_any())
}

fn parameters_of<'py>(
    module: &Bound<'py, PyDict>,
    kind: &Bound<'py, PyAny>,
    trainable: bool,
    depth: usize,
) -> PyResult<Bound<'py, PyDict>> {
    too_deep(depth)?;
    let mut frozen = None;
    if trainable {
        let names = module.getattr(intern!(module.py(), "_no_grad"))?;
        frozen = (names.len()? > 0).then_some(names);
    }
    let holder = Holder { kind, trainable, frozen };
    let out = PyDict::new(module.py());
    for item in module.items() {
        let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
        let is_array = value.is_instance_of::<PyArray>();
        let is_kept =
            is_array || value.is_instance_of::<PyDict>() || value.is_instance_of::<PyList>();
        if !is_kept
            || key.cast::<PyString>()?.to_str()?.starts_with('_')
            || holder.is_frozen(&key)?
        {
            continue;
        }
        out.set_item(&key, if is_array { value } else { holder.inside(&key, &value, depth + 1)? })?;
    }
    Ok(out)
}

/// The module that containers of parameters are in.
struct Holder<'a, 'py> {
    kind: &'a Bound<'py, PyAny>,
    trainable: bool,
    /// The names of what is frozen, if anything is.
    frozen: Option<Bound<'py, PyAny>>,
}

impl<'py> Holder<'_, 'py> {
    fn is_frozen(&self, key: &Bound<'py, PyAny>) -> PyResult<bool> {
        self.frozen.as_ref().map_or(Ok(false), |frozen| frozen.contains(key))
    }

    /// What is kept of a module, a dictionary or a list under `key`.
    fn inside(
        &self,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
        depth: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        too_deep(depth)?;
        let py = value.py();
        // Only what is frozen is asked for by its name.
        let name = |of: &dyn Display| match self.frozen {
            Some(_) => Ok(PyString::new(py, &format!("{key}.{of}")).into_any()),
            None => Ok::<_, PyErr>(key.clone()),
        };
        let Ok(dict) = value.cast::<PyDict>() else {
            let mut out = Vec::with_capacity(value.len()?);
            for (index, child) in value.try_iter()?.enumerate() {
                out.push(self.below(&name(&index)?, child?, depth + 1)?);
            }
            return Ok(PyList::new(py, out)?.into_any());
        };
        if value.is_instance(self.kind)? {
            return Ok(parameters_of(dict, self.kind, self.trainable, depth + 1)?.into_any());
        }
        let out = PyDict::new(py);
        for item in dict.items() {
            let (own, child): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
            out.set_item(&own, self.below(&name(&own)?, child, depth + 1)?)?;
        }
        Ok(out.into_any())
    }

    fn below(
        &self,
        key: &Bound<'py, PyAny>,
        value: Bound<'py, PyAny>,
        depth: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.is_frozen(key)? {
            return Ok(PyDict::new(value.py()).into_any());
        }
        if value.is_instance_of::<PyArray>() {
            return Ok(value);
        }
        match value.is_instance_of::<PyDict>() || value.is_instance_of::<PyList>() {
            true => self.inside(key, &value, depth),
            false => Ok(PyDict::new(value.py()).into_any()),
        }
    }
}
