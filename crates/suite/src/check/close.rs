//! Whether two results are the same, or close.

use cupola_core::prim::{Binary, Op};
use cupola_core::{DType, Error, Result};
use num_complex::Complex64;

use crate::host::Host;
use crate::number::Number::{self, Complex, Float, Int};

use super::kernels_are_cheap;

/// That `got` is `want` to `tolerance`, relative to 1 + |want|.
pub fn agree(what: &str, got: &Host, want: &Host, tolerance: f64) -> Result<()> {
    let close = |a: f64, b: f64| {
        let near = || b.is_finite() && (a - b).abs() <= tolerance * (1.0 + b.abs());
        a == b || a.is_nan() && b.is_nan() || near()
    };
    compare(what, got, want, |_, a, b| match (a, b) {
        (Int(a), Int(b)) => a == b,
        (Complex(a), Complex(b)) => close(a.re, b.re) && close(a.im, b.im),
        (a, b) => close(a.float(), b.float()),
    })
}

/// That `got` has the bits of `want`, whatever bits a NaN has. Zeros may have either sign in complex
/// numbers, where a part that is known to be zero need not be multiplied, and on GPUs, whose languages
/// promise none.
pub fn same(what: &str, got: &Host, want: &Host) -> Result<()> {
    let bits = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    let signed = kernels_are_cheap();
    compare(what, got, want, |_, a, b| match (a, b) {
        (Float(a), Float(b)) if signed => bits(a, b),
        (Float(a), Float(b)) => bits(a + 0.0, b + 0.0),
        (Complex(a), Complex(b)) => bits(a.re + 0.0, b.re + 0.0) && bits(a.im + 0.0, b.im + 0.0),
        (a, b) => a == b,
    })
}

/// That `got`, which `op` gave for `inputs`, is so many units in the last place from `want`.
pub fn agree_within(
    what: &str,
    op: &Op,
    inputs: &[Host],
    got: &Host,
    want: &Host,
    limit: f64,
) -> Result<()> {
    let dtype = want.aval.dtype;
    let relative = *op == Binary::LogAddExp.into();
    // Which of two zeros is larger nobody says.
    let signs = ![Binary::Maximum, Binary::Minimum].map(Op::from).contains(op);
    compare(what, got, want, |i, a, b| match (a, b) {
        (Float(a), Float(b)) if relative && b.is_finite() => {
            // The result is as exact as the larger operand allows.
            let scale = inputs.iter().map(|x| x.data[i].float().abs()).fold(b.abs(), f64::max);
            ulps(scale + a - b, scale, dtype) <= limit
        }
        (Float(a), Float(b)) => {
            let sign = a != 0.0 || b != 0.0 || a.is_sign_negative() == b.is_sign_negative();
            ulps(a, b, dtype) <= limit && (sign || !signs)
        }
        (Complex(a), Complex(b)) => complex_ulps(a, b, dtype) <= limit,
        (a, b) => a == b,
    })
}

/// The distance in units of the last place of `dtype` at `b`; 0 for two NaNs.
fn ulps(a: f64, b: f64, dtype: DType) -> f64 {
    if a == b || a.is_nan() && b.is_nan() {
        return 0.0;
    }
    let (digits, least) = precision(dtype);
    let exponent = (b.abs().log2().floor() as i32).clamp(least, 1023);
    let distance = (a - b).abs() / 2f64.powi(exponent - digits);
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// How many digits a float has behind the first, or each part, and its least exponent.
fn precision(dtype: DType) -> (i32, i32) {
    match dtype.real() {
        DType::F16 => (10, -14),
        DType::BF16 => (7, -126),
        DType::F32 => (23, -126),
        _ => (52, -1022),
    }
}

/// A part is as exact as the larger one allows.
fn complex_ulps(a: Complex64, b: Complex64, dtype: DType) -> f64 {
    let (digits, least) = precision(dtype);
    let unit = b.re.abs().max(b.im.abs()).max(2f64.powi(least)) * 2f64.powi(-digits);
    let part = |x: f64, y: f64| match x == y || x.is_nan() && y.is_nan() {
        true => 0.0,
        false => (x - y).abs() / unit,
    };
    let (re, im) = (part(a.re, b.re), part(a.im, b.im));
    if re.is_nan() || im.is_nan() { f64::INFINITY } else { re.max(im) }
}

fn compare(
    what: &str,
    got: &Host,
    want: &Host,
    close: impl Fn(usize, Number, Number) -> bool,
) -> Result<()> {
    if got.aval != want.aval {
        return Err(Error::User(format!("{what}: gave {}, not {}", got.aval, want.aval)));
    }
    if got.data.len() != want.data.len() {
        let (got, want) = (got.data.len(), want.data.len());
        return Err(Error::User(format!("{what}: gave {got} elements, not {want}")));
    }
    let pairs = got.data.iter().zip(&want.data).enumerate();
    match { pairs }.find(|(i, (a, b))| !close(*i, **a, **b)) {
        None => Ok(()),
        Some((i, (got_at, want_at))) => Err(Error::User(format!(
            "{what}: element {i} of {} is {got_at:?}, not {want_at:?}",
            got.aval
        ))),
    }
}

/// That numbers agree to `tolerance`, against the largest of them.
pub fn near(what: &str, got: &[f64], want: &[f64], tolerance: f64) -> Result<()> {
    let scale = want.iter().fold(1.0f64, |m, v| if v.is_finite() { m.max(v.abs()) } else { m });
    let wrong = got.iter().zip(want).position(|(g, w)| {
        let close = (g - w).abs() <= tolerance * scale;
        !(g == w || close || g.is_nan() && w.is_nan())
    });
    match wrong {
        None if got.len() == want.len() => Ok(()),
        None => Err(Error::User(format!("{what}: {} numbers, not {}", got.len(), want.len()))),
        Some(i) => Err(Error::User(format!("{what}: {} at {i}, not {}", got[i], want[i]))),
    }
}
