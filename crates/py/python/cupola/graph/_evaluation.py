"""How the steps of a graph are run: in order, with gradients around those that they go through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import cupola.core as mx

from ._node import Node, Step, flattened, named


class Evaluation:
    """The values of steps, as far as they are known."""

    def __init__(self, known: dict[Step, list[mx.array]], keys: Sequence[mx.array] = ()) -> None:
        self.known = dict(known)
        # A step draws from a key of its own, so that a second run of it, under a gradient or in another
        # function, draws the same.
        self._keys = keys

    @staticmethod
    def needed(steps: Iterable[Step]) -> set[Step]:
        """The steps and all that they are made from."""
        found: set[Step] = set()
        stack = list(steps)
        while stack:
            step = stack.pop()
            if step not in found:
                found.add(step)
                stack.extend(node._step for node in step.inputs)
        return found

    def value(self, node: Node) -> mx.array:
        """The array that a node is."""
        return self.known[node._step][node._index]

    def run(self, wanted: Iterable[Step]) -> None:
        """Makes steps known. Those that a gradient goes through run under it, once for both."""
        needed = self.needed(wanted)
        order = sorted(needed, key=lambda step: step.index)
        paths = [(step, self._path(step)) for step in order if step.label == "gradients"]
        for step, path in paths:
            # One that lies on the path of another is a part of that.
            is_inside = any(step in other for _, other in paths)
            if step not in self.known and not is_inside:
                self._differentiate(step, path)
        for step in order:
            if step not in self.known:
                self._step(step)

    def _step(self, step: Step) -> None:
        if step.label == "gradients":
            self._differentiate(step, self._path(step))
            return
        before = mx.random.state[0]
        if step.draws is not None:
            mx.random.state[0] = self._keys[step.draws]
        result = step.call(self.value)
        if step.draws is not None:
            mx.random.state[0] = before
        self.known[step] = [leaf for leaf in flattened(result) if isinstance(leaf, mx.array)]

    def _path(self, gradient: Step) -> set[Step]:
        """The steps from what a gradient is taken by to its loss."""
        loss, by = gradient.args
        starts = {node._step for node in by}
        path: set[Step] = set()
        for step in sorted(self.needed([loss._step]), key=lambda step: step.index):
            if any(node._step in path or node._step in starts for node in step.inputs):
                path.add(step)
        return path

    def _differentiate(self, gradient: Step, path: set[Step]) -> None:
        loss, by = gradient.args
        around = [node._step for step in path for node in step.inputs]
        around += [loss._step, *(node._step for node in by)]
        self.run([step for step in around if step not in path])
        inner = sorted(path, key=lambda step: step.index)

        def forward(values: list[mx.array]) -> tuple[mx.array, list[list[mx.array]]]:
            within = Evaluation({s: own for s, own in self.known.items() if s not in path}, self._keys)
            for node, value in zip(by, values):
                own = list(within.known[node._step])
                own[node._index] = value
                within.known[node._step] = own
            within.run(inner)
            value = within.value(loss)
            # A graph with a shape in it is for its own sizes alone.
            value = value if value.ndim == 0 else value.reshape(())
            return value, [within.known[step] for step in inner]

        try:
            (_, values), slopes = mx.value_and_grad(forward)([self.value(node) for node in by])
        except Exception as error:
            if str(error).startswith("node '"):
                raise
            raise named(gradient, error) from error
        for step, own in zip(inner, values):
            self.known.setdefault(step, own)
        self.known[gradient] = slopes
