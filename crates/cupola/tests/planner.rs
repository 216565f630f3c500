//! What the planner promises: results do not change by fusing, plans are found again, memory is
//! reused, and what is evaluated twice is computed once.

use std::sync::{Arc, Mutex};

use cupola::backend::{Buffer, backend};
use cupola::device::with_stream;
use cupola::plan::{cache, explain};
use cupola::transform::{TRACE_BYTES, checkpoint, compile, grad, value_and_grad, vmap};
use cupola::{
    Array, Aval, DType, Device, Element, Error, Layout, Result, Stream, async_eval, eval,
    generator, ops,
};

/// The plan cache and the memory counters are the process's: tests that count take turns.
static COUNTING: Mutex<()> = Mutex::new(());

fn counting() -> std::sync::MutexGuard<'static, ()> {
    COUNTING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn ramp(shape: &[usize]) -> Array {
    let size: usize = shape.iter().product();
    let data: Vec<f32> = (0..size).map(|i| (i % 97) as f32 * 0.25 - 3.0).collect();
    Array::from_vec(data, shape).unwrap()
}

#[test]
fn a_chain_of_a_thousand_additions() {
    let one = Array::from_vec(vec![1.0f32; 64], [8, 8]).unwrap();
    let mut y = one.clone();
    for _ in 0..1000 {
        y = &y + &one;
    }
    assert_eq!(y.to_vec::<f32>().unwrap(), vec![1001.0; 64]);
}

#[test]
fn a_million_nodes_do_not_overflow_the_stack() {
    let one = Array::scalar(1.0f64);
    one.eval().unwrap();
    let mut y = one.clone();
    for _ in 0..1_000_000 {
        y = &y + &one;
    }
    drop(y.clone());
    assert_eq!(y.item::<f64>().unwrap(), 1_000_001.0);
}

#[test]
fn a_training_loop_plans_once() -> Result<()> {
    let _turn = counting();
    let data = ramp(&[64, 8]);
    let mut w = ramp(&[8, 1]);
    let step = value_and_grad(
        |a: &[Array]| Ok(vec![ops::mean(&ops::square(&ops::matmul(&a[1], &a[0])?)?, (), false)?]),
        &[0],
    );
    let mut before = None;
    for i in 0..50usize {
        let batch = data.slice_rows(i % 4 * 16, 16)?;
        let (loss, grads) = step(&[w.clone(), batch])?;
        let rate = 0.001 / (1.0 + i as f64);
        w = &w - &(&grads[0] * rate);
        eval(&[w.clone(), loss[0].clone()])?;
        if i == 0 {
            before = Some(cache::stats().misses);
        }
    }
    assert_eq!(Some(cache::stats().misses), before, "a step after the first one planned anew");
    assert!(w.to_vec::<f32>()?.iter().all(|v| v.is_finite()));
    Ok(())
}

/// The rows of a batch, whose start no plan depends on.
trait Rows {
    fn slice_rows(&self, start: usize, count: usize) -> Result<Array>;
}

impl Rows for Array {
    fn slice_rows(&self, start: usize, count: usize) -> Result<Array> {
        let mut sizes = self.shape().0.clone();
        sizes[0] = count;
        let mut first = cupola::Dims::from_elem(0, sizes.len());
        first[0] = start;
        let strides = cupola::Dims::from_elem(1, sizes.len());
        Array::apply(cupola::prim::Movement::Slice { start: first, sizes, strides }, &[self])
    }
}

#[test]
fn slices_of_what_is_not_computed_yet_start_where_they_should() -> Result<()> {
    let x = ramp(&[10, 3]);
    for start in [0, 3, 7] {
        let lazy = &x + 1.0;
        let rows = lazy.slice_rows(start, 2)?;
        let got = (&rows * 2.0).to_vec::<f32>()?;
        let want: Vec<f32> =
            x.to_vec::<f32>()?[start * 3..start * 3 + 6].iter().map(|v| (v + 1.0) * 2.0).collect();
        assert_eq!(got, want);
    }
    Ok(())
}

#[test]
fn a_slice_does_not_take_over_the_memory_that_it_starts_inside_of() -> Result<()> {
    let x = Array::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [4])?;
    x.eval()?;
    let doubled = ops::multiply(&x, 2)?;
    let moved = ops::slice(&doubled, &[1], &[4], &[1])?;
    drop(doubled);
    let y = ops::concatenate(&[&moved, &ops::zeros(1, DType::F32)?], 0)?;
    drop(moved);
    assert_eq!(y.to_vec::<f32>()?, [4.0, 6.0, 8.0, 0.0]);
    Ok(())
}

#[test]
fn constants_are_no_part_of_a_plan() -> Result<()> {
    let _turn = counting();
    let x = ramp(&[5]);
    (&x * 1.5).eval()?;
    let misses = cache::stats().misses;
    for i in 0..20 {
        let y = &x * (f64::from(i) * 0.1);
        let want: Vec<f32> =
            x.to_vec::<f32>()?.iter().map(|v| v * (f64::from(i) * 0.1) as f32).collect();
        assert_eq!(y.to_vec::<f32>()?, want);
    }
    assert_eq!(cache::stats().misses, misses);
    Ok(())
}

#[test]
fn what_is_held_is_computed_with_the_rest_and_kept() -> Result<()> {
    let x = ramp(&[6]);
    let middle = ops::exp(&x)?;
    let end = &middle + 1.0;
    end.eval()?;
    assert!(middle.is_ready(), "an array that somebody holds was computed and thrown away");
    Ok(())
}

#[test]
fn elementwise_work_is_one_step() -> Result<()> {
    let x = ramp(&[32, 16]);
    let bias = ramp(&[16]);
    let y = ops::sum(&ops::tanh(&(&(&x * 2.0) + &bias))?, (), false)?;
    let plan = explain(&[y])?;
    assert_eq!(plan.steps.len(), 1, "{plan}");
    let z = ops::maximum(&(&ops::matmul(&x, &ramp(&[16, 4]))? + &ramp(&[4])), 0.0)?;
    let plan = explain(&[z])?;
    assert_eq!(plan.steps.len(), 1, "{plan}");
    Ok(())
}

#[test]
fn work_whose_every_value_is_read_later_keeps_to_what_a_program_may_touch() -> Result<()> {
    let most = backend(Device::CPU)?.limits().body_operands;
    let x = ramp(&[3, 50]);
    // Rows, the whole, and turned: each way to read one array is an array of its own.
    let row = ramp(&[1, 50]);
    let turned = ops::transpose(&ramp(&[50, 3]), [1, 0])?;
    let make = |evaluated: bool| -> Result<Vec<Array>> {
        let mut values = vec![x.clone()];
        for number in 0..100 {
            let last = &values[values.len() - 1];
            let other = [&row, &turned, &values[number / 3]][number % 3];
            let value = ops::sin(&(&(last * 0.75) + other))?;
            if evaluated {
                value.eval()?;
            }
            values.push(value);
        }
        // In another shape nobody can go on where the values are made.
        let sums = values.iter().map(|value| ops::sum(&ops::square(value)?, 0, false));
        sums.collect()
    };
    let want = make(true)?;
    let sums = make(false)?;
    let plan = explain(&sums)?;
    let touched = |step: &cupola::plan::ExplainedStep| step.inputs.len() + step.outputs.len();
    assert!(plan.steps.iter().all(|step| touched(step) <= most), "{plan}");
    assert!(plan.steps.iter().any(|step| step.kind == "map" && step.fused.len() > 9), "{plan}");
    eval(&sums)?;
    for (have, want) in sums.iter().zip(&want) {
        assert_eq!(have.to_vec::<f32>()?, want.to_vec::<f32>()?);
    }
    Ok(())
}

#[test]
fn masks_of_the_backward_pass_are_made_there() -> Result<()> {
    let half = |array: &Array| array.astype(DType::BF16);
    let (x, w) = (half(&ramp(&[512, 128]))?, half(&(&ramp(&[128, 128]) * 0.05))?);
    let bias = half(&(&ramp(&[128]) - 20.0))?;
    for is_normed in [true, false] {
        let loss = |a: &[Array]| -> Result<Vec<Array>> {
            let mut h = a[0].clone();
            for _ in 0..4 {
                let y = ops::matmul(&h, &a[1])?;
                let y = match is_normed {
                    true => ops::batch_norm(&y, None, None, 1e-5)?.remove(0),
                    false => &y + &a[2],
                };
                h = ops::relu(&y)?;
            }
            Ok(vec![ops::sum(&ops::square(&h.astype(DType::F32)?)?, (), false)?])
        };
        let slope = grad(loss, &[1])(&[x.clone(), w.clone(), bias.clone()])?.remove(0);
        let plan = explain(&[slope.clone()])?;
        let large =
            |(aval, _): &&(Aval, u32)| aval.dtype == DType::Bool && aval.shape.size() > 1 << 15;
        let kept = plan.steps.iter().flat_map(|step| &step.outputs).filter(large).count();
        // That of the last layer is read at once.
        assert!(kept <= 1, "{kept} masks lie in memory: {plan}");
        assert!(plan.steps.iter().all(|step| !step.outputs.is_empty()), "{plan}");
        assert!(slope.astype(DType::F32)?.to_vec::<f32>()?.iter().any(|&x| x != 0.0));
    }
    Ok(())
}

#[test]
fn an_optimiser_step_is_one_step() -> Result<()> {
    let (p, g, m, v) = (ramp(&[100]), ramp(&[100]), ramp(&[100]), ops::square(&ramp(&[100]))?);
    v.eval()?;
    let m = &(&m * 0.9) + &(&g * 0.1);
    let v = &(&v * 0.999) + &(&ops::square(&g)? * 0.001);
    let p = &p - &(&(&m * 0.01) / &(&ops::sqrt(&v)? + 1e-8));
    let plan = explain(&[p, m, v])?;
    assert_eq!(plan.steps.len(), 1, "{plan}");
    Ok(())
}

#[test]
fn what_continues_the_gradient_of_weights_lies_as_they_do() -> Result<()> {
    let (w, bias, m) = (ramp(&[24, 16]), ramp(&[24]), ramp(&[24, 16]));
    let narrow = |x: &Array| ops::astype(x, DType::BF16);
    let turned = |x: &Array| ops::transpose(x, ());
    // Of the transposed weights.
    type Layer<'a> = &'a dyn Fn(&Array, &Array) -> Result<Array>;
    let layers: [Layer<'_>; 4] = [
        &|x, v| ops::matmul(x, v),
        &|x, v| ops::addmm(&bias, x, v, 1.0, 1.0),
        &|x, v| ops::matmul(&narrow(x)?, &narrow(v)?),
        &|_, v| ops::matmul(v, &ramp(&[24, 8])),
    ];
    for (number, layer) in layers.into_iter().enumerate() {
        for lead in [&[8][..], &[2, 4]] {
            let x = ramp(&[lead, &[16]].concat());
            let loss = |v: &Array| Ok(vec![ops::sum(&ops::square(&layer(&x, v)?)?, (), false)?]);
            let slope = grad(|w: &[Array]| loss(&turned(&w[0])?), &[0])(&[w.clone()])?;
            // The optimiser reads weights, gradient and moment in one order: in one step, or with the product.
            let moment = &(&m * 0.9) + &slope[0];
            let plan = explain(&[&w - &(&moment * 0.1), moment])?;
            let own =
                |(aval, _): &&(Aval, u32)| aval.shape[..] == [16, 24] && aval.dtype == DType::F32;
            for step in &plan.steps {
                assert_eq!(step.outputs.iter().find(own), None, "layer {number}: {plan}");
            }
            // The same by the transposed weights themselves.
            let plain = grad(|v: &[Array]| loss(&v[0]), &[0])(&[turned(&w)?])?;
            let (got, want) = (slope[0].to_vec::<f32>()?, turned(&plain[0])?.to_vec::<f32>()?);
            let most = want.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            let share = if number == 2 { 1e-2 } else { 1e-5 };
            for (got, want) in got.iter().zip(&want) {
                assert!((got - want).abs() <= share * most, "layer {number}: {got}, not {want}");
            }
        }
    }
    Ok(())
}

/// Reductions that read much the same run together, with the bits that each has alone.
#[test]
fn reductions_of_the_same_are_one_step() -> Result<()> {
    let (x, y) = (ramp(&[256, 128]), &ramp(&[256, 128]) * 0.01 - 3.0);
    let column = ramp(&[128]);
    eval(&[x.clone(), y.clone(), column.clone()])?;
    let sum = |x: Array| ops::sum(&x, 0, false);
    let scaled = || ops::tanh(&(&y * &column));
    type Make<'a> = Box<dyn Fn() -> Result<Vec<Array>> + 'a>;
    let cases: [(&str, usize, Make<'_>); 7] = [
        ("one of both", 1, Box::new(|| Ok(vec![sum(y.clone())?, sum(&x * &y)?]))),
        // As in the gradient of a norm: what both compute is computed once.
        ("of a chain", 1, Box::new(|| Ok(vec![sum(scaled()?)?, sum(&scaled()? * &x)?]))),
        ("squares", 1, Box::new(|| Ok(vec![sum(x.clone())?, sum(ops::square(&x)?)?]))),
        ("other kinds", 2, Box::new(|| Ok(vec![ops::max(&x, 0, false)?, sum(x.clone())?]))),
        ("other axes", 2, Box::new(|| Ok(vec![ops::sum(&x, (), false)?, sum(x.clone())?]))),
        (
            "one of the other",
            2,
            Box::new(|| {
                let mean = ops::mean(&x, 0, true)?;
                Ok(vec![sum(ops::square(&(&x - &mean))?)?, mean])
            }),
        ),
        (
            "six",
            2,
            Box::new(|| (1..7).map(|by| sum(ops::maximum(&x, by as f32 * 40.0)?)).collect()),
        ),
    ];
    for (name, steps, make) in &cases {
        let plan = explain(&make()?)?;
        let reductions = plan.steps.iter().filter(|step| ["sum", "max"].contains(&&*step.kind));
        assert_eq!(reductions.count(), *steps, "{name}: {plan}");
        let together = make()?;
        eval(&together)?;
        for (found, want) in together.iter().zip(make()?) {
            assert_eq!(found.to_vec::<f32>()?, want.to_vec::<f32>()?, "{name}");
        }
    }
    Ok(())
}

#[test]
fn memory_does_not_grow_and_is_taken_over() -> Result<()> {
    let _turn = counting();
    let cpu = backend(Device::CPU)?;
    let mut x = ramp(&[256, 256]);
    let mut active = Vec::new();
    for i in 0..20 {
        x = &(&x * 0.5) + 1.0;
        x.eval()?;
        if i > 2 {
            active.push(cpu.memory().active);
        }
    }
    assert!(active.iter().all(|&a| a == active[0]), "{active:?}");
    Ok(())
}

#[test]
fn a_donated_leaf_is_not_one_that_somebody_reads() -> Result<()> {
    let x = ramp(&[1000]);
    let before = x.to_vec::<f32>()?;
    let y = &x + 1.0;
    y.eval()?;
    assert_eq!(x.to_vec::<f32>()?, before);
    // A view keeps the memory too.
    let whole = ramp(&[1000]);
    let view = whole.slice_rows(0, 10)?;
    let want = view.to_vec::<f32>()?;
    let z = &whole * 3.0;
    drop(whole);
    z.eval()?;
    assert_eq!(view.to_vec::<f32>()?, want);
    Ok(())
}

/// Bytes from some place on that others see while an array lies in them.
struct Shared(Arc<Vec<u8>>, usize);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0[self.1..]
    }
}

#[test]
fn lent_memory_is_read_in_place_and_never_written() -> Result<()> {
    let values: Vec<f32> = (0..64).map(|v| v as f32).collect();
    // A vector of bytes may lie anywhere: the elements start where they are aligned.
    let mut bytes = vec![0; 4 + 64 * 4];
    let skip = bytes.as_ptr().addr().wrapping_neg() % 4;
    bytes[skip..skip + 256].copy_from_slice(f32::to_bytes(&values));
    let bytes = Arc::new(bytes);
    let lend = |skip| {
        let aval = Aval::new([64], DType::F32);
        let layout = Layout::contiguous(&aval.shape);
        let buffer = Buffer::lent(Shared(bytes.clone(), skip));
        assert!(buffer.is_lent() && !buffer.is_unique());
        Array::from_storage(aval, buffer, layout)
    };
    assert!(lend(skip + 1).is_err(), "elements that are not aligned");
    let aval = Aval::new([1; 129], DType::F32);
    let layout = Layout::contiguous(&aval.shape);
    let many = Array::from_storage(aval, Buffer::lent(Shared(bytes.clone(), skip)), layout);
    assert!(many.is_err_and(|error| error.to_string().contains("129 axes")));
    let x = lend(skip)?;
    let (buffer, _) = x.storage()?;
    assert_eq!(buffer.host().map(<[u8]>::as_ptr), Some(bytes[skip..].as_ptr()));
    drop(buffer);
    // Nobody but the walked graph refers to it: memory of our own would be taken over here.
    let y = ops::exp(&(&x * 2.0))?;
    let back = ops::flip(&x, ())?;
    drop(x);
    eval(&[y.clone()])?;
    assert_eq!(y.to_vec::<f32>()?[1], 2f32.exp());
    assert_eq!(back.to_vec::<f32>()?[0], 63.0);
    assert_eq!(bytes[skip..skip + 256], *f32::to_bytes(&values));
    assert_eq!(Arc::strong_count(&bytes), 2, "the flipped view holds the owner, nothing else");
    drop(back);
    assert_eq!(Arc::strong_count(&bytes), 1);
    Ok(())
}

#[test]
fn async_evaluation_gives_the_same_and_its_errors_stay() -> Result<()> {
    let x = ramp(&[100, 100]);
    let y = ops::matmul(&x, &x)?;
    let z = &y + 1.0;
    async_eval(&[z.clone()])?;
    let want = &ops::matmul(&x, &x)? + 1.0;
    assert_eq!(z.to_vec::<f32>()?, want.to_vec::<f32>()?);
    let outside = &Array::from_slice(&[100i32], [1])? + 100;
    let bad = ops::take(&x, &outside, Some(0))?;
    async_eval(&[bad.clone()])?;
    assert!(bad.to_vec::<f32>().is_err());
    assert!(bad.to_vec::<f32>().is_err());
    Ok(())
}

#[test]
fn a_failed_evaluation_leaves_its_inputs() -> Result<()> {
    let x = ramp(&[10, 2]);
    let bad = ops::take(&(&x + 1.0), &(&Array::from_slice(&[5i32], [1])? + 5), Some(0))?;
    let error = bad.eval().unwrap_err().to_string();
    assert!(error.contains("10"), "{error}");
    assert_eq!(x.to_vec::<f32>()?.len(), 20);
    Ok(())
}

#[test]
fn what_a_failed_evaluation_had_taken_over_is_given_back() -> Result<()> {
    let outside = &Array::from_slice(&[5i32], [1])? + 5;
    let mut x = ramp(&[10, 2]);
    let want = ops::square(&x)?.to_vec::<f32>()?;
    // Nobody but the graph holds what x was, and it dies in the step before the one that fails.
    x = ops::square(&x)?;
    let bad = ops::take(&x, &outside, Some(0))?;
    for _ in 0..2 {
        assert!(eval(&[x.clone(), bad.clone()]).is_err());
    }
    drop(bad);
    let got = x.to_vec::<f32>();
    // Either nothing was overwritten and x can still be computed, or x says that it is lost.
    match got {
        Ok(got) => assert_eq!(got, want),
        Err(error) => assert!(matches!(error, Error::Failed(_)), "{error}"),
    }
    // A product is never computed in place, so here nothing is lost.
    let mut y = ramp(&[10, 10]);
    let want = ops::matmul(&y, &y)?.to_vec::<f32>()?;
    y = ops::matmul(&y, &y)?;
    let bad = ops::take(&y, &outside, Some(0))?;
    assert!(eval(&[y.clone(), bad.clone()]).is_err());
    assert!(async_eval(&[bad.clone()]).is_ok());
    assert!(bad.eval().is_err());
    assert_eq!(y.to_vec::<f32>()?, want);
    Ok(())
}

#[test]
fn the_default_generator_outlives_a_failed_evaluation() -> Result<()> {
    let _turn = counting();
    let outside = &Array::from_slice(&[5i32], [1])? + 5;
    generator::seed(3);
    let x = ops::random::uniform(0.0, 1.0, [10, 10], DType::F32, None)?;
    let bad = ops::take(&ops::matmul(&x, &x)?, &outside, Some(0))?;
    assert!(bad.eval().is_err());
    let after = ops::random::uniform(0.0, 1.0, [4], DType::F32, None)?.to_vec::<f32>()?;
    generator::seed(3);
    ops::random::uniform(0.0, 1.0, [10, 10], DType::F32, None)?;
    assert_eq!(after, ops::random::uniform(0.0, 1.0, [4], DType::F32, None)?.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn values_can_be_read_under_grad_and_the_graph_goes_after_it() -> Result<()> {
    let x = ramp(&[8]);
    let mut seen = Vec::new();
    let seen_cell = std::cell::RefCell::new(&mut seen);
    let f = grad(
        |a: &[Array]| {
            let y = ops::square(&a[0])?;
            seen_cell.borrow_mut().push(y.to_vec::<f32>()?);
            Ok(vec![ops::sum(&y, (), false)?])
        },
        &[0],
    );
    let got = f(&[x.clone()])?[0].to_vec::<f32>()?;
    let want: Vec<f32> = x.to_vec::<f32>()?.iter().map(|v| 2.0 * v).collect();
    assert_eq!(got, want);
    drop(f);
    assert_eq!(seen[0], x.to_vec::<f32>()?.iter().map(|v| v * v).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn reading_under_vmap_and_compile_says_what_to_do() {
    let x = ramp(&[4, 2]);
    let f =
        vmap(|a: &[Array]| Ok(vec![&a[0] + f64::from(a[0].to_vec::<f32>()?[0])]), &[Some(0)], &[0]);
    let error = f(&[x.clone()]).unwrap_err();
    assert!(matches!(error, Error::Traced(_)), "{error}");
    assert!(error.to_string().contains("vmap"), "{error}");
    let g =
        compile(|_: &mut (), a: &[Array]| Ok(vec![&a[0] + f64::from(a[0].to_vec::<f32>()?[0])]));
    let error = g.call(&mut (), &[x]).unwrap_err();
    assert!(error.to_string().contains("compile"), "{error}");
}

#[test]
fn compiled_state_is_read_and_written_at_every_call() -> Result<()> {
    let step = compile(|state: &mut (Array, Option<Array>), x: &[Array]| {
        // The second leaf appears while the function is traced, as an optimiser's moments do.
        let moment = state.1.take().unwrap_or(Array::from_vec(vec![0.0f32; 3], [3])?);
        let moment = &(&moment * 0.5) + &x[0];
        state.0 = &state.0 - &moment;
        state.1 = Some(moment.clone());
        Ok(vec![ops::sum(&state.0, (), false)?])
    });
    let mut state = (ramp(&[3]), None);
    let mut plain = ramp(&[3]).to_vec::<f32>()?;
    let mut moment = [0.0f32; 3];
    for i in 0..5 {
        let x = Array::from_vec(vec![i as f32, 1.0, 2.0], [3])?;
        let out = step.call(&mut state, &[x.clone()])?;
        let x = x.to_vec::<f32>()?;
        for j in 0..3 {
            moment[j] = moment[j] * 0.5 + x[j];
            plain[j] -= moment[j];
        }
        assert_eq!(out[0].item::<f32>()?, plain.iter().sum::<f32>());
        assert_eq!(state.0.to_vec::<f32>()?, plain);
    }
    assert_eq!(step.traces(), 1);
    Ok(())
}

#[test]
fn compiled_functions_draw_new_numbers() -> Result<()> {
    let draw = compile(|_: &mut (), _: &[Array]| {
        Ok(vec![ops::random::uniform(0.0, 1.0, [4], DType::F32, None)?])
    });
    let first = draw.call(&mut (), &[])?[0].to_vec::<f32>()?;
    let second = draw.call(&mut (), &[])?[0].to_vec::<f32>()?;
    assert_ne!(first, second);
    Ok(())
}

#[test]
fn gradients_pass_compiled_checkpointed_and_nested_functions() -> Result<()> {
    let x = Array::from_slice(&[0.3f64, -0.7, 1.1], [3])?;
    let body = |a: &[Array]| Ok(vec![ops::sum(&ops::sin(&ops::exp(&a[0])?)?, (), false)?]);
    let want = grad(body, &[0])(&[x.clone()])?[0].to_vec::<f64>()?;
    let compiled = compile(move |_: &mut (), a: &[Array]| body(a));
    let got =
        grad(|a: &[Array]| compiled.call(&mut (), a), &[0])(&[x.clone()])?[0].to_vec::<f64>()?;
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(close(&got, &want), "{got:?} {want:?}");
    let got = grad(checkpoint(body), &[0])(&[x.clone()])?[0].to_vec::<f64>()?;
    assert!(close(&got, &want), "{got:?} {want:?}");
    let outer = compile(move |_: &mut (), a: &[Array]| grad(body, &[0])(a));
    let got = outer.call(&mut (), &[x.clone()])?[0].to_vec::<f64>()?;
    assert!(close(&got, &want), "{got:?} {want:?}");
    // The second derivative, row by row, against differences of the first.
    let slope = |a: &[Array]| grad(body, &[0])(a);
    let h = 1e-6;
    let second = grad(move |a: &[Array]| Ok(vec![ops::sum(&slope(a)?[0], (), false)?]), &[0]);
    let second = second(&[x.clone()])?[0].to_vec::<f64>()?;
    let up = grad(body, &[0])(&[&x + h])?[0].to_vec::<f64>()?;
    let down = grad(body, &[0])(&[&x - h])?[0].to_vec::<f64>()?;
    for i in 0..3 {
        let difference = (up[i] - down[i]) / (2.0 * h);
        assert!((second[i] - difference).abs() < 1e-6, "{} {difference}", second[i]);
    }
    Ok(())
}

#[test]
fn per_example_gradients() -> Result<()> {
    let w = Array::from_slice(&[1.0f64, 2.0], [2])?;
    let x = Array::from_slice(&[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2])?;
    let loss = |a: &[Array]| Ok(vec![ops::square(&ops::sum(&(&a[0] * &a[1]), (), false)?)?]);
    let each = vmap(grad(loss, &[0]), &[None, Some(0)], &[0])(&[w, x])?;
    // 2·(w·x)·x for each row.
    assert_eq!(each[0].to_vec::<f64>()?, [10.0, 20.0, 66.0, 88.0, 170.0, 204.0]);
    Ok(())
}

#[test]
fn arrays_are_used_from_many_threads() -> Result<()> {
    let x = ramp(&[128, 128]);
    let shared = &ops::exp(&(&x * 0.01))? + 1.0;
    let want = (&ops::exp(&(&x * 0.01))? + 1.0).to_vec::<f32>()?;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let own = &shared * 2.0;
                    let got = own.to_vec::<f32>().unwrap();
                    assert!(got.iter().zip(&want).all(|(g, w)| *g == w * 2.0));
                }
            });
        }
    });
    Ok(())
}

#[test]
fn empty_arrays_and_scalars() -> Result<()> {
    let empty = Array::from_vec(Vec::<f32>::new(), [0, 3])?;
    assert_eq!((&empty + 1.0).to_vec::<f32>()?.len(), 0);
    assert_eq!(ops::sum(&empty, (), false)?.item::<f32>()?, 0.0);
    assert_eq!(ops::sum(&empty, 0, false)?.to_vec::<f32>()?, [0.0; 3]);
    assert!(ops::max(&empty, (), false).is_err());
    let joined = ops::concatenate(&[&empty, &ramp(&[2, 3])], 0)?;
    assert_eq!(joined.shape()[..], [2, 3]);
    assert_eq!(joined.to_vec::<f32>()?, ramp(&[2, 3]).to_vec::<f32>()?);
    Ok(())
}

#[test]
fn what_comes_back_through_a_split_is_put_together() -> Result<()> {
    let x = ramp(&[4, 6]);
    // Parts that lie beside each other, with a gap, over each other, and some of them alone.
    for parts in
        [&[(0, 2), (2, 3), (3, 6)][..], &[(0, 2), (4, 6)], &[(0, 4), (2, 6)], &[(1, 3), (3, 5)]]
    {
        let slope = |x: &[Array]| {
            let part = |(i, &(from, to)): (usize, &(isize, isize))| -> Result<Array> {
                let part = ops::slice(&x[0], &[0, from], &[4, to], &[1, 1])?;
                ops::sum(&(&ops::square(&part)? * (i as f64 + 1.0)), (), false)
            };
            let sums: Vec<Array> = parts.iter().enumerate().map(part).collect::<Result<_>>()?;
            let first = sums[0].clone();
            Ok(vec![sums[1..].iter().fold(first, |all, sum| &all + sum)])
        };
        let found = grad(slope, &[0])(std::slice::from_ref(&x))?.remove(0).to_vec::<f32>()?;
        for (i, (got, v)) in found.iter().zip(x.to_vec::<f32>()?).enumerate() {
            let holds = |&(_, &(from, to)): &(usize, &(isize, isize))| {
                (from..to).contains(&((i % 6) as isize))
            };
            let covered = parts.iter().enumerate().filter(holds);
            let want: f32 = covered.map(|(part, _)| 2.0 * v * (part as f32 + 1.0)).sum();
            assert_eq!(*got, want, "element {i} of {parts:?}");
        }
    }
    let split = |x: &[Array]| {
        let parts = ops::split(&x[0], 3, 1)?;
        let y = &(&ops::matmul(&parts[0], &ops::transpose(&parts[1], ())?)? * 2.0);
        Ok(vec![ops::sum(&ops::matmul(y, &parts[2])?, (), false)?])
    };
    let slopes = grad(split, &[0])(&[ramp(&[32, 96])])?;
    let plan = explain(&slopes)?.to_string();
    assert!(!plan.contains("add"), "the parts are added to zeros:\n{plan}");
    Ok(())
}

#[test]
fn a_compiled_function_keeps_the_traces_of_late() -> Result<()> {
    let chain = compile(|_: &mut (), x: &[Array]| {
        (0..4000).try_fold(x[0].clone(), |y, i| ops::add(&y, i % 2)).map(|y| vec![y])
    });
    for size in 1..=60 {
        chain.call(&mut (), &[ops::zeros([size], DType::F32)?])?;
    }
    assert!(chain.traces() > 1 && chain.traces() < 60, "{} traces", chain.traces());
    assert!(chain.bytes() <= TRACE_BYTES);
    // The one of the first size is made again.
    for size in [60, 1] {
        let y = chain.call(&mut (), &[ops::zeros([size], DType::F32)?])?;
        assert_eq!(y[0].to_vec::<f32>()?, vec![2000.0; size]);
    }
    Ok(())
}

/// What several sums and maps need of a half array is computed in each: it is never written in `float32`.
#[test]
fn the_maps_of_a_batch_norm_are_computed_where_they_are_needed() -> Result<()> {
    let shape = [8, 32, 32, 16];
    let (ramp, ones) = (ramp(&shape), ramp(&[16]));
    let x = ops::astype(&ramp, DType::BF16)?;
    let ct = ops::astype(&ops::sin(&ramp)?, DType::BF16)?;
    eval(&[x.clone(), ct.clone()])?;
    let wide = |x: &Array| ops::astype(x, DType::F32);
    let loss = |a: &[Array]| {
        let y = &ops::batch_norm(&a[0], Some(&ones), None, 1e-5)?[0];
        Ok(vec![ops::sum(&ops::multiply(&wide(y)?, &wide(&ct)?)?, (), false)?])
    };
    let slope = grad(loss, &[0])(&[x.clone()])?;
    let plan = explain(&slope)?;
    let large = |(aval, _): &&(Aval, u32)| aval.dtype == DType::F32 && aval.shape.size() > 1 << 16;
    for step in &plan.steps {
        assert_eq!(step.outputs.iter().find(large), None, "{plan}");
    }
    // The same in small steps.
    let n = 8.0 * 32.0 * 32.0;
    let v = wide(&x)?;
    let average = ops::mean(&v, [0, 1, 2], true)?;
    let centred = ops::subtract(&v, &average)?;
    let variance = ops::mean(&ops::square(&centred)?, [0, 1, 2], true)?;
    let inverse = ops::rsqrt(&(&variance + 1e-5))?;
    let normal = ops::multiply(&centred, &inverse)?;
    let up = wide(&ct)?;
    let total = ops::sum(&up, [0, 1, 2], true)?;
    let along = ops::sum(&ops::multiply(&up, &normal)?, [0, 1, 2], true)?;
    for part in [&average, &variance, &normal, &up, &total, &along] {
        part.eval()?;
    }
    let left = &(&up - &(&total * (1.0 / n))) - &(&normal * &(&along * (1.0 / n)));
    let want = (&left * &(&inverse * &ones)).to_vec::<f32>()?;
    let found = wide(&slope[0])?.to_vec::<f32>()?;
    for (found, want) in found.iter().zip(&want) {
        assert!((found - want).abs() <= 8e-3 * want.abs() + 2e-3, "{found}, {want}");
    }
    Ok(())
}

/// Networks that keep channels first: what follows a convolution there continues it, and nothing is put in
/// another order in memory between two of them.
#[test]
fn axes_in_another_order_are_no_reason_to_copy() -> Result<()> {
    let first = |x: &Array| ops::transpose(x, [0, 3, 1, 2]);
    let last = |x: &Array| ops::transpose(x, [0, 2, 3, 1]);
    let options = ops::ConvOptions::new().padding(1);
    let (w, b) = (ramp(&[8, 3, 3, 8]), ramp(&[8]));
    let net = |x: &Array, evaluates: bool| -> Result<Array> {
        let seen = |x: Array| -> Result<Array> {
            if evaluates {
                // As it would be in memory: row-major in this order of axes.
                return Array::from_vec(x.to_vec::<f32>()?, x.shape());
            }
            Ok(x)
        };
        let mut y = seen(first(x)?)?;
        for _ in 0..2 {
            let conv = seen(first(&ops::conv2d(&last(&y)?, &w, &options)?)?)?;
            let bias = ops::reshape(&b, [1, 8, 1, 1])?;
            let added = seen(ops::add(&conv, &bias)?)?;
            let scaled = seen(ops::multiply(&added, 0.001)?)?;
            y = seen(ops::maximum(&scaled, 0.0)?)?;
        }
        Ok(y)
    };
    let x = ramp(&[2, 6, 5, 8]);
    // What is held is a result of its own.
    let alone = |y: Array| -> Result<_> {
        let moved = last(&y)?;
        drop(y);
        explain(&[moved])
    };
    let plan = alone(net(&x, false)?)?;
    assert_eq!(plan.steps.len(), 2, "{plan}");
    assert_eq!(net(&x, false)?.to_vec::<f32>()?, net(&x, true)?.to_vec::<f32>()?);
    // A skip connection, which is read twice, and one in the other order.
    let y = first(&ops::conv2d(&x, &w, &options)?)?;
    let both = ops::add(&ops::tanh(&y)?, &y)?;
    assert_eq!(alone(both)?.steps.len(), 2);
    let mixed = ops::add(&ops::tanh(&y)?, &ops::negative(&ramp(&[2, 8, 6, 5]))?)?;
    let (plain, other) = (Array::from_vec(y.to_vec::<f32>()?, y.shape())?, ramp(&[2, 8, 6, 5]));
    let want = ops::subtract(&ops::tanh(&plain)?, &other)?;
    assert_eq!(mixed.to_vec::<f32>()?, want.to_vec::<f32>()?);
    Ok(())
}

/// What alone reads a kernel's result continues it, however often it reads it.
#[test]
fn a_result_that_is_read_twice_is_continued() -> Result<()> {
    let (x, w, b) = (ramp(&[6, 8]), ramp(&[8, 5]), ramp(&[5]));
    let linear = |x: &Array| ops::add(&ops::matmul(x, &w)?, &b);
    let swish = |y: &Array| ops::multiply(y, &ops::sigmoid(y)?);
    let silu = |x: &Array| swish(&ops::multiply(&linear(x)?, 0.01)?);
    let plan = explain(&[silu(&x)?])?;
    assert_eq!(plan.steps.len(), 1, "{plan}");
    let seen = |y: Array| Array::from_vec(y.to_vec::<f32>()?, y.shape());
    let scaled = seen(ops::multiply(&seen(linear(&x)?)?, 0.01)?)?;
    assert_eq!(silu(&x)?.to_vec::<f32>()?, swish(&scaled)?.to_vec::<f32>()?);
    // Numbers that a device may not have stay out of its kernel.
    let wide = |y: &Array| swish(&y.astype(DType::F64)?)?.astype(DType::F32);
    let plan = explain(&[wide(&ops::matmul(&x, &w)?)?])?;
    assert_eq!(plan.steps.len(), 2, "{plan}");
    // What somebody else reads, too, stays: the sum of its rows, and whoever holds it.
    let y = ops::matmul(&x, &w)?;
    let plan = explain(&[ops::multiply(&swish(&y)?, &ops::sum(&y, 1, true)?)?])?;
    assert_eq!(plan.steps.len(), 2, "{plan}");
    let plan = explain(&[swish(&y)?, y.clone()])?;
    assert_eq!(plan.steps.len(), 2, "{plan}");
    // What is made later cannot be read earlier.
    let other = ops::matmul(&ops::transpose(&y, ())?, &x)?;
    let late = ops::multiply(&swish(&y)?, &ops::sum(&other, (), false)?)?;
    let (plain, sum) = (seen(y)?, ops::sum(&seen(other)?, (), false)?);
    let want = ops::multiply(&swish(&plain)?, sum.item::<f32>()?)?;
    assert_eq!(late.to_vec::<f32>()?, want.to_vec::<f32>()?);
    Ok(())
}

/// Elementwise work continues a product whatever shape the product is read in, and where several groups of it read
/// the same result; what goes on over rows stays with them.
#[test]
fn work_in_another_shape_continues_a_product() -> Result<()> {
    let (w, b) = (ramp(&[8, 5]), ramp(&[5]));
    let seen = |y: Array| Array::from_vec(y.to_vec::<f32>()?, y.shape());
    for shape in [&[6, 8][..], &[1, 8], &[2, 3, 8], &[1, 1, 8], &[2, 1, 3, 8], &[8], &[0, 3, 8]] {
        let x = ramp(shape);
        let linear = || ops::add(&ops::multiply(&ops::matmul(&x, &w)?, 0.01)?, &b);
        for activation in [ops::gelu_approx, ops::gelu, ops::sigmoid] {
            // What is held is a result of its own.
            let made = |y: Array| activation(&y);
            let plan = explain(&[made(linear()?)?])?;
            assert!(plan.steps.len() <= 1, "{shape:?}: {plan}");
            let want = activation(&seen(linear()?)?)?;
            assert_eq!(activation(&linear()?)?.to_vec::<f32>()?, want.to_vec::<f32>()?);
        }
        if shape.len() < 2 || shape.contains(&0) {
            continue;
        }
        // A norm reads the sum once: it is not written between.
        let normed = |y: Array| ops::layer_norm(&y, Some(&b), None, 1e-5);
        let plan = explain(&[normed(linear()?)?])?;
        assert_eq!(plan.steps.len(), 2, "{shape:?}: {plan}");
        let want = normed(seen(linear()?)?)?;
        assert_eq!(normed(linear()?)?.to_vec::<f32>()?, want.to_vec::<f32>()?);
    }
    // What is turned between is no continuation in place.
    let x = ramp(&[2, 3, 8]);
    let turned = |y: &Array| ops::add(&ops::transpose(y, [0, 2, 1])?, 1.0);
    let product = ops::matmul(&x, &w)?;
    let want = turned(&seen(product.clone())?)?;
    assert_eq!(turned(&product)?.to_vec::<f32>()?, want.to_vec::<f32>()?);
    Ok(())
}

/// What is made of little, and repeated along an array, is computed by who reads it.
#[test]
fn small_arrays_are_made_where_they_are_read() -> Result<()> {
    let (x, w) = (ramp(&[4, 6]).astype(DType::BF16)?, ramp(&[6]).astype(DType::BF16)?);
    eval(&[x.clone(), w.clone()])?;
    let norm = |w: &Array| ops::rms_norm(&x, Some(&ops::add(w, 1.0)?), 1e-5);
    let plan = explain(&[norm(&w)?])?;
    assert_eq!(plan.steps.len(), 1, "{plan}");
    let seen = ops::add(&w, 1.0)?;
    let want = ops::rms_norm(&x, Some(&seen), 1e-5)?;
    eval(std::slice::from_ref(&seen))?;
    assert_eq!(norm(&w)?.to_bytes()?, want.to_bytes()?);
    // Along another axis, in part, and read by several.
    let column = ops::reshape(&ops::square(&ramp(&[4]))?, [4, 1])?;
    let y = ramp(&[4, 6]);
    let both = |column: &Array| -> Result<Vec<Array>> {
        let sum = ops::sum(&ops::add(&y, column)?, 1, false)?;
        Ok(vec![ops::multiply(&y, column)?, sum])
    };
    let lazy = both(&ops::multiply(&column, 2.0)?)?;
    let ready = ops::multiply(&column, 2.0)?;
    ready.eval()?;
    for (lazy, want) in lazy.iter().zip(&both(&ready)?) {
        assert_eq!(lazy.to_vec::<f32>()?, want.to_vec::<f32>()?);
    }
    // What a large array would lie in memory longer for is made at once.
    for (rows, steps) in [(4, 2), (64, 3)] {
        let wide = ramp(&[rows, 600]);
        let first = |x: &Array| ops::multiply(&x.slice_rows(0, 1)?, 2.0);
        let sum = {
            let row = first(&ops::matmul(&wide, &ramp(&[600, 600]))?)?;
            ops::add(&ramp(&[8, 600]), &row)?
        };
        let plan = explain(&[sum])?;
        assert_eq!(plan.steps.len(), steps, "{rows} rows: {plan}");
    }
    // Turned it is another array's order: made once.
    let square = ramp(&[6, 6]);
    let chain = ops::add(&ops::transpose(&ops::add(&square, 1.0)?, ())?, 1.0)?;
    assert_eq!(explain(&[chain])?.steps.len(), 2);
    Ok(())
}

/// What is joined, padded, updated or repeated lies as most of it was made.
#[test]
fn parts_lie_as_they_were_made() -> Result<()> {
    let first = |x: &Array| ops::transpose(x, [0, 3, 1, 2]);
    let last = |x: &Array| ops::transpose(x, [0, 2, 3, 1]);
    let w = ramp(&[8, 1, 1, 8]);
    let conv = |x: &Array| ops::multiply(&ops::conv2d(x, &w, &ops::ConvOptions::new())?, 1e-3);
    let y = || -> Result<Array> { first(&conv(&ramp(&[1, 4, 9, 8]))?) };
    let half = |y: &Array, at: usize| ops::split(y, 2, 1).map(|parts| parts[at].clone());
    let upsampled = |y: &Array| {
        let wide = ops::expand_dims(y, [3, 5])?;
        let wide = ops::broadcast_to(&wide, [1, 8, 4, 2, 9, 2])?;
        ops::reshape(&wide, [1, 8, 8, 18])
    };
    type Make<'a> = Box<dyn Fn(&Array) -> Result<Array> + 'a>;
    let cases: [(&str, Make<'_>); 6] = [
        ("joined", Box::new(|y| ops::concatenate(&[&half(y, 1)?, y], 1))),
        ("half of it", Box::new(|y| ops::tanh(&half(y, 0)?))),
        ("padded", Box::new(|y| ops::pad(y, [(0, 0), (0, 0), (1, 2), (0, 2)], 0.5))),
        ("repeated", Box::new(upsampled)),
        (
            "joined with what is repeated",
            Box::new(|y| ops::concatenate(&[&upsampled(y)?, &upsampled(&ops::tanh(y)?)?], 1)),
        ),
        ("joined with leaves", Box::new(|y| ops::concatenate(&[&ramp(&[1, 2, 4, 9]), y], 1))),
    ];
    for (name, make) in &cases {
        let made = last(&make(&y()?)?)?;
        let plan = explain(&[ops::tanh(&made)?])?;
        // All run over axes of which the channels, an even number, come last; a row has 9, 11 or 18 places.
        for step in plan.steps.iter().filter(|step| !step.over.is_empty()) {
            let channels = ["2]", "4]", "8]", "10]", "12]", "16]"];
            let inner = step.over.rsplit(' ').next().unwrap_or_default();
            assert!(channels.contains(&inner), "{name}: {plan}");
        }
        let plain = y()?;
        let plain = Array::from_vec(plain.to_vec::<f32>()?, plain.shape())?;
        let want = ops::tanh(&last(&make(&plain)?)?)?;
        let found = ops::tanh(&made)?.to_vec::<f32>()?;
        assert_eq!(found, want.to_vec::<f32>()?, "{name}");
    }
    Ok(())
}

#[test]
fn tasks_of_streams_do_not_wait_for_each_other() -> Result<()> {
    let [one, two] = [Stream::another(Device::CPU, 0)?, Stream::another(Device::CPU, 0)?];
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let work = || -> Result<()> {
            let on = |stream, x: &Array, by: f32| with_stream(stream, || ops::add(x, by));
            let big = ops::full([300, 300], 0.5f32, DType::F32)?;
            for _ in 0..20 {
                let zero = Array::scalar(0.0f32);
                let (x, p) = (on(two, &zero, 2.0)?, on(one, &zero, 5.0)?);
                let (y, q) = (on(one, &x, 1.0)?, on(two, &p, 1.0)?);
                for stream in [one, two] {
                    async_eval(&[with_stream(stream, || ops::matmul(&big, &big))?])?;
                }
                async_eval(&[y.clone(), p])?;
                async_eval(&[x, q.clone()])?;
                assert_eq!((y.item::<f32>()?, q.item::<f32>()?), (3.0, 6.0));
                // What is asked for later, on the same stream, is needed by what is before it.
                let x = on(one, &zero, 1.0)?;
                let y = on(one, &x, 1.0)?;
                async_eval(&[with_stream(one, || ops::matmul(&big, &big))?])?;
                async_eval(std::slice::from_ref(&y))?;
                async_eval(std::slice::from_ref(&x))?;
                assert_eq!((x.item::<f32>()?, y.item::<f32>()?), (1.0, 2.0));
            }
            Ok(())
        };
        let _ = done.send(work());
    });
    is_done.recv_timeout(std::time::Duration::from_secs(100)).expect("an end")
}
