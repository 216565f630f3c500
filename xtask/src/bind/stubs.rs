//! Writing the stubs: what type checkers and editors know of `cupola.core`.

use std::fmt::Write;

use super::Bound;
use super::parse::{Class, Function, SUBMODULES, Source};
use super::rust::{missing, modules};
use super::table::{ALIASES, Argument, Kind, METHODS, module_docs, stream_by_position};

const HEAD: &str = "# Written by `cargo xtask gen`.

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, final

";

const TYPES: &str = "_Scalar: TypeAlias = bool | int | float | complex
_StreamOrDevice: TypeAlias = Stream | Device | DeviceType | None

";

/// The stub files: name and text.
pub fn write(bound: &[Bound], hand: &Source) -> Vec<(String, String)> {
    modules(bound).iter().map(|module| stub(module, bound, hand)).collect()
}

fn stub(module: &str, bound: &[Bound], hand: &Source) -> (String, String) {
    let mut out = HEAD.replacen("\n\n", &format!("\n\n\"\"\"{}\"\"\"\n\n", module_docs(module)), 1);
    let file = match module {
        "" => "__init__.pyi".to_owned(),
        module => format!("{module}.pyi"),
    };
    if module.is_empty() {
        for name in modules(bound).iter().filter(|m| !m.is_empty()) {
            let _ = writeln!(out, "from . import {name} as {name}");
        }
        out.push('\n');
        out.push_str(TYPES);
        let kinds = hand.classes.iter().find(|c| c.name == "DeviceType").map(|c| &c.variants[..]);
        constants(&mut out, kinds.unwrap_or_default());
    } else {
        out.push_str(
            "from . import Device, DeviceType, Dtype, Stream, _Scalar, _StreamOrDevice, array\n\n",
        );
    }
    for class in hand.classes.iter().filter(|c| c.module == module) {
        write_class(&mut out, class, bound);
    }
    if module == "random" {
        out.push_str("state: _RandomState\n\n");
    }
    for function in bound.iter().filter(|b| b.module == module) {
        write_function(&mut out, function);
    }
    for (_, alias, target) in ALIASES.iter().filter(|a| a.0 == module) {
        if bound.iter().any(|b| b.module == module && b.name == *target) {
            let _ = writeln!(out, "{alias} = {target}");
        }
    }
    out.push('\n');
    for (_, name) in missing(bound).iter().filter(|(m, _)| *m == module) {
        let _ = writeln!(out, "def {name}(*args: Any, **kwargs: Any) -> NoReturn:");
        let _ = writeln!(out, "    \"\"\"Not there yet: raises `NotImplementedError`.\"\"\"");
    }
    (file, out)
}

fn constants(out: &mut String, kinds: &[String]) {
    for dtype in "bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 \
                  float64 complex32 complex64"
        .split_whitespace()
    {
        let _ = writeln!(out, "{dtype}: Dtype");
    }
    for category in "complexfloating floating inexact signedinteger unsignedinteger integer number \
                     generic"
        .split_whitespace()
    {
        let _ = writeln!(out, "{category}: DtypeCategory");
    }
    // What has the name of a submodule is that.
    for kind in kinds.iter().filter(|kind| !SUBMODULES.contains(&kind.as_str())) {
        let _ = writeln!(out, "{kind}: DeviceType");
    }
    for number in ["pi", "e", "euler_gamma", "inf", "nan"] {
        let _ = writeln!(out, "{number}: float");
    }
    out.push_str("newaxis: None\n\n");
}

fn docs(out: &mut String, lines: &[String], indent: &str) {
    let Some((first, rest)) = lines.split_first() else {
        let _ = writeln!(out, "{indent}...");
        return;
    };
    let clean = |line: &str| line.replace('\\', "\\\\").replace("\"\"\"", "'''");
    if rest.is_empty() {
        let _ = writeln!(out, "{indent}\"\"\"{}\"\"\"", clean(first));
        return;
    }
    let _ = writeln!(out, "{indent}\"\"\"{}", clean(first));
    for line in rest {
        let _ = writeln!(out, "{}", format!("{indent}{}", clean(line)).trim_end());
    }
    let _ = writeln!(out, "{indent}\"\"\"");
}

fn by_rule(argument: &Argument) -> String {
    let annotation = match argument.kind {
        Kind::Array => "_Scalar | array",
        Kind::Operand => "_Scalar | array",
        Kind::Axes => "None | int | Sequence[int]",
        Kind::OneAxis => "None | int",
        Kind::Number => "int",
        Kind::AxisList => "None | Sequence[int]",
        Kind::Sizes | Kind::Shape => "int | Sequence[int]",
        Kind::Bool => "bool",
        Kind::Int(_) => "int",
        Kind::Float => "float",
        Kind::DType if argument.default.is_some() => "Dtype | None",
        Kind::DType => "Dtype",
        Kind::MaybeArray => "_Scalar | array | None",
        Kind::Arrays => "Sequence[array]",
    };
    match &argument.default {
        Some(_) => format!("{}: {annotation} = ...", argument.name),
        None => format!("{}: {annotation}", argument.name),
    }
}

fn write_function(out: &mut String, function: &Bound) {
    let parameters = match &function.by_rule {
        Some(arguments) => ruled(&function.name, arguments, false),
        None => handed(&function.function),
    };
    let returns = returned(&function.function.returns);
    let _ = writeln!(out, "def {}({}) -> {returns}:", function.name, parameters.join(", "));
    docs(out, &function.function.docs, "    ");
}

fn ruled(name: &str, arguments: &[Argument], is_method: bool) -> Vec<String> {
    let mut parameters: Vec<String> = arguments.iter().map(by_rule).collect();
    if !stream_by_position(name, arguments, is_method) {
        parameters.push("*".into());
    }
    parameters.push("stream: _StreamOrDevice = ...".into());
    parameters
}

/// The parameters of a function written by hand, from its signature for PyO3.
fn handed(function: &Function) -> Vec<String> {
    let known: Vec<(&str, &str)> = function
        .parameters
        .iter()
        .filter(|(_, ty)| *ty != "Python")
        .map(|(name, ty)| (name.as_str(), ty.as_str()))
        .filter(|(name, _)| *name != "slf")
        .collect();
    let Some(signature) = &function.signature else {
        return known.iter().map(|(name, ty)| format!("{name}: {}", annotated(ty))).collect();
    };
    let inner = signature.trim_start_matches('(').trim_end_matches(')');
    let type_of = |name: &str| {
        let name = name.trim_start_matches("r#");
        let found = known.iter().find(|(n, _)| *n == name);
        found.map_or_else(|| "Any".to_owned(), |(_, ty)| annotated(ty))
    };
    split(inner)
        .into_iter()
        .map(|part| match part.as_str() {
            "*" | "/" => part,
            part if part.starts_with("**") => format!("{part}: Any"),
            part if part.starts_with('*') => {
                let ty = type_of(&part[1..]);
                let ty =
                    ty.strip_prefix("Sequence[").and_then(|t| t.strip_suffix(']')).unwrap_or("Any");
                format!("{part}: {ty}")
            }
            part => match part.split_once('=') {
                Some((name, _)) => {
                    format!("{}: {} = ...", name.trim_start_matches("r#"), type_of(name))
                }
                None => format!("{}: {}", part.trim_start_matches("r#"), type_of(part)),
            },
        })
        .collect()
}

/// The parts between commas outside brackets.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut one) = (Vec::new(), 0, String::new());
    for c in text.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut one));
                continue;
            }
            _ => {}
        }
        one.push(c);
    }
    if !one.is_empty() {
        parts.push(one);
    }
    parts
}

fn annotated(ty: &str) -> String {
    if let Some(inner) = ty.strip_prefix("Option<").and_then(|t| t.strip_suffix('>')) {
        let inner = annotated(inner);
        return if inner == "Any" || inner.ends_with("None") {
            inner
        } else {
            format!("{inner} | None")
        };
    }
    if let Some(inner) = ty.strip_prefix("Vec<").and_then(|t| t.strip_suffix('>')) {
        return format!("Sequence[{}]", annotated(inner));
    }
    match ty {
        "Arr" | "Given" | "Numeric" | "Opd" | "Parameter" | "Real" => "_Scalar | array",
        "Arrays" => "Sequence[array]",
        "Key" => "array",
        "Axis" => "None | int | Sequence[int]",
        "OneAxis" => "None | int",
        "AxisList" => "None | Sequence[int]",
        "NamedAxes" | "ShapeArg" | "SizesArg" => "int | Sequence[int]",
        spatial if spatial.starts_with("Spatial<") => "int | Sequence[int]",
        "OutputSizes" => "None | int | Sequence[int | None]",
        "Dtype" => "Dtype",
        "Class" => "Dtype | DtypeCategory",
        "Typed" => "Dtype | array",
        "On" => "_StreamOrDevice",
        "DeviceArg" => "Device | DeviceType",
        "DeviceType" => "DeviceType",
        "&PyStream" => "Stream",
        "&Group" => "Group",
        "bool" => "bool",
        "Count" | "Limit" | "Seed" | "Small" | "usize" | "isize" | "i64" | "u64" | "i32"
        | "u16" | "u32" | "i128" => "int",
        "f64" => "float",
        "&str" | "String" => "str",
        "&[u8]" => "bytes",
        "&Bound<PyDict>" => "dict[Any, Any]",
        "(i32,i32)" => "tuple[int, int]",
        _ => "Any",
    }
    .to_owned()
}

fn returned(ty: &str) -> String {
    let ty = ty.strip_prefix("PyResult<").and_then(|t| t.strip_suffix('>')).unwrap_or(ty);
    let ty = ty.strip_prefix("Result<").and_then(|t| t.strip_suffix('>')).unwrap_or(ty);
    match ty {
        "()" => "None",
        "PyArray" | "Array" => "array",
        "Vec<PyArray>" | "Vec<Array>" => "list[array]",
        "(PyArray,PyArray)" | "(Array,Array)" => "tuple[array, array]",
        "(PyArray,PyArray,PyArray)" | "(Array,Array,Array)" => "tuple[array, array, array]",
        "(Vec<PyArray>,Vec<PyArray>)" => "tuple[list[array], list[array]]",
        "Bound<PyTuple>" => "tuple[Any, ...]",
        "Bound<PyDict>" => "dict[str, Any]",
        "Bound<PyBytes>" => "bytes",
        "PyDevice" => "Device",
        "PyStream" => "Stream",
        "PrintOptionsContext" => "_PrintOptionsContext",
        "DeviceType" | "Dtype" | "Group" | "StreamContext" | "PrintOptions" | "ArrayAt"
        | "ArrayIterator" => ty,
        "Option<PyArray>" => "array",
        "Option<f64>" => "float | None",
        "bool" => "bool",
        "usize" | "isize" | "u16" | "u32" | "u64" | "i32" | "i128" => "int",
        "f64" => "float",
        "String" | "&'staticstr" | "&str" => "str",
        "(i32,i32)" => "tuple[int, int]",
        _ => "Any",
    }
    .to_owned()
}

/// Methods that Python's protocols call and type checkers do not ask for.
const HIDDEN: &[&str] = &[
    "__getbuffer__",
    "__releasebuffer__",
    "__reduce__",
    "__richcmp__",
    "__new__",
    "__traverse__",
    "__clear__",
];

fn write_class(out: &mut String, class: &Class, bound: &[Bound]) {
    let _ = writeln!(out, "@final\nclass {}:", class.name);
    docs(out, &class.docs, "    ");
    for variant in &class.variants {
        let _ = writeln!(out, "    {variant}: {}", class.name);
    }
    if class.options.iter().any(|o| o == "eq_int") {
        out.push_str("    def __int__(self) -> int: ...\n");
    }
    if class.options.iter().any(|o| o == "hash") {
        out.push_str("    def __hash__(self) -> int: ...\n");
    }
    for (name, ty, lines) in &class.fields {
        let _ = writeln!(out, "    @property\n    def {name}(self) -> {}:", annotated(ty));
        docs(out, lines, "        ");
    }
    if class.options.iter().any(|o| o == "eq") {
        out.push_str("    def __eq__(self, other: object, /) -> bool: ...\n");
    }
    for method in &class.methods {
        write_method(out, class, method);
    }
    if class.name == "array" {
        for name in "__lt__ __le__ __gt__ __ge__".split_whitespace() {
            let _ = writeln!(out, "    def {name}(self, other: Any, /) -> array: ...");
        }
        for name in ["__eq__", "__ne__"] {
            let _ = writeln!(out, "    def {name}(self, other: object, /) -> Any: ...");
        }
        for name in METHODS.split_whitespace() {
            let target =
                ALIASES.iter().find(|a| a.0.is_empty() && a.1 == name).map_or(name, |a| a.2);
            let found = bound.iter().find(|b| b.module.is_empty() && b.name == target);
            if let Some(function) = found {
                let parameters: Vec<String> = match &function.by_rule {
                    Some(arguments) => ruled(name, &arguments[1..], true),
                    // A method has no first argument, and a scan as one takes no dtype.
                    None => handed(&function.function)
                        .into_iter()
                        .skip_while(|p| p != "/")
                        .skip(1)
                        .filter(|p| !p.starts_with("dtype"))
                        .collect(),
                };
                let _ = writeln!(
                    out,
                    "    def {name}(self, {}) -> {}:",
                    parameters.join(", "),
                    returned(&function.function.returns)
                );
                docs(
                    out,
                    &function.function.docs[..1.min(function.function.docs.len())],
                    "        ",
                );
            }
        }
    }
    out.push('\n');
}

fn write_method(out: &mut String, class: &Class, method: &Function) {
    if method.roles.iter().any(|r| r == "new") {
        let parameters = std::iter::once("cls".to_owned()).chain(handed(method));
        let _ = writeln!(
            out,
            "    def __new__({}) -> {}: ...",
            parameters.collect::<Vec<_>>().join(", "),
            class.name
        );
        return;
    }
    if HIDDEN.contains(&method.name.as_str()) {
        return;
    }
    if method.roles.iter().any(|r| r == "getter") {
        let returns = match method.name.as_str() {
            "shape" => "tuple[int, ...]".to_owned(),
            _ => returned(&method.returns),
        };
        let setter = format!("set_{}", method.name);
        if class.methods.iter().any(|other| other.name == setter) {
            let _ = writeln!(out, "    {}: {returns}", method.name);
            docs(out, &method.docs, "    ");
            return;
        }
        let _ = writeln!(out, "    @property\n    def {}(self) -> {returns}:", method.name);
        docs(out, &method.docs, "        ");
        return;
    }
    // What can be set is an attribute, which its getter has written.
    if method.roles.iter().any(|r| r == "setter") {
        return;
    }
    let is_special = method.name.starts_with("__");
    let mut parameters: Vec<String> = vec!["self".into()];
    parameters.extend(handed(method));
    // The third argument of powers is for `pow` of integers, and does not come in place.
    if let Some(at) = parameters.iter().position(|p| p.starts_with("modulo")) {
        match method.name.as_str() {
            "__ipow__" => drop(parameters.remove(at)),
            _ => parameters[at] = "mod: Any = ...".into(),
        }
    }
    // Python gives special methods their arguments by position.
    if is_special && parameters.len() > 1 && method.signature.is_none() {
        parameters.push("/".into());
    }
    let returns = match method.name.as_str() {
        "__int__" | "__index__" | "__hash__" => "int".to_owned(),
        "__complex__" => "complex".to_owned(),
        "__iter__" if class.name == "array" => "ArrayIterator".to_owned(),
        "__iter__" if class.name == "ArrayIterator" => "ArrayIterator".to_owned(),
        "__format__" => "str".to_owned(),
        name if class.name == "array" && is_number(name) => "array".to_owned(),
        "__enter__" if matches!(class.name.as_str(), "FunctionExporter" | "MemoryHistory") => {
            class.name.clone()
        }
        "__enter__" => "None".to_owned(),
        "vjp" | "jvp" | "vmap" => "custom_function".to_owned(),
        _ => returned(&method.returns),
    };
    // `pow` takes a third argument and `**=` none, which mypy finds odd.
    let remark = if method.name == "__ipow__" { "  # type: ignore[misc]" } else { "" };
    let parameters = parameters.join(", ");
    let _ = writeln!(out, "    def {}({parameters}) -> {returns}:{remark}", method.name);
    docs(out, &method.docs, "        ");
}

/// Whether a special method is an operator.
fn is_number(name: &str) -> bool {
    let base = name.trim_matches('_');
    let operators = "add sub mul truediv floordiv mod and or xor lshift rshift pow matmul";
    operators
        .split(' ')
        .any(|o| base == o || base.strip_prefix(['r', 'i']) == Some(o) && base.len() == o.len() + 1)
}
