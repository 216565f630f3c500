//! Products as cuBLASLt takes them: which matrices are transposed, and what a batch is.

use cupola_core::backend::{Kernel, Operand, Segment};
use cupola_core::precision::MatmulPrecision;
use cupola_core::prim::{Conv, ConvRole, Dot, KernelOp};
use cupola_core::{Aval, DType, is_row_major};
use smallvec::SmallVec;

/// How often a product may be asked for where one batch axis is not enough.
const LOOPS: usize = 64;

/// A matrix as it lies in memory, by columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Matrix {
    /// Which region: an input's number, or 2 for the output.
    pub region: usize,
    /// The length of a column.
    pub rows: usize,
    /// How many columns there are.
    pub columns: usize,
    /// Elements between columns.
    pub step: usize,
    /// Elements between the matrices of a batch.
    pub batch: usize,
    /// Whether the product takes it with rows and columns exchanged.
    pub is_transposed: bool,
}

/// A product of batches of matrices, some times over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    /// The dtype of the operands.
    pub from: DType,
    /// The dtype of the result.
    pub to: DType,
    /// Whether factors may be rounded to TF32.
    pub tf32: bool,
    /// The factors and the result, which is never transposed.
    pub matrices: [Matrix; 3],
    /// How many matrices are in a batch.
    pub count: usize,
    /// Whether a row of the result is a column of the library's.
    pub lies_by_rows: bool,
    /// What is done with it before it is rounded.
    pub beside: Beside,
    /// Where each batch starts in the regions of the inputs and of the output, in elements.
    pub starts: Vec<[usize; 3]>,
}

/// What the library does with a product, in this order, before it rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Beside {
    /// An array is added, which lies as the result does.
    pub array: bool,
    /// A row is added to each row.
    pub row: bool,
    /// What is below zero becomes zero.
    pub least: bool,
}

/// An operand's axes: its own two, and how far a step along each batch axis goes.
#[derive(Clone, Copy, Debug)]
struct Faces {
    sizes: [usize; 2],
    strides: [usize; 2],
}

/// How a matrix lies: by rows or by columns, and how far they are from each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Lie {
    by_rows: bool,
    step: usize,
}

impl Faces {
    /// How it lies, if one of its axes is dense; by rows where both ways hold.
    fn lie(&self) -> Option<Lie> {
        let ([rows, columns], [down, across]) = (self.sizes, self.strides);
        let step = |inner: usize, dense: usize, outer: usize, far: usize| {
            let is_dense = inner == 1 || dense == 1;
            let step = if outer == 1 { inner } else { far };
            (is_dense && step >= inner).then_some(step)
        };
        let by_rows = step(columns, across, rows, down);
        let by_columns = || step(rows, down, columns, across);
        match by_rows {
            Some(step) => Some(Lie { by_rows: true, step }),
            None => by_columns().map(|step| Lie { by_rows: false, step }),
        }
    }
}

impl Product {
    /// The product of a segment, if the library can take it as it lies in memory.
    pub fn of(dot: &Dot, segment: &Segment) -> Option<Product> {
        let from = segment.inputs[0].aval.dtype;
        let sums = match from {
            DType::F16 | DType::BF16 | DType::F32 => DType::F32,
            DType::F64 => DType::F64,
            _ => return None,
        };
        let results = dot.result == from || dot.result == sums;
        if dot.accumulate != sums || !results {
            return None;
        }
        let operands = [&segment.inputs[0], &segment.inputs[1], &segment.outputs[0]];
        let rank = operands[0].aval.shape.rank();
        let strides: Vec<Vec<usize>> = (operands.iter())
            .map(|o| o.strides.iter().map(|&s| usize::try_from(s).ok()).collect())
            .collect::<Option<_>>()?;
        let mut faces: Vec<Faces> = (operands.iter().zip(&strides))
            .map(|(o, s)| Faces {
                sizes: [o.aval.shape[rank - 2], o.aval.shape[rank - 1]],
                strides: [s[rank - 2], s[rank - 1]],
            })
            .collect();
        // The library takes no batches for one.
        if operands.iter().any(|o| o.aval.shape.contains(&0)) {
            return None;
        }
        let sizes = &operands[2].aval.shape[..rank - 2];
        let mut axes = joined(sizes, &strides);
        fold_rows(&mut axes, &mut faces);
        let (count, steps, starts) = batches(axes)?;
        let lies = faces.iter().map(Faces::lie).collect::<Option<Vec<_>>>()?;
        let matrix = |region: usize, by_rows_is_plain: bool| {
            let (face, lie) = (&faces[region], lies[region]);
            let [rows, columns] = match lie.by_rows {
                true => [face.sizes[1], face.sizes[0]],
                false => face.sizes,
            };
            let is_transposed = lie.by_rows != by_rows_is_plain;
            Matrix { region, rows, columns, step: lie.step, batch: steps[region], is_transposed }
        };
        // By columns a result that lies by rows is transposed, and so are the factors, exchanged.
        let matrices = match lies[2].by_rows {
            true => [matrix(1, true), matrix(0, true), matrix(2, true)],
            false => [matrix(0, false), matrix(1, false), matrix(2, false)],
        };
        let tf32 = from == DType::F32 && dot.precision == MatmulPrecision::Tf32;
        let (lies_by_rows, beside) = (lies[2].by_rows, Beside::default());
        Some(Product { from, to: dot.result, tf32, matrices, count, lies_by_rows, beside, starts })
    }

    /// The product that a convolution is that looks at one place at a time.
    pub fn of_convolution(conv: &Conv, segment: &Segment) -> Option<Product> {
        let is_product = conv.role == ConvRole::Forward
            && conv.groups == 1
            && conv.kernel.iter().chain(&conv.stride).all(|&size| size == 1)
            && conv.input_dilation.iter().all(|&step| step == 1)
            && conv.padding.iter().all(|&sides| sides == (0, 0));
        let [x, w, ..] = &segment.inputs[..] else { return None };
        let out = &segment.outputs[0];
        // Places follow each other as rows do.
        let is_dense = |o: &Operand| is_row_major(&o.aval.shape, &o.strides);
        if !is_product || !is_dense(x) || !is_dense(out) {
            return None;
        }
        let (&[outputs, .., inputs], &[across, .., down]) = (&w.aval.shape[..], &w.strides[..])
        else {
            return None;
        };
        let places = out.aval.shape.size() / outputs.max(1);
        let matrix = |rows: usize, columns: usize, strides: [isize; 2], of: &Operand| Operand {
            aval: Aval::new(&[rows, columns][..], of.aval.dtype),
            strides: SmallVec::from_slice(&strides),
        };
        let dot =
            Dot { accumulate: conv.accumulate, result: conv.result, precision: conv.precision };
        let segment = Segment {
            kernel: Kernel::Op(KernelOp::Dot(dot)),
            inputs: vec![
                matrix(places, inputs, [inputs as isize, 1], x),
                matrix(inputs, outputs, [down, across], w),
            ],
            outputs: vec![matrix(places, outputs, [outputs as isize, 1], out)],
            scalars: Vec::new(),
            epilogue: None,
        };
        Product::of(&dot, &segment)
    }

    /// The largest power of two, up to 256, that divides the places of all matrices in bytes,
    /// where the regions start at these places.
    pub fn alignment(&self, places: [u64; 3]) -> u32 {
        let sizes = [self.from.size(), self.from.size(), self.to.size()].map(|s| s as u64);
        let mut bits = 256;
        for matrix in &self.matrices {
            bits |= places[matrix.region] | (matrix.batch as u64 * sizes[matrix.region]);
        }
        for start in &self.starts {
            start.iter().zip(sizes).for_each(|(&s, size)| bits |= s as u64 * size);
        }
        1 << bits.trailing_zeros()
    }
}

/// A batch axis: its size, and the steps of the three operands.
type Axis = (usize, [usize; 3]);

/// The batch axes, those of size 1 left out, and neighbours joined that all operands walk as one.
fn joined(sizes: &[usize], strides: &[Vec<usize>]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for (axis, &size) in sizes.iter().enumerate().filter(|(_, size)| **size != 1) {
        let own = [strides[0][axis], strides[1][axis], strides[2][axis]];
        match axes.last_mut().filter(|(_, outer)| *outer == own.map(|s| s * size)) {
            Some(last) => *last = (last.0 * size, own),
            None => axes.push((size, own)),
        }
    }
    axes
}

/// Takes batch axes along which the second factor repeats as more rows of the first.
fn fold_rows(axes: &mut Vec<Axis>, faces: &mut [Faces]) {
    while let Some(&(size, [first, second, out])) = axes.last() {
        let rows = faces[0].sizes[0];
        let follows = |face: &Faces, step: usize| rows == 1 || step == face.strides[0] * rows;
        if second != 0 || !follows(&faces[0], first) || !follows(&faces[2], out) {
            return;
        }
        for (face, step) in [(0, first), (2, out)] {
            if rows == 1 {
                faces[face].strides[0] = step;
            }
            faces[face].sizes[0] = rows * size;
        }
        axes.pop();
    }
}

/// A batch, its steps, and where the batches start.
type Batches = (usize, [usize; 3], Vec<[usize; 3]>);

/// The longest axis as a batch, the others as starts.
fn batches(mut axes: Vec<Axis>) -> Option<Batches> {
    let longest = (0..axes.len()).max_by_key(|&axis| axes[axis].0);
    let (count, steps) = longest.map_or((1, [0; 3]), |axis| axes.remove(axis));
    if axes.iter().map(|axis| axis.0).product::<usize>() > LOOPS {
        return None;
    }
    let mut starts = vec![[0; 3]];
    for (size, steps) in axes {
        starts = (starts.iter())
            .flat_map(|start| {
                (0..size).map(move |i| [0, 1, 2].map(|operand| start[operand] + i * steps[operand]))
            })
            .collect();
    }
    Some((count, steps, starts))
}

#[cfg(test)]
mod tests {
    use cupola_core::backend::{Kernel, Operand, Segment};
    use cupola_core::prim::{Dot, KernelOp};
    use cupola_core::{Aval, DType};

    use super::{Matrix, Product};

    fn operand(shape: &[usize], strides: &[isize]) -> Operand {
        let aval = Aval { shape: shape.iter().copied().collect(), dtype: DType::F32 };
        Operand { aval, strides: strides.into() }
    }

    fn dense(shape: &[usize]) -> Operand {
        let aval = Aval { shape: shape.iter().copied().collect(), dtype: DType::F32 };
        Operand::contiguous(&aval)
    }

    fn segment(a: Operand, b: Operand, out: Operand) -> Segment {
        Segment {
            kernel: Kernel::Op(KernelOp::Dot(Dot::of(DType::F32))),
            inputs: vec![a, b],
            outputs: vec![out],
            scalars: Vec::new(),
            epilogue: None,
        }
    }

    fn at(operand: &Operand, index: &[usize]) -> usize {
        index.iter().zip(&operand.strides).map(|(&i, &s)| i * s as usize).sum()
    }

    /// Reads and writes exactly what the product of the segment does.
    fn follows(segment: &Segment) -> Product {
        let product = Product::of(&Dot::of(DType::F32), segment).expect("a product");
        let [a, b, out] = [&segment.inputs[0], &segment.inputs[1], &segment.outputs[0]];
        let rank = out.strides.len();
        let inner = a.aval.shape[rank - 1];
        let element = |m: &Matrix, row: usize, column: usize| match m.is_transposed {
            true => column + row * m.step,
            false => row + column * m.step,
        };
        let mut own = Vec::new();
        for start in &product.starts {
            for batch in 0..product.count {
                let [l, r, d] = &product.matrices;
                let base = |m: &Matrix| start[m.region] + batch * m.batch;
                let columns = d.columns;
                for (row, column) in (0..d.rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                    let mut terms: Vec<[usize; 2]> = (0..inner)
                        .map(|k| {
                            let (x, y) =
                                (base(l) + element(l, row, k), base(r) + element(r, k, column));
                            if l.region == 0 { [x, y] } else { [y, x] }
                        })
                        .collect();
                    terms.sort_unstable();
                    own.push((base(d) + element(d, row, column), terms));
                }
            }
        }
        let mut want = Vec::new();
        for flat in 0..out.aval.shape.size() {
            let mut index = vec![0; rank];
            let mut left = flat;
            for axis in (0..rank).rev() {
                index[axis] = left % out.aval.shape[axis];
                left /= out.aval.shape[axis];
            }
            let mut terms: Vec<[usize; 2]> = (0..inner)
                .map(|k| {
                    let (mut x, mut y) = (index.clone(), index.clone());
                    (x[rank - 1], y[rank - 2]) = (k, k);
                    [at(a, &x), at(b, &y)]
                })
                .collect();
            terms.sort_unstable();
            want.push((at(out, &index), terms));
        }
        own.sort_unstable();
        want.sort_unstable();
        assert_eq!(own, want);
        product
    }

    #[test]
    fn every_direction_is_taken() {
        for a in [operand(&[3, 5], &[5, 1]), operand(&[3, 5], &[1, 3]), operand(&[3, 5], &[7, 1])] {
            for b in [operand(&[5, 4], &[4, 1]), operand(&[5, 4], &[1, 6])] {
                for out in [dense(&[3, 4]), operand(&[3, 4], &[1, 3])] {
                    follows(&segment(a.clone(), b.clone(), out));
                }
            }
        }
    }

    #[test]
    fn vectors_are_matrices() {
        follows(&segment(operand(&[1, 5], &[0, 1]), dense(&[5, 4]), dense(&[1, 4])));
        follows(&segment(operand(&[3, 1], &[2, 0]), dense(&[1, 4]), dense(&[3, 4])));
        follows(&segment(operand(&[1, 5], &[9, 3]), operand(&[5, 1], &[1, 1]), dense(&[1, 1])));
    }

    #[test]
    fn batches_are_joined_folded_or_looped_over() {
        let whole =
            follows(&segment(dense(&[2, 3, 4, 5]), dense(&[2, 3, 5, 6]), dense(&[2, 3, 4, 6])));
        assert_eq!((whole.count, whole.starts.len()), (6, 1));
        let b = operand(&[2, 3, 5, 6], &[0, 0, 6, 1]);
        let folded = follows(&segment(dense(&[2, 3, 4, 5]), b, dense(&[2, 3, 4, 6])));
        assert_eq!((folded.count, folded.starts.len()), (1, 1));
        // Heads within rows, as attention has them.
        let heads = operand(&[2, 3, 4, 5], &[60, 5, 15, 1]);
        let looped = follows(&segment(heads, dense(&[2, 3, 5, 6]), dense(&[2, 3, 4, 6])));
        assert_eq!((looped.count, looped.starts.len()), (3, 2));
        let repeated = operand(&[3, 4, 5], &[0, 5, 1]);
        follows(&segment(repeated, dense(&[3, 5, 6]), dense(&[3, 4, 6])));
    }

    #[test]
    fn what_is_dense_nowhere_is_left_to_others() {
        let refused = |a: Operand, b: Operand, out: Operand| {
            assert_eq!(Product::of(&Dot::of(DType::F32), &segment(a, b, out)), None);
        };
        refused(operand(&[3, 5], &[10, 2]), dense(&[5, 4]), dense(&[3, 4]));
        refused(operand(&[3, 5], &[0, 1]), dense(&[5, 4]), dense(&[3, 4]));
        refused(operand(&[3, 5], &[-5, 1]), dense(&[5, 4]), dense(&[3, 4]));
        refused(dense(&[3, 0]), dense(&[0, 4]), dense(&[3, 4]));
        refused(dense(&[0, 3, 5]), dense(&[0, 5, 4]), dense(&[0, 3, 4]));
        let repeated = operand(&[0, 2, 3, 5], &[0, 0, 5, 1]);
        refused(repeated, dense(&[0, 2, 5, 4]), dense(&[0, 2, 3, 4]));
    }

    #[test]
    fn alignment_is_that_of_every_matrix() {
        let product = follows(&segment(dense(&[3, 4, 5]), dense(&[3, 5, 8]), dense(&[3, 4, 8])));
        assert_eq!(product.alignment([0, 256, 512]), 16);
        assert_eq!(product.alignment([4, 256, 512]), 4);
    }
}
