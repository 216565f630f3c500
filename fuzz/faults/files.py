"""Saves or reads a file as Python users do; system calls of it are made to fail.

What Cupola raises is said in one line, as its program does: status 1. Anything else that is raised
is a traceback: also status 1, but no such line. Status 3: what was read is not what was saved.
"""

import sys

import cupola.core as mx

COUNT = 5000


def arrays() -> dict[str, mx.array]:
    return {"a": mx.arange(COUNT), "b": mx.ones((3, 4), mx.float16)}


def save(path: str) -> None:
    match path.rsplit(".", 1)[1]:
        case "npy":
            mx.save(path, arrays()["a"])
        case "npz":
            compressed = "packed" in path
            (mx.savez_compressed if compressed else mx.savez)(path, **arrays())
        case _:
            mx.save_safetensors(path, arrays(), {"made": "by a test"})


def load(path: str) -> None:
    found = mx.load(path)
    found = {"a": found} if isinstance(found, mx.array) else found
    wanted = arrays()
    for name, array in found.items():
        if not mx.array_equal(array, wanted[name]).item():
            sys.exit(3)


action = {"save": save, "load": load}[sys.argv[1]]
try:
    action(sys.argv[2])
except (RuntimeError, ValueError, OSError) as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(1)
