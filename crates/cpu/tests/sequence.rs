//! The steps of a plan as one: a device that takes them together gets what each step would get
//! alone, and an error in the middle leaves arrays as it does elsewhere.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cupola_core::backend::{
    Args, Backend, Buffer, Executable, Fails, Limits, MemoryStats, Registration, Segment, Sequence,
    Stopped,
};
use cupola_core::device::{DeviceKind, with_stream};
use cupola_core::{Array, Device, Error, Result, Stream, eval, ops};
use cupola_cpu::Cpu;

/// The CPU under another name, which takes the steps of its plans together.
struct Together(Cpu);

const DEVICE: Device = Device { kind: DeviceKind::Cuda, index: 77 };

inventory::submit! {
    Registration {
        kind: DeviceKind::Cuda,
        has_hardware: || false,
        absence: Vec::new,
        discover: || vec![Arc::new(Together(Cpu::new()))],
    }
}

/// How many runs of sequences there were.
static RUNS: AtomicUsize = AtomicUsize::new(0);
/// The step that fails.
static FAILS: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The most steps that ran at once.
static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
/// Whether steps that may run at once do so in their order, or the last one first.
static IS_TURNED: AtomicBool = AtomicBool::new(false);

/// Held by the test that runs: what is above is for all.
static ALONE: Mutex<()> = Mutex::new(());

struct Steps {
    steps: Vec<Arc<dyn Executable>>,
    at_once: Vec<Range<usize>>,
}

impl Sequence for Steps {
    fn run(&self, steps: &[Option<Args<'_>>]) -> std::result::Result<(), Stopped> {
        assert_eq!(self.steps.len(), steps.len());
        RUNS.fetch_add(1, Ordering::Relaxed);
        let mut order: Vec<usize> = (0..steps.len()).collect();
        for range in &self.at_once {
            let all = || steps[range.clone()].iter().flatten();
            // None writes where another one reads.
            for (one, other) in all().flat_map(|one| all().map(move |other| (one, other))) {
                let mut written = one.outputs.iter().map(|output| output.buffer);
                let reads = |buffer: &Buffer| other.inputs.iter().any(|i| i.buffer.same(buffer));
                assert!(std::ptr::eq(one, other) || !written.any(reads));
            }
            AT_ONCE.fetch_max(range.len(), Ordering::Relaxed);
            if IS_TURNED.load(Ordering::Relaxed) {
                order[range.clone()].reverse();
            }
        }
        for index in order {
            let (executable, args) = (&self.steps[index], &steps[index]);
            if index == FAILS.load(Ordering::Relaxed) {
                let error = Error::Device("the device is gone".to_owned());
                return Err(Stopped { error, begun: index });
            }
            let Some(args) = args else { continue };
            executable.run(args).map_err(|error| Stopped { error, begun: index + 1 })?;
        }
        Ok(())
    }
}

/// A step that may run at once with any other that cannot fail.
struct Kind(Arc<dyn Executable>);

impl Executable for Kind {
    fn fails(&self) -> Fails {
        self.0.fails()
    }
    fn own(&self) -> Vec<usize> {
        self.0.own()
    }
    fn scratch(&self) -> usize {
        self.0.scratch()
    }
    fn kind(&self) -> Option<u64> {
        (self.0.scratch() == 0).then_some(1)
    }
    fn run(&self, args: &Args<'_>) -> Result<()> {
        self.0.run(args)
    }
}

impl Backend for Together {
    fn device(&self) -> Device {
        DEVICE
    }
    fn description(&self) -> String {
        "the CPU under another name".to_owned()
    }
    fn is_real(&self) -> bool {
        false
    }
    fn limits(&self) -> &Limits {
        self.0.limits()
    }
    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        self.0.alloc(bytes)
    }
    fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        self.0.upload(bytes)
    }
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        self.0.write(buffer, offset, bytes)
    }
    fn download(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        self.0.download(buffer, offset, out)
    }
    fn prepare(&self, segment: &Segment) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Kind(self.0.prepare(segment)?)))
    }
    fn sequence(
        &self,
        steps: &[Arc<dyn Executable>],
        at_once: &[Range<usize>],
    ) -> Option<Box<dyn Sequence>> {
        Some(Box::new(Steps { steps: steps.to_vec(), at_once: at_once.to_vec() }))
    }
    fn memory(&self) -> MemoryStats {
        self.0.memory()
    }
    fn trim(&self) {
        self.0.trim();
    }
    fn set_peak(&self, to: usize) {
        self.0.set_peak(to);
    }
    fn set_cache_limit(&self, bytes: Option<usize>) {
        self.0.set_cache_limit(bytes);
    }
    fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }
}

fn ramp(shape: &[usize]) -> Array {
    let size: usize = shape.iter().product();
    Array::from_vec((0..size).map(|i| (i % 23) as f32 * 0.5 - 4.0).collect::<Vec<_>>(), shape)
        .unwrap()
}

/// Steps of several kinds, with constants and starts that differ from run to run.
fn graph(x: &Array, w: &Array, run: usize) -> Result<[Array; 2]> {
    let first = run as isize;
    let rows = ops::slice(x, &[first, 0], &[first + 4, 8], &[1, 1])?;
    let product = &ops::matmul(&rows, w)? * (run as f32 + 0.5);
    let sums = ops::sum(&product, 0, false)?;
    Ok([&product - &sums, ops::max(&(&sums * 2.0), (), false)?])
}

#[test]
fn steps_that_run_together_give_what_each_gives_alone() -> Result<()> {
    let _alone = ALONE.lock();
    let (x, w) = (ramp(&[16, 8]), ramp(&[8, 6]));
    for run in 0..6 {
        let want = graph(&x, &w, run)?;
        let got = with_stream(Stream::of(DEVICE), || graph(&x, &w, run))?;
        eval(&got)?;
        for (got, want) in got.iter().zip(&want) {
            assert_eq!(got.to_vec::<f32>()?, want.to_vec::<f32>()?, "run {run}");
        }
    }
    assert!(RUNS.load(Ordering::Relaxed) >= 6);
    // What fails before anything was overwritten can be tried again.
    FAILS.store(1, Ordering::Relaxed);
    let got = with_stream(Stream::of(DEVICE), || graph(&x, &w, 3))?;
    assert!(eval(&got).is_err_and(|error| error.to_string().contains("gone")));
    FAILS.store(usize::MAX, Ordering::Relaxed);
    assert_eq!(got[0].to_vec::<f32>()?, graph(&x, &w, 3)?[0].to_vec::<f32>()?);
    Ok(())
}

/// Updates of weights that nobody else holds, and parts that are put together.
fn step(weights: &[Array], x: &Array, run: usize) -> Result<Vec<Array>> {
    let rate = 0.125 * (run as f32 + 1.0);
    let (mut all, mut parts) = (Vec::new(), Vec::new());
    for (at, weight) in weights[..8].iter().enumerate() {
        let gradient = &ops::sum(&(x * weight), 0, true)? + at as f32;
        let next = weight - &(&gradient * rate);
        parts.push(&next * 2.0);
        parts.push(ops::slice(x, &[at as isize, 0], &[at as isize + 2, 8], &[1, 1])?);
        all.push(next);
    }
    // Of two that read it the last may take its memory.
    all.push(ops::max(&(&weights[9] + &all[0]), 1, true)?);
    all.push(&weights[9] * 0.5);
    let parts: Vec<&Array> = parts.iter().collect();
    let together = ops::concatenate(&parts, 0)?;
    all.push(ops::sum(&together, 0, false)?);
    // All of it is written, and then a part.
    let ends = ops::concatenate(&[&all[0], &all[1]], 0)?;
    all.push(ops::pad(&ends, (1, 2), 7.0)?);
    all.push(ops::slice_update(x, &all[2], &[3, 0], &[4, 8], &[1, 1])?);
    all.push(ops::concatenate(&[&together, x], 0)?);
    Ok(all)
}

#[test]
fn steps_that_run_at_once_need_nothing_of_each_other() -> Result<()> {
    let _alone = ALONE.lock();
    let weights =
        || -> Vec<Array> { (0..10).map(|at| &ramp(&[1 + at / 9, 8]) * at as f32).collect() };
    // Sizes that come later are planned from what is known of those before.
    for (is_turned, rows) in
        [false, true].into_iter().flat_map(|t| [16, 24, 40, 17].map(|r| (t, r)))
    {
        let x = ramp(&[rows, 8]);
        IS_TURNED.store(is_turned, Ordering::Relaxed);
        let (mut want, mut got) = (weights(), weights());
        for run in 0..5 {
            want = step(&want, &x, run)?;
            // Weights whose memory the next ones take: they are nobody's after this.
            got = with_stream(Stream::of(DEVICE), || {
                let next = step(&got, &x, run);
                got.clear();
                next
            })?;
            eval(&got)?;
            for (at, (got, want)) in got.iter().zip(&want).enumerate() {
                assert_eq!(got.to_vec::<f32>()?, want.to_vec::<f32>()?, "run {run}, {at}");
            }
        }
        IS_TURNED.store(false, Ordering::Relaxed);
    }
    assert!(AT_ONCE.load(Ordering::Relaxed) >= 8);
    Ok(())
}
