"""The base class of all modules."""

from __future__ import annotations

import textwrap
from os import PathLike, fspath
from types import MethodType
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import cupola.core as mx
from cupola.utils import tree_flatten, tree_unflatten

_Filter = Callable[["Module", str, Any], bool]


class _ForwardAlias:
    """``forward`` of a class that defines ``__call__``; a member of that name comes first."""

    def __init__(self, call: Callable) -> None:
        self.call = call

    def __get__(self, instance: Optional[Module], owner: Optional[type] = None) -> Any:
        if instance is None:
            return self.call
        if "forward" in instance:
            return instance["forward"]
        return MethodType(self.call, instance)


def _show(of: type[Module], key: str) -> None:
    """Let Python find items of this name as it finds methods, where nothing else of the class has a say in that."""
    is_plain = of.__getattr__ is Module.__getattr__ and of.__getitem__ is dict.__getitem__
    if is_plain and key != "forward" and not key.startswith("__") and not hasattr(of, key):
        type.__setattr__(of, key, mx._nn.Item(key))


class Module(dict):
    """A container of arrays and other modules, with a function.

    A subclass sets its parameters and submodules as attributes in ``__init__`` and says in
    ``__call__`` or in ``forward`` what it computes; either name calls the other. Arrays,
    modules, lists, tuples and dictionaries that are set as attributes are the items of the
    module, which is a dictionary; every other attribute is an ordinary one. All arrays in a module
    are trainable until :meth:`freeze` says otherwise, but for members whose names begin with an
    underscore, which are no parameters.

    Example:
        >>> class Perceptron(nn.Module):
        ...     def __init__(self, inputs, outputs):
        ...         super().__init__()
        ...         self.hidden = nn.Linear(inputs, 16)
        ...         self.out = nn.Linear(16, outputs)
        ...
        ...     def __call__(self, x):
        ...         return self.out(nn.relu(self.hidden(x)))
        >>> model = Perceptron(4, 2)
        >>> model(mx.ones((3, 4))).shape
        (3, 2)
        >>> [name for name, _ in tree_flatten(model.parameters())]
        ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
    """

    _no_grad: set
    _training: bool

    def __init__(self) -> None:
        """Begin an empty module; subclasses call this before they set anything."""
        self._no_grad = set()
        self._training = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let ``forward`` and ``__call__`` stand for each other."""
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__:
            call, forward = base.__dict__.get("__call__"), base.__dict__.get("forward")
            if call is not None and forward is None:
                setattr(cls, "forward", _ForwardAlias(call))
            elif forward is not None and call is None:
                setattr(cls, "__call__", forward)
            if call is not None or forward is not None:
                break

    # What a module holds

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._training

    @property
    def state(self) -> Module:
        """The module's items by reference: a change of them changes the module."""
        return self

    def _extra_repr(self) -> str:
        return ""

    def __repr__(self) -> str:
        """The class, its own description, and the submodules below it."""
        children: Any = tree_flatten(self.children(), is_leaf=self.is_module)
        head = f"{type(self).__name__}({self._extra_repr()}"
        for name, child in children:
            head += "\n" + textwrap.indent(f"({name}): {child!r}", prefix="  ")
        return head + ("\n)" if children else ")")

    def __getattr__(self, key: str) -> Any:
        """The item of this name."""
        if key in self:
            return self[key]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {key!r}")

    def __setattr__(self, key: str, val: Any) -> None:
        """Set an item where ``val`` can hold parameters, and an ordinary attribute otherwise."""
        if isinstance(val, (mx.array, dict, list, tuple)):
            of = type(self)
            if key in self.__dict__:
                super().__delattr__(key)
            elif hasattr(of, key) and key != "forward":
                raise AttributeError(
                    f"{key!r} is an attribute of {of.__name__!r}, no item can hide it"
                )
            if key not in of.__dict__:
                _show(of, key)
            self[key] = val
        else:
            super().__setattr__(key, val)
            self.pop(key, None)

    def __delattr__(self, name: str) -> None:
        """Delete the item or the attribute of this name."""
        if name in self:
            del self[name]
        else:
            super().__delattr__(name)

    # Files

    def load_weights(
        self,
        file_or_weights: Union[str, List[Tuple[str, mx.array]]],
        strict: bool = True,
    ) -> Module:
        """Take parameters from a file or from pairs of name and array.

        Args:
            file_or_weights: The path of a ``.npz`` or ``.safetensors`` file, or the pairs.
            strict: Whether names and shapes have to be those of the module. Otherwise what the
                module has is taken, and shapes are not looked at.

        Returns:
            The module.

        Raises:
            ValueError: If parameters are missing, unknown, or of another shape.
        """
        weights: Any = file_or_weights
        if isinstance(weights, (str, PathLike)):
            weights = list(mx.load(fspath(weights)).items())
        if strict:
            self._check_weights(dict(weights))
        if len(weights) != 0:
            self.update(tree_unflatten(weights), strict=False)
        return self

    def _check_weights(self, weights: Dict[str, Any]) -> None:
        """Raise a ``ValueError`` unless ``weights`` has this module's names and shapes."""
        current: Any = tree_flatten(self.parameters(), destination={})
        if extra := sorted(weights.keys() - current.keys()):
            listed = ",\n".join(extra)
            raise ValueError(f"Received {len(extra)} parameters not in model: \n{listed}.")
        if missing := sorted(current.keys() - weights.keys()):
            listed = ",\n".join(missing)
            raise ValueError(f"Missing {len(missing)} parameters: \n{listed}.")
        for name, array in current.items():
            new = weights[name]
            if not isinstance(new, mx.array):
                raise ValueError(
                    f"Expected mx.array but received {type(new)} for parameter {name}"
                )
            if new.shape != array.shape:
                raise ValueError(
                    f"Expected shape {array.shape} but received shape {new.shape} "
                    f"for parameter {name}"
                )

    def save_weights(self, file: str) -> None:
        """Write the parameters to a file.

        Args:
            file: The path; it ends in ``.npz`` or ``.safetensors``.

        Raises:
            ValueError: If it ends in something else.
        """
        weights: Any = tree_flatten(self.parameters(), destination={})
        file = fspath(file)
        if file.endswith(".npz"):
            mx.savez(file, **weights)
        elif file.endswith(".safetensors"):
            mx.save_safetensors(file, weights)
        else:
            raise ValueError(
                f"Unsupported file extension for {file}. Use '.npz' or '.safetensors'."
            )

    # Walking through a module

    @staticmethod
    def is_module(value: Any) -> bool:
        """Whether ``value`` is a module."""
        return isinstance(value, Module)

    @staticmethod
    def valid_child_filter(module: Module, key: str, value: Any) -> bool:
        """Keep what can hold modules: the filter of :meth:`children`."""
        return isinstance(value, (dict, list))

    @staticmethod
    def valid_parameter_filter(module: Module, key: str, value: Any) -> bool:
        """Keep what can hold parameters: the filter of :meth:`parameters`."""
        return isinstance(value, (dict, list, mx.array)) and not key.startswith("_")

    @staticmethod
    def trainable_parameter_filter(module: Module, key: str, value: Any) -> bool:
        """Keep what is not frozen: the filter of :meth:`trainable_parameters`."""
        return Module.valid_parameter_filter(module, key, value) and key not in module._no_grad

    def filter_and_map(
        self,
        filter_fn: Callable[[Module, str, Any], bool],
        map_fn: Optional[Callable] = None,
        is_leaf_fn: Optional[Callable[[Module, str, Any], bool]] = None,
    ) -> Dict[str, Any]:
        """Select members of the module and of the modules in it, and map them.

        Args:
            filter_fn: Called with the module that contains a value, its key there (dotted inside
                of lists and dictionaries) and the value; whether to keep it.
            map_fn: Called with each leaf that is kept; the leaf itself by default.
            is_leaf_fn: Called like ``filter_fn``; whether the value is a leaf. By default a leaf
                is what is neither a module nor a list or dictionary.

        Returns:
            Nested dictionaries and lists.
        """
        usual = (Module.valid_parameter_filter, Module.trainable_parameter_filter)
        if map_fn is None and is_leaf_fn is None and filter_fn in usual:
            # Every step asks for all parameters.
            trainable = filter_fn is Module.trainable_parameter_filter
            return mx._nn.parameters(self, Module, trainable)
        map_fn = map_fn or (lambda value: value)
        is_leaf_fn = is_leaf_fn or (
            lambda module, key, value: not isinstance(value, (Module, dict, list))
        )
        return {
            key: _unwrap(self, key, value, filter_fn, map_fn, is_leaf_fn)
            for key, value in self.items()
            if filter_fn(self, key, value)
        }

    def parameters(self) -> Dict[str, Any]:
        """All arrays of the module and its submodules, as nested dictionaries and lists."""
        return self.filter_and_map(self.valid_parameter_filter)

    def trainable_parameters(self) -> Dict[str, Any]:
        """The arrays that are not frozen, as nested dictionaries and lists."""
        return self.filter_and_map(self.trainable_parameter_filter)

    def children(self) -> Dict[str, Any]:
        """The modules directly below this one."""
        return self.filter_and_map(
            self.valid_child_filter,
            is_leaf_fn=lambda module, key, value: isinstance(value, Module),
        )

    def leaf_modules(self) -> Dict[str, Any]:
        """The modules without submodules, in the structure that they stand in."""

        def is_leaf(module: Module, key: str, value: Any) -> bool:
            # As in MLX, a submodule that holds nothing, such as an activation, does not count.
            return isinstance(value, Module) and not tree_flatten(value.children())

        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=is_leaf)

    def modules(self) -> List[Module]:
        """This module and all modules in it."""
        return [module for _, module in self.named_modules()]

    def named_modules(self) -> List[Tuple[str, Module]]:
        """This module, as ``""``, and all modules in it with their dotted names."""
        found: List[Tuple[str, Module]] = []
        # Each with the modules that it is in: one of them again would have no end.
        stack: List[Tuple[str, Module, Tuple[int, ...]]] = [("", self, ())]
        while stack:
            name, module, around = stack.pop()
            if id(module) in around:
                raise RecursionError(f"{type(module).__name__} holds itself, as '{name}'")
            found.append((name, module))
            prefix = f".{name}" if name else ""
            below: Any = tree_flatten(module.children(), prefix=prefix, is_leaf=self.is_module)
            around = (*around, id(module))
            stack.extend((*child, around) for child in below)
        return found

    def apply_to_modules(self, apply_fn: Callable[[str, Module], Any]) -> Module:
        """Call ``apply_fn`` with the dotted name of each module in this one, and the module.

        Returns:
            The module.
        """
        for name, module in self.named_modules():
            apply_fn(name, module)
        return self

    # Changing a module

    def update(  # type: ignore[override]
        self, parameters: dict, strict: bool = True
    ) -> Module:
        """Replace parameters by those at the same places in ``parameters``.

        Args:
            parameters: Nested dictionaries and lists; places that it lacks keep their arrays.
            strict: Whether a place that the module lacks, or a value that is no array, is an
                error. Otherwise it is passed over.

        Returns:
            The module.

        Raises:
            ValueError: If ``strict`` and something does not fit.
        """
        _replace(self, parameters, strict, "parameter", mx.array)
        return self

    def apply(
        self,
        map_fn: Callable[[mx.array], mx.array],
        filter_fn: Optional[Callable[[Module, str, Any], bool]] = None,
    ) -> Module:
        """Replace each parameter by what ``map_fn`` makes of it.

        Args:
            map_fn: From an array to an array.
            filter_fn: Which arrays to map; all parameters by default.

        Returns:
            The module.
        """
        self.update(self.filter_and_map(filter_fn or self.valid_parameter_filter, map_fn))
        return self

    def update_modules(self, modules: dict, strict: bool = True) -> Module:
        """Replace submodules by those at the same places in ``modules``.

        Args:
            modules: Nested dictionaries and lists; places that it lacks keep their modules.
            strict: Whether a place that the module lacks, or a value that is no module, is an
                error. Otherwise it is passed over.

        Returns:
            The module.

        Raises:
            ValueError: If ``strict`` and something does not fit.
        """
        _replace(self, modules, strict, "sub-module", Module)
        return self

    def set_dtype(
        self,
        dtype: mx.Dtype,
        predicate: Optional[Callable[[mx.Dtype], bool]] = lambda x: mx.issubdtype(x, mx.floating),
    ) -> None:
        """Cast the parameters.

        Args:
            dtype: The new dtype.
            predicate: From the dtype of a parameter to whether it is cast; floating ones by
                default, all if it is ``None``.
        """
        self.apply(lambda x: x.astype(dtype) if predicate is None or predicate(x.dtype) else x)

    # Training

    def _listed(self, keys: Union[str, List[str]], strict: bool, recurse: bool) -> List[str]:
        """``keys`` as a list; if ``strict``, each has to be in one of the modules."""
        listed = [keys] if isinstance(keys, str) else list(keys)
        modules = self.modules() if recurse else [self]
        for key in listed if strict else []:
            if not any(key in module for module in modules):
                raise KeyError(f"Module doesn't contain member {key}.")
        return listed

    def _own_parameters(self) -> List[str]:
        """The dotted names of the parameters that no submodule holds."""
        own: Any = tree_flatten(
            self.filter_and_map(
                lambda module, key, value: not isinstance(value, Module)
                and self.valid_parameter_filter(module, key, value)
            )
        )
        return [name for name, _ in own]

    def freeze(
        self,
        *,
        recurse: bool = True,
        keys: Optional[Union[str, List[str]]] = None,
        strict: bool = False,
    ) -> Module:
        """Take parameters out of training: they get no gradients.

        Args:
            recurse: Whether submodules are frozen, too.
            keys: The names of the parameters to freeze; all by default.
            strict: Whether a key that none of the modules has is an error.

        Returns:
            The module.

        Raises:
            KeyError: If ``strict`` and none of the modules has a key.
        """

        listed = None if keys is None else self._listed(keys, strict, recurse)
        for module in self.modules() if recurse else [self]:
            module._no_grad.update(module._own_parameters() if listed is None else listed)
        return self

    def unfreeze(
        self,
        *,
        recurse: bool = True,
        keys: Optional[Union[str, List[str]]] = None,
        strict: bool = False,
    ) -> Module:
        """Undo :meth:`freeze`.

        Args:
            recurse: Whether submodules are unfrozen, too.
            keys: The names of the parameters to unfreeze; all by default.
            strict: Whether a key that none of the modules has is an error.

        Returns:
            The module.

        Raises:
            KeyError: If ``strict`` and none of the modules has a key.
        """

        listed = None if keys is None else self._listed(keys, strict, recurse)
        for module in self.modules() if recurse else [self]:
            module._no_grad.difference_update(set(module._no_grad) if listed is None else listed)
        return self

    def _set_training_mode(self, mode: bool) -> None:
        self._training = mode

    def train(self, mode: bool = True) -> Module:
        """Set training mode for this module and all in it, or evaluation mode.

        Layers such as :class:`Dropout` and :class:`BatchNorm` differ between the two.

        Returns:
            The module.
        """
        self.apply_to_modules(lambda _, module: module._set_training_mode(mode))
        return self

    def eval(self) -> Module:
        """Set evaluation mode for this module and all in it; see :meth:`train`."""
        return self.train(False)


def checked_format(module: Module, data_format: str) -> str:
    """Where a module's input has its channels, if it is one of the two places."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(
            f"[{type(module).__name__}] 'data_format' must be channels_last or channels_first, "
            f"not {data_format!r}"
        )
    return data_format


def _unwrap(
    module: Module, key: str, value: Any, keep: _Filter, fn: Callable, is_leaf: _Filter
) -> Any:
    """The part of :meth:`Module.filter_and_map` below one value."""
    if is_leaf(module, key, value):
        return fn(value)
    if isinstance(value, Module):
        return {
            k: _unwrap(value, k, v, keep, fn, is_leaf)
            for k, v in value.items()
            if keep(value, k, v)
        }

    def inside(k: Any, v: Any) -> Any:
        k = f"{key}.{k}"
        return _unwrap(module, k, v, keep, fn, is_leaf) if keep(module, k, v) else {}

    if isinstance(value, dict):
        return {k: inside(k, v) for k, v in value.items()}
    if isinstance(value, list):
        return [inside(i, v) for i, v in enumerate(value)]
    raise RuntimeError("Unexpected leaf found while traversing the module")


def _replace(target: Any, new: Any, strict: bool, what: str, kind: type) -> None:
    """Replace the values of a ``kind`` inside of ``target`` by those in ``new``."""
    if isinstance(new, dict):
        keys: Any = new.keys()
    elif isinstance(new, list):
        keys = range(len(new))
    elif strict:
        raise ValueError(f"Received invalid type: {type(new).__name__}.")
    else:
        return
    for key in keys:
        if isinstance(new, list) and key >= len(target):
            if strict:
                raise ValueError(
                    f"List index {key} is out of bounds for destination of length {len(target)}."
                )
            return
        if isinstance(new, dict) and key not in target:
            if strict:
                raise ValueError(f'Module does not have {what} named "{key}".')
            continue
        current, value = target[key], new[key]
        if isinstance(current, kind) and isinstance(value, kind):
            target[key] = value
        elif isinstance(current, mx.array) and kind is mx.array and not strict:
            target[key] = value
        elif isinstance(current, (dict, list, tuple)):
            _replace(current, value, strict, what, kind)
        elif strict and not (isinstance(value, dict) and len(value) == 0):
            raise ValueError(f"Received invalid type: {type(value).__name__}.")
