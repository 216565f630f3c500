//! Products of arrays, and what is made of factorizations.

use cupola_core::{Array, DType, ops};
use ops::linalg::{self, Order};
use ops::{BlockMasks, Microscaling, Quantization, QuantizedFactors, QuantizedGather};

use super::{Function, numbers, wide, wide_or_complex};
use crate::sample::{Input, fixed, from, input, numbers as listed, spread};

/// Two matrices of 3 × 3 with a large diagonal.
fn dominant() -> [Input; 1] {
    [from([2, 3, 3], |i| spread(i) / 2.0 + if i % 9 % 4 == 0 { 4.0 } else { 0.0 })]
}

pub(super) fn functions() -> Vec<Function> {
    let mut all = products();
    all.extend(of_blocks());
    all.extend(quantized());
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

/// Products of matrices that indices choose, of ranges of an axis, and of blocks.
fn of_blocks() -> Vec<Function> {
    let places = |count, all: usize| fixed([count], DType::U32, move |i| (i * 2 % all) as f64);
    let square = || [input([4, 6]), from([6, 4], |i| spread(i + 13))];
    let mut all = vec![
        Function::new("gather_mm", [input([3, 2, 4]), input([2, 4, 3]), places(2, 3)], |x| {
            ops::gather_mm(&x[0], &x[1], Some(&x[2]), None)
        })
        .case("left"),
        Function::new(
            "gather_mm",
            [input([3, 2, 4]), input([2, 4, 3]), places(4, 3), places(4, 2)],
            |x| ops::gather_mm(&x[0], &x[1], Some(&x[2]), Some(&x[3])),
        ),
        Function::new(
            "segmented_mm",
            [
                input([3, 7]),
                from([7, 2], |i| spread(i + 13)),
                fixed([3, 2], DType::U32, |i| [0.0, 3.0, 3.0, 7.0, 2.0, 2.0][i % 6]),
            ],
            |x| ops::segmented_mm(&x[0], &x[1], &x[2]),
        ),
    ];
    let bools = fixed([2, 3], DType::Bool, |i| f64::from(i % 4 < 2));
    let [a, b] = square();
    all.push(Function::new("block_masked_mm", [a, b, bools], |x| {
        let masks = BlockMasks { left: Some(&x[2]), ..Default::default() };
        ops::block_masked_mm(&x[0], &x[1], 2, masks)
    }));
    let [a, b] = square();
    let numbers = [[2, 2], [2, 3], [3, 2]].map(|shape| from(shape, |i| spread(i + 5)));
    let all_masked = [a, b].into_iter().chain(numbers).collect::<Vec<_>>();
    let masked = Function::new("block_masked_mm", all_masked, |x| {
        let masks = BlockMasks { out: Some(&x[2]), left: Some(&x[3]), right: Some(&x[4]) };
        ops::block_masked_mm(&x[0], &x[1], 2, masks)
    });
    all.push(masked.case("by numbers"));
    all.into_iter().map(|function| function.takes(DType::is_inexact).smooth()).collect()
}

/// Matrices of few bits.
fn quantized() -> Vec<Function> {
    let how = Quantization { group_size: 32, bits: 4 };
    let matrices = || [input([2, 3, 32])];
    let rounded = move |x: &[Array]| {
        let w = ops::quantize(&x[0], how)?;
        Ok(vec![w.words, w.scales, w.biases])
    };
    let codes = |x: &Array| ops::astype(x, DType::U8);
    let choice = fixed([3], DType::U32, |i| [1.0, 0.0, 1.0][i % 3]);
    let all = vec![
        Function::several("quantize", matrices(), rounded),
        Function::new("dequantize", matrices(), move |x| {
            ops::dequantize(&ops::quantize(&x[0], how)?, how)
        }),
        Function::new("gather_qmm", [input([1, 2, 32]), input([2, 3, 32]), choice], move |x| {
            let w = ops::quantize(&x[1], how)?;
            let options = QuantizedGather { right: Some(&x[2]), ..Default::default() };
            ops::gather_qmm(&x[0], &w, options, how)
        }),
        Function::new("to_fp8", [input([3, 5])], |x| ops::to_fp8(&x[0])),
        Function::new("from_fp8", [from([64], |i| i as f64 * 4.0)], move |x| {
            ops::from_fp8(&codes(&x[0])?, DType::F32)
        }),
    ];
    let formats = [
        ("mxfp4", Microscaling::Mxfp4),
        ("mxfp8", Microscaling::Mxfp8),
        ("nvfp4", Microscaling::Nvfp4),
    ];
    let products = formats.map(|(case, format)| {
        let body = move |x: &[Array]| {
            let (x, w) = (&x[0], &x[1]);
            let factors = QuantizedFactors { x, w, scales: None, global_x: None, global_w: None };
            ops::qqmm(factors, format)
        };
        Function::new("qqmm", [input([2, 32]), from([3, 32], |i| spread(i + 13))], body).case(case)
    });
    let rounded = formats.map(|(case, format)| {
        let body = move |x: &[Array]| {
            let (words, scales) = ops::quantize_microscaling(&x[0], format, None)?;
            let back = ops::dequantize_microscaling(&words, &scales, format, None, DType::F32)?;
            Ok(vec![words, scales, back])
        };
        Function::several("quantize_microscaling", matrices(), body).case(case)
    });
    let all = all.into_iter().chain(products).chain(rounded);
    all.map(|function| function.takes(|dtype| dtype == DType::F32)).collect()
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
    all.extend(of_general_matrices());
    all
}

/// What depends neither on the order of eigenvalues nor on the phases of their vectors.
fn of_general_matrices() -> Vec<Function> {
    // One turns its first two axes, the other does not.
    #[rustfmt::skip]
    let turning = || [listed([2, 3, 3], &[
        1.0, -2.0, 0.3,  2.5, 1.2, -0.4,  0.2, 0.1, -1.5,
        3.0, 1.0, 0.5,  0.2, -1.0, 0.4,  0.1, 0.3, 0.5,
    ])];
    let all = vec![
        Function::new("eigvals", turning(), |x| {
            let w = linalg::eigvals(&x[0])?;
            let key = ops::add(&ops::imag(&w)?, &ops::multiply(&ops::real(&w)?, 0.37)?)?;
            ops::take_along_axis(&w, &ops::argsort(&key, -1)?, -1)
        }),
        Function::new("eig", turning(), |x| {
            let (w, v) = linalg::eig(&x[0])?;
            let scaled = ops::multiply(&v, &ops::expand_dims(&w, -2)?)?;
            ops::matmul(&scaled, &linalg::inv(&v)?)
        })
        .case("put together again"),
    ];
    all.into_iter().map(|function| function.takes(wide_or_complex).smooth()).collect()
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
