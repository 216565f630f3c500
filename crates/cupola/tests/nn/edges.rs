//! Layers at their edges: what they refuse, other dtypes, modes, empty batches, transforms.

use cupola::nn::{self, Layer, Module, TransformerOptions, UpsampleMode};
use cupola::ops::AttentionMask;
use cupola::transform::{compile, vmap};
use cupola::{Array, DType, Result, ops};

fn zeros<const N: usize>(shape: [usize; N]) -> Array {
    ops::zeros(shape, DType::F32).expect("zeros are recorded")
}

fn ints<const N: usize>(shape: [usize; N]) -> Array {
    ops::zeros(shape, DType::I32).expect("zeros are recorded")
}

/// The error is one line, and says all of `parts`.
fn refused<T>(result: Result<T>, parts: &[&str]) {
    let text = result.err().expect("it is refused").to_string();
    assert!(!text.contains('\n'), "{text}");
    for part in parts {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
}

#[test]
fn recurrent_layers_refuse_what_does_not_fit() -> Result<()> {
    let (rnn, gru, lstm) = (nn::Rnn::new(3, 4)?, nn::Gru::new(3, 4)?, nn::Lstm::new(3, 4)?);
    let layers: [(&str, &dyn Layer); 3] = [("Rnn", &rnn), ("Gru", &gru), ("Lstm", &lstm)];
    for (name, layer) in layers {
        refused(layer.forward(&zeros([2, 5, 2])), &[name, "expects 3", "[2, 5, 2]"]);
        refused(layer.forward(&zeros([3])), &[name, "[.., steps, features]", "[3]"]);
        refused(layer.forward(&zeros([])), &[name]);
        refused(layer.forward(&zeros([2, 0, 3])), &[name, "with a step", "[2, 0, 3]"]);
        assert_eq!(layer.forward(&zeros([0, 5, 3]))?.shape()[..], [0, 5, 4]);
        assert_eq!(layer.forward(&ints([5, 3]))?.aval().to_string(), "float32[5, 4]");
    }
    let x = zeros([2, 5, 3]);
    let wrong = zeros([2, 3]);
    refused(rnn.forward_from(&x, Some(&wrong)), &["Rnn", "hidden", "[2, 3]", "[2, 4]"]);
    refused(gru.forward_from(&x, Some(&zeros([3, 4]))), &["Gru", "[3, 4]", "[2, 4]"]);
    refused(gru.forward_from(&x, Some(&zeros([1, 2, 4]))), &["Gru", "[1, 2, 4]"]);
    refused(lstm.forward_from(&x, None, Some(&wrong)), &["Lstm", "cell", "[2, 3]"]);
    refused(lstm.forward_from(&x, Some(&ints([2, 4])), None), &["Lstm", "hidden", "int32"]);
    refused(rnn.cell.forward(&zeros([2, 3]), Some(&wrong)), &["Rnn", "hidden"]);
    refused(gru.cell.forward(&zeros([2, 2]), None), &["Gru", "expects 3"]);
    refused(lstm.cell.forward(&zeros([]), None, None), &["Lstm"]);
    refused(nn::Rnn::new(0, 4), &["Rnn", "inputs 0"]);
    refused(nn::GruCell::new(3, 0), &["Gru", "hidden 0"]);
    refused(nn::Lstm::new(0, 0), &["Lstm"]);
    refused(nn::Lstm::new(3, usize::MAX), &["address space"]);
    Ok(())
}

#[test]
fn attention_refuses_what_does_not_fit() -> Result<()> {
    let layer = nn::MultiHeadAttention::new(4, 2)?;
    let (x, none) = (zeros([2, 3, 4]), AttentionMask::None);
    let name = "MultiHeadAttention";
    refused(layer.forward(&zeros([3, 4]), &x, &x, none), &[name, "[N, L, features]", "[3, 4]"]);
    refused(layer.forward(&zeros([2, 3, 5]), &x, &x, none), &["expects 4", "[2, 3, 5]"]);
    refused(layer.forward(&x, &x, &zeros([2, 2, 4]), none), &["keys", "values"]);
    refused(layer.forward(&x, &zeros([1, 3, 4]), &zeros([1, 3, 4]), none), &["batches"]);
    let mask = zeros([4, 3]);
    refused(layer.forward(&x, &x, &x, AttentionMask::Array(&mask)), &["[4, 3]"]);
    refused(nn::MultiHeadAttention::new(5, 2), &[name, "dims 5", "2 heads"]);
    refused(nn::MultiHeadAttention::new(4, 0), &[name, "0 heads"]);
    refused(nn::MultiHeadAttention::new(0, 2), &[name]);
    refused(layer.clone().value_dims(3), &[name, "value_dims 3"]);
    refused(layer.clone().input_dims(4, 0, 4), &["Linear", "inputs 0"]);
    refused(layer.clone().output_dims(0), &["outputs 0"]);
    let mask = nn::MultiHeadAttention::create_additive_causal_mask(3, DType::I32);
    refused(mask, &[name, "int32"]);
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        let mask = nn::MultiHeadAttention::create_additive_causal_mask(2, dtype)?;
        assert_eq!(mask.dtype(), dtype);
        assert!(ops::all(&ops::isfinite(&mask)?, (), false)?.item::<bool>()?);
    }
    let layer = layer.bias(true)?;
    assert_eq!(layer.parameters().len(), 8);
    assert_eq!(layer.bias(false)?.parameters().len(), 4);
    // Nothing to attend to: no batch, no queries.
    let layer = nn::MultiHeadAttention::new(4, 2)?;
    let empty = zeros([0, 3, 4]);
    assert_eq!(layer.forward(&empty, &empty, &empty, none)?.shape()[..], [0, 3, 4]);
    assert_eq!(layer.forward(&zeros([2, 0, 4]), &x, &x, none)?.shape()[..], [2, 0, 4]);
    Ok(())
}

#[test]
fn transformers_refuse_what_does_not_fit() -> Result<()> {
    let options = TransformerOptions::new(4, 2);
    let encoder = nn::TransformerEncoder::new(1, &options)?;
    refused(encoder.forward(&zeros([2, 3, 5])), &["layer_norm", "[2, 3, 5]"]);
    refused(encoder.forward(&zeros([3, 4])), &["MultiHeadAttention", "[3, 4]"]);
    let decoder = nn::TransformerDecoder::new(1, &options.clone().checkpoint(true))?;
    let (none, x) = (AttentionMask::None, zeros([2, 3, 4]));
    refused(decoder.forward(&x, &zeros([1, 3, 4]), none, none), &["batches"]);
    refused(nn::TransformerEncoderLayer::new(&options.clone().dropout(1.0)), &["Dropout"]);
    refused(nn::TransformerEncoder::new(1, &options.clone().mlp_dims(0)), &["outputs 0"]);
    refused(nn::Transformer::new(1, 1, &TransformerOptions::new(5, 2)), &["dims 5"]);
    // No layers: the norm alone.
    assert_eq!(nn::TransformerEncoder::new(0, &options)?.parameters().len(), 2);
    Ok(())
}

#[test]
fn other_layers_refuse_what_does_not_fit() -> Result<()> {
    refused(nn::GroupNorm::new(4, 6), &["GroupNorm", "groups 4", "dims 6"]);
    refused(nn::GroupNorm::new(0, 6), &["GroupNorm"]);
    refused(nn::InstanceNorm::new(0), &["InstanceNorm", "dims 0"]);
    refused(nn::GroupNorm::new(2, 6)?.eps(-1.0), &["GroupNorm", "eps"]);
    refused(nn::InstanceNorm::new(2)?.eps(f64::NAN), &["InstanceNorm", "eps"]);
    let group = nn::GroupNorm::new(2, 6)?;
    refused(group.forward(&zeros([6])), &["GroupNorm", "[N, .., 6]", "[6]"]);
    refused(group.forward(&zeros([2, 4])), &["GroupNorm", "[2, 4]"]);
    refused(group.forward(&ints([2, 6])), &["GroupNorm", "int32"]);
    refused(nn::InstanceNorm::new(6)?.forward(&zeros([2, 6])), &["InstanceNorm", "[2, 6]"]);
    assert!(group.forward(&zeros([0, 2, 6]))?.to_vec::<f32>()?.is_empty());
    let conv = nn::Conv3d::new(2, 3, 2)?;
    refused(conv.forward(&zeros([1, 4, 4, 2])), &["conv3d", "3 spatial axes"]);
    refused(conv.forward(&zeros([1, 4, 4, 4, 3])), &["conv3d", "expects 2"]);
    refused(nn::ConvTranspose1d::new(2, 3, [1, 2]), &["ConvTranspose1d", "[1, 2]"]);
    refused(nn::MaxPool3d::new(2).forward(&zeros([2, 2, 2])), &["MaxPool3d", "5 axes"]);
    refused(nn::AvgPool3d::new([2, 2]).forward(&zeros([1, 2, 2, 2, 1])), &["window"]);
    let bilinear = nn::Bilinear::new(3, 2, 4)?;
    refused(bilinear.forward(&zeros([5, 3]), &zeros([5, 3])), &["Bilinear", "[.., 2]", "[5, 3]"]);
    refused(bilinear.forward(&zeros([5, 3]), &zeros([4, 2])), &["Bilinear", "[4, 2]"]);
    refused(bilinear.forward(&zeros([]), &zeros([2])), &["Bilinear"]);
    refused(nn::Bilinear::new(3, 0, 4), &["Bilinear", "0"]);
    Ok(())
}

#[test]
fn positions_refuse_what_does_not_fit() -> Result<()> {
    refused(nn::Rope::new(3), &["Rope", "dims 3"]);
    refused(nn::Rope::new(4)?.base(0.0), &["Rope", "base 0"]);
    refused(nn::Rope::new(4)?.scale(f64::INFINITY), &["Rope", "scale inf"]);
    refused(nn::Rope::new(4)?.forward(&zeros([3, 4])), &["rope", "[3, 4]"]);
    refused(nn::Rope::new(4)?.forward(&zeros([1, 3, 2])), &["rope", "[1, 3, 2]"]);
    let offset = Array::from_slice(&[0.5f32], [1])?;
    refused(nn::Rope::new(4)?.forward_from(&zeros([1, 3, 4]), &offset), &["offset"]);
    let name = "SinusoidalPositionalEncoding";
    refused(nn::SinusoidalPositionalEncoding::new(3), &[name, "dims 3"]);
    refused(nn::SinusoidalPositionalEncoding::new(4)?.frequencies(0.0, 1.0), &[name, "0 and 1"]);
    refused(nn::SinusoidalPositionalEncoding::new(4)?.scale(f64::NAN), &[name, "scale"]);
    let two = nn::SinusoidalPositionalEncoding::new(2)?.forward(&ints([]))?;
    assert_eq!(two.to_vec::<f32>()?, [0.0, 1.0]);
    refused(nn::Alibi::create_alibi_slope(0, DType::F32), &["Alibi", "heads 0"]);
    refused(nn::Alibi::create_alibi_slope(usize::MAX, DType::F32), &["memory"]);
    let many = nn::SinusoidalPositionalEncoding::new(usize::MAX - 1)?;
    refused(many.forward(&ints([1])), &["memory"]);
    refused(nn::Alibi::create_alibi_matrix(0..2, 2, 2, DType::I32), &["Alibi", "int32"]);
    refused(nn::Alibi::create_alibi_matrix(0..usize::MAX, 2, 2, DType::F32), &["Alibi"]);
    refused(nn::Alibi.forward(&zeros([2, 3, 3])), &["Alibi", "[2, 3, 3]"]);
    refused(nn::Alibi.forward(&ints([1, 2, 3, 3])), &["Alibi", "int32"]);
    refused(nn::Alibi.forward_from(&zeros([1, 2, 3, 3]), usize::MAX, None), &["Alibi"]);
    Ok(())
}

#[test]
fn upsampling_refuses_what_does_not_fit() -> Result<()> {
    for scales in [&[][..], &[0.0], &[-1.0], &[f64::NAN], &[2.0, f64::INFINITY]] {
        refused(nn::Upsample::new(scales), &["Upsample", "positive"]);
    }
    let layer = nn::Upsample::new([2.0, 2.0])?;
    refused(layer.forward(&zeros([1, 3, 2])), &["Upsample", "[2.0, 2.0]", "[1, 3, 2]"]);
    refused(layer.forward(&zeros([1, 3])), &["Upsample", "[1, 3]"]);
    refused(layer.forward(&zeros([1, 0, 3, 2])), &["Upsample", "axis of 0"]);
    refused(nn::Upsample::new(0.1)?.forward(&zeros([1, 3, 2])), &["Upsample", "0.1"]);
    let large = nn::Upsample::new(5e8)?;
    refused(large.forward(&zeros([1, 4, 4, 4, 4])), &["Upsample"]);
    refused(nn::Upsample::new(1e12)?.forward(&zeros([1, 3, 2])), &["Upsample"]);
    let linear = nn::Upsample::new(2.0)?.mode(UpsampleMode::Linear);
    let complex = ops::zeros([1, 3, 2], DType::C64)?;
    refused(linear.forward(&complex), &["Upsample", "complex"]);
    assert_eq!(nn::Upsample::new(2.0)?.forward(&complex)?.dtype(), DType::C64);
    assert_eq!(nn::Upsample::new(2.0)?.forward(&ints([1, 3, 2]))?.dtype(), DType::I32);
    assert_eq!(linear.forward(&ints([1, 3, 2]))?.dtype(), DType::F32);
    let x = Array::from_slice(&[1.0f32, f32::INFINITY], [1, 2, 1])?;
    let same = nn::Upsample::new(1.0)?.mode(UpsampleMode::Cubic).forward(&x)?;
    assert_eq!(same.to_vec::<f32>()?, [1.0, f32::INFINITY]);
    Ok(())
}

#[test]
fn dropout_of_channels_drops_whole_ones_in_training() -> Result<()> {
    let x = ops::ones([50, 2, 2, 4], DType::F32)?;
    let layer = nn::Dropout2d::new(0.5)?;
    let y = layer.forward(&x)?;
    let channels = ops::sum(&y, [1, 2], false)?.to_vec::<f32>()?;
    assert!(channels.iter().all(|v| [0.0, 8.0].contains(v)), "{channels:?}");
    // 200 draws: six standard deviations are 43.
    let dropped = channels.iter().filter(|&&v| v == 0.0).count();
    assert!((57..=143).contains(&dropped), "{dropped}");
    layer.eval();
    assert!(!layer.is_training() && layer.forward(&x)?.same(&x));
    refused(layer.forward(&zeros([2, 3])), &["Dropout2d", "3 or 4 axes", "[2, 3]"]);
    refused(layer.forward(&ints([2, 3, 4])), &["Dropout2d", "int32"]);
    let layer = nn::Dropout3d::new(0.5)?;
    let y = layer.forward(&ops::ones([2, 2, 2, 100], DType::F32)?)?;
    let channels = ops::sum(&y, [0, 1, 2], false)?.to_vec::<f32>()?;
    assert!(channels.contains(&0.0) && channels.contains(&16.0));
    refused(layer.forward(&zeros([2, 3, 4])), &["Dropout3d", "4 or 5 axes"]);
    refused(nn::Dropout2d::new(1.0), &["Dropout2d", "[0, 1)"]);
    refused(nn::Dropout3d::new(-0.5), &["Dropout3d", "[0, 1)"]);
    Ok(())
}

#[test]
fn a_transformer_drops_in_training_alone() -> Result<()> {
    let options = TransformerOptions::new(8, 2).dropout(0.5).checkpoint(true);
    let model = nn::TransformerEncoder::new(2, &options)?;
    let x = ops::random::normal([2, 3, 8], DType::F32, None)?;
    let run = || model.forward(&x)?.to_vec::<f32>();
    assert_ne!(run()?, run()?);
    let (_, grads) = nn::value_and_grad(&model, |model| {
        Ok((ops::sum(&ops::square(&model.forward(&x)?)?, (), false)?, ()))
    })?;
    assert_eq!(grads.len(), model.trainable_parameters().len());
    model.eval();
    assert_eq!(run()?, run()?);
    Ok(())
}

#[test]
fn layers_work_in_other_dtypes() -> Result<()> {
    let layers: Vec<(Box<dyn Layer>, Vec<usize>)> = vec![
        (Box::new(nn::Rnn::new(4, 4)?), vec![2, 3, 4]),
        (Box::new(nn::Gru::new(4, 4)?), vec![2, 3, 4]),
        (Box::new(nn::Lstm::new(4, 4)?), vec![2, 3, 4]),
        (Box::new(nn::TransformerEncoder::new(1, &TransformerOptions::new(4, 2))?), vec![2, 3, 4]),
        (Box::new(nn::GroupNorm::new(2, 4)?), vec![2, 3, 4]),
        (Box::new(nn::InstanceNorm::new(4)?.affine(true)?), vec![2, 3, 4]),
        (Box::new(nn::Upsample::new(1.5)?.mode(UpsampleMode::Cubic)), vec![2, 3, 4]),
        (Box::new(nn::Rope::new(4)?), vec![2, 3, 4]),
        (Box::new(nn::Alibi), vec![2, 3, 4, 4]),
        (Box::new(nn::Conv3d::new(4, 2, 1)?), vec![1, 2, 2, 2, 4]),
        (Box::new(nn::Relu2), vec![4]),
        (Box::new(nn::GeluFastApprox), vec![4]),
        (Box::new(nn::Identity), vec![4]),
    ];
    for (layer, shape) in &layers {
        let draw = ops::random::normal(shape, DType::F32, None)?;
        for (dtype, tolerance) in [(DType::F16, 0.03), (DType::BF16, 0.2), (DType::F64, 1e-5)] {
            let wide = ops::astype(&ops::astype(&draw, dtype)?, DType::F32)?;
            let expected = layer.forward(&wide)?;
            let kept = layer.parameters();
            let cast = kept.iter().map(|(path, p)| Ok((path.clone(), ops::astype(p, dtype)?)));
            set(layer, &cast.collect::<Result<_>>()?);
            let y = layer.forward(&ops::astype(&draw, dtype)?)?;
            set(layer, &kept);
            assert_eq!(y.dtype(), dtype);
            let off = ops::max(&ops::abs(&ops::subtract(&y, &expected)?)?, (), false)?;
            let off = ops::astype(&off, DType::F32)?.item::<f32>()?;
            assert!(off < tolerance, "{shape:?} in {dtype} is off by {off}");
        }
    }
    Ok(())
}

/// Parameters with their dtypes.
fn set(layer: &impl Module, values: &std::collections::BTreeMap<String, Array>) {
    layer.parts(&mut cupola::tree::Path::default(), &mut |path, part| {
        if let nn::Part::Param(param) = part {
            param.set(values[path].clone());
        }
    });
}

#[test]
fn layers_compile_and_batch() -> Result<()> {
    let layers: Vec<Box<dyn Layer>> = vec![
        Box::new(nn::Gru::new(4, 4)?),
        Box::new(nn::Lstm::new(4, 4)?),
        Box::new(nn::TransformerEncoder::new(1, &TransformerOptions::new(4, 2))?),
        Box::new(nn::GroupNorm::new(2, 4)?.pytorch_compatible(true)),
        Box::new(nn::Upsample::new(1.5)?.mode(UpsampleMode::Linear)),
        Box::new(nn::SinusoidalPositionalEncoding::new(4)?),
    ];
    let near = ops::Tolerance { absolute: 1e-5, ..ops::Tolerance::default() };
    for layer in &layers {
        let compiled = compile(|(): &mut (), x: &[Array]| Ok(vec![layer.forward(&x[0])?]));
        for length in [3, 5] {
            let x = ops::random::normal([2, length, 4], DType::F32, None)?;
            let expected = layer.forward(&x)?;
            let got = compiled.call(&mut (), &[x.clone()])?;
            assert!(ops::allclose(&got[0], &expected, near)?.item::<bool>()?);
            let each = ops::expand_dims(&x, 1)?;
            let f = |x: &[Array]| Ok(vec![layer.forward(&x[0])?]);
            let got = vmap(f, &[Some(0)], &[0])(&[each])?;
            let got = ops::squeeze(&got[0], 1)?;
            assert!(ops::allclose(&got, &expected, near)?.item::<bool>()?);
        }
    }
    Ok(())
}
