//! Kernels as CUDA, where they move vectors, and as WGSL, where they do so in buffers that all loads and
//! stores move alike: what is printed.

use cupola_core::backend::{Body, Instr};
use cupola_core::backend::{Fold, Kernel, Operand, Segment};
use cupola_core::precision::MatmulPrecision;
use cupola_core::prim::composite::attention::Scores;
use cupola_core::prim::{
    Attention, AttentionGrad, AttentionMaskKind, Binary, Composite, Conv, ConvRole, Dot,
    Elementwise, KernelOp, Pool, PoolRole, QuantizedDot, ReduceKind, Scan, ScanKind, Scatter,
    ScatterMode, Select, Unary,
};
use cupola_core::{Aval, DType, Scalar, Shape};

use super::{BufferRef, Launch, Program, in_vectors, program};
use crate::emit::{CudaC, Wgsl, print};
use crate::ir::Target;

/// A card that has everything.
const CARD: Target = Target {
    int64: true,
    float64: true,
    language: cupola_core::prim::call::Language::Cuda,
    native_math: true,
    wide_offsets: true,
    max_threads: 1024,
    max_blocks: 1 << 30,
    shared_bytes: 227 << 10,
    max_bindings: 64,
    int16: true,
    subgroup: 32,
    copies: true,
    vector_bytes: 16,
    threads: 132 * 2048,
    matrix: true,
    wide: true,
    tf32: true,
    mul_high: true,
    rounds: usize::MAX,
    awaits: true,
};

/// A device that has little, but takes neighbours together.
const PLAIN: Target = Target {
    int64: false,
    float64: false,
    language: cupola_core::prim::call::Language::Wgsl,
    native_math: false,
    wide_offsets: false,
    max_threads: 256,
    max_blocks: 65_535,
    shared_bytes: 16_384,
    max_bindings: 8,
    int16: false,
    subgroup: 0,
    copies: false,
    vector_bytes: 16,
    threads: 1 << 15,
    matrix: false,
    wide: false,
    tf32: false,
    mul_high: false,
    rounds: usize::MAX,
    awaits: false,
};

fn operand(shape: &[usize], dtype: DType) -> Operand {
    Operand::contiguous(&Aval::new(Shape::from(shape), dtype))
}

fn strided(shape: &[usize], strides: &[isize], dtype: DType) -> Operand {
    Operand { aval: Aval::new(Shape::from(shape), dtype), strides: strides.into() }
}

fn segment(kernel: Kernel, inputs: Vec<Operand>, outputs: Vec<Operand>) -> Segment {
    Segment { kernel, inputs, outputs, scalars: Vec::new(), epilogue: None }
}

/// A body over `shape` with inputs of `inputs` and these instructions.
fn body(
    shape: &[usize],
    inputs: &[DType],
    code: &[(Elementwise, &[u16])],
    outputs: &[u16],
) -> Body {
    let code = code.iter().map(|(op, args)| Instr {
        op: *op,
        args: args.iter().copied().collect(),
        dtype: DType::F32,
    });
    Body {
        shape: Shape::from(shape),
        inputs: inputs.to_vec(),
        scalars: Vec::new(),
        code: code.collect(),
        outputs: outputs.to_vec(),
    }
}

fn planned(segment: &Segment, target: &Target) -> Program {
    match program(segment, target) {
        Ok(program) => program,
        Err(missing) => panic!("{missing:?}"),
    }
}

/// The texts of a segment's kernels. Where the elements have at most 32 bits they are also written
/// as WGSL, and checked.
fn texts(segment: &Segment) -> Vec<String> {
    let everywhere = |o: &Operand| o.aval.dtype.size() <= 4;
    if segment.inputs.iter().chain(&segment.outputs).all(everywhere) {
        for launch in &planned(segment, &PLAIN).launches {
            check(&print(&launch.kernel, &Wgsl::default()));
        }
    }
    planned(segment, &CARD).launches.iter().map(|l| print(&l.kernel, &CudaC::ALONE)).collect()
}

fn check(text: &str) {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    let module = match naga::front::wgsl::parse_str(text) {
        Ok(module) => module,
        Err(error) => panic!("{}\n{text}", error.emit_to_string(text)),
    };
    let checked = Validator::new(ValidationFlags::all(), Capabilities::empty()).validate(&module);
    assert!(checked.is_ok(), "{checked:?}\n{text}");
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

const F32: DType = DType::F32;

#[test]
fn a_length_that_vectors_do_not_divide() {
    let shape = [1_000_003];
    let work = body(&shape, &[F32], &[(Elementwise::Unary(Unary::Exp), &[0])], &[1]);
    let x = operand(&shape, F32);
    let one = segment(Kernel::Map(work), vec![x.clone()], vec![x]);
    let text = &texts(&one)[0];
    // Vectors, and elements one by one for the three that are left.
    assert_eq!(count(text, "= *(const Vector<float, 4>*)"), 1, "{text}");
    assert_eq!(count(text, "expf("), 5, "{text}");
    assert_eq!(count(text, "for ("), 2, "{text}");
}

#[test]
fn a_mask_of_bytes_beside_floats() {
    let shape = [512, 28, 28, 20];
    let choose = Elementwise::Select(Select);
    let work = body(&shape, &[DType::Bool, F32, F32], &[(choose, &[0, 1, 2])], &[3]);
    let (mask, x) = (operand(&shape, DType::Bool), operand(&shape, F32));
    let one = segment(Kernel::Map(work), vec![mask, x.clone(), x.clone()], vec![x]);
    let text = &texts(&one)[0];
    assert!(text.contains("const Words<u8, 4>*"), "{text}");
    assert!(text.contains("*(Vector<float, 4>*)"), "{text}");
}

#[test]
fn a_transpose_is_turned_in_shared_memory() {
    let kinds = [
        (F32, "Vector", "float, 4"),
        (DType::F16, "Words", "u16, 8"),
        (DType::F64, "Vector", "double, 2"),
    ];
    for (dtype, read, name) in kinds {
        let from = strided(&[1024, 512], &[1, 1024], dtype);
        let work = Body::copy(Shape::from([1024, 512]), dtype);
        let one = segment(Kernel::Map(work), vec![from], vec![operand(&[1024, 512], dtype)]);
        let text = &texts(&one)[0];
        assert!(text.contains("__shared__"), "{text}");
        assert!(text.contains(&format!("const {read}<{name}>*")), "{text}");
        assert!(text.contains(&format!("*(Vector<{name}>*)")), "{text}");
    }
}

#[test]
fn sums_over_the_dense_axis_and_over_the_others() {
    let (shape, work) = ([512, 28, 28, 20], body(&[512, 28, 28, 20], &[F32], &[], &[0]));
    let over = |axes: &[usize], outputs: &[usize]| {
        let axes = axes.iter().copied().collect();
        let kernel = Kernel::Reduce { body: work.clone(), kind: ReduceKind::Sum, axes };
        segment(kernel, vec![operand(&shape, F32)], vec![operand(outputs, F32)])
    };
    let along = planned(&over(&[3], &[512, 28, 28]), &CARD);
    assert_eq!(along.launches.len(), 1);
    let bias = planned(&over(&[0, 1, 2], &[20]), &CARD);
    // Two launches, the first of many blocks.
    assert_eq!(bias.launches.len(), 2);
    assert!(bias.launches[0].grid[0] > 264, "{:?}", bias.launches[0].grid);
    for one in [over(&[3], &[512, 28, 28]), over(&[0, 1, 2], &[20])] {
        let text = &texts(&one)[0];
        assert!(text.contains("const Vector<float, 4>*"), "{text}");
    }
}

#[test]
fn poolings_take_channels_together() {
    let pool = |role| {
        Box::new(Pool {
            role,
            input: [28, 28].into_iter().collect(),
            window: [2, 2].into_iter().collect(),
            stride: [2, 2].into_iter().collect(),
            padding: vec![(0, 0); 2],
            dilation: [1, 1].into_iter().collect(),
        })
    };
    let (x, y) = (operand(&[512, 28, 28, 20], F32), operand(&[512, 14, 14, 20], F32));
    let forward =
        segment(Kernel::Op(KernelOp::Pool(pool(PoolRole::Max))), vec![x.clone()], vec![y.clone()]);
    let text = &texts(&forward)[0];
    assert_eq!(count(text, "= *(const Vector<float, 4>*)"), 4, "{text}");
    let scatter = Kernel::Op(KernelOp::Pool(pool(PoolRole::MaxScatter)));
    let text = &texts(&segment(scatter, vec![x.clone(), y], vec![x]))[0];
    // Each window of x and its cotangent are read once, and each place is written once.
    assert_eq!(count(text, "= *(const Vector<float, 4>*)"), 5, "{text}");
    assert_eq!(count(text, "*(Vector<float, 4>*)"), 4, "{text}");
}

/// A softmax over the last axis.
pub(super) fn softmax(rows: usize, length: usize) -> Segment {
    let binary = |op| Elementwise::Binary(op);
    let work = body(
        &[rows, length],
        &[F32, F32, F32],
        &[
            (binary(Binary::Sub), &[0, 1]),
            (Elementwise::Unary(Unary::Exp), &[3]),
            (binary(Binary::Div), &[4, 2]),
        ],
        &[5],
    );
    let folds =
        vec![Fold { kind: ReduceKind::Max, input: 0 }, Fold { kind: ReduceKind::Sum, input: 4 }];
    let x = operand(&[rows, length], F32);
    segment(Kernel::Rows { body: work, folds }, vec![x.clone()], vec![x])
}

#[test]
fn a_row_is_read_once() {
    for (length, loads) in [(10, 3), (1024, 4), (16384, 8), (32768, 8)] {
        let text = &texts(&softmax(512, length))[0];
        let name = if length == 10 { "float, 2" } else { "float, 4" };
        assert_eq!(count(text, &format!("= *(const Vector<{name}>*)")), loads, "{text}");
        assert_eq!(count(text, &format!("*(Vector<{name}>*)")), loads, "{text}");
    }
    let text = &texts(&softmax(512, 1023))[0];
    assert!(!text.contains("Vector<float, "), "{text}");
}

/// A convolution with a 5×5 kernel, padded to the same size, or a gradient of it.
fn convolution(role: ConvRole, images: usize, side: usize, channels: [usize; 2]) -> Segment {
    let [cin, cout] = channels;
    let x = operand(&[images, side, side, cin], F32);
    let y = operand(&[images, side, side, cout], F32);
    let w = operand(&[cout, 5, 5, cin], F32);
    let conv = KernelOp::Conv(Box::new(Conv {
        role,
        input: [side, side].into_iter().collect(),
        kernel: [5, 5].into_iter().collect(),
        stride: [1, 1].into_iter().collect(),
        padding: vec![(2, 2), (2, 2)],
        dilation: [1, 1].into_iter().collect(),
        input_dilation: [1, 1].into_iter().collect(),
        groups: 1,
        flip: false,
        accumulate: F32,
        precision: MatmulPrecision::Full,
        result: F32,
    }));
    let [a, b, output] = role.arranged([x, w, y]);
    segment(Kernel::Op(conv), vec![a, b], vec![output])
}

#[test]
fn convolutions_that_fill_the_device_share_patches() {
    let network = [(28, [1, 20]), (14, [20, 50]), (7, [50, 100])];
    for role in [ConvRole::Forward, ConvRole::InputGrad, ConvRole::WeightGrad] {
        for (side, channels) in network {
            let segment = convolution(role, 512, side, channels);
            let program = planned(&segment, &CARD);
            let texts: Vec<String> =
                program.launches.iter().map(|l| print(&l.kernel, &CudaC::ALONE)).collect();
            let wide = texts.iter().filter(|text| text.contains("wgmma.mma_async")).count();
            assert_eq!(wide, 1, "{role:?} {channels:?}");
            let narrow = planned(&segment, &Target { wide: false, ..CARD });
            let patches = (narrow.launches.iter().map(|l| print(&l.kernel, &CudaC::ALONE)))
                .filter(|text| text.contains("_patch(") && text.contains("mma.sync"));
            assert_eq!(patches.count(), 1, "{role:?} {channels:?}");
        }
    }
    // One image has too few places.
    let program = planned(&convolution(ConvRole::Forward, 1, 14, [20, 50]), &CARD);
    assert!(program.launches.iter().all(|l| !l.kernel.name.contains("patch")));
}

/// A device of wgpu with few threads.
const SMALL: Target = Target { vector_bytes: 0, threads: 1 << 10, ..PLAIN };

/// A product as wgpu runs it where regions are aligned, if it has vectors then.
fn product_in_vectors(a: Operand, b: Operand) -> Option<(Launch, String)> {
    let rank = a.aval.shape.rank();
    let mut sizes = a.aval.shape.to_vec();
    sizes[rank - 1] = b.aval.shape[rank - 1];
    let dot = KernelOp::Dot(Dot::of(F32));
    let one = segment(Kernel::Op(dot), vec![a, b], vec![operand(&sizes, F32)]);
    let program = in_vectors(&one, &SMALL)?;
    let launch = program.launches[0].clone();
    let text = print(&launch.kernel, &Wgsl::default());
    check(&text);
    Some((launch, text))
}

#[test]
fn a_running_fold_reads_a_long_lane_once_where_blocks_may_wait() {
    let running = |lanes: usize, size: usize, dtype: DType| {
        let op = Scan { axis: 1, kind: ScanKind::Sum, reverse: false, exclusive: false };
        let all = operand(&[lanes, size], dtype);
        segment(Kernel::Op(KernelOp::Scan(op)), vec![all.clone()], vec![all])
    };
    for dtype in [F32, DType::BF16, DType::I64, DType::C64] {
        let one = texts(&running(3, 1_000_000, dtype));
        // Sums of integers are the same in any groups.
        let again = usize::from(dtype.is_inexact());
        assert_eq!(one.len(), 2 + again, "what is posted is cleared, the tiles, and what is lost");
        // A word for a tile and one for its group; of 64 bits two.
        let words = if dtype.accumulator().size() == 8 { 2 } else { 1 };
        assert_eq!(count(&one[1], "= awaited("), 2 * words, "{}", one[1]);
        assert_eq!(count(&one[1], "1ull << 32"), 2 * words);
        assert_eq!(one, texts(&running(5, 77_777, dtype)));
        let others = planned(&running(1, 1_000_000, dtype), &Target { awaits: false, ..CARD });
        assert_eq!(others.launches.len(), 3 + again);
    }
}

#[test]
fn rows_of_updates_are_moved_in_vectors_where_each_starts_at_one() {
    let rows = |apart: isize, width: usize| {
        let op = Scatter { mode: ScatterMode::Min, axes: [0].into_iter().collect() };
        let updates = strided(&[70, 1, width], &[apart, apart, 1], DType::I16);
        let [x, indices] = [operand(&[9, width], DType::I16), operand(&[70], DType::I32)];
        let kernel = Kernel::Op(KernelOp::Scatter(op));
        let one = segment(kernel, vec![x.clone(), updates, indices], vec![x]);
        let program = planned(&one, &CARD);
        program.launches.into_iter().find(|l| l.kernel.name.contains("runs")).unwrap().aligned
    };
    let both = |count| vec![(BufferRef::Output(0), count), (BufferRef::Input(1), count)];
    assert_eq!(rows(8, 8), both(8));
    assert_eq!(rows(20, 8), both(4));
    assert_eq!(rows(6, 2), both(2));
    // A row that is two elements wide, of one of five.
    assert_eq!(rows(5, 2), []);
    assert_eq!(rows(9, 8), []);
    // Rows of one element follow each other, and are not one.
    assert_eq!(rows(1, 1), []);
}

#[test]
fn operands_of_products_are_loaded_in_vectors() {
    let matrix = |rows, columns, dtype| operand(&[3, rows, columns], dtype);
    for (dtype, cell, count) in [
        (F32, "vec4<f32>", 4),
        (DType::F16, "vec2<u32>", 4),
        (DType::I32, "vec4<i32>", 4),
        (DType::U8, "u32", 4),
    ] {
        let (launch, text) =
            product_in_vectors(matrix(64, 16, dtype), matrix(16, 64, dtype)).unwrap();
        for buffer in ["b0", "b1"] {
            assert!(text.contains(&format!("{buffer}: array<{cell}>;")), "{text}");
        }
        // It takes for granted that both start at such a multiple, and nothing of the result.
        assert_eq!(launch.aligned, [(BufferRef::Input(0), count), (BufferRef::Input(1), count)]);
    }
    // A transposed operand is loaded along its rows, one whose rows are only even one by one.
    let turned = strided(&[64, 16], &[1, 64], F32);
    let (_, text) = product_in_vectors(turned, operand(&[16, 62], F32)).unwrap();
    assert!(text.contains("b0: array<vec4<f32>>;"), "{text}");
    assert!(text.contains("b1: array<f32>;"), "{text}");
    // One that has no neighbours side by side goes on one by one.
    let (launch, text) =
        product_in_vectors(operand(&[64, 15], F32), operand(&[15, 64], F32)).unwrap();
    assert!(text.contains("b0: array<f32>;") && text.contains("b1: array<vec4<f32>>;"), "{text}");
    assert_eq!(launch.aligned, [(BufferRef::Input(1), 4)]);
    let apart = strided(&[64, 16], &[32, 2], F32);
    assert!(product_in_vectors(apart, operand(&[16, 63], F32)).is_none());
    let wide = matrix(64, 64, DType::C64);
    assert!(product_in_vectors(wide.clone(), wide).is_none());
}

#[test]
fn operands_of_convolutions_are_loaded_in_vectors() {
    for role in [ConvRole::Forward, ConvRole::InputGrad, ConvRole::WeightGrad] {
        let of = |channels| in_vectors(&convolution(role, 8, 14, channels), &SMALL);
        let program = of([40, 36]).unwrap();
        let text = print(&program.launches[0].kernel, &Wgsl::default());
        check(&text);
        for buffer in ["b0", "b1"] {
            assert!(text.contains(&format!("{buffer}: array<vec4<f32>>;")), "{text}");
        }
        assert!(of([3, 5]).is_none());
    }
}

/// An attention and its gradient of these sizes: batch, heads, groups, queries, keys, features, values.
fn attention(sizes: [usize; 7], dtype: DType) -> [Segment; 2] {
    let [b, h, g, q, k, d, e] = sizes;
    let scores = Scores {
        scale: Scalar::Float(1.0 / (d as f64).sqrt()),
        mask: AttentionMaskKind::Causal,
        precision: MatmulPrecision::Tf32,
    };
    let read = [[b, h, q, d], [b, g, k, d], [b, g, k, e]].map(|shape| operand(&shape, dtype));
    let (out, row) = (operand(&[b, q, h, e], dtype), operand(&[b, h, q], F32));
    let rest = [row.clone(), row.clone(), out.clone(), out.clone()];
    let grads = [[b, q, h, d], [b, k, g, d], [b, k, g, e]].map(|shape| operand(&shape, dtype));
    let kernel = |composite: Composite| Kernel::Composite(composite);
    [
        segment(
            kernel(Attention { scores, sinks: false }.into()),
            read.to_vec(),
            vec![out, row.clone(), row],
        ),
        segment(
            kernel(AttentionGrad { scores }.into()),
            read.iter().cloned().chain(rest).collect(),
            grads.to_vec(),
        ),
    ]
}

#[test]
fn a_kernel_of_several_launches_finds_its_own_of_them() {
    let work = body(&[1001], &[F32], &[(Elementwise::Unary(Unary::Exp), &[0])], &[1]);
    let x = operand(&[1001], F32);
    let launches = planned(&segment(Kernel::Map(work), vec![x.clone()], vec![x]), &CARD).launches;
    let alone = print(&launches[0].kernel, &CudaC::ALONE);
    let together = print(&launches[0].kernel, &CudaC { launches: 4 });
    let declared = "struct Together { u32 first[5]; Work work[4]; };";
    assert!(together.contains(declared) && !alone.contains("Together"), "{together}");
    // A block asks for its number once, and then has that among those of its launch.
    let (_, body) = together.split_once("wait_for_before();\n    u32 mine").unwrap_or_default();
    assert!(!body.contains("gridDim") && count(body, "blockIdx") == 2, "{together}");
    assert!(alone.contains("gridDim") && body.contains("blocks"), "{alone}");
}

#[test]
fn attention_takes_its_sizes_as_arguments() {
    for dtype in [F32, DType::BF16] {
        // The size of a head is in the text, rounded up.
        let one = attention([1, 8, 8, 1000, 1000, 64, 64], dtype);
        let other = attention([2, 4, 2, 777, 333, 64, 64], dtype);
        for (one, other) in one.iter().zip(&other) {
            let text = texts(one);
            assert_eq!(text, texts(other));
            let products = text.iter().filter(|text| text.contains("mma"));
            assert_eq!(products.count(), if one.inputs.len() == 3 { 1 } else { 2 });
        }
    }
}

#[test]
fn rows_by_a_quantized_matrix_are_multiplied_by_matrix_units() {
    let [width, depth, group] = [512, 1024, 64];
    let one = |bits: usize, rows: usize| {
        let op = QuantizedDot {
            group_size: group,
            bits,
            transpose: true,
            precision: MatmulPrecision::Full,
        };
        let terms = operand(&[width, depth / group], DType::BF16);
        let x = operand(&[rows, depth], DType::BF16);
        let words = operand(&[width, depth * bits / 32], DType::U32);
        segment(
            Kernel::Composite(Composite::QuantizedDot(op)),
            vec![x, words, terms.clone(), terms],
            vec![operand(&[rows, width], DType::BF16)],
        )
    };
    for (bits, rows) in [(2, 3), (3, 2), (4, 2), (4, 20), (5, 8), (6, 7), (8, 9)] {
        let text = &texts(&one(bits, rows))[0];
        // Four depths of 16 a step, four steps at once, and each beside one by ones.
        assert_eq!(count(text, "mma.sync"), 4 * 4 * 2 * rows.div_ceil(8), "{text}");
        assert_eq!(count(text, "fma_bf16("), 4 * 16 + 1, "{text}");
    }
}
