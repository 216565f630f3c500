"""``python -m cupola.mlx`` and ``import cupola.mlx``."""

import os
import subprocess
import sys
import tempfile
import textwrap
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("CUPOLA_STAND_IN")), reason="the programs run in other processes"
)

# A stand-in for the installed package, found behind the program's folder.
FAKE = {"core" + EXTENSION_SUFFIXES[0]: "", "fake.py": "x = 'fake'"}


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def python(*arguments, cwd=None, **env):
    command = [sys.executable, *map(str, arguments)]
    # Without that folder a graphics driver may add a line to what the program prints.
    environment = {"XDG_RUNTIME_DIR": tempfile.gettempdir(), **os.environ}
    environment.update((k, str(v)) for k, v in env.items())
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=cwd, env=environment
    )


def run(*arguments, **options):
    done = python("-m", "cupola.mlx", *arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


MODULES = """\
import importlib, sys
import mlx.core as mx, mlx.nn as nn, mlx.optimizers as optim, mlx.utils
import mlx.nn.losses, mlx.nn.init, mlx.nn.utils
from mlx.nn.layers.base import Module
from mlx.optimizers import schedulers
from mlx.utils import tree_map
import cupola.core, cupola.nn, cupola.optimizers, cupola.utils

for name in ("core", "nn", "optimizers", "utils", "nn.losses", "nn.init", "nn.utils", "nn.layers",
             "nn.layers.base", "nn.layers.linear", "nn.layers.activations", "optimizers.optimizers",
             "optimizers.schedulers", "core.random", "core.fast", "core.linalg", "core.fft"):
    ours = importlib.import_module("cupola." + name)
    theirs = importlib.import_module("mlx." + name)
    assert ours is theirs, name
    assert ours.__name__ == ours.__spec__.name == "cupola." + name if ours.__spec__ else True, name
    parent, _, child = ("mlx." + name).rpartition(".")
    assert getattr(sys.modules[parent], child) is ours, name
assert Module is nn.Module is cupola.nn.Module and tree_map is cupola.utils.tree_map
assert mx is mlx.core is cupola.core and mlx.nn is nn
assert not any("site-packages/mlx" in (getattr(m, "__file__", None) or "") for m in sys.modules.values())
for missing in ("mlx.nn.nothing", "mlx.core.nothing", "mlx.nothing", "mlx.nn.layers.nothing"):
    try:
        importlib.import_module(missing)
    except ModuleNotFoundError as error:
        assert missing in str(error), error
    else:
        raise AssertionError(missing)
print("ok")
"""


def test_modules_are_the_same_objects(tmp_path):
    write(tmp_path, {"program.py": MODULES})
    assert run(tmp_path / "program.py") == "ok\n"


def test_import_inside_of_a_program(tmp_path):
    write(tmp_path, {"program.py": "import cupola.mlx\n" + MODULES})
    done = python(tmp_path / "program.py")
    assert done.stdout == "ok\n", done.stderr


def test_import_after_mlx(tmp_path):
    program = """
    import mlx.core as theirs, mlx.nn
    import cupola.mlx
    import mlx.core as ours, mlx.nn.layers.base, mlx.optimizers, cupola.core
    import mlx
    assert ours is cupola.core is mlx.core and ours is not theirs
    assert mlx.nn.layers.base.Module is mlx.nn.Module is cupola.nn.Module
    print("ok")
    """
    pytest.importorskip("mlx.core")
    write(tmp_path, {"program.py": program})
    done = python(tmp_path / "program.py")
    assert done.stdout == "ok\n", done.stderr


def test_without_mlx_installed(tmp_path):
    write(tmp_path, {"program.py": """
        import sys
        sys.path[:] = [p for p in sys.path if not __import__("os").path.isdir(p + "/mlx")]
        import mlx.core as mx, mlx
        print(mx.array([1, 2]).tolist(), list(mlx.__path__))
    """})
    assert run(tmp_path / "program.py") == "[1, 2] []\n"


def test_wins_over_an_installed_mlx(tmp_path):
    write(tmp_path / "site" / "mlx", {**FAKE, "core.py": "", "nn.py": "", "utils.py": ""})
    write(tmp_path, {"program.py": """
        import mlx.core, mlx.nn, mlx.utils, mlx.fake, cupola.core
        assert mlx.core is cupola.core and mlx.nn.Linear and mlx.utils.tree_map
        print(mlx.fake.x)
    """})
    # What MLX has besides is still there.
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    assert run(tmp_path / "program.py", PYTHONPATH=path) == "fake\n"


def test_a_folder_of_the_programs_own(tmp_path):
    write(tmp_path, {
        "program.py": """
            import mlx.core as mx, mlx.nn as nn
            import mlx.helpers, mlx.models.small
            from mlx.models.small import Small
            print(mlx.helpers.twice(mx.array(2)).item(), Small()(mx.ones((1, 2))).shape, nn.Linear.__module__)
        """,
        "mlx/helpers.py": "import mlx.core as mx\ndef twice(x): return mx.add(x, x)\n",
        "mlx/models/__init__.py": "",
        "mlx/models/small.py": """
            import mlx.nn as nn
            class Small(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 3)
                def __call__(self, x):
                    return self.layer(x)
        """,
    })  # fmt: skip
    for cwd in (tmp_path, "/"):
        out = run(tmp_path / "program.py", cwd=cwd)
        assert out == "4 (1, 3) cupola.nn.layers.linear\n"


def test_a_package_of_the_programs_own(tmp_path):
    write(tmp_path, {
        "program.py": "import mlx.core as mx, mlx, mlx.utils\nprint(mlx.flag, mx.array(3).item(), mlx.utils.mine)",
        "mlx/__init__.py": "flag = 'own'",
        "mlx/utils.py": "mine = 'own utils'",
    })  # fmt: skip
    assert run(tmp_path / "program.py") == "own 3 own utils\n"


ENVIRONMENT = """
import sys, os
print(sys.argv)
print(sys.path[0])
print(__name__, __file__, __doc__, __package__, __spec__, sorted(k for k in globals() if k != "annotations"))
import __main__
print(__main__ is sys.modules["__main__"], __main__.__dict__ is globals())
"""


@pytest.mark.parametrize("name", ["program.py", "sub/program.py", "./program.py", "linked.py"])
def test_environment_of_the_program(tmp_path, name):
    write(tmp_path, {"program.py": ENVIRONMENT, "sub/program.py": ENVIRONMENT, "other/real.py": ENVIRONMENT})
    (tmp_path / "linked.py").symlink_to(tmp_path / "other" / "real.py")
    arguments = [name, "-x", "--flag=3", "two words"]
    expected = python(*arguments, cwd=tmp_path)
    assert expected.returncode == 0
    assert run(*arguments, cwd=tmp_path) == expected.stdout


FAILURES = {
    "exception": "def f():\n    g()\n\ndef g():\n    raise ValueError('wrong')\n\nf()\n",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError(3) from e\n",
    "context": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    [][1]\n",
    "syntax": "x = = 1\n",
    "exit": "import sys\nprint('out')\nsys.exit(7)\n",
    "exit text": "raise SystemExit('message')\n",
    "interrupt": "raise KeyboardInterrupt\n",
    "hook": "import sys\nsys.excepthook = lambda t, v, tb: print('hook', t.__name__, v)\n1 / 0\n",
    "atexit": "import atexit\nx = 3\natexit.register(lambda: print('bye', x))\n1 / 0\n",
    "thread": "import threading\ny = 5\nthreading.Timer(0.2, lambda: print('late', y)).start()\n",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n",
    "encoding": "# -*- coding: latin-1 -*-\nprint(len('\xe9'))\n",
    "future": "def f(x: nothing): pass\n",
    "inspect": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))\n",
}


@pytest.mark.parametrize("name", FAILURES)
def test_runs_as_python_does(tmp_path, name):
    (tmp_path / "program.py").write_text(FAILURES[name], encoding="latin-1")
    expected = python("program.py", "a", cwd=tmp_path)
    done = python("-m", "cupola.mlx", "program.py", "a", cwd=tmp_path)
    assert done.returncode == expected.returncode
    assert done.stdout == expected.stdout
    assert done.stderr == expected.stderr


def test_missing_program(tmp_path):
    expected = python("nothing.py", cwd=tmp_path)
    done = python("-m", "cupola.mlx", "nothing.py", cwd=tmp_path)
    assert done.returncode == expected.returncode == 2
    assert "can't open file" in done.stderr and str(tmp_path / "nothing.py") in done.stderr


def test_usage():
    done = python("-m", "cupola.mlx")
    assert done.returncode == 2 and "usage: python -m cupola.mlx SCRIPT.py" in done.stderr
    assert run("--help").startswith("usage: python -m cupola.mlx SCRIPT.py")


def test_folders_and_modules(tmp_path):
    text = "import sys, mlx.core, cupola.core\nprint(sys.argv[1:], mlx.core is cupola.core, __name__)\n"
    write(tmp_path, {"app/__main__.py": text, "tool.py": text})
    assert run("app", "1", cwd=tmp_path) == "['1'] True __main__\n"
    assert run("-m", "tool", "1", "2", cwd=tmp_path) == "['1', '2'] True __main__\n"


def test_safe_path(tmp_path):
    write(tmp_path, {"program.py": "import sys\nprint(sys.path[0])\n"})
    expected = python("-P", "program.py", cwd=tmp_path).stdout
    assert python("-P", "-m", "cupola.mlx", "program.py", cwd=tmp_path).stdout == expected
