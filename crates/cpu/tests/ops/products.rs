//! Matrix products, convolutions and poolings: layouts, dtypes and what continues them.

use cupola_core::backend::{Epilogue, Kernel, Operand, Segment};
use cupola_core::plan::body::{Body, BodyOp, Instr};
use cupola_core::prim::{Binary, Conv, ConvRole, Dot, Op, Pool, PoolRole};
use cupola_core::{Aval, DType, Dims, Scalar};
use cupola_cpu::threads::with_threads;
use smallvec::smallvec;

use crate::common::{
    LAYOUTS, Tensor, elements, indices, numbers, position, run, run_segment, whole,
};

fn numeric() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|&d| d != DType::Bool)
}

/// The product of `[b.., m, k]` and `[b.., k, n]`.
fn multiply(a: &[f64], a_shape: &[usize], b: &[f64], n: usize) -> Vec<f64> {
    let rank = a_shape.len();
    let (m, k) = (a_shape[rank - 2], a_shape[rank - 1]);
    let batch: usize = a_shape[..rank - 2].iter().product();
    let mut out = Vec::new();
    for i in 0..batch * m {
        for j in 0..n {
            out.push((0..k).map(|l| a[i * k + l] * b[(i / m * k + l) * n + j]).sum());
        }
    }
    out
}

const SHAPES: [(&[usize], usize); 8] = [
    (&[3, 4], 5),
    (&[1, 7], 3),
    (&[5, 6], 1),
    (&[2, 3, 4, 5], 6),
    (&[2, 1, 17], 1),
    (&[3, 0], 2),
    (&[0, 3], 2),
    (&[0, 2, 3], 2),
];

#[test]
fn products_of_every_dtype_and_layout() {
    for (shape, n) in SHAPES {
        let rank = shape.len();
        let mut b_shape = shape.to_vec();
        b_shape[rank - 2..].copy_from_slice(&[shape[rank - 1], n]);
        let a = whole(shape.iter().product(), 3, 1);
        let b = whole(b_shape.iter().product(), 3, 2);
        let want = multiply(&a, shape, &b, n);
        for dtype in numeric() {
            let (a, b) = (Tensor::new(shape, dtype, &a), Tensor::new(&b_shape[..], dtype, &b));
            for i in 0..9 {
                let inputs = [a.laid(LAYOUTS[i / 3]), b.laid(LAYOUTS[i % 3])];
                // As numbers, since an imaginary zero may have either sign.
                let got = numbers(dtype, &run(Dot::of(dtype), &inputs).unwrap()[0]);
                assert_eq!(got, want, "{shape:?} {n} {dtype} {i}");
            }
        }
    }
}

#[test]
fn repeated_batches_multiply() {
    let a = Tensor::new([4, 3], DType::F32, &whole(12, 5, 1));
    let b = Tensor::new([2, 3, 2], DType::F32, &whole(12, 5, 2));
    let (a_values, b_values) = (numbers(DType::F32, &a.bytes), numbers(DType::F32, &b.bytes));
    let twice: Vec<f64> = a_values.iter().chain(&a_values).copied().collect();
    let want = multiply(&twice, &[2, 4, 3], &b_values, 2);
    let mut repeated = a.clone();
    repeated.operand = Operand { aval: Aval::new([2, 4, 3], DType::F32), strides: vec![0, 3, 1] };
    let got = run(Dot::of(DType::F32), &[repeated, b]).unwrap();
    assert_eq!(got[0], elements(DType::F32, &want));
}

#[test]
fn products_are_summed_in_other_dtypes() {
    let cases = [
        (DType::BF16, DType::F32, DType::F32),
        (DType::F16, DType::F16, DType::F16),
        (DType::F32, DType::F64, DType::F32),
        (DType::I8, DType::I32, DType::I32),
        (DType::U8, DType::I32, DType::F32),
        (DType::F32, DType::F32, DType::BF16),
    ];
    let (a, b) = (whole(12, 9, 1), whole(20, 9, 2));
    let want = multiply(&a, &[3, 4], &b, 5);
    for (dtype, accumulate, result) in cases {
        for layout in LAYOUTS {
            let inputs = [
                Tensor::new([3, 4], dtype, &a).laid(layout),
                Tensor::new([4, 5], dtype, &b).laid(layout),
            ];
            let got = run(Dot { accumulate, result }, &inputs).unwrap();
            assert_eq!(got[0], elements(result, &want), "{dtype} {accumulate} {result}");
        }
    }
    // Sums that a float32 would round.
    let big = Tensor::new([1, 3], DType::F32, &[16777216.0, 1.0, 1.0]);
    let ones = Tensor::new([3, 1], DType::F32, &[1.0; 3]);
    let dot = Dot { accumulate: DType::F64, result: DType::F32 };
    assert_eq!(run(dot, &[big, ones]).unwrap()[0], 16777218f32.to_ne_bytes());
}

/// A program that adds a row and multiplies by a scalar.
fn add_row_and_scale(shape: &[usize], dtype: DType) -> Body {
    let instr = |op, args: [u16; 2]| Instr {
        op: BodyOp::Binary(op),
        args: smallvec![args[0], args[1]],
        dtype,
    };
    Body {
        shape: shape.into(),
        inputs: vec![dtype; 2],
        scalars: vec![dtype],
        code: vec![instr(Binary::Add, [0, 1]), instr(Binary::Mul, [3, 2])],
        outputs: vec![4],
    }
}

/// Runs `op` with [`add_row_and_scale`] after it.
fn run_continued(op: Op, inputs: &[Tensor], row: &Tensor, scale: f64) -> Vec<u8> {
    let avals: Vec<&Aval> = inputs.iter().map(|t| &t.operand.aval).collect();
    let output = op.infer(&avals).unwrap()[0].clone();
    let mut strides = vec![0; output.shape.rank()];
    *strides.last_mut().unwrap() = row.operand.strides[0];
    let mut row = row.clone();
    row.operand = Operand { aval: Aval { dtype: output.dtype, ..output.clone() }, strides };
    let inputs: Vec<Tensor> = inputs.iter().cloned().chain([row]).collect();
    let segment = Segment {
        kernel: Kernel::Op(op),
        inputs: inputs.iter().map(|t| t.operand.clone()).collect(),
        outputs: vec![Operand::contiguous(&output)],
        scalars: vec![output.dtype],
        epilogue: Some(Epilogue {
            body: add_row_and_scale(&output.shape, output.dtype),
            first_input: inputs.len() - 1,
        }),
    };
    run_segment(&segment, &inputs, &[Scalar::Float(scale)]).unwrap().remove(0)
}

#[test]
fn programs_continue_ops() {
    let conv = conv(ConvRole::Forward, DType::F32);
    let pool = pool(PoolRole::Sum);
    let x = Tensor::new([2, 5, 6, 4], DType::F32, &whole(240, 3, 1));
    let cases: [(Op, Vec<Tensor>); 4] = [
        (
            Dot::of(DType::F32).into(),
            vec![
                Tensor::new([90, 40], DType::F32, &whole(3600, 3, 1)),
                Tensor::new([40, 70], DType::F32, &whole(2800, 3, 2)),
            ],
        ),
        (
            Dot { accumulate: DType::F32, result: DType::F32 }.into(),
            vec![
                Tensor::new([9, 4], DType::BF16, &whole(36, 3, 1)),
                Tensor::new([4, 7], DType::BF16, &whole(28, 3, 2)),
            ],
        ),
        (conv.into(), vec![x.clone(), Tensor::new([6, 3, 2, 2], DType::F32, &whole(72, 3, 2))]),
        (pool.into(), vec![x]),
    ];
    for (op, inputs) in cases {
        let plain = numbers(DType::F32, &run(op.clone(), &inputs).unwrap()[0]);
        let avals: Vec<&Aval> = inputs.iter().map(|t| &t.operand.aval).collect();
        let width = *op.infer(&avals).unwrap()[0].shape.last().unwrap();
        let row = Tensor::new([width], DType::F32, &whole(width, 9, 4));
        let added = numbers(DType::F32, &row.bytes);
        let want: Vec<f64> =
            plain.iter().enumerate().map(|(i, v)| (v + added[i % width]) * 3.0).collect();
        let got = run_continued(op.clone(), &inputs, &row, 3.0);
        assert_eq!(got, elements(DType::F32, &want), "{op:?}");
        let one = with_threads(1, || run_continued(op.clone(), &inputs, &row, 3.0));
        assert_eq!(got, one);
    }
}

fn dims(d: &[usize]) -> Dims {
    d.iter().copied().collect()
}

/// Two groups, every parameter different along both axes.
fn conv(role: ConvRole, dtype: DType) -> Conv {
    Conv {
        role,
        input: dims(&[5, 6]),
        kernel: dims(&[3, 2]),
        stride: dims(&[2, 1]),
        padding: vec![(1, 0), (0, 2)],
        dilation: dims(&[1, 2]),
        input_dilation: dims(&[2, 1]),
        groups: 2,
        flip: true,
        accumulate: dtype.accumulator(),
        result: dtype,
    }
}

/// Calls `f` with the indices of x, w and y of every product in a convolution.
fn each_product(c: &Conv, n: usize, channels: [usize; 2], mut f: impl FnMut([Vec<usize>; 3])) {
    let output = c.output().unwrap();
    let [c_in, c_out] = channels;
    let per = c_in / c.groups;
    for y in indices(&[&[n], &output[..], &[c_out]].concat()) {
        for k in indices(&c.kernel) {
            let at = |i: usize| -> Option<usize> {
                let tap = if c.flip { c.kernel[i] - 1 - k[i] } else { k[i] };
                let at =
                    (y[i + 1] * c.stride[i] + tap * c.dilation[i]).checked_sub(c.padding[i].0)?;
                let place = at / c.input_dilation[i];
                (at % c.input_dilation[i] == 0 && place < c.input[i]).then_some(place)
            };
            let Some(places) = (0..k.len()).map(at).collect::<Option<Vec<_>>>() else { continue };
            let co = y[k.len() + 1];
            for ci in 0..per {
                let first = co / (c_out / c.groups) * per;
                let x = [&[y[0]], &places[..], &[first + ci]].concat();
                let w = [&[co], &k[..], &[ci]].concat();
                f([x, w, y.clone()]);
            }
        }
    }
}

#[test]
fn convolutions_of_every_role_and_layout() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for role in [ConvRole::Forward, ConvRole::InputGrad, ConvRole::WeightGrad] {
            let c = conv(role, dtype);
            let output = c.output().unwrap();
            let shapes = [vec![2, 5, 6, 4], vec![6, 3, 2, 2], [&[2], &output[..], &[6]].concat()];
            let (given, wanted) = match role {
                ConvRole::Forward => ([0, 1], 2),
                ConvRole::InputGrad => ([2, 1], 0),
                ConvRole::WeightGrad => ([0, 2], 1),
            };
            let values = given.map(|i| whole(shapes[i].iter().product(), 2, i as u64 + 1));
            let mut want = vec![0.0; shapes[wanted].iter().product()];
            each_product(&c, 2, [4, 6], |index| {
                let at = |i: usize| position(&shapes[i], &index[i]);
                want[at(wanted)] += values[0][at(given[0])] * values[1][at(given[1])];
            });
            for layout in LAYOUTS {
                let input =
                    |i: usize| Tensor::new(&shapes[given[i]][..], dtype, &values[i]).laid(layout);
                let got = run(c.clone(), &[input(0), input(1)]).unwrap();
                assert_eq!(got[0], elements(dtype, &want), "{role:?} {dtype} {layout:?}");
            }
            let wide = Conv { accumulate: DType::F64, result: DType::F32, ..c };
            let input = |i: usize| Tensor::new(&shapes[given[i]][..], dtype, &values[i]);
            let got = run(wide, &[input(0), input(1)]).unwrap();
            assert_eq!(got[0], elements(DType::F32, &want), "{role:?} {dtype} summed in float64");
        }
    }
}

fn pool(role: PoolRole) -> Pool {
    Pool {
        role,
        input: dims(&[5, 6]),
        window: dims(&[2, 3]),
        stride: dims(&[2, 1]),
        padding: vec![(1, 0), (1, 1)],
    }
}

#[test]
fn poolings_of_every_role_and_layout() {
    let roles = [
        PoolRole::Max,
        PoolRole::MaxGather,
        PoolRole::MaxScatter,
        PoolRole::Sum,
        PoolRole::SumTranspose,
    ];
    for dtype in numeric().filter(|&d| d != DType::C64) {
        for role in roles {
            let p = pool(role);
            let x_shape = vec![2, 5, 6, 3];
            let y_shape = [&[2], &p.output().unwrap()[..], &[3]].concat();
            let x = whole(180, 40, 1);
            let t = whole(180, 40, 2);
            let dy = whole(y_shape.iter().product(), 5, 3);
            let gives_y = matches!(role, PoolRole::Max | PoolRole::MaxGather | PoolRole::Sum);
            let mut want = vec![0.0; if gives_y { dy.len() } else { 180 }];
            for (at, y) in indices(&y_shape).into_iter().enumerate() {
                let place = |k: Vec<usize>| {
                    let inside = |i: usize| {
                        let at = y[i + 1] * p.stride[i] + k[i];
                        at.checked_sub(p.padding[i].0).filter(|&at| at < p.input[i])
                    };
                    Some(position(&x_shape, &[y[0], inside(0)?, inside(1)?, y[3]]))
                };
                let window: Vec<usize> = indices(&p.window).into_iter().filter_map(place).collect();
                let best = window.iter().copied().reduce(|a, b| if x[b] > x[a] { b } else { a });
                let best = best.unwrap();
                match role {
                    PoolRole::Max => want[at] = x[best],
                    PoolRole::MaxGather => want[at] = t[best],
                    PoolRole::MaxScatter => want[best] += dy[at],
                    PoolRole::Sum => want[at] = window.iter().map(|&i| x[i]).sum(),
                    PoolRole::SumTranspose => window.iter().for_each(|&i| want[i] += dy[at]),
                }
            }
            // Sums wrap in bytes.
            let wrap = |v: f64| match dtype {
                DType::U8 => v as i64 as u8 as f64,
                DType::I8 => v as i64 as i8 as f64,
                _ => v,
            };
            let want: Vec<f64> = want.into_iter().map(wrap).collect();
            let x = Tensor::new(&x_shape[..], dtype, &x);
            let t = Tensor::new(&x_shape[..], dtype, &t);
            let dy = Tensor::new(&y_shape[..], dtype, &dy);
            let inputs = match role {
                PoolRole::Max | PoolRole::Sum => vec![x],
                PoolRole::MaxGather => vec![x, t],
                PoolRole::MaxScatter => vec![x, dy],
                PoolRole::SumTranspose => vec![dy],
            };
            for layout in LAYOUTS {
                let inputs: Vec<Tensor> = inputs.iter().map(|t| t.laid(layout)).collect();
                let got = run(p.clone(), &inputs).unwrap();
                assert_eq!(got[0], elements(dtype, &want), "{role:?} {dtype} {layout:?}");
            }
        }
    }
}
