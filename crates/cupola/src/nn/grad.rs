//! Derivatives of a module by its parameters.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;

use cupola_core::tree::{Leaf, Path, Tree};
use cupola_core::{Array, Error, Result, transform};

use super::cell::{Buffer, Param};
use super::module::each_cell;
use super::parts::{Part, Parts};

/// One gradient for every trainable parameter, by the parameter's path.
#[derive(Clone, Debug, Default)]
pub struct Gradients(BTreeMap<String, Array>);

impl Gradients {
    /// The same gradients, changed by `f`, which sees path and gradient.
    ///
    /// # Errors
    /// Where `f` fails.
    pub fn map(&self, mut f: impl FnMut(&str, &Array) -> Result<Array>) -> Result<Gradients> {
        self.0.iter().map(|(path, array)| Ok((path.clone(), f(path, array)?))).collect()
    }
}

impl Deref for Gradients {
    type Target = BTreeMap<String, Array>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<BTreeMap<String, Array>> for Gradients {
    fn from(map: BTreeMap<String, Array>) -> Self {
        Gradients(map)
    }
}

impl FromIterator<(String, Array)> for Gradients {
    fn from_iter<I: IntoIterator<Item = (String, Array)>>(iter: I) -> Self {
        Gradients(iter.into_iter().collect())
    }
}

impl Tree for Gradients {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        self.0.visit(path, f);
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        self.0.visit_mut(path, f);
    }
}

/// What `f` gives for `model`: a loss, which is one real number, and anything else; and the
/// gradient of the loss by every trainable parameter. A tied parameter has one gradient, the sum
/// over its places.
///
/// While `f` runs, the parameters hold arrays that are traced; another thread must not run the
/// model then. They hold their values again afterwards, also where `f` fails or panics, and then
/// the buffers do, too.
///
/// # Errors
/// Where `f` fails, its loss is not one real number, or an op on the way has no derivative.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{self, Layer}};
/// let model = nn::Linear::new(2, 1)?;
/// let x = Array::from_slice(&[1.0f32, 2.0], [1, 2])?;
/// let ((loss, ()), grads) = nn::value_and_grad(&model, |model| {
///     Ok((cupola::ops::sum(&model.forward(&x)?, (), false)?, ()))
/// })?;
/// assert_eq!(grads["weight"].to_vec::<f32>()?, [1.0, 2.0]);
/// assert_eq!(loss.rank(), 0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn value_and_grad<M: Parts + ?Sized, A>(
    model: &M,
    f: impl FnOnce(&M) -> Result<(Array, A)>,
) -> Result<((Array, A), Gradients)> {
    let held = Held::of(model);
    let primals: Vec<Array> = held.params.iter().map(|(_, _, value)| value.clone()).collect();
    let argnums: Vec<usize> = (0..primals.len()).collect();
    let f = Cell::new(Some(f));
    let extra = RefCell::new(None);
    let traced = |tracers: &[Array]| {
        let Some(f) = f.take() else {
            return Err(Error::argument("value_and_grad", "the function runs once"));
        };
        for ((_, param, _), tracer) in held.params.iter().zip(tracers) {
            param.set(tracer.clone());
        }
        let result = f(model);
        held.restore_params();
        let (loss, aux) = result?;
        *extra.borrow_mut() = Some(aux);
        Ok(vec![loss])
    };
    let (values, gradients) = transform::value_and_grad(traced, &argnums)(&primals)?;
    let (Some(loss), Some(aux)) = (values.into_iter().next(), extra.take()) else {
        return Err(Error::argument("value_and_grad", "the function returned nothing"));
    };
    let paths = held.done();
    Ok(((loss, aux), paths.into_iter().zip(gradients).collect()))
}

/// What the cells held before; put back on drop.
struct Held {
    params: Vec<(String, Param, Array)>,
    /// Emptied where all went well: what the function did to buffers then stays.
    buffers: Vec<(Buffer, Array)>,
}

impl Held {
    fn of(parts: &(impl Parts + ?Sized)) -> Self {
        let mut held = Held { params: Vec::new(), buffers: Vec::new() };
        each_cell(parts, &mut |path, part| match part {
            Part::Param(param) if param.is_trainable() => {
                held.params.push((path.to_owned(), param.clone(), param.get()));
            }
            Part::Buffer(buffer) => held.buffers.push((buffer.clone(), buffer.get())),
            Part::Param(_) | Part::Mode(_) => {}
        });
        held
    }

    fn restore_params(&self) {
        for (_, param, value) in &self.params {
            param.set(value.clone());
        }
    }

    /// Keeps the buffers as they are now; gives the parameters' paths.
    fn done(mut self) -> Vec<String> {
        self.buffers.clear();
        self.params.iter().map(|(path, _, _)| path.clone()).collect()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.restore_params();
        for (buffer, value) in &self.buffers {
            buffer.set(value.clone());
        }
    }
}
