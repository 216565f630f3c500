//! Which operations are worth a half type: measured, group by group.

use std::fmt;
use std::time::{Duration, Instant};

use cupola_core::autocast::{asked, groups as groups_of_operations};
use cupola_core::{Array, DType, Error, Result, generator, ops};
use serde_json::{Value, json};

use super::{Category, Policy, autocast};

/// How operations are tried: see [`tune`].
#[derive(Clone, Copy, Debug)]
pub struct Tune {
    dtype: DType,
    steps: usize,
    tolerance: f64,
}

impl Tune {
    /// In `dtype`, over 5 steps each, with losses that deviate by up to 1 %.
    pub fn new(dtype: DType) -> Self {
        Self { dtype, steps: 5, tolerance: 0.01 }
    }

    /// Over so many steps each.
    pub fn steps(mut self, steps: usize) -> Self {
        self.steps = steps;
        self
    }

    /// With losses that deviate from those of `float32` by up to this part of them.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Measures the groups of operations that `step` has. It gives the loss and, behind it, whatever else is to be
    /// computed: gradients, parameters. `reset` puts back what steps change, and is called before each trial and at
    /// the end; the state of the random generator is put back, too.
    ///
    /// A group is kept in the half type where steps then take less time and no loss deviates by more than the
    /// tolerance, with the groups that were kept before. So what is proposed was measured as a whole.
    ///
    /// # Errors
    /// Where `step` or `reset` fails, its loss is not one real number that is finite in `float32`, no steps are asked for,
    /// or the dtype is none of a policy.
    pub fn run(
        &self,
        mut reset: impl FnMut() -> Result<()>,
        mut step: impl FnMut() -> Result<Vec<Array>>,
    ) -> Result<Tuned> {
        let wrong = |detail: String| Error::argument("tune", detail);
        if self.steps == 0 {
            return Err(wrong("steps is 0, not 1 or more".to_owned()));
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(wrong(format!(
                "the tolerance {} is not finite and at least 0",
                self.tolerance
            )));
        }
        let all = groups_of_operations();
        let mut policy = all
            .iter()
            .flat_map(|(_, ops)| ops)
            .try_fold(Policy::new(self.dtype)?, |policy, op| policy.with(op, Category::Float32))?;
        let random = generator::state();
        let mut trial = |policy: &Policy| -> Result<Trial> {
            reset()?;
            generator::set_state(random.clone());
            self.trial(policy, &mut step)
        };
        // The first run plans and compiles.
        let (first, asked) = asked(|| trial(&policy));
        first?;
        let base = trial(&policy)?;
        if let Some(loss) = base.losses.iter().find(|loss| !loss.is_finite()) {
            return Err(wrong(format!("the loss is {loss} in float32")));
        }
        let (mut best, mut deviation, mut groups) = (base.seconds, 0.0, Vec::new());
        for (name, of_group) in all {
            let ops: Vec<&str> = of_group.iter().copied().filter(|op| asked.contains(op)).collect();
            if ops.is_empty() {
                continue;
            }
            let lower =
                of_group.iter().try_fold(policy.clone(), |p, op| p.with(op, Category::Lower))?;
            trial(&lower)?;
            // In turn, so that what slows the machine down slows both.
            let (mut with, mut without) = (trial(&lower)?, trial(&policy)?);
            for _ in 0..2 {
                with.seconds = with.seconds.min(trial(&lower)?.seconds);
                without.seconds = without.seconds.min(trial(&policy)?.seconds);
            }
            let off = with.deviation(&base);
            let kept = with.seconds < without.seconds && off <= self.tolerance;
            groups.push(TunedGroup {
                name,
                ops,
                float32: without.seconds,
                lower: with.seconds,
                deviation: off,
                kept,
            });
            if kept {
                (policy, best, deviation) = (lower, with.seconds, off);
            }
        }
        reset()?;
        generator::set_state(random);
        let float32 = groups.first().map_or(base.seconds, |group| group.float32.min(base.seconds));
        let seconds = if groups.iter().any(|group| group.kept) { best } else { float32 };
        Ok(Tuned { policy, groups, float32, seconds, deviation })
    }

    fn trial(
        &self,
        policy: &Policy,
        step: &mut impl FnMut() -> Result<Vec<Array>>,
    ) -> Result<Trial> {
        let mut trial = Trial { losses: Vec::with_capacity(self.steps), seconds: f64::INFINITY };
        for _ in 0..self.steps {
            let start = Instant::now();
            let found = autocast(Some(policy), &mut *step)?;
            cupola_core::wait(&found)?;
            let time: Duration = start.elapsed();
            trial.seconds = trial.seconds.min(time.as_secs_f64());
            let Some(loss) = found.first() else {
                return Err(Error::argument("tune", "the step gives no loss"));
            };
            if loss.size() != 1 || !loss.dtype().is_float() {
                let detail = format!("a loss is one real number, not {}", loss.aval());
                return Err(Error::argument("tune", detail));
            }
            let loss = ops::astype(&ops::reshape(loss, ())?, DType::F32)?;
            trial.losses.push(f64::from(loss.item::<f32>()?));
        }
        Ok(trial)
    }
}

impl Default for Tune {
    fn default() -> Self {
        Self::new(DType::BF16)
    }
}

/// Some steps: their losses, and the time of the quickest.
struct Trial {
    losses: Vec<f64>,
    seconds: f64,
}

impl Trial {
    /// How far a loss is from that of `base`, as a part of it, at most.
    fn deviation(&self, base: &Trial) -> f64 {
        let pairs = self.losses.iter().zip(&base.losses);
        let all = pairs.map(|(own, base)| match own.is_finite() {
            true => (own - base).abs() / base.abs().max(1e-12),
            false => f64::INFINITY,
        });
        all.fold(0.0, f64::max)
    }
}

/// What was measured of a group of operations.
#[derive(Clone, Debug, PartialEq)]
pub struct TunedGroup {
    /// What the group is called.
    pub name: &'static str,
    /// Those of its operations that the step has.
    pub ops: Vec<&'static str>,
    /// The seconds that a step takes with the group in `float32`, and what was kept before it in the half type.
    pub float32: f64,
    /// The seconds that a step takes with the group in the half type, too.
    pub lower: f64,
    /// How far a loss is then from that of `float32` at most, as a part of it.
    pub deviation: f64,
    /// Whether the policy has it in the half type.
    pub kept: bool,
}

/// What [`tune`] found. It prints as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// What is proposed.
    pub policy: Policy,
    /// The groups that were measured, in that order.
    pub groups: Vec<TunedGroup>,
    /// The seconds that a step takes in `float32`.
    pub float32: f64,
    /// The seconds that a step takes under the policy.
    pub seconds: f64,
    /// How far a loss under the policy is from that of `float32` at most, as a part of it.
    pub deviation: f64,
}

impl Tuned {
    /// All of it, for programs: times in milliseconds.
    pub fn to_json(&self) -> Value {
        // JSON has no infinity.
        let part = |deviation: f64| deviation.is_finite().then_some(deviation);
        let group = |group: &TunedGroup| {
            json!({
                "group": group.name, "ops": group.ops, "float32_ms": 1e3 * group.float32,
                "lower_ms": 1e3 * group.lower, "won_ms": 1e3 * (group.float32 - group.lower),
                "deviation": part(group.deviation), "kept": group.kept,
            })
        };
        json!({
            "dtype": self.policy.dtype().to_string(),
            "groups": self.groups.iter().map(group).collect::<Vec<_>>(),
            "float32_ms": 1e3 * self.float32,
            "proposed_ms": 1e3 * self.seconds,
            "won_ms": 1e3 * (self.float32 - self.seconds),
            "deviation": self.deviation,
            "lower": self.policy.ops(Category::Lower).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtype = self.policy.dtype().to_string();
        writeln!(
            f,
            "{:<16}{:>12}{:>12}{:>12}{:>12}  kept",
            "group",
            "float32 ms",
            format!("{dtype} ms"),
            "won ms",
            "deviation"
        )?;
        let mut line = |name: &str, before: f64, after: f64, deviation: f64, what: &str| {
            let (before, after) = (1e3 * before, 1e3 * after);
            let line = format!(
                "{name:<16}{before:>12.3}{after:>12.3}{:>12.3}{:>10.3} %  {what}",
                before - after,
                100.0 * deviation
            );
            writeln!(f, "{}", line.trim_end())
        };
        for group in &self.groups {
            let kept = if group.kept { "yes" } else { "no" };
            let what = format!("{kept}: {}", group.ops.join(", "));
            line(group.name, group.float32, group.lower, group.deviation, &what)?;
        }
        line("the proposal", self.float32, self.seconds, self.deviation, "")
    }
}

/// Measures each group of operations of a training step in `float32` and in `bfloat16`, and proposes a policy: see
/// [`Tune::run`]. The step is to change nothing but what it gives.
///
/// # Errors
/// As [`Tune::run`].
///
/// # Example
/// ```
/// use cupola::{DType, amp, nn::{self, Layer}, ops};
/// let model = nn::Linear::new(8, 1)?;
/// let (x, y) = (ops::ones([4, 8], DType::F32)?, ops::zeros([4, 1], DType::F32)?);
/// let tuned = amp::tune(|| {
///     let ((loss, ()), gradients) = nn::value_and_grad(&model, |model| {
///         Ok((nn::mse_loss(&model.forward(&x)?, &y, nn::Reduction::Mean)?, ()))
///     })?;
///     Ok([loss].into_iter().chain(gradients.values().cloned()).collect())
/// })?;
/// assert_eq!(tuned.groups[0].name, "products");
/// println!("{tuned}");
/// amp::autocast(Some(&tuned.policy), || model.forward(&x))?;
/// # Ok::<(), cupola::Error>(())
/// ```
pub fn tune(step: impl FnMut() -> Result<Vec<Array>>) -> Result<Tuned> {
    Tune::default().run(|| Ok(()), step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::{self, Layer};

    #[test]
    fn every_group_has_operations_that_are_cast() -> Result<()> {
        let policy = Policy::new(DType::BF16)?;
        for (name, all) in groups_of_operations() {
            assert!(!all.is_empty(), "{name}");
            for op in all {
                assert!(policy.clone().with(op, Category::Lower).is_ok(), "{name}: {op}");
            }
        }
        Ok(())
    }

    #[test]
    fn what_deviates_is_not_kept() -> Result<()> {
        let model = nn::Linear::new(8, 4)?;
        let x = ops::random::normal([16, 8], DType::F32, Some(&ops::random::key(1)))?;
        let mut resets = 0;
        let before = generator::state().to_vec::<u32>()?;
        let tuned = Tune::new(DType::BF16).steps(2).tolerance(0.0).run(
            || {
                resets += 1;
                Ok(())
            },
            || {
                let y = ops::tanh(&model.forward(&x)?)?;
                Ok(vec![ops::sum(&ops::square(&y)?, (), false)?])
            },
        )?;
        let names: Vec<&str> = tuned.groups.iter().map(|group| group.name).collect();
        assert_eq!(names, ["products", "activations"]);
        assert_eq!(tuned.groups[0].ops, ["matmul"]);
        assert!(tuned.groups[0].deviation > 0.0 && !tuned.groups[0].kept, "{tuned}");
        assert_eq!(tuned.policy.category("matmul"), Category::Float32);
        assert!(resets > 8);
        assert_eq!(generator::state().to_vec::<u32>()?, before);
        assert_eq!(tuned.to_json()["groups"][1]["ops"], json!(["tanh"]));
        assert!(tuned.to_string().contains("no: matmul"), "{tuned}");
        Ok(())
    }

    #[test]
    fn bad_input_is_named() {
        let one = || Ok(vec![ops::ones((), DType::F32)?]);
        let text = |tuned: Result<Tuned>| tuned.unwrap_err().to_string();
        assert!(text(Tune::new(DType::BF16).steps(0).run(|| Ok(()), one)).contains("steps"));
        assert!(text(Tune::new(DType::F64).run(|| Ok(()), one)).contains("float64"));
        assert!(text(Tune::default().tolerance(-1.0).run(|| Ok(()), one)).contains("tolerance"));
        assert!(text(tune(|| Ok(Vec::new()))).contains("no loss"));
        assert!(text(tune(|| Ok(vec![ops::ones([2], DType::F32)?]))).contains("one real number"));
        assert!(text(tune(|| Ok(vec![ops::full((), f32::NAN, DType::F32)?]))).contains("NaN"));
    }
}
