"""An ``onnx.backend.base.Backend``, with which the tests of the ``onnx`` package run as they are.

Example:
    >>> from onnx.backend.test import BackendTest         # doctest: +SKIP
    >>> tests = BackendTest(backend, __name__)            # doctest: +SKIP
"""

from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

import cupola.core as mx

from . import Model, load
from ._numbers import held, numpy_of

_DEVICES = {DeviceType.CPU: mx.cpu, DeviceType.CUDA: mx.cuda}


def _value(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_value(one) for one in value]
    return held(value)


class CupolaBackendRep(BackendRep):
    """A model that is prepared to run."""

    def __init__(self, model: Model, device: Any) -> None:
        self.model = model
        self._device = device

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs as NumPy has them, for inputs in order or by name."""
        if not isinstance(inputs, dict):
            if not isinstance(inputs, (list, tuple)):
                inputs = [inputs]
            inputs = dict(zip(self.model.inputs, inputs))
        with mx.stream(self._device):
            values = {name: _value(value) for name, value in inputs.items()}
            return tuple(numpy_of(value) for value in self.model.run(values))


class CupolaBackend(Backend):
    """Runs models with Cupola."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> CupolaBackendRep:
        """The model, ready to run on a device."""
        where = _DEVICES[Device(device).type]
        with mx.stream(where):
            return CupolaBackendRep(load(model), where)

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether all that the model holds is read."""
        try:
            load(model)
        except (ValueError, RuntimeError, OSError):
            return False
        return cls.supports_device(device)

    @classmethod
    def run_node(
        cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """The outputs of one node."""
        helper = onnx.helper
        version = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        infos = [helper.make_empty_tensor_value_info(name) for name in node.input if name]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "node", infos, outputs)
        imports = [helper.make_opsetid(node.domain, version)]
        model = helper.make_model(graph, opset_imports=imports)
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is such a device."""
        where = _DEVICES.get(Device(device).type)
        return where is not None and mx.is_available(where)


prepare = CupolaBackend.prepare
run_model = CupolaBackend.run_model
run_node = CupolaBackend.run_node
supports_device = CupolaBackend.supports_device
is_compatible = CupolaBackend.is_compatible
