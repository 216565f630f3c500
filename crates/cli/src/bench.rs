//! `cupola bench`: the article's table, and the kernels under it, device by device.

mod kernels;
mod network;
mod outputs;
mod timing;

use cupola::{Device, fallback};
pub use network::classification;

use crate::args::BenchArgs;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, spared};
use crate::{data, interrupt};

pub fn run(args: &BenchArgs) -> Outcome {
    let output = Output::new(args.json.as_deref())?;
    let data = || data::files(args.dataset, args.data_dir.as_deref());
    output.spares("a file of the data", data)?;
    if let Some(path) = &args.outputs {
        spared("--outputs", path, "a file of the data", data())?;
        output.spares("what --outputs goes to", || [path.clone()])?;
    }
    let devices = match args.device.is_empty() {
        true => vec![cupola::backend::best_device()],
        false => args.device.clone(),
    };
    // A time that the CPU had a hand in would say nothing about the device.
    fallback::set_policy(fallback::Policy::Error);
    match args.kernels {
        true => kernels::run(args, &devices, &output),
        false => network::run(args, &devices, &output),
    }
}

fn interrupted() -> Outcome {
    match interrupt::flag().load(std::sync::atomic::Ordering::Relaxed) {
        true => Err(Failure::interrupted("interrupted")),
        false => Ok(()),
    }
}

/// What a device calls its results in a file of outputs.
fn key(device: Device, name: &str) -> String {
    format!("{device}/{name}")
}
