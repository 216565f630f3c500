//! A call of a kernel, as an operator.

use std::cell::RefCell;
use std::sync::Arc;

use cupola_core::prim::call::{HostInput, Language, Launch as GpuLaunch, Source, Text};
use cupola_core::prim::{Batched, Custom, CustomOp};
use cupola_core::{Array, Aval, Error, Result, Scalar, interrupt, ops};
use cupola_kernel::{self as language, Program, Run, Signature};

use super::{Kernel, Launch, Sources, scalar, stored};

/// A kernel with what it is called with.
#[derive(Clone)]
pub struct Called {
    pub(super) name: &'static str,
    pub(super) sources: Arc<Sources>,
    pub(super) names: Vec<String>,
    pub(super) inputs: Vec<Aval>,
    pub(super) launch: Launch,
    pub(super) takes_strides: bool,
    pub(super) has_atomic_outputs: bool,
    /// The kernel of the common language, if that is what its body is in.
    pub(super) program: Option<Arc<Program>>,
    key: Vec<u8>,
}

impl Called {
    /// Reads the source for inputs of these avals.
    pub fn new(kernel: &Kernel, inputs: Vec<Aval>, launch: Launch) -> Result<Self> {
        let array = |(name, aval): (&String, &Aval)| {
            let (name, rank) = (name.clone(), aval.shape.rank());
            let scalar = scalar(aval.dtype).map_err(|error| match error {
                Error::DType { detail, .. } => {
                    Error::dtype(kernel.name, format!("{name}: {detail}"))
                }
                other => other,
            })?;
            Ok(language::Array { name, scalar, rank })
        };
        let signature = Signature {
            inputs: kernel.inputs.iter().zip(&inputs).map(array).collect::<Result<_>>()?,
            outputs: kernel
                .outputs
                .iter()
                .zip(&launch.outputs)
                .map(array)
                .collect::<Result<_>>()?,
            template: launch.template.clone(),
        };
        let program = kernel.read(&signature)?;
        // Everything that tells two calls apart, in words.
        let key = format!(
            "{:?}",
            (
                &kernel.sources,
                &signature,
                &inputs,
                &launch,
                kernel.takes_strides,
                kernel.has_atomic_outputs
            )
        );
        Ok(Called {
            name: kernel.name,
            sources: Arc::new(kernel.sources.clone()),
            names: kernel.inputs.iter().chain(&kernel.outputs).cloned().collect(),
            inputs,
            launch,
            takes_strides: kernel.takes_strides,
            has_atomic_outputs: kernel.has_atomic_outputs,
            program,
            key: key.into_bytes(),
        })
    }

    fn text(&self, body: &str) -> Source {
        let (header, body, names) =
            (self.sources.header.clone(), body.to_owned(), self.names.clone());
        let (template, has_atomic_outputs) =
            (self.launch.template.clone(), self.has_atomic_outputs);
        Source::Text(Arc::new(Text { header, body, names, template, has_atomic_outputs }))
    }
}

impl CustomOp for Called {
    fn name(&self) -> &'static str {
        self.name
    }

    fn key(&self) -> Vec<u8> {
        self.key.clone()
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Vec<Aval>> {
        if inputs.iter().copied().eq(&self.inputs) {
            return Ok(self.launch.outputs.clone());
        }
        Err(Error::shape(self.name, "it was called for inputs of other shapes or dtypes"))
    }

    fn runs_on_host(&self) -> bool {
        self.program.is_some()
    }

    fn run_host(&self, inputs: &[HostInput<'_>], outputs: &mut [&mut [u8]]) -> Result<()> {
        let Some(program) = &self.program else {
            let detail = match &self.languages()[..] {
                [] => "it has no source".into(),
                own => format!("its source is in {}, which the CPU does not run", own.join(", ")),
            };
            return Err(Error::argument(self.name, detail));
        };
        if self.launch.outputs.iter().all(|aval| aval.shape.size() == 0) {
            return Ok(());
        }
        let init = Scalar::Float(self.launch.init.unwrap_or(0.0));
        for (aval, bytes) in self.launch.outputs.iter().zip(outputs.iter_mut()) {
            let (element, size) = (init.to_element(aval.dtype), aval.dtype.size());
            bytes.chunks_exact_mut(size).for_each(|one| one.copy_from_slice(&element[..size]));
        }
        let stopped = RefCell::new(None);
        let goes_on = || match interrupt::check() {
            Ok(()) => true,
            Err(error) => {
                stopped.replace(Some(error));
                false
            }
        };
        let avals = self.inputs.iter().chain(&self.launch.outputs);
        let run = Run {
            shapes: avals.map(|aval| aval.shape.to_vec()).collect(),
            goes_on: Some(&goes_on),
            ..Run::new(self.launch.grid, self.launch.threadgroup)
        };
        let bytes: Vec<&[u8]> = inputs.iter().map(|input| input.bytes).collect();
        program.run(&run, &bytes, outputs).map_err(|error| match error {
            language::Error::Stopped => stopped.take().unwrap_or(Error::Interrupted),
            language::Error::Index { .. } => Error::index(self.name, error.to_string()),
            other => Error::argument(self.name, other.to_string()),
        })
    }

    fn launch(&self, language: Language) -> Option<GpuLaunch> {
        let own = match language {
            Language::Wgsl => &self.sources.wgsl,
            Language::Cuda => &self.sources.cuda,
        };
        let source = match (own, &self.program) {
            (Some(body), _) => self.text(body),
            (None, Some(program)) => Source::Common(program.clone()),
            (None, None) => return None,
        };
        let Launch { grid, threadgroup, init, .. } = self.launch;
        Some(GpuLaunch { source, grid, threadgroup, init, takes_strides: self.takes_strides })
    }

    fn languages(&self) -> Vec<&'static str> {
        let Sources { wgsl, cuda, metal, .. } = &*self.sources;
        let own = [("WGSL", wgsl), ("CUDA C++", cuda), ("Metal's language", metal)];
        own.into_iter().filter(|(_, source)| source.is_some()).map(|(name, _)| name).collect()
    }

    fn stored(&self) -> Option<(&'static str, String)> {
        Some((stored::KIND, stored::text(self)?))
    }

    /// One call for each element of the batch: a kernel's grid and indices are its own.
    fn vmap(&self, inputs: &[Batched], size: usize) -> Result<Vec<Batched>> {
        let op = Custom(Arc::new(self.clone()));
        let mut found: Vec<Vec<Array>> = vec![Vec::new(); self.launch.outputs.len()];
        for i in 0..size {
            let own: Vec<Array> = (inputs.iter())
                .map(|input| match input.batched {
                    true => ops::index(&input.array, &[ops::S::At(i as isize)]),
                    false => Ok(input.array.clone()),
                })
                .collect::<Result<_>>()?;
            let outputs = Array::apply_multi(op.clone(), &own.iter().collect::<Vec<_>>())?;
            found.iter_mut().zip(outputs).for_each(|(list, output)| list.push(output));
        }
        let stacked = |(list, aval): (Vec<Array>, &Aval)| {
            let array = match &list[..] {
                [] => {
                    let shape: Vec<usize> = [0].into_iter().chain(aval.shape.to_vec()).collect();
                    ops::zeros(shape, aval.dtype)?
                }
                list => ops::stack(&list.iter().collect::<Vec<_>>(), 0)?,
            };
            Ok(Batched { array, batched: true })
        };
        found.into_iter().zip(&self.launch.outputs).map(stacked).collect()
    }
}
