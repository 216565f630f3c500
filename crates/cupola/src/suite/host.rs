//! Arrays of the reference: every number as a complex `f64`, every operation a plain loop.

use cupola_core::{Array, Aval, DType, Result, Shape};
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

/// An array of the reference.
#[derive(Clone, Debug)]
pub struct Host {
    /// Shape and dtype.
    pub aval: Aval,
    /// The elements in row-major order, each a number that the dtype can hold.
    pub data: Vec<Complex64>,
}

impl Host {
    /// An array of `aval` whose elements come from `f`, rounded to the dtype.
    pub fn from_fn(aval: Aval, f: impl FnMut(usize) -> Complex64) -> Host {
        let dtype = aval.dtype;
        let data = (0..aval.shape.size()).map(f).map(|v| round_to(dtype, v)).collect();
        Host { aval, data }
    }

    /// The same array on the device.
    pub fn to_array(&self) -> Result<Array> {
        let shape = self.aval.shape.clone();
        macro_rules! build {
            ($($dtype:ident => $convert:expr),* $(,)?) => {
                match self.aval.dtype {
                    $(DType::$dtype => {
                        Array::from_vec(self.data.iter().map($convert).collect::<Vec<_>>(), shape)
                    })*
                }
            };
        }
        build! {
            Bool => |v| v.re != 0.0,
            U8 => |v| v.re as u8,
            U16 => |v| v.re as u16,
            U32 => |v| v.re as u32,
            U64 => |v| v.re as u64,
            I8 => |v| v.re as i8,
            I16 => |v| v.re as i16,
            I32 => |v| v.re as i32,
            I64 => |v| v.re as i64,
            F16 => |v| f16::from_f64(v.re),
            BF16 => |v| bf16::from_f64(v.re),
            F32 => |v| v.re as f32,
            F64 => |v| v.re,
            C64 => |v| Complex32::new(v.re as f32, v.im as f32),
        }
    }

    /// What a device computed, as an array of the reference.
    pub fn of_array(array: &Array) -> Result<Host> {
        fn real<T: cupola_core::Element>(
            a: &Array,
            f: impl Fn(T) -> f64,
        ) -> Result<Vec<Complex64>> {
            Ok(a.to_vec::<T>()?.into_iter().map(|v| Complex64::new(f(v), 0.0)).collect())
        }
        let data = match array.dtype() {
            DType::Bool => real::<bool>(array, |v| f64::from(u8::from(v))),
            DType::U8 => real::<u8>(array, f64::from),
            DType::U16 => real::<u16>(array, f64::from),
            DType::U32 => real::<u32>(array, f64::from),
            DType::U64 => real::<u64>(array, |v| v as f64),
            DType::I8 => real::<i8>(array, f64::from),
            DType::I16 => real::<i16>(array, f64::from),
            DType::I32 => real::<i32>(array, f64::from),
            DType::I64 => real::<i64>(array, |v| v as f64),
            DType::F16 => real::<f16>(array, f16::to_f64),
            DType::BF16 => real::<bf16>(array, bf16::to_f64),
            DType::F32 => real::<f32>(array, f64::from),
            DType::F64 => real::<f64>(array, |v| v),
            DType::C64 => Ok(array
                .to_vec::<Complex32>()?
                .into_iter()
                .map(|v| Complex64::new(v.re.into(), v.im.into()))
                .collect()),
        }?;
        Ok(Host { aval: array.aval().clone(), data })
    }
}

/// `v` as `dtype` holds it: integers truncate and wrap, floats round to nearest even.
pub fn round_to(dtype: DType, v: Complex64) -> Complex64 {
    let re = match dtype {
        DType::Bool => f64::from(u8::from(v.re != 0.0 || v.im != 0.0)),
        DType::U8 => (v.re as i128 as u8).into(),
        DType::U16 => (v.re as i128 as u16).into(),
        DType::U32 => (v.re as i128 as u32).into(),
        DType::U64 => v.re as i128 as u64 as f64,
        DType::I8 => (v.re as i128 as i8).into(),
        DType::I16 => (v.re as i128 as i16).into(),
        DType::I32 => (v.re as i128 as i32).into(),
        DType::I64 => v.re as i128 as i64 as f64,
        DType::F16 => f16::from_f64(v.re).to_f64(),
        DType::BF16 => bf16::from_f64(v.re).to_f64(),
        DType::F32 => f64::from(v.re as f32),
        DType::F64 => v.re,
        DType::C64 => return Complex64::new(f64::from(v.re as f32), f64::from(v.im as f32)),
    };
    Complex64::new(re, 0.0)
}

/// Every index of `shape` in row-major order.
pub fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let shape = shape.to_vec();
    let size: usize = shape.iter().product();
    (0..size).map(move |mut flat| {
        let mut index = vec![0; shape.len()];
        for axis in (0..shape.len()).rev() {
            index[axis] = flat % shape[axis];
            flat /= shape[axis];
        }
        index
    })
}

/// The place of `index` in row-major order.
pub fn flat(shape: &Shape, index: &[usize]) -> usize {
    index.iter().zip(shape.iter()).fold(0, |at, (&i, &d)| at * d + i)
}
