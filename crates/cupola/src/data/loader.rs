//! Batches in an order that only the seed and the epoch decide.

use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cupola_core::device::{default_stream, with_stream};

use super::dataset::get_each;
use super::rng::Rng;
use super::workers::{Fetch, Workers};
use super::{Collate, Dataset, Error, Result};

/// The stream of the generator that epochs draw their order from.
const EPOCH: u64 = 0x0045_504F_4348;

/// Reads a data set in batches, shuffled or not, with threads that read ahead or without.
///
/// The batches and their order are a function of the data set, the options, the seed and the
/// epoch; the number of workers changes only when they are made.
///
/// # Errors
///
/// A sample that fails, or panics, makes its batch an [`Error::Sample`]; the batches after it
/// still come.
///
/// # Example
///
/// ```
/// use cupola::data::{DataLoader, Dataset, digits_sized};
///
/// let (train, _test) = digits_sized(0, 1_000, 100);
/// let loader = DataLoader::builder(train).batch_size(64).shuffle(7).workers(2).build()?;
/// assert_eq!(loader.len(), 16);
/// for batch in loader.epoch(0) {
///     let (images, labels) = batch?;
///     assert_eq!(images.shape()[1..], [28, 28, 1]);
///     assert_eq!(images.shape()[0], labels.shape()[0]);
/// }
/// # Ok::<(), cupola::data::Error>(())
/// ```
pub struct DataLoader<B> {
    fetch: Fetch<B>,
    samples: usize,
    options: Options,
}

#[derive(Clone, Debug)]
struct Options {
    batch_size: usize,
    seed: Option<u64>,
    drop_last: bool,
    workers: usize,
    prefetch: Option<usize>,
}

impl DataLoader<()> {
    /// The options of a loader over `dataset`: batches of 1, in order, in the caller's thread.
    pub fn builder<D: Dataset>(dataset: D) -> Builder<D, ByType> {
        let options =
            Options { batch_size: 1, seed: None, drop_last: false, workers: 0, prefetch: None };
        Builder { dataset, collate: ByType, options }
    }
}

impl<B: Send + 'static> DataLoader<B> {
    /// How many batches an epoch has.
    pub fn len(&self) -> usize {
        let Options { batch_size, drop_last, .. } = self.options;
        if drop_last { self.samples / batch_size } else { self.samples.div_ceil(batch_size) }
    }

    /// Whether an epoch has no batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many samples there are, those that `drop_last` leaves out among them.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// The batches of `epoch`.
    ///
    /// Dropping the iterator stops its workers and waits for them.
    pub fn epoch(&self, epoch: u64) -> Epoch<B> {
        self.epoch_from(epoch, 0)
    }

    /// The batches of `epoch` from number `first` on, to go on where a checkpoint was taken.
    pub fn epoch_from(&self, epoch: u64, first: usize) -> Epoch<B> {
        let batches = self.len();
        let sampler = BatchSampler {
            order: self.order(epoch),
            samples: self.samples,
            batch_size: self.options.batch_size,
        };
        let ahead = first.min(batches)..batches;
        let workers = self.options.workers.min(ahead.len());
        let source = if workers == 0 {
            Source::Here { fetch: self.fetch.clone(), sampler }
        } else {
            let prefetch = self.options.prefetch.unwrap_or(2 * workers);
            let fetch = self.fetch.clone();
            // Arrays go where they would have gone from the caller's thread.
            let stream = default_stream();
            let make = move |batch| with_stream(stream, || sampler.make(&fetch, batch));
            Source::Workers(Workers::start(Arc::new(make), ahead.clone(), workers, prefetch))
        };
        Epoch { source, ahead }
    }

    /// The indices of the samples in the order of `epoch`; `None` for the data set's own order.
    fn order(&self, epoch: u64) -> Option<Vec<usize>> {
        let seed = self.options.seed?;
        let mut order: Vec<usize> = (0..self.samples).collect();
        Rng::new(&[EPOCH, seed, epoch]).shuffle(&mut order);
        Some(order)
    }
}

impl<B> std::fmt::Debug for DataLoader<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { samples, options, .. } = self;
        f.debug_struct("DataLoader").field("samples", samples).field("options", options).finish()
    }
}

/// Which samples make which batch.
struct BatchSampler {
    order: Option<Vec<usize>>,
    samples: usize,
    batch_size: usize,
}

impl BatchSampler {
    fn make<B>(&self, fetch: &Fetch<B>, batch: usize) -> Result<B> {
        let start = batch * self.batch_size;
        let range = start..(start + self.batch_size).min(self.samples);
        let in_order: Vec<usize>;
        let indices = match &self.order {
            Some(order) => &order[range],
            None => {
                in_order = range.collect();
                &in_order
            }
        };
        let whole = |cause| Error::Batch { indices: indices.to_vec(), cause: Box::new(cause) };
        // The closure's captures are shared and read only; see `get_each` for the data set.
        match catch_unwind(AssertUnwindSafe(|| fetch(indices))) {
            Ok(Err(error @ Error::Sample { .. })) => Err(error),
            Ok(result) => result.map_err(whole),
            Err(payload) => Err(whole(Error::panic(payload))),
        }
    }
}

/// The batches of one epoch, made by [`DataLoader::epoch`].
pub struct Epoch<B: Send + 'static> {
    source: Source<B>,
    ahead: Range<usize>,
}

enum Source<B: Send + 'static> {
    Here { fetch: Fetch<B>, sampler: BatchSampler },
    Workers(Workers<B>),
}

impl<B: Send + 'static> Iterator for Epoch<B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Result<B>> {
        let batch = self.ahead.next()?;
        Some(match &mut self.source {
            Source::Here { fetch, sampler } => sampler.make(fetch, batch),
            Source::Workers(workers) => workers.take(batch),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ahead.size_hint()
    }
}

impl<B: Send + 'static> ExactSizeIterator for Epoch<B> {}
impl<B: Send + 'static> std::iter::FusedIterator for Epoch<B> {}

/// The options of a [`DataLoader`], made by [`DataLoader::builder`].
#[derive(Clone, Debug)]
pub struct Builder<D, C> {
    dataset: D,
    collate: C,
    options: Options,
}

/// Batches by [`Dataset::get_batch`], which the type of the samples decides.
#[derive(Clone, Copy, Debug)]
pub struct ByType;

/// Batches by a function, given to [`Builder::collate`].
#[derive(Clone, Copy, Debug)]
pub struct ByFunction<F, B>(F, PhantomData<fn() -> B>);

impl<D, C> Builder<D, C> {
    /// How many samples make a batch.
    pub fn batch_size(mut self, samples: usize) -> Self {
        self.options.batch_size = samples;
        self
    }

    /// Draws a new order for each epoch from `seed` and the epoch's number.
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Leaves out the last batch of an epoch if it would be smaller than the others.
    pub fn drop_last(mut self, drop: bool) -> Self {
        self.options.drop_last = drop;
        self
    }

    /// How many threads make batches ahead; 0 makes each when it is asked for.
    pub fn workers(mut self, threads: usize) -> Self {
        self.options.workers = threads;
        self
    }

    /// How many batches may lie ready or be under way, twice the workers if not said.
    pub fn prefetch(mut self, batches: usize) -> Self {
        self.options.prefetch = Some(batches);
        self
    }
}

impl<D: Dataset> Builder<D, ByType> {
    /// Makes batches by `collate` instead of by the type of the samples.
    pub fn collate<B, F>(self, collate: F) -> Builder<D, ByFunction<F, B>>
    where
        B: Send,
        F: Fn(Vec<D::Sample>) -> Result<B> + Send + Sync,
    {
        let Self { dataset, options, .. } = self;
        Builder { dataset, collate: ByFunction(collate, PhantomData), options }
    }
}

impl<D> Builder<D, ByType>
where
    D: Dataset + 'static,
    D::Sample: Collate,
{
    /// The loader.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the batch size or the prefetch is 0.
    pub fn build(self) -> Result<DataLoader<<D::Sample as Collate>::Batch>> {
        let Self { dataset, options, .. } = self;
        let samples = dataset.len();
        loader(options, samples, Arc::new(move |indices| dataset.get_batch(indices)))
    }
}

impl<D, B, F> Builder<D, ByFunction<F, B>>
where
    D: Dataset + 'static,
    B: Send + 'static,
    F: Fn(Vec<D::Sample>) -> Result<B> + Send + Sync + 'static,
{
    /// The loader.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the batch size or the prefetch is 0.
    pub fn build(self) -> Result<DataLoader<B>> {
        let Self { dataset, collate: ByFunction(collate, _), options } = self;
        let samples = dataset.len();
        loader(options, samples, Arc::new(move |indices| collate(get_each(&dataset, indices)?)))
    }
}

fn loader<B>(options: Options, samples: usize, fetch: Fetch<B>) -> Result<DataLoader<B>> {
    if options.batch_size == 0 {
        return Err(Error::argument("DataLoader", "batch_size is 0, not 1 or more"));
    }
    if options.prefetch == Some(0) {
        return Err(Error::argument("DataLoader", "prefetch is 0, not 1 or more"));
    }
    Ok(DataLoader { fetch, samples, options })
}
