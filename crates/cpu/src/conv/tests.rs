//! Every role against the definition in f64, over a sweep of parameters.

use super::*;
use crate::threads::with_threads;
use cupola_simd::{Level, Real, Residual, with_isa_limit};
use half::{bf16, f16};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A path that is taken where there is it, whatever it costs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    Images,
    Channels,
    Winograd,
}

thread_local! {
    pub(super) static FORCED: Cell<Option<Way>> = const { Cell::new(None) };
}

pub(crate) struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    fn pick(&mut self, from: &[usize]) -> usize {
        from[self.below(from.len())]
    }

    /// Small multiples of 1/8, exact in every type.
    fn values(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| (self.below(17) as f64 - 8.0) / 8.0).collect()
    }
}

/// Calls `f(x index, w index, y index)` for every product of the definition.
fn products(p: &ConvProblem, mut f: impl FnMut(usize, usize, usize)) {
    let dims = p.input.len();
    let (outputs, taps) = (p.output.iter().product(), p.kernel.iter().product());
    let inputs: usize = p.input.iter().product();
    let (cg, og) = (p.in_channels / p.groups, p.out_channels / p.groups);
    for o in 0..outputs {
        'tap: for k in 0..taps {
            let (mut o_rest, mut k_rest) = (o, k);
            let (mut i, mut scale) = (0usize, 1usize);
            for d in (0..dims).rev() {
                let (oi, ki): (usize, usize) = (o_rest % p.output[d], k_rest % p.kernel[d]);
                o_rest /= p.output[d];
                k_rest /= p.kernel[d];
                let ki = if p.flip { p.kernel[d] - 1 - ki } else { ki };
                let q = (oi * p.stride[d] + ki * p.dilation[d]) as isize - p.padding[d].0 as isize;
                let step = p.input_dilation[d] as isize;
                if q < 0 || q % step != 0 || (q / step) as usize >= p.input[d] {
                    continue 'tap;
                }
                i += (q / step) as usize * scale;
                scale *= p.input[d];
            }
            for n in 0..p.batch {
                for co in 0..p.out_channels {
                    for ci in 0..cg {
                        f(
                            (n * inputs + i) * p.in_channels + co / og * cg + ci,
                            (co * taps + k) * cg + ci,
                            (n * outputs + o) * p.out_channels + co,
                        );
                    }
                }
            }
        }
    }
}

struct Case {
    p: ConvProblem,
    x: Vec<f64>,
    w: Vec<f64>,
    dy: Vec<f64>,
    want: [Vec<f64>; 3],
}

fn case(p: ConvProblem, rng: &mut Rng) -> Case {
    let (x, w) = (rng.values(p.input_len()), rng.values(p.weight_len()));
    let dy = rng.values(p.output_len());
    let mut want = [vec![0.0; dy.len()], vec![0.0; x.len()], vec![0.0; w.len()]];
    products(&p, |xi, wi, yi| {
        want[0][yi] += x[xi] * w[wi];
        want[1][xi] += dy[yi] * w[wi];
        want[2][wi] += x[xi] * dy[yi];
    });
    Case { p, x, w, dy, want }
}

/// Runs one role, checks that the epilogue covers the output once, and returns the output.
fn run<T: Element + ToPoints>(
    p: &ConvProblem,
    role: ConvRole,
    a: &[T],
    b: &[T],
    len: usize,
) -> Vec<T> {
    let mut out = vec![T::default(); len];
    let seen = Mutex::new(vec![0u8; len]);
    let mark = |r: Range<usize>| seen.lock().unwrap()[r].iter_mut().for_each(|s| *s += 1);
    conv(p, role, a, b, Out::new(&mut out), ConvTail::default(), Some(&mark));
    assert!(seen.into_inner().unwrap().iter().all(|&s| s == 1), "epilogue of {role:?} {p:?}");
    out
}

fn twice<A: Real>(at: *mut A, step: usize, rows: usize, width: usize) {
    for row in 0..rows {
        // SAFETY: the rows were just stored.
        for x in unsafe { std::slice::from_raw_parts_mut(at.add(row * step), width) } {
            *x += *x;
        }
    }
}

/// Checks that a tail is what follows the sums, which are `plain`, to the bit.
fn check_tail<T: Element + ToPoints>(
    p: &ConvProblem,
    role: ConvRole,
    a: &[T],
    b: &[T],
    plain: &[T],
) {
    let Some(plain) = T::as_acc(plain).filter(|_| role != ConvRole::WeightGrad) else { return };
    let channels = if role == ConvRole::Forward { p.out_channels } else { p.in_channels };
    let number = |i: usize| T::from_acc(plain[i * 7 % plain.len()]).to_acc();
    if plain.is_empty() {
        return;
    }
    let bias: Vec<T::Acc> = (0..channels).map(number).collect();
    let residual: Vec<T::Acc> = (0..plain.len()).map(|i| number(i + 3)).collect();
    let (low, high) = (number(1), number(2));
    let bounds = ConvTail { low: Some(low), high: Some(high), ..ConvTail::default() };
    for (tail, has_residual) in [
        (ConvTail { bias: Some(&bias), ..ConvTail::default() }, false),
        (ConvTail { high: None, then: Some(&twice::<T::Acc>), ..bounds }, false),
        (ConvTail { bias: Some(&bias), ..bounds }, false),
        (ConvTail::default(), true),
        (ConvTail { bias: Some(&bias), then: Some(&twice::<T::Acc>), ..bounds }, true),
    ] {
        let mut out = vec![T::default(); plain.len()];
        // SAFETY: it has as many elements.
        let beside = unsafe { Residual::new(residual.as_ptr(), out.as_ptr().cast()) };
        let tail = ConvTail { residual: has_residual.then_some(beside), ..tail };
        // Either the tail or the epilogue doubles.
        let at = Out::new(&mut out);
        let epilogue = |range: Range<usize>| {
            // SAFETY: the range is done.
            for x in unsafe { at.slice(range) } {
                *x = T::from_acc(x.to_acc() + x.to_acc());
            }
        };
        let epilogue = tail.then.map(|_| &epilogue as &(dyn Fn(Range<usize>) + Sync));
        conv(p, role, a, b, at, tail, epilogue);
        for (at, (&sum, got)) in plain.iter().zip(&out).enumerate() {
            let mut want = tail.bias.map_or(sum, |bias| sum + bias[at % channels]);
            if has_residual {
                want += residual[at];
            }
            if let Some(low) = tail.low
                && want <= low
            {
                want = low;
            }
            if let Some(high) = tail.high
                && want >= high
            {
                want = high;
            }
            if tail.then.is_some() {
                want += want;
            }
            let got = got.to_acc();
            // −0 is not 0.
            let is_same = got == want && got.is_plain() == want.is_plain();
            assert!(is_same, "tail of {role:?} {p:?} at {at}");
        }
    }
}

/// Where tasks share channels, results are done with in their tiles, and the epilogue is not called; elsewhere it is.
#[test]
fn what_follows_is_done_once() {
    let problem = |channels: usize, size: usize| ConvProblem {
        batch: 1,
        groups: 1,
        in_channels: 80,
        out_channels: channels,
        input: vec![size; 2],
        kernel: vec![1; 2],
        output: vec![size; 2],
        stride: vec![1; 2],
        padding: vec![(0, 0); 2],
        dilation: vec![1; 2],
        input_dilation: vec![1; 2],
        flip: false,
    };
    for (p, shares) in [(problem(480, 7), true), (problem(16, 64), false)] {
        let (x, w) = (vec![1f32; p.input_len()], vec![1f32; p.weight_len()]);
        let mut out = vec![0f32; p.output_len()];
        let counts = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let then = |_: *mut f32, _: usize, rows: usize, width: usize| {
            counts[0].fetch_add(rows * width, Ordering::Relaxed);
        };
        let epilogue = |range: Range<usize>| {
            counts[1].fetch_add(range.len(), Ordering::Relaxed);
        };
        let tail = ConvTail { then: Some(&then), ..ConvTail::default() };
        let len = out.len();
        conv(&p, ConvRole::Forward, &x, &w, Out::new(&mut out), tail, Some(&epilogue));
        let counts = counts.map(AtomicUsize::into_inner);
        assert_eq!(counts, if shares { [len, 0] } else { [0, len] }, "{p:?}");
    }
}

fn check<T: Element + ToPoints + PartialEq>(
    c: &Case,
    tolerance: f64,
    from: fn(f64) -> T,
    to: fn(T) -> f64,
) {
    let cast = |v: &[f64]| v.iter().map(|&v| from(v)).collect::<Vec<T>>();
    let (x, w, dy) = (cast(&c.x), cast(&c.w), cast(&c.dy));
    let roles = [
        (ConvRole::Forward, &x, &w),
        (ConvRole::InputGrad, &dy, &w),
        (ConvRole::WeightGrad, &x, &dy),
    ];
    for (i, (role, a, b)) in roles.into_iter().enumerate() {
        let want = &c.want[i];
        let one = with_threads(1, || run(&c.p, role, a, b, want.len()));
        let two = with_threads(2, || run(&c.p, role, a, b, want.len()));
        assert!(one == two, "{role:?} depends on threads: {:?}", c.p);
        check_tail(&c.p, role, a, b, &one);
        for (at, (got, want)) in one.iter().zip(want).enumerate() {
            let got = to(*got);
            let error = (got - want).abs() / want.abs().max(1.0);
            assert!(error <= tolerance, "{role:?} {:?} at {at}: {got} is not {want}", c.p);
        }
    }
}

fn check_all(c: &Case) {
    for (i, level) in [Level::Portable, Level::Avx2, Level::Avx512].into_iter().enumerate() {
        let ways = [None, Some(Way::Images), Some(Way::Channels), Some(Way::Winograd)];
        FORCED.set(ways[(i + c.p.batch + c.x.len()) % 4]);
        with_isa_limit(level, || {
            check::<f32>(c, 1e-4, |v| v as f32, f64::from);
            check::<f64>(c, 1e-12, |v| v, |v| v);
            check::<f16>(c, 2e-3, f16::from_f64, f64::from);
            check::<bf16>(c, 1e-2, bf16::from_f64, f64::from);
        });
        FORCED.set(None);
    }
}

fn problem(batch: usize, ci: usize, co: usize, size: &[usize], k: usize) -> ConvProblem {
    let n = size.len();
    ConvProblem {
        batch,
        groups: 1,
        in_channels: ci,
        out_channels: co,
        input: size.to_vec(),
        kernel: vec![k; n],
        output: size.to_vec(),
        stride: vec![1; n],
        padding: vec![(k / 2, k - 1 - k / 2); n],
        dilation: vec![1; n],
        input_dilation: vec![1; n],
        flip: false,
    }
}

#[test]
fn random_parameters() {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    for round in 0..160 {
        let dims = rng.pick(&[1, 2, 2, 2, 3]);
        let groups = rng.pick(&[1, 1, 1, 2, 3]);
        let mut p = ConvProblem {
            batch: rng.pick(&[1, 1, 2, 3, 17, 33]),
            groups,
            in_channels: groups * rng.pick(&[1, 1, 2, 5, 9]),
            out_channels: groups * rng.pick(&[1, 3, 4, 17]),
            input: vec![],
            kernel: vec![],
            output: vec![],
            stride: vec![],
            padding: vec![],
            dilation: vec![],
            input_dilation: vec![],
            flip: rng.below(3) == 0,
        };
        let plain = rng.below(3) == 0;
        for _ in 0..dims {
            let pick = |rng: &mut Rng| if plain { 1 } else { rng.pick(&[1, 1, 2, 3]) };
            let (s, d, i) = (pick(&mut rng), pick(&mut rng), pick(&mut rng));
            let input = rng.pick(&[1, 2, 4, 5, 6]) + if dims == 1 { rng.below(20) } else { 0 };
            let k = rng.pick(&[1, 2, 3, 3]);
            let pad = (rng.pick(&[0, 1, 1, 2, 5]), rng.pick(&[0, 1, 2]));
            let (span, reach) = ((input - 1) * i + 1 + pad.0 + pad.1, (k - 1) * d + 1);
            let output = if span < reach { 0 } else { (span - reach) / s + 1 };
            p.input.push(input);
            p.kernel.push(k);
            p.output.push(output);
            p.stride.push(s);
            p.padding.push(pad);
            p.dilation.push(d);
            p.input_dilation.push(i);
        }
        if round % 20 == 19 {
            p.batch = 0;
        }
        check_all(&case(p, &mut rng));
    }
}

/// Rows as long as a tile and longer: tiles that end with them, that go on in the next, and that lie evenly all along.
#[test]
fn tiles_of_long_rows() {
    let mut rng = Rng(41);
    let sizes: [&[usize]; 5] = [&[3, 13], &[2, 14], &[4, 29], &[300], &[2, 3, 11]];
    for size in sizes {
        for (k, stride, dilation, groups, padded) in
            [(1, 1, 1, 1, false), (1, 2, 1, 2, false), (3, 1, 1, 1, true), (2, 1, 2, 2, true)]
        {
            let channels = rng.pick(&[1, 3, 16, 20]);
            let mut p = problem(2, channels * groups, channels.min(17) * groups, size, k);
            p.groups = groups;
            for (d, &size) in size.iter().enumerate() {
                let reach = (k - 1) * dilation;
                p.padding[d] = if padded || size <= reach { (reach, 1) } else { (0, 0) };
                (p.stride[d], p.dilation[d]) = (stride, dilation);
                p.output[d] = (size + p.padding[d].0 + p.padding[d].1 - reach - 1) / stride + 1;
            }
            let c = case(p, &mut rng);
            FORCED.set(Some(Way::Channels));
            for level in [Level::Portable, Level::Avx512] {
                with_isa_limit(level, || check::<f32>(&c, 1e-4, |v| v as f32, f64::from));
            }
            FORCED.set(None);
        }
    }
}

/// Tiles of outputs at every edge, groups, channels that are no whole vectors, blocks that begin within an image, tasks
/// that share channels, and any padding.
#[test]
fn winograd_of_any_size() {
    let mut rng = Rng(37);
    let sizes = [[1, 1], [2, 3], [3, 2], [7, 8], [5, 31], [14, 14]];
    for (i, size) in sizes.into_iter().enumerate() {
        for (batch, groups, ci, co) in [(1, 1, 16, 130), (3, 2, 9, 17), (5, 1, 33, 8)] {
            let mut p = problem(batch, ci * groups, co * groups, &size, 3);
            (p.groups, p.flip) = (groups, i % 2 == 1);
            for (d, &size) in size.iter().enumerate() {
                let (before, after) = (rng.below(4), rng.below(4));
                let is_short = size + before + after < 3;
                let (before, after) = if is_short { (1, 1) } else { (before, after) };
                p.padding[d] = (before, after);
                p.output[d] = size + before + after - 2;
            }
            let c = case(p, &mut rng);
            FORCED.set(Some(Way::Winograd));
            for level in [Level::Portable, Level::Avx2, Level::Avx512] {
                with_isa_limit(level, || {
                    let geo = Geometry::forward(&c.p);
                    let path = Path::<f32>::new(&geo, Isa::best(), &vec![0f32; c.w.len()]);
                    assert!(matches!(path, Path::Winograd(..)), "{:?}", c.p);
                    check::<f32>(&c, 1e-4, |v| v as f32, f64::from);
                    check::<f64>(&c, 1e-12, |v| v, |v| v);
                    check::<bf16>(&c, 1e-2, bf16::from_f64, f64::from);
                    check::<f16>(&c, 2e-3, f16::from_f64, f64::from);
                });
            }
            FORCED.set(None);
        }
    }
}

/// What is not finite meets the outputs whose windows have it, and is there what sums of products are.
#[test]
fn winograd_of_numbers_that_are_not_finite() {
    let mut rng = Rng(41);
    let p = problem(1, 16, 16, &[9, 10], 3);
    let w: Vec<f32> = (0..p.weight_len()).map(|_| rng.below(9) as f32 - 4.5).collect();
    let run = |x: &[f32], way| {
        FORCED.set(Some(way));
        let mut out = vec![0f32; p.output_len()];
        conv(&p, ConvRole::Forward, x, &w, Out::new(&mut out), ConvTail::default(), None);
        FORCED.set(None);
        out
    };
    for odd in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 3e38] {
        for _ in 0..20 {
            let mut x: Vec<f32> = (0..p.input_len()).map(|_| rng.below(9) as f32 - 4.0).collect();
            let len = x.len();
            x[rng.below(len)] = odd;
            let (got, want) = (run(&x, Way::Winograd), run(&x, Way::Channels));
            for (got, want) in got.iter().zip(&want) {
                let is_near = got == want || got.is_nan() && want.is_nan();
                assert!(
                    is_near || (got - want).abs() <= 1e-6 * want.abs(),
                    "{odd}: {got} is not {want}"
                );
            }
        }
    }
}

#[test]
fn layer_sizes() {
    let mut rng = Rng(7);
    for (batch, ci, co, size) in [(33, 1, 20, 9), (1, 20, 50, 7), (17, 20, 50, 6), (2, 50, 33, 7)] {
        check_all(&case(problem(batch, ci, co, &[size, size], 5), &mut rng));
    }
}

/// Around a copy of the image there would be more zeros than image, and some taps meet nothing.
#[test]
fn taps_far_apart() {
    let mut rng = Rng(0x5851_f42d_4c95_7f2d);
    let clips = |p: &ConvProblem| Channels::new::<f32>(&Geometry::forward(p), Isa::best()).clips;
    let sizes: [(&[usize], usize, usize); 6] = [
        (&[20, 20], 12, 1),
        (&[9, 20], 11, 2),
        (&[20, 7], 36, 1),
        (&[40], 30, 1),
        (&[33], 21, 3),
        (&[5, 4, 12], 4, 1),
    ];
    for (at, &(size, dilation, stride)) in sizes.iter().enumerate() {
        for (batch, groups, ci, co) in [(1, 1, 5, 40), (2, 2, 6, 34), (1, 1, 70, 19)] {
            let n = size.len();
            let p = ConvProblem {
                groups,
                dilation: vec![dilation; n],
                stride: vec![stride; n],
                padding: vec![(dilation, dilation - at % 2); n],
                output: size.iter().map(|&n| (n - at % 2 - 1) / stride + 1).collect(),
                ..problem(batch, ci, co, size, 3)
            };
            assert!(clips(&p), "{p:?}");
            check_all(&case(p, &mut rng));
        }
    }
    // Rows that meet nothing follow each other across an axis.
    let p = ConvProblem {
        kernel: vec![3, 1, 3],
        dilation: vec![1, 1, 8],
        padding: vec![(1, 1), (1, 1), (8, 8)],
        output: vec![5, 6, 8],
        ..problem(1, 3, 20, &[5, 4, 8], 3)
    };
    assert!(clips(&p));
    check_all(&case(p, &mut rng));
    // Near taps, and far ones of which few positions meet the same.
    let near = ConvProblem {
        padding: vec![(2, 2); 2],
        dilation: vec![2; 2],
        ..problem(1, 8, 8, &[30, 30], 3)
    };
    let many =
        ConvProblem { padding: vec![(64, 64)], dilation: vec![2], ..problem(1, 8, 8, &[64], 65) };
    assert!(!clips(&near) && !clips(&many));
}

/// Several tasks read one copy of an image; weights that do not stay in the cache are read by the slabs in turn.
#[test]
fn tasks_that_share_channels() {
    let mut rng = Rng(19);
    check_all(&case(problem(2, 40, 96, &[9, 9], 3), &mut rng));
    check_all(&case(problem(1, 128, 128, &[8, 8], 3), &mut rng));
    check_all(&case(problem(1, 96, 160, &[60], 3), &mut rng));
}

/// Positions that lie whole pages apart: they are read from a copy in which they do not.
#[test]
fn positions_in_the_same_sets_of_the_cache() {
    let mut rng = Rng(17);
    for (ci, co, size, k, stride) in [(1024, 17, 6, 1, 1), (512, 9, 7, 1, 2), (1024, 3, 4, 3, 1)] {
        let mut p = problem(1, ci, co, &[size, size], k);
        (p.stride, p.output) = (vec![stride; 2], vec![size.div_ceil(stride); 2]);
        check_all(&case(p, &mut rng));
    }
}

#[test]
fn depthwise_and_zero_channels() {
    let mut rng = Rng(11);
    let mut p = problem(3, 24, 24, &[9, 8], 3);
    p.groups = 24;
    check_all(&case(p.clone(), &mut rng));
    p.out_channels = 48;
    check_all(&case(p, &mut rng));
    let mut p = problem(2, 19, 19, &[5, 9], 3);
    (p.groups, p.stride, p.output, p.flip) = (19, vec![2, 2], vec![3, 5], true);
    check_all(&case(p, &mut rng));
    let mut p = problem(2, 0, 4, &[3, 3], 3);
    check_all(&case(p.clone(), &mut rng));
    (p.in_channels, p.out_channels) = (4, 0);
    check_all(&case(p, &mut rng));
}

/// Any number of sums in a tile, with zeros before and after them that may be wider than the taps.
#[test]
fn depthwise_tiles_of_any_count_and_padding() {
    let mut rng = Rng(29);
    for k in [2, 3, 4, 5, 6, 7, 8] {
        for (size, stride) in (1..17).flat_map(|size| [(size, 1), (size, 2), (size, 3)]) {
            let mut p = problem(1, 9, 9, &[2, size], 1);
            let (before, after) = (rng.below(k + 3), rng.below(k + 3));
            let Some(more) = (size + before + after).checked_sub(k) else { continue };
            (p.groups, p.kernel, p.padding) = (9, vec![1, k], vec![(0, 0), (before, after)]);
            (p.stride, p.output) = (vec![1, stride], vec![2, more / stride + 1]);
            check_all(&case(p, &mut rng));
        }
    }
}

/// Rows that are so wide, and channels so many, that some channels come after others.
#[test]
fn depthwise_channels_one_part_after_another() {
    let mut rng = Rng(31);
    for (channels, size) in [(40, [5, 90]), (99, [4, 20]), (328, [3, 12])] {
        let mut p = problem(1, channels, channels, &size, 3);
        p.groups = channels;
        check_all(&case(p, &mut rng));
    }
}

/// Rows of several spans and tiles, edges on both sides, lanes that are no whole vectors.
#[test]
fn depthwise_rows_of_any_length() {
    let mut rng = Rng(13);
    for (channels, size, k) in [(9, 70, 3), (17, 33, 7), (40, 16, 5), (8, 7, 9), (24, 131, 1)] {
        let mut p = problem(1, channels, channels, &[3, size], k);
        p.groups = channels;
        check_all(&case(p.clone(), &mut rng));
        // Taps two apart, where they fit into a row with its zeros.
        if let Some(more) = (size + k - 1).checked_sub(2 * (k - 1) + 1) {
            (p.dilation, p.output) = (vec![1, 2], vec![3, more + 1]);
            check_all(&case(p, &mut rng));
        }
        let mut line = problem(2, channels, channels, &[size], k);
        line.groups = channels;
        (line.stride, line.output) = (vec![2], vec![(size - 1) / 2 + 1]);
        check_all(&case(line.clone(), &mut rng));
        (line.stride, line.input_dilation) = (vec![1], vec![3]);
        line.output = vec![3 * (size - 1) + 1];
        check_all(&case(line, &mut rng));
    }
}
