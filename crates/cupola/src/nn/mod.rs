//! Modules, layers, losses and what trains them.
//!
//! A [`Module`] is a struct of layers with `#[derive(Module)]`; a [`Layer`] is a module with a
//! `forward` of one array. Parameters are shared cells ([`Param`]), so a module changes through a
//! shared reference, and clones of a parameter are tied. Shapes are MLX's: channels last, weights of
//! convolutions `[out, kernel.., in/groups]`, weights of linear layers `[out, in]`.

mod activation;
mod attention;
mod cell;
mod conv;
mod dropout;
mod embedding;
mod grad;
mod group_norm;
pub mod init;
mod linear;
mod loss;
mod module;
mod norm;
mod parts;
mod pool;
mod positional;
mod recurrent;
mod sequential;
mod transformer;
mod upsample;

pub use activation::*;
pub use attention::MultiHeadAttention;
pub use cell::{Buffer, Mode, Param};
pub use conv::{Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use cupola_macros::Module;
pub use dropout::{Dropout, Dropout2d, Dropout3d};
pub use embedding::Embedding;
pub use grad::{Gradients, value_and_grad};
pub use group_norm::{GroupNorm, InstanceNorm};
pub use linear::{Bilinear, Identity, Linear};
pub use loss::*;
pub(crate) use module::each_param;
pub use module::{Layer, Module, eval_all};
pub use norm::{BatchNorm, LayerNorm, RmsNorm};
pub use parts::{Part, Parts, visit_leaves, visit_leaves_mut, visit_settings};
pub use pool::{AvgPool1d, AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, MaxPool3d};
pub use positional::{Alibi, Rope, SinusoidalPositionalEncoding};
pub(crate) use recurrent::states;
pub use recurrent::{Gru, GruCell, Lstm, LstmCell, Rnn, RnnCell};
pub use sequential::Sequential;
pub use transformer::{
    Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer, TransformerMasks, TransformerOptions,
};
pub use upsample::{Scales, Upsample, UpsampleMode};
