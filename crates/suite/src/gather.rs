//! Reading and writing at computed places.

use cupola_core::prim::{Binary, Gather, GatherAxis, Scatter, ScatterAxis, ScatterMode};
use cupola_core::{Aval, DType, Shape};

use crate::binary;
use crate::host::{Host, flat, indices};
use crate::number::Number;
use crate::sample::{Accuracy, Input, Sample, dims, fixed, from, input, numbers, spread, whole};

pub fn samples() -> Vec<Sample> {
    let places = |shape: &[usize], below: usize| {
        fixed(shape, DType::I32, move |i| ((i * 5 + 2) % below) as f64)
    };
    let rows = Gather { axes: dims(&[0]), sizes: dims(&[1, 4]) };
    let points = Gather { axes: dims(&[2, 0]), sizes: dims(&[1, 3, 1]) };
    let along = GatherAxis { axis: 1 };
    let mut all = vec![
        Sample::new(
            "gather rows",
            move |_| rows.clone().into(),
            vec![input([5, 4]), places(&[2, 3], 5)],
        )
        .smooth(),
        Sample::new(
            "gather points",
            move |_| points.clone().into(),
            vec![input([4, 3, 5]), places(&[6], 5), places(&[6], 4)],
        )
        .smooth(),
        Sample::new(
            "take_along_axis",
            move |_| along.clone().into(),
            vec![input([3, 5]), places(&[3, 4], 5)],
        )
        .smooth(),
    ];
    // Its transpose is no scatter.
    let one_each = Sample::new(
        "take_along_axis once",
        |_| GatherAxis { axis: 1 }.into(),
        vec![input([4, 6, 2]), places(&[4, 1, 2], 6)],
    );
    all.push(one_each.smooth());
    for mode in MODES {
        let op = Scatter { mode, axes: dims(&[0]) };
        let along = ScatterAxis { mode, axis: 0 };
        // Repeated places only where the order of updates does not touch the derivative.
        let below = 5;
        let first = Sample::new(
            format!("scatter {mode:?}"),
            move |_| op.clone().into(),
            vec![input([5, 3]), from([4, 1, 3], |i| spread(i + 60)), places(&[4], below)],
        );
        let second = Sample::new(
            format!("put_along_axis {mode:?}"),
            move |_| along.clone().into(),
            vec![input([5, 3]), from([2, 3], |i| spread(i + 70)), places(&[2, 3], below)],
        );
        if matches!(mode, ScatterMode::Set | ScatterMode::Add) {
            all.extend([first.smooth(), second.smooth()]);
        } else {
            all.extend([first, second]);
        }
    }
    all.extend(differentiated().into_iter().map(Sample::where_kernels_are_cheap));
    all.extend(slices());
    all.extend(along_one_axis());
    all.extend(not_a_number());
    all.extend(long_runs());
    all
}

const MODES: [ScatterMode; 5] =
    [ScatterMode::Set, ScatterMode::Add, ScatterMode::Prod, ScatterMode::Max, ScatterMode::Min];

/// Indices of the dtype that follows from `n`, below `below`.
fn indices_of(n: usize, shape: &[usize], below: usize, seed: usize) -> Input {
    let dtypes = DType::ALL.into_iter().filter(|d| d.is_integer()).collect::<Vec<_>>();
    fixed(shape, dtypes[n % dtypes.len()], move |i| whole(i, below.max(1), seed))
}

/// Numbers from 0.5 to 2.
fn positive(shape: &[usize], seed: usize) -> Input {
    from(shape, move |i| 1.25 + spread(i + seed) / 4.0)
}

/// [`positive`] numbers with zeros at these places.
fn with_zeros(shape: &[usize], seed: usize, places: &'static [usize]) -> Input {
    let value = move |i: usize| {
        if places.contains(&i) { 0.0 } else { 1.25 + spread(i + seed) / 4.0 }
    };
    from(shape, value)
}

/// Places that repeat and overlap in part, and products with zeros.
fn differentiated() -> Vec<Sample> {
    let list = |shape: &[usize], values: &'static [usize]| {
        fixed(shape, DType::U32, move |i| values[i % values.len()] as f64)
    };
    let rows = || list(&[2, 3], &[2, 0, 2, 1, 1, 0]);
    let columns = || list(&[2, 3], &[0, 2, 1, 2, 0, 0]);
    let x = || input([3, 4, 2]);
    let gather = |name: &str, axes: &[usize], sizes: &[usize], inputs: Vec<Input>| {
        let op = Gather { axes: dims(axes), sizes: dims(sizes) };
        Sample::new(name, move |_| op.clone().into(), inputs).smooth()
    };
    let along = list(&[3, 2, 2], &[0, 3, 2, 2, 1, 0, 0, 0, 3, 1, 2, 3]);
    let mut all = vec![
        gather("gather repeated rows", &[0], &[1, 4, 2], vec![x(), rows()]),
        gather("gather of two axes", &[1, 0], &[1, 2, 2], vec![x(), columns(), rows()]),
        gather("gather one column", &[2], &[3, 1, 1], vec![x(), list(&[], &[1])]),
        gather("gather the start", &[], &[2, 4, 1], vec![x()]),
        Sample::new("take_along_axis again", |_| GatherAxis { axis: 1 }.into(), vec![x(), along])
            .smooth(),
    ];
    for mode in MODES {
        for zeros in [false, true] {
            if zeros && mode != ScatterMode::Prod {
                continue;
            }
            let name =
                |of: &str| format!("{of} {mode:?}{}", if zeros { " with zeros" } else { "" });
            let at = |places: &'static [usize]| if zeros { places } else { &[] };
            let x = || with_zeros(&[3, 4], 3, at(&[1, 7]));
            let both = Scatter { mode, axes: dims(&[0, 1]) };
            let inputs = vec![
                x(),
                with_zeros(&[5, 1, 2], 40, at(&[0, 2, 4, 9])),
                list(&[5], &[0, 2, 0, 0, 1]),
                list(&[5], &[1, 2, 1, 2, 0]),
            ];
            let sample = Sample::new(name("scatter twice"), move |_| both.clone().into(), inputs);
            all.push(sample.smooth());
            let own = ScatterAxis { mode, axis: 1 };
            let inputs = vec![
                x(),
                with_zeros(&[3, 3], 70, at(&[3, 4, 8])),
                list(&[3, 3], &[0, 3, 0, 2, 2, 2, 1, 3, 1]),
            ];
            let sample = Sample::new(name("put twice"), move |_| own.clone().into(), inputs);
            all.push(sample.smooth());
        }
        let op = Scatter { mode, axes: dims(&[1]) };
        let inputs =
            vec![positive(&[3, 4], 3), positive(&[2, 2, 3, 1], 90), list(&[2, 2], &[1, 3, 3, 0])];
        let name = format!("scatter columns {mode:?}");
        all.push(Sample::new(name, move |_| op.clone().into(), inputs).smooth());
    }
    let start = |_| Scatter { mode: ScatterMode::Set, axes: dims(&[]) }.into();
    let inputs = vec![positive(&[3, 4], 3), positive(&[2, 3], 60)];
    all.push(Sample::new("scatter at the start", start, inputs).smooth());
    let ties = Sample::new(
        "put_along_axis of ties",
        |_| ScatterAxis { mode: ScatterMode::Max, axis: 0 }.into(),
        vec![numbers([2], &[2.0, 5.0]), numbers([3], &[2.0, 2.0, 4.0]), list(&[3], &[0, 0, 1])],
    );
    all.push(ties.slopes(&[3.0, 1.0], &[&[1.0, 1.0], &[1.0, 1.0, 0.0]]));
    all
}

/// The shape of x, the axes that are indexed, the slices' sizes, the indices' shape.
type Slices = (&'static [usize], &'static [usize], &'static [usize], &'static [usize]);

/// Slices of every kind with indices of every dtype; sums and products of few whole numbers.
fn slices() -> Vec<Sample> {
    let cases: [Slices; 14] = [
        (&[7, 5], &[0], &[1, 5], &[4]),
        (&[7, 5], &[0], &[1, 5], &[3, 2]),
        (&[7, 5], &[0], &[1, 5], &[12]),
        (&[7, 5], &[1], &[7, 1], &[3, 2]),
        (&[7, 5], &[1, 0], &[1, 1], &[40]),
        (&[4, 5, 6], &[2, 0], &[2, 3, 4], &[2, 3]),
        (&[4, 5, 6], &[1], &[1, 2, 1], &[]),
        (&[4, 5], &[], &[2, 5], &[]),
        (&[4, 0], &[0], &[1, 0], &[3]),
        (&[4, 5], &[0], &[1, 5], &[0]),
        // Many rows are sorted by some devices.
        (&[40, 8], &[0], &[1, 8], &[130]),
        (&[40, 7], &[0], &[1, 7], &[9, 15]),
        (&[6, 50, 4], &[1], &[5, 1, 3], &[70]),
        (&[3, 200_001], &[0], &[1, 200_001], &[4]),
    ];
    let mut all = Vec::new();
    for (shape, axes, sizes, lead) in cases {
        let places = |n: usize| -> Vec<Input> {
            let below = |&axis: &usize| shape[axis] + 1 - sizes[axis];
            let list = |(i, axis)| indices_of(n, lead, below(axis), i + 3);
            axes.iter().enumerate().map(list).collect()
        };
        let large = shape.iter().product::<usize>() > 100_000;
        for n in 0..if large { 1 } else { 8 } {
            let op = Gather { axes: dims(axes), sizes: dims(sizes) };
            let name = format!("gather {sizes:?} of {shape:?} at {lead:?}, indices {n}");
            let mut inputs = vec![from(shape, |i| whole(i, 100, 1))];
            inputs.extend(places(n));
            let sample = Sample::new(name, move |_| op.clone().into(), inputs);
            let sample = sample.within(Accuracy::Exact).only(move |d| !large || d == DType::F32);
            let everywhere = n == 0 && shape.len() == 3;
            all.push(if everywhere { sample } else { sample.where_kernels_are_cheap() });
        }
        if large {
            continue;
        }
        let updates: Vec<usize> = lead.iter().chain(sizes).copied().collect();
        for (n, mode) in MODES.into_iter().enumerate() {
            let op = Scatter { mode, axes: dims(axes) };
            let name = format!("scatter {mode:?} {sizes:?} in {shape:?} at {lead:?}");
            // Products of many must stay exact in every type.
            let below = if mode == ScatterMode::Prod { 2 } else { 3 };
            let mut inputs = vec![
                from(shape, |i| whole(i, 3, 5)),
                from(&updates[..], move |i| whole(i, below, 6)),
            ];
            inputs.extend(places(n));
            let sample = Sample::new(name, move |_| op.clone().into(), inputs);
            all.push(sample.within(Accuracy::Exact).where_kernels_are_cheap());
        }
    }
    all
}

/// Elements along one axis, with indices of every dtype.
fn along_one_axis() -> Vec<Sample> {
    let cases: [(&[usize], usize, usize); 6] = [
        (&[6], 0, 9),
        (&[3, 4, 5], 1, 7),
        (&[3, 4, 5], 2, 2),
        (&[3, 4], 0, 5),
        (&[2, 3], 1, 0),
        (&[0, 3], 1, 2),
    ];
    let mut all = Vec::new();
    for (shape, axis, count) in cases {
        let lead = Shape::from(shape).with(axis, count);
        for n in 0..8 {
            let at = || indices_of(n, &lead, shape[axis], 2);
            let name = format!("take_along_axis {axis} of {shape:?}, {count} with indices {n}");
            let inputs = vec![from(shape, |i| whole(i, 90, 1)), at()];
            let take = Sample::new(name, move |_| GatherAxis { axis }.into(), inputs);
            all.push(take.within(Accuracy::Exact).where_kernels_are_cheap());
            for mode in MODES {
                let name = format!("put_along_axis {mode:?} {axis} of {shape:?}, {count}, {n}");
                let inputs = vec![
                    from(shape, |i| whole(i, 2, 1)),
                    from(&lead[..], |i| whole(i, 2, 9)),
                    at(),
                ];
                let put = Sample::new(name, move |_| ScatterAxis { mode, axis }.into(), inputs);
                all.push(put.within(Accuracy::Exact).where_kernels_are_cheap());
            }
        }
    }
    all
}

/// Thousands of updates for a few places, most for one. Sums and products stay exact in every type.
fn long_runs() -> Vec<Sample> {
    const COUNT: usize = 5000;
    // One maximum, and one minimum, far from both ends of the updates for one place.
    let best = |i: usize| match i {
        2502 => Some(1),
        5002 | 5003 => Some(2),
        7502 => Some(3),
        _ => None,
    };
    let value = |mode: ScatterMode| {
        move |i: usize| {
            f64::from(match mode {
                ScatterMode::Add => i32::from(i.is_multiple_of(97)),
                ScatterMode::Prod => 1 + i32::from(i.is_multiple_of(1999)),
                ScatterMode::Set => i as i32 % 101,
                ScatterMode::Max => best(i).map_or(i as i32 % 101, |more| 110 + more),
                ScatterMode::Min => best(i).map_or(20 + i as i32 % 101, |less| 9 - less),
            })
        }
    };
    let at = |shape: &[usize]| {
        let place = |i: usize| if i.is_multiple_of(10) { i / 10 % 3 } else { 1 };
        fixed(shape, DType::I32, move |i| place(i) as f64)
    };
    let mut all = Vec::new();
    for mode in MODES {
        let high = if mode == ScatterMode::Min { 124.0 } else { 0.0 };
        let start = move |shape: &[usize]| from(shape, move |i| high + whole(i, 3, 5));
        let rows = Scatter { mode, axes: dims(&[0]) };
        let rows = Sample::new(
            format!("scatter {mode:?}, thousands for one place"),
            move |_| rows.clone().into(),
            vec![start(&[3, 2]), from([COUNT, 1, 2], value(mode)), at(&[COUNT])],
        );
        let points = Scatter { mode, axes: dims(&[2, 0]) };
        let points = Sample::new(
            format!("scatter points {mode:?}, thousands for one place"),
            move |_| points.clone().into(),
            vec![
                start(&[3, 2, 3]),
                from([COUNT, 1, 2, 1], value(mode)),
                at(&[COUNT]),
                fixed([COUNT], DType::I32, |i| if i.is_multiple_of(7) { 2.0 } else { 0.0 }),
            ],
        );
        let along = |axis: usize, [shape, updates]: [[usize; 2]; 2]| {
            Sample::new(
                format!("put_along_axis {mode:?} {axis}, thousands for one place"),
                move |_| ScatterAxis { mode, axis }.into(),
                vec![start(&shape), from(updates, value(mode)), at(&updates)],
            )
        };
        let samples =
            [rows, points, along(0, [[3, 2], [COUNT, 2]]), along(1, [[2, 3], [2, COUNT]])];
        let is_one_of_few = |d: DType| matches!(d, DType::F32 | DType::F16 | DType::I8);
        let samples = samples.map(|sample| sample.within(Accuracy::Exact));
        all.extend(samples.map(|sample| match mode {
            ScatterMode::Add => sample.only(is_one_of_few),
            _ => sample.where_kernels_are_cheap(),
        }));
    }
    all
}

/// NaN wins maxima and minima.
fn not_a_number() -> Vec<Sample> {
    let sample = |mode| {
        let inputs = vec![
            numbers([3], &[f64::NAN, 1.0, 2.0]),
            numbers([3], &[1.0, f64::NAN, 2.0]),
            fixed([3], DType::I32, |i| i as f64),
        ];
        let op = move |_| ScatterAxis { mode, axis: 0 }.into();
        Sample::new(format!("put_along_axis {mode:?} of NaN"), op, inputs).only(DType::is_float)
    };
    [ScatterMode::Max, ScatterMode::Min].map(sample).into()
}

pub fn gather(g: &Gather, inputs: &[Host], out: &Aval) -> Host {
    let x = &inputs[0];
    let lead = out.shape.rank() - x.aval.shape.rank();
    let all: Vec<_> = indices(&out.shape).collect();
    Host::from_fn(out.clone(), |i| {
        let (which, within) = all[i].split_at(lead);
        let mut index = within.to_vec();
        for (n, &axis) in g.axes.iter().enumerate() {
            let list = &inputs[1 + n];
            index[axis] += list.data[flat(&list.aval.shape, which)].int() as usize;
        }
        x.data[flat(&x.aval.shape, &index)]
    })
}

pub fn gather_axis(g: &GatherAxis, inputs: &[Host], out: &Aval) -> Host {
    let all: Vec<_> = indices(&out.shape).collect();
    Host::from_fn(out.clone(), |i| {
        let mut index = all[i].clone();
        index[g.axis] = inputs[1].data[i].int() as usize;
        inputs[0].data[flat(&inputs[0].aval.shape, &index)]
    })
}

fn join(mode: ScatterMode, old: Number, new: Number, dtype: DType) -> Number {
    let joined = match mode {
        ScatterMode::Set => new,
        ScatterMode::Add => binary::number(Binary::Add, old, new, dtype),
        ScatterMode::Prod => binary::number(Binary::Mul, old, new, dtype),
        ScatterMode::Max => binary::number(Binary::Maximum, old, new, dtype),
        ScatterMode::Min => binary::number(Binary::Minimum, old, new, dtype),
    };
    joined.fit(dtype)
}

pub fn scatter(s: &Scatter, inputs: &[Host]) -> Host {
    let mut result = inputs[0].clone();
    let updates = &inputs[1];
    let lead = updates.aval.shape.rank() - result.aval.shape.rank();
    for (i, index) in indices(&updates.aval.shape).enumerate() {
        let (which, within) = index.split_at(lead);
        let mut place = within.to_vec();
        for (n, &axis) in s.axes.iter().enumerate() {
            let list = &inputs[2 + n];
            place[axis] += list.data[flat(&list.aval.shape, which)].int() as usize;
        }
        let at = flat(&result.aval.shape, &place);
        result.data[at] = join(s.mode, result.data[at], updates.data[i], result.aval.dtype);
    }
    result
}

pub fn scatter_axis(s: &ScatterAxis, inputs: &[Host]) -> Host {
    let mut result = inputs[0].clone();
    for (i, mut index) in indices(&inputs[2].aval.shape).enumerate() {
        index[s.axis] = inputs[2].data[i].int() as usize;
        let place = flat(&result.aval.shape, &index);
        result.data[place] = join(s.mode, result.data[place], inputs[1].data[i], result.aval.dtype);
    }
    result
}
