//! Reading Rust: the operations, and what is bound by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, Expr, FnArg, ImplItem, Item, Lit, Meta, Pat, ReturnType};

/// The files whose functions are in a submodule of that name.
pub const SUBMODULES: &[&str] = &[
    "random",
    "fast",
    "linalg",
    "fft",
    "metal",
    "cuda",
    "distributed",
    "_amp",
    "_coreml",
    "_data",
    "_graph",
    "_linalg",
    "_nn",
    "_onnx",
    "_profiler",
    "_suite",
    "_train",
];

/// A function with its documentation.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// The submodule that it belongs to.
    pub module: String,
    pub name: String,
    /// Its path within its crate.
    pub path: String,
    pub docs: Vec<String>,
    pub parameters: Vec<(String, String)>,
    pub returns: String,
    /// The Python signature, as in `#[pyo3(signature = …)]`, where there is one.
    pub signature: Option<String>,
    /// `getter`, `new`, `staticmethod` and the like.
    pub roles: Vec<String>,
}

/// A Python class.
#[derive(Clone, Debug, Default)]
pub struct Class {
    pub name: String,
    pub path: String,
    /// With the whole documentation.
    pub docs: Vec<String>,
    /// The lines of it that are not in Rust beside the class.
    pub added: Vec<String>,
    pub rust: String,
    pub methods: Vec<Function>,
    /// The variants of an enum, or the kinds of devices.
    pub variants: Vec<String>,
    /// The fields that are read from Python, with their types and documentation.
    pub fields: Vec<(String, String, Vec<String>)>,
    /// The arguments of `#[pyclass(…)]`.
    pub options: Vec<String>,
    pub module: String,
}

/// What is bound by hand.
#[derive(Default)]
pub struct Source {
    pub functions: Vec<Function>,
    pub classes: Vec<Class>,
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn parsed(path: &Path) -> Result<syn::File, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    syn::parse_file(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// The public functions of `ops`.
pub fn operations(folder: &Path) -> Result<Vec<Function>, String> {
    let mut found = Vec::new();
    for path in files(folder)? {
        if path.file_stem().is_some_and(|s| s == "tests") {
            continue;
        }
        let parts = path.with_extension("");
        let parts = parts.strip_prefix(folder).map_err(|e| e.to_string())?;
        let parts: Vec<_> = parts.iter().map(|p| p.to_string_lossy().into_owned()).collect();
        let module = submodule(&parts);
        for item in parsed(&path)?.items {
            let Item::Fn(f) = item else { continue };
            if !matches!(f.vis, syn::Visibility::Public(_)) {
                continue;
            }
            let mut function = read(&f.sig, &f.attrs);
            function.path = match module.as_str() {
                "random" | "linalg" => format!("ops::{module}::{}", function.name),
                _ => format!("ops::{}", function.name),
            };
            function.module = module.clone();
            found.push(function);
        }
    }
    Ok(found)
}

/// The functions and classes of the Python crate, but for what the generator wrote.
pub fn hand_written(folder: &Path) -> Result<Source, String> {
    let mut source = Source::default();
    let mut blocks: Vec<(String, Vec<Function>)> = Vec::new();
    for path in files(folder)? {
        if path.ends_with("generated.rs") {
            continue;
        }
        let parts: Vec<String> = path
            .with_extension("")
            .strip_prefix(folder)
            .map_err(|e| e.to_string())?
            .iter()
            .map(|p| p.to_string_lossy().into_owned())
            .filter(|p| p != "lib" && p != "mod")
            .collect();
        let file = parsed(&path)?;
        let module = submodule(&parts);
        let templates = templates(&file.items);
        for item in file.items {
            match item {
                Item::Fn(f) if has(&f.attrs, "pyfunction") => {
                    let mut function = read(&f.sig, &f.attrs);
                    function.module = module.clone();
                    function.path = joined(&parts, &f.sig.ident.to_string());
                    source.functions.push(function);
                }
                Item::Struct(s) if has(&s.attrs, "pyclass") => {
                    let mut class = class(&s.attrs, &s.ident.to_string(), &parts, &module);
                    for field in &s.fields {
                        if let Some(name) = &field.ident
                            && options(&field.attrs, "pyo3").iter().any(|o| o == "get")
                        {
                            class.fields.push((
                                name.to_string(),
                                tokens(&field.ty),
                                docs(&field.attrs),
                            ));
                        }
                    }
                    source.classes.push(class);
                }
                Item::Enum(e) if has(&e.attrs, "pyclass") => {
                    let mut class = class(&e.attrs, &e.ident.to_string(), &parts, &module);
                    class.variants = e.variants.iter().map(|v| v.ident.to_string()).collect();
                    source.classes.push(class);
                }
                Item::Impl(i) if has(&i.attrs, "pymethods") => {
                    blocks.push((tokens(&i.self_ty), methods(&i.items)));
                }
                // Functions that differ in nothing but their names are rows of a macro.
                Item::Macro(m) if rows(&m).is_some() => {
                    let Some((name, names)) = rows(&m) else { continue };
                    let Some(template) = templates.get(&name) else { continue };
                    for name in names {
                        let mut function = template.clone();
                        function.path = joined(&parts, &name);
                        function.name = name;
                        function.module = module.clone();
                        source.functions.push(function);
                    }
                }
                // The operators of arrays are rows of a macro, too.
                Item::Macro(m) if m.mac.path.is_ident("operators") => {
                    blocks.push(("PyArray".into(), operators(&m.mac.tokens.to_string())));
                }
                _ => {}
            }
        }
    }
    for (rust, methods) in blocks {
        let name = rust.split('<').next().unwrap_or(&rust).to_owned();
        if let Some(class) = source.classes.iter_mut().find(|c| c.rust == name) {
            class.methods.extend(methods);
        }
    }
    Ok(source)
}

/// The names of the kinds of devices: in the rows of the macro `kinds`.
pub fn device_kinds(path: &Path) -> Result<Vec<String>, String> {
    let file = parsed(path)?;
    let table = file.items.iter().find_map(|item| match item {
        Item::Macro(m) if m.mac.path.is_ident("kinds") => Some(m.mac.tokens.to_string()),
        _ => None,
    });
    let table = table.ok_or_else(|| format!("{}: there are no kinds", path.display()))?;
    let names = table.split("name :").skip(1).filter_map(|row| row.split('"').nth(1));
    Ok(names.map(str::to_owned).collect())
}

/// The macros of a file that define one function: the macro's name and the function.
fn templates(items: &[Item]) -> BTreeMap<String, Function> {
    let mut found = BTreeMap::new();
    for item in items {
        let Item::Macro(m) = item else { continue };
        let Some(name) = m.ident.as_ref().filter(|_| m.mac.path.is_ident("macro_rules")) else {
            continue;
        };
        let text = m.mac.tokens.to_string();
        let Some(start) = text.find("# [pyfunction]") else { continue };
        let body = text[start..].replace("$ name", "name");
        let end = body.find("# [pymethods]").or_else(|| body.rfind(") *")).unwrap_or(body.len());
        let body = &body[..end];
        if let Ok(f) = syn::parse_str::<syn::ItemFn>(body) {
            found.insert(name.to_string(), read(&f.sig, &f.attrs));
        }
    }
    found
}

/// A call of such a macro: its name, and the names of the functions.
fn rows(item: &syn::ItemMacro) -> Option<(String, Vec<String>)> {
    let macros = item.mac.path.get_ident()?.to_string();
    if item.ident.is_some() || macros == "operators" {
        return None;
    }
    let names = item.mac.tokens.to_string().split_whitespace().map(str::to_owned).collect();
    Some((macros, names))
}

/// A file belongs to the submodule of its name, if there is one.
fn submodule(parts: &[String]) -> String {
    let own = parts.iter().find(|p| SUBMODULES.contains(&p.as_str()));
    own.cloned().unwrap_or_default()
}

fn joined(parts: &[String], name: &str) -> String {
    parts.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::")
}

fn class(attrs: &[Attribute], rust: &str, parts: &[String], module: &str) -> Class {
    let options = options(attrs, "pyclass");
    let name = value(&options, "name").unwrap_or_else(|| rust.to_owned());
    Class {
        name,
        path: joined(parts, rust),
        docs: docs(attrs),
        rust: rust.to_owned(),
        options,
        module: module.to_owned(),
        ..Class::default()
    }
}

fn methods(items: &[ImplItem]) -> Vec<Function> {
    let mut found = Vec::new();
    for item in items {
        let ImplItem::Fn(f) = item else { continue };
        let mut function = read(&f.sig, &f.attrs);
        for role in ["getter", "setter", "new", "staticmethod", "classmethod"] {
            if has(&f.attrs, role) {
                function.roles.push(role.to_owned());
            }
        }
        found.push(function);
    }
    found
}

fn operators(tokens: &str) -> Vec<Function> {
    let names =
        tokens.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|n| n.starts_with("__"));
    let method = |name: &str| Function {
        name: name.to_owned(),
        parameters: vec![("other".into(), "&Bound<PyAny>".into())],
        returns: "PyResult<PyArray>".into(),
        ..Function::default()
    };
    names.map(method).collect()
}

fn read(signature: &syn::Signature, attrs: &[Attribute]) -> Function {
    let parameters = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Receiver(_) => None,
        FnArg::Typed(typed) => {
            let name = match &*typed.pat {
                Pat::Ident(ident) => ident.ident.to_string(),
                other => tokens(other),
            };
            Some((name.trim_start_matches("r#").to_owned(), tokens(&typed.ty)))
        }
    });
    let own = options(attrs, "pyo3");
    let signature_text = own.iter().find_map(|o| o.strip_prefix("signature=").map(str::to_owned));
    Function {
        name: value(&own, "name")
            .unwrap_or_else(|| signature.ident.to_string().trim_start_matches("r#").to_owned()),
        docs: docs(attrs),
        parameters: parameters.collect(),
        returns: match &signature.output {
            ReturnType::Default => "()".into(),
            ReturnType::Type(_, ty) => tokens(ty),
        },
        signature: signature_text,
        ..Function::default()
    }
}

/// A type as one word, without lifetimes.
fn tokens(node: &impl ToTokens) -> String {
    let text = node.to_token_stream().to_string();
    let words = text.split_whitespace().filter(|w| !w.starts_with('\''));
    words.collect::<String>().replace("<,", "<").replace("<>", "")
}

fn has(attrs: &[Attribute], name: &str) -> bool {
    attrs.iter().any(|a| a.path().is_ident(name))
}

/// The arguments of an attribute, each without spaces.
fn options(attrs: &[Attribute], name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for attr in attrs.iter().filter(|a| a.path().is_ident(name)) {
        let Meta::List(list) = &attr.meta else { continue };
        let (mut depth, mut one) = (0, String::new());
        for c in list.tokens.to_string().chars() {
            match c {
                '(' | '[' | '<' => depth += 1,
                ')' | ']' | '>' => depth -= 1,
                ',' if depth == 0 => {
                    found.push(std::mem::take(&mut one));
                    continue;
                }
                _ => {}
            }
            if !c.is_whitespace() {
                one.push(c);
            }
        }
        found.push(one);
    }
    found
}

fn value(options: &[String], key: &str) -> Option<String> {
    let prefix = format!("{key}=");
    options.iter().find_map(|o| o.strip_prefix(&prefix)).map(|v| v.trim_matches('"').to_owned())
}

/// The lines of a documentation comment, without the example in Rust.
fn docs(attrs: &[Attribute]) -> Vec<String> {
    let mut lines = Vec::new();
    for attr in attrs {
        if let Meta::NameValue(pair) = &attr.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(lit) = &pair.value
            && let Lit::Str(text) = &lit.lit
        {
            lines.extend(text.value().lines().map(|l| l.strip_prefix(' ').unwrap_or(l).to_owned()));
            if text.value().is_empty() {
                lines.push(String::new());
            }
        }
    }
    if let Some(end) = lines.iter().position(|l| l.trim() == "# Example") {
        lines.truncate(end);
    }
    while lines.last().is_some_and(|l| l.is_empty()) {
        lines.pop();
    }
    lines.iter().map(|l| linkless(l)).collect()
}

/// A line whose links are plain names.
fn linkless(line: &str) -> String {
    let mut out = line.replace("[`crate::ops::", "[`").replace("[`crate::", "[`");
    out = out.replace("[`", "`").replace("`]", "`");
    if let Some(heading) = out.strip_prefix("# ") {
        return format!("{heading}:");
    }
    out
}
