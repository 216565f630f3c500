//! What the backend promises of any segment: outputs in the place of inputs, operands that do not fit,
//! indices outside of their axes, users' kernels.

use std::sync::Arc;

use cupola_core::backend::{Args, Backend, Kernel, Operand, Region, Segment};
use cupola_core::backend::{Body, Instr};
use cupola_core::prim::call::HostInput;
use cupola_core::prim::{
    Binary, Custom, CustomOp, Elementwise, Gather, GatherAxis, Op, Scatter, ScatterAxis,
    ScatterMode,
};
use cupola_core::{Array, Aval, DType, Device, Dims, Error, Result, Scalar, ops};
use cupola_cpu::Cpu;
use smallvec::smallvec;

/// x · scalar + y
fn scale_and_add(shape: [usize; 2]) -> Body {
    let dtype = DType::F32;
    let instr = |op, args: [u16; 2]| Instr {
        op: Elementwise::Binary(op),
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

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

fn segment(kernel: Kernel, inputs: Vec<Operand>, output: Aval) -> Segment {
    Segment {
        kernel,
        inputs,
        outputs: vec![Operand::contiguous(&output)],
        scalars: vec![DType::F32],
        epilogue: None,
    }
}

#[test]
fn a_program_may_write_over_its_input() {
    let (x, y): (Vec<f32>, Vec<f32>) = (0..210).map(|i| ((i % 9) as f32, (i % 7) as f32)).unzip();
    let aval = Aval::new([30, 7], DType::F32);
    let operand = Operand::contiguous(&aval);
    let map = Kernel::Map(scale_and_add([30, 7]));
    let map = segment(map, vec![operand.clone(), operand], aval);
    assert!(map.may_alias(0, 0));
    let cpu = Cpu::new();
    let (a, b) = (cpu.upload(&bytes(&x)).unwrap(), cpu.upload(&bytes(&y)).unwrap());
    let regions = [Region { buffer: &a, offset: 0 }, Region { buffer: &b, offset: 0 }];
    let scalars = [Scalar::Float(2.0).to_element(DType::F32)];
    let args = Args { inputs: &regions, outputs: &regions[..1], scalars: &scalars, scratch: None };
    cpu.prepare(&map).unwrap().run(&args).unwrap();
    let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x * 2.0 + y).collect();
    assert_eq!(a.host().unwrap(), bytes(&want));
}

#[test]
fn operands_that_leave_their_buffers_are_errors() {
    let map = Kernel::Map(Body::copy([4, 3].into(), DType::F32));
    let aval = Aval::new([4, 3], DType::F32);
    let x = Operand::contiguous(&aval);
    let cpu = Cpu::new();
    let (from, to) = (cpu.upload(&[0; 48]).unwrap(), cpu.alloc(aval.bytes()).unwrap());
    let run = |strides: [isize; 2], offset: isize, out: isize| {
        let mut segment = segment(map.clone(), vec![x.clone()], aval.clone());
        segment.scalars.clear();
        segment.inputs[0].strides = strides.as_slice().into();
        let args = Args {
            inputs: &[Region { buffer: &from, offset }],
            outputs: &[Region { buffer: &to, offset: out }],
            scalars: &[],
            scratch: None,
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
    let segment = segment(map.clone(), vec![x.clone()], aval.clone());
    let error = cpu.prepare(&segment).unwrap().run(&Args {
        inputs: &[],
        outputs: &[],
        scalars: &[],
        scratch: None,
    });
    assert!(error.is_err());
}

#[test]
fn the_cpu_is_registered_and_describes_itself() {
    let cpu = cupola_core::backend::backend(Device::CPU).unwrap();
    assert!(cpu.description().contains("threads"), "{}", cpu.description());
    assert!(cpu.limits().body_operands >= 16 && cpu.limits().body_instructions >= 64);
    cpu.synchronize().unwrap();
}

/// What an op on these arrays gives.
fn bytes_of(op: impl Into<Op>, inputs: &[&Array]) -> Result<Vec<Vec<u8>>> {
    Array::apply_multi(op, inputs)?.iter().map(Array::to_bytes).collect()
}

#[test]
fn an_index_outside_its_axis_is_an_error() -> Result<()> {
    let axis = |axis: usize| Dims::from_slice(&[axis]);
    let gather = |size| Gather { axes: axis(0), sizes: Dims::from_slice(&[size, 5]) };
    let at = |dtype: DType, bad: f64| -> Result<Array> {
        Array::from_slice(&[0.0, 1.0, 2.0, 3.0, bad, 9.0], [2, 3])?.astype(dtype)
    };
    let text = |op: Op, inputs: &[&Array]| bytes_of(op, inputs).unwrap_err().to_string();
    let zeros = |shape: &[usize]| -> Result<Array> {
        let zeros = ops::zeros(shape, DType::F32)?;
        zeros.eval()?;
        Ok(zeros)
    };
    let x = zeros(&[4, 5])?;
    assert_eq!(
        text(gather(1).into(), &[&x, &at(DType::I32, 4.0)?]),
        "gather: index 4 at position [1, 1] is outside axis 0 of size 4"
    );
    assert_eq!(
        text(gather(2).into(), &[&x, &at(DType::I8, -1.0)?]),
        "gather: index 3 at position [1, 0] is outside axis 0 of size 4, in slices of 2"
    );
    let huge = Array::from_slice(&[0u64, 1, 2, 3, 1 << 63, 9], [2, 3])?;
    assert_eq!(
        text(gather(1).into(), &[&x, &huge]),
        "gather: index 9223372036854775808 at position [1, 1] is outside axis 0 of size 4"
    );
    let updates = zeros(&[2, 3, 1, 5])?;
    let scatter = Scatter { mode: ScatterMode::Add, axes: axis(0) };
    assert_eq!(
        text(scatter.into(), &[&x, &updates, &at(DType::I64, -7.0)?]),
        "scatter: index -7 at position [1, 1] is outside axis 0 of size 4"
    );
    let x = zeros(&[2, 5])?;
    assert_eq!(
        text(GatherAxis { axis: 1 }.into(), &[&x, &at(DType::I16, 5.0)?]),
        "take_along_axis: index 5 at position [1, 1] is outside axis 1 of size 5"
    );
    let updates = zeros(&[2, 3])?;
    let put = ScatterAxis { mode: ScatterMode::Set, axis: 1 };
    assert_eq!(
        text(put.into(), &[&x, &updates, &at(DType::I16, -1.0)?]),
        "put_along_axis: index -1 at position [1, 1] is outside axis 1 of size 5"
    );
    Ok(())
}

/// The bytes of an array backwards and the sizes of two, or an error.
struct Report {
    fails: bool,
}

impl CustomOp for Report {
    fn name(&self) -> &'static str {
        "report"
    }

    fn key(&self) -> Vec<u8> {
        vec![u8::from(self.fails)]
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Vec<Aval>> {
        Ok(vec![inputs[0].clone(), Aval::new([2], DType::U8), Aval::new([0], DType::F32)])
    }

    fn run_host(&self, inputs: &[HostInput<'_>], outputs: &mut [&mut [u8]]) -> Result<()> {
        if self.fails {
            return Err(Error::User("as asked".into()));
        }
        outputs[0].copy_from_slice(inputs[0].bytes);
        outputs[0].reverse();
        outputs[1].copy_from_slice(&[inputs[0].bytes.len() as u8, inputs[1].bytes.len() as u8]);
        assert!(outputs[2].is_empty());
        Ok(())
    }
}

#[test]
fn users_operators_see_contiguous_bytes() -> Result<()> {
    let dense = Array::from_slice(&[1i16, 2, 3, 4, 5, 6], [2, 3])?;
    let turned = ops::transpose(&Array::from_slice(&[1i16, 4, 2, 5, 3, 6], [3, 2])?, ())?;
    let back = ops::flip(&Array::from_slice(&[6i16, 5, 4, 3, 2, 1], [2, 3])?, ())?;
    let nothing = ops::zeros([0], DType::F64)?;
    let mut reversed = dense.to_bytes()?;
    reversed.reverse();
    for x in [&dense, &turned, &back] {
        let got = bytes_of(Custom(Arc::new(Report { fails: false })), &[x, &nothing])?;
        assert_eq!(got, [reversed.clone(), vec![12, 0], vec![]]);
    }
    let failed = bytes_of(Custom(Arc::new(Report { fails: true })), &[&dense, &nothing]);
    assert_eq!(failed.unwrap_err().to_string(), "as asked");
    Ok(())
}

/// Packed weights go when their memory is written: what they were made of is not there any more.
#[test]
fn weights_that_change_in_place_are_packed_anew() -> cupola_core::Result<()> {
    use cupola_core::{Array, ops};
    let images = |v: f32| Array::from_vec(vec![v; 2 * 6 * 6 * 3], [2, 6, 6, 3]);
    let (x, mut w) = (images(1.0)?, ops::full([4, 3, 3, 3], 1.0, DType::F32)?);
    let options = ops::ConvOptions::default();
    for step in 1..12 {
        // Several times the same, then updated: nobody else holds the weights.
        for _ in 0..step % 4 + 1 {
            let y = ops::conv_general(&x, &w, &options)?;
            assert_eq!(y.to_vec::<f32>()?, vec![27.0 * step as f32; y.size()], "step {step}");
        }
        let next = ops::add(&w, 1.0)?;
        drop(w);
        next.eval()?;
        w = next;
    }
    Ok(())
}
