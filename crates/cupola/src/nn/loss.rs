//! Losses: how far predictions are from targets.
//!
//! Half types are computed in `float32`, the reduction included, and rounded once in the end.

use cupola_core::{Array, Error, Result, ops};

use crate::amp;

/// What becomes of the losses of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reduction {
    /// They stay as they are.
    None,
    /// Their sum.
    Sum,
    /// Their mean.
    #[default]
    Mean,
}

impl Reduction {
    fn apply(self, losses: &Array) -> Result<Array> {
        match self {
            Reduction::None => Ok(losses.clone()),
            Reduction::Sum => ops::sum(losses, (), false),
            Reduction::Mean => ops::mean(losses, (), false),
        }
    }
}

/// `f` of arrays of floats in the dtype to accumulate in, rounded once to their common dtype.
fn widened<const N: usize>(
    op: &'static str,
    floats: [&Array; N],
    f: impl FnOnce([Array; N]) -> Result<Array>,
) -> Result<Array> {
    amp::apply(op, floats, |floats| {
        let dtypes = floats.map(Array::dtype);
        let mut wide = floats.map(Array::clone);
        for x in &mut wide {
            *x = ops::astype(x, x.dtype().accumulator())?;
        }
        let common = dtypes.into_iter().reduce(|a, b| a.promote(b));
        let out = f(wide)?;
        ops::astype(&out, common.unwrap_or(out.dtype()))
    })
}

/// Checks that a prediction is of floats.
fn expect_float(op: &'static str, what: &str, x: &Array) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    Err(Error::dtype(op, format!("{what} are floats, not {}", x.aval())))
}

/// Checks that predictions and targets are of one shape: broadcasting them hides mistakes.
fn expect_same(op: &'static str, predictions: &Array, targets: &Array) -> Result<()> {
    expect_float(op, "predictions", predictions)?;
    if predictions.shape() == targets.shape() {
        return Ok(());
    }
    let (p, t) = (predictions.aval(), targets.aval());
    Err(Error::shape(op, format!("predictions {p} and targets {t} differ in shape")))
}

/// Checks that targets are class indices for scores of classes along the last axis.
fn expect_classes(op: &'static str, scores: &Array, targets: &Array) -> Result<()> {
    expect_float(op, "scores", scores)?;
    let fits = scores.rank() > 0 && scores.shape()[..scores.rank() - 1] == targets.shape()[..];
    if fits && targets.dtype().is_integer() {
        return Ok(());
    }
    let (s, t) = (scores.aval(), targets.aval());
    Err(Error::shape(op, format!("targets {t} are not one class index for each row of {s}")))
}

/// The scores of the target classes, negated.
fn picked(log_probs: &Array, targets: &Array) -> Result<Array> {
    let at = ops::expand_dims(targets, -1)?;
    ops::negative(&ops::squeeze(&ops::take_along_axis(log_probs, &at, -1)?, -1)?)
}

/// The negative log-likelihood of the target classes: `−log_probs[target]`.
///
/// # Shapes
/// Log-probabilities `[.., classes]` and class indices `[..]` give `[..]`, reduced.
///
/// # Errors
/// Where the targets are not integers of the right shape; when it runs, where one is no class.
///
/// # Example
/// ```
/// use cupola::{Array, nn};
/// let scores = Array::from_slice(&[0.0f32, 0.0, 0.0, 0.0], [2, 2])?;
/// let targets = Array::from_slice(&[0, 1], [2])?;
/// let loss = nn::nll_loss(&nn::log_softmax(&scores, -1)?, &targets, nn::Reduction::Mean)?;
/// assert!((loss.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn nll_loss(log_probs: &Array, targets: &Array, reduction: Reduction) -> Result<Array> {
    expect_classes("nll_loss", log_probs, targets)?;
    amp::apply("nll_loss", [log_probs], |[log_probs]| reduction.apply(&picked(log_probs, targets)?))
}

/// The options of [`cross_entropy`]; a [`Reduction`] alone is one with no weights and no smoothing.
#[derive(Clone, Debug, Default)]
pub struct CrossEntropy {
    class_weights: Option<Array>,
    label_smoothing: f64,
    reduction: Reduction,
}

impl CrossEntropy {
    /// The mean, without weights or smoothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one weight a class, `[classes]`. The mean of losses with class indices is then over the
    /// weights of their classes, as in PyTorch.
    pub fn class_weights(mut self, weights: Array) -> Self {
        self.class_weights = Some(weights);
        self
    }

    /// With so much of each target spread evenly over all classes, in [0, 1].
    pub fn label_smoothing(mut self, part: f64) -> Self {
        self.label_smoothing = part;
        self
    }

    /// With this reduction.
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.reduction = reduction;
        self
    }
}

impl From<Reduction> for CrossEntropy {
    fn from(reduction: Reduction) -> Self {
        Self::new().reduction(reduction)
    }
}

/// The cross entropy between the softmax of `logits` and `targets`: −Σ target·log softmax(logits)
/// over the classes.
///
/// # Shapes
/// Logits `[.., classes]` with class indices `[..]`, or with probabilities `[.., classes]`, give
/// `[..]`, reduced.
///
/// # Errors
/// Where the targets are neither, the weights are not one a class, or the smoothing is not in
/// [0, 1]; when it runs, where an index is no class.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{self, Reduction}};
/// let logits = Array::from_slice(&[2.0f32, -1.0, 0.5, 0.0], [2, 2])?;
/// let targets = Array::from_slice(&[0, 0], [2])?;
/// let loss = nn::cross_entropy(&logits, &targets, Reduction::None)?;
/// assert!((loss.to_vec::<f32>()?[0] - 0.04858735).abs() < 1e-6);
/// let smooth = nn::CrossEntropy::new().label_smoothing(0.1);
/// assert!((nn::cross_entropy(&logits, &targets, smooth)?.item::<f32>()? - 0.3488315).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cross_entropy(
    logits: &Array,
    targets: &Array,
    options: impl Into<CrossEntropy>,
) -> Result<Array> {
    let options = options.into();
    amp::apply("cross_entropy", [logits], |[logits]| cross_entropy_of(logits, targets, options))
}

/// [`cross_entropy`] in the dtype of its operands.
fn cross_entropy_of(logits: &Array, targets: &Array, options: CrossEntropy) -> Result<Array> {
    const OP: &str = "cross_entropy";
    let CrossEntropy { class_weights, label_smoothing, reduction } = options;
    if !(0.0..=1.0).contains(&label_smoothing) {
        let detail = format!("label smoothing {label_smoothing} is not in [0, 1]");
        return Err(Error::argument(OP, detail));
    }
    let are_indices = targets.dtype().is_integer();
    if are_indices {
        expect_classes(OP, logits, targets)?;
    } else {
        expect_same(OP, logits, targets)?;
        expect_float(OP, "target probabilities", targets)?;
    }
    let Some(&classes) = logits.shape().last() else {
        return Err(Error::shape(OP, format!("logits {} have no classes", logits.aval())));
    };
    if let Some(weights) = class_weights.as_ref().filter(|w| w.shape()[..] != [classes]) {
        let detail =
            format!("weights {} are not one for each of {classes} classes", weights.aval());
        return Err(Error::shape(OP, detail));
    }
    let dtype = [Some(logits), class_weights.as_ref(), (!are_indices).then_some(targets)]
        .into_iter()
        .flatten()
        .fold(logits.dtype(), |dtype, x| dtype.promote(x.dtype()));
    let wide = |x: &Array| ops::astype(x, x.dtype().accumulator());
    let class_weights = class_weights.as_ref().map(wide).transpose()?;
    let targets = &if are_indices { targets.clone() } else { wide(targets)? };
    let log_probs = ops::log_softmax(&wide(logits)?, -1)?;
    // The weight of a row's own class, and what every class adds to the loss.
    let (own, each) = match &class_weights {
        Some(weights) => {
            let own = if are_indices { Some(ops::take(weights, targets, 0)?) } else { None };
            (own, ops::multiply(&log_probs, weights)?)
        }
        None => (None, log_probs.clone()),
    };
    let losses = if are_indices {
        picked(&each, targets)?
    } else {
        // A target of 0 adds nothing, also where the model is certain against it: 0·∞ is NaN.
        let each = ops::where_(&ops::equal(targets, 0)?, 0, &each)?;
        ops::negative(&ops::sum(&ops::multiply(targets, &each)?, -1, false)?)?
    };
    let losses = if label_smoothing == 0.0 {
        losses
    } else {
        let even = ops::multiply(&ops::mean(&each, -1, false)?, -label_smoothing)?;
        ops::add(&ops::multiply(&losses, 1.0 - label_smoothing)?, &even)?
    };
    let loss = match (reduction, own) {
        (Reduction::Mean, Some(own)) => {
            ops::divide(&ops::sum(&losses, (), false)?, &ops::sum(&own, (), false)?)
        }
        _ => reduction.apply(&losses),
    }?;
    ops::astype(&loss, dtype)
}

/// The squared distances (prediction − target)².
///
/// # Errors
/// Where the shapes differ or the predictions are not floats.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{self, Reduction}};
/// let (y, t) = (Array::from_slice(&[1.0f32, 4.0], [2])?, Array::from_slice(&[1.0f32, 2.0], [2])?);
/// assert_eq!(nn::mse_loss(&y, &t, Reduction::Mean)?.item::<f32>()?, 2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn mse_loss(predictions: &Array, targets: &Array, reduction: Reduction) -> Result<Array> {
    expect_same("mse_loss", predictions, targets)?;
    widened("mse_loss", [predictions, targets], |[predictions, targets]| {
        reduction.apply(&ops::square(&ops::subtract(&predictions, &targets)?)?)
    })
}

/// The distances |prediction − target|.
///
/// # Errors
/// As [`mse_loss`].
///
/// # Example
/// ```
/// use cupola::{Array, nn::{self, Reduction}};
/// let (y, t) = (Array::from_slice(&[1.0f32, 4.0], [2])?, Array::from_slice(&[1.0f32, 2.0], [2])?);
/// assert_eq!(nn::l1_loss(&y, &t, Reduction::Sum)?.item::<f32>()?, 2.0);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn l1_loss(predictions: &Array, targets: &Array, reduction: Reduction) -> Result<Array> {
    expect_same("l1_loss", predictions, targets)?;
    widened("l1_loss", [predictions, targets], |[predictions, targets]| {
        reduction.apply(&ops::abs(&ops::subtract(&predictions, &targets)?)?)
    })
}

/// Squared for distances d below `delta`, d²/2, and linear beyond, delta·(d − delta/2).
///
/// P. J. Huber, *Robust estimation of a location parameter*, 1964.
///
/// # Errors
/// As [`mse_loss`], and where `delta` is not above 0.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{self, Reduction}};
/// let (y, t) = (Array::from_slice(&[0.5f32, 4.0], [2])?, Array::from_slice(&[0.0f32, 0.0], [2])?);
/// assert_eq!(nn::huber_loss(&y, &t, 1.0, Reduction::None)?.to_vec::<f32>()?, [0.125, 3.5]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn huber_loss(
    predictions: &Array,
    targets: &Array,
    delta: f64,
    reduction: Reduction,
) -> Result<Array> {
    expect_same("huber_loss", predictions, targets)?;
    expect_positive("huber_loss", "delta", delta)?;
    widened("huber_loss", [predictions, targets], |[predictions, targets]| {
        reduction.apply(&huber(&predictions, &targets, delta)?)
    })
}

/// [`huber_loss`] over `beta`: d²/(2·beta) for distances d below `beta`, and d − beta/2 beyond.
///
/// # Errors
/// As [`mse_loss`], and where `beta` is not above 0.
///
/// # Example
/// ```
/// use cupola::{Array, nn::{self, Reduction}};
/// let (y, t) = (Array::from_slice(&[1.0f32, 4.0], [2])?, Array::from_slice(&[0.0f32, 0.0], [2])?);
/// assert_eq!(nn::smooth_l1_loss(&y, &t, 2.0, Reduction::None)?.to_vec::<f32>()?, [0.25, 3.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn smooth_l1_loss(
    predictions: &Array,
    targets: &Array,
    beta: f64,
    reduction: Reduction,
) -> Result<Array> {
    expect_same("smooth_l1_loss", predictions, targets)?;
    expect_positive("smooth_l1_loss", "beta", beta)?;
    widened("smooth_l1_loss", [predictions, targets], |[predictions, targets]| {
        reduction.apply(&ops::divide(&huber(&predictions, &targets, beta)?, beta)?)
    })
}

fn expect_positive(op: &'static str, what: &str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Error::argument(op, format!("{what} {value} is not finite and above 0")))
}

fn huber(predictions: &Array, targets: &Array, delta: f64) -> Result<Array> {
    let distance = ops::abs(&ops::subtract(predictions, targets)?)?;
    // Cut first: the square that is not taken must not overflow.
    let near = ops::multiply(&ops::square(&ops::minimum(&distance, delta)?)?, 0.5)?;
    let far = ops::multiply(&ops::subtract(&distance, 0.5 * delta)?, delta)?;
    ops::where_(&ops::less(&distance, delta)?, &near, &far)
}

/// The cross entropy of yes-or-no probabilities: −t·ln p − (1 − t)·ln(1 − p), with logarithms of at
/// least −100, as in PyTorch. Where a probability is 0 or 1, that logarithm has slope 0.
///
/// # Errors
/// As [`mse_loss`].
///
/// # Example
/// ```
/// use cupola::{Array, nn::{self, Reduction}};
/// let (p, t) = (Array::from_slice(&[0.5f32, 0.0], [2])?, Array::from_slice(&[1.0f32, 1.0], [2])?);
/// let losses = nn::binary_cross_entropy(&p, &t, Reduction::None)?.to_vec::<f32>()?;
/// assert_eq!(losses, [2f32.ln(), 100.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn binary_cross_entropy(
    probabilities: &Array,
    targets: &Array,
    reduction: Reduction,
) -> Result<Array> {
    expect_same("binary_cross_entropy", probabilities, targets)?;
    let targets = ops::astype(targets, probabilities.dtype())?;
    widened("binary_cross_entropy", [probabilities, &targets], |[p, targets]| {
        let yes = at_least_minus_100(&p, &ops::equal(&p, 0)?, ops::log, 1)?;
        let no = at_least_minus_100(&ops::negative(&p)?, &ops::equal(&p, 1)?, ops::log1p, 0)?;
        let sum = ops::add(
            &ops::multiply(&targets, &yes)?,
            &ops::multiply(&ops::subtract(1, &targets)?, &no)?,
        )?;
        reduction.apply(&ops::negative(&sum)?)
    })
}

/// A logarithm, and −100 where it is less or `is_zero` says that it is −∞. There it sees `safe`
/// instead of `x`: its slope would be infinite, and 0·∞ is NaN.
fn at_least_minus_100(
    x: &Array,
    is_zero: &Array,
    log: fn(&Array) -> Result<Array>,
    safe: i32,
) -> Result<Array> {
    let logarithm = log(&ops::where_(is_zero, safe, x)?)?;
    ops::where_(is_zero, -100, &ops::maximum(&logarithm, -100)?)
}

/// [`binary_cross_entropy`] of sigmoid(x), without overflow: ln(1 + eˣ) − t·x.
///
/// # Errors
/// As [`mse_loss`].
///
/// # Example
/// ```
/// use cupola::{Array, nn::{self, Reduction}};
/// let (x, t) = (Array::from_slice(&[0.0f32, 90.0], [2])?, Array::from_slice(&[1.0f32, 0.0], [2])?);
/// let losses = nn::binary_cross_entropy_with_logits(&x, &t, Reduction::None)?.to_vec::<f32>()?;
/// assert_eq!(losses, [2f32.ln(), 90.0]);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn binary_cross_entropy_with_logits(
    logits: &Array,
    targets: &Array,
    reduction: Reduction,
) -> Result<Array> {
    expect_same("binary_cross_entropy_with_logits", logits, targets)?;
    let targets = ops::astype(targets, logits.dtype())?;
    widened("binary_cross_entropy_with_logits", [logits, &targets], |[logits, targets]| {
        let certain = ops::multiply(&targets, &logits)?;
        reduction.apply(&ops::subtract(&ops::softplus(&logits)?, &certain)?)
    })
}

/// The divergence of Kullback and Leibler between distributions along the last axis, both given as
/// log-probabilities: Σ eᵗ·(t − x), as in MLX.
///
/// # Shapes
/// `[.., n]` gives `[..]`, reduced.
///
/// # Errors
/// As [`mse_loss`].
///
/// # Example
/// ```
/// use cupola::{Array, nn::{self, Reduction}};
/// let x = Array::from_slice(&[0.5f32.ln(), 0.5f32.ln()], [1, 2])?;
/// let t = Array::from_slice(&[0.0, f32::NEG_INFINITY], [1, 2])?;
/// assert_eq!(nn::kl_div_loss(&x, &t, Reduction::Mean)?.item::<f32>()?, 2f32.ln());
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn kl_div_loss(log_probs: &Array, targets: &Array, reduction: Reduction) -> Result<Array> {
    expect_same("kl_div_loss", log_probs, targets)?;
    expect_float("kl_div_loss", "targets", targets)?;
    widened("kl_div_loss", [log_probs, targets], |[log_probs, targets]| {
        let weights = ops::exp(&targets)?;
        // What has no weight adds nothing: 0·∞ is NaN.
        let gaps =
            ops::where_(&ops::equal(&weights, 0)?, 0, &ops::subtract(&targets, &log_probs)?)?;
        reduction.apply(&ops::sum(&ops::multiply(&weights, &gaps)?, -1, false)?)
    })
}
