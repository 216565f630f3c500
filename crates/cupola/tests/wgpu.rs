//! What a wgpu device has of its own: memory that the host maps, subgroups, elements of 16 bits,
//! and its loss. Nothing is tested where there is no device.

#![cfg(feature = "wgpu")]

use cupola::backend::{
    Args, Backend, Buffer, Executable, Kernel, Operand, Region, Segment, backend, devices_of,
};
use cupola::backend::{Body, Instr};
use cupola::device::{DeviceKind, Stream, with_stream};
use cupola::prim::{ArgReduce, Binary, Compare, Dot, Elementwise, KernelOp, ReduceKind};
use cupola::transform::grad;
use cupola::{Array, Aval, DType, Device, Error, Result, Shape, eval, ops};
use cupola_gpu::wgpu::{Restrictions, Transfers, Wgpu};

fn device() -> Option<Device> {
    let found = devices_of(DeviceKind::Wgpu).first().map(|b| b.device());
    if found.is_none() {
        println!("there is no wgpu device: nothing was tested");
    }
    found
}

/// A device with all that its adapter has, and one without any of it.
fn both(device: Device) -> Result<[Wgpu; 2]> {
    let bare =
        Restrictions { no_subgroups: true, no_int16: true, no_mapping: true, ..Default::default() };
    Ok([Wgpu::open(device, &Restrictions::default())?, Wgpu::open(device, &bare)?])
}

fn operand(shape: &[usize], dtype: DType) -> Operand {
    Operand::contiguous(&Aval { shape: Shape::from(shape), dtype })
}

/// A segment with one input and one output.
fn segment(kernel: Kernel, input: Operand, output: Operand) -> Segment {
    Segment {
        kernel,
        inputs: vec![input],
        outputs: vec![output],
        scalars: Vec::new(),
        epilogue: None,
    }
}

/// All of a buffer.
fn region(buffer: &Buffer) -> Region<'_> {
    Region { buffer, offset: 0 }
}

/// Runs what needs no more than these.
fn launch(on: &dyn Executable, inputs: &[Region<'_>], outputs: &[Region<'_>]) -> Result<()> {
    on.run(&Args { inputs, outputs, scalars: &[], scratch: None })
}

/// What the one output of a segment is.
fn run(gpu: &Wgpu, segment: &Segment, input: &[u8]) -> Result<Vec<u8>> {
    let size = |o: &Operand| o.aval.shape.size() * o.aval.dtype.size();
    let (x, y) = (gpu.upload(input)?, gpu.alloc(size(&segment.outputs[0]))?);
    launch(&*gpu.prepare(segment)?, &[region(&x)], &[region(&y)])?;
    let mut out = vec![0; y.bytes()];
    gpu.download(&y, 0, &mut out)?;
    Ok(out)
}

/// Numbers whose sum depends on the order in which they are added.
fn numbers(count: usize, dtype: DType) -> Result<Vec<u8>> {
    let mut state = 7u32;
    let data = (0..count).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 20) as f32 - 7.9
    });
    ops::astype(&Array::from_vec(data.collect(), [count])?, dtype)?.to_bytes()
}

#[test]
fn subgroups_and_halves_change_no_bit() -> Result<()> {
    let Some(device) = device() else { return Ok(()) };
    let gpus = both(device)?;
    assert!(gpus[1].target().subgroup == 0 && !gpus[1].target().int16);
    if gpus[0].target().subgroup == 0 {
        println!("the adapter has no subgroups: they were not tested");
    }
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[5000], &[0]),
        (&[40, 300], &[1]),
        (&[300, 40], &[0]),
        (&[7, 9], &[1]),
        (&[3, 1000, 5], &[1]),
        (&[2, 100_000], &[1]),
    ];
    for dtype in
        [DType::F32, DType::F16, DType::BF16, DType::I16, DType::U16, DType::I32, DType::C64]
    {
        for (shape, axes) in shapes {
            let input = operand(shape, dtype);
            let bytes = numbers(input.aval.shape.size(), dtype)?;
            let rest: Vec<usize> =
                (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect();
            for kind in [ReduceKind::Sum, ReduceKind::Max] {
                if kind == ReduceKind::Max && dtype == DType::C64 {
                    continue;
                }
                let kernel = Kernel::Reduce {
                    body: Body::copy(Shape::from(shape), dtype),
                    kind,
                    axes: axes.iter().copied().collect(),
                };
                let segment = segment(kernel, input.clone(), operand(&rest, dtype));
                let [with, without] = [&gpus[0], &gpus[1]].map(|gpu| run(gpu, &segment, &bytes));
                assert_eq!(with?, without?, "{} of {dtype} {shape:?} along {axes:?}", kind.name());
            }
            if dtype != DType::C64 {
                let op = KernelOp::ArgReduce(ArgReduce { max: true, axis: axes[0] });
                let segment = segment(Kernel::Op(op), input.clone(), operand(&rest, DType::U32));
                let [with, without] = [&gpus[0], &gpus[1]].map(|gpu| run(gpu, &segment, &bytes));
                assert_eq!(with?, without?, "argmax of {dtype} {shape:?} along {axes:?}");
            }
        }
    }
    Ok(())
}

/// Products whose operands are loaded in vectors, against those that start elsewhere.
#[test]
fn products_in_vectors_are_what_they_are_one_by_one() -> Result<()> {
    let Some(device) = device() else { return Ok(()) };
    // Rows, depth and columns; whether the operands are transposed; whether rows lie apart.
    let cases: [([usize; 3], [bool; 2], usize); 7] = [
        ([16, 32, 16], [false; 2], 0),
        ([40, 24, 72], [false; 2], 0),
        ([70, 36, 68], [true, false], 0),
        ([70, 36, 68], [false, true], 4),
        ([13, 22, 30], [false; 2], 2),
        ([33, 17, 19], [true; 2], 0),
        ([40, 800, 36], [true, false], 8),
    ];
    let dtypes = [DType::F32, DType::F16, DType::BF16, DType::U8, DType::I16, DType::I32];
    for gpu in both(device)? {
        for dtype in dtypes {
            let bytes = numbers(80_000, dtype)?;
            for (sizes, turned, apart) in cases {
                let [rows, depth, columns] = sizes;
                let matrix = |rows: usize, columns: usize, turned: bool| {
                    let mut operand = operand(&[2, rows, columns], dtype);
                    let last = if turned { rows } else { columns } + apart;
                    let other = if turned { columns } else { rows };
                    let [row, column] = if turned { [1, last] } else { [last, 1] };
                    let strides = [other * last, row, column];
                    operand.strides = strides.iter().map(|&s| s as isize).collect();
                    operand
                };
                let segment = Segment {
                    kernel: Kernel::Op(KernelOp::Dot(Dot::of(dtype))),
                    inputs: vec![matrix(rows, depth, turned[0]), matrix(depth, columns, turned[1])],
                    outputs: vec![operand(&[2, rows, columns], dtype)],
                    scalars: Vec::new(),
                    epilogue: None,
                };
                let executable = gpu.prepare(&segment)?;
                let at = |offsets: [usize; 2]| -> Result<Vec<u8>> {
                    let [a, b] = offsets.map(|offset| {
                        let mut moved = vec![0x7f; offset * dtype.size()];
                        moved.extend(&bytes);
                        gpu.upload(&moved)
                    });
                    let (a, b) = (a?, b?);
                    let mut out = vec![0; 2 * rows * columns * dtype.size()];
                    let result = gpu.upload(&out)?;
                    let region = |buffer, offset: usize| Region { buffer, offset: offset as isize };
                    launch(
                        &*executable,
                        &[region(&a, offsets[0]), region(&b, offsets[1])],
                        &[region(&result, 0)],
                    )?;
                    gpu.download(&result, 0, &mut out)?;
                    Ok(out)
                };
                let aligned = at([0, 16])?;
                for offsets in [[0, 1], [3, 0], [2, 2], [4, 7], [8, 4]] {
                    let same = at(offsets)? == aligned;
                    assert!(same, "{dtype} {sizes:?} {turned:?} {apart} at {offsets:?}");
                }
            }
        }
    }
    Ok(())
}

/// Elementwise programs that move four elements at once, against those that cannot, because their
/// operands start elsewhere.
#[test]
fn fours_are_what_ones_are() -> Result<()> {
    let Some(device) = device() else { return Ok(()) };
    let shape = [12, 20];
    let strides = [[20, 1], [0, 1], [1, 12], [20, 0], [0, 0], [40, 1]];
    let integers = [DType::U8, DType::I8, DType::U16, DType::I16, DType::I32, DType::U32];
    for gpu in both(device)? {
        for dtype in integers.into_iter().chain([DType::F16, DType::BF16, DType::F32]) {
            let instr = |op, args: &[u16], dtype| Instr { op, args: args.into(), dtype };
            // x + y, and whether it is above y.
            let body = Body {
                shape: Shape::from(&shape[..]),
                inputs: vec![dtype; 2],
                scalars: Vec::new(),
                code: vec![
                    instr(Elementwise::Binary(Binary::Add), &[0, 1], dtype),
                    instr(Elementwise::Compare(Compare::Gt), &[2, 1], DType::Bool),
                ],
                outputs: vec![2, 3],
            };
            let bytes = numbers(1000, dtype)?;
            for stride in strides {
                let (mut x, y) = (operand(&shape, dtype), operand(&shape, dtype));
                x.strides = stride.as_slice().into();
                let segment = Segment {
                    kernel: Kernel::Map(body.clone()),
                    inputs: vec![x, y.clone()],
                    outputs: vec![y, operand(&shape, DType::Bool)],
                    scalars: Vec::new(),
                    epilogue: None,
                };
                let executable = gpu.prepare(&segment)?;
                let at = |offset: usize| -> Result<[Vec<u8>; 2]> {
                    let size = dtype.size();
                    let mut moved = vec![0; offset * size];
                    moved.extend(&bytes);
                    let (x, y) = (gpu.upload(&moved)?, gpu.upload(&moved)?);
                    let filled = |bytes: usize| gpu.upload(&vec![0xaa; bytes]);
                    let (sum, above) = (filled((248 + offset) * size)?, filled(248 + offset)?);
                    let region = |buffer| Region { buffer, offset: offset as isize };
                    launch(
                        &*executable,
                        &[region(&x), region(&y)],
                        &[region(&sum), region(&above)],
                    )?;
                    let read = |buffer: &Buffer, size: usize| -> Result<Vec<u8>> {
                        let mut out = vec![0; buffer.bytes()];
                        gpu.download(buffer, 0, &mut out)?;
                        // What is around the result is as it was.
                        let (start, end) = (offset * size, (240 + offset) * size);
                        assert!(out[..start].iter().chain(&out[end..]).all(|b| *b == 0xaa));
                        Ok(out[start..end].to_vec())
                    };
                    Ok([read(&sum, size)?, read(&above, 1)?])
                };
                let fours = at(4)?;
                for offset in [0, 1, 3] {
                    assert!(at(offset)? == fours, "{dtype} with strides {stride:?} at {offset}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn on_unified_memory_nothing_is_staged() -> Result<()> {
    let Some(device) = device() else { return Ok(()) };
    let [gpu, staging] = both(device)?;
    let round = |gpu: &Wgpu, bytes: &[u8]| -> Result<(Vec<u8>, Transfers)> {
        let before = gpu.transfers();
        let x = gpu.upload(bytes)?;
        let mut back = vec![0; bytes.len()];
        gpu.download(&x, 0, &mut back)?;
        let after = gpu.transfers();
        let moved = Transfers {
            mapped: after.mapped - before.mapped,
            staged: after.staged - before.staged,
        };
        Ok((back, moved))
    };
    let mapped = gpu.description().contains("software") || gpu.description().contains("integrated");
    for size in [1, 3, 4, 1021, 1 << 20, (1 << 20) + 1] {
        let bytes: Vec<u8> = (0..size).map(|i| (i * 31 % 251) as u8).collect();
        // The second time the memory of the first is used again.
        for _ in 0..2 {
            let (back, moved) = round(&gpu, &bytes)?;
            assert!(back == bytes);
            if mapped {
                assert_eq!(moved, Transfers { mapped: 2, staged: 0 }, "{size} bytes");
            }
            let (back, moved) = round(&staging, &bytes)?;
            assert!(back == bytes && moved.mapped == 0 && moved.staged >= 2, "{moved:?}");
        }
    }
    // Memory that launches still use is not overwritten before they ran.
    let bytes = numbers(1 << 18, DType::F32)?;
    let x = operand(&[1 << 18], DType::F32);
    let copy = segment(Kernel::Map(Body::copy(x.aval.shape.clone(), DType::F32)), x.clone(), x);
    let copy = gpu.prepare(&copy)?;
    let mut results: Vec<Buffer> = Vec::new();
    for turn in 0..20u8 {
        let mut own = bytes.clone();
        own[0] = turn;
        let (from, to) = (gpu.upload(&own)?, gpu.alloc(own.len())?);
        launch(&*copy, &[region(&from)], &[region(&to)])?;
        results.push(to);
    }
    for (turn, result) in results.iter().enumerate() {
        let mut back = vec![0; bytes.len()];
        gpu.download(result, 0, &mut back)?;
        assert!(back[0] == turn as u8 && back[1..] == bytes[1..], "turn {turn}");
    }
    // A part of a buffer, at a place that no mapping starts at.
    let x = gpu.upload(&bytes)?;
    gpu.write(&x, 13, &[1, 2, 3])?;
    let mut back = [0; 5];
    gpu.download(&x, 12, &mut back)?;
    assert_eq!(back, [bytes[12], 1, 2, 3, bytes[16]]);
    Ok(())
}

/// Threads that upload, launch and drop while the device is busy with what the others dropped.
#[test]
fn memory_that_launches_still_read_is_not_overwritten() -> Result<()> {
    let Some(device) = device() else { return Ok(()) };
    let gpu = Wgpu::open(device, &Restrictions::default())?;
    let count = 1 << 14;
    let x = operand(&[count], DType::U32);
    let copy = segment(Kernel::Map(Body::copy(x.aval.shape.clone(), DType::U32)), x.clone(), x);
    let copy = gpu.prepare(&copy)?;
    let work = |thread: u32| -> Result<()> {
        for turn in 0..40 {
            let mut results = Vec::new();
            for step in 0..8 {
                let own = (thread << 16 | turn << 8 | step).to_le_bytes().repeat(count);
                let (from, to) = (gpu.upload(&own)?, gpu.alloc(own.len())?);
                launch(&*copy, &[region(&from)], &[region(&to)])?;
                results.push((own, to));
            }
            for (own, result) in results {
                let mut back = vec![0; own.len()];
                gpu.download(&result, 0, &mut back)?;
                assert!(back == own, "thread {thread}, turn {turn}: {:?}", &back[..8]);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..4)
            .map(|thread| {
                scope.spawn({
                    let work = &work;
                    move || work(thread)
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// An optimiser's step: a gradient is there until its weights are new, not until all are.
#[test]
fn new_weights_lie_where_the_old_ones_did() -> Result<()> {
    let Some(device) = device() else { return Ok(()) };
    let gpu = backend(device)?;
    with_stream(Stream::of(device), || {
        let ones = |shape: &[usize], x: f32| ops::full(shape, x, DType::F32);
        let x = ones(&[4, 512], 1.0)?;
        let loss = |weights: &[Array]| -> Result<Vec<Array>> {
            let mut y = x.clone();
            for w in weights {
                y = ops::tanh(&ops::matmul(&y, w)?)?;
            }
            Ok(vec![ops::sum(&ops::square(&y)?, (), false)?])
        };
        let some = |x: f32| (0..12).map(|_| ones(&[512, 512], x)).collect::<Result<Vec<_>>>();
        let (mut weights, mut means, mut squares) = (some(0.003)?, some(0.0)?, some(1.0)?);
        let numbers: Vec<usize> = (0..weights.len()).collect();
        for turn in 0..3 {
            gpu.synchronize()?;
            let before = gpu.memory().active;
            gpu.set_peak(0);
            let slopes = grad(loss, &numbers)(&weights)?;
            for (at, slope) in slopes.into_iter().enumerate() {
                means[at] = &(&means[at] * 0.9) + &(&slope * 0.1);
                squares[at] = &(&squares[at] * 0.9) + &(&ops::square(&slope)? * 0.1);
                weights[at] = &weights[at] - &(&(&means[at] / &ops::sqrt(&squares[at])?) * 1e-3);
            }
            eval(&[&weights[..], &means, &squares].concat())?;
            // At first all elements of an array are one.
            let more = (gpu.memory().peak - before) as f64 / f64::from(1 << 20);
            assert!(turn == 0 || more < 4.0, "{more} MiB more than what is kept");
        }
        let first = weights[0].to_vec::<f32>()?;
        assert!(first.iter().all(|&w| w < 0.003 && w > 0.0), "{first:?}");
        Ok(())
    })
}

#[test]
fn a_lost_device_says_so_and_the_process_goes_on() -> Result<()> {
    let Some(device) = device() else { return Ok(()) };
    let x = Array::from_vec(vec![1.0f32, 2.0, 3.0], [3])?;
    let double =
        |x: &Array| with_stream(Stream::of(device), || ops::multiply(x, 2.0)?.to_vec::<f32>());
    assert_eq!(double(&x)?, [2.0, 4.0, 6.0]);
    let there = with_stream(Stream::of(device), || ops::add(&x, 1.0))?;
    there.eval()?;
    let lost = Wgpu::of(device).ok_or_else(|| Error::User("it was just there".into()))?;
    lost.lose();
    let says = |error: Error| {
        let text = error.to_string();
        assert!(text.contains(&format!("{device} is lost")), "{text}");
    };
    // What was cached, what is new, and what lies there.
    says(double(&x).unwrap_err());
    says(with_stream(Stream::of(device), || ops::exp(&x)?.to_vec::<f32>()).unwrap_err());
    says(there.to_vec::<f32>().unwrap_err());
    says(lost.synchronize().unwrap_err());
    // An array lies where it was used last, so this one was there, too.
    says(x.to_vec::<f32>().unwrap_err());
    // Memory of a lost device may go.
    drop((there, x));
    let x = Array::from_vec(vec![1.0f32, 2.0, 3.0], [3])?;
    assert_eq!(ops::multiply(&x, 2.0)?.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
    let fresh = Wgpu::open(device, &Restrictions::default())?;
    let x = operand(&[3], DType::F32);
    let sum = Kernel::Reduce {
        body: Body::copy(x.aval.shape.clone(), DType::F32),
        kind: ReduceKind::Sum,
        axes: [0].into_iter().collect(),
    };
    let bytes: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let sum = run(&fresh, &segment(sum, x, operand(&[], DType::F32)), &bytes)?;
    assert_eq!(sum, 6.0f32.to_le_bytes());
    Ok(())
}

#[test]
fn memory_in_vain_is_an_error_and_the_device_goes_on() -> Result<()> {
    let Some(device) = device() else { return Ok(()) };
    let gpu = Wgpu::open(device, &Restrictions::default())?;
    for bytes in [1 << 40, 1 << 50, usize::MAX / 2] {
        let error = gpu.alloc(bytes).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        let x = gpu.upload(&[1, 2, 3])?;
        let mut back = [0; 3];
        gpu.download(&x, 0, &mut back)?;
        assert_eq!(back, [1, 2, 3]);
    }
    assert_eq!(gpu.memory().active, 0);
    Ok(())
}

#[test]
fn what_takes_a_thread_many_rounds_is_right_on_adapters_in_software_too() -> Result<()> {
    let Some(device) = device() else { return Ok(()) };
    // Rounds that Mesa's adapter in software leaves a loop after.
    const MOST: usize = 65_535;
    let count = MOST + 4465;
    let order: Vec<i32> = (0..count as i32).map(|i| i * 31 % count as i32).collect();
    let numbers: Vec<f32> = (0..count).map(|i| i as f32).collect();
    let put = || -> Result<Vec<f32>> {
        let (order, numbers) =
            (Array::from_slice(&order, [count])?, Array::from_slice(&numbers, [count])?);
        let zeros = ops::zeros([count], DType::F32)?;
        ops::put_along_axis(&zeros, &order, &numbers, 0)?.to_vec()
    };
    let sums = |positions: usize, rows: i32| -> Result<Vec<f32>> {
        let at: Vec<i32> = (0..positions as i32).map(|i| i % rows).collect();
        let at = Array::from_slice(&at, [positions])?;
        let updates = ops::ones([positions], DType::F32)?;
        ops::segment_sum(&updates, &at, rows as usize)?.to_vec()
    };
    let of = |device, f: &dyn Fn() -> Result<Vec<f32>>| with_stream(Stream::of(device), f);
    for f in [&put as &dyn Fn() -> Result<Vec<f32>>, &|| sums(4 * MOST + 400, 1), &|| sums(300, 7)]
    {
        assert!(of(device, f)? == of(Device::CPU, f)?);
    }
    Ok(())
}
