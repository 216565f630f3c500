//! Losses against PyTorch.

use cupola::nn::{self, CrossEntropy, Param, Reduction};
use cupola::{Array, DType, Result, ops};

use crate::reference::{array, expect, indices};

const REDUCTIONS: [(&str, Reduction); 3] =
    [("0", Reduction::None), ("1", Reduction::Sum), ("2", Reduction::Mean)];

fn input(key: &str) -> Array {
    array(&["losses", key])
}

fn check(name: &str, loss: impl Fn(Reduction) -> Result<Array>) -> Result<()> {
    for (index, reduction) in REDUCTIONS {
        expect(name, &loss(reduction)?, &["losses", name, index], 1e-6)?;
    }
    Ok(())
}

fn gradient(x: Array, loss: impl Fn(&Array) -> Result<Array>) -> Result<Array> {
    let x = Param::new(x);
    let (_, grads) = nn::value_and_grad(&(x,), |(x,)| Ok((loss(&x.get())?, ())))?;
    Ok(grads["0"].clone())
}

#[test]
fn losses_are_pytorchs() -> Result<()> {
    let (x, t, p) = (input("logits"), indices(&["losses", "targets"]), input("probabilities"));
    let (a, b, w) = (input("a"), input("b"), input("weights"));
    let (prob, yes) = (input("prob"), input("yes"));
    check("nll", |r| nn::nll_loss(&nn::log_softmax(&x, -1)?, &t, r))?;
    check("cross_entropy", |r| nn::cross_entropy(&x, &t, r))?;
    let smooth = || CrossEntropy::new().class_weights(w.clone()).label_smoothing(0.2);
    check("cross_entropy_smooth", |r| nn::cross_entropy(&x, &t, smooth().reduction(r)))?;
    let soft = |r| CrossEntropy::new().label_smoothing(0.1).reduction(r);
    check("cross_entropy_probabilities", |r| nn::cross_entropy(&x, &p, soft(r)))?;
    check("mse", |r| nn::mse_loss(&a, &b, r))?;
    check("l1", |r| nn::l1_loss(&a, &b, r))?;
    check("huber", |r| nn::huber_loss(&a, &b, 0.7, r))?;
    check("smooth_l1", |r| nn::smooth_l1_loss(&a, &b, 0.7, r))?;
    check("bce", |r| nn::binary_cross_entropy(&prob, &yes, r))?;
    check("bce_logits", |r| nn::binary_cross_entropy_with_logits(&a, &yes, r))?;
    check("kl_div", |r| nn::kl_div_loss(&nn::log_softmax(&x, -1)?, &ops::log(&p)?, r))?;
    let dx = gradient(x, |x| nn::cross_entropy(x, &t, smooth()))?;
    expect("cross_entropy_grad", &dx, &["losses", "cross_entropy_grad"], 1e-6)?;
    let da = gradient(a.clone(), |a| nn::huber_loss(a, &b, 0.7, Reduction::Mean))?;
    expect("huber_grad", &da, &["losses", "huber_grad"], 1e-6)?;
    let da = gradient(a, |a| nn::binary_cross_entropy_with_logits(a, &yes, Reduction::Mean))?;
    expect("bce_logits_grad", &da, &["losses", "bce_logits_grad"], 1e-6)
}

#[test]
fn losses_refuse_what_does_not_fit() -> Result<()> {
    let x = ops::zeros([4, 3], DType::F32)?;
    let wrong = ops::zeros([3], DType::I32)?;
    let text = nn::nll_loss(&x, &wrong, Reduction::Mean).unwrap_err().to_string();
    assert!(text.contains("int32[3]") && text.contains("float32[4, 3]"), "{text}");
    assert!(nn::mse_loss(&x, &ops::zeros([4, 1], DType::F32)?, Reduction::Mean).is_err());
    let t = ops::zeros([4], DType::I32)?;
    assert!(nn::cross_entropy(&x, &t, CrossEntropy::new().label_smoothing(1.5)).is_err());
    let weights = ops::ones([4], DType::F32)?;
    assert!(nn::cross_entropy(&x, &t, CrossEntropy::new().class_weights(weights)).is_err());
    assert!(nn::huber_loss(&x, &x, 0.0, Reduction::Mean).is_err());
    Ok(())
}

#[test]
fn certain_models_have_finite_gradients() -> Result<()> {
    let p = Array::from_slice(&[0.0f32, 0.0, 1.0, 1.0], [4])?;
    let t = Array::from_slice(&[0.0f32, 1.0, 0.0, 1.0], [4])?;
    let dp = gradient(p, |p| nn::binary_cross_entropy(p, &t, Reduction::Sum))?;
    // Of the two logarithms the finite one still has its slope: 1/(1 − p) at 0 and −1/p at 1.
    assert_eq!(dp.to_vec::<f32>()?, [1.0, 0.0, 0.0, -1.0]);
    let x = Array::from_slice(&[0.0, f32::NEG_INFINITY], [1, 2])?;
    let sure = Array::from_slice(&[1.0f32, 0.0], [1, 2])?;
    let dx = gradient(x.clone(), |x| nn::cross_entropy(x, &sure, Reduction::Sum))?;
    assert_eq!(dx.to_vec::<f32>()?, [0.0, 0.0]);
    let y = Array::from_slice(&[-0.5f32, -1.0], [1, 2])?;
    let dt = gradient(x, |t| nn::kl_div_loss(&y, t, Reduction::Sum))?;
    assert!(dt.to_vec::<f32>()?.iter().all(|v| v.is_finite()));
    Ok(())
}

#[test]
fn half_losses_stay_half_and_certain_models_lose_nothing() -> Result<()> {
    let x = ops::astype(&input("logits"), DType::F16)?;
    let t = indices(&["losses", "targets"]);
    assert_eq!(nn::cross_entropy(&x, &t, Reduction::Mean)?.dtype(), DType::F16);
    let sure = Array::from_slice(&[0.0, f32::NEG_INFINITY], [1, 2])?;
    let p = Array::from_slice(&[1.0f32, 0.0], [1, 2])?;
    assert_eq!(nn::cross_entropy(&sure, &p, Reduction::Mean)?.item::<f32>()?, 0.0);
    Ok(())
}
