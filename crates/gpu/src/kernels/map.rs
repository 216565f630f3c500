//! Elementwise programs.

use cupola_core::DType;
use cupola_core::backend::{Epilogue, Segment};
use cupola_core::plan::body::Body;

use super::turn::Turn;
use super::view::{Axes, View};
use super::{Draft, Launch, Missing, Place};
use crate::ir::{Access, Number, Target, Val};

/// Threads in a block.
pub(super) const BLOCK: u32 = 256;

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
    let program = Program { body, scalars, inputs, outputs };
    if let Some(turn) = Turn::of(draft, axes, inputs, outputs) {
        return turn.elements(draft, &program, axes);
    }
    let dtypes = program.dtypes(draft);
    let (count, rest) = axes.vector_and_rest(&dtypes, draft.build.target.vector_bytes);
    let steps = axes.in_steps(count);
    let total = steps.count();
    // A thread that has two steps under way waits half as often.
    let twice = count > 1 && total.is_multiple_of(2) && total >= TWICE && inputs.len() <= 4;
    let threads = if twice { total / 2 } else { total };
    let mut done = Ok(());
    draft.each(threads, |draft, flat| {
        let mut flats = vec![flat];
        if twice {
            let half = draft.index(threads as i64);
            flats.push(draft.build.add(flat, half));
        }
        let places: Vec<Vec<Val>> =
            flats.into_iter().map(|flat| draft.unflatten(flat, &steps.sizes)).collect();
        done = program.run(draft, &steps, &places, count);
    });
    if rest > 0 {
        done?;
        done = Ok(());
        draft.each(rest, |draft, at| {
            let before = draft.index((axes.count() - rest) as i64);
            let at = draft.build.add(at, before);
            done = program.run(draft, axes, &[vec![at]], 1);
        });
    }
    done.map(|()| threads)
}

/// From how many steps on a thread takes two.
const TWICE: u64 = 1 << 18;

/// A body with where it reads and writes.
pub(super) struct Program<'a> {
    pub body: &'a Body,
    pub scalars: Vec<Number>,
    pub inputs: &'a [View],
    pub outputs: &'a [View],
}

impl Program<'_> {
    /// The dtypes of what it reads and writes.
    fn dtypes(&self, draft: &Draft<'_>) -> Vec<DType> {
        self.inputs.iter().chain(self.outputs).map(|view| draft.build.dtype(view.buf)).collect()
    }

    /// Runs it for `count` neighbours from each of `places` on: everything is read first.
    fn run(
        &self,
        draft: &mut Draft<'_>,
        axes: &Axes,
        places: &[Vec<Val>],
        count: u32,
    ) -> Result<(), Missing> {
        let loaded: Vec<Vec<Vec<Number>>> = (places.iter())
            .map(|index| {
                (self.inputs.iter().zip(&axes.strides))
                    .map(|(view, strides)| draft.load_many(*view, index, strides, count))
                    .collect()
            })
            .collect();
        for (index, inputs) in places.iter().zip(loaded) {
            self.finish(draft, axes, index, &inputs, count)?;
        }
        Ok(())
    }

    /// From what was read, `count` neighbours for each input, to what is written from `index` on.
    pub fn finish(
        &self,
        draft: &mut Draft<'_>,
        axes: &Axes,
        index: &[Val],
        inputs: &[Vec<Number>],
        count: u32,
    ) -> Result<(), Missing> {
        let mut results = vec![Vec::new(); self.outputs.len()];
        for at in 0..count as usize {
            let own: Vec<Number> = inputs.iter().map(|neighbours| neighbours[at]).collect();
            let registers = draft.run(self.body, &own, &self.scalars)?;
            let own = self.body.outputs.iter().map(|&register| registers[usize::from(register)]);
            results.iter_mut().zip(own).for_each(|(list, number)| list.push(number));
        }
        let places = self.outputs.iter().zip(&axes.strides[self.inputs.len()..]).zip(results);
        for ((view, strides), numbers) in places {
            draft.store_many(*view, index, strides, &numbers);
        }
        Ok(())
    }
}
