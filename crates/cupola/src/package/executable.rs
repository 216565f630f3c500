//! Functions of a program as a package.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cupola_core::graph::{Definition, Executable, Placeholder, Size as Named};
use cupola_core::{Array, Aval, Error, Result, generator};

use super::{Function, Package, Port, Size, Target, Trace, Weight};

/// The port of the random generator's key.
const KEY: &str = "random";

/// What is written of an executable.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Bindings of the names of sizes, each of which becomes a trace of its own. Where there are none, the sizes keep
    /// their names.
    pub sizes: Vec<BTreeMap<String, usize>>,
    /// A text of the user's.
    pub metadata: Option<String>,
    /// The system that the package is for; none where it is for all.
    pub target: Option<Target>,
}

/// What can be written as a package; implemented by [`Executable`].
pub trait Save {
    /// The package of the functions.
    ///
    /// # Errors
    /// Where a function cannot be traced, or its graph has sizes that do not follow from the named ones and no
    /// bindings are given; where the target lacks something.
    fn package(&self, options: &Options) -> Result<Package>;

    /// Writes the functions to one file, or to a folder where `path` is one or ends like one.
    ///
    /// # Errors
    /// As [`Save::package`], and where the file cannot be written.
    ///
    /// # Example
    /// ```
    /// use cupola::graph::{self, Program};
    /// use cupola::package::{Options, Package, Save};
    /// use cupola::{Array, DType, Device, ops};
    /// let line = Program::new(|g| {
    ///     let x = g.placeholder("x", &["batch".into(), 2.into()], DType::F32)?;
    ///     let w = g.variable("w", || ops::ones([2], DType::F32))?;
    ///     g.function("predict", &[("y", &ops::matmul(&x, &w)?)], &[])
    /// })?;
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("line.cupola");
    /// line.compile(Device::CPU, &graph::Options::default())?.save(&path, &Options::default())?;
    ///
    /// let loaded = Package::open(&path)?.load(Device::CPU)?;
    /// assert_eq!(loaded.package().functions()[0].traces[0].inputs()[0].to_string(), "float32[batch, 2]");
    /// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2])?;
    /// assert_eq!(loaded.call("predict", &[x])?[0].to_vec::<f32>()?, [3.0, 7.0, 11.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn save(&self, path: impl AsRef<Path>, options: &Options) -> Result<()> {
        self.package(options)?.save(path)
    }
}

impl Save for Executable {
    fn package(&self, options: &Options) -> Result<Package> {
        let program = self.program();
        let all = program.functions().map(|name| self.function(name));
        let all = all.collect::<Result<Vec<Executable>>>()?;
        let none = [BTreeMap::new()];
        let bindings = if options.sizes.is_empty() { &none[..] } else { &options.sizes[..] };
        let of = |function: &Executable| {
            bindings.iter().map(|sizes| function.definition(sizes)).collect::<Result<Vec<_>>>()
        };
        let definitions = all.iter().map(of).collect::<Result<Vec<_>>>()?;
        // What some function changes is no constant to those that change something.
        let changing = definitions.iter().flatten().flat_map(|made| &made.writes);
        let changing: BTreeSet<usize> = changing.copied().collect();
        let variables = program.variables();
        let mut functions = Vec::with_capacity(all.len());
        for ((function, definitions), name) in all.iter().zip(&definitions).zip(program.functions())
        {
            let traces = definitions.iter().zip(bindings).map(|(definition, sizes)| {
                trace(function, definition, &variables, &changing, sizes)
                    .map_err(|error| Error::argument("save", format!("function '{name}': {error}")))
            });
            functions.push(Function { name: name.into(), traces: traces.collect::<Result<_>>()? });
        }
        let package = Package::new(functions)?.with_metadata(options.metadata.clone());
        match options.target {
            Some(target) => package.for_target(target),
            None => Ok(package),
        }
    }
}

/// The trace of a function. What it changes, and what it reads of what others change, it takes and gives; a function
/// that changes nothing holds the values of now.
fn trace(
    function: &Executable,
    definition: &Definition,
    variables: &[(String, Array)],
    changing: &BTreeSet<usize>,
    sizes: &BTreeMap<String, usize>,
) -> Result<Trace> {
    let Definition { graph, reads, writes, draws, .. } = definition;
    let is_state = |v: &usize| !writes.is_empty() && changing.contains(v);
    let touched: BTreeSet<usize> = reads.iter().chain(writes).copied().collect();
    let (state, rest): (Vec<usize>, Vec<usize>) = touched.into_iter().partition(is_state);
    let rest: Vec<usize> = rest.into_iter().filter(|v| reads.contains(v)).collect();
    let mut ports: Vec<Port> =
        function.placeholders().iter().map(|placeholder| port(placeholder, sizes)).collect();
    let fed = ports.len();
    ports.extend(state.iter().map(|&v| Port::new(variables[v].0.as_str(), variables[v].1.aval())));
    let key = generator::state();
    if *draws {
        ports.push(Port::new(KEY, key.aval()));
    }
    let own = graph.input_avals().take(fed);
    let state_avals = state.iter().map(|&v| variables[v].1.aval());
    let avals: Vec<Aval> =
        own.chain(state_avals).chain(draws.then(|| key.aval())).cloned().collect();
    let weights: Vec<Weight> = rest
        .iter()
        .map(|&v| Weight { name: variables[v].0.clone(), array: variables[v].1.clone() })
        .collect();
    let own: Vec<Aval> = graph.input_avals().take(fed).cloned().collect();
    let trace = Trace::holding(ports, &avals, weights, |given, held| {
        let is_own = own.iter().zip(given).all(|(aval, array)| aval == array.aval());
        let other = (!is_own).then(|| function.definition(&bound(function, given))).transpose()?;
        let Definition { graph, captures, .. } = match &other {
            None => definition,
            Some(other)
                if (&other.reads, &other.writes, other.draws) == (reads, writes, *draws) =>
            {
                other
            }
            Some(_) => {
                let text = "it reads or changes other variables for other sizes";
                return Err(Error::argument("export", text));
            }
        };
        let of = |v: &usize| match state.iter().position(|own| own == v) {
            Some(at) => given[fed + at].clone(),
            None => rest
                .iter()
                .position(|own| own == v)
                .map_or_else(|| variables[*v].1.clone(), |at| held[at].clone()),
        };
        let mut inputs: Vec<Array> = given[..fed].to_vec();
        inputs.extend(reads.iter().map(of));
        inputs.push(if *draws { given[given.len() - 1].clone() } else { key.clone() });
        inputs.extend(captures.iter().cloned());
        let mut outputs = graph.replay(&inputs)?;
        let after = draws.then(|| outputs.pop()).flatten();
        let changed = outputs.split_off(function.outputs().len());
        outputs.extend(state.iter().map(|v| match writes.iter().position(|own| own == v) {
            Some(at) => changed[at].clone(),
            None => of(v),
        }));
        outputs.extend(after);
        Ok(outputs)
    })?;
    let names = function.outputs().iter().cloned();
    let names = names.chain(state.iter().map(|&v| variables[v].0.clone()));
    let names: Vec<String> = names.chain(draws.then(|| KEY.to_owned())).collect();
    Ok(trace.named(names, |_| None))
}

/// What the named sizes are in arrays for the placeholders.
fn bound(function: &Executable, given: &[Array]) -> BTreeMap<String, usize> {
    let sizes = function.placeholders().iter().zip(given).flat_map(|(placeholder, array)| {
        placeholder.sizes.iter().zip(array.shape().iter().copied())
    });
    let named = |(size, n): (&Named, usize)| match size {
        Named::Named(name) => Some((name.clone(), n)),
        Named::Known(_) => None,
    };
    sizes.filter_map(named).collect()
}

/// A placeholder, whose sizes keep the names that are not bound.
fn port(placeholder: &Placeholder, sizes: &BTreeMap<String, usize>) -> Port {
    let size = |size: &Named| match size {
        Named::Known(size) => Size::Known(*size),
        Named::Named(name) => {
            sizes.get(name).map_or_else(|| Size::Named(name.clone()), |&size| Size::Known(size))
        }
    };
    let Placeholder { name, dtype, .. } = placeholder;
    let sizes = placeholder.sizes.iter().map(size).collect();
    Port { name: name.clone(), dtype: *dtype, sizes, is_keyword: false }
}
