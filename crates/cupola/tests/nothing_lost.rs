//! What was there stays there: an evaluation that fails or is interrupted has overwritten nothing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cupola::prim::call::HostInput;
use cupola::prim::{Custom, CustomOp};
use cupola::transform::grad;
use cupola::{Array, Aval, DType, Error, Result, async_eval, eval, interrupt, ops};

static STOP: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicUsize = AtomicUsize::new(0);
static PANICS: AtomicBool = AtomicBool::new(false);

/// One test at a time: who interrupts, interrupts everybody.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    interrupt::ask(|| {
        assert!(!PANICS.load(Ordering::Relaxed), "who was asked panics");
        if !STOP.load(Ordering::Relaxed) {
            return Ok(());
        }
        STOPPED.fetch_add(1, Ordering::Relaxed);
        Err(Error::Interrupted)
    });
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ramp(shape: &[usize]) -> Result<Array> {
    let size: usize = shape.iter().product();
    Array::from_vec((0..size).map(|i| (i % 7) as f32 * 0.25).collect(), shape)
}

/// An array of memory that nobody else holds: the next step may overwrite it.
fn fresh(shape: &[usize]) -> Result<Array> {
    let x = ops::add(&ramp(shape)?, 0.5)?;
    x.eval()?;
    Ok(x)
}

/// Work that lasts long enough for the question to be asked.
fn long(x: &Array) -> Result<Array> {
    let mut x = x.clone();
    for _ in 0..12 {
        x = ops::multiply(&ops::matmul(&x, &x)?, 1e-3)?;
    }
    Ok(x)
}

#[test]
fn an_interrupted_evaluation_goes_on_where_it_was() -> Result<()> {
    let _turn = turn();
    let before = STOPPED.load(Ordering::Relaxed);
    let x = ramp(&[768, 768])?;
    let want = long(&x)?.to_vec::<f32>()?;
    for first in [true, false] {
        for _ in 0..4 {
            let w = fresh(&[64, 64])?;
            let expected: Vec<f32> = w.to_vec::<f32>()?.iter().map(|v| v * 2.0).collect();
            let updated = ops::multiply(&w, 2.0)?;
            drop(w);
            let slow = long(&x)?;
            let both = if first { [&updated, &slow] } else { [&slow, &updated] };
            STOP.store(true, Ordering::Relaxed);
            let ended = eval(&both.map(Array::clone));
            STOP.store(false, Ordering::Relaxed);
            assert!(matches!(ended, Ok(()) | Err(Error::Interrupted)), "{ended:?}");
            assert_eq!(updated.to_vec::<f32>()?, expected, "updates first: {first}");
            assert_eq!(slow.to_vec::<f32>()?, want);
        }
    }
    assert!(STOPPED.load(Ordering::Relaxed) > before, "nothing was interrupted");
    Ok(())
}

#[test]
fn nobody_waits_for_an_evaluation_that_panicked() -> Result<()> {
    let _turn = turn();
    let x = ramp(&[768, 768])?;
    let slow = long(&x)?;
    PANICS.store(true, Ordering::Relaxed);
    let tried = |x: &Array| std::thread::scope(|scope| scope.spawn(|| x.eval()).join());
    let ended = tried(&slow);
    let later = long(&x)?;
    async_eval(std::slice::from_ref(&later))?;
    let waited = tried(&later);
    PANICS.store(false, Ordering::Relaxed);
    assert!(ended.is_err(), "nobody was asked");
    let text = slow.eval().unwrap_err().to_string();
    assert!(text.contains("panicked: who was asked panics"), "{text}");
    assert!(!matches!(waited, Ok(Ok(()))));
    // The stream's thread goes on with what comes after.
    let next = ops::add(&x, 1.0)?;
    async_eval(std::slice::from_ref(&next))?;
    assert_eq!(next.to_vec::<f32>()?[..2], [1.0, 1.25]);
    Ok(())
}

/// An operator of a user's that panics.
struct Panics;

impl CustomOp for Panics {
    fn name(&self) -> &'static str {
        "brittle"
    }

    fn key(&self) -> Vec<u8> {
        Vec::new()
    }

    fn infer(&self, inputs: &[&Aval]) -> Result<Vec<Aval>> {
        Ok(vec![inputs[0].clone()])
    }

    fn run_host(&self, inputs: &[HostInput<'_>], _: &mut [&mut [u8]]) -> Result<()> {
        panic!("{} bytes are too many", inputs[0].bytes.len())
    }
}

#[test]
fn an_operator_that_panics_is_an_error() -> Result<()> {
    let _turn = turn();
    let z = fresh(&[3])?;
    let doubled = ops::multiply(&z, 2.0)?;
    drop(z);
    let broken =
        Array::apply_multi(Custom(std::sync::Arc::new(Panics)), &[&ramp(&[3])?])?.remove(0);
    for _ in 0..2 {
        let error = eval(&[doubled.clone(), broken.clone()]).unwrap_err().to_string();
        assert_eq!(error, "brittle panicked: 12 bytes are too many");
    }
    assert_eq!(doubled.to_vec::<f32>()?, [1.0, 1.5, 2.0]);
    Ok(())
}

#[test]
fn an_index_outside_its_axis_costs_nothing_else() -> Result<()> {
    let _turn = turn();
    let z = ops::multiply(&ops::ones([3], DType::F32)?, 2.0)?;
    let far = ops::add(&Array::from_slice(&[4], [1])?, 5)?;
    assert!(matches!(ops::take(&z, &far, 0)?.eval(), Err(Error::Index { .. })));
    assert_eq!(z.to_vec::<f32>()?, [2.0; 3]);
    // What is overwritten as it is read, beside, before and after what fails.
    for turned in [false, true] {
        let (w, table) = (fresh(&[4, 8])?, fresh(&[5, 3])?);
        let expected: Vec<f32> = w.to_vec::<f32>()?.iter().map(|v| v + 1.0).collect();
        let next = ops::add(&w, 1.0)?;
        drop(w);
        let bad = ops::take(&table, &far, 0)?;
        let roots = if turned { [bad, next.clone()] } else { [next.clone(), bad] };
        assert!(matches!(eval(&roots), Err(Error::Index { .. })));
        assert_eq!(next.to_vec::<f32>()?, expected);
        assert_eq!(table.to_vec::<f32>()?, fresh(&[5, 3])?.to_vec::<f32>()?);
    }
    Ok(())
}

/// A training step with an embedding: its table, its momentum, its other weights.
#[test]
fn a_training_step_that_fails_can_be_made_again_with_good_data() -> Result<()> {
    let _turn = turn();
    let (table, weight, momentum) = (fresh(&[10, 4])?, fresh(&[4, 4])?, fresh(&[4, 4])?);
    let kept: Vec<Vec<f32>> =
        [&table, &weight, &momentum].iter().map(|x| x.to_vec::<f32>()).collect::<Result<_>>()?;
    let step = |indices: &Array| -> Result<[Array; 3]> {
        let indices = indices.clone();
        let loss = move |x: &[Array]| {
            let rows = ops::take(&x[0], &indices, 0)?;
            Ok(vec![ops::sum(&ops::square(&ops::matmul(&rows, &x[1])?)?, (), false)?])
        };
        let grads = grad(loss, &[0, 1])(&[table.clone(), weight.clone()])?;
        let next = ops::add(&ops::multiply(&momentum, 0.9)?, &grads[1])?;
        Ok([
            ops::subtract(&table, &ops::multiply(&grads[0], 0.1)?)?,
            ops::subtract(&weight, &ops::multiply(&next, 0.1)?)?,
            next,
        ])
    };
    let bad = step(&ops::add(&Array::from_slice(&[0, 9], [2])?, 1)?)?;
    assert!(matches!(eval(&bad), Err(Error::Index { .. })));
    drop(bad);
    for (x, kept) in [&table, &weight, &momentum].into_iter().zip(kept) {
        assert_eq!(x.to_vec::<f32>()?, kept);
    }
    eval(&step(&Array::from_slice(&[1, 9], [2])?)?)
}

/// The point of no return takes no memory from a step whose indices were looked at before: the
/// gradient of a table, which comes last, puts rows where others were taken from.
#[test]
fn updates_still_take_over_the_memory_of_what_they_update() -> Result<()> {
    let _turn = turn();
    let cpu = cupola::backend::backend(cupola::Device::CPU)?;
    let (mut weight, mut table) = (fresh(&[512, 512])?, fresh(&[16, 512])?);
    let indices = Array::from_slice(&[3, 5, 3, 15], [4])?;
    let mut most = 0;
    for run in 0..4 {
        let own = indices.clone();
        let loss = move |x: &[Array]| {
            let rows = ops::take(&x[0], &own, 0)?;
            Ok(vec![ops::sum(&ops::square(&ops::multiply(&rows, &x[1])?)?, (), false)?])
        };
        // A view of the weight would hold its memory.
        let scale = ops::mean(&weight, 0, false)?;
        let grads = grad(loss, &[0])(&[table.clone(), scale])?;
        let step = ops::sum(&grads[0], (), false)?;
        weight = ops::subtract(&weight, &ops::multiply(&step, 1e-6)?)?;
        table = ops::subtract(&table, &ops::multiply(&grads[0], 1e-6)?)?;
        drop((grads, step));
        cpu.set_peak(0);
        let before = cpu.memory().active;
        eval(&[weight.clone(), table.clone()])?;
        if run > 0 {
            most = most.max(cpu.memory().peak - before);
        }
    }
    let size = 512 * 512 * 4;
    assert!(most < size / 2, "{most} bytes beside weights of {size}");
    Ok(())
}
