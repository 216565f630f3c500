//! Sorts, and the order that they put elements in.

use cupola_core::DType;
use cupola_core::backend::Segment;
use cupola_core::prim::Sort;

use super::view::{place, unflatten};
use super::{Draft, Missing, Program};
use crate::ir::{Access, Number, Target, Ty, Val};

/// Threads in a block.
const BLOCK: u32 = 256;

/// A value that can be compared: bools as numbers.
pub(super) fn comparable(v: Val<'_>) -> Val<'_> {
    if v.ty == Ty::Bool { v.convert(Ty::U32) } else { v }
}

/// Whether `x` comes before `y`, NaN being last.
pub(super) fn before<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    if !x.ty.is_float() {
        return x.lt(y);
    }
    // Comparisons with NaN are not asked of the device.
    let (x_nan, y_nan) = (x.is_nan(), y.is_nan());
    (!x_nan & y_nan) | (!(x_nan | y_nan) & x.lt(y))
}

/// The element at `position` of a row whose runs of `width` elements are sorted: its number, its value,
/// and its position when every two runs are merged.
pub(super) fn merged<'k>(
    k: &'k Draft,
    [position, width, length]: [Val<'k>; 3],
    element: impl Fn(Val<'k>) -> (Val<'k>, Val<'k>),
) -> (Val<'k>, Val<'k>, Val<'k>) {
    let (number, value) = element(position);
    let mine = comparable(value);
    // The element's run and the one that it is merged with: their start and end.
    let inside = position % width;
    let is_second = (position / width % 2).eq(1);
    let start = position - inside;
    let (down, up) = (start - width, start + width);
    let pair = is_second.select(down, start);
    let other = is_second.select(down, up).min(length);
    let stop = (other + width).min(length);
    // How many of the other run come before: from `low` on they do not.
    let (low, high) = (k.var(other), k.var(stop));
    k.search(low, high, |middle| {
        let (_, value) = element(middle);
        let theirs = comparable(value);
        // Of equals the one of the first run comes first.
        is_second.select(!before(mine, theirs), before(theirs, mine))
    });
    (number, value, pair + inside + (low.get() - other))
}

/// How often runs of one element are merged until a row of `length` is one.
pub(super) fn passes(length: usize) -> u32 {
    length.next_power_of_two().trailing_zeros().max(1)
}

/// Adds the launches of a merge sort: runs of one element are merged into runs of two, of four, and
/// so on. What moves are the elements' numbers along the axis; each finds its place in the merged
/// run by a binary search in the other run, before equals where it was before them.
pub fn sort(
    program: &mut Program,
    sort: &Sort,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let (x, out) = (&segment.inputs[0], &segment.outputs[0]);
    let length = x.aval.shape[sort.axis];
    let total = x.aval.shape.size() as u64;
    let mut shape = x.aval.shape.to_vec();
    let mut strides = [x.strides.clone(), out.strides.clone()];
    // Rows first, the axis last.
    shape.remove(sort.axis);
    shape.push(length);
    for strides in &mut strides {
        let own = strides.remove(sort.axis);
        strides.push(own);
    }
    let last = shape.len() - 1;
    let passes = passes(length);
    for _ in 0..if passes > 1 { 2 } else { 0 } {
        program.scratch.push(total as usize * 4);
    }
    let scratch = program.scratch.len();
    for pass in 0..passes {
        let (is_first, is_last) = (pass == 0, pass + 1 == passes);
        let k = Draft::new(sort.name(), BLOCK, segment, target)?;
        let values = k.input(segment, 0);
        // One scratch is read while the other is written.
        let order =
            |pass: u32, access| k.scratch(scratch - 1 - (pass % 2) as usize, DType::U32, access);
        let from = (!is_first).then(|| order(pass, Access::Read).buf);
        let to = if is_last { k.output(segment, 0) } else { order(pass + 1, Access::Write) };
        let width = k.word(1 << pass);
        let sizes = k.divisors(&shape);
        let [values_strides, to_strides] = [&strides[0], &strides[1]].map(|s| k.strides(s));
        let length = sizes[last].size;
        k.each(total, |at| {
            let width = k.as_index(width);
            let index = unflatten(at, &sizes);
            let position = index[last];
            let row = values.at(&index[..last], &values_strides[..last]);
            let row_start = at - position;
            // The element at a position of the row's present order: its number and its value.
            let element = |position| {
                let number = match from {
                    Some(order) => k.as_index(order.load(row_start + position)),
                    None => position,
                };
                (number, values.buf.load(place(row, &[number], &values_strides[last..])))
            };
            let (number, value, merged) = merged(&k, [position, width, length], element);
            if is_last {
                let end: Vec<Val<'_>> = index[..last].iter().copied().chain([merged]).collect();
                let result = if sort.indices { number.convert(Ty::U32) } else { value };
                to.store(&end, &to_strides, Number::Real(result));
            } else {
                to.buf.store(row_start + merged, number.convert(Ty::U32));
            }
        });
        program.launches.push(k.launch_over(total)?);
    }
    Ok(())
}
