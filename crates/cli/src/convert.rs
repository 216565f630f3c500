//! `cupola convert`: a package of a model of ONNX or Core ML, or of another package, for a system or for
//! all.

use std::collections::BTreeSet;

use cupola::package::{Function, Lack, Package, Port, Size, Target, Trace};
use cupola::{Array, Aval, DType, on_one_line};
use cupola_import::{coreml, onnx};
use serde::Serialize;

use crate::args::ConvertArgs;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, outside, replaceable, spared};
use crate::package::{TraceLine, files, given_once};
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
    given_once(&args.size)?;
    if let Some(report) = &args.report {
        outside("--report", report, "a file of the package", &args.out)?;
    }
    let mut output = Output::of("--report", args.report.as_deref())?;
    output.leaves("--out", &args.out)?;
    output.spares("a file of the model", || files(&args.model))?;
    spared("--out", &args.out, "a file of the model", files(&args.model))?;
    if !args.out.is_dir() && !args.out.to_string_lossy().ends_with('/') {
        replaceable("--out", &args.out)?;
    }
    let extension = args.model.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    let package = match extension.as_deref() {
        Some("onnx") => of_onnx(args, &output)?,
        Some("mlpackage" | "mlmodel") => of_coreml(args)?,
        _ => of_package(args)?,
    };
    let target = args
        .target
        .map(|system| Target { narrow: args.narrow, ..Target::new(system, args.minimum_os) });
    let traces = TraceLine::all(&package);
    let lacks = target.map(|target| target.lacks(&package)).transpose()?.unwrap_or_default();
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
    output.line(format!("wrote {}", on_one_line(&args.out.display().to_string())));
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

/// What a function of a model gives for arrays by name.
type Run<'m> = Box<dyn Fn(&[(&str, Array)]) -> cupola::Result<Vec<Array>> + 'm>;

/// A function of a model: what goes in, what comes out, what it holds, and how it runs.
struct Source<'m> {
    name: String,
    inputs: Vec<Input>,
    outputs: Vec<String>,
    held: Vec<(&'m str, &'m Array)>,
    run: Run<'m>,
}

/// An input of a model.
struct Input {
    name: String,
    dtype: DType,
    sizes: Vec<Axis>,
}

/// The size of an axis: known, or open with a name and what the model is traced with.
enum Axis {
    Known(usize),
    Open(String, usize),
}

fn of_onnx(args: &ConvertArgs, output: &Output) -> Outcome<Package> {
    let model = onnx::Model::load(&args.model).map_err(cupola::Error::from)?;
    let beside = || model.beside().iter().cloned();
    spared("--out", &args.out, "a file of the model", beside())?;
    output.spares("a file of the model", beside)?;
    let inputs = model.inputs().into_iter().map(onnx_input).collect::<Result<Vec<_>, _>>();
    let source = Source {
        name: args.name.clone().unwrap_or_else(|| "main".to_owned()),
        inputs: inputs.map_err(|detail| wrong(args, &detail))?,
        outputs: model.outputs().iter().map(|port| port.name.clone()).collect(),
        held: model.initializers().map(|(name, tensor)| (name, &tensor.array)).collect(),
        run: Box::new(|given| {
            let outputs = model.run(given).map_err(cupola::Error::from)?;
            Ok(outputs.into_iter().map(|(_, array)| array).collect())
        }),
    };
    Ok(Package::new(functions(args, &[source])?)?)
}

fn of_coreml(args: &ConvertArgs) -> Outcome<Package> {
    let model = coreml::Model::load(&args.model).map_err(cupola::Error::from)?;
    for warning in model.warnings() {
        eprintln!("warning: {}", on_one_line(&warning.to_string()));
    }
    let named = |name: &&str| model.function(name);
    let models: Vec<coreml::Model> = model.functions().iter().filter_map(named).collect();
    if let (Some(_), false) = (&args.name, models.len() == 1) {
        let count = models.len();
        return Err(Failure::usage(format!("--name: the model has {count} functions")));
    }
    let sources: Vec<Source<'_>> = models
        .iter()
        .map(|model| Source {
            name: args.name.clone().unwrap_or_else(|| model.name().to_owned()),
            inputs: model.inputs().into_iter().chain(model.states()).map(coreml_input).collect(),
            outputs: model
                .outputs()
                .iter()
                .cloned()
                .chain(model.states().iter().map(|state| state.name.clone()))
                .collect(),
            held: model.constants(),
            run: Box::new(|given| {
                let outputs = model.run(given).map_err(cupola::Error::from)?;
                Ok(outputs.into_iter().map(|(_, array)| array).collect())
            }),
        })
        .collect();
    Ok(Package::new(functions(args, &sources)?)?)
}

fn wrong(args: &ConvertArgs, detail: &str) -> Failure {
    Failure::new(format!("{}: {detail}", args.model.display()))
}

/// The functions of a model, traced.
fn functions(args: &ConvertArgs, sources: &[Source<'_>]) -> Outcome<Vec<Function>> {
    let open = |axis: &Axis| match axis {
        Axis::Open(name, _) => Some(name.clone()),
        Axis::Known(_) => None,
    };
    let inputs = sources.iter().flat_map(|source| &source.inputs);
    let sizes: BTreeSet<String> = inputs.flat_map(|i| &i.sizes).filter_map(open).collect();
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
    let function = |source: &Source<'_>| -> Outcome<Function> {
        let pairs = source.inputs.iter().map(|input| port(input, &args.size));
        let (ports, avals): (Vec<Port>, Vec<Aval>) = pairs.unzip();
        let trace = Trace::of(ports, &avals, |arrays| {
            let names = source.inputs.iter().map(|input| input.name.as_str());
            let given: Vec<(&str, Array)> = names.zip(arrays.iter().cloned()).collect();
            (source.run)(&given)
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
        let named = |array: &Array| {
            let held = source.held.iter().find(|(_, own)| own.same(array));
            held.map(|(name, _)| (*name).to_owned())
        };
        let trace = trace.named(source.outputs.iter().cloned(), named);
        Ok(Function { name: source.name.clone(), traces: vec![trace] })
    };
    sources.iter().map(function).collect()
}

/// An input of a model as a port, and what it is traced with.
fn port(input: &Input, given: &[(String, usize)]) -> (Port, Aval) {
    let size = |axis: &Axis| match axis {
        Axis::Known(size) => (Size::Known(*size), *size),
        Axis::Open(name, example) => match given.iter().find(|(known, _)| known == name) {
            Some((_, size)) => (Size::Known(*size), *size),
            None => (Size::Named(name.clone()), *example),
        },
    };
    let (sizes, shape): (Vec<Size>, Vec<usize>) = input.sizes.iter().map(size).unzip();
    let aval = Aval::new(shape, input.dtype);
    (Port { sizes, ..Port::new(input.name.as_str(), &aval) }, aval)
}

/// An input of ONNX. An axis that has no name is called by its input and its number.
fn onnx_input(port: &onnx::Port) -> Result<Input, String> {
    let name = &port.name;
    if port.kind != onnx::Kind::Tensor {
        return Err(format!("the input '{name}' is no tensor: packages have arrays only"));
    }
    let element = port.element.ok_or_else(|| format!("the input '{name}' has no element type"))?;
    let sizes = port.sizes.as_ref().ok_or_else(|| format!("the input '{name}' has no shape"))?;
    let axis = |(axis, size): (usize, &onnx::Size)| match size {
        onnx::Size::Known(size) => Axis::Known(*size),
        onnx::Size::Named(name) => Axis::Open(name.clone(), EXAMPLE),
        onnx::Size::Unknown => Axis::Open(format!("{name}.{axis}"), EXAMPLE),
    };
    let sizes = sizes.iter().enumerate().map(axis).collect();
    Ok(Input { name: name.clone(), dtype: element.dtype(), sizes })
}

/// An input of Core ML, whose axes have no names. An open one is traced with a size that it takes.
fn coreml_input(port: &coreml::Port) -> Input {
    let name = &port.name;
    // The shapes of a list belong together: those of the last are one example.
    let listed = port.shapes.last();
    let axis = |(axis, size): (usize, &coreml::Size)| match *size {
        coreml::Size::Known(size) => Axis::Known(size),
        coreml::Size::Range(least, most) => {
            let example = EXAMPLE.max(least).min(most.unwrap_or(usize::MAX));
            let example = listed.map_or(example, |shape| shape[axis]);
            Axis::Open(format!("{name}.{axis}"), example)
        }
    };
    let sizes = port.sizes.iter().enumerate().map(axis).collect();
    Input { name: name.clone(), dtype: port.dtype, sizes }
}
