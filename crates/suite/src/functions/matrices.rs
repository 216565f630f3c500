//! Products of arrays, and what is made of factorizations.

use cupola_core::{Array, ops};
use ops::linalg::{self, Order};

use super::{Function, numbers, wide, wide_or_complex};
use crate::sample::{Input, from, input, spread};

/// Two matrices of 3 × 3 with a large diagonal.
fn dominant() -> [Input; 1] {
    [from([2, 3, 3], |i| spread(i) / 2.0 + if i % 9 % 4 == 0 { 4.0 } else { 0.0 })]
}

pub(super) fn functions() -> Vec<Function> {
    let mut all = products();
    all.extend(made_of_factors());
    all.extend(norms());
    all
}

fn products() -> Vec<Function> {
    let other = |shape: &[usize]| from(shape, |i| spread(i + 13));
    let all = vec![
        Function::new("inner", [input([2, 4]), other(&[3, 4])], |x| ops::inner(&x[0], &x[1])),
        Function::new("outer", [input([4]), other(&[3])], |x| ops::outer(&x[0], &x[1])),
        Function::new("vecdot", [input([3, 4]), other(&[3, 4])], |x| ops::vecdot(&x[0], &x[1], -1)),
        Function::new("kron", [input([2, 3]), other(&[2, 2])], |x| ops::kron(&x[0], &x[1])),
        Function::new("tensordot", [input([2, 3, 4]), other(&[3, 4, 2])], |x| {
            ops::tensordot(&x[0], &x[1], 2)
        }),
        Function::new("einsum", [input([2, 3]), other(&[2, 4]), other(&[3])], |x| {
            ops::einsum("ij,ik,j->kj", &[&x[0], &x[1], &x[2]])
        }),
        Function::new("cross", [input([2, 3]), other(&[2, 3])], |x| {
            linalg::cross(&x[0], &x[1], -1)
        }),
    ];
    let mut all: Vec<Function> =
        all.into_iter().map(|function| function.takes(numbers).smooth()).collect();
    all.extend([
        Function::new("addmm", [input([2, 4]), other(&[2, 3]), other(&[3, 4])], |x| {
            ops::addmm(&x[0], &x[1], &x[2], 0.5, 2.0)
        })
        .smooth(),
        Function::new("matrix_power", dominant(), |x| linalg::matrix_power(&x[0], 3))
            .takes(wide_or_complex)
            .smooth(),
    ]);
    all
}

fn made_of_factors() -> Vec<Function> {
    let tall = || [input([4, 3])];
    let all = vec![
        Function::new("inv", dominant(), |x| linalg::inv(&x[0])),
        Function::new("det", dominant(), |x| linalg::det(&x[0])),
        Function::several("slogdet", dominant(), |x| {
            let (sign, log) = linalg::slogdet(&x[0])?;
            Ok(vec![sign, log])
        }),
        Function::new("tri_inv", dominant(), |x| linalg::tri_inv(&x[0], true)),
        Function::new("lstsq", [input([4, 3]), from([4, 2], |i| spread(i + 13))], |x| {
            linalg::lstsq(&x[0], &x[1])
        }),
        Function::several("lu_factor", dominant(), |x| {
            let (factors, pivots) = linalg::lu_factor(&x[0])?;
            Ok(vec![factors, pivots])
        }),
        Function::new("svdvals", tall(), |x| linalg::svdvals(&x[0])),
        Function::new("cholesky_inv", dominant(), |x| linalg::cholesky_inv(&x[0], false)),
    ];
    let mut all: Vec<Function> =
        all.into_iter().map(|function| function.takes(wide_or_complex).smooth()).collect();
    all.extend([
        Function::new("matrix_rank", tall(), |x| linalg::matrix_rank(&x[0], None)).takes(wide),
        Function::new(
            "matrix_rank",
            [from([4, 3], |i| (1.0 + (i / 3) as f64) * (i % 3) as f64)],
            |x| linalg::matrix_rank(&x[0], None),
        )
        .case("of a product")
        .takes(wide),
        Function::new("eigvalsh", dominant(), |x| {
            let mirrored = ops::add(&x[0], &ops::conjugate(&ops::matrix_transpose(&x[0])?)?)?;
            linalg::eigvalsh(&mirrored, false)
        })
        .takes(wide_or_complex)
        .smooth(),
    ]);
    all
}

fn norms() -> Vec<Function> {
    let of_vectors = [
        ("of vectors, 1", 1.0),
        ("of vectors, 2", 2.0),
        ("of vectors, 3", 3.0),
        ("of vectors, ∞", f64::INFINITY),
        ("of vectors, −∞", f64::NEG_INFINITY),
    ];
    let of_matrices = [
        ("of matrices, 1", Order::Power(1.0)),
        ("of matrices, 2", Order::Power(2.0)),
        ("of matrices, ∞", Order::Power(f64::INFINITY)),
        ("of matrices, nuclear", Order::Nuclear),
        ("of matrices, Frobenius", Order::Frobenius),
    ];
    let vectors = of_vectors.map(|(case, order)| {
        let body = move |x: &[Array]| linalg::norm(&x[0], order, 1, false);
        Function::new("norm", [input([3, 4])], body).case(case)
    });
    let matrices = of_matrices.map(|(case, order)| {
        let body = move |x: &[Array]| linalg::norm(&x[0], order, vec![-2, -1], false);
        Function::new("norm", [input([2, 4, 3])], body).case(case)
    });
    vectors.into_iter().chain(matrices).map(|f| f.takes(wide_or_complex).smooth()).collect()
}
