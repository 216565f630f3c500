//! Whole training steps: eager and compiled, memory, plans.

use cupola::nn::{self, Layer, Module, Reduction};
use cupola::optim::{self, Optimizer};
use cupola::transform::compile;
use cupola::{Array, DType, Result, ops};

#[derive(Clone, Module)]
struct Net {
    conv: nn::Conv2d,
    norm: nn::BatchNorm,
    pool: nn::MaxPool2d,
    dropout: nn::Dropout,
    linear: nn::Linear,
}

impl Net {
    fn new(dropout: f64) -> Result<Self> {
        Ok(Net {
            conv: nn::Conv2d::new(1, 4, 3)?.padding(1),
            norm: nn::BatchNorm::new(4)?,
            pool: nn::MaxPool2d::new(2),
            dropout: nn::Dropout::new(dropout)?,
            linear: nn::Linear::new(4 * 4 * 4, 3)?,
        })
    }

    /// The same numbers at every run.
    fn fixed() -> Result<Self> {
        let net = Net::new(0.0)?;
        let values = net.parameters().into_iter().map(|(path, value)| {
            let n = value.size();
            let data = (0..n).map(|i| ((i * 37 + n) % 19) as f32 / 19.0 - 0.5).collect();
            Ok((path, Array::from_vec::<f32>(data, value.shape())?))
        });
        net.update(&values.collect::<Result<_>>()?)?;
        Ok(net)
    }
}

impl Layer for Net {
    fn forward(&self, x: &Array) -> Result<Array> {
        let x = self.pool.forward(&nn::relu(&self.norm.forward(&self.conv.forward(x)?)?)?)?;
        let x = self.dropout.forward(&ops::flatten(&x, 1, -1)?)?;
        nn::log_softmax(&self.linear.forward(&x)?, -1)
    }
}

/// 40 images of three kinds: bright at the left, in the middle, at the right.
fn data() -> Result<(Array, Array)> {
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for i in 0..40usize {
        let label = i % 3;
        for pixel in 0..64usize {
            let lit = pixel % 8 / 3 == label;
            images.push(if lit { 1.0 } else { 0.0 } + ((i * 7 + pixel * 13) % 11) as f32 / 22.0);
        }
        labels.push(label as i32);
    }
    Ok((Array::from_vec(images, [40, 8, 8, 1])?, Array::from_vec(labels, [40])?))
}

fn step(model: &Net, optimizer: &mut dyn Optimizer, x: &Array, y: &Array) -> Result<Array> {
    let ((loss, ()), grads) = nn::value_and_grad(model, |model| {
        Ok((nn::nll_loss(&model.forward(x)?, y, Reduction::Mean)?, ()))
    })?;
    optimizer.update(model, &grads)?;
    Ok(loss)
}

fn rows(x: &Array, from: usize, count: usize) -> Result<Array> {
    Ok(ops::split(x, &[from, from + count][..], 0)?.swap_remove(1))
}

#[test]
fn a_small_network_learns() -> Result<()> {
    let (x, y) = data()?;
    let model = Net::new(0.25)?;
    let mut adam = optim::Adam::new(0.01)?;
    for _ in 0..40 {
        let loss = step(&model, &mut adam, &x, &y)?;
        nn::eval_all(&[&loss, &model, &adam])?;
    }
    model.eval();
    let found = ops::argmax(&model.forward(&x)?, -1, false)?;
    let hits = ops::equal(&ops::astype(&found, DType::I32)?, &y)?.to_vec::<bool>()?;
    let share = hits.iter().filter(|&&h| h).count() as f32 / 40.0;
    assert!(share > 0.9, "{share}");
    Ok(())
}

#[test]
fn gradients_agree_with_differences() -> Result<()> {
    let (x, y) = data()?;
    let (x, y) = (rows(&x, 0, 5)?, rows(&y, 0, 5)?);
    let model = Net::fixed()?;
    // Smooth: a difference across the kink of a rectifier is no slope.
    let loss = |model: &Net| {
        let z = nn::gelu(&model.norm.forward(&model.conv.forward(&x)?)?)?;
        let z = ops::flatten(&nn::AvgPool2d::new(2).forward(&z)?, 1, -1)?;
        nn::cross_entropy(&model.linear.forward(&z)?, &y, Reduction::Sum)
    };
    let (_, grads) = nn::value_and_grad(&model, |model| Ok((loss(model)?, ())))?;
    for (path, gradient) in grads.iter() {
        let gradient = gradient.to_vec::<f32>()?;
        let value = model.parameters()[path].clone();
        let data = value.to_vec::<f32>()?;
        for index in [0, data.len() / 2, data.len() - 1] {
            let at = |h: f32| -> Result<f32> {
                let mut moved = data.clone();
                moved[index] += h;
                let moved = Array::from_vec(moved, value.shape())?;
                model.update(&[(path.clone(), moved)].into())?;
                loss(&model)?.item::<f32>()
            };
            let slope = (at(1e-2)? - at(-1e-2)?) / 2e-2;
            model.update(&[(path.clone(), value.clone())].into())?;
            let distance = (slope - gradient[index]).abs();
            assert!(distance < 2e-2 * (1.0 + slope.abs()), "{path}[{index}]: {slope} {gradient:?}");
        }
    }
    Ok(())
}

#[test]
fn frozen_parameters_stay() -> Result<()> {
    let (x, y) = data()?;
    let model = Net::fixed()?;
    model.freeze_where(|path| path.starts_with("conv"));
    let before = model.parameters();
    let mut sgd = optim::Sgd::new(0.1)?;
    step(&model, &mut sgd, &x, &y)?;
    for (path, value) in model.parameters() {
        let same = value.to_vec::<f32>()? == before[&path].to_vec::<f32>()?;
        assert_eq!(same, path.starts_with("conv"), "{path}");
    }
    Ok(())
}

#[test]
fn a_compiled_step_is_the_eager_step() -> Result<()> {
    let (x, y) = data()?;
    let rate = || optim::cosine_decay(0.01, 10, 0.0);
    let eager = Net::fixed()?;
    let mut adam = optim::Adam::new(rate()?)?;
    let mut losses = Vec::new();
    for _ in 0..5 {
        losses.push(step(&eager, &mut adam, &x, &y)?.item::<f32>()?);
        nn::eval_all(&[&eager, &adam])?;
    }
    let compiled = compile(|(model, adam): &mut (Net, optim::Adam), batch: &[Array]| {
        Ok(vec![step(model, adam, &batch[0], &batch[1])?])
    });
    let mut state = (Net::fixed()?, optim::Adam::new(rate()?)?);
    for (i, want) in losses.into_iter().enumerate() {
        let loss = compiled.call(&mut state, &[x.clone(), y.clone()])?.swap_remove(0);
        let loss = loss.item::<f32>()?;
        assert!((loss - want).abs() < 1e-5, "step {i}: {loss} is not {want}");
        nn::eval_all(&[&state])?;
    }
    // Moments appear in the first trace, so a second one follows, and no more.
    assert_eq!(compiled.traces(), 1);
    assert_eq!(state.1.state().step().item::<i32>()?, 5);
    for (path, value) in state.0.state() {
        let want = eager.state()[&path].to_vec::<f32>()?;
        for (g, w) in value.to_vec::<f32>()?.iter().zip(&want) {
            assert!((g - w).abs() < 1e-4 * (1.0 + w.abs()), "{path}: {g} is not {w}");
        }
    }
    Ok(())
}

#[test]
fn what_a_compiled_step_depends_on_makes_it_trace_again() -> Result<()> {
    let (x, _) = data()?;
    let forward =
        compile(|model: &mut Net, x: &[Array]| Ok(vec![ops::exp(&model.forward(&x[0])?)?]));
    let mut model = Net::new(0.5)?;
    let call = |model: &mut Net| forward.call(model, std::slice::from_ref(&x));
    let first = call(&mut model)?.swap_remove(0).to_vec::<f32>()?;
    let second = call(&mut model)?.swap_remove(0).to_vec::<f32>()?;
    assert_ne!(first, second, "dropout draws anew at every call");
    assert_eq!(forward.traces(), 1);
    model.eval();
    let first = call(&mut model)?.swap_remove(0).to_vec::<f32>()?;
    let second = call(&mut model)?.swap_remove(0).to_vec::<f32>()?;
    assert_eq!(first, second);
    assert_eq!(forward.traces(), 2);
    Ok(())
}

#[test]
fn a_new_learning_rate_reaches_a_compiled_step() -> Result<()> {
    let model = nn::Param::new(Array::scalar(0.0f32));
    let step = compile(|(model, sgd): &mut ((nn::Param,), optim::Sgd), _: &[Array]| {
        let (_, grads) = nn::value_and_grad(&*model, |(p,)| Ok((p.get(), ())))?;
        sgd.update(&*model, &grads)?;
        Ok(vec![])
    });
    let mut state = ((model.clone(),), optim::Sgd::new(optim::constant(1.0)?)?);
    step.call(&mut state, &[])?;
    step.call(&mut state, &[])?;
    state.1.set_learning_rate(0.25)?;
    step.call(&mut state, &[])?;
    state.1.set_learning_rate(0.5)?;
    step.call(&mut state, &[])?;
    assert_eq!(model.get().item::<f32>()?, -2.75);
    // The second rate is an array like the first: nothing is traced for it.
    assert_eq!(step.traces(), 2);
    Ok(())
}
