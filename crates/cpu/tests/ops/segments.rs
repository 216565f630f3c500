//! Elementwise programs and reductions through the backend, and operands that do not fit.

use cupola_core::backend::{Args, Backend, Kernel, Operand, Region, Segment, Support};
use cupola_core::plan::body::{Body, BodyOp, Instr};
use cupola_core::prim::{Binary, Op, ReduceKind, Unary};
use cupola_core::{Aval, DType, Device, Scalar};
use cupola_cpu::Cpu;
use smallvec::smallvec;

use crate::common::{LAYOUTS, Tensor, elements, run_segment, scalar_bytes, whole};

/// x · scalar + y
fn scale_and_add(shape: [usize; 2]) -> Body {
    let dtype = DType::F32;
    let instr = |op, args: [u16; 2]| Instr {
        op: BodyOp::Binary(op),
        args: smallvec![args[0], args[1]],
        dtype,
    };
    Body {
        shape: shape.into(),
        inputs: vec![dtype; 2],
        scalars: vec![dtype],
        code: vec![instr(Binary::Mul, [0, 2]), instr(Binary::Add, [3, 1])],
        outputs: vec![4],
    }
}

fn segment(kernel: Kernel, inputs: &[&Tensor], output: Aval) -> Segment {
    Segment {
        kernel,
        inputs: inputs.iter().map(|t| t.operand.clone()).collect(),
        outputs: vec![Operand::contiguous(&output)],
        scalars: vec![DType::F32],
        epilogue: None,
    }
}

#[test]
fn programs_and_reductions_run() {
    let shape = [30, 7];
    let (x, y) = (whole(210, 9, 1), whole(210, 9, 2));
    let want: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x * 3.0 + y).collect();
    let sums: Vec<f64> = (0..7).map(|j| want.iter().skip(j).step_by(7).sum()).collect();
    let (x, y) = (Tensor::new(shape, DType::F32, &x), Tensor::new(shape, DType::F32, &y));
    for (a, b) in LAYOUTS.into_iter().zip(LAYOUTS.into_iter().rev()) {
        let (x, y) = (x.laid(a), y.laid(b));
        let scalars = [Scalar::Float(3.0)];
        let map = Kernel::Map(scale_and_add(shape));
        let map = segment(map, &[&x, &y], Aval::new(shape, DType::F32));
        let got = run_segment(&map, &[x.clone(), y.clone()], &scalars).unwrap();
        assert_eq!(got[0], elements(DType::F32, &want));
        let body = scale_and_add(shape);
        let fold = Kernel::Reduce { body, kind: ReduceKind::Sum, axes: smallvec![0] };
        let fold = segment(fold, &[&x, &y], Aval::new([7], DType::F32));
        let got = run_segment(&fold, &[x, y], &scalars).unwrap();
        assert_eq!(got[0], elements(DType::F32, &sums));
    }
}

#[test]
fn a_program_may_write_over_its_input() {
    let x = Tensor::new([30, 7], DType::F32, &whole(210, 9, 1));
    let y = Tensor::new([30, 7], DType::F32, &whole(210, 9, 2));
    let map = Kernel::Map(scale_and_add([30, 7]));
    let map = segment(map, &[&x, &y], Aval::new([30, 7], DType::F32));
    assert!(map.may_alias(0, 0));
    let cpu = Cpu::new();
    let (a, b) = (cpu.upload(&x.bytes).unwrap(), cpu.upload(&y.bytes).unwrap());
    let regions = [Region { buffer: &a, offset: 0 }, Region { buffer: &b, offset: 0 }];
    let scalars = scalar_bytes(&map, &[Scalar::Float(2.0)]);
    let args = Args { inputs: &regions, outputs: &regions[..1], scalars: &scalars };
    cpu.prepare(&map).unwrap().run(&args).unwrap();
    let want = run_segment(&map, &[x, y], &[Scalar::Float(2.0)]).unwrap();
    assert_eq!(a.host().unwrap(), want[0]);
}

#[test]
fn operands_that_leave_their_buffers_are_errors() {
    let x = Tensor::new([4, 3], DType::F32, &whole(12, 9, 1));
    let map = Kernel::Map(Body::copy([4, 3].into(), DType::F32));
    let aval = Aval::new([4, 3], DType::F32);
    let cpu = Cpu::new();
    let (from, to) = (cpu.upload(&x.bytes).unwrap(), cpu.alloc(aval.bytes()).unwrap());
    let run = |strides: [isize; 2], offset: isize, out: isize| {
        let mut segment = segment(map.clone(), &[&x], aval.clone());
        segment.scalars.clear();
        segment.inputs[0].strides = strides.to_vec();
        let args = Args {
            inputs: &[Region { buffer: &from, offset }],
            outputs: &[Region { buffer: &to, offset: out }],
            scalars: &[],
        };
        cpu.prepare(&segment).unwrap().run(&args)
    };
    run([3, 1], 0, 0).unwrap();
    run([-3, -1], 11, 0).unwrap();
    run([0, 0], 11, 0).unwrap();
    for (strides, offset, out) in [
        ([3, 1], 1, 0),
        ([3, 1], -1, 0),
        ([-3, 1], 0, 0),
        ([4, 1], 0, 0),
        ([3, 1], 0, 1),
        ([3, 1], isize::MAX, 0),
        ([isize::MAX, 1], 0, 0),
        ([0, 0], 12, 0),
    ] {
        let error = run(strides, offset, out).unwrap_err().to_string();
        assert!(error.contains("reaches from byte"), "{strides:?} {offset} {out}: {error}");
    }
    let segment = segment(map.clone(), &[&x], aval.clone());
    let error =
        cpu.prepare(&segment).unwrap().run(&Args { inputs: &[], outputs: &[], scalars: &[] });
    assert!(error.is_err());
}

#[test]
fn the_cpu_is_registered_and_describes_itself() {
    let cpu = cupola_core::backend::backend(Device::CPU).unwrap();
    assert!(cpu.description().contains("threads"), "{}", cpu.description());
    assert!(cpu.limits().body_operands >= 16 && cpu.limits().body_instructions >= 64);
    let x = Aval::new([2], DType::F32);
    assert_eq!(cpu.support(&Op::Unary(Unary::Exp), &[x]), Support::Native);
    cpu.synchronize().unwrap();
}
