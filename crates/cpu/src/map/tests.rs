//! What programs promise beyond their values, which the suite checks: where outputs may lie, ranges of
//! epilogues, threads.

use cupola_core::backend::Operand;
use cupola_core::backend::{Body, Instr};
use cupola_core::prim::{Binary, Elementwise, Unary};
use cupola_core::{Aval, DType, Shape};
use cupola_simd::{Isa, Level, with_isa_limit};
use smallvec::SmallVec;

use super::{Avx2, EpilogueKernel, MapKernel, Portable, RawArgs};
use crate::math::{self, Arch};
use crate::threads::with_threads;

/// A source of numbers that repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % n
    }
}

/// An operand with memory of its own.
struct Held {
    operand: Operand,
    memory: Vec<f32>,
    start: usize,
}

impl Held {
    /// Memory of random numbers, and a random layout in it.
    fn new(random: &mut Random, dims: &[usize]) -> Self {
        let rank = dims.len();
        let mut strides = vec![0isize; rank];
        let mut order: Vec<usize> = (0..rank).rev().collect();
        if random.below(2) == 0 {
            (1..rank).for_each(|i| order.swap(i, random.below(i + 1)));
        }
        let gaps = random.below(3) == 0;
        let (mut step, mut low) = (1isize, 0isize);
        for axis in order {
            if random.below(4) == 0 {
                continue;
            }
            strides[axis] = step;
            let reach = dims[axis].max(1) as isize * step;
            if random.below(8) == 0 {
                strides[axis] = -step;
                low += step - reach;
            }
            step = reach + if gaps { random.below(3) as isize } else { 0 };
        }
        let memory = (0..step).map(|_| random.below(40) as f32 - 20.0).collect();
        let operand = Operand { aval: Aval::new(dims, DType::F32), strides: strides.into() };
        Held { operand, memory, start: -low as usize }
    }

    fn pointer(&self) -> *const u8 {
        self.memory.as_ptr().wrapping_add(self.start).cast()
    }

    fn get(&self, index: &[usize]) -> f32 {
        let steps = index.iter().zip(&self.operand.strides);
        let at: isize = steps.map(|(&i, &s)| i as isize * s).sum();
        self.memory[(self.start as isize + at) as usize]
    }
}

/// Every index of a shape, in row-major order.
fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let dims = dims.to_vec();
    (0..dims.iter().product()).map(move |flat: usize| {
        let mut left = flat;
        let mut index = vec![0; dims.len()];
        for axis in (0..dims.len()).rev() {
            index[axis] = left % dims[axis];
            left /= dims[axis];
        }
        index
    })
}

fn simple(shape: &[usize], inputs: usize, code: &[(Elementwise, &[u16])], outputs: &[u16]) -> Body {
    let code = code.iter().map(|(op, args)| Instr {
        op: *op,
        args: SmallVec::from_slice(args),
        dtype: DType::F32,
    });
    Body {
        shape: Shape::from(shape),
        inputs: vec![DType::F32; inputs],
        scalars: vec![DType::F32],
        code: code.collect(),
        outputs: outputs.to_vec(),
    }
}

const ADD: Elementwise = Elementwise::Binary(Binary::Add);
const MUL: Elementwise = Elementwise::Binary(Binary::Mul);
const MAXIMUM: Elementwise = Elementwise::Binary(Binary::Maximum);

#[test]
fn outputs_may_take_the_memory_of_inputs() {
    let n = 5000;
    // Swapped sums: each output needs both inputs.
    let body = simple(&[n], 2, &[(ADD, &[0, 2]), (MUL, &[1, 0]), (ADD, &[3, 4])], &[5, 3]);
    let operand = Operand::contiguous(&Aval::new([n], DType::F32));
    let pair = [operand.clone(), operand];
    let kernel = MapKernel::new(&body, &pair, &pair).unwrap();
    let mut a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let mut b: Vec<f32> = (0..n).map(|i| (i % 7) as f32).collect();
    let (pa, pb) = (a.as_mut_ptr().cast::<u8>(), b.as_mut_ptr().cast::<u8>());
    let mut one = [0; 8];
    one[..4].copy_from_slice(&1f32.to_ne_bytes());
    let args = RawArgs {
        inputs: &[pa.cast_const(), pb.cast_const()],
        outputs: &[pb, pa],
        scalars: &[one],
    };
    // SAFETY: both arrays have `n` elements.
    unsafe { kernel.run(&args) };
    for i in 0..n {
        let (x, y) = (i as f32, (i % 7) as f32);
        assert_eq!((b[i], a[i]), (x + 1.0 + y * x, x + 1.0));
    }
    // Two inputs that change places.
    let body = simple(&[n], 2, &[], &[1, 0]);
    let kernel = MapKernel::new(&body, &pair, &pair).unwrap();
    let (x, y) = (a.clone(), b.clone());
    let args = RawArgs {
        inputs: &[pa.cast_const(), pb.cast_const()],
        outputs: &[pa, pb],
        scalars: &[one],
    };
    // SAFETY: both arrays have `n` elements.
    unsafe { kernel.run(&args) };
    assert_eq!((a, b), (y, x));
}

#[test]
fn epilogues_run_on_any_range() {
    for (seed, dims) in [
        vec![500, 10],
        vec![7, 5000],
        vec![33, 3, 64],
        vec![4096],
        vec![],
        vec![5, 1, 20],
        vec![3, 2, 2, 2, 7],
        vec![2, 40, 50],
    ]
    .into_iter()
    .enumerate()
    {
        for round in 0..20 {
            let run = 1 + seed as u64 * 100 + round;
            let random = &mut Random(run);
            let body =
                simple(&dims, 3, &[(ADD, &[0, 1]), (ADD, &[4, 2]), (MAXIMUM, &[5, 3])], &[6]);
            let body =
                if round % 3 == 0 { simple(&dims, 3, &[(ADD, &[0, 1])], &[4]) } else { body };
            let mut extra: Vec<Held> = (0..2).map(|_| Held::new(random, &dims)).collect();
            if round % 2 == 0 && !dims.is_empty() {
                // The usual bias: along the last axis only.
                let last = dims.len() - 1;
                extra[0].operand.strides.iter_mut().for_each(|s| *s = 0);
                extra[0].operand.strides[last] = 1;
                extra[0].memory = (0..dims[last]).map(|i| i as f32).collect();
                extra[0].start = 0;
            }
            let operands: Vec<Operand> = extra.iter().map(|h| h.operand.clone()).collect();
            let kernel = EpilogueKernel::new(&body, &operands).unwrap();
            let n: usize = dims.iter().product();
            let original: Vec<f32> = (0..n).map(|i| (i % 29) as f32 - 9.0).collect();
            let mut out = original.clone();
            let start = random.below(n + 1);
            let range = start..start + random.below(n + 1 - start);
            let range = if round < 5 { 0..n } else { range };
            let pointers: Vec<*const u8> = extra.iter().map(Held::pointer).collect();
            let args = RawArgs { inputs: &pointers, outputs: &[], scalars: &[[0; 8]] };
            // SAFETY: the operands have the layouts that the kernel was made for.
            unsafe { kernel.run(run, out.as_mut_ptr().cast(), &args, range.clone()) };
            for (flat, index) in indices(&dims).enumerate() {
                let x = original[flat];
                let value = |i: usize| extra[i].get(&index);
                let want = match round % 3 {
                    _ if !range.contains(&flat) => x,
                    0 => x + value(0),
                    _ => (x + value(0) + value(1)).max(0.0),
                };
                assert_eq!(out[flat], want, "{dims:?} {range:?} at {index:?} round {round}");
            }
        }
    }
}

/// What an epilogue is as a function of rows gives the bits of the epilogue, and nothing beside the rows changes.
#[test]
fn epilogues_are_functions_where_they_read_nothing_else() {
    let function = |op| Elementwise::Unary(op);
    let (sigmoid, erf) = (function(Unary::Sigmoid), function(Unary::Erf));
    let minimum = Elementwise::Binary(Binary::Minimum);
    let all: [&[(Elementwise, &[u16])]; 4] = [
        &[(MUL, &[0, 1])],
        &[(sigmoid, &[0]), (MUL, &[0, 2])],
        &[(MUL, &[0, 1]), (ADD, &[2, 1]), (minimum, &[3, 1]), (MAXIMUM, &[4, 1]), (MUL, &[5, 0])],
        &[(MUL, &[0, 1]), (erf, &[2]), (ADD, &[3, 1]), (MUL, &[0, 4]), (MUL, &[5, 1])],
    ];
    let scalars = [{
        let [a, b, c, d] = 0.5f32.to_ne_bytes();
        [a, b, c, d, 0, 0, 0, 0]
    }];
    for level in [Level::Portable, Level::Avx2, Level::Avx512] {
        for (i, code) in all.iter().enumerate() {
            for width in (1..70).chain([130]) {
                with_isa_limit(level, || {
                    let (count, step) = (1 + width % 11, width + width % 5);
                    let body = simple(&[count * step], 1, code, &[1 + code.len() as u16]);
                    let kernel = EpilogueKernel::new(&body, &[]).unwrap();
                    let random = &mut Random((width + 1) as u64);
                    let before: Vec<f32> = (0..count * step)
                        .map(|_| random.below(2000) as f32 / 250.0 - 4.0)
                        .collect();
                    let mut want = before.clone();
                    let args = RawArgs { inputs: &[], outputs: &[], scalars: &scalars };
                    // SAFETY: the kernel was made for so many elements.
                    unsafe { kernel.run(1, want.as_mut_ptr().cast(), &args, 0..want.len()) };
                    let mut got = before.clone();
                    let function = kernel.as_function(&scalars);
                    // One instruction is a loop of its own.
                    assert_eq!(function.is_some(), code.len() > 1, "{code:?}");
                    let Some(function) = function else { return };
                    // SAFETY: the rows are there.
                    unsafe { function.run(got.as_mut_ptr(), step, count, width) };
                    for (at, before) in before.into_iter().enumerate() {
                        let want = if at % step < width { want[at] } else { before };
                        let what = format!("{i} {level:?} {width} at {at}");
                        assert_eq!(got[at].to_bits(), want.to_bits(), "{what}");
                    }
                });
            }
        }
    }
    // What reads an array beside the result is none.
    let body = simple(&[6], 2, &[(MUL, &[0, 2]), (ADD, &[3, 1])], &[4]);
    let other = Operand::contiguous(&Aval::new(&[6][..], DType::F32));
    assert!(EpilogueKernel::new(&body, &[other]).unwrap().as_function(&scalars).is_none());
}

/// Loops that were put together give the bits of one function after the other.
#[test]
fn chains_are_their_functions_one_by_one() {
    for level in [Level::Portable, Level::Avx2, Level::Avx512] {
        with_isa_limit(level, || match Isa::best().level() {
            Level::Portable => chains_are_functions_of::<Portable>(),
            _ => chains_are_functions_of::<Avx2>(),
        });
    }
}

fn chains_are_functions_of<A: Arch>() {
    use Binary::{Add, Div, Maximum, Minimum, Mul, Sub};
    use Unary::{Abs, Erf, Exp, Neg, Sigmoid, Sqrt, Square, Tanh};
    let binary = [Add, Sub, Mul, Div, Maximum, Minimum].map(Elementwise::Binary);
    let unary = [Abs, Erf, Exp, Neg, Sigmoid, Sqrt, Square, Tanh].map(Elementwise::Unary);
    let ops: Vec<Elementwise> = binary.into_iter().chain(unary).collect();
    let apply = |op: usize, a: f32, b: f32| match ops[op] {
        Elementwise::Binary(Add) => a + b,
        Elementwise::Binary(Sub) => a - b,
        Elementwise::Binary(Mul) => a * b,
        Elementwise::Binary(Div) => a / b,
        Elementwise::Binary(Maximum) if a > b || a.is_nan() => a,
        Elementwise::Binary(Minimum) if a < b || a.is_nan() => a,
        Elementwise::Unary(Abs) => a.abs(),
        Elementwise::Unary(Erf) => math::erf::<A>(a),
        Elementwise::Unary(Exp) => math::exp::<A>(a),
        Elementwise::Unary(Neg) => -a,
        Elementwise::Unary(Sigmoid) => math::sigmoid::<A>(a),
        Elementwise::Unary(Sqrt) => a.sqrt(),
        Elementwise::Unary(Square) => a * a,
        Elementwise::Unary(Tanh) => math::tanh::<A>(a),
        _ => b,
    };
    // Where functions change what they do, too.
    let special = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        -0.0,
        0.0,
        1e-40,
        f32::MAX,
        -87.4,
        -95.0,
        -103.9,
        88.8,
        9.02,
        -9.03,
        0.927_734_4,
        -0.93,
        4.1,
        -11.0,
    ];
    for round in 0..400 {
        let random = &mut Random(round);
        let dims: Vec<usize> = [vec![300], vec![7, 33], vec![3, 2, 150], vec![], vec![1, 5]]
            [round as usize % 5]
            .clone();
        let inputs: Vec<Held> = (0..3)
            .map(|_| {
                let mut held = Held::new(random, &dims);
                for x in &mut held.memory {
                    if random.below(6) == 0 {
                        *x = special[random.below(special.len())];
                    }
                }
                held
            })
            .collect();
        // Registers: three inputs, a scalar, and what is computed; mostly from what was just computed.
        let mut steps: Vec<(usize, [u16; 2])> = (0..1 + random.below(7))
            .map(|i| {
                let last = 3 + i;
                let mut any = || random.below(last + 1) as u16;
                let (one, other) = (any(), any());
                let args = match random.below(4) {
                    0 => [one, other],
                    1 => [one, last as u16],
                    _ => [last as u16, other],
                };
                (random.below(ops.len()), args)
            })
            .collect();
        // What often comes together: the product with a sigmoid, with what a number times another plus a third is
        // between two, or with a function of it plus a number.
        let at = |op: Elementwise| ops.iter().position(|&o| o == op).unwrap();
        let (mul, add) = (at(Elementwise::Binary(Mul)), at(Elementwise::Binary(Add)));
        let bounds = [Maximum, Minimum].map(|op| at(Elementwise::Binary(op)));
        let x = [0, 3 + steps.len() as u16][random.below(2)];
        let mut then = |op, args: [u16; 2]| {
            steps.push((op, args));
            3 + steps.len() as u16
        };
        match random.below(4) {
            0 => {
                let gate = then(at(Elementwise::Unary(Sigmoid)), [x, x]);
                then(mul, [[x, gate], [gate, x]][random.below(2)]);
            }
            1 => {
                let gate = then(mul, [x, 3]);
                let gate = then(add, [[gate, 3], [3, gate]][random.below(2)]);
                let gate = then(bounds[random.below(2)], [gate, 3]);
                let gate = then(bounds[random.below(2)], [gate, 3]);
                then(mul, [gate, x]);
            }
            2 => {
                let function = [Tanh, Erf][random.below(2)];
                let gate = then(mul, [x, 3]);
                let gate = then(at(Elementwise::Unary(function)), [gate, gate]);
                let gate = then(add, [gate, 3]);
                let gate = then(mul, [gate, x]);
                then(mul, [gate, 3]);
            }
            _ => {}
        }
        let code: Vec<(Elementwise, &[u16])> = steps
            .iter()
            .map(|(op, args)| match ops[*op] {
                op @ Elementwise::Unary(_) => (op, &args[1..]),
                op => (op, &args[..]),
            })
            .collect();
        let last = (3 + steps.len()) as u16;
        let mut outputs = vec![last];
        if random.below(3) == 0 {
            outputs.push(4 + random.below(steps.len()) as u16);
        }
        let body = simple(&dims, 3, &code, &outputs);
        let to = Operand::contiguous(&Aval::new(&dims[..], DType::F32));
        let operands: Vec<Operand> = inputs.iter().map(|h| h.operand.clone()).collect();
        let kernel = MapKernel::new(&body, &operands, &vec![to; outputs.len()]).unwrap();
        let n: usize = dims.iter().product();
        let mut results = vec![vec![0f32; n]; outputs.len()];
        let pointers: Vec<*const u8> = inputs.iter().map(Held::pointer).collect();
        let places: Vec<*mut u8> = results.iter_mut().map(|r| r.as_mut_ptr().cast()).collect();
        let mut scalar = [0; 8];
        let number = [0.5, 0.0, -0.0, f32::NAN, 3.0][random.below(5)];
        scalar[..4].copy_from_slice(&number.to_ne_bytes());
        let args = RawArgs { inputs: &pointers, outputs: &places, scalars: &[scalar] };
        // SAFETY: the operands have the layouts that the kernel was made for.
        unsafe { kernel.run(&args) };
        for (flat, index) in indices(&dims).enumerate() {
            let mut registers: Vec<f32> = inputs.iter().map(|h| h.get(&index)).collect();
            registers.push(number);
            for (op, [a, b]) in &steps {
                let a = if matches!(ops[*op], Elementwise::Unary(_)) { b } else { a };
                let value = apply(*op, registers[usize::from(*a)], registers[usize::from(*b)]);
                registers.push(value);
            }
            for (result, &output) in results.iter().zip(&outputs) {
                let (got, want) = (result[flat], registers[usize::from(output)]);
                let is_same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                assert!(is_same, "round {round} {steps:?} at {index:?}: {got} for {want}");
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_place_or_threads() {
    let n = 300_001;
    let exp = Elementwise::Unary(Unary::Exp);
    let sin = Elementwise::Unary(Unary::Sin);
    let body = simple(&[n], 1, &[(exp, &[0]), (sin, &[2]), (MUL, &[2, 3])], &[4]);
    let operand = Operand::contiguous(&Aval::new([n], DType::F32));
    let operand = std::slice::from_ref(&operand);
    let kernel = MapKernel::new(&body, operand, operand).unwrap();
    let x: Vec<f32> = (0..n).map(|i| (i % 1013) as f32 / 40.0 - 5.0).collect();
    let run = || {
        let mut out = vec![0f32; n];
        let args = RawArgs {
            inputs: &[x.as_ptr().cast()],
            outputs: &[out.as_mut_ptr().cast()],
            scalars: &[[0; 8]],
        };
        // SAFETY: both arrays have `n` elements.
        unsafe { kernel.run(&args) };
        out.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
    };
    let (one, two) = (with_threads(1, run), with_threads(2, run));
    assert_eq!(one, two);
    assert!((0..n).all(|i| one[i] == one[i % 1013]));
}

#[test]
fn what_a_dtype_does_not_take_is_an_error() {
    let body = Body {
        shape: Shape::from([2]),
        inputs: vec![DType::I32],
        scalars: vec![],
        code: vec![Instr {
            op: Elementwise::Unary(Unary::Exp),
            args: SmallVec::from_slice(&[0]),
            dtype: DType::I32,
        }],
        outputs: vec![1],
    };
    let operand = Operand::contiguous(&Aval::new([2], DType::I32));
    assert!(
        MapKernel::new(&body, std::slice::from_ref(&operand), std::slice::from_ref(&operand))
            .is_err()
    );
}
