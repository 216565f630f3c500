//! The kernels under networks, each by itself: products, convolutions, what moves memory, launches.

use std::collections::BTreeMap;

use cupola::backend::{Backend, backend};
use cupola::cuda::{self, MatmulPrecision};
use cupola::device::{Stream, with_stream};
use cupola::ops::{self, ConvOptions};
use cupola::transform::compile;
use cupola::{Array, DType, Device, DeviceKind, Result, plan};
use serde::Serialize;

use super::key;
use super::outputs::Outputs;
use super::timing::{queued, us};
use crate::args::BenchArgs;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, spinner};
use crate::table::Table;

/// At most how many elements of a result go to the file of outputs.
const SAMPLE: usize = 4096;

/// How often the size is quartered where the device cannot hold an array.
const ATTEMPTS: i32 = 4;

#[derive(Clone, Copy)]
enum Workload {
    Matmul,
    /// Images, their side, channels in and out, the filter's side.
    Conv(usize, usize, usize, usize, usize),
    Gelu,
    Sum,
    Softmax,
    LayerNorm,
    Transpose,
    Launch,
}

const WORKLOADS: [Workload; 10] = [
    Workload::Matmul,
    Workload::Conv(256, 56, 64, 64, 3),
    Workload::Conv(512, 14, 20, 50, 5),
    Workload::Conv(512, 7, 50, 100, 5),
    Workload::Gelu,
    Workload::Sum,
    Workload::Softmax,
    Workload::LayerNorm,
    Workload::Transpose,
    Workload::Launch,
];

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Precision {
    Bf16,
    /// Inputs of `float32`, rounded to ten bits of mantissa by the matrix units.
    Tf32,
    F32,
}

#[derive(Serialize)]
struct Report {
    device: String,
    kernels: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    work: String,
    precision: Precision,
    sizes: Vec<usize>,
    unit: &'static str,
    #[serde(flatten)]
    result: Measurement,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Measurement {
    Done(Measured),
    /// Why there is none.
    Failed {
        error: String,
    },
}

#[derive(Serialize)]
struct Measured {
    us: f64,
    /// In the row's unit.
    rate: f64,
    runs: usize,
    /// How many segments the plan of one run has.
    segments: usize,
    /// Which elements of the result the file of outputs has: every so manieth of them in order.
    sample_step: usize,
}

pub fn run(args: &BenchArgs, devices: &[Device], output: &Output) -> Outcome {
    let mut outputs = Outputs::new(args.outputs.as_deref())?;
    let names: Vec<String> = WORKLOADS.iter().map(|workload| workload.name()).collect();
    if let Some(only) =
        args.only.iter().find(|only| !names.iter().any(|name| name.starts_with(*only)))
    {
        let names = names.join(", ");
        return Err(Failure::usage(format!("--only {only}: the kernels are {names}")));
    }
    let mut reports = Vec::with_capacity(devices.len());
    for &device in devices {
        let kernels = with_stream(Stream::of(device), || measure(device, args, &mut outputs))?;
        reports.push(Report { device: device.to_string(), kernels });
    }
    outputs.write(&BTreeMap::new())?;
    output.line(table(&reports));
    for report in &reports {
        for row in &report.kernels {
            if let Measurement::Failed { error } = &row.result {
                output.line(format!("{} {}: {error}", report.device, row.work));
            }
        }
    }
    output.json(&reports)
}

fn measure(device: Device, args: &BenchArgs, outputs: &mut Outputs) -> Outcome<Vec<Row>> {
    let backend = &**backend(device)?;
    let wanted = |name: &str| {
        args.only.is_empty() || args.only.iter().any(|only| name.starts_with(only.as_str()))
    };
    let mut rows = Vec::new();
    let before = cuda::matmul_precision();
    for workload in WORKLOADS.into_iter().filter(|workload| wanted(&workload.name())) {
        for &precision in workload.precisions(device) {
            let busy = spinner(&format!("{device}: {} in {}", workload.name(), precision.name()));
            cuda::set_matmul_precision(match precision {
                Precision::Tf32 => MatmulPrecision::Tf32,
                Precision::Bf16 | Precision::F32 => MatmulPrecision::Full,
            });
            let row = row(backend, workload, precision, args.scale, outputs);
            cuda::set_matmul_precision(before);
            busy.finish_and_clear();
            rows.push(row?);
        }
    }
    Ok(rows)
}

/// One kernel: of the size asked for, or else of one that the device can hold.
fn row(
    device: &dyn Backend,
    workload: Workload,
    precision: Precision,
    scale: Option<f64>,
    outputs: &mut Outputs,
) -> Outcome<Row> {
    let first = scale.unwrap_or(match device.is_real() {
        _ if device.device() == Device::CPU => 1.0 / 8.0,
        false => 1.0 / 4096.0,
        true => 1.0,
    });
    let attempts = if scale.is_some() { 1 } else { ATTEMPTS };
    let mut row = None;
    for attempt in 0..attempts {
        let sizes = workload.sizes(first / 4_f64.powi(attempt));
        let (result, is_over) = match timed(device, workload, precision, &sizes, outputs) {
            Ok(measured) => (Measurement::Done(measured), true),
            Err(failure) if failure.is_interruption() => return Err(failure),
            Err(failure) => (Measurement::Failed { error: failure.to_string() }, false),
        };
        device.trim();
        row = Some(Row { work: workload.name(), precision, sizes, unit: workload.unit(), result });
        if is_over {
            break;
        }
    }
    row.ok_or_else(|| Failure::new("bench: nothing was measured"))
}

fn timed(
    device: &dyn Backend,
    workload: Workload,
    precision: Precision,
    sizes: &[usize],
    outputs: &mut Outputs,
) -> Outcome<Measured> {
    let inputs = workload.inputs(sizes, precision.dtype())?;
    cupola::eval(&inputs)?;
    let kernel = workload.kernel(sizes, inputs);
    let result = kernel()?;
    let segments = plan::explain(&[result.clone()])?.steps.len();
    let sample_step = sample_step(result.size());
    if outputs.are_wanted() {
        let name = format!("{}.{}", workload.name(), precision.name());
        outputs.keep(key(device.device(), &name), &sample(&result)?)?;
    }
    drop(result);
    let time = queued(device, || Ok(kernel()?.eval()?))?;
    let seconds = time.time.as_secs_f64();
    Ok(Measured {
        us: us(time.time),
        rate: workload.rate(sizes, seconds),
        runs: time.runs,
        segments,
        sample_step,
    })
}

/// An odd step, so that a sample is not of a few columns only.
fn sample_step(size: usize) -> usize {
    size.div_ceil(SAMPLE) | 1
}

/// Every so manieth element, as `float32`.
fn sample(result: &Array) -> Result<Array> {
    result.eval()?;
    let flat = ops::reshape(result, [-1])?;
    let picked =
        ops::slice(&flat, &[0], &[flat.size() as isize], &[sample_step(flat.size()) as isize])?;
    ops::astype(&picked, DType::F32)
}

/// Numbers that any program can make again: the bits of an element come from its index and `seed`
/// alone, and are spread over [`low`, `low` + 2) in steps that `float32` holds exactly.
///
/// The hash is C. Wellons' `lowbias32` (*Prospecting for hash functions*, 2018).
fn uniform(shape: &[usize], seed: u32, low: f64) -> Result<Array> {
    let word = |value: u32| Array::scalar(value);
    let mix = |x: &Array, shift: u32| ops::bitwise_xor(x, &ops::right_shift(x, &word(shift))?);
    let count = i32::try_from(shape.iter().product::<usize>()).unwrap_or(i32::MAX);
    let index = ops::astype(&ops::arange(0, count, 1)?, DType::U32)?;
    let seeded = ops::bitwise_xor(&index, &word(seed.wrapping_mul(0x9e37_79b9)))?;
    let once = ops::multiply(&mix(&seeded, 16)?, &word(0x7feb_352d))?;
    let twice = ops::multiply(&mix(&once, 15)?, &word(0x846c_a68b))?;
    let bits = ops::right_shift(&mix(&twice, 16)?, &word(8))?;
    let unit = ops::multiply(&ops::astype(&bits, DType::F32)?, 2_f64.powi(-23))?;
    ops::reshape(&ops::add(&unit, low)?, shape)
}

type Kernel = Box<dyn Fn() -> Result<Array>>;

impl Workload {
    fn name(self) -> String {
        match self {
            Self::Matmul => "matmul".to_owned(),
            Self::Conv(_, _, inputs, outputs, filter) => {
                format!("conv{filter}x{filter}_{inputs}_{outputs}")
            }
            Self::Gelu => "gelu".to_owned(),
            Self::Sum => "sum".to_owned(),
            Self::Softmax => "softmax".to_owned(),
            Self::LayerNorm => "layer_norm".to_owned(),
            Self::Transpose => "transpose".to_owned(),
            Self::Launch => "launch".to_owned(),
        }
    }

    /// What it is measured in; TF32 is the CUDA devices' alone.
    fn precisions(self, device: Device) -> &'static [Precision] {
        use Precision::{Bf16, F32, Tf32};
        match (self, device.kind) {
            (Self::Matmul, DeviceKind::Cuda) => &[Bf16, Tf32, F32],
            (Self::Conv(..), DeviceKind::Cuda) => &[Bf16, Tf32],
            (Self::Matmul | Self::Conv(..), _) => &[Bf16, F32],
            _ => &[F32],
        }
    }

    /// The sizes of that part of the whole workload.
    fn sizes(self, part: f64) -> Vec<usize> {
        let some = |count: usize, part: f64, unit: usize| {
            ((count as f64 * part / unit as f64) as usize).max(1) * unit
        };
        match self {
            Self::Matmul => vec![some(4096, part.cbrt(), 16); 3],
            Self::Conv(images, side, inputs, outputs, filter) => {
                vec![some(images, part, 1), side, side, inputs, outputs, filter]
            }
            Self::Gelu | Self::Sum => vec![some(1 << 28, part, 1024)],
            Self::Softmax | Self::LayerNorm | Self::Transpose => {
                vec![some(16384, part.sqrt(), 16); 2]
            }
            // Additions, and the side of what is added.
            Self::Launch => vec![1000, 8],
        }
    }

    fn inputs(self, sizes: &[usize], dtype: DType) -> Result<Vec<Array>> {
        let arrays = match (self, sizes) {
            (Self::Matmul, &[m, k, n]) => {
                vec![uniform(&[m, k], 1, -1.0)?, uniform(&[k, n], 2, -1.0)?]
            }
            (Self::Conv(..), &[images, height, width, inputs, outputs, filter]) => vec![
                uniform(&[images, height, width, inputs], 1, -1.0)?,
                uniform(&[outputs, filter, filter, inputs], 2, -1.0)?,
            ],
            // Not around 0: the error of a sum says something beside its value only.
            (Self::Sum, _) => vec![uniform(sizes, 1, 0.0)?],
            (Self::Launch, &[_, side]) => {
                vec![uniform(&[side, side], 1, -1.0)?, uniform(&[side, side], 2, -1.0)?]
            }
            _ => vec![uniform(sizes, 1, -1.0)?],
        };
        arrays.iter().map(|array| ops::astype(array, dtype)).collect()
    }

    /// What records one run.
    fn kernel(self, sizes: &[usize], inputs: Vec<Array>) -> Kernel {
        let filter = sizes.last().copied().unwrap_or(1);
        let count = sizes.first().copied().unwrap_or(1);
        match self {
            Self::Matmul => Box::new(move || ops::matmul(&inputs[0], &inputs[1])),
            Self::Conv(..) => {
                let options = ConvOptions::new().padding(filter / 2);
                Box::new(move || ops::conv2d(&inputs[0], &inputs[1], &options))
            }
            Self::Gelu => Box::new(move || gelu(&inputs[0])),
            Self::Sum => Box::new(move || ops::sum(&inputs[0], (), false)),
            Self::Softmax => Box::new(move || ops::softmax(&inputs[0], -1)),
            Self::LayerNorm => Box::new(move || ops::layer_norm(&inputs[0], None, None, 1e-5)),
            // A transposed array is a view; put in a row, its elements have to move.
            Self::Transpose => {
                Box::new(move || ops::reshape(&ops::transpose(&inputs[0], ())?, [-1]))
            }
            Self::Launch => {
                let chain = compile(move |_: &mut (), x: &[Array]| additions(x, count));
                Box::new(move || Ok(chain.call(&mut (), &inputs)?.remove(0)))
            }
        }
    }

    fn rate(self, sizes: &[usize], seconds: f64) -> f64 {
        let product = sizes.iter().product::<usize>() as f64;
        match self {
            Self::Matmul => 2.0 * product / seconds / 1e12,
            // The filter has two sides, and the padding counts.
            Self::Conv(_, _, _, _, filter) => 2.0 * product * filter as f64 / seconds / 1e12,
            Self::Sum => 4.0 * product / seconds / 1e9,
            // Once read, once written.
            Self::Gelu | Self::Softmax | Self::LayerNorm | Self::Transpose => {
                8.0 * product / seconds / 1e9
            }
            Self::Launch => seconds * 1e6 / sizes.first().copied().unwrap_or(1) as f64,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Matmul | Self::Conv(..) => "TFLOP/s",
            Self::Gelu | Self::Sum | Self::Softmax | Self::LayerNorm | Self::Transpose => "GB/s",
            Self::Launch => "µs each",
        }
    }
}

/// 0.5·x·(1 + tanh(0.79788456·(x + 0.044715·x³))), written out: a chain to fuse.
fn gelu(x: &Array) -> Result<Array> {
    let cube = ops::multiply(&ops::multiply(x, x)?, x)?;
    let inner = ops::add(x, &ops::multiply(&cube, 0.044715)?)?;
    let curve = ops::add(&ops::tanh(&ops::multiply(&inner, 0.79788456)?)?, 1.0)?;
    ops::multiply(&ops::multiply(x, 0.5)?, &curve)
}

/// `count` additions one after the other. Each reads the last one's result transposed: an element
/// needs one that another thread made, so that no two of them can be one kernel.
fn additions(x: &[Array], count: usize) -> Result<Vec<Array>> {
    let mut y = x[0].clone();
    for _ in 0..count {
        y = ops::add(&ops::transpose(&y, ())?, &x[1])?;
    }
    Ok(vec![y])
}

impl Precision {
    fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
            Self::F32 => "f32",
        }
    }

    fn dtype(self) -> DType {
        match self {
            Self::Bf16 => DType::BF16,
            Self::Tf32 | Self::F32 => DType::F32,
        }
    }
}

fn table(reports: &[Report]) -> Table {
    let heading = ["device", "kernel", "in", "sizes", "segments", "µs", "rate", "unit"];
    let mut table = Table::new(&heading);
    for report in reports {
        for row in &report.kernels {
            let sizes: Vec<String> = row.sizes.iter().map(usize::to_string).collect();
            let [segments, us, rate] = match &row.result {
                Measurement::Done(done) => [
                    done.segments.to_string(),
                    format!("{:.1}", done.us),
                    format!("{:.2}", done.rate),
                ],
                Measurement::Failed { .. } => ["–", "–", "–"].map(str::to_owned),
            };
            table.row([
                report.device.clone(),
                row.work.clone(),
                row.precision.name().to_owned(),
                sizes.join("×"),
                segments,
                us,
                rate,
                row.unit.to_owned(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_hash() {
        let found = uniform(&[3], 1, -1.0).unwrap().to_vec::<f32>().unwrap();
        let expected = [0_u32, 1, 2].map(|index| {
            let mut x = index ^ 0x9e37_79b9;
            x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
            x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
            x ^= x >> 16;
            (f64::from(x >> 8) / f64::from(1 << 23) - 1.0) as f32
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn the_chain_of_launches_is_not_fused() {
        let sizes = Workload::Launch.sizes(1.0);
        let inputs = Workload::Launch.inputs(&sizes, DType::F32).unwrap();
        cupola::eval(&inputs).unwrap();
        let (x, one) = (inputs[0].to_vec::<f32>().unwrap(), inputs[1].to_vec::<f32>().unwrap());
        let result = Workload::Launch.kernel(&sizes, inputs)().unwrap();
        let plan = plan::explain(&[result.clone()]).unwrap().to_string();
        assert!(plan.lines().filter(|line| line.contains("map")).count() >= sizes[0], "{plan}");
        // An even count of turns is none: half of the additions are of the transposed.
        let found = result.to_vec::<f32>().unwrap();
        for (index, found) in found.iter().enumerate() {
            let turned = index % 8 * 8 + index / 8;
            let expected = x[index] + 500.0 * (one[index] + one[turned]);
            assert!((found - expected).abs() < 1e-2, "{index}: {found} for {expected}");
        }
    }

    #[test]
    fn parts_of_a_workload_are_whole_tiles() {
        assert_eq!(Workload::Matmul.sizes(1.0), [4096, 4096, 4096]);
        assert_eq!(Workload::Matmul.sizes(0.125), [2048, 2048, 2048]);
        assert_eq!(Workload::Softmax.sizes(1e-9), [16, 16]);
        assert_eq!(Workload::Conv(256, 56, 64, 64, 3).sizes(1e-9), [1, 56, 56, 64, 64, 3]);
    }
}
