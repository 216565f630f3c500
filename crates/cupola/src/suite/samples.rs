//! Samples of every primitive: parameters and inputs that reach its cases.

use std::sync::Arc;

use cupola_core::graph::Graph;
use cupola_core::prim::{
    ArgReduce, Binary, Bitcast, Call, Cast, Compare, Constant, Conv, ConvRole, Dot, Gather,
    GatherAxis, Iota, Mark, Movement, Op, Pool, PoolRole, RandomBits, Reduce, ReduceKind, Scan,
    ScanKind, Scatter, ScatterAxis, ScatterMode, Select, Sort, Unary,
};
use cupola_core::{Aval, DType, Dims, Error, Scalar, Shape};
use num_complex::Complex64;

use super::edges::edges;
use super::family::Family;
use super::host::Host;

/// An input of a sample.
pub struct Input {
    shape: Shape,
    /// The dtype where it is not the one that the sample runs in.
    fixed: Option<DType>,
    value: Box<dyn Fn(usize) -> f64>,
}

/// A primitive with inputs, for every dtype that it takes.
pub struct Sample {
    /// What tells it apart within its family.
    pub name: String,
    op: Box<dyn Fn(DType) -> Op>,
    inputs: Vec<Input>,
    /// Whether the op is differentiable at these inputs, with room for finite differences.
    pub smooth: bool,
    /// The dtypes that it runs in, of those that the op takes.
    takes: Box<dyn Fn(DType) -> bool>,
}

impl Sample {
    pub fn new(
        name: impl Into<String>,
        op: impl Fn(DType) -> Op + 'static,
        inputs: Vec<Input>,
    ) -> Self {
        let takes = Box::new(|_| true);
        Sample { name: name.into(), op: Box::new(op), inputs, smooth: false, takes }
    }

    fn smooth(mut self) -> Self {
        self.smooth = true;
        self
    }

    /// The same, in some of the dtypes.
    pub fn only(mut self, takes: impl Fn(DType) -> bool + 'static) -> Self {
        self.takes = Box::new(takes);
        self
    }

    /// The op and its inputs in `dtype`; `None` where the op does not take it.
    pub fn in_dtype(&self, dtype: DType) -> Option<(Op, Vec<Host>)> {
        if !(self.takes)(dtype) {
            return None;
        }
        let op = (self.op)(dtype);
        let inputs: Vec<Host> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(n, input)| {
                let aval = Aval { shape: input.shape.clone(), dtype: input.fixed.unwrap_or(dtype) };
                // A negative number would wrap to one that the reference cannot hold exactly.
                let unsigned = aval.dtype.is_integer() && !aval.dtype.is_signed();
                let value = |i: usize| {
                    let v = (input.value)(i);
                    if unsigned { v.abs() } else { v }
                };
                Host::from_fn(aval, |i| Complex64::new(value(i), value(i + 7 * n + 3)))
            })
            .map(|mut host| {
                if host.aval.dtype != DType::C64 {
                    host.data.iter_mut().for_each(|v| v.im = 0.0);
                }
                host
            })
            .collect();
        let avals: Vec<&Aval> = inputs.iter().map(|h| &h.aval).collect();
        match op.infer(&avals) {
            // A composite whose body does not take the dtype has no output.
            Ok(outputs) => (!outputs.is_empty()).then_some((op, inputs)),
            Err(Error::DType { .. }) => None,
            // Any other error is a mistake in the sample, which the value check will show.
            Err(_) => Some((op, inputs)),
        }
    }
}

/// Numbers between −3 and 3 without ties nearby: a low-discrepancy walk, never near an integer.
fn spread(i: usize) -> f64 {
    let t = (i as f64 * 0.618_033_988_749_895 + 0.37).fract();
    let v = (t - 0.5) * 6.0;
    // Keep away from integers and halves, where rounding and comparisons change.
    let cell = (v * 2.0).floor();
    (cell + 0.2 + 0.6 * (v * 2.0 - cell)) / 2.0
}

fn input(shape: impl Into<Shape>) -> Input {
    Input { shape: shape.into(), fixed: None, value: Box::new(spread) }
}

pub fn from(shape: impl Into<Shape>, value: impl Fn(usize) -> f64 + 'static) -> Input {
    Input { shape: shape.into(), fixed: None, value: Box::new(value) }
}

pub fn fixed(
    shape: impl Into<Shape>,
    dtype: DType,
    value: impl Fn(usize) -> f64 + 'static,
) -> Input {
    Input { shape: shape.into(), fixed: Some(dtype), value: Box::new(value) }
}

pub fn dims(values: &[usize]) -> Dims {
    Dims::from_slice(values)
}

/// The samples of `family`.
pub fn samples(family: Family) -> Vec<Sample> {
    let mut all = ordinary(family);
    all.extend(edges(family));
    all
}

fn ordinary(family: Family) -> Vec<Sample> {
    match family {
        Family::Create => create(),
        Family::Unary => Unary::ALL.iter().flat_map(|&f| unary(f)).collect(),
        Family::Binary => Binary::ALL.iter().flat_map(|&f| binary(f)).collect(),
        Family::Compare => Compare::ALL.iter().map(|&f| compare(f)).collect(),
        Family::Select => vec![
            Sample::new(
                "select",
                |_| Select.into(),
                vec![
                    fixed([3, 5], DType::Bool, |i| (i % 3 == 0) as u8 as f64),
                    input([3, 5]),
                    from([3, 5], |i| spread(i + 40)),
                ],
            )
            .smooth(),
        ],
        Family::Cast => DType::ALL
            .iter()
            .map(|&to| {
                let sample = Sample::new(
                    format!("to {to}"),
                    move |_| Cast { to }.into(),
                    vec![input([4, 3])],
                );
                if to.is_float() { sample.smooth() } else { sample }
            })
            .chain(DType::ALL.iter().filter(|&&to| to != DType::Bool).map(|&to| {
                let value = |i| (1 + i % 3) as f64 * 25.0 * spread(i);
                let inputs = vec![from([3, 8], value)];
                Sample::new(format!("view as {to}"), move |_| Bitcast { to }.into(), inputs)
            }))
            .collect(),
        Family::Mark => vec![
            Sample::new("stop_gradient", |_| Mark::StopGradient.into(), vec![input([3])]),
            Sample::new("depends", |_| Mark::Depends.into(), vec![input([3]), input([2, 2])])
                .smooth(),
        ],
        Family::Movement => movement(),
        Family::Reduce => ReduceKind::ALL.iter().flat_map(|&kind| reduce(kind)).collect(),
        Family::ArgReduce => [(true, 0), (true, 2), (false, 1)]
            .into_iter()
            .map(|(max, axis)| {
                let op = ArgReduce { max, axis };
                Sample::new(
                    format!("{} axis {axis}", op.name()),
                    move |_| op.into(),
                    vec![input([3, 4, 5])],
                )
            })
            .collect(),
        Family::Scan => ScanKind::ALL.iter().flat_map(|&kind| scan(kind)).collect(),
        Family::Gather => gather(),
        Family::Dot => [
            ([4, 3], [3, 5]),
            ([1, 7], [7, 6]),
            ([5, 4], [4, 1]),
            ([3, 0], [0, 2]),
            ([17, 33], [33, 19]),
        ]
        .into_iter()
        .map(|(a, b)| (Shape::from(a), Shape::from(b)))
        .chain([(Shape::from([2, 3, 4, 5]), Shape::from([2, 3, 5, 2]))])
        .map(|(a, b)| {
            let name = format!("{a} by {b}");
            Sample::new(name, |d| Dot::of(d).into(), vec![input(a), from(b, |i| spread(i + 11))])
                .smooth()
        })
        .collect(),
        Family::Conv => conv(),
        Family::Pool => pool(),
        Family::Random => [(4, 7), (4, 8), (2, 9), (1, 5), (4, 1), (1, 33)]
            .into_iter()
            .map(|(width, count)| {
                let op = RandomBits { shape: Shape::from([count]), width };
                let keys =
                    fixed([3, 2], DType::U32, |i| (i * 2_654_435_761 % 4_294_967_291) as f64);
                Sample::new(
                    format!("{count} of {width} bytes"),
                    move |_| op.clone().into(),
                    vec![keys],
                )
                // The dtype of what comes out is a parameter.
                .only(|dtype| dtype == DType::U32)
            })
            .collect(),
        Family::Sort => [0, 1, 2]
            .into_iter()
            .flat_map(|axis| {
                [false, true].map(|indices| {
                    let op = Sort { axis, indices };
                    let name = format!("{} axis {axis}", op.name());
                    let sample = Sample::new(name, move |_| op.into(), vec![input([3, 4, 5])]);
                    if indices { sample } else { sample.smooth() }
                })
            })
            .collect(),
        Family::Call => call(),
    }
}

fn create() -> Vec<Sample> {
    let iota = |axis: usize| {
        Sample::new(
            format!("iota axis {axis}"),
            move |dtype| Iota { shape: Shape::from([3, 4]), dtype, axis }.into(),
            vec![],
        )
    };
    let constant =
        |dtype| Op::from(Constant { value: Scalar::Float(3.0), aval: Aval::new([2, 3], dtype) });
    vec![iota(0), iota(1), Sample::new("constant", constant, vec![])]
}

fn unary(f: Unary) -> Vec<Sample> {
    let main = |value: fn(f64) -> f64| {
        Sample::new(f.name(), move |_| f.into(), vec![from([5, 7], move |i| value(spread(i)))])
    };
    let unit = |v: f64| v / 3.2;
    let positive = |v: f64| v.abs() + 0.15;
    let mut all = match f {
        Unary::Sqrt | Unary::Rsqrt | Unary::Log | Unary::Log2 | Unary::Log10 | Unary::Log1p => {
            vec![main(positive).smooth()]
        }
        Unary::Asin | Unary::Acos | Unary::Atanh | Unary::ErfInv => vec![main(unit).smooth()],
        Unary::Acosh => vec![main(|v| v.abs() + 1.2).smooth()],
        Unary::Tan => vec![main(|v| v / 2.5).smooth()],
        Unary::Neg
        | Unary::Abs
        | Unary::Square
        | Unary::Exp
        | Unary::Expm1
        | Unary::Sin
        | Unary::Cos
        | Unary::Atan
        | Unary::Sinh
        | Unary::Cosh
        | Unary::Tanh
        | Unary::Asinh
        | Unary::Sigmoid
        | Unary::Erf => vec![main(|v| v).smooth()],
        Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round => vec![main(|v| v * 5.0).smooth()],
        Unary::Not | Unary::Invert => vec![main(|v| v * 9.0)],
        Unary::Conj | Unary::Real | Unary::Imag => vec![main(|v| v)],
    };
    all.push(Sample::new(format!("{} empty", f.name()), move |_| f.into(), vec![input([0, 3])]));
    all
}

fn binary(f: Binary) -> Vec<Sample> {
    let main = |a: fn(f64) -> f64, b: fn(f64) -> f64| {
        let inputs =
            vec![from([4, 6], move |i| a(spread(i))), from([4, 6], move |i| b(spread(3 * i + 17)))];
        Sample::new(f.name(), move |_| f.into(), inputs)
    };
    let far_from_zero = |v: f64| if v < 0.0 { v - 0.6 } else { v + 0.6 };
    vec![match f {
        Binary::Add | Binary::Sub | Binary::Mul | Binary::Maximum | Binary::Minimum => {
            main(|v| v, |v| v).smooth()
        }
        Binary::Div | Binary::Atan2 => main(|v| v, far_from_zero).smooth(),
        Binary::LogAddExp => main(|v| v, |v| v).smooth(),
        Binary::Power => main(|v| v.abs() + 0.3, |v| v).smooth(),
        Binary::FloorDivide | Binary::Remainder => main(|v| v * 7.3, far_from_zero),
        Binary::BitAnd | Binary::BitOr | Binary::BitXor => main(|v| v * 20.0, |v| v * 20.0),
        Binary::ShiftLeft | Binary::ShiftRight => main(|v| v * 20.0, |v| v.abs() * 3.0),
    }]
}

fn compare(f: Compare) -> Sample {
    let inputs = vec![from([4, 6], |i| (i % 3) as f64), from([4, 6], |i| (i % 2) as f64)];
    Sample::new(f.name(), move |_| f.into(), inputs)
}

fn movement() -> Vec<Sample> {
    let one = |name: &str, m: Movement, shape: &[usize]| {
        Sample::new(name, move |_| m.clone().into(), vec![input(shape)]).smooth()
    };
    let slice = Movement::Slice {
        start: dims(&[1, 0, 2]),
        sizes: dims(&[2, 2, 2]),
        strides: dims(&[1, 2, 2]),
    };
    let update = Movement::SliceUpdate { start: dims(&[1, 0]), strides: dims(&[1, 2]) };
    let pad = Movement::Pad { low: dims(&[1, 0]), high: dims(&[0, 2]), interior: dims(&[1, 0]) };
    let join = |axis: usize| Movement::Concatenate { axis };
    vec![
        one("reshape", Movement::Reshape(Shape::from([4, 6])), &[2, 3, 4]),
        one("flatten", Movement::Flatten { start: 1, end: 2 }, &[2, 3, 4]),
        one("unflatten", Movement::Unflatten { axis: 1, sizes: dims(&[2, 3]) }, &[2, 6]),
        one("squeeze", Movement::Squeeze(dims(&[0, 2])), &[1, 3, 1, 2]),
        one("expand_dims", Movement::ExpandDims(dims(&[0, 3])), &[3, 2]),
        one("transpose", Movement::Transpose(dims(&[2, 0, 1])), &[2, 3, 4]),
        one("broadcast", Movement::Broadcast(Shape::from([2, 3, 4])), &[3, 1]),
        one("flip", Movement::Flip(dims(&[0, 1])), &[3, 4]),
        one("slice", slice, &[3, 4, 5]),
        one(
            "empty slice",
            Movement::Slice { start: dims(&[1]), sizes: dims(&[0]), strides: dims(&[1]) },
            &[4],
        ),
        Sample::new(
            "slice_update",
            move |_| update.clone().into(),
            vec![input([3, 4]), from([2, 2], |i| spread(i + 90))],
        )
        .smooth(),
        Sample::new("pad", move |_| pad.clone().into(), vec![input([3, 2]), from((), |_| 1.5)])
            .smooth(),
        Sample::new(
            "concatenate 0",
            move |_| join(0).into(),
            vec![input([2, 3]), from([1, 3], |i| spread(i + 50)), input([0, 3])],
        )
        .smooth(),
        Sample::new(
            "concatenate 1",
            move |_| join(1).into(),
            vec![input([2, 3]), from([2, 2], |i| spread(i + 50))],
        )
        .smooth(),
    ]
}

fn reduce(kind: ReduceKind) -> Vec<Sample> {
    let value = move |i: usize| match kind {
        ReduceKind::All => f64::from(u8::from(!i.is_multiple_of(7))),
        ReduceKind::Any => f64::from(u8::from(i.is_multiple_of(7))),
        ReduceKind::Prod => 0.8 + 0.2 * spread(i),
        ReduceKind::Sum | ReduceKind::Max | ReduceKind::Min => spread(i),
    };
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[2, 3, 4], &[0]),
        (&[2, 3, 4], &[1]),
        (&[2, 3, 4], &[2]),
        (&[2, 3, 4], &[0, 2]),
        (&[2, 3, 4], &[0, 1, 2]),
        (&[3, 37], &[1]),
    ];
    let mut all: Vec<Sample> = shapes
        .into_iter()
        .map(|(shape, axes)| {
            let op = Reduce { kind, axes: dims(axes) };
            let name = format!("{} {shape:?} over {axes:?}", kind.name());
            let sample = Sample::new(name, move |_| op.clone().into(), vec![from(shape, value)]);
            match kind {
                ReduceKind::All | ReduceKind::Any => sample,
                _ => sample.smooth(),
            }
        })
        .collect();
    if !matches!(kind, ReduceKind::Max | ReduceKind::Min) {
        let op = Reduce { kind, axes: dims(&[1]) };
        let name = format!("{} of nothing", kind.name());
        all.push(Sample::new(name, move |_| op.clone().into(), vec![input([2, 0])]));
    }
    all
}

fn scan(kind: ScanKind) -> Vec<Sample> {
    let value = move |i: usize| match kind {
        // Long products neither grow nor vanish, complex ones neither.
        ScanKind::Prod => 0.7 + 0.1 * spread(i),
        _ => spread(i),
    };
    // Short and long lanes, side by side and one after the other.
    let cases: [(&[usize], usize, bool, bool); 9] = [
        (&[3, 4, 5], 0, false, false),
        (&[3, 4, 5], 1, true, false),
        (&[3, 4, 5], 2, false, true),
        (&[3, 4, 5], 1, true, true),
        (&[2, 37], 1, true, true),
        (&[1, 301], 1, false, false),
        (&[301, 2], 0, true, true),
        (&[9001], 0, true, true),
        (&[2, 0], 1, false, true),
    ];
    let sample = |(shape, axis, reverse, exclusive): (&[usize], usize, bool, bool)| {
        let op = Scan { kind, axis, reverse, exclusive };
        let name = format!(
            "{}{}{} {shape:?} along {axis}",
            if reverse { "reverse " } else { "" },
            if exclusive { "exclusive " } else { "" },
            kind.name(),
        );
        let long = shape.iter().any(|&d| d > 100);
        let sample = Sample::new(name, move |_| op.into(), vec![from(shape, value)]);
        // An exclusive extreme starts infinite, where differences are NaN.
        let infinite = exclusive && !matches!(kind, ScanKind::Sum | ScanKind::Prod);
        if long || infinite { sample } else { sample.smooth() }
    };
    cases.into_iter().map(sample).collect()
}

fn gather() -> Vec<Sample> {
    let places = |shape: &[usize], below: usize| {
        fixed(shape, DType::I32, move |i| ((i * 5 + 2) % below) as f64)
    };
    let rows = Gather { axes: dims(&[0]), sizes: dims(&[1, 4]) };
    let points = Gather { axes: dims(&[2, 0]), sizes: dims(&[1, 3, 1]) };
    let along = GatherAxis { axis: 1 };
    let mut all = vec![
        Sample::new(
            "gather rows",
            move |_| rows.clone().into(),
            vec![input([5, 4]), places(&[2, 3], 5)],
        )
        .smooth(),
        Sample::new(
            "gather points",
            move |_| points.clone().into(),
            vec![input([4, 3, 5]), places(&[6], 5), places(&[6], 4)],
        )
        .smooth(),
        Sample::new(
            "take_along_axis",
            move |_| along.clone().into(),
            vec![input([3, 5]), places(&[3, 4], 5)],
        )
        .smooth(),
    ];
    let modes =
        [ScatterMode::Set, ScatterMode::Add, ScatterMode::Prod, ScatterMode::Max, ScatterMode::Min];
    for mode in modes {
        let op = Scatter { mode, axes: dims(&[0]) };
        let along = ScatterAxis { mode, axis: 0 };
        // Repeated places only where the order of updates does not touch the derivative.
        let below = 5;
        let first = Sample::new(
            format!("scatter {mode:?}"),
            move |_| op.clone().into(),
            vec![input([5, 3]), from([4, 1, 3], |i| spread(i + 60)), places(&[4], below)],
        );
        let second = Sample::new(
            format!("put_along_axis {mode:?}"),
            move |_| along.clone().into(),
            vec![input([5, 3]), from([2, 3], |i| spread(i + 70)), places(&[2, 3], below)],
        );
        if matches!(mode, ScatterMode::Set | ScatterMode::Add) {
            all.extend([first.smooth(), second.smooth()]);
        } else {
            all.extend([first, second]);
        }
    }
    all
}

struct ConvCase {
    name: &'static str,
    batch: usize,
    channels: (usize, usize),
    groups: usize,
    input: &'static [usize],
    kernel: &'static [usize],
    stride: usize,
    padding: (usize, usize),
    dilation: usize,
    input_dilation: usize,
    flip: bool,
    /// What the inputs are multiplied by: sums of many stay about as large.
    scale: f64,
}

const CONV: ConvCase = ConvCase {
    name: "",
    batch: 2,
    channels: (3, 4),
    groups: 1,
    input: &[5, 6],
    kernel: &[3, 3],
    stride: 1,
    padding: (1, 1),
    dilation: 1,
    input_dilation: 1,
    flip: false,
    scale: 1.0,
};

fn conv() -> Vec<Sample> {
    let cases = [
        ConvCase { name: "3x3", ..CONV },
        ConvCase { name: "1d", input: &[9], kernel: &[4], padding: (2, 1), ..CONV },
        ConvCase { name: "3d", input: &[3, 4, 3], kernel: &[2, 2, 2], padding: (0, 1), ..CONV },
        ConvCase { name: "strided", stride: 2, ..CONV },
        ConvCase { name: "dilated", dilation: 2, padding: (2, 2), ..CONV },
        ConvCase { name: "input dilated", input_dilation: 2, ..CONV },
        ConvCase { name: "grouped", channels: (4, 6), groups: 2, ..CONV },
        ConvCase { name: "depthwise", channels: (4, 4), groups: 4, ..CONV },
        ConvCase { name: "flipped", flip: true, ..CONV },
        ConvCase { name: "wide padding", padding: (4, 3), ..CONV },
        ConvCase {
            name: "batch of 17, 5x5",
            batch: 17,
            channels: (2, 5),
            kernel: &[5, 5],
            padding: (2, 2),
            ..CONV
        },
        ConvCase { name: "one image, 20 channels", batch: 1, channels: (20, 33), ..CONV },
        // As many as it takes for a GPU to share patches.
        ConvCase {
            name: "many places",
            batch: 70,
            channels: (3, 5),
            input: &[9, 7],
            kernel: &[2, 3],
            scale: 0.125,
            ..CONV
        },
        ConvCase {
            name: "many places, 1d",
            batch: 50,
            channels: (24, 9),
            input: &[90],
            kernel: &[9],
            padding: (8, 7),
            dilation: 2,
            flip: true,
            scale: 0.125,
            ..CONV
        },
    ];
    let mut all = Vec::new();
    for case in cases {
        let rank = case.input.len();
        let payload = move |role, dtype: DType| Conv {
            role,
            input: dims(case.input),
            kernel: dims(case.kernel),
            stride: Dims::from_elem(case.stride, rank),
            padding: vec![case.padding; rank],
            dilation: Dims::from_elem(case.dilation, rank),
            input_dilation: Dims::from_elem(case.input_dilation, rank),
            groups: case.groups,
            flip: case.flip,
            accumulate: dtype.accumulator(),
            result: dtype,
        };
        let Ok(output) = payload(ConvRole::Forward, DType::F32).output() else { continue };
        let shape = |lead: usize, space: &[usize], last: usize| -> Shape {
            std::iter::once(lead).chain(space.iter().copied()).chain([last]).collect()
        };
        let (ins, outs) = case.channels;
        let x = shape(case.batch, case.input, ins);
        let w = shape(outs, case.kernel, ins / case.groups);
        let y = shape(case.batch, &output, outs);
        let roles = [
            (ConvRole::Forward, x.clone(), w.clone()),
            (ConvRole::InputGrad, y.clone(), w),
            (ConvRole::WeightGrad, x, y),
        ];
        for (role, a, b) in roles {
            let name = format!("{} {}", role.name(), case.name);
            let scale = case.scale;
            let inputs =
                vec![from(a, move |i| spread(i) * scale), from(b, move |i| spread(i + 23) * scale)];
            all.push(Sample::new(name, move |d| payload(role, d).into(), inputs).smooth());
        }
    }
    all
}

/// A name, then input, window, stride and padding.
type PoolCase =
    (&'static str, &'static [usize], &'static [usize], &'static [usize], (usize, usize));

fn pool() -> Vec<Sample> {
    let cases: [PoolCase; 4] = [
        ("2x2", &[6, 4], &[2, 2], &[2, 2], (0, 0)),
        ("3x3 overlapping", &[6, 5], &[3, 3], &[2, 1], (1, 1)),
        ("1d", &[7], &[3], &[2], (1, 0)),
        ("odd rest", &[5, 7], &[2, 2], &[2, 2], (0, 0)),
    ];
    let roles = [
        PoolRole::Max,
        PoolRole::MaxGather,
        PoolRole::MaxScatter,
        PoolRole::Sum,
        PoolRole::SumTranspose,
    ];
    let mut all = Vec::new();
    for (name, space, window, stride, padding) in cases {
        for role in roles {
            let op = Pool {
                role,
                input: dims(space),
                window: dims(window),
                stride: dims(stride),
                padding: vec![padding; space.len()],
            };
            let Ok(output) = op.output() else { continue };
            let shape = |space: &[usize]| -> Shape {
                std::iter::once(2).chain(space.iter().copied()).chain([5]).collect()
            };
            let (x, y) = (shape(space), shape(&output));
            let inputs = match role {
                PoolRole::Max | PoolRole::Sum => vec![input(x)],
                PoolRole::MaxGather => vec![input(x.clone()), from(x, |i| spread(i + 31))],
                PoolRole::MaxScatter => vec![input(x), from(y, |i| spread(i + 31))],
                PoolRole::SumTranspose => vec![input(y)],
            };
            let name = format!("{} {name}", role.name());
            all.push(Sample::new(name, move |_| op.clone().into(), inputs).smooth());
        }
    }
    all
}

/// A composite that has a reference: its body is one primitive whose result comes back.
fn call() -> Vec<Sample> {
    let body = |dtype: DType| {
        let mut graph = Graph::default();
        let a = graph.input(Aval::new([3, 4], dtype));
        let b = graph.input(Aval::new([3, 4], dtype));
        let square = |g: &mut Graph, r| g.push(Binary::Mul, &[r, r]);
        let sum = square(&mut graph, a).and_then(|node| {
            let first = cupola_core::graph::Ref { node, output: 0 };
            graph.push(Binary::Add, &[first, b])
        });
        if let Ok(node) = sum {
            graph.outputs.push(cupola_core::graph::Ref { node, output: 0 });
        }
        Op::from(Call { name: "square_add", body: Arc::new(graph), rules: None })
    };
    vec![
        Sample::new("square_add", body, vec![input([3, 4]), from([3, 4], |i| spread(i + 13))])
            .smooth(),
    ]
}
