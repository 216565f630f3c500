//! A data set, and the data sets made of others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::rng::Rng;
use super::{Collate, Error, Result};

/// The stream of the generator that splits draw from.
const SPLIT: u64 = 0x0053_504C_4954;

/// Samples that are found by their index.
///
/// # Example
///
/// ```
/// use cupola::data::{Dataset, Result};
///
/// struct Squares;
///
/// impl Dataset for Squares {
///     type Sample = f32;
///     fn len(&self) -> usize {
///         100
///     }
///     fn get(&self, index: usize) -> Result<f32> {
///         Ok((index * index) as f32)
///     }
/// }
///
/// let parts = Squares.map(|x| Ok(x + 1.0)).random_split(&[80, 20], 7)?;
/// assert_eq!(parts[1].len(), 20);
/// # Ok::<(), cupola::data::Error>(())
/// ```
pub trait Dataset: Send + Sync {
    /// What one index gives.
    type Sample: Send;

    /// How many samples there are.
    fn len(&self) -> usize;

    /// The sample at `index`, which is below [`len`](Self::len).
    ///
    /// # Errors
    ///
    /// Whatever keeps the sample from being made; [`Error::user`] wraps a foreign error.
    fn get(&self, index: usize) -> Result<Self::Sample>;

    /// The samples at `indices` as one batch.
    ///
    /// A data set that can make a whole batch faster than sample by sample says how here.
    ///
    /// # Errors
    ///
    /// [`Error::Sample`] names the index whose [`get`](Self::get) failed or panicked.
    fn get_batch(&self, indices: &[usize]) -> Result<<Self::Sample as Collate>::Batch>
    where
        Self::Sample: Collate,
    {
        Collate::collate(get_each(self, indices)?)
    }

    /// Whether there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Passes each sample through `f` when it is asked for.
    fn map<T, F>(self, f: F) -> Map<Self, F>
    where
        Self: Sized,
        T: Send,
        F: Fn(Self::Sample) -> Result<T> + Send + Sync,
    {
        Map { inner: self, f }
    }

    /// The samples at `indices`, in that order; an index may stand more than once.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for an index that is not below the length.
    fn subset(self, indices: impl Into<Vec<usize>>) -> Result<Subset<Self>>
    where
        Self: Sized,
    {
        Subset::new(self, indices.into())
    }

    /// The samples of this data set, then those of `other`.
    fn concat<D>(self, other: D) -> Concat<Self, D>
    where
        Self: Sized,
        D: Dataset<Sample = Self::Sample>,
    {
        Concat { first: self, second: other }
    }

    /// Parts of the given lengths, disjoint, that hold every sample, drawn by `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if `lengths` do not add up to the length.
    fn random_split(self, lengths: &[usize], seed: u64) -> Result<Vec<Subset<Arc<Self>>>>
    where
        Self: Sized,
    {
        let sum = lengths.iter().try_fold(0_usize, |sum, &n| sum.checked_add(n));
        if sum != Some(self.len()) {
            let detail = format!("lengths {lengths:?} do not add up to {} samples", self.len());
            return Err(Error::argument("random_split", detail));
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        Rng::new(&[SPLIT, seed]).shuffle(&mut order);
        let inner = Arc::new(self);
        let mut rest = order.as_slice();
        let part = |&length: &usize| {
            let (indices, after) = rest.split_at(length);
            rest = after;
            Subset { inner: inner.clone(), indices: indices.into() }
        };
        Ok(lengths.iter().map(part).collect())
    }

    /// [`random_split`](Self::random_split) by fractions that add up to 1.
    ///
    /// Lengths are rounded down, and what remains goes to the first parts, one sample each.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if a fraction is negative or not finite, or they do not add up to 1.
    fn random_split_fractions(self, fractions: &[f64], seed: u64) -> Result<Vec<Subset<Arc<Self>>>>
    where
        Self: Sized,
    {
        let sum: f64 = fractions.iter().sum();
        if fractions.iter().any(|f| !(0.0..=1.0).contains(f)) || (sum - 1.0).abs() > 1e-6 {
            let detail = format!("fractions {fractions:?} are not parts of 1");
            return Err(Error::argument("random_split_fractions", detail));
        }
        let length = self.len();
        let mut lengths: Vec<usize> =
            fractions.iter().map(|f| (f * length as f64 + 1e-6) as usize).collect();
        let given: usize = lengths.iter().sum();
        let parts = lengths.len();
        for extra in 0..length.saturating_sub(given) {
            lengths[extra % parts] += 1;
        }
        self.random_split(&lengths, seed)
    }
}

/// The samples at `indices`; an error or a panic names the sample.
pub(super) fn get_each<D: Dataset + ?Sized>(
    dataset: &D,
    indices: &[usize],
) -> Result<Vec<D::Sample>> {
    let get = |&index: &usize| {
        // What `get` leaves half done is not looked at again after a panic by this crate; a data
        // set with state of its own guards it with a lock, which poisons itself.
        match catch_unwind(AssertUnwindSafe(|| dataset.get(index))) {
            Ok(Ok(sample)) => Ok(sample),
            Ok(Err(error @ Error::Sample { .. })) => Err(error),
            Ok(Err(error)) => Err(Error::sample(index, error)),
            Err(payload) => Err(Error::sample(index, Error::panic(payload))),
        }
    };
    indices.iter().map(get).collect()
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<D: Dataset + ?Sized> Dataset for $pointer {
            type Sample = D::Sample;

            fn len(&self) -> usize {
                (**self).len()
            }

            fn get(&self, index: usize) -> Result<D::Sample> {
                (**self).get(index)
            }

            fn get_batch(&self, indices: &[usize]) -> Result<<D::Sample as Collate>::Batch>
            where
                D::Sample: Collate,
            {
                (**self).get_batch(indices)
            }
        }
    )*};
}

forward!(&D, Arc<D>, Box<D>);

/// A data set whose samples pass through a function, made by [`Dataset::map`].
#[derive(Clone, Debug)]
pub struct Map<D, F> {
    inner: D,
    f: F,
}

impl<D, F, T> Dataset for Map<D, F>
where
    D: Dataset,
    T: Send,
    F: Fn(D::Sample) -> Result<T> + Send + Sync,
{
    type Sample = T;

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn get(&self, index: usize) -> Result<T> {
        (self.f)(self.inner.get(index)?)
    }
}

/// Some samples of a data set, made by [`Dataset::subset`] and [`Dataset::random_split`].
#[derive(Clone, Debug)]
pub struct Subset<D> {
    inner: D,
    indices: Arc<[usize]>,
}

impl<D: Dataset> Subset<D> {
    fn new(inner: D, indices: Vec<usize>) -> Result<Self> {
        let length = inner.len();
        if let Some(index) = indices.iter().find(|&&index| index >= length) {
            let detail = format!("index {index} of a data set of {length} samples");
            return Err(Error::argument("subset", detail));
        }
        Ok(Self { inner, indices: indices.into() })
    }

    /// Where in the data set below each sample stands.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    fn inner_index(&self, index: usize) -> Result<usize> {
        self.indices.get(index).copied().ok_or_else(|| out_of_range(index, self.len()))
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize) -> Result<D::Sample> {
        self.inner.get(self.inner_index(index)?)
    }

    fn get_batch(&self, indices: &[usize]) -> Result<<D::Sample as Collate>::Batch>
    where
        D::Sample: Collate,
    {
        let inner: Result<Vec<usize>> = indices.iter().map(|&i| self.inner_index(i)).collect();
        let inner = inner?;
        self.inner.get_batch(&inner).map_err(|error| match error {
            // The caller knows its own indices, not those of the data set below.
            Error::Sample { index, cause } => {
                let place = inner.iter().position(|&i| i == index);
                Error::Sample { index: place.map_or(index, |place| indices[place]), cause }
            }
            other => other,
        })
    }
}

/// Two data sets, one after the other, made by [`Dataset::concat`].
#[derive(Clone, Debug)]
pub struct Concat<A, B> {
    first: A,
    second: B,
}

impl<A, B> Dataset for Concat<A, B>
where
    A: Dataset,
    B: Dataset<Sample = A::Sample>,
{
    type Sample = A::Sample;

    fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    fn get(&self, index: usize) -> Result<A::Sample> {
        match index.checked_sub(self.first.len()) {
            None => self.first.get(index),
            Some(index) => self.second.get(index),
        }
    }
}

/// The error of a data set asked for a sample that it has not.
pub(super) fn out_of_range(index: usize, length: usize) -> Error {
    Error::argument("get", format!("index {index} of a data set of {length} samples"))
}
