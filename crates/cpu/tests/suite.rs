//! The op suite on the CPU, a test a family: by a backend that looks after each kernel for what it
//! wrote around its outputs and for what depends on threads, and once more by each instruction set.

use std::sync::Arc;

use cupola_core::backend::{
    Args, Backend, Buffer, Executable, Fails, Kernel, Limits, MemoryStats, Operand, Region,
    Registration, Segment,
};
use cupola_core::device::DeviceKind;
use cupola_core::prim::{Composite, KernelOp};
use cupola_core::{Aval, Device, Error, Result};
use cupola_cpu::Cpu;
use cupola_cpu::threads::with_threads;
use cupola_simd::{Level, with_isa_limit};
use cupola_suite::{Family, assert_family};

/// The CPU, watched.
struct Watched(Cpu);

const WATCHED: Device = Device { kind: DeviceKind::Cpu, index: 1 };

inventory::submit! {
    Registration {
        kind: DeviceKind::Cpu,
        has_hardware: || true,
        absence: Vec::new,
        discover: || vec![Arc::new(Watched(Cpu::new()))],
    }
}

/// A kernel that runs with one thread and with all, in memory with room around each output. It spoils the memory that
/// it is given for its own use.
struct Twice {
    kernel: Arc<dyn Executable>,
    outputs: Vec<Operand>,
    /// How many elements into its memory an output starts.
    lead: usize,
}

impl Executable for Twice {
    fn fails(&self) -> Fails {
        self.kernel.fails()
    }

    fn scratch(&self) -> usize {
        // So much that it has a room of the plan.
        self.outputs.iter().map(|o| o.aval.bytes()).sum::<usize>().max(5000)
    }

    fn run(&self, args: &Args<'_>) -> Result<()> {
        // What fails early has written nothing by then.
        if self.fails() != Fails::Early {
            self.spoil(args)?;
        }
        self.run_twice(args)?;
        self.spoil(args)
    }
}

impl Twice {
    /// Writes all over the memory that is there for its own use.
    fn spoil(&self, args: &Args<'_>) -> Result<()> {
        let given = args.scratch.filter(|given| given.bytes() >= self.scratch());
        let given =
            given.ok_or_else(|| Error::User("a step was given too little memory".into()))?;
        Cpu::new().write(given, 0, &vec![0xa5; given.bytes()])
    }

    fn run_twice(&self, args: &Args<'_>) -> Result<()> {
        let dense = self.outputs.iter().all(|o| *o == Operand::contiguous(&o.aval));
        let in_place =
            args.inputs.iter().any(|i| args.outputs.iter().any(|o| o.buffer.same(i.buffer)));
        if !dense || in_place {
            return self.kernel.run(args);
        }
        let one = with_threads(1, || self.run_apart(args))?;
        let all = self.run_apart(args)?;
        if one != all {
            return Err(Error::User("the result depends on the number of threads".into()));
        }
        for ((output, region), bytes) in self.outputs.iter().zip(args.outputs).zip(all) {
            let start = region.offset as usize * output.aval.dtype.size();
            if !bytes.is_empty() {
                Cpu::new().write(region.buffer, start, &bytes)?;
            }
        }
        Ok(())
    }

    /// The bytes of each output.
    fn run_apart(&self, args: &Args<'_>) -> Result<Vec<Vec<u8>>> {
        let cpu = Cpu::new();
        let spaces: Vec<Buffer> = (self.outputs.iter())
            .map(|o| cpu.upload(&vec![0x5a; o.aval.bytes() + self.lead * o.aval.dtype.size() + 64]))
            .collect::<Result<_>>()?;
        let regions: Vec<Region<'_>> =
            spaces.iter().map(|buffer| Region { buffer, offset: self.lead as isize }).collect();
        self.kernel.run(&Args { outputs: &regions, ..*args })?;
        (self.outputs.iter().zip(&spaces))
            .map(|(o, space)| {
                let (bytes, lead) = (o.aval.bytes(), self.lead * o.aval.dtype.size());
                let mut all = vec![0; space.bytes()];
                cpu.download(space, 0, &mut all)?;
                let outside = all[..lead].iter().chain(&all[lead + bytes..]);
                match outside.copied().all(|b| b == 0x5a) {
                    true => Ok(all[lead..lead + bytes].to_vec()),
                    false => Err(Error::User("it writes outside its output".into())),
                }
            })
            .collect()
    }
}

impl Backend for Watched {
    fn device(&self) -> Device {
        WATCHED
    }
    fn description(&self) -> String {
        "the CPU, watched".to_owned()
    }
    fn is_real(&self) -> bool {
        false
    }
    fn limits(&self) -> &Limits {
        self.0.limits()
    }
    fn claims(&self, composite: &Composite, inputs: &[&Aval]) -> bool {
        self.0.claims(composite, inputs)
    }
    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        self.0.alloc(bytes)
    }
    fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        self.0.upload(bytes)
    }
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.0.write(buffer, offset, bytes) }
    }
    fn download(&self, buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
        if out.is_empty() { Ok(()) } else { self.0.download(buffer, offset, out) }
    }
    fn prepare(&self, segment: &Segment) -> Result<Arc<dyn Executable>> {
        let kernel = self.0.prepare(segment)?;
        // A view of bytes writes elements of the dtype that it reads.
        let lead = if matches!(segment.kernel, Kernel::Op(KernelOp::Bitcast(_))) { 8 } else { 5 };
        Ok(Arc::new(Twice { kernel, outputs: segment.outputs.clone(), lead }))
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

fn check(family: Family) {
    assert_family(WATCHED, family, |_| false);
}

cupola_suite::tests!(check);

/// Elementwise programs are compiled for each instruction set; what else is has tests beside it.
macro_rules! narrower {
    ($($name:ident $level:ident $family:ident;)*) => {$(
        #[test]
        fn $name() {
            let family = Family::$family;
            with_isa_limit(Level::$level, || assert_family(Device::CPU, family, |_| false));
        }
    )*};
}

narrower! {
    unary_in_portable_code Portable Unary;
    unary_with_avx2 Avx2 Unary;
    binary_in_portable_code Portable Binary;
    binary_with_avx2 Avx2 Binary;
    compare_in_portable_code Portable Compare;
    compare_with_avx2 Avx2 Compare;
    cast_in_portable_code Portable Cast;
    cast_with_avx2 Avx2 Cast;
    call_in_portable_code Portable Call;
    call_with_avx2 Avx2 Call;
    attention_in_portable_code Portable Attention;
    attention_with_avx2 Avx2 Attention;
    quantized_in_portable_code Portable Quantized;
    quantized_with_avx2 Avx2 Quantized;
    products_in_portable_code Portable Dot;
    products_with_avx2 Avx2 Dot;
    products_with_avx512 Avx512 Dot;
}
