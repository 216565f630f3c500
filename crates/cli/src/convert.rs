//! `cupola convert`: a package of a model of ONNX, or of another package, for a system or for all.

use std::collections::BTreeSet;

use cupola::package::{Function, Lack, Package, Port, Size, Target, Trace};
use cupola::{Array, Aval};
use cupola_import::onnx::{self, Kind, Model};
use serde::Serialize;

use crate::args::ConvertArgs;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, replaceable};
use crate::package::TraceLine;
use crate::table::Table;

/// What a size with a name is while a model is traced that is to be for any: larger than what counts as
/// a special one.
const EXAMPLE: usize = 3;

#[derive(Serialize)]
struct Report {
    traces: Vec<TraceLine>,
    target: Option<String>,
    /// What the target lacks; where there is something, no package was written.
    lacks: Vec<LackLine>,
}

#[derive(Serialize)]
struct LackLine {
    function: String,
    node: usize,
    operation: &'static str,
    dtype: String,
    /// Where it would work.
    works: Vec<String>,
}

impl From<&Lack> for LackLine {
    fn from(lack: &Lack) -> Self {
        let Lack { function, node, op, dtype, works } = lack;
        let (function, dtype, works) = (function.clone(), dtype.to_string(), works.clone());
        Self { function, node: *node, operation: op, dtype, works }
    }
}

pub fn run(args: &ConvertArgs) -> Outcome {
    let output = Output::new(args.report.as_deref())?;
    output.spares("the model", || [args.model.clone()])?;
    output.spares("the package", || [args.out.clone()])?;
    if !args.out.is_dir() && !args.out.to_string_lossy().ends_with('/') {
        replaceable("--out", &args.out)?;
    }
    let is_onnx = args.model.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx"));
    let package = if is_onnx { of_onnx(args)? } else { of_package(args)? };
    let target = args.target.map(|system| Target { system, minimum: args.minimum_os });
    let traces = TraceLine::all(&package);
    let lacks = target.map(|target| target.lacks(&package)).unwrap_or_default();
    let shown = target.map(|target| target.to_string());
    let lines = lacks.iter().map(LackLine::from).collect();
    output.json(&Report { traces, target: shown.clone(), lacks: lines })?;
    if let (Some(shown), false) = (shown, lacks.is_empty()) {
        let mut table = Table::new(&["function", "node", "operation", "dtype", "works on"]);
        for Lack { function, node, op, dtype, works } in &lacks {
            let works = works.join(", ");
            let cells =
                [function.clone(), node.to_string(), (*op).into(), dtype.to_string(), works];
            table.row(cells);
        }
        output.line(table);
        let count = lacks.len();
        return Err(Failure::new(format!("--target {shown}: lacks what {count} nodes need")));
    }
    let package = match target {
        Some(target) => package.for_target(target)?,
        None => package,
    };
    package.save(&args.out)?;
    for line in TraceLine::all(&package) {
        output.line(line);
    }
    output.line(format!("wrote {}", args.out.display()));
    Ok(())
}

fn of_package(args: &ConvertArgs) -> Outcome<Package> {
    if let Some((name, _)) = args.size.first() {
        return Err(Failure::usage(format!("--size {name}: a package has its sizes already")));
    }
    let package = Package::verify(&args.model)?;
    let Some(name) = &args.name else { return Ok(package) };
    let metadata = package.metadata().map(str::to_owned);
    let mut functions = package.into_functions();
    match &mut functions[..] {
        [one] => one.name.clone_from(name),
        all => {
            let count = all.len();
            return Err(Failure::usage(format!("--name: the package has {count} functions")));
        }
    }
    Ok(Package::new(functions)?.with_metadata(metadata))
}

fn of_onnx(args: &ConvertArgs) -> Outcome<Package> {
    let model = Model::load(&args.model).map_err(cupola::Error::from)?;
    let mut ports = Vec::new();
    let mut avals = Vec::new();
    for port in model.inputs() {
        let (port, aval) = input(port, &args.size)
            .map_err(|detail| Failure::new(format!("{}: {detail}", args.model.display())))?;
        ports.push(port);
        avals.push(aval);
    }
    let sizes: BTreeSet<String> = model.inputs().into_iter().flat_map(open_sizes).collect();
    if let Some((name, _)) = args.size.iter().find(|(name, _)| !sizes.contains(name)) {
        let all: Vec<&str> = sizes.iter().map(String::as_str).collect();
        let all = all.join(", ");
        return Err(Failure::usage(format!("--size {name}: the model's sizes are: {all}")));
    }
    let open: Vec<String> = sizes
        .iter()
        .filter(|name| args.size.iter().all(|(given, _)| given != *name))
        .map(|name| format!("--size '{name}=N'"))
        .collect();
    let names: Vec<String> = ports.iter().map(|port| port.name.clone()).collect();
    let trace = Trace::of(ports, &avals, |arrays| {
        let given: Vec<(&str, Array)> =
            names.iter().map(String::as_str).zip(arrays.iter().cloned()).collect();
        let outputs = model.run(&given).map_err(cupola::Error::from)?;
        Ok(outputs.into_iter().map(|(_, array)| array).collect())
    });
    let trace = trace.map_err(|error| {
        let failure = Failure::from(error);
        match open.is_empty() {
            true => failure,
            false => {
                failure.hint(format!("its open sizes may have to be given: {}", open.join(" ")))
            }
        }
    })?;
    let held: Vec<(&str, &Array)> =
        model.initializers().map(|(name, tensor)| (name, &tensor.array)).collect();
    let named = |array: &Array| {
        held.iter().find(|(_, own)| own.same(array)).map(|(name, _)| (*name).to_owned())
    };
    let outputs = model.outputs().iter().map(|port| port.name.clone());
    let trace = trace.named(outputs, named);
    let name = args.name.clone().unwrap_or_else(|| "main".to_owned());
    Ok(Package::new(vec![Function { name, traces: vec![trace] }])?)
}

/// What an axis is called whose size is open: as in the model, or by its input and its number.
fn open_size(port: &onnx::Port, axis: usize, size: &onnx::Size) -> Option<String> {
    match size {
        onnx::Size::Known(_) => None,
        onnx::Size::Named(name) => Some(name.clone()),
        onnx::Size::Unknown => Some(format!("{}.{axis}", port.name)),
    }
}

fn open_sizes(port: &onnx::Port) -> Vec<String> {
    let sizes = port.sizes.iter().flatten().enumerate();
    sizes.filter_map(|(axis, size)| open_size(port, axis, size)).collect()
}

/// An input of a model as a port, and what it is traced with.
fn input(port: &onnx::Port, given: &[(String, usize)]) -> Result<(Port, Aval), String> {
    let name = &port.name;
    if port.kind != Kind::Tensor {
        return Err(format!("the input '{name}' is no tensor: packages have arrays only"));
    }
    let element = port.element.ok_or_else(|| format!("the input '{name}' has no element type"))?;
    let sizes = port.sizes.as_ref().ok_or_else(|| format!("the input '{name}' has no shape"))?;
    let size = |(axis, size): (usize, &onnx::Size)| {
        let known = match size {
            onnx::Size::Known(n) => Some(*n),
            onnx::Size::Named(_) | onnx::Size::Unknown => None,
        };
        let name = open_size(port, axis, size).unwrap_or_default();
        let asked = given.iter().find(|(known, _)| *known == name).map(|(_, n)| *n);
        match known.or(asked) {
            Some(n) => (Size::Known(n), n),
            None => (Size::Named(name), EXAMPLE),
        }
    };
    let (sizes, shape): (Vec<Size>, Vec<usize>) = sizes.iter().enumerate().map(size).unzip();
    let aval = Aval::new(shape, element.dtype());
    Ok((Port { sizes, ..Port::new(name.as_str(), &aval) }, aval))
}
