//! A training loop reaches a steady state: no new plans, no new memory.
//!
//! Alone in its program, because plans and memory are counted for the whole process.

use cupola::nn::{self, Layer, Module, Reduction};
use cupola::optim::{self, Optimizer};
use cupola::{Array, DType, Device, Result, backend, ops, plan};

#[derive(Module)]
struct Net {
    conv: nn::Conv2d,
    norm: nn::BatchNorm,
    pool: nn::MaxPool2d,
    dropout: nn::Dropout,
    linear: nn::Linear,
}

impl Layer for Net {
    fn forward(&self, x: &Array) -> Result<Array> {
        let x = self.pool.forward(&nn::relu(&self.norm.forward(&self.conv.forward(x)?)?)?)?;
        let x = self.dropout.forward(&ops::flatten(&x, 1, -1)?)?;
        nn::log_softmax(&self.linear.forward(&x)?, -1)
    }
}

fn rows(x: &Array, from: usize, count: usize) -> Result<Array> {
    Ok(ops::split(x, &[from, from + count][..], 0)?.swap_remove(1))
}

#[test]
fn a_thousand_steps_make_no_new_plan_and_keep_no_memory() -> Result<()> {
    let model = Net {
        conv: nn::Conv2d::new(1, 4, 3)?.padding(1),
        norm: nn::BatchNorm::new(4)?,
        pool: nn::MaxPool2d::new(2),
        dropout: nn::Dropout::new(0.5)?,
        linear: nn::Linear::new(4 * 4 * 4, 3)?,
    };
    let mut adam = optim::Adam::new(optim::cosine_decay(0.01, 1000, 0.0)?)?;
    let x = ops::random::uniform(0.0, 1.0, [40, 8, 8, 1], DType::F32, None)?;
    let y = ops::random::randint(0, 3, [40], DType::I32, None)?;
    nn::eval_all(&[&x, &y, &model, &adam])?;
    let device = backend::backend(Device::CPU)?;
    // Two full batches and a tail of 8 rows make an epoch.
    let batches = [(0, 16), (16, 16), (32, 8)];
    let (mut planned, mut used) = (None, Vec::new());
    for step in 0..1000 {
        let (from, count) = batches[step % 3];
        let (x, y) = (rows(&x, from, count)?, rows(&y, from, count)?);
        let ((loss, ()), grads) = nn::value_and_grad(&model, |model| {
            Ok((nn::nll_loss(&model.forward(&x)?, &y, Reduction::Mean)?, ()))
        })?;
        let (grads, _) = optim::clip_grad_norm(&grads, 1.0)?;
        optimizer_step(&mut adam, &model, &grads, &loss)?;
        // The first step makes the moments; then come a full batch and the first tail.
        if step == 2 {
            planned = Some(plan::cache::stats().misses);
        }
        if step >= 3 {
            assert_eq!(Some(plan::cache::stats().misses), planned, "step {step} planned anew");
        }
        drop((loss, grads));
        if step % 3 == 0 {
            used.push(device.memory().active);
        }
    }
    assert!(used[3..].iter().all(|&bytes| bytes == used[3]), "{used:?}");
    Ok(())
}

fn optimizer_step(
    adam: &mut optim::Adam,
    model: &Net,
    grads: &nn::Gradients,
    loss: &Array,
) -> Result<()> {
    adam.update(model, grads)?;
    nn::eval_all(&[loss, model, adam])
}
