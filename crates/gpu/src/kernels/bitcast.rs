//! Bytes read as another dtype.

use cupola_core::DType;
use cupola_core::backend::{Operand, Segment};

use super::view::{View, unflatten};
use super::{BufferRef, Draft, Missing, Program};
use crate::ir::{Access, Target, Val};

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
    k.each(total, |at| {
        let read = unit_at(source, x, at, from / unit);
        let written = unit_at(end, out, at, to / unit);
        end.buf.store(written, source.buf.load(read));
    });
    program.launches.push(k.launch_over(total)?);
    Ok(())
}

/// Where unit `at` of an operand is, whose elements have so many.
fn unit_at<'k>(view: View<'k>, operand: &Operand, at: Val<'k>, units: usize) -> Val<'k> {
    let index = unflatten(at / units, &operand.aval.shape);
    view.at(&index, &operand.strides) * units + at % units
}
