//! The programs that the steps need beside cargo, installed when they are missing.
//!
//! They go where `cargo install` puts them, or into the folder that `CUPOLA_CI_CACHE` names, so
//! that a machine that throws its clone away still builds them once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A cargo subcommand that does not come with cargo.
#[derive(Clone, Copy)]
pub struct Tool {
    /// The crate, and the program in it.
    package: &'static str,
    /// What cargo calls it.
    subcommand: &'static str,
    /// The version that is installed where there is none; any that is there already serves.
    version: &'static str,
}

pub const NEXTEST: Tool =
    Tool { package: "cargo-nextest", subcommand: "nextest", version: "0.9.151" };
pub const FUZZ: Tool = Tool { package: "cargo-fuzz", subcommand: "fuzz", version: "0.13.2" };
pub const DENY: Tool = Tool { package: "cargo-deny", subcommand: "deny", version: "0.20.2" };

/// The cargo that runs this, so that every step uses the same one.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Makes sure that `tool` is there; gives the search path that finds it, if it is not the usual.
pub fn ensure(tool: Tool) -> Result<Option<OsString>, String> {
    let cache = std::env::var_os("CUPOLA_CI_CACHE").map(PathBuf::from);
    let path = match &cache {
        Some(folder) => Some(path_with(folder.join("bin"))?),
        None => None,
    };
    if is_there(tool, path.as_ref()) {
        return Ok(path);
    }
    println!("    installing {} {}", tool.package, tool.version);
    let mut command = Command::new(cargo());
    command.args(["install", "--locked", tool.package, "--version", tool.version]);
    if let Some(folder) = &cache {
        command.arg("--root").arg(folder);
    }
    let status = command.status().map_err(|cause| format!("cargo does not start: {cause}"))?;
    if !status.success() {
        return Err(format!("{} could not be installed: {status}", tool.package));
    }
    match is_there(tool, path.as_ref()) {
        true => Ok(path),
        false => Err(format!("{} is installed and not found on the path", tool.package)),
    }
}

fn is_there(tool: Tool, path: Option<&OsString>) -> bool {
    let mut command = Command::new(cargo());
    command.args([tool.subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.status().is_ok_and(|status| status.success())
}

/// The search path with `folder` behind what is there.
fn path_with(folder: PathBuf) -> Result<OsString, String> {
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&usual).chain([folder]);
    std::env::join_paths(all).map_err(|cause| format!("CUPOLA_CI_CACHE: {cause}"))
}
