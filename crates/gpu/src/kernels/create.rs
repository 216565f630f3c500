//! Counters.

use cupola_core::backend::Segment;
use cupola_core::prim::Iota;

use super::view::unflatten;
use super::{Draft, Missing, Program};
use crate::ir::{Number, Target, Ty};

/// Threads in a block.
const BLOCK: u32 = 256;

/// Adds the launch of a counter, or of the part of one that starts at `first`.
pub fn iota(
    program: &mut Program,
    iota: &Iota,
    first: Option<u32>,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let out = &segment.outputs[0];
    let k = Draft::new("iota", BLOCK, segment, target)?;
    let to = k.output(segment, 0);
    let total = iota.shape.size() as u64;
    let (sizes, strides) = k.walk_of(out);
    let first = first.map(|first| k.word(first));
    k.each(total, |at| {
        let index = unflatten(at, &sizes);
        let count = index[iota.axis];
        let count = first.map_or(count, |first| count + k.as_index(first));
        let v = count.convert(Ty::of(iota.dtype)).wrapped(iota.dtype);
        let number = match iota.dtype {
            cupola_core::DType::C32 | cupola_core::DType::C64 => Number::Complex(v, k.f32(0.0)),
            _ => Number::Real(v),
        };
        to.store(&index, &strides, number);
    });
    program.launches.push(k.launch_over(total)?);
    Ok(())
}
