//! Running one op on the CPU backend, on operands laid out in every way.

use cupola_core::backend::{Args, Backend, Buffer, Kernel, Operand, Region, Segment};
use cupola_core::prim::Op;
use cupola_core::{Aval, DType, Result, Scalar, Shape};
use cupola_cpu::Cpu;

/// An operand and where its elements are.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub operand: Operand,
    pub bytes: Vec<u8>,
    pub offset: isize,
}

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    Contiguous,
    /// The last axis is outermost in memory.
    Transposed,
    /// Every axis runs backwards, with gaps, from an offset.
    Reversed,
}

pub const LAYOUTS: [Layout; 3] = [Layout::Contiguous, Layout::Transposed, Layout::Reversed];

impl Tensor {
    /// Row-major values, as elements of `dtype`.
    pub fn new(shape: impl Into<Shape>, dtype: DType, values: &[f64]) -> Tensor {
        let elements: Vec<_> = values.iter().map(|&v| Scalar::Float(v).to_element(dtype)).collect();
        Tensor::of(shape, dtype, &elements)
    }

    /// Row-major elements.
    pub fn of(shape: impl Into<Shape>, dtype: DType, elements: &[[u8; 8]]) -> Tensor {
        let aval = Aval::new(shape, dtype);
        assert_eq!(aval.shape.size(), elements.len());
        let bytes = elements.iter().flat_map(|e| e[..dtype.size()].to_vec()).collect();
        Tensor { operand: Operand::contiguous(&aval), bytes, offset: 0 }
    }

    /// The same elements in another layout.
    pub fn laid(&self, layout: Layout) -> Tensor {
        let (aval, rank) = (&self.operand.aval, self.operand.aval.shape.rank());
        let shape = &aval.shape;
        let mut strides = vec![0isize; rank];
        let mut step = 1isize;
        let mut offset = 0isize;
        match layout {
            Layout::Contiguous => return self.clone(),
            Layout::Transposed => {
                for (stride, &size) in strides.iter_mut().zip(shape.iter()) {
                    *stride = step;
                    step *= size as isize;
                }
            }
            Layout::Reversed => {
                step = 2;
                for (stride, &size) in strides.iter_mut().zip(shape.iter()).rev() {
                    *stride = -step;
                    offset += step * (size as isize - 1).max(0);
                    step *= size as isize + 1;
                }
                offset += 3;
            }
        }
        let width = aval.dtype.size();
        let mut bytes = vec![0xa5; (step as usize + offset as usize + 1) * width];
        for (i, index) in indices(shape).into_iter().enumerate() {
            let at: isize = index.iter().zip(&strides).map(|(&i, &s)| i as isize * s).sum();
            let at = (at + offset) as usize * width;
            bytes[at..at + width].copy_from_slice(&self.bytes[i * width..(i + 1) * width]);
        }
        Tensor { operand: Operand { aval: aval.clone(), strides }, bytes, offset }
    }
}

/// Every index of `shape`, in row-major order.
pub fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let size = shape.iter().product();
    (0..size)
        .map(|mut at| {
            let mut index = vec![0; shape.len()];
            for (i, &n) in index.iter_mut().zip(shape).rev() {
                *i = at % n;
                at /= n;
            }
            index
        })
        .collect()
}

/// The row-major position of an index.
pub fn position(shape: &[usize], index: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (&i, &n)| at * n + i)
}

/// Runs an op; gives the bytes of its outputs.
pub fn run(op: impl Into<Op>, inputs: &[Tensor]) -> Result<Vec<Vec<u8>>> {
    let op = op.into();
    let avals: Vec<&Aval> = inputs.iter().map(|t| &t.operand.aval).collect();
    let outputs: Vec<Operand> = op.infer(&avals)?.iter().map(Operand::contiguous).collect();
    let segment = Segment {
        kernel: Kernel::Op(op),
        inputs: inputs.iter().map(|t| t.operand.clone()).collect(),
        outputs,
        scalars: Vec::new(),
        epilogue: None,
    };
    run_segment(&segment, inputs, &[])
}

/// The values of a segment's scalars as the bytes of their elements.
pub fn scalar_bytes(segment: &Segment, values: &[Scalar]) -> Vec<[u8; 8]> {
    segment.scalars.iter().zip(values).map(|(d, v)| v.to_element(*d)).collect()
}

/// Runs a segment; gives the bytes of its outputs, which start at an offset in their buffers.
pub fn run_segment(
    segment: &Segment,
    inputs: &[Tensor],
    scalars: &[Scalar],
) -> Result<Vec<Vec<u8>>> {
    const LEAD: usize = 5;
    let cpu = Cpu::new();
    let executable = cpu.prepare(segment)?;
    let buffers: Vec<Buffer> =
        inputs.iter().map(|t| cpu.upload(&t.bytes)).collect::<Result<_>>()?;
    let spaces: Vec<Buffer> = (segment.outputs.iter())
        .map(|o| cpu.upload(&vec![0x5a; o.aval.bytes() + LEAD * o.aval.dtype.size() + 64]))
        .collect::<Result<_>>()?;
    let regions = |buffers: &'_ [Buffer], offsets: Vec<isize>| -> Vec<(usize, isize)> {
        assert_eq!(buffers.len(), offsets.len());
        offsets.into_iter().enumerate().collect()
    };
    let ins = regions(&buffers, inputs.iter().map(|t| t.offset).collect());
    let outs = regions(&spaces, vec![LEAD as isize; spaces.len()]);
    let ins: Vec<Region<'_>> =
        ins.into_iter().map(|(i, offset)| Region { buffer: &buffers[i], offset }).collect();
    let outs: Vec<Region<'_>> =
        outs.into_iter().map(|(i, offset)| Region { buffer: &spaces[i], offset }).collect();
    let scalars = scalar_bytes(segment, scalars);
    executable.run(&Args { inputs: &ins, outputs: &outs, scalars: &scalars })?;
    (segment.outputs.iter().zip(&spaces))
        .map(|(o, space)| {
            let (bytes, lead) = (o.aval.bytes(), LEAD * o.aval.dtype.size());
            let mut all = vec![0; space.bytes()];
            cpu.download(space, 0, &mut all)?;
            let outside = all[..lead].iter().chain(&all[lead + bytes..]);
            assert!(outside.copied().all(|b| b == 0x5a), "written outside the output");
            Ok(all[lead..lead + bytes].to_vec())
        })
        .collect()
}

/// The elements of `dtype` as numbers; of complex ones the real part.
pub fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    use cupola_core::Element;
    fn of<T: Element>(bytes: &[u8]) -> Vec<f64> {
        T::from_bytes(bytes).into_iter().map(|v| Into::<Scalar>::into(v).to_f64()).collect()
    }
    match dtype {
        DType::Bool => of::<bool>(bytes),
        DType::U8 => of::<u8>(bytes),
        DType::U16 => of::<u16>(bytes),
        DType::U32 => of::<u32>(bytes),
        DType::U64 => of::<u64>(bytes),
        DType::I8 => of::<i8>(bytes),
        DType::I16 => of::<i16>(bytes),
        DType::I32 => of::<i32>(bytes),
        DType::I64 => of::<i64>(bytes),
        DType::F16 => of::<half::f16>(bytes),
        DType::BF16 => of::<half::bf16>(bytes),
        DType::F32 => of::<f32>(bytes),
        DType::F64 => of::<f64>(bytes),
        DType::C64 => of::<num_complex::Complex32>(bytes),
    }
}

/// The elements of the same values in `dtype`.
pub fn elements(dtype: DType, values: &[f64]) -> Vec<u8> {
    Tensor::new([values.len()], dtype, values).bytes
}

/// Small whole numbers, the same for the same seed.
pub fn whole(count: usize, below: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) as usize % below) as f64
        })
        .collect()
}
