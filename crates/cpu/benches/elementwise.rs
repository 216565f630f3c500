//! Elementwise programs, copies, epilogues' shapes and reductions, through the backend.
//!
//! `cargo bench -p cupola-cpu --bench elementwise -- [filter]`; gigabytes a second count every
//! input and output once.

use std::time::Instant;

use cupola_core::backend::{Args, Backend, Buffer, Kernel, Operand, Region, Segment};
use cupola_core::backend::{Body, Instr};
use cupola_core::prim::{Binary, Elementwise, ReduceKind, Unary};
use cupola_core::{Aval, DType, Dims, Shape};
use cupola_cpu::Cpu;
use cupola_cpu::threads::{num_threads, with_threads};

const ADD: Elementwise = Elementwise::Binary(Binary::Add);
const SUB: Elementwise = Elementwise::Binary(Binary::Sub);
const MUL: Elementwise = Elementwise::Binary(Binary::Mul);
const DIV: Elementwise = Elementwise::Binary(Binary::Div);
const MAX: Elementwise = Elementwise::Binary(Binary::Maximum);

/// A segment, its memory and how to report it.
struct Case {
    name: String,
    segment: Segment,
    scalars: Vec<[u8; 8]>,
    /// Whether output `i` takes the memory of input `aliases[i]`.
    aliases: Vec<usize>,
    bytes: usize,
}

/// A program of `f32` instructions over `shape`.
fn body(shape: &[usize], inputs: usize, scalars: usize, code: &[(Elementwise, &[u16])]) -> Body {
    let code: Vec<Instr> = code
        .iter()
        .map(|&(op, args)| Instr { op, args: args.iter().copied().collect(), dtype: DType::F32 })
        .collect();
    let last = (inputs + scalars + code.len() - 1) as u16;
    let dtypes = |n| vec![DType::F32; n];
    Body {
        shape: Shape::from(shape),
        inputs: dtypes(inputs),
        scalars: dtypes(scalars),
        code,
        outputs: vec![last],
    }
}

fn operand(shape: &[usize], strides: &[isize]) -> Operand {
    Operand { aval: Aval::new(shape, DType::F32), strides: strides.into() }
}

fn dense(shape: &[usize]) -> Operand {
    Operand::contiguous(&Aval::new(shape, DType::F32))
}

/// The bytes that an operand reaches.
fn bytes(operand: &Operand) -> usize {
    let axes = operand.aval.shape.iter().zip(&operand.strides);
    4 * axes.map(|(&d, &s)| if s == 0 { 1 } else { d }).product::<usize>()
}

impl Case {
    fn new(name: &str, kernel: Kernel, inputs: Vec<Operand>, outputs: Vec<Operand>) -> Self {
        let scalars = match &kernel {
            Kernel::Map(body) | Kernel::Reduce { body, .. } | Kernel::Rows { body, .. } => {
                body.scalars.clone()
            }
            Kernel::Op(_) | Kernel::Composite(_) | Kernel::Control(_) | Kernel::Custom(_) => vec![],
        };
        let values = [0.044715f32, 0.797_884_6, 1.0, 0.5, 0.9, 0.1, 1e-8];
        let element = |v: f32| {
            let mut out = [0; 8];
            out[..4].copy_from_slice(&v.to_ne_bytes());
            out
        };
        Case {
            name: name.into(),
            bytes: inputs.iter().chain(&outputs).map(bytes).sum(),
            scalars: values.iter().take(scalars.len()).map(|&v| element(v)).collect(),
            segment: Segment { kernel, inputs, outputs, scalars, epilogue: None },
            aliases: vec![],
        }
    }

    fn map(name: &str, body: Body, inputs: Vec<Operand>) -> Self {
        let outputs = vec![dense(&body.shape); body.outputs.len()];
        Self::new(name, Kernel::Map(body), inputs, outputs)
    }

    fn reduce(name: &str, kind: ReduceKind, shape: &[usize], axes: &[usize]) -> Self {
        let body = Body::copy(Shape::from(shape), DType::F32);
        let output = dense(&body.shape.without(axes));
        let axes = Dims::from_slice(axes);
        Self::new(name, Kernel::Reduce { body, kind, axes }, vec![dense(shape)], vec![output])
    }

    /// The least time of a call in seconds.
    fn time(&self) -> f64 {
        let cpu = Cpu::new();
        let executable = cpu.prepare(&self.segment).expect("a kernel");
        let fill = |o: &Operand| {
            let values: Vec<f32> = (0..bytes(o) / 4).map(|i| (i % 997) as f32 / 250.0).collect();
            cpu.upload(bytemuck::cast_slice(&values)).expect("memory for an input")
        };
        let inputs: Vec<Buffer> = self.segment.inputs.iter().map(fill).collect();
        let outputs: Vec<Buffer> = (self.segment.outputs.iter().enumerate())
            .map(|(i, o)| match self.aliases.get(i) {
                Some(&input) => inputs[input].clone(),
                None => cpu.alloc(bytes(o)).expect("memory for an output"),
            })
            .collect();
        fn region(buffer: &Buffer) -> Region<'_> {
            Region { buffer, offset: 0 }
        }
        let inputs: Vec<_> = inputs.iter().map(region).collect();
        let outputs: Vec<_> = outputs.iter().map(region).collect();
        let args =
            Args { inputs: &inputs, outputs: &outputs, scalars: &self.scalars, scratch: None };
        let repeats = ((1 << 20) / self.bytes.max(1)).max(1);
        let (mut best, start) = (f64::INFINITY, Instant::now());
        for round in 0.. {
            let t = Instant::now();
            for _ in 0..repeats {
                executable.run(&args).expect("a run");
            }
            best = best.min(t.elapsed().as_secs_f64() / repeats as f64);
            if round >= 6 && start.elapsed().as_secs_f64() > 0.5 {
                break;
            }
        }
        best
    }
}

fn gelu(n: usize) -> Body {
    let tanh = Elementwise::Unary(Unary::Tanh);
    let code: [(Elementwise, &[u16]); 9] = [
        (MUL, &[0, 0]),
        (MUL, &[5, 0]),
        (MUL, &[6, 1]),
        (ADD, &[0, 7]),
        (MUL, &[8, 2]),
        (tanh, &[9]),
        (ADD, &[10, 3]),
        (MUL, &[0, 4]),
        (MUL, &[12, 11]),
    ];
    body(&[n], 1, 4, &code)
}

/// What often follows a product, of a number that stays in the first cache.
fn activations(n: usize) -> Vec<Case> {
    let [erf, sigmoid] = [Unary::Erf, Unary::Sigmoid].map(Elementwise::Unary);
    let minimum = Elementwise::Binary(Binary::Minimum);
    let case = |name: &str, scalars, code: &[(Elementwise, &[u16])]| {
        Case::map(&format!("{name} 4K"), body(&[n], 1, scalars, code), vec![dense(&[n])])
    };
    vec![
        case(
            "hard swish",
            4,
            &[(MUL, &[0, 1]), (ADD, &[5, 2]), (MAX, &[6, 4]), (minimum, &[7, 3]), (MUL, &[8, 0])],
        ),
        case("swish", 0, &[(sigmoid, &[0]), (MUL, &[0, 1])]),
        case(
            "gelu by erf",
            4,
            &[(MUL, &[0, 1]), (erf, &[5]), (ADD, &[6, 3]), (MUL, &[7, 0]), (MUL, &[8, 4])],
        ),
        case("leaky relu", 1, &[(MUL, &[0, 1]), (MAX, &[0, 2])]),
        case("scale, shift, relu", 3, &[(MUL, &[0, 1]), (ADD, &[4, 2]), (MAX, &[5, 3])]),
    ]
}

/// A step of Adam in place: parameter, gradient and both moments.
fn adam(n: usize) -> Case {
    let code: [(Elementwise, &[u16]); 13] = [
        (MUL, &[2, 4]),
        (MUL, &[1, 5]),
        (ADD, &[11, 12]),
        (MUL, &[3, 6]),
        (MUL, &[1, 1]),
        (MUL, &[15, 7]),
        (ADD, &[14, 16]),
        (MUL, &[17, 10]),
        (Elementwise::Unary(Unary::Sqrt), &[18]),
        (ADD, &[19, 9]),
        (DIV, &[13, 20]),
        (MUL, &[21, 8]),
        (SUB, &[0, 22]),
    ];
    let mut step = body(&[n], 4, 7, &code);
    step.outputs = vec![23, 13, 17];
    let mut case = Case::map("adam 8M, in place", step, vec![dense(&[n]); 4]);
    case.aliases = vec![0, 2, 3];
    case
}

fn cases() -> Vec<Case> {
    let n = 1 << 25;
    let (square, rows) = ([4096, 4096], [1 << 20, 20]);
    let copy = |shape: &[usize]| Body::copy(Shape::from(shape), DType::F32);
    let add = |shape: &[usize]| body(shape, 2, 0, &[(ADD, &[0, 1])]);
    let relu = body(&rows, 2, 1, &[(ADD, &[0, 1]), (MAX, &[3, 2])]);
    let nchw = [32, 64, 3136];
    let mut cases = vec![
        Case::map("copy 32M", copy(&[n]), vec![dense(&[n])]),
        Case::map("add 32M", add(&[n]), vec![dense(&[n]); 2]),
        Case::map("gelu-tanh chain 32M", gelu(n), vec![dense(&[n])]),
        Case::map("gelu-tanh chain 64K", gelu(1 << 16), vec![dense(&[1 << 16])]),
        adam(1 << 23),
        Case::map("transpose 4096^2", copy(&square), vec![operand(&square, &[1, 4096])]),
        Case::map(
            "x + x.T 4096^2",
            add(&square),
            vec![dense(&square), operand(&square, &[1, 4096])],
        ),
        Case::map("nhwc to nchw 32x56x56x64", copy(&nchw), vec![operand(&nchw, &[200_704, 1, 64])]),
        Case::map("bias + relu [1M, 20]", relu, vec![dense(&rows), operand(&rows, &[0, 1])]),
        Case::map(
            "minus a column [1M, 20]",
            body(&rows, 2, 0, &[(SUB, &[0, 1])]),
            vec![dense(&rows), operand(&rows, &[1, 0])],
        ),
        Case::map("tiny add 64", add(&[64]), vec![dense(&[64]); 2]),
        Case::reduce("sum 32M", ReduceKind::Sum, &[n], &[0]),
        Case::reduce("max 32M", ReduceKind::Max, &[n], &[0]),
        Case::reduce("sum of rows 4096^2", ReduceKind::Sum, &square, &[1]),
        Case::reduce("sum of columns 4096^2", ReduceKind::Sum, &square, &[0]),
        Case::reduce("bias gradient [401408, 20]", ReduceKind::Sum, &[401_408, 20], &[0]),
        Case::reduce("max of rows [1M, 10]", ReduceKind::Max, &[1 << 20, 10], &[1]),
        Case::reduce(
            "sum of axes 0, 2 [128, 64, 3136]",
            ReduceKind::Sum,
            &[128, 64, 3136],
            &[0, 2],
        ),
    ];
    for op in [Unary::Exp, Unary::Log, Unary::Tanh, Unary::Sigmoid, Unary::Erf, Unary::Sin] {
        let code: [(Elementwise, &[u16]); 1] = [(Elementwise::Unary(op), &[0])];
        let name = format!("{} 4K", op.name());
        cases.push(Case::map(&name, body(&[4096], 1, 0, &code), vec![dense(&[4096])]));
    }
    cases.extend(activations(4096));
    cases
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    for case in cases().iter().filter(|c| c.name.contains(&filter)) {
        for threads in [1, num_threads()] {
            let seconds = with_threads(threads, || case.time());
            println!(
                "{:34} {threads} threads {:12.2} us {:8.2} GB/s",
                case.name,
                seconds * 1e6,
                case.bytes as f64 / seconds / 1e9
            );
        }
    }
}
