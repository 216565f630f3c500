//! `cupola inspect`.

use std::path::PathBuf;

use cupola::package::Package;
use serde::Serialize;

use crate::args::InspectArgs;
use crate::failure::Outcome;
use crate::output::Output;
use crate::package::{TraceLine, files};
use crate::table::Table;

#[derive(Serialize)]
struct Report {
    package: PathBuf,
    producer: String,
    targets: Vec<String>,
    metadata: Option<String>,
    traces: Vec<TraceLine>,
    weights: Vec<WeightLine>,
    /// The bytes of all weights.
    bytes: usize,
}

#[derive(Serialize)]
struct WeightLine {
    name: String,
    value: String,
    bytes: usize,
}

pub fn run(args: &InspectArgs) -> Outcome {
    let output = Output::new(args.json.as_deref())?;
    output.spares("a file of the package", || files(&args.package))?;
    let package = Package::verify(&args.package)?;
    output.line(format!("{}: written by {}", args.package.display(), package.producer()));
    if !package.targets().is_empty() {
        output.line(format!("for {}", package.targets().join(", ")));
    }
    let traces = TraceLine::all(&package);
    for line in &traces {
        output.line(line);
    }
    if args.graph {
        for function in package.functions() {
            for (number, trace) in function.traces.iter().enumerate() {
                output.line(format!("\n{}, trace {number}:\n{}", function.name, trace.graph()));
            }
        }
    }
    let mut weights: Vec<WeightLine> = Vec::new();
    let all = package.functions().iter().flat_map(|f| &f.traces).flat_map(|t| t.weights());
    for weight in all {
        // Functions share them.
        if weights.iter().all(|known| known.name != weight.name) {
            let aval = weight.array.aval();
            let (value, bytes) = (aval.to_string(), aval.bytes());
            weights.push(WeightLine { name: weight.name.clone(), value, bytes });
        }
    }
    let bytes = weights.iter().map(|weight| weight.bytes).sum();
    if !weights.is_empty() {
        let mut table = Table::new(&["weight", "elements", "bytes"]);
        for WeightLine { name, value, bytes } in &weights {
            table.row([name.clone(), value.clone(), bytes.to_string()]);
        }
        output.line(table);
    }
    output.line(format!("{} weights of {bytes} bytes", weights.len()));
    output.json(&Report {
        package: args.package.clone(),
        producer: package.producer().to_owned(),
        targets: package.targets().to_vec(),
        metadata: package.metadata().map(str::to_owned),
        traces,
        weights,
        bytes,
    })
}
