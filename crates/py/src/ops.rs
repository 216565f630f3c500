//! Operations whose arguments in Python cannot be derived from those in Rust.

pub mod conv;
pub mod create;
pub mod elementwise;
pub mod image;
pub mod mask;
pub mod product;
pub mod scan;
pub mod search;
pub mod shape;
pub mod special;
pub mod spread;
pub mod statistics;

use cupola::{Array, ops};
use pyo3::prelude::*;

use crate::dtype::Dtype;
use crate::error::raise;

fn cast(array: &Array, dtype: Option<Dtype>) -> PyResult<Array> {
    match dtype {
        Some(dtype) => ops::astype(array, dtype.0).map_err(raise),
        None => Ok(array.clone()),
    }
}
