//! Adagrad.

use cupola_core::{Result, ops};

use super::{LearningRate, Optimizer, State, not_negative, optimizer_state, optimizer_tree};
use crate::nn::{Gradients, Parts};

/// Adagrad: v ← v + g²; p ← p − rate·g/(√v + eps). Weight decay is added to the gradient.
///
/// J. Duchi, E. Hazan, Y. Singer, *Adaptive subgradient methods*, JMLR 12, 2011.
///
/// # Example
/// ```
/// use cupola::optim::Adagrad;
/// let optimizer = Adagrad::new(1e-2)?.eps(1e-8)?;
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Adagrad {
    state: State,
    eps: f64,
    weight_decay: f64,
}

impl Adagrad {
    /// With eps 1e-10, as in PyTorch.
    ///
    /// # Errors
    /// Where the learning rate is negative or not finite.
    pub fn new(rate: impl Into<LearningRate>) -> Result<Self> {
        Ok(Adagrad { state: State::new("Adagrad", rate.into())?, eps: 1e-10, weight_decay: 0.0 })
    }

    /// With this added to the denominator.
    ///
    /// # Errors
    /// Where `eps` is negative or not finite.
    pub fn eps(mut self, eps: f64) -> Result<Self> {
        self.eps = not_negative("Adagrad", "eps", eps)?;
        Ok(self)
    }

    /// With this multiple of the parameter added to its gradient.
    ///
    /// # Errors
    /// Where `weight_decay` is negative or not finite.
    pub fn weight_decay(mut self, weight_decay: f64) -> Result<Self> {
        self.weight_decay = not_negative("Adagrad", "weight decay", weight_decay)?;
        Ok(self)
    }
}

optimizer_tree!(Adagrad);

impl Optimizer for Adagrad {
    optimizer_state!();

    fn update(&mut self, model: &dyn Parts, gradients: &Gradients) -> Result<()> {
        let Adagrad { eps, weight_decay, .. } = *self;
        self.state.update(
            model,
            gradients,
            |update| Ok(update.rate.clone()),
            |rate, moments, p, g| {
                let g = super::decayed(g, p, weight_decay)?;
                let mut v = ops::square(&g)?;
                if let Some(former) = moments.get("v")? {
                    v = ops::add(&former, &v)?;
                }
                moments.set("v", &v);
                let change = ops::divide(&g, &ops::add(&ops::sqrt(&v)?, eps)?)?;
                ops::subtract(p, &ops::multiply(rate, &change)?)
            },
        )
    }
}
