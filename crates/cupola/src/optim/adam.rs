//! Adam, with weight decay in the gradient or beside it.

use cupola_core::{Array, Result, ops};

use super::state::Update;
use super::{LearningRate, Optimizer, State, decay, not_negative, optimizer_state, optimizer_tree};
use crate::nn::{Gradients, Parts};

macro_rules! adam {
    ($(#[$doc:meta])* $name:ident, $text:literal, $weight_decay:literal, $decoupled:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            state: State,
            rule: Rule,
        }

        impl $name {
            #[doc = concat!("With betas 0.9 and 0.999, eps 1e-8, bias correction and weight decay ",
                stringify!($weight_decay), ".")]
            ///
            /// # Errors
            /// Where the learning rate is negative or not finite.
            pub fn new(rate: impl Into<LearningRate>) -> Result<Self> {
                let rule = Rule {
                    betas: (0.9, 0.999),
                    eps: 1e-8,
                    weight_decay: $weight_decay,
                    decoupled: $decoupled,
                    bias_correction: true,
                };
                Ok($name { state: State::new($text, rate.into())?, rule })
            }

            /// With these decays of the mean of the gradients and of their squares.
            ///
            /// # Errors
            /// Where one is not in [0, 1).
            pub fn betas(mut self, first: f64, second: f64) -> Result<Self> {
                self.rule.betas =
                    (decay($text, "beta 1", first)?, decay($text, "beta 2", second)?);
                Ok(self)
            }

            /// With this added to the denominator.
            ///
            /// # Errors
            /// Where `eps` is negative or not finite.
            pub fn eps(mut self, eps: f64) -> Result<Self> {
                self.rule.eps = not_negative($text, "eps", eps)?;
                Ok(self)
            }

            /// With this weight decay.
            ///
            /// # Errors
            /// Where `weight_decay` is negative or not finite.
            pub fn weight_decay(mut self, weight_decay: f64) -> Result<Self> {
                self.rule.weight_decay = not_negative($text, "weight decay", weight_decay)?;
                Ok(self)
            }

            /// With the moments scaled up while they start from zero, as in PyTorch, or without, as
            /// MLX's default.
            pub fn bias_correction(mut self, bias_correction: bool) -> Self {
                self.rule.bias_correction = bias_correction;
                self
            }
        }

        optimizer_tree!($name);

        impl Optimizer for $name {
            optimizer_state!();

            fn update(&mut self, model: &dyn Parts, gradients: &Gradients) -> Result<()> {
                self.rule.clone().update(&mut self.state, model, gradients)
            }
        }
    };
}

adam! {
    /// Adam: m ← β₁·m + (1 − β₁)·g; v ← β₂·v + (1 − β₂)·g²;
    /// p ← p − rate·m̂/(√v̂ + eps), with m̂ = m/(1 − β₁ᵗ) and v̂ = v/(1 − β₂ᵗ). Weight decay is added to
    /// the gradient.
    ///
    /// D. P. Kingma, J. Ba, *Adam: a method for stochastic optimization*, ICLR 2015.
    ///
    /// # Example
    /// ```
    /// use cupola::optim::{Adam, cosine_decay};
    /// let optimizer = Adam::new(cosine_decay(1e-3, 1000, 0.0)?)?.betas(0.9, 0.99)?;
    /// assert!(Adam::new(1e-3)?.betas(0.9, 1.0).is_err());
    /// # Ok::<(), cupola::Error>(())
    /// ```
    Adam, "Adam", 0.0, false
}

adam! {
    /// [`Adam`] with weight decay beside the gradient: p ← p·(1 − rate·weight_decay) first.
    ///
    /// I. Loshchilov, F. Hutter, *Decoupled weight decay regularization*, ICLR 2019.
    ///
    /// # Example
    /// ```
    /// use cupola::optim::AdamW;
    /// let optimizer = AdamW::new(1e-3)?.weight_decay(0.05)?;
    /// # Ok::<(), cupola::Error>(())
    /// ```
    AdamW, "AdamW", 0.01, true
}

/// What both share.
#[derive(Clone, Debug)]
struct Rule {
    betas: (f64, f64),
    eps: f64,
    weight_decay: f64,
    /// Whether weight decay leaves the gradient alone.
    decoupled: bool,
    bias_correction: bool,
}

/// The factors of one update, which all parameters share.
struct Factors {
    /// rate/(1 − β₁ᵗ).
    change: Array,
    /// 1/√(1 − β₂ᵗ); `None` without bias correction.
    spread: Option<Array>,
    /// 1 − rate·weight_decay.
    kept: Option<Array>,
}

impl Rule {
    fn update(self, state: &mut State, model: &dyn Parts, gradients: &Gradients) -> Result<()> {
        let prepare = |update: &Update| self.factors(update);
        state.update(model, gradients, prepare, |factors, moments, p, g| {
            let g = match self.decoupled {
                true => g.clone(),
                false => super::decayed(g, p, self.weight_decay)?,
            };
            let m = moments.follow("m", self.betas.0, &g)?;
            let v = moments.follow("v", self.betas.1, &ops::square(&g)?)?;
            let mut spread = ops::sqrt(&v)?;
            if let Some(factor) = &factors.spread {
                spread = ops::multiply(&spread, factor)?;
            }
            let change =
                ops::divide(&ops::multiply(&m, &factors.change)?, &ops::add(&spread, self.eps)?)?;
            let p = match &factors.kept {
                Some(kept) => ops::multiply(p, kept)?,
                None => p.clone(),
            };
            ops::subtract(&p, &change)
        })
    }

    fn factors(&self, update: &Update) -> Result<Factors> {
        let rate = update.rate.clone();
        let kept = match self.decoupled && self.weight_decay != 0.0 {
            true => Some(ops::subtract(1, &ops::multiply(&rate, self.weight_decay)?)?),
            false => None,
        };
        if !self.bias_correction {
            return Ok(Factors { change: rate, spread: None, kept });
        }
        // 1 − βᵗ from its logarithm: the power itself is too close to 1 in float32.
        let lack =
            |beta: f64| ops::negative(&ops::expm1(&ops::multiply(&update.number, beta.ln())?)?);
        let change = ops::divide(&rate, &lack(self.betas.0)?)?;
        let spread = Some(ops::rsqrt(&lack(self.betas.1)?)?);
        Ok(Factors { change, spread, kept })
    }
}
