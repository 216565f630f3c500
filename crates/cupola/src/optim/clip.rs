//! Gradient clipping.

use cupola_core::{Array, DType, Error, Result, ops};

use crate::nn::Gradients;

/// Gradients whose norm, over all of them together, is at most `max_norm`; and the norm that they
/// had: each is multiplied by min(1, max_norm/(norm + 1e-6)), as in MLX.
///
/// # Errors
/// Where `max_norm` is negative or not finite.
///
/// # Example
/// ```
/// use cupola::{Array, nn::Gradients, optim::clip_grad_norm};
/// let grads: Gradients =
///     [("w".to_owned(), Array::from_slice(&[3.0f32, 4.0], [2])?)].into_iter().collect();
/// let (clipped, norm) = clip_grad_norm(&grads, 1.0)?;
/// assert_eq!(norm.item::<f32>()?, 5.0);
/// assert!((clipped["w"].to_vec::<f32>()?[1] - 0.8).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn clip_grad_norm(gradients: &Gradients, max_norm: f64) -> Result<(Gradients, Array)> {
    if !(max_norm.is_finite() && max_norm >= 0.0) {
        let detail = format!("max norm {max_norm} is not finite and at least 0");
        return Err(Error::argument("clip_grad_norm", detail));
    }
    let mut total: Option<Array> = None;
    for gradient in gradients.values() {
        let wide = ops::astype(gradient, gradient.dtype().accumulator())?;
        let squares = ops::sum(&ops::square(&wide)?, (), false)?;
        total = Some(match total {
            Some(total) => ops::add(&total, &squares)?,
            None => squares,
        });
    }
    let norm = match total {
        Some(total) => ops::sqrt(&total)?,
        None => ops::zeros((), DType::F32)?,
    };
    let factor = ops::minimum(&ops::divide(max_norm, &ops::add(&norm, 1e-6)?)?, 1)?;
    let clipped = gradients.map(|_, g| ops::astype(&ops::multiply(g, &factor)?, g.dtype()))?;
    Ok((clipped, norm))
}
