//! Functions of elements.

use cupola_core::{DType, ops};

use super::{Function, numbers, reals};
use crate::sample::{Input, fixed, from, input, spread};

/// Numbers between 0.2 and 3.2.
fn positive(n: usize) -> Input {
    from([3, 5], move |i| 0.2 + spread(i + n).abs())
}

/// Numbers between 0 and 1.
fn share() -> Input {
    from([3, 5], |i| 0.5 + spread(i) / 7.0)
}

/// Numbers between −12 and 12, beyond where functions end or leave float16.
fn far() -> Input {
    from([3, 5], |i| spread(i) * 4.0)
}

/// NaN and infinities among others.
fn edges(n: usize) -> Input {
    from([3, 5], move |i| match (i + n) % 5 {
        1 => f64::NAN,
        2 => f64::INFINITY,
        3 => f64::NEG_INFINITY,
        _ => spread(i + n),
    })
}

/// Zeros among others.
fn zeros(n: usize) -> Input {
    from([3, 5], move |i| if (i + n).is_multiple_of(3) { 0.0 } else { spread(i + n) })
}

fn second() -> Input {
    from([3, 5], |i| spread(i + 11))
}

pub(super) fn functions() -> Vec<Function> {
    let mut all = of_floats();
    all.extend(activations());
    all
}

fn of_floats() -> Vec<Function> {
    let one = || [input([3, 5])];
    let two = || [input([3, 5]), second()];
    let three = || [input([3, 5]), second(), from([3, 5], |i| spread(i + 23))];
    vec![
        Function::new("reciprocal", [positive(0)], |x| ops::reciprocal(&x[0]))
            .is(|v| 1.0 / v[0])
            .smooth(),
        Function::new("trunc", one(), |x| ops::trunc(&x[0])).is(|v| v[0].trunc()).takes(reals),
        Function::new("frac", one(), |x| ops::frac(&x[0])).is(|v| v[0].fract()).smooth(),
        Function::new("signbit", one(), |x| ops::signbit(&x[0])).takes(reals),
        Function::new("degrees", one(), |x| ops::degrees(&x[0])).is(|v| v[0].to_degrees()).smooth(),
        Function::new("radians", one(), |x| ops::radians(&x[0])).is(|v| v[0].to_radians()).smooth(),
        Function::new("nan_to_num", [edges(0)], |x| {
            ops::nan_to_num(&x[0], ops::Replacements::default())
        })
        .takes(DType::is_inexact),
        Function::new("isfinite", [edges(0)], |x| ops::isfinite(&x[0])),
        Function::new("sinc", one(), |x| ops::sinc(&x[0]))
            .is(|v| (std::f64::consts::PI * v[0]).sin() / (std::f64::consts::PI * v[0]))
            .smooth(),
        Function::new("logit", [share()], |x| ops::logit(&x[0], None))
            .is(|v| (v[0] / (1.0 - v[0])).ln())
            .smooth(),
        Function::new("lgamma", [positive(0)], |x| ops::lgamma(&x[0])).smooth(),
        Function::new("digamma", [positive(0)], |x| ops::digamma(&x[0])).smooth(),
        Function::new("i0", one(), |x| ops::i0(&x[0])).smooth(),
        Function::new("copysign", two(), |x| ops::copysign(&x[0], &x[1]))
            .is(|v| v[0].copysign(v[1]))
            .smooth(),
        Function::new("fmax", two(), |x| ops::fmax(&x[0], &x[1])).is(|v| v[0].max(v[1])).smooth(),
        Function::new("fmax", [edges(0), edges(2)], |x| ops::fmax(&x[0], &x[1]))
            .case("of edges")
            .is(|v| v[0].max(v[1])),
        Function::new("fmin", two(), |x| ops::fmin(&x[0], &x[1])).is(|v| v[0].min(v[1])).smooth(),
        Function::new("fmin", [edges(0), edges(2)], |x| ops::fmin(&x[0], &x[1]))
            .case("of edges")
            .is(|v| v[0].min(v[1])),
        Function::new("fmod", two(), |x| ops::fmod(&x[0], &x[1])).is(|v| v[0] % v[1]),
        Function::new("hypot", two(), |x| ops::hypot(&x[0], &x[1]))
            .is(|v| v[0].hypot(v[1]))
            .smooth(),
        Function::new("nextafter", two(), |x| ops::nextafter(&x[0], &x[1])),
        Function::new("heaviside", [zeros(0), second()], |x| ops::heaviside(&x[0], &x[1]))
            .is(|v| if v[0] == 0.0 { v[1] } else { f64::from(v[0] > 0.0) }),
        Function::new(
            "ldexp",
            [input([3, 5]), fixed([3, 5], DType::I32, |i| i as f64 - 4.0)],
            |x| ops::ldexp(&x[0], &x[1]),
        )
        .is(|v| v[0] * v[1].exp2())
        .smooth(),
        Function::several("frexp", one(), |x| {
            let (mantissa, exponent) = ops::frexp(&x[0])?;
            Ok(vec![mantissa, exponent])
        }),
        Function::several("divmod", [input([3, 5]), positive(5)], |x| {
            let (quotient, rest) = ops::divmod(&x[0], &x[1])?;
            Ok(vec![quotient, rest])
        }),
        Function::new("xlogy", [input([3, 5]), positive(7)], |x| ops::xlogy(&x[0], &x[1]))
            .is(|v| v[0] * v[1].ln())
            .smooth(),
        Function::new("lerp", three(), |x| ops::lerp(&x[0], &x[1], &x[2]))
            .is(|v| v[0] + v[2] * (v[1] - v[0]))
            .smooth(),
        Function::new("addcmul", three(), |x| ops::addcmul(&x[0], &x[1], &x[2], 0.5))
            .is(|v| v[0] + 0.5 * v[1] * v[2])
            .smooth(),
        Function::new("addcdiv", [input([3, 5]), second(), positive(3)], |x| {
            ops::addcdiv(&x[0], &x[1], &x[2], 0.5)
        })
        .is(|v| v[0] + 0.5 * v[1] / v[2])
        .smooth(),
        Function::new("clip", one(), |x| ops::clip(&x[0], -1.0, 2.0))
            .is(|v| v[0].clamp(-1.0, 2.0))
            .smooth(),
        Function::new("logical_xor", [zeros(0), zeros(1)], |x| ops::logical_xor(&x[0], &x[1]))
            .takes(numbers),
        Function::new(
            "isclose",
            [zeros(0), from([3, 5], |i| if i % 2 == 0 { spread(i) } else { 0.0 })],
            |x| ops::isclose(&x[0], &x[1], ops::Tolerance::default()),
        ),
    ]
}

fn activations() -> Vec<Function> {
    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }
    fn softplus(x: f64) -> f64 {
        x.exp().ln_1p()
    }
    let one = || [input([3, 5])];
    let all = vec![
        Function::new("relu", one(), |x| ops::relu(&x[0])).is(|v| v[0].max(0.0)),
        Function::new("relu6", [far()], |x| ops::relu6(&x[0])).is(|v| v[0].clamp(0.0, 6.0)),
        Function::new("leaky_relu", one(), |x| ops::leaky_relu(&x[0], 0.1))
            .is(|v| v[0].max(0.1 * v[0])),
        Function::new("prelu", [input([3, 5]), from([3, 5], |i| 0.1 + i as f64 / 50.0)], |x| {
            ops::prelu(&x[0], &x[1])
        })
        .is(|v| if v[0] < 0.0 { v[0] * v[1] } else { v[0] }),
        Function::new("elu", [far()], |x| ops::elu(&x[0], 1.5))
            .is(|v| if v[0] > 0.0 { v[0] } else { 1.5 * v[0].exp_m1() }),
        Function::new("celu", [far()], |x| ops::celu(&x[0], 1.5))
            .is(|v| if v[0] > 0.0 { v[0] } else { 1.5 * (v[0] / 1.5).exp_m1() }),
        Function::new("selu", one(), |x| ops::selu(&x[0])).is(|v| {
            1.050_700_987_355_480_5
                * if v[0] > 0.0 { v[0] } else { 1.673_263_242_354_377_2 * v[0].exp_m1() }
        }),
        Function::new("gelu", [far()], |x| ops::gelu(&x[0])),
        Function::new("gelu_approx", one(), |x| ops::gelu_approx(&x[0])).is(|v| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (v[0] + 0.044_715 * v[0].powi(3));
            0.5 * v[0] * (1.0 + inner.tanh())
        }),
        Function::new("silu", [far()], |x| ops::silu(&x[0])).is(|v| v[0] * sigmoid(v[0])),
        Function::new("softplus", [far()], |x| ops::softplus(&x[0])).is(|v| softplus(v[0])),
        Function::new("log_sigmoid", [far()], |x| ops::log_sigmoid(&x[0])).is(|v| -softplus(-v[0])),
        Function::new("softsign", one(), |x| ops::softsign(&x[0]))
            .is(|v| v[0] / (1.0 + v[0].abs())),
        Function::new("hard_swish", [far()], |x| ops::hard_swish(&x[0]))
            .is(|v| v[0] * (v[0] + 3.0).clamp(0.0, 6.0) / 6.0),
        Function::new("hard_sigmoid", [far()], |x| ops::hard_sigmoid(&x[0]))
            .is(|v| (v[0] / 6.0 + 0.5).clamp(0.0, 1.0)),
        Function::new("mish", [far()], |x| ops::mish(&x[0])).is(|v| v[0] * softplus(v[0]).tanh()),
        Function::new("hard_tanh", one(), |x| ops::hard_tanh(&x[0])).is(|v| v[0].clamp(-1.0, 1.0)),
        Function::new("tanh_shrink", one(), |x| ops::tanh_shrink(&x[0])).is(|v| v[0] - v[0].tanh()),
        Function::new("hard_shrink", one(), |x| ops::hard_shrink(&x[0], 0.7))
            .is(|v| if v[0].abs() > 0.7 { v[0] } else { 0.0 }),
        Function::new("softshrink", one(), |x| ops::softshrink(&x[0], 0.7))
            .is(|v| (v[0].abs() - 0.7).max(0.0).copysign(v[0])),
        Function::new("glu", [input([3, 4])], |x| ops::glu(&x[0], -1)),
    ];
    let mut all: Vec<Function> = all.into_iter().map(Function::smooth).collect();
    // Where the exponential of float32 is infinite.
    let large = || [from([3, 5], |i| spread(i) * 60.0)];
    all.push(
        Function::new("softplus", large(), |x| ops::softplus(&x[0]))
            .case("of large numbers")
            .is(|v| v[0].max(0.0) + (-v[0].abs()).exp().ln_1p()),
    );
    all.push(
        Function::new("log_sigmoid", large(), |x| ops::log_sigmoid(&x[0]))
            .case("of large numbers")
            .is(|v| v[0].min(0.0) - (-v[0].abs()).exp().ln_1p()),
    );
    all.push(
        Function::new("step", one(), |x| ops::step(&x[0], 0.5))
            .is(|v| if v[0] > 0.5 { 1.0 } else { 0.0 }),
    );
    all
}
