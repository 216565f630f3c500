//! What a device has no kernel for runs on the CPU, and is written down: never in silence.

#![deny(clippy::wildcard_enum_match_arm)]

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::backend::{
    Args, Backend, Buffer, Executable, Kernel, Operand, Region, Segment, backend, moved, reserve,
};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::fork;
use crate::prim::Primitive;
use crate::profile::{self, What};
use crate::shape::{Layout, Shape};
use smallvec::SmallVec;

/// What happens where a device has no kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// It is an error.
    Error,
    /// The CPU takes over, and a line on standard error says so the first time.
    Warn,
    /// The CPU takes over.
    Allow,
}

/// Something that ran on the CPU for another device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The device that should have run it.
    pub device: Device,
    /// What ran.
    pub op: String,
    /// Why the device could not.
    pub reason: String,
    /// How often it ran.
    pub runs: u64,
    /// Bytes that were copied to the CPU and back.
    pub bytes: u64,
}

static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());

fn chosen() -> &'static AtomicU8 {
    static POLICY: OnceLock<AtomicU8> = OnceLock::new();
    POLICY.get_or_init(|| {
        let text = std::env::var("CUPOLA_FALLBACK").unwrap_or_default();
        AtomicU8::new(match text.as_str() {
            "error" => 0,
            "allow" => 2,
            _ => 1,
        })
    })
}

/// The policy of this process: [`Policy::Warn`], unless the environment variable
/// `CUPOLA_FALLBACK` says `error` or `allow`, or [`set_policy`] was called.
pub fn policy() -> Policy {
    match chosen().load(Ordering::Relaxed) {
        0 => Policy::Error,
        2 => Policy::Allow,
        _ => Policy::Warn,
    }
}

/// Changes the policy, for what is planned from now on.
pub fn set_policy(policy: Policy) {
    chosen().store(policy as u8, Ordering::Relaxed);
}

/// Everything that ran on the CPU for another device since the process began.
pub fn records() -> Vec<Record> {
    fork::lock(&RECORDS).clone()
}

/// `segment`, for which `device`, called `name`, has no kernel for this reason, prepared by the CPU.
pub(crate) fn take_over(
    segment: &Segment,
    device: &dyn Backend,
    name: String,
    reason: String,
) -> Result<Arc<dyn Executable>> {
    let op = match &segment.kernel {
        Kernel::Map(_) => "an elementwise program".to_owned(),
        Kernel::Reduce { kind, .. } => kind.name().to_owned(),
        Kernel::Rows { .. } => "a program over rows".to_owned(),
        Kernel::Op(op) => op.name().to_owned(),
        Kernel::Composite(composite) => composite.name().to_owned(),
        Kernel::Control(control) => control.name().to_owned(),
        Kernel::Custom(custom) => custom.0.name().to_owned(),
    };
    let policy = policy();
    let is_here_alone = matches!(&segment.kernel, Kernel::Custom(op) if !op.0.runs_on_host());
    if policy == Policy::Error || device.device() == Device::CPU || is_here_alone {
        let reason = format!("{op}: {reason}");
        return Err(Error::Unsupported { device: name, reason });
    }
    let number = note(device.device(), op, reason, policy);
    let host = backend(Device::CPU)?.prepare(segment)?;
    let reach = |operand: &Operand, shape: &Shape| {
        let layout = Layout { strides: SmallVec::from_slice(&operand.strides), offset: 0 };
        (layout.reach(shape), operand.aval.dtype.size())
    };
    let inputs = segment.inputs.iter().enumerate();
    let inputs = inputs.map(|(number, operand)| reach(operand, segment.walked(number))).collect();
    let outputs = segment.outputs.iter().map(|o| reach(o, &o.aval.shape)).collect();
    Ok(Arc::new(OnHost { host, inputs, outputs, device: device.device(), number }))
}

/// The number of the record; a new one is announced.
fn note(device: Device, op: String, reason: String, policy: Policy) -> usize {
    let mut records = fork::lock(&RECORDS);
    let same = |r: &Record| r.device == device && r.op == op && r.reason == reason;
    if let Some(known) = records.iter().position(same) {
        return known;
    }
    if policy == Policy::Warn {
        eprintln!("warning: {op} runs on the CPU instead of {device}: {reason}");
    }
    records.push(Record { device, op, reason, runs: 0, bytes: 0 });
    records.len() - 1
}

thread_local! {
    /// The line of the program that recorded what runs.
    static LINE: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };

    /// When the CPU began with what it ran last for another device, and how long it took.
    static LAST: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// When the CPU began with what it ran last on this thread for another device, and how long it took, without copies;
/// where somebody listens. It is told once.
pub(crate) fn last() -> Option<(Instant, Duration)> {
    LAST.take()
}

/// Runs a segment that was taken over, and was recorded at `line`; where that is not known, at that of what it is
/// inside of.
pub(crate) fn recorded_at<R>(line: Option<Arc<str>>, run: impl FnOnce() -> R) -> R {
    let outer = LINE.with_borrow(Option::clone);
    LINE.set(line.or_else(|| outer.clone()));
    let done = run();
    LINE.set(outer);
    done
}

/// A segment that the CPU runs for another device.
struct OnHost {
    host: Arc<dyn Executable>,
    /// The elements that each operand reaches around its first, and how many bytes one has.
    inputs: Vec<(Range<isize>, usize)>,
    outputs: Vec<(Range<isize>, usize)>,
    device: Device,
    number: usize,
}

impl Executable for OnHost {
    fn bytes(&self) -> usize {
        size_of::<OnHost>() + self.host.bytes()
    }

    fn run(&self, args: &Args<'_>) -> Result<()> {
        // Of an element of a sequence, or a part of an array, no more is copied than that.
        let copies = |regions: &[Region<'_>], reaches: &[(Range<isize>, usize)]| {
            let copy = |(region, (reach, size)): (&Region<'_>, &(Range<isize>, usize))| {
                let at = |element: isize| (region.offset + element) as usize * size;
                moved(region.buffer, at(reach.start)..at(reach.end), Device::CPU)
            };
            regions.iter().zip(reaches).map(copy).collect::<Result<Vec<Buffer>>>()
        };
        // Outputs are copied, too: a segment may write to a part of one.
        let start = profile::begin();
        let inputs = copies(args.inputs, &self.inputs)?;
        let outputs = copies(args.outputs, &self.outputs)?;
        fn regions<'b>(
            buffers: &'b [Buffer],
            reaches: &[(Range<isize>, usize)],
        ) -> Vec<Region<'b>> {
            let each = buffers.iter().zip(reaches);
            each.map(|(buffer, (reach, _))| Region { buffer, offset: -reach.start }).collect()
        }
        let begun = profile::begin();
        self.host.run(&Args {
            inputs: &regions(&inputs, &self.inputs),
            outputs: &regions(&outputs, &self.outputs),
            scalars: args.scalars,
            scratch: None,
        })?;
        LAST.set(begun.map(|begun| (begun, begun.elapsed())));
        let device = backend(self.device)?;
        let mut bytes: usize = inputs.iter().chain(&outputs).map(Buffer::bytes).sum();
        let regions = args.outputs.iter().zip(&self.outputs);
        for (copy, (region, (reach, size))) in outputs.iter().zip(regions) {
            let mut content = reserve(copy.bytes(), "a copy between devices")?;
            content.resize(copy.bytes(), 0);
            backend(Device::CPU)?.download(copy, 0, &mut content)?;
            let at = (region.offset + reach.start) as usize * size;
            let (start, length) = (profile::begin(), content.len());
            device.write(region.buffer, at, &content)?;
            let (from, to) = (Device::CPU, self.device);
            profile::end(start, || What::Copy { from, to, bytes: length });
            bytes += length;
        }
        let mut records = fork::lock(&RECORDS);
        if let Some(record) = records.get_mut(self.number) {
            record.runs += 1;
            record.bytes += bytes as u64;
        }
        let known =
            records.get(self.number).map(|record| (record.op.clone(), record.reason.clone()));
        drop(records);
        if let Some((op, reason)) = known {
            let (device, line) = (self.device, LINE.with_borrow(Option::clone));
            profile::end(start, || What::Fallback { device, op, reason, bytes, line });
        }
        Ok(())
    }
}
