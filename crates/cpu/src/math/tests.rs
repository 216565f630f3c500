//! Every `f32` function against `f64`, over a sample of all `f32`.

use super::*;
use cupola_core::prim::Unary;
use cupola_suite::real;

struct Fused;
impl Arch for Fused {
    const FMA: bool = true;
}
struct Separate;
impl Arch for Separate {
    const FMA: bool = false;
}

/// The largest error in units in the last place, and where it is.
fn worst(f: impl Fn(f32) -> f32, reference: impl Fn(f64) -> f64) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    for bits in (0..u32::MAX).step_by(10_007) {
        let x = f32::from_bits(bits);
        let (got, want) = (f64::from(f(x)), reference(f64::from(x)));
        let rounded = f64::from(want as f32);
        if got == rounded || got.is_nan() && want.is_nan() {
            continue;
        }
        let exponent = (want.abs().log2().floor() as i32).clamp(-126, 127);
        let error = (got - want).abs() / 2f64.powi(exponent - 23);
        if error.is_nan() || error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

macro_rules! functions {
    ($($test:ident $op:ident $name:ident $limit:expr;)*) => {$(
        #[test]
        fn $test() {
            let reference = |x| real(Unary::$op, x);
            let slow = needs_slow_reduction;
            let circular = matches!(Unary::$op, Unary::Sin | Unary::Cos | Unary::Tan);
            let pass = |y: f32, x: f32| if circular && slow(x) { reference(f64::from(x)) as f32 } else { y };
            let (fused, x) = worst(|x| pass($name::<Fused>(x), x), reference);
            println!("{} fused: {fused:.3} ulp at {x:e}", stringify!($name));
            assert!(fused <= $limit, "{fused} at {x:e}");
            let (separate, x) = worst(|x| pass($name::<Separate>(x), x), reference);
            println!("{} separate: {separate:.3} ulp at {x:e}", stringify!($name));
            assert!(separate <= $limit, "{separate} at {x:e}");
        }
    )*};
}

functions! {
    exp_is_close Exp exp 2.0;
    expm1_is_close Expm1 expm1 2.0;
    log_is_close Log log 2.0;
    log1p_is_close Log1p log1p 2.0;
    log2_is_close Log2 log2 2.0;
    log10_is_close Log10 log10 2.0;
    sin_is_close Sin sin 2.0;
    cos_is_close Cos cos 2.0;
    tan_is_close Tan tan 1.0;
    asin_is_close Asin asin 1.0;
    acos_is_close Acos acos 1.0;
    atan_is_close Atan atan 1.0;
    sinh_is_close Sinh sinh 1.0;
    cosh_is_close Cosh cosh 1.0;
    tanh_is_close Tanh tanh 4.0;
    asinh_is_close Asinh asinh 1.0;
    acosh_is_close Acosh acosh 1.0;
    atanh_is_close Atanh atanh 1.0;
    sigmoid_is_close Sigmoid sigmoid 3.0;
    erf_is_close Erf erf 2.0;
    erfc_is_close Erfc erfc 4.0;
    erfinv_is_close ErfInv erfinv 4.0;
}

#[test]
fn pow_and_atan2_are_close() {
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed >> 33
    };
    for _ in 0..500_000 {
        let x = f32::from_bits((next() as u32) << 1 | 1);
        let exponent = (next() as f32 / (1u64 << 31) as f32 - 0.5) * 300.0;
        let y = if x > 0.0 && x != 1.0 { exponent / x.log2() } else { (exponent / 8.0).round() };
        let (got, want) = (pow::<Fused>(x, y), f64::from(x).powf(f64::from(y)));
        let near = |got: f32, want: f64| {
            let unit = 2f64.powi((want.abs().log2().floor() as i32).clamp(-126, 127) - 23);
            f64::from(got) == f64::from(want as f32)
                || got.is_nan() && want.is_nan()
                || (f64::from(got) - want).abs() <= unit
        };
        assert!(near(got, want), "{x:e}^{y:e}: {got:e} {want:e}");
        let (got, want) = (atan2::<Fused>(x, y), f64::from(x).atan2(f64::from(y)));
        assert!(near(got, want), "atan2 {x:e} {y:e}: {got:e} {want:e}");
    }
}

#[test]
fn erfinv_of_doubles_inverts_erf() {
    for i in -4000..=4000 {
        let y = f64::from(i) / 1000.0;
        let x = erf_f64(y);
        if x.abs() < 1.0 {
            let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
            let limit = 4.0 * f64::EPSILON * (y.abs() + x.abs() / slope);
            assert!((erfinv_f64(x) - y).abs() <= limit, "{y} {}", erfinv_f64(x));
        }
    }
    assert_eq!(erfinv_f64(1e-300), 1e-300 * std::f64::consts::PI.sqrt() / 2.0);
}
