"""Programs for MLX print the same under MLX and under ``python -m cupola.mlx``."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import DEVICE, cc

PROGRAMS = sorted(p for p in (Path(__file__).parent / "programs").glob("*.py") if p.name != "companion.py")
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")

# Runs a program as ``python PROGRAM`` does and leaves by ``os._exit``: MLX 0.32 now and then aborts
# after the last line ("terminate called without an active exception"), while its threads end.
UNDER_MLX = """
import os, runpy, sys
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
sys.stdout.flush()
os._exit(0)
"""

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("CUPOLA_STAND_IN")) or DEVICE != cc.cpu,
    reason="the programs run in other processes",
)


def printed(arguments, folder, **env):
    # Without that folder a graphics driver may add a line to what the program prints.
    env = {"XDG_RUNTIME_DIR": tempfile.gettempdir(), **os.environ, **env}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, cwd=folder, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def differ(ours, theirs):
    """Whether two printed numbers are further apart than rounding takes them."""
    digits = len(theirs.partition("e")[0].partition(".")[2])
    exponent = int(theirs.partition("e")[2] or 0)
    unit = 10.0 ** (exponent - digits)
    return abs(float(ours) - float(theirs)) > 1.01 * unit + 2e-3 * abs(float(theirs))


def assert_same_lines(ours, theirs):
    """The same words and integers; numbers with a point may differ in their last digits."""
    for one, other in zip(ours, theirs):
        assert NUMBER.sub("#", one) == NUMBER.sub("#", other)
        pairs = list(zip(NUMBER.findall(one), NUMBER.findall(other)))
        assert not any(differ(a, b) for a, b in pairs), f"{one}\n{other}"
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.stem for p in PROGRAMS])
def test_prints_what_it_prints_under_mlx(program, tmp_path):
    # MLX compiles fused kernels with the system's C++ compiler, which takes many seconds.
    theirs = printed(["-c", UNDER_MLX, program], tmp_path, MLX_DISABLE_COMPILE="1")
    assert theirs, "the program prints nothing"
    assert_same_lines(printed(["-m", "cupola.mlx", program], tmp_path), theirs)


def test_lines_are_compared():
    assert_same_lines(["a 1.000 2"], ["a 1.001 2"])
    for ours in (["a 1.010 2"], ["a 1.000 3"], ["b 1.000 2"], [], ["a 1.000 2", ""]):
        with pytest.raises(AssertionError):
            assert_same_lines(ours, ["a 1.000 2"])
