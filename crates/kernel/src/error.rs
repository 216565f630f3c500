//! Where something is in a source, and what is wrong there.

use std::fmt;

/// A place in a source; lines and columns count from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pos {
    /// Whether it is in the header, not in the body.
    pub in_header: bool,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// What is wrong with a kernel, or went wrong while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The text is not of the language.
    Source {
        /// Where.
        at: Pos,
        /// What is wrong.
        message: String,
        /// The line of the text.
        line: String,
    },
    /// A thread read or wrote outside of an array.
    Index {
        /// Where.
        at: Pos,
        /// Which thread, which array, and how long that is.
        message: String,
    },
    /// A thread did something else that it may not.
    Run {
        /// Where.
        at: Pos,
        /// What.
        message: String,
    },
    /// The host asked to stop.
    Stopped,
}

impl Error {
    /// The error at `at` of a source with these texts.
    pub(crate) fn source(at: Pos, message: impl Into<String>, header: &str, body: &str) -> Error {
        let text = if at.in_header { header } else { body };
        let line = text.lines().nth(at.line.saturating_sub(1) as usize).unwrap_or_default();
        Error::Source { at, message: message.into(), line: line.to_owned() }
    }
}

impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.in_header { "header, " } else { "" };
        write!(f, "{of}line {}, column {}", self.line, self.column)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Source { at, message, line } => {
                write!(f, "{at}: {message}")?;
                if !line.trim().is_empty() {
                    // Tabs stay tabs, so that the mark stands below what it is about.
                    let before = line.chars().take(at.column.saturating_sub(1) as usize);
                    let before: String =
                        before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
                    write!(f, "\n    {line}\n    {before}^")?;
                }
                Ok(())
            }
            Error::Index { at, message } | Error::Run { at, message } => {
                write!(f, "{at}: {message}")
            }
            Error::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Error {}
