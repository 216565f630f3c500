//! How much memory a training step needs: gradients are used up as they come, and what only the
//! backward pass needs is made there.
//!
//! Alone in its program, because memory is counted for the whole process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupola_core::backend::{Backend, backend};
use cupola_core::transform::value_and_grad;
use cupola_core::{Array, DType, Device, Result, eval, ops};
use cupola_cpu as _;

/// Every test here counts: they take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

const LAYERS: usize = 8;
const WIDTH: usize = 64;
const ROWS: usize = 2048;
/// Bytes of what lies between two layers.
const BETWEEN: usize = ROWS * WIDTH * 4;

/// The most memory, in arrays between layers, that a step of gradient descent needs beside what is
/// there before it: a network of layers `f(x·w)`.
fn needed(f: impl Fn(&Array) -> Result<Array> + Copy) -> Result<f64> {
    let device: &dyn Backend = &**backend(Device::CPU)?;
    let weight = |_| ops::full([WIDTH, WIDTH], 0.05, DType::F32);
    let mut weights: Vec<Array> = (0..LAYERS).map(weight).collect::<Result<_>>()?;
    let x = ops::full([ROWS, WIDTH], 0.5, DType::F32)?;
    eval(&[&weights[..], &[x.clone()]].concat())?;
    let before = device.memory().active;
    device.set_peak(0);
    let loss = move |w: &[Array]| {
        let y = w.iter().try_fold(x.clone(), |x, w| f(&ops::matmul(&x, w)?))?;
        Ok(vec![ops::mean(&ops::square(&y)?, (), false)?])
    };
    let (loss, grads) = value_and_grad(loss, &[0, 1, 2, 3, 4, 5, 6, 7])(&weights)?;
    for (w, grad) in weights.iter_mut().zip(grads) {
        *w = &*w - &(&grad * 0.1);
    }
    eval(&[&weights[..], &loss].concat())?;
    assert!(device.memory().active <= before + 4096, "more is kept than there was");
    Ok((device.memory().peak - before) as f64 / BETWEEN as f64)
}

#[test]
fn gradients_are_used_up_as_they_come() -> Result<()> {
    let _turn = turn();
    let needed = needed(ops::tanh)?;
    // The result of each layer, the gradient that comes and the one that goes.
    assert!(needed < LAYERS as f64 + 3.0, "{needed} arrays");
    Ok(())
}

#[test]
fn what_the_backward_pass_alone_needs_is_made_there() -> Result<()> {
    let _turn = turn();
    let needed = needed(ops::gelu)?;
    // Of each layer x·w, its Φ and the result: the derivative is made of the first two.
    assert!(needed < 3.0 * LAYERS as f64 + 3.0, "{needed} arrays");
    Ok(())
}

/// The gradient of a network by its input, of so many rows, each for itself.
fn by_input(rows: usize, f: impl Fn(&Array) -> Result<Array>) -> Result<Vec<f32>> {
    let ramp = |count: usize| (0..count).map(|i| (i % 13) as f32 * 0.02 - 0.1).collect();
    let x = Array::from_vec(ramp(rows * WIDTH), [rows, WIDTH])?;
    let w = Array::from_vec(ramp(WIDTH * WIDTH), [WIDTH, WIDTH])?;
    let loss = |x: &[Array]| {
        let y = (0..3).try_fold(x[0].clone(), |x, _| f(&ops::matmul(&x, &w)?))?;
        Ok(vec![ops::sum(&ops::square(&y)?, (), false)?])
    };
    let (_, grads) = value_and_grad(loss, &[0])(&[x])?;
    grads[0].to_vec::<f32>()
}

#[test]
fn it_does_not_matter_where_something_is_computed() -> Result<()> {
    let _turn = turn();
    type Layer = fn(&Array) -> Result<Array>;
    let centred: Layer = |x| ops::layer_norm(x, None, None, 1e-5);
    let weighted: Layer = |x| ops::softmax(&ops::multiply(&ops::gelu(x)?, 3)?, -1);
    for f in [ops::gelu as Layer, ops::tanh, ops::sigmoid, centred, weighted] {
        // Few rows are below what is worth a move.
        let (few, many) = (by_input(13, f)?, by_input(13 * 64, f)?);
        for (i, (a, b)) in few.iter().zip(&many).enumerate() {
            assert!((a - b).abs() <= 1e-5 * a.abs().max(1e-3), "element {i}: {a} and {b}");
        }
        assert!(few.iter().any(|v| *v != 0.0));
    }
    Ok(())
}

#[test]
fn a_cross_entropy_of_halves_makes_no_wide_copy() -> Result<()> {
    let _turn = turn();
    // More than a row that is held at once.
    let (rows, words) = (16, 70_000);
    let device: &dyn Backend = &**backend(Device::CPU)?;
    let x = ops::full([rows, 8], 0.5, DType::BF16)?;
    let w = ops::full([8, words], 0.25, DType::BF16)?;
    let targets = ops::zeros([rows], DType::I32)?;
    eval(&[x.clone(), w.clone(), targets.clone()])?;
    let before = device.memory().active;
    device.set_peak(0);
    let (x, w) = (x, w);
    let loss = move |x: &[Array]| {
        let loss = ops::cross_entropy(&ops::matmul(&x[0], &x[1])?, &targets)?;
        Ok(vec![ops::mean(&loss, (), false)?])
    };
    let (loss, grads) = value_and_grad(loss, &[0, 1])(&[x, w])?;
    eval(&[&grads[..], &loss].concat())?;
    let needed = (device.memory().peak - before) as f64 / (rows * words * 2) as f64;
    // The logits, their gradient, and that of the weights.
    assert!(needed < 2.8, "{needed} times the logits");
    Ok(())
}
