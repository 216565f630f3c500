//! Gathers: elements and slices read at indices.
//!
//! An index outside its axis is read as 0 and noted as a fault, which the driver reports at the
//! next read.

use cupola_core::backend::Segment;
use cupola_core::prim::{Gather, GatherAxis};

use super::view::{View, place, unflatten};
use super::{Draft, Missing, Program};
use crate::ir::{Buf, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// An array of indices along an axis.
pub(super) struct Indices<'k> {
    k: &'k Draft,
    view: View<'k>,
    strides: Vec<Val<'k>>,
    /// How many places there are to name, where an index can say more.
    places: Option<Val<'k>>,
    /// Where faults are noted, and the number of this one, an argument.
    faults: Buf,
    fault: Val<'k>,
}

impl<'k> Indices<'k> {
    /// Binds the index arrays: the inputs from `first` on, one for each axis with its size and the
    /// length of a slice along it.
    pub fn bind(
        k: &'k Draft,
        program: &mut Program,
        segment: &'k Segment,
        first: usize,
        op: &'static str,
        axes: &[(usize, usize, usize)],
    ) -> Vec<Indices<'k>> {
        let faults = k.faults();
        let one = |(i, &(axis, size, span)): (usize, &(usize, usize, usize))| {
            let view = k.input(segment, first + i);
            let of = if span == 1 { String::new() } else { format!(", in slices of {span}") };
            let detail = format!("an index is outside axis {axis} of size {size}{of}");
            let fault = k.fault(program, op, detail);
            let operand = &segment.inputs[first + i];
            let (strides, places) = (k.strides(&operand.strides), (size + 1).saturating_sub(span));
            let ty = Ty::of(operand.aval.dtype);
            let most = match ty {
                Ty::I32 => i32::MAX as usize,
                Ty::U32 => u32::MAX as usize,
                _ => usize::MAX,
            };
            let places = (places <= most).then(|| k.size(places as i64, ty));
            Indices { k, view, strides, places, faults, fault }
        };
        axes.iter().enumerate().map(one).collect()
    }

    /// The index at a position, made safe.
    pub fn at(&self, position: &[Val<'k>]) -> Val<'k> {
        let k = self.k;
        let raw = self.view.load(position, &self.strides).real();
        let mut valid = raw.ge(0);
        if let Some(places) = self.places {
            valid = valid & raw.lt(places);
        }
        k.when(!valid, || self.faults.store(k.u32(0), self.fault));
        k.as_index(valid.select(raw, 0))
    }
}

/// Adds a launch that does nothing but look at the indices: for where slices have no elements, so that
/// nobody else reads them.
pub(super) fn look(
    program: &mut Program,
    segment: &Segment,
    first: usize,
    op: &'static str,
    axes: &[(usize, usize, usize)],
    target: &Target,
) -> Result<(), Missing> {
    let Some(array) = segment.inputs.get(first) else { return Ok(()) };
    let positions = array.aval.shape.size() as u64;
    if positions == 0 {
        return Ok(());
    }
    let k = Draft::new("look", BLOCK, segment, target)?;
    let indices = Indices::bind(&k, program, segment, first, op, axes);
    let sizes = k.divisors(&array.aval.shape);
    k.each(positions, |at| {
        let position = unflatten(at, &sizes);
        for array in &indices {
            array.at(&position);
        }
    });
    program.launches.push(k.launch_over(positions)?);
    Ok(())
}

/// Adds the launch of a gather.
pub fn gather(
    program: &mut Program,
    gather: &Gather,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let axes: Vec<_> = gather.axes.iter().map(|&a| (a, x.aval.shape[a], gather.sizes[a])).collect();
    if out.aval.shape.size() == 0 {
        return look(program, segment, 1, "gather", &axes, target);
    }
    let k = Draft::new("gather", BLOCK, segment, target)?;
    let (from, to) = (k.input(segment, 0), k.output(segment, 0));
    let indices = Indices::bind(&k, program, segment, 1, "gather", &axes);
    let lead = out.aval.shape.rank() - gather.sizes.len();
    let total = out.aval.shape.size() as u64;
    let (along, (sizes, strides)) = (k.strides(&x.strides), k.walk_of(out));
    k.each(total, |at| {
        let index = unflatten(at, &sizes);
        let (position, within) = index.split_at(lead);
        let mut start = from.at(within, &along);
        for (array, &axis) in indices.iter().zip(&gather.axes) {
            start = place(start, &[array.at(position)], &along[axis..=axis]);
        }
        to.store(&index, &strides, from.buf.load_number(start));
    });
    program.launches.push(k.launch_over(total)?);
    Ok(())
}

/// Adds the launch of a gather along an axis.
pub fn gather_axis(
    program: &mut Program,
    gather: &GatherAxis,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let k = Draft::new("take_along_axis", BLOCK, segment, target)?;
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let (from, to) = (k.input(segment, 0), k.output(segment, 0));
    let axis = gather.axis;
    let axes = [(axis, x.aval.shape[axis], 1)];
    let indices = Indices::bind(&k, program, segment, 1, "take_along_axis", &axes);
    let total = out.aval.shape.size() as u64;
    let (along, (sizes, strides)) = (k.strides(&x.strides), k.walk_of(out));
    k.each(total, |at| {
        let index = unflatten(at, &sizes);
        let mut source = index.clone();
        source[axis] = indices[0].at(&index);
        to.store(&index, &strides, from.load(&source, &along));
    });
    program.launches.push(k.launch_over(total)?);
    Ok(())
}
