//! Packages: named functions, their graphs and weights, in a folder or in one file.
//!
//! A package holds `manifest.json` (names, sizes, hashes), `graph.bin` (the graphs, see [`binary`]) and
//! `weights.safetensors` (each distinct array once). Nothing in it is ever executed as native code. What is
//! read is checked: `docs/packages.md` says how.
//!
//! ```
//! use cupola::package::{Function, Package, Port, Trace};
//! use cupola::{Array, Device, ops};
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("affine.cupola");
//! let w = Array::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
//! let x = Array::from_slice(&[1.0f32, 1.0, 1.0], [3])?;
//! let trace = Trace::of(vec![Port::new("x", x.aval())], &[x.aval().clone()], |x| {
//!     Ok(vec![ops::exp(&(&x[0] * &w))?])
//! })?;
//! let affine = Function { name: "affine".into(), traces: vec![trace] };
//! Package::new(vec![affine])?.save(&path)?;
//!
//! let loaded = Package::open(&path)?.load(Device::CPU)?;
//! let y = &loaded.call("affine", &[x])?[0];
//! assert_eq!(y.to_vec::<f32>()?, [1f32.exp(), 2f32.exp(), 3f32.exp()]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod decomposed;
mod executable;
mod manifest;
mod target;
mod trace;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use cupola_core::device::with_stream;
pub use cupola_core::package as binary;
use cupola_core::{Array, Aval, Device, Error, Result, Stream};
use sha2::{Digest, Sha256};

use self::archive::{Sink, Source, hex};
use self::binary::Program;
use self::manifest::{FileEntry, FunctionEntry, Manifest, PortEntry, TraceEntry};
use crate::io::{little_endian, safetensors};

pub use self::executable::{Options, Save};
pub use self::target::{Lack, System, Target};
pub use self::trace::{Function, Port, Size, Trace, Weight};

const MANIFEST: &str = "manifest.json";
const GRAPH: &str = "graph.bin";
const WEIGHTS: &str = "weights.safetensors";
/// The names of the files of a package.
pub const FILES: [&str; 3] = [MANIFEST, GRAPH, WEIGHTS];

/// The longest manifest and graph that are read.
const MOST_MANIFEST: u64 = 64 << 20;
const MOST_GRAPH: u64 = 1 << 30;

/// What is written as the producer and as the least version that reads a package.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Named functions that share weights.
pub struct Package {
    functions: Vec<Function>,
    metadata: Option<String>,
    targets: Vec<String>,
    producer: String,
}

/// A package that is ready to be called on a device.
pub struct Loaded {
    package: Package,
    device: Device,
}

impl Package {
    /// A package of these functions.
    ///
    /// # Errors
    /// Where two have one name, or one has no name or no trace.
    pub fn new(functions: Vec<Function>) -> Result<Package> {
        for (number, function) in functions.iter().enumerate() {
            let name = &function.name;
            let wrong = |detail: &str| {
                Err(Error::argument("package", format!("the function '{name}' {detail}")))
            };
            if name.is_empty() {
                return wrong("has no name");
            }
            if function.traces.is_empty() {
                return wrong("has no trace");
            }
            if functions[..number].iter().any(|other| other.name == *name) {
                return wrong("is there twice");
            }
        }
        let producer = format!("cupola {VERSION}");
        Ok(Package { functions, metadata: None, targets: Vec::new(), producer })
    }

    /// The same with a text of the user's.
    #[must_use]
    pub fn with_metadata(self, text: Option<String>) -> Package {
        Package { metadata: text, ..self }
    }

    /// The same for a system only. What the system lacks is done with what it has, where that gives the same: `bfloat16`
    /// as rounded `float32`, which is what inputs and outputs are then, and integers of 64 bits as those of 32, where what
    /// they may be is known to fit. Of inputs it is taken that they are within ±2³⁰.
    ///
    /// # Errors
    /// Where a function needs what the system lacks otherwise: the text lists all of it.
    pub fn for_target(mut self, target: Target) -> Result<Package> {
        let mut lacks = Vec::new();
        for function in &mut self.functions {
            for trace in &mut function.traces {
                match target.decomposed(trace)? {
                    Ok(made) => *trace = made,
                    Err(offenders) => {
                        lacks.extend(target.listed(&function.name, trace, &offenders))
                    }
                }
            }
        }
        if lacks.is_empty() {
            self.targets.push(target.to_string());
            return Ok(self);
        }
        let all: Vec<String> = lacks.iter().map(Lack::to_string).collect();
        Err(Error::Unsupported { device: target.to_string(), reason: all.join("; ") })
    }

    /// What it holds.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// What it holds, for somebody else.
    pub fn into_functions(self) -> Vec<Function> {
        self.functions
    }

    /// The function of a name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// The text of the user's.
    pub fn metadata(&self) -> Option<&str> {
        self.metadata.as_deref()
    }

    /// The systems that it was converted for; none where it is for all.
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// The program that wrote it.
    pub fn producer(&self) -> &str {
        &self.producer
    }

    /// Writes it to one file; to a folder where `path` is one or ends like one.
    ///
    /// A file that was there is whole at any time. Of a folder, there is none for the moment between two
    /// renames.
    ///
    /// # Errors
    /// Where a weight cannot be computed, a graph has a user's operator, or the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let mut weights = Weights::default();
        let mut programs = Vec::new();
        let mut functions = Vec::new();
        let arrays =
            |trace: &Trace| trace.weights.iter().map(|w| w.array.clone()).collect::<Vec<_>>();
        let all: Vec<Array> = self.traces().flat_map(arrays).collect();
        cupola_core::eval(&all)?;
        for function in &self.functions {
            let mut traces = Vec::with_capacity(function.traces.len());
            for trace in &function.traces {
                let numbers = trace.weights.iter().map(|w| weights.number(w));
                let program = Program {
                    graph: trace.graph.clone(),
                    weights: numbers.collect::<Result<_>>()?,
                    formulas: trace.formulas.clone(),
                };
                programs.push(program);
                traces.push(TraceEntry {
                    program: programs.len() as u32 - 1,
                    inputs: trace.inputs.iter().map(PortEntry::of).collect(),
                    outputs: trace.outputs.iter().map(PortEntry::of).collect(),
                });
            }
            functions.push(FunctionEntry { name: function.name.clone(), traces });
        }
        let graph = binary::write(&programs)?;
        let mut sink = Sink::new(path)?;
        let mut files = Vec::new();
        let mut add = |sink: &mut Sink, name: &str, content: archive::Content<'_>| {
            let written = sink.add(name, content)?;
            files.push(FileEntry {
                name: name.into(),
                bytes: written.bytes,
                sha256: written.sha256,
            });
            Ok::<_, Error>(())
        };
        let plain = |to: &mut dyn Write, bytes: &[u8]| {
            to.write_all(bytes)
                .map_err(|cause| Error::io(path, format!("cannot be written: {cause}")))
        };
        add(&mut sink, GRAPH, &mut |to| plain(to, &graph))?;
        let named: BTreeMap<String, Array> =
            weights.list.iter().map(|w| (w.name.clone(), w.array.clone())).collect();
        add(&mut sink, WEIGHTS, &mut |mut to| {
            safetensors::write(&mut to, path, &named, &BTreeMap::new())
        })?;
        let manifest = Manifest {
            format: manifest::FORMAT,
            producer: self.producer.clone(),
            runtime: VERSION.into(),
            targets: self.targets.clone(),
            metadata: self.metadata.clone(),
            files,
            weights: weights.list.into_iter().map(|w| w.name).collect(),
            functions,
        };
        let text = serde_json::to_vec_pretty(&manifest).map_err(|e| Error::io(path, e))?;
        sink.add(MANIFEST, &mut |to| plain(to, &text))?;
        sink.keep()
    }

    fn traces(&self) -> impl Iterator<Item = &Trace> {
        self.functions.iter().flat_map(|function| &function.traces)
    }

    /// Reads the package at `path`, a file or a folder. The hashes of its manifest's files are checked
    /// but for that of the weights, in which every number is as good as another: see [`Package::verify`].
    ///
    /// # Errors
    /// Where a file is missing, cut short, damaged, or of a newer version: the text names the file, and
    /// the place and field in it.
    pub fn open(path: impl AsRef<Path>) -> Result<Package> {
        Self::read(&Source::open(path.as_ref())?)
    }

    /// Reads the package at `path`, and compares the hashes of all its files.
    ///
    /// # Errors
    /// As [`Package::open`], and where a file's content has another hash.
    pub fn verify(path: impl AsRef<Path>) -> Result<Package> {
        let source = Source::open(path.as_ref())?;
        for file in manifest(&source)?.files {
            // A file may claim to be longer than can be read.
            let (_, bytes) = source.file(&file.name)?;
            if bytes != file.bytes {
                let detail = format!("has {bytes} bytes, in the manifest {}", file.bytes);
                return Err(Error::io(source.name(&file.name), detail));
            }
            check(&source, &file, &source.sha256(&file.name)?)?;
        }
        Self::read(&source)
    }

    fn read(source: &Source) -> Result<Package> {
        let manifest = manifest(source)?;
        let wrong = |detail: String| Error::io(source.name(MANIFEST), detail);
        let entry = |name: &str| {
            let found = manifest.files.iter().find(|file| file.name == name);
            found.ok_or_else(|| wrong(format!("files: {name} is not listed")))
        };
        let bytes = source.content(GRAPH, MOST_GRAPH)?;
        check(source, entry(GRAPH)?, &hex(&Sha256::digest(&bytes)))?;
        let programs = binary::read(&bytes, &source.name(GRAPH).display().to_string())?;
        let (memory, bytes) = source.memory(WEIGHTS)?;
        if entry(WEIGHTS)?.bytes != bytes.len() as u64 {
            return Err(wrong(format!("files: {WEIGHTS} has {} bytes", bytes.len())));
        }
        let (mut tensors, _) = safetensors::view(&memory, bytes, source.name(WEIGHTS))?;
        let mut weights = Vec::with_capacity(manifest.weights.len());
        for name in manifest.weights {
            let array = tensors.remove(&name);
            let array =
                array.ok_or_else(|| wrong(format!("weights: there is no other '{name}'")))?;
            weights.push(Weight { name, array });
        }
        let mut functions = Vec::with_capacity(manifest.functions.len());
        for function in manifest.functions {
            let name = function.name;
            let mut traces = Vec::with_capacity(function.traces.len());
            for (number, entry) in function.traces.into_iter().enumerate() {
                let trace = trace(entry, &programs, &weights).map_err(|detail| {
                    wrong(format!("functions: '{name}': trace {number}: {detail}"))
                })?;
                traces.push(trace);
            }
            functions.push(Function { name, traces });
        }
        let package = Package::new(functions).map_err(|e| wrong(format!("functions: {e}")))?;
        Ok(Package {
            metadata: manifest.metadata,
            targets: manifest.targets,
            producer: manifest.producer,
            ..package
        })
    }

    /// The package on a device.
    ///
    /// # Errors
    /// Where the device is not there.
    pub fn load(self, device: Device) -> Result<Loaded> {
        cupola_core::backend::backend(device)?;
        Ok(Loaded { package: self, device })
    }
}

impl Loaded {
    /// Records a function on arrays for its inputs, on the device.
    ///
    /// # Errors
    /// Where there is no function of this name, or none of its traces fits.
    pub fn call(&self, function: &str, inputs: &[Array]) -> Result<Vec<Array>> {
        let found = self.package.function(function).ok_or_else(|| {
            let names: Vec<&str> = self.package.functions.iter().map(|f| f.name.as_str()).collect();
            Error::argument(
                "package",
                format!("has no function '{function}', only {}", names.join(", ")),
            )
        })?;
        with_stream(Stream::of(self.device), || found.call(inputs))
    }

    /// What was loaded.
    pub fn package(&self) -> &Package {
        &self.package
    }
}

/// The arrays of a package, each once.
#[derive(Default)]
struct Weights {
    list: Vec<Weight>,
    known: HashMap<(Aval, [u8; 32]), u32>,
}

impl Weights {
    /// The number of a weight: that of an equal one, where there is one.
    fn number(&mut self, weight: &Weight) -> Result<u32> {
        if let Some(at) = self.list.iter().position(|known| known.array.same(&weight.array)) {
            return Ok(at as u32);
        }
        let array = &weight.array;
        let bytes = little_endian(array.to_bytes()?, array.dtype());
        let key = (array.aval().clone(), Sha256::digest(&bytes).into());
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let number = self.list.len() as u32;
        self.known.insert(key, number);
        let is_taken = |name: &str| self.list.iter().any(|known| known.name == name);
        let mut name = weight.name.clone();
        let mut next = 2;
        while is_taken(&name) {
            name = format!("{}_{next}", weight.name);
            next += 1;
        }
        self.list.push(Weight { name, array: array.clone() });
        Ok(number)
    }
}

fn manifest(source: &Source) -> Result<Manifest> {
    let wrong = |detail: String| Error::io(source.name(MANIFEST), detail);
    let text = source.content(MANIFEST, MOST_MANIFEST)?;
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| wrong(format!("damaged: {error}")))?;
    if manifest.format != manifest::FORMAT {
        return Err(wrong(format!(
            "format: version {}; this program reads version {}",
            manifest.format,
            manifest::FORMAT
        )));
    }
    let version = |text: &str| -> Option<Vec<u64>> {
        text.split('.').map(|part| part.parse().ok()).collect()
    };
    match version(&manifest.runtime) {
        Some(least) if Some(&least) <= version(VERSION).as_ref() => Ok(manifest),
        _ => Err(wrong(format!("runtime: needs cupola {:?}, this is {VERSION}", manifest.runtime))),
    }
}

/// Compares a file's hash.
fn check(source: &Source, entry: &FileEntry, have: &str) -> Result<()> {
    if entry.sha256 == have {
        return Ok(());
    }
    Err(Error::io(
        source.name(&entry.name),
        format!("its content has the hash {have}, in the manifest {}", entry.sha256),
    ))
}

/// A trace of the manifest with its program.
fn trace(entry: TraceEntry, programs: &[Program], weights: &[Weight]) -> Result<Trace, String> {
    let program = programs
        .get(entry.program as usize)
        .ok_or_else(|| format!("program {} is not in {GRAPH}", entry.program))?;
    let ports = |all: Vec<PortEntry>| {
        let port = |entry: PortEntry| {
            let name = entry.name.clone();
            entry.port().map_err(|detail| format!("'{name}': {detail}"))
        };
        all.into_iter().map(port).collect::<Result<Vec<_>, _>>()
    };
    let used = program.weights.iter().map(|&number| {
        let found = weights.get(number as usize).cloned();
        found.ok_or_else(|| format!("weight {number} is not listed"))
    });
    let used = used.collect::<Result<Vec<_>, _>>()?;
    let (inputs, outputs) = (ports(entry.inputs)?, ports(entry.outputs)?);
    let (graph, formulas) = (program.graph.clone(), program.formulas.clone());
    Trace::new(graph, inputs, outputs, used, formulas).map_err(|e| e.to_string())
}
