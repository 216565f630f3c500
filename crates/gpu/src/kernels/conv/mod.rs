//! Convolutions and their gradients.
//!
//! They are products whose operands are read where they lie; where neighbouring places read much of
//! the same and matrix units do the rest, a block shares a patch of its input instead.

mod gather;
mod patch;
mod places;
mod taps;
mod weights;

use cupola_core::backend::Segment;
use cupola_core::prim::{Conv, ConvRole};

use super::gemm::{Dim, Product, ResultAxes, Sizes, product};
use super::{Missing, Program};
use crate::ir::Target;
use places::Places;
use taps::{Tap, Taps};
use weights::Weights;

/// Adds the launches of a convolution.
pub fn conv(
    program: &mut Program,
    conv: &Conv,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let [a, b] = &segment.inputs[..2] else {
        return Err(Missing("a convolution of other than two operands".into()));
    };
    let out = &segment.outputs[0];
    let s = conv.input.len();
    let output = conv.output().map_err(|e| Missing(e.to_string()))?.to_vec();
    let groups = conv.groups;
    let count = |sizes: &[usize]| sizes.iter().product::<usize>() as u64;
    let [x, _, y] = conv.role.arranged([a, b, out]);
    let (images, channels) = (x.aval.shape[0], [x, y].map(|o| o.aval.shape[s + 1] / groups));
    let (batch, taps) = (groups as u64, count(&conv.kernel));
    let images = images as u64;
    let [cin, cout] = channels.map(|c| c as u64);
    // The operands in the order of the product.
    let (sizes, roles) = match conv.role {
        ConvRole::Forward => (
            Sizes { batch, rows: images * count(&output), columns: cout, depth: taps * cin },
            [Tap::Patches, Tap::Weights],
        ),
        ConvRole::InputGrad => (
            Sizes { batch, rows: images * count(&conv.input), columns: cin, depth: taps * cout },
            [Tap::Spread, Tap::Turned],
        ),
        ConvRole::WeightGrad => (
            Sizes { batch, rows: taps * cin, columns: cout, depth: images * count(&output) },
            [Tap::Windows, Tap::Outputs],
        ),
    };
    let source = |operand, role| Taps { conv, operand, role, output: output.clone(), channels };
    let (first, second) = (source(a, roles[0]), source(b, roles[1]));
    let axes = |first: usize, sizes: &[usize]| -> Vec<Dim> {
        (sizes.iter().enumerate()).map(|(i, &size)| Dim::whole(first + i, size)).collect()
    };
    // Groups are parts of the axis of channels.
    let group = |axis: usize, per: usize| vec![Dim { axis, size: groups, apart: per }];
    let space = if conv.role == ConvRole::Forward { &output } else { &conv.input[..] };
    let result = match conv.role {
        ConvRole::Forward | ConvRole::InputGrad => {
            let own = channels[usize::from(conv.role == ConvRole::Forward)];
            ResultAxes {
                batch: group(s + 1, own),
                rows: [axes(0, &[images as usize]), axes(1, space)].concat(),
                columns: vec![Dim::whole(s + 1, own)],
            }
        }
        ConvRole::WeightGrad => ResultAxes {
            batch: group(0, channels[1]),
            rows: [axes(1, &conv.kernel), axes(s + 1, &channels[..1])].concat(),
            columns: vec![Dim::whole(0, channels[1])],
        },
    };
    let product_of = Product {
        name: conv.role.name(),
        sizes,
        operand: a.aval.dtype,
        accumulate: conv.accumulate,
        first: &first,
        second: &second,
        result,
    };
    if let Some(cut) = Places::of(conv, &output, &product_of, segment, target) {
        return cut.launches(program, &product_of, segment, target);
    }
    if let Some(cut) = Weights::of(conv, &output, &product_of, segment, target) {
        return cut.launches(program, &product_of, segment, target);
    }
    product(program, &product_of, segment, target)
}
