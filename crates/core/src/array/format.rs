//! How an array reads.

use std::fmt;

use half::{bf16, f16};
use num_complex::{Complex, Complex32};

use super::{Array, Progress};
use crate::dtype::{DType, Element};
use crate::error::Result;

/// Axes longer than this show only their ends, in arrays of more than [`WHOLE`] elements.
const EDGE: usize = 3;
const WHOLE: usize = 1000;

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.node.state().progress {
            Progress::Ready(_) => "",
            Progress::Pending(_) => ", pending",
            Progress::Failed(_) => ", failed",
            Progress::Lazy => ", lazy",
        };
        write!(f, "Array({}, {}{state})", self.aval(), self.node.op.name())
    }
}

/// Computes the array and shows its values as NumPy does; an error shows in their place.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = match self.dtype() {
            DType::Bool => texts::<bool>(self, |v| v.to_string()),
            DType::U8 => texts::<u8>(self, |v| v.to_string()),
            DType::U16 => texts::<u16>(self, |v| v.to_string()),
            DType::U32 => texts::<u32>(self, |v| v.to_string()),
            DType::U64 => texts::<u64>(self, |v| v.to_string()),
            DType::I8 => texts::<i8>(self, |v| v.to_string()),
            DType::I16 => texts::<i16>(self, |v| v.to_string()),
            DType::I32 => texts::<i32>(self, |v| v.to_string()),
            DType::I64 => texts::<i64>(self, |v| v.to_string()),
            DType::F16 => texts::<f16>(self, |v| real(v.to_f64())),
            DType::BF16 => texts::<bf16>(self, |v| real(v.to_f64())),
            DType::F32 => texts::<f32>(self, |v| real(f64::from(v))),
            DType::F64 => texts::<f64>(self, real),
            DType::C32 => texts::<Complex<f16>>(self, |v| complex(v.re.into(), v.im.into())),
            DType::C64 => texts::<Complex32>(self, |v| complex(v.re.into(), v.im.into())),
        };
        match texts {
            Ok(texts) => {
                let width = texts.iter().map(|t| t.len()).max().unwrap_or(0);
                f.write_str("array(")?;
                write_axis(f, self, &texts, 0, 0, width)?;
                write!(f, ", dtype={})", self.dtype())
            }
            Err(error) => write!(f, "array(<{error}>, {})", self.aval()),
        }
    }
}

fn complex(re: f64, im: f64) -> String {
    let sign = if im.is_sign_negative() { "-" } else { "+" };
    format!("{}{sign}{}j", real(re), real(im.abs()))
}

/// At most six significant digits, as NumPy prints by default.
fn real(v: f64) -> String {
    if !v.is_finite() {
        return if v.is_nan() {
            "nan"
        } else if v > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .into();
    }
    if v != 0.0 && !(1e-4..1e8).contains(&v.abs()) {
        return format!("{v:.5e}");
    }
    let digits = 6i32.saturating_sub(1 + v.abs().max(1e-4).log10().floor() as i32).max(0);
    let text = format!("{v:.*}", digits as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn texts<T: Element>(array: &Array, show: impl Fn(T) -> String) -> Result<Vec<String>> {
    let values = array.to_vec::<T>()?;
    let shape = array.shape();
    let shown = |mut index: usize| {
        shape.iter().rev().all(|&d| {
            let at = index % d;
            index /= d;
            is_shown(array, at, d)
        })
    };
    let text = |(i, v)| if shown(i) { show(v) } else { String::new() };
    Ok(values.into_iter().enumerate().map(text).collect())
}

fn is_shown(array: &Array, at: usize, size: usize) -> bool {
    array.size() <= WHOLE || size <= 2 * EDGE || at < EDGE || at >= size - EDGE
}

fn write_axis(
    f: &mut fmt::Formatter<'_>,
    array: &Array,
    texts: &[String],
    axis: usize,
    first: usize,
    width: usize,
) -> fmt::Result {
    let shape = array.shape();
    let Some(&size) = shape.get(axis) else {
        return write!(f, "{:>width$}", texts[first]);
    };
    let inner: usize = shape[axis + 1..].iter().product();
    let last_axis = axis + 1 == shape.rank();
    f.write_str("[")?;
    let mut skipped = false;
    for at in 0..size {
        if !is_shown(array, at, size) {
            if !skipped {
                f.write_str(if last_axis { ", ..." } else { ",\n ..." })?;
            }
            skipped = true;
            continue;
        }
        if at > 0 && last_axis {
            f.write_str(", ")?;
        } else if at > 0 {
            write!(f, ",\n{:indent$}", "", indent = axis + 7)?;
        }
        write_axis(f, array, texts, axis + 1, first + at * inner, width)?;
    }
    f.write_str("]")
}
