//! Optimisers and schedules against PyTorch and MLX.

use std::collections::BTreeMap;

use cupola::nn::{self, Gradients, Param};
use cupola::optim::{self, LearningRate, Optimizer};
use cupola::{Array, DType, Result, ops};

use crate::reference::{array, expect, numbers, recorded};

/// Five steps on Σ s·(sin p + p²/2).
fn check(name: &str, mut optimizer: impl Optimizer) -> Result<()> {
    let model = (Param::new(array(&["optimizers", "start"])),);
    let scale = array(&["optimizers", "scale"]);
    for step in ["0", "1", "2", "3", "4"] {
        let (_, grads) = nn::value_and_grad(&model, |(p,)| {
            let p = p.get();
            let y = ops::add(&ops::sin(&p)?, &(ops::square(&p)? * 0.5))?;
            Ok((ops::sum(&(&y * &scale), (), false)?, ()))
        })?;
        optimizer.update(&model, &grads)?;
        nn::eval_all(&[&model, &optimizer])?;
        let path = ["optimizers", "runs", name, step];
        expect(&format!("{name} step {step}"), &model.0.get(), &path, 2e-6)?;
    }
    assert_eq!(optimizer.state().step().item::<i32>()?, 5);
    Ok(())
}

#[test]
fn five_steps_are_pytorchs() -> Result<()> {
    use optim::{Adagrad, Adam, AdamW, RmsProp, Sgd};
    check("sgd", Sgd::new(0.1)?)?;
    let momentum = Sgd::new(0.1)?.momentum(0.9)?;
    check("sgd_momentum", momentum.clone().dampening(0.3)?.weight_decay(0.05)?)?;
    check("sgd_nesterov", momentum.nesterov(true))?;
    check("adam", Adam::new(0.1)?)?;
    check("adam_options", Adam::new(0.05)?.betas(0.8, 0.95)?.eps(1e-4)?.weight_decay(0.1)?)?;
    check("adamw", AdamW::new(0.1)?.weight_decay(0.1)?)?;
    check("rmsprop", RmsProp::new(0.05)?)?;
    let options = RmsProp::new(0.05)?.alpha(0.9)?.momentum(0.8)?.weight_decay(0.1)?;
    check("rmsprop_momentum", options)?;
    check("adagrad", Adagrad::new(0.1)?.weight_decay(0.1)?)
}

#[test]
fn five_steps_are_mlxs() -> Result<()> {
    check("lion", optim::Lion::new(0.05)?.weight_decay(0.1)?)?;
    check("adam_uncorrected", optim::Adam::new(0.01)?.bias_correction(false))
}

#[test]
fn schedules_are_mlxs() -> Result<()> {
    let joined = optim::join_schedules(
        vec![
            optim::linear_schedule(0.0, 0.1, 5)?,
            optim::cosine_decay(0.1, 10, 0.0)?,
            optim::step_decay(1.0, 0.5, 2)?,
        ],
        &[5, 12],
    )?;
    let schedules = [
        ("exponential_decay", optim::exponential_decay(0.1, 0.9)?),
        ("step_decay", optim::step_decay(0.1, 0.5, 4)?),
        ("cosine_decay", optim::cosine_decay(0.1, 10, 0.01)?),
        ("linear_schedule", optim::linear_schedule(0.0, 0.1, 6)?),
        ("join_schedules", joined),
    ];
    for (name, schedule) in schedules {
        for (step, want) in numbers(recorded(&["schedules", name])).into_iter().enumerate() {
            let got = schedule(&Array::scalar(step as i32))?.item::<f32>()?;
            assert!((got - want).abs() < 1e-7, "{name} at {step} is {got}, not {want}");
        }
    }
    Ok(())
}

#[test]
fn a_schedule_counts_from_zero_and_can_be_replaced() -> Result<()> {
    let model = (Param::new(Array::scalar(1.0f32)),);
    let mut optimizer = optim::Sgd::new(optim::linear_schedule(1.0, 0.0, 4)?)?;
    let grads: Gradients = BTreeMap::from([("0".to_owned(), Array::scalar(1.0f32))]).into();
    let mut rates = Vec::new();
    for _ in 0..3 {
        optimizer.update(&model, &grads)?;
        rates.push(optimizer.learning_rate().item::<f32>()?);
    }
    assert_eq!(rates, [1.0, 0.75, 0.5]);
    optimizer.set_learning_rate(0.25)?;
    optimizer.update(&model, &grads)?;
    assert_eq!(model.0.get().item::<f32>()?, 1.0 - 2.25 - 0.25);
    Ok(())
}

#[test]
fn arguments_out_of_range_are_named() -> Result<()> {
    let name = |result: Result<()>| result.unwrap_err().to_string();
    for rate in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(name(optim::Adam::new(rate).map(drop)).contains("learning rate"));
    }
    assert!(name(optim::Adam::new(0.1)?.betas(0.9, 1.0).map(drop)).contains("beta 2"));
    assert!(name(optim::AdamW::new(0.1)?.weight_decay(-1.0).map(drop)).contains("weight decay"));
    assert!(name(optim::Sgd::new(0.1)?.momentum(1.0).map(drop)).contains("momentum"));
    assert!(name(optim::RmsProp::new(0.1)?.eps(f64::NAN).map(drop)).contains("eps"));
    assert!(name(optim::cosine_decay(0.1, 0, 0.0).map(drop)).contains("steps"));
    assert!(optim::join_schedules(vec![], &[]).is_err());
    let model = (Param::new(Array::scalar(1.0f32)),);
    let grads = |path: &str, g: Array| Gradients::from(BTreeMap::from([(path.to_owned(), g)]));
    let mut sgd = optim::Sgd::new(0.1)?.nesterov(true);
    assert!(name(sgd.update(&model, &grads("0", Array::scalar(1.0f32)))).contains("momentum"));
    sgd = sgd.nesterov(false);
    assert!(
        name(sgd.update(&model, &grads("x", Array::scalar(1.0f32)))).contains("no parameter x")
    );
    let wrong = ops::zeros([2], DType::F32)?;
    assert!(name(sgd.update(&model, &grads("0", wrong))).contains("[2]"));
    assert!(matches!(LearningRate::from(0.5), LearningRate::Constant(0.5)));
    Ok(())
}

#[test]
fn half_parameters_stay_half_and_finite() -> Result<()> {
    for dtype in [DType::F16, DType::BF16] {
        let model = (Param::new(ops::ones([3], dtype)?),);
        let mut adam = optim::Adam::new(1e-2)?;
        let zero: Gradients = BTreeMap::from([("0".to_owned(), ops::zeros([3], dtype)?)]).into();
        adam.update(&model, &zero)?;
        // 1e-8 is 0 in float16: the quotient must not be 0/0.
        let value = ops::astype(&model.0.get(), DType::F32)?.to_vec::<f32>()?;
        assert_eq!((model.0.get().dtype(), value), (dtype, vec![1.0; 3]));
        assert_eq!(adam.leaves()["0.m"].dtype(), dtype);
    }
    Ok(())
}

#[test]
fn a_checkpoint_continues_as_if_nothing_had_happened() -> Result<()> {
    let run = |stop: Option<usize>| -> Result<Vec<f32>> {
        let model = (Param::new(array(&["optimizers", "start"])),);
        let mut adam = optim::Adam::new(optim::cosine_decay(0.1, 8, 0.0)?)?;
        for step in 0..6 {
            let (_, grads) = nn::value_and_grad(&model, |(p,)| {
                Ok((ops::sum(&ops::square(&p.get())?, (), false)?, ()))
            })?;
            adam.update(&model, &grads)?;
            if stop == Some(step) {
                let leaves = adam.leaves();
                adam = optim::Adam::new(optim::cosine_decay(0.1, 8, 0.0)?)?;
                adam.load(leaves)?;
            }
        }
        model.0.get().to_vec::<f32>()
    };
    assert_eq!(run(None)?, run(Some(2))?);
    let lacking = optim::Adam::new(0.1)?.load(BTreeMap::new()).unwrap_err().to_string();
    assert!(lacking.contains("step is missing"), "{lacking}");
    Ok(())
}

#[test]
fn clipping_scales_all_gradients_alike() -> Result<()> {
    let grads: Gradients = BTreeMap::from([
        ("a".to_owned(), Array::from_slice(&[3.0f32], [1])?),
        ("b".to_owned(), ops::astype(&Array::from_slice(&[4.0f32], [1])?, DType::F16)?),
    ])
    .into();
    let (clipped, norm) = optim::clip_grad_norm(&grads, 2.5)?;
    assert_eq!(norm.item::<f32>()?, 5.0);
    assert!((clipped["a"].item::<f32>()? - 1.5).abs() < 1e-5);
    assert_eq!(clipped["b"].dtype(), DType::F16);
    let (same, _) = optim::clip_grad_norm(&grads, 10.0)?;
    assert_eq!(same["a"].item::<f32>()?, 3.0);
    assert!(optim::clip_grad_norm(&grads, f64::NAN).is_err());
    assert_eq!(optim::clip_grad_norm(&Gradients::default(), 1.0)?.1.item::<f32>()?, 0.0);
    Ok(())
}
