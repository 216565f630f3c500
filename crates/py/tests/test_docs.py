"""What users read: every name has a text, every example gives what it says.

In examples ``amp`` is ``cupola.amp``, ``mx`` is ``cupola.core``, ``nn`` is ``cupola.nn``, ``optim`` is ``cupola.optimizers`` and
``data`` is ``cupola.data``, and so on.
"""

import ast
import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import cupola
import cupola.amp as amp
import cupola.core as mx
import cupola.data as data
import cupola.nn as nn
import cupola.optimizers as optim
import cupola.profiler as profiler
import cupola.train as train
from cupola import utils

HOME = Path(cupola.__file__).parent
STUBS = sorted((HOME / "core").glob("*.pyi"))
# Found as files: importing cupola.mlx would put Cupola in MLX's place for all tests that come after.
MODULES = sorted(
    ".".join(("cupola", *path.relative_to(HOME).with_suffix("").parts)).removesuffix(".__init__")
    for path in HOME.rglob("*.py")
    if path.relative_to(HOME).parts[0] not in ("__init__.py", "mlx")
)
PACKAGES = [amp, profiler, nn, nn.losses, nn.init, nn.utils, optim, train, utils, data]
GLOBALS = {"amp": amp, "mx": mx, "nn": nn, "optim": optim, "data": data, "profiler": profiler, "train": train}


def stubbed(path):
    """The definitions of a stub: the dotted name, the node and the object that it stands for."""
    home = mx if path.stem == "__init__" else getattr(mx, path.stem)
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        own = getattr(home, node.name)
        yield node.name, node, own
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner, getattr(own, inner.name)


def written():
    """The public functions and classes that are written in Python, and the methods of the classes."""
    seen = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for own in vars(module).values():
            if getattr(own, "__module__", None) != name or own in seen:
                continue
            if own.__name__.startswith("_") or not (inspect.isfunction(own) or inspect.isclass(own)):
                continue
            seen.add(own)
            yield f"{name}.{own.__name__}", own, module


def run(name, text, extra):
    """Runs the examples in a text."""
    parser, out = doctest.DocTestParser(), []
    examples = parser.get_doctest(text, {**extra, **GLOBALS}, name, None, 0)
    doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(examples, out=out.append)
    assert not any("Failed example" in line for line in out), "\n".join(out)
    return len(examples.examples)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(monkeypatch, tmp_path):
    """Examples write files."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def printed_as_ever():
    yield
    mx.set_printoptions(precision=-1)


@pytest.mark.parametrize("path", STUBS, ids=lambda path: path.stem)
def test_stubs_say_what_python_says(path):
    """The texts in the stubs are those that ``help`` shows, and everything public has one."""
    for name, node, own in stubbed(path):
        text = ast.get_docstring(node)
        if name.rpartition(".")[2].startswith("_"):
            continue
        assert text, f"{name} has no text"
        assert inspect.getdoc(own) == text, name


@pytest.mark.parametrize("path", STUBS, ids=lambda path: path.stem)
def test_examples_of_the_stubs(path):
    for name, node, _ in stubbed(path):
        text = ast.get_docstring(node) or ""
        count = run(name, text, {})
        is_missing = "Not there yet" in text
        if not (path.stem.startswith("_") and path.stem != "__init__") and "." not in name:
            assert count or is_missing or name.startswith("_"), f"{name} has no example"


WRITTEN = list(written())


@pytest.mark.parametrize("name, own, module", WRITTEN, ids=[name for name, *_ in WRITTEN])
def test_examples_of_the_modules(name, own, module):
    assert own.__doc__, f"{name} has no text"
    count = run(name, inspect.getdoc(own), vars(module))
    is_exported = any(getattr(package, own.__name__, None) is own for package in PACKAGES)
    assert count or not is_exported, f"{name} has no example"
    for key, member in vars(own).items() if inspect.isclass(own) else ():
        if not key.startswith("_") and inspect.isfunction(member):
            assert member.__doc__, f"{name}.{key} has no text"
            run(f"{name}.{key}", inspect.getdoc(member), vars(module))


def test_modules_say_what_they_are():
    for name in [*MODULES, "cupola", "cupola.core"]:
        assert importlib.import_module(name).__doc__, name
    assert ast.get_docstring(ast.parse((HOME / "mlx" / "__init__.py").read_text()))
    for path in STUBS:
        home = mx if path.stem == "__init__" else getattr(mx, path.stem)
        assert home.__doc__ and ast.get_docstring(ast.parse(path.read_text())) == home.__doc__
