//! Copies between strided places.

use smallvec::SmallVec;

use super::space::Group;

/// One axis of a copy: size, stride of the source, stride of the target, in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub size: usize,
    pub from: isize,
    pub to: isize,
}

/// The axes of a copy, outermost first.
pub(crate) type CopyAxes = SmallVec<[Axis; 4]>;

/// The axes of a copy between two operands, for a tile with these cut extents.
pub(crate) fn between(groups: &[Group], cuts: [usize; 2]) -> CopyAxes {
    groups.iter().map(|g| Axis { size: size(g, cuts), from: g.from, to: g.to }).collect()
}

/// The axes of a copy from an operand into a tile.
pub(crate) fn into_tile(groups: &[Group], cuts: [usize; 2]) -> CopyAxes {
    let mut axes = between(groups, cuts);
    let mut step = 1;
    for axis in axes.iter_mut().rev() {
        axis.to = step;
        step *= axis.size as isize;
    }
    axes
}

/// The axes of a copy from a tile to an operand.
pub(crate) fn out_of_tile(groups: &[Group], cuts: [usize; 2]) -> CopyAxes {
    let mut axes = into_tile(groups, cuts);
    for axis in &mut axes {
        std::mem::swap(&mut axis.from, &mut axis.to);
    }
    axes
}

fn size(group: &Group, cuts: [usize; 2]) -> usize {
    group.size * group.cut.map_or(1, |c| cuts[usize::from(c)])
}

/// Copies elements of `bytes` bytes.
///
/// # Safety
/// Every element that the axes reach is valid for reads at `from` and for writes at `to`, and
/// aligned. The two overlap nowhere, or are the same elements.
pub(crate) unsafe fn copy(bytes: usize, from: *const u8, to: *mut u8, axes: &[Axis]) {
    // SAFETY: the same contract.
    unsafe {
        match bytes {
            1 => copy_as::<u8>(from, to.cast(), axes),
            2 => copy_as::<u16>(from.cast(), to.cast(), axes),
            4 => copy_as::<u32>(from.cast(), to.cast(), axes),
            _ => copy_as::<u64>(from.cast(), to.cast(), axes),
        }
    }
}

/// # Safety
/// As [`copy`].
unsafe fn copy_as<T: Copy>(from: *const T, to: *mut T, axes: &[Axis]) {
    // SAFETY: the same contract; every offset stays within what the axes reach.
    unsafe {
        match axes {
            [] => *to = *from,
            [a] => line(from, to, *a),
            [a, b] => plane(from, to, *a, *b),
            [a, inner @ ..] => {
                for i in 0..a.size as isize {
                    copy_as(from.offset(i * a.from), to.offset(i * a.to), inner);
                }
            }
        }
    }
}

/// # Safety
/// As [`copy`].
#[inline]
unsafe fn line<T: Copy>(from: *const T, to: *mut T, a: Axis) {
    // SAFETY: the same contract.
    unsafe {
        match (a.from, a.to) {
            (1, 1) => std::ptr::copy(from, to, a.size),
            (0, 1) => std::slice::from_raw_parts_mut(to, a.size).fill(*from),
            (s, 1) => {
                for i in 0..a.size as isize {
                    *to.offset(i) = *from.offset(i * s);
                }
            }
            (s, d) => {
                for i in 0..a.size as isize {
                    *to.offset(i * d) = *from.offset(i * s);
                }
            }
        }
    }
}

/// # Safety
/// As [`copy`].
unsafe fn plane<T: Copy>(from: *const T, to: *mut T, a: Axis, b: Axis) {
    // SAFETY: the same contract.
    unsafe {
        let crossed = a.from.unsigned_abs() < b.from.unsigned_abs() && a.from != 0
            || a.to.unsigned_abs() < b.to.unsigned_abs() && a.to != 0;
        if crossed && a.size >= 4 && b.size >= 4 {
            return transpose(from, to, a, b);
        }
        for i in 0..a.size as isize {
            line(from.offset(i * a.from), to.offset(i * a.to), b);
        }
    }
}

/// A copy whose sides run fast along different axes: in blocks, so that each cache line of either
/// side is used whole while it is near.
///
/// # Safety
/// As [`copy`].
unsafe fn transpose<T: Copy>(from: *const T, to: *mut T, a: Axis, b: Axis) {
    const BLOCK: usize = 16;
    // SAFETY: the same contract.
    unsafe {
        for i0 in (0..a.size).step_by(BLOCK) {
            for j0 in (0..b.size).step_by(BLOCK) {
                let (i1, j1) = (a.size.min(i0 + BLOCK), b.size.min(j0 + BLOCK));
                for i in i0 as isize..i1 as isize {
                    let (from, to) = (from.offset(i * a.from), to.offset(i * a.to));
                    for j in j0 as isize..j1 as isize {
                        *to.offset(j * b.to) = *from.offset(j * b.from);
                    }
                }
            }
        }
    }
}
