//! Convolution and pooling.

use super::*;

struct Sizes {
    input: &'static [usize],
    kernel: &'static [usize],
    stride: &'static [usize],
    padding: &'static [(usize, usize)],
    dilation: &'static [usize],
    input_dilation: &'static [usize],
    groups: usize,
    flip: bool,
}

const CONVOLUTIONS: [Sizes; 4] = [
    Sizes {
        input: &[5],
        kernel: &[3],
        stride: &[1],
        padding: &[(1, 1)],
        dilation: &[1],
        input_dilation: &[1],
        groups: 1,
        flip: false,
    },
    Sizes {
        input: &[5, 4],
        kernel: &[3, 2],
        stride: &[2, 1],
        padding: &[(1, 0), (0, 2)],
        dilation: &[1, 2],
        input_dilation: &[1, 1],
        groups: 2,
        flip: false,
    },
    Sizes {
        input: &[3, 3],
        kernel: &[2, 2],
        stride: &[1, 2],
        padding: &[(1, 1), (0, 1)],
        dilation: &[2, 1],
        input_dilation: &[2, 2],
        groups: 1,
        flip: true,
    },
    Sizes {
        input: &[6],
        kernel: &[2],
        stride: &[4],
        padding: &[(0, 0)],
        dilation: &[1],
        input_dilation: &[1],
        groups: 3,
        flip: false,
    },
];

pub fn cases() -> Vec<Case> {
    let mut cases = convolutions();
    cases.extend(poolings());
    cases
}

fn spaced(first: usize, space: &[usize], last: usize) -> Vec<usize> {
    std::iter::once(first).chain(space.iter().copied()).chain([last]).collect()
}

fn convolutions() -> Vec<Case> {
    let mut source = Source::new(31);
    let mut cases = Vec::new();
    for sizes in &CONVOLUTIONS {
        let conv = |role| Conv {
            role,
            input: dims(sizes.input),
            kernel: dims(sizes.kernel),
            stride: dims(sizes.stride),
            padding: sizes.padding.to_vec(),
            dilation: dims(sizes.dilation),
            input_dilation: dims(sizes.input_dilation),
            groups: sizes.groups,
            flip: sizes.flip,
            accumulate: DType::F64,
            result: DType::F64,
        };
        let output = conv(ConvRole::Forward).output().expect("a kernel that fits");
        let (images, per_group, out) = (2, 2, 3 * sizes.groups);
        let x = source.array(&spaced(images, sizes.input, per_group * sizes.groups), -1.0, 1.0);
        let w = source.array(&spaced(out, sizes.kernel, per_group), -1.0, 1.0);
        let y = source.array(&spaced(images, &output, out), -1.0, 1.0);
        cases.push(Case::new(conv(ConvRole::Forward), &[&x, &w]));
        cases.push(Case::new(conv(ConvRole::InputGrad), &[&y, &w]));
        cases.push(Case::new(conv(ConvRole::WeightGrad), &[&x, &y]));
    }
    cases
}

/// Input, window, stride and padding.
type Variant = (&'static [usize], &'static [usize], &'static [usize], &'static [(usize, usize)]);

fn poolings() -> Vec<Case> {
    let mut source = Source::new(32);
    let mut cases = Vec::new();
    let variants: [Variant; 2] =
        [(&[5, 4], &[2, 3], &[2, 1], &[(0, 1), (1, 1)]), (&[6], &[3], &[2], &[(1, 1)])];
    for (input, window, stride, padding) in variants {
        let pool = |role| Pool {
            role,
            input: dims(input),
            window: dims(window),
            stride: dims(stride),
            padding: padding.to_vec(),
        };
        let output = pool(PoolRole::Sum).output().expect("a window that fits");
        let x = source.array(&spaced(2, input, 2), -1.0, 1.0);
        let t = source.array(&spaced(2, input, 2), -1.0, 1.0);
        let y = source.array(&spaced(2, &output, 2), -1.0, 1.0);
        cases.push(Case::new(pool(PoolRole::Max), &[&x]));
        cases.push(Case::new(pool(PoolRole::MaxGather), &[&x, &t]));
        cases.push(Case::new(pool(PoolRole::MaxScatter), &[&x, &y]));
        cases.push(Case::new(pool(PoolRole::Sum), &[&x]));
        cases.push(Case::new(pool(PoolRole::SumTranspose), &[&y]));
    }
    cases
}
