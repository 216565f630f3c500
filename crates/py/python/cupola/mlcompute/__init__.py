"""Graphs of layers in the form of ML Compute, over `cupola.graph`.

Tensors are places of a shape and a data type, images are ``[N, C, H, W]``. A graph applies layers to tensors; an
inference graph or a training graph of it is compiled for a device and executed with data by name.

Example:
    >>> x = tensor([6, 1], "Float32")
    >>> g = graph()
    >>> y = g.add_layer(activation_layer("linear", 2.0, 1.0), [x])
    >>> i = inference_graph([g])
    >>> i.add_inputs({"x": x})
    >>> i.compile(device("cpu"))
    True
    >>> i.execute({"x": tensor_data([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])})
    True
    >>> i.wait()
    >>> y.data.flatten().tolist()
    [3.0, 5.0, 7.0, 9.0, 11.0, 13.0]
"""

from collections.abc import Sequence

from ._elementwise import (
    activation_layer,
    arithmetic_layer,
    comparison_layer,
    dropout_layer,
    selection_layer,
    softmax_layer,
)
from ._graph import Graph, InferenceGraph
from ._layer import Layer
from ._loss import loss_layer, yolo_loss_layer
from ._norm import (
    batch_normalization_layer,
    group_normalization_layer,
    instance_normalization_layer,
    layer_normalization_layer,
)
from ._optimizer import Optimizer, adam_optimizer, adamw_optimizer, sgd_optimizer
from ._shape import (
    concatenation_layer,
    gather_layer,
    gram_matrix_layer,
    padding_layer,
    pooling_layer,
    reduction_layer,
    reshape_layer,
    scatter_layer,
    slice_layer,
    split_layer,
    transpose_layer,
    upsample_layer,
)
from ._tensor import Tensor, TensorData, device, tensor, tensor_data
from ._training import TrainingGraph
from ._weights import (
    convolution_layer,
    embedding_layer,
    fully_connected_layer,
    lstm_layer,
    matmul_layer,
    multihead_attention_layer,
)

__all__ = [
    "Graph",
    "InferenceGraph",
    "Layer",
    "Optimizer",
    "Tensor",
    "TensorData",
    "TrainingGraph",
    "activation_layer",
    "adam_optimizer",
    "adamw_optimizer",
    "arithmetic_layer",
    "batch_normalization_layer",
    "comparison_layer",
    "concatenation_layer",
    "convolution_layer",
    "device",
    "dropout_layer",
    "embedding_layer",
    "fully_connected_layer",
    "gather_layer",
    "gram_matrix_layer",
    "graph",
    "group_normalization_layer",
    "inference_graph",
    "instance_normalization_layer",
    "layer_normalization_layer",
    "loss_layer",
    "lstm_layer",
    "matmul_layer",
    "multihead_attention_layer",
    "padding_layer",
    "pooling_layer",
    "reduction_layer",
    "reshape_layer",
    "scatter_layer",
    "selection_layer",
    "sgd_optimizer",
    "slice_layer",
    "softmax_layer",
    "split_layer",
    "tensor",
    "tensor_data",
    "training_graph",
    "transpose_layer",
    "upsample_layer",
    "yolo_loss_layer",
]


def graph() -> Graph:
    """A graph without layers.

    Example:
        >>> g = graph()
        >>> g.add_layer(softmax_layer(), [tensor([2, 3])]).shape
        (2, 3)
    """
    return Graph()


def inference_graph(graphs: Sequence[Graph]) -> InferenceGraph:
    """Graphs to be executed as they are."""
    return InferenceGraph(graphs)


def training_graph(
    graphs: Sequence[Graph], loss_layer: Layer | None = None, optimizer: Optimizer | None = None
) -> TrainingGraph:
    """Graphs whose parameters an optimizer changes by the gradients of a loss.

    Example:
        >>> x, wanted = tensor(["batch", 2]), tensor(["batch", 1])
        >>> g, line = graph(), fully_connected_layer(2, 1, weights=[[0.0, 0.0]])
        >>> y = g.add_layer(line, [x])
        >>> t = training_graph([g], loss_layer("mean_squared_error"), sgd_optimizer(0.5))
        >>> t.add_inputs({"x": x}, loss_labels={"wanted": wanted})
        >>> t.compile(device("cpu"))
        True
        >>> t.execute({"x": [[1.0, 0.0]]}, {"wanted": [[3.0]]})
        True
        >>> t.synchronize_updates()
        >>> t.loss.shape
        ()
    """
    return TrainingGraph(graphs, loss_layer, optimizer)
