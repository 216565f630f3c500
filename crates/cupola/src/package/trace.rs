//! Named functions as graphs: what a package holds, and how it is called.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use cupola_core::graph::{Graph, Traced};
use cupola_core::prim::Call;
use cupola_core::{Array, Aval, DType, Error, Result, Shape};

/// So many graphs for other sizes a trace keeps.
const MOST_SIZES: usize = 16;

/// The size of an axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Size {
    /// This one.
    Known(usize),
    /// Any from 2 on, the same wherever the name stands.
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
    /// Traces `f` for inputs of these avals, named by `inputs`. Where the ports have sizes with names,
    /// it is for others, too.
    ///
    /// # Errors
    /// Where `f` fails under trace, or has a size in its graph that does not follow from the named ones.
    pub fn of(
        inputs: Vec<Port>,
        avals: &[Aval],
        f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    ) -> Result<Trace> {
        Self::holding(inputs, avals, Vec::new(), true, |given, _| f(given))
    }

    /// The same of a function that takes the arrays of `weights`, too, which are held under their names.
    /// `is_general` says whether nothing that was done before depends on sizes.
    ///
    /// # Errors
    /// As [`Trace::of`].
    pub fn holding(
        inputs: Vec<Port>,
        avals: &[Aval],
        weights: Vec<Weight>,
        is_general: bool,
        f: impl FnOnce(&[Array], &[Array]) -> Result<Vec<Array>>,
    ) -> Result<Trace> {
        let (mut trace, own) = Self::traced(inputs, avals, weights, f)?;
        let is_general = is_general && own;
        let axes = trace.open_axes();
        if !axes.is_empty() {
            let other = is_general.then(|| trace.grown(&axes)).flatten().ok_or_else(tied)?;
            trace.name_outputs(&other);
        }
        Ok(trace)
    }

    /// The same for any sizes that the graph allows: axes that may have others get names. An axis of one
    /// broadcasts and one of none holds nothing, so they stay what they are.
    ///
    /// # Errors
    /// Where `f` fails under trace, or its graph is for no other sizes.
    pub fn of_any_size(
        inputs: Vec<Port>,
        avals: &[Aval],
        f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    ) -> Result<Trace> {
        let (mut trace, is_general) = Self::traced(inputs, avals, Vec::new(), |given, _| f(given))?;
        let axes = if is_general { trace.varying() } else { Vec::new() };
        let other = trace.grown(&axes).filter(|_| !axes.is_empty()).ok_or_else(tied)?;
        for (input, axis) in axes {
            let port = &mut trace.inputs[input];
            port.sizes[axis] = Size::Named(format!("{}.{axis}", port.name));
        }
        trace.name_outputs(&other);
        Ok(trace)
    }

    fn traced(
        inputs: Vec<Port>,
        avals: &[Aval],
        mut weights: Vec<Weight>,
        f: impl FnOnce(&[Array], &[Array]) -> Result<Vec<Array>>,
    ) -> Result<(Trace, bool)> {
        let held = weights.iter().map(|weight| weight.array.aval());
        let all: Vec<Aval> = avals.iter().chain(held).cloned().collect();
        let Traced { graph, captures, is_general } = Graph::trace(&all, |given| {
            let (given, held) = given.split_at(avals.len());
            f(given, held)
        })?;
        let named = |(number, array): (usize, Array)| Weight { name: format!("w{number}"), array };
        weights.extend(captures.into_iter().enumerate().map(named));
        let outputs = graph.output_avals().enumerate();
        let outputs = outputs.map(|(n, aval)| Port::new(format!("output{n}"), aval)).collect();
        Ok((Trace::new(Arc::new(graph), inputs, outputs, weights)?, is_general))
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
    ) -> Result<Trace> {
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
                Size::Named(_) => n >= 2,
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
        Ok(Trace { graph, inputs, outputs, weights, sized: Mutex::default() })
    }

    /// The axes of inputs whose sizes have names.
    fn open_axes(&self) -> Vec<(usize, usize)> {
        let axes = |(input, port): (usize, &Port)| {
            let named = port.sizes.iter().enumerate();
            let named = named.filter(|(_, size)| matches!(size, Size::Named(_)));
            named.map(|(axis, _)| (input, axis)).collect::<Vec<_>>()
        };
        self.inputs.iter().enumerate().flat_map(axes).collect()
    }

    /// The graph with one more along these axes of its inputs.
    fn grown(&self, axes: &[(usize, usize)]) -> Option<Graph> {
        let avals: Vec<Aval> = (self.graph.input_avals().take(self.inputs.len()).enumerate())
            .map(|(input, aval)| {
                let more =
                    |(axis, &n): (usize, &usize)| n + usize::from(axes.contains(&(input, axis)));
                let shape: Shape = aval.shape.iter().enumerate().map(more).collect();
                Aval { shape, dtype: aval.dtype }
            })
            .collect();
        self.with_sizes(&avals.iter().collect::<Vec<_>>())
    }

    /// The axes that may have another size: all, or those that may have one alone, or together with the
    /// others of their size.
    fn varying(&self) -> Vec<(usize, usize)> {
        let of = |(input, aval): (usize, &Aval)| {
            let sizes = aval.shape.iter().copied().enumerate();
            let wide = sizes.filter(|&(_, n)| n >= 2);
            wide.map(|(axis, n)| ((input, axis), n)).collect::<Vec<_>>()
        };
        let own = self.graph.input_avals().take(self.inputs.len());
        let all: Vec<((usize, usize), usize)> = own.enumerate().flat_map(of).collect();
        let axes: Vec<(usize, usize)> = all.iter().map(|(axis, _)| *axis).collect();
        if self.grown(&axes).is_some() {
            return axes;
        }
        let (mut found, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(axis, _)| self.grown(&[*axis]).is_some());
        let alone = found.len();
        let sizes: BTreeSet<usize> = rest.iter().map(|(_, n)| *n).collect();
        for size in sizes {
            let group: Vec<_> = rest.iter().copied().filter(|(_, n)| *n == size).collect();
            if self.grown(&group.iter().map(|(axis, _)| *axis).collect::<Vec<_>>()).is_some() {
                found.extend(group);
            }
        }
        let mut found: Vec<(usize, usize)> = found.into_iter().map(|(axis, _)| axis).collect();
        if self.grown(&found).is_none() {
            found.truncate(alone);
        }
        found
    }

    /// Gives the sizes of outputs names, where `other`, which is for inputs with one more along each
    /// open axis, has others.
    fn name_outputs(&mut self, other: &Graph) {
        let mut names: HashMap<usize, BTreeSet<&str>> = HashMap::new();
        for (port, aval) in self.inputs.iter().zip(self.graph.input_avals()) {
            for (size, &n) in port.sizes.iter().zip(aval.shape.iter()) {
                if let Size::Named(name) = size {
                    names.entry(n).or_default().insert(name);
                }
            }
        }
        let grown = self.graph.output_avals().zip(other.output_avals());
        for (port, (own, other)) in self.outputs.iter_mut().zip(grown) {
            let both = own.shape.iter().zip(other.shape.iter());
            for (size, (&n, &m)) in port.sizes.iter_mut().zip(both).filter(|(_, (n, m))| n != m) {
                let one = names.get(&n).filter(|names| names.len() == 1 && m == n + 1);
                *size = match one.and_then(BTreeSet::first) {
                    Some(&name) => Size::Named(name.to_owned()),
                    None => Size::Any,
                };
            }
        }
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
        let mut named: HashMap<&str, usize> = HashMap::new();
        let mut takes = |size, n: usize| match size {
            &Size::Known(known) => known == n,
            Size::Named(name) => n >= 2 && *named.entry(name).or_insert(n) == n,
            Size::Any => true,
        };
        given.len() == self.inputs.len()
            && self.inputs.iter().zip(given).all(|(port, aval)| {
                port.dtype == aval.dtype
                    && port.sizes.len() == aval.shape.rank()
                    && port.sizes.iter().zip(aval.shape.iter()).all(|(size, &n)| takes(size, n))
            })
    }

    /// The graph for inputs of other sizes.
    fn with_sizes(&self, given: &[&Aval]) -> Option<Graph> {
        let rest = self.graph.input_avals().skip(self.inputs.len());
        let all: Vec<&Aval> = given.iter().copied().chain(rest).collect();
        self.graph.with_sizes(&all)
    }

    /// The graph for these inputs, as a call.
    fn sized(&self, given: &[&Aval]) -> Option<Arc<Call>> {
        let mut sized = self.sized.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for = |call: &Arc<Call>| call.body.input_avals().zip(given).all(|(a, b)| a == *b);
        if let Some(at) = sized.iter().rposition(is_for) {
            sized[at..].rotate_left(1);
            return sized.last().cloned();
        }
        let is_own = self.graph.input_avals().zip(given).all(|(own, given)| own == *given);
        let body = match is_own {
            true => self.graph.clone(),
            false => Arc::new(self.with_sizes(given)?),
        };
        let call = Call::new("call", body, None);
        sized.push(call.clone());
        if sized.len() > MOST_SIZES {
            sized.remove(0);
        }
        Some(call)
    }

    /// Records it on arrays for its inputs, in order.
    ///
    /// # Errors
    /// Where they do not fit.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let avals: Vec<&Aval> = inputs.iter().map(Array::aval).collect();
        let call = self.fits(&avals).then(|| self.sized(&avals)).flatten();
        let Some(call) = call else {
            let want: Vec<String> = self.inputs.iter().map(Port::to_string).collect();
            return Err(Error::shape("package", format!("takes {want:?}, was given {avals:?}")));
        };
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

fn tied() -> Error {
    Error::shape(
        "export",
        "the function's graph has sizes in it that do not follow from those of its inputs: it cannot be \
         for any sizes (shapeless)",
    )
}
