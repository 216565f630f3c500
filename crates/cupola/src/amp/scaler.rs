//! Gradients kept above the least number of `float16`.

use cupola_core::tree::{Leaf, Path, Tree};
use cupola_core::{Array, DType, Error, Result, ops, tree};

use crate::nn::{Gradients, Parts, each_param};
use crate::optim::Optimizer;

/// Multiplies the loss, and divides the gradients by the same, so that small gradients do not vanish
/// in `float16` on their way. A step whose gradients are not all finite changes nothing and halves
/// the scale; after `interval` steps that were finite it doubles.
///
/// Whether a step is skipped is decided where the gradients are: `where` picks the new or the former
/// parameters, and nothing is read back. The state is two arrays, a [`Tree`] that is saved and
/// compiled as an optimiser's is.
///
/// # Example
/// ```
/// use cupola::{Array, amp::GradScaler, nn::{self, Parts}, optim::Sgd};
/// let model = nn::Linear::new(1, 1)?;
/// let former = model.weight.get().to_vec::<f32>()?;
/// let mut scaler = GradScaler::new().init_scale(8.0)?;
/// let bad = [("weight".to_owned(), Array::from_slice(&[f32::INFINITY], [1, 1])?)];
/// scaler.step(&mut Sgd::new(0.1)?, &model, &bad.into_iter().collect())?;
/// scaler.update()?;
/// assert_eq!(model.weight.get().to_vec::<f32>()?, former);
/// assert_eq!(scaler.get_scale().item::<f32>()?, 4.0);
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GradScaler {
    scale: Array,
    growth_tracker: Array,
    growth: f64,
    backoff: f64,
    interval: i32,
    /// Whether the gradients of this step are finite, once they were looked at.
    finite: Option<Array>,
}

impl Default for GradScaler {
    fn default() -> Self {
        Self::new()
    }
}

impl GradScaler {
    /// A scale of 2¹⁶ that doubles after 2000 finite steps and halves after one that is not.
    pub fn new() -> Self {
        GradScaler {
            scale: number(65536.0f32),
            growth_tracker: number(0i32),
            growth: 2.0,
            backoff: 0.5,
            interval: 2000,
            finite: None,
        }
    }

    /// With this scale at first.
    ///
    /// # Errors
    /// Where it is not finite and at least 2⁻¹²⁶, of which the inverse is finite.
    pub fn init_scale(mut self, scale: f32) -> Result<Self> {
        self.scale = number(usable(scale)?);
        Ok(self)
    }

    /// With this factor after `interval` finite steps.
    ///
    /// # Errors
    /// Where it is not finite and at least 1.
    pub fn growth(mut self, factor: f64) -> Result<Self> {
        // The device multiplies in `float32`, here and below.
        if !((factor as f32).is_finite() && factor >= 1.0) {
            return Err(wrong(format!("the growth factor {factor} is not finite and at least 1")));
        }
        self.growth = factor;
        Ok(self)
    }

    /// With this factor after a step that was not finite.
    ///
    /// # Errors
    /// Where it is not above 0 and below 1.
    pub fn backoff(mut self, factor: f64) -> Result<Self> {
        if !(factor > 0.0 && (factor as f32) < 1.0) {
            return Err(wrong(format!("the backoff factor {factor} is not in (0, 1)")));
        }
        self.backoff = factor;
        Ok(self)
    }

    /// With so many finite steps between growths.
    ///
    /// # Errors
    /// Where it is 0, or more than an `int32` counts.
    pub fn interval(mut self, steps: usize) -> Result<Self> {
        self.interval = i32::try_from(steps)
            .ok()
            .filter(|&steps| steps > 0)
            .ok_or_else(|| wrong(format!("the growth interval {steps} is not in 1..2³¹")))?;
        Ok(self)
    }

    /// What the loss is multiplied by now, a `float32` without axes.
    pub fn get_scale(&self) -> Array {
        self.scale.clone()
    }

    /// The loss times the scale, in `float32`.
    ///
    /// # Errors
    /// Where `loss` is not a float.
    pub fn scale(&self, loss: &Array) -> Result<Array> {
        if !loss.dtype().is_float() {
            return Err(wrong(format!("a loss is a float, not {}", loss.aval())));
        }
        ops::multiply(&ops::astype(loss, loss.dtype().accumulator())?, &self.scale)
    }

    /// The gradients over the scale, in the dtype that theirs accumulates in: what to clip by. Notes
    /// whether they are finite.
    ///
    /// # Errors
    /// Where this step's gradients were unscaled already.
    pub fn unscale(&mut self, gradients: &Gradients) -> Result<Gradients> {
        if self.finite.is_some() {
            return Err(wrong("unscale was called already since the last update".to_owned()));
        }
        let inverse = ops::divide(1.0, &self.scale)?;
        let unscaled = gradients.map(|_, gradient| {
            ops::multiply(&ops::astype(gradient, gradient.dtype().accumulator())?, &inverse)
        })?;
        let mut finite = ops::ones((), DType::Bool)?;
        for gradient in unscaled.values() {
            let own = ops::all(&ops::isfinite(gradient)?, (), false)?;
            finite = ops::logical_and(&finite, &own)?;
        }
        self.finite = Some(finite);
        Ok(unscaled)
    }

    /// Updates the parameters where the gradients are finite, and leaves parameters and the
    /// optimiser's state as they are where not. Takes gradients of a scaled loss, or what
    /// [`GradScaler::unscale`] made of them. Moments that a skipped first step would have begun begin
    /// with 0.
    ///
    /// # Errors
    /// As [`Optimizer::update`]; nothing has changed then.
    pub fn step(
        &mut self,
        optimizer: &mut dyn Optimizer,
        model: &dyn Parts,
        gradients: &Gradients,
    ) -> Result<()> {
        let unscaled = match self.finite {
            Some(_) => gradients.clone(),
            None => self.unscale(gradients)?,
        };
        let Some(finite) = self.finite.clone() else {
            return Ok(());
        };
        let mut params = Vec::new();
        each_param(model, &mut |path, param| {
            if unscaled.contains_key(path) {
                params.push((param.clone(), param.get()));
            }
        });
        let former = optimizer.leaves();
        optimizer.update(model, &unscaled)?;
        for (param, former) in params {
            param.set(ops::update(&ops::where_(&finite, &param.get(), &former)?, &former)?);
        }
        let mut failed = None;
        optimizer.visit_mut(&mut Path::default(), &mut |leaf, array| {
            // Moments start from zero.
            let former = former.get(leaf.path).cloned().map_or_else(|| ops::zeros_like(array), Ok);
            let chosen = former
                .and_then(|former| ops::update(&ops::where_(&finite, &*array, &former)?, &former));
            match chosen {
                Ok(chosen) => *array = chosen,
                Err(error) => failed = Some(error),
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Ends the step: the scale backs off where gradients were not finite, and grows after enough
    /// steps where they were.
    ///
    /// # Errors
    /// Where no gradients were looked at since the last update.
    pub fn update(&mut self) -> Result<()> {
        let Some(finite) = self.finite.take() else {
            return Err(wrong("update was called without a step or an unscale before it".into()));
        };
        let count = ops::add(&self.growth_tracker, 1)?;
        let is_due = ops::greater_equal(&count, self.interval)?;
        let grown = ops::multiply(&self.scale, self.growth)?;
        let grows = ops::logical_and(&is_due, &ops::isfinite(&grown)?)?;
        let kept = ops::where_(&grows, &grown, &self.scale)?;
        // Never so small that its inverse is infinite.
        let halved = ops::multiply(&self.scale, self.backoff)?;
        let halved = ops::maximum(&halved, f32::MIN_POSITIVE)?;
        let counts = ops::logical_and(&finite, &ops::logical_not(&is_due)?)?;
        self.scale = ops::update(&ops::where_(&finite, &kept, &halved)?, &self.scale)?;
        let tracker = ops::where_(&counts, &count, 0)?;
        self.growth_tracker = ops::update(&tracker, &self.growth_tracker)?;
        Ok(())
    }

    /// Scale and count by name: what a checkpoint holds.
    pub fn leaves(&self) -> std::collections::BTreeMap<String, Array> {
        tree::leaves(self).into_iter().collect()
    }

    /// Puts what [`GradScaler::leaves`] gave in place.
    ///
    /// # Errors
    /// Where one is missing, of another shape or dtype, or out of its range; nothing has changed then.
    pub fn load(&mut self, leaves: &std::collections::BTreeMap<String, Array>) -> Result<()> {
        let take = |name: &str, like: &Array| match leaves.get(name) {
            Some(array) if array.aval() == like.aval() => Ok(array.clone()),
            Some(array) => Err(wrong(format!("{name} is {}, not {}", array.aval(), like.aval()))),
            None => Err(wrong(format!("{name} is missing"))),
        };
        let tracker = take("growth_tracker", &self.growth_tracker)?;
        let scale = take("scale", &self.scale)?;
        let count: i32 = tracker.item()?;
        if !(0..i32::MAX).contains(&count) {
            return Err(wrong(format!("growth_tracker is {count}, not in 0..2³¹ - 1")));
        }
        usable(scale.item()?)?;
        self.scale = scale;
        (self.growth_tracker, self.finite) = (tracker, None);
        Ok(())
    }
}

impl Tree for GradScaler {
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &Array)) {
        path.with("growth_tracker", |path| self.growth_tracker.visit(path, f));
        path.with("scale", |path| self.scale.visit(path, f));
    }

    fn visit_mut(&mut self, path: &mut Path, f: &mut dyn FnMut(Leaf<'_>, &mut Array)) {
        path.with("growth_tracker", |path| self.growth_tracker.visit_mut(path, f));
        path.with("scale", |path| self.scale.visit_mut(path, f));
    }

    fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
        f(self.growth.to_bits());
        f(self.backoff.to_bits());
        f(self.interval as u64);
    }
}

/// An array, not a constant: a constant would be part of a compiled step.
fn number<T: cupola_core::Element>(value: T) -> Array {
    Array::from_slice(&[value], ()).unwrap_or_else(|_| Array::scalar(value))
}

/// A scale that has an inverse: one that is not finite would skip every step to come.
fn usable(scale: f32) -> Result<f32> {
    if scale.is_finite() && scale >= f32::MIN_POSITIVE {
        return Ok(scale);
    }
    Err(wrong(format!("the scale {scale} is not finite and at least 2⁻¹²⁶")))
}

fn wrong(detail: String) -> Error {
    Error::argument("GradScaler", detail)
}
