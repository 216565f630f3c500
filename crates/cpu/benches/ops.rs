//! Memory, gathers, scatters, sorts, extreme places, random bits and copies, each beside what the
//! standard library or a plain copy of the same bytes takes in the same run.
//!
//! `cargo bench -p cupola-cpu --bench ops -- [filter]`

use std::hint::black_box;
use std::time::Instant;

use cupola_core::backend::{Args, Backend, Buffer, Kernel, Operand, Region, Segment};
use cupola_core::precision::MatmulPrecision;
use cupola_core::prim::{
    ArgReduce, Dot, Gather, GatherAxis, Iota, KernelOp, Op, QuantizedDot, RandomBits, Scan,
    ScanKind, Scatter, ScatterMode, Sort,
};
use cupola_core::{Aval, DType};
use cupola_cpu::Cpu;

/// The least time of a call in seconds, over about `budget` seconds.
fn time(budget: f64, mut f: impl FnMut()) -> f64 {
    f();
    let (mut best, start) = (f64::INFINITY, Instant::now());
    for round in 0.. {
        let t = Instant::now();
        f();
        best = best.min(t.elapsed().as_secs_f64());
        if round >= 4 && start.elapsed().as_secs_f64() > budget {
            break;
        }
    }
    best
}

/// Numbers without order, the same in every run.
fn noise(count: usize) -> impl Iterator<Item = u32> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    (0..count).map(move |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    })
}

fn upload<T: bytemuck::Pod>(values: &[T]) -> Buffer {
    Cpu::new().upload(bytemuck::cast_slice(values)).expect("memory for an input")
}

/// Seconds that `op` takes on contiguous inputs.
fn run(op: impl Into<KernelOp>, inputs: &[(Aval, &Buffer)]) -> f64 {
    let op = op.into();
    run_kernel(op.clone().into(), Kernel::Op(op), inputs)
}

/// Seconds that the kernel of `op` takes on contiguous inputs.
fn run_kernel(op: Op, kernel: Kernel, inputs: &[(Aval, &Buffer)]) -> f64 {
    let avals: Vec<&Aval> = inputs.iter().map(|(aval, _)| aval).collect();
    let outputs = op.infer(&avals).expect("inputs that fit");
    let cpu = Cpu::new();
    let segment = Segment {
        kernel,
        inputs: avals.into_iter().map(Operand::contiguous).collect(),
        outputs: outputs.iter().map(Operand::contiguous).collect(),
        scalars: vec![],
        epilogue: None,
    };
    let executable = cpu.prepare(&segment).expect("a kernel");
    let space = cpu.alloc(outputs[0].bytes()).expect("memory for the output");
    let inputs: Vec<_> = inputs.iter().map(|(_, buffer)| Region { buffer, offset: 0 }).collect();
    let outputs = [Region { buffer: &space, offset: 0 }];
    let args = Args { inputs: &inputs, outputs: &outputs, scalars: &[], scratch: None };
    time(0.5, || executable.run(&args).expect("a run"))
}

/// Products with quantized matrices, beside those with the matrix as it is.
fn quantized(report: &dyn Fn(&str, f64, &str, f64)) {
    let (size, group_size) = (4096, 64);
    for dtype in [DType::F32, DType::BF16] {
        let zeros = upload(&vec![0u8; 64 * size * dtype.size()]);
        let of = |shape: &[usize]| (Aval::new(shape, dtype), &zeros);
        let matrix = upload(&vec![0u8; size * size * dtype.size()]);
        for rows in [1, 4, 17, 64] {
            let dense = [of(&[rows, size]), (Aval::new([size, size], dtype), &matrix)];
            let seconds = run(Dot::of(dtype), &dense);
            let bytes = (size * size * dtype.size()) as f64;
            let name = format!("quantized: {rows} rows, {dtype}, dense");
            report(&name, seconds, "GB/s of the matrix", bytes);
            for bits in [2, 3, 4, 6, 8] {
                let columns = size / 32 * bits;
                let words = upload(&noise(size * columns).collect::<Vec<_>>());
                let words = (Aval::new([size, columns], DType::U32), &words);
                let scales = of(&[size, size / group_size]);
                let inputs = [of(&[rows, size]), words, scales.clone(), scales];
                for transpose in [true, false] {
                    let precision = MatmulPrecision::Full;
                    let dot = QuantizedDot { group_size, bits, transpose, precision };
                    let seconds = run_kernel(dot.into(), Kernel::Composite(dot.into()), &inputs);
                    let how = if transpose { ", transposed" } else { "" };
                    let name = format!("quantized: {rows} rows, {dtype}, {bits} bits{how}");
                    let bytes = size * columns * 4 + 2 * size * size / group_size * dtype.size();
                    report(&name, seconds, "GB/s of the matrix", bytes as f64);
                }
            }
        }
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let wanted = |name: &str| filter.as_ref().is_none_or(|f| name.contains(f.as_str()));
    let report = |name: &str, seconds: f64, of: &str, amount: f64| {
        println!("{name:44} {:9.3} ms  {:8.2} {of}", seconds * 1e3, amount / seconds / 1e9);
    };
    println!("{}", Cpu::new().description());
    let (million, f32s) = (1 << 20, |shape: &[usize]| Aval::new(shape, DType::F32));

    if wanted("memory") {
        let cpu = Cpu::new();
        for bytes in [256, 64 << 10, 128 << 20] {
            let rounds = 10_000;
            let seconds = time(0.2, || {
                (0..rounds).for_each(|_| drop(black_box(cpu.alloc(bytes).expect("memory"))));
            });
            println!(
                "memory: alloc and free {bytes:>10} bytes   {:9.1} ns",
                seconds / rounds as f64 * 1e9
            );
        }
    }
    let n = 4 * million;
    let values: Vec<f32> = noise(n).map(|v| v as f32 / 1e6 - 2000.0).collect();
    let x = upload(&values);
    if wanted("sort") {
        let mut copy = values.clone();
        let seconds = time(0.5, || {
            copy.copy_from_slice(&values);
            copy.sort_unstable_by(f32::total_cmp);
        });
        report("sort: 4Mi float32, std unstable", seconds, "G elements/s", n as f64);
        for (shape, axis) in [
            (vec![n], 0),
            (vec![n / 1024, 1024], 1),
            (vec![n / 64, 64], 1),
            (vec![1024, n / 1024], 0),
        ] {
            for indices in [false, true] {
                let op = Sort { indices, ..Sort::new(axis) };
                let name = format!("{}: float32 {shape:?} along {axis}", op.name());
                report(&name, run(op, &[(f32s(&shape), &x)]), "G elements/s", n as f64);
            }
        }
        let seconds = run(Sort::new(0), &[(Aval::new([n], DType::I32), &x)]);
        report("sort: int32 [4Mi]", seconds, "G elements/s", n as f64);
    }
    if wanted("arg") {
        for (shape, axis) in [(vec![n], 0), (vec![n / 16, 16], 1), (vec![1024, n / 1024], 0)] {
            let seconds = run(ArgReduce { max: true, axis }, &[(f32s(&shape), &x)]);
            report(
                &format!("argmax: float32 {shape:?} along {axis}"),
                seconds,
                "GB/s read",
                4.0 * n as f64,
            );
        }
    }
    let rows = 50_000;
    if wanted("gather") || wanted("scatter") {
        let (columns, count) = (64, 65_536);
        let table: Vec<f32> = noise(rows * columns).map(|v| v as f32).collect();
        let table = upload(&table);
        let at: Vec<i32> = noise(count).map(|v| (v % rows as u32) as i32).collect();
        let at = upload(&at);
        let (table, at) = ((f32s(&[rows, columns]), &table), (Aval::new([count], DType::I32), &at));
        let bytes = (count * columns * 4) as f64;
        let gather =
            Gather { axes: [0].into_iter().collect(), sizes: [1, columns].into_iter().collect() };
        report(
            "gather: 65536 rows of 64 float32",
            run(gather, &[table.clone(), at.clone()]),
            "GB/s written",
            bytes,
        );
        let updates = (f32s(&[count, 1, columns]), &x);
        let scatter = Scatter { mode: ScatterMode::Add, axes: [0].into_iter().collect() };
        let inputs = [table, updates, at];
        report("scatter: add 65536 rows of 64 float32", run(scatter, &inputs), "GB/s read", bytes);
        let at: Vec<i32> = noise(n).map(|v| (v % n as u32) as i32).collect();
        let (at, flat) = (upload(&at), (f32s(&[n]), &x));
        let at = (Aval::new([n], DType::I32), &at);
        let seconds = run(GatherAxis { axis: 0 }, &[flat.clone(), at.clone()]);
        report("gather: 4Mi float32 along an axis", seconds, "G elements/s", n as f64);
        let add = Scatter { mode: ScatterMode::Add, axes: [0].into_iter().collect() };
        let seconds = run(add, &[flat.clone(), (f32s(&[n, 1]), &x), at]);
        report("scatter: add 4Mi float32", seconds, "G elements/s", n as f64);
    }
    if wanted("random") {
        let key = upload(&[0u32, 7]);
        for (width, count) in [(4, 8 * million), (1, 8 * million + 3), (4, 1000)] {
            let op = RandomBits { shape: [count].into(), width };
            let seconds = run(op, &[(Aval::new([2], DType::U32), &key)]);
            report(
                &format!("random: {count} of {width} bytes"),
                seconds,
                "GB/s",
                (count * width) as f64,
            );
        }
    }
    if wanted("scan") {
        let n = 32 * million;
        let x = upload(&vec![1.0f32; n]);
        let sum = Scan { kind: ScanKind::Sum, axis: 0, reverse: false, exclusive: false };
        let seconds = run(sum, &[(f32s(&[n]), &x)]);
        report("scan: sums of float32 [32Mi]", seconds, "GB/s read and written", 8.0 * n as f64);
    }
    if wanted("quantized") {
        quantized(&report);
    }
    if wanted("iota") {
        let seconds = run(Iota { shape: [n].into(), dtype: DType::F32, axis: 0 }, &[]);
        report("iota: float32 [4Mi]", seconds, "GB/s", 4.0 * n as f64);
    }
    if wanted("upload") {
        let bytes = vec![1u8; 64 << 20];
        let cpu = Cpu::new();
        let seconds = time(0.5, || drop(cpu.upload(&bytes).expect("memory")));
        report("upload: 64 MiB", seconds, "GB/s", bytes.len() as f64);
        let mut copy = bytes.clone();
        let seconds = time(0.5, || black_box(&mut copy).copy_from_slice(&bytes));
        report("upload: 64 MiB, one thread's copy", seconds, "GB/s", bytes.len() as f64);
    }
}
