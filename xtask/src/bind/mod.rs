//! `cargo xtask gen`: what the Python package has of the operations, from their own text.
//!
//! The functions of `crates/core/src/ops` are read with their documentation. What can be bound by
//! rule becomes a function, and a method of `array` where MLX has one; what MLX gives other forms
//! is written by hand in `crates/py/src` and found there. From both come the registration of the
//! module, the list of what is missing, and the stubs. Examples come from `crates/py/docs.txt`.

mod docs;
mod parse;
mod rust;
mod stubs;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use parse::{Function, Source};

/// A file that the generator writes.
struct Output {
    path: PathBuf,
    text: String,
}

/// Writes the files, or, for `check`, says whether they are as they would be written.
pub fn run(root: &Path, check: bool) -> ExitCode {
    let outputs = match outputs(root) {
        Ok(outputs) => outputs,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut stale = false;
    for Output { path, text } in outputs {
        let there = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
        if there == text {
            continue;
        }
        if check {
            eprintln!("error: {} is not what `cargo xtask gen` writes", path.display());
            stale = true;
        } else if let Err(cause) = std::fs::write(root.join(&path), text) {
            eprintln!("error: {}: {cause}", path.display());
            return ExitCode::FAILURE;
        } else {
            println!("wrote {}", path.display());
        }
    }
    if stale { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A Python function: bound by rule, or by hand.
pub(crate) struct Bound {
    /// The submodule; empty for the module itself.
    pub module: String,
    pub name: String,
    /// Where Rust has the `pyfunction`.
    pub path: String,
    /// With the whole documentation.
    pub function: Function,
    /// The lines of it that are not in Rust beside the function.
    pub added: Vec<String>,
    /// The operation's parameters with their Python side, where it is bound by rule.
    pub by_rule: Option<Vec<table::Argument>>,
}

fn outputs(root: &Path) -> Result<Vec<Output>, String> {
    let ops = parse::operations(&root.join("crates/core/src/ops"))?;
    let mut hand = parse::hand_written(&root.join("crates/py/src"))?;
    if let Some(class) = hand.classes.iter_mut().find(|c| c.name == "DeviceType") {
        class.variants = parse::device_kinds(&root.join("crates/core/src/device.rs"))?;
        class.variants.push("gpu".to_owned());
    }
    let mut bound = bind(&ops, &hand)?;
    document(&mut bound, &mut hand, docs::read(&root.join("crates/py/docs.txt"))?)?;
    let rust = rust::write(&bound, &hand);
    let rust_path = PathBuf::from("crates/py/src/generated.rs");
    let mut outputs = vec![Output { path: rust_path, text: formatted(root, &rust)? }];
    for (name, text) in stubs::write(&bound, &hand) {
        let path = Path::new("crates/py/python/cupola/core").join(name);
        outputs.push(Output { path, text });
    }
    Ok(outputs)
}

/// Every function of the package.
fn bind(ops: &[Function], hand: &Source) -> Result<Vec<Bound>, String> {
    let mut bound: BTreeMap<(String, String), Bound> = BTreeMap::new();
    for function in &hand.functions {
        let key = (function.module.clone(), function.name.clone());
        bound.insert(
            key,
            Bound {
                module: function.module.clone(),
                name: function.name.clone(),
                path: format!("crate::{}", function.path),
                function: function.clone(),
                added: Vec::new(),
                by_rule: None,
            },
        );
    }
    for op in ops {
        let name = table::python_name(&op.name);
        // What another submodule has under that name is the same operation.
        for own in bound.values_mut().filter(|b| b.name == name && b.added.is_empty()) {
            own.added = op.docs.clone();
        }
        let surface = table::is_public(&op.module, name);
        let module = match surface || !op.module.is_empty() {
            true => op.module.clone(),
            false => "_nn".to_owned(),
        };
        let key = (module.clone(), name.to_owned());
        if let Some(own) = bound.get_mut(&key) {
            own.added = op.docs.clone();
            continue;
        }
        if table::is_skipped(&op.module, &op.name) {
            continue;
        }
        let arguments = table::arguments(op)?;
        let path = match op.module.as_str() {
            "" => op.name.clone(),
            module => format!("{module}_{}", op.name),
        };
        bound.insert(
            key,
            Bound {
                module,
                name: name.to_owned(),
                path,
                function: op.clone(),
                added: Vec::new(),
                by_rule: Some(arguments),
            },
        );
    }
    Ok(bound.into_values().collect())
}

/// Puts together the documentation of functions and classes.
fn document(
    bound: &mut [Bound],
    hand: &mut Source,
    mut entries: docs::Entries,
) -> Result<(), String> {
    for one in bound {
        let name = full(&one.module, &one.name);
        let entry = entries.remove(&name).unwrap_or_default();
        one.added = entry.added(&name, &one.function.docs, &one.added)?;
        one.function.docs.extend(one.added.iter().cloned());
    }
    for class in &mut hand.classes {
        let name = full(&class.module, &class.name);
        let entry = entries.remove(&name).unwrap_or_default();
        class.added = entry.added(&name, &class.docs, &[])?;
        class.docs.extend(class.added.iter().cloned());
    }
    match entries.keys().next() {
        Some(name) => Err(format!("crates/py/docs.txt: there is no {name}")),
        None => Ok(()),
    }
}

/// A name with its submodule.
fn full(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}.{name}") }
}

fn formatted(root: &Path, text: &str) -> Result<String, String> {
    use std::io::Write;
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root.join("rustfmt.toml"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .map_err(|cause| format!("rustfmt does not start: {cause}"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes()).map_err(|cause| format!("rustfmt: {cause}"))?;
    }
    let output = child.wait_with_output().map_err(|cause| format!("rustfmt: {cause}"))?;
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|cause| cause.to_string()),
        false => Err("rustfmt could not read what the generator wrote".into()),
    }
}
