//! The example of the README: a perceptron learns the exclusive or.

use cupola::nn::{self, Layer, Module};
use cupola::optim::{self, Optimizer};
use cupola::{Array, Result, ops};

#[derive(Module)]
struct Perceptron {
    hidden: nn::Linear,
    output: nn::Linear,
}

impl Layer for Perceptron {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.output.forward(&ops::tanh(&self.hidden.forward(x)?)?)
    }
}

fn main() -> Result<()> {
    let x = Array::from_slice(&[0.0f32, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], [4, 2])?;
    let y = Array::from_slice(&[0.0f32, 1.0, 1.0, 0.0], [4, 1])?;
    let model = Perceptron { hidden: nn::Linear::new(2, 8)?, output: nn::Linear::new(8, 1)? };
    let mut adam = optim::Adam::new(0.05)?;
    for step in 0..200 {
        let ((loss, ()), grads) = nn::value_and_grad(&model, |model| {
            Ok((nn::mse_loss(&model.forward(&x)?, &y, nn::Reduction::Mean)?, ()))
        })?;
        adam.update(&model, &grads)?;
        nn::eval_all(&[&loss, &model, &adam])?;
        if step % 50 == 49 {
            println!("step {:3}: loss {:.4}", step + 1, loss.item::<f32>()?);
        }
    }
    Ok(())
}
