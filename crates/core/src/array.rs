//! Lazy arrays: handles on nodes of a graph that grows as operations are recorded.

mod format;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use crate::backend::{Buffer, backend};
use crate::device::{Device, Stream, default_stream};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::prim::{Avals, Constant, Input, Op};
use crate::shape::{Aval, Layout, Shape};
use crate::transform::trace::{Scope, Scopes, note_sizes};

/// A multi-dimensional array of one dtype, computed when it is first needed.
///
/// Operations on arrays only record; [`Array::eval`], or reading a value, computes. A clone is a
/// second handle on the same array.
#[derive(Clone)]
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
    /// Scratch of whoever walks the graph, under the walk lock: the walk and the place in it.
    pub visit: AtomicU64,
    state: Mutex<State>,
}

/// What changes about a node.
pub(crate) struct State {
    /// Dropped once the node has its value, unless a transform may still walk over it.
    pub inputs: Inputs,
    pub progress: Progress,
}

/// How far a node is.
pub(crate) enum Progress {
    /// Only recorded.
    Lazy,
    /// Being computed on a stream.
    Pending(Arc<Event>),
    /// Computed; one value an output.
    Ready(SmallVec<[Value; 1]>),
    /// Its evaluation failed.
    Failed(Arc<Error>),
}

/// A computed array: memory, and where in it.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub buffer: Buffer,
    pub layout: Layout,
}

/// The end of some work on a stream.
#[derive(Default)]
pub(crate) struct Event {
    done: Mutex<bool>,
    signal: Condvar,
}

impl Event {
    /// Waits for the end, or until the host stops the waiting: the work goes on then.
    pub fn wait(&self) -> Result<()> {
        let mut done = lock(&self.done);
        while !*done {
            let patience = crate::interrupt::PATIENCE;
            let waited = self.signal.wait_timeout(done, patience);
            done = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !*done {
                drop(done);
                crate::interrupt::check()?;
                done = lock(&self.done);
            }
        }
        Ok(())
    }

    pub fn set(&self) {
        *lock(&self.done) = true;
        self.signal.notify_all();
    }
}

/// Locks, and goes on where another thread panicked while it held the lock: what is behind our
/// locks is consistent after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    pub fn new(op: Op, avals: Avals, scopes: Option<Arc<Scopes>>, state: State) -> Arc<Node> {
        let stream = default_stream();
        let state = Mutex::new(state);
        Arc::new(Node { op, avals, stream, scopes, visit: AtomicU64::new(0), state })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether a transform that is still running may walk over this node.
    pub fn is_traced(&self) -> bool {
        self.scopes.as_ref().is_some_and(|m| m.is_active())
    }
}

/// Drops chains of nodes without recursion: a million-node chain must not overflow the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut queue: SmallVec<[Array; 8]> =
            std::mem::take(&mut state.inputs).into_iter().collect();
        while let Some(array) = queue.pop() {
            if let Some(mut node) = Arc::into_inner(array.node) {
                let state = node.state.get_mut().unwrap_or_else(PoisonError::into_inner);
                queue.extend(std::mem::take(&mut state.inputs));
            }
        }
    }
}

impl Array {
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
            && let Some(view) = crate::plan::view::ready_view(movement, input, &outputs[0])
        {
            return Ok(view);
        }
        let inputs = inputs.iter().map(|&a| a.clone()).collect();
        Ok(Array { node: Self::record(op, outputs, inputs), output: 0 })
    }

    /// Records an op of any number of outputs; gives all of them.
    pub fn apply_multi(op: impl Into<Op>, inputs: &[&Array]) -> Result<Vec<Array>> {
        let op = op.into();
        let avals: SmallVec<[&Aval; 4]> = inputs.iter().map(|a| a.aval()).collect();
        let outputs = op.infer(&avals)?;
        let count = outputs.len() as u32;
        let inputs = inputs.iter().map(|&a| a.clone()).collect();
        let node = Self::record(op, outputs, inputs);
        Ok((0..count).map(|output| Array { node: node.clone(), output }).collect())
    }

    fn record(op: Op, avals: Avals, inputs: Inputs) -> Arc<Node> {
        let scopes = inputs.iter().fold(None, |m, a| Scopes::union(m, &a.node.scopes));
        Node::new(op, avals, scopes, State { inputs, progress: Progress::Lazy })
    }

    /// An input of a trace: it has an aval and no value.
    pub(crate) fn placeholder(aval: Aval, scope: &Arc<Scope>) -> Array {
        let avals = SmallVec::from_buf([aval.clone()]);
        let state = State { inputs: Inputs::new(), progress: Progress::Lazy };
        let node = Node::new(Op::Input(Input { aval }), avals, Some(Scopes::of(scope)), state);
        Array { node, output: 0 }
    }

    /// An array that stands for `primal` under a trace: it has the same value, and a scope.
    pub(crate) fn tracer(primal: &Array, scopes: &Arc<Scopes>) -> Result<Array> {
        let is_ready = primal.is_ready() && !primal.node.is_traced();
        if is_ready {
            let value = primal.value()?;
            let aval = primal.aval().clone();
            let avals = SmallVec::from_buf([aval.clone()]);
            let progress = Progress::Ready(SmallVec::from_buf([value]));
            let state = State { inputs: Inputs::new(), progress };
            let node = Node::new(Op::Input(Input { aval }), avals, Some(scopes.clone()), state);
            return Ok(Array { node, output: 0 });
        }
        let all = Scopes::union(Some(scopes.clone()), &primal.node.scopes);
        let avals = SmallVec::from_buf([primal.aval().clone()]);
        let inputs = SmallVec::from_iter([primal.clone()]);
        let state = State { inputs, progress: Progress::Lazy };
        let node = Node::new(Op::Mark(crate::prim::Mark::Depends), avals, all, state);
        Ok(Array { node, output: 0 })
    }

    /// An array that is there already.
    pub(crate) fn from_value(aval: Aval, value: Value) -> Array {
        let avals = SmallVec::from_buf([aval.clone()]);
        let progress = Progress::Ready(SmallVec::from_buf([value]));
        let state = State { inputs: Inputs::new(), progress };
        let node = Node::new(Op::Input(Input { aval }), avals, None, state);
        Array { node, output: 0 }
    }

    /// An array of `shape` with the elements of `data` in row-major order, on the default device.
    ///
    /// # Errors
    /// Where the count of elements is not the shape's size, or the device has no memory left.
    ///
    /// # Example
    /// ```
    /// use cupola::Array;
    /// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(x.shape()[..], [2, 2]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn from_slice<T: Element>(data: &[T], shape: impl Into<Shape>) -> Result<Array> {
        Self::from_bytes(T::to_bytes(data), T::DTYPE, shape)
    }

    /// Like [`Array::from_slice`], from a vector.
    pub fn from_vec<T: Element>(data: Vec<T>, shape: impl Into<Shape>) -> Result<Array> {
        Self::from_slice(&data, shape)
    }

    /// An array of `shape` and `dtype` from its elements' bytes in row-major order and the
    /// machine's byte order, on the default device.
    ///
    /// # Errors
    /// Where the count of bytes does not fit, or the device has no memory left.
    pub fn from_bytes(bytes: &[u8], dtype: DType, shape: impl Into<Shape>) -> Result<Array> {
        let shape = shape.into();
        let want = shape.checked_size("array", dtype)? * dtype.size();
        if bytes.len() != want {
            return Err(Error::shape(
                "array",
                format!(
                    "{} elements of {dtype} do not fill shape {shape}",
                    bytes.len() / dtype.size()
                ),
            ));
        }
        let buffer = backend(default_stream().device)?.upload(bytes)?;
        let layout = Layout::contiguous(&shape);
        Ok(Self::from_value(Aval { shape, dtype }, Value { buffer, layout }))
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
        let avals = SmallVec::from_buf([aval]);
        Array { node: Self::record(op, avals, Inputs::new()), output: 0 }
    }

    /// Shape and dtype.
    pub fn aval(&self) -> &Aval {
        &self.node.avals[self.output as usize]
    }

    /// The size along each axis. What a function under [`compile`](crate::transform::compile) does
    /// may depend on it, so a trace that reads it is right for these sizes alone.
    pub fn shape(&self) -> &Shape {
        note_sizes();
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

    /// Whether the value is there, so that reading it waits for nothing.
    pub fn is_ready(&self) -> bool {
        matches!(self.node.state().progress, Progress::Ready(_))
    }

    /// Computes the array, and waits for it.
    ///
    /// # Errors
    /// Where the computation fails, or the array is traced by `vmap` or `compile` and so has no
    /// values.
    pub fn eval(&self) -> Result<()> {
        crate::eval::eval(std::slice::from_ref(self))
    }

    /// The computed value.
    pub(crate) fn value(&self) -> Result<Value> {
        self.eval()?;
        loop {
            let state = self.node.state();
            match &state.progress {
                Progress::Ready(values) => return Ok(values[self.output as usize].clone()),
                Progress::Failed(error) => return Err(Error::Failed(error.clone())),
                Progress::Pending(event) => {
                    let event = event.clone();
                    drop(state);
                    event.wait()?;
                }
                Progress::Lazy => {
                    return Err(Error::Traced("the array was not evaluated".into()));
                }
            }
        }
    }

    /// The memory of the computed array, and where in it the elements lie. Nothing is written
    /// there as long as the buffer is held.
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn storage(&self) -> Result<(Buffer, Layout)> {
        let Value { buffer, layout } = self.value()?;
        Ok((buffer, layout))
    }

    /// An array over memory that is there.
    ///
    /// # Errors
    /// Where the layout reaches outside the buffer, or elements in memory of the host are not
    /// aligned to their size.
    pub fn from_storage(aval: Aval, buffer: Buffer, layout: Layout) -> Result<Array> {
        let reach = layout.reach(&aval.shape);
        let size = aval.dtype.size();
        let fits = layout.strides.len() == aval.shape.rank()
            && reach.start >= 0
            && reach.end as usize * size <= buffer.bytes();
        if !fits {
            let bytes = buffer.bytes();
            return Err(Error::argument(
                "array",
                format!("elements {reach:?} of {aval} do not lie in {bytes} bytes"),
            ));
        }
        if let Some(bytes) = buffer.host()
            && !bytes.as_ptr().addr().is_multiple_of(size)
        {
            return Err(Error::argument(
                "array",
                format!("elements of {aval} are not aligned to {size} bytes"),
            ));
        }
        Ok(Self::from_value(aval, Value { buffer, layout }))
    }

    /// The elements' bytes in row-major order.
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let value = self.value()?;
        let size = self.dtype().size();
        let shape = self.shape();
        if shape.size() == 0 {
            return Ok(Vec::new());
        }
        let reach = value.layout.reach(shape);
        let low = reach.start;
        let (from, to) = (low as usize * size, reach.end as usize * size);
        let staging;
        let bytes = match value.buffer.host() {
            Some(bytes) => &bytes[from..to],
            None => {
                let mut copy = vec![0; to - from];
                backend(value.buffer.device())?.download(&value.buffer, from, &mut copy)?;
                staging = copy;
                &staging[..]
            }
        };
        if value.layout.is_contiguous(shape) {
            return Ok(bytes.to_vec());
        }
        let mut out = Vec::with_capacity(shape.size() * size);
        let strides = &value.layout.strides;
        let (inner, step) = match shape.last() {
            Some(&d) => (d, strides[shape.rank() - 1]),
            None => (1, 0),
        };
        let mut index: SmallVec<[usize; 4]> =
            SmallVec::from_elem(0, shape.rank().saturating_sub(1));
        let mut at = value.layout.offset - low;
        for _ in 0..shape.size() / inner {
            for i in 0..inner as isize {
                let start = (at + i * step) as usize * size;
                out.extend_from_slice(&bytes[start..start + size]);
            }
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                at += strides[axis];
                if index[axis] < shape[axis] {
                    break;
                }
                at -= strides[axis] * shape[axis] as isize;
                index[axis] = 0;
            }
        }
        Ok(out)
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// Where `T` does not hold the array's dtype, and as [`Array::eval`].
    ///
    /// # Example
    /// ```
    /// use cupola::Array;
    /// let x = Array::from_slice(&[1i32, 2, 3], [3])?;
    /// assert_eq!((&x + &x).to_vec::<i32>()?, [2, 4, 6]);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype() {
            return Err(Error::dtype(
                "to_vec",
                format!("the array is {}, {} was asked for", self.aval(), T::DTYPE),
            ));
        }
        Ok(T::from_bytes(&self.to_bytes()?))
    }

    /// The only element.
    ///
    /// # Errors
    /// Where there is not exactly one element, and as [`Array::to_vec`].
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.size() != 1 {
            return Err(Error::shape(
                "item",
                format!("{} has {} elements, not one", self.aval(), self.size()),
            ));
        }
        Ok(self.to_vec::<T>()?[0])
    }
}
