//! Layers against MLX: values, gradients, and the names and shapes of what is saved.

use std::collections::BTreeMap;

use cupola::io::safetensors;
use cupola::nn::{self, Layer, Module, Param, TransformerOptions, UpsampleMode};
use cupola::ops::AttentionMask;
use cupola::{Array, DType, Result, ops};

use crate::layers::layer_parts;
use crate::reference::{array, expect, recorded};

type Inputs = BTreeMap<String, Param>;

/// The recorded arrays of a case.
fn arrays(name: &str, kind: &str) -> BTreeMap<String, Array> {
    let all = recorded(&["mlx", name, kind]).as_object().expect("an object");
    all.keys().map(|path| (path.clone(), array(&["mlx", name, kind, path]))).collect()
}

/// What `f` gives with MLX's parameters, read from a file of MLX's names, and all gradients.
fn check(
    name: &str,
    module: &impl Module,
    f: impl Fn(&BTreeMap<String, Array>) -> Result<Vec<Array>>,
) -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mlx.safetensors");
    let params = arrays(name, "params");
    safetensors::save(&path, &params, &BTreeMap::new())?;
    module.load_safetensors(&path, true)?;
    let inputs: Inputs =
        arrays(name, "inputs").into_iter().map(|(key, x)| (key, Param::new(x))).collect();
    let ((_, outputs), grads) =
        nn::value_and_grad(&(layer_parts(module), inputs), |(_, inputs)| {
            let values = inputs.iter().map(|(key, x)| (key.clone(), x.get())).collect();
            let outputs = f(&values)?;
            let mut loss = Array::scalar(0.0f32);
            for y in &outputs {
                loss = ops::add(&loss, &(ops::sum(&ops::square(y)?, (), false)? * 0.5))?;
            }
            Ok((loss, outputs))
        })?;
    for (i, y) in outputs.iter().enumerate() {
        expect(&format!("{name} {i}"), y, &["mlx", name, "outputs", &i.to_string()], 1e-5)?;
    }
    for (part, kind) in [("0", "dparams"), ("1", "dinputs")] {
        for path in arrays(name, kind).keys() {
            let gradient = &grads[&format!("{part}.{path}")];
            expect(&format!("{name} {kind} {path}"), gradient, &["mlx", name, kind, path], 1e-4)?;
        }
    }
    // What is saved is what MLX reads.
    module.save_safetensors(&path)?;
    let (saved, _) = safetensors::load(&path)?;
    assert_eq!(saved.keys().collect::<Vec<_>>(), params.keys().collect::<Vec<_>>(), "{name}");
    Ok(())
}

/// A layer with one input.
fn check_layer(name: &str, layer: &(impl Layer + Module)) -> Result<()> {
    check(name, layer, |inputs| Ok(vec![layer.forward(&inputs["x"])?]))
}

#[test]
fn recurrent_layers_are_mlxs() -> Result<()> {
    let layer = nn::Rnn::new(2, 3)?;
    check("rnn", &layer, |i| Ok(vec![layer.forward_from(&i["x"], Some(&i["hidden"]))?]))?;
    check_layer("rnn_plain", &nn::Rnn::new(2, 3)?.bias(false).nonlinearity(nn::Relu))?;
    let layer = nn::Gru::new(2, 3)?;
    check("gru", &layer, |i| Ok(vec![layer.forward_from(&i["x"], Some(&i["hidden"]))?]))?;
    check_layer("gru_first", &layer)?;
    check_layer("gru_plain", &nn::Gru::new(2, 3)?.bias(false))?;
    let layer = nn::Lstm::new(2, 3)?;
    check("lstm", &layer, |i| {
        let (hidden, cell) = layer.forward_from(&i["x"], Some(&i["hidden"]), Some(&i["cell"]))?;
        Ok(vec![hidden, cell])
    })?;
    let layer = nn::Lstm::new(2, 3)?.bias(false);
    check("lstm_plain", &layer, |i| {
        let (hidden, cell) = layer.forward_from(&i["x"], None, None)?;
        assert_eq!(layer.forward(&i["x"])?.aval(), hidden.aval());
        Ok(vec![hidden, cell])
    })
}

#[test]
fn cells_take_the_steps_of_their_layers() -> Result<()> {
    let x = array(&["mlx", "lstm", "inputs", "x"]);
    let steps = ops::unstack(&x, 1)?;
    let same =
        |a: &Array, b: &Array| ops::allclose(a, b, ops::Tolerance::default())?.item::<bool>();
    let rnn = nn::Rnn::new(2, 3)?;
    let gru = nn::Gru::new(2, 3)?;
    let lstm = nn::Lstm::new(2, 3)?;
    let (rnn_all, gru_all) = (rnn.forward(&x)?, gru.forward(&x)?);
    let lstm_all = lstm.forward_from(&x, None, None)?;
    let (mut r, mut g, mut l) = (None, None, (None, None));
    for (i, step) in steps.iter().enumerate() {
        let at = |all: &Array| Ok::<_, cupola::Error>(ops::unstack(all, 1)?.swap_remove(i));
        let next = rnn.cell.forward(step, r.as_ref())?;
        assert!(same(&next, &at(&rnn_all)?)?);
        r = Some(next);
        let next = gru.cell.forward(step, g.as_ref())?;
        assert!(same(&next, &at(&gru_all)?)?);
        g = Some(next);
        let (hidden, cell) = lstm.cell.forward(step, l.0.as_ref(), l.1.as_ref())?;
        assert!(same(&hidden, &at(&lstm_all.0)?)? && same(&cell, &at(&lstm_all.1)?)?);
        l = (Some(hidden), Some(cell));
    }
    // One state for all examples.
    let one = ops::ones([3], DType::F32)?;
    let all = ops::ones([2, 3], DType::F32)?;
    let from = |state: &Array| lstm.forward_from(&x, Some(state), Some(state));
    assert!(same(&from(&one)?.0, &from(&all)?.0)?);
    Ok(())
}

#[test]
fn attention_is_mlxs() -> Result<()> {
    let layer = nn::MultiHeadAttention::new(4, 2)?;
    let attend = |x: &Array, mask| Ok(vec![layer.forward(x, x, x, mask)?]);
    check("attention", &layer, |i| attend(&i["x"], AttentionMask::None))?;
    check("attention_causal", &layer, |i| attend(&i["x"], AttentionMask::Causal))?;
    let causal = nn::MultiHeadAttention::create_additive_causal_mask(3, DType::F32)?;
    check("attention_causal", &layer, |i| attend(&i["x"], AttentionMask::Array(&causal)))?;
    let layer = nn::MultiHeadAttention::new(4, 2)?;
    let layer = layer.bias(true)?.input_dims(3, 5, 6)?.value_dims(8)?.output_dims(7)?;
    let seen = Array::from_slice(&[true, false, true, false, true, true], [2, 3])?;
    check("attention_wide", &layer, |i| {
        Ok(vec![layer.forward(&i["q"], &i["k"], &i["v"], AttentionMask::Array(&seen))?])
    })
}

#[test]
fn transformers_are_mlxs() -> Result<()> {
    let (none, causal) = (AttentionMask::None, AttentionMask::Causal);
    let options = || TransformerOptions::new(4, 2).mlp_dims(6);
    let memory_mask = array(&["mlx", "memory_mask"]);
    let memory_mask = AttentionMask::Array(&memory_mask);
    let layer = nn::TransformerEncoderLayer::new(&options())?;
    check_layer("encoder_layer", &layer)?;
    let layer = nn::TransformerEncoderLayer::new(&options().norm_first(false))?;
    let name = "encoder_layer_norm_last";
    check(name, &layer, |i| Ok(vec![layer.forward_masked(&i["x"], causal)?]))?;
    let layer = nn::TransformerDecoderLayer::new(&options().activation(nn::Gelu))?;
    check("decoder_layer", &layer, |i| {
        Ok(vec![layer.forward(&i["x"], &i["memory"], causal, memory_mask)?])
    })?;
    let layer = nn::TransformerDecoderLayer::new(&options().norm_first(false))?;
    check("decoder_layer_norm_last", &layer, |i| {
        Ok(vec![layer.forward(&i["x"], &i["memory"], none, none)?])
    })?;
    let masks = nn::TransformerMasks { source: none, target: causal, memory: memory_mask };
    for checkpoint in [false, true] {
        let options = TransformerOptions::new(4, 2).checkpoint(checkpoint);
        let model = nn::Transformer::new(2, 1, &options)?;
        check("transformer", &model, |i| {
            Ok(vec![model.forward(&i["source"], &i["target"], masks)?])
        })?;
    }
    Ok(())
}

#[test]
fn norms_of_channels_are_mlxs() -> Result<()> {
    check_layer("group_norm", &nn::GroupNorm::new(2, 6)?)?;
    check_layer("group_norm_pytorch", &nn::GroupNorm::new(3, 6)?.pytorch_compatible(true))?;
    check_layer("group_norm_plain", &nn::GroupNorm::new(2, 4)?.eps(0.1)?.affine(false))?;
    check_layer("instance_norm", &nn::InstanceNorm::new(2)?.affine(true)?)?;
    check_layer("instance_norm_plain", &nn::InstanceNorm::new(2)?.eps(0.1)?)
}

#[test]
fn convolutions_and_pools_are_mlxs() -> Result<()> {
    let layer = nn::Conv3d::new(2, 3, [1, 2, 3])?;
    check_layer("conv3d", &layer.stride([1, 2, 1]).padding([0, 1, 1]))?;
    let layer = nn::ConvTranspose1d::new(2, 3, 3)?.bias(false);
    check_layer("conv_transpose1d", &layer.stride(2).padding(1).output_padding(1))?;
    check_layer("conv_transpose3d", &nn::ConvTranspose3d::new(2, 1, 2)?.stride([1, 2, 1]))?;
    check_layer("max_pool3d", &nn::MaxPool3d::new(2).stride(1).padding(1))?;
    check_layer("avg_pool3d", &nn::AvgPool3d::new([1, 2, 3]).stride([1, 2, 2]))
}

#[test]
fn upsampling_is_mlxs() -> Result<()> {
    use UpsampleMode::{Cubic, Linear, Nearest};
    for (name, mode, align) in [
        ("nearest", Nearest, false),
        ("linear", Linear, false),
        ("linear_aligned", Linear, true),
        ("cubic", Cubic, false),
        ("cubic_aligned", Cubic, true),
    ] {
        let how = |layer: nn::Upsample| layer.mode(mode).align_corners(align);
        check_layer(&format!("upsample_{name}"), &how(nn::Upsample::new([2.0, 1.5])?))?;
        check_layer(&format!("upsample_{name}_down"), &how(nn::Upsample::new(0.6)?))?;
    }
    check_layer("upsample_cube", &nn::Upsample::new(2.0)?.mode(Linear))
}

#[test]
fn positions_are_mlxs() -> Result<()> {
    check_layer("rope", &nn::Rope::new(4)?)?;
    let layer = nn::Rope::new(4)?.traditional(true).base(100.0)?.scale(0.5)?;
    check("rope_traditional", &layer, |i| Ok(vec![layer.forward_from(&i["x"], 7)?]))?;
    let layer = nn::SinusoidalPositionalEncoding::new(6)?;
    check_layer("sinusoidal", &layer)?;
    let layer = nn::SinusoidalPositionalEncoding::new(4)?.frequencies(0.01, 2.0)?.scale(1.0)?;
    check_layer("sinusoidal_turns", &layer.cos_first(true).full_turns(true))?;
    check_layer("alibi", &nn::Alibi)?;
    check("alibi_offset", &nn::Alibi, |i| {
        Ok(vec![nn::Alibi.forward_from(&i["x"], 2, Some(&i["mask"]))?])
    })
}

#[test]
fn small_layers_are_mlxs() -> Result<()> {
    let layer = nn::Bilinear::new(3, 2, 4)?;
    check("bilinear", &layer, |i| Ok(vec![layer.forward(&i["x1"], &i["x2"])?]))?;
    let layer = nn::Bilinear::new(3, 2, 1)?.bias(false);
    check("bilinear_plain", &layer, |i| Ok(vec![layer.forward(&i["x1"], &i["x2"])?]))?;
    check_layer("prelu", &nn::PRelu::new(3)?)?;
    check_layer("relu2", &nn::Relu2)?;
    check_layer("gelu_fast_approx", &nn::GeluFastApprox)
}
