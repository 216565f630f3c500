//! Shapes, broadcasting and axes.

use std::fmt;
use std::ops::{Deref, Range};

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{Error, Result};

/// A short list of sizes or axes that lives on the stack for the usual ranks.
pub type Dims = SmallVec<[usize; 4]>;

/// The most axes that an array has.
pub const MAX_RANK: usize = 128;

/// The size of an array along each axis.
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shape(pub Dims);

impl Clone for Shape {
    /// At once: what copies lists one element after the other is slow, and every node has shapes.
    fn clone(&self) -> Self {
        Shape(Dims::from_slice(&self.0))
    }
}

impl Shape {
    /// The shape of a scalar: no axes.
    pub fn scalar() -> Self {
        Self::default()
    }

    /// How many elements there are: the product of the sizes, 1 for a scalar. Of what is no array
    /// because it has too many, the largest number.
    pub fn size(&self) -> usize {
        if self.0.contains(&0) {
            return 0;
        }
        self.0.iter().fold(1, |n, &d| n.saturating_mul(d))
    }

    /// How many axes there are.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// An error where there are more axes than an array may have, [`MAX_RANK`].
    pub fn check_rank(&self, op: &'static str) -> Result<()> {
        check_rank(op, self.rank())
    }

    /// The element count, or an error where there are too many axes or the bytes of `dtype` would not
    /// fit an address space. An axis of size 0 counts as 1: strides have to be numbers, too.
    pub fn checked_size(&self, op: &'static str, dtype: DType) -> Result<usize> {
        self.check_rank(op)?;
        let bytes = self.0.iter().fold(dtype.size(), |n, &d| n.saturating_mul(d.max(1)));
        if bytes > isize::MAX as usize {
            return Err(Error::shape(
                op,
                format!("{dtype}{self:?} is larger than an address space"),
            ));
        }
        Ok(self.size())
    }

    /// The strides, in elements, of a row-major array of this shape.
    pub fn row_major(&self) -> SmallVec<[isize; 4]> {
        let mut strides = SmallVec::from_elem(0, self.rank());
        let mut step = 1isize;
        for axis in (0..self.rank()).rev() {
            strides[axis] = step;
            step = step.wrapping_mul(self.0[axis].max(1) as isize);
        }
        strides
    }

    /// The shape that this and `other` broadcast to, or an error naming `op` and both.
    pub fn broadcast(&self, other: &Shape, op: &'static str) -> Result<Shape> {
        if self == other {
            return Ok(self.clone());
        }
        let rank = self.rank().max(other.rank());
        let mut out = Dims::from_elem(1, rank);
        for (i, slot) in out.iter_mut().enumerate() {
            let size = |s: &Shape| (i + s.rank()).checked_sub(rank).map_or(1, |axis| s.0[axis]);
            *slot = match (size(self), size(other)) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => {
                    return Err(Error::shape(
                        op,
                        format!("shapes {self:?} and {other:?} do not broadcast"),
                    ));
                }
            };
        }
        Ok(Shape(out))
    }

    /// This shape without `axes`, which are sorted and unique.
    pub fn without(&self, axes: &[usize]) -> Shape {
        let kept = self.0.iter().enumerate().filter(|(i, _)| !axes.contains(i));
        Shape(kept.map(|(_, &d)| d).collect())
    }

    /// This shape with the size of `axis` replaced.
    pub fn with(&self, axis: usize, size: usize) -> Shape {
        let mut out = self.clone();
        out.0[axis] = size;
        out
    }
}

/// `axis`, which counts from the end when negative, as an index below `rank`.
pub fn normalize_axis(op: &'static str, axis: isize, rank: usize) -> Result<usize> {
    let index = if axis < 0 { axis + rank as isize } else { axis };
    if (0..rank as isize).contains(&index) {
        return Ok(index as usize);
    }
    Err(Error::index(op, format!("axis {axis} is out of range for an array of {rank} axes")))
}

/// `axes` sorted, from the start, and without repeats; a repeated axis is an error.
pub fn normalize_axes(op: &'static str, axes: &[isize], rank: usize) -> Result<Dims> {
    let mut out: Dims = axes.iter().map(|&a| normalize_axis(op, a, rank)).collect::<Result<_>>()?;
    out.sort_unstable();
    if out.windows(2).any(|w| w[0] == w[1]) {
        return Err(Error::argument(op, format!("axes {axes:?} repeat an axis")));
    }
    Ok(out)
}

/// The places from the first to the last of `size`, `dilation` apart, and the padding; `None` where
/// they are beyond an address space.
pub(crate) fn extent(size: usize, dilation: usize, padding: (usize, usize)) -> Option<usize> {
    let own = match size {
        0 => 0,
        n => (n - 1).checked_mul(dilation)?.checked_add(1)?,
    };
    own.checked_add(padding.0)?.checked_add(padding.1).filter(|&n| n <= isize::MAX as usize)
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0[..])
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0[..])
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Shape(Dims::from_slice(&dims))
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(dims: &[usize; N]) -> Self {
        Shape(Dims::from_slice(dims))
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Self {
        Shape(Dims::from_slice(dims))
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        Shape(dims.into_iter().collect())
    }
}

impl From<&Vec<usize>> for Shape {
    fn from(dims: &Vec<usize>) -> Self {
        Shape(Dims::from_slice(dims))
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Self {
        shape.clone()
    }
}

impl From<Dims> for Shape {
    fn from(dims: Dims) -> Self {
        Shape(dims)
    }
}

impl From<usize> for Shape {
    fn from(dim: usize) -> Self {
        Shape(Dims::from_slice(&[dim]))
    }
}

impl From<()> for Shape {
    fn from((): ()) -> Self {
        Shape::scalar()
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Self {
        Shape(iter.into_iter().collect())
    }
}

/// An error for more axes than an array may have, [`MAX_RANK`].
pub(crate) fn check_rank(op: &'static str, rank: usize) -> Result<()> {
    match rank {
        0..=MAX_RANK => Ok(()),
        rank => Err(Error::shape(op, format!("{rank} axes, where {MAX_RANK} are the most"))),
    }
}

/// What is known of an array before it is computed: its shape and dtype.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Aval {
    /// The size along each axis.
    pub shape: Shape,
    /// The type of the elements.
    pub dtype: DType,
}

impl Aval {
    /// An abstract value of `shape` and `dtype`.
    pub fn new(shape: impl Into<Shape>, dtype: DType) -> Self {
        Aval { shape: shape.into(), dtype }
    }

    /// The size in bytes when stored without gaps.
    pub fn bytes(&self) -> usize {
        self.shape.size().saturating_mul(self.dtype.size())
    }
}

impl fmt::Debug for Aval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

impl fmt::Display for Aval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

/// Where an array's elements lie in its buffer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    /// Elements between neighbours along each axis; 0 repeats, negative runs backwards.
    pub strides: SmallVec<[isize; 4]>,
    /// The buffer's element at index 0 along every axis.
    pub offset: isize,
}

impl Layout {
    /// The layout of a row-major array that starts its buffer.
    pub fn contiguous(shape: &Shape) -> Self {
        Layout { strides: shape.row_major(), offset: 0 }
    }

    /// The elements of the buffer from the first to the last that is reached; none where `shape` has
    /// none.
    pub fn reach(&self, shape: &[usize]) -> Range<isize> {
        if shape.contains(&0) {
            return self.offset..self.offset;
        }
        let (mut low, mut high) = (self.offset, self.offset);
        for (&d, &s) in shape.iter().zip(&self.strides) {
            let reach = (d as isize - 1) * s;
            low += reach.min(0);
            high += reach.max(0);
        }
        low..high + 1
    }

    /// Whether the elements lie in row-major order without gaps (axes of size 1 do not matter).
    pub fn is_contiguous(&self, shape: &Shape) -> bool {
        is_row_major(shape, &self.strides)
    }
}

/// Whether `strides` walk `shape` in row-major order without gaps.
pub fn is_row_major(shape: &[usize], strides: &[isize]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut step = 1isize;
    for (&d, &s) in shape.iter().zip(strides).rev() {
        if d != 1 {
            if s != step {
                return false;
            }
            step *= d as isize;
        }
    }
    true
}

/// Neighbouring axes that are one axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MergedAxes {
    /// How many elements they have.
    pub size: usize,
    /// The innermost of them: its strides are those of the whole.
    pub last: usize,
}

/// The axes of `shape`, as few as they can be for operands with these strides to be walked in
/// row-major order: neighbours that are one axis for every operand are merged, but none over the
/// start of an axis that is a `border`. Axes of size 1 are gone.
pub fn merge_axes<S: AsRef<[isize]>>(
    shape: &[usize],
    strides: &[S],
    border: impl Fn(usize) -> bool,
) -> SmallVec<[MergedAxes; 4]> {
    let mut merged: SmallVec<[MergedAxes; 4]> = SmallVec::new();
    let mut is_cut = true;
    for (axis, &size) in shape.iter().enumerate() {
        is_cut |= border(axis);
        if size == 1 {
            continue;
        }
        let continues = |outer: &MergedAxes| {
            strides.iter().map(S::as_ref).all(|s| {
                s[axis].checked_mul(size as isize).is_some_and(|whole| whole == s[outer.last])
            })
        };
        match merged.last_mut() {
            Some(outer) if !is_cut && continues(outer) => {
                *outer = MergedAxes { size: outer.size * size, last: axis };
            }
            _ => merged.push(MergedAxes { size, last: axis }),
        }
        is_cut = false;
    }
    merged
}

/// The strides under which a view of `from` with `strides` reads as shape `to`, if there are any:
/// the reshape of a view without a copy.
pub fn reshape_strides(
    from: &[usize],
    strides: &[isize],
    to: &[usize],
) -> Option<SmallVec<[isize; 4]>> {
    if from.contains(&0) || to.contains(&0) {
        return Some(Shape::from(to).row_major());
    }
    // Runs that are already gapless are handed out to the new axes.
    let runs = merge_axes(from, &[strides], |_| false);
    let mut out: SmallVec<[isize; 4]> = SmallVec::from_elem(0, to.len());
    let mut run = runs.len();
    let mut left = 1usize;
    let mut step = 1isize;
    for axis in (0..to.len()).rev() {
        if to[axis] == 1 {
            out[axis] = step;
            continue;
        }
        if left == 1 {
            run = run.checked_sub(1)?;
            (left, step) = (runs[run].size, strides[runs[run].last]);
        }
        if !left.is_multiple_of(to[axis]) {
            return None;
        }
        out[axis] = step;
        left /= to[axis];
        step *= to[axis] as isize;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let s = |d: &[usize]| Shape::from(d);
        assert_eq!(s(&[3, 1]).broadcast(&s(&[4]), "add").unwrap(), s(&[3, 4]));
        assert_eq!(s(&[]).broadcast(&s(&[2, 0]), "add").unwrap(), s(&[2, 0]));
        let error = s(&[3]).broadcast(&s(&[2, 4]), "add").unwrap_err().to_string();
        assert_eq!(error, "add: shapes [3] and [2, 4] do not broadcast");
    }

    #[test]
    fn reshapes_that_need_no_copy() {
        assert_eq!(reshape_strides(&[2, 3], &[3, 1], &[6]).unwrap()[..], [1]);
        assert_eq!(reshape_strides(&[2, 3], &[1, 2], &[6]), None);
        assert_eq!(reshape_strides(&[6], &[2], &[2, 3]).unwrap()[..], [6, 2]);
        assert_eq!(reshape_strides(&[4, 6], &[1, 4], &[2, 2, 6]).unwrap()[..], [2, 1, 4]);
        assert_eq!(reshape_strides(&[2, 3], &[0, 0], &[3, 2]).unwrap()[..], [0, 0]);
        assert_eq!(reshape_strides(&[1], &[7], &[1, 1]).map(|s| s.len()), Some(2));
    }

    #[test]
    fn axes_normalise() {
        assert_eq!(normalize_axes("sum", &[-1, 0], 3).unwrap()[..], [0, 2]);
        assert!(normalize_axes("sum", &[0, -3], 3).is_err());
        assert!(normalize_axis("sum", 3, 3).is_err());
    }
}
