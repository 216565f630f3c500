//! What goes wrong with a model: the file, the node, and what of it.

use cupola_core::{Error as Core, on_one_line};

/// The result of reading or running a model.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong with a model.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A file that could not be read, or that is not what it says.
    #[error("{}", line(&[.file, .detail]))]
    File {
        /// The file.
        file: String,
        /// What was found there.
        detail: String,
    },
    /// A node that cannot be computed.
    #[error("{}", line(&[.file, .node, &.fault.to_string()]))]
    Node {
        /// The file.
        file: String,
        /// The node's name and operator.
        node: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// An input that the model does not take.
    #[error("{}", line(&[.file, &format!("input '{name}'"), .detail]))]
    Input {
        /// The file.
        file: String,
        /// The input's name.
        name: String,
        /// What does not fit.
        detail: String,
    },
}

/// What is wrong with one node.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    /// An attribute or input that the operator does not take.
    #[error("{0}")]
    Invalid(String),
    /// An operator, or a form of one, that is not read.
    #[error("{0}")]
    Unsupported(String),
    /// An operation of Cupola failed.
    #[error(transparent)]
    Core(#[from] Core),
    /// A node of a graph or function inside of the node.
    #[error("{node}: {fault}")]
    Within {
        /// The inner node.
        node: String,
        /// What is wrong with it.
        fault: Box<Fault>,
    },
}

/// Parts as one line.
fn line(parts: &[&str]) -> String {
    on_one_line(&parts.join(": "))
}

impl Error {
    /// A file that is not what it should be.
    pub(crate) fn file(file: impl Into<String>, detail: impl Into<String>) -> Self {
        Error::File { file: file.into(), detail: detail.into() }
    }

    /// Whether the model asks for something that is not there, rather than being wrong.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Error::Node { fault, .. } if matches!(fault.root(), Fault::Unsupported(_)))
    }
}

impl Fault {
    /// Something that the format does not allow.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Fault::Invalid(detail.into())
    }

    /// The fault of a node inside.
    pub(crate) fn within(self, node: String) -> Self {
        Fault::Within { node, fault: Box::new(self) }
    }

    /// What went wrong in the innermost node.
    pub fn root(&self) -> &Fault {
        let mut fault = self;
        while let Fault::Within { fault: inner, .. } = fault {
            fault = inner;
        }
        fault
    }

    /// Something that the format allows and that is not read.
    pub(crate) fn unsupported(detail: impl Into<String>) -> Self {
        Fault::Unsupported(detail.into())
    }
}

impl From<Error> for Core {
    fn from(error: Error) -> Core {
        if let Error::Node { fault, .. } = &error
            && let Fault::Core(inner @ (Core::Interrupted | Core::Foreign(_) | Core::Traced(_))) =
                fault.root()
        {
            return inner.clone();
        }
        match error {
            Error::File { file, detail } => Core::Io { path: file, detail: line(&[&detail]) },
            other => Core::User(other.to_string()),
        }
    }
}
