//! Where results go: lines for people, JSON for programs, bars while it takes time.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cupola::train::write_whole;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::failure::{Failure, Outcome};

/// What people and programs get to see.
pub struct Output {
    json: Option<PathBuf>,
}

impl Output {
    /// An output that can write JSON to `json`: whether it can is seen before any work is done.
    pub fn new(json: Option<&Path>) -> Outcome<Self> {
        if let Some(path) = json.filter(|path| !is_stdout(path)) {
            if path.is_dir() {
                return Err(Failure::new(format!("--json: {}: is a folder", path.display())));
            }
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            probe(folder).map_err(|cause| {
                Failure::new(format!("--json: {}: cannot be written: {cause}", path.display()))
            })?;
        }
        Ok(Self { json: json.map(Path::to_owned) })
    }

    /// A line for people: on the standard output, unless JSON goes there.
    pub fn line(&self, text: impl Display) {
        // Whoever reads may have gone; the work goes on.
        let _ = match self.json.as_deref().is_some_and(is_stdout) {
            true => writeln!(std::io::stderr(), "{text}"),
            false => writeln!(std::io::stdout(), "{text}"),
        };
    }

    /// The same as JSON, where it was asked for.
    pub fn json(&self, value: &impl Serialize) -> Outcome {
        let Some(path) = &self.json else { return Ok(()) };
        let text = serde_json::to_string_pretty(value)
            .map_err(|cause| Failure::new(format!("--json: {cause}")))?;
        if is_stdout(path) {
            return writeln!(std::io::stdout(), "{text}")
                .map_err(|cause| Failure::new(format!("--json: standard output: {cause}")));
        }
        Ok(write_whole(path, &format!("{text}\n"))?)
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Looks whether files can be made in `folder`, by making one.
pub fn probe(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".cupola-probe-{}", std::process::id()));
    std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)
}

/// Makes `folder`, and looks whether files can be made in it.
pub fn writable_folder(argument: &str, folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).and_then(|()| probe(folder)).map_err(|cause| {
        Failure::new(format!("{argument}: {}: cannot be written: {cause}", folder.display()))
    })
}

/// A bar on a terminal, nothing elsewhere: there lines say enough.
pub fn bar(length: u64, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Says that `what` goes on, where it takes long and there is no bar with a length.
pub fn spinner(what: &str) -> ProgressBar {
    let bar = bar(0, "{spinner} {msg} {elapsed}");
    bar.set_message(what.to_owned());
    bar
}
