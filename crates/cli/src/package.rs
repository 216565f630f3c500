//! What `inspect`, `run` and `convert` say of packages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cupola::package::{FILES, Function, Package, Port, Size, Trace};
use serde::Serialize;

use crate::failure::{Failure, Outcome};

/// An input or output.
#[derive(Serialize)]
pub struct PortLine {
    pub name: String,
    /// Its dtype and sizes.
    pub value: String,
}

impl From<&Port> for PortLine {
    fn from(port: &Port) -> Self {
        Self { name: port.name.clone(), value: port.to_string() }
    }
}

/// One signature of a function.
#[derive(Serialize)]
pub struct TraceLine {
    pub function: String,
    pub inputs: Vec<PortLine>,
    pub outputs: Vec<PortLine>,
    pub nodes: usize,
    /// How many nodes there are of each operation.
    pub operations: BTreeMap<&'static str, usize>,
}

impl TraceLine {
    pub fn of(function: &str, trace: &Trace) -> Self {
        let mut operations = BTreeMap::new();
        for node in trace.graph().nodes.iter().filter(|node| !node.op.is_input()) {
            *operations.entry(node.op.name()).or_default() += 1;
        }
        Self {
            function: function.to_owned(),
            inputs: trace.inputs().iter().map(PortLine::from).collect(),
            outputs: trace.outputs().iter().map(PortLine::from).collect(),
            nodes: trace.graph().nodes.len(),
            operations,
        }
    }

    pub fn all(package: &Package) -> Vec<Self> {
        let of = |f: &Function| f.traces.iter().map(|t| Self::of(&f.name, t)).collect::<Vec<_>>();
        package.functions().iter().flat_map(of).collect()
    }
}

impl std::fmt::Display for TraceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |ports: &[PortLine]| {
            let all: Vec<String> =
                ports.iter().map(|port| format!("{}: {}", port.name, port.value)).collect();
            all.join(", ")
        };
        let (inputs, outputs) = (list(&self.inputs), list(&self.outputs));
        writeln!(f, "{}({inputs}) -> ({outputs})", self.function)?;
        let mut operations: Vec<(&str, usize)> =
            self.operations.iter().map(|(&name, &count)| (name, count)).collect();
        operations.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        let operations: Vec<String> =
            operations.iter().map(|(name, count)| format!("{count} {name}")).collect();
        write!(f, "  {} nodes: {}", self.nodes, operations.join(", "))
    }
}

/// The function of a name, the only one, or `main`.
pub fn function<'p>(package: &'p Package, name: Option<&str>) -> Outcome<&'p Function> {
    let all = package.functions();
    let found = match (name, all) {
        (Some(name), _) => package.function(name),
        (None, [one]) => Some(one),
        (None, _) => package.function("main"),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|function| function.name.as_str()).collect();
        let names = names.join(", ");
        Failure::usage(match name {
            Some(name) => format!("--function {name}: the package has {names}"),
            None => format!("--function: the package has {names}: say which one"),
        })
    })
}

/// An error where one of the sizes is given twice: either would count for nothing.
pub fn given_once(sizes: &[(String, usize)]) -> Outcome {
    let mut names = BTreeSet::new();
    match sizes.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(Failure::usage(format!("--size {name}: is given twice"))),
        None => Ok(()),
    }
}

/// Whether a size of the input has this name.
pub fn has_size(port: &Port, name: &str) -> bool {
    port.sizes.iter().any(|size| matches!(size, Size::Named(own) if own == name))
}

/// How deep the files of a package of Core ML lie, as in `Data/com.apple.CoreML/weights`.
const DEPTH: usize = 4;

/// The files of a model or a package, a file or a folder: nothing is written over them.
pub fn files(package: &Path) -> Vec<PathBuf> {
    let within = match package.extension() {
        Some(kind) if kind.eq_ignore_ascii_case("mlpackage") => below(package, DEPTH),
        _ => FILES.map(|name| package.join(name)).to_vec(),
    };
    [package.to_owned()].into_iter().chain(within).collect()
}

/// The files in a folder, and in the folders in it down to this depth.
fn below(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if depth > 1 && path.is_dir() {
            all.extend(below(&path, depth - 1));
        }
        all.push(path);
    }
    all
}
