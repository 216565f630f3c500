//! Loops and branches of functions: what the suite cannot say of one primitive.

use cupola::backend::{backend, devices_of};
use cupola::device::{DeviceKind, Stream, with_stream};
use cupola::fallback::{self, Policy};
use cupola::nn::{Gru, Lstm, Rnn};
use cupola::ops::random;
use cupola::transform::{
    Branch, LoopOptions, checkpoint, compile, cond, fori_loop, grad, jvp, scan, switch,
    value_and_grad, vjp, vmap, while_loop,
};
use cupola::{Array, DType, Device, Error, Result, generator, ops, plan};

fn ramp(shape: &[usize], by: f64) -> Result<Array> {
    let size: usize = shape.iter().product();
    let data: Vec<f64> = (0..size).map(|i| ((i * 7 + i / 5) % 17) as f64 * by - 8.0 * by).collect();
    Array::from_vec(data, shape)
}

fn close(what: &str, got: &Array, want: &Array) -> Result<()> {
    assert_eq!(got.aval(), want.aval(), "{what}");
    let (got, want) = (got.to_vec::<f64>()?, want.to_vec::<f64>()?);
    for (g, w) in got.iter().zip(&want) {
        assert!((g - w).abs() <= 1e-10 * (1.0 + w.abs()), "{what}: {g} and {w}");
    }
    Ok(())
}

/// A recurrent layer's step with a product, a reduction and a gate.
fn step(h: &Array, x: &Array, w: &Array) -> Result<Array> {
    let sum = ops::add(x, &ops::matmul(h, w)?)?;
    let gate = ops::softmax(&sum, -1)?;
    ops::tanh(&ops::add(&sum, &ops::multiply(&gate, h)?)?)
}

/// The sum of squares of what all steps give, by a loop.
fn looped(x: &[Array]) -> Result<Vec<Array>> {
    let f = |c: &[Array], e: &[Array]| {
        let next = step(&c[0], &e[0], &x[2])?;
        Ok((vec![next.clone()], vec![next]))
    };
    let (last, all) = scan(f, &x[..1], &x[1..2], LoopOptions::default())?;
    let sum = ops::sum(&ops::square(&all[0])?, (), false)?;
    Ok(vec![ops::add(&sum, &ops::sum(&last[0], (), false)?)?])
}

/// The same, a step after the other.
fn unrolled(x: &[Array]) -> Result<Vec<Array>> {
    let mut h = x[0].clone();
    let mut all = Vec::new();
    for e in ops::unstack(&x[1], 0)? {
        h = step(&h, &e, &x[2])?;
        all.push(h.clone());
    }
    let all = ops::stack(&all.iter().collect::<Vec<_>>(), 0)?;
    let sum = ops::sum(&ops::square(&all)?, (), false)?;
    Ok(vec![ops::add(&sum, &ops::sum(&h, (), false)?)?])
}

fn operands(length: usize) -> Result<[Array; 3]> {
    Ok([ramp(&[2, 4], 0.03)?, ramp(&[length, 2, 4], 0.05)?, ramp(&[4, 4], 0.02)?])
}

#[test]
fn a_loop_is_its_steps_in_every_derivative() -> Result<()> {
    let x = operands(6)?;
    close("value", &looped(&x)?[0], &unrolled(&x)?[0])?;
    let (g, w) = (grad(looped, &[0, 1, 2])(&x)?, grad(unrolled, &[0, 1, 2])(&x)?);
    for (g, w) in g.iter().zip(&w) {
        close("gradient", g, w)?;
    }
    let second = |f: fn(&[Array]) -> Result<Vec<Array>>| {
        let slopes = move |x: &[Array]| {
            let found = grad(f, &[0, 1, 2])(x)?;
            let sums = found.iter().map(|g| ops::sum(&ops::sin(g)?, (), false));
            let sums = sums.collect::<Result<Vec<_>>>()?;
            Ok(vec![ops::add(&ops::add(&sums[0], &sums[1])?, &sums[2])?])
        };
        grad(slopes, &[0, 1, 2])(&x)
    };
    for (g, w) in second(looped)?.iter().zip(&second(unrolled)?) {
        close("second", g, w)?;
    }
    let tangents = [ramp(&[2, 4], 0.3)?, ramp(&[6, 2, 4], 0.2)?, ramp(&[4, 4], 0.1)?];
    let (_, g) = jvp(looped, &x, &tangents)?;
    let (_, w) = jvp(unrolled, &x, &tangents)?;
    close("jvp", &g[0], &w[0])?;
    // Under checkpoint and compile, and through a batch of weights.
    let again = grad(checkpoint(looped), &[2])(&x)?;
    close("checkpoint", &again[0], &w_of(&x)?)?;
    let compiled = compile(|_: &mut (), x: &[Array]| grad(looped, &[2])(x));
    close("compiled", &compiled.call(&mut (), &x)?[0], &w_of(&x)?)?;
    let weights = ops::stack(&[&x[2], &ops::multiply(&x[2], 2)?], 0)?;
    let each = vmap(|v| grad(looped, &[2])(v), &[None, None, Some(0)], &[0]);
    let each = each(&[x[0].clone(), x[1].clone(), weights])?;
    let twice = [x[0].clone(), x[1].clone(), ops::multiply(&x[2], 2)?];
    let want = [w_of(&x)?, w_of(&twice)?];
    close("batched", &each[0], &ops::stack(&want.iter().collect::<Vec<_>>(), 0)?)
}

fn w_of(x: &[Array]) -> Result<Array> {
    Ok(grad(unrolled, &[2])(x)?.remove(0))
}

#[test]
fn the_plan_does_not_grow_with_the_length() -> Result<()> {
    let steps = |length: usize| -> Result<Vec<String>> {
        let (values, grads) = value_and_grad(looped, &[0, 2])(&operands(length)?)?;
        let explained = plan::explain(&[values, grads].concat())?;
        assert!(explained.operations() > 0 && explained.bytes() > 0);
        Ok(explained.steps.iter().map(|step| step.kind.clone()).collect())
    };
    let (short, long) = (steps(3)?, steps(300)?);
    assert_eq!(short, long);
    // The way back keeps what it needs of the one loop forward.
    assert_eq!(long.iter().filter(|kind| *kind == "scan").count(), 2, "{long:?}");
    let [h, x, w] = operands(5)?;
    let f = |c: &[Array], e: &[Array]| Ok((vec![step(&c[0], &e[0], &w)?], vec![]));
    let (last, _) = scan(f, &[h], &[x], LoopOptions::default())?;
    let text = plan::explain(&last)?.to_string();
    assert!(text.contains("scan 5 times") && text.contains("\n    "), "{text}");
    Ok(())
}

#[test]
fn equal_loops_have_one_plan() -> Result<()> {
    let run = |scale: f64| -> Result<Array> {
        let f = move |c: &[Array], e: &[Array]| Ok((vec![&c[0] + &e[0] * scale], vec![]));
        let x = ramp(&[7, 3], 0.125)?;
        Ok(scan(f, &[ramp(&[3], 1.0)?], &[x], LoopOptions::default())?.0.remove(0))
    };
    run(2.0)?.eval()?;
    assert!(plan::explain(&[run(2.0)?])?.reused);
    // A number of a body is part of the body.
    assert!(!plan::explain(&[run(3.0)?])?.reused);
    Ok(())
}

#[test]
fn what_is_carried_takes_its_memory_once() -> Result<()> {
    let device = Device { kind: DeviceKind::Cpu, index: 0 };
    let on = backend(device)?;
    let x = ops::ones([1 << 18], DType::F32)?;
    x.eval()?;
    let y = fori_loop(0, 200, |i, c| Ok(vec![ops::add(&ops::sin(&c[0])?, i)?]), &[x])?;
    on.trim();
    on.set_peak(0);
    let before = on.memory().active;
    y[0].eval()?;
    let more = on.memory().peak - before;
    assert!(more <= 4 << 20, "{more} bytes for 1 MiB that is carried");
    Ok(())
}

#[test]
fn a_cache_is_written_in_place() -> Result<()> {
    // Each iteration writes one row of what is carried.
    let cache = ops::zeros([64, 8], DType::F64)?;
    let x = ramp(&[64, 8], 1.0)?;
    let f = |c: &[Array], e: &[Array]| {
        let row = ops::expand_dims(&e[0], 0)?;
        let place = ops::reshape(&ops::astype(&c[1], DType::I32)?, [1, 1])?;
        let place = ops::broadcast_to(&place, [1, 8])?;
        let cache = ops::put_along_axis(&c[0], &place, &row, 0)?;
        Ok((vec![cache, ops::add(&c[1], 1)?], vec![]))
    };
    let (last, _) = scan(f, &[cache, Array::scalar(0i32)], &[x.clone()], LoopOptions::default())?;
    assert_eq!(last[0].to_vec::<f64>()?, x.to_vec::<f64>()?);
    Ok(())
}

#[test]
fn loops_that_end_by_themselves() -> Result<()> {
    // x doubles until it is beyond a bound.
    let doubled = |v: &[Array]| {
        let bound = v[1].clone();
        let on = |c: &[Array]| ops::less(&c[0], &bound);
        let twice = |c: &[Array]| Ok(vec![&c[0] * 2.0, ops::add(&c[1], 1)?]);
        while_loop(on, twice, &[v[0].clone(), Array::scalar(0i32)], None)
    };
    let all = doubled(&[Array::scalar(1.5f64), Array::scalar(20.0f64)])?;
    assert_eq!((all[0].item::<f64>()?, all[1].item::<i32>()?), (24.0, 4));
    let (_, slope) = jvp(
        |x| doubled(&[x[0].clone(), Array::scalar(20.0f64)]),
        &[Array::scalar(1.5f64)],
        &[Array::scalar(1.0f64)],
    )?;
    assert_eq!(slope[0].item::<f64>()?, 16.0);
    let error = vjp(
        |x| Ok(vec![doubled(&[x[0].clone(), Array::scalar(20.0f64)])?.remove(0)]),
        &[Array::scalar(1.5f64)],
        &[Array::scalar(1.0f64)],
    );
    assert!(matches!(error, Err(Error::NoDerivative { op: "while_loop", .. })));
    // Where a largest number of iterations is given, there is one.
    let bounded = |v: &[Array], most: usize| {
        let on = |c: &[Array]| ops::less(&c[0], &v[1]);
        while_loop(on, |c| Ok(vec![&c[0] * 2.0]), &[v[0].clone()], Some(most))
    };
    let at = [Array::scalar(1.5f64), Array::scalar(20.0f64)];
    for (most, value, slope) in [(0, 1.5, 1.0), (3, 12.0, 8.0), (4, 24.0, 16.0), (30, 24.0, 16.0)] {
        let (last, found) = vjp(|x| bounded(x, most), &at, &[Array::scalar(1.0f64)])?;
        assert_eq!((last[0].item::<f64>()?, found[0].item::<f64>()?), (value, slope), "{most}");
        assert_eq!(found[1].item::<f64>()?, 0.0);
    }
    // Each of a batch ends when it is done.
    let x = Array::from_slice(&[1.5f64, 30.0, 0.25], [3])?;
    let each = vmap(doubled, &[Some(0), None], &[0, 0])(&[x.clone(), Array::scalar(20.0f64)])?;
    assert_eq!(each[0].to_vec::<f64>()?, [24.0, 30.0, 32.0]);
    assert_eq!(each[1].to_vec::<i32>()?, [4, 0, 7]);
    let bounds = Array::from_slice(&[2.0f64, 100.0], [2])?;
    let each = vmap(doubled, &[None, Some(0)], &[0, 0])(&[Array::scalar(1.5f64), bounds])?;
    assert_eq!(each[0].to_vec::<f64>()?, [3.0, 192.0]);
    // The condition is the same for all of a batch.
    let sums = vmap(
        |v: &[Array]| {
            let on = |c: &[Array]| ops::less(&c[1], 3);
            let next = |c: &[Array]| Ok(vec![ops::add(&c[0], &v[0])?, ops::add(&c[1], 1)?]);
            while_loop(on, next, &[Array::scalar(1.0f64), Array::scalar(0i32)], None)
        },
        &[Some(0)],
        &[0, 0],
    );
    assert_eq!(sums(&[x])?[0].to_vec::<f64>()?, [5.5, 91.0, 1.75]);
    Ok(())
}

#[test]
fn only_the_branch_that_is_taken_runs() -> Result<()> {
    let x = Array::from_slice(&[4.0f64, 9.0], [2])?;
    let beyond = Array::from_slice(&[7i32], [1])?;
    let chosen = |which: bool| {
        let take = |x: &[Array]| Ok(vec![ops::take(&x[0], &beyond, 0)?]);
        let root = |x: &[Array]| Ok(vec![ops::slice(&ops::sqrt(&x[0])?, &[0], &[1], &[1])?]);
        cond(&Array::scalar(which), take, root, &[x.clone()])
    };
    assert_eq!(chosen(false)?[0].to_vec::<f64>()?, [2.0]);
    let failed = chosen(true)?.remove(0);
    assert!(matches!(failed.eval(), Err(Error::Index { .. })));
    // It can be asked again, and says the same.
    assert!(matches!(failed.eval(), Err(Error::Index { .. })));
    Ok(())
}

#[test]
fn branches_over_batches_and_their_slopes() -> Result<()> {
    let f = |v: &[Array]| {
        let branches: Vec<Branch<'_>> = vec![
            Box::new(|x| Ok(vec![ops::square(&x[0])?])),
            Box::new(|x| Ok(vec![ops::sin(&x[0])?])),
            Box::new(|x| Ok(vec![ops::multiply(&x[0], 3)?])),
        ];
        switch(&v[0], branches, &v[1..])
    };
    let x = Array::from_slice(&[1.5f64, 2.5, 3.5, 4.5], [4])?;
    let which = Array::from_slice(&[2i32, 0, -4, 9], [4])?;
    let want: [f64; 4] = [4.5, 6.25, 12.25, 13.5];
    let got = vmap(f, &[Some(0), Some(0)], &[0])(&[which.clone(), x.clone()])?;
    assert_eq!(got[0].to_vec::<f64>()?, want);
    let slopes = vmap(grad(f, &[1]), &[Some(0), Some(0)], &[0])(&[which, x.clone()])?;
    assert_eq!(slopes[0].to_vec::<f64>()?, [3.0, 5.0, 7.0, 3.0]);
    for (number, want) in [(0i32, 3.0), (1, 1.5f64.cos()), (5, 3.0)] {
        let arguments = [Array::scalar(number), Array::scalar(1.5f64)];
        let slope = grad(f, &[1])(&arguments)?;
        assert!((slope[0].item::<f64>()? - want).abs() < 1e-12);
        let tangents = [ops::zeros([], DType::I32)?, Array::scalar(1.0f64)];
        let (_, tangent) = jvp(f, &arguments, &tangents)?;
        assert!((tangent[0].item::<f64>()? - want).abs() < 1e-12);
    }
    let one = vmap(f, &[None, Some(0)], &[0])(&[Array::scalar(2i32), x])?;
    assert_eq!(one[0].to_vec::<f64>()?, [4.5, 7.5, 10.5, 13.5]);
    Ok(())
}

/// What a branch would give that an element does not take is not finite, nor are its slopes: they stay out.
#[test]
fn slopes_of_batches_are_those_of_the_branches_that_are_taken() -> Result<()> {
    let f = |v: &[Array]| {
        let branches: Vec<Branch<'_>> = vec![
            Box::new(|x| Ok(vec![ops::sqrt(&x[0])?])),
            Box::new(|x| Ok(vec![ops::log(&x[0])?])),
            Box::new(|x| Ok(vec![ops::multiply(&x[0], 3)?])),
        ];
        switch(&v[0], branches, &v[1..])
    };
    let x = Array::from_slice(&[4.0f64, 0.0, 0.5, -2.0], [4])?;
    for (dtype, which, want) in [
        (DType::I32, [-1, 2, 1, 7], [0.25, 3.0, 2.0, 3.0]),
        (DType::U8, [0, 2, 1, 3], [0.25, 3.0, 2.0, 3.0]),
    ] {
        let which = ops::astype(&Array::from_slice(&which, [4])?, dtype)?;
        let total = |v: &[Array]| {
            let all = vmap(f, &[Some(0), Some(0)], &[0])(&[which.clone(), v[0].clone()])?;
            Ok(vec![ops::sum(&all[0], (), false)?])
        };
        assert_eq!(grad(total, &[0])(&[x.clone()])?[0].to_vec::<f64>()?, want);
    }
    // A single branch, whatever its number, and a bool.
    let root = |x: &[Array]| Ok(vec![ops::sqrt(&x[0])?]);
    let alone = |v: &[Array]| switch(&v[0], vec![Box::new(root) as Branch<'_>], &v[1..]);
    let either = |v: &[Array]| cond(&v[0], root, |x| Ok(vec![x[0].clone()]), &v[1..]);
    let numbers = Array::from_slice(&[0i32, 5, -1, 1], [4])?;
    let x = Array::from_slice(&[4.0f64, 16.0, 1.0, 0.25], [4])?;
    let total = |v: &[Array]| {
        let all = vmap(alone, &[Some(0), Some(0)], &[0])(&[numbers.clone(), v[0].clone()])?;
        Ok(vec![ops::sum(&all[0], (), false)?])
    };
    assert_eq!(grad(total, &[0])(&[x])?[0].to_vec::<f64>()?, [0.25, 0.125, 0.5, 1.0]);
    let bools = Array::from_slice(&[true, false], [2])?;
    let total = |v: &[Array]| {
        let all = vmap(either, &[Some(0), Some(0)], &[0])(&[bools.clone(), v[0].clone()])?;
        Ok(vec![ops::sum(&all[0], (), false)?])
    };
    let x = Array::from_slice(&[4.0f64, 0.0], [2])?;
    assert_eq!(grad(total, &[0])(&[x])?[0].to_vec::<f64>()?, [0.25, 1.0]);
    Ok(())
}

#[test]
fn random_numbers_are_others_in_each_iteration() -> Result<()> {
    let draw = || -> Result<Array> {
        let f = |_: &[Array], _: &[Array]| {
            Ok((vec![], vec![random::uniform(0, 1, [4], DType::F32, None)?]))
        };
        let options = LoopOptions { length: Some(3), ..Default::default() };
        Ok(scan(f, &[], &[], options)?.1.remove(0))
    };
    generator::seed(7);
    let (first, second) = (draw()?.to_vec::<f32>()?, draw()?.to_vec::<f32>()?);
    let mut all = [&first[..], &second[..]].concat();
    all.sort_by(f32::total_cmp);
    all.dedup();
    assert_eq!(all.len(), 24);
    generator::seed(7);
    assert_eq!(draw()?.to_vec::<f32>()?, first);
    let chosen = cond(
        &Array::scalar(true),
        |_| Ok(vec![random::uniform(0, 1, [2], DType::F32, None)?]),
        |_| Ok(vec![ops::zeros([2], DType::F32)?]),
        &[],
    )?;
    assert_ne!(chosen[0].to_vec::<f32>()?, first[..2]);
    Ok(())
}

#[test]
fn what_does_not_fit_is_said() {
    let x = || ops::ones([3], DType::F32).unwrap();
    let error =
        |result: Result<Vec<Array>>| result.err().map(|e| e.to_string()).unwrap_or_default();
    let scanned = |f: fn(&Array) -> Result<Array>, xs: &[Array], length| {
        let f = move |c: &[Array], _: &[Array]| Ok((vec![f(&c[0])?], vec![]));
        let options = LoopOptions { length, reverse: false };
        error(scan(f, &[x()], xs, options).map(|(last, _)| last))
    };
    let same = |x: &Array| Ok(x.clone());
    let text = scanned(|x| ops::concatenate(&[x, x], 0), &[], Some(2));
    assert!(text.contains("float32[3] before an iteration and float32[6] after"), "{text}");
    let text = scanned(|x| ops::astype(x, DType::F16), &[], Some(2));
    assert!(text.contains("float32[3] before an iteration and float16[3] after"), "{text}");
    assert!(scanned(same, &[], None).contains("how often"));
    assert!(scanned(same, &[Array::scalar(1f32)], None).contains("no axis 0"));
    let two = ops::ones([2], DType::F32).unwrap();
    assert!(scanned(same, &[x(), two.clone()], None).contains("others have 3"));
    assert!(scanned(same, &[two], Some(4)).contains("length is 4"));
    let yes = |_: &[Array]| Ok(Array::scalar(true));
    let text = error(while_loop(|c| Ok(c[0].clone()), |c| Ok(c.to_vec()), &[x()], None));
    assert!(text.contains("one bool without axes, it gives float32[3]"), "{text}");
    assert!(error(while_loop(yes, |_| Ok(vec![]), &[x()], None)).contains("1 arrays are carried"));
    assert!(error(while_loop(yes, |_| Ok(vec![]), &[], None)).contains("nothing is carried"));
    let one = |x: &[Array]| Ok(vec![x[0].clone()]);
    let half = |x: &[Array]| Ok(vec![ops::astype(&x[0], DType::F16)?]);
    let text = error(cond(&Array::scalar(true), one, half, &[x()]));
    assert!(text.contains("branch false gives") && text.contains("branch true gives"), "{text}");
    assert!(error(cond(&x(), one, one, &[x()])).contains("must be one bool"));
    assert!(error(switch(&Array::scalar(1f32), vec![Box::new(one)], &[x()])).contains("integer"));
    assert!(error(switch(&Array::scalar(1i32), vec![], &[x()])).contains("no branch"));
    let read = |c: &[Array], _: &[Array]| {
        c[0].item::<f32>()?;
        Ok((c.to_vec(), vec![]))
    };
    let options = LoopOptions { length: Some(1), reverse: false };
    let text = error(scan(read, &[Array::scalar(1f32)], &[], options).map(|(last, _)| last));
    assert!(text.contains("scan is tracing"), "{text}");
    assert!(error(fori_loop(0, 1 << 40, |_, c| Ok(c.to_vec()), &[x()])).contains("no int32"));
    assert!(error(fori_loop(3, 1, |_, c| Ok(c.to_vec()), &[x()])).is_empty());
}

/// Recurrent layers give what their cells give, one step after the other.
#[test]
fn layers_are_their_cells_step_by_step() -> Result<()> {
    for length in [3, 40] {
        let x = ops::astype(&ramp(&[2, length, 3], 0.05)?, DType::F32)?;
        let steps = ops::unstack(&x, 1)?;
        let near = |what: &str, got: &Array, want: Vec<Array>| -> Result<()> {
            let want = ops::stack(&want.iter().collect::<Vec<_>>(), 1)?;
            assert_eq!(got.aval(), want.aval(), "{what}");
            let far = ops::max(&ops::abs(&ops::subtract(got, &want)?)?, (), false)?;
            assert!(far.item::<f32>()? < 1e-6, "{what} of {length} steps");
            Ok(())
        };
        let start = ops::full([4], 0.5, DType::F32)?;
        for first in [None, Some(&start)] {
            let rnn = Rnn::new(3, 4)?;
            let gru = Gru::new(3, 4)?;
            let lstm = Lstm::new(3, 4)?;
            let (mut r, mut g) = (first.cloned(), first.cloned());
            let mut l = (first.cloned(), None);
            let (mut rs, mut gs, mut hs, mut cs) = (vec![], vec![], vec![], vec![]);
            for x in &steps {
                r = Some(rnn.cell.forward(x, r.as_ref())?);
                g = Some(gru.cell.forward(x, g.as_ref())?);
                let (h, c) = lstm.cell.forward(x, l.0.as_ref(), l.1.as_ref())?;
                l = (Some(h), Some(c));
                rs.extend(r.clone());
                gs.extend(g.clone());
                hs.extend(l.0.clone());
                cs.extend(l.1.clone());
            }
            near("Rnn", &rnn.forward_from(&x, first)?, rs)?;
            near("Gru", &gru.forward_from(&x, first)?, gs)?;
            let (h, c) = lstm.forward_from(&x, first, None)?;
            near("Lstm", &h, hs)?;
            near("Lstm's cell", &c, cs)?;
        }
    }
    Ok(())
}

/// What a device has no kernel for runs on the CPU inside of a body, too, and is written down.
#[test]
fn a_body_falls_back_where_it_has_to() -> Result<()> {
    let Some(device) = devices_of(DeviceKind::Wgpu).first().map(|b| b.device()) else {
        println!("there is no wgpu device: nothing was tested");
        return Ok(());
    };
    fallback::set_policy(Policy::Allow);
    let run = || -> Result<Vec<f32>> {
        let x = ops::astype(&ramp(&[5, 3, 3], 0.1)?, DType::F32)?;
        let f = |c: &[Array], x: &[Array]| {
            let square = ops::matmul(&x[0], &ops::transpose(&x[0], ())?)?;
            let root =
                ops::linalg::cholesky(&ops::add(&square, &ops::eye(3, DType::F32)?)?, false)?;
            Ok((vec![ops::add(&c[0], &root)?], vec![root]))
        };
        let (last, all) =
            scan(f, &[ops::zeros([3, 3], DType::F32)?], &[x], LoopOptions::default())?;
        Ok([last[0].to_vec::<f32>()?, all[0].to_vec::<f32>()?].concat())
    };
    let want = run()?;
    let got = with_stream(Stream::of(device), run)?;
    for (g, w) in got.iter().zip(&want) {
        assert!((g - w).abs() < 1e-4, "{g} and {w}");
    }
    assert!(fallback::records().iter().any(|r| r.op.contains("cholesky") && r.runs >= 5));
    Ok(())
}
