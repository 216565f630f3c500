//! Layers against PyTorch, and what they promise besides.

use cupola::nn::{self, Layer, Module, Param};
use cupola::{Array, DType, Result, generator, ops};

use crate::reference::{array, expect, recorded};

/// Forward, and the gradients of ½Σy² by input, weight and bias.
fn check(name: &str, layer: &(impl Layer + Module)) -> Result<()> {
    let mut values = layer.parameters();
    for (path, value) in &mut values {
        *value = array(&["layers", name, path]);
    }
    layer.update(&values)?;
    // The input is a parameter, too: that gives its gradient.
    let x = Param::new(array(&["layers", name, "x"]));
    let ((_, y), grads) = nn::value_and_grad(&(layer_parts(layer), x), |(_, x)| {
        let y = layer.forward(&x.get())?;
        Ok((ops::multiply(&ops::sum(&ops::square(&y)?, (), false)?, 0.5)?, y))
    })?;
    expect(&format!("{name} y"), &y, &["layers", name, "y"], 2e-6)?;
    expect(&format!("{name} dx"), &grads["1"], &["layers", name, "dx"], 1e-5)?;
    for path in values.keys() {
        let key = format!("d{path}");
        let gradient = &grads[&format!("0.{path}")];
        expect(&format!("{name} {key}"), gradient, &["layers", name, &key], 1e-5)?;
    }
    Ok(())
}

/// The parameters of a layer, tied to it.
pub fn layer_parts(layer: &impl Module) -> std::collections::BTreeMap<String, Param> {
    let mut params = std::collections::BTreeMap::new();
    layer.parts(&mut cupola::tree::Path::default(), &mut |path, part| {
        if let nn::Part::Param(param) = part {
            params.insert(path.to_owned(), param.clone());
        }
    });
    params
}

#[test]
fn layers_and_their_gradients_are_pytorchs() -> Result<()> {
    check("linear", &nn::Linear::new(3, 2)?)?;
    check("conv1d", &nn::Conv1d::new(2, 3, 3)?.stride(2).padding(1))?;
    check("conv2d", &nn::Conv2d::new(2, 3, 3)?.padding(1))?;
    let grouped = nn::Conv2d::new(4, 6, [2, 3])?.groups(2)?;
    check("conv2d_grouped", &grouped.stride([2, 1]).padding([1, 2]).dilation([1, 2]))?;
    let transposed = nn::ConvTranspose2d::new(4, 6, 3)?.groups(2)?;
    check("conv_transpose2d", &transposed.stride(2).padding(1).output_padding(1))?;
    check("max_pool1d", &nn::MaxPool1d::new(3).stride(2).padding(1))?;
    check("max_pool2d", &nn::MaxPool2d::new(2))?;
    check("avg_pool1d", &nn::AvgPool1d::new(3).stride(2).padding(1))?;
    check("avg_pool2d", &nn::AvgPool2d::new([2, 3]).stride([1, 2]))?;
    check("layer_norm", &nn::LayerNorm::new(5)?)
}

#[test]
fn batch_norm_trains_and_evaluates_as_pytorchs() -> Result<()> {
    let layer = nn::BatchNorm::new(3)?;
    let parameters = [("weight", "weight"), ("bias", "bias")]
        .map(|(path, key)| (path.to_owned(), array(&["batch_norm", key])));
    layer.update(&parameters.into())?;
    for step in ["0", "1", "2"] {
        let at = |key| ["batch_norm", "steps", step, key];
        if step == "2" {
            layer.eval();
            assert!(!layer.is_training());
        }
        let x = Param::new(array(&at("x")));
        let ((_, y), grads) = nn::value_and_grad(&(layer.clone(), x), |(layer, x)| {
            let y = layer.forward(&x.get())?;
            Ok((ops::sum(&(&y * &ops::square(&y)?), (), false)?, y))
        })?;
        expect("y", &y, &at("y"), 1e-5)?;
        expect("dx", &grads["1"], &at("dx"), 2e-4)?;
        expect("dweight", &grads["0.weight"], &at("dweight"), 1e-4)?;
        expect("dbias", &grads["0.bias"], &at("dbias"), 1e-4)?;
        expect("mean", &layer.buffers()["running_mean"], &at("mean"), 1e-6)?;
        expect("var", &layer.buffers()["running_var"], &at("var"), 1e-6)?;
    }
    let one = nn::BatchNorm::new(3)?.forward(&ops::ones([1, 3], DType::F32)?);
    assert!(one.unwrap_err().to_string().contains("two values a channel"));
    Ok(())
}

#[test]
fn dropout_keeps_the_mean_and_repeats_with_the_seed() -> Result<()> {
    let (layer, x) = (nn::Dropout::new(0.25)?, ops::ones([100, 100], DType::F32)?);
    generator::seed(7);
    let y = layer.forward(&x)?.to_vec::<f32>()?;
    let dropped = y.iter().filter(|&&v| v == 0.0).count();
    // 10,000 draws: four standard deviations are 173.
    assert!((2327..=2673).contains(&dropped), "{dropped} of 10000");
    assert!(y.iter().all(|&v| v == 0.0 || v == 1.0 / 0.75));
    // Nothing of what is dropped shows, whatever it is.
    let wild = nn::Dropout::new(0.5)?.forward(&(&x * f32::NAN))?.to_vec::<f32>()?;
    assert!(wild.contains(&0.0) && wild.iter().any(|v| v.is_nan()));
    for p in [1.0, -0.1, f64::NAN] {
        assert!(nn::Dropout::new(p).unwrap_err().to_string().contains("[0, 1)"));
    }
    Ok(())
}

#[test]
fn embedding_gathers_rows_and_adds_their_gradients() -> Result<()> {
    let layer = nn::Embedding::new(3, 2)?;
    let x = Array::from_slice(&[2, 0, 2], [3])?;
    let ((_, y), grads) = nn::value_and_grad(&layer, |layer| {
        let y = layer.forward(&x)?;
        Ok((ops::sum(&y, (), false)?, y))
    })?;
    let rows = layer.weight.get().to_vec::<f32>()?;
    assert_eq!(y.to_vec::<f32>()?, [&rows[4..6], &rows[0..2], &rows[4..6]].concat());
    assert_eq!(grads["weight"].to_vec::<f32>()?, [1.0, 1.0, 0.0, 0.0, 2.0, 2.0]);
    assert_eq!(layer.as_linear(&y)?.shape()[..], [3, 3]);
    assert!(layer.forward(&y).unwrap_err().to_string().contains("indices"));
    Ok(())
}

#[test]
fn half_types_stay_half() -> Result<()> {
    for dtype in [DType::F16, DType::BF16] {
        let layers: Vec<Box<dyn Layer>> = vec![
            Box::new(nn::Linear::new(4, 4)?),
            Box::new(nn::BatchNorm::new(4)?),
            Box::new(nn::LayerNorm::new(4)?),
            Box::new(nn::Dropout::new(0.5)?),
            Box::new(nn::Gelu),
        ];
        let x = ops::astype(&array(&["layers", "linear", "x"]), dtype)?;
        let x = ops::concatenate(&[&x, &x], -1)?;
        let x = ops::reshape(&x, [3, 4])?;
        for layer in &layers {
            // A matrix product follows its weights' dtype; norms keep theirs in float32.
            if layer.parameters().get("weight").is_some_and(|w| w.rank() == 2) {
                each_param(layer, &mut |p| {
                    p.set(ops::astype(&p.get(), dtype).expect("floats cast"));
                });
            }
            assert_eq!(layer.forward(&x)?.dtype(), dtype);
        }
    }
    Ok(())
}

fn each_param(layer: &impl Module, f: &mut dyn FnMut(&Param)) {
    layer.parts(&mut cupola::tree::Path::default(), &mut |_, part| {
        if let nn::Part::Param(param) = part {
            f(param);
        }
    });
}

#[test]
fn the_seed_fixes_every_parameter() -> Result<()> {
    let draw = || -> Result<Vec<f32>> {
        generator::seed(3);
        let model = nn::Sequential::new()
            .push(nn::Conv2d::new(2, 3, 3)?)
            .push(nn::Linear::new(3, 4)?)
            .push(nn::Embedding::new(5, 2)?);
        let mut all = Vec::new();
        for value in model.parameters().values() {
            all.extend(value.to_vec::<f32>()?);
        }
        Ok(all)
    };
    // Tests that draw at the same time share the generator: one of a few tries is undisturbed.
    let same = (0..20).any(|_| draw().ok() == draw().ok());
    assert!(same);
    Ok(())
}

#[test]
fn shapes_that_do_not_fit_are_named() -> Result<()> {
    let x = ops::zeros([2, 28, 28, 3], DType::F32)?;
    let text = |layer: &dyn Layer| layer.forward(&x).unwrap_err().to_string();
    let linear = text(&nn::Linear::new(4, 2)?);
    assert!(linear.contains("expects 4 input features, input is [2, 28, 28, 3]"), "{linear}");
    let conv = text(&nn::Conv2d::new(1, 20, 5)?);
    assert!(conv.contains("expects 1 input channels, input has 3"), "{conv}");
    assert!(text(&nn::MaxPool1d::new(2)).contains("3 axes"));
    assert!(text(&nn::BatchNorm::new(4)?).contains("[N, .., 4]"));
    assert!(nn::Linear::new(0, 2).is_err());
    assert!(nn::Conv2d::new(1, 2, [1, 2, 3]).is_err());
    assert!(nn::Conv2d::new(3, 4, 1)?.groups(2).is_err());
    assert!(recorded(&["layers"]).is_object());
    Ok(())
}

#[test]
fn initialisers_have_their_scale() -> Result<()> {
    let spread = |x: Array| -> Result<(f32, f32)> {
        let v = x.to_vec::<f32>()?;
        let mean = v.iter().sum::<f32>() / v.len() as f32;
        let var = v.iter().map(|a| (a - mean).powi(2)).sum::<f32>() / v.len() as f32;
        Ok((var.sqrt(), v.iter().fold(0.0, |m, a| m.max(a.abs()))))
    };
    let shape = [40, 3, 3, 50];
    let (fan_in, fan_out) = (450f32, 360f32);
    let near = |a: f32, b: f32| assert!((a / b - 1.0).abs() < 0.03, "{a} is not near {b}");
    let (deviation, _) = spread(nn::init::glorot_normal(shape, DType::F32, 1.0)?)?;
    near(deviation, (2.0 / (fan_in + fan_out)).sqrt());
    let (deviation, largest) = spread(nn::init::glorot_uniform(shape, DType::F32, 1.0)?)?;
    let bound = (6.0 / (fan_in + fan_out)).sqrt();
    near(deviation, bound / 3f32.sqrt());
    assert!(largest <= bound);
    let (deviation, _) = spread(nn::init::he_normal(shape, DType::F32, nn::init::Fan::In, 2.0)?)?;
    near(deviation, 2.0 / fan_in.sqrt());
    let (_, largest) = spread(nn::init::he_uniform(shape, DType::F32, nn::init::Fan::Out, 1.0)?)?;
    assert!(largest <= (3.0 / fan_out).sqrt());
    assert!(nn::init::glorot_normal([3], DType::F32, 1.0).is_err());
    Ok(())
}
