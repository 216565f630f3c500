//! What users call: broadcasting, promotion, composites.
//!
//! Functions have NumPy's and MLX's names. They return an error, when they are called, that names
//! the operation, the shapes and the dtypes; only the operators `+ - * /` and friends panic, with the
//! same text. Plain numbers take the dtype of the arrays they meet ([`Operand`]), and negative axes
//! count from the end.
//!
//! # Example
//! ```
//! use cupola::{Array, ops};
//! let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
//! let y = (1.0 - &x) * 2 + ops::sum(&x, 0, true)?;
//! assert_eq!(y.to_vec::<f32>()?, [4.0, 4.0, 0.0, 0.0]);
//! # Ok::<(), cupola::Error>(())
//! ```

mod activation;
mod arg_reduce;
mod attention;
mod binary;
mod blend;
mod block;
mod cast;
mod compare;
mod complex;
mod conv;
mod create;
mod curve;
mod data_format;
mod dot;
mod einsum;
mod fft;
mod floating;
mod fp8;
mod gather;
mod hadamard;
mod image;
mod index;
pub mod linalg;
mod mask;
mod methods;
mod microscaling;
mod movement;
mod norm;
mod operand;
mod operators;
mod pool;
mod quantize;
pub mod random;
mod reduce;
mod scan;
mod search;
mod segment;
mod select;
mod signal;
mod softmax;
mod sort;
mod special;
mod statistics;
mod stft;
mod unary;
mod unfold;
mod window;

pub use crate::prim::ScatterMode;
pub use activation::*;
pub use arg_reduce::*;
pub use attention::*;
pub use binary::*;
pub use blend::*;
pub use block::*;
pub use cast::*;
pub use compare::*;
pub use conv::*;
pub use create::*;
pub use curve::*;
pub use data_format::*;
pub use dot::*;
pub use einsum::*;
pub use fft::*;
pub use floating::*;
pub use fp8::*;
pub use gather::*;
pub use hadamard::*;
pub use image::*;
pub use index::*;
pub use mask::*;
pub use microscaling::*;
pub use movement::*;
pub use norm::*;
pub use operand::{AsOperand, Axes, Operand, Sizes};
pub use pool::*;
pub use quantize::*;
pub use reduce::*;
pub use scan::*;
pub use search::*;
pub use segment::*;
pub use select::*;
pub use signal::*;
pub use softmax::*;
pub use sort::*;
pub use special::*;
pub use statistics::*;
pub use stft::*;
pub use unary::*;
pub use unfold::*;
pub use window::*;

#[cfg(test)]
mod tests;
