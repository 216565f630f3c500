//! Optimisers, learning-rate schedules and gradient clipping.
//!
//! An [`Optimizer`] changes a module's parameters by [`Gradients`]. Its state is a tree of arrays
//! (the count of steps, the learning rate, the moments of each parameter), so `compile` captures it
//! and a [`Schedule`] is computed inside the compiled step.
//!
//! ```
//! use cupola::{Array, ops, nn::{self, Layer}, optim::{self, Optimizer}};
//!
//! let model = nn::Linear::new(2, 1)?;
//! let mut optimizer = optim::Adam::new(0.1)?;
//! let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
//! let y = Array::from_slice(&[3.0f32, 7.0], [2, 1])?;
//! for _ in 0..3 {
//!     let ((loss, ()), grads) = nn::value_and_grad(&model, |model| {
//!         Ok((nn::mse_loss(&model.forward(&x)?, &y, nn::Reduction::Mean)?, ()))
//!     })?;
//!     optimizer.update(&model, &grads)?;
//!     // Computes the step, so that no graph grows from one to the next.
//!     nn::eval_all(&[&loss, &model, &optimizer])?;
//! }
//! # Ok::<(), cupola::Error>(())
//! ```

mod adagrad;
mod adam;
mod clip;
mod lion;
mod rmsprop;
mod schedule;
mod sgd;
mod state;

use std::collections::BTreeMap;

use cupola_core::tree::Tree;
use cupola_core::{Array, Error, Result, ops};

use crate::nn::{Gradients, Parts};

pub use adagrad::Adagrad;
pub use adam::{Adam, AdamW};
pub use clip::clip_grad_norm;
pub use lion::Lion;
pub use rmsprop::RmsProp;
pub use schedule::{
    LearningRate, Schedule, constant, cosine_decay, exponential_decay, join_schedules,
    linear_schedule, step_decay,
};
pub use sgd::Sgd;
pub use state::State;

/// Something that changes parameters by their gradients.
///
/// As a [`Tree`] it is its state: the leaves `step`, `learning_rate` and, from the first update on,
/// the moments of each parameter, such as `conv1.weight.m`.
///
/// # Dtypes
/// Moments have their parameter's dtype, as in MLX; half types are computed in `float32`.
pub trait Optimizer: Tree {
    /// Changes the parameters of `model` that have a gradient, and the state.
    ///
    /// # Errors
    /// Where a gradient is of no parameter of `model`, or differs from it in shape; nothing has
    /// changed then.
    fn update(&mut self, model: &dyn Parts, gradients: &Gradients) -> Result<()>;

    /// The count of steps, the learning rate and the moments.
    fn state(&self) -> &State;

    /// The same, to be changed.
    fn state_mut(&mut self) -> &mut State;

    /// The learning rate of the last step, or of the first where none was made.
    fn learning_rate(&self) -> Array {
        self.state().learning_rate()
    }

    /// Changes the learning rate, and ends a schedule.
    ///
    /// # Errors
    /// Where `rate` is negative or not finite.
    fn set_learning_rate(&mut self, rate: f64) -> Result<()> {
        self.state_mut().set_learning_rate(rate)
    }

    /// Every leaf of the state by name: what a checkpoint holds.
    fn leaves(&self) -> BTreeMap<String, Array> {
        self.state().leaves()
    }

    /// Puts the leaves of a checkpoint in place.
    ///
    /// # Errors
    /// Where `step` or `learning_rate` is missing or not a number; nothing has changed then.
    fn load(&mut self, leaves: BTreeMap<String, Array>) -> Result<()> {
        self.state_mut().load(leaves)
    }
}

/// Implements [`Tree`] by the field `state`, and the accessors of [`Optimizer`].
macro_rules! optimizer_tree {
    ($name:ty) => {
        impl cupola_core::tree::Tree for $name {
            fn visit(
                &self,
                path: &mut cupola_core::tree::Path,
                f: &mut dyn FnMut(cupola_core::tree::Leaf<'_>, &cupola_core::Array),
            ) {
                self.state.visit(path, f);
            }

            fn visit_mut(
                &mut self,
                path: &mut cupola_core::tree::Path,
                f: &mut dyn FnMut(cupola_core::tree::Leaf<'_>, &mut cupola_core::Array),
            ) {
                self.state.visit_mut(path, f);
            }

            fn visit_settings(&self, f: &mut dyn FnMut(u64)) {
                self.state.visit_settings(f);
            }
        }
    };
}

/// The accessors of [`Optimizer`].
macro_rules! optimizer_state {
    () => {
        fn state(&self) -> &crate::optim::State {
            &self.state
        }

        fn state_mut(&mut self) -> &mut crate::optim::State {
            &mut self.state
        }
    };
}

pub(crate) use {optimizer_state, optimizer_tree};

/// Checks that an argument is finite and not negative.
fn not_negative(op: &'static str, what: &str, value: f64) -> Result<f64> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(Error::argument(op, format!("{what} {value} is not finite and at least 0")))
}

/// Checks that an argument is a decay: in [0, 1).
fn decay(op: &'static str, what: &str, value: f64) -> Result<f64> {
    if (0.0..1.0).contains(&value) {
        return Ok(value);
    }
    Err(Error::argument(op, format!("{what} {value} is not in [0, 1)")))
}

/// A gradient with weight decay.
fn decayed(gradient: &Array, param: &Array, weight_decay: f64) -> Result<Array> {
    if weight_decay == 0.0 {
        return Ok(gradient.clone());
    }
    ops::add(gradient, &ops::multiply(param, weight_decay)?)
}

/// `x` times `factor`; records nothing for 1.
fn scaled(x: &Array, factor: f64) -> Result<Array> {
    if factor == 1.0 { Ok(x.clone()) } else { ops::multiply(x, factor) }
}
