//! The contract between the planner and a device, and the registry of devices.

#![deny(clippy::wildcard_enum_match_arm)]

mod body;

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::device::{Device, DeviceKind};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::event::{Marker, Moment};
use crate::holders;
use crate::prim::{Composite, Control, Custom, KernelOp, Primitive, ReduceKind};
use crate::profile::{self, What};
use crate::shape::{Aval, Dims, Shape};

pub use self::body::{Body, Instr, Reg};
pub use crate::memory::{Buffer, Kept, KeptKey, Lookup, Memory, reserve, system_memory};

/// A device that runs plans.
pub trait Backend: Send + Sync {
    /// Which device this is.
    fn device(&self) -> Device;

    /// What a person should know of it: its name, its instruction sets, its memory.
    fn description(&self) -> String;

    /// Whether it is hardware of its own: what only imitates a GPU is used where it is asked for.
    fn is_real(&self) -> bool {
        true
    }

    /// What the planner must keep to.
    fn limits(&self) -> &Limits;

    /// Whether the device has a kernel for a composite of inputs of these avals; else its body takes
    /// its place.
    fn claims(&self, _composite: &Composite, _inputs: &[&Aval]) -> bool {
        false
    }

    /// Memory for `bytes` bytes, of undefined content.
    fn alloc(&self, bytes: usize) -> Result<Buffer>;

    /// Memory that holds a copy of `bytes`.
    fn upload(&self, bytes: &[u8]) -> Result<Buffer>;

    /// Copies `bytes` into the buffer from `offset` bytes on.
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()>;

    /// Copies from `offset` bytes into the buffer to `out`.
    fn download(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()>;

    /// Makes a segment ready to run many times. Plans that run equal segments share it. What the device cannot run
    /// is [`Error::Unsupported`]: then the planner takes the CPU, as [`crate::fallback`] allows.
    fn prepare(&self, segment: &Segment) -> Result<Arc<dyn Executable>>;

    /// Why the device has no kernel for a segment; `None` where it has one. Nothing is compiled or run.
    fn lacks(&self, segment: &Segment) -> Option<String> {
        match self.prepare(segment) {
            Err(Error::Unsupported { reason, .. }) => Some(reason),
            Err(error) => Some(error.to_string()),
            Ok(_) => None,
        }
    }

    /// Makes the segments of a plan ready, in order. Where that takes a compiler, on all cores.
    fn prepare_all(&self, segments: &[&Segment]) -> Vec<Result<Arc<dyn Executable>>> {
        segments.iter().map(|segment| self.prepare(segment)).collect()
    }

    /// The steps of a plan as one, where the device has a cheaper way to run them than one by one.
    /// Asked once for each plan. The steps of a range in `at_once` may run at once: none needs what another does, or
    /// writes where another reads or writes.
    fn sequence(
        &self,
        _steps: &[Arc<dyn Executable>],
        _at_once: &[Range<usize>],
    ) -> Option<Box<dyn Sequence>> {
        None
    }

    /// How much memory is in use.
    fn memory(&self) -> MemoryStats;

    /// The bytes that it has, where it says.
    fn capacity(&self) -> Option<usize> {
        None
    }

    /// Gives memory that is kept for reuse back to the system.
    fn trim(&self);

    /// Counts the most memory in use anew, from so many bytes, or what is in use now where that is more.
    fn set_peak(&self, to: usize);

    /// Bounds the bytes that are kept for reuse; `None` leaves it to the backend.
    fn set_cache_limit(&self, bytes: Option<usize>);

    /// Waits for all work that was given to the device, or to the queue that is [`crate::device::queue`]'s.
    fn synchronize(&self) -> Result<()>;

    /// A run of this thread failed before all of its work was waited for: what that work may still find wrong on the
    /// device ([`Fails::Late`]) is nobody's error.
    fn forget_faults(&self) {}

    /// An error where there is no room at once for pieces of so many bytes, which a step finds itself
    /// ([`Executable::own`]).
    fn expect(&self, pieces: &[usize]) -> Result<()> {
        let _ = pieces;
        Ok(())
    }

    /// Marks the end of the work that was given to the device, or to that queue. May wait for it, where the device has no
    /// marks of its own.
    fn mark(&self) -> Result<Box<dyn Marker>> {
        self.synchronize()?;
        Ok(Box::new(Moment::now()))
    }

    /// Whether a mark is the device's own, and nobody waits for one to be made.
    fn has_marks(&self) -> bool {
        false
    }
}

/// Where a run of an executable can fail on account of what it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fails {
    /// Nowhere.
    Never,
    /// Before it writes anything, also to the memory that it is given for its own use.
    Early,
    /// Anywhere: outputs may be half written.
    Anywhere,
    /// On the device, which tells it to who waits ([`Backend::synchronize`]); the run itself does not.
    Late,
}

/// A segment that is ready to run.
pub trait Executable: Any + Send + Sync {
    /// Where a run can fail. A plan overwrites no array that somebody gave it before the last step
    /// that can.
    fn fails(&self) -> Fails {
        Fails::Anywhere
    }

    /// The pieces of memory, in bytes, that a run finds at most at once besides what it is given, where it does not
    /// [fail](Executable::fails) for want of them: a plan looks whether they are there before it runs
    /// ([`Backend::expect`]).
    fn own(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Bytes of memory that a run is to be given for its own use while it runs ([`Args::scratch`]): a plan has it where
    /// nothing else lies at that time.
    fn scratch(&self) -> usize {
        0
    }

    /// What it has in common with others that the device does in one launch with it, where none needs what another
    /// does. A plan tells its [`Sequence`] of them. None, if it is always by itself, as where it has memory for its own use.
    fn kind(&self) -> Option<u64> {
        None
    }

    /// About how much memory of the host it holds.
    fn bytes(&self) -> usize {
        size_of_val(self)
    }

    /// Runs on these buffers. The planner guarantees that outputs overlap no input, but for the
    /// in-place pairs that [`Segment::may_alias`] allows.
    fn run(&self, args: &Args<'_>) -> Result<()>;
}

/// The steps of a plan, ready to run many times, by several threads.
pub trait Sequence: Send + Sync {
    /// About how much memory of the host it holds.
    fn bytes(&self) -> usize {
        size_of_val(self)
    }

    /// Does what running each step in turn does. A step without arguments has nothing to do in
    /// this run.
    fn run(&self, steps: &[Option<Args<'_>>]) -> std::result::Result<(), Stopped>;
}

/// Where a [`Sequence`] stopped.
#[derive(Debug)]
pub struct Stopped {
    /// Why.
    pub error: Error,
    /// How many steps may have begun.
    pub begun: usize,
}

/// What a segment runs on.
pub struct Args<'a> {
    /// One region an input of the segment.
    pub inputs: &'a [Region<'a>],
    /// One region an output of the segment.
    pub outputs: &'a [Region<'a>],
    /// The values of the segment's scalars, each already of its dtype: the element's bytes.
    pub scalars: &'a [[u8; 8]],
    /// Memory of at least [`Executable::scratch`] bytes, in which nothing is kept. Without it the executable finds
    /// some itself.
    pub scratch: Option<&'a Buffer>,
}

/// A place in a buffer.
#[derive(Clone, Copy)]
pub struct Region<'a> {
    /// The memory.
    pub buffer: &'a Buffer,
    /// The element at index 0 along every axis, counted in elements.
    pub offset: isize,
}

/// A piece of a plan that one executable runs: one kernel, or a few.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// What to compute.
    pub kernel: Kernel,
    /// The inputs: for a body the strides are along its iteration shape (0 where it repeats), for
    /// an op along the input's own axes.
    pub inputs: Vec<Operand>,
    /// The outputs, likewise.
    pub outputs: Vec<Operand>,
    /// The dtypes of the run-time scalars.
    pub scalars: Vec<DType>,
    /// An elementwise program to run on the op's only output, in place, as soon as an element of
    /// it is there. Only for [`Kernel::Op`].
    pub epilogue: Option<Epilogue>,
}

/// What a segment computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// An elementwise program over its shape. All movement is this, with strides on either side.
    Map(Body),
    /// An elementwise program, each of whose outputs, all of one dtype, is folded over `axes` of its shape: no more than
    /// [`Limits::folds`].
    Reduce {
        /// What feeds the reduction.
        body: Body,
        /// What to fold with.
        kind: ReduceKind,
        /// The axes that go; sorted.
        axes: Dims,
    },
    /// A program over the rows along the last axis of its shape, with values that are folded from
    /// each row on the way. Only for devices that hold a row: [`Limits::row`].
    Rows {
        /// The program. Its last inputs are the folds' results, in order; the others are the
        /// segment's. An output with stride 0 along the last axis has a value a row.
        body: Body,
        /// What is folded. None needs a later one.
        folds: Vec<Fold>,
    },
    /// A primitive with a kernel of its own.
    Op(KernelOp),
    /// A composite that the device claims.
    Composite(Composite),
    /// A loop or a branch. The planner runs the plans of its bodies; no backend is asked to.
    Control(Arc<Control>),
    /// A user's operator.
    Custom(Custom),
}

/// A value of a row, from those of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fold {
    /// What to fold with.
    pub kind: ReduceKind,
    /// The register that is folded.
    pub input: Reg,
}

/// An input or output of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Shape and dtype.
    pub aval: Aval,
    /// Elements between neighbours along each axis.
    pub strides: SmallVec<[isize; 4]>,
}

/// An elementwise program that continues an op.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Epilogue {
    /// The program, over the shape of the op's output. Its input 0 is the op's result, in place in
    /// the output; its other inputs are the segment's inputs from `first_input` on. It has one
    /// output, of the dtype of the op's result.
    pub body: Body,
    /// Where the program's further inputs start among the segment's inputs.
    pub first_input: usize,
}

/// What a device can run at once.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many array inputs and outputs an elementwise program may have.
    pub body_operands: usize,
    /// How many instructions an elementwise program may have.
    pub body_instructions: usize,
    /// The longest row that it holds while it works on it; 0 for none.
    pub row: usize,
    /// How many reductions of what is read once it does together, at least 1.
    pub folds: usize,
    /// Whether a function such as tanh takes less time than to write its result and read it again.
    pub computes_again: bool,
}

/// How much memory a device uses, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryStats {
    /// Held by live buffers.
    pub active: usize,
    /// The most that was ever active.
    pub peak: usize,
    /// Kept for reuse.
    pub cached: usize,
}

/// How a backend crate makes its devices known: `inventory::submit!` one of these.
pub struct Registration {
    /// Which kind of devices.
    pub kind: DeviceKind,
    /// Whether the machine may have hardware of the kind. Asked before devices are looked for that
    /// nobody named, so it must take no time and be quiet.
    pub has_hardware: fn() -> bool,
    /// Why devices of the kind are not among those of this machine: a line each.
    pub absence: fn() -> Vec<String>,
    /// Finds them. Called once, when the first device of the kind is asked for: looking for a GPU
    /// takes time that a program on the CPU does not spend.
    pub discover: fn() -> Vec<Arc<dyn Backend>>,
}

inventory::collect!(Registration);

/// The devices of a kind that this program can use, by their number.
pub fn devices_of(kind: DeviceKind) -> &'static [Arc<dyn Backend>] {
    &found(kind).devices
}

/// What was found of a kind of devices, and in which process.
struct Found {
    devices: Vec<Arc<dyn Backend>>,
    generation: u32,
}

fn found(kind: DeviceKind) -> &'static Found {
    const KINDS: usize = DeviceKind::ALL.len();
    static FOUND: [OnceLock<Found>; KINDS] = [const { OnceLock::new() }; KINDS];
    if kind != DeviceKind::Cpu {
        // The host's backend also watches for forks.
        found(DeviceKind::Cpu);
    }
    FOUND[kind as usize].get_or_init(|| {
        let of_kind = inventory::iter::<Registration>().filter(|r| r.kind == kind);
        let mut devices: Vec<_> = of_kind.flat_map(|r| (r.discover)()).collect();
        devices.sort_by_key(|b| b.device());
        Found { devices, generation: crate::fork::generation() }
    })
}

/// Every device that this program can use.
pub fn backends() -> impl Iterator<Item = &'static Arc<dyn Backend>> {
    DeviceKind::ALL.iter().flat_map(|&kind| devices_of(kind))
}

/// Why kinds of devices, or some devices, are not among those of this machine: a line each.
pub fn absences() -> Vec<String> {
    let of = |&kind: &DeviceKind| inventory::iter::<Registration>().filter(move |r| r.kind == kind);
    DeviceKind::ALL.iter().flat_map(of).flat_map(|r| (r.absence)()).collect()
}

/// The backend of `device`, or an error that lists the devices there are.
///
/// # Errors
/// Also in a process that was forked after a device other than the CPU was found: what its driver
/// keeps is not copied.
pub fn backend(device: Device) -> Result<&'static Arc<dyn Backend>> {
    let found = found(device.kind);
    if device.kind != DeviceKind::Cpu {
        crate::fork::check(found.generation, &device.to_string())?;
    }
    found.devices.iter().find(|b| b.device() == device).ok_or_else(|| {
        let there: Vec<_> = backends().map(|b| b.device().to_string()).collect();
        let there = if there.is_empty() { "none".into() } else { there.join(", ") };
        Error::Device(format!("device {device} is not here; the devices are: {there}"))
    })
}

static MEMORY_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Bounds the memory that live buffers of one device may have: an evaluation that would need more
/// fails, and so does an array of host data. `None`, the default, leaves it to the device.
pub fn set_memory_limit(bytes: Option<usize>) {
    MEMORY_LIMIT.store(bytes.unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// The bound that was set.
pub fn memory_limit() -> Option<usize> {
    let limit = MEMORY_LIMIT.load(Ordering::Relaxed);
    (limit != usize::MAX).then_some(limit)
}

static MEMORY_GUIDELINE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Sets how much memory one device should use: where live buffers and freed memory that is kept come to more,
/// the latter goes back to the system. Nothing fails. `None`, the default, leaves it to the device.
pub fn set_memory_guideline(bytes: Option<usize>) {
    MEMORY_GUIDELINE.store(bytes.unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// The guideline that was set.
pub fn memory_guideline() -> Option<usize> {
    let guideline = MEMORY_GUIDELINE.load(Ordering::Relaxed);
    (guideline != usize::MAX).then_some(guideline)
}

/// Memory for `bytes` bytes within the bound that was set. Where there is none, the error names who holds most.
pub(crate) fn alloc(on: &dyn Backend, bytes: usize) -> Result<Buffer> {
    bounded(on, bytes, || on.alloc(bytes))
}

/// Memory that holds a copy of `bytes`, within the bound as that of [`alloc`].
pub(crate) fn upload(on: &dyn Backend, bytes: &[u8]) -> Result<Buffer> {
    bounded(on, bytes.len(), || on.upload(bytes))
}

fn bounded(
    on: &dyn Backend,
    bytes: usize,
    make: impl FnOnce() -> Result<Buffer>,
) -> Result<Buffer> {
    within(on, bytes).and_then(|()| make()).map_err(|error| holders::named(error, on.device()))
}

/// Keeps to the guideline, and sees that so many bytes more are within the bound.
fn within(on: &dyn Backend, bytes: usize) -> Result<()> {
    if let Some(guideline) = memory_guideline() {
        let memory = on.memory();
        let all = memory.active.saturating_add(memory.cached).saturating_add(bytes);
        if all > guideline && memory.cached > 0 {
            on.trim();
        }
    }
    if let Some(limit) = memory_limit()
        && on.memory().active.saturating_add(bytes) > limit
    {
        let what = format!("an array, where the limit is {limit} bytes");
        return Err(Error::OutOfMemory { device: on.device().to_string(), bytes, what });
    }
    Ok(())
}

/// Whether the machine may have hardware of a kind.
fn has_hardware(kind: DeviceKind) -> bool {
    inventory::iter::<Registration>().any(|r| r.kind == kind && (r.has_hardware)())
}

/// The best device of this machine: the first of the best kind that is hardware of its own.
pub fn best_device() -> Device {
    let mut kinds = DeviceKind::ALL.iter().rev().filter(|&&kind| has_hardware(kind));
    let best = kinds.find_map(|&kind| devices_of(kind).iter().find(|b| b.is_real()));
    best.map_or(Device::CPU, |b| b.device())
}

/// Makes the best device the default of every thread, as [`crate::device::set_default_stream`]; it
/// is looked for at the first use.
pub fn set_default_best() {
    crate::device::set_default_by(best_device);
}

/// Waits for a device, and tells who listens.
pub(crate) fn wait_for(on: &dyn Backend) -> Result<()> {
    let start = profile::begin();
    on.synchronize()?;
    profile::end(start, || What::Wait { device: on.device() });
    Ok(())
}

/// Waits for the device that `buffer` is of, where anybody listens: reading it would wait, too, and is to be told apart.
pub(crate) fn wait_to_read(buffer: &Buffer) -> Result<()> {
    let device = buffer.device();
    if profile::is_on() && device != Device::CPU {
        wait_for(&**backend(device)?)?;
    }
    Ok(())
}

/// A copy on `device` of the bytes `range` of `buffer`.
pub fn moved(buffer: &Buffer, range: Range<usize>, device: Device) -> Result<Buffer> {
    wait_to_read(buffer)?;
    let start = profile::begin();
    let (from, bytes) = (buffer.device(), range.len());
    let copy = copied(buffer, range, device)?;
    profile::end(start, || What::Copy { from, to: device, bytes });
    Ok(copy)
}

fn copied(buffer: &Buffer, range: Range<usize>, device: Device) -> Result<Buffer> {
    let to = backend(device)?;
    buffer.check()?;
    if let Some(bytes) = buffer.host().and_then(|bytes| bytes.get(range.clone())) {
        return upload(&**to, bytes);
    }
    let mut bytes = reserve(range.len(), "a copy between devices")?;
    bytes.resize(range.len(), 0);
    backend(buffer.device())?.download(buffer, range.start, &mut bytes)?;
    upload(&**to, &bytes)
}

impl Operand {
    /// An operand without gaps.
    pub fn contiguous(aval: &Aval) -> Self {
        Operand { aval: aval.clone(), strides: aval.shape.row_major() }
    }
}

impl Segment {
    /// What it is called: by its primitive, the reduction, or the last instruction of its program.
    pub fn name(&self) -> &'static str {
        let last = |body: &Body| body.code.last().map_or("copy", |instr| instr.op.name());
        match &self.kernel {
            Kernel::Map(body) | Kernel::Rows { body, .. } => last(body),
            Kernel::Reduce { kind, .. } => kind.name(),
            Kernel::Op(op) => op.name(),
            Kernel::Composite(composite) => composite.name(),
            Kernel::Control(control) => control.name(),
            Kernel::Custom(_) => "custom",
        }
    }

    /// The shape that the strides of an input are along.
    pub fn walked(&self, input: usize) -> &Shape {
        match (&self.kernel, &self.epilogue) {
            (Kernel::Map(body) | Kernel::Reduce { body, .. } | Kernel::Rows { body, .. }, _) => {
                &body.shape
            }
            (
                Kernel::Op(_) | Kernel::Composite(_) | Kernel::Control(_) | Kernel::Custom(_),
                Some(epilogue),
            ) if input >= epilogue.first_input => &epilogue.body.shape,
            (Kernel::Op(_) | Kernel::Composite(_) | Kernel::Control(_) | Kernel::Custom(_), _) => {
                &self.inputs[input].aval.shape
            }
        }
    }

    /// About how much memory it holds besides its own.
    pub(crate) fn bytes(&self) -> usize {
        let body = match &self.kernel {
            Kernel::Map(body) | Kernel::Reduce { body, .. } | Kernel::Rows { body, .. } => {
                body.bytes()
            }
            Kernel::Op(_) | Kernel::Composite(_) | Kernel::Control(_) | Kernel::Custom(_) => 0,
        };
        let epilogue = self.epilogue.as_ref().map_or(0, |epilogue| epilogue.body.bytes());
        let operand = |o: &Operand| size_of::<Operand>() + size_of_val(&o.strides[..]);
        let operands = self.inputs.iter().chain(&self.outputs).map(operand).sum::<usize>();
        body + epilogue + operands + size_of_val(&self.scalars[..])
    }

    /// Whether output `output` may take the memory of input `input`, when both start at the same
    /// element: each output element must be written only after that same element was read.
    pub fn may_alias(&self, output: usize, input: usize) -> bool {
        match &self.kernel {
            // Of a row, too, a thread reads all that it writes before it writes.
            Kernel::Map(_) | Kernel::Rows { .. } => {
                let (o, i) = (&self.outputs[output], &self.inputs[input]);
                o.aval.dtype.size() == i.aval.dtype.size()
                    && o.strides == i.strides
                    && crate::shape::is_row_major(&o.aval.shape, &o.strides)
            }
            Kernel::Reduce { .. }
            | Kernel::Op(_)
            | Kernel::Composite(_)
            | Kernel::Control(_)
            | Kernel::Custom(_) => false,
        }
    }
}
