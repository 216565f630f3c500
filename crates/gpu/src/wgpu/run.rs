//! Segments that are ready to run: parts that bind no more than the device can, with their
//! pipelines.

use std::sync::{Arc, OnceLock};

use cupola_core::backend::{Args, Buffer, Executable, Operand, Segment};
use cupola_core::{Error, Result};
use smallvec::SmallVec;

use super::OBSERVER;
use super::queue::{Bound, Pipeline, Queue};
use crate::emit::{Wgsl, print};
use crate::ir::Target;
use crate::kernels::split::{Part, split};
use crate::kernels::view::span;
use crate::kernels::{Arg, Launch, Missing, Place, Program, in_vectors, program_from};

/// A segment that is ready to run.
pub struct Prepared {
    parts: Vec<Ready>,
    /// Bytes of the memory that the parts share.
    shared: Vec<usize>,
    queue: Arc<Queue>,
}

/// A part that is ready to run.
struct Ready {
    plain: Steps,
    /// What runs instead where every region starts as its launches take for granted.
    vectors: Option<Steps>,
    /// The numbers of its faults.
    faults: Vec<u32>,
    inputs: Vec<Reach>,
    outputs: Vec<Reach>,
}

/// What a part can run as.
struct Programs {
    plain: Program,
    /// For regions that are aligned.
    vectors: Option<Program>,
}

/// The launches of a part.
struct Steps {
    list: Vec<Step>,
    /// Bytes of memory that they need while they run.
    scratch: Vec<usize>,
}

/// A launch with its pipeline, which is made when it is needed.
struct Step {
    launch: Launch,
    pipeline: OnceLock<Arc<Pipeline>>,
    dialect: Wgsl,
}

/// Where an operand of a part lies.
struct Reach {
    place: Place,
    /// How many elements after the whole operand it starts.
    shift: isize,
    /// Its first and last element from there, if it has any.
    span: Option<(isize, isize)>,
    /// Bytes of an element.
    size: usize,
}

impl Prepared {
    /// Makes a segment ready.
    pub fn new(queue: &Arc<Queue>, segment: &Segment, target: &Target) -> Result<Self> {
        let missing = |Missing(reason): Missing| Error::Unsupported {
            device: queue.device().to_string(),
            reason,
        };
        let split = split(segment, queue.max_reach()).map_err(missing)?;
        let parts = split.parts.iter().map(|part| {
            let programs_for = |target: &Target| Programs::of(part, target).map_err(missing);
            let mut programs = programs_for(target)?;
            if programs.scratch() > queue.max_reach() {
                // For few threads sums are not cut into parts, which lie beside the operands.
                programs = programs_for(&Target { threads: 1, ..target.clone() })?;
            }
            let (bytes, most) = (programs.scratch(), queue.max_reach());
            if bytes > most {
                return Err(missing(Missing(format!(
                    "it needs {bytes} bytes beside its operands, the device binds {most} at once"
                ))));
            }
            Ready::new(queue, part, programs, Wgsl { int16: target.int16 })
        });
        let parts = parts.collect::<Result<_>>()?;
        Ok(Prepared { parts, shared: split.scratch, queue: queue.clone() })
    }
}

impl Programs {
    fn of(part: &Part, target: &Target) -> std::result::Result<Self, Missing> {
        let plain = program_from(&part.segment, part.first, target)?;
        Ok(Programs { plain, vectors: in_vectors(&part.segment, target) })
    }

    /// The most bytes of a piece of memory beside the operands.
    fn scratch(&self) -> u64 {
        let all = [Some(&self.plain), self.vectors.as_ref()].into_iter().flatten();
        all.flat_map(|program| &program.scratch).max().map_or(0, |&bytes| bytes as u64)
    }
}

impl Step {
    fn new(launch: Launch, dialect: Wgsl) -> Self {
        Step { launch, pipeline: OnceLock::new(), dialect }
    }

    fn pipeline(&self, queue: &Queue) -> Result<&Arc<Pipeline>> {
        if let Some(made) = self.pipeline.get() {
            return Ok(made);
        }
        let text = print(&self.launch.kernel, &self.dialect);
        if let Some(observer) = OBSERVER.get() {
            observer(&self.launch.kernel, &text);
        }
        let made = queue.pipeline(&text, &self.launch.kernel)?;
        Ok(self.pipeline.get_or_init(|| made))
    }
}

impl Steps {
    fn new(program: Program, dialect: Wgsl) -> Self {
        let list = program.launches.into_iter().map(|launch| Step::new(launch, dialect)).collect();
        Steps { list, scratch: program.scratch }
    }

    /// Whether regions start where the launches take it for granted.
    fn fit(&self, start: impl Fn(Place) -> u32) -> bool {
        let mut aligned = self.list.iter().flat_map(|step| &step.launch.aligned);
        aligned.all(|(place, count)| start(*place).is_multiple_of(*count))
    }
}

impl Ready {
    fn new(
        queue: &Queue,
        part: &Part,
        Programs { plain, vectors }: Programs,
        dialect: Wgsl,
    ) -> Result<Self> {
        let reach = |(operand, place): (&Operand, &(Place, isize))| Reach {
            place: place.0,
            shift: place.1,
            span: span(operand),
            size: operand.aval.dtype.size(),
        };
        let ready = Ready {
            faults: plain.faults.iter().map(|error| queue.fault(error)).collect(),
            inputs: part.segment.inputs.iter().zip(&part.inputs).map(reach).collect(),
            outputs: part.segment.outputs.iter().zip(&part.outputs).map(reach).collect(),
            plain: Steps::new(plain, dialect),
            vectors: vectors.map(|program| Steps::new(program, dialect)),
        };
        // What will most likely run is compiled now.
        let likely = ready.vectors.as_ref().unwrap_or(&ready.plain);
        likely.list.iter().try_for_each(|step| step.pipeline(queue).map(|_| ()))?;
        Ok(ready)
    }

    fn run(&self, queue: &Queue, args: &Args<'_>, shared: &[Buffer]) -> Result<()> {
        // What is bound of each operand, and which element of that its first is.
        let bind = |reach: &Reach| {
            let (buffer, offset) = match reach.place {
                Place::Input(i) => (args.inputs[i].buffer, args.inputs[i].offset),
                Place::Output(i) => (args.outputs[i].buffer, args.outputs[i].offset),
                Place::Scratch(i) => (&shared[i], 0),
                Place::Fault => (queue.fault_word(), 0),
            };
            queue.bound(buffer, offset + reach.shift, reach.span, reach.size)
        };
        let inputs: SmallVec<[(Bound<'_>, u32); 8]> =
            self.inputs.iter().map(bind).collect::<Result<_>>()?;
        let outputs: SmallVec<[(Bound<'_>, u32); 4]> =
            self.outputs.iter().map(bind).collect::<Result<_>>()?;
        let start = |place: Place| match place {
            Place::Input(i) => inputs[i].1,
            Place::Output(i) => outputs[i].1,
            Place::Scratch(_) | Place::Fault => 0,
        };
        let steps = self.vectors.as_ref().filter(|steps| steps.fit(start)).unwrap_or(&self.plain);
        let scratch = buffers(queue, &steps.scratch)?;
        let mut bound: SmallVec<[Bound<'_>; 8]> = SmallVec::new();
        let mut words: SmallVec<[u32; 16]> = SmallVec::new();
        for step in &steps.list {
            bound.clear();
            for place in &step.launch.buffers {
                bound.push(match *place {
                    Place::Input(i) => inputs[i].0,
                    Place::Output(i) => outputs[i].0,
                    Place::Scratch(i) => queue.whole(&scratch[i])?,
                    Place::Fault => queue.whole(queue.fault_word())?,
                });
            }
            words.clear();
            for arg in &step.launch.args {
                match *arg {
                    Arg::Offset(place) => words.push(start(place)),
                    Arg::Word(word) => words.push(word),
                    Arg::Fault(i) => words.push(self.faults[i]),
                    Arg::Scalar(i) => {
                        let [a, b, c, d, e, f, g, h] = args.scalars[i];
                        words.push(u32::from_le_bytes([a, b, c, d]));
                        words.push(u32::from_le_bytes([e, f, g, h]));
                    }
                }
            }
            queue.launch(step.pipeline(queue)?, step.launch.grid, &bound, &words)?;
        }
        Ok(())
    }
}

fn buffers(queue: &Queue, sizes: &[usize]) -> Result<SmallVec<[Buffer; 4]>> {
    sizes.iter().map(|&bytes| queue.alloc(bytes)).collect()
}

impl Executable for Prepared {
    fn run(&self, args: &Args<'_>) -> Result<()> {
        let shared = buffers(&self.queue, &self.shared)?;
        self.parts.iter().try_for_each(|part| part.run(&self.queue, args, &shared))
    }
}
