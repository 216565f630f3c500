//! Operations of several primitives that are recorded as one node: nothing but the graph is smaller.

use cupola::graph::{Graph, to_dot};
use cupola::ops::{self, RopeOptions};
use cupola::plan::explain;
use cupola::transform::{grad, value_and_grad};
use cupola::{Array, Aval, DType, Result};

fn ramp(shape: &[usize]) -> Array {
    let size: usize = shape.iter().product();
    let data: Vec<f32> = (0..size).map(|i| (i * 37 % 101) as f32 * 0.02 - 1.0).collect();
    Array::from_vec(data, shape).unwrap()
}

/// A block of a network: x, a weight and a bias of a norm, a matrix and a bias.
fn block(a: &[Array]) -> Result<Array> {
    let x = ops::layer_norm(&a[0], Some(&a[1]), Some(&a[2]), 1e-5)?;
    let x = ops::gelu_approx(&ops::addmm(&a[4], &x, &a[3], 1.0, 1.0)?)?;
    let x = ops::rope(&x, &RopeOptions::new(4))?;
    ops::softmax(&ops::rms_norm(&ops::silu(&x)?, Some(&a[4]), 1e-5)?, -1)
}

fn loss(a: &[Array]) -> Result<Vec<Array>> {
    Ok(vec![ops::sum(&ops::square(&block(a)?)?, (), false)?])
}

fn inputs() -> Vec<Array> {
    vec![ramp(&[2, 5, 8]), ramp(&[8]), ramp(&[8]), ramp(&[8, 8]), ramp(&[8])]
}

/// What `f` gives of the inputs where every primitive is recorded, as in a trace.
fn by_primitives(f: impl FnOnce(&[Array]) -> Result<Vec<Array>>) -> Result<Vec<Array>> {
    let avals: Vec<Aval> = inputs().iter().map(|x| x.aval().clone()).collect();
    let traced = Graph::trace(&avals, f)?;
    traced.graph.replay(&[inputs(), traced.captures].concat())
}

/// How many operations a drawing of a graph has.
fn count(arrays: &[Array]) -> Result<usize> {
    Ok(to_dot(arrays, &[]).lines().filter(|line| line.contains("shape=rectangle")).count())
}

#[test]
fn the_plan_is_that_of_the_primitives() -> Result<()> {
    let all = [0, 1, 2, 3, 4];
    let (values, grads) = value_and_grad(loss, &all)(&inputs())?;
    let own = [values, grads].concat();
    let primitives = by_primitives(|a| {
        let (values, grads) = value_and_grad(loss, &all)(a)?;
        Ok([values, grads].concat())
    })?;
    let (plan, other) = (explain(&own)?, explain(&primitives)?);
    let steps = |plan: &cupola::plan::Explanation| {
        let mut steps: Vec<String> = plan.steps.iter().map(|step| format!("{step:?}")).collect();
        steps.sort();
        steps.len()
    };
    assert_eq!(steps(&plan), steps(&other), "{plan}\n{other}");
    assert_eq!(plan.bytes(), other.bytes(), "{plan}\n{other}");
    for (a, b) in own.iter().zip(&primitives) {
        assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
    }
    Ok(())
}

#[test]
fn derivatives_have_derivatives() -> Result<()> {
    let slope = |a: &[Array]| {
        let slopes = grad(loss, &[0, 3])(a)?;
        let both = ops::add(
            &ops::sum(&ops::square(&slopes[0])?, (), false)?,
            &ops::sum(&slopes[1], (), false)?,
        )?;
        Ok(vec![both])
    };
    let own = grad(slope, &[0, 1, 3])(&inputs())?;
    let primitives = by_primitives(|a| grad(slope, &[0, 1, 3])(a))?;
    for (a, b) in own.iter().zip(&primitives) {
        for (a, b) in a.to_vec::<f32>()?.iter().zip(b.to_vec::<f32>()?) {
            assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{a} {b}");
        }
    }
    Ok(())
}

#[test]
fn a_cotangent_that_nobody_holds_is_not_computed() -> Result<()> {
    let layer = |a: &[Array]| {
        let y = ops::addmm(&a[2], &ops::tanh(&a[0])?, &a[1], 1.0, 1.0)?;
        Ok(vec![ops::sum(&ops::square(&y)?, (), false)?])
    };
    let given = [ramp(&[64, 8]), ramp(&[8, 8]), ramp(&[8])];
    let all = grad(layer, &[0, 1, 2])(&given)?;
    let [_, of_matrix, of_bias] = &all[..] else { unreachable!() };
    let both = [of_matrix.clone(), of_bias.clone()];
    drop(all);
    let products = |arrays: &[Array]| -> Result<usize> {
        Ok(explain(arrays)?.to_string().matches("matmul").count())
    };
    // The forward product and that of the matrix: not that of x.
    assert_eq!(products(&both)?, 2, "{}", explain(&both)?);
    Ok(())
}

#[test]
fn forms_differ_by_shapes_dtypes_and_parameters() -> Result<()> {
    let x = ramp(&[3, 8]);
    let norm = |x: &Array, eps| ops::layer_norm(x, None, None, eps)?.to_vec::<f32>();
    assert_ne!(norm(&x, 1e-5)?, norm(&x, 1.0)?);
    assert_ne!(ops::softmax(&x, 0)?.to_vec::<f32>()?, ops::softmax(&x, 1)?.to_vec::<f32>()?);
    let half = ops::astype(&x, DType::F16)?;
    assert_eq!(ops::gelu(&half)?.dtype(), DType::F16);
    assert_eq!(ops::gelu(&x)?.dtype(), DType::F32);
    let weight = ops::layer_norm(&x, Some(&ramp(&[8])), None, 1e-5)?;
    let bias = ops::layer_norm(&x, None, Some(&ramp(&[8])), 1e-5)?;
    assert_ne!(weight.to_vec::<f32>()?, bias.to_vec::<f32>()?);
    // One node each, and what it takes.
    assert_eq!(count(&[ops::gelu(&ops::softmax(&x, -1)?)?])?, 2);
    // Where a rotation begins is given anew each time: the plan is the same.
    let at = |start: i64| {
        ops::rope(&ramp(&[1, 2, 4]), &RopeOptions { offset: start.into(), ..RopeOptions::new(4) })
    };
    at(3)?.eval()?;
    let next = at(4)?;
    assert!(explain(std::slice::from_ref(&next))?.reused);
    assert_ne!(next.to_vec::<f32>()?, at(3)?.to_vec::<f32>()?);
    Ok(())
}
