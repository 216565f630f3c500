//! Learning rates that depend on the step, as in MLX.

use std::f64::consts::PI;
use std::sync::Arc;

use cupola_core::{Array, DType, Error, Result, ops};

use super::not_negative;

/// A learning rate as a function of the number of steps made so far, an `int32` without axes.
///
/// It is recorded as part of the step, so it also runs in a compiled one. Any closure will do.
pub type Schedule = Arc<dyn Fn(&Array) -> Result<Array> + Send + Sync>;

/// What an optimiser is made with: a number or a [`Schedule`].
#[derive(Clone)]
pub enum LearningRate {
    /// The same at every step.
    Constant(f64),
    /// One for each step.
    Schedule(Schedule),
}

impl From<f64> for LearningRate {
    fn from(rate: f64) -> Self {
        LearningRate::Constant(rate)
    }
}

impl From<Schedule> for LearningRate {
    fn from(schedule: Schedule) -> Self {
        LearningRate::Schedule(schedule)
    }
}

/// The step as `float32`.
fn real(step: &Array) -> Result<Array> {
    ops::astype(step, DType::F32)
}

fn at_least_one(op: &'static str, what: &str, value: usize) -> Result<f64> {
    if value > 0 {
        return Ok(value as f64);
    }
    Err(Error::argument(op, format!("{what} {value} is not at least 1")))
}

/// Always `rate`.
///
/// # Errors
/// Where `rate` is negative or not finite.
pub fn constant(rate: f64) -> Result<Schedule> {
    let rate = not_negative("constant", "rate", rate)?;
    Ok(Arc::new(move |_| ops::astype(&Array::scalar(rate), DType::F32)))
}

/// start·decayˢᵗᵉᵖ.
///
/// # Errors
/// Where an argument is negative or not finite.
///
/// # Example
/// ```
/// use cupola::{Array, optim::exponential_decay};
/// let rate = exponential_decay(0.5, 0.5)?(&Array::scalar(2i32))?;
/// assert_eq!(rate.item::<f32>()?, 0.125);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn exponential_decay(start: f64, decay: f64) -> Result<Schedule> {
    let start = not_negative("exponential_decay", "start", start)?;
    let decay = not_negative("exponential_decay", "decay", decay)?;
    Ok(Arc::new(move |step| ops::multiply(&ops::power(decay, &real(step)?)?, start)))
}

/// start·decay^⌊step/every⌋.
///
/// # Errors
/// Where an argument is negative or not finite, or `every` is 0.
///
/// # Example
/// ```
/// use cupola::{Array, optim::step_decay};
/// let rate = step_decay(0.5, 0.5, 10)?(&Array::scalar(19i32))?;
/// assert_eq!(rate.item::<f32>()?, 0.25);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn step_decay(start: f64, decay: f64, every: usize) -> Result<Schedule> {
    let start = not_negative("step_decay", "start", start)?;
    let decay = not_negative("step_decay", "decay", decay)?;
    at_least_one("step_decay", "every", every)?;
    Ok(Arc::new(move |step| {
        // In integers, where the quotient is exact.
        let times = real(&ops::floor_divide(step, every as i64)?)?;
        ops::multiply(&ops::power(decay, &times)?, start)
    }))
}

/// From `start` to `end` over `steps` steps along half a period of the cosine, then `end`.
///
/// I. Loshchilov, F. Hutter, *SGDR*, ICLR 2017.
///
/// # Errors
/// Where a rate is negative or not finite, or `steps` is 0.
///
/// # Example
/// ```
/// use cupola::{Array, optim::cosine_decay};
/// let rate = cosine_decay(1.0, 10, 0.0)?(&Array::scalar(5i32))?;
/// assert!((rate.item::<f32>()? - 0.5).abs() < 1e-6);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn cosine_decay(start: f64, steps: usize, end: f64) -> Result<Schedule> {
    let start = not_negative("cosine_decay", "start", start)?;
    let end = not_negative("cosine_decay", "end", end)?;
    let steps = at_least_one("cosine_decay", "steps", steps)?;
    Ok(Arc::new(move |step| {
        let angle = ops::multiply(&ops::minimum(&real(step)?, steps)?, PI / steps)?;
        let part = ops::multiply(&ops::add(&ops::cos(&angle)?, 1)?, 0.5 * (start - end))?;
        ops::add(&part, end)
    }))
}

/// From `start` to `end` over `steps` steps along a line, then `end`.
///
/// # Errors
/// Where a rate is negative or not finite, or `steps` is 0.
///
/// # Example
/// ```
/// use cupola::{Array, optim::linear_schedule};
/// let warmup = linear_schedule(0.0, 0.5, 4)?;
/// assert_eq!(warmup(&Array::scalar(1i32))?.item::<f32>()?, 0.125);
/// assert_eq!(warmup(&Array::scalar(9i32))?.item::<f32>()?, 0.5);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn linear_schedule(start: f64, end: f64, steps: usize) -> Result<Schedule> {
    let start = not_negative("linear_schedule", "start", start)?;
    let end = not_negative("linear_schedule", "end", end)?;
    let steps = at_least_one("linear_schedule", "steps", steps)?;
    Ok(Arc::new(move |step| {
        let step = ops::minimum(&real(step)?, steps)?;
        ops::add(&ops::multiply(&step, (end - start) / steps)?, start)
    }))
}

/// The first schedule up to the first boundary, the second from there to the next, and so on; each
/// counts its steps from its own start.
///
/// # Errors
/// Where there is no schedule, there is not one boundary fewer than schedules, or the boundaries do
/// not rise.
///
/// # Example
/// ```
/// use cupola::{Array, optim::{constant, join_schedules, linear_schedule}};
/// let rate = join_schedules(vec![linear_schedule(0.0, 0.5, 4)?, constant(0.25)?], &[4])?;
/// assert_eq!(rate(&Array::scalar(2i32))?.item::<f32>()?, 0.25);
/// assert_eq!(rate(&Array::scalar(4i32))?.item::<f32>()?, 0.25);
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn join_schedules(schedules: Vec<Schedule>, boundaries: &[usize]) -> Result<Schedule> {
    if schedules.len() != boundaries.len() + 1 || !boundaries.is_sorted_by(|a, b| a < b) {
        let detail = format!(
            "{} schedules need one rising boundary fewer, not {boundaries:?}",
            schedules.len()
        );
        return Err(Error::argument("join_schedules", detail));
    }
    let boundaries: Vec<i64> = boundaries.iter().map(|&b| b as i64).collect();
    Ok(Arc::new(move |step| {
        let mut rate = schedules[0](step)?;
        for (&boundary, schedule) in boundaries.iter().zip(&schedules[1..]) {
            let later = schedule(&ops::subtract(step, boundary)?)?;
            rate = ops::where_(&ops::less(step, boundary)?, &rate, &later)?;
        }
        Ok(rate)
    }))
}
