//! A line on the standard error for what happens.

use std::fmt::Write as _;
use std::io::Write as _;
use std::str::FromStr;

use cupola_core::profile::{Clock, Event, Listener, What};
use cupola_core::{Aval, Device, Error, Result};

use super::trace;

/// What can be logged.
pub const LOGGED: [&str; 4] = ["ops", "copies", "fallbacks", "cpu"];

/// Prints what `CUPOLA_LOG` names: `ops`, each step with dtypes, shapes, time and device; `copies` between
/// host and devices; `fallbacks`, with the reason; `cpu`, the steps that the CPU runs alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Log {
    ops: bool,
    copies: bool,
    fallbacks: bool,
    cpu: bool,
}

impl FromStr for Log {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut log = Log::default();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "ops" => log.ops = true,
                "copies" => log.copies = true,
                "fallbacks" => log.fallbacks = true,
                "cpu" => log.cpu = true,
                other => {
                    let known = LOGGED.join(", ");
                    let detail = format!("{other:?} is none of {known}");
                    return Err(Error::argument("CUPOLA_LOG", detail));
                }
            }
        }
        Ok(log)
    }
}

impl Log {
    /// The line of an event, where it is logged.
    fn line(self, event: &Event) -> Option<String> {
        let took = format!("{:.3} ms", event.length.as_secs_f64() * 1e3);
        match &event.what {
            What::Step { device, step, line, clock, .. } => {
                let device = trace::ran_on(*device, step);
                if !(self.ops || self.cpu && device == Device::CPU) {
                    return None;
                }
                let list = |operands: &[(Aval, u32)]| {
                    operands.iter().map(|(aval, _)| aval.to_string()).collect::<Vec<_>>().join(", ")
                };
                let mut text = format!("{device} {}", step.kind);
                if !step.fused.is_empty() {
                    let _ = write!(text, " [{}]", step.fused.join(", "));
                }
                let _ = write!(text, " ({}) -> {}", list(&step.inputs), list(&step.outputs));
                let of = if *clock == Clock::Host { " of the host" } else { "" };
                let _ = write!(text, " {took}{of}");
                if let Some(line) = line {
                    let _ = write!(text, " {line}");
                }
                Some(text)
            }
            What::Copy { from, to, bytes } if self.copies => {
                Some(format!("copy {from} to {to}, {bytes} bytes, {took}"))
            }
            What::Fallback { device, op, reason, bytes, line } if self.fallbacks => {
                let line = line.as_ref().map_or_else(String::new, |line| format!(", {line}"));
                Some(format!(
                    "fallback: {op} on the CPU instead of {device}, {bytes} bytes copied, \
                     {took}{line}: {reason}"
                ))
            }
            What::Evaluation { .. }
            | What::Memory { .. }
            | What::Planning { .. }
            | What::Compiling { .. }
            | What::Copy { .. }
            | What::Fallback { .. }
            | What::Wait { .. }
            | What::Mark { .. } => None,
        }
    }
}

impl Listener for Log {
    fn lines(&self) -> bool {
        self.ops || self.cpu || self.fallbacks
    }

    fn happened(&self, event: &Event) {
        if let Some(line) = self.line(event) {
            // Nobody reads it: that is no failure of the program.
            let _ = writeln!(std::io::stderr(), "cupola: {line}");
        }
    }
}
