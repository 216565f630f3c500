"""Training graphs: forward, gradient and update, together or one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cupola.core as mx
from cupola import graph as graphs

from ._graph import Executed, Graph, OnDone, Record, applied
from ._layer import Layer
from ._optimizer import Optimizer
from ._tensor import Tensor


class TrainingGraph(Executed):
    """Graphs whose layers learn from a loss, by an optimizer.

    The loss layer compares the last result with the labels. Without one the gradient of results is given by the
    caller: see `allocate_user_gradient`.
    """

    def __init__(
        self,
        parts: Sequence[Graph],
        loss_layer: Layer | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        super().__init__(parts)
        self._loss_layer, self._optimizer = loss_layer, optimizer
        self._labels: dict[str, Tensor] = {}
        self._weights: dict[str, Tensor] = {}
        self._stopped: list[Tensor] = []
        self._user: dict[Tensor, Tensor] = {}
        self._gradients: dict[Tensor, Tensor] = {}
        self._feeds: dict[str, Any] | None = None
        self._random = mx.random.state[0]
        self.loss: Tensor | None = None
        """The loss, from when the graph is compiled."""

    def add_inputs(
        self,
        inputs: Mapping[str, Tensor],
        loss_labels: Mapping[str, Tensor] | None = None,
        loss_label_weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Names the tensors that are fed: inputs, the labels of the loss, and what weighs its terms."""
        super().add_inputs(inputs)
        self._labels.update(loss_labels or {})
        self._weights.update(loss_label_weights or {})

    def stop_gradient_for(self, tensors: Sequence[Tensor]) -> None:
        """No gradient passes these tensors: what they are made from does not learn through them."""
        self._not_compiled("stop_gradient_for")
        self._stopped.extend(tensors)

    def allocate_user_gradient(self, tensor: Tensor) -> Tensor:
        """A tensor for the gradient of a result, which the caller binds before executing the gradient."""
        self._not_compiled("allocate_user_gradient")
        if tensor not in self._user:
            self._user[tensor] = Tensor(tensor.shape, tensor.dtype)
        return self._user[tensor]

    def compile(self, device: mx.Device | None = None) -> bool:
        """Makes the graph ready for a device, the best one if none is said; gives true."""
        self._not_compiled("compile")
        self.device = mx.default_device() if device is None else device
        own = graphs.Graph()
        self._fed(own, {**self._inputs, **self._labels, **self._weights})
        for at, (tensor, gradient) in enumerate(self._user.items()):
            self._nodes[gradient] = own.placeholder(_user(at), gradient.shape, gradient.dtype)
        states = self._forward(own, True, self._stopped)
        wanted = {f"result_{at}": tensor for at, tensor in enumerate(self._results())}
        loss = self._loss(own)
        if self.loss is not None:
            wanted["loss"] = self.loss
        outputs = {name: self._nodes[tensor] for name, tensor in wanted.items()}
        own.function("forward", outputs, assign=states)
        updated = self._updated()
        if loss is not None and updated:
            gradients = own.gradients(loss, [self._held[tensor] for tensor in updated])
            places = {}
            for tensor, node in zip(updated, gradients):
                zeros = mx.zeros_like(tensor.data)
                self._gradients[tensor] = Tensor(zeros.shape, zeros.dtype, zeros)
                places[self._variable(own, self._gradients[tensor], "gradient")] = node
            # The forward way is a part of it, so that both draw the same.
            own.function("gradient", outputs, assign=places)
            self._write_updates(own, updated, gradients, outputs, states)
        self._graph, self._wanted = own, wanted
        return True

    def compile_optimizer(self, optimizer: Optimizer) -> bool:
        """Takes another optimizer, before the graph is compiled; gives true."""
        self._not_compiled("compile_optimizer")
        self._optimizer = optimizer
        return True

    def _loss(self, own: graphs.Graph) -> graphs.Node | None:
        """What gradients are of: the loss, and results times what the caller gave for them."""
        terms = []
        if self._loss_layer is not None:
            made = [tensor for record in self._records() for tensor in record.results]
            if not made:
                raise ValueError("[mlcompute] compile: the graph has no layer")
            sources = [made[-1], *self._labels.values(), *self._weights.values()]
            record = Record(self._loss_layer, sources, [], True)
            held = {
                name: self._variable(own, tensor, f"{self._loss_layer.label}.{name}")
                for name, tensor in self._loss_layer.parameters.items()
            }
            nodes, _ = applied(own, record, [self._nodes[s] for s in sources], held, True)
            self.loss = Tensor(nodes[0].shape, nodes[0].dtype)
            self._nodes[self.loss] = nodes[0]
            terms.append(nodes[0].sum())
        for tensor, gradient in self._user.items():
            terms.append((self._nodes[tensor] * self._nodes[gradient]).sum())
        if not terms:
            return None
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def _updated(self) -> list[Tensor]:
        """The parameters that learn."""
        found: dict[Tensor, None] = {}
        for record in self._records():
            if record.is_updated:
                found.update(dict.fromkeys(record.layer.parameters.values()))
        if self._loss_layer is not None:
            found.update(dict.fromkeys(self._loss_layer.parameters.values()))
        return list(found)

    def _write_updates(
        self,
        own: graphs.Graph,
        updated: list[Tensor],
        gradients: list[graphs.Node],
        outputs: dict[str, graphs.Node],
        states: dict[graphs.Variable, graphs.Node],
    ) -> None:
        optimizer = self._optimizer
        if optimizer is None:
            return
        names = [f"p{at}" for at in range(len(updated))]
        parameters = {name: self._held[tensor] for name, tensor in zip(names, updated)}
        optimizer.prepare({name: tensor.data for name, tensor in zip(names, updated)})
        kept = {
            name: self._variable(own, tensor, f"optimizer.{name}")
            for name, tensor in optimizer.states.items()
        }

        def assigned(given: Mapping[str, graphs.Node], name: str) -> dict[graphs.Variable, graphs.Node]:
            after, after_kept = own.call(optimizer.update, parameters, given, kept, name=name)
            changed = {parameters[key]: node for key, node in after.items()}
            return changed | {kept[key]: node for key, node in after_kept.items() if key in kept}

        now = dict(zip(names, gradients))
        own.function("execute", outputs, assign=states | assigned(now, "step"))
        held = {name: self._held[self._gradients[t]] for name, t in zip(names, updated)}
        own.function("update", {}, assign=assigned(held, "update"))

    def gradient_for(self, parameter: Tensor) -> Tensor:
        """The gradient of a parameter that the last `execute_gradient` left."""
        if parameter not in self._gradients:
            raise ValueError(f"[mlcompute] gradient_for: {parameter!r} does not learn in this graph")
        return self._gradients[parameter]

    def execute(
        self,
        inputs: Mapping[str, Any],
        loss_labels: Mapping[str, Any] | None = None,
        loss_label_weights: Mapping[str, Any] | None = None,
        batch_size: int = 0,
        on_done: OnDone | None = None,
    ) -> bool:
        """Forward, gradient and update together, on another thread; gives true. ``on_done`` is called with the loss
        (or the results, where there is none), or ``None`` and the error, and the seconds that it took."""
        if self._optimizer is None:
            raise ValueError("[mlcompute] execute: the graph has no optimizer")
        feeds = self._all(inputs, loss_labels, loss_label_weights) | self._user_feeds()
        return self._start("execute", feeds, batch_size, self._wanted, self._final(), on_done)

    def execute_forward(
        self,
        inputs: Mapping[str, Any],
        loss_labels: Mapping[str, Any] | None = None,
        loss_label_weights: Mapping[str, Any] | None = None,
        batch_size: int = 0,
        on_done: OnDone | None = None,
    ) -> bool:
        """The forward way alone: results, the loss, and the states of layers; gives true."""
        self._feeds = self._all(inputs, loss_labels, loss_label_weights)
        self._random = mx.random.state[0]
        return self._start(
            "forward", self._feeds, batch_size, self._wanted, self._final(), on_done
        )

    def execute_gradient(self, batch_size: int = 0, on_done: OnDone | None = None) -> bool:
        """The gradients of the parameters, for what the last `execute_forward` was given; gives true."""
        if self._feeds is None:
            raise ValueError("[mlcompute] execute_gradient: execute_forward comes first")
        if not self._gradients:
            raise ValueError("[mlcompute] execute_gradient: there is no loss, or nothing that learns")
        # What dropped out on the forward way does so again.
        now, mx.random.state[0] = mx.random.state[0], self._random
        try:
            feeds = self._feeds | self._user_feeds()
            return self._start("gradient", feeds, batch_size, {}, self._final(), on_done)
        finally:
            mx.random.state[0] = now

    def execute_optimizer_update(self, on_done: OnDone | None = None) -> bool:
        """Changes the parameters by the gradients that the last `execute_gradient` left; gives true."""
        if self._optimizer is None or not self._gradients:
            raise ValueError("[mlcompute] execute_optimizer_update: there is no optimizer or gradient")
        return self._start("update", {}, 0, {}, self._final(), on_done)

    def synchronize_updates(self) -> None:
        """Waits until the tensors of the layers hold what was learnt by all executions so far."""
        self.wait()
        mx.eval([tensor.data for tensor in self._held])

    def _all(self, inputs: Any, labels: Any, weights: Any) -> dict[str, Any]:
        return {
            **self._bound(self._inputs, inputs),
            **self._bound(self._labels, labels),
            **self._bound(self._weights, weights),
        }

    def _user_feeds(self) -> dict[str, Any]:
        return {_user(at): gradient.data for at, gradient in enumerate(self._user.values())}

    def _final(self) -> Any:
        if self.loss is not None:
            return self.loss
        results = self._results()
        return results[0] if len(results) == 1 else results


def _user(at: int) -> str:
    return f"user_gradient_{at}"
