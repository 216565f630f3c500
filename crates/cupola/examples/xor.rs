//! The example of the README: a network learns the exclusive or.

use cupola::nn::{self, Layer, Linear, Sequential, Tanh};
use cupola::optim::{Adam, Optimizer};
use cupola::{Array, Result};

fn main() -> Result<()> {
    // The exclusive or, learnt by a network of one hidden layer.
    let x = Array::from_slice(&[0.0f32, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], [4, 2])?;
    let y = Array::from_slice(&[0.0f32, 1.0, 1.0, 0.0], [4, 1])?;
    let model = Sequential::new().push(Linear::new(2, 8)?).push(Tanh).push(Linear::new(8, 1)?);
    let mut adam = Adam::new(0.05)?;
    for step in 1..=200 {
        let ((loss, ()), grads) = nn::value_and_grad(&model, |model| {
            Ok((nn::mse_loss(&model.forward(&x)?, &y, nn::Reduction::Mean)?, ()))
        })?;
        adam.update(&model, &grads)?;
        // Nothing has been computed yet: now one plan does all of it.
        nn::eval_all(&[&loss, &model, &adam])?;
        if step % 50 == 0 {
            println!("step {step}: loss {:.4}", loss.item::<f32>()?);
        }
    }
    println!("{:.2}", model.forward(&x)?);
    Ok(())
}
