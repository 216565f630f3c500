//! `cupola devices`.

use std::collections::{BTreeMap, BTreeSet};

use cupola::DType;
use cupola::backend::{absences, backend, backends};
use cupola::suite::{Family, OpSupport, Support, support};
use serde::Serialize;

use crate::args::DevicesArgs;
use crate::failure::Outcome;
use crate::output::{Output, spinner};
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
    if args.ops {
        return operations(args, &output);
    }
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

/// Which operations a device has kernels for.
#[derive(Serialize)]
struct Operations {
    device: String,
    operations: Vec<Operation>,
}

#[derive(Serialize)]
struct Operation {
    family: &'static str,
    name: String,
    /// The dtypes with kernels of the device's own.
    native: Vec<String>,
    /// The dtypes that the CPU runs, at least in part, with the reason.
    fallback: BTreeMap<String, String>,
}

impl From<OpSupport> for Operation {
    fn from(op: OpSupport) -> Self {
        let (mut native, mut fallback) = (Vec::new(), BTreeMap::new());
        for (dtype, support) in op.dtypes {
            match support {
                Support::Native => native.push(dtype.to_string()),
                Support::Fallback(reason) => drop(fallback.insert(dtype.to_string(), reason)),
            }
        }
        Operation { family: op.family.name(), name: op.op, native, fallback }
    }
}

impl Operation {
    /// What stands in the table for a dtype.
    fn cell(&self, dtype: DType) -> &'static str {
        let dtype = dtype.to_string();
        match (self.native.contains(&dtype), self.fallback.contains_key(&dtype)) {
            (true, _) => "own",
            (_, true) => "cpu",
            _ => "",
        }
    }
}

fn operations(args: &DevicesArgs, output: &Output) -> Outcome {
    let devices: Vec<_> = match args.device.is_empty() {
        true => backends().map(|backend| backend.device()).collect(),
        false => args.device.clone(),
    };
    let mut all = Vec::new();
    for device in devices {
        let backend = backend(device)?;
        let mut operations: Vec<Operation> = Vec::new();
        let busy = spinner(&format!("asking {device}"));
        for &family in Family::ALL {
            operations.extend(support(&**backend, family)?.into_iter().map(Operation::from));
        }
        busy.finish_and_clear();
        output.line(format!(
            "{device}: own kernels, or the cpu's; nothing where a dtype is not taken"
        ));
        let names = DType::ALL.map(|dtype| dtype.to_string());
        let mut heading = vec!["operation"];
        heading.extend(names.iter().map(String::as_str));
        let mut table = Table::new(&heading);
        for operation in &operations {
            let cells = DType::ALL.map(|dtype| operation.cell(dtype).to_owned());
            table.row([operation.name.clone()].into_iter().chain(cells));
        }
        output.line(table);
        let reasons: BTreeSet<(&str, &str)> = (operations.iter())
            .flat_map(|op| op.fallback.values().map(|reason| (op.name.as_str(), reason.as_str())))
            .collect();
        for (name, reason) in reasons {
            output.line(format!("{name}: {reason}"));
        }
        all.push(Operations { device: device.to_string(), operations });
    }
    output.json(&all)
}
