//! Evaluation: from the arrays that are wanted to a plan that runs, and the results back.
//!
//! A walk collects what is not computed yet and writes down the plan's key. Whatever somebody
//! still holds a handle on is computed too, so that nothing is computed twice; what only the
//! walked graph itself refers to is not kept. No lock is held while a plan is made or runs.

#![deny(clippy::wildcard_enum_match_arm)]

mod ahead;
mod host;
pub(crate) mod undo;
mod walk;

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use self::ahead::Ahead;
pub(crate) use self::ahead::plans_of;
use self::walk::{WALK, Walk, Walked};
use crate::array::{Array, Event, Inputs, Node, Progress, Value, Values};
use crate::backend::{backend, wait_for};
use crate::device::{Device, Stream, working_for};
use crate::error::{Error, Result, panic_text};
use crate::fork;
use crate::holders;
use crate::plan::Failure;
use crate::prim::{Mark, Op};
use crate::profile::{self, What};

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
                Progress::Ready(values) if values.get(array.output).is_none() => {
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

/// The arrays that still need a plan to run; waits for those on their way.
fn unfinished(arrays: &[Array]) -> Result<Vec<Array>> {
    let mut roots = Vec::new();
    for array in arrays {
        loop {
            let inside = fork::inside();
            let state = array.node.state();
            match &state.progress {
                Progress::Ready(values) if values.get(array.output).is_none() => {
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
            let mut walk = match Walk::over(roots, mine, &Ahead::default(), &mut guard)? {
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
                        for (output, value) in own.iter_mut().filter(|_| is_new) {
                            let (op, line) = maker(node);
                            let aval = &node.avals[output as usize];
                            holders::hold(&mut value.buffer, op, aval, line);
                        }
                        let mut state = node.state();
                        // Of whose last array went meanwhile nobody lets go later.
                        if !node.is_traced() {
                            let outputs = 0..node.avals.len() as u32;
                            let is_gone = |output: &u32| node.arrays_of(*output) == Some(0);
                            gone.extend(outputs.filter(is_gone).filter_map(|at| own.release(at)));
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
