//! From a graph to what a device runs: flatten, fuse, plan memory, prepare, run.
//!
//! A `Plan` holds everything that does not change between runs of one structure. What does
//! change (the leaves' memory, constants, slice starts) is given to `Plan::run`.

#![deny(clippy::wildcard_enum_match_arm)]

mod axes;
mod beside;
pub mod cache;
mod continued;
mod control;
mod explain;
mod flat;
mod fuse;
mod held;
mod lower;
mod movement;
mod order;
mod prepared;
mod range;
mod rooms;
mod rows;
mod run;
mod sink;
mod split;
mod spread;
mod template;
mod together;
mod verify;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use smallvec::SmallVec;

use self::flat::FlatGraph;
use self::fuse::Outputs;
use self::held::Held;
use self::lower::Lowered;
use self::rooms::Room;
use self::template::{Likeness, Outline, Template};
use self::together::AtOnce;
use crate::backend::{Backend, Kernel, Sequence};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::fork::lock;
use crate::graph::{Borrowed, Graph};
use crate::prim::key::Key;
use crate::profile::{Shares, Told};

pub use cache::CacheStats;
pub use explain::{ExplainedPlan, ExplainedStep, Explanation, explain};
pub(crate) use run::{Failure, Origin, Parameters};

/// A graph made ready for a device.
pub(crate) struct Plan {
    /// How often it ran.
    runs: AtomicU64,
    steps: Vec<Arc<Step>>,
    /// Which of them may run at once.
    at_once: AtOnce,
    /// The steps as one, where the device has a cheaper way to run them.
    sequence: Option<Box<dyn Sequence>>,
    outputs: Vec<OutputSpec>,
    slots: Vec<SlotSpec>,
    /// The memory in which slots lie, one after the other.
    rooms: Vec<Room>,
    /// What steps are given for their own use, in their order.
    scratch: Vec<ScratchSpec>,
    leaves: usize,
    /// The first step that may overwrite a leaf: none after it can fail.
    point_of_no_return: usize,
    /// The pieces of memory that steps find themselves, where no other step needs as much.
    own: Vec<Vec<usize>>,
    /// Indices that the device looks at, and tells late if they are wrong.
    late: Vec<LateCheck>,
    /// The one step that writes to each slot; empty where nothing is looked at late and no output is of integers.
    makers: Vec<Option<u32>>,
    device: Device,
    /// What the steps do, once somebody has listened to a run.
    explained: OnceLock<Vec<Arc<ExplainedStep>>>,
    /// How its time is divided among its steps, where a run is timed as a whole.
    shares: Arc<Shares>,
    /// What is told of its steps, with lines of these origins.
    told: Mutex<Option<ToldOf>>,
    /// What plans of other sizes have in common with it.
    structure: u64,
    /// What its steps were made from, where plans for other sizes may be made of it.
    template: Option<Template>,
    /// The plan that it was made from, and shares steps with.
    from: Option<Arc<Plan>>,
    /// Its memory, where it is in the cache.
    held: OnceLock<Held>,
}

/// What is told of steps, and the origins of what they were recorded from.
type ToldOf = (Vec<run::Origin>, Arc<[Told]>);

/// Indices that a step looks at where they are used.
enum LateCheck {
    /// Those in a slot.
    Indices {
        slot: fuse::Slot,
        /// What each has to be below.
        bound: usize,
    },
    /// Those that the step makes itself: a body of it, or a user's kernel.
    Inside,
}

/// One segment, with where its operands lie.
struct Step {
    prepared: Arc<prepared::Prepared>,
    inputs: Vec<Access>,
    outputs: Vec<Access>,
    scalars: Vec<(fuse::ScalarSource, DType)>,
    /// Outputs that may take an input's memory, and the inputs; of several for an output, the first is best.
    aliases: SmallVec<[(u16, u16); 2]>,
    /// The slots that no later step touches.
    frees: SmallVec<[fuse::Slot; 4]>,
    /// The node of the evaluated graph that it is about, or where within it.
    origin: Option<flat::Origin>,
}

impl Step {
    /// The slots whose memory an output may take.
    fn donors(&self, output: usize) -> impl Iterator<Item = fuse::Slot> {
        let pairs = self.aliases.iter().filter(move |pair| usize::from(pair.0) == output);
        pairs.map(|pair| self.inputs[usize::from(pair.1)].slot)
    }
}

/// A slot and where in it.
#[derive(Clone, PartialEq)]
struct Access {
    slot: fuse::Slot,
    offset: fuse::Offset,
}

/// The memory that a plan needs for one slot.
#[derive(Clone)]
struct SlotSpec {
    bytes: usize,
    /// Whether its memory outlives the run, and is no larger than it needs.
    is_output: bool,
    /// The one of the plan's rooms that it is to lie in.
    room: Option<u32>,
}

impl SlotSpec {
    fn new(bytes: usize) -> Self {
        SlotSpec { bytes, is_output: false, room: None }
    }
}

/// Memory for a step's own use while it runs.
struct ScratchSpec {
    step: usize,
    memory: SlotSpec,
}

/// The bytes of what is little more memory than `bytes`.
fn little_more(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 4)
}

/// What a plan gives for one output.
#[derive(Clone)]
struct OutputSpec {
    access: Access,
    strides: SmallVec<[isize; 4]>,
}

/// What `backend` has no kernel for in a plan of `graph`, and why: those parts run on the CPU. Nothing is
/// compiled or run.
///
/// # Errors
/// Where the graph cannot be planned.
pub fn lacking(graph: &Graph, backend: &dyn Backend) -> Result<Vec<String>> {
    let leaves: Vec<_> = graph.input_avals().map(|aval| aval.shape.row_major()).collect();
    lacking_of(graph.borrowed(), &leaves, backend)
}

fn lacking_of(
    graph: Borrowed<'_>,
    leaves: &[SmallVec<[isize; 4]>],
    backend: &dyn Backend,
) -> Result<Vec<String>> {
    let bodies = flat::Bodies::new(&graph, backend)?;
    let flat = flat::FlatGraph::new(graph, &bodies);
    let fusion = fuse::Fusion::new(&flat, leaves, backend.limits(), Outputs::Any);
    let mut lacking = Vec::new();
    for segment in lower::segments(&fusion) {
        match &segment.kernel {
            Kernel::Control(op) => lacking.extend(control::lacking(op, &segment.inputs, backend)?),
            Kernel::Map(_)
            | Kernel::Reduce { .. }
            | Kernel::Rows { .. }
            | Kernel::Op(_)
            | Kernel::Composite(_)
            | Kernel::Custom(_) => lacking.extend(backend.lacks(&segment)),
        }
    }
    Ok(lacking)
}

/// `graph` with calls and composites in place.
fn flattened<'a>(
    graph: Borrowed<'a>,
    bodies: &'a flat::Bodies,
    backend: &dyn Backend,
) -> Result<FlatGraph<'a>> {
    let flat = FlatGraph::new(graph, bodies);
    if cfg!(debug_assertions) {
        flat.verify(backend)?;
    }
    Ok(flat)
}

impl Plan {
    /// Plans `graph`, whose inputs lie in memory with `leaves` as strides, for `backend`: from a plan of the same
    /// structure, where one is known that fits.
    pub fn new(
        graph: Borrowed<'_>,
        leaves: &[SmallVec<[isize; 4]>],
        backend: &dyn Backend,
    ) -> Result<Plan> {
        let structure = template::structure(&graph, backend.device());
        let kin = cache::kin(structure);
        let known = kin.as_ref().and_then(|(plan, _)| Some((plan, plan.template.as_ref()?)));
        let mut is_inside = false;
        if let Some((plan, template)) = known {
            match template.likeness(&graph, leaves, backend) {
                Likeness::Sizes(now) => {
                    if let Ok(Some(resized)) = plan.resized(now, backend) {
                        return resized.checked(structure);
                    }
                }
                Likeness::Inside => is_inside = true,
                Likeness::None => {}
            }
        }
        let wants_template = kin.as_ref().is_some_and(|(_, wants_template)| *wants_template);
        let outline = wants_template.then(|| Outline::new(&graph));
        let bodies = flat::Bodies::new(&graph, backend)?;
        let flat = flattened(graph, &bodies, backend)?;
        if let Some((plan, template)) = known.filter(|_| is_inside)
            && let Likeness::Sizes(now) = template.likeness_of_flat(&flat, leaves, backend)
            && let Ok(Some(resized)) = plan.resized(now, backend)
        {
            return resized.checked(structure);
        }
        Plan::of_flat(&flat, leaves, backend, Outputs::Any, outline)?.checked(structure)
    }

    /// The plan, whose structure has this hash.
    fn checked(self, structure: u64) -> Result<Plan> {
        if cfg!(debug_assertions) {
            self.verify()?;
        }
        Ok(Plan { structure, ..self })
    }

    /// The plan of a body, which is run inside of another plan: each of its outputs is written where the run
    /// says.
    fn of_body(
        graph: Borrowed<'_>,
        leaves: &[SmallVec<[isize; 4]>],
        backend: &dyn Backend,
    ) -> Result<Plan> {
        let bodies = flat::Bodies::new(&graph, backend)?;
        let flat = flattened(graph, &bodies, backend)?;
        Plan::of_flat(&flat, leaves, backend, Outputs::Own, None)?.checked(0)
    }

    /// The plan of a flat graph; with a template, where the outline of the graph is given.
    fn of_flat<'a>(
        flat: &'a FlatGraph<'a>,
        leaves: &[SmallVec<[isize; 4]>],
        backend: &'a dyn Backend,
        outputs: Outputs<'a>,
        outline: Option<Outline>,
    ) -> Result<Plan> {
        let fusion = fuse::Fusion::new(flat, leaves, backend.limits(), outputs);
        if cfg!(debug_assertions) {
            fusion.verify()?;
        }
        let Lowered { mut plan, order } = lower::lower(&fusion, leaves.len(), backend)?;
        plan.template = outline.and_then(|outline| Template::new(outline, &fusion, &plan, &order));
        Ok(plan)
    }

    /// The plan under `key`, made by `build` if it is not there yet; and whether it was.
    pub fn cached(key: &Key, build: impl FnOnce() -> Result<Plan>) -> Result<(Arc<Plan>, bool)> {
        let bucket = key.bucket();
        if let Some(plan) = cache::find(key, bucket) {
            return Ok((plan, true));
        }
        let plan = Arc::new(build()?);
        cache::insert(key, bucket, plan.clone());
        Ok((plan, false))
    }

    /// How many steps it has.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// The strides of what it gives.
    pub fn output_strides(&self) -> impl Iterator<Item = &[isize]> {
        self.outputs.iter().map(|output| &output.strides[..])
    }

    /// What each step does.
    fn explained(&self) -> &[Arc<ExplainedStep>] {
        self.explained.get_or_init(|| self.steps_explained().map(Arc::new).collect())
    }

    /// What is told of its steps where they have these parameters. Lines that were looked up for the last run are not
    /// looked up anew.
    fn told(&self, parameters: &dyn Parameters) -> Arc<[Told]> {
        let mut last = lock(&self.told);
        if let Some((origins, told)) = &*last
            && parameters.has_origins(origins)
        {
            return told.clone();
        }
        let of = |(step, explained): (&Arc<Step>, &Arc<ExplainedStep>)| Told {
            step: explained.clone(),
            line: step.line(parameters),
        };
        let told: Arc<[Told]> = self.steps.iter().zip(self.explained()).map(of).collect();
        *last = Some((parameters.origins(), told.clone()));
        told
    }

    /// About how much memory it holds, without what it shares with other plans.
    fn bytes(&self) -> usize {
        let access = |access: &Access| {
            let starts = &access.offset.starts;
            let strides = |(_, strides): &(u32, SmallVec<[isize; 4]>)| {
                if strides.spilled() { size_of_val(&strides[..]) } else { 0 }
            };
            size_of_val(&starts[..]) + starts.iter().map(strides).sum::<usize>()
        };
        let step = |step: &Step| {
            size_of::<Step>()
                + size_of_val(&step.inputs[..])
                + size_of_val(&step.outputs[..])
                + step.inputs.iter().chain(&step.outputs).map(access).sum::<usize>()
                + size_of_val(&step.scalars[..])
                + if step.frees.spilled() { size_of_val(&step.frees[..]) } else { 0 }
        };
        let shared = |index: usize| self.from.as_ref().map(|from| &from.steps[index]);
        let own = self.steps.iter().enumerate();
        let own = own
            .filter(|(index, own)| shared(*index).is_none_or(|shared| !Arc::ptr_eq(shared, own)));
        size_of::<Plan>()
            + self.template.as_ref().map_or(0, Template::bytes)
            + size_of_val(&self.steps[..])
            + size_of_val(&self.at_once[..])
            + own.map(|(_, own)| step(own)).sum::<usize>()
            + self.sequence.as_ref().map_or(0, |sequence| sequence.bytes())
            + size_of_val(&self.outputs[..])
            + size_of_val(&self.slots[..])
            + size_of_val(&self.rooms[..])
            + size_of_val(&self.scratch[..])
            + size_of_val(&self.late[..])
            + size_of_val(&self.makers[..])
    }
}
