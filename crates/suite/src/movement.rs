//! Views, joins and pads.

use cupola_core::prim::Movement;
use cupola_core::{Aval, Shape};

use crate::host::{Host, flat, indices};
use crate::number::Number;
use crate::sample::{Sample, dims, from, input, spread};

pub fn samples() -> Vec<Sample> {
    let one = |name: &str, m: Movement, shape: &[usize]| {
        Sample::new(name, move |_| m.clone().into(), vec![input(shape)]).smooth()
    };
    let slice = Movement::Slice {
        start: dims(&[1, 0, 2]),
        sizes: dims(&[2, 2, 2]),
        strides: dims(&[1, 2, 2]),
    };
    let update = Movement::SliceUpdate { start: dims(&[1, 0]), strides: dims(&[1, 2]) };
    let pad = Movement::Pad { low: dims(&[1, 0]), high: dims(&[0, 2]), interior: dims(&[1, 0]) };
    let cut = |start: &[usize], sizes: &[usize], strides: &[usize]| Movement::Slice {
        start: dims(start),
        sizes: dims(sizes),
        strides: dims(strides),
    };
    let join = |axis: usize| Movement::Concatenate { axis };
    let again = [
        one("flatten one axis", Movement::Flatten { start: 1, end: 1 }, &[2, 3, 4]),
        one("unflatten ones", Movement::Unflatten { axis: 0, sizes: dims(&[2, 1, 3]) }, &[6]),
        one("unflatten away", Movement::Unflatten { axis: 1, sizes: dims(&[]) }, &[3, 1]),
        one("squeeze the last", Movement::Squeeze(dims(&[1])), &[3, 1]),
        one("expand_dims of three", Movement::ExpandDims(dims(&[0, 2])), &[2, 3, 4]),
        one("broadcast to itself", Movement::Broadcast(Shape::from([3, 1])), &[3, 1]),
        one("broadcast one number", Movement::Broadcast(Shape::from([2, 2])), &[]),
        one("flip of three", Movement::Flip(dims(&[0, 2])), &[2, 3, 4]),
        one("slice of a column", cut(&[1, 0, 1], &[1, 3, 2], &[1, 1, 2]), &[2, 3, 4]),
        one("slice of nothing", cut(&[0, 3, 0], &[2, 0, 4], &[1, 1, 1]), &[2, 3, 4]),
        Sample::new(
            "slice_update of three",
            |_| Movement::SliceUpdate { start: dims(&[1, 0, 1]), strides: dims(&[1, 2, 2]) }.into(),
            vec![input([2, 3, 4]), from([1, 2, 2], |i| spread(i + 90))],
        )
        .smooth(),
        Sample::new(
            "pad of three",
            |_| {
                let (low, high) = (dims(&[1, 0, 2]), dims(&[0, 1, 1]));
                Movement::Pad { low, high, interior: dims(&[0, 2, 1]) }.into()
            },
            vec![input([2, 3, 4]), from((), |_| 0.3)],
        )
        .smooth(),
        Sample::new(
            "concatenate three",
            move |_| join(1).into(),
            vec![input([2, 3, 4]), input([2, 3, 4]), from([2, 1, 4], |i| spread(i + 50))],
        )
        .smooth(),
    ];
    let mut all: Vec<Sample> = again.into_iter().map(Sample::where_kernels_are_cheap).collect();
    all.extend([
        one("reshape", Movement::Reshape(Shape::from([4, 6])), &[2, 3, 4]),
        one("flatten", Movement::Flatten { start: 1, end: 2 }, &[2, 3, 4]),
        one("unflatten", Movement::Unflatten { axis: 1, sizes: dims(&[2, 3]) }, &[2, 6]),
        one("squeeze", Movement::Squeeze(dims(&[0, 2])), &[1, 3, 1, 2]),
        one("expand_dims", Movement::ExpandDims(dims(&[0, 3])), &[3, 2]),
        one("transpose", Movement::Transpose(dims(&[2, 0, 1])), &[2, 3, 4]),
        one("broadcast", Movement::Broadcast(Shape::from([2, 3, 4])), &[3, 1]),
        one("flip", Movement::Flip(dims(&[0, 1])), &[3, 4]),
        one("slice", slice, &[3, 4, 5]),
        one(
            "empty slice",
            Movement::Slice { start: dims(&[1]), sizes: dims(&[0]), strides: dims(&[1]) },
            &[4],
        ),
        Sample::new(
            "slice_update",
            move |_| update.clone().into(),
            vec![input([3, 4]), from([2, 2], |i| spread(i + 90))],
        )
        .smooth(),
        Sample::new("pad", move |_| pad.clone().into(), vec![input([3, 2]), from((), |_| 1.5)])
            .smooth(),
        Sample::new(
            "concatenate 0",
            move |_| join(0).into(),
            vec![input([2, 3]), from([1, 3], |i| spread(i + 50)), input([0, 3])],
        )
        .smooth(),
        Sample::new(
            "concatenate 1",
            move |_| join(1).into(),
            vec![input([2, 3]), from([2, 2], |i| spread(i + 50))],
        )
        .smooth(),
    ]);
    all
}

pub fn reference(m: &Movement, inputs: &[Host], out: &Aval) -> Host {
    let x = &inputs[0];
    let from = |f: &dyn Fn(&[usize]) -> Vec<usize>| {
        let all: Vec<_> = indices(&out.shape).collect();
        Host::from_fn(out.clone(), |i| x.data[flat(&x.aval.shape, &f(&all[i]))])
    };
    match m {
        Movement::Reshape(_)
        | Movement::Flatten { .. }
        | Movement::Unflatten { .. }
        | Movement::Squeeze(_)
        | Movement::ExpandDims(_) => Host { aval: out.clone(), data: x.data.clone() },
        Movement::Transpose(axes) => from(&|o| {
            let mut index = vec![0; o.len()];
            axes.iter().enumerate().for_each(|(i, &a)| index[a] = o[i]);
            index
        }),
        Movement::Broadcast(_) => {
            let lead = out.shape.rank() - x.aval.shape.rank();
            from(&|o| {
                let size = |a: usize| x.aval.shape[a];
                (0..x.aval.shape.rank())
                    .map(|a| if size(a) == 1 { 0 } else { o[lead + a] })
                    .collect()
            })
        }
        Movement::Flip(axes) => from(&|o| {
            let mut index = o.to_vec();
            axes.iter().for_each(|&a| index[a] = out.shape[a] - 1 - o[a]);
            index
        }),
        Movement::Slice { start, strides, .. } => {
            from(&|o| (0..o.len()).map(|a| start[a] + strides[a] * o[a]).collect())
        }
        Movement::SliceUpdate { start, strides } => {
            let mut result = x.clone();
            for (i, o) in indices(&inputs[1].aval.shape).enumerate() {
                let index: Vec<_> = (0..o.len()).map(|a| start[a] + strides[a] * o[a]).collect();
                result.data[flat(&x.aval.shape, &index)] = inputs[1].data[i];
            }
            result
        }
        Movement::Pad { low, high: _, interior } => {
            let mut result = Host::from_fn(out.clone(), |_| inputs[1].data[0]);
            for (i, o) in indices(&x.aval.shape).enumerate() {
                let index: Vec<_> =
                    (0..o.len()).map(|a| low[a] + (interior[a] + 1) * o[a]).collect();
                result.data[flat(&out.shape, &index)] = x.data[i];
            }
            result
        }
        Movement::Concatenate { axis } => {
            let mut result = Host::from_fn(out.clone(), |_| Number::Int(0));
            let mut first = 0;
            for piece in inputs {
                for (i, mut index) in indices(&piece.aval.shape).enumerate() {
                    index[*axis] += first;
                    result.data[flat(&out.shape, &index)] = piece.data[i];
                }
                first += piece.aval.shape[*axis];
            }
            result
        }
    }
}
