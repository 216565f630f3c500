//! Random bodies over random layouts against the reference of one element at a time.

use cupola_core::backend::Operand;
use cupola_core::plan::body::{Body, BodyOp, Instr};
use cupola_core::prim::{Binary, Cast, Compare, Select, Unary};
use cupola_core::{Aval, DType, Shape};
use smallvec::SmallVec;

use super::naive::{Number, bytes, element, indices, offset, parse, read};
use super::{EpilogueKernel, MapKernel, RawArgs};
use crate::threads::with_threads;

/// A source of numbers that repeats.
pub(crate) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % n
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn shape(&mut self, most: usize) -> Vec<usize> {
        let mut dims = vec![];
        for _ in 0..self.below(6) {
            let d = self.pick(&[1, 1, 2, 3, 4, 5, 8, 10, 17, 33, 64, 70, 200, 1000, 5000]);
            if dims.iter().product::<usize>() * d <= most {
                dims.push(d);
            }
        }
        if self.below(40) == 0 {
            dims.push(0);
        }
        dims
    }
}

/// An operand with memory of its own.
pub(crate) struct Held {
    pub operand: Operand,
    memory: Vec<u64>,
    start: usize,
}

impl Held {
    /// Memory of random numbers, and a random layout in it.
    pub fn new(
        random: &mut Random,
        dims: &[usize],
        dtype: DType,
        repeats: bool,
        number: &mut dyn FnMut(&mut Random) -> Number,
    ) -> Self {
        let rank = dims.len();
        let mut strides = vec![0isize; rank];
        let mut order: Vec<usize> = (0..rank).rev().collect();
        if random.below(2) == 0 {
            (1..rank).for_each(|i| order.swap(i, random.below(i + 1)));
        }
        let gaps = random.below(3) == 0;
        let (mut step, mut low) = (1isize, 0isize);
        for axis in order {
            if repeats && random.below(4) == 0 {
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
        let size = dtype.size();
        let mut memory = vec![0u64; (step as usize * size).div_ceil(8) + 1];
        let raw: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
        for i in 0..step as usize {
            let value = bytes(number(random), dtype);
            raw[i * size..][..size].copy_from_slice(&value[..size]);
        }
        let operand = Operand { aval: Aval::new(dims, dtype), strides };
        Held { operand, memory, start: -low as usize * size }
    }

    pub fn pointer(&mut self) -> *mut u8 {
        let raw: &mut [u8] = bytemuck::cast_slice_mut(&mut self.memory);
        raw[self.start..].as_mut_ptr()
    }

    pub fn get(&self, index: &[usize]) -> Number {
        let raw: &[u8] = bytemuck::cast_slice(&self.memory);
        let dtype = self.operand.aval.dtype;
        let at = self.start as isize + offset(&self.operand, index) * dtype.size() as isize;
        // SAFETY: the layout was made for this memory, and the index is within its shape.
        unsafe { read(raw.as_ptr().offset(at), dtype) }
    }
}

/// A number that is exact in every dtype that has it.
pub(crate) fn small(random: &mut Random) -> Number {
    Number::Int(random.below(40) as i128 - 20)
}

pub(crate) fn number(random: &mut Random, dtype: DType) -> Number {
    let v = small(random);
    match dtype {
        DType::C64 => Number::Complex(v.float() as f32, random.below(9) as f32),
        DType::Bool => Number::Int(i128::from(random.below(2) == 0)),
        d if d.is_float() => match random.below(30) {
            0 => Number::Float(f64::NAN),
            1 => Number::Float(f64::INFINITY),
            _ => Number::Float(v.float() / 8.0),
        },
        _ => v,
    }
}

/// A random program of exact operations.
pub(crate) fn body(random: &mut Random, dims: &[usize], outputs: usize) -> Body {
    let palette = [random.pick(&DType::ALL), random.pick(&DType::ALL), DType::F32];
    let count = random.below(4);
    let mut body = Body {
        shape: Shape::from(dims),
        inputs: (0..count).map(|_| random.pick(&palette)).collect(),
        scalars: (0..1 + random.below(2)).map(|_| random.pick(&palette)).collect(),
        code: vec![],
        outputs: vec![],
    };
    for _ in 0..random.below(14) {
        let registers = body.registers() as u16;
        let a = random.below(registers.into()) as u16;
        let d = body.dtype_of(a);
        let same: Vec<u16> = (0..registers).filter(|&r| body.dtype_of(r) == d).collect();
        let b = random.pick(&same);
        let bools: Vec<u16> = (0..registers).filter(|&r| body.dtype_of(r) == DType::Bool).collect();
        let (op, args, dtype): (BodyOp, Vec<u16>, DType) = match random.below(5) {
            0 => {
                let op = random.pick(&[
                    Unary::Neg,
                    Unary::Abs,
                    Unary::Sign,
                    Unary::Square,
                    Unary::Not,
                    Unary::Conj,
                    Unary::Real,
                    Unary::Invert,
                    Unary::Floor,
                ]);
                if !op.takes(d) || op == Unary::Abs && d == DType::C64 {
                    continue;
                }
                (BodyOp::Unary(op), vec![a], op.result(d))
            }
            1 | 2 => {
                let op = random.pick(&[
                    Binary::Add,
                    Binary::Sub,
                    Binary::Mul,
                    Binary::Maximum,
                    Binary::Minimum,
                    Binary::BitAnd,
                    Binary::BitXor,
                    Binary::FloorDivide,
                    Binary::ShiftRight,
                ]);
                if !op.takes(d) || d == DType::C64 && op == Binary::Mul {
                    continue;
                }
                (BodyOp::Binary(op), vec![a, b], d)
            }
            3 => {
                let op = random.pick(Compare::ALL);
                if !op.takes(d) {
                    continue;
                }
                (BodyOp::Compare(op), vec![a, b], DType::Bool)
            }
            _ if !bools.is_empty() && random.below(2) == 0 => {
                (BodyOp::Select(Select), vec![random.pick(&bools), a, b], d)
            }
            _ => {
                let to = random.pick(&palette);
                (BodyOp::Cast(Cast { to }), vec![a], to)
            }
        };
        body.code.push(Instr { op, args: SmallVec::from_vec(args), dtype });
    }
    body.outputs = (0..outputs).map(|_| random.below(body.registers()) as u16).collect();
    body
}

pub(crate) fn same(a: Number, b: Number) -> bool {
    let number = |a: f32, b: f32| a == b || a.is_nan() && b.is_nan();
    match (a, b) {
        (Number::Float(a), Number::Float(b)) => a == b || a.is_nan() && b.is_nan(),
        (Number::Complex(a, b), Number::Complex(c, d)) => number(a, c) && number(b, d),
        _ => a == b,
    }
}

#[test]
fn random_bodies_over_random_layouts() {
    for seed in 0..3000 {
        let random = &mut Random(seed);
        let dims = random.shape(if seed % 10 == 0 { 40_000 } else { 3_000 });
        let outputs = 1 + random.below(3);
        let body = body(random, &dims, outputs);
        let mut inputs: Vec<Held> = body
            .inputs
            .iter()
            .map(|&d| Held::new(random, &dims, d, true, &mut |r| number(r, d)))
            .collect();
        let scalars: Vec<[u8; 8]> =
            body.scalars.iter().map(|&d| bytes(number(random, d), d)).collect();
        let mut outputs: Vec<Held> = body
            .outputs
            .iter()
            .map(|&r| {
                let zero = &mut |_: &mut Random| Number::Int(0);
                Held::new(random, &dims, body.dtype_of(r), false, zero)
            })
            .collect();
        let operands: Vec<Operand> = inputs.iter().map(|h| h.operand.clone()).collect();
        let targets: Vec<Operand> = outputs.iter().map(|h| h.operand.clone()).collect();
        let kernel = MapKernel::new(&body, &operands, &targets).unwrap();
        let pointers: Vec<*const u8> =
            inputs.iter_mut().map(|h| h.pointer().cast_const()).collect();
        let to: Vec<*mut u8> = outputs.iter_mut().map(Held::pointer).collect();
        let args = RawArgs { inputs: &pointers, outputs: &to, scalars: &scalars };
        // SAFETY: the operands have the layouts that the kernel was made for.
        unsafe { kernel.run(&args) };
        for index in indices(&dims) {
            // SAFETY: as above.
            let registers = unsafe { element(&body, &operands, &args, &index) };
            for (held, &r) in outputs.iter().zip(&body.outputs) {
                let dtype = body.dtype_of(r);
                let want = parse(bytes(registers[usize::from(r)], dtype), dtype);
                let got = held.get(&index);
                assert!(same(got, want), "seed {seed} at {index:?}: {got:?} {want:?}\n{body:?}");
            }
        }
    }
}

fn simple(shape: &[usize], inputs: usize, code: &[(BodyOp, &[u16])], outputs: &[u16]) -> Body {
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

const ADD: BodyOp = BodyOp::Binary(Binary::Add);
const MUL: BodyOp = BodyOp::Binary(Binary::Mul);
const MAXIMUM: BodyOp = BodyOp::Binary(Binary::Maximum);

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
            let random = &mut Random(seed as u64 * 100 + round);
            let body =
                simple(&dims, 3, &[(ADD, &[0, 1]), (ADD, &[4, 2]), (MAXIMUM, &[5, 3])], &[6]);
            let body =
                if round % 3 == 0 { simple(&dims, 3, &[(ADD, &[0, 1])], &[4]) } else { body };
            let mut extra: Vec<Held> = (0..2)
                .map(|_| {
                    Held::new(random, &dims, DType::F32, true, &mut |r| {
                        Number::Float(small(r).float())
                    })
                })
                .collect();
            if round % 2 == 0 && !dims.is_empty() {
                // The usual bias: along the last axis only.
                let last = dims.len() - 1;
                extra[0].operand.strides.iter_mut().for_each(|s| *s = 0);
                extra[0].operand.strides[last] = 1;
                extra[0].memory = (0..dims[last]).map(|i| (i as f32).to_bits().into()).collect();
                let packed: Vec<u32> = (0..dims[last]).map(|i| (i as f32).to_bits()).collect();
                let raw: &mut [u32] = bytemuck::cast_slice_mut(&mut extra[0].memory);
                raw[..packed.len()].copy_from_slice(&packed);
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
            let pointers: Vec<*const u8> =
                extra.iter_mut().map(|h| h.pointer().cast_const()).collect();
            let args = RawArgs { inputs: &pointers, outputs: &[], scalars: &[[0; 8]] };
            // SAFETY: the operands have the layouts that the kernel was made for.
            unsafe { kernel.run(out.as_mut_ptr().cast(), &args, range.clone()) };
            for (flat, index) in indices(&dims).enumerate() {
                let x = original[flat];
                let value = |i: usize| extra[i].get(&index).float() as f32;
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

#[test]
fn results_do_not_depend_on_place_or_threads() {
    let n = 300_001;
    let exp = BodyOp::Unary(Unary::Exp);
    let sin = BodyOp::Unary(Unary::Sin);
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
