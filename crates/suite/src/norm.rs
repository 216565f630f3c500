//! Normalization.

use cupola_core::prim::BatchNorm;
use cupola_core::{Aval, DType, Scalar};

use crate::host::Host;
use crate::number::Number;
use crate::sample::{Sample, from, spread, summed};

pub fn samples() -> Vec<Sample> {
    let small = [
        ("of rows", vec![4, 3]),
        ("of images", vec![2, 2, 3, 2]),
        ("one channel", vec![5, 1]),
        ("one channel alone", vec![6]),
    ];
    let large = [
        ("of many rows", vec![300, 5]),
        ("of many channels", vec![9, 131]),
        ("no channels", vec![3, 0]),
    ];
    let mut all: Vec<Sample> =
        small.into_iter().map(|(name, shape)| sample(name, shape).smooth()).collect();
    all.extend(large.into_iter().map(|(name, shape)| sample(name, shape)));
    all
}

fn sample(name: &str, shape: Vec<usize>) -> Sample {
    let channels = shape[shape.len() - 1];
    let inputs = vec![
        from(&shape[..], |i| spread(i * i + i / 3) * 2.0),
        summed([channels], |i| 1.0 + spread(i + 3) / 4.0),
        summed([channels], |i| spread(i + 7) / 2.0),
    ];
    Sample::new(name, move |_| BatchNorm { eps: Scalar::Float(0.25) }.into(), inputs)
        .only(DType::is_float)
}

pub fn reference(norm: &BatchNorm, inputs: &[Host], outputs: &[Aval]) -> Vec<Host> {
    let [x, weight, bias] = [0, 1, 2].map(|n| inputs[n].floats());
    let channels = weight.len();
    let count = (x.len() / channels.max(1)) as f64;
    let mut all = [vec![0.0; x.len()], vec![0.0; channels], vec![0.0; channels]];
    for c in 0..channels {
        let own = || x.iter().skip(c).step_by(channels);
        let mean = own().sum::<f64>() / count;
        let variance = own().map(|v| (v - mean) * (v - mean)).sum::<f64>() / count;
        for i in (c..x.len()).step_by(channels) {
            let normal = (x[i] - mean) / (variance + norm.eps.to_f64()).sqrt();
            all[0][i] = normal * weight[c] + bias[c];
        }
        (all[1][c], all[2][c]) = (mean, variance);
    }
    all.into_iter()
        .zip(outputs)
        .map(|(values, aval)| Host::from_fn(aval.clone(), |i| Number::Float(values[i])))
        .collect()
}
