//! Arrays made and read on the host.

use cupola::{Array, DType, Result, Shape};

/// Numbers that look random and are the same in every run.
pub struct Source(u64);

impl Source {
    pub fn new(seed: u64) -> Self {
        Source(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from `low` to `high`.
    pub fn next(&mut self, low: f64, high: f64) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + (high - low) * (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn array(&mut self, shape: &[usize], low: f64, high: f64) -> Array {
        let size = shape.iter().product();
        f64s(&(0..size).map(|_| self.next(low, high)).collect::<Vec<_>>(), shape)
    }
}

pub fn f64s(data: &[f64], shape: &[usize]) -> Array {
    Array::from_slice(data, shape).expect("an array of the data's size")
}

pub fn u32s(data: &[u32], shape: &[usize]) -> Array {
    Array::from_slice(data, shape).expect("an array of the data's size")
}

/// The elements as real numbers; of a complex array both parts.
pub fn read(x: &Array) -> Result<Vec<f64>> {
    Ok(match x.dtype() {
        DType::F64 => x.to_vec::<f64>()?,
        DType::F32 => x.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
        DType::U8 => x.to_vec::<u8>()?.into_iter().map(f64::from).collect(),
        DType::U16 => x.to_vec::<u16>()?.into_iter().map(f64::from).collect(),
        DType::U32 => x.to_vec::<u32>()?.into_iter().map(f64::from).collect(),
        DType::I32 => x.to_vec::<i32>()?.into_iter().map(f64::from).collect(),
        DType::Bool => x.to_vec::<bool>()?.into_iter().map(|b| f64::from(u8::from(b))).collect(),
        DType::C64 => {
            let bytes = x.to_bytes()?;
            let part = |b: &[u8]| f64::from(f32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
            bytes.chunks_exact(4).map(part).collect()
        }
        other => panic!("no case has {other}"),
    })
}

/// Real numbers as an array of a real dtype and shape of `like`.
pub fn written(data: &[f64], like: &Array) -> Array {
    let made = match like.dtype() {
        DType::F64 => Array::from_slice(data, like.shape()),
        DType::F32 => {
            let narrow: Vec<f32> = data.iter().map(|&v| v as f32).collect();
            Array::from_slice(&narrow, like.shape())
        }
        other => panic!("{other} does not vary"),
    };
    made.expect("as many numbers as the array has")
}

/// The array with its elements moved by `by` places in row-major order: another array of the same
/// kind, whose indices stay inside and whose numbers stay in the function's domain.
pub fn rolled(x: &Array, by: usize) -> Result<Array> {
    let mut bytes = x.to_bytes()?;
    if !bytes.is_empty() {
        let places = (by * x.dtype().size()) % bytes.len();
        bytes.rotate_left(places);
    }
    Array::from_bytes(&bytes, x.dtype(), x.shape())
}

/// Arrays of one shape under a new first axis.
pub fn stacked(parts: &[Array]) -> Result<Array> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(part.to_bytes()?);
    }
    let shape: Shape =
        std::iter::once(parts.len()).chain(parts[0].shape().iter().copied()).collect();
    Array::from_bytes(&bytes, parts[0].dtype(), shape)
}

/// Σ a·b.
pub fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Whether two lists of numbers agree to `tolerance`, against their size.
pub fn close(what: &str, have: &[f64], want: &[f64], tolerance: f64) -> Result<(), String> {
    let scale = want.iter().fold(1.0f64, |m, v| if v.is_finite() { m.max(v.abs()) } else { m });
    let same = |(h, w): (&f64, &f64)| {
        h.to_bits() == w.to_bits()
            || (h - w).abs() <= tolerance * scale
            || (h.is_nan() && w.is_nan())
    };
    if have.len() == want.len() && have.iter().zip(want).all(same) {
        return Ok(());
    }
    Err(format!("{what}: {have:?}, should be {want:?}"))
}
