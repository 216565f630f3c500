//! Evaluation: from the arrays that are wanted to a plan that runs, and the results back.
//!
//! A walk collects what is not computed yet and writes down the plan's key. Whatever somebody
//! still holds a handle on is computed too, so that nothing is computed twice; what only the
//! walked graph itself refers to is not kept. No lock is held while a plan is made or runs.

#![deny(clippy::wildcard_enum_match_arm)]

mod host;
pub(crate) mod undo;

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use smallvec::SmallVec;

use crate::array::{Array, Event, Inputs, Node, Progress, Value, Values};
use crate::backend::{Buffer, backend, moved, wait_for};
use crate::device::{Device, Stream, working_for};
use crate::error::{Error, Result, panic_text};
use crate::fork;
use crate::graph::{self, Borrowed, NodeRef};
use crate::holders;
use crate::plan::{Failure, Origin, Parameters, Plan};
use crate::prim::key::Key;
use crate::prim::{Argument, Input, Mark, Op};
use crate::profile::{self, What};
use crate::shape::Aval;

/// Computes `arrays`, all together. The CPU is done with them on return; a GPU has the work in its
/// queue, and [`wait`] or reading an array waits for it.
///
/// # Errors
/// Where a computation fails, or an array is traced by `vmap` or `compile` and so has no values. An
/// [update](crate::ops::update) that values keep from being computed, as an index outside its axis, is undone then.
pub fn eval(arrays: &[Array]) -> Result<()> {
    let outcome = at_once(arrays);
    match outcome {
        Err(error) if error.is_of_values() || error.lasts() => {
            Err(match undo::undo(arrays, &error) {
                true => error.with_updates_undone(),
                false => error,
            })
        }
        outcome => outcome,
    }
}

/// [`eval`], but updates that cannot be computed stay what they are: for who does not pass the error on.
#[doc(hidden)]
pub fn compute(arrays: &[Array]) -> Result<()> {
    at_once(arrays)
}

/// [`eval`], but for what becomes of updates.
fn at_once(arrays: &[Array]) -> Result<()> {
    let mut roots = unfinished(arrays)?;
    // One device at a time, in the order in which they first come.
    while let Some(first) = roots.first() {
        let device = first.node.stream.device;
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            roots.into_iter().partition(|r| r.node.stream.device == device);
        Job::prepare(&here, None)?.run()?;
        roots = unfinished(&elsewhere)?;
    }
    Ok(())
}

/// Computes `arrays`, all together, and waits until every device is done with them.
///
/// # Errors
/// As [`eval`], and where a GPU finds something wrong with values: an index outside its axis.
///
/// # Example
/// ```
/// use cupola::{Array, wait};
/// let x = Array::from_vec(vec![1.0f32, 2.0], [2])?;
/// wait(&[x])?;
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn wait(arrays: &[Array]) -> Result<()> {
    eval(arrays)?;
    let mut waited = Vec::new();
    for array in arrays {
        let stream = array.node.stream;
        if stream.device != Device::CPU && !waited.contains(&stream) {
            waited_for(stream)?;
            waited.push(stream);
        }
    }
    Ok(())
}

/// Starts computing `arrays`, all together, and returns at once. Reading one waits for it; where
/// the computation failed, it tries again and gives the error.
///
/// # Errors
/// Where an array is the failed result of an earlier evaluation.
pub fn async_eval(arrays: &[Array]) -> Result<()> {
    let event = Arc::new(Event::default());
    let mut roots = Vec::new();
    {
        let _walk = fork::lock(&WALK);
        for array in arrays {
            match &array.node.state().progress {
                Progress::Lazy => roots.push(array.clone()),
                Progress::Pending(own) if own.is_left_behind() => roots.push(array.clone()),
                Progress::Ready(values) if values[array.output as usize].is_none() => {
                    return Err(array.lost());
                }
                Progress::Pending(_) | Progress::Ready(_) => {}
                Progress::Failed(error) => return Err(Error::Failed(error.clone())),
            }
        }
        for root in &roots {
            root.node.state().progress = Progress::Pending(event.clone());
        }
    }
    let Some(first) = roots.first() else { return Ok(()) };
    let stream = first.node.stream;
    let nodes: Vec<Arc<Node>> = roots.iter().map(|r| r.node.clone()).collect();
    let given_up = {
        let event = event.clone();
        move || {
            let _inside = fork::inside();
            for node in &nodes {
                let mut state = node.state();
                if matches!(&state.progress, Progress::Pending(own) if Arc::ptr_eq(own, &event)) {
                    state.progress = Progress::Lazy;
                }
            }
            event.set();
        }
    };
    let otherwise = given_up.clone();
    let task = move || {
        let work = || Job::prepare(&roots, Some(&event)).and_then(Job::run);
        // What failed is lazy again, and gives its error when it is read; so does what panicked.
        match matches!(catch_unwind(AssertUnwindSafe(work)), Ok(Ok(()))) {
            true => event.set(),
            false => given_up(),
        }
    };
    on_stream(stream, Box::new(task)).inspect_err(|_| otherwise())
}

/// Waits for all work that was given to `stream`.
///
/// # Errors
/// Where the device is not there or reports a failure.
pub fn synchronize(stream: Stream) -> Result<()> {
    let event = Arc::new(Event::default());
    let signal = event.clone();
    on_stream(stream, Box::new(move || signal.set()))?;
    event.wait()?;
    waited_for(stream)
}

/// Waits for all that a device was given by a stream.
fn waited_for(stream: Stream) -> Result<()> {
    working_for(stream, || wait_for(&**backend(stream.device)?))
}

/// The plan that evaluating `arrays` would run, and whether it was there already.
pub(crate) fn plan_of(arrays: &[Array]) -> Result<(Arc<Plan>, bool)> {
    let roots = unfinished(arrays)?;
    let walk = loop {
        let walked = Walk::over(&roots, None, &mut fork::lock(&WALK))?;
        match walked {
            Walked::Done(walk) => break walk,
            Walked::Wait(event) => event.wait()?,
            Walked::Elsewhere(array) => array.eval()?,
        }
    };
    let device = roots.first().map_or(Device::CPU, |r| r.node.stream.device);
    walk.plan(device, walk.leaves.iter().flat_map(Leaf::values))
}

/// The arrays that still need a plan to run; waits for those on their way.
fn unfinished(arrays: &[Array]) -> Result<Vec<Array>> {
    let mut roots = Vec::new();
    for array in arrays {
        loop {
            let inside = fork::inside();
            let state = array.node.state();
            match &state.progress {
                Progress::Ready(values) if values[array.output as usize].is_none() => {
                    return Err(array.lost());
                }
                Progress::Ready(_) => break,
                Progress::Failed(error) => return Err(Error::Failed(error.clone())),
                Progress::Lazy => {
                    roots.push(array.clone());
                    break;
                }
                Progress::Pending(event) if is_free(event) => {
                    roots.push(array.clone());
                    break;
                }
                Progress::Pending(event) => {
                    let event = event.clone();
                    drop((state, inside));
                    event.wait()?;
                }
            }
        }
    }
    Ok(roots)
}

thread_local! {
    /// Whether this is the thread of a stream.
    static IS_OF_STREAM: Cell<bool> = const { Cell::new(false) };
}

/// Whether what is on its way under `event` may be computed by whoever needs it. The thread of a stream waits for
/// nothing that is only to be begun: that may be behind its own task, or wait for it on another stream. It does the
/// work itself, and the task that was to do it finds it done.
fn is_free(event: &Event) -> bool {
    event.is_left_behind() || IS_OF_STREAM.get() && !event.has_begun()
}

/// What a stream's thread is given to do.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// Hands `task` to the thread of `stream`, which runs its tasks in order.
pub(crate) fn on_stream(stream: Stream, task: Task) -> Result<()> {
    type Streams = HashMap<Stream, Sender<Task>>;
    static STREAMS: Mutex<(u32, Option<Streams>)> = Mutex::new((0, None));
    let mut guard = fork::lock(&STREAMS);
    let (generation, streams) = &mut *guard;
    if *generation != fork::generation() {
        // Their threads were not copied; what belongs to these is left as it is.
        *generation = fork::generation();
        std::mem::forget(streams.take());
    }
    let sender = streams.get_or_insert_default().entry(stream).or_insert_with(|| {
        let (sender, receiver) = channel::<Task>();
        let work = move || {
            IS_OF_STREAM.set(true);
            receiver.into_iter().for_each(|task| task());
        };
        std::thread::spawn(move || working_for(stream, work));
        sender
    });
    sender.send(task).map_err(|_| Error::Device(format!("the stream of {} ended", stream.device)))
}

/// Held while a graph is walked or results are put in place. Holds the number of the last walk.
static WALK: Mutex<u32> = Mutex::new(0);

/// In a node's number within a walk: it is a leaf.
const LEAF: u64 = 1 << 31;

/// A node that is to be computed.
struct Interior {
    node: Arc<Node>,
    inputs: SmallVec<[Source; 2]>,
    /// How many inputs of walked nodes are this node.
    edges: usize,
}

/// Where an input comes from: the index of a leaf or of an interior node, and which output.
#[derive(Clone, Copy)]
struct Source {
    leaf: bool,
    index: u32,
    output: u32,
}

/// A node that is there: those of its outputs that have values are leaves, one after the other.
struct Leaf {
    node: Arc<Node>,
    first: u32,
    outputs: SmallVec<[LeafOutput; 1]>,
}

/// A leaf.
struct LeafOutput {
    output: u32,
    /// How many inputs of walked nodes are this output.
    edges: usize,
    /// `None` once it was taken out of the node and handed to the plan.
    value: Option<Value>,
}

impl Leaf {
    fn outputs(values: &Values) -> SmallVec<[LeafOutput; 1]> {
        let mut outputs = SmallVec::with_capacity(values.len());
        for (output, value) in (0..).zip(values) {
            if value.is_some() {
                outputs.push(LeafOutput { output, edges: 0, value: value.clone() });
            }
        }
        outputs
    }

    /// The leaf that an input of a walked node is.
    fn edge(&mut self, input: &Array) -> Result<u32> {
        let place = self.outputs.binary_search_by_key(&input.output, |leaf| leaf.output);
        let at = place.map_err(|_| input.lost())?;
        self.outputs[at].edges += 1;
        Ok(self.first + at as u32)
    }

    fn avals(&self) -> impl Iterator<Item = &Aval> {
        self.outputs.iter().map(|leaf| &self.node.avals[leaf.output as usize])
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.outputs.iter().filter_map(|leaf| leaf.value.as_ref())
    }
}

/// The graph under some arrays.
struct Walk {
    leaves: Vec<Leaf>,
    leaf_count: u32,
    nodes: Vec<Interior>,
    /// The nodes, by index, whose outputs are wanted.
    outputs: Vec<u32>,
    key: Key,
}

enum Walked {
    Done(Walk),
    /// Something is on its way on a stream: walk again after it.
    Wait(Arc<Event>),
    /// Something is to be computed on another device, or on another stream, first.
    Elsewhere(Array),
}

impl Walk {
    /// Walks over everything under `roots` that is not computed. `mine` is the event of the
    /// evaluation that walks, whose own roots are already marked with it.
    fn over(roots: &[Array], mine: Option<&Arc<Event>>, last: &mut u32) -> Result<Walked> {
        *last = last.wrapping_add(1).max(1);
        let epoch = u64::from(*last) << 32;
        let visited = |node: &Node| {
            let visit = node.visit.load(Ordering::Relaxed);
            (visit >> 32 << 32 == epoch).then_some(visit & u64::from(u32::MAX))
        };
        // Work that somebody asked for and that no fork left behind.
        let is_others = |event: &Arc<Event>| {
            !event.is_left_behind() && mine.is_none_or(|mine| !Arc::ptr_eq(mine, event))
        };
        let mut walk = Walk {
            leaves: Vec::with_capacity(8),
            leaf_count: 0,
            nodes: Vec::with_capacity(16),
            outputs: Vec::new(),
            key: Key::default(),
        };
        let device = roots.first().map_or(Device::CPU, |r| r.node.stream.device);
        let mut key = Key::with_capacity(512);
        let mut stack: Vec<(Arc<Node>, bool)> =
            roots.iter().rev().map(|r| (r.node.clone(), false)).collect();
        while let Some((node, entered)) = stack.pop() {
            if visited(&node).is_some() {
                continue;
            }
            let mut state = node.state();
            if entered {
                let mut inputs = SmallVec::with_capacity(state.inputs.len());
                node.op.write_key(&mut key);
                let needed = undo::needed(&node, &state.inputs).len();
                // What is replaced counts where it is there.
                let counts = |(place, input): &(usize, &Array)| {
                    *place < needed
                        || visited(&input.node).is_some_and(|at| at & LEAF == 0 || input.is_ready())
                };
                let counting = || state.inputs.iter().enumerate().filter(counts);
                key.push(counting().count() as u64);
                for (_, input) in counting() {
                    let Some(at) = visited(&input.node) else { continue };
                    let leaf = at & LEAF != 0;
                    let index = (at & !LEAF) as u32;
                    let source = if leaf {
                        let index = walk.leaves[index as usize].edge(input)?;
                        Source { leaf, index, output: 0 }
                    } else {
                        walk.nodes[index as usize].edges += 1;
                        Source { leaf, index, output: input.output }
                    };
                    key.push(u64::from(source.index) << 1 | u64::from(leaf));
                    key.push(source.output.into());
                    inputs.push(source);
                }
                node.visit.store(epoch | walk.nodes.len() as u64, Ordering::Relaxed);
                drop(state);
                walk.nodes.push(Interior { node, inputs, edges: 0 });
                continue;
            }
            match &state.progress {
                Progress::Ready(values) => {
                    node.visit.store(epoch | LEAF | walk.leaves.len() as u64, Ordering::Relaxed);
                    let (first, outputs) = (walk.leaf_count, Leaf::outputs(values));
                    walk.leaf_count += outputs.len() as u32;
                    drop(state);
                    walk.leaves.push(Leaf { node, first, outputs });
                }
                Progress::Failed(error) => return Err(Error::Failed(error.clone())),
                Progress::Pending(event) if is_others(event) && !is_free(event) => {
                    return Ok(Walked::Wait(event.clone()));
                }
                // What another stream was given is computed by itself, as that stream's.
                Progress::Pending(event)
                    if is_others(event)
                        && roots.iter().all(|root| root.node.stream != node.stream) =>
                {
                    drop(state);
                    return Ok(Walked::Elsewhere(Array::of(node, 0)));
                }
                Progress::Lazy | Progress::Pending(_) => {
                    if node.op.is_input() {
                        return Err(traced(&node));
                    }
                    undo::try_again(&mut state.inputs);
                    if let Some(error) = undo::undone_under(&node, &state.inputs) {
                        return Err(error);
                    }
                    if node.stream.device != device {
                        drop(state);
                        return Ok(Walked::Elsewhere(Array::of(node, 0)));
                    }
                    let needed = undo::needed(&node, &state.inputs).len();
                    // What is replaced may be there, and its memory be used again.
                    let is_next = |(place, input): &(usize, &Array)| {
                        visited(&input.node).is_none() && (*place < needed || input.is_ready())
                    };
                    let updates: SmallVec<[Arc<Node>; 1]> = state.updates().collect();
                    let pending: SmallVec<[Arc<Node>; 4]> = state
                        .inputs
                        .iter()
                        .enumerate()
                        .rev()
                        .filter(is_next)
                        .map(|(_, input)| input.node.clone())
                        .collect();
                    drop(state);
                    // What it becomes is computed with it, or would keep what it takes the place of.
                    let is_along = |update: &Arc<Node>| {
                        let is_lazy = matches!(update.state().progress, Progress::Lazy);
                        is_lazy && update.stream == node.stream && visited(update).is_none()
                    };
                    stack.extend(updates.into_iter().filter(is_along).map(|n| (n, false)));
                    stack.push((node, true));
                    stack.extend(pending.into_iter().map(|n| (n, false)));
                }
            }
        }
        // What is wanted, and what others hold: a walked node has one handle here and one for each
        // edge, and every further one is somebody else's.
        for root in roots {
            // A root that another thread finished in the meantime is a leaf by now.
            if let Some(at) = visited(&root.node).filter(|at| at & LEAF == 0) {
                walk.outputs.push(at as u32);
            }
        }
        for (index, interior) in walk.nodes.iter().enumerate() {
            if Arc::strong_count(&interior.node) > interior.edges + 1 {
                walk.outputs.push(index as u32);
            }
        }
        walk.outputs.sort_unstable();
        walk.outputs.dedup();
        for leaf in &walk.leaves {
            for (aval, value) in leaf.avals().zip(leaf.values()) {
                aval.hash(&mut key);
                value.layout.strides.hash(&mut key);
            }
        }
        walk.outputs.iter().for_each(|&output| key.push(output.into()));
        key.push(walk.outputs.len() as u64);
        key.push((device.kind as u64) << 16 | u64::from(device.index));
        walk.key = key;
        Ok(Walked::Done(walk))
    }

    /// The plan of the walked graph, whose leaves are `values`.
    fn plan<'a>(
        &self,
        device: Device,
        values: impl Iterator<Item = &'a Value>,
    ) -> Result<(Arc<Plan>, bool)> {
        Plan::cached(&self.key, || {
            let backend = backend(device)?;
            let strides: Vec<_> = values.map(|value| value.layout.strides.clone()).collect();
            let avals = self.leaves.iter().flat_map(Leaf::avals);
            let inputs: Vec<Op> =
                avals.map(|aval| Op::Input(Input { aval: aval.clone() })).collect();
            let (start, _range) = (profile::begin(), profile::range("plan"));
            let plan = Plan::new(self.graph(&inputs), &strides, &**backend)?;
            let (nodes, steps) = (self.nodes.len(), plan.step_count());
            profile::end(start, || What::Planning { device, nodes, steps });
            Ok(plan)
        })
    }

    /// The walked graph: leaves first, which `inputs` stand for, then the nodes.
    fn graph<'a>(&'a self, inputs: &'a [Op]) -> Borrowed<'a> {
        let mut nodes = Vec::with_capacity(inputs.len() + self.nodes.len());
        let avals = self.leaves.iter().flat_map(Leaf::avals);
        for (op, aval) in inputs.iter().zip(avals) {
            nodes.push(NodeRef { op, inputs: SmallVec::new(), avals: std::slice::from_ref(aval) });
        }
        let source = |s: &Source| match s.leaf {
            true => graph::Ref { node: s.index, output: 0 },
            false => graph::Ref { node: self.leaf_count + s.index, output: s.output },
        };
        for Interior { node, inputs, .. } in &self.nodes {
            let inputs = inputs.iter().map(source).collect();
            nodes.push(NodeRef { op: &node.op, inputs, avals: &node.avals });
        }
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for &index in &self.outputs {
            let node = self.leaf_count + index;
            let count = self.nodes[index as usize].node.avals.len() as u32;
            outputs.extend((0..count).map(|output| graph::Ref { node, output }));
        }
        Borrowed { nodes, outputs }
    }
}

impl Parameters for Walk {
    fn argument(&self, node: u32) -> Argument<'_> {
        self.nodes[(node - self.leaf_count) as usize].node.op.facts().argument
    }

    fn line(&self, path: &[u32]) -> Option<Arc<str>> {
        let (first, rest) = path.split_first()?;
        let index = first.checked_sub(self.leaf_count)?;
        let node = &self.nodes.get(index as usize)?.node;
        node.op.line_within(rest).or_else(|| node.line.clone())
    }

    fn origins(&self) -> Vec<Origin> {
        let of = |Interior { node, .. }: &Interior| Origin::new(node.line.as_ref(), &node.op);
        self.nodes.iter().map(of).collect()
    }

    fn has_origins(&self, known: &[Origin]) -> bool {
        let mut both = self.nodes.iter().zip(known);
        self.nodes.len() == known.len()
            && both.all(|(Interior { node, .. }, known)| known.is_of(node.line.as_ref(), &node.op))
    }
}

/// The error of reading an array that has no values.
fn traced(node: &Node) -> Error {
    let transform = node.scopes.as_ref().and_then(|m| m.active_transform());
    let aval = match node.op.is_input() {
        true => node.avals[0].to_string(),
        false => node.op.name().to_owned(),
    };
    Error::Traced(match transform {
        Some(name) => format!(
            "this array depends on an input ({aval}) of a function that {name} is tracing, so it \
             has no values: use ops such as where instead of reading it, or return it"
        ),
        None => format!(
            "this array depends on an input ({aval}) of a function that was traced, and outlived \
             the trace: return it from the function instead"
        ),
    })
}

/// A walked graph and its leaves, which were taken out of it.
struct Work {
    walk: Walk,
    leaves: Vec<Value>,
}

/// The operation that made what a node is, and its line: of an update what is put in the place of another.
fn maker(node: &Node) -> (&'static str, Option<Arc<str>>) {
    if let Op::Mark(Mark::Update) = node.op
        && let Some(fresh) = node.state().inputs.first()
    {
        return (fresh.node.op.name(), fresh.node.line.clone());
    }
    (node.op.name(), node.line.clone())
}

/// An evaluation that is about to run.
struct Job {
    /// Only read while the plan runs: a forked process finds it so.
    work: Arc<RwLock<Work>>,
    stream: Stream,
    event: Arc<Event>,
    _inside: fork::Inside,
}

impl Job {
    /// Walks, marks the results as on their way, and takes the leaves that nobody else holds.
    fn prepare(roots: &[Array], mine: Option<&Arc<Event>>) -> Result<Job> {
        let stream = roots[0].node.stream;
        loop {
            let inside = fork::inside();
            let mut guard = fork::lock(&WALK);
            let mut walk = match Walk::over(roots, mine, &mut guard)? {
                Walked::Done(walk) => walk,
                Walked::Wait(event) => {
                    drop((guard, inside));
                    event.wait()?;
                    continue;
                }
                Walked::Elsewhere(array) => {
                    drop((guard, inside));
                    // Updates are undone where somebody gets the error.
                    at_once(&[array])?;
                    continue;
                }
            };
            let event = mine.cloned().unwrap_or_default();
            for &output in &walk.outputs {
                walk.nodes[output as usize].node.state().progress =
                    Progress::Pending(event.clone());
            }
            let leaves = walk.take_leaves();
            event.begin();
            let work = Arc::new(RwLock::new(Work { walk, leaves }));
            return Ok(Job { work, stream, event, _inside: inside });
        }
    }

    fn run(self) -> Result<()> {
        if self.reading(|work| work.walk.nodes.is_empty()) {
            return Ok(());
        }
        let (start, range) = (profile::begin(), profile::range("evaluate"));
        let compute = || working_for(self.stream, || self.compute());
        let compute = AssertUnwindSafe(|| fork::begun(self.work.clone(), compute));
        let (result, panic) = match catch_unwind(compute) {
            Ok(result) => (result, None),
            Err(payload) => {
                let error = Error::Device(format!("it panicked: {}", panic_text(&*payload)));
                (Err(Failure { error, overwritten: true }), Some(payload))
            }
        };
        drop(range);
        if start.is_some() {
            let nodes = self.reading(|work| work.walk.nodes.len());
            let device = self.stream.device;
            let memory = backend(device).map(|on| on.memory()).unwrap_or_default();
            let is_without_lines = holders::pauses();
            let end = profile::end(start, || What::Evaluation {
                device,
                nodes,
                is_without_lines,
                memory,
            });
            end.into_iter().for_each(holders::settle);
        }
        let mut work = self.work.write().unwrap_or_else(PoisonError::into_inner);
        let mut dropped: Vec<Inputs> = Vec::with_capacity(work.walk.outputs.len());
        let mut gone: Vec<Value> = Vec::new();
        let outcome = {
            let _guard = fork::lock(&WALK);
            match result {
                Ok(values) => {
                    let mut values = values.into_iter();
                    for node in work.walk.outputs() {
                        let mut own: Values =
                            values.by_ref().take(node.avals.len()).map(Some).collect();
                        // What only moves is in the memory of what it moves.
                        let is_new = !matches!(
                            node.op,
                            Op::Movement(_) | Op::Mark(Mark::StopGradient | Mark::Depends)
                        );
                        for (value, aval) in own.iter_mut().zip(&node.avals).filter(|_| is_new) {
                            let Some(value) = value else { continue };
                            let (op, line) = maker(node);
                            holders::hold(&mut value.buffer, op, aval, line);
                        }
                        let mut state = node.state();
                        // Of whose last array went meanwhile nobody lets go later.
                        if !node.is_traced() {
                            let is_gone = |output: u32| node.arrays_of(output) == Some(0);
                            let outputs = (0..).zip(&mut own).filter(|(at, _)| is_gone(*at));
                            gone.extend(outputs.filter_map(|(_, value)| value.take()));
                        }
                        state.become_ready(own);
                        if !node.is_traced() {
                            dropped.push(std::mem::take(&mut state.inputs));
                        }
                    }
                    Ok(())
                }
                Err(Failure { error, overwritten: false }) => {
                    let leaves = std::mem::take(&mut work.leaves);
                    work.walk.undo(leaves);
                    Err(error)
                }
                Err(Failure { error, overwritten: true }) => {
                    let shared = Arc::new(error.clone());
                    for node in work.walk.outputs() {
                        node.state().progress = Progress::Failed(shared.clone());
                    }
                    Err(error)
                }
            }
        };
        self.event.set();
        // Whoever waited has an error; this thread goes on panicking.
        panic.map_or(outcome, |payload| resume_unwind(payload))
    }
}

impl Job {
    fn reading<R>(&self, f: impl FnOnce(&Work) -> R) -> R {
        f(&self.work.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn compute(&self) -> std::result::Result<Vec<Value>, Failure> {
        let device = self.stream.device;
        if self.reading(|work| work.leaves.iter().any(|v| v.buffer.device() != device)) {
            let mut work = self.work.write().unwrap_or_else(PoisonError::into_inner);
            let Work { walk, leaves } = &mut *work;
            walk.bring(leaves, device)?;
        }
        self.reading(|Work { walk, leaves }| {
            let (plan, _) = walk.plan(device, leaves.iter())?;
            plan.run(leaves, walk)
        })
    }
}

impl fork::Begun for RwLock<Work> {
    fn undo(&self) {
        // A thread that was left behind with its leaves on the way to another device keeps them.
        if let Ok(work) = self.try_read() {
            work.walk.undo(work.leaves.clone());
        }
    }
}

impl Walk {
    /// Brings the leaves to `device`. An array lives where it was last used: the copy takes the
    /// place of the original.
    fn bring(&mut self, values: &mut [Value], device: Device) -> Result<()> {
        let sizes = self.leaves.iter().flat_map(Leaf::avals);
        let mut copies: Vec<(Buffer, [usize; 2], Buffer)> = Vec::new();
        for (value, aval) in values.iter_mut().zip(sizes) {
            if value.buffer.device() == device {
                continue;
            }
            // Of a view of little of a buffer only what it reaches: a batch, not the data set.
            let size = aval.dtype.size();
            let reach = value.layout.reach(&aval.shape);
            let mut range = [reach.start as usize * size, reach.end as usize * size];
            if (range[1] - range[0]) * 2 > value.buffer.bytes() {
                range = [0, value.buffer.bytes()];
            }
            let known = copies.iter().find(|(from, r, _)| from.same(&value.buffer) && *r == range);
            let copy = match known {
                Some((_, _, copy)) => copy.clone(),
                None => {
                    let copy = moved(&value.buffer, range[0]..range[1], device)?;
                    copies.push((value.buffer.clone(), range, copy.clone()));
                    copy
                }
            };
            value.buffer = copy;
            value.layout.offset -= (range[0] / size) as isize;
        }
        let mut values = values.iter();
        for Leaf { node, outputs, .. } in &mut self.leaves {
            let mut state = node.state();
            for (LeafOutput { output, value: own, .. }, value) in
                outputs.iter_mut().zip(&mut values)
            {
                // What was taken out of its node stays out, and so does what nobody has any more.
                if let (Some(own), Progress::Ready(all)) = (own, &mut state.progress)
                    && let Some(there) = &mut all[*output as usize]
                {
                    *own = value.clone();
                    *there = value.clone();
                }
            }
        }
        Ok(())
    }

    /// The leaves' values. Those that only walked nodes refer to are taken out of their nodes, so
    /// that the plan may overwrite them; not where a transform will walk here again.
    fn take_leaves(&mut self) -> Vec<Value> {
        let traced = undo::is_looked_for() || self.nodes.iter().any(|n| n.node.is_traced());
        let mut values = Vec::with_capacity(self.leaf_count as usize);
        for Leaf { node, outputs, .. } in &mut self.leaves {
            let mut state = node.state();
            for LeafOutput { output, edges, value } in outputs {
                // Of one output of several the arrays are counted.
                let is_nobody_elses = match node.arrays_of(*output) {
                    Some(arrays) => arrays == *edges,
                    None => Arc::strong_count(node) == *edges + 1,
                };
                if !traced && is_nobody_elses {
                    if let Progress::Ready(all) = &mut state.progress {
                        all[*output as usize] = None;
                    }
                    values.extend(value.take());
                } else {
                    values.extend(value.clone());
                }
            }
        }
        values
    }

    /// The nodes whose outputs are wanted.
    fn outputs(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.outputs.iter().map(|&output| &self.nodes[output as usize].node)
    }

    /// Makes the results lazy again, and puts what [`Walk::take_leaves`] took back into its nodes.
    fn undo(&self, values: Vec<Value>) {
        for node in self.outputs() {
            node.state().progress = Progress::Lazy;
        }
        let mut values = values.into_iter();
        for Leaf { node, outputs, .. } in &self.leaves {
            let mut state = node.state();
            for (LeafOutput { output, value: own, .. }, value) in outputs.iter().zip(&mut values) {
                if let (None, Progress::Ready(all)) = (own, &mut state.progress)
                    && node.arrays_of(*output) != Some(0)
                {
                    all[*output as usize] = Some(value);
                }
            }
        }
    }
}
