//! What can go wrong between a file and a batch, by cause.

use std::path::{Path, PathBuf};

/// The result of reading, loading or downloading data.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong with a data set, its file or its download.
///
/// It converts into [`cupola_core::Error`] and from it, so `?` works in both directions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system could not open, read or write a file.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A file that is not what its format says.
    #[error("{}: byte {offset}: {detail}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Where in the file, after decompression if it is compressed.
        offset: u64,
        /// What was expected there and what is there.
        detail: String,
    },
    /// A file that is well formed and does not fit the others, or the data set.
    #[error("{}: {detail}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        detail: String,
    },
    /// A folder that lacks a file of the data set.
    #[error(
        "{}: no {} (.gz or not) there, nor in its {}; {advice}",
        folder.display(), names.join(" or "), parts.join(", ")
    )]
    Missing {
        /// The folder that was searched.
        folder: PathBuf,
        /// The names that would have served.
        names: Vec<String>,
        /// The sub folders that were searched too.
        parts: Vec<String>,
        /// How to get the file.
        advice: String,
    },
    /// An argument outside its range.
    #[error("{op}: {detail}")]
    Argument {
        /// What was asked for.
        op: &'static str,
        /// Which argument, its value and what is allowed.
        detail: String,
    },
    /// One sample could not be made.
    #[error("sample {index}: {cause}")]
    Sample {
        /// The index in the data set that was asked.
        index: usize,
        /// Why.
        cause: Box<Error>,
    },
    /// A batch could not be made, and it is not known which of its samples is to blame.
    #[error("batch of samples {indices:?}: {cause}")]
    Batch {
        /// The indices in the data set that was asked.
        indices: Vec<usize>,
        /// Why.
        cause: Box<Error>,
    },
    /// A data set, a mapped function or a collate function panicked.
    #[error("panicked: {0}")]
    Panic(String),
    /// No mirror gave the file.
    #[error("{file}: download failed: {detail}")]
    Download {
        /// The published file.
        file: String,
        /// What each mirror answered.
        detail: String,
    },
    /// The caller's flag stopped a download; what came so far is kept for the next try.
    #[error("{file}: download stopped")]
    Stopped {
        /// The file under way.
        file: String,
    },
    /// An error of the array library.
    #[error(transparent)]
    Array(#[from] cupola_core::Error),
    /// A user's own error, from a data set, a mapped function or a collate function.
    #[error("{0}")]
    User(String),
}

impl Error {
    /// A user's own error.
    pub fn user(detail: impl std::fmt::Display) -> Self {
        Self::User(detail.to_string())
    }

    pub(crate) fn argument(op: &'static str, detail: impl Into<String>) -> Self {
        Self::Argument { op, detail: detail.into() }
    }

    pub(crate) fn io(path: &Path, cause: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), cause }
    }

    pub(crate) fn content(path: &Path, detail: impl Into<String>) -> Self {
        Self::Content { path: path.to_owned(), detail: detail.into() }
    }

    pub(crate) fn sample(index: usize, cause: Error) -> Self {
        Self::Sample { index, cause: Box::new(cause) }
    }

    pub(crate) fn panic(payload: Box<dyn std::any::Any + Send>) -> Self {
        Self::Panic(cupola_core::panic_text(&*payload).to_owned())
    }
}

impl From<Error> for cupola_core::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Array(error) => error,
            Error::Io { path, cause } => Self::io(path, cause),
            Error::Format { path, offset, detail } => {
                Self::io(path, format!("byte {offset}: {detail}"))
            }
            Error::Content { path, detail } => Self::io(path, detail),
            Error::Argument { op, detail } => Self::argument(op, detail),
            other => Self::User(other.to_string()),
        }
    }
}
