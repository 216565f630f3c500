//! Elementwise programs four elements at a time: one load or store moves four neighbours, and what
//! is smaller than a word is stored in whole words, without atomics.
//!
//! Such a kernel is there beside that of `map`, for launches whose operands all start at a
//! multiple of four elements.

use cupola_core::backend::Body;
use cupola_core::backend::{Kernel, Operand, Segment};

use super::view::{Axes, place, unflatten};
use super::{Draft, Launch, Missing};
use crate::ir::{Number, Stmt, Target};

/// Threads in a block.
const BLOCK: u32 = 256;
/// The most statements of such a kernel: the longer ones wait for arithmetic, not for memory.
const STATEMENTS: usize = 400;

/// How four neighbours of an operand are read.
#[derive(Clone, Copy, PartialEq)]
enum Along {
    /// They are neighbours in memory.
    Quads,
    /// They are one element.
    Same,
    /// One by one.
    Each,
}

/// The launch of `segment` in quads, where it is elementwise and its layout allows that.
pub(super) fn quads(segment: &Segment, target: &Target) -> Option<Launch> {
    let Kernel::Map(body) = &segment.kernel else { return None };
    let operands = || segment.inputs.iter().chain(&segment.outputs);
    let strides: Vec<&[isize]> = operands().map(|o| &o.strides[..]).collect();
    let axes = Axes::joined(&body.shape, &strides);
    let fits = axes.sizes.last().is_some_and(|size| size.is_multiple_of(4))
        && operands().all(|o| o.aval.dtype.size() <= 4 && !o.aval.dtype.is_complex());
    if !fits {
        return None;
    }
    let ways: Vec<Along> = axes.strides.iter().map(|strides| way(strides)).collect();
    let (inputs, outputs) = ways.split_at(segment.inputs.len());
    let narrow = |o: &Operand| o.aval.dtype.size() < 4;
    let pays = inputs.iter().all(|way| *way != Along::Each) || segment.outputs.iter().any(narrow);
    if !pays || outputs.iter().any(|way| *way != Along::Quads) {
        return None;
    }
    let launch = kernel(body, segment, &axes, &ways, target).ok()?;
    (count(&launch.kernel.body) <= STATEMENTS).then_some(launch)
}

fn way(strides: &[isize]) -> Along {
    let Some((last, outer)) = strides.split_last() else { return Along::Same };
    match last {
        0 => Along::Same,
        1 if outer.iter().all(|s| s % 4 == 0) => Along::Quads,
        _ => Along::Each,
    }
}

fn count(list: &[Stmt]) -> usize {
    list.iter()
        .map(|stmt| match stmt {
            Stmt::If(_, then, other) | Stmt::While(then, _, other) => {
                1 + count(then) + count(other)
            }
            Stmt::For(_, _, body) => 1 + count(body),
            _ => 1,
        })
        .sum()
}

fn kernel(
    body: &Body,
    segment: &Segment,
    axes: &Axes,
    ways: &[Along],
    target: &Target,
) -> Result<Launch, Missing> {
    let k = Draft::new("map_quads", BLOCK, segment, target)?;
    let (inputs, outputs) = (k.inputs(segment, 0), k.outputs(segment));
    let scalars = k.scalars(body);
    let last = axes.sizes.len() - 1;
    let mut quads = axes.clone();
    quads.sizes[last] /= 4;
    let (total, walk) = (quads.count(), k.walk(&quads));
    k.each(total, |flat| {
        let mut index = unflatten(flat, &walk.sizes);
        index[last] = index[last] * 4;
        let mut loaded: Vec<Vec<Number<'_>>> = Vec::new();
        for ((view, way), strides) in inputs.iter().zip(ways).zip(&walk.strides) {
            loaded.push(match way {
                Along::Quads | Along::Same => view.load_many(&index, strides, 4),
                Along::Each => {
                    let mut at = view.at(&index, strides);
                    let each = (0..4).map(|lane| {
                        if lane > 0 {
                            at = place(at, &[k.index(1)], &strides[last..]);
                        }
                        view.buf.load_number(at)
                    });
                    each.collect()
                }
            });
        }
        let lanes: Vec<Vec<Number<'_>>> = (0..4)
            .map(|lane| {
                let own: Vec<Number<'_>> = loaded.iter().map(|quad| quad[lane]).collect();
                k.run(body, &own, &scalars)
            })
            .collect();
        let places = outputs.iter().zip(&walk.strides[inputs.len()..]).enumerate();
        for (output, (view, strides)) in places {
            let numbers: Vec<Number<'_>> = lanes.iter().map(|results| results[output]).collect();
            view.store_many(&index, strides, &numbers);
        }
    });
    k.launch_over(total)
}
