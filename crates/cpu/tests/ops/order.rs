//! Sorts and extreme places, against stable sorts of numbers.

use std::cmp::Ordering;

use cupola_core::prim::{ArgReduce, Op, Sort};
use cupola_core::{DType, Scalar};
use cupola_cpu::threads::with_threads;

use crate::common::{LAYOUTS, Tensor, elements, indices, numbers, position, run, whole};

fn ordered() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|&d| d != DType::C64)
}

/// Ascending, NaN last, both zeros equal.
fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Values with repeats; for floats also zeros of both signs, infinities and NaN.
fn values(count: usize, dtype: DType, seed: u64) -> Vec<f64> {
    let special = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, -1e-7];
    let mut out = whole(count, 50, seed);
    for (value, pick) in out.iter_mut().zip(whole(count, 12, seed + 1)) {
        if dtype.is_float() {
            *value = special.get(pick as usize).copied().unwrap_or(*value - 25.0);
        } else if dtype.is_signed() {
            *value -= 25.0;
        }
    }
    out
}

/// The positions of every lane of `shape` along `axis`.
fn lanes(shape: &[usize], axis: usize) -> Vec<Vec<usize>> {
    let mut others = shape.to_vec();
    others[axis] = 1;
    let lane = |mut index: Vec<usize>| {
        (0..shape[axis])
            .map(|i| {
                index[axis] = i;
                position(shape, &index)
            })
            .collect()
    };
    indices(&others).into_iter().map(lane).collect()
}

const CASES: [(&[usize], usize); 11] = [
    (&[7], 0),
    (&[1], 0),
    (&[3, 4, 5], 0),
    (&[3, 4, 5], 1),
    (&[3, 4, 5], 2),
    (&[2, 700], 1),
    (&[700, 70], 0),
    (&[3, 1500], 1),
    (&[0, 3], 1),
    (&[3, 0], 0),
    (&[140_000], 0),
];

#[test]
fn sorts_are_stable_and_put_nan_last() {
    for (shape, axis) in CASES {
        for dtype in ordered() {
            let x = Tensor::new(shape, dtype, &values(shape.iter().product(), dtype, 3));
            let given = numbers(dtype, &x.bytes);
            let (mut sorted, mut order) = (given.clone(), vec![0.0; given.len()]);
            for lane in lanes(shape, axis) {
                let mut places: Vec<usize> = (0..lane.len()).collect();
                places.sort_by(|&a, &b| compare(given[lane[a]], given[lane[b]]));
                for (&at, place) in lane.iter().zip(places) {
                    (sorted[at], order[at]) = (given[lane[place]], place as f64);
                }
            }
            for layout in LAYOUTS.into_iter().take(if given.len() > 9999 { 1 } else { 3 }) {
                let x = x.laid(layout);
                let got = run(Sort { axis, indices: false }, std::slice::from_ref(&x)).unwrap();
                assert_eq!(got[0], elements(dtype, &sorted), "{shape:?} {axis} {dtype}");
                let got = run(Sort { axis, indices: true }, &[x]).unwrap();
                assert_eq!(got[0], elements(DType::U32, &order), "{shape:?} {axis} {dtype}");
            }
        }
    }
}

#[test]
fn extreme_places_are_the_first_and_nan_is_extreme() {
    for (shape, axis) in CASES.into_iter().chain([(&[2, 900, 3][..], 1), (&[5, 2000][..], 1)]) {
        for dtype in ordered() {
            for max in [false, true] {
                // A lane whose first half has no NaN, too.
                let x = Tensor::new(shape, dtype, &values(shape.iter().product(), dtype, 5));
                let given = numbers(dtype, &x.bytes);
                let better = |new: f64, old: f64| match compare(new, old) {
                    _ if new.is_nan() || old.is_nan() => new.is_nan() && !old.is_nan(),
                    order => order == if max { Ordering::Greater } else { Ordering::Less },
                };
                let first = |lane: Vec<usize>| {
                    (1..lane.len()).fold(0, |best, i| {
                        if better(given[lane[i]], given[lane[best]]) { i } else { best }
                    }) as f64
                };
                let want: Vec<f64> = lanes(shape, axis).into_iter().map(first).collect();
                for layout in LAYOUTS {
                    let op = ArgReduce { max, axis };
                    let got = run(op, &[x.laid(layout)]).unwrap();
                    assert_eq!(got[0], elements(DType::U32, &want), "{shape:?} {op:?} {dtype}");
                }
            }
        }
    }
}

#[test]
fn extreme_places_of_whole_numbers() {
    let x = Tensor::of(
        [5],
        DType::I64,
        &[3, i64::MIN, i64::MAX, i64::MAX - 1, i64::MIN]
            .map(|v| Scalar::Int(v).to_element(DType::I64)),
    );
    for (max, want) in [(true, 2u32), (false, 1)] {
        let got = run(ArgReduce { max, axis: 0 }, std::slice::from_ref(&x)).unwrap();
        assert_eq!(got[0], want.to_ne_bytes());
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let count = 300_000;
    for dtype in [DType::F32, DType::I64, DType::F16, DType::U8] {
        let x = Tensor::new([count], dtype, &whole(count, 1 << 20, 1));
        let table = Tensor::new([count / 30, 30], dtype, &whole(count, 1 << 20, 2));
        let ops: [(Op, &Tensor); 4] = [
            (Sort { axis: 0, indices: true }.into(), &x),
            (Sort { axis: 0, indices: false }.into(), &x),
            (Sort { axis: 1, indices: true }.into(), &table),
            (ArgReduce { max: true, axis: 0 }.into(), &table),
        ];
        for (op, x) in ops {
            let one = with_threads(1, || run(op.clone(), std::slice::from_ref(x))).unwrap();
            assert_eq!(run(op, std::slice::from_ref(x)).unwrap(), one);
        }
    }
}
