//! The text of a few kernels in both languages, so that a change of it is seen where it is
//! reviewed. After a change that is meant, `INSTA_UPDATE=always cargo test -p cupola-gpu --test
//! snapshots` writes the new texts.

mod translate;

use std::sync::Arc;

use cupola_core::backend::{Body, Instr};
use cupola_core::backend::{Kernel, Operand, Segment};
use cupola_core::precision::MatmulPrecision;
use cupola_core::prim::call::{HostInput, Language, Launch as UserLaunch, Source, Text, language};
use cupola_core::prim::{
    Binary, Conv, ConvRole, Custom, CustomOp, Dot, Elementwise, Gather, KernelOp, ReduceKind, Unary,
};
use cupola_core::{Aval, DType, Result, Shape};
use cupola_gpu::emit::{CudaC, Dialect, Wgsl, dynamic_shared, print};
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
    [("wgsl", wgpu, Box::new(Wgsl { int16: true })), ("cuda", cuda, Box::new(CudaC::ALONE))]
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

/// Every function of the library, an exchange that compares and first values of rows: WGSL that is valid, and what CUDA
/// has for them.
#[test]
fn custom_library() {
    let floats = "sign(v) fract(v) saturate(v) mix(v,v,v) step(v,v) smoothstep(v,v,v) degrees(v) radians(v) divide(v,v) \
        fdim(v,v) hypot(v,v) sinpi(v) cospi(v) tanpi(v) copysign(v,v) signbit(v) isnormal(v) isordered(v,v) \
        isunordered(v,v) max3(v,v,v) min3(v,v,v) fmedian3(v,v,v)";
    let whole = "popcount(v) clz(v) ctz(v) reverse_bits(v) rotate(v,3) extract_bits(v,1,2) insert_bits(v,v,1,2) \
        absdiff(v,v) addsat(v,v) subsat(v,v) hadd(v,v) rhadd(v,v) mulhi(v,v) madhi(v,v,v) mul24(v,v) mad24(v,v,v) \
        max3(v,v,v) median3(v,v,v)";
    let calls = |types: &str, calls: &str| {
        let block = |ty: &str| {
            let sum: String = calls
                .split(' ')
                .filter(|call| !call.is_empty())
                .map(|call| format!("sum += (float){call}; "))
                .collect();
            format!("{{ {ty} v = ({ty})x[i]; {sum}}}\n")
        };
        types.split(' ').map(block).collect::<String>()
    };
    let exchange = "
        int rows[2][3] = {{1, 2}, {3}};
        T seen[2] = {T(rows[i % 2][0])};
        while (!atomic_compare_exchange_weak_explicit(&y[0], &seen[0], seen[0] + T(1), memory_order_relaxed,
                                                      memory_order_relaxed)) {}
        atomic_store_explicit(&y[1], T(sum), memory_order_relaxed);";
    for (scalar, dtype, word) in [
        (language::Scalar::F32, DType::F32, "u32"),
        (language::Scalar::I32, DType::I32, "int"),
        (language::Scalar::U32, DType::U32, "u32"),
    ] {
        let array = |name: &str, scalar| language::Array { name: name.into(), scalar, rank: 1 };
        let signature = language::Signature {
            inputs: vec![array("x", language::Scalar::F32)],
            outputs: vec![array("y", scalar)],
            template: vec![("T".into(), language::Parameter::Type(scalar))],
        };
        for (language, target, dialect) in targets() {
            let is_cuda = language == "cuda";
            let target = Target { int64: true, ..target };
            let source = format!(
                "uint i = thread_position_in_grid.x; float sum = 0;\n{}{}{exchange}",
                calls(if is_cuda { "float double" } else { "float" }, floats),
                calls("int uint char uchar short ushort long ulong", whole),
            );
            let read = language::parse(&source, "", &signature).unwrap();
            let kernel = Kernel::Custom(Custom(Arc::new(Users(Source::Common(Arc::new(read))))));
            let segment = segment(kernel, vec![operand(&[24], DType::F32)], operand(&[2], dtype));
            for launch in program(&segment, &target).unwrap().launches {
                let text = print(&launch.kernel, &*dialect);
                if !is_cuda {
                    translate::translate(&launch.kernel, &text);
                } else if launch.kernel.name.contains("users") {
                    let exchange = format!("atomicCAS(({word}*)(b");
                    for part in
                        ["(u32)__popc(v", "(u32)__clz((int)v", "__brev(v", exchange.as_str()]
                    {
                        assert!(text.contains(part), "'{part}' is missing in\n{text}");
                    }
                }
            }
        }
    }
}

/// What a body in CUDA C++ shares as an array without a length.
#[test]
fn custom_text_shares_memory() {
    let [_, (_, target, dialect)] = targets();
    let launches = |bytes: i64| {
        let text = Text {
            header: String::new(),
            body: "extern __shared__ float all[];".into(),
            names: ["x", "scale", "y"].map(String::from).to_vec(),
            template: vec![("shared_memory".into(), language::Parameter::Integer(bytes))],
            has_atomic_outputs: false,
        };
        program(&users(Source::Text(Arc::new(text))), &target).map(|program| program.launches)
    };
    let last = launches(4096).unwrap().pop().unwrap();
    let text = print(&last.kernel, &*dialect);
    assert_eq!(dynamic_shared(&last.kernel), 4096);
    assert!(text.contains("constexpr long long shared_memory = 4096;"), "{text}");
    assert!(!text.contains("dynamic[]"), "{text}");
    for bytes in [-1, 1 << 20, 1 << 40] {
        let missing = launches(bytes).err().map(|missing| missing.0);
        let wanted = format!("a threadgroup shares {bytes} bytes: 49152 is the most");
        assert_eq!(missing, Some(wanted));
    }
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
