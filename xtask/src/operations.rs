//! `cargo xtask operations`: the table of operations by dtype and device, from what `cupola devices --ops --json`
//! wrote on the machines that have them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

/// Where the table goes.
const PAGE: &str = "docs/operations.md";

/// A short name for each dtype.
const DTYPES: [(&str, &str); 15] = [
    ("bool", "b"),
    ("uint8", "u8"),
    ("uint16", "u16"),
    ("uint32", "u32"),
    ("uint64", "u64"),
    ("int8", "i8"),
    ("int16", "i16"),
    ("int32", "i32"),
    ("int64", "i64"),
    ("float16", "f16"),
    ("bfloat16", "bf16"),
    ("float32", "f32"),
    ("float64", "f64"),
    ("complex32", "c32"),
    ("complex64", "c64"),
];

/// What one device does with an operation, by dtype.
#[derive(Default)]
struct Support {
    native: Vec<String>,
    fallback: Vec<String>,
}

/// Writes the table of these files.
pub fn run(root: &Path, files: &[String]) -> ExitCode {
    match table(files) {
        Ok(text) => match std::fs::write(root.join(PAGE), text) {
            Ok(()) => {
                println!("wrote {PAGE}");
                ExitCode::SUCCESS
            }
            Err(cause) => failed(&format!("{PAGE}: {cause}")),
        },
        Err(detail) => failed(&detail),
    }
}

fn failed(detail: &str) -> ExitCode {
    eprintln!("error: {detail}");
    ExitCode::FAILURE
}

fn table(files: &[String]) -> Result<String, String> {
    if files.is_empty() {
        return Err(
            "operations: name the files that `cupola devices --ops --json FILE` wrote".into()
        );
    }
    let mut devices: Vec<String> = Vec::new();
    let mut families: Vec<(String, Vec<String>)> = Vec::new();
    let mut known: BTreeMap<(String, String, String), Support> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|cause| format!("{file}: {cause}"))?;
        let all: Value = serde_json::from_str(&text).map_err(|cause| format!("{file}: {cause}"))?;
        for device in list(&all, file)? {
            let name = text_of(&device["device"], file)?;
            if !devices.contains(&name) {
                devices.push(name.clone());
            }
            for operation in list(&device["operations"], file)? {
                let family = text_of(&operation["family"], file)?;
                let own = text_of(&operation["name"], file)?;
                note(&mut families, &family, &own);
                let native = list(&operation["native"], file)?;
                let fallback = operation["fallback"].as_object();
                known.insert(
                    (family, own, name.clone()),
                    Support {
                        native: native.iter().filter_map(|v| v.as_str().map(Into::into)).collect(),
                        fallback: fallback.map(|f| f.keys().cloned().collect()).unwrap_or_default(),
                    },
                );
            }
        }
    }
    Ok(page(&devices, &families, &known))
}

fn list<'v>(value: &'v Value, file: &str) -> Result<&'v Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("{file}: is not what `cupola devices --ops` writes"))
}

fn text_of(value: &Value, file: &str) -> Result<String, String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| format!("{file}: is not what `cupola devices --ops` writes"))
}

fn note(families: &mut Vec<(String, Vec<String>)>, family: &str, operation: &str) {
    let at = families.iter().position(|(name, _)| name == family).unwrap_or_else(|| {
        families.push((family.to_owned(), Vec::new()));
        families.len() - 1
    });
    let own = &mut families[at].1;
    if !own.iter().any(|name| name == operation) {
        own.push(operation.to_owned());
    }
}

fn page(
    devices: &[String],
    families: &[(String, Vec<String>)],
    known: &BTreeMap<(String, String, String), Support>,
) -> String {
    let mut out = String::from(
        "# Operations by dtype and device\n\n\
         Made by `cargo xtask operations` from `cupola devices --ops --json`: do not edit. A cell names the dtypes \
         that run\non the device's own kernels, and after *cpu* those that the CPU takes over, at least in part, \
         which is announced\n([docs/devices.md](devices.md)). *all* are the dtypes that the operation takes on \
         the CPU.\n\n",
    );
    let short: Vec<String> =
        DTYPES.iter().map(|(name, short)| format!("`{short}` {name}")).collect();
    out += &format!("{}.\n", short.join(", "));
    for (family, operations) in families {
        out += &format!("\n## {family}\n\n| operation | {} |\n", devices.join(" | "));
        out += &format!("|---|{}\n", "---|".repeat(devices.len()));
        for operation in operations {
            let of =
                |device: &String| known.get(&(family.clone(), operation.clone(), device.clone()));
            let whole = devices.first().and_then(of).map(|first| first.native.len());
            let cells = devices.iter().enumerate().map(|(at, device)| match of(device) {
                None => String::new(),
                Some(support) => cell(support, whole.filter(|_| at > 0)),
            });
            out += &format!("| `{operation}` | {} |\n", cells.collect::<Vec<_>>().join(" | "));
        }
    }
    out
}

fn cell(support: &Support, whole: Option<usize>) -> String {
    let names = |dtypes: &[String]| {
        let of = |dtype: &String| {
            let found = DTYPES.iter().find(|(name, _)| name == dtype);
            found.map_or(dtype.as_str(), |(_, short)| short).to_owned()
        };
        dtypes.iter().map(of).collect::<Vec<_>>().join(" ")
    };
    let native = match whole == Some(support.native.len()) && support.fallback.is_empty() {
        true => "all".to_owned(),
        false => names(&support.native),
    };
    match support.fallback.is_empty() {
        true => native,
        false => format!("{native} *cpu* {}", names(&support.fallback)).trim().to_owned(),
    }
}
