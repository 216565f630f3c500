//! What every module can do, and what a layer adds.

use std::collections::{BTreeMap, HashSet};

use cupola_core::tree::{self, Path, Tree};
use cupola_core::{Array, Error, Result};

use super::cell::Param;
use super::parts::{Part, Parts};
use crate::io::safetensors;

/// Something made of parameters, buffers and other modules.
///
/// `#[derive(Module)]` makes a struct or an enum one; every method is given. What the methods
/// change they change through a shared reference, because parameters are shared cells. A tied
/// parameter counts once, under the first of its paths.
///
/// # Example
/// ```
/// use cupola::{Array, Result};
/// use cupola::nn::{self, Layer, Module};
///
/// #[derive(Module)]
/// struct Perceptron {
///     hidden: nn::Linear,
///     output: nn::Linear,
/// }
///
/// impl Layer for Perceptron {
///     fn forward(&self, x: &Array) -> Result<Array> {
///         self.output.forward(&nn::relu(&self.hidden.forward(x)?)?)
///     }
/// }
///
/// let model = Perceptron { hidden: nn::Linear::new(4, 8)?, output: nn::Linear::new(8, 2)? };
/// assert_eq!(model.num_parameters(), 4 * 8 + 8 + 8 * 2 + 2);
/// assert!(model.parameters().contains_key("hidden.weight"));
/// # Ok::<(), cupola::Error>(())
/// ```
pub trait Module: Tree + Parts {
    /// Every parameter, by path.
    fn parameters(&self) -> BTreeMap<String, Array> {
        let mut out = BTreeMap::new();
        each_param(self, &mut |path, param| {
            out.insert(path.to_owned(), param.get());
        });
        out
    }

    /// The parameters that are not frozen, by path.
    fn trainable_parameters(&self) -> BTreeMap<String, Array> {
        let mut out = BTreeMap::new();
        each_param(self, &mut |path, param| {
            if param.is_trainable() {
                out.insert(path.to_owned(), param.get());
            }
        });
        out
    }

    /// The buffers, by path.
    fn buffers(&self) -> BTreeMap<String, Array> {
        let mut out = BTreeMap::new();
        each_cell(self, &mut |path, cell| {
            if let Part::Buffer(buffer) = cell {
                out.insert(path.to_owned(), buffer.get());
            }
        });
        out
    }

    /// Every parameter and buffer, by path: what is saved.
    fn state(&self) -> BTreeMap<String, Array> {
        let mut out = self.parameters();
        out.append(&mut self.buffers());
        out
    }

    /// How many numbers the parameters hold, frozen ones too.
    fn num_parameters(&self) -> usize {
        self.parameters().values().map(Array::size).sum()
    }

    /// Puts `values` in the place of the parameters and buffers of these paths.
    ///
    /// # Errors
    /// Where a path is not in the module, a shape differs, or a dtype is of another kind; nothing
    /// has changed then. A dtype of the same kind is converted.
    fn update(&self, values: &BTreeMap<String, Array>) -> Result<()> {
        assign(self, values, false, &|detail| Error::argument("update", detail))
    }

    /// Keeps training from changing any parameter.
    fn freeze(&self) {
        self.freeze_where(|_| true);
    }

    /// Lets training change every parameter.
    fn unfreeze(&self) {
        self.unfreeze_where(|_| true);
    }

    /// Freezes the parameters whose path fulfils `predicate`.
    ///
    /// # Example
    /// ```
    /// use cupola::nn::{Linear, Module};
    /// let layer = Linear::new(3, 2)?;
    /// layer.freeze_where(|path| path.ends_with("bias"));
    /// assert_eq!(layer.trainable_parameters().len(), 1);
    /// # Ok::<(), cupola::Error>(())
    /// ```
    fn freeze_where(&self, predicate: impl Fn(&str) -> bool) {
        every_param(self, &mut |path, param| {
            if predicate(path) {
                param.freeze();
            }
        });
    }

    /// Unfreezes the parameters whose path fulfils `predicate`.
    fn unfreeze_where(&self, predicate: impl Fn(&str) -> bool) {
        every_param(self, &mut |path, param| {
            if predicate(path) {
                param.unfreeze();
            }
        });
    }

    /// Makes the module train, or not: dropout and batch normalisation differ.
    fn train(&self, training: bool) {
        self.parts(&mut Path::default(), &mut |_, part| {
            if let Part::Mode(mode) = part {
                mode.set(training);
            }
        });
    }

    /// Makes the module give the same result for the same input: `train(false)`.
    fn eval(&self) {
        self.train(false);
    }

    /// Whether no part of the module is in evaluation mode.
    fn is_training(&self) -> bool {
        let mut training = true;
        self.parts(&mut Path::default(), &mut |_, part| {
            if let Part::Mode(mode) = part {
                training &= mode.is_training();
            }
        });
        training
    }

    /// Writes parameters and buffers to a file; see [`safetensors::save`].
    ///
    /// # Errors
    /// Where a value cannot be computed or the file cannot be written. A file that was there is
    /// then as before.
    ///
    /// # Example
    /// ```
    /// use cupola::nn::{Linear, Module};
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("linear.safetensors");
    /// let (a, b) = (Linear::new(3, 2)?, Linear::new(3, 2)?);
    /// a.save_safetensors(&path)?;
    /// b.load_safetensors(&path, true)?;
    /// assert_eq!(a.weight.get().to_vec::<f32>()?, b.weight.get().to_vec::<f32>()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn save_safetensors(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        safetensors::save(path, &self.state(), &BTreeMap::new())
    }

    /// Reads parameters and buffers from a file. Where `strict` is false, the file may lack some
    /// of them and hold others.
    ///
    /// # Errors
    /// Where the file cannot be read, or names or shapes do not fit; nothing has changed then.
    fn load_safetensors(&self, path: impl AsRef<std::path::Path>, strict: bool) -> Result<()> {
        let path = path.as_ref();
        let (mut values, _) = safetensors::load(path)?;
        if !strict {
            let mut known = HashSet::new();
            self.parts(&mut Path::default(), &mut |name, _| {
                known.insert(name.to_owned());
            });
            values.retain(|name, _| known.contains(name));
        }
        assign(self, &values, strict, &|detail| Error::io(path, detail))
    }
}

impl<T: Tree + Parts + ?Sized> Module for T {}

/// A module that is a function of one array.
pub trait Layer: Tree + Parts + Send + Sync {
    /// What the layer makes of `x`.
    ///
    /// # Errors
    /// Where shape or dtype of `x` do not fit the layer.
    fn forward(&self, x: &Array) -> Result<Array>;
}

impl<T: Layer + ?Sized> Layer for Box<T> {
    fn forward(&self, x: &Array) -> Result<Array> {
        (**self).forward(x)
    }
}

/// Computes every leaf of `trees` at once: the state after a training step, so that no graph grows
/// from step to step.
///
/// # Errors
/// Where a computation fails.
///
/// # Example
/// ```
/// use cupola::{nn, optim};
/// let model = nn::Linear::new(3, 2)?;
/// let optimizer = optim::Adam::new(1e-3)?;
/// nn::eval_all(&[&model, &optimizer])?;
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn eval_all(trees: &[&dyn Tree]) -> Result<()> {
    let leaves: Vec<Array> =
        trees.iter().flat_map(|t| tree::leaves(*t)).map(|(_, array)| array).collect();
    cupola_core::eval(&leaves)
}

/// Every parameter and buffer once, with the first of its paths.
pub(super) fn each_cell(parts: &(impl Parts + ?Sized), f: &mut dyn FnMut(&str, Part<'_>)) {
    let mut seen = HashSet::new();
    parts.parts(&mut Path::default(), &mut |path, part| {
        let identity = match part {
            Part::Param(param) => param.identity(),
            Part::Buffer(buffer) => buffer.identity(),
            Part::Mode(_) => return,
        };
        if seen.insert(identity) {
            f(path, part);
        }
    });
}

/// Every parameter once, with the first of its paths.
pub(crate) fn each_param(parts: &(impl Parts + ?Sized), f: &mut dyn FnMut(&str, &Param)) {
    each_cell(parts, &mut |path, part| {
        if let Part::Param(param) = part {
            f(path, param);
        }
    });
}

/// Every parameter, a tied one at each of its places.
fn every_param(parts: &(impl Parts + ?Sized), f: &mut dyn FnMut(&str, &Param)) {
    parts.parts(&mut Path::default(), &mut |path, part| {
        if let Part::Param(param) = part {
            f(path, param);
        }
    });
}

/// Puts `values` in place, all or none; where `complete`, every cell needs one. A tied cell takes
/// the value of any of its paths.
fn assign(
    parts: &(impl Parts + ?Sized),
    values: &BTreeMap<String, Array>,
    complete: bool,
    error: &dyn Fn(String) -> Error,
) -> Result<()> {
    let mut unused: HashSet<&str> = values.keys().map(String::as_str).collect();
    let mut set: Vec<Box<dyn FnOnce()>> = Vec::new();
    let mut done = HashSet::new();
    let mut lacking: Vec<(usize, String)> = Vec::new();
    let mut problem = None;
    parts.parts(&mut Path::default(), &mut |path, part| {
        let (identity, former) = match part {
            Part::Param(param) => (param.identity(), param.get()),
            Part::Buffer(buffer) => (buffer.identity(), buffer.get()),
            Part::Mode(_) => return,
        };
        let Some(value) = values.get(path) else {
            lacking.push((identity, path.to_owned()));
            return;
        };
        unused.remove(path);
        let value = match fitting(path, value, &former) {
            Ok(value) => value,
            Err(detail) => {
                problem.get_or_insert(detail);
                return;
            }
        };
        if done.insert(identity) {
            set.push(match part {
                Part::Param(param) => {
                    let param = param.clone();
                    Box::new(move || param.set(value))
                }
                Part::Buffer(buffer) => {
                    let buffer = buffer.clone();
                    Box::new(move || buffer.set(value))
                }
                Part::Mode(_) => return,
            });
        }
    });
    if let Some(detail) = problem {
        return Err(error(detail));
    }
    let mut unexpected: Vec<&str> = unused.into_iter().collect();
    unexpected.sort_unstable();
    let missing: Vec<&str> = lacking
        .iter()
        .filter(|(identity, _)| complete && done.insert(*identity))
        .map(|(_, path)| path.as_str())
        .collect();
    let mut details = Vec::new();
    if !missing.is_empty() {
        details.push(format!("missing {}", listed(&missing)));
    }
    if !unexpected.is_empty() {
        details.push(format!("unexpected {}", listed(&unexpected)));
    }
    if !details.is_empty() {
        return Err(error(details.join("; ")));
    }
    set.into_iter().for_each(|set| set());
    Ok(())
}

/// `value` in the dtype of what it takes the place of.
fn fitting(path: &str, value: &Array, former: &Array) -> Result<Array, String> {
    if value.shape() != former.shape() {
        return Err(format!(
            "{path} has shape {}, the module expects {}",
            value.shape(),
            former.shape()
        ));
    }
    if value.dtype().kind() != former.dtype().kind() {
        return Err(format!("{path} is {}, the module expects {}", value.aval(), former.aval()));
    }
    if value.dtype() == former.dtype() {
        return Ok(value.clone());
    }
    cupola_core::ops::astype(value, former.dtype()).map_err(|error| error.to_string())
}

/// Names for an error: all of a few, the first of many.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    match names.len() {
        0..=SHOWN => names.join(", "),
        more => format!("{} and {} more", names[..SHOWN].join(", "), more - SHOWN),
    }
}
