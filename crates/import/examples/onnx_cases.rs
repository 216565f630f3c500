//! Runs the cases of ONNX's backend tests that lie in folders, and counts them by operator.
//!
//! `cargo run -p cupola-import --example onnx_cases -- FOLDER.. [--only NAME] [--list]`, where a folder has
//! one folder a case, with `model.onnx` and `test_data_set_*`. `onnx_data.py` writes the node cases.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use cupola_core::{DType, ops};
use cupola_cpu as _;
use cupola_import::onnx::{Kind, Model, Tensor, Value, data};

type Result<T> = std::result::Result<T, String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The folders in a folder, by name.
fn folders(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut out: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    out.retain(|p| p.is_dir());
    out.sort();
    Ok(out)
}

/// A stored value of a kind.
fn value(path: &Path, kind: Kind) -> Result<Value> {
    let bytes = std::fs::read(path).map_err(text)?;
    let read = match kind {
        Kind::Tensor => data::tensor(&bytes),
        Kind::Sequence => data::sequence(&bytes),
        Kind::Optional => data::optional(&bytes),
    };
    read.map_err(text)
}

/// Relative and absolute tolerance of a case.
fn tolerances(case: &Path) -> (f64, f64) {
    let text = std::fs::read_to_string(case.join("data.json")).unwrap_or_default();
    let number = |key: &str| {
        let (_, rest) = text.split_once(&format!("\"{key}\": "))?;
        rest.split([',', '}']).next()?.trim().parse().ok()
    };
    (number("rtol").unwrap_or(1e-3), number("atol").unwrap_or(1e-7))
}

fn compare(have: &Value, want: &Value, (rtol, atol): (f64, f64)) -> Result<()> {
    match (have, want) {
        (Value::Sequence(have), Value::Sequence(want)) if have.len() == want.len() => {
            have.iter().zip(want.iter()).try_for_each(|(h, w)| compare(h, w, (rtol, atol)))
        }
        (Value::Nothing, Value::Nothing) => Ok(()),
        (Value::Tensor(have), Value::Tensor(want)) => close(have, want, (rtol, atol)),
        (have, want) => Err(format!("{} where {} is wanted", have.kind(), want.kind())),
    }
}

fn close(have: &Tensor, want: &Tensor, (rtol, atol): (f64, f64)) -> Result<()> {
    let (h, w) = (have.array.aval(), want.array.aval());
    if h != w || have.element != want.element {
        return Err(format!("{h} {} where {w} {} is wanted", have.element, want.element));
    }
    let rtol = if w.dtype == DType::BF16 { rtol.max(2f64.powi(-6)) } else { rtol };
    let numbers = |t: &Tensor| ops::astype(&t.array, DType::F64)?.to_vec::<f64>();
    let (h, w) = (numbers(have).map_err(text)?, numbers(want).map_err(text)?);
    for (i, (&h, &w)) in h.iter().zip(&w).enumerate() {
        let same = h == w || h.is_nan() && w.is_nan() || (h - w).abs() <= atol + rtol * w.abs();
        if !same {
            return Err(format!("element {i} is {h}, not {w}"));
        }
    }
    Ok(())
}

fn run(case: &Path) -> Result<()> {
    let model = Model::load(case.join("model.onnx")).map_err(text)?;
    for set in folders(case)? {
        let mut inputs = Vec::new();
        for (i, port) in model.inputs().into_iter().enumerate() {
            let path = set.join(format!("input_{i}.pb"));
            inputs.push((port.name.as_str(), value(&path, port.kind)?));
        }
        let outputs = model.run_values(inputs).map_err(text)?;
        for (i, ((name, have), port)) in outputs.iter().zip(model.outputs()).enumerate() {
            let want = value(&set.join(format!("output_{i}.pb")), port.kind)?;
            compare(have, &want, tolerances(case)).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    Ok(())
}

/// The operator that a case is about: that of its error, or of its name.
fn about(case: &str) -> String {
    case.trim_start_matches("test_").split('_').next().unwrap_or("").to_owned()
}

fn main() -> Result<()> {
    let (mut roots, mut only, mut list) = (Vec::new(), None, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = arguments.next(),
            "--list" => list = true,
            root => roots.push(PathBuf::from(root)),
        }
    }
    let (mut passed, mut total) = (0, 0);
    let mut failed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for case in roots.iter().map(|r| folders(r)).collect::<Result<Vec<_>>>()?.concat() {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        total += 1;
        let out = catch_unwind(AssertUnwindSafe(|| run(&case)));
        match out.unwrap_or_else(|_| Err("panicked".into())) {
            Ok(()) => {
                passed += 1;
                if list {
                    println!("pass {name}");
                }
            }
            Err(error) => {
                let error = error.replace(&format!("{}/model.onnx: ", case.display()), "");
                failed.entry(about(&name)).or_default().push(format!("{name}: {error}"));
            }
        }
    }
    for (op, errors) in &failed {
        println!("{op}: {} failed", errors.len());
        errors.iter().for_each(|error| println!("    {error}"));
    }
    println!("{passed} of {total} passed");
    Ok(())
}
