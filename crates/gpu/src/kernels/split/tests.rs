//! What is cut, and into what.

use cupola_core::{Aval, Shape};

use super::*;

fn aval(shape: &[usize], dtype: DType) -> Aval {
    Aval { shape: Shape::from(shape), dtype }
}

fn copy(shape: &[usize], strides: &[isize]) -> Segment {
    let aval = aval(shape, DType::F32);
    Segment {
        kernel: Kernel::Map(Body::copy(aval.shape.clone(), DType::F32)),
        inputs: vec![Operand { aval: aval.clone(), strides: strides.into() }],
        outputs: vec![Operand::contiguous(&aval)],
        scalars: Vec::new(),
        epilogue: None,
    }
}

/// Every place of the operands that the pieces bind, once each.
fn outputs(split: &Split) -> Vec<isize> {
    let mut places = Vec::new();
    for piece in &split.pieces {
        let (out, (_, start)) = (&piece.segment.outputs[0], piece.outputs[0]);
        for index in 0..out.aval.shape.size() {
            let (mut left, mut at) = (index, start);
            for (&size, &stride) in out.aval.shape.iter().zip(&out.strides).rev() {
                at += (left % size) as isize * stride;
                left /= size;
            }
            places.push(at);
        }
    }
    places.sort_unstable();
    places
}

#[test]
fn what_fits_stays_whole() {
    let whole = copy(&[10, 20], &[20, 1]);
    let split = split(&whole, 800).unwrap();
    assert_eq!(split.pieces.len(), 1);
    assert_eq!(split.pieces[0].segment, whole);
}

#[test]
fn what_is_empty_stays_whole_however_long_its_other_axes_are() {
    for shape in [[0, 1 << 40], [1 << 40, 0]] {
        let whole = copy(&shape, &[1 << 40, 1]);
        assert_eq!(split(&whole, 800).unwrap().pieces.len(), 1);
    }
}

#[test]
fn pieces_cover_the_whole_once_and_fit() {
    for strides in [[100, 1], [1, 100], [-100, -1], [0, 1], [1, 0]] {
        let split = split(&copy(&[100, 100], &strides), 1024).unwrap();
        assert_eq!(outputs(&split), (0..10_000).collect::<Vec<_>>());
        for piece in &split.pieces {
            for operand in piece.segment.inputs.iter().chain(&piece.segment.outputs) {
                assert!(needs(&piece.segment, operand) <= 1024, "{operand:?}");
            }
        }
    }
}

#[test]
fn a_sum_of_everything_is_cut_and_joined() {
    let x = aval(&[5000], DType::F16);
    let whole = Segment {
        kernel: Kernel::Reduce {
            body: Body::copy(x.shape.clone(), x.dtype),
            kind: ReduceKind::Sum,
            axes: [0].into_iter().collect(),
        },
        inputs: vec![Operand::contiguous(&x)],
        outputs: vec![Operand::contiguous(&aval(&[], DType::F16))],
        scalars: Vec::new(),
        epilogue: None,
    };
    let split = split(&whole, 1000).unwrap();
    assert_eq!(split.pieces.len(), 13);
    assert_eq!(split.scratch, [12 * 4]);
    let last = &split.pieces[12];
    assert_eq!(last.inputs, [(BufferRef::Scratch(0), 0)]);
    assert_eq!(last.segment.inputs[0].aval, aval(&[12], DType::F32));
    assert_eq!(last.outputs, [(BufferRef::Output(0), 0)]);
    assert_eq!(split.pieces[3].outputs, [(BufferRef::Scratch(0), 3)]);
    let folded: usize = split.pieces[..12].iter().map(|p| p.segment.inputs[0].aval.shape[0]).sum();
    assert_eq!(folded, 5000);
}

/// Columns of a matrix lie far apart however few they are.
#[test]
fn a_product_is_cut_and_its_columns_are_brought_together() {
    let f32s = |shape: &[usize]| Operand::contiguous(&aval(shape, DType::F32));
    let dot = cupola_core::prim::Dot::of(DType::F32);
    let whole = Segment {
        kernel: Kernel::Op(KernelOp::Dot(dot)),
        inputs: vec![f32s(&[50, 30]), f32s(&[30, 90])],
        outputs: vec![f32s(&[50, 90])],
        scalars: Vec::new(),
        epilogue: None,
    };
    let split = split(&whole, 4096).unwrap();
    let products = |piece: &&Piece| matches!(piece.segment.kernel, Kernel::Op(_));
    let elements = |piece: &Piece| piece.segment.outputs[0].aval.shape.size();
    assert_eq!(split.pieces.iter().filter(products).map(elements).sum::<usize>(), 50 * 90);
    for piece in &split.pieces {
        for operand in piece.segment.inputs.iter().chain(&piece.segment.outputs) {
            assert!(needs(&piece.segment, operand) <= 4096, "{operand:?}");
        }
    }
    assert!(split.scratch.len() <= 3, "{:?}", split.scratch);
    assert!(split.scratch.iter().all(|&b| b <= 4096), "{:?}", split.scratch);
}

/// Folding two rows leaves as much as there was.
#[test]
fn a_fold_of_few_long_rows_is_cut_along_them() {
    let x = aval(&[2, 3000], DType::F32);
    let whole = Segment {
        kernel: Kernel::Reduce {
            body: Body::copy(x.shape.clone(), x.dtype),
            kind: ReduceKind::Max,
            axes: [0].into_iter().collect(),
        },
        inputs: vec![Operand::contiguous(&x)],
        outputs: vec![Operand::contiguous(&aval(&[3000], DType::F32))],
        scalars: Vec::new(),
        epilogue: None,
    };
    let split = split(&whole, 1024).unwrap();
    let folds = |piece: &&Piece| matches!(piece.segment.kernel, Kernel::Reduce { .. });
    let elements = |piece: &Piece| piece.segment.outputs[0].aval.shape.size();
    assert_eq!(split.pieces.iter().filter(folds).map(elements).sum::<usize>(), 3000);
    for piece in &split.pieces {
        for operand in piece.segment.inputs.iter().chain(&piece.segment.outputs) {
            assert!(needs(&piece.segment, operand) <= 1024, "{operand:?}");
        }
    }
}

#[test]
fn what_cannot_be_cut_says_so() {
    let x = aval(&[4000], DType::F32);
    let sort = cupola_core::prim::Sort::new(0);
    let whole = Segment {
        kernel: Kernel::Op(KernelOp::Sort(sort)),
        inputs: vec![Operand::contiguous(&x)],
        outputs: vec![Operand::contiguous(&x)],
        scalars: Vec::new(),
        epilogue: None,
    };
    let Missing(reason) = split(&whole, 1000).unwrap_err();
    assert!(reason.contains("16000 bytes, the device binds 1000 at once"), "{reason}");
}
