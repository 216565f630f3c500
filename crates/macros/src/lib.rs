//! `#[derive(Module)]`.
