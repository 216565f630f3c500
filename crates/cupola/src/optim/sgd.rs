//! Gradient descent with momentum.

use cupola_core::{Error, Result, ops};

use super::{LearningRate, Optimizer, State, decay, not_negative, optimizer_state, optimizer_tree};
use crate::nn::{Gradients, Parts};

/// Stochastic gradient descent, with momentum if wanted, as in PyTorch:
/// g ← g + weight_decay·p; v ← momentum·v + (1 − dampening)·g, at first v ← g; p ← p − rate·v, and
/// with Nesterov's momentum p ← p − rate·(g + momentum·v).
///
/// I. Sutskever et al., *On the importance of initialization and momentum in deep learning*,
/// ICML 2013.
///
/// # Example
/// ```
/// use cupola::optim::Sgd;
/// let optimizer = Sgd::new(0.1)?.momentum(0.9)?.nesterov(true);
/// assert!(Sgd::new(-0.1).unwrap_err().to_string().contains("learning rate"));
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sgd {
    state: State,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
}

impl Sgd {
    /// Without momentum, weight decay or dampening.
    ///
    /// # Errors
    /// Where the learning rate is negative or not finite.
    pub fn new(rate: impl Into<LearningRate>) -> Result<Self> {
        let state = State::new("Sgd", rate.into())?;
        Ok(Sgd { state, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false })
    }

    /// With this momentum.
    ///
    /// # Errors
    /// Where `momentum` is not in [0, 1).
    pub fn momentum(mut self, momentum: f64) -> Result<Self> {
        self.momentum = decay("Sgd", "momentum", momentum)?;
        Ok(self)
    }

    /// With so much of each gradient, after the first, kept out of the momentum.
    ///
    /// # Errors
    /// Where `dampening` is not in [0, 1).
    pub fn dampening(mut self, dampening: f64) -> Result<Self> {
        self.dampening = decay("Sgd", "dampening", dampening)?;
        Ok(self)
    }

    /// With this multiple of the parameter added to its gradient.
    ///
    /// # Errors
    /// Where `weight_decay` is negative or not finite.
    pub fn weight_decay(mut self, weight_decay: f64) -> Result<Self> {
        self.weight_decay = not_negative("Sgd", "weight decay", weight_decay)?;
        Ok(self)
    }

    /// With Nesterov's momentum, which needs a momentum and no dampening.
    pub fn nesterov(mut self, nesterov: bool) -> Self {
        self.nesterov = nesterov;
        self
    }
}

optimizer_tree!(Sgd);

impl Optimizer for Sgd {
    optimizer_state!();

    fn update(&mut self, model: &dyn Parts, gradients: &Gradients) -> Result<()> {
        let Sgd { momentum, dampening, weight_decay, nesterov, .. } = *self;
        if nesterov && (momentum == 0.0 || dampening != 0.0) {
            let detail = format!(
                "nesterov needs a momentum, not {momentum}, and no dampening, not {dampening}"
            );
            return Err(Error::argument("Sgd", detail));
        }
        self.state.update(
            model,
            gradients,
            |update| Ok(update.rate.clone()),
            |rate, moments, p, g| {
                let g = super::decayed(g, p, weight_decay)?;
                if momentum == 0.0 {
                    return ops::subtract(p, &ops::multiply(rate, &g)?);
                }
                let v = match moments.get("v")? {
                    Some(v) => {
                        let part = super::scaled(&g, 1.0 - dampening)?;
                        ops::add(&ops::multiply(&v, momentum)?, &part)?
                    }
                    None => g.clone(),
                };
                moments.set("v", &v);
                let change = match nesterov {
                    true => ops::add(&g, &ops::multiply(&v, momentum)?)?,
                    false => v,
                };
                ops::subtract(p, &ops::multiply(rate, &change)?)
            },
        )
    }
}
