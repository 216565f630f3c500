//! A file of what was measured, a line an epoch.

use std::ops::ControlFlow;
use std::path::PathBuf;

use cupola_core::{Error, Result};

use super::{Callback, Moment};
use crate::io::write_whole;

/// A line: the epoch, a step within it, and numbers by name.
#[derive(Clone, Debug)]
struct Line {
    epoch: usize,
    /// The name and the number of the step.
    step: Option<(&'static str, u64)>,
    values: Vec<(String, f64)>,
}

/// Writes what was measured: a line an epoch, as JSON, or as CSV where the name ends in `.csv`, and at the end one with
/// the means of an epoch under way and the number of its `steps`. The file is whole at any time.
///
/// # Example
/// ```
/// use cupola::train::{Callbacks, MetricsFile};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("metrics.csv");
/// let model = cupola::nn::Linear::new(2, 1)?;
/// let mut callbacks = Callbacks::new().with(MetricsFile::new(&path));
/// callbacks.epoch(&[("loss", 0.5), ("accuracy", 0.75)], &model)?;
/// assert_eq!(std::fs::read_to_string(&path)?, "epoch,loss,accuracy\n1,0.5,0.75\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MetricsFile {
    path: PathBuf,
    every: Option<u64>,
    lines: Vec<Line>,
    under_way: UnderWay,
}

/// The epoch under way, as far as this process has seen it.
#[derive(Clone, Debug, Default)]
struct UnderWay {
    epoch: usize,
    steps: usize,
    /// The sum of each number by name, and in how many steps it came.
    sums: Vec<(String, f64, usize)>,
}

impl UnderWay {
    fn add(&mut self, at: &Moment<'_>) {
        if self.epoch != at.epoch {
            *self = UnderWay { epoch: at.epoch, ..UnderWay::default() };
        }
        self.steps += 1;
        for &(name, value) in at.metrics {
            match self.sums.iter_mut().find(|(known, ..)| known == name) {
                Some((_, sum, count)) => (*sum, *count) = (*sum + value, *count + 1),
                None => self.sums.push((name.to_owned(), value, 1)),
            }
        }
    }
}

impl MetricsFile {
    /// A file at `path`, which is written at the first line and takes the place of one that is there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), every: None, lines: Vec::new(), under_way: UnderWay::default() }
    }

    /// With a line every so many steps, too.
    ///
    /// # Errors
    /// Where it is 0.
    pub fn every(mut self, steps: u64) -> Result<Self> {
        if steps == 0 {
            return Err(Error::argument("MetricsFile", "every is 0 steps, not 1 or more"));
        }
        self.every = Some(steps);
        Ok(self)
    }

    /// Takes in an epoch that is over.
    pub(in crate::train) fn add_epoch(&mut self, epoch: usize, metrics: &[(&str, f64)]) {
        self.add(epoch, None, metrics);
    }

    /// Takes in an epoch under way, which has had so many steps.
    pub(in crate::train) fn add_partial(
        &mut self,
        epoch: usize,
        steps: usize,
        metrics: &[(&str, f64)],
    ) {
        self.add(epoch, Some(("steps", steps as u64)), metrics);
    }

    /// Drops what was said of an epoch when it was under way: more is known now.
    fn drop_partial(&mut self, epoch: usize) {
        self.lines.retain(|line| {
            line.epoch != epoch || line.step.is_none_or(|(name, _)| name != "steps")
        });
    }

    fn add(&mut self, epoch: usize, step: Option<(&'static str, u64)>, metrics: &[(&str, f64)]) {
        let values = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        self.lines.push(Line { epoch, step, values });
    }

    /// Writes the file.
    pub(in crate::train) fn write(&self) -> Result<()> {
        let is_csv = self.path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
        let text = if is_csv { self.csv() } else { self.json() };
        write_whole(&self.path, text)
    }

    fn json(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text += &format!("{{\"epoch\":{}", line.epoch);
            if let Some((name, step)) = line.step {
                text += &format!(",\"{name}\":{step}");
            }
            for (name, value) in &line.values {
                text += &format!(",{}:{}", serde_json::json!(name), serde_json::json!(value));
            }
            text += "}\n";
        }
        text
    }

    /// A column for each name, in the order in which they came, those of steps first; what a line lacks is empty.
    fn csv(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.lines.iter().flat_map(|line| &line.values) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let mut steps: Vec<&str> = Vec::new();
        for (name, _) in self.lines.iter().filter_map(|line| line.step) {
            if !steps.contains(&name) {
                steps.push(name);
            }
        }
        let heads = ["epoch"].into_iter().chain(steps.iter().copied()).chain(names.iter().copied());
        let mut text = heads.map(cell).collect::<Vec<_>>().join(",") + "\n";
        for line in &self.lines {
            let mut cells = vec![line.epoch.to_string()];
            for name in &steps {
                let found = line.step.filter(|(known, _)| known == name);
                cells.push(found.map_or_else(String::new, |(_, step)| step.to_string()));
            }
            for name in &names {
                let found = line.values.iter().find(|(known, _)| known == name);
                cells.push(found.map_or_else(String::new, |(_, value)| value.to_string()));
            }
            text += &(cells.join(",") + "\n");
        }
        text
    }
}

/// A name as a cell of CSV (RFC 4180).
fn cell(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}

impl Callback for MetricsFile {
    fn past(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.add_epoch(at.epoch, at.metrics);
        Ok(ControlFlow::Continue(()))
    }

    fn step(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.under_way.add(at);
        if self.every.is_some_and(|every| at.step.is_multiple_of(every)) {
            self.add(at.epoch, Some(("step", at.step)), at.metrics);
            self.write()?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn epoch(&mut self, at: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.under_way = UnderWay::default();
        self.drop_partial(at.epoch);
        self.add_epoch(at.epoch, at.metrics);
        self.write()?;
        Ok(ControlFlow::Continue(()))
    }

    fn end(&mut self) -> Result<()> {
        let UnderWay { epoch, steps, sums } = self.under_way.clone();
        if steps == 0 {
            return Ok(());
        }
        let means: Vec<(&str, f64)> =
            sums.iter().map(|(name, sum, count)| (name.as_str(), sum / *count as f64)).collect();
        self.drop_partial(epoch);
        self.add_partial(epoch, steps, &means);
        self.write()
    }
}
