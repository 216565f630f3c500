//! Where results go: lines for people, JSON for programs, bars while it takes time.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use cupola::io::{Replacement, check_file, write_whole};
use cupola::on_one_line;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::failure::{Failure, Outcome};

/// What people and programs get to see.
pub struct Output {
    json: Option<PathBuf>,
    /// The option that names it.
    option: &'static str,
    /// Whether the standard output is for what programs read.
    is_taken: bool,
}

impl Output {
    /// An output that can write JSON to `json`: whether it can is seen before any work is done.
    pub fn new(json: Option<&Path>) -> Outcome<Self> {
        Self::of("--json", json)
    }

    /// The same for an option of another name.
    pub fn of(option: &'static str, json: Option<&Path>) -> Outcome<Self> {
        if let Some(path) = json.filter(|path| !is_stdout(path)) {
            replaceable(option, path)?;
        }
        let is_taken = json.is_some_and(is_stdout);
        Ok(Self { json: json.map(Path::to_owned), option, is_taken })
    }

    /// Leaves the standard output to `file`, which `argument` names, where that is it.
    pub fn leaves(&mut self, argument: &str, file: &Path) -> Outcome {
        if is_stdout_file(file) && self.is_taken {
            let detail = format!("{argument}: the standard output is that of {}", self.option);
            return Err(Failure::usage(detail));
        }
        self.is_taken |= is_stdout_file(file);
        Ok(())
    }

    /// Sees to it that the JSON does not take the place of a file that the program itself reads or
    /// writes, called `what`.
    pub fn spares<I>(&self, what: &str, files: impl FnOnce() -> I) -> Outcome
    where
        I: IntoIterator<Item = PathBuf>,
    {
        let Some(path) = self.json.as_deref().filter(|path| !is_stdout(path)) else {
            return Ok(());
        };
        spared(self.option, path, what, files())
    }

    /// A line for people, or several: on the standard output, unless JSON goes there. Names of files, models and
    /// classes may hold anything; what a terminal would obey is shown.
    pub fn line(&self, text: impl Display) {
        let text = text.to_string().split('\n').map(on_one_line).collect::<Vec<_>>().join("\n");
        match self.is_taken {
            // There is nowhere to say that this failed.
            true => drop(writeln!(std::io::stderr(), "{text}")),
            false => {
                if let Err(cause) = writeln!(std::io::stdout(), "{text}") {
                    // Whoever reads may have gone; the work goes on.
                    if cause.kind() != ErrorKind::BrokenPipe {
                        LOST.get_or_init(|| cause.to_string());
                    }
                }
            }
        }
    }

    /// The same as JSON, where it was asked for.
    pub fn json(&self, value: &impl Serialize) -> Outcome {
        let Some(path) = &self.json else { return Ok(()) };
        let text = serde_json::to_string_pretty(value)
            .map_err(|cause| Failure::new(format!("{}: {cause}", self.option)))?;
        if is_stdout(path) {
            return writeln!(std::io::stdout(), "{text}").map_err(|cause| {
                Failure::new(format!("{}: standard output: {cause}", self.option))
            });
        }
        Ok(write_whole(path, format!("{text}\n"))?)
    }
}

/// An error where `path`, which `argument` names as a file to be written, is one of `files`: those are `what`.
pub fn spared(
    argument: &str,
    path: &Path,
    what: &str,
    files: impl IntoIterator<Item = PathBuf>,
) -> Outcome {
    let own = place(path);
    match files.into_iter().any(|file| is_one_place(&place(&file), &own)) {
        true => Err(Failure::usage(format!("{argument}: {}: is {what}", path.display()))),
        false => Ok(()),
    }
}

/// An error where `path`, which `argument` names as a file to be written, is `whole` or would lie in it: that is `what`.
pub fn outside(argument: &str, path: &Path, what: &str, whole: &Path) -> Outcome {
    let (own, whole) = (place(path), place(whole));
    match !is_stdout(path) && own.ancestors().any(|above| is_one_place(above, &whole)) {
        true => Err(Failure::usage(format!("{argument}: {}: is {what}", path.display()))),
        false => Ok(()),
    }
}

/// Where a file is, or would be, without links.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => {
            let is_here = folder.as_os_str().is_empty();
            place(if is_here { Path::new(".") } else { folder }).join(name)
        }
        _ => path.to_owned(),
    })
}

/// Whether two places are one: a folder may have several names, as where it is mounted.
fn is_one_place(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    if let (Some(a), Some(b)) = (one.parent(), other.parent())
        && one.file_name() == other.file_name()
        && let (Ok(a), Ok(b)) = (a.metadata(), b.metadata())
    {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    one == other
}

/// Why lines did not reach the standard output, where some did not.
static LOST: OnceLock<String> = OnceLock::new();

/// An error where the standard output did not take all that was said.
pub fn check_stdout() -> Outcome {
    match LOST.get() {
        Some(cause) => Err(unwritten(cause)),
        None => printed(Ok(())),
    }
}

/// An error where `done`, the last that the standard output was to take, did not reach it.
pub fn printed(done: std::io::Result<()>) -> Outcome {
    match done.and_then(|()| std::io::stdout().flush()) {
        // Whoever read has gone.
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => Err(unwritten(cause)),
        _ => Ok(()),
    }
}

fn unwritten(cause: impl Display) -> Failure {
    Failure::new(format!("standard output: cannot be written: {cause}"))
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-") || is_stdout_file(path)
}

fn is_stdout_file(path: &Path) -> bool {
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Looks whether the file at `path` can be written, or one be made there.
pub fn replaceable(argument: &str, path: &Path) -> Outcome {
    check_file(path, "the output").map_err(|error| Failure::new(format!("{argument}: {error}")))
}

/// Makes `folder`, and looks whether files can be made in it.
pub fn writable_folder(argument: &str, folder: &Path) -> Outcome {
    let failed = |cause: String| Failure::new(format!("{argument}: {}: {cause}", folder.display()));
    std::fs::create_dir_all(folder)
        .map_err(|cause| failed(format!("cannot be written: {cause}")))?;
    // Any name that nothing has.
    let file = Replacement::new(folder.join(format!(".cupola-{}", std::process::id())));
    file.map(drop).map_err(|error| failed(error.to_string()))
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
