//! Mixed precision: products in a half type, sums and parameters in `float32`.
//!
//! Under [`autocast`] operations cast their operands as a [`Policy`] says. Parameters stay `float32`,
//! and a parameter that several products read is cast once in a step, since equal nodes of a plan are
//! one. `float16` loses gradients below 6·10⁻⁸: a [`GradScaler`] multiplies the loss so that they
//! are not. `bfloat16` has the range of `float32` and needs none.
//!
//! ```
//! use cupola::{Array, DType, amp, nn::{self, Layer}, ops, optim::{Optimizer, Sgd}};
//!
//! let model = nn::Linear::new(2, 1)?;
//! let (x, y) = (ops::ones([8, 2], DType::F32)?, ops::zeros([8, 1], DType::F32)?);
//! let policy = amp::Policy::new(DType::F16)?;
//! let (mut optimizer, mut scaler) = (Sgd::new(0.1)?, amp::GradScaler::new());
//! for _ in 0..3 {
//!     let ((_, loss), gradients) = nn::value_and_grad(&model, |model| {
//!         let scores = amp::autocast(Some(&policy), || model.forward(&x))?;
//!         let loss = nn::mse_loss(&scores, &y, nn::Reduction::Mean)?;
//!         Ok((scaler.scale(&loss)?, loss))
//!     })?;
//!     scaler.step(&mut optimizer, &model, &gradients)?;
//!     scaler.update()?;
//!     assert!(loss.item::<f32>()?.is_finite());
//! }
//! assert_eq!(model.weight.dtype(), DType::F32);
//! # Ok::<(), cupola::Error>(())
//! ```

mod layer;
mod scaler;
mod tune;

pub use cupola_core::autocast::{
    Category, Policy, asked, autocast, global_policy, operand, policy, result, set_global_policy,
};
pub use layer::WithPolicy;
pub use scaler::GradScaler;
pub use tune::{Tune, Tuned, TunedGroup, tune};

pub(crate) use cupola_core::autocast::apply;
