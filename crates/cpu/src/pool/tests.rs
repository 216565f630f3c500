//! Poolings against their definitions.

use cupola_simd::{Level, with_isa_limit};

use super::*;
use crate::threads::with_threads;

/// Input positions of every window, in row-major order.
fn windows(p: &PoolProblem) -> Vec<Vec<usize>> {
    let dims = p.input.len();
    (0..p.outputs())
        .map(|o| {
            let taps: usize = p.window.iter().product();
            (0..taps)
                .filter_map(|k| {
                    let (mut o, mut k, mut at, mut scale) = (o, k, 0, 1);
                    for d in (0..dims).rev() {
                        let i = (o % p.output[d] * p.stride[d] + k % p.window[d] * p.dilation[d])
                            .checked_sub(p.padding[d].0)
                            .filter(|&i| i < p.input[d])?;
                        at += i * scale;
                        scale *= p.input[d];
                        o /= p.output[d];
                        k /= p.window[d];
                    }
                    Some(at)
                })
                .collect()
        })
        .collect()
}

fn problem(batch: usize, c: usize, input: &[usize], w: usize, s: usize, pad: usize) -> PoolProblem {
    let output = input.iter().map(|i| (i + 2 * pad - w) / s + 1).collect();
    let n = input.len();
    PoolProblem {
        batch,
        channels: c,
        input: input.to_vec(),
        window: vec![w; n],
        stride: vec![s; n],
        padding: vec![(pad, pad); n],
        dilation: vec![1; n],
        output,
    }
}

/// The same with windows whose elements are `dilation` apart.
fn dilated(mut p: PoolProblem, dilation: &[usize]) -> PoolProblem {
    for (d, &step) in dilation.iter().enumerate() {
        p.dilation[d] = step;
        let span = (p.window[d] - 1) * step + 1;
        p.output[d] = (p.input[d] + p.padding[d].0 + p.padding[d].1 - span) / p.stride[d] + 1;
    }
    p
}

fn problems() -> Vec<PoolProblem> {
    vec![
        problem(3, 20, &[28, 28], 2, 2, 0),
        problem(2, 70, &[7, 9], 2, 2, 0),
        problem(2, 5, &[9, 6], 3, 2, 1),
        problem(1, 3, &[6, 5], 3, 1, 2),
        problem(2, 130, &[17], 4, 3, 3),
        problem(2, 3, &[4, 5, 3], 2, 1, 1),
        dilated(problem(2, 37, &[12, 9], 3, 2, 2), &[2, 3]),
        dilated(problem(2, 3, &[9], 2, 2, 3), &[3]),
        dilated(problem(1, 2, &[5, 4, 6], 2, 4, 1), &[3, 1, 2]),
        dilated(problem(2, 18, &[7], 2, 2, 0), &[2]),
        problem(0, 3, &[4, 4], 2, 2, 0),
        problem(2, 0, &[4, 4], 2, 2, 0),
    ]
}

fn values<T>(n: usize, from: impl Fn(u64) -> T) -> Vec<T> {
    let mut s = 88172645463325252u64;
    (0..n)
        .map(|_| {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            from((s >> 40) % 7)
        })
        .collect()
}

fn run<T: PoolElement>(len: usize, f: impl Fn(Out<'_, T>)) -> Vec<T> {
    let mut out = vec![T::LEAST; len];
    f(Out::new(&mut out));
    out
}

fn check<T: PoolElement + PartialEq + std::fmt::Debug>(from: impl Fn(u64) -> T + Copy) {
    for p in problems() {
        let (x, t) = (values(p.input_len(), from), values(p.input_len(), |v| from(6 - v)));
        let dy = values(p.output_len(), |v| from(v % 3));
        let c = p.channels;
        let zero = T::from_sum(T::ZERO);
        let add = |a: T, b: T| T::from_sum(b.add_to(a.add_to(T::ZERO)));
        let mut want = (vec![], vec![], vec![zero; x.len()], vec![], vec![zero; x.len()]);
        for n in 0..p.batch {
            for (o, window) in windows(&p).iter().enumerate() {
                for ch in 0..c {
                    let at = |i: &usize| (n * p.inputs() + i) * c + ch;
                    let dy = dy[(n * p.outputs() + o) * c + ch];
                    let mut best: Option<usize> = None;
                    let mut sum = T::ZERO;
                    for i in window.iter().map(at) {
                        best = match best {
                            Some(b) if !x[i].beats(x[b]) => best,
                            _ => Some(i),
                        };
                        sum = x[i].add_to(sum);
                        want.4[i] = add(want.4[i], dy);
                    }
                    want.0.push(best.map_or(T::LEAST, |b| x[b]));
                    want.1.push(best.map_or(zero, |b| t[b]));
                    if let Some(b) = best {
                        want.2[b] = add(want.2[b], dy);
                    }
                    want.3.push(T::from_sum(sum));
                }
            }
        }
        for level in [Level::Portable, Level::Avx2, Level::Avx512] {
            for threads in [1, 2] {
                let got = with_isa_limit(level, || {
                    with_threads(threads, || {
                        (
                            run(p.output_len(), |y| max(&p, &x, y)),
                            run(p.output_len(), |y| max_gather(&p, &x, &t, y)),
                            run(p.input_len(), |dx| max_scatter(&p, &x, &dy, dx)),
                            run(p.output_len(), |y| sum(&p, &x, y)),
                            run(p.input_len(), |dx| sum_transpose(&p, &dy, dx)),
                        )
                    })
                });
                assert!(got == want, "{p:?} {level:?} {threads} threads");
            }
        }
    }
}

#[test]
fn every_type_matches_the_definition() {
    check(|v| v as f32 - 3.0);
    check(|v| v as f64 - 3.0);
    check(|v| f16::from_f32(v as f32 - 3.0));
    check(|v| bf16::from_f32(v as f32 - 3.0));
    check(|v| v as i8 - 3);
    check(|v| v as u8);
    check(|v| v as i32 - 3);
    check(|v| v);
}

#[test]
fn nan_is_the_maximum_and_the_first_wins() {
    let p = problem(1, 1, &[2, 2], 2, 2, 0);
    let (x, t) = ([1.0, f32::NAN, 9.0, f32::NAN], [1.0, 2.0, 3.0, 4.0f32]);
    assert!(run(1, |y| max(&p, &x, y))[0].is_nan());
    assert_eq!(run(1, |y| max_gather(&p, &x, &t, y)), [2.0]);
    assert_eq!(run(4, |dx| max_scatter(&p, &x, &[5.0], dx)), [0.0, 5.0, 0.0, 0.0]);
}

#[test]
fn least_values_still_have_a_position() {
    let p = problem(1, 1, &[3], 3, 1, 1);
    let x = [f32::NEG_INFINITY; 3];
    assert_eq!(run(3, |dx| max_scatter(&p, &x, &[1.0, 2.0, 4.0], dx)), [3.0, 4.0, 0.0]);
}
