"""The layers, one module for each kind."""

from cupola.nn.layers.activations import (
    CELU as CELU,
    ELU as ELU,
    GELU as GELU,
    GLU as GLU,
    HardShrink as HardShrink,
    HardSigmoid as HardSigmoid,
    Hardswish as Hardswish,
    HardTanh as HardTanh,
    LeakyReLU as LeakyReLU,
    LogSigmoid as LogSigmoid,
    LogSoftmax as LogSoftmax,
    Mish as Mish,
    PReLU as PReLU,
    ReLU as ReLU,
    ReLU2 as ReLU2,
    ReLU6 as ReLU6,
    SELU as SELU,
    Sigmoid as Sigmoid,
    SiLU as SiLU,
    Softmax as Softmax,
    Softmin as Softmin,
    Softplus as Softplus,
    Softshrink as Softshrink,
    Softsign as Softsign,
    Step as Step,
    Tanh as Tanh,
    celu as celu,
    elu as elu,
    gelu as gelu,
    gelu_approx as gelu_approx,
    gelu_fast_approx as gelu_fast_approx,
    glu as glu,
    hard_shrink as hard_shrink,
    hard_sigmoid as hard_sigmoid,
    hard_tanh as hard_tanh,
    hardswish as hardswish,
    leaky_relu as leaky_relu,
    log_sigmoid as log_sigmoid,
    log_softmax as log_softmax,
    mish as mish,
    prelu as prelu,
    relu as relu,
    relu2 as relu2,
    relu6 as relu6,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    softmax as softmax,
    softmin as softmin,
    softplus as softplus,
    softshrink as softshrink,
    softsign as softsign,
    step as step,
    tanh as tanh,
)
from cupola.nn.layers.base import Module as Module
from cupola.nn.layers.containers import Sequential as Sequential
from cupola.nn.layers.convolution import (
    Conv1d as Conv1d,
    Conv2d as Conv2d,
    Conv3d as Conv3d,
)
from cupola.nn.layers.convolution_transpose import (
    ConvTranspose1d as ConvTranspose1d,
    ConvTranspose2d as ConvTranspose2d,
    ConvTranspose3d as ConvTranspose3d,
)
from cupola.nn.layers.distributed import (
    AllToShardedLinear as AllToShardedLinear,
    FullyShardedModule as FullyShardedModule,
    QuantizedAllToShardedLinear as QuantizedAllToShardedLinear,
    QuantizedShardedToAllLinear as QuantizedShardedToAllLinear,
    ShardedToAllLinear as ShardedToAllLinear,
    fully_shard as fully_shard,
)
from cupola.nn.layers.dropout import (
    Dropout as Dropout,
    Dropout2d as Dropout2d,
    Dropout3d as Dropout3d,
)
from cupola.nn.layers.embedding import Embedding as Embedding
from cupola.nn.layers.linear import (
    Bilinear as Bilinear,
    Identity as Identity,
    Linear as Linear,
)
from cupola.nn.layers.normalization import (
    BatchNorm as BatchNorm,
    GroupNorm as GroupNorm,
    InstanceNorm as InstanceNorm,
    LayerNorm as LayerNorm,
    RMSNorm as RMSNorm,
)
from cupola.nn.layers.pooling import (
    AvgPool1d as AvgPool1d,
    AvgPool2d as AvgPool2d,
    AvgPool3d as AvgPool3d,
    MaxPool1d as MaxPool1d,
    MaxPool2d as MaxPool2d,
    MaxPool3d as MaxPool3d,
)
from cupola.nn.layers.positional_encoding import (
    ALiBi as ALiBi,
    RoPE as RoPE,
    SinusoidalPositionalEncoding as SinusoidalPositionalEncoding,
)
from cupola.nn.layers.quantized import (
    QQLinear as QQLinear,
    QuantizedEmbedding as QuantizedEmbedding,
    QuantizedLinear as QuantizedLinear,
    quantize as quantize,
)
from cupola.nn.layers.recurrent import (
    GRU as GRU,
    LSTM as LSTM,
    RNN as RNN,
)
from cupola.nn.layers.transformer import (
    MultiHeadAttention as MultiHeadAttention,
    Transformer as Transformer,
    TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer,
    TransformerEncoder as TransformerEncoder,
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from cupola.nn.layers.upsample import Upsample as Upsample
