"""Child processes that evaluate cases, one for each package: a crash or a hang is an answer, too."""

import os
import pickle
import re
import resource
import select
import struct
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

import values as random_values

LIMIT = 10.0
SPARE = 3 << 29
MOST = 1_000_000


class Child:
    """A process that evaluates cases with `package`; it is started again when it has died."""

    def __init__(self, package, device="cpu"):
        self.package, self.device, self.process = package, device, None

    def start(self):
        self.log = tempfile.TemporaryFile()
        command = [sys.executable, os.path.abspath(__file__), self.package, self.device]
        # Three digits of a product would hide what is wrong with it. What the heap reserves for each thread of a
        # large machine is no memory of a case.
        own = {**os.environ, "CUPOLA_TF32": "0", "MALLOC_ARENA_MAX": "4"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, bufsize=0,
            env=own,
        )
        self._read(60)

    def send(self, case):
        if self.process is None:
            self.start()
        self.sent = time.monotonic()
        _write(self.process.stdin, case)

    def answer(self, limit=LIMIT):
        """What it gave: ("value", …), ("error", type, text, …), ("crash", why) or ("hang", why)."""
        try:
            return self._read(self.sent + limit - time.monotonic())
        except TimeoutError:
            return self._gone("hang", f"no answer within {limit:.0f} s")
        except (EOFError, OSError):
            code = self.process.wait()
            return self._gone("crash", f"the process ended with {code}: {self._last_words()}")

    def ask(self, case, limit=LIMIT):
        self.send(case)
        return self.answer(limit)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.log.close()
            self.process = None

    def _gone(self, kind, why):
        self.stop()
        return kind, why

    def _last_words(self):
        self.log.seek(0)
        return self.log.read()[-400:].decode(errors="replace").strip()

    def _read(self, limit):
        end = time.monotonic() + limit
        size = struct.unpack("Q", self._bytes(8, end))[0]
        return pickle.loads(self._bytes(size, end))

    def _bytes(self, size, end):
        parts, stream = [], self.process.stdout.fileno()
        while size:
            if not select.select([stream], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError
            part = os.read(stream, min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _write(stream, message):
    data = pickle.dumps(message)
    stream.write(struct.pack("Q", len(data)) + data)
    stream.flush()


def dtype_name(x):
    return str(x.dtype).rpartition(".")[2].replace("bool_", "bool").replace("bool", "bool_")


def elements(mx, x):
    """The elements as NumPy's; those of bfloat16 as float32."""
    mx.eval(x)
    return np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)


def plain(mx, x):
    """A result without objects of a package: its arrays as (mark, dtype, shape, elements)."""
    if isinstance(x, mx.array):
        small = x.size <= MOST
        if not small:
            _too_large(mx, x)
        return "array", dtype_name(x), tuple(x.shape), elements(mx, x) if small else None
    if isinstance(x, (list, tuple)):
        return [plain(mx, part) for part in x]
    if isinstance(x, dict):
        return {str(key): plain(mx, part) for key, part in x.items()}
    if isinstance(x, np.generic):
        return x.item()
    if x is None or isinstance(x, (bool, int, float, complex, str, bytes)):
        return x
    return re.sub(r"(mlx|cupola)(\.core)?\.", "", repr(x))


def _too_large(mx, x):
    """What there is no memory for has a shape, and evaluating it says so."""
    if x.nbytes > 1 << 36:
        try:
            mx.eval(x)
        except MemoryError:
            pass


def namespace(mx, nn):
    """The names of a case: the package, its layers, and how arrays are made."""

    def array(shape, dtype, seed, flavour="plain", size=None):
        x = random_values.values(shape, dtype, seed, flavour)
        x = x if size is None else random_values.wrapped(x, size)
        kind = getattr(mx, dtype)
        return mx.array(x, dtype=kind) if dtype == "float64" else mx.array(x).astype(kind)

    def twice(f):
        """The result of f, which has to be the same again."""
        first, again = f(), f()
        if first.size > MOST:
            # Where they are: reading them takes longer than an answer may.
            same = mx.array_equal(first, again, equal_nan=True).item()
        else:
            same = elements(mx, first).tobytes() == elements(mx, again).tobytes()
        assert same, "two runs give two results"
        return first

    def saved(how, ending, *arrays):
        """The arrays after they were written to a file and read from it."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "arrays" + ending)
            if how in ("save_safetensors", "save_gguf"):
                getattr(mx, how)(path, {str(k): x for k, x in enumerate(arrays)})
            else:
                getattr(mx, how)(path, *arrays)
            found = mx.load(path)
            mx.eval(found)
        return found

    return dict(mx=mx, nn=nn, np=np, array=array, twice=twice, saved=saved)


def evaluate(mx, names, case):
    """The answer to one case, with what became of its operands."""
    names = dict(names)
    try:
        for name, text in case["operands"].items():
            names[name] = eval(text, names)
        mx.eval([names[name] for name in case["operands"]])
        exec(case["body"], names)
        out = plain(mx, names["out"])
        return "value", out, _operands(mx, names, case)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        text = str(error)
        usual = isinstance(error, Exception) and not isinstance(error, SystemError)
        return "error", type(error).__name__, text, usual, _operands(mx, names, case)


def _operands(mx, names, case):
    """What the operands hold after the call, or why they cannot be read."""
    found = {}
    for name in case["operands"]:
        if name in names:
            try:
                found[name] = elements(mx, names[name])
            except BaseException as error:
                found[name] = f"{type(error).__name__}: {error}"
    return found


def serve(package, device):
    """Answers cases until the parent is gone. Memory is bounded: asking for too much fails."""
    out, source = os.fdopen(os.dup(1), "wb"), sys.stdin.buffer
    os.dup2(2, 1)
    if package == "numpy":
        return serve_numpy(out, source)
    if package == "mlx":
        import mlx.core as mx
        import mlx.nn as nn

        # Its layers are compiled, which starts a C++ compiler for each.
        mx.disable_compile()
    else:
        import cupola.core as mx
        import cupola.nn as nn
    mx.set_default_device(getattr(mx, device))
    mx.eval(mx.ones(3) + 1)
    if device == "cpu":
        with open("/proc/self/statm") as f:
            used = int(f.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + SPARE, used + SPARE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    np.seterr(all="ignore")
    names = namespace(mx, nn)
    _write(out, "ready")
    while head := source.read(8):
        case = pickle.loads(source.read(struct.unpack("Q", head)[0]))
        _write(out, evaluate(mx, names, case))


def serve_numpy(out, source):
    """Answers what NumPy makes of calls."""
    import truths

    resource.setrlimit(resource.RLIMIT_AS, (4 * SPARE, 4 * SPARE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    _write(out, "ready")
    while head := source.read(8):
        answer = truths.run(**pickle.loads(source.read(struct.unpack("Q", head)[0])))
        if answer[0] == "value" and _size(answer[1]) > MOST:
            answer = "value", None
        try:
            pickle.dumps(answer)
        except Exception:
            answer = ("none",)
        _write(out, answer)


def _size(x):
    return sum(map(_size, x)) if isinstance(x, (list, tuple)) else np.asarray(x).size


if __name__ == "__main__":
    serve(*sys.argv[1:])
