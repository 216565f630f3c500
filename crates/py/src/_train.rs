//! `cupola.core._train`: what `cupola.train` is made of.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use cupola::train::{
    self, Callback, EarlyStopping, Goal, KeepBest, MetricsFile, Moment, Picture, Report,
    TensorBoard,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::PyArray;
use crate::error::{carried, raise};
use crate::generated::docs;
use crate::operand::Arr;

/// A callback of Rust.
#[pyclass(name = "_Watcher", module = "cupola.train")]
pub struct Watcher(Kind);

enum Kind {
    EarlyStopping(EarlyStopping),
    KeepBest(KeepBest),
    MetricsFile(MetricsFile),
    TensorBoard(TensorBoard),
    Report(Report),
}

impl Watcher {
    fn told(
        &mut self,
        place: (usize, u64),
        metrics: &[(String, f64)],
        weights: &Bound<'_, PyAny>,
        tell: impl FnOnce(&mut dyn Callback, &Moment<'_>) -> cupola::Result<ControlFlow<()>>,
    ) -> PyResult<bool> {
        let metrics: Vec<(&str, f64)> =
            metrics.iter().map(|(name, v)| (name.as_str(), *v)).collect();
        let weights = || -> cupola::Result<BTreeMap<String, cupola::Array>> {
            let read = || -> PyResult<_> {
                let found = weights.call0()?;
                let found = found.cast::<PyDict>()?;
                found
                    .iter()
                    .map(|(name, x)| Ok((name.extract()?, x.extract::<Arr>()?.into_array())))
                    .collect()
            };
            read().map_err(carried)
        };
        let at = Moment { epoch: place.0, step: place.1, metrics: &metrics, weights: &weights };
        let callback: &mut dyn Callback = match &mut self.0 {
            Kind::EarlyStopping(own) => own,
            Kind::KeepBest(own) => own,
            Kind::MetricsFile(own) => own,
            Kind::TensorBoard(own) => own,
            Kind::Report(own) => own,
        };
        tell(callback, &at).map(|flow| flow.is_break()).map_err(raise)
    }
}

#[pymethods]
impl Watcher {
    /// The best value so far, and how many epochs ago it was.
    #[getter]
    fn best(&self) -> Option<(f64, usize)> {
        let best = match &self.0 {
            Kind::EarlyStopping(own) => own.best(),
            Kind::KeepBest(own) => own.best(),
            Kind::MetricsFile(_) | Kind::TensorBoard(_) | Kind::Report(_) => return None,
        };
        best.value().map(|value| (value, best.since()))
    }

    /// The file that a writer for TensorBoard writes.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        match &self.0 {
            Kind::TensorBoard(own) => Some(own.path().to_owned()),
            Kind::EarlyStopping(_) | Kind::KeepBest(_) | Kind::MetricsFile(_) | Kind::Report(_) => {
                None
            }
        }
    }

    /// Adds how often each class was taken for each to a report.
    fn confusion(
        &self,
        classes: Vec<String>,
        labels: Vec<usize>,
        predicted: Vec<usize>,
    ) -> PyResult<()> {
        let Kind::Report(own) = &self.0 else { return Ok(()) };
        own.confusion(&classes, &labels, &predicted).map_err(raise)
    }

    /// Adds an epoch under way to a report.
    fn unfinished(&self, epoch: usize, steps: usize, metrics: Vec<(String, f64)>) {
        if let Kind::Report(own) = &self.0 {
            let metrics: Vec<(&str, f64)> =
                metrics.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            own.unfinished(epoch, steps, &metrics);
        }
    }

    /// Adds images, all of one shape, whose bytes follow each other, to a report.
    fn pictures(
        &self,
        title: &str,
        about: &str,
        shape: [usize; 3],
        pixels: &[u8],
        captions: Vec<String>,
    ) -> PyResult<()> {
        let Kind::Report(own) = &self.0 else { return Ok(()) };
        let area = shape.iter().product::<usize>();
        let each = captions.iter().enumerate().map(|(index, caption)| Picture {
            pixels: pixels.get(index * area..(index + 1) * area).unwrap_or_default(),
            shape,
            caption: caption.lines().map(str::to_owned).collect(),
        });
        own.pictures(title, about, &each.collect::<Vec<_>>()).map_err(raise)
    }

    /// An epoch was over before the training goes on.
    fn past(
        &mut self,
        place: (usize, u64),
        metrics: Vec<(String, f64)>,
        weights: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.told(place, &metrics, weights, |own, at| own.past(at))
    }

    /// A training step was made; gives whether the training is to end.
    fn step(
        &mut self,
        place: (usize, u64),
        metrics: Vec<(String, f64)>,
        weights: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.told(place, &metrics, weights, |own, at| own.step(at))
    }

    /// An epoch is over; gives whether the training is to end.
    fn epoch(
        &mut self,
        place: (usize, u64),
        metrics: Vec<(String, f64)>,
        weights: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.told(place, &metrics, weights, |own, at| own.epoch(at))
    }

    /// The training is over.
    fn end(&mut self) -> PyResult<()> {
        match &mut self.0 {
            Kind::EarlyStopping(own) => own.end(),
            Kind::KeepBest(own) => own.end(),
            Kind::MetricsFile(own) => own.end(),
            Kind::TensorBoard(own) => own.end(),
            Kind::Report(own) => own.end(),
        }
        .map_err(raise)
    }
}

#[doc = docs!(_train::early_stopping)]
#[pyfunction]
pub fn early_stopping(metric: String, patience: usize, goal: &str, by: f64) -> PyResult<Watcher> {
    let goal: Goal = goal.parse().map_err(raise)?;
    let own = EarlyStopping::new(metric, patience).and_then(|own| own.goal(goal, by));
    own.map(|own| Watcher(Kind::EarlyStopping(own))).map_err(raise)
}

#[doc = docs!(_train::keep_best)]
#[pyfunction]
pub fn keep_best(metric: String, path: PathBuf, goal: &str) -> PyResult<Watcher> {
    let goal: Goal = goal.parse().map_err(raise)?;
    Ok(Watcher(Kind::KeepBest(KeepBest::new(metric, path).goal(goal))))
}

#[doc = docs!(_train::metrics_file)]
#[pyfunction]
pub fn metrics_file(path: PathBuf, every: Option<u64>) -> PyResult<Watcher> {
    let own = MetricsFile::new(path);
    let own = every.map_or(Ok(own.clone()), |steps| own.clone().every(steps));
    own.map(|own| Watcher(Kind::MetricsFile(own))).map_err(raise)
}

#[doc = docs!(_train::tensor_board)]
#[pyfunction]
pub fn tensor_board(folder: PathBuf, every: u64) -> PyResult<Watcher> {
    let own = TensorBoard::create(folder).and_then(|own| own.every(every));
    own.map(|own| Watcher(Kind::TensorBoard(own))).map_err(raise)
}

#[doc = docs!(_train::report)]
#[pyfunction]
pub fn report(path: PathBuf, title: String, rows: Vec<(String, String)>) -> Watcher {
    let own = Report::new(path, title);
    Watcher(Kind::Report(rows.into_iter().fold(own, |own, (name, value)| own.row(name, value))))
}

/// Means and sums over the parts of a batch.
#[pyclass(name = "_Accumulator", module = "cupola.train")]
pub struct Accumulator(train::Accumulator);

#[pymethods]
impl Accumulator {
    #[new]
    fn new() -> Self {
        Self(train::Accumulator::new())
    }

    /// Takes in a part that is so large a share of the batch, and computes it.
    fn add(&mut self, py: Python<'_>, share: f64, means: Vec<Arr>, sums: Vec<Arr>) -> PyResult<()> {
        let [means, sums] =
            [means, sums].map(|all| all.into_iter().map(Arr::into_array).collect::<Vec<_>>());
        py.detach(|| self.0.add(share, means, sums)).map_err(raise)
    }

    /// The means, and the sums.
    fn finish(&mut self) -> PyResult<(Vec<PyArray>, Vec<PyArray>)> {
        let (means, sums) = std::mem::take(&mut self.0).finish().map_err(raise)?;
        let given = |all: Vec<cupola::Array>| all.into_iter().map(PyArray::new).collect();
        Ok((given(means), given(sums)))
    }
}
