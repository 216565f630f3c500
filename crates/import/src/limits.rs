//! How much a model may ask for.

/// So many nodes run at most, those of loops counted each time.
pub const MOST_STEPS: u64 = 1 << 22;

/// So deep graphs and functions may lie in each other.
pub const MOST_DEPTH: usize = 48;

/// So many elements a result may have.
pub const MOST_ELEMENTS: usize = 1 << 36;
