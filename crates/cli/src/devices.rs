//! `cupola devices`.

use cupola::backend::{absences, backends};
use serde::Serialize;

use crate::args::DevicesArgs;
use crate::failure::Outcome;
use crate::output::Output;
use crate::table::Table;

#[derive(Serialize)]
struct Device {
    device: String,
    description: String,
    active_bytes: usize,
    peak_bytes: usize,
    cached_bytes: usize,
}

pub fn run(args: &DevicesArgs) -> Outcome {
    let output = Output::new(args.json.as_deref())?;
    let devices: Vec<Device> = backends()
        .map(|backend| {
            let memory = backend.memory();
            Device {
                device: backend.device().to_string(),
                description: backend.description(),
                active_bytes: memory.active,
                peak_bytes: memory.peak,
                cached_bytes: memory.cached,
            }
        })
        .collect();
    let mut table = Table::new(&["device", "in use", "description"]);
    for device in &devices {
        let in_use = format!("{:.1} MiB", device.active_bytes as f64 / f64::from(1 << 20));
        table.row([device.device.clone(), in_use, device.description.clone()]);
    }
    output.line(table);
    for line in absences() {
        output.line(line);
    }
    output.json(&devices)
}
