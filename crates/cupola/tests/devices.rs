//! What holds between devices: transfers, fallback, faults, and training that agrees with the CPU.
//! Each test runs on every device beside the CPU; where there is none it says so and ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupola::backend::backends;
use cupola::device::{Stream, with_stream};
use cupola::explain::{Report, Roofline};
use cupola::fallback::{self, Policy};
use cupola::nn::{self, Layer};
use cupola::optim::{Adam, Optimizer};
use cupola::plan::explain;
use cupola::train::ConvNet;
use cupola::{Array, DType, Device, Error, Result, generator, ops};

/// The fallback policy is the process's: tests take turns.
static TURNS: Mutex<()> = Mutex::new(());

fn turn(policy: Policy) -> MutexGuard<'static, ()> {
    let guard = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    fallback::set_policy(policy);
    guard
}

fn others() -> Vec<Device> {
    let found: Vec<Device> = backends().map(|b| b.device()).filter(|d| *d != Device::CPU).collect();
    if found.is_empty() {
        println!("there is no device beside the CPU: nothing was tested");
    }
    found
}

fn on<T>(device: Device, f: impl FnOnce() -> T) -> T {
    with_stream(Stream::of(device), f)
}

fn ramp(shape: &[usize]) -> Array {
    let size: usize = shape.iter().product();
    let data: Vec<f32> = (0..size).map(|i| (i % 97) as f32 * 0.25 - 3.0).collect();
    Array::from_vec(data, shape).unwrap()
}

#[test]
fn arrays_move_to_where_they_are_used() -> Result<()> {
    let _turn = turn(Policy::Error);
    for device in others() {
        let x = ramp(&[40, 30]);
        let want = ops::sum(&(&x * &x), 0, false)?.to_vec::<f32>()?;
        let y = on(device, || ops::sum(&(&x * &x), 0, false))?;
        assert_eq!(y.device(), device);
        assert_eq!(y.to_vec::<f32>()?, want);
        // Of a graph on two devices each part runs on its own.
        let z = (&y + 1.0).to_vec::<f32>()?;
        assert_eq!(z, want.iter().map(|v| v + 1.0).collect::<Vec<_>>());
        let (a, b) = (on(device, || &x + 1.0), &x - 1.0);
        cupola::eval(&[a.clone(), b.clone()])?;
        assert_eq!((&a - &b).to_vec::<f32>()?, vec![2.0; 1200]);
        // Views of an array elsewhere: rows, columns, backwards, of every size of element.
        for dtype in DType::ALL.into_iter().filter(|d| *d != DType::F64) {
            let x = ops::astype(&ops::arange(0.0, 60.0, 1.0)?, dtype)?;
            let x = ops::reshape(&x, [12, 5])?;
            x.eval()?;
            let views = [
                ops::slice(&x, &[7, 1], &[9, 4], &[1, 1])?,
                ops::transpose(&x, ())?,
                ops::flip(&x, ())?,
                ops::slice(&x, &[11, 4], &[12, 5], &[1, 1])?,
                ops::slice(&x, &[3, 0], &[3, 5], &[1, 1])?,
            ];
            for view in views {
                let copy = on(device, || ops::concatenate(&[&view, &view], 0isize))?;
                let want = ops::concatenate(&[&view, &view], 0isize)?;
                assert_eq!(copy.to_bytes()?, want.to_bytes()?, "{dtype} {}", view.aval());
            }
        }
    }
    Ok(())
}

#[test]
fn what_would_run_is_told_of_all_devices() -> Result<()> {
    let _turn = turn(Policy::Error);
    for device in others() {
        let x = ramp(&[7, 7]);
        // A product here, turned, goes on there and comes back.
        let made = || -> Result<[Array; 3]> {
            let product = ops::matmul(&x, &ops::sin(&x)?)?;
            let turned = ops::transpose(&product, ())?;
            let there = on(device, || ops::exp(&turned))?;
            Ok([product, there.clone(), ops::sum(&there, 0, false)?])
        };
        let arrays = made()?;
        let told = explain(&arrays[2..])?;
        let where_and_what =
            |step: &cupola::plan::ExplainedStep| (step.device, step.kind.to_string());
        let steps: Vec<_> = told.steps.iter().map(where_and_what).collect();
        let want = [(Device::CPU, "map"), (Device::CPU, "matmul"), (device, "map")];
        let want = want.into_iter().chain([(Device::CPU, "sum")]);
        assert_eq!(steps, want.map(|(at, kind)| (at, kind.to_owned())).collect::<Vec<_>>());
        assert!(arrays.iter().all(|array| !array.is_ready()), "nothing runs");
        let plans: Vec<_> = told.plans().map(|(plan, steps)| (plan.device, steps.len())).collect();
        assert_eq!(plans, [(Device::CPU, 2), (device, 1), (Device::CPU, 1)], "{told}");
        assert_eq!(told.to_string().matches("plan on ").count(), 3, "{told}");
        assert!(told.plans().all(|(plan, _)| !plan.reused));
        // Those are the plans that run.
        cupola::eval(&arrays[2..])?;
        let again = explain(&made()?[2..])?;
        assert!(again.plans().all(|(plan, _)| plan.reused && plan.runs == 1), "{again:?}");
        assert_eq!(again.steps, told.steps);

        // Of several arrays each on its device.
        let there = on(device, || ops::exp(&x))?;
        let told = explain(&[ops::matmul(&x, &x)?, there.clone(), &there + 1.0])?;
        let steps: Vec<_> = told.steps.iter().map(where_and_what).map(|step| step.0).collect();
        assert_eq!(steps.len(), 3, "{told}");
        assert!(steps.contains(&device) && told.plans().count() <= 3, "{told}");
        let rates = |bytes| Some(Roofline { bytes, operations: 1e30 });
        let of = |at| if at == Device::CPU { 1e9 } else { 1e6 };
        let other = if told.device == device { Device::CPU } else { device };
        let others = vec![(other, rates(of(other)))];
        let report = Report { roofline: rates(of(told.device)), others, plan: told };
        let least = |step: &cupola::plan::ExplainedStep| step.bytes() as f64 / of(step.device);
        let sum: f64 = report.plan.steps.iter().map(least).sum();
        assert!((report.seconds().unwrap_or(0.0) / sum - 1.0).abs() < 1e-9, "{report}");
        let json = report.to_json();
        for text in [report.to_string(), report.to_svg()] {
            for (index, at) in steps.iter().enumerate() {
                assert_eq!(json["steps"][index]["device"], at.to_string());
                assert!(text.contains(&format!("on {at}: ")), "{text}");
            }
        }
    }
    Ok(())
}

#[test]
fn what_a_device_lacks_falls_back_and_is_noted() -> Result<()> {
    for device in others() {
        // Functions of doubles are the one thing that not every device has.
        let x = ops::astype(&ramp(&[10]), DType::F64)?;
        let run = || on(device, || ops::exp(&(&x + 1.0)).and_then(|y| y.to_vec::<f64>()));
        let guard = turn(Policy::Error);
        let native = run();
        if let Err(error) = &native {
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
            assert!(error.to_string().contains(&device.to_string()), "{error}");
        }
        drop(guard);
        let _turn = turn(Policy::Allow);
        let before = fallback::records().iter().map(|r| r.runs).sum::<u64>();
        let got = run()?;
        let want = ops::exp(&(&x + 1.0))?.to_vec::<f64>()?;
        assert!(got.iter().zip(&want).all(|(g, w)| (g - w).abs() <= 1e-12 * w));
        let records = fallback::records();
        let runs = records.iter().map(|r| r.runs).sum::<u64>();
        assert_eq!(runs > before, native.is_err());
        if native.is_err() {
            let record =
                records.iter().find(|r| r.device == device && r.reason.contains("float64"));
            assert!(record.is_some_and(|r| r.bytes >= 160), "{records:?}");
        }
    }
    Ok(())
}

#[test]
fn an_index_outside_its_axis_is_an_error() -> Result<()> {
    let _turn = turn(Policy::Error);
    for device in others() {
        for bad in [10i32, -11, i32::MAX] {
            let index = Array::from_slice(&[1, bad], [2])?;
            let known = on(device, || ops::take(&ramp(&[10, 2]), &index, Some(0)));
            assert!(known.err().unwrap().to_string().contains("at position [1]"));
            let taken = || {
                let index = ops::bitwise_and(&index, -1)?;
                on(device, || ops::take(&ramp(&[10, 2]), &index, Some(0)))
            };
            let read = taken()?.to_vec::<f32>();
            let error = read.unwrap_err().to_string();
            assert!(error.contains("outside axis 0 of size 10"), "{error}");
            // Who waits without reading gets it, too.
            let error = cupola::wait(&[taken()?]).unwrap_err().to_string();
            assert!(error.contains("outside axis 0 of size 10"), "{error}");
            // And the device goes on.
            let fine = Array::from_slice(&[1, -1], [2])?;
            let read =
                on(device, || ops::take(&ramp(&[10, 2]), &fine, Some(0)))?.to_vec::<f32>()?;
            assert_eq!(read, [-2.5, -2.25, 1.5, 1.75]);
        }
        // What a plan counted there is known, too.
        let counted = on(device, || ops::arange(0, 12, 1))?;
        cupola::wait(&[counted.clone()])?;
        let known = on(device, || ops::take(&ramp(&[10, 2]), &counted, Some(0)));
        assert!(known.err().unwrap().to_string().contains("at position [10]"));
        assert!(on(device, || ops::take(&ramp(&[12, 2]), &counted, Some(0))).is_ok());
    }
    Ok(())
}

#[test]
fn a_seed_gives_the_same_numbers_everywhere() -> Result<()> {
    let _turn = turn(Policy::Error);
    for device in others() {
        let draw = || -> Result<(Vec<u8>, Vec<u8>, Vec<u8>)> {
            generator::seed(7);
            let uniform = ops::random::uniform(0.0, 1.0, [33, 7], DType::F32, None)?;
            let mask = ops::random::bernoulli(0.3, [1001], None)?;
            let bits = ops::random::bits([77], 2, None)?;
            Ok((uniform.to_bytes()?, mask.to_bytes()?, bits.to_bytes()?))
        };
        assert_eq!(draw()?, on(device, draw)?);
    }
    Ok(())
}

#[test]
fn memory_that_is_asked_for_in_vain_is_an_error() -> Result<()> {
    let _turn = turn(Policy::Error);
    for device in others() {
        let huge = on(device, || ops::ones([1 << 20, 1 << 20], DType::F32))?;
        let error = huge.eval().unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. } | Error::Unsupported { .. }), "{error}");
        let y = on(device, || &ramp(&[8]) + 1.0);
        assert_eq!(y.to_vec::<f32>()?.len(), 8);
    }
    Ok(())
}

/// A chain of small launches, as inference is, on rows from `first` on.
fn chain(x: &Array, w: &Array, first: usize, factor: f32) -> Result<[Array; 2]> {
    let first = first as isize;
    let mut y = ops::slice(x, &[first, 0], &[first + 3, 12], &[1, 1])?;
    for _ in 0..4 {
        let z = ops::matmul(&y, w)?;
        y = &ops::tanh(&(&z * factor))? - &ops::mean(&z, 1, true)?;
    }
    Ok([ops::max(&y, 1, false)?, ops::sum(&y, (), false)?])
}

#[test]
fn a_plan_that_runs_often_follows_its_parameters() -> Result<()> {
    let _turn = turn(Policy::Error);
    #[cfg(feature = "cuda")]
    cupola::cuda::set_matmul_precision(cupola::cuda::MatmulPrecision::Full);
    for device in others() {
        let (x, w) = (ramp(&[32, 12]), &ramp(&[12, 12]) * 0.05);
        let other = &w * 0.5;
        cupola::eval(&[w.clone(), other.clone()])?;
        // Results that are kept push the next ones to other memory.
        let mut kept = Vec::new();
        for run in 0..24 {
            let w = if run % 5 == 4 { &other } else { &w };
            let (first, factor) = (run * 7 % 29, if run < 12 { 1.0 } else { run as f32 * 0.1 });
            let want = chain(&x, w, first, factor)?;
            let got = on(device, || chain(&x, w, first, factor))?;
            cupola::eval(&got)?;
            for (got, want) in got.iter().zip(&want) {
                for (got, want) in got.to_vec::<f32>()?.iter().zip(want.to_vec::<f32>()?) {
                    let close = (got - want).abs() <= 1e-3 * want.abs().max(1.0);
                    assert!(close, "run {run} on {device}: {got}, not {want}");
                }
            }
            if run % 3 == 0 {
                let sum = got[1].item::<f32>()?;
                kept.push((got, sum));
            }
        }
        // And what was kept has not been written to.
        for (arrays, sum) in &kept {
            assert_eq!(arrays[1].item::<f32>()?, *sum);
        }
    }
    #[cfg(feature = "cuda")]
    cupola::cuda::set_matmul_precision(cupola::cuda::MatmulPrecision::Tf32);
    Ok(())
}

#[test]
fn wide_convolutions_and_their_gradients_agree_with_the_cpu() -> Result<()> {
    let _turn = turn(Policy::Error);
    for device in others() {
        for (dtype, tolerance) in [(DType::F32, 4e-3), (DType::BF16, 2e-2)] {
            for options in [
                ops::ConvOptions::new().padding(1),
                ops::ConvOptions::new().stride(2),
                ops::ConvOptions::new().dilation(2).padding(2),
            ] {
                let x = ops::astype(&(&ramp(&[2, 9, 7, 32]) * 0.01), dtype)?;
                let w = ops::astype(&(&ramp(&[40, 3, 3, 32]) * 0.01), dtype)?;
                cupola::eval(&[x.clone(), w.clone()])?;
                let all = |x: &Array, w: &Array| -> Result<Vec<Array>> {
                    let y = ops::conv2d(x, w, &options)?;
                    let seed = &ops::ones(y.shape(), dtype)? * 0.5;
                    let forward = |p: &[Array]| Ok(vec![ops::conv2d(&p[0], &p[1], &options)?]);
                    let (y, grads) =
                        cupola::transform::vjp(forward, &[x.clone(), w.clone()], &[seed])?;
                    let all = y.into_iter().chain(grads);
                    all.map(|a| ops::astype(&a, DType::F32)).collect()
                };
                let (want, got) = (all(&x, &w)?, on(device, || all(&x, &w))?);
                for (which, (got, want)) in got.iter().zip(&want).enumerate() {
                    let (got, want) = (got.to_vec::<f32>()?, want.to_vec::<f32>()?);
                    let scale = want.iter().fold(0.0, |most: f32, v| most.max(v.abs()));
                    for (g, w) in got.iter().zip(&want) {
                        let close = (g - w).abs() <= tolerance * scale;
                        assert!(close, "{dtype} {which} {options:?} on {device}: {g}, not {w}");
                    }
                }
            }
        }
    }
    Ok(())
}

/// The losses of training steps of the article's network, dropout on.
fn losses(steps: usize) -> Result<Vec<f32>> {
    generator::seed(11);
    let model = ConvNet::new(1, 16, 10)?;
    let mut adam = Adam::new(0.001)?;
    let images = ops::random::normal([64, 16, 16, 1], DType::F32, None)?;
    let labels = Array::from_vec((0..64).map(|i| 3 * i % 10).collect::<Vec<i32>>(), [64])?;
    cupola::eval(&[images.clone()])?;
    let mut seen = Vec::new();
    for step in 0..steps {
        let first = (step * 4 % 64) as isize;
        let rows = |x: &Array| {
            let rank = x.rank();
            let mut start = vec![0; rank];
            let mut stop: Vec<isize> = x.shape().iter().map(|&d| d as isize).collect();
            (start[0], stop[0]) = (first, first + 4);
            ops::slice(x, &start, &stop, &vec![1; rank])
        };
        let (x, y) = (rows(&images)?, rows(&labels)?);
        let ((loss, ()), grads) = nn::value_and_grad(&model, |model| {
            Ok((nn::nll_loss(&model.forward(&x)?, &y, nn::Reduction::Mean)?, ()))
        })?;
        adam.update(&model, &grads)?;
        drop(grads);
        nn::eval_all(&[&loss, &model, &adam])?;
        seen.push(loss.item::<f32>()?);
    }
    Ok(seen)
}

#[test]
fn fifty_training_steps_agree_with_the_cpu() -> Result<()> {
    let _turn = turn(Policy::Error);
    let devices = others();
    if devices.is_empty() {
        return Ok(());
    }
    let want = losses(50)?;
    for device in devices {
        let got = on(device, || losses(50))?;
        for (step, (got, want)) in got.iter().zip(&want).enumerate() {
            // Sums in another order, whose differences Adam's division makes larger step by step.
            let tolerance = 1e-3 * want.abs().max(0.1) * (1.0 + step as f32 / 10.0);
            assert!((got - want).abs() <= tolerance, "step {step} on {device}: {got}, not {want}");
        }
    }
    Ok(())
}
