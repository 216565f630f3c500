//! ML Compute's form: layers, inference and training graphs. `crates/py/tests/test_mlcompute.py` compares the same
//! layers with NumPy at length; here each is looked at with numbers that one can see.

use cupola::data::{DataLoader, digits_sized};
use cupola::mlcompute::{
    self as mlc, Activation, Arithmetic, Attention, Border, Comparison, ConvKind, Convolution,
    Graph, InferenceGraph, Kind, Layer, Loss, Lstm, Pooling, Reduce, Reduction, Tensor,
    TrainingGraph, Yolo,
};
use cupola::ops::PadMode;
use cupola::optim::{Adam, AdamW, Optimizer, Sgd};
use cupola::train::{Settings, Trainer, Until, split};
use cupola::{Array, DType, Device, generator, ops};

fn floats(values: &[f32], shape: &[usize]) -> Array {
    Array::from_slice(values, shape).unwrap()
}

fn counted(shape: &[usize]) -> Array {
    let values: Vec<f32> = (0..shape.iter().product()).map(|v| v as f32).collect();
    floats(&values, shape)
}

/// What a layer makes of arrays in an inference graph.
fn several(layer: &Layer, inputs: &[&Array]) -> Vec<Array> {
    let names: Vec<String> = (0..inputs.len()).map(|at| format!("x{at}")).collect();
    let tensors: Vec<Tensor> = inputs
        .iter()
        .map(|a| {
            let sizes: Vec<_> = a.shape().iter().map(|&size| size.into()).collect();
            Tensor::new(&sizes, a.dtype())
        })
        .collect();
    let mut g = Graph::new();
    let results = g.add(layer, &tensors.iter().collect::<Vec<_>>(), true).unwrap();
    let mut i = InferenceGraph::new(&[&g]);
    let named: Vec<(&str, &Tensor)> = names.iter().map(String::as_str).zip(&tensors).collect();
    i.add_inputs(&named).unwrap();
    i.compile(Device::CPU).unwrap();
    let feeds: Vec<(&str, &Array)> =
        names.iter().map(String::as_str).zip(inputs.iter().copied()).collect();
    i.execute(&feeds, |_, _| {}).unwrap();
    i.wait().unwrap();
    let read = |t: &Tensor| {
        let data = t.data().unwrap();
        assert_eq!(Tensor::of(&data).to_string(), t.to_string());
        data
    };
    results.iter().map(read).collect()
}

fn apply(layer: &Layer, inputs: &[&Array]) -> Vec<f32> {
    let out = several(layer, inputs).remove(0);
    ops::astype(&out, DType::F32).unwrap().to_vec::<f32>().unwrap()
}

fn close(ours: &[f32], theirs: &[f32]) {
    assert_eq!(ours.len(), theirs.len());
    for (a, b) in ours.iter().zip(theirs) {
        assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{ours:?} is not {theirs:?}");
    }
}

#[test]
fn the_program() {
    let tensors: Vec<Tensor> =
        (0..3).map(|_| Tensor::new(&[6.into(), 1.into()], DType::F32)).collect();
    let data: Vec<Array> = [
        floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[6]),
        floats(&[0.1; 6], &[6]),
        floats(&[-0.1; 6], &[6]),
    ]
    .into();
    let mut g = Graph::new();
    let add = mlc::arithmetic(Arithmetic::Add);
    let first = g.add_layer(&add, &[&tensors[0], &tensors[1]]).unwrap();
    let result = g.add_layer(&add, &[&first, &tensors[2]]).unwrap();
    let mut i = InferenceGraph::new(&[&g]);
    i.add_inputs(&[("data1", &tensors[0]), ("data2", &tensors[1]), ("data3", &tensors[2])])
        .unwrap();
    i.compile(mlc::device(Kind::Cpu)).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let feeds = [("data1", &data[0]), ("data2", &data[1]), ("data3", &data[2])];
    i.execute(&feeds, move |made, time| {
        let _ = sender.send((made.map(|results| results.len()), time));
    })
    .unwrap();
    i.wait().unwrap();
    close(&result.data().unwrap().to_vec::<f32>().unwrap(), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (made, time) = receiver.recv().unwrap();
    assert!(made.unwrap() == 1 && !time.is_zero());
}

#[test]
fn layers_of_elements() {
    let x = floats(&[-2.0, -0.25, 0.0, 0.5, 3.0], &[5]);
    let cases = [
        (Activation::None, [-2.0, -0.25, 0.0, 0.5, 3.0]),
        (Activation::Relu(0.1), [-0.2, -0.025, 0.0, 0.5, 3.0]),
        (Activation::Linear(2.0, 1.0), [-3.0, 0.5, 1.0, 2.0, 7.0]),
        (Activation::HardSigmoid(0.2, 0.5), [0.1, 0.45, 0.5, 0.6, 1.0]),
        (Activation::Absolute, [2.0, 0.25, 0.0, 0.5, 3.0]),
        (Activation::SoftSign, [-2.0 / 3.0, -0.2, 0.0, 1.0 / 3.0, 0.75]),
        (Activation::ReluN(0.0, 1.0), [0.0, 0.0, 0.0, 0.5, 1.0]),
        (Activation::HardShrink(0.4), [-2.0, 0.0, 0.0, 0.5, 3.0]),
        (Activation::SoftShrink(0.4), [-1.6, 0.0, 0.0, 0.1, 2.6]),
        (Activation::Threshold(0.1, -1.0), [-1.0, -1.0, -1.0, 0.5, 3.0]),
        (Activation::Clamp(-1.0, 1.0), [-1.0, -0.25, 0.0, 0.5, 1.0]),
        (Activation::HardSwish, [-1.0 / 3.0, -0.114_583_3, 0.0, 0.291_666_7, 3.0]),
    ];
    for (kind, wanted) in cases {
        close(&apply(&mlc::activation(kind), &[&x]), &wanted);
    }
    let at = |kind: Activation, v: f32| apply(&mlc::activation(kind), &[&floats(&[v], &[1])])[0];
    let near = |a: f32, b: f64| assert!((f64::from(a) - b).abs() < 1e-5, "{a} is not {b}");
    near(at(Activation::Sigmoid, 1.0), 1.0 / (1.0 + (-1f64).exp()));
    near(at(Activation::Tanh(2.0, 0.5), 1.0), 2.0 * 0.5f64.tanh());
    near(at(Activation::SoftPlus(0.5, 2.0), 1.0), 0.5 * (1.0 + 2f64.exp()).ln());
    near(at(Activation::Elu(0.7), -1.0), 0.7 * ((-1f64).exp() - 1.0));
    near(at(Activation::Celu(0.7), -1.0), 0.7 * ((-1f64 / 0.7).exp() - 1.0));
    near(at(Activation::LogSigmoid, 1.0), -(1.0 + (-1f64).exp()).ln());
    near(at(Activation::Selu, 1.0), 1.050_700_987);
    near(at(Activation::TanhShrink, 1.0), 1.0 - 1f64.tanh());
    near(at(Activation::Gelu, 1.0), 0.841_344_746);
    let y = floats(&[2.0, 0.5, 0.0, 0.5, -1.0], &[5]);
    let pair = |operation| apply(&mlc::arithmetic(operation), &[&x, &y]);
    close(&pair(Arithmetic::Subtract), &[-4.0, -0.75, 0.0, 0.0, 4.0]);
    close(&pair(Arithmetic::DivideNoNan), &[-1.0, -0.5, 0.0, 1.0, -3.0]);
    close(&pair(Arithmetic::MultiplyNoNan), &[-4.0, -0.125, 0.0, 0.25, -3.0]);
    close(&pair(Arithmetic::Max), &[2.0, 0.5, 0.0, 0.5, 3.0]);
    close(
        &apply(&mlc::arithmetic(Arithmetic::Exp2), &[&y]),
        &[4.0, 2f32.sqrt(), 1.0, 2f32.sqrt(), 0.5],
    );
    close(&apply(&mlc::arithmetic(Arithmetic::Floor), &[&x]), &[-2.0, -1.0, 0.0, 0.0, 3.0]);
    let compared = |operation| apply(&mlc::comparison(operation), &[&x, &y]);
    close(&compared(Comparison::Less), &[1.0, 1.0, 0.0, 0.0, 0.0]);
    close(&compared(Comparison::Nand), &[0.0, 0.0, 1.0, 0.0, 0.0]);
    close(&apply(&mlc::comparison(Comparison::Not), &[&y]), &[0.0, 0.0, 1.0, 0.0, 0.0]);
    let condition = ops::greater(&x, 0).unwrap();
    close(&apply(&mlc::selection(), &[&condition, &x, &y]), &[2.0, 0.5, 0.0, 0.5, 3.0]);
    close(&apply(&mlc::softmax(0), &[&floats(&[0.0, 3f32.ln()], &[2])]), &[0.25, 0.75]);
    close(&apply(&mlc::dropout(0.5, None).unwrap(), &[&x]), &x.to_vec::<f32>().unwrap());
}

#[test]
fn layers_of_images() {
    let x = counted(&[1, 1, 3, 3]);
    let given = |values: &[f32]| Some(Tensor::of(&floats(values, &[values.len()])));
    let plain = Convolution { has_biases: false, ..Convolution::new([1, 1], 2) };
    let standard = Convolution {
        weights: given(&[1.0, 0.0, 0.0, 1.0]),
        biases: given(&[1.0]),
        has_biases: true,
        ..plain.clone()
    };
    close(&apply(&mlc::convolution(standard.clone()).unwrap(), &[&x]), &[5.0, 7.0, 11.0, 13.0]);
    let same = Convolution { border: Border::Same, ..standard.clone() };
    let wanted = [5.0, 7.0, 3.0, 11.0, 13.0, 6.0, 7.0, 8.0, 9.0];
    close(&apply(&mlc::convolution(same).unwrap(), &[&x]), &wanted);
    let transposed = Convolution {
        kind: ConvKind::Transposed,
        stride: [2; 2],
        border: Border::Same,
        weights: given(&[1.0, 2.0, 3.0, 4.0]),
        ..plain.clone()
    };
    let wanted = [0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 2.0, 4.0, 3.0, 6.0, 6.0, 8.0, 9.0, 12.0];
    let out = apply(&mlc::convolution(transposed).unwrap(), &[&counted(&[1, 1, 2, 2])]);
    close(&out, &wanted);
    let depthwise = Convolution {
        kind: ConvKind::Depthwise,
        channels: [2, 2],
        weights: given(&[1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 2.0]),
        ..plain
    };
    let out = apply(&mlc::convolution(depthwise).unwrap(), &[&counted(&[1, 2, 2, 2])]);
    close(&out, &[6.0, 14.0]);
    assert!(mlc::convolution(Convolution { groups: 2, ..standard }).is_err());
    let pool = |kind, border| apply(&mlc::pooling(kind, [2; 2], [2; 2], [1; 2], border), &[&x]);
    close(&pool(Pooling::Max, Border::Valid), &[4.0]);
    close(&pool(Pooling::Max, Border::Same), &[4.0, 5.0, 7.0, 8.0]);
    close(&pool(Pooling::Average { counts_border: false }, Border::Same), &[2.0, 3.5, 6.5, 8.0]);
    close(&pool(Pooling::Average { counts_border: true }, Border::Same), &[2.0, 1.75, 3.25, 2.0]);
    close(&pool(Pooling::L2Norm, Border::Valid), &[26f32.sqrt()]);
    let up = apply(&mlc::upsample([2, 4], false, false), &[&counted(&[1, 1, 1, 2])]);
    close(&up, &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    let wide = mlc::padding([(0, 0), (2, 1)], PadMode::Reflect);
    close(&apply(&wide, &[&counted(&[1, 1, 1, 3])]), &[2.0, 1.0, 0.0, 1.0, 2.0, 1.0]);
    let gram = apply(&mlc::gram_matrix(0.5), &[&counted(&[1, 2, 1, 2])]);
    close(&gram, &[0.5, 1.5, 1.5, 6.5]);
}

#[test]
fn layers_of_shapes_and_products() {
    let x = counted(&[2, 3]);
    close(&apply(&mlc::concatenation(0), &[&x, &x])[6..], &x.to_vec::<f32>().unwrap());
    let index = Array::from_slice(&[2, 0], [2, 1]).unwrap();
    close(&apply(&mlc::gather(1), &[&x, &index]), &[2.0, 3.0]);
    let updates = floats(&[10.0, 20.0], &[2, 1]);
    close(
        &apply(&mlc::scatter(1, true), &[&x, &index, &updates]),
        &[0.0, 1.0, 12.0, 23.0, 4.0, 5.0],
    );
    close(
        &apply(&mlc::scatter(1, false), &[&x, &index, &updates]),
        &[0.0, 1.0, 10.0, 20.0, 4.0, 5.0],
    );
    close(&apply(&mlc::slice(&[(0, 2, 1), (0, 3, 2)]), &[&x]), &[0.0, 2.0, 3.0, 5.0]);
    close(&apply(&mlc::transpose(&[1, 0]), &[&x]), &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(several(&mlc::reshape(&[-1, 2]), &[&x])[0].shape()[..], [3, 2]);
    assert_eq!(several(&mlc::split(3, 1), &[&x]).len(), 3);
    let parts = several(&mlc::split_at(&[1, 2], 1), &[&x]);
    close(&parts[1].to_vec::<f32>().unwrap(), &[1.0, 2.0, 4.0, 5.0]);
    let folded = |kind| apply(&mlc::reduction(kind, &[1]), &[&x]);
    close(&folded(Reduce::Sum), &[3.0, 12.0]);
    close(&folded(Reduce::Mean), &[1.0, 4.0]);
    close(&folded(Reduce::ArgMax), &[2.0, 2.0]);
    close(&folded(Reduce::L1Norm), &[3.0, 12.0]);
    close(&folded(Reduce::All), &[0.0, 1.0]);
    close(&apply(&mlc::matmul(0.5, false, true), &[&x, &x]), &[2.5, 7.0, 7.0, 25.0]);
    let weights = Tensor::of(&floats(&[1.0, 0.0, 0.0, 0.0, 1.0, 1.0], &[2, 3]));
    let biases = Tensor::of(&floats(&[1.0, 2.0], &[2]));
    let connected = mlc::fully_connected([3, 2], Some(weights), Some(biases)).unwrap();
    close(&apply(&connected, &[&x]), &[1.0, 5.0, 4.0, 11.0]);
    let table = Tensor::of(&counted(&[3, 2]));
    let embedded = mlc::embedding([3, 2], Some(1), Some(table)).unwrap();
    let ids = Array::from_slice(&[2, 1], [2]).unwrap();
    close(&apply(&embedded, &[&ids]), &[4.0, 5.0, 0.0, 0.0]);
}

#[test]
fn layers_with_states_and_heads() {
    // The second is one loop, and so is none of its halves.
    for steps in [3, 20] {
        let x = ops::divide(&counted(&[2, steps, 2]), steps as f32).unwrap();
        let two = Lstm { layers: 2, is_bidirectional: true, ..Lstm::new([2, 4]) };
        let out = several(&mlc::lstm(two, &[]).unwrap(), &[&x]);
        assert_eq!(out[0].shape()[..], [2, steps, 8]);
        assert_eq!(out[1].shape()[..], [4, 2, 4]);
        // Two parts, the second from where the first ended.
        let one = mlc::lstm(Lstm::new([2, 4]), &[]).unwrap();
        let whole = several(&one, &[&x]).remove(0);
        let halves = ops::split(&x, [steps / 2], 1).unwrap();
        let first = several(&one, &[&halves[0]]);
        let second = several(&one, &[&halves[1], &first[1], &first[2]]);
        let joined = ops::concatenate(&[&first[0], &second[0]], 1).unwrap();
        close(&joined.to_vec::<f32>().unwrap(), &whole.to_vec::<f32>().unwrap());
    }
    // With one key alone, its value is what comes out.
    let eye = Tensor::of(&ops::identity(4, DType::F32).unwrap());
    let none = Tensor::of(&ops::zeros([4], DType::F32).unwrap());
    let mut given: Vec<(String, &Tensor)> = Vec::new();
    for part in ["query", "key", "value", "output"] {
        given.push((format!("{part}_weights"), &eye));
        given.push((format!("{part}_biases"), &none));
    }
    let given: Vec<(&str, &Tensor)> = given.iter().map(|(n, t)| (n.as_str(), *t)).collect();
    let attention = mlc::multihead_attention(Attention::new(4, 2), &given).unwrap();
    let (q, v) = (counted(&[1, 1, 4]), floats(&[1.0, -1.0, 2.0, 0.5], &[1, 1, 4]));
    close(&apply(&attention, &[&q, &q, &v]), &[1.0, -1.0, 2.0, 0.5]);
    let zero = Attention { adds_zero_attention: true, ..Attention::new(4, 2) };
    let halved = mlc::multihead_attention(zero, &given).unwrap();
    let still = floats(&[0.0; 4], &[1, 1, 4]);
    close(&apply(&halved, &[&still, &q, &v]), &[0.5, -0.5, 1.0, 0.25]);
}

#[test]
fn normalizations() {
    let x = floats(&[1.0, 3.0, 10.0, 30.0, 5.0, 7.0, 50.0, 70.0], &[2, 2, 2]);
    let pairs = [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0];
    close(&apply(&mlc::instance_normalization(2, 0.0).unwrap(), &[&x]), &pairs);
    close(&apply(&mlc::layer_normalization(&[2], 0.0).unwrap(), &[&x]), &pairs);
    let grouped = apply(&mlc::group_normalization(2, 1, 0.0).unwrap(), &[&x]);
    assert!(grouped[..4].iter().sum::<f32>().abs() < 1e-4);
    let batch = mlc::batch_normalization(2, 0.0, 0.9).unwrap();
    batch.tensor("mean").unwrap().bind(&floats(&[1.0, 10.0], &[2])).unwrap();
    close(&apply(&batch, &[&x])[..4], &[0.0, 2.0, 0.0, 20.0]);
}

#[test]
fn losses() {
    let (x, y) = (floats(&[0.2, 0.8], &[1, 2]), floats(&[1.0, 0.0], &[1, 2]));
    let of = |kind| apply(&mlc::loss(kind, Reduction::None, 0.0), &[&x, &y]);
    close(&of(Loss::MeanAbsoluteError), &[0.8, 0.8]);
    close(&of(Loss::MeanSquaredError), &[0.64, 0.64]);
    close(&of(Loss::CategoricalCrossEntropy), &[-0.2f32.ln()]);
    close(&of(Loss::SoftmaxCrossEntropy), &[(1.0 + 0.6f32.exp()).ln()]);
    close(
        &of(Loss::SigmoidCrossEntropy),
        &[(1.0 + (-0.2f32).exp()).ln(), (1.0 + 0.8f32.exp()).ln()],
    );
    close(&of(Loss::Hinge), &[0.8, 1.0]);
    close(&of(Loss::Huber(0.5)), &[0.275, 0.275]);
    close(&of(Loss::CosineDistance), &[0.8]);
    close(&of(Loss::Log), &[-0.2f32.ln(), -0.2f32.ln()]);
    let ids = Array::from_slice(&[0], [1]).unwrap();
    let by_id = mlc::loss(Loss::SoftmaxCrossEntropy, Reduction::Mean, 0.0);
    close(&apply(&by_id, &[&x, &ids]), &of(Loss::SoftmaxCrossEntropy));
    // One cell, one anchor, one class: a box where it was predicted, and none.
    let yolo = mlc::yolo_loss(Yolo::new(&[[1.0, 1.0]], 1), Reduction::Sum);
    let predicted = floats(&[0.0; 6], &[1, 6, 1, 1]);
    let boxed = floats(&[0.5, 0.5, 1.0, 1.0, 1.0, 1.0], &[1, 6, 1, 1]);
    close(&apply(&yolo, &[&predicted, &boxed]), &[100.0 * 0.25]);
    close(&apply(&yolo, &[&predicted, &predicted]), &[5.0 * 0.25]);
}

/// A network for points within a circle, with its data.
fn circle() -> (Graph, Vec<Tensor>, Tensor, Vec<Layer>, [Array; 2]) {
    generator::seed(0);
    let x = Tensor::new(&["batch".into(), 2.into()], DType::F32);
    let kinds = Tensor::new(&["batch".into()], DType::I32);
    let mut g = Graph::new();
    let layers = vec![
        mlc::fully_connected([2, 16], None, None).unwrap(),
        mlc::fully_connected([16, 2], None, None).unwrap(),
    ];
    let hidden = g.add_layer(&layers[0], &[&x]).unwrap();
    let hidden = g.add_layer(&mlc::activation(Activation::Tanh(1.0, 1.0)), &[&hidden]).unwrap();
    let hidden = g.add_layer(&mlc::dropout(0.1, None).unwrap(), &[&hidden]).unwrap();
    let out = g.add_layer(&layers[1], &[&hidden]).unwrap();
    let key = ops::random::key(1);
    let points = ops::random::normal([256, 2], DType::F32, Some(&key)).unwrap();
    let far = ops::sum(&ops::square(&points).unwrap(), 1, false).unwrap();
    let labels = ops::astype(&ops::greater(&far, 1.2).unwrap(), DType::I32).unwrap();
    (g, vec![x, kinds], out, layers, [points, labels])
}

fn trained(
    optimizer: impl Optimizer + Clone + Send + Sync + 'static,
    steps: usize,
    apart: bool,
) -> (Vec<f32>, Vec<f32>, f32) {
    let (g, fed, out, layers, [points, labels]) = circle();
    let mut t = TrainingGraph::new(&[&g]);
    t.set_loss(mlc::loss(Loss::SoftmaxCrossEntropy, Reduction::Mean, 0.0)).unwrap();
    t.set_optimizer(optimizer).unwrap();
    t.add_inputs(&[("x", &fed[0])], &[("kinds", &fed[1])]).unwrap();
    t.compile(Device::CPU).unwrap();
    generator::seed(2);
    let feeds = [("x", &points), ("kinds", &labels)];
    let mut losses = Vec::new();
    for _ in 0..steps {
        if apart {
            t.execute_forward(&feeds, |_, _| {}).unwrap();
            t.execute_gradient(|_, _| {}).unwrap();
            t.execute_optimizer_update(|_, _| {}).unwrap();
        } else {
            t.execute(&feeds, |_, _| {}).unwrap();
        }
        t.wait().unwrap();
        losses.push(t.loss().unwrap().data().unwrap().item::<f32>().unwrap());
    }
    // What was learnt is in the layers: another graph of them predicts with it.
    let mut i = InferenceGraph::new(&[&g]);
    i.add_inputs(&[("x", &fed[0])]).unwrap();
    i.compile(Device::CPU).unwrap();
    i.execute(&[("x", &points)], |_, _| {}).unwrap();
    i.wait().unwrap();
    let best = ops::argmax(&out.data().unwrap(), 1, false).unwrap();
    let hits = ops::equal(&ops::astype(&best, DType::I32).unwrap(), &labels).unwrap();
    let share = ops::mean(&ops::astype(&hits, DType::F32).unwrap(), (), false).unwrap();
    let weights = layers[0].tensor("weights").unwrap().data().unwrap();
    (losses, weights.to_vec::<f32>().unwrap(), share.item::<f32>().unwrap())
}

#[test]
fn networks_learn_by_each_optimizer() {
    let all = [
        trained(Sgd::new(0.5).unwrap().momentum(0.9).unwrap(), 150, false),
        trained(Adam::new(0.05).unwrap(), 150, false),
        trained(AdamW::new(0.05).unwrap(), 150, false),
    ];
    for (losses, _, share) in all {
        assert!(losses[losses.len() - 1] < 0.4 * losses[0], "{losses:?}");
        assert!(share > 0.9, "{share}");
    }
}

#[test]
fn steps_apart_are_the_step_at_once() {
    let once = trained(Adam::new(0.05).unwrap(), 1, false);
    let apart = trained(Adam::new(0.05).unwrap(), 1, true);
    close(&once.1, &apart.1);
}

#[test]
fn gradients_of_the_caller_and_stopped_ones() {
    for stops in [false, true] {
        let x = Tensor::new(&[1.into(), 1.into()], DType::F32);
        let weight = |value: f32| Some(Tensor::of(&floats(&[value], &[1, 1])));
        let zero = || Some(Tensor::of(&floats(&[0.0], &[1])));
        let first = mlc::fully_connected([1, 1], weight(2.0), zero()).unwrap();
        let second = mlc::fully_connected([1, 1], weight(3.0), zero()).unwrap();
        let mut g = Graph::new();
        let middle = g.add_layer(&first, &[&x]).unwrap();
        let out = g.add_layer(&second, &[&middle]).unwrap();
        let mut t = TrainingGraph::new(&[&g]);
        t.add_inputs(&[("x", &x)], &[]).unwrap();
        if stops {
            t.stop_gradient_for(&[&middle]).unwrap();
        }
        let gradient = t.allocate_user_gradient(&out).unwrap();
        t.compile(Device::CPU).unwrap();
        t.execute_forward(&[("x", &floats(&[5.0], &[1, 1]))], |_, _| {}).unwrap();
        t.wait().unwrap();
        assert_eq!(out.data().unwrap().item::<f32>().unwrap(), 30.0);
        assert!(t.execute_gradient(|_, _| {}).is_err(), "it is not bound");
        gradient.bind(&floats(&[10.0], &[1, 1])).unwrap();
        t.execute_gradient(|_, _| {}).unwrap();
        t.wait().unwrap();
        let of = |layer: &Layer| {
            let tensor = t.gradient_for(layer.tensor("weights").unwrap()).unwrap();
            tensor.data().unwrap().item::<f32>().unwrap()
        };
        assert_eq!((of(&first), of(&second)), (if stops { 0.0 } else { 150.0 }, 100.0));
    }
}

#[test]
fn statistics_move_while_a_graph_trains() {
    let x = Tensor::new(&["batch".into(), 1.into()], DType::F32);
    let norm = mlc::batch_normalization(1, 0.0, 0.5).unwrap();
    let mut g = Graph::new();
    let out = g.add_layer(&norm, &[&x]).unwrap();
    let mut t = TrainingGraph::new(&[&g]);
    t.add_inputs(&[("x", &x)], &[]).unwrap();
    t.compile(Device::CPU).unwrap();
    t.execute_forward(&[("x", &floats(&[1.0, 5.0], &[2, 1]))], |_, _| {}).unwrap();
    t.wait().unwrap();
    close(&out.data().unwrap().to_vec::<f32>().unwrap(), &[-1.0, 1.0]);
    let state = |name: &str| norm.tensor(name).unwrap().data().unwrap().to_vec::<f32>().unwrap();
    assert_eq!((state("mean"), state("variance")), (vec![1.5], vec![2.5]));
}

#[test]
fn what_does_not_fit_says_so() {
    let x = Tensor::new(&[2.into(), 3.into()], DType::F32);
    let mut g = Graph::new();
    let text = g.add_layer(&mlc::matmul(1.0, false, false), &[&x, &x]).unwrap_err().to_string();
    assert!(text.starts_with("node 'matmul': matmul"), "{text}");
    let text = g.add_layer(&mlc::softmax(1), &[&x, &x]).unwrap_err().to_string();
    assert!(text.contains("takes 1 tensors, not 2"), "{text}");
    let y = g.add_layer(&mlc::softmax(1), &[&x]).unwrap();
    assert!(y.data().is_err());
    let mut i = InferenceGraph::new(&[&g]);
    let text = i.compile(Device::CPU).unwrap_err().to_string();
    assert!(text.contains("is no input"), "{text}");
    i.add_inputs(&[("x", &x)]).unwrap();
    let good = counted(&[2, 3]);
    assert!(i.execute(&[("x", &good)], |_, _| {}).is_err(), "it is not compiled");
    i.compile(Device::CPU).unwrap();
    assert!(i.execute(&[("z", &good)], |_, _| {}).is_err());
    assert!(i.execute(&[("x", &counted(&[2, 4]))], |_, _| {}).is_err());
    i.execute(&[], |made, _| assert!(made.is_err())).unwrap();
    assert!(i.wait().unwrap_err().to_string().contains("feed 'x'"));
    assert!(mlc::dropout(1.0, None).is_err());
    assert!(mlc::multihead_attention(Attention::new(5, 2), &[]).is_err());
}

/// The article's network: images of one channel and 28 pixels a side, and what it gives for ten kinds.
fn article(x: &Tensor) -> (Graph, Tensor) {
    let mut g = Graph::new();
    let (mut h, mut channels) = (x.clone(), 1);
    for wide in [20, 50, 100] {
        let sides = Border::Each([2; 2]);
        let own = Convolution { border: sides, ..Convolution::new([channels, wide], 5) };
        h = g.add_layer(&mlc::convolution(own).unwrap(), &[&h]).unwrap();
        h = g.add_layer(&mlc::activation(Activation::Relu(0.0)), &[&h]).unwrap();
        let pool = mlc::pooling(Pooling::Max, [2; 2], [2; 2], [1; 2], Border::Valid);
        h = g.add_layer(&pool, &[&h]).unwrap();
        channels = wide;
    }
    for (number, sizes) in [[900, 450], [450, 225], [225, 10]].into_iter().enumerate() {
        h = g.add_layer(&mlc::fully_connected(sizes, None, None).unwrap(), &[&h]).unwrap();
        h = g.add_layer(&mlc::dropout(0.3, None).unwrap(), &[&h]).unwrap();
        if number == 0 {
            h = g.add_layer(&mlc::activation(Activation::Relu(0.0)), &[&h]).unwrap();
        }
    }
    (g, h)
}

#[test]
fn a_training_graph_is_as_accurate_as_the_trainer() {
    let (images, held_out) = digits_sized(0, 800, 300);
    let settings = Settings { epochs: 3, batch_size: 16, ..Settings::default() };
    let mut trainer = Trainer::new(settings.clone(), &images).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let until = Until { steps: None, stop: None };
    trainer.run(folder.path(), until, &mut |_| {}).unwrap();
    let wanted = trainer.test(&held_out, |_, _| true).unwrap().unwrap().accuracy();

    generator::seed(settings.seed);
    let x = Tensor::new(&["batch".into(), 1.into(), 28.into(), 28.into()], DType::F32);
    let kinds = Tensor::new(&["batch".into()], DType::I32);
    let (g, out) = article(&x);
    let mut t = TrainingGraph::new(&[&g]);
    t.set_loss(mlc::loss(Loss::SoftmaxCrossEntropy, Reduction::Mean, 0.0)).unwrap();
    t.set_optimizer(Adam::new(settings.learning_rate).unwrap()).unwrap();
    t.add_inputs(&[("x", &x)], &[("kinds", &kinds)]).unwrap();
    t.compile(Device::CPU).unwrap();
    let scale = images.normalization();
    let first = |images: &Array| ops::moveaxis(images, -1, 1).unwrap();
    let [training, _] = split(&images.clone().normalized(scale.clone()).unwrap(), 0).unwrap();
    let loader = DataLoader::builder(training).batch_size(settings.batch_size).shuffle(0);
    let loader = loader.build().unwrap();
    for epoch in 0..settings.epochs {
        for batch in loader.epoch(epoch as u64) {
            let (images, labels) = batch.unwrap();
            let labels = ops::astype(&labels, DType::I32).unwrap();
            t.execute(&[("x", &first(&images)), ("kinds", &labels)], |_, _| {}).unwrap();
        }
    }
    t.wait().unwrap();
    let mut i = InferenceGraph::new(&[&g]);
    i.add_inputs(&[("x", &x)]).unwrap();
    i.compile(Device::CPU).unwrap();
    let all = DataLoader::builder(held_out.normalized(scale).unwrap()).batch_size(300);
    let (images, labels) = all.build().unwrap().epoch(0).next().unwrap().unwrap();
    i.execute(&[("x", &first(&images))], |_, _| {}).unwrap();
    i.wait().unwrap();
    let best = ops::argmax(&out.data().unwrap(), 1, false).unwrap();
    let hits = ops::equal(&best, &ops::astype(&labels, best.dtype()).unwrap()).unwrap();
    let hits = ops::mean(&ops::astype(&hits, DType::F32).unwrap(), (), false).unwrap();
    let share = f64::from(hits.item::<f32>().unwrap());
    // One in ten without having learnt.
    assert!(wanted > 0.6 && share > wanted - 0.1, "{share}, the trainer {wanted}");
}
