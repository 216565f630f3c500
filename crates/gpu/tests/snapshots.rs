//! The text of a few kernels in both languages, so that a change of it is seen where it is
//! reviewed. After a change that is meant, `INSTA_UPDATE=always cargo test -p cupola-gpu --test
//! snapshots` writes the new texts.

use std::sync::Arc;

use cupola_core::backend::{Body, Instr};
use cupola_core::backend::{Kernel, Operand, Segment};
use cupola_core::precision::MatmulPrecision;
use cupola_core::prim::call::{HostInput, Language, Launch as UserLaunch, Source, Text, language};
use cupola_core::prim::{
    Binary, Conv, ConvRole, Custom, CustomOp, Dot, Elementwise, Gather, KernelOp, ReduceKind, Unary,
};
use cupola_core::{Aval, DType, Result, Shape};
use cupola_gpu::emit::{CudaC, Dialect, Wgsl, print};
use cupola_gpu::ir::{Build, Target};
use cupola_gpu::kernels::{Launch, in_vectors, program};

/// As a GPU is through wgpu, and as an NVIDIA GPU through CUDA, with few threads so that nothing
/// is cut into parts.
fn targets() -> [(&'static str, Target, Box<dyn Dialect>); 2] {
    let wgpu = Target {
        int64: false,
        float64: false,
        int16: true,
        subgroup: 32,
        language: cupola_core::prim::call::Language::Wgsl,
        native_math: false,
        wide_offsets: false,
        max_blocks: 65_535,
        max_threads: 256,
        vector_bytes: 0,
        shared_bytes: 16 << 10,
        max_bindings: 8,
        threads: 1,
        copies: false,
        matrix: false,
        wide: false,
        tf32: false,
        mul_high: false,
        rounds: usize::MAX,
        awaits: false,
    };
    let cuda = Target {
        int64: true,
        float64: true,
        subgroup: 0,
        language: cupola_core::prim::call::Language::Cuda,
        native_math: true,
        wide_offsets: true,
        max_blocks: 1 << 30,
        vector_bytes: 16,
        shared_bytes: 48 << 10,
        max_bindings: 64,
        // A product of matrix units is unrolled into a thousand lines, which nobody reviews.
        matrix: false,
        wide: false,
        tf32: true,
        mul_high: true,
        rounds: usize::MAX,
        awaits: true,
        ..wgpu.clone()
    };
    [("wgsl", wgpu, Box::new(Wgsl { int16: true })), ("cuda", cuda, Box::new(CudaC))]
}

fn operand(shape: &[usize], dtype: DType) -> Operand {
    Operand::contiguous(&Aval { shape: Shape::from(shape), dtype })
}

fn segment(kernel: Kernel, inputs: Vec<Operand>, output: Operand) -> Segment {
    Segment { kernel, inputs, outputs: vec![output], scalars: Vec::new(), epilogue: None }
}

/// Compares the texts of all launches of `segment`, without the conversions that every kernel
/// begins with.
fn check(name: &str, segment: &Segment) {
    for (language, target, dialect) in targets() {
        let launches = program(segment, &target).unwrap().launches;
        check_launches(&format!("{name}_{language}"), &launches, &target, &*dialect);
    }
}

/// Compares the texts of what wgpu runs where regions are aligned.
fn check_in_vectors(name: &str, segment: &Segment) {
    let [(language, target, dialect), _] = targets();
    let launches = in_vectors(segment, &target).unwrap().launches;
    check_launches(&format!("{name}_{language}"), &launches, &target, &*dialect);
}

fn check_launches(name: &str, launches: &[Launch], target: &Target, dialect: &dyn Dialect) {
    let empty = print(&Build::new(target, "empty", 1).finish().unwrap(), dialect);
    let mut texts = Vec::new();
    for launch in launches {
        let text = print(&launch.kernel, dialect);
        // An extension is enabled before anything else.
        let (head, rest) = match text.strip_prefix("enable wgpu_int16;\n") {
            Some(rest) => ("enable wgpu_int16;\n", rest),
            None => ("", &text[..]),
        };
        let same = rest.lines().zip(empty.lines()).take_while(|(a, b)| a == b).count();
        let own: Vec<&str> = rest.lines().skip(same).collect();
        texts.push(format!("{head}grid {:?}\n{}", launch.grid, own.join("\n")));
    }
    insta::assert_snapshot!(name, texts.join("\n\n"));
}

#[test]
fn what_every_kernel_begins_with() {
    for (language, target, dialect) in targets() {
        let text = print(&Build::new(&target, "empty", 1).finish().unwrap(), &*dialect);
        insta::assert_snapshot!(format!("empty_{language}"), text);
    }
}

/// |x| · y of a half and a broadcast row.
#[test]
fn map() {
    let shape = [6, 40];
    let instr = |op, args: &[u16]| Instr { op, args: args.into(), dtype: DType::F16 };
    let body = Body {
        shape: Shape::from(&shape[..]),
        inputs: vec![DType::F16; 2],
        scalars: Vec::new(),
        code: vec![
            instr(Elementwise::Unary(Unary::Abs), &[0]),
            instr(Elementwise::Binary(Binary::Mul), &[2, 1]),
        ],
        outputs: vec![3],
    };
    let mut row = operand(&shape, DType::F16);
    row.strides[0] = 0;
    let x = operand(&shape, DType::F16);
    let segment = segment(Kernel::Map(body), vec![x.clone(), row], x);
    check("map", &segment);
    check_in_vectors("map_quads", &segment);
}

#[test]
fn reduce() {
    let x = operand(&[30, 1000], DType::F32);
    let body = Body::copy(x.aval.shape.clone(), DType::F32);
    let kernel = Kernel::Reduce { body, kind: ReduceKind::Sum, axes: [1].into_iter().collect() };
    check("reduce", &segment(kernel, vec![x], operand(&[30], DType::F32)));
}

#[test]
fn gemm() {
    let (a, b) = (operand(&[20, 30], DType::F32), operand(&[30, 10], DType::F32));
    let dot = KernelOp::Dot(Dot::of(DType::F32));
    check("gemm", &segment(Kernel::Op(dot), vec![a, b], operand(&[20, 10], DType::F32)));
}

/// Both operands of halves in vectors: the first along the summed axis, the second along its own.
#[test]
fn gemm_in_vectors() {
    let (a, b) = (operand(&[80, 32], DType::F16), operand(&[32, 72], DType::F16));
    let dot = KernelOp::Dot(Dot { result: DType::F16, ..Dot::of(DType::F32) });
    let segment = segment(Kernel::Op(dot), vec![a, b], operand(&[80, 72], DType::F16));
    check_in_vectors("gemm_vectors", &segment);
}

#[test]
fn conv() {
    let (x, w) = (operand(&[2, 6, 6, 3], DType::F32), operand(&[4, 3, 3, 3], DType::F32));
    let conv = KernelOp::Conv(Box::new(Conv {
        role: ConvRole::Forward,
        input: [6, 6].into_iter().collect(),
        kernel: [3, 3].into_iter().collect(),
        stride: [1, 1].into_iter().collect(),
        padding: vec![(1, 1), (1, 1)],
        dilation: [1, 1].into_iter().collect(),
        input_dilation: [1, 1].into_iter().collect(),
        groups: 1,
        flip: false,
        accumulate: DType::F32,
        precision: MatmulPrecision::Full,
        result: DType::F32,
    }));
    check("conv", &segment(Kernel::Op(conv), vec![x, w], operand(&[2, 6, 6, 4], DType::F32)));
}

#[test]
fn gather() {
    let gather = KernelOp::Gather(Gather {
        axes: [0].into_iter().collect(),
        sizes: [1, 5].into_iter().collect(),
    });
    let (x, at) = (operand(&[9, 5], DType::U8), operand(&[4], DType::I32));
    check("gather", &segment(Kernel::Op(gather), vec![x, at], operand(&[4, 1, 5], DType::U8)));
}

/// A user's kernel.
struct Users(Source);

impl CustomOp for Users {
    fn name(&self) -> &'static str {
        "users"
    }

    fn key(&self) -> Vec<u8> {
        Vec::new()
    }

    fn infer(&self, _: &[&Aval]) -> Result<Vec<Aval>> {
        Ok(vec![Aval::new([2], DType::F32)])
    }

    fn run_host(&self, _: &[HostInput<'_>], _: &mut [&mut [u8]]) -> Result<()> {
        Ok(())
    }

    fn launch(&self, _: Language) -> Option<UserLaunch> {
        let (source, init) = (self.0.clone(), Some(0.5));
        let (grid, threadgroup) = ([24, 1, 1], [8, 1, 1]);
        Some(UserLaunch { source, grid, threadgroup, init, takes_strides: false })
    }
}

fn users(source: Source) -> Segment {
    let kernel = Kernel::Custom(Custom(Arc::new(Users(source))));
    let inputs = vec![operand(&[24], DType::F32), operand(&[], DType::F32)];
    segment(kernel, inputs, operand(&[2], DType::F32))
}

/// A kernel of the common language: indices that are seen to be within, and such that are not.
#[test]
fn custom() {
    let array = |name: &str, rank| language::Array {
        name: name.into(),
        scalar: language::Scalar::F32,
        rank,
    };
    let signature = language::Signature {
        inputs: vec![array("x", 1), array("scale", 0)],
        outputs: vec![array("y", 1)],
        template: Vec::new(),
    };
    let source = "
        threadgroup float tile[8];
        uint i = thread_position_in_grid.x;
        float terms[2] = {x[i], scale};
        for (uint n = 0; n < 3; n++) {
            if (x[i] < n) continue;
            terms[0] += x[n];
        }
        tile[thread_position_in_threadgroup.x] = terms[0] * terms[1];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        atomic_fetch_max_explicit(&y[tile[0] > 0 ? 0 : 1], tile[0], memory_order_relaxed);
    ";
    let program = language::parse(source, "", &signature).unwrap();
    check("custom", &users(Source::Common(Arc::new(program))));
}

/// A kernel in the device's own language.
#[test]
fn custom_text() {
    let text = Text {
        header: "// declared before".into(),
        body: "y[i] = x[thread_position_in_grid.x] * scale;".into(),
        names: ["x", "scale", "y"].map(String::from).to_vec(),
        template: vec![("N".into(), language::Parameter::Integer(3))],
        has_atomic_outputs: false,
    };
    let segment = users(Source::Text(Arc::new(text)));
    check_in_vectors("custom_text", &segment);
    let [_, (language, target, dialect)] = targets();
    let launches = program(&segment, &target).unwrap().launches;
    check_launches(&format!("custom_text_{language}"), &launches, &target, &*dialect);
}
