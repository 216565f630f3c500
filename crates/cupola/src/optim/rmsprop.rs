//! RMSprop.

use cupola_core::{Result, ops};

use super::{LearningRate, Optimizer, State, decay, not_negative, optimizer_state, optimizer_tree};
use crate::nn::{Gradients, Parts};

/// RMSprop: v ← alpha·v + (1 − alpha)·g²; p ← p − rate·g/(√v + eps); with momentum, the quotient is
/// gathered first, b ← momentum·b + g/(√v + eps). Weight decay is added to the gradient.
///
/// T. Tieleman, G. Hinton, *Lecture 6.5: RMSprop*, Coursera 2012.
///
/// # Example
/// ```
/// use cupola::optim::RmsProp;
/// let optimizer = RmsProp::new(1e-2)?.alpha(0.9)?;
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RmsProp {
    state: State,
    alpha: f64,
    eps: f64,
    momentum: f64,
    weight_decay: f64,
}

impl RmsProp {
    /// With alpha 0.99, eps 1e-8 and no momentum.
    ///
    /// # Errors
    /// Where the learning rate is negative or not finite.
    pub fn new(rate: impl Into<LearningRate>) -> Result<Self> {
        let state = State::new("RmsProp", rate.into())?;
        Ok(RmsProp { state, alpha: 0.99, eps: 1e-8, momentum: 0.0, weight_decay: 0.0 })
    }

    /// With this decay of the mean of squares.
    ///
    /// # Errors
    /// Where `alpha` is not in [0, 1).
    pub fn alpha(mut self, alpha: f64) -> Result<Self> {
        self.alpha = decay("RmsProp", "alpha", alpha)?;
        Ok(self)
    }

    /// With this added to the denominator.
    ///
    /// # Errors
    /// Where `eps` is negative or not finite.
    pub fn eps(mut self, eps: f64) -> Result<Self> {
        self.eps = not_negative("RmsProp", "eps", eps)?;
        Ok(self)
    }

    /// With this momentum.
    ///
    /// # Errors
    /// Where `momentum` is not in [0, 1).
    pub fn momentum(mut self, momentum: f64) -> Result<Self> {
        self.momentum = decay("RmsProp", "momentum", momentum)?;
        Ok(self)
    }

    /// With this multiple of the parameter added to its gradient.
    ///
    /// # Errors
    /// Where `weight_decay` is negative or not finite.
    pub fn weight_decay(mut self, weight_decay: f64) -> Result<Self> {
        self.weight_decay = not_negative("RmsProp", "weight decay", weight_decay)?;
        Ok(self)
    }
}

optimizer_tree!(RmsProp);

impl Optimizer for RmsProp {
    optimizer_state!();

    fn update(&mut self, model: &dyn Parts, gradients: &Gradients) -> Result<()> {
        let RmsProp { alpha, eps, momentum, weight_decay, .. } = *self;
        self.state.update(
            model,
            gradients,
            |update| Ok(update.rate.clone()),
            |rate, moments, p, g| {
                let g = super::decayed(g, p, weight_decay)?;
                let v = moments.follow("v", alpha, &ops::square(&g)?)?;
                let mut change = ops::divide(&g, &ops::add(&ops::sqrt(&v)?, eps)?)?;
                if momentum > 0.0 {
                    if let Some(former) = moments.get("b")? {
                        change = ops::add(&ops::multiply(&former, momentum)?, &change)?;
                    }
                    moments.set("b", &change);
                }
                ops::subtract(p, &ops::multiply(rate, &change)?)
            },
        )
    }
}
