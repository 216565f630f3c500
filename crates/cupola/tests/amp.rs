//! Mixed precision: what is cast, under every transform, and what training makes of it.

use cupola::amp::{self, Category, GradScaler, Policy};
use cupola::nn::{self, Layer, Module, Reduction};
use cupola::optim::{Adam, Optimizer, Sgd};
use cupola::transform::{checkpoint, compile, custom_function, grad, vmap};
use cupola::{Array, DType, Result, ops, plan, tree};

fn bf16() -> Policy {
    Policy::new(DType::BF16).expect("a half type")
}

fn matrix(seed: usize, rows: usize, columns: usize) -> Array {
    let value = |i: usize| ((i * 37 + seed * 11) % 23) as f32 / 23.0 - 0.5;
    Array::from_vec((0..rows * columns).map(value).collect::<Vec<_>>(), [rows, columns])
        .expect("it fits")
}

#[test]
fn operations_are_cast_as_the_lists_say() -> Result<()> {
    let (x, half) = (matrix(0, 4, 4), ops::astype(&matrix(1, 4, 4), DType::BF16)?);
    let image = ops::reshape(&x, [1, 4, 4, 1])?;
    let kernel = ops::reshape(&x, [4, 2, 2, 1])?;
    amp::autocast(Some(&bf16()), || {
        let heads = ops::reshape(&x, [1, 1, 4, 4])?;
        let attention = ops::AttentionOptions::new(0.5);
        for (lower, name) in [
            (ops::matmul(&x, &x)?, "matmul"),
            (ops::addmm(&x, &x, &x, 1.0, 1.0)?, "addmm"),
            (ops::conv2d(&image, &kernel, &ops::ConvOptions::new())?, "conv2d"),
            (ops::einsum("ij,jk->ik", &[&x, &half])?, "einsum"),
            (
                ops::scaled_dot_product_attention(&heads, &heads, &heads, &attention)?,
                "scaled_dot_product_attention",
            ),
            (nn::Linear::new(4, 3)?.forward(&x)?, "a layer with its bias"),
            (nn::Conv2d::new(1, 2, 2)?.forward(&image)?, "a convolution with its bias"),
            (ops::layer_norm(&x, None, None, 1e-5)?, "layer_norm"),
            (ops::rms_norm(&half, None, 1e-5)?, "rms_norm"),
            (nn::Embedding::new(5, 4)?.forward(&Array::from_slice(&[3, 0], [2])?)?, "an embedding"),
        ] {
            assert_eq!(lower.dtype(), DType::BF16, "{name}");
        }
        for (float, name) in [
            (ops::softmax(&half, -1)?, "softmax"),
            (ops::sum(&half, (), false)?, "sum"),
            (ops::exp(&half)?, "exp"),
            (ops::power(&half, 3)?, "power"),
            (nn::mse_loss(&half, &half, Reduction::Mean)?, "mse_loss"),
            (ops::concatenate(&[&x, &half], 0)?, "concatenate"),
        ] {
            assert_eq!(float.dtype(), DType::F32, "{name}");
        }
        for (same, name) in [
            (ops::tanh(&half)?, "tanh"),
            (ops::add(&half, &half)?, "add"),
            (nn::gelu(&half)?, "gelu"),
            (nn::silu(&half)?, "silu"),
        ] {
            assert_eq!(same.dtype(), DType::BF16, "{name}");
        }
        let wide = ops::astype(&x, DType::F64)?;
        assert_eq!(ops::matmul(&wide, &wide)?.dtype(), DType::F64);
        let whole = ops::astype(&x, DType::I32)?;
        assert_eq!(ops::sum(&whole, (), false)?.dtype(), DType::I32);
        Ok(())
    })
}

#[test]
fn a_norm_sees_all_of_what_it_is_given() -> Result<()> {
    // Beyond `float16`, and apart by less than a half type tells.
    let x = Array::from_slice(&[100_000.0f32, 100_002.0], [1, 2])?;
    let policy = Policy::new(DType::F16)?;
    let found = amp::autocast(Some(&policy), || {
        let group = ops::group_norm(&x, 1, None, None, 0.0)?;
        Ok::<_, cupola::Error>([ops::layer_norm(&x, None, None, 0.0)?, group])
    })?;
    for y in found {
        assert_eq!(y.dtype(), DType::F16);
        assert_eq!(ops::astype(&y, DType::F32)?.to_vec::<f32>()?, [-1.0, 1.0]);
    }
    Ok(())
}

#[test]
fn lists_can_be_read_and_changed() -> Result<()> {
    let policy = bf16();
    assert!(policy.ops(Category::Float32).any(|op| op == "softmax"));
    let policy = policy.with("tanh", Category::Float32)?.with("matmul", Category::Unchanged)?;
    let x = ops::astype(&matrix(0, 2, 2), DType::F16)?;
    amp::autocast(Some(&policy), || {
        assert_eq!(ops::tanh(&x)?.dtype(), DType::F32);
        assert_eq!(ops::matmul(&x, &x)?.dtype(), DType::F16);
        Ok::<_, cupola::Error>(())
    })?;
    let error = bf16().with("matmull", Category::Lower).expect_err("no such operation");
    assert!(error.to_string().contains("\"matmull\""), "{error}");
    assert!(Policy::new(DType::I32).is_err());
    Ok(())
}

#[test]
fn scopes_nest_and_end() -> Result<()> {
    let x = matrix(0, 2, 2);
    let product = || ops::matmul(&x, &x).map(|y| y.dtype());
    amp::autocast(Some(&bf16()), || {
        assert_eq!(product()?, DType::BF16);
        amp::autocast(None, || product().map(|dtype| assert_eq!(dtype, DType::F32)))?;
        amp::autocast(Some(&Policy::new(DType::F16)?), || {
            product().map(|dtype| assert_eq!(dtype, DType::F16))
        })?;
        assert_eq!(product()?, DType::BF16);
        let elsewhere = std::thread::scope(|s| s.spawn(product).join().expect("no panic"));
        assert_eq!(elsewhere?, DType::F32, "a scope is its thread's");
        Ok::<_, cupola::Error>(())
    })?;
    let caught = std::panic::catch_unwind(|| amp::autocast(Some(&bf16()), || panic!("on purpose")));
    assert!(caught.is_err());
    assert_eq!(product()?, DType::F32);
    Ok(())
}

/// The gradient of a small network by hand: its dtype is that of the parameter, and it is the same
/// wherever the derivative is taken.
#[test]
fn gradients_follow_what_was_recorded() -> Result<()> {
    let (x, w) = (matrix(0, 3, 4), matrix(1, 4, 5));
    let loss = |v: &[Array]| {
        let y = ops::matmul(&x, &v[0])?;
        Ok(vec![ops::sum(&ops::square(&ops::softmax(&y, -1)?)?, (), false)?])
    };
    let cast = |v: &[Array]| amp::autocast(Some(&bf16()), || loss(v));
    // The whole transform in the scope, and the scope in the transform.
    let inside = grad(cast, &[0])(&[w.clone()])?;
    let outside = amp::autocast(Some(&bf16()), || grad(loss, &[0])(&[w.clone()]))?;
    assert_eq!(inside[0].dtype(), DType::F32);
    assert_eq!(inside[0].to_vec::<f32>()?, outside[0].to_vec::<f32>()?);
    let by_hand = |v: &[Array]| {
        let half = |a: &Array| ops::astype(a, DType::BF16);
        let y = ops::astype(&ops::matmul(&half(&x)?, &half(&v[0])?)?, DType::F32)?;
        Ok(vec![ops::sum(&ops::square(&ops::softmax(&y, -1)?)?, (), false)?])
    };
    let by_hand = grad(by_hand, &[0])(&[w.clone()])?;
    assert_eq!(inside[0].to_vec::<f32>()?, by_hand[0].to_vec::<f32>()?);
    // A second derivative, too.
    let slope = |v: &[Array]| {
        let first = grad(cast, &[0])(v)?;
        Ok(vec![ops::sum(&ops::square(&first[0])?, (), false)?])
    };
    let second = grad(slope, &[0])(&[w])?;
    assert!(second[0].to_vec::<f32>()?.iter().all(|v| v.is_finite()));
    Ok(())
}

#[test]
fn compiled_functions_are_traced_for_each_policy() -> Result<()> {
    let x = matrix(0, 3, 3);
    let product = compile(|_: &mut (), v: &[Array]| Ok(vec![ops::matmul(&v[0], &v[0])?]));
    let call = || product.call(&mut (), &[x.clone()]).map(|y| y[0].clone());
    assert_eq!(call()?.dtype(), DType::F32);
    let half = amp::autocast(Some(&bf16()), call)?;
    assert_eq!(half.dtype(), DType::BF16);
    let eager = amp::autocast(Some(&bf16()), || ops::matmul(&x, &x))?;
    assert_eq!(half.to_bytes()?, eager.to_bytes()?);
    assert_eq!(call()?.dtype(), DType::F32);
    amp::autocast(Some(&bf16()), call)?;
    assert_eq!(product.traces(), 2);
    let other = bf16().with("matmul", Category::Float32)?;
    assert_eq!(amp::autocast(Some(&other), call)?.dtype(), DType::F32);
    assert_eq!(product.traces(), 3);
    Ok(())
}

#[test]
fn checkpoints_compute_again_as_they_did() -> Result<()> {
    let (x, w) = (matrix(0, 3, 4), matrix(1, 4, 4));
    let block = |v: &[Array]| Ok(vec![ops::tanh(&ops::matmul(&v[0], &v[1])?)?]);
    let loss = |f: &dyn Fn(&[Array]) -> Result<Vec<Array>>, v: &[Array]| {
        let y = amp::autocast(Some(&bf16()), || f(v))?;
        assert_eq!(y[0].dtype(), DType::BF16);
        Ok(vec![ops::sum(&y[0], (), false)?])
    };
    let inputs = [x, w];
    // The backward pass is recorded after the scope has ended.
    let kept = grad(|v: &[Array]| loss(&block, v), &[1])(&inputs)?;
    let again = grad(|v: &[Array]| loss(&checkpoint(block), v), &[1])(&inputs)?;
    assert_eq!(kept[0].to_vec::<f32>()?, again[0].to_vec::<f32>()?);
    Ok(())
}

#[test]
fn derivatives_that_users_give_have_the_precision_of_their_function() -> Result<()> {
    let (x, w) = (matrix(0, 3, 4), matrix(1, 4, 4));
    let product =
        custom_function(|v: &[Array]| Ok(vec![ops::matmul(&v[0], &v[1])?])).with_vjp(|v, _, ct| {
            let first = ops::matmul(&ct[0], &ops::transpose(&v[1], ())?)?;
            let second = ops::matmul(&ops::transpose(&v[0], ())?, &ct[0])?;
            assert_eq!(first.dtype(), DType::BF16, "recorded under the policy of the function");
            Ok(vec![ops::astype(&first, DType::F32)?, ops::astype(&second, DType::F32)?])
        });
    let loss = |v: &[Array]| {
        let y = amp::autocast(Some(&bf16()), || product.call(v))?;
        Ok(vec![ops::sum(&y[0], (), false)?])
    };
    let slopes = grad(loss, &[0, 1])(&[x, w])?;
    assert_eq!(slopes[1].dtype(), DType::F32);
    assert!(slopes[1].to_vec::<f32>()?.iter().all(|v| v.is_finite()));
    Ok(())
}

#[test]
fn batches_are_cast_as_their_examples() -> Result<()> {
    let (x, w) = (matrix(0, 5, 4), matrix(1, 4, 3));
    let row = |v: &[Array]| Ok(vec![ops::softmax(&ops::matmul(&v[0], &w)?, -1)?]);
    let all = amp::autocast(Some(&bf16()), || vmap(row, &[Some(0)], &[0])(&[x.clone()]))?;
    let whole = amp::autocast(Some(&bf16()), || row(&[x]))?;
    assert_eq!(all[0].dtype(), DType::F32);
    assert_eq!(all[0].to_vec::<f32>()?, whole[0].to_vec::<f32>()?);
    Ok(())
}

/// Two products read one parameter: it is cast once.
#[test]
fn a_parameter_is_cast_once() -> Result<()> {
    let (x, w) = (matrix(0, 8, 8), matrix(1, 8, 8));
    cupola::eval(&[x.clone(), w.clone()])?;
    let twice = amp::autocast(Some(&bf16()), || {
        let y = ops::matmul(&ops::matmul(&x, &w)?, &w)?;
        Ok::<_, cupola::Error>(plan::explain(&[y])?.to_string())
    })?;
    assert_eq!(twice.matches("map ").count(), 2, "one cast of x, one of w:\n{twice}");
    Ok(())
}

#[test]
fn a_transposed_weight_is_cast_as_it_lies() -> Result<()> {
    let (x, w) = (matrix(0, 4, 6), matrix(1, 3, 6));
    cupola::eval(&[x.clone(), w.clone()])?;
    let twice = |w: &Array| {
        let wt = ops::transpose(w, ())?;
        let y = amp::autocast(Some(&bf16()), || {
            ops::add(&ops::matmul(&x, &wt)?, &ops::matmul(&x, &ops::transpose(w, ())?)?)
        })?;
        let text = plan::explain(std::slice::from_ref(&y))?.to_string();
        Ok::<_, cupola::Error>((text, y.to_vec::<half::bf16>()?))
    };
    // As a transform or a computation that is still to be done records it: cast once, in its own order.
    let (text, lazy) = twice(&ops::add(&w, 0.0)?)?;
    assert!(text.contains("map [3, 6]") && !text.contains("[6, 3]"), "{text}");
    assert_eq!(text.matches("map ").count(), 2, "one cast of x, one of w:\n{text}");
    // Two views of what is there are two arrays.
    let (_, ready) = twice(&w)?;
    assert_eq!(lazy, ready);
    // One view is cast once.
    let wt = ops::transpose(&w, ())?;
    let once =
        amp::autocast(Some(&bf16()), || ops::add(&ops::matmul(&x, &wt)?, &ops::matmul(&x, &wt)?))?;
    let text = plan::explain(&[once])?.to_string();
    assert_eq!(text.matches("map ").count(), 2, "{text}");
    Ok(())
}

#[test]
fn a_layer_has_a_policy_of_its_own() -> Result<()> {
    let model = nn::Sequential::new()
        .push(nn::Linear::new(4, 4)?)
        .push(amp::WithPolicy::new(nn::Linear::new(4, 2)?, Some(Policy::new(DType::F32)?)));
    assert!(model.parameters().contains_key("layers.1.weight"));
    let y = amp::autocast(Some(&bf16()), || model.forward(&matrix(0, 3, 4)))?;
    assert_eq!(y.dtype(), DType::F32);
    Ok(())
}

#[derive(Clone, Module)]
struct Gpt {
    tokens: nn::Embedding,
    places: nn::Embedding,
    blocks: nn::TransformerEncoder,
    head: nn::Linear,
}

impl Gpt {
    fn new() -> Result<Self> {
        let options = nn::TransformerOptions::new(32, 4).mlp_dims(64);
        Ok(Gpt {
            tokens: nn::Embedding::new(11, 32)?,
            places: nn::Embedding::new(16, 32)?,
            blocks: nn::TransformerEncoder::new(2, &options)?,
            head: nn::Linear::new(32, 11)?,
        })
    }
}

impl Layer for Gpt {
    fn forward(&self, x: &Array) -> Result<Array> {
        let places = self.places.forward(&ops::arange(0, 16, 1)?)?;
        let x = ops::add(&self.tokens.forward(x)?, &places)?;
        self.head.forward(&self.blocks.forward_masked(&x, ops::AttentionMask::Causal)?)
    }
}

#[derive(Clone, Module)]
struct Cnn {
    first: nn::Conv2d,
    norm: nn::BatchNorm,
    second: nn::Conv2d,
    pool: nn::MaxPool2d,
    head: nn::Linear,
}

impl Cnn {
    fn new() -> Result<Self> {
        Ok(Cnn {
            first: nn::Conv2d::new(1, 8, 3)?.padding(1),
            norm: nn::BatchNorm::new(8)?,
            second: nn::Conv2d::new(8, 8, 3)?.padding(1),
            pool: nn::MaxPool2d::new(2),
            head: nn::Linear::new(32, 4)?,
        })
    }
}

impl Layer for Cnn {
    fn forward(&self, x: &Array) -> Result<Array> {
        let y = self.pool.forward(&nn::relu(&self.norm.forward(&self.first.forward(x)?)?)?)?;
        let y = self.pool.forward(&nn::relu(&self.second.forward(&y)?)?)?;
        self.head.forward(&ops::flatten(&y, 1, -1)?)
    }
}

/// The losses of `steps` steps on one batch.
fn losses<M: Layer + Clone>(
    model: &M,
    batch: (&Array, &Array),
    policy: Option<&Policy>,
    mut scaler: Option<GradScaler>,
    steps: usize,
) -> Result<Vec<f32>> {
    let mut optimizer = Adam::new(0.002)?;
    let start: Vec<(String, Array)> = tree::leaves(model);
    let mut losses = Vec::new();
    for _ in 0..steps {
        let ((_, loss), gradients) = nn::value_and_grad(model, |model| {
            let loss = amp::autocast(policy, || {
                nn::cross_entropy(&model.forward(batch.0)?, batch.1, Reduction::Mean)
            })?;
            assert_eq!(loss.dtype(), DType::F32);
            let scaled = scaler.as_ref().map_or(Ok(loss.clone()), |s| s.scale(&loss))?;
            Ok((scaled, loss))
        })?;
        assert!(gradients.values().all(|g| g.dtype() == DType::F32));
        match &mut scaler {
            Some(scaler) => {
                scaler.step(&mut optimizer, model, &gradients)?;
                scaler.update()?;
                cupola::eval(&[scaler.get_scale()])?;
            }
            None => optimizer.update(model, &gradients)?,
        }
        drop(gradients);
        nn::eval_all(&[model, &optimizer])?;
        losses.push(loss.item::<f32>()?);
    }
    // The next training begins where this one did.
    model
        .update(&start.into_iter().filter(|(n, _)| model.parameters().contains_key(n)).collect())?;
    Ok(losses)
}

/// Losses within 1 % of those in `float32`, or of the first where they are near 0.
fn expect_alike(exact: &[f32], mixed: &[f32], what: &str) {
    assert!(exact[exact.len() - 1] < 0.8 * exact[0], "it learns: {exact:?}");
    for (step, (e, m)) in exact.iter().zip(mixed).enumerate() {
        assert!((e - m).abs() <= 0.01 * e.max(0.1 * exact[0]), "{what}, step {step}: {e} and {m}");
    }
}

fn expect_same_curves<M: Layer + Clone>(model: &M, x: &Array, y: &Array) -> Result<()> {
    let exact = losses(model, (x, y), None, None, 20)?;
    let mixed = losses(model, (x, y), Some(&bf16()), None, 20)?;
    expect_alike(&exact, &mixed, "bfloat16");
    assert_ne!(exact, mixed, "something was cast");
    let half = Policy::new(DType::F16)?;
    let scaled =
        losses(model, (x, y), Some(&half), Some(GradScaler::new().init_scale(1024.0)?), 20)?;
    expect_alike(&exact, &scaled, "float16");
    Ok(())
}

#[test]
fn a_gpt_has_the_same_loss_curve() -> Result<()> {
    ops::random::seed(3);
    let ids: Vec<i32> = (0..8 * 17).map(|i| (i * i % 7 + i % 5) % 11).collect();
    let ids = Array::from_vec(ids, [8, 17])?;
    let x = ops::slice(&ids, &[0, 0], &[8, 16], &[1, 1])?;
    let y = ops::slice(&ids, &[0, 1], &[8, 17], &[1, 1])?;
    expect_same_curves(&Gpt::new()?, &x, &y)
}

#[test]
fn a_cnn_has_the_same_loss_curve() -> Result<()> {
    ops::random::seed(4);
    let pixel = |i: usize| ((i % 8 / 2 == i / 64 % 4) as u8 as f32) + (i * 31 % 17) as f32 / 34.0;
    let x = Array::from_vec((0..32 * 64).map(pixel).collect::<Vec<_>>(), [32, 8, 8, 1])?;
    let y = Array::from_vec((0..32).map(|i| i % 4).collect::<Vec<i32>>(), [32])?;
    expect_same_curves(&Cnn::new()?, &x, &y)
}

fn gradients(model: &nn::Linear, value: f32) -> Result<nn::Gradients> {
    let of = |(name, param): (String, Array)| Ok((name, ops::full_like(&param, value)?));
    model.parameters().into_iter().map(of).collect()
}

#[test]
fn a_scaler_skips_backs_off_and_grows() -> Result<()> {
    let model = nn::Linear::new(2, 2)?;
    let mut optimizer = Adam::new(0.1)?;
    let mut scaler = GradScaler::new().init_scale(8.0)?.interval(2)?;
    let mut step = |value: f32| -> Result<(Vec<f32>, f32, i32)> {
        scaler.step(&mut optimizer, &model, &gradients(&model, value)?)?;
        scaler.update()?;
        let scale = scaler.get_scale().item::<f32>()?;
        Ok((model.weight.get().to_vec()?, scale, optimizer.state().step().item::<i32>()?))
    };
    let before = model.weight.get().to_vec::<f32>()?;
    // Skipped before the optimiser has moments, and after.
    assert_eq!(step(f32::NAN)?, (before.clone(), 4.0, 0));
    let (first, scale, count) = step(1.0)?;
    assert!(first != before && scale == 4.0 && count == 1);
    assert_eq!(step(f32::INFINITY)?, (first.clone(), 2.0, 1));
    let (second, scale, _) = step(1.0)?;
    assert!(second != first && scale == 2.0);
    let (_, scale, count) = step(1.0)?;
    assert!(scale == 4.0 && count == 3, "it grows after two finite steps: {scale}");
    Ok(())
}

#[test]
fn a_scaled_step_is_the_step() -> Result<()> {
    let (plain, scaled) = (nn::Linear::new(2, 2)?, nn::Linear::new(2, 2)?);
    scaled.update(&plain.parameters())?;
    Sgd::new(0.1)?.update(&plain, &gradients(&plain, 0.5)?)?;
    let mut scaler = GradScaler::new().init_scale(4.0)?;
    scaler.step(&mut Sgd::new(0.1)?, &scaled, &gradients(&scaled, 2.0)?)?;
    assert_eq!(plain.weight.get().to_vec::<f32>()?, scaled.weight.get().to_vec::<f32>()?);
    Ok(())
}

#[test]
fn a_scaler_is_saved_and_resumed() -> Result<()> {
    let model = nn::Linear::new(2, 2)?;
    let mut scaler = GradScaler::new().interval(3)?;
    let step = |scaler: &mut GradScaler, value| {
        scaler.step(&mut Sgd::new(0.0)?, &model, &gradients(&model, value)?)?;
        scaler.update()
    };
    step(&mut scaler, f32::NAN)?;
    step(&mut scaler, 1.0)?;
    let mut resumed = GradScaler::new().interval(3)?;
    resumed.load(&scaler.leaves())?;
    for scaler in [&mut scaler, &mut resumed] {
        step(scaler, 1.0)?;
        step(scaler, 1.0)?;
        assert_eq!(scaler.get_scale().item::<f32>()?, 65536.0);
    }
    let error =
        resumed.load(&[("scale".to_owned(), Array::scalar(1.0f32))].into()).expect_err("half");
    assert!(error.to_string().contains("growth_tracker is missing"), "{error}");
    Ok(())
}

#[test]
fn a_scaler_in_wrong_hands() -> Result<()> {
    assert!(GradScaler::new().init_scale(0.0).is_err());
    assert!(GradScaler::new().growth(0.5).is_err());
    assert!(GradScaler::new().backoff(1.0).is_err());
    assert!(GradScaler::new().interval(0).is_err());
    // What `float32` has no number for, or no inverse of.
    assert!(GradScaler::new().growth(1e39).is_err());
    assert!(GradScaler::new().backoff(1.0 - 1e-12).is_err());
    assert!(GradScaler::new().init_scale(1e-40).is_err());
    let mut scaler = GradScaler::new();
    for (name, value) in [
        ("scale", Array::scalar(f32::NAN)),
        ("scale", Array::scalar(0.0f32)),
        ("growth_tracker", Array::scalar(-1)),
    ] {
        let mut leaves = scaler.leaves();
        leaves.insert(name.to_owned(), value);
        let error = scaler.load(&leaves).expect_err("it could never be left");
        assert!(error.to_string().contains("GradScaler"), "{error}");
        assert_eq!(scaler.get_scale().item::<f32>()?, 65536.0);
    }
    let mut scaler = GradScaler::new();
    assert!(scaler.update().is_err(), "nothing was looked at");
    assert!(scaler.scale(&Array::scalar(1)).is_err());
    let model = nn::Linear::new(1, 1)?;
    let gradients = gradients(&model, 1.0)?;
    scaler.unscale(&gradients)?;
    let error = scaler.unscale(&gradients).expect_err("twice");
    assert!(error.to_string().contains("already"), "{error}");
    Ok(())
}

#[test]
fn the_step_with_a_scaler_compiles() -> Result<()> {
    let model = nn::Linear::new(3, 2)?;
    let (x, y) = (matrix(0, 4, 3), matrix(1, 4, 2));
    let half = Policy::new(DType::F16)?;
    let step = compile(|state: &mut (nn::Linear, Sgd, GradScaler), batch: &[Array]| {
        let (model, optimizer, scaler) = state;
        let ((_, loss), gradients) = nn::value_and_grad(model, |model| {
            let scores = amp::autocast(Some(&half), || model.forward(&batch[0]))?;
            let loss = nn::mse_loss(&scores, &batch[1], Reduction::Mean)?;
            Ok((scaler.scale(&loss)?, loss))
        })?;
        scaler.step(optimizer, model, &gradients)?;
        scaler.update()?;
        Ok(vec![loss])
    });
    let mut state = (model, Sgd::new(0.1)?.momentum(0.9)?, GradScaler::new().init_scale(256.0)?);
    let mut found = Vec::new();
    for _ in 0..5 {
        found.push(step.call(&mut state, &[x.clone(), y.clone()])?[0].item::<f32>()?);
    }
    assert!(found[4] < found[0], "{found:?}");
    // A batch that overflows: the scale halves, the weights stay.
    let before = state.0.weight.get().to_vec::<f32>()?;
    let large = ops::full([4, 3], f32::MAX, DType::F32)?;
    step.call(&mut state, &[large, y])?;
    assert_eq!(state.0.weight.get().to_vec::<f32>()?, before);
    assert_eq!(state.2.get_scale().item::<f32>()?, 128.0);
    Ok(())
}
