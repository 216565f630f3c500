"""Graphs that are written down by name, compiled for a device and run with feeds.

A `Graph` has placeholders, constants, variables, and every function of ``cupola.core`` under its own
name. Nothing is computed while it is written down: shapes and dtypes are known at once, and what does
not fit is an error that names the node. Functions of a graph share its variables; each is compiled,
once for the sizes that it is fed with.

Example:
    >>> g = Graph()
    >>> x = g.placeholder("x", ("batch", 2))
    >>> w = g.variable("w", mx.ones(2))
    >>> y = g.matmul(x, w, name="product")
    >>> y.shape
    ('batch',)
    >>> g.function("predict", {"y": y})
    >>> g.compile(mx.cpu).run({"x": mx.array([[1.0, 2.0]])})["y"]
    array([3], dtype=float32)
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType
from typing import Any

import cupola.core as mx
from cupola.core import _graph

from ._evaluation import Evaluation
from ._node import Node, Sizes, Step, Variable, described, flattened, mapped

__all__ = ["Executable", "Graph", "Node", "Variable"]

# What reads values, changes settings or makes functions of functions is no node.
_NO_NODES = frozenset(
    """async_eval checkpoint clear_cache clear_streams compile custom_function default_device
    default_stream depends device_count device_info disable_compile enable_compile eval export_function
    export_to_dot exporter grad hessian import_function is_available jacfwd jacrev jvp linearize load
    new_stream new_thread_local_stream new_thread_unsafe_stream printoptions save save_gguf
    save_safetensors savez savez_compressed seed set_default_device set_default_stream stream synchronize
    value_and_grad vjp vmap""".split()
)


class _Functions:
    """The functions of a part of ``cupola.core``, as nodes."""

    def __init__(self, graph: Graph, module: ModuleType, prefix: str) -> None:
        self._graph, self._module, self._prefix = graph, module, prefix

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._module, name, None)
        if isinstance(own, ModuleType):
            return _Functions(self._graph, own, f"{name}.")
        if own is None or name in _NO_NODES or isinstance(own, type) or not callable(own):
            raise AttributeError(f"there is no function '{self._prefix}{name}' for a graph")

        def call(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
            return self._graph._record(own, label, args, kwargs, name)

        label = f"{self._prefix}{name}"
        return call


class Graph:
    """Steps that are written down, and functions of them.

    Every function of ``cupola.core`` is there under its own name, those of ``random``, ``fast``,
    ``linalg`` and ``fft`` behind these; each takes a ``name`` for the node, which errors say.

    Example:
        >>> g = Graph()
        >>> x, y = g.placeholder("x", (2, 3)), g.placeholder("y", (4,))
        >>> g.add(x, y, name="sum")
        Traceback (most recent call last):
        ...
        ValueError: node 'sum' (add): ...
    """

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._named: dict[str, Step] = {}
        self._counts: dict[str, int] = {}
        self._prefix = ""
        self._draws = 0
        self._sizes = Sizes()
        self._placeholders: dict[str, tuple[Node, tuple[int | str, ...]]] = {}
        self._functions: dict[str, _Function] = {}
        self._lock = threading.Lock()
        self._worker: ThreadPoolExecutor | None = None
        self.variables: dict[str, Variable] = {}
        """The variables by name."""

    def placeholder(
        self, name: str, shape: Sequence[int | str], dtype: mx.Dtype = mx.float32
    ) -> Node:
        """What is fed under a name at each run. A size that is a text is a name, which stands for one
        number in all placeholders."""
        shape = tuple(shape)
        zeros = [[mx.zeros(numbers, dtype)] for numbers in self._sizes.numbers(shape)]
        node = Node(self._step(name, "placeholder", None, (), {}, zeros), 0)
        self._placeholders[node.name] = (node, shape)
        return node

    def constant(self, value: Any, name: str | None = None) -> Node:
        """An array that is a part of the graph, and never changes."""
        array = mx.array(value)
        step = self._step(name, "constant", lambda: array, (), {}, [[array], [array]])
        return Node(step, 0)

    def variable(self, name: str, initial: Any) -> Variable:
        """An array that functions share, and that they may assign to."""
        value = mx.array(initial)
        step = self._step(name, "variable", None, (), {}, [[value], [value]])
        variable = Variable(step, 0)
        variable._value = value
        self.variables[step.name] = variable
        return variable

    def call(
        self, function: Callable[..., Any], *args: Any, name: str | None = None, **kwargs: Any
    ) -> Any:
        """What any function of arrays gives, which may record as many operations as it likes: it is
        called with arrays in the place of nodes. Its result is a node, or a tree of nodes.

        Example:
            >>> g = Graph()
            >>> x = g.placeholder("x", ("batch", 4))
            >>> g.call(nn.Linear(4, 3), x).shape
            ('batch', 3)
        """
        label = getattr(function, "__name__", type(function).__name__)
        return self._record(function, label, args, kwargs, name)

    def gradients(
        self, loss: Node, variables: Sequence[Node], name: str | None = None
    ) -> list[Node]:
        """The gradients of a loss, one real number, by nodes that it is made from.

        Example:
            >>> g = Graph()
            >>> w = g.variable("w", mx.array([1.0, 2.0]))
            >>> g.function("slope", {"w": g.gradients(g.square(w).sum(), [w])[0]})
            >>> g.compile(mx.cpu).run({})["w"]
            array([2, 4], dtype=float32)
        """
        self._own(loss, *variables)
        size = loss._step.zeros[0][loss._index].size
        if size != 1 or not mx.issubdtype(loss.dtype, mx.floating):
            raise ValueError(f"[graph] gradients: the loss must be one real number, it is {loss!r}")
        zeros = [[v._step.zeros[which][v._index] for v in variables] for which in range(2)]
        above = Evaluation.needed(node._step for v in variables for node in v._step.inputs)
        if any(v._step in above for v in variables):
            raise ValueError("[graph] gradients: one of the variables is made from another")
        step = self._step(name, "gradients", None, (loss, list(variables)), {}, zeros)
        return [Node(step, index) for index in range(len(variables))]

    def function(
        self,
        name: str,
        outputs: Mapping[str, Node],
        assign: Mapping[Any, Node] | None = None,
    ) -> None:
        """Makes a function: what it gives, by name, and which variables it changes to what. It takes
        the placeholders that these depend on.

        Example:
            >>> g = Graph()
            >>> count = g.variable("count", mx.array(0))
            >>> g.function("next", {"count": count}, assign={count: count + 1})
            >>> following = g.compile(mx.cpu)
            >>> [following.run({})["count"].item() for _ in range(3)]
            [0, 1, 2]
        """
        if name in self._functions:
            raise ValueError(f"[graph] function '{name}' is there twice")
        assign = dict(assign or {})
        self._own(*outputs.values(), *assign, *assign.values())
        for variable, value in assign.items():
            if not isinstance(variable, Variable):
                raise ValueError(f"[graph] function '{name}': {variable!r} is no variable")
            if variable.shape != value.shape or variable.dtype != value.dtype:
                raise ValueError(f"[graph] function '{name}': {variable!r} cannot become {value!r}")
        self._functions[name] = _Function(self, name, dict(outputs), assign)

    def compile(
        self,
        device: Any = None,
        function: str | None = None,
        sizes: Sequence[Mapping[str, int]] = (),
    ) -> Executable:
        """The first function, or the one of this name, to be run on a device, or on the default one.

        ``sizes`` are bindings of named sizes that it is traced for now; for others it is at their first
        run.
        """
        if not self._functions:
            raise ValueError("[graph] compile: the graph has no function")
        device = mx.default_device() if device is None else device
        if not mx.is_available(device):
            raise ValueError(f"[graph] compile: {device} is not available")
        executable = Executable(self, function or next(iter(self._functions)), device)
        for bound in sizes:
            executable._prepare(bound)
        return executable

    @contextlib.contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Puts a name in front of those of the nodes that are made within.

        Example:
            >>> g = Graph()
            >>> with g.scope("block"):
            ...     g.placeholder("x", (2,))
            Node(block/x: float32[2])
        """
        before, self._prefix = self._prefix, f"{self._prefix}{name}/"
        try:
            yield
        finally:
            self._prefix = before

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(_Functions(self, mx, ""), name)

    def __repr__(self) -> str:
        return f"Graph({len(self._steps)} steps; {', '.join(self._functions)})"

    def _own(self, *nodes: Any) -> None:
        for node in nodes:
            if not isinstance(node, Node) or node.graph is not self:
                raise ValueError(f"[graph] {node!r} is no node of this graph")

    def _step(
        self,
        name: str | None,
        label: str,
        function: Callable[..., Any] | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        zeros: list[list[mx.array]],
    ) -> Step:
        if name is None:
            count = self._counts[label] = self._counts.get(label, 0) + 1
            name = f"{label}_{count}"
        name = f"{self._prefix}{name}"
        if name in self._named:
            raise ValueError(f"[graph] node '{name}' is there twice")
        inputs = [leaf for leaf in flattened((args, kwargs)) if isinstance(leaf, Node)]
        self._own(*inputs)
        step = Step(self, len(self._steps), name, label, function, args, kwargs, inputs, zeros)
        self._steps.append(step)
        self._named[name] = step
        return step

    def _record(
        self,
        function: Callable[..., Any],
        label: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
    ) -> Any:
        """A step that calls a function; it is tried on zeros, which are not computed."""
        step = self._step(name, label, function, args, kwargs, [[], []])
        state, key = mx.random.state[0], mx.random.key(0)
        mx.random.state[0] = key
        try:
            for which, own in enumerate(step.zeros if self._sizes.of else step.zeros[:1]):
                stand_in = lambda node: node._step.zeros[which][node._index]  # noqa: E731
                result = step.call(stand_in)
                own.extend(leaf for leaf in flattened(result) if isinstance(leaf, mx.array))
            if not mx.array_equal(mx.random.state[0], key):
                step.draws, self._draws = self._draws, self._draws + 1
        except Exception:
            self._steps.pop()
            del self._named[step.name]
            raise
        finally:
            mx.random.state[0] = state
        if not self._sizes.of:
            step.zeros[1].extend(step.zeros[0])
        nodes = iter(Node(step, index) for index in range(len(step.zeros[0])))
        return mapped(result, lambda leaf: next(nodes) if isinstance(leaf, mx.array) else leaf)


class _Function:
    """What a function of a graph takes and gives, and how it is run."""

    def __init__(
        self, graph: Graph, name: str, outputs: dict[str, Node], assign: dict[Variable, Node]
    ) -> None:
        self.graph, self.name, self.outputs, self.assign = graph, name, outputs, assign
        self.wanted = [*outputs.values(), *assign.values()]
        needed = Evaluation.needed(node._step for node in self.wanted)
        self.placeholders = {
            key: pair for key, pair in graph._placeholders.items() if pair[0]._step in needed
        }
        self.reads = [v for v in graph.variables.values() if v._step in needed]
        self.draws = any(step.draws is not None for step in needed)
        self.run = mx.compile(self._run)

    def _trace(self, changing: set[Variable], bound: Mapping[str, int] | None) -> tuple[Any, ...]:
        """What a package holds of it: inputs, weights, the names of outputs, and what records it."""
        state = [v for v in changing if self.assign and (v in self.reads or v in self.assign)]
        state.sort(key=lambda v: v._step.index)
        held = [v for v in self.reads if v not in state]
        inputs: list[tuple[Any, ...]] = []
        for name, (node, shape) in self.placeholders.items():
            numbers = self.graph._sizes.numbers(shape)[0]
            if bound is not None:
                shape = tuple(bound.get(size, size) if isinstance(size, str) else size for size in shape)
                numbers = tuple(own if isinstance(own, int) else n for own, n in zip(shape, numbers))
            inputs.append((name, node.dtype, list(shape), list(numbers)))
        inputs += [(v.name, v.dtype, list(v._value.shape), list(v._value.shape)) for v in state]
        outputs = [*self.outputs, *(v.name for v in state)]
        if self.draws:
            inputs.append(("random", mx.uint32, [2], [2]))
            outputs.append("random")

        def record(given: list[mx.array], values: list[mx.array]) -> list[mx.array]:
            fed, rest = given[: len(self.placeholders)], given[len(self.placeholders) :]
            known = dict(zip(held, values)) | dict(zip(state, rest))
            before = mx.random.state[0]
            if self.draws:
                mx.random.state[0] = rest[-1]
            try:
                got = self._run(list(fed), [known[v] for v in self.reads])
                after = [mx.random.state[0]] if self.draws else []
            finally:
                mx.random.state[0] = before
            known |= dict(zip(self.assign, got[len(self.outputs) :]))
            return [*got[: len(self.outputs)], *(known[v] for v in state), *after]

        return inputs, [(v.name, v._value) for v in held], outputs, record

    def _run(self, fed: list[mx.array], values: list[mx.array]) -> list[mx.array]:
        known = {node._step: [a] for (node, _), a in zip(self.placeholders.values(), fed)}
        known |= {variable._step: [a] for variable, a in zip(self.reads, values)}
        keys: Sequence[mx.array] = ()
        if self.draws:
            mx.random.state[0], *keys = mx.random.split(mx.random.state[0], self.graph._draws + 1)
        evaluation = Evaluation(known, keys)
        evaluation.run([node._step for node in self.wanted])
        return [evaluation.value(node) for node in self.wanted]


class Executable:
    """A function of a graph on a device. It shares the graph's variables with all others.

    Example:
        >>> g = Graph()
        >>> g.function("double", {"y": g.placeholder("x", ("n",)) * 2})
        >>> double = g.compile(mx.cpu)
        >>> double.run({"x": mx.array([1.0, 2.0])})
        {'y': array([2, 4], dtype=float32)}
    """

    def __init__(self, graph: Graph, function: str, device: Any) -> None:
        if function not in graph._functions:
            known = ", ".join(graph._functions)
            raise ValueError(f"[graph] there is no function '{function}' among [{known}]")
        self.graph = graph
        """The graph, which has the variables."""
        self.device = device
        """The device."""
        self._function = graph._functions[function]

    @property
    def inputs(self) -> list[str]:
        """The names of what has to be fed."""
        return list(self._function.placeholders)

    @property
    def outputs(self) -> list[str]:
        """The names of the results."""
        return list(self._function.outputs)

    def function(self, name: str) -> Executable:
        """Another function of the graph, on the same device."""
        return Executable(self.graph, name, self.device)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, mx.array]:
        """Runs the function and waits for its results. Where it fails, the variables are as before."""
        return self._finish(*self._start(self.device, feeds))

    def run_async(
        self,
        feeds: Mapping[str, Any],
        on_done: Callable[[dict[str, mx.array] | None, Exception | None], Any] | None = None,
    ) -> Future[dict[str, mx.array]]:
        """Runs the function on another thread, after the runs that were asked for before it.

        ``on_done`` is called there with the results and ``None``, or with ``None`` and the error, also that of
        a feed. What is returned has a ``result()`` that waits.

        Example:
            >>> g = Graph()
            >>> g.function("double", {"y": g.placeholder("x", ()) * 2})
            >>> run = g.compile(mx.cpu).run_async({"x": 4.0}, lambda results, error: None)
            >>> run.result()["y"].item()
            8.0
        """

        try:
            started: Any = self._start(self.device, feeds)
        except Exception as error:
            started = error

        def work() -> dict[str, mx.array]:
            try:
                if isinstance(started, Exception):
                    raise started
                results = self._finish(*started)
            except Exception as error:
                if on_done is not None:
                    on_done(None, error)
                raise
            if on_done is not None:
                on_done(results, None)
            return results

        with self.graph._lock:
            if self.graph._worker is None:
                self.graph._worker = ThreadPoolExecutor(1, "graph")
            return self.graph._worker.submit(work)

    def encode(self, stream: Any, feeds: Mapping[str, Any]) -> dict[str, mx.array]:
        """Gives the function to a stream and returns at once; reading a result waits for it."""
        results, changed = self._start(stream, feeds)
        mx.async_eval(list(results.values()), [new for _, _, new in changed])
        return results

    def explain(self, feeds: Mapping[str, Any]) -> mx.Explanation:
        """What a run with these feeds would run, once they are computed: see ``mx.explain``. No variable changes.

        Example:
            >>> g = Graph()
            >>> g.function("double", {"y": g.placeholder("x", ("n",)) * 2})
            >>> [step["fused"] for step in g.compile(mx.cpu).explain({"x": mx.ones(3)}).steps]
            [['multiply']]
        """
        function, fed, state = self._function, self._bound(feeds), mx.random.state[0]
        mx.eval(fed, [variable._value for variable in function.reads], state)
        results, changed = self._start(self.device, dict(zip(function.placeholders, fed)))
        mx.random.state[0] = state
        try:
            return mx.explain(lambda: (list(results.values()), [new for _, _, new in changed]))
        finally:
            self._undo(changed)

    def save(
        self, path: Any, sizes: Sequence[Mapping[str, int]] = (), metadata: str | None = None
    ) -> None:
        """Writes the graph's functions to a package, a file or a folder, which ``mx.import_function`` and the program
        read.

        Sizes keep their names where the graph allows it (see ``docs/packages.md``); with ``sizes``, bindings of them, a
        function has a trace for each. A function that assigns nothing holds the values that its variables have now.
        One that does takes the variables that some function assigns, behind its placeholders, and gives what they
        become, behind its outputs; so does one that draws random numbers with a key, ``random``.

        Example:
            >>> g = Graph()
            >>> x, w = g.placeholder("x", ("batch", 2)), g.variable("w", mx.array([1.0, 2.0]))
            >>> g.function("predict", {"y": x @ w})
            >>> g.compile(mx.cpu).save("line.cupola")                     # doctest: +SKIP
            >>> mx.import_function("line.cupola")(mx.ones((3, 2)))        # doctest: +SKIP
            (array([3, 3, 3], dtype=float32),)
        """
        functions = self.graph._functions
        changing = {v for function in functions.values() for v in function.assign}
        bindings: Sequence[Mapping[str, int] | None] = list(sizes) or [None]
        written = [
            (name, [function._trace(changing, bound) for bound in bindings])
            for name, function in functions.items()
        ]
        _graph.save(os.fspath(path), written, metadata)

    def __repr__(self) -> str:
        taken, given = ", ".join(self.inputs), ", ".join(self.outputs)
        return f"Executable({self._function.name}: {taken} -> {given} on {self.device})"

    def _start(self, stream: Any, feeds: Mapping[str, Any]) -> tuple[dict[str, mx.array], list[Any]]:
        """Records a run and puts what it assigns into the variables."""
        function, fed = self._function, self._bound(feeds)
        # Who reads the variables in between would lose a change.
        with self.graph._lock, mx.stream(stream):
            got = function.run(fed, [variable._value for variable in function.reads])
            assigned = got[len(function.outputs) :]
            changed = [(v, v._value, new) for v, new in zip(function.assign, assigned)]
            for variable, _, new in changed:
                variable._value = new
        return dict(zip(function.outputs, got)), changed

    def _finish(self, results: dict[str, mx.array], changed: list[Any]) -> dict[str, mx.array]:
        try:
            mx.eval(list(results.values()), [new for _, _, new in changed])
        except BaseException:
            self._undo(changed)
            raise
        return results

    def _undo(self, changed: list[Any]) -> None:
        """Gives variables what they were before a run, where nothing else has changed them since."""
        with self.graph._lock:
            for variable, old, new in changed:
                if variable._value is new:
                    variable._value = old

    def _prepare(self, sizes: Mapping[str, int]) -> None:
        def number(size: int | str) -> int:
            if isinstance(size, str) and size not in sizes:
                raise ValueError(f"[graph] compile: sizes say no number for '{size}'")
            return sizes[size] if isinstance(size, str) else size

        function, state = self._function, mx.random.state[0]
        fed = [
            mx.zeros([number(size) for size in shape], node.dtype)
            for node, shape in function.placeholders.values()
        ]
        try:
            function.run(fed, [variable._value for variable in function.reads])
        finally:
            mx.random.state[0] = state

    def _bound(self, feeds: Mapping[str, Any]) -> list[mx.array]:
        """The feeds in the order of the placeholders, after each was looked at."""
        wanted = self._function.placeholders
        for name in feeds:
            if name not in wanted:
                known = ", ".join(wanted)
                raise ValueError(f"[graph] feed '{name}': the function takes [{known}]")
        bound: dict[str, tuple[int, str]] = {}
        fed = []
        for name, (node, shape) in wanted.items():
            expected = f"{node!r}"
            if name not in feeds:
                raise ValueError(f"[graph] feed '{name}' is missing: {expected}")
            array = feeds[name]
            if not isinstance(array, mx.array):
                is_typed = hasattr(array, "dtype")
                array = mx.array(array) if is_typed else mx.array(array, node.dtype)
            wrong = f"[graph] feed '{name}' is {described(array)}, not what {expected} takes"
            if array.dtype != node.dtype or array.ndim != len(shape):
                raise ValueError(wrong)
            for have, size in zip(array.shape, shape):
                if isinstance(size, int):
                    if have != size:
                        raise ValueError(wrong)
                    continue
                first, of = bound.setdefault(size, (have, name))
                if first != have:
                    raise ValueError(f"{wrong}: '{size}' is {first} in feed '{of}'")
            fed.append(array)
        return fed
