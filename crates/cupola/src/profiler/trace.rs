//! A profile in the [trace event format](https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU),
//! which Perfetto and Chrome show.

use std::collections::BTreeSet;
use std::time::Instant;

use cupola_core::plan::ExplainedStep;
use cupola_core::profile::{Clock, What};
use cupola_core::{Aval, Device};
use serde_json::{Value, json};

use super::{Mode, Noted, Profile};

/// How a trace begins.
pub const START: &str = r#"{"displayTimeUnit":"ms","otherData":{"#;

/// The process of the trace that the host's threads are in; devices follow.
const HOST: u32 = 1;

/// The device that ran a step of `device`: the CPU runs what it has no kernel for.
pub fn ran_on(device: Device, step: &ExplainedStep) -> Device {
    if step.on_cpu { Device::CPU } else { device }
}

/// Microseconds from the start of the profile.
pub fn micros(profile: &Profile, at: Instant) -> f64 {
    at.saturating_duration_since(profile.start).as_secs_f64() * 1e6
}

pub fn json(profile: &Profile) -> String {
    let mut devices: Vec<Device> = Vec::new();
    let mut queues = BTreeSet::new();
    let mut events = vec![name("process_name", HOST, 0, "host")];
    for noted in &profile.events {
        let place = match &noted.event.what {
            What::Step {
                device,
                step,
                queue,
                clock: Clock::Device | Clock::Divided | Clock::Estimated,
                ..
            } if ran_on(*device, step) != Device::CPU => {
                let at = devices.iter().position(|known| known == device).unwrap_or_else(|| {
                    devices.push(*device);
                    devices.len() - 1
                });
                let place = (HOST + 1 + at as u32, u32::from(*queue));
                queues.insert(place);
                place
            }
            _ => (HOST, noted.thread),
        };
        events.extend(of(profile, noted, place));
    }
    for (at, device) in devices.iter().enumerate() {
        events.push(name("process_name", HOST + 1 + at as u32, 0, &device.to_string()));
    }
    for (process, queue) in queues {
        events.push(name("thread_name", process, queue, &format!("stream {queue}")));
    }
    let threads = profile.events.iter().map(|noted| noted.thread + 1).max().unwrap_or(0);
    for thread in 0..threads {
        events.push(name("thread_name", HOST, thread, &format!("thread {thread}")));
    }
    json!({
        "displayTimeUnit": "ms",
        "otherData": { "program": "cupola", "version": env!("CARGO_PKG_VERSION"), "lost": profile.lost },
        "traceEvents": events,
    })
    .to_string()
}

fn name(kind: &str, process: u32, thread: u32, name: &str) -> Value {
    json!({ "ph": "M", "name": kind, "pid": process, "tid": thread, "args": { "name": name } })
}

/// What an event is in the trace.
fn of(profile: &Profile, noted: &Noted, (process, thread): (u32, u32)) -> Vec<Value> {
    let event = &noted.event;
    let start = micros(profile, event.start);
    let length = event.length.as_secs_f64() * 1e6;
    let measured = match &event.what {
        What::Evaluation { device, memory, .. } | What::Memory { device, memory } => Some(json!({
            "ph": "C", "name": format!("memory of {device}"), "pid": HOST, "tid": 0,
            "ts": start + length, "args": { "active": memory.active, "cached": memory.cached },
        })),
        _ => None,
    };
    if let What::Memory { .. } = &event.what {
        return measured.into_iter().collect();
    }
    let (category, title, args) = described(&event.what);
    let mut out = Vec::with_capacity(2);
    let is_mark = matches!(event.what, What::Mark { .. });
    if profile.options.mode != Mode::Event && !is_mark {
        out.push(json!({
            "ph": "X", "name": title, "cat": category, "pid": process, "tid": thread,
            "ts": start, "dur": length, "args": args,
        }));
    }
    if profile.options.mode != Mode::Interval || is_mark {
        out.push(json!({
            "ph": "i", "s": if is_mark { "g" } else { "t" }, "name": title, "cat": category,
            "pid": process, "tid": thread, "ts": start + length, "args": args,
        }));
    }
    out.extend(measured);
    out
}

/// Category, title and particulars of an event.
pub fn described(what: &What) -> (&'static str, String, Value) {
    match what {
        What::Evaluation { device, nodes, is_without_lines, memory } => (
            "evaluation",
            "evaluate".to_owned(),
            json!({
                "device": device.to_string(), "operations recorded": nodes,
                "lines noted": !is_without_lines,
                "active": memory.active, "peak": memory.peak, "cached": memory.cached,
            }),
        ),
        What::Memory { device, memory } => (
            "memory",
            "memory".to_owned(),
            json!({ "device": device.to_string(), "active": memory.active, "cached": memory.cached }),
        ),
        What::Planning { device, nodes, steps } => (
            "planning",
            "plan".to_owned(),
            json!({ "device": device.to_string(), "operations": nodes, "steps": steps }),
        ),
        What::Compiling { device, segments } => (
            "compiling",
            "compile".to_owned(),
            json!({ "device": device.to_string(), "segments": segments }),
        ),
        What::Step { device, plan, step, line, clock, .. } => {
            let avals = |operands: &[(Aval, u32)]| {
                operands.iter().map(|(aval, _)| aval.to_string()).collect::<Vec<_>>()
            };
            let clock = match clock {
                Clock::Device => "device",
                Clock::Divided => "device, divided",
                Clock::Estimated => "device, estimated",
                Clock::Host => "host",
            };
            (
                "step",
                step.kind.clone(),
                json!({
                    "device": ran_on(*device, step).to_string(), "clock": clock, "fused": step.fused,
                    "over": step.over, "inputs": avals(&step.inputs),
                    "outputs": avals(&step.outputs), "bytes": step.bytes(),
                    "operations": step.operations, "on the CPU": step.on_cpu,
                    "line": line.as_deref(), "plan": plan,
                }),
            )
        }
        What::Copy { from, to, bytes } => (
            "copy",
            format!("copy {from} to {to}"),
            json!({ "from": from.to_string(), "to": to.to_string(), "bytes": bytes }),
        ),
        What::Fallback { device, op, reason, bytes, line } => (
            "fallback",
            format!("{op} on the CPU"),
            json!({
                "device": device.to_string(), "reason": reason, "bytes": bytes,
                "line": line.as_deref(),
            }),
        ),
        What::Wait { device } => {
            ("wait", format!("wait for {device}"), json!({ "device": device.to_string() }))
        }
        What::Mark { name } => ("mark", name.clone(), json!({})),
    }
}
