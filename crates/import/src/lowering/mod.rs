//! What the operators of several formats are made of.

use cupola_core::Array;

use crate::error::Fault;

pub mod arithmetic;
pub mod boxes;
pub mod conv;
pub mod index;
pub mod movement;
pub mod norm;
pub mod order;
pub mod range;
pub mod sample;
pub mod windows;

/// An array, or what is wrong.
pub type Made = Result<Array, Fault>;
