//! `cupola explain`.

use std::path::Path;

use cupola::device::{Stream, with_stream};
use cupola::explain::{Report, Roofline};
use cupola::io::write_whole;
use cupola::nn::{self, Layer, Reduction};
use cupola::package::{Package, Port, Size};
use cupola::train::{MODEL_FILE, Model};
use cupola::{Array, DType, ops, plan};

use crate::args::ExplainArgs;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, replaceable, spared, spinner};
use crate::package::{files, function, given_once, has_size};
use crate::train::files_of;

pub fn run(args: &ExplainArgs) -> Outcome {
    given_once(&args.size)?;
    let output = Output::new(args.json.as_deref())?;
    let model = || [args.run.clone(), args.run.join(MODEL_FILE)];
    let beside = || files_of(&args.run).into_iter().chain(files(&args.run));
    output.spares("the model", model)?;
    output.spares("a file beside the model", beside)?;
    if let Some(path) = &args.svg {
        spared("--svg", path, "the model", model())?;
        spared("--svg", path, "a file beside the model", beside())?;
        output.spares("what --svg goes to", || [path.clone()])?;
        replaceable("--svg", path)?;
    }
    with_stream(Stream::of(args.device), || {
        let results = match is_package(&args.run) {
            true => of_package(args)?,
            false => of_run(args)?,
        };
        let busy = spinner(&format!("measuring {}", args.device));
        let report = Report::new(plan::explain(&results)?, Roofline::of(args.device));
        busy.finish_and_clear();
        output.line(report.to_string().trim_end());
        if let Some(path) = &args.svg {
            write_whole(Path::new(path), report.to_svg())?;
        }
        output.json(&report.to_json())
    })
}

/// Whether this is a package, and no folder of a run.
fn is_package(path: &Path) -> bool {
    path.is_file() || path.join("manifest.json").is_file()
}

/// What a function of a package makes of zeros.
fn of_package(args: &ExplainArgs) -> Outcome<Vec<Array>> {
    if args.training || args.batch_size.is_some() {
        let option = if args.training { "--training" } else { "--batch-size" };
        let package = args.run.display();
        return Err(Failure::usage(format!("{option}: is of runs, and {package} is a package")));
    }
    let package = Package::open(&args.run)?;
    let function = function(&package, args.function.as_deref())?;
    let Some(trace) = function.traces.first() else {
        return Err(Failure::new(format!("{}: has no trace", function.name)));
    };
    let size = |port: &Port, size: &Size| match size {
        Size::Known(size) => Ok(*size),
        Size::Named(name) => {
            let found = args.size.iter().find(|(given, _)| given == name).map(|given| given.1);
            found.ok_or_else(|| {
                Failure::usage(format!("--size {name}=N: input '{}' is {port}", port.name))
            })
        }
        Size::Any => {
            Err(Failure::new(format!("input '{}' has a size that is not said", port.name)))
        }
    };
    let has = |name: &str| trace.inputs().iter().any(|port| has_size(port, name));
    if let Some((name, _)) = args.size.iter().find(|(name, _)| !has(name)) {
        return Err(Failure::usage(format!("--size {name}: {} has no such size", function.name)));
    }
    let zeros = |port: &Port| {
        let shape = port.sizes.iter().map(|of| size(port, of)).collect::<Outcome<Vec<_>>>()?;
        Ok(ops::zeros(shape, port.dtype)?)
    };
    let inputs = trace.inputs().iter().map(zeros).collect::<Outcome<Vec<_>>>()?;
    cupola::eval(&inputs)?;
    Ok(function.call(&inputs)?)
}

/// What the model of a run makes of images.
fn of_run(args: &ExplainArgs) -> Outcome<Vec<Array>> {
    if args.function.is_some() || !args.size.is_empty() {
        let option = if args.function.is_some() { "--function" } else { "--size" };
        let run = args.run.display();
        return Err(Failure::usage(format!("{option}: is of packages, and {run} is none")));
    }
    let model = Model::load(args.run.join(MODEL_FILE))?;
    recorded(&model, args.batch_size.unwrap_or(1), args.training)
}

/// What the model makes of a batch of images: its scores, or with `training` the loss and the gradients.
fn recorded(model: &Model, batch: usize, training: bool) -> Outcome<Vec<Array>> {
    let description = &model.description;
    let (side, channels) = (description.side, description.channels);
    let images = ops::zeros([batch, side, side, channels], DType::F32)?;
    let labels = ops::zeros([batch], DType::I32)?;
    cupola::eval(&[images.clone(), labels.clone()])?;
    if !training {
        return Ok(vec![model.network.forward(&images)?]);
    }
    let ((loss, ()), gradients) = nn::value_and_grad(&model.network, |network| {
        Ok((nn::nll_loss(&network.forward(&images)?, &labels, Reduction::Mean)?, ()))
    })?;
    Ok(std::iter::once(loss).chain(gradients.values().cloned()).collect())
}
