//! Operands of four axes that are read a row, or a tile of rows, at a time; masks.

use std::ops::Range;

use cupola_core::backend::Operand;
use cupola_simd::Element;

use super::tiles::Weight;
use super::{Block, Problem};

/// An operand `[example, head, row, column]`.
#[derive(Clone, Copy)]
pub(super) struct Rows<T> {
    ptr: *const T,
    strides: [isize; 4],
    /// Elements of a row.
    pub columns: usize,
}

// SAFETY: it is only read through.
unsafe impl<T: Sync> Sync for Rows<T> {}

/// The strides along four axes, 0 where an axis of size 1 stands for more.
fn strides(operand: &Operand) -> [isize; 4] {
    std::array::from_fn(|axis| match operand.aval.shape[axis] {
        1 => 0,
        _ => operand.strides[axis],
    })
}

impl<T> Rows<T> {
    /// The operand at `ptr`.
    ///
    /// # Safety
    /// It can be read while this lives.
    pub unsafe fn new(ptr: *const u8, operand: &Operand) -> Self {
        Rows { ptr: ptr.cast(), strides: strides(operand), columns: operand.aval.shape[3] }
    }

    fn at(&self, index: [usize; 4]) -> *const T {
        let offset = index.iter().zip(self.strides).map(|(&i, stride)| i as isize * stride).sum();
        self.ptr.wrapping_offset(offset)
    }
}

impl<T: Element> Rows<T> {
    /// Copies a row.
    pub fn copy(&self, [b, h, i]: [usize; 3], to: &mut [T::Acc]) {
        let row = self.at([b, h, i, 0]);
        if self.strides[3] == 1 {
            // SAFETY: the row is inside the operand and without gaps.
            T::widen(unsafe { std::slice::from_raw_parts(row, self.columns) }, to);
            return;
        }
        for (j, to) in to[..self.columns].iter_mut().enumerate() {
            // SAFETY: inside the operand.
            *to = unsafe { *row.offset(j as isize * self.strides[3]) }.to_acc();
        }
    }

    /// Rows in the type of sums: where the first is, and from one to the next. They are where they
    /// are, or copied to `scratch`.
    pub fn tile(
        &self,
        [b, h]: [usize; 2],
        rows: Range<usize>,
        scratch: &mut [T::Acc],
    ) -> (*const T::Acc, usize) {
        let own = size_of::<T>() == size_of::<T::Acc>();
        if own && (self.strides[3] == 1 || self.columns == 1) && self.strides[2] >= 0 {
            return (self.at([b, h, rows.start, 0]).cast(), self.strides[2] as usize);
        }
        for (row, to) in rows.zip(scratch.chunks_exact_mut(self.columns)) {
            self.copy([b, h, row], to);
        }
        (scratch.as_ptr(), self.columns)
    }
}

/// Which keys a row sees.
pub(super) enum Mask<T> {
    /// All.
    None,
    /// [`Block::limits`].
    Causal,
    /// Those where this is true.
    Bool(Rows<u8>),
    /// All, and this is added to the scores.
    Added(Rows<T>),
}

impl<T: Element<Acc: Weight>> Problem<T> {
    /// Masks the scores of `block` for `keys`: that of a row for a key is `steps` from those of their
    /// neighbours.
    pub(super) fn hide(
        &self,
        block: &Block,
        keys: Range<usize>,
        scores: &mut [T::Acc],
        steps: [usize; 2],
    ) {
        match &self.mask {
            Mask::None => {}
            Mask::Causal => {
                for (lane, limit) in block.limits[..block.rows.len()].iter().enumerate() {
                    for key in keys.end.min((*limit).max(keys.start))..keys.end {
                        scores[lane * steps[0] + (key - keys.start) * steps[1]] = T::Acc::LOWEST;
                    }
                }
            }
            Mask::Bool(mask) => self.each(mask, block, keys, |lane, n, sees| {
                let score = &mut scores[lane * steps[0] + n * steps[1]];
                *score = if sees == 0 { T::Acc::LOWEST } else { *score };
            }),
            Mask::Added(mask) => self.each(mask, block, keys, |lane, n, more| {
                scores[lane * steps[0] + n * steps[1]] += more.to_acc();
            }),
        }
    }

    /// Calls `f` with each row of `block`, number of a key, and element of the mask for them.
    fn each<M: Copy>(
        &self,
        mask: &Rows<M>,
        block: &Block,
        keys: Range<usize>,
        mut f: impl FnMut(usize, usize, M),
    ) {
        for (lane, row) in block.rows.clone().enumerate() {
            let (head, query) = self.place(block.group, row);
            let first = mask.at([block.batch, head, query, keys.start]);
            for n in 0..keys.len() {
                // SAFETY: inside the operand, which can be read.
                f(lane, n, unsafe { *first.offset(n as isize * mask.strides[3]) });
            }
        }
    }

    /// Whether a score that is lowest is no function of query and key.
    pub(super) fn hides(&self) -> bool {
        match self.mask {
            Mask::None | Mask::Added(_) => false,
            Mask::Causal | Mask::Bool(_) => true,
        }
    }
}
