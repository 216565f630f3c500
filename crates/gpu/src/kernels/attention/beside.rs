//! What runs beside an attention that a library computes.

use cupola_core::DType;
use cupola_core::backend::Segment;

use super::{BLOCK, Operand, sizes};
use crate::ir::{Access, Math, Target};
use crate::kernels::{Draft, Launch, Missing};

/// The launch that makes 1 of each row's sum, beside which the library gives its logarithm.
pub fn ones(segment: &Segment, target: &Target) -> Result<Launch, Missing> {
    let k = Draft::new("attention_ones", BLOCK, segment, target)?;
    let total = k.output(segment, 2);
    let count = segment.outputs[2].aval.shape.size() as u64;
    k.each(count, |row| total.buf.store(total.offset + row, k.f32(1.0)));
    k.launch_over(count)
}

/// The launch that puts the logarithm of each row's sum, of the two numbers that a gradient is given, into
/// the first scratch memory.
pub fn logarithms(segment: &Segment, target: &Target) -> Result<Launch, Missing> {
    let s = sizes(segment)?;
    let k = Draft::new("attention_logarithms", BLOCK, segment, target)?;
    let first = segment.inputs.len() - 4;
    let inputs = [0, 1].map(|n| k.operand(segment, first + n));
    let to = k.scratch(0, DType::F32, Access::Write);
    let (heads, queries) = (k.extent(s.heads), k.extent(s.queries));
    let count = (s.batch * s.heads * s.queries) as u64;
    k.each(count, |row| {
        let (batch, head, query) = (row / queries / heads, row / queries % heads, row % queries);
        let [largest, total] = inputs.each_ref().map(|Operand { view, strides }| {
            let place = batch * strides[0] + head * strides[1] + query * strides[2];
            view.buf.load(view.offset + place)
        });
        to.buf.store(row, largest + total.math(Math::Log));
    });
    k.launch_over(count)
}
