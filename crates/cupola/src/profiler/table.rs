//! What took how long, as a table.

use std::collections::HashMap;
use std::fmt::Write;
use std::str::FromStr;
use std::time::Duration;

use cupola_core::profile::{Clock, What};
use cupola_core::{Device, Error, Result};

use super::{Profile, trace};
use crate::explain::Roofline;

/// What the rows of a table are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum By {
    /// The kinds of steps, and what else happened.
    #[default]
    Op,
    /// The steps with what was fused into them and what they run over.
    Step,
    /// The lines of the program that recorded what the steps are about.
    Line,
    /// The modules in which they were recorded.
    Module,
}

impl FromStr for By {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "op" => Ok(By::Op),
            "step" => Ok(By::Step),
            "line" => Ok(By::Line),
            "module" => Ok(By::Module),
            other => {
                let detail = format!("a table is by op, step, line or module, not by {other:?}");
                Err(Error::argument("profiler", detail))
            }
        }
    }
}

/// A row: what, and the sum of what happened of it.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub device: String,
    pub count: usize,
    pub time: Duration,
    pub bytes: u64,
    pub operations: u64,
    /// The least time that the machine could take for its steps.
    pub least: Duration,
    /// Whether some of the time is only that of the host, which gave work away.
    pub is_hosts: bool,
    /// Whether the host waited, while devices had their own time.
    pub is_wait: bool,
}

impl Row {
    /// Which part of its time the machine could not do without; nothing of what is no step, and where it is not the
    /// device's own time.
    pub fn of_roofline(&self) -> Option<f64> {
        let is_known = !self.is_hosts && !self.least.is_zero();
        is_known.then(|| self.least.as_secs_f64() / self.time.as_secs_f64().max(1e-9))
    }

    /// How many percent of the time that was `worked` it is; nothing where the host waited.
    pub fn share(&self, worked: Duration) -> Option<f64> {
        let of = worked.as_secs_f64().max(f64::MIN_POSITIVE);
        (!self.is_wait).then(|| 100.0 * self.time.as_secs_f64() / of)
    }
}

/// The time of the rows without that in which the host waited: it is that of the devices once more.
pub fn worked(rows: &[Row]) -> Duration {
    rows.iter().filter(|row| !row.is_wait).map(|row| row.time).sum()
}

/// The rates of devices. One that cannot be measured has none, and its table no column of it.
#[derive(Default)]
struct Rooflines(HashMap<Device, Option<Roofline>>);

impl Rooflines {
    fn of(&mut self, device: Device) -> Option<Roofline> {
        *self.0.entry(device).or_insert_with(|| Roofline::of(device))
    }
}

/// The rows, the longest first. Evaluations and plannings are not among them: they hold the others.
pub fn rows(profile: &Profile, by: By) -> Vec<Row> {
    let mut rows: HashMap<(String, String), Row> = HashMap::new();
    let mut rooflines = Rooflines::default();
    for event in profile.events() {
        let (device, bytes, operations, is_hosts) = match &event.what {
            What::Evaluation { .. }
            | What::Memory { .. }
            | What::Planning { .. }
            | What::Mark { .. } => continue,
            What::Step { device, step, clock, .. } => {
                let device = trace::ran_on(*device, step);
                (device, step.bytes(), step.operations, *clock == Clock::Host)
            }
            What::Copy { to, bytes, .. } => (*to, *bytes as u64, 0, false),
            // The step itself has its row already.
            What::Fallback { .. } => continue,
            What::Wait { device } | What::Compiling { device, .. } => (*device, 0, 0, false),
        };
        let name = named(&event.what, by);
        let row = rows.entry((name.clone(), device.to_string())).or_insert(Row {
            name,
            device: device.to_string(),
            count: 0,
            time: Duration::ZERO,
            bytes: 0,
            operations: 0,
            least: Duration::ZERO,
            is_hosts: false,
            is_wait: matches!(event.what, What::Wait { .. }),
        });
        row.count += 1;
        row.time += event.length;
        if let What::Step { step, .. } = &event.what
            && let Some(roofline) = rooflines.of(device)
        {
            row.least += Duration::try_from_secs_f64(roofline.seconds(step)).unwrap_or_default();
        }
        row.bytes = row.bytes.saturating_add(bytes);
        row.operations = row.operations.saturating_add(operations);
        row.is_hosts |= is_hosts;
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    rows
}

fn named(what: &What, by: By) -> String {
    let What::Step { step, line, .. } = what else {
        return trace::described(what).1;
    };
    match by {
        By::Op => step.kind.clone(),
        By::Step => {
            let mut name = step.kind.clone();
            if !step.over.is_empty() {
                let _ = write!(name, " {}", step.over);
            }
            if !step.fused.is_empty() {
                let _ = write!(name, " with {}", step.fused.join(", "));
            }
            if step.over.is_empty() {
                let inputs: Vec<_> = step.inputs.iter().map(|(aval, _)| aval.to_string()).collect();
                let _ = write!(name, " of {}", inputs.join(", "));
            }
            name
        }
        By::Line => parts(line.as_deref()).0.unwrap_or("(no line)").to_owned(),
        By::Module => parts(line.as_deref()).1.unwrap_or("(no module)").to_owned(),
    }
}

/// A line of the program, and the module that a binding gave in parentheses after it.
fn parts(line: Option<&str>) -> (Option<&str>, Option<&str>) {
    match line.and_then(|line| line.strip_suffix(')')?.split_once(" (")) {
        Some((line, module)) => (Some(line), Some(module)),
        None => (line, None),
    }
}

/// The longest name that a row shows whole.
const WIDEST: usize = 60;

pub fn text(profile: &Profile, by: By) -> String {
    let rows = rows(profile, by);
    let all = worked(&rows);
    let short = |name: &str| match name.char_indices().nth(WIDEST) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    };
    let width = rows.iter().map(|row| short(&row.name).chars().count()).max().unwrap_or(0).max(4);
    let mut out = format!(
        "{:<width$}  {:>8}  {:>7}  {:>10}  {:>6}  {:>9}  {:>9}  {:>8}\n",
        "what", "device", "count", "time", "share", "GB/s", "GFLOP/s", "roofline"
    );
    for row in &rows {
        let seconds = row.time.as_secs_f64();
        let rate = |amount: u64| match amount {
            0 => String::new(),
            _ if row.is_hosts => "-".to_owned(),
            _ => format!("{:.1}", amount as f64 / seconds.max(1e-9) / 1e9),
        };
        let host = if row.is_hosts { "  (host)" } else { "" };
        let _ = writeln!(
            out,
            "{:<width$}  {:>8}  {:>7}  {:>7.3} ms  {:>6}  {:>9}  {:>9}  {:>8}{host}",
            short(&row.name),
            row.device,
            row.count,
            seconds * 1e3,
            row.share(all).map_or_else(String::new, |share| format!("{share:.1} %")),
            rate(row.bytes),
            rate(row.operations),
            row.of_roofline().map_or_else(String::new, |part| format!("{:.0} %", 100.0 * part)),
        );
    }
    if rows.iter().any(|row| row.is_hosts) {
        out.push_str(
            "(host): the time in which the host gave the work away, not that of the device\n",
        );
    }
    let length = profile.length.as_secs_f64();
    let waited: Duration = rows.iter().filter(|row| row.is_wait).map(|row| row.time).sum();
    let [all, waited] = [all, waited].map(|time| time.as_secs_f64() * 1e3);
    let waits = if waited > 0.0 { format!(", {waited:.3} ms of waiting") } else { String::new() };
    let _ = writeln!(out, "{all:.3} ms in rows{waits}, of {:.3} ms", length * 1e3);
    let evaluations = profile.events().filter_map(|event| match event.what {
        What::Evaluation { is_without_lines, .. } => Some(is_without_lines),
        _ => None,
    });
    let evaluations: Vec<bool> = evaluations.collect();
    let without = evaluations.iter().filter(|&&without| without).count();
    if without > 0 && matches!(by, By::Line | By::Module) {
        let count = evaluations.len();
        let _ = writeln!(
            out,
            "{without} of {count} evaluations went without noting lines, which would have taken more than \
             0.6 % of the time: their steps have the lines that they had before"
        );
    }
    if profile.lost > 0 {
        let _ = writeln!(out, "{} events had no room", profile.lost);
    }
    out
}
