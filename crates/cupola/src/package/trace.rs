//! Named functions as graphs: what a package holds, and how it is called.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cupola_core::graph::polynomial::{MOST_NAMES, Polynomial, points};
use cupola_core::graph::{Graph, Traced, TracedAt};
use cupola_core::package::Formulas;
use cupola_core::prim::Call;
use cupola_core::{Array, Aval, DType, Error, Result, ops};

/// So many graphs for other sizes a trace keeps.
const MOST_SIZES: usize = 16;

/// What names are bound to where a trace is tried: the first, and how much more each next one is. What small and large
/// sizes do otherwise shows here.
const TRIALS: [(usize, usize); 5] = [(2, 0), (3, 1), (8, 3), (1021, 13), (4099, 17)];

/// Results are compared up to such sizes.
const MOST_COMPUTED: usize = 64;

/// How close they are: sums may be in another order.
const CLOSE: ops::Tolerance = ops::Tolerance { relative: 1e-2, absolute: 1e-4, equal_nan: true };

/// An input, and an axis of it.
type Place = (usize, usize);

/// The size of an axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Size {
    /// This one.
    Known(usize),
    /// Any, the same wherever the name stands.
    Named(String),
    /// One that follows from those of the inputs.
    Any,
}

/// An input or output of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its sizes.
    pub sizes: Vec<Size>,
    /// Whether it is given by name only, as Python's keyword arguments.
    pub is_keyword: bool,
}

impl Port {
    /// A port of the sizes of `aval`.
    pub fn new(name: impl Into<String>, aval: &Aval) -> Port {
        let sizes = aval.shape.iter().map(|&n| Size::Known(n)).collect();
        Port { name: name.into(), dtype: aval.dtype, sizes, is_keyword: false }
    }

    /// `aval` with these sizes in the place of the names.
    fn aval(&self, aval: &Aval, names: &[String], sizes: &[usize]) -> Aval {
        let size = |(size, &n): (&Size, &usize)| match size {
            Size::Named(name) => names.iter().position(|own| own == name).map_or(n, |at| sizes[at]),
            Size::Known(_) | Size::Any => n,
        };
        let shape = self.sizes.iter().zip(aval.shape.iter()).map(size).collect();
        Aval { shape, dtype: aval.dtype }
    }
}

/// A port for people: its dtype and sizes.
impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes: Vec<String> = self
            .sizes
            .iter()
            .map(|size| match size {
                Size::Known(n) => n.to_string(),
                Size::Named(name) => name.clone(),
                Size::Any => "?".into(),
            })
            .collect();
        write!(f, "{}[{}]", self.dtype, sizes.join(", "))
    }
}

/// A weight with its name.
#[derive(Clone)]
pub struct Weight {
    /// Its name in the package.
    pub name: String,
    /// Its elements.
    pub array: Array,
}

/// One signature of a function, and its graph.
pub struct Trace {
    pub(super) graph: Arc<Graph>,
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
    pub(super) weights: Vec<Weight>,
    /// How the graph follows from the named sizes; none where no size has a name, and in packages that were written
    /// before there were any: the graph alone says then what depends on sizes, which are 2 and more.
    pub(super) formulas: Option<Arc<Formulas>>,
    /// Graphs for sizes that were asked for.
    sized: Mutex<Vec<Arc<Call>>>,
}

/// A function under its name: a trace for each signature.
pub struct Function {
    /// The name.
    pub name: String,
    /// Its traces. The first that fits a call runs.
    pub traces: Vec<Trace>,
}

impl Trace {
    /// Traces `f` for inputs of these avals, named by `inputs`. Where the ports have sizes with names, it is for others,
    /// too: `f` is called for several bindings of the names, and each number that it records has to be a polynomial of
    /// the second degree in the named sizes, or one over such.
    ///
    /// # Errors
    /// Where `f` fails under trace, or has a number in its graph that does not follow from the named sizes so.
    pub fn of(
        inputs: Vec<Port>,
        avals: &[Aval],
        mut f: impl FnMut(&[Array]) -> Result<Vec<Array>>,
    ) -> Result<Trace> {
        Self::holding(inputs, avals, Vec::new(), |given, _| f(given))
    }

    /// The same of a function that takes the arrays of `weights`, too, which are held under their names.
    ///
    /// # Errors
    /// As [`Trace::of`].
    pub fn holding(
        inputs: Vec<Port>,
        avals: &[Aval],
        weights: Vec<Weight>,
        mut f: impl FnMut(&[Array], &[Array]) -> Result<Vec<Array>>,
    ) -> Result<Trace> {
        let names = names(&inputs);
        let held = weights.iter().map(|weight| weight.array.aval().clone());
        let all: Vec<Aval> = avals.iter().cloned().chain(held).collect();
        let mut f = |given: &[Array]| {
            let (given, held) = given.split_at(avals.len());
            f(given, held)
        };
        let named = |weights: Vec<Weight>, captures: Vec<Array>| {
            let named = |(number, array)| Weight { name: format!("w{number}"), array };
            weights.into_iter().chain(captures.into_iter().enumerate().map(named)).collect()
        };
        if names.is_empty() {
            let Traced { graph, captures } = Graph::trace(&all, f)?;
            let outputs = graph.output_avals().enumerate();
            let outputs = outputs.map(|(n, aval)| Port::new(format!("output{n}"), aval)).collect();
            return Trace::new(Arc::new(graph), inputs, outputs, named(weights, captures), None);
        }
        if names.len() > MOST_NAMES {
            let text = format!("{} sizes have names, and {MOST_NAMES} may", names.len());
            return Err(Error::argument("export", text));
        }
        let own = bound(&inputs, &names, &avals.iter().collect::<Vec<_>>());
        let own = own.ok_or_else(|| {
            Error::shape("export", "a name stands for two sizes, or for none".to_owned())
        })?;
        let bindings = points(names.len());
        let avals_at = |sizes: &Vec<usize>| -> Vec<Aval> {
            let own = inputs.iter().zip(&all).map(|(port, aval)| port.aval(aval, &names, sizes));
            own.chain(all[inputs.len()..].iter().cloned()).collect()
        };
        let sizes = |point: &Vec<i128>| point.iter().map(|&size| size as usize).collect();
        let avals: Vec<Vec<Aval>> = bindings.iter().map(sizes).map(|s| avals_at(&s)).collect();
        let trials: Vec<Vec<usize>> = TRIALS
            .iter()
            .map(|&(first, step)| (0..names.len()).map(|name| first + step * name).collect())
            .collect();
        let tried: Vec<Vec<Aval>> = trials.iter().map(avals_at).collect();
        let TracedAt { graphs, captures, tried } = Graph::trace_at(&avals, &tried, &mut f)?;
        let graphs: Vec<Arc<Graph>> = graphs.into_iter().map(Arc::new).collect();
        let formulas = Formulas::of(&graphs, &bindings)?;
        for (sizes, tried) in trials.iter().zip(tried) {
            let Some(tried) = tried.map(Arc::new) else { continue };
            let made = formulas.graph(&graphs[0], sizes)?;
            let held = weights.iter().map(|weight| &weight.array).chain(&captures);
            if !agree(&made, &tried, &held.cloned().collect::<Vec<_>>(), sizes)? {
                let shown = names.iter().zip(sizes).map(|(name, size)| format!("{name}={size}"));
                let shown = shown.collect::<Vec<_>>().join(", ");
                let text = format!("the function computes something else for {shown}");
                return Err(Error::shape("export", text));
            }
        }
        let graph = formulas.graph(&graphs[0], &own)?;
        let outputs = (0..graph.outputs.len())
            .map(|number| {
                let at = |graph: &Arc<Graph>| graph.output_avals().nth(number).cloned();
                let avals: Vec<Aval> = graphs.iter().filter_map(at).collect();
                let sizes = (0..avals[0].shape.rank()).map(|axis| {
                    let sizes: Vec<usize> = avals.iter().map(|aval| aval.shape[axis]).collect();
                    followed(&sizes, &names, &bindings)
                });
                Port { sizes: sizes.collect(), ..Port::new(format!("output{number}"), &avals[0]) }
            })
            .collect();
        let weights = named(weights, captures);
        Trace::new(graph, inputs, outputs, weights, Some(Arc::new(formulas)))
    }

    /// The same for any sizes that `f` takes: axes that may have others get names. Axes that have to be alike get one
    /// name, if they are of one size now; an axis of one, which broadcasts, and one of none stay what they are.
    ///
    /// # Errors
    /// Where `f` fails under trace, or is for no other sizes: the text says why.
    pub fn of_any_size(
        inputs: Vec<Port>,
        avals: &[Aval],
        mut f: impl FnMut(&[Array]) -> Result<Vec<Array>>,
    ) -> Result<Trace> {
        Graph::trace(avals, &mut f)?;
        let size = |&(input, axis): &Place| avals[input].shape[axis];
        let axes = (0..avals.len()).flat_map(|n| (0..avals[n].shape.rank()).map(move |a| (n, a)));
        let wide: Vec<Place> = axes.filter(|place| size(place) >= 2).collect();
        let mut takes = |places: &[Place]| {
            let aval = |(input, aval): (usize, &Aval)| {
                let more =
                    |(axis, &n): (usize, &usize)| n + usize::from(places.contains(&(input, axis)));
                let shape = aval.shape.iter().enumerate().map(more).collect();
                Aval { shape, dtype: aval.dtype }
            };
            let grown: Vec<Aval> = avals.iter().enumerate().map(aval).collect();
            let traced = Graph::trace_at(&[], &[grown], &mut f);
            traced.is_ok_and(|traced| traced.tried.iter().all(Option::is_some))
        };
        // Those that may be another size alone, or with others; the rest is what weights or the function say.
        let (mut open, rest): (Vec<Place>, Vec<Place>) =
            wide.iter().copied().partition(|place| takes(&[*place]));
        for number in 0..rest.len() {
            let alike =
                |place: &Place| (place.1, size(place)) == (rest[number].1, size(&rest[number]));
            let group: Vec<Place> = rest.iter().copied().filter(alike).collect();
            if group[0] == rest[number] && takes(&group) {
                open.extend(group);
            }
        }
        let mut cause = None;
        for axes in [&wide, &open] {
            for level in 0..3 {
                let group = |place: &Place| match level {
                    0 => *place,
                    1 => (place.1, size(place)),
                    _ => (0, size(place)),
                };
                let mut names: BTreeMap<Place, String> = BTreeMap::new();
                let mut ports = inputs.clone();
                for place @ &(input, axis) in axes {
                    let port = &mut ports[input];
                    let own = || format!("{}.{axis}", port.name);
                    let name = names.entry(group(place)).or_insert_with(own).clone();
                    port.sizes[axis] = Size::Named(name);
                }
                if (1..=MOST_NAMES).contains(&names.len()) {
                    match Self::of(ports, avals, &mut f) {
                        Ok(trace) => return Ok(trace),
                        Err(error) => cause = Some(error),
                    }
                }
            }
        }
        let cause = cause.map_or_else(|| "no axis may have another".into(), |e| e.to_string());
        let text = format!("the function cannot be for any sizes (shapeless): {cause}");
        Err(Error::shape("export", text))
    }

    /// A graph whose first inputs are `inputs`, and whose last ones are `weights`.
    ///
    /// # Errors
    /// Where they do not fit the graph.
    pub fn new(
        graph: Arc<Graph>,
        inputs: Vec<Port>,
        outputs: Vec<Port>,
        weights: Vec<Weight>,
        formulas: Option<Arc<Formulas>>,
    ) -> Result<Trace> {
        let least = least(formulas.as_deref());
        let wrong = |detail: String| Err(Error::argument("package", detail));
        if graph.inputs.len() != inputs.len() + weights.len()
            || graph.outputs.len() != outputs.len()
        {
            return wrong(format!(
                "a graph of {} inputs and {} outputs has {} ports and {} weights, and {} ports",
                graph.inputs.len(),
                graph.outputs.len(),
                inputs.len(),
                weights.len(),
                outputs.len()
            ));
        }
        let all = inputs.iter().zip(graph.input_avals());
        for (port, aval) in all.chain(outputs.iter().zip(graph.output_avals())) {
            let fits = |(size, &n): (&Size, &usize)| match size {
                Size::Known(known) => *known == n,
                Size::Named(_) => n >= least,
                Size::Any => true,
            };
            let is_own = port.dtype == aval.dtype
                && port.sizes.len() == aval.shape.rank()
                && port.sizes.iter().zip(aval.shape.iter()).all(fits);
            if !is_own {
                return wrong(format!("'{}' is {port}, in the graph {aval}", port.name));
            }
        }
        for (number, port) in inputs.iter().enumerate() {
            if inputs[..number].iter().any(|other| other.name == port.name) {
                return wrong(format!("two inputs are called '{}'", port.name));
            }
        }
        for (weight, aval) in weights.iter().zip(graph.input_avals().skip(inputs.len())) {
            if weight.array.aval() != aval {
                let (name, have) = (&weight.name, weight.array.aval());
                return wrong(format!("the weight '{name}' is {have}, in the graph {aval}"));
            }
        }
        Ok(Trace { graph, inputs, outputs, weights, formulas, sized: Mutex::default() })
    }

    /// What it takes.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// What it gives.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// The arrays that it holds.
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// What it computes: its inputs, then its weights.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// How that follows from the named sizes, where it is for any.
    pub fn formulas(&self) -> Option<&Arc<Formulas>> {
        self.formulas.as_ref()
    }

    /// The same with these names for its outputs, and for its weights by `name`.
    #[must_use]
    pub fn named(
        mut self,
        outputs: impl IntoIterator<Item = String>,
        name: impl Fn(&Array) -> Option<String>,
    ) -> Trace {
        self.outputs.iter_mut().zip(outputs).for_each(|(port, name)| port.name = name);
        for weight in &mut self.weights {
            if let Some(name) = name(&weight.array) {
                weight.name = name;
            }
        }
        self
    }

    /// Whether it takes arrays of these avals.
    pub fn fits(&self, given: &[&Aval]) -> bool {
        let least = least(self.formulas.as_deref());
        let takes = |(size, &n): (&Size, &usize)| !matches!(size, Size::Known(own) if *own != n);
        given.len() == self.inputs.len()
            && self.inputs.iter().zip(given).all(|(port, aval)| {
                port.dtype == aval.dtype
                    && port.sizes.len() == aval.shape.rank()
                    && port.sizes.iter().zip(aval.shape.iter()).all(takes)
            })
            && bound(&self.inputs, &names(&self.inputs), given)
                .is_some_and(|sizes| sizes.iter().all(|&size| size >= least))
    }

    /// The graph for inputs of other sizes.
    ///
    /// # Errors
    /// Where it is for none such.
    pub(super) fn with_sizes(&self, given: &[&Aval]) -> Result<Arc<Graph>> {
        if let Some(formulas) = &self.formulas {
            let sizes = bound(&self.inputs, &names(&self.inputs), given);
            return formulas.graph(&self.graph, &sizes.unwrap_or_default());
        }
        let rest = self.graph.input_avals().skip(self.inputs.len());
        let all: Vec<&Aval> = given.iter().copied().chain(rest).collect();
        let made = self.graph.with_sizes(&all).map(Arc::new);
        made.ok_or_else(|| Error::shape("package", format!("is for other sizes than {given:?}")))
    }

    /// The graph for these inputs, as a call.
    fn sized(&self, given: &[&Aval]) -> Result<Arc<Call>> {
        let mut sized = self.sized.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for = |call: &Arc<Call>| call.body.input_avals().zip(given).all(|(a, b)| a == *b);
        if let Some(at) = sized.iter().rposition(is_for) {
            sized[at..].rotate_left(1);
            return Ok(sized[sized.len() - 1].clone());
        }
        let is_own = self.graph.input_avals().zip(given).all(|(own, given)| own == *given);
        let body = match is_own {
            true => self.graph.clone(),
            false => self.with_sizes(given)?,
        };
        let call = Call::new("call", body, None);
        sized.push(call.clone());
        if sized.len() > MOST_SIZES {
            sized.remove(0);
        }
        Ok(call)
    }

    /// Records it on arrays for its inputs, in order.
    ///
    /// # Errors
    /// Where they do not fit.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let avals: Vec<&Aval> = inputs.iter().map(Array::aval).collect();
        if !self.fits(&avals) {
            let want: Vec<String> = self.inputs.iter().map(Port::to_string).collect();
            return Err(Error::shape("package", format!("takes {want:?}, was given {avals:?}")));
        }
        let call = self.sized(&avals)?;
        let all: Vec<&Array> = inputs.iter().chain(self.weights.iter().map(|w| &w.array)).collect();
        Array::apply_multi(call, &all)
    }
}

impl Function {
    /// Records the trace that fits these arrays.
    ///
    /// # Errors
    /// Where none does.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let avals: Vec<&Aval> = inputs.iter().map(Array::aval).collect();
        match self.traces.iter().find(|trace| trace.fits(&avals)) {
            Some(trace) => trace.call(inputs),
            None => {
                let takes = |trace: &Trace| {
                    let ports: Vec<String> = trace.inputs.iter().map(Port::to_string).collect();
                    format!("({})", ports.join(", "))
                };
                let all: Vec<String> = self.traces.iter().map(takes).collect();
                Err(Error::shape(
                    "package",
                    format!("'{}' takes {}, was given {avals:?}", self.name, all.join(" or ")),
                ))
            }
        }
    }
}

/// The names of sizes, in the order in which inputs have them.
fn names(inputs: &[Port]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for size in inputs.iter().flat_map(|port| &port.sizes) {
        if let Size::Named(name) = size
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    names
}

/// A size that is these where the names are bound to `bindings`.
fn followed(sizes: &[usize], names: &[String], bindings: &[Vec<i128>]) -> Size {
    if sizes.iter().all(|size| *size == sizes[0]) {
        return Size::Known(sizes[0]);
    }
    let sizes: Vec<i128> = sizes.iter().map(|&size| size as i128).collect();
    let name = Polynomial::of(&sizes, bindings).and_then(|found| found.name());
    name.map_or(Size::Any, |name| Size::Named(names[name].clone()))
}

/// Whether two graphs on the same inputs, of which the last are `held`, do the same, step by step; or, where they are
/// small, give the same: an axis may be as long as another by chance, and what is not needed then is not recorded.
fn agree(one: &Arc<Graph>, other: &Arc<Graph>, held: &[Array], sizes: &[usize]) -> Result<bool> {
    if Formulas::are_alike(one, other)? {
        return Ok(true);
    }
    if sizes.iter().any(|&size| size > MOST_COMPUTED)
        || !one.output_avals().eq(other.output_avals())
    {
        return Ok(false);
    }
    let free = one.inputs.len() - held.len();
    let given = one.input_avals().take(free).map(|aval| {
        let count = aval.shape.size();
        let values: Vec<f64> = (0..count).map(|i| (i as f64 * 0.7).sin()).collect();
        let values = Array::from_vec(values, aval.shape.clone())?;
        // Indices have to be there.
        let values = if aval.dtype.is_float() { values } else { ops::zeros_like(&values)? };
        ops::astype(&values, aval.dtype)
    });
    let inputs = given.chain(held.iter().cloned().map(Ok)).collect::<Result<Vec<Array>>>()?;
    let (one, other) = (one.replay(&inputs)?, other.replay(&inputs)?);
    for (one, other) in one.iter().zip(&other) {
        if !ops::allclose(one, other, CLOSE)?.item::<bool>()? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the named sizes are in these avals; `None` where one is two, or not there.
fn bound(inputs: &[Port], names: &[String], given: &[&Aval]) -> Option<Vec<usize>> {
    let mut found: Vec<Option<usize>> = vec![None; names.len()];
    for (port, aval) in inputs.iter().zip(given) {
        for (size, &n) in port.sizes.iter().zip(aval.shape.iter()) {
            let Size::Named(name) = size else { continue };
            let place = &mut found[names.iter().position(|own| own == name)?];
            if *place.get_or_insert(n) != n {
                return None;
            }
        }
    }
    found.into_iter().collect()
}

/// The least number that a name may stand for. Without formulas axes of one, which broadcast, stay what they are.
fn least(formulas: Option<&Formulas>) -> usize {
    if formulas.is_some() { 0 } else { 2 }
}
