//! Factorizations whose results have no order that a reference could have, and those that fail.

use cupola_core::device::with_stream;
use cupola_core::ops::{self, linalg};
use cupola_core::prim::{Linalg, Vectors};
use cupola_core::{Array, DType, Device, Error, Result, Stream, transform};
use cupola_cpu as _;

fn on_the_cpu<R>(f: impl FnOnce() -> R) -> R {
    with_stream(Stream::of(Device::CPU), f)
}

/// Numbers without a pattern.
fn matrix(n: usize, dtype: DType) -> Result<Array> {
    let value = |i: usize| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0;
    let numbers: Vec<f32> = (0..n * n).map(value).collect();
    let real = ops::astype(&Array::from_slice(&numbers, [n, n])?, dtype)?;
    if dtype != DType::C64 {
        return Ok(real);
    }
    let turned = ops::multiply(&ops::transpose(&real, ())?, num_complex::Complex32::I)?;
    ops::add(&real, &turned)
}

#[test]
fn eigenvectors_are_turned_by_their_eigenvalues() -> Result<()> {
    on_the_cpu(|| {
        for dtype in [DType::F32, DType::F64, DType::C64] {
            for n in [1, 2, 3, 8, 50] {
                let a = matrix(n, dtype)?;
                let (w, v) = linalg::eig(&a)?;
                assert_eq!((w.dtype(), v.dtype()), (DType::C64, DType::C64));
                let left = ops::matmul(&ops::astype(&a, DType::C64)?, &v)?;
                let off = ops::abs(&ops::subtract(&left, &ops::multiply(&v, &w)?)?)?;
                let off = ops::max(&off, (), false)?.item::<f32>()?;
                assert!(off < 2e-4, "{dtype} {n}: {off}");
                let lengths = ops::norm(&v, 0, false)?;
                let off = ops::abs(&ops::subtract(&lengths, 1.0)?)?;
                assert!(ops::max(&off, (), false)?.item::<f32>()? < 1e-5);
                let values = linalg::eigvals(&a)?;
                let traces =
                    [&w, &values].map(|w| ops::real(&ops::sum(w, (), false)?)?.item::<f32>());
                let [one, other] = [traces[0].clone()?, traces[1].clone()?];
                assert!((one - other).abs() < 1e-3, "{one} {other}");
            }
        }
        Ok(())
    })
}

/// The sum of the squares of A's eigenvalues is the trace of A·A, whose gradient is 2·Aᵀ.
#[test]
fn derivatives_of_eigenvalues_are_those_of_traces() -> Result<()> {
    on_the_cpu(|| {
        let f = |x: &[Array]| {
            let square = ops::square(&linalg::eigvals(&x[0])?)?;
            Ok(vec![ops::real(&ops::sum(&square, (), false)?)?])
        };
        for dtype in [DType::F32, DType::F64] {
            for n in [1, 2, 5, 8] {
                let (a, one) = (matrix(n, dtype)?, Array::scalar(1.0f32));
                let (_, found) = transform::vjp(f, &[a.clone()], &[one])?;
                assert_eq!(found[0].aval(), a.aval());
                let want = ops::multiply(&ops::transpose(&a, ())?, 2)?;
                let off = ops::abs(&ops::subtract(&found[0], &want)?)?;
                let off = ops::astype(&ops::max(&off, (), false)?, DType::F32)?.item::<f32>()?;
                assert!(off < 1e-3, "{dtype} {n}: {off}");
                let (_, along) = transform::jvp(f, &[a.clone()], &[a.clone()])?;
                let both = ops::sum(&ops::multiply(&want, &a)?, (), false)?;
                let both = ops::astype(&both, DType::F32)?.item::<f32>()?;
                let along = along[0].item::<f32>()?;
                assert!((along - both).abs() < 1e-3 * both.abs().max(1.0), "{along} {both}");
            }
        }
        Ok(())
    })
}

/// What fails says which matrix, fails again, and leaves its operands as they are.
#[test]
fn singular_matrices_are_errors() -> Result<()> {
    on_the_cpu(|| {
        let good = ops::eye(2, DType::F32)?;
        let bad = Array::from_slice(&[1.0f32, 2.0, 2.0, 4.0], [2, 2])?;
        let not_definite = Array::from_slice(&[1.0f32, 2.0, 2.0, 1.0], [2, 2])?;
        let infinite = Array::from_slice(&[f32::INFINITY, 0.0, 0.0, f32::NAN], [2, 2])?;
        let stacked = |x: &Array| ops::stack(&[&good, x, x], 0);
        let failing = [
            linalg::inv(&stacked(&bad)?)?,
            linalg::cholesky(&stacked(&not_definite)?, false)?,
            linalg::tri_inv(&stacked(&ops::zeros([2, 2], DType::F32)?)?, true)?,
            linalg::svdvals(&stacked(&infinite)?)?,
            linalg::pinv(&stacked(&infinite)?)?,
            linalg::eigvalsh(&stacked(&infinite)?, false)?,
            linalg::eigvals(&stacked(&infinite)?)?,
        ];
        for x in failing {
            for _ in 0..2 {
                match x.eval() {
                    Err(Error::Numeric { detail, .. }) => {
                        assert!(detail.starts_with("matrix 1 "), "{detail}");
                    }
                    other => panic!("{x:?}: {other:?}"),
                }
            }
        }
        assert_eq!(bad.to_vec::<f32>()?, [1.0, 2.0, 2.0, 4.0]);
        Ok(())
    })
}

#[test]
fn numbers_that_are_not_finite_stay_so_in_factors() -> Result<()> {
    on_the_cpu(|| {
        let mut numbers = vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0];
        numbers[4] = f32::NAN;
        let a = Array::from_slice(&numbers, [3, 3])?;
        for op in [Linalg::Lu, Linalg::Qr] {
            let factors = Array::apply_multi(op, &[&a])?;
            let nan = factors[..2].iter().any(|x| {
                x.dtype() == DType::F32
                    && x.to_vec::<f32>().is_ok_and(|v| v.iter().any(|v| v.is_nan()))
            });
            assert!(nan, "{op:?}");
        }
        Ok(())
    })
}

#[test]
fn results_do_not_depend_on_threads() -> Result<()> {
    on_the_cpu(|| {
        let a = ops::stack(&[&matrix(20, DType::F64)?, &matrix(20, DType::F64)?], 0)?;
        let b = ops::broadcast_to(&a, [40, 2, 20, 20])?;
        let run = || -> Result<Vec<u8>> {
            let x = ops::multiply(&b, 1.0)?;
            let mut all = Vec::new();
            for y in Array::apply_multi(Linalg::Svd(Vectors::Full), &[&x])? {
                all.extend(y.to_bytes()?);
            }
            all.extend(linalg::inv(&x)?.to_bytes()?);
            all.extend(
                ops::fft(&ops::astype(&x, DType::F32)?, None, 1, Default::default())?.to_bytes()?,
            );
            Ok(all)
        };
        let want = run()?;
        for threads in [1, 2, 5] {
            let got = cupola_cpu::threads::with_threads(threads, run)?;
            assert!(got == want, "{threads} threads");
        }
        Ok(())
    })
}
