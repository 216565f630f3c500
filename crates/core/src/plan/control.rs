//! A loop, or a choice between branches, as one step of a plan: the bodies are plans of their own, made once
//! and run as often as the loop says.
//!
//! What an iteration gives is handed to the next without a copy, and its memory may be overwritten there.
//! Elements of sequences are read and written where they lie. A device is given one iteration after the other
//! and never waited for, but where a condition, or the number of a branch, is to be known.

use std::sync::Arc;

use smallvec::SmallVec;

use super::explain::ExplainedStep;
use super::run::Frame;
use super::{Origin, Parameters, Plan};
use crate::array::Value;
use crate::backend::{Args, Backend, Executable, Fails, Operand, Region, Segment, backend};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Graph, Ref};
use crate::interrupt;
use crate::prim::control::{Cond, Control, Scan, While};
use crate::prim::{Argument, Call};
use crate::profile::{self, What};
use crate::shape::{Layout, is_row_major};

/// A segment of control flow, ready to run.
pub(super) struct Prepared {
    control: Arc<Control>,
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
    /// Of a scan its body; of a loop with a condition the first condition, and the body with the condition
    /// after it; of a choice the branches.
    bodies: Vec<Body>,
    /// Hands on what is carried where nothing runs, or where it is known late that nothing runs any more.
    copies: Option<Body>,
    device: Device,
}

/// A graph with its plan.
struct Body {
    graph: Arc<Graph>,
    plan: Plan,
}

/// Where an output is to be written.
pub(super) type Place<'a> = Option<Region<'a>>;

impl Parameters for Graph {
    fn argument(&self, node: u32) -> Argument<'_> {
        self.nodes[node as usize].op.facts().argument
    }

    fn line(&self, _: &[u32]) -> Option<Arc<str>> {
        None
    }

    fn origins(&self) -> Vec<Origin> {
        Vec::new()
    }

    fn has_origins(&self, _: &[Origin]) -> bool {
        true
    }
}

impl Body {
    /// A plan of `graph` on inputs with these strides.
    fn new(
        graph: &Arc<Graph>,
        strides: &[SmallVec<[isize; 4]>],
        backend: &dyn Backend,
    ) -> Result<Body> {
        let is_first = |(place, &node): (usize, &u32)| place == node as usize;
        let graph = match graph.inputs.iter().enumerate().all(is_first) {
            true => graph.clone(),
            false => Arc::new(graph.with_inputs_first()),
        };
        let plan = Plan::of_body(graph.borrowed(), strides, backend)?;
        Ok(Body { graph, plan })
    }

    fn run(&self, leaves: &[Value], places: &[Place<'_>]) -> Result<Vec<Value>> {
        self.plan.run_inside(leaves, places, &*self.graph)
    }

    fn bytes(&self) -> usize {
        self.graph.memory() + self.plan.bytes()
    }
}

/// The strides of what a body takes from operands; of sequences those of an element.
fn strides(control: &Control, inputs: &[Operand]) -> Vec<SmallVec<[isize; 4]>> {
    let whole = |operand: &Operand| SmallVec::from_slice(&operand.strides);
    match control {
        Control::Scan(scan) => {
            let sequences = scan.carries..scan.carries + scan.sequences;
            let of = |(number, operand): (usize, &Operand)| match sequences.contains(&number) {
                true => SmallVec::from_slice(&operand.strides[1..]),
                false => whole(operand),
            };
            inputs.iter().enumerate().map(of).collect()
        }
        Control::While(_) => inputs.iter().map(whole).collect(),
        Control::Cond(_) => inputs[1..].iter().map(whole).collect(),
    }
}

/// The plans of the bodies of `control`, whose inputs lie as `inputs` say.
fn bodies(control: &Control, inputs: &[Operand], backend: &dyn Backend) -> Result<Vec<Body>> {
    let strides = strides(control, inputs);
    let of = |graph: &Arc<Graph>| Body::new(graph, &strides, backend);
    match control {
        Control::Scan(scan) if scan.length == 0 => Ok(Vec::new()),
        Control::Scan(scan) => Ok(vec![of(&scan.body.body)?]),
        Control::While(looped) => {
            Ok(vec![of(&looped.cond.body)?, of(&Arc::new(iteration(looped)?))?])
        }
        Control::Cond(cond) => cond.branches.iter().map(|branch| of(&branch.body)).collect(),
    }
}

/// The body of a loop, and then its condition.
fn iteration(looped: &While) -> Result<Graph> {
    let mut graph = Graph::default();
    let inputs: Vec<Ref> =
        looped.body.body.input_avals().map(|aval| graph.input(aval.clone())).collect();
    let call = |graph: &mut Graph, call: &Arc<Call>, inputs: &[Ref]| -> Result<Vec<Ref>> {
        let node = graph.push(call.clone(), inputs)?;
        let outputs = graph.nodes[node as usize].outputs.len() as u32;
        Ok((0..outputs).map(|output| Ref { node, output }).collect())
    };
    let mut next = call(&mut graph, &looped.body, &inputs)?;
    let then = [&next[..], &inputs[looped.carries..]].concat();
    next.extend(call(&mut graph, &looped.cond, &then)?);
    graph.outputs = next;
    Ok(graph)
}

/// What a device has no kernel for in the bodies of `control`.
pub(super) fn lacking(
    control: &Control,
    inputs: &[Operand],
    backend: &dyn Backend,
) -> Result<Vec<String>> {
    let strides = strides(control, inputs);
    let of = |body: &Arc<Call>| super::lacking_of(body.body.borrowed(), &strides, backend);
    let all = control.bodies().into_iter().map(of).collect::<Result<Vec<_>>>()?;
    Ok(all.concat())
}

impl Prepared {
    pub fn new(control: &Arc<Control>, segment: &Segment, backend: &dyn Backend) -> Result<Self> {
        let bodies = bodies(control, &segment.inputs, backend)?;
        let is_copied = match &**control {
            Control::Scan(scan) => scan.length == 0,
            Control::While(_) => true,
            Control::Cond(_) => false,
        };
        let copies = is_copied.then(|| {
            let carried = &segment.inputs[..control.carries()];
            let mut graph = Graph::default();
            for operand in carried {
                let input = graph.input(operand.aval.clone());
                graph.outputs.push(input);
            }
            let strides: Vec<_> =
                carried.iter().map(|operand| SmallVec::from_slice(&operand.strides)).collect();
            Body::new(&Arc::new(graph), &strides, backend)
        });
        Ok(Prepared {
            control: control.clone(),
            inputs: segment.inputs.clone(),
            outputs: segment.outputs.clone(),
            bodies,
            copies: copies.transpose()?,
            device: backend.device(),
        })
    }

    /// Whether a device looks at indices in its bodies, and tells late if they are wrong.
    pub fn tells_late(&self) -> bool {
        self.bodies.iter().any(|body| !body.plan.late.is_empty())
    }

    /// Whether some step of its bodies runs on the CPU because the device has no kernel for it.
    pub fn falls_back(&self) -> bool {
        let taken_over =
            |body: &Body| body.plan.steps.iter().any(|step| step.prepared.is_taken_over());
        self.bodies.iter().any(taken_over)
    }

    /// How often its bodies run, in words, and how often a step of them counts.
    pub fn times(&self) -> (String, u64) {
        match &*self.control {
            Control::Scan(scan) => (format!("{} times", scan.length), scan.length as u64),
            Control::While(_) => ("as long as its condition holds".to_owned(), 1),
            Control::Cond(cond) => (format!("one of {}", cond.branches.len()), 1),
        }
    }

    /// The steps of its bodies. Those of a condition are in the body that it follows, too.
    pub fn inside(&self) -> Vec<ExplainedStep> {
        let bodies = match &*self.control {
            Control::While(_) => &self.bodies[1..],
            Control::Scan(_) | Control::Cond(_) => &self.bodies[..],
        };
        bodies.iter().flat_map(|body| body.plan.steps_explained()).collect()
    }

    fn values<'a>(
        &'a self,
        args: &'a Args<'_>,
        range: std::ops::Range<usize>,
    ) -> impl Iterator<Item = Value> + 'a {
        let pairs = args.inputs[range.clone()].iter().zip(&self.inputs[range]);
        pairs.map(|(region, operand)| value(region, &operand.strides, 0))
    }

    fn scan(&self, scan: &Scan, args: &Args<'_>) -> Result<()> {
        let Some(body) = self.bodies.first() else {
            return self.hand_on(self.values(args, 0..scan.carries).collect(), args);
        };
        let mut leaves: Vec<Value> = self.values(args, 0..args.inputs.len()).collect();
        for sequence in &mut leaves[scan.carries..scan.carries + scan.sequences] {
            sequence.layout.strides.remove(0);
        }
        // From the second iteration to the last but one all memory is there: what is carried changes its place with
        // what it is made of.
        let mut frame: Option<Frame> = None;
        for iteration in 0..scan.length {
            interrupt::check()?;
            let at = if scan.reverse { scan.length - 1 - iteration } else { iteration };
            self.point_at(scan, args, at, &mut leaves);
            let is_last = iteration + 1 == scan.length;
            let places = self.places(scan, args, at, is_last);
            if iteration > 0 && !is_last {
                let mut own = match frame.take() {
                    Some(frame) => frame,
                    None => body.plan.frame(&leaves, &places)?,
                };
                body.plan.run_in(&mut own, &leaves, &places, &*body.graph)?;
                if !body.plan.turn(&mut own, &mut leaves, scan.carries) {
                    return Err(Error::Device("a loop has no memory for what it carries".into()));
                }
                frame = Some(own);
                continue;
            }
            frame = None;
            let made = body.run(&leaves, &places)?;
            let carried = leaves.iter_mut().zip(made).take(scan.carries);
            carried.for_each(|(leaf, made)| *leaf = made);
        }
        Ok(())
    }

    /// Makes the leaves that are elements of sequences those at `at`.
    fn point_at(&self, scan: &Scan, args: &Args<'_>, at: usize, leaves: &mut [Value]) {
        let sequences = scan.carries..scan.carries + scan.sequences;
        let of = args.inputs[sequences.clone()].iter().zip(&self.inputs[sequences.clone()]);
        for (leaf, (region, operand)) in leaves[sequences].iter_mut().zip(of) {
            leaf.layout.offset = region.offset + at as isize * operand.strides[0];
        }
    }

    /// Where an iteration puts its outputs: elements into sequences, and what is carried out of the last into the
    /// outputs.
    fn places<'a>(
        &self,
        scan: &Scan,
        args: &Args<'a>,
        at: usize,
        is_last: bool,
    ) -> SmallVec<[Place<'a>; 8]> {
        let outputs = args.outputs.iter().zip(&self.outputs).enumerate();
        let place = |(number, (region, operand)): (usize, (&Region<'a>, &Operand))| {
            if number < scan.carries {
                return is_last.then_some(*region);
            }
            let offset = region.offset + operand.strides[0] * at as isize;
            Some(Region { buffer: region.buffer, offset })
        };
        outputs.map(place).collect()
    }

    fn repeat(&self, looped: &While, args: &Args<'_>) -> Result<()> {
        let (condition, body) = (&self.bodies[0], &self.bodies[1]);
        let mut leaves: Vec<Value> = self.values(args, 0..args.inputs.len()).collect();
        let rest = leaves[looped.carries..].to_vec();
        let nowhere = vec![None; looped.carries + 1];
        let mut answer = condition.run(&leaves, &nowhere[..1])?.remove(0);
        while self.number(&answer, DType::Bool)? != 0 {
            interrupt::check()?;
            let mut next = body.run(&leaves, &nowhere)?;
            answer = next.remove(looped.carries);
            next.extend(rest.iter().cloned());
            leaves = next;
        }
        leaves.truncate(looped.carries);
        self.hand_on(leaves, args)
    }

    fn choose(&self, cond: &Cond, args: &Args<'_>) -> Result<()> {
        let which = self.number(&value(&args.inputs[0], &[], 0), self.inputs[0].aval.dtype)?;
        let last = cond.branches.len() - 1;
        let branch = usize::try_from(which.max(0)).map_or(last, |which| which.min(last));
        let leaves: Vec<Value> = self.values(args, 1..args.inputs.len()).collect();
        let places: Vec<Place<'_>> = args.outputs.iter().copied().map(Some).collect();
        self.bodies[branch].run(&leaves, &places).map(drop)
    }

    /// Copies what is carried to the outputs.
    fn hand_on(&self, carried: Vec<Value>, args: &Args<'_>) -> Result<()> {
        let Some(copies) = &self.copies else { return Ok(()) };
        let places: Vec<Place<'_>> =
            args.outputs[..carried.len()].iter().copied().map(Some).collect();
        copies.run(&carried, &places).map(drop)
    }

    /// The bool or integer that a value without axes is. The device is waited for.
    fn number(&self, value: &Value, dtype: DType) -> Result<i64> {
        let (size, at) = (dtype.size(), value.layout.offset as usize * dtype.size());
        let mut bytes = [0; 8];
        match value.buffer.host() {
            Some(content) => bytes[..size].copy_from_slice(&content[at..at + size]),
            None => {
                let start = profile::begin();
                backend(self.device)?.download(&value.buffer, at, &mut bytes[..size])?;
                profile::end(start, || What::Wait { device: self.device });
            }
        }
        Ok(integer(&bytes[..size], dtype))
    }
}

/// The integer with these bytes; one that is too large counts as the largest.
fn integer(bytes: &[u8], dtype: DType) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let [a, b, c, d, ..] = wide;
    match dtype {
        DType::I8 => i8::from_ne_bytes([a]).into(),
        DType::I16 => i16::from_ne_bytes([a, b]).into(),
        DType::I32 => i32::from_ne_bytes([a, b, c, d]).into(),
        DType::I64 => i64::from_ne_bytes(wide),
        DType::Bool | DType::U8 => a.into(),
        DType::U16 => u16::from_ne_bytes([a, b]).into(),
        DType::U32 => u32::from_ne_bytes([a, b, c, d]).into(),
        DType::U64 => i64::try_from(u64::from_ne_bytes(wide)).unwrap_or(i64::MAX),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::C32 | DType::C64 => {
            unreachable!("inference takes bools and integers, not {dtype}")
        }
    }
}

/// What lies in a region, `more` elements on.
fn value(region: &Region<'_>, strides: &[isize], more: isize) -> Value {
    let layout = Layout { strides: SmallVec::from_slice(strides), offset: region.offset + more };
    Value { buffer: region.buffer.clone(), layout, range: None }
}

impl Executable for Prepared {
    /// It can be stopped between iterations.
    fn fails(&self) -> Fails {
        Fails::Anywhere
    }

    fn bytes(&self) -> usize {
        size_of::<Prepared>()
            + self.bodies.iter().chain(&self.copies).map(Body::bytes).sum::<usize>()
    }

    fn run(&self, args: &Args<'_>) -> Result<()> {
        debug_assert!(self.outputs.iter().all(|o| is_row_major(&o.aval.shape, &o.strides)));
        match &*self.control {
            Control::Scan(scan) => self.scan(scan, args),
            Control::While(looped) => self.repeat(looped, args),
            Control::Cond(cond) => self.choose(cond, args),
        }
    }
}
