//! Functions of floats against `f64`, interpreted; and their text, as naga sees it.

use cupola_core::DType;

use super::interpret::{Device, run};
use super::*;

/// A device without functions of its own.
const BARE: Target = Target {
    int64: false,
    float64: false,
    int16: false,
    subgroup: 0,
    language: cupola_core::prim::call::Language::Wgsl,
    native_math: false,
    wide_offsets: false,
    max_threads: 256,
    max_blocks: 65_535,
    vector_bytes: 0,
    shared_bytes: 16_384,
    max_bindings: 8,
    threads: 1,
    copies: false,
    matrix: false,
    wide: false,
    tf32: false,
    mul_high: false,
    rounds: usize::MAX,
    awaits: false,
};

/// A device that is IEEE's, one that fuses its products, and one that takes every freedom.
const DEVICES: [Device; 3] = [
    Device { fused: false, flush: false, loose: false },
    Device { fused: true, flush: false, loose: false },
    Device { fused: true, flush: true, loose: true },
];

/// The last is the `f32` that is closest to a multiple of π/2 relative to it.
const SPECIAL: [f32; 31] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    1.5,
    -2.5,
    1e-45,
    -1e-45,
    1e-39,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    1.000_000_1,
    0.999_999_94,
    -0.999_999_94,
    16_777_215.0,
    16_777_216.0,
    -16_777_215.0,
    1e20,
    -1e-20,
    16_367_173.0 * (1u128 << 72) as f32,
];

/// Builds a kernel that applies `f` to every row of the first buffers, for the last.
fn kernel(count: usize, operands: usize, f: impl for<'k> FnOnce(&[Val<'k>]) -> Val<'k>) -> Kernel {
    let k = Build::new(&BARE, "functions", 1);
    let sources: Vec<Buf> = (0..operands).map(|_| k.buffer(DType::F32, Access::Read)).collect();
    let target = k.buffer(DType::F32, Access::Write);
    k.count(k.u32(count as u32), |index| {
        let operands: Vec<Val<'_>> = sources.iter().map(|source| source.load(index)).collect();
        target.store(index, f(&operands));
    });
    k.finish().unwrap()
}

/// The error of `got` in units in the last place; of a right special value 0.
fn error(got: f32, want: f64, device: Device) -> f64 {
    let (rounded, wide) = (want as f32, f64::from(got));
    if got.is_nan() && want.is_nan() || got.to_bits() == rounded.to_bits() {
        return 0.0;
    }
    // Zeros have signs, but where a subnormal was lost.
    let lost = want.abs() < 2f64.powi(-126) * (1.0 + 1e-6) && device.flush;
    if lost && got.abs() <= f32::MIN_POSITIVE {
        return 0.0;
    }
    if got == 0.0 && want == 0.0 {
        return f64::INFINITY;
    }
    // Beyond the last number infinity is one place further.
    let wide = if got.is_infinite() { 2f64.powi(128).copysign(wide) } else { wide };
    let want = if rounded.is_infinite() { 2f64.powi(128).copysign(want) } else { want };
    let exponent = (want.abs().log2().floor() as i32).clamp(-126, 127);
    let error = (wide - want).abs() / 2f64.powi(exponent - 23);
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The largest error of a function over special values, those around multiples of π/2, and every
/// `step`th `f32`; and where it is.
fn worst(f: Math, reference: fn(f64) -> f64, device: Device, step: usize) -> (f64, f32) {
    let every = (0..=u32::MAX).step_by(step).map(f32::from_bits);
    let quarters = (1..4000).map(|k| (f64::from(k) * std::f64::consts::FRAC_PI_2) as f32);
    let mut inputs: Vec<f32> = SPECIAL.into_iter().chain(quarters).chain(every).collect();
    // Logarithms see subnormals even so.
    if device.flush && !matches!(f, Math::Log | Math::Log2 | Math::Log10) {
        inputs.retain(|x| !x.is_subnormal());
    }
    let kernel = kernel(inputs.len(), 1, |x| x[0].math(f));
    let count = inputs.len();
    let mut buffers = [inputs, vec![0.0; count]];
    run(&kernel, &mut buffers, device);
    let errors = (buffers[0].iter().zip(&buffers[1]))
        .map(|(x, y)| (error(*y, reference(f64::from(*x)), device), *x));
    errors.fold((0.0, 0.0), |worst, next| if next.0 > worst.0 { next } else { worst })
}

fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a >= 1.0 || x.is_nan() {
        return if a == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    // Newton's steps from below, on erf or on the logarithm of erfc, which is concave.
    let mut y = 0f64;
    for _ in 0..60 {
        let (slope, rest) = ((-y * y).exp() * std::f64::consts::FRAC_2_SQRT_PI, libm::erfc(y));
        let step = if a < 0.25 {
            (a - libm::erf(y)) / slope
        } else {
            (rest / (1.0 - a)).ln() * rest / slope
        };
        y += step;
        if step.abs() <= 1e-15 * y {
            break;
        }
    }
    y.copysign(x)
}

fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The step through all `f32` of the tests.
const STEP: usize = 10_007;

macro_rules! functions {
    ($($test:ident $op:ident $reference:expr, $limit:expr;)*) => {$(
        #[test]
        fn $test() {
            for device in DEVICES {
                let step = if device.loose { 10 * STEP } else { STEP };
                let (error, x) = worst(Math::$op, $reference, device, step);
                println!("{:?}: {error:.3} ulp at {x:e}, {device:?}", Math::$op);
                assert!(error <= $limit, "{:?}: {error} ulp at {x:e}, {device:?}", Math::$op);
            }
        }
    )*};
}

functions! {
    exp_is_close Exp f64::exp, 1.0;
    expm1_is_close Expm1 f64::exp_m1, 1.5;
    log_is_close Log f64::ln, 1.0;
    log2_is_close Log2 f64::log2, 1.0;
    log10_is_close Log10 f64::log10, 1.0;
    log1p_is_close Log1p f64::ln_1p, 1.0;
    sin_is_close Sin f64::sin, 2.0;
    cos_is_close Cos f64::cos, 2.0;
    tan_is_close Tan f64::tan, 3.0;
    asin_is_close Asin f64::asin, 2.5;
    acos_is_close Acos f64::acos, 1.5;
    atan_is_close Atan f64::atan, 3.5;
    sinh_is_close Sinh f64::sinh, 2.0;
    cosh_is_close Cosh f64::cosh, 1.5;
    tanh_is_close Tanh f64::tanh, 2.5;
    asinh_is_close Asinh libm::asinh, 2.5;
    acosh_is_close Acosh acosh, 2.0;
    atanh_is_close Atanh libm::atanh, 2.5;
    erf_is_close Erf libm::erf, 1.5;
    erfc_is_close Erfc libm::erfc, 4.5;
    erfinv_is_close ErfInv erfinv, 3.5;
}

/// The results of a function of two numbers.
fn pairs(
    inputs: &[(f32, f32)],
    device: Device,
    f: impl for<'k> FnOnce(Val<'k>, Val<'k>) -> Val<'k>,
) -> Vec<f32> {
    let kernel = kernel(inputs.len(), 2, |x| f(x[0], x[1]));
    let (left, right) = inputs.iter().copied().unzip();
    let mut buffers = [left, right, vec![0.0; inputs.len()]];
    run(&kernel, &mut buffers, device);
    let [_, _, results] = buffers;
    results
}

/// Every pair of special values, and then pairs from random words.
fn samples(count: usize, mut pair: impl FnMut(u32, u32) -> (f32, f32)) -> Vec<(f32, f32)> {
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 32) as u32
    };
    let special = SPECIAL.iter().flat_map(|x| SPECIAL.map(|y| (*x, y)));
    let random = (0..count).map(|_| pair(next(), next()));
    special.chain(random).collect()
}

/// Asserts that a function of two numbers is close to its reference.
fn assert_close(
    name: &str,
    inputs: &[(f32, f32)],
    limit: f64,
    device: Device,
    results: &[f32],
    reference: impl Fn(f64, f64) -> f64,
) {
    let errors = (inputs.iter().zip(results))
        .map(|((x, y), z)| (error(*z, reference(f64::from(*x), f64::from(*y)), device), *x, *y));
    let (error, x, y) =
        errors.fold((0.0, 0.0, 0.0), |worst, next| if next.0 > worst.0 { next } else { worst });
    println!("{name}: {error:.3} ulp at {x:e}, {y:e}, {device:?}");
    assert!(error <= limit, "{name}: {error} ulp at {x:e}, {y:e}, {device:?}");
}

#[test]
fn pow_is_close() {
    // Exponents that make results over the whole range, for bases anywhere and for those near 1.
    let inputs = samples(200_000, |u, v| {
        let size = f32::from_bits(u & 0x7fff_ffff);
        let near = f32::from_bits(0x3f80_0000 + (u & 0x3ffff) - 0x1ffff);
        let x = if v & 1 == 0 { size } else { near };
        let goal = (f64::from(v) / 2f64.powi(32) - 0.5) * 300.0;
        let y = (goal / f64::from(x).log2()) as f32;
        if v & 6 == 0 { (-x, y.round_ties_even()) } else { (x, y) }
    });
    for device in DEVICES {
        let mut inputs = inputs.clone();
        // A subnormal exponent is as good as 0.
        inputs.retain(|(_, y)| !device.flush || !y.is_subnormal());
        let results = pairs(&inputs, device, |x, y| x.pow(y));
        assert_close("Pow", &inputs, 1.5, device, &results, f64::powf);
    }
}

#[test]
fn atan2_is_close() {
    let inputs = samples(200_000, |u, v| {
        let x = f32::from_bits(u);
        let ratio = f32::from_bits(0x3f80_0000 + ((v >> 1) % (16 << 23)) - (8 << 23));
        (x, if v & 1 == 0 { f32::from_bits(v) } else { x * ratio })
    });
    for device in DEVICES {
        let mut inputs = inputs.clone();
        inputs.retain(|(x, y)| !device.flush || !x.is_subnormal() && !y.is_subnormal());
        let results = pairs(&inputs, device, |y, x| y.atan2(x));
        assert_close("Atan2", &inputs, 3.0, device, &results, f64::atan2);
    }
}

#[test]
fn fmod_is_exact() {
    let inputs = samples(100_000, |u, v| (f32::from_bits(u), f32::from_bits(v)));
    for device in DEVICES {
        let results = pairs(&inputs, device, |x, y| x.fmod(y));
        for ((x, y), z) in inputs.iter().zip(results) {
            let want = x % y;
            let same = z.to_bits() == want.to_bits() || z.is_nan() && want.is_nan();
            assert!(same, "{x:e} % {y:e}: {z:e}, not {want:e}, {device:?}");
        }
    }
}

const ALL: [Math; 21] = [
    Math::Exp,
    Math::Expm1,
    Math::Log,
    Math::Log2,
    Math::Log10,
    Math::Log1p,
    Math::Sin,
    Math::Cos,
    Math::Tan,
    Math::Asin,
    Math::Acos,
    Math::Atan,
    Math::Sinh,
    Math::Cosh,
    Math::Tanh,
    Math::Asinh,
    Math::Acosh,
    Math::Atanh,
    Math::Erf,
    Math::Erfc,
    Math::ErfInv,
];

#[test]
fn functions_are_valid_wgsl() {
    let kernel = kernel(1, 2, |x| {
        let y = ALL.iter().fold(x[1], |y, &f| y.math(f));
        let y = x[0].pow(y);
        let y = x[0].atan2(y);
        x[0].fmod(y)
    });
    let text = crate::emit::print(&kernel, &crate::emit::Wgsl::default());
    let module = match naga::front::wgsl::parse_str(&text) {
        Ok(module) => module,
        Err(error) => panic!("{}", error.emit_to_string(&text)),
    };
    let flags = naga::valid::ValidationFlags::all();
    let capabilities = naga::valid::Capabilities::all();
    let valid = naga::valid::Validator::new(flags, capabilities).validate(&module);
    assert!(valid.is_ok(), "{:?}", valid.err());
}

#[test]
fn a_device_uses_its_own_functions_or_says_what_is_missing() {
    let functions: [fn(Val<'_>) -> Val<'_>; 4] =
        [|x| x.math(Math::Sin), |x| x.pow(x), |x| x.atan2(x), |x| x.fmod(x)];
    let native = Target { native_math: true, float64: true, ..BARE };
    for f in functions {
        for (target, has) in [(&native, true), (&BARE, false)] {
            let k = Build::new(target, "functions", 1);
            f(k.float(1.0, Ty::F64));
            assert_eq!(k.finish().is_ok(), has);
        }
    }
}
