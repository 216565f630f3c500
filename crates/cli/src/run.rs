//! `cupola run`: a function of a package, on files, images or random numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cupola::device::with_stream;
use cupola::io::{npy, write_whole};
use cupola::ops::random;
use cupola::package::{Function, Package, Port, Size, Trace};
use cupola::{Array, Aval, DType, Shape, Stream, ops};
use serde::Serialize;

use crate::args::RunArgs;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::{Output, replaceable, spared, writable_folder};
use crate::package::{files, function, given_once, has_size};
use crate::pictures;
use crate::profile::Profiling;
use crate::table::Table;

/// Later runs are measured so long, and so often at least and at most.
const MEASURED: Duration = Duration::from_secs(2);
const RUNS: std::ops::RangeInclusive<usize> = 5..=1000;

#[derive(Serialize)]
struct Report {
    function: String,
    device: String,
    outputs: Vec<OutputLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bench: Option<Bench>,
}

#[derive(Serialize)]
struct OutputLine {
    name: String,
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
}

/// Times in milliseconds.
#[derive(Serialize)]
struct Bench {
    load_ms: f64,
    first_ms: f64,
    median_ms: f64,
    least_ms: f64,
    runs: usize,
}

pub fn run(args: &RunArgs) -> Outcome {
    given_once(&args.size)?;
    let output = Output::new(args.json.as_deref())?;
    output.spares("the package", || files(&args.package))?;
    let given = || given(args);
    output.spares("an input", given)?;
    let profiling = Profiling::new(args.profile.as_deref())?;
    profiling.spares("the package", || files(&args.package))?;
    profiling.spares("an input", given)?;
    profiling.spares("what --json goes to", || args.json.clone())?;
    if let Some(folder) = &args.output {
        output.spares("what --output goes to", || [folder.clone()])?;
        profiling.spares("what --output goes to", || [folder.clone()])?;
        writable_folder("--output", folder)?;
    }
    profiling.record(|| with_stream(Stream::of(args.device), || work(args, &output, &profiling)))
}

fn work(args: &RunArgs, output: &Output, profiling: &Profiling<'_>) -> Outcome {
    // A number that was damaged is as good as another: hashes tell.
    let mut package = Package::verify(&args.package)?;
    let start = Instant::now();
    if args.bench {
        package = Package::open(&args.package)?;
    }
    let load = start.elapsed();
    let function = function(&package, args.function.as_deref())?;
    let inputs = Inputs { args, function }.arrays()?;
    let avals: Vec<&Aval> = inputs.iter().map(Array::aval).collect();
    let trace = function.traces.iter().find(|trace| trace.fits(&avals));
    let ports = trace.map(Trace::outputs).unwrap_or_default();
    let places = places(args, ports);
    output.spares("an output", || places.clone())?;
    profiling.spares("an output", || places.clone())?;
    for place in &places {
        spared("--output", place, "an input", given(args))?;
        spared("--output", place, "the package", files(&args.package))?;
        replaceable("--output", place)?;
    }
    let compute = || -> Outcome<(Vec<Array>, Duration)> {
        let start = Instant::now();
        let outputs = function.call(&inputs)?;
        cupola::wait(&outputs)?;
        Ok((outputs, start.elapsed()))
    };
    let (outputs, first) = compute()?;
    let bench = match args.bench {
        true => Some(measure(load, first, || compute().map(|(_, time)| time))?),
        false => None,
    };
    let mut lines: Vec<OutputLine> = Vec::with_capacity(outputs.len());
    let mut table = Table::new(&["output", "value", "least", "mean", "largest"]);
    let mut places = places.into_iter();
    for (port, array) in ports.iter().zip(&outputs) {
        let file = places.next();
        if let Some(path) = &file {
            write_whole(path, npy::write(array)?)?;
        }
        let value = array.aval().to_string();
        let summary = summary(array)?.into_iter().map(|n| format!("{n:.6}"));
        table.row([port.name.clone(), value.clone()].into_iter().chain(summary));
        lines.push(OutputLine { name: port.name.clone(), value, file });
    }
    output.line(table);
    if let Some(bench) = &bench {
        let Bench { load_ms, first_ms, median_ms, least_ms, runs } = bench;
        output.line(format!(
            "load {load_ms:.2} ms, first run {first_ms:.2} ms, then {median_ms:.3} ms (median of \
             {runs}, least {least_ms:.3}) on {}",
            args.device
        ));
    }
    let (function, device) = (function.name.clone(), args.device.to_string());
    output.json(&Report { function, device, outputs: lines, bench })
}

/// The files that inputs are read from.
fn given(args: &RunArgs) -> Vec<PathBuf> {
    args.input.iter().map(|(_, file)| PathBuf::from(file)).collect()
}

/// Where outputs are written to, if they are.
fn places(args: &RunArgs, ports: &[Port]) -> Vec<PathBuf> {
    let Some(folder) = &args.output else { return Vec::new() };
    let mut places: Vec<PathBuf> = Vec::with_capacity(ports.len());
    for port in ports {
        let name = file_name(&port.name, places.iter().map(PathBuf::as_path));
        places.push(folder.join(name));
    }
    places
}

fn measure(load: Duration, first: Duration, run: impl Fn() -> Outcome<Duration>) -> Outcome<Bench> {
    let stop = interrupt::flag();
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < *RUNS.start() || start.elapsed() < MEASURED && times.len() < *RUNS.end() {
        times.push(run()?);
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::interrupted("interrupted"));
        }
    }
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(Bench {
        load_ms: ms(load),
        first_ms: ms(first),
        median_ms: ms(times[times.len() / 2]),
        least_ms: ms(times[0]),
        runs: times.len(),
    })
}

/// Least, mean and largest of an array's numbers; nothing of complex ones and where there are none.
fn summary(array: &Array) -> Outcome<Vec<f64>> {
    if array.is_empty() || array.dtype().is_complex() {
        return Ok(Vec::new());
    }
    let x = ops::astype(array, DType::F32)?;
    let all = [ops::min(&x, (), false)?, ops::mean(&x, (), false)?, ops::max(&x, (), false)?];
    all.iter().map(|x| Ok(f64::from(x.item::<f32>()?))).collect()
}

/// An output's name as that of a file, which no other has.
fn file_name<'a>(name: &str, taken: impl Iterator<Item = &'a Path>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let mut stem: String = name.chars().map(plain).collect();
    if stem.is_empty() || stem.starts_with('.') {
        stem.insert(0, '_');
    }
    let taken: Vec<&Path> = taken.collect();
    while taken.iter().any(|path| path.ends_with(format!("{stem}.npy"))) {
        stem.push('_');
    }
    format!("{stem}.npy")
}

/// The inputs that were asked for.
struct Inputs<'a> {
    args: &'a RunArgs,
    function: &'a Function,
}

impl Inputs<'_> {
    /// The arrays of the first trace that has inputs of the given names.
    fn arrays(&self) -> Outcome<Vec<Array>> {
        let given: BTreeMap<&str, &str> =
            self.args.input.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if given.len() < self.args.input.len() {
            return Err(Failure::usage("--input: one is given twice"));
        }
        let is_for = |trace: &&Trace| {
            let ports = trace.inputs();
            ports.len() == given.len() && ports.iter().all(|p| given.contains_key(p.name.as_str()))
        };
        let mut failure = None;
        for trace in self.function.traces.iter().filter(is_for) {
            match self.of(trace, &given) {
                Ok(arrays) => {
                    let avals: Vec<&Aval> = arrays.iter().map(Array::aval).collect();
                    if trace.fits(&avals) {
                        return Ok(arrays);
                    }
                    failure = Some(self.unfit(&avals));
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| {
            let list = |trace: &Trace| {
                let all: Vec<String> =
                    trace.inputs().iter().map(|p| format!("{} {p}", p.name)).collect();
                format!("({})", all.join(", "))
            };
            let all: Vec<String> = self.function.traces.iter().map(list).collect();
            let name = &self.function.name;
            Failure::usage(format!("--input: '{name}' takes {}", all.join(" or ")))
        }))
    }

    fn unfit(&self, avals: &[&Aval]) -> Failure {
        let all: Vec<String> = self
            .function
            .traces
            .iter()
            .flat_map(|trace| trace.inputs().iter().map(|p| format!("{} {p}", p.name)))
            .collect();
        Failure::new(format!("--input: {avals:?} do not fit {}", all.join(", ")))
    }

    fn of(&self, trace: &Trace, given: &BTreeMap<&str, &str>) -> Outcome<Vec<Array>> {
        let value = |port: &Port| given.get(port.name.as_str()).copied().unwrap_or_default();
        // A file of NumPy has its sizes.
        let is_made = |port: &&Port| !value(port).ends_with(".npy");
        let mut made = trace.inputs().iter().filter(is_made);
        if let Some((name, _)) =
            self.args.size.iter().find(|(name, _)| !made.clone().any(|port| has_size(port, name)))
        {
            let detail = "no input that is random or an image has such a size";
            return Err(Failure::usage(format!("--size {name}: {detail}")));
        }
        if self.args.resize && made.all(|port| value(port) == "random") {
            return Err(Failure::usage("--resize: no input is an image"));
        }
        let one = |port: &Port| {
            let read = match value(port) {
                "random" => self.random(port),
                file if file.ends_with(".npy") => npy::load(file).map_err(Failure::from),
                file => self.image(port, Path::new(file)),
            };
            read.map_err(|error| Failure::new(format!("--input {}: {error}", port.name)))
        };
        trace.inputs().iter().map(one).collect()
    }

    /// The sizes of an input, those with names as they are given.
    fn shape(&self, port: &Port) -> Outcome<Shape> {
        let size = |size: &Size| match size {
            Size::Known(n) => Ok(*n),
            Size::Named(name) => {
                let found = self.args.size.iter().find(|(known, _)| known == name);
                found.map(|(_, n)| *n).ok_or_else(|| {
                    Failure::new(format!("the size {name} is open: --size {name}=N gives it"))
                })
            }
            Size::Any => Err(Failure::new("a size of it is not known")),
        };
        port.sizes.iter().map(size).collect::<Outcome<Vec<_>>>().map(Shape::from)
    }

    /// Normally distributed numbers, or zeros and ones of integers; always the same.
    fn random(&self, port: &Port) -> Outcome<Array> {
        let shape = self.shape(port)?;
        let key = cupola::generator::key(0);
        Ok(match port.dtype {
            DType::Bool => {
                ops::astype(&random::randint(0, 2, shape, DType::I32, Some(&key))?, DType::Bool)?
            }
            dtype if dtype.is_integer() => random::randint(0, 2, shape, dtype, Some(&key))?,
            dtype if dtype.is_complex() => random::normal(shape, dtype, Some(&key))?,
            dtype => ops::astype(&random::normal(shape, DType::F32, Some(&key))?, dtype)?,
        })
    }

    /// An image in the order of axes that the sizes tell: channels are one or three.
    fn image(&self, port: &Port, path: &Path) -> Outcome<Array> {
        let shape = self.shape(port)?;
        let (sizes, is_last) = match shape[..] {
            [1, high, wide, channels @ (1 | 3)] => ([high, wide, channels], true),
            [1, channels @ (1 | 3), high, wide] => ([high, wide, channels], false),
            _ => {
                return Err(Failure::new(format!(
                    "{}: {port} is no image: its sizes are neither [1, height, width, 1|3] nor \
                     [1, 1|3, height, width]",
                    path.display()
                )));
            }
        };
        let bytes = pictures::pixels(path, sizes, self.args.resize)?;
        let [high, wide, channels] = sizes;
        let picture = Array::from_vec(bytes, [1, high, wide, channels])?;
        let picture = if is_last { picture } else { ops::transpose(&picture, [0, 3, 1, 2])? };
        match port.dtype {
            dtype if dtype.is_float() => Ok(ops::divide(&ops::astype(&picture, dtype)?, 255.0)?),
            dtype => Ok(ops::astype(&picture, dtype)?),
        }
    }
}
