//! Convolutions as cuDNN takes them: channels are its second axis, whatever comes last in memory.

use cupola_core::DType;
use cupola_core::backend::{Operand, Segment};
use cupola_core::prim::{Conv, ConvRole};

/// Fewer channels leave most of a matrix unit empty: our own kernels waste less. Of half types, and of others.
const FEWEST_CHANNELS: [usize; 2] = [16, 32];
/// Multiplications from which few channels are filled up, where places lie apart that overlap: our own kernels read
/// what overlaps again and again.
const WORTHWHILE: usize = 1 << 28;

/// An operand: sizes and steps of its axes, in the library's order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tensor {
    /// Images or output channels, channels, rows, columns.
    pub sizes: [i64; 4],
    /// Elements between neighbours.
    pub steps: [i64; 4],
}

/// A convolution that the library can take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Which operand is computed.
    pub role: ConvRole,
    /// The dtype of all three operands.
    pub dtype: DType,
    /// x, w and y.
    pub tensors: [Tensor; 3],
    /// Steps between outputs.
    pub stride: [i64; 2],
    /// Zeros on each side.
    pub padding: [i64; 2],
    /// Steps between kernel elements.
    pub dilation: [i64; 2],
    /// The inputs that do not lie so, and have to be put in order first.
    pub unordered: [bool; 2],
    /// How many channels x and w are given by zeros; none where they have enough.
    pub filled: Option<usize>,
}

impl Geometry {
    /// The convolution of a segment, if it is one that the library does well. `tf32` says whether
    /// factors of `float32` may be rounded.
    pub fn of(conv: &Conv, segment: &Segment, tf32: bool) -> Option<Geometry> {
        let dtype = segment.inputs[0].aval.dtype;
        let unit = match dtype {
            DType::F16 | DType::BF16 => 8,
            DType::F32 if tf32 => 4,
            _ => return None,
        };
        let is_plain = conv.groups == 1
            && !conv.flip
            && conv.input_dilation.iter().all(|&step| step == 1)
            && conv.padding.iter().all(|(low, high)| low == high)
            && conv.accumulate == DType::F32
            && conv.result == dtype;
        let (a, b, out) = (segment.inputs.first()?, segment.inputs.get(1)?, &segment.outputs[0]);
        // What the library makes of nothing is not said.
        if [a, b, out].iter().any(|o| o.aval.shape.contains(&0)) {
            return None;
        }
        let [x, w, y] = conv.role.arranged([a, b, out]);
        let own = |o: &Operand| tensor(o, *o.aval.shape.last()?);
        let mut tensors = [own(x)?, own(w)?, own(y)?];
        if !is_dense(out) {
            return None;
        }
        let fewest = FEWEST_CHANNELS[usize::from(dtype == DType::F32)];
        let fits = |channels: usize| channels >= fewest && channels.is_multiple_of(unit);
        let [channels, outputs] = [x, y].map(|o| o.aval.shape[3]);
        let filled =
            (!fits(channels) && channels <= unit && is_worth_filling(conv, w, y)).then_some(unit);
        (is_plain && (filled.is_some() || fits(channels)) && fits(outputs)).then_some(())?;
        if let Some(count) = filled {
            tensors = [tensor(x, count)?, tensor(w, count)?, tensors[2]];
        }
        let padding: Vec<usize> = conv.padding.iter().map(|sides| sides.0).collect();
        Some(Geometry {
            role: conv.role,
            dtype,
            tensors,
            stride: pair(&conv.stride)?,
            padding: pair(&padding)?,
            dilation: pair(&conv.dilation)?,
            unordered: [a, b].map(|o| filled.is_some() || !is_dense(o)),
            filled,
        })
    }

    /// Which of x, w and y the two inputs and the output are.
    pub fn order(&self) -> [usize; 3] {
        self.role.arranged([0, 1, 2])
    }
}

fn pair(values: &[usize]) -> Option<[i64; 2]> {
    let &[rows, columns] = values else { return None };
    Some([i64::try_from(rows).ok()?, i64::try_from(columns).ok()?])
}

/// Whether an operand lies in order.
fn is_dense(operand: &Operand) -> bool {
    let shape = &operand.aval.shape;
    (operand.strides.iter().zip(&shape.row_major()).zip(&shape[..]))
        .all(|((step, dense), &size)| size == 1 || step == dense)
}

/// Whether kernels overlap at places that lie apart, and there is much to do.
fn is_worth_filling(conv: &Conv, w: &Operand, y: &Operand) -> bool {
    let work = w.aval.shape[1..].iter().chain(&y.aval.shape[..]);
    // Of words four are a unit: the library was seen to take longer than our own kernels.
    conv.role == ConvRole::Forward
        && conv.result != DType::F32
        && conv.stride.iter().zip(&conv.kernel).any(|(&stride, &size)| stride > 1 && size > stride)
        && work.fold(1, |all: usize, &size| all.saturating_mul(size)) >= WORTHWHILE
}

/// An operand of four axes as it lies in order, with so many channels, which come last; small enough for offsets of
/// 32 bits.
fn tensor(operand: &Operand, channels: usize) -> Option<Tensor> {
    let &[first, rows, columns, _] = &operand.aval.shape[..] else { return None };
    let size = first.checked_mul(rows)?.checked_mul(columns)?.checked_mul(channels)?;
    (size > 0 && size <= i32::MAX as usize).then_some(())?;
    let [f, r, c, l] = [first, rows, columns, channels].map(|size| size as i64);
    Some(Tensor { sizes: [f, l, r, c], steps: [r * c * l, 1, c * l, l] })
}

#[cfg(test)]
mod tests {
    use cupola_core::backend::{Kernel, Operand, Segment};
    use cupola_core::precision::MatmulPrecision;
    use cupola_core::prim::{Conv, ConvRole, KernelOp};
    use cupola_core::{Aval, DType};
    use smallvec::smallvec;

    use super::{Geometry, Tensor};

    fn conv(role: ConvRole, dtype: DType) -> Conv {
        Conv {
            role,
            input: smallvec![56, 28],
            kernel: smallvec![3, 3],
            stride: smallvec![1, 1],
            padding: vec![(1, 1), (1, 1)],
            dilation: smallvec![1, 1],
            input_dilation: smallvec![1, 1],
            groups: 1,
            flip: false,
            accumulate: DType::F32,
            precision: MatmulPrecision::Full,
            result: dtype,
        }
    }

    fn segment(conv: &Conv, shapes: [[usize; 4]; 3], dtype: DType) -> Segment {
        let dense = |shape: &[usize; 4]| Operand::contiguous(&Aval::new(&shape[..], dtype));
        Segment {
            kernel: Kernel::Op(KernelOp::Conv(Box::new(conv.clone()))),
            inputs: shapes[..2].iter().map(dense).collect(),
            outputs: vec![dense(&shapes[2])],
            scalars: Vec::new(),
            epilogue: None,
        }
    }

    const X: [usize; 4] = [16, 56, 28, 32];
    const W: [usize; 4] = [64, 3, 3, 32];
    const Y: [usize; 4] = [16, 56, 28, 64];

    #[test]
    fn channels_come_second() {
        for (role, shapes, order) in [
            (ConvRole::Forward, [X, W, Y], [0, 1, 2]),
            (ConvRole::InputGrad, [Y, W, X], [2, 1, 0]),
            (ConvRole::WeightGrad, [X, Y, W], [0, 2, 1]),
        ] {
            let conv = conv(role, DType::BF16);
            let segment = segment(&conv, shapes, DType::BF16);
            let Some(found) = Geometry::of(&conv, &segment, false) else {
                panic!("{role:?} is refused");
            };
            let x = Tensor { sizes: [16, 32, 56, 28], steps: [56 * 28 * 32, 1, 28 * 32, 32] };
            let w = Tensor { sizes: [64, 32, 3, 3], steps: [9 * 32, 1, 3 * 32, 32] };
            assert_eq!(found.tensors[..2], [x, w]);
            assert_eq!(found.tensors[2].sizes, [16, 64, 56, 28]);
            assert_eq!((found.order(), found.padding), (order, [1, 1]));
        }
    }

    #[test]
    fn what_the_library_does_no_better_is_left_to_our_kernels() {
        let plain = conv(ConvRole::Forward, DType::F32);
        let is_taken = |conv: &Conv, shapes, dtype, tf32| {
            Geometry::of(conv, &segment(conv, shapes, dtype), tf32).is_some()
        };
        assert!(is_taken(&plain, [X, W, Y], DType::F32, true));
        assert!(!is_taken(&plain, [X, W, Y], DType::F32, false));
        assert!(!is_taken(&conv(ConvRole::Forward, DType::F64), [X, W, Y], DType::F64, true));
        for other in [
            Conv { groups: 2, ..plain.clone() },
            Conv { flip: true, ..plain.clone() },
            Conv { padding: vec![(1, 1), (0, 2)], ..plain.clone() },
            Conv { input_dilation: smallvec![2, 1], ..plain.clone() },
        ] {
            assert!(!is_taken(&other, [X, W, Y], DType::F32, true), "{other:?}");
        }
        let few = [[16, 56, 28, 20], [64, 3, 3, 20], Y];
        assert!(!is_taken(&plain, few, DType::F32, true));
        assert!(!is_taken(&conv(ConvRole::Forward, DType::F16), few, DType::F16, true));
        let half = [[16, 56, 28, 16], [64, 3, 3, 16], Y];
        assert!(!is_taken(&plain, half, DType::F32, true));
        assert!(is_taken(&conv(ConvRole::Forward, DType::F16), half, DType::F16, true));
        let odd = [[16, 56, 28, 36], [64, 3, 3, 36], Y];
        assert!(is_taken(&plain, odd, DType::F32, true));
        assert!(!is_taken(&conv(ConvRole::Forward, DType::F16), odd, DType::F16, true));
        let none = [[0, 56, 28, 32], W, [0, 56, 28, 64]];
        assert!(!is_taken(&plain, none, DType::F32, true));
        let mut view = segment(&plain, [X, W, Y], DType::F32);
        view.outputs[0].strides[0] *= 2;
        assert_eq!(Geometry::of(&plain, &view, true), None);
    }

    #[test]
    fn few_channels_are_filled_where_places_lie_apart_that_overlap() {
        let apart = Conv { stride: smallvec![2, 2], ..conv(ConvRole::Forward, DType::BF16) };
        let [x, w, y] = [[64, 224, 224, 3], [64, 3, 3, 3], [64, 112, 112, 64]];
        let of =
            |conv: &Conv, shapes| Geometry::of(conv, &segment(conv, shapes, DType::BF16), false);
        let found = of(&apart, [x, w, y]).expect("a large one");
        assert_eq!((found.filled, found.unordered), (Some(8), [true, true]));
        assert_eq!(found.tensors[0].sizes, [64, 8, 224, 224]);
        assert_eq!(found.tensors[1], Tensor { sizes: [64, 8, 3, 3], steps: [72, 1, 24, 8] });
        // One image; a kernel for each place; places side by side.
        assert_eq!(of(&apart, [[1, 224, 224, 3], w, [1, 112, 112, 64]]), None);
        let patches = Conv { kernel: smallvec![2, 2], ..apart.clone() };
        assert_eq!(of(&patches, [x, [64, 2, 2, 3], y]), None);
        assert_eq!(of(&conv(ConvRole::Forward, DType::BF16), [x, w, [64, 224, 224, 64]]), None);
    }

    #[test]
    fn inputs_that_lie_in_another_order_are_put_in_order() {
        let plain = conv(ConvRole::Forward, DType::F16);
        let dense = segment(&plain, [X, W, Y], DType::F16);
        let mut turned = dense.clone();
        turned.inputs[1].strides = smallvec![9 * 32, 3, 1, 9];
        let [dense, turned] = [dense, turned].map(|segment| Geometry::of(&plain, &segment, true));
        let (dense, turned) = (dense.expect("dense"), turned.expect("turned"));
        assert_eq!((dense.unordered, turned.unordered), ([false, false], [false, true]));
        assert_eq!(turned, Geometry { unordered: [false, true], ..dense });
    }
}
