//! The steps of a plan as one: a device that takes them together gets what each step would get
//! alone, and an error in the middle leaves arrays as it does elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupola_core::backend::{
    Args, Backend, Buffer, Executable, Limits, MemoryStats, Registration, Segment, Sequence,
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

struct Steps(Vec<Arc<dyn Executable>>);

impl Sequence for Steps {
    fn run(&self, steps: &[Option<Args<'_>>]) -> std::result::Result<(), Stopped> {
        assert_eq!(self.0.len(), steps.len());
        RUNS.fetch_add(1, Ordering::Relaxed);
        for (index, (executable, args)) in self.0.iter().zip(steps).enumerate() {
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
        self.0.prepare(segment)
    }
    fn sequence(&self, steps: &[Arc<dyn Executable>]) -> Option<Box<dyn Sequence>> {
        Some(Box::new(Steps(steps.to_vec())))
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
