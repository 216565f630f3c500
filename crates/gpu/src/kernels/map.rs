//! Elementwise programs.

use cupola_core::backend::{Epilogue, Segment};
use cupola_core::plan::body::Body;

use super::view::{Axes, View};
use super::{Draft, Launch, Missing, Place};
use crate::ir::{Access, Number, Target};

/// Threads in a block.
const BLOCK: u32 = 256;

/// A segment's elementwise program.
pub fn map(body: &Body, segment: &Segment, target: &Target) -> Result<Launch, Missing> {
    let name = if body.code.is_empty() { "copy" } else { "map" };
    let mut draft = Draft::new(name, BLOCK, segment, target)?;
    let strides: Vec<&[isize]> =
        segment.inputs.iter().chain(&segment.outputs).map(|o| &o.strides[..]).collect();
    let axes = Axes::joined(&body.shape, &strides);
    let mut views = Vec::new();
    for (index, operand) in segment.inputs.iter().enumerate() {
        views.push(draft.view(Place::Input(index), operand.aval.dtype, Access::Read)?);
    }
    let mut outputs = Vec::new();
    for (index, operand) in segment.outputs.iter().enumerate() {
        outputs.push(draft.view(Place::Output(index), operand.aval.dtype, Access::Write)?);
    }
    elements(&mut draft, body, &axes, &views, &outputs)?;
    Ok(draft.launch_over(axes.count()))
}

/// A copy of the segment's first input in its output.
pub fn copy(segment: &Segment, target: &Target) -> Result<Launch, Missing> {
    let mut draft = Draft::new("copy", BLOCK, segment, target)?;
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let from = draft.view(Place::Input(0), x.aval.dtype, Access::Read)?;
    let to = draft.view(Place::Output(0), out.aval.dtype, Access::Write)?;
    let axes = Axes::joined(&out.aval.shape, &[&x.strides, &out.strides]);
    let body = Body::copy(out.aval.shape.clone(), out.aval.dtype);
    elements(&mut draft, &body, &axes, &[from], &[to])?;
    Ok(draft.launch_over(axes.count()))
}

/// The program that continues an op, in place in its output.
pub fn epilogue(
    epilogue: &Epilogue,
    segment: &Segment,
    target: &Target,
) -> Result<Launch, Missing> {
    let mut draft = Draft::new("epilogue", BLOCK, segment, target)?;
    let (more, out) = (&segment.inputs[epilogue.first_input..], &segment.outputs[0]);
    let strides: Vec<&[isize]> =
        std::iter::once(out).chain(more).chain([out]).map(|o| &o.strides[..]).collect();
    let axes = Axes::joined(&epilogue.body.shape, &strides);
    let place = draft.view(Place::Output(0), out.aval.dtype, Access::Write)?;
    let mut views = vec![place];
    for (index, operand) in more.iter().enumerate() {
        let at = Place::Input(epilogue.first_input + index);
        views.push(draft.view(at, operand.aval.dtype, Access::Read)?);
    }
    elements(&mut draft, &epilogue.body, &axes, &views, &[place])?;
    Ok(draft.launch_over(axes.count()))
}

/// Runs `body` for every element.
fn elements(
    draft: &mut Draft<'_>,
    body: &Body,
    axes: &Axes,
    inputs: &[View],
    outputs: &[View],
) -> Result<(), Missing> {
    let scalars = draft.scalars(body)?;
    let mut failed = Ok(());
    draft.each(axes.count(), |draft, flat| {
        let index = draft.unflatten(flat, &axes.sizes);
        let loaded: Vec<Number> = (inputs.iter().zip(&axes.strides))
            .map(|(view, strides)| draft.load(*view, &index, strides))
            .collect();
        let registers = match draft.run(body, &loaded, &scalars) {
            Ok(registers) => registers,
            Err(missing) => return failed = Err(missing),
        };
        let places = outputs.iter().zip(&axes.strides[inputs.len()..]).zip(&body.outputs);
        for ((view, strides), &register) in places {
            let at = draft.place(view.offset, &index, strides);
            draft.build.store_number(view.buf, at, registers[usize::from(register)]);
        }
    });
    failed
}
