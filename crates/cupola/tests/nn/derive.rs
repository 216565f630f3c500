//! `#[derive(Module)]`: what becomes a part, and under which name.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use cupola::nn::{self, Buffer, Dropout, Layer, Linear, Mode, Module, Param, Parts};
use cupola::tree::{self, Tree};
use cupola::{Array, DType, Result};

fn one(value: f32) -> Param {
    Param::new(Array::scalar(value))
}

fn paths(module: &impl Tree) -> Vec<String> {
    tree::leaves(module).into_iter().map(|(path, _)| path).collect()
}

/// Something of the user's that knows nothing of modules.
#[derive(Default)]
struct Settings {
    _depth: usize,
}

#[derive(Module)]
struct Inner {
    weight: Param,
    mean: Buffer,
    mode: Mode,
}

#[derive(Module)]
struct Outer<L, const N: usize> {
    inner: Inner,
    list: Vec<Linear>,
    pair: [Param; N],
    maybe: Option<Param>,
    none: Option<Param>,
    boxed: Box<Inner>,
    layer: L,
    named: BTreeMap<String, Param>,
    tuple: (Param, Dropout),
    #[module(name = "other")]
    renamed: Param,
    r#type: Param,
    scale: f32,
    count: usize,
    flag: bool,
    label: String,
    text: &'static str,
    dtype: DType,
    constant: Array,
    marker: PhantomData<Settings>,
    #[module(skip)]
    settings: Settings,
}

#[derive(Module)]
struct Unnamed(Param, Linear);

#[derive(Module)]
struct Unit;

#[derive(Module)]
enum Choice<T> {
    Plain,
    One(T),
    Two(Param, Param),
    Named { left: Param, right: Unnamed },
}

fn inner(value: f32) -> Inner {
    Inner { weight: one(value), mean: Buffer::new(Array::scalar(value)), mode: Mode::new() }
}

fn outer() -> Result<Outer<Box<dyn Layer>, 2>> {
    Ok(Outer {
        inner: inner(1.0),
        list: vec![Linear::new(1, 1)?, Linear::new(1, 1)?.bias(false)],
        pair: [one(2.0), one(3.0)],
        maybe: Some(one(4.0)),
        none: None,
        boxed: Box::new(inner(5.0)),
        layer: Box::new(Linear::new(1, 2)?),
        named: BTreeMap::from([("a".to_owned(), one(6.0))]),
        tuple: (one(7.0), Dropout::new(0.5)?),
        renamed: one(8.0),
        r#type: one(9.0),
        scale: 1.0,
        count: 1,
        flag: true,
        label: String::new(),
        text: "",
        dtype: DType::F32,
        constant: Array::scalar(0.0f32),
        marker: PhantomData,
        settings: Settings::default(),
    })
}

#[test]
fn fields_become_paths() -> Result<()> {
    let model = outer()?;
    let want = [
        "inner.weight",
        "inner.mean",
        "list.0.weight",
        "list.0.bias",
        "list.1.weight",
        "pair.0",
        "pair.1",
        "maybe",
        "boxed.weight",
        "boxed.mean",
        "layer.weight",
        "layer.bias",
        "named.a",
        "tuple.0",
        "other",
        "type",
    ];
    assert_eq!(paths(&model), want);
    assert_eq!(model.parameters().len(), want.len() - 2);
    assert_eq!(model.buffers().into_keys().collect::<Vec<_>>(), ["boxed.mean", "inner.mean"]);
    let (_, _) = (model.scale, model.count);
    let _ = (model.flag, model.label, model.text, model.dtype, model.constant, model.none);
    let _ = (model.marker, model.settings);
    Ok(())
}

#[test]
fn both_walks_see_the_same_leaves() -> Result<()> {
    let mut model = outer()?;
    let mut seen = Vec::new();
    model.visit_mut(&mut tree::Path::default(), &mut |leaf, array| {
        seen.push(leaf.path.to_owned());
        *array = Array::scalar(0.5f32);
    });
    assert_eq!(seen, paths(&model));
    assert!(tree::leaves(&model).iter().all(|(_, a)| a.item::<f32>().unwrap() == 0.5));
    Ok(())
}

#[test]
fn tuples_units_and_enums_are_modules() -> Result<()> {
    let unnamed = Unnamed(one(1.0), Linear::new(1, 1)?);
    assert_eq!(paths(&unnamed), ["0", "1.weight", "1.bias"]);
    assert_eq!((unnamed.0.get().rank(), paths(&Unit).len()), (0, 0));
    assert_eq!(paths(&vec![Choice::One(Linear::new(1, 1)?)]), ["0.weight", "0.bias"]);
    assert!(paths(&Choice::<Linear>::Plain).is_empty());
    assert_eq!(paths(&Choice::<Linear>::Two(one(1.0), one(2.0))), ["0", "1"]);
    let named = Choice::<Linear>::Named { left: one(1.0), right: unnamed };
    assert_eq!(paths(&named), ["left", "right.0", "right.1.weight", "right.1.bias"]);
    Ok(())
}

#[test]
fn modes_and_freezing_reach_every_part() -> Result<()> {
    let model = outer()?;
    assert!(model.is_training());
    model.eval();
    assert!(!model.is_training() && !model.boxed.mode.is_training());
    assert!(!model.tuple.1.is_training());
    model.train(true);
    assert!(model.is_training() && model.inner.mode.is_training());
    model.freeze();
    assert!(model.trainable_parameters().is_empty());
    model.unfreeze_where(|path| path.starts_with("list"));
    assert_eq!(model.trainable_parameters().len(), 3);
    let role = |module: &dyn Tree, path: &str| {
        let mut role = None;
        module.visit(&mut tree::Path::default(), &mut |leaf, _| {
            if leaf.path == path {
                role = Some(leaf.role);
            }
        });
        role
    };
    assert_eq!(role(&model, "maybe"), Some(tree::Role::Frozen));
    assert_eq!(role(&model, "list.0.bias"), Some(tree::Role::Parameter));
    assert_eq!(role(&model, "inner.mean"), Some(tree::Role::Buffer));
    model.unfreeze();
    assert_eq!(model.trainable_parameters().len(), model.parameters().len());
    Ok(())
}

#[test]
fn tied_parameters_count_once_and_change_together() -> Result<()> {
    let first = Linear::new(2, 2)?;
    let second = Linear { weight: first.weight.clone(), bias: None };
    let mut model = (first, second);
    assert_eq!(paths(&model), ["0.weight", "0.bias", "1.weight"]);
    assert_eq!(model.num_parameters(), 6);
    let x = Array::from_slice(&[1.0f32, 2.0], [1, 2])?;
    let zero = Array::from_slice(&[0.5f32, 0.0, 0.0, 0.5], [2, 2])?;
    // To add a bias at random and to take it away again would round.
    let bias = Array::from_slice(&[0.5f32, -0.5], [2])?;
    let changed = [("1.weight".to_owned(), zero.clone()), ("0.bias".to_owned(), bias)];
    model.update(&BTreeMap::from(changed))?;
    assert!(model.0.weight.get().same(&model.1.weight.get()));
    // y = W·W·x + W·b: both places add to one gradient, that of W² at W = 1/2.
    let ((y, ()), grads) = nn::value_and_grad(&model, |(first, second)| {
        let y = second.forward(&(first.forward(&x)? - first.bias.as_ref().unwrap().get()))?;
        Ok((cupola::ops::sum(&y, (), false)?, ()))
    })?;
    assert_eq!(y.item::<f32>()?, 0.75);
    assert_eq!(grads.keys().collect::<Vec<_>>(), ["0.bias", "0.weight"]);
    assert_eq!(grads["0.weight"].to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0]);
    model.visit_mut(&mut tree::Path::default(), &mut |leaf, array| {
        if leaf.path == "0.weight" {
            *array = zero.clone();
        }
    });
    assert!(model.1.weight.is_tied_to(&model.0.weight));
    Ok(())
}

#[test]
fn updates_name_what_does_not_fit_and_change_nothing() -> Result<()> {
    let model = Linear::new(2, 1)?;
    let before = model.weight.get().to_vec::<f32>()?;
    let update = |path: &str, value: Array| {
        let weight = ("weight".to_owned(), cupola::ops::zeros([1, 2], DType::F32)?);
        let values = BTreeMap::from([weight, (path.to_owned(), value)]);
        model.update(&values)
    };
    let text = update("bias", Array::from_slice(&[1.0f32, 2.0], [2])?).unwrap_err().to_string();
    assert!(text.contains("bias has shape [2], the module expects [1]"), "{text}");
    let text = update("bias", Array::from_slice(&[1i32], [1])?).unwrap_err().to_string();
    assert!(text.contains("int32"), "{text}");
    let text = update("bais", Array::scalar(1.0f32)).unwrap_err().to_string();
    assert!(text.contains("unexpected bais"), "{text}");
    assert_eq!(model.weight.get().to_vec::<f32>()?, before);
    update("bias", Array::from_slice(&[1.0f64], [1])?)?;
    assert_eq!(model.weight.get().to_vec::<f32>()?, [0.0, 0.0]);
    assert_eq!(model.bias.as_ref().unwrap().dtype(), DType::F32);
    Ok(())
}

#[test]
fn failures_and_panics_leave_the_model_as_it_was() -> Result<()> {
    let model = (nn::Linear::new(2, 2)?, nn::BatchNorm::new(2)?);
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 5.0], [2, 2])?;
    let values = |model: &dyn Parts| {
        let mut held = Vec::new();
        model.parts(&mut tree::Path::default(), &mut |_, part| match part {
            nn::Part::Param(param) => held.push(param.get()),
            nn::Part::Buffer(buffer) => held.push(buffer.get()),
            nn::Part::Mode(_) => {}
        });
        held
    };
    let before = values(&model);
    let same = || before.iter().zip(values(&model)).all(|(a, b)| a.same(&b));
    let forward = |model: &(nn::Linear, nn::BatchNorm)| model.1.forward(&model.0.forward(&x)?);
    let failed = nn::value_and_grad(&model, |model| {
        forward(model)?;
        Err::<(Array, ()), _>(cupola::Error::User("stop".into()))
    });
    assert!(failed.unwrap_err().to_string().contains("stop") && same());
    // A loss that is no number fails after the function has run.
    assert!(nn::value_and_grad(&model, |model| Ok((forward(model)?, ()))).is_err() && same());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        nn::value_and_grad(&model, |model| -> Result<(Array, ())> {
            forward(model)?;
            panic!("stop")
        })
    }));
    assert!(panicked.is_err() && same());
    nn::value_and_grad(&model, |m| Ok((cupola::ops::sum(&forward(m)?, (), false)?, ())))?;
    // Only the running statistics moved.
    let changed: Vec<bool> = before.iter().zip(values(&model)).map(|(a, b)| !a.same(&b)).collect();
    assert_eq!(changed, [false, false, false, false, true, true]);
    Ok(())
}
