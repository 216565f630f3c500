"""What MLX's ``nn`` has and this one does not have yet: the one list, and the errors it gives."""

from __future__ import annotations

from typing import Any, Dict

from cupola.nn.layers.base import Module

_QUANTIZED = "quantised arrays are not there yet"
_DISTRIBUTED = "groups of several processes are not there yet"

MISSING: Dict[str, str] = {
    "Embedding.to_quantized": _QUANTIZED,
    "Linear.to_quantized": _QUANTIZED,
    "QQLinear": _QUANTIZED,
    "QuantizedEmbedding": _QUANTIZED,
    "QuantizedLinear": _QUANTIZED,
    "quantize": _QUANTIZED,
    "AllToShardedLinear": _DISTRIBUTED,
    "FullyShardedModule": _DISTRIBUTED,
    "QuantizedAllToShardedLinear": _DISTRIBUTED,
    "QuantizedShardedToAllLinear": _DISTRIBUTED,
    "ShardedToAllLinear": _DISTRIBUTED,
    "average_gradients": _DISTRIBUTED,
    "clip_grad_norm_sharded": _DISTRIBUTED,
    "fully_shard": _DISTRIBUTED,
    "shard_inplace": _DISTRIBUTED,
    "shard_linear": _DISTRIBUTED,
    "sum_gradients": _DISTRIBUTED,
}


def missing(name: str) -> NotImplementedError:
    """The error of the entry ``name`` of the list."""
    return NotImplementedError(f"[nn.{name}] is not implemented: {MISSING[name]}")


class MissingModule(Module):
    """A class that is there for ``isinstance`` and cannot be made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise missing(type(self).__name__)
