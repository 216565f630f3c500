"""ML programs of Core ML, run as ordinary arrays of ``cupola.core``.

Example:
    >>> import cupola.coreml
    >>> model = cupola.coreml.load("model.mlpackage")   # doctest: +SKIP
    >>> logits = model(x)                               # doctest: +SKIP
    >>> mx.grad(lambda x: model(x).sum())(x)            # doctest: +SKIP
"""

import os
import warnings
from collections.abc import Callable
from typing import Any

import cupola.core as mx
from cupola.core import _coreml
from cupola.graph import Graph

__all__ = ["Model", "load", "operators"]


class Model:
    """A function of a model: called with arrays for its inputs, it gives its outputs.

    It records the same operations as a program does, so it can be differentiated, batched and compiled.
    What it does may depend on the sizes of its inputs; the condition of a ``cond`` or a ``while_loop`` is
    evaluated.
    """

    def __init__(self, read: Any) -> None:
        self._read = read
        self._inputs = {name: (dtype, sizes) for name, dtype, sizes in _coreml.ports(read, False)}
        self._states = {name: (dtype, sizes) for name, dtype, sizes in _coreml.ports(read, True)}
        self.inputs = list(self._inputs)
        """The names of what has to be given, in order."""
        self.states = list(self._states)
        """The names of what is kept from one call to the next."""
        self.outputs = _coreml.outputs(read)
        """The names of what comes out, in order."""
        self.classes = _coreml.classes(read)
        """The labels of a classifier, in the order of its probabilities; of other models None."""
        self.name, self.functions = _coreml.functions(read)

    def function(self, name: str) -> "Model":
        """Another function of the model, which shares its weights."""
        return Model(_coreml.function(self._read, name))

    @property
    def parameters(self) -> dict[str, mx.array]:
        """The arrays that the model holds, by name. Given as ``parameters``, others take their place."""
        return dict(_coreml.constants(self._read))

    def make_state(self) -> dict[str, mx.array]:
        """The states by name, full of zeros, as they are before the first call."""
        return {name: mx.zeros(sizes, dtype) for name, (dtype, sizes) in self._states.items()}

    def __call__(
        self,
        *args: Any,
        state: dict[str, mx.array] | None = None,
        parameters: dict[str, mx.array] | None = None,
        **kwargs: Any,
    ) -> Any:
        """The outputs for arrays by position or by name: one array, or a tuple of them.

        ``state`` holds the states by name, and after the call those that the model has written. Without it
        they begin as zeros.
        """
        if len(args) > len(self.inputs):
            raise ValueError(f"[coreml] {len(args)} inputs, where the model takes {self.inputs}")
        given = {name: self._array(name, x) for name, x in (dict(zip(self.inputs, args)) | kwargs).items()}
        held = self.make_state() if state is None else state
        made = self._run(given | (parameters or {}) | held)
        if state is not None:
            state.update({name: made[name] for name in self.states})
        outputs = tuple(made[name] for name in self.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def to_function(self) -> Callable[..., Any]:
        """A compiled function of the inputs in order. Of a model with states it takes these behind the inputs,
        and gives them as they are then behind the outputs."""
        names = self.inputs + self.states

        def function(*arrays: mx.array) -> Any:
            if len(arrays) != len(names):
                raise ValueError(f"[coreml] {len(arrays)} arrays for {names}")
            made = self._run(dict(zip(names, arrays)))
            outputs = tuple(made[name] for name in self.outputs + self.states)
            return outputs[0] if len(outputs) == 1 else outputs

        return mx.compile(function)

    def to_graph(self) -> Graph:
        """The function in a `cupola.graph.Graph`, under its own name: its inputs are placeholders, its weights
        and its states variables. An open size is called by its input and its axis."""
        graph = Graph()
        feeds: dict[str, Any] = {}
        for name, (dtype, sizes) in self._inputs.items():
            shape = [size if isinstance(size, int) else f"{name}.{axis}" for axis, size in enumerate(sizes)]
            feeds[name] = graph.placeholder(name, shape, dtype)
        for name, array in self.parameters.items():
            # Small ones are sizes and settings.
            if array.size > 1024 or (mx.issubdtype(array.dtype, mx.floating) and array.size > 8):
                feeds[name] = graph.variable(name, array)
        states = {name: graph.variable(name, array) for name, array in self.make_state().items()}
        names = list(feeds) + self.states
        results = self.outputs + self.states

        def run(*arrays: mx.array) -> list[mx.array]:
            made = self._run(dict(zip(names, arrays)))
            return [made[name] for name in results]

        nodes = graph.call(run, *feeds.values(), *states.values(), name=self.name)
        made = dict(zip(self.outputs, nodes))
        after = dict(zip(states.values(), nodes[len(self.outputs) :]))
        graph.function(self.name, made, assign=after)
        return graph

    def _array(self, name: str, value: Any) -> mx.array:
        if isinstance(value, mx.array) or name not in self._inputs:
            return value
        return mx.array(value, dtype=self._inputs[name][0])

    def _run(self, given: dict[str, mx.array]) -> dict[str, mx.array]:
        made = _coreml.run(self._read, list(given.items()))
        return dict(made)

    def __repr__(self) -> str:
        return f"Model({', '.join(self.inputs)} -> {', '.join(self.outputs)})"


def load(file: Any, function: str | None = None) -> Model:
    """The model of a ``.mlpackage`` folder, of a ``.mlmodel`` file, or of a file's bytes; of several functions
    the default one, or that of the name."""
    if isinstance(file, (bytes, bytearray)):
        read = _coreml.load(content=bytes(file))
    else:
        read = _coreml.load(path=os.fspath(file))
    for warning in _coreml.warnings(read):
        warnings.warn(warning, stacklevel=2)
    model = Model(read)
    return model if function is None else model.function(function)


def operators() -> list[str]:
    """The operators that are read."""
    return _coreml.operators()
