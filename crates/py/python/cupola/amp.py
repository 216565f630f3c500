"""Mixed precision: products in a half type, sums and parameters in ``float32``.

Under :class:`autocast` operations cast their operands as a :class:`Policy` says. Parameters stay
``float32``; one that several operations read is cast once in a step. Gradients follow what was
recorded, so the scope needs to hold the forward pass alone, and ``compile``, ``checkpoint``, ``vmap``
and transforms of transforms are right within and around it.
"""

from __future__ import annotations

import json
from functools import wraps
from typing import Any, Callable, Dict, Iterable, List, Optional, Union

import cupola.core as mx
from cupola.nn.layers.base import Module
from cupola.utils import tree_flatten, tree_map

__all__ = [
    "Policy",
    "autocast",
    "GradScaler",
    "set_global_policy",
    "global_policy",
    "set_policy",
    "tune",
    "Tuned",
]

_CATEGORIES = ("lower", "float32", "widest", "unchanged")

# Keras' names, and what products compute in under them.
_NAMES = {
    "mixed_bfloat16": mx.bfloat16,
    "mixed_float16": mx.float16,
    "float32": mx.float32,
}


class Policy:
    """Which dtype each operation computes in.

    Args:
        dtype: What the operations of ``lower`` compute in: ``float16``, ``bfloat16``, or ``float32``,
            which brings half types back up.
        lower: Names of operations whose operands are to be cast to ``dtype``.
        float32: Names of operations whose operands are to be cast to ``float32``.
        widest: Names of operations whose operands are to be cast to the widest of them.
        unchanged: Names of operations whose operands are to stay as they are.

    Raises:
        ValueError: Where no operation of a name is cast, a name is given twice, or ``dtype`` is another.

    Example:
        >>> policy = amp.Policy(mx.bfloat16, float32=["tanh"])
        >>> "matmul" in policy.ops("lower"), "tanh" in policy.ops("float32")
        (True, True)
        >>> policy
        Policy(bfloat16, float32=['tanh'])
    """

    def __init__(
        self,
        dtype: mx.Dtype,
        *,
        lower: Iterable[str] = (),
        float32: Iterable[str] = (),
        widest: Iterable[str] = (),
        unchanged: Iterable[str] = (),
    ) -> None:
        self._native = mx._amp.Policy(dtype)
        self._changes: Dict[str, List[str]] = {}
        for category, ops in zip(_CATEGORIES, (lower, float32, widest, unchanged)):
            if ops := list(ops):
                self._changes[category] = ops
            for op in ops:
                named = [name for name, others in self._changes.items() if op in others]
                if len(named) > 1:
                    raise ValueError(f"[amp] {op!r} is named by {named[0]!r} and by {named[1]!r}")
                self._native = self._native.changed(op, category)

    @property
    def dtype(self) -> mx.Dtype:
        """What the operations of ``lower`` compute in."""
        return self._native.dtype

    def ops(self, category: str) -> List[str]:
        """The operations of ``lower``, ``float32``, ``widest`` or ``unchanged``.

        Example:
            >>> amp.Policy(mx.float16).ops("widest")
            ['addcdiv', 'addcmul', 'arctan2', 'concatenate', 'cross', 'stack']
        """
        return self._native.ops(category)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self._native == other._native

    def __hash__(self) -> int:
        return hash((str(self.dtype), tuple(self.ops("lower"))))

    def __repr__(self) -> str:
        changes = "".join(f", {category}={ops}" for category, ops in self._changes.items())
        return f"Policy({str(self.dtype).split('.')[-1]}{changes})"

    def __deepcopy__(self, memo: dict) -> Policy:
        return self

    def __reduce__(self) -> Any:
        return _policy, (str(self.dtype).split(".")[-1], self._changes)


def _policy(dtype: str, changes: Dict[str, List[str]]) -> Policy:
    return Policy(getattr(mx, dtype), **changes)


def _as_policy(policy: Union[str, Policy]) -> Policy:
    if isinstance(policy, Policy):
        return policy
    if policy not in _NAMES:
        raise ValueError(f"No policy {policy!r}; there are {', '.join(map(repr, _NAMES))}.")
    return Policy(_NAMES[policy])


class autocast:
    """A context, or a decorator, in which operations are recorded as a policy says.

    Scopes nest, the innermost holds, and a scope is its thread's.

    Args:
        dtype: What products compute in, ``float16`` or ``bfloat16``; or a :class:`Policy`.
        enabled: ``False`` for operations as they are written, inside of a scope, too.

    Example:
        >>> x = mx.ones((2, 2))
        >>> with amp.autocast(mx.bfloat16):
        ...     y = x @ x
        ...     z = mx.softmax(y)
        ...     with amp.autocast(enabled=False):
        ...         w = x @ x
        >>> y.dtype, z.dtype, w.dtype
        (mlx.core.bfloat16, mlx.core.float32, mlx.core.float32)
    """

    def __init__(self, dtype: Union[mx.Dtype, Policy] = mx.bfloat16, enabled: bool = True) -> None:
        policy = dtype if isinstance(dtype, Policy) else Policy(dtype)
        self.policy: Optional[Policy] = policy if enabled else None
        self._scopes: List[Any] = []

    def __enter__(self) -> autocast:
        scope = mx._amp.Scope(self.policy._native if self.policy else None)
        scope.__enter__()
        self._scopes.append(scope)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._scopes.pop().__exit__()

    def __call__(self, fun: Callable) -> Callable:
        """``fun`` in this scope."""
        policy = self.policy._native if self.policy else None

        @wraps(fun)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with mx._amp.Scope(policy):
                return fun(*args, **kwargs)

        return wrapped


def set_global_policy(policy: Union[str, Policy, None]) -> None:
    """Make a policy that of everything that is recorded outside of an :class:`autocast`, on any thread.

    Args:
        policy: ``"mixed_bfloat16"``, ``"mixed_float16"``, a :class:`Policy`, or ``"float32"`` or
            ``None`` for none.

    Raises:
        ValueError: Where there is no policy of that name.

    Example:
        >>> amp.set_global_policy("mixed_bfloat16")
        >>> nn.Linear(2, 2)(mx.ones((1, 2))).dtype
        mlx.core.bfloat16
        >>> amp.set_global_policy("float32")
    """
    none = policy is None or policy == "float32"
    mx._amp.set_global_policy(None if none else _as_policy(policy)._native)  # type: ignore[arg-type]


def global_policy() -> Optional[str]:
    """The name of the policy that :func:`set_global_policy` set; ``None`` for one of a user's.

    Example:
        >>> amp.global_policy()
        'float32'
    """
    policy = mx._amp.global_policy()
    if policy is None:
        return "float32"
    named = (name for name, dtype in _NAMES.items() if policy == mx._amp.Policy(dtype))
    return next(named, None)


def set_policy(module: Module, policy: Union[str, Policy, None]) -> Module:
    """Record what ``module`` computes under a policy of its own, whatever holds around it.

    Args:
        module: The module, which has the policy as ``module.policy`` from now on.
        policy: As in :func:`set_global_policy`; ``"float32"`` computes in ``float32`` where half types
            come in, too, and ``None`` takes the module's policy away.

    Returns:
        The module.

    Raises:
        TypeError: Where ``module`` is no module.
        AttributeError: Where the module has an attribute ``policy`` of its own.
        ValueError: Where there is no policy of that name.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 4), amp.set_policy(nn.Linear(4, 2), "float32"))
        >>> with amp.autocast(mx.bfloat16):
        ...     model(mx.ones((1, 2))).dtype
        mlx.core.float32
    """
    own = type(module)
    if not isinstance(module, Module):
        raise TypeError(f"set_policy: module should be an nn.Module, not a {own.__name__}")
    is_scoped = isinstance(module, _Scoped)
    if policy is None and not is_scoped:
        return module
    if not is_scoped and hasattr(module, "policy"):
        raise AttributeError(f"set_policy: this {own.__name__} has an attribute 'policy' of its own")
    found = None if policy is None else _as_policy(policy)
    base = own.__bases__[0] if is_scoped else own
    object.__setattr__(module, "__class__", base)
    if found is None:
        del module.__dict__["policy"]
    else:
        object.__setattr__(module, "policy", found)
        object.__setattr__(module, "__class__", _scoped(base))
    # What was compiled may have been traced through this module.
    mx._amp.renew_traces()
    return module


class _Scoped:
    """Marks the classes that :func:`_scoped` makes."""

    policy: Policy


_CLASSES: Dict[type, type] = {}


def _scoped(base: type) -> type:
    """``base`` with calls under ``self.policy``."""
    if base not in _CLASSES:

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            with mx._amp.Scope(self.policy._native):
                return base.__call__(self, *args, **kwargs)

        def reduce(self: Any, protocol: Any) -> Any:
            make, arguments, *rest = base.__reduce_ex__(self, protocol)
            return (_rebuilt, (base, make, arguments[1:]), *rest)

        def to_quantized(self: Any, *args: Any, **kwargs: Any) -> Any:
            return set_policy(base.to_quantized(self, *args, **kwargs), self.policy)

        members = {"__call__": call, "__reduce_ex__": reduce, "__module__": base.__module__}
        if hasattr(base, "to_quantized"):
            members["to_quantized"] = to_quantized
        _CLASSES[base] = type(base.__name__, (base, _Scoped), members)
    return _CLASSES[base]


def _rebuilt(base: type, make: Callable, arguments: tuple) -> Any:
    """A module as pickle makes one, of the class that :func:`_scoped` gives."""
    return make(_scoped(base), *arguments)


class Tuned:
    """What :func:`tune` found. It prints as a table.

    Example:
        >>> x = mx.ones((2, 2))
        >>> tuned = amp.tune(lambda: (x @ x).sum(), steps=1)
        >>> tuned.to_dict()["groups"][0]["ops"], tuned.policy.dtype
        (['matmul'], mlx.core.bfloat16)
    """

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def policy(self) -> Policy:
        """What is proposed, for :class:`autocast`, :func:`set_policy` or :func:`set_global_policy`."""
        native, usual = self._native.policy, mx._amp.Policy(self._native.policy.dtype)
        changed: Dict[str, List[str]] = {}
        for category in _CATEGORIES:
            if ops := [op for op in native.ops(category) if op not in usual.ops(category)]:
                changed[category] = ops
        return Policy(native.dtype, **changed)

    def to_dict(self) -> Dict[str, Any]:
        """All of it, as JSON takes it: times in milliseconds, deviations as parts of the loss."""
        return json.loads(self._native.to_json())

    def __str__(self) -> str:
        return str(self._native)


def tune(
    step: Callable[[], Any],
    *,
    model: Optional[Module] = None,
    optimizer: Any = None,
    dtype: mx.Dtype = mx.bfloat16,
    steps: int = 5,
    tolerance: float = 0.01,
) -> Tuned:
    """Measure each group of operations of a training step in ``float32`` and in a half type, and propose a policy.

    The groups are the convolutions, products, attention, normalisations, activations and losses that the step has. A
    group is kept in the half type where steps then take less time and no loss deviates by more than ``tolerance``,
    with the groups that were kept before: so what is proposed was measured as a whole. It takes some dozens of
    trials of ``steps`` steps.

    Args:
        step: Gives the loss, or a tree with the loss first, all of which is computed. It is called under the policies
            that are tried, and opens no :class:`autocast` of its own.
        model: What the step changes the parameters of, if it does; they are put back.
        optimizer: What the step updates with, if it does; its state is put back.
        dtype: The half type.
        steps: How many steps a trial has.
        tolerance: How far a loss may be from that of ``float32``, as a part of it.

    Raises:
        ValueError: Where the loss is not one real number, which is finite in ``float32``, or an argument is out of its
            range.

    Example:
        >>> model, x, y = nn.Linear(8, 1), mx.ones((4, 8)), mx.zeros((4, 1))
        >>> step = nn.value_and_grad(model, lambda: nn.losses.mse_loss(model(x), y))
        >>> tuned = amp.tune(step)
        >>> [group["group"] for group in tuned.to_dict()["groups"]]
        ['products']
        >>> with amp.autocast(tuned.policy):
        ...     y = model(x)
    """
    if optimizer is not None and model is not None and not optimizer._initialized:
        optimizer.init(model.trainable_parameters())
    states = [] if optimizer is None else _states(optimizer)
    kept = [_copied(state) for state in states]
    parameters = None if model is None else _copied(model.parameters())

    def reset() -> None:
        if model is not None:
            model.update(_copied(parameters))
        for state, before in zip(states, kept):
            _put(state, before)

    def computed() -> List[mx.array]:
        found = [leaf for _, leaf in tree_flatten(step())]
        # What a step leaves lazy is part of it.
        changed = [] if model is None else [leaf for _, leaf in tree_flatten(model.parameters())]
        changed += [leaf for state in states for _, leaf in tree_flatten(state)]
        return found + [leaf for leaf in changed if isinstance(leaf, mx.array)]

    return Tuned(mx._amp.tune(computed, reset, dtype, steps, tolerance))


class GradScaler:
    """Multiplies the loss, and divides the gradients by the same, so that small gradients do not vanish
    in ``float16``.

    A step whose gradients are not all finite changes nothing, and the scale backs off; after
    ``growth_interval`` finite steps it grows. Whether a step is skipped is decided on the device:
    nothing is read back, and the whole step compiles with ``scaler.state`` among its state.

    Args:
        init_scale: The scale at first.
        growth_factor: What it is multiplied by after ``growth_interval`` finite steps.
        backoff_factor: What it is multiplied by after a step that was not finite.
        growth_interval: How many finite steps there are between growths.
        enabled: ``False`` for a scaler that does nothing but call the optimiser.

    Raises:
        ValueError: Where an argument is out of its range.

    Example:
        >>> model, optimizer = nn.Linear(2, 1), optim.SGD(0.1)
        >>> scaler = amp.GradScaler(init_scale=8.0)
        >>> def loss(x):
        ...     with amp.autocast(mx.float16):
        ...         return scaler.scale(model(x).square().mean())
        >>> scaled, gradients = nn.value_and_grad(model, loss)(mx.ones((3, 2)))
        >>> scaler.step(optimizer, model, gradients)
        >>> scaler.update()
        >>> scaler.get_scale().item()
        8.0
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self.enabled = enabled
        #: Scale and count of finite steps: what a compiled step has among its state.
        self.state: Dict[str, mx.array] = {}
        self._take("init_scale", init_scale, 0, growth_factor, backoff_factor, growth_interval)

    def _take(self, name: str, scale: Any, tracker: Any, growth: Any, backoff: Any, interval: Any) -> None:
        """Go on with these numbers, which a file of arrays has as such; where one is wrong nothing changes."""
        numbers = (scale, tracker, growth, backoff, interval)
        scale, tracker, growth, backoff, interval = (v.item() if hasattr(v, "item") else v for v in numbers)
        # The device multiplies in float32.
        own_scale, own_growth, own_backoff = (mx.array(v, mx.float32).item() for v in (scale, growth, backoff))
        for holds, what, value in (
            (2.0**-126 <= own_scale < float("inf"), f"{name} should be finite in float32 and at least 2⁻¹²⁶", scale),
            (1 <= growth and own_growth < float("inf"), "growth_factor should be finite and at least 1", growth),
            (0 < backoff and own_backoff < 1, "backoff_factor should be in (0, 1)", backoff),
            (
                isinstance(interval, int) and 1 <= interval < 2**31,
                "growth_interval should be a whole number of at least 1, below 2³¹",
                interval,
            ),
            (
                isinstance(tracker, int) and 0 <= tracker < 2**31 - 1,
                "growth_tracker should be a whole number of at least 0, below 2³¹ - 1",
                tracker,
            ),
        ):
            if not holds:
                raise ValueError(f"GradScaler: {what}, {value} was provided instead")
        self.growth_factor, self.backoff_factor, self.growth_interval = growth, backoff, interval
        self.state.update(scale=mx.array(scale, mx.float32), growth_tracker=mx.array(tracker, mx.int32))
        self._finite: Optional[mx.array] = None

    def get_scale(self) -> mx.array:
        """What the loss is multiplied by now."""
        return self.state["scale"] if self.enabled else mx.array(1.0)

    def scale(self, loss: mx.array) -> mx.array:
        """The loss times the scale, in ``float32``."""
        return loss.astype(mx.float32) * self.state["scale"] if self.enabled else loss

    def unscale(self, gradients: Any) -> Any:
        """The gradients over the scale, to be clipped before :meth:`step`.

        Raises:
            RuntimeError: Where this step's gradients were unscaled already.
        """
        if not self.enabled:
            return gradients
        if self._finite is not None:
            raise RuntimeError("GradScaler.unscale was called already since the last update.")
        inverse = 1.0 / self.state["scale"]
        unscaled = tree_map(lambda gradient: gradient.astype(mx.float32) * inverse, gradients)
        finite = mx.array(True)
        for _, gradient in tree_flatten(unscaled):
            finite = mx.logical_and(finite, mx.all(mx.isfinite(gradient)))
        self._finite = finite
        return unscaled

    def step(self, optimizer: Any, model: Module, gradients: Any) -> None:
        """Update ``model`` and the state of ``optimizer`` where the gradients are finite.

        Args:
            optimizer: The optimiser.
            model: The module.
            gradients: Those of a scaled loss, or what :meth:`unscale` made of them.
        """
        if not self.enabled:
            optimizer.update(model, gradients)
            return
        if self._finite is None:
            gradients = self.unscale(gradients)
        finite = self._finite
        if not optimizer._initialized:
            optimizer.init(gradients)
        states = _states(optimizer)
        former = dict(tree_flatten(model.parameters()))
        kept = [_copied(state) for state in states]
        optimizer.update(model, gradients)
        changed = dict(tree_flatten(gradients))
        chosen = [
            (name, _chosen(finite, value, former[name]))
            for name, value in tree_flatten(model.parameters())
            if name in changed
        ]
        model.load_weights(chosen, strict=False)
        for state, before in zip(states, kept):
            _choose(finite, state, before)

    def update(self) -> None:
        """End the step: let the scale back off or grow.

        Raises:
            RuntimeError: Where no gradients were looked at since the last update.
        """
        if not self.enabled:
            return
        if self._finite is None:
            raise RuntimeError("GradScaler.update was called without a step or an unscale before it.")
        finite, self._finite = self._finite, None
        scale, count = self.state["scale"], self.state["growth_tracker"] + 1
        due = count >= self.growth_interval
        grown = scale * self.growth_factor
        kept = mx.where(mx.logical_and(due, mx.isfinite(grown)), grown, scale)
        self.state["scale"] = mx._nn.update(
            # Never so small that its inverse is infinite.
            mx.where(finite, kept, mx.maximum(scale * self.backoff_factor, 2.0**-126)), scale
        )
        counts = mx.logical_and(finite, mx.logical_not(due))
        tracker = mx.where(counts, count, mx.zeros_like(count))
        self.state["growth_tracker"] = mx._nn.update(tracker, self.state["growth_tracker"])

    def state_dict(self) -> Dict[str, Any]:
        """What :meth:`load_state_dict` takes.

        Example:
            >>> amp.GradScaler(init_scale=4.0).state_dict()["scale"].item()
            4.0
        """
        return {
            **self.state,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Put what :meth:`state_dict` gave in place.

        Raises:
            KeyError: Where something is missing; nothing has changed then.
            ValueError: Where something is out of its range; nothing has changed then.
        """
        names = ("scale", "growth_tracker", "growth_factor", "backoff_factor", "growth_interval")
        self._take("scale", *(state[name] for name in names))


def _states(optimizer: Any) -> List[Any]:
    """The states that an update changes: an optimiser of several has one for each."""
    return [part._state for part in getattr(optimizer, "optimizers", [optimizer])]


def _copied(tree: Any) -> Any:
    return tree_map(lambda leaf: leaf, tree)


def _put(state: Any, before: Any) -> None:
    """Put the former arrays back into ``state``, in place: compiled steps know it by its containers."""
    for key, value in before.items() if isinstance(before, dict) else enumerate(before):
        if isinstance(value, (dict, list)):
            _put(state[key], value)
        else:
            state[key] = value


def _chosen(finite: Optional[mx.array], value: mx.array, before: mx.array) -> mx.array:
    """``value`` where a step was finite; what it was before where it was not, or cannot be computed."""
    return mx._nn.update(mx.where(finite, value, before), before)


def _choose(finite: Optional[mx.array], state: Any, before: Any) -> None:
    """Put the former arrays back into ``state``, in place, where a step was not finite."""
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        if isinstance(value, mx.array):
            state[key] = _chosen(finite, value, before[key])
        elif isinstance(value, (dict, list)):
            _choose(finite, value, before[key])
