//! Lion.

use cupola_core::{Result, ops};

use super::{LearningRate, Optimizer, State, decay, not_negative, optimizer_state, optimizer_tree};
use crate::nn::{Gradients, Parts};

/// Lion: c = β₁·m + (1 − β₁)·g; m ← β₂·m + (1 − β₂)·g; p ← p − rate·(sign(c) + weight_decay·p).
///
/// X. Chen et al., *Symbolic discovery of optimization algorithms*, NeurIPS 2023. Learning rates are
/// 3 to 10 times smaller than Adam's.
///
/// # Example
/// ```
/// use cupola::optim::Lion;
/// let optimizer = Lion::new(1e-4)?.weight_decay(0.1)?;
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lion {
    state: State,
    betas: (f64, f64),
    weight_decay: f64,
}

impl Lion {
    /// With betas 0.9 and 0.99 and no weight decay.
    ///
    /// # Errors
    /// Where the learning rate is negative or not finite.
    pub fn new(rate: impl Into<LearningRate>) -> Result<Self> {
        let state = State::new("Lion", rate.into())?;
        Ok(Lion { state, betas: (0.9, 0.99), weight_decay: 0.0 })
    }

    /// With these decays of the mean of the gradients: in the direction of a step, and as it is
    /// kept.
    ///
    /// # Errors
    /// Where one is not in [0, 1).
    pub fn betas(mut self, first: f64, second: f64) -> Result<Self> {
        self.betas = (decay("Lion", "beta 1", first)?, decay("Lion", "beta 2", second)?);
        Ok(self)
    }

    /// With this weight decay.
    ///
    /// # Errors
    /// Where `weight_decay` is negative or not finite.
    pub fn weight_decay(mut self, weight_decay: f64) -> Result<Self> {
        self.weight_decay = not_negative("Lion", "weight decay", weight_decay)?;
        Ok(self)
    }
}

optimizer_tree!(Lion);

impl Optimizer for Lion {
    optimizer_state!();

    fn update(&mut self, model: &dyn Parts, gradients: &Gradients) -> Result<()> {
        let Lion { betas: (first, second), weight_decay, .. } = *self;
        self.state.update(
            model,
            gradients,
            |update| Ok(update.rate.clone()),
            |rate, moments, p, g| {
                let mut direction = ops::multiply(g, 1.0 - first)?;
                if let Some(m) = moments.get("m")? {
                    direction = ops::add(&ops::multiply(&m, first)?, &direction)?;
                }
                moments.follow("m", second, g)?;
                let change = super::decayed(&ops::sign(&direction)?, p, weight_decay)?;
                ops::subtract(p, &ops::multiply(rate, &change)?)
            },
        )
    }
}
