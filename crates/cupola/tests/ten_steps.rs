//! Ten training steps of the article's network against an independent implementation.

use std::collections::BTreeMap;

use cupola::nn::{self, Layer, Module};
use cupola::optim::{Adam, Optimizer};
use cupola::train::ConvNet;
use cupola::{Array, Result};

/// What `scripts/ten_steps.py` prints: PyTorch in float64, the same weights, dropout off.
const LOSSES: [f64; 10] = [
    2.292053, 2.278077, 2.235762, 2.181687, 2.095160, 1.961479, 1.777966, 1.595310, 1.507999,
    1.527769,
];

/// Numbers between −bound and bound: the fractional parts of multiples of the golden ratio.
fn fill(shape: &[usize], seed: f64, bound: f64) -> Result<Array> {
    let size: usize = shape.iter().product();
    let value = |i: usize| {
        let walk = (i as f64 + 1.0) * 0.618_033_988_749_894_9 + seed * 0.37;
        (((walk - walk.floor()) * 2.0 - 1.0) * bound) as f32
    };
    Array::from_vec((0..size).map(value).collect(), shape)
}

#[test]
fn ten_steps_are_those_of_pytorch() -> Result<()> {
    let model = ConvNet::new(1, 28, 10)?;
    model.eval();
    let layers: [(&str, &[usize]); 6] = [
        ("conv1", &[20, 5, 5, 1]),
        ("conv2", &[50, 5, 5, 20]),
        ("conv3", &[100, 5, 5, 50]),
        ("linear1", &[450, 900]),
        ("linear2", &[225, 450]),
        ("linear3", &[10, 225]),
    ];
    let mut weights = BTreeMap::new();
    for (number, (name, shape)) in layers.into_iter().enumerate() {
        let bound = (shape[1..].iter().product::<usize>() as f64).powf(-0.5);
        let seed = 2.0 * number as f64;
        weights.insert(format!("{name}.weight"), fill(shape, seed, bound)?);
        weights.insert(format!("{name}.bias"), fill(&shape[..1], seed + 1.0, bound)?);
    }
    model.update(&weights)?;
    let images = fill(&[8, 28, 28, 1], 100.0, 1.0)?;
    let labels = Array::from_vec((0..8).map(|i| 3 * i % 10).collect::<Vec<i32>>(), [8])?;
    let mut adam = Adam::new(0.001)?;
    for (step, want) in LOSSES.into_iter().enumerate() {
        let ((loss, ()), grads) = nn::value_and_grad(&model, |model| {
            let loss = nn::nll_loss(&model.forward(&images)?, &labels, nn::Reduction::Mean)?;
            Ok((loss, ()))
        })?;
        adam.update(&model, &grads)?;
        nn::eval_all(&[&loss, &model, &adam])?;
        let loss = f64::from(loss.item::<f32>()?);
        // Ten steps in float32 against float64: what rounding does to each loss stays below this.
        assert!((loss - want).abs() < 2e-4 * want.max(1.0), "step {step}: {loss}, not {want}");
    }
    Ok(())
}
