//! Copies between strided places.

use std::mem::MaybeUninit;

use cupola_simd::prefetch;
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
        match b.size {
            1 => return line(from, to, a),
            2 => return few::<T, 2>(from, to, a, b),
            3 => return few::<T, 3>(from, to, a, b),
            4 => return few::<T, 4>(from, to, a, b),
            _ if crossed && a.size >= 4 => return transpose(from, to, a, b),
            _ => {}
        }
        for i in 0..a.size as isize {
            line(from.offset(i * a.from), to.offset(i * a.to), b);
        }
    }
}

/// Copies lines of `N` elements, such as the colours of an image: all of them in one loop.
///
/// # Safety
/// As [`copy`]; `b` has `N` elements.
unsafe fn few<T: Copy, const N: usize>(from: *const T, to: *mut T, a: Axis, b: Axis) {
    const { assert!(N <= 4) };
    let (size, n) = (a.size as isize, N as isize);
    // SAFETY: the same contract.
    unsafe {
        match (a.from, b.from, a.to, b.to) {
            // Colours side by side, of images that lie one after the other, and the other way round.
            (1, plane, step, 1) if step == n => {
                for i in 0..size {
                    let elements: [T; N] =
                        std::array::from_fn(|j| *from.offset(i + j as isize * plane));
                    *to.offset(i * n).cast::<[T; N]>() = elements;
                }
            }
            (step, 1, 1, plane) if step == n => {
                for i in 0..size {
                    let elements = *from.offset(i * n).cast::<[T; N]>();
                    for (j, element) in elements.into_iter().enumerate() {
                        *to.offset(i + j as isize * plane) = element;
                    }
                }
            }
            _ => {
                for i in 0..size {
                    for j in 0..n {
                        *to.offset(i * a.to + j * b.to) = *from.offset(i * a.from + j * b.from);
                    }
                }
            }
        }
    }
}

/// A copy whose sides run fast along different axes: in blocks, each of which takes the cache lines
/// of its source once and makes those of its target at once. In between it lies in a buffer, since
/// lines a power of two apart would push each other out of the cache.
///
/// # Safety
/// As [`copy`].
unsafe fn transpose<T: Copy>(from: *const T, to: *mut T, a: Axis, b: Axis) {
    // The source runs fast along `a`.
    let swap = a.from.unsigned_abs() > b.from.unsigned_abs();
    let (a, b) = if swap { (b, a) } else { (a, b) };
    let block = 64 / size_of::<T>();
    // SAFETY: the same contract.
    unsafe {
        for i in (0..a.size).step_by(block) {
            for j in (0..b.size).step_by(block) {
                let (i0, j0) = (i as isize, j as isize);
                let from = from.offset(i0 * a.from + j0 * b.from);
                let to = to.offset(i0 * a.to + j0 * b.to);
                let rows = Axis { size: block.min(a.size - i), ..a };
                let columns = Axis { size: block.min(b.size - j), ..b };
                for next in block as isize..2 * block as isize {
                    prefetch(from.wrapping_offset(next * b.from));
                }
                // The target of this block's neighbour in the next tile.
                for row in 0..rows.size as isize {
                    prefetch(to.wrapping_offset(row * a.to + b.size as isize * b.to));
                }
                match size_of::<T>() {
                    1 => block_of::<T, 64>(from, to, rows, columns),
                    2 => block_of::<T, 32>(from, to, rows, columns),
                    4 => block_of::<T, 16>(from, to, rows, columns),
                    _ => block_of::<T, 8>(from, to, rows, columns),
                }
            }
        }
    }
}

/// Copies bytes; past the caches if told so: then what is written does not have to be read first.
///
/// # Safety
/// Both are valid for `bytes` bytes, and are the same or do not overlap.
pub(crate) unsafe fn move_bytes(from: *const u8, to: *mut u8, bytes: usize, stream: bool) {
    #[cfg(target_arch = "x86_64")]
    if stream && from != to.cast_const() {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        let head = to.align_offset(64).min(bytes);
        let lines = (bytes - head) / 64;
        let done = head + lines * 64;
        // SAFETY: every x86-64 has the instructions; the stores are aligned and within the bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, head);
            for line in (head..done).step_by(64) {
                for at in (line..line + 64).step_by(16) {
                    let value = _mm_loadu_si128(from.add(at).cast::<__m128i>());
                    _mm_stream_si128(to.add(at).cast::<__m128i>(), value);
                }
            }
            std::ptr::copy_nonoverlapping(from.add(done), to.add(done), bytes - done);
        }
        return;
    }
    let _ = stream;
    // SAFETY: the same contract.
    unsafe { std::ptr::copy(from, to, bytes) }
}

/// Orders streamed bytes before what this thread does next.
pub(crate) fn end_of_streams() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

/// Copies at most `N × N` elements; the source runs fast along `a`, the target along `b`.
///
/// # Safety
/// As [`copy`].
#[allow(clippy::needless_range_loop)] // Nothing but indices leaves the buffer in registers.
unsafe fn block_of<T: Copy, const N: usize>(from: *const T, to: *mut T, a: Axis, b: Axis) {
    let mut buffer = [[MaybeUninit::<T>::uninit(); N]; N];
    // SAFETY: the same contract; what is read of the buffer was written.
    unsafe {
        if a.size == N && b.size == N && a.from == 1 && b.to == 1 {
            for (j, row) in buffer.iter_mut().enumerate() {
                *row = *from.offset(j as isize * b.from).cast::<[MaybeUninit<T>; N]>();
            }
            for i in 0..N {
                let column: [MaybeUninit<T>; N] = std::array::from_fn(|j| buffer[j][i]);
                *to.offset(i as isize * a.to).cast::<[MaybeUninit<T>; N]>() = column;
            }
            return;
        }
        for (j, row) in buffer.iter_mut().enumerate().take(b.size) {
            for (i, element) in row.iter_mut().enumerate().take(a.size) {
                element.write(*from.offset(i as isize * a.from + j as isize * b.from));
            }
        }
        for i in 0..a.size {
            for (j, row) in buffer.iter().enumerate().take(b.size) {
                let at = i as isize * a.to + j as isize * b.to;
                *to.offset(at) = row[i].assume_init();
            }
        }
    }
}
