//! How long something takes.

use std::time::{Duration, Instant};

use cupola::backend::Backend;

use super::interrupted;
use crate::failure::Outcome;

/// How often something is measured: at least once, and until one of these is reached.
#[derive(Clone, Copy)]
pub struct Effort {
    pub times: usize,
    pub budget: Duration,
}

/// The time that a part `at` of all times does not exceed.
pub fn quantile(times: &[Duration], at: f64) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    sorted.get((at * last as f64).round() as usize).copied().unwrap_or_default()
}

pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The time of `work`, with all that it leaves to the device.
pub fn once(device: &dyn Backend, work: impl FnOnce() -> Outcome) -> Outcome<Duration> {
    interrupted()?;
    device.synchronize()?;
    let began = Instant::now();
    work()?;
    // A GPU still works when an evaluation returns.
    device.synchronize()?;
    Ok(began.elapsed())
}

/// The times of `work`, each as [`once`] takes it.
pub fn repeated(
    device: &dyn Backend,
    effort: Effort,
    mut work: impl FnMut() -> Outcome,
) -> Outcome<Vec<Duration>> {
    let started = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || times.len() < effort.times && started.elapsed() < effort.budget {
        times.push(once(device, &mut work)?);
    }
    Ok(times)
}

/// The median time of one of many runs of `work` that are queued one behind the other, as kernels
/// of a network are: a GPU does not wait for the host in between.
pub fn queued(device: &dyn Backend, mut work: impl FnMut() -> Outcome) -> Outcome<Queued> {
    const SAMPLE: Duration = Duration::from_millis(50);
    const MOST: u32 = 1000;
    let warm = Effort { times: 3, budget: Duration::from_secs(1) };
    let one = quantile(&repeated(device, warm, &mut work)?, 0.0).max(Duration::from_nanos(1));
    let queue = (SAMPLE.as_secs_f64() / one.as_secs_f64()).ceil().min(f64::from(MOST)) as u32;
    let effort = Effort { times: 7, budget: Duration::from_secs(3) };
    let times = repeated(device, effort, || (0..queue).try_for_each(|_| work()))?;
    Ok(Queued { time: quantile(&times, 0.5) / queue, runs: times.len() * queue as usize })
}

/// The time of a run, and how many runs it comes from.
pub struct Queued {
    pub time: Duration,
    pub runs: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_times() {
        let times: Vec<Duration> = [5, 1, 4, 2, 3].map(Duration::from_millis).to_vec();
        assert_eq!(quantile(&times, 0.0), Duration::from_millis(1));
        assert_eq!(quantile(&times, 0.5), Duration::from_millis(3));
        assert_eq!(quantile(&times, 1.0), Duration::from_millis(5));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }

    #[test]
    fn times_and_budget_end_a_measurement() {
        let cpu = cupola::backend::backend(cupola::Device::CPU).unwrap();
        let measured = |times, budget| {
            let effort = Effort { times, budget };
            repeated(&**cpu, effort, || Ok(())).unwrap().len()
        };
        assert_eq!(measured(4, Duration::from_secs(60)), 4);
        assert_eq!(measured(4, Duration::ZERO), 1);
    }
}
