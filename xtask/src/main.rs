//! Tasks that CI runs.
fn main() {}
