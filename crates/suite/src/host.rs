//! Arrays of the reference: every operation on them is a plain loop.

use cupola_core::{Array, Aval, Result, Shape};

use crate::number::Number;

/// An array of the reference.
#[derive(Clone, Debug)]
pub struct Host {
    /// Shape and dtype.
    pub aval: Aval,
    /// The elements in row-major order, each a number that the dtype can hold.
    pub data: Vec<Number>,
}

impl Host {
    /// An array of `aval` whose elements come from `f`, rounded to the dtype.
    pub fn from_fn(aval: Aval, f: impl FnMut(usize) -> Number) -> Host {
        let dtype = aval.dtype;
        let data = (0..aval.shape.size()).map(f).map(|v| v.fit(dtype)).collect();
        Host { aval, data }
    }

    /// An array of `aval` whose elements come from `f` with an index.
    pub fn by_index(aval: &Aval, mut f: impl FnMut(&[usize]) -> Number) -> Host {
        let data = indices(&aval.shape).map(|index| f(&index).fit(aval.dtype)).collect();
        Host { aval: aval.clone(), data }
    }

    /// The same array on the device.
    pub fn to_array(&self) -> Result<Array> {
        let bytes: Vec<u8> = self.data.iter().flat_map(|v| v.bytes(self.aval.dtype)).collect();
        Array::from_bytes(&bytes, self.aval.dtype, self.aval.shape.clone())
    }

    /// What a device computed, as an array of the reference.
    pub fn of_array(array: &Array) -> Result<Host> {
        let (aval, bytes) = (array.aval().clone(), array.to_bytes()?);
        let elements = bytes.chunks_exact(aval.dtype.size());
        let data = elements.map(|raw| Number::parse(raw, aval.dtype)).collect();
        Ok(Host { aval, data })
    }

    /// The element at `index`.
    pub fn at(&self, index: &[usize]) -> Number {
        self.data[flat(&self.aval.shape, index)]
    }

    /// The elements as real numbers; of complex ones both parts.
    pub fn floats(&self) -> Vec<f64> {
        if self.aval.dtype.is_complex() {
            return self.data.iter().flat_map(|v| [v.complex().re, v.complex().im]).collect();
        }
        self.data.iter().map(|v| v.float()).collect()
    }
}

/// Every index of `shape` in row-major order.
pub fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
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

/// Runs `f` over each lane of `x` along `axis` and lays its results out along the same axis, or
/// without it where `out` lacks it.
pub fn lanes(x: &Host, axis: usize, out: &Aval, f: impl Fn(&[Number]) -> Vec<Number>) -> Host {
    let mut result = Host::from_fn(out.clone(), |_| Number::Int(0));
    let keeps = out.shape.rank() == x.aval.shape.rank();
    for index in indices(&x.aval.shape.with(axis, 1)) {
        let place = |i: usize| {
            let mut index = index.clone();
            index[axis] = i;
            index
        };
        let lane: Vec<_> = (0..x.aval.shape[axis]).map(|i| x.at(&place(i))).collect();
        if lane.is_empty() {
            continue;
        }
        for (i, v) in f(&lane).into_iter().enumerate() {
            let mut at = place(i);
            if !keeps {
                at.remove(axis);
            }
            result.data[flat(&out.shape, &at)] = v.fit(out.dtype);
        }
    }
    result
}
