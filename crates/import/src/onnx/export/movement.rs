//! Movement as operators.

use cupola_core::prim::Movement;
use cupola_core::{Aval, DType};

use super::{Attr, Exporter, ints};
use crate::onnx::error::Fault;

/// So many numbers a list of places may have.
const MOST_PLACES: usize = 1 << 24;

impl Exporter {
    pub(super) fn movement(
        &mut self,
        movement: &Movement,
        names: &[&str],
        avals: &[&Aval],
        out: &Aval,
    ) -> Result<String, Fault> {
        let x = names[0];
        Ok(match movement {
            Movement::Reshape(_)
            | Movement::Flatten { .. }
            | Movement::Unflatten { .. }
            | Movement::Squeeze(_)
            | Movement::ExpandDims(_) => self.reshape(x, &out.shape),
            Movement::Transpose(axes) => self.transpose(x, axes),
            Movement::Broadcast(shape) => self.expand(x, shape),
            Movement::Flip(axes) => self.flip(x, axes),
            Movement::Slice { start, sizes, strides } => {
                let end = |axis: usize| match sizes[axis] {
                    0 => start[axis],
                    n => start[axis] + (n - 1) * strides[axis] + 1,
                };
                let ends: Vec<usize> = (0..sizes.len()).map(end).collect();
                let axes: Vec<usize> = (0..sizes.len()).collect();
                let [start, ends, axes, steps] = [&start[..], &ends[..], &axes[..], &strides[..]]
                    .map(|list| self.list(&ints(list)));
                self.op("Slice", &[x, &start, &ends, &axes, &steps])
            }
            Movement::SliceUpdate { start, strides } => {
                let shape = &avals[1].shape;
                if shape.size().saturating_mul(shape.rank()) > MOST_PLACES {
                    return Err(Fault::unsupported(format!("of {} is too large", avals[1])));
                }
                let mut places = Vec::with_capacity(shape.size() * shape.rank());
                for element in 0..shape.size() {
                    let mut rest = element;
                    let mut place = vec![0; shape.rank()];
                    for axis in (0..shape.rank()).rev() {
                        place[axis] = (start[axis] + rest % shape[axis] * strides[axis]) as i64;
                        rest /= shape[axis];
                    }
                    places.extend(place);
                }
                let list = self.list(&places);
                let indices: Vec<usize> = shape.iter().copied().chain([shape.rank()]).collect();
                let indices = self.reshape(&list, &indices);
                self.op("ScatterND", &[x, &indices, names[1]])
            }
            Movement::Pad { low, high, interior } => {
                if interior.iter().any(|&n| n > 0) {
                    return Err(Fault::unsupported("between neighbours has no operator"));
                }
                let pads: Vec<i64> = ints(low).into_iter().chain(ints(high)).collect();
                let pads = self.list(&pads);
                self.op("Pad", &[x, &pads, names[1]])
            }
            Movement::Concatenate { axis } => {
                self.with("Concat", names, &[("axis", Attr::Int(*axis as i64))])
            }
        })
    }

    /// The order along some axes reversed.
    pub(super) fn flip(&mut self, x: &str, axes: &[usize]) -> String {
        if axes.is_empty() {
            return x.to_owned();
        }
        let same = |value: i64| vec![value; axes.len()];
        let [start, ends, axes, steps] =
            [same(-1), same(i64::MIN), ints(axes), same(-1)].map(|list| self.list(&list));
        self.op("Slice", &[x, &start, &ends, &axes, &steps])
    }

    /// Integers as indices.
    pub(super) fn indices(&mut self, x: &str, aval: &Aval) -> String {
        if aval.dtype == DType::I64 { x.to_owned() } else { self.cast(x, DType::I64) }
    }
}
