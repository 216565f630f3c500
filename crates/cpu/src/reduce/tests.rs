//! How close long sums come, and that they do not depend on threads.

use cupola_core::backend::Body;
use cupola_core::backend::Operand;
use cupola_core::prim::ReduceKind;
use cupola_core::{Aval, DType, Shape};

use super::ReduceKernel;
use crate::map::RawArgs;
use crate::threads::with_threads;

fn sum(x: &[f32], dims: &[usize], axes: &[usize]) -> Vec<f32> {
    let body = Body::copy(Shape::from(dims), DType::F32);
    let kept = body.shape.without(axes);
    let input = Operand::contiguous(&Aval::new(dims, DType::F32));
    let output = Operand::contiguous(&Aval::new(kept.clone(), DType::F32));
    let kernel = ReduceKernel::new(&body, ReduceKind::Sum, axes, &[input], &output).unwrap();
    let mut out = vec![0f32; kept.size()];
    let args =
        RawArgs { inputs: &[x.as_ptr().cast()], outputs: &[out.as_mut_ptr().cast()], scalars: &[] };
    // SAFETY: the arrays have the shapes that the kernel was made for.
    unsafe { kernel.run(&args) };
    out
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
