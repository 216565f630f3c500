//! Elementwise programs.

use cupola_core::DType;
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
    let threads = elements(&mut draft, body, &axes, &views, &outputs)?;
    Ok(draft.launch_over(threads))
}

/// A copy of the segment's first input in its output.
pub fn copy(segment: &Segment, target: &Target) -> Result<Launch, Missing> {
    let mut draft = Draft::new("copy", BLOCK, segment, target)?;
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let from = draft.view(Place::Input(0), x.aval.dtype, Access::Read)?;
    let to = draft.view(Place::Output(0), out.aval.dtype, Access::Write)?;
    let axes = Axes::joined(&out.aval.shape, &[&x.strides, &out.strides]);
    let body = Body::copy(out.aval.shape.clone(), out.aval.dtype);
    let threads = elements(&mut draft, &body, &axes, &[from], &[to])?;
    Ok(draft.launch_over(threads))
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
    let threads = elements(&mut draft, &epilogue.body, &axes, &views, &[place])?;
    Ok(draft.launch_over(threads))
}

/// Runs `body` for every element: how many threads that takes.
fn elements(
    draft: &mut Draft<'_>,
    body: &Body,
    axes: &Axes,
    inputs: &[View],
    outputs: &[View],
) -> Result<u64, Missing> {
    let scalars = draft.scalars(body)?;
    let dtypes: Vec<DType> =
        inputs.iter().chain(outputs).map(|view| draft.build.dtype(view.buf)).collect();
    let count = axes.vector(&dtypes, draft.build.target.vector_bytes);
    let axes = axes.in_steps(count);
    let mut failed = Ok(());
    draft.each(axes.count(), |draft, flat| {
        let index = draft.unflatten(flat, &axes.sizes);
        let loaded: Vec<Vec<Number>> = (inputs.iter().zip(&axes.strides))
            .map(|(view, strides)| draft.load_many(*view, &index, strides, count))
            .collect();
        let mut results = vec![Vec::new(); outputs.len()];
        for at in 0..count as usize {
            let own: Vec<Number> = loaded.iter().map(|neighbours| neighbours[at]).collect();
            let registers = match draft.run(body, &own, &scalars) {
                Ok(registers) => registers,
                Err(missing) => return failed = Err(missing),
            };
            let own = body.outputs.iter().map(|&register| registers[usize::from(register)]);
            results.iter_mut().zip(own).for_each(|(list, number)| list.push(number));
        }
        let places = outputs.iter().zip(&axes.strides[inputs.len()..]).zip(results);
        for ((view, strides), numbers) in places {
            draft.store_many(*view, &index, strides, &numbers);
        }
    });
    failed.map(|()| axes.count())
}
