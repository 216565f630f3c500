//! Attention and its gradient in tiles, with memory that is linear in the lengths.
//!
//! The heads that share keys are only more queries to them: their rows lie behind each other. A block
//! of rows goes through the keys a tile at a time. Its scores lie with the rows as lanes, so that keys
//! and values are read where they are, and what a softmax folds is folded lane by lane. Work is cut by
//! the sizes alone, and parts are joined in order: results do not depend on threads.

mod backward;
mod few;
mod forward;
mod op;
mod rows;
mod tiles;

use std::ops::Range;

use cupola_core::prim::composite::attention::AttentionSizes;
use cupola_simd::{Element, Isa};

pub(crate) use self::op::{AttentionGradKernel, AttentionKernel};
use self::rows::{Mask, Rows};
use self::tiles::Weight;

/// Rows of a block, at most.
const ROWS: usize = 64;
/// Keys of a tile.
const KEYS: usize = 64;
/// What widths of scratch memory are multiples of: lanes of the widest vectors, or some of them.
const LANES: usize = 16;
/// Tasks to aim at.
const TASKS: usize = 16;

/// What both directions read.
struct Problem<T: Element> {
    isa: Isa,
    sizes: AttentionSizes,
    scale: T::Acc,
    q: Rows<T>,
    k: Rows<T>,
    v: Rows<T>,
    mask: Mask<T>,
}

/// Rows of one group of keys that go through them together.
struct Block {
    batch: usize,
    group: usize,
    /// The rows, of those of the group.
    rows: Range<usize>,
    /// For each row the keys that a causal mask lets it see, 0 where it would see none: then all are
    /// alike.
    limits: [usize; ROWS],
    /// How many keys it has to go through.
    end: usize,
}

impl<T: Element<Acc: Weight>> Problem<T> {
    /// Rows that share keys.
    fn group_rows(&self) -> usize {
        self.sizes.heads / self.sizes.groups * self.sizes.queries
    }

    /// Groups of keys of all examples.
    fn groups(&self) -> usize {
        self.sizes.batch * self.sizes.groups
    }

    /// Blocks of the rows of a group.
    fn blocks(&self) -> usize {
        self.group_rows().div_ceil(ROWS)
    }

    /// Block `index` of a group of all.
    fn block(&self, group: usize, index: usize) -> Block {
        let s = &self.sizes;
        let rows = index * ROWS..((index + 1) * ROWS).min(self.group_rows());
        let (batch, group) = (group / s.groups, group % s.groups);
        let mut block = Block { batch, group, rows, limits: [s.keys; ROWS], end: s.keys };
        if let Mask::Causal = self.mask {
            for (lane, row) in block.rows.clone().enumerate() {
                block.limits[lane] = (row % s.queries + 1 + s.keys).saturating_sub(s.queries);
            }
            let limits = &block.limits[..block.rows.len()];
            let sees_none = limits.contains(&0);
            block.end = limits.iter().copied().max().filter(|_| !sees_none).unwrap_or(s.keys);
        }
        block
    }

    /// The head and the query of row `row` of a group.
    fn place(&self, group: usize, row: usize) -> (usize, usize) {
        let s = &self.sizes;
        (group * (s.heads / s.groups) + row / s.queries, row % s.queries)
    }

    /// The token of row `row` of a block, heads innermost: in results its features lie side by side.
    fn token(&self, block: &Block, row: usize) -> usize {
        let (head, query) = self.place(block.group, row);
        (block.batch * self.sizes.queries + query) * self.sizes.heads + head
    }

    /// The first of the rows of `block` among those of all heads and examples.
    fn first_row(&self, block: &Block) -> usize {
        let s = &self.sizes;
        (block.batch * s.groups + block.group) * self.group_rows() + block.rows.start
    }

    /// Copies the rows of `block` from an operand with a row a query, times `scale`; each has
    /// `width` elements, the further ones 0, as have the rows that fill up the lanes.
    fn copy_rows(
        &self,
        from: &Rows<T>,
        block: &Block,
        scale: T::Acc,
        width: usize,
        to: &mut [T::Acc],
    ) {
        for (lane, to) in to.chunks_exact_mut(width).enumerate() {
            let Some(row) = block.rows.clone().nth(lane) else {
                to.fill(T::Acc::default());
                continue;
            };
            let (head, query) = self.place(block.group, row);
            let (own, rest) = to.split_at_mut(from.columns);
            from.copy([block.batch, head, query], own);
            own.iter_mut().for_each(|x| *x = *x * scale);
            rest.fill(T::Acc::default());
        }
    }
}

impl Block {
    /// The rows, with those that fill up the lanes.
    fn width(&self) -> usize {
        self.rows.len().next_multiple_of(LANES)
    }

    /// The tiles of keys that it goes through, of those in `range`.
    fn tiles(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let end = range.end.min(self.end);
        (range.start..end).step_by(KEYS).map(move |first| first..(first + KEYS).min(end))
    }
}
