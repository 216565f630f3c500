//! Writing `crates/py/src/generated.rs`.

use std::fmt::Write;

use super::Bound;
use super::parse::Source;
use super::table::{
    ALIASES, Argument, Kind, METHODS, SURFACE, evaluates, is_real, module_docs, stream_by_position,
    takes_numbers,
};

const HEAD: &str = "//! Written by `cargo xtask gen` from `crates/core/src/ops`: change it there, or in the tables of
//! `xtask/src/bind`.

// Arguments have MLX's names.
#![allow(non_snake_case)]

use cupola::{DType, ops};
use pyo3::prelude::*;
use pyo3::types::PyModule;

use crate::array::PyArray;
use crate::device::{On, evaluating, on};
use crate::dtype::Dtype;
use crate::operand::{
    Arr, Arrays, Axis, AxisList, Count, NamedAxes, Numeric, OneAxis, Opd, Real, ShapeArg, SizesArg, Small, give,
    keep_doubles, meet,
};

";

/// The functions bound by rule, the methods, the registration and the list of what is missing.
pub fn write(bound: &[Bound], hand: &Source) -> String {
    let mut out = String::from(HEAD);
    for function in bound {
        if let Some(arguments) = &function.by_rule {
            write_function(&mut out, function, arguments);
        }
    }
    write_methods(&mut out, bound);
    write_docs(&mut out, bound, hand);
    write_registration(&mut out, bound, hand);
    out
}

fn docs(out: &mut String, lines: &[String]) {
    for line in lines {
        let _ = writeln!(out, "/// {line}");
    }
}

fn returns(ty: &str) -> &'static str {
    match ty {
        "Result<Vec<Array>>" => "Vec<PyArray>",
        "Result<(Array,Array)>" => "(PyArray, PyArray)",
        "Result<(Array,Array,Array)>" => "(PyArray, PyArray, PyArray)",
        "Array" | "Result<Array>" => "PyArray",
        other => panic!("no rule gives {other} to Python"),
    }
}

/// The type of an argument in Rust.
fn rust_type(argument: &Argument) -> &'static str {
    match argument.kind {
        Kind::Array => "Arr",
        Kind::Operand => "Opd",
        Kind::Axes if argument.default.is_none() => "NamedAxes",
        Kind::Axes => "Axis",
        Kind::OneAxis => "OneAxis",
        Kind::AxisList => "AxisList",
        Kind::Sizes => "SizesArg",
        Kind::Shape => "ShapeArg",
        Kind::Bool => "bool",
        Kind::Int("usize") => "Count",
        Kind::Number => "Small",
        Kind::Int(ty) => ty,
        Kind::Float => "f64",
        Kind::DType if argument.default.is_some() => "Option<Dtype>",
        Kind::DType => "Dtype",
        Kind::MaybeArray => "Option<Arr>",
        Kind::Arrays => "Arrays",
    }
}

/// What the operation is called with.
fn passed(argument: &Argument) -> String {
    let name = &argument.name;
    match argument.kind {
        Kind::Array | Kind::Operand => format!("&{name}"),
        Kind::Axes
        | Kind::OneAxis
        | Kind::AxisList
        | Kind::Number
        | Kind::Shape
        | Kind::Int("usize") => {
            format!("{name}.0")
        }
        Kind::DType if argument.default.is_some() => {
            let own = match argument.default.as_deref() {
                Some("bfloat16") => "BF16",
                _ => "F32",
            };
            format!("{name}.map_or(DType::{own}, |d| d.0)")
        }
        Kind::DType => format!("{name}.0"),
        Kind::MaybeArray => format!("{name}.as_deref()"),
        Kind::Arrays => format!("&{name}.refs()"),
        Kind::Sizes | Kind::Bool | Kind::Int(_) | Kind::Float => name.clone(),
    }
}

/// A default in Rust's spelling.
fn default(argument: &Argument, text: &str) -> String {
    match (argument.kind, text) {
        (Kind::Axes, "None") => "Axis::all()".into(),
        (Kind::Axes, axis) => format!("Axis::one({axis})"),
        (Kind::OneAxis, "None") => "OneAxis::all()".into(),
        (Kind::OneAxis, axis) => format!("OneAxis::one({axis})"),
        (Kind::AxisList, _) => "AxisList::all()".into(),
        (Kind::Number, axis) => format!("Small({axis})"),
        (Kind::DType, _) => "None".into(),
        (Kind::Int("usize"), count) => format!("Count({count})"),
        (_, "False") => "false".into(),
        (_, "True") => "true".into(),
        (_, other) => other.to_owned(),
    }
}

/// The signature for PyO3, and the one that Python shows.
fn signatures(name: &str, arguments: &[Argument], is_method: bool) -> (String, String) {
    let mut rust = Vec::new();
    let mut shown: Vec<String> = is_method.then(|| "$self".to_owned()).into_iter().collect();
    for argument in arguments {
        match &argument.default {
            Some(text) => {
                rust.push(format!("{} = {}", argument.name, default(argument, text)));
                // Python reads the text as literals: a dtype by its name is none.
                let text = if argument.kind == Kind::DType { "None" } else { text };
                shown.push(format!("{}={text}", argument.name));
            }
            None => {
                rust.push(argument.name.clone());
                shown.push(argument.name.clone());
            }
        }
    }
    if !stream_by_position(name, arguments, is_method) {
        rust.push("*".into());
        shown.push("*".into());
    }
    rust.push("stream = None".into());
    shown.push("stream=None".into());
    (rust.join(", "), shown.join(", "))
}

fn parameters(arguments: &[Argument], arrays_change: bool) -> String {
    let one = |a: &Argument| {
        let changes = arrays_change && matches!(a.kind, Kind::Array | Kind::MaybeArray);
        format!("{}{}: {}", if changes { "mut " } else { "" }, a.name, rust_type(a))
    };
    arguments
        .iter()
        .map(one)
        .chain(["stream: Option<On>".to_owned()])
        .collect::<Vec<_>>()
        .join(", ")
}

/// These arguments, one after the other, to be changed.
fn every(arrays: &[&Argument], are_real: bool) -> String {
    let inner = if are_real { ".0" } else { "" };
    let (sure, optional): (Vec<&Argument>, Vec<&Argument>) =
        arrays.iter().partition(|a| a.kind == Kind::Array);
    let sure = sure.iter().map(|a| format!("&mut {}{inner}", a.name)).collect::<Vec<_>>();
    let sure = format!("[{}]", sure.join(", "));
    if optional.is_empty() {
        return sure;
    }
    let optional = optional.iter().map(|a| format!(".chain(&mut {})", a.name));
    format!("{sure}.into_iter(){}", optional.collect::<String>())
}

fn write_function(out: &mut String, function: &Bound, arguments: &[Argument]) {
    docs(out, &function.function.docs);
    let name = &function.name;
    let (rust, shown) = signatures(name, arguments, false);
    let fallible = function.function.returns.starts_with("Result");
    let operands = arguments.iter().filter(|a| a.kind == Kind::Operand).collect::<Vec<_>>();
    let meeting = match operands[..] {
        [a, b, c] if name == "lerp" => format!(
            "let ({0}, {1}) = meet({0}, {1})?; let ({1}, {2}) = meet({1}, {2})?;
             let ({0}, {2}) = meet({0}, {2})?;",
            a.name, b.name, c.name
        ),
        [.., a, b] => format!("let ({0}, {1}) = meet({0}, {1})?;", a.name, b.name),
        // The values that an array is filled with take its dtype.
        [one] if one.name == "value" => {
            format!("let {0} = {0}.beside({1}.dtype())?;", one.name, arguments[0].name)
        }
        // What meets the first array as an operand would.
        [one] if matches!(one.name.as_str(), "x" | "weight") => format!(
            "{0}.keep_doubles_beside(&{1}); let {1} = {1}.keeping_doubles({0}.dtype());",
            arguments[0].name, one.name
        ),
        _ => String::new(),
    };
    let is_real = is_real(&function.module, name);
    let array = match is_real {
        true => "Real",
        false if takes_numbers(&function.module, name) => "Numeric",
        false => "Arr",
    };
    let is_array = |a: &&Argument| matches!(a.kind, Kind::Array | Kind::MaybeArray);
    let arrays = arguments.iter().filter(is_array).collect::<Vec<_>>();
    let meeting = match arrays[..] {
        [] | [_] => meeting,
        _ => format!("{meeting} keep_doubles({});", every(&arrays, is_real)),
    };
    let call = arguments.iter().map(passed).collect::<Vec<_>>().join(", ");
    let call = format!("{}({call})", function.function.path);
    let call = if fallible { call } else { format!("Ok({call})") };
    let (python, runs) = match evaluates(&function.module, name) {
        true => ("py: Python<'_>, ", "evaluating(py, stream,"),
        false => ("", "on(stream,"),
    };
    let _ = writeln!(
        out,
        "#[pyfunction(name = \"{name}\")]
         #[pyo3(signature = ({rust}), text_signature = \"({shown})\")]
         pub fn {}({python}{}) -> PyResult<{}> {{ {meeting} {runs} || give({call})) }}\n",
        function.path,
        parameters(arguments, meeting.contains("keep_doubles"))
            .replace(": Arr,", &format!(": {array},")),
        returns(&function.function.returns),
    );
}

fn write_methods(out: &mut String, bound: &[Bound]) {
    let _ = writeln!(out, "#[pymethods]\nimpl PyArray {{");
    for name in METHODS.split_whitespace() {
        let target = ALIASES.iter().find(|a| a.0.is_empty() && a.1 == name).map_or(name, |a| a.2);
        let found = bound.iter().find(|b| b.module.is_empty() && b.name == target);
        let Some((function, Some(arguments))) = found.map(|b| (b, &b.by_rule)) else { continue };
        let (rust, shown) = signatures(name, &arguments[1..], true);
        let first = function.function.docs.first().cloned().unwrap_or_default();
        let _ = writeln!(out, "/// {first}");
        let call = std::iter::once("&self.get()".to_owned())
            .chain(arguments[1..].iter().map(passed))
            .collect::<Vec<_>>()
            .join(", ");
        let _ = writeln!(
            out,
            "#[pyo3(signature = ({rust}), text_signature = \"({shown})\")]
             pub fn {name}(&self, {}) -> PyResult<{}> {{
                 on(stream, || give({}({call})))
             }}\n",
            parameters(&arguments[1..], false),
            returns(&function.function.returns),
            function.function.path,
        );
    }
    let _ = writeln!(out, "}}\n");
}

/// The documentation that is not in Rust beside functions and classes written by hand.
fn write_docs(out: &mut String, bound: &[Bound], hand: &Source) {
    let by_hand = bound.iter().filter(|b| b.by_rule.is_none());
    let functions = by_hand.map(|b| (&b.module, &b.name, &b.function.docs, &b.added));
    let classes = hand.classes.iter().map(|c| (&c.module, &c.name, &c.docs, &c.added));
    let _ = writeln!(
        out,
        "/// What `crates/py/docs.txt` and the operation of that name add to the documentation of a
         /// function or class written by hand.
         macro_rules! docs {{"
    );
    for (module, name, docs, added) in functions.chain(classes) {
        let path = if module.is_empty() { name.clone() } else { format!("{module}::{name}") };
        // The lines before these may have none of their own to end with.
        let text = added.join("\n");
        debug_assert!(docs.ends_with(added));
        let _ = writeln!(out, "({path}) => {{ {text:?} }};");
    }
    // Methods have the first line of the function's.
    for name in METHODS.split_whitespace() {
        let own = bound.iter().find(|b| b.module.is_empty() && b.name == name);
        if let Some(function) = own.filter(|b| b.by_rule.is_none())
            && let Some(first) = function.function.docs.first()
        {
            let _ = writeln!(out, "(array::{name}) => {{ {first:?} }};");
        }
    }
    let _ = writeln!(out, "}}\npub(crate) use docs;\n");
}

fn write_registration(out: &mut String, bound: &[Bound], hand: &Source) {
    let _ = writeln!(
        out,
        "/// Adds what the submodule `name` has; the module itself is the one without a name.
         pub fn register(name: &str, m: &Bound<'_, PyModule>) -> PyResult<()> {{
             match name {{"
    );
    let modules = modules(bound);
    for module in &modules {
        let _ = writeln!(out, "\"{module}\" => {{");
        for class in hand.classes.iter().filter(|c| c.module == *module) {
            let _ = writeln!(out, "m.add_class::<crate::{}>()?;", class.path);
        }
        for function in bound.iter().filter(|b| b.module == *module) {
            // A name such as `std` alone could mean a crate.
            let path = match function.by_rule {
                Some(_) => format!("self::{}", function.path),
                None => function.path.clone(),
            };
            let _ = writeln!(out, "m.add_function(wrap_pyfunction!({}, m)?)?;", path);
        }
        for (_, alias, target) in ALIASES.iter().filter(|a| a.0 == module) {
            if bound.iter().any(|b| b.module == *module && b.name == *target) {
                let _ = writeln!(out, "m.add(\"{alias}\", m.getattr(\"{target}\")?)?;");
            }
        }
        let _ = writeln!(out, "}}");
    }
    let _ = writeln!(out, "_ => {{}} }} Ok(()) }}\n");
    let _ = writeln!(
        out,
        "/// The submodules, with what they are.
         pub const MODULES: &[(&str, &str)] = &{:?};

         /// What the module itself is.
         pub const DOC: &str = {:?};

         /// What MLX has and is not here: submodule and name.
         pub const MISSING: &[(&str, &str)] = &{:?};",
        modules.iter().filter(|m| !m.is_empty()).map(|m| (m, module_docs(m))).collect::<Vec<_>>(),
        module_docs(""),
        missing(bound),
    );
}

/// The modules that there are, the module itself first.
pub fn modules(bound: &[Bound]) -> Vec<String> {
    let named = SURFACE.iter().map(|(m, _)| (*m).to_owned());
    let mut all: Vec<String> = named.chain(bound.iter().map(|b| b.module.clone())).collect();
    all.sort();
    all.dedup();
    all
}

/// What of MLX's surface is bound by nothing.
pub fn missing(bound: &[Bound]) -> Vec<(&'static str, &'static str)> {
    let is_there = |module: &str, name: &str| {
        let alias = ALIASES.iter().find(|a| a.0 == module && a.1 == name);
        let target = alias.map_or(name, |a| a.2);
        bound.iter().any(|b| b.module == module && (b.name == name || b.name == target))
    };
    let all = SURFACE.iter().flat_map(|(m, names)| names.split_whitespace().map(move |n| (*m, n)));
    all.filter(|(module, name)| !is_there(module, name)).collect()
}
