//! Functions that make, join, choose and place elements.

use cupola_core::{Array, DType, Result, ops};

use super::{Function, any, numbers};
use crate::sample::{Input, fixed, from, input, numbers as listed, spread, whole};

/// Places along an axis of `size`.
fn places(count: usize, size: usize) -> Input {
    fixed([count], DType::I32, move |i| whole(i, size, 3))
}

/// Numbers some of which are those that they are looked for among.
fn ties() -> Input {
    from([3, 5], |i| [-2.0, -1.0, 0.0, 0.25, 1.5, 2.0, 9.0][i % 7])
}

/// Whether the mask of these functions has an element.
fn is_marked(i: usize) -> bool {
    i % 3 == 1
}

fn mask() -> Input {
    fixed([3, 4], DType::Bool, |i| f64::from(is_marked(i)))
}

/// [`mask`] as values, and an input that is 0 outside of it.
fn known_mask() -> Result<Array> {
    let values: Vec<bool> = (0..12).map(is_marked).collect();
    Array::from_slice(&values, [3, 4])
}

fn within_mask() -> [Input; 1] {
    [from([3, 4], |i| if is_marked(i) { spread(i) } else { 0.0 })]
}

/// Zeros, and `values` added at these places of the axes: `x` itself where they are the places of the mask and the
/// elements there, each once.
fn placed(x: &Array, places: &[Array], values: &Array) -> Result<Array> {
    let items: Vec<ops::S> = places.iter().map(ops::S::array).collect();
    ops::at_add(&ops::zeros_like(x)?, &items, values)
}

fn elements(x: &Array, places: &[Array]) -> Result<Array> {
    ops::index(x, &places.iter().map(ops::S::array).collect::<Vec<_>>())
}

/// Functions whose shapes depend on values, which are known while they are recorded.
fn of_known_values() -> Vec<Function> {
    let marks = |x: &Array| ops::astype(&known_mask()?, x.dtype());
    let counted = [0, 3, 1, 6, 4];
    vec![
        Function::new("nonzero", within_mask(), move |x| {
            let places = ops::nonzero(&marks(&x[0])?)?;
            placed(&x[0], &places, &elements(&x[0], &places)?)
        })
        .takes(numbers)
        .is(|x| x[0])
        .smooth(),
        Function::new("argwhere", within_mask(), move |x| {
            let places = ops::unstack(&ops::argwhere(&marks(&x[0])?)?, 1)?;
            placed(&x[0], &places, &elements(&x[0], &places)?)
        })
        .takes(numbers)
        .is(|x| x[0])
        .smooth(),
        Function::new("masked_select", within_mask(), |x| {
            let mask = known_mask()?;
            placed(&x[0], &ops::nonzero(&mask)?, &ops::masked_select(&x[0], &mask)?)
        })
        .takes(numbers)
        .is(|x| x[0])
        .smooth(),
        Function::new("bincount", [input([5])], move |x| {
            let places = Array::from_slice(&counted, [5])?;
            ops::take(&ops::bincount(&places, Some(&x[0]), 9)?, &places, 0)
        })
        .is(|x| x[0])
        .smooth(),
        Function::new("bincount", [input([5])], |x| {
            ops::bincount(&Array::from_slice(&[2, 0, 2, 5, 2], [5])?, Some(&x[0]), 0)
        })
        .case("with ties")
        .smooth(),
        Function::new("repeat_interleave", [input([3, 4])], |x| {
            ops::repeat_interleave(&x[0], &Array::from_slice(&[2, 0, 1], [3])?, 0)
        })
        .case("by an array")
        .takes(any)
        .smooth(),
    ]
}

pub(super) fn functions() -> Vec<Function> {
    let one = || [input([3, 4])];
    let two = || [input([3, 4]), from([3, 4], |i| spread(i + 13))];
    let moved = vec![
        Function::new("tril", one(), |x| ops::tril(&x[0], -1)),
        Function::new("triu", one(), |x| ops::triu(&x[0], 1)),
        Function::new("diag", [input([4])], |x| ops::diag(&x[0], 1)),
        Function::new("diagonal", [input([2, 3, 4])], |x| ops::diagonal(&x[0], 1, 2, 0)),
        Function::new("roll", one(), |x| ops::roll(&x[0], vec![1, -2], vec![0, 1])),
        Function::new("tile", one(), |x| ops::tile(&x[0], vec![2, 3])),
        Function::new("repeat", one(), |x| ops::repeat(&x[0], 2, 1)),
        Function::new("stack", two(), |x| ops::stack(&[&x[0], &x[1]], 1)),
        Function::several("split", one(), |x| ops::split(&x[0], 2, 1)),
        Function::several("meshgrid", [input([3]), input([2])], |x| {
            ops::meshgrid(&[&x[0], &x[1]], false)
        }),
        Function::new("swapaxes", [input([2, 3, 4])], |x| ops::swapaxes(&x[0], 0, 2)),
        Function::new("as_strided", [input([12])], |x| {
            ops::as_strided(&x[0], [3, 4], vec![3, 1], 1)
        }),
        Function::new("pixel_shuffle", [input([2, 3, 2, 8])], |x| ops::pixel_shuffle(&x[0], 2)),
        Function::new("pixel_unshuffle", [input([2, 4, 6, 2])], |x| ops::pixel_unshuffle(&x[0], 2)),
        Function::new("take", [input([3, 4]), places(5, 4)], |x| ops::take(&x[0], &x[1], 1)),
        Function::new("repeat_interleave", one(), |x| ops::repeat_interleave(&x[0], 2, 0)),
    ];
    let mut all: Vec<Function> =
        moved.into_iter().map(|function| function.takes(any).smooth()).collect();
    all.extend(of_known_values());
    all.extend([
        Function::new("index_fill", [input([3, 4]), places(2, 4)], |x| {
            ops::index_fill(&x[0], 1, &x[1], 1)
        })
        .takes(numbers)
        .smooth(),
        Function::new("masked_fill", [input([3, 4]), mask()], |x| {
            ops::masked_fill(&x[0], &x[1], 1)
        })
        .takes(numbers)
        .smooth(),
        Function::new("trace", [input([2, 4, 4])], |x| ops::trace(&x[0], 1, 1, 2))
            .takes(numbers)
            .smooth(),
        Function::new("one_hot", [places(5, 3)], |x| ops::one_hot(&x[0], 3, DType::F32))
            .takes(|dtype| dtype == DType::F32),
        Function::new("searchsorted", [listed([4], &[-2.0, 0.0, 1.0, 2.0]), ties()], |x| {
            ops::searchsorted(&x[0], &x[1], ops::Side::Right)
        }),
        Function::new("bucketize", [ties(), listed([3], &[-1.0, 0.0, 1.5])], |x| {
            ops::bucketize(&x[0], &x[1], false)
        }),
        Function::new("topk", [input([3, 9])], |x| ops::sort(&ops::topk(&x[0], 3, -1)?, -1))
            .smooth(),
        Function::new("segment_sum", [input([6, 2]), places(6, 3)], |x| {
            ops::segment_sum(&x[0], &x[1], 3)
        })
        .smooth(),
        Function::new("segment_mean", [input([6, 2]), places(6, 3)], |x| {
            ops::segment_mean(&x[0], &x[1], 3)
        })
        .smooth(),
        Function::new(
            "segment_max",
            [input([6, 2]), fixed([6], DType::I32, |i| (i % 3) as f64)],
            |x| ops::segment_max(&x[0], &x[1], 3),
        )
        .takes(DType::is_inexact)
        .smooth(),
        Function::new(
            "segment_min",
            [input([6, 2]), fixed([6], DType::I32, |i| (i % 3) as f64)],
            |x| ops::segment_min(&x[0], &x[1], 3),
        )
        .takes(DType::is_inexact)
        .smooth(),
        Function::several("unique", [ties()], |x| {
            let found = ops::unique(&x[0], 9, None)?;
            Ok(vec![found.values, found.index, found.inverse, found.counts])
        })
        .takes(numbers),
        Function::new("partition", [input([3, 9])], |x| {
            ops::sort(&ops::take(&ops::partition(&x[0], 4, 1)?, &ops::arange(0, 4, 1)?, 1)?, 1)
        })
        .takes(numbers),
    ]);
    all.extend(made());
    all
}

/// Arrays of numbers that follow from places.
fn made() -> Vec<Function> {
    let float32 = |dtype| dtype == DType::F32;
    let none = || Vec::<Input>::new();
    let all = vec![
        Function::new("arange", none(), |_| ops::arange(1.5, 7, 0.25)),
        Function::new("linspace", none(), |_| ops::linspace(-1.0, 3.0, 9, DType::F32)),
        Function::new("logspace", none(), |_| ops::logspace(-1.0, 2.0, 7, 10.0, DType::F32)),
        Function::new("geomspace", none(), |_| ops::geomspace(0.5, 32.0, 7, DType::F32)),
        Function::new("eye", none(), |_| ops::eye_at(3, 5, 1, DType::F32)),
        Function::new("tri", none(), |_| ops::tri(4, 3, -1, DType::F32)),
        Function::several("tril_indices", none(), |_| {
            let (rows, columns) = ops::tril_indices(4, 3, 1)?;
            Ok(vec![rows, columns])
        }),
        Function::several("triu_indices", none(), |_| {
            let (rows, columns) = ops::triu_indices(4, 3, 1)?;
            Ok(vec![rows, columns])
        }),
        Function::new("hanning", none(), |_| ops::hanning(9)),
        Function::new("hamming", none(), |_| ops::hamming(9)),
        Function::new("blackman", none(), |_| ops::blackman(9)),
        Function::new("bartlett", none(), |_| ops::bartlett(9)),
        Function::new("fftfreq", none(), |_| ops::fftfreq(9, 0.5)),
        Function::new("rfftfreq", none(), |_| ops::rfftfreq(9, 0.5)),
    ];
    all.into_iter().map(|function| function.takes(float32)).collect()
}
