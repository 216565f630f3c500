//! From samples to a batch, by the type of the samples.

use cupola_core::Array;

use super::{Error, Result};

/// A sample that knows how many of its kind become one batch.
///
/// Arrays of one shape are stacked along a new first axis, numbers become an array, a tuple or
/// vector of these becomes a tuple or vector of batches, text becomes a list. Other samples implement it, or their loader is
/// given a function.
pub trait Collate: Send + Sized {
    /// What the samples become.
    type Batch: Send + 'static;

    /// One batch of `samples`, in their order.
    ///
    /// # Errors
    ///
    /// If the samples do not fit together, such as arrays of different shapes.
    fn collate(samples: Vec<Self>) -> Result<Self::Batch>;
}

impl Collate for Array {
    type Batch = Array;

    fn collate(samples: Vec<Self>) -> Result<Array> {
        let first = samples.first().ok_or_else(|| Error::argument("collate", "no samples"))?;
        // Copied here, in the worker's thread, rather than left to whoever reads the batch.
        let mut bytes = Vec::with_capacity(samples.len() * first.size() * first.dtype().size());
        for (index, sample) in samples.iter().enumerate() {
            if sample.aval() != first.aval() {
                let (first, other) = (first.aval(), sample.aval());
                let detail = format!("sample 0 of the batch is {first}, sample {index} is {other}");
                return Err(Error::argument("collate", detail));
            }
            bytes.extend(sample.to_bytes()?);
        }
        let shape: Vec<usize> =
            std::iter::once(samples.len()).chain(first.shape().iter().copied()).collect();
        Ok(Array::from_bytes(&bytes, first.dtype(), shape)?)
    }
}

impl Collate for String {
    type Batch = Vec<String>;

    fn collate(samples: Vec<Self>) -> Result<Vec<String>> {
        Ok(samples)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Collate for $number {
            type Batch = Array;

            fn collate(samples: Vec<Self>) -> Result<Array> {
                let count = samples.len();
                Ok(Array::from_vec(samples, [count])?)
            }
        }
    )*};
}

numbers!(bool, u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl<T: Collate> Collate for Vec<T> {
    type Batch = Vec<T::Batch>;

    fn collate(samples: Vec<Self>) -> Result<Self::Batch> {
        let length = samples.first().map_or(0, Vec::len);
        let mut fields: Vec<Vec<T>> = (0..length).map(|_| Vec::new()).collect();
        for (index, sample) in samples.into_iter().enumerate() {
            if sample.len() != length {
                let detail = format!(
                    "sample 0 of the batch has {length} parts, sample {index} has {}",
                    sample.len()
                );
                return Err(Error::argument("collate", detail));
            }
            for (field, part) in fields.iter_mut().zip(sample) {
                field.push(part);
            }
        }
        fields.into_iter().map(T::collate).collect()
    }
}

impl<A: Collate, B: Collate> Collate for (A, B) {
    type Batch = (A::Batch, B::Batch);

    fn collate(samples: Vec<Self>) -> Result<Self::Batch> {
        let (a, b): (Vec<A>, Vec<B>) = samples.into_iter().unzip();
        Ok((A::collate(a)?, B::collate(b)?))
    }
}

impl<A: Collate, B: Collate, C: Collate> Collate for (A, B, C) {
    type Batch = (A::Batch, B::Batch, C::Batch);

    fn collate(samples: Vec<Self>) -> Result<Self::Batch> {
        let nested: Vec<(A, (B, C))> = samples.into_iter().map(|(a, b, c)| (a, (b, c))).collect();
        let (a, (b, c)) = Collate::collate(nested)?;
        Ok((a, b, c))
    }
}
