//! Segments that are ready to run: everything that does not depend on the run is done before.

use std::sync::{Arc, OnceLock};

use cupola_core::backend::{Args, Buffer, Executable, Kernel as Work, Segment};
use cupola_core::prim::Op;
use cupola_core::{Error, Result};
use smallvec::SmallVec;

use super::compile::Function;
use super::gpu::{Gpu, Parameters};
use super::product::{self, Products};
use super::shape::Product;
use crate::emit::{CudaC, dynamic_shared, print};
use crate::ir::Target;
use crate::kernels::{Arg, Launch, Missing, Place, map, program};

/// A segment that is ready to run.
pub struct Prepared {
    gpu: Arc<Gpu>,
    /// Bytes of memory that it needs while it runs.
    scratch: Vec<usize>,
    /// The numbers of its faults.
    faults: Vec<u32>,
    /// Bytes of an element, of each input and each output.
    sizes: [Vec<usize>; 2],
    steps: Vec<Step>,
    /// Regions that have to start at multiples of so many elements.
    takes: Vec<(Place, u32)>,
    /// What runs where one does not.
    otherwise: Option<Box<Otherwise>>,
}

/// A segment that may have to be made ready again, without vectors.
struct Otherwise {
    segment: Segment,
    target: Target,
    made: OnceLock<Result<Prepared>>,
}

/// One thing that the device is told.
enum Step {
    Launch(Call),
    Product(Box<product::Prepared>),
}

/// A launch whose kernel is loaded.
struct Call {
    function: Function,
    grid: [u32; 2],
    /// Threads in a block, and the bytes of shared memory that it asks for.
    block: [u32; 2],
    buffers: Vec<Place>,
    args: Vec<Arg>,
    wide: bool,
}

impl Prepared {
    /// Makes a segment ready.
    pub fn new(gpu: &Arc<Gpu>, segment: &Segment, target: &Target) -> Result<Self> {
        gpu.enter()?;
        let size = |o: &cupola_core::backend::Operand| o.aval.dtype.size();
        let mut prepared = Prepared {
            gpu: gpu.clone(),
            scratch: Vec::new(),
            faults: Vec::new(),
            sizes: [
                segment.inputs.iter().map(size).collect(),
                segment.outputs.iter().map(size).collect(),
            ],
            steps: Vec::new(),
            takes: Vec::new(),
            otherwise: None,
        };
        let missing =
            |m: Missing| Error::Unsupported { device: gpu.device().to_string(), reason: m.0 };
        match library_step(gpu, segment) {
            Some(step) => {
                prepared.steps.push(step);
                if let Some(epilogue) = &segment.epilogue {
                    prepared.add(map::epilogue(epilogue, segment, target).map_err(missing)?)?;
                }
            }
            None => {
                let program = program(segment, target).map_err(missing)?;
                prepared.scratch = program.scratch;
                prepared.faults = program.faults.iter().map(|error| gpu.fault(error)).collect();
                let mut launches = program.launches.into_iter();
                launches.try_for_each(|launch| prepared.add(launch))?;
            }
        }
        if !prepared.takes.is_empty() {
            let target = Target { vector_bytes: 0, ..target.clone() };
            let made = OnceLock::new();
            prepared.otherwise =
                Some(Box::new(Otherwise { segment: segment.clone(), target, made }));
        }
        Ok(prepared)
    }
}

/// What a library does instead of a kernel.
fn library_step(gpu: &Arc<Gpu>, segment: &Segment) -> Option<Step> {
    match &segment.kernel {
        Work::Op(Op::Dot(dot)) => {
            let product = Product::of(dot, segment)?;
            Products::on(gpu)?;
            product::Prepared::new(gpu, product).ok().map(|made| Step::Product(Box::new(made)))
        }
        _ => None,
    }
}

fn call(gpu: &Gpu, launch: Launch) -> Result<Call> {
    let Launch { kernel, grid, buffers, args, wide, aligned: _ } = launch;
    let function = gpu.kernels.get(gpu, &kernel.name, &print(&kernel, &CudaC))?;
    let shared = dynamic_shared(&kernel);
    if shared > 0 {
        gpu.allow_shared(function.0, shared)?;
    }
    Ok(Call { function, grid, block: [kernel.block, shared], buffers, args, wide })
}

impl Executable for Prepared {
    fn run(&self, args: &Args<'_>) -> Result<()> {
        let gpu = &self.gpu;
        gpu.enter()?;
        if let Some(otherwise) = self.otherwise.as_ref().filter(|_| !self.is_aligned(args)) {
            let Otherwise { segment, target, made } = &**otherwise;
            let made = made.get_or_init(|| Prepared::new(gpu, segment, target));
            return made.as_ref().map_err(Clone::clone)?.run(args);
        }
        let scratch: SmallVec<[Buffer; 4]> =
            self.scratch.iter().map(|&bytes| gpu.alloc(bytes)).collect::<Result<_>>()?;
        let mut parameters = Parameters::default();
        for step in &self.steps {
            match step {
                Step::Launch(call) => {
                    parameters.clear();
                    call.fill(&mut parameters, self, args, &scratch)?;
                    gpu.launch(call.function.0, call.grid, call.block, &mut parameters)?;
                }
                Step::Product(product) => {
                    let at = |place| self.region(args, place);
                    product.run(
                        gpu,
                        [at(Place::Input(0))?, at(Place::Input(1))?, at(Place::Output(0))?],
                    )?;
                }
            }
        }
        Ok(())
    }
}

impl Prepared {
    fn add(&mut self, launch: Launch) -> Result<()> {
        for &(place, count) in &launch.aligned {
            if !self.takes.contains(&(place, count)) {
                self.takes.push((place, count));
            }
        }
        self.steps.push(Step::Launch(call(&self.gpu, launch)?));
        Ok(())
    }

    /// Whether every region starts where the kernels take for granted that it does.
    fn is_aligned(&self, args: &Args<'_>) -> bool {
        self.takes.iter().all(|&(place, count)| {
            let offset = match place {
                Place::Input(i) => args.inputs[i].offset,
                Place::Output(i) => args.outputs[i].offset,
                Place::Scratch(_) | Place::Fault => 0,
            };
            offset.unsigned_abs().is_multiple_of(count as usize)
        })
    }

    /// Where the first element of a region is.
    fn region(&self, args: &Args<'_>, place: Place) -> Result<u64> {
        let (region, size) = match place {
            Place::Input(i) => (&args.inputs[i], self.sizes[0][i]),
            Place::Output(i) => (&args.outputs[i], self.sizes[1][i]),
            Place::Scratch(_) | Place::Fault => return Ok(0),
        };
        let start = self.gpu.start(region.buffer)?;
        Ok(start.wrapping_add_signed(region.offset as i64 * size as i64))
    }
}

impl Call {
    fn fill(
        &self,
        parameters: &mut Parameters,
        prepared: &Prepared,
        args: &Args<'_>,
        scratch: &[Buffer],
    ) -> Result<()> {
        let gpu = &prepared.gpu;
        for place in &self.buffers {
            let buffer = match *place {
                Place::Input(i) => args.inputs[i].buffer,
                Place::Output(i) => args.outputs[i].buffer,
                Place::Scratch(i) => &scratch[i],
                Place::Fault => {
                    parameters.pointer(gpu.fault_word());
                    continue;
                }
            };
            parameters.pointer(gpu.start(buffer)?);
        }
        for arg in &self.args {
            match *arg {
                Arg::Offset(place) => {
                    let offset = match place {
                        Place::Input(i) => args.inputs[i].offset,
                        Place::Output(i) => args.outputs[i].offset,
                        Place::Scratch(_) | Place::Fault => 0,
                    } as u64;
                    parameters.word(offset as u32);
                    if self.wide {
                        parameters.word((offset >> 32) as u32);
                    }
                }
                Arg::Word(word) => parameters.word(word),
                Arg::Fault(i) => parameters.word(prepared.faults[i]),
                Arg::Scalar(i) => {
                    let [a, b, c, d, e, f, g, h] = args.scalars[i];
                    parameters.word(u32::from_le_bytes([a, b, c, d]));
                    parameters.word(u32::from_le_bytes([e, f, g, h]));
                }
            }
        }
        Ok(())
    }
}
