//! What a binding to another language needs beside the API: forms of functions that a closure of
//! Rust says better.

use crate::array::Array;
use crate::autocast::{self, Policy};
use crate::device::{Stream, replace_own};

pub use crate::autocast::Former;
pub use crate::prim::call::as_one::all_as_one;
pub use crate::transform::grad::value_and_grad_once;
pub use crate::transform::jacobian::{Mode, jacobian_once};
pub use crate::transform::vmap::vmap_traced;

/// The [update](crate::ops::update) of `former` by a result of a compiled function, which nobody else has, and whose
/// argument `former` was.
pub fn update_by_result(result: &Array, former: &Array) {
    result.note_former(former);
}

/// Makes `stream` this thread's default, or the common one for `None`; gives what was there.
/// [`crate::device::with_stream`] restores it by itself.
pub fn replace_thread_stream(stream: Option<Stream>) -> Option<Stream> {
    replace_own(stream)
}

/// Makes this thread record under `policy`, or as it is written for `None`; gives what was there,
/// for [`restore_thread_policy`]. [`crate::autocast::autocast`] restores it by itself.
pub fn replace_thread_policy(policy: Option<Policy>) -> Former {
    autocast::replace_own(policy)
}

/// Makes this thread record under what it did before [`replace_thread_policy`].
pub fn restore_thread_policy(former: Former) {
    autocast::restore_own(former);
}

/// Says that functions may be recorded in another way than they were, as with a module that has another policy now:
/// compiled ones are traced anew.
pub fn renew_traces() {
    autocast::renew();
}
