//! One error type, by cause, whose text names the operation, the argument, the shapes and the dtypes.

use std::sync::Arc;

/// The result of anything in Cupola that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by cause.
///
/// It is cheap to clone, because the failure of one evaluation is the error of every later read of
/// what that evaluation should have made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Shapes that do not go together, or an axis that is not there.
    #[error("{op}: {detail}")]
    Shape {
        /// The operation that was asked for.
        op: &'static str,
        /// What does not fit, with the shapes.
        detail: String,
    },
    /// A dtype that the operation does not take.
    #[error("{op}: {detail}")]
    DType {
        /// The operation that was asked for.
        op: &'static str,
        /// What does not fit, with the dtypes.
        detail: String,
    },
    /// An argument outside its range.
    #[error("{op}: {detail}")]
    Argument {
        /// The operation that was asked for.
        op: &'static str,
        /// Which argument, its value and what is allowed.
        detail: String,
    },
    /// An array under `vmap` or `compile` was read.
    #[error("{0}")]
    Traced(String),
    /// A derivative that does not exist.
    #[error("{op}: {detail}")]
    NoDerivative {
        /// The operation that has none.
        op: &'static str,
        /// Why, and what to do instead.
        detail: String,
    },
    /// A device that is not there, or that cannot do what was asked.
    #[error("{0}")]
    Device(String),
    /// Something that the device has no kernel for, where falling back to the CPU is not allowed.
    #[error("{device} cannot run this: {reason}")]
    Unsupported {
        /// The device.
        device: String,
        /// What it cannot run, and why.
        reason: String,
    },
    /// The device has no memory left for the request; everything that was there is still usable.
    #[error("{device}: out of memory: {bytes} bytes asked for {what}")]
    OutOfMemory {
        /// The device.
        device: String,
        /// How much was asked for, in bytes.
        bytes: usize,
        /// What for.
        what: String,
    },
    /// A file or stream that could not be read or written.
    #[error("{path}: {detail}")]
    Io {
        /// The file.
        path: String,
        /// What failed, and where in the file.
        detail: String,
    },
    /// An earlier evaluation failed; this value was to come from it.
    #[error("the evaluation that should have made this array failed: {0}")]
    Failed(Arc<Error>),
    /// A user's own error, from a custom function, a data set or a callback.
    #[error("{0}")]
    User(String),
    /// An error of another language's, from a callback; whoever called can take it out again.
    #[error("{0}")]
    Foreign(Arc<dyn std::error::Error + Send + Sync>),
    /// An index outside an axis, or an axis that is not there.
    #[error("{op}: {detail}")]
    Index {
        /// The operation that was asked for.
        op: &'static str,
        /// The index or axis, and what is allowed.
        detail: String,
    },
    /// Values for which there is no result: a singular matrix, an iteration that does not converge.
    #[error("{op}: {detail}")]
    Numeric {
        /// The operation that was asked for.
        op: &'static str,
        /// Which values, and what is wrong with them.
        detail: String,
    },
    /// A node of a graph failed; see [`crate::graph::Builder::node`].
    #[error("node '{node}': {error}")]
    Node {
        /// The node's name.
        node: String,
        /// Why.
        error: Arc<Error>,
    },
    /// The evaluation was stopped from outside; see [`crate::interrupt`].
    #[error("the evaluation was interrupted")]
    Interrupted,
}

impl Error {
    /// Shapes that do not go together.
    pub fn shape(op: &'static str, detail: impl Into<String>) -> Self {
        Self::Shape { op, detail: detail.into() }
    }

    /// A dtype that the operation does not take.
    pub fn dtype(op: &'static str, detail: impl Into<String>) -> Self {
        Self::DType { op, detail: detail.into() }
    }

    /// An argument outside its range.
    pub fn argument(op: &'static str, detail: impl Into<String>) -> Self {
        Self::Argument { op, detail: detail.into() }
    }

    /// Values for which there is no result.
    pub fn numeric(op: &'static str, detail: impl Into<String>) -> Self {
        Self::Numeric { op, detail: detail.into() }
    }

    /// An index outside an axis, or an axis that is not there.
    pub fn index(op: &'static str, detail: impl Into<String>) -> Self {
        Self::Index { op, detail: detail.into() }
    }

    /// A file that could not be read or written.
    pub fn io(path: impl AsRef<std::path::Path>, detail: impl std::fmt::Display) -> Self {
        let path = path.as_ref().display().to_string();
        Self::Io { path: on_one_line(&path), detail: on_one_line(&detail.to_string()) }
    }
}

/// What a panic said.
pub fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("with no message")
}

/// `text` without what a terminal would obey, each such character as Rust writes it: names in files, and those of
/// files, may hold anything.
///
/// # Example
/// ```
/// assert_eq!(cupola_core::on_one_line("a\nb\u{202e}"), r"a\nb\u{202e}");
/// ```
pub fn on_one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_obeyed(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// Whether it moves what follows instead of being seen: control characters, ends of lines and of paragraphs, and
/// those that turn the direction of writing (Unicode Standard Annex 9).
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
