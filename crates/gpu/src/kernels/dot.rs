//! Matrix products.

use cupola_core::backend::{Body, Instr, Operand, Reg, Segment};
use cupola_core::prim::{Binary, Cast, Dot, Elementwise, ReduceKind};
use cupola_core::{Aval, Shape};
use smallvec::SmallVec;

use super::gemm::{Addresses, Dim, Product, ResultAxes, Sizes, Source, Unit, product};
use super::reduce::{Folded, reduce};
use super::view::{place, side_by_side, unflatten};
use super::{Draft, Missing, Program};
use crate::ir::{Divisor, Target, Ty, Val};

/// An operand: a matrix for each batch.
struct Matrix<'a> {
    operand: &'a Operand,
    /// The axes of its own index and of the summed one.
    own: usize,
    depth: usize,
}

/// It in a kernel.
struct MatrixAddresses<'k> {
    batch: Vec<Divisor<'k>>,
    /// The strides along the batch, and along the operand's own index and the summed axis.
    batch_strides: Vec<Val<'k>>,
    own: Val<'k>,
    depth: Val<'k>,
}

impl<'k> Addresses<'k> for MatrixAddresses<'k> {
    fn outer(&self, batch: Val<'k>, index: Val<'k>) -> Vec<Val<'k>> {
        let batch = unflatten(batch, &self.batch);
        let start = place(index.like(0), &batch, &self.batch_strides);
        vec![place(start, &[index], &[self.own])]
    }

    fn inner(&self, depth: Val<'k>) -> Vec<Val<'k>> {
        vec![place(depth.like(0), &[depth], &[self.depth])]
    }

    fn place(&self, outer: &[Val<'k>], inner: &[Val<'k>]) -> (Val<'k>, Option<Val<'k>>) {
        (outer[0] + inner[0], None)
    }
}

impl Source for Matrix<'_> {
    fn bind<'k>(&'k self, k: &'k Draft) -> Box<dyn Addresses<'k> + 'k> {
        let (sizes, strides) = (&self.operand.aval.shape, k.strides(&self.operand.strides));
        let lead = strides.len() - 2;
        Box::new(MatrixAddresses {
            batch: k.divisors(&sizes[..lead]),
            own: strides[self.own],
            depth: strides[self.depth],
            batch_strides: strides[..lead].to_vec(),
        })
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

/// Whether one side is a vector: the matrix is read once, and there is nothing to share.
pub fn is_vector(dot: &Dot, segment: &Segment) -> bool {
    let [.., rows, columns] = segment.outputs[0].aval.shape[..] else { return false };
    let depth = segment.inputs[0].aval.shape.last();
    let registers = [dot.accumulate, dot.result].map(Ty::of);
    rows.min(columns) == 1
        && depth.is_some_and(|&depth| depth > 0)
        && [dot.accumulate, dot.result].iter().all(|dtype| dtype.is_float())
        && registers[0] == registers[1]
}

/// The product of a matrix and a vector, or of as many as there are in a batch, as the sum that it is.
fn by_vector(
    program: &mut Program,
    dot: &Dot,
    segment: &Segment,
    target: &Target,
) -> Result<(), Missing> {
    let out = &segment.outputs[0].aval.shape;
    let (rank, depth) = (out.rank(), segment.inputs[0].aval.shape[out.rank() - 1]);
    // Along the batch, rows, columns and the summed axis.
    let shape = Shape::from([&out[..], &[depth]].concat());
    let dtype = segment.inputs[0].aval.dtype;
    let factor = |operand: &Operand, own: usize, summed: usize| {
        let mut strides = SmallVec::from_slice(&operand.strides[..rank - 2]);
        strides.extend([0, 0, operand.strides[summed]]);
        strides[own] = operand.strides[own];
        Operand { aval: Aval { shape: shape.clone(), dtype }, strides }
    };
    let [a, b] = [&segment.inputs[0], &segment.inputs[1]];
    let (row, column) = (rank - 2, rank - 1);
    let inputs = vec![factor(a, row, column), factor(b, column, row)];
    let instr = |op, args: &[Reg]| Instr {
        op,
        args: args.iter().copied().collect(),
        dtype: dot.accumulate,
    };
    let cast = |arg| instr(Elementwise::Cast(Cast { to: dot.accumulate }), &[arg]);
    let product = |args: [Reg; 2]| instr(Elementwise::Binary(Binary::Mul), &args);
    let code = match dtype == dot.accumulate {
        true => vec![product([0, 1])],
        false => vec![cast(0), cast(1), product([2, 3])],
    };
    let last = (code.len() + 1) as Reg;
    let (inputs_of, scalars) = (vec![dtype; 2], Vec::new());
    let body = Body { shape: shape.clone(), inputs: inputs_of, scalars, code, outputs: vec![last] };
    let work = Folded {
        name: "matvec",
        body: &body,
        kind: ReduceKind::Sum,
        axes: &[rank],
        dtype: dot.accumulate,
        inputs,
    };
    reduce(program, &work, segment, target)
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
    if is_vector(dot, segment) {
        return by_vector(program, dot, segment, target);
    }
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
