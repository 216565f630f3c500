//! Matrix products.

use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::Dot;

use super::gemm::{Dim, Product, ResultAxes, Sizes, Source, Unit, product};
use super::view::{place, side_by_side, unflatten};
use super::{Draft, Missing, Program};
use crate::ir::{Target, Val};

/// An operand: a matrix for each batch.
struct Matrix<'a> {
    operand: &'a Operand,
    /// The axes of its own index and of the summed one.
    own: usize,
    depth: usize,
}

impl Source for Matrix<'_> {
    fn outer<'k>(&self, _: &'k Draft, batch: Val<'k>, index: Val<'k>) -> Vec<Val<'k>> {
        let strides = &self.operand.strides;
        let lead = strides.len() - 2;
        let batch = unflatten(batch, &self.operand.aval.shape[..lead]);
        let start = place(index.like(0), &batch, &strides[..lead]);
        vec![place(start, &[index], &strides[self.own..=self.own])]
    }

    fn inner<'k>(&self, _: &'k Draft, depth: Val<'k>) -> Vec<Val<'k>> {
        vec![place(depth.like(0), &[depth], &self.operand.strides[self.depth..=self.depth])]
    }

    fn place<'k>(
        &self,
        _: &'k Draft,
        outer: &[Val<'k>],
        inner: &[Val<'k>],
    ) -> (Val<'k>, Option<Val<'k>>) {
        (outer[0] + inner[0], None)
    }

    fn along_depth(&self) -> bool {
        let strides = &self.operand.strides;
        strides[self.depth].abs() <= strides[self.own].abs()
    }

    fn width(&self, most: u32) -> u32 {
        side_by_side(self.operand, if self.along_depth() { self.depth } else { self.own }, most)
    }
}

/// Multiplications below which a product takes no longer than it takes to begin.
const QUICK: u64 = 1 << 20;

/// Whether a library is not worth its launches: it leaves the epilogue to another one.
pub fn is_quick(dot: &Dot, segment: &Segment, target: &Target) -> bool {
    let a = &segment.inputs[0];
    let depth = a.aval.shape.last().copied().unwrap_or(0);
    let count = (segment.outputs[0].aval.shape.size() as u64).saturating_mul(depth as u64);
    Unit::rounds(a.aval.dtype, dot.accumulate, target) && count < QUICK
}

/// Adds the launches of a product of matrices.
pub fn dot(
    program: &mut Program,
    dot: &Dot,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let [a, b] = &segment.inputs[..2] else {
        return Err(Missing("a product of other than two operands".into()));
    };
    let out = &segment.outputs[0];
    let rank = out.aval.shape.rank();
    let (batch, matrix) = out.aval.shape.split_at(rank - 2);
    let sizes = Sizes {
        batch: batch.iter().product::<usize>() as u64,
        rows: matrix[0] as u64,
        columns: matrix[1] as u64,
        depth: a.aval.shape[rank - 1] as u64,
    };
    let axes = |range: std::ops::Range<usize>| -> Vec<Dim> {
        range.map(|axis| Dim::whole(axis, out.aval.shape[axis])).collect()
    };
    let result = ResultAxes {
        batch: axes(0..rank - 2),
        rows: axes(rank - 2..rank - 1),
        columns: axes(rank - 1..rank),
    };
    let product_of = Product {
        name: "matmul",
        sizes,
        operand: a.aval.dtype,
        accumulate: dot.accumulate,
        first: &Matrix { operand: a, own: rank - 2, depth: rank - 1 },
        second: &Matrix { operand: b, own: rank - 1, depth: rank - 2 },
        result,
    };
    product(program, &product_of, segment, target)
}
