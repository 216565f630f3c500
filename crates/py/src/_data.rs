//! `cupola.core._data`: the loader and the data sets of Rust, for `cupola.data`.

use std::path::PathBuf;
use std::sync::Arc;

use cupola::data::{self, Dataset as _, Error};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::array::PyArray;
use crate::error::{carried, raise, wrong_value};
use crate::generated::docs;
use crate::operand::{Arr, count, give};

/// The exception for an error of a data set: that of a Python data set as it was.
fn raised(error: Error) -> PyErr {
    match error {
        Error::Sample { cause, .. } => raised(*cause),
        Error::Batch { cause, .. } => raised(*cause),
        Error::Array(cause) => raise(cause),
        Error::Argument { .. } => wrong_value(error.to_string()),
        other => pyo3::exceptions::PyRuntimeError::new_err(other.to_string()),
    }
}

/// Images with labels.
#[doc = docs!(_data::ImageDataset)]
#[pyclass(frozen, name = "ImageDataset", module = "cupola.data")]
pub struct ImageDataset(data::ImageDataset);

fn sample(py: Python<'_>, image: cupola::Array, label: i32) -> PyResult<Py<PyAny>> {
    Ok((PyArray::new(image), label).into_pyobject(py)?.into_any().unbind())
}

#[pymethods]
impl ImageDataset {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__(&self, py: Python<'_>, index: isize) -> PyResult<Py<PyAny>> {
        let count = self.0.len();
        let at = if index < 0 { index + count as isize } else { index };
        if !(0..count as isize).contains(&at) {
            let text = format!("index {index} is out of range for {count} samples");
            return Err(pyo3::exceptions::PyIndexError::new_err(text));
        }
        let (image, label) = self.0.get(at as usize).map_err(raised)?;
        sample(py, image, label)
    }

    /// The name of the data set.
    #[getter]
    fn name(&self) -> String {
        self.0.name().to_owned()
    }

    /// The names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.0.classes().to_vec()
    }

    /// What brings these images to mean 0 and deviation 1: the mean of each channel, and the deviation.
    fn normalization(&self) -> (Vec<f32>, Vec<f32>) {
        let found = self.0.normalization();
        (found.mean().to_vec(), found.std().to_vec())
    }

    /// These images at another scale: (pixel / 255 - mean) / std, channel by channel.
    fn normalized(&self, mean: Vec<f32>, std: Vec<f32>) -> PyResult<ImageDataset> {
        let scale = data::Normalization::new(mean, std).map_err(raised)?;
        self.0.clone().normalized(scale).map(ImageDataset).map_err(raised)
    }

    /// All images and all labels, as two arrays.
    fn arrays(&self, py: Python<'_>) -> PyResult<(PyArray, PyArray)> {
        let all: Vec<usize> = (0..self.0.len()).collect();
        let (images, labels) = py.detach(|| self.0.get_batch(&all)).map_err(raised)?;
        Ok((PyArray::new(images), PyArray::new(labels)))
    }
}

type Pair = (ImageDataset, ImageDataset);

fn pair(
    py: Python<'_>,
    read: impl FnOnce() -> data::Result<(data::ImageDataset, data::ImageDataset)> + Send,
) -> PyResult<Pair> {
    let (train, test) = py.detach(read).map_err(raised)?;
    Ok((ImageDataset(train), ImageDataset(test)))
}

/// MNIST from the files in a folder: the images to train on and those to test on.
#[doc = docs!(_data::mnist)]
#[pyfunction]
pub fn mnist(py: Python<'_>, folder: PathBuf) -> PyResult<Pair> {
    pair(py, || data::mnist(folder))
}

/// Fashion-MNIST from the files in a folder.
#[doc = docs!(_data::fashion_mnist)]
#[pyfunction]
pub fn fashion_mnist(py: Python<'_>, folder: PathBuf) -> PyResult<Pair> {
    pair(py, || data::fashion_mnist(folder))
}

/// CIFAR-10 from the files in a folder.
#[doc = docs!(_data::cifar10)]
#[pyfunction]
pub fn cifar10(py: Python<'_>, folder: PathBuf) -> PyResult<Pair> {
    pair(py, || data::cifar10(folder))
}

/// CIFAR-100 from the files in a folder.
#[doc = docs!(_data::cifar100)]
#[pyfunction]
pub fn cifar100(py: Python<'_>, folder: PathBuf) -> PyResult<Pair> {
    pair(py, || data::cifar100(folder))
}

/// Drawn digits, which need no files: so many to train on, so many to test on.
#[doc = docs!(_data::digits)]
#[pyfunction]
#[pyo3(signature = (seed = 0, train = 6000, test = 1000))]
pub fn digits(py: Python<'_>, seed: u64, train: isize, test: isize) -> PyResult<Pair> {
    let (train, test) = (count(train, "digits: train")?, count(test, "digits: test")?);
    pair(py, || Ok(data::digits_sized(seed, train, test)))
}

#[doc = docs!(_data::random_flip)]
#[pyfunction]
#[pyo3(signature = (images, key = None))]
pub fn random_flip(images: Arr, key: Option<Arr>) -> PyResult<PyArray> {
    give(data::random_flip(&images, key.as_deref()))
}

#[doc = docs!(_data::random_crop)]
#[pyfunction]
#[pyo3(signature = (images, padding, key = None))]
pub fn random_crop(images: Arr, padding: isize, key: Option<Arr>) -> PyResult<PyArray> {
    let padding = count(padding, "random_crop: padding")?;
    give(data::random_crop(&images, padding, key.as_deref()))
}

#[doc = docs!(_data::normalize)]
#[pyfunction]
pub fn normalize(images: Arr, mean: Vec<f32>, std: Vec<f32>) -> PyResult<PyArray> {
    let scale = data::Normalization::new(mean, std).map_err(raised)?;
    give(scale.apply(&images))
}

/// What a loader holds of Python's.
struct Held {
    /// Anything with `__len__` and `__getitem__`.
    dataset: Py<PyAny>,
    /// Makes a batch of a list of samples.
    collate: Py<PyAny>,
}

/// A data set of Python's.
struct Foreign {
    held: Arc<Held>,
    length: usize,
}

impl data::Dataset for Foreign {
    type Sample = Py<PyAny>;

    fn len(&self) -> usize {
        self.length
    }

    fn get(&self, index: usize) -> data::Result<Py<PyAny>> {
        Python::attach(|py| Ok(self.held.dataset.bind(py).get_item(index)?.unbind()))
            .map_err(|error: PyErr| Error::from(carried(error)))
    }
}

/// Batches of a data set.
#[pyclass(frozen, name = "_Loader", module = "cupola.data")]
pub struct Loader {
    loader: data::DataLoader<Py<PyAny>>,
    held: Arc<Held>,
}

#[pymethods]
impl Loader {
    #[new]
    #[pyo3(signature = (dataset, collate, batch_size, seed, drop_last, workers, prefetch))]
    fn new(
        dataset: &Bound<'_, PyAny>,
        collate: Py<PyAny>,
        batch_size: isize,
        seed: Option<u64>,
        drop_last: bool,
        workers: isize,
        prefetch: Option<isize>,
    ) -> PyResult<Self> {
        let held = Arc::new(Held { dataset: dataset.clone().unbind(), collate });
        let foreign = Foreign { held: held.clone(), length: dataset.len()? };
        let mut builder = data::DataLoader::builder(foreign)
            .batch_size(count(batch_size, "DataLoader: batch_size")?)
            .drop_last(drop_last)
            .workers(count(workers, "DataLoader: workers")?);
        if let Some(seed) = seed {
            builder = builder.shuffle(seed);
        }
        if let Some(prefetch) = prefetch {
            builder = builder.prefetch(count(prefetch, "DataLoader: prefetch")?);
        }
        let own = held.clone();
        let collate = move |samples: Vec<Py<PyAny>>| {
            Python::attach(|py| {
                let samples = PyList::new(py, samples)?;
                Ok(own.collate.bind(py).call1(PyTuple::new(py, [samples])?)?.unbind())
            })
            .map_err(|error: PyErr| Error::from(carried(error)))
        };
        let loader = builder.collate(collate).build().map_err(raised)?;
        Ok(Loader { loader, held })
    }

    // Nothing is cleared: the data set and the function on the way of a cycle are.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // This, the data set and the function.
        if Arc::strong_count(&self.held) == 3 {
            visit.call(&self.held.dataset)?;
            visit.call(&self.held.collate)?;
        }
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.loader.len()
    }

    /// The batches of an epoch, from number `first` on.
    fn epoch(slf: &Bound<'_, Self>, epoch: u64, first: usize) -> Epoch {
        let loader = &slf.get().loader;
        let epoch = Some(slf.py().detach(|| loader.epoch_from(epoch, first)));
        Epoch { epoch, loader: slf.clone().unbind() }
    }
}

/// The batches of one epoch.
#[pyclass(name = "_Epoch", module = "cupola.data")]
pub struct Epoch {
    epoch: Option<data::Epoch<Py<PyAny>>>,
    /// What the epoch reads from.
    loader: Py<Loader>,
}

#[pymethods]
impl Epoch {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.loader)
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Some(epoch) = &mut self.epoch else { return Ok(None) };
        // The workers need the interpreter while this waits for them.
        py.detach(|| epoch.next()).transpose().map_err(raised)
    }
}

/// Workers that still make batches need the interpreter to end.
impl Drop for Epoch {
    fn drop(&mut self) {
        if let Some(epoch) = self.epoch.take() {
            Python::attach(|py| py.detach(|| drop(epoch)));
        }
    }
}
