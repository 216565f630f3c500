//! Bytes read as another dtype.

use cupola_core::DType;
use cupola_core::backend::Segment;

use super::view::{View, unflatten};
use super::{BufferRef, Draft, Missing, Program};
use crate::ir::{Access, Divisor, Target, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// Adds the launch that copies bytes: a thread for each unit of the smaller dtype, or of a word.
pub fn bitcast(program: &mut Program, segment: &Segment, target: &Target) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let (from, to) = (x.aval.dtype.size(), out.aval.dtype.size());
    let unit = from.min(to).min(4);
    let dtype = match unit {
        1 => DType::U8,
        2 => DType::U16,
        _ => DType::U32,
    };
    let k = Draft::new("view", BLOCK, segment, target)?;
    let source = k.view(BufferRef::Input(0), dtype, Access::Read);
    let end = k.view(BufferRef::Output(0), dtype, Access::Write);
    let total = (x.aval.shape.size() * from / unit) as u64;
    let [(own, read), (other, written)] = [k.walk_of(x), k.walk_of(out)];
    k.each(total, |at| {
        let read = unit_at(source, (&own, &read), at, (from / unit) as u32);
        let written = unit_at(end, (&other, &written), at, (to / unit) as u32);
        end.buf.store(written, source.buf.load(read));
    });
    program.launches.push(k.launch_over(total)?);
    Ok(())
}

/// Where unit `at` of an operand is, whose elements have so many.
fn unit_at<'k>(
    view: View<'k>,
    (sizes, strides): (&[Divisor<'k>], &[Val<'k>]),
    at: Val<'k>,
    units: u32,
) -> Val<'k> {
    let index = unflatten(at / units, sizes);
    view.at(&index, strides) * units + at % units
}
