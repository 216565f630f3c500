//! One case or more for every primitive.

use cupola::prim::*;
use cupola::{Array, DType, Dims, Result, Shape};

use crate::values::{Source, f64s, u32s};

mod elementwise;
mod indexed;
mod windows;

/// A primitive on inputs at which it is smooth.
pub struct Case {
    pub name: String,
    pub op: Op,
    pub inputs: Vec<Array>,
    /// The step of finite differences.
    pub step: f64,
    /// How far a difference quotient may lie from a derivative.
    pub tolerance: f64,
}

impl Case {
    pub fn new(op: impl Into<Op>, inputs: &[&Array]) -> Case {
        let op = op.into();
        let shapes: Vec<_> = inputs.iter().map(|x| x.aval()).collect();
        let name = format!("{op:?} on {shapes:?}");
        let inputs = inputs.iter().map(|&x| x.clone()).collect();
        Case { name, op, inputs, step: 1e-5, tolerance: 1e-6 }
    }

    /// The inputs that have derivatives.
    pub fn smooth(&self) -> Vec<Array> {
        self.inputs.iter().filter(|x| x.dtype().is_float()).cloned().collect()
    }

    /// The op on these smooth inputs and the case's other ones: its smooth outputs.
    pub fn call(&self, smooth: &[Array]) -> Result<Vec<Array>> {
        let mut given = smooth.iter();
        let all: Vec<Array> = self
            .inputs
            .iter()
            .map(|x| match given.as_slice().first() {
                Some(_) if x.dtype().is_float() => given.next().unwrap_or(x).clone(),
                _ => x.clone(),
            })
            .collect();
        Ok(self.record(&all)?.into_iter().filter(|y| y.dtype().is_float()).collect())
    }

    pub fn record(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let inputs: Vec<&Array> = inputs.iter().collect();
        Array::apply_multi(self.op.clone(), &inputs)
    }
}

pub fn all() -> Vec<Case> {
    let mut cases = elementwise::cases();
    cases.extend(movement());
    cases.extend(reductions());
    cases.extend(products());
    cases.extend(indexed::cases());
    cases.extend(windows::cases());
    cases
}

fn dims(sizes: &[usize]) -> Dims {
    Dims::from_slice(sizes)
}

fn movement() -> Vec<Case> {
    let mut source = Source::new(11);
    let x = source.array(&[2, 3, 4], -1.0, 1.0);
    let thin = source.array(&[3, 1], -1.0, 1.0);
    let one = source.array(&[], -1.0, 1.0);
    let update = source.array(&[1, 2, 2], -1.0, 1.0);
    let flat = source.array(&[6], -1.0, 1.0);
    let slice = |start: &[usize], sizes: &[usize], strides: &[usize]| Movement::Slice {
        start: dims(start),
        sizes: dims(sizes),
        strides: dims(strides),
    };
    let pad = |low: &[usize], high: &[usize], interior: &[usize]| Movement::Pad {
        low: dims(low),
        high: dims(high),
        interior: dims(interior),
    };
    vec![
        Case::new(Movement::Reshape(Shape::from([4, 6])), &[&x]),
        Case::new(Movement::Flatten { start: 1, end: 2 }, &[&x]),
        Case::new(Movement::Flatten { start: 1, end: 1 }, &[&x]),
        Case::new(Movement::Unflatten { axis: 0, sizes: dims(&[2, 1, 3]) }, &[&flat]),
        Case::new(Movement::Unflatten { axis: 1, sizes: dims(&[]) }, &[&thin]),
        Case::new(Movement::Squeeze(dims(&[1])), &[&thin]),
        Case::new(Movement::ExpandDims(dims(&[0, 2])), &[&x]),
        Case::new(Movement::Transpose(dims(&[2, 0, 1])), &[&x]),
        Case::new(Movement::Broadcast(Shape::from([2, 3, 4])), &[&thin]),
        Case::new(Movement::Broadcast(Shape::from([3, 1])), &[&thin]),
        Case::new(Movement::Broadcast(Shape::from([2, 2])), &[&one]),
        Case::new(Movement::Flip(dims(&[0, 2])), &[&x]),
        Case::new(slice(&[1, 0, 1], &[1, 3, 2], &[1, 1, 2]), &[&x]),
        Case::new(slice(&[0, 3, 0], &[2, 0, 4], &[1, 1, 1]), &[&x]),
        Case::new(
            Movement::SliceUpdate { start: dims(&[1, 0, 1]), strides: dims(&[1, 2, 2]) },
            &[&x, &update],
        ),
        Case::new(pad(&[1, 0, 2], &[0, 1, 1], &[0, 2, 1]), &[&x, &one]),
        Case::new(
            Movement::Concatenate { axis: 1 },
            &[&x, &x, &source.array(&[2, 1, 4], 0.0, 1.0)],
        ),
    ]
}

fn reductions() -> Vec<Case> {
    let mut source = Source::new(12);
    let x = source.array(&[2, 3, 4], -2.0, 2.0);
    let factors = f64s(
        &[0.0, 1.5, -0.5, 2.0, 0.0, 1.2, 0.0, -1.5, 2.5, 0.5, -1.0, 0.7, 0.0, 0.0, 0.0],
        &[3, 5],
    );
    let flags = Array::from_slice(&[true, false, true, true, true, true], [2, 3]).expect("bools");
    let mut cases = Vec::new();
    for kind in [ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min] {
        for axes in [&[0][..], &[1, 2], &[0, 2], &[0, 1, 2], &[]] {
            cases.push(Case::new(Reduce { kind, axes: dims(axes) }, &[&x]));
        }
    }
    for axes in [&[0][..], &[1]] {
        cases.push(Case::new(Reduce { kind: ReduceKind::Prod, axes: dims(axes) }, &[&factors]));
        for kind in [ReduceKind::All, ReduceKind::Any] {
            cases.push(Case::new(Reduce { kind, axes: dims(axes) }, &[&flags]));
        }
    }
    for axis in [0, 2] {
        cases.push(Case::new(ArgReduce { max: true, axis }, &[&x]));
        cases.push(Case::new(ArgReduce { max: false, axis }, &[&x]));
        cases.push(Case::new(Sort { axis, indices: false }, &[&x]));
        cases.push(Case::new(Sort { axis, indices: true }, &[&x]));
        for &kind in ScanKind::ALL {
            for (reverse, exclusive) in [(false, false), (true, false), (false, true), (true, true)]
            {
                // An extreme of nothing is infinite, and has no difference quotients.
                if !exclusive || matches!(kind, ScanKind::Sum | ScanKind::Prod) {
                    cases.push(Case::new(Scan { kind, axis, reverse, exclusive }, &[&x]));
                }
            }
        }
    }
    cases
}

fn products() -> Vec<Case> {
    let mut source = Source::new(13);
    let mut case = |dtype, a: &[usize], b: &[usize]| {
        let (a, b) = (source.array(a, -1.0, 1.0), source.array(b, -1.0, 1.0));
        Case::new(Dot::of(dtype), &[&a, &b])
    };
    vec![case(DType::F64, &[2, 3], &[3, 4]), case(DType::F64, &[2, 2, 3], &[2, 3, 1])]
}
