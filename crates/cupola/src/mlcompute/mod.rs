//! Graphs of layers in the form of ML Compute, over [`graph`](crate::graph).
//!
//! Tensors are places of a shape and a dtype, images are `[N, C, H, W]`. A [`Graph`] applies layers to tensors; an
//! [`InferenceGraph`] or a [`TrainingGraph`] of it is compiled for a device and executed with arrays by name.
//!
//! ```
//! use cupola::{Array, DType, Device, mlcompute as mlc};
//! use mlc::{Activation, Graph, InferenceGraph, Tensor};
//!
//! let x = Tensor::new(&["batch".into(), 2.into()], DType::F32);
//! let mut g = Graph::new();
//! let y = g.add_layer(&mlc::activation(Activation::Linear(2.0, 1.0)), &[&x])?;
//! let mut i = InferenceGraph::new(&[&g]);
//! i.add_inputs(&[("x", &x)])?;
//! i.compile(Device::CPU)?;
//! i.execute(&[("x", &Array::from_slice(&[1.0f32, 2.0], [1, 2])?)], |result, _time| {
//!     assert!(result.is_ok());
//! })?;
//! i.wait()?;
//! assert_eq!(y.data()?.to_vec::<f32>()?, [3.0, 5.0]);
//! # Ok::<(), cupola::Error>(())
//! ```

mod attention;
mod conv;
mod elementwise;
mod executed;
mod layer;
mod loss;
mod norm;
mod shape;
mod tensor;
mod training;
mod weights;

pub use attention::{Attention, multihead_attention};
pub use conv::{Border, ConvKind, Convolution, Pooling, convolution, pooling};
pub use elementwise::{
    Activation, Arithmetic, Comparison, activation, arithmetic, comparison, dropout, log_softmax,
    selection, softmax,
};
pub use executed::{Graph, InferenceGraph};
pub use layer::{Given, Held, Layer, Made};
pub use loss::{Loss, Reduction, Yolo, loss, yolo_loss};
pub use norm::{
    batch_normalization, group_normalization, instance_normalization, layer_normalization,
};
pub use shape::{
    Reduce, concatenation, gather, gram_matrix, padding, reduction, reshape, scatter, slice, split,
    split_at, transpose, upsample,
};
pub use tensor::{Kind, Tensor, device};
pub use training::TrainingGraph;
pub use weights::{Lstm, embedding, fully_connected, lstm, matmul};
