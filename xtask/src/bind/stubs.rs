//! Writing the stubs.

use super::Bound;
use super::parse::Source;

pub fn write(_: &[Bound], _: &Source) -> Vec<(String, String)> {
    Vec::new()
}
