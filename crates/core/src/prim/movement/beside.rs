//! Sums of arrays that are zeros but for a part: what comes back through the slices of a split.

use smallvec::SmallVec;

use super::Movement;
use crate::array::Array;
use crate::dtype::Scalar;
use crate::error::Result;
use crate::prim::record::zeros;
use crate::prim::{Constant, Op};
use crate::shape::{Aval, Dims, Shape};

/// An array among zeros: where it begins, and how many zeros come after it.
struct Part {
    array: Array,
    low: Dims,
    high: Dims,
}

impl Part {
    /// The part of what is still to be computed by padding with zeros.
    fn of(array: &Array) -> Option<Part> {
        let Op::Movement(Movement::Pad { low, high, interior }) = &array.node.op else {
            return None;
        };
        let inputs = array.node.state().inputs.clone();
        let [part, value] = &inputs[..] else { return None };
        let with_zeros =
            matches!(&value.node.op, Op::Constant(Constant { value: Scalar::Int(0), .. }));
        let whole = interior.iter().all(|&count| count == 0);
        (with_zeros && whole).then(|| Part {
            array: part.clone(),
            low: low.clone(),
            high: high.clone(),
        })
    }

    /// It, and what it was put together from along `axis` if nobody else has it.
    fn pieces(self, axis: usize) -> SmallVec<[Array; 4]> {
        if let Op::Movement(Movement::Concatenate { axis: along }) = &self.array.node.op
            && *along == axis
        {
            let inputs = self.array.node.state().inputs.clone();
            if !inputs.is_empty() {
                return inputs.into_iter().collect();
            }
        }
        SmallVec::from_iter([self.array])
    }
}

/// The sum of two arrays of one shape, each zeros but for a part, where the parts lie beside each other:
/// both, one after the other, among zeros.
pub(crate) fn beside(a: &Array, b: &Array) -> Result<Option<Array>> {
    let (Some(a), Some(b)) = (Part::of(a), Part::of(b)) else { return Ok(None) };
    let same = |i: usize| a.low[i] == b.low[i] && a.high[i] == b.high[i];
    let mut others = (0..a.low.len()).filter(|&i| !same(i));
    let (Some(axis), None) = (others.next(), others.next()) else { return Ok(None) };
    let (first, second) = if a.low[axis] < b.low[axis] { (a, b) } else { (b, a) };
    let size = |part: &Part| part.array.aval().shape[axis];
    if first.low[axis] + size(&first) != second.low[axis] {
        return Ok(None);
    }
    let (low, mut high) = (first.low.clone(), first.high.clone());
    high[axis] = second.high[axis];
    let mut pieces = first.pieces(axis);
    pieces.extend(second.pieces(axis));
    let pieces: SmallVec<[&Array; 4]> = pieces.iter().collect();
    let both = Array::apply(Movement::Concatenate { axis }, &pieces)?;
    if low.iter().chain(&high).all(|&count| count == 0) {
        return Ok(Some(both));
    }
    let nothing = zeros(&Aval { shape: Shape::scalar(), dtype: both.dtype() });
    let interior = Dims::from_elem(0, low.len());
    Array::apply(Movement::Pad { low, high, interior }, &[&both, &nothing]).map(Some)
}
