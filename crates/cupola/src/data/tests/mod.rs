//! What the parts of this module promise together.

mod loading;
mod reading;
mod sets;
