//! Reading and writing at computed places, against loops.

use crate::common::{LAYOUTS, Tensor, elements, indices, numbers, position, run, whole};
use cupola_core::prim::{Gather, GatherAxis, Op, Scatter, ScatterAxis, ScatterMode};
use cupola_core::{DType, Shape};
use cupola_cpu::threads::with_threads;

/// The shape of x, the axes that are indexed, the slices' sizes, the indices' shape.
type Case = (&'static [usize], &'static [usize], &'static [usize], &'static [usize]);

const MODES: [ScatterMode; 5] =
    [ScatterMode::Set, ScatterMode::Add, ScatterMode::Prod, ScatterMode::Max, ScatterMode::Min];

fn integers() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|d| d.is_integer())
}

fn dims(d: &[usize]) -> cupola_core::Dims {
    d.iter().copied().collect()
}

/// Indices that fit the axes of `gather`, of shape `lead`.
fn places(shape: &[usize], gather: &Gather, lead: &[usize], dtype: DType) -> Vec<Tensor> {
    let count = lead.iter().product();
    (gather.axes.iter().enumerate())
        .map(|(i, &axis)| {
            let below = shape[axis] + 1 - gather.sizes[axis];
            Tensor::new(lead, dtype, &whole(count, below, i as u64 + 3))
        })
        .collect()
}

/// For each position of `lead`, each index of a slice: where it is in x.
fn walk(
    shape: &[usize],
    axes: &[usize],
    sizes: &[usize],
    starts: &[Tensor],
    mut f: impl FnMut(usize),
) {
    let starts: Vec<Vec<f64>> =
        starts.iter().map(|t| numbers(t.operand.aval.dtype, &t.bytes)).collect();
    let count = starts.first().map_or(1, Vec::len);
    for i in 0..count {
        for mut index in indices(sizes) {
            for (start, &axis) in starts.iter().zip(axes) {
                index[axis] += start[i] as usize;
            }
            f(position(shape, &index));
        }
    }
}

#[test]
fn gathers_equal_loops() {
    let cases: [Case; 9] = [
        (&[7, 5], &[0], &[1, 5], &[4]),
        (&[7, 5], &[0], &[1, 5], &[3, 2]),
        (&[7, 5], &[1], &[7, 1], &[6]),
        (&[7, 5], &[1, 0], &[1, 1], &[9]),
        (&[4, 5, 6], &[2, 0], &[2, 3, 4], &[2, 3]),
        (&[4, 5, 6], &[1], &[1, 2, 1], &[]),
        (&[4, 5], &[], &[2, 5], &[]),
        (&[4, 0], &[0], &[1, 0], &[3]),
        (&[4, 5], &[0], &[1, 5], &[0]),
    ];
    for (shape, axes, sizes, lead) in cases {
        let gather = Gather { axes: dims(axes), sizes: dims(sizes) };
        let values = whole(shape.iter().product(), 100, 1);
        for dtype in DType::ALL {
            for (i, index) in integers().enumerate() {
                let starts = places(shape, &gather, lead, index);
                let x = Tensor::new(shape, dtype, &values);
                let x_values = numbers(dtype, &x.bytes);
                let mut want = Vec::new();
                walk(shape, axes, sizes, &starts, |at| want.push(x_values[at]));
                let layout = LAYOUTS[i % 3];
                let mut inputs = vec![x.laid(LAYOUTS[(i + dtype.size()) % 3])];
                inputs.extend(starts.iter().map(|s| s.laid(layout)));
                let got = run(gather.clone(), &inputs).unwrap();
                assert_eq!(got[0], elements(dtype, &want), "{shape:?} {gather:?} {dtype} {index}");
            }
        }
    }
}

fn join(mode: ScatterMode, old: f64, new: f64) -> f64 {
    match mode {
        ScatterMode::Set => new,
        ScatterMode::Add => old + new,
        ScatterMode::Prod => old * new,
        ScatterMode::Max => old.max(new),
        ScatterMode::Min => old.min(new),
    }
}

#[test]
fn scatters_equal_loops() {
    let cases: [Case; 8] = [
        (&[7, 5], &[0], &[1, 5], &[12]),
        (&[7, 5], &[1], &[7, 1], &[3, 2]),
        (&[7, 5], &[1, 0], &[1, 1], &[40]),
        (&[4, 5, 6], &[2, 0], &[2, 3, 4], &[2, 3]),
        (&[4, 5, 6], &[1], &[1, 2, 1], &[]),
        (&[4, 5], &[], &[2, 5], &[]),
        (&[4, 0], &[0], &[1, 0], &[3]),
        (&[4, 5], &[0], &[1, 5], &[0]),
    ];
    for (shape, axes, sizes, lead) in cases {
        let gather = Gather { axes: dims(axes), sizes: dims(sizes) };
        let updates_shape: Shape = lead.iter().chain(sizes).copied().collect();
        for (m, mode) in MODES.into_iter().enumerate() {
            for (d, dtype) in DType::ALL.into_iter().filter(|d| mode.takes(*d)).enumerate() {
                let index = integers().nth((m + d) % 8).unwrap();
                let starts = places(shape, &gather, lead, index);
                // Products of many must stay exact in every type.
                let below = if mode == ScatterMode::Prod { 2 } else { 3 };
                let x = Tensor::new(shape, dtype, &whole(shape.iter().product(), 3, 5));
                let count = updates_shape.size();
                let updates = Tensor::new(updates_shape.clone(), dtype, &whole(count, below, 6));
                let mut want = numbers(dtype, &x.bytes);
                let mut new = numbers(dtype, &updates.bytes).into_iter();
                walk(shape, axes, sizes, &starts, |at| {
                    want[at] = join(mode, want[at], new.next().unwrap());
                });
                let mut inputs = vec![x.laid(LAYOUTS[d % 3]), updates.laid(LAYOUTS[m % 3])];
                inputs.extend(starts.iter().map(|s| s.laid(LAYOUTS[(d + m) % 3])));
                let got = run(Scatter { mode, axes: dims(axes) }, &inputs).unwrap();
                assert_eq!(got[0], elements(dtype, &want), "{shape:?} {mode:?} {gather:?} {dtype}");
            }
        }
    }
}

#[test]
fn one_axis_equals_loops() {
    let cases: [(&[usize], usize, usize); 6] = [
        (&[6], 0, 9),
        (&[3, 4, 5], 1, 7),
        (&[3, 4, 5], 2, 2),
        (&[3, 4], 0, 5),
        (&[2, 3], 1, 0),
        (&[0, 3], 1, 2),
    ];
    for (shape, axis, count) in cases {
        let lead = Shape::from(shape).with(axis, count);
        for (d, dtype) in DType::ALL.into_iter().enumerate() {
            for (i, index) in integers().enumerate() {
                let x = Tensor::new(shape, dtype, &whole(shape.iter().product(), 90, 1));
                let at = Tensor::new(lead.clone(), index, &whole(lead.size(), shape[axis], 2));
                let starts = numbers(index, &at.bytes);
                let values = numbers(dtype, &x.bytes);
                let place = |i: usize, mut place: Vec<usize>| {
                    place[axis] = starts[i] as usize;
                    position(shape, &place)
                };
                let places: Vec<usize> =
                    indices(&lead).into_iter().enumerate().map(|(i, p)| place(i, p)).collect();
                let want: Vec<f64> = places.iter().map(|&at| values[at]).collect();
                let (a, b) = (LAYOUTS[(i + d) % 3], LAYOUTS[i % 3]);
                let got = run(GatherAxis { axis }, &[x.laid(a), at.laid(b)]).unwrap();
                assert_eq!(got[0], elements(dtype, &want), "{shape:?} {axis} {dtype} {index}");

                let mode = MODES[(i + d) % 5];
                if !mode.takes(dtype) {
                    continue;
                }
                let x = Tensor::new(shape, dtype, &whole(shape.iter().product(), 2, 1));
                let updates = Tensor::new(lead.clone(), dtype, &whole(lead.size(), 2, 9));
                let mut want = numbers(dtype, &x.bytes);
                for (&at, new) in places.iter().zip(numbers(dtype, &updates.bytes)) {
                    want[at] = join(mode, want[at], new);
                }
                let inputs = [x.laid(b), updates.laid(a), at.laid(LAYOUTS[d % 3])];
                let got = run(ScatterAxis { mode, axis }, &inputs).unwrap();
                assert_eq!(got[0], elements(dtype, &want), "{shape:?} {axis} {mode:?} {dtype}");
            }
        }
    }
}

#[test]
fn many_updates_do_not_depend_on_threads() {
    let (rows, columns, count) = (300, 33, 5000);
    for mode in [ScatterMode::Set, ScatterMode::Add] {
        let x = Tensor::new([rows, columns], DType::F32, &whole(rows * columns, 1000, 1));
        let at = Tensor::new([count], DType::I64, &whole(count, rows, 2));
        let updates: Vec<f64> =
            whole(count * columns, 1 << 20, 3).iter().map(|v| v / 7.0).collect();
        let updates = Tensor::new([count, 1, columns], DType::F32, &updates);
        let op: Op = Scatter { mode, axes: dims(&[0]) }.into();
        let inputs = [x.clone(), updates, at];
        let one = with_threads(1, || run(op.clone(), &inputs)).unwrap();
        assert_eq!(run(op, &inputs).unwrap(), one);

        let at = Tensor::new(
            [rows * columns * 3],
            DType::U32,
            &whole(rows * columns * 3, rows * columns, 4),
        );
        let updates = Tensor::new(
            at.operand.aval.shape.clone(),
            DType::F32,
            &whole(rows * columns * 3, 1 << 20, 5),
        );
        let flat = Tensor::new([rows * columns], DType::F32, &whole(rows * columns, 1000, 1));
        let op: Op = ScatterAxis { mode, axis: 0 }.into();
        let inputs = [flat, updates, at];
        let one = with_threads(1, || run(op.clone(), &inputs)).unwrap();
        assert_eq!(run(op, &inputs).unwrap(), one);
    }
}

#[test]
fn large_slices_are_cut() {
    let (rows, columns) = (3, 200_001);
    let values = whole(rows * columns, 1 << 24, 1);
    let x = Tensor::new([rows, columns], DType::F32, &values);
    let at = Tensor::new([4], DType::U8, &[2.0, 0.0, 2.0, 1.0]);
    for layout in LAYOUTS {
        let gather = Gather { axes: dims(&[0]), sizes: dims(&[1, columns]) };
        let got = run(gather, &[x.laid(layout), at.clone()]).unwrap();
        let want: Vec<f64> = [2, 0, 2, 1]
            .iter()
            .flat_map(|r| values[r * columns..(r + 1) * columns].to_vec())
            .collect();
        assert_eq!(got[0], elements(DType::F32, &want));
    }
}

#[test]
fn an_index_outside_its_axis_is_an_error() {
    let x = Tensor::new([4, 5], DType::F32, &[0.0; 20]);
    let gather = |size| Gather { axes: dims(&[0]), sizes: dims(&[size, 5]) };
    let at = |dtype, bad: f64| Tensor::new([2, 3], dtype, &[0.0, 1.0, 2.0, 3.0, bad, 9.0]);
    let text = |r: cupola_core::Result<Vec<Vec<u8>>>| r.unwrap_err().to_string();
    assert_eq!(
        text(run(gather(1), &[x.clone(), at(DType::I32, 4.0)])),
        "gather: index 4 at position [1, 1] is outside axis 0 of size 4"
    );
    assert_eq!(
        text(run(gather(2), &[x.clone(), at(DType::I8, -1.0)])),
        "gather: index 3 at position [1, 0] is outside axis 0 of size 4, in slices of 2"
    );
    let huge = f64::from(1u32 << 31) * 4294967296.0;
    assert_eq!(
        text(run(gather(1), &[x.clone(), at(DType::U64, huge)])),
        "gather: index 9223372036854775808 at position [1, 1] is outside axis 0 of size 4"
    );
    let updates = Tensor::new([2, 3, 1, 5], DType::F32, &[0.0; 30]);
    assert_eq!(
        text(run(
            Scatter { mode: ScatterMode::Add, axes: dims(&[0]) },
            &[x.clone(), updates, at(DType::I64, -7.0)]
        )),
        "scatter: index -7 at position [1, 1] is outside axis 0 of size 4"
    );
    let x = Tensor::new([2, 5], DType::F32, &[0.0; 10]);
    assert_eq!(
        text(run(GatherAxis { axis: 1 }, &[x.clone(), at(DType::I16, 5.0)])),
        "take_along_axis: index 5 at position [1, 1] is outside axis 1 of size 5"
    );
    let updates = Tensor::new([2, 3], DType::F32, &[0.0; 6]);
    let put = ScatterAxis { mode: ScatterMode::Set, axis: 1 };
    assert_eq!(
        text(run(put, &[x, updates, at(DType::I16, -1.0)])),
        "put_along_axis: index -1 at position [1, 1] is outside axis 1 of size 5"
    );
}

#[test]
fn nan_wins_maxima_and_minima() {
    for mode in [ScatterMode::Max, ScatterMode::Min] {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let x = Tensor::new([3], dtype, &[f64::NAN, 1.0, 2.0]);
            let updates = Tensor::new([3], dtype, &[1.0, f64::NAN, 2.0]);
            let at = Tensor::new([3], DType::I32, &[0.0, 1.0, 2.0]);
            let got = run(ScatterAxis { mode, axis: 0 }, &[x, updates, at]).unwrap();
            let got = numbers(dtype, &got[0]);
            assert!(got[0].is_nan() && got[1].is_nan() && got[2] == 2.0, "{mode:?} {dtype}");
        }
    }
}
