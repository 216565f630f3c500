//! Plain loops.

use super::{Epilogue, Shape};
use crate::simd::{Element, Out};
use crate::threads::parallel_for;

/// Calls `f(tap, input)` for the taps of an output position.
fn each_tap(s: &Shape, mut o: usize, f: &mut dyn FnMut(usize, usize)) {
    let mut list = vec![(0, 0)];
    let mut at = vec![0; s.axes.len()];
    for (d, axis) in s.axes.iter().enumerate().rev() {
        at[d] = o % axis.output;
        o /= axis.output;
    }
    for (axis, o) in s.axes.iter().zip(at) {
        let taps = axis.taps(o);
        list = list
            .iter()
            .flat_map(|&(t, i)| {
                (0..taps.count).map(move |k| {
                    let tap = taps.first_tap + k * axis.tap_step();
                    let input = taps.first_input + k * axis.input_step();
                    (t * axis.taps + axis.stored(tap), i * axis.input + input)
                })
            })
            .collect();
    }
    list.iter().for_each(|&(t, i)| f(t, i));
}

pub(super) fn forward<T: Element>(
    s: &Shape,
    x: &[T],
    w: &[T],
    out: Out<'_, T>,
    epilogue: Epilogue<'_>,
) {
    let (inputs, outputs) = (s.inputs(), s.outputs());
    let (cx, cy) = (s.groups * s.c_in, s.groups * s.c_out);
    let per = (4096 / cy.max(1)).clamp(1, outputs);
    let pieces = outputs.div_ceil(per);
    parallel_for(s.batch * pieces, |chunk| {
        let (n, piece) = (chunk / pieces, chunk % pieces);
        let positions = piece * per..((piece + 1) * per).min(outputs);
        let range = (n * outputs + positions.start) * cy..(n * outputs + positions.end) * cy;
        // SAFETY: chunks have disjoint positions.
        let y = unsafe { out.slice(range.clone()) };
        let mut acc = vec![T::Acc::default(); cy];
        for (y, o) in y.chunks_mut(cy).zip(positions) {
            acc.fill(T::Acc::default());
            each_tap(s, o, &mut |t, i| {
                let x = &x[(n * inputs + i) * cx..][..cx];
                for (c, acc) in acc.iter_mut().enumerate() {
                    let (g, co) = (c / s.c_out, c % s.c_out);
                    for ci in 0..s.c_in {
                        let w = w[s.weight_at(g, co, t, ci)];
                        *acc += x[g * s.c_in + ci].to_acc() * w.to_acc();
                    }
                }
            });
            T::narrow(&acc, y);
        }
        if let Some(f) = epilogue {
            f(range);
        }
    });
}

pub(super) fn weight_grad<T: Element>(
    s: &Shape,
    x: &[T],
    dy: &[T],
    out: Out<'_, T>,
    epilogue: Epilogue<'_>,
) {
    let (inputs, outputs, taps) = (s.inputs(), s.outputs(), s.taps());
    let (cx, cy) = (s.groups * s.c_in, s.groups * s.c_out);
    parallel_for(cy, |c| {
        let range = c * taps * s.c_in..(c + 1) * taps * s.c_in;
        let g = c / s.c_out;
        let mut acc = vec![T::Acc::default(); range.len()];
        for n in 0..s.batch {
            for o in 0..outputs {
                let dy = dy[(n * outputs + o) * cy + c].to_acc();
                each_tap(s, o, &mut |t, i| {
                    let x = &x[(n * inputs + i) * cx + g * s.c_in..][..s.c_in];
                    for (acc, x) in acc[t * s.c_in..].iter_mut().zip(x) {
                        *acc += x.to_acc() * dy;
                    }
                });
            }
        }
        // SAFETY: each chunk has its own rows of the output.
        T::narrow(&acc, unsafe { out.slice(range.clone()) });
        if let Some(f) = epilogue {
            f(range);
        }
    });
}
