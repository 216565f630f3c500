//! Lazy arrays: handles on nodes of a graph that grows as operations are recorded.

mod format;
pub(crate) mod scope;
mod values;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use smallvec::SmallVec;

use crate::device::{Device, Stream, default_stream, with_stream};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::fork;
use crate::holders;
use crate::memory::Buffer;
use crate::prim::movement::view_layout;
use crate::prim::{Avals, Constant, Input, Mark, Movement, Op};
use crate::shape::{Aval, Dims, Layout, Shape};

use self::scope::{Scope, Scopes};

pub(crate) use self::scope::{is_in_body, note_sizes, recording_body};
pub(crate) use self::values::Values;

/// A multi-dimensional array of one dtype, computed when it is first needed.
///
/// Operations on arrays only record; [`Array::eval`], or reading a value, computes. A clone is a
/// second handle on the same array.
pub struct Array {
    pub(crate) node: Arc<Node>,
    pub(crate) output: u32,
}

/// The inputs of a node.
pub(crate) type Inputs = SmallVec<[Array; 2]>;

/// A recorded operation.
pub(crate) struct Node {
    pub op: Op,
    pub avals: Avals,
    pub stream: Stream,
    /// The transforms that trace this node.
    pub scopes: Option<Arc<Scopes>>,
    /// The line of the program that recorded it, where lines are noted.
    pub line: Option<Arc<str>>,
    /// Scratch of whoever walks the graph, under the walk lock: the walk and the place in it.
    pub visit: AtomicU64,
    /// Of an update that was undone. Its values are those of what it was the update of, where they fit it.
    pub undone: OnceLock<Box<Undone>>,
    /// Whether values may keep it, or what it is computed from, from being computed: [`Array::may_fail`].
    pub may_fail: bool,
    /// How many arrays each output has, of several outputs.
    held: Option<Box<[AtomicU32]>>,
    state: Mutex<State>,
}

/// Why an update was undone, and the arrays that its outputs were before.
pub(crate) struct Undone {
    pub error: Error,
    pub former: Mutex<Former>,
}

/// What outputs were before; `None` for one that took no array's place, or has no array any more.
pub(crate) type Former = SmallVec<[Option<Array>; 1]>;

/// What changes about a node.
pub(crate) struct State {
    /// Dropped once the node has its value, unless a transform may still walk over it.
    pub inputs: Inputs,
    pub progress: Progress,
    /// What outputs take the place of, where no update is recorded for that; of several of one output the last counts.
    pub replaced: Option<Box<SmallVec<[Replaced; 1]>>>,
    /// The [updates](crate::ops::update) that are what it is.
    updates: Option<Box<SmallVec<[Weak<Node>; 2]>>>,
}

impl State {
    fn new(inputs: Inputs, progress: Progress) -> State {
        State { inputs, progress, replaced: None, updates: None }
    }

    /// The updates that are what it is, and that somebody has.
    pub fn updates(&self) -> impl Iterator<Item = Arc<Node>> {
        self.updates.iter().flat_map(|all| all.iter()).filter_map(Weak::upgrade)
    }

    /// Makes it what was computed.
    pub fn become_ready(&mut self, values: Values) {
        self.progress = Progress::Ready(values);
        (self.replaced, self.updates) = (None, None);
    }
}

/// What an output takes the place of, as long as that is there: it is not kept for this.
pub(crate) struct Replaced {
    pub output: u32,
    former: Weak<Node>,
    of: u32,
}

impl Replaced {
    /// What was replaced, if it is still there.
    pub fn former(&self) -> Option<Array> {
        Some(Array::of(self.former.upgrade()?, self.of))
    }
}

/// How far a node is.
pub(crate) enum Progress {
    /// Only recorded.
    Lazy,
    /// Being computed on a stream.
    Pending(Arc<Event>),
    /// Computed.
    Ready(Values),
    /// Its evaluation failed.
    Failed(Arc<Error>),
}

/// A computed array: memory, and where in it.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub buffer: Buffer,
    pub layout: Layout,
    /// The least and the largest of integers that the host gave, or that follow from such: then indices need not be
    /// looked at again by a device that would tell late.
    pub range: Option<(i64, i64)>,
}

/// The end of some work on a stream.
pub(crate) struct Event {
    state: Mutex<Done>,
    signal: Condvar,
    /// Of the process whose thread is at work.
    generation: u32,
    /// Whether what is computed has given its leaves away.
    begun: AtomicBool,
}

#[derive(Default)]
struct Done {
    is_done: bool,
    /// How many threads wait: nobody else is woken, which asks the system.
    waiting: usize,
}

impl Default for Event {
    fn default() -> Self {
        let generation = fork::generation();
        let (state, signal, begun) = Default::default();
        Event { state, signal, generation, begun }
    }
}

impl Event {
    /// Notes that the work cannot be left to somebody else any more.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// Whether the work was begun: until then the thread of a stream may do it instead.
    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether it was a thread's work that the process that forked has, and not begun: then it is
    /// as if nobody had asked for it.
    pub fn is_left_behind(&self) -> bool {
        self.generation != fork::generation() && !self.has_begun()
    }

    /// Waits for the end, or until the host stops the waiting: the work goes on then.
    pub fn wait(&self) -> Result<()> {
        if let Err(left_behind) = fork::check(self.generation, "what another thread computed") {
            let is_done = self.state.try_lock().is_ok_and(|state| state.is_done);
            return if is_done { Ok(()) } else { Err(left_behind) };
        }
        let mut state = lock(&self.state);
        while !state.is_done {
            state.waiting += 1;
            let waited = self.signal.wait_timeout(state, crate::interrupt::PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
            if !state.is_done {
                drop(state);
                crate::interrupt::check()?;
                state = lock(&self.state);
            }
        }
        Ok(())
    }

    /// Whether the work is done.
    pub fn is_set(&self) -> bool {
        lock(&self.state).is_done
    }

    pub fn set(&self) {
        let mut state = fork::lock(&self.state);
        state.is_done = true;
        if state.waiting > 0 {
            self.signal.notify_all();
        }
    }
}

/// Locks, and goes on where another thread panicked while it held the lock: what is behind our
/// locks is consistent after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    pub fn new(op: Op, avals: Avals, scopes: Option<Arc<Scopes>>, state: State) -> Arc<Node> {
        let line = holders::line(scopes.as_ref().is_some_and(|scopes| scopes.is_symbolic()));
        Node::of_line(op, avals, scopes, state, line)
    }

    /// The same, where the line is known that recorded it.
    fn of_line(
        op: Op,
        avals: Avals,
        scopes: Option<Arc<Scopes>>,
        mut state: State,
        line: Option<Arc<str>>,
    ) -> Arc<Node> {
        let stream = default_stream();
        let may_fail =
            op.may_refuse_values(&state.inputs) || state.inputs.iter().any(Array::may_fail);
        for input in &mut state.inputs {
            match input.before_undone() {
                Some(former) if former.aval() == input.aval() => *input = former,
                _ => {}
            }
        }
        let state = Mutex::new(state);
        let (undone, visit) = (OnceLock::new(), AtomicU64::new(0));
        let held = (avals.len() > 1).then(|| avals.iter().map(|_| AtomicU32::new(0)).collect());
        Arc::new(Node { op, avals, stream, scopes, line, visit, undone, may_fail, held, state })
    }

    /// What was recorded, recorded once more.
    pub fn again(&self, inputs: Inputs) -> Arc<Node> {
        let Node { op, avals, scopes, line, .. } = self;
        let (op, avals, scopes, line) = (op.clone(), avals.clone(), scopes.clone(), line.clone());
        let state = State::new(inputs, Progress::Lazy);
        with_stream(self.stream, || Node::of_line(op, avals, scopes, state, line))
    }

    /// How many arrays there are of an output; `None` where there is only one output.
    pub fn arrays_of(&self, output: u32) -> Option<usize> {
        let held = self.held.as_deref()?;
        Some(held[output as usize].load(Ordering::Acquire) as usize)
    }

    /// Lets go of what an output was computed to be, and of what it was before, where it has no array any more: those of
    /// other outputs are not to keep it.
    fn release(&self, output: u32) {
        if self.is_traced() {
            return;
        }
        let _inside = fork::inside();
        let place = output as usize;
        let mut state = self.state();
        if self.arrays_of(output) != Some(0) {
            return;
        }
        let value = match &mut state.progress {
            Progress::Ready(values) => values.release(output),
            Progress::Lazy | Progress::Pending(_) | Progress::Failed(_) => None,
        };
        drop(state);
        let former = self.undone.get().and_then(|undone| lock(&undone.former)[place].take());
        drop((value, former));
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// [`Node::release`], for every output.
    pub fn release_unheld(&self) {
        let outputs = if self.held.is_some() { self.avals.len() as u32 } else { 0 };
        (0..outputs).for_each(|output| self.release(output));
    }

    fn take_inputs(&mut self) -> Inputs {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.inputs)
    }

    /// Whether a transform that is still running may walk over this node.
    pub fn is_traced(&self) -> bool {
        self.scopes.as_ref().is_some_and(|m| m.is_active())
    }
}

/// Drops chains of nodes without recursion: a million-node chain must not overflow the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let mut queue: SmallVec<[Array; 8]> = SmallVec::new();
        queue.extend(self.take_inputs());
        while let Some(mut array) = queue.pop() {
            // In its place, where no other thread drops it, too.
            if let Some(node) = Arc::get_mut(&mut array.node) {
                queue.extend(node.take_inputs());
                continue;
            }
            let node = array.node.clone();
            drop(array);
            if let Some(mut node) = Arc::into_inner(node) {
                queue.extend(node.take_inputs());
            }
        }
    }
}

impl Clone for Array {
    #[inline]
    fn clone(&self) -> Array {
        Array::of(self.node.clone(), self.output)
    }
}

impl Drop for Array {
    #[inline]
    fn drop(&mut self) {
        if let Some(held) = &self.node.held
            && held[self.output as usize].fetch_sub(1, Ordering::AcqRel) == 1
            && Arc::strong_count(&self.node) > 1
        {
            self.node.release(self.output);
        }
    }
}

impl Array {
    /// An output of a node.
    #[inline]
    pub(crate) fn of(node: Arc<Node>, output: u32) -> Array {
        if let Some(held) = &node.held {
            held[output as usize].fetch_add(1, Ordering::Relaxed);
        }
        Array { node, output }
    }

    /// One of the outputs of a node that have arrays.
    pub(crate) fn any_of(node: &Arc<Node>) -> Option<Array> {
        let mut outputs = 0..node.avals.len() as u32;
        let output = outputs.find(|&output| node.arrays_of(output) != Some(0))?;
        Some(Array::of(node.clone(), output))
    }

    /// All outputs of a node.
    pub(crate) fn all_of(node: &Arc<Node>) -> impl Iterator<Item = Array> {
        (0..node.avals.len() as u32).map(|output| Array::of(node.clone(), output))
    }

    /// Records `op` on `inputs`; gives its one output.
    ///
    /// This is the road of the functions in [`crate::ops`], which broadcast and promote first.
    ///
    /// # Errors
    /// Where [`Op::infer`] finds that the inputs do not fit.
    pub fn apply(op: impl Into<Op>, inputs: &[&Array]) -> Result<Array> {
        let op = op.into();
        let avals: SmallVec<[&Aval; 4]> = inputs.iter().map(|a| a.aval()).collect();
        let outputs = op.infer(&avals)?;
        if let (Op::Movement(movement), [input]) = (&op, inputs)
            && !scope::records_views()
            && let Some(view) = input.view(movement, &outputs[0])
        {
            return Ok(view);
        }
        let inputs = inputs.iter().map(|&a| a.clone()).collect();
        Ok(Array::of(Self::record(op, outputs, inputs), 0))
    }

    /// Records an op of any number of outputs; gives all of them.
    pub fn apply_multi(op: impl Into<Op>, inputs: &[&Array]) -> Result<Vec<Array>> {
        let op = op.into();
        let avals: SmallVec<[&Aval; 4]> = inputs.iter().map(|a| a.aval()).collect();
        let outputs = op.infer(&avals)?;
        let inputs = inputs.iter().map(|&a| a.clone()).collect();
        Ok(Array::all_of(&Self::record(op, outputs, inputs)).collect())
    }

    fn record(op: Op, avals: Avals, inputs: Inputs) -> Arc<Node> {
        let scopes = inputs.iter().fold(None, |m, a| Scopes::union(m, &a.node.scopes));
        Node::new(op, avals, scopes, State::new(inputs, Progress::Lazy))
    }

    /// An input of a trace: it has an aval and no value.
    pub(crate) fn placeholder(aval: Aval, scope: &Arc<Scope>) -> Array {
        scope.set_symbolic();
        let avals = Avals::from(aval.clone());
        let state = State::new(Inputs::new(), Progress::Lazy);
        let node = Node::new(Op::Input(Input { aval }), avals, Some(Scopes::of(scope)), state);
        Array::of(node, 0)
    }

    /// An array that stands for `primal` under a trace: it has the same value, and a scope.
    pub(crate) fn tracer(primal: &Array, scopes: &Arc<Scopes>) -> Result<Array> {
        if let Some(value) = primal.ready().filter(|_| !primal.node.is_traced()) {
            let aval = primal.aval().clone();
            let avals = Avals::from(aval.clone());
            let progress = Progress::Ready(Values::one(value));
            let state = State::new(Inputs::new(), progress);
            let node = Node::new(Op::Input(Input { aval }), avals, Some(scopes.clone()), state);
            return Ok(Array::of(node, 0));
        }
        let all = Scopes::union(Some(scopes.clone()), &primal.node.scopes);
        let avals = Avals::from(primal.aval().clone());
        let inputs = SmallVec::from_iter([primal.clone()]);
        let state = State::new(inputs, Progress::Lazy);
        let node = Node::new(Op::Mark(Mark::Depends), avals, all, state);
        Ok(Array::of(node, 0))
    }

    /// An array that is there already.
    pub(crate) fn from_value(aval: Aval, value: Value) -> Array {
        let avals = Avals::from(aval.clone());
        let progress = Progress::Ready(Values::one(value));
        let state = State::new(Inputs::new(), progress);
        let node = Node::new(Op::Input(Input { aval }), avals, None, state);
        Array::of(node, 0)
    }

    /// An array without axes that holds one number.
    ///
    /// # Example
    /// ```
    /// use cupola::Array;
    /// assert_eq!(Array::scalar(2.5f32).item::<f32>()?, 2.5);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn scalar<T: Element>(value: T) -> Array {
        Self::constant(value, Aval { shape: Shape::scalar(), dtype: T::DTYPE })
    }

    /// An array of one repeated number, which takes the aval's dtype.
    pub(crate) fn constant(value: impl Into<Scalar>, aval: Aval) -> Array {
        let op = Op::Constant(Constant { value: value.into(), aval: aval.clone() });
        let avals = Avals::from(aval);
        Array::of(Self::record(op, avals, Inputs::new()), 0)
    }

    /// Shape and dtype.
    pub fn aval(&self) -> &Aval {
        &self.node.avals[self.output as usize]
    }

    /// The size along each axis. What a function under [`compile`](crate::transform::compile) does
    /// may depend on it, so a trace that reads it is right for these sizes alone.
    pub fn shape(&self) -> &Shape {
        // That of an array which depends on no input is the same for all inputs.
        if self.node.scopes.is_some() {
            note_sizes();
        }
        &self.aval().shape
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.aval().dtype
    }

    /// How many axes there are.
    pub fn rank(&self) -> usize {
        self.aval().shape.rank()
    }

    /// How many elements there are; as [`Array::shape`], it ties a trace to its sizes.
    pub fn size(&self) -> usize {
        self.shape().size()
    }

    /// Whether there are no elements: a trace for full arrays is not used for empty ones.
    pub fn is_empty(&self) -> bool {
        self.aval().shape.size() == 0
    }

    /// The device that the array is, or will be, computed on.
    pub fn device(&self) -> Device {
        self.node.stream.device
    }

    /// Whether both are handles on the same array.
    pub fn same(&self, other: &Array) -> bool {
        Arc::ptr_eq(&self.node, &other.node) && self.output == other.output
    }

    /// Whether a transform that still runs looks at how it was computed. What is recorded of it then is seen by that
    /// transform, op by op.
    pub fn is_traced(&self) -> bool {
        self.node.is_traced()
    }

    /// Whether a transform traces it for others than the inputs at hand.
    pub(crate) fn is_symbolic(&self) -> bool {
        self.node.scopes.as_ref().is_some_and(|m| m.is_symbolic())
    }

    /// Whether it is only recorded.
    pub(crate) fn is_lazy(&self) -> bool {
        matches!(self.node.state().progress, Progress::Lazy)
    }

    /// Whether the value is there, so that reading it waits for nothing.
    pub fn is_ready(&self) -> bool {
        match &self.node.state().progress {
            Progress::Ready(values) => values.get(self.output).is_some(),
            Progress::Lazy | Progress::Pending(_) | Progress::Failed(_) => false,
        }
    }

    /// The error of reading it where it is of a node that is there, and has no value itself.
    pub(crate) fn lost(&self) -> Error {
        match self.node.undone.get() {
            Some(undone) => undone.error.of_undone(),
            // An array keeps the value of its output: it does not come to this.
            None => Error::Device("the value of an array that is in use was released".into()),
        }
    }

    /// Whether it is of an [update](crate::ops::update) that was undone.
    #[inline]
    pub fn is_undone(&self) -> bool {
        self.node.undone.get().is_some()
    }

    /// Of an [update](crate::ops::update) that was undone, what it was the update of.
    pub fn before_undone(&self) -> Option<Array> {
        lock(&self.node.undone.get()?.former)[self.output as usize].clone()
    }

    /// Whether it is recorded of `former` itself.
    pub(crate) fn is_of(&self, former: &Array) -> bool {
        self.node.state().inputs.iter().any(|input| input.same(former))
    }

    /// Notes what it takes the place of, for an evaluation that fails; nothing where it is computed, or traced. Nobody
    /// else has it, and it [is of](Array::is_of) `former`, which is not kept for this.
    pub(crate) fn note_former(&self, former: &Array) {
        let mut state = self.node.state();
        if matches!(state.progress, Progress::Lazy) && !self.node.is_traced() {
            let (output, of) = (self.output, former.output);
            let replaced = Replaced { output, former: Arc::downgrade(&former.node), of };
            state.replaced.get_or_insert_default().push(replaced);
        }
    }

    /// Records it as what `former` becomes.
    pub(crate) fn updating(&self, former: &Array) -> Result<Array> {
        // On its own stream, as it is computed along with it.
        let record = || Array::apply(Mark::Update, &[self, former]);
        let update = with_stream(self.node.stream, record)?;
        let mut state = self.node.state();
        let updates = state.updates.get_or_insert_default();
        if updates.len() == updates.capacity() {
            updates.retain(|update| update.strong_count() > 0);
        }
        updates.push(Arc::downgrade(&update.node));
        drop(state);
        Ok(update)
    }

    /// Whether this is the only handle on what was recorded, of one output of several on that output.
    pub(crate) fn is_only_handle(&self) -> bool {
        match &self.node.held {
            Some(held) => held[self.output as usize].load(Ordering::Acquire) == 1,
            None => Arc::strong_count(&self.node) == 1,
        }
    }

    /// Whether it is what `former` becomes.
    pub(crate) fn is_update_of(&self, former: &Array) -> bool {
        let place = match &self.node.op {
            Op::Mark(Mark::Update) => 1,
            Op::Call(call) => match call.updates() {
                Some(places) => places[self.output as usize] as usize,
                None => return false,
            },
            _ => return false,
        };
        self.node.state().inputs.get(place).is_some_and(|input| input.same(former))
    }

    /// Whether values may keep it from being computed: an index outside its axis, a singular matrix.
    pub(crate) fn may_fail(&self) -> bool {
        self.node.may_fail && !self.is_ready()
    }

    /// Where the array is there and repeats its elements along axes, what it repeats: these have one element.
    pub(crate) fn unrepeated(&self) -> Option<Array> {
        let value = self.ready()?;
        let mut shape = self.aval().shape.clone();
        let repeats =
            |axis: &usize| value.layout.strides[*axis] == 0 && self.aval().shape[*axis] > 1;
        let axes: SmallVec<[usize; 4]> = (0..shape.rank()).filter(repeats).collect();
        for &axis in &axes {
            shape.0[axis] = 1;
        }
        let aval = Aval { shape, dtype: self.dtype() };
        (!axes.is_empty()).then(|| Array::from_value(aval, value))
    }

    /// Where the array is recorded as another one with its axes in another order, that one and the order.
    pub(crate) fn untransposed(&self) -> Option<(Array, Dims)> {
        let Op::Movement(Movement::Transpose(axes)) = &self.node.op else { return None };
        match &self.node.state().inputs[..] {
            [input] if input.node.undone.get().is_none() => Some((input.clone(), axes.clone())),
            _ => None,
        }
    }

    /// The value, if it is there.
    pub(crate) fn ready(&self) -> Option<Value> {
        match &self.node.state().progress {
            Progress::Ready(values) => values.get(self.output).cloned(),
            Progress::Lazy | Progress::Pending(_) | Progress::Failed(_) => None,
        }
    }

    /// The result of `movement` right away, where the array is there, no transform needs to see the
    /// step, and no copy is needed.
    pub(crate) fn view(&self, movement: &Movement, output: &Aval) -> Option<Array> {
        if self.node.is_traced() {
            return None;
        }
        let Value { buffer, layout, range } = self.ready()?;
        let layout = view_layout(movement, &self.aval().shape, &layout, &output.shape)?;
        Some(Array::from_value(output.clone(), Value { buffer, layout, range }))
    }
}
