//! Programs: functions by name over shared variables, with sizes that every run binds.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;

use cupola::graph::{Executable, Options, Program, Results, Size};
use cupola::{Array, DType, Device, Error, Result, Stream, ops};

fn floats(values: &[f32], shape: &[usize]) -> Array {
    Array::from_slice(values, shape).unwrap()
}

fn read(results: &Results, name: &str) -> Vec<f32> {
    results[name].to_vec::<f32>().unwrap()
}

/// A line with a loss, its gradient and a step of training.
fn line() -> Program {
    Program::new(|g| {
        let x = g.placeholder("x", &["batch".into(), 2.into()], DType::F32)?;
        let wanted = g.placeholder("wanted", &["batch".into()], DType::F32)?;
        let w = g.variable("w", || ops::zeros([2], DType::F32))?;
        let b = g.variable("b", || ops::zeros((), DType::F32))?;
        let y = g.node("product", || ops::matmul(&x, &w))? + &b;
        let loss = ops::mean(&ops::square(&(&y - &wanted))?, (), false)?;
        let slopes = g.gradients(&loss, &[&w, &b])?;
        g.function("predict", &[("y", &y)], &[])?;
        g.function("slopes", &[("w", &slopes[0]), ("b", &slopes[1])], &[])?;
        let rate = g.constant(Array::scalar(0.1f32));
        let (new_w, new_b) = (&w - &slopes[0] * &rate, &b - &slopes[1] * &rate);
        g.function("train", &[("loss", &loss)], &[(&w, &new_w), (&b, &new_b)])
    })
    .unwrap()
}

fn compiled(program: &Program, function: &str) -> Executable {
    let options = Options { function: Some(function.into()), sizes: Vec::new() };
    program.compile(Device::CPU, &options).unwrap()
}

/// What `run` says is wrong with these feeds.
fn refused(function: &Executable, feeds: &[(&str, &Array)]) -> String {
    function.run(feeds).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn functions_share_variables_and_training_changes_them() {
    let program = line();
    let train = compiled(&program, "train");
    let x = floats(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], &[3, 2]);
    let wanted = floats(&[3.0, 0.0, 4.0], &[3]);
    let slopes = train.function("slopes").unwrap();
    let first = slopes.run(&[("x", &x), ("wanted", &wanted)]).unwrap();
    assert!((read(&first, "b")[0] + 14.0 / 3.0).abs() < 1e-5);
    let loss = |function: &Executable| {
        read(&function.run(&[("x", &x), ("wanted", &wanted)]).unwrap(), "loss")[0]
    };
    let before = loss(&train);
    for _ in 0..300 {
        loss(&train);
    }
    assert!(loss(&train) < before * 1e-3);
    let predict = train.function("predict").unwrap();
    assert_eq!(predict.placeholders().len(), 1, "a function takes what it depends on");
    // Another number of rows, and one row, which would broadcast.
    for rows in [1usize, 5] {
        let ones = ops::ones([rows, 2], DType::F32).unwrap();
        let y = read(&predict.run(&[("x", &ones)]).unwrap(), "y");
        assert_eq!(y.len(), rows);
        assert!(y.iter().all(|y| (y - 4.0).abs() < 0.1), "{y:?}");
    }
    let values: BTreeMap<String, Array> = program.variables().into_iter().collect();
    assert!((values["w"].to_vec::<f32>().unwrap()[0] - 4.0).abs() < 0.2);
}

#[test]
fn sizes_may_be_used_as_numbers() {
    let program = Program::new(|g| {
        let x = g.placeholder("x", &["rows".into(), "columns".into()], DType::F32)?;
        let (rows, columns) = (x.shape()[0], x.shape()[1]);
        let flat = g.node("flat", || ops::reshape(&x, [rows * columns]))?;
        let last = Array::scalar((rows * columns) as i32 - 1);
        let tail = ops::take(&flat, &last, 0)?;
        g.function("tail", &[("tail", &tail)], &[])
    });
    let tail = compiled(&program.unwrap(), "tail");
    for (rows, columns) in [(1, 1), (2, 3), (4, 1)] {
        let count = rows * columns;
        let values: Vec<f32> = (0..count).map(|v| v as f32).collect();
        let out = tail.run(&[("x", &floats(&values, &[rows, columns]))]).unwrap();
        assert_eq!(read(&out, "tail"), [(count - 1) as f32]);
    }
}

#[test]
fn errors_name_the_node_and_the_feed() {
    let wrong = Program::new(|g| {
        let x = g.placeholder("x", &["batch".into(), 3.into()], DType::F32)?;
        let w = g.variable("w", || ops::ones([2, 2], DType::F32))?;
        let y = g.node("block", || g.node("product", || ops::matmul(&x, &w)))?;
        g.function("f", &[("y", &y)], &[])
    });
    let text = wrong.map(|_| ()).unwrap_err().to_string();
    assert!(text.starts_with("node 'block': node 'product': matmul"), "{text}");
    let train = compiled(&line(), "train");
    let (x, wanted) = (floats(&[1.0; 6], &[3, 2]), floats(&[1.0; 3], &[3]));
    assert_eq!(refused(&train, &[("x", &x)]), "graph: feed 'wanted' (float32[batch]) is missing");
    let short = floats(&[1.0; 2], &[2]);
    assert!(
        refused(&train, &[("x", &x), ("wanted", &short)]).ends_with("but 'batch' is 3 in feed 'x'")
    );
    assert!(
        refused(&train, &[("x", &x), ("y", &x)])
            .contains("feed 'y': the function takes [x, wanted]")
    );
    assert!(refused(&train, &[("x", &x), ("x", &x)]).contains("feed 'x' is there twice"));
    let wide = floats(&[1.0; 6], &[2, 3]);
    for feed in [&wide, &wanted, &ops::astype(&x, DType::I32).unwrap()] {
        let text = refused(&train, &[("x", feed), ("wanted", &wanted)]);
        assert!(text.contains("feed 'x'") && text.contains("float32[batch, 2]"), "{text}");
    }
    assert!(train.function("other").is_err());
    assert!(Program::new(|_| Ok(())).is_err());
    let twice = Program::new(|g| {
        g.placeholder("x", &[], DType::F32)?;
        g.placeholder("x", &[], DType::F32).map(|_| ())
    });
    assert!(twice.is_err());
    let nested = Program::new(|g| {
        let w = g.variable("w", || ops::ones((), DType::F32))?;
        let double = &w * 2.0;
        g.gradients(&ops::square(&double)?, &[&w, &double]).map(|_| ())
    });
    assert!(nested.map(|_| ()).unwrap_err().to_string().contains("made from another"));
    let frozen = Program::new(|g| {
        let x = g.placeholder("x", &[Size::Known(1)], DType::F32)?;
        g.function("f", &[], &[(&x, &x)])
    });
    assert!(frozen.map(|_| ()).unwrap_err().to_string().contains("no variable"));
}

#[test]
fn a_handler_gets_results_or_the_error_in_order() {
    let program = line();
    let train = compiled(&program, "train");
    let (x, wanted) = (floats(&[1.0, 2.0], &[1, 2]), floats(&[3.0], &[1]));
    let (sender, receiver) = channel();
    let own = std::thread::current().id();
    for _ in 0..20 {
        let sender = sender.clone();
        let feeds = [("x", &x), ("wanted", &wanted)];
        let done = move |results: Result<Results>| {
            assert_ne!(std::thread::current().id(), own);
            let _ = sender.send(results.map(|r| read(&r, "loss")[0]));
        };
        train.run_async(&feeds, done).unwrap();
    }
    let mut losses: Vec<f32> = receiver.iter().take(20).map(|loss| loss.unwrap()).collect();
    losses.sort_by(|a, b| b.total_cmp(a));
    // The same steps one after the other.
    let again = compiled(&line(), "train");
    for loss in losses {
        let alone = read(&again.run(&[("x", &x), ("wanted", &wanted)]).unwrap(), "loss")[0];
        assert!((alone - loss).abs() <= 1e-6 * alone.abs());
    }
    let (sender, receiver) = channel();
    train.run_async(&[], move |results| drop(sender.send(results.map(|_| ())))).unwrap();
    assert!(matches!(receiver.recv().unwrap(), Err(Error::Argument { .. })));
}

#[test]
fn encoded_runs_follow_each_other() {
    let program = line();
    let train = compiled(&program, "train");
    let (x, wanted) = (floats(&[1.0, 2.0], &[1, 2]), floats(&[3.0], &[1]));
    let stream = Stream { device: Device::CPU, index: 1 };
    let feeds = [("x", &x), ("wanted", &wanted)];
    let all: Vec<Results> = (0..10).map(|_| train.encode(stream, &feeds).unwrap()).collect();
    let losses: Vec<f32> = all.iter().map(|r| read(r, "loss")[0]).collect();
    assert!(losses.windows(2).all(|pair| pair[1] <= pair[0]), "{losses:?}");
    assert!(losses[9] < losses[0] * 1e-2);
}

#[test]
fn a_run_that_fails_leaves_the_variables() {
    let program = Program::new(|g| {
        let at = g.placeholder("at", &["count".into()], DType::I32)?;
        let table = g.variable("table", || ops::ones([4], DType::F32))?;
        let picked = ops::sum(&ops::take(&table, &at, 0)?, (), false)?;
        let noise = ops::random::uniform(0.0, 0.0, [], DType::F32, None)?;
        g.function("pick", &[("sum", &picked)], &[(&table, &(&table + &picked + &noise))])
    });
    let program = program.unwrap();
    let pick = compiled(&program, "pick");
    let at = |index: i32| Array::from_slice(&[index], [1]).unwrap();
    assert!(pick.run(&[("at", &at(9))]).is_err());
    // Nor does the generator stay with what failed.
    ops::random::uniform(0.0, 1.0, [2], DType::F32, None).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(program.variables()[0].1.to_vec::<f32>().unwrap(), [1.0; 4]);
    pick.run(&[("at", &at(1))]).unwrap();
    assert_eq!(program.variables()[0].1.to_vec::<f32>().unwrap(), [2.0; 4]);
    assert!(program.set_variable("table", at(1)).is_err());
    program.set_variable("table", floats(&[5.0; 4], &[4])).unwrap();
    assert_eq!(read(&pick.run(&[("at", &at(0))]).unwrap(), "sum"), [5.0]);
}

#[test]
fn every_run_draws_its_own_numbers() {
    let program = Program::new(|g| {
        let x = g.placeholder("x", &["n".into()], DType::F32)?;
        let drawn = ops::random::uniform(0.0, 1.0, x.shape().clone(), DType::F32, None)?;
        let y = &x + &drawn;
        g.function("noise", &[("y", &y), ("z", &(&x + &drawn))], &[])
    });
    let noise = compiled(&program.unwrap(), "noise");
    let x = floats(&[0.0; 3], &[3]);
    let (first, second) = (noise.run(&[("x", &x)]).unwrap(), noise.run(&[("x", &x)]).unwrap());
    assert_eq!(read(&first, "y"), read(&first, "z"));
    assert_ne!(read(&first, "y"), read(&second, "y"));
}

#[test]
fn sizes_can_be_made_ready() {
    let sizes = |n: usize| BTreeMap::from([("batch".to_owned(), n)]);
    let options = Options { function: Some("predict".into()), sizes: vec![sizes(1), sizes(8)] };
    let predict = line().compile(Device::CPU, &options).unwrap();
    let x = floats(&[1.0; 16], &[8, 2]);
    assert_eq!(read(&predict.run(&[("x", &x)]).unwrap(), "y"), [0.0; 8]);
    let unknown = Options { sizes: vec![BTreeMap::new()], ..options };
    let text = line().compile(Device::CPU, &unknown).map(|_| ()).unwrap_err().to_string();
    assert!(text.contains("'batch'"), "{text}");
}
