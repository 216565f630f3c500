//! What an evaluation would run, beside what the machine could do: a table, JSON and a picture.
//!
//! The [roofline](https://doi.org/10.1145/1498765.1498785) of Williams, Waterman and Patterson says how long
//! a step takes at least: as long as its bytes take at the rate of the memory, or as its operations at the
//! rate of the arithmetic, whichever is longer.

use std::fmt::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cupola_core::backend::backend;
use cupola_core::device::{Stream, with_stream};
use cupola_core::plan::{ExplainedPlan, ExplainedStep, Explanation};
use cupola_core::{Array, Aval, DType, Device, Result, ops, profile};
use serde_json::{Value, json};

use crate::markup::escaped;

/// The rates of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roofline {
    /// What its memory moves, in bytes a second.
    pub bytes: f64,
    /// What it computes, in operations of `float32` a second.
    pub operations: f64,
}

/// Bytes of the array whose copy is timed: more than caches hold.
const COPIED: usize = 64 << 20;

/// Rows and columns of the matrices whose product is timed.
const SIDE: usize = 1024;

impl Roofline {
    /// Measures a device: a sum of two large arrays for the memory, a product of matrices of `float32` for
    /// the arithmetic, the best of a few runs of each. Takes some tenths of a second on a CPU.
    ///
    /// # Errors
    /// As evaluation.
    pub fn measure(device: Device) -> Result<Roofline> {
        unobserved(device, || {
            let long = ops::ones([COPIED / 4], DType::F32)?;
            let factor = ops::ones([SIDE, SIDE], DType::F32)?;
            cupola_core::eval(&[long.clone(), factor.clone()])?;
            let copied = best(device, || Ok(&long + &long))?;
            let multiplied = best(device, || ops::matmul(&factor, &factor))?;
            Ok(Roofline {
                bytes: 2.0 * COPIED as f64 / copied.as_secs_f64(),
                operations: 2.0 * (SIDE as f64).powi(3) / multiplied.as_secs_f64(),
            })
        })
    }

    /// The rates of `device`, measured once in a process; `None` where that cannot be done, as where a limit leaves no
    /// memory for it.
    pub fn of(device: Device) -> Option<Roofline> {
        static KNOWN: Mutex<Vec<(Device, Roofline)>> = Mutex::new(Vec::new());
        // Under the lock: what measures at the same time measures less.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, roofline)) = known.iter().find(|(of, _)| *of == device) {
            return Some(*roofline);
        }
        let roofline = Roofline::measure(device).ok()?;
        known.push((device, roofline));
        Some(roofline)
    }

    /// The least time of a step, in seconds.
    pub fn seconds(&self, step: &ExplainedStep) -> f64 {
        let (bytes, operations) = self.parts(step);
        bytes.max(operations)
    }

    /// The seconds that its bytes take, and those that its operations take.
    fn parts(&self, step: &ExplainedStep) -> (f64, f64) {
        (step.bytes() as f64 / self.bytes, step.operations as f64 / self.operations)
    }
}

/// Runs `work` on `device`. No profile or history has it, the peak of its memory is what it was, and what is kept for
/// reuse afterwards is given back.
fn unobserved<R>(device: Device, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let on = backend(device)?;
    let before = on.memory();
    let done = profile::unheard(|| with_stream(Stream::of(device), work));
    if on.memory().cached > before.cached {
        on.trim();
    }
    on.set_peak(before.peak);
    done
}

/// The shortest time of some runs on `device`.
fn best(device: Device, work: impl Fn() -> Result<Array>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let result = work()?;
        let start = Instant::now();
        result.eval()?;
        backend(device)?.synchronize()?;
        best = best.min(start.elapsed());
    }
    Ok(best.max(Duration::from_nanos(1)))
}

/// A plan beside a roofline. It prints as a table that lines up.
///
/// ```
/// use cupola::explain::{Report, Roofline};
/// use cupola::{Array, plan};
/// let x = Array::from_slice(&[1.0f32, 2.0], [2])?;
/// let plan = plan::explain(&[(&x * &x).exp()?])?;
/// let report = Report::new(plan, Roofline { bytes: 1e10, operations: 1e11 });
/// assert!(report.to_string().contains("multiply, exp"));
/// # Ok::<(), cupola::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What would run.
    pub plan: Explanation,
    /// What its device could do, where that is known.
    pub roofline: Option<Roofline>,
    /// The same of the other devices that have work.
    pub others: Vec<(Device, Option<Roofline>)>,
}

impl Report {
    /// `plan` beside the rates of its device. Those of the devices of plans before it are measured.
    pub fn new(plan: Explanation, roofline: impl Into<Option<Roofline>>) -> Report {
        let mut others: Vec<(Device, Option<Roofline>)> = Vec::new();
        for ExplainedPlan { device, .. } in &plan.before {
            if *device != plan.device && others.iter().all(|(known, _)| known != device) {
                others.push((*device, Roofline::of(*device)));
            }
        }
        Report { plan, roofline: roofline.into(), others }
    }

    /// The rates of a device.
    fn rates(&self, device: Device) -> Option<Roofline> {
        let other = self.others.iter().find(|(known, _)| *known == device);
        other.map_or(self.roofline, |(_, roofline)| *roofline)
    }

    /// The least time of all steps, in seconds, where the rates are known.
    pub fn seconds(&self) -> Option<f64> {
        self.roofline?;
        self.plan.steps.iter().map(|step| self.least(step)).sum()
    }

    /// The least time of a step.
    fn least(&self, step: &ExplainedStep) -> Option<f64> {
        self.rates(step.device).map(|roofline| roofline.seconds(step))
    }

    /// What a step does, and where, if there is a choice.
    fn what(&self, step: &ExplainedStep) -> String {
        match self.plan.before.is_empty() {
            true => description(step),
            false => format!("on {}: {}", step.device, description(step)),
        }
    }

    /// A step, with those inside of it.
    fn step(&self, step: &ExplainedStep) -> Value {
        let operands = |all: &[(Aval, u32)]| -> Vec<Value> {
            let one = |(aval, slot): &(Aval, u32)| json!({"slot": slot, "shape": aval.shape.to_vec(), "dtype": aval.dtype.to_string()});
            all.iter().map(one).collect()
        };
        json!({
            "device": step.device.to_string(),
            "kind": step.kind,
            "over": step.over,
            "fused": step.fused,
            "inputs": operands(&step.inputs),
            "outputs": operands(&step.outputs),
            "bytes_read": step.bytes_read,
            "bytes_written": step.bytes_written,
            "operations": step.operations,
            "in_place": step.in_place,
            "on_cpu": step.on_cpu,
            "roofline_us": self.least(step).map(|seconds| 1e6 * seconds),
            "inside": step.inside.iter().map(|step| self.step(step)).collect::<Vec<_>>(),
        })
    }

    /// All of it, for programs: sizes in bytes, times in microseconds. `before` has the plans that run before the last
    /// one, each with the number of its steps.
    pub fn to_json(&self) -> Value {
        let before = |plan: &ExplainedPlan| {
            let rates = self.rates(plan.device);
            json!({
                "device": plan.device.to_string(),
                "plan": plan.plan,
                "reused": plan.reused,
                "runs": plan.runs,
                "bytes_per_second": rates.map(|rates| rates.bytes),
                "operations_per_second": rates.map(|rates| rates.operations),
                "steps": plan.steps,
            })
        };
        json!({
            "device": self.plan.device.to_string(),
            "plan": self.plan.plan,
            "reused": self.plan.reused,
            "runs": self.plan.runs,
            "before": self.plan.before.iter().map(before).collect::<Vec<_>>(),
            "bytes_per_second": self.roofline.map(|rates| rates.bytes),
            "operations_per_second": self.roofline.map(|rates| rates.operations),
            "bytes": self.plan.bytes(),
            "operations": self.plan.operations(),
            "roofline_us": self.seconds().map(|seconds| 1e6 * seconds),
            "steps": self.plan.steps.iter().map(|step| self.step(step)).collect::<Vec<_>>(),
        })
    }

    /// A bar for each step, as long as its least time: blue where the memory bounds it, orange where the
    /// arithmetic does.
    pub fn to_svg(&self) -> String {
        const ROW: usize = 18;
        const BARS: f64 = 300.0;
        let longest = self.plan.steps.iter().filter_map(|step| self.least(step));
        let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
        let height = ROW * (self.plan.steps.len() + 3);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"960\" height=\"{height}\" fill=\"white\"/>\n\
             <text x=\"8\" y=\"{ROW}\" font-weight=\"bold\">{}</text>\n\
             <text x=\"8\" y=\"{}\" fill=\"#1f77b4\">bounded by memory</text>\
             <text x=\"140\" y=\"{}\" fill=\"#e6700b\">bounded by arithmetic</text>\n",
            escaped(&self.heading()),
            2 * ROW,
            2 * ROW
        );
        for (index, step) in self.plan.steps.iter().enumerate() {
            let rates = self.rates(step.device);
            let (bytes, operations) = rates.map_or((0.0, 0.0), |rates| rates.parts(step));
            let colour = if bytes >= operations { "#1f77b4" } else { "#e6700b" };
            let (y, seconds) = (ROW * (index + 2) + 6, bytes.max(operations));
            let width = BARS * seconds / longest;
            let _ = writeln!(
                svg,
                "<rect x=\"8\" y=\"{y}\" width=\"{width:.1}\" height=\"14\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"{}\">{}  {}</text>",
                BARS + 16.0,
                y + 12,
                rates.map_or_else(String::new, |_| time(seconds)),
                escaped(&shortened(&self.what(step), 90))
            );
        }
        svg + "</svg>\n"
    }

    fn heading(&self) -> String {
        let is_one = self.plan.before.is_empty();
        let plan = |(plan, _): (ExplainedPlan, &[ExplainedStep])| {
            let place = if is_one { String::new() } else { format!(" on {}", plan.device) };
            match plan.reused {
                true => format!(
                    "plan {}{place} was there already, runs so far: {}",
                    plan.plan, plan.runs
                ),
                false => format!("plan {}{place} was made for this", plan.plan),
            }
        };
        let plans: Vec<String> = self.plan.plans().map(plan).collect();
        let devices = self.others.iter().map(|(device, _)| device).chain([&self.plan.device]);
        let devices: Vec<String> = devices.map(Device::to_string).collect();
        let least = match (self.roofline, self.seconds()) {
            (Some(rates), Some(seconds)) if self.others.is_empty() => format!(
                "at least {} at {}/s and {} operations/s",
                time(seconds),
                bytes(rates.bytes),
                scaled(rates.operations)
            ),
            (_, Some(seconds)) => format!("at least {}", time(seconds)),
            _ => "at rates that could not be measured".to_owned(),
        };
        format!(
            "{} steps on {}, {}, {} operations, {least}; {}",
            self.plan.steps.len(),
            devices.join(" and "),
            bytes(self.plan.bytes() as f64),
            scaled(self.plan.operations() as f64),
            plans.join(", ")
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.heading())?;
        writeln!(f, "step        read     written  operations   at least  what")?;
        for (index, step) in self.plan.steps.iter().enumerate() {
            writeln!(
                f,
                "{index:>4}  {:>10}  {:>10}  {:>10}  {:>9}  {}",
                bytes(step.bytes_read as f64),
                bytes(step.bytes_written as f64),
                scaled(step.operations as f64),
                self.least(step).map_or_else(String::new, time),
                self.what(step)
            )?;
            inside(f, step, 1)?;
        }
        Ok(())
    }
}

/// A line for each step of the bodies of control flow: what one run of it is.
fn inside(f: &mut fmt::Formatter<'_>, step: &ExplainedStep, depth: usize) -> fmt::Result {
    for step in &step.inside {
        writeln!(f, "{:1$}{2}", "", 53 + 2 * depth, description(step))?;
        inside(f, step, depth + 1)?;
    }
    Ok(())
}

/// What a step does: its kind, what was fused into it, and the shapes of its results.
fn description(step: &ExplainedStep) -> String {
    let results: Vec<String> = step.outputs.iter().map(|(aval, _)| aval.to_string()).collect();
    let (program, epilogue) = step.fused.split_at(step.fused.len() - step.epilogue);
    let mut text = step.kind.clone();
    if !step.inside.is_empty() {
        text += &format!(" {}", step.over);
    }
    for (word, names) in [(":", program), (" then", epilogue)] {
        if !names.is_empty() {
            text += &format!("{word} {}", names.join(", "));
        }
    }
    let place = match (step.on_cpu, step.in_place) {
        (true, _) => ", on the CPU",
        (_, true) => ", in place where it can",
        _ => "",
    };
    format!("{text} → {}{place}", results.join(", "))
}

fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Three digits and a unit of powers of 1000.
fn scaled(number: f64) -> String {
    with_unit(number, &["", "k", "M", "G", "T", "P"], 1000.0)
}

fn bytes(number: f64) -> String {
    with_unit(number, &[" B", " KiB", " MiB", " GiB", " TiB"], 1024.0)
}

fn time(seconds: f64) -> String {
    with_unit(seconds * 1e9, &[" ns", " µs", " ms", " s"], 1000.0)
}

fn with_unit(mut number: f64, units: &[&str], step: f64) -> String {
    let mut at = 0;
    while number >= step && at + 1 < units.len() {
        number /= step;
        at += 1;
    }
    let digits = if at == 0 || number >= 100.0 { 0 } else { 1 };
    format!("{number:.digits$}{}", units[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use cupola_core::plan;

    const RATES: Roofline = Roofline { bytes: 1e9, operations: 1e10 };

    #[test]
    fn bytes_and_operations_are_those_of_the_steps() -> Result<()> {
        let (a, b) = (ops::ones([3, 5], DType::F32)?, ops::ones([5, 7], DType::F32)?);
        cupola_core::eval(&[a.clone(), b.clone()])?;
        let y = ops::relu(&ops::matmul(&a, &b)?)?;
        let report = Report::new(plan::explain(&[y])?, RATES);
        let [step] = &report.plan.steps[..] else { panic!("one step: {report}") };
        assert_eq!(step.kind, "matmul");
        assert_eq!((step.bytes_read, step.bytes_written), (4 * (15 + 35), 4 * 21));
        assert_eq!(step.operations, 2 * 3 * 5 * 7 + 21 * step.fused.len() as u64);
        assert!((report.seconds().unwrap_or(0.0) - 284e-9).abs() < 1e-12, "{report}");
        let json = report.to_json();
        assert_eq!(json["steps"][0]["bytes_read"], 200);
        assert_eq!(json["steps"][0]["outputs"][0]["shape"], json!([3, 7]));
        Ok(())
    }

    #[test]
    fn what_is_repeated_counts_once() -> Result<()> {
        let x = Array::from_vec(vec![1.5f32; 64 * 8], [64, 8])?;
        let row = Array::from_vec(vec![2.5f32; 8], [8])?;
        let plan = plan::explain(&[&x * &row])?;
        assert_eq!(plan.steps[0].bytes_read, 4 * (64 * 8 + 8));
        Ok(())
    }

    #[test]
    fn a_plan_is_made_once() -> Result<()> {
        let x = ops::ones([6, 11, 3], DType::F32)?;
        x.eval()?;
        let y = || ops::sum(&ops::tan(&(&x - 0.25))?, 1, false);
        let made = plan::explain(&[y()?])?;
        assert!(!made.reused);
        y()?.eval()?;
        let again = plan::explain(&[y()?])?;
        assert_eq!((again.reused, again.plan, again.runs), (true, made.plan, 1));
        Ok(())
    }

    #[test]
    fn pictures_are_well_formed() -> Result<()> {
        let x = ops::ones([4], DType::F32)?;
        x.eval()?;
        let svg = Report::new(plan::explain(&[ops::less(&x, 2.0)?])?, RATES).to_svg();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        Ok(())
    }
}
