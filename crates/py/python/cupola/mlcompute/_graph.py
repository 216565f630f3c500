"""Graphs of layers, and what executing them has in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import cupola.core as mx
from cupola import graph as graphs

from ._layer import Layer
from ._tensor import Tensor

OnDone = Callable[[Any, Exception | None, float], Any]


@dataclass(eq=False)
class Record:
    """A layer with the tensors that it takes and gives."""

    layer: Layer
    sources: list[Tensor]
    results: list[Tensor]
    is_updated: bool


def applied(
    own: graphs.Graph, record: Record, sources: Sequence[Any], held: dict[str, Any], training: bool
) -> tuple[list[graphs.Node], dict[str, graphs.Node]]:
    """The nodes that a layer gives for nodes, and those of its states after that."""

    def apply(inputs: Any, held: Any) -> Any:
        return record.layer(inputs, held, training)

    apply.__name__ = record.layer.label
    return own.call(apply, list(sources), held)


class Graph:
    """Layers, each applied to tensors that are fed, that other layers gave, or that hold data.

    Example:
        >>> import cupola.mlcompute as mlc
        >>> g = Graph()
        >>> g.add_layer(mlc.activation_layer("relu"), [mlc.tensor([2, 3])])
        Tensor(Float32[2, 3])
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        """The layers with their tensors, in order."""
        # Where shapes are found, and what does not fit is an error.
        self._shapes = graphs.Graph()
        self._nodes: dict[Tensor, graphs.Node] = {}

    @property
    def layers(self) -> list[Layer]:
        """The layers in the order in which they were added."""
        return [record.layer for record in self.records]

    def add_layer(
        self, layer: Layer, sources: Tensor | Sequence[Tensor], disable_update: bool = False
    ) -> Any:
        """Applies a layer to tensors: gives the tensor that comes out, or a list where there are several.
        With ``disable_update`` no optimizer changes its parameters."""
        sources = [sources] if isinstance(sources, Tensor) else list(sources)
        for source in sources:
            if not isinstance(source, Tensor):
                raise TypeError(f"[mlcompute] {layer!r} takes tensors, not {type(source).__name__}")
            if source not in self._nodes:
                name = f"tensor_{len(self._nodes)}"
                self._nodes[source] = self._shapes.placeholder(name, source.shape, source.dtype)
        held = {name: t.data for name, t in (layer.parameters | layer.states).items()}
        record = Record(layer, sources, [], not disable_update)
        nodes, _ = applied(self._shapes, record, [self._nodes[s] for s in sources], held, True)
        record.results = [Tensor(node.shape, node.dtype) for node in nodes]
        self._nodes.update(zip(record.results, nodes))
        self.records.append(record)
        return record.results[0] if len(nodes) == 1 else record.results


class Executed:
    """What inference and training graphs have in common."""

    def __init__(self, parts: Sequence[Graph]) -> None:
        self._parts = list(parts)
        self._inputs: dict[str, Tensor] = {}
        self._outputs: dict[str, Tensor] = {}
        self._graph: graphs.Graph | None = None
        self._nodes: dict[Tensor, graphs.Node] = {}
        # Tensors that hold what variables are, and the data that both had last.
        self._held: dict[Tensor, graphs.Variable] = {}
        self._last: dict[Tensor, mx.array] = {}
        self._pending: list[tuple[Future[Any], list[Exception]]] = []
        # What functions give by name.
        self._wanted: dict[str, Tensor] = {}
        self.device: mx.Device | None = None
        """The device that it was compiled for."""

    def add_inputs(self, inputs: Mapping[str, Tensor]) -> None:
        """Names the tensors that are fed."""
        self._not_compiled("add_inputs")
        self._inputs.update(inputs)

    def add_outputs(self, outputs: Mapping[str, Tensor]) -> None:
        """Names tensors whose data is wanted, beside those that no layer takes."""
        self._not_compiled("add_outputs")
        self._outputs.update(outputs)

    def wait(self) -> None:
        """Waits for the executions under way. The error of one without a handler is raised here."""
        pending, self._pending = self._pending, []
        for future, handled in pending:
            error = future.exception()
            if error is not None and not any(error is own for own in handled):
                raise error

    def _not_compiled(self, what: str) -> None:
        if self._graph is not None:
            raise ValueError(f"[mlcompute] {what}: the graph is compiled already")

    def _records(self) -> list[Record]:
        return [record for part in self._parts for record in part.records]

    def _results(self) -> list[Tensor]:
        """The tensors that layers give and none takes, and those that were asked for."""
        records = self._records()
        taken = {source for record in records for source in record.sources}
        made = [tensor for record in records for tensor in record.results]
        results = [tensor for tensor in made if tensor not in taken]
        return results + [t for t in self._outputs.values() if t not in results]

    def _variable(self, own: graphs.Graph, tensor: Tensor, name: str) -> graphs.Variable:
        if tensor not in self._held:
            self._held[tensor] = own.variable(f"{name}_{len(self._held)}", tensor.data)
            self._last[tensor] = tensor.data
        return self._held[tensor]

    def _fed(self, own: graphs.Graph, tensors: Mapping[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            if tensor in self._nodes:
                raise ValueError(f"[mlcompute] input '{name}': {tensor!r} has another name already")
            self._nodes[tensor] = own.placeholder(name, tensor.shape, tensor.dtype)

    def _forward(
        self, own: graphs.Graph, training: bool, stopped: Sequence[Tensor] = ()
    ) -> dict[graphs.Variable, graphs.Node]:
        """Writes all layers down; gives what becomes of their states."""
        for tensor in [t for t in stopped if t in self._nodes]:
            self._nodes[tensor] = own.stop_gradient(self._nodes[tensor])
        after: dict[graphs.Variable, graphs.Node] = {}
        for record in self._records():
            for source in record.sources:
                if source in self._nodes:
                    continue
                if not source.has_data:
                    raise ValueError(
                        f"[mlcompute] {source!r} of {record.layer!r} is no input, no result of a layer "
                        "before it, and has no data"
                    )
                self._nodes[source] = own.constant(source.data)
            layer, held = record.layer, {}
            for name, tensor in (layer.parameters | layer.states).items():
                held[name] = self._variable(own, tensor, f"{layer.label}.{name}")
            # A layer that is applied twice goes on with its states.
            now = {name: after.get(variable, variable) for name, variable in held.items()}
            sources = [self._nodes[source] for source in record.sources]
            nodes, states = applied(own, record, sources, now, training)
            after.update({held[name]: node for name, node in states.items()})
            for tensor, node in zip(record.results, nodes):
                self._nodes[tensor] = own.stop_gradient(node) if tensor in stopped else node
        return after

    def _bound(self, named: Mapping[str, Tensor], data: Mapping[str, Any] | None) -> dict[str, Any]:
        data = dict(data or {})
        for name in data:
            if name not in named:
                raise ValueError(f"[mlcompute] '{name}' is none of {', '.join(named) or 'nothing'}")
        return {name: named[name].fitted(values) for name, values in data.items()}

    def _start(
        self,
        function: str,
        feeds: dict[str, Any],
        batch_size: int,
        results: Mapping[str, Tensor],
        final: Any,
        on_done: OnDone | None,
    ) -> bool:
        """Executes a function of the graph on another thread."""
        if self._graph is None or self.device is None:
            raise ValueError("[mlcompute] the graph is not compiled")
        for name, array in feeds.items():
            if batch_size and (array.ndim == 0 or array.shape[0] != batch_size):
                raise ValueError(f"[mlcompute] '{name}' has shape {array.shape}, not {batch_size} rows")
        for tensor, variable in self._held.items():
            if tensor.data is not self._last[tensor]:
                variable.value = self._last[tensor] = tensor.data
        begin, handled = time.perf_counter(), []

        def done(values: dict[str, mx.array] | None, error: Exception | None) -> None:
            for tensor, variable in self._held.items():
                # What somebody bound in the meantime stays.
                if tensor._data is self._last[tensor]:
                    tensor._data = self._last[tensor] = variable.value
            for name, array in (values or {}).items():
                if name in results:
                    results[name]._data = array
            if on_done is not None:
                handled.extend([error] if error is not None else [])
                on_done(None if error else final, error, time.perf_counter() - begin)

        executable = self._graph.compile(self.device, function)
        feeds = {name: array for name, array in feeds.items() if name in executable.inputs}
        # Those that went well are not kept, nor what they gave.
        self._pending = [
            own for own in self._pending if not own[0].done() or own[0].exception() is not None
        ]
        self._pending.append((executable.run_async(feeds, done), handled))
        return True


class InferenceGraph(Executed):
    """Graphs that give predictions: nothing drops out, and no parameter changes."""

    def compile(self, device: mx.Device | None = None) -> bool:
        """Makes the graph ready for a device, the best one if none is said; gives true."""
        self._not_compiled("compile")
        self.device = mx.default_device() if device is None else device
        own = graphs.Graph()
        self._fed(own, self._inputs)
        self._forward(own, training=False)
        self._wanted = {f"result_{at}": tensor for at, tensor in enumerate(self._results())}
        own.function("run", {name: self._nodes[t] for name, t in self._wanted.items()})
        self._graph = own
        return True

    def execute(
        self, inputs: Mapping[str, Any], batch_size: int = 0, on_done: OnDone | None = None
    ) -> bool:
        """Executes the graph on another thread, with data for its inputs by name; gives true.

        A batch size that is not 0 is checked against the data. ``on_done`` is called with the result (a tensor, or a
        list of them), or ``None`` and the error, and the seconds that it took. What results are can be read after
        `wait`.
        """
        feeds, results = self._bound(self._inputs, inputs), list(self._results())
        final = results[0] if len(results) == 1 else results
        return self._start("run", feeds, batch_size, self._wanted, final, on_done)
