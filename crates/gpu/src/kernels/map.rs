//! Elementwise programs.

use cupola_core::backend::{Body, Epilogue, Operand, Segment};
use cupola_core::{DType, Shape};

use super::turn::Turn;
use super::view::{Axes, View, Walk, unflatten};
use super::{Draft, Launch, Missing};
use crate::ir::{Access, Number, Target, Val};

/// Threads in a block.
pub(super) const BLOCK: u32 = 256;

/// A segment's elementwise program.
pub fn map(body: &Body, segment: &Segment, target: &Target) -> Result<Launch, Missing> {
    let name = if body.code.is_empty() { "copy" } else { "map" };
    let k = Draft::new(name, BLOCK, segment, target)?;
    let strides: Vec<&[isize]> =
        segment.inputs.iter().chain(&segment.outputs).map(|o| &o.strides[..]).collect();
    let axes = Axes::joined(&body.shape, &strides);
    let (inputs, outputs) = (k.inputs(segment, 0), k.outputs(segment));
    let threads = elements(&k, body, &axes, &inputs, &outputs);
    k.launch_over(threads)
}

/// A copy of the segment's first input in its output.
pub fn copy(segment: &Segment, target: &Target) -> Result<Launch, Missing> {
    let k = Draft::new("copy", BLOCK, segment, target)?;
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let (from, to) = (k.input(segment, 0), k.output(segment, 0));
    let threads = copied(&k, x, &out.strides, from, to);
    k.launch_over(threads)
}

/// Copies what `from` is to where `to` has these strides: how many threads that takes.
fn copied<'k>(k: &'k Draft, x: &Operand, strides: &[isize], from: View<'k>, to: View<'k>) -> u64 {
    let axes = Axes::joined(&x.aval.shape, &[&x.strides, strides]);
    let body = Body::copy(x.aval.shape.clone(), x.aval.dtype);
    elements(k, &body, &axes, &[from], &[to])
}

/// A copy of an input in scratch memory, in order.
pub fn ordered(
    segment: &Segment,
    input: usize,
    scratch: usize,
    target: &Target,
) -> Result<Launch, Missing> {
    let k = Draft::new("ordered", BLOCK, segment, target)?;
    let x = &segment.inputs[input];
    let (from, to) = (k.input(segment, input), k.scratch(scratch, x.aval.dtype, Access::Write));
    let threads = copied(&k, x, &x.aval.shape.row_major(), from, to);
    k.launch_over(threads)
}

/// The same with zeros behind the last axis, up to `count` elements of it, which a thread writes at once.
pub fn filled(
    segment: &Segment,
    input: usize,
    scratch: usize,
    count: usize,
    target: &Target,
) -> Result<Launch, Missing> {
    let k = Draft::new("filled", BLOCK, segment, target)?;
    let x = &segment.inputs[input];
    let (from, to) = (k.input(segment, input), k.scratch(scratch, x.aval.dtype, Access::Write));
    let (&size, places) = x.aval.shape.split_last().unwrap_or((&1, &[]));
    let (own, outer) = x.strides.split_last().map_or((1, &[][..]), |(&own, outer)| (own, outer));
    let there: Vec<isize> =
        Shape::from(places).row_major().iter().map(|&step| step * count as isize).collect();
    let axes = Axes::joined(places, &[outer, &there]);
    let (walk, step) = (k.walk(&axes), k.step(own as i64, k.index));
    k.each(axes.count(), |flat| {
        let place = unflatten(flat, &walk.sizes);
        let first = from.at(&place, &walk.strides[0]);
        let mut numbers: Vec<Number<'_>> =
            (0..size as u32).map(|i| from.buf.load_number(first + step * i)).collect();
        let zero = numbers[0].real().like(0.0);
        numbers.resize(count, Number::Real(zero));
        to.store_many(&place, &walk.strides[1], &numbers);
    });
    k.launch_over(axes.count())
}

/// The program that continues an op, in place in its output.
pub fn epilogue(
    epilogue: &Epilogue,
    segment: &Segment,
    target: &Target,
) -> Result<Launch, Missing> {
    let k = Draft::new("epilogue", BLOCK, segment, target)?;
    let (more, out) = (&segment.inputs[epilogue.first_input..], &segment.outputs[0]);
    let strides: Vec<&[isize]> =
        std::iter::once(out).chain(more).chain([out]).map(|o| &o.strides[..]).collect();
    let axes = Axes::joined(&epilogue.body.shape, &strides);
    let place = k.output(segment, 0);
    let views = [vec![place], k.inputs(segment, epilogue.first_input)].concat();
    let threads = elements(&k, &epilogue.body, &axes, &views, &[place]);
    k.launch_over(threads)
}

/// Runs `body` for every element: how many threads that takes.
fn elements<'k>(
    k: &'k Draft,
    body: &Body,
    axes: &Axes,
    inputs: &[View<'k>],
    outputs: &[View<'k>],
) -> u64 {
    let scalars = k.scalars(body);
    let program = Program { k, body, scalars, inputs, outputs };
    if let Some(turn) = Turn::of(k, axes, inputs, outputs) {
        return turn.elements(&program, axes);
    }
    let (count, rest) = axes.vector_and_rest(&program.dtypes(), k.target.vector_bytes);
    let steps = axes.in_steps(count);
    let total = steps.count();
    // A thread that has two steps under way waits half as often.
    let twice = count > 1 && total.is_multiple_of(2) && total >= TWICE && inputs.len() <= 4;
    let threads = if twice { total / 2 } else { total };
    let walk = k.walk(&steps);
    k.each(threads, |flat| {
        let mut flats = vec![flat];
        if twice {
            flats.push(flat + threads);
        }
        let places: Vec<Vec<Val<'_>>> =
            flats.into_iter().map(|flat| unflatten(flat, &walk.sizes)).collect();
        program.run(&walk, &places, count);
    });
    if rest > 0 {
        let (before, walk) = (axes.count() - rest, k.walk(axes));
        k.each(rest, |at| program.run(&walk, &[vec![at + before]], 1));
    }
    threads
}

/// From how many steps on a thread takes two.
const TWICE: u64 = 1 << 18;

/// A body with where it reads and writes.
pub(super) struct Program<'k, 'a> {
    pub k: &'k Draft,
    pub body: &'a Body,
    pub scalars: Vec<Number<'k>>,
    pub inputs: &'a [View<'k>],
    pub outputs: &'a [View<'k>],
}

impl<'k> Program<'k, '_> {
    /// The dtypes of what it reads and writes.
    fn dtypes(&self) -> Vec<DType> {
        self.inputs.iter().chain(self.outputs).map(|view| view.buf.dtype).collect()
    }

    /// Runs it for `count` neighbours from each of `places` on: everything is read first.
    fn run(&self, walk: &Walk<'k>, places: &[Vec<Val<'k>>], count: u32) {
        let loaded: Vec<Vec<Vec<Number<'k>>>> = (places.iter())
            .map(|index| {
                (self.inputs.iter().zip(&walk.strides))
                    .map(|(view, strides)| view.load_many(index, strides, count))
                    .collect()
            })
            .collect();
        for (index, inputs) in places.iter().zip(loaded) {
            self.finish(walk, index, &inputs, count);
        }
    }

    /// From what was read, `count` neighbours for each input, to what is written from `index` on.
    pub fn finish(
        &self,
        walk: &Walk<'k>,
        index: &[Val<'k>],
        inputs: &[Vec<Number<'k>>],
        count: u32,
    ) {
        let mut results = vec![Vec::new(); self.outputs.len()];
        for at in 0..count as usize {
            let own: Vec<Number<'k>> = inputs.iter().map(|neighbours| neighbours[at]).collect();
            let own = self.k.run(self.body, &own, &self.scalars);
            results.iter_mut().zip(own).for_each(|(list, number)| list.push(number));
        }
        let places = self.outputs.iter().zip(&walk.strides[self.inputs.len()..]).zip(results);
        for ((view, strides), numbers) in places {
            view.store_many(index, strides, &numbers);
        }
    }
}
