//! Running folds.

use cupola_core::prim::{Scan, ScanKind};
use cupola_core::{Aval, DType};

use crate::binary;
use crate::edges::{of_op, rows};
use crate::host::{Host, lanes};
use crate::number::identity;
use crate::sample::{Accuracy, Sample, from, numbers, spread};

pub fn samples() -> Vec<Sample> {
    let mut all: Vec<Sample> = ScanKind::ALL.iter().flat_map(|&kind| ordinary(kind)).collect();
    for &kind in ScanKind::ALL {
        for (axis, reverse) in [(0, false), (1, true)] {
            let op = Scan { kind, axis, reverse, exclusive: false };
            all.push(of_op(op, &format!("of edges along {axis}"), rows(), DType::is_inexact));
        }
    }
    for &kind in ScanKind::ALL {
        for (axis, direction) in [0, 2].into_iter().flat_map(|axis| [0, 1, 2, 3].map(|d| (axis, d)))
        {
            let (reverse, exclusive) = (direction & 1 == 1, direction & 2 == 2);
            let op = Scan { kind, axis, reverse, exclusive };
            let name = format!("{} along {axis}, way {direction}", kind.name());
            let sample = Sample::new(name, move |_| op.into(), vec![from([2, 3, 4], spread)]);
            // An extreme of nothing is infinite, and has no difference quotients.
            let finite = !exclusive || matches!(kind, ScanKind::Sum | ScanKind::Prod);
            let sample = if finite { sample.smooth() } else { sample };
            all.push(sample.where_kernels_are_cheap());
        }
    }
    all.extend(long());
    all.extend(finite());
    all.extend(kinks());
    all
}

/// Lanes that are cut into parts, and half types whose sums only more digits hold.
fn long() -> Vec<Sample> {
    let mut all = Vec::new();
    for size in [63, 1023, 1024, 1025, 5000, 131_072, 300_001] {
        for way in 0..4 {
            let (reverse, exclusive) = (way & 1 == 1, way & 2 == 2);
            for kind in [ScanKind::Sum, ScanKind::Max] {
                let op = Scan { kind, axis: 0, reverse, exclusive };
                let value = |i: usize| (i * 7_654_321 % 1_000_003) as f64 - 400_000.0;
                let name = format!("{} of {size}, way {way}", kind.name());
                let sample = Sample::new(name, move |_| op.into(), vec![from([size], value)]);
                all.push(sample.only(|dtype| dtype == DType::I32));
            }
        }
    }
    // In half precision 2048 + 1 is 2048.
    for (shape, axis) in [([2, 3000], 1), ([3000, 2], 0)] {
        let op = Scan { kind: ScanKind::Sum, axis, reverse: false, exclusive: false };
        let name = format!("cumsum of ones along {axis}");
        let sample = Sample::new(name, move |_| op.into(), vec![from(shape, |_| 1.0)]);
        all.push(sample.only(|dtype| dtype == DType::F16));
    }
    let exact = |s: Sample| s.within(Accuracy::Exact).where_kernels_are_cheap();
    all.into_iter().map(exact).collect()
}

/// Sums and products that are finite up to each element, though not all of what lies between, and products that begin
/// with zeros or infinities.
fn finite() -> Vec<Sample> {
    type Value = fn(usize, usize) -> f64;
    const CASES: [(ScanKind, &str, Value); 5] = [
        (ScanKind::Sum, "large ones", |i, n| match i {
            3 => -3e38,
            i if i == n / 2 || i == n / 2 + 1 => 3e38,
            _ => 0.0,
        }),
        (ScanKind::Prod, "large ones", |i, n| match i {
            0 => 1e-35,
            i if (n / 2..n / 2 + 5).contains(&i) => 1e14,
            i if (n / 2 + 5..n / 2 + 9).contains(&i) => 1e-3,
            _ => 1.0,
        }),
        (ScanKind::Prod, "small ones", |i, n| match i {
            0 => 1e35,
            i if (n / 2..n / 2 + 5).contains(&i) => 1e-14,
            i if (n / 2 + 5..n / 2 + 9).contains(&i) => 1e3,
            _ => 1.0,
        }),
        (ScanKind::Prod, "large ones and 0", |i, _| if i == 0 { 0.0 } else { 1e30 }),
        (
            ScanKind::Prod,
            "nothing but 0",
            |i, n| if i == n / 3 { -0.0 } else { 1.5 - i as f64 % 2.0 },
        ),
    ];
    let mut all = Vec::new();
    for size in [17, 300, 3000, 40_000, 200_000] {
        for (way, (kind, of, value)) in (0..4).flat_map(|way| CASES.map(|case| (way, case))) {
            let (reverse, exclusive) = (way & 1 == 1, way & 2 == 2);
            for (shape, axis) in [([2, size], 1), ([size, 2], 0)] {
                let op = Scan { kind, axis, reverse, exclusive };
                let at = move |i: usize| {
                    let at = if axis == 1 { i % size } else { i / 2 % size };
                    value(if reverse { size - 1 - at } else { at }, size)
                };
                let name = format!("{} of {of}, {shape:?}, way {way}", kind.name());
                let sample = Sample::new(name, move |_| op.into(), vec![from(shape, at)]);
                let sample = sample.only(|dtype| dtype == DType::F32);
                let few = size > 3000 && axis == 0;
                all.push(if few { sample.where_kernels_are_cheap() } else { sample });
            }
        }
    }
    all
}

/// Ties, NaN, infinities and factors of zero.
fn kinks() -> Vec<Sample> {
    const TIES: [f64; 4] = [1.0, 3.0, 3.0, 2.0];
    let low = f64::NEG_INFINITY;
    let kink = |of: &str, scan: (ScanKind, bool, bool), values: [f64; 4], slopes: [f64; 4]| {
        let (kind, reverse, exclusive) = scan;
        let op = Scan { kind, axis: 0, reverse, exclusive };
        let way = if reverse { "reverse " } else { "" };
        let name = format!("{way}{} of {of}", kind.name());
        Sample::new(name, move |_| op.into(), vec![numbers([4], &values)])
            .slopes(&[1.0, 2.0, 3.0, 4.0], &[&slopes])
    };
    use ScanKind::{LogAddExp, Max, Min, Prod};
    vec![
        // As in MLX the last of several equal elements is the extreme.
        kink("ties", (Max, false, false), TIES, [1.0, 2.0, 7.0, 0.0]),
        kink("ties", (Max, true, false), TIES, [0.0, 3.0, 3.0, 4.0]),
        kink("ties", (Min, false, false), [4.0, 3.0, 3.0, 2.0], [1.0, 2.0, 3.0, 4.0]),
        kink("ties without its own", (Max, false, true), TIES, [2.0, 3.0, 4.0, 0.0]),
        kink("NaN", (Max, false, false), [1.0, f64::NAN, 3.0, 2.0], [1.0, 0.0, 0.0, 0.0]),
        // Σᵢ wᵢ·Π of the others.
        kink("a zero", (Prod, false, false), [4.0, 0.0, 3.0, 2.0], [1.0, 140.0, 0.0, 0.0]),
        kink("two zeros", (Prod, false, false), [4.0, 0.0, 0.0, 2.0], [1.0, 8.0, 0.0, 0.0]),
        // What is joined to a sum of nothing but −∞ takes everything; of the nothing each has one half
        // of what is left.
        kink("−∞", (LogAddExp, false, false), [low, low, 0.0, low], [f64::NAN, f64::NAN, 7.0, 0.0]),
    ]
}

fn ordinary(kind: ScanKind) -> Vec<Sample> {
    let value = move |i: usize| match kind {
        // Long products neither grow nor vanish, complex ones neither.
        ScanKind::Prod => 0.7 + 0.1 * spread(i),
        _ => spread(i),
    };
    // Short and long lanes, side by side and one after the other.
    let cases: [(&[usize], usize, bool, bool); 9] = [
        (&[3, 4, 5], 0, false, false),
        (&[3, 4, 5], 1, true, false),
        (&[3, 4, 5], 2, false, true),
        (&[3, 4, 5], 1, true, true),
        (&[2, 37], 1, true, true),
        (&[1, 301], 1, false, false),
        (&[301, 2], 0, true, true),
        (&[9001], 0, true, true),
        (&[2, 0], 1, false, true),
    ];
    let sample = |(shape, axis, reverse, exclusive): (&[usize], usize, bool, bool)| {
        let op = Scan { kind, axis, reverse, exclusive };
        let name = format!(
            "{}{}{} {shape:?} along {axis}",
            if reverse { "reverse " } else { "" },
            if exclusive { "exclusive " } else { "" },
            kind.name(),
        );
        let long = shape.iter().any(|&d| d > 100);
        let sample = Sample::new(name, move |_| op.into(), vec![from(shape, value)]);
        // An exclusive extreme starts infinite, where differences are NaN.
        let infinite = exclusive && !matches!(kind, ScanKind::Sum | ScanKind::Prod);
        if long || infinite { sample } else { sample.smooth() }
    };
    cases.into_iter().map(sample).collect()
}

pub fn reference(s: &Scan, x: &Host, out: &Aval) -> Host {
    let join = s.kind.join();
    lanes(x, s.axis, out, |lane| {
        let mut total = identity(join, out.dtype);
        let mut folded = vec![total; lane.len()];
        // What is infinite is not its product with a complex 1.
        let is_apart = s.kind == ScanKind::Prod && out.dtype.is_complex();
        for i in 0..lane.len() {
            let at = if s.reverse { lane.len() - 1 - i } else { i };
            let before = total;
            total = match i {
                0 if is_apart => lane[at],
                _ => binary::number(join, total, lane[at], out.dtype),
            };
            // Integers wrap at each step.
            if !out.dtype.is_inexact() {
                total = total.fit(out.dtype);
            }
            folded[at] = if s.exclusive { before } else { total };
        }
        folded
    })
}
