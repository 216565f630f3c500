//! How much a model may ask for.

/// So many nodes run at most, those of loops counted each time.
pub const MOST_STEPS: u64 = 1 << 22;

/// So many bytes a file of protobuf may have: the format's own limit.
pub const MOST_BYTES: u64 = 1 << 31;

/// So deep graphs and functions may lie in each other.
pub const MOST_DEPTH: usize = 48;

/// So many elements a list or a sequence may get at once.
pub const MOST_ITEMS: usize = 1 << 20;

/// So many elements a result may have.
pub const MOST_ELEMENTS: usize = 1 << 36;
