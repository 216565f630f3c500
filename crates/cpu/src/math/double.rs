//! `f64` functions that `std` lacks.

/// 1/(1 + e⁻ˣ).
pub(crate) fn sigmoid_f64(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

/// ln(eᵃ + eᵇ).
pub(crate) fn logaddexp_f64(a: f64, b: f64) -> f64 {
    if a == b {
        return a + std::f64::consts::LN_2;
    }
    let larger = if a > b { a } else { b };
    larger + (-(a - b).abs()).exp().ln_1p()
}

/// arcosh x.
pub(crate) fn acosh_f64(x: f64) -> f64 {
    // `libm` gives numbers for large negative arguments.
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The error function.
pub(crate) fn erf_f64(x: f64) -> f64 {
    libm::erf(x)
}

/// What the error function lacks to 1.
pub(crate) fn erfc_f64(x: f64) -> f64 {
    libm::erfc(x)
}

/// The inverse of the error function: Wichura's algorithm AS 241 (PPND16, Applied Statistics 37,
/// 1988) for the normal quantile, then one Newton step on erf or erfc.
// The coefficients as published.
#[allow(clippy::excessive_precision)]
pub(crate) fn erfinv_f64(x: f64) -> f64 {
    const A: [f64; 8] = [
        2509.0809287301226727,
        33430.575583588128105,
        67265.770927008700853,
        45921.953931549871457,
        13731.693765509461125,
        1971.5909503065514427,
        133.14166789178437745,
        3.387132872796366608,
    ];
    const B: [f64; 8] = [
        5226.495278852854561,
        28729.085735721942674,
        39307.89580009271061,
        21213.794301586595867,
        5394.1960214247511077,
        687.1870074920579083,
        42.313330701600911252,
        1.0,
    ];
    const C: [f64; 8] = [
        7.7454501427834140764e-4,
        0.0227238449892691845833,
        0.24178072517745061177,
        1.27045825245236838258,
        3.64784832476320460504,
        5.7694972214606914055,
        4.6303378461565452959,
        1.42343711074968357734,
    ];
    const D: [f64; 8] = [
        1.05075007164441684324e-9,
        5.475938084995344946e-4,
        0.0151986665636164571966,
        0.14810397642748007459,
        0.68976733498510000455,
        1.6763848301838038494,
        2.05319162663775882187,
        1.0,
    ];
    const E: [f64; 8] = [
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        0.0012426609473880784386,
        0.026532189526576123093,
        0.29656057182850489123,
        1.7848265399172913358,
        5.4637849111641143699,
        6.6579046435011037772,
    ];
    const F: [f64; 8] = [
        2.04426310338993978564e-15,
        1.4215117583164458887e-7,
        1.8463183175100546818e-5,
        7.868691311456132591e-4,
        0.0148753612908506148525,
        0.13692988092273580531,
        0.59983220655588793769,
        1.0,
    ];
    let poly = |c: &[f64; 8], r: f64| c.iter().fold(0.0, |sum, c| sum * r + c);
    let a = x.abs();
    if a >= 1.0 || x.is_nan() {
        return if a == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    let quantile = if a <= 0.85 {
        let r = 0.180625 - 0.25 * x * x;
        0.5 * a * poly(&A, r) / poly(&B, r)
    } else {
        let r = (-(0.5 * (1.0 - a)).ln()).sqrt();
        if r <= 5.0 {
            poly(&C, r - 1.6) / poly(&D, r - 1.6)
        } else {
            poly(&E, r - 5.0) / poly(&F, r - 5.0)
        }
    };
    let y = quantile * std::f64::consts::FRAC_1_SQRT_2;
    let error = if a < 0.5 { libm::erf(y) - a } else { (1.0 - a) - libm::erfc(y) };
    let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
    (y - error / slope).copysign(x)
}
