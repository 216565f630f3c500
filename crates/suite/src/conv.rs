//! Convolutions and their gradients.

use cupola_core::precision::MatmulPrecision;
use cupola_core::prim::{Binary, Conv, ConvRole};
use cupola_core::{Aval, DType, Dims, Shape};

use crate::binary::number;
use crate::host::{Host, flat, indices};
use crate::number::identity;
use crate::sample::{Accuracy, Sample, dims, from, spread, whole};

/// A convolution; lists of one entry hold for every axis.
struct ConvCase {
    name: &'static str,
    batch: usize,
    channels: (usize, usize),
    groups: usize,
    input: &'static [usize],
    kernel: &'static [usize],
    stride: &'static [usize],
    padding: &'static [(usize, usize)],
    dilation: &'static [usize],
    input_dilation: &'static [usize],
    flip: bool,
    /// What the inputs are multiplied by: sums of many stay about as large.
    scale: f64,
    /// Whether the inputs are 0 and 1, and no dtype rounds a sum.
    whole: bool,
}

const CONV: ConvCase = ConvCase {
    name: "",
    batch: 2,
    channels: (3, 4),
    groups: 1,
    input: &[5, 6],
    kernel: &[3, 3],
    stride: &[1],
    padding: &[(1, 1)],
    dilation: &[1],
    input_dilation: &[1],
    flip: false,
    scale: 1.0,
    whole: false,
};

/// Two groups, parameters that differ along the axes.
const UNEVEN: ConvCase = ConvCase {
    channels: (4, 6),
    groups: 2,
    input: &[5, 4],
    kernel: &[3, 2],
    stride: &[2, 1],
    padding: &[(1, 0), (0, 2)],
    dilation: &[1, 2],
    ..CONV
};

pub fn samples() -> Vec<Sample> {
    let cases = [
        ConvCase { name: "3x3", ..CONV },
        ConvCase { name: "1d", input: &[9], kernel: &[4], padding: &[(2, 1)], ..CONV },
        ConvCase { name: "3d", input: &[3, 4, 3], kernel: &[2, 2, 2], padding: &[(0, 1)], ..CONV },
        ConvCase { name: "strided", stride: &[2], ..CONV },
        ConvCase { name: "dilated", dilation: &[2], padding: &[(2, 2)], ..CONV },
        ConvCase { name: "input dilated", input_dilation: &[2], ..CONV },
        ConvCase { name: "grouped", channels: (4, 6), groups: 2, ..CONV },
        ConvCase { name: "depthwise", channels: (4, 4), groups: 4, ..CONV },
        ConvCase { name: "flipped", flip: true, ..CONV },
        ConvCase { name: "wide padding", padding: &[(4, 3)], ..CONV },
        ConvCase {
            name: "batch of 17, 5x5",
            batch: 17,
            channels: (2, 5),
            kernel: &[5, 5],
            padding: &[(2, 2)],
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
            padding: &[(8, 7)],
            dilation: &[2],
            flip: true,
            scale: 0.125,
            ..CONV
        },
        ConvCase { name: "every axis its own", ..UNEVEN },
        ConvCase {
            name: "axes apart",
            input: &[3, 3],
            kernel: &[2, 2],
            stride: &[1, 2],
            padding: &[(1, 1), (0, 1)],
            dilation: &[2, 1],
            input_dilation: &[2, 2],
            flip: true,
            channels: (2, 3),
            ..CONV
        },
        ConvCase {
            name: "a stride past the kernel",
            input: &[6],
            kernel: &[2],
            stride: &[4],
            padding: &[(0, 0)],
            groups: 3,
            channels: (6, 9),
            ..CONV
        },
        ConvCase {
            name: "of whole numbers",
            input: &[5, 6],
            input_dilation: &[2, 1],
            padding: &[(1, 0), (0, 2)],
            flip: true,
            whole: true,
            ..UNEVEN
        },
    ];
    let mut all = Vec::new();
    for case in cases {
        let rank = case.input.len();
        let every =
            move |list: &[usize]| -> Dims { (0..rank).map(|a| list[a % list.len()]).collect() };
        let payload = move |role, dtype: DType| Conv {
            role,
            input: dims(case.input),
            kernel: dims(case.kernel),
            stride: every(case.stride),
            padding: (0..rank).map(|a| case.padding[a % case.padding.len()]).collect(),
            dilation: every(case.dilation),
            input_dilation: every(case.input_dilation),
            groups: case.groups,
            flip: case.flip,
            accumulate: dtype.accumulator(),
            precision: MatmulPrecision::Full,
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
            let (scale, whole_numbers) = (case.scale, case.whole);
            let value = move |i: usize, seed: usize| match whole_numbers {
                true => whole(i, 2, seed),
                false => spread(i + seed) * scale,
            };
            let inputs =
                || vec![from(&a[..], move |i| value(i, 0)), from(&b[..], move |i| value(i, 23))];
            let sample =
                Sample::new(name.clone(), move |d| payload(role, d).into(), inputs()).smooth();
            if !case.whole {
                let about_rules = case.padding.len() > 1 || case.groups == 3;
                all.push(if about_rules { sample.where_kernels_are_cheap() } else { sample });
                continue;
            }
            all.push(sample.within(Accuracy::Exact));
            let wide = move |d| {
                let (accumulate, result) = (DType::F64, DType::F32);
                Conv { accumulate, result, ..payload(role, d) }.into()
            };
            let sample = Sample::new(format!("{name} in float64"), wide, inputs());
            all.push(sample.within(Accuracy::Exact).where_kernels_are_cheap());
        }
    }
    all
}

/// Walks every term of a convolution's sum: the places in x, w and y.
pub fn reference(c: &Conv, a: &Host, b: &Host, out: &Aval) -> Host {
    let (x, w, y) = match c.role {
        ConvRole::Forward => (&a.aval.shape, &b.aval.shape, &out.shape),
        ConvRole::InputGrad => (&out.shape, &b.aval.shape, &a.aval.shape),
        ConvRole::WeightGrad => (&a.aval.shape, &out.shape, &b.aval.shape),
    };
    let last = x.rank() - 1;
    let (per_group, outs_per_group) = (w[last], y[last] / c.groups);
    let dtype = a.aval.dtype;
    let mut data = vec![identity(Binary::Add, dtype); out.shape.size()];
    for at_y in indices(y) {
        for at_k in indices(&w[1..last]) {
            let mut at_x = at_y.clone();
            let inside = (0..last - 1).all(|s| {
                let k = if c.flip { c.kernel[s] - 1 - at_k[s] } else { at_k[s] };
                let dilated = at_y[1 + s] * c.stride[s] + k * c.dilation[s];
                let Some(dilated) = dilated.checked_sub(c.padding[s].0) else { return false };
                at_x[1 + s] = dilated / c.input_dilation[s];
                dilated % c.input_dilation[s] == 0 && at_x[1 + s] < c.input[s]
            });
            if !inside {
                continue;
            }
            at_x[last] = at_y[last] / outs_per_group * per_group;
            let at_w: Vec<_> =
                std::iter::once(at_y[last]).chain(at_k.iter().copied()).chain([0]).collect();
            // Channels are neighbours in both.
            let (x, w, y) = (flat(x, &at_x), flat(w, &at_w), flat(y, &at_y));
            for channel in 0..per_group {
                let (x, w) = (x + channel, w + channel);
                let (to, left, right) = match c.role {
                    ConvRole::Forward => (y, x, w),
                    ConvRole::InputGrad => (x, y, w),
                    ConvRole::WeightGrad => (w, x, y),
                };
                let product = number(Binary::Mul, a.data[left], b.data[right], dtype);
                data[to] = number(Binary::Add, data[to], product, dtype);
            }
        }
    }
    Host::from_fn(out.clone(), |i| data[i])
}
