//! Initial values of parameters, as MLX computes them.
//!
//! Random numbers come from the default generator, so `generator::seed` fixes them. The fans of a
//! shape `[out, kernel.., in]` are in·(kernel area) and out·(kernel area).

use cupola_core::{Array, DType, Error, Result, Shape, ops};

/// Which fan scales a He initialiser.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fan {
    /// That of the input, which keeps the scale of activations.
    #[default]
    In,
    /// That of the output, which keeps the scale of gradients.
    Out,
}

/// One value everywhere.
///
/// # Errors
/// None but those of recording.
pub fn constant(value: f64, shape: impl Into<Shape>, dtype: DType) -> Result<Array> {
    ops::full_like(&ops::zeros(shape, dtype)?, value)
}

/// Even over [low, high).
///
/// # Errors
/// Where `low` is above `high`, one is not finite, or `dtype` is not a float.
///
/// # Example
/// ```
/// use cupola::{DType, nn::init};
/// let x = init::uniform(-0.5, 0.5, [3, 4], DType::F32)?;
/// assert!(x.to_vec::<f32>()?.iter().all(|v| (-0.5..0.5).contains(v)));
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn uniform(low: f64, high: f64, shape: impl Into<Shape>, dtype: DType) -> Result<Array> {
    if !(low.is_finite() && high.is_finite() && low <= high) {
        return Err(Error::argument("uniform", format!("nothing is in [{low}, {high})")));
    }
    ops::random::uniform(low, high, shape, dtype, None)
}

/// Normal with this mean and standard deviation.
///
/// # Errors
/// Where `deviation` is negative, or `dtype` is not a float.
pub fn normal(mean: f64, deviation: f64, shape: impl Into<Shape>, dtype: DType) -> Result<Array> {
    if !(mean.is_finite() && deviation.is_finite() && deviation >= 0.0) {
        let detail = format!("mean {mean} is not finite or deviation {deviation} is negative");
        return Err(Error::argument("normal", detail));
    }
    let scaled = ops::multiply(&ops::random::normal(shape, dtype, None)?, deviation)?;
    if mean == 0.0 { Ok(scaled) } else { ops::add(&scaled, mean) }
}

/// 1 on the diagonal of a square matrix and 0 elsewhere.
///
/// # Errors
/// Where `shape` is not that of a square matrix.
pub fn identity(shape: impl Into<Shape>, dtype: DType) -> Result<Array> {
    let shape = shape.into();
    match shape[..] {
        [rows, columns] if rows == columns => ops::identity(rows, dtype),
        _ => Err(Error::shape("identity", format!("{shape} is not a square matrix"))),
    }
}

/// Even over ±gain·√(6/(fan in + fan out)).
///
/// X. Glorot, Y. Bengio, *Understanding the difficulty of training deep feedforward neural
/// networks*, AISTATS 2010.
///
/// # Errors
/// Where `shape` has fewer than two axes.
pub fn glorot_uniform(shape: impl Into<Shape>, dtype: DType, gain: f64) -> Result<Array> {
    let shape = shape.into();
    let (inputs, outputs) = fans("glorot_uniform", &shape)?;
    let bound = gain * (6.0 / (inputs + outputs)).sqrt();
    uniform(-bound, bound, shape, dtype)
}

/// Normal with standard deviation gain·√(2/(fan in + fan out)); see [`glorot_uniform`].
///
/// # Errors
/// Where `shape` has fewer than two axes.
pub fn glorot_normal(shape: impl Into<Shape>, dtype: DType, gain: f64) -> Result<Array> {
    let shape = shape.into();
    let (inputs, outputs) = fans("glorot_normal", &shape)?;
    normal(0.0, gain * (2.0 / (inputs + outputs)).sqrt(), shape, dtype)
}

/// Even over ±gain·√(3/fan); √2 is the gain for rectified units.
///
/// K. He et al., *Delving deep into rectifiers*, ICCV 2015.
///
/// # Errors
/// Where `shape` has fewer than two axes.
pub fn he_uniform(shape: impl Into<Shape>, dtype: DType, fan: Fan, gain: f64) -> Result<Array> {
    let shape = shape.into();
    let bound = gain * (3.0 / chosen("he_uniform", &shape, fan)?).sqrt();
    uniform(-bound, bound, shape, dtype)
}

/// Normal with standard deviation gain/√fan; see [`he_uniform`].
///
/// # Errors
/// Where `shape` has fewer than two axes.
pub fn he_normal(shape: impl Into<Shape>, dtype: DType, fan: Fan, gain: f64) -> Result<Array> {
    let shape = shape.into();
    let deviation = gain / chosen("he_normal", &shape, fan)?.sqrt();
    normal(0.0, deviation, shape, dtype)
}

fn chosen(op: &'static str, shape: &Shape, fan: Fan) -> Result<f64> {
    let (inputs, outputs) = fans(op, shape)?;
    Ok(match fan {
        Fan::In => inputs,
        Fan::Out => outputs,
    })
}

/// How many numbers make an output, and how many an input enters.
fn fans(op: &'static str, shape: &Shape) -> Result<(f64, f64)> {
    let [outputs, kernel @ .., inputs] = &shape[..] else {
        return Err(Error::shape(op, format!("{shape} has fewer than two axes")));
    };
    let area = kernel.iter().product::<usize>() as f64;
    Ok((*inputs as f64 * area, *outputs as f64 * area))
}
