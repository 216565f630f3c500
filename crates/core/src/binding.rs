//! What a binding to another language needs beside the API: forms of functions that a closure of
//! Rust says better.

use crate::device::{Stream, replace_own};

pub use crate::transform::grad::value_and_grad_once;
pub use crate::transform::jacobian::{Mode, jacobian_once};
pub use crate::transform::vmap::vmap_traced;

/// Makes `stream` this thread's default, or the common one for `None`; gives what was there.
/// [`crate::device::with_stream`] restores it by itself.
pub fn replace_thread_stream(stream: Option<Stream>) -> Option<Stream> {
    replace_own(stream)
}
