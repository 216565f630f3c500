//! The profiler: what it notes, what it writes, and that it changes nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupola::fallback::{self, Policy};
use cupola::io::check_file;
use cupola::nn::{self, Layer, Module};
use cupola::ops::ScanOptions;
use cupola::profiler::{self, By, Clock, Log, Mode, Options, What};
use cupola::{Array, DType, Device, Result, ops};
use serde_json::Value;

/// A process has one profile at a time, so the tests take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A graph that no other test has: what it needs is planned.
fn work(size: usize) -> Result<f32> {
    let x = Array::from_vec(vec![0.5f32; size * size], [size, size])?;
    let y = ops::softmax(&ops::tanh(&ops::matmul(&x, &x)?)?, -1)?;
    ops::sum(&y, (), false)?.item::<f32>()
}

fn trace(profile: &profiler::Profile) -> Vec<Value> {
    let all: Value = serde_json::from_str(&profile.to_json()).expect("a trace is JSON");
    all["traceEvents"].as_array().expect("a list").clone()
}

#[test]
fn a_profile_has_every_step() -> Result<()> {
    let _turn = alone();
    let (sum, profile) = profiler::profile(Options::default(), || {
        profiler::mark("begin");
        work(31)
    })?;
    assert!((sum - 31.0).abs() < 1e-3);
    let mut seen = [false; 5];
    for event in profile.events() {
        match &event.what {
            What::Step { device, step, clock, .. } => {
                assert_eq!((*device, *clock), (Device::CPU, Clock::Device));
                if step.kind == "matmul" {
                    seen[0] = true;
                    assert_eq!(step.operations, 2 * 31 * 31 * 31 + 31 * 31, "with a tanh after it");
                    assert_eq!(step.inputs[0].0.to_string(), "float32[31, 31]");
                    assert_eq!(step.fused, ["tanh"]);
                }
            }
            What::Planning { steps, .. } => seen[1] |= *steps > 1,
            What::Evaluation { nodes, memory, .. } => seen[2] |= *nodes > 3 && memory.active > 0,
            What::Copy { bytes, .. } => seen[3] |= *bytes == 31 * 31 * 4,
            What::Mark { name } => seen[4] |= name == "begin",
            What::Memory { .. }
            | What::Compiling { .. }
            | What::Fallback { .. }
            | What::Wait { .. } => {}
        }
        assert!(event.length <= profile.length());
    }
    assert_eq!(seen, [true; 5], "product, planning, evaluation, upload, mark");
    assert_eq!(profile.lost(), 0);
    // What runs again is planned no more.
    let (_, again) = profiler::profile(Options::default(), || work(31))?;
    assert!(!again.events().any(|event| matches!(event.what, What::Planning { .. })));
    assert!(again.events().any(|event| matches!(event.what, What::Step { .. })));
    Ok(())
}

#[test]
fn traces_tables_and_pages() -> Result<()> {
    let _turn = alone();
    let options = |mode| Options { mode, ..Options::default() };
    let phases = |profile: &profiler::Profile, phase: &str| {
        let steps = trace(profile).into_iter().filter(|event| event["cat"] == "step");
        steps.filter(|event| event["ph"] == phase).count()
    };
    let run = |mode| profiler::profile(options(mode), || work(17)).map(|(_, profile)| profile);
    let (intervals, events, both) =
        (run(Mode::Interval)?, run(Mode::Event)?, run("interval,event".parse()?)?);
    assert!(phases(&intervals, "X") > 0 && phases(&intervals, "i") == 0);
    assert!(phases(&events, "X") == 0 && phases(&events, "i") > 0);
    assert_eq!(phases(&both, "X"), phases(&both, "i"));
    let product = trace(&intervals).into_iter().find(|event| event["name"] == "matmul");
    let product = product.expect("the product");
    assert!(product["ts"].as_f64() > Some(0.0) && product["dur"].as_f64() > Some(0.0));
    assert_eq!(product["args"]["clock"], "device");
    assert!(trace(&intervals).iter().any(|event| event["ph"] == "C"), "memory over time");

    let table = intervals.table(By::Op);
    assert!(table.contains("matmul") && table.contains("share"), "{table}");
    let times: Vec<f64> = table
        .lines()
        .skip(1)
        .filter_map(|line| line.split(" ms").next()?.split_whitespace().last()?.parse().ok())
        .collect();
    assert!(times[..times.len() - 1].is_sorted_by(|a, b| a >= b), "the longest first: {table}");
    assert!(intervals.table("step".parse()?).contains("with tanh"));
    assert!(intervals.table(By::Line).contains("profiler.rs:"));
    assert!(intervals.table(By::Module).contains("(no module)"));
    assert!("file".parse::<By>().is_err());

    let page = intervals.to_html();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert!(page.contains("matmul") && !page.contains("http"), "it needs nothing else");
    Ok(())
}

#[test]
fn names_cannot_break_a_page_or_a_trace() -> Result<()> {
    let _turn = alone();
    let name = "</script>\"&\\ \u{2028}";
    let ((), profile) = profiler::profile(Options::default(), || {
        profiler::mark(name);
        Ok(())
    })?;
    assert!(trace(&profile).iter().any(|event| event["name"] == name));
    assert_eq!(profile.to_html().matches("</script>").count(), 1);
    Ok(())
}

#[test]
fn starts_and_stops_that_do_not_match_are_errors() -> Result<()> {
    let _turn = alone();
    let error = profiler::stop().expect_err("nothing is recorded").to_string();
    assert!(error.contains("no profile is being recorded"), "{error}");
    profiler::start(Options::default())?;
    let error = profiler::start(Options::default()).expect_err("twice").to_string();
    assert!(error.contains("already"), "{error}");
    work(5)?;
    // The recording that was there goes on.
    assert!(profiler::is_running());
    assert!(profiler::stop()?.events().count() > 0);
    let failed =
        profiler::profile(Options::default(), || Err::<(), _>(cupola::Error::User("no".into())));
    assert!(failed.is_err() && !profiler::is_running());
    assert!("interval,evnt".parse::<Mode>().is_err());
    Ok(())
}

#[test]
fn files() -> Result<()> {
    let _turn = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let (_, profile) = profiler::profile(Options::default(), || work(9))?;
    let file = folder.path().join("trace.json");
    profile.save(&file)?;
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), profile.to_json());
    profile.save(folder.path().join("page.html"))?;
    let missing = folder.path().join("missing/trace.json");
    for error in [
        profile.save(&missing),
        check_file(&missing, "a profile"),
        check_file(folder.path(), "a profile"),
    ] {
        let text = error.expect_err("it cannot be written").to_string();
        assert!(text.contains(&folder.path().display().to_string()), "{text}");
    }
    Ok(())
}

/// What the environment names takes the place of profiles only.
#[test]
fn profiles_are_told_from_other_files() -> Result<()> {
    let _turn = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let (_, profile) = profiler::profile(Options::default(), || work(11))?;
    let at = |name: &str| folder.path().join(name);
    for name in ["trace.json", "page.html"] {
        profiler::spares_others(at(name))?;
        profile.save(at(name))?;
        profiler::spares_others(at(name))?;
    }
    std::fs::write(at("empty"), "").expect("a file");
    profiler::spares_others(at("empty"))?;
    profiler::spares_others("/dev/null")?;
    for (name, text) in
        [("a", "x"), ("b", "{\"traceEvents\":[]}"), ("c", "<!DOCTYPE html>\n<html>")]
    {
        std::fs::write(at(name), text).expect("a file");
        let error = profiler::spares_others(at(name)).expect_err("another file").to_string();
        assert!(error.contains("no profile"), "{error}");
    }
    Ok(())
}

#[test]
fn results_are_the_same_while_somebody_listens() -> Result<()> {
    let _turn = alone();
    let plain = work(23)?;
    let waits = Options { wait_until_completed: true, ..Options::default() };
    assert_eq!(profiler::profile(waits, || work(23))?.0.to_bits(), plain.to_bits());
    // Memory is donated as ever.
    let x = ops::ones([64, 64], DType::F32)?;
    x.eval()?;
    let (y, _) = profiler::profile(Options::default(), || {
        let y = &x + &x;
        y.eval()?;
        Ok(y)
    })?;
    assert_eq!(y.to_vec::<f32>()?, vec![2.0; 64 * 64]);
    Ok(())
}

#[test]
fn logs_name_what_they_print() {
    assert!("ops,copies, fallbacks,cpu".parse::<Log>().is_ok());
    let error = "ops,opps".parse::<Log>().expect_err("a typing error").to_string();
    assert!(error.contains("\"opps\"") && error.contains("fallbacks"), "{error}");
}

/// What a device's steps are timed by: the device where it has marks, or is waited for.
#[test]
fn steps_of_other_devices_are_told() -> Result<()> {
    let _turn = alone();
    let former = fallback::policy();
    fallback::set_policy(Policy::Allow);
    let mut others = cupola::backend::backends().filter(|on| on.device() != Device::CPU);
    let found = others.try_for_each(|on| on_device(on.device(), on.has_marks()));
    fallback::set_policy(former);
    found
}

fn on_device(device: Device, has_marks: bool) -> Result<()> {
    cupola::device::with_stream(cupola::Stream::of(device), || {
        for wait_until_completed in [false, true] {
            let options = Options { wait_until_completed, ..Options::default() };
            let (_, profile) = profiler::profile(options, || work(13))?;
            let is_timed = wait_until_completed || has_marks;
            let wanted = if is_timed { Clock::Device } else { Clock::Host };
            let steps: Vec<_> = profile
                .events()
                .filter_map(|event| match &event.what {
                    What::Step { clock, .. } => Some((*clock, event.length)),
                    _ => None,
                })
                .collect();
            assert!(!steps.is_empty());
            assert!(steps.iter().all(|(clock, _)| *clock == wanted), "{device}: {steps:?}");
            assert!(steps.iter().all(|(_, length)| *length < profile.length()), "{steps:?}");
            assert_eq!(profile.table(By::Op).contains("(host)"), !is_timed);
            let copied = |event: &profiler::Event| matches!(&event.what, What::Copy { from, .. } if *from == device);
            assert!(profile.events().any(copied), "the result was read");
            // To wait for it is no part of the copy, and of no share.
            let waited = |event: &profiler::Event| matches!(&event.what, What::Wait { device: on } if *on == device);
            assert!(profile.events().any(waited), "the result was waited for");
            let table = profile.table(By::Op);
            let row = table.lines().find(|line| line.starts_with("wait for"));
            assert!(row.is_some_and(|row| !row.contains('%')), "{table}");
            assert!(table.contains("of waiting"), "{table}");
        }
        Ok(())
    })
}

#[derive(Module)]
struct Net {
    layers: nn::Sequential,
}

impl Layer for Net {
    fn forward(&self, x: &Array) -> Result<Array> {
        nn::relu(&self.layers.forward(x)?)
    }
}

#[test]
fn lines_and_layers_of_rust_programs_are_noted() -> Result<()> {
    let _turn = alone();
    let net = Net { layers: nn::Sequential::new().push(nn::Linear::new(5, 7)?).push(nn::Tanh) };
    let x = ops::ones([3, 5], DType::F32)?;
    let (_, profile) = profiler::profile(Options::default(), || net.forward(&x)?.eval())?;
    let (lines, modules) = (profile.table(By::Line), profile.table(By::Module));
    assert!(lines.contains("profiler.rs:"), "{lines}");
    // Line tables have no types.
    assert!(modules.contains("profiler.sequential"), "{modules}");
    Ok(())
}

#[test]
fn memory_is_noted_when_a_plan_begins() -> Result<()> {
    let _turn = alone();
    let x = ops::ones([1 << 20], DType::F32)?;
    x.eval()?;
    let (_, profile) = profiler::profile(Options::default(), || {
        ops::sort(&ops::cumsum(&x, 0, ScanOptions::default())?, 0)?.eval()
    })?;
    let of = |event: &profiler::Event| match &event.what {
        What::Memory { memory, .. } => Some(memory.active),
        _ => None,
    };
    let most = profile.events().filter_map(of).max();
    assert!(most.is_some_and(|bytes| bytes >= 8 << 20), "{most:?}");
    Ok(())
}
