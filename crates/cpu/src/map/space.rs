//! The iteration space of a body, made as simple as its operands allow, and its division in tiles.
//!
//! A tile is a box of the space; its elements are taken in row-major order. At most two axes are
//! cut by the division, so that a tile at the edge is shorter along them.

use cupola_core::merge_axes;
use smallvec::SmallVec;

/// One number for each axis.
pub(crate) type Axes<T> = SmallVec<[T; 6]>;

/// Axis sizes and, for each operand, strides.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// Sizes, none of them 1; one of them 0 where there is nothing to do.
    pub dims: Axes<usize>,
    /// Elements between neighbours, operand by operand.
    pub strides: Vec<Axes<isize>>,
}

impl Space {
    /// The axes of `dims` but those of size 1, in the same order.
    pub fn new<'a>(dims: &[usize], operands: impl Iterator<Item = &'a [isize]>) -> Self {
        let kept: Axes<usize> = (0..dims.len()).filter(|&a| dims[a] != 1).collect();
        Space {
            dims: kept.iter().map(|&a| dims[a]).collect(),
            strides: operands.map(|s| kept.iter().map(|&a| s[a]).collect()).collect(),
        }
    }

    /// How many elements there are.
    pub fn size(&self) -> usize {
        self.dims.iter().product()
    }

    /// About how much memory it holds besides its own.
    pub fn memory(&self) -> usize {
        size_of_val(&self.strides[..])
    }

    /// Sorts the axes from `first` to before `last`, so that strides fall; earlier operands of
    /// `order` decide.
    pub fn sort(&mut self, first: usize, last: usize, order: &[usize]) {
        let outside = |a: usize, b: usize| {
            order
                .iter()
                .map(|&o| (self.strides[o][a].unsigned_abs(), self.strides[o][b].unsigned_abs()))
                .find(|&(a, b)| a != b && a != 0 && b != 0)
                .is_some_and(|(a, b)| a > b)
        };
        // Not every pair of axes is comparable, so this is an insertion sort.
        let mut sorted: Axes<usize> = (0..first).collect();
        for axis in first..last {
            let mut at = sorted.len();
            while at > first && outside(axis, sorted[at - 1]) {
                at -= 1;
            }
            sorted.insert(at, axis);
        }
        sorted.extend(last..self.dims.len());
        self.permute(&sorted);
    }

    /// Puts axis `axes[i]` at place `i`.
    pub fn permute(&mut self, axes: &[usize]) {
        self.dims = axes.iter().map(|&a| self.dims[a]).collect();
        for s in &mut self.strides {
            *s = axes.iter().map(|&a| s[a]).collect();
        }
    }

    /// Merges neighbouring axes that are one for every operand; never over the borders that
    /// `borders` names, which are moved along.
    pub fn merge(&mut self, borders: &mut [usize]) {
        let merged = merge_axes(&self.dims, &self.strides, |axis| borders.contains(&axis));
        for border in borders {
            *border = merged.iter().filter(|axis| axis.last < *border).count();
        }
        self.dims = merged.iter().map(|axis| axis.size).collect();
        for s in &mut self.strides {
            *s = merged.iter().map(|axis| s[axis.last]).collect();
        }
    }
}

/// A space divided in boxes.
#[derive(Clone, Debug)]
pub(crate) struct Tiling {
    /// The size of a box along each axis.
    pub extents: Axes<usize>,
    /// The axes that the division cuts, outermost first; an axis that stands for no cut repeats
    /// the other.
    pub cuts: [usize; 2],
}

impl Tiling {
    /// Boxes of at most `tile` elements out of the axes from `first` on.
    ///
    /// Where an operand runs fast along an axis that would be outside of the box, the box is a
    /// rectangle over that axis and the last one.
    pub fn new(space: &Space, first: usize, tile: usize) -> Self {
        let blocks = Self::blocks(space, first, tile);
        match rectangle_axis(space, first, &blocks) {
            Some(fast) => Self::rectangle(space, fast, tile),
            None => blocks,
        }
    }

    /// Boxes of at most `tile` elements: the last axes whole, and a part of the one before.
    pub fn blocks(space: &Space, first: usize, tile: usize) -> Self {
        let rank = space.dims.len();
        let mut extents: Axes<usize> = SmallVec::from_elem(1, rank);
        let mut block = 1;
        let mut cut = rank.saturating_sub(1);
        for axis in (first..rank).rev() {
            cut = axis;
            let size = space.dims[axis].max(1);
            let room = (tile / block).max(1);
            extents[axis] = even_part(size, room, block);
            if size > room {
                break;
            }
            block *= size;
        }
        Tiling { extents, cuts: [cut, cut] }
    }

    /// Parts of rows along the last axis.
    pub fn rows(space: &Space, tile: usize) -> Self {
        let last = space.dims.len() - 1;
        let mut extents: Axes<usize> = SmallVec::from_elem(1, last + 1);
        extents[last] = space.dims[last].min(tile);
        Tiling { extents, cuts: [last, last] }
    }

    fn rectangle(space: &Space, fast: usize, tile: usize) -> Self {
        let last = space.dims.len() - 1;
        let mut extents: Axes<usize> = SmallVec::from_elem(1, last + 1);
        // High ones for copies: pages of the side that runs across are then entered less often.
        let rows = space.dims[fast].min(if tile >= 4096 { 256 } else { 32 });
        let columns = space.dims[last].min((tile / rows).clamp(1, 64));
        let short = columns < 32;
        extents[last] = columns;
        extents[fast] = if short { space.dims[fast].min(tile / columns) } else { rows };
        Tiling { extents, cuts: [fast, last] }
    }

    /// How many boxes there are along `axis`.
    pub fn count(&self, space: &Space, axis: usize) -> usize {
        space.dims[axis].div_ceil(self.extents[axis])
    }

    /// How many boxes there are along the axes of `range`.
    pub fn total(&self, space: &Space, range: std::ops::Range<usize>) -> usize {
        range.map(|axis| self.count(space, axis)).product()
    }

    /// The extents of a whole box along the cut axes.
    pub fn full_cuts(&self) -> [usize; 2] {
        self.cuts.map(|axis| self.extents.get(axis).copied().unwrap_or(1))
    }

    /// How many elements a box with these extents along the cut axes has.
    pub fn elements(&self, cuts: [usize; 2]) -> usize {
        let both = |c: [usize; 2]| if self.cuts[0] == self.cuts[1] { c[0] } else { c[0] * c[1] };
        self.size() / both(self.full_cuts()) * both(cuts)
    }

    /// How many elements a whole box has.
    pub fn size(&self) -> usize {
        self.extents.iter().product()
    }
}

/// The part, at most `room`, in which to cut `size`, so that the parts are about even.
fn even_part(size: usize, room: usize, block: usize) -> usize {
    if size <= room {
        return size;
    }
    let part = size.div_ceil(size.div_ceil(room));
    // Whole cache lines, where the operands allow it.
    if block == 1 { part.next_multiple_of(16).min(room.max(1)) } else { part }
}

/// The axis along which some operand runs faster than along the last axis, if the boxes of
/// `blocks` do not hold enough of it.
fn rectangle_axis(space: &Space, first: usize, blocks: &Tiling) -> Option<usize> {
    let last = space.dims.len().checked_sub(1)?;
    let cut = blocks.cuts[0];
    let within = |axis: usize| axis > cut || axis == cut && blocks.extents[axis] >= 16;
    let fast = |s: &Axes<isize>| {
        (first..last)
            .filter(|&a| s[a] != 0 && s[a].unsigned_abs() < s[last].unsigned_abs())
            .min_by_key(|&a| s[a].unsigned_abs())
    };
    let axis = space.strides.iter().filter_map(fast).find(|&a| !within(a))?;
    (space.dims[axis] * space.dims[last] >= 64 && space.dims[axis] >= 4).then_some(axis)
}

/// A walk over the boxes of a tiling: where each starts for every operand, and its cut extents.
pub(crate) struct Walk<'a> {
    space: &'a Space,
    tiling: &'a Tiling,
    axes: std::ops::Range<usize>,
    index: Axes<usize>,
    /// The first element of the box, operand by operand.
    pub offsets: SmallVec<[isize; 16]>,
}

impl<'a> Walk<'a> {
    /// A walk over the boxes along `axes`, from number `start` on.
    pub fn new(
        space: &'a Space,
        tiling: &'a Tiling,
        axes: std::ops::Range<usize>,
        start: usize,
    ) -> Self {
        let mut walk = Walk {
            space,
            tiling,
            index: SmallVec::from_elem(0, space.dims.len()),
            offsets: SmallVec::from_elem(0, space.strides.len()),
            axes: axes.clone(),
        };
        let mut left = start;
        for axis in axes.rev() {
            let count = tiling.count(space, axis);
            walk.index[axis] = left % count * tiling.extents[axis];
            left /= count;
            walk.shift(axis, walk.index[axis] as isize);
        }
        walk
    }

    fn shift(&mut self, axis: usize, by: isize) {
        for (offset, s) in self.offsets.iter_mut().zip(&self.space.strides) {
            *offset += s[axis] * by;
        }
    }

    /// Moves to box number `index` along an axis that the walk does not go over.
    pub fn fix(&mut self, axis: usize, index: usize) {
        self.index[axis] = index * self.tiling.extents[axis];
        self.shift(axis, self.index[axis] as isize);
    }

    /// The extents of the box along the cut axes.
    pub fn cuts(&self) -> [usize; 2] {
        self.tiling.cuts.map(|axis| {
            if self.space.dims.is_empty() {
                return 1;
            }
            self.tiling.extents[axis].min(self.space.dims[axis] - self.index[axis])
        })
    }

    /// Goes on to the next box; from the last one to the first.
    pub fn next(&mut self) {
        for axis in self.axes.clone().rev() {
            let step = self.tiling.extents[axis];
            if self.index[axis] + step < self.space.dims[axis] {
                self.index[axis] += step;
                self.shift(axis, step as isize);
                return;
            }
            self.shift(axis, -(self.index[axis] as isize));
            self.index[axis] = 0;
        }
    }
}

/// Axes of a tile that are one axis for an operand, or for a pair of operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Group {
    /// Elements along the group when the cut axis in it, if any, has extent 1.
    pub size: usize,
    /// Which of the cuts the group's size is to be multiplied with.
    pub cut: Option<u8>,
    /// Elements between neighbours in the operand, or in the source of a copy.
    pub from: isize,
    /// Elements between neighbours in the target of a copy.
    pub to: isize,
}

/// The axes of a tile, as few as possible, for a copy between the strides `from` and `to`; for a
/// copy between memory and the tile itself, whose elements lie densely, both are the memory's.
pub(crate) fn groups(
    space: &Space,
    tiling: &Tiling,
    from: &[isize],
    to: &[isize],
) -> SmallVec<[Group; 4]> {
    let mut out: SmallVec<[Group; 4]> = SmallVec::new();
    // From the inside out; an axis that is cut ends its group, unless nothing is outside of it.
    for axis in (0..space.dims.len()).rev() {
        let extent = tiling.extents[axis];
        let cut = tiling.cuts.iter().position(|&c| c == axis);
        if extent == 1 && cut.is_none() {
            continue;
        }
        let size = if cut.is_some() { 1 } else { extent };
        let group = Group { size, cut: cut.map(|c| c as u8), from: from[axis], to: to[axis] };
        match out.last_mut() {
            Some(inner)
                if inner.cut.is_none()
                    && group.from == inner.from * inner.size as isize
                    && group.to == inner.to * inner.size as isize =>
            {
                inner.size *= group.size;
                inner.cut = group.cut;
            }
            _ => out.push(group),
        }
    }
    out.reverse();
    out
}
