//! How arrays read: MLX's text.

use std::fmt::Write;
use std::sync::atomic::{AtomicI32, Ordering};

use cupola::device::with_stream;
use cupola::{Array, DType, Element, Error, Result, Stream, ops};
use half::{bf16, f16};
use num_complex::{Complex, Complex32};
use pyo3::prelude::*;

use crate::error::raise;
use crate::generated::docs;
use crate::host::Host;

/// How many elements an axis shows at either end, where it is longer than twice that.
const EDGE: usize = 3;

/// So many elements are copied from a device where only some are shown.
const COPIED: usize = 4096;

/// Digits after the point; below 0 stands for six significant digits.
static PRECISION: AtomicI32 = AtomicI32::new(-1);

/// How arrays are printed.
#[doc = docs!(PrintOptions)]
#[pyclass(frozen, name = "PrintOptions", module = "cupola.core")]
pub struct PrintOptions {
    /// Digits after the point; −1 for six significant digits.
    #[pyo3(get)]
    precision: i32,
}

/// How arrays are printed now.
#[doc = docs!(get_printoptions)]
#[pyfunction]
pub fn get_printoptions() -> PrintOptions {
    PrintOptions { precision: PRECISION.load(Ordering::Relaxed) }
}

/// Sets how arrays are printed.
#[doc = docs!(set_printoptions)]
#[pyfunction]
#[pyo3(signature = (precision = -1), text_signature = "(precision=-1)")]
pub fn set_printoptions(precision: i32) {
    PRECISION.store(precision, Ordering::Relaxed);
}

/// A context in which arrays are printed in another way.
#[pyclass(name = "_PrintOptionsContext", module = "cupola.core")]
pub struct PrintOptionsContext {
    precision: i32,
    former: i32,
}

#[pymethods]
impl PrintOptionsContext {
    fn __enter__(&mut self) {
        self.former = PRECISION.swap(self.precision, Ordering::Relaxed);
    }

    #[pyo3(signature = (*args))]
    fn __exit__(&mut self, args: &Bound<'_, PyAny>) {
        let _ = args;
        PRECISION.store(self.former, Ordering::Relaxed);
    }
}

/// A context in which arrays are printed in another way.
#[doc = docs!(printoptions)]
#[pyfunction]
#[pyo3(signature = (precision = -1), text_signature = "(precision=-1)")]
pub fn printoptions(precision: i32) -> PrintOptionsContext {
    PrintOptionsContext { precision, former: -1 }
}

/// The text of an array, which it computes.
pub fn text(py: Python<'_>, array: &Array) -> PyResult<String> {
    let held = py.detach(|| shown(array)).map_err(raise)?;
    let host = Host::of(py, &held)?;
    let precision = PRECISION.load(Ordering::Relaxed);
    let real = |v: f64| real(v, precision);
    let write = |show: &dyn Fn(usize, &mut String)| {
        let mut out = String::from("array(");
        axis(&mut out, array.shape(), held.shape(), 0, 7, show);
        let _ = write!(out, ", dtype={})", array.dtype());
        out
    };
    macro_rules! show {
        ($type:ty, |$v:ident| $text:expr) => {
            write(&|at, out| {
                let $v = <$type>::from_bytes(host.element(at))[0];
                out.push_str($text.as_ref());
            })
        };
    }
    Ok(match array.dtype() {
        DType::Bool => show!(bool, |v| if v { "True" } else { "False" }),
        DType::U8 => show!(u8, |v| v.to_string()),
        DType::U16 => show!(u16, |v| v.to_string()),
        DType::U32 => show!(u32, |v| v.to_string()),
        DType::U64 => show!(u64, |v| v.to_string()),
        DType::I8 => show!(i8, |v| v.to_string()),
        DType::I16 => show!(i16, |v| v.to_string()),
        DType::I32 => show!(i32, |v| v.to_string()),
        DType::I64 => show!(i64, |v| v.to_string()),
        DType::F16 => show!(f16, |v| real(v.to_f64())),
        DType::BF16 => show!(bf16, |v| real(v.to_f64())),
        DType::F32 => show!(f32, |v| real(v.into())),
        DType::F64 => show!(f64, |v| real(v)),
        DType::C32 => show!(Complex<f16>, |v| complex(v, &real)),
        DType::C64 => show!(Complex32, |v| complex(v, &real)),
    })
}

fn complex<T: Into<f64>>(v: Complex<T>, real: &dyn Fn(f64) -> String) -> String {
    let (re, im) = (v.re.into(), v.im.into());
    let sign = if im.is_sign_negative() { "" } else { "+" };
    format!("{}{sign}{}j", real(re), real(im))
}

fn real(v: f64, precision: i32) -> String {
    match usize::try_from(precision) {
        // No number has more.
        Ok(digits) if v.is_finite() => format!("{v:.0$}", digits.min(1074)),
        _ => general(v, 6),
    }
}

/// `v` with so many significant digits, as C's `%g` writes it.
pub fn general(v: f64, digits: usize) -> String {
    if v.is_nan() {
        return "nan".into();
    }
    if v.is_infinite() {
        return if v > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{v:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    trim(&format!("{v:.*}", (digits as i32 - 1 - exponent).max(0) as usize))
}

/// What is read of an array to show it: both ends of its long axes, where the host would copy all of it from a device,
/// or there is no memory for all of it.
fn shown(array: &Array) -> Result<Array> {
    let has_copy = match cupola::wait(std::slice::from_ref(array)) {
        Ok(()) => array.storage()?.0.host().is_none() && array.size() > COPIED,
        Err(Error::OutOfMemory { .. }) if !array.is_undone() => true,
        Err(error) => return Err(error),
    };
    if !has_copy {
        return Ok(array.clone());
    }
    with_stream(Stream::of(array.device()), || {
        let mut ends = array.clone();
        for (axis, &size) in array.shape().iter().enumerate() {
            if size > 2 * EDGE {
                let part = |from: usize, to: usize| {
                    let (mut start, mut stop) = (vec![0; array.rank()], sizes(&ends));
                    (start[axis], stop[axis]) = (from as isize, to as isize);
                    ops::slice(&ends, &start, &stop, &vec![1; array.rank()])
                };
                let (low, high) = (part(0, EDGE)?, part(size - EDGE, size)?);
                ends = ops::concatenate(&[&low, &high], axis as isize)?;
            }
        }
        Ok(ends)
    })
}

fn sizes(array: &Array) -> Vec<isize> {
    array.shape().iter().map(|&size| size as isize).collect()
}

/// Writes one axis and what is within it; `first` is its first element among those that are `held`.
fn axis(
    out: &mut String,
    shape: &[usize],
    held: &[usize],
    first: usize,
    indent: usize,
    show: &dyn Fn(usize, &mut String),
) {
    let (Some((&size, shape)), Some((&count, held))) = (shape.split_first(), held.split_first())
    else {
        return show(first, out);
    };
    let inner: usize = held.iter().product();
    let is_last = shape.is_empty();
    let separator = match is_last {
        true => ", ".to_owned(),
        false => format!(",\n{:indent$}", ""),
    };
    out.push('[');
    let mut at = 0;
    while at < size {
        if at > 0 {
            out.push_str(&separator);
        }
        if size > 2 * EDGE && at == EDGE {
            out.push_str("...");
            at = size - EDGE;
            continue;
        }
        // Of an axis that is held in part there are both ends.
        let place = if at < EDGE { at } else { count - (size - at) };
        axis(out, shape, held, first + place * inner, indent + 1, show);
        at += 1;
    }
    out.push(']');
}
