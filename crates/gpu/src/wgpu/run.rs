//! Segments that are ready to run: pieces that bind no more than the device can, with their
//! pipelines.

use std::sync::{Arc, OnceLock};

use cupola_core::backend::{Args, Buffer, Executable, Fails, Operand, Segment};
use cupola_core::{Error, Result};
use smallvec::SmallVec;

use super::OBSERVER;
use super::queue::{Bound, Pipeline, Queue};
use crate::emit::{Wgsl, print};
use crate::ir::Target;
use crate::kernels::split::{Piece, split};
use crate::kernels::view::span;
use crate::kernels::{Arg, BufferRef, Launch, Missing, Program, in_vectors, program_from};

/// A segment that is ready to run.
pub struct Prepared {
    pieces: Vec<Ready>,
    /// Bytes of the memory that the pieces share.
    shared: Vec<usize>,
    queue: Arc<Queue>,
}

/// A piece that is ready to run.
struct Ready {
    plain: Dispatches,
    /// What runs instead where every region starts as its launches take for granted.
    vectors: Option<Dispatches>,
    /// The numbers of its faults.
    faults: Vec<u32>,
    inputs: Vec<Reach>,
    outputs: Vec<Reach>,
}

/// What a piece can run as.
struct Programs {
    plain: Program,
    /// For regions that are aligned.
    vectors: Option<Program>,
}

/// The launches of a piece.
struct Dispatches {
    list: Vec<Dispatch>,
    /// Bytes of memory that they need while they run.
    scratch: Vec<usize>,
}

/// A launch with its pipeline, which is made when it is needed.
struct Dispatch {
    launch: Launch,
    pipeline: OnceLock<Arc<Pipeline>>,
    dialect: Wgsl,
}

/// Where an operand of a piece lies.
struct Reach {
    buffer: BufferRef,
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
        let pieces = split.pieces.iter().map(|piece| {
            let programs_for = |target: &Target| Programs::of(piece, target).map_err(missing);
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
            Ready::new(queue, piece, programs, Wgsl { int16: target.int16 })
        });
        let pieces = pieces.collect::<Result<_>>()?;
        Ok(Prepared { pieces, shared: split.scratch, queue: queue.clone() })
    }
}

impl Programs {
    fn of(piece: &Piece, target: &Target) -> std::result::Result<Self, Missing> {
        let plain = program_from(&piece.segment, piece.first, target)?;
        Ok(Programs { plain, vectors: in_vectors(&piece.segment, target) })
    }

    /// The most bytes of a piece of memory beside the operands.
    fn scratch(&self) -> u64 {
        let all = [Some(&self.plain), self.vectors.as_ref()].into_iter().flatten();
        all.flat_map(|program| &program.scratch).max().map_or(0, |&bytes| bytes as u64)
    }
}

impl Dispatch {
    fn new(launch: Launch, dialect: Wgsl) -> Self {
        Dispatch { launch, pipeline: OnceLock::new(), dialect }
    }

    fn pipeline(&self, queue: &Queue) -> Result<&Arc<Pipeline>> {
        if let Some(made) = self.pipeline.get() {
            return Ok(made);
        }
        let made = queue.pipeline(&self.launch.kernel, || {
            let text = print(&self.launch.kernel, &self.dialect);
            if let Some(observer) = OBSERVER.get() {
                observer(&self.launch.kernel, &text);
            }
            text
        })?;
        Ok(self.pipeline.get_or_init(|| made))
    }
}

impl Dispatches {
    fn new(program: Program, dialect: Wgsl) -> Self {
        let list =
            program.launches.into_iter().map(|launch| Dispatch::new(launch, dialect)).collect();
        Dispatches { list, scratch: program.scratch }
    }

    /// Whether regions start where the launches take it for granted.
    fn fit(&self, start: impl Fn(BufferRef) -> u32) -> bool {
        let mut aligned = self.list.iter().flat_map(|dispatch| &dispatch.launch.aligned);
        aligned.all(|(buffer, count)| start(*buffer).is_multiple_of(*count))
    }
}

impl Ready {
    fn new(
        queue: &Queue,
        piece: &Piece,
        Programs { plain, vectors }: Programs,
        dialect: Wgsl,
    ) -> Result<Self> {
        let reach = |(operand, at): (&Operand, &(BufferRef, isize))| Reach {
            buffer: at.0,
            shift: at.1,
            span: span(operand),
            size: operand.aval.dtype.size(),
        };
        let ready = Ready {
            faults: plain.faults.iter().map(|error| queue.fault(error)).collect(),
            inputs: piece.segment.inputs.iter().zip(&piece.inputs).map(reach).collect(),
            outputs: piece.segment.outputs.iter().zip(&piece.outputs).map(reach).collect(),
            plain: Dispatches::new(plain, dialect),
            vectors: vectors.map(|program| Dispatches::new(program, dialect)),
        };
        // What will most likely run is compiled now.
        let likely = ready.vectors.as_ref().unwrap_or(&ready.plain);
        likely.list.iter().try_for_each(|dispatch| dispatch.pipeline(queue).map(|_| ()))?;
        Ok(ready)
    }

    fn run(&self, queue: &Queue, args: &Args<'_>, shared: &[Buffer]) -> Result<()> {
        // What is bound of each operand, and which element of that its first is.
        let bind = |reach: &Reach| {
            let (buffer, offset) = match reach.buffer {
                BufferRef::Input(i) => (args.inputs[i].buffer, args.inputs[i].offset),
                BufferRef::Output(i) => (args.outputs[i].buffer, args.outputs[i].offset),
                BufferRef::Scratch(i) => (&shared[i], 0),
                BufferRef::Fault => (queue.fault_word(), 0),
            };
            queue.bound(buffer, offset + reach.shift, reach.span, reach.size)
        };
        let inputs: SmallVec<[(Bound<'_>, u32); 8]> =
            self.inputs.iter().map(bind).collect::<Result<_>>()?;
        let outputs: SmallVec<[(Bound<'_>, u32); 4]> =
            self.outputs.iter().map(bind).collect::<Result<_>>()?;
        let start = |buffer: BufferRef| match buffer {
            BufferRef::Input(i) => inputs[i].1,
            BufferRef::Output(i) => outputs[i].1,
            BufferRef::Scratch(_) | BufferRef::Fault => 0,
        };
        let dispatches =
            self.vectors.as_ref().filter(|dispatches| dispatches.fit(start)).unwrap_or(&self.plain);
        let scratch = queue.pieces(&dispatches.scratch)?;
        let mut bound: SmallVec<[Bound<'_>; 8]> = SmallVec::new();
        let mut words: SmallVec<[u32; 16]> = SmallVec::new();
        for dispatch in &dispatches.list {
            bound.clear();
            for buffer in &dispatch.launch.buffers {
                bound.push(match *buffer {
                    BufferRef::Input(i) => inputs[i].0,
                    BufferRef::Output(i) => outputs[i].0,
                    BufferRef::Scratch(i) => queue.whole(&scratch[i])?,
                    BufferRef::Fault => queue.whole(queue.fault_word())?,
                });
            }
            words.clear();
            for arg in &dispatch.launch.args {
                match *arg {
                    Arg::Offset(buffer) => words.push(start(buffer)),
                    Arg::Word(word) => words.push(word),
                    Arg::Fault(i) => words.push(self.faults[i]),
                    Arg::Scalar(i) => {
                        let [a, b, c, d, e, f, g, h] = args.scalars[i];
                        words.push(u32::from_le_bytes([a, b, c, d]));
                        words.push(u32::from_le_bytes([e, f, g, h]));
                    }
                }
            }
            words.extend_from_slice(&dispatch.launch.sizes);
            queue.launch(dispatch.pipeline(queue)?, dispatch.launch.grid, &bound, &words)?;
        }
        Ok(())
    }
}

impl Executable for Prepared {
    /// Indices are looked at on the device.
    fn fails(&self) -> Fails {
        let looks = self.pieces.iter().any(|piece| !piece.faults.is_empty());
        if looks { Fails::Late } else { Fails::Never }
    }

    fn own(&self) -> Vec<usize> {
        // Pieces run in turn: the largest of each is the largest of all, and so on.
        let mut most: Vec<usize> = Vec::new();
        for piece in &self.pieces {
            for dispatches in [Some(&piece.plain), piece.vectors.as_ref()].into_iter().flatten() {
                let mut scratch = dispatches.scratch.clone();
                scratch.sort_unstable_by(|a, b| b.cmp(a));
                most.resize(most.len().max(scratch.len()), 0);
                most.iter_mut().zip(scratch).for_each(|(most, bytes)| *most = bytes.max(*most));
            }
        }
        [&self.shared[..], &most].concat()
    }

    fn run(&self, args: &Args<'_>) -> Result<()> {
        let shared = self.queue.pieces(&self.shared)?;
        self.pieces.iter().try_for_each(|piece| piece.run(&self.queue, args, &shared))
    }
}
