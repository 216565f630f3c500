//! What a plan does, step by step: what was fused, how many bytes and operations each step takes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Access, Plan, Step};
use crate::array::Array;
use crate::backend::{Body, Kernel, Operand, Segment};
use crate::device::{Device, Stream, with_stream};
use crate::error::Result;
use crate::graph::Graph;
use crate::ops;
use crate::prim::{Elementwise, Primitive};
use crate::shape::Aval;

/// What evaluating some arrays would run. It prints as a line a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Where it would run; of several plans the last.
    pub device: Device,
    /// Whether that plan was in the cache: nothing was planned or compiled for this.
    pub reused: bool,
    /// The plan's number: plans are numbered in the order in which they are made.
    pub plan: u64,
    /// How often it ran.
    pub runs: u64,
    /// The steps of all plans, in order.
    pub steps: Vec<ExplainedStep>,
    /// The plans that would run before that one, in order: where there is work for more than one device.
    pub before: Vec<ExplainedPlan>,
}

/// A plan among those that an evaluation would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainedPlan {
    /// Where it would run.
    pub device: Device,
    /// Whether it was in the cache.
    pub reused: bool,
    /// Its number.
    pub plan: u64,
    /// How often it ran.
    pub runs: u64,
    /// How many of the steps it has: those that follow the steps of the plans before it.
    pub steps: usize,
}

/// A step of a plan: one kernel, or a few.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedStep {
    /// The device of its plan.
    pub device: Device,
    /// What kind of work it is: `map`, `copy`, `rows`, the name of a reduction, a primitive or a composite.
    pub kind: String,
    /// The shape that a program runs over, and over which axes it is folded; empty for a primitive.
    pub over: String,
    /// The elementwise operations that are done on the way, in order: those of its program and those that
    /// continue its result.
    pub fused: Vec<String>,
    /// How many of `fused` come after the kernel's own work.
    pub epilogue: usize,
    /// The arrays that it reads, and the slots of the plan in which they are.
    pub inputs: Vec<(Aval, u32)>,
    /// The arrays that it writes, likewise.
    pub outputs: Vec<(Aval, u32)>,
    /// Bytes read, each element once; what is repeated counts once.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Arithmetic operations: one for each element of an instruction, 2·m·n·k of a product, and what is
    /// usual to count for the others.
    pub operations: u64,
    /// Whether it may overwrite an operand that nobody needs any more.
    pub in_place: bool,
    /// Whether the CPU runs it, or some step inside of it, because the device has no kernel for it.
    pub on_cpu: bool,
    /// The steps of the bodies of control flow. What it reads and writes is what they do, as often as they run; of
    /// a loop of unknown length and of branches once.
    pub inside: Vec<ExplainedStep>,
}

/// What evaluating `arrays`, all together, would run, on every device. It is planned, and its kernels are made, as for
/// an evaluation; nothing runs. Arrays that are computed already need no step.
///
/// # Errors
/// As evaluation.
///
/// # Example
/// ```
/// use cupola_core::{Array, plan};
/// # if cupola_core::backend::backends().next().is_none() { return Ok(()) }
/// let x = Array::from_vec(vec![1.0f32, 2.0], [2])?;
/// let plan = plan::explain(&[(&x + &x) * &x])?;
/// assert_eq!(plan.steps.len(), 1);
/// assert_eq!(plan.steps[0].fused, ["add", "multiply"]);
/// # Ok::<(), cupola_core::Error>(())
/// ```
pub fn explain(arrays: &[Array]) -> Result<Explanation> {
    let (before, (last, reused)) = crate::eval::plans_of(arrays)?;
    Ok(last.explanation(reused, &before))
}

impl Graph {
    /// What running the graph on `device` would run, for inputs that lie there in row-major order.
    ///
    /// # Errors
    /// As evaluation: its inputs are made.
    ///
    /// # Example
    /// ```
    /// use cupola_core::graph::Graph;
    /// use cupola_core::{Aval, DType, Device};
    /// # if cupola_core::backend::backends().next().is_none() { return Ok(()) }
    /// let avals = [Aval::new([2, 3], DType::F32)];
    /// let graph = Graph::trace(&avals, |x| Ok(vec![(&x[0] + &x[0]).exp()?]))?.graph;
    /// assert_eq!(graph.explain(Device::CPU)?.steps[0].fused, ["add", "exp"]);
    /// # Ok::<(), cupola_core::Error>(())
    /// ```
    pub fn explain(&self, device: Device) -> Result<Explanation> {
        with_stream(Stream::of(device), || {
            let zeros = |aval: &Aval| ops::zeros(aval.shape.clone(), aval.dtype);
            let inputs = self.input_avals().map(zeros).collect::<Result<Vec<_>>>()?;
            crate::eval::wait(&inputs)?;
            explain(&self.replay(&inputs)?)
        })
    }
}

impl Plan {
    /// What each step does.
    pub(super) fn steps_explained(&self) -> impl Iterator<Item = ExplainedStep> {
        self.steps.iter().map(|step| explained(step, self.device))
    }

    /// What it does after plans that run before it.
    fn explanation(&self, reused: bool, before: &[(Arc<Plan>, bool)]) -> Explanation {
        let plans = before.iter().map(|(plan, _)| &**plan).chain([self]);
        let steps = plans.flat_map(Plan::steps_explained).collect();
        let before = before.iter().map(|(plan, reused)| plan.among_others(*reused)).collect();
        let ExplainedPlan { device, plan, runs, .. } = self.among_others(reused);
        Explanation { device, reused, plan, runs, steps, before }
    }

    fn among_others(&self, reused: bool) -> ExplainedPlan {
        let (plan, runs) = (self.shares.plan, self.runs.load(Ordering::Relaxed));
        ExplainedPlan { device: self.device, reused, plan, runs, steps: self.steps.len() }
    }
}

impl Explanation {
    /// The plans, in the order in which they would run, each with its steps.
    pub fn plans(&self) -> impl Iterator<Item = (ExplainedPlan, &[ExplainedStep])> {
        let &Explanation { device, reused, plan, runs, .. } = self;
        let steps = self.steps.len() - self.before.iter().map(|plan| plan.steps).sum::<usize>();
        let last = ExplainedPlan { device, reused, plan, runs, steps };
        let mut rest = &self.steps[..];
        self.before.iter().copied().chain([last]).map(move |plan| {
            let (own, after) = rest.split_at(plan.steps);
            rest = after;
            (plan, own)
        })
    }

    /// Bytes read and written by all steps.
    pub fn bytes(&self) -> u64 {
        self.steps.iter().map(ExplainedStep::bytes).sum()
    }

    /// Arithmetic operations of all steps.
    pub fn operations(&self) -> u64 {
        self.steps.iter().map(|step| step.operations).sum()
    }
}

impl ExplainedStep {
    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.bytes_read + self.bytes_written
    }
}

/// The plan as text, for verification and panics of debug builds, too.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.explanation(false, &[]).fmt(f)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plans().try_for_each(|(plan, steps)| {
            writeln!(f, "plan on {}, {} steps", plan.device, steps.len())?;
            steps.iter().try_for_each(|step| writeln!(f, "{step}"))
        })
    }
}

impl fmt::Display for ExplainedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = |operands: &[(Aval, u32)]| {
            operands.iter().map(|(_, slot)| format!("#{slot}")).collect::<Vec<_>>().join(" ")
        };
        write!(f, "{} = {}", slots(&self.outputs), self.kind)?;
        if !self.over.is_empty() {
            write!(f, " {}", self.over)?;
        }
        let (program, epilogue) = self.fused.split_at(self.fused.len() - self.epilogue);
        if !program.is_empty() {
            write!(f, " of {}", program.join(", "))?;
        }
        if !epilogue.is_empty() {
            write!(f, " then {}", epilogue.join(", "))?;
        }
        write!(f, " ({})", slots(&self.inputs))?;
        if self.in_place {
            write!(f, " in place where it can")?;
        }
        if self.on_cpu {
            write!(f, " on the CPU: the device has no kernel for it")?;
        }
        for step in &self.inside {
            write!(f, "\n    {}", step.to_string().replace('\n', "\n    "))?;
        }
        Ok(())
    }
}

fn explained(step: &Step, device: Device) -> ExplainedStep {
    let segment = &step.prepared.segment;
    let (kind, over) = match &segment.kernel {
        Kernel::Map(body) if body.code.is_empty() => ("copy".to_owned(), body.shape.to_string()),
        Kernel::Map(body) => ("map".to_owned(), body.shape.to_string()),
        Kernel::Reduce { body, kind, axes } => {
            let several = match body.outputs.len() {
                1 => String::new(),
                count => format!(", {count} results"),
            };
            (kind.name().to_owned(), format!("over {axes:?} of {}{several}", body.shape))
        }
        Kernel::Rows { body, folds } => {
            let kinds: Vec<_> = folds.iter().map(|fold| fold.kind.name()).collect();
            ("rows".to_owned(), format!("of {} with {}", body.shape, kinds.join(", ")))
        }
        Kernel::Op(op) => (op.name().to_owned(), String::new()),
        Kernel::Composite(composite) => (composite.name().to_owned(), String::new()),
        Kernel::Control(control) => {
            let times = step.prepared.control.as_ref().map(|control| control.times().0);
            (control.name().to_owned(), times.unwrap_or_default())
        }
        Kernel::Custom(custom) => (custom.0.name().to_owned(), String::new()),
    };
    let mut fused = match &segment.kernel {
        Kernel::Map(body) | Kernel::Reduce { body, .. } | Kernel::Rows { body, .. } => {
            listing(body)
        }
        Kernel::Op(_) | Kernel::Composite(_) | Kernel::Control(_) | Kernel::Custom(_) => Vec::new(),
    };
    let after = segment.epilogue.as_ref().map_or_else(Vec::new, |e| listing(&e.body));
    let epilogue = after.len();
    fused.extend(after);
    let control = step.prepared.control.as_ref();
    let inside = control.map_or_else(Vec::new, |control| control.inside());
    let times = control.map_or(1, |control| control.times().1);
    // What goes through memory is what the steps inside read and write.
    let moved = |own: &[Operand], of: fn(&ExplainedStep) -> u64| match control {
        Some(_) => inside.iter().map(of).fold(0u64, u64::saturating_add).saturating_mul(times),
        None => own.iter().map(bytes).sum(),
    };
    let (bytes_read, bytes_written) = (
        moved(&segment.inputs, |step| step.bytes_read),
        moved(&segment.outputs, |step| step.bytes_written),
    );
    let operands = |accesses: &[Access], operands: &[Operand]| {
        let pairs = accesses.iter().zip(operands);
        pairs.map(|(access, operand)| (operand.aval.clone(), access.slot)).collect()
    };
    ExplainedStep {
        device,
        kind,
        over,
        fused,
        epilogue,
        inputs: operands(&step.inputs, &segment.inputs),
        outputs: operands(&step.outputs, &segment.outputs),
        bytes_read,
        bytes_written,
        operations: operations(segment) as u64,
        in_place: !step.aliases.is_empty(),
        on_cpu: step.prepared.is_taken_over(),
        inside,
    }
}

/// The bytes of the elements that an operand has: along an axis that it is repeated on, one.
fn bytes(operand: &Operand) -> u64 {
    let axes = operand.aval.shape.iter().zip(&operand.strides);
    let elements = axes.fold(1u64, |count, (&size, &stride)| match (size, stride) {
        (0, _) => 0,
        (_, 0) => count,
        _ => count.saturating_mul(size as u64),
    });
    elements.saturating_mul(operand.aval.dtype.size() as u64)
}

fn operations(segment: &Segment) -> f64 {
    let avals = |operands: &[Operand]| operands.iter().map(|o| o.aval.clone()).collect::<Vec<_>>();
    let (inputs, outputs) = (avals(&segment.inputs), avals(&segment.outputs));
    let (inputs, outputs): (Vec<_>, Vec<_>) = (inputs.iter().collect(), outputs.iter().collect());
    let program =
        |body: &Body, folds: usize| body.shape.size() as f64 * (body.code.len() + folds) as f64;
    let own = match &segment.kernel {
        Kernel::Map(body) => program(body, 0),
        Kernel::Reduce { body, .. } => program(body, body.outputs.len()),
        Kernel::Rows { body, folds } => program(body, folds.len()),
        Kernel::Op(op) => op.operations(&inputs, &outputs),
        Kernel::Composite(composite) => composite.operations(&inputs, &outputs),
        Kernel::Control(control) => control.operations(&inputs, &outputs),
        Kernel::Custom(custom) => custom.operations(&inputs, &outputs),
    };
    own + segment.epilogue.as_ref().map_or(0.0, |epilogue| program(&epilogue.body, 0))
}

fn listing(body: &Body) -> Vec<String> {
    let name = |op: &Elementwise| match op {
        Elementwise::Cast(cast) => format!("{} {}", op.name(), cast.to),
        Elementwise::Unary(_)
        | Elementwise::Binary(_)
        | Elementwise::Compare(_)
        | Elementwise::Select(_) => op.name().to_owned(),
    };
    body.code.iter().map(|i| name(&i.op)).collect()
}
