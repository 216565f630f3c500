//! How close long sums come, and that they do not depend on threads.

use cupola_core::backend::{Body, Instr, Operand};
use cupola_core::prim::{Elementwise, ReduceKind, Unary};
use cupola_core::{Aval, DType, Shape};
use smallvec::smallvec;

use super::ReduceKernel;
use crate::map::RawArgs;
use crate::threads::with_threads;

fn sum(x: &[f32], dims: &[usize], axes: &[usize]) -> Vec<f32> {
    let body = Body::copy(Shape::from(dims), DType::F32);
    sums(&body, x, axes).remove(0)
}

/// The sums of each output of `body`.
fn sums(body: &Body, x: &[f32], axes: &[usize]) -> Vec<Vec<f32>> {
    let kept = body.shape.without(axes);
    let input = Operand::contiguous(&Aval::new(body.shape.clone(), DType::F32));
    let output = Operand::contiguous(&Aval::new(kept.clone(), DType::F32));
    let outputs = vec![output; body.outputs.len()];
    let kernel = ReduceKernel::new(body, ReduceKind::Sum, axes, &[input], &outputs).unwrap();
    let mut out = vec![vec![0f32; kept.size()]; outputs.len()];
    let places: Vec<*mut u8> = out.iter_mut().map(|one| one.as_mut_ptr().cast()).collect();
    let args = RawArgs { inputs: &[x.as_ptr().cast()], outputs: &places, scalars: &[] };
    // SAFETY: the arrays have the shapes that the kernel was made for.
    unsafe { kernel.run(&args) };
    out
}

/// Sums that are computed together have the bits that each has alone.
#[test]
fn several_sums_are_each_as_alone() {
    let x: Vec<f32> = (0..1 << 18).map(|i| ((i * 37 % 1001) as f32 - 500.0) / 64.0).collect();
    let n = x.len();
    let square =
        Instr { op: Elementwise::Unary(Unary::Square), args: smallvec![0], dtype: DType::F32 };
    for (dims, axes) in [
        (vec![n], vec![0]),
        (vec![n / 4, 4], vec![0]),
        (vec![2, n / 8, 4], vec![1]),
        (vec![64, n / 64], vec![1]),
        (vec![64, n / 64], vec![0]),
        (vec![n / 8, 8], vec![1]),
        (vec![n / 10_240, 5, 2048], vec![0, 1]),
        (vec![0, 4], vec![0]),
    ] {
        let copy = Body::copy(Shape::from(&dims[..]), DType::F32);
        let squares = Body { code: vec![square.clone()], outputs: vec![1], ..copy.clone() };
        let both = Body { outputs: vec![1, 0, 1], ..squares.clone() };
        let own = |body: &Body| sums(body, &x, &axes).remove(0);
        let (plain, squared) = (own(&copy), own(&squares));
        let want = vec![squared.clone(), plain, squared];
        for threads in [1, 2] {
            let found = with_threads(threads, || sums(&both, &x, &axes));
            assert_eq!(found, want, "{dims:?} over {axes:?}");
        }
    }
}

#[test]
fn long_sums_are_accurate_and_do_not_depend_on_threads() {
    let n = 1 << 21;
    let mut state = 5u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) % (1 << 24)
    };
    let x: Vec<f32> = (0..n).map(|_| next() as f32 / (1 << 24) as f32).collect();
    let exact: f64 = x.iter().map(|&v| f64::from(v)).sum();
    for (dims, axes) in [
        (vec![n], vec![0]),
        (vec![n / 4, 4], vec![0]),
        (vec![n / 2048, 2048], vec![0]),
        (vec![2, n / 8, 4], vec![1]),
        (vec![64, n / 64], vec![1]),
        (vec![n / 8, 8], vec![1]),
    ] {
        let run = || sum(&x, &dims, &axes);
        let (one, two) = (with_threads(1, run), with_threads(2, run));
        assert_eq!(one, two, "{dims:?} over {axes:?}");
        let total: f64 = one.iter().map(|&v| f64::from(v)).sum();
        assert!((total - exact).abs() < exact * 3e-7, "{dims:?} over {axes:?}: {total} {exact}");
    }
}
