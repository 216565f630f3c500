"""Neural networks: modules, layers, activations, losses, initialisers.

The names, arguments and parameter names are those of ``mlx.nn``, so that programs and weight files
are interchangeable.
"""

from cupola.nn import init as init, losses as losses
from cupola.nn.layers import *  # noqa: F403
from cupola.nn.utils import (
    average_gradients as average_gradients,
    value_and_grad as value_and_grad,
)
